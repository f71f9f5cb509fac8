/*
 * What net/jitter promises, in virtual time: each proof prints its figure.  The scenarios are in jitter_sim.h.
 */
#include "check.h"
#include "jitter_sim.h"

#include <stdio.h>

/* (a) No loss, no drift, latency fixed: everything is played once, in order, nothing before or between; the ratio is exactly 1. */
static void test_a_gapless(void)
{
	static const struct sim_scenario s = { .packet_frames = 120, .block_frames = 64, .base_ms = 5, .exp_ms = 0.5, .seconds = 120 };
	static struct jitter j;
	static struct sim_source g;
	struct jitter_options o = { .rate_hz = SIM_RATE, .block_frames = 64, .glitches = 6, .latency_ns = 20000000, .n_slots = 64, .slot_bytes = 240 };
	void *memory = malloc(jitter_bytes(&o));
	struct err_why why;
	uint64_t next = 0, wrong = 0, packets = 0;
	bool exact = true;

	CHECK_EQ(jitter_init(&j, &o, memory, &why), ERR_OK);
	sim_source_init(&g, &s, 3);
	struct sim_event e = sim_source_next(&g);
	uint32_t fifo = 0;
	for (uint64_t k = 0; k * 64 < s.seconds * SIM_RATE; k++) {
		int64_t t_ns = (int64_t)((double)k * 64 * SIM_NS / SIM_RATE);
		for (; e.arrival_ns <= t_ns; e = sim_source_next(&g)) {
			uint16_t frames[120];
			for (unsigned i = 0; i < 120; i++)
				frames[i] = (uint16_t)(e.n * 120 + i);
			struct jitter_packet p = { .pos = e.n * 120, .dur_frames = 120, .n_bytes = 240, .bytes = (uint8_t *)frames, .arrival_ns = e.arrival_ns };
			jitter_put(&j, &p);
		}
		jitter_played(&j, t_ns, fifo);
		exact = exact && jitter_ratio(&j) == 1;
		while (fifo < 64) {
			struct jitter_part part;
			jitter_take(&j, 64 - fifo, &part);
			if (part.what == JITTER_WAIT)
				break;
			if (part.what == JITTER_PACKET) {
				packets++;
				for (unsigned i = part.skip_frames; i < 120; i++)
					wrong += ((const uint16_t *)part.bytes)[i] != (uint16_t)next++;
			} else if (part.what == JITTER_MISSING || next) {
				wrong++;
			}
			fifo += part.frames;
		}
		fifo = fifo < 64 ? 0 : fifo - 64;
	}
	printf("# (a) %llu packets, %llu frames, %llu not as sent or out of place; ratio exactly 1: %s\n", (unsigned long long)packets,
		(unsigned long long)next, (unsigned long long)wrong, exact ? "always" : "no");
	CHECK(packets > 47000);
	CHECK_EQ(wrong, 0);
	CHECK(exact);
	free(memory);
}

/* (b) and (d), and the table: the budget is kept within a factor of two; the depth is what it must be. */
static void test_bd_budget_and_depth(void)
{
	enum { N_SEEDS = 4 };

	for (unsigned i = 0; i < sizeof(sim_rows) / sizeof(*sim_rows); i++) {
		const struct sim_row *w = &sim_rows[i];
		double depth = 0, oracle = 0, glitches = 0;
		for (int seed = 1; seed <= N_SEEDS; seed++) {
			struct sim_result r = sim_run(&w->s, w->glitches, 0, seed);
			CHECK(r.glitches_min <= 2 * w->glitches);
			glitches += r.glitches_min / N_SEEDS;
			depth += r.depth_ms / N_SEEDS;
			oracle += sim_oracle_ms(&w->s, w->glitches, seed) / N_SEEDS;
		}
		printf("# (b)(d) %-28s budget %4g: %4.1f glitches a minute; depth %5.2f ms, the least possible %5.2f, %+.0f %%\n", w->s.name, w->glitches,
			glitches, depth, oracle, 100 * (depth / oracle - 1));
		/* Stalls in a sixth of all half seconds, of which a quarter may glitch: which side of it is chance for half a minute. */
		bool on_the_edge = w->s.stall_ms > 0 && w->glitches == 30;
		if (w->s.step_at_s == 0)
			CHECK(depth <= oracle * (on_the_edge ? 2.0 : 1.25));
	}
}

