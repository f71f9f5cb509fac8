/* Resampling: exact lengths, alignment, places, the very samples libsoxr gives, and no allocation once warm. */
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

static struct resampler *open_with(const struct resampler_options *o)
{
	struct err_why why = { 0 };
	struct resampler *r = NULL;
	CHECK_OK(resampler_new(&r, o, &why));
	return r;
}

static struct resampler *open_at(uint32_t in_hz, uint32_t out_hz, unsigned channels, enum resampler_quality q)
{
	struct resampler_options o = { .in_hz = in_hz, .out_hz = out_hz, .channels = (uint16_t)channels, .quality = q };
	return open_with(&o);
}

static void test_impulse_is_in_place_and_symmetric(void)
{
	float *in = calloc(44100, sizeof(float)), *out;
	in[22050] = 1.0f;
	struct resampler *r = open_at(44100, 48000, 1, RESAMPLER_VERY_HIGH);
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
				struct resampler *r = open_at(rates[i][0], rates[i][1], 1, q);
				size_t n = run_all(r, 1, in, lengths[k], 5000, &out);
				CHECK_EQ(n, units_scale((int64_t)lengths[k], rates[i][1], rates[i][0]));
				resampler_free(r);
				free(out);
			}
	struct resampler *r = open_at(48000, 22050, 1, RESAMPLER_HIGH);
	CHECK_EQ(run_all(r, 1, in, 240000, 9000, &out), 110250);
	resampler_free(r);
	free(out);
	free(in);
}

static const unsigned long recipes[] = { SOXR_QQ, SOXR_LQ, SOXR_MQ, SOXR_HQ, SOXR_VHQ };
static const unsigned long phases[] = { SOXR_LINEAR_PHASE, SOXR_INTERMEDIATE_PHASE, SOXR_MINIMUM_PHASE };

/* What soxr gives when it is asked directly, in one call and with its own end.  Returns: frames; *out is malloc'd. */
static size_t ask_soxr(const struct resampler_options *o, const void *in, size_t n_in, void **out)
{
	size_t room = (size_t)units_scale_up((int64_t)n_in, o->out_hz, o->in_hz) + 8, done = 0;
	soxr_datatype_t type = o->is_double ? SOXR_FLOAT64_I : SOXR_FLOAT32_I;
	soxr_io_spec_t io = soxr_io_spec(type, type);
	soxr_quality_spec_t quality = soxr_quality_spec(recipes[o->quality] | phases[o->phase], 0);

	*out = calloc(room * o->channels, sizeof(double));
	CHECK(!soxr_oneshot(o->in_hz, o->out_hz, o->channels, in, n_in, NULL, *out, room, &done, &io, &quality, NULL));
	return done;
}

static void compare_with_soxr(uint32_t in_hz, uint32_t out_hz, unsigned channels, enum resampler_quality q, enum resampler_phase phase)
{
	struct resampler_options o = { .in_hz = in_hz, .out_hz = out_hz, .channels = (uint16_t)channels, .quality = q, .phase = phase };
	size_t n_in = 60000 + check_rand_below(5000);
	float *in = noise(n_in * channels), *out;
	void *direct;
	size_t done = ask_soxr(&o, in, n_in, &direct);

	struct resampler *r = open_with(&o);
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
	compare_with_soxr(44100, 48000, 2, RESAMPLER_VERY_HIGH, RESAMPLER_LINEAR);
	compare_with_soxr(48000, 44100, 1, RESAMPLER_HIGH, RESAMPLER_LINEAR);
	compare_with_soxr(96000, 44100, 3, RESAMPLER_MEDIUM, RESAMPLER_LINEAR);
	compare_with_soxr(11025, 48000, 2, RESAMPLER_LOW, RESAMPLER_LINEAR);
	compare_with_soxr(48000, 32000, 2, RESAMPLER_QUICK, RESAMPLER_LINEAR);
	compare_with_soxr(192000, 44100, 1, RESAMPLER_VERY_HIGH, RESAMPLER_MINIMUM);
	compare_with_soxr(48000, 96000, 2, RESAMPLER_HIGH, RESAMPLER_INTERMEDIATE);
}

