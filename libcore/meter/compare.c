#include "meter/compare.h"

#include "meter/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The window is the reference's first two seconds from where it is louder than -60 dBFS.  The track is held from its
 * start to one second behind the window; the part from one second before the window to one behind is correlated with
 * it.  Correlation is divided by the track's energy under the window, so that a loud place does not win over a right
 * one; what of the window lies over a hole of the track is left out, so that a place without one does not either.
 *
 * A sound that dies away is like itself at each of its periods, and only softer.  So among lags that are alike, and
 * zero, the one that leaves the smallest difference is taken, and of those that leave the same (a steady tone does at
 * every period) the one nearest to zero.
 */

#define SEARCH_SECONDS 1u     /* either way */
#define WINDOW_SECONDS 2u
#define LOOK_SECONDS 10u      /* where the window may begin; a reference that is silent for longer is not searched */
#define SOUND_LEVEL 1e-3      /* -60 dBFS */
#define LEAST_LIKE 0.1        /* what is less like is like by chance */
#define LEAST_SHARE (1.0 / 16) /* of the window's energy that must not lie over holes: less is like anything */

/* Room for n_frames more of the reference's beginning.  It doubles: twelve seconds are seldom needed. */
static enum err prefix_reserve(struct compare *c, size_t n_frames)
{
	if (c->prefix_frames + n_frames <= c->prefix_room_frames)
		return ERR_OK;
	size_t room = c->prefix_room_frames ? 2 * c->prefix_room_frames : (size_t)c->rate_hz * WINDOW_SECONDS + n_frames;
	double *prefix = realloc(c->prefix, room * c->n_channels * sizeof(*prefix));
	if (!prefix)
		return ERR_NOMEM;
	c->prefix = prefix;
	c->prefix_room_frames = room;
	return ERR_OK;
}

static bool is_sound(const struct compare *c, const double *frame)
{
	for (unsigned i = 0; i < c->n_channels; i++)
		if (fabs(frame[i]) > SOUND_LEVEL)
			return true;
	return false;
}

/* Read the reference up to the end of its window. */
static enum err read_prefix(struct compare *c)
{
	size_t scanned = 0, want = (size_t)c->rate_hz * LOOK_SECONDS;
	bool found = false;
	while (c->prefix_frames < want && !c->reference_ended) {
		size_t n = 0, ask = want - c->prefix_frames < COMPARE_BLOCK_FRAMES ? want - c->prefix_frames : COMPARE_BLOCK_FRAMES;
		enum err e = prefix_reserve(c, ask);
		if (!e)
			e = c->read(c->from, c->prefix + c->prefix_frames * c->n_channels, ask, &n);
		if (e)
			return e;
		c->reference_ended = n == 0;
		c->prefix_frames += n;
		for (; !found && scanned < c->prefix_frames; scanned++) {
			if (!is_sound(c, c->prefix + scanned * c->n_channels))
				continue;
			found = true;
			c->window_start_frame = scanned;
			want = scanned + (size_t)c->rate_hz * WINDOW_SECONDS;
		}
	}
	if (found) {
		size_t n = c->prefix_frames - c->window_start_frame, most = (size_t)c->rate_hz * WINDOW_SECONDS;
		c->window_frames = n < most ? n : most;
	}
	return ERR_OK;
}

enum err compare_init(struct compare *c, uint32_t rate_hz, unsigned n_channels, compare_read_fn *read, void *from)
{
	*c = (struct compare){ .rate_hz = rate_hz, .n_channels = n_channels, .read = read, .from = from };
	enum err e = ERR_NOMEM;
	c->block = malloc((size_t)COMPARE_BLOCK_FRAMES * n_channels * sizeof(*c->block));
	if (!c->block)
		goto out;
	if ((e = read_prefix(c)))
		goto out;
	e = ERR_NOMEM;
	c->held_room_frames = c->window_start_frame + c->window_frames + (size_t)c->rate_hz * SEARCH_SECONDS;
	c->held = calloc(c->held_room_frames * n_channels, sizeof(*c->held));
	c->present = calloc(c->held_room_frames, 1);
	if (!c->held || !c->present)
		goto out;
	e = ERR_OK;
out:
	if (e)
		compare_release(c);
	return e;
}

