/*
 * Bars of meters on standard error while a tool works, when that is a terminal and nobody said -q.
 */
#ifndef STAGE_LIVEBARS_H
#define STAGE_LIVEBARS_H

#include "meter/bars.h"
#include "tool/tool.h"

struct livebars {
	bool on;
	struct bars bars;
	int64_t start_ns, next_ns;
};

/* Looks at the terminal and at TERM, NO_COLOR and the locale's character set. */
void livebars_begin(struct livebars *l, const struct tool *t);

/* Cheap: draws at most twenty times a second, and nothing in the first half second, so that short work shows nothing. */
void livebars_update(struct livebars *l, struct meter *const *meters, unsigned n_meters);

/* Takes the bars away, and off until the next livebars_begin().  Safe when it never began. */
void livebars_end(struct livebars *l);

#endif
