/* J. P. Burg's lattice: each step chooses the reflection coefficient that makes forward and backward error least. */
#include "dsp/predict.h"

#include <string.h>

#define ORDER 32u
#define SILENT_ENERGY 1e-12 /* a sample: −120 dBFS */

/* a[1 … order] of x[n] ≈ −Σ a[k]·x[n − k].  Returns: the order, 0 when there is nothing to predict. */
static unsigned burg(const float *x, size_t n, double a[static ORDER + 1])
{
	double forward[PREDICT_MAX_PAST], backward[PREDICT_MAX_PAST], before[ORDER + 1];
	unsigned order = n / 3 < ORDER ? (unsigned)(n / 3) : ORDER;
	double energy = 0;

	for (size_t i = 0; i < n; i++) {
		forward[i] = backward[i] = x[i];
		energy += (double)x[i] * x[i];
	}
	if (energy < SILENT_ENERGY * (double)n)
		return 0;
	memset(a, 0, (ORDER + 1) * sizeof(*a));
	a[0] = 1;
	for (unsigned m = 1; m <= order; m++) {
		double both = 0, power = 0;
		for (size_t i = m; i < n; i++) {
			both += forward[i] * backward[i - 1];
			power += forward[i] * forward[i] + backward[i - 1] * backward[i - 1];
		}
		if (power < 1e-14 * energy) /* all is predicted */
			return m - 1;
		double k = -2 * both / power;
		memcpy(before, a, sizeof(before));
		for (unsigned i = 1; i <= m; i++)
			a[i] = before[i] + k * before[m - i];
		for (size_t i = n - 1; i >= m; i--) {
			double f = forward[i];
			forward[i] = f + k * backward[i - 1];
			backward[i] = backward[i - 1] + k * f;
		}
	}
	return order;
}

void predict_extend(const float *past, size_t n_past, float *next, size_t n_next)
{
	double a[ORDER + 1], last[ORDER] = { 0 };
	unsigned order;

	if (n_past > PREDICT_MAX_PAST) {
		past += n_past - PREDICT_MAX_PAST;
		n_past = PREDICT_MAX_PAST;
	}
	order = burg(past, n_past, a);
	if (!order) {
		memset(next, 0, n_next * sizeof(*next));
		return;
	}
	/* last[k] is the sample k + 1 back. */
	for (unsigned k = 0; k < order; k++)
		last[k] = past[n_past - 1 - k];
	for (size_t i = 0; i < n_next; i++) {
		double y = 0;
		for (unsigned k = 0; k < order; k++)
			y -= a[k + 1] * last[k];
		memmove(last + 1, last, (order - 1) * sizeof(*last));
		last[0] = y;
		next[i] = (float)y;
	}
}
