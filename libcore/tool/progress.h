/*
 * Progress of long work on stderr, when stderr is a terminal and nobody said -q: position, of what, speed, time left.
 * Of a pipeline only the last tool shows it, whose standard output is no pipe: they share one line.
 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include "tool/tool.h"

struct progress {
	bool on;
	struct tool *tool;        /* its messages take the line away */
	int64_t start_ns, next_ns;
};

void progress_begin(struct progress *p, struct tool *t);
/* Cheap: prints at most ten times a second.  total_s < 0: unknown. */
void progress_update(struct progress *p, double position_s, double total_s);
/* Clears the line. */
void progress_end(struct progress *p);

#endif
