/* Peaks, true peak, RMS, DC, clipping, NaN, correlation; silence ranges; gaps: each against what the signal is made to have. */
#include "meter_feed.h"

#include "base/heap.h"

static double list_at(void *arg, int64_t n, unsigned c)
{
	(void)c;
	return (double)((const float *)arg)[n];
}

static struct amplitude_values channel(const struct meter_feed *f, unsigned c)
{
	return amplitude_read(&f->meter.amplitude, c);
}

static void test_sine_levels(void)
{
	struct meter_feed_sine sine = { .rate_hz = 48000, .freq_hz = 997, .peak = { 1, 0.5 } };
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	meter_feed_add(&f, 480000, meter_feed_sine_at, &sine);
	CHECK_NEAR(channel(&f, 0).rms_dbfs, -3.0103, 0.001);
	CHECK_NEAR(channel(&f, 0).sample_peak_dbfs, 0, 0.001);
	CHECK_NEAR(channel(&f, 1).rms_dbfs, -9.0309, 0.001);
	CHECK_NEAR(channel(&f, 1).sample_peak_dbfs, -6.0206, 0.001);
	CHECK_NEAR(channel(&f, 1).true_peak_dbtp, -6.0206, 0.02);
	CHECK_NEAR(channel(&f, 0).dc_offset, 0, 1e-6);
	CHECK_NEAR(meter_sample_peak_dbfs(&f.meter), 0, 0.001);
	CHECK_NEAR(amplitude_correlation(&f.meter.amplitude), 1, 1e-9);
	meter_feed_close(&f);
}

/* A quarter of the rate at 45 degrees: the samples miss the peak by 3 dB. */
static void test_true_peak_between_samples(void)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	struct meter_feed f;
	meter_feed_open_track(&f, &t, NULL);
	static int16_t samples[9600];
	for (int i = 0; i < 9600; i++) {
		double edge = fmin(1, fmin(i, 9599 - i) / 480.0);
		samples[i] = (int16_t)lrint(32768 * 0.5 * edge * sin(M_PI / 2 * i + M_PI / 4));
	}
	struct packet p = packet_data(1, 0, 9600, sizeof(samples));
	p.payload = (const uint8_t *)samples;
	CHECK_OK(meter_data(&f.meter, &p));
	CHECK_NEAR(meter_sample_peak_dbfs(&f.meter), -9.03, 0.01);
	CHECK(meter_true_peak_dbtp(&f.meter) > -6.4 && meter_true_peak_dbtp(&f.meter) < -5.8);
	meter_feed_close(&f);
}

/* Blocks that cannot raise a true peak are passed over; the result must be that of looking at everything. */
static void test_true_peak_of_uneven_levels(void)
{
	for (int round = 0; round < 40; round++) {
		uint32_t rate_hz = round % 3 == 0 ? 48000 : round % 3 == 1 ? 96000 : 192000;
		unsigned n_channels = 1 + (unsigned)check_rand_below(3);
		enum { N = 20000 };
		float *x = malloc(N * n_channels * sizeof(float)), peaks[3] = { 0 };
		double level = 1;
		for (int i = 0; i < N; i++) {
			if (check_rand_below(300) == 0)
				level = pow(10, -(double)check_rand_below(40) / 20);
			for (unsigned c = 0; c < n_channels; c++)
				x[(unsigned)i * n_channels + c] = (float)(level / (1 + c) * ((double)(check_rand() >> 11) * 0x1p-52 - 1));
		}
		struct truepeak all;
		CHECK_OK(truepeak_init(&all, rate_hz, n_channels));
		truepeak_run(&all, peaks, x, N);

		struct amplitude a;
		struct amplitude_options options = { .full_scale = 1 };
		CHECK_OK(amplitude_init(&a, rate_hz, n_channels, &options));
		for (size_t at = 0; at < N;) {
			size_t n = 1 + (size_t)check_rand_below(round % 2 ? 40 : AMPLITUDE_BLOCK_FRAMES);
			if (n > N - at)
				n = N - at;
			amplitude_add(&a, x + at * n_channels, n);
			at += n;
		}
		for (unsigned c = 0; c < n_channels; c++)
			CHECK_NEAR(pow(10, amplitude_read(&a, c).true_peak_dbtp / 20),
				fmax((double)peaks[c], (double)a.channels[c].levels.peak), 1e-6);
		amplitude_release(&a);
		truepeak_release(&all);
		free(x);
	}
}

