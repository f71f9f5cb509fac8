#include "kern.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* |H| of a biquad at f / rate. */
static double response(const double b[3], const double a[2], double turns)
{
	double complex z = cexp(-2 * M_PI * turns * I);
	return cabs((b[0] + b[1] * z + b[2] * z * z) / (1 + a[0] * z + a[1] * z * z));
}

/* The table of BS.1770-4 for 48 kHz, worked out here apart from the filter under test. */
static double table_db(double hz)
{
	static const double b1[] = {1.53512485958697, -2.69169618940638, 1.19839281085285}, a1[] = {-1.69065929318241, 0.73248077421585};
	static const double b2[] = {1, -2, 1}, a2[] = {-1.99004745483398, 0.99007225036621};
	return 20 * log10(response(b1, a1, hz / 48000) * response(b2, a2, hz / 48000));
}

static double filter_db(uint32_t rate_hz, double hz)
{
	struct kweight_filter f;
	kweight_filter_init(&f, rate_hz);
	return 20 * log10(response(f.shelf_b, f.shelf_a, hz / rate_hz) * response(f.pass_b, f.pass_a, hz / rate_hz));
}

/* A stereo tone through the filter: the gain from its energy, after a second to settle. */
static double tone_db(uint32_t rate_hz, double hz, unsigned channels)
{
	static float x[3 * 192000];
	struct kweight k = {0};
	double energy[3] = {0};
	if (kweight_init(&k, rate_hz, channels))
		return NAN;
	for (int second = 0; second < 2; second++) {
		for (size_t i = 0; i < rate_hz; i++)
			for (unsigned c = 0; c < channels; c++)
				x[i * channels + c] = c == channels - 1 ? (float)sin(2 * M_PI * hz * (double)i / rate_hz) : 0.0f;
		memset(energy, 0, sizeof(energy));
		kweight_run(&k, energy, x, rate_hz);
	}
	kweight_release(&k);
	return channels > 1 && energy[0] != 0 ? NAN : 10 * log10(energy[channels - 1] / (rate_hz / 2.0));
}

static void check_values(void)
{
	struct kweight_filter f;
	kweight_filter_init(&f, 48000);
	kern_ok(fabs(f.shelf_b[0] - 1.53512485958697) < 1e-13 && fabs(f.shelf_b[1] + 2.69169618940638) < 1e-13 &&
			fabs(f.shelf_b[2] - 1.19839281085285) < 1e-13 && fabs(f.shelf_a[0] + 1.69065929318241) < 1e-13 &&
			fabs(f.shelf_a[1] - 0.73248077421585) < 1e-13 && fabs(f.pass_a[0] + 1.99004745483398) < 1e-13 &&
			fabs(f.pass_a[1] - 0.99007225036621) < 1e-13,
		"kweight: the table's coefficients come back at 48 kHz");
	static const double at_hz[] = {20, 38, 100, 997, 2000, 5000, 15000};
	for (size_t i = 0; i < ARRAY_LEN(at_hz); i++)
		kern_near(tone_db(48000, at_hz[i], 2), table_db(at_hz[i]), 1e-4, "kweight: gain at %.0f Hz", at_hz[i]);
	/* The standard: 997 Hz at 0 dBFS reads -3.01 LKFS, so the filters give back the 0.691 dB of the formula. */
	kern_near(tone_db(48000, 997, 1), 0.691, 0.005, "kweight: 997 Hz is +0.691 dB");
	static const uint32_t rates[] = {22050, 32000, 44100, 88200, 96000, 192000};
	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		double worst = 0;
		for (size_t k = 0; k < 5; k++)
			worst = fmax(worst, fabs(filter_db(rates[i], at_hz[k]) - table_db(at_hz[k])));
		/* The bilinear transform bends frequencies below a tenth of the rate by little. */
		kern_near(worst, 0, 0.12, "kweight: the same curve up to 2 kHz at %u Hz", rates[i]);
	}
	kern_near(tone_db(44100, 997, 3), filter_db(44100, 997), 1e-4, "kweight: third of three channels at 44100 Hz");
}

