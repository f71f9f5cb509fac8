/*
 * The sending end of weir://: packets go to one receiver over TCP, each once and in order, and the connection is made anew
 * when it breaks.
 *
 * A thread of its own connects, sends and hears acknowledgements.  The caller puts packets and never waits for the network
 * unless it asks to.  Memory is fixed but for the announcements, of which the last of each track is kept: a new connection
 * begins with them.
 */
#ifndef LEG_LINKSEND_H
#define LEG_LINKSEND_H

#include "net/replay.h"
#include "leg/dgram.h"
#include "leg/link.h"
#include "leg/linkaddrs.h"

#include <pthread.h>
#include <signal.h>

struct linksend_options {
	const char *host;         /* must outlive it: it is looked up again */
	uint16_t port;
	const uint8_t *psk;       /* 32 bytes of a sealed link; NULL plain.  Must outlive it */
	size_t room_bytes;        /* kept until acknowledged; 0: 4 MiB */
	uint64_t max_messages;    /* 0: 65536 */
	/*
	 * An announcement of a track is about to be repeated to a new connection: bring its payload up to date in place (the roll-over
	 * counter).  NULL: it is right as it is.  Called by the link's thread.
	 */
	void (*refresh)(void *user, uint16_t track, uint8_t *payload, size_t n_bytes);
	void *user;
	linkaddrs_resolve *resolve; /* NULL: the system's */
};

/* Written by the link's thread, read by anybody. */
struct linksend_counts {
	atomic_uint_fast64_t connects, messages, again, acked, round_trip_us, connected;
};

struct linksend_announcement {
	uint16_t track;
	size_t n_bytes;           /* on the wire */
	uint8_t *wire;
};

struct linksend {
	struct linksend_options options;
	struct linksend_counts counts;
	char name[DGRAM_TEXT_BYTES];
	struct replay replay;
	uint8_t session[LINK_SESSION_BYTES];
	int room_fd;              /* readable when acknowledgements came: for poll(2); linksend_wait() takes it */
	int wake_fd;
	pthread_t thread;
	bool is_running;
	atomic_bool quit, is_asleep, is_done, has_news, has_peer;
	/* under lock: announcements, news, peer */
	pthread_mutex_t lock;
	struct linksend_announcement *announcements;
	unsigned n_announcements, announcements_room;
	char news[256];
	struct dgram_addr peer;
	/* the thread's */
	struct linkaddrs addrs;
	struct link link;
	enum { LINKSEND_AWAY, LINKSEND_CONNECTING, LINKSEND_GREETING, LINKSEND_OPEN, LINKSEND_OVER } step;
	int connecting_fd;
	int64_t try_at_ns, pause_ns;
	unsigned greetings;       /* that were not answered, in a row */
	bool is_greeted, wants_out, is_refused_said, owes_pong;
	int64_t pong_ns;
	uint8_t *prologue;        /* announcements for this connection */
	size_t prologue_bytes, prologue_room, prologue_done_bytes, part_bytes;
};

/*
 * Start: looks the host up, draws a session, begins to connect in the background.
 * Returns: ERR_OK; ERR_PEER: no such host; ERR_NOMEM, ERR_SYS.  Role: control.
 */
enum err linksend_open(struct linksend *l, const struct linksend_options *o, struct err_why *why) WEIR_MUSTUSE;
void linksend_release(struct linksend *l);

/*
 * Put a packet (whole, or a fragment; head and payload may lie apart, extensions are not taken).  Copied once.  Announcements are kept
 * too, also where there is no room for them.  Returns: ERR_OK; ERR_AGAIN: no room; ERR_LIMIT: larger than all the room; ERR_NOMEM (announcements).  Role: io.
 */
enum err linksend_put(struct linksend *l, const struct packet *p) WEIR_MUSTUSE;
/* Put all announcements that are kept again.  Returns: ERR_OK; ERR_AGAIN: not all found room.  Role: io. */
enum err linksend_again(struct linksend *l) WEIR_MUSTUSE;
/* Would messages of so many bytes in n packets fit now? */
bool linksend_has_room(const struct linksend *l, uint64_t n_bytes, unsigned n);
/* Wait until some room came, or limit_ns.  Role: io. */
void linksend_wait(struct linksend *l, int64_t limit_ns);

/* Something a person should hear about the connection, once each.  Returns: false: nothing new. */
bool linksend_news(struct linksend *l, char out[static 256]);

/* Where it is connected to, once for each connection.  Returns: false: that is as before. */
bool linksend_peer(struct linksend *l, struct dgram_addr *peer);

/*
 * The stream's END was put: wait until the other side has all.  Gives up when nothing was acknowledged for limit_ns, or at *stop.
 * Returns: ERR_OK; ERR_PEER with *why: how many messages are not known to have arrived.  Role: io.
 */
enum err linksend_finish(struct linksend *l, int64_t limit_ns, const volatile sig_atomic_t *stop, struct err_why *why) WEIR_MUSTUSE;

#endif
