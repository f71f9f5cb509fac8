#include "kern.h"

#include "base/cpu.h"
#include "dsp/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum sample formats[] = {SAMPLE_S16, SAMPLE_S24, SAMPLE_S24_32, SAMPLE_S32, SAMPLE_F32, SAMPLE_F64};
static const char *const names[] = {"coded", "s16", "s24", "s24_32", "s32", "f32", "f64"};

static void fill(enum sample format, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float f = kern_nasty();
		double d = f;
		uint64_t r = kern_rand();
		int32_t q = (int32_t)(r >> 32);
		if ((r & 7) == 0)
			q = (r & 8) ? INT32_MAX - (int32_t)(r >> 8 & 0x1ffff) : INT32_MIN + (int32_t)(r >> 8 & 0x1ffff);
		if ((r & 0x70) == 0)
			q = (int32_t)((uint32_t)q & 0xffff8000u); /* a tie, half the time */
		if ((r & 0x380) == 0)
			d = (double)q / 0x1p31 + (r & 0x400 ? 0x1p-32 : -0x1p-32);
		switch (format) {
		case SAMPLE_S16:
			memcpy(p + 2 * i, (uint8_t *)&q + 2, 2);
			break;
		case SAMPLE_S24:
			memcpy(p + 3 * i, (uint8_t *)&q + 1, 3);
			break;
		case SAMPLE_F32:
			memcpy(p + 4 * i, &f, 4);
			break;
		case SAMPLE_F64:
			memcpy(p + 8 * i, &d, 8);
			break;
		default:
			memcpy(p + 4 * i, &q, 4);
		}
	}
}

static bool same_noise(const struct convert_noise *a, const struct convert_noise *b)
{
	return !memcmp(a->lane, b->lane, sizeof(a->lane)) && a->next == b->next;
}

/* Each pair: the AVX2 version equals the C one in output, count, and the noise it leaves behind. */
static void check_pair(enum sample from, enum sample to, bool dithers)
{
	static struct kern_buf in, out_c, out_v;
	static uint8_t copy[8 * KERN_MAX_LEN];
	if (!in.base) {
		kern_buf_open(&in, 4096);
		kern_buf_open(&out_c, 4096);
		kern_buf_open(&out_v, 4096);
	}
	convert_fn *c = convert_c_pick(from, to, dithers), *v = convert_avx2_pick(from, to, dithers);
	size_t from_bytes = convert_sample_bytes(from), to_bytes = convert_sample_bytes(to);
	bool ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN && ok; n++) {
		for (size_t offset = 0; offset < KERN_OFFSETS && ok; offset++) {
			size_t out_offset = (offset * 5 + n) % KERN_OFFSETS;
			struct convert conv;
			if (convert_init(&conv, from, to, dithers, (uint32_t)n))
				ok = false;
			struct convert_noise noise_c = conv.noise, noise_v = conv.noise;
			noise_c.next = noise_v.next = (uint32_t)(offset * 7 % CONVERT_LANES);

			uint8_t *s = kern_place(&in, n * from_bytes, offset);
			uint8_t *d_c = kern_place(&out_c, n * to_bytes, out_offset);
			uint8_t *d_v = kern_place(&out_v, n * to_bytes, out_offset);
			fill(from, s, n);
			memcpy(copy, s, n * from_bytes);
			size_t clipped_c = c(&noise_c, d_c, s, n), clipped_v = v(&noise_v, d_v, s, n);
			ok = clipped_c == clipped_v && !memcmp(d_c, d_v, n * to_bytes) && same_noise(&noise_c, &noise_v) &&
				kern_is_clean(&out_c, n * to_bytes, out_offset) && kern_is_clean(&out_v, n * to_bytes, out_offset) &&
				!memcmp(copy, s, n * from_bytes);
			if (!ok)
				kern_note("n %zu, offset %zu, clipped %zu and %zu", n, offset, clipped_c, clipped_v);
		}
	}
	kern_ok(ok, "convert %s -> %s%s: avx2 equals c", names[from], names[to], dithers ? " dithered" : "");
}

static size_t convert(enum sample from, enum sample to, bool dither, void *dst, const void *src, size_t n)
{
	struct convert c;
	if (convert_init(&c, from, to, dither, 1))
		return SIZE_MAX;
	return convert_run(&c, dst, src, n);
}

