/*
 * All kernels, as functions chosen for a processor.  Filled once, then read by anybody; holds nothing.
 *
 * Each NAME_c.c defines what a kernel does; NAME_avx2.c and NAME_neon.c do the same faster, equal to the bit where
 * the header of NAME says so and within the bound it states elsewhere.  tests/kernels compares them.
 * convert, truepeak, kweight and varirate carry state and choose for themselves: see their headers.
 */
#ifndef DSP_DSP_H
#define DSP_DSP_H

#include "dsp/gain.h"
#include "dsp/galois.h"
#include "dsp/interleave.h"
#include "dsp/kweight.h"
#include "dsp/levels.h"
#include "dsp/limiter.h"
#include "dsp/matrix.h"
#include "dsp/truepeak.h"
#include "dsp/varirate.h"

struct dsp {
	interleave_join_fn *join;
	interleave_split_fn *split;
	gain_apply_fn *gain;
	gain_ramp_fn *gain_ramp;
	gain_add_fn *add;
	gain_add_ramp_fn *add_ramp;
	matrix_set_fn *matrix_set;
	matrix_add_fn *matrix_add;
	matrix_add_ramp_fn *matrix_add_ramp;
	levels_peak_fn *peak;
	levels_peaks_fn *peaks;
	levels_squares_fn *squares;
	levels_add_fn *levels;
	levels_cross_fn *cross;
	levels_clean_fn *clean;
	truepeak_envelope_fn *envelope;
	kweight_energy_fn *kweight;
	limiter_curve_fn *limit_curve;
	limiter_level_fn *limit_level;
	galois_add_fn *galois_add;
	galois_set_fn *galois_set;
	varirate_rows_fn *varirate_rows;
	varirate_sum_fn *varirate_sum;
};

/* The fastest versions that enum cpu_flag allow: dsp_init(&dsp, cpu_flags()); 0 gives the definitions. */
void dsp_init(struct dsp *dsp, unsigned flags);

#endif
