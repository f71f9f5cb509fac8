#include "kern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOM (KERN_MAX_CHANNELS * KERN_MAX_LEN)

static struct kern_buf in, out_c, out_v;

static void fill_coef(float *coef, size_t n)
{
	for (size_t i = 0; i < n; i++)
		coef[i] = kern_rand() & 3 ? (float)kern_uniform() : 0.0f;
}

static void check_shape(unsigned in_channels, unsigned out_channels)
{
	static float a[KERN_MAX_CHANNELS * KERN_MAX_CHANNELS], b[KERN_MAX_CHANNELS * KERN_MAX_CHANNELS];
	bool set_ok = true, add_ok = true, ramp_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n += n < 80 ? 1 : 7) {
		size_t n_samples = n * out_channels, n_bytes = n_samples * sizeof(float), offset = n % 4 * sizeof(float);
		fill_coef(a, (size_t)in_channels * out_channels);
		fill_coef(b, (size_t)in_channels * out_channels);
		float *s = kern_place(&in, n * in_channels * sizeof(float), offset);
		float *c = kern_place(&out_c, n_bytes, offset), *v = kern_place(&out_v, n_bytes, offset);
		kern_fill(s, n * in_channels);
		kern_c.matrix_set(c, out_channels, s, in_channels, a, n);
		kern_fast.matrix_set(v, out_channels, s, in_channels, a, n);
		set_ok &= kern_same(c, v, n_samples) && kern_is_clean(&out_v, n_bytes, offset);
		kern_fill(c, n_samples);
		memcpy(v, c, n_bytes);
		kern_c.matrix_add(c, out_channels, s, in_channels, a, n);
		kern_fast.matrix_add(v, out_channels, s, in_channels, a, n);
		add_ok &= kern_same(c, v, n_samples) && kern_is_clean(&out_v, n_bytes, offset);
		kern_c.matrix_add_ramp(c, out_channels, s, in_channels, a, b, n);
		kern_fast.matrix_add_ramp(v, out_channels, s, in_channels, a, b, n);
		ramp_ok &= kern_same(c, v, n_samples) && kern_is_clean(&out_v, n_bytes, offset);
	}
	kern_ok(set_ok, "matrix: %u to %u equal to c", in_channels, out_channels);
	kern_ok(add_ok, "matrix: %u to %u added equal to c", in_channels, out_channels);
	kern_ok(ramp_ok, "matrix: %u to %u added with a ramp equal to c", in_channels, out_channels);
}

static void check_values(void)
{
	/* ITU-R BS.775: FL FR FC LFE SL SR to stereo. */
	static const float down[] = {1, 0, 0.5f, 0, 0.25f, 0, 0, 1, 0.5f, 0, 0, 0.25f};
	static const float frame[] = {0.5f, 0.25f, 1.0f, NAN, 0.125f, -0.5f};
	float src[6 * 100], dst[2 * 100], acc[2 * 100];
	bool ok = true, ramp_ok = true;
	for (int f = 0; f < 100; f++) {
		memcpy(src + 6 * f, frame, sizeof(frame));
		acc[2 * f] = 1.0f;
		acc[2 * f + 1] = -1.0f;
	}
	kern_fast.matrix_set(dst, 2, src, 6, down, 100);
	kern_fast.matrix_add(acc, 2, src, 6, down, 100);
	for (int f = 0; f < 100; f++)
		ok &= dst[2 * f] == 1.03125f && dst[2 * f + 1] == 0.625f && acc[2 * f] == 2.03125f && acc[2 * f + 1] == -0.375f;
	kern_ok(ok, "matrix: 5.1 to stereo by hand; NaN on what is not connected stays out");

	/* A pan from left to right in 64 frames: 1 is split between the two, always whole. */
	static const float left[] = {1, 0}, right[] = {0, 1};
	float one[64], pan[128] = {0};
	for (int f = 0; f < 64; f++)
		one[f] = 1.0f;
	kern_fast.matrix_add_ramp(pan, 2, one, 1, left, right, 64);
	for (int f = 0; f < 64; f++)
		ramp_ok &= pan[2 * f] == 1.0f - (float)f / 64 && pan[2 * f + 1] == (float)f / 64;
	kern_ok(ramp_ok, "matrix: a ramp from left to right by hand");
}

static float bench_in[8 * 1024], bench_out[8 * 1024], bench_coef[64];
static unsigned bench_from, bench_to;

static void call_add(void *arg)
{
	((struct dsp *)arg)->matrix_add(bench_out, bench_to, bench_in, bench_from, bench_coef, 1024);
}

void kern_matrix(bool bench)
{
	if (bench) {
		static const unsigned shapes[][2] = {{1, 2}, {2, 2}, {6, 2}, {8, 8}};
		for (int i = 0; i < 64; i++)
			bench_coef[i] = 1e-6f;
		kern_fill_finite(bench_in, ARRAY_LEN(bench_in));
		for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
			char name[64];
			bench_from = shapes[i][0];
			bench_to = shapes[i][1];
			snprintf(name, sizeof(name), "matrix add, %u to %u x 1024", bench_from, bench_to);
			kern_bench(name, call_add, &kern_c, call_add, &kern_fast);
		}
		return;
	}
	kern_buf_open(&in, ROOM * sizeof(float) + 64);
	kern_buf_open(&out_c, ROOM * sizeof(float) + 64);
	kern_buf_open(&out_v, ROOM * sizeof(float) + 64);
	static const unsigned shapes[][2] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 2}, {6, 2}, {2, 6}, {8, 8}, {16, 5}, {5, 33}, {33, 2}};
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		check_shape(shapes[i][0], shapes[i][1]);
	check_values();
}
