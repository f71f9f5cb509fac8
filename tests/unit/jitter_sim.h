/*
 * A sender, a network and a player in virtual time, for the tests of net/jitter and its table in the bench: seeded, so
 * that a run is the same everywhere; no clock, no file.
 *
 * The sender's clock is off by `ppm`.  Each packet is delayed by what the scenario says, independently, so that packets
 * overtake each other.  The player takes blocks by its own clock through a resampler that is only its arithmetic.
 */
#ifndef JITTER_SIM_H
#define JITTER_SIM_H

#include "net/jitter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIM_RATE 48000u
#define SIM_NS 1000000000.0
#define SIM_WARM_S 60.0 /* what is judged begins here */

struct sim_scenario {
	const char *name;
	uint32_t packet_frames, block_frames;
	double ppm, base_ms;
	double exp_ms;                          /* of every packet */
	double spike_probability, spike_ms;     /* on top */
	double loss;
	double stall_every_s, stall_ms;         /* nothing passes, then everything at once */
	double step_at_s, step_ms;              /* from then on every delay is so much more */
	double seconds;
};

struct sim_event {
	int64_t arrival_ns;
	int64_t n; /* of the packet */
};

struct sim_result {
	double depth_ms;                        /* mean of the set point */
	double played_ms;                       /* mean of what a packet really waits at the fastest */
	double late_pct, glitches_min, ppm_mean, ppm_rms, ppm_last;
	double ratio_rms_ppm;                   /* of the ratio against its mean */
	double recovered_s;                     /* after a step: from it to the last glitch, or to the depth being back */
	uint64_t played, missing, lost, received, glitches;
	uint64_t hash;                          /* of everything that was taken, in order */
	struct jitter_counts counts;
};

static inline uint64_t sim_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15u); /* splitmix64 */
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

