/*
 * Variable rate: as many frames as a device or a network gives, made into as many as the other side takes, where the
 * two clocks differ by parts per million.  For ratios within 1 % of 1; other rates are resampled off the live path.
 *
 * A polyphase interpolator: a sinc of 48 taps under a Kaiser window (beta 11.2), 512 phases, and a straight line
 * between two phases.  The cut-off is half the rate, so all taps but one are 0 where an output frame falls on an input
 * frame: with a step of exactly 1 and a whole phase the output is the input, bit for bit, any bits.
 *
 * Output frame n lies at the input position that is the sum of the n steps before it: the first output frame is the
 * first input frame.  It needs the 24 frames after its place: at 48 kHz the interpolator holds 0.5 ms.
 *
 * At 48 kHz, the step in motion within ±500 ppm: a tone of 1, 10, 18 or 20 kHz has 123, 125, 113, 113 dB to everything else;
 * 0 to -0.1 dB up to 21.7 kHz; the images of what lies below 20.4 kHz are attenuated by 100 dB and more.
 *
 * Samples must be finite while the step is not 1: what is not spreads over 48 frames, and is gone after them.
 */
#ifndef DSP_VARIRATE_H
#define DSP_VARIRATE_H

#include "base/err.h"
#include "base/role.h"
#include "dsp/interleave.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARIRATE_TAPS 48u
#define VARIRATE_AHEAD_FRAMES 24u /* of input after the place of an output frame */
#define VARIRATE_PHASES 512u
#define VARIRATE_CHUNK_FRAMES 64u
#define VARIRATE_MAX_CHANNELS 1024u
#define VARIRATE_MAX_PPM 10000.0

/* The step from one output frame to the next, in input frames: 16 bits before the point, 48 after it. */
#define VARIRATE_ONE ((uint64_t)1 << 48)

/*
 * The taps for each of n places between two frames: rows has n * VARIRATE_TAPS values, place_q48[i] < VARIRATE_ONE.
 * All versions are equal to the bit.
 */
typedef void varirate_rows_fn(float *rows, const float *table, const uint64_t *place_q48, size_t n_frames);

/* dst[i] = the sum over k of rows[i][k] * x[at[i] + k].  All versions add in the same order and are equal to the bit. */
typedef void varirate_sum_fn(float *dst, const float *x, const float *rows, const uint16_t *at, size_t n_frames);

varirate_rows_fn varirate_c_rows, varirate_avx2_rows;
varirate_sum_fn varirate_c_sum, varirate_avx2_sum;

/* One device's or one sender's interpolator.  Zero is safe to release. */
struct varirate {
	unsigned channels;
	uint64_t step_q48, target_q48; /* now, and at the end of the next block */
	uint64_t place_q48;            /* of the next output frame after the frame at the window's middle */
	size_t n_held;                 /* frames in `held`, of which the first VARIRATE_TAPS are the window */
	size_t n_flushed;              /* zeros that varirate_flush() added at their end */
	varirate_rows_fn *rows_fn;
	varirate_sum_fn *sum_fn;
	interleave_join_fn *join_fn;
	interleave_split_fn *split_fn;
	float *table;    /* VARIRATE_PHASES + 1 rows */
	float *rows;     /* VARIRATE_CHUNK_FRAMES rows */
	float **held, **made, **into; /* a plane for each channel; into: where in held the next input goes */
	void *memory;
};

/* (VARIRATE_PHASES + 1) * VARIRATE_TAPS values.  Row p is for the place p / VARIRATE_PHASES; each row's sum is 1. */
void varirate_table_init(float *table);

/*
 * Step 1, nothing held.  Memory: 110 KiB and 1.1 KiB a channel.
 * Role: control, allocates.  Returns: ERR_OK; ERR_ARG for no channels or too many; ERR_NOMEM.
 */
enum err varirate_init(struct varirate *v, unsigned channels) WEIR_MUSTUSE;
/* The same with the table of another (110 KiB and 3 ms less), which is released after this one; NULL: its own. */
enum err varirate_beside_init(struct varirate *v, unsigned channels, const struct varirate *other) WEIR_MUSTUSE;
void varirate_release(struct varirate *v);

/* Forget what is held, and the phase, as after a gap; the step stays. */
WEIR_DEADLINE void varirate_reset(struct varirate *v);

/*
 * The step that the next varirate_run reaches at its last frame, in a straight line from the step there is.  ppm is the
 * input frames used up for a million output frames, less a million: positive where the input's clock is the faster.
 * Held within ±VARIRATE_MAX_PPM; exactly 0 is a step of exactly 1.  Role: the one thread that runs it.
 */
WEIR_DEADLINE void varirate_set_ppm(struct varirate *v, double ppm);
WEIR_DEADLINE double varirate_ppm(const struct varirate *v); /* the step there is */

/*
 * Make up to n_out interleaved frames from up to n_in.  Fewer are made only when the input is used up: then all of it
 * is held.  No overlap.  Role: any; allocates nothing.
 * Returns: frames made; *n_used is the frames of src that are not wanted again.
 */
WEIR_DEADLINE size_t varirate_run(
	struct varirate *v, float *dst, size_t n_out, const float *src, size_t n_in, size_t *n_used);

/*
 * At the end, or before a hole: up to n_out frames of what is held, as if silence followed.  Then varirate_reset().
 * Returns: frames made; fewer than n_out (0 at last) once the last input frame is out.
 */
WEIR_DEADLINE size_t varirate_flush(struct varirate *v, float *dst, size_t n_out);

/* Input frames enough for n_out frames on the way to the step set: up to n_out times the change more than are used. */
WEIR_DEADLINE size_t varirate_need(const struct varirate *v, size_t n_out);

/* How far the next output frame lies behind the end of all input used, in frames: 24 to 25 once it flows.  May be negative before. */
WEIR_DEADLINE double varirate_behind_frames(const struct varirate *v);

/* The output is the input, bit for bit, until varirate_set_ppm says otherwise. */
WEIR_DEADLINE bool varirate_is_exact(const struct varirate *v);

#endif
