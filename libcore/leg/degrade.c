#include "leg/degrade.h"

#include "base/role.h"
#include "net/transit.h"
#include "leg/tracefile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL_PACKETS 256u
#define OVERHEAD_BYTES 40u /* RTP, UDP and IPv4 around a payload */
#define SLOT_BYTES ((PACKET_MAX_HUNITS * PACKET_UNIT_BYTES) + PACKET_MAX_PAYLOAD_BYTES)

/* A track whose packets are sent over the network. */
struct degrade_lane {
	uint16_t id;
	bool is_audio;
	uint32_t rate_num, rate_den;
	struct impairment network;
	uint64_t n_late;
	int64_t now_ns;           /* when the last packet set out */
	/* a hole that may grow */
	bool has_hole;
	int64_t hole_pos, hole_end, hole_utc_ns;
	uint32_t hole_packets;
	/* raw: what is on its way, times without the constant delay */
	struct transit transit;
};

/* Packets on their way, header and payload as they stand in a stream: of all tracks together. */
struct degrade_pool {
	uint8_t *bytes;
	struct packet packets[POOL_PACKETS];
	uint32_t spare[POOL_PACKETS], n_spare;
	uint32_t written[POOL_PACKETS], n_written; /* queued in the writer, which lets go of them with its flush */
};

/* ---- life ---- */

static enum err pool_new(struct degrade *d, struct err_why *why)
{
	struct degrade_pool *pool = calloc(1, sizeof(*pool));

	d->pool = pool;
	if (pool)
		pool->bytes = aligned_alloc(PACKET_UNIT_BYTES, (size_t)POOL_PACKETS * SLOT_BYTES);
	if (!pool || !pool->bytes)
		return err_say(why, ERR_NOMEM, "packets on their way", "%s", err_text(ERR_NOMEM));
	for (uint32_t i = 0; i < POOL_PACKETS; i++)
		pool->spare[pool->n_spare++] = POOL_PACKETS - 1 - i;
	return ERR_OK;
}

enum err degrade_init(struct degrade *d, struct pump *pump, const struct degrade_options *o, struct err_why *why)
{
	struct stats *s = &pump->stats;
	struct impairment probe;
	enum err e;

	memset(d, 0, sizeof(*d));
	d->pump = pump;
	d->o = *o;
	d->o.network.is_virtual = true;
	d->o.network.overhead_bytes = OVERHEAD_BYTES;
	if ((e = impairment_init(&probe, &d->o.network, why)))
		return e;
	stats_key(s, "lost_packets", &d->lost_packets);
	stats_key(s, "queue_lost_packets", &d->queue_lost_packets);
	stats_key(s, "late_packets", &d->late_packets);
	stats_key(s, "delayed_packets", &d->delayed_packets);
	stats_key(s, "reordered_packets", &d->reordered_packets);
	stats_key(s, "duplicated_packets", &d->duplicated_packets);
	stats_key(s, "loss_bursts", &d->loss_bursts);
	stats_key(s, "max_delay_us", &d->max_delay_us);
	return d->o.raw ? pool_new(d, why) : ERR_OK;
}

void degrade_release(struct degrade *d)
{
	for (unsigned i = 0; i < d->n_lanes; i++) {
		transit_release(&d->lanes[i]->transit);
		free(d->lanes[i]);
	}
	free(d->lanes);
	if (d->pool)
		free(d->pool->bytes);
	free(d->pool);
	memset(d, 0, sizeof(*d));
}

void degrade_seed(struct degrade *d)
{
	const struct impairment_config *c = &d->o.network;
	struct writer *w = &d->pump->out;
	const double shares[] = { c->loss, c->burst_packets, c->spikes, c->reorder, c->duplicate };
	const int64_t times[] = { c->burst_ns, c->delay_ns, c->jitter_ns, c->spike_ns, c->stall_ns, c->stall_every_ns, d->o.deadline_ns };
	const uint64_t numbers[] = {
		c->seed, c->lose_every, (uint64_t)c->shape, c->reorder_by, c->rate_bps, c->queue_bytes, (uint64_t)(int64_t)c->drift_ppb, c->may_overtake, d->o.raw,
	};

	writer_seed(w, shares, sizeof(shares));
	writer_seed(w, times, sizeof(times));
	writer_seed(w, numbers, sizeof(numbers));
	writer_seed(w, c->trace, c->n_trace * sizeof(*c->trace));
	for (unsigned i = 0; i < d->o.wanted->n; i++)
		writer_seed(w, d->o.wanted->value[i], strlen(d->o.wanted->value[i]) + 1);
}

