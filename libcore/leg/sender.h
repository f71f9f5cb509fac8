/*
 * The sending side of rtp:// and srtp://: tracks of a stream become flows, flows become datagrams at their time, and every
 * destination gets the same bytes.
 *
 * Time: a position has its moment on a line from the first packet, and that is when it is sent; a live stream goes out when
 * it comes, and is held back only where it runs ahead of its own time.  One thread does it all, and waits in poll(2).
 */
#ifndef LEG_SENDER_H
#define LEG_SENDER_H

#include "net/rs.h"
#include "net/sdp.h"
#include "net/srtp.h"
#include "net/url.h"
#include "leg/dgram.h"
#include "net/rtcptimer.h"
#include "leg/flow.h"
#include "tool/stats.h"
#include "tool/tool.h"

#include <poll.h>

#define SENDER_MAX_URLS 32u
#define SENDER_MAX_FLOWS SDP_MAX_MEDIA
#define SENDER_BATCH 128u                /* packets sent in one go */
#define SENDER_REPAIR_BYTES (RTP_HEADER_BYTES + RS_REPAIR_MAX_BYTES + SRTP_TAIL_BYTES)
#define SENDER_MAX_RECEIVERS 64u         /* that are counted */
#define SENDER_PT_OPUS 111
#define SENDER_PT_RED 121
#define SENDER_PT_REPAIR 122
#define SENDER_PT_L16 96
#define SENDER_PT_L24 98

enum sender_rtcp { SENDER_RTCP_MUX, SENDER_RTCP_NEXT_PORT, SENDER_RTCP_OFF };

struct sender_options {
	struct url urls[SENDER_MAX_URLS];
	unsigned n_urls;
	bool has_seq, has_ts, has_ssrc;  /* else they are drawn at random (RFC 3550 section 5.1) */
	uint16_t seq;
	uint32_t ts, ssrc;               /* flows after the first have ssrc + 1, … */
	int pt;                          /* −1: the usual ones above */
	enum rtp_codec pcm;              /* RTP_CODEC_NONE: L16 for s16, L24 for the rest */
	struct opt_time packet_time;
	const char *iface;
	int ttl;
	unsigned port_step;              /* flow i goes to port + i · step */
	enum sender_rtcp rtcp;
	unsigned level_min, level_max;   /* redundancy of Opus; level_max 0: none */
	struct rs_shape shape;           /* of PCM; n_repairs 0: none */
	const struct srtp_key *key;      /* of srtp:// */
	bool is_fast;                    /* no pacing at all */
	bool is_live;                    /* what comes is due */
	const char *session_name;
};

struct sender_to {
	struct url url;
	char name[DGRAM_TEXT_BYTES];
	struct dgram_addr addr;          /* of flow 0 */
	struct dgram_addr local;         /* our address on the way there; port 0 */
	unsigned socket;
	bool is_secure, is_said;         /* said: that it cannot be reached */
};

struct sender_receiver {
	uint32_t ssrc;
	int64_t heard_ns;
	int32_t lost;
	uint32_t jitter_us;
	bool is_weir;                    /* it reports four times a second */
	bool is_gone;                    /* and has not for long: that was said */
};

