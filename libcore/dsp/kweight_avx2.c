/*
 * Four channels share a vector, one filter after the other.  Of the feedback only the product with the last output
 * has to be waited for, and it is the last to be taken: a frame costs about one multiply-add's delay.
 */
#include "dsp/kweight.h"

#include "dsp/inline.h"

#include <immintrin.h>

INLINE __m256d load(const float *x, unsigned lanes)
{
	if (lanes == 4)
		return _mm256_cvtps_pd(_mm_loadu_ps(x));
	if (lanes == 2)
		return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)x)));
	if (lanes == 1)
		return _mm256_cvtps_pd(_mm_load_ss(x));
	return _mm256_cvtps_pd(_mm_maskload_ps(x, _mm_setr_epi32(-1, -1, -1, 0)));
}

struct coefs {
	__m256d b0, b1, b2, a1, a2;
};

INLINE struct coefs coefs_of(const double b[3], const double a[2])
{
	return (struct coefs){_mm256_set1_pd(b[0]), _mm256_set1_pd(b[1]), _mm256_set1_pd(b[2]), _mm256_set1_pd(a[0]),
		_mm256_set1_pd(a[1])};
}

INLINE __m256d filter(const struct coefs *k, __m256d in, __m256d in1, __m256d in2, __m256d out1, __m256d out2)
{
	__m256d v = _mm256_fmadd_pd(k->b1, in1, _mm256_mul_pd(k->b0, in));
	v = _mm256_fmadd_pd(k->b2, in2, v);
	v = _mm256_fnmadd_pd(k->a2, out2, v);
	return _mm256_fnmadd_pd(k->a1, out1, v);
}

/* 1…4 channels of frames that are `step` samples long. */
INLINE void run(const struct coefs *shelf, const struct coefs *pass, struct kweight_channel *state, double *energy,
	const float *x, unsigned step, size_t n_frames, unsigned lanes)
{
	double v[7][4] = {{0}};
	for (unsigned l = 0; l < lanes; l++) {
		v[0][l] = state[l].x1;
		v[1][l] = state[l].x2;
		v[2][l] = state[l].y1;
		v[3][l] = state[l].y2;
		v[4][l] = state[l].z1;
		v[5][l] = state[l].z2;
	}
	__m256d x1 = _mm256_loadu_pd(v[0]), x2 = _mm256_loadu_pd(v[1]), y1 = _mm256_loadu_pd(v[2]);
	__m256d y2 = _mm256_loadu_pd(v[3]), z1 = _mm256_loadu_pd(v[4]), z2 = _mm256_loadu_pd(v[5]);
	__m256d sum = _mm256_setzero_pd();
	for (size_t f = 0; f < n_frames; f++, x += step) {
		__m256d x0 = load(x, lanes);
		__m256d y0 = filter(shelf, x0, x1, x2, y1, y2);
		__m256d z0 = filter(pass, y0, y1, y2, z1, z2);
		sum = _mm256_fmadd_pd(z0, z0, sum);
		x2 = x1, x1 = x0;
		y2 = y1, y1 = y0;
		z2 = z1, z1 = z0;
	}
	_mm256_storeu_pd(v[0], x1);
	_mm256_storeu_pd(v[1], x2);
	_mm256_storeu_pd(v[2], y1);
	_mm256_storeu_pd(v[3], y2);
	_mm256_storeu_pd(v[4], z1);
	_mm256_storeu_pd(v[5], z2);
	_mm256_storeu_pd(v[6], sum);
	for (unsigned l = 0; l < lanes; l++) {
		energy[l] += v[6][l];
		state[l] = (struct kweight_channel){kweight_settle(v[0][l]), kweight_settle(v[1][l]), kweight_settle(v[2][l]),
			kweight_settle(v[3][l]), kweight_settle(v[4][l]), kweight_settle(v[5][l])};
	}
}

void kweight_avx2_energy(const struct kweight_filter *filter, struct kweight_channel *state, double *energy,
	const float *x, unsigned channels, size_t n_frames)
{
	const struct coefs shelf = coefs_of(filter->shelf_b, filter->shelf_a);
	const struct coefs pass = coefs_of(filter->pass_b, filter->pass_a);
	unsigned c = 0;
	for (; c + 4 <= channels; c += 4)
		run(&shelf, &pass, state + c, energy + c, x + c, channels, n_frames, 4);
	switch (channels - c) {
	case 3:
		run(&shelf, &pass, state + c, energy + c, x + c, channels, n_frames, 3);
		break;
	case 2:
		run(&shelf, &pass, state + c, energy + c, x + c, channels, n_frames, 2);
		break;
	case 1:
		run(&shelf, &pass, state + c, energy + c, x + c, channels, n_frames, 1);
		break;
	default:
		break;
	}
}
