#include "leg/receiverids.h"

#define JOIN_NS UNITS_NS_PER_S             /* a new track costs so much, in the long run */

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

void receiverids_give_back(struct receiver *r, uint16_t id)
{
	r->taken_ids[id / 64] &= ~(1ull << (id % 64));
	if (id && id < r->next_id)
		r->next_id = id;
}

bool receiverids_may(const struct receiver *r, int64_t *joined_ns, unsigned at_once, int64_t now_ns)
{
	int64_t most_ns = JOIN_NS * (int64_t)at_once;

	if (r->next_id >= PACKET_MAX_TRACK)
		return false;
	if (r->o.srtp)
		return true;
	if (*joined_ns < now_ns - most_ns)
		*joined_ns = now_ns - most_ns;
	if (*joined_ns + JOIN_NS > now_ns)
		return false;
	*joined_ns += JOIN_NS;
	return true;
}
