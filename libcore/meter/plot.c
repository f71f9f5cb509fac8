#include "meter/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_HOPS 32u                /* of a window: as close as its transforms ever are */
#define LAST_HOPS 2u                  /* and as far apart: two Hann windows, every sample counts the same */
#define SHORT_WINDOWS 8u

static const struct plot_range no_range = { NAN, NAN };
static const struct plot_wave no_wave = { INFINITY, -INFINITY, 0 };

/* ---- life ---- */

double plot_band_hz(const struct plot *p, unsigned band)
{
	double top_hz = p->rate_hz / 2.0, low_hz = fmin(PLOT_LOW_HZ, top_hz / 2);
	return low_hz * pow(top_hz / low_hz, (double)band / PLOT_BANDS);
}

/* Wide bands are as high as their highest bin, so that a tone has its level in any; narrow ones lie between two bins. */
static void set_bands(struct plot *p)
{
	double bin_hz = (double)p->rate_hz / (double)p->spectrum.n_points;
	for (unsigned b = 0; b < PLOT_BANDS; b++) {
		double low = plot_band_hz(p, b) / bin_hz, high = plot_band_hz(p, b + 1) / bin_hz;
		struct plot_band *band = &p->bands[b];
		band->first = (unsigned)ceil(low);
		band->last = (unsigned)ceil(high) - 1;
		if (band->last < band->first)
			band->part = (float)((low + high) / 2 - band->last);
		if (b + 1 == PLOT_BANDS)
			band->last = (unsigned)p->spectrum.n_points / 2;
	}
}

static void clear_columns(struct plot *p, unsigned from)
{
	for (unsigned i = from; i < PLOT_COLUMNS; i++)
		p->columns[i] = (struct plot_column){ .momentary_lufs = no_range, .short_term_lufs = no_range };
	for (size_t i = (size_t)from * p->n_lanes; i < (size_t)PLOT_COLUMNS * p->n_lanes; i++)
		p->waves[i] = no_wave;
}

enum err plot_init(struct plot *p, uint32_t rate_hz, unsigned n_channels)
{
	*p = (struct plot){ .rate_hz = rate_hz, .n_channels = n_channels, .column_frames = 1 };
	p->n_lanes = n_channels < PLOT_MAX_LANES ? n_channels : PLOT_MAX_LANES;
	enum err e = spectrum_init(&p->spectrum, spectrum_points(rate_hz));
	if (e)
		return e;
	size_t n = p->spectrum.n_points;
	p->columns = malloc(PLOT_COLUMNS * sizeof(*p->columns));
	p->waves = malloc((size_t)PLOT_COLUMNS * p->n_lanes * sizeof(*p->waves));
	p->peaks = calloc(n_channels, sizeof(*p->peaks));
	p->powers = calloc((size_t)PLOT_SLICES * PLOT_BANDS, sizeof(*p->powers));
	p->transforms = calloc(PLOT_SLICES, sizeof(*p->transforms));
	p->power = malloc((n / 2 + 1) * sizeof(*p->power));
	p->history = calloc(2 * n * n_channels, sizeof(*p->history));
	if (!p->columns || !p->waves || !p->peaks || !p->powers || !p->transforms || !p->power || !p->history) {
		plot_release(p);
		return ERR_NOMEM;
	}
	clear_columns(p, 0);
	set_bands(p);
	p->slice_frames = p->hop_frames = n / FIRST_HOPS;
	return ERR_OK;
}

void plot_release(struct plot *p)
{
	spectrum_release(&p->spectrum);
	free(p->columns);
	free(p->waves);
	free(p->peaks);
	free(p->powers);
	free(p->transforms);
	free(p->power);
	free(p->history);
	memset(p, 0, sizeof(*p));
}

/* ---- columns ---- */

static struct plot_range range_join(struct plot_range a, struct plot_range b)
{
	return (struct plot_range){ fminf(a.low, b.low), fmaxf(a.high, b.high) }; /* which pass over NAN */
}

static void halve_columns(struct plot *p)
{
	for (unsigned i = 0; i < PLOT_COLUMNS / 2; i++) {
		const struct plot_column *a = &p->columns[2 * i], *b = a + 1;
		p->columns[i] = (struct plot_column){
			.frames = a->frames + b->frames,
			.lost_frames = a->lost_frames + b->lost_frames,
			.quiet_frames = a->quiet_frames + b->quiet_frames,
			.momentary_lufs = range_join(a->momentary_lufs, b->momentary_lufs),
			.short_term_lufs = range_join(a->short_term_lufs, b->short_term_lufs),
		};
		for (unsigned c = 0; c < p->n_lanes; c++) {
			struct plot_wave u = *plot_wave(p, 2 * i, c), v = *plot_wave(p, 2 * i + 1, c);
			p->waves[(size_t)i * p->n_lanes + c] = (struct plot_wave){ fminf(u.low, v.low), fmaxf(u.high, v.high), u.squares + v.squares };
		}
	}
	clear_columns(p, PLOT_COLUMNS / 2);
	p->n_columns = (p->n_columns + 1) / 2;
	p->column_frames *= 2;
}

