/*
 * Packets that are on their way: put in with the time at which they come out, taken out in that order; equal times in the order they
 * came.  One that is to be overtaken waits until so many later ones have gone.  The packets themselves are the caller's: here
 * they are numbers.  Time is an argument; no memory is taken after transit_init().
 */
#ifndef NET_TRANSIT_H
#define NET_TRANSIT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define TRANSIT_MAX_HELD 64u

struct transit_entry {
	int64_t out_ns;
	uint64_t serial;         /* in the order they came */
	uint32_t slot;           /* the caller's */
	uint32_t behind;         /* later ones that go first */
};

struct transit {
	struct transit_entry *heap; /* the earliest on top */
	uint32_t n, room;
	struct transit_entry held[TRANSIT_MAX_HELD]; /* that wait to be overtaken; out_ns is when they go at the latest */
	uint32_t n_held;
	uint64_t next_serial;
};

/* Room for so many packets.  Returns: ERR_OK, ERR_NOMEM. */
enum err transit_init(struct transit *t, uint32_t room) WEIR_MUSTUSE;
void transit_release(struct transit *t);

/*
 * A packet that comes out at out_ns; with behind > 0 after so many that were put in later, or at latest_ns if they do not come.
 * Returns: false if there is no room.
 */
bool transit_put(struct transit *t, int64_t out_ns, uint32_t slot, uint32_t behind, int64_t latest_ns);

/* When the next one comes out: INT64_MAX if there is none. */
int64_t transit_next_ns(const struct transit *t);

/* The next one that comes out by now_ns.  Returns: false if there is none.  *out_ns (or NULL) is its time. */
bool transit_take(struct transit *t, int64_t now_ns, uint32_t *slot, int64_t *out_ns);

static inline uint32_t transit_count(const struct transit *t)
{
	return t->n + t->n_held;
}

#endif
