/* What follows a lost packet of Opus: intra frames are told from others, what is too loud is turned down, and what lost nothing is untouched. */
#include "../check.h"

#include "media/opusdec.h"
#include "media/opusguard.h"
#include "media/opushead.h"

#include <math.h>
#include <opus/opus.h>
#include <stdlib.h>
#include <string.h>

#define N_PACKETS 2000
#define FRAMES 120
#define MAX_BYTES 400

static uint8_t packets[N_PACKETS][MAX_BYTES];
static int sizes[N_PACKETS];
static float whole[N_PACKETS][2 * FRAMES], plain[N_PACKETS][2 * FRAMES], guarded[N_PACKETS][2 * FRAMES];

static uint32_t random_state = 1;

static float noise(void)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (float)(int32_t)random_state / 2147483648.0f;
}

/* Noise with more bass than treble, whose level changes by 6 dB four times a second. */
static void encode(int frames, int loss_pct, int independent)
{
	int error;
	OpusEncoder *e = opus_encoder_create(48000, 2, OPUS_APPLICATION_RESTRICTED_LOWDELAY, &error);
	float in[2 * 480], low[2] = { 0, 0 };

	CHECK_EQ(error, OPUS_OK);
	opus_encoder_ctl(e, OPUS_SET_BITRATE(128000));
	opus_encoder_ctl(e, OPUS_SET_PACKET_LOSS_PERC(loss_pct));
	opus_encoder_ctl(e, OPUS_SET_PREDICTION_DISABLED(independent));
	random_state = 1;
	for (int i = 0; i < N_PACKETS; i++) {
		float level = i / 100 % 2 ? 0.1f : 0.2f;
		for (int k = 0; k < 2 * frames; k++) {
			low[k & 1] = 0.95f * low[k & 1] + 0.3f * noise();
			in[k] = level * low[k & 1];
		}
		sizes[i] = opus_encode_float(e, in, frames, packets[i], MAX_BYTES);
		CHECK(sizes[i] > 0);
	}
	opus_encoder_destroy(e);
}

static bool intra(int i, unsigned size)
{
	return opusguard_is_intra(packets[i] + 1, (size_t)sizes[i] - 1, size);
}

static double share_of_intra(unsigned size)
{
	int n = 0;

	for (int i = 0; i < N_PACKETS; i++)
		n += intra(i, size);
	return (double)n / N_PACKETS;
}

/* An encoder without prediction sends nothing else; one that expects no loss sends few. */
static void test_intra_frames_are_told(void)
{
	for (unsigned size = 0; size < 3; size++) {
		encode(FRAMES << size, 0, 1);
		CHECK_NEAR(share_of_intra(size), 1, 0);
		encode(FRAMES << size, 0, 0);
		CHECK(share_of_intra(size) < 0.5);
		CHECK(!intra(150, size) || !intra(151, size) || !intra(152, size));
	}
	encode(FRAMES, 1, 0);
	CHECK(share_of_intra(0) > 0.5);
}

/* Two decoders are as one behind an intra frame, whatever they heard before: what the bit says is so. */
static void test_intra_frames_are_intra(void)
{
	int error, n_intra = 0, n_other = 0;

	encode(FRAMES, 0, 0);
	for (int i = 20; i < N_PACKETS - 4; i += 7) {
		OpusDecoder *a = opus_decoder_create(48000, 2, &error), *b = opus_decoder_create(48000, 2, &error);
		float x[2 * FRAMES], y[2 * FRAMES], off = 0, most = 0;
		for (int k = i - 12; k <= i + 1; k++) {
			CHECK_EQ(opus_decode_float(a, packets[k], sizes[k], x, FRAMES, 0), FRAMES);
			if (k >= i)
				CHECK_EQ(opus_decode_float(b, packets[k], sizes[k], y, FRAMES, 0), FRAMES);
		}
		for (int k = 0; k < 2 * FRAMES; k++) {
			off = fmaxf(off, fabsf(x[k] - y[k]));
			most = fmaxf(most, fabsf(x[k]));
		}
		/* The post-filter looks back, so not to the bit. */
		if (intra(i, 0) && off < 0.5f * most)
			n_intra++;
		else if (intra(i, 0))
			n_other++;
		opus_decoder_destroy(a);
		opus_decoder_destroy(b);
	}
	CHECK(n_intra >= 10);
	CHECK(n_other * 20 <= n_intra);
}

static bool is_lost(int i, int every)
{
	return every && i > 40 && i % every == 0;
}

static struct opusdec *open_decoder(void)
{
	const struct opushead h = { .channels = 2, .family = 0, .streams = 1, .coupled = 1 };
	struct track coded = { .kind = TRACK_AUDIO }, pcm = { .kind = TRACK_AUDIO };
	struct err_why why;
	struct opusdec *d = NULL;

	CHECK_EQ(opushead_to_track(&h, &coded), ERR_OK);
	CHECK_EQ(opusdec_new(&d, &coded, false, &pcm, &why), ERR_OK);
	track_release(&coded);
	track_release(&pcm);
	return d;
}