void compare_release(struct compare *c)
{
	free(c->prefix);
	free(c->block);
	free(c->held);
	free(c->present);
	memset(c, 0, sizeof(*c));
}

/* ---- the search ---- */

/* One number a frame, such that opposite channels do not cancel. */
static double frame_value(const struct compare *c, const double *frame)
{
	double sum = 0;
	for (unsigned i = 0; i < c->n_channels; i++)
		if (isfinite(frame[i]))
			sum += frame[i] / (1.0 + 0.37 * i);
	return sum;
}

static double track_value(const struct compare *c, int64_t frame)
{
	if (frame < 0 || (uint64_t)frame >= c->held_frames || !c->present[frame])
		return 0;
	return frame_value(c, c->held + (size_t)frame * c->n_channels);
}

static bool is_hole(const struct compare *c, int64_t frame)
{
	return frame >= 0 && (uint64_t)frame < c->held_frames && !c->present[frame];
}

/* How well a lag fits. */
struct fit {
	double like;              /* -1…1, whatever the levels */
	double rest;              /* energy of the difference, as a share of the window's */
};

/*
 * What makes out a lag: how the window correlates with the track `lag` frames later, and how much of the window's
 * energy lies over holes there.  Index lag + reach.
 */
struct search {
	int64_t reach;
	size_t n_points;
	struct fft fft;
	struct fft_point *z;      /* re: the correlation */
	struct fft_point *lost;   /* re: that energy; NULL: there are no holes */
	struct fit *fits;
};

static void search_release(struct search *s)
{
	fft_release(&s->fft);
	free(s->z);
	free(s->lost);
	free(s->fits);
}

static enum err search_init(struct search *s, const struct compare *c)
{
	*s = (struct search){ .reach = (int64_t)c->rate_hz * SEARCH_SECONDS, .n_points = 2 };
	while (s->n_points < c->window_frames + 2 * (size_t)s->reach + 1)
		s->n_points *= 2;
	s->z = calloc(s->n_points, sizeof(*s->z));
	s->fits = calloc(2 * (size_t)s->reach + 1, sizeof(*s->fits));
	bool has_holes = memchr(c->present, 0, c->held_frames) != NULL;
	if (has_holes)
		s->lost = calloc(s->n_points, sizeof(*s->lost));
	if (!s->z || !s->fits || (has_holes && !s->lost))
		return ERR_NOMEM;
	return fft_init(&s->fft, s->n_points);
}

/* Correlation by lag.  Returns: the window's energy. */
static double correlate(struct search *s, const struct compare *c)
{
	int64_t from = (int64_t)c->window_start_frame - s->reach;
	double energy = 0;

	for (size_t i = 0; i < c->window_frames + 2 * (size_t)s->reach; i++) {
		s->z[i].re = track_value(c, from + (int64_t)i);
		if (s->lost)
			s->lost[i].re = is_hole(c, from + (int64_t)i);
	}
	for (size_t i = 0; i < c->window_frames; i++) {
		double v = frame_value(c, c->prefix + (c->window_start_frame + i) * c->n_channels);
		s->z[i].im = v;
		if (s->lost)
			s->lost[i].im = v * v;
		energy += v * v;
	}
	fft_correlate(&s->fft, s->z);
	if (s->lost)
		fft_correlate(&s->fft, s->lost);
	return energy;
}

static void rate_lags(struct search *s, const struct compare *c, double window_energy)
{
	int64_t start = (int64_t)c->window_start_frame, n = (int64_t)c->window_frames, reach = s->reach;
	double under = 0;

	for (int64_t i = 0; i < n; i++) {
		double v = track_value(c, start - reach + i);
		under += v * v;
	}
	for (int64_t lag = -reach; lag <= reach; lag++) {
		struct fit *fit = &s->fits[lag + reach];
		double seen = window_energy - (s->lost ? fmax(0, s->lost[lag + reach].re) : 0);
		double common = s->z[lag + reach].re;
		*fit = (struct fit){ .like = 0, .rest = (double)INFINITY };
		if (seen >= LEAST_SHARE * window_energy && seen > 0)
			fit->rest = fmax(0, (under + seen - 2 * common) / seen);
		/* An all but empty stretch of the track is like nothing. */
		if (isfinite(fit->rest) && under > seen * 1e-6)
			fit->like = common / sqrt(under * seen);
		double leaves = track_value(c, start + lag), enters = track_value(c, start + lag + n);
		under = fmax(0, under + enters * enters - leaves * leaves);
	}
}

