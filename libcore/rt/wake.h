/*
 * How a deadline thread wakes an io thread: it posts and never waits.  Posts are counted, so none is lost that comes
 * before the wait.
 */
#ifndef RT_WAKE_H
#define RT_WAKE_H

#include "base/role.h"

#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct wake {
	sem_t sem;
};

void wake_init(struct wake *w);
void wake_release(struct wake *w);
/* Role: any. */
WEIR_DEADLINE void wake_post(struct wake *w);
/* Wait for a post, a signal, or limit_ns.  Takes all posts there are.  Role: io. */
void wake_wait(struct wake *w, int64_t limit_ns);

/*
 * Sleep until a moment of CLOCK_MONOTONIC, or until *stop is set: a moment, not a while, so that being late once does not
 * make all that follows late.  Role: io.
 */
void wake_sleep_until(int64_t until_ns, const volatile sig_atomic_t *stop);

#endif
