#include "kern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOM (KERN_MAX_CHANNELS * KERN_MAX_LEN)

static struct kern_buf in, out_c, out_v;

static void check_flat(void)
{
	static const float gains[] = {0.0f, 1.0f, -1.0f, 0.3f, 1e-30f, 4.0f};
	bool gain_ok = true, add_ok = true, place_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		for (size_t offset = 0; offset < KERN_OFFSETS; offset += sizeof(float)) {
			size_t n_bytes = n * sizeof(float), to = (offset + n * 4) % KERN_OFFSETS;
			float g = gains[n % ARRAY_LEN(gains)];
			float *s = kern_place(&in, n_bytes, offset);
			float *c = kern_place(&out_c, n_bytes, to), *v = kern_place(&out_v, n_bytes, to);
			kern_fill(s, n);
			kern_c.gain(c, s, n, g);
			kern_fast.gain(v, s, n, g);
			gain_ok &= kern_same(c, v, n) && kern_is_clean(&out_v, n_bytes, to);
			kern_fill(c, n);
			memcpy(v, c, n_bytes);
			kern_c.add(c, s, n, g);
			kern_fast.add(v, s, n, g);
			add_ok &= kern_same(c, v, n) && kern_is_clean(&out_v, n_bytes, to);
			memcpy(v, s, n_bytes);
			kern_c.gain(c, s, n, g);
			kern_fast.gain(v, v, n, g);
			place_ok &= kern_same(c, v, n);
		}
	}
	kern_ok(gain_ok, "gain: equal to c");
	kern_ok(add_ok, "gain: add equal to c");
	kern_ok(place_ok, "gain: in place");
}

static void check_ramps(unsigned channels)
{
	bool ramp_ok = true, add_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		size_t n_samples = n * channels, n_bytes = n_samples * sizeof(float), offset = n % 4 * sizeof(float);
		float from = (float)kern_uniform(), to = (float)kern_uniform();
		float *s = kern_place(&in, n_bytes, offset);
		float *c = kern_place(&out_c, n_bytes, offset), *v = kern_place(&out_v, n_bytes, offset);
		kern_fill(s, n_samples);
		kern_c.gain_ramp(c, s, channels, n, from, to);
		kern_fast.gain_ramp(v, s, channels, n, from, to);
		ramp_ok &= kern_same(c, v, n_samples) && kern_is_clean(&out_v, n_bytes, offset);
		kern_fill(c, n_samples);
		memcpy(v, c, n_bytes);
		kern_c.add_ramp(c, s, channels, n, from, to);
		kern_fast.add_ramp(v, s, channels, n, from, to);
		add_ok &= kern_same(c, v, n_samples) && kern_is_clean(&out_v, n_bytes, offset);
	}
	kern_ok(ramp_ok, "gain: ramp over %u channels equal to c", channels);
	kern_ok(add_ok, "gain: add with a ramp over %u channels equal to c", channels);
}

static void check_values(void)
{
	float ones[600], ramp[600];
	for (int i = 0; i < 600; i++)
		ones[i] = 1.0f;
	/* 0 to 1 in 200 frames, then 1 to 0: straight, no jump where the blocks meet, all channels alike. */
	kern_fast.gain_ramp(ramp, ones, 2, 200, 0.0f, 1.0f);
	kern_fast.gain_ramp(ramp + 400, ones, 2, 100, 1.0f, 0.0f);
	double worst = 0;
	for (int f = 0; f < 200; f++)
		worst = fmax(worst, fmax(fabs(ramp[2 * f] - f / 200.0), fabs(ramp[2 * f + 1] - f / 200.0)));
	kern_near(worst, 0, 0x1p-23, "gain: ramp is a straight line that starts at `from`");
	kern_ok(ramp[400] == 1.0f && fabsf(ramp[398] - 0.995f) < 1e-6f && fabsf(ramp[598] - 0.01f) < 1e-6f,
		"gain: ramps of neighbouring blocks meet");
}

#define N_BENCH 2048
static float bench_in[16 * 1024], bench_out[16 * 1024];

static void call_gain(void *arg)
{
	((struct dsp *)arg)->gain(bench_out, bench_in, N_BENCH, 0.5f);
}

static void call_add(void *arg)
{
	((struct dsp *)arg)->add(bench_out, bench_in, N_BENCH, 1e-9f);
}

static void call_ramp(void *arg)
{
	((struct dsp *)arg)->gain_ramp(bench_out, bench_in, 2, N_BENCH / 2, 0.5f, 0.7f);
}

static void call_add_ramp(void *arg)
{
	((struct dsp *)arg)->add_ramp(bench_out, bench_in, 2, N_BENCH / 2, 1e-9f, 1e-8f);
}

void kern_gain(bool bench)
{
	if (bench) {
		kern_fill_finite(bench_in, N_BENCH);
		kern_bench("gain, 2048 samples", call_gain, &kern_c, call_gain, &kern_fast);
		kern_bench("gain add, 2048 samples", call_add, &kern_c, call_add, &kern_fast);
		kern_bench("gain ramp, 2 x 1024", call_ramp, &kern_c, call_ramp, &kern_fast);
		kern_bench("gain add ramp, 2 x 1024", call_add_ramp, &kern_c, call_add_ramp, &kern_fast);
		return;
	}
	kern_buf_open(&in, ROOM * sizeof(float) + 64);
	kern_buf_open(&out_c, ROOM * sizeof(float) + 64);
	kern_buf_open(&out_v, ROOM * sizeof(float) + 64);
	check_flat();
	for (size_t i = 0; i < KERN_N_CHANNELS; i++)
		check_ramps(kern_channels[i]);
	check_values();
}
