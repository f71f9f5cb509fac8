/*
 * Adding an input to a mix: samples as they lie in a file or packet, times gains, onto sums in double.  Conversion,
 * gain and addition are one pass, so a mix costs little more than reading its inputs.
 *
 * Sums in double make the order of inputs and their number harmless: what is rounded is 2^-53 of a sum, and once, at the
 * end, 2^-24 of it when it becomes f32.  They also make "everybody but me" a subtraction.
 *
 * Gains hold the format's scale (accum_scale).  NaN and infinities add nothing and are counted: one bad input must not
 * silence all.  Every version gives the same bits: one rounded product each, and sums in the order written here.
 */
#ifndef MIX_ACCUM_H
#define MIX_ACCUM_H

#include "base/role.h"
#include "wire/track.h"

#include <stddef.h>

/* n_frames of src onto acc.  gain: how many and what they mean is the kind's.  Returns: samples that were not finite. */
typedef size_t accum_fn(double *acc, const void *src, size_t n_frames, const double *gain);

enum accum_kind {
	/* pairs: acc[2k] += src[2k] * gain[0], acc[2k+1] += src[2k+1] * gain[1].  For any channel count with two equal gains:
	 * n_frames counts single samples then. */
	ACCUM_PAIRS,
	/* mono to stereo: acc[2f] += src[f] * gain[0], acc[2f+1] += src[f] * gain[1] */
	ACCUM_SPREAD,
	/* stereo to stereo by the rows gain[0], gain[1] and gain[2], gain[3]:
	 * acc[2f] += l * gain[0] + r * gain[1], acc[2f+1] += r * gain[3] + l * gain[2] */
	ACCUM_CROSS,
	ACCUM_N_KINDS,
};

/* n_frames of ACCUM_PAIRS are samples, of the others frames. */
accum_fn *accum_pick(enum sample format, enum accum_kind kind, unsigned cpu_flags);

/* What a sample of 1.0 is in a format: its inverse is part of every gain. */
double accum_scale(enum sample format);

/* The versions, for tests.  NULL for what is no PCM format; from accum_avx2_pick() NULL off x86-64. */
accum_fn *accum_c_pick(enum sample format, enum accum_kind kind);
accum_fn *accum_avx2_pick(enum sample format, enum accum_kind kind);

#endif
