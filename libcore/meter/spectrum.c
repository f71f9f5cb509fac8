#include "meter/spectrum.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Stockham's transform: every pass reads one buffer and writes another, in order, so nothing is shuffled at the end.
 * Passes of radix 4, and one of radix 2 where the length is no power of four.  From the second pass on the innermost
 * loop runs over neighbours that share their roots, four at a time.
 *
 * The two real signals are one complex one, z = a + ib; the sum of their powers needs no taking apart:
 * |A[k]|² + |B[k]|² = (|Z[k]|² + |Z[-k]|²) / 2.
 */

#define SKEW_POINTS 80u               /* a multiple of 16: 64 bytes */

typedef float four __attribute__((vector_size(16)));

struct points {
	float *re, *im;
};

enum err spectrum_init(struct spectrum *s, size_t n_points)
{
	memset(s, 0, sizeof(*s));
	if (n_points < SPECTRUM_MIN_POINTS || n_points > SPECTRUM_MAX_POINTS || n_points & (n_points - 1))
		return ERR_ARG;
	/*
	 * Points a quarter of the length apart are read at once.  Were the arrays apart by a power of two as well, all of them
	 * would want the same few lines of the cache.
	 */
	float **const parts[] = { &s->window, &s->roots_re, &s->roots_im, &s->re[0], &s->im[0], &s->re[1], &s->im[1] };
	size_t step = n_points + SKEW_POINTS;
	s->memory = aligned_alloc(64, ARRAY_LEN(parts) * step * sizeof(float));
	if (!s->memory)
		return ERR_NOMEM;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		*parts[i] = s->memory + i * step;
	s->n_points = n_points;
	for (size_t k = 0; k < n_points; k++) {
		double angle = 2.0 * M_PI * (double)k / (double)n_points;
		s->roots_re[k] = (float)cos(angle);
		s->roots_im[k] = (float)-sin(angle);
		/* The window's sum is n/2, and a sine has half of its amplitude at +f: 4/n makes 1 of it. */
		s->window[k] = (float)((0.5 - 0.5 * cos(angle)) * 4.0 / (double)n_points);
	}
	return ERR_OK;
}

