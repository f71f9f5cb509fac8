#include "leg/sendrtcp.h"

#include "rt/clock.h"
#include "leg/sendout.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define BINDING_NS UNITS_NS_PER_S
#define UDP_BYTES 28u                        /* of IP and UDP, that count into RTCP's share */
#define FIRST_BYTES 200u
#define FIRST_BPS 128000.0
#define SHARE 0.05
#define WEIR_SILENT_NS (3 * UNITS_NS_PER_S)  /* one of weir, that reports every 250 ms */
#define SILENT_NS (30 * UNITS_NS_PER_S)      /* a receiver that was not heard for so long has left */

static double bandwidth_bps(const struct sender *s, int64_t now_ns)
{
	double past_s = (double)(now_ns - s->begun_ns) / (double)UNITS_NS_PER_S;
	uint64_t n_bytes = atomic_load_explicit(&s->sent_bytes, memory_order_relaxed);

	return past_s < 1 ? FIRST_BPS * (s->n_flows + 1) : 8.0 * (double)n_bytes / past_s / (s->n_to ? s->n_to : 1);
}

void sendrtcp_begin(struct sender *s, int64_t now_ns)
{
	/* The first packet of a flow says its binding itself. */
	s->begun_ns = now_ns;
	s->binding_ns = now_ns + BINDING_NS;
	s->byes_ns = INT64_MAX;
	rtcptimer_init(&s->timer, bandwidth_bps(s, now_ns), true, FIRST_BYTES, now_ns, sender_random(s));
}

/* ---- out ---- */

/* The timestamp of now, on the line of what was sent. */
static uint32_t ts_now(const struct sender *s, const struct flow *f, int64_t now_ns)
{
	if (!f->has_sent)
		return f->is_bound ? f->bound_ts : f->packer.o.ts;
	int64_t ahead_ns = now_ns - s->anchor_ns - flow_line_ns(f, f->sent_line);
	return f->sent_ts + (uint32_t)(uint64_t)units_from_ns(ahead_ns, f->rate_hz, 1);
}

static enum err build(struct sender *s, const struct flow *f, bool bye, int64_t now_ns, struct rtcp_writer *w)
{
	int64_t offset_ns = clock_utc_offset_ns();
	uint32_t ssrc = f->packer.o.ssrc;
	struct rtcp_sr sr = {
		.ssrc = ssrc, .ntp = rtcp_ntp(now_ns + offset_ns), .ts = ts_now(s, f, now_ns),
		.n_packets = f->sent_packets, .n_bytes = f->sent_payload_bytes,
	};
	uint8_t data[RTCP_MAX_BINDING_BYTES];
	struct rtcp_binding b = flow_binding(f, s->anchor_ns + flow_line_ns(f, f->bound_line) + offset_ns);
	enum err e;

	if (s->has_srtp)
		b.roc = srtp_session_roc(&s->srtp, ssrc);
	size_t n = rtcpweir_binding_pack(&b, data);
	if ((e = rtcp_put_sr(w, &sr, NULL, 0)) || (e = rtcp_put_sdes(w, ssrc, s->cname, NULL)) ||
		(e = rtcp_put_app(w, ssrc, RTCP_WEIR_BINDING, RTCP_WEIR_NAME, data, n)))
		return e;
	return bye ? rtcp_put_bye(w, ssrc, NULL) : ERR_OK;
}

void sendrtcp_say(struct sender *s, unsigned flow, bool bye, int64_t now_ns)
{
	uint8_t bytes[RTCP_MAX_BYTES + SRTP_RTCP_TAIL_BYTES];
	struct rtcp_writer w = { bytes, RTCP_MAX_BYTES, 0 };

	if (s->o.rtcp == SENDER_RTCP_OFF || build(s, s->flows[flow], bye, now_ns, &w))
		return;
	size_t n_bytes = w.n_bytes;
	if (s->any_plain) {
		sendout_queue(s, flow, bytes, n_bytes, false, true);
		sendout_flush(s);
	}
	if (s->any_secure && !srtp_session_protect_rtcp(&s->srtp, bytes, &n_bytes)) {
		sendout_queue(s, flow, bytes, n_bytes, true, true);
		sendout_flush(s);
	}
	if (bye) {
		s->flows[flow]->has_left = true;
		s->flows[flow]->n_byes++;
		s->flows[flow]->bye_ns = now_ns;
	}
	rtcptimer_heard(&s->timer, n_bytes + UDP_BYTES);
}

