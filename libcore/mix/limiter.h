/*
 * A limiter that sees what comes: no sample, and nothing between the samples, leaves it above its ceiling.
 *
 * The level of each frame is its true peak (dsp/truepeak.h) over all channels, so the picture stays where it is.  The
 * gain it calls for is held over the look-ahead (a running minimum), let go exponentially, and averaged over the look-ahead:
 * a straight line down that arrives as the peak does.  While nothing is above the ceiling samples pass unchanged to the bit.
 *
 * The output comes `delay_frames` later than the input; positions are the caller's, who does not hand out the
 * first of them and asks for as many at the end.
 */
#ifndef MIX_LIMITER_H
#define MIX_LIMITER_H

#include "base/err.h"
#include "base/role.h"
#include "dsp/limiter.h"
#include "dsp/truepeak.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITER_LOOKAHEAD_MS 5u
#define LIMITER_RELEASE_MS 100u
/*
 * An interpolator of 4 points a sample may miss what lies between them, and a gain that moves changes the wave a little:
 * the ceiling inside is lower by this much.
 */
#define LIMITER_MARGIN_DB 0.1

struct limiter {
	unsigned channels;
	uint32_t window_frames;     /* of the mean; the running minimum has one more */
	uint32_t delay_frames;
	float ceiling;
	double release;             /* share of the way back to 1 made in a frame */
	struct truepeak_filter filter;
	truepeak_envelope_fn *envelope_fn;
	limiter_curve_fn *curve_fn;
	limiter_level_fn *level_fn;
	size_t block_frames;
	float *input;               /* the filter's past and a block */
	float *envelope, *gain;     /* a block; a block of gains called for */
	float *delayed;             /* ring of delay_frames frames */
	uint32_t delayed_at;
	/* the running minimum: frame numbers and gains that rise towards its end */
	uint64_t *queue_frame;
	float *queue_gain;
	uint32_t queue_room, queue_first, queue_n;
	uint64_t frame;             /* number of the next gain */
	double held;                /* after the release */
	int64_t *mean;              /* ring of window_frames gains, in 2^-40 so that their sum is exact */
	int64_t mean_sum;
	uint32_t mean_at;
	uint64_t limited_frames;    /* whose gain was below 1 */
	float lowest_gain;
};

/* ceiling_dbtp: −60…0.  Zero is safe to release.  Allocates.  Returns: ERR_OK, ERR_ARG for no channels, ERR_NOMEM. */
enum err limiter_init(struct limiter *l, uint32_t rate_hz, unsigned channels, double ceiling_dbtp, unsigned cpu) WEIR_MUSTUSE;
void limiter_release(struct limiter *l);

/* n_frames through it, in place: what comes out is delay_frames old (zeros at first). */
WEIR_DEADLINE void limiter_run(struct limiter *l, float *frames, size_t n_frames);

#endif
