/*
 * What a picture of a whole track is drawn from, however long it is, in memory that does not grow: its time is divided into
 * columns, and when there is no column left, neighbours are joined and each is twice as long from then on.  A column has
 * the lowest and the highest sample and the RMS of each channel, the range of momentary and short-term loudness, and the
 * frames that are missing.  A spectrogram is kept in the same way, in slices of time and bands of frequency.
 *
 * Nothing is allocated between plot_init() and plot_release().
 */
#ifndef METER_PLOT_H
#define METER_PLOT_H

#include "base/err.h"
#include "meter/spectrum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLOT_COLUMNS 4096u    /* at most; at least half as many, once the track has as many frames */
#define PLOT_SLICES 2048u
#define PLOT_BANDS 288u
#define PLOT_LOW_HZ 20.0      /* the lowest band begins here, the highest ends at half the rate */
#define PLOT_MAX_LANES 16u    /* channels whose waveform is kept */

struct plot_wave {
	float low, high;          /* full scale is 1; low > high: no frames */
	float squares;            /* sum over the frames that came */
};

struct plot_range {
	float low, high;          /* minus infinity: there was none for a time, at all; NAN: nobody has looked */
};

struct plot_column {
	uint64_t frames, lost_frames, quiet_frames; /* that came; of gaps that are losses; of other gaps */
	struct plot_range momentary_lufs, short_term_lufs;
};

struct plot_peak {
	double factor;            /* the highest peak, full scale is 1 */
	uint64_t frame;           /* the highest sample near it, from the first frame of the track */
};

/* The bins of the transform that make a band. */
struct plot_band {
	unsigned first, last;     /* the highest of these; last < first: none lies in it, */
	float part;               /* and its power is between those of `last` (0) and `first` (1) */
};

struct plot {
	uint32_t rate_hz;
	unsigned n_channels, n_lanes;
	uint64_t end_frame;       /* of the timeline, gaps included */
	/* waveform and loudness */
	uint64_t column_frames;   /* a power of two */
	unsigned n_columns;       /* in use */
	struct plot_column *columns;
	struct plot_wave *waves;  /* n_lanes a column */
	struct plot_peak *peaks;  /* one a channel */
	/* spectrogram */
	struct spectrum spectrum;
	struct plot_band bands[PLOT_BANDS];
	uint64_t slice_frames, hop_frames; /* from one transform to the next */
	unsigned n_slices;
	float *powers;            /* PLOT_BANDS a slice: sums over its transforms, mean of the channels */
	uint32_t *transforms;     /* of a slice */
	float *power;             /* of the transform at work */
	float *history;           /* the last frames, interleaved, twice: any window of them lies in a row */
	size_t history_at_frames;
	uint64_t heard_frame;     /* end of what is in the history */
	uint64_t centre_frame;    /* of the next transform */
};

/* Returns: ERR_OK, ERR_NOMEM. */
enum err plot_init(struct plot *p, uint32_t rate_hz, unsigned n_channels) WEIR_MUSTUSE;
void plot_release(struct plot *p);

/* The next n_frames, interleaved and finite.  Role: any. */
void plot_add(struct plot *p, const float *frames, size_t n_frames);

/* Before these frames are added: a channel's highest peak, they included.  Where it has risen, its place is kept. */
void plot_peak(struct plot *p, unsigned channel, double factor, const float *frames, size_t n_frames);

/* n_frames that are missing: lost, or not to be expected. */
void plot_add_gap(struct plot *p, uint64_t n_frames, bool lost);

/* The loudness at the end of what was added last; NAN where there is none, which is kept as minus infinity. */
void plot_loudness(struct plot *p, double momentary_lufs, double short_term_lufs);

/* Nothing more will come: the last windows are looked at. */
void plot_finish(struct plot *p);

static inline const struct plot_wave *plot_wave(const struct plot *p, unsigned column, unsigned lane)
{
	return &p->waves[(size_t)column * p->n_lanes + lane];
}

/* RMS of a channel in a column, full scale is 1; 0 without frames. */
double plot_rms(const struct plot *p, unsigned column, unsigned lane);

/* The lower edge of a band; that of PLOT_BANDS is the upper edge of the last. */
double plot_band_hz(const struct plot *p, unsigned band);

/* The mean power of a slice in a band in dB, a sine of full scale being 0 in its band; NAN where nothing was heard. */
double plot_band_db(const struct plot *p, unsigned slice, unsigned band);

#endif