static bool is_silent(const struct sender_receiver *r, int64_t now_ns)
{
	return now_ns - r->heard_ns > (r->is_weir ? WEIR_SILENT_NS : SILENT_NS);
}

static unsigned count_receivers(struct sender *s, int64_t now_ns)
{
	unsigned n = 0;
	uint64_t lost = 0, jitter_us = 0;
	char who[32];

	for (unsigned i = 0; i < s->n_receivers; i++) {
		if (is_silent(&s->receivers[i], now_ns)) {
			if (!s->receivers[i].is_gone) {
				s->receivers[i].is_gone = true;
				stats_add(&s->n_gone, 1);
				snprintf(who, sizeof(who), "receiver %08x", (unsigned)s->receivers[i].ssrc);
				tool_warn(s->tool, who, "has not reported for %d s: gone, or out of reach",
					(int)((s->receivers[i].is_weir ? WEIR_SILENT_NS : SILENT_NS) / UNITS_NS_PER_S));
			}
			/* Its place is free for the next. */
			if (s->has_srtp && srtp_session_has(&s->srtp, s->receivers[i].ssrc))
				srtp_session_forget(&s->srtp, s->receivers[i].ssrc);
			continue;
		}
		n++;
		if (s->receivers[i].lost > 0)
			lost += (uint64_t)s->receivers[i].lost;
		if (s->receivers[i].jitter_us > jitter_us)
			jitter_us = s->receivers[i].jitter_us;
	}
	stats_set(&s->n_reporting, n);
	stats_set(&s->peer_lost, lost);
	stats_set(&s->peer_jitter_us, jitter_us);
	return n;
}

static unsigned living_flows(const struct sender *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_flows; i++)
		n += !flow_is_done(s->flows[i]);
	return n;
}

static int64_t next_of(const struct sender *s)
{
	int64_t next_ns = s->binding_ns < s->timer.next_ns ? s->binding_ns : s->timer.next_ns;

	return s->byes_ns < next_ns ? s->byes_ns : next_ns;
}

/* BYE again, of flows that have left while others go on.  Returns: when to come again. */
static int64_t repeat_byes(struct sender *s, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	for (unsigned i = 0; i < s->n_flows; i++) {
		const struct flow *f = s->flows[i];
		if (!f->has_left || f->n_byes >= SENDRTCP_BYES)
			continue;
		if (now_ns - f->bye_ns >= SENDRTCP_BYE_NS)
			sendrtcp_say(s, i, true, now_ns);
		if (f->n_byes < SENDRTCP_BYES && f->bye_ns + SENDRTCP_BYE_NS < next_ns)
			next_ns = f->bye_ns + SENDRTCP_BYE_NS;
	}
	return next_ns;
}

