#include "tool/feed.h"

#include "base/units.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* News, a hole and a block: what one turn of a track can queue. */
#define PACKETS_A_TURN 3u

/* Sizes that follow from the format; again when a chained link changes it. */
static void size_track(const struct feed *f, struct feed_track *t)
{
	struct track *a = &t->source.track;
	uint32_t most = PACKET_MAX_PAYLOAD_BYTES / a->frame_bytes, want = f->block_frames ? f->block_frames : FEED_DEFAULT_BLOCK_FRAMES;

	t->block_frames = want < most ? want : most;
	a->id = t->id;
	a->nominal_dur = t->block_frames;
	a->largest_object_bytes = t->block_frames * a->frame_bytes;
}

enum err feed_open(struct feed *f, struct source *sources, unsigned n, uint32_t block_frames, struct err_why *why)
{
	memset(f, 0, sizeof(*f));
	f->tracks = calloc(n, sizeof(*f->tracks));
	if (!f->tracks)
		return err_say(why, ERR_NOMEM, "sources", "%s", err_text(ERR_NOMEM));
	f->n_tracks = n;
	f->block_frames = block_frames;
	f->utc0_ns = UNITS_UNKNOWN_NS;
	for (unsigned i = 0; i < n; i++) {
		struct feed_track *t = &f->tracks[i];

		t->source = sources[i];
		memset(&sources[i], 0, sizeof(sources[i]));
		t->id = (uint16_t)(i + 1);
		t->next_pos = t->source.track.first_pos;
		t->end_pos = INT64_MAX;
		size_track(f, t);
	}
	return ERR_OK;
}

void feed_release(struct feed *f)
{
	for (unsigned i = 0; i < f->n_tracks; i++)
		source_release(&f->tracks[i].source);
	free(f->tracks);
	free(f->slots);
	free(f->aside);
	f->tracks = NULL;
	f->slots = f->aside = NULL;
	f->n_tracks = f->n_queued = f->next_queued = 0;
}

/* ---- as samples ---- */

struct feed_track *feed_turn(struct feed *f)
{
	struct feed_track *last = NULL;

	for (unsigned i = 0; i < f->n_tracks; i++) {
		struct feed_track *t = &f->tracks[i];

		if (t->ended)
			continue;
		if (!last || units_compare(t->next_pos, t->source.track.rate_num, t->source.track.rate_den, last->next_pos,
				     last->source.track.rate_num, last->source.track.rate_den) < 0)
			last = t;
	}
	return last;
}

enum err feed_read(struct feed *f, struct feed_track *t, uint8_t *dst, struct source_block *b, uint64_t *hole_frames)
{
	uint64_t left = t->end_pos > t->next_pos ? (uint64_t)t->end_pos - (uint64_t)t->next_pos : 0;
	enum err e = ERR_END;

	*hole_frames = 0;
	if (left)
		e = source_read(&t->source, dst, left < t->block_frames ? (size_t)left : t->block_frames, b);
	if (e == ERR_END) {
		t->ended = true;
		return ERR_END;
	}
	if (e) {
		f->why = t->source.why;
		return f->failed = e;
	}
	if (b->track_changed)
		size_track(f, t);
	if (!b->n_frames && !b->gap_frames)
		return ERR_OK;
	if (b->pos > t->next_pos)
		*hole_frames = (uint64_t)(b->pos - t->next_pos);
	/* A hole may reach beyond the end that -d sets, and so may what lies behind it. */
	if (b->pos >= t->end_pos) {
		b->n_frames = b->gap_frames = 0;
		b->pos = t->end_pos;
		*hole_frames = (uint64_t)(t->end_pos - t->next_pos);
	} else {
		uint64_t room = (uint64_t)(t->end_pos - b->pos);
		b->n_frames = b->n_frames < room ? b->n_frames : (size_t)room;
		b->gap_frames = b->gap_frames < room ? b->gap_frames : room;
	}
	t->next_pos = b->pos + (int64_t)(b->n_frames + b->gap_frames);
	t->n_gaps += (*hole_frames > 0) + (b->gap_frames > 0);
	t->gap_frames += *hole_frames + b->gap_frames;
	return ERR_OK;
}

static enum err write_gap(struct feed_track *t, struct writer *w, int64_t pos, uint64_t n_frames, uint16_t reason)
{
	struct packet_gap gap = { .reason = reason, .utc_ns = UNITS_UNKNOWN_NS };
	struct writer_track *wt = writer_track(w, t->id);
	enum err e = ERR_OK;

	/* Thrown away here: the total goes into every header from now on. */
	if (reason == PACKET_GAP_DROPPED && wt)
		wt->dropped += (uint32_t)n_frames;
	while (!e && n_frames) {
		uint32_t n = n_frames < UINT32_MAX ? (uint32_t)n_frames : UINT32_MAX;
		e = writer_gap(w, t->id, pos, n, &gap);
		pos += n;
		n_frames -= n;
	}
	return e;
}

