#include "dsp/interleave.h"

#include <string.h>

/* memcpy of one sample: a float in a register might lose what is not a float. */
static void move(float *dst, size_t dst_step, const float *src, size_t src_step, size_t n_frames)
{
	for (size_t f = 0; f < n_frames; f++)
		memcpy(dst + f * dst_step, src + f * src_step, sizeof(*dst));
}

void interleave_c_join(float *dst, const float *const *src, unsigned channels, size_t n_frames)
{
	for (unsigned c = 0; c < channels; c++)
		move(dst + c, channels, src[c], 1, n_frames);
}

void interleave_c_split(float *const *dst, const float *src, unsigned channels, size_t n_frames)
{
	for (unsigned c = 0; c < channels; c++)
		move(dst[c], 1, src + c, channels, n_frames);
}