static int64_t best_lag(const struct search *s)
{
	const struct fit *at_zero = s->fits + s->reach;
	double best = 0, least = at_zero->rest;

	for (int64_t lag = -s->reach; lag <= s->reach; lag++)
		best = fmax(best, at_zero[lag].like);
	if (best < LEAST_LIKE)
		return 0;
	/* What differs by less than noise explains is equal. */
	double enough = best - 1e-9 - 0.02 * fmax(0, 1 - best);
	for (int64_t lag = -s->reach; lag <= s->reach; lag++)
		if (at_zero[lag].like >= enough)
			least = fmin(least, at_zero[lag].rest);
	double little = 1.02 * least + 1e-9;
	if (at_zero->rest <= little && at_zero->like < enough)
		return 0;

	int64_t found = 0;
	double like = -1;
	for (int64_t away = 0; away <= s->reach && like < 0; away++) {
		for (int side = -1; side <= 1; side += 2) {
			const struct fit *fit = &at_zero[side * away];
			if (fit->like >= enough && fit->rest <= little && fit->like > like) {
				like = fit->like;
				found = side * away;
			}
		}
	}
	/* Up the hill from there: near the top neighbours are alike too. */
	while (found < s->reach && at_zero[found + 1].like > at_zero[found].like)
		found++;
	while (found > -s->reach && at_zero[found - 1].like > at_zero[found].like)
		found--;
	return found;
}

static enum err find_offset(struct compare *c, int64_t *offset)
{
	struct search s;

	*offset = 0;
	if (c->window_frames == 0)
		return ERR_OK;
	enum err e = search_init(&s, c);
	if (!e) {
		rate_lags(&s, c, correlate(&s, c));
		*offset = best_lag(&s);
	}
	search_release(&s);
	return e;
}

/* ---- side by side ---- */

/*
 * Up to n_frames of the reference, from the prefix or read now.  Returns: where they lie, *n of them; NULL at the end
 * or when reading failed (c->failed).
 */
static const double *take_reference(struct compare *c, size_t n_frames, size_t *n)
{
	const double *frames = c->block;
	*n = c->prefix_frames - c->prefix_used_frames;
	if (*n > 0) {
		*n = *n < n_frames ? *n : n_frames;
		frames = c->prefix + c->prefix_used_frames * c->n_channels;
		c->prefix_used_frames += *n;
	} else if (!c->reference_ended) {
		c->failed = c->read(c->from, c->block, n_frames < COMPARE_BLOCK_FRAMES ? n_frames : COMPARE_BLOCK_FRAMES, n);
		if (c->failed)
			*n = 0;
		c->reference_ended = *n == 0;
	}
	c->reference_frame += (int64_t)*n;
	return *n ? frames : NULL;
}

/* The reference goes on to `frame`; what is passed over has no counterpart. */
static void skip_reference(struct compare *c, int64_t frame)
{
	while (c->reference_frame < frame) {
		uint64_t left = (uint64_t)(frame - c->reference_frame);
		size_t n;
		if (!take_reference(c, left < COMPARE_BLOCK_FRAMES ? (size_t)left : COMPARE_BLOCK_FRAMES, &n))
			return;
		c->values.frames_missing += n;
	}
}

