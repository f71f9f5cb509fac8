/*
 * Meters as bars on a terminal: for each channel the peak, falling slowly, a mark that holds the highest, and what was
 * over; for each track its loudness.  Makes the text with its escape sequences and prints nothing; time is an argument.
 *
 * No line is wider than the terminal less one column, and there are never more lines than it has: what does not fit is
 * left out, numbers last.
 */
#ifndef METER_BARS_H
#define METER_BARS_H

#include "meter/meter.h"

#include <stdbool.h>
#include <stddef.h>

#define BARS_LOW_DB (-60.0)       /* the bar's left end; its right end is 0 dB */
#define BARS_FALL_DB_PER_S 20.0
#define BARS_HOLD_S 1.5

struct bars_channel {
	double shown_db;          /* the end of the bar */
	double hold_db, hold_until_s;
};

/* What the text may be made of. */
struct bars_style {
	bool utf8;                /* block elements; else '#' and '|' */
	bool colour;
};

struct bars {
	struct bars_style style;
	unsigned columns, rows;   /* of the terminal, at the last drawing; 0 before */
	unsigned n_lines;         /* that stand on it */
	double last_s;            /* time of the last drawing */
	struct bars_channel *channels; /* of all meters, in order */
	unsigned n_channels;
	char *text;               /* what to write to the terminal; ends with a 0 byte */
	size_t n_bytes, room_bytes;
	unsigned line_columns;    /* used of the line at work */
};

void bars_init(struct bars *b, struct bars_style style);
void bars_release(struct bars *b);

/*
 * The text that draws n meters over what was drawn before, for a terminal of this size (at least 1 × 1).  Takes the
 * meters' recent peaks (AMPLITUDE_BARS).  now_s never goes back.  Allocates only when there is more to draw than ever
 * before.  Returns: ERR_OK with b->text, ERR_NOMEM.
 */
enum err bars_draw(struct bars *b, struct meter *const *meters, unsigned n_meters, unsigned columns, unsigned rows,
	double now_s) WEIR_MUSTUSE;

/* The text that takes everything away again; "" if nothing stands. */
enum err bars_clear(struct bars *b) WEIR_MUSTUSE;

#endif
