/* net/packer: stream packets to RTP packets, whatever the block sizes: no sample is lost, moved or changed. */
#include "check.h"

#include "base/bytes.h"
#include "net/packer.h"

static struct packer p;
static int16_t samples[64 * 4096];
static uint8_t wire[200000];
static size_t n_wire;
static int64_t end_line;
static unsigned n_packets;

/* Take all there is: payloads one behind the other, headers checked. */
static void drain(bool flush, uint32_t ts0, int64_t pos0, unsigned frame_bytes)
{
	uint8_t one[4200];
	struct packer_out out;
	struct rtp r;

	while ((flush ? packer_flush(&p, one, &out) : packer_take(&p, NULL, one, &out)) == ERR_OK) {
		CHECK_OK(rtp_unpack(&r, one, out.n_bytes));
		CHECK_EQ(r.seq, (uint16_t)(65530 + n_packets));
		CHECK_EQ(r.ts, (uint32_t)(ts0 + (uint32_t)(out.pos - pos0)));
		CHECK_EQ(r.ssrc, 7);
		CHECK_EQ(out.payload_bytes, out.dur * frame_bytes);
		CHECK(out.n_bytes <= packer_max_bytes(&p));
		CHECK(out.line >= end_line);
		end_line = out.line + out.dur;
		memcpy(wire + n_wire, r.payload, r.payload_bytes);
		n_wire += r.payload_bytes;
		n_packets++;
	}
}

static struct packet block(int64_t pos, uint32_t n_frames, unsigned channels)
{
	struct packet k = packet_data(1, pos, n_frames, n_frames * channels * 2);

	k.payload = (const uint8_t *)(samples + (size_t)pos * channels);
	return k;
}

static void begin(unsigned channels, unsigned first, unsigned some, uint32_t packet_frames, bool whole)
{
	struct track t = track_pcm(48000, (uint16_t)channels, SAMPLE_S16);
	struct packer_options o = {
		.codec = RTP_CODEC_L16, .pt = 96, .ssrc = 7, .seq = 65530, .ts = 0xffffff00u, .first_channel = (uint16_t)first,
		.channels = (uint16_t)some, .packet_frames = packet_frames, .whole_blocks = whole, .max_payload_bytes = 1440,
	};
	struct err_why why = { 0 };

	if (!CHECK_OK(packer_init(&p, &t, &o, &why)))
		check_show(why.reason);
	n_wire = n_packets = 0;
	end_line = INT64_MIN;
	track_release(&t);
}

static void expect_samples(unsigned channels, unsigned first, unsigned some, size_t n_frames)
{
	size_t at = 0;

	CHECK_EQ(n_wire, n_frames * some * 2);
	for (size_t f = 0; f < n_frames; f++) {
		for (unsigned c = 0; c < some; c++, at += 2) {
			if ((int16_t)get_be16(wire + at) != samples[f * channels + first + c]) {
				CHECK_FAIL("frame %zu channel %u differs", f, c);
				return;
			}
		}
	}
}

/* Blocks of any length, packets of any length, some of the channels. */
static void test_any_blocks(void)
{
	check_seed(5);
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		samples[i] = (int16_t)check_rand();
	for (int turn = 0; turn < 300; turn++) {
		unsigned channels = 1 + (unsigned)check_rand_below(12), first = (unsigned)check_rand_below(channels);
		unsigned some = 1 + (unsigned)check_rand_below(channels - first < 8 ? channels - first : 8);
		uint32_t packet_frames = 1 + (uint32_t)check_rand_below(1440 / (2 * some));
		bool whole = check_rand_below(2);
		int64_t pos = 0, end = 4000;

		begin(channels, first, some, packet_frames, whole);
		while (pos < end) {
			uint32_t n = 1 + (uint32_t)check_rand_below(700);
			n = pos + n > end ? (uint32_t)(end - pos) : n;
			struct packet k = block(pos, n, channels);
			size_t before = n_wire, bound = packer_bound_bytes(&p, &k);
			unsigned before_packets = n_packets;
			packer_put(&p, &k);
			drain(false, 0xffffff00u, 0, some * 2);
			CHECK(n_wire - before + RTP_HEADER_BYTES * (n_packets - before_packets) <= bound);
			if (whole)
				CHECK_EQ(n_wire, (size_t)(pos + n) * some * 2);
			pos += n;
		}
		drain(true, 0xffffff00u, 0, some * 2);
		expect_samples(channels, first, some, 4000);
		if (check_state.failures)
			return;
	}
}

/* A hole: what waited goes short, the timestamp jumps, the marker is set; time that goes back is not shown. */
static void test_holes_and_restarts(void)
{
	struct packer_out out;
	uint8_t one[2000];
	struct packet k;

	begin(1, 0, 1, 100, false);
	k = block(0, 150, 1);
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.dur, 100);
	CHECK_EQ(one[1], 0x80 | 96);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	k = block(1000, 100, 1);
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.pos, 100);
	CHECK_EQ(out.dur, 50);
	CHECK_EQ(one[1], 96);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.pos, 1000);
	CHECK_EQ(out.ts, 0xffffff00u + 1000);
	CHECK_EQ(one[1], 0x80 | 96);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	/* Anew at 0: the timestamp is that of where it was. */
	k = block(0, 100, 1);
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.ts, 0xffffff00u + 1100);
	CHECK_EQ(out.line, 1100);
	CHECK_EQ(out.pos, 0);
	CHECK_EQ(packer_ts(&p, 0), 0xffffff00u + 1100);
	/* Ahead, with DISCONT, likewise. */
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	k = block(2000, 100, 1);
	k.flags |= PACKET_DISCONT;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.line, 1200);
	CHECK_EQ(out.pos, 2000);
}

