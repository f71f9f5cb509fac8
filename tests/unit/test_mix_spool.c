/* Queues that go to a file: order, limits, and what they give back. */
#include "check.h"

#include "base/heap.h"
#include "stage/spool.h"

static size_t length_of(uint64_t i)
{
	return (size_t)(i * 7919 % 5000);
}

static uint8_t byte_of(uint64_t i, size_t k)
{
	return (uint8_t)(i * 31 + k * 7);
}

static enum err put(struct spool *s, uint64_t i)
{
	static uint8_t body[5000];
	for (size_t k = 0; k < length_of(i); k++)
		body[k] = byte_of(i, k);
	return spool_put(s, &i, sizeof(i), body, length_of(i));
}

static void check_next(struct spool *s, uint64_t i)
{
	uint8_t *record;
	size_t n;
	uint64_t number;
	if (!CHECK_OK(spool_peek(s, &record, &n)))
		return;
	CHECK_EQ((uintptr_t)record % 16, 0);
	CHECK_EQ(n, sizeof(i) + length_of(i));
	memcpy(&number, record, sizeof(number));
	CHECK_EQ(number, i);
	bool same = true;
	for (size_t k = 0; k < length_of(i); k++)
		same &= record[sizeof(i) + k] == byte_of(i, k);
	CHECK(same);
	spool_drop(s);
}

static void test_order(void)
{
	struct spool_store store = { .memory_limit_bytes = 1 << 20, .file_limit_bytes = 64 << 20 };
	struct spool s, other;
	uint64_t in = 0, out = 0;
	uint8_t *record;
	size_t n;

	check_seed(31);
	CHECK_OK(spool_init(&s, &store));
	CHECK_OK(spool_init(&other, &store));
	CHECK_EQ(spool_peek(&s, &record, &n), ERR_END);
	/* Fill and drain by turns, further each time: memory, the file, and back. */
	for (int turn = 0; turn < 12; turn++) {
		uint64_t more = check_rand_below(400u << turn / 2);
		for (uint64_t k = 0; k < more; k++)
			CHECK_OK(put(&s, in++));
		uint64_t less = turn % 3 == 2 ? in - out : check_rand_below(in - out + 1);
		for (uint64_t k = 0; k < less; k++)
			check_next(&s, out++);
		CHECK_OK(put(&other, 3));
	}
	while (out < in)
		check_next(&s, out++);
	CHECK(spool_is_empty(&s));
	CHECK(atomic_load(&store.spooled_bytes) > 1 << 20);
	CHECK_EQ(atomic_load(&store.file_bytes), 0);
	spool_release(&s);
	spool_release(&other);
	CHECK_EQ(atomic_load(&store.memory_bytes), 0);
	spool_release(&s);
}

static void test_limits(void)
{
	struct spool_store store = { .memory_limit_bytes = 0, .file_limit_bytes = 100000 };
	struct spool s;
	uint64_t n = 0;

	CHECK_OK(spool_init(&s, &store));
	while (!spool_is_full(&s, sizeof(n) + length_of(n)))
		CHECK_OK(put(&s, n++));
	/* The first memory and the file. */
	CHECK(n > 50 && n < 100);
	CHECK_EQ(put(&s, n), ERR_LIMIT);
	for (uint64_t i = 0; i < n; i++)
		check_next(&s, i);
	CHECK(spool_is_empty(&s));
	CHECK_OK(put(&s, 1));
	check_next(&s, 1);
	/* One record larger than all memory. */
	static uint8_t large[300000];
	uint8_t *record;
	size_t bytes;
	large[299999] = 9;
	CHECK_OK(spool_put(&s, NULL, 0, large, sizeof(large)));
	CHECK_OK(spool_peek(&s, &record, &bytes));
	CHECK(bytes == sizeof(large) && record[299999] == 9);
	spool_release(&s);
}

static void test_stands_still(void)
{
	struct spool_store store = { .memory_limit_bytes = 1 << 20, .file_limit_bytes = 0 };
	struct spool s;
	CHECK_OK(spool_init(&s, &store));
	for (uint64_t i = 0; i < 20; i++)
		CHECK_OK(put(&s, i));
	for (uint64_t i = 20; i < 200; i++) {
		check_next(&s, i - 20);
		CHECK_OK(put(&s, i));
	}
	uint64_t before = heap_allocs();
	for (uint64_t i = 200; i < 20000; i++) {
		check_next(&s, i - 20);
		CHECK_OK(put(&s, i));
	}
	CHECK_EQ(heap_allocs(), before);
	spool_release(&s);
}

int main(void)
{
	CHECK_RUN(test_order);
	CHECK_RUN(test_limits);
	CHECK_RUN(test_stands_still);
	return check_end();
}
