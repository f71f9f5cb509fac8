/* The meter's loudness: weights, windows, values that do not exist, the range by its definition, gaps, and no allocation. */
#include "meter_feed.h"

#include "base/heap.h"

static double noise_at(void *arg, int64_t n, unsigned c)
{
	(void)n;
	(void)c;
	return *(const double *)arg * ((double)(check_rand() >> 11) * 0x1p-52 - 1);
}

static double silence_at_all(void *arg, int64_t n, unsigned c)
{
	(void)arg;
	(void)n;
	(void)c;
	return 0;
}

static void check_no_loudness(struct loudness_values v)
{
	CHECK(isnan(v.momentary_lufs));
	CHECK(isnan(v.short_term_lufs));
	CHECK(isnan(v.integrated_lufs));
	CHECK(isnan(v.range_lu));
	CHECK(isnan(v.momentary_max_lufs));
	CHECK(isnan(v.short_term_max_lufs));
}

static void test_silence_has_no_value(void)
{
	for (int seconds = 0; seconds <= 5; seconds++) {
		struct meter_feed f;
		meter_feed_open(&f, 48000, 2);
		meter_feed_add(&f, seconds * 48000, silence_at_all, NULL);
		check_no_loudness(meter_loudness(&f.meter));
		CHECK(isnan(meter_true_peak_dbtp(&f.meter)));
		CHECK(isnan(meter_sample_peak_dbfs(&f.meter)));
		CHECK(isnan(amplitude_read(&f.meter.amplitude, 0).rms_dbfs));
		CHECK(isnan(amplitude_correlation(&f.meter.amplitude)));
		meter_feed_close(&f);
	}
}

/* A block of 400 ms is the least for integrated and momentary, 3 s for short-term and range: one frame less is too short. */
static void test_too_short_has_no_value(void)
{
	struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(-20) }, true };
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	meter_feed_add(&f, 19199, meter_feed_sine_at, &sine);
	check_no_loudness(meter_loudness(&f.meter));
	CHECK_NEAR(meter_sample_peak_dbfs(&f.meter), -20, 0.01);
	meter_feed_add(&f, 1, meter_feed_sine_at, &sine);
	struct loudness_values v = meter_loudness(&f.meter);
	CHECK_NEAR(v.integrated_lufs, -20, 0.1);
	CHECK_NEAR(v.momentary_lufs, -20, 0.1);
	CHECK(isnan(v.short_term_lufs));
	CHECK(isnan(v.range_lu));
	meter_feed_add(&f, 3 * 48000 - 19200, meter_feed_sine_at, &sine);
	v = meter_loudness(&f.meter);
	CHECK_NEAR(v.short_term_lufs, -20, 0.1);
	CHECK_NEAR(v.short_term_max_lufs, -20, 0.1);
	CHECK_NEAR(v.range_lu, 0, 0.002);
	meter_feed_close(&f);
}

/* Mono counts once: a tone at -23 dBFS has -26 LUFS; twice if it is told to. */
static void test_mono(void)
{
	for (int dual = 0; dual <= 1; dual++) {
		struct meter_options options = METER_OPTIONS;
		options.dual_mono = dual;
		struct track t = track_pcm(48000, 1, SAMPLE_F32);
		struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(-23) }, true };
		struct meter_feed f;
		meter_feed_open_track(&f, &t, &options);
		meter_feed_add(&f, 4 * 48000, meter_feed_sine_at, &sine);
		CHECK_NEAR(meter_loudness(&f.meter).integrated_lufs, dual ? -22.99 : -26, 0.1);
		meter_feed_close(&f);
	}
}

static void test_gate_drops_quiet_parts(void)
{
	static const struct { double seconds, level_db; } parts[] = { { 2, -36 }, { 4, -23 }, { 2, -36 } };
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(parts[i].level_db) }, true };
		meter_feed_add(&f, (int64_t)(parts[i].seconds * 48000), meter_feed_sine_at, &sine);
	}
	CHECK_NEAR(meter_loudness(&f.meter).integrated_lufs, -23.29, 0.1);
	meter_feed_close(&f);
}

static void test_lfe_does_not_count(void)
{
	struct meter_feed_sine sine = { .rate_hz = 48000, .freq_hz = 60, .peak = { [3] = meter_feed_factor(-20) } };
	struct meter_feed f;
	meter_feed_open(&f, 48000, 6);
	meter_feed_add(&f, 2 * 48000, meter_feed_sine_at, &sine);
	CHECK(isnan(meter_loudness(&f.meter).integrated_lufs));
	CHECK_NEAR(meter_sample_peak_dbfs(&f.meter), -20, 0.01);
	meter_feed_close(&f);
}