/* Planes, f32 or f64, over some threads: the same samples as soxr makes of them interleaved. */
static void compare_planes(uint32_t in_hz, uint32_t out_hz, unsigned channels, enum resampler_quality q, unsigned threads, bool is_double)
{
	struct resampler_options o = {
		.in_hz = in_hz, .out_hz = out_hz, .channels = (uint16_t)channels, .quality = q, .n_threads = threads, .is_double = is_double,
		.is_planar = true,
	};
	size_t n_in = 30000 + check_rand_below(5000), bytes = is_double ? sizeof(double) : sizeof(float), made = 0;
	size_t room = (size_t)units_scale_up((int64_t)n_in, out_hz, in_hz) + 8;
	float *source = noise(n_in * channels);
	uint8_t *in = malloc(n_in * channels * bytes), *planes = malloc(n_in * channels * bytes), *made_planes = malloc(room * channels * bytes);
	void *direct, *at_in[32], *at_out[32];

	for (size_t i = 0; i < n_in; i++)
		for (unsigned c = 0; c < channels; c++) {
			double d = source[i * channels + c] + (is_double ? 1e-12 : 0);
			float f = source[i * channels + c];
			memcpy(in + (i * channels + c) * bytes, is_double ? (void *)&d : &f, bytes);
			memcpy(planes + (c * n_in + i) * bytes, is_double ? (void *)&d : &f, bytes);
		}
	size_t done = ask_soxr(&o, in, n_in, &direct);
	struct resampler *r = open_with(&o);
	for (size_t at = 0;;) {
		size_t n = at < n_in ? 1 + check_rand_below(6000) : 0, got = 1 + check_rand_below(6000);
		n = n > n_in - at ? n_in - at : n;
		got = got > room - made ? room - made : got;
		for (unsigned c = 0; c < channels; c++) {
			at_in[c] = planes + (c * n_in + at) * bytes;
			at_out[c] = made_planes + (c * room + made) * bytes;
		}
		if (at == n_in) {
			CHECK_OK(resampler_finish(r, at_out, &got));
		} else if (check_rand_below(2)) {
			CHECK_OK(resampler_run(r, at_in, &n, at_out, &got));
		} else {
			CHECK_OK(resampler_start(r, at_in, n, at_out, got));
			CHECK_OK(resampler_wait(r, &n, &got));
		}
		if (at == n_in && !got)
			break;
		at += n;
		made += got;
	}
	CHECK_EQ(made, done);
	size_t n_wrong = 0;
	for (size_t i = 0; i < made && i < done; i++)
		for (unsigned c = 0; c < channels; c++)
			n_wrong += memcmp((uint8_t *)direct + (i * channels + c) * bytes, made_planes + (c * room + i) * bytes, bytes) != 0;
	CHECK_EQ(n_wrong, 0);
	resampler_free(r);
	free(source);
	free(in);
	free(planes);
	free(made_planes);
	free(direct);
}

static void test_planes_and_threads_change_nothing(void)
{
	check_seed(2);
	compare_planes(44100, 48000, 1, RESAMPLER_VERY_HIGH, 1, false);
	compare_planes(44100, 48000, 5, RESAMPLER_VERY_HIGH, 2, false);
	compare_planes(48000, 44100, 7, RESAMPLER_HIGH, 3, false);
	compare_planes(48000, 44100, 2, RESAMPLER_LOW, 8, false);
	compare_planes(96000, 44100, 32, RESAMPLER_QUICK, 2, false);
	compare_planes(44100, 48000, 3, RESAMPLER_VERY_HIGH, 1, true);
	compare_planes(48000, 96000, 12, RESAMPLER_HIGH, 2, true);
}

/* Begun at a position: as the end of a long signal that was silence before. */
static void test_places_are_those_of_one_signal(void)
{
	static const uint32_t rates[][2] = {
		{ 44100, 48000 }, { 48000, 44100 }, { 48000, 96000 }, { 192000, 44100 }, { 44100, 44101 }, { 8000, 48000 }, { 48000, 48000 },
	};
	/* The lower recipes go on with a phase that is a little rounded. */
	static const double most[] = { 4e-5, 5e-6, 5e-6, 5e-6, 2e-7 };
	check_seed(5);
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (enum resampler_quality q = RESAMPLER_QUICK; q <= RESAMPLER_VERY_HIGH; q++) {
			int64_t pos = 30000 + (int64_t)check_rand_below(20000), from = -1;
			size_t n_in = 9000 + check_rand_below(3000), n_all = (size_t)pos + n_in;
			float *all = calloc(n_all, sizeof(float)), *part = noise(n_in), *first = noise(20011), *out;
			struct resampler_options o = { .in_hz = rates[i][0], .out_hz = rates[i][1], .channels = 1, .quality = q };
			void *want;

			memcpy(all + pos, part, n_in * sizeof(float));
			size_t n_want = ask_soxr(&o, all, n_all, &want);
			/* at once; and behind something else that was not even finished */
			for (unsigned behind = 0; behind < 2; behind++) {
				struct resampler *r = open_with(&o);
				float waste[64];
				for (size_t done = 0; behind && done < 20011;) {
					size_t n = 20011 - done, made = 64;
					CHECK_OK(resampler_run(r, first + done, &n, waste, &made));
					done += n;
				}
				CHECK_OK(resampler_place(r, pos, &from));
				CHECK_EQ(from, units_scale(pos, o.out_hz, o.in_hz));
				size_t n = run_all(r, 1, part, n_in, 3000, &out);
				if (CHECK_EQ(n, n_want - (size_t)from)) {
					/* What soxr begins with lacks what its first stage would have rung before: see below. */
					bool is_first = !behind && pos * o.out_hz % o.in_hz == 0;
					double worst = 0;
					for (size_t k = is_first ? 256 : 0; k < n; k++)
						worst = fmax(worst, fabs((double)out[k] - ((float *)want)[(size_t)from + k]));
					CHECK_NEAR(worst, 0, most[q]);
				}
				resampler_free(r);
				free(out);
			}
			free(all);
			free(part);
			free(first);
			free(want);
		}
}

