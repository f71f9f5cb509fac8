/*
 * Channels are taken by eights, a four, a two and a one, each with the largest transposition that fits; stereo,
 * where nothing lies between the pairs, has its own.
 */
#include "dsp/interleave.h"

#include "dsp/inline.h"

#include <immintrin.h>
#include <string.h>

/* Rows to columns; its own inverse. */
static inline void transpose_8(__m256 r[8])
{
	__m256 t[8], u[8];
	UNROLL
	for (int i = 0; i < 4; i++) {
		t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
		t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
	}
	UNROLL
	for (int i = 0; i < 8; i += 4) {
		u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
		u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
		u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
		u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
	}
	UNROLL
	for (int i = 0; i < 4; i++) {
		r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
		r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
	}
}

static inline void move_1(float *dst, const float *src)
{
	memcpy(dst, src, sizeof(*dst));
}

/* The frames from `from` on, one sample at a time. */
static void join_rest(float *dst, const float *const *src, unsigned step, unsigned channels, size_t from, size_t n_frames)
{
	for (size_t f = from; f < n_frames; f++)
		for (unsigned c = 0; c < channels; c++)
			move_1(dst + f * step + c, src[c] + f);
}

static void split_rest(float *const *dst, const float *src, unsigned step, unsigned channels, size_t from, size_t n_frames)
{
	for (size_t f = from; f < n_frames; f++)
		for (unsigned c = 0; c < channels; c++)
			move_1(dst[c] + f, src + f * step + c);
}

static void join_8(float *dst, const float *const *src, unsigned step, size_t n_frames)
{
	size_t f = 0;
	for (; f + 8 <= n_frames; f += 8) {
		__m256 r[8];
		UNROLL
		for (int i = 0; i < 8; i++)
			r[i] = _mm256_loadu_ps(src[i] + f);
		transpose_8(r);
		UNROLL
		for (int i = 0; i < 8; i++)
			_mm256_storeu_ps(dst + (f + (size_t)i) * step, r[i]);
	}
	join_rest(dst, src, step, 8, f, n_frames);
}

static void split_8(float *const *dst, const float *src, unsigned step, size_t n_frames)
{
	size_t f = 0;
	for (; f + 8 <= n_frames; f += 8) {
		__m256 r[8];
		UNROLL
		for (int i = 0; i < 8; i++)
			r[i] = _mm256_loadu_ps(src + (f + (size_t)i) * step);
		transpose_8(r);
		UNROLL
		for (int i = 0; i < 8; i++)
			_mm256_storeu_ps(dst[i] + f, r[i]);
	}
	split_rest(dst, src, step, 8, f, n_frames);
}

static void join_4(float *dst, const float *const *src, unsigned step, size_t n_frames)
{
	size_t f = 0;
	for (; f + 4 <= n_frames; f += 4) {
		__m128 a = _mm_loadu_ps(src[0] + f), b = _mm_loadu_ps(src[1] + f);
		__m128 c = _mm_loadu_ps(src[2] + f), d = _mm_loadu_ps(src[3] + f);
		_MM_TRANSPOSE4_PS(a, b, c, d);
		_mm_storeu_ps(dst + f * step, a);
		_mm_storeu_ps(dst + (f + 1) * step, b);
		_mm_storeu_ps(dst + (f + 2) * step, c);
		_mm_storeu_ps(dst + (f + 3) * step, d);
	}
	join_rest(dst, src, step, 4, f, n_frames);
}

static void split_4(float *const *dst, const float *src, unsigned step, size_t n_frames)
{
	size_t f = 0;
	for (; f + 4 <= n_frames; f += 4) {
		__m128 a = _mm_loadu_ps(src + f * step), b = _mm_loadu_ps(src + (f + 1) * step);
		__m128 c = _mm_loadu_ps(src + (f + 2) * step), d = _mm_loadu_ps(src + (f + 3) * step);
		_MM_TRANSPOSE4_PS(a, b, c, d);
		_mm_storeu_ps(dst[0] + f, a);
		_mm_storeu_ps(dst[1] + f, b);
		_mm_storeu_ps(dst[2] + f, c);
		_mm_storeu_ps(dst[3] + f, d);
	}
	split_rest(dst, src, step, 4, f, n_frames);
}

