/* The hex in weir-stream(5) is what the library packs, byte for byte, and what it unpacks. */
#include "check.h"
#include "base/bytes.h"
#include "wire/crc.h"
#include "wire/packet.h"
#include "wire/track.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SID 0x12345678u
#define UTC_NS 1700000000000000000LL

static const uint8_t uuid[16] = { 0x78, 0x56, 0x34, 0x12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

static int hex_digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of the hex block of this name.  Returns: how many; 0 if there is no such block. */
static size_t page_hex(const char *name, uint8_t *bytes, size_t room_bytes)
{
	const char *top = getenv("TOP");
	char path[4096], line[512], mark[64];
	bool found = false, inside = false;
	size_t n = 0;
	int high = -1;

	snprintf(path, sizeof(path), "%s/man/weir-stream.5", top ? top : ".");
	snprintf(mark, sizeof(mark), ".\\\" hex: %s\n", name);
	FILE *page = fopen(path, "r");
	if (!CHECK(page != NULL))
		return 0;
	while (fgets(line, sizeof(line), page)) {
		found = found || strcmp(line, mark) == 0;
		if (found && strncmp(line, ".Ed", 3) == 0)
			break;
		for (const char *c = line; inside && *c; c++) {
			if (hex_digit(*c) < 0)
				continue;
			if (high < 0) {
				high = hex_digit(*c);
			} else if (CHECK(n < room_bytes)) {
				bytes[n++] = (uint8_t)(high << 4 | hex_digit(*c));
				high = -1;
			}
		}
		inside = inside || (found && strncmp(line, ".Bd", 3) == 0);
	}
	fclose(page);
	CHECK_EQ(high, -1);
	return n;
}

/* A packet as the page prints it: header, payload, padding. */
static size_t pack_whole(struct packet p, const uint8_t *payload, uint8_t *out)
{
	p.version = PACKET_VERSION;
	p.hunits = 1;
	p.flags |= PACKET_PCRC;
	p.object_bytes = p.payload_bytes;
	p.sid = SID;
	p.pcrc = crc_32c(0, payload, p.payload_bytes);
	memset(out, 0, packet_wire_bytes(&p));
	memcpy(out + PACKET_HEADER_BYTES, payload, p.payload_bytes);
	packet_pack(&p, out);
	return packet_wire_bytes(&p);
}

static void same_as_page(const char *name, struct packet p, const uint8_t *payload)
{
	uint8_t wanted[512], got[512];
	struct packet back;
	size_t n = page_hex(name, wanted, sizeof(wanted));

	CHECK_EQ(pack_whole(p, payload, got), n);
	CHECK(n >= 128 && memcmp(got, wanted, n) == 0);
	CHECK_EQ(packet_unpack(&back, wanted, n, PACKET_MAX_PAYLOAD_BYTES), ERR_OK);
	CHECK_EQ(back.type, p.type);
	CHECK_EQ(back.track, p.track);
	CHECK_EQ(back.pos, p.pos);
	CHECK_EQ(back.dur, p.dur);
	CHECK_EQ(back.seq, p.seq);
	CHECK_EQ(back.utc_ns, p.utc_ns);
	CHECK_EQ(back.payload_bytes, p.payload_bytes);
	CHECK_EQ(back.pcrc, crc_32c(0, back.payload, back.payload_bytes));
}

static void test_stream(void)
{
	struct packet_stream s = {
		.t0_utc_ns = UTC_NS, .flags = PACKET_STREAM_LIVE, .max_payload_bytes = 65536, .announce_ms = 500, .n_tracks = 1,
		.clock_quality = 2, .tai_utc_s = 37, .name = "demo",
	};
	uint8_t payload[256];

	memcpy(s.uuid, uuid, sizeof(uuid));
	size_t n = packet_stream_pack(&s, payload, sizeof(payload));
	same_as_page("STREAM", (struct packet){ .type = PACKET_STREAM, .utc_ns = UTC_NS, .payload_bytes = (uint32_t)n }, payload);
}

static void test_track(void)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	uint8_t payload[512];

	t.nominal_dur = 64;
	t.next_utc_ns = UTC_NS;
	t.original_rate_hz = 48000;
	t.largest_object_bytes = 0;
	CHECK_EQ(track_set_name(&t, "mic"), ERR_OK);
	size_t n = track_packed_bytes(&t);
	CHECK_EQ(n, 144);
	track_pack(&t, payload);
	same_as_page("TRACK", (struct packet){ .type = PACKET_TRACK, .track = 1, .utc_ns = UTC_NS, .payload_bytes = (uint32_t)n }, payload);
	track_release(&t);
}

static void test_data(void)
{
	uint8_t payload[128];
	struct packet p = packet_data(1, 0, 64, sizeof(payload));

	for (int i = 0; i < 64; i++)
		put_le16(payload + 2 * i, (uint16_t)i);
	p.utc_ns = UTC_NS;
	same_as_page("DATA", p, payload);
}

static void test_end(void)
{
	struct packet_end e = { .reason = PACKET_END_NORMAL, .n_packets = 3, .n_payload_bytes = 80 + 144 + 128 };
	uint8_t payload[PACKET_END_BYTES];

	packet_end_pack(&e, payload);
	same_as_page("END", (struct packet){ .type = PACKET_END, .utc_ns = UNITS_UNKNOWN_NS, .payload_bytes = sizeof(payload) }, payload);
}

static void test_gap(void)
{
	struct packet_gap g = { .reason = PACKET_GAP_NETWORK, .n_objects = 1, .utc_ns = UNITS_UNKNOWN_NS };
	uint8_t payload[PACKET_GAP_BYTES];

	packet_gap_pack(&g, payload);
	same_as_page("GAP", (struct packet){ .type = PACKET_GAP, .track = 1, .pos = 64, .dur = 480, .seq = 1, .utc_ns = UNITS_UNKNOWN_NS,
		.payload_bytes = sizeof(payload) }, payload);
}

static void test_tags(void)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	uint8_t wanted[128], payload[512];
	size_t n = page_hex("TAGS", wanted, sizeof(wanted));

	CHECK_EQ(track_add_tag(&t, "TITLE", "Reed", false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "ARTIST", "Weir", false), ERR_OK);
	CHECK_EQ(track_packed_bytes(&t), TRACK_FIXED_BYTES + n);
	track_pack(&t, payload);
	CHECK(n > 0 && memcmp(payload + TRACK_FIXED_BYTES, wanted, n) == 0);
	track_release(&t);
}

/* The four packets make the stream whose CRC the page gives. */
static void test_whole(void)
{
	static const char *const parts[] = { "STREAM", "TRACK", "DATA", "END" };
	uint8_t all[1024];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		n += page_hex(parts[i], all + n, sizeof(all) - n);
	CHECK_EQ(n, 768);
	CHECK_EQ(crc_32c(0, all, n), 0xA4F927CF);
}

int main(void)
{
	CHECK_RUN(test_stream);
	CHECK_RUN(test_track);
	CHECK_RUN(test_data);
	CHECK_RUN(test_end);
	CHECK_RUN(test_gap);
	CHECK_RUN(test_tags);
	CHECK_RUN(test_whole);
	return check_end();
}
