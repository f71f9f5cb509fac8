#include "meter/continuity.h"

bool continuity_is_loss(unsigned reason)
{
	return reason != PACKET_GAP_DTX && reason != PACKET_GAP_NOT_STARTED && reason != PACKET_GAP_PAUSED;
}

static void start(struct continuity *c, int64_t pos)
{
	if (!c->started) {
		c->started = true;
		c->first_pos = c->next_pos = pos;
	}
}

uint64_t continuity_data(struct continuity *c, int64_t pos, uint32_t n_frames, unsigned flags)
{
	start(c, pos);
	uint64_t missing = 0;
	if (flags & PACKET_DISCONT && pos != c->next_pos) {
		c->n_rebased++;
	} else if (pos > c->next_pos) {
		missing = (uint64_t)pos - (uint64_t)c->next_pos;
		c->gaps++;
		c->lost_frames += missing;
	}
	c->next_pos = pos + n_frames;
	c->frames += n_frames;
	if (flags & PACKET_CONCEALED)
		c->concealed_frames += n_frames;
	return missing;
}

uint64_t continuity_gap(struct continuity *c, int64_t pos, uint32_t n_frames, unsigned reason)
{
	start(c, pos);
	int64_t end = pos + n_frames;
	if (end <= c->next_pos)
		return 0;
	uint64_t missing = (uint64_t)end - (uint64_t)c->next_pos;
	c->next_pos = end;
	if (continuity_is_loss(reason)) {
		c->gaps++;
		c->lost_frames += missing;
	} else {
		c->quiet_frames += missing;
	}
	return missing;
}