/* (c) The drift is found: within 5 ppm after a minute, and the ratio does not wobble. */
static void test_c_drift(void)
{
	for (int ppm = -200; ppm <= 200; ppm += 50) {
		struct sim_scenario s = { .packet_frames = ppm % 100 ? 120 : 240, .block_frames = 64, .base_ms = 15, .exp_ms = 0.8, .spike_probability = 0.02,
			.spike_ms = 6, .loss = 0.005, .ppm = ppm, .seconds = 300 };
		struct sim_result r = sim_run(&s, 6, 0, (uint64_t)(ppm + 1000));
		printf("# (c) %+4d ppm, %g ms packets: found %+.2f at the end, rms error of the loop %.2f ppm\n", ppm, s.packet_frames / 48.0, r.ppm_last, r.ppm_rms);
		CHECK(fabs(r.ppm_last - ppm) < 5);
		CHECK(fabs(r.ppm_mean - ppm) < 5);
		CHECK(r.ppm_rms < 20);
	}
}

/* (e) After a step of the path the playing is right again within 20 s. */
static void test_e_step(void)
{
	for (unsigned i = 0; i < sizeof(sim_rows) / sizeof(*sim_rows); i++) {
		if (sim_rows[i].s.step_at_s == 0)
			continue;
		for (uint64_t seed = 1; seed <= 5; seed++) {
			struct sim_result r = sim_run(&sim_rows[i].s, 6, 0, seed);
			printf("# (e) %+g ms: recovered after %.1f s, %.3f %% late in all\n", sim_rows[i].s.step_ms, r.recovered_s, r.late_pct);
			CHECK(r.recovered_s > 0 && r.recovered_s < 20);
			CHECK(r.late_pct < 0.2);
		}
	}
}

/* (f) The same arrivals give the same playing, bit for bit. */
static void test_f_replay(void)
{
	const struct sim_scenario *s = &sim_rows[3].s;
	struct sim_result a = sim_run(s, 6, 0, 5), b = sim_run(s, 6, 0, 5), c = sim_run(s, 6, 0, 6);

	printf("# (f) two runs: %016llx %016llx; another seed: %016llx\n", (unsigned long long)a.hash, (unsigned long long)b.hash, (unsigned long long)c.hash);
	CHECK(a.hash == b.hash);
	CHECK(a.hash != c.hash);
	CHECK_EQ(a.played, b.played);
}

/* (h) A day with 200 ppm either way, and the hour that counts every glitch. */
static void test_h_day(void)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		struct sim_scenario day = { .packet_frames = 480, .block_frames = 480, .base_ms = 5, .exp_ms = 0.1, .ppm = 200 * sign, .seconds = 86400 };
		struct sim_result r = sim_run(&day, 6, 0, 7);
		printf("# (h) 24 h at %+d ppm: depth %.2f ms, %llu glitches, found %+.2f ppm, ratio rms %.2f ppm, %llu restarts\n", 200 * sign, r.depth_ms,
			(unsigned long long)r.glitches, r.ppm_last, r.ppm_rms, (unsigned long long)r.counts.restarts);
		CHECK(fabs(r.ppm_last - 200 * sign) < 1);
		CHECK(r.depth_ms < 13 && r.depth_ms > 10);
		CHECK_EQ(r.counts.restarts, 0);
		CHECK(r.ppm_rms < 20);
	}
	for (int sign = -1; sign <= 1; sign += 2) {
		struct sim_scenario hour = { .packet_frames = 120, .block_frames = 64, .base_ms = 1, .exp_ms = 0.1, .ppm = 200 * sign, .seconds = 3600 };
		struct sim_result r = sim_run(&hour, 1.2, 0, 7), fixed = sim_run(&hour, 6, 5, 7);
		printf("# (h) an hour at %+d ppm: depth %.2f ms, %llu glitches, ratio rms %.2f ppm; with 5 ms fixed: %llu glitches, ratio rms %.2f ppm\n", 200 * sign,
			r.depth_ms, (unsigned long long)r.glitches, r.ratio_rms_ppm, (unsigned long long)fixed.glitches, fixed.ratio_rms_ppm);
		CHECK(r.glitches <= 2);
		CHECK_EQ(fixed.glitches, 0);
		CHECK_NEAR(fixed.depth_ms, 5, 0.5); /* what the first packet was slower than the fastest is in it */
		CHECK(r.ratio_rms_ppm < 20 && fixed.ratio_rms_ppm < 20);
		CHECK(r.depth_ms < 4);
	}
}

int main(void)
{
	CHECK_RUN(test_a_gapless);
	CHECK_RUN(test_bd_budget_and_depth);
	CHECK_RUN(test_c_drift);
	CHECK_RUN(test_e_step);
	CHECK_RUN(test_f_replay);
	CHECK_RUN(test_h_day);
	return check_end();
}
