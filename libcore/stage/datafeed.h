/*
 * Messages from a FIFO, a socket or a file, as objects of a data track.
 *
 * A message is read once into a ring and handed out from there.  The ring holds 1 MiB and the queue as many messages as the track
 * says: when either is full, a reliable feed reads no more, so its producer waits and nobody else does; a lossy one that is live
 * drops its oldest messages, and those that are older than its limit.  Nothing is allocated once it is open.
 */
#ifndef STAGE_DATAFEED_H
#define STAGE_DATAFEED_H

#include "rt/ring.h"
#include "stage/datacut.h"
#include "stage/dataspec.h"
#include "wire/packet.h"

#include <stdatomic.h>

/* Chunks of a whole file: each an object whose first 16 bytes are u8 kind, 3 × 0, u32 number, u64 offset, then the body. */
#define DATAFEED_HEAD_BYTES 16u
#define DATAFEED_CHUNK_BYTES (60u << 10) /* with its head */
#define DATAFEED_SCHEMA "x-weir/file"
enum datafeed_chunk { DATAFEED_HEADER = 1, DATAFEED_BODY = 2, DATAFEED_TRAILER = 3 };

#define DATAFEED_RATE_HZ 1000000u        /* positions are in microseconds */

struct datafeed_message {
	uint64_t begin_bytes;    /* where it lies, in the ring's count */
	uint64_t end_bytes;      /* where the next one may begin */
	uint32_t n_bytes;
	uint8_t status;          /* MIDI: before it */
	int64_t arrival_ns;      /* monotonic */
};

enum datafeed_state { DATAFEED_LOW, DATAFEED_FULL };

struct datafeed {
	struct dataspec spec;
	struct track track;
	int fd;
	bool owns_fd, is_fifo, is_socket, is_regular, is_bound;
	bool is_live;            /* a lossy one drops */
	bool is_new;             /* the descriptor is another one under the same number: to be watched anew */
	bool had_writer;         /* a FIFO: somebody wrote, or went away */
	bool is_quiet;           /* and nobody is known to hold it open now */
	bool eof, is_over;       /* nothing more is read; nothing more is handed out */
	bool is_cut;             /* it ended other than it should: why says how */
	struct ring ring;
	uint64_t base_bytes;     /* of the ring's read end, in the count */
	uint64_t read_bytes, cut_bytes; /* read so far; cut into messages so far */
	struct datacut cut;
	/* of a whole file */
	unsigned file_step;
	uint32_t file_chunks, file_crc;
	uint64_t file_bytes;
	/* the queue, a ring of numbers that only grow: handed out, waiting */
	struct datafeed_message *messages;
	uint64_t released, next, end;
	enum datafeed_state state;
	uint32_t pending_drops;  /* since the last one that was handed out */
	uint8_t small[1 + DATACUT_CLOCKED_BYTES]; /* a MIDI message that was put together */
	int64_t alive_ns;        /* monotonic: when something came last */
	struct err_why why;
	/* counted */
	uint64_t n_messages, n_bytes, n_dropped, n_full;
};

/* Open what the spec names, or make its socket; does not wait for a FIFO's writer.  Returns: ERR_OK, ERR_SYS, ERR_ARG, ERR_NOMEM.  Role: control. */
enum err datafeed_open(struct datafeed *f, const struct dataspec *spec, struct err_why *why) WEIR_MUSTUSE;
void datafeed_release(struct datafeed *f);

/* Would datafeed_fill() read? */
bool datafeed_wants(const struct datafeed *f);

/* Read what is there, when there is something or its end.  What is wrong with the input ends it, with f->why.  Role: io. */
void datafeed_fill(struct datafeed *f, int64_t now_ns);

/*
 * The next message.  *p: its payload and flags; the caller knows where it stands.  The payload stays until datafeed_let_go().
 * *n_dropped: so many were dropped before it.  Returns: ERR_OK; ERR_AGAIN: none is there; ERR_END: and none will come.
 */
enum err datafeed_next(struct datafeed *f, int64_t now_ns, struct packet *p, int64_t *arrival_ns, uint32_t *n_dropped) WEIR_MUSTUSE;

/* All messages that were handed out have been written: their place is free. */
void datafeed_let_go(struct datafeed *f);

/* Messages that wait. */
static inline uint64_t datafeed_waiting(const struct datafeed *f)
{
	return f->end - f->next;
}

#endif
