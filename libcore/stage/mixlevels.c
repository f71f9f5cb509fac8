#include "stage/mixlevels.h"

#include "base/cpu.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void let_go(struct mixlevels *l)
{
	free(l->peaks);
	free(l->true_peaks);
	free(l->work);
	l->peaks = l->true_peaks = l->work = NULL;
	truepeak_release(&l->truepeak);
	if (l->has_loudness)
		loudness_release(&l->loudness);
}

static enum err open_loudness(struct mixlevels *l, uint32_t rate_hz, uint64_t wave_mask)
{
	struct track track = track_pcm(rate_hz, (uint16_t)l->channels, SAMPLE_F32);
	float *weights = calloc(l->channels, sizeof(*weights));
	enum err e = ERR_NOMEM;

	if (weights) {
		if (wave_mask) {
			track.layout = TRACK_LAYOUT_WAVE;
			track.wave_mask = wave_mask;
		}
		loudness_weights(&track, false, weights);
		e = loudness_init(&l->loudness, rate_hz, l->channels, weights);
		l->has_loudness = !e;
	}
	free(weights);
	return e;
}

enum err mixlevels_open(struct mixlevels *l, uint32_t rate_hz, unsigned channels, uint64_t wave_mask, uint32_t block_frames)
{
	enum err e = ERR_NOMEM;

	memset(l, 0, sizeof(*l));
	l->channels = channels;
	dsp_init(&l->dsp, cpu_flags());
	l->peaks = calloc(channels, sizeof(*l->peaks));
	l->true_peaks = calloc(channels, sizeof(*l->true_peaks));
	l->work = aligned_alloc(64, (size_t)units_round_up((size_t)block_frames * channels * sizeof(float), 64));
	if (!l->peaks || !l->true_peaks || !l->work || truepeak_init(&l->truepeak, rate_hz, channels))
		goto out;
	e = rate_hz >= LOUDNESS_MIN_RATE_HZ ? open_loudness(l, rate_hz, wave_mask) : ERR_OK;
out:
	if (e)
		let_go(l);
	return e;
}

void mixlevels_add(struct mixlevels *l, const double *sum, size_t n_frames)
{
	for (size_t k = 0; k < n_frames * l->channels; k++)
		l->work[k] = (float)sum[k];
	l->dsp.clean(l->work, l->work, n_frames * l->channels);
	l->dsp.peaks(l->peaks, l->work, l->channels, n_frames);
	truepeak_run(&l->truepeak, l->true_peaks, l->work, n_frames);
	if (l->has_loudness)
		loudness_add(&l->loudness, l->work, n_frames);
}

/*
 * What the filter still holds stays there, as in a meter: behind the last frames nothing is known, and to take it for
 * silence would turn every end that is cut off into a peak that no meter finds.
 */
void mixlevels_close(struct mixlevels *l)
{
	for (unsigned c = 0; c < l->channels; c++) {
		l->sample_peak = fmax(l->sample_peak, (double)l->peaks[c]);
		l->true_peak = fmax(l->true_peak, (double)fmaxf(l->true_peaks[c], l->peaks[c]));
	}
	l->integrated_lufs = l->has_loudness ? loudness_read(&l->loudness).integrated_lufs : NAN;
	let_go(l);
}
