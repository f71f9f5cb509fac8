#include "leg/receiver.h"

#include "base/cpu.h"
#include "base/units.h"
#include "leg/netflowin.h"
#include "leg/netflowpass.h"
#include "leg/netflowplay.h"
#include "leg/receiverflows.h"
#include "leg/receiverrtcp.h"
#include "leg/receiverrtp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_REPORT_NS (UNITS_NS_PER_S / 4)
#define SAY_NS UNITS_NS_PER_S
#define BEHIND_NS (UNITS_NS_PER_S / 4)     /* blocks that are overdue by more are not written: nobody waits for them */
#define RS_STORE_PACKETS 512u
#define BRIEF_PACKETS 8u                   /* who has sent no more */
#define BRIEF_NS (5 * UNITS_NS_PER_S)      /* and is silent for so long keeps nobody's place */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15u);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

double receiver_random(struct receiver *r)
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
	r->utc_offset_ns = UNITS_UNKNOWN_NS;
	r->random = o->seed;
	r->ssrc = (uint32_t)next_random(&r->random);
	r->next_id = 1;
	r->joined_ns = INT64_MIN / 2;
	snprintf(r->cname, sizeof(r->cname), "weir-%08x", (unsigned)(uint32_t)next_random(&r->random));
	r->n_places = o->max_senders + (o->max_senders + 1) / 2;
	while (size < 2 * o->max_senders)
		size *= 2;
	r->index_mask = size - 1;
	r->flows = calloc(r->n_places, sizeof(*r->flows));
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
	rtcptimer_init(&r->timer, 1e6, false, 100, start_ns, receiver_random(r));
	r->loss_ns = start_ns + FIRST_REPORT_NS;
	return o->srtp ? srtp_session_send(o->srtp, r->ssrc, 0, why) : ERR_OK;
}

void receiver_release(struct receiver *r)
{
	for (unsigned i = 0; r->flows && i < r->n_places; i++)
		netflow_release(&r->flows[i]);
	varirate_release(&r->model);
	free(r->flows);
	free(r->index);
	free(r->candidates);
	free(r->candidate_ssrcs);
	free(r->rs_memory);
}

void receiver_say_rarely(struct receiver *r, int64_t now_ns, const char *thing, const char *text)
{
	if (r->said_ns && now_ns - r->said_ns < SAY_NS)
		return;
	r->said_ns = now_ns;
	tool_warn(r->tool, thing, "%s", text);
}

void receiver_datagram(struct receiver *r, unsigned port, bool is_rtcp, const struct dgram_addr *from, uint8_t *bytes, size_t n_bytes, int64_t arrival_ns)
{
	if (!receivernet_any(r->o.from, r->o.n_from, from)) {
		stats_add(&r->counts.strangers, 1);
		return;
	}
	is_rtcp = is_rtcp || rtcp_is_rtcp(bytes, n_bytes);
	if (r->o.srtp) {
		enum err e = is_rtcp ? srtp_session_unprotect_rtcp(r->o.srtp, bytes, &n_bytes) : srtp_session_unprotect(r->o.srtp, bytes, &n_bytes);
		if (e == ERR_PEER)
			receiver_say_rarely(r, arrival_ns, "srtp", "packets that are not of this key: another key, damage, or a stranger; dropped");
		if (e)
			return;
	}
	if (is_rtcp)
		receiverrtcp_take(r, port, from, bytes, n_bytes, arrival_ns);
	else
		receiverrtp_take(r, port, from, bytes, n_bytes, arrival_ns);
}

/* ---- what is due ---- */

static int64_t tick_pos(const struct netflow *f, int64_t tick, int64_t block_ns)
{
	return units_scale_down(tick * block_ns, f->format.clock_hz, UNITS_NS_PER_S);
}

static bool is_over(const struct receiver *r, const struct netflow *f, int64_t now_ns)
{
	if (netflow_is_gone(f, now_ns) || (!f->is_joint && f->counts.packets <= BRIEF_PACKETS && now_ns - f->last_ns > BRIEF_NS))
		return true;
	return f->ending && !f->jitter.n_held && (!r->o.flow.retime || !f->playing);
}

static enum err play_tick(struct receiver *r, int64_t tick_ns, bool out)
{
	enum err e;

	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		if (!f->used || f->joint)
			continue;
		int64_t pos = tick_pos(f, r->tick, r->o.flow.block_ns), end = tick_pos(f, r->tick + 1, r->o.flow.block_ns);
		int64_t most = PACKET_MAX_PAYLOAD_BYTES / f->frame_bytes;
		for (int64_t n, done = 0; pos + done < end; done += n) { /* a long block of many channels in several pieces */
			n = end - pos - done < most ? end - pos - done : most;
			n = n < NETFLOW_MAX_BLOCK_FRAMES ? n : NETFLOW_MAX_BLOCK_FRAMES;
			if ((e = netflowplay_block(f, tick_ns + units_to_ns(done, f->format.clock_hz, 1), pos + done, (uint32_t)n, out)))
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
		if (!r->o.flow.retime && out && !f->joint && (e = netflowpass_run(f, now_ns)))
			goto failed;
		if (out && is_over(r, f, now_ns)) {
			if ((e = netflow_end(f, PACKET_END_NORMAL)))
				goto failed;
			receiverflows_free(r, f, now_ns);
		}
	}
	receiverrtcp_report(r, now_ns);
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
		int64_t due = r->flows[i].used && !r->flows[i].joint ? netflowpass_due_ns(&r->flows[i]) : INT64_MAX;
		if (due < next)
			next = due;
	}
	return next;
}

void receiver_stop(struct receiver *r)
{
	for (unsigned i = 0; i < r->n_flows; i++)
		if (r->flows[i].used)
			netflowin_bye(&r->flows[i]);
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
	r->event = NULL; /* nobody leaves: we do */
	for (unsigned i = 0; i < r->n_flows; i++) {
		struct netflow *f = &r->flows[i];
		bool was_used = f->used;
		enum err e = was_used && !f->joint ? netflow_end(f, reason) : ERR_OK;
		if (e) {
			r->why = r->out->why;
			return e;
		}
		if (was_used)
			receiverflows_free(r, f, 0); /* their counts are part of the last word */
	}
	return ERR_OK;
}
