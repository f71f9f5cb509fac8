#include "wire/packet.h"

#include "base/bytes.h"
#include "wire/crc.h"

#include <stdio.h>
#include <string.h>

static uint32_t header_crc(const uint8_t *head, unsigned hunits)
{
	uint32_t crc = crc_32c(0, head, 60);
	if (hunits > 1)
		crc = crc_32c(crc, head + PACKET_HEADER_BYTES, (hunits - 1) * (size_t)PACKET_UNIT_BYTES);
	return crc;
}

enum err packet_unpack(struct packet *p, uint8_t *head, size_t n_bytes, uint32_t max_payload_bytes)
{
	if (n_bytes < 4)
		return ERR_AGAIN;
	if (get_le32(head) != PACKET_SYNC)
		return ERR_FORMAT;
	if (n_bytes < PACKET_HEADER_BYTES)
		return ERR_AGAIN;

	unsigned hunits = head[15];
	if (hunits < 1 || hunits > PACKET_MAX_HUNITS)
		return ERR_FORMAT;
	if (n_bytes < hunits * (size_t)PACKET_UNIT_BYTES)
		return ERR_AGAIN;
	if (get_le32(head + 60) != header_crc(head, hunits))
		return ERR_FORMAT;
	if (head[4] >> 4 != PACKET_VERSION >> 4)
		return ERR_VERSION;
	if (get_le32(head + 8) > max_payload_bytes)
		return ERR_FORMAT;

	*p = (struct packet){
		.version = head[4],
		.type = head[5],
		.flags = get_le16(head + 6),
		.payload_bytes = get_le32(head + 8),
		.track = get_le16(head + 12),
		.gen = head[14],
		.hunits = (uint8_t)hunits,
		.pos = (int64_t)get_le64(head + 16),
		.dur = get_le32(head + 24),
		.seq = get_le32(head + 28),
		.utc_ns = (int64_t)get_le64(head + 32),
		.object_offset_bytes = get_le32(head + 40),
		.object_bytes = get_le32(head + 44),
		.dropped = get_le32(head + 48),
		.sid = get_le32(head + 52),
		.pcrc = get_le32(head + 56),
		.head = head,
		.payload = head + hunits * (size_t)PACKET_UNIT_BYTES,
	};
	return ERR_OK;
}

void packet_pack(const struct packet *p, uint8_t *head)
{
	put_le32(head, PACKET_SYNC);
	head[4] = p->version ? p->version : PACKET_VERSION;
	head[5] = p->type;
	put_le16(head + 6, p->flags);
	put_le32(head + 8, p->payload_bytes);
	put_le16(head + 12, p->track);
	head[14] = p->gen;
	head[15] = p->hunits;
	put_le64(head + 16, (uint64_t)p->pos);
	put_le32(head + 24, p->dur);
	put_le32(head + 28, p->seq);
	put_le64(head + 32, (uint64_t)p->utc_ns);
	put_le32(head + 40, p->object_offset_bytes);
	put_le32(head + 44, p->object_bytes);
	put_le32(head + 48, p->dropped);
	put_le32(head + 52, p->sid);
	put_le32(head + 56, p->flags & PACKET_PCRC ? p->pcrc : 0);
	put_le32(head + 60, header_crc(head, p->hunits));
}

struct packet packet_data(uint16_t track, int64_t pos, uint32_t dur, uint32_t payload_bytes)
{
	return (struct packet){
		.version = PACKET_VERSION, .type = PACKET_DATA, .hunits = 1, .flags = PACKET_KEY, .track = track, .pos = pos,
		.dur = dur, .payload_bytes = payload_bytes, .object_bytes = payload_bytes, .utc_ns = UNITS_UNKNOWN_NS,
	};
}

enum err packet_tlv_next(const uint8_t *area, size_t area_bytes, size_t *offset, struct packet_tlv *tlv)
{
	if (area_bytes - *offset < 8) /* what is left is padding */
		return ERR_END;

