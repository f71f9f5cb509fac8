/*
 * --stats: counters of a tool as JSON Lines, from a thread of its own so that the work never prints.
 * Off costs nothing: no thread, and the counters are plain stores.
 */
#ifndef TOOL_STATS_H
#define TOOL_STATS_H

#include "tool/tool.h"

#include <pthread.h>
#include <stdatomic.h>


/* A tool's own number: a key and where it lies. */
struct stats_key {
	const char *key;             /* "clipped_samples" */
	const atomic_uint_fast64_t *value;
};

#define STATS_MAX_KEYS 16

struct stats {
	/* common counters: stored by the working thread, read by the printer */
	atomic_uint_fast64_t packets_in, packets_out, frames_in, frames_out, gaps, lost_frames, dropped_frames, damaged_bytes;
	atomic_uint_fast64_t late, max_late_us;
	struct stats_key extra[STATS_MAX_KEYS];
	unsigned n_extra;
	/* private */
	struct tool *tool;
	int fd;
	pthread_t thread;
	bool running;
	bool ending;                 /* under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int64_t start_ns, last_ns, last_cpu_ns;
	uint64_t ticks_per_s;
};

static inline void stats_set(atomic_uint_fast64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

static inline void stats_add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* A number of the tool's own, before stats_begin(). */
void stats_key(struct stats *s, const char *key, const atomic_uint_fast64_t *value);
/* Start the printer if t->stats is set.  Role: control. */
enum err stats_begin(struct stats *s, struct tool *t, struct err_why *why) WEIR_MUSTUSE;
/* Print the last line and stop the printer.  Safe when it never began. */
void stats_end(struct stats *s);

#endif
