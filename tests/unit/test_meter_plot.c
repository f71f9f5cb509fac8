/* What pictures are drawn from: columns that keep peaks however often they are joined, gaps, and spectra in the right place. */
#include "meter_feed.h"

#include "base/heap.h"
#include "meter/fft.h"
#include "meter/plot.h"

#define RATE_HZ 48000u

/* ---- spectrum ---- */

/* Against the slow transform in double, at every length, of one signal and of two. */
static void test_spectrum_is_the_transform(void)
{
	static float x[2 * SPECTRUM_MAX_POINTS], power[SPECTRUM_MAX_POINTS / 2 + 1];
	static double wanted[SPECTRUM_MAX_POINTS / 2 + 1];
	static struct fft_point z[SPECTRUM_MAX_POINTS];
	check_seed(3);
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		x[i] = (float)((double)check_rand() / (double)UINT64_MAX - 0.5);
	for (size_t n = SPECTRUM_MIN_POINTS; n <= SPECTRUM_MAX_POINTS; n *= 2) {
		struct spectrum s;
		struct fft f;
		CHECK_OK(spectrum_init(&s, n));
		CHECK_OK(fft_init(&f, n));
		memset(power, 0, sizeof(power));
		memset(wanted, 0, sizeof(wanted));
		/* The first signal once alone and once beside the second: it counts twice. */
		spectrum_add(&s, power, x, NULL, 2);
		spectrum_add(&s, power, x, x + 1, 2);
		for (int pass = 0; pass < 3; pass++) {
			for (size_t i = 0; i < n; i++)
				z[i] = (struct fft_point){ (double)x[2 * i + (pass == 2)] * (0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)n)), 0 };
			fft_run(&f, z);
			for (size_t k = 0; k <= n / 2; k++)
				wanted[k] += (z[k].re * z[k].re + z[k].im * z[k].im) * 16 / ((double)n * (double)n);
		}
		double highest = 0, error = 0;
		for (size_t k = 0; k <= n / 2; k++) {
			highest = fmax(highest, wanted[k]);
			error = fmax(error, fabs((double)power[k] - wanted[k]));
		}
		if (error > 1e-6 * highest)
			CHECK_FAIL("%zu points: wrong by %g of %g", n, error, highest);
		spectrum_release(&s);
		fft_release(&f);
	}
}

static void test_spectrum_of_a_sine(void)
{
	struct spectrum s;
	static float x[4096], power[2049];
	CHECK_OK(spectrum_init(&s, 4096));
	for (int i = 0; i < 4096; i++)
		x[i] = (float)(0.25 * sin(2 * M_PI * 100 * i / 4096.0));
	spectrum_add(&s, power, x, NULL, 1);
	CHECK_NEAR(power[100], 0.0625, 1e-6);
	CHECK_NEAR(power[99], 0.0625 / 4, 1e-6); /* Hann: half the amplitude beside it */
	CHECK(power[97] < 1e-12f && power[103] < 1e-12f);
	spectrum_release(&s);
	CHECK_EQ(spectrum_init(&s, 4095), ERR_ARG);
	CHECK_EQ(spectrum_init(&s, 32), ERR_ARG);
	CHECK_EQ(spectrum_points(48000), 4096);
	CHECK_EQ(spectrum_points(192000), 16384);
	CHECK_EQ(spectrum_points(100), SPECTRUM_MIN_POINTS);
}

/* ---- columns ---- */

/* n_frames of a signal, as a meter would hand it over. */
static void feed(struct plot *p, int64_t n_frames, meter_feed_fn *signal, void *arg)
{
	static float block[1024 * 8];
	for (int64_t done = 0; done < n_frames;) {
		size_t n = n_frames - done < 1000 ? (size_t)(n_frames - done) : 1000;
		for (size_t i = 0; i < n; i++)
			for (unsigned c = 0; c < p->n_channels; c++)
				block[i * p->n_channels + c] = (float)signal(arg, (int64_t)p->end_frame + (int64_t)i, c);
		plot_add(p, block, n);
		done += (int64_t)n;
	}
}

