/*
 * libsoxr behind one shape: streaming, bounded memory, output aligned and of exact length round(n·out/in).
 */
#ifndef MEDIA_RESAMPLER_H
#define MEDIA_RESAMPLER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum resampler_quality { RESAMPLER_QUICK, RESAMPLER_LOW, RESAMPLER_MEDIUM, RESAMPLER_HIGH, RESAMPLER_VERY_HIGH };
enum resampler_phase { RESAMPLER_LINEAR, RESAMPLER_INTERMEDIATE, RESAMPLER_MINIMUM };

/* Between the rates, either way, less than this: with more, libsoxr takes memory without bounds, or crashes. */
#define RESAMPLER_MAX_RATIO 5000u

struct resampler; /* resampler.c */

struct resampler_options {
	uint32_t in_hz, out_hz;
	uint16_t channels;
	enum resampler_quality quality;
	enum resampler_phase phase;
	bool is_double;           /* samples are f64, in and out; else f32 */
	bool is_planar;           /* `in` and `out` are arrays of a pointer a channel; else interleaved samples */
	unsigned n_threads;       /* planar: channels are split over these, the caller's among them; 0 or 1: that one alone */
};

/*
 * Allocates; libsoxr allocates more in its first blocks, until its queues are as long as they get.
 * Returns: ERR_OK; ERR_ARG (a rate or channel count of 0, threads without planes), ERR_LIMIT (the ratio), ERR_NOMEM, ERR_CODEC
 * from libsoxr.
 */
enum err resampler_new(struct resampler **r, const struct resampler_options *o, struct err_why *why) WEIR_MUSTUSE;
/*
 * Up to n_in frames into it (*n_in becomes what was taken), up to *n_out frames out (*n_out becomes what was made).
 * The sum of output never passes round(total in · out/in) until finished.
 */
enum err resampler_run(struct resampler *r, const void *in, size_t *n_in, void *out, size_t *n_out) WEIR_MUSTUSE;
/*
 * The same in two calls, so that the threads work meanwhile: frames at `in` and `out` are the resampler's until
 * resampler_wait() says what was taken and made, as resampler_run() does.  In between no other call but that one.
 * Without threads the work is done in the first.
 */
enum err resampler_start(struct resampler *r, const void *in, size_t n_in, void *out, size_t n_out) WEIR_MUSTUSE;
enum err resampler_wait(struct resampler *r, size_t *n_in, size_t *n_out) WEIR_MUSTUSE;
/* No more input: call until *n_out comes back 0.  The total is then exactly round(n·out/in). */
enum err resampler_finish(struct resampler *r, void *out, size_t *n_out) WEIR_MUSTUSE;
/*
 * Begin, or begin anew, at position in_pos of a timeline in frames.  Output frame k is the signal at k/out seconds of
 * that timeline, so frames behind a hole are what they would be had the hole been silence.  *out_pos, the position of
 * the first frame that will come, is round(in_pos·out/in); n frames more in, and the total ends at round((in_pos + n)·out/in).
 */
enum err resampler_place(struct resampler *r, int64_t in_pos, int64_t *out_pos) WEIR_MUSTUSE;
void resampler_free(struct resampler *r);

#endif