static void test_opus(void)
{
	struct track t = { .id = 1, .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .channels = 2, .rate_num = 48000, .rate_den = 1 };
	struct packer_options o = { .codec = RTP_CODEC_OPUS, .pt = 111, .ssrc = 7, .seq = 65535, .ts = 50, .max_payload_bytes = 1440 };
	static uint8_t bytes[PACKER_MAX_OPUS_BYTES + 1];
	struct packet k = packet_data(1, -312, 960, 100);
	struct packer_out out;
	struct err_why why;
	uint8_t one[4100];

	CHECK_OK(packer_init(&p, &t, &o, &why));
	bytes[0] = 0xfc;
	k.payload = bytes;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.ts, 50);
	CHECK_EQ(out.seq, 65535);
	CHECK_EQ(out.n_bytes, 112);
	CHECK_MEM(one + 12, bytes, 100);
	CHECK_EQ(packer_ts(&p, 0), 362);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	/* DTX is not sent; one that is too long is counted. */
	k.pos += 960;
	k.payload_bytes = 1;
	packer_put(&p, &k);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	k.pos += 960;
	k.payload_bytes = PACKER_MAX_OPUS_BYTES + 1;
	packer_put(&p, &k);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	CHECK_EQ(p.n_refused, 1);
	k.pos += 960;
	k.payload_bytes = PACKER_MAX_OPUS_BYTES;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.ts, 50 + 3 * 960);
	CHECK_EQ(out.seq, 0);
	CHECK_EQ(one[1], 0x80 | 111);
	CHECK(out.n_bytes <= packer_max_bytes(&p));
	t.channels = 6;
	CHECK_EQ(packer_init(&p, &t, &o, &why), ERR_ARG);
}

/* What all that follows would have to wait for: a length that the packet does not have, and a hole of years. */
static void test_no_long_waits(void)
{
	struct track t = { .id = 1, .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .channels = 2, .rate_num = 48000, .rate_den = 1 };
	struct packer_options o = { .codec = RTP_CODEC_OPUS, .pt = 111, .ssrc = 7, .seq = 1, .ts = 50, .max_payload_bytes = 1440 };
	static uint8_t bytes[100] = { 0xfc }; /* 20 ms */
	struct packet k = packet_data(1, 0, 960, 100);
	struct packer_out out;
	struct err_why why;
	uint8_t one[1500];

	CHECK_OK(packer_init(&p, &t, &o, &why));
	k.payload = bytes;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	k.pos = 960;
	k.dur = 1u << 30;
	packer_put(&p, &k);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	k.dur = 961;
	packer_put(&p, &k);
	CHECK_EQ(packer_take(&p, NULL, one, &out), ERR_AGAIN);
	CHECK_EQ(p.n_refused, 2);
	/* An end that is trimmed is shorter. */
	k.dur = 312;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.line, 960);
	/* An hour of silence is one. */
	k.pos = 1272 + 3600ll * 48000;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.line, k.pos);
	CHECK_EQ(p.n_skipped, 0);
	int64_t line = k.pos + 312;
	k.pos = line + 3600ll * 48000 + 1;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.line, line);
	CHECK_EQ(out.pos, k.pos);
	CHECK_EQ(one[1], 0x80 | 111);
	CHECK_EQ(p.n_skipped, 1);
	/* From one end of what there is to the other, and back. */
	k.pos = INT64_C(1) << 60;
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	k.pos = -(INT64_C(1) << 60);
	packer_put(&p, &k);
	CHECK_OK(packer_take(&p, NULL, one, &out));
	CHECK_EQ(out.line, line + 2 * 312);
	CHECK_EQ(p.n_skipped, 2);
}

static void test_usual_packet_times(void)
{
	CHECK_EQ(packer_usual_frames(128, 48000, 6, 1440), 128);  /* as it comes */
	CHECK_EQ(packer_usual_frames(4096, 48000, 4, 1440), 240); /* 5 ms of stereo L16 */
	CHECK_EQ(packer_usual_frames(4096, 48000, 6, 1440), 240); /* 5 ms of stereo L24: 1440 bytes */
	CHECK_EQ(packer_usual_frames(4096, 48000, 24, 1440), 48); /* 1 ms of 8 channels */
	CHECK_EQ(packer_usual_frames(0, 44100, 4, 1440), 220);
	CHECK_EQ(packer_usual_frames(4096, 192000, 24, 1440), 60); /* no whole millisecond fits */
}

int main(void)
{
	CHECK_RUN(test_any_blocks);
	CHECK_RUN(test_holes_and_restarts);
	CHECK_RUN(test_opus);
	CHECK_RUN(test_no_long_waits);
	CHECK_RUN(test_usual_packet_times);
	return check_end();
}
