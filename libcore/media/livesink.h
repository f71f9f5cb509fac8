/*
 * A device that plays: whoever writes → ring → callback.
 *
 * The device starts when the ring holds the start threshold.  A callback that finds less than it needs plays what is
 * there, then silence, which is counted; it goes on when the threshold is there again.  At the end everything in the
 * ring is played, and drained is said when the last frame has been handed to the server.
 */
#ifndef MEDIA_LIVESINK_H
#define MEDIA_LIVESINK_H

#include "dsp/convert.h"
#include "dsp/dsp.h"
#include "media/live.h"
#include "rt/ring.h"
#include "rt/tick.h"
#include "rt/wake.h"

#include <stdatomic.h>

struct livesink_counts {
	atomic_uint_fast64_t played_frames; /* of the ring */
	atomic_uint_fast64_t underruns, silent_frames;
	atomic_uint_fast64_t fill_low_frames; /* least that was found in the ring while playing; UINT64_MAX at first */
	atomic_uint_fast64_t fill_high_frames; /* most */
};

struct livesink {
	struct ring ring;
	struct wake wake;
	uint32_t frame_bytes;
	uint32_t threshold_frames;
	/* the callback's */
	bool starved;             /* waits for the threshold */
	bool saw_end;             /* in livesink_begin(): what it found was all there will be */
	/* both */
	struct livesink_counts counts;
	_Atomic(struct tick *) tick; /* where the adapter's callbacks are measured; NULL: nowhere */
	atomic_bool ended;        /* nothing more will be written */
	atomic_bool drained;      /* and the last frame was handed over */
	atomic_int gone;          /* 0; 1 being said; 2 reason holds */
	char reason[128];
	/* the writer's */
	const struct live_ops *ops;
	void *device;
	bool started;
	struct live_format format;
	const volatile sig_atomic_t *stop;
	char name[256];
	struct convert to_f32, to_device;
	bool gains;
	float factor;
	struct dsp dsp;
	float *scratch;           /* with a gain: a piece of f32 */
	struct err_why why;
};

struct livesink_options {
	int64_t latency_ns;       /* the start threshold; 0: 100 ms */
	double volume_db;
	const volatile sig_atomic_t *stop;
};

/* Open a device for frames of t's format (PCM).  Nothing is heard yet.  Role: io. */
enum err livesink_open(struct livesink *l, const char *spec, const struct track *t, const struct livesink_options *o, struct err_why *why) WEIR_MUSTUSE;
/*
 * Frames of the track's format.  Waits for room.  NULL: silence.
 * Returns: ERR_OK; ERR_END: stopped; ERR_DEVICE: it went away, with l->why.  Role: io.
 */
enum err livesink_write(struct livesink *l, const uint8_t *frames, size_t n_frames) WEIR_MUSTUSE;
/* Play everything that was written, to its last frame, and wait for it.  Returns: as livesink_write().  Role: io. */
enum err livesink_drain(struct livesink *l) WEIR_MUSTUSE;
void livesink_release(struct livesink *l);

/* ---- for the callback of an adapter ---- */

/* Ready for frames of such a format.  For the tests too. */
enum err livesink_init(struct livesink *l, const struct live_format *format, int64_t latency_ns, struct err_why *why) WEIR_MUSTUSE;
/* At most n_frames that are to be played now, contiguous at *frames.  Fewer: play silence behind them. */
WEIR_DEADLINE uint32_t livesink_begin(struct livesink *l, uint32_t n_frames, const uint8_t **frames);
/* n_frames were wanted, n_played taken.  Returns: false once all was handed over. */
WEIR_DEADLINE bool livesink_commit(struct livesink *l, uint32_t n_frames, uint32_t n_played);
/* Both, copying to dst with silence behind.  Returns: frames that are not silence made up at the end of all; n_frames before. */
WEIR_DEADLINE uint32_t livesink_pull(struct livesink *l, void *dst, uint32_t n_frames);
/* As livesource_gone(). */
WEIR_DEADLINE void livesink_gone(struct livesink *l, const char *reason);

#endif
