/* The receiver and its flows in virtual time: what a new sender in an old place begins with, what stays counted, and what positions may do. */
#include "check.h"

#include "base/bytes.h"
#include "leg/receiverids.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000LL
#define FRAMES 48u                       /* of stereo L16: 1 ms at 48 kHz */
#define PCM_PT 96u                       /* and the next one: the same format */
#define OPUS_PT 111u
#define SAMPLE 0x1234u

static struct receiver r;
static struct writer out;
static struct tool tool = { .name = "test_receiver", .quiet = true };
static int64_t now_ns;
static unsigned n_joined;
static struct rtcp_loss told;            /* the last that was reported */

static void on_send(void *user, unsigned port, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes)
{
	struct rtcp_packet p;
	struct rtcp_app a;
	size_t at = 0;

	(void)user;
	(void)port;
	(void)to;
	while (rtcp_next(bytes, n_bytes, &at, &p) == ERR_OK)
		if (rtcp_app_unpack(&p, &a) == ERR_OK)
			(void)!rtcpweir_loss_unpack(&a, &told);
}

static void on_event(void *user, const struct netflow *f, bool joined)
{
	(void)user;
	(void)f;
	n_joined += joined;
}

static void begin(unsigned max_senders, bool retime)
{
	struct receiver_options o = { .max_senders = max_senders, .seed = 7,
		.flow = { .retime = retime, .block_ns = 2500000, .latency_ns = 20 * MS, .glitches = 6, .n_slots = 64 } };
	struct err_why why;

	memset(&r, 0, sizeof(r));
	memset(&out, 0, sizeof(out));
	memset(&told, 0, sizeof(told));
	now_ns = UNITS_NS_PER_S;
	CHECK_EQ(writer_open(&out, open("/dev/null", O_WRONLY | O_CLOEXEC), "test", "test", &why), ERR_OK);
	CHECK_EQ(writer_begin(&out), ERR_OK);
	r.n_ports = 1;
	r.ports[0].formats[PCM_PT] = r.ports[0].formats[PCM_PT + 1] = (struct rtp_format){ RTP_CODEC_L16, 48000, 2 };
	r.ports[0].formats[OPUS_PT] = (struct rtp_format){ RTP_CODEC_OPUS, 48000, 1 };
	CHECK_EQ(receiver_init(&r, &tool, &out, &o, now_ns, &why), ERR_OK);
	r.send = on_send;
	r.event = on_event;
	n_joined = 0;
}

static void end(void)
{
	CHECK_EQ(receiver_end(&r, PACKET_END_NORMAL), ERR_OK);
	receiver_release(&r);
	close(out.fd);
	writer_release(&out);
}

static struct dgram_addr host(unsigned n)
{
	return (struct dgram_addr){ .ip4 = { .sin_family = AF_INET, .sin_port = htons(4000), .sin_addr.s_addr = htonl(0xC0000200u + n) },
		.n_bytes = sizeof(struct sockaddr_in) };
}

static void pass(int64_t ns)
{
	now_ns += ns;
	CHECK_EQ(receiver_run(&r, now_ns, true), ERR_OK);
}

static void say(unsigned from, uint32_t ssrc, unsigned pt, unsigned seq, uint32_t ts, const void *payload, size_t n_bytes)
{
	uint8_t bytes[12 + 1472] = { 0x80, (uint8_t)pt, (uint8_t)(seq >> 8), (uint8_t)seq };
	struct dgram_addr a = host(from);

	put_be32(bytes + 4, ts);
	put_be32(bytes + 8, ssrc);
	memcpy(bytes + 12, payload, n_bytes);
	receiver_datagram(&r, 0, false, &a, bytes, 12 + n_bytes, now_ns);
}

/* Packet seq of sound, in its time. */
static void sound(uint32_t ssrc, unsigned pt, unsigned seq, uint32_t ts0)
{
	static uint8_t samples[4 * FRAMES];

	for (unsigned i = 0; i < sizeof(samples); i += 2)
		put_be16(samples + i, SAMPLE);
	say(1, ssrc, pt, seq, ts0 + seq * FRAMES, samples, sizeof(samples));
	pass(MS);
}

