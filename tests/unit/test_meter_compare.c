/* A track against its reference: offsets found, losses counted, errors measured. */
#include "meter_feed.h"

#include "base/heap.h"

/* A signal of two channels that is unlike itself a moment later, and what reads from it. */
struct memory {
	const double *frames;
	size_t n_frames, at;
	unsigned n_channels;
	size_t most;              /* frames handed out at once */
};

static enum err memory_read(void *from, double *dst, size_t max_frames, size_t *n_frames)
{
	struct memory *m = from;
	size_t n = m->n_frames - m->at;
	n = n < max_frames ? n : max_frames;
	n = n < m->most ? n : m->most;
	memcpy(dst, m->frames + m->at * m->n_channels, n * m->n_channels * sizeof(*dst));
	m->at += n;
	*n_frames = n;
	return ERR_OK;
}

#define RATE_HZ 8000u
#define FRAMES 80000u

static double *make_noise(size_t n_frames, unsigned n_channels)
{
	double *x = malloc(n_frames * n_channels * sizeof(*x));
	for (size_t i = 0; i < n_frames * n_channels; i++)
		x[i] = (float)(0.4 * ((double)(check_rand() >> 11) * 0x1p-52 - 1));
	return x;
}

/* Compare `track` with `reference`, fed in uneven pieces. */
static struct compare_values run(const double *track, size_t track_frames, const double *reference, size_t reference_frames,
	unsigned n_channels)
{
	struct memory m = { reference, reference_frames, 0, n_channels, 777 };
	struct compare c;
	CHECK_OK(compare_init(&c, RATE_HZ, n_channels, memory_read, &m));
	for (size_t at = 0; at < track_frames;) {
		size_t n = 1 + (size_t)check_rand_below(3000);
		n = n < track_frames - at ? n : track_frames - at;
		CHECK_OK(compare_add(&c, track + at * n_channels, n));
		at += n;
	}
	CHECK_OK(compare_finish(&c));
	struct compare_values v = compare_read(&c);
	compare_release(&c);
	return v;
}

static void test_identical(void)
{
	for (unsigned channels = 1; channels <= 3; channels++) {
		double *x = make_noise(FRAMES, channels);
		struct compare_values v = run(x, FRAMES, x, FRAMES, channels);
		CHECK(v.identical);
		CHECK_EQ(v.frames_offset, 0);
		CHECK_EQ(v.frames_missing, 0);
		CHECK_EQ(v.frames_extra, 0);
		CHECK_EQ(v.frames_compared, FRAMES);
		CHECK(isnan(v.snr_db));
		CHECK_NEAR(v.max_abs_error, 0, 0);
		free(x);
	}
}

static void test_short_and_empty(void)
{
	double x[6] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6 };
	CHECK(run(x, 3, x, 3, 2).identical);
	CHECK(run(x, 0, x, 0, 2).identical);
	struct compare_values v = run(x, 0, x, 3, 2);
	CHECK(!v.identical);
	CHECK_EQ(v.frames_missing, 3);
	v = run(x, 3, x, 0, 2);
	CHECK(!v.identical);
	CHECK_EQ(v.frames_extra, 3);
}

static void test_offsets(void)
{
	static const int offsets[] = { 1, -1, 7, -312, 312, 4000, -4000, 7999, -7999, 8000, -8000 };
	double *x = make_noise(FRAMES + 16000, 2);
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
		/* Both are windows of one signal; the track's begins `offset` frames earlier: it is late by that. */
		const double *reference = x + 2 * 8000, *track = reference - 2 * offsets[i];
		struct compare_values v = run(track, FRAMES, reference, FRAMES, 2);
		uint64_t away = (uint64_t)abs(offsets[i]);
		CHECK_EQ(v.frames_offset, offsets[i]);
		CHECK_EQ(v.frames_missing, away);
		CHECK_EQ(v.frames_extra, away);
		CHECK_EQ(v.frames_compared, FRAMES - away);
		CHECK(isnan(v.snr_db)); /* no error where they overlap */
		CHECK(!v.identical);
	}
	free(x);
}

