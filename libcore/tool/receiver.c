#include "tool/receiver.h"

#include "base/cpu.h"
#include "base/units.h"
#include "net/opustoc.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOSS_REPORT_NS (UNITS_NS_PER_S / 4)
#define QUIET_NS (UNITS_NS_PER_S / 10)     /* a sender silent for so long may have begun anew under another SSRC */
#define SPOOF_NS (2 * UNITS_NS_PER_S)      /* its SSRC from elsewhere is believed only after so long */
#define SAY_NS UNITS_NS_PER_S
#define BEHIND_NS (UNITS_NS_PER_S / 4)     /* blocks that are overdue by more are not written: nobody waits for them */
#define UNPROVEN_PACKETS 8u                /* in sequence, before it is said that they are not known */
#define RS_STORE_PACKETS 512u
#define PROVEN_HZ 48000u                   /* the clock of PCM that only proves its size */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15u);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

static double random_part(struct receiver *r)
{
	return (double)(next_random(&r->random) >> 11) / 9007199254740992.0;
}

enum err receiver_init(struct receiver *r, struct tool *t, struct writer *out, const struct receiver_options *o, int64_t start_ns, struct err_why *why)
{
	unsigned size = 16;

	r->o = *o;
	r->tool = t;
	r->out = out;
	r->start_ns = start_ns;
	r->random = o->seed;
	r->ssrc = (uint32_t)next_random(&r->random);
	r->next_id = 1;
	snprintf(r->cname, sizeof(r->cname), "weir-%08x", (unsigned)(uint32_t)next_random(&r->random));
	while (size < 2 * o->max_senders)
		size *= 2;
	r->index_mask = size - 1;
	r->flows = calloc(o->max_senders, sizeof(*r->flows));
	r->index = calloc(size, sizeof(*r->index));
	r->n_candidates = 4 * o->max_senders < 64 ? 64 : 4 * o->max_senders < RECEIVER_MAX_CANDIDATES ? 4 * o->max_senders : RECEIVER_MAX_CANDIDATES;
	r->candidates = calloc(r->n_candidates, sizeof(*r->candidates));
	r->candidate_ssrcs = calloc(r->n_candidates, sizeof(*r->candidate_ssrcs));
	r->rs_memory = malloc(rs_decoder_bytes(RS_STORE_PACKETS));
	if (!r->flows || !r->index || !r->candidates || !r->candidate_ssrcs || !r->rs_memory)
		return err_say(why, ERR_NOMEM, "senders", "%s", err_text(ERR_NOMEM));
	if (o->flow.retime && varirate_init(&r->model, 1))
		return err_say(why, ERR_NOMEM, "senders", "%s", err_text(ERR_NOMEM));
	r->o.flow.model = &r->model;
	rs_decoder_init(&r->rs, RS_STORE_PACKETS, r->rs_memory, cpu_flags());
	rtcp_timer_init(&r->timer, 1e6, false, 100, start_ns, random_part(r));
	r->loss_ns = start_ns + LOSS_REPORT_NS;
	return o->srtp ? srtp_session_send(o->srtp, r->ssrc, 0, why) : ERR_OK;
}

void receiver_release(struct receiver *r)
{
	for (unsigned i = 0; r->flows && i < r->o.max_senders; i++)
		netflow_release(&r->flows[i]);
	varirate_release(&r->model);
	free(r->flows);
	free(r->index);
	free(r->candidates);
	free(r->candidate_ssrcs);
	free(r->rs_memory);
}

/* ---- who may speak ---- */

static void wide_address(const struct dgram_addr *a, uint8_t out[16])
{
	if (a->any.sa_family == AF_INET) {
		memset(out, 0, 10);
		out[10] = out[11] = 0xFF;
		memcpy(out + 12, &a->ip4.sin_addr, 4);
	} else {
		memcpy(out, &a->ip6.sin6_addr, 16);
	}
}

enum err receiver_net_parse(struct receiver_net *n, const char *text, struct err_why *why)
{
	char address[64];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	struct in_addr ip4;
	unsigned most, bits;
	char *end;

