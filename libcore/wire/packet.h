/*
 * The packet of the weir stream, version 1: 64 header bytes, extensions, payload, zero padding to a multiple of 64.
 * Layout only, no I/O.  Offsets and meanings: weir-stream(5).
 */
#ifndef WIRE_PACKET_H
#define WIRE_PACKET_H

#include "base/err.h"
#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_UNIT_BYTES 64u           /* everything on the wire is a multiple of this */
#define PACKET_HEADER_BYTES 64u         /* without extensions */
#define PACKET_MAX_HUNITS 16u
#define PACKET_MAX_PAYLOAD_BYTES 65536u /* every reader takes this */
#define PACKET_MAX_BIG_PAYLOAD_BYTES (16u << 20) /* only if STREAM says so and the reader opts in */
#define PACKET_SYNC 0xD2494557u
#define PACKET_VERSION 0x10
#define PACKET_MAX_TRACK 65534u

enum packet_type {
	PACKET_STREAM = 0x01,
	PACKET_TRACK = 0x02,
	PACKET_DATA = 0x03,
	PACKET_GAP = 0x04,
	PACKET_CLOCK = 0x05,
	PACKET_END = 0x06,
	PACKET_SKIP = 0x07,
	PACKET_CRITICAL = 0x80, /* this bit: a reader that does not know the type must stop */
};

enum packet_flag {
	PACKET_KEY = 0x0001,
	PACKET_DISCONT = 0x0002,
	PACKET_REPEAT = 0x0004,
	PACKET_CONCEALED = 0x0008,
	PACKET_RECOVERED = 0x0010,
	PACKET_PCRC = 0x0020,
	PACKET_SILENT = 0x0040,
	PACKET_TRIM = 0x0080,
};

/* One packet as its header says, and where its bytes lie (not owned). */
struct packet {
	uint8_t version;
	uint8_t type;
	uint8_t gen;
	uint8_t hunits;          /* header length in 64-byte units, 1…16 */
	uint16_t flags;
	uint16_t track;          /* 1…65534; 0 = the stream itself */
	uint32_t payload_bytes;
	uint32_t dur;            /* units covered (audio: frames) */
	int64_t pos;             /* first unit, in the track's time base */
	int64_t utc_ns;          /* wall-clock of pos; UNITS_UNKNOWN_NS */
	uint32_t seq;
	uint32_t object_offset_bytes;
	uint32_t object_bytes;
	uint32_t dropped;
	uint32_t sid;
	uint32_t pcrc;
	uint8_t *head;           /* hunits·64 bytes, when the packet lies in a reader; the payload may lie elsewhere */
	const uint8_t *payload;  /* payload_bytes */
};

/* Bytes of a whole packet on the wire. */
static inline size_t packet_wire_bytes(const struct packet *p)
{
	return p->hunits * (size_t)PACKET_UNIT_BYTES + (size_t)units_round_up(p->payload_bytes, PACKET_UNIT_BYTES);
}

/*
 * Unpack and check a header: sync, major version, hunits 1…16, payload_bytes ≤ max_payload_bytes, header CRC.
 * n_bytes is what may be read at `head`.  Does not look at the stream id; sets p->head, p->payload (behind the header).
 * Returns: ERR_OK; ERR_AGAIN if n_bytes is too short to decide; ERR_FORMAT if it is no header; ERR_VERSION if it is
 * a sound-looking header of another major version.
 */
enum err packet_unpack(struct packet *p, uint8_t *head, size_t n_bytes, uint32_t max_payload_bytes) WEIR_MUSTUSE;

/* Write the header, with its CRC, to head: 64 bytes.  If p->hunits > 1 the extension bytes must stand there already. */
void packet_pack(const struct packet *p, uint8_t *head);

/* A DATA packet that is a whole object of plain defaults: hunits 1, utc unknown, KEY. */
struct packet packet_data(uint16_t track, int64_t pos, uint32_t dur, uint32_t payload_bytes);

/* TLV area of announcements: tag, length, value, zero-padded to 8. */
struct packet_tlv {
	uint16_t tag;
	uint32_t n_bytes;
	const uint8_t *value;
};

/* Next TLV at *offset of area; moves *offset on.  Returns: ERR_OK, ERR_END, ERR_FORMAT (a length beyond the area). */
enum err packet_tlv_next(const uint8_t *area, size_t area_bytes, size_t *offset, struct packet_tlv *tlv) WEIR_MUSTUSE;

