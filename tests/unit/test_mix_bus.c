/* The bus: sums against doubles, ramps, mixes without oneself. */
#include "check.h"

#include "base/cpu.h"
#include "base/heap.h"
#include "mix/bus.h"
#include "mix/layouts.h"
#include "mix/minus.h"

#define FULL 0x1p-23

/* Sum of n_tracks tracks of full scale and random gains: the f32 result within 2^-23 · N of the exact sum. */
static void sum_is_exact(unsigned n_tracks, unsigned channels, bool panned)
{
	enum { FRAMES = 500 };
	double *acc = calloc(FRAMES * channels, sizeof(double));
	long double *exact = calloc(FRAMES * channels, sizeof(long double));
	float *x = malloc(FRAMES * channels * sizeof(float));
	double *m = calloc(channels * channels, sizeof(double));

	for (unsigned t = 0; t < n_tracks; t++) {
		struct bus_track track;
		double gain = (double)check_rand_below(1000) / 999;
		CHECK_OK(bus_track_init(&track, SAMPLE_F32, channels, channels, cpu_flags()));
		for (unsigned c = 0; c < channels; c++)
			m[c * channels + c] = 1;
		if (panned && channels == 2)
			layouts_pan(m, 2, (double)check_rand_below(2001) / 1000 - 1);
		for (unsigned k = 0; k < channels * channels; k++)
			m[k] *= gain;
		bus_track_set(&track, m, 0);
		for (size_t i = 0; i < FRAMES * channels; i++)
			x[i] = (float)((double)(int64_t)check_rand() * 0x1p-63);
		for (size_t f = 0; f < FRAMES; f++)
			for (unsigned o = 0; o < channels; o++)
				for (unsigned i = 0; i < channels; i++)
					exact[f * channels + o] += (long double)m[o * channels + i] * x[f * channels + i];
		/* In pieces of odd sizes. */
		for (size_t at = 0; at < FRAMES;) {
			size_t n = 1 + check_rand_below(97);
			n = n < FRAMES - at ? n : FRAMES - at;
			CHECK_EQ(bus_add(&track, acc + at * channels, x + at * channels, n), 0);
			at += n;
		}
		bus_track_release(&track);
	}
	double worst = 0;
	for (size_t i = 0; i < FRAMES * channels; i++) {
		double d = fabs((double)((long double)(float)acc[i] - exact[i]));
		worst = d > worst ? d : worst;
	}
	if (worst > FULL * n_tracks)
		CHECK_FAIL("%u tracks of %u channels: off by %g, allowed %g", n_tracks, channels, worst, FULL * n_tracks);
	free(acc);
	free(exact);
	free(x);
	free(m);
}

static void test_sums(void)
{
	check_seed(11);
	for (unsigned n = 1; n <= 64; n *= 4)
		for (unsigned channels = 1; channels <= 8; channels++) {
			sum_is_exact(n, channels, false);
			sum_is_exact(n, channels, true);
		}
}

/* Wires, pairs, spread and cross give the same as the plain formula, for each format at once. */
static void test_every_matrix(void)
{
	enum { FRAMES = 133 };
	check_seed(12);
	for (unsigned in = 1; in <= 6; in++)
		for (unsigned out = 1; out <= 6; out++)
			for (int sparse = 0; sparse < 3; sparse++) {
				struct bus_track t;
				double m[36], acc[FRAMES * 6] = { 0 };
				int16_t x[FRAMES * 6];
				CHECK_OK(bus_track_init(&t, SAMPLE_S16, in, out, cpu_flags()));
				for (unsigned k = 0; k < in * out; k++)
					m[k] = sparse && check_rand_below(3) < (unsigned)sparse ? 0 : (double)(int64_t)check_rand() * 0x1p-62;
				for (size_t i = 0; i < FRAMES * in; i++)
					x[i] = (int16_t)check_rand();
				bus_track_set(&t, m, 0);
				(void)bus_add(&t, acc, x, FRAMES);
				for (size_t f = 0; f < FRAMES; f++)
					for (unsigned o = 0; o < out; o++) {
						double sum = 0;
						for (unsigned i = 0; i < in; i++)
							sum += m[o * in + i] * x[f * in + i] / 32768;
						CHECK_NEAR(acc[f * out + o], sum, 1e-14);
					}
				bus_track_release(&t);
			}
}

static void test_ramp(void)
{
	enum { FRAMES = 1000, RAMP = 480 };
	struct bus_track t;
	float ones[FRAMES];
	double acc[FRAMES] = { 0 };
	const double half = 0.5, two = 2, none = 0;

	for (size_t i = 0; i < FRAMES; i++)
		ones[i] = 1;
	CHECK_OK(bus_track_init(&t, SAMPLE_F32, 1, 1, cpu_flags()));
	CHECK(t.is_silent);
	bus_track_set(&t, &half, 0);
	(void)bus_add(&t, acc, ones, 10);
	bus_track_set(&t, &two, RAMP);
	/* The ramp goes on over blocks and through silence. */
	(void)bus_add(&t, acc + 10, ones, 90);
	bus_pass(&t, 100);
	(void)bus_add(&t, acc + 200, ones + 200, FRAMES - 200);
	for (size_t i = 0; i < FRAMES; i++) {
		double gain = i < 10 ? 0.5 : i < 10 + RAMP ? 0.5 + 1.5 * (double)(i - 10) / RAMP : 2;
		CHECK_NEAR(acc[i], i >= 100 && i < 200 ? 0 : gain, 1e-14);
	}
	CHECK_EQ(t.ramp_frames, 0);

	/* A new goal on the way goes on from where it is. */
	bus_track_set(&t, &none, RAMP);
	memset(acc, 0, sizeof(acc));
	(void)bus_add(&t, acc, ones, RAMP / 2);
	bus_track_set(&t, &two, RAMP);
	(void)bus_add(&t, acc + RAMP / 2, ones, 1);
	CHECK_NEAR(acc[RAMP / 2], 1, 1e-14);
	for (size_t i = 1; i <= RAMP / 2; i++)
		CHECK(fabs(acc[i] - acc[i - 1]) <= 2.0 / RAMP + 1e-12);
	/* Down to nothing: silent to the bit, and NaN stays out and is counted until it is. */
	bus_track_set(&t, &none, 0);
	ones[3] = NAN;
	memset(acc, 0, sizeof(acc));
	CHECK_EQ(bus_add(&t, acc, ones, 10), 0);
	for (size_t i = 0; i < 10; i++)
		CHECK(acc[i] == 0);
	bus_track_set(&t, &two, 0);
	CHECK_EQ(bus_add(&t, acc, ones, 10), 1);
	CHECK(acc[3] == 0 && acc[4] == 2);
	bus_track_release(&t);
	bus_track_release(&t);
}

