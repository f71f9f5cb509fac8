/*
 * A mixing bus: blocks of inputs, aligned by whoever calls, summed through a matrix of gains for each.
 *
 * A bus_track is one input's way into the mix: its format and its matrix (layouts.h times gain and pan).  A new matrix is
 * reached in a straight line over ramp_frames, so that nothing clicks; the line goes on through silence.  Sums are doubles
 * (accum.h) and nothing is scaled: an input that ends changes no bit of what the others give.
 *
 * After initialisation nothing is allocated; bus_add() and bus_pass() may be called by the deadline role.
 */
#ifndef MIX_BUS_H
#define MIX_BUS_H

#include "base/err.h"
#include "base/role.h"
#include "mix/accum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUS_SLICE_FRAMES 64u   /* a general matrix works on so many at a time */

/* A coefficient that is not zero, in rising order of input, then output. */
struct bus_wire {
	uint16_t in, out;
	double gain;
};

struct bus_track {
	enum sample format;
	unsigned in_channels, out_channels;
	double *now, *target;         /* matrices, out_channels * in_channels; now is where the ramp begins */
	uint32_t ramp_frames;         /* of the ramp under way; 0 none */
	uint32_t ramp_at_frames;      /* done of it */
	/* made of target when there is no ramp */
	bool is_silent;               /* all zero: whatever it holds stays out */
	bool is_whole;                /* all coefficients are whole numbers: what is on the grid of its format stays there */
	accum_fn *fn;                 /* NULL: by wires */
	bool by_samples;              /* fn counts samples */
	double gain[4];               /* for fn, scaled */
	struct bus_wire *wires;
	unsigned n_wires;
	accum_fn *plain_fn;           /* to doubles, gain 1 */
	double plain_gain[2];
	double *slice;                /* BUS_SLICE_FRAMES * in_channels */
};

/*
 * format: PCM.  The matrix is zero and silent until bus_track_set().  cpu: cpu_flags().  Zero is safe to release.
 * Allocates.  Returns: ERR_OK, ERR_ARG for a format that is not PCM or no channels, ERR_NOMEM.
 */
enum err bus_track_init(struct bus_track *t, enum sample format, unsigned in_channels, unsigned out_channels, unsigned cpu) WEIR_MUSTUSE;
void bus_track_release(struct bus_track *t);

/* Go to matrix coef (copied) within ramp_frames; 0: at once.  A ramp under way is left where it is. */
WEIR_DEADLINE void bus_track_set(struct bus_track *t, const double *coef, uint32_t ramp_frames);

/*
 * n_frames of src onto acc (interleaved, out_channels).  src has any alignment.
 * Returns: samples that were NaN or infinite, and count as 0.
 */
WEIR_DEADLINE size_t bus_add(struct bus_track *t, double *acc, const void *src, size_t n_frames);

/* n_frames in which the input has nothing. */
WEIR_DEADLINE void bus_pass(struct bus_track *t, size_t n_frames);

/* Bits a sample needs so that this input as it is goes onto a sum without rounding: 16, 24, 32; 64 for "more". */
unsigned bus_track_bits(const struct bus_track *t);

#endif
