/* Headers and the payloads of announcements: what is accepted is the same when packed and unpacked again. */
#include "fuzz.h"

#include "base/bytes.h"
#include "wire/crc.h"
#include "wire/packet.h"
#include "wire/track.h"

#include <string.h>

static void header(const uint8_t *data, size_t n_bytes)
{
	uint8_t head[PACKET_MAX_HUNITS * PACKET_UNIT_BYTES], again[sizeof(head)];
	size_t n = n_bytes < sizeof(head) ? n_bytes : sizeof(head);
	struct packet p;

	memcpy(head, data, n);
	/* The CRC is no obstacle: what lies behind it is what is looked for. */
	if (n >= 64 && head[15] >= 1 && head[15] <= PACKET_MAX_HUNITS && n >= head[15] * 64u) {
		put_le32(head, PACKET_SYNC);
		uint32_t crc = crc_32c(0, head, 60);
		if (head[15] > 1)
			crc = crc_32c(crc, head + 64, (head[15] - 1) * 64u);
		put_le32(head + 60, crc);
	}
	if (packet_unpack(&p, head, n, PACKET_MAX_PAYLOAD_BYTES))
		return;
	must(p.hunits >= 1 && p.hunits <= PACKET_MAX_HUNITS);
	must(p.payload_bytes <= PACKET_MAX_PAYLOAD_BYTES);
	must(packet_wire_bytes(&p) % 64 == 0 && packet_wire_bytes(&p) >= 64);
	must(p.payload == p.head + 64 * p.hunits);
	memcpy(again, head, n);
	packet_pack(&p, again);
	if (!(p.flags & PACKET_PCRC)) { /* without the flag the field says nothing, and is written as 0 */
		put_le32(head + 56, 0);
		uint32_t crc = crc_32c(0, head, 60);
		if (p.hunits > 1)
			crc = crc_32c(crc, head + 64, (p.hunits - 1) * 64u);
		put_le32(head + 60, crc);
	}
	must(!memcmp(head, again, n));
}

static void control(const uint8_t *data, size_t n_bytes)
{
	struct packet_stream s, s2;
	struct packet_gap g, g2;
	struct packet_clock c, c2;
	struct packet_end e, e2;
	uint8_t out[512], out2[512];

	if (!packet_stream_unpack(&s, data, n_bytes)) {
		must(memchr(s.name, 0, sizeof(s.name)) && memchr(s.tool, 0, sizeof(s.tool)));
		size_t n = packet_stream_pack(&s, out, sizeof(out));
		must(n <= sizeof(out) && !packet_stream_unpack(&s2, out, n));
		must(packet_stream_pack(&s2, out2, sizeof(out2)) == n && !memcmp(out, out2, n));
		must(packet_stream_pack(&s, out, 70) <= 70);
	}
	if (!packet_gap_unpack(&g, data, n_bytes)) {
		packet_gap_pack(&g, out);
		must(!packet_gap_unpack(&g2, out, PACKET_GAP_BYTES) && g2.reason == g.reason && g2.skipped_bytes == g.skipped_bytes);
		must(*packet_gap_reason_name(g.reason));
	}
	if (!packet_clock_unpack(&c, data, n_bytes)) {
		packet_clock_pack(&c, out);
		must(!packet_clock_unpack(&c2, out, PACKET_CLOCK_BYTES) && c2.media_ns == c.media_ns);
	}
	if (!packet_end_unpack(&e, data, n_bytes)) {
		packet_end_pack(&e, out);
		must(!packet_end_unpack(&e2, out, PACKET_END_BYTES) && e2.end_pos == e.end_pos && e2.reason == e.reason);
	}
}

static void track(const uint8_t *data, size_t n_bytes)
{
	struct track t = {0}, copy = {0}, back = {0};
	struct err_why why = {0};
	char name[128], channel[16], codec[8];

	enum err e = track_unpack(&t, data, n_bytes, &why);
	if (e) {
		must(*why.reason);
		return;
	}
	must(track_packed_bytes(&t) <= TRACK_MAX_BYTES);
	if (t.kind == TRACK_AUDIO)
		must(t.channels >= 1 && t.channels <= TRACK_MAX_CHANNELS && track_rate_hz(&t) >= TRACK_MIN_RATE_HZ &&
			track_rate_hz(&t) <= TRACK_MAX_RATE_HZ);
	if (track_is_pcm(&t))
		must(t.frame_bytes == t.channels * track_sample_bytes(t.sample));
	must(strlen(track_name(&t, name)) < sizeof(name));
	for (unsigned i = 0; i < 20; i++) {
		must(*track_channel_name(&t, i, channel));
		const char *tag = track_tag_at(&t, i);
		if (tag)
			fuzz_touch(tag, strlen(tag));
	}
	must(*track_kind_name(t.kind) && *track_codec_name(t.codec, codec));
	(void)track_tag(&t, "TITLE");

	/* A copy, changed and sent on, is read again with what was added and what was there. */
	must(!track_copy(&copy, &t));
	uint32_t n_group = 0, n_group2 = 0;
	bool has_group = track_tlv(&t, TRACK_TLV_GROUP, &n_group) != NULL;
	bool named = !track_set_name(&copy, "a name");
	bool tagged = !track_add_tag(&copy, "TITLE", "a title", true);
	size_t n = track_packed_bytes(&copy);
	uint8_t *packed = malloc(n);
	must(packed);
	track_pack(&copy, packed);
	must(!track_unpack(&back, packed, n, &why));
	if (named)
		must(!strcmp(track_name(&back, name), "a name"));
	if (tagged)
		must(track_tag(&back, "title") && !strcmp(track_tag(&back, "title"), "a title"));
	must((track_tlv(&back, TRACK_TLV_GROUP, &n_group2) != NULL) == has_group && n_group == n_group2);
	free(packed);
	track_release(&t);
	track_release(&copy);
	track_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	header(data, n_bytes);
	control(data, n_bytes);
	track(data, n_bytes);
	return 0;
}
