#include "leg/sendout.h"

#include "rt/clock.h"
#include "leg/sendrtcp.h"

#include <string.h>

#define AHEAD_NS (UNITS_NS_PER_S / 2)        /* a live stream may be so far before its time */
#define LOST_NS (UNITS_NS_PER_S / 5)         /* later than this, the line moves instead of being caught up with */
#define LATE_NS (UNITS_NS_PER_S / 1000)
#define EASE 1000                            /* a live line moves earlier by a thousandth of the time */
#define LONGEST_BLOCK_NS (UNITS_NS_PER_S / 10) /* a repair that comes later is of no use to anybody */
#define SLACK_NS 20000                       /* due so soon is due now: waking costs as much */

/* ---- to everybody ---- */

void sendout_queue(struct sender *s, unsigned flow, uint8_t *bytes, size_t n_bytes, bool secure, bool is_rtcp)
{
	const struct dgram_addr *addrs = s->addrs + ((size_t)(is_rtcp ? SENDER_MAX_FLOWS : 0) + flow) * SENDER_MAX_URLS;

	for (unsigned i = 0; i < s->n_to; i++) {
		if (s->to[i].is_secure != secure)
			continue;
		struct dgram_out out = { .to = &addrs[i], .piece = { { bytes, n_bytes } }, .n_pieces = 1 };
		struct dgram_outbox *box = &s->outboxes[s->to[i].socket];
		if (!dgram_queue(box, &out)) {
			sendout_flush(s);
			(void)dgram_queue(box, &out);
		}
		stats_add(&s->sent_datagrams, 1);
		stats_add(&s->sent_bytes, n_bytes);
	}
}

/* Said once, until it was heard of again. */
static void say(struct sender *s, const struct dgram_addr *to, int sys_errno)
{
	for (unsigned i = 0; i < s->n_to; i++) {
		if (!dgram_same_host(&s->to[i].addr, to))
			continue;
		if (!s->to[i].is_said)
			tool_warn(s->tool, s->to[i].name, "%s", dgram_reason(sys_errno));
		s->to[i].is_said = true;
		return;
	}
}

void sendout_flush(struct sender *s)
{
	for (unsigned i = 0; i < s->n_sockets; i++) {
		unsigned n_failed;
		int first_errno;

		if (s->outboxes[i].n == 0)
			continue;
		dgram_send(&s->sockets[i], &s->outboxes[i], &n_failed, &first_errno);
		if (n_failed == 0)
			continue;
		stats_add(&s->send_errors, n_failed);
		if (s->outboxes[i].failed_to)
			say(s, s->outboxes[i].failed_to, first_errno);
	}
}

void sendout_complaints(struct sender *s)
{
	struct dgram_addr to;
	int sys_errno;

	for (unsigned i = 0; i < s->n_sockets; i++) {
		while (dgram_complaint(&s->sockets[i], &to, &sys_errno)) {
			stats_add(&s->send_errors, 1);
			say(s, &to, sys_errno);
		}
	}
}

/* ---- repair packets ---- */

static void send_repairs(struct sender *s)
{
	unsigned flow = s->rs_flow;

	for (unsigned j = 0; j < s->rs.shape.n_repairs && s->rs.n_packets; j++) {
		uint8_t *to = s->repairs + (size_t)j * SENDER_REPAIR_BYTES;
		size_t n = rs_encoder_repair(&s->rs, j, to + RTP_HEADER_BYTES, RS_REPAIR_MAX_BYTES);

		if (n == 0)
			continue;
		struct rtp head = { .pt = s->rs_pt, .seq = s->rs_seq++, .ts = s->rs_ts, .ssrc = s->rs_ssrc };
		n += rtp_pack(&head, to, RTP_HEADER_BYTES);
		stats_add(&s->repair_datagrams, 1);
		if (s->any_plain)
			sendout_queue(s, flow, to, n, false, false);
		if (s->any_plain && s->any_secure)
			sendout_flush(s);
		if (s->any_secure && !srtp_session_protect(&s->srtp, to, &n))
			sendout_queue(s, flow, to, n, true, false);
	}
	sendout_flush(s);
	rs_encoder_next(&s->rs);
}

static void add_to_block(struct sender *s, unsigned flow, const struct flow_record *r, const uint8_t *rtp, int64_t now_ns)
{
	enum err e = rs_encoder_add(&s->rs, rtp, r->bytes);

	if (e == ERR_AGAIN) {
		send_repairs(s);
		e = rs_encoder_add(&s->rs, rtp, r->bytes);
	}
	if (e)
		return; /* it goes without */
	if (s->rs.n_packets == 1)
		s->rs_begun_ns = now_ns;
	s->rs_flow = flow;
	s->rs_ts = r->ts;
	if (rs_encoder_is_full(&s->rs))
		send_repairs(s);
}

void sendout_finish_block(struct sender *s)
{
	if (s->has_rs && s->rs.n_packets)
		send_repairs(s);
}

