/*
 * How fast another clock runs against ours, from how far ahead its frames are when they come: a pure function of
 * (slack, time), for packets of a network and for blocks of a device alike.
 *
 * Slack is how many frames lie between what just came and what is being played at that moment.  Its envelope, the
 * largest in a window, knows nothing of queueing and loss; a PI loop keeps the envelope at the set point by the ratio
 * at which frames are played.  The set point moves apart from that loop, at a speed that nobody hears, and so does not
 * disturb it.
 *
 * The ratio is exactly 1 until the drift is significant: until it has moved the envelope by more than DRIFT_GATE.
 * Until then the loop runs on what the envelope would be if it were obeyed, so that it knows the drift already.
 */
#ifndef NET_DRIFT_H
#define NET_DRIFT_H

#include "base/role.h"

#include <stdbool.h>
#include <stdint.h>

#define DRIFT_WINDOW_NS 100000000      /* of the envelope, at least */
#define DRIFT_WINDOW_SLACKS 16u        /* and at least so many values in it */
#define DRIFT_MAX_PPM 500.0            /* of the loop's proportional part, and of the way back after a jump */
#define DRIFT_SET_PPM 300.0            /* the set point's speed */
#define DRIFT_MAX_RATIO 0.001          /* of everything together: 1.7 cents */
#define DRIFT_GATE_S 0.00025           /* what the drift may add up to before the ratio leaves 1 */

struct drift {
	double rate_hz;
	double fast_hz;             /* bandwidth of the loop in its first fast_ns: 0.5 Hz and 8 s, or what the caller sets after drift_init() */
	int64_t fast_ns;
	/* the window that is being filled */
	double window_max_frames;
	uint32_t window_slacks;
	int64_t window_begin_ns;
	bool in_window;
	/* the envelope and the loop */
	int64_t last_ns;            /* of the last value: the set point has moved up to here */
	int64_t start_ns;           /* of the loop: the first seconds have a wider band */
	bool started;
	uint64_t n_windows;
	double envelope_frames;     /* of the last whole window */
	double integral;            /* the drift found, as a fraction */
	double u;                   /* the loop's output, smoothed */
	double u_set;               /* what the moving set point adds */
	double set_frames, aim_frames;
	bool open;                  /* the ratio has left 1 */
	double owed_frames;         /* what the loop would have moved while the ratio was 1 */
	double outside_frames;      /* the error before, while it is beyond 2 ms */
	uint32_t outside_windows;   /* in a row with an error beyond 2 ms */
};

/* A clock of nominally rate_hz.  The envelope is to be kept at set_frames.  Role: any. */
void drift_init(struct drift *d, uint32_t rate_hz, double set_frames);

/*
 * Something came with slack_frames at now_ns (of our clock, which never goes back).
 * Returns: true when a window has just ended and with it d->envelope_frames is new.
 */
WEIR_DEADLINE bool drift_observe(struct drift *d, double slack_frames, int64_t now_ns);

/* Frames of the other clock to play for each of ours: 1 + 80e-6 when the other runs 80 ppm fast.  Exactly 1 at first. */
WEIR_DEADLINE double drift_ratio(const struct drift *d);

/* The drift found so far in parts per million, also while the ratio still is 1. */
WEIR_DEADLINE double drift_ppm(const struct drift *d);

/* Move the set point there, at DRIFT_SET_PPM. */
WEIR_DEADLINE void drift_aim(struct drift *d, double set_frames);

/*
 * The playing position was jumped: every slack from now on is by_frames larger.  The set point goes with it, at once,
 * and the loop notices nothing.
 */
WEIR_DEADLINE void drift_jumped(struct drift *d, double by_frames);

/*
 * A new beginning at now_ns (the position was set anew, so that the envelope is at set_frames): the drift found is kept.
 */
WEIR_DEADLINE void drift_restart(struct drift *d, double set_frames, int64_t now_ns);

#endif
