#include "dsp/dsp.h"

#include "base/cpu.h"

static void use_c(struct dsp *dsp)
{
	*dsp = (struct dsp){
		.join = interleave_c_join,
		.split = interleave_c_split,
		.gain = gain_c_apply,
		.gain_ramp = gain_c_ramp,
		.add = gain_c_add,
		.add_ramp = gain_c_add_ramp,
		.matrix_set = matrix_c_set,
		.matrix_add = matrix_c_add,
		.matrix_add_ramp = matrix_c_add_ramp,
		.peak = levels_c_peak,
		.peaks = levels_c_peaks,
		.squares = levels_c_squares,
		.levels = levels_c_add,
		.cross = levels_c_cross,
		.clean = levels_c_clean,
		.envelope = truepeak_c_envelope,
		.kweight = kweight_c_energy,
		.limit_curve = limiter_c_curve,
		.limit_level = limiter_c_level,
		.galois_add = galois_c_add,
		.galois_set = galois_c_set,
		.varirate_rows = varirate_c_rows,
		.varirate_sum = varirate_c_sum,
	};
}

#if defined(__x86_64__)
static void use_avx2(struct dsp *dsp)
{
	*dsp = (struct dsp){
		.join = interleave_avx2_join,
		.split = interleave_avx2_split,
		.gain = gain_avx2_apply,
		.gain_ramp = gain_avx2_ramp,
		.add = gain_avx2_add,
		.add_ramp = gain_avx2_add_ramp,
		.matrix_set = matrix_avx2_set,
		.matrix_add = matrix_avx2_add,
		.matrix_add_ramp = matrix_avx2_add_ramp,
		.peak = levels_avx2_peak,
		.peaks = levels_avx2_peaks,
		.squares = levels_avx2_squares,
		.levels = levels_avx2_add,
		.cross = levels_avx2_cross,
		.clean = levels_avx2_clean,
		.envelope = truepeak_avx2_envelope,
		.kweight = kweight_avx2_energy,
		.limit_curve = limiter_avx2_curve,
		.limit_level = limiter_avx2_level,
		.galois_add = galois_avx2_add,
		.galois_set = galois_avx2_set,
		.varirate_rows = varirate_avx2_rows,
		.varirate_sum = varirate_avx2_sum,
	};
}
#endif

void dsp_init(struct dsp *dsp, unsigned flags)
{
	use_c(dsp);
#if defined(__x86_64__)
	if (flags & CPU_AVX2)
		use_avx2(dsp);
#elif defined(__aarch64__)
	if (flags & CPU_NEON) {
		dsp->gain = gain_neon_apply;
		dsp->add = gain_neon_add;
		dsp->peak = levels_neon_peak;
	}
#else
	(void)flags;
#endif
}
