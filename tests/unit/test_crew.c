/* The crew: results in the order of giving, one lane's slots one after another, several threads at once. */
#include "check.h"

#include "tool/crew.h"

#include <stdatomic.h>
#include <unistd.h>

struct lane {
	atomic_int inside;        /* threads in it now */
	unsigned next;            /* number that must come next */
};

struct slot {
	struct lane *lane;
	unsigned number;
	bool in_order, alone;
	unsigned result;
};

static void work(void *p)
{
	struct slot *s = p;
	s->alone = atomic_fetch_add(&s->lane->inside, 1) == 0;
	s->in_order = s->lane->next == s->number;
	s->lane->next = s->number + 1;
	unsigned x = s->number;
	for (unsigned i = 0; i < 50 + s->number % 7 * 300; i++)
		x = x * 1664525u + 1013904223u;
	s->result = x;
	atomic_fetch_sub(&s->lane->inside, 1);
}

static unsigned expected(unsigned number)
{
	struct lane lane = { .next = number };
	struct slot s = { .lane = &lane, .number = number };
	work(&s);
	return s.result;
}

static void run_with(unsigned n_threads)
{
	struct lane lanes[3] = { 0 };
	unsigned given[3] = { 0 }, taken[3] = { 0 }, order[20000], n_order = 0, at = 0;
	struct crew c = { 0 };
	struct err_why why = { 0 };

	if (!CHECK_OK(crew_open(&c, n_threads, 8, sizeof(struct slot), work, "worker", &why)))
		return;
	for (unsigned i = 0; i < 20000 || at < n_order;) {
		struct slot *s = i < 20000 ? crew_slot(&c) : NULL;
		if (s) {
			unsigned lane = (unsigned)check_rand_below(3);
			*s = (struct slot){ .lane = &lanes[lane], .number = given[lane]++ };
			order[n_order++] = lane;
			crew_give(&c, &lanes[lane]);
			i++;
			continue;
		}
		s = crew_take(&c, true);
		if (!CHECK(s != NULL))
			break;
		unsigned lane = order[at++];
		CHECK(s->lane == &lanes[lane]);
		CHECK_EQ(s->number, taken[lane]++);
		CHECK(s->alone && s->in_order);
		if (s->number % 100 == 0)
			CHECK_EQ(s->result, expected(s->number));
		crew_free(&c);
	}
	CHECK_EQ(at, 20000);
	CHECK(!crew_take(&c, true));
	crew_release(&c);
	crew_release(&c);
}

static void test_one_thread(void)
{
	run_with(1);
}

static void test_three_threads(void)
{
	run_with(3);
}

/* Two lanes are worked on at the same time: each waits for the other. */
static atomic_int met;

static void meet(void *p)
{
	(void)p;
	atomic_fetch_add(&met, 1);
	for (unsigned i = 0; i < 5000 && atomic_load(&met) < 2; i++)
		usleep(1000);
}

static void test_lanes_run_side_by_side(void)
{
	struct crew c = { 0 };
	int a, b;

	CHECK_OK(crew_open(&c, 2, 4, 64, meet, "worker", NULL));
	CHECK(crew_slot(&c) != NULL);
	crew_give(&c, &a);
	CHECK(crew_slot(&c) != NULL);
	crew_give(&c, &b);
	CHECK(crew_take(&c, true) != NULL);
	CHECK_EQ(atomic_load(&met), 2);
	crew_release(&c);
}

static void test_limits(void)
{
	struct crew c = { 0 };
	struct err_why why = { 0 };
	CHECK_EQ(crew_open(&c, 65, 4, 64, meet, "worker", &why), ERR_ARG);
	CHECK(strstr(why.reason, "1 to 64"));
	crew_release(&c);
}

int main(void)
{
	check_seed(11);
	CHECK_RUN(test_one_thread);
	CHECK_RUN(test_three_threads);
	CHECK_RUN(test_lanes_run_side_by_side);
	CHECK_RUN(test_limits);
	return check_end();
}
