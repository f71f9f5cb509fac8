/* rt/ring: contiguous across its end, never loses or repeats a byte, also between two threads. */
#include "check.h"

#include "rt/ring.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static void test_size_is_a_power_of_two_of_pages(void)
{
	static const size_t asked[] = {0, 1, 4096, 4097, 100000, 1 << 20};
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		struct ring r;
		struct err_why why = {0};
		CHECK_OK(ring_init(&r, asked[i], &why));
		CHECK(r.size_bytes >= asked[i]);
		CHECK(r.size_bytes >= (size_t)sysconf(_SC_PAGESIZE));
		CHECK_EQ(r.size_bytes & (r.size_bytes - 1), 0);
		CHECK_EQ((uintptr_t)r.bytes % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
		uint8_t *at;
		CHECK_EQ(ring_peek(&r, &at), 0);
		CHECK_EQ(ring_room(&r, &at), r.size_bytes);
		ring_release(&r);
		ring_release(&r);
	}
}

static void test_release_of_zero(void)
{
	struct ring r = {0};
	ring_release(&r);
	CHECK(!r.bytes);
}

static void test_impossible_size_fails(void)
{
	struct ring r;
	struct err_why why = {0};
	enum err e = ring_init(&r, (size_t)1 << 60, &why);
	CHECK(e == ERR_SYS || e == ERR_NOMEM);
	CHECK(*why.reason);
	ring_release(&r);
}

static void test_both_halves_are_one_memory(void)
{
	struct ring r;
	CHECK_OK(ring_init(&r, 4096, NULL));
	for (size_t i = 0; i < r.size_bytes; i++)
		r.bytes[i] = (uint8_t)(i * 7);
	CHECK_MEM(r.bytes + r.size_bytes, r.bytes, r.size_bytes);
	r.bytes[r.size_bytes + 5] = 0xAA;
	CHECK_EQ(r.bytes[5], 0xAA);
	ring_release(&r);
}

static void test_bytes_come_out_as_they_went_in(void)
{
	struct ring r;
	check_seed(4);
	CHECK_OK(ring_init(&r, 4096, NULL));
	uint64_t in = 0, out = 0;
	while (out < 1000000) {
		uint8_t *at;
		size_t room = ring_room(&r, &at);
		size_t n = check_rand_below(room + 1);
		CHECK_EQ(room + (in - out), r.size_bytes);
		for (size_t i = 0; i < n; i++)
			at[i] = (uint8_t)(in++ * 31 >> 3);
		ring_commit(&r, n);
		size_t have = ring_peek(&r, &at);
		if (!CHECK_EQ(have, in - out))
			break;
		n = check_rand_below(have + 1);
		for (size_t i = 0; i < n; i++, out++)
			if (at[i] != (uint8_t)(out * 31 >> 3)) {
				CHECK_FAIL("byte %llu is wrong", (unsigned long long)out);
				out = 2000000;
				break;
			}
		ring_consume(&r, n);
	}
	ring_release(&r);
}

static void test_indices_pass_32_and_64_bits(void)
{
	static const uint64_t starts[] = {UINT32_MAX - 100, UINT64_MAX - 100};
	for (size_t s = 0; s < ARRAY_LEN(starts); s++) {
		struct ring r;
		CHECK_OK(ring_init(&r, 4096, NULL));
		atomic_store(&r.head_bytes, starts[s]);
		atomic_store(&r.tail_bytes, starts[s]);
		uint8_t *at;
		CHECK_EQ(ring_room(&r, &at), 4096);
		memset(at, 0x5C, 4096);
		ring_commit(&r, 4096);
		CHECK_EQ(ring_room(&r, &at), 0);
		CHECK_EQ(ring_peek(&r, &at), 4096);
		CHECK_EQ(at[4095], 0x5C);
		ring_consume(&r, 4000);
		CHECK_EQ(ring_peek(&r, &at), 96);
		CHECK_EQ(ring_room(&r, &at), 4000);
		ring_release(&r);
	}
}

#define PASSED_WORDS (1u << 20)

static void *producer(void *arg)
{
	struct ring *r = arg;
	for (uint32_t word = 0; word < PASSED_WORDS;) {
		uint8_t *at;
		size_t room = ring_room(r, &at) / 4;
		if (!room)
			sched_yield();
		/* Odd amounts, so that the ends meet in all ways. */
		size_t n = room > 37 ? 37 + word % 61 : room;
		if (n > room)
			n = room;
		if (n > PASSED_WORDS - word)
			n = PASSED_WORDS - word;
		for (size_t i = 0; i < n; i++, word++)
			memcpy(at + 4 * i, &word, 4);
		ring_commit(r, 4 * n);
	}
	return NULL;
}

