/*
 * The conversions of convert_c.c, 16 samples a turn, bit for bit the same.  The samples before the noise's first
 * lane and after the last whole turn go through the C version.
 */
#include "dsp/convert.h"

#include "dsp/inline.h"

#include <immintrin.h>

INLINE size_t bytes_of(enum sample f)
{
	return f == SAMPLE_S16 ? 2 : f == SAMPLE_S24 ? 3 : f == SAMPLE_F64 ? 8 : 4;
}

INLINE int bits_of(enum sample f)
{
	return f == SAMPLE_S16 ? 16 : f == SAMPLE_S32 ? 32 : 24;
}

/* A turn: samples 0…7 and 8…15. */
struct turn {
	__m256i low, high;
};

INLINE __m256i load8_q31(enum sample from, const uint8_t *p)
{
	if (from == SAMPLE_S16)
		return _mm256_slli_epi32(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
	if (from == SAMPLE_S24) {
		/* 24 bytes as two halves that overlap; samples 4…7 begin 4 bytes into the second. */
		__m256i b = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)),
			_mm_loadu_si128((const __m128i *)(p + 8)), 1);
		return _mm256_shuffle_epi8(b,
			_mm256_setr_epi8(-1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11,
				-1, 4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15));
	}
	__m256i q = _mm256_loadu_si256((const __m256i *)p);
	if (from == SAMPLE_S24_32)
		q = _mm256_and_si256(q, _mm256_set1_epi32(~0xff));
	return q;
}

INLINE __m256 load8_f32(const uint8_t *p)
{
	return _mm256_loadu_ps((const float *)p);
}

INLINE __m256d load4_f64(const uint8_t *p)
{
	return _mm256_loadu_pd((const double *)p);
}

INLINE void store16_int(enum sample to, uint8_t *p, struct turn v)
{
	if (to == SAMPLE_S16) {
		__m256i packed = _mm256_packs_epi32(v.low, v.high);
		_mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(packed, 0xd8));
		return;
	}
	if (to == SAMPLE_S24) {
		const __m256i squeeze = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
			0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
		const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
		__m256i low = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v.low, squeeze), join);
		__m256i high = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v.high, squeeze), join);
		/* The 8 bytes too many of the first store lie under the second. */
		_mm256_storeu_si256((__m256i *)p, low);
		_mm_storeu_si128((__m128i *)(p + 24), _mm256_castsi256_si128(high));
		_mm_storel_epi64((__m128i *)(p + 40), _mm256_extracti128_si256(high, 1));
		return;
	}
	if (to == SAMPLE_S24_32) {
		v.low = _mm256_slli_epi32(v.low, 8);
		v.high = _mm256_slli_epi32(v.high, 8);
	}
	_mm256_storeu_si256((__m256i *)p, v.low);
	_mm256_storeu_si256((__m256i *)(p + 32), v.high);
}

/* n_clipped counts down: a true comparison is -1. */
INLINE __m256i saturate(__m256i v, int bits, __m256i *n_clipped)
{
	const __m256i max = _mm256_set1_epi32((int)((1u << (bits - 1)) - 1));
	const __m256i min = _mm256_set1_epi32(-(int)((1u << (bits - 1)) - 1) - 1);
	__m256i out = _mm256_or_si256(_mm256_cmpgt_epi32(v, max), _mm256_cmpgt_epi32(min, v));
	*n_clipped = _mm256_add_epi32(*n_clipped, out);
	return _mm256_max_epi32(_mm256_min_epi32(v, max), min);
}

INLINE __m256i from_f32(__m256 x, int bits, __m256i *n_clipped)
{
	x = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
	__m256 v = _mm256_mul_ps(x, _mm256_set1_ps((float)(1u << (bits - 1))));
	if (bits == 32) {
		/* What does not fit comes out of the conversion as INT32_MIN: right below, to be inverted above. */
		__m256i high = _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ));
		__m256i low = _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_set1_ps(-0x1p31f), _CMP_LT_OQ));
		*n_clipped = _mm256_add_epi32(*n_clipped, _mm256_or_si256(high, low));
		return _mm256_xor_si256(_mm256_cvtps_epi32(v), high);
	}
	const __m256 bound = _mm256_set1_ps((float)(1u << bits));
	v = _mm256_max_ps(_mm256_min_ps(v, bound), _mm256_sub_ps(_mm256_setzero_ps(), bound));
	return saturate(_mm256_cvtps_epi32(v), bits, n_clipped);
}

