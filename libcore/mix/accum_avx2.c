/*
 * Four samples become four doubles in one register; the rest is a product and a sum.  What does not fill a register
 * goes through the C version.
 */
#include "mix/accum.h"

#include "dsp/inline.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

INLINE size_t bytes_of(enum sample f)
{
	return f == SAMPLE_S16 ? 2 : f == SAMPLE_S24 ? 3 : f == SAMPLE_F64 ? 8 : 4;
}

/* Four samples.  s24: reads 16 bytes, 4 beyond its last.  bad gathers the lanes that were not finite. */
INLINE __m256d load_4(enum sample format, const uint8_t *p, __m256d *bad)
{
	const __m128i top24 = _mm_setr_epi8(-1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11);

	switch (format) {
	case SAMPLE_S16:
		return _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
	case SAMPLE_S24: {
		__m128i x = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), top24);
		return _mm256_cvtepi32_pd(_mm_srai_epi32(x, 8));
	}
	case SAMPLE_S24_32: {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		return _mm256_cvtepi32_pd(_mm_and_si128(x, _mm_set1_epi32(-256)));
	}
	case SAMPLE_S32:
		return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)p));
	default: {
		__m256d x = format == SAMPLE_F32 ? _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)p))
						 : _mm256_loadu_pd((const double *)(const void *)p);
		/* x - x is 0 for what is finite, else NaN. */
		__m256d fine = _mm256_cmp_pd(_mm256_sub_pd(x, x), _mm256_setzero_pd(), _CMP_EQ_OQ);
		*bad = _mm256_or_pd(*bad, _mm256_andnot_pd(fine, _mm256_set1_pd(1.0)));
		return _mm256_and_pd(x, fine);
	}
	}
}

INLINE void add_4(double *acc, __m256d x)
{
	_mm256_storeu_pd(acc, _mm256_add_pd(_mm256_loadu_pd(acc), x));
}

INLINE bool is_float(enum sample f)
{
	return f == SAMPLE_F32 || f == SAMPLE_F64;
}

/* How many there were, once it is known that there are any. */
static size_t count_bad(enum sample format, const uint8_t *p, size_t n_samples)
{
	size_t n = 0;
	for (size_t i = 0; i < n_samples; i++) {
		uint64_t u = 0;
		memcpy(&u, p + i * bytes_of(format), bytes_of(format));
		uint64_t exponent = format == SAMPLE_F32 ? 0x7f800000u : (uint64_t)0x7ff << 52;
		n += (u & exponent) == exponent;
	}
	return n;
}

INLINE size_t run(enum sample format, enum accum_kind kind, double *acc, const void *src, size_t n, const double *gain)
{
	const size_t step = bytes_of(format), per_frame = kind == ACCUM_CROSS ? 2 : 1;
	const uint8_t *p = src;
	__m256d bad = _mm256_setzero_pd();
	/* Units (samples or frames) of one register; s24 stays clear of the end. */
	const size_t unit = 4 / per_frame, spare = format == SAMPLE_S24 ? 2 : 0;
	size_t i = 0;

	if (kind == ACCUM_PAIRS) {
		const __m256d g = _mm256_setr_pd(gain[0], gain[1], gain[0], gain[1]);
		for (; i + 8 + spare <= n; i += 8) {
			add_4(acc + i, _mm256_mul_pd(load_4(format, p + i * step, &bad), g));
			add_4(acc + i + 4, _mm256_mul_pd(load_4(format, p + (i + 4) * step, &bad), g));
		}
	} else if (kind == ACCUM_SPREAD) {
		const __m256d g = _mm256_setr_pd(gain[0], gain[1], gain[0], gain[1]);
		for (; i + unit + spare <= n; i += unit) {
			__m256d x = load_4(format, p + i * step, &bad);
			add_4(acc + 2 * i, _mm256_mul_pd(_mm256_permute4x64_pd(x, 0x50), g));
			add_4(acc + 2 * i + 4, _mm256_mul_pd(_mm256_permute4x64_pd(x, 0xfa), g));
		}
	} else {
		const __m256d own = _mm256_setr_pd(gain[0], gain[3], gain[0], gain[3]);
		const __m256d other = _mm256_setr_pd(gain[1], gain[2], gain[1], gain[2]);
		for (; i + unit + spare <= n; i += unit) {
			__m256d x = load_4(format, p + 2 * i * step, &bad);
			__m256d swapped = _mm256_permute_pd(x, 0x5);
			add_4(acc + 2 * i, _mm256_add_pd(_mm256_mul_pd(x, own), _mm256_mul_pd(swapped, other)));
		}
	}
	size_t n_bad = 0;
	if (is_float(format) && !_mm256_testz_si256(_mm256_castpd_si256(bad), _mm256_castpd_si256(bad)))
		n_bad = count_bad(format, p, i * per_frame);
	size_t done = kind == ACCUM_PAIRS ? i : 2 * i;
	return n_bad + accum_c_pick(format, kind)(acc + done, p + i * per_frame * step, n - i, gain);
}

#include "mix/accum_kinds.inc"

accum_fn *accum_avx2_pick(enum sample format, enum accum_kind kind)
{
	return pick(format, kind);
}
