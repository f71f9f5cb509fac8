#include "wire/timeline.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OBJECT_BYTES (16u << 20)  /* of audio, put together here */
#define MAX_BACKWARDS_S 1

static enum err fail(struct reader *r, enum err e)
{
	r->failed = e;
	return e;
}

static struct reader_track *track_place(struct reader *r, uint16_t id)
{
	struct reader_track *rt = reader_track(r, id);
	if (rt)
		return rt;
	if (r->n_tracks == r->tracks_room) {
		unsigned room = r->tracks_room ? 2 * r->tracks_room : 8;
		struct reader_track **more = realloc(r->tracks, room * sizeof(struct reader_track *));
		if (!more)
			return NULL;
		r->tracks = more;
		r->tracks_room = room;
	}
	rt = calloc(1, sizeof(*rt));
	if (!rt)
		return NULL;
	rt->track.id = id;
	r->tracks[r->n_tracks++] = rt;
	r->index[id] = (uint16_t)r->n_tracks;
	return rt;
}

/* The time where the streams so far end, as units of the track that reaches furthest. */
static struct reader_track *furthest_track(struct reader *r)
{
	struct reader_track *far = NULL;

	for (unsigned i = 0; i < r->n_tracks; i++) {
		struct reader_track *rt = r->tracks[i];
		if (!rt->started || rt->track.kind != TRACK_AUDIO)
			continue;
		if (!far || units_compare(rt->expect_pos, rt->track.rate_num, rt->track.rate_den, far->expect_pos,
				    far->track.rate_num, far->track.rate_den) > 0)
			far = rt;
	}
	return far;
}

static enum err accept_stream(struct reader *r, const struct packet *p)
{
	struct packet_stream s;

	if (packet_stream_unpack(&s, p->payload, p->payload_bytes) || get_le32(s.uuid) != p->sid)
		return ERR_FORMAT;
	if (s.max_payload_bytes > r->max_payload_bytes)
		return fail(r, err_say(&r->why, ERR_LIMIT, r->name, "packets of up to %u bytes announced (0 to %u here)",
			s.max_payload_bytes, r->max_payload_bytes));
	bool again = r->have_sid && p->sid == r->sid && p->flags & PACKET_REPEAT && !r->ended;
	r->stream = s;
	if (again)
		return ERR_OK;
	if (r->have_sid) {
		/* Concatenated: everything has to be announced again, and goes on where the last one stopped. */
		if (!r->ended)
			r->truncated = true;
		r->join_pending = true;
		r->have_shift = false;
		for (unsigned i = 0; i < r->n_tracks; i++) {
			struct reader_track *rt = r->tracks[i];
			rt->announced = false;
			rt->object_have_bytes = 0;
			rt->have_seq = false;
		}
	} else if (p->flags & PACKET_REPEAT) {
		r->headless = true;
	}
	r->sid = p->sid;
	r->have_sid = true;
	r->ended = false;
	r->n_streams++;
	return ERR_OK;
}

/* Positions may not pass 2^61 in either direction, so that no sum of them overflows. */
static bool position_is_sane(int64_t pos)
{
	return pos > -(INT64_C(1) << 61) && pos < INT64_C(1) << 61;
}

/*
 * How far the positions of the current stream are moved for a track: so that the joined streams follow one another.
 * Returns: false if there is no such place.
 */
static bool join_base(struct reader *r, const struct track *t, int64_t *base)
{
	*base = 0;
	if (!r->join_pending)
		return true;
	if (!r->have_shift) {
		struct reader_track *far = furthest_track(r);
		int64_t end = far ? units_scale_up(far->expect_pos, (int64_t)t->rate_num * far->track.rate_den,
					    (int64_t)far->track.rate_num * t->rate_den)
				  : t->first_pos;
		if (!position_is_sane(end))
			return false;
		r->shift = end - t->first_pos;
		r->shift_num = t->rate_num;
		r->shift_den = t->rate_den;
		r->have_shift = true;
	}
	*base = units_scale(r->shift, (int64_t)t->rate_num * r->shift_den, (int64_t)r->shift_num * t->rate_den);
	return position_is_sane(*base);
}

/* From a position on the wire to one on the joined timeline.  Returns: false if it cannot be true. */
static bool place_position(const struct reader_track *rt, int64_t *pos)
{
	if (!position_is_sane(*pos))
		return false;
	*pos += rt->base;
	return position_is_sane(*pos);
}