/* Softer and noisy, as from a codec: found all the same. */
static void test_offset_under_noise(void)
{
	double *x = make_noise(FRAMES, 1), *y = calloc(FRAMES, sizeof(*y));
	for (size_t i = 123; i < FRAMES; i++)
		y[i] = 0.5 * x[i - 123] + 0.1 * ((double)(check_rand() >> 11) * 0x1p-52 - 1);
	CHECK_EQ(run(y, FRAMES, x, FRAMES, 1).frames_offset, 123);
	free(x);
	free(y);
}

/* A steady tone fits at every period: no offset is the likeliest.  Anti-phase channels do not cancel. */
static void test_tone(void)
{
	double *x = malloc(2 * FRAMES * sizeof(*x));
	for (size_t i = 0; i < FRAMES; i++) {
		x[2 * i] = 0.5 * sin(2 * M_PI * 1000 * (double)i / RATE_HZ);
		x[2 * i + 1] = -x[2 * i];
	}
	CHECK(run(x, FRAMES, x, FRAMES, 2).identical);
	/* 30 Hz, three frames late: neighbouring lags are nearly alike. */
	for (size_t i = 0; i < FRAMES; i++)
		x[2 * i] = x[2 * i + 1] = 0.5 * sin(2 * M_PI * 30 * (double)i / RATE_HZ) + 0.2 * sin(2 * M_PI * 0.7 * (double)(i * i) / RATE_HZ / RATE_HZ);
	CHECK_EQ(run(x, FRAMES - 3, x + 6, FRAMES - 3, 2).frames_offset, 3);
	free(x);
}

/* Silence first: the window is taken where there is sound. */
static void test_late_sound(void)
{
	double *x = make_noise(FRAMES, 1), *y = calloc(FRAMES, sizeof(*y));
	memset(x, 0, 50000 * sizeof(*x));
	memcpy(y + 500, x, (FRAMES - 500) * sizeof(*x));
	struct compare_values v = run(y, FRAMES, x, FRAMES, 1);
	CHECK_EQ(v.frames_offset, 500);
	CHECK(isnan(v.snr_db));
	free(x);
	free(y);
}

static void test_snr_and_largest_error(void)
{
	double *x = make_noise(FRAMES, 2), *y = malloc(2 * FRAMES * sizeof(*y));
	double signal = 0, error = 0;
	for (size_t i = 0; i < 2 * FRAMES; i++) {
		double e = i == 4242 ? 0.25 : 0.001 * ((double)(check_rand() >> 11) * 0x1p-52 - 1);
		y[i] = x[i] + e;
		signal += x[i] * x[i];
		error += (y[i] - x[i]) * (y[i] - x[i]);
	}
	struct compare_values v = run(y, FRAMES, x, FRAMES, 2);
	CHECK_EQ(v.frames_offset, 0);
	CHECK_EQ(v.frames_missing, 0);
	CHECK_NEAR(v.snr_db, 10 * log10(signal / error), 1e-9);
	CHECK_NEAR(v.max_abs_error, 0.25, 1e-12);
	CHECK(!v.identical);
	free(x);
	free(y);
}

/* Gaps are missing, what is left still fits; in the part that is held, and behind it. */
static void test_gaps(void)
{
	double *x = make_noise(FRAMES, 1);
	struct memory m = { x, FRAMES, 0, 1, 5000 };
	struct compare c;
	CHECK_OK(compare_init(&c, RATE_HZ, 1, memory_read, &m));
	CHECK_OK(compare_add(&c, x, 5000));
	CHECK_OK(compare_add_gap(&c, 1000));
	CHECK_OK(compare_add(&c, x + 6000, 44000));
	CHECK_OK(compare_add_gap(&c, 2500));
	CHECK_OK(compare_add(&c, x + 52500, 20000));
	CHECK_OK(compare_finish(&c));
	struct compare_values v = compare_read(&c);
	CHECK_EQ(v.frames_offset, 0);
	CHECK_EQ(v.frames_missing, 1000 + 2500 + FRAMES - 72500);
	CHECK_EQ(v.frames_compared, 69000);
	CHECK_EQ(v.frames_extra, 0);
	CHECK(isnan(v.snr_db));
	CHECK(!v.identical);
	compare_release(&c);
	free(x);
}

