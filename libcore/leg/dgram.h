/*
 * UDP sockets: IPv4 and IPv6, unicast and multicast, many datagrams a call, and what the network says back.
 *
 * A socket never blocks: a caller waits with poll(2) on d->fd and works off what is there.  Nothing is allocated after
 * dgram_batch_init().
 */
#ifndef LEG_DGRAM_H
#define LEG_DGRAM_H

#include "base/err.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define DGRAM_MAX_BYTES 65507u
#define DGRAM_MAX_BATCH 1024u    /* UIO_MAXIOV: what one sendmmsg(2) takes */
#define DGRAM_TEXT_BYTES 96u
#define DGRAM_MAX_ADDRS 16u      /* of a name, that are of interest */

/* A socket address of either family. */
struct dgram_addr {
	socklen_t n_bytes;           /* 0: none */
	union {
		struct sockaddr any;
		struct sockaddr_in ip4;
		struct sockaddr_in6 ip6;
	};
};

struct dgram_options {
	const char *iface;           /* multicast, and IPv6 link-local, go out and come in here; NULL or "": the system's choice */
	int ttl;                     /* hops of what is sent: multicast and unicast; −1: the system's (1 for multicast) */
	bool no_loop;                /* multicast that is sent is not heard on this host */
	bool twin;                   /* a second socket of ours is bound to the same port: SO_REUSEPORT, see dgramfilter_steer() */
	bool share;                  /* others may bind the same port: every socket gets multicast */
	bool join;                   /* `local` is a group: join it */
	const struct dgram_addr *sources; /* with join: only from these (RFC 4607), n_sources of them */
	unsigned n_sources;
	bool timestamps;             /* arrival times by the kernel */
	int receive_bytes, send_bytes; /* buffers; 0: as they are.  Larger than the system allows is cut, not an error */
	bool complaints;             /* keep what the network says about single datagrams for dgram_complaint() */
	int dscp;                    /* 46 is expedited forwarding (RFC 3246); 0 none */
};

struct dgram {
	int fd;                      /* −1 when closed */
	int family;
	bool is_connected;
	bool has_timestamps;
	bool has_complaints;
	char name[DGRAM_TEXT_BYTES]; /* for messages */
};

/*
 * Look a host up, or take an address in either notation ("fe80::1%eth0" has a scope); "" or NULL is any address of
 * `family` (AF_UNSPEC: IPv6, which takes IPv4 too, or IPv4 where there is no IPv6).  May block on the resolver.
 * Returns: ERR_OK; ERR_PEER: "no such host".  Role: control.
 */
enum err dgram_resolve(struct dgram_addr *a, const char *host, uint16_t port, int family, struct err_why *why) WEIR_MUSTUSE;

/* The same, but up to `room` addresses, at least one, in the order in which they are to be tried (RFC 6724). */
enum err dgram_resolve_all(struct dgram_addr *a, unsigned room, unsigned *n, const char *host, uint16_t port, int family, struct err_why *why) WEIR_MUSTUSE;

/*
 * Open a socket bound to *local (port 0: a free one), or of a family only (n_bytes 0, any.sa_family set), and set what
 * the options say.  Returns: ERR_OK; ERR_SYS with *why in plain words: "port 5004 is in use", "no interface eth7".
 * Role: control.
 */
enum err dgram_open(struct dgram *d, const struct dgram_addr *local, const struct dgram_options *o, struct err_why *why) WEIR_MUSTUSE;
void dgram_close(struct dgram *d);

/* Send to and hear from one peer only; then an unreachable peer is an error of the next send.  Role: control. */
enum err dgram_connect(struct dgram *d, const struct dgram_addr *peer, struct err_why *why) WEIR_MUSTUSE;

/* What the kernel holds for it. */
struct dgram_memory {
	uint32_t used_bytes, room_bytes; /* of datagrams that came, with what the kernel needs to describe them */
	uint32_t n_dropped;              /* since it was opened: no room, refused by a filter, a wrong checksum; turns over */
};

/* Returns: false: the system does not say.  Role: any. */
bool dgram_memory(const struct dgram *d, struct dgram_memory *m);

