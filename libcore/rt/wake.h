/*
 * How a deadline thread wakes an io thread: it posts and never waits.  Posts are counted, so none is lost that comes
 * before the wait.
 */
#ifndef RT_WAKE_H
#define RT_WAKE_H

#include "base/role.h"

#include <semaphore.h>
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

#endif
