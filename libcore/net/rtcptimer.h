/*
 * When to send the next compound packet of RTCP (RFC 3550 section 6.2, 6.3, appendix A.7).
 * Pure: times and random numbers are arguments.
 */
#ifndef NET_RTCPTIMER_H
#define NET_RTCPTIMER_H

#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTCP_MIN_INTERVAL_NS (5 * UNITS_NS_PER_S)

struct rtcptimer {
	double bandwidth_bps;     /* of the session; RTCP takes 5 % */
	bool reduced_minimum;     /* 360 s ÷ kb/s instead of 5 s, where that is less */
	bool we_send;
	bool initial;             /* nothing sent yet */
	unsigned n_members, n_senders; /* of them; we are one */
	unsigned n_members_before; /* when next_ns was set */
	double average_bytes;     /* of compound packets, with IP and UDP headers */
	int64_t last_ns, next_ns; /* sent; to be considered */
};

/*
 * Begin at now_ns.  random: 0 ≤ random < 1, here and below; new for each call.
 * first_bytes: what the first compound packet is expected to take, headers of IP and UDP included.
 */
void rtcptimer_init(struct rtcptimer *t, double bandwidth_bps, bool we_send, size_t first_bytes, int64_t now_ns, double random);
/* The interval that would be drawn now: deterministic · (0.5…1.5) ÷ (e − 3/2). */
int64_t rtcptimer_interval_ns(const struct rtcptimer *t, double random);
/*
 * At or after next_ns: is it time?  Reconsiders (section 6.3.6): with more members than thought, the time moves on.
 * Returns: true: send now, then say rtcptimer_sent(); false: next_ns is later now.
 */
bool rtcptimer_due(struct rtcptimer *t, int64_t now_ns, double random);
void rtcptimer_sent(struct rtcptimer *t, size_t n_bytes, int64_t now_ns, double random);
/* Another compound packet came in: its size counts into the average. */
void rtcptimer_heard(struct rtcptimer *t, size_t n_bytes);
/* Members are now so many; fewer than before pull the time nearer (section 6.3.4). */
void rtcptimer_members(struct rtcptimer *t, unsigned n_members, unsigned n_senders, int64_t now_ns);

#endif
