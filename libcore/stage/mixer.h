/*
 * The work of mix: inputs (mixin.h) by the settings of a desk (desk.h) onto a bus (mix/bus.h), block by block, and out as
 * one track or, mix-minus, one for each participant.
 */
#ifndef STAGE_MIXER_H
#define STAGE_MIXER_H

#include "dsp/dsp.h"
#include "meter/loudness.h"
#include "mix/bus.h"
#include "mix/limiter.h"
#include "mix/minus.h"
#include "stage/control.h"
#include "stage/desk.h"
#include "stage/matrixfile.h"
#include "stage/mixin.h"
#include "tool/progress.h"
#include "tool/stats.h"
#include "wire/writer.h"

#define MIXER_RAMP_MS 10u        /* of a gain that changes */
#define MIXER_MINUS_FRAMES 1024u /* a block of mix-minus is at most so long, for its parts to stay in the cache */

/* For --stats: stored by the working thread. */
struct mixer_counts {
	atomic_uint_fast64_t clipped_samples, nonfinite_samples, limited_frames, late_frames, spooled_bytes;
	struct tick tick;            /* live: of a block, from when it was due */
};

struct mixer_options {
	struct mixin_options in;
	unsigned channels;           /* 0: the widest track's */
	enum sample format;
	bool dither;
	bool limits;
	double ceiling_dbtp;
	bool minus;
	double self;                 /* what a participant hears of himself */
	bool is_live;
	double margin_s;             /* live: how late an input may be */
	const char *name;            /* of the track; NULL: "mix", or the participants' names */
	const char *matrix_path;
	const char *control_path;
	const struct opt_list *gains, *pans;
	struct mixer_counts *counts; /* the caller's */
};

/* One input's way into the mix. */
struct mixer_way {
	struct bus_track bus;
	double *coef;
	unsigned coef_room;
	unsigned matrix_column;      /* its first column of the matrix file */
};

struct mixer_out {
	struct convert convert[2];   /* plain, dithered; from double, or from f32 behind the limiter */
	struct limiter limiter;
	uint32_t skip_frames;        /* of the limiter's delay, not to be handed out */
	int64_t next_pos;
};

/* What the first of two passes measures. */
struct mixer_levels {
	struct loudness loudness;
	struct truepeak truepeak;
	bool has_loudness;           /* the rate is not too low for it */
	float *peaks, *true_peaks;
	double integrated_lufs;      /* NAN: silence */
	double sample_peak, true_peak;
};

struct mixer {
	struct mixer_options options;
	struct tool *tool;
	struct stats *stats;
	struct progress *progress;
	struct mixin in;
	struct desk desk;
	struct control control;
	struct matrixfile matrix;
	bool matrix_is_whole;        /* its columns are all channels of all tracks; else each track's own */
	unsigned channels;
	uint64_t wave_mask;
	struct dsp dsp;
	uint32_t block_frames, ramp_frames;
	struct mixer_way **ways;     /* by track */
	unsigned n_ways, ways_room;
	unsigned changes_seen;
	double *sum;
	float *work;                 /* a block as f32 */
	uint8_t *shared;             /* a block as it goes out, for many */
	struct minus minus;
	struct mixer_out *outs;      /* one, or one a track */
	unsigned n_outs, outs_room;
	struct writer *out;
	struct mixer_levels *levels; /* measured instead of written */
	double master;               /* on top of everything */
	int64_t pos;                 /* of the block at hand */
	size_t covered_frames;       /* of it, by the track at hand */
	unsigned bits;               /* that its samples need; 64 more than any format has */
	int64_t start_ns;            /* live: when the first frame was due */
	struct err_why why;
};

/* Opens the inputs and the desk.  *m must be zero.  stats and progress may be NULL.  Returns: as mixin_open(). */
enum err mixer_open(struct mixer *m, char *const *names, unsigned n, const struct mixer_options *o, struct tool *tool, struct err_why *why) WEIR_MUSTUSE;
/* Mix all there is, times master, to out.  Returns: ERR_OK, ERR_CUT (an input was, that was said), else failed, with m->why. */
enum err mixer_run(struct mixer *m, struct writer *out, double master) WEIR_MUSTUSE;
/* Mix all there is and measure it.  Returns: as mixer_run(). */
enum err mixer_measure(struct mixer *m, struct mixer_levels *levels) WEIR_MUSTUSE;
void mixer_release(struct mixer *m);

#endif
