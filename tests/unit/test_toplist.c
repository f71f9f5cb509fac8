/* The order in which `weir top` shows tools, and the page they publish on. */
#include "check.h"

#include "tool/publish.h"
#include "stage/toplist.h"

#include <pthread.h>
#include <string.h>

static struct toplist_row row(int32_t pid, uint64_t start)
{
	return (struct toplist_row){ .pid = pid, .start_ticks = start };
}

static void end_of(struct toplist_row *r, ino_t pipe, bool writes)
{
	r->pipes[r->n_pipes++] = (struct toplist_pipe){ .dev = 13, .ino = pipe, .writes = writes };
}

static void test_chain(void)
{
	/* The shell began the last one first. */
	struct toplist_row r[3] = { row(10, 100), row(11, 100), row(12, 99) };
	unsigned n;

	end_of(&r[0], 1, true);
	end_of(&r[1], 1, false);
	end_of(&r[1], 2, true);
	end_of(&r[2], 2, false);
	toplist_sort(r, 3, &n);
	CHECK_EQ(n, 1);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(r[i].pid, 10 + i);
		CHECK_EQ(r[i].stage, (unsigned)i + 1);
		CHECK_EQ(r[i].n_before, i ? 1u : 0u);
	}
}

/* Two captures into one mux, and a pipeline of its own that is older; another device's pipe of the same number is another. */
static void test_tree(void)
{
	struct toplist_row r[5] = { row(20, 50), row(21, 51), row(22, 52), row(23, 10), row(24, 60) };
	unsigned n;

	end_of(&r[0], 7, false);
	end_of(&r[0], 8, false);
	end_of(&r[1], 7, true);
	end_of(&r[2], 8, true);
	end_of(&r[4], 8, false);
	r[4].pipes[0].dev = 14;
	toplist_sort(r, 5, &n);
	CHECK_EQ(n, 3);
	CHECK_EQ(r[0].pid, 23);
	CHECK_EQ(r[1].pid, 21);
	CHECK_EQ(r[2].pid, 22);
	CHECK_EQ(r[3].pid, 20);
	CHECK_EQ(r[3].n_before, 2);
	CHECK_EQ(r[3].pipeline, 2);
	CHECK_EQ(r[4].pid, 24);
	CHECK_EQ(r[4].pipeline, 3);
}

/* A tool with both ends of a pipe, and two that feed each other: everybody is there once. */
static void test_ring(void)
{
	struct toplist_row r[3] = { row(30, 5), row(31, 6), row(32, 7) };
	unsigned n;

	end_of(&r[0], 1, true);
	end_of(&r[0], 1, false);
	end_of(&r[1], 2, true);
	end_of(&r[1], 3, false);
	end_of(&r[2], 3, true);
	end_of(&r[2], 2, false);
	toplist_sort(r, 3, &n);
	CHECK_EQ(n, 2);
	CHECK_EQ(r[0].n_before, 0);
	CHECK_EQ(r[1].pid, 31);
	CHECK_EQ(r[1].stage, 1);
	CHECK_EQ(r[2].pid, 32);
	CHECK_EQ(r[2].stage, 2);
	toplist_sort(r, 0, &n);
	CHECK_EQ(n, 0);
}

static atomic_bool enough;

static void *write_on(void *user)
{
	struct publish *p = user;
	struct publish_counters c = { 0 };

	for (uint64_t i = 1; !atomic_load(&enough); i++) {
		c.packets_in = c.frames_out = c.allocs = c.ring_high_pct = i;
		c.now_ns = (int64_t)i;
		publish_write(p, &c);
	}
	return NULL;
}

/* What is read belongs together. */
static void test_page(void)
{
	struct publish p = { 0 };
	struct publish_counters c;
	pthread_t thread;
	uint64_t last = 0;
	unsigned good = 0;

	CHECK(publish_make(&p));
	CHECK(publish_make(&p));
	CHECK(!publish_read(p.page, &c)); /* nothing was written yet */
	CHECK_EQ(pthread_create(&thread, NULL, write_on, &p), 0);
	for (int i = 0; i < 200000 || !good; i++) {
		if (!publish_read(p.page, &c))
			continue;
		good++;
		if (c.packets_in != c.ring_high_pct || c.frames_out != c.allocs || c.allocs != c.packets_in || c.now_ns != (int64_t)c.allocs || c.allocs < last)
			break;
		last = c.allocs;
	}
	CHECK_EQ(c.packets_in, c.ring_high_pct);
	CHECK_EQ(c.frames_out, c.packets_in);
	CHECK(c.allocs >= last);
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	p.page->version++;
	CHECK(!publish_read(p.page, &c));
	p.begun = true;
	publish_end(&p);
	CHECK(!p.page);
}

int main(void)
{
	CHECK_RUN(test_chain);
	CHECK_RUN(test_tree);
	CHECK_RUN(test_ring);
	CHECK_RUN(test_page);
	return check_end();
}
