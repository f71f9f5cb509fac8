/*
 * To stereo from one or two channels, the mixes that there are most of, four frames make a vector: each input is
 * spread over both outputs and meets its two coefficients.
 *
 * Otherwise a block of frames is split into planes on the stack, each output plane is summed from them, and the
 * result is joined again.  More channels than the stack has room for go through the C version.
 */
#include "dsp/matrix.h"

#include "dsp/gain.h"
#include "dsp/interleave.h"
#include "dsp/inline.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BLOCK_FRAMES 64u
#define MAX_CHANNELS 32u

/* How an output's coefficients move: a constant, or a line through frame numbers. */
struct slope {
	const float *from, *to; /* to is NULL for constants */
	float n_frames;
	size_t first; /* number of the first frame */
};

INLINE __m256 slope_at(const struct slope *s, size_t index, __m256 number)
{
	const __m256 from = _mm256_set1_ps(s->from[index]);
	if (!s->to)
		return from;
	float step = (s->to[index] - s->from[index]) / s->n_frames;
	return _mm256_add_ps(from, _mm256_mul_ps(number, _mm256_set1_ps(step)));
}

INLINE bool is_connected(const struct slope *s, size_t index)
{
	return s->from[index] != 0.0f || (s->to && s->to[index] != 0.0f);
}

#define STRIDE_FRAMES 32u /* four vectors: as many sums as hide the delay of an addition */

/* One output plane; the planes are filled up to a multiple of STRIDE_FRAMES. */
INLINE void sum_plane(float *out, const float (*in)[BLOCK_FRAMES], unsigned in_channels, size_t n_frames,
	const struct slope *slope, size_t index)
{
	const __m256 count = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
	for (size_t f = 0; f < n_frames; f += STRIDE_FRAMES) {
		__m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
		for (unsigned i = 0; i < in_channels; i++) {
			if (!is_connected(slope, index + i))
				continue;
			UNROLL
			for (unsigned v = 0; v < 4; v++) {
				__m256 number = _mm256_add_ps(_mm256_set1_ps((float)(slope->first + f + 8 * v)), count);
				__m256 coef = slope_at(slope, index + i, number);
				sum[v] = _mm256_add_ps(sum[v], _mm256_mul_ps(coef, _mm256_loadu_ps(in[i] + f + 8 * v)));
			}
		}
		UNROLL
		for (unsigned v = 0; v < 4; v++)
			_mm256_storeu_ps(out + f + 8 * v, sum[v]);
	}
}

INLINE void run(bool adds, float *dst, unsigned out_channels, const float *src, unsigned in_channels,
	struct slope slope, size_t n_frames)
{
	float in[MAX_CHANNELS][BLOCK_FRAMES], out[MAX_CHANNELS][BLOCK_FRAMES], joined[MAX_CHANNELS * BLOCK_FRAMES];
	float *in_planes[MAX_CHANNELS];
	const size_t first = slope.first;
	const float *out_planes[MAX_CHANNELS];
	for (unsigned i = 0; i < MAX_CHANNELS; i++) {
		in_planes[i] = in[i];
		out_planes[i] = out[i];
	}
	for (size_t f = 0; f < n_frames; f += BLOCK_FRAMES) {
		size_t n = n_frames - f < BLOCK_FRAMES ? n_frames - f : BLOCK_FRAMES;
		interleave_avx2_split(in_planes, src + f * in_channels, in_channels, n);
		for (unsigned i = 0; n % STRIDE_FRAMES && i < in_channels; i++)
			memset(in[i] + n, 0, (STRIDE_FRAMES - n % STRIDE_FRAMES) * sizeof(in[i][0]));
		slope.first = first + f;
		for (unsigned o = 0; o < out_channels; o++)
			sum_plane(out[o], (const float(*)[BLOCK_FRAMES])in, in_channels, n, &slope, (size_t)o * in_channels);
		if (adds) {
			interleave_avx2_join(joined, out_planes, out_channels, n);
			gain_avx2_add(dst + f * out_channels, joined, n * out_channels, 1.0f);
		} else {
			interleave_avx2_join(dst + f * out_channels, out_planes, out_channels, n);
		}
	}
}

/* Compiled once, where the last few frames are not worth more. */
static __attribute__((noinline)) void run_rest(bool adds, float *dst, unsigned out_channels, const float *src,
	unsigned in_channels, struct slope slope, size_t n_frames)
{
	run(adds, dst, out_channels, src, in_channels, slope, n_frames);
}