	if (length >= sizeof(address))
		return err_say(why, ERR_ARG, "--from", "'%s' is no address", text);
	memcpy(address, text, length);
	address[length] = 0;
	if (inet_pton(AF_INET, address, &ip4) == 1) {
		memset(n->bytes, 0, 10);
		n->bytes[10] = n->bytes[11] = 0xFF;
		memcpy(n->bytes + 12, &ip4, 4);
		most = 32;
	} else if (inet_pton(AF_INET6, address, n->bytes) == 1) {
		most = 128;
	} else {
		return err_say(why, ERR_ARG, "--from", "'%s' is no address: 192.0.2.7, 192.0.2.0/24, 2001:db8::/32", text);
	}
	bits = most;
	if (slash) {
		unsigned long value = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || value > most)
			return err_say(why, ERR_ARG, "--from", "'%s': a network has 0…%u bits", text, most);
		bits = (unsigned)value;
	}
	n->n_bits = bits + (most == 32 ? 96 : 0);
	return ERR_OK;
}

bool receiver_may_speak(const struct receiver *r, const struct dgram_addr *from)
{
	uint8_t a[16];

	if (!r->o.n_from)
		return true;
	wide_address(from, a);
	for (unsigned i = 0; i < r->o.n_from; i++) {
		const struct receiver_net *n = &r->o.from[i];
		unsigned whole = n->n_bits / 8, rest = n->n_bits % 8;
		uint8_t mask = (uint8_t)(0xFF00 >> rest);
		if (!memcmp(a, n->bytes, whole) && (!rest || ((a[whole] ^ n->bytes[whole]) & mask) == 0))
			return true;
	}
	return false;
}

/* One line about what strangers do, a second at most. */
static void say_rarely(struct receiver *r, int64_t now_ns, const char *thing, const char *text)
{
	if (r->said_ns && now_ns - r->said_ns < SAY_NS) {
		r->n_unsaid++;
		return;
	}
	r->said_ns = now_ns;
	tool_warn(r->tool, thing, "%s", text);
}

/* ---- finding flows ---- */

static unsigned slot_of(const struct receiver *r, uint32_t ssrc)
{
	return (ssrc * 0x9E3779B1u >> 8) & r->index_mask;
}

static void index_all(struct receiver *r)
{
	memset(r->index, 0, (r->index_mask + 1) * sizeof(*r->index));
	for (unsigned i = 0; i < r->n_flows; i++) {
		if (!r->flows[i].used)
			continue;
		unsigned at = slot_of(r, r->flows[i].ssrc);
		while (r->index[at])
			at = (at + 1) & r->index_mask;
		r->index[at] = (uint16_t)(i + 1);
	}
}

static struct netflow *flow_of(const struct receiver *r, uint32_t ssrc)
{
	for (unsigned at = slot_of(r, ssrc); r->index[at]; at = (at + 1) & r->index_mask)
		if (r->flows[r->index[at] - 1].ssrc == ssrc)
			return &r->flows[r->index[at] - 1];
	return NULL;
}

void receiver_port_sdp(struct receiver_port *p, const struct sdp_media *m)
{
	for (unsigned i = 0; i < m->n_formats; i++) {
		const struct sdp_format *f = &m->formats[i];
		char stereo[8];
		if (f->rtp.codec == RTP_CODEC_NONE)
			continue;
		p->formats[f->pt] = f->rtp;
		/* The rtpmap always says 2; what it is, the parameters say (RFC 7587 section 7). */
		if (f->rtp.codec == RTP_CODEC_OPUS) {
			const char *says = sdp_fmtp(f->fmtp, "sprop-stereo", stereo, sizeof(stereo));
			p->formats[f->pt].channels = says ? (says[0] == '1' ? 2 : 1) : 0;
		}
	}
	if (m->label[0])
		snprintf(p->label, sizeof(p->label), "%s", m->label);
}

/* A RED payload's own block, to look at. */
static struct rtp inside(const struct rtp *p)
{
	struct red_block blocks[RED_BLOCKS_MAX];
	struct rtp in = *p;
	struct err_why why;
	unsigned n;

	if (red_parse(blocks, &n, p->ts, p->payload, p->payload_bytes, &why))
		return in;
	in.pt = blocks[n - 1].pt;
	in.payload = blocks[n - 1].data;
	in.payload_bytes = blocks[n - 1].n_bytes;
	return in;
}

static uint32_t opus_frames(const struct rtp *p)
{
	return opustoc_frames(p->payload, p->payload_bytes);
}

