/*
 * One PCM track of a stream at another rate: packets in, packets out.
 *
 * A run of frames goes through the resampler as one signal; a hole ends it, and comes out as a hole.  Frame k of the
 * output is the signal at k/rate seconds whatever holes came before, so lengths and positions never drift.
 *
 * A packet goes out as soon as the resampler has frames for it.  The same input makes the same bytes, however many
 * threads there are.
 */
#ifndef STAGE_RETIME_H
#define STAGE_RETIME_H

#include "media/resampler.h"
#include "wire/packet.h"
#include "wire/track.h"
#include "wire/writer.h"

#include <stdatomic.h>

struct retime; /* retime.c */

struct retime_options {
	uint32_t rate_hz;
	enum resampler_quality quality;
	enum resampler_phase phase;
	enum sample format;       /* SAMPLE_CODED: f32, or the source's own float */
	bool dither;              /* where the format loses precision */
	unsigned n_threads;       /* channels are split over these */
	bool live;                /* nothing is gathered to make larger turns of */
	atomic_uint_fast64_t *clipped_samples; /* counted here, as stats_add() does */
};

/* Has a PCM track another rate, or another format than was asked for? */
bool retime_is_needed(const struct track *t, const struct retime_options *o);

/*
 * Begin: announces t in its new shape on w.  Positions before after_pos (in the new rate; INT64_MIN none) were written
 * already by a generation before this one: nothing is written to them again.  w and *o's counter must outlive it.
 * Returns: ERR_OK; ERR_LIMIT for a ratio that cannot be; ERR_NOMEM; ERR_CODEC from libsoxr; with *why.
 */
enum err retime_new(struct retime **r, const struct track *t, const struct retime_options *o, struct writer *w, int64_t after_pos,
	struct err_why *why) WEIR_MUSTUSE;

/* A DATA packet of the track, and a GAP.  They allocate nothing once the resampler is warm.  Role: io. */
enum err retime_data(struct retime *r, const struct packet *p) WEIR_MUSTUSE;
enum err retime_gap(struct retime *r, const struct packet *p) WEIR_MUSTUSE;

/* The end of the track: what is still inside is written. */
enum err retime_finish(struct retime *r) WEIR_MUSTUSE;

/* The end of what was written, in the new rate; INT64_MIN if that is nothing. */
int64_t retime_end_pos(const struct retime *r);

void retime_free(struct retime *r);

#endif
