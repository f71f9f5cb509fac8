/* Ticks: what is late, how long they take, and that off is off. */
#include "check.h"

#include "base/units.h"
#include "rt/clock.h"
#include "rt/tick.h"
#include "rt/wake.h"

#include <string.h>

/* A tick that was due so long ago is one that took so long, and the little more that the machine takes. */
static void took(struct tick *t, int64_t ns, int64_t period_ns)
{
	tick_begin_at(t, clock_now_ns() - ns, period_ns);
	tick_end(t);
}

static void test_off(void)
{
	struct tick t = { 0 };

	took(&t, UNITS_NS_PER_S, 1);
	tick_begin(&t, 1);
	tick_end(&t);
	tick_begin(NULL, 1);
	tick_begin_at(NULL, 0, 1);
	tick_end(NULL);
	CHECK_EQ(atomic_load(&t.n), 0);
	CHECK_EQ(atomic_load(&t.late), 0);
	CHECK(!tick_is_on(NULL) && !tick_is_on(&t));
}

static void test_late(void)
{
	struct tick t = { .on = true };

	took(&t, 5 * UNITS_NS_PER_S, 100 * UNITS_NS_PER_S);
	CHECK_EQ(atomic_load(&t.late), 0);
	took(&t, 50 * UNITS_NS_PER_S, 10 * UNITS_NS_PER_S);
	CHECK_EQ(atomic_load(&t.n), 2);
	CHECK_EQ(atomic_load(&t.late), 1);
	CHECK_NEAR((double)atomic_load(&t.max_late_ns), 40e9, 5e9);
	CHECK_NEAR((double)atomic_load(&t.max_ns), 50e9, 5e9);
	/* Begun before it was due. */
	took(&t, -UNITS_NS_PER_S, UNITS_NS_PER_S);
	CHECK_EQ(atomic_load(&t.late), 1);
	/* An end without a begin is none. */
	tick_end(&t);
	CHECK_EQ(atomic_load(&t.n), 3);
}

/* Who is not told when it was due: late once, and the next ones are not. */
static void test_line(void)
{
	struct tick t = { .on = true };
	const int64_t period_ns = UNITS_NS_PER_S / 5;

	for (int i = 0; i < 3; i++) {
		tick_begin(&t, period_ns);
		tick_end(&t);
	}
	/* They came earlier than a period: the line begins at the last. */
	CHECK_EQ(atomic_load(&t.late), 0);
	wake_sleep_until(clock_now_ns() + 3 * period_ns, NULL);
	tick_begin(&t, period_ns);
	tick_end(&t);
	CHECK_EQ(atomic_load(&t.late), 1);
	tick_begin(&t, period_ns);
	tick_end(&t);
	tick_begin(&t, period_ns);
	tick_end(&t);
	CHECK_EQ(atomic_load(&t.late), 1);
	CHECK_EQ(atomic_load(&t.n), 6);
}

static void test_quantile(void)
{
	static struct tick a = { .on = true }, b = { .on = true };
	struct tick_sum sum = { 0 };

	CHECK_EQ(tick_quantile_ns(&sum, 0.999), 0);
	/* 1998 of 100 s, two of 1000 s, by two threads: so long that what the machine adds is nothing. */
	for (int i = 0; i < 999; i++) {
		took(&a, 100 * UNITS_NS_PER_S, UNITS_NS_PER_S * 2000);
		took(&b, 100 * UNITS_NS_PER_S, UNITS_NS_PER_S * 2000);
	}
	took(&a, 1000 * UNITS_NS_PER_S, UNITS_NS_PER_S * 2000);
	took(&b, 1000 * UNITS_NS_PER_S, UNITS_NS_PER_S * 2000);
	tick_add(&sum, &a);
	tick_add(&sum, &b);
	CHECK_EQ(sum.n, 2000);
	double p999 = (double)tick_quantile_ns(&sum, 0.999), all = (double)tick_quantile_ns(&sum, 1);
	CHECK(p999 >= 100e9 && p999 <= 113e9);
	CHECK_NEAR(all, 1000e9, 10e9);
	/* Every size falls into a bin that is no more than an eighth wider than what it holds. */
	for (int64_t ns = 20000; ns < 2000 * UNITS_NS_PER_S; ns = ns * 11 / 10) {
		static struct tick one, zero;
		struct tick_sum s = { 0 };
		memcpy(&one, &zero, sizeof(one));
		atomic_store(&one.on, true);
		took(&one, ns, UNITS_NS_PER_S);
		tick_add(&s, &one);
		s.max_ns = UINT64_MAX / 2;
		double top = (double)tick_quantile_ns(&s, 0.999), is = (double)atomic_load(&one.max_ns);
		CHECK(top >= is && top <= is * 1.13 + 1024);
	}
}

int main(void)
{
	CHECK_RUN(test_off);
	CHECK_RUN(test_late);
	CHECK_RUN(test_line);
	CHECK_RUN(test_quantile);
	return check_end();
}
