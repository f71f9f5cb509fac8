#include "stage/reference.h"

#include <string.h>

/* The next packet, read as needed. */
static enum err next_packet(struct reference *r, struct packet *p)
{
	enum err e;
	while ((e = input_next(&r->in, p)) == ERR_AGAIN)
		if ((e = input_fill(&r->in)))
			break;
	if (e && e != ERR_END) {
		bool said = r->in.why.reason[0];
		r->why = said || !r->in.is_stream ? r->in.why : r->in.reader.why;
		if (!r->why.reason[0])
			err_say(&r->why, e, r->in.name, "%s", err_text(e));
	}
	return e;
}

enum err reference_open(
	struct reference *r, const char *name, unsigned nth, const volatile sig_atomic_t *stop, struct err_why *why)
{
	const struct input_options options = { .reader = { .expand_silence = true, .stop = stop }, .source = { .stop = stop } };
	uint16_t only = 0;
	unsigned n_pcm = 0;
	enum err e = input_open(&r->in, name, &options, why);
	if (e)
		return e;

	/* Announcements come first; the wanted one may still come late. */
	struct packet p;
	while (!r->track && (e = next_packet(r, &p)) == ERR_OK) {
		struct track *t = p.track ? input_track(&r->in, p.track) : NULL;
		if (p.type == PACKET_TRACK && !(p.flags & PACKET_REPEAT) && t && track_is_pcm(t)) {
			only = p.track;
			if (n_pcm++ == nth)
				r->track = t;
		} else if (p.type == PACKET_DATA && n_pcm == 1 && p.track == only) {
			/* Its first frames are here, and no other track was announced before them. */
			r->track = t;
			r->packet = p;
			r->has_packet = true;
		}
	}
	if (e == ERR_END && n_pcm == 1)
		r->track = input_track(&r->in, only);
	if (e && e != ERR_END) {
		*why = r->why;
		return e;
	}
	if (!r->track)
		return err_say(why, ERR_FORMAT, name, "no PCM track %u to compare with", nth + 1);
	r->ended = e == ERR_END;
	r->id = r->track->id;
	return convert_init(&r->to_f64, r->track->sample, SAMPLE_F64, false, 1);
}

/* The next DATA or GAP packet of the track becomes the one at work. */
static enum err advance(struct reference *r)
{
	enum err e;
	r->has_packet = false;
	r->done_frames = 0;
	while (!r->ended) {
		e = next_packet(r, &r->packet);
		if (e == ERR_END) {
			r->ended = true;
			break;
		}
		if (e)
			return e;
		if (r->packet.track != r->id)
			continue;
		if (r->packet.type == PACKET_TRACK && !(r->packet.flags & PACKET_REPEAT)) {
			const struct track *t = input_track(&r->in, r->id);
			if (t && track_is_pcm(t) && t->sample == r->to_f64.from && t->channels == r->track->channels)
				continue;
			return err_say(&r->why, ERR_FORMAT, r->in.name, "track %u changes its format on the way", r->id);
		}
		if (r->packet.type == PACKET_DATA || r->packet.type == PACKET_GAP) {
			r->has_packet = true;
			break;
		}
	}
	return ERR_OK;
}

enum err reference_read(void *from, double *dst, size_t max_frames, size_t *n_frames)
{
	struct reference *r = from;
	*n_frames = 0;
	while (!r->has_packet || r->done_frames == r->packet.dur) {
		enum err e = advance(r);
		if (e)
			return e;
		if (r->ended)
			return ERR_OK;
	}
	size_t n = r->packet.dur - r->done_frames, frame_bytes = r->track->frame_bytes;
	n = n < max_frames ? n : max_frames;
	if (r->packet.type == PACKET_GAP) {
		memset(dst, 0, n * r->track->channels * sizeof(*dst));
	} else {
		/* A payload shorter than its duration says ends in zeros. */
		size_t have = r->packet.payload_bytes / frame_bytes;
		have = have > r->done_frames ? have - r->done_frames : 0;
		have = have < n ? have : n;
		convert_run(&r->to_f64, dst, r->packet.payload + r->done_frames * frame_bytes, have * r->track->channels);
		memset(dst + have * r->track->channels, 0, (n - have) * r->track->channels * sizeof(*dst));
	}
	r->done_frames += (uint32_t)n;
	*n_frames = n;
	return ERR_OK;
}

void reference_release(struct reference *r)
{
	input_release(&r->in);
	memset(r, 0, sizeof(*r));
	r->in.fd = -1;
}