static void test_bits(void)
{
	struct bus_track t;
	const double one = 1, half = 0.5, none = 0;
	CHECK_OK(bus_track_init(&t, SAMPLE_S16, 1, 1, 0));
	bus_track_set(&t, &one, 0);
	CHECK_EQ(bus_track_bits(&t), 16);
	bus_track_set(&t, &half, 10);
	CHECK_EQ(bus_track_bits(&t), 64);
	bus_pass(&t, 10);
	CHECK_EQ(bus_track_bits(&t), 64);
	bus_track_set(&t, &none, 0);
	CHECK_EQ(bus_track_bits(&t), 16);
	bus_track_release(&t);
	CHECK_EQ(bus_track_init(&t, SAMPLE_CODED, 1, 1, 0), ERR_ARG);
	CHECK_EQ(bus_track_init(&t, SAMPLE_S16, 0, 1, 0), ERR_ARG);
}

/* total minus self equals the direct sum within 2^-23 · N, also beside a part that is a million times too loud. */
static void minus_is_direct(unsigned n, double loudest, double self)
{
	enum { FRAMES = 240, CH = 2 };
	struct minus m;
	static double parts[64][FRAMES * CH];

	CHECK_OK(minus_init(&m, CH, FRAMES));
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(minus_join(&m));
	minus_begin(&m, FRAMES);
	for (unsigned i = 0; i < n; i++) {
		bool has = i % 3 != 2;
		double *to = has ? minus_part(&m, i) : NULL;
		for (size_t k = 0; k < FRAMES * CH; k++) {
			parts[i][k] = has ? (double)(float)((double)(int64_t)check_rand() * 0x1p-63) : 0;
			if (i == 1)
				parts[i][k] *= loudest;
			if (has)
				to[k] += parts[i][k];
		}
	}
	minus_sum(&m);
	unsigned n_shared = 0;
	for (unsigned i = 0; i < n; i++) {
		bool shared;
		const double *mix = minus_mix(&m, i, self, &shared);
		n_shared += shared;
		for (size_t k = 0; k < FRAMES * CH; k++) {
			double direct = 0, size = 1;
			for (unsigned j = 0; j < n; j++)
				direct += (j == i ? self : 1) * parts[j][k];
			if (fabs(direct) > size)
				size = fabs(direct);
			if (fabs((double)(float)mix[k] - direct) > FULL * n * size)
				CHECK_FAIL("%u parts, participant %u, sample %zu: %g and %g", n, i, k, mix[k], direct);
		}
	}
	if (loudest <= 1 && self != 1)
		CHECK_EQ(n_shared, n / 3);
	minus_release(&m);
}

static void test_minus(void)
{
	check_seed(13);
	for (unsigned n = 1; n <= 64; n = 2 * n + 1) {
		minus_is_direct(n, 1, 0);
		minus_is_direct(n, 1, 0.25);
		minus_is_direct(n, 1, 1);
		minus_is_direct(n, 1e12, 0);
	}
}

static void test_allocates_nothing(void)
{
	enum { FRAMES = 1024, CH = 16 };
	struct bus_track t;
	struct minus minus;
	static double acc[FRAMES * CH], m[CH * CH];
	static float x[FRAMES * CH];

	if (!heap_is_counted()) {
		check_skip("a sanitizer's allocator is not counted");
		return;
	}
	CHECK_OK(bus_track_init(&t, SAMPLE_F32, CH, CH, cpu_flags()));
	CHECK_OK(minus_init(&minus, CH, FRAMES));
	CHECK_OK(minus_join(&minus));
	uint64_t before = heap_allocs();
	for (unsigned turn = 0; turn < 200; turn++) {
		bool shared;
		for (unsigned k = 0; k < CH * CH; k++)
			m[k] = turn % 3 ? k % 17 == 0 : (double)(k % 5) / 7;
		bus_track_set(&t, m, turn % 2 ? 480 : 0);
		minus_begin(&minus, FRAMES);
		(void)bus_add(&t, minus_part(&minus, 0), x, FRAMES);
		(void)bus_add(&t, acc, x, FRAMES);
		minus_sum(&minus);
		(void)minus_mix(&minus, 0, 0, &shared);
	}
	CHECK_EQ(heap_allocs(), before);
	bus_track_release(&t);
	minus_release(&minus);
}

int main(void)
{
	CHECK_RUN(test_sums);
	CHECK_RUN(test_every_matrix);
	CHECK_RUN(test_ramp);
	CHECK_RUN(test_bits);
	CHECK_RUN(test_minus);
	CHECK_RUN(test_allocates_nothing);
	return check_end();
}