int64_t sendrtcp_work(struct sender *s, int64_t now_ns)
{
	if (s->o.rtcp == SENDER_RTCP_OFF || s->n_flows == 0)
		return INT64_MAX;
	if (now_ns >= s->byes_ns)
		s->byes_ns = repeat_byes(s, now_ns);
	if (now_ns < s->binding_ns && now_ns < s->timer.next_ns)
		return next_of(s);
	unsigned n_flows = living_flows(s), n_receivers = count_receivers(s, now_ns);
	s->timer.bandwidth_bps = bandwidth_bps(s, now_ns);
	rtcptimer_members(&s->timer, n_flows + n_receivers, n_flows, now_ns);
	bool due = now_ns >= s->binding_ns || rtcptimer_due(&s->timer, now_ns, sender_random(s));
	if (due) {
		for (unsigned i = 0; i < s->n_flows; i++) {
			if (!s->flows[i]->has_left)
				sendrtcp_say(s, i, flow_is_done(s->flows[i]), now_ns);
			if (s->flows[i]->n_byes && s->flows[i]->n_byes < SENDRTCP_BYES && s->flows[i]->bye_ns + SENDRTCP_BYE_NS < s->byes_ns)
				s->byes_ns = s->flows[i]->bye_ns + SENDRTCP_BYE_NS;
		}
		rtcptimer_sent(&s->timer, (size_t)s->timer.average_bytes, now_ns, sender_random(s));
		/* The binding once a second, but RTCP keeps to its share of what is sent. */
		double least_ns = s->timer.average_bytes * 8 * n_flows / (SHARE * s->timer.bandwidth_bps + 1) * (double)UNITS_NS_PER_S;
		s->binding_ns = now_ns + (least_ns > (double)RTCP_MIN_INTERVAL_NS ? RTCP_MIN_INTERVAL_NS : least_ns > (double)BINDING_NS ? (int64_t)least_ns : BINDING_NS);
	}
	return next_of(s);
}

/* ---- in ---- */

static struct flow *flow_of(const struct sender *s, uint32_t ssrc)
{
	for (unsigned i = 0; i < s->n_flows; i++) {
		if (s->flows[i]->packer.o.ssrc == ssrc)
			return s->flows[i];
	}
	return NULL;
}

/* The place of who reports: their own, or that of somebody who was silent for long. */
static struct sender_receiver *receiver_of(struct sender *s, uint32_t ssrc, int64_t now_ns)
{
	struct sender_receiver *old = NULL;

	for (unsigned i = 0; i < s->n_receivers; i++) {
		struct sender_receiver *r = &s->receivers[i];

		if (r->ssrc == ssrc)
			return r;
		if (is_silent(r, now_ns))
			old = r;
	}
	if (!old && s->n_receivers < SENDER_MAX_RECEIVERS)
		old = &s->receivers[s->n_receivers++];
	if (old)
		*old = (struct sender_receiver){ .ssrc = ssrc };
	return old;
}

static void take_report(struct sender *s, uint32_t reporter, const struct rtcp_report *r, int64_t now_ns, int64_t utc_ns)
{
	const struct flow *f = flow_of(s, r->ssrc);
	struct sender_receiver *place = f ? receiver_of(s, reporter, now_ns) : NULL;

	if (!place)
		return;
	place->heard_ns = now_ns;
	place->is_gone = false;
	place->lost = r->lost;
	place->jitter_us = (uint32_t)units_scale(r->jitter, 1000000, f->rate_hz);
	int64_t round_trip_ns = rtcp_round_trip_ns(rtcp_ntp(utc_ns), r->last_sr, r->delay_last_sr);
	if (round_trip_ns >= 0)
		stats_set(&s->round_trip_us, (uint64_t)(round_trip_ns / 1000));
}

/* Where a datagram came from, and how. */
struct heard_from {
	unsigned socket;
	bool is_secure;
	const struct dgram_addr *addr;
};

/* No more bytes than those that asked. */
static void answer(struct sender *s, const struct rtcp_ping *ping, const struct heard_from *from)
{
	uint8_t bytes[64 + SRTP_RTCP_TAIL_BYTES], data[RTCP_PING_BYTES];
	struct rtcp_writer w = { bytes, 64, 0 };

	rtcpweir_ping_pack(ping, data);
	if (rtcp_put_app(&w, ping->ssrc, RTCP_WEIR_PONG, RTCP_WEIR_NAME, data, sizeof(data)))
		return;
	size_t n_bytes = w.n_bytes;
	if (from->is_secure && srtp_session_protect_rtcp(&s->srtp, bytes, &n_bytes))
		return;
	(void)!sendto(s->sockets[from->socket].fd, bytes, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &from->addr->any, from->addr->n_bytes);
}