/* What one input gives to both outputs of four frames: nothing in a lane that is not connected. */
INLINE __m256 share(__m256 x, __m256 from, __m256 step, __m256 number, __m256 connected)
{
	__m256 coef = _mm256_add_ps(from, _mm256_mul_ps(number, step));
	return _mm256_and_ps(_mm256_mul_ps(coef, x), connected);
}

/* An input's coefficients to left and right, over and over. */
INLINE __m256 two_of(float left, float right)
{
	return _mm256_setr_ps(left, right, left, right, left, right, left, right);
}

INLINE void to_stereo(bool adds, float *dst, const float *src, unsigned in_channels, struct slope slope, size_t n_frames)
{
	__m256 from[2], step[2], connected[2];
	for (unsigned i = 0; i < in_channels; i++) {
		const float *a = slope.from, *b = slope.to ? slope.to : slope.from;
		float n = slope.to ? slope.n_frames : 1.0f;
		unsigned left = i, right = in_channels + i;
		from[i] = two_of(a[left], a[right]);
		step[i] = two_of((b[left] - a[left]) / n, (b[right] - a[right]) / n);
		connected[i] = _mm256_cmp_ps(two_of(is_connected(&slope, left), is_connected(&slope, right)), _mm256_setzero_ps(),
			_CMP_NEQ_OQ);
	}
	const __m256 count = _mm256_setr_ps(0, 0, 1, 1, 2, 2, 3, 3);
	size_t f = 0;
	for (; f + 4 <= n_frames; f += 4) {
		__m256 number = _mm256_add_ps(_mm256_set1_ps((float)f), count), sum = _mm256_setzero_ps();
		if (in_channels == 1) {
			__m256 four = _mm256_castps128_ps256(_mm_loadu_ps(src + f));
			__m256 x = _mm256_permutevar8x32_ps(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
			sum = _mm256_add_ps(sum, share(x, from[0], step[0], number, connected[0]));
		} else {
			__m256 x = _mm256_loadu_ps(src + 2 * f);
			sum = _mm256_add_ps(sum, share(_mm256_moveldup_ps(x), from[0], step[0], number, connected[0]));
			sum = _mm256_add_ps(sum, share(_mm256_movehdup_ps(x), from[1], step[1], number, connected[1]));
		}
		if (adds)
			sum = _mm256_add_ps(_mm256_loadu_ps(dst + 2 * f), sum);
		_mm256_storeu_ps(dst + 2 * f, sum);
	}
	slope.first = f;
	if (f < n_frames)
		run_rest(adds, dst + 2 * f, 2, src + f * in_channels, in_channels, slope, n_frames - f);
}

INLINE void choose(bool adds, float *dst, unsigned out_channels, const float *src, unsigned in_channels,
	struct slope slope, size_t n_frames)
{
	if (out_channels == 2 && in_channels == 1)
		adds ? to_stereo(true, dst, src, 1, slope, n_frames) : to_stereo(false, dst, src, 1, slope, n_frames);
	else if (out_channels == 2 && in_channels == 2)
		adds ? to_stereo(true, dst, src, 2, slope, n_frames) : to_stereo(false, dst, src, 2, slope, n_frames);
	else
		run(adds, dst, out_channels, src, in_channels, slope, n_frames);
}

void matrix_avx2_set(
	float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *coef, size_t n_frames)
{
	if (in_channels > MAX_CHANNELS || out_channels > MAX_CHANNELS)
		matrix_c_set(dst, out_channels, src, in_channels, coef, n_frames);
	else
		choose(false, dst, out_channels, src, in_channels, (struct slope){.from = coef}, n_frames);
}

void matrix_avx2_add(
	float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *coef, size_t n_frames)
{
	if (in_channels > MAX_CHANNELS || out_channels > MAX_CHANNELS)
		matrix_c_add(dst, out_channels, src, in_channels, coef, n_frames);
	else
		choose(true, dst, out_channels, src, in_channels, (struct slope){.from = coef}, n_frames);
}

void matrix_avx2_add_ramp(float *dst, unsigned out_channels, const float *src, unsigned in_channels, const float *from,
	const float *to, size_t n_frames)
{
	if (in_channels > MAX_CHANNELS || out_channels > MAX_CHANNELS)
		matrix_c_add_ramp(dst, out_channels, src, in_channels, from, to, n_frames);
	else
		choose(true, dst, out_channels, src, in_channels,
			(struct slope){.from = from, .to = to, .n_frames = (float)n_frames}, n_frames);
}
