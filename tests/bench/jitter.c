/* The jitter buffer in its scenarios, in virtual time, beside the figures it was designed by. */
#include "unit/jitter_sim.h"

#include <stdio.h>

#define N_SEEDS 5

int main(void)
{
	int failed = 0;

	printf("%-28s %6s  %13s %8s  %15s  %14s  %14s %12s\n", "mean of five seeds", "budget", "depth ms", "oracle", "late %", "glitches/min", "drift ppm", "rms ppm");
	for (unsigned i = 0; i < sizeof(sim_rows) / sizeof(*sim_rows); i++) {
		const struct sim_row *w = &sim_rows[i];
		double depth = 0, oracle = 0, late = 0, glitches = 0, ppm = 0, rms = 0, recovered = 0;
		for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
			struct sim_result r = sim_run(&w->s, w->glitches, 0, seed);
			depth += r.depth_ms / N_SEEDS;
			late += r.late_pct / N_SEEDS;
			glitches += r.glitches_min / N_SEEDS;
			ppm += r.ppm_mean / N_SEEDS;
			rms += r.ppm_rms / N_SEEDS;
			recovered += r.recovered_s / N_SEEDS;
			oracle += sim_oracle_ms(&w->s, w->glitches, seed) / N_SEEDS;
		}
		printf("%-28s %6g  %5.1f (%5s) %8.1f  %7.4f (%5s)  %5.1f (%6s)", w->s.name, w->glitches, depth, w->paper_depth_ms, oracle, late, w->paper_late_pct,
			glitches, w->paper_glitches);
		if (w->s.step_at_s > 0)
			printf("  recovered %.1f s (%s)\n", recovered, w->paper_ppm);
		else
			printf("  %+6.1f (%6s) %5.1f (%4s)\n", ppm, w->paper_ppm, rms, w->paper_rms);
		failed += glitches > 2 * w->glitches || (w->s.step_at_s > 0 && recovered > 20);
	}
	return failed != 0;
}