enum { LACKS_NOTHING, TRACK_LACKS, TRACK_HAS_ZEROS, REFERENCE_LACKS };

/* x against itself, `late` frames later, where `hole` frames from `at` on are not there. */
static struct compare_values run_with_hole(const double *x, int late, int who, size_t at, size_t hole)
{
	double *reference = malloc(FRAMES * sizeof(*x)), *track = calloc(FRAMES, sizeof(*x));
	memcpy(reference, x, FRAMES * sizeof(*x));
	for (size_t i = 0; i < FRAMES; i++)
		if (i >= (size_t)late)
			track[i] = x[i - (size_t)late];
	if (who == REFERENCE_LACKS)
		memset(reference + at, 0, hole * sizeof(*x));
	if (who == TRACK_HAS_ZEROS)
		memset(track + at, 0, hole * sizeof(*x));
	struct memory m = { reference, FRAMES, 0, 1, 5000 };
	struct compare c;
	CHECK_OK(compare_init(&c, RATE_HZ, 1, memory_read, &m));
	CHECK_OK(compare_add(&c, track, at));
	if (who == TRACK_LACKS)
		CHECK_OK(compare_add_gap(&c, hole));
	else
		CHECK_OK(compare_add(&c, track + at, hole));
	CHECK_OK(compare_add(&c, track + at + hole, FRAMES - at - hole));
	CHECK_OK(compare_finish(&c));
	struct compare_values v = compare_read(&c);
	compare_release(&c);
	free(reference);
	free(track);
	return v;
}

/* A sound that dies away is like itself at each of its periods, only softer: a hole must not make one of them the best. */
static void test_hole_in_what_decays(void)
{
	double *x = malloc(FRAMES * sizeof(*x));
	for (size_t i = 0; i < FRAMES; i++) {
		double t = (double)i / RATE_HZ;
		x[i] = 0.5 * exp(-t / 0.8) * (sin(2 * M_PI * 220 * t) + 0.6 * sin(2 * M_PI * 262 * t));
	}
	static const size_t places[] = { 300, 2000, 7000, 15000, 40000 };
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct compare_values v = run_with_hole(x, 0, TRACK_LACKS, places[i], 700);
		CHECK_EQ(v.frames_offset, 0);
		CHECK_EQ(v.frames_missing, 700);
		CHECK_EQ(v.frames_extra, 0);
		CHECK(isnan(v.snr_db)); /* the rest is the same */
		v = run_with_hole(x, 0, TRACK_HAS_ZEROS, places[i], 300);
		CHECK_EQ(v.frames_offset, 0);
		CHECK_EQ(v.frames_missing, 0);
		v = run_with_hole(x, 0, REFERENCE_LACKS, places[i], 300);
		CHECK_EQ(v.frames_offset, 0);
		/* What is late is still found late, and not a period earlier. */
		v = run_with_hole(x, 312, LACKS_NOTHING, places[i], 0);
		CHECK_EQ(v.frames_offset, 312);
		v = run_with_hole(x, 312, TRACK_LACKS, places[i], 500);
		CHECK_EQ(v.frames_offset, 312);
	}
	free(x);
}

