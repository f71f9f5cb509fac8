#include "meter/bars.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Lines are drawn in place: the cursor goes up over the lines of the last drawing, each line is written and the rest of
 * it erased.  When the terminal has changed its size nobody knows where those lines are now (some terminals fold them
 * anew, some cut them), so the screen is cleared.
 *
 *	1 talk  0:00:12.3  I -23.1 LUFS  TP -1.3 dBTP  LRA 4.2 LU
 *	FL    ██████████████████████████████████░░░░░░░░░│░░░░░░  -12.3   -3.1
 *	FR    ████████████████████████████████░░░░░░░░░░░░│░░░░░  -14.0   -2.9 OVER 3
 *	M     █████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░  -22.8 LUFS
 */

#define NAME_COLUMNS 6u
#define NUMBERS_COLUMNS 16u         /* behind a bar: now and the highest */
#define OVER_COLUMNS 10u
#define MIN_BAR_COLUMNS 6u
#define BYTES_PER_COLUMN 4u         /* a block element, and some for the colours in between */
#define BYTES_PER_LINE 160u         /* colours, erasing, the end of the line */
#define YELLOW_DB (-9.0)            /* the highest level that is permitted by a quasi-peak meter */
#define RED_DB (-1.0)               /* the highest true peak of EBU R 128 */

void bars_init(struct bars *b, struct bars_style style)
{
	*b = (struct bars){ .style = style };
}

void bars_release(struct bars *b)
{
	free(b->channels);
	free(b->text);
	memset(b, 0, sizeof(*b));
}

/* ---- text ---- */

/* bars_draw() has made room for everything; cutting is a second fence. */
static void put(struct bars *b, const char *text)
{
	size_t n = strlen(text);
	if (b->n_bytes + n + 1 > b->room_bytes)
		return;
	memcpy(b->text + b->n_bytes, text, n + 1);
	b->n_bytes += n;
}

static void put_colour(struct bars *b, const char *sgr)
{
	if (b->style.colour)
		put(b, sgr);
}

static unsigned columns_left(const struct bars *b)
{
	return b->columns > b->line_columns + 1 ? b->columns - 1 - b->line_columns : 0;
}

/* ASCII of which as much is written as the line still takes. */
static void put_ascii(struct bars *b, const char *text)
{
	size_t n = strlen(text), left = columns_left(b);
	n = n < left ? n : left;
	if (b->n_bytes + n + 1 > b->room_bytes)
		return;
	memcpy(b->text + b->n_bytes, text, n);
	b->n_bytes += n;
	b->text[b->n_bytes] = 0;
	b->line_columns += (unsigned)n;
}

/* The field whole, or not at all. */
WEIR_PRINTF(2, 3) static void put_field(struct bars *b, const char *fmt, ...)
{
	char field[160];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(field, sizeof(field), fmt, ap);
	va_end(ap);
	if (strlen(field) <= columns_left(b))
		put_ascii(b, field);
}

/*
 * At most `columns` of a name.  What is no ASCII is taken for two columns wide, so a line may come out shorter than it
 * could be, never longer; and as '?' where the terminal has no UTF-8.
 */
static void put_name(struct bars *b, const char *name, unsigned columns)
{
	const uint8_t *s = (const uint8_t *)name;
	unsigned used = 0, left = columns_left(b);
	columns = columns < left ? columns : left;
	for (size_t bytes = strlen(name), n; bytes; s += n, bytes -= n) {
		char c[8] = "?";
		unsigned length = utf8_length(s, bytes), wide = 1;
		n = length ? length : 1;
		if (length == 1 && *s >= 0x20 && *s != 0x7F) {
			c[0] = (char)*s;
		} else if (length > 1 && b->style.utf8) {
			memcpy(c, s, length);
			c[length] = 0;
			wide = 2;
		}
		if (used + wide > columns)
			break;
		put(b, c);
		used += wide;
	}
	b->line_columns += used;
}

static void pad_to(struct bars *b, unsigned column)
{
	while (b->line_columns < column && columns_left(b))
		put_ascii(b, " ");
}

static void end_line(struct bars *b)
{
	put_colour(b, "\033[0m");
	put(b, "\033[K\r\n");
	b->line_columns = 0;
	b->n_lines++;
}

/* "-12.3", or what stands for nothing. */
static const char *one_decimal(double db, char out[static 32])
{
	snprintf(out, 32, "%.1f", db);
	return isfinite(db) ? out : "--";
}

/* ---- bars ---- */

static unsigned cell_of(double db, unsigned n_cells)
{
	double cell = (db - BARS_LOW_DB) / -BARS_LOW_DB * n_cells;
	return cell > 0 ? (cell < n_cells ? (unsigned)cell : n_cells) : 0;
}

static const char *cell_colour(unsigned cell, unsigned n_cells)
{
	if (cell >= cell_of(RED_DB, n_cells))
		return "\033[31m";
	return cell >= cell_of(YELLOW_DB, n_cells) ? "\033[33m" : "\033[32m";
}

