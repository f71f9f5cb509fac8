/* Adding to a mix: every version against the definition, and the definition against plain arithmetic. */
#include "check.h"

#include "base/cpu.h"
#include "mix/accum.h"

static const enum sample formats[] = { SAMPLE_S16, SAMPLE_S24, SAMPLE_S24_32, SAMPLE_S32, SAMPLE_F32, SAMPLE_F64 };
static const unsigned bytes[] = { 2, 3, 4, 4, 4, 8 };

#define MAX_UNITS 257u
#define ROOM (2 * MAX_UNITS + 64)

/* Anything at all, with what is special among it. */
static void make_source(uint8_t *p, enum sample format, size_t n_samples)
{
	static const uint32_t odd32[] = { 0x7f800000, 0xff800000, 0x7fc00001, 1, 0x807fffff, 0x7f7fffff, 0x80000000, 0x3f800000 };
	static const uint64_t odd64[] = {
		(uint64_t)0x7ff << 52, (uint64_t)0xfff << 52, ((uint64_t)0x7ff8 << 48) + 1, 1, (uint64_t)1 << 63, (uint64_t)0x3ff << 52,
	};
	for (size_t i = 0; i < n_samples; i++) {
		uint64_t r = check_rand();
		if (format == SAMPLE_F32) {
			float f = (float)((double)(int64_t)r * 0x1p-63);
			uint32_t u;
			memcpy(&u, &f, 4);
			if (r % 16 == 0)
				u = odd32[r / 16 % 8];
			memcpy(p + 4 * i, &u, 4);
		} else if (format == SAMPLE_F64) {
			double d = (double)(int64_t)r * 0x1p-63;
			uint64_t u;
			memcpy(&u, &d, 8);
			if (r % 16 == 0)
				u = odd64[r / 16 % 6];
			memcpy(p + 8 * i, &u, 8);
		} else {
			size_t n = format == SAMPLE_S16 ? 2 : format == SAMPLE_S24 ? 3 : 4;
			if (r % 16 == 0)
				r = ((uint64_t)1 << (8 * n - 1)) - (r & 16 ? 1 : 0); /* the largest, the lowest */
			memcpy(p + n * i, &r, n);
		}
	}
}

static void one(enum sample format, unsigned sample_bytes, enum accum_kind kind, size_t n, size_t offset)
{
	static uint8_t raw[8 * ROOM + 64];
	static double a[ROOM], b[ROOM];
	const double gain[4] = { 0.7071067811865476, 0.123456789, -1.5, 1 };
	size_t per = kind == ACCUM_CROSS ? 2 : 1, out = (kind == ACCUM_PAIRS ? 1 : 2) * n;
	accum_fn *c = accum_c_pick(format, kind), *fast = accum_pick(format, kind, cpu_flags());

	/* At the very end of the memory, so that a sanitizer sees what reads on. */
	uint8_t *exact = malloc(n * per * sample_bytes + 1);
	make_source(raw + offset, format, n * per);
	if (n)
		memcpy(exact, raw + offset, n * per * sample_bytes);
	for (size_t i = 0; i < ROOM; i++)
		a[i] = b[i] = (double)i * 0.01 - 1;
	size_t bad_a = c(a + offset % 4, raw + offset, n, gain);
	size_t bad_b = fast(b + offset % 4, exact, n, gain);
	CHECK_EQ(bad_a, bad_b);
	if (!CHECK_MEM(a, b, sizeof(a)))
		CHECK_FAIL("format %d, kind %d, %zu units", format, kind, n);
	for (size_t i = 0; i < ROOM; i++)
		if (i < offset % 4 || i >= offset % 4 + out)
			CHECK(a[i] == (double)i * 0.01 - 1);
	free(exact);
}

static void test_versions_agree(void)
{
	check_seed(7);
	for (size_t f = 0; f < 6; f++)
		for (int kind = 0; kind < ACCUM_N_KINDS; kind++)
			for (size_t n = 0; n <= MAX_UNITS; n++)
				one(formats[f], bytes[f], (enum accum_kind)kind, n, n % 16);
}

static void test_definition(void)
{
	const int16_t s16[4] = { 16384, -32768, 1, 32767 };
	const uint8_t s24[6] = { 0, 0, 0x40, 0xff, 0xff, 0xff };
	const float f32[4] = { 0.5f, NAN, -INFINITY, 0.25f };
	const double up[2] = { 2 / accum_scale(SAMPLE_S16), 1 / accum_scale(SAMPLE_S16) };
	const double up24[2] = { 1 / accum_scale(SAMPLE_S24), 1 / accum_scale(SAMPLE_S24) };
	const double cross[4] = { 1, 0.5, 0.25, 2 }, one_each[2] = { 1, 1 };
	double acc[8] = { 0 };

	CHECK_EQ(accum_c_pick(SAMPLE_S16, ACCUM_PAIRS)(acc, s16, 4, up), 0);
	CHECK(acc[0] == 1.0 && acc[1] == -1.0 && acc[2] == 2.0 / 32768 && acc[3] == 32767.0 / 32768);
	memset(acc, 0, sizeof(acc));
	(void)accum_c_pick(SAMPLE_S16, ACCUM_SPREAD)(acc, s16, 2, up);
	CHECK(acc[0] == 1.0 && acc[1] == 0.5 && acc[2] == -2.0 && acc[3] == -1.0);
	memset(acc, 0, sizeof(acc));
	(void)accum_c_pick(SAMPLE_S24, ACCUM_PAIRS)(acc, s24, 2, up24);
	CHECK(acc[0] == 0.5 && acc[1] == -0x1p-23);
	memset(acc, 0, sizeof(acc));
	CHECK_EQ(accum_c_pick(SAMPLE_F32, ACCUM_PAIRS)(acc, f32, 4, one_each), 2);
	CHECK(acc[0] == 0.5 && acc[1] == 0 && acc[2] == 0 && acc[3] == 0.25);
	memset(acc, 0, sizeof(acc));
	const float lr[2] = { 0.5f, 0.25f };
	(void)accum_c_pick(SAMPLE_F32, ACCUM_CROSS)(acc, lr, 1, cross);
	CHECK(acc[0] == 0.5 + 0.125 && acc[1] == 0.5 + 0.125);
	CHECK(accum_c_pick(SAMPLE_CODED, ACCUM_PAIRS) == NULL);
}

int main(void)
{
	CHECK_RUN(test_versions_agree);
	CHECK_RUN(test_definition);
	return check_end();
}
