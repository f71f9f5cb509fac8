/*
 * The floor: a bare loop over a library on samples in memory.  What a tool costs more than this is the tool's own.
 * Prints the CPU seconds (user + system) of the loop alone.
 *
 *   floor encode FILE.s16 CHANNELS BITRATE COMPLEXITY FRAME_SAMPLES
 *   floor decode FILE.s16 CHANNELS BITRATE FRAME_SAMPLES      encodes first, times the decoding to float
 *   floor soxr FILE.f32 CHANNELS IN_HZ OUT_HZ RECIPE          recipe: 4 HQ, 6 VHQ
 */
#include <opus.h>
#include <soxr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double cpu_s(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void *load(const char *path, size_t *n_bytes)
{
	FILE *f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END)) {
		perror(path);
		exit(1);
	}
	*n_bytes = (size_t)ftell(f);
	rewind(f);
	char *p = malloc(*n_bytes ? *n_bytes : 1);
	if (!p || fread(p, 1, *n_bytes, f) != *n_bytes) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return p;
}

static OpusEncoder *encoder(int channels, int bitrate, int complexity)
{
	int error;
	OpusEncoder *e = opus_encoder_create(48000, channels, OPUS_APPLICATION_AUDIO, &error);
	if (!e || opus_encoder_ctl(e, OPUS_SET_BITRATE(bitrate)) || opus_encoder_ctl(e, OPUS_SET_COMPLEXITY(complexity)))
		exit(1);
	return e;
}

static int encode(int argc, char **argv)
{
	size_t n_bytes;
	if (argc != 7)
		return 2;
	int16_t *pcm = load(argv[2], &n_bytes);
	int channels = atoi(argv[3]), frame = atoi(argv[6]);
	OpusEncoder *e = encoder(channels, atoi(argv[4]), atoi(argv[5]));
	static unsigned char packet[4000];
	size_t n_frames = n_bytes / 2 / (size_t)channels;
	double start = cpu_s();
	for (size_t at = 0; at + (size_t)frame <= n_frames; at += (size_t)frame)
		if (opus_encode(e, pcm + at * (size_t)channels, frame, packet, sizeof(packet)) < 0)
			return 1;
	printf("%.4f\n", cpu_s() - start);
	return 0;
}

static int decode(int argc, char **argv)
{
	size_t n_bytes;
	if (argc != 6)
		return 2;
	int16_t *pcm = load(argv[2], &n_bytes);
	int channels = atoi(argv[3]), frame = atoi(argv[5]), error;
	OpusEncoder *e = encoder(channels, atoi(argv[4]), 5);
	OpusDecoder *d = opus_decoder_create(48000, channels, &error);
	size_t n_frames = n_bytes / 2 / (size_t)channels, n_packets = n_frames / (size_t)frame;
	uint8_t *packets = malloc(n_packets * 1300);
	int *sizes = malloc(n_packets * sizeof(int));
	static float out[5760 * 2];
	for (size_t i = 0; i < n_packets; i++)
		sizes[i] = opus_encode(e, pcm + i * (size_t)frame * (size_t)channels, frame, packets + i * 1300, 1300);
	double start = cpu_s();
	for (size_t i = 0; i < n_packets; i++)
		if (opus_decode_float(d, packets + i * 1300, sizes[i], out, 5760, 0) != frame)
			return 1;
	printf("%.4f\n", cpu_s() - start);
	return 0;
}

static int resample(int argc, char **argv)
{
	size_t n_bytes;
	if (argc != 7)
		return 2;
	float *pcm = load(argv[2], &n_bytes);
	unsigned channels = (unsigned)atoi(argv[3]);
	soxr_quality_spec_t quality = soxr_quality_spec((unsigned long)atoi(argv[6]), 0);
	soxr_error_t error;
	soxr_t s = soxr_create(atof(argv[4]), atof(argv[5]), channels, &error, NULL, &quality, NULL);
	size_t n_frames = n_bytes / 4 / channels, block = 4096;
	float *out = malloc(block * 16 * channels * sizeof(float));
	double start = cpu_s();
	for (size_t at = 0; s && at <= n_frames; at += block) {
		size_t n = n_frames - at < block ? n_frames - at : block, got;
		soxr_process(s, n ? pcm + at * channels : NULL, n, NULL, out, block * 16, &got);
	}
	printf("%.4f\n", cpu_s() - start);
	return error != NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "encode"))
		return encode(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "decode"))
		return decode(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "soxr"))
		return resample(argc, argv);
	fprintf(stderr, "floor: encode, decode or soxr\n");
	return 2;
}
