#include "dsp/gain.h"

void gain_c_apply(float *dst, const float *src, size_t n_samples, float gain)
{
	for (size_t i = 0; i < n_samples; i++)
		dst[i] = src[i] * gain;
}

void gain_c_add(float *dst, const float *src, size_t n_samples, float gain)
{
	for (size_t i = 0; i < n_samples; i++)
		dst[i] += src[i] * gain;
}

void gain_c_ramp(float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to)
{
	float step = (to - from) / (float)n_frames;
	for (size_t f = 0; f < n_frames; f++)
		for (unsigned c = 0; c < channels; c++)
			dst[f * channels + c] = src[f * channels + c] * (from + (float)f * step);
}

void gain_c_add_ramp(float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to)
{
	float step = (to - from) / (float)n_frames;
	for (size_t f = 0; f < n_frames; f++)
		for (unsigned c = 0; c < channels; c++)
			dst[f * channels + c] += src[f * channels + c] * (from + (float)f * step);
}
