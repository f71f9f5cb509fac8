/*
 * One TCP connection of weir://: packets of a weir stream both ways, sealed when there is a key.
 *
 * Beside the packets of the stream there are control packets (type 0x40), which are never handed to anybody but the two
 * ends: who speaks, how far they got, that they live.  Their payload, 64 bytes:
 *   0 u8 kind · 1 u8 version (1) · 2 zero · 8 session[16] · 24 u64 n · 32 i64 ns · the rest zero
 *   kind 1 HELLO   sender → receiver, first of all: its session, and n, the oldest message it still has
 *        2 RESUME  receiver → sender, the answer: it has the first n messages of that session
 *        3 ACK     receiver → sender: it has the first n messages
 *        4 PING    both, once a second: ns is the clock of who sends it
 *        5 PONG    the answer to a PING, with its ns
 *        6 DONE    receiver → sender: it has taken the END of the stream
 * A message is a packet without the flag REPEAT, other than a control packet; messages count from 0 in each session.  The
 * announcements that a new connection begins with are repeats, and no messages.
 *
 * Nothing here waits: a caller polls link_events() and calls link_work().  Nothing allocates after link_begin().
 */
#ifndef LEG_LINK_H
#define LEG_LINK_H

#include "net/seal.h"
#include "rt/ring.h"
#include "wire/packet.h"

#include <sys/uio.h>

#define LINK_SESSION_BYTES 16u
#define LINK_PACKET_TYPE 0x40
#define LINK_CONTROL_BYTES 64u           /* payload of a control packet */
#define LINK_SILENCE_NS (5 * UNITS_NS_PER_S) /* a peer that was not heard for so long is gone */
#define LINK_PING_NS UNITS_NS_PER_S
#define LINK_RING_BYTES (256u << 10)

enum link_kind { LINK_HELLO = 1, LINK_RESUME, LINK_ACK, LINK_PING, LINK_PONG, LINK_DONE };

struct link_control {
	enum link_kind kind;
	uint8_t session[LINK_SESSION_BYTES];
	uint64_t n;
	int64_t ns;
};

struct link {
	int fd;                  /* −1 closed */
	char peer[96];           /* for messages */
	bool is_sealed, is_open; /* open: the handshake is done */
	bool is_over;            /* the other side sends nothing more */
	struct seal seal;
	struct ring in;          /* as they came */
	struct ring plain;       /* packets, when sealed */
	size_t handed_bytes;     /* of the last packet handed out: it goes with the next call */
	uint8_t *out;            /* waits to be sent: handshake, control packets, a record */
	size_t out_bytes, out_done_bytes;
	uint8_t *scratch;        /* a record before it is sealed */
	int64_t heard_ns, sent_ns, begun_ns;
	int64_t round_trip_ns;   /* by the last PONG; −1 none */
	uint64_t n_received_bytes, n_sent_bytes;
};

/*
 * Take over a connected socket (made non-blocking, Nagle off).  psk: 32 bytes, or NULL for plain.  Role: control, io.
 * Returns: ERR_OK; ERR_NOMEM, ERR_SYS with *why; then the socket is closed.
 */
enum err link_begin(struct link *l, int fd, enum seal_side side, const uint8_t *psk, const char *peer, int64_t now_ns, struct err_why *why) WEIR_MUSTUSE;
/* Closes.  Zero-safe. */
void link_end(struct link *l);

/* What poll(2) is to look for: more is read only while there is room for it. */
short link_events(const struct link *l);

/*
 * Go on after poll(2): reads, writes, does the handshake.  Returns: ERR_OK; ERR_PEER: the other side does not know the key, or
 * does not speak this language; ERR_VERSION: another
 * version of it; ERR_GONE: it broke off; ERR_END: it ended, and all that it sent can be had by link_next().
 */
enum err link_work(struct link *l, int64_t now_ns) WEIR_MUSTUSE;

/*
 * The next whole packet, valid until the next call of link_next().  A control packet is one too: link_control_of().
 * Returns: ERR_OK; ERR_AGAIN; ERR_PEER: what came is no stream.
 */
enum err link_next(struct link *l, struct packet *p) WEIR_MUSTUSE;
/* Keep the packet that link_next() gave: it comes again. */
void link_unread(struct link *l);

/* Is it a control packet, and a sound one? */
bool link_control_of(const struct packet *p, struct link_control *c);

/* Queue a control packet.  Returns: ERR_AGAIN if the other side has not taken those before. */
enum err link_tell(struct link *l, const struct link_control *c) WEIR_MUSTUSE;

/* Send pieces of the stream of packets.  Returns: bytes that were taken: 0 while earlier ones wait.  Sets *e when it broke. */
size_t link_send(struct link *l, const struct iovec *iov, unsigned n_iov, int64_t now_ns, enum err *e);

/* Send what waits, as far as it goes.  Returns: ERR_OK, ERR_GONE. */
enum err link_flush(struct link *l, int64_t now_ns) WEIR_MUSTUSE;

/* Has everything been handed to the system? */
bool link_is_flushed(const struct link *l);

/* Was nothing heard of the other side for too long? */
bool link_is_silent(const struct link *l, int64_t now_ns);
/* PING when it is time, and is the other side silent for too long?  Returns: ERR_OK, ERR_GONE. */
enum err link_beat(struct link *l, int64_t now_ns) WEIR_MUSTUSE;

#endif
