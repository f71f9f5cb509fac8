#include "leg/receiverrtp.h"

#include "base/bytes.h"
#include "leg/receiverflows.h"
#include "leg/netflowin.h"

#include <string.h>

#define SPOOF_NS (2 * UNITS_NS_PER_S)      /* its SSRC from elsewhere is believed only after so long */
#define OTHER_PORT_NS (UNITS_NS_PER_S / 10)
#define UNPROVEN_PACKETS 8u                /* in sequence, before it is said that they are not known */

/* ---- packets of those we know ---- */

static void take_red(struct netflow *f, const struct rtp *p, int64_t arrival_ns)
{
	struct red_block blocks[RED_BLOCKS_MAX];
	struct err_why why;
	unsigned n;
	struct rtp own = *p;

	if (red_parse(blocks, &n, p->ts, p->payload, p->payload_bytes, &why)) {
		f->counts.refused++;
		return;
	}
	own.pt = blocks[n - 1].pt;
	own.payload = blocks[n - 1].data;
	own.payload_bytes = blocks[n - 1].n_bytes;
	for (unsigned i = 0; i + 1 < n; i++)
		netflowin_copy(f, blocks[i].ts, -1, blocks[i].data, blocks[i].n_bytes, arrival_ns);
	netflowin_packet(f, &own, arrival_ns);
}

/* RED where an SDP or an option says so; else what takes apart as RED around the flow's own payload type. */
static bool is_red(const struct receiver *r, const struct netflow *f, const struct rtp *p)
{
	struct rtp in;

	if (f->format.codec != RTP_CODEC_OPUS || p->pt == f->pt)
		return false;
	if (r->ports[f->port].formats[p->pt].codec == RTP_CODEC_RED)
		return true;
	in = receiverformat_inside(p);
	return in.payload != p->payload && in.pt == f->pt;
}

static void take_packet(struct receiver *r, struct netflow *f, const struct rtp *p, int64_t arrival_ns)
{
	switch (rtp_source_judge(&f->source, p->seq)) {
	case RTP_DROP:
		f->counts.refused++;
		return;
	case RTP_RESTART:
		netflow_renumber(f);
		break;
	default: /* who got here has been on probation already */
		break;
	}
	if (!f->pt)
		f->pt = f->is_weir ? f->binding.pt : r->ports[f->port].formats[p->pt].codec == RTP_CODEC_RED ? receiverformat_inside(p).pt : p->pt;
	if (p->pt == f->pt)
		netflowin_packet(f, p, arrival_ns);
	else if (is_red(r, f, p))
		take_red(f, p, arrival_ns);
	else
		f->counts.refused++;
}

/* Are these the repair packets of flows that we know?  By what they say of themselves (net/rs.h). */
static bool take_repair(struct receiver *r, const struct dgram_addr *from, const struct rtp *p)
{
	if (p->payload_bytes < 14 || p->payload[0] != 1 || !p->payload[6] || p->payload[6] > RS_FLOWS_MAX || p->payload[7])
		return false;
	for (size_t i = 0, at = 8; i < p->payload[6]; i++, at += 6) {
		if (at + 6 > p->payload_bytes)
			return false;
		const struct netflow *f = receiverflows_find(r, get_be32(p->payload + at));
		/* Nobody repairs what is not his. */
		if (f ? !dgram_same_host(&f->from, from) : i == 0)
			return false;
	}
	return rs_decoder_repair(&r->rs, p->payload, p->payload_bytes) == ERR_OK;
}

static void take_repaired(struct receiver *r, int64_t arrival_ns)
{
	const uint8_t *bytes;
	size_t n_bytes;
	struct rtp p;

	while (rs_decoder_next(&r->rs, &bytes, &n_bytes)) {
		if (rtp_unpack(&p, bytes, n_bytes))
			continue;
		struct netflow *f = receiverflows_find(r, p.ssrc);
		if (f && p.pt == f->pt)
			netflowin_copy(f, p.ts, rtp_peek_seq(&f->seq, p.seq), p.payload, p.payload_bytes, arrival_ns);
	}
}