struct sender {
	struct tool *tool;
	struct stats *stats;
	struct sender_options o;
	struct sender_to to[SENDER_MAX_URLS];
	unsigned n_to;
	bool any_plain, any_secure;
	struct dgram sockets[SENDER_MAX_URLS];
	struct dgram_outbox outboxes[SENDER_MAX_URLS];
	struct sender_way {              /* how each socket's datagrams leave */
		const char *iface;
		int ttl;
	} ways[SENDER_MAX_URLS];
	unsigned n_sockets;
	struct flow **flows;             /* SENDER_MAX_FLOWS places */
	unsigned n_flows;
	unsigned n_begun;                /* flows that there ever were: places of those that have left are used again */
	struct sender_gone {             /* what those had sent */
		uint64_t frames, packets, refused, skipped, clipped, copies;
		double position_s;
	} gone;
	struct dgram_addr *addrs;        /* flow · SENDER_MAX_URLS + destination; then the same for RTCP */
	struct srtp_session srtp;
	bool has_srtp;
	char cname[64];
	uint64_t random;                 /* state of the generator, from the system's */
	/* time */
	bool begun;
	int64_t anchor_ns;               /* CLOCK_MONOTONIC of the line's zero */
	int64_t eased_ns;                /* when the anchor of a live stream was moved last */
	/* RTCP */
	struct rtcptimer timer;
	int64_t binding_ns;              /* when the next binding is due */
	int64_t byes_ns;                 /* when a BYE is to be said again; INT64_MAX: none is */
	int64_t begun_ns;
	struct dgram_batch batch;
	struct sender_receiver receivers[SENDER_MAX_RECEIVERS];
	unsigned n_receivers;
	/* repair of PCM */
	struct rs_encoder rs;
	void *rs_memory;
	uint8_t *repairs;                /* RS_REPAIRS_MAX · SENDER_REPAIR_BYTES */
	uint32_t rs_ssrc;
	uint16_t rs_seq;
	uint8_t rs_pt;
	bool has_rs;
	int64_t rs_begun_ns;             /* when the block got its first packet */
	unsigned rs_flow;                /* of its last packet, and that one's timestamp */
	uint32_t rs_ts;
	/* totals, read by the printer of stats */
	atomic_uint_fast64_t sent_datagrams, sent_bytes, send_errors, repair_datagrams, redundant_copies, red_level;
	atomic_uint_fast64_t rtcp_in, n_reporting, n_gone, peer_lost, peer_jitter_us, round_trip_us, refused, skipped, clipped;
};

/*
 * Look up every destination, open sockets, make keys ready.  *s is zero.  The options are copied, their strings not.
 * Returns: ERR_OK; ERR_PEER, ERR_SYS: with *why what stands in the way, "no route to that network".  Role: control.
 */
enum err sender_open(struct sender *s, const struct sender_options *o, struct tool *t, struct stats *stats, struct err_why *why) WEIR_MUSTUSE;
void sender_release(struct sender *s);

/*
 * Destination number `to` turned out to be at that address of several that its name has: its datagrams go there from now on.  Where there is
 * no way there they go on as before.  Role: io.
 */
void sender_redirect(struct sender *s, unsigned to, const struct dgram_addr *addr);

/*
 * A track is announced: its flows are made, or those of a track that changed end and new ones are made.
 * Returns: ERR_OK; ERR_FORMAT: it cannot be sent, with *why the reason; ERR_ARG: the options do not suit it; ERR_LIMIT: too many flows.
 * Role: control.
 */
enum err sender_track(struct sender *s, const struct track *t, struct err_why *why) WEIR_MUSTUSE;

/* DATA or GAP of a track (others are passed over).  Returns: ERR_OK; ERR_AGAIN: no room yet, call sender_work() first.  Role: io. */
enum err sender_take(struct sender *s, const struct packet *k) WEIR_MUSTUSE;

/* A track has ended at end_pos. */
void sender_end_track(struct sender *s, uint16_t track, int64_t end_pos);

/* Nothing waits any more? */
bool sender_is_empty(const struct sender *s);

/*
 * Send what is due, RTCP too, and take what came in.  Returns: CLOCK_MONOTONIC of when something is due next.  Role: io; does not wait.
 */
int64_t sender_work(struct sender *s);

/* The sockets, for poll(2).  Returns: how many of p were filled, at most SENDER_MAX_URLS. */
unsigned sender_polls(const struct sender *s, struct pollfd *p);

/* BYE for every flow (section 6.6), three times in 40 ms.  Role: io; waits for that. */
void sender_bye(struct sender *s);

/* Seconds of the line that are sent. */
double sender_position_s(const struct sender *s);

/* A number 0 ≤ x < 1, a new one each time. */
double sender_random(struct sender *s);

#endif
