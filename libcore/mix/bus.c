#include "mix/bus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err bus_track_init(struct bus_track *t, enum sample format, unsigned in_channels, unsigned out_channels, unsigned cpu)
{
	const size_t n = (size_t)in_channels * out_channels;

	memset(t, 0, sizeof(*t));
	t->plain_fn = accum_pick(format, ACCUM_PAIRS, cpu);
	if (!t->plain_fn || !n || in_channels > UINT16_MAX || out_channels > UINT16_MAX)
		return ERR_ARG;
	t->format = format;
	t->in_channels = in_channels;
	t->out_channels = out_channels;
	t->plain_gain[0] = t->plain_gain[1] = 1 / accum_scale(format);
	t->now = calloc(n, sizeof(*t->now));
	t->target = calloc(n, sizeof(*t->target));
	t->wires = calloc(n, sizeof(*t->wires));
	t->slice = calloc((size_t)BUS_SLICE_FRAMES * in_channels, sizeof(*t->slice));
	if (!t->now || !t->target || !t->wires || !t->slice) {
		bus_track_release(t);
		return ERR_NOMEM;
	}
	t->is_silent = t->is_whole = true;
	return ERR_OK;
}

void bus_track_release(struct bus_track *t)
{
	free(t->now);
	free(t->target);
	free(t->wires);
	free(t->slice);
	memset(t, 0, sizeof(*t));
}

/* ---- which way ---- */

/* All on the diagonal and the same? */
static bool is_uniform(const struct bus_track *t)
{
	if (t->in_channels != t->out_channels)
		return false;
	for (unsigned o = 0; o < t->out_channels; o++)
		for (unsigned i = 0; i < t->in_channels; i++)
			if (t->target[(size_t)o * t->in_channels + i] != (o == i ? t->target[0] : 0))
				return false;
	return true;
}

static void choose(struct bus_track *t, accum_fn *(*pick)(enum sample, enum accum_kind))
{
	const double scale = 1 / accum_scale(t->format), *m = t->target;

	t->fn = NULL;
	t->by_samples = false;
	if (is_uniform(t)) {
		t->fn = pick(t->format, ACCUM_PAIRS);
		t->by_samples = true;
		t->gain[0] = t->gain[1] = m[0] * scale;
	} else if (t->in_channels == 1 && t->out_channels == 2) {
		t->fn = pick(t->format, ACCUM_SPREAD);
		t->gain[0] = m[0] * scale;
		t->gain[1] = m[1] * scale;
	} else if (t->in_channels == 2 && t->out_channels == 2 && m[1] == 0 && m[2] == 0) {
		t->fn = pick(t->format, ACCUM_PAIRS);
		t->by_samples = true;
		t->gain[0] = m[0] * scale;
		t->gain[1] = m[3] * scale;
	} else if (t->in_channels == 2 && t->out_channels == 2) {
		t->fn = pick(t->format, ACCUM_CROSS);
		for (unsigned k = 0; k < 4; k++)
			t->gain[k] = m[k] * scale;
	}
}

/* Kernels and wires for the matrix that now holds. */
static void settle(struct bus_track *t)
{
	const size_t n = (size_t)t->in_channels * t->out_channels;

	t->is_silent = t->is_whole = true;
	t->n_wires = 0;
	for (unsigned i = 0; i < t->in_channels; i++)
		for (unsigned o = 0; o < t->out_channels; o++) {
			double g = t->target[(size_t)o * t->in_channels + i];
			t->is_whole &= g == rint(g);
			if (g == 0)
				continue;
			t->is_silent = false;
			t->wires[t->n_wires++] = (struct bus_wire){ .in = (uint16_t)i, .out = (uint16_t)o, .gain = g };
		}
	/* plain_fn tells which family the processor was given. */
	choose(t, t->plain_fn == accum_c_pick(t->format, ACCUM_PAIRS) ? accum_c_pick : accum_avx2_pick);
	memcpy(t->now, t->target, n * sizeof(*t->now));
	t->ramp_frames = t->ramp_at_frames = 0;
}

void bus_track_set(struct bus_track *t, const double *coef, uint32_t ramp_frames)
{
	const size_t n = (size_t)t->in_channels * t->out_channels;

	if (t->ramp_frames) {
		double part = (double)t->ramp_at_frames / t->ramp_frames;
		for (size_t k = 0; k < n; k++)
			t->now[k] += (t->target[k] - t->now[k]) * part;
	}
	memcpy(t->target, coef, n * sizeof(*coef));
	t->ramp_at_frames = 0;
	t->ramp_frames = memcmp(t->now, t->target, n * sizeof(*coef)) ? ramp_frames : 0;
	if (!t->ramp_frames)
		settle(t);
}

