/* base/units and base/bytes: conversions are exact, round as they say, and never wrap. */
#include "check.h"

#include "base/bytes.h"
#include "base/units.h"

static void test_scale_rounds_to_nearest(void)
{
	CHECK_EQ(units_scale(1, 1, 2), 1);
	CHECK_EQ(units_scale(-1, 1, 2), -1);
	CHECK_EQ(units_scale(1, 1, 3), 0);
	CHECK_EQ(units_scale(2, 1, 3), 1);
	CHECK_EQ(units_scale(-1, 1, 3), 0);
	CHECK_EQ(units_scale(-2, 1, 3), -1);
	CHECK_EQ(units_scale(44100, 48000, 44100), 48000);
	CHECK_EQ(units_scale(44101, 48000, 44100), 48001);
	CHECK_EQ(units_scale_up(1, 1, 3), 1);
	CHECK_EQ(units_scale_up(3, 1, 3), 1);
	CHECK_EQ(units_scale_up(-1, 1, 3), 0);
	CHECK_EQ(units_scale_up(-4, 1, 3), -1);
	CHECK_EQ(units_scale_down(1, 1, 3), 0);
	CHECK_EQ(units_scale_down(-1, 1, 3), -1);
	CHECK_EQ(units_scale_down(-3, 1, 3), -1);
}

static void test_scale_against_128_bits(void)
{
	check_seed(1);
	for (int i = 0; i < 100000; i++) {
		int64_t n = (int64_t)check_rand() >> check_rand_below(63);
		int64_t num = (int64_t)(check_rand() >> (1 + check_rand_below(62)));
		int64_t den = 1 + (int64_t)(check_rand() >> (1 + check_rand_below(62)));
		__int128 product = (__int128)n * num;
		__int128 down = product / den - (product % den < 0);
		__int128 up = product / den + (product % den > 0);
		if (down >= INT64_MIN && up <= INT64_MAX) {
			if (!CHECK_EQ(units_scale_down(n, num, den), down) || !CHECK_EQ(units_scale_up(n, num, den), up))
				return;
			int64_t nearest = units_scale(n, num, den);
			__int128 off = product - (__int128)nearest * den;
			if (!CHECK(2 * (off < 0 ? -off : off) <= den))
				return;
		}
	}
}

static void test_scale_saturates(void)
{
	CHECK_EQ(units_scale(INT64_MAX, 2, 1), INT64_MAX);
	CHECK_EQ(units_scale(INT64_MIN, 2, 1), INT64_MIN);
	CHECK_EQ(units_scale_up(INT64_MAX, INT64_MAX, 1), INT64_MAX);
	CHECK_EQ(units_scale_down(INT64_MIN, INT64_MAX, 1), INT64_MIN);
	CHECK_EQ(units_scale(INT64_MAX, INT64_MAX, INT64_MAX), INT64_MAX);
	CHECK_EQ(units_scale(INT64_MIN, 1, 1), INT64_MIN);
}

static void test_nanoseconds_there_and_back(void)
{
	static const struct { uint32_t num, den; } rates[] = {
		{48000, 1}, {44100, 1}, {60000, 1001}, {1, 1}, {6144000, 1}, {192000, 1}, {8000, 1}, {4294967295u, 1},
	};
	for (size_t r = 0; r < sizeof(rates) / sizeof(*rates); r++) {
		uint32_t num = rates[r].num, den = rates[r].den;
		/* A frame lasts longer than a nanosecond here, so frames survive the way there and back. */
		if (num / den > 500000000u)
			continue;
		for (int64_t n = -100000; n < 100000; n += 37)
			if (!CHECK_EQ(units_from_ns(units_to_ns(n, num, den), num, den), n))
				return;
	}
	CHECK_EQ(units_to_ns(48000, 48000, 1), UNITS_NS_PER_S);
	CHECK_EQ(units_to_ns(1, 48000, 1), 20833);
	CHECK_EQ(units_from_ns(UNITS_NS_PER_S, 60000, 1001), 60);
	CHECK_NEAR(units_to_s(60000, 60000, 1001), 1001.0, 1e-9);
}

