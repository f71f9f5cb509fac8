/*
 * The minimum requirements of EBU Tech 3341 (tests 1 to 23; 7 and 8 need programme material) and of EBU Tech 3342
 * (tests 1 to 4; 5 and 6 likewise), made by their recipes, at several sampling rates where the recipe names none.
 */
#include "meter_feed.h"

#define TOLERANCE_LU 0.1
#define TOLERANCE_LRA_LU 1.0

static const uint32_t rates_hz[] = { 44100, 48000, 96000 };

/* Tones of 1 kHz one after another on both channels: pairs of seconds and dBFS. */
struct tone {
	double seconds, level_db;
};

#define SILENT (-1000.0)

static void feed_tones(struct meter_feed *f, const struct tone *tones, size_t n_tones)
{
	for (size_t i = 0; i < n_tones; i++) {
		struct meter_feed_sine sine = { f->meter.rate_hz, 1000, { meter_feed_factor(tones[i].level_db) }, true };
		meter_feed_add(f, llround(tones[i].seconds * f->meter.rate_hz), meter_feed_sine_at, &sine);
	}
}

static struct loudness_values measure_tones(uint32_t rate_hz, const struct tone *tones, size_t n_tones)
{
	struct meter_feed f;
	meter_feed_open(&f, rate_hz, 2);
	feed_tones(&f, tones, n_tones);
	struct loudness_values v = meter_loudness(&f.meter);
	meter_feed_close(&f);
	return v;
}

#define MEASURE(rate, ...) measure_tones((rate), (const struct tone[]){ __VA_ARGS__ }, ARRAY_LEN(((const struct tone[]){ __VA_ARGS__ })))

static void test_3341_1_2_steady(void)
{
	for (size_t r = 0; r < ARRAY_LEN(rates_hz); r++) {
		for (int k = 0; k < 2; k++) {
			double level = k ? -33 : -23;
			struct loudness_values v = MEASURE(rates_hz[r], { 20, level });
			CHECK_NEAR(v.momentary_lufs, level, TOLERANCE_LU);
			CHECK_NEAR(v.short_term_lufs, level, TOLERANCE_LU);
			CHECK_NEAR(v.integrated_lufs, level, TOLERANCE_LU);
			CHECK_NEAR(v.momentary_max_lufs, level, TOLERANCE_LU);
			CHECK_NEAR(v.short_term_max_lufs, level, TOLERANCE_LU);
			CHECK_NEAR(v.range_lu, 0, 0.01);
		}
	}
}

static void test_3341_3_4_5_gates(void)
{
	for (size_t r = 0; r < ARRAY_LEN(rates_hz); r++) {
		struct loudness_values v = MEASURE(rates_hz[r], { 10, -36 }, { 60, -23 }, { 10, -36 });
		CHECK_NEAR(v.integrated_lufs, -23, TOLERANCE_LU);
		v = MEASURE(rates_hz[r], { 10, -72 }, { 10, -36 }, { 60, -23 }, { 10, -36 }, { 10, -72 });
		CHECK_NEAR(v.integrated_lufs, -23, TOLERANCE_LU);
		v = MEASURE(rates_hz[r], { 20, -26 }, { 20.1, -20 }, { 20, -26 });
		CHECK_NEAR(v.integrated_lufs, -23, TOLERANCE_LU);
	}
}

/* L R -28, C -24, Ls Rs -30; once as 5.0, once as 5.1 with a loud LFE that must not count. */
static void test_3341_6_surround(void)
{
	static const double levels_db[2][6] = { { -28, -28, -24, -30, -30 }, { -28, -28, -24, -10, -30, -30 } };
	for (unsigned n = 5; n <= 6; n++) {
		struct meter_feed_sine sine = { .rate_hz = 48000, .freq_hz = 1000 };
		for (unsigned c = 0; c < n; c++)
			sine.peak[c] = meter_feed_factor(levels_db[n - 5][c]);
		struct meter_feed f;
		struct track t = track_pcm(48000, (uint16_t)n, SAMPLE_F32);
		t.layout = TRACK_LAYOUT_WAVE;
		t.wave_mask = n == 5 ? 0x37 : 0x3F;
		meter_feed_open_track(&f, &t, NULL);
		meter_feed_add(&f, 20 * 48000, meter_feed_sine_at, &sine);
		CHECK_NEAR(meter_loudness(&f.meter).integrated_lufs, -23, TOLERANCE_LU);
		meter_feed_close(&f);
	}
}

