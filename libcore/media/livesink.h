/*
 * A device that plays: whoever writes → ring → callback.
 *
 * The device starts when the ring holds the start threshold.  A callback that finds less than it needs plays what is
 * there, then silence, which is counted; it goes on when the threshold is there again.  At the end everything in the
 * ring is played, and drained is said when the last frame has been handed to the server.
 *
 * With `follows` the device's clock is brought to the stream's where that comes in real time (livefollow.h).  With `keep` a
 * device that goes away is waited for: what comes meanwhile is lost, or, with `waits`, the stream stands still.
 */
#ifndef MEDIA_LIVESINK_H
#define MEDIA_LIVESINK_H

#include "dsp/convert.h"
#include "dsp/dsp.h"
#include "media/live.h"
#include "media/livefollow.h"
#include "media/livereturn.h"
#include "rt/ring.h"
#include "rt/tick.h"
#include "rt/wake.h"

#include <stdatomic.h>

#define LIVESINK_SETTLE_NS (3 * UNITS_NS_PER_S / 2) /* sooner than livefollow.h begins to measure */
#define LIVESINK_LOOK_NS (UNITS_NS_PER_S / 8) /* longer than what the longest packet of Opus holds */
#define LIVESINK_MORE_NS (UNITS_NS_PER_S / 100)   /* by so much grows a threshold that was too low, */
#define LIVESINK_MOST_NS (UNITS_NS_PER_S / 10)    /* up to here; */
#define LIVESINK_PAUSE_NS (UNITS_NS_PER_S / 4)    /* where nothing came for so long it was not the threshold's fault */
#define LIVESINK_WOBBLE_NS (UNITS_NS_PER_S / 1000) /* livefollow.h deals with less; it believes no sudden change of half as much */

struct livesink_counts {
	atomic_uint_fast64_t played_frames; /* of the ring */
	atomic_uint_fast64_t underruns, silent_frames;
	atomic_uint_fast64_t skipped_frames; /* too old at a beginning, or when the device had stood still: not played */
	atomic_uint_fast64_t fill_low_frames; /* least that was found in the ring while playing; UINT64_MAX at first */
	atomic_uint_fast64_t fill_high_frames; /* most */
};

/* Something about the device that people want to know now.  On the writer's thread. */
typedef void livesink_tell(void *user, const char *text);

struct livesink {
	struct ring ring;
	struct wake wake;
	uint32_t frame_bytes;
	uint32_t threshold_frames;
	/* the callback's */
	bool starved;             /* waits for the threshold */
	bool saw_end;             /* in livesink_begin(): what it found was all there will be */
	uint64_t taken_frames;    /* played or silent */
	bool skips, taken_any;    /* see livesink_options; something was played */
	uint32_t more_frames, most_frames; /* by how much the threshold grows, up to where; 0: it was asked for, and stays */
	uint32_t pause_frames;    /* LIVESINK_PAUSE_NS */
	uint32_t grown_frames, dry_frames; /* for the silence that goes on; so long it is now */
	uint32_t settles_frames, settle_frames; /* a beginning is so long; so much of it is left */
	uint32_t look_frames, wobble_frames; /* LIVESINK_LOOK_NS, LIVESINK_WOBBLE_NS */
	uint32_t window_frames, window_low_frames; /* since the last look, and the least there was then */
	/* both */
	struct livesink_counts counts;
	atomic_uint_fast64_t stalled_frames; /* of skipped_frames, those a device piled up that stood still */
	_Atomic(struct tick *) tick; /* where the adapter's callbacks are measured; NULL: nowhere */
	/* taken_frames at taken_ns: even when the two belong together */
	atomic_uint taken_seq;
	atomic_uint_fast64_t said_taken_frames;
	atomic_int_fast64_t said_taken_ns;
	atomic_bool ended;        /* nothing more will be written */
	atomic_bool drained;      /* and the last frame was handed over */
	atomic_int scheduling;    /* enum live_scheduling */
	atomic_int gone;          /* 0; 1 being said; 2 reason holds */
	char reason[128];
	/* the writer's */
	const struct live_ops *ops;
	void *device;
	bool started;
	bool held;                /* the ring is locked into memory */
	struct live_format format;
	const volatile sig_atomic_t *stop;
	char name[256];
	struct convert to_f32, to_device;
	bool gains;
	float factor;
	struct dsp dsp;
	uint32_t piece_frames;    /* at most so many at a time */
	float *scratch;           /* with a gain or a ratio: a piece of f32 */
	struct err_why why;
	/* livesink_follow */
	bool follows;
	struct livefollow follow;
	struct convert to_device_exact;
	float *made;              /* a piece of f32 */
	uint64_t given_frames;    /* put into the ring */
	int64_t seen_added_frames; /* of silence, less those skipped */
	int64_t seen_stalled_frames;
	/* a device that is waited for */
	char spec[320];
	struct live_args args;
	bool keeps, waits, away;
	struct livereturn back;
	int64_t away_ns;
	uint64_t n_absences, absent_frames; /* what came while it was away */
	livesink_tell *tell;
	void *tell_user;
};