/* The column of a frame; where there is none, older ones are joined until there is. */
static unsigned column_at(struct plot *p, uint64_t frame)
{
	while (frame / p->column_frames >= PLOT_COLUMNS)
		halve_columns(p);
	unsigned column = (unsigned)(frame / p->column_frames);
	if (column >= p->n_columns)
		p->n_columns = column + 1;
	return column;
}

/* Frames from `frame` to the end of its column, at most n_frames. */
static uint64_t frames_in_column(const struct plot *p, uint64_t frame, uint64_t n_frames)
{
	uint64_t left = p->column_frames - frame % p->column_frames;
	return left < n_frames ? left : n_frames;
}

static void add_wave(struct plot_wave *w, const float *x, size_t n_frames, size_t stride)
{
	float low = w->low, high = w->high;
	double squares = 0;
	for (size_t i = 0; i < n_frames; i++, x += stride) {
		low = *x < low ? *x : low;
		high = *x > high ? *x : high;
		squares += (double)*x * *x;
	}
	*w = (struct plot_wave){ low, high, w->squares + (float)squares };
}

static void add_columns(struct plot *p, const float *frames, size_t n_frames)
{
	uint64_t at = p->end_frame;
	while (n_frames) {
		unsigned column = column_at(p, at);
		size_t n = (size_t)frames_in_column(p, at, n_frames);
		p->columns[column].frames += n;
		for (unsigned c = 0; c < p->n_lanes; c++)
			add_wave(&p->waves[(size_t)column * p->n_lanes + c], frames + c, n, p->n_channels);
		frames += n * p->n_channels;
		at += n;
		n_frames -= n;
	}
}

void plot_peak(struct plot *p, unsigned channel, double factor, const float *frames, size_t n_frames)
{
	if (factor <= p->peaks[channel].factor)
		return;
	size_t highest = 0;
	for (size_t i = 1; i < n_frames; i++)
		if (fabsf(frames[i * p->n_channels + channel]) > fabsf(frames[highest * p->n_channels + channel]))
			highest = i;
	p->peaks[channel] = (struct plot_peak){ factor, p->end_frame + highest };
}

double plot_rms(const struct plot *p, unsigned column, unsigned lane)
{
	uint64_t n = p->columns[column].frames;
	return n ? sqrt((double)plot_wave(p, column, lane)->squares / (double)n) : 0;
}

void plot_loudness(struct plot *p, double momentary_lufs, double short_term_lufs)
{
	if (p->end_frame == 0)
		return;
	struct plot_column *column = &p->columns[column_at(p, p->end_frame - 1)];
	float m = isnan(momentary_lufs) ? -INFINITY : (float)momentary_lufs, s = isnan(short_term_lufs) ? -INFINITY : (float)short_term_lufs;
	column->momentary_lufs = range_join(column->momentary_lufs, (struct plot_range){ m, m });
	column->short_term_lufs = range_join(column->short_term_lufs, (struct plot_range){ s, s });
}

/* ---- spectrogram ---- */

static void halve_slices(struct plot *p)
{
	size_t half = (size_t)PLOT_SLICES / 2 * PLOT_BANDS;
	for (unsigned i = 0; i < PLOT_SLICES / 2; i++) {
		float *to = p->powers + (size_t)i * PLOT_BANDS;
		const float *from = p->powers + (size_t)2 * i * PLOT_BANDS;
		for (unsigned b = 0; b < PLOT_BANDS; b++)
			to[b] = from[b] + from[PLOT_BANDS + b];
		p->transforms[i] = p->transforms[2 * i] + p->transforms[2 * i + 1];
	}
	memset(p->powers + half, 0, half * sizeof(*p->powers));
	memset(p->transforms + PLOT_SLICES / 2, 0, PLOT_SLICES / 2 * sizeof(*p->transforms));
	p->n_slices = (p->n_slices + 1) / 2;
	p->slice_frames *= 2;
	if (p->hop_frames < p->spectrum.n_points / LAST_HOPS)
		p->hop_frames *= 2;
}

static unsigned slice_at(struct plot *p, uint64_t frame)
{
	while (frame / p->slice_frames >= PLOT_SLICES)
		halve_slices(p);
	unsigned slice = (unsigned)(frame / p->slice_frames);
	if (slice >= p->n_slices)
		p->n_slices = slice + 1;
	return slice;
}

