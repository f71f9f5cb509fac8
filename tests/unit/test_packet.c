/* wire/packet: the bytes of the format, by its published example; limits; no damaged header is taken for one. */
#include "check.h"

#include "base/bytes.h"
#include "wire/crc.h"
#include "wire/packet.h"
#include "wire/track.h"

/* The example stream of the format: one mono s16 track "mic", 64 frames 0…63, stream "demo". */
static const char *const example_hex[] = {
	/* STREAM header, payload, padding */
	"574549d21001200050000000000000010000000000000000000000000000000000002a36fe9c971700000000500000000000000078563412d6c1e1bc48078aac",
	"78563412000102030405060708090a0b00002a36fe9c9717010000000000010000000000f401000001000200250000000000000000000000"
	"0000000000000000" "010000000400000064656d6f00000000",
	"z48",
	/* TRACK */
	"574549d21002200090000000010000010000000000000000000000000000000000002a36fe9c971700000000900000000000000078563412e98a3ee2c785f046",
	"0100010080bb00000100000040000000", "z32", "00002a36fe9c97170000000000000000",
	"01000101020010000400000000000000", "z12", "80bb0000", "z32", "01000000030000006d69630000000000",
	"z48",
	/* DATA: frames 0…63 follow */
	"574549d21003210080000000010000010000000000000000400000000000000000002a36fe9c9717000000008000000000000000785634121cb16b39385f79dc",
	"frames",
	/* END */
	"574549d21006200040000000000000010000000000000000000000000000000000000000000000800000000040000000000000007856341286c62673ab65fc05",
	"000000000000000003000000000000006001000000000000", "z40",
};

static size_t example(uint8_t *out)
{
	uint8_t *at = out;
	for (size_t i = 0; i < ARRAY_LEN(example_hex); i++) {
		const char *s = example_hex[i];
		if (*s == 'z') {
			size_t n = strtoul(s + 1, NULL, 10);
			memset(at, 0, n);
			at += n;
		} else if (*s == 'f') {
			for (unsigned k = 0; k < 64; k++, at += 2)
				put_le16(at, (uint16_t)k);
		} else {
			for (; *s; s += 2) {
				char pair[3] = {s[0], s[1], 0};
				*at++ = (uint8_t)strtoul(pair, NULL, 16);
			}
		}
	}
	return (size_t)(at - out);
}

/* Pack header, payload and padding at `at`.  Returns: bytes. */
static size_t put(uint8_t *at, struct packet p, const void *payload)
{
	memset(at, 0, packet_wire_bytes(&p));
	memcpy(at + PACKET_HEADER_BYTES, payload, p.payload_bytes);
	p.flags |= PACKET_PCRC;
	p.pcrc = crc_32c(0, payload, p.payload_bytes);
	packet_pack(&p, at);
	return packet_wire_bytes(&p);
}

#define EXAMPLE_UTC_NS 0x17979cfe362a0000