/* ---- counting ---- */

static void count(struct degrade *d)
{
	struct impairment_counts sum = { 0 };
	uint64_t n_late = 0;

	for (unsigned i = 0; i < d->n_lanes; i++) {
		const struct impairment_counts *n = &d->lanes[i]->network.counts;
		sum.lost += n->lost;
		sum.queue_lost += n->queue_lost;
		sum.delayed += n->delayed;
		sum.reordered += n->reordered;
		sum.duplicated += n->duplicated;
		sum.bursts += n->bursts;
		n_late += d->lanes[i]->n_late;
		if (n->max_delay_ns > sum.max_delay_ns)
			sum.max_delay_ns = n->max_delay_ns;
	}
	stats_set(&d->lost_packets, sum.lost);
	stats_set(&d->queue_lost_packets, sum.queue_lost);
	stats_set(&d->late_packets, n_late);
	stats_set(&d->delayed_packets, sum.delayed);
	stats_set(&d->reordered_packets, sum.reordered);
	stats_set(&d->duplicated_packets, sum.duplicated);
	stats_set(&d->loss_bursts, sum.bursts);
	stats_set(&d->max_delay_us, (uint64_t)sum.max_delay_ns / 1000);
}

const char *degrade_describe(const struct degrade *d, unsigned i, char out[static 320], uint16_t *track)
{
	if (i >= d->n_lanes)
		return NULL;
	const struct degrade_lane *lane = d->lanes[i];
	const struct impairment_counts *n = &lane->network.counts;
	uint64_t arrived = n->packets - n->lost;

	*track = lane->id;
	snprintf(out, 320, "%" PRIu64 " of %" PRIu64 " packets lost (%.2f %%) in %" PRIu64 " bursts, %" PRIu64 " of them by the queue; %" PRIu64
		" late, %" PRIu64 " reordered, %" PRIu64 " duplicated; delay %.3f ms in the mean, %.3f ms at most", n->lost, n->packets,
		n->packets ? 100.0 * (double)n->lost / (double)n->packets : 0, n->bursts, n->queue_lost, lane->n_late, n->reordered, n->duplicated,
		arrived ? (double)n->sum_delay_us / (double)arrived / 1e3 : 0, (double)n->max_delay_ns / 1e6);
	return out;
}

/* ---- holes ---- */

/* The hole that may have grown is as long as it will be. */
static enum err settle(struct degrade *d, struct degrade_lane *lane)
{
	const struct packet_gap gap = { .reason = PACKET_GAP_NETWORK, .n_objects = lane->hole_packets, .utc_ns = lane->hole_utc_ns };

	if (!lane->has_hole)
		return ERR_OK;
	lane->has_hole = false;
	return writer_gap(&d->pump->out, lane->id, lane->hole_pos, (uint32_t)(lane->hole_end - lane->hole_pos), &gap);
}

static enum err lose(struct degrade *d, struct degrade_lane *lane, const struct packet *p)
{
	int64_t end = p->pos + p->dur;
	enum err e;

	if (!lane->is_audio || d->o.raw)
		return ERR_OK; /* of messages and pictures the sequence numbers tell */
	if (lane->has_hole && p->pos == lane->hole_end && end - lane->hole_pos <= UINT32_MAX) {
		lane->hole_end = end;
		lane->hole_packets++;
		return ERR_OK;
	}
	if ((e = settle(d, lane)))
		return e;
	lane->has_hole = true;
	lane->hole_pos = p->pos;
	lane->hole_end = end;
	lane->hole_utc_ns = p->utc_ns;
	lane->hole_packets = 1;
	return ERR_OK;
}

/* ---- raw: packets on their way ---- */

/* The writer has let go of what it had queued. */
static void reclaim(struct degrade *d)
{
	struct degrade_pool *pool = d->pool;

	if (d->pump->out.n_iov)
		return;
	while (pool->n_written)
		pool->spare[pool->n_spare++] = pool->written[--pool->n_written];
}

/* Whatever has arrived by then goes out. */
static enum err deliver(struct degrade *d, struct degrade_lane *lane, int64_t now_ns)
{
	uint32_t slot;
	enum err e;

	while (transit_take(&lane->transit, now_ns, &slot, NULL)) {
		if ((e = writer_forward(&d->pump->out, &d->pool->packets[slot])))
			return e;
		d->pool->written[d->pool->n_written++] = slot;
	}
	return ERR_OK;
}