static uint16_t opus_channels(const struct rtp *p)
{
	return (uint16_t)opustoc_channels(p->payload, p->payload_bytes);
}

/*
 * What two packets in sequence prove: their sizes against the step of the timestamp.  Some senders take the encoder's delay off
 * the first packet of Opus, so that the step behind it is short.
 */
static bool prove(const struct rtp *a, const struct rtp *b, struct rtp_format *f)
{
	uint32_t step = b->ts - a->ts;
	uint32_t samples = opus_frames(a);

	if (!step || step > 48000 * 2)
		return false;
	/* Two bytes a frame are 768 kb/s at 48 kHz, and Opus ends at 510. */
	size_t frame = a->payload_bytes / step;
	if (frame < 2 || a->payload_bytes % step) {
		*f = (struct rtp_format){ .codec = RTP_CODEC_OPUS, .clock_hz = RTP_OPUS_HZ, .channels = opus_channels(a) };
		return samples > 0 && (samples == step || (step < samples && opus_frames(b) == samples));
	}
	/* Stereo L24 rather than three channels of L16, and so on: 24 bits where both would do for an even number. */
	if (frame % 3 == 0 && frame / 3 <= 8 && (frame % 2 || frame / 3 % 2 == 0))
		*f = (struct rtp_format){ .codec = RTP_CODEC_L24, .clock_hz = PROVEN_HZ, .channels = (uint16_t)(frame / 3) };
	else if (frame % 2 == 0 && frame / 2 <= 8)
		*f = (struct rtp_format){ .codec = RTP_CODEC_L16, .clock_hz = PROVEN_HZ, .channels = (uint16_t)(frame / 2) };
	else
		return false;
	return true;
}

/* What a new sender sends.  before: its packet before p, or NULL.  Returns: false: it cannot be told. */
static bool format_of(const struct receiver *r, const struct receiver_candidate *c, const struct rtp *p, const struct rtp *before, struct rtp_format *f)
{
	const struct receiver_port *port = &r->ports[c->port];
	struct rtp in = *p;

	if (c->has_binding) {
		*f = (struct rtp_format){ c->binding.codec, c->binding.rate_hz, c->binding.channels };
		return f->codec == RTP_CODEC_OPUS || f->codec == RTP_CODEC_L16 || f->codec == RTP_CODEC_L24;
	}
	*f = port->formats[p->pt];
	if (f->codec == RTP_CODEC_RED) {
		in = inside(p);
		*f = port->formats[in.pt & 127];
	}
	if (f->codec == RTP_CODEC_NONE && p->pt >= 96)
		*f = port->any;
	if (f->codec == RTP_CODEC_NONE && !rtp_static_format(p->pt, f) && (p->pt < 96 || !before || !prove(before, p, f)))
		return false;
	if (f->codec == RTP_CODEC_OPUS) {
		f->clock_hz = RTP_OPUS_HZ;
		if (!f->channels || (f->channels == 1 && opus_channels(&in) == 2))
			f->channels = opus_channels(&in);
	}
	if (!f->channels)
		f->channels = 2;
	if (!f->clock_hz)
		f->clock_hz = PROVEN_HZ;
	return f->codec != RTP_CODEC_RED;
}

static void free_flow(struct receiver *r, struct netflow *f)
{
	r->ended_received += f->counts.packets;
	r->ended_lost += netflow_lost(f);
	r->ended_recovered += f->counts.recovered;
	r->ended_concealed += f->counts.concealed_frames;
	r->ended_late += f->jitter.counts.late;
	r->ended_reordered += f->jitter.counts.reordered;
	r->ended_duplicate += f->jitter.counts.duplicate;
	r->ended_refused += f->counts.refused + f->jitter.counts.full + f->jitter.counts.stray;
	r->ended_lost_frames += f->counts.lost_frames;
	r->ended_gaps += f->counts.gaps;
	r->ended_dropped += f->counts.dropped_frames;
	r->ended_out += f->counts.frames_out;
	f->used = false;
	if (r->o.srtp)
		srtp_session_forget(r->o.srtp, f->ssrc);
	index_all(r);
	if (r->event)
		r->event(r->user, f, false);
}

/* The flow that a new SSRC goes on with: of the same place, the same format, silent just now. */
static struct netflow *predecessor(const struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns)
{
	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		if (f->used && !f->ending && f->port == c->port && dgram_same_host(&f->from, &c->from) && f->format.codec == format->codec &&
			f->format.channels == format->channels && f->format.clock_hz == format->clock_hz && now_ns - f->last_ns > QUIET_NS)
			return f;
	}
	return NULL;
}

