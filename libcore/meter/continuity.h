/*
 * Where a track's frames lie on its timeline: where they begin and end, and what is missing between.
 */
#ifndef METER_CONTINUITY_H
#define METER_CONTINUITY_H

#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct continuity {
	bool started;
	int64_t first_pos;        /* of the first frame or gap, in the track's rate */
	int64_t next_pos;         /* end of the last one */
	uint64_t frames;          /* that came */
	uint64_t concealed_frames; /* of them, made up by a decoder */
	uint64_t gaps;            /* holes that are losses: not DTX, pauses, or a late start */
	uint64_t lost_frames;     /* frames in them */
	uint64_t quiet_frames;    /* frames in the other holes */
	uint64_t n_rebased;       /* times the position was set anew */
};

/*
 * n_frames came at pos, with the flags of their packet.
 * Returns: frames missing before them that no gap has announced; they are counted as a gap.
 */
uint64_t continuity_data(struct continuity *c, int64_t pos, uint32_t n_frames, unsigned flags);

/* A gap of n_frames at pos.  Returns: the frames of it that lie behind what was known. */
uint64_t continuity_gap(struct continuity *c, int64_t pos, uint32_t n_frames, unsigned reason);

/* True for the reasons that are losses. */
bool continuity_is_loss(unsigned reason);

/* Frames from the first position to the last, gaps included. */
static inline uint64_t continuity_span_frames(const struct continuity *c)
{
	return c->frames + c->lost_frames + c->quiet_frames;
}

#endif
