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
typedef float four_anywhere __attribute__((vector_size(16), aligned(4)));
#ifndef __clang__
typedef int four_places __attribute__((vector_size(16)));
#endif

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

/* Of a and b, which are one row of eight, four in this order. */
#ifdef __clang__
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (four_places){ i, j, k, l })
#endif

static inline four load(const float *at)
{
	return *(const four *)(const void *)at;
}

static inline void store(float *at, four v)
{
	*(four *)(void *)at = v;
}

/* Four rows of four as four columns, one behind the other. */
static inline void store_columns(float *at, four a, four b, four c, four d)
{
	four ab_low = PICK(a, b, 0, 4, 1, 5), ab_high = PICK(a, b, 2, 6, 3, 7);
	four cd_low = PICK(c, d, 0, 4, 1, 5), cd_high = PICK(c, d, 2, 6, 3, 7);
	store(at, PICK(ab_low, cd_low, 0, 1, 4, 5));
	store(at + 4, PICK(ab_low, cd_low, 2, 3, 6, 7));
	store(at + 8, PICK(ab_high, cd_high, 0, 1, 4, 5));
	store(at + 12, PICK(ab_high, cd_high, 2, 3, 6, 7));
}

/* The first pass: neighbours have roots of their own, and their results lie between each other. */
static void pass_first(const struct spectrum *s, struct points x, struct points y)
{
	size_t l = s->n_points / 4;
	const float *r_re = s->roots_re, *r_im = s->roots_im;
	for (size_t j = 0; j < l; j += 4) {
		four x0_re = load(x.re + j), x1_re = load(x.re + j + l), x2_re = load(x.re + j + 2 * l), x3_re = load(x.re + j + 3 * l);
		four x0_im = load(x.im + j), x1_im = load(x.im + j + l), x2_im = load(x.im + j + 2 * l), x3_im = load(x.im + j + 3 * l);
		/* d is -i times the difference. */
		four a_re = x0_re + x2_re, a_im = x0_im + x2_im, b_re = x0_re - x2_re, b_im = x0_im - x2_im;
		four c_re = x1_re + x3_re, c_im = x1_im + x3_im, d_re = x1_im - x3_im, d_im = x3_re - x1_re;
		four p_re = b_re + d_re, p_im = b_im + d_im, q_re = a_re - c_re, q_im = a_im - c_im;
		four o_re = b_re - d_re, o_im = b_im - d_im;
		four u_re = load(r_re + j), u_im = load(r_im + j);
		four v_re = { r_re[2 * j], r_re[2 * j + 2], r_re[2 * j + 4], r_re[2 * j + 6] };
		four v_im = { r_im[2 * j], r_im[2 * j + 2], r_im[2 * j + 4], r_im[2 * j + 6] };
		four w_re = u_re * v_re - u_im * v_im, w_im = u_re * v_im + u_im * v_re;
		store_columns(y.re + 4 * j, a_re + c_re, p_re * u_re - p_im * u_im, q_re * v_re - q_im * v_im, o_re * w_re - o_im * w_im);
		store_columns(y.im + 4 * j, a_im + c_im, p_re * u_im + p_im * u_re, q_re * v_im + q_im * v_re, o_re * w_im + o_im * w_re);
	}
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

/* Two channels side by side, the usual case, four frames at a time. */
static void window_pair(struct points x, const float *window, const float *frames, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		four low = *(const four_anywhere *)(const void *)(frames + 2 * i), high = *(const four_anywhere *)(const void *)(frames + 2 * i + 4);
		store(x.re + i, PICK(low, high, 0, 2, 4, 6) * load(window + i));
		store(x.im + i, PICK(low, high, 1, 3, 5, 7) * load(window + i));
	}
}

void spectrum_add(struct spectrum *s, float *power, const float *a, const float *b, size_t stride)
{
	size_t n = s->n_points;
	struct points z = { s->re[0], s->im[0] };
	const float *window = s->window;
	if (stride == 2 && b == a + 1) {
		window_pair(z, window, a, n);
	} else {
		for (size_t i = 0; i < n; i++) {
			z.re[i] = a[i * stride] * window[i];
			z.im[i] = b ? b[i * stride] * window[i] : 0.0f;
		}
	}
	z = transform(s);
	power[0] += z.re[0] * z.re[0] + z.im[0] * z.im[0];
	for (size_t k = 1; k <= n / 2; k++) {
		float p = z.re[k] * z.re[k] + z.im[k] * z.im[k], q = z.re[n - k] * z.re[n - k] + z.im[n - k] * z.im[n - k];
		power[k] += 0.5f * (p + q);
	}
}