/* A free place: after a flush if need be, and then at the cost of what is due next, of this track or another. */
static enum err make_place(struct degrade *d, struct degrade_lane *lane, uint32_t *slot)
{
	struct degrade_pool *pool = d->pool;
	enum err e;

	reclaim(d);
	if (!pool->n_spare && !pool->n_written) {
		struct degrade_lane *fullest = lane;
		for (unsigned i = 0; i < d->n_lanes; i++)
			if (transit_count(&d->lanes[i]->transit) > transit_count(&fullest->transit))
				fullest = d->lanes[i];
		if ((e = deliver(d, fullest, transit_next_ns(&fullest->transit))))
			return e;
	}
	if (!pool->n_spare) {
		if ((e = writer_flush(&d->pump->out)))
			return e;
		reclaim(d);
	}
	*slot = pool->spare[--pool->n_spare];
	return ERR_OK;
}

static enum err send_raw(struct degrade *d, struct degrade_lane *lane, const struct packet *p, int64_t out_ns, unsigned behind)
{
	size_t head_bytes = p->hunits * (size_t)PACKET_UNIT_BYTES;
	uint32_t slot;
	enum err e;

	if ((e = make_place(d, lane, &slot)))
		return e;
	uint8_t *at = d->pool->bytes + (size_t)slot * SLOT_BYTES;
	struct packet *copy = &d->pool->packets[slot];
	*copy = *p;
	if (p->head && p->payload == p->head + head_bytes) {
		memcpy(at, p->head, head_bytes);
	} else {
		/* It was put together here, and has no header to keep extensions of. */
		copy->hunits = 1;
		head_bytes = PACKET_HEADER_BYTES;
	}
	memcpy(at + head_bytes, p->payload, p->payload_bytes);
	copy->head = at;
	copy->payload = at + head_bytes;
	/* Alone at the end, it goes at once when everything does. */
	if (!transit_put(&lane->transit, out_ns, slot, behind, INT64_MAX - 1))
		return ERR_LIMIT;
	return ERR_OK;
}

/* ---- packets ---- */

static enum err forward(struct degrade *d, struct degrade_lane *lane, struct packet *p)
{
	enum err e = settle(d, lane);

	return e ? e : writer_forward(&d->pump->out, p);
}

/* A clock that drifts stamps its packets by what it takes for a second. */
static void drift(const struct degrade_lane *lane, struct packet *p, int64_t now_ns)
{
	if (p->utc_ns != UNITS_UNKNOWN_NS)
		p->utc_ns += impairment_drift_ns(&lane->network, now_ns);
}

static void record(struct degrade *d, const struct degrade_lane *lane, const struct impairment_fate *f, int64_t held_ns)
{
	if (d->o.record && lane == d->lanes[0])
		tracefile_write(d->o.record, f->cause == IMPAIRMENT_ARRIVES ? f->out_ns - lane->now_ns + held_ns : IMPAIRMENT_LOST);
}

static enum err take_data(struct degrade *d, struct degrade_lane *lane, struct packet *p)
{
	int64_t now_ns = units_to_ns(p->pos + p->dur, lane->rate_num, lane->rate_den);
	int64_t held_ns, late_ns;
	struct impairment_fate f;
	enum err e;

	if (now_ns > lane->now_ns)
		lane->now_ns = now_ns;
	impairment_send(&lane->network, lane->now_ns, p->payload_bytes, &f);
	/* Those that overtake it are as long as it is, so far as anybody can tell. */
	held_ns = f.behind ? units_to_ns((int64_t)f.behind * p->dur, lane->rate_num, lane->rate_den) : 0;
	record(d, lane, &f, held_ns);
	drift(lane, p, lane->now_ns);
	if (f.cause != IMPAIRMENT_ARRIVES)
		return lose(d, lane, p);
	late_ns = f.late_ns + held_ns;
	if (d->o.deadline_ns >= 0 && late_ns > d->o.deadline_ns) {
		lane->n_late++;
		return lose(d, lane, p);
	}
	if (!d->o.raw)
		return forward(d, lane, p);
	/* Arrivals so far apart as the constant delay is long change nothing about their order. */
	int64_t out_ns = lane->now_ns + f.late_ns;
	if ((e = send_raw(d, lane, p, out_ns, f.behind)))
		return e;
	if (f.is_doubled && (e = send_raw(d, lane, p, out_ns, 0)))
		return e;
	return deliver(d, lane, lane->now_ns);
}

