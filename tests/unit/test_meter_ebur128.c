/*
 * Loudness and true peak against libebur128, on noise, something like speech, and sweeps, at four sampling rates, with
 * 1 to 8 channels: within 0.01 LU and 0.05 dB.  Built with the library only where pkg-config finds it.  (The loudness range is not
 * compared: it takes a short-term value each second there, every 100 ms here.)
 */
#include "meter_feed.h"

#ifdef HAVE_EBUR128
#include <ebur128.h>

#define LOUDNESS_TOLERANCE_LU 0.01
#define PEAK_TOLERANCE_DB 0.05

enum kind { KIND_NOISE, KIND_SPEECH, KIND_SWEEP, KIND_QUIET, N_KINDS };
static const char *const kind_names[] = { "noise", "speech", "sweep", "quiet" };

struct signal {
	enum kind kind;
	double rate_hz, seconds;
	double syllable, low; /* of speech: level now, its low-pass */
	double frame[8];
	int64_t frame_n;
	unsigned n_channels;
};

static double uniform(void)
{
	return (double)(check_rand() >> 11) * 0x1p-52 - 1;
}

/* Syllables of noise of four a second, pauses every few seconds, levels that wander over 25 dB. */
static double speech(struct signal *s, int64_t n)
{
	double t = (double)n / s->rate_hz;
	if (n % (int64_t)(s->rate_hz / 4) == 0)
		s->syllable = fmod(t, 3) > 2.2 ? 0 : pow(10, -(1 + uniform()) * 12.5 / 20);
	s->low += (uniform() - s->low) * (1 - exp(-2 * M_PI * 1200 / s->rate_hz));
	return s->low * s->syllable * (0.3 + fabs(sin(2 * M_PI * 2 * t)));
}

static double sample(struct signal *s, int64_t n)
{
	double t = (double)n / s->rate_hz;
	switch (s->kind) {
	case KIND_NOISE:
		return 0.5 * uniform();
	case KIND_SPEECH:
		return speech(s, n);
	case KIND_SWEEP: {
		/* Exponential, 20 Hz to 0.45 of the rate. */
		double ratio = log(0.45 * s->rate_hz / 20), k = t / s->seconds;
		return 0.7 * sin(2 * M_PI * 20 * s->seconds / ratio * (exp(ratio * k) - 1));
	}
	case KIND_QUIET:
		return 1e-3 * uniform() * (t < s->seconds / 2 ? 1 : 0.3); /* near the absolute gate */
	case N_KINDS:
		break;
	}
	return 0;
}

/* The channels differ in level, so that a wrong weight shows. */
static double signal_at(void *arg, int64_t n, unsigned c)
{
	struct signal *s = arg;
	if (c == 0) {
		double x = sample(s, n);
		for (unsigned i = 0; i < s->n_channels; i++)
			s->frame[i] = s->kind == KIND_SWEEP ? x / (1 + i) : x / (1 + i) + (i ? 0.05 * x * uniform() : 0);
	}
	return s->frame[c];
}

static void set_map(ebur128_state *st, const struct track *t)
{
	float weights[8];
	loudness_weights(t, false, weights);
	/* The library has no map of its own for these counts; its places of the same weight. */
	for (unsigned c = 0; c < t->channels; c++)
		ebur128_set_channel(st, c, weights[c] == 0 ? EBUR128_UNUSED : weights[c] > 1 ? EBUR128_Mp110 : EBUR128_CENTER);
}

