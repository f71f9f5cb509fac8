#include "kern.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOM (KERN_MAX_CHANNELS * KERN_MAX_LEN)

static struct kern_buf in, out;

/* n terms in double, in two orders: they differ by at most n roundings of a sum no larger than `magnitudes`. */
static bool near_sum(double a, double b, size_t n, double magnitudes)
{
	return fabs(a - b) <= (double)n * 0x1p-53 * magnitudes * 2 || (isnan(a) && isnan(b)) || a == b;
}

static void check_planes(void)
{
	bool peak_ok = true, squares_ok = true, clean_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		for (size_t offset = 0; offset < KERN_OFFSETS; offset += sizeof(float)) {
			size_t n_bytes = n * sizeof(float);
			float *x = kern_place(&in, n_bytes, offset), *y = kern_place(&out, n_bytes, offset);
			kern_fill(x, n);
			float a = kern_c.peak(x, n), b = kern_fast.peak(x, n);
			peak_ok &= kern_same(&a, &b, 1);
			double c = kern_c.squares(x, n), d = kern_fast.squares(x, n);
			squares_ok &= near_sum(c, d, n, c);

			float want[KERN_MAX_LEN + 1];
			size_t odd = 0;
			for (size_t i = 0; i < n; i++) {
				want[i] = isfinite(x[i]) ? x[i] : 0.0f;
				odd += !isfinite(x[i]);
			}
			clean_ok &= kern_fast.clean(y, x, n) == odd && kern_same(y, want, n) && kern_is_clean(&out, n_bytes, offset);
			clean_ok &= kern_c.clean(x, x, n) == odd && kern_same(x, want, n);
			c = kern_c.squares(x, n);
			squares_ok &= near_sum(c, kern_fast.squares(x, n), n, c);
		}
	}
	kern_ok(peak_ok, "levels: peak equal to c");
	kern_ok(squares_ok, "levels: sum of squares as c within n * 2^-52");
	kern_ok(clean_ok, "levels: clean takes out NaN and infinity, and counts them");
}

static void check_frames(unsigned channels)
{
	bool peaks_ok = true, add_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		size_t offset = n % 4 * sizeof(float), n_samples = n * channels;
		float *x = kern_place(&in, n_samples * sizeof(float), offset);
		float a[KERN_MAX_CHANNELS + 1], b[KERN_MAX_CHANNELS + 1];
		struct levels c[KERN_MAX_CHANNELS + 1], d[KERN_MAX_CHANNELS + 1];
		for (unsigned k = 0; k <= channels; k++) {
			a[k] = b[k] = k % 3 ? 0.0f : 0.7f;
			c[k] = d[k] = (struct levels){a[k], k, -(double)k};
		}
		for (int pass = 0; pass < 2; pass++) {
			(pass ? kern_fill_finite : kern_fill)(x, n_samples);
			kern_c.peaks(a, x, channels, n);
			kern_fast.peaks(b, x, channels, n);
			peaks_ok &= kern_same(a, b, channels + 1);
			if (pass == 0) /* sums of NaN stay NaN: each pass begins anew */
				memcpy(d, c, sizeof(c));
			struct levels before[KERN_MAX_CHANNELS + 1];
			memcpy(before, c, sizeof(c));
			kern_c.levels(c, x, channels, n);
			kern_fast.levels(d, x, channels, n);
			for (unsigned k = 0; k <= channels; k++) {
				double size = 2.0 * (double)channels;
				for (size_t f = 0; f < n && k < channels; f++)
					size += fabs(x[f * channels + k]) + (double)x[f * channels + k] * x[f * channels + k];
				add_ok &= kern_same(&c[k].peak, &d[k].peak, 1);
				add_ok &= near_sum(c[k].squares, d[k].squares, n + 2, size) && near_sum(c[k].sum, d[k].sum, n + 2, size);
			}
			memcpy(c, before, sizeof(c));
			memcpy(d, before, sizeof(c));
		}
	}
	kern_ok(peaks_ok, "levels: peaks of %u channels equal to c", channels);
	kern_ok(add_ok, "levels: peak, squares and sum of %u channels as c within n * 2^-52", channels);
}

