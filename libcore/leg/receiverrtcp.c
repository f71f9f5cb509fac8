#include "leg/receiverrtcp.h"

#include "leg/receiverflows.h"
#include "leg/netflowin.h"

#include <math.h>
#include <string.h>

#define ONE_WAY_MOST_NS (10 * UNITS_NS_PER_S)
#define LOSS_REPORT_NS (UNITS_NS_PER_S / 4)
#define REPORT_MOST_BYTES 512u

/* ---- in ---- */

static void take_sdes(struct receiver *r, const struct rtcp_packet *p, const struct dgram_addr *from)
{
	struct rtcp_sdes_at at = { 0 };
	struct rtcp_item item;

	while (rtcp_sdes_next(p, &at, &item) == ERR_OK) {
		struct netflow *f = receiverflows_find(r, item.ssrc);
		char text[256];
		if (!f || !dgram_same_host(&f->from, from) || item.type != RTCP_SDES_NAME || f->is_weir || f->announced)
			continue;
		memcpy(text, item.text, item.n_bytes);
		text[item.n_bytes] = 0;
		sdp_clean(text, f->name, sizeof(f->name));
	}
}

/* How long a sender report took, if both wall clocks are right: an estimate that is as good as they are. */
static int64_t one_way_ns(const struct receiver *r, const struct rtcp_sr *sr, int64_t arrival_ns)
{
	if (r->utc_offset_ns == UNITS_UNKNOWN_NS || !sr->ntp)
		return -1;
	int64_t way_ns = arrival_ns + r->utc_offset_ns - rtcp_ntp_utc_ns(sr->ntp);
	return way_ns >= 0 && way_ns <= ONE_WAY_MOST_NS ? way_ns : -1;
}

static void take_pong(struct receiver *r, const struct rtcp_app *a, const struct dgram_addr *from, int64_t arrival_ns)
{
	struct rtcp_ping ping;
	struct netflow *f;

	if (rtcpweir_ping_unpack(a, RTCP_WEIR_PONG, &ping) || !(f = receiverflows_find(r, ping.ssrc)) || !dgram_same_host(&f->from, from))
		return;
	if (!f->ping_token || ping.token != f->ping_token)
		return;
	f->ping_token = 0;
	f->heard_ns = arrival_ns;
	f->round_trip_ns = arrival_ns - f->ping_ns;
}

static void take_app(struct receiver *r, unsigned port, const struct rtcp_packet *p, const struct dgram_addr *from, bool leaves, int64_t arrival_ns)
{
	struct rtcp_app a;
	struct rtcp_binding b;

	if (rtcp_app_unpack(p, &a))
		return;
	take_pong(r, &a, from, arrival_ns);
	if (memcmp(a.name, RTCP_WEIR_NAME, 4) || a.subtype != RTCP_WEIR_BINDING || rtcpweir_binding_unpack(&a, &b))
		return;
	struct netflow *f = receiverflows_find(r, b.ssrc);
	struct err_why why;
	if (!f && (leaves || receiverflows_has_left(r, b.ssrc, from, arrival_ns)))
		return; /* a BYE that was said again, or what it overtook: it has gone */
	/* It is authentic by now: one who joins learns the roll-over counter here. */
	if (r->o.srtp && srtp_session_hear(r->o.srtp, b.ssrc, b.roc, &why))
		return;
	if (f && dgram_same_host(&f->from, from)) {
		receiverflows_bind(r, f, &b, arrival_ns);
	} else if (!f) {
		struct receiver_candidate *c = receiverflows_candidate(r, b.ssrc, port, from);
		c->binding = b;
		c->has_binding = true;
	}
}

void receiverrtcp_take(struct receiver *r, unsigned port, const struct dgram_addr *from, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	struct rtcp_packet p;
	struct rtcp_sr sr;
	size_t offset = 0;
	uint32_t ssrc;

	if (rtcp_check(bytes, n_bytes, true)) {
		stats_add(&r->counts.strangers, 1);
		return;
	}
	rtcptimer_heard(&r->timer, n_bytes);
	bool leaves = false;
	while (rtcp_next(bytes, n_bytes, &offset, &p) == ERR_OK)
		leaves = leaves || p.type == RTCP_BYE;
	offset = 0;
	while (rtcp_next(bytes, n_bytes, &offset, &p) == ERR_OK) {
		struct netflow *f;
		switch (p.type) {
		case RTCP_SR:
			if (rtcp_sr_unpack(&p, &sr) || !(f = receiverflows_find(r, sr.ssrc)) || !dgram_same_host(&f->from, from))
				break;
			netflowin_sr(f, &sr, arrival_ns);
			f->one_way_ns = one_way_ns(r, &sr, arrival_ns);
			f->rtcp_from = *from;
			break;
		case RTCP_SDES:
			take_sdes(r, &p, from);
			break;
		case RTCP_BYE:
			for (unsigned i = 0; rtcp_bye_unpack(&p, i, &ssrc) == ERR_OK; i++)
				if ((f = receiverflows_find(r, ssrc)) && dgram_same_host(&f->from, from))
					netflowin_bye(f);
			break;
		case RTCP_APP:
			take_app(r, port, &p, from, leaves, arrival_ns);
			break;
		default:
			break;
		}
	}
}

