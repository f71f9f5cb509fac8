/* net/rtcp: compound packets by hand from RFC 3550 section 6, the sums of appendix A.3, A.7 and A.8, and our own APP packets. */
#include "check.h"

#include "base/bytes.h"
#include "net/reception.h"
#include "net/rtcp.h"
#include "net/rtcptimer.h"
#include "net/rtcpweir.h"

/* SR of 1 report, SDES of a CNAME, BYE with a reason. */
static const uint8_t compound[] = {
	0x81, 200, 0, 12, 0, 0, 0, 1,
	0x83, 0xaa, 0x7e, 0x80, 0x80, 0, 0, 0, /* 1970-01-01 00:00:00.5 */
	0, 0, 0x10, 0, 0, 0, 0, 7, 0, 0, 1, 0,
	0, 0, 0, 2, 0x40, 0xff, 0xff, 0xfe, 0, 1, 0, 9, 0, 0, 0, 5, 0x11, 0x22, 0x33, 0x44, 0, 1, 0, 0,
	0x81, 202, 0, 3, 0, 0, 0, 1, 1, 4, 'a', '@', 'b', 'c', 0, 0,
	0x81, 203, 0, 2, 0, 0, 0, 1, 3, 'b', 'y', 'e',
};

static void test_reads_a_compound(void)
{
	struct rtcp_sdes_at at = { 0 };
	struct rtcp_report r;
	struct rtcp_packet p;
	struct rtcp_item item;
	struct rtcp_sr sr;
	const uint8_t *text;
	uint32_t ssrc;
	uint8_t n;
	size_t offset = 0;

	CHECK(rtcp_is_rtcp(compound, sizeof(compound)));
	CHECK_OK(rtcp_check(compound, sizeof(compound), false));
	CHECK_OK(rtcp_next(compound, sizeof(compound), &offset, &p));
	CHECK_OK(rtcp_sr_unpack(&p, &sr));
	CHECK_EQ(sr.ssrc, 1);
	CHECK_EQ(rtcp_ntp_utc_ns(sr.ntp), 500000000);
	CHECK_EQ(sr.ts, 0x1000);
	CHECK_EQ(sr.n_packets, 7);
	CHECK_EQ(sr.n_bytes, 256);
	CHECK_OK(rtcp_report_unpack(&p, 0, &r));
	CHECK_EQ(r.ssrc, 2);
	CHECK_EQ(r.fraction_lost, 64);
	CHECK_EQ(r.lost, -2);
	CHECK_EQ(r.highest_seq, 0x10009);
	CHECK_EQ(r.jitter, 5);
	CHECK_EQ(r.last_sr, 0x11223344);
	CHECK_EQ(r.delay_last_sr, 0x10000);
	CHECK_EQ(rtcp_report_unpack(&p, 1, &r), ERR_END);
	CHECK_EQ(rtcp_rr_unpack(&p, &ssrc), ERR_FORMAT);
	CHECK_OK(rtcp_next(compound, sizeof(compound), &offset, &p));
	CHECK_OK(rtcp_sdes_next(&p, &at, &item));
	CHECK_EQ(item.ssrc, 1);
	CHECK_EQ(item.type, RTCP_SDES_CNAME);
	CHECK_EQ(item.n_bytes, 4);
	CHECK_MEM(item.text, "a@bc", 4);
	CHECK_EQ(rtcp_sdes_next(&p, &at, &item), ERR_END);
	CHECK_OK(rtcp_next(compound, sizeof(compound), &offset, &p));
	CHECK_OK(rtcp_bye_unpack(&p, 0, &ssrc));
	CHECK_EQ(ssrc, 1);
	CHECK_EQ(rtcp_bye_unpack(&p, 1, &ssrc), ERR_END);
	CHECK_OK(rtcp_bye_reason(&p, &text, &n));
	CHECK_EQ(n, 3);
	CHECK_MEM(text, "bye", 3);
	CHECK_EQ(rtcp_next(compound, sizeof(compound), &offset, &p), ERR_END);
}

