#include "dsp/levels.h"

#include <float.h>

static inline float magnitude(float x)
{
	return __builtin_fabsf(x);
}

float levels_c_peak(const float *x, size_t n_samples)
{
	float peak = 0.0f;
	for (size_t i = 0; i < n_samples; i++)
		if (magnitude(x[i]) > peak)
			peak = magnitude(x[i]);
	return peak;
}

void levels_c_peaks(float *peaks, const float *x, unsigned channels, size_t n_frames)
{
	for (size_t f = 0; f < n_frames; f++, x += channels)
		for (unsigned c = 0; c < channels; c++)
			if (magnitude(x[c]) > peaks[c])
				peaks[c] = magnitude(x[c]);
}

double levels_c_squares(const float *x, size_t n_samples)
{
	double squares = 0.0;
	for (size_t i = 0; i < n_samples; i++)
		squares += (double)x[i] * x[i];
	return squares;
}

void levels_c_add(struct levels *levels, const float *x, unsigned channels, size_t n_frames)
{
	for (unsigned c = 0; c < channels; c++) {
		struct levels l = levels[c];
		double squares = 0.0, sum = 0.0;
		for (size_t f = 0; f < n_frames; f++) {
			float v = x[f * channels + c];
			if (magnitude(v) > l.peak)
				l.peak = magnitude(v);
			squares += (double)v * v;
			sum += v;
		}
		l.squares += squares;
		l.sum += sum;
		levels[c] = l;
	}
}

double levels_c_cross(const float *x, size_t n_frames)
{
	double cross = 0.0;
	for (size_t f = 0; f < n_frames; f++)
		cross += (double)x[2 * f] * x[2 * f + 1];
	return cross;
}

size_t levels_c_clean(float *dst, const float *src, size_t n_samples)
{
	size_t n_odd = 0;
	for (size_t i = 0; i < n_samples; i++) {
		int finite = magnitude(src[i]) <= FLT_MAX;
		n_odd += !finite;
		dst[i] = finite ? src[i] : 0.0f;
	}
	return n_odd;
}
