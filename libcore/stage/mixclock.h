/*
 * The clock of a live mix: when a frame is due, and how late an input may be for it.
 *
 * It starts when the first block is there; that block's end is due at that moment.  A mix of files has none: is_live is false then,
 * and it never starts.
 */
#ifndef STAGE_MIXCLOCK_H
#define STAGE_MIXCLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct mixclock {
	bool is_live;
	int64_t margin_ns;           /* how late an input may be */
	uint32_t rate_hz;
	int64_t first_pos;           /* where the mix begins */
	int64_t start_ns;            /* monotonic: when its first frame was due; 0: it has not started */
	const volatile sig_atomic_t *stop;
};

bool mixclock_runs(const struct mixclock *c);
/* What is before `until` is there.  Only the first call counts. */
void mixclock_start(struct mixclock *c, int64_t until);
/* Monotonic: when frame `pos` is due. */
int64_t mixclock_due_ns(const struct mixclock *c, int64_t pos);
/* How long may still be waited for what is before `until`; negative: so late it is. */
int64_t mixclock_left_ns(const struct mixclock *c, int64_t until);
/* Is it too early for what is before `until`, by more than the margin? */
bool mixclock_is_early(const struct mixclock *c, int64_t until);
/* Sleep until it is not, or a stop.  Role: io, blocks. */
void mixclock_sleep(const struct mixclock *c, int64_t until);

#endif
