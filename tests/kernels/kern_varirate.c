#include "kern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float table[(VARIRATE_PHASES + 1) * VARIRATE_TAPS];

static void check_rows(void)
{
	static struct kern_buf out_c, out_v;
	static uint64_t place[KERN_MAX_LEN];
	const size_t room = KERN_MAX_LEN * VARIRATE_TAPS * sizeof(float) + 64;
	kern_buf_open(&out_c, room);
	kern_buf_open(&out_v, room);
	bool ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n += n < 20 ? 1 : 13) {
		size_t offset = n % 4 * sizeof(float), n_bytes = n * VARIRATE_TAPS * sizeof(float);
		for (size_t i = 0; i < n; i++)
			place[i] = i % 3 ? kern_rand() >> 16 : i % 2 ? VARIRATE_ONE - 1 : 0;
		float *c = kern_place(&out_c, n_bytes, offset), *v = kern_place(&out_v, n_bytes, offset);
		kern_c.varirate_rows(c, table, place, n);
		kern_fast.varirate_rows(v, table, place, n);
		ok &= !memcmp(c, v, n_bytes) && kern_is_clean(&out_c, n_bytes, offset) && kern_is_clean(&out_v, n_bytes, offset);
	}
	kern_ok(ok, "varirate: rows as c");
}

static void check_sums(void)
{
	static struct kern_buf in, rows, out_c, out_v;
	static uint16_t at[KERN_MAX_LEN];
	const size_t longest = (KERN_MAX_LEN + 2 * VARIRATE_TAPS) * sizeof(float) + 64;
	kern_buf_open(&in, longest);
	kern_buf_open(&rows, KERN_MAX_LEN * VARIRATE_TAPS * sizeof(float) + 64);
	kern_buf_open(&out_c, longest);
	kern_buf_open(&out_v, longest);
	bool ok = true;
	for (size_t n = 1; n <= KERN_MAX_LEN; n += n < 20 ? 1 : 13) {
		size_t offset = n % 4 * sizeof(float), n_bytes = n * sizeof(float), last = 0;
		for (size_t i = 0; i < n; i++) {
			at[i] = (uint16_t)last;
			last += i + 1 < n ? kern_rand() % 3 % 2 : 0;
		}
		size_t n_in = last + VARIRATE_TAPS;
		float *x = kern_place(&in, n_in * sizeof(float), offset);
		float *r = kern_place(&rows, n * VARIRATE_TAPS * sizeof(float), offset);
		kern_fill(x, n_in);
		kern_fill_finite(r, n * VARIRATE_TAPS);
		float *c = kern_place(&out_c, n_bytes, offset), *v = kern_place(&out_v, n_bytes, offset);
		kern_c.varirate_sum(c, x, r, at, n);
		kern_fast.varirate_sum(v, x, r, at, n);
		ok &= kern_same(c, v, n) && kern_is_clean(&out_c, n_bytes, offset) && kern_is_clean(&out_v, n_bytes, offset);
	}
	kern_ok(ok, "varirate: sums as c, whatever the samples");
}

/* Rows against the window and the sinc written down once more, in another way: the filter's own response. */
static void check_table(void)
{
	bool whole = true, sums = true;
	for (unsigned k = 0; k < VARIRATE_TAPS; k++) {
		whole &= table[k] == (k == VARIRATE_TAPS - 1 - VARIRATE_AHEAD_FRAMES);
		whole &= table[VARIRATE_PHASES * VARIRATE_TAPS + k] == (k == VARIRATE_TAPS - VARIRATE_AHEAD_FRAMES);
	}
	for (unsigned p = 0; p <= VARIRATE_PHASES; p++) {
		double sum = 0;
		for (unsigned k = 0; k < VARIRATE_TAPS; k++)
			sum += table[p * VARIRATE_TAPS + k];
		sums &= fabs(sum - 1.0) < 1e-6;
	}
	kern_ok(whole, "varirate: at a whole place one tap is 1 and the others are 0");
	kern_ok(sums, "varirate: a constant stays itself at every place");
	/* |H| of the whole interpolator over its 24 576 taps, at 20, 21 and 28 kHz for 48 kHz in. */
	double gain_db[4];
	const double at_hz[] = {1000, 20000, 21000, 28000};
	for (int f = 0; f < 4; f++) {
		double re = 0, im = 0;
		for (unsigned p = 0; p < VARIRATE_PHASES; p++) {
			for (unsigned k = 0; k < VARIRATE_TAPS; k++) {
				double t = (double)k - (double)p / VARIRATE_PHASES, w = 2 * M_PI * at_hz[f] / 48000.0;
				re += table[p * VARIRATE_TAPS + k] * cos(w * t);
				im += table[p * VARIRATE_TAPS + k] * sin(w * t);
			}
		}
		gain_db[f] = 20 * log10(hypot(re, im) / VARIRATE_PHASES);
	}
	kern_near(gain_db[0], 0, 1e-3, "varirate: 1 kHz of 48 keeps its level");
	kern_near(gain_db[1], 0, 0.01, "varirate: 20 kHz of 48 keeps its level");
	kern_near(gain_db[2], 0, 0.1, "varirate: 21 kHz of 48 within 0.1 dB");
	kern_ok(gain_db[3] < -100, "varirate: the image of 20 kHz at 28 is below -100 dB (%.1f)", gain_db[3]);
}

