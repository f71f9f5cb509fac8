/*
 * The newest Opus packets of a track, kept so that a decoder can begin anew at any frame: it needs 80 ms before it to be where it
 * would have been (RFC 7845 4.6).
 */
#ifndef STAGE_PREROLL_H
#define STAGE_PREROLL_H

#include "wire/packet.h"
#include "wire/track.h"

#define PREROLL_FRAMES 3840        /* 80 ms at 48 kHz */

struct preroll_packet;

struct preroll {
	struct preroll_packet *ring; /* NULL: nothing is kept */
	unsigned next, n;
};

/* Take the memory for the packets of t, so that usual ones need no more of it.  Returns: ERR_OK, ERR_NOMEM. */
enum err preroll_init(struct preroll *r, const struct track *t) WEIR_MUSTUSE;
void preroll_release(struct preroll *r);

/* Keep a copy; the oldest goes.  Nothing if there is no ring. */
enum err preroll_add(struct preroll *r, const struct packet *p) WEIR_MUSTUSE;

/* Coding begins anew: what came before is of no use to what follows. */
void preroll_clear(struct preroll *r);

/*
 * The i-th packet that a decoder needs which is to give the frames from pos on, or NULL after the newest one.  They are in a row,
 * begin 80 ms before pos if there is that much since the last hole, and reach up to the newest one.
 */
const struct packet *preroll_packet(const struct preroll *r, int64_t pos, unsigned i);

#endif