static enum err accept_track(struct reader *r, const struct packet *p)
{
	struct track t = {0};
	struct err_why why;

	if (p->track == 0 || p->track > PACKET_MAX_TRACK)
		return ERR_FORMAT;
	struct reader_track *rt = reader_track(r, p->track);
	if (rt && rt->announced && rt->wire_gen == p->gen && p->flags & PACKET_REPEAT && !r->options.raw)
		return ERR_AGAIN;
	enum err e = track_unpack(&t, p->payload, p->payload_bytes, &why);
	if (e == ERR_NOMEM || e == ERR_VERSION || e == ERR_LIMIT) {
		r->why = why;
		snprintf(r->why.thing, sizeof(r->why.thing), "%.200s: track %u", r->name, p->track);
		return fail(r, e);
	}
	if (e)
		return ERR_FORMAT;
	if (!position_is_sane(t.first_pos) || !position_is_sane(t.next_pos)) {
		track_release(&t);
		return ERR_FORMAT;
	}
	rt = track_place(r, p->track);
	uint8_t *object = NULL;
	bool cut_up = t.kind == TRACK_AUDIO && !r->options.keep_fragments && t.largest_object_bytes > r->max_payload_bytes;
	if (rt && cut_up && t.largest_object_bytes <= MAX_OBJECT_BYTES && rt->object_room_bytes < t.largest_object_bytes) {
		object = malloc(t.largest_object_bytes);
		if (!object)
			rt = NULL;
	}
	if (!rt) {
		track_release(&t);
		return fail(r, err_say(&r->why, ERR_NOMEM, r->name, "%s", err_text(ERR_NOMEM)));
	}
	if (object) {
		free(rt->object);
		rt->object = object;
		rt->object_room_bytes = t.largest_object_bytes;
	}
	rt->object_have_bytes = 0;

	if (!rt->announced && !join_base(r, &t, &rt->base)) {
		track_release(&t);
		return ERR_FORMAT;
	}
	/* Of another kind it is another track: its units stood elsewhere. */
	bool kind_changed = rt->started && rt->track.kind != t.kind;
	bool rate_changed = rt->started && (rt->track.rate_num != t.rate_num || rt->track.rate_den != t.rate_den);
	t.id = p->track;
	t.first_pos += rt->base;
	t.next_pos += rt->base;
	if (!rt->started || rate_changed || kind_changed) {
		/* A track met for the first time in the middle of things begins where it stands. */
		rt->expect_pos = p->flags & PACKET_REPEAT ? t.next_pos : t.first_pos;
		rt->started = true;
	}
	if (p->flags & PACKET_REPEAT && !rt->announced) {
		rt->expect_seq = t.next_seq;
		rt->last_dropped = t.dropped;
		rt->have_seq = true;
	}
	track_release(&rt->track);
	rt->track = t;
	rt->wire_gen = p->gen;
	rt->announced = true;
	if (!(p->flags & PACKET_REPEAT))
		rt->has_data = false;
	return ERR_OK;
}

static bool reason_is_loss(unsigned reason)
{
	return reason != PACKET_GAP_DTX && reason != PACKET_GAP_NOT_STARTED && reason != PACKET_GAP_PAUSED;
}

static void count_gap(struct reader_track *rt, unsigned reason, uint64_t n_frames)
{
	if (reason_is_loss(reason)) {
		rt->gaps++;
		rt->lost_frames += n_frames;
	} else {
		rt->silent_frames += n_frames;
	}
}

/* A GAP that the stream did not have, over [expect, pos). */
static void make_gap(struct reader *r, struct reader_track *rt, int64_t pos, unsigned reason, struct packet *gap)
{
	struct packet_gap g = { .reason = (uint16_t)reason, .skipped_bytes = r->damaged_before_bytes, .utc_ns = UNITS_UNKNOWN_NS };

	*gap = (struct packet){
		.version = PACKET_VERSION, .type = PACKET_GAP, .hunits = 1, .track = rt->track.id, .gen = rt->wire_gen,
		.pos = rt->expect_pos, .dur = (uint32_t)(pos - rt->expect_pos), .payload_bytes = PACKET_GAP_BYTES,
		.object_bytes = PACKET_GAP_BYTES, .utc_ns = UNITS_UNKNOWN_NS, .sid = r->sid,
		.head = r->gap_bytes, .payload = r->gap_bytes + PACKET_HEADER_BYTES,
	};
	memset(r->gap_bytes, 0, sizeof(r->gap_bytes));
	packet_gap_pack(&g, r->gap_bytes + PACKET_HEADER_BYTES);
	packet_pack(gap, r->gap_bytes);
	count_gap(rt, reason, gap->dur);
	if (reason_is_loss(reason))
		r->unexplained_gaps++;
}

