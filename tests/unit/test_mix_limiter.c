/* The limiter: nothing above the ceiling, nothing touched below it, and the delay that it says. */
#include "check.h"

#include "base/cpu.h"
#include "base/heap.h"
#include "base/units.h"
#include "mix/limiter.h"

#define RATE 48000u

/* Through the limiter, its delay taken out. */
static float *limited(const float *x, size_t n_frames, unsigned channels, uint32_t rate_hz, double ceiling, struct limiter *l)
{
	CHECK_OK(limiter_init(l, rate_hz, channels, ceiling, cpu_flags()));
	size_t all = n_frames + l->delay_frames;
	float *y = calloc(all * channels, sizeof(*y));
	memcpy(y, x, n_frames * channels * sizeof(*y));
	for (size_t at = 0; at < all;) {
		size_t n = 1 + check_rand_below(700);
		n = n < all - at ? n : all - at;
		limiter_run(l, y + at * channels, n);
		at += n;
	}
	memmove(y, y + l->delay_frames * channels, n_frames * channels * sizeof(*y));
	return y;
}

static double true_peak_db(const float *x, size_t n_frames, unsigned channels, uint32_t rate_hz)
{
	struct truepeak t;
	float peaks[8] = { 0 }, zeros[64 * 8] = { 0 }, peak = 0;
	CHECK_OK(truepeak_init(&t, rate_hz, channels));
	truepeak_run(&t, peaks, x, n_frames);
	truepeak_run(&t, peaks, zeros, 64);
	truepeak_release(&t);
	for (unsigned c = 0; c < channels; c++)
		peak = peaks[c] > peak ? peaks[c] : peak;
	return units_factor_to_db((double)peak);
}

/* Loud material of several kinds: noise, bursts, clicks, a tone between its samples, square waves. */
static void make(float *x, size_t n_frames, unsigned channels, int kind)
{
	for (size_t f = 0; f < n_frames; f++)
		for (unsigned c = 0; c < channels; c++) {
			double noise = (double)(int64_t)check_rand() * 0x1p-63, v;
			switch (kind) {
			case 0: v = 4 * noise; break;
			case 1: v = f / 3000 % 2 ? 3 * noise : 0.05 * noise; break;
			case 2: v = f % 1777 == 5 * c ? 8 : 0.1 * noise; break;
			case 3: v = 2 * sin(M_PI / 2 * (double)f + M_PI / 4); break;
			case 4: v = f / 50 % 2 ? 1.7 : -1.7; break;
			default: v = 3 * sin(2 * M_PI * (double)f * (0.1 + (double)f * 1e-6)); break;
			}
			x[f * channels + c] = (float)v;
		}
}

static void test_ceiling(void)
{
	enum { FRAMES = 30000 };
	static float x[FRAMES * 6];
	static const uint32_t rates[] = { 8000, 44100, 48000, 96000, 192000 };

	check_seed(21);
	for (size_t r = 0; r < ARRAY_LEN(rates); r++)
		for (unsigned channels = 1; channels <= 6; channels += channels == 1 ? 1 : 4)
			for (int kind = 0; kind < 6; kind++) {
				struct limiter l;
				make(x, FRAMES, channels, kind);
				float *y = limited(x, FRAMES, channels, rates[r], -1, &l);
				double db = true_peak_db(y, FRAMES, channels, rates[r]);
				if (!(db <= -1) || db < -2.5)
					CHECK_FAIL("%u Hz, %u channels, kind %d: %.3f dBTP", rates[r], channels, kind, db);
				CHECK(l.limited_frames > 0);
				free(y);
				limiter_release(&l);
			}
}

static void test_untouched(void)
{
	enum { FRAMES = 20000 };
	static float x[FRAMES * 2];
	struct limiter l;

	check_seed(22);
	for (size_t i = 0; i < FRAMES * 2; i++)
		x[i] = (float)((double)(int64_t)check_rand() * 0x1p-63 * 0.3);
	float *y = limited(x, FRAMES, 2, RATE, -1, &l);
	CHECK_MEM(x, y, sizeof(x));
	CHECK_EQ(l.limited_frames, 0);
	free(y);
	limiter_release(&l);

	/* One peak: only its neighbourhood changes, and long after it all is as it was. */
	x[2 * 10000] = 4;
	y = limited(x, FRAMES, 2, RATE, -1, &l);
	CHECK_MEM(x, y, 2 * (10000 - 260) * sizeof(*x));
	CHECK(fabsf(y[2 * 10000]) <= 0.8913f);
	float ratio = y[2 * 10000] / 4;
	CHECK(ratio > 0.2f);
	CHECK(y[2 * 10000 + 1] == x[2 * 10000 + 1] * (y[2 * 10000] / x[2 * 10000]) || fabsf(y[2 * 10000 + 1] - x[2 * 10000 + 1] * ratio) < 1e-6f);
	/* 100 ms later most of it is over. */
	CHECK(fabsf(y[2 * 14800] / x[2 * 14800]) > 0.6f);
	free(y);
	limiter_release(&l);
}

static void test_recovers_to_the_bit(void)
{
	enum { FRAMES = 200000 };
	static float x[FRAMES];
	struct limiter l;
	for (size_t i = 0; i < FRAMES; i++)
		x[i] = (float)(0.5 * sin((double)i * 0.01));
	x[1000] = 3;
	float *y = limited(x, FRAMES, 1, RATE, -1, &l);
	CHECK_MEM(x + 150000, y + 150000, 50000 * sizeof(*x));
	/* The gain never jumps: 5 ms of attack for 3 to 0.89. */
	for (size_t i = 1; i < FRAMES; i++) {
		if (fabsf(x[i]) < 0.1f || fabsf(x[i - 1]) < 0.1f)
			continue;
		float step = fabsf(y[i] / x[i] - y[i - 1] / x[i - 1]);
		if (step > 0.7f / 200)
			CHECK_FAIL("frame %zu: the gain jumps by %g", i, step);
	}
	free(y);
	limiter_release(&l);
}

static void test_odd_input(void)
{
	struct limiter l;
	float x[4000];
	CHECK_EQ(limiter_init(&l, RATE, 0, -1, 0), ERR_ARG);
	CHECK_OK(limiter_init(&l, RATE, 2, -1, cpu_flags()));
	uint64_t before = heap_allocs();
	for (int turn = 0; turn < 20; turn++) {
		for (size_t i = 0; i < 4000; i++)
			x[i] = turn < 10 ? 3e38f : 0.1f;
		limiter_run(&l, x, 2000);
	}
	if (heap_is_counted())
		CHECK_EQ(heap_allocs(), before);
	for (size_t i = 0; i < 4000; i++)
		CHECK(x[i] >= 0 && x[i] <= 1);
	limiter_release(&l);
	limiter_release(&l);
}

int main(void)
{
	CHECK_RUN(test_ceiling);
	CHECK_RUN(test_untouched);
	CHECK_RUN(test_recovers_to_the_bit);
	CHECK_RUN(test_odd_input);
	return check_end();
}
