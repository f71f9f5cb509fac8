#include "leg/receiverflows.h"

#include "leg/netflowin.h"
#include "leg/netflowparts.h"
#include "leg/receiverids.h"

#include <stdio.h>
#include <string.h>

#define QUIET_NS (UNITS_NS_PER_S / 10)     /* a sender silent for so long may have begun anew under another SSRC */
#define LEFT_NS (UNITS_NS_PER_S / 4)       /* what comes so soon after a BYE was overtaken by it */
#define JOINS_AT_ONCE 64u                  /* new tracks, and two for each of max_senders */

static unsigned slot_of(const struct receiver *r, uint32_t ssrc)
{
	return (ssrc * 0x9E3779B1u >> 8) & r->index_mask;
}

void receiverflows_index(struct receiver *r)
{
	memset(r->index, 0, (r->index_mask + 1) * sizeof(*r->index));
	for (unsigned i = 0; i < r->n_flows; i++) {
		if (!r->flows[i].used || r->flows[i].is_joint)
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

bool receiverflows_has_left(const struct receiver *r, uint32_t ssrc, const struct dgram_addr *from, int64_t now_ns)
{
	for (unsigned i = 0; i < RECEIVER_N_LEFT && i < r->n_left; i++)
		if (r->left[i].ssrc == ssrc && now_ns - r->left[i].left_ns < LEFT_NS && dgram_same_host(&r->left[i].from, from))
			return true;
	return false;
}

void receiverflows_free(struct receiver *r, struct netflow *f, int64_t now_ns)
{
	if (f->ending && !f->is_joint)
		r->left[r->n_left++ % RECEIVER_N_LEFT] = (struct receiver_left){ f->ssrc, now_ns, f->from };
	receivercount_add(&r->ended, f);
	f->used = false;
	if (!f->announced && !f->joint)
		receiverids_give_back(r, f->id);
	if (r->o.srtp && !f->is_joint)
		srtp_session_forget(r->o.srtp, f->ssrc);
	receiverflows_index(r);
	if (f->joint) {
		assembly_leave(&f->joint->assembly, f->member);
		if (!f->joint->assembly.n_members)
			netflowin_bye(f->joint);
		f->joint = NULL;
		return;
	}
	if (r->event)
		r->event(r->user, f, false);
}

/* The flow that a new SSRC goes on with: of the same place, the same format, silent just now. */
static struct netflow *predecessor(const struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns)
{
	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		if (f->used && !f->joint && !f->is_joint && !f->ending && f->port == c->port && dgram_same_host(&f->from, &c->from) && f->format.codec == format->codec &&
			f->format.channels == format->channels && f->format.clock_hz == format->clock_hz && now_ns - f->last_ns > QUIET_NS &&
			!(f->is_weir && c->has_binding && f->binding.track != c->binding.track))
			return f;
	}
	return NULL;
}

static struct netflow *place_for(struct receiver *r, bool is_joint)
{
	/* A joint flow is no sender of its own: there are places for them too. */
	unsigned most = is_joint ? r->n_places - r->o.max_senders : r->o.max_senders, n = 0;

	for (unsigned i = 0; i < r->n_flows; i++)
		n += r->flows[i].used && r->flows[i].is_joint == is_joint;
	for (unsigned i = 0; n < most && i < r->n_places; i++)
		if (!r->flows[i].used) {
			r->n_flows = i >= r->n_flows ? i + 1 : r->n_flows;
			return &r->flows[i];
		}
	return NULL;
}

/* Senders that come and go, or one who seems to be many, do not fill the stream with tracks. */
static bool may_join(struct receiver *r, int64_t now_ns)
{
	return receiverids_may(r, &r->joined_ns, JOINS_AT_ONCE + 2 * r->o.max_senders, now_ns);
}

/* ---- a track that is split ---- */

static bool is_part(const struct rtcp_binding *b, const struct rtp_format *format)
{
	return b->all_channels > b->channels && b->all_channels <= ASSEMBLY_MAX_CHANNELS && b->channels == format->channels &&
		(format->codec == RTP_CODEC_L16 || format->codec == RTP_CODEC_L24) && b->codec == format->codec && b->rate_hz == format->clock_hz;
}

/* Returns: NULL: no place, or no memory. */
static struct netflow *joint_of(struct receiver *r, const struct rtcp_binding *b, const struct dgram_addr *from, unsigned port,
	const struct rtp_format *format, int64_t now_ns)
{
	char address[DGRAM_TEXT_BYTES];
	struct err_why why;

	for (unsigned i = 0; i < r->n_flows; i++)
		if (r->flows[i].port == port && netflowparts_belongs(&r->flows[i], b, from))
			return &r->flows[i];
	struct netflow *f = place_for(r, true);
	if (!f || !may_join(r, now_ns))
		return NULL;
	uint16_t id = receiverids_next(r, b->track);
	if (netflowparts_begin_joint(f, &r->o.flow, r->out, id, format, b, &why)) {
		tool_say(r->tool, why.err, &why);
		return NULL;
	}
	receiverids_take(r, id);
	if (!f->name[0])
		snprintf(f->name, sizeof(f->name), "%s", r->ports[port].label[0] ? r->ports[port].label : dgram_text(from, address));
	f->from = f->rtcp_from = *from;
	f->port = port;
	f->last_ns = now_ns;
	tool_note(r->tool, dgram_text(from, address), "track %u: %s, %u Hz, %u channels in flows of up to %u", f->id, rtp_codec_name(format->codec), format->clock_hz,
		f->format.channels, format->channels);
	if (r->event)
		r->event(r->user, f, true);
	return f;
}

void receiverflows_bind(struct receiver *r, struct netflow *f, const struct rtcp_binding *b, int64_t now_ns)
{
	if (f->joint || !is_part(b, &f->format)) {
		netflowin_bind(f, b);
		return;
	}
	/* It was taken for a track by itself: that one ends, and it goes on as the part that it is. */
	struct dgram_addr from = f->from;
	unsigned port = f->port;
	struct netflow *joint = joint_of(r, b, &from, port, &f->format, now_ns);
	if (!joint) {
		netflowin_bind(f, b);
		return;
	}
	if (netflowparts_become(f, joint, b, now_ns) && r->event)
		r->event(r->user, f, false);
}

/* A new flow that is part of a track.  Returns: NULL: it cannot be. */
static struct netflow *begin_part(struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns)
{
	/* A joint flow ends with its last part: none begins without one. */
	struct netflow *joint = place_for(r, false) ? joint_of(r, &c->binding, &c->from, c->port, format, now_ns) : NULL, *f = joint ? place_for(r, false) : NULL;

	if (!f || !netflowparts_begin(f, joint, c->ssrc, format, &c->binding, now_ns))
		return NULL;
	f->from = f->rtcp_from = c->from;
	f->port = c->port;
	f->last_ns = now_ns;
	receiverflows_index(r);
	return f;
}

struct netflow *receiverflows_begin(struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns)
{
	struct netflow *f = NULL;
	char address[DGRAM_TEXT_BYTES];
	struct err_why why;
	bool again;

	if (c->has_binding && is_part(&c->binding, format) && (f = begin_part(r, c, format, now_ns)))
		return f;
	f = predecessor(r, c, format, now_ns);
	again = f != NULL;

	if (again) {
		if (r->o.srtp)
			srtp_session_forget(r->o.srtp, f->ssrc);
		netflow_succeed(f, c->ssrc);
	} else {
		if (!(f = place_for(r, false))) {
			if (!r->said_full)
				tool_warn(r->tool, dgram_text(&c->from, address), "a sender more than --max-senders %u: not heard", r->o.max_senders);
			r->said_full = true;
			return NULL;
		}
		if (!may_join(r, now_ns)) {
			receiver_say_rarely(r, now_ns, dgram_text(&c->from, address), "a new sender, and there were too many new ones lately: not heard yet");
			return NULL;
		}
		uint16_t id = receiverids_next(r, c->has_binding ? c->binding.track : 0);
		if (netflow_begin(f, &r->o.flow, r->out, id, c->ssrc, format, &why)) {
			receiver_say_rarely(r, now_ns, why.thing, why.reason);
			return NULL;
		}
		receiverids_take(r, id);
		snprintf(f->name, sizeof(f->name), "%s", r->ports[c->port].label[0] ? r->ports[c->port].label : dgram_text(&c->from, address));
	}
	f->from = f->rtcp_from = c->from;
	f->port = c->port;
	f->last_ns = now_ns;
	if (c->has_binding)
		netflowin_bind(f, &c->binding);
	receiverflows_index(r);
	if (!again) {
		tool_note(r->tool, dgram_text(&c->from, address), "track %u: %s, %u Hz, %u channels", f->id, rtp_codec_name(format->codec), format->clock_hz, format->channels);
		if (r->event)
			r->event(r->user, f, true);
	}
	return f;
}

/* ---- candidates ---- */

/* A place for one more: an empty one, or the oldest of the bucket that has most. */
static unsigned candidate_place(struct receiver *r, unsigned bucket)
{
	unsigned at, fullest = 0;

	if (r->n_met < r->n_candidates) {
		at = r->n_met++;
	} else {
		for (unsigned i = 1; i < RECEIVER_N_BUCKETS; i++)
			if (r->in_bucket[i] > r->in_bucket[fullest])
				fullest = i;
		while (r->candidate_buckets[r->next_candidate % r->n_candidates] != fullest)
			r->next_candidate++;
		at = r->next_candidate++ % r->n_candidates;
		r->in_bucket[fullest]--;
	}
	r->candidate_buckets[at] = (uint8_t)bucket;
	r->in_bucket[bucket]++;
	return at;
}

struct receiver_candidate *receiverflows_candidate(struct receiver *r, uint32_t ssrc, unsigned port, const struct dgram_addr *from)
{
	for (unsigned i = 0; i < r->n_candidates; i++)
		if (r->candidate_ssrcs[i] == ssrc && r->candidates[i].used && dgram_same_host(&r->candidates[i].from, from))
			return &r->candidates[i];
	unsigned at = candidate_place(r, (unsigned)(dgram_host_hash(from, r->o.seed) % RECEIVER_N_BUCKETS));
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
