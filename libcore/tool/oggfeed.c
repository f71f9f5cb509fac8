#include "tool/oggfeed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A page of Opus, spread over the 64-byte grid, or one fragment of a packet that is larger than a payload may be. */
#define BUFFER_BYTES (256u << 10)
#define QUEUE_MARGIN 8u /* TRACK, GAP and the fragments that one round of the buffer holds */

enum err oggfeed_open(struct oggfeed *f, struct source_bytes *in, const char *name, struct err_why *why)
{
	memset(f, 0, sizeof(*f));
	enum err e = oggread_open(&f->ogg, in, in->is_regular, why);
	if (e != ERR_OK) {
		if (why && e != ERR_AGAIN && !why->thing[0])
			snprintf(why->thing, sizeof(why->thing), "%s", name);
		return e;
	}
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->buffer_bytes = BUFFER_BYTES;
	f->buffer = aligned_alloc(PACKET_UNIT_BYTES, f->buffer_bytes);
	if (!f->buffer) {
		oggfeed_release(f);
		return err_say(why, ERR_NOMEM, name, "%s", err_text(ERR_NOMEM));
	}
	return ERR_OK;
}

void oggfeed_release(struct oggfeed *f)
{
	oggread_release(&f->ogg);
	free(f->buffer);
	f->buffer = NULL;
	f->n_queued = f->next_queued = 0;
	f->have_held = false;
	f->failed = ERR_END;
}

enum err oggfeed_set_name(struct oggfeed *f, const char *track_name)
{
	snprintf(f->track_name, sizeof(f->track_name), "%s", track_name);
	return track_set_name(&f->ogg.track, f->track_name);
}

static struct packet *queue_add(struct oggfeed *f, struct packet p)
{
	f->queue[f->n_queued] = p;
	return &f->queue[f->n_queued++];
}

/* Room for a packet in the buffer, its header in front; NULL when the buffer is full. */
static uint8_t *buffer_take(struct oggfeed *f, size_t payload_bytes)
{
	size_t n_bytes = PACKET_HEADER_BYTES + (size_t)units_round_up(payload_bytes, PACKET_UNIT_BYTES);
	if (n_bytes > f->buffer_bytes - f->used_bytes)
		return NULL;
	uint8_t *head = f->buffer + f->used_bytes;
	f->used_bytes += n_bytes;
	return head;
}

static enum err queue_track(struct oggfeed *f)
{
	f->ogg.track.id = OGGFEED_TRACK;
	if (f->track_name[0]) {
		enum err e = track_set_name(&f->ogg.track, f->track_name);
		if (e == ERR_NOMEM)
			return e;
	}
	queue_add(f, (struct packet){ .version = PACKET_VERSION, .type = PACKET_TRACK, .hunits = 1, .track = OGGFEED_TRACK,
		.utc_ns = UNITS_UNKNOWN_NS });
	f->announced = true;
	return ERR_OK;
}

static bool queue_gap(struct oggfeed *f, const struct oggread_packet *p)
{
	uint8_t *head = buffer_take(f, PACKET_GAP_BYTES);
	if (!head)
		return false;
	struct packet_gap gap = { .reason = p->gap_reason, .utc_ns = UNITS_UNKNOWN_NS };
	memset(head + PACKET_HEADER_BYTES, 0, PACKET_UNIT_BYTES);
	packet_gap_pack(&gap, head + PACKET_HEADER_BYTES);
	queue_add(f, (struct packet){ .version = PACKET_VERSION, .type = PACKET_GAP, .hunits = 1, .track = OGGFEED_TRACK,
		.pos = p->pos - (int64_t)p->gap_frames, .dur = (uint32_t)p->gap_frames, .payload_bytes = PACKET_GAP_BYTES,
		.object_bytes = PACKET_GAP_BYTES, .utc_ns = UNITS_UNKNOWN_NS, .head = head, .payload = head + PACKET_HEADER_BYTES });
	return true;
}

/* The next piece of the held packet: all of it, but for packets larger than a payload may be. */
static bool queue_data(struct oggfeed *f)
{
	const struct oggread_packet *p = &f->held;
	size_t left = p->n_bytes - f->held_at_bytes;
	size_t n_bytes = left < PACKET_MAX_PAYLOAD_BYTES ? left : PACKET_MAX_PAYLOAD_BYTES;
	uint8_t *head = buffer_take(f, n_bytes);
	if (!head)
		return false;

	memcpy(head + PACKET_HEADER_BYTES, p->data + f->held_at_bytes, n_bytes);
	struct packet *q = queue_add(f, packet_data(OGGFEED_TRACK, p->pos, p->dur, (uint32_t)n_bytes));
	q->flags = p->flags;
	q->seq = f->seq;
	q->object_offset_bytes = (uint32_t)f->held_at_bytes;
	q->object_bytes = (uint32_t)p->n_bytes;
	q->head = head;
	q->payload = head + PACKET_HEADER_BYTES;
	f->held_at_bytes += n_bytes;
	if (f->held_at_bytes == p->n_bytes) {
		f->have_held = false;
		f->seq++;
		f->n_packets++;
		/* Frames of the pre-skip are nobody's. */
		int64_t first = f->ogg.track.first_pos, end = p->pos + p->dur;
		f->n_frames += end <= first ? 0 : p->pos < first ? (uint64_t)(end - first) : p->dur;
	}
	return true;
}

/* What belongs to the held packet, as far as it fits.  Returns: ERR_OK when all of it is queued, ERR_AGAIN, ERR_NOMEM. */
static enum err queue_held(struct oggfeed *f)
{
	struct oggread_packet *p = &f->held;

	if (p->new_link || !f->announced) {
		enum err e = queue_track(f);
		if (e != ERR_OK)
			return e;
		p->new_link = false;
	}
	if (p->gap_frames) {
		if (!queue_gap(f, p))
			return ERR_AGAIN;
		p->gap_frames = 0;
	}
	while (f->have_held)
		if (!queue_data(f))
			return ERR_AGAIN;
	return ERR_OK;
}

enum err oggfeed_fill(struct oggfeed *f)
{
	enum err e = f->failed;

	f->n_queued = f->next_queued = 0;
	f->used_bytes = 0;
	while (e == ERR_OK && f->n_queued + QUEUE_MARGIN < ARRAY_LEN(f->queue)) {
		if (!f->have_held) {
			/* One page at a time: what it holds goes on at once. */
			if (f->n_queued && !oggread_is_ready(&f->ogg))
				break;
			e = oggread_next(&f->ogg, &f->held);
			f->have_held = e == ERR_OK;
			f->held_at_bytes = 0;
			continue;
		}
		e = queue_held(f);
	}
	if (e == ERR_AGAIN)
		return ERR_OK;
	if (e == ERR_END && !f->announced) {
		/* Headers only: a track without a packet. */
		f->failed = e;
		return queue_track(f);
	}
	if (e != ERR_OK && e != ERR_END && f->failed == ERR_OK) {
		f->why = f->ogg.why;
		if (f->why.err == ERR_OK)
			err_say(&f->why, e, f->name, "%s", err_text(e));
		if (!f->why.thing[0])
			snprintf(f->why.thing, sizeof(f->why.thing), "%s", f->name);
	}
	f->failed = e;
	return e == ERR_END ? ERR_OK : e;
}

enum err oggfeed_next(struct oggfeed *f, struct packet *p)
{
	if (f->next_queued < f->n_queued) {
		*p = f->queue[f->next_queued++];
		return ERR_OK;
	}
	return f->failed != ERR_OK ? f->failed : ERR_AGAIN;
}