static struct netflow *place_for(struct receiver *r)
{
	for (unsigned i = 0; i < r->o.max_senders; i++)
		if (!r->flows[i].used) {
			r->n_flows = i >= r->n_flows ? i + 1 : r->n_flows;
			return &r->flows[i];
		}
	return NULL;
}

static struct netflow *begin_flow(struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns)
{
	struct netflow *f = predecessor(r, c, format, now_ns);
	char address[DGRAM_TEXT_BYTES];
	struct err_why why;
	bool again = f != NULL;

	if (again) {
		if (r->o.srtp)
			srtp_session_forget(r->o.srtp, f->ssrc);
		netflow_succeed(f, c->ssrc);
	} else {
		if (!(f = place_for(r))) {
			if (!r->said_full)
				tool_warn(r->tool, dgram_text(&c->from, address), "a sender more than --max-senders %u: not heard", r->o.max_senders);
			r->said_full = true;
			return NULL;
		}
		if (netflow_begin(f, &r->o.flow, r->out, r->next_id, c->ssrc, format, &why)) {
			tool_say(r->tool, why.err, &why);
			return NULL;
		}
		r->next_id++;
		snprintf(f->name, sizeof(f->name), "%s", r->ports[c->port].label[0] ? r->ports[c->port].label : dgram_text(&c->from, address));
	}
	f->from = f->rtcp_from = c->from;
	f->port = c->port;
	f->last_ns = now_ns;
	if (c->has_binding)
		netflow_bind(f, &c->binding);
	index_all(r);
	r->has_rs = true;
	if (!again) {
		tool_note(r->tool, dgram_text(&c->from, address), "track %u: %s, %u Hz, %u channels", f->id, rtp_codec_name(format->codec), format->clock_hz, format->channels);
		if (r->event)
			r->event(r->user, f, true);
	}
	return f;
}

/* ---- candidates ---- */

static struct receiver_candidate *candidate_of(struct receiver *r, uint32_t ssrc, unsigned port, const struct dgram_addr *from)
{
	for (unsigned i = 0; i < r->n_candidates; i++)
		if (r->candidate_ssrcs[i] == ssrc && r->candidates[i].used && dgram_same_host(&r->candidates[i].from, from))
			return &r->candidates[i];
	unsigned at = r->next_candidate++ % r->n_candidates;
	struct receiver_candidate *c = &r->candidates[at];
	r->candidate_ssrcs[at] = ssrc;
	c->used = true;
	c->has_packet = c->has_binding = false;
	c->n_unproven = 0;
	c->source = (struct rtp_source){ 0 };
	c->ssrc = ssrc;
	c->port = port;
	c->from = *from;
	return c;
}

static void take_packet(struct receiver *r, struct netflow *f, const struct rtp *p, int64_t arrival_ns);

