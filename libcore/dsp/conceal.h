/*
 * Holes in PCM, filled so that they are heard as little as possible without looking ahead: the last period of what was
 * played goes on, is faded out in 60 ms, and is faded over into what comes next in 5 ms.
 *
 * Frames are interleaved f32.  Everything that is played goes through, so that the last moments are known.
 */
#ifndef DSP_CONCEAL_H
#define DSP_CONCEAL_H

#include "base/err.h"
#include "base/role.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONCEAL_FADE_S 0.060
#define CONCEAL_CROSS_S 0.005
#define CONCEAL_MIN_PERIOD_S 0.0025 /* of what is looked for: 400 Hz … */
#define CONCEAL_MAX_PERIOD_S 0.015  /* … down to 67 Hz; a multiple of a shorter period does as well */

/* One track's.  Zero is safe to release. */
struct conceal {
	unsigned channels;
	uint32_t fade_frames, cross_frames, min_period, max_period, history_frames;
	float *history;      /* history_frames, the newest last */
	float *mono;         /* scratch of the search */
	float *step;         /* a channel each: what was left over at the seam */
	uint32_t n_known;    /* frames of history that are real */
	uint32_t period;     /* of the hole that is being filled; 0 none */
	uint64_t n_made;     /* frames of it so far */
	uint32_t n_crossed;  /* frames of the fade over that are done; cross_frames: none is going on */
};

/* Role: control, allocates.  Returns: ERR_OK, ERR_NOMEM, ERR_ARG. */
enum err conceal_init(struct conceal *c, uint32_t rate_hz, unsigned channels) WEIR_MUSTUSE;
void conceal_release(struct conceal *c);

/* Real frames are next: after a hole their beginning is faded over, in place; else they are only remembered. */
WEIR_DEADLINE void conceal_play(struct conceal *c, float *frames, size_t n_frames);
/* Make n_frames for a hole.  Goes on where the call before ended. */
WEIR_DEADLINE void conceal_make(struct conceal *c, float *frames, size_t n_frames);
/* What comes next does not follow what was played; fade: it is to be faded over all the same. */
WEIR_DEADLINE void conceal_reset(struct conceal *c);

#endif
