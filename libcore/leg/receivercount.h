/*
 * What a receiver counts: of each flow, of all that it had, and as the statistics show it.
 */
#ifndef LEG_RECEIVERCOUNT_H
#define LEG_RECEIVERCOUNT_H

#include "leg/netflow.h"
#include "tool/stats.h"

struct receiver;

/* As the statistics show it. */
struct receiver_counts {
	atomic_uint_fast64_t received, lost, recovered, concealed_frames, skipped_frames, late_packets, reordered, duplicate, jitter_us, depth_us, refused, strangers, senders,
		forged, replayed, unsent_frames, round_trip_us, one_way_us;
};

/* Sums over flows. */
struct receivercount {
	uint64_t received, lost, recovered, concealed_frames, skipped_frames, late_packets, reordered, duplicate, refused, unsent_frames;
	uint64_t lost_frames, gaps, dropped_frames, frames_out;
};

void receivercount_add(struct receivercount *sums, const struct netflow *f);

/* Bring the counters up to date, and the common ones of s. */
void receivercount_show(struct receiver *r, struct stats *s);

#endif