	const uint8_t *at = area + *offset;
	uint32_t n_bytes = get_le32(at + 4);
	size_t left = area_bytes - *offset - 8;
	if (get_le16(at) == 0 && n_bytes == 0)
		return ERR_END;
	if (n_bytes > left)
		return ERR_FORMAT;
	*tlv = (struct packet_tlv){ .tag = get_le16(at), .n_bytes = n_bytes, .value = at + 8 };

	size_t step = packet_tlv_bytes(n_bytes);
	*offset += step < left + 8 ? step : left + 8;
	return ERR_OK;
}

size_t packet_tlv_pack(uint8_t *at, uint16_t tag, const void *value, uint32_t n_bytes)
{
	size_t total = packet_tlv_bytes(n_bytes);

	put_le16(at, tag);
	put_le16(at + 2, 0);
	put_le32(at + 4, n_bytes);
	if (n_bytes)
		memcpy(at + 8, value, n_bytes);
	memset(at + 8 + n_bytes, 0, total - 8 - n_bytes);
	return total;
}

static void take_text(char *out, size_t out_bytes, const struct packet_tlv *tlv)
{
	size_t n = tlv->n_bytes < out_bytes - 1 ? tlv->n_bytes : out_bytes - 1;
	memcpy(out, tlv->value, n);
	out[n] = 0;
}

enum err packet_stream_unpack(struct packet_stream *s, const uint8_t *p, size_t n_bytes)
{
	if (n_bytes < PACKET_STREAM_BYTES)
		return ERR_FORMAT;
	*s = (struct packet_stream){
		.t0_utc_ns = (int64_t)get_le64(p + 16),
		.flags = get_le32(p + 24),
		.max_payload_bytes = get_le32(p + 28),
		.max_object_bytes = get_le32(p + 32),
		.announce_ms = get_le32(p + 36),
		.n_tracks = get_le16(p + 40),
		.clock_quality = p[42],
		.tai_utc_s = (int32_t)get_le32(p + 44),
		.n_packets = get_le64(p + 48),
	};
	memcpy(s->uuid, p, sizeof(s->uuid));

	struct packet_tlv tlv;
	size_t offset = PACKET_STREAM_BYTES;
	enum err e;
	while ((e = packet_tlv_next(p, n_bytes, &offset, &tlv)) == ERR_OK) {
		if (tlv.tag == PACKET_STREAM_TLV_NAME)
			take_text(s->name, sizeof(s->name), &tlv);
		else if (tlv.tag == PACKET_STREAM_TLV_TOOL)
			take_text(s->tool, sizeof(s->tool), &tlv);
		else if (tlv.tag & 0x8000)
			return ERR_VERSION;
	}
	return e == ERR_END ? ERR_OK : e;
}

size_t packet_stream_pack(const struct packet_stream *s, uint8_t *p, size_t room_bytes)
{
	size_t n = PACKET_STREAM_BYTES;

	memset(p, 0, PACKET_STREAM_BYTES);
	memcpy(p, s->uuid, sizeof(s->uuid));
	put_le64(p + 16, (uint64_t)s->t0_utc_ns);
	put_le32(p + 24, s->flags);
	put_le32(p + 28, s->max_payload_bytes);
	put_le32(p + 32, s->max_object_bytes);
	put_le32(p + 36, s->announce_ms);
	put_le16(p + 40, s->n_tracks);
	p[42] = s->clock_quality;
	put_le32(p + 44, (uint32_t)s->tai_utc_s);
	put_le64(p + 48, s->n_packets);

	const struct {
		uint16_t tag;
		const char *text;
	} texts[] = { { PACKET_STREAM_TLV_NAME, s->name }, { PACKET_STREAM_TLV_TOOL, s->tool } };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t length = strlen(texts[i].text);
		if (length && n + packet_tlv_bytes(length) <= room_bytes)
			n += packet_tlv_pack(p + n, texts[i].tag, texts[i].text, (uint32_t)length);
	}
	return n;
}

