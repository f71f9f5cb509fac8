#include "kern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint32_t rates[] = {48000, 96000, 192000};

/* Two orders of taps products, float: each is within taps roundings of sums no larger than sum |coef| * peak, and the
 * folded form adds three more. */
static double bound_of(const struct truepeak_filter *filter, double peak)
{
	double worst = 1.0;
	for (unsigned p = 0; p + 1 < filter->factor; p++) {
		double sum = 0;
		for (unsigned k = 0; k < filter->taps; k++)
			sum += fabs(filter->coef[p][k]);
		worst = fmax(worst, sum);
	}
	return 2 * (filter->taps + 3) * 0x1p-24 * worst * peak;
}

static void check_equal(uint32_t rate_hz, unsigned channels)
{
	static struct kern_buf in, out_c, out_v;
	const size_t room = KERN_MAX_CHANNELS * (KERN_MAX_LEN + TRUEPEAK_MAX_TAPS) * sizeof(float) + 64;
	if (!in.base) {
		kern_buf_open(&in, room);
		kern_buf_open(&out_c, room);
		kern_buf_open(&out_v, room);
	}
	struct truepeak_filter filter;
	truepeak_filter_init(&filter, rate_hz);
	double bound = bound_of(&filter, 1.2);
	bool ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n += n < 70 ? 1 : 11) {
		size_t past = (size_t)(filter.taps - 1) * channels, n_samples = n * channels, offset = n % 4 * sizeof(float);
		float *x = kern_place(&in, (past + n_samples) * sizeof(float), offset);
		float *c = kern_place(&out_c, n_samples * sizeof(float), offset);
		float *v = kern_place(&out_v, n_samples * sizeof(float), offset);
		kern_fill_finite(x, past + n_samples);
		kern_c.envelope(c, x + past, &filter, channels, n_samples);
		kern_fast.envelope(v, x + past, &filter, channels, n_samples);
		for (size_t i = 0; i < n_samples; i++)
			ok &= fabs(c[i] - v[i]) <= bound && c[i] >= fabsf(x[past + i - filter.taps / 2 * (size_t)channels]);
		ok &= kern_is_clean(&out_v, n_samples * sizeof(float), offset);
	}
	kern_ok(ok, "truepeak: %u Hz, %u channels as c within %.2g", rate_hz, channels, bound);
}

/* The true peak of a tone of frequency rate / divisor, faded in and out over 1000 frames: channel 1 of 2. */
static double tone_dbtp(uint32_t rate_hz, double divisor, double phase_degrees, double factor)
{
	static float x[2 * 9600];
	float peaks[2] = {0};
	struct truepeak t;
	for (int i = 0; i < 9600; i++) {
		double fade = fmin(1.0, fmin(i, 9599 - i) / 1000.0);
		x[2 * i] = 0.0f;
		x[2 * i + 1] = (float)(factor * fade * sin(2 * M_PI * i / divisor + phase_degrees * M_PI / 180));
	}
	if (truepeak_init(&t, rate_hz, 2))
		return NAN;
	truepeak_run(&t, peaks, x, 4000);
	truepeak_run(&t, peaks, x + 2 * 4000, 1);
	truepeak_run(&t, peaks, x + 2 * 4001, 5599);
	truepeak_release(&t);
	return peaks[0] == 0.0f ? 20 * log10(peaks[1]) : NAN;
}

static void check_values(void)
{
	/* EBU Tech 3341, tests 15 to 19: within +0.2 and -0.4 dB; what this interpolator does is closer. */
	kern_near(tone_dbtp(48000, 4, 0, 0.5), -6.02, 0.02, "truepeak: rate/4 at 0 degrees, -6.02 dBTP");
	kern_near(tone_dbtp(48000, 4, 45, 0.5), -6.02, 0.1, "truepeak: rate/4 at 45 degrees, -6.02 dBTP");
	kern_near(tone_dbtp(48000, 6, 60, 0.5), -6.02, 0.1, "truepeak: rate/6 at 60 degrees, -6.02 dBTP");
	kern_near(tone_dbtp(48000, 8, 67.5, 0.5), -6.02, 0.1, "truepeak: rate/8 at 67.5 degrees, -6.02 dBTP");
	kern_near(tone_dbtp(48000, 4, 45, 1.41), 2.98, 0.1, "truepeak: rate/4 at 45 degrees over full scale, +2.98 dBTP");
	kern_near(tone_dbtp(96000, 4, 45, 0.5), -6.02, 0.1, "truepeak: at 96 kHz, twice, -6.02 dBTP");
	kern_near(tone_dbtp(192000, 4, 45, 0.5), -9.03, 0.01, "truepeak: at 192 kHz the samples themselves");
	kern_near(tone_dbtp(44100, 997.0 / 44.1, 10, 1.0), 0.0, 0.02, "truepeak: a low tone at full scale, 0 dBTP");
}

static void check_pieces(void)
{
	static float x[6 * 3000];
	float whole[6] = {0}, pieces[6] = {0};
	struct truepeak a = {0}, b = {0};
	kern_fill_finite(x, ARRAY_LEN(x));
	bool ok = !truepeak_init(&a, 48000, 6) && !truepeak_init(&b, 48000, 6);
	truepeak_run(&a, whole, x, 3000);
	for (size_t at = 0; at < 3000;) {
		size_t n = kern_rand() % 77;
		if (n > 3000 - at)
			n = 3000 - at;
		truepeak_run(&b, pieces, x + 6 * at, n);
		at += n;
	}
	double bound = bound_of(&a.filter, 1.2);
	for (int c = 0; c < 6; c++)
		ok &= fabs(whole[c] - pieces[c]) <= bound;
	kern_ok(ok, "truepeak: independent of the split into calls");

	/* After a reset the past is silent: a lone sample gives what it gave the first time. */
	float first[6] = {0}, again[6] = {0};
	truepeak_reset(&a);
	truepeak_run(&a, first, x, 20);
	truepeak_reset(&a);
	truepeak_run(&a, again, x, 20);
	kern_ok(!memcmp(first, again, sizeof(first)), "truepeak: reset forgets");
	truepeak_release(&a);
	truepeak_release(&a);
	truepeak_release(&b);
	kern_ok(truepeak_init(&a, 48000, 0) == ERR_ARG, "truepeak: no channels are refused");
	truepeak_release(&a);
}

static float bench_in[TRUEPEAK_MAX_TAPS * 2 + 2048], bench_out[2048];
static struct truepeak_filter bench_filter;

static void call(void *arg)
{
	((struct dsp *)arg)->envelope(bench_out, bench_in + TRUEPEAK_MAX_TAPS * 2, &bench_filter, 2, 2048);
}

void kern_truepeak(bool bench)
{
	if (bench) {
		kern_fill_finite(bench_in, ARRAY_LEN(bench_in));
		for (size_t i = 0; i < 2; i++) {
			char name[64];
			truepeak_filter_init(&bench_filter, rates[i]);
			snprintf(name, sizeof(name), "truepeak x%u, 2 x 1024", bench_filter.factor);
			kern_bench(name, call, &kern_c, call, &kern_fast);
		}
		return;
	}
	for (size_t r = 0; r < ARRAY_LEN(rates); r++) {
		check_equal(rates[r], 1);
		check_equal(rates[r], 2);
		check_equal(rates[r], 6);
		check_equal(rates[r], 33);
	}
	check_values();
	check_pieces();
}