static void test_dc_and_rms(void)
{
	static float x[4000];
	for (int i = 0; i < 4000; i++)
		x[i] = i % 2 ? 0.75f : -0.25f;
	struct meter_feed f;
	meter_feed_open(&f, 48000, 1);
	meter_feed_add(&f, 4000, list_at, x);
	CHECK_NEAR(channel(&f, 0).dc_offset, 0.25, 1e-12);
	CHECK_NEAR(channel(&f, 0).rms_dbfs, 10 * log10((0.5625 + 0.0625) / 2), 1e-9);
	CHECK_NEAR(channel(&f, 0).sample_peak_dbfs, 20 * log10(0.75), 1e-6);
	meter_feed_close(&f);
}

static void test_clipping(void)
{
	static float x[3000];
	for (int i = 0; i < 3000; i++)
		x[i] = 0.1f;
	/* Rows of 3, 1 and 4, the last over the edge of a packet at 1000 and beyond full scale; 0.9999 is none. */
	for (int i = 10; i < 13; i++)
		x[i] = 1.0f;
	x[20] = -1.0f;
	for (int i = 998; i < 1002; i++)
		x[i] = i % 2 ? -1.5f : 2.0f;
	x[2000] = 0.9999f;
	struct meter_feed f;
	meter_feed_open(&f, 48000, 1);
	meter_feed_add(&f, 3000, list_at, x);
	CHECK_EQ(channel(&f, 0).clipped_samples, 8);
	CHECK_EQ(channel(&f, 0).clipped_runs, 3);
	CHECK_NEAR(channel(&f, 0).sample_peak_dbfs, 6.0206, 1e-4);
	meter_feed_close(&f);
}

/* Integers clip at their largest code, either sign, by the bits that are used. */
static void test_clipping_of_integers(void)
{
	static const int16_t samples[] = { 32767, 32766, -32768, -32767, -32766, 0, 32767, 32767 };
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	struct meter_feed f;
	meter_feed_open_track(&f, &t, NULL);
	struct packet p = packet_data(1, 0, 8, sizeof(samples));
	p.payload = (const uint8_t *)samples;
	CHECK_OK(meter_data(&f.meter, &p));
	CHECK_EQ(channel(&f, 0).clipped_samples, 5);
	CHECK_EQ(channel(&f, 0).clipped_runs, 3);
	CHECK_NEAR(channel(&f, 0).sample_peak_dbfs, 0, 1e-9);
	meter_feed_close(&f);
	CHECK_EQ(amplitude_full_scale(16) * 32768, 32767);
	CHECK_EQ(amplitude_full_scale(24) * 8388608, 8388607);
	CHECK_EQ(amplitude_full_scale(20) * 524288, 524287);
	CHECK_EQ(amplitude_full_scale(0), 1);
}

/* NaN and infinities are counted and otherwise zeros; nothing else is spoilt by them. */
static void test_nonfinite(void)
{
	static float x[96000], y[96000];
	for (int i = 0; i < 96000; i++)
		x[i] = y[i] = (float)(0.5 * sin(i * 0.13));
	for (int i = 0; i < 10; i++) {
		x[1000 * i + 7] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
		y[1000 * i + 7] = 0;
	}
	struct meter_feed f, g;
	meter_feed_open(&f, 48000, 1);
	meter_feed_open(&g, 48000, 1);
	meter_feed_add(&f, 96000, list_at, x);
	meter_feed_add(&g, 96000, list_at, y);
	CHECK_EQ(channel(&f, 0).nonfinite_samples, 10);
	CHECK_EQ(channel(&g, 0).nonfinite_samples, 0);
	CHECK_EQ(channel(&f, 0).clipped_samples, 0);
	CHECK_NEAR(channel(&f, 0).rms_dbfs, channel(&g, 0).rms_dbfs, 0);
	CHECK_NEAR(channel(&f, 0).true_peak_dbtp, channel(&g, 0).true_peak_dbtp, 0);
	CHECK_NEAR(meter_loudness(&f.meter).integrated_lufs, meter_loudness(&g.meter).integrated_lufs, 0);
	meter_feed_close(&f);
	meter_feed_close(&g);
}