/* By hand: what f32 values become at 16, 24 and 32 bits. */
static void check_table(void)
{
	static const float in[] = {0.0f, 0.5f, 1.0f, 2.0f, -0.5f, -1.0f, -2.0f, NAN, INFINITY, -INFINITY,
		0.5f / 32768, 1.5f / 32768, 2.5f / 32768, -0.5f / 32768, -1.5f / 32768, 32767.0f / 32768, 32767.5f / 32768,
		32767.4f / 32768, 0x1p-149f, -32768.5f / 32768, -32769.0f / 32768};
	static const int16_t want_16[] = {0, 16384, 32767, 32767, -16384, -32768, -32768, 0, 32767, -32768,
		0, 2, 2, 0, -2, 32767, 32767, 32767, 0, -32768, -32768};
	int16_t got_16[ARRAY_LEN(in)];
	size_t clipped = convert(SAMPLE_F32, SAMPLE_S16, false, got_16, in, ARRAY_LEN(in));
	kern_ok(!memcmp(got_16, want_16, sizeof(want_16)), "convert f32 -> s16: table");
	/* 1, 2, -2, inf, -inf, 32767.5 (a tie that goes up) and -32769; -32768.5 is a tie that goes to -32768. */
	kern_ok(clipped == 7, "convert f32 -> s16: 7 clipped, got %zu", clipped);

	int32_t got_32[ARRAY_LEN(in)];
	clipped = convert(SAMPLE_F32, SAMPLE_S32, false, got_32, in, ARRAY_LEN(in));
	kern_ok(got_32[1] == 1 << 30 && got_32[2] == INT32_MAX && got_32[5] == INT32_MIN && got_32[6] == INT32_MIN &&
			got_32[7] == 0 && got_32[10] == 32768 && got_32[9] == INT32_MIN && clipped == 7,
		"convert f32 -> s32: values, 7 clipped, got %zu", clipped);

	static const float in_24[] = {0.5f, 1.0f, -1.0f, 0x1p-23f, -0x1p-23f, 0x1.fffffep-1f, 0x1.8p-23f};
	static const uint8_t want_24[] = {0, 0, 0x40, 0xff, 0xff, 0x7f, 0, 0, 0x80, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 2, 0, 0};
	uint8_t got_24[sizeof(want_24)];
	clipped = convert(SAMPLE_F32, SAMPLE_S24, false, got_24, in_24, ARRAY_LEN(in_24));
	kern_ok(!memcmp(got_24, want_24, sizeof(want_24)), "convert f32 -> s24: table");
	/* 1.0, and the largest float below it: it is 8388607.5 steps, a tie that goes up. */
	kern_ok(clipped == 2, "convert f32 -> s24: 2 clipped, got %zu", clipped);

	static const double in_64[] = {2147483647.0 / 0x1p31, 2147483647.5 / 0x1p31, -1.0, -2147483648.5 / 0x1p31,
		-2147483648.75 / 0x1p31, 0.5 / 0x1p31, 1.5 / 0x1p31, NAN};
	static const int32_t want_64[] = {INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN, INT32_MIN, 0, 2, 0};
	int32_t got_64[ARRAY_LEN(in_64)];
	clipped = convert(SAMPLE_F64, SAMPLE_S32, false, got_64, in_64, ARRAY_LEN(in_64));
	kern_ok(!memcmp(got_64, want_64, sizeof(want_64)) && clipped == 2, "convert f64 -> s32: table, 2 clipped, got %zu", clipped);

	static const int32_t in_32[] = {0x00008000, 0x00018000, 0x00007fff, -0x8000, -0x8001, 0x7fff7fff, 0x7fff8000, INT32_MAX, INT32_MIN};
	static const int16_t want_n[] = {0, 2, 0, 0, -1, 32767, 32767, 32767, -32768};
	int16_t got_n[ARRAY_LEN(in_32)];
	clipped = convert(SAMPLE_S32, SAMPLE_S16, false, got_n, in_32, ARRAY_LEN(in_32));
	kern_ok(!memcmp(got_n, want_n, sizeof(want_n)) && clipped == 2, "convert s32 -> s16: table, 2 clipped, got %zu", clipped);
}

