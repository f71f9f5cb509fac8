/*
 * What every kernel test shares: a seeded generator, buffers that end at a page nobody may touch and are watched
 * on their other side, TAP lines, and the benchmark's clock.
 */
#ifndef KERN_H
#define KERN_H

#include "base/err.h"
#include "dsp/dsp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERN_MAX_LEN 257   /* lengths 0…257 */
#define KERN_OFFSETS 16    /* bytes from the end of the buffer to the page */

/* xorshift64*: the state is the seed, never 0. */
uint64_t kern_rand(void);
double kern_uniform(void); /* -1…1 */
void kern_seed(uint64_t seed);

/* A float of the kinds that break kernels: mostly within ±1.2, also NaN, infinities, denormals, -0 and ±full scale. */
float kern_nasty(void);

/* n samples for a test: nasty ones, or finite ones within ±1.2.  The same pool read from a random place. */
void kern_fill(float *x, size_t n);
void kern_fill_finite(float *x, size_t n);

/* Equal to the bit, or both NaN. */
bool kern_same(const float *a, const float *b, size_t n);

/* One buffer, made once; not released before the end. */
struct kern_buf {
	uint8_t *base, *end; /* end is the forbidden page */
};
void kern_buf_open(struct kern_buf *b, size_t n_bytes);
/* The place for n_bytes that end `offset` bytes before the page; everything is filled with a known pattern. */
void *kern_place(struct kern_buf *b, size_t n_bytes, size_t offset);
/* True if nothing but the n_bytes placed has changed. */
bool kern_is_clean(const struct kern_buf *b, size_t n_bytes, size_t offset);

/* One TAP line.  Returns: ok. */
bool kern_ok(bool ok, const char *fmt, ...) WEIR_PRINTF(2, 3);
void kern_note(const char *fmt, ...) WEIR_PRINTF(1, 2);
#define kern_near(got, want, bound, ...) kern_near_at((got), (want), (bound), __VA_ARGS__)
bool kern_near_at(double got, double want, double bound, const char *fmt, ...) WEIR_PRINTF(4, 5);

/* Nanoseconds of one call: the best of several batches. */
double kern_time_ns(void (*call)(void *), void *arg);
/* Time two versions (fast may be NULL) and print a row. */
void kern_bench(const char *name, void (*c)(void *), void *c_arg, void (*fast)(void *), void *fast_arg);

/* The definitions, and what this processor (and WEIR_CPU) allows. */
extern struct dsp kern_c, kern_fast;

/* Channel counts that take every path: small, odd, a power of two, groups of eight with and without a rest. */
#define KERN_N_CHANNELS 12
#define KERN_MAX_CHANNELS 33
extern const unsigned kern_channels[KERN_N_CHANNELS];

/* The parts, each in a kern_NAME.c; bench says that the rows are wanted instead of the checks. */
void kern_convert(bool bench);
void kern_interleave(bool bench);
void kern_gain(bool bench);
void kern_galois(bool bench);
void kern_matrix(bool bench);
void kern_levels(bool bench);
void kern_truepeak(bool bench);
void kern_kweight(bool bench);
void kern_limiter(bool bench);
void kern_varirate(bool bench);

#endif
