/*
 * losses [PACKETS]: what is left of random losses and of outages after RED and Reed–Solomon, beside what was worked out
 * when they were chosen.  PACKETS in each cell, 4000000 if left out.
 */
#include "../unit/loss_model.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	uint64_t n_packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
	double worst = 0;

	printf("left after repair, %% of packets, measured (expected), %llu packets a cell\n", (unsigned long long)n_packets);
	printf("%-8s %-8s %-14s %18s %18s %18s %18s\n", "outages", "packets", "scheme", "1 % lost", "5 %", "10 %", "20 %");
	for (const struct loss_row *row = loss_rows; row < loss_rows + LOSS_N_ROWS; row++) {
		char outage[16] = "random";
		if (row->outage_ms > 0)
			snprintf(outage, sizeof(outage), "%g ms", row->outage_ms);
		printf("%-8s %4g ms  %-14s", outage, row->packet_ms, row->scheme);
		for (unsigned rate = 0; rate < 4; rate++) {
			double left = loss_measure(row, rate, n_packets, 1 + rate), want = row->percent[rate];
			printf("  %8.4f (%6.4g)", left, want < 0 ? 0 : want);
			/* Where a few hundred packets are left, the figure means something. */
			double off = want > 0 ? left / want - 1 : 0;
			if (want / 100 * (double)n_packets >= 1000 && (off < 0 ? -off : off) > worst)
				worst = off < 0 ? -off : off;
			fflush(stdout);
		}
		printf("\n");
	}
	printf("worst deviation of a cell with 1000 packets left or more: %.1f %%\n", 100 * worst);
	return worst > 0.2;
}