enum err packet_gap_unpack(struct packet_gap *g, const uint8_t *p, size_t n_bytes)
{
	if (n_bytes < PACKET_GAP_BYTES)
		return ERR_FORMAT;
	*g = (struct packet_gap){
		.reason = get_le16(p),
		.n_objects = get_le32(p + 4),
		.skipped_bytes = get_le64(p + 8),
		.utc_ns = (int64_t)get_le64(p + 16),
	};
	return ERR_OK;
}

void packet_gap_pack(const struct packet_gap *g, uint8_t p[static PACKET_GAP_BYTES])
{
	memset(p, 0, PACKET_GAP_BYTES);
	put_le16(p, g->reason);
	put_le32(p + 4, g->n_objects);
	put_le64(p + 8, g->skipped_bytes);
	put_le64(p + 16, (uint64_t)g->utc_ns);
}

enum err packet_clock_unpack(struct packet_clock *c, const uint8_t *p, size_t n_bytes)
{
	if (n_bytes < PACKET_CLOCK_BYTES)
		return ERR_FORMAT;
	*c = (struct packet_clock){
		.realtime_ns = (int64_t)get_le64(p),
		.monotonic_ns = (int64_t)get_le64(p + 8),
		.media_ns = (int64_t)get_le64(p + 32),
		.error_ppb = (int32_t)get_le32(p + 40),
		.uncertainty_ns = get_le32(p + 44),
	};
	memcpy(c->boot_id, p + 16, sizeof(c->boot_id));
	return ERR_OK;
}

void packet_clock_pack(const struct packet_clock *c, uint8_t p[static PACKET_CLOCK_BYTES])
{
	memset(p, 0, PACKET_CLOCK_BYTES);
	put_le64(p, (uint64_t)c->realtime_ns);
	put_le64(p + 8, (uint64_t)c->monotonic_ns);
	memcpy(p + 16, c->boot_id, sizeof(c->boot_id));
	put_le64(p + 32, (uint64_t)c->media_ns);
	put_le32(p + 40, (uint32_t)c->error_ppb);
	put_le32(p + 44, c->uncertainty_ns);
}

enum err packet_end_unpack(struct packet_end *e, const uint8_t *p, size_t n_bytes)
{
	if (n_bytes < PACKET_END_BYTES)
		return ERR_FORMAT;
	*e = (struct packet_end){
		.reason = get_le16(p),
		.n_packets = get_le64(p + 8),
		.n_payload_bytes = get_le64(p + 16),
		.end_pos = (int64_t)get_le64(p + 24),
		.dropped = get_le64(p + 32),
	};
	return ERR_OK;
}

void packet_end_pack(const struct packet_end *e, uint8_t p[static PACKET_END_BYTES])
{
	memset(p, 0, PACKET_END_BYTES);
	put_le16(p, e->reason);
	put_le64(p + 8, e->n_packets);
	put_le64(p + 16, e->n_payload_bytes);
	put_le64(p + 24, (uint64_t)e->end_pos);
	put_le64(p + 32, e->dropped);
}

const char *packet_type_name(uint8_t type, char scratch[static 8])
{
	static const char *const names[] = {
		[PACKET_STREAM] = "STREAM", [PACKET_TRACK] = "TRACK", [PACKET_DATA] = "DATA", [PACKET_GAP] = "GAP",
		[PACKET_CLOCK] = "CLOCK", [PACKET_END] = "END", [PACKET_SKIP] = "SKIP",
	};
	if (type < ARRAY_LEN(names) && names[type])
		return names[type];
	snprintf(scratch, 8, "0x%02X", type);
	return scratch;
}

const char *packet_gap_reason_name(unsigned reason)
{
	static const char *const names[PACKET_N_GAP_REASONS] = {
		"unknown", "capture xrun", "network loss", "dropped by policy", "DTX or mute", "not started", "damaged bytes", "paused",
	};
	return reason < PACKET_N_GAP_REASONS ? names[reason] : names[0];
}