static void check_weights(const struct track *t, const float *wanted)
{
	float weights[8];
	loudness_weights(t, false, weights);
	for (unsigned c = 0; c < t->channels; c++)
		if (weights[c] != wanted[c])
			CHECK_FAIL("layout %u, mask %#llx, channel %u: weight %g, not %g", t->layout, (unsigned long long)t->wave_mask, c,
				(double)weights[c], (double)wanted[c]);
}

static void test_weights_by_layout(void)
{
	const float s = 1.41f;
	static const struct { uint64_t mask; unsigned n; } none = { 0, 6 };
	struct { uint64_t mask; unsigned n; float weights[8]; } waves[] = {
		{ 0x4, 1, { 1 } },
		{ 0x3, 2, { 1, 1 } },
		{ 0x33, 4, { 1, 1, s, s } },                   /* quad, back pair */
		{ 0x603, 4, { 1, 1, s, s } },                  /* quad, side pair */
		{ 0x3F, 6, { 1, 1, 1, 0, s, s } },             /* 5.1 back */
		{ 0x60F, 6, { 1, 1, 1, 0, s, s } },            /* 5.1 side */
		{ 0x70F, 7, { 1, 1, 1, 0, 1, s, s } },         /* 6.1: the back centre is behind 120 degrees */
		{ 0x63F, 8, { 1, 1, 1, 0, 1, 1, s, s } },      /* 7.1: the back pair likewise */
		{ 0x3, 4, { 1, 1, 1, 1 } },                    /* more channels than the mask names */
	};
	for (size_t i = 0; i < ARRAY_LEN(waves); i++) {
		struct track t = track_pcm(48000, (uint16_t)waves[i].n, SAMPLE_F32);
		t.layout = TRACK_LAYOUT_WAVE;
		t.wave_mask = waves[i].mask;
		check_weights(&t, waves[i].weights);
	}
	struct track discrete = track_pcm(48000, (uint16_t)none.n, SAMPLE_F32);
	check_weights(&discrete, (float[]){ 1, 1, 1, 1, 1, 1 });
	struct track opus = track_pcm(48000, 6, SAMPLE_F32);
	opus.layout = TRACK_LAYOUT_OPUS;
	opus.opus_family = 1;
	check_weights(&opus, (float[]){ 1, 1, 1, s, s, 0 }); /* L C R Ls Rs LFE */
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Tech 3342 word for word over the short-term values of every 100 ms. */
static double range_by_definition(double *values, size_t n)
{
	double power = 0;
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (values[i] >= -70)
			values[kept++] = values[i];
	for (size_t i = 0; i < kept; i++)
		power += pow(10, values[i] / 10);
	double gate = 10 * log10(power / (double)kept) - 20;
	n = kept;
	kept = 0;
	for (size_t i = 0; i < n; i++)
		if (values[i] >= gate)
			values[kept++] = values[i];
	qsort(values, kept, sizeof(*values), by_size);
	return values[lround((double)(kept - 1) * 0.95)] - values[lround((double)(kept - 1) * 0.10)];
}

static void test_range_by_definition(void)
{
	enum { N = 600 };
	static double values[N];
	size_t n = 0;
	struct meter_feed f;
	meter_feed_open(&f, 16000, 1);
	double level = 0.1;
	for (int i = 0; i < N; i++) {
		if (i % 25 == 0)
			level = pow(10, -(double)check_rand_below(60) / 20);
		meter_feed_add(&f, 1600, noise_at, &level);
		double v = meter_loudness(&f.meter).short_term_lufs;
		if (!isnan(v))
			values[n++] = v;
	}
	CHECK_EQ(n, N - 29);
	double wanted = range_by_definition(values, n);
	CHECK(wanted > 5);
	CHECK_NEAR(meter_loudness(&f.meter).range_lu, wanted, 0.002);
	meter_feed_close(&f);
}

/* A gap of any length counts as time: windows run empty, the integrated loudness stays. */
static void test_gap(void)
{
	struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(-20) }, true };
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	meter_feed_add(&f, 5 * 48000, meter_feed_sine_at, &sine);
	struct loudness_values before = meter_loudness(&f.meter);
	struct packet gap = { .type = PACKET_GAP, .track = 1, .pos = f.pos, .dur = 1000000007 };
	CHECK_OK(meter_gap(&f.meter, &gap, PACKET_GAP_NETWORK));
	struct loudness_values after = meter_loudness(&f.meter);
	CHECK(isnan(after.momentary_lufs));
	CHECK(isnan(after.short_term_lufs));
	/* Three blocks on the edge are partly empty. */
	CHECK_NEAR(after.integrated_lufs, before.integrated_lufs, 0.15);
	CHECK_EQ(f.meter.continuity.gaps, 1);
	CHECK_EQ(f.meter.continuity.lost_frames, 1000000007);
	CHECK_EQ(f.meter.continuity.frames, 5 * 48000);

	/* The same gap fed as zeros, but for whole hops. */
	struct meter_feed g;
	meter_feed_open(&g, 48000, 2);
	meter_feed_add(&g, 5 * 48000, meter_feed_sine_at, &sine);
	meter_feed_add(&g, 10 * 4800 * 10 + 1000000007 % 4800, silence_at_all, NULL);
	f.meter.continuity.next_pos = f.pos = g.pos; /* for the same phase of the tone */
	meter_feed_add(&f, 48000, meter_feed_sine_at, &sine);
	meter_feed_add(&g, 48000, meter_feed_sine_at, &sine);
	CHECK_NEAR(meter_loudness(&f.meter).integrated_lufs, meter_loudness(&g.meter).integrated_lufs, 1e-6);
	CHECK_NEAR(meter_loudness(&f.meter).momentary_lufs, meter_loudness(&g.meter).momentary_lufs, 1e-6);
	meter_feed_close(&f);
	meter_feed_close(&g);
}