unsigned bus_track_bits(const struct bus_track *t)
{
	if (t->is_silent && !t->ramp_frames)
		return 16;
	if (!t->is_whole || t->ramp_frames)
		return 64;
	switch (t->format) {
	case SAMPLE_S16:
		return 16;
	case SAMPLE_S24:
	case SAMPLE_S24_32:
		return 24;
	case SAMPLE_S32:
		return 32;
	default:
		return 64;
	}
}

/* ---- adding ---- */

static size_t sample_bytes(enum sample format)
{
	return track_sample_bytes(format);
}

/* A slice of the input as doubles. */
static size_t load_slice(struct bus_track *t, const uint8_t *src, size_t n_frames)
{
	memset(t->slice, 0, n_frames * t->in_channels * sizeof(*t->slice));
	return t->plain_fn(t->slice, src, n_frames * t->in_channels, t->plain_gain);
}

static size_t add_by_wires(struct bus_track *t, double *acc, const uint8_t *src, size_t n_frames)
{
	const size_t in = t->in_channels, out = t->out_channels;
	size_t n_bad = 0;

	for (size_t done = 0; done < n_frames;) {
		size_t n = n_frames - done < BUS_SLICE_FRAMES ? n_frames - done : BUS_SLICE_FRAMES;
		n_bad += load_slice(t, src + done * in * sample_bytes(t->format), n);
		for (unsigned w = 0; w < t->n_wires; w++) {
			const double *x = t->slice + t->wires[w].in, gain = t->wires[w].gain;
			double *to = acc + done * out + t->wires[w].out;
			for (size_t f = 0; f < n; f++)
				to[f * out] += x[f * in] * gain;
		}
		done += n;
	}
	return n_bad;
}

/* While the matrix moves: at most to the end of the ramp.  Frame k of it has now + (target - now) * k / ramp_frames. */
static size_t add_ramp(struct bus_track *t, double *acc, const uint8_t *src, size_t n_frames)
{
	const size_t in = t->in_channels, out = t->out_channels;
	size_t n_bad = 0;

	for (size_t done = 0; done < n_frames;) {
		size_t n = n_frames - done < BUS_SLICE_FRAMES ? n_frames - done : BUS_SLICE_FRAMES;
		n_bad += load_slice(t, src + done * in * sample_bytes(t->format), n);
		for (size_t i = 0; i < in; i++)
			for (size_t o = 0; o < out; o++) {
				double from = t->now[o * in + i], way = t->target[o * in + i] - from;
				if (from == 0 && way == 0)
					continue;
				for (size_t f = 0; f < n; f++) {
					double gain = from + way * ((double)(t->ramp_at_frames + f) / t->ramp_frames);
					acc[(done + f) * out + o] += t->slice[f * in + i] * gain;
				}
			}
		t->ramp_at_frames += (uint32_t)n;
		done += n;
	}
	return n_bad;
}

static size_t ramp_left(const struct bus_track *t, size_t n_frames)
{
	size_t left = t->ramp_frames - t->ramp_at_frames;
	return left < n_frames ? left : n_frames;
}

size_t bus_add(struct bus_track *t, double *acc, const void *frames, size_t n_frames)
{
	const uint8_t *src = frames;
	size_t n_bad = 0;

	if (t->ramp_frames) {
		size_t n = ramp_left(t, n_frames);
		n_bad = add_ramp(t, acc, src, n);
		if (t->ramp_at_frames == t->ramp_frames)
			settle(t);
		acc += n * t->out_channels;
		src += n * t->in_channels * sample_bytes(t->format);
		n_frames -= n;
	}
	if (!n_frames || t->is_silent)
		return n_bad;
	if (t->fn)
		return n_bad + t->fn(acc, src, t->by_samples ? n_frames * t->in_channels : n_frames, t->gain);
	return n_bad + add_by_wires(t, acc, src, n_frames);
}

void bus_pass(struct bus_track *t, size_t n_frames)
{
	if (!t->ramp_frames)
		return;
	t->ramp_at_frames += (uint32_t)ramp_left(t, n_frames);
	if (t->ramp_at_frames == t->ramp_frames)
		settle(t);
}
