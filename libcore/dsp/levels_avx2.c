/*
 * Frames of 1, 2, 4 or 8 channels are read as one long array, a lane always meeting the same channel; other counts
 * are read eight channels at a time with a stride, the last group through a mask.
 */
#include "dsp/levels.h"

#include "dsp/inline.h"

#include <float.h>
#include <immintrin.h>
#include <stdint.h>

INLINE __m256 magnitude(__m256 x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

/* The second operand is what a NaN in the first leaves: the running peak. */
INLINE __m256 raise(__m256 peak, __m256 x)
{
	return _mm256_max_ps(magnitude(x), peak);
}

INLINE __m256i lanes_mask(unsigned n)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE __m256d low_double(__m256 x)
{
	return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

INLINE __m256d high_double(__m256 x)
{
	return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

INLINE double across(__m256d x)
{
	__m128d s = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
	return _mm_cvtsd_f64(s) + _mm_cvtsd_f64(_mm_unpackhi_pd(s, s));
}

float levels_avx2_peak(const float *x, size_t n_samples)
{
	__m256 p[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
	size_t i = 0;
	for (; i + 32 <= n_samples; i += 32)
		UNROLL
		for (int k = 0; k < 4; k++)
			p[k] = raise(p[k], _mm256_loadu_ps(x + i + 8 * k));
	for (; i + 8 <= n_samples; i += 8)
		p[0] = raise(p[0], _mm256_loadu_ps(x + i));
	if (i < n_samples)
		p[1] = raise(p[1], _mm256_maskload_ps(x + i, lanes_mask((unsigned)(n_samples - i))));

	__m256 all = _mm256_max_ps(_mm256_max_ps(p[0], p[1]), _mm256_max_ps(p[2], p[3]));
	__m128 m = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

INLINE void fold_peaks(float *peaks, __m256 p, unsigned channels, unsigned lanes)
{
	float lane[8];
	_mm256_storeu_ps(lane, p);
	for (unsigned l = 0; l < lanes; l++)
		if (lane[l] > peaks[l % channels])
			peaks[l % channels] = lane[l];
}

void levels_avx2_peaks(float *peaks, const float *x, unsigned channels, size_t n_frames)
{
	if (8 % channels == 0) {
		__m256 p[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
		size_t i = 0, n = n_frames * channels;
		for (; i + 32 <= n; i += 32)
			UNROLL
			for (int k = 0; k < 4; k++)
				p[k] = raise(p[k], _mm256_loadu_ps(x + i + 8 * k));
		for (; i + 8 <= n; i += 8)
			p[0] = raise(p[0], _mm256_loadu_ps(x + i));
		if (i < n)
			p[1] = raise(p[1], _mm256_maskload_ps(x + i, lanes_mask((unsigned)(n - i))));
		fold_peaks(peaks, _mm256_max_ps(_mm256_max_ps(p[0], p[1]), _mm256_max_ps(p[2], p[3])), channels, 8);
		return;
	}
	for (unsigned c = 0; c < channels; c += 8) {
		unsigned lanes = channels - c < 8 ? channels - c : 8;
		const __m256i mask = lanes_mask(lanes);
		const float *at = x + c;
		__m256 p0 = _mm256_setzero_ps(), p1 = p0;
		size_t f = 0;
		for (; f + 2 <= n_frames; f += 2, at += 2 * channels) {
			p0 = raise(p0, _mm256_maskload_ps(at, mask));
			p1 = raise(p1, _mm256_maskload_ps(at + channels, mask));
		}
		if (f < n_frames)
			p0 = raise(p0, _mm256_maskload_ps(at, mask));
		fold_peaks(peaks + c, _mm256_max_ps(p0, p1), 8, lanes);
	}
}

double levels_avx2_squares(const float *x, size_t n_samples)
{
	__m256d s[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
	size_t i = 0;
	for (; i + 16 <= n_samples; i += 16) {
		UNROLL
		for (int k = 0; k < 4; k++) {
			__m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * k));
			s[k] = _mm256_fmadd_pd(v, v, s[k]);
		}
	}
	double rest = 0.0;
	for (; i < n_samples; i++)
		rest += (double)x[i] * x[i];
	return rest + across(_mm256_add_pd(_mm256_add_pd(s[0], s[1]), _mm256_add_pd(s[2], s[3])));
}

struct sums {
	__m256 peak;
	__m256d squares_low, squares_high, sum_low, sum_high;
};

INLINE void sums_clear(struct sums *s)
{
	s->peak = _mm256_setzero_ps();
	s->squares_low = s->squares_high = s->sum_low = s->sum_high = _mm256_setzero_pd();
}

INLINE void sums_take(struct sums *s, __m256 x)
{
	__m256d low = low_double(x), high = high_double(x);
	s->peak = raise(s->peak, x);
	s->squares_low = _mm256_fmadd_pd(low, low, s->squares_low);
	s->squares_high = _mm256_fmadd_pd(high, high, s->squares_high);
	s->sum_low = _mm256_add_pd(s->sum_low, low);
	s->sum_high = _mm256_add_pd(s->sum_high, high);
}

INLINE void sums_join(struct sums *a, const struct sums *b)
{
	a->peak = _mm256_max_ps(a->peak, b->peak);
	a->squares_low = _mm256_add_pd(a->squares_low, b->squares_low);
	a->squares_high = _mm256_add_pd(a->squares_high, b->squares_high);
	a->sum_low = _mm256_add_pd(a->sum_low, b->sum_low);
	a->sum_high = _mm256_add_pd(a->sum_high, b->sum_high);
}

INLINE void sums_fold(struct levels *levels, const struct sums *s, unsigned channels, unsigned lanes)
{
	float peak[8];
	double squares[8], sum[8];
	_mm256_storeu_ps(peak, s->peak);
	_mm256_storeu_pd(squares, s->squares_low);
	_mm256_storeu_pd(squares + 4, s->squares_high);
	_mm256_storeu_pd(sum, s->sum_low);
	_mm256_storeu_pd(sum + 4, s->sum_high);
	for (unsigned l = 0; l < lanes; l++) {
		struct levels *to = &levels[l % channels];
		if (peak[l] > to->peak)
			to->peak = peak[l];
		to->squares += squares[l];
		to->sum += sum[l];
	}
}

void levels_avx2_add(struct levels *levels, const float *x, unsigned channels, size_t n_frames)
{
	if (8 % channels == 0) {
		struct sums a, b;
		sums_clear(&a);
		sums_clear(&b);
		size_t i = 0, n = n_frames * channels;
		for (; i + 16 <= n; i += 16) {
			sums_take(&a, _mm256_loadu_ps(x + i));
			sums_take(&b, _mm256_loadu_ps(x + i + 8));
		}
		for (; i + 8 <= n; i += 8)
			sums_take(&a, _mm256_loadu_ps(x + i));
		if (i < n)
			sums_take(&b, _mm256_maskload_ps(x + i, lanes_mask((unsigned)(n - i))));
		sums_join(&a, &b);
		sums_fold(levels, &a, channels, 8);
		return;
	}
	for (unsigned c = 0; c < channels; c += 8) {
		unsigned lanes = channels - c < 8 ? channels - c : 8;
		const __m256i mask = lanes_mask(lanes);
		const float *at = x + c;
		struct sums a;
		sums_clear(&a);
		for (size_t f = 0; f < n_frames; f++, at += channels)
			sums_take(&a, _mm256_maskload_ps(at, mask));
		sums_fold(levels + c, &a, 8, lanes);
	}
}

double levels_avx2_cross(const float *x, size_t n_frames)
{
	__m256d s0 = _mm256_setzero_pd(), s1 = s0;
	size_t f = 0;
	for (; f + 8 <= n_frames; f += 8, x += 16) {
		__m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + 8);
		__m256 left = _mm256_shuffle_ps(a, b, 0x88), right = _mm256_shuffle_ps(a, b, 0xdd);
		s0 = _mm256_fmadd_pd(low_double(left), low_double(right), s0);
		s1 = _mm256_fmadd_pd(high_double(left), high_double(right), s1);
	}
	double rest = 0.0;
	for (; f < n_frames; f++, x += 2)
		rest += (double)x[0] * x[1];
	return rest + across(_mm256_add_pd(s0, s1));
}

size_t levels_avx2_clean(float *dst, const float *src, size_t n_samples)
{
	const __m256 max = _mm256_set1_ps(FLT_MAX);
	size_t i = 0, n_odd = 0;
	for (; i + 8 <= n_samples; i += 8) {
		__m256 x = _mm256_loadu_ps(src + i);
		__m256 finite = _mm256_cmp_ps(magnitude(x), max, _CMP_LE_OQ);
		_mm256_storeu_ps(dst + i, _mm256_and_ps(x, finite));
		n_odd += (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(finite) ^ 0xff);
	}
	return n_odd + levels_c_clean(dst + i, src + i, n_samples - i);
}
