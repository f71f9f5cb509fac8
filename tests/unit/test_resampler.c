/* Resampling: exact lengths, alignment, the very samples libsoxr gives, and no allocation once warm. */
#include "check.h"

#include "base/heap.h"
#include "base/units.h"
#include "media/resampler.h"

#include <soxr.h>

static float *noise(size_t n_samples)
{
	float *p = malloc(n_samples * sizeof(*p) + 1);
	for (size_t i = 0; i < n_samples; i++)
		p[i] = (float)((double)(check_rand() >> 40) / (1 << 23) - 1.0) * 0.5f;
	return p;
}

/* All of `in` through r, in blocks of random length up to max_block.  Returns: frames made; *out is malloc'd. */
static size_t run_all(struct resampler *r, unsigned channels, const float *in, size_t n_in, size_t max_block, float **out)
{
	size_t room = 1024, made = 0, at = 0;
	enum err e = ERR_OK;
	*out = malloc(room * channels * sizeof(float));

	while (!e) {
		size_t n = at < n_in ? 1 + check_rand_below(max_block) : 0;
		size_t got = 1 + check_rand_below(max_block);
		if (n > n_in - at)
			n = n_in - at;
		if (made + got > room)
			*out = realloc(*out, (room = 2 * room + got) * channels * sizeof(float));
		if (at < n_in) {
			e = resampler_run(r, in + at * channels, &n, *out + made * channels, &got);
			at += n;
		} else {
			e = resampler_finish(r, *out + made * channels, &got);
			if (!got)
				break;
		}
		made += got;
	}
	CHECK_OK(e);
	return made;
}

static struct resampler *open_at(uint32_t in_hz, uint32_t out_hz, unsigned channels, enum resampler_quality q, unsigned threads)
{
	struct resampler_options o = {
		.in_hz = in_hz, .out_hz = out_hz, .channels = (uint16_t)channels, .quality = q, .n_threads = threads,
	};
	struct err_why why = { 0 };
	struct resampler *r = NULL;
	CHECK_OK(resampler_new(&r, &o, &why));
	return r;
}

static void test_impulse_is_in_place_and_symmetric(void)
{
	float *in = calloc(44100, sizeof(float)), *out;
	in[22050] = 1.0f;
	struct resampler *r = open_at(44100, 48000, 1, RESAMPLER_VERY_HIGH, 1);
	size_t n = run_all(r, 1, in, 44100, 3000, &out);
	CHECK_EQ(n, 48000);
	size_t top = 0;
	for (size_t i = 0; i < n; i++)
		if (fabsf(out[i]) > fabsf(out[top]))
			top = i;
	CHECK_EQ(top, 24000);
	double worst = 0;
	for (size_t i = 1; i < 20000; i++)
		worst = fmax(worst, fabs((double)out[24000 - i] - out[24000 + i]));
	CHECK_NEAR(worst, 0, 1e-6);
	resampler_free(r);
	free(in);
	free(out);
}

static void test_lengths_are_exact(void)
{
	static const uint32_t rates[][2] = {
		{ 44100, 48000 }, { 48000, 44100 }, { 48000, 22050 }, { 96000, 44100 }, { 11025, 48000 }, { 192000, 48000 },
		{ 32000, 48000 }, { 8000, 48000 }, { 48000, 8000 }, { 44100, 44101 }, { 48000, 48000 }, { 44056, 48000 },
	};
	static const size_t lengths[] = { 0, 1, 2, 3, 119, 120, 1000, 47777 };
	float *in = noise(240000), *out;

	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
			for (enum resampler_quality q = RESAMPLER_QUICK; q <= RESAMPLER_VERY_HIGH; q += 2) {
				struct resampler *r = open_at(rates[i][0], rates[i][1], 1, q, 1);
				size_t n = run_all(r, 1, in, lengths[k], 5000, &out);
				CHECK_EQ(n, units_scale((int64_t)lengths[k], rates[i][1], rates[i][0]));
				resampler_free(r);
				free(out);
			}
	struct resampler *r = open_at(48000, 22050, 1, RESAMPLER_HIGH, 1);
	CHECK_EQ(run_all(r, 1, in, 240000, 9000, &out), 110250);
	resampler_free(r);
	free(out);
	free(in);
}

/* What soxr gives when it is asked directly, in one call and with its own end. */
static void compare_with_soxr(uint32_t in_hz, uint32_t out_hz, unsigned channels, enum resampler_quality q, unsigned threads)
{
	static const unsigned long recipes[] = { SOXR_QQ, SOXR_LQ, SOXR_MQ, SOXR_HQ, SOXR_VHQ };
	size_t n_in = 60000 + check_rand_below(5000), room = (size_t)units_scale_up((int64_t)n_in, out_hz, in_hz) + 8, done = 0;
	float *in = noise(n_in * channels), *direct = calloc(room * channels, sizeof(float)), *out;
	soxr_quality_spec_t quality = soxr_quality_spec(recipes[q], 0);

	soxr_oneshot(in_hz, out_hz, channels, in, n_in, NULL, direct, room, &done, NULL, &quality, NULL);
	struct resampler *r = open_at(in_hz, out_hz, channels, q, threads);
	size_t n = run_all(r, channels, in, n_in, 7000, &out);
	if (CHECK_EQ(n, done))
		CHECK_MEM(out, direct, n * channels * sizeof(float));
	resampler_free(r);
	free(in);
	free(direct);
	free(out);
}