static void rtcp(unsigned from, const struct rtcp_writer *w)
{
	struct dgram_addr a = host(from);

	receiver_datagram(&r, 0, true, &a, w->bytes, w->n_bytes, now_ns);
}

static void bye(unsigned from, uint32_t ssrc)
{
	uint8_t bytes[64];
	struct rtcp_writer w = { bytes, sizeof(bytes), 0 };

	CHECK_EQ(rtcp_put_rr(&w, ssrc, NULL, 0), ERR_OK);
	CHECK_EQ(rtcp_put_bye(&w, ssrc, NULL), ERR_OK);
	rtcp(from, &w);
}

static struct rtcp_binding binding(uint32_t ssrc, uint16_t track)
{
	return (struct rtcp_binding){ .ssrc = ssrc, .track = track, .pt = PCM_PT, .codec = RTP_CODEC_L16, .channels = 2, .all_channels = 2, .rate_hz = 48000,
		.end_pos = RTCP_UNKNOWN_POS, .utc_ns = INT64_MIN };
}

static void tell(unsigned from, const struct rtcp_binding *b)
{
	uint8_t bytes[512], data[RTCP_MAX_BINDING_BYTES];
	struct rtcp_writer w = { bytes, sizeof(bytes), 0 };
	size_t n = rtcpweir_binding_pack(b, data);

	CHECK_EQ(rtcp_put_rr(&w, b->ssrc, NULL, 0), ERR_OK);
	CHECK_EQ(rtcp_put_app(&w, b->ssrc, RTCP_WEIR_BINDING, RTCP_WEIR_NAME, data, n), ERR_OK);
	rtcp(from, &w);
}

static unsigned used(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r.n_flows; i++)
		n += r.flows[i].used;
	return n;
}

static uint64_t count(const atomic_uint_fast64_t *what)
{
	struct stats s = { .tool = NULL };

	receivercount_show(&r, &s);
	return atomic_load(what);
}

/* PCM in the place that one of Opus left is not decoded as Opus. */
static void pcm_after_opus(void)
{
	static const uint8_t silent[3] = { 0xF8, 0xFF, 0xFE }; /* 20 ms of CELT */

	begin(2, true);
	for (unsigned seq = 1; seq < 20; seq++) {
		say(1, 0xAAA, OPUS_PT, seq, seq * 960, silent, sizeof(silent));
		pass(20 * MS);
	}
	CHECK(r.flows[0].used && r.flows[0].format.codec == RTP_CODEC_OPUS && r.flows[0].counts.frames_out > 0);
	bye(1, 0xAAA);
	pass(UNITS_NS_PER_S);
	CHECK_EQ(used(), 0);
	for (unsigned seq = 1; seq < 200; seq++)
		sound(0xBBB, PCM_PT, seq, 5000);
	CHECK(r.flows[0].used && r.flows[0].format.codec == RTP_CODEC_L16);
	CHECK(r.flows[0].counts.frames_out >= 100 * FRAMES);
	CHECK_NEAR(r.flows[0].made[0], SAMPLE / 32768.0, 1e-3);
	CHECK_EQ(count(&r.counts.refused), 0);
	end();
}

