/*
 * The running tools of a user, in pipeline order, with the counters they publish (publish.h): what `weir top` shows.
 *
 * All is read from /proc: which processes are tools (the note in the executable), what they take of the machine, which of them
 * writes into a pipe that another reads.  Each is asked for new numbers and given a moment to answer; one that is stopped
 * keeps its old ones.
 */
#ifndef STAGE_TOPLIST_H
#define STAGE_TOPLIST_H

#include "base/err.h"
#include "tool/publish.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TOPLIST_MAX_ROWS 256u
#define TOPLIST_MAX_PIPES 64u

/* An end of a pipe or FIFO. */
struct toplist_pipe {
	dev_t dev;
	ino_t ino;
	bool writes;
};

struct toplist_row {
	int32_t pid;
	char tool[16];
	char state;               /* as in proc(5): R S D T … */
	unsigned pipeline, stage; /* from 1 on */
	unsigned n_before;        /* rows whose output it reads */
	double cpu_pct;           /* of one CPU, since the update before */
	double allocs_per_s;
	uint64_t rss_kib;
	bool has_counters;
	struct publish_counters c;
	bool was_late, has_lost;  /* more than at the update before: ticks, frames */
	/* private */
	uint64_t start_ticks;
	bool is_seen, is_new;
	const struct publish_page *page;
	uint64_t cpu_ticks;
	struct publish_counters before;
	int64_t cpu_read_ns;
	struct toplist_pipe pipes[TOPLIST_MAX_PIPES];
	unsigned n_pipes;
};

struct toplist {
	struct toplist_row *rows; /* in order */
	unsigned n_rows, n_pipelines;
	unsigned n_more;          /* tools there was no room for */
	/* private */
	int proc_fd;
	uint64_t ticks_per_s;
};

enum err toplist_init(struct toplist *l, struct err_why *why) WEIR_MUSTUSE;
/* Look again.  Takes up to 50 ms for the answers.  Role: io. */
enum err toplist_update(struct toplist *l, struct err_why *why) WEIR_MUSTUSE;
void toplist_release(struct toplist *l);

/* Put rows in order: pipelines by their oldest process, in them what writes before what reads.  For the tests too. */
void toplist_sort(struct toplist_row *rows, unsigned n, unsigned *n_pipelines);

#endif
