#include "meter/amplitude.h"

#include "base/cpu.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A block passes the samples once for peak, sum and squares.  What is rare is looked at only when that pass says so:
 * NaN when a sum is not finite, clipping when a peak is at full scale, true peaks when the block could raise them.
 */

float amplitude_full_scale(unsigned valid_bits)
{
	return valid_bits ? 1.0f - (float)ldexp(1.0, 1 - (int)valid_bits) : 1.0f;
}

/* The most the interpolator can make of samples within ±1: the largest sum of magnitudes of a phase. */
static float ceiling_of(const struct truepeak_filter *filter)
{
	float ceiling = 1.0f;
	for (unsigned p = 0; p + 1 < filter->factor; p++) {
		float sum = 0;
		for (unsigned k = 0; k < filter->taps; k++)
			sum += fabsf(filter->coef[p][k]);
		ceiling = fmaxf(ceiling, sum);
	}
	return ceiling * 1.0001f; /* and rounding */
}

enum err amplitude_init(
	struct amplitude *a, uint32_t rate_hz, unsigned n_channels, const struct amplitude_options *options)
{
	*a = (struct amplitude){ .options = *options, .n_channels = n_channels };
	if (n_channels == 0)
		return ERR_ARG;
	dsp_init(&a->dsp, cpu_flags());
	a->channels = calloc(n_channels, sizeof(*a->channels));
	a->block = calloc(n_channels, sizeof(*a->block));
	a->clean = malloc((size_t)AMPLITUDE_BLOCK_FRAMES * n_channels * sizeof(*a->clean));
	a->true_peaks = calloc(n_channels, sizeof(*a->true_peaks));
	enum err e = a->channels && a->block && a->clean && a->true_peaks ? ERR_OK : ERR_NOMEM;
	if (!e && !options->no_true_peak) {
		e = truepeak_init(&a->truepeak, rate_hz, n_channels);
		a->ceiling = ceiling_of(&a->truepeak.filter);
	}
	if (e)
		amplitude_release(a);
	return e;
}

void amplitude_release(struct amplitude *a)
{
	truepeak_release(&a->truepeak);
	free(a->channels);
	free(a->block);
	free(a->clean);
	free(a->true_peaks);
	memset(a, 0, sizeof(*a));
}

static void sum_block(struct amplitude *a, const float *frames, size_t n_frames)
{
	memset(a->block, 0, a->n_channels * sizeof(*a->block));
	a->dsp.levels(a->block, frames, a->n_channels, n_frames);
}

static bool block_is_finite(const struct amplitude *a)
{
	for (unsigned c = 0; c < a->n_channels; c++)
		if (!isfinite(a->block[c].squares))
			return false;
	return true;
}

static void count_nonfinite(struct amplitude *a, const float *frames, size_t n_frames)
{
	for (size_t f = 0; f < n_frames; f++)
		for (unsigned c = 0; c < a->n_channels; c++)
			a->channels[c].nonfinite_samples += !isfinite(frames[f * a->n_channels + c]);
}

static void count_clipped(struct amplitude *a, unsigned c, const float *frames, size_t n_frames)
{
	struct amplitude_channel *ch = &a->channels[c];
	if (a->block[c].peak < a->options.full_scale) {
		ch->in_clipped_run = false;
		return;
	}
	for (size_t f = 0; f < n_frames; f++) {
		bool clipped = fabsf(frames[f * a->n_channels + c]) >= a->options.full_scale;
		ch->clipped_samples += clipped;
		ch->clipped_runs += clipped && !ch->in_clipped_run;
		ch->in_clipped_run = clipped;
	}
}

/* A block whose samples, and those before it that the interpolator still sees, are too low to raise any true peak. */
static bool true_peaks_stand(const struct amplitude *a)
{
	for (unsigned c = 0; c < a->n_channels; c++)
		if (fmaxf(a->block[c].peak, a->channels[c].last_peak) * a->ceiling > a->true_peaks[c])
			return false;
	return true;
}