INLINE __m256i join_i32(__m128i low, __m128i high)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

INLINE __m128i narrow_mask(__m256d mask)
{
	__m256i m = _mm256_castpd_si256(mask);
	return _mm_packs_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
}

INLINE __m128i from4_f64(__m256d x, double scale, double bound)
{
	x = _mm256_and_pd(x, _mm256_cmp_pd(x, x, _CMP_ORD_Q));
	__m256d v = _mm256_mul_pd(x, _mm256_set1_pd(scale));
	v = _mm256_max_pd(_mm256_min_pd(v, _mm256_set1_pd(bound)), _mm256_set1_pd(-bound));
	return _mm256_cvtpd_epi32(v);
}

INLINE __m128i from4_f64_s32(__m256d x, __m128i *out)
{
	x = _mm256_and_pd(x, _mm256_cmp_pd(x, x, _CMP_ORD_Q));
	__m256d v = _mm256_mul_pd(x, _mm256_set1_pd(0x1p31));
	__m128i high = narrow_mask(_mm256_cmp_pd(v, _mm256_set1_pd(2147483647.5), _CMP_GE_OQ));
	__m128i low = narrow_mask(_mm256_cmp_pd(v, _mm256_set1_pd(-2147483648.5), _CMP_LT_OQ));
	*out = _mm_or_si128(high, low);
	return _mm_xor_si128(_mm256_cvtpd_epi32(v), high);
}

INLINE __m256i from_f64(const uint8_t *p, int bits, __m256i *n_clipped)
{
	__m256d a = load4_f64(p), b = load4_f64(p + 32);
	if (bits == 32) {
		__m128i out_a, out_b;
		__m128i v_a = from4_f64_s32(a, &out_a), v_b = from4_f64_s32(b, &out_b);
		*n_clipped = _mm256_add_epi32(*n_clipped, join_i32(out_a, out_b));
		return join_i32(v_a, v_b);
	}
	double scale = (double)(1u << (bits - 1));
	return saturate(join_i32(from4_f64(a, scale, 2 * scale), from4_f64(b, scale, 2 * scale)), bits, n_clipped);
}

INLINE __m256i from_q31(__m256i q, int bits, __m256i *n_clipped)
{
	int shift = 32 - bits;
	if (shift == 0)
		return q;
	int half = 1 << (shift - 1);
	int top = INT32_MAX - (2 * half - 1);
	*n_clipped = _mm256_add_epi32(*n_clipped, _mm256_cmpgt_epi32(q, _mm256_set1_epi32(top + half - 1)));
	q = _mm256_min_epi32(q, _mm256_set1_epi32(top + half - 1));
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(q, shift), _mm256_set1_epi32(1));
	return _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(q, _mm256_set1_epi32(half - 1)), odd), shift);
}

INLINE __m256i noise_step(__m256i x)
{
	x = _mm256_xor_si256(x, _mm256_slli_epi32(x, 13));
	x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 17));
	return _mm256_xor_si256(x, _mm256_slli_epi32(x, 5));
}

INLINE __m256i dither_q29(__m256i q, __m256i x, int bits, __m256i *n_clipped)
{
	int shift = 30 - bits;
	__m256i up = _mm256_srli_epi32(x, 32 - shift);
	__m256i down = _mm256_srli_epi32(_mm256_and_si256(x, _mm256_set1_epi32(0xffff)), 16 - shift);
	q = _mm256_add_epi32(q, _mm256_set1_epi32(1 << (shift - 1)));
	q = _mm256_add_epi32(q, _mm256_sub_epi32(up, down));
	return saturate(_mm256_srai_epi32(q, shift), bits, n_clipped);
}

INLINE __m256i load8_q29(enum sample from, const uint8_t *p)
{
	if (from == SAMPLE_F64)
		return join_i32(from4_f64(load4_f64(p), 0x1p29, 0x1p30), from4_f64(load4_f64(p + 32), 0x1p29, 0x1p30));
	if (from == SAMPLE_F32) {
		__m256 x = load8_f32(p);
		x = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
		x = _mm256_mul_ps(x, _mm256_set1_ps(0x1p29f));
		x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(0x1p30f)), _mm256_set1_ps(-0x1p30f));
		return _mm256_cvtps_epi32(x);
	}
	return _mm256_srai_epi32(load8_q31(from, p), 2);
}