static void test_writes_the_same(void)
{
	struct rtcp_sr sr = { 1, 0x83aa7e8080000000u, 0x1000, 7, 256 };
	struct rtcp_report r = { 2, 64, -2, 0x10009, 5, 0x11223344, 0x10000 };
	uint8_t bytes[256];
	struct rtcp_writer w = { bytes, sizeof(bytes), 0 };

	CHECK_OK(rtcp_put_sr(&w, &sr, &r, 1));
	CHECK_OK(rtcp_put_sdes(&w, 1, "a@bc", NULL));
	CHECK_OK(rtcp_put_bye(&w, 1, "bye"));
	CHECK_EQ(w.n_bytes, sizeof(compound));
	CHECK_MEM(bytes, compound, sizeof(compound));
	/* What does not fit leaves it as it was. */
	w.room_bytes = w.n_bytes + 11;
	CHECK_EQ(rtcp_put_bye(&w, 1, "bye"), ERR_LIMIT);
	CHECK_EQ(w.n_bytes, sizeof(compound));
	CHECK_EQ(rtcp_put_app(&w, 1, 1, "WEIR", "abc", 3), ERR_LIMIT);
}

static void test_refuses(void)
{
	uint8_t b[sizeof(compound)];
	struct rtcp_packet p;
	struct rtcp_sdes_at at;
	struct rtcp_item item;

	/* Cut anywhere but between two packets it is damaged. */
	for (size_t n = 0; n < sizeof(compound); n++) {
		if (n == 52 || n == 68)
			CHECK_OK(rtcp_check(compound, n, false));
		else
			CHECK_EQ(rtcp_check(compound, n, false), ERR_FORMAT);
	}
	memcpy(b, compound, sizeof(b));
	b[0] = 0x41; /* version 1 */
	CHECK_EQ(rtcp_check(b, sizeof(b), false), ERR_FORMAT);
	memcpy(b, compound, sizeof(b));
	b[52] |= 0x20; /* padding that is not on the last */
	CHECK_EQ(rtcp_check(b, sizeof(b), false), ERR_FORMAT);
	/* An SDES first: only where the size is reduced. */
	CHECK_EQ(rtcp_check(compound + 52, sizeof(compound) - 52, false), ERR_FORMAT);
	CHECK_OK(rtcp_check(compound + 52, sizeof(compound) - 52, true));
	/* An item beyond its packet, and items without an end. */
	static const uint8_t long_item[] = { 0x81, 202, 0, 2, 0, 0, 0, 1, 1, 9, 'a', 'b' };
	static const uint8_t no_end[] = { 0x81, 202, 0, 2, 0, 0, 0, 1, 1, 2, 'a', 'b' };
	size_t offset = 0;
	CHECK_OK(rtcp_next(long_item, sizeof(long_item), &offset, &p));
	at = (struct rtcp_sdes_at){ 0 };
	CHECK_EQ(rtcp_sdes_next(&p, &at, &item), ERR_FORMAT);
	offset = 0;
	CHECK_OK(rtcp_next(no_end, sizeof(no_end), &offset, &p));
	at = (struct rtcp_sdes_at){ 0 };
	CHECK_OK(rtcp_sdes_next(&p, &at, &item));
	CHECK_EQ(rtcp_sdes_next(&p, &at, &item), ERR_FORMAT);
}

static void test_demultiplexes(void)
{
	uint8_t b[8] = { 0x80 };

	/* RFC 5761 section 4: 64…95 with the marker are RTCP; 96… and below 64 are RTP. */
	for (unsigned pt = 0; pt < 128; pt++) {
		b[1] = (uint8_t)(0x80 | pt);
		CHECK_EQ(rtcp_is_rtcp(b, sizeof(b)), pt >= 64 && pt <= 95);
	}
	b[1] = 200;
	CHECK(!rtcp_is_rtcp(b, 3));
}

static void test_ntp(void)
{
	/* 2026-11-30 16:00:00 UTC is 1796054400 s of 1970. */
	CHECK_EQ(rtcp_ntp(1796054400LL * UNITS_NS_PER_S) >> 32, 1796054400LL + 2208988800LL);
	CHECK_EQ(rtcp_ntp(250000000) & 0xffffffff, 0x40000000);
	CHECK_EQ(rtcp_ntp(-500000000), (2208988799ull << 32) + 0x80000000u);
	check_seed(9);
	for (int i = 0; i < 1000; i++) {
		int64_t ns = (int64_t)check_rand_below(2000000000ull * UNITS_NS_PER_S);
		if (!CHECK_NEAR((double)(rtcp_ntp_utc_ns(rtcp_ntp(ns)) - ns), 0, 1))
			return;
	}
	/* The seconds wrap on 2036-02-07 06:28:16 UTC: 2040-01-01 is 2208988800 s of 1970. */
	CHECK_EQ(rtcp_ntp(2208988800LL * UNITS_NS_PER_S) >> 32, 2 * 2208988800LL - (1LL << 32));
	CHECK_EQ(rtcp_ntp_utc_ns(rtcp_ntp(2208988800LL * UNITS_NS_PER_S)), 2208988800LL * UNITS_NS_PER_S);
	CHECK_EQ(rtcp_ntp_utc_ns(0xFFFFFFFFull << 32), ((1LL << 32) - 1 - 2208988800LL) * UNITS_NS_PER_S);
	/* The example of section 6.4.1, figure 2: sent at b705:2000, 5.25 s there, back at b710:8000: 6.125 s on the way. */
	uint64_t now = ((uint64_t)0xb710 << 32) + 0x80000000u;
	CHECK_EQ(rtcp_round_trip_ns(now, 0xb7052000, 0x00054000), 6125000000LL);
	CHECK_EQ(rtcp_round_trip_ns(now, 0, 0x00054000), -1);
	CHECK_EQ(rtcp_round_trip_ns(now, 0xb7108000, 0x00010000), -1); /* negative: 2^32 less a second */
}