static double zero_at(void *arg, int64_t n, unsigned c)
{
	(void)arg, (void)n, (void)c;
	return 0;
}

/* Two samples in a million: up on channel 0, down on channel 1. */
static double spikes_at(void *arg, int64_t n, unsigned c)
{
	const int64_t *at = (const int64_t *)arg;
	return n == at[c] ? (c ? -0.75 : 0.5) : 0;
}

static void test_peaks_stay(void)
{
	static const int64_t lengths[] = { 1, 4095, 4096, 4097, 100000, 1000003, 5000000 };
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct plot p;
		int64_t n = lengths[i], at[2] = { n / 3, n - 1 };
		CHECK_OK(plot_init(&p, RATE_HZ, 2));
		feed(&p, n, spikes_at, at);
		CHECK_EQ(p.end_frame, n);
		CHECK_EQ(p.column_frames & (p.column_frames - 1), 0);
		CHECK_EQ(p.n_columns, (n + (int64_t)p.column_frames - 1) / (int64_t)p.column_frames);
		CHECK(p.n_columns <= PLOT_COLUMNS && (n < PLOT_COLUMNS || p.n_columns >= PLOT_COLUMNS / 2));
		uint64_t frames = 0;
		for (unsigned k = 0; k < p.n_columns; k++) {
			const struct plot_wave *up = plot_wave(&p, k, 0), *down = plot_wave(&p, k, 1);
			bool has_up = k == (uint64_t)at[0] / p.column_frames, has_down = k == (uint64_t)at[1] / p.column_frames;
			bool all = p.column_frames == 1;
			frames += p.columns[k].frames;
			if (up->high != (has_up ? 0.5f : 0.0f) || up->low != (has_up && all ? 0.5f : 0.0f))
				CHECK_FAIL("%lld frames, column %u: %g…%g", (long long)n, k, (double)up->low, (double)up->high);
			if (down->low != (has_down ? -0.75f : 0.0f) || down->high != (has_down && (all || p.columns[k].frames == 1) ? -0.75f : 0.0f))
				CHECK_FAIL("%lld frames, column %u: %g…%g", (long long)n, k, (double)down->low, (double)down->high);
		}
		CHECK_EQ(frames, n);
		plot_release(&p);
	}
}

static void test_rms(void)
{
	struct plot p;
	struct meter_feed_sine sine = { RATE_HZ, 1000, { 0.5, 0.1 }, false };
	CHECK_OK(plot_init(&p, RATE_HZ, 2));
	feed(&p, 40 * RATE_HZ, meter_feed_sine_at, &sine);
	CHECK_EQ(p.column_frames, 512);
	/* 512 frames are ten periods and two thirds: no more than a third of a period is missing or too many. */
	for (unsigned k = 0; k + 1 < p.n_columns; k++) {
		CHECK_NEAR(plot_rms(&p, k, 0), 0.5 * M_SQRT1_2, 0.01);
		CHECK_NEAR(plot_rms(&p, k, 1), 0.1 * M_SQRT1_2, 0.002);
	}
	plot_release(&p);
}

