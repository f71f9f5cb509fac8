/*
 * How `weir top` shows its list: a table cut to the terminal's width, or JSON; and the terminal itself, taken over and given
 * back as it was.
 */
#ifndef STAGE_TOPVIEW_H
#define STAGE_TOPVIEW_H

#include "stage/toplist.h"

#include <signal.h>
#include <stdio.h>
#include <termios.h>

struct topview_screen {
	bool taken;
	bool has_keys;            /* standard input is a terminal: kept as found in `before` */
	bool colour;
	unsigned columns, rows;   /* of the picture before; another size clears all */
	struct termios before;
};

/*
 * The table, its heading first.  Columns that do not fit into so many characters are left out, the least needed first; lines
 * that do not fit into so many rows are counted in the last.  0 rows: all of them.  colour: lines with new losses stand out.
 */
void topview_table(FILE *to, const struct toplist *l, unsigned columns, unsigned rows, bool colour, const char *line_end);
/* One object on one line: {"tools": [...]}. */
void topview_json(FILE *to, const struct toplist *l);

/* Another screen, no cursor, keys at once.  Only where standard output is a terminal.  Role: control. */
void topview_begin(struct topview_screen *s);
/* The picture, as large as the terminal is now. */
void topview_draw(struct topview_screen *s, const struct toplist *l, double every_s);
/* Wait until a moment of CLOCK_MONOTONIC.  Returns: 'q', another key, or 0 when it came, when *stop was set, or the size changed. */
int topview_wait(struct topview_screen *s, int64_t until_ns, const volatile sig_atomic_t *stop);
/* As it was before.  Safe when it never began. */
void topview_end(struct topview_screen *s);

#endif
