#include "dsp/truepeak.h"

static float magnitude_of(const float *x, const float *coef, unsigned taps, size_t step)
{
	float sum = 0.0f;
	for (unsigned k = 0; k < taps; k++)
		sum += coef[k] * *(x - k * step);
	return __builtin_fabsf(sum);
}

void truepeak_c_envelope(
	float *dst, const float *x, const struct truepeak_filter *filter, unsigned channels, size_t n_samples)
{
	for (size_t i = 0; i < n_samples; i++) {
		float peak = __builtin_fabsf(*(x + i - filter->taps / 2 * (size_t)channels));
		for (unsigned p = 0; p + 1 < filter->factor; p++) {
			float m = magnitude_of(x + i, filter->coef[p], filter->taps, channels);
			if (m > peak)
				peak = m;
		}
		dst[i] = peak;
	}
}