void spectrum_release(struct spectrum *s)
{
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

size_t spectrum_points(unsigned rate_hz)
{
	size_t n = SPECTRUM_MIN_POINTS;
	while (n < SPECTRUM_MAX_POINTS && (double)n * 1.4 < 0.085 * rate_hz)
		n *= 2;
	return n;
}

/* The first pass: neighbours have roots of their own. */
static void pass_first(const struct spectrum *s, struct points x, struct points y)
{
	size_t l = s->n_points / 4;
	for (size_t j = 0; j < l; j++) {
		float a_re = x.re[j] + x.re[j + 2 * l], a_im = x.im[j] + x.im[j + 2 * l];
		float b_re = x.re[j] - x.re[j + 2 * l], b_im = x.im[j] - x.im[j + 2 * l];
		float c_re = x.re[j + l] + x.re[j + 3 * l], c_im = x.im[j + l] + x.im[j + 3 * l];
		/* -i times the difference */
		float d_re = x.im[j + l] - x.im[j + 3 * l], d_im = x.re[j + 3 * l] - x.re[j + l];
		float p_re = b_re + d_re, p_im = b_im + d_im, q_re = a_re - c_re, q_im = a_im - c_im;
		float r_re = b_re - d_re, r_im = b_im - d_im;
		float u_re = s->roots_re[j], u_im = s->roots_im[j], v_re = s->roots_re[2 * j], v_im = s->roots_im[2 * j];
		float w_re = s->roots_re[3 * j], w_im = s->roots_im[3 * j];
		y.re[4 * j] = a_re + c_re;
		y.im[4 * j] = a_im + c_im;
		y.re[4 * j + 1] = p_re * u_re - p_im * u_im;
		y.im[4 * j + 1] = p_re * u_im + p_im * u_re;
		y.re[4 * j + 2] = q_re * v_re - q_im * v_im;
		y.im[4 * j + 2] = q_re * v_im + q_im * v_re;
		y.re[4 * j + 3] = r_re * w_re - r_im * w_im;
		y.im[4 * j + 3] = r_re * w_im + r_im * w_re;
	}
}

static inline four load(const float *at)
{
	return *(const four *)(const void *)at;
}

static inline void store(float *at, four v)
{
	*(four *)(void *)at = v;
}

/* m neighbours share a root; m is a multiple of 4, and 4 l m points are all. */
static void pass_four(const struct spectrum *s, struct points x, struct points y, size_t l, size_t m)
{
	for (size_t j = 0; j < l; j++) {
		float u_re = s->roots_re[j * m], u_im = s->roots_im[j * m];
		float v_re = s->roots_re[2 * j * m], v_im = s->roots_im[2 * j * m];
		float w_re = s->roots_re[3 * j * m], w_im = s->roots_im[3 * j * m];
		const float *re = x.re + j * m, *im = x.im + j * m;
		float *to_re = y.re + 4 * j * m, *to_im = y.im + 4 * j * m;
		for (size_t k = 0; k < m; k += 4) {
			four x0_re = load(re + k), x1_re = load(re + k + l * m), x2_re = load(re + k + 2 * l * m), x3_re = load(re + k + 3 * l * m);
			four x0_im = load(im + k), x1_im = load(im + k + l * m), x2_im = load(im + k + 2 * l * m), x3_im = load(im + k + 3 * l * m);
			four a_re = x0_re + x2_re, a_im = x0_im + x2_im, b_re = x0_re - x2_re, b_im = x0_im - x2_im;
			four c_re = x1_re + x3_re, c_im = x1_im + x3_im, d_re = x1_im - x3_im, d_im = x3_re - x1_re;
			four p_re = b_re + d_re, p_im = b_im + d_im, q_re = a_re - c_re, q_im = a_im - c_im;
			four r_re = b_re - d_re, r_im = b_im - d_im;
			store(to_re + k, a_re + c_re);
			store(to_im + k, a_im + c_im);
			store(to_re + k + m, p_re * u_re - p_im * u_im);
			store(to_im + k + m, p_re * u_im + p_im * u_re);
			store(to_re + k + 2 * m, q_re * v_re - q_im * v_im);
			store(to_im + k + 2 * m, q_re * v_im + q_im * v_re);
			store(to_re + k + 3 * m, r_re * w_re - r_im * w_im);
			store(to_im + k + 3 * m, r_re * w_im + r_im * w_re);
		}
	}
}

/* The last pass where the length is twice a power of four: its root is 1. */
static void pass_two(const struct spectrum *s, struct points x, struct points y)
{
	size_t m = s->n_points / 2;
	for (size_t k = 0; k < m; k += 4) {
		four a_re = load(x.re + k), a_im = load(x.im + k), b_re = load(x.re + k + m), b_im = load(x.im + k + m);
		store(y.re + k, a_re + b_re);
		store(y.im + k, a_im + b_im);
		store(y.re + k + m, a_re - b_re);
		store(y.im + k + m, a_im - b_im);
	}
}

/* The transform of re[0], im[0].  Returns: where it is. */
static struct points transform(struct spectrum *s)
{
	struct points x = { s->re[0], s->im[0] }, y = { s->re[1], s->im[1] }, t;
	size_t l = s->n_points / 4, m = 1;
	pass_first(s, x, y);
	for (l /= 4, m *= 4; l >= 1; l /= 4, m *= 4) {
		t = x, x = y, y = t;
		pass_four(s, x, y, l, m);
	}
	if (m == s->n_points)
		return y;
	pass_two(s, y, x);
	return x;
}

void spectrum_add(struct spectrum *s, float *power, const float *a, const float *b, size_t stride)
{
	size_t n = s->n_points;
	for (size_t i = 0; i < n; i++) {
		s->re[0][i] = a[i * stride] * s->window[i];
		s->im[0][i] = b ? b[i * stride] * s->window[i] : 0.0f;
	}
	struct points z = transform(s);
	power[0] += z.re[0] * z.re[0] + z.im[0] * z.im[0];
	for (size_t k = 1; k <= n / 2; k++) {
		float p = z.re[k] * z.re[k] + z.im[k] * z.im[k], q = z.re[n - k] * z.re[n - k] + z.im[n - k] * z.im[n - k];
		power[k] += 0.5f * (p + q);
	}
}