/* Short-term must stand still where each window of 3 s holds the same. */
static void test_3341_9_short_term_constant(void)
{
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 30; k++) {
			double at = k * 0.1, level = at < 1.3 - 1e-9 ? -20 : -30;
			if (k == 13)
				feed_tones(&f, (const struct tone[]){ { 0.04, -20 }, { 0.06, -30 } }, 2);
			else
				feed_tones(&f, &(struct tone){ 0.1, level }, 1);
			if (i > 0)
				CHECK_NEAR(meter_loudness(&f.meter).short_term_lufs, -23, TOLERANCE_LU);
		}
	}
	CHECK_NEAR(meter_loudness(&f.meter).short_term_max_lufs, -23, TOLERANCE_LU);
	meter_feed_close(&f);
}

static void test_3341_10_short_term_max(void)
{
	for (int i = 0; i < 20; i++) {
		struct loudness_values v = MEASURE(48000, { i * 0.15, SILENT }, { 3, -23 }, { 1, SILENT });
		CHECK_NEAR(v.short_term_max_lufs, -23, TOLERANCE_LU);
	}
}

static void test_3341_11_short_term_max_live(void)
{
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	for (int i = 0; i < 20; i++) {
		feed_tones(&f, (const struct tone[]){ { i * 0.15, SILENT }, { 3, -38 + i }, { 3 - i * 0.15, SILENT } }, 3);
		CHECK_NEAR(meter_loudness(&f.meter).short_term_max_lufs, -38 + i, TOLERANCE_LU);
	}
	meter_feed_close(&f);
}

static void test_3341_12_momentary_constant(void)
{
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	for (int i = 0; i < 25; i++) {
		for (int k = 0; k < 20; k++) {
			feed_tones(&f, &(struct tone){ 0.02, k < 9 ? -20 : -30 }, 1);
			if (i * 0.4 >= 1)
				CHECK_NEAR(meter_loudness(&f.meter).momentary_lufs, -23, TOLERANCE_LU);
		}
	}
	CHECK_NEAR(meter_loudness(&f.meter).momentary_max_lufs, -23, TOLERANCE_LU);
	meter_feed_close(&f);
}

static void test_3341_13_momentary_max(void)
{
	for (int i = 0; i < 20; i++) {
		struct loudness_values v = MEASURE(48000, { i * 0.02, SILENT }, { 0.4, -23 }, { 1, SILENT });
		CHECK_NEAR(v.momentary_max_lufs, -23, TOLERANCE_LU);
	}
}

static void test_3341_14_momentary_max_live(void)
{
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	for (int i = 0; i < 20; i++) {
		feed_tones(&f, (const struct tone[]){ { i * 0.02, SILENT }, { 0.4, -38 + i }, { 0.4 - i * 0.02, SILENT } }, 3);
		CHECK_NEAR(meter_loudness(&f.meter).momentary_max_lufs, -38 + i, TOLERANCE_LU);
	}
	meter_feed_close(&f);
}

/* ---- true peak ---- */

struct peak_tone {
	double divisor, amplitude, degrees;
	int64_t n_frames, fade_frames;
};

static double peak_tone_at(void *arg, int64_t n, unsigned c)
{
	const struct peak_tone *s = arg;
	(void)c;
	double fade = 1;
	if (n < s->fade_frames)
		fade = (double)n / (double)s->fade_frames;
	else if (n >= s->n_frames - s->fade_frames)
		fade = (double)(s->n_frames - 1 - n) / (double)s->fade_frames;
	return fade * s->amplitude * sin(2 * M_PI * ((double)n / s->divisor + s->degrees / 360));
}

/* +0.2 to -0.4 dB around `wanted`, on both channels. */
static void check_true_peak(const struct meter *m, double wanted)
{
	CHECK_NEAR(meter_true_peak_dbtp(m), wanted - 0.1, 0.3);
	for (unsigned c = 0; c < m->n_channels; c++)
		CHECK_NEAR(amplitude_read(&m->amplitude, c).true_peak_dbtp, wanted - 0.1, 0.3);
	CHECK(meter_true_peak_dbtp(m) >= meter_sample_peak_dbfs(m));
}

static void test_3341_15_to_19_true_peak(void)
{
	static const struct { double divisor, amplitude, degrees, wanted; } rows[] = {
		{ 4, 0.50, 0, -6 }, { 4, 0.50, 45, -6 }, { 6, 0.50, 60, -6 }, { 8, 0.50, 67.5, -6 }, { 4, 1.41, 45, 3 },
	};
	for (size_t r = 0; r < ARRAY_LEN(rates_hz); r++) {
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct peak_tone tone = { rows[i].divisor, rows[i].amplitude, rows[i].degrees, rates_hz[r] / 2, rates_hz[r] / 100 };
			struct meter_feed f;
			meter_feed_open(&f, rates_hz[r], 2);
			meter_feed_add(&f, tone.n_frames, peak_tone_at, &tone);
			check_true_peak(&f.meter, rows[i].wanted);
			meter_feed_close(&f);
		}
	}
}

