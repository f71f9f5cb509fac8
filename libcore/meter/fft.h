/*
 * Fourier transform of a power of two points, complex, double: for finding an offset, not for the audio path.
 */
#ifndef METER_FFT_H
#define METER_FFT_H

#include "base/err.h"

#include <stddef.h>

struct fft_point {
	double re, im;
};

struct fft {
	size_t n_points;          /* a power of two */
	struct fft_point *roots;  /* n_points/2: exp(-2 pi i k / n_points) */
};

/* n_points: a power of two, 2…2^26.  Allocates.  Returns: ERR_OK, ERR_ARG, ERR_NOMEM. */
enum err fft_init(struct fft *f, size_t n_points) WEIR_MUSTUSE;
void fft_release(struct fft *f);

/* In place: x[k] = sum of x[n] exp(-2 pi i k n / n_points). */
void fft_run(const struct fft *f, struct fft_point *x);

/*
 * Cross-correlation of two real signals: z holds a in re and b in im, and is overwritten:
 * z[lag].re = sum over n of a[(n + lag) mod n_points] b[n], lag 0…n_points-1.
 */
void fft_correlate(const struct fft *f, struct fft_point *z);

#endif