static void meet(struct receiver *r, unsigned port, const struct dgram_addr *from, const struct rtp *p, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	struct receiver_candidate *c = candidate_of(r, p->ssrc, port, from);
	enum rtp_verdict verdict = rtp_source_judge(&c->source, p->seq);
	struct rtp before;
	struct rtp_format format;
	bool has_before = c->has_packet && rtp_unpack(&before, c->bytes, c->n_bytes) == ERR_OK;

	c->port = port;
	if (verdict == RTP_TAKE || c->has_binding) {
		struct netflow *f = NULL;
		if (format_of(r, c, p, has_before ? &before : NULL, &format)) {
			f = begin_flow(r, c, &format, arrival_ns);
		} else if (!r->said_unknown && ++c->n_unproven >= UNPROVEN_PACKETS) {
			char address[DGRAM_TEXT_BYTES];
			r->said_unknown = true;
			tool_warn(r->tool, dgram_text(from, address), "payload type %u is not known here and proves nothing: not heard (--codec, --pt, or an SDP say what it is)", p->pt);
		}
		if (f) {
			if (has_before && format.codec == RTP_CODEC_OPUS && opus_frames(&before) > p->ts - before.ts)
				before.ts = p->ts - opus_frames(&before);
			if (has_before)
				take_packet(r, f, &before, c->arrival_ns);
			take_packet(r, f, p, arrival_ns);
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

/* ---- packets of those we know ---- */

static void take_red(struct receiver *r, struct netflow *f, const struct rtp *p, int64_t arrival_ns)
{
	struct red_block blocks[RED_BLOCKS_MAX];
	struct err_why why;
	unsigned n;
	struct rtp own = *p;

	(void)r;
	if (red_parse(blocks, &n, p->ts, p->payload, p->payload_bytes, &why)) {
		f->counts.refused++;
		return;
	}
	own.pt = blocks[n - 1].pt;
	own.payload = blocks[n - 1].data;
	own.payload_bytes = blocks[n - 1].n_bytes;
	for (unsigned i = 0; i + 1 < n; i++)
		netflow_copy(f, blocks[i].ts, -1, blocks[i].data, blocks[i].n_bytes, arrival_ns);
	netflow_packet(f, &own, arrival_ns);
}

/* RED where an SDP or an option says so; else what takes apart as RED around the flow's own payload type. */
static bool is_red(const struct receiver *r, const struct netflow *f, const struct rtp *p)
{
	struct rtp in;

	if (f->format.codec != RTP_CODEC_OPUS || p->pt == f->pt)
		return false;
	if (r->ports[f->port].formats[p->pt].codec == RTP_CODEC_RED)
		return true;
	in = inside(p);
	return in.payload != p->payload && in.pt == f->pt;
}

static void take_packet(struct receiver *r, struct netflow *f, const struct rtp *p, int64_t arrival_ns)
{
	switch (rtp_source_judge(&f->source, p->seq)) {
	case RTP_DROP:
		f->counts.refused++;
		return;
	case RTP_RESTART:
		f->seq = (struct rtp_unwrap){ 0 };
		f->newest_seq = -1;
		f->reception = (struct rtcp_reception){ 0 };
		f->monitor = (struct red_monitor){ 0 };
		break;
	default: /* who got here has been on probation already */
		break;
	}
	if (!f->pt)
		f->pt = f->is_weir ? f->binding.pt : r->ports[f->port].formats[p->pt].codec == RTP_CODEC_RED ? inside(p).pt : p->pt;
	if (p->pt == f->pt)
		netflow_packet(f, p, arrival_ns);
	else if (is_red(r, f, p))
		take_red(r, f, p, arrival_ns);
	else
		f->counts.refused++;
}

/* Are these the repair packets of flows that we know?  By what they say of themselves (net/rs.h). */
static bool take_repair(struct receiver *r, const struct dgram_addr *from, const struct rtp *p)
{
	if (p->payload_bytes < 14 || p->payload[0] != 1 || !p->payload[6] || p->payload[6] > RS_FLOWS_MAX || p->payload[7])
		return false;
	uint32_t ssrc = (uint32_t)p->payload[8] << 24 | (uint32_t)p->payload[9] << 16 | (uint32_t)p->payload[10] << 8 | p->payload[11];
	const struct netflow *f = flow_of(r, ssrc);
	if (!f || !dgram_same_host(&f->from, from))
		return false;
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
		struct netflow *f = flow_of(r, p.ssrc);
		if (f && p.pt == f->pt)
			netflow_copy(f, p.ts, rtp_peek_seq(&f->seq, p.seq), p.payload, p.payload_bytes, arrival_ns);
	}
}

static void take_rtp(struct receiver *r, unsigned port, const struct dgram_addr *from, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	struct rtp p;

	if (rtp_unpack(&p, bytes, n_bytes)) {
		stats_add(&r->counts.strangers, 1);
		return;
	}
	struct netflow *f = flow_of(r, p.ssrc);
	if (f && !dgram_same_host(&f->from, from)) {
		if (arrival_ns - f->last_ns < SPOOF_NS || r->o.srtp) {
			stats_add(&r->counts.strangers, 1);
			return;
		}
		f->from = f->rtcp_from = *from; /* it has moved */
	}
	if (f && f->ending)
		return;
	if (f) {
		take_packet(r, f, &p, arrival_ns);
		if (r->rs.counts.n_repairs) {
			rs_decoder_source(&r->rs, bytes, n_bytes);
			take_repaired(r, arrival_ns);
		}
	} else if (r->n_flows && take_repair(r, from, &p)) {
		take_repaired(r, arrival_ns);
	} else {
		meet(r, port, from, &p, bytes, n_bytes, arrival_ns);
	}
}

/* ---- RTCP ---- */

static void take_sdes(struct receiver *r, const struct rtcp_packet *p, const struct dgram_addr *from)
{
	struct rtcp_sdes_at at = { 0 };
	struct rtcp_item item;

	while (rtcp_sdes_next(p, &at, &item) == ERR_OK) {
		struct netflow *f = flow_of(r, item.ssrc);
		char text[256];
		if (!f || !dgram_same_host(&f->from, from) || item.type != RTCP_SDES_NAME || f->is_weir || f->announced)
			continue;
		memcpy(text, item.text, item.n_bytes);
		text[item.n_bytes] = 0;
		sdp_clean(text, f->name, sizeof(f->name));
	}
}

static void take_app(struct receiver *r, unsigned port, const struct rtcp_packet *p, const struct dgram_addr *from)
{
	struct rtcp_app a;
	struct rtcp_binding b;

	if (rtcp_app_unpack(p, &a) || memcmp(a.name, RTCP_WEIR_NAME, 4) || a.subtype != RTCP_WEIR_BINDING || rtcp_binding_unpack(&a, &b))
		return;
	struct netflow *f = flow_of(r, b.ssrc);
	struct err_why why;
	/* It is authentic by now: one who joins learns the roll-over counter here. */
	if (r->o.srtp && srtp_session_hear(r->o.srtp, b.ssrc, b.roc, &why))
		return;
	if (f && dgram_same_host(&f->from, from)) {
		netflow_bind(f, &b);
	} else if (!f) {
		struct receiver_candidate *c = candidate_of(r, b.ssrc, port, from);
		c->binding = b;
		c->has_binding = true;
	}
}

static void take_rtcp(struct receiver *r, unsigned port, const struct dgram_addr *from, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	struct rtcp_packet p;
	struct rtcp_sr sr;
	size_t offset = 0;
	uint32_t ssrc;

	if (rtcp_check(bytes, n_bytes, true)) {
		stats_add(&r->counts.strangers, 1);
		return;
	}
	rtcp_timer_heard(&r->timer, n_bytes);
	while (rtcp_next(bytes, n_bytes, &offset, &p) == ERR_OK) {
		struct netflow *f;
		switch (p.type) {
		case RTCP_SR:
			if (rtcp_sr_unpack(&p, &sr) || !(f = flow_of(r, sr.ssrc)) || !dgram_same_host(&f->from, from))
				break;
			netflow_sr(f, &sr, arrival_ns);
			f->rtcp_from = *from;
			break;
		case RTCP_SDES:
			take_sdes(r, &p, from);
			break;
		case RTCP_BYE:
			for (unsigned i = 0; rtcp_bye_unpack(&p, i, &ssrc) == ERR_OK; i++)
				if ((f = flow_of(r, ssrc)) && dgram_same_host(&f->from, from))
					netflow_bye(f);
			break;
		case RTCP_APP:
			take_app(r, port, &p, from);
			break;
		default:
			break;
		}
	}
}

void receiver_datagram(struct receiver *r, unsigned port, bool is_rtcp, const struct dgram_addr *from, uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	if (!receiver_may_speak(r, from)) {
		stats_add(&r->counts.strangers, 1);
		return;
	}
	is_rtcp = is_rtcp || rtcp_is_rtcp(bytes, n_bytes);
	if (r->o.srtp) {
		enum err e = is_rtcp ? srtp_session_unprotect_rtcp(r->o.srtp, bytes, &n_bytes) : srtp_session_unprotect(r->o.srtp, bytes, &n_bytes);
		if (e == ERR_PEER)
			say_rarely(r, arrival_ns, "srtp", "packets that are not of this key: another key, damage, or a stranger; dropped");
		if (e)
			return;
	}
	if (is_rtcp)
		take_rtcp(r, port, from, bytes, n_bytes, arrival_ns);
	else
		take_rtp(r, port, from, bytes, n_bytes, arrival_ns);
}

/* ---- reports ---- */

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
	l->jitter_us = (uint32_t)(f->reception.jitter * 1e6 / f->format.clock_hz);
	l->depth_us = (uint32_t)(jitter_depth_s(&f->jitter) * 1e6);
	l->last_sr = report->last_sr;
	l->delay_last_sr = report->delay_last_sr;
}

/* To one sender, about it. */
static size_t report_to(struct receiver *r, struct netflow *f, int64_t now_ns, bool whole)
{
	uint8_t bytes[RTCP_MAX_BYTES + SRTP_RTCP_TAIL_BYTES], loss[RTCP_LOSS_BYTES];
	struct rtcp_writer w = { bytes, RTCP_MAX_BYTES, 0 };
	struct rtcp_report report = rtcp_reception_report(&f->reception, f->ssrc, now_ns);
	struct rtcp_loss l;

	if (rtcp_put_rr(&w, r->ssrc, &report, 1) || (whole && rtcp_put_sdes(&w, r->ssrc, r->cname, NULL)))
		return 0;
	if (f->is_weir) {
		loss_of(f, now_ns, &report, &l);
		rtcp_loss_pack(&l, loss);
		if (rtcp_put_app(&w, r->ssrc, RTCP_WEIR_LOSS, RTCP_WEIR_NAME, loss, sizeof(loss)))
			return 0;
	}
	size_t n = w.n_bytes;
	if (r->o.srtp && srtp_session_protect_rtcp(r->o.srtp, bytes, &n))
		return 0;
	r->send(r->user, f->port, &f->rtcp_from, bytes, n);
	return n;
}

static bool wants_reports(const struct netflow *f)
{
	return f->used && !f->ending && f->reception.started;
}

static void report(struct receiver *r, int64_t now_ns)
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
		rtcp_timer_members(&r->timer, members, members - 1, now_ns);
		if (rtcp_timer_due(&r->timer, now_ns, random_part(r))) {
			size_t n = 0;
			for (unsigned i = 0; i < r->n_flows; i++)
				if (wants_reports(&r->flows[i]))
					n = report_to(r, &r->flows[i], now_ns, true);
			rtcp_timer_sent(&r->timer, n ? n + 28 : 100, now_ns, random_part(r));
		}
	}
	for (unsigned i = 0; loss_due && i < r->n_flows; i++)
		if (wants_reports(&r->flows[i]) && r->flows[i].is_weir)
			report_to(r, &r->flows[i], now_ns, false);
}