/* A plucked string: noise that goes round, and softer each time. */
static void test_hole_in_a_plucked_string(void)
{
	double *x = malloc(FRAMES * sizeof(*x));
	for (size_t i = 0; i < FRAMES; i++)
		x[i] = i < 36 ? 0.8 * ((double)(check_rand() >> 11) * 0x1p-52 - 1) : i == 36 ? x[0] : 0.4995 * (x[i - 36] + x[i - 37]);
	static const size_t places[] = { 1000, 4000, 9000 };
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct compare_values v = run_with_hole(x, 0, TRACK_LACKS, places[i], 700);
		CHECK_EQ(v.frames_offset, 0);
		CHECK_EQ(v.frames_missing, 700);
		v = run_with_hole(x, 57, TRACK_LACKS, places[i], 700);
		CHECK_EQ(v.frames_offset, 57);
	}
	free(x);
}

/* So much is lost that hardly anything of the window is left: then it is where it was. */
static void test_all_lost(void)
{
	double *x = make_noise(FRAMES, 1);
	struct compare_values v = run_with_hole(x, 0, TRACK_LACKS, 10, 30000);
	CHECK_EQ(v.frames_offset, 0);
	CHECK_EQ(v.frames_missing, 30000);
	free(x);
}

static void test_nonfinite(void)
{
	double *x = make_noise(FRAMES, 1), *y = malloc(FRAMES * sizeof(*y));
	x[70000] = (double)NAN;
	memcpy(y, x, FRAMES * sizeof(*x));
	CHECK(run(y, FRAMES, x, FRAMES, 1).identical);
	y[60000] = (double)INFINITY;
	struct compare_values v = run(y, FRAMES, x, FRAMES, 1);
	CHECK(!v.identical);
	CHECK_NEAR(v.max_abs_error, fabs(x[60000]), 1e-12);
	CHECK(isfinite(v.snr_db));
	free(x);
	free(y);
}

static enum err broken_read(void *from, double *dst, size_t max_frames, size_t *n_frames)
{
	struct memory *m = from;
	if (m->at >= 30000)
		return ERR_FORMAT;
	return memory_read(from, dst, max_frames, n_frames);
}

/* A reference that fails is told, once and for all. */
static void test_broken_reference(void)
{
	double *x = make_noise(FRAMES, 1);
	struct memory m = { x, FRAMES, 0, 1, 5000 };
	struct compare c;
	CHECK_OK(compare_init(&c, RATE_HZ, 1, broken_read, &m));
	CHECK_EQ(compare_add(&c, x, FRAMES), ERR_FORMAT);
	CHECK_EQ(compare_add(&c, x, 1), ERR_FORMAT);
	CHECK_EQ(compare_finish(&c), ERR_FORMAT);
	compare_release(&c);
	free(x);
}

/* Once aligned it runs without allocating. */
static void test_no_allocation(void)
{
	double *x = make_noise(FRAMES, 1);
	struct memory m = { x, FRAMES, 0, 1, 5000 };
	struct compare c;
	CHECK_OK(compare_init(&c, RATE_HZ, 1, memory_read, &m));
	CHECK_OK(compare_add(&c, x, 40000));
	CHECK(c.aligned);
	uint64_t before = heap_allocs();
	for (int i = 0; i < 400; i++)
		CHECK_OK(compare_add(&c, x + 40000 + 100 * i, 100));
	CHECK_OK(compare_finish(&c));
	CHECK_EQ(heap_allocs(), before);
	CHECK(compare_read(&c).identical);
	compare_release(&c);
	free(x);
}

int main(void)
{
	check_seed(11);
	CHECK_RUN(test_identical);
	CHECK_RUN(test_short_and_empty);
	CHECK_RUN(test_offsets);
	CHECK_RUN(test_offset_under_noise);
	CHECK_RUN(test_tone);
	CHECK_RUN(test_late_sound);
	CHECK_RUN(test_snr_and_largest_error);
	CHECK_RUN(test_gaps);
	CHECK_RUN(test_hole_in_what_decays);
	CHECK_RUN(test_hole_in_a_plucked_string);
	CHECK_RUN(test_all_lost);
	CHECK_RUN(test_nonfinite);
	CHECK_RUN(test_broken_reference);
	CHECK_RUN(test_no_allocation);
	return check_end();
}
