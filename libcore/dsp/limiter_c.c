#include "dsp/limiter.h"

void limiter_c_curve(float *gain, const float *level, size_t n_frames, float threshold, float ceiling)
{
	float d = ceiling - threshold;
	float per_d = d > 0.0f ? 1.0f / d : 0.0f;
	for (size_t i = 0; i < n_frames; i++) {
		float x = level[i];
		/* With d = 0 the bracket does not count, and infinity gives 1: u / (1 + u) would be infinity by infinity. */
		float u = (x - threshold) * per_d;
		float out = threshold + d * (1.0f - 1.0f / (1.0f + u));
		if (d <= 0.0f)
			out = threshold;
		gain[i] = x <= threshold ? 1.0f : x == x ? out / x : 0.0f;
	}
}

void limiter_c_level(float *level, const float *x, unsigned channels, size_t n_frames)
{
	for (size_t f = 0; f < n_frames; f++, x += channels) {
		float peak = 0.0f;
		for (unsigned c = 0; c < channels; c++)
			if (__builtin_fabsf(x[c]) > peak)
				peak = __builtin_fabsf(x[c]);
		level[f] = peak;
	}
}
