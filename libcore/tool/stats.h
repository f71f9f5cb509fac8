/*
 * --stats: counters of a tool as JSON Lines, from a thread of its own so that the work never prints; and the same counters
 * in a shared page, for `weir top` (publish.h).  Off costs nothing: no thread, and the counters are plain stores.
 */
#ifndef TOOL_STATS_H
#define TOOL_STATS_H

#include "rt/tick.h"
#include "tool/publish.h"
#include "tool/tool.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>


/* A tool's own number: a key and where it lies. */
struct stats_key {
	const char *key;             /* "clipped_samples" */
	const atomic_uint_fast64_t *value;
};

#define STATS_MAX_KEYS 32
#define STATS_MAX_TICKS 64

/*
 * Brings counters up to date that no working thread stores: the fill of a ring, what a callback counted.  Reads atomics and
 * stores counters, nothing else: it runs on the printer's thread or in a signal handler.
 */
typedef void stats_refresh(void *user);

struct stats {
	/* common counters: stored by the working thread, read by the printer */
	atomic_uint_fast64_t packets_in, packets_out, frames_in, frames_out, gaps, lost_frames, dropped_frames, damaged_bytes;
	atomic_uint_fast64_t late, max_late_us; /* beside those of the ticks */
	struct stats_key extra[STATS_MAX_KEYS];
	unsigned n_extra;
	/* private */
	struct tick *ticks[STATS_MAX_TICKS];
	atomic_uint n_ticks;
	atomic_bool has_ring, has_drift;
	atomic_uint_fast64_t ring_pct, ring_low_pct, ring_high_pct;
	atomic_int_fast64_t drift_ppb;
	atomic_bool on;
	struct tool *tool;
	int fd;
	pthread_t thread;
	bool running;
	bool unasked;                /* WEIR_STATS: the page is kept fresh */
	sem_t wake;                  /* posted when the page is asked for, and at the end */
	atomic_bool ending, asked, line_due;
	pthread_mutex_t lock;        /* of refresh */
	_Atomic(stats_refresh *) refresh;
	void *refresh_user;
	int64_t start_ns, last_ns, last_cpu_ns;
	struct publish publish;
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

/* Does anybody look?  If not, counters that cost something to find need not be stored.  It may begin at any time. */
static inline bool stats_on(const struct stats *s)
{
	return atomic_load_explicit(&s->on, memory_order_relaxed);
}

/* How full the ring is, was at the least and at the most: percents of its size. */
static inline void stats_ring(struct stats *s, uint64_t now_pct, uint64_t low_pct, uint64_t high_pct)
{
	stats_set(&s->ring_pct, now_pct);
	stats_set(&s->ring_low_pct, low_pct);
	stats_set(&s->ring_high_pct, high_pct);
	atomic_store_explicit(&s->has_ring, true, memory_order_relaxed);
}

/* How many parts in a billion the device, or the peer, is slower than what it is compared with. */
static inline void stats_drift(struct stats *s, int64_t ppb)
{
	atomic_store_explicit(&s->drift_ppb, ppb, memory_order_relaxed);
	atomic_store_explicit(&s->has_drift, true, memory_order_relaxed);
}

/* A number of the tool's own, before stats_begin(). */
void stats_key(struct stats *s, const char *key, const atomic_uint_fast64_t *value);
/*
 * The ticks of one more deadline thread, zeroed by the caller; they stay until stats_end().  They are switched on when
 * somebody looks.  At most STATS_MAX_TICKS.  Role: control, the thread that calls stats_begin().
 */
void stats_tick(struct stats *s, struct tick *t);
/*
 * Have refresh(user) called before counters are shown; NULL: no more.  Once this returns, the one before is not running and
 * will not be called.  Role: control, the main thread.
 */
void stats_watch(struct stats *s, stats_refresh *refresh, void *user);
/* Start the printer if t->stats is set, and answer `weir top` from now on.  Role: control, the main thread. */
enum err stats_begin(struct stats *s, struct tool *t, struct err_why *why) WEIR_MUSTUSE;
/* A line now, as well as when its time comes: something changed that whoever reads them wants to know at once.  Role: io. */
void stats_now(struct stats *s);
/* Print the last line and stop the printer.  Safe when it never began. */
void stats_end(struct stats *s);

#endif
