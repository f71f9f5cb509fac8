/*
 * Several inputs as one: the packets of all, ordered by their place in time as far as they are there, with new track numbers.
 *
 * Numbers follow the inputs: those of the first input, then those of the second…  An input that shows nothing for half a
 * second at the beginning gets one number kept for it.  No input is waited for for ever: one that is silent is passed by, one that runs
 * ahead of the others waits a little for them, so that what reads on need not hold much.  Only the order of packets of different
 * tracks depends on that, never what is in them.
 *
 * FIFOs are opened without waiting for their writers, so one script may feed several of them one after the other.
 */
#ifndef STAGE_JOIN_H
#define STAGE_JOIN_H

#include "stage/joinheap.h"
#include "tool/input.h"

#include <poll.h>

struct joinsource;
struct join_owner;

#define JOIN_MAX_WATCH 8

struct join_options {
	struct input_options input;
	bool with_others;         /* the caller has other things to wait for: see `watch`; there may be no input at all then */
	bool no_input;            /* with_others: no names means none, not stdin */
	/* Is this track wanted?  NULL: all are. */
	bool (*wants)(void *user, const struct track *t);
	void *user;
};

struct join {
	struct join_options options;
	struct joinsource *sources;
	unsigned n_sources;
	struct pollfd *polls;
	struct joinheap heap;        /* those that have a packet, the earliest on top */
	unsigned n_hungry;           /* those that need to be read from before they can go on */
	int64_t behind_ns;           /* where the earliest of them is expected to go on */
	struct joinsource *last;    /* handed out a packet, and has not gone on yet */
	struct join_owner *owners;   /* by new number */
	uint16_t next_id;
	bool starting;               /* the numbers are not given out yet */
	int64_t start_ns;            /* monotonic, of the first fill */
	unsigned announcing;         /* the source whose announcements are being handed out */
	unsigned budget;             /* packets that may go before the hungry ones are looked at again */
	struct joinsource *blocked; /* the one that waits for others, */
	int64_t blocked_ns;          /* since then */
	/*
	 * Other descriptors the caller waits for, set before each join_fill(), which looks at them together with the inputs and comes
	 * back when one of them is ready (revents), or after watch_ns: 0 at once, −1 when it likes.
	 */
	struct pollfd watch[JOIN_MAX_WATCH];
	unsigned n_watch;
	int64_t watch_ns;
	/* The same once more, for a second such caller: fd −1 none. */
	struct pollfd also;
	int64_t also_ns;
	struct track view;           /* of join_track(): borrows everything */
	/* totals of the packets handed out */
	uint64_t n_packets, frames;
	double position_s;
	struct err_why why;
};

/* Open n inputs by name; none: stdin.  Returns: ERR_OK; ERR_ARG ("-" twice, too many); what input_open() says.  Role: io. */
enum err join_open(struct join *j, char *const *names, unsigned n, const struct join_options *o, struct err_why *why) WEIR_MUSTUSE;
void join_release(struct join *j);

/*
 * The next packet, its track renumbered.  Returns: ERR_OK; ERR_AGAIN: let go of all packets and call join_fill(); ERR_END;
 * what input_next() says.  Does not block.
 */
enum err join_next(struct join *j, struct packet *p) WEIR_MUSTUSE;

/*
 * What join_next() would give, without taking it.  *time_ns: where it stands in time; with ERR_AGAIN, where the earliest of those
 * that need to be read from is expected to go on.  Returns: ERR_OK, ERR_AGAIN, ERR_END, or what failed.
 */
enum err join_peek(struct join *j, int64_t *time_ns) WEIR_MUSTUSE;

/* Are the first tracks' numbers given out?  From then on a track of the caller's own takes the next one.  Returns: 0: there is none left. */
bool join_has_begun(const struct join *j);
uint16_t join_take_id(struct join *j);

/* Read on from those that need it.  Ends the life of all packets.  Role: io, blocks. */
enum err join_fill(struct join *j) WEIR_MUSTUSE;

/* The announcement of a track by its new number, or NULL.  Until the next call of anything here. */
const struct track *join_track(struct join *j, uint16_t id);

/* The only input's stream, or the first one's that is a stream: for its clock and flags.  NULL: none (yet). */
const struct packet_stream *join_stream(const struct join *j);

/* The i-th input, opened or not: for what it lost.  NULL beyond the last or before it is opened. */
struct input *join_input(struct join *j, unsigned i);

/* How long the longest is, in seconds, if all are audio files that say so; else −1. */
double join_total_s(const struct join *j);

/* Something was lost on the way in; and the first such line: "NAME: …". */
bool join_is_cut(const struct join *j);
void join_describe_loss(const struct join *j, struct err_why *why);

#endif