/* A.3 by hand: 10 packets expected, 2 lost, 1 twice. */
static void test_reception(void)
{
	struct reception r = { 0 };
	static const uint16_t seqs[] = { 65533, 65534, 65535, 1, 2, 2, 4, 5, 6 };
	struct rtcp_sr sr = { .ntp = 0x1122334455667788ull };

	for (unsigned i = 0; i < ARRAY_LEN(seqs); i++)
		reception_take(&r, seqs[i], 480 * (uint32_t)seqs[i], 10000000LL * seqs[i], 48000);
	reception_sr(&r, &sr, 100);
	struct rtcp_report b = reception_report(&r, 77, 100 + 2 * UNITS_NS_PER_S);
	CHECK_EQ(b.ssrc, 77);
	CHECK_EQ(reception_lost(&r), 1);
	CHECK_EQ(b.lost, 1);
	CHECK_EQ(b.fraction_lost, 256 / 10);
	CHECK_EQ(b.highest_seq, 0x10006);
	CHECK_EQ(b.last_sr, 0x33445566);
	CHECK_EQ(b.delay_last_sr, 2 * 65536);
	/* Nothing lost since. */
	reception_take(&r, 7, 0, 0, 48000);
	b = reception_report(&r, 77, 0);
	CHECK_EQ(b.fraction_lost, 0);
	CHECK_EQ(b.lost, 1);
}

/* A.8: every transit differs from the one before by 16 units: J goes to 16 as 1 − (15/16)^n. */
static void test_jitter(void)
{
	struct reception r = { 0 };

	for (unsigned i = 0; i <= 40; i++) {
		int64_t arrival = 480 * (int64_t)i + (i % 2 ? 16 : 0);
		reception_take(&r, (uint16_t)i, 480 * i, units_to_ns(arrival, 48000, 1), 48000);
		CHECK_NEAR(r.jitter, 16 * (1 - pow(15.0 / 16, i)), 1e-9);
	}
	CHECK_EQ(reception_report(&r, 1, 0).jitter, (uint32_t)(16 * (1 - pow(15.0 / 16, 40))));
}

static void test_interval(void)
{
	struct rtcptimer t;
	const double e = 2.718281828459045 - 1.5;

	/* Two people, 128 kb/s: the minimum holds, half of it before the first. */
	rtcptimer_init(&t, 128000, true, 100, 0, 0.5);
	CHECK_NEAR((double)t.next_ns, 2.5e9 / e, 10);
	t.initial = false;
	CHECK_NEAR((double)rtcptimer_interval_ns(&t, 0), 2.5e9 / e, 10);
	CHECK_NEAR((double)rtcptimer_interval_ns(&t, 0.999999), 7.5e9 / e, 1e5);
	t.reduced_minimum = true;
	CHECK_NEAR((double)rtcptimer_interval_ns(&t, 0.5), 360e9 / 128 / e, 10);
	t.reduced_minimum = false;
	/* 1000 receivers, 1 sender: receivers share 75 % of 800 B/s: 100 B · 1000 / 600. */
	t.n_members = 1001;
	t.n_senders = 1;
	t.we_send = false;
	CHECK_NEAR((double)rtcptimer_interval_ns(&t, 0.5), 100.0 * 1000 / 600 * 1e9 / e, 10);
	/* The sender has a quarter for itself alone: the minimum. */
	t.we_send = true;
	CHECK_NEAR((double)rtcptimer_interval_ns(&t, 0.5), 5e9 / e, 10);
	/* More than a quarter send: all share alike. */
	t.n_senders = 500;
	CHECK_NEAR((double)rtcptimer_interval_ns(&t, 0.5), 100.0 * 1001 / 800 * 1e9 / e, 10);
}

