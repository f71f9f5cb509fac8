/*
 * Products and sums are kept apart (no fused ones), so that the results are those of the C version to the bit.
 */
#include "dsp/varirate.h"

#include "dsp/inline.h"

#include <immintrin.h>

void varirate_avx2_rows(float *rows, const float *table, const uint64_t *place_q48, size_t n_frames)
{
	for (size_t i = 0; i < n_frames; i++) {
		const float *a = table + (place_q48[i] >> 39) * VARIRATE_TAPS, *b = a + VARIRATE_TAPS;
		__m256 between = _mm256_set1_ps((float)(uint32_t)(place_q48[i] >> 15 & 0xffffffu) * 0x1p-24f);
		UNROLL
		for (size_t k = 0; k < VARIRATE_TAPS; k += 8) {
			__m256 from = _mm256_loadu_ps(a + k), to = _mm256_loadu_ps(b + k);
			__m256 part = _mm256_mul_ps(_mm256_sub_ps(to, from), between);
			_mm256_storeu_ps(rows + i * VARIRATE_TAPS + k, _mm256_add_ps(from, part));
		}
	}
}

INLINE __m256 products(const float *row, const float *from)
{
	__m256 sum = _mm256_mul_ps(_mm256_loadu_ps(row), _mm256_loadu_ps(from));
	UNROLL
	for (size_t k = 8; k < VARIRATE_TAPS; k += 8)
		sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(row + k), _mm256_loadu_ps(from + k)));
	return sum;
}

void varirate_avx2_sum(float *dst, const float *x, const float *rows, const uint16_t *at, size_t n_frames)
{
	size_t i = 0;
	/* Four frames side by side: adding neighbours twice leaves each frame's low and high half in a lane of its own. */
	for (; i + 4 <= n_frames; i += 4) {
		const float *row = rows + i * VARIRATE_TAPS;
		__m256 a = products(row, x + at[i]), b = products(row + VARIRATE_TAPS, x + at[i + 1]);
		__m256 c = products(row + 2 * VARIRATE_TAPS, x + at[i + 2]);
		__m256 d = products(row + 3 * VARIRATE_TAPS, x + at[i + 3]);
		__m256 halves = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
		_mm_storeu_ps(dst + i, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
	}
	varirate_c_sum(dst + i, x, rows + i * VARIRATE_TAPS, at + i, n_frames - i);
}
