#include "stage/holdback.h"

#include <stdlib.h>
#include <string.h>

enum err holdback_init(struct holdback *h, unsigned n_packets, size_t n_bytes, unsigned frame_bytes)
{
	*h = (struct holdback){
		.ring = calloc(n_packets, sizeof(*h->ring)), .bytes = malloc(n_bytes), .room = n_packets, .room_bytes = n_bytes,
		.frame_bytes = frame_bytes,
	};
	if (h->ring && h->bytes)
		return ERR_OK;
	holdback_release(h);
	return ERR_NOMEM;
}

void holdback_release(struct holdback *h)
{
	free(h->ring);
	free(h->bytes);
	*h = (struct holdback){0};
}

static struct packet *entry(const struct holdback *h, unsigned i)
{
	return &h->ring[(h->first + i) % h->room];
}

const struct packet *holdback_at(const struct holdback *h, unsigned i)
{
	return entry(h, i);
}

/* Where the oldest payload lies; nothing of an empty one is in the way. */
static bool find_oldest(const struct holdback *h, size_t *at)
{
	for (unsigned i = 0; i < h->n; i++)
		if (entry(h, i)->payload_bytes) {
			*at = (size_t)(entry(h, i)->payload - h->bytes);
			return true;
		}
	return false;
}

/* A place for n bytes behind the newest ones, or at the beginning; NULL: there is none. */
static uint8_t *find_room(struct holdback *h, size_t n_bytes)
{
	size_t oldest;

	if (!find_oldest(h, &oldest)) {
		h->put_at = 0;
		return n_bytes <= h->room_bytes ? h->bytes : NULL;
	}
	/* The newest ends before the oldest: what is free lies between, and a byte stays free to tell full from empty. */
	if (h->put_at <= oldest)
		return n_bytes < oldest - h->put_at ? h->bytes + h->put_at : NULL;
	if (n_bytes <= h->room_bytes - h->put_at)
		return h->bytes + h->put_at;
	return n_bytes < oldest ? h->bytes : NULL;
}

/* May this be put behind the newest one, as if they had been one? */
static struct packet *joins(const struct holdback *h, const struct packet *p)
{
	struct packet *last = h->n ? entry(h, h->n - 1) : NULL;

	if (!last || !h->frame_bytes || p->type != PACKET_DATA || last->type != PACKET_DATA || p->flags & PACKET_DISCONT)
		return NULL;
	bool next = last->pos + last->dur == p->pos && last->payload + last->payload_bytes == h->bytes + h->put_at;
	return next && (uint64_t)last->payload_bytes + p->payload_bytes <= HOLDBACK_MAX_ENTRY_BYTES ? last : NULL;
}

bool holdback_add(struct holdback *h, const struct packet *p)
{
	struct packet *last = joins(h, p);
	uint8_t *to = find_room(h, p->payload_bytes);

	if (!to)
		return false;
	if (last && to == last->payload + last->payload_bytes) {
		memcpy(to, p->payload, p->payload_bytes);
		last->payload_bytes += p->payload_bytes;
		last->dur += p->dur;
	} else {
		if (h->n == h->room)
			return false;
		struct packet *e = entry(h, h->n++);
		*e = *p;
		e->head = NULL;
		e->payload = to;
		if (p->payload_bytes)
			memcpy(to, p->payload, p->payload_bytes);
	}
	h->put_at = (size_t)(to - h->bytes) + p->payload_bytes;
	return true;
}

void holdback_drop(struct holdback *h)
{
	h->first = (h->first + 1) % h->room;
	h->n--;
}

void holdback_cut_front(struct packet *p, unsigned frame_bytes, uint32_t n_frames)
{
	p->pos += n_frames;
	p->dur -= n_frames;
	p->payload += (size_t)n_frames * frame_bytes;
	p->payload_bytes -= n_frames * frame_bytes;
	p->flags &= (uint16_t)~PACKET_DISCONT;
	p->utc_ns = UNITS_UNKNOWN_NS;
}

void holdback_trim(struct holdback *h, uint32_t n_frames)
{
	struct packet *e = entry(h, 0);
	struct packet_gap gap;

	holdback_cut_front(e, e->type == PACKET_DATA ? h->frame_bytes : 0, n_frames);
	if (e->type == PACKET_GAP && packet_gap_unpack(&gap, e->payload, e->payload_bytes) == ERR_OK) {
		gap.utc_ns = UNITS_UNKNOWN_NS;
		packet_gap_pack(&gap, h->bytes + (e->payload - h->bytes));
	}
}

void holdback_clear(struct holdback *h)
{
	h->n = 0;
}
