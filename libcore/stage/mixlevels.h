/*
 * How loud a mix is: what the first of two passes measures instead of writing.
 *
 *   mixlevels_open(), mixlevels_add() for each block, mixlevels_close(): then the figures stand.
 */
#ifndef STAGE_MIXLEVELS_H
#define STAGE_MIXLEVELS_H

#include "dsp/dsp.h"
#include "dsp/truepeak.h"
#include "meter/loudness.h"

struct mixlevels {
	struct loudness loudness;
	struct truepeak truepeak;
	struct dsp dsp;
	unsigned channels;
	bool has_loudness;           /* the rate is not too low for it */
	float *peaks, *true_peaks;
	float *work;                 /* a block as f32 */
	double integrated_lufs;      /* NAN: silence */
	double sample_peak, true_peak;
};

/* Blocks of at most block_frames; wave_mask 0: no layout.  Nothing is left to be closed after a failure.  Returns: ERR_OK, ERR_NOMEM. */
enum err mixlevels_open(struct mixlevels *l, uint32_t rate_hz, unsigned channels, uint64_t wave_mask, uint32_t block_frames) WEIR_MUSTUSE;
void mixlevels_add(struct mixlevels *l, const double *sum, size_t n_frames);
/* The figures, of what came; all else is let go. */
void mixlevels_close(struct mixlevels *l);

#endif
