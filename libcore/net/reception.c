#include "net/reception.h"

#include "base/units.h"

#define MAX_LOST 0x7fffff            /* 24 bits with a sign */

void reception_take(struct reception *r, uint16_t seq, uint32_t ts, int64_t arrival_ns, uint32_t clock_hz)
{
	uint32_t arrival = (uint32_t)units_from_ns(arrival_ns, clock_hz, 1);
	uint32_t transit = arrival - ts;
	int64_t n = rtp_unwrap_seq(&r->seq, seq);

	if (r->started) {
		int32_t d = (int32_t)(transit - r->transit);
		r->jitter += ((d < 0 ? -(double)d : (double)d) - r->jitter) / 16;
		if (n < r->base_seq)
			r->base_seq = n;
	} else {
		r->base_seq = n;
	}
	r->transit = transit;
	r->n_received++;
	r->started = true;
}

void reception_sr(struct reception *r, const struct rtcp_sr *sr, int64_t arrival_ns)
{
	r->last_sr = rtcp_ntp_middle(sr->ntp);
	r->sr_arrival_ns = arrival_ns;
}

static uint64_t expected(const struct reception *r)
{
	return r->started ? (uint64_t)(r->seq.highest - r->base_seq + 1) : 0;
}

int64_t reception_lost(const struct reception *r)
{
	return (int64_t)(expected(r) - r->n_received);
}

struct rtcp_report reception_report(struct reception *r, uint32_t ssrc, int64_t now_ns)
{
	uint64_t all = expected(r);
	int64_t lost = reception_lost(r);
	uint64_t interval = all - r->expected_prior;
	int64_t interval_lost = (int64_t)(interval - (r->n_received - r->received_prior));
	uint32_t fraction = interval && interval_lost > 0 ? (uint32_t)(((uint64_t)interval_lost << 8) / interval) : 0;
	int64_t gone = r->last_sr ? units_scale(now_ns - r->sr_arrival_ns, 65536, UNITS_NS_PER_S) : 0;

	r->expected_prior = all;
	r->received_prior = r->n_received;
	return (struct rtcp_report){
		.ssrc = ssrc,
		.fraction_lost = (uint8_t)(fraction > 255 ? 255 : fraction),
		.lost = lost > MAX_LOST ? MAX_LOST : lost < -MAX_LOST - 1 ? -MAX_LOST - 1 : (int32_t)lost,
		.highest_seq = (uint32_t)(r->seq.highest - 0x10000), /* the unwrapped begin one turn up */
		.jitter = (uint32_t)r->jitter,
		.last_sr = r->last_sr,
		.delay_last_sr = gone < 0 ? 0 : gone > UINT32_MAX ? UINT32_MAX : (uint32_t)gone,
	};
}
