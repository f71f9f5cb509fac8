/*
 * The work of mix: inputs (mixin.h) by the tracks' ways (mixways.h) onto a sum, block by block, live by a clock (mixclock.h),
 * and out as one track or, mix-minus, one for each participant (mixout.h); or into a measurement (mixlevels.h).
 */
#ifndef STAGE_MIXER_H
#define STAGE_MIXER_H

#include "mix/minus.h"
#include "stage/mixclock.h"
#include "stage/mixin.h"
#include "stage/mixlevels.h"
#include "stage/mixout.h"
#include "stage/mixways.h"
#include "tool/progress.h"
#include "tool/stats.h"
#include "wire/writer.h"

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

struct mixer {
	struct mixer_options options;
	struct stats *stats;
	struct progress *progress;
	struct mixin in;
	struct mixways ways;
	struct mixclock clock;
	uint32_t block_frames;
	double *sum;                 /* a block */
	struct minus minus;
	struct mixout out;
	struct writer *writer;       /* NULL: it is measured */
	struct mixlevels *levels;    /* NULL: it is written */
	double master;               /* on top of everything */
	int64_t pos;                 /* of the block at hand */
	unsigned bits;               /* that its samples need */
	struct err_why why;
};

/* Opens the inputs and the desk.  *m must be zero.  stats and progress may be NULL.  Returns: as mixin_open(). */
enum err mixer_open(struct mixer *m, char *const *names, unsigned n, const struct mixer_options *o, struct tool *tool, struct err_why *why) WEIR_MUSTUSE;
/* Mix all there is, times master, to out.  Returns: ERR_OK, ERR_CUT (an input was, that was said), else failed, with m->why. */
enum err mixer_run(struct mixer *m, struct writer *out, double master) WEIR_MUSTUSE;
/* Mix all there is and measure it.  Returns: as mixer_run(). */
enum err mixer_measure(struct mixer *m, struct mixlevels *levels) WEIR_MUSTUSE;
void mixer_release(struct mixer *m);

#endif
