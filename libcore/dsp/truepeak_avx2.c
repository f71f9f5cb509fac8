/*
 * The taps lie symmetrically, so samples are added and subtracted in pairs first: the middle phase is 6 products of
 * sums, and of the two outer phases, a + b and a - b, the larger magnitude is |a| + |b|.
 */
#include "dsp/truepeak.h"

#include "dsp/inline.h"

#include <immintrin.h>

INLINE __m256 magnitude(__m256 x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

/* Vectors v of 8 samples each share the coefficients once loaded. */
INLINE void four(float *dst, const float *x, const __m256 coef[18], size_t step, int vectors)
{
	__m256 middle[2], a[2], b[2];
	UNROLL
	for (int v = 0; v < vectors; v++)
		middle[v] = a[v] = b[v] = _mm256_setzero_ps();
	UNROLL
	for (size_t k = 0; k < 6; k++) {
		UNROLL
		for (int v = 0; v < vectors; v++) {
			__m256 near = _mm256_loadu_ps(x + 8 * v - k * step), far = _mm256_loadu_ps(x + 8 * v - (11 - k) * step);
			__m256 sum = _mm256_add_ps(near, far), difference = _mm256_sub_ps(near, far);
			middle[v] = _mm256_fmadd_ps(coef[k], sum, middle[v]);
			a[v] = _mm256_fmadd_ps(coef[6 + k], sum, a[v]);
			b[v] = _mm256_fmadd_ps(coef[12 + k], difference, b[v]);
		}
	}
	UNROLL
	for (int v = 0; v < vectors; v++) {
		__m256 outer = _mm256_add_ps(magnitude(a[v]), magnitude(b[v]));
		__m256 peak = _mm256_max_ps(magnitude(middle[v]), magnitude(_mm256_loadu_ps(x + 8 * v - 6 * step)));
		_mm256_storeu_ps(dst + 8 * v, _mm256_max_ps(outer, peak));
	}
}

INLINE void two(float *dst, const float *x, const __m256 coef[12], size_t step)
{
	__m256 sum_a = _mm256_setzero_ps(), sum_b = sum_a;
	UNROLL
	for (size_t k = 0; k < 12; k += 2) {
		__m256 a = _mm256_add_ps(_mm256_loadu_ps(x - k * step), _mm256_loadu_ps(x - (23 - k) * step));
		__m256 b = _mm256_add_ps(_mm256_loadu_ps(x - (k + 1) * step), _mm256_loadu_ps(x - (22 - k) * step));
		sum_a = _mm256_fmadd_ps(coef[k], a, sum_a);
		sum_b = _mm256_fmadd_ps(coef[k + 1], b, sum_b);
	}
	__m256 between = magnitude(_mm256_add_ps(sum_a, sum_b));
	_mm256_storeu_ps(dst, _mm256_max_ps(between, magnitude(_mm256_loadu_ps(x - 12 * step))));
}

void truepeak_avx2_envelope(
	float *dst, const float *x, const struct truepeak_filter *filter, unsigned channels, size_t n_samples)
{
	__m256 coef[18];
	size_t i = 0;
	if (filter->factor == 4) {
		for (int k = 0; k < 6; k++) {
			coef[k] = _mm256_set1_ps(filter->coef[1][k]);
			coef[6 + k] = _mm256_set1_ps(filter->even[k]);
			coef[12 + k] = _mm256_set1_ps(filter->odd[k]);
		}
		for (; i + 16 <= n_samples; i += 16)
			four(dst + i, x + i, coef, channels, 2);
		if (i + 8 <= n_samples) {
			four(dst + i, x + i, coef, channels, 1);
			i += 8;
		}
	} else if (filter->factor == 2) {
		for (int k = 0; k < 12; k++)
			coef[k] = _mm256_set1_ps(filter->coef[0][k]);
		for (; i + 8 <= n_samples; i += 8)
			two(dst + i, x + i, coef, channels);
	}
	truepeak_c_envelope(dst + i, x + i, filter, channels, n_samples - i);
}