/* A sender begun anew, under another SSRC and payload type, is heard on, and what was lost before stays counted. */
static void begun_anew(void)
{
	begin(2, false);
	for (unsigned seq = 1; seq < 60; seq++)
		if (seq < 20 || seq >= 30)
			sound(0xAAA, PCM_PT, seq, 0);
	CHECK_EQ(count(&r.counts.lost), 10);
	pass(200 * MS);
	for (unsigned seq = 1000; seq < 1100; seq++)
		sound(0xBBB, PCM_PT + 1, seq, 123456);
	CHECK_EQ(used(), 1);
	CHECK_EQ(r.flows[0].ssrc, 0xBBB);
	CHECK_EQ(count(&r.counts.refused), 0);
	CHECK_EQ(count(&r.counts.received), 149);
	CHECK_EQ(count(&r.counts.lost), 10);
	/* Under the same SSRC too: far other numbers and timestamps, which must be seen twice each. */
	for (unsigned seq = 30000; seq < 30050; seq++)
		sound(0xBBB, PCM_PT + 1, seq, 123456);
	CHECK_EQ(count(&r.counts.lost), 10);
	CHECK_EQ(count(&r.counts.refused), 2);
	bye(1, 0xBBB);
	pass(UNITS_NS_PER_S);
	CHECK_EQ(used(), 0);
	CHECK_EQ(count(&r.counts.lost), 10);
	end();
}