static void take_app(struct sender *s, const struct rtcp_packet *p, const struct heard_from *from, int64_t now_ns, int64_t utc_ns)
{
	struct rtcp_app app;
	struct rtcp_loss loss;
	struct rtcp_ping ping;

	if (rtcp_app_unpack(p, &app))
		return;
	if (!rtcpweir_ping_unpack(&app, RTCP_WEIR_PING, &ping) && flow_of(s, ping.ssrc)) {
		answer(s, &ping, from);
		return;
	}
	if (rtcpweir_loss_unpack(&app, &loss))
		return;
	for (unsigned i = 0; i < s->n_receivers; i++)
		s->receivers[i].is_weir |= s->receivers[i].ssrc == app.ssrc;
	struct flow *f = flow_of(s, loss.ssrc);
	if (!f)
		return;
	if (flow_report(f, app.ssrc, &loss, now_ns))
		tool_note(s->tool, f->name, "redundancy level %u", flow_level(f));
	unsigned level = 0;
	for (unsigned i = 0; i < s->n_flows; i++) {
		unsigned one = flow_level(s->flows[i]);
		level = one > level ? one : level;
	}
	stats_set(&s->red_level, level);
	int64_t round_trip_ns = rtcp_round_trip_ns(rtcp_ntp(utc_ns), loss.last_sr, loss.delay_last_sr);
	if (round_trip_ns >= 0)
		stats_set(&s->round_trip_us, (uint64_t)(round_trip_ns / 1000));
}

static void take_compound(struct sender *s, const uint8_t *bytes, size_t n_bytes, const struct heard_from *from, int64_t now_ns, int64_t utc_ns)
{
	struct rtcp_packet p;
	struct rtcp_report report;
	uint32_t reporter;
	size_t at = 0;

	if (rtcp_check(bytes, n_bytes, true))
		return;
	stats_add(&s->rtcp_in, 1);
	rtcptimer_heard(&s->timer, n_bytes + UDP_BYTES);
	while (rtcp_next(bytes, n_bytes, &at, &p) == ERR_OK) {
		if (p.type == RTCP_APP)
			take_app(s, &p, from, now_ns, utc_ns);
		struct rtcp_sr sr;
		if (rtcp_rr_unpack(&p, &reporter)) {
			if (rtcp_sr_unpack(&p, &sr))
				continue;
			reporter = sr.ssrc;
		}
		for (unsigned i = 0; rtcp_report_unpack(&p, i, &report) == ERR_OK; i++)
			take_report(s, reporter, &report, now_ns, utc_ns);
	}
}

/* Plain reports are believed of hosts that plain packets go to; of a group anybody may be a member. */
static bool may_be_plain(const struct sender *s, const struct dgram_addr *from)
{
	bool plain = false;

	for (unsigned i = 0; i < s->n_to && !plain; i++)
		plain = !s->to[i].is_secure && (dgram_same_host(&s->to[i].addr, from) || dgram_is_multicast(&s->to[i].addr));
	return plain;
}

void sendrtcp_hear(struct sender *s)
{
	struct err_why why;

	for (unsigned i = 0; i < s->n_sockets; i++) {
		unsigned n = 0;

		if (dgram_receive(&s->sockets[i], &s->batch, &n, &why) || n == 0)
			continue;
		int64_t offset_ns = clock_utc_offset_ns();
		for (unsigned k = 0; k < n; k++) {
			struct dgram_in *in = &s->batch.in[k];
			size_t n_bytes = in->n_bytes;

			if (in->is_cut || !rtcp_is_rtcp(in->bytes, n_bytes))
				continue;
			struct heard_from from = { i, !may_be_plain(s, &in->from), &in->from };
			if (from.is_secure && (!s->has_srtp || srtp_session_unprotect_rtcp(&s->srtp, in->bytes, &n_bytes)))
				continue;
			take_compound(s, in->bytes, n_bytes, &from, in->arrival_ns, in->arrival_ns + offset_ns);
		}
	}
}