static void check_equal(unsigned channels)
{
	static float x[KERN_MAX_CHANNELS * 600];
	struct kweight_filter f;
	struct kweight_channel s[KERN_MAX_CHANNELS + 1] = {{0}}, t[KERN_MAX_CHANNELS + 1] = {{0}};
	double a[KERN_MAX_CHANNELS + 1] = {0}, b[KERN_MAX_CHANNELS + 1] = {0};
	size_t total = 0;
	bool ok = true;
	kweight_filter_init(&f, 48000);
	for (size_t n = 0; n <= KERN_MAX_LEN; n += 1 + n / 8) {
		kern_fill_finite(x, n * channels);
		kern_c.kweight(&f, s, a, x, channels, n);
		kern_fast.kweight(&f, t, b, x, channels, n);
		total += n;
		/*
		 * About 10 roundings a sample, each living on in the high pass: 1 / (1 + a1 + a2) is the sum of its
		 * feedback's response.  Samples within ±1.2 come out within ±5, so z² moves by 10 times the error of z.
		 */
		double bound = (double)total * 10 * (10 * 0x1p-53 * 5 / (1 + f.pass_a[0] + f.pass_a[1]));
		for (unsigned c = 0; c <= channels; c++)
			ok &= fabs(a[c] - b[c]) <= bound;
		ok &= a[channels] == 0 && b[channels] == 0;
	}
	kern_ok(ok && a[0] > 0, "kweight: %u channels as c", channels);
}

static void check_silence(void)
{
	static float x[2 * 4800];
	struct kweight k = {0};
	double energy[2] = {0};
	if (kweight_init(&k, 48000, 2)) {
		kern_ok(false, "kweight: init");
		return;
	}
	kern_fill_finite(x, ARRAY_LEN(x));
	kweight_run(&k, energy, x, 4800);
	memset(x, 0, sizeof(x));
	for (int i = 0; i < 200; i++)
		kweight_run(&k, energy, x, 4800);
	static const struct kweight_channel zero;
	kern_ok(!memcmp(&k.state[0], &zero, sizeof(zero)) && !memcmp(&k.state[1], &zero, sizeof(zero)),
		"kweight: in silence the state becomes 0 and never lingers in the denormals");
	x[100] = NAN;
	kweight_run(&k, energy, x, 4800);
	x[100] = 0;
	energy[0] = energy[1] = 0;
	kweight_run(&k, energy, x, 4800);
	kern_ok(energy[0] == 0 && energy[1] == 0, "kweight: NaN does not outlive its block");
	kweight_release(&k);
	kweight_release(&k);
	kern_ok(kweight_init(&k, 3999, 2) == ERR_ARG, "kweight: a rate under 4 kHz is refused");
	kweight_release(&k);
	kern_ok(kweight_init(&k, 48000, 0) == ERR_ARG, "kweight: no channels are refused");
	kweight_release(&k);
}

static float bench_in[6 * 1024];
static struct kweight_filter bench_filter;
static unsigned bench_channels;

static void call(void *arg)
{
	static struct kweight_channel state[6];
	static double energy[6];
	((struct dsp *)arg)->kweight(&bench_filter, state, energy, bench_in, bench_channels, 1024);
}

void kern_kweight(bool bench)
{
	if (bench) {
		static const unsigned counts[] = {1, 2, 6};
		kern_fill_finite(bench_in, ARRAY_LEN(bench_in));
		kweight_filter_init(&bench_filter, 48000);
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			char name[64];
			bench_channels = counts[i];
			snprintf(name, sizeof(name), "kweight energy, %u x 1024", bench_channels);
			kern_bench(name, call, &kern_c, call, &kern_fast);
		}
		return;
	}
	check_values();
	for (size_t i = 0; i < KERN_N_CHANNELS; i++)
		check_equal(kern_channels[i]);
	check_silence();
}