static void test_nonfinite_double(void)
{
	struct track t = track_pcm(48000, 2, SAMPLE_F64);
	struct meter_feed f;
	meter_feed_open_track(&f, &t, NULL);
	double samples[8] = { 0.5, (double)NAN, 1e300, 0.25, -0.5, (double)-INFINITY, 0, 0 };
	struct packet p = packet_data(1, 0, 4, sizeof(samples));
	p.payload = (const uint8_t *)samples;
	CHECK_OK(meter_data(&f.meter, &p));
	CHECK_EQ(channel(&f, 0).nonfinite_samples, 1); /* beyond what a float holds */
	CHECK_EQ(channel(&f, 1).nonfinite_samples, 2);
	CHECK_NEAR(channel(&f, 1).sample_peak_dbfs, 20 * log10(0.25), 1e-6);
	meter_feed_close(&f);
}

static double pair_at(void *arg, int64_t n, unsigned c)
{
	double phase = *(const double *)arg;
	return 0.5 * sin(0.05 * (double)n + (c == 1 ? phase : 0));
}

static void test_correlation(void)
{
	static const double phases[] = { 0, M_PI, M_PI / 2, M_PI / 3 };
	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		struct meter_feed f;
		double phase = phases[i];
		meter_feed_open(&f, 48000, 2);
		meter_feed_add(&f, 125664, pair_at, &phase); /* a thousand periods */
		CHECK_NEAR(amplitude_correlation(&f.meter.amplitude), cos(phase), 1e-4);
		meter_feed_close(&f);
	}
	/* The front pair of more channels; none where the layout has none. */
	struct meter_feed f;
	double phase = M_PI;
	meter_feed_open(&f, 48000, 6);
	meter_feed_add(&f, 125664, pair_at, &phase);
	CHECK_NEAR(amplitude_correlation(&f.meter.amplitude), -1, 1e-4);
	meter_feed_close(&f);
	struct track discrete = track_pcm(48000, 4, SAMPLE_F32);
	meter_feed_open_track(&f, &discrete, NULL);
	meter_feed_add(&f, 1000, pair_at, &phase);
	CHECK(isnan(amplitude_correlation(&f.meter.amplitude)));
	meter_feed_close(&f);
}

/* ---- silence ---- */

/* Ranges of a signal given as lengths, loud and quiet in turn, fed in pieces of `piece` frames. */
static void check_silence(const int *lengths, size_t n_lengths, uint64_t min_frames, size_t piece)
{
	enum { N = 20000 };
	static float x[2 * N];
	size_t n = 0, n_wanted = 0;
	struct silence_range wanted[16];
	for (size_t i = 0; i < n_lengths; i++) {
		bool loud = i % 2 == 0;
		if (!loud && (uint64_t)lengths[i] >= min_frames)
			wanted[n_wanted++] = (struct silence_range){ n, n + (size_t)lengths[i] };
		for (int k = 0; k < lengths[i]; k++, n++) {
			x[2 * n] = 0.0009f;
			x[2 * n + 1] = loud ? -0.5f : 0.0009f; /* one loud channel is enough */
		}
	}
	struct silence s;
	CHECK_OK(silence_init(&s, 2, 0.001, min_frames));
	for (size_t at = 0; at < n; at += piece)
		silence_add(&s, x + 2 * at, n - at < piece ? n - at : piece);
	CHECK_EQ(silence_count(&s), n_wanted);
	for (unsigned i = 0; i < n_wanted && i < silence_count(&s); i++) {
		CHECK_EQ(silence_at(&s, i).start_frame, wanted[i].start_frame);
		CHECK_EQ(silence_at(&s, i).end_frame, wanted[i].end_frame);
	}
	silence_release(&s);
}

static void test_silence_ranges(void)
{
	static const int a[] = { 0, 1000, 10, 500, 1, 499, 1, 500, 3000, 2000 };
	static const int b[] = { 5000, 499, 5000 };
	static const int c[] = { 0, 5000 };
	static const int d[] = { 1, 1, 1, 2, 1, 3 };
	static const size_t pieces[] = { 1, 7, 499, 500, 501, 4096, 20000 };
	for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
		check_silence(a, ARRAY_LEN(a), 500, pieces[p]);
		check_silence(b, ARRAY_LEN(b), 500, pieces[p]);
		check_silence(c, ARRAY_LEN(c), 500, pieces[p]);
		check_silence(d, ARRAY_LEN(d), 2, pieces[p]);
		check_silence(d, ARRAY_LEN(d), 1, pieces[p]);
	}
}