/* A block that no packets come for any more is ended as it is.  Returns: when that will be. */
static int64_t end_stale_block(struct sender *s, int64_t now_ns)
{
	if (!s->has_rs || !s->rs.n_packets)
		return INT64_MAX;
	if (now_ns - s->rs_begun_ns < LONGEST_BLOCK_NS)
		return s->rs_begun_ns + LONGEST_BLOCK_NS;
	send_repairs(s);
	return INT64_MAX;
}

/* ---- when ---- */

/* A live stream's line goes by the packets that come soonest; another one's stays, unless all is too late. */
static int64_t due_ns(struct sender *s, const struct flow *f, const struct flow_record *r, int64_t now_ns)
{
	int64_t at_ns = s->anchor_ns + flow_line_ns(f, r->line);

	if (s->o.is_fast)
		return now_ns;
	if (s->o.is_live) {
		int64_t early_ns = at_ns - now_ns, ease_ns = (now_ns - s->eased_ns) / EASE;

		s->eased_ns = now_ns;
		s->anchor_ns -= early_ns < 0 ? early_ns : early_ns < ease_ns ? early_ns : ease_ns;
		return early_ns > AHEAD_NS ? at_ns - AHEAD_NS : now_ns;
	}
	if (now_ns - at_ns > LOST_NS) {
		s->anchor_ns += now_ns - at_ns;
		stats_add(&s->stats->late, 1);
		return now_ns;
	}
	return at_ns;
}

static void note_late(struct sender *s, int64_t late_ns)
{
	if (late_ns > LATE_NS)
		stats_add(&s->stats->late, 1);
	if (late_ns > 0 && (uint64_t)(late_ns / 1000) > atomic_load_explicit(&s->stats->max_late_us, memory_order_relaxed))
		stats_set(&s->stats->max_late_us, (uint64_t)(late_ns / 1000));
}

struct due {
	unsigned flow;
	struct flow_record *record;
	uint8_t *rtp;
};

/* What is due of a flow, at most `room`.  *next_ns: when it goes on. */
static unsigned collect(struct sender *s, unsigned i, int64_t now_ns, struct due *due, unsigned room, size_t *taken_bytes, int64_t *next_ns)
{
	struct flow *f = s->flows[i];
	unsigned n = 0;

	*taken_bytes = 0;
	while (n < room && (due[n].record = flow_peek(f, *taken_bytes, &due[n].rtp))) {
		int64_t at_ns = due_ns(s, f, due[n].record, now_ns);

		if (at_ns > now_ns + SLACK_NS) {
			if (at_ns < *next_ns)
				*next_ns = at_ns;
			return n;
		}
		if (!s->o.is_fast && !s->o.is_live)
			note_late(s, now_ns - at_ns);
		due[n].flow = i;
		*taken_bytes += flow_record_bytes(due[n].record);
		n++;
	}
	if (n == room)
		*next_ns = now_ns;
	return n;
}

/* One batch to all.  Plain ones go before they are encrypted where they lie. */
static void send_batch(struct sender *s, const struct due *due, unsigned n, int64_t now_ns)
{
	for (unsigned i = 0; i < n; i++) {
		struct flow *f = s->flows[due[i].flow];

		if (flow_rebind(f, due[i].record) && s->o.rtcp != SENDER_RTCP_OFF) {
			sendout_flush(s);
			sendrtcp_say(s, due[i].flow, false, now_ns);
		}
		if (s->any_plain)
			sendout_queue(s, due[i].flow, due[i].rtp, due[i].record->bytes, false, false);
		flow_note_sent(f, due[i].record);
		if (s->has_rs && f->packer.o.codec != RTP_CODEC_OPUS)
			add_to_block(s, due[i].flow, due[i].record, due[i].rtp, now_ns);
	}
	if (s->any_plain)
		sendout_flush(s);
	for (unsigned i = 0; i < n && s->any_secure; i++) {
		size_t n_bytes = due[i].record->bytes;

		if (!srtp_session_protect(&s->srtp, due[i].rtp, &n_bytes))
			sendout_queue(s, due[i].flow, due[i].rtp, n_bytes, true, false);
		else
			stats_add(&s->send_errors, 1);
	}
	if (s->any_secure)
		sendout_flush(s);
}

int64_t sendout_work(struct sender *s, int64_t now_ns)
{
	struct due due[SENDER_BATCH];
	size_t taken_bytes[SENDER_MAX_FLOWS];
	int64_t next_ns = INT64_MAX;
	unsigned n = 0, i;

	for (i = 0; i < s->n_flows && n < SENDER_BATCH; i++)
		n += collect(s, i, now_ns, due + n, SENDER_BATCH - n, &taken_bytes[i], &next_ns);
	if (n == 0) {
		int64_t block_ns = end_stale_block(s, now_ns);
		return block_ns < next_ns ? block_ns : next_ns;
	}
	send_batch(s, due, n, now_ns);
	while (i-- > 0)
		flow_consume(s->flows[i], taken_bytes[i]);
	/* There may be more than one batch. */
	return n == SENDER_BATCH ? now_ns : next_ns;
}
