/*
 * What every program does the same way: begin (options, signals, help, version), messages, and the end (exit status).
 */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include "base/err.h"
#include "tool/opt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit statuses: cli.  A reader that went away ends the process by SIGPIPE (141 in a shell). */
enum tool_exit { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_CUT = 3 };

struct tool {
	const char *name;            /* "capture" */
	const char *synopsis;        /* "[options] SOURCE..." */
	const char *summary;         /* one line */
	bool quiet;
	int verbose;
	struct opt_optional stats;   /* --stats[=SECONDS] */
	const char *stats_path;      /* --stats-file */
	uint64_t n_suppressed;       /* repeated messages counted, not printed */
	char last_message[512];
	atomic_llong position_us;    /* media time the work has come to; 0 nowhere yet */
	atomic_bool line_shown;      /* a progress line stands on the terminal: cleared before anything else is printed */
};

/*
 * Parse options; --help and --version print and exit 0; wrong usage prints one line and exits 2.  Sets up signals:
 * SIGINT, SIGTERM and SIGHUP ask for a stop, a second one ends the process with 128 + number; SIGPIPE is ignored.
 * `t` must outlive the program's work (messages use it).  Role: control.
 */
void tool_begin(struct tool *t, const char *name, const char *synopsis, const char *summary, const struct opt *options,
	int *argc, char ***argv);

/* Non-zero once a stop was asked for.  While it is, blocking calls are interrupted every 20 ms, so none can miss it. */
extern volatile sig_atomic_t tool_stop;

/* One line to stderr, "name: thing: reason".  The same line again is counted and said as a number at the end. */
void tool_warn(struct tool *t, const char *thing, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* Take a progress line off the terminal, if there is one: before anything is printed past these functions. */
void tool_clear_line(struct tool *t);
/* Only with -v. */
void tool_note(struct tool *t, const char *thing, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* The line of a failure; nothing for ERR_OK, ERR_END, ERR_GONE, ERR_CUT without a reason. */
void tool_say(struct tool *t, enum err e, const struct err_why *why);
/* A usage mistake found after parsing: prints the line and exits 2. */
_Noreturn void tool_usage(struct tool *t, const char *thing, const char *fmt, ...) WEIR_PRINTF(3, 4);

/*
 * Say what went wrong (if it did), check that stdout took everything, and return the exit status for main().
 * ERR_GONE ends the process by SIGPIPE after that.
 */
int tool_end(struct tool *t, enum err e, const struct err_why *why);

/* "tool" in front of a message and control characters, bad UTF-8 escaped: a name that can be printed. */
const char *tool_printable(const char *text, char *out, size_t out_bytes);

#endif
