/*
 * The receiving end of weir://: senders connect over TCP, and what they send comes out once and in order, however often
 * their connections break.
 *
 * A thread of its own listens, reads and acknowledges.  It hands packets to the caller's functions; one that has no room says
 * so, and only the sender of that packet is kept waiting.  With a key, nobody gets an answer who does not prove that he has it.
 */
#ifndef LEG_LINKRECV_H
#define LEG_LINKRECV_H

#include "net/replay.h"
#include "leg/dgram.h"
#include "leg/link.h"

#include <pthread.h>

#define LINKRECV_MAX_SENDERS 1024u

/* Called by the link's thread; sender: 0…max_senders − 1, the same as long as the session lives. */
struct linkrecv_events {
	void *user;
	/* A new session.  Returns: as packet. */
	enum err (*join)(void *user, unsigned sender, const struct dgram_addr *from);
	/*
	 * A packet of the sender's stream: each once, but announcements (REPEAT) come again with each connection.  Valid during the call.
	 * Returns: ERR_OK; ERR_AGAIN: no room, bring it again later (linkrecv_wake()).
	 */
	enum err (*packet)(void *user, unsigned sender, const struct packet *p);
	/* The session is over: its stream has ended (whole), or it did not come back for a minute.  Returns: as packet. */
	enum err (*leave)(void *user, unsigned sender, bool whole);
	/* May somebody from there speak?  NULL: everybody. */
	bool (*may)(void *user, const struct dgram_addr *from);
	void *may_user;
};

struct linkrecv_options {
	const char *host;         /* to listen on; "" any */
	uint16_t port;            /* 0: a free one, see linkrecv_port() */
	const uint8_t *psk;       /* 32 bytes, NULL plain.  Must outlive it */
	unsigned max_senders;     /* 1…LINKRECV_MAX_SENDERS */
	struct linkrecv_events events;
};

struct linkrecv_counts {
	atomic_uint_fast64_t messages, connects, refused, broken;
	atomic_uint_fast64_t lost; /* that their senders no longer had when they came: this end was started anew */
};

struct linkrecv_session {
	bool is_used, is_whole;
	bool is_leaving;          /* it is over, and that cannot be handed on yet */
	uint8_t id[LINK_SESSION_BYTES];
	struct replay_in in;
	int64_t left_ns;          /* when its connection broke; 0 while it has one */
};

struct linkrecv_link {
	struct link link;
	struct dgram_addr from;
	int session;              /* −1 before its HELLO */
	uint64_t told;            /* acknowledged */
	uint64_t told_bytes;
	int64_t told_ns;
	bool owes_done, is_held;
};

struct linkrecv {
	struct linkrecv_options options;
	struct linkrecv_counts counts;
	char name[DGRAM_TEXT_BYTES];
	int fd, wake_fd;
	uint16_t port;
	pthread_t thread;
	bool is_running;
	atomic_bool quit;
	struct linkrecv_session *sessions; /* max_senders */
	struct linkrecv_link *links;       /* n_links: more than senders, so that strangers cannot take all */
	struct pollfd *polls;
	unsigned n_links;
	uint64_t seed;                     /* of the hash of hosts */
};

/* Listen, and start.  Returns: ERR_OK; ERR_SYS with *why: "port 5004 is in use"; ERR_PEER, ERR_NOMEM.  Role: control. */
enum err linkrecv_open(struct linkrecv *l, const struct linkrecv_options *o, struct err_why *why) WEIR_MUSTUSE;
/* Ends all connections: no function is called after that. */
void linkrecv_release(struct linkrecv *l);

/* There is room again.  Any thread. */
void linkrecv_wake(struct linkrecv *l);

#endif