static void test_example_is_made_byte_for_byte(void)
{
	uint8_t want[1024], got[1024], payload[256];
	size_t n = 0;
	CHECK_EQ(example(want), 768);
	CHECK_EQ(crc_32c(0, want, 768), 0xA4F927CF);

	struct packet_stream s = {
		.uuid = {0x78, 0x56, 0x34, 0x12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, .t0_utc_ns = EXAMPLE_UTC_NS,
		.flags = PACKET_STREAM_LIVE, .max_payload_bytes = 65536, .announce_ms = 500, .n_tracks = 1, .clock_quality = 2,
		.tai_utc_s = 37, .name = "demo",
	};
	struct packet p = {
		.version = PACKET_VERSION, .type = PACKET_STREAM, .hunits = 1, .sid = 0x12345678, .utc_ns = EXAMPLE_UTC_NS,
	};
	p.payload_bytes = p.object_bytes = (uint32_t)packet_stream_pack(&s, payload, sizeof(payload));
	CHECK_EQ(p.payload_bytes, 80);
	n += put(got + n, p, payload);

	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	t.nominal_dur = 64;
	t.next_utc_ns = EXAMPLE_UTC_NS;
	CHECK_OK(track_set_name(&t, "mic"));
	p.type = PACKET_TRACK;
	p.track = 1;
	p.payload_bytes = p.object_bytes = (uint32_t)track_packed_bytes(&t);
	CHECK_EQ(p.payload_bytes, 144);
	track_pack(&t, payload);
	n += put(got + n, p, payload);

	struct packet d = packet_data(1, 0, 64, 128);
	d.sid = 0x12345678;
	d.utc_ns = EXAMPLE_UTC_NS;
	for (unsigned k = 0; k < 64; k++)
		put_le16(payload + 2 * k, (uint16_t)k);
	n += put(got + n, d, payload);

	struct packet_end e = {.n_packets = 3, .n_payload_bytes = 352};
	struct packet end = {
		.version = PACKET_VERSION, .type = PACKET_END, .hunits = 1, .sid = 0x12345678, .utc_ns = UNITS_UNKNOWN_NS,
		.payload_bytes = PACKET_END_BYTES, .object_bytes = PACKET_END_BYTES,
	};
	packet_end_pack(&e, payload);
	n += put(got + n, end, payload);

	CHECK_EQ(n, 768);
	CHECK_MEM(got, want, 768);
	track_release(&t);
}

static void test_example_is_read(void)
{
	uint8_t bytes[1024];
	static const struct { size_t at, size; uint8_t type; } places[] = {
		{0, 192, PACKET_STREAM}, {192, 256, PACKET_TRACK}, {448, 192, PACKET_DATA}, {640, 128, PACKET_END},
	};
	CHECK_EQ(example(bytes), 768);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct packet p;
		CHECK_OK(packet_unpack(&p, bytes + places[i].at, 768 - places[i].at, PACKET_MAX_PAYLOAD_BYTES));
		CHECK_EQ(p.type, places[i].type);
		CHECK_EQ(packet_wire_bytes(&p), places[i].size);
		CHECK_EQ(p.sid, 0x12345678);
		CHECK(p.flags & PACKET_PCRC);
		CHECK(p.head == bytes + places[i].at && p.payload == p.head + 64);
		CHECK_EQ(crc_32c(0, p.payload, p.payload_bytes), p.pcrc);
	}
	struct packet_stream s;
	CHECK_OK(packet_stream_unpack(&s, bytes + 64, 80));
	CHECK_STR(s.name, "demo");
	CHECK_STR(s.tool, "");
	CHECK_EQ(s.announce_ms, 500);
	CHECK_EQ(s.tai_utc_s, 37);
	struct track t = {0};
	CHECK_OK(track_unpack(&t, bytes + 256, 144, NULL));
	char name[128];
	CHECK_STR(track_name(&t, name), "mic");
	CHECK_EQ(track_rate_hz(&t), 48000);
	CHECK_EQ(t.wave_mask, 4);
	track_release(&t);
	struct packet_end e;
	CHECK_OK(packet_end_unpack(&e, bytes + 704, 64));
	CHECK_EQ(e.n_packets, 3);
	CHECK_EQ(e.n_payload_bytes, 352);
}

static struct packet random_packet(void)
{
	struct packet p = {
		.version = (uint8_t)(0x10 | check_rand_below(16)), .type = (uint8_t)check_rand(), .gen = (uint8_t)check_rand(),
		.hunits = (uint8_t)(1 + check_rand_below(16)), .flags = (uint16_t)(check_rand() | PACKET_PCRC),
		.track = (uint16_t)check_rand(), .payload_bytes = (uint32_t)check_rand_below(65537),
		.dur = (uint32_t)check_rand(), .pos = (int64_t)check_rand(), .utc_ns = (int64_t)check_rand(),
		.seq = (uint32_t)check_rand(), .object_offset_bytes = (uint32_t)check_rand(),
		.object_bytes = (uint32_t)check_rand(), .dropped = (uint32_t)check_rand(), .sid = (uint32_t)check_rand(),
		.pcrc = (uint32_t)check_rand(),
	};
	return p;
}