/* n_cells columns: full up to level_db, a mark at hold_db (NAN none). */
static void put_bar(struct bars *b, unsigned n_cells, double level_db, double hold_db, bool coloured)
{
	unsigned full = isfinite(level_db) ? cell_of(level_db, n_cells) : 0, mark = n_cells;
	const char *colour = "";
	if (isfinite(hold_db) && hold_db > BARS_LOW_DB)
		mark = cell_of(hold_db, n_cells) < n_cells ? cell_of(hold_db, n_cells) : n_cells - 1;
	for (unsigned i = 0; i < n_cells; i++) {
		const char *now = !coloured ? "\033[36m" : cell_colour(i, n_cells);
		if (i >= full && i != mark)
			now = "\033[90m";
		if (strcmp(now, colour) != 0)
			put_colour(b, colour = now);
		if (i == mark)
			put(b, b->style.utf8 ? "\u2502" : "|");
		else if (i < full)
			put(b, b->style.utf8 ? "\u2588" : "#");
		else
			put(b, b->style.utf8 ? "\u2591" : ".");
	}
	b->line_columns += n_cells;
	put_colour(b, "\033[0m");
}

/* Columns of the bars of a terminal this wide; 0: there is no room for any. */
static unsigned bar_columns(const struct bars *b)
{
	unsigned others = NAME_COLUMNS + NUMBERS_COLUMNS + OVER_COLUMNS + 1;
	if (b->columns >= others + 24)
		return b->columns - others;
	others -= OVER_COLUMNS; /* narrow: only the word, over the numbers */
	return b->columns >= others + MIN_BAR_COLUMNS ? b->columns - others : 0;
}

static void move_channel(struct bars_channel *c, double peak_db, double now_s, double passed_s)
{
	double fallen = BARS_FALL_DB_PER_S * passed_s;
	if (isnan(peak_db))
		peak_db = -(double)INFINITY;
	c->shown_db = fmax(peak_db, c->shown_db - fallen);
	if (now_s > c->hold_until_s)
		c->hold_db -= fallen;
	if (c->shown_db >= c->hold_db) {
		c->hold_db = c->shown_db;
		c->hold_until_s = now_s + BARS_HOLD_S;
	}
}

static void draw_channel(struct bars *b, const struct meter *m, unsigned i, const struct bars_channel *c)
{
	struct amplitude_values v = amplitude_read(&m->amplitude, i);
	unsigned n_cells = bar_columns(b);
	char now[32], highest[32];
	put_name(b, m->channel_names[i], NAME_COLUMNS - 1);
	pad_to(b, NAME_COLUMNS);
	if (n_cells)
		put_bar(b, n_cells, c->shown_db, c->hold_db, true);
	if (v.clipped_samples && columns_left(b) < NUMBERS_COLUMNS + OVER_COLUMNS) {
		put_colour(b, "\033[1;31m");
		put_field(b, " OVER");
		put_colour(b, "\033[0m");
		put_field(b, " %7s", one_decimal(v.sample_peak_dbfs, highest));
	} else {
		put_field(b, " %6s", c->shown_db > BARS_LOW_DB ? one_decimal(c->shown_db, now) : "--");
		put_field(b, " %7s", one_decimal(v.sample_peak_dbfs, highest));
		if (v.clipped_samples) {
			put_colour(b, "\033[1;31m");
			if (v.clipped_samples < 10000)
				put_field(b, " OVER %llu", (unsigned long long)v.clipped_samples);
			else
				put_field(b, " OVER >9k");
		}
	}
	end_line(b);
}

static void draw_loudness(struct bars *b, const char *name, double lufs)
{
	unsigned n_cells = bar_columns(b);
	char now[32];
	put_name(b, name, NAME_COLUMNS - 1);
	pad_to(b, NAME_COLUMNS);
	if (n_cells)
		put_bar(b, n_cells, lufs, (double)NAN, false);
	put_field(b, " %6s LUFS", one_decimal(lufs, now));
	end_line(b);
}

/* What matters most comes first; what does not fit is left out. */
static void draw_title(struct bars *b, const struct meter *m, const struct loudness_values *l)
{
	char text[32];
	double s = meter_seconds(m, continuity_span_frames(&m->continuity)), peak = meter_true_peak_dbtp(m);
	put_colour(b, "\033[1m");
	put_field(b, "%u ", m->id);
	if (m->name[0]) {
		put_name(b, m->name, b->columns / 4);
		put_field(b, "  ");
	}
	put_colour(b, "\033[0m");
	put_field(b, "%d:%02d:%04.1f", (int)(s / 3600), (int)fmod(s / 60, 60), fmod(floor(s * 10) / 10, 60));
	if (m->has_loudness)
		put_field(b, "  I %s LUFS", one_decimal(l->integrated_lufs, text));
	if (!m->amplitude.options.no_true_peak) {
		if (peak > RED_DB)
			put_colour(b, "\033[1;31m");
		put_field(b, "  TP %s dBTP", one_decimal(peak, text));
		put_colour(b, "\033[0m");
	}
	if (m->continuity.gaps)
		put_field(b, "  lost %llu", (unsigned long long)m->continuity.lost_frames);
	if (m->has_loudness)
		put_field(b, "  LRA %s LU", one_decimal(l->range_lu, text));
	end_line(b);
}