static void test_gaps(void)
{
	struct plot p;
	struct meter_feed_sine sine = { RATE_HZ, 1000, { 0.5 }, true };
	CHECK_OK(plot_init(&p, RATE_HZ, 1));
	feed(&p, 2 * RATE_HZ, meter_feed_sine_at, &sine);
	plot_add_gap(&p, RATE_HZ, true);
	feed(&p, RATE_HZ, meter_feed_sine_at, &sine);
	plot_add_gap(&p, RATE_HZ / 2, false);
	feed(&p, RATE_HZ, meter_feed_sine_at, &sine);
	plot_finish(&p);
	CHECK_EQ(p.end_frame, 11 * RATE_HZ / 2);
	uint64_t frames = 0, lost = 0, quiet = 0;
	for (unsigned k = 0; k < p.n_columns; k++) {
		const struct plot_column *c = &p.columns[k];
		double from_s = (double)k * (double)p.column_frames / RATE_HZ, to_s = (double)(k + 1) * (double)p.column_frames / RATE_HZ;
		frames += c->frames;
		lost += c->lost_frames;
		quiet += c->quiet_frames;
		CHECK_EQ(c->lost_frames > 0, to_s > 2 && from_s < 3);
		CHECK_EQ(c->quiet_frames > 0, to_s > 4 && from_s < 4.5);
		if (from_s >= 2 && to_s <= 3) {
			CHECK_EQ(c->frames, 0);
			CHECK(plot_wave(&p, k, 0)->low > plot_wave(&p, k, 0)->high);
			CHECK(plot_rms(&p, k, 0) == 0);
		}
	}
	CHECK_EQ(frames, 4 * RATE_HZ);
	CHECK_EQ(lost, RATE_HZ);
	CHECK_EQ(quiet, RATE_HZ / 2);
	/* Nothing was looked for in the gaps; before, between and behind them the tone is there. */
	unsigned heard = 0;
	for (unsigned k = 0; k < p.n_slices; k++) {
		double from_s = (double)k * (double)p.slice_frames / RATE_HZ, to_s = (double)(k + 1) * (double)p.slice_frames / RATE_HZ;
		bool in_gap = (from_s > 2.01 && to_s < 2.99) || (from_s > 4.01 && to_s < 4.49);
		bool clear = (from_s > 0.1 && to_s < 1.9) || (from_s > 3.1 && to_s < 3.9) || (from_s > 4.6 && to_s < 5.4);
		if (in_gap)
			CHECK_EQ(p.transforms[k], 0);
		heard += clear && p.transforms[k] > 0;
		CHECK(!clear || p.transforms[k] > 0);
	}
	CHECK(heard > 500);
	plot_release(&p);
}

/* A gap of a year costs no time and no memory, and what came before it is still there. */
static void test_enormous_gap(void)
{
	struct plot p;
	int64_t at[2] = { 500, 0 };
	CHECK_OK(plot_init(&p, RATE_HZ, 1));
	feed(&p, 1000, spikes_at, at);
	uint64_t year_frames = (uint64_t)RATE_HZ * 86400 * 365;
	plot_add_gap(&p, year_frames, true);
	feed(&p, 100000, zero_at, NULL);
	plot_finish(&p);
	CHECK_EQ(p.end_frame, year_frames + 101000);
	CHECK(p.n_columns <= PLOT_COLUMNS && p.n_columns >= PLOT_COLUMNS / 2);
	CHECK(plot_wave(&p, 0, 0)->high == 0.5f);
	uint64_t lost = 0;
	for (unsigned k = 0; k < p.n_columns; k++)
		lost += p.columns[k].lost_frames;
	CHECK_EQ(lost, year_frames);
	plot_release(&p);
}

static void test_loudness(void)
{
	struct plot p;
	CHECK_OK(plot_init(&p, RATE_HZ, 1));
	plot_loudness(&p, -20, -30); /* before anything: no place for it */
	CHECK_EQ(p.n_columns, 0);
	for (int i = 0; i < 100; i++) {
		feed(&p, 1000, zero_at, NULL);
		plot_loudness(&p, i < 10 ? (double)NAN : -60 + i * 0.5, i < 50 ? (double)NAN : -20.0);
	}
	CHECK_EQ(p.column_frames, 32);
	for (unsigned i = 0; i < 100; i++) {
		const struct plot_column *c = &p.columns[((uint64_t)(i + 1) * 1000 - 1) / 32];
		CHECK(c->momentary_lufs.high == (i < 10 ? -INFINITY : (float)(-60 + i * 0.5)));
		CHECK(c->momentary_lufs.low == c->momentary_lufs.high);
		CHECK(c->short_term_lufs.high == (i < 50 ? -INFINITY : -20.0f));
	}
	CHECK(isnan(p.columns[0].momentary_lufs.high) && isnan(p.columns[0].momentary_lufs.low));
	/* Joined: the range of all. */
	feed(&p, 4000000, zero_at, NULL);
	CHECK(p.columns[0].momentary_lufs.low == -INFINITY);
	CHECK_EQ(p.column_frames, 1024);
	CHECK(p.columns[10].momentary_lufs.low == -55 && p.columns[10].momentary_lufs.high == -55); /* of frame 10999 */
	CHECK(p.columns[40].momentary_lufs.low == -40 && p.columns[41].momentary_lufs.high == -39);
	plot_release(&p);
}