/* Bytes a TLV with n_bytes of value takes. */
static inline size_t packet_tlv_bytes(size_t n_bytes)
{
	return 8 + (size_t)units_round_up(n_bytes, 8);
}

/* Write a TLV at `at`, padding included.  Returns: bytes written. */
size_t packet_tlv_pack(uint8_t *at, uint16_t tag, const void *value, uint32_t n_bytes);

/* ---- control payloads ---- */

#define PACKET_STREAM_BYTES 64u
#define PACKET_GAP_BYTES 32u
#define PACKET_CLOCK_BYTES 64u
#define PACKET_END_BYTES 64u

enum packet_stream_flag { PACKET_STREAM_LIVE = 1 };

struct packet_stream {
	uint8_t uuid[16];       /* the first 4 bytes are the stream id */
	int64_t t0_utc_ns;      /* wall-clock of media time 0; UNITS_UNKNOWN_NS */
	uint32_t flags;         /* PACKET_STREAM_LIVE */
	uint32_t max_payload_bytes;
	uint32_t max_object_bytes; /* 0 = never fragmented */
	uint32_t announce_ms;   /* 0 = only at the start */
	uint16_t n_tracks;      /* so far */
	uint8_t clock_quality;  /* 0 unknown 1 free-running 2 NTP 3 PTP/TAI 4 virtual */
	int32_t tai_utc_s;      /* 0 unknown */
	uint64_t n_packets;     /* emitted before this one */
	char name[64];          /* TLV 1, may be cut; "" if none */
	char tool[64];          /* TLV 2, may be cut; "" if none */
};

enum packet_stream_tlv { PACKET_STREAM_TLV_NAME = 1, PACKET_STREAM_TLV_TOOL = 2, PACKET_STREAM_TLV_COMMENT = 3 };

enum packet_gap_reason {
	PACKET_GAP_UNKNOWN, PACKET_GAP_XRUN, PACKET_GAP_NETWORK, PACKET_GAP_DROPPED, PACKET_GAP_DTX,
	PACKET_GAP_NOT_STARTED, PACKET_GAP_DAMAGED, PACKET_GAP_PAUSED,
	PACKET_N_GAP_REASONS,
};

struct packet_gap {
	uint16_t reason;
	uint32_t n_objects;
	uint64_t skipped_bytes;
	int64_t utc_ns;
};

struct packet_clock {
	int64_t realtime_ns, monotonic_ns;
	uint8_t boot_id[16];
	int64_t media_ns;
	int32_t error_ppb;
	uint32_t uncertainty_ns;
};

enum packet_end_reason { PACKET_END_NORMAL, PACKET_END_INTERRUPTED, PACKET_END_TRUNCATED, PACKET_END_ERROR };

struct packet_end {
	uint16_t reason;
	uint64_t n_packets;      /* before it */
	uint64_t n_payload_bytes;
	int64_t end_pos;         /* END of a track */
	uint64_t dropped;
};

enum err packet_stream_unpack(struct packet_stream *s, const uint8_t *payload, size_t n_bytes) WEIR_MUSTUSE;
size_t packet_stream_pack(const struct packet_stream *s, uint8_t *payload, size_t room_bytes);
enum err packet_gap_unpack(struct packet_gap *g, const uint8_t *payload, size_t n_bytes) WEIR_MUSTUSE;
void packet_gap_pack(const struct packet_gap *g, uint8_t payload[static PACKET_GAP_BYTES]);
enum err packet_clock_unpack(struct packet_clock *c, const uint8_t *payload, size_t n_bytes) WEIR_MUSTUSE;
void packet_clock_pack(const struct packet_clock *c, uint8_t payload[static PACKET_CLOCK_BYTES]);
enum err packet_end_unpack(struct packet_end *e, const uint8_t *payload, size_t n_bytes) WEIR_MUSTUSE;
void packet_end_pack(const struct packet_end *e, uint8_t payload[static PACKET_END_BYTES]);

/* "DATA", "GAP", …, "0x41" for others (static or in *scratch). */
const char *packet_type_name(uint8_t type, char scratch[static 8]);

/* "network loss" …; "unknown" beyond the table. */
const char *packet_gap_reason_name(unsigned reason);

#endif