/* The label of a level, its last digit where the level lies, if the one before leaves room. */
static void put_tick(struct bars *b, unsigned n_cells, double db)
{
	char text[32];
	unsigned width = (unsigned)snprintf(text, sizeof(text), "%.0f", db), at = NAME_COLUMNS + cell_of(db, n_cells) + 1;
	at = at > NAME_COLUMNS + width ? at - width : NAME_COLUMNS;
	if (b->line_columns >= at && b->line_columns > 0)
		return;
	pad_to(b, at);
	put_field(b, "%s", text);
}

static void draw_scale(struct bars *b)
{
	unsigned n_cells = bar_columns(b);
	if (n_cells) {
		put_colour(b, "\033[90m");
		for (double db = BARS_LOW_DB; db <= 0; db += n_cells >= 40 ? 10 : 20)
			put_tick(b, n_cells, db);
	}
	end_line(b);
}

/* ---- drawing ---- */

static enum err reserve(struct bars *b, unsigned n_channels)
{
	size_t room = (size_t)(b->rows + 2) * (b->columns * BYTES_PER_COLUMN + BYTES_PER_LINE) + 64;
	if (room > b->room_bytes) {
		char *text = realloc(b->text, room);
		if (!text)
			return ERR_NOMEM;
		b->text = text;
		b->room_bytes = room;
	}
	if (n_channels > b->n_channels) {
		struct bars_channel *channels = realloc(b->channels, n_channels * sizeof(*channels));
		if (!channels)
			return ERR_NOMEM;
		b->channels = channels;
		const double nothing = -(double)INFINITY;
		while (b->n_channels < n_channels)
			channels[b->n_channels++] = (struct bars_channel){ nothing, nothing, 0 };
	}
	return ERR_OK;
}

/* The cursor to where the first line belongs. */
static void go_back(struct bars *b, bool resized)
{
	char up[32];
	if (resized) {
		put(b, "\033[H\033[2J");
	} else if (b->n_lines) {
		snprintf(up, sizeof(up), "\r\033[%uA", b->n_lines);
		put(b, up);
	} else {
		put(b, "\r"); /* over what another tool of the pipeline may have left there */
	}
	b->n_lines = 0;
}

/* The last line the terminal has is for the cursor. */
static bool has_room(const struct bars *b, unsigned n_lines)
{
	return b->n_lines + n_lines < b->rows;
}

static void draw_meter(struct bars *b, struct meter *m, struct bars_channel *channels)
{
	struct loudness_values l = meter_loudness(m);
	if (has_room(b, 1))
		draw_title(b, m, &l);
	unsigned i = 0;
	while (i < m->n_channels && has_room(b, 1 + (i + 1 < m->n_channels)))
		draw_channel(b, m, i, &channels[i]), i++;
	if (i < m->n_channels && has_room(b, 1)) {
		put_field(b, "and %u more channels", m->n_channels - i);
		end_line(b);
	}
	if (m->has_loudness && has_room(b, 2)) {
		draw_loudness(b, "M", l.momentary_lufs);
		draw_loudness(b, "S", l.short_term_lufs);
	}
}

enum err bars_draw(struct bars *b, struct meter *const *meters, unsigned n_meters, unsigned columns, unsigned rows,
	double now_s)
{
	unsigned n_channels = 0;
	for (unsigned i = 0; i < n_meters; i++)
		n_channels += meters[i]->n_channels;
	bool resized = b->n_lines && (columns != b->columns || rows != b->rows);
	double passed_s = b->last_s > 0 ? fmax(0, now_s - b->last_s) : 0;
	b->columns = columns;
	b->rows = rows;
	b->last_s = now_s;
	enum err e = reserve(b, n_channels);
	if (e)
		return e;

	b->n_bytes = 0;
	b->text[0] = 0;
	unsigned before = resized ? 0 : b->n_lines;
	go_back(b, resized);
	struct bars_channel *channels = b->channels;
	for (unsigned i = 0; i < n_meters; i++) {
		for (unsigned c = 0; c < meters[i]->n_channels; c++)
			move_channel(&channels[c], amplitude_recent_dbfs(&meters[i]->amplitude, c, AMPLITUDE_BARS), now_s, passed_s);
		amplitude_mark(&meters[i]->amplitude, AMPLITUDE_BARS);
		draw_meter(b, meters[i], channels);
		channels += meters[i]->n_channels;
	}
	if (n_meters && has_room(b, 1))
		draw_scale(b);
	if (before > b->n_lines)
		put(b, "\033[J");
	return ERR_OK;
}

enum err bars_clear(struct bars *b)
{
	enum err e = reserve(b, 0);
	if (e)
		return e;
	b->n_bytes = 0;
	b->text[0] = 0;
	if (b->n_lines) {
		go_back(b, false);
		put(b, "\033[J");
	}
	return ERR_OK;
}
