/*
 * RTCP (RFC 3550 section 6): compound packets read and written, the figures of a receiver report, and when to send the next.
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

/* ---- APP "WEIR": what plain RTP cannot say ---- */

#define RTCP_WEIR_NAME "WEIR"
enum rtcp_weir { RTCP_WEIR_BINDING = 1, RTCP_WEIR_LOSS = 2, RTCP_WEIR_PING = 3, RTCP_WEIR_PONG = 4 };

#define RTCP_MAX_TRACK_NAME_BYTES 127u
#define RTCP_MAX_BINDING_BYTES 192u
#define RTCP_UNKNOWN_POS INT64_MIN

/*
 * A flow's place in the weir stream that it carries: timestamp ts0 is position pos0 of the track, both at the flow's clock
 * where that is the track's rate.  Sent by netsend when it begins, once a second, when it changes, and with BYE.
 */
struct rtcp_binding {
	uint32_t ssrc;
	uint16_t track;           /* of the sender's stream */
	uint8_t gen;              /* counts up when pos0 or ts0 change other than by going on */
	uint8_t pt;
	enum rtp_codec codec;
	uint8_t sample;           /* enum sample of the track before it was sent, so that it can be made again; 0 unknown */
	uint16_t channels;        /* of the flow */
	uint16_t first_channel;   /* of the track: 0, 8, 16 … when it is split */
	uint16_t all_channels;    /* of the track */
	uint32_t rate_hz;         /* of the track; Opus: 48000 */
	uint32_t ts0;
	int64_t pos0;
	uint32_t roc;             /* RFC 3711's rollover counter now; 0 if the flow is not encrypted */
	uint16_t seq;             /* next one, that the ROC goes with */
	int64_t first_pos;        /* the track's: what decodes to before it is discarded */
	int64_t end_pos;          /* RTCP_UNKNOWN_POS, or where the track ended */
	int64_t utc_ns;           /* wall clock of pos0; INT64_MIN unknown */
	char name[RTCP_MAX_TRACK_NAME_BYTES + 1]; /* of the track, valid UTF-8 or ""; cut to fit */
};

/* The data of the APP packet (without its 12 bytes of header).  Returns: bytes written, a multiple of 4, ≤ RTCP_MAX_BINDING_BYTES. */
size_t rtcp_binding_pack(const struct rtcp_binding *b, uint8_t data[static RTCP_MAX_BINDING_BYTES]);
/* Returns: ERR_OK; ERR_FORMAT: not this, too short, or a rate, count or name that cannot be. */
enum err rtcp_binding_unpack(const struct rtcp_app *a, struct rtcp_binding *b) WEIR_MUSTUSE;

#define RTCP_N_BURSTS 16u
#define RTCP_N_BINS 4u
#define RTCP_LOSS_BYTES 80u

/* What a receiver tells a weir sender every 250 ms, so that it can choose its redundancy. */
struct rtcp_loss {
	uint32_t ssrc;            /* whom it is about */
	uint16_t interval_ms;     /* the counts below are of so long */
	uint16_t bins[RTCP_N_BINS]; /* packets lost in each of the last 100 ms pieces, the newest last */
	uint32_t expected, lost;  /* packets on the wire, before any repair */
	uint32_t repaired;        /* of those lost, had again by RED, RS or FEC */
	uint32_t late;            /* came, and could not be used any more */
	uint16_t bursts[RTCP_N_BURSTS]; /* losses in a row by length: see rtcp_burst_bin() */
	uint32_t jitter_us;
	uint32_t depth_us;        /* of the jitter buffer: a copy that comes later is waste */
	uint32_t last_sr, delay_last_sr; /* as in a report, for the round trip */
};

/* Lengths 1…8 have bins of their own; then 9–10, 11–12, 13–16, 17–24, 25–32, 33–48, 49–64, longer. */
unsigned rtcp_burst_bin(unsigned n_packets);
/* The longest of a bin (64 for the last but one, 128 for the last). */
unsigned rtcp_burst_packets(unsigned bin);

void rtcp_loss_pack(const struct rtcp_loss *l, uint8_t data[static RTCP_LOSS_BYTES]);
enum err rtcp_loss_unpack(const struct rtcp_app *a, struct rtcp_loss *l) WEIR_MUSTUSE;