static void test_highest_peak(void)
{
	struct plot p;
	float frames[200] = { 0 };
	CHECK_OK(plot_init(&p, RATE_HZ, 2));
	frames[2 * 30] = 0.3f;
	frames[2 * 40 + 1] = -0.4f;
	for (int i = 0; i < 3; i++) {
		/* Channel 1 rises once more, channel 0 does not. */
		plot_peak(&p, 0, 0.35, frames, 100);
		plot_peak(&p, 1, i == 2 ? 0.5 : 0.4, frames, 100);
		plot_add(&p, frames, 100);
	}
	CHECK_EQ(p.peaks[0].frame, 30);
	CHECK_NEAR(p.peaks[0].factor, 0.35, 0);
	CHECK_EQ(p.peaks[1].frame, 240);
	CHECK_NEAR(p.peaks[1].factor, 0.5, 0);
	plot_release(&p);
}

/* ---- spectrogram ---- */

static unsigned band_of(const struct plot *p, double hz)
{
	unsigned b = 0;
	while (b + 1 < PLOT_BANDS && plot_band_hz(p, b + 1) <= hz)
		b++;
	return b;
}

/* A tone at -20 dB has its level in its band, at any rate and however often slices were joined; an octave off there is nothing. */
static void check_tone(uint32_t rate_hz, unsigned n_channels, double tone_hz, double seconds)
{
	struct plot p;
	struct meter_feed_sine sine = { rate_hz, tone_hz, { 0.1 }, true };
	CHECK_OK(plot_init(&p, rate_hz, n_channels));
	feed(&p, (int64_t)(seconds * rate_hz), meter_feed_sine_at, &sine);
	plot_finish(&p);
	CHECK_NEAR(plot_band_hz(&p, 0), 20, 1e-9);
	CHECK_NEAR(plot_band_hz(&p, PLOT_BANDS), rate_hz / 2.0, 1e-6);
	CHECK(p.n_slices <= PLOT_SLICES && p.n_slices > 100);
	unsigned tone = band_of(&p, tone_hz), above = band_of(&p, 2 * tone_hz), below = band_of(&p, tone_hz / 2), looked = 0;
	for (unsigned k = 0; k < p.n_slices; k++) {
		double from_s = (double)k * (double)p.slice_frames / rate_hz, to_s = (double)(k + 1) * (double)p.slice_frames / rate_hz;
		if (from_s < 0.1 || to_s > seconds - 0.1)
			continue;
		/* Between two bins a Hann window shows 1.42 dB less. */
		double highest = -INFINITY;
		unsigned where = 0;
		for (unsigned b = 0; b < PLOT_BANDS; b++)
			if (plot_band_db(&p, k, b) > highest)
				highest = plot_band_db(&p, k, where = b);
		if (fabs(highest + 20.72) > 0.75 || abs((int)where - (int)tone) > 1)
			CHECK_FAIL("%u Hz, tone of %g Hz, slice %u: %.2f dB in band %u, wanted %u", rate_hz, tone_hz, k, highest, where, tone);
		CHECK(plot_band_db(&p, k, above) < -100 && plot_band_db(&p, k, below) < -85);
		looked++;
	}
	CHECK(looked > 100);
	plot_release(&p);
}

static void test_tone(void)
{
	check_tone(48000, 1, 1000, 2);
	check_tone(48000, 2, 1000, 30);
	check_tone(48000, 3, 9000, 4);
	check_tone(44100, 2, 440, 20);
	check_tone(96000, 1, 1000, 10);
	check_tone(8000, 1, 1000, 100);
}

