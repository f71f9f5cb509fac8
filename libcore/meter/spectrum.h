/*
 * Power spectra of pairs of real signals, in float and fast: for pictures, where thousands of them are needed.  Windowed
 * by Hann; a sine of full scale that lies on a bin has the power 1 there.
 */
#ifndef METER_SPECTRUM_H
#define METER_SPECTRUM_H

#include "base/err.h"

#include <stddef.h>

#define SPECTRUM_MIN_POINTS 64u
#define SPECTRUM_MAX_POINTS 65536u

struct spectrum {
	size_t n_points;          /* a power of two */
	float *memory;            /* of all that follows */
	float *window;            /* n_points */
	float *roots_re, *roots_im; /* n_points: exp(-2 pi i k / n_points) */
	float *re[2], *im[2];     /* n_points each: the signal, and where passes put their results */
};

/* n_points: a power of two, SPECTRUM_MIN_POINTS…SPECTRUM_MAX_POINTS.  Allocates.  Returns: ERR_OK, ERR_ARG, ERR_NOMEM. */
enum err spectrum_init(struct spectrum *s, size_t n_points) WEIR_MUSTUSE;
void spectrum_release(struct spectrum *s);

/* The length whose window lasts about 85 ms at this rate. */
size_t spectrum_points(unsigned rate_hz);

/*
 * Adds the powers of both signals, a and b (n_points each, stride samples apart; b NULL: one signal), to
 * power[0…n_points/2].  Allocates nothing.
 */
void spectrum_add(struct spectrum *s, float *power, const float *a, const float *b, size_t stride);

#endif
