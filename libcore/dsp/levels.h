/*
 * What a meter counts: peak, sum of squares, sum, product of two channels.  Sums are made in double.
 *
 * Peak is the largest magnitude and does not see NaN; the sums do, so a sum that is not finite says that a block
 * holds NaN or infinity, and levels_clean_fn makes a copy without them.  Peaks are the same bits in every version;
 * sums of n terms differ by at most n * 2^-53 of the sum of magnitudes.
 */
#ifndef DSP_LEVELS_H
#define DSP_LEVELS_H

#include <stddef.h>

/* One channel's, running: zero is the start. */
struct levels {
	float peak;     /* of |x| */
	double squares; /* sum of x² */
	double sum;     /* for the DC offset: sum of x */
};

/* The largest |x| of one plane, 0 for none. */
typedef float levels_peak_fn(const float *x, size_t n_samples);

/* Frames: peaks[c] is raised to the largest |x| of channel c. */
typedef void levels_peaks_fn(float *peaks, const float *x, unsigned channels, size_t n_frames);

/* The sum of x² of one plane. */
typedef double levels_squares_fn(const float *x, size_t n_samples);

/* Frames: adds to levels[0…channels-1] in one pass. */
typedef void levels_add_fn(struct levels *levels, const float *x, unsigned channels, size_t n_frames);

/* Stereo frames: the sum of left times right, for the correlation. */
typedef double levels_cross_fn(const float *x, size_t n_frames);

/* Copies with 0 in the place of NaN and infinities.  dst may be src.  Returns: how many there were. */
typedef size_t levels_clean_fn(float *dst, const float *src, size_t n_samples);

levels_peak_fn levels_c_peak, levels_avx2_peak, levels_neon_peak;
levels_peaks_fn levels_c_peaks, levels_avx2_peaks;
levels_squares_fn levels_c_squares, levels_avx2_squares;
levels_add_fn levels_c_add, levels_avx2_add;
levels_cross_fn levels_c_cross, levels_avx2_cross;
levels_clean_fn levels_c_clean, levels_avx2_clean;

#endif