/* ---- what is due ---- */

static int64_t tick_pos(const struct netflow *f, int64_t tick, int64_t block_ns)
{
	return units_scale_down(tick * block_ns, f->format.clock_hz, UNITS_NS_PER_S);
}

static bool is_over(const struct receiver *r, const struct netflow *f, int64_t now_ns)
{
	if (now_ns - f->last_ns > NETFLOW_FORGET_NS)
		return true;
	return f->ending && !f->jitter.n_held && (!r->o.flow.retime || !f->playing);
}

static enum err play_tick(struct receiver *r, int64_t tick_ns, bool out)
{
	enum err e;

	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		if (!f->used)
			continue;
		int64_t pos = tick_pos(f, r->tick, r->o.flow.block_ns), end = tick_pos(f, r->tick + 1, r->o.flow.block_ns);
		int64_t most = PACKET_MAX_PAYLOAD_BYTES / f->frame_bytes;
		for (int64_t n, done = 0; pos + done < end; done += n) { /* a long block of many channels in several pieces */
			n = end - pos - done < most ? end - pos - done : most;
			n = n < NETFLOW_MAX_BLOCK_FRAMES ? n : NETFLOW_MAX_BLOCK_FRAMES;
			if ((e = netflow_play(f, tick_ns + units_to_ns(done, f->format.clock_hz, 1), pos + done, (uint32_t)n, out)))
				return e;
		}
	}
	return ERR_OK;
}