/* ---- out ---- */

static void loss_of(struct netflow *f, int64_t now_ns, const struct rtcp_report *report, struct rtcp_loss *l)
{
	*l = (struct rtcp_loss){ .ssrc = f->ssrc };
	red_monitor_report(&f->monitor, l, now_ns);
	/* A loss and its repair may fall into two reports: never more are repaired than were lost. */
	uint64_t repaired = f->counts.recovered - f->told_recovered;
	l->repaired = repaired < l->lost ? (uint32_t)repaired : l->lost;
	l->late = (uint32_t)(f->jitter.counts.late - f->told_late);
	f->told_recovered = f->counts.recovered;
	f->told_late = f->jitter.counts.late;
	l->jitter_us = (uint32_t)fmin(f->reception.jitter * 1e6 / f->format.clock_hz, UINT32_MAX);
	l->depth_us = (uint32_t)(netflow_depth_s(f) * 1e6);
	l->last_sr = report->last_sr;
	l->delay_last_sr = report->delay_last_sr;
}

/* To one sender, about it. */
static size_t report_to(struct receiver *r, struct netflow *f, int64_t now_ns, bool whole)
{
	uint8_t bytes[RTCP_MAX_BYTES + SRTP_RTCP_TAIL_BYTES], loss[RTCP_LOSS_BYTES], ping[RTCP_PING_BYTES];
	struct rtcp_writer w = { bytes, RTCP_MAX_BYTES, 0 };
	struct rtcp_report report = reception_report(&f->reception, f->ssrc, now_ns);
	struct rtcp_loss l;

	if (f->credit_bytes < REPORT_MOST_BYTES || rtcp_put_rr(&w, r->ssrc, &report, 1) || (whole && rtcp_put_sdes(&w, r->ssrc, r->cname, NULL)))
		return 0;
	if (f->is_weir) {
		loss_of(f, now_ns, &report, &l);
		rtcpweir_loss_pack(&l, loss);
		if (rtcp_put_app(&w, r->ssrc, RTCP_WEIR_LOSS, RTCP_WEIR_NAME, loss, sizeof(loss)))
			return 0;
		/* A number that nobody else can know, and the time stays here. */
		struct rtcp_ping ask = { f->ssrc, (uint64_t)(receiver_random(r) * 9007199254740992.0) | 1 };
		rtcpweir_ping_pack(&ask, ping);
		f->ping_token = ask.token;
		f->ping_ns = now_ns;
		if (rtcp_put_app(&w, r->ssrc, RTCP_WEIR_PING, RTCP_WEIR_NAME, ping, sizeof(ping)))
			return 0;
	}
	size_t n = w.n_bytes;
	if (r->o.srtp && srtp_session_protect_rtcp(r->o.srtp, bytes, &n))
		return 0;
	f->credit_bytes -= n < f->credit_bytes ? n : f->credit_bytes;
	r->send(r->user, f->port, &f->rtcp_from, bytes, n);
	return n;
}

static bool wants_reports(const struct netflow *f)
{
	return f->used && !f->ending && f->reception.started;
}

void receiverrtcp_report(struct receiver *r, int64_t now_ns)
{
	unsigned members = 1;
	bool loss_due = now_ns >= r->loss_ns;

	if (loss_due)
		r->loss_ns = now_ns + LOSS_REPORT_NS;
	if (!r->send || r->o.no_reports)
		return;
	for (unsigned i = 0; i < r->n_flows; i++)
		members += r->flows[i].used;
	if (now_ns >= r->timer.next_ns) {
		rtcptimer_members(&r->timer, members, members - 1, now_ns);
		if (rtcptimer_due(&r->timer, now_ns, receiver_random(r))) {
			size_t n = 0;
			for (unsigned i = 0; i < r->n_flows; i++)
				if (wants_reports(&r->flows[i]))
					n = report_to(r, &r->flows[i], now_ns, true);
			rtcptimer_sent(&r->timer, n ? n + 28 : 100, now_ns, receiver_random(r));
		}
	}
	for (unsigned i = 0; loss_due && i < r->n_flows; i++)
		if (wants_reports(&r->flows[i]) && r->flows[i].is_weir)
			report_to(r, &r->flows[i], now_ns, false);
}