/* After a loud passage the windows come back to what is there, to nothing if nothing is. */
static void test_windows_forget(void)
{
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	double loud = 8, faint = 1e-6;
	meter_feed_add(&f, 10 * 48000, noise_at, &loud);
	meter_feed_add(&f, 10 * 48000, silence_at_all, NULL);
	CHECK(isnan(meter_loudness(&f.meter).momentary_lufs));
	CHECK(isnan(meter_loudness(&f.meter).short_term_lufs));
	meter_feed_add(&f, 5 * 48000, noise_at, &faint);
	double momentary = meter_loudness(&f.meter).momentary_lufs;
	CHECK(momentary > -125 && momentary < -110);
	meter_feed_close(&f);
}

/* Below the shelf's own frequency the filter is not defined; the rest of the meter works. */
static void test_low_rate_has_no_loudness(void)
{
	struct meter_feed_sine sine = { 2000, 100, { 0.5 }, true };
	struct meter_feed f;
	meter_feed_open(&f, 2000, 2);
	meter_feed_add(&f, 10000, meter_feed_sine_at, &sine);
	CHECK(!f.meter.has_loudness);
	check_no_loudness(meter_loudness(&f.meter));
	CHECK_NEAR(meter_sample_peak_dbfs(&f.meter), -6.02, 0.02);
	meter_feed_close(&f);
}

static void test_loud_float(void)
{
	double loud = 1e6;
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	meter_feed_add(&f, 48000, noise_at, &loud);
	/* White noise of two channels: 120 dB + 10 log10(1/3) + 3 + what the weighting adds. */
	CHECK_NEAR(meter_loudness(&f.meter).integrated_lufs, 120 - 4.77 + 3.01 - 0.69 + 3.2, 0.8);
	meter_feed_close(&f);
}

static void test_no_allocation(void)
{
	if (!heap_is_counted()) {
		check_skip("the sanitizer has its own allocator");
		return;
	}
	double level = 0.5;
	struct meter_feed f;
	meter_feed_open(&f, 48000, 16);
	uint64_t before = heap_allocs();
	meter_feed_add(&f, 50 * METER_FEED_FRAMES, noise_at, &level);
	uint64_t first = heap_allocs();
	for (int i = 0; i < 30; i++) {
		meter_feed_add(&f, 10 * METER_FEED_FRAMES, noise_at, &level);
		struct packet gap = { .type = PACKET_GAP, .track = 1, .pos = f.pos, .dur = 100000 };
		CHECK_OK(meter_gap(&f.meter, &gap, PACKET_GAP_NETWORK));
		f.pos += gap.dur;
		CHECK(!isnan(meter_loudness(&f.meter).integrated_lufs));
	}
	CHECK_EQ(first, before);
	CHECK_EQ(heap_allocs(), before);
	meter_feed_close(&f);
}

int main(void)
{
	check_seed(128);
	CHECK_RUN(test_silence_has_no_value);
	CHECK_RUN(test_too_short_has_no_value);
	CHECK_RUN(test_mono);
	CHECK_RUN(test_gate_drops_quiet_parts);
	CHECK_RUN(test_lfe_does_not_count);
	CHECK_RUN(test_weights_by_layout);
	CHECK_RUN(test_range_by_definition);
	CHECK_RUN(test_gap);
	CHECK_RUN(test_windows_forget);
	CHECK_RUN(test_low_rate_has_no_loudness);
	CHECK_RUN(test_loud_float);
	CHECK_RUN(test_no_allocation);
	return check_end();
}
