#include "rt/wake.h"

#include "base/units.h"
#include "rt/clock.h"

#include <errno.h>
#include <time.h>

void wake_init(struct wake *w)
{
	(void)sem_init(&w->sem, 0, 0);
}

void wake_release(struct wake *w)
{
	(void)sem_destroy(&w->sem);
}

void wake_wait(struct wake *w, int64_t limit_ns)
{
	role_forbid(ROLE_DEADLINE);
	int64_t until_ns = clock_now_ns() + limit_ns;
	struct timespec until = { .tv_sec = until_ns / UNITS_NS_PER_S, .tv_nsec = until_ns % UNITS_NS_PER_S };

	(void)sem_clockwait(&w->sem, CLOCK_MONOTONIC, &until);
	while (!sem_trywait(&w->sem))
		;
}

void wake_sleep_until(int64_t until_ns, const volatile sig_atomic_t *stop)
{
	role_forbid(ROLE_DEADLINE);
	struct timespec until = { .tv_sec = until_ns / UNITS_NS_PER_S, .tv_nsec = until_ns % UNITS_NS_PER_S };

	while (!(stop && *stop) && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}
