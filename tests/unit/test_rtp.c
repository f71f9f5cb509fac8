/* net/rtp: packets by hand from RFC 3550 section 5.1, numbers that wrap, and when a source counts (appendix A.1). */
#include "check.h"

#include "net/rtp.h"

static void test_a_plain_packet(void)
{
	/* V=2 P=0 X=0 CC=0, M=1 PT=111, seq 0x1234, ts 0x89abcdef, SSRC 0xdeadbeef, "abc" */
	static const uint8_t bytes[] = { 0x80, 0xef, 0x12, 0x34, 0x89, 0xab, 0xcd, 0xef, 0xde, 0xad, 0xbe, 0xef, 'a', 'b', 'c' };
	uint8_t again[12];
	struct rtp r;

	CHECK_OK(rtp_unpack(&r, bytes, sizeof(bytes)));
	CHECK(r.marker);
	CHECK_EQ(r.pt, 111);
	CHECK_EQ(r.seq, 0x1234);
	CHECK_EQ(r.ts, 0x89abcdefu);
	CHECK_EQ(r.ssrc, 0xdeadbeefu);
	CHECK_EQ(r.n_csrc, 0);
	CHECK_EQ(r.payload_bytes, 3);
	CHECK_EQ(r.header_bytes, 12);
	CHECK_MEM(r.payload, "abc", 3);
	CHECK_EQ(rtp_pack(&r, again, sizeof(again)), 12);
	CHECK_MEM(again, bytes, 12);
	CHECK_EQ(rtp_pack(&r, again, 11), 0);
}

/* Everything that a header may have: two CSRCs, an extension of one word, two bytes of payload, three of padding. */
static const uint8_t full[] = {
	0xb2, 0x60, 0x00, 0x01, 0, 0, 0, 2, 0, 0, 0, 3,
	0, 0, 0, 4, 0, 0, 0, 5,
	0xbe, 0xde, 0x00, 0x01, 0x11, 0x22, 0x33, 0x44,
	0xaa, 0xbb, 0, 0, 3,
};

static void test_all_parts(void)
{
	struct rtp r;

	CHECK_OK(rtp_unpack(&r, full, sizeof(full)));
	CHECK_EQ(r.n_csrc, 2);
	CHECK_EQ(r.csrc[0], 4);
	CHECK_EQ(r.csrc[1], 5);
	CHECK(r.has_extension);
	CHECK_EQ(r.extension_id, 0xbede);
	CHECK_EQ(r.extension_bytes, 4);
	CHECK_MEM(r.extension, full + 24, 4);
	CHECK_EQ(r.payload_bytes, 2);
	CHECK_EQ(r.padding_bytes, 3);
	CHECK_EQ(r.header_bytes, 28);
}

static void test_lengths_must_fit(void)
{
	uint8_t b[64];
	struct rtp r;

	/* Cut anywhere before the payload's padding it is none; cut in the padding its count lies elsewhere. */
	for (size_t n = 0; n < 28; n++)
		CHECK_EQ(rtp_unpack(&r, full, n), ERR_FORMAT);
	memcpy(b, full, sizeof(full));
	b[sizeof(full) - 1] = 6;
	CHECK_EQ(rtp_unpack(&r, b, sizeof(full)), ERR_FORMAT);
	b[sizeof(full) - 1] = 5;
	CHECK_OK(rtp_unpack(&r, b, sizeof(full)));
	CHECK_EQ(r.payload_bytes, 0);
	b[sizeof(full) - 1] = 0;
	CHECK_EQ(rtp_unpack(&r, b, sizeof(full)), ERR_FORMAT);
	memcpy(b, full, sizeof(full));
	b[23] = 0x40; /* an extension longer than the packet */
	CHECK_EQ(rtp_unpack(&r, b, sizeof(full)), ERR_FORMAT);
	memcpy(b, full, sizeof(full));
	b[0] = (uint8_t)((b[0] & 0x3f) | 0x40); /* version 1 */
	CHECK_EQ(rtp_unpack(&r, b, sizeof(full)), ERR_FORMAT);
	/* Header alone, with the padding bit. */
	memset(b, 0, 12);
	b[0] = 0xa0;
	CHECK_EQ(rtp_unpack(&r, b, 12), ERR_FORMAT);
	b[0] = 0x80;
	CHECK_OK(rtp_unpack(&r, b, 12));
	CHECK_EQ(r.payload_bytes, 0);
}

static void test_csrcs_are_written(void)
{
	struct rtp r = { .pt = 10, .n_csrc = 15 }, back;
	uint8_t b[RTP_MAX_HEADER_BYTES];

	for (unsigned i = 0; i < 15; i++)
		r.csrc[i] = 0x1000 + i;
	CHECK_EQ(rtp_pack(&r, b, sizeof(b)), 72);
	CHECK_OK(rtp_unpack(&back, b, sizeof(b)));
	CHECK_EQ(back.n_csrc, 15);
	CHECK_EQ(back.csrc[14], 0x100e);
}