struct livesink_options {
	int64_t latency_ns;       /* the start threshold; 0: 100 ms */
	/*
	 * A live stream, and no threshold was asked for: as little as the device can do with, besides what comes at once, and
	 * LIVESINK_MORE_NS more each time that it was too little, up to LIVESINK_MOST_NS.
	 */
	bool adapts;
	double volume_db;
	const volatile sig_atomic_t *stop;
	bool follows;             /* the stream may come in real time, by another clock */
	/*
	 * The stream is live: what has piled up while the device began, or while it had nothing to play, is skipped in the
	 * LIVESINK_SETTLE_NS after that, down to the threshold; and what piles up later because the device stands still.  Else it
	 * would be heard late for good.
	 */
	bool skips;
	int64_t spare_ns;         /* room beside the threshold; 0: 250 ms */
	bool keep, waits;         /* see above */
	livesink_tell *tell;      /* with keep; may be NULL */
	void *tell_user;
};

/* Open a device for frames of t's format (PCM).  Nothing is heard yet.  Role: io. */
enum err livesink_open(struct livesink *l, const char *spec, const struct track *t, const struct livesink_options *o, struct err_why *why) WEIR_MUSTUSE;
/*
 * Frames of the track's format.  Waits for room.  NULL: silence.
 * Returns: ERR_OK; ERR_END: stopped; ERR_DEVICE: it went away, with l->why.  Role: io.
 */
enum err livesink_write(struct livesink *l, const uint8_t *frames, size_t n_frames) WEIR_MUSTUSE;
/* So many frames come at once: before the first are written, so that an adapting threshold has room for them.  Role: io. */
void livesink_expect(struct livesink *l, size_t n_frames);
/* Nothing more will be written: where there are several devices, to all of them before any is drained.  Returns: as livesink_write(). */
enum err livesink_end(struct livesink *l) WEIR_MUSTUSE;
/* Play everything that was written, to its last frame, and wait for it.  Returns: as livesink_write().  Role: io. */
enum err livesink_drain(struct livesink *l) WEIR_MUSTUSE;
void livesink_release(struct livesink *l);
/* How long the ring is, in time. */
int64_t livesink_room_ns(const struct livesink *l);

/* ---- for the callback of an adapter ---- */

/* Its threshold grows, see livesink_options.adapts.  After livesink_init(), before anything is played.  For the tests too. */
void livesink_adapt(struct livesink *l);
/* Ready for frames of such a format.  spare_ns: room beside the threshold, 0: 250 ms.  For the tests too. */
enum err livesink_init(struct livesink *l, const struct live_format *format, int64_t latency_ns, int64_t spare_ns, struct err_why *why) WEIR_MUSTUSE;
/* At most n_frames that are to be played now, contiguous at *frames.  Fewer: play silence behind them. */
WEIR_DEADLINE uint32_t livesink_begin(struct livesink *l, uint32_t n_frames, const uint8_t **frames);
/* n_frames were wanted, n_played taken.  Returns: false once all was handed over. */
WEIR_DEADLINE bool livesink_commit(struct livesink *l, uint32_t n_frames, uint32_t n_played);
/* Both, copying to dst with silence behind.  Returns: frames that are not silence made up at the end of all; n_frames before. */
WEIR_DEADLINE uint32_t livesink_pull(struct livesink *l, void *dst, uint32_t n_frames);
/* As livesource_gone(). */
WEIR_DEADLINE void livesink_gone(struct livesink *l, const char *reason);

#endif
