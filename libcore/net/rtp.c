#include "net/rtp.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <strings.h>

#define VERSION 2u
#define SEQ_SPAN (1 << 16)
#define TS_SPAN (1LL << 32)
#define NO_SEQ 0x10000u /* beyond 16 bits: matches nothing */

/* ---- what is in a payload ---- */

const char *rtp_codec_name(enum rtp_codec codec)
{
	static const char *const names[RTP_N_CODECS] = { "none", "opus", "L16", "L24", "red" };

	return (unsigned)codec < RTP_N_CODECS ? names[codec] : "none";
}

enum rtp_codec rtp_codec_by_name(const char *name)
{
	for (unsigned i = RTP_CODEC_NONE + 1; i < RTP_N_CODECS; i++) {
		if (!strcasecmp(name, rtp_codec_name(i)))
			return i;
	}
	return RTP_CODEC_NONE;
}

unsigned rtp_codec_sample_bytes(enum rtp_codec codec)
{
	return codec == RTP_CODEC_L16 ? 2 : codec == RTP_CODEC_L24 ? 3 : 0;
}

bool rtp_static_format(uint8_t pt, struct rtp_format *f)
{
	if (pt != 10 && pt != 11)
		return false;
	*f = (struct rtp_format){ RTP_CODEC_L16, 44100, pt == 10 ? 2 : 1 };
	return true;
}

/* ---- a packet ---- */

enum err rtp_unpack(struct rtp *r, const uint8_t *bytes, size_t n_bytes)
{
	size_t at = RTP_HEADER_BYTES;

	if (n_bytes < RTP_HEADER_BYTES || bytes[0] >> 6 != VERSION)
		return ERR_FORMAT;
	*r = (struct rtp){
		.marker = bytes[1] >> 7,
		.pt = bytes[1] & 0x7f,
		.seq = get_be16(bytes + 2),
		.ts = get_be32(bytes + 4),
		.ssrc = get_be32(bytes + 8),
		.n_csrc = bytes[0] & 0x0f,
		.has_extension = bytes[0] >> 4 & 1,
	};
	if (n_bytes - at < 4u * r->n_csrc)
		return ERR_FORMAT;
	for (unsigned i = 0; i < r->n_csrc; i++, at += 4)
		r->csrc[i] = get_be32(bytes + at);
	if (r->has_extension) {
		if (n_bytes - at < 4)
			return ERR_FORMAT;
		r->extension_id = get_be16(bytes + at);
		r->extension_bytes = 4u * get_be16(bytes + at + 2);
		at += 4;
		if (n_bytes - at < r->extension_bytes)
			return ERR_FORMAT;
		r->extension = bytes + at;
		at += r->extension_bytes;
	}
	if (bytes[0] >> 5 & 1) {
		r->padding_bytes = n_bytes > at ? bytes[n_bytes - 1] : 0;
		if (r->padding_bytes == 0 || r->padding_bytes > n_bytes - at)
			return ERR_FORMAT;
	}
	r->header_bytes = at;
	r->payload = bytes + at;
	r->payload_bytes = n_bytes - at - r->padding_bytes;
	return ERR_OK;
}

size_t rtp_pack(const struct rtp *r, uint8_t *to, size_t room_bytes)
{
	size_t n = RTP_HEADER_BYTES + 4u * r->n_csrc;

	if (r->n_csrc > RTP_MAX_CSRC || room_bytes < n)
		return 0;
	to[0] = (uint8_t)(VERSION << 6 | r->n_csrc);
	to[1] = (uint8_t)((r->marker ? 0x80 : 0) | (r->pt & 0x7f));
	put_be16(to + 2, r->seq);
	put_be32(to + 4, r->ts);
	put_be32(to + 8, r->ssrc);
	for (unsigned i = 0; i < r->n_csrc; i++)
		put_be32(to + RTP_HEADER_BYTES + 4 * i, r->csrc[i]);
	return n;
}

/* ---- numbers that wrap ---- */

int64_t rtp_peek_seq(const struct rtp_unwrap *u, uint16_t seq)
{
	if (!u->started)
		return SEQ_SPAN + seq;
	return u->highest + (int16_t)(uint16_t)(seq - (uint16_t)u->highest);
}

int64_t rtp_peek_ts(const struct rtp_unwrap *u, uint32_t ts)
{
	if (!u->started)
		return TS_SPAN + ts;
	return u->highest + (int32_t)(ts - (uint32_t)u->highest);
}

static int64_t keep(struct rtp_unwrap *u, int64_t n)
{
	if (!u->started || n > u->highest)
		u->highest = n;
	u->started = true;
	return n;
}

int64_t rtp_unwrap_seq(struct rtp_unwrap *u, uint16_t seq)
{
	return keep(u, rtp_peek_seq(u, seq));
}

int64_t rtp_unwrap_ts(struct rtp_unwrap *u, uint32_t ts)
{
	return keep(u, rtp_peek_ts(u, ts));
}

/* ---- a source ---- */

enum rtp_verdict rtp_source_judge(struct rtp_source *s, uint16_t seq)
{
	uint16_t ahead = (uint16_t)(seq - s->max_seq);

	if (!s->started) {
		*s = (struct rtp_source){ .started = true, .probation = RTP_MIN_SEQUENTIAL - 1, .max_seq = seq, .bad_seq = NO_SEQ };
		return RTP_WAIT;
	}
	if (!s->valid) {
		bool follows = ahead == 1;

		s->max_seq = seq;
		s->probation = (uint8_t)((follows ? s->probation : RTP_MIN_SEQUENTIAL) - 1u);
		s->valid = s->probation == 0;
		return s->valid ? RTP_TAKE : RTP_WAIT;
	}
	if (ahead < RTP_MAX_DROPOUT) {
		s->max_seq = seq;
	} else if (ahead <= UINT16_MAX - RTP_MAX_MISORDER) {
		/* A very large jump: the sender began anew if the next one follows it. */
		bool confirmed = seq == s->bad_seq;

		s->bad_seq = (uint16_t)(seq + 1);
		if (!confirmed)
			return RTP_DROP;
		s->max_seq = seq;
		s->bad_seq = NO_SEQ;
		return RTP_RESTART;
	}
	return RTP_TAKE;
}
