#include "leg/receiverids.h"

static bool is_taken(const struct receiver *r, uint16_t id)
{
	return r->taken_ids[id / 64] >> (id % 64) & 1;
}

uint16_t receiverids_next(const struct receiver *r, uint16_t wanted)
{
	if (r->next_id >= PACKET_MAX_TRACK)
		return 0;
	return wanted && wanted < PACKET_MAX_TRACK && !is_taken(r, wanted) ? wanted : r->next_id;
}

void receiverids_take(struct receiver *r, uint16_t id)
{
	r->taken_ids[id / 64] |= 1ull << (id % 64);
	while (r->next_id < PACKET_MAX_TRACK && is_taken(r, r->next_id))
		r->next_id++;
}
