/* Messages that outlive their connection: each once, in order, in fixed memory. */
#include "check.h"

#include "base/heap.h"
#include "net/replay.h"

#include <string.h>

static uint64_t rng = 88172645463325252u;

static uint64_t rnd(uint64_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % below;
}

/* A message says its number, and is filled with bytes that follow from it. */
static size_t length_of(uint64_t n)
{
	return 8 + (n * 2654435761u >> 7) % 900;
}

static void fill(uint8_t *at, uint64_t n)
{
	memcpy(at, &n, 8);
	for (size_t i = 8; i < length_of(n); i++)
		at[i] = (uint8_t)(n * 31 + i);
}

static bool is_right(const uint8_t *at, size_t n_bytes, uint64_t n)
{
	uint64_t said;

	memcpy(&said, at, 8);
	if (said != n || n_bytes != length_of(n))
		return false;
	for (size_t i = 8; i < n_bytes; i++) {
		if (at[i] != (uint8_t)(n * 31 + i))
			return false;
	}
	return true;
}

/* 100,000 messages; what is on its way is lost at each of many breaks; acknowledgements are lost too. */
static void test_breaks(void)
{
	struct replay r;
	struct replay_in in = { 0 };
	struct { uint8_t bytes[1000]; size_t n_bytes; uint64_t n; } way[64];
	unsigned n_way = 0, breaks = 0, full = 0;
	uint64_t put = 0, sending = 0;
	const uint64_t all = 100000;

	CHECK(!replay_init(&r, 65536, 200, NULL));
	uint64_t heap = heap_allocs();
	while (in.n_taken < all) {
		for (unsigned i = rnd(20); i && put < all; i--) {
			uint8_t *at = replay_reserve(&r, length_of(put));

			if (!at) {
				full++;
				break;
			}
			CHECK_EQ((uintptr_t)at % 64, 0);
			fill(at, put);
			replay_put(&r, length_of(put++));
		}
		for (unsigned i = rnd(20); i && n_way < 64; i--) {
			size_t n_bytes;
			const uint8_t *at = replay_next(&r, &n_bytes);

			if (!at)
				break;
			CHECK(n_bytes <= 1000);
			memcpy(way[n_way].bytes, at, n_bytes);
			way[n_way].n_bytes = n_bytes;
			way[n_way++].n = sending++;
			replay_sent(&r);
		}
		unsigned come = n_way ? (unsigned)rnd(n_way + 1) : 0;
		for (unsigned i = 0; i < come; i++) {
			CHECK_EQ(replay_take(&in, way[i].n), ERR_OK);
			CHECK(is_right(way[i].bytes, way[i].n_bytes, in.n_taken - 1));
		}
		memmove(way, way + come, (n_way - come) * sizeof(way[0]));
		n_way -= come;
		if (rnd(4))
			CHECK_EQ(replay_ack(&r, in.n_taken), ERR_OK);
		if (!rnd(50)) {
			breaks++;
			n_way = 0;
			CHECK_EQ(replay_resume(&r, in.n_taken), ERR_OK);
			sending = in.n_taken;
		}
	}
	CHECK_EQ(heap_allocs(), heap);
	CHECK(breaks > 100 && full > 10 && r.n_again > 100);
	CHECK_EQ(put, all);
	CHECK_EQ(replay_ack(&r, all), ERR_OK);
	CHECK_EQ(replay_held(&r), 0);
	CHECK_EQ(replay_held_bytes(&r), 0);
	printf("# %u breaks, full %u times, %llu messages sent again\n", breaks, full, (unsigned long long)r.n_again);
	replay_release(&r);
}

static void test_limits(void)
{
	struct replay r;
	struct err_why why = { 0 };

	CHECK_EQ(replay_init(&r, 0, 1, &why), ERR_ARG);
	CHECK_EQ(replay_init(&r, 4096, 0, &why), ERR_ARG);
	CHECK(!replay_init(&r, 4096, 3, &why));
	CHECK(!replay_reserve(&r, r.ring.size_bytes));
	for (int i = 0; i < 3; i++) {
		CHECK(replay_reserve(&r, 10));
		replay_put(&r, 10);
	}
	CHECK(!replay_reserve(&r, 10)); /* three is the limit */
	CHECK_EQ(replay_ack(&r, 1), ERR_PEER); /* nothing was sent */
	replay_sent(&r);
	replay_sent(&r);
	CHECK_EQ(replay_ack(&r, 1), ERR_OK);
	CHECK_EQ(replay_ack(&r, 0), ERR_PEER); /* it said 1 before */
	CHECK(replay_reserve(&r, 10));
	replay_put(&r, 10);
	CHECK_EQ(replay_resume(&r, 0), ERR_PEER); /* gone */
	CHECK_EQ(replay_resume(&r, 3), ERR_PEER); /* never sent */
	CHECK_EQ(replay_resume(&r, 1), ERR_OK);
	CHECK_EQ(r.n_again, 1);
	struct iovec iov[4];
	CHECK_EQ(replay_vector(&r, 3, iov, 4), 3); /* 1, 2 and the one put in behind */
	CHECK_EQ(iov[0].iov_len, 7);
	CHECK_EQ(iov[1].iov_len, 10);
	CHECK_EQ(replay_vector(&r, 0, iov, 1), 1);
	CHECK_EQ(replay_held(&r), 3);
	replay_release(&r);

	struct replay_in in = { 0 };
	CHECK_EQ(replay_take(&in, 1), ERR_CUT);
	CHECK_EQ(replay_take(&in, 0), ERR_OK);
	CHECK_EQ(replay_take(&in, 0), ERR_AGAIN);
	CHECK_EQ(in.n_twice, 1);
}

int main(void)
{
	CHECK_RUN(test_breaks);
	CHECK_RUN(test_limits);
	return check_end();
}
