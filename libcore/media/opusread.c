/*
 * Ogg Opus as PCM: oggread finds the packets and their places, opusdec makes frames of them.  Trims, pre-skip and holes
 * are theirs; what is decided here is that a hole of up to a second is concealed and a longer one is passed on.
 */
#include "media/oggread.h"
#include "media/opusdec.h"
#include "media/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONCEAL_MAX_FRAMES 48000u /* one second */

struct opusread {
	struct oggread ogg;
	struct opusdec *decoder;
	struct packet packet;     /* the one that waits to be decoded; its bytes are oggread's */
	bool have_packet;
	uint64_t hole_frames;     /* still to be concealed before it */
	int64_t hole_pos;
	struct opusdec_block block; /* decoded, not handed out yet: the decoder's memory */
	size_t block_at_frames;
	uint64_t refused_packets;
	bool ended;
};

/* A decoder for the link at hand, and its announcement. */
static enum err take_link(struct source *s, struct opusread *r, struct err_why *why)
{
	struct track pcm = { 0 };

	opusdec_free(r->decoder);
	r->decoder = NULL;
	enum err e = opusdec_new(&r->decoder, &r->ogg.track, false, &pcm, why);
	if (e) {
		track_release(&pcm);
		return e;
	}
	/* A further link: the track it belongs to stays what it is. */
	if (s->track.channels) {
		uint32_t n_bytes;
		const uint8_t *name = track_tlv(&s->track, TRACK_TLV_NAME, &n_bytes);

		if (name && (e = track_set_tlv(&pcm, TRACK_TLV_NAME, name, n_bytes))) {
			track_release(&pcm);
			return err_say(why, e, s->name, "%s", err_text(e));
		}
		pcm.id = s->track.id;
		pcm.gen = s->track.gen;
		pcm.first_pos = s->track.first_pos;
	}
	track_release(&s->track);
	s->track = pcm;
	return ERR_OK;
}

/* The next packet; what lies before it goes into *b or is left to be concealed. */
static enum err fetch(struct source *s, struct opusread *r, struct source_block *b)
{
	struct oggread_packet p;
	enum err e = oggread_next(&r->ogg, &p);

	if (e) {
		r->ended = true;
		s->lost_frames = r->ogg.lost_frames;
		s->damaged_bytes = r->ogg.damaged_bytes;
		if (e != ERR_END) {
			s->why = r->ogg.why;
			if (!s->why.thing[0])
				snprintf(s->why.thing, sizeof(s->why.thing), "%s", s->name);
		}
		if (r->ogg.cut || r->ogg.warning[0]) {
			source_warn(s, "%s", r->ogg.warning[0] ? r->ogg.warning : "cut short or damaged");
			s->cut = r->ogg.cut;
		}
		if (r->refused_packets)
			source_warn(s, "%" PRIu64 " packets were no Opus: concealed", r->refused_packets);
		return e;
	}
	r->packet = packet_data(0, p.pos, p.dur, (uint32_t)p.n_bytes);
	r->packet.payload = p.data;
	r->packet.flags = p.flags;
	r->have_packet = true;
	if (p.new_link) {
		if ((e = take_link(s, r, &s->why)))
			return e;
		b->track_changed = true;
	}
	if (!p.gap_frames)
		return ERR_OK;
	if (p.gap_frames <= CONCEAL_MAX_FRAMES && p.gap_reason != PACKET_GAP_NOT_STARTED) {
		r->hole_frames = p.gap_frames;
		r->hole_pos = p.pos - (int64_t)p.gap_frames;
		return ERR_OK;
	}
	b->pos = p.pos - (int64_t)p.gap_frames;
	b->gap_frames = p.gap_frames;
	b->gap_reason = p.gap_reason;
	opusdec_skip(r->decoder, p.pos);
	return ERR_OK;
}

static enum err opusread_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct opusread *r = s->state;
	enum err e;

	while (r->block_at_frames == r->block.n_frames) {
		if (r->ended)
			return ERR_END;
		if (r->hole_frames) {
			if (opusdec_conceal(r->decoder, r->hole_pos, r->hole_frames, &r->packet, &r->block) || !r->block.n_frames) {
				r->hole_frames = 0;
				continue;
			}
			r->hole_pos = r->block.pos + (int64_t)r->block.n_frames;
			r->hole_frames -= r->block.n_frames < r->hole_frames ? r->block.n_frames : r->hole_frames;
		} else if (r->have_packet) {
			e = opusdec_packet_into(r->decoder, &r->packet, dst, max_frames, &r->block);
			if (e == ERR_CODEC)
				r->refused_packets++;
			else if (e)
				return err_say(&s->why, e, s->name, "%s", err_text(e));
			r->have_packet = false;
		} else {
			if ((e = fetch(s, r, b)))
				return e;
			if (b->track_changed || b->gap_frames)
				return ERR_OK;
			continue;
		}
		r->block_at_frames = 0;
	}

	size_t n = r->block.n_frames - r->block_at_frames;
	if (n > max_frames)
		n = max_frames;
	const uint8_t *from = (const uint8_t *)r->block.frames + r->block_at_frames * s->track.frame_bytes;
	if (from != dst)
		memcpy(dst, from, n * s->track.frame_bytes);
	b->pos = r->block.pos + (int64_t)r->block_at_frames;
	b->n_frames = n;
	b->flags = r->block.flags & (PACKET_CONCEALED | PACKET_RECOVERED | PACKET_DISCONT);
	r->block_at_frames += n;
	r->block.flags &= (uint16_t)~PACKET_DISCONT;
	return ERR_OK;
}

static bool opusread_would_block(const struct source *s, size_t n_frames)
{
	const struct opusread *r = s->state;

	(void)n_frames;
	return !r->ended && !r->have_packet && r->block_at_frames == r->block.n_frames && !oggread_is_ready(&r->ogg) &&
		source_bytes_would_block(&r->ogg.in, SOURCE_ENOUGH_BYTES);
}

static void opusread_release(struct source *s)
{
	struct opusread *r = s->state;

	if (!r)
		return;
	opusdec_free(r->decoder);
	oggread_release(&r->ogg);
	free(r);
	s->state = NULL;
}

static const struct source_ops opusread_ops = {
	.name = "opusread",
	.read = opusread_read,
	.would_block = opusread_would_block,
	.release = opusread_release,
};

enum err opusread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	const uint8_t *h = in->head;
	bool regular = in->is_regular;

	if (in->head_bytes < 36 || memcmp(h, "OggS", 4) || 27u + h[26] + 8 > in->head_bytes || memcmp(h + 27 + h[26], "OpusHead", 8))
		return ERR_AGAIN;
	struct opusread *r = calloc(1, sizeof(*r));
	if (!r)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	s->state = r;
	s->ops = &opusread_ops;
	enum err e = oggread_open(&r->ogg, in, regular, why);
	if (!e)
		e = take_link(s, r, why);
	if (e) {
		if (why && !why->thing[0])
			snprintf(why->thing, sizeof(why->thing), "%s", s->name);
		return e == ERR_AGAIN ? err_say(why, ERR_FORMAT, s->name, "its Opus headers are damaged") : e;
	}
	if (r->ogg.note[0])
		source_note(s, "%s", r->ogg.note);
	s->n_frames = r->ogg.n_frames;
	return ERR_OK;
}
