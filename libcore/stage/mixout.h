/*
 * The tracks a mix goes out as: sums of doubles, block by block, through a limiter where there is one, into the format asked
 * for, and to a writer.
 *
 *   mixout_open(), mixout_join() for each track; for each block mixout_write() or, mix-minus, mixout_write_minus(); mixout_drain().
 */
#ifndef STAGE_MIXOUT_H
#define STAGE_MIXOUT_H

#include "dsp/convert.h"
#include "mix/limiter.h"
#include "mix/minus.h"
#include "wire/writer.h"

#include <stdatomic.h>

#define MIXOUT_MAX_BITS 64u      /* more than a sample of any format has */

struct mixout_options {
	uint32_t rate_hz;
	unsigned channels;
	uint64_t wave_mask;          /* 0: no layout */
	enum sample format;
	bool dither;                 /* where samples lie on no grid of the format */
	bool limits;
	double ceiling_dbtp;
	uint32_t block_frames;       /* at most */
	atomic_uint_fast64_t *clipped_samples, *limited_frames; /* the caller's; counted as stats_add() does */
};

struct mixout_track {
	struct convert convert[2];   /* plain, dithered; from double, or from f32 behind the limiter */
	struct limiter limiter;
	uint32_t skip_frames;        /* of the limiter's delay, not to be handed out */
	int64_t next_pos;
};

struct mixout {
	struct mixout_options options;
	struct writer *writer;       /* not owned */
	struct mixout_track *tracks;
	unsigned n_tracks, tracks_room;
	float *work;                 /* a block as f32, for the limiter */
	uint8_t *shared;             /* a block as it goes out, for many */
	struct err_why why;
};

/* Takes the memory for a block.  *m must be zero, which is safe to release.  w must have begun before the first track joins. */
enum err mixout_open(struct mixout *m, const struct mixout_options *o, struct writer *w) WEIR_MUSTUSE;
void mixout_release(struct mixout *m);

/* One more track: the next number, from pos on.  "" is no name.  Allocates.  Returns: ERR_OK; what failed, with m->why. */
enum err mixout_join(struct mixout *m, const char *name, int64_t pos) WEIR_MUSTUSE;

/*
 * A block of track i.  bits: of the samples it is the sum of; with as many as the format has, or fewer, they are rounded without dither.
 * Returns: ERR_OK; what failed, with m->why.  Role: io.
 */
enum err mixout_write(struct mixout *m, unsigned i, const double *sum, size_t n_frames, unsigned bits) WEIR_MUSTUSE;
/*
 * A block of every track: everybody's mix of p, whose parts are there, himself times self.  Those that are the same are made once and
 * written from one place.  Returns: as mixout_write().
 */
enum err mixout_write_minus(struct mixout *m, struct minus *p, double self, size_t n_frames, unsigned bits) WEIR_MUSTUSE;
/* What the limiters still hold of tracks that end at end_pos.  zeros: a block of silence.  Returns: as mixout_write(). */
enum err mixout_drain(struct mixout *m, const double *zeros, int64_t end_pos) WEIR_MUSTUSE;

#endif