static void test_same_samples_as_soxr(void)
{
	check_seed(1);
	compare_with_soxr(44100, 48000, 2, RESAMPLER_VERY_HIGH, 1);
	compare_with_soxr(48000, 44100, 1, RESAMPLER_HIGH, 1);
	compare_with_soxr(96000, 44100, 3, RESAMPLER_MEDIUM, 1);
	compare_with_soxr(11025, 48000, 2, RESAMPLER_LOW, 1);
	compare_with_soxr(48000, 32000, 2, RESAMPLER_QUICK, 1);
}

static void test_threads_change_nothing(void)
{
	check_seed(2);
	compare_with_soxr(44100, 48000, 5, RESAMPLER_VERY_HIGH, 2);
	compare_with_soxr(48000, 44100, 7, RESAMPLER_HIGH, 3);
	compare_with_soxr(48000, 44100, 2, RESAMPLER_LOW, 8);
}

static void test_never_ahead_of_its_input(void)
{
	check_seed(3);
	float in[64] = { 0 }, out[512];

	for (enum resampler_quality q = RESAMPLER_QUICK; q <= RESAMPLER_VERY_HIGH; q++) {
		struct resampler *r = open_at(8000, 48000, 1, q, 1);
		uint64_t all_in = 0, all_out = 0;
		for (unsigned i = 0; i < 3000; i++) {
			size_t n = check_rand_below(64), made = 512;
			CHECK_OK(resampler_run(r, in, &n, out, &made));
			all_in += n;
			all_out += made;
			if (!CHECK(all_out <= all_in * 6))
				break;
		}
		CHECK(all_out > 100000);
		resampler_free(r);
	}
}

static void test_restart_begins_anew(void)
{
	check_seed(4);
	static const uint32_t rates[][2] = { { 44100, 48000 }, { 48000, 44100 }, { 32000, 48000 }, { 96000, 44100 } };

	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (unsigned finished = 0; finished < 2; finished++) {
			struct resampler *r = open_at(rates[i][0], rates[i][1], 2, RESAMPLER_VERY_HIGH, 1);
			float *first = noise(2 * 20011), *second = noise(2 * 30001), *a, *b, *want;
			size_t made = 4096, n = 9000;
			if (finished) {
				run_all(r, 2, first, 20011, 4000, &a);
			} else {
				a = malloc(2 * 4096 * sizeof(float));
				CHECK_OK(resampler_run(r, first, &n, a, &made));
			}
			CHECK_OK(resampler_restart(r));
			size_t n_b = run_all(r, 2, second, 30001, 4000, &b);
			resampler_free(r);

			r = open_at(rates[i][0], rates[i][1], 2, RESAMPLER_VERY_HIGH, 1);
			size_t n_want = run_all(r, 2, second, 30001, 4000, &want);
			resampler_free(r);
			if (CHECK_EQ(n_b, n_want)) {
				/* A new soxr takes what its first stage would have rung before the start for zero:
				 * that is in the first frames.  Behind them there is only rounding. */
				double worst = 0, worst_first = 0;
				for (size_t k = 0; k < 2 * 128; k++)
					worst_first = fmax(worst_first, fabs((double)b[k] - want[k]));
				for (size_t k = 2 * 128; k < 2 * n_b; k++)
					worst = fmax(worst, fabs((double)b[k] - want[k]));
				CHECK_NEAR(worst_first, 0, 0.05);
				CHECK_NEAR(worst, 0, 2e-7);
			}
			free(first);
			free(second);
			free(a);
			free(b);
			free(want);
		}
}

static void test_no_allocation_once_warm(void)
{
	if (!heap_is_counted()) {
		check_skip("allocations are not counted in this build");
		return;
	}
	float in[2 * 1024] = { 0 }, out[2 * 1200];

	for (unsigned threads = 1; threads <= 2; threads++) {
		struct resampler *r = open_at(44100, 48000, 2, RESAMPLER_VERY_HIGH, threads);
		uint64_t warm = 0;
		for (unsigned i = 0; i < 3000; i++) {
			if (i == 50)
				warm = heap_allocs();
			for (size_t at = 0; at < 1024;) {
				size_t n = 1024 - at, made = 1200;
				if (!CHECK_OK(resampler_run(r, in + 2 * at, &n, out, &made)))
					return;
				at += n;
			}
		}
		CHECK(warm > 0);
		CHECK_EQ(heap_allocs(), warm);
		resampler_free(r);
	}
}

static void test_nonsense_is_refused(void)
{
	struct resampler_options o = { .in_hz = 0, .out_hz = 48000, .channels = 1 };
	struct err_why why = { 0 };
	struct resampler *r = NULL;

	CHECK_EQ(resampler_new(&r, &o, &why), ERR_ARG);
	CHECK(!r && why.reason[0]);
	resampler_free(NULL);
}

int main(void)
{
	check_seed(0);
	CHECK_RUN(test_impulse_is_in_place_and_symmetric);
	CHECK_RUN(test_lengths_are_exact);
	CHECK_RUN(test_same_samples_as_soxr);
	CHECK_RUN(test_threads_change_nothing);
	CHECK_RUN(test_never_ahead_of_its_input);
	CHECK_RUN(test_restart_begins_anew);
	CHECK_RUN(test_no_allocation_once_warm);
	CHECK_RUN(test_nonsense_is_refused);
	return check_end();
}