static void test_unwrap(void)
{
	struct rtp_unwrap u = { 0 };

	CHECK_EQ(rtp_unwrap_seq(&u, 65534), 65536 + 65534);
	CHECK_EQ(rtp_unwrap_seq(&u, 1), 2 * 65536 + 1);
	CHECK_EQ(rtp_unwrap_seq(&u, 65535), 65536 + 65535);
	CHECK_EQ(u.highest, 2 * 65536 + 1);
	CHECK_EQ(rtp_unwrap_seq(&u, 0), 2 * 65536);
	/* The first may come after a later one, and is not negative. */
	u = (struct rtp_unwrap){ 0 };
	CHECK_EQ(rtp_unwrap_seq(&u, 0), 65536);
	CHECK_EQ(rtp_unwrap_seq(&u, 65535), 65535);
	u = (struct rtp_unwrap){ 0 };
	CHECK_EQ(rtp_unwrap_ts(&u, 0xfffffff0u), (2LL << 32) - 16);
	CHECK_EQ(rtp_unwrap_ts(&u, 0x10), (2LL << 32) + 16);
	CHECK_EQ(rtp_peek_ts(&u, 0xfffffff0u), (2LL << 32) - 16);
	CHECK_EQ(u.highest, (2LL << 32) + 16);
}

/* Ten turns of the sequence number with losses and swaps: every number comes out as it was counted. */
static void test_unwrap_long(void)
{
	struct rtp_unwrap u = { 0 };
	int64_t first = 60000;

	check_seed(3);
	for (int64_t n = first; n < first + 655360; n++) {
		int64_t one = n + (n > first + 4 && check_rand_below(10) == 0 ? -(int64_t)check_rand_below(4) : 0);
		if (check_rand_below(20) == 0)
			continue;
		if (!CHECK_EQ(rtp_unwrap_seq(&u, (uint16_t)one), 65536 + one))
			return;
	}
}

static void test_source(void)
{
	struct rtp_source s = { 0 };

	CHECK_EQ(rtp_source_judge(&s, 100), RTP_WAIT);
	CHECK_EQ(rtp_source_judge(&s, 102), RTP_WAIT); /* not in sequence: begins again */
	CHECK_EQ(rtp_source_judge(&s, 103), RTP_TAKE);
	CHECK_EQ(rtp_source_judge(&s, 103), RTP_TAKE); /* twice */
	CHECK_EQ(rtp_source_judge(&s, 90), RTP_TAKE);  /* late */
	CHECK_EQ(rtp_source_judge(&s, 3000), RTP_TAKE);
	/* A jump wants a second packet behind it. */
	CHECK_EQ(rtp_source_judge(&s, 20000), RTP_DROP);
	CHECK_EQ(rtp_source_judge(&s, 40000), RTP_DROP);
	CHECK_EQ(rtp_source_judge(&s, 40001), RTP_RESTART);
	CHECK_EQ(rtp_source_judge(&s, 40002), RTP_TAKE);
	/* Over the wrap. */
	s = (struct rtp_source){ 0 };
	CHECK_EQ(rtp_source_judge(&s, 65535), RTP_WAIT);
	CHECK_EQ(rtp_source_judge(&s, 0), RTP_TAKE);
	CHECK_EQ(rtp_source_judge(&s, 65534), RTP_TAKE);
}

static void test_formats(void)
{
	struct rtp_format f;

	CHECK(rtp_static_format(10, &f));
	CHECK_EQ(f.codec, RTP_CODEC_L16);
	CHECK_EQ(f.clock_hz, 44100);
	CHECK_EQ(f.channels, 2);
	CHECK(rtp_static_format(11, &f));
	CHECK_EQ(f.channels, 1);
	CHECK(!rtp_static_format(0, &f));
	CHECK_EQ(rtp_codec_by_name("OPUS"), RTP_CODEC_OPUS);
	CHECK_EQ(rtp_codec_by_name("l24"), RTP_CODEC_L24);
	CHECK_EQ(rtp_codec_by_name("none"), RTP_CODEC_NONE);
	CHECK_EQ(rtp_codec_by_name("L240"), RTP_CODEC_NONE);
	CHECK_EQ(rtp_codec_sample_bytes(RTP_CODEC_L24), 3);
}

int main(void)
{
	CHECK_RUN(test_a_plain_packet);
	CHECK_RUN(test_all_parts);
	CHECK_RUN(test_lengths_must_fit);
	CHECK_RUN(test_csrcs_are_written);
	CHECK_RUN(test_unwrap);
	CHECK_RUN(test_unwrap_long);
	CHECK_RUN(test_source);
	CHECK_RUN(test_formats);
	return check_end();
}
