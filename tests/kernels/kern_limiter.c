#include "kern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOM (KERN_MAX_CHANNELS * KERN_MAX_LEN)

static struct kern_buf in, out_c, out_v;
static const float curves[][2] = {{0.5f, 1.0f}, {0.89f, 0.891f}, {1.0f, 1.0f}, {0.1f, 2.0f}};

static void check_equal(void)
{
	bool ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		for (size_t offset = 0; offset < KERN_OFFSETS; offset += sizeof(float)) {
			const float *curve = curves[n % ARRAY_LEN(curves)];
			size_t n_bytes = n * sizeof(float);
			float *x = kern_place(&in, n_bytes, offset);
			float *c = kern_place(&out_c, n_bytes, offset), *v = kern_place(&out_v, n_bytes, offset);
			kern_fill(x, n);
			for (size_t i = 0; i < n; i++)
				x[i] = fabsf(x[i]) * 2;
			kern_c.limit_curve(c, x, n, curve[0], curve[1]);
			kern_fast.limit_curve(v, x, n, curve[0], curve[1]);
			ok &= kern_same(c, v, n) && kern_is_clean(&out_v, n_bytes, offset);
			kern_fast.limit_curve(x, x, n, curve[0], curve[1]);
			ok &= kern_same(c, x, n);
		}
	}
	kern_ok(ok, "limiter: curve equal to c, and in place");
}

static void check_levels(unsigned channels)
{
	bool ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		size_t n_bytes = n * sizeof(float), offset = n % 4 * sizeof(float);
		float *x = kern_place(&in, n_bytes * channels, offset);
		float *c = kern_place(&out_c, n_bytes, offset), *v = kern_place(&out_v, n_bytes, offset);
		kern_fill(x, n * channels);
		kern_c.limit_level(c, x, channels, n);
		kern_fast.limit_level(v, x, channels, n);
		ok &= kern_same(c, v, n) && kern_is_clean(&out_v, n_bytes, offset);
	}
	kern_ok(ok, "limiter: level of %u channels equal to c", channels);
}

static void check_values(void)
{
	for (size_t k = 0; k < ARRAY_LEN(curves); k++) {
		float t = curves[k][0], ceiling = curves[k][1];
		bool ok = true;
		float last = 0;
		for (int i = 0; i <= 4000; i++) {
			float level = (float)i / 1000, gain;
			kern_fast.limit_curve(&gain, &level, 1, t, ceiling);
			float out = level * gain;
			ok &= level <= t ? gain == 1.0f : gain <= 1.0f + 0x1p-22f;
			/* Two roundings of a quotient and a product. */
			ok &= out <= ceiling * (1 + 0x1p-22f) || level <= t;
			ok &= out >= last - 0x1p-22f;
			last = out;
		}
		kern_ok(ok, "limiter: curve %g to %g: 1 below, rising, never over the ceiling", t, ceiling);
	}
	/* By hand: t = 0.5, ceiling 1, level 1: u = 1, out = 0.75. */
	float level[] = {1.0f, 0.5f, INFINITY, NAN, 2.0f, 0.0f}, gain[6];
	kern_fast.limit_curve(gain, level, 6, 0.5f, 1.0f);
	kern_ok(gain[0] == 0.75f && gain[1] == 1.0f && gain[2] == 0.0f && gain[3] == 0.0f && gain[4] == 0.4375f && gain[5] == 1.0f,
		"limiter: curve by hand; infinity and NaN are muted");
	kern_fast.limit_curve(gain, level, 6, 1.0f, 1.0f);
	kern_ok(gain[0] == 1.0f && gain[4] == 0.5f && gain[2] == 0.0f, "limiter: hard where the threshold is the ceiling");
}

static float bench_in[2 * 1024], bench_out[1024];

static void call_curve(void *arg)
{
	((struct dsp *)arg)->limit_curve(bench_out, bench_in, 1024, 0.5f, 1.0f);
}

static void call_level(void *arg)
{
	((struct dsp *)arg)->limit_level(bench_out, bench_in, 2, 1024);
}

void kern_limiter(bool bench)
{
	if (bench) {
		kern_fill_finite(bench_in, ARRAY_LEN(bench_in));
		kern_bench("limiter curve, 1024", call_curve, &kern_c, call_curve, &kern_fast);
		kern_bench("limiter level, 2 x 1024", call_level, &kern_c, call_level, &kern_fast);
		return;
	}
	kern_buf_open(&in, ROOM * sizeof(float) + 64);
	kern_buf_open(&out_c, ROOM * sizeof(float) + 64);
	kern_buf_open(&out_v, ROOM * sizeof(float) + 64);
	check_equal();
	for (size_t i = 0; i < KERN_N_CHANNELS; i++)
		check_levels(kern_channels[i]);
	check_values();
}
