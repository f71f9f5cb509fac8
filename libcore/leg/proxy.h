/*
 * A bad network between UDP programs: datagrams that come to one address go on to another, later, not at all, twice or in another
 * order; answers go back the same way to whoever asked.  What is in them is nobody's business here.
 *
 * Memory is taken at the start: so many datagrams may be on their way, and what does not fit is dropped and counted.  Each
 * sender gets a socket of its own towards the other side, so that its answers find it.
 *
 * Anybody may send, under any address: there are so many places for senders, and who was silent for ten seconds loses his to a new one,
 * who never sent more than a few datagrams already after a quarter of a second; and of a host that has several, one goes to a host that has
 * none.  One sender's datagrams leave room for others'.
 */
#ifndef LEG_PROXY_H
#define LEG_PROXY_H

#include "net/impairment.h"
#include "net/transit.h"
#include "net/url.h"
#include "leg/dgram.h"
#include "tool/stats.h"
#include "tool/tool.h"

#include <poll.h>
#include <stdio.h>

#define PROXY_MAX_PEERS 64u
#define PROXY_SMALL_BYTES 2048u
#define PROXY_N_SMALL 16384u
#define PROXY_N_LARGE 256u
#define PROXY_BUFFER_BYTES (4 << 20)      /* asked of the system for each socket */

enum proxy_direction { PROXY_THERE, PROXY_BACK, PROXY_N_WAYS };

struct proxy_options {
	struct impairment_config network; /* one for each direction, with seeds that are told from it */
	bool there, back;         /* which directions it is bad in */
	int64_t duration_ns;      /* ends after so long; 0: with a signal */
	FILE *record;             /* delays of what goes there; NULL; not owned */
};

struct proxy_peer {
	bool is_used;
	uint32_t life;            /* told apart from who had the place before */
	struct dgram_addr addr;
	struct dgram socket;      /* connected to the other side */
	unsigned bucket;          /* of its host */
	int64_t seen_ns;
	uint64_t n_heard;         /* datagrams of it */
	uint32_t n_underway;      /* to it or from it */
};

struct proxy_item {
	uint32_t n_bytes, life;
	uint16_t peer;
};

struct proxy_way {
	struct impairment network;
	bool is_bad;
	struct transit transit;
	uint64_t packets_in, packets_out, overflows, unsent;
};

struct proxy {
	struct tool *tool;
	struct stats *stats;
	struct proxy_options o;
	char from[DGRAM_TEXT_BYTES], to[DGRAM_TEXT_BYTES];
	struct dgram listener;
	struct dgram_addr target;
	struct proxy_peer peers[PROXY_MAX_PEERS];
	uint16_t poll_peers[PROXY_MAX_PEERS + 2];
	struct pollfd polls[PROXY_MAX_PEERS + 2];
	unsigned n_peers, last_peer;
	struct proxy_way way[PROXY_N_WAYS];
	/* datagrams on their way: small ones first, then large ones */
	uint8_t *small, *large;
	struct proxy_item *items;
	uint32_t *spare_small, *spare_large, n_spare_small, n_spare_large;
	uint32_t *sent, n_sent;   /* queued in the outbox */
	struct dgram_batch batch;
	struct dgram_outbox outbox;
	int timer_fd;
	int64_t timer_ns;         /* what it is set to */
	uint64_t refused;         /* of new senders, for want of places */
	uint64_t seed;            /* of the hash of hosts, secret */
	int64_t said_ns;          /* what strangers can cause is said once a second */
	atomic_uint_fast64_t lost_packets, queue_lost_packets, overflow_packets, unsent_packets, refused_packets, delayed_packets,
		reordered_packets, duplicated_packets, max_delay_us, underway_packets, senders, kernel_dropped;
	struct err_why why;
};

/* Open both sides and take all memory.  *p is zeroed.  Returns: ERR_OK; ERR_ARG, ERR_PEER, ERR_SYS … with *why.  Role: control. */
enum err proxy_open(struct proxy *p, struct tool *t, struct stats *s, const struct url *from, const struct url *to,
	const struct proxy_options *o, struct err_why *why) WEIR_MUSTUSE;

/* Until a stop is asked for or the time is over.  Returns: ERR_OK; what failed, with p->why.  Role: io. */
enum err proxy_run(struct proxy *p) WEIR_MUSTUSE;

/* One direction in a line for people: "FROM to HOST: 52 of 1000 lost…". */
const char *proxy_describe(const struct proxy *p, enum proxy_direction d, char out[static 400]);

/* One line about what strangers do, a second at most. */
void proxy_say_rarely(struct proxy *p, const char *thing, const char *text);

void proxy_release(struct proxy *p);

#endif
