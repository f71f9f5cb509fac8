/*
 * What netsend sends over weir:// beside its sound: announcements, data, text, pictures, to every receiver that is named.
 *
 * Reliable tracks wait for room as long as there is hope; a live stream does not wait for a receiver that has stopped taking:
 * then what does not fit is lost for that receiver, counted and said.  Lossy tracks and pictures lose whole objects, never parts.
 * What one receiver does not take is no reason for another to go without.
 */
#ifndef LEG_LINKOUT_H
#define LEG_LINKOUT_H

#include "net/url.h"
#include "leg/linksend.h"
#include "tool/stats.h"
#include "wire/track.h"

#include <poll.h>

#define LINKOUT_MAX 32u

struct linkout_to {
	struct linksend send;
	uint64_t seen_acked;
	int64_t stuck_ns;         /* since when it has had no room; 0: it had */
	bool is_behind;           /* it lost something, and gets nothing more before it has room for half */
	bool owes;                /* it missed an announcement, and gets all of them again before anything else */
	bool is_chosen;           /* the object that waits goes there */
	uint64_t lost;
};

struct linkout {
	struct tool *tool;
	struct linkout_to *to;    /* n_to of them */
	unsigned n_to;
	bool is_live;             /* may be set at any time: do not wait */
	bool has_stream;
	size_t offset_bytes;      /* of the packet that waits: so much of it went */
	atomic_uint_fast64_t packets, lost, dropped_objects, held_bytes, connected, again;
};

/* Begin to connect to each URL.  psk as linksend's.  *l is zero.  Returns: as linksend_open().  Role: control. */
enum err linkout_open(struct linkout *l, struct tool *t, const struct url *urls, unsigned n, const uint8_t *psk, struct err_why *why) WEIR_MUSTUSE;
void linkout_release(struct linkout *l);
/* Its counters, for --stats. */
void linkout_count(struct linkout *l, struct stats *s);

/* The stream that it is all part of, before anything else. */
enum err linkout_stream(struct linkout *l, const struct packet_stream *s, struct err_why *why) WEIR_MUSTUSE;
/* A track; binding: what TLV 8 is to say, NULL nothing.  Waits for room where it must: announcements are not lost. */
enum err linkout_track(struct linkout *l, const struct track *t, const void *binding, uint32_t n_bytes, const volatile sig_atomic_t *stop, struct err_why *why) WEIR_MUSTUSE;

/*
 * DATA, GAP, CLOCK, END of a track t.  Returns: ERR_OK; ERR_AGAIN: no room yet, bring the same packet again when linkout_polls()
 * says so.  Role: io.
 */
enum err linkout_take(struct linkout *l, const struct packet *k, const struct track *t) WEIR_MUSTUSE;

/* Was every receiver there, once? */
bool linkout_is_met(const struct linkout *l);

/* Descriptors that become readable when there is room.  Returns: how many of p were filled, at most LINKOUT_MAX. */
unsigned linkout_polls(const struct linkout *l, struct pollfd *p);
/* After poll(2), and now and then: take notice, and say what a person should know. */
void linkout_work(struct linkout *l);

/* END of the stream, and wait until all receivers have all.  Returns: ERR_OK; ERR_PEER, ERR_CUT with *why what did not arrive. */
enum err linkout_end(struct linkout *l, enum packet_end_reason reason, const volatile sig_atomic_t *stop, struct err_why *why) WEIR_MUSTUSE;

#endif
