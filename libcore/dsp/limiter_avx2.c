#include "dsp/limiter.h"

#include "dsp/interleave.h"
#include "dsp/inline.h"

#include <immintrin.h>

INLINE __m256 magnitude(__m256 x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

void limiter_avx2_curve(float *gain, const float *level, size_t n_frames, float threshold, float ceiling)
{
	float width = ceiling - threshold;
	const __m256 t = _mm256_set1_ps(threshold), d = _mm256_set1_ps(width), one = _mm256_set1_ps(1.0f);
	const __m256 per_d = _mm256_set1_ps(width > 0.0f ? 1.0f / width : 0.0f);
	size_t i = 0;
	for (; i + 8 <= n_frames; i += 8) {
		__m256 x = _mm256_loadu_ps(level + i);
		__m256 u = _mm256_mul_ps(_mm256_sub_ps(x, t), per_d);
		__m256 bent = _mm256_sub_ps(one, _mm256_div_ps(one, _mm256_add_ps(one, u)));
		__m256 out = width > 0.0f ? _mm256_add_ps(t, _mm256_mul_ps(d, bent)) : t;
		__m256 g = _mm256_and_ps(_mm256_div_ps(out, x), _mm256_cmp_ps(x, x, _CMP_ORD_Q));
		_mm256_storeu_ps(gain + i, _mm256_blendv_ps(g, one, _mm256_cmp_ps(x, t, _CMP_LE_OQ)));
	}
	limiter_c_curve(gain + i, level + i, n_frames - i, threshold, ceiling);
}

INLINE __m256 raise(__m256 peak, __m256 x)
{
	return _mm256_max_ps(magnitude(x), peak);
}

static void level_2(float *level, const float *x, size_t n_frames)
{
	size_t f = 0;
	for (; f + 8 <= n_frames; f += 8) {
		__m256 a = _mm256_loadu_ps(x + 2 * f), b = _mm256_loadu_ps(x + 2 * f + 8);
		__m256 low = _mm256_permute2f128_ps(a, b, 0x20), high = _mm256_permute2f128_ps(a, b, 0x31);
		__m256 peak = raise(_mm256_setzero_ps(), _mm256_shuffle_ps(low, high, 0x88));
		_mm256_storeu_ps(level + f, raise(peak, _mm256_shuffle_ps(low, high, 0xdd)));
	}
	limiter_c_level(level + f, x + 2 * f, 2, n_frames - f);
}

#define BLOCK_FRAMES 64u
#define MAX_CHANNELS 32u

void limiter_avx2_level(float *level, const float *x, unsigned channels, size_t n_frames)
{
	if (channels == 2) {
		level_2(level, x, n_frames);
		return;
	}
	if (channels > MAX_CHANNELS) {
		limiter_c_level(level, x, channels, n_frames);
		return;
	}
	float plane[MAX_CHANNELS][BLOCK_FRAMES];
	float *planes[MAX_CHANNELS];
	size_t f = 0;
	for (unsigned c = 0; c < channels; c++)
		planes[c] = plane[c];
	for (; f + BLOCK_FRAMES <= n_frames; f += BLOCK_FRAMES) {
		interleave_avx2_split(planes, x + f * channels, channels, BLOCK_FRAMES);
		for (size_t i = 0; i < BLOCK_FRAMES; i += 8) {
			__m256 peak = _mm256_setzero_ps();
			for (unsigned c = 0; c < channels; c++)
				peak = raise(peak, _mm256_loadu_ps(plane[c] + i));
			_mm256_storeu_ps(level + f + i, peak);
		}
	}
	limiter_c_level(level + f, x + f * channels, channels, n_frames - f);
}
