/*
 * Writes a weir stream to a descriptor in few, large writev(2)s.
 *
 * Packets are queued and go out when the queue is full, or when the caller flushes: before it blocks for input, or at
 * the end of a tick.  Small things (headers, announcements) and payloads made in place lie in the writer's arena;
 * payloads that lie elsewhere are queued by reference and must stay until the flush.
 *
 * The writer keeps each track's seq, position and announcement, so that it can repeat them in files and say in END
 * what went by.  Its STREAM id is derived from what it is told (writer_seed), so the same input gives the same bytes.
 */
#ifndef WIRE_WRITER_H
#define WIRE_WRITER_H

#include "wire/packet.h"
#include "wire/track.h"

#include <sys/uio.h>

#define WRITER_MAX_IOV 1024
#define WRITER_DEFAULT_ARENA_BYTES (512u << 10)

struct writer_track {
	struct track track;
	uint32_t seq;            /* of the next object */
	uint64_t frames;         /* units written as DATA */
	uint32_t dropped;        /* cumulative, goes into every header */
	int64_t end_pos;
	bool started, ended;
};

struct writer {
	int fd;
	char name[256];
	bool is_pipe, is_regular;
	bool payload_crc;        /* on for regular files and sockets */
	bool bulk_crc;           /* of pictures too: that reads every byte of them once more */
	struct packet_stream stream;
	uint64_t seed[2];
	bool begun, ended;
	struct iovec iov[WRITER_MAX_IOV];
	int n_iov;
	size_t queued_bytes;
	size_t flush_bytes;      /* flush on its own from here on */
	uint8_t *arena;          /* 64-byte aligned */
	size_t arena_bytes, arena_used_bytes;
	uint8_t *reserved;       /* payload place of writer_reserve(), NULL if none */
	size_t reserved_bytes;
	/* tracks by id, as in the reader */
	struct writer_track **tracks;
	unsigned n_tracks, tracks_room;
	uint16_t *index;
	uint64_t since_announce_bytes, announce_every_bytes; /* 0: never again */
	/* totals */
	uint64_t n_packets, n_payload_bytes, n_bytes, n_writes;
	/*
	 * A descriptor that is not to wait for (O_NONBLOCK) takes no more: called until it does, to wait for that and meanwhile do what
	 * cannot wait.  NULL: the writer waits.
	 */
	void (*wait)(void *user);
	void *wait_user;
	struct err_why why;
	enum err failed;         /* latched: every later call returns it */
};

/*
 * Open on fd (not owned).  Refuses a terminal (ERR_ARG).  Sizes a pipe to 256 KiB where that is allowed, and goes on
 * where not.  tool goes into STREAM.  Role: io.
 */
enum err writer_open(struct writer *w, int fd, const char *name, const char *tool, struct err_why *why) WEIR_MUSTUSE;
void writer_release(struct writer *w);

/* Mix bytes into the stream's uuid: what makes this stream what it is (input uuid, options).  Before writer_begin(). */
void writer_seed(struct writer *w, const void *bytes, size_t n_bytes);

/* Queue STREAM.  w->stream's t0_utc_ns, flags, max_payload_bytes, name may be set before. */
enum err writer_begin(struct writer *w) WEIR_MUSTUSE;

/*
 * Queue TRACK for t->id (copied, TLVs too).  A second one for an id is a new generation (t->gen is set here).
 * Allocates: announcements are not on the packet path.
 */
enum err writer_announce(struct writer *w, const struct track *t) WEIR_MUSTUSE;

/* Room for n_bytes ≤ 65536 of payload in the arena, 64-byte aligned, flushing first if it must.  NULL if that failed (w->failed). */
uint8_t *writer_reserve(struct writer *w, size_t n_bytes);

/*
 * Queue the reserved bytes as packet *p (p->payload_bytes of them; type, flags, track, pos, dur, utc_ns set by the
 * caller; seq, gen, sid, dropped and CRCs by the writer).
 */
enum err writer_commit(struct writer *w, const struct packet *p) WEIR_MUSTUSE;

/* Queue packet *p whose payload lies at p->payload until the next flush.  Objects larger than a payload are cut into fragments. */
enum err writer_put(struct writer *w, const struct packet *p) WEIR_MUSTUSE;

/*
 * Queue a packet as it lies in a reader (p->head, whole, with padding), its header re-packed there for this stream:
 * sid, gen, and what the caller changed in *p (track, pos, …).  seq and dropped are kept.  Copies nothing.
 */
enum err writer_forward(struct writer *w, struct packet *p) WEIR_MUSTUSE;

/* Queue a GAP over [pos, pos+dur). */
enum err writer_gap(struct writer *w, uint16_t track, int64_t pos, uint32_t dur, const struct packet_gap *gap) WEIR_MUSTUSE;

/* Queue CLOCK. */
enum err writer_clock(struct writer *w, const struct packet_clock *clock) WEIR_MUSTUSE;

/* Queue END of a track. */
enum err writer_end_track(struct writer *w, uint16_t track, enum packet_end_reason reason) WEIR_MUSTUSE;

/* Write out everything queued.  Returns: ERR_GONE (EPIPE), ERR_SYS with w->why.  Role: io, blocks. */
enum err writer_flush(struct writer *w) WEIR_MUSTUSE;

/* END of tracks that have none, END of the stream, flush. */
enum err writer_end(struct writer *w, enum packet_end_reason reason) WEIR_MUSTUSE;

struct writer_track *writer_track(struct writer *w, uint16_t id);

#endif
