#include "media/picture.h"

#include "base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 *	name                                  -14.3 LUFS   5.2 LU   -0.4 dBTP
 *	track 1 · 48 kHz · 2 channels · 3:07.2
 *	FL  ┌──────────────────────────────────────────┐
 *	    │ waveform, a lane for each channel        │
 *	FR  │                                          │
 *	    ├──────────────────────────────────────────┤
 *	    │ loudness                                 │ I
 *	    ├──────────────────────────────────────────┤
 *	    │ spectrogram                              │ ▒ colours
 *	    └──────────────────────────────────────────┘
 *	    0:00      0:30      1:00
 */

#define LEFT 84.0
#define RIGHT 1484.0              /* of the panels */
#define WIDTH (RIGHT - LEFT)
#define EDGE 30.0                 /* of the titles */
#define PANELS_TOP 116.0
#define PANELS_BOTTOM 852.0
#define PANEL_GAP 32.0            /* with the caption of the one below */
#define LANE_GAP 4.0

#define GROUND 0x0E1116u
#define PANEL 0x151A21u
#define GRID 0x3A424Eu
#define TEXT 0xE6EDF3u
#define DIM 0x9AA5B1u
#define PEAK 0x3B78A8u
#define RMS 0x8CC8F0u
#define MOMENTARY 0x4C8FC7u
#define SHORT_TERM 0xFFB454u
#define INTEGRATED 0xF2F5F8u
#define RANGE 0x5BC98Cu
#define LOST 0xF85149u
#define ABSENT 0xA78BFAu          /* gaps that are no losses */
#define SILENCE 0x8795A6u

#define TOP_DBTP (-1.0)           /* the highest true peak of EBU R 128 */
#define SPECTRUM_RANGE_DB 90.0
#define LOUDNESS_RANGE_LU 48.0

static const struct canvas_font title = { 26, true }, value = { 24, true }, usual = { 15, false }, small = { 13, false };

struct box {
	double x, y, width, height;
};

struct scene {
	struct canvas *c;
	const struct meter *m;
	const struct plot *p;
	struct loudness_values loudness;
	double duration_s;
	unsigned n_lanes;
	struct box waves, loudness_box, spectrum;
	double reach;              /* what the lanes' edges stand for, full scale being 1 */
	double loudest_lufs;       /* the upper edge */
	double strongest_db;       /* the brightest colour */
	bool has_lost, has_absent, has_silence;
};

/* ---- places ---- */

static double x_of_frame(const struct scene *s, double frame)
{
	return LEFT + WIDTH * frame / (double)s->p->end_frame;
}

static double y_of_lufs(const struct scene *s, double lufs)
{
	return s->loudness_box.y + s->loudness_box.height * (s->loudest_lufs - lufs) / LOUDNESS_RANGE_LU;
}

static double y_of_hz(const struct scene *s, double hz)
{
	double low = plot_band_hz(s->p, 0), high = plot_band_hz(s->p, PLOT_BANDS);
	return s->spectrum.y + s->spectrum.height * (1 - log(hz / low) / log(high / low));
}

static struct box lane_box(const struct scene *s, unsigned lane)
{
	double gap = s->n_lanes > 6 ? LANE_GAP / 2 : LANE_GAP, step = (s->waves.height + gap) / s->n_lanes;
	return (struct box){ s->waves.x, round(s->waves.y + lane * step), s->waves.width, round(step - gap) };
}

static double y_of_sample(const struct scene *s, struct box lane, double sample)
{
	return lane.y + lane.height / 2 * (1 - sample / s->reach);
}

/* ---- pieces of a drawing ---- */

