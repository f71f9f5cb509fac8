#include "dsp/truepeak.h"

#include "base/cpu.h"

#include <math.h>
#include <stdlib.h>

#define TAPS 49 /* of the whole interpolator; the first and the last are 0 by the window */

void truepeak_filter_init(struct truepeak_filter *filter, uint32_t rate_hz)
{
	unsigned factor = rate_hz < 96000 ? 4 : rate_hz < 192000 ? 2 : 1;
	*filter = (struct truepeak_filter){.factor = factor, .taps = factor == 1 ? 1 : (TAPS - 1) / factor};
	for (unsigned p = 0; p + 1 < factor; p++) {
		for (unsigned k = 0; k < filter->taps; k++) {
			int j = (int)(k * factor + p + 1);
			double t = M_PI * (j - TAPS / 2) / factor;
			double window = 0.5 * (1.0 - cos(2.0 * M_PI * j / (TAPS - 1)));
			filter->coef[p][k] = (float)(t == 0.0 ? window : window * sin(t) / t);
		}
	}
	for (unsigned k = 0; factor == 4 && k < 6; k++) {
		filter->even[k] = 0.5f * (filter->coef[0][k] + filter->coef[0][11 - k]);
		filter->odd[k] = 0.5f * (filter->coef[0][k] - filter->coef[0][11 - k]);
	}
}

enum err truepeak_init(struct truepeak *t, uint32_t rate_hz, unsigned channels)
{
	*t = (struct truepeak){.channels = channels};
	if (!channels)
		return ERR_ARG;
	truepeak_filter_init(&t->filter, rate_hz);
	t->envelope_fn = truepeak_c_envelope;
	t->peaks_fn = levels_c_peaks;
#if defined(__x86_64__)
	if (cpu_has(CPU_AVX2)) {
		t->envelope_fn = truepeak_avx2_envelope;
		t->peaks_fn = levels_avx2_peaks;
	}
#endif
	/* A block and its envelope stay in the first-level cache where the channels allow it. */
	t->block_frames = channels < 128 ? 2048 / channels : 16;
	t->work = calloc((t->filter.taps - 1 + 2 * t->block_frames) * channels, sizeof(*t->work));
	return t->work ? ERR_OK : ERR_NOMEM;
}

void truepeak_release(struct truepeak *t)
{
	free(t->work);
	*t = (struct truepeak){0};
}

void truepeak_reset(struct truepeak *t)
{
	memset(t->work, 0, (size_t)(t->filter.taps - 1) * t->channels * sizeof(*t->work));
}
