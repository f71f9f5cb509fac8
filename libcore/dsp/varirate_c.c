#include "dsp/varirate.h"

/* 9 bits choose the phase, the 24 after them the point between it and the next: exact as a float. */
#define PHASE_SHIFT 39
#define BETWEEN_SHIFT 15
#define BETWEEN_MASK 0xffffffu

void varirate_c_rows(float *rows, const float *table, const uint64_t *place_q48, size_t n_frames)
{
	for (size_t i = 0; i < n_frames; i++) {
		const float *a = table + (place_q48[i] >> PHASE_SHIFT) * VARIRATE_TAPS, *b = a + VARIRATE_TAPS;
		float between = (float)(place_q48[i] >> BETWEEN_SHIFT & BETWEEN_MASK) * 0x1p-24f;
		for (size_t k = 0; k < VARIRATE_TAPS; k++)
			rows[i * VARIRATE_TAPS + k] = a[k] + (b[k] - a[k]) * between;
	}
}

/* Eight sums, of every eighth tap each, then in pairs: the order in which vectors add. */
void varirate_c_sum(float *dst, const float *x, const float *rows, const uint16_t *at, size_t n_frames)
{
	for (size_t i = 0; i < n_frames; i++) {
		const float *row = rows + i * VARIRATE_TAPS, *from = x + at[i];
		float sum[8];
		for (size_t lane = 0; lane < 8; lane++)
			sum[lane] = row[lane] * from[lane];
		for (size_t k = 8; k < VARIRATE_TAPS; k += 8)
			for (size_t lane = 0; lane < 8; lane++)
				sum[lane] += row[k + lane] * from[k + lane];
		float low = (sum[0] + sum[1]) + (sum[2] + sum[3]), high = (sum[4] + sum[5]) + (sum[6] + sum[7]);
		dst[i] = low + high;
	}
}
