#include "leg/receivercount.h"

#include "base/units.h"
#include "leg/receiver.h"

#include <math.h>

void receivercount_add(struct receivercount *sums, const struct netflow *f)
{
	sums->received += f->counts.packets;
	sums->lost += netflow_lost(f);
	sums->recovered += f->counts.recovered;
	sums->concealed_frames += f->counts.concealed_frames;
	sums->skipped_frames += f->jitter.counts.skipped_frames;
	sums->late_packets += f->jitter.counts.late;
	sums->reordered += f->jitter.counts.reordered;
	sums->duplicate += f->jitter.counts.duplicate;
	sums->refused += f->counts.refused + f->jitter.counts.full + f->jitter.counts.stray;
	sums->unsent_frames += f->counts.unsent_frames;
	sums->lost_frames += f->counts.lost_frames;
	sums->gaps += f->counts.gaps;
	sums->dropped_frames += f->counts.dropped_frames;
	sums->frames_out += f->counts.frames_out;
}

static void show_sums(struct receiver *r, const struct receivercount *sums, struct stats *s)
{
	struct receiver_counts *c = &r->counts;

	stats_set(&c->received, sums->received);
	stats_set(&c->lost, sums->lost);
	stats_set(&c->recovered, sums->recovered);
	stats_set(&c->concealed_frames, sums->concealed_frames);
	stats_set(&c->skipped_frames, sums->skipped_frames);
	stats_set(&c->late_packets, sums->late_packets);
	stats_set(&c->reordered, sums->reordered);
	stats_set(&c->duplicate, sums->duplicate);
	stats_set(&c->refused, sums->refused);
	stats_set(&c->unsent_frames, sums->unsent_frames);
	stats_set(&s->lost_frames, sums->lost_frames);
	stats_set(&s->gaps, sums->gaps);
	stats_set(&s->dropped_frames, sums->dropped_frames + sums->skipped_frames);
	stats_set(&s->frames_out, sums->frames_out);
}

/* What is not summed up: the worst of the flows that are there. */
static void show_worst(struct receiver *r, struct stats *s)
{
	double jitter_us = 0, depth_us = 0, most_ppm = 0;
	int64_t trip_ns = 0, way_ns = 0;
	uint64_t n_senders = 0;

	for (unsigned i = 0; i < r->n_flows; i++) {
		const struct netflow *f = &r->flows[i];
		if (!f->used)
			continue;
		double ppm = drift_ppm(&f->jitter.drift);
		n_senders += !f->is_joint;
		jitter_us = fmax(jitter_us, f->reception.jitter * 1e6 / f->format.clock_hz);
		depth_us = fmax(depth_us, netflow_depth_s(f) * 1e6);
		trip_ns = f->round_trip_ns > trip_ns ? f->round_trip_ns : trip_ns;
		way_ns = f->one_way_ns > way_ns ? f->one_way_ns : way_ns;
		most_ppm = fabs(ppm) > fabs(most_ppm) ? ppm : most_ppm;
	}
	stats_set(&r->counts.senders, n_senders);
	stats_set(&r->counts.jitter_us, (uint64_t)jitter_us);
	stats_set(&r->counts.depth_us, (uint64_t)depth_us);
	stats_drift(s, (int64_t)(most_ppm * 1000));
	if (n_senders) { /* what they were stays when all have gone */
		stats_set(&r->counts.round_trip_us, (uint64_t)trip_ns / 1000);
		stats_set(&r->counts.one_way_us, (uint64_t)way_ns / 1000);
	}
}

void receivercount_show(struct receiver *r, struct stats *s)
{
	struct receivercount sums = r->ended;

	for (unsigned i = 0; i < r->n_flows; i++)
		if (r->flows[i].used)
			receivercount_add(&sums, &r->flows[i]);
	show_sums(r, &sums, s);
	show_worst(r, s);
	if (r->o.srtp) {
		stats_set(&r->counts.forged, r->o.srtp->counts.n_forged);
		stats_set(&r->counts.replayed, r->o.srtp->counts.n_replayed);
	}
	stats_set(&s->packets_out, r->out->n_packets);
}