static void check_round_trips(void)
{
	static int16_t in[65536], back[65536];
	static uint8_t mid[65536 * 8];
	for (int i = 0; i < 65536; i++)
		in[i] = (int16_t)(i - 32768);
	for (size_t k = 1; k < ARRAY_LEN(formats); k++) {
		size_t clipped = convert(SAMPLE_S16, formats[k], false, mid, in, 65536);
		memset(back, 1, sizeof(back));
		clipped += convert(formats[k], SAMPLE_S16, false, back, mid, 65536);
		kern_ok(!clipped && !memcmp(in, back, sizeof(in)), "convert s16 -> %s -> s16: every value exact", names[formats[k]]);
	}
	float f[3];
	int16_t ends[3] = {-32768, 32767, 1};
	convert(SAMPLE_S16, SAMPLE_F32, false, f, ends, 3);
	kern_ok(f[0] == -1.0f && f[1] == 32767.0f / 32768 && f[2] == 1.0f / 32768, "convert s16 -> f32: full scale is 32768");

	static int32_t wide[4096], wide_back[4096];
	static double wide_mid[4096];
	for (int i = 0; i < 4096; i++)
		wide[i] = (int32_t)kern_rand();
	wide[0] = INT32_MIN;
	wide[1] = INT32_MAX;
	convert(SAMPLE_S32, SAMPLE_F64, false, wide_mid, wide, 4096);
	size_t clipped = convert(SAMPLE_F64, SAMPLE_S32, false, wide_back, wide_mid, 4096);
	kern_ok(!clipped && !memcmp(wide, wide_back, sizeof(wide)), "convert s32 -> f64 -> s32: exact");
	for (int i = 0; i < 4096; i++)
		wide[i] = (int32_t)((uint32_t)wide[i] & 0xffffff00u);
	for (int k = 0; k < 4; k++) {
		static const enum sample through[] = {SAMPLE_S24, SAMPLE_S32, SAMPLE_F32, SAMPLE_F64};
		clipped = convert(SAMPLE_S24_32, through[k], true, mid, wide, 4096);
		clipped += convert(through[k], SAMPLE_S24_32, false, wide_back, mid, 4096);
		kern_ok(!clipped && !memcmp(wide, wide_back, sizeof(wide)), "convert s24_32 -> %s -> s24_32: exact", names[through[k]]);
	}

	/* In place. */
	static float place[1000];
	static int16_t apart[1000];
	for (int i = 0; i < 1000; i++)
		place[i] = (float)kern_uniform();
	convert(SAMPLE_F32, SAMPLE_S16, false, apart, place, 1000);
	convert(SAMPLE_F32, SAMPLE_S16, false, place, place, 1000);
	kern_ok(!memcmp(place, apart, sizeof(apart)), "convert f32 -> s16: in place");
}

#define N_DITHER 200000

static void check_dither(void)
{
	static float in[N_DITHER];
	static int16_t once[N_DITHER], split[N_DITHER];

	/* At -100 dBFS nothing but the noise is left, and never more than 2 steps of it. */
	for (int i = 0; i < N_DITHER; i++)
		in[i] = (float)(kern_uniform() * 1e-5);
	convert(SAMPLE_F32, SAMPLE_S16, false, once, in, N_DITHER);
	bool zero = true, small = true;
	for (int i = 0; i < N_DITHER; i++)
		zero &= once[i] == 0;
	convert(SAMPLE_F32, SAMPLE_S16, true, once, in, N_DITHER);
	int used = 0;
	for (int i = 0; i < N_DITHER; i++) {
		small &= abs(once[i]) <= 2;
		used += once[i] != 0;
	}
	kern_ok(zero, "convert f32 -> s16: -100 dBFS is silence without dither");
	kern_ok(small && used > N_DITHER / 8, "convert f32 -> s16: -100 dBFS with dither stays within 2 steps");

	/* A constant of 0.3 steps: the mean is kept, and the error's power is 1/4 step² whatever the input (TPDF). */
	for (int level = 0; level < 3; level++) {
		double steps = level * 0.25 + 0.05, sum = 0, power = 0, lag = 0, last = 0;
		for (int i = 0; i < N_DITHER; i++)
			in[i] = (float)(steps / 32768);
		convert(SAMPLE_F32, SAMPLE_S16, true, once, in, N_DITHER);
		for (int i = 0; i < N_DITHER; i++) {
			double e = once[i] - steps;
			sum += e;
			power += e * e;
			lag += e * last;
			last = e;
		}
		/* Bounds: 5 standard deviations of N_DITHER samples of variance 1/4. */
		kern_near(sum / N_DITHER, 0, 5 * 0.5 / sqrt(N_DITHER), "convert dither: mean error of a level of %.2f steps", steps);
		kern_near(power / N_DITHER, 0.25, 5 * 0.4 / sqrt(N_DITHER), "convert dither: error power at %.2f steps", steps);
		kern_near(lag / N_DITHER, 0, 5 * 0.25 / sqrt(N_DITHER), "convert dither: neighbours are unrelated at %.2f steps", steps);
	}

	/* The split into calls does not change a sample. */
	struct convert c;
	bool ok = !convert_init(&c, SAMPLE_F32, SAMPLE_S16, true, 1);
	for (size_t at = 0; at < N_DITHER;) {
		size_t n = kern_rand() % 100;
		if (n > N_DITHER - at)
			n = N_DITHER - at;
		convert_run(&c, split + at, in + at, n);
		at += n;
	}
	kern_ok(ok && !memcmp(once, split, sizeof(once)), "convert dither: independent of the split into calls");

	/* The same for 24 bits out of 32. */
	static int32_t wide[N_DITHER], narrow[N_DITHER];
	for (int i = 0; i < N_DITHER; i++)
		wide[i] = 77;
	convert(SAMPLE_S32, SAMPLE_S24_32, true, narrow, wide, N_DITHER);
	double sum = 0;
	for (int i = 0; i < N_DITHER; i++)
		sum += narrow[i] / 256 - 77 / 256.0;
	/* 30 bits on the way: the mean may be off by up to 1 of their steps, 1/64 of the target's. */
	kern_near(sum / N_DITHER, 0, 5 * 0.5 / sqrt(N_DITHER) + 1 / 64.0, "convert s32 -> s24_32 dithered: mean");
}

