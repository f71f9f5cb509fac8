#include "dsp/gain.h"

#include "dsp/inline.h"

#include <immintrin.h>
#include <stdbool.h>

void gain_avx2_apply(float *dst, const float *src, size_t n_samples, float gain)
{
	const __m256 g = _mm256_set1_ps(gain);
	size_t i = 0;
	for (; i + 16 <= n_samples; i += 16) {
		__m256 a = _mm256_mul_ps(_mm256_loadu_ps(src + i), g);
		__m256 b = _mm256_mul_ps(_mm256_loadu_ps(src + i + 8), g);
		_mm256_storeu_ps(dst + i, a);
		_mm256_storeu_ps(dst + i + 8, b);
	}
	for (; i < n_samples; i++)
		dst[i] = src[i] * gain;
}

INLINE void add_8(float *dst, const float *src, __m256 g)
{
	_mm256_storeu_ps(dst, _mm256_add_ps(_mm256_loadu_ps(dst), _mm256_mul_ps(_mm256_loadu_ps(src), g)));
}

void gain_avx2_add(float *dst, const float *src, size_t n_samples, float gain)
{
	const __m256 g = _mm256_set1_ps(gain);
	size_t i = 0;
	for (; i + 16 <= n_samples; i += 16) {
		add_8(dst + i, src + i, g);
		add_8(dst + i + 8, src + i + 8, g);
	}
	for (; i < n_samples; i++)
		dst[i] += src[i] * gain;
}

/* Eight frames are `channels` whole vectors, and each vector has a fixed pattern of frame numbers; more channels than
 * the table holds go frame by frame. */
#define MAX_TABLE 16u

INLINE void ramp_samples(bool adds, float *dst, const float *src, size_t n_samples, float gain)
{
	if (adds)
		gain_avx2_add(dst, src, n_samples, gain);
	else
		gain_avx2_apply(dst, src, n_samples, gain);
}

INLINE void ramp(bool adds, float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to)
{
	float step = (to - from) / (float)n_frames;
	size_t f = 0;

	if (channels <= MAX_TABLE) {
		const __m256 step_8 = _mm256_set1_ps(step), from_8 = _mm256_set1_ps(from);
		float table[MAX_TABLE * 8];
		for (unsigned i = 0; i < channels * 8; i++)
			table[i] = (float)(i / channels);
		for (; f + 8 <= n_frames; f += 8) {
			const __m256 first = _mm256_set1_ps((float)f);
			for (unsigned v = 0; v < channels; v++) {
				size_t at = f * channels + v * 8;
				__m256 number = _mm256_add_ps(first, _mm256_loadu_ps(table + v * 8));
				__m256 g = _mm256_add_ps(from_8, _mm256_mul_ps(number, step_8));
				if (adds)
					add_8(dst + at, src + at, g);
				else
					_mm256_storeu_ps(dst + at, _mm256_mul_ps(_mm256_loadu_ps(src + at), g));
			}
		}
	}
	for (; f < n_frames; f++)
		ramp_samples(adds, dst + f * channels, src + f * channels, channels, from + (float)f * step);
}

void gain_avx2_ramp(float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to)
{
	ramp(false, dst, src, channels, n_frames, from, to);
}

void gain_avx2_add_ramp(float *dst, const float *src, unsigned channels, size_t n_frames, float from, float to)
{
	ramp(true, dst, src, channels, n_frames, from, to);
}
