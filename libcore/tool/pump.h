/*
 * The standard life of a filter: read packets from an input, work on them, write packets, and keep every promise on the way:
 * flush before blocking, count, show progress, pass on what is not ours, tell the truth at the end.
 */
#ifndef TOOL_PUMP_H
#define TOOL_PUMP_H

#include "tool/input.h"
#include "tool/progress.h"
#include "tool/stats.h"
#include "tool/tool.h"
#include "wire/writer.h"

struct pump {
	struct tool *tool;
	struct input in;
	struct writer out;
	struct stats stats;
	struct progress progress;
	enum err (*idle)(void *stage); /* called when the input would block, before the flush: hand on what is held; NULL none */
	struct err_why why;       /* stays after pump_release() */
};

/* What a stage does with one packet: work, or pump_pass().  Called for TRACK, DATA, GAP, END of a track, CLOCK and unknown types. */
typedef enum err pump_packet_fn(void *stage, struct packet *p);
/* After the last packet: write what is held.  May be NULL. */
typedef enum err pump_finish_fn(void *stage);

/*
 * From the named input ("-" is stdin) to stdout.  options may be NULL.  Begins stats and progress.  *p must be zero.
 * Returns: ERR_ARG if stdout is a terminal; what input_open() says; p->why has the words.
 */
enum err pump_open(struct pump *p, struct tool *t, const char *input, const struct input_options *options) WEIR_MUSTUSE;

/* The same where p->in was opened already, to be looked at first. */
enum err pump_begin(struct pump *p, struct tool *t) WEIR_MUSTUSE;

/* Store the common counters for --stats, and show progress.  pump_run() does it; for tools with a loop of their own. */
void pump_count(struct pump *p);

/*
 * The loop.  Emits STREAM (its id derived from the input's) before anything else and END after everything.
 * Returns: ERR_OK; ERR_CUT if the input was truncated or damaged (the END says so too, p->why the words); else what
 * failed, with p->why.
 */
enum err pump_run(struct pump *p, pump_packet_fn *packet, pump_finish_fn *finish, void *stage) WEIR_MUSTUSE;

/* Hand a packet on as it is: TRACK is announced, DATA forwarded without a copy, GAP and END of a track written anew. */
enum err pump_pass(struct pump *p, struct packet *packet) WEIR_MUSTUSE;

/* Ends stats (their last line) and progress, closes everything.  Before tool_end(). */
void pump_release(struct pump *p);

#endif