static float band_power(const struct plot_band *band, const float *power)
{
	if (band->last < band->first)
		return power[band->last] + band->part * (power[band->first] - power[band->last]);
	float highest = power[band->first];
	for (unsigned k = band->first + 1; k <= band->last; k++)
		highest = power[k] > highest ? power[k] : highest;
	return highest;
}

/* The window around centre_frame, whose last frame is the newest in the history. */
static void transform(struct plot *p)
{
	size_t n = p->spectrum.n_points;
	const float *frames = p->history + p->history_at_frames * p->n_channels;
	memset(p->power, 0, (n / 2 + 1) * sizeof(*p->power));
	for (unsigned c = 0; c < p->n_channels; c += 2)
		spectrum_add(&p->spectrum, p->power, frames + c, c + 1 < p->n_channels ? frames + c + 1 : NULL, p->n_channels);
	unsigned slice = slice_at(p, p->centre_frame);
	float *to = p->powers + (size_t)slice * PLOT_BANDS;
	for (unsigned b = 0; b < PLOT_BANDS; b++)
		to[b] += band_power(&p->bands[b], p->power) / (float)p->n_channels;
	p->transforms[slice]++;
}

/* frames NULL: zeros. */
static void remember(struct plot *p, const float *frames, size_t n_frames)
{
	size_t n = p->spectrum.n_points;
	while (n_frames) {
		size_t part = n - p->history_at_frames < n_frames ? n - p->history_at_frames : n_frames;
		size_t n_samples = part * p->n_channels;
		float *to = p->history + p->history_at_frames * p->n_channels, *again = to + n * p->n_channels;
		if (frames) {
			memcpy(to, frames, n_samples * sizeof(float));
			memcpy(again, frames, n_samples * sizeof(float));
			frames += n_samples;
		} else {
			memset(to, 0, n_samples * sizeof(float));
			memset(again, 0, n_samples * sizeof(float));
		}
		p->history_at_frames = (p->history_at_frames + part) % n;
		p->heard_frame += part;
		n_frames -= part;
	}
}

/* The next multiple of the hop, which may have grown. */
static void next_centre(struct plot *p, uint64_t from_frame)
{
	p->centre_frame = (from_frame + p->hop_frames - 1) / p->hop_frames * p->hop_frames;
}

static void hear(struct plot *p, const float *frames, size_t n_frames)
{
	while (n_frames) {
		uint64_t due = p->centre_frame + p->spectrum.n_points / 2 - p->heard_frame;
		size_t n = due < n_frames ? (size_t)due : n_frames;
		remember(p, frames, n);
		frames = frames ? frames + n * p->n_channels : NULL;
		n_frames -= n;
		if (n == due) {
			transform(p);
			next_centre(p, p->centre_frame + 1);
		}
	}
}

/* Windows that reach into a gap see zeros there; those in the middle of a long one are left out. */
static void hear_gap(struct plot *p, uint64_t n_frames)
{
	size_t half = p->spectrum.n_points / 2;
	if (n_frames <= 2 * half) {
		hear(p, NULL, (size_t)n_frames);
		return;
	}
	uint64_t end_frame = p->heard_frame + n_frames;
	hear(p, NULL, half);
	remember(p, NULL, 2 * half);
	p->heard_frame = end_frame;
	next_centre(p, end_frame);
}

double plot_band_db(const struct plot *p, unsigned slice, unsigned band)
{
	if (!p->transforms[slice])
		return (double)NAN;
	double power = (double)p->powers[(size_t)slice * PLOT_BANDS + band] / p->transforms[slice];
	return 10.0 * log10(power + 1e-20);
}

/* ---- all together ---- */

void plot_add(struct plot *p, const float *frames, size_t n_frames)
{
	add_columns(p, frames, n_frames);
	hear(p, frames, n_frames);
	p->end_frame += n_frames;
}

void plot_add_gap(struct plot *p, uint64_t n_frames, bool lost)
{
	uint64_t at = p->end_frame, left = n_frames;
	if (n_frames)
		(void)column_at(p, at + n_frames - 1); /* joins what must be joined at once */
	while (left) {
		struct plot_column *column = &p->columns[column_at(p, at)];
		uint64_t n = frames_in_column(p, at, left);
		*(lost ? &column->lost_frames : &column->quiet_frames) += n;
		at += n;
		left -= n;
	}
	hear_gap(p, n_frames);
	p->end_frame += n_frames;
}

void plot_finish(struct plot *p)
{
	/* To a window that reaches over the end, a tone that is cut off there is a click.  Only short tracks need such windows. */
	if (p->end_frame && p->end_frame < SHORT_WINDOWS * p->spectrum.n_points)
		hear(p, NULL, p->spectrum.n_points / 2);
	uint64_t n = (p->end_frame + p->slice_frames - 1) / p->slice_frames;
	if (p->n_slices > n)
		p->n_slices = (unsigned)n;
}
