/*
 * Messages over a connection that may break: each arrives once, in order, however often it is made anew.
 *
 * The sending side keeps every message until the other side has acknowledged it, in fixed memory.  Message n is the n-th
 * since the beginning, from 0; so no number travels with it as long as one connection lives, and a new connection begins
 * with "I have n".  What is full is said (ERR_AGAIN): nothing is thrown away here.
 *
 * Two threads may share one: a producer, which reserves and puts, and the sender, which does all the rest.
 */
#ifndef NET_REPLAY_H
#define NET_REPLAY_H

#include "rt/ring.h"

#include <stdbool.h>
#include <sys/uio.h>

#define REPLAY_HEAD_BYTES 64u        /* before each message in the ring: messages stay on the grid of packets */
#define REPLAY_DEFAULT_MESSAGES 1024u
#define REPLAY_DEFAULT_BYTES (1u << 20)

struct replay {
	struct ring ring;
	uint64_t max_messages;
	atomic_uint_fast64_t n_put;   /* the producer's */
	atomic_uint_fast64_t n_acked; /* the sender's: these are gone from the ring */
	/* the sender's */
	uint64_t n_sent;
	size_t sent_bytes;            /* in the ring, from its head */
	uint64_t n_again;             /* messages sent more than once */
};

/* Room for at least n_bytes of messages, and for at most max_messages (1…2^32).  Returns: ERR_OK, ERR_NOMEM, ERR_ARG.  Role: control. */
enum err replay_init(struct replay *r, size_t n_bytes, uint64_t max_messages, struct err_why *why) WEIR_MUSTUSE;
void replay_release(struct replay *r);

/* ---- the producer ---- */

/* The largest message that can ever fit, bytes. */
size_t replay_largest_bytes(const struct replay *r);
/* Place for a message of n_bytes, on a multiple of 64, or NULL: full for now. */
uint8_t *replay_reserve(struct replay *r, size_t n_bytes);
/* It is written there: n_bytes as reserved. */
void replay_put(struct replay *r, size_t n_bytes);

/* ---- the sender ---- */

/* The next message to send, NULL if none is. */
const uint8_t *replay_next(const struct replay *r, size_t *n_bytes);
/* That one is on its way. */
void replay_sent(struct replay *r);
/*
 * Messages to send, as they lie, for writev(2): at most room, the first without the skip_bytes of it that went before.
 * Returns: how many.
 */
unsigned replay_vector(const struct replay *r, size_t skip_bytes, struct iovec *iov, unsigned room);
/*
 * The other side has the first n messages.  Returns: ERR_PEER if it cannot have: they were never sent, or it said before that
 * it had more.
 */
enum err replay_ack(struct replay *r, uint64_t n) WEIR_MUSTUSE;
/*
 * A new connection to somebody who has the first n: what follows is sent again.  Returns: ERR_PEER if that is gone (the other
 * side forgot), or was never there.
 */
enum err replay_resume(struct replay *r, uint64_t n) WEIR_MUSTUSE;

/* Messages, and bytes, that wait to be sent or acknowledged.  Any thread; more or less. */
uint64_t replay_held(const struct replay *r);
size_t replay_held_bytes(const struct replay *r);

/* ---- the receiver ---- */

struct replay_in {
	uint64_t n_taken;             /* have come, in order: what is acknowledged */
	uint64_t n_twice;             /* came again */
};

/* Message n has come.  Returns: ERR_OK: it is the next; ERR_AGAIN: had it already; ERR_CUT: some before it are missing. */
enum err replay_take(struct replay_in *in, uint64_t n) WEIR_MUSTUSE;

#endif