static inline double sim_uniform(uint64_t *state)
{
	return ((double)(sim_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double sim_exp(uint64_t *state, double mean)
{
	return mean > 0 ? -mean * log(sim_uniform(state)) : 0;
}

/* The arrivals of one packet after the other, by the scenario. */
struct sim_network {
	const struct sim_scenario *s;
	uint64_t random;
	int64_t n;                              /* next packet */
	double stall_begin_s, stall_end_s;
	double packet_s;
};

static inline void sim_network_init(struct sim_network *w, const struct sim_scenario *s, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->s = s;
	w->random = seed;
	w->packet_s = s->packet_frames / (SIM_RATE * (1 + s->ppm * 1e-6));
	w->stall_begin_s = s->stall_every_s > 0 ? sim_exp(&w->random, s->stall_every_s) : 1e18;
	w->stall_end_s = w->stall_begin_s + s->stall_ms / 1e3;
}

/* Returns: false if the packet is lost.  The next one's number and arrival. */
static inline bool sim_network_next(struct sim_network *w, struct sim_event *e)
{
	const struct sim_scenario *s = w->s;
	double sent_s = (double)w->n * w->packet_s;
	double delay_s = (s->base_ms + sim_exp(&w->random, s->exp_ms)) / 1e3;

	if (s->spike_probability > 0 && sim_uniform(&w->random) < s->spike_probability)
		delay_s += sim_exp(&w->random, s->spike_ms) / 1e3;
	if (s->step_at_s > 0 && sent_s >= s->step_at_s)
		delay_s += s->step_ms / 1e3;
	double arrival_s = sent_s + delay_s;
	while (arrival_s > w->stall_end_s) {
		w->stall_begin_s = w->stall_end_s + sim_exp(&w->random, s->stall_every_s);
		w->stall_end_s = w->stall_begin_s + s->stall_ms / 1e3;
	}
	if (arrival_s > w->stall_begin_s)
		arrival_s = w->stall_end_s + sim_exp(&w->random, s->exp_ms) / 1e3;
	e->n = w->n++;
	e->arrival_ns = (int64_t)(arrival_s * SIM_NS);
	return !(s->loss > 0 && sim_uniform(&w->random) < s->loss);
}

/* In the order of arrival: a heap of what is under way. */
#define SIM_UNDER_WAY 4096
struct sim_queue {
	struct sim_event heap[SIM_UNDER_WAY];
	int n;
};

static inline bool sim_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->n < b->n;
}

static inline void sim_queue_put(struct sim_queue *q, struct sim_event e)
{
	int i = q->n++;

	if (q->n > SIM_UNDER_WAY)
		abort();
	for (; i && sim_before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = e;
}

static inline struct sim_event sim_queue_take(struct sim_queue *q)
{
	struct sim_event first = q->heap[0], e = q->heap[--q->n];
	int i = 0;

	for (;;) {
		int c = 2 * i + 1;
		if (c >= q->n)
			break;
		c += c + 1 < q->n && sim_before(&q->heap[c + 1], &q->heap[c]);
		if (!sim_before(&q->heap[c], &e))
			break;
		q->heap[i] = q->heap[c];
		i = c;
	}
	q->heap[i] = e;
	return first;
}

/* A generator that hands out arrivals in order. */
struct sim_source {
	struct sim_network network;
	struct sim_queue queue;
	int64_t sent_ns;                        /* everything sent before is in the queue */
	uint64_t lost;
};

static inline void sim_source_init(struct sim_source *g, const struct sim_scenario *s, uint64_t seed)
{
	g->queue.n = 0;
	g->lost = 0;
	sim_network_init(&g->network, s, seed);
}

static inline struct sim_event sim_source_next(struct sim_source *g)
{
	for (;;) {
		double sent_ns = (double)g->network.n * g->network.packet_s * SIM_NS;
		if (g->queue.n && (double)g->queue.heap[0].arrival_ns < sent_ns)
			return sim_queue_take(&g->queue);
		struct sim_event e;
		if (sim_network_next(&g->network, &e))
			sim_queue_put(&g->queue, e);
		else
			g->lost++;
	}
}

/* The player: what it took so far. */
struct sim_player {
	struct jitter *j;
	double phase;                           /* of the resampler: a part of a frame */
	uint32_t fifo;                          /* frames of a packet that are not played yet */
	int64_t end_pos;                        /* of what was taken */
	struct sim_result *r;
};

static inline void sim_mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * 0x100000001B3u;
	*hash ^= *hash >> 29;
}

/* One block at device time t. */
static inline void sim_play(struct sim_player *p, int64_t t_ns, uint32_t block_frames)
{
	jitter_played(p->j, t_ns, p->fifo + 1 - p->phase - 1);
	double ratio = jitter_ratio(p->j), want = p->phase + block_frames * ratio;
	uint32_t need = (uint32_t)want;

	p->phase = want - need;
	while (p->fifo < need) {
		struct jitter_part part;
		jitter_take(p->j, need - p->fifo, &part);
		sim_mix(&p->r->hash, (uint64_t)part.pos * 4 + part.what);
		if (part.what == JITTER_WAIT) {
			p->fifo = need;
			break;
		}
		if (part.what == JITTER_PACKET)
			p->r->played++;
		else if (part.what == JITTER_MISSING)
			p->r->missing += part.frames;
		p->fifo += part.frames;
	}
	p->fifo -= need;
}

/*
 * Run a scenario.  memory_of: jitter_bytes() for these options.  `glitches` 0 with latency_ms: fixed.
 * Everything is judged after SIM_WARM_S, or after half of a shorter run.
 */
static inline struct sim_result sim_run(const struct sim_scenario *s, double glitches, double latency_ms, uint64_t seed)
{
	static struct jitter j;
	static struct sim_source g;
	struct sim_result r = { 0 };
	struct jitter_options o = { .rate_hz = SIM_RATE, .block_frames = s->block_frames, .glitches = glitches > 0 ? glitches : 6,
		.latency_ns = (int64_t)(latency_ms * 1e6), .n_slots = 2048, .slot_bytes = 8 };
	void *memory = malloc(jitter_bytes(&o));
	struct err_why why;

	if (!memory || jitter_init(&j, &o, memory, &why))
		abort();
	sim_source_init(&g, s, seed);
	struct sim_player player = { .j = &j, .r = &r };
	struct sim_event e = sim_source_next(&g);
	double block_ns = s->block_frames * SIM_NS / SIM_RATE;
	double warm_s = s->seconds > 2 * SIM_WARM_S ? SIM_WARM_S : s->seconds / 2;
	uint64_t late0 = 0, glitches0 = 0, received0 = 0, n = 0;
	double sum_depth = 0, sum_ppm = 0, sum_ppm2 = 0, sum_u = 0, sum_u2 = 0;
	uint64_t step_glitches = 0;
	bool warm = false;

	for (uint64_t k = 0; (double)k * block_ns < s->seconds * SIM_NS; k++) {
		int64_t t_ns = (int64_t)((double)k * block_ns) + 5000000;
		double t_s = (double)t_ns / SIM_NS;
		for (; e.arrival_ns <= t_ns; e = sim_source_next(&g)) {
			struct jitter_packet p = { .pos = e.n * s->packet_frames, .dur_frames = s->packet_frames, .n_bytes = 8,
				.bytes = (const uint8_t *)&e.n, .arrival_ns = e.arrival_ns };
			enum jitter_put put = jitter_put(&j, &p);
			sim_mix(&r.hash, put);
		}
		sim_play(&player, t_ns, s->block_frames);
		if (!warm && t_s >= warm_s) {
			warm = true;
			late0 = j.counts.late;
			glitches0 = j.counts.glitches;
			received0 = j.counts.received;
		}
		if (warm) {
			double u = (jitter_ratio(&j) - 1) * 1e6, ppm = j.drift.u * 1e6;
			n++;
			sum_depth += jitter_depth_s(&j) * 1e3;
			sum_ppm += ppm;
			sum_ppm2 += (ppm - s->ppm) * (ppm - s->ppm);
			sum_u += u;
			sum_u2 += u * u;
		}
		if (s->step_at_s > 0) { /* recovered: the envelope is at the set point again, and 10 s without anything late */
			bool off = fabs(j.drift.envelope_frames - j.drift.set_frames) > 0.002 * SIM_RATE;
			bool late = j.counts.glitches != step_glitches && t_s - s->step_at_s < r.recovered_s + 10;
			if (t_s > s->step_at_s && (off || late))
				r.recovered_s = t_s - s->step_at_s;
			step_glitches = j.counts.glitches;
		}
	}
	double minutes = (s->seconds - warm_s) / 60;
	r.counts = j.counts;
	r.received = j.counts.received - received0;
	r.glitches = j.counts.glitches - glitches0;
	r.lost = g.lost;
	r.depth_ms = sum_depth / (double)n;
	r.late_pct = 100.0 * (double)(j.counts.late - late0) / (double)r.received;
	r.glitches_min = (double)r.glitches / minutes;
	r.ppm_mean = sum_ppm / (double)n;
	r.ppm_rms = sqrt(sum_ppm2 / (double)n);
	r.ppm_last = drift_ppm(&j.drift);
	double mean_u = sum_u / (double)n;
	r.ratio_rms_ppm = sqrt(fmax(0, sum_u2 / (double)n - mean_u * mean_u));
	free(memory);
	return r;
}

/*
 * What one who knew all arrivals in advance would choose: the least fixed depth, in ms against the fastest packet, with
 * which not more than `glitches` a minute are late; the player's block is in it.
 */
static inline int sim_compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static inline double sim_oracle_ms(const struct sim_scenario *s, double glitches, uint64_t seed)
{
	static struct sim_source g;
	double *excess, *sorted, fastest = 1e18, warm_s = s->seconds > 2 * SIM_WARM_S ? SIM_WARM_S : s->seconds / 2;
	size_t n = 0, room = (size_t)(s->seconds / (s->packet_frames / (double)SIM_RATE) * 1.01) + 16;

	excess = malloc(2 * room * sizeof(*excess));
	if (!excess)
		abort();
	sorted = excess + room;
	sim_source_init(&g, s, seed);
	double *arrival_s = sorted; /* first used for this */
	for (;;) {
		struct sim_event e = sim_source_next(&g);
		double t = (double)e.arrival_ns / SIM_NS, delay = t - (double)e.n * g.network.packet_s;
		if (t > s->seconds || n == room)
			break;
		fastest = fmin(fastest, delay);
		if (t < warm_s)
			continue;
		arrival_s[n] = t;
		excess[n++] = delay;
	}
	/* halve the depth's interval until the glitches fit, grouped as the buffer groups them */
	double low = 0, high = 0.5, allowed = glitches * (s->seconds - warm_s) / 60;
	for (int i = 0; i < 40; i++) {
		double depth = (low + high) / 2, last = -1;
		uint64_t found = 0;
		for (size_t k = 0; k < n; k++)
			if (excess[k] - fastest > depth) {
				found += last < 0 || arrival_s[k] - last > 0.1;
				last = arrival_s[k];
			}
		if ((double)found > allowed)
			low = depth;
		else
			high = depth;
	}
	free(excess);
	return high * 1e3 + s->block_frames * 1e3 / SIM_RATE;
}

/* The scenarios of the table, with what was found when the buffer was designed. */
struct sim_row {
	struct sim_scenario s;
	double glitches;
	const char *paper_depth_ms, *paper_late_pct, *paper_glitches, *paper_ppm, *paper_rms;
};

#define SIM_LAN .base_ms = 1, .exp_ms = 0.1, .block_frames = 64, .seconds = 300
#define SIM_DSL .packet_frames = 120, .base_ms = 15, .exp_ms = 0.8, .spike_probability = 0.02, .spike_ms = 6, .loss = 0.005, .block_frames = 64, .ppm = 50, .seconds = 600
#define SIM_WAN .packet_frames = 240, .base_ms = 40, .exp_ms = 2, .spike_probability = 0.01, .spike_ms = 10, .block_frames = 64, .ppm = -50, .seconds = 600
#define SIM_WIFI .packet_frames = 120, .base_ms = 2, .exp_ms = 0.3, .stall_every_s = 3, .stall_ms = 25, .block_frames = 64, .ppm = 80, .seconds = 600

static const struct sim_row sim_rows[] = {
	{ { "LAN, 2.5 ms packets", SIM_LAN, .packet_frames = 120, .ppm = 80 }, 6, "2.8", "0", "0", "+80.0", "0.4" },
	{ { "LAN, 64-frame packets", SIM_LAN, .packet_frames = 64, .ppm = -200 }, 6, "2.8", "0", "0", "-200.0", "0.2" },
	{ { "DSL, spikes, 0.5 % loss", SIM_DSL }, 30, "19.3", "0.10", "23.6", "+50.0", "4" },
	{ { "DSL, spikes, 0.5 % loss", SIM_DSL }, 6, "30.4", "0.015", "3.7", "+50.0", "4" },
	{ { "DSL, spikes, 0.5 % loss", SIM_DSL }, 1.2, "42.9", "0.004", "1.1", "+50.0", "4" },
	{ { "WAN, spikes, 5 ms packets", SIM_WAN }, 30, "16.5", "0.17", "20", "-50.1", "16" },
	{ { "WAN, spikes, 5 ms packets", SIM_WAN }, 6, "30.5", "0.03", "3.4", "-50.1", "16" },
	{ { "WAN, spikes, 5 ms packets", SIM_WAN }, 1.2, "48.1", "0.008", "0.9", "-50.1", "16" },
	{ { "Wi-Fi, stalls of 25 ms", SIM_WIFI }, 30, "5.7", "0.70", "20.9", "+80.0", "3" },
	{ { "Wi-Fi, stalls of 25 ms", SIM_WIFI }, 6, "31.8", "0.035", "4.1", "+80.0", "3" },
	{ { "Wi-Fi, stalls of 25 ms", SIM_WIFI }, 1.2, "37.5", "0.006", "0.7", "+80.0", "3" },
	{ { "20 ms packets, exp 3 ms", .packet_frames = 960, .base_ms = 20, .exp_ms = 3, .block_frames = 64, .ppm = 80, .seconds = 600 }, 6, "20.8", "0.07", "2.2", "+79.5", "30" },
	{ { "route change +8 ms at 150 s", SIM_LAN, .packet_frames = 120, .step_at_s = 150, .step_ms = 8, .ppm = 80 }, 6, "6.2", "<=0.2", "<=0.5", "16 s", "-" },
	{ { "route change -8 ms at 150 s", .base_ms = 12, .exp_ms = 0.1, .block_frames = 64, .seconds = 300, .packet_frames = 120, .step_at_s = 150, .step_ms = -8, .ppm = 80 }, 6, "6.2", "<=0.2", "<=0.5", "16 s", "-" },
};

#endif
