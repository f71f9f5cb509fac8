/*
 * RTCP (RFC 3550 section 6): compound packets read and written.  What weir adds to it is in net/rtcpweir.h, the figures of a
 * receiver report in net/reception.h, when to send the next in net/rtcptimer.h.
 * Pure: times and random numbers are arguments; nothing is allocated.
 *
 * A compound packet is read by rtcp_check(), then rtcp_next() until ERR_END, each packet by its own function; and written
 * into a struct rtcp_writer, one rtcp_put_…() after the other, beginning with SR or RR.
 */
#ifndef NET_RTCP_H
#define NET_RTCP_H

#include "base/err.h"
#include "base/units.h"
#include "net/rtp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTCP_MAX_BYTES 1440u      /* of a compound packet that we write */
#define RTCP_MAX_REPORTS 31u
#define RTCP_MAX_CNAME_BYTES 255u

enum rtcp_type { RTCP_SR = 200, RTCP_RR = 201, RTCP_SDES = 202, RTCP_BYE = 203, RTCP_APP = 204 };
enum rtcp_sdes { RTCP_SDES_END = 0, RTCP_SDES_CNAME = 1, RTCP_SDES_NAME = 2, RTCP_SDES_TOOL = 6 };

/* Does a datagram on a port that carries both look like RTCP?  Second byte 192…223 (RFC 5761 section 4). */
static inline bool rtcp_is_rtcp(const uint8_t *bytes, size_t n_bytes)
{
	return n_bytes >= 4 && bytes[0] >> 6 == 2 && bytes[1] >= 192 && bytes[1] <= 223;
}

/* ---- reading ---- */

struct rtcp_packet {
	uint8_t type;             /* enum rtcp_type, or another */
	uint8_t count;            /* the five bits: reports, chunks, sources, or APP's subtype */
	const uint8_t *body;      /* behind the 4 bytes of header; points into the datagram */
	size_t body_bytes;        /* without padding; a multiple of 4 unless the padding was not */
};

/*
 * A compound packet as appendix A.2 wants it: version 2, SR or RR first, padding only on the last, lengths that add up to
 * n_bytes exactly.  reduced: the first may be of any kind (RFC 5506).  Returns: ERR_OK, ERR_FORMAT.
 */
enum err rtcp_check(const uint8_t *bytes, size_t n_bytes, bool reduced) WEIR_MUSTUSE;

/* The packet at *offset, which moves on; 0 to begin.  Returns: ERR_OK, ERR_END, ERR_FORMAT. */
enum err rtcp_next(const uint8_t *bytes, size_t n_bytes, size_t *offset, struct rtcp_packet *p) WEIR_MUSTUSE;

struct rtcp_sr {
	uint32_t ssrc;
	uint64_t ntp;             /* 32.32 seconds since 1900; 0: the sender has no clock */
	uint32_t ts;              /* RTP timestamp of that moment */
	uint32_t n_packets, n_bytes; /* sent so far, mod 2^32; bytes of payload */
};

/* A report block (section 6.4.1). */
struct rtcp_report {
	uint32_t ssrc;            /* whom it is about */
	uint8_t fraction_lost;    /* of 256, since the report before */
	int32_t lost;             /* in all, −2^23…2^23 − 1: duplicates make it smaller */
	uint32_t highest_seq;     /* with the wraps in its upper half */
	uint32_t jitter;          /* in units of the timestamp */
	uint32_t last_sr;         /* middle 32 bits of the last SR's ntp; 0 none */
	uint32_t delay_last_sr;   /* since it came, in 1/65536 s */
};

/* SR without its reports; the SSRC that an RR speaks for.  Returns: ERR_OK, ERR_FORMAT (another type, too short). */
enum err rtcp_sr_unpack(const struct rtcp_packet *p, struct rtcp_sr *sr) WEIR_MUSTUSE;
enum err rtcp_rr_unpack(const struct rtcp_packet *p, uint32_t *ssrc) WEIR_MUSTUSE;
/* Report i of an SR or RR.  Returns: ERR_OK, ERR_END (no such report), ERR_FORMAT. */
enum err rtcp_report_unpack(const struct rtcp_packet *p, unsigned i, struct rtcp_report *r) WEIR_MUSTUSE;

struct rtcp_item {
	uint32_t ssrc;
	uint8_t type;             /* enum rtcp_sdes, or another */
	uint8_t n_bytes;
	const uint8_t *text;      /* n_bytes, as they came: not checked to be UTF-8 */
};

/* Items of an SDES one by one (section 6.5); zero *at to begin. */
struct rtcp_sdes_at {
	size_t offset;
	unsigned chunk;
	bool inside;
	uint32_t ssrc;
};
enum err rtcp_sdes_next(const struct rtcp_packet *p, struct rtcp_sdes_at *at, struct rtcp_item *item) WEIR_MUSTUSE;

/* Source i of a BYE; its reason, n_bytes 0 if there is none.  Returns: ERR_OK, ERR_END, ERR_FORMAT. */
enum err rtcp_bye_unpack(const struct rtcp_packet *p, unsigned i, uint32_t *ssrc) WEIR_MUSTUSE;
enum err rtcp_bye_reason(const struct rtcp_packet *p, const uint8_t **text, uint8_t *n_bytes) WEIR_MUSTUSE;

struct rtcp_app {
	uint32_t ssrc;
	uint8_t subtype;          /* 0…31 */
	char name[4];             /* not terminated */
	const uint8_t *data;
	size_t data_bytes;        /* a multiple of 4 */
};
enum err rtcp_app_unpack(const struct rtcp_packet *p, struct rtcp_app *a) WEIR_MUSTUSE;

/* ---- writing ---- */

/* What a put does not fit into leaves it as it was, and says ERR_LIMIT. */
struct rtcp_writer {
	uint8_t *bytes;           /* the caller's */
	size_t room_bytes, n_bytes;
};

enum err rtcp_put_sr(struct rtcp_writer *w, const struct rtcp_sr *sr, const struct rtcp_report *reports, unsigned n_reports) WEIR_MUSTUSE;
enum err rtcp_put_rr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_report *reports, unsigned n_reports) WEIR_MUSTUSE;
/* One chunk with a CNAME (1…255 bytes) and, unless NULL or "", a NAME. */
enum err rtcp_put_sdes(struct rtcp_writer *w, uint32_t ssrc, const char *cname, const char *name) WEIR_MUSTUSE;
/* reason may be NULL. */
enum err rtcp_put_bye(struct rtcp_writer *w, uint32_t ssrc, const char *reason) WEIR_MUSTUSE;
/* data_bytes must be a multiple of 4. */
enum err rtcp_put_app(struct rtcp_writer *w, uint32_t ssrc, uint8_t subtype, const char name[4], const void *data, size_t data_bytes) WEIR_MUSTUSE;

/* ---- time ---- */

/* Wall clock (ns since 1970 UTC) as NTP's 32.32 (section 4), and the middle 32 bits of it. */
uint64_t rtcp_ntp(int64_t utc_ns);
int64_t rtcp_ntp_utc_ns(uint64_t ntp);
static inline uint32_t rtcp_ntp_middle(uint64_t ntp)
{
	return (uint32_t)(ntp >> 16);
}

/*
 * Round trip from a report that came at ntp_now: A − LSR − DLSR (section 6.4.1).
 * Returns: ns; −1 if the report has no SR to go by, or the sum is not in 0…60 s.
 */
int64_t rtcp_round_trip_ns(uint64_t ntp_now, uint32_t last_sr, uint32_t delay_last_sr);

#endif