/* The hole goes before the frames, and needs the place where they are: they step aside.  Returns: where they are then, or NULL. */
static uint8_t *write_hole(struct feed *f, struct feed_track *t, struct writer *w, const struct source_block *b, uint64_t hole_frames, const uint8_t *room)
{
	size_t n_bytes = b->n_frames * t->source.track.frame_bytes;

	if (!f->aside && !(f->aside = malloc(PACKET_MAX_PAYLOAD_BYTES))) {
		f->failed = err_say(&f->why, ERR_NOMEM, t->source.name, "%s", err_text(ERR_NOMEM));
		return NULL;
	}
	memcpy(f->aside, room, n_bytes);
	f->failed = write_gap(t, w, b->pos - (int64_t)hole_frames, hole_frames, PACKET_GAP_UNKNOWN);
	uint8_t *place = f->failed ? NULL : writer_reserve(w, n_bytes);
	if (place)
		memcpy(place, f->aside, n_bytes);
	else if (!f->failed)
		f->failed = w->failed;
	return place;
}

enum err feed_write(struct feed *f, struct feed_track *t, struct writer *w)
{
	struct source_block b;
	uint64_t hole;
	uint8_t *room = writer_reserve(w, (size_t)t->block_frames * t->source.track.frame_bytes);

	if (!room)
		return w->failed;
	enum err e = feed_read(f, t, room, &b, &hole);
	if (e)
		return e;
	if (b.track_changed)
		return writer_announce(w, &t->source.track);
	if (hole && !write_hole(f, t, w, &b, hole, room))
		return f->failed;
	if (b.gap_frames)
		return write_gap(t, w, b.pos, b.gap_frames, b.gap_reason);
	if (!b.n_frames)
		return ERR_OK;
	struct packet p = packet_data(t->id, b.pos, (uint32_t)b.n_frames, (uint32_t)(b.n_frames * t->source.track.frame_bytes));
	p.flags |= b.flags;
	if (b.utc_ns != UNITS_UNKNOWN_NS)
		p.utc_ns = b.utc_ns;
	else if (f->utc0_ns != UNITS_UNKNOWN_NS)
		p.utc_ns = f->utc0_ns + units_to_ns(b.pos, t->source.track.rate_num, t->source.track.rate_den);
	return writer_commit(w, &p);
}

/* ---- as packets ---- */

static uint8_t *slot_of(struct feed *f, unsigned i)
{
	return f->slots + (size_t)i * FEED_SLOT_BYTES;
}

/* Queue a packet whose payload stands in the slot. */
static void queue(struct feed *f, struct packet *p, uint8_t *slot)
{
	p->version = PACKET_VERSION;
	p->hunits = 1;
	p->object_bytes = p->payload_bytes;
	p->head = slot;
	p->payload = slot + PACKET_HEADER_BYTES;
	memset(slot + PACKET_HEADER_BYTES + p->payload_bytes, 0, (size_t)(units_round_up(p->payload_bytes, PACKET_UNIT_BYTES) - p->payload_bytes));
	packet_pack(p, slot);
	f->queue[f->n_queued++] = *p;
	f->n_packets++;
}

static void queue_track(struct feed *f, struct feed_track *t)
{
	uint8_t *slot = slot_of(f, f->n_queued);
	struct packet p = { .type = PACKET_TRACK, .track = t->id, .gen = t->source.track.gen, .utc_ns = UNITS_UNKNOWN_NS };

	p.payload_bytes = (uint32_t)track_packed_bytes(&t->source.track);
	track_pack(&t->source.track, slot + PACKET_HEADER_BYTES);
	queue(f, &p, slot);
}

static void queue_gap(struct feed *f, struct feed_track *t, int64_t pos, uint64_t n_frames, uint16_t reason, uint8_t *slot)
{
	struct packet_gap gap = { .reason = reason, .utc_ns = UNITS_UNKNOWN_NS };
	struct packet p = {
		.type = PACKET_GAP, .track = t->id, .gen = t->source.track.gen, .pos = pos, .utc_ns = UNITS_UNKNOWN_NS,
		.dur = n_frames < UINT32_MAX ? (uint32_t)n_frames : UINT32_MAX, .payload_bytes = PACKET_GAP_BYTES, .seq = t->seq,
	};

	packet_gap_pack(&gap, slot + PACKET_HEADER_BYTES);
	queue(f, &p, slot);
}

static void queue_end(struct feed *f, struct feed_track *t)
{
	uint8_t *slot = slot_of(f, f->n_queued);
	struct packet_end end = {
		.reason = t->source.cut ? PACKET_END_TRUNCATED : t->source.stop && *t->source.stop ? PACKET_END_INTERRUPTED : PACKET_END_NORMAL,
		.n_packets = t->seq, .end_pos = t->next_pos,
	};
	struct packet p = {
		.type = PACKET_END, .track = t->id, .gen = t->source.track.gen, .pos = t->next_pos, .utc_ns = UNITS_UNKNOWN_NS,
		.payload_bytes = PACKET_END_BYTES, .seq = t->seq,
	};

	packet_end_pack(&end, slot + PACKET_HEADER_BYTES);
	queue(f, &p, slot);
	t->end_said = true;
}

