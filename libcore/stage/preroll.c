#include "stage/preroll.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_PACKET_FRAMES 5760 /* 120 ms */
#define SHORTEST_PACKET_FRAMES 120
#define N_KEPT ((PREROLL_FRAMES + LONGEST_PACKET_FRAMES) / SHORTEST_PACKET_FRAMES + 2)
#define USUAL_BYTES 1536           /* of one stream */

struct preroll_packet {
	struct packet packet;
	uint8_t *bytes;
	size_t room_bytes;
};

enum err preroll_init(struct preroll *r, const struct track *t)
{
	size_t room_bytes = USUAL_BYTES * (size_t)(t->opus_streams ? t->opus_streams : 1);

	*r = (struct preroll){ .ring = calloc(N_KEPT, sizeof(*r->ring)) };
	for (unsigned i = 0; r->ring && i < N_KEPT; i++) {
		r->ring[i].bytes = malloc(room_bytes);
		r->ring[i].room_bytes = room_bytes;
		if (!r->ring[i].bytes) {
			preroll_release(r);
			break;
		}
	}
	return r->ring ? ERR_OK : ERR_NOMEM;
}

void preroll_release(struct preroll *r)
{
	for (unsigned i = 0; r->ring && i < N_KEPT; i++)
		free(r->ring[i].bytes);
	free(r->ring);
	*r = (struct preroll){0};
}

enum err preroll_add(struct preroll *r, const struct packet *p)
{
	if (!r->ring)
		return ERR_OK;
	struct preroll_packet *k = &r->ring[r->next];
	if (p->payload_bytes > k->room_bytes) {
		uint8_t *more = realloc(k->bytes, p->payload_bytes);
		if (!more)
			return ERR_NOMEM;
		k->bytes = more;
		k->room_bytes = p->payload_bytes;
	}
	if (p->payload_bytes)
		memcpy(k->bytes, p->payload, p->payload_bytes);
	k->packet = *p;
	k->packet.payload = k->bytes;
	k->packet.head = NULL;
	r->next = (r->next + 1) % N_KEPT;
	if (r->n < N_KEPT)
		r->n++;
	return ERR_OK;
}

void preroll_clear(struct preroll *r)
{
	r->n = 0;
}

/* The i-th of the kept ones, the oldest first. */
static const struct packet *kept(const struct preroll *r, unsigned i)
{
	return &r->ring[(r->next + N_KEPT - r->n + i) % N_KEPT].packet;
}

const struct packet *preroll_packet(const struct preroll *r, int64_t pos, unsigned i)
{
	unsigned first = 0;

	for (unsigned k = 0; k < r->n; k++) {
		bool far_enough = kept(r, k)->pos <= pos - PREROLL_FRAMES;
		bool behind_hole = k > 0 && kept(r, k)->pos != kept(r, k - 1)->pos + kept(r, k - 1)->dur;
		if (far_enough || behind_hole)
			first = k;
	}
	return first + i < r->n ? kept(r, first + i) : NULL;
}
