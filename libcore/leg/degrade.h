/*
 * A bad network for the packets of a stream, in virtual time: a packet sets out when its last frame has been played, by its
 * position, so nothing waits and the same input meets the same fate however fast it comes.
 *
 * Each track has a network of its own, with a seed that is told by the track's number.  A packet that is lost, or that
 * comes later than a receiver of the given depth would have waited, is a hole with the reason "network loss"; order is
 * restored and what came twice is left out, as a receiver does.  Raw: packets in the order in which they arrive, twice
 * if they do, and nothing where one is missing.
 */
#ifndef LEG_DEGRADE_H
#define LEG_DEGRADE_H

#include "net/impairment.h"
#include "tool/pump.h"
#include "tool/select.h"

#include <stdio.h>

struct degrade_lane;
struct degrade_pool;

struct degrade_options {
	struct impairment_config network;
	int64_t deadline_ns;      /* beyond the constant delay a packet is late; −1: never */
	bool raw;
	const struct opt_list *wanted; /* tracks; empty: all but reliable ones */
	FILE *record;             /* the first track's delays go there; NULL; not owned */
};

struct degrade {
	struct pump *pump;
	struct degrade_options o;
	struct select_hits hits;
	struct degrade_lane **lanes;
	unsigned n_lanes;
	struct degrade_pool *pool; /* raw */
	atomic_uint_fast64_t lost_packets, queue_lost_packets, late_packets, delayed_packets, reordered_packets, duplicated_packets,
		loss_bursts, max_delay_us;
};

/* Takes the memory that raw needs, and adds its counters to the pump's.  Before pump_open(). */
enum err degrade_init(struct degrade *d, struct pump *pump, const struct degrade_options *o, struct err_why *why) WEIR_MUSTUSE;
void degrade_release(struct degrade *d);

/* What the options make of the stream's id.  After pump_open(). */
void degrade_seed(struct degrade *d);

/* For pump_run(), with the struct degrade as stage. */
enum err degrade_packet(void *stage, struct packet *p) WEIR_MUSTUSE;
enum err degrade_finish(void *stage) WEIR_MUSTUSE;

/* The i-th track in a line for people, or NULL: "52 of 1000 packets lost (5.20 %) in 48 bursts…"; and which track. */
const char *degrade_describe(const struct degrade *d, unsigned i, char out[static 320], uint16_t *track);

#endif