static void raise_true_peaks(struct amplitude *a, const float *frames, size_t n_frames)
{
	if (true_peaks_stand(a))
		truepeak_pass(&a->truepeak, frames, n_frames);
	else
		truepeak_run(&a->truepeak, a->true_peaks, frames, n_frames);
	/* A short block leaves older samples in the interpolator's past. */
	bool is_short = n_frames < a->truepeak.filter.taps;
	for (unsigned c = 0; c < a->n_channels; c++) {
		float peak = a->block[c].peak;
		a->channels[c].last_peak = is_short ? fmaxf(peak, a->channels[c].last_peak) : peak;
	}
}

static double pair_cross(const struct amplitude *a, const float *frames, size_t n_frames)
{
	const int *pair = a->options.pair;
	if (pair[0] == pair[1])
		return 0;
	if (a->n_channels == 2)
		return a->dsp.cross(frames, n_frames);
	double cross = 0;
	for (size_t f = 0; f < n_frames; f++, frames += a->n_channels)
		cross += (double)frames[pair[0]] * frames[pair[1]];
	return cross;
}

const float *amplitude_add(struct amplitude *a, const float *frames, size_t n_frames)
{
	sum_block(a, frames, n_frames);
	if (!block_is_finite(a)) {
		count_nonfinite(a, frames, n_frames);
		a->dsp.clean(a->clean, frames, n_frames * a->n_channels);
		frames = a->clean;
		sum_block(a, frames, n_frames);
	}
	for (unsigned c = 0; c < a->n_channels; c++) {
		struct amplitude_channel *ch = &a->channels[c];
		ch->levels.squares += a->block[c].squares;
		ch->levels.sum += a->block[c].sum;
		ch->levels.peak = fmaxf(ch->levels.peak, a->block[c].peak);
		for (unsigned i = 0; i < ARRAY_LEN(ch->recent_peak); i++)
			ch->recent_peak[i] = fmaxf(ch->recent_peak[i], a->block[c].peak);
		count_clipped(a, c, frames, n_frames);
	}
	a->cross += pair_cross(a, frames, n_frames);
	if (!a->options.no_true_peak)
		raise_true_peaks(a, frames, n_frames);
	a->n_frames += n_frames;
	return frames;
}

void amplitude_break(struct amplitude *a)
{
	for (unsigned c = 0; c < a->n_channels; c++)
		a->channels[c].in_clipped_run = false;
	if (!a->options.no_true_peak)
		truepeak_reset(&a->truepeak);
}

static double level_db(double factor)
{
	return factor > 0 ? units_factor_to_db(factor) : (double)NAN;
}

struct amplitude_values amplitude_read(const struct amplitude *a, unsigned channel)
{
	const struct amplitude_channel *ch = &a->channels[channel];
	double n = a->n_frames ? (double)a->n_frames : 1.0;
	/* The samples themselves are points of the signal too, the last few included that the interpolator still waits for. */
	float true_peak = fmaxf(a->true_peaks[channel], ch->levels.peak);
	return (struct amplitude_values){
		.sample_peak_dbfs = level_db(ch->levels.peak),
		.true_peak_dbtp = a->options.no_true_peak ? (double)NAN : level_db(true_peak),
		.rms_dbfs = level_db(sqrt(ch->levels.squares / n)),
		.dc_offset = ch->levels.sum / n,
		.clipped_samples = ch->clipped_samples,
		.clipped_runs = ch->clipped_runs,
		.nonfinite_samples = ch->nonfinite_samples,
	};
}

void amplitude_mark(struct amplitude *a, enum amplitude_mark mark)
{
	for (unsigned c = 0; c < a->n_channels; c++)
		a->channels[c].recent_peak[mark] = 0;
}

double amplitude_recent_dbfs(const struct amplitude *a, unsigned channel, enum amplitude_mark mark)
{
	return level_db(a->channels[channel].recent_peak[mark]);
}

double amplitude_correlation(const struct amplitude *a)
{
	const int *pair = a->options.pair;
	if (pair[0] == pair[1])
		return (double)NAN;
	double energy = sqrt(a->channels[pair[0]].levels.squares) * sqrt(a->channels[pair[1]].levels.squares);
	return energy > 0 ? fmax(-1.0, fmin(1.0, a->cross / energy)) : (double)NAN;
}
