/*
 * What a limiter needs of each frame: its level, and the gain a level calls for.  Look-ahead and release are the
 * business of who holds the delay.
 *
 * The curve leaves levels up to the threshold alone and bends those above towards the ceiling, which none reaches:
 *   out = threshold + d * u / (1 + u),  u = (level - threshold) / d,  d = ceiling - threshold.
 * Its slope is 1 at the threshold, so there is no corner to hear.  With the threshold at the ceiling it is a hard
 * limit.  Every version gives the same bits.
 */
#ifndef DSP_LIMITER_H
#define DSP_LIMITER_H

#include <stddef.h>

/* gain[i] = out / level at level[i], 1 below the threshold, 0 for NaN.  0 < threshold <= ceiling.  gain may be level. */
typedef void limiter_curve_fn(float *gain, const float *level, size_t n_frames, float threshold, float ceiling);

/* level[f] = the largest magnitude of frame f over its channels; NaN is not seen. */
typedef void limiter_level_fn(float *level, const float *x, unsigned channels, size_t n_frames);

limiter_curve_fn limiter_c_curve, limiter_avx2_curve;
limiter_level_fn limiter_c_level, limiter_avx2_level;

#endif