/* ---- tracks ---- */

static struct degrade_lane *add_lane(struct degrade *d, const struct track *t)
{
	struct degrade_lane **more = realloc(d->lanes, (d->n_lanes + 1) * sizeof(struct degrade_lane *));
	struct degrade_lane *lane = more ? calloc(1, sizeof(*lane)) : NULL;
	struct impairment_config c = d->o.network;

	if (more)
		d->lanes = more;
	if (!lane)
		return NULL;
	lane->id = t->id;
	lane->now_ns = INT64_MIN;
	c.seed += t->id * 0x9e3779b97f4a7c15u;
	if (impairment_init(&lane->network, &c, NULL) || (d->o.raw && transit_init(&lane->transit, POOL_PACKETS))) {
		free(lane);
		return NULL;
	}
	d->lanes[d->n_lanes++] = lane;
	return lane;
}

/* All that is on its way or may grow goes out: what comes next is no packet of the network. */
static enum err drain(struct degrade *d, struct degrade_lane *lane)
{
	enum err e = settle(d, lane);

	return e || !d->o.raw ? e : deliver(d, lane, INT64_MAX);
}

static enum err take_track(struct degrade *d, struct packet *p)
{
	const struct track *t = input_track(&d->pump->in, p->track);
	void **user = input_user(&d->pump->in, p->track);
	bool is_ours;
	enum err e;

	if (!t || !user)
		return ERR_OK;
	select_note(&d->hits, d->o.wanted, t);
	is_ours = d->o.wanted->n ? select_match(d->o.wanted, t) : t->policy != TRACK_RELIABLE;
	struct degrade_lane *lane = *user;
	if (lane && (e = drain(d, lane)))
		return e;
	if (is_ours && !lane && !(lane = *user = add_lane(d, t)))
		return ERR_NOMEM;
	if (!is_ours)
		*user = NULL;
	if (is_ours) {
		lane->is_audio = t->kind == TRACK_AUDIO;
		lane->rate_num = t->rate_num;
		lane->rate_den = t->rate_den;
	}
	return pump_pass(d->pump, p);
}

/* The end is where it was: a hole at the end of what is raw is told by that alone. */
static enum err take_end(struct degrade *d, struct degrade_lane *lane, struct packet *p)
{
	struct writer_track *wt = writer_track(&d->pump->out, lane->id);
	struct packet_end end;
	enum err e = drain(d, lane);

	if (!e && wt && !packet_end_unpack(&end, p->payload, p->payload_bytes) && end.end_pos > wt->end_pos && lane->is_audio)
		wt->end_pos = end.end_pos;
	return e ? e : pump_pass(d->pump, p);
}

/* The clock's own packets are stamped by the clock that drifts, too. */
static void take_clock(struct degrade *d, struct packet *p)
{
	struct packet_clock clock;
	uint8_t *payload = p->head ? p->head + p->hunits * (size_t)PACKET_UNIT_BYTES : NULL;

	if (!d->n_lanes || !d->o.network.drift_ppb || payload != p->payload || packet_clock_unpack(&clock, p->payload, p->payload_bytes))
		return;
	int64_t ns = impairment_drift_ns(&d->lanes[0]->network, clock.media_ns);
	clock.realtime_ns += ns;
	clock.monotonic_ns += ns;
	packet_clock_pack(&clock, payload);
	p->flags &= (uint16_t)~PACKET_PCRC;
}

enum err degrade_packet(void *stage, struct packet *p)
{
	struct degrade *d = stage;
	void **user = p->track && p->type != PACKET_TRACK ? input_user(&d->pump->in, p->track) : NULL;
	struct degrade_lane *lane = user ? *user : NULL;
	enum err e;

	if (p->type == PACKET_TRACK)
		return take_track(d, p);
	if (p->type == PACKET_CLOCK)
		take_clock(d, p);
	if (lane && p->type == PACKET_DATA) {
		e = take_data(d, lane, p);
		if (stats_on(&d->pump->stats))
			count(d);
		return e;
	}
	if (lane && p->type == PACKET_END)
		return take_end(d, lane, p);
	if (lane && (e = drain(d, lane)))
		return e;
	return pump_pass(d->pump, p);
}

enum err degrade_finish(void *stage)
{
	struct degrade *d = stage;
	enum err e = ERR_OK;

	for (unsigned i = 0; i < d->n_lanes && !e; i++)
		e = drain(d, d->lanes[i]);
	count(d);
	return e;
}