static inline __m128 load_2(const float *p)
{
	return _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

static inline void store_2(float *p, __m128 v)
{
	_mm_storel_epi64((__m128i *)(void *)p, _mm_castps_si128(v));
}

static void join_2(float *dst, const float *const *src, unsigned step, size_t n_frames)
{
	size_t f = 0;
	for (; step == 2 && f + 8 <= n_frames; f += 8) {
		__m256 a = _mm256_loadu_ps(src[0] + f), b = _mm256_loadu_ps(src[1] + f);
		__m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
		_mm256_storeu_ps(dst + 2 * f, _mm256_permute2f128_ps(low, high, 0x20));
		_mm256_storeu_ps(dst + 2 * f + 8, _mm256_permute2f128_ps(low, high, 0x31));
	}
	for (; f + 4 <= n_frames; f += 4) {
		__m128 a = _mm_loadu_ps(src[0] + f), b = _mm_loadu_ps(src[1] + f);
		__m128 low = _mm_unpacklo_ps(a, b), high = _mm_unpackhi_ps(a, b);
		store_2(dst + f * step, low);
		store_2(dst + (f + 1) * step, _mm_movehl_ps(low, low));
		store_2(dst + (f + 2) * step, high);
		store_2(dst + (f + 3) * step, _mm_movehl_ps(high, high));
	}
	join_rest(dst, src, step, 2, f, n_frames);
}

static void split_2(float *const *dst, const float *src, unsigned step, size_t n_frames)
{
	size_t f = 0;
	for (; step == 2 && f + 8 <= n_frames; f += 8) {
		__m256 a = _mm256_loadu_ps(src + 2 * f), b = _mm256_loadu_ps(src + 2 * f + 8);
		__m256 low = _mm256_permute2f128_ps(a, b, 0x20), high = _mm256_permute2f128_ps(a, b, 0x31);
		_mm256_storeu_ps(dst[0] + f, _mm256_shuffle_ps(low, high, 0x88));
		_mm256_storeu_ps(dst[1] + f, _mm256_shuffle_ps(low, high, 0xdd));
	}
	for (; f + 4 <= n_frames; f += 4) {
		__m128 a = _mm_movelh_ps(load_2(src + f * step), load_2(src + (f + 1) * step));
		__m128 b = _mm_movelh_ps(load_2(src + (f + 2) * step), load_2(src + (f + 3) * step));
		_mm_storeu_ps(dst[0] + f, _mm_shuffle_ps(a, b, 0x88));
		_mm_storeu_ps(dst[1] + f, _mm_shuffle_ps(a, b, 0xdd));
	}
	split_rest(dst, src, step, 2, f, n_frames);
}

void interleave_avx2_join(float *dst, const float *const *src, unsigned channels, size_t n_frames)
{
	if (channels == 1) {
		memcpy(dst, src[0], n_frames * sizeof(*dst));
		return;
	}
	unsigned c = 0;
	for (; c + 8 <= channels; c += 8)
		join_8(dst + c, src + c, channels, n_frames);
	if (channels & 4) {
		join_4(dst + c, src + c, channels, n_frames);
		c += 4;
	}
	if (channels & 2) {
		join_2(dst + c, src + c, channels, n_frames);
		c += 2;
	}
	if (channels & 1)
		join_rest(dst + c, src + c, channels, 1, 0, n_frames);
}

void interleave_avx2_split(float *const *dst, const float *src, unsigned channels, size_t n_frames)
{
	if (channels == 1) {
		memcpy(dst[0], src, n_frames * sizeof(*src));
		return;
	}
	unsigned c = 0;
	for (; c + 8 <= channels; c += 8)
		split_8(dst + c, src + c, channels, n_frames);
	if (channels & 4) {
		split_4(dst + c, src + c, channels, n_frames);
		c += 4;
	}
	if (channels & 2) {
		split_2(dst + c, src + c, channels, n_frames);
		c += 2;
	}
	if (channels & 1)
		split_rest(dst + c, src + c, channels, 1, 0, n_frames);
}
