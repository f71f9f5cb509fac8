/*
 * libsoxr behind one shape: streaming, bounded memory, output aligned and of exact length round(n·out/in).
 */
#ifndef MEDIA_RESAMPLER_H
#define MEDIA_RESAMPLER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum resampler_quality { RESAMPLER_QUICK, RESAMPLER_LOW, RESAMPLER_MEDIUM, RESAMPLER_HIGH, RESAMPLER_VERY_HIGH };
enum resampler_phase { RESAMPLER_LINEAR, RESAMPLER_INTERMEDIATE, RESAMPLER_MINIMUM };

struct resampler; /* resampler.c */

struct resampler_options {
	uint32_t in_hz, out_hz;
	uint16_t channels;
	enum resampler_quality quality;
	enum resampler_phase phase;
	unsigned n_threads;       /* channels are split over these; 0 or 1: the caller's thread */
};

/* Interleaved f32 in and out.  Allocates; libsoxr allocates a little more in its first blocks. */
enum err resampler_new(struct resampler **r, const struct resampler_options *o, struct err_why *why) WEIR_MUSTUSE;
/*
 * Up to n_in frames in (*n_in becomes what was taken), up to *n_out frames out (*n_out becomes what was made).
 * The sum of output never passes round(total in · out/in) until finished.
 */
enum err resampler_run(struct resampler *r, const float *in, size_t *n_in, float *out, size_t *n_out) WEIR_MUSTUSE;
/* No more input: call until *n_out comes back 0.  The total is then exactly round(n·out/in). */
enum err resampler_finish(struct resampler *r, float *out, size_t *n_out) WEIR_MUSTUSE;
/* Begin anew: after a hole. */
enum err resampler_restart(struct resampler *r) WEIR_MUSTUSE;
void resampler_free(struct resampler *r);

#endif
