#include "kern.h"

#include <stdio.h>
#include <string.h>

#define ROOM (KERN_MAX_CHANNELS * KERN_MAX_LEN)

static float frames_c[ROOM], planes_c[KERN_MAX_CHANNELS][KERN_MAX_LEN + 8], planes_v[KERN_MAX_CHANNELS][KERN_MAX_LEN + 8];

static void check_channels(unsigned channels)
{
	static struct kern_buf frames;
	static const uint32_t guard = 0xdeadbeef;
	if (!frames.base)
		kern_buf_open(&frames, ROOM * sizeof(float) + 64);
	bool join_ok = true, split_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		size_t n_bytes = n * channels * sizeof(float), offset = n % 4 * sizeof(float);
		const float *in[KERN_MAX_CHANNELS];
		float *out_c[KERN_MAX_CHANNELS], *out_v[KERN_MAX_CHANNELS];
		for (unsigned c = 0; c < channels; c++) {
			/* Any bit pattern must come through, signalling NaN too. */
			for (size_t i = 0; i < n; i++) {
				uint32_t bits = (uint32_t)kern_rand();
				memcpy(&planes_c[c][i], &bits, sizeof(bits));
			}
			in[c] = planes_c[c];
			out_c[c] = planes_c[c];
			out_v[c] = planes_v[c];
			memcpy(&planes_c[c][n], &guard, sizeof(guard));
			memcpy(&planes_v[c][n], &guard, sizeof(guard));
		}
		float *x = kern_place(&frames, n_bytes, offset);
		kern_c.join(frames_c, in, channels, n);
		kern_fast.join(x, in, channels, n);
		join_ok &= !memcmp(x, frames_c, n_bytes) && kern_is_clean(&frames, n_bytes, offset);
		for (size_t i = 0; i < n; i++)
			join_ok &= !memcmp(&frames_c[i * channels + channels - 1], &planes_c[channels - 1][i], sizeof(float));

		kern_fast.split(out_v, x, channels, n);
		for (unsigned c = 0; c < channels; c++)
			split_ok &= !memcmp(planes_v[c], planes_c[c], (n + 1) * sizeof(float));
		kern_c.split(out_c, x, channels, n);
		for (unsigned c = 0; c < channels; c++)
			split_ok &= !memcmp(planes_v[c], planes_c[c], (n + 1) * sizeof(float));
	}
	kern_ok(join_ok, "interleave: join %u channels, equal to c and in place", channels);
	kern_ok(split_ok, "interleave: split %u channels undoes it", channels);
}

static unsigned bench_channels;

static void call_join(void *arg)
{
	const float *in[KERN_MAX_CHANNELS];
	for (unsigned c = 0; c < bench_channels; c++)
		in[c] = planes_c[c];
	(*(interleave_join_fn **)arg)(frames_c, in, bench_channels, 256);
}

static void call_split(void *arg)
{
	float *out[KERN_MAX_CHANNELS];
	for (unsigned c = 0; c < bench_channels; c++)
		out[c] = planes_c[c];
	(*(interleave_split_fn **)arg)(out, frames_c, bench_channels, 256);
}

void kern_interleave(bool bench)
{
	for (size_t i = 0; i < KERN_N_CHANNELS; i++) {
		if (!bench) {
			check_channels(kern_channels[i]);
			continue;
		}
		char name[64];
		bench_channels = kern_channels[i];
		snprintf(name, sizeof(name), "interleave join, %u x 256", bench_channels);
		kern_bench(name, call_join, &kern_c.join, call_join, &kern_fast.join);
		snprintf(name, sizeof(name), "interleave split, %u x 256", bench_channels);
		kern_bench(name, call_split, &kern_c.split, call_split, &kern_fast.split);
	}
}