static void test_every_field_goes_there_and_back(void)
{
	check_seed(5);
	for (int i = 0; i < 2000; i++) {
		uint8_t head[16 * 64], again[16 * 64];
		for (size_t k = 0; k < sizeof(head); k++)
			again[k] = head[k] = (uint8_t)check_rand();
		struct packet a = random_packet(), b;
		packet_pack(&a, head);
		if (!CHECK_OK(packet_unpack(&b, head, sizeof(head), PACKET_MAX_PAYLOAD_BYTES)))
			return;
#define SAME(field) CHECK_EQ(b.field, a.field)
		bool ok = SAME(version) & SAME(type) & SAME(gen) & SAME(hunits) & SAME(flags) & SAME(track) &
			SAME(payload_bytes) & SAME(dur) & SAME(pos) & SAME(utc_ns) & SAME(seq) & SAME(object_offset_bytes) &
			SAME(object_bytes) & SAME(dropped) & SAME(sid) & SAME(pcrc);
		ok &= CHECK(b.head == head) & CHECK(b.payload == head + 64 * a.hunits);
		memcpy(again + 64, head + 64, sizeof(head) - 64);
		packet_pack(&b, again);
		if (!ok | !CHECK_MEM(again, head, sizeof(head)))
			return;
	}
}

/* Each field at its extreme, so that a field packed too narrow or into its neighbour shows. */
static void test_fields_do_not_touch_each_other(void)
{
	static const struct { size_t at, n_bytes; } fields[] = {
		{5, 1}, {6, 2}, {8, 4}, {12, 2}, {14, 1}, {16, 8}, {24, 4}, {28, 4}, {32, 8}, {40, 4}, {44, 4}, {48, 4}, {52, 4}, {56, 4},
	};
	for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
		uint8_t head[64] = {0x57, 0x45, 0x49, 0xD2, PACKET_VERSION}, again[64] = {0};
		head[6] = PACKET_PCRC;
		head[15] = 1;
		memset(head + fields[f].at, fields[f].at == 8 ? 0 : 0xff, fields[f].n_bytes);
		if (fields[f].at == 8)
			put_le32(head + 8, 65536);
		put_le32(head + 60, crc_32c(0, head, 60));
		struct packet p;
		if (CHECK_OK(packet_unpack(&p, head, 64, PACKET_MAX_PAYLOAD_BYTES))) {
			packet_pack(&p, again);
			CHECK_MEM(again, head, 64);
		}
	}
}

static void test_too_short_to_decide(void)
{
	struct packet p = packet_data(1, 0, 0, 0), q;
	uint8_t head[128] = {0};
	for (uint8_t hunits = 1; hunits <= 2; hunits++) {
		p.hunits = hunits;
		packet_pack(&p, head);
		for (size_t n = 0; n < 64u * hunits; n++)
			CHECK_EQ(packet_unpack(&q, head, n, PACKET_MAX_PAYLOAD_BYTES), ERR_AGAIN);
		CHECK_OK(packet_unpack(&q, head, 64u * hunits, PACKET_MAX_PAYLOAD_BYTES));
	}
	head[2] ^= 1;
	CHECK_EQ(packet_unpack(&q, head, 4, PACKET_MAX_PAYLOAD_BYTES), ERR_FORMAT);
}

static void test_limits(void)
{
	uint8_t head[17 * 64] = {0};
	struct packet p = packet_data(1, 0, 0, 0), q;

	p.payload_bytes = PACKET_MAX_PAYLOAD_BYTES;
	packet_pack(&p, head);
	CHECK_OK(packet_unpack(&q, head, 64, PACKET_MAX_PAYLOAD_BYTES));
	CHECK_EQ(packet_unpack(&q, head, 64, PACKET_MAX_PAYLOAD_BYTES - 1), ERR_FORMAT);
	p.payload_bytes = PACKET_MAX_PAYLOAD_BYTES + 1;
	packet_pack(&p, head);
	CHECK_EQ(packet_unpack(&q, head, 64, PACKET_MAX_PAYLOAD_BYTES), ERR_FORMAT);
	CHECK_OK(packet_unpack(&q, head, 64, PACKET_MAX_BIG_PAYLOAD_BYTES));
	p.payload_bytes = UINT32_MAX;
	packet_pack(&p, head);
	CHECK_EQ(packet_unpack(&q, head, 64, PACKET_MAX_BIG_PAYLOAD_BYTES), ERR_FORMAT);

	/* hunits beside 1…16, with a header CRC that is right for the 64 bytes. */
	static const uint8_t bad[] = {0, 17, 128, 255};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		p = packet_data(1, 0, 0, 0);
		packet_pack(&p, head);
		head[15] = bad[i];
		put_le32(head + 60, crc_32c(0, head, 60));
		CHECK_EQ(packet_unpack(&q, head, sizeof(head), PACKET_MAX_PAYLOAD_BYTES), ERR_FORMAT);
	}
}

