/* base/heap: every way to take memory is counted, once, with its bytes. */
#include "check.h"

#include "base/err.h"
#include "base/heap.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>

static void *volatile sink; /* so that the compiler keeps the calls */

static void test_each_kind_counts_once(void)
{
	if (!heap_is_counted()) {
		check_skip("the sanitizer's allocator is not counted");
		return;
	}
	struct { const char *name; uint64_t n_bytes; } kinds[] = {
		{"malloc", 100}, {"calloc", 10 * 20}, {"realloc", 300}, {"aligned_alloc", 4096}, {"posix_memalign", 500},
		{"memalign", 640},
	};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		void *old = i == 2 ? malloc(10) : NULL, *p = NULL;
		sink = old;
		uint64_t n = heap_allocs(), bytes = heap_alloc_bytes();
		switch (i) {
		case 0: p = malloc(100); break;
		case 1: p = calloc(10, 20); break;
		case 2: p = realloc(old, 300); break;
		case 3: p = aligned_alloc(64, 4096); break;
		case 4: CHECK_EQ(posix_memalign(&p, 64, 500), 0); break;
		case 5: p = memalign(128, 640); break;
		}
		sink = p;
		if (!CHECK_EQ(heap_allocs() - n, 1) || !CHECK_EQ(heap_alloc_bytes() - bytes, kinds[i].n_bytes))
			CHECK_FAIL("%s", kinds[i].name);
		CHECK(p);
		if (i >= 3)
			CHECK_EQ((uintptr_t)p % 64, 0);
		free(p);
	}
}

static void test_the_library_s_own_calls_count(void)
{
	if (!heap_is_counted()) {
		check_skip("the sanitizer's allocator is not counted");
		return;
	}
	uint64_t n = heap_allocs();
	char *copy = strdup("every library's heap calls end here");
	CHECK_EQ(heap_allocs() - n, 1);
	free(copy);
}

static void test_posix_memalign_refuses_bad_alignment(void)
{
	if (!heap_is_counted()) {
		check_skip("the sanitizer's allocator ends the program");
		return;
	}
	void *p = NULL;
	size_t bad[] = {0, 3, 4, 24};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(posix_memalign(&p, bad[i], 64), EINVAL);
	CHECK(!p);
}

static void *thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10000; i++) {
		void *p = malloc(8);
		sink = p;
		free(p);
	}
	return NULL;
}

static void test_no_count_is_lost_between_threads(void)
{
	if (!heap_is_counted()) {
		check_skip("the sanitizer's allocator is not counted");
		return;
	}
	pthread_t t[4];
	uint64_t n = heap_allocs();
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	/* Starting a thread takes memory of its own. */
	CHECK(heap_allocs() - n >= 40000);
	CHECK(heap_allocs() - n < 40100);
}

int main(void)
{
	CHECK_RUN(test_each_kind_counts_once);
	CHECK_RUN(test_the_library_s_own_calls_count);
	CHECK_RUN(test_posix_memalign_refuses_bad_alignment);
	CHECK_RUN(test_no_count_is_lost_between_threads);
	return check_end();
}