static void compare_with(enum kind kind, uint32_t rate_hz, unsigned n_channels, double seconds)
{
	struct signal s = { .kind = kind, .rate_hz = rate_hz, .seconds = seconds, .n_channels = n_channels };
	struct track t = track_pcm(rate_hz, (uint16_t)n_channels, SAMPLE_F32);
	t.layout = TRACK_LAYOUT_WAVE;
	t.wave_mask = track_usual_mask(n_channels);
	struct meter_feed f;
	meter_feed_open_track(&f, &t, NULL);
	ebur128_state *st = ebur128_init(n_channels, rate_hz, EBUR128_MODE_I | EBUR128_MODE_M | EBUR128_MODE_TRUE_PEAK);
	CHECK(st);
	if (!st)
		return;
	if (n_channels > 2)
		set_map(st, &t);

	int64_t left = llround(seconds * rate_hz);
	while (left > 0) {
		int64_t n = left < METER_FEED_FRAMES ? left : METER_FEED_FRAMES;
		meter_feed_add(&f, n, signal_at, &s);
		CHECK_EQ(ebur128_add_frames_float(st, f.block, (size_t)n), EBUR128_SUCCESS);
		left -= n;
	}

	struct loudness_values v = meter_loudness(&f.meter);
	double integrated, momentary, peak, highest = 0;
	ebur128_loudness_global(st, &integrated);
	if (!(fabs(v.integrated_lufs - integrated) <= LOUDNESS_TOLERANCE_LU))
		check_fail(__FILE__, __LINE__, "%s, %u Hz, %u channels: %.4f LUFS, libebur128 says %.4f", kind_names[kind], rate_hz,
			n_channels, v.integrated_lufs, integrated);
	/* Its window ends at the last frame, ours at the last whole 10 ms: equal where these are the same. */
	ebur128_loudness_momentary(st, &momentary);
	if (f.meter.loudness.hop_done_frames == 0 && momentary > -200)
		CHECK_NEAR(v.momentary_lufs, momentary, LOUDNESS_TOLERANCE_LU);
	for (unsigned c = 0; c < n_channels; c++) {
		ebur128_true_peak(st, c, &peak);
		double ours = amplitude_read(&f.meter.amplitude, c).true_peak_dbtp;
		highest = fmax(highest, peak);
		if (!(fabs(ours - 20 * log10(peak)) <= PEAK_TOLERANCE_DB))
			check_fail(__FILE__, __LINE__, "%s, %u Hz, channel %u of %u: %.3f dBTP, libebur128 says %.3f", kind_names[kind],
				rate_hz, c, n_channels, ours, 20 * log10(peak));
	}
	CHECK_NEAR(meter_true_peak_dbtp(&f.meter), 20 * log10(highest), PEAK_TOLERANCE_DB);
	ebur128_destroy(&st);
	meter_feed_close(&f);
}

static void test_kinds_at_rates(void)
{
	static const uint32_t rates_hz[] = { 44100, 48000, 96000, 192000 };
	for (size_t r = 0; r < ARRAY_LEN(rates_hz); r++)
		for (enum kind kind = 0; kind < N_KINDS; kind++)
			compare_with(kind, rates_hz[r], 2, rates_hz[r] > 48000 ? 5 : 12);
}

static void test_odd_rates(void)
{
	static const uint32_t rates_hz[] = { 8000, 11025, 16000, 22050, 32000, 44056, 88200, 176400 };
	for (size_t r = 0; r < ARRAY_LEN(rates_hz); r++)
		compare_with(KIND_SPEECH, rates_hz[r], 1, 8);
}

static void test_channel_counts(void)
{
	for (unsigned n = 1; n <= 8; n++) {
		compare_with(KIND_NOISE, 48000, n, 4);
		compare_with(KIND_SPEECH, 44100, n, 6);
	}
}

/* Where few blocks decide, each must fall on the right side of the gate. */
static void test_lengths(void)
{
	for (int i = 0; i < 60; i++)
		compare_with(KIND_SPEECH, 8000, 1, 3.5 + 0.25 * i);
}

int main(void)
{
	check_seed(1770);
	CHECK_RUN(test_kinds_at_rates);
	CHECK_RUN(test_odd_rates);
	CHECK_RUN(test_channel_counts);
	CHECK_RUN(test_lengths);
	return check_end();
}

#else

static void test_libebur128(void)
{
	check_skip("pkg-config does not find libebur128");
}

int main(void)
{
	CHECK_RUN(test_libebur128);
	return check_end();
}

#endif