static void test_compare_is_exact(void)
{
	CHECK_EQ(units_compare(1, 48000, 1, 1, 48000, 1), 0);
	CHECK(units_compare(1, 48000, 1, 1, 48001, 1) > 0);
	CHECK(units_compare(1, 48001, 1, 1, 48000, 1) < 0);
	CHECK_EQ(units_compare(48000, 48000, 1, 44100, 44100, 1), 0);
	CHECK_EQ(units_compare(-160, 48000, 1, -147, 44100, 1), 0);
	CHECK(units_compare(-161, 48000, 1, -147, 44100, 1) < 0);
	/* Beyond what a double can tell apart. */
	CHECK(units_compare(INT64_MAX, 48000, 1, INT64_MAX - 1, 48000, 1) > 0);
	CHECK(units_compare(INT64_MIN, UINT32_MAX, UINT32_MAX, INT64_MIN + 1, UINT32_MAX, UINT32_MAX) < 0);
	CHECK(units_compare(INT64_MIN, 1, UINT32_MAX, INT64_MAX, 1, UINT32_MAX) < 0);
	CHECK(units_compare(INT64_MAX, 1, UINT32_MAX, INT64_MAX, UINT32_MAX, 1) > 0);
}

static void test_decibels(void)
{
	CHECK_NEAR(units_db_to_factor(0), 1, 0);
	CHECK_NEAR(units_db_to_factor(20), 10, 1e-12);
	CHECK_NEAR(units_db_to_factor(-6), 0.501187233627272, 1e-12);
	CHECK_NEAR(units_factor_to_db(0.5), -6.020599913279624, 1e-12);
	CHECK_NEAR(units_factor_to_db(units_db_to_factor(-97.3)), -97.3, 1e-9);
	CHECK(isinf(units_factor_to_db(0)) && units_factor_to_db(0) < 0);
}

static void test_round_up(void)
{
	CHECK_EQ(units_round_up(0, 64), 0);
	CHECK_EQ(units_round_up(1, 64), 64);
	CHECK_EQ(units_round_up(64, 64), 64);
	CHECK_EQ(units_round_up(65, 64), 128);
	CHECK_EQ(units_round_up(UINT32_MAX, 8), 4294967296);
}

static void test_bytes_have_their_order(void)
{
	uint8_t b[8];
	put_le16(b, 0x0102);
	CHECK_MEM(b, "\2\1", 2);
	put_be16(b, 0x0102);
	CHECK_MEM(b, "\1\2", 2);
	put_le32(b, 0x01020304);
	CHECK_MEM(b, "\4\3\2\1", 4);
	put_be32(b, 0x01020304);
	CHECK_MEM(b, "\1\2\3\4", 4);
	put_le64(b, 0x0102030405060708);
	CHECK_MEM(b, "\10\7\6\5\4\3\2\1", 8);
	put_be64(b, 0x0102030405060708);
	CHECK_MEM(b, "\1\2\3\4\5\6\7\10", 8);
	CHECK_EQ(get_le64(b), 0x0807060504030201);
	CHECK_EQ(get_be64(b), 0x0102030405060708);
	CHECK_EQ(get_le32(b), 0x04030201);
	CHECK_EQ(get_be32(b + 1), 0x02030405);
	CHECK_EQ(get_le16(b + 1), 0x0302);
	CHECK_EQ(get_be16(b + 1), 0x0203);
	put_le24(b, 0xfedcba);
	CHECK_MEM(b, "\xba\xdc\xfe", 3);
	CHECK_EQ(get_le24(b), 0xfedcba);
}

int main(void)
{
	CHECK_RUN(test_scale_rounds_to_nearest);
	CHECK_RUN(test_scale_against_128_bits);
	CHECK_RUN(test_scale_saturates);
	CHECK_RUN(test_nanoseconds_there_and_back);
	CHECK_RUN(test_compare_is_exact);
	CHECK_RUN(test_decibels);
	CHECK_RUN(test_round_up);
	CHECK_RUN(test_bytes_have_their_order);
	return check_end();
}