static void test_silence_over_a_gap(void)
{
	float loud[4] = { 0.5f, 0.5f, 0.5f, 0.5f }, quiet[4] = { 0 };
	struct silence s;
	CHECK_OK(silence_init(&s, 1, 0.001, 10));
	silence_add(&s, loud, 4);
	silence_add(&s, quiet, 4);
	silence_add_gap(&s, 8);
	silence_add(&s, quiet, 4);
	CHECK_EQ(silence_count(&s), 1); /* it still lasts */
	CHECK_EQ(silence_at(&s, 0).end_frame, 20);
	silence_add(&s, loud, 4);
	CHECK_EQ(silence_count(&s), 1);
	CHECK_EQ(silence_at(&s, 0).start_frame, 4);
	CHECK_EQ(silence_at(&s, 0).end_frame, 20);
	silence_release(&s);
}

static void test_silence_is_bounded(void)
{
	float x[2] = { 0.5f, 0 };
	struct silence s;
	CHECK_OK(silence_init(&s, 1, 0.001, 1));
	uint64_t before = heap_allocs();
	for (unsigned i = 0; i < SILENCE_MAX_RANGES + 10; i++)
		silence_add(&s, x, 2);
	CHECK_EQ(heap_allocs(), before);
	CHECK_EQ(s.n_ranges, SILENCE_MAX_RANGES);
	CHECK_EQ(s.n_omitted, 9); /* the last one still lasts */
	silence_release(&s);
}

/* ---- continuity ---- */

static void test_continuity(void)
{
	struct continuity c = { 0 };
	CHECK_EQ(continuity_data(&c, -312, 312, 0), 0);
	CHECK_EQ(continuity_data(&c, 0, 960, 0), 0);
	CHECK_EQ(continuity_gap(&c, 960, 960, PACKET_GAP_NETWORK), 960);
	CHECK_EQ(continuity_gap(&c, 1920, 960, PACKET_GAP_DTX), 960);
	CHECK_EQ(continuity_data(&c, 2880, 960, PACKET_CONCEALED), 0);
	CHECK_EQ(continuity_data(&c, 4800, 960, 0), 960); /* a hole nobody announced */
	CHECK_EQ(continuity_gap(&c, 4800, 960, PACKET_GAP_NETWORK), 0); /* of what came already */
	CHECK_EQ(continuity_gap(&c, 5280, 960, PACKET_GAP_XRUN), 480);
	CHECK_EQ(continuity_data(&c, 100000, 10, PACKET_DISCONT), 0);
	CHECK_EQ(c.first_pos, -312);
	CHECK_EQ(c.next_pos, 100010);
	CHECK_EQ(c.frames, 312 + 960 + 960 + 960 + 10);
	CHECK_EQ(c.gaps, 3);
	CHECK_EQ(c.lost_frames, 960 + 960 + 480);
	CHECK_EQ(c.quiet_frames, 960);
	CHECK_EQ(c.concealed_frames, 960);
	CHECK_EQ(c.n_rebased, 1);
	CHECK_EQ(continuity_span_frames(&c), c.frames + 960 + 960 + 480 + 960);
}

static void test_not_pcm(void)
{
	struct meter m;
	struct meter_options options = METER_OPTIONS;
	struct track t = track_pcm(48000, 2, SAMPLE_F32);
	t.codec = TRACK_OPUS;
	CHECK_EQ(meter_init(&m, &t, &options), ERR_ARG);
}

int main(void)
{
	check_seed(3);
	CHECK_RUN(test_sine_levels);
	CHECK_RUN(test_true_peak_between_samples);
	CHECK_RUN(test_true_peak_of_uneven_levels);
	CHECK_RUN(test_dc_and_rms);
	CHECK_RUN(test_clipping);
	CHECK_RUN(test_clipping_of_integers);
	CHECK_RUN(test_nonfinite);
	CHECK_RUN(test_nonfinite_double);
	CHECK_RUN(test_correlation);
	CHECK_RUN(test_silence_ranges);
	CHECK_RUN(test_silence_over_a_gap);
	CHECK_RUN(test_silence_is_bounded);
	CHECK_RUN(test_continuity);
	CHECK_RUN(test_not_pcm);
	return check_end();
}