static void check_values(void)
{
	static float x[KERN_MAX_LEN];
	bool ok = true;
	/* A spike is found wherever it stands, NaN beside it or not. */
	for (size_t n = 1; n <= KERN_MAX_LEN; n++) {
		for (size_t at = 0; at < n; at++) {
			memset(x, 0, sizeof(x));
			x[at] = at & 1 ? -0.75f : 0.75f;
			if (n > 1)
				x[(at + 1) % n] = NAN;
			ok &= kern_fast.peak(x, n) == 0.75f;
		}
	}
	kern_ok(ok, "levels: a peak is found at every place, and NaN is not seen");
	static const float few[] = {NAN, -INFINITY, 3.0f};
	kern_ok(kern_fast.peak(few, 3) == INFINITY && kern_fast.peak(few, 1) == 0.0f && kern_fast.peak(few, 0) == 0.0f,
		"levels: peak of infinity, of NaN alone, of nothing");

	static float wave[2 * 4800];
	for (int i = 0; i < 4800; i++) {
		wave[2 * i] = (float)(0.5 * sin(2 * M_PI * i / 48.0));
		wave[2 * i + 1] = (float)(0.25 + 0.5 * sin(2 * M_PI * i / 48.0));
	}
	struct levels l[2] = {{0}};
	kern_fast.levels(l, wave, 2, 4800);
	kern_near(l[0].squares / 4800, 0.125, 1e-7, "levels: mean square of a sine of 0.5");
	kern_near(l[1].sum / 4800, 0.25, 1e-7, "levels: DC of 0.25");
	kern_near(kern_fast.cross(wave, 4800) / 4800, 0.125, 1e-7, "levels: product of two sines");
	kern_near(kern_c.cross(wave, 4800), kern_fast.cross(wave, 4800), 4800 * 0x1p-53 * 4800 * 0.375,
		"levels: product as c within n * 2^-53");
	bool cross_ok = true;
	for (size_t n = 0; n <= KERN_MAX_LEN; n++) {
		float *y = kern_place(&in, 2 * n * sizeof(float), n % 4 * sizeof(float));
		kern_fill_finite(y, 2 * n);
		cross_ok &= near_sum(kern_c.cross(y, n), kern_fast.cross(y, n), n, (double)n * 1.44);
	}
	kern_ok(cross_ok, "levels: product at every length");
}

#define TICK_CHANNELS 16
#define TICK_FRAMES 1024
static float tick[TICK_CHANNELS * TICK_FRAMES];
static float tick_peaks[TICK_CHANNELS];
static struct levels tick_levels[TICK_CHANNELS];
static unsigned bench_channels;

static void call_peak_planes(void *arg)
{
	for (size_t c = 0; c < TICK_CHANNELS; c++)
		tick_peaks[c] = ((struct dsp *)arg)->peak(tick + c * TICK_FRAMES, TICK_FRAMES);
}

static void call_peaks(void *arg)
{
	memset(tick_peaks, 0, sizeof(tick_peaks));
	((struct dsp *)arg)->peaks(tick_peaks, tick, bench_channels, TICK_FRAMES);
}

static void call_levels(void *arg)
{
	memset(tick_levels, 0, sizeof(tick_levels));
	((struct dsp *)arg)->levels(tick_levels, tick, bench_channels, TICK_FRAMES);
}

static void call_squares(void *arg)
{
	tick_levels[0].squares = ((struct dsp *)arg)->squares(tick, TICK_FRAMES);
}

static void call_cross(void *arg)
{
	tick_levels[0].squares = ((struct dsp *)arg)->cross(tick, TICK_FRAMES);
}

static void call_clean(void *arg)
{
	((struct dsp *)arg)->clean(tick, tick, TICK_FRAMES);
}

void kern_levels(bool bench)
{
	if (bench) {
		kern_fill_finite(tick, ARRAY_LEN(tick));
		kern_bench("levels peak tick, 16 planes x 1024", call_peak_planes, &kern_c, call_peak_planes, &kern_fast);
		static const unsigned counts[] = {1, 2, 6, 8, 16};
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			char name[64];
			bench_channels = counts[i];
			snprintf(name, sizeof(name), "levels peaks, %u x 1024 frames", bench_channels);
			kern_bench(name, call_peaks, &kern_c, call_peaks, &kern_fast);
			snprintf(name, sizeof(name), "levels peak+squares+sum, %u x 1024 frames", bench_channels);
			kern_bench(name, call_levels, &kern_c, call_levels, &kern_fast);
		}
		kern_bench("levels squares, 1024", call_squares, &kern_c, call_squares, &kern_fast);
		kern_bench("levels cross, 2 x 1024", call_cross, &kern_c, call_cross, &kern_fast);
		kern_bench("levels clean, 1024", call_clean, &kern_c, call_clean, &kern_fast);
		return;
	}
	kern_buf_open(&in, ROOM * sizeof(float) + 64);
	kern_buf_open(&out, ROOM * sizeof(float) + 64);
	check_planes();
	for (size_t i = 0; i < KERN_N_CHANNELS; i++)
		check_frames(kern_channels[i]);
	check_values();
}
