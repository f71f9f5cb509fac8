/*
 * Conversions between the stream's sample formats, and from the odd formats that files hold.
 *
 * Full scale is 1.0 in the float formats and 2^(bits-1) in the integer ones, both ways, so integer -> float -> integer
 * is exact as long as the float holds the bits (f32: 24, f64: all), and 1.0 itself is one step too high for an integer.
 *
 * Widening is exact.  Narrowing rounds to nearest, ties to even, and saturates; a sample whose rounded value lies
 * outside the target's range is counted as clipped.  NaN becomes 0.  Integers never pass through a float.
 *
 * With dither, triangular noise of 2 steps of the target peak to peak is added before rounding.  It is applied where
 * precision is lost on the way to 16 or 24 bits; elsewhere the flag does nothing.  The noise depends on the seed and
 * on the number of samples since convert_init(), not on how the samples were split into calls, nor on the processor.
 */
#ifndef DSP_CONVERT_H
#define DSP_CONVERT_H

#include "base/err.h"
#include "base/role.h"
#include "wire/track.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONVERT_LANES 16u

/* The noise's generator: one xorshift32 for each of 16 lanes; sample k of a run of the converter takes lane k mod 16. */
struct convert_noise {
	uint32_t lane[CONVERT_LANES]; /* never 0 */
	uint32_t next;                /* lane of the next sample, 0…15 */
};

typedef size_t convert_fn(struct convert_noise *noise, void *dst, const void *src, size_t n_samples);

struct convert {
	enum sample from, to;
	bool dithers;   /* the flag was given and this pair loses precision */
	convert_fn *fn; /* never NULL after convert_init() */
	struct convert_noise noise;
};

/* Bytes of one sample of a format; 0 for SAMPLE_CODED and what is not a format. */
size_t convert_sample_bytes(enum sample format);

/*
 * Make *c convert from one PCM format to another.  Allocates nothing, holds nothing: there is no release.
 * Two converters of one seed make the same noise; give each track its own.
 * Returns: ERR_OK, or ERR_ARG where a format is not PCM.
 */
enum err convert_init(struct convert *c, enum sample from, enum sample to, bool dither, uint32_t seed) WEIR_MUSTUSE;

/*
 * Convert n_samples (frames times channels).  Buffers have any alignment and do not overlap, except that dst may
 * be src where the target's samples are not wider.
 * Role: any; allocates nothing.
 * Returns: how many samples clipped.
 */
WEIR_DEADLINE static inline size_t convert_run(struct convert *c, void *dst, const void *src, size_t n_samples)
{
	return c->fn(&c->noise, dst, src, n_samples);
}

/*
 * Reverse the bytes of each sample: big-endian to little-endian and back.  sample_bytes is 1, 2, 3, 4 or 8.
 * dst may be src; otherwise they do not overlap.  Role: any.
 */
WEIR_DEADLINE void convert_swap(void *dst, const void *src, size_t n_samples, size_t sample_bytes);

/* 8-bit samples to s16: unsigned (128 is zero), signed, and the two of ITU-T G.711.  Role: any. */
WEIR_DEADLINE void convert_from_u8(int16_t *dst, const uint8_t *src, size_t n_samples);
WEIR_DEADLINE void convert_from_s8(int16_t *dst, const uint8_t *src, size_t n_samples);
WEIR_DEADLINE void convert_from_alaw(int16_t *dst, const uint8_t *src, size_t n_samples);
WEIR_DEADLINE void convert_from_ulaw(int16_t *dst, const uint8_t *src, size_t n_samples);

/*
 * The versions convert_init() chooses from; for tests.  from and to are PCM and differ.
 * Returns: the function; from convert_avx2_pick() NULL off x86-64.
 */
convert_fn *convert_c_pick(enum sample from, enum sample to, bool dithers);
convert_fn *convert_avx2_pick(enum sample from, enum sample to, bool dithers);

/* True where dither has something to do for this pair. */
bool convert_loses(enum sample from, enum sample to);

#endif
