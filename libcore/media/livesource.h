/*
 * A device as a source: callback → ring → whoever reads.
 *
 * The callback (deadline) writes one record a block: where it stands on the track's timeline, when it was captured, its
 * frames.  When the ring is full the whole block is dropped and counted, and the next record that fits says how much is
 * missing before it, so the reader's timeline is exact.  What the device itself lost (an xrun) goes the same way.
 *
 * A device may be waited for when it goes away (livesource_keep(), liveaway.h), and several may share the timeline of the
 * first (liveplace.h).
 */
#ifndef MEDIA_LIVESOURCE_H
#define MEDIA_LIVESOURCE_H

#include "media/live.h"
#include "media/livereturn.h"
#include "media/source.h"
#include "rt/clock.h"
#include "rt/ring.h"
#include "rt/tick.h"
#include "rt/wake.h"

#include <stdatomic.h>

#define LIVESOURCE_DEFAULT_RING_NS 2000000000LL

/* For statistics; written by the callback, read by anybody. */
struct livesource_counts {
	atomic_uint_fast64_t blocks;          /* that came */
	atomic_uint_fast64_t xruns, xrun_frames;      /* that cost frames */
	atomic_uint_fast64_t warnings;        /* the server spoke of an xrun, wherever it was */
	atomic_uint_fast64_t drops, dropped_frames;   /* a drop is a run of blocks */
	atomic_uint_fast64_t fill_low_bytes;  /* least that lay in the ring when a block came */
	atomic_uint_fast64_t fill_high_bytes; /* most, with the block */
};

struct livesource_record {
	int64_t pos;              /* of the first frame */
	int64_t mono_ns;          /* when it was captured */
	uint64_t xrun_frames, dropped_frames; /* missing before pos */
	uint32_t n_frames;
	uint32_t n_bytes;         /* with this header and padding */
};
#define LIVESOURCE_ALIGN 64u

struct liveplace;
/* Something about the device that people want to know now: "the JACK server has ended".  On the reader's thread. */
typedef void livesource_tell(void *user, const char *text);

struct livesource {
	struct ring ring;
	struct wake wake;
	uint32_t frame_bytes;
	/* the callback's */
	int64_t next_pos;
	uint64_t missing_xrun_frames, missing_dropped_frames; /* since the last record */
	bool dropping;
	/* what the server's own count of frames was at pos 0; set before the first record is there */
	bool has_count;
	int64_t count_begin;
	/* both */
	struct livesource_counts counts;
	_Atomic(struct tick *) tick; /* where the adapter's callbacks are measured; NULL: nowhere */
	atomic_int scheduling;    /* enum live_scheduling */
	atomic_int gone;          /* 0; 1 being said; 2 reason holds */
	char reason[128];
	/* the reader's */
	const struct live_ops *ops;
	void *device;
	struct live_format format;
	struct clock_fit fit;
	struct clock_utc utc;
	int64_t utc_looked_ns;    /* when the wall clock was last looked at */
	uint32_t used_frames;     /* of the record at the ring's head */
	bool holes_said;          /* of that record */
	int64_t read_pos;
	int64_t record_utc_ns;
	uint64_t said_xruns, said_drops; /* in warnings */
	bool ended;
	bool held;                /* the ring is locked into memory */
	struct live_args args;    /* as it was opened */
	struct liveplace *place;  /* on another's timeline; NULL: on its own */
	/* liveaway */
	bool keeps;               /* it is waited for */
	livesource_tell *tell;
	void *tell_user;
	bool away, resumes;       /* it is not there; it is back, and where its frames belong is not yet known */
	struct livereturn back;
	struct clock_fit old_fit; /* the line of before, which goes on through the absence */
	int64_t away_pos;         /* the first frame that is missing */
	uint64_t n_absences, absent_frames;
};

/* Open a device as source *s (which is fresh: name, stop set).  Role: io. */
enum err livesource_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why) WEIR_MUSTUSE;
/* The livesource in s, if it is one. */
struct livesource *livesource_of(const struct source *s);
/* From now on wait for the device when it goes away: a gap as long as the absence, then it goes on.  tell may be NULL. */
void livesource_keep(struct livesource *l, livesource_tell *tell, void *user);
/* The line through its timestamps, which goes on while it is away; NULL: nothing has come yet.  For the reader's thread. */
const struct clock_fit *livesource_line(const struct livesource *l);

/* ---- for liveplace and liveaway ---- */

/* As source_read(), on the device's own timeline. */
enum err livesource_take(struct source *s, struct livesource *l, uint8_t *dst, size_t max_frames, struct source_block *b) WEIR_MUSTUSE;
/* What has been lost so far becomes the one warning of the source. */
void livesource_sum_up(struct source *s, const struct livesource *l);

/* ---- for the callback of an adapter ---- */

/* Ready for frames of such a format.  For the tests too. */
enum err livesource_init(struct livesource *l, const struct live_format *format, int64_t ring_ns, struct err_why *why) WEIR_MUSTUSE;
void livesource_release(struct livesource *l);
/* Make *s read from l, which it owns from now on (on the heap; without a device none is closed). */
void livesource_attach(struct source *s, struct livesource *l);
/* Room for a block, or NULL: it does not fit and has been dropped and counted. */
WEIR_DEADLINE uint8_t *livesource_begin(struct livesource *l, uint32_t n_frames);
/* Before the first block: the server's own count of frames where it begins, the same for all devices of its clock. */
WEIR_DEADLINE void livesource_count_from(struct livesource *l, uint32_t server_frame);
/* The block is there; its first frame was captured at mono_ns. */
WEIR_DEADLINE void livesource_commit(struct livesource *l, uint32_t n_frames, int64_t mono_ns);
/* Both, of frames that lie somewhere.  NULL: silence. */
WEIR_DEADLINE void livesource_push(struct livesource *l, const void *frames, uint32_t n_frames, int64_t mono_ns);
/* The device lost so many frames here. */
WEIR_DEADLINE void livesource_lose(struct livesource *l, uint64_t n_frames);
/* The server speaks of an xrun, and does not say what it cost.  Any thread. */
WEIR_DEADLINE void livesource_warn(struct livesource *l);
/* The device or its server went away; nothing comes any more.  reason: "the server has ended".  Any thread, first word counts. */
WEIR_DEADLINE void livesource_gone(struct livesource *l, const char *reason);

#endif