/*
 * Is there an unannounced hole before pos?  Then *gap is made and expect_pos moved.
 * Returns: ERR_OK no hole; ERR_AGAIN a hole, *gap is it; ERR_FORMAT a jump that cannot be true.
 */
static enum err look_for_hole(struct reader *r, struct reader_track *rt, int64_t pos, unsigned reason, struct packet *gap)
{
	int64_t hole = pos - rt->expect_pos;

	if (hole <= 0)
		return ERR_OK;
	if (hole > UINT32_MAX)
		return fail(r, err_say(&r->why, ERR_FORMAT, r->name, "track %u jumps %" PRId64 " frames ahead (0 to %u)",
			rt->track.id, hole, UINT32_MAX));
	make_gap(r, rt, pos, reason, gap);
	rt->expect_pos = pos;
	return r->options.raw ? ERR_OK : ERR_AGAIN;
}

/* seq and dropped: what they say was lost, and making them go on across concatenated streams. */
static uint32_t follow_counters(struct reader_track *rt, struct packet *p)
{
	uint32_t dropped = 0;

	if (!rt->have_seq) {
		/* A new stream (or the first): its numbers go on from the last one's. */
		rt->seq_base = rt->packets ? rt->expect_seq + rt->seq_base - p->seq : 0;
		rt->dropped_base = rt->packets ? rt->last_dropped + rt->dropped_base - p->dropped : 0;
		rt->last_dropped = p->dropped;
		rt->have_seq = true;
	} else {
		uint32_t skipped = p->seq - rt->expect_seq;
		if (skipped && skipped < 0x80000000u)
			rt->lost_objects += skipped;
		dropped = p->dropped - rt->last_dropped;
		if (dropped < 0x80000000u)
			rt->dropped_frames += dropped;
		else
			dropped = 0;
		rt->last_dropped = p->dropped;
	}
	rt->expect_seq = p->seq + 1;
	p->seq += rt->seq_base;
	p->dropped += rt->dropped_base;
	return dropped;
}

/* Frames before expect_pos came already: cut them off a PCM packet.  Returns: ERR_AGAIN when nothing is left of it. */
static enum err cut_overlap(struct reader *r, struct reader_track *rt, struct packet *p)
{
	int64_t overlap = rt->expect_pos - p->pos;

	if (overlap > (int64_t)track_rate_hz(&rt->track) * MAX_BACKWARDS_S)
		return fail(r, err_say(&r->why, ERR_FORMAT, r->name, "track %u goes %" PRId64 " frames back without saying so (0 to %u)",
			rt->track.id, overlap, track_rate_hz(&rt->track) * MAX_BACKWARDS_S));
	if (overlap >= p->dur) {
		rt->overlap_frames += p->dur;
		return ERR_AGAIN;
	}
	rt->overlap_frames += (uint64_t)overlap;
	if (p->payload_bytes) {
		uint32_t cut_bytes = (uint32_t)overlap * rt->track.frame_bytes;
		p->payload += cut_bytes;
		p->payload_bytes -= cut_bytes;
		p->object_bytes = p->payload_bytes;
		p->flags &= (uint16_t)~PACKET_PCRC;
	}
	p->pos += overlap;
	p->dur -= (uint32_t)overlap;
	return ERR_OK;
}

bool timeline_silence(struct reader *r, struct packet *p)
{
	struct packet *left = &r->silence;

	if (!left->dur)
		return false;
	uint32_t room = PACKET_MAX_PAYLOAD_BYTES / r->silence_frame_bytes;
	uint32_t n_frames = left->dur < room ? left->dur : room;
	*p = *left;
	p->dur = n_frames;
	p->payload = r->zeros;
	p->payload_bytes = p->object_bytes = n_frames * r->silence_frame_bytes;
	left->pos += n_frames;
	left->dur -= n_frames;
	return true;
}