/* Section 6.3.6 and 6.3.4: many join, the time moves on; they leave, it comes back. */
static void test_reconsideration(void)
{
	struct rtcptimer t;

	rtcptimer_init(&t, 128000, false, 100, 0, 0.5);
	rtcptimer_sent(&t, 100, 0, 0.5);
	int64_t before_ns = t.next_ns;
	CHECK(!rtcptimer_due(&t, before_ns - 1, 0.5));
	rtcptimer_members(&t, 1000, 0, 1000);
	CHECK_EQ(t.next_ns, before_ns);
	CHECK(!rtcptimer_due(&t, before_ns, 0.5));
	CHECK(t.next_ns > 10 * before_ns);
	int64_t far_ns = t.next_ns;
	rtcptimer_members(&t, 100, 0, before_ns);
	CHECK_NEAR((double)t.next_ns, (double)before_ns + 0.1 * (double)(far_ns - before_ns), 10);
	CHECK(rtcptimer_due(&t, t.next_ns + 20 * UNITS_NS_PER_S, 0.5));
	rtcptimer_sent(&t, 260, t.next_ns, 0.5);
	CHECK_NEAR(t.average_bytes, 110, 1e-9);
}

static void test_binding(void)
{
	struct rtcp_binding b = {
		.ssrc = 0x01020304, .track = 2, .gen = 3, .pt = 98, .codec = RTP_CODEC_L24, .sample = 5, .channels = 8, .first_channel = 8,
		.all_channels = 20, .rate_hz = 96000, .ts0 = 0xfffffff0u, .pos0 = -312, .roc = 4, .seq = 5, .first_pos = 0,
		.end_pos = RTCP_UNKNOWN_POS, .utc_ns = 1796054400LL * UNITS_NS_PER_S, .name = "Gesang \xc3\xa4",
	}, back;
	uint8_t data[RTCP_MAX_BINDING_BYTES], bytes[256];
	struct rtcp_writer w = { bytes, sizeof(bytes), 0 };
	struct rtcp_packet p;
	struct rtcp_app a;
	size_t offset = 0;

	size_t n = rtcpweir_binding_pack(&b, data);
	CHECK_EQ(n, 64 + 12);
	CHECK_OK(rtcp_put_app(&w, b.ssrc, RTCP_WEIR_BINDING, RTCP_WEIR_NAME, data, n));
	CHECK_OK(rtcp_next(bytes, w.n_bytes, &offset, &p));
	CHECK_OK(rtcp_app_unpack(&p, &a));
	CHECK_EQ(a.ssrc, 0x01020304);
	CHECK_OK(rtcpweir_binding_unpack(&a, &back));
	CHECK_EQ(back.ssrc, b.ssrc);
	CHECK_EQ(back.track, 2);
	CHECK_EQ(back.gen, 3);
	CHECK_EQ(back.pt, 98);
	CHECK_EQ(back.codec, RTP_CODEC_L24);
	CHECK_EQ(back.sample, 5);
	CHECK_EQ(back.first_channel, 8);
	CHECK_EQ(back.all_channels, 20);
	CHECK_EQ(back.rate_hz, 96000);
	CHECK_EQ(back.ts0, b.ts0);
	CHECK_EQ(back.pos0, -312);
	CHECK_EQ(back.roc, 4);
	CHECK_EQ(back.seq, 5);
	CHECK_EQ(back.end_pos, RTCP_UNKNOWN_POS);
	CHECK_EQ(back.utc_ns, b.utc_ns);
	CHECK_STR(back.name, b.name);
	/* What cannot be is refused: a name longer than the data, channels beyond the track's, a rate (Opus has one), a position, bad UTF-8. */
	static const struct { unsigned at; uint8_t value; } bad[] = {
		{ 39, 200 }, { 39, 13 }, { 11, 13 }, { 15, 15 }, { 16, 0x7f }, { 24, 0x7f }, { 7, 128 }, { 8, 0 }, { 8, 9 }, { 8, RTP_CODEC_OPUS }, { 5, 0 }, { 72, 0xff }, { 64, 0 },
	};
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		uint8_t changed[RTCP_MAX_BINDING_BYTES];
		struct rtcp_app x = a;
		memcpy(changed, data, sizeof(changed));
		changed[bad[i].at] = bad[i].value;
		x.data = changed;
		if (!CHECK_EQ(rtcpweir_binding_unpack(&x, &back), ERR_FORMAT))
			check_fail(__FILE__, __LINE__, "byte %u", bad[i].at);
	}
	for (a.data_bytes = 0; a.data_bytes < n; a.data_bytes += 4)
		CHECK_EQ(rtcpweir_binding_unpack(&a, &back), ERR_FORMAT);
	/* A long name is cut at a whole character. */
	memset(b.name, 'x', 126);
	memcpy(b.name + 126, "\xc3", 2);
	CHECK_EQ(rtcpweir_binding_pack(&b, data), 64 + 128);
	CHECK_EQ(get_be16(data + 38), 126);
}