#define RTCP_PING_BYTES 12u

/*
 * A receiver asks a weir sender, which answers with the same data under RTCP_WEIR_PONG: the round trip, which a receiver has no
 * report to find from.
 */
struct rtcp_ping {
	uint32_t ssrc;            /* the flow that is asked */
	uint64_t token;           /* the receiver's, that comes back */
};

void rtcp_ping_pack(const struct rtcp_ping *p, uint8_t data[static RTCP_PING_BYTES]);
/* Returns: ERR_OK; ERR_FORMAT: another subtype than `subtype`, or too short. */
enum err rtcp_ping_unpack(const struct rtcp_app *a, uint8_t subtype, struct rtcp_ping *p) WEIR_MUSTUSE;

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

/* ---- what a receiver counts of a source (appendix A.3, A.8) ---- */

struct rtcp_reception {
	bool started;
	struct rtp_unwrap seq;
	int64_t base_seq;         /* first, unwrapped */
	uint64_t n_received;      /* duplicates too, as the RFC has it */
	uint64_t expected_prior, received_prior;
	uint32_t transit;         /* of the packet before, in units of the timestamp */
	double jitter;            /* in units of the timestamp */
	uint32_t last_sr;         /* of the source; 0 none */
	int64_t sr_arrival_ns;
};

/* A packet came at arrival_ns (any clock that goes on evenly).  clock_hz is the timestamp's.  Role: any. */
void rtcp_reception_take(struct rtcp_reception *r, uint16_t seq, uint32_t ts, int64_t arrival_ns, uint32_t clock_hz);
void rtcp_reception_sr(struct rtcp_reception *r, const struct rtcp_sr *sr, int64_t arrival_ns);
/* The report block of now; the fraction is since the call before. */
struct rtcp_report rtcp_reception_report(struct rtcp_reception *r, uint32_t ssrc, int64_t now_ns);
/* Packets that should have come by now, and did not; may be negative. */
int64_t rtcp_reception_lost(const struct rtcp_reception *r);

/* ---- when to send (section 6.2, 6.3, appendix A.7) ---- */

#define RTCP_MIN_INTERVAL_NS (5 * UNITS_NS_PER_S)

struct rtcp_timer {
	double bandwidth_bps;     /* of the session; RTCP takes 5 % */
	bool reduced_minimum;     /* 360 s ÷ kb/s instead of 5 s, where that is less */
	bool we_send;
	bool initial;             /* nothing sent yet */
	unsigned n_members, n_senders; /* of them; we are one */
	unsigned n_members_before; /* when next_ns was set */
	double average_bytes;     /* of compound packets, with IP and UDP headers */
	int64_t last_ns, next_ns; /* sent; to be considered */
};

/*
 * Begin at now_ns.  random: 0 ≤ random < 1, here and below; new for each call.
 * first_bytes: what the first compound packet is expected to take, headers of IP and UDP included.
 */
void rtcp_timer_init(struct rtcp_timer *t, double bandwidth_bps, bool we_send, size_t first_bytes, int64_t now_ns, double random);
/* The interval that would be drawn now: deterministic · (0.5…1.5) ÷ (e − 3/2). */
int64_t rtcp_timer_interval_ns(const struct rtcp_timer *t, double random);
/*
 * At or after next_ns: is it time?  Reconsiders (section 6.3.6): with more members than thought, the time moves on.
 * Returns: true: send now, then say rtcp_timer_sent(); false: next_ns is later now.
 */
bool rtcp_timer_due(struct rtcp_timer *t, int64_t now_ns, double random);
void rtcp_timer_sent(struct rtcp_timer *t, size_t n_bytes, int64_t now_ns, double random);
/* Another compound packet came in: its size counts into the average. */
void rtcp_timer_heard(struct rtcp_timer *t, size_t n_bytes);
/* Members are now so many; fewer than before pull the time nearer (section 6.3.4). */
void rtcp_timer_members(struct rtcp_timer *t, unsigned n_members, unsigned n_senders, int64_t now_ns);

#endif