/* A fragment of an audio object.  Returns: ERR_OK when *p is the whole object now, ERR_AGAIN, ERR_FORMAT. */
static enum err put_together(struct reader_track *rt, struct packet *p)
{
	if (p->object_offset_bytes == 0) {
		if (p->object_bytes > rt->object_room_bytes)
			return ERR_FORMAT;
		rt->object_head = *p;
		rt->object_have_bytes = 0;
	} else if (!rt->object_have_bytes || p->object_offset_bytes != rt->object_have_bytes ||
		p->object_bytes != rt->object_head.object_bytes || p->pos != rt->object_head.pos) {
		rt->object_have_bytes = 0;
		return ERR_FORMAT;
	}
	memcpy(rt->object + p->object_offset_bytes, p->payload, p->payload_bytes);
	rt->object_have_bytes += p->payload_bytes;
	if (rt->object_have_bytes < p->object_bytes)
		return ERR_AGAIN;

	*p = rt->object_head;
	p->flags &= (uint16_t)~PACKET_PCRC;
	p->payload = rt->object;
	p->payload_bytes = p->object_bytes;
	p->head = NULL;
	rt->object_have_bytes = 0;
	return ERR_OK;
}

/* Sizes of a DATA packet against what its track announced. */
static bool data_is_sound(const struct reader_track *rt, const struct packet *p)
{
	if ((uint64_t)p->object_offset_bytes + p->payload_bytes > p->object_bytes)
		return false;
	if (!track_is_pcm(&rt->track))
		return true;
	if (p->flags & PACKET_SILENT && p->object_bytes == 0)
		return true;
	uint64_t needed = (uint64_t)p->dur * rt->track.frame_bytes;
	return p->flags & PACKET_TRIM ? needed <= p->object_bytes : needed == p->object_bytes;
}

static void drop_damaged(struct reader *r, const struct packet *p)
{
	r->damaged_bytes += packet_wire_bytes(p);
	r->damaged_before_bytes += packet_wire_bytes(p);
}

/* Positions of audio: holes before it, overlap with what came.  Returns: as accept_data(). */
static enum err follow_position(struct reader *r, struct reader_track *rt, struct packet *p, uint32_t dropped, struct packet *gap)
{
	unsigned reason = r->damaged_before_bytes ? PACKET_GAP_DAMAGED : dropped ? PACKET_GAP_DROPPED : PACKET_GAP_UNKNOWN;
	bool pcm = track_is_pcm(&rt->track);
	enum err e;

	if (p->flags & PACKET_DISCONT && (pcm || p->pos > rt->expect_pos ||
		(track_is_opus(&rt->track) && !track_is_preroll(&rt->track, rt->expect_pos, p->pos, !rt->has_data))))
		rt->expect_pos = p->pos;
	rt->has_data = true;
	if (r->join_pending && rt->packets && !r->damaged_before_bytes && p->pos == rt->track.first_pos)
		reason = PACKET_GAP_PAUSED; /* this track was the shorter one in the stream before */
	if (pcm && p->pos < rt->expect_pos && (e = cut_overlap(r, rt, p)))
		return e;
	e = look_for_hole(r, rt, p->pos, reason, gap);
	int64_t end = p->pos + p->dur;
	if ((e == ERR_OK || e == ERR_AGAIN) && end > rt->expect_pos) {
		rt->frames += (uint64_t)(end - rt->expect_pos);
		rt->expect_pos = end;
	}
	return e == ERR_AGAIN ? ERR_END : e;
}

/*
 * Returns: ERR_OK hand *p out; ERR_END hand *gap out first, then *p; ERR_AGAIN nothing of it is to be handed out (yet);
 * else failed.
 */
static enum err accept_data(struct reader *r, struct packet *p, struct packet *gap)
{
	struct reader_track *rt = reader_track(r, p->track);
	enum err e;