/*
 * Kept for repairs: always where some came; the first of every flow too, for the first repair comes behind the packets that
 * it repairs.
 */
static void keep_for_repairs(struct receiver *r, const struct netflow *f, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	if (!r->rs.counts.n_repairs && f->counts.packets > RS_SOURCES_MAX)
		return;
	rs_decoder_source(&r->rs, bytes, n_bytes);
	take_repaired(r, arrival_ns);
}

/* ---- packets of strangers ---- */

static void meet(struct receiver *r, unsigned port, const struct dgram_addr *from, const struct rtp *p, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	struct receiver_candidate *c = receiverflows_candidate(r, p->ssrc, port, from);
	enum rtp_verdict verdict = rtp_source_judge(&c->source, p->seq);
	struct rtp before;
	struct rtp_format format;
	bool has_before = c->has_packet && rtp_unpack(&before, c->bytes, c->n_bytes) == ERR_OK;

	c->port = port;
	if (verdict == RTP_TAKE || c->has_binding) {
		struct netflow *f = NULL;
		if (receiverformat_find(&r->ports[c->port], c->has_binding ? &c->binding : NULL, p, has_before ? &before : NULL, &format)) {
			f = receiverflows_begin(r, c, &format, arrival_ns);
		} else if (!r->said_unknown && ++c->n_unproven >= UNPROVEN_PACKETS) {
			char address[DGRAM_TEXT_BYTES];
			r->said_unknown = true;
			tool_warn(r->tool, dgram_text(from, address), "payload type %u is not known here and proves nothing: not heard (--codec, --pt, or an SDP say what it is)", p->pt);
		}
		if (f) {
			if (has_before && format.codec == RTP_CODEC_OPUS && receiverformat_opus_frames(&before) > p->ts - before.ts)
				before.ts = p->ts - receiverformat_opus_frames(&before);
			if (has_before) {
				take_packet(r, f, &before, c->arrival_ns);
				keep_for_repairs(r, f, c->bytes, c->n_bytes, arrival_ns);
			}
			take_packet(r, f, p, arrival_ns);
			keep_for_repairs(r, f, bytes, n_bytes, arrival_ns);
			c->used = false;
			return;
		}
	}
	stats_add(&r->counts.strangers, 1);
	c->has_packet = n_bytes <= sizeof(c->bytes);
	if (c->has_packet) {
		memcpy(c->bytes, bytes, n_bytes);
		c->n_bytes = n_bytes;
		c->arrival_ns = arrival_ns;
	}
}

void receiverrtp_take(struct receiver *r, unsigned port, const struct dgram_addr *from, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	struct rtp p;

	if (rtp_unpack(&p, bytes, n_bytes)) {
		stats_add(&r->counts.strangers, 1);
		return;
	}
	struct netflow *f = receiverflows_find(r, p.ssrc);
	if (f && !dgram_same_host(&f->from, from)) {
		if (arrival_ns - f->last_ns < SPOOF_NS || r->o.srtp) {
			stats_add(&r->counts.strangers, 1);
			return;
		}
		f->from = f->rtcp_from = *from; /* it has moved */
		f->credit_bytes = 0;
	}
	/* From another port of its host, as a router makes it that has forgotten the first.  Without a key it must have been silent before. */
	if (f && dgram_port(&f->from) != dgram_port(from) && (r->o.srtp || arrival_ns - f->last_ns > OTHER_PORT_NS))
		f->from = *from;
	if (f && f->ending)
		return;
	if (f) {
		f->credit_bytes += n_bytes;
		take_packet(r, f, &p, arrival_ns);
		keep_for_repairs(r, f, bytes, n_bytes, arrival_ns);
	} else if (r->n_flows && take_repair(r, from, &p)) {
		take_repaired(r, arrival_ns);
	} else if (receiverflows_has_left(r, p.ssrc, from, arrival_ns)) {
		stats_add(&r->counts.strangers, 1);
	} else {
		meet(r, port, from, &p, bytes, n_bytes, arrival_ns);
	}
}