/* What it is bound to. */
enum err dgram_local(const struct dgram *d, struct dgram_addr *a, struct err_why *why) WEIR_MUSTUSE;

/* ---- many at once ---- */

/* Places for datagrams to receive into. */
struct dgram_in {
	uint8_t *bytes;              /* slot_bytes of the batch; valid until the next receive */
	size_t n_bytes;
	bool is_cut;                 /* it was longer than a slot */
	int64_t arrival_ns;          /* CLOCK_MONOTONIC: by the kernel if it has timestamps, else when it was read */
	struct dgram_addr from;
};

struct dgram_batch {
	unsigned n_slots;
	size_t slot_bytes;
	struct dgram_in *in;         /* n_slots; the first n of the last receive are filled */
	struct mmsghdr *heads;
	struct iovec *iov;
	uint8_t *bytes, *control;
};

/* Memory for n_slots (1…1024) datagrams of slot_bytes.  Role: control. */
enum err dgram_batch_init(struct dgram_batch *b, unsigned n_slots, size_t slot_bytes, struct err_why *why) WEIR_MUSTUSE;
void dgram_batch_release(struct dgram_batch *b);

/*
 * Take what is there, at most n_slots.  *n may be 0.  Returns: ERR_OK; ERR_PEER: the network said that a peer of a connected
 * socket cannot be reached (the socket goes on); ERR_SYS with *why.  Role: io; does not block.
 */
enum err dgram_receive(struct dgram *d, struct dgram_batch *b, unsigned *n, struct err_why *why) WEIR_MUSTUSE;

/* One datagram to send: where, and its bytes in up to two pieces (a header of its own and a shared payload). */
struct dgram_out {
	const struct dgram_addr *to; /* NULL on a connected socket */
	struct iovec piece[2];
	unsigned n_pieces;
};

/* Heads for sendmmsg(2), taken once. */
struct dgram_outbox {
	unsigned room, n;
	struct mmsghdr *heads;
	struct iovec *iov;           /* two for each */
	const struct dgram_addr **to;
	const struct dgram_addr *failed_to; /* of the first that failed in the last dgram_send(); NULL if none or connected */
};

enum err dgram_outbox_init(struct dgram_outbox *b, unsigned room, struct err_why *why) WEIR_MUSTUSE;
void dgram_outbox_release(struct dgram_outbox *b);
/* Queue one; the bytes and the address stay until dgram_send().  Returns: false: full, send first. */
bool dgram_queue(struct dgram_outbox *b, const struct dgram_out *out);
/*
 * Send all that is queued, in order, and empty the box.  A datagram that the network refuses (unreachable, no buffer space, no
 * route) is counted in *n_failed, its errno in *first_errno, and the others still go.  Role: io; does not block: a full socket
 * buffer is waited for at most 2 ms.
 */
void dgram_send(struct dgram *d, struct dgram_outbox *b, unsigned *n_failed, int *first_errno);

/*
 * What the network said about a datagram that was sent some time before: to whom, and why not.  With `complaints` only.
 * Returns: false: nothing more.  Role: io; does not block.
 */
bool dgram_complaint(struct dgram *d, struct dgram_addr *to, int *sys_errno);

/* ---- words ---- */

/* "192.0.2.7:5004" "[2001:db8::1]:5004". */
const char *dgram_text(const struct dgram_addr *a, char out[static DGRAM_TEXT_BYTES]);
/* What an errno of a send means: "nobody listens there", "no route to that network", or strerror(3). */
const char *dgram_reason(int sys_errno);
bool dgram_is_multicast(const struct dgram_addr *a);
uint16_t dgram_port(const struct dgram_addr *a);
void dgram_set_port(struct dgram_addr *a, uint16_t port);
/* Same address and port; IPv4 within IPv6 is the same as itself. */
bool dgram_same(const struct dgram_addr *a, const struct dgram_addr *b);
/* Same address, ports do not matter. */
/* A number for the host, that nobody works out without the seed: for tables that strangers fill. */
uint64_t dgram_host_hash(const struct dgram_addr *a, uint64_t seed);
bool dgram_same_host(const struct dgram_addr *a, const struct dgram_addr *b);

#endif