WEIR_PRINTF(7, 8) static double text(const struct scene *s, double x, double y, enum canvas_align align, struct canvas_font font, uint32_t rgb,
	const char *fmt, ...)
{
	char line[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	canvas_colour(s->c, rgb, 1);
	return canvas_text(s->c, x, y, align, font, 0, line);
}

static void fill(const struct scene *s, struct box b, uint32_t rgb, double alpha)
{
	canvas_colour(s->c, rgb, alpha);
	canvas_rectangle(s->c, b.x, b.y, b.width, b.height);
}

/* A line of one pixel, where pixels are. */
static void across(const struct scene *s, double x0, double x1, double y, uint32_t rgb, double alpha)
{
	fill(s, (struct box){ x0, round(y), x1 - x0, 1 }, rgb, alpha);
}

static void down(const struct scene *s, double x, double y0, double y1, uint32_t rgb, double alpha)
{
	fill(s, (struct box){ round(x), y0, 1, y1 - y0 }, rgb, alpha);
}

/* "-12.3" with a minus that is one. */
static const char *number(double v, int decimals, char out[static 32])
{
	if (!isfinite(v))
		return "none";
	snprintf(out, 32, "%s%.*f", v < 0 && fabs(v) >= 0.5 * pow(10, -decimals) ? "\u2212" : "", decimals, fabs(v));
	return out;
}

/* "0:07", "1:02:03", with as many decimals as the step of a scale wants. */
static const char *clock_text(double at_s, double step_s, char out[static 32])
{
	int decimals = step_s >= 1 ? 0 : (int)ceil(-log10(step_s) - 1e-9);
	double unit = pow(10, decimals), total = round(at_s * unit) / unit;
	int hours = (int)(total / 3600), minutes = (int)fmod(total / 60, 60);
	double seconds = total - 3600.0 * hours - 60.0 * minutes;
	int width = decimals ? 3 + decimals : 2;
	if (hours)
		snprintf(out, 32, "%d:%02d:%0*.*f", hours, minutes, width, decimals, fabs(seconds));
	else
		snprintf(out, 32, "%d:%0*.*f", minutes, width, decimals, fabs(seconds));
	return out;
}

/* A mark of the caption's legend, right of which the next one ends.  Returns: where. */
static double legend(const struct scene *s, double right, double y, uint32_t rgb, double alpha, const char *name)
{
	double width = text(s, right, y, CANVAS_RIGHT, small, DIM, "%s", name);
	fill(s, (struct box){ right - width - 20, y - 9, 14, 9 }, rgb, alpha);
	return right - width - 38;
}

static void caption(const struct scene *s, struct box b, const char *name, const char *unit)
{
	double width = text(s, b.x, b.y - 9, CANVAS_LEFT, (struct canvas_font){ 15, true }, TEXT, "%s", name);
	text(s, b.x + width + 10, b.y - 9, CANVAS_LEFT, small, DIM, "%s", unit);
}

/* ---- titles ---- */

static double headline(const struct scene *s, double right, const char *label, const char *figure, const char *unit, uint32_t rgb)
{
	double unit_width = text(s, right, 50, CANVAS_RIGHT, usual, DIM, "%s", unit);
	double width = text(s, right - unit_width - 7, 50, CANVAS_RIGHT, value, rgb, "%s", figure) + unit_width + 7;
	text(s, right - width, 76, CANVAS_LEFT, small, DIM, "%s", label);
	return right - fmax(width, 96) - 44;
}

static void draw_titles(const struct scene *s)
{
	const struct meter *m = s->m;
	char out[32], line[256], name[32];
	double right = (double)PICTURE_WIDTH - EDGE, peak = meter_true_peak_dbtp(m);
	bool is_true = !m->options.levels_only;
	if (!is_true)
		peak = meter_sample_peak_dbfs(m);
	right = headline(s, right, is_true ? "true peak" : "sample peak", number(peak, 2, out), isnan(peak) ? "" : is_true ? "dBTP" : "dBFS",
		peak > TOP_DBTP ? LOST : TEXT);
	if (m->has_loudness) {
		double range = s->loudness.range_lu, lufs = s->loudness.integrated_lufs;
		right = headline(s, right, "loudness range", number(range, 2, out), isnan(range) ? "" : "LU", TEXT);
		right = headline(s, right, "integrated", number(lufs, 2, out), isnan(lufs) ? "" : "LUFS", TEXT);
	}

	snprintf(name, sizeof(name), "track %u", m->id);
	canvas_colour(s->c, TEXT, 1);
	canvas_text(s->c, EDGE, 50, CANVAS_LEFT, title, right - EDGE, m->name[0] ? m->name : name);
	snprintf(line, sizeof(line), "track %u  \u00B7  %g kHz  \u00B7  %u channel%s  \u00B7  %s", m->id, m->rate_hz / 1000.0, m->n_channels,
		m->n_channels == 1 ? "" : "s", clock_text(s->duration_s, 0.001, out));
	canvas_colour(s->c, DIM, 1);
	double width = canvas_text(s->c, EDGE, 76, CANVAS_LEFT, usual, right - EDGE, line);
	if (m->continuity.gaps) {
		snprintf(line, sizeof(line), "  \u00B7  %llu gap%s, %.3f s lost", (unsigned long long)m->continuity.gaps, m->continuity.gaps == 1 ? "" : "s",
			meter_seconds(m, m->continuity.lost_frames));
		canvas_colour(s->c, LOST, 1);
		canvas_text(s->c, EDGE + width, 76, CANVAS_LEFT, usual, fmax(1, right - EDGE - width), line);
	}
}

/* ---- time ---- */

/* The step of a scale of time that has at most this many marks. */
static double time_step(double duration_s, double most)
{
	static const double steps[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 };
	for (double unit = 1e-6; unit < 1; unit *= 10)
		for (int i = 0; i < 3; i++)
			if (duration_s <= most * unit * steps[i])
				return unit * steps[i];
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (duration_s <= most * steps[i])
			return steps[i];
	return 86400 * ceil(duration_s / most / 86400);
}

static void draw_time(const struct scene *s, const struct box *boxes, unsigned n_boxes)
{
	double step_s = time_step(s->duration_s, 14), rate = (double)s->m->rate_num / s->m->rate_den;
	char out[32];
	for (double at_s = 0; at_s <= s->duration_s * (1 + 1e-9); at_s += step_s) {
		double x = x_of_frame(s, at_s * rate);
		for (unsigned i = 0; i < n_boxes; i++)
			if (x > LEFT + 1 && x < RIGHT - 1)
				down(s, x, boxes[i].y, boxes[i].y + boxes[i].height, GRID, 0.6);
		down(s, fmin(x, RIGHT - 1), PANELS_BOTTOM, PANELS_BOTTOM + 6, DIM, 1);
		text(s, x, PANELS_BOTTOM + 24, CANVAS_CENTRE, small, DIM, "%s", clock_text(at_s, step_s, out));
	}
}

/* From frame to frame, in a panel: filled, and where there is room for it hatched. */
static void shade(const struct scene *s, struct box b, double from_frame, double to_frame, uint32_t rgb, bool hatched)
{
	double x0 = x_of_frame(s, from_frame), x1 = fmax(x_of_frame(s, to_frame), x0 + 1.5);
	x1 = fmin(x1, RIGHT);
	fill(s, (struct box){ x0, b.y, x1 - x0, b.height }, rgb, hatched ? 0.22 : 0.16);
	if (!hatched || x1 - x0 < 6)
		return;
	canvas_clip(s->c, x0, b.y, x1 - x0, b.height);
	for (double x = x0 - b.height; x < x1; x += 9) {
		canvas_move(s->c, x, b.y + b.height);
		canvas_point(s->c, x + b.height, b.y);
	}
	canvas_colour(s->c, rgb, 0.6);
	canvas_stroke(s->c, 1.2);
	canvas_unclip(s->c);
}

static bool is_gap(const struct plot_column *column, bool lost)
{
	return lost ? column->lost_frames > 0 : column->quiet_frames > 0;
}

static void shade_gaps(const struct scene *s, struct box b, bool lost)
{
	const struct plot *p = s->p;
	for (unsigned i = 0, from; i < p->n_columns;) {
		for (from = i; i < p->n_columns && is_gap(&p->columns[i], lost); i++)
			;
		if (i > from)
			shade(s, b, (double)from * (double)p->column_frames, fmin((double)i * (double)p->column_frames, (double)p->end_frame),
				lost ? LOST : ABSENT, true);
		else
			i++;
	}
}

static void shade_silence(const struct scene *s, struct box b)
{
	for (unsigned i = 0; s->m->has_silence && i < silence_count(&s->m->silence); i++) {
		struct silence_range r = silence_at(&s->m->silence, i);
		shade(s, b, (double)r.start_frame, fmin((double)r.end_frame, (double)s->p->end_frame), SILENCE, false);
	}
}

/* ---- waveform ---- */

/* Columns under a pixel, at least one. */
static void columns_under(const struct scene *s, unsigned pixel, unsigned *from, unsigned *to)
{
	double columns = (double)s->p->end_frame / (double)s->p->column_frames;
	*from = (unsigned)(columns * pixel / WIDTH);
	*to = (unsigned)ceil(columns * (pixel + 1) / WIDTH);
	*to = *to > s->p->n_columns ? s->p->n_columns : *to;
	if (*from >= *to)
		*from = *to ? *to - 1 : 0;
}

/* A pixel of a lane: peak, RMS above it, and red edges where it is clipped. */
static void draw_wave_pixel(const struct scene *s, struct box lane, unsigned channel, unsigned pixel)
{
	double low = INFINITY, high = -INFINITY, squares = 0, frames = 0, x = LEFT + pixel;
	unsigned from, to;
	columns_under(s, pixel, &from, &to);
	for (unsigned i = from; i < to; i++) {
		const struct plot_wave *w = plot_wave(s->p, i, channel);
		low = fmin(low, (double)w->low);
		high = fmax(high, (double)w->high);
		squares += (double)w->squares;
		frames += (double)s->p->columns[i].frames;
	}
	if (low > high)
		return;
	double top = y_of_sample(s, lane, fmin(high, s->reach)), bottom = y_of_sample(s, lane, fmax(low, -s->reach));
	double rms = fmin(sqrt(squares / fmax(1, frames)), s->reach);
	fill(s, (struct box){ x, top - 0.5, 1, bottom - top + 1 }, PEAK, 1);
	/* RMS lies about 0; what is not there, as under a DC offset, it does not cover. */
	top = fmax(top, y_of_sample(s, lane, rms));
	bottom = fmin(bottom, y_of_sample(s, lane, -rms));
	if (bottom > top)
		fill(s, (struct box){ x, top, 1, bottom - top }, RMS, 1);
	double full = (double)s->m->amplitude.options.full_scale;
	if (high >= full)
		fill(s, (struct box){ x - 0.5, lane.y, 2, 4 }, LOST, 1);
	if (low <= -full)
		fill(s, (struct box){ x - 0.5, lane.y + lane.height - 4, 2, 4 }, LOST, 1);
}

/* So short that single samples can be seen. */
static void draw_wave_line(const struct scene *s, struct box lane, unsigned channel)
{
	bool drawing = false;
	for (unsigned i = 0; i < s->p->n_columns; i++) {
		const struct plot_wave *w = plot_wave(s->p, i, channel);
		if (w->low > w->high) {
			drawing = false;
			continue;
		}
		double x = x_of_frame(s, i + 0.5), y = y_of_sample(s, lane, fmax(-s->reach, fmin(s->reach, (double)w->high)));
		if (!drawing)
			canvas_move(s->c, x - 0.01, y);
		canvas_point(s->c, x, y);
		drawing = true;
	}
	canvas_colour(s->c, RMS, 1);
	canvas_stroke(s->c, 1.6);
}

static void draw_wave_scale(const struct scene *s, struct box lane)
{
	char out[32];
	double top_db = units_factor_to_db(s->reach), middle = lane.y + lane.height / 2;
	across(s, LEFT, RIGHT, middle, GRID, 1);
	if (lane.height < 56)
		return;
	for (int sign = -1; sign <= 1; sign += 2) {
		double half = y_of_sample(s, lane, sign * s->reach / 2);
		across(s, LEFT, RIGHT, half, GRID, 0.6);
		text(s, LEFT - 8, half + 4.5, CANVAS_RIGHT, small, DIM, "%s", number(top_db + units_factor_to_db(0.5), 0, out));
		text(s, LEFT - 8, sign > 0 ? lane.y + 10 : lane.y + lane.height - 1, CANVAS_RIGHT, small, DIM, "%s", number(top_db, 0, out));
	}
}

/* Where a channel's highest peak is: a small triangle at the lane's edge, and the value beside it. */
static void draw_peak(const struct scene *s, struct box lane, unsigned channel)
{
	const struct plot_peak *peak = &s->p->peaks[channel];
	char out[32];
	if (peak->factor <= 0)
		return;
	double x = fmin(x_of_frame(s, (double)peak->frame + 0.5), RIGHT - 1), db = units_factor_to_db(peak->factor);
	uint32_t rgb = db > TOP_DBTP ? LOST : SHORT_TERM;
	double size = fmin(6, lane.height / 4);
	canvas_move(s->c, x - size, lane.y);
	canvas_point(s->c, x + size, lane.y);
	canvas_point(s->c, x, lane.y + 1.5 * size);
	canvas_colour(s->c, rgb, 1);
	canvas_fill(s->c);
	if (lane.height < 40)
		return;
	bool left = x > RIGHT - 120;
	const char *unit = s->m->options.levels_only ? "dBFS" : "dBTP";
	fill(s, (struct box){ left ? x - 92 : x + 8, lane.y, 84, 15 }, PANEL, 0.75);
	text(s, left ? x - 10 : x + 10, lane.y + 12, left ? CANVAS_RIGHT : CANVAS_LEFT, small, rgb, "%s %s", number(db, 2, out), unit);
}

static void draw_waves(const struct scene *s)
{
	const struct plot *p = s->p;
	bool line = p->column_frames == 1 && p->n_columns < 2 * (unsigned)WIDTH;
	for (unsigned c = 0; c < s->n_lanes; c++) {
		struct box lane = lane_box(s, c);
		bool labels = lane.height >= 56;
		draw_wave_scale(s, lane);
		text(s, labels ? EDGE - 16 : LEFT - 8, lane.y + lane.height / 2 + 5, labels ? CANVAS_LEFT : CANVAS_RIGHT,
			lane.height < 16 ? (struct canvas_font){ 10, true } : (struct canvas_font){ 14, true }, TEXT, "%.6s", s->m->channel_names[c]);
		if (line)
			draw_wave_line(s, lane, c);
		for (unsigned x = 0; !line && x < (unsigned)WIDTH; x++)
			draw_wave_pixel(s, lane, c, x);
	}
}

static void caption_waves(const struct scene *s)
{
	double right = RIGHT, y = s->waves.y - 9;
	uint64_t clipped = 0;
	char unit[96], out[32];
	for (unsigned c = 0; c < s->m->n_channels; c++)
		clipped += s->m->amplitude.channels[c].clipped_samples;
	int n = snprintf(unit, sizeof(unit), s->reach == 1 ? "dBFS" : "up to %s dBFS", number(units_factor_to_db(s->reach), 0, out));
	if (s->m->n_channels > s->n_lanes)
		snprintf(unit + n, sizeof(unit) - (size_t)n, ", the first %u of %u channels", s->n_lanes, s->m->n_channels);
	caption(s, s->waves, "Waveform", unit);
	right = legend(s, right, y, PEAK, 1, "peak");
	right = legend(s, right, y, RMS, 1, "RMS");
	if (clipped)
		right = legend(s, right, y, LOST, 1, "clipped");
	if (s->has_silence)
		right = legend(s, right, y, SILENCE, 0.45, "silence");
	if (s->has_absent)
		right = legend(s, right, y, ABSENT, 0.6, "pause");
	if (s->has_lost)
		legend(s, right, y, LOST, 0.5, "lost");
}

/* ---- loudness ---- */

static bool is_hole(const struct plot *p, unsigned column)
{
	return p->columns[column].lost_frames + p->columns[column].quiet_frames >= p->column_frames;
}

/* The momentary loudness under a pixel, NAN where nobody has looked; true if all of it is a gap. */
static bool momentary_under(const struct scene *s, unsigned pixel, struct plot_range *r)
{
	unsigned from, to;
	bool hole = true;
	*r = (struct plot_range){ NAN, NAN };
	columns_under(s, pixel, &from, &to);
	for (unsigned i = from; i < to; i++) {
		r->low = fminf(r->low, s->p->columns[i].momentary_lufs.low);
		r->high = fmaxf(r->high, s->p->columns[i].momentary_lufs.high);
		hole &= is_hole(s->p, i);
	}
	return hole;
}

/*
 * Values come once a block: what lies between two of them, and is no gap, gets a straight line.  Where there was none
 * before, after silence, the line begins where it is.
 */
static void draw_momentary(const struct scene *s)
{
	double floor_y = s->loudness_box.y + s->loudness_box.height;
	struct plot_range last = { NAN, NAN }, r;
	unsigned last_pixel = 0;
	for (unsigned pixel = 0; pixel < (unsigned)WIDTH; pixel++) {
		if (momentary_under(s, pixel, &r))
			last = (struct plot_range){ NAN, NAN };
		if (isnan(r.high))
			continue;
		bool joins = last.high > -INFINITY && r.high > -INFINITY;
		unsigned steps = joins ? pixel - last_pixel : 1;
		float from = joins ? (r.high > last.high ? last.high : last.low) : r.high, to = joins && r.high < last.high ? r.low : r.high;
		for (unsigned i = 1; i <= steps && r.high > -INFINITY; i++) {
			double a = y_of_lufs(s, (double)(from + (to - from) * (float)(i - 1) / (float)steps));
			double b = y_of_lufs(s, (double)(from + (to - from) * (float)i / (float)steps));
			double high = fmin(a, b), low = fmax(a, b), x = LEFT + pixel - steps + i;
			if (i == steps) {
				high = fmin(high, y_of_lufs(s, (double)r.high));
				if (joins || r.low > -INFINITY)
					low = fmax(low, y_of_lufs(s, (double)r.low));
			}
			fill(s, (struct box){ x, high, 1, fmax(0, floor_y - high) }, MOMENTARY, 0.18);
			fill(s, (struct box){ x, high - 1, 1, fmin(low, floor_y) - high + 2 }, MOMENTARY, 1);
		}
		last = r;
		last_pixel = pixel;
	}
}

static void draw_short_term(const struct scene *s)
{
	const struct plot *p = s->p;
	bool drawing = false;
	for (unsigned i = 0; i < p->n_columns; i++) {
		const struct plot_column *column = &p->columns[i];
		if (is_hole(p, i))
			drawing = false;
		if (isnan(column->short_term_lufs.high))
			continue;
		double x = x_of_frame(s, fmin((i + 0.5) * (double)p->column_frames, (double)p->end_frame));
		double y = fmin(y_of_lufs(s, (double)column->short_term_lufs.high), s->loudness_box.y + s->loudness_box.height + 10);
		if (drawing)
			canvas_point(s->c, x, y);
		else
			canvas_move(s->c, x, y);
		drawing = column->short_term_lufs.high > -INFINITY;
	}
	canvas_colour(s->c, SHORT_TERM, 1);
	canvas_stroke(s->c, 2.2);
}

static void draw_loudness_values(const struct scene *s)
{
	const struct loudness_values *l = &s->loudness;
	const struct box b = s->loudness_box;
	char out[32];
	if (!isnan(l->range_lu) && l->range_lu > 0) {
		double top = y_of_lufs(s, l->range_high_lufs), bottom = y_of_lufs(s, l->range_low_lufs);
		fill(s, (struct box){ LEFT, top, WIDTH, bottom - top }, RANGE, 0.13);
		across(s, LEFT, RIGHT, top, RANGE, 0.55);
		across(s, LEFT, RIGHT, bottom, RANGE, 0.55);
		fill(s, (struct box){ RIGHT + 5, top, 3, fmin(bottom, b.y + b.height) - top }, RANGE, 1);
		double y = fmin((top + bottom) / 2, b.y + b.height) + 5;
		if (fabs(y - 5 - y_of_lufs(s, l->integrated_lufs)) < 18)
			y = y_of_lufs(s, l->integrated_lufs) + 24;
		text(s, RIGHT + 14, y, CANVAS_LEFT, small, RANGE, "LRA %s", number(l->range_lu, 1, out));
	}
	if (!isnan(l->integrated_lufs)) {
		double y = round(y_of_lufs(s, l->integrated_lufs)) + 0.5;
		canvas_move(s->c, LEFT, y);
		canvas_point(s->c, RIGHT + 10, y);
		canvas_colour(s->c, INTEGRATED, 0.95);
		canvas_dash(s->c, 1.4, 7, 5);
		text(s, RIGHT + 14, y + 5, CANVAS_LEFT, (struct canvas_font){ 13, true }, INTEGRATED, "I %s", number(l->integrated_lufs, 1, out));
	}
}

static void draw_loudness(const struct scene *s)
{
	const struct box b = s->loudness_box;
	char out[32];
	for (double lufs = ceil((s->loudest_lufs - LOUDNESS_RANGE_LU) / 6) * 6; lufs <= s->loudest_lufs; lufs += 6) {
		double y = y_of_lufs(s, lufs);
		if (lufs < s->loudest_lufs && y < b.y + b.height - 1)
			across(s, LEFT, RIGHT, y, GRID, 0.6);
		if (fmod(lufs, 12) == 0)
			text(s, LEFT - 8, fmin(fmax(y + 4.5, b.y + 10), b.y + b.height), CANVAS_RIGHT, small, DIM, "%s", number(lufs, 0, out));
	}
	canvas_clip(s->c, b.x, b.y, b.width, b.height);
	draw_momentary(s);
	canvas_unclip(s->c);
	draw_loudness_values(s);
	canvas_clip(s->c, b.x, b.y, b.width, b.height);
	draw_short_term(s);
	canvas_unclip(s->c);
}

static void caption_loudness(const struct scene *s)
{
	double right = RIGHT, y = s->loudness_box.y - 9;
	caption(s, s->loudness_box, "Loudness", "LUFS");
	right = legend(s, right, y, MOMENTARY, 1, "momentary");
	right = legend(s, right, y, SHORT_TERM, 1, "short-term");
	right = legend(s, right, y, INTEGRATED, 1, "integrated");
	if (!isnan(s->loudness.range_lu))
		legend(s, right, y, RANGE, 0.45, "range (LRA)");
}

/* ---- spectrogram ---- */

/* 0…1: from the panel's darkness over violet and red to a light yellow. */
static uint32_t heat(double level)
{
	static const uint8_t colours[][3] = {
		{ 10, 12, 22 }, { 28, 18, 66 }, { 72, 22, 112 }, { 124, 32, 118 }, { 178, 48, 100 }, { 224, 82, 72 }, { 248, 134, 56 },
		{ 252, 190, 84 }, { 254, 244, 190 },
	};
	double at = fmax(0, fmin(1, level)) * (ARRAY_LEN(colours) - 1);
	unsigned i = at < ARRAY_LEN(colours) - 1 ? (unsigned)at : ARRAY_LEN(colours) - 2;
	uint32_t rgb = 0;
	for (int k = 0; k < 3; k++)
		rgb = rgb << 8 | (uint32_t)lround(colours[i][k] + (at - i) * (colours[i + 1][k] - colours[i][k]));
	return rgb;
}

static int clamp(int i, int last)
{
	return i < 0 ? 0 : i > last ? last : i;
}

/* The level between four of the grid; NAN if the nearest slice has none. */
static double level_between(const struct scene *s, const float *db, double slice, double band)
{
	int last_slice = (int)s->p->n_slices - 1, last_band = (int)PLOT_BANDS - 1;
	int i = (int)floor(slice), k = (int)floor(band);
	float x = (float)(slice - i), y = (float)(band - k);
	int i0 = clamp(i, last_slice), i1 = clamp(i + 1, last_slice), k0 = clamp(k, last_band), k1 = clamp(k + 1, last_band);
	const float *a = db + (size_t)i0 * PLOT_BANDS, *b = db + (size_t)i1 * PLOT_BANDS;
	if (isnan(a[0]) || isnan(b[0])) {
		a = x < 0.5f ? a : b;
		b = a;
	}
	float left = a[k0] + y * (a[k1] - a[k0]), right = b[k0] + y * (b[k1] - b[k0]);
	return (double)(left + x * (right - left));
}

static void paint_spectrum(const struct scene *s, const float *db)
{
	const struct box b = s->spectrum;
	size_t stride;
	uint32_t *pixels = canvas_pixels(s->c, &stride);
	double slices = (double)s->p->end_frame / (double)s->p->slice_frames;
	for (unsigned y = 0; pixels && y < (unsigned)b.height; y++) {
		uint32_t *row = pixels + ((size_t)b.y + y) * stride + (size_t)b.x;
		double band = PLOT_BANDS * (1 - (y + 0.5) / b.height) - 0.5;
		for (unsigned x = 0; x < (unsigned)b.width; x++) {
			double level = level_between(s, db, slices * (x + 0.5) / b.width - 0.5, band);
			row[x] = isnan(level) ? PANEL : heat(1 + (level - s->strongest_db) / SPECTRUM_RANGE_DB);
		}
	}
	canvas_pixels_done(s->c);
}

static void draw_frequencies(const struct scene *s)
{
	static const double marks_hz[] = { 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000 };
	const struct box b = s->spectrum;
	for (size_t i = 0; i < ARRAY_LEN(marks_hz); i++) {
		double hz = marks_hz[i], y = y_of_hz(s, hz);
		if (y < b.y - 0.5 || y > b.y + b.height + 0.5)
			continue;
		if (y > b.y + 1 && y < b.y + b.height - 1)
			across(s, LEFT, RIGHT, y, 0xFFFFFFu, 0.10);
		across(s, LEFT - 5, LEFT, y, DIM, 1);
		text(s, LEFT - 8, fmin(y + 4.5, b.y + b.height), CANVAS_RIGHT, small, DIM, hz < 1000 ? "%.0f" : "%.0fk", hz < 1000 ? hz : hz / 1000);
	}
}

static void draw_colour_bar(const struct scene *s)
{
	const struct box b = s->spectrum;
	char out[32];
	for (unsigned y = 0; y < (unsigned)b.height; y++)
		fill(s, (struct box){ RIGHT + 14, b.y + y, 16, 1 }, heat(1 - (y + 0.5) / b.height), 1);
	for (double db = s->strongest_db; db >= s->strongest_db - SPECTRUM_RANGE_DB; db -= 15) {
		double y = b.y + b.height * (s->strongest_db - db) / SPECTRUM_RANGE_DB;
		across(s, RIGHT + 30, RIGHT + 35, fmin(y, b.y + b.height - 1), DIM, 1);
		text(s, RIGHT + 40, fmin(fmax(y + 4.5, b.y + 10), b.y + b.height), CANVAS_LEFT, small, DIM, "%s", number(db, 0, out));
	}
	text(s, RIGHT + 14, b.y - 9, CANVAS_LEFT, small, DIM, "dBFS");
}

static enum err draw_spectrum(struct scene *s)
{
	const struct plot *p = s->p;
	float *db = malloc((size_t)(p->n_slices + 1) * PLOT_BANDS * sizeof(*db));
	double strongest = -INFINITY;
	if (!db)
		return ERR_NOMEM;
	for (unsigned i = 0; i < p->n_slices; i++) {
		for (unsigned k = 0; k < PLOT_BANDS; k++) {
			double level = plot_band_db(p, i, k);
			strongest = fmax(strongest, level);
			db[(size_t)i * PLOT_BANDS + k] = (float)level;
		}
	}
	s->strongest_db = strongest > -150 ? fmin(30, 5 * ceil(strongest / 5)) : 0;
	if (p->n_slices)
		paint_spectrum(s, db);
	free(db);
	return ERR_OK;
}

/* ---- all together ---- */

static void divide(struct scene *s)
{
	double rest = PANELS_BOTTOM - PANELS_TOP - PANEL_GAP, top = PANELS_TOP;
	if (s->m->has_loudness)
		rest -= PANEL_GAP;
	s->waves = (struct box){ LEFT, top, WIDTH, round(rest * ((s->m->has_loudness ? 0.34 : 0.5) + (s->n_lanes > 4 ? 0.08 : 0))) };
	top += s->waves.height + PANEL_GAP;
	if (s->m->has_loudness) {
		s->loudness_box = (struct box){ LEFT, top, WIDTH, round(rest * (s->n_lanes > 4 ? 0.24 : 0.26)) };
		top += s->loudness_box.height + PANEL_GAP;
	}
	s->spectrum = (struct box){ LEFT, top, WIDTH, PANELS_BOTTOM - top };
}

static void scale(struct scene *s)
{
	double peak = 0;
	for (unsigned c = 0; c < s->n_lanes; c++)
		peak = fmax(peak, (double)s->m->amplitude.channels[c].levels.peak);
	/* A lane is full scale or more; of a quiet track as much as it needs, in steps of 6 dB. */
	s->reach = 1;
	while (peak > s->reach && s->reach < 1024)
		s->reach *= 2;
	while (peak > 0 && peak <= s->reach / 4 && s->reach > 1e-6)
		s->reach /= 2;
	double loudest = fmax(s->loudness.momentary_max_lufs, s->loudness.integrated_lufs + 6); /* NAN passes */
	s->loudest_lufs = isnan(loudest) ? 0 : 6 * ceil((loudest + 1) / 6);
	for (unsigned i = 0; i < s->p->n_columns; i++) {
		s->has_lost |= is_gap(&s->p->columns[i], true);
		s->has_absent |= is_gap(&s->p->columns[i], false);
	}
	s->has_silence = s->m->has_silence && silence_count(&s->m->silence) > 0;
}

static void draw_panels(struct scene *s)
{
	struct box boxes[3 + PLOT_MAX_LANES];
	unsigned n = 0;
	for (unsigned c = 0; c < s->n_lanes; c++)
		boxes[n++] = lane_box(s, c);
	if (s->m->has_loudness)
		boxes[n++] = s->loudness_box;
	for (unsigned i = 0; i < n; i++)
		fill(s, boxes[i], PANEL, 1);
	if (s->p->end_frame == 0)
		return;
	for (unsigned i = 0; i < n; i++)
		shade_silence(s, boxes[i]);
	draw_time(s, boxes, n);
	draw_waves(s);
	if (s->m->has_loudness)
		draw_loudness(s);
	boxes[n++] = s->spectrum;
	for (unsigned i = 0; i < n; i++) {
		shade_gaps(s, boxes[i], false);
		shade_gaps(s, boxes[i], true);
	}
	for (unsigned c = 0; c < s->n_lanes; c++)
		draw_peak(s, lane_box(s, c), c);
	draw_frequencies(s);
}

enum err picture_draw(struct canvas *c, const struct meter *m)
{
	struct scene s = {
		.c = c, .m = m, .p = &m->plot, .loudness = meter_loudness(m), .n_lanes = m->plot.n_lanes,
		.duration_s = meter_seconds(m, m->plot.end_frame),
	};
	enum err e = canvas_begin(c, PICTURE_WIDTH, PICTURE_HEIGHT, GROUND);
	if (e)
		return e;
	divide(&s);
	scale(&s);
	draw_titles(&s);
	caption_waves(&s);
	if (m->has_loudness)
		caption_loudness(&s);
	caption(&s, s.spectrum, "Spectrum", "Hz");
	fill(&s, s.spectrum, PANEL, 1);
	if ((e = draw_spectrum(&s)))
		return e;
	draw_panels(&s);
	draw_colour_bar(&s);
	if (m->plot.end_frame == 0)
		text(&s, (LEFT + RIGHT) / 2, s.waves.y + s.waves.height / 2 + 5, CANVAS_CENTRE, usual, DIM, "no audio came");
	return ERR_OK;
}