static void check_exact(unsigned channels)
{
	const size_t n_frames = 1000;
	float *x = calloc(n_frames * channels, sizeof(*x)), *y = calloc(n_frames * channels, sizeof(*y));
	struct varirate v = {0};
	bool ok = x && y && !varirate_init(&v, channels);
	size_t in = 0, out = 0;
	for (size_t i = 0; ok && i < n_frames * channels; i++)
		x[i] = kern_nasty();
	while (ok && in < n_frames) {
		size_t n_in = 1 + kern_rand() % 150, n_out = 1 + kern_rand() % 150, used;
		n_in = n_in < n_frames - in ? n_in : n_frames - in;
		n_out = n_out < n_frames - out ? n_out : n_frames - out;
		size_t wanted = varirate_need(&v, n_out);
		size_t made = varirate_run(&v, y + out * channels, n_out, x + in * channels, n_in, &used);
		ok &= varirate_is_exact(&v) && used <= n_in && (made == n_out ? used == wanted : used == n_in && n_in < wanted);
		in += used;
		out += made;
	}
	ok &= out == n_frames - VARIRATE_AHEAD_FRAMES && varirate_behind_frames(&v) == VARIRATE_AHEAD_FRAMES;
	while (ok && out < n_frames) {
		size_t made = varirate_flush(&v, y + out * channels, 1 + kern_rand() % 10);
		ok &= made > 0;
		out += made;
	}
	ok &= !varirate_flush(&v, y, 10);
	ok &= x && y && !memcmp(x, y, n_frames * channels * sizeof(*x));
	kern_ok(ok, "varirate: %u channels at a step of 1 are the input, bit for bit", channels);
	varirate_release(&v);
	varirate_release(&v);
	free(x);
	free(y);
}

#define RATE_HZ 48000.0
#define SECONDS 4
#define N_TONE (SECONDS * 48000)
#define BLOCK 64

/*
 * A tone through steps that change with each block, against the tone at the place where each frame lies by its
 * definition: the sum of the steps.  Returns: the ratio of the tone, at the level it has come out with (within 0.001 dB of
 * what it was, or 0), to everything else, in dB.
 */
static double tone_snr_db(double tone_hz, double amplitude_ppm, double period_s, double *worst_place)
{
	static float x[N_TONE + 4800], y[BLOCK];
	struct varirate v = {0};
	if (varirate_init(&v, 1))
		return NAN;
	double w = 2 * M_PI * tone_hz / RATE_HZ, place = 0, ppm = 0, wanted = 0, both = 0, got = 0;
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		x[i] = (float)(0.7 * sin(w * (double)i));
	size_t in = 0;
	*worst_place = 0;
	for (size_t out = 0; out + BLOCK <= N_TONE; out += BLOCK) {
		double next_ppm = amplitude_ppm * sin(2 * M_PI * ((double)out / RATE_HZ) / period_s);
		size_t used;
		varirate_set_ppm(&v, next_ppm);
		if (varirate_run(&v, y, BLOCK, x + in, ARRAY_LEN(x) - in, &used) != BLOCK)
			return NAN;
		in += used;
		for (int i = 0; i < BLOCK; i++) {
			double want = 0.7 * sin(w * place);
			place += 1 + (ppm + (next_ppm - ppm) * (i + 1) / BLOCK) * 1e-6;
			if (out < 4800)
				continue;
			wanted += want * want;
			both += want * y[i];
			got += (double)y[i] * y[i];
		}
		*worst_place = fmax(*worst_place, fabs((double)in - varirate_behind_frames(&v) - place));
		ppm = next_ppm;
	}
	varirate_release(&v);
	double level = both / wanted;
	return fabs(20 * log10(level)) < 1e-3 ? 10 * log10(level * both / (got - level * both)) : 0.0;
}

