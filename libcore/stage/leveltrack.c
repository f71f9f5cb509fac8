#include "stage/leveltrack.h"

#include "base/units.h"
#include "stage/preroll.h"

#include <stdlib.h>

#define PORTION_BYTES 32768u        /* of PCM that is heard at once, at most */
#define PORTION_FRAMES 4096u
#define SHORTEST_OPUS_FRAMES 120u
#define MAX_OPUS_FRAME_BYTES 1280u  /* of one stream: RFC 6716 3.2.1, and its length */
#define FEWEST_FRAMES_AN_ENTRY 32   /* of PCM: packets that are shorter are joined, but gaps may lie between */

/* ---- memory ---- */

static enum err no_memory(struct err_why *why)
{
	return err_say(why, ERR_NOMEM, "--pre-roll", "%s", err_text(ERR_NOMEM));
}

uint32_t leveltrack_portion_frames(const struct leveltrack *t)
{
	uint32_t n = PORTION_BYTES / t->format.frame_bytes;
	return n < 1 ? 1 : n > PORTION_FRAMES ? PORTION_FRAMES : n;
}

void leveltrack_drop_memory(struct leveltrack *t)
{
	holdback_release(&t->held);
	opusdec_free(t->dec);
	free(t->frames);
	t->dec = NULL;
	t->frames = NULL;
	t->n_sent = 0;
}

static enum err take_decoder(struct leveltrack *t, struct err_why *why)
{
	struct track pcm = {0};
	enum err e = opusdec_new(&t->dec, &t->format, false, &pcm, why);

	track_release(&pcm);
	return e;
}

enum err leveltrack_take_memory(struct leveltrack *t, uint64_t n_frames, struct err_why *why)
{
	bool opus = track_is_opus(&t->format);
	uint64_t n_bytes, n_packets;

	if (opus) {
		uint64_t streams = t->format.opus_streams ? t->format.opus_streams : 1;
		n_frames += PREROLL_FRAMES + 2 * LEVELTRACK_LONGEST_OPUS_FRAMES;
		n_packets = n_frames / SHORTEST_OPUS_FRAMES + 64;
		n_bytes = n_packets * MAX_OPUS_FRAME_BYTES * streams;
	} else {
		n_packets = n_frames / FEWEST_FRAMES_AN_ENTRY + 64;
		n_bytes = n_frames * t->format.frame_bytes + 4 * (uint64_t)HOLDBACK_MAX_ENTRY_BYTES;
	}
	if (n_bytes > LEVELTRACK_MAX_HELD_BYTES)
		return err_say(why, ERR_LIMIT, "--pre-roll", "track %u would need %llu MiB for it, and may have %u: make it shorter",
			t->format.id, (unsigned long long)(n_bytes >> 20), LEVELTRACK_MAX_HELD_BYTES >> 20);
	if (holdback_init(&t->held, (unsigned)n_packets, (size_t)n_bytes, opus ? 0 : t->format.frame_bytes))
		return no_memory(why);
	if (opus)
		return take_decoder(t, why);
	if (convert_init(&t->convert, (enum sample)t->format.sample, SAMPLE_F32, false, 0))
		return err_say(why, ERR_FORMAT, "--start-above", "track %u is not audio that can be heard", t->format.id);
	t->frames = malloc(leveltrack_portion_frames(t) * sizeof(float) * t->format.channels);
	return t->frames ? ERR_OK : no_memory(why);
}

/* ---- what is held back ---- */

/* The oldest one goes. */
static void drop_oldest(struct leveltrack *t)
{
	holdback_drop(&t->held);
	if (t->n_sent)
		t->n_sent--;
}

enum err leveltrack_keep(struct leveltrack *t, const struct packet *p, uint64_t *n_lost_frames, struct err_why *why)
{
	*n_lost_frames = 0;
	while (!holdback_add(&t->held, p)) {
		/* More packets than there can be of this length: the oldest is the least missed. */
		if (!t->held.n)
			return err_say(why, ERR_LIMIT, "--start-above", "a packet of %u bytes is too long", p->payload_bytes);
		*n_lost_frames += t->n_sent ? 0 : holdback_at(&t->held, 0)->dur;
		drop_oldest(t);
	}
	return ERR_OK;
}

void leveltrack_let_go(struct leveltrack *t, int64_t keep_pos, bool is_open)
{
	if (t->dec)
		keep_pos -= PREROLL_FRAMES + LEVELTRACK_LONGEST_OPUS_FRAMES;
	while (t->held.n) {
		const struct packet *p = holdback_at(&t->held, 0);
		if (p->pos + p->dur > keep_pos || (is_open && t->n_sent == 0))
			break;
		drop_oldest(t);
	}
}

/* ---- into the take ---- */

static enum err check(const struct leveltrack *t, enum err e, struct err_why *why)
{
	if (e)
		*why = t->takes->why;
	return e;
}

enum err leveltrack_deliver(struct leveltrack *t, int64_t to, bool cuts, struct err_why *why)
{
	bool opus = t->dec;
	enum err e = ERR_OK;

	while (!e && t->n_sent < t->held.n) {
		struct packet p = *holdback_at(&t->held, t->n_sent);
		int64_t end = p.pos + p.dur;
		if (p.pos >= to || (opus && end > to && !cuts))
			break;
		bool partly = end > to;
		if (partly) {
			p.dur = (uint32_t)(to - p.pos);
			if (opus)
				p.flags |= PACKET_TRIM;
			else if (p.type == PACKET_DATA)
				p.payload_bytes = p.dur * t->format.frame_bytes;
		}
		e = check(t, takes_packet(t->takes, &p), why);
		if (opus) {
			/* Kept, for the decoder that the next take needs. */
			t->n_sent++;
		} else if (!partly) {
			holdback_drop(&t->held);
		} else {
			holdback_trim(&t->held, p.dur);
		}
		if (partly)
			break;
	}
	return e;
}

/* Of what is held back, the first packet that a decoder needs which is to give the frames from pos on. */
static unsigned first_needed(const struct leveltrack *t, int64_t pos)
{
	unsigned first = 0;
	int64_t end = INT64_MIN;

	for (unsigned i = 0; i < t->held.n; i++) {
		const struct packet *p = holdback_at(&t->held, i);
		if (p->pos > pos)
			break;
		bool whole = i > 0 && p->type == PACKET_DATA && p->pos == end && !(p->flags & PACKET_DISCONT);
		if (p->pos <= pos - PREROLL_FRAMES || !whole)
			first = i;
		end = p->type == PACKET_DATA ? p->pos + p->dur : INT64_MIN;
	}
	return first;
}

enum err leveltrack_begin(struct leveltrack *t, int64_t pos, struct err_why *why)
{
	enum err e = check(t, takes_begin_at(t->takes, t->format.id, pos, t->clock_pos, t->clock_utc_ns), why);

	if (e)
		return e;
	if (t->dec) {
		t->n_sent = first_needed(t, pos);
		return ERR_OK;
	}
	/* What lies before it goes. */
	while (t->held.n) {
		const struct packet *p = holdback_at(&t->held, 0);
		if (p->pos + p->dur > pos)
			break;
		holdback_drop(&t->held);
	}
	if (t->held.n && holdback_at(&t->held, 0)->pos < pos)
		holdback_trim(&t->held, (uint32_t)(pos - holdback_at(&t->held, 0)->pos));
	return ERR_OK;
}

enum err leveltrack_end(struct leveltrack *t, int64_t pos, struct err_why *why)
{
	enum err e = leveltrack_deliver(t, pos, true, why);
	return e ? e : check(t, takes_end_at(t->takes, t->format.id, pos), why);
}
