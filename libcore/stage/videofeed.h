/*
 * Raw pictures from a FIFO or another descriptor, as fragments of frames.
 *
 * A frame goes out while it still comes in, so no whole one is held: the buffer has room for one, and as long as who reads keeps
 * up only its beginning is used.  Offline, frames are numbered and who writes them waits for us.  Live, they are placed by when they
 * came; when the frame that goes out is late, what comes in meanwhile is read all the same, and whole frames are dropped, never
 * part of one: of those that wait the newest stays.
 */
#ifndef STAGE_VIDEOFEED_H
#define STAGE_VIDEOFEED_H

#include "media/y4m.h"
#include "stage/videospec.h"
#include "wire/packet.h"

#include <signal.h>
#include <stdatomic.h>

/* With its header a fragment is 64 KiB: what fills a pipe's pages and no more. */
#define VIDEOFEED_FRAGMENT_BYTES (PACKET_MAX_PAYLOAD_BYTES - PACKET_HEADER_BYTES)

struct videofeed_frame {
	int64_t pos, utc_ns;
	int64_t arrival_ns;        /* monotonic: its first byte was read */
	uint64_t at_bytes;         /* where it begins, in the ring's count */
	uint32_t got_bytes, sent_bytes;
	bool is_used;
};

struct videofeed {
	const volatile sig_atomic_t *stop; /* no more frames from then on */
	struct videospec spec;
	char name[256];            /* for messages */
	int fd;
	bool owns_fd;
	struct video video;
	struct track track;
	int64_t frame_ns;
	bool is_y4m;
	bool is_known;             /* what the frames are is known: track holds */
	bool has_begun, is_live;
	/* a header's line, as far as it came */
	char line[Y4M_MAX_HEADER_BYTES];
	unsigned line_bytes;
	bool has_line;             /* the next frame's line came */
	bool is_wrong;             /* what came is no such line */
	/* the ring: bytes counted since the last time it was empty */
	uint8_t *ring;
	size_t ring_bytes;
	uint64_t begin_bytes, end_bytes;
	struct videofeed_frame frames[2]; /* the one that goes out, and the one behind it */
	uint32_t handed_bytes;     /* of frames[0], in the packet handed out last */
	uint32_t discard_bytes;    /* still to come of a frame that is dropped */
	/* places */
	int64_t next_pos;          /* of the next frame to come */
	int64_t out_pos;           /* end of what was handed out */
	int64_t anchor_ns, anchor_pos; /* the earliest frames came along the line through here */
	uint32_t pending_drops;    /* dropped since the last frame that went out */
	bool has_out;              /* one went out */
	/* the end */
	bool eof;                  /* nothing more comes in */
	int64_t stop_ns;           /* when the stop was seen */
	bool is_cut;               /* it ended other than it should: why says how */
	bool is_gap_due;           /* a frame whose beginning went out has no end */
	struct err_why why;
	/* counted */
	atomic_uint_fast64_t n_frames, n_dropped, n_paused;
	uint64_t n_bytes;          /* came in */
	int64_t alive_ns;          /* monotonic: when something came last */
	uint8_t gap_bytes[PACKET_GAP_BYTES];
};

/* Open what spec names; does not wait for a FIFO's writer.  Returns: ERR_OK; ERR_ARG, ERR_SYS, ERR_NOMEM with *why.  Role: control. */
enum err videofeed_open(struct videofeed *v, const char *spec, const volatile sig_atomic_t *stop, struct err_why *why) WEIR_MUSTUSE;
void videofeed_release(struct videofeed *v);

/* Frames are taken from now on; the first, if it came now, would stand at time_ns on the stream's timeline (live only). */
void videofeed_begin(struct videofeed *v, bool live, int64_t time_ns);

/* Is the frame that goes out late, so that what comes in must be taken without waiting for it?  Only live. */
bool videofeed_is_behind(const struct videofeed *v, int64_t now_ns);

/* Would videofeed_fill() read? */
bool videofeed_wants(struct videofeed *v, bool behind);

/*
 * One read(2), when the descriptor has something or has ended; no more than the next fragment, or, when behind, what there is room for.
 * What is wrong with the input ends it, with v->why; the rest of the work goes on.  Role: io.
 */
void videofeed_fill(struct videofeed *v, bool behind);

/*
 * The next packet: DATA, a GAP where frames are missing.  Stays until the next call.
 * Returns: ERR_OK; ERR_AGAIN: more has to come in; ERR_END: it is over.
 */
enum err videofeed_next(struct videofeed *v, struct packet *p) WEIR_MUSTUSE;

/* Where the frame that goes out next stands in time. */
int64_t videofeed_time_ns(const struct videofeed *v);

/* What its END says. */
enum packet_end_reason videofeed_end_reason(const struct videofeed *v);

#endif