static void check_quality(void)
{
	static const struct {
		double tone_hz, ppm, least_db;
	} cases[] = {
		{1000, 500, 120}, {10000, 500, 110}, {18000, 500, 100}, {20000, 500, 95},
		{1000, 50, 120}, {10000, 50, 110}, {18000, 50, 100}, {10000, 10000, 110},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double place, snr_db = tone_snr_db(cases[i].tone_hz, cases[i].ppm, 2.0, &place);
		kern_ok(snr_db >= cases[i].least_db && place < 1e-6, "varirate: %g Hz, ±%g ppm in 2 s: %.1f dB to all else, at least %g",
			cases[i].tone_hz, cases[i].ppm, snr_db, cases[i].least_db);
	}
}

static void check_bounds(void)
{
	struct varirate v = {0};
	kern_ok(varirate_init(&v, 0) == ERR_ARG, "varirate: no channels are refused");
	varirate_release(&v);
	kern_ok(varirate_init(&v, VARIRATE_MAX_CHANNELS + 1) == ERR_ARG, "varirate: too many channels are refused");
	varirate_release(&v);
	if (!kern_ok(varirate_init(&v, 2) == ERR_OK, "varirate: two channels"))
		return;
	static float x[2 * 20000], y[2 * 10000];
	size_t used;
	const double asked[] = {1e9, -1e9, NAN, 123.456};
	const double held[] = {10000, -10000, 0, 123.456};
	bool ok = true, enough = true;
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		varirate_set_ppm(&v, asked[i]);
		size_t need = varirate_need(&v, 10000);
		ok &= varirate_run(&v, y, 10000, x, need, &used) == 10000;
		enough &= used <= need && need - used <= 210;
		ok &= fabs(varirate_ppm(&v) - held[i]) < 1e-6;
	}
	kern_ok(ok, "varirate: steps are held within 1 %%, and none that is no number is taken");
	kern_ok(enough, "varirate: what is said to be needed is enough");
	/* Frames made over a long run at a constant step: the definition, to the frame. */
	varirate_reset(&v);
	size_t in = 0, out = 0;
	for (int i = 0; i < 2000; i++) {
		out += varirate_run(&v, y, 77, x, 1000, &used);
		in += used;
	}
	double want_in = 1.000123456 * (double)(out - 1) + VARIRATE_AHEAD_FRAMES + 1;
	kern_near((double)in, want_in, 1.001, "varirate: %zu frames at +123.456 ppm", out);
	varirate_release(&v);
}

static struct varirate bench_v;
static float bench_in[32 * 200], bench_out[32 * BLOCK];

static void call_whole(void *arg)
{
	(void)arg;
	static double ppm;
	size_t used;
	ppm = ppm > 400 ? -400 : ppm + 1;
	varirate_set_ppm(&bench_v, ppm);
	varirate_run(&bench_v, bench_out, BLOCK, bench_in, 200, &used);
}

static void bench_channels(unsigned channels)
{
	char name[64];
	struct varirate c, fast;
	kern_fill_finite(bench_in, ARRAY_LEN(bench_in));
	if (varirate_init(&fast, channels))
		return;
	c = fast;
	c.rows_fn = varirate_c_rows;
	c.sum_fn = varirate_c_sum;
	bench_v = c;
	double c_ns = kern_time_ns(call_whole, NULL);
	bench_v = fast;
	double fast_ns = kern_time_ns(call_whole, NULL);
	snprintf(name, sizeof(name), "varirate, %u x %d, step in motion", channels, BLOCK);
	printf("# %-44s c %10.1f ns  fast %10.1f ns  %6.1fx  %.3f %% of a core a channel at 48 kHz\n", name, c_ns, fast_ns,
		c_ns / fast_ns, fast_ns / channels / (BLOCK / RATE_HZ * 1e9) * 100);
	varirate_release(&bench_v);
}

void kern_varirate(bool bench)
{
	if (bench) {
		bench_channels(1);
		bench_channels(2);
		bench_channels(32);
		return;
	}
	varirate_table_init(table);
	check_rows();
	check_sums();
	check_table();
	check_exact(1);
	check_exact(2);
	check_exact(5);
	check_exact(33);
	check_quality();
	check_bounds();
}
