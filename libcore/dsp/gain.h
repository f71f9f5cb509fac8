/*
 * Gain, and adding with gain.  Each output is one product, or one product and one sum, each rounded once: every
 * version gives the same bits.
 *
 * A ramp goes in a straight line over the block: frame f has from + f * step, step = (to - from) / n_frames, so that
 * `to` itself is the gain of the frame after the block, and blocks join without a step twice or a jump.
 */
#ifndef DSP_GAIN_H
#define DSP_GAIN_H

#include <stddef.h>

/* dst = src * gain.  dst may be src. */
typedef void gain_apply_fn(float *dst, const float *src, size_t n_samples, float gain);

/* The same with a ramp over frames.  dst may be src.  n_frames < 2^24. */
typedef void gain_ramp_fn(float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to);

/* dst += src * gain: one input of a mix.  No overlap. */
typedef void gain_add_fn(float *dst, const float *src, size_t n_samples, float gain);

/* The same with a ramp. */
typedef void gain_add_ramp_fn(float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to);

gain_apply_fn gain_c_apply, gain_avx2_apply, gain_neon_apply;
gain_add_fn gain_c_add, gain_avx2_add, gain_neon_add;
gain_ramp_fn gain_c_ramp, gain_avx2_ramp;
gain_add_ramp_fn gain_c_add_ramp, gain_avx2_add_ramp;

#endif