static void check_odd_formats(void)
{
	static const uint8_t bytes[] = {0, 1, 127, 128, 129, 255};
	int16_t got[6];
	static const int16_t u8[] = {-32768, -32512, -256, 0, 256, 32512}, s8[] = {0, 256, 32512, -32768, -32512, -256};
	convert_from_u8(got, bytes, 6);
	kern_ok(!memcmp(got, u8, sizeof(got)), "convert u8 -> s16");
	convert_from_s8(got, bytes, 6);
	kern_ok(!memcmp(got, s8, sizeof(got)), "convert s8 -> s16");

	/* G.711 tables 1 and 2: the ends, the zeros and one inside of each law. */
	static const uint8_t a_in[] = {0xd5, 0x55, 0xaa, 0x2a, 0x80, 0x00};
	static const int16_t a_want[] = {8, -8, 32256, -32256, 5504, -5504};
	convert_from_alaw(got, a_in, 6);
	kern_ok(!memcmp(got, a_want, sizeof(got)), "convert A-law -> s16: table values");
	static const uint8_t u_in[] = {0xff, 0x7f, 0x80, 0x00, 0xf0, 0xef};
	static const int16_t u_want[] = {0, 0, 32124, -32124, 120, 132};
	convert_from_ulaw(got, u_in, 6);
	kern_ok(!memcmp(got, u_want, sizeof(got)), "convert mu-law -> s16: table values");

	static const uint8_t be[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	uint8_t le[24];
	bool ok = true;
	for (size_t w = 1; w <= 8; w = w == 4 ? 8 : w + 1) {
		size_t n = sizeof(be) / w;
		memset(le, 0, sizeof(le));
		convert_swap(le, be, n, w);
		for (size_t i = 0; i < n * w; i++)
			ok &= le[i] == be[i / w * w + w - 1 - i % w];
		convert_swap(le, le, n, w);
		ok &= !memcmp(le, be, n * w) && le[n * w] == 0;
	}
	kern_ok(ok, "convert swap: 1, 2, 3, 4 and 8 bytes, and in place");
}

static struct bench {
	convert_fn *fn;
	struct convert_noise noise;
	size_t n;
} bench_c, bench_v;
static uint8_t bench_in[8 * 2048], bench_out[8 * 2048];

static void call(void *arg)
{
	struct bench *b = arg;
	b->fn(&b->noise, bench_out, bench_in, b->n);
}

static void bench_pair(enum sample from, enum sample to, bool dithers)
{
	char name[64];
	struct convert c;
	if (convert_init(&c, from, to, dithers, 1))
		return;
	fill(from, bench_in, 2048);
	bench_c = (struct bench){convert_c_pick(from, to, dithers), c.noise, 2048};
	bench_v = (struct bench){convert_avx2_pick(from, to, dithers), c.noise, 2048};
	snprintf(name, sizeof(name), "convert %s->%s%s, 2048 samples", names[from], names[to], dithers ? " dithered" : "");
	kern_bench(name, call, &bench_c, bench_v.fn ? call : NULL, &bench_v);
}

void kern_convert(bool bench)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
			for (int dithers = 0; dithers < 2; dithers++) {
				enum sample from = formats[i], to = formats[k];
				if (from == to || (dithers && !convert_loses(from, to)))
					continue;
				if (bench)
					bench_pair(from, to, dithers);
				else if (cpu_has(CPU_AVX2))
					check_pair(from, to, dithers);
			}
		}
	}
	if (bench)
		return;
	check_table();
	check_round_trips();
	check_dither();
	check_odd_formats();
	struct convert c;
	kern_ok(convert_init(&c, SAMPLE_CODED, SAMPLE_S16, false, 0) == ERR_ARG &&
			convert_init(&c, SAMPLE_F32, (enum sample)7, false, 0) == ERR_ARG,
		"convert: what is not PCM is refused");
}
