#include "tool/receiverflows.h"

#include <stdio.h>
#include <string.h>

#define QUIET_NS (UNITS_NS_PER_S / 10)     /* a sender silent for so long may have begun anew under another SSRC */

static unsigned slot_of(const struct receiver *r, uint32_t ssrc)
{
	return (ssrc * 0x9E3779B1u >> 8) & r->index_mask;
}

void receiverflows_index(struct receiver *r)
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

struct netflow *receiverflows_find(const struct receiver *r, uint32_t ssrc)
{
	for (unsigned at = slot_of(r, ssrc); r->index[at]; at = (at + 1) & r->index_mask)
		if (r->flows[r->index[at] - 1].ssrc == ssrc)
			return &r->flows[r->index[at] - 1];
	return NULL;
}

void receiverflows_free(struct receiver *r, struct netflow *f)
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
	receiverflows_index(r);
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

struct netflow *receiverflows_begin(struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns)
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
	receiverflows_index(r);
	r->has_rs = true;
	if (!again) {
		tool_note(r->tool, dgram_text(&c->from, address), "track %u: %s, %u Hz, %u channels", f->id, rtp_codec_name(format->codec), format->clock_hz, format->channels);
		if (r->event)
			r->event(r->user, f, true);
	}
	return f;
}

/* ---- candidates ---- */

struct receiver_candidate *receiverflows_candidate(struct receiver *r, uint32_t ssrc, unsigned port, const struct dgram_addr *from)
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
