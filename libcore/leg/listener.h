/*
 * The sockets of a receiver: one for each port it was told of, and one beside it for RTCP where senders do not put both on one.  Each is two where
 * the system allows it, one for those who are heard and one for strangers, so that strangers take nobody's place in the buffer.  The port is ours
 * alone when it is opened; later another program of the same user may bind it too (SO_REUSEPORT), and gets nothing.
 *
 * Whoever reads them does so at an ordinary priority: what strangers send must not take a processor from a thread that plays.
 */
#ifndef LEG_LISTENER_H
#define LEG_LISTENER_H

#include "net/sdp.h"
#include "net/url.h"
#include "leg/dgram.h"
#include "leg/dgramfilter.h"

#include <poll.h>
#include <stdbool.h>

#define LISTENER_MAX_SOCKETS 256u
#define LISTENER_BATCH 64u
#define LISTENER_MAX_BATCHES 32u         /* read in one turn, of what had come before it */
#define LISTENER_MAX_ASIDE 4u            /* of them, of strangers */
#define LISTENER_SLOT_BYTES 2048u
#define LISTENER_BUFFER_BYTES (4 << 20)  /* of each socket: what comes while we are busy */

struct listener_socket {
	struct dgram d;
	struct dgramfilter filter;
	unsigned port;                   /* the receiver's number of it */
	bool is_rtcp;
	bool is_aside;                   /* hears the strangers of the socket before it, which hears those who are known */
	uint32_t steered_version;        /* of l->known, where the one after it is aside */
};

struct listener {
	struct listener_socket sockets[LISTENER_MAX_SOCKETS];
	unsigned n_sockets;
	struct pollfd polled[LISTENER_MAX_SOCKETS + 2];
	int out_fd;                      /* where all of it goes: listener_work() ends when nobody reads there; −1 none */
	struct dgram_batch batch;
	int64_t read_ns;                 /* all that came before has been handed out: only so far may be played */
	struct dgramfilter_known known;  /* told by the owner, so that a flood of others does not keep them out */
	uint64_t n_floods;               /* so far */
	uint64_t seed;
};

typedef void listener_take(void *user, unsigned port, bool is_rtcp, struct dgram_in *in);

/* Memory for receiving.  *l is zero; seed: secret, random.  Role: control. */
enum err listener_init(struct listener *l, uint64_t seed, struct err_why *why) WEIR_MUSTUSE;
void listener_release(struct listener *l);

/*
 * Hear what comes to u's host and port: a group is joined, "" is any address; and, where it can be had, the port after it for
 * RTCP (must_rtcp: it must be had).  number: what listener_take is told.  Returns: ERR_OK; ERR_SYS, ERR_PEER with *why.
 */
enum err listener_add(struct listener *l, const struct url *u, unsigned number, bool must_rtcp, uint16_t rtcp_port,
	const struct dgram_addr *sources, unsigned n_sources, struct err_why *why) WEIR_MUSTUSE;

/*
 * Wait until something is there, a moment of CLOCK_MONOTONIC, a signal, or until wake_fd (−1 none) can be read; hand out
 * all that is there, or, of more than LISTENER_MAX_BATCHES, so much: l->read_ns says.  A flood of those who are not l->known is thrown away by the system (leg/dgramfilter.h).  Returns: ERR_OK, ERR_GONE: nobody reads out_fd any more, ERR_SYS with *why.  Role: io.
 */
enum err listener_work(struct listener *l, int64_t until_ns, int wake_fd, listener_take *take, void *user, struct err_why *why) WEIR_MUSTUSE;

/*
 * Datagrams that nobody read: strangers' that were refused by the filters, or found no room on a socket for strangers; and others that were thrown
 * away for want of room (or so it may be: where all share one socket, there is a filter, and the buffer is nearly full, all count here).
 */
void listener_unread(struct listener *l, uint64_t *n_filtered, uint64_t *n_overflowed);

/* From the socket of a port. */
void listener_send(struct listener *l, unsigned port, bool is_rtcp, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes);
/* Is the peer's RTCP heard on a socket of its own? */
bool listener_has_rtcp(const struct listener *l, unsigned port);

#endif