static void decode(int every)
{
	int error;
	OpusDecoder *bare = opus_decoder_create(48000, 2, &error);
	struct opusdec *d = open_decoder();

	for (int i = 0; i < N_PACKETS; i++) {
		struct opusdec_block b = { .n_frames = 0 };
		struct packet p = packet_data(1, (int64_t)i * FRAMES, FRAMES, (uint32_t)sizes[i]);
		bool lost = is_lost(i, every);

		CHECK_EQ(opus_decode_float(bare, lost ? NULL : packets[i], lost ? 0 : sizes[i], plain[i], FRAMES, 0), FRAMES);
		p.payload = packets[i];
		CHECK_EQ(lost ? opusdec_conceal(d, p.pos, FRAMES, NULL, &b) : opusdec_packet(d, &p, &b), ERR_OK);
		CHECK_EQ(b.n_frames, FRAMES);
		memcpy(guarded[i], b.frames, sizeof(guarded[i]));
	}
	opusdec_free(d);
	opus_decoder_destroy(bare);
}

static double snr_db(float (*of)[2 * FRAMES], float *most)
{
	double signal = 0, error = 0;

	*most = 0;
	for (int i = 0; i < N_PACKETS; i++)
		for (int k = 0; k < 2 * FRAMES; k++) {
			float d = of[i][k] - whole[i][k];
			signal += (double)whole[i][k] * whole[i][k];
			error += (double)d * d;
			*most = fmaxf(*most, fabsf(d));
		}
	return 10 * log10(signal / error);
}

static void test_what_follows_a_loss_is_not_too_loud(void)
{
	float most, most_plain;

	encode(FRAMES, 0, 0);
	decode(0);
	CHECK(!memcmp(plain, guarded, sizeof(plain)));
	memcpy(whole, plain, sizeof(whole));
	decode(53);
	double before = snr_db(plain, &most_plain), after = snr_db(guarded, &most);
	printf("# 2 %% lost of an encoder that expects none: %.1f dB, largest error %.2f; from libopus %.1f dB, %.2f\n", after, most, before, most_plain);
	CHECK(after > before + 4);
	CHECK(most < 1 && most_plain > 2);
	/* Up to the first loss nothing is different, nor is what was made up for it. */
	CHECK(!memcmp(plain, guarded, 54 * sizeof(plain[0])));
	CHECK(memcmp(plain, guarded, sizeof(plain)));

	/* Who expects losses sends an intra frame soon, and loses nothing by the watch. */
	encode(FRAMES, 1, 0);
	decode(0);
	memcpy(whole, plain, sizeof(whole));
	decode(53);
	before = snr_db(plain, &most_plain);
	after = snr_db(guarded, &most);
	printf("# of one that does: %.1f dB, %.2f; from libopus %.1f dB, %.2f\n", after, most, before, most_plain);
	CHECK(after > 9 && after > before - 0.2);
}

/*
 * A sound that begins right after a loss, 20 dB louder than all before it, is heard: frame n behind the loss may be 0.6·n dB louder than
 * the one before it, which is 0.6·n·(n + 1)/2 dB after n frames: 21.6 dB after eight.
 */
static void test_it_ends(void)
{
	struct opusguard g = { .level = 0 };
	float x[2 * FRAMES];
	int n = 0;

	encode(FRAMES, 0, 0);
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 2 * FRAMES; k++)
			x[k] = 0.1f;
		if (i == 10)
			opusguard_lost(&g);
		/* All of them one that is not intra. */
		int p = 20;
		while (intra(p, 0))
			p++;
		for (int k = 0; k < 2 * FRAMES && i >= 11; k++)
			x[k] = 1;
		opusguard_take(&g, packets[p], (size_t)sizes[p], x, FRAMES, 2);
		if (i < 11)
			CHECK_NEAR(x[2 * FRAMES - 1], 0.1, 1e-6);
		else
			n += x[2 * FRAMES - 1] < 0.999f;
		if (i == 11)
			CHECK(x[0] < 0.13f);
		if (i >= 18)
			CHECK_NEAR(x[2 * FRAMES - 1], 1, 1e-6);
	}
	CHECK_EQ(n, 7);
}

static void test_any_bytes_do(void)
{
	struct opusguard g = { .level = 0 };
	static float x[2 * 5760];
	uint8_t bytes[64];

	for (int i = 0; i < 20000; i++) {
		size_t n = (size_t)(fabsf(noise()) * 64);
		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)(noise() * 128);
		uint8_t *exact = malloc(n ? n : 1);
		memcpy(exact, bytes, n);
		(void)opusguard_is_intra(exact, n, i & 3);
		opusguard_lost(&g);
		int frames = n ? opus_packet_get_nb_samples(exact, (opus_int32)n, 48000) : 120;
		if (frames > 0 && frames <= 5760)
			opusguard_take(&g, exact, n, x, (size_t)frames, 2);
		free(exact);
	}
	CHECK(isfinite(x[0]));
}

int main(void)
{
	CHECK_RUN(test_intra_frames_are_told);
	CHECK_RUN(test_intra_frames_are_intra);
	CHECK_RUN(test_what_follows_a_loss_is_not_too_loud);
	CHECK_RUN(test_it_ends);
	CHECK_RUN(test_any_bytes_do);
	return check_end();
}