static void compare_samples(struct compare *c, const double *track, const double *reference, size_t n_samples)
{
	double signal = 0, error = 0, most = 0;
	for (size_t i = 0; i < n_samples; i++) {
		double d = track[i] - reference[i];
		signal += reference[i] * reference[i];
		error += d * d;
		most = fabs(d) > most ? fabs(d) : most;
	}
	if (isfinite(signal) && isfinite(error)) {
		c->signal += signal;
		c->error += error;
		if (most > c->values.max_abs_error)
			c->values.max_abs_error = most;
		c->different |= most > 0;
		return;
	}
	/* NaN or infinity: equal bits are equal, the rest is an error of the whole sample. */
	for (size_t i = 0; i < n_samples; i++) {
		if (memcmp(&track[i], &reference[i], sizeof(*track)) == 0)
			continue;
		double t = isfinite(track[i]) ? track[i] : 0, r = isfinite(reference[i]) ? reference[i] : 0;
		c->signal += r * r;
		c->error += (t - r) * (t - r);
		c->values.max_abs_error = fmax(c->values.max_abs_error, fabs(t - r));
		c->different = true;
	}
}

/* n_frames of the track from c->track_frame on. */
static void compare_side_by_side(struct compare *c, const double *frames, size_t n_frames)
{
	while (n_frames) {
		int64_t at = c->track_frame - c->values.frames_offset;
		size_t n = 0;
		const double *reference = NULL;
		if (at < 0) {
			n = (uint64_t)-at < n_frames ? (size_t)-at : n_frames;
		} else {
			skip_reference(c, at);
			reference = take_reference(c, n_frames, &n);
			if (!reference)
				n = n_frames;
		}
		if (reference) {
			compare_samples(c, frames, reference, n * c->n_channels);
			c->values.frames_compared += n;
		} else {
			c->values.frames_extra += n;
		}
		c->track_frame += (int64_t)n;
		frames += n * c->n_channels;
		n_frames -= n;
	}
}

/* The search, then what was held. */
static enum err align(struct compare *c)
{
	enum err e = find_offset(c, &c->values.frames_offset);
	if (e)
		return e;
	c->aligned = true;
	for (size_t i = 0; i < c->held_frames;) {
		size_t n = 1;
		while (i + n < c->held_frames && c->present[i + n] == c->present[i])
			n++;
		if (c->present[i])
			compare_side_by_side(c, c->held + i * c->n_channels, n);
		else
			c->track_frame += (int64_t)n;
		i += n;
	}
	return c->failed;
}

static size_t held_room(const struct compare *c, uint64_t n_frames)
{
	size_t room = c->held_room_frames - c->held_frames;
	return n_frames < room ? (size_t)n_frames : room;
}

enum err compare_add(struct compare *c, const double *frames, size_t n_frames)
{
	if (c->failed)
		return c->failed;
	if (!c->aligned) {
		size_t n = held_room(c, n_frames);
		memcpy(c->held + c->held_frames * c->n_channels, frames, n * c->n_channels * sizeof(*frames));
		memset(c->present + c->held_frames, 1, n);
		c->held_frames += n;
		frames += n * c->n_channels;
		n_frames -= n;
		if (n_frames == 0)
			return ERR_OK;
		enum err e = align(c);
		if (e)
			return e;
	}
	compare_side_by_side(c, frames, n_frames);
	return c->failed;
}

enum err compare_add_gap(struct compare *c, uint64_t n_frames)
{
	if (c->failed)
		return c->failed;
	if (!c->aligned) {
		size_t n = held_room(c, n_frames);
		c->held_frames += n; /* calloc left them absent */
		n_frames -= n;
		if (n_frames == 0)
			return ERR_OK;
		enum err e = align(c);
		if (e)
			return e;
	}
	c->track_frame += (int64_t)n_frames;
	return ERR_OK;
}

enum err compare_finish(struct compare *c)
{
	if (c->failed)
		return c->failed;
	if (!c->aligned) {
		enum err e = align(c);
		if (e)
			return e;
	}
	skip_reference(c, INT64_MAX);
	return c->failed;
}

struct compare_values compare_read(const struct compare *c)
{
	struct compare_values v = c->values;
	v.snr_db = c->signal > 0 && c->error > 0 ? 10.0 * log10(c->signal / c->error) : (double)NAN;
	v.identical = v.frames_offset == 0 && v.frames_missing == 0 && v.frames_extra == 0 && !c->different;
	return v;
}
