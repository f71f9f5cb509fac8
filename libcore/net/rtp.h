/*
 * RTP packets (RFC 3550 section 5.1), what their numbers mean after a wrap, and when a source is taken for one (appendix A.1).
 * Pure: no clock, no socket, no allocation.
 */
#ifndef NET_RTP_H
#define NET_RTP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTP_HEADER_BYTES 12u
#define RTP_MAX_CSRC 15u
#define RTP_MAX_HEADER_BYTES (RTP_HEADER_BYTES + 4u * RTP_MAX_CSRC) /* of what rtp_pack() writes */
#define RTP_MAX_PACKET_BYTES 65507u /* of UDP over IPv4 */
#define RTP_MTU_PAYLOAD_BYTES 1440u /* with RTP, UDP and IPv6 this fills 1500 */
#define RTP_OPUS_HZ 48000u          /* the clock of Opus, whatever the sound's rate (RFC 7587 section 4.1) */

/* What is in a payload.  The numbers stand on the wire, in rtcpweir_binding_pack(). */
enum rtp_codec {
	RTP_CODEC_NONE,
	RTP_CODEC_OPUS, /* RFC 7587 */
	RTP_CODEC_L16,  /* RFC 3551 section 4.5.11 */
	RTP_CODEC_L24,  /* RFC 3190 section 4 */
	RTP_CODEC_RED,  /* RFC 2198 */
	RTP_N_CODECS,
};

/* "opus" "L16" "L24" "red" as in SDP's rtpmap; "none". */
const char *rtp_codec_name(enum rtp_codec codec);
/* Case does not matter (RFC 8866 section 6.6).  RTP_CODEC_NONE if unknown. */
enum rtp_codec rtp_codec_by_name(const char *name);
/* Bytes of a sample on the wire: 2, 3; 0 for coded ones. */
unsigned rtp_codec_sample_bytes(enum rtp_codec codec);

/* A payload type and all that it says. */
struct rtp_format {
	enum rtp_codec codec;
	uint32_t clock_hz;
	uint16_t channels;
};

/* Payload types with a meaning of their own (RFC 3551 table 4): 10 is L16/44100/2, 11 is L16/44100/1.  Returns: false for others. */
bool rtp_static_format(uint8_t pt, struct rtp_format *f);

/* ---- a packet ---- */

struct rtp {
	bool marker;
	uint8_t pt;                   /* 0…127 */
	uint16_t seq;
	uint32_t ts, ssrc;
	uint8_t n_csrc;               /* 0…15 */
	uint32_t csrc[RTP_MAX_CSRC];
	bool has_extension;           /* rtp_pack() writes none */
	uint16_t extension_id;        /* "defined by profile" */
	const uint8_t *extension;     /* points into the packet */
	size_t extension_bytes;       /* a multiple of 4 */
	const uint8_t *payload;       /* points into the packet */
	size_t payload_bytes;         /* without padding; may be 0 */
	size_t padding_bytes;
	size_t header_bytes;          /* before the payload */
};

/*
 * Take a datagram of n_bytes apart.  Checks the version, that CSRCs, extension and padding lie inside, and that the padding
 * count is not 0.  Tell RTCP apart before this (rtcp_is_rtcp()).  Role: any.
 * Returns: ERR_OK, ERR_FORMAT (nothing else).
 */
enum err rtp_unpack(struct rtp *r, const uint8_t *bytes, size_t n_bytes) WEIR_MUSTUSE;

/*
 * Write the header of *r (marker, pt, seq, ts, ssrc, CSRCs; no extension, no padding) to `to`.
 * Returns: bytes written, 12 + 4 · n_csrc; 0 if room_bytes is too small.
 */
size_t rtp_pack(const struct rtp *r, uint8_t *to, size_t room_bytes);

/* ---- numbers that wrap ---- */

/* Zero before the first; the unwrapped number begins within 2^16 (2^32) so that what came a little earlier is not negative. */
struct rtp_unwrap {
	bool started;
	int64_t highest;              /* of what was unwrapped so far */
};

/*
 * The number nearest to the highest so far that has these low bits: ROC ‖ seq of RFC 3711 section 3.3.1 for sequence numbers,
 * the same for timestamps.  The first is 2^16 + seq (2^32 + ts).  Role: any.
 */
int64_t rtp_unwrap_seq(struct rtp_unwrap *u, uint16_t seq);
int64_t rtp_unwrap_ts(struct rtp_unwrap *u, uint32_t ts);
/* The same without moving the highest: to judge before a packet is believed. */
int64_t rtp_peek_seq(const struct rtp_unwrap *u, uint16_t seq);
int64_t rtp_peek_ts(const struct rtp_unwrap *u, uint32_t ts);

/* ---- a source ---- */

#define RTP_MIN_SEQUENTIAL 2u
#define RTP_MAX_DROPOUT 3000u
#define RTP_MAX_MISORDER 100u

/* RFC 3550 appendix A.1: a source counts once it has sent two packets in sequence; a jump must be seen twice.  Zero at first. */
struct rtp_source {
	bool started;
	bool valid;
	uint8_t probation;            /* packets in sequence still wanted */
	uint16_t max_seq;
	uint32_t bad_seq;             /* what would confirm a restart; beyond 16 bits: nothing */
};

enum rtp_verdict {
	RTP_TAKE,                     /* use it */
	RTP_WAIT,                     /* on probation: keep it aside or leave it, it does not count yet */
	RTP_RESTART,                  /* use it, and forget the numbers before: the sender began anew */
	RTP_DROP,                     /* a jump that nothing confirms */
};

enum rtp_verdict rtp_source_judge(struct rtp_source *s, uint16_t seq);

#endif
