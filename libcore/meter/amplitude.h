/*
 * What a track's samples reach: per channel sample peak, true peak, RMS, DC offset, clipping, and numbers that are
 * none; over a pair of channels the correlation.  Nothing is allocated after amplitude_init().
 */
#ifndef METER_AMPLITUDE_H
#define METER_AMPLITUDE_H

#include "base/err.h"
#include "dsp/dsp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AMPLITUDE_BLOCK_FRAMES 1024u

/* Who asks for recent peaks; each has its own. */
enum amplitude_mark { AMPLITUDE_REPORT, AMPLITUDE_BARS };

struct amplitude_channel {
	struct levels levels;       /* from the start */
	float recent_peak[2];       /* since amplitude_mark(), by enum amplitude_mark */
	float last_peak;            /* of the samples the interpolator still sees */
	uint64_t clipped_samples;   /* at or beyond full scale */
	uint64_t clipped_runs;      /* unbroken rows of them, a single one being a row too */
	uint64_t nonfinite_samples; /* NaN and infinities: counted here, else taken as 0 */
	bool in_clipped_run;
};

/* What a channel has reached; NAN stands for a level that is minus infinity. */
struct amplitude_values {
	double sample_peak_dbfs;
	double true_peak_dbtp;      /* NAN also where it is not measured */
	double rms_dbfs;            /* 20 log10 of the RMS: a full-scale sine has -3.01 */
	double dc_offset;           /* the mean, full scale being 1 */
	uint64_t clipped_samples, clipped_runs, nonfinite_samples;
};

struct amplitude_options {
	float full_scale;           /* samples at or beyond it are clipped */
	bool no_true_peak;
	int pair[2];                /* the channels whose correlation is wanted; equal: none */
};

struct amplitude {
	struct dsp dsp;
	struct amplitude_options options;
	unsigned n_channels;
	struct amplitude_channel *channels;
	struct levels *block;       /* one a channel, of the block at work */
	float *clean;               /* a block without NaN */
	float *true_peaks;          /* one a channel */
	struct truepeak truepeak;
	float ceiling;              /* no true peak is more than this times the sample peak around it */
	double cross;               /* sum of products of the pair */
	uint64_t n_frames;
};

/* The largest code of integer samples with this many bits, as a factor of full scale; 1 for floats (bits 0). */
float amplitude_full_scale(unsigned valid_bits);

/* Returns: ERR_OK, ERR_NOMEM, ERR_ARG for no channels. */
enum err amplitude_init(
	struct amplitude *a, uint32_t rate_hz, unsigned n_channels, const struct amplitude_options *options) WEIR_MUSTUSE;
void amplitude_release(struct amplitude *a);

/*
 * The next frames, interleaved; n_frames ≤ AMPLITUDE_BLOCK_FRAMES.
 * Role: any; allocates nothing.
 * Returns: the same frames, or where they held NaN or infinities a copy without, valid until the next call.
 */
const float *amplitude_add(struct amplitude *a, const float *frames, size_t n_frames);

/* A gap: the interpolator and rows of clipped samples begin anew behind it. */
void amplitude_break(struct amplitude *a);

struct amplitude_values amplitude_read(const struct amplitude *a, unsigned channel);

/* Begin anew with the recent peaks of this kind; and the peak of a channel since then, NAN if it was silent. */
void amplitude_mark(struct amplitude *a, enum amplitude_mark mark);
double amplitude_recent_dbfs(const struct amplitude *a, unsigned channel, enum amplitude_mark mark);

/* Correlation of the pair, -1…1; NAN where one of them is silent, or without a pair. */
double amplitude_correlation(const struct amplitude *a);

#endif
