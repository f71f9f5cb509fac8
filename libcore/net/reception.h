/*
 * What a receiver counts of a source, and the report block made of it (RFC 3550 appendix A.3, A.8).
 * Pure: times are arguments; nothing is allocated.
 */
#ifndef NET_RECEPTION_H
#define NET_RECEPTION_H

#include "net/rtcp.h"

struct reception {
	bool started;
	struct rtp_unwrap seq;
	int64_t base_seq;         /* first, unwrapped */
	uint64_t n_received;      /* duplicates too, as the RFC has it */
	uint64_t expected_prior, received_prior;
	uint32_t transit;         /* of the packet before, in units of the timestamp */
	double jitter;            /* in units of the timestamp */
	uint32_t last_sr;         /* of the source; 0 none */
	int64_t sr_arrival_ns;
};

/* A packet came at arrival_ns (any clock that goes on evenly).  clock_hz is the timestamp's.  Role: any. */
void reception_take(struct reception *r, uint16_t seq, uint32_t ts, int64_t arrival_ns, uint32_t clock_hz);
void reception_sr(struct reception *r, const struct rtcp_sr *sr, int64_t arrival_ns);
/* The report block of now; the fraction is since the call before. */
struct rtcp_report reception_report(struct reception *r, uint32_t ssrc, int64_t now_ns);
/* Packets that should have come by now, and did not; may be negative. */
int64_t reception_lost(const struct reception *r);

#endif
