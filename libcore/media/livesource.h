/*
 * A device as a source: callback → ring → whoever reads.
 *
 * The callback (deadline) writes one record a block: where it stands on the track's timeline, when it was captured, its
 * frames.  When the ring is full the whole block is dropped and counted, and the next record that fits says how much is
 * missing before it, so the reader's timeline is exact.  What the device itself lost (an xrun) goes the same way.
 */
#ifndef MEDIA_LIVESOURCE_H
#define MEDIA_LIVESOURCE_H

#include "media/live.h"
#include "media/source.h"
#include "rt/clock.h"
#include "rt/ring.h"
#include "rt/wake.h"

#include <stdatomic.h>

#define LIVESOURCE_DEFAULT_RING_NS 2000000000LL

/* For statistics; written by the callback, read by anybody. */
struct livesource_counts {
	atomic_uint_fast64_t blocks;          /* that came */
	atomic_uint_fast64_t xruns, xrun_frames;      /* that cost frames */
	atomic_uint_fast64_t warnings;        /* the server spoke of an xrun, wherever it was */
	atomic_uint_fast64_t drops, dropped_frames;   /* a drop is a run of blocks */
	atomic_uint_fast64_t fill_high_bytes; /* most that lay in the ring */
};

struct livesource_record {
	int64_t pos;              /* of the first frame */
	int64_t mono_ns;          /* when it was captured */
	uint64_t xrun_frames, dropped_frames; /* missing before pos */
	uint32_t n_frames;
	uint32_t n_bytes;         /* with this header and padding */
};
#define LIVESOURCE_ALIGN 64u

struct livesource {
	struct ring ring;
	struct wake wake;
	uint32_t frame_bytes;
	/* the callback's */
	int64_t next_pos;
	uint64_t missing_xrun_frames, missing_dropped_frames; /* since the last record */
	bool dropping;
	/* both */
	struct livesource_counts counts;
	atomic_int gone;          /* 0; 1 being said; 2 reason holds */
	char reason[128];
	/* the reader's */
	const struct live_ops *ops;
	void *device;
	struct live_format format;
	struct clock_fit fit;
	int64_t utc_offset_ns;
	uint32_t used_frames;     /* of the record at the ring's head */
	bool holes_said;          /* of that record */
	int64_t read_pos;
	int64_t record_utc_ns;
	uint64_t said_xruns, said_drops; /* in warnings */
	bool ended;
};

/* Open a device as source *s (which is fresh: name, stop set).  Role: io. */
enum err livesource_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why) WEIR_MUSTUSE;
/* The livesource in s, if it is one. */
struct livesource *livesource_of(const struct source *s);

/* ---- for the callback of an adapter ---- */

/* Ready for frames of such a format.  For the tests too. */
enum err livesource_init(struct livesource *l, const struct live_format *format, int64_t ring_ns, struct err_why *why) WEIR_MUSTUSE;
void livesource_release(struct livesource *l);
/* Make *s read from l, which it owns from now on (on the heap; without a device none is closed). */
void livesource_attach(struct source *s, struct livesource *l);
/* Room for a block, or NULL: it does not fit and has been dropped and counted. */
WEIR_DEADLINE uint8_t *livesource_begin(struct livesource *l, uint32_t n_frames);
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