static void test_versions(void)
{
	uint8_t head[64];
	struct packet p = packet_data(1, 0, 0, 0), q;
	for (unsigned v = 1; v < 256; v++) {
		p.version = (uint8_t)v;
		packet_pack(&p, head);
		CHECK_EQ(packet_unpack(&q, head, 64, PACKET_MAX_PAYLOAD_BYTES), v >> 4 == 1 ? ERR_OK : ERR_VERSION);
	}
	/* Another major version whose CRC is wrong is damage, not a version. */
	head[60] ^= 1;
	CHECK_EQ(packet_unpack(&q, head, 64, PACKET_MAX_PAYLOAD_BYTES), ERR_FORMAT);
}

static void test_no_single_flip_is_accepted(void)
{
	check_seed(6);
	for (uint8_t hunits = 1; hunits <= 3; hunits++) {
		uint8_t head[16 * 64];
		for (size_t k = 0; k < sizeof(head); k++)
			head[k] = (uint8_t)check_rand();
		struct packet p = random_packet(), q;
		p.hunits = hunits;
		packet_pack(&p, head);
		for (size_t bit = 0; bit < 512u * hunits; bit++) {
			head[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (!CHECK_EQ(packet_unpack(&q, head, sizeof(head), PACKET_MAX_PAYLOAD_BYTES), ERR_FORMAT))
				CHECK_FAIL("bit %zu of a header of %u units", bit, hunits);
			head[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		CHECK_OK(packet_unpack(&q, head, sizeof(head), PACKET_MAX_PAYLOAD_BYTES));
	}
}

static void test_no_pair_of_flips_is_accepted(void)
{
	uint8_t head[16 * 64] = {0};
	struct packet p = packet_data(7, 480000, 480, 1920), q;
	packet_pack(&p, head);
	for (size_t a = 0; a < 512; a++)
		for (size_t b = 0; b < a; b++) {
			head[a / 8] ^= (uint8_t)(1u << a % 8);
			head[b / 8] ^= (uint8_t)(1u << b % 8);
			if (!CHECK_EQ(packet_unpack(&q, head, sizeof(head), PACKET_MAX_PAYLOAD_BYTES), ERR_FORMAT))
				return;
			head[a / 8] ^= (uint8_t)(1u << a % 8);
			head[b / 8] ^= (uint8_t)(1u << b % 8);
		}
}

static void test_wire_bytes(void)
{
	struct packet p = packet_data(1, 0, 0, 0);
	CHECK_EQ(packet_wire_bytes(&p), 64);
	p.payload_bytes = 1;
	CHECK_EQ(packet_wire_bytes(&p), 128);
	p.payload_bytes = 64;
	CHECK_EQ(packet_wire_bytes(&p), 128);
	p.hunits = 16;
	p.payload_bytes = 65536;
	CHECK_EQ(packet_wire_bytes(&p), 1024 + 65536);
	/* An end mark is always 128 bytes: a file's last 128 bytes tell whether it is complete. */
	p.hunits = 1;
	p.payload_bytes = PACKET_END_BYTES;
	CHECK_EQ(packet_wire_bytes(&p), 128);
}

static void test_tlv_area(void)
{
	uint8_t area[64];
	size_t n = 0;
	n += packet_tlv_pack(area + n, 1, "abc", 3);
	CHECK_EQ(n, 16);
	n += packet_tlv_pack(area + n, 0x7fff, "", 0);
	CHECK_EQ(n, 24);
	n += packet_tlv_pack(area + n, 3, "12345678", 8);
	CHECK_EQ(n, 40);
	CHECK_MEM(area, "\1\0\0\0\3\0\0\0abc\0\0\0\0\0", 16);

	struct packet_tlv tlv;
	size_t offset = 0;
	CHECK_OK(packet_tlv_next(area, n, &offset, &tlv));
	CHECK(tlv.tag == 1 && tlv.n_bytes == 3 && tlv.value == area + 8);
	CHECK_OK(packet_tlv_next(area, n, &offset, &tlv));
	CHECK(tlv.tag == 0x7fff && tlv.n_bytes == 0);
	CHECK_OK(packet_tlv_next(area, n, &offset, &tlv));
	CHECK(tlv.tag == 3 && tlv.n_bytes == 8);
	CHECK_EQ(packet_tlv_next(area, n, &offset, &tlv), ERR_END);
	CHECK_EQ(packet_tlv_next(area, n, &offset, &tlv), ERR_END);

	/* Lengths beyond the area. */
	static const uint32_t lengths[] = {9, 16, 0x7fffffff, 0xfffffff8, 0xffffffff};
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		put_le32(area + 4, lengths[i]);
		offset = 0;
		CHECK_EQ(packet_tlv_next(area, 16, &offset, &tlv), ERR_FORMAT);
	}
	/* A last value that is not padded is still a value. */
	packet_tlv_pack(area, 1, "abc", 3);
	offset = 0;
	CHECK_OK(packet_tlv_next(area, 11, &offset, &tlv));
	CHECK_EQ(packet_tlv_next(area, 11, &offset, &tlv), ERR_END);
	/* An empty area. */
	offset = 0;
	CHECK_EQ(packet_tlv_next(area, 0, &offset, &tlv), ERR_END);
}

static void test_control_payloads_go_there_and_back(void)
{
	check_seed(7);
	for (int i = 0; i < 200; i++) {
		uint8_t a[64], b[64];

		struct packet_gap g = {
			.reason = (uint16_t)check_rand(), .n_objects = (uint32_t)check_rand(), .skipped_bytes = check_rand(),
			.utc_ns = (int64_t)check_rand(),
		}, g2;
		packet_gap_pack(&g, a);
		CHECK_OK(packet_gap_unpack(&g2, a, 32));
		CHECK(g2.reason == g.reason && g2.n_objects == g.n_objects && g2.skipped_bytes == g.skipped_bytes &&
			g2.utc_ns == g.utc_ns);
		packet_gap_pack(&g2, b);
		CHECK_MEM(b, a, 32);

		struct packet_clock c = {
			.realtime_ns = (int64_t)check_rand(), .monotonic_ns = (int64_t)check_rand(), .media_ns = (int64_t)check_rand(),
			.error_ppb = (int32_t)check_rand(), .uncertainty_ns = (uint32_t)check_rand(), .boot_id = {1, [15] = 2},
		}, c2;
		packet_clock_pack(&c, a);
		CHECK_OK(packet_clock_unpack(&c2, a, 64));
		packet_clock_pack(&c2, b);
		CHECK_MEM(b, a, 64);
		CHECK_EQ(get_le64(a + 32), (uint64_t)c.media_ns);
		CHECK_EQ((int32_t)get_le32(a + 40), c.error_ppb);

		struct packet_end e = {
			.reason = (uint16_t)check_rand(), .n_packets = check_rand(), .n_payload_bytes = check_rand(),
			.end_pos = (int64_t)check_rand(), .dropped = check_rand(),
		}, e2;
		packet_end_pack(&e, a);
		CHECK_OK(packet_end_unpack(&e2, a, 64));
		packet_end_pack(&e2, b);
		CHECK_MEM(b, a, 64);
		CHECK_EQ(get_le64(a + 24), (uint64_t)e.end_pos);

		struct packet_stream s = {
			.t0_utc_ns = (int64_t)check_rand(), .flags = (uint32_t)check_rand(), .max_payload_bytes = (uint32_t)check_rand(),
			.max_object_bytes = (uint32_t)check_rand(), .announce_ms = (uint32_t)check_rand(),
			.n_tracks = (uint16_t)check_rand(), .clock_quality = (uint8_t)check_rand(), .tai_utc_s = (int32_t)check_rand(),
			.n_packets = check_rand(), .uuid = {9, [15] = 8}, .name = "a name", .tool = "weir capture",
		}, s2;
		uint8_t x[256], y[256];
		size_t n = packet_stream_pack(&s, x, sizeof(x));
		CHECK_EQ(n, 64 + 16 + 24);
		CHECK_OK(packet_stream_unpack(&s2, x, n));
		CHECK_EQ(packet_stream_pack(&s2, y, sizeof(y)), n);
		if (!CHECK_MEM(y, x, n))
			return;
		CHECK_STR(s2.name, s.name);
		CHECK_STR(s2.tool, s.tool);
	}
}

static void test_control_payloads_too_short(void)
{
	uint8_t payload[64] = {0};
	struct packet_stream s;
	struct packet_gap g;
	struct packet_clock c;
	struct packet_end e;
	for (size_t n = 0; n < 64; n++) {
		CHECK_EQ(packet_stream_unpack(&s, payload, n), ERR_FORMAT);
		CHECK_EQ(packet_clock_unpack(&c, payload, n), ERR_FORMAT);
		CHECK_EQ(packet_end_unpack(&e, payload, n), ERR_FORMAT);
		CHECK_EQ(packet_gap_unpack(&g, payload, n), n < 32 ? ERR_FORMAT : ERR_OK);
	}
}

static void test_stream_fields(void)
{
	uint8_t p[256] = {0};
	struct packet_stream s;
	/* A long name is cut, an unknown field skipped, a critical one refused, a length beyond the payload refused. */
	char longer[100];
	memset(longer, 'n', sizeof(longer));
	size_t n = 64;
	n += packet_tlv_pack(p + n, 0x1234, "?", 1);
	n += packet_tlv_pack(p + n, PACKET_STREAM_TLV_NAME, longer, sizeof(longer));
	CHECK_OK(packet_stream_unpack(&s, p, n));
	CHECK_EQ(strlen(s.name), 63);
	packet_tlv_pack(p + 64, 0x8001, "?", 1);
	CHECK_EQ(packet_stream_unpack(&s, p, n), ERR_VERSION);
	packet_tlv_pack(p + 64, 0x0001, "?", 1);
	put_le32(p + 68, 1000);
	CHECK_EQ(packet_stream_unpack(&s, p, n), ERR_FORMAT);
	/* No room for the fields: they are left out, nothing is written beyond. */
	s = (struct packet_stream){.name = "name", .tool = "tool"};
	memset(p, 0xEE, sizeof(p));
	CHECK_EQ(packet_stream_pack(&s, p, 64), 64);
	CHECK_EQ(p[64], 0xEE);
	CHECK_EQ(packet_stream_pack(&s, p, 80), 80);
	CHECK_EQ(p[80], 0xEE);
}

static void test_names(void)
{
	char scratch[8];
	CHECK_STR(packet_type_name(PACKET_DATA, scratch), "DATA");
	CHECK_STR(packet_type_name(PACKET_SKIP, scratch), "SKIP");
	CHECK_STR(packet_type_name(0x41, scratch), "0x41");
	CHECK_STR(packet_type_name(0, scratch), "0x00");
	CHECK_STR(packet_type_name(0xff, scratch), "0xFF");
	CHECK_STR(packet_gap_reason_name(PACKET_GAP_NETWORK), "network loss");
	CHECK_STR(packet_gap_reason_name(PACKET_N_GAP_REASONS), "unknown");
	CHECK_STR(packet_gap_reason_name(65535), "unknown");
}

int main(void)
{
	CHECK_RUN(test_example_is_made_byte_for_byte);
	CHECK_RUN(test_example_is_read);
	CHECK_RUN(test_every_field_goes_there_and_back);
	CHECK_RUN(test_fields_do_not_touch_each_other);
	CHECK_RUN(test_too_short_to_decide);
	CHECK_RUN(test_limits);
	CHECK_RUN(test_versions);
	CHECK_RUN(test_no_single_flip_is_accepted);
	CHECK_RUN(test_no_pair_of_flips_is_accepted);
	CHECK_RUN(test_wire_bytes);
	CHECK_RUN(test_tlv_area);
	CHECK_RUN(test_control_payloads_go_there_and_back);
	CHECK_RUN(test_control_payloads_too_short);
	CHECK_RUN(test_stream_fields);
	CHECK_RUN(test_names);
	return check_end();
}
