/*
 * Mixing channels into channels by a matrix of gains: pan, downmix, routing.  Frames in, frames out.
 *
 * coef[o * in_channels + i] is what input i gives to output o.  A coefficient of 0 is no connection: whatever that
 * input holds, NaN too, stays out.  An output is the sum over i in rising order, rounded at each product and sum,
 * and with `add` one more sum to what was there: every version gives the same bits.
 */
#ifndef DSP_MATRIX_H
#define DSP_MATRIX_H

#include <stddef.h>

/* dst = coef x src.  No overlap. */
typedef void matrix_set_fn(
	float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *coef, size_t n_frames);

/* dst += coef x src: one input of a mix. */
typedef void matrix_add_fn(
	float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *coef, size_t n_frames);

/* The same while the matrix goes from one to another in a straight line, as gain_ramp_fn does.  n_frames < 2^24. */
typedef void matrix_add_ramp_fn(float *dst, unsigned out_channels, const float *src, unsigned in_channels,
	const float *from, const float *to, size_t n_frames);

matrix_set_fn matrix_c_set, matrix_avx2_set;
matrix_add_fn matrix_c_add, matrix_avx2_add;
matrix_add_ramp_fn matrix_c_add_ramp, matrix_avx2_add_ramp;

#endif