/* The wall clock of a sender is that of its new timestamps only when it has said so. */
static void clock_anew(void)
{
	uint8_t bytes[64];
	struct rtcp_writer w = { bytes, sizeof(bytes), 0 };
	struct rtcp_sr sr = { .ssrc = 0xAAA, .ntp = rtcp_ntp(1700000000LL * UNITS_NS_PER_S), .ts = 20 * FRAMES };

	begin(2, false);
	for (unsigned seq = 1; seq < 60; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	CHECK_EQ(rtcp_put_sr(&w, &sr, NULL, 0), ERR_OK);
	rtcp(1, &w);
	CHECK(r.flows[0].has_sr);
	for (unsigned seq = 30000; seq < 30060; seq++)
		sound(0xAAA, PCM_PT, seq, 2000000000);
	CHECK(!r.flows[0].has_sr);
	end();
}

/* Two tracks from one host: one that is silent for a moment is not taken for the other's past. */
static void two_tracks(void)
{
	struct rtcp_binding one = binding(0xAAA, 1), two = binding(0xBBB, 2);

	begin(4, false);
	tell(1, &one);
	for (unsigned seq = 1; seq < 20; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	pass(300 * MS);
	tell(1, &two);
	for (unsigned seq = 1; seq < 20; seq++)
		sound(0xBBB, PCM_PT, seq, 0);
	for (unsigned seq = 20; seq < 40; seq++)
		sound(0xAAA, PCM_PT, seq, 20 * FRAMES);
	CHECK_EQ(used(), 2);
	CHECK_EQ(r.flows[0].ssrc, 0xAAA);
	CHECK_EQ(r.flows[0].counts.packets, 39);
	/* The same track again is the same sender, begun anew. */
	pass(300 * MS);
	struct rtcp_binding again = binding(0xCCC, 2);
	tell(1, &again);
	for (unsigned seq = 1; seq < 20; seq++)
		sound(0xCCC, PCM_PT, seq, 0);
	CHECK_EQ(used(), 2);
	CHECK_EQ(r.flows[1].ssrc, 0xCCC);
	end();
}

/* A sender may say that its media is anywhere: the hole up to there is not filled with packets. */
static void far_position(void)
{
	struct rtcp_binding b = binding(0xAAA, 1);

	begin(2, false);
	tell(1, &b);
	for (unsigned seq = 1; seq < 60; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	b.pos0 = INT64_MAX / 8;
	b.gen = 1;
	tell(1, &b);
	for (unsigned seq = 60; seq < 160; seq++)
		sound(0xAAA, PCM_PT, seq, 2000000000);
	CHECK(r.flows[0].counts.frames_out >= 100 * FRAMES);
	CHECK(r.flows[0].end_pos < INT64_MAX / 16);
	CHECK(out.n_packets < 1000);
	end();
}

/* A jump of an hour that a sender says is one, however fast it sends. */
static void an_hour_on(void)
{
	struct rtcp_binding b = binding(0xAAA, 1);

	begin(2, false);
	tell(1, &b);
	for (unsigned seq = 1; seq < 60; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	for (unsigned seq = 60; seq < 160; seq++)
		sound(0xAAA, PCM_PT, seq, 3600u * 48000);
	CHECK_NEAR((double)r.flows[0].end_pos / 48000, 3600, 1);
	end();
}

/* Tracks in parts count against what may join in a while, as others do: ids are 16 bits. */
static void split_tracks_come_and_go(void)
{
	begin(4, false);
	for (uint32_t i = 0; i < 5000; i++) {
		struct rtcp_binding b = binding(0x10000 + i, 1);
		b.all_channels = 4;
		tell(2, &b);
		say(2, b.ssrc, PCM_PT, 1, 0, (const uint8_t[4 * FRAMES]){ 0 }, 4 * FRAMES);
		say(2, b.ssrc, PCM_PT, 2, FRAMES, (const uint8_t[4 * FRAMES]){ 0 }, 4 * FRAMES);
		bye(2, b.ssrc);
		pass(MS);
	}
	CHECK(n_joined >= 1 && n_joined <= 100);
	CHECK(r.next_id <= 100);
	pass(UNITS_NS_PER_S);
	CHECK_EQ(used(), 0);
	end();
}

/* A second costs a track; what was never written costs no number. */
static void numbers(void)
{
	int64_t joined_ns = UNITS_UNKNOWN_NS;
	unsigned n = 0;

	begin(2, false);
	for (int64_t at_ns = 0; at_ns < 60 * UNITS_NS_PER_S; at_ns += MS)
		n += receiverids_may(&r, &joined_ns, 1024, at_ns);
	CHECK(n >= 1024 + 59 && n <= 1024 + 60);
	for (uint16_t id = 1; id <= 10; id++) {
		CHECK_EQ(receiverids_next(&r, 0), id);
		receiverids_take(&r, id);
	}
	receiverids_give_back(&r, 7);
	CHECK_EQ(receiverids_next(&r, 9), 7);
	receiverids_take(&r, 7);
	CHECK_EQ(receiverids_next(&r, 7), 11);
	end();
}

/* What was played as a track by itself and turns out to be a part goes when it says so, and the whole track with it. */
static void becomes_a_part(void)
{
	struct rtcp_binding b = binding(0xAAA, 1);

	begin(2, true);
	for (unsigned seq = 1; seq < 60; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	CHECK(r.flows[0].playing && !r.flows[0].joint);
	b.all_channels = 4;
	tell(1, &b);
	CHECK(r.flows[0].joint);
	for (unsigned seq = 60; seq < 120; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	bye(1, 0xAAA);
	for (unsigned i = 0; i < 500; i++)
		pass(MS);
	CHECK_EQ(used(), 0);
	end();
}

/* What was on its way when its sender left does not bring it back; who comes again later is heard. */
static void late_after_bye(bool is_part)
{
	struct rtcp_binding b = binding(0xAAA, 1);
	unsigned n_before;

	b.all_channels = is_part ? 4 : 2;
	begin(2, false);
	tell(1, &b);
	for (unsigned seq = 1; seq < 60; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	CHECK_EQ(used(), is_part ? 2 : 1);
	n_before = n_joined;
	bye(1, 0xAAA);
	for (unsigned i = 0; i < 50; i++)
		pass(MS);
	CHECK_EQ(used(), 0);
	tell(1, &b);
	sound(0xAAA, PCM_PT, 60, 0);
	sound(0xAAA, PCM_PT, 61, 0);
	CHECK_EQ(used(), 0);
	CHECK_EQ(n_joined, n_before);
	pass(500 * MS);
	tell(1, &b);
	sound(0xAAA, PCM_PT, 62, 0);
	sound(0xAAA, PCM_PT, 63, 0);
	CHECK_EQ(used(), is_part ? 2 : 1);
	end();
}

static void late_after_bye_alone(void)
{
	late_after_bye(false);
}

static void late_after_bye_part(void)
{
	late_after_bye(true);
}

/* Samples of two bytes are no part of a track whose samples have three, whatever their sender says. */
static void part_of_another_codec(void)
{
	struct rtcp_binding b = binding(0xAAA, 1);

	begin(4, false);
	b.codec = RTP_CODEC_L24;
	b.all_channels = 4;
	tell(1, &b);
	for (unsigned seq = 1; seq < 4; seq++)
		say(1, 0xAAA, PCM_PT, seq, seq * FRAMES, (const uint8_t[6 * FRAMES]){ 0 }, 6 * FRAMES);
	CHECK(r.flows[0].is_joint && r.flows[1].joint == &r.flows[0]);
	for (unsigned seq = 1; seq < 4; seq++)
		sound(0xBBB, PCM_PT, seq, 0);
	CHECK(r.flows[2].used && r.flows[2].format.codec == RTP_CODEC_L16);
	b.ssrc = 0xBBB;
	b.first_channel = 2;
	tell(1, &b);
	CHECK(!r.flows[2].joint);
	end();
}

/* Where a track ends before its zero, nothing is missing up to there. */
static void negative_positions(void)
{
	struct rtcp_binding b = binding(0xAAA, 1);

	begin(2, false);
	b.pos0 = b.first_pos = -1000000;
	tell(1, &b);
	for (unsigned seq = 1; seq < 60; seq++)
		sound(0xAAA, PCM_PT, seq, 0);
	CHECK(r.flows[0].announced && r.flows[0].end_pos < 0);
	bye(1, 0xAAA);
	pass(UNITS_NS_PER_S);
	CHECK_EQ(used(), 0);
	CHECK_EQ(r.flows[0].counts.gaps, 0);
	end();
}

/* What is part of a track takes nobody's place when there is none for it. */
static void no_place_for_a_part(void)
{
	begin(2, false);
	for (unsigned seq = 1; seq < 20; seq++) {
		sound(0xAAA, PCM_PT, seq, 0);
		say(3, 0xABB, PCM_PT, seq, seq * FRAMES, (const uint8_t[4 * FRAMES]){ 0 }, 4 * FRAMES);
	}
	CHECK_EQ(used(), 2);
	for (uint32_t i = 0; i < 3; i++) {
		struct rtcp_binding b = binding(0x10000 + i, (uint16_t)(1 + i));
		b.all_channels = 4;
		tell(2, &b);
		say(2, b.ssrc, PCM_PT, 1, 0, (const uint8_t[4 * FRAMES]){ 0 }, 4 * FRAMES);
		say(2, b.ssrc, PCM_PT, 2, FRAMES, (const uint8_t[4 * FRAMES]){ 0 }, 4 * FRAMES);
	}
	CHECK_EQ(used(), 2);
	end();
}

/* Timestamps that leap to and fro are as much jitter as a report holds, and no more. */
static void wild_timestamps(void)
{
	struct rtcp_binding b = binding(0xAAA, 1);

	begin(2, false);
	tell(1, &b);
	for (unsigned seq = 1; seq < 1000; seq++)
		sound(0xAAA, PCM_PT, seq, seq % 2 ? 0 : 0x40000000);
	CHECK_EQ(told.ssrc, 0xAAA);
	CHECK_EQ(told.jitter_us, UINT32_MAX);
	end();
}

int main(void)
{
	CHECK_RUN(numbers);
	CHECK_RUN(pcm_after_opus);
	CHECK_RUN(begun_anew);
	CHECK_RUN(clock_anew);
	CHECK_RUN(two_tracks);
	CHECK_RUN(far_position);
	CHECK_RUN(an_hour_on);
	CHECK_RUN(split_tracks_come_and_go);
	CHECK_RUN(becomes_a_part);
	CHECK_RUN(late_after_bye_alone);
	CHECK_RUN(late_after_bye_part);
	CHECK_RUN(part_of_another_codec);
	CHECK_RUN(negative_positions);
	CHECK_RUN(no_place_for_a_part);
	CHECK_RUN(wild_timestamps);
	return check_end();
}