enum err receiver_run(struct receiver *r, int64_t now_ns, bool out)
{
	enum err e;

	while (r->o.flow.retime) {
		int64_t tick_ns = r->start_ns + r->tick * r->o.flow.block_ns;
		if (tick_ns > now_ns)
			break;
		if ((e = play_tick(r, tick_ns, out && now_ns - tick_ns < BEHIND_NS)))
			goto failed;
		r->tick++;
	}
	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		if (!f->used)
			continue;
		if (!r->o.flow.retime && out && (e = netflow_pass(f, now_ns)))
			goto failed;
		if (out && is_over(r, f, now_ns)) {
			if ((e = netflow_end(f, PACKET_END_NORMAL)))
				goto failed;
			free_flow(r, f);
		}
	}
	report(r, now_ns);
	return ERR_OK;
failed:
	r->why = r->out->why;
	return e;
}

int64_t receiver_next_ns(const struct receiver *r)
{
	int64_t next = r->loss_ns;

	if (r->o.flow.retime && r->start_ns + r->tick * r->o.flow.block_ns < next)
		return r->start_ns + r->tick * r->o.flow.block_ns;
	for (unsigned i = 0; !r->o.flow.retime && i < r->n_flows; i++) {
		int64_t due = r->flows[i].used ? netflow_due_ns(&r->flows[i]) : INT64_MAX;
		if (due < next)
			next = due;
	}
	return next;
}

