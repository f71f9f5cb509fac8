/*
 * A tune on plucked strings, as a 16-bit stereo WAV on stdout: real enough to hear what the tools do to it.
 * The strings are Karplus-Strong: a loop of noise as long as one period, smoothed a little on every turn.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_HZ 44100
#define BEAT_FRAMES 11025
#define N_BEATS 40
#define TAIL_FRAMES 44477 /* an odd length on purpose */
#define N_FRAMES (N_BEATS * BEAT_FRAMES + TAIL_FRAMES)

static void pluck(float *mix, long at_frames, int note, float level, float pan)
{
	double period = RATE_HZ / (440.0 * pow(2.0, (note - 69) / 12.0));
	int n = (int)(period - 0.5);
	/* The loop's own delay is half a frame; an all-pass gives the rest of the period. */
	float tune = (float)(period - 0.5 - n), all_pass = (1 - tune) / (1 + tune);
	float *loop = calloc((size_t)n, sizeof(*loop));
	float last = 0, in = 0, out = 0;
	static uint32_t seed = 1;

	if (!loop)
		exit(1);
	for (int i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		loop[i] = (float)(int32_t)seed / 2147483648.0f;
	}
	for (long i = 0; at_frames + i < N_FRAMES && i < 3 * RATE_HZ; i++) {
		float x = loop[i % n], smooth = 0.4985f * (x + last);

		last = x;
		out = all_pass * (smooth - out) + in;
		in = smooth;
		loop[i % n] = out;
		mix[2 * (at_frames + i)] += level * (1 - pan) * x;
		mix[2 * (at_frames + i) + 1] += level * pan * x;
	}
	free(loop);
}

static void put(uint8_t *at, uint32_t v, int n_bytes)
{
	for (int i = 0; i < n_bytes; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

int main(void)
{
	static const int melody[] = { 69, 72, 76, 81, 79, 76, 72, 74, 76, 77, 74, 71, 67, 71, 74, 72 };
	static const int bass[] = { 45, 43, 41, 40, 45 };
	float *mix = calloc((size_t)N_FRAMES * 2, sizeof(*mix));
	uint8_t *wav = calloc(1, 44 + (size_t)N_FRAMES * 4);

	if (!mix || !wav)
		return 1;
	for (int b = 0; b < N_BEATS; b++) {
		pluck(mix, (long)b * BEAT_FRAMES, melody[b % 16] + (b >= 32 ? 12 : 0), 0.30f, b % 2 ? 0.7f : 0.3f);
		if (b % 8 == 0)
			pluck(mix, (long)b * BEAT_FRAMES, bass[b / 8 % 5], 0.45f, 0.5f);
		if (b % 4 == 2)
			pluck(mix, (long)b * BEAT_FRAMES, melody[(b + 8) % 16] - 12, 0.2f, 0.5f);
	}
	memcpy(wav, "RIFF    WAVEfmt ", 16);
	put(wav + 4, 36 + N_FRAMES * 4, 4);
	put(wav + 16, 16, 4);
	put(wav + 20, 1, 2);
	put(wav + 22, 2, 2);
	put(wav + 24, RATE_HZ, 4);
	put(wav + 28, RATE_HZ * 4, 4);
	put(wav + 32, 4, 2);
	put(wav + 34, 16, 2);
	memcpy(wav + 36, "data", 4);
	put(wav + 40, N_FRAMES * 4, 4);
	for (long i = 0; i < (long)N_FRAMES * 2; i++) {
		float x = mix[i] < -1 ? -1 : mix[i] > 1 ? 1 : mix[i];

		put(wav + 44 + 2 * i, (uint32_t)lrintf(x * 32767), 2);
	}
	return fwrite(wav, 44 + (size_t)N_FRAMES * 4, 1, stdout) != 1 || fflush(stdout) != 0;
}
