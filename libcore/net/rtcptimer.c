#include "net/rtcptimer.h"

#define BANDWIDTH_FRACTION 0.05
#define SENDERS_FRACTION 0.25
#define COMPENSATION 1.21828182845904524 /* e − 3/2 */

int64_t rtcptimer_interval_ns(const struct rtcptimer *t, double random)
{
	double bytes_per_s = t->bandwidth_bps * BANDWIDTH_FRACTION / 8;
	double least_s = (double)RTCP_MIN_INTERVAL_NS / (double)UNITS_NS_PER_S;
	double n = t->n_members;

	if (t->reduced_minimum && t->bandwidth_bps > 0 && 360e3 / t->bandwidth_bps < least_s)
		least_s = 360e3 / t->bandwidth_bps;
	if (t->initial)
		least_s /= 2;
	if (t->n_senders <= n * SENDERS_FRACTION) {
		bytes_per_s *= t->we_send ? SENDERS_FRACTION : 1 - SENDERS_FRACTION;
		n = t->we_send ? t->n_senders : n - t->n_senders;
	}
	double s = bytes_per_s > 0 ? t->average_bytes * n / bytes_per_s : least_s;
	if (s < least_s)
		s = least_s;
	/* So slow a session is not heard of again in any case. */
	if (s > 86400)
		s = 86400;
	return (int64_t)(s * (random + 0.5) / COMPENSATION * (double)UNITS_NS_PER_S);
}

void rtcptimer_init(struct rtcptimer *t, double bandwidth_bps, bool we_send, size_t first_bytes, int64_t now_ns, double random)
{
	*t = (struct rtcptimer){
		.bandwidth_bps = bandwidth_bps,
		.we_send = we_send,
		.initial = true,
		.n_members = 1, .n_members_before = 1, .n_senders = we_send ? 1 : 0,
		.average_bytes = (double)first_bytes,
		.last_ns = now_ns,
	};
	t->next_ns = now_ns + rtcptimer_interval_ns(t, random);
}

bool rtcptimer_due(struct rtcptimer *t, int64_t now_ns, double random)
{
	if (now_ns < t->next_ns)
		return false;
	int64_t at_ns = t->last_ns + rtcptimer_interval_ns(t, random);
	t->n_members_before = t->n_members;
	if (at_ns <= now_ns)
		return true;
	t->next_ns = at_ns;
	return false;
}

void rtcptimer_sent(struct rtcptimer *t, size_t n_bytes, int64_t now_ns, double random)
{
	rtcptimer_heard(t, n_bytes);
	t->last_ns = now_ns;
	t->initial = false;
	t->next_ns = now_ns + rtcptimer_interval_ns(t, random);
}

void rtcptimer_heard(struct rtcptimer *t, size_t n_bytes)
{
	t->average_bytes += ((double)n_bytes - t->average_bytes) / 16;
}

void rtcptimer_members(struct rtcptimer *t, unsigned n_members, unsigned n_senders, int64_t now_ns)
{
	t->n_members = n_members ? n_members : 1;
	t->n_senders = n_senders;
	if (t->n_members >= t->n_members_before)
		return;
	double share = (double)t->n_members / t->n_members_before;
	t->next_ns = now_ns + (int64_t)(share * (double)(t->next_ns - now_ns));
	t->last_ns = now_ns - (int64_t)(share * (double)(now_ns - t->last_ns));
	t->n_members_before = t->n_members;
}
