/*
 * Times.  The envelope at input frame f belongs to frame f - taps/2 and the way from it to the next; so does the gain that
 * it calls for; a peak between two frames is the business of both, so frame s must obey the calls s + taps/2 - 1 and
 * s + taps/2.  The mean at f goes over the w minima f - w + 1 … f, and each of those over w + 1 calls: what all of them
 * have in sight are the calls f - w and f - w + 1.  So s = f - w + 1 - taps/2, and that is the delay.
 */
#include "mix/limiter.h"

#include "base/units.h"
#include "dsp/dsp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE ((int64_t)1 << 40)
#define BLOCK_FRAMES 256u

enum err limiter_init(struct limiter *l, uint32_t rate_hz, unsigned channels, double ceiling_dbtp, unsigned cpu)
{
	struct dsp dsp;

	memset(l, 0, sizeof(*l));
	if (!channels || !rate_hz)
		return ERR_ARG;
	dsp_init(&dsp, cpu);
	l->envelope_fn = dsp.envelope;
	l->curve_fn = dsp.limit_curve;
	l->level_fn = dsp.limit_level;
	l->channels = channels;
	l->ceiling = (float)units_db_to_factor(ceiling_dbtp - LIMITER_MARGIN_DB);
	truepeak_filter_init(&l->filter, rate_hz);
	l->window_frames = (uint32_t)units_scale(rate_hz, LIMITER_LOOKAHEAD_MS, 1000);
	if (l->window_frames < 4)
		l->window_frames = 4;
	l->delay_frames = l->filter.taps / 2 + l->window_frames - 1;
	l->release = 1 - exp(-1000.0 / LIMITER_RELEASE_MS / rate_hz);
	l->block_frames = BLOCK_FRAMES;
	l->queue_room = l->window_frames + 2;
	l->held = 1;
	l->lowest_gain = 1;

	l->input = calloc((l->filter.taps - 1 + l->block_frames) * (size_t)channels, sizeof(*l->input));
	l->envelope = calloc(l->block_frames * channels, sizeof(*l->envelope));
	l->gain = calloc(l->block_frames, sizeof(*l->gain));
	l->delayed = calloc((size_t)l->delay_frames * channels, sizeof(*l->delayed));
	l->queue_frame = calloc(l->queue_room, sizeof(*l->queue_frame));
	l->queue_gain = calloc(l->queue_room, sizeof(*l->queue_gain));
	l->mean = calloc(l->window_frames, sizeof(*l->mean));
	if (!l->input || !l->envelope || !l->gain || !l->delayed || !l->queue_frame || !l->queue_gain || !l->mean) {
		limiter_release(l);
		return ERR_NOMEM;
	}
	for (uint32_t k = 0; k < l->window_frames; k++)
		l->mean[k] = ONE;
	l->mean_sum = (int64_t)l->window_frames * ONE;
	return ERR_OK;
}

void limiter_release(struct limiter *l)
{
	free(l->input);
	free(l->envelope);
	free(l->gain);
	free(l->delayed);
	free(l->queue_frame);
	free(l->queue_gain);
	free(l->mean);
	memset(l, 0, sizeof(*l));
}

/* The smallest of the last window_frames + 1 gains, this one included. */
static float running_minimum(struct limiter *l, float gain)
{
	while (l->queue_n && l->queue_gain[(l->queue_first + l->queue_n - 1) % l->queue_room] >= gain)
		l->queue_n--;
	uint32_t last = (l->queue_first + l->queue_n++) % l->queue_room;
	l->queue_gain[last] = gain;
	l->queue_frame[last] = l->frame;
	if (l->queue_frame[l->queue_first] + l->window_frames < l->frame) {
		l->queue_first = (l->queue_first + 1) % l->queue_room;
		l->queue_n--;
	}
	l->frame++;
	return l->queue_gain[l->queue_first];
}

/* The gain of the frame that now leaves, from the gain that the frame at the other end calls for. */
static float next_gain(struct limiter *l, float called)
{
	double least = running_minimum(l, called);

	l->held = least < l->held ? least : l->held + (least - l->held) * l->release;
	/* So that it does arrive. */
	if (least >= 1 && l->held > 1 - 1e-7)
		l->held = 1;
	int64_t g = (int64_t)(l->held * (double)ONE);
	l->mean_sum += g - l->mean[l->mean_at];
	l->mean[l->mean_at] = g;
	l->mean_at = l->mean_at + 1 == l->window_frames ? 0 : l->mean_at + 1;
	if (l->mean_sum == (int64_t)l->window_frames * ONE)
		return 1;
	l->limited_frames++;
	float gain = (float)((double)l->mean_sum / ((double)ONE * l->window_frames));
	if (gain < l->lowest_gain)
		l->lowest_gain = gain;
	return gain;
}

static void run_block(struct limiter *l, float *frames, size_t n_frames)
{
	const size_t channels = l->channels, past = (l->filter.taps - 1) * channels, n = n_frames * channels;

	memcpy(l->input + past, frames, n * sizeof(*frames));
	l->envelope_fn(l->envelope, l->input + past, &l->filter, l->channels, n);
	memmove(l->input, l->input + n, past * sizeof(*l->input));
	l->level_fn(l->gain, l->envelope, l->channels, n_frames);
	l->curve_fn(l->gain, l->gain, n_frames, l->ceiling, l->ceiling);
	for (size_t f = 0; f < n_frames; f++) {
		float gain = next_gain(l, l->gain[f]);
		float *old = l->delayed + l->delayed_at * channels, *x = frames + f * channels;
		for (size_t c = 0; c < channels; c++) {
			float now = x[c];
			x[c] = gain == 1 ? old[c] : old[c] * gain;
			old[c] = now;
		}
		l->delayed_at = l->delayed_at + 1 == l->delay_frames ? 0 : l->delayed_at + 1;
	}
}

void limiter_run(struct limiter *l, float *frames, size_t n_frames)
{
	while (n_frames) {
		size_t n = n_frames < l->block_frames ? n_frames : l->block_frames;
		run_block(l, frames, n);
		frames += n * l->channels;
		n_frames -= n;
	}
}
