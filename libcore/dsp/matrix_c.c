#include "dsp/matrix.h"

static float dot(const float *coef, const float *frame, unsigned in_channels)
{
	float sum = 0.0f;
	for (unsigned i = 0; i < in_channels; i++)
		if (coef[i] != 0.0f)
			sum += coef[i] * frame[i];
	return sum;
}

void matrix_c_set(
	float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *coef, size_t n_frames)
{
	for (size_t f = 0; f < n_frames; f++)
		for (unsigned o = 0; o < out_channels; o++)
			dst[f * out_channels + o] = dot(coef + o * in_channels, src + f * in_channels, in_channels);
}

void matrix_c_add(
	float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *coef, size_t n_frames)
{
	for (size_t f = 0; f < n_frames; f++)
		for (unsigned o = 0; o < out_channels; o++)
			dst[f * out_channels + o] += dot(coef + o * in_channels, src + f * in_channels, in_channels);
}

void matrix_c_add_ramp(float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *from,
	const float *to, size_t n_frames)
{
	for (unsigned o = 0; o < out_channels; o++, from += in_channels, to += in_channels) {
		for (size_t f = 0; f < n_frames; f++) {
			float sum = 0.0f;
			for (unsigned i = 0; i < in_channels; i++) {
				if (from[i] == 0.0f && to[i] == 0.0f)
					continue;
				float step = (to[i] - from[i]) / (float)n_frames;
				sum += (from[i] + (float)f * step) * src[f * in_channels + i];
			}
			dst[f * out_channels + o] += sum;
		}
	}
}