INLINE __m256i load8_rounded(enum sample from, const uint8_t *p, int bits, __m256i *n_clipped)
{
	if (from == SAMPLE_F64)
		return from_f64(p, bits, n_clipped);
	if (from == SAMPLE_F32)
		return from_f32(load8_f32(p), bits, n_clipped);
	return from_q31(load8_q31(from, p), bits, n_clipped);
}

INLINE void to_f32(enum sample from, uint8_t *d, const uint8_t *s)
{
	__m256 v;
	if (from == SAMPLE_F64)
		v = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(load4_f64(s))),
			_mm256_cvtpd_ps(load4_f64(s + 32)), 1);
	else
		v = _mm256_mul_ps(_mm256_cvtepi32_ps(load8_q31(from, s)), _mm256_set1_ps(0x1p-31f));
	_mm256_storeu_ps((float *)d, v);
}

INLINE void to_f64(enum sample from, uint8_t *d, const uint8_t *s)
{
	__m256d low, high;
	if (from == SAMPLE_F32) {
		__m256 v = load8_f32(s);
		low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
		high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
	} else {
		const __m256d scale = _mm256_set1_pd(0x1p-31);
		__m256i q = load8_q31(from, s);
		low = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(q)), scale);
		high = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(q, 1)), scale);
	}
	_mm256_storeu_pd((double *)d, low);
	_mm256_storeu_pd((double *)(d + 32), high);
}

INLINE size_t sum(__m256i n_clipped)
{
	uint32_t lane[8];
	size_t n = 0;
	_mm256_storeu_si256((__m256i *)lane, n_clipped);
	for (int i = 0; i < 8; i++)
		n += 0u - lane[i];
	return n;
}

INLINE size_t run(enum sample from, enum sample to, bool dithers, struct convert_noise *noise, void *dst,
	const void *src, size_t n_samples)
{
	convert_fn *c = convert_c_pick(from, to, dithers);
	uint8_t *d = dst;
	const uint8_t *s = src;
	const size_t step = 8 * bytes_of(from);
	size_t n_clipped = 0;

	if (dithers && noise->next) {
		size_t n_head = CONVERT_LANES - noise->next;
		if (n_head > n_samples)
			n_head = n_samples;
		n_clipped = c(noise, d, s, n_head);
		d += n_head * bytes_of(to);
		s += n_head * bytes_of(from);
		n_samples -= n_head;
	}

	__m256i low = _mm256_loadu_si256((const __m256i *)noise->lane);
	__m256i high = _mm256_loadu_si256((const __m256i *)(noise->lane + 8));
	__m256i count = _mm256_setzero_si256();
	for (; n_samples >= 16; n_samples -= 16, d += 16 * bytes_of(to), s += 2 * step) {
		struct turn v;
		if (to == SAMPLE_F32) {
			to_f32(from, d, s);
			to_f32(from, d + 32, s + step);
			continue;
		}
		if (to == SAMPLE_F64) {
			to_f64(from, d, s);
			to_f64(from, d + 64, s + step);
			continue;
		}
		if (dithers) {
			low = noise_step(low);
			high = noise_step(high);
			v.low = dither_q29(load8_q29(from, s), low, bits_of(to), &count);
			v.high = dither_q29(load8_q29(from, s + step), high, bits_of(to), &count);
		} else {
			v.low = load8_rounded(from, s, bits_of(to), &count);
			v.high = load8_rounded(from, s + step, bits_of(to), &count);
		}
		store16_int(to, d, v);
	}
	if (dithers) {
		_mm256_storeu_si256((__m256i *)noise->lane, low);
		_mm256_storeu_si256((__m256i *)(noise->lane + 8), high);
	}
	n_clipped += sum(count);
	if (n_samples)
		n_clipped += c(noise, d, s, n_samples);
	return n_clipped;
}

#include "dsp/convert_pairs.inc"

convert_fn *convert_avx2_pick(enum sample from, enum sample to, bool dithers)
{
	return pick(from, to, dithers);
}