/*
 * A sine of fs/6 at half scale with one period of fs/4 at full scale in its middle, the phase unbroken; made at 4 fs,
 * low-passed, and every fourth sample taken from the offset on.
 */
#define BURST_FRAMES 4800
#define LOW_PASS_TAPS 513

static void make_burst(double *x, size_t n)
{
	size_t first = n / 2 / 24 * 24, burst = 16; /* one period of fs/4 is 16 samples at 4 fs */
	for (size_t i = 0; i < n; i++) {
		double edge = fmin(1, fmin((double)i, (double)(n - 1 - i)) / 1920);
		if (i >= first && i < first + burst)
			x[i] = sin(2 * M_PI * (double)(i - first) / 16);
		else
			x[i] = edge * 0.5 * sin(2 * M_PI * (double)(i < first ? i : i - burst) / 24);
	}
}

static void low_pass(double *y, const double *x, size_t n)
{
	double h[LOW_PASS_TAPS], sum = 0;
	for (int k = 0; k < LOW_PASS_TAPS; k++) {
		double t = k - LOW_PASS_TAPS / 2, window = 0.5 - 0.5 * cos(2 * M_PI * (k + 0.5) / LOW_PASS_TAPS);
		double cut = 0.95 / 4; /* of half of 4 fs */
		h[k] = window * (t == 0 ? cut : sin(M_PI * cut * t) / (M_PI * t));
		sum += h[k];
	}
	for (size_t i = 0; i < n; i++) {
		y[i] = 0;
		for (int k = 0; k < LOW_PASS_TAPS; k++) {
			long at = (long)i + k - LOW_PASS_TAPS / 2;
			if (at >= 0 && at < (long)n)
				y[i] += x[at] * h[k] / sum;
		}
	}
}

static double decimated_at(void *arg, int64_t n, unsigned c)
{
	(void)c;
	return ((const double *)arg)[4 * n];
}

static void test_3341_20_to_23_true_peak_offsets(void)
{
	size_t n = 4 * BURST_FRAMES;
	double *x = calloc(n, sizeof(*x)), *y = calloc(n + 4, sizeof(*y));
	make_burst(x, n);
	low_pass(y, x, n);
	for (int offset = 0; offset < 4; offset++) {
		struct meter_feed f;
		meter_feed_open(&f, 48000, 2);
		meter_feed_add(&f, BURST_FRAMES, decimated_at, y + offset);
		check_true_peak(&f.meter, 0);
		meter_feed_close(&f);
	}
	free(x);
	free(y);
}

/* ---- Tech 3342 ---- */

static void test_3342_1_to_4_range(void)
{
	for (size_t r = 0; r < ARRAY_LEN(rates_hz); r++) {
		uint32_t rate_hz = rates_hz[r];
		CHECK_NEAR(MEASURE(rate_hz, { 20, -20 }, { 20, -30 }).range_lu, 10, TOLERANCE_LRA_LU);
		CHECK_NEAR(MEASURE(rate_hz, { 20, -20 }, { 20, -15 }).range_lu, 5, TOLERANCE_LRA_LU);
		CHECK_NEAR(MEASURE(rate_hz, { 20, -40 }, { 20, -20 }).range_lu, 20, TOLERANCE_LRA_LU);
		CHECK_NEAR(MEASURE(rate_hz, { 20, -50 }, { 20, -35 }, { 20, -20 }, { 20, -35 }, { 20, -50 }).range_lu, 15, TOLERANCE_LRA_LU);
	}
}

int main(void)
{
	CHECK_RUN(test_3341_1_2_steady);
	CHECK_RUN(test_3341_3_4_5_gates);
	CHECK_RUN(test_3341_6_surround);
	CHECK_RUN(test_3341_9_short_term_constant);
	CHECK_RUN(test_3341_10_short_term_max);
	CHECK_RUN(test_3341_11_short_term_max_live);
	CHECK_RUN(test_3341_12_momentary_constant);
	CHECK_RUN(test_3341_13_momentary_max);
	CHECK_RUN(test_3341_14_momentary_max_live);
	CHECK_RUN(test_3341_15_to_19_true_peak);
	CHECK_RUN(test_3341_20_to_23_true_peak_offsets);
	CHECK_RUN(test_3342_1_to_4_range);
	return check_end();
}
