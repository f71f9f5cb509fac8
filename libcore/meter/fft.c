#include "meter/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err fft_init(struct fft *f, size_t n_points)
{
	memset(f, 0, sizeof(*f));
	if (n_points < 2 || n_points > (size_t)1 << 26 || n_points & (n_points - 1))
		return ERR_ARG;
	f->roots = malloc(n_points / 2 * sizeof(*f->roots));
	if (!f->roots)
		return ERR_NOMEM;
	f->n_points = n_points;
	for (size_t k = 0; k < n_points / 2; k++) {
		double angle = -2.0 * M_PI * (double)k / (double)n_points;
		f->roots[k] = (struct fft_point){ cos(angle), sin(angle) };
	}
	return ERR_OK;
}

void fft_release(struct fft *f)
{
	free(f->roots);
	memset(f, 0, sizeof(*f));
}

static void swap_points(struct fft_point *a, struct fft_point *b)
{
	struct fft_point t = *a;
	*a = *b;
	*b = t;
}

/* Order by mirrored index bits. */
static void mirror_order(struct fft_point *x, size_t n)
{
	for (size_t i = 1, j = 0; i < n; i++) {
		size_t bit = n >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j)
			swap_points(&x[i], &x[j]);
	}
}

void fft_run(const struct fft *f, struct fft_point *x)
{
	size_t n = f->n_points;
	mirror_order(x, n);
	for (size_t half = 1; half < n; half *= 2) {
		size_t step = n / (2 * half);
		for (size_t from = 0; from < n; from += 2 * half) {
			for (size_t k = 0; k < half; k++) {
				struct fft_point w = f->roots[k * step];
				struct fft_point *a = &x[from + k], *b = a + half;
				struct fft_point t = { b->re * w.re - b->im * w.im, b->re * w.im + b->im * w.re };
				*b = (struct fft_point){ a->re - t.re, a->im - t.im };
				*a = (struct fft_point){ a->re + t.re, a->im + t.im };
			}
		}
	}
}

/*
 * With Z the transform of a + ib:  A = (Z[k] + conj Z[-k]) / 2,  B = (Z[k] - conj Z[-k]) / 2i.  The product A conj(B)
 * goes back by a forward transform of its conjugate, since the result is real.
 */
void fft_correlate(const struct fft *f, struct fft_point *z)
{
	size_t n = f->n_points;
	fft_run(f, z);
	for (size_t k = 0; k <= n / 2; k++) {
		size_t m = (n - k) % n;
		struct fft_point p = z[k], q = z[m];
		struct fft_point a = { (p.re + q.re) / 2, (p.im - q.im) / 2 };
		struct fft_point b = { (p.im + q.im) / 2, (q.re - p.re) / 2 };
		struct fft_point c = { a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im };
		z[k] = (struct fft_point){ c.re, -c.im };
		z[m] = c;
	}
	fft_run(f, z);
	for (size_t k = 0; k < n; k++)
		z[k] = (struct fft_point){ z[k].re / (double)n, 0 };
}
