/*
 * Between frames (the samples of all channels together, as streams carry them) and planes (one array a channel).
 * Samples are moved, never computed with: any 32-bit type goes through whole.
 */
#ifndef DSP_INTERLEAVE_H
#define DSP_INTERLEAVE_H

#include <stddef.h>

/* Planes to frames.  dst holds channels * n_frames; src holds `channels` pointers.  No overlap. */
typedef void interleave_join_fn(float *dst, const float *const *src, unsigned channels, size_t n_frames);

/* Frames to planes. */
typedef void interleave_split_fn(float *const *dst, const float *src, unsigned channels, size_t n_frames);

interleave_join_fn interleave_c_join, interleave_avx2_join;
interleave_split_fn interleave_c_split, interleave_avx2_split;

#endif
