/*
 * Streams made packet by packet for the tests, independent of the writer: every field under the test's control.
 */
#ifndef STREAM_MAKER_H
#define STREAM_MAKER_H

#include "base/bytes.h"
#include "wire/crc.h"
#include "wire/packet.h"
#include "wire/track.h"

#include <stdlib.h>
#include <string.h>

struct maker {
	uint8_t *bytes;
	size_t n_bytes, room_bytes;
	uint32_t sid;
	bool no_pcrc;
	unsigned n_packets;
	size_t last;             /* where the last packet begins */
};

static inline void maker_release(struct maker *m)
{
	free(m->bytes);
	*m = (struct maker){0};
}

static inline void maker_raw(struct maker *m, const void *bytes, size_t n_bytes)
{
	if (m->n_bytes + n_bytes > m->room_bytes) {
		m->room_bytes = 2 * (m->n_bytes + n_bytes);
		m->bytes = realloc(m->bytes, m->room_bytes);
		if (!m->bytes)
			abort();
	}
	if (n_bytes)
		memcpy(m->bytes + m->n_bytes, bytes, n_bytes);
	m->n_bytes += n_bytes;
}

/* Any packet; extension bytes are zeros.  sid 0 becomes the stream's, object_bytes 0 the whole payload. */
static inline void maker_packet(struct maker *m, struct packet p, const void *payload)
{
	static const uint8_t zeros[PACKET_MAX_HUNITS * PACKET_UNIT_BYTES];
	if (!p.hunits)
		p.hunits = 1;
	if (!p.sid)
		p.sid = m->sid;
	if (!p.object_bytes)
		p.object_bytes = p.payload_bytes;
	if (!m->no_pcrc) {
		p.flags |= PACKET_PCRC;
		p.pcrc = crc_32c(0, payload, p.payload_bytes);
	}
	m->last = m->n_bytes;
	maker_raw(m, zeros, p.hunits * (size_t)PACKET_UNIT_BYTES);
	packet_pack(&p, m->bytes + m->last);
	maker_raw(m, payload, p.payload_bytes);
	maker_raw(m, zeros, (size_t)units_round_up(p.payload_bytes, PACKET_UNIT_BYTES) - p.payload_bytes);
	m->n_packets++;
}

static inline void maker_stream_with(struct maker *m, uint32_t sid, uint16_t flags, uint32_t max_payload_bytes)
{
	uint8_t payload[256];
	struct packet_stream s = {.t0_utc_ns = UNITS_UNKNOWN_NS, .max_payload_bytes = max_payload_bytes, .tool = "test"};
	put_le32(s.uuid, sid);
	m->sid = sid;
	size_t n = packet_stream_pack(&s, payload, sizeof(payload));
	maker_packet(m, (struct packet){.type = PACKET_STREAM, .flags = flags, .payload_bytes = (uint32_t)n,
		.utc_ns = UNITS_UNKNOWN_NS}, payload);
}

static inline void maker_stream(struct maker *m, uint32_t sid)
{
	maker_stream_with(m, sid, 0, PACKET_MAX_PAYLOAD_BYTES);
}

static inline void maker_track(struct maker *m, uint16_t id, uint8_t gen, uint16_t flags, const struct track *t)
{
	size_t n = track_packed_bytes(t);
	uint8_t *payload = malloc(n);
	if (!payload)
		abort();
	track_pack(t, payload);
	payload[58] = gen;
	maker_packet(m, (struct packet){.type = PACKET_TRACK, .flags = flags, .track = id, .gen = gen,
		.payload_bytes = (uint32_t)n, .utc_ns = UNITS_UNKNOWN_NS}, payload);
	free(payload);
}

/* Mono s16 at a rate, beginning at first_pos. */
static inline void maker_mono(struct maker *m, uint16_t id, uint8_t gen, uint32_t rate_hz, int64_t first_pos)
{
	struct track t = track_pcm(rate_hz, 1, SAMPLE_S16);
	t.first_pos = t.next_pos = first_pos;
	maker_track(m, id, gen, 0, &t);
}

/* The sample that stands at a place of a track: what a reader must find there. */
static inline uint16_t maker_sample(unsigned track, int64_t pos)
{
	return (uint16_t)(((uint64_t)pos * 0x9e3779b97f4a7c15u + track * 0x1234567u) >> 40);
}

static inline struct packet maker_mono_packet(uint16_t id, int64_t pos, uint32_t dur, uint32_t seq)
{
	struct packet p = packet_data(id, pos, dur, 2 * dur);
	p.seq = seq;
	return p;
}

/* A mono s16 packet of the track's own samples; what else it says stands in p. */
static inline void maker_mono_data(struct maker *m, struct packet p)
{
	uint8_t *payload = malloc(p.payload_bytes + 1u);
	if (!payload)
		abort();
	for (uint32_t i = 0; i < p.payload_bytes / 2; i++)
		put_le16(payload + 2 * i, maker_sample(p.track, (int64_t)((uint64_t)p.pos + i)));
	maker_packet(m, p, payload);
	free(payload);
}

static inline void maker_gap(struct maker *m, uint16_t id, int64_t pos, uint32_t dur, unsigned reason)
{
	uint8_t payload[PACKET_GAP_BYTES];
	struct packet_gap g = {.reason = (uint16_t)reason, .utc_ns = UNITS_UNKNOWN_NS};
	packet_gap_pack(&g, payload);
	maker_packet(m, (struct packet){.type = PACKET_GAP, .track = id, .pos = pos, .dur = dur,
		.payload_bytes = PACKET_GAP_BYTES, .utc_ns = UNITS_UNKNOWN_NS}, payload);
}

/* track 0 is the stream's own end. */
static inline void maker_end(struct maker *m, uint16_t id, int64_t end_pos, unsigned reason)
{
	uint8_t payload[PACKET_END_BYTES];
	struct packet_end e = {.reason = (uint16_t)reason, .n_packets = m->n_packets, .end_pos = end_pos};
	packet_end_pack(&e, payload);
	maker_packet(m, (struct packet){.type = PACKET_END, .track = id, .payload_bytes = PACKET_END_BYTES,
		.utc_ns = UNITS_UNKNOWN_NS}, payload);
}

#endif
