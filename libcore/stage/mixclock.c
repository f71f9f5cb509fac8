#include "stage/mixclock.h"

#include "base/units.h"
#include "rt/wake.h"

#include <time.h>

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UNITS_NS_PER_S + now.tv_nsec;
}

bool mixclock_runs(const struct mixclock *c)
{
	return c->is_live && c->start_ns;
}

void mixclock_start(struct mixclock *c, int64_t until)
{
	if (!c->start_ns)
		c->start_ns = now_ns() - units_to_ns(until - c->first_pos, c->rate_hz, 1);
}

int64_t mixclock_due_ns(const struct mixclock *c, int64_t pos)
{
	return c->start_ns + units_to_ns(pos - c->first_pos, c->rate_hz, 1);
}

int64_t mixclock_left_ns(const struct mixclock *c, int64_t until)
{
	return mixclock_due_ns(c, until) + c->margin_ns - now_ns();
}

static int64_t earliest_ns(const struct mixclock *c, int64_t until)
{
	return mixclock_due_ns(c, until) - c->margin_ns;
}

bool mixclock_is_early(const struct mixclock *c, int64_t until)
{
	return now_ns() < earliest_ns(c, until);
}

void mixclock_sleep(const struct mixclock *c, int64_t until)
{
	wake_sleep_until(earliest_ns(c, until), c->stop);
}
