#include "net/assembly.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000LL

static struct assembly a;
static uint8_t *memory;

/* Three flows of 2, 2 and 1 channels of s16. */
static void start(unsigned n_members)
{
	size_t n_bytes = assembly_bytes(5, 2, 16);

	free(memory);
	memory = malloc(n_bytes);
	assembly_init(&a, 5, 2, 16, memory);
	for (unsigned i = 0; i < n_members; i++)
		CHECK_EQ(assembly_join(&a, 2 * i, i < 2 ? 2 : 1, 0), (int)i);
}

/* Two frames of a member, whose samples say where they belong. */
static enum assembly_put put(unsigned member, int64_t pos, int64_t ms, bool copy, struct jitter_packet *whole)
{
	unsigned channels = member < 2 ? 2 : 1;
	uint8_t samples[8];

	for (unsigned f = 0; f < 2; f++)
		for (unsigned c = 0; c < channels; c++) {
			samples[2 * (f * channels + c)] = (uint8_t)(pos + f);
			samples[2 * (f * channels + c) + 1] = (uint8_t)(2 * member + c + 1);
		}
	return assembly_put(&a, member, pos, 2, samples, true, copy, ms * MS, whole);
}

static void check_bytes(const struct jitter_packet *p, int64_t pos, unsigned missing_member)
{
	for (unsigned f = 0; f < 2; f++)
		for (unsigned c = 0; c < 5; c++) {
			bool missing = c / 2 == missing_member;
			CHECK_EQ(p->bytes[2 * (5 * f + c)], missing ? 0 : c + 1);
			CHECK_EQ(p->bytes[2 * (5 * f + c) + 1], missing ? 0 : (uint8_t)(pos + f));
		}
}

static void test_whole(void)
{
	struct jitter_packet p;

	start(3);
	CHECK_EQ(put(0, 10, 1, false, &p), ASSEMBLY_KEPT);
	CHECK_EQ(put(2, 10, 2, false, &p), ASSEMBLY_KEPT);
	CHECK_EQ(put(0, 12, 2, false, &p), ASSEMBLY_KEPT);
	CHECK_EQ(put(0, 10, 2, false, &p), ASSEMBLY_HAD);
	CHECK_EQ(put(1, 10, 3, false, &p), ASSEMBLY_WHOLE);
	CHECK_EQ(p.pos, 10);
	CHECK_EQ(p.dur_frames, 2);
	CHECK_EQ(p.n_bytes, 20);
	CHECK_EQ(p.arrival_ns, 3 * MS);
	CHECK_EQ(p.flags, JITTER_FOLLOWS);
	CHECK_EQ(p.tag, 0);
	check_bytes(&p, 10, 9);
	/* A repaired part that comes last says nothing about the network. */
	CHECK_EQ(put(1, 12, 4, false, &p), ASSEMBLY_KEPT);
	CHECK_EQ(put(2, 12, 9, true, &p), ASSEMBLY_WHOLE);
	CHECK(p.flags & JITTER_COPY);
	CHECK(!assembly_give_up(&a, INT64_MAX, &p));
}

static void test_partial(void)
{
	struct jitter_packet p;

	start(3);
	put(0, 20, 1, false, &p);
	put(2, 20, 1, false, &p);
	put(0, 22, 2, false, &p);
	put(0, 18, 2, false, &p);
	CHECK(!assembly_give_up(&a, 18, &p));
	CHECK(assembly_give_up(&a, 21, &p));
	CHECK_EQ(p.pos, 18);
	CHECK(assembly_give_up(&a, 21, &p));
	CHECK_EQ(p.pos, 20);
	CHECK_EQ(p.tag, ASSEMBLY_PARTIAL);
	check_bytes(&p, 20, 1);
	CHECK(!assembly_give_up(&a, 21, &p));
}

/* A flow that is silent is waited for at first, and then not; one that never came neither. */
static void test_silent_member(void)
{
	struct jitter_packet p;
	int64_t ms = 0, pos = 0;

	start(2);
	for (; ms < 249; ms++, pos += 2) {
		CHECK_EQ(put(0, pos, ms, false, &p), ASSEMBLY_KEPT);
		CHECK_EQ(put(1, pos, ms, false, &p), ASSEMBLY_KEPT);
		while (assembly_give_up(&a, pos - 20, &p))
			;
	}
	ms = 260;
	CHECK_EQ(put(0, pos, ms, false, &p), ASSEMBLY_KEPT);
	CHECK_EQ(put(1, pos, ms, false, &p), ASSEMBLY_WHOLE);
	CHECK_EQ(p.tag, ASSEMBLY_PARTIAL);
	check_bytes(&p, pos, 2);
	CHECK_EQ(put(0, pos + 2, ms + 300, false, &p), ASSEMBLY_WHOLE);
	CHECK_EQ(p.tag, ASSEMBLY_PARTIAL);
	assembly_leave(&a, 1);
	CHECK_EQ(put(0, pos + 4, ms + 301, false, &p), ASSEMBLY_WHOLE);
	CHECK_EQ(assembly_join(&a, 2, 2, ms * MS), 1);
}

static void test_refuses(void)
{
	struct jitter_packet p;
	uint8_t samples[80] = { 0 };

	start(3);
	CHECK_EQ(assembly_join(&a, 4, 1, 0), -1);
	CHECK_EQ(assembly_join(&a, 5, 1, 0), -1);
	CHECK_EQ(assembly_join(&a, 0, 6, 0), -1);
	CHECK_EQ(put(0, 10, 1, false, &p), ASSEMBLY_KEPT);
	CHECK_EQ(assembly_put(&a, 1, 10, 3, samples, true, false, MS, &p), ASSEMBLY_REFUSED);
	CHECK_EQ(assembly_put(&a, 1, 12, 17, samples, true, false, MS, &p), ASSEMBLY_REFUSED);
	CHECK_EQ(assembly_put(&a, 1, 12, 0, samples, true, false, MS, &p), ASSEMBLY_REFUSED);
	CHECK_EQ(assembly_bytes(0, 2, 1), 0);
	CHECK_EQ(assembly_bytes(257, 2, 1), 0);
	CHECK_EQ(assembly_bytes(256, 4, 65), 0);
	/* More positions than there are places: the oldest makes room, and it is counted. */
	for (int64_t pos = 100; pos < 100 + 2 * (int64_t)ASSEMBLY_PLACES; pos += 2)
		put(0, pos, 2, false, &p);
	CHECK_EQ(a.n_dropped, 1);
}

int main(void)
{
	CHECK_RUN(test_whole);
	CHECK_RUN(test_partial);
	CHECK_RUN(test_silent_member);
	CHECK_RUN(test_refuses);
	free(memory);
	return check_end();
}
