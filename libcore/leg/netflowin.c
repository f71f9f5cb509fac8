#include "leg/netflowin.h"

#include "leg/netflowparts.h"
#include "leg/netflowsound.h"
#include "net/opustoc.h"

#include <stdio.h>

/* Frames of a payload; 0 if it is none of this format. */
static uint32_t frames_of(const struct netflow *f, const uint8_t *payload, size_t n_bytes)
{
	if (f->format.codec == RTP_CODEC_OPUS)
		return opustoc_frames(payload, n_bytes);
	size_t wire = (size_t)rtp_codec_sample_bytes(f->format.codec) * f->format.channels;
	return wire && n_bytes % wire == 0 ? (uint32_t)(n_bytes / wire) : 0;
}

static enum jitter_put put(struct netflow *f, int64_t pos, int64_t seq, uint16_t flags, const uint8_t *payload, size_t n_bytes, int64_t arrival_ns)
{
	struct jitter_packet p = { .pos = pos, .dur_frames = frames_of(f, payload, n_bytes), .n_bytes = (uint32_t)n_bytes, .bytes = payload,
		.arrival_ns = arrival_ns, .flags = flags, .note = (uint32_t)seq };

	if (!p.dur_frames || n_bytes > NETFLOW_MAX_PAYLOAD_BYTES) {
		f->counts.refused++;
		return JITTER_STRAY;
	}
	return jitter_put(&f->jitter, &p);
}

bool netflowin_packet(struct netflow *f, const struct rtp *r, int64_t arrival_ns)
{
	int64_t seq = rtp_unwrap_seq(&f->seq, r->seq), pos = rtp_peek_ts(&f->ts, r->ts);
	bool follows = seq == f->newest_seq + 1;

	f->counts.packets++;
	f->last_ns = arrival_ns;
	reception_take(&f->reception, r->seq, r->ts, arrival_ns, f->format.clock_hz);
	red_monitor_packet(&f->monitor, seq, arrival_ns);
	if (seq > f->newest_seq)
		f->newest_seq = seq;
	if (!r->payload_bytes)
		return true; /* only a sign of life */
	if (f->joint) {
		uint32_t frames = frames_of(f, r->payload, r->payload_bytes);
		rtp_unwrap_ts(&f->ts, r->ts);
		enum assembly_put part = netflowparts_put(f, netflowparts_pos(f, r->ts), frames, r->payload, follows, false, arrival_ns);
		return part == ASSEMBLY_WHOLE || part == ASSEMBLY_KEPT;
	}
	netflowsound_settle(f, follows ? pos - f->jitter.newest_pos : 0);
	enum jitter_put put_ = put(f, pos, seq, follows ? JITTER_FOLLOWS : 0, r->payload, r->payload_bytes, arrival_ns);
	if (put_ != JITTER_STRAY)
		rtp_unwrap_ts(&f->ts, r->ts);
	return put_ == JITTER_STORED || put_ == JITTER_BEGUN;
}

void netflowin_copy(struct netflow *f, uint32_t ts, int64_t seq, const uint8_t *payload, size_t n_bytes, int64_t arrival_ns)
{
	if (!f->ts.started)
		return;
	if (f->joint) {
		enum assembly_put part = netflowparts_put(f, netflowparts_pos(f, ts), frames_of(f, payload, n_bytes), payload, false, true, arrival_ns);
		f->counts.recovered += part == ASSEMBLY_WHOLE || part == ASSEMBLY_KEPT;
		return;
	}
	if (put(f, rtp_peek_ts(&f->ts, ts), seq, JITTER_COPY, payload, n_bytes, arrival_ns) == JITTER_STORED)
		f->counts.recovered++;
}

void netflowin_sr(struct netflow *f, const struct rtcp_sr *sr, int64_t arrival_ns)
{
	reception_sr(&f->reception, sr, arrival_ns);
	if (f->heard_ns)
		f->rtcp_gap_ns = arrival_ns - f->heard_ns;
	f->heard_ns = arrival_ns;
	if (!sr->ntp || !f->ts.started)
		return;
	f->sr_ts = rtp_peek_ts(&f->ts, sr->ts);
	f->sr_utc_ns = rtcp_ntp_utc_ns(sr->ntp);
	f->sr_ns = arrival_ns;
	f->has_sr = true;
	if (f->joint) {
		f->joint->sr_ts = netflowparts_pos(f, sr->ts);
		f->joint->sr_utc_ns = f->sr_utc_ns;
		f->joint->sr_ns = arrival_ns;
		f->joint->has_sr = true;
	}
}

void netflowin_bind(struct netflow *f, const struct rtcp_binding *b)
{
	if (f->joint && (f->binding.ts0 != b->ts0 || f->binding.pos0 != b->pos0))
		f->has_base = false;
	f->is_weir = true;
	f->binding = *b;
	if (b->name[0])
		snprintf(f->name, sizeof(f->name), "%s", b->name);
}

void netflowin_bye(struct netflow *f)
{
	f->ending = true;
	netflowparts_give_up(f, INT64_MAX);
	jitter_end(&f->jitter);
}