	if (!rt || !rt->announced || rt->wire_gen != p->gen) {
		r->n_orphans++;
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	if (!place_position(rt, &p->pos) || !data_is_sound(rt, p)) {
		drop_damaged(r, p);
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	if (track_is_pcm(&rt->track) && p->flags & PACKET_TRIM && p->payload_bytes == p->object_bytes && !r->options.keep_fragments) {
		p->payload_bytes = p->object_bytes = p->dur * rt->track.frame_bytes;
		p->flags &= (uint16_t)~(PACKET_TRIM | PACKET_PCRC);
	}
	bool whole = p->object_offset_bytes == 0 && p->payload_bytes == p->object_bytes;
	if (!whole && !r->options.keep_fragments && !r->options.raw && rt->track.kind == TRACK_AUDIO) {
		e = put_together(rt, p);
		if (e == ERR_FORMAT)
			drop_damaged(r, p);
		if (e)
			return ERR_AGAIN;
	}
	if (p->object_offset_bytes > 0) { /* a later fragment, handed out as it is */
		p->seq += rt->seq_base;
		p->dropped += rt->dropped_base;
		return ERR_OK;
	}

	uint32_t dropped = follow_counters(rt, p);
	e = rt->track.kind == TRACK_AUDIO ? follow_position(r, rt, p, dropped, gap) : ERR_OK;
	if (rt->track.kind != TRACK_AUDIO) {
		rt->frames += p->dur;
		if (p->pos + p->dur > rt->expect_pos)
			rt->expect_pos = p->pos + p->dur;
	}
	if (e == ERR_OK || e == ERR_END) {
		rt->packets++;
		r->damaged_before_bytes = 0;
		if (r->options.expand_silence && track_is_pcm(&rt->track) && p->flags & PACKET_SILENT && !p->payload_bytes) {
			p->flags &= (uint16_t)~PACKET_SILENT;
			p->head = NULL;
			r->silence = *p;
			r->silence_frame_bytes = rt->track.frame_bytes;
			if (e == ERR_OK && !timeline_silence(r, p))
				return ERR_AGAIN;
			if (e == ERR_END)
				r->have_held = false;
		}
	}
	return e;
}

static enum err accept_gap(struct reader *r, struct packet *p, struct packet *made)
{
	struct reader_track *rt = reader_track(r, p->track);
	struct packet_gap g;

	if (!rt || !rt->announced || rt->wire_gen != p->gen) {
		r->n_orphans++;
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	if (packet_gap_unpack(&g, p->payload, p->payload_bytes) || !place_position(rt, &p->pos)) {
		drop_damaged(r, p);
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	int64_t end = p->pos + p->dur;
	if (end <= rt->expect_pos)
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	if (p->pos < rt->expect_pos) {
		p->dur = (uint32_t)(end - rt->expect_pos);
		p->pos = rt->expect_pos;
	}
	enum err e = look_for_hole(r, rt, p->pos, r->damaged_before_bytes ? PACKET_GAP_DAMAGED : PACKET_GAP_UNKNOWN, made);
	if (e && e != ERR_AGAIN)
		return e;
	count_gap(rt, g.reason, p->dur);
	rt->expect_pos = end;
	return e == ERR_AGAIN ? ERR_END : ERR_OK;
}

static enum err accept_end(struct reader *r, struct packet *p, struct packet *gap)
{
	struct packet_end end;

	if (packet_end_unpack(&end, p->payload, p->payload_bytes)) {
		drop_damaged(r, p);
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	if (p->track == 0) {
		r->ended = true;
		r->end_reason = end.reason;
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	struct reader_track *rt = reader_track(r, p->track);
	if (!rt || !rt->announced)
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	if (!place_position(rt, &p->pos))
		p->pos = rt->expect_pos;
	if (rt->track.kind != TRACK_AUDIO || !place_position(rt, &end.end_pos))
		return ERR_OK;
	/* Frames that should have come before it. */
	enum err e = look_for_hole(r, rt, end.end_pos, r->damaged_before_bytes ? PACKET_GAP_DAMAGED : PACKET_GAP_UNKNOWN, gap);
	return e == ERR_AGAIN ? ERR_END : e;
}

enum err timeline_accept(struct reader *r, struct packet *p, struct packet *gap)
{
	enum err e;

	if (!r->have_sid && p->type != PACKET_STREAM) {
		r->sid = p->sid;
		r->have_sid = true;
		r->headless = true;
		r->n_streams++;
	}
	switch (p->type) {
	case PACKET_STREAM:
		e = accept_stream(r, p);
		if (e == ERR_FORMAT)
			drop_damaged(r, p);
		return e && e != ERR_FORMAT ? e : r->options.raw ? ERR_OK : ERR_AGAIN;
	case PACKET_TRACK:
		e = accept_track(r, p);
		if (e == ERR_FORMAT)
			drop_damaged(r, p);
		return e == ERR_FORMAT ? (r->options.raw ? ERR_OK : ERR_AGAIN) : e;
	case PACKET_DATA:
		return accept_data(r, p, gap);
	case PACKET_GAP:
		return accept_gap(r, p, gap);
	case PACKET_END:
		return accept_end(r, p, gap);
	case PACKET_SKIP:
		return r->options.raw ? ERR_OK : ERR_AGAIN;
	}
	if (p->type & PACKET_CRITICAL)
		return fail(r, err_say(&r->why, ERR_VERSION, r->name, "packet of type 0x%02x must be understood and is not known here",
			p->type));
	return ERR_OK;
}