void receiver_stop(struct receiver *r)
{
	for (unsigned i = 0; i < r->n_flows; i++)
		if (r->flows[i].used)
			netflow_bye(&r->flows[i]);
}

bool receiver_idle(const struct receiver *r)
{
	for (unsigned i = 0; i < r->n_flows; i++)
		if (r->flows[i].used)
			return false;
	return true;
}

enum err receiver_end(struct receiver *r, enum packet_end_reason reason)
{
	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		enum err e = f->used ? netflow_end(f, reason) : ERR_OK;
		if (e) {
			r->why = r->out->why;
			return e;
		}
		if (!f->used && f->ssrc && f->counts.packets && f->ended)
			continue;
	}
	return ERR_OK;
}

void receiver_count(struct receiver *r, struct stats *s)
{
	uint64_t received = r->ended_received, lost = r->ended_lost, recovered = r->ended_recovered, concealed = r->ended_concealed, late = r->ended_late,
		reordered = r->ended_reordered, duplicate = r->ended_duplicate, refused = r->ended_refused, senders = 0, lost_frames = r->ended_lost_frames,
		gaps = r->ended_gaps, dropped = r->ended_dropped, frames_out = r->ended_out;
	double jitter_us = 0, depth_us = 0, most_ppm = 0;

	for (unsigned i = 0; i < r->n_flows; i++) {
		const struct netflow *f = &r->flows[i];
		if (!f->used)
			continue;
		senders++;
		received += f->counts.packets;
		lost += netflow_lost(f);
		recovered += f->counts.recovered;
		concealed += f->counts.concealed_frames;
		late += f->jitter.counts.late;
		reordered += f->jitter.counts.reordered;
		duplicate += f->jitter.counts.duplicate;
		refused += f->counts.refused + f->jitter.counts.full + f->jitter.counts.stray;
		lost_frames += f->counts.lost_frames;
		gaps += f->counts.gaps;
		dropped += f->counts.dropped_frames;
		frames_out += f->counts.frames_out;
		double j_us = f->reception.jitter * 1e6 / f->format.clock_hz, d_us = jitter_depth_s(&f->jitter) * 1e6, ppm = drift_ppm(&f->jitter.drift);
		jitter_us = j_us > jitter_us ? j_us : jitter_us;
		depth_us = d_us > depth_us ? d_us : depth_us;
		most_ppm = ppm * ppm > most_ppm * most_ppm ? ppm : most_ppm;
	}
	stats_set(&r->counts.received, received);
	stats_set(&r->counts.lost, lost);
	stats_set(&r->counts.recovered, recovered);
	stats_set(&r->counts.concealed_frames, concealed);
	stats_set(&r->counts.late_packets, late);
	stats_set(&r->counts.reordered, reordered);
	stats_set(&r->counts.duplicate, duplicate);
	stats_set(&r->counts.jitter_us, (uint64_t)jitter_us);
	stats_set(&r->counts.depth_us, depth_us > 0 ? (uint64_t)depth_us : 0);
	stats_set(&r->counts.refused, refused);
	stats_set(&r->counts.senders, senders);
	if (r->o.srtp) {
		stats_set(&r->counts.forged, r->o.srtp->counts.n_forged);
		stats_set(&r->counts.replayed, r->o.srtp->counts.n_replayed);
	}
	stats_set(&s->packets_out, r->out->n_packets);
	stats_set(&s->frames_out, frames_out);
	stats_set(&s->lost_frames, lost_frames);
	stats_set(&s->dropped_frames, dropped);
	stats_set(&s->gaps, gaps);
	stats_drift(s, (int64_t)(most_ppm * 1000));
}