static void test_between_two_threads(void)
{
	struct ring r;
	pthread_t t;
	CHECK_OK(ring_init(&r, 4096, NULL));
	CHECK_EQ(pthread_create(&t, NULL, producer, &r), 0);
	uint32_t word = 0;
	bool ok = true;
	while (word < PASSED_WORDS) {
		uint8_t *at;
		size_t n = ring_peek(&r, &at) / 4;
		if (!n)
			sched_yield();
		for (size_t i = 0; i < n; i++, word++) {
			uint32_t got;
			memcpy(&got, at + 4 * i, 4);
			ok = ok && got == word;
		}
		ring_consume(&r, 4 * n);
	}
	pthread_join(t, NULL);
	CHECK(ok);
	CHECK_EQ(word, PASSED_WORDS);
	ring_release(&r);
}

/* Where no file may be made or grow: the ring is none, and is the same. */
static void test_limits_of_files_do_not_apply(void)
{
	static const int limits[] = {RLIMIT_FSIZE, RLIMIT_NOFILE};
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit before, none;
		CHECK_EQ(getrlimit(limits[i], &before), 0);
		none = before;
		none.rlim_cur = 0;
		CHECK_EQ(setrlimit(limits[i], &none), 0);
		struct ring r;
		struct err_why why = {0};
		enum err e = ring_init(&r, 100000, &why);
		CHECK_EQ(setrlimit(limits[i], &before), 0);
		CHECK_OK(e);
		if (e)
			continue;
		for (size_t k = 0; k < r.size_bytes; k += 4093) {
			r.bytes[k] = (uint8_t)k;
			CHECK_EQ(r.bytes[r.size_bytes + k], (uint8_t)k);
			r.bytes[r.size_bytes + k] = (uint8_t)~k;
			CHECK_EQ(r.bytes[k], (uint8_t)~k);
		}
		ring_release(&r);
	}
}

/* One thread on both sides: what lies in it is the same before and after, wherever it lay. */
static void test_rewind_keeps_what_is_there(void)
{
	struct ring r;
	struct err_why why = {0};
	uint8_t *at;
	uint8_t next_in = 0, next_out = 0;
	unsigned n_rewound = 0;

	CHECK_OK(ring_init(&r, 4096, &why));
	for (unsigned round = 0; round < 20000; round++) {
		size_t room = ring_room(&r, &at), in = (round * 2654435761u >> 20) % 1500;
		for (size_t i = 0; i < (in < room ? in : room); i++)
			at[i] = next_in++;
		ring_commit(&r, in < room ? in : room);
		size_t held = ring_peek(&r, &at), out = (round * 40503u >> 3) % 1500;
		out = out < held ? out : held;
		for (size_t i = 0; i < out; i++)
			if (at[i] != next_out++)
				CHECK_EQ(at[i], (uint8_t)(next_out - 1));
		ring_consume(&r, out);
		ring_peek(&r, &at);
		uint8_t *before = at;
		ring_rewind(&r, 600, 1000);
		CHECK_EQ(ring_peek(&r, &at), held - out);
		CHECK_EQ(ring_room(&r, &before), r.size_bytes - (held - out));
		n_rewound += at == r.bytes && held > out;
	}
	CHECK(n_rewound > 100);
	/* Too much to move, or too near to the front: it stays. */
	ring_consume(&r, ring_peek(&r, &at));
	ring_rewind(&r, 0, 1);
	ring_commit(&r, 2000);
	ring_consume(&r, 500);
	ring_rewind(&r, 600, 100);
	ring_peek(&r, &at);
	CHECK_EQ((uintptr_t)(at - r.bytes), 500);
	ring_rewind(&r, 4000, 501);
	ring_peek(&r, &at);
	CHECK_EQ((uintptr_t)(at - r.bytes), 500);
	ring_rewind(&r, 4000, 500);
	ring_peek(&r, &at);
	CHECK(at == r.bytes);
	ring_release(&r);
}

int main(void)
{
	CHECK_RUN(test_size_is_a_power_of_two_of_pages);
	CHECK_RUN(test_release_of_zero);
	CHECK_RUN(test_impossible_size_fails);
	CHECK_RUN(test_both_halves_are_one_memory);
	CHECK_RUN(test_bytes_come_out_as_they_went_in);
	CHECK_RUN(test_indices_pass_32_and_64_bits);
	CHECK_RUN(test_rewind_keeps_what_is_there);
	CHECK_RUN(test_between_two_threads);
	CHECK_RUN(test_limits_of_files_do_not_apply);
	return check_end();
}