static void test_loss_report(void)
{
	struct rtcp_loss l = {
		.ssrc = 9, .interval_ms = 250, .bins = { 1, 2, 3, 4 }, .expected = 100, .lost = 10, .repaired = 8, .late = 1,
		.bursts = { 6, 2 }, .jitter_us = 300, .depth_us = 20000, .last_sr = 0x1234, .delay_last_sr = 0x5678,
	}, back;
	uint8_t data[RTCP_LOSS_BYTES];
	struct rtcp_app a = { .subtype = RTCP_WEIR_LOSS, .name = { 'W', 'E', 'I', 'R' }, .data = data, .data_bytes = sizeof(data) };

	rtcpweir_loss_pack(&l, data);
	CHECK_OK(rtcpweir_loss_unpack(&a, &back));
	CHECK_EQ(back.ssrc, 9);
	CHECK_EQ(back.interval_ms, 250);
	CHECK_MEM(back.bins, l.bins, sizeof(l.bins));
	CHECK_EQ(back.expected, 100);
	CHECK_EQ(back.lost, 10);
	CHECK_EQ(back.repaired, 8);
	CHECK_EQ(back.late, 1);
	CHECK_MEM(back.bursts, l.bursts, sizeof(l.bursts));
	CHECK_EQ(back.jitter_us, 300);
	CHECK_EQ(back.depth_us, 20000);
	CHECK_EQ(back.last_sr, 0x1234);
	CHECK_EQ(back.delay_last_sr, 0x5678);
	a.data_bytes -= 4;
	CHECK_EQ(rtcpweir_loss_unpack(&a, &back), ERR_FORMAT);
	a.data_bytes += 4;
	put_be32(data + 20, 101); /* more lost than there were */
	CHECK_EQ(rtcpweir_loss_unpack(&a, &back), ERR_FORMAT);
	/* Every length lies in the bin that ends at or behind it, and not in the one before. */
	for (unsigned n = 1; n < 200; n++) {
		unsigned bin = rtcpweir_burst_bin(n);
		CHECK(bin < RTCP_N_BURSTS && (bin == RTCP_N_BURSTS - 1 || n <= rtcpweir_burst_packets(bin)));
		CHECK(bin == 0 || n > rtcpweir_burst_packets(bin - 1));
	}
	CHECK_EQ(rtcpweir_burst_bin(8), 7);
	CHECK_EQ(rtcpweir_burst_bin(9), 8);
}

static void test_ping(void)
{
	uint8_t data[RTCP_PING_BYTES];
	struct rtcp_ping p = { 0x01020304, 0x1122334455667788u }, got;
	struct rtcp_app a = { .subtype = RTCP_WEIR_PING, .name = { 'W', 'E', 'I', 'R' }, .data = data, .data_bytes = sizeof(data) };

	rtcpweir_ping_pack(&p, data);
	CHECK_EQ(data[0], 1);
	CHECK_EQ(data[4], 0x11);
	CHECK_EQ(data[11], 0x88);
	CHECK_OK(rtcpweir_ping_unpack(&a, RTCP_WEIR_PING, &got));
	CHECK_EQ(got.ssrc, p.ssrc);
	CHECK(got.token == p.token);
	CHECK_EQ(rtcpweir_ping_unpack(&a, RTCP_WEIR_PONG, &got), ERR_FORMAT);
	a.data_bytes = 8;
	CHECK_EQ(rtcpweir_ping_unpack(&a, RTCP_WEIR_PING, &got), ERR_FORMAT);
}

int main(void)
{
	CHECK_RUN(test_reads_a_compound);
	CHECK_RUN(test_writes_the_same);
	CHECK_RUN(test_refuses);
	CHECK_RUN(test_demultiplexes);
	CHECK_RUN(test_ntp);
	CHECK_RUN(test_reception);
	CHECK_RUN(test_jitter);
	CHECK_RUN(test_interval);
	CHECK_RUN(test_reconsideration);
	CHECK_RUN(test_binding);
	CHECK_RUN(test_loss_report);
	CHECK_RUN(test_ping);
	return check_end();
}
