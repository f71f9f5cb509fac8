/*
 * How a thread with a deadline keeps its time.  A tick is one period answered: from the moment it was due to the moment its
 * work was done.  It is late when that took longer than the period: whoever waited for it had to go without.
 *
 * One thread ticks, any other reads.  Nothing is locked, and nothing is allocated: durations are counted in bins whose
 * widths grow with the duration, eight to an octave, so that a quantile is known to 13 % upwards.
 */
#ifndef RT_TICK_H
#define RT_TICK_H

#include "base/role.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TICK_BINS 240u /* up to 2^42 ns, more than an hour */

struct tick {
	atomic_bool on;           /* off: a tick costs one look at this */
	/* written by the thread that ticks */
	atomic_uint_fast64_t n, late;
	atomic_uint_fast64_t max_ns;      /* the longest */
	atomic_uint_fast64_t max_late_ns; /* by which one was later than it may be */
	atomic_uint_fast64_t bins[TICK_BINS];
	/* that thread's own */
	bool begun, has_line;
	int64_t due_ns, period_ns;
};

/* t may be NULL. */
static inline bool tick_is_on(const struct tick *t)
{
	return t && atomic_load_explicit(&t->on, memory_order_relaxed);
}

/* What several threads did together, for a reader. */
struct tick_sum {
	uint64_t n, late, max_ns, max_late_ns;
	uint64_t bins[TICK_BINS];
};

/*
 * A tick begins that was due at due_ns (CLOCK_MONOTONIC) and has period_ns of time.  t may be NULL: nothing is measured.
 * Role: any, always the same thread.
 */
WEIR_DEADLINE void tick_begin_at(struct tick *t, int64_t due_ns, int64_t period_ns);
/*
 * The same, where nobody says when it was due: a period after the one before, on a line through those that came first.
 * A tick late by a whole period begins a line of its own, so one late tick is counted once.
 */
WEIR_DEADLINE void tick_begin(struct tick *t, int64_t period_ns);
/* Its work is done. */
WEIR_DEADLINE void tick_end(struct tick *t);

/* Add what t has counted so far to *sum.  Role: any. */
void tick_add(struct tick_sum *sum, const struct tick *t);
/* The duration that a part of all ticks stayed below (0.999: all but one of a thousand); 0 without ticks.  Role: any. */
int64_t tick_quantile_ns(const struct tick_sum *sum, double part);

#endif
