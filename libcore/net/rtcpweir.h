/*
 * RTCP's APP packets of the name WEIR: what plain RTP cannot say of a flow.  Pure: bytes in, struct out, and back.
 */
#ifndef NET_RTCPWEIR_H
#define NET_RTCPWEIR_H

#include "net/rtcp.h"

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
size_t rtcpweir_binding_pack(const struct rtcp_binding *b, uint8_t data[static RTCP_MAX_BINDING_BYTES]);
/* Returns: ERR_OK; ERR_FORMAT: not this, too short, or a rate, count or name that cannot be. */
enum err rtcpweir_binding_unpack(const struct rtcp_app *a, struct rtcp_binding *b) WEIR_MUSTUSE;

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
	uint16_t bursts[RTCP_N_BURSTS]; /* losses in a row by length: see rtcpweir_burst_bin() */
	uint32_t jitter_us;
	uint32_t depth_us;        /* of the jitter buffer: a copy that comes later is waste */
	uint32_t last_sr, delay_last_sr; /* as in a report, for the round trip */
};

/* Lengths 1…8 have bins of their own; then 9–10, 11–12, 13–16, 17–24, 25–32, 33–48, 49–64, longer. */
unsigned rtcpweir_burst_bin(unsigned n_packets);
/* The longest of a bin (64 for the last but one, 128 for the last). */
unsigned rtcpweir_burst_packets(unsigned bin);

void rtcpweir_loss_pack(const struct rtcp_loss *l, uint8_t data[static RTCP_LOSS_BYTES]);
enum err rtcpweir_loss_unpack(const struct rtcp_app *a, struct rtcp_loss *l) WEIR_MUSTUSE;

#define RTCP_PING_BYTES 12u

/*
 * A receiver asks a weir sender, which answers with the same data under RTCP_WEIR_PONG: the round trip, which a receiver has no
 * report to find from.
 */
struct rtcp_ping {
	uint32_t ssrc;            /* the flow that is asked */
	uint64_t token;           /* the receiver's, that comes back */
};

void rtcpweir_ping_pack(const struct rtcp_ping *p, uint8_t data[static RTCP_PING_BYTES]);
/* Returns: ERR_OK; ERR_FORMAT: another subtype than `subtype`, or too short. */
enum err rtcpweir_ping_unpack(const struct rtcp_app *a, uint8_t subtype, struct rtcp_ping *p) WEIR_MUSTUSE;

#endif
