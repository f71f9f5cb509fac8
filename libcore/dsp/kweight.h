/*
 * K-weighting (ITU-R BS.1770-4 Annex 1): a high shelf and a high pass, and the energy of what comes out of them.
 *
 * The standard tables the coefficients at 48 kHz only.  The analogue filters behind the table are found by undoing
 * its bilinear transform, and transformed again for the rate at hand.
 *
 * Samples must be finite (levels_clean_fn).  Everything is in double; versions differ in rounding only.
 */
#ifndef DSP_KWEIGHT_H
#define DSP_KWEIGHT_H

#include "base/err.h"
#include "base/role.h"

#include <stddef.h>
#include <stdint.h>

#define KWEIGHT_MIN_RATE_HZ 4000u /* the shelf's corner is at 1682 Hz and must lie below half the rate */

/* y = b0 x0 + b1 x1 + b2 x2 - a1 y1 - a2 y2, twice. */
struct kweight_filter {
	double shelf_b[3], shelf_a[2]; /* a is a1, a2 */
	double pass_b[3], pass_a[2];
};

/* The past of one channel: x in, y between the filters, z out; 1 is the last sample, 2 the one before. */
struct kweight_channel {
	double x1, x2, y1, y2, z1, z2;
};

/* energy[c] += the sum of z² of channel c.  n_frames <= KWEIGHT_BLOCK_FRAMES. */
typedef void kweight_energy_fn(const struct kweight_filter *filter, struct kweight_channel *state, double *energy,
	const float *x, unsigned channels, size_t n_frames);

kweight_energy_fn kweight_c_energy, kweight_avx2_energy;

/*
 * What decays below this, or ran away, is 0 at the end of each block; blocks are short enough for no state to get
 * from here down to the denormals inside one, where each operation would take a hundred times as long.
 */
#define KWEIGHT_BLOCK_FRAMES 2048u
#define KWEIGHT_TINY 1e-150
static inline double kweight_settle(double v)
{
	double m = __builtin_fabs(v);
	return m >= KWEIGHT_TINY && m <= 1.0 / KWEIGHT_TINY ? v : 0.0;
}

/* A running measurement of one track.  Zero is safe to release. */
struct kweight {
	struct kweight_filter filter;
	unsigned channels;
	kweight_energy_fn *energy_fn;
	struct kweight_channel *state;
};

void kweight_filter_init(struct kweight_filter *filter, uint32_t rate_hz);

/* Role: control, allocates.  Returns: ERR_OK; ERR_ARG for no channels or a rate below the minimum; ERR_NOMEM. */
enum err kweight_init(struct kweight *k, uint32_t rate_hz, unsigned channels) WEIR_MUSTUSE;
void kweight_release(struct kweight *k);

/* Forget the past, as after a gap. */
void kweight_reset(struct kweight *k);

/* energy[c] += the sum of the squares of channel c, weighted, over these frames.  Role: any; allocates nothing. */
WEIR_DEADLINE static inline void kweight_run(struct kweight *k, double *energy, const float *x, size_t n_frames)
{
	while (n_frames) {
		size_t n = n_frames < KWEIGHT_BLOCK_FRAMES ? n_frames : KWEIGHT_BLOCK_FRAMES;
		k->energy_fn(&k->filter, k->state, energy, x, k->channels, n);
		x += n * k->channels;
		n_frames -= n;
	}
}

#endif