static enum err take_turn(struct feed *f, struct feed_track *t)
{
	uint8_t *slot = slot_of(f, f->n_queued), *spare = slot_of(f, f->n_queued + 1);
	struct source_block b;
	uint64_t hole;
	enum err e = feed_read(f, t, slot + PACKET_HEADER_BYTES, &b, &hole);

	if (e == ERR_END) {
		queue_end(f, t);
		return ERR_OK;
	}
	if (e)
		return e;
	if (b.track_changed) {
		t->source.track.gen++;
		queue_track(f, t);
		return ERR_OK;
	}
	if (hole)
		queue_gap(f, t, b.pos - (int64_t)hole, hole, PACKET_GAP_UNKNOWN, spare);
	if (b.gap_frames)
		queue_gap(f, t, b.pos, b.gap_frames, b.gap_reason, slot);
	if (b.n_frames) {
		struct packet p = packet_data(t->id, b.pos, (uint32_t)b.n_frames, (uint32_t)(b.n_frames * t->source.track.frame_bytes));
		p.gen = t->source.track.gen;
		p.flags |= b.flags;
		p.seq = t->seq++;
		queue(f, &p, slot);
	}
	return ERR_OK;
}

enum err feed_fill(struct feed *f)
{
	enum err e = ERR_OK;

	if (f->failed)
		return f->failed;
	if (!f->slots && posix_memalign((void **)&f->slots, 64, (size_t)FEED_N_SLOTS * FEED_SLOT_BYTES)) {
		f->slots = NULL;
		return f->failed = err_say(&f->why, ERR_NOMEM, "sources", "%s", err_text(ERR_NOMEM));
	}
	f->n_queued = f->next_queued = 0;
	while (!e && f->n_queued + PACKETS_A_TURN <= FEED_N_SLOTS) {
		/* Every track is announced before any audio. */
		struct feed_track *t = NULL;
		for (unsigned i = 0; i < f->n_tracks && !t; i++)
			t = f->tracks[i].announced ? NULL : &f->tracks[i];
		if (t) {
			queue_track(f, t);
			t->announced = true;
			continue;
		}
		t = feed_turn(f);
		if (!t || (f->n_queued && source_would_block(&t->source, t->block_frames)))
			break;
		e = take_turn(f, t);
	}
	/* What was read before the failure is still good; the failure is latched. */
	return f->n_queued ? ERR_OK : e;
}

enum err feed_next(struct feed *f, struct packet *p)
{
	if (f->next_queued < f->n_queued) {
		*p = f->queue[f->next_queued++];
		return ERR_OK;
	}
	if (f->failed)
		return f->failed;
	for (unsigned i = 0; i < f->n_tracks; i++) {
		if (!f->tracks[i].end_said)
			return ERR_AGAIN;
	}
	return ERR_END;
}

/* ---- names and losses ---- */

const char *feed_name_of(const char *spec, char *out, size_t out_bytes)
{
	const char *from = spec;
	size_t at = 0, n;

	if (!strncmp(spec, "gen:", 4)) {
		from = spec + 4;
		n = strcspn(from, ":");
	} else {
		if (!strncmp(spec, "raw:", 4))
			from = spec + 4;
		if (!strcmp(from, "-"))
			from = "stdin";
		const char *slash = strrchr(from, '/');
		if (slash && slash[1])
			from = slash + 1;
		const char *dot = strrchr(from, '.');
		n = dot && dot > from ? (size_t)(dot - from) : strlen(from);
	}
	for (size_t i = 0; i < n;) {
		unsigned len = utf8_length((const uint8_t *)from + i, n - i);
		const char *piece = len ? from + i : "\xEF\xBF\xBD"; /* U+FFFD for a byte that is no character */
		size_t piece_bytes = len ? len : 3;

		if (at + piece_bytes >= out_bytes)
			break;
		memcpy(out + at, piece, piece_bytes);
		at += piece_bytes;
		i += len ? len : 1;
	}
	out[at] = '\0';
	return out;
}

bool feed_is_cut(const struct feed *f)
{
	for (unsigned i = 0; i < f->n_tracks; i++) {
		if (f->tracks[i].source.cut)
			return true;
	}
	return false;
}

void feed_describe_loss(const struct feed *f, char *out, size_t out_bytes)
{
	out[0] = '\0';
	for (unsigned i = 0; i < f->n_tracks && !out[0]; i++) {
		const struct source *s = &f->tracks[i].source;
		if (s->cut)
			snprintf(out, out_bytes, "%s", s->warning[0] ? s->warning : "cut short or damaged");
	}
}
