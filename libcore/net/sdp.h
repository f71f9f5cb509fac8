/*
 * Session descriptions (RFC 8866): those that netsend writes, and those of others as far as audio over RTP needs them.
 * Pure: text in, struct out; no allocation.  The way back is net/sdpwrite.h.
 *
 * What is not known is passed over, as the RFC wants; what is known and wrong is an error that names the line.
 */
#ifndef NET_SDP_H
#define NET_SDP_H

#include "base/err.h"
#include "net/rtp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SDP_MAX_BYTES 262144u      /* of a text */
#define SDP_MAX_LINE_BYTES 4096u
#define SDP_MAX_MEDIA 160u
#define SDP_MAX_FORMATS 8u         /* of one m= line; more are passed over */
#define SDP_MAX_CRYPTO 4u
#define SDP_MAX_SOURCES 4u
#define SDP_TEXT_BYTES 128u
#define SDP_FMTP_BYTES 256u

/* c= (section 5.7). */
struct sdp_address {
	bool is_set;
	bool is_ip6;
	char host[SDP_TEXT_BYTES];   /* an address or a name, without /ttl */
	int ttl;                     /* −1: none was given */
};

/* A payload type of an m= line, with its rtpmap and fmtp (section 6.6, 6.15). */
struct sdp_format {
	uint8_t pt;
	struct rtp_format rtp;       /* codec RTP_CODEC_NONE if it is not one of ours; static types are filled in */
	char encoding[32];           /* as written in the rtpmap, or "" */
	char fmtp[SDP_FMTP_BYTES];   /* the parameters, or "" */
};

/* a=crypto (RFC 4568 section 4): "1 AEAD_AES_128_GCM inline:…". */
struct sdp_crypto {
	unsigned tag;
	char suite[40];
	char key[SDP_TEXT_BYTES];    /* behind "inline:", up to '|'; base64 as it came */
};

/* a=source-filter (RFC 4570). */
struct sdp_filter {
	bool is_set, excludes;
	unsigned n_sources;
	char sources[SDP_MAX_SOURCES][64];
};

enum sdp_direction { SDP_SENDRECV, SDP_SENDONLY, SDP_RECVONLY, SDP_INACTIVE };

struct sdp_media {
	bool is_audio;               /* other kinds are kept in the list, so that places count, with what they have in common */
	uint16_t port;               /* 0: refused */
	bool is_secure;              /* RTP/SAVP or RTP/SAVPF */
	bool is_rtp;                 /* RTP/AVP, AVPF, SAVP, SAVPF */
	unsigned n_formats;
	struct sdp_format formats[SDP_MAX_FORMATS];
	struct sdp_address address;  /* the session's where the media has none */
	struct sdp_filter filter;
	enum sdp_direction direction;
	double ptime_ms, maxptime_ms; /* 0: not given */
	bool rtcp_mux;
	uint16_t rtcp_port;          /* a=rtcp (RFC 3605), else port + 1; with rtcp_mux the port itself */
	char mid[32];                /* RFC 5888 */
	bool has_ssrc;
	uint32_t ssrc;               /* of the first a=ssrc (RFC 5576) */
	char cname[SDP_TEXT_BYTES];
	unsigned n_crypto;
	struct sdp_crypto crypto[SDP_MAX_CRYPTO];
	char label[SDP_TEXT_BYTES];  /* i=: what people call it */
	char ts_refclk[SDP_TEXT_BYTES]; /* RFC 7273, the session's where the media has none; "" */
	char mediaclk[SDP_TEXT_BYTES];
	char channel_order[64];      /* of the fmtp, "SMPTE2110.(ST)"; "" */
};

struct sdp {
	char user[64], id[32], version[32]; /* o= */
	struct sdp_address origin;
	char name[SDP_TEXT_BYTES];   /* s= */
	char info[SDP_TEXT_BYTES];   /* i= */
	char tool[64];               /* a=tool */
	struct sdp_address address;
	char groups[4][SDP_TEXT_BYTES]; /* a=group: "BUNDLE 1 2" */
	unsigned n_groups;
	unsigned n_media;
	struct sdp_media media[SDP_MAX_MEDIA];
};

/*
 * Parse n_bytes of text (lines end in CR LF, LF or CR; a NUL ends it).  *s is overwritten whole; it is large: not for a stack.
 * Returns: ERR_OK; ERR_FORMAT with *why: "line 7: m=audio without a port"; ERR_LIMIT: longer than SDP_MAX_BYTES, a line longer
 * than SDP_MAX_LINE_BYTES, more than SDP_MAX_MEDIA.
 */
enum err sdp_parse(struct sdp *s, const char *text, size_t n_bytes, const char *name, struct err_why *why) WEIR_MUSTUSE;

/* Text that may stand in a value: control characters become '_', cut to fit at a whole UTF-8 character.  Returns: out. */
const char *sdp_clean(const char *text, char *out, size_t out_bytes);

/* The value of a parameter in a fmtp ("stereo" in "stereo=1;usedtx=0"), or NULL if it is not there.  Case does not matter. */
const char *sdp_fmtp(const char *fmtp, const char *key, char *out, size_t out_bytes);

/* The first format of an audio m= line that is one of ours, RED last, or NULL. */
const struct sdp_format *sdp_choose(const struct sdp_media *m);
/* The format of a payload type, or NULL. */
const struct sdp_format *sdp_by_pt(const struct sdp_media *m, uint8_t pt);

#endif