/* Silence is as low as it gets, and no number that cannot be drawn; a track shorter than a window is looked at, too. */
static void test_silence_and_short(void)
{
	struct plot p;
	CHECK_OK(plot_init(&p, RATE_HZ, 2));
	plot_finish(&p);
	CHECK_EQ(p.n_slices, 0);
	CHECK_EQ(p.n_columns, 0);
	feed(&p, 10, zero_at, NULL);
	plot_finish(&p);
	CHECK_EQ(p.n_slices, 1);
	CHECK_NEAR(plot_band_db(&p, 0, 100), -200, 0.1);
	plot_release(&p);
}

static void test_rates_and_channels(void)
{
	static const uint32_t rates_hz[] = { 1, 10, 100, 4000, 192000, 768000, 4000000, UINT32_MAX };
	for (size_t i = 0; i < ARRAY_LEN(rates_hz); i++) {
		struct plot p;
		CHECK_OK(plot_init(&p, rates_hz[i], 1));
		for (unsigned b = 0; b < PLOT_BANDS; b++)
			CHECK(plot_band_hz(&p, b) < plot_band_hz(&p, b + 1));
		feed(&p, 200000, zero_at, NULL);
		plot_finish(&p);
		CHECK(p.n_slices >= 1);
		plot_release(&p);
	}
	struct plot p;
	CHECK_OK(plot_init(&p, RATE_HZ, 255));
	CHECK_EQ(p.n_lanes, PLOT_MAX_LANES);
	static float frames[255 * 5000];
	plot_add(&p, frames, 5000);
	CHECK_EQ(p.end_frame, 5000);
	plot_release(&p);
}

/* ---- in a meter ---- */

static void test_in_a_meter(void)
{
	struct meter_feed f;
	struct meter_options options = METER_OPTIONS;
	struct track t = track_pcm(RATE_HZ, 2, SAMPLE_F32);
	struct meter_feed_sine sine = { RATE_HZ, 1000, { 0.1, 0.05 }, false };
	options.plot = true;
	t.id = 1;
	meter_feed_open_track(&f, &t, &options);
	CHECK(f.meter.has_plot);
	meter_feed_add(&f, RATE_HZ, meter_feed_sine_at, &sine);
	uint64_t allocs = heap_allocs();
	meter_feed_add(&f, 19 * RATE_HZ, meter_feed_sine_at, &sine);
	CHECK_EQ(heap_allocs(), allocs);
	CHECK_OK(meter_end(&f.meter));
	const struct plot *p = &f.meter.plot;
	CHECK_EQ(p->end_frame, 20 * RATE_HZ);
	CHECK_NEAR(p->peaks[0].factor, 0.1, 0.001);
	CHECK_NEAR(p->peaks[1].factor, 0.05, 0.001);
	struct loudness_values l = meter_loudness(&f.meter);
	CHECK_NEAR(l.range_high_lufs - l.range_low_lufs, l.range_lu, 1e-9);
	CHECK_NEAR(l.range_low_lufs, l.integrated_lufs, 0.1);
	for (unsigned k = p->n_columns / 4; k < p->n_columns; k++) {
		const struct plot_column *c = &p->columns[k];
		if (!isnan(c->momentary_lufs.low)) {
			CHECK_NEAR(c->momentary_lufs.low, l.integrated_lufs, 0.05);
			CHECK_NEAR(c->short_term_lufs.high, l.integrated_lufs, 0.05);
		}
	}
	meter_feed_close(&f);
}

int main(void)
{
	CHECK_RUN(test_spectrum_is_the_transform);
	CHECK_RUN(test_spectrum_of_a_sine);
	CHECK_RUN(test_peaks_stay);
	CHECK_RUN(test_rms);
	CHECK_RUN(test_gaps);
	CHECK_RUN(test_enormous_gap);
	CHECK_RUN(test_loudness);
	CHECK_RUN(test_highest_peak);
	CHECK_RUN(test_tone);
	CHECK_RUN(test_silence_and_short);
	CHECK_RUN(test_rates_and_channels);
	CHECK_RUN(test_in_a_meter);
	return check_end();
}
