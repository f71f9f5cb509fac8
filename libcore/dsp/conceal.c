#include "dsp/conceal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_STEP 4u /* every fourth frame is enough to find a period; it is then placed to the frame */

enum err conceal_init(struct conceal *c, uint32_t rate_hz, unsigned channels)
{
	memset(c, 0, sizeof(*c));
	if (!rate_hz || !channels || channels > 1024 || rate_hz > 1000000)
		return ERR_ARG;
	c->channels = channels;
	c->fade_frames = (uint32_t)(CONCEAL_FADE_S * rate_hz) + 1;
	c->cross_frames = (uint32_t)(CONCEAL_CROSS_S * rate_hz) + 1;
	c->min_period = (uint32_t)(CONCEAL_MIN_PERIOD_S * rate_hz) + 1;
	c->max_period = (uint32_t)(CONCEAL_MAX_PERIOD_S * rate_hz) + 1;
	c->history_frames = 2 * c->max_period;
	c->history = calloc(((size_t)c->history_frames + 1) * channels + c->history_frames, sizeof(float));
	if (!c->history)
		return ERR_NOMEM;
	c->mono = c->history + (size_t)c->history_frames * channels;
	c->step = c->mono + c->history_frames;
	conceal_reset(c);
	return ERR_OK;
}

void conceal_release(struct conceal *c)
{
	free(c->history);
	memset(c, 0, sizeof(*c));
}

void conceal_reset(struct conceal *c)
{
	c->n_known = c->period = 0;
	c->n_made = 0;
	c->n_crossed = c->cross_frames;
}

static void remember(struct conceal *c, const float *frames, size_t n)
{
	size_t room = c->history_frames, ch = c->channels;

	if (n >= room) {
		memcpy(c->history, frames + (n - room) * ch, room * ch * sizeof(float));
		c->n_known = c->history_frames;
		return;
	}
	memmove(c->history, c->history + n * ch, (room - n) * ch * sizeof(float));
	memcpy(c->history + (room - n) * ch, frames, n * ch * sizeof(float));
	c->n_known = c->n_known + n < room ? c->n_known + (uint32_t)n : c->history_frames;
}

/* How unlike the last max_period frames are to those `lag` before, relative to their power. */
static double unlike(const struct conceal *c, uint32_t lag, uint32_t step)
{
	const float *end = c->mono + c->history_frames;
	uint32_t span = c->history_frames - lag < c->max_period ? c->history_frames - lag : c->max_period;
	double difference = 0, power = 1e-12;

	for (uint32_t i = 1; i <= span; i += step) {
		double a = end[-(int64_t)i], b = end[-(int64_t)i - (int64_t)lag];
		difference += (a - b) * (a - b);
		power += a * a + b * b;
	}
	return difference / power;
}

static uint32_t find_period(struct conceal *c)
{
	uint32_t best = c->max_period;
	double least = 1e30;

	for (uint32_t i = 0; i < c->history_frames; i++) {
		float sum = 0;
		for (unsigned k = 0; k < c->channels; k++)
			sum += c->history[(size_t)i * c->channels + k];
		c->mono[i] = sum;
	}
	for (uint32_t lag = c->min_period; lag <= c->max_period; lag++) {
		double d = unlike(c, lag, SEARCH_STEP);
		if (d < least) {
			least = d;
			best = lag;
		}
	}
	uint32_t low = best > c->min_period + SEARCH_STEP ? best - SEARCH_STEP : c->min_period, around = best;
	least = 1e30;
	for (uint32_t lag = low; lag <= around + SEARCH_STEP && lag <= c->max_period; lag++) {
		double d = unlike(c, lag, 1);
		if (d < least) {
			least = d;
			best = lag;
		}
	}
	return best;
}

/* Frame number n_made of the hole. */
static void make_one(const struct conceal *c, uint64_t n, float *out)
{
	size_t ch = c->channels;
	const float *from = c->history + (c->history_frames - c->period + n % c->period) * ch;
	double gain = n < c->fade_frames ? 1 - (double)n / c->fade_frames : 0;
	double seam = n < c->cross_frames ? 1 - (double)n / c->cross_frames : 0;

	for (size_t k = 0; k < ch; k++)
		out[k] = (float)(gain * (from[k] + seam * c->step[k]));
}

void conceal_make(struct conceal *c, float *frames, size_t n_frames)
{
	size_t ch = c->channels;

	if (!c->period) {
		c->period = c->n_known < c->history_frames ? c->max_period : find_period(c);
		c->n_made = 0;
		/* The period's end does not quite meet its beginning: the step is taken away slowly. */
		for (size_t k = 0; k < ch; k++)
			c->step[k] = c->history[(c->history_frames - 1) * ch + k] - c->history[((size_t)c->history_frames - 1 - c->period) * ch + k];
	}
	c->n_crossed = 0;
	for (size_t i = 0; i < n_frames; i++)
		make_one(c, c->n_made++, frames + i * ch);
}

void conceal_play(struct conceal *c, float *frames, size_t n_frames)
{
	size_t ch = c->channels;

	for (size_t i = 0; i < n_frames && c->period && c->n_crossed < c->cross_frames; i++, c->n_crossed++) {
		double in = (double)(c->n_crossed + 1) / (c->cross_frames + 1);
		for (size_t k = 0; k < ch; k++) {
			float made;
			/* one channel at a time, so that no room for a frame is needed */
			const float *from = c->history + (c->history_frames - c->period + c->n_made % c->period) * ch;
			double gain = c->n_made < c->fade_frames ? 1 - (double)c->n_made / c->fade_frames : 0;
			made = (float)(gain * from[k]);
			frames[i * ch + k] = (float)(in * frames[i * ch + k] + (1 - in) * made);
		}
		c->n_made++;
	}
	if (c->period && c->n_crossed < c->cross_frames)
		return; /* the period is still wanted: the history stays as it was */
	c->period = 0;
	remember(c, frames, n_frames);
}