/* A hundred places: no rounding adds up. */
static void test_places_add_up(void)
{
	struct resampler *r = open_at(48000, 44100, 1, RESAMPLER_HIGH);
	float in[960] = { 0 }, out[2048];
	int64_t pos = -7777, end = 0;

	for (unsigned i = 0; i < 100; i++) {
		int64_t from;
		size_t n = 1 + (i * 37) % 960, made = 2048;
		CHECK_OK(resampler_place(r, pos, &from));
		CHECK_EQ(from, units_scale(pos, 44100, 48000));
		size_t given = n;
		CHECK_OK(resampler_run(r, in, &n, out, &made));
		CHECK_EQ(n, given);
		end = from + (int64_t)made;
		for (made = 2048; made; end += (int64_t)made) {
			made = 100;
			CHECK_OK(resampler_finish(r, out, &made));
		}
		pos += (int64_t)n;
		CHECK_EQ(end, units_scale(pos, 44100, 48000));
		pos += 1 + (i * 131) % 5000;
	}
	resampler_free(r);
}

static void test_never_ahead_of_its_input(void)
{
	check_seed(3);
	float in[64] = { 0 }, out[512];

	for (enum resampler_quality q = RESAMPLER_QUICK; q <= RESAMPLER_VERY_HIGH; q++) {
		struct resampler *r = open_at(8000, 48000, 1, q);
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

static void test_place_begins_anew(void)
{
	check_seed(4);
	static const uint32_t rates[][2] = { { 44100, 48000 }, { 48000, 44100 }, { 32000, 48000 }, { 96000, 44100 } };

	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (unsigned finished = 0; finished < 2; finished++) {
			struct resampler *r = open_at(rates[i][0], rates[i][1], 2, RESAMPLER_VERY_HIGH);
			float *first = noise(2 * 20011), *second = noise(2 * 30001), *a, *b, *want;
			size_t made = 4096, n = 9000;
			if (finished) {
				run_all(r, 2, first, 20011, 4000, &a);
			} else {
				a = malloc(2 * 4096 * sizeof(float));
				CHECK_OK(resampler_run(r, first, &n, a, &made));
			}
			int64_t begin = -1;
			CHECK_OK(resampler_place(r, 0, &begin));
			CHECK_EQ(begin, 0);
			size_t n_b = run_all(r, 2, second, 30001, 4000, &b);
			resampler_free(r);

			r = open_at(rates[i][0], rates[i][1], 2, RESAMPLER_VERY_HIGH);
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
	static float in[2 * 1024], out[2 * 1200];
	/* libsoxr's queues grow as they are first filled so far; the medium recipe takes longest. */
	for (enum resampler_quality q = RESAMPLER_QUICK; q <= RESAMPLER_VERY_HIGH; q++)
		for (unsigned threads = 1; threads <= 2; threads++) {
			struct resampler_options o = {
				.in_hz = 44100, .out_hz = 48000, .channels = 2, .quality = q, .is_planar = threads > 1, .n_threads = threads,
			};
			struct resampler *r = open_with(&o);
			uint64_t warm = 0;
			for (unsigned i = 0; i < 5000; i++) {
				if (i == 500)
					warm = heap_allocs();
				for (size_t at = 0; at < 1024;) {
					size_t n = 1024 - at, made = 1200;
					const void *from[2] = { in + at, in + 1024 + at };
					void *to[2] = { out, out + 1200 };
					if (!CHECK_OK(resampler_run(r, threads > 1 ? (void *)from : in + 2 * at, &n, threads > 1 ? (void *)to : out, &made)))
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
	o = (struct resampler_options){ .in_hz = 44100, .out_hz = 48000, .channels = 2, .n_threads = 2 };
	CHECK_EQ(resampler_new(&r, &o, &why), ERR_ARG);
	CHECK(!r);
	o = (struct resampler_options){ .in_hz = 1, .out_hz = RESAMPLER_MAX_RATIO, .channels = 1 };
	CHECK_EQ(resampler_new(&r, &o, &why), ERR_LIMIT);
	o = (struct resampler_options){ .in_hz = 6144000, .out_hz = 6144000 / RESAMPLER_MAX_RATIO, .channels = 1 };
	CHECK_EQ(resampler_new(&r, &o, &why), ERR_LIMIT);
	resampler_free(NULL);
}

int main(void)
{
	check_seed(0);
	CHECK_RUN(test_impulse_is_in_place_and_symmetric);
	CHECK_RUN(test_lengths_are_exact);
	CHECK_RUN(test_same_samples_as_soxr);
	CHECK_RUN(test_planes_and_threads_change_nothing);
	CHECK_RUN(test_places_are_those_of_one_signal);
	CHECK_RUN(test_places_add_up);
	CHECK_RUN(test_never_ahead_of_its_input);
	CHECK_RUN(test_place_begins_anew);
	CHECK_RUN(test_no_allocation_once_warm);
	CHECK_RUN(test_nonsense_is_refused);
	return check_end();
}
