/*
 * Senders found in datagrams: told apart by SSRC, their payload types known or proven, each made a track of one stream;
 * reports sent back.  Sockets are elsewhere (leg/listener.h): here come datagrams and times, live or recorded.
 *
 * A stranger costs a place among the candidates until two packets in sequence have shown that it is a sender, and
 * then one of max_senders places; nothing else.
 */
#ifndef LEG_RECEIVER_H
#define LEG_RECEIVER_H

#include "net/rtcptimer.h"
#include "net/rs.h"
#include "net/sdp.h"
#include "net/srtp.h"
#include "leg/netflow.h"
#include "leg/receivercount.h"
#include "leg/receiverformat.h"
#include "leg/receivernet.h"
#include "tool/stats.h"

#define RECEIVER_MAX_PORTS 64u
#define RECEIVER_MAX_SENDERS 1024u
#define RECEIVER_MAX_CANDIDATES 1024u  /* four for each of max_senders, at least 64 */
#define RECEIVER_N_BUCKETS 64u         /* of hosts: who crowds out others loses his own candidates first */
#define RECEIVER_MAX_FROM 64u
#define RECEIVER_N_LEFT 64u            /* senders that have said BYE, and are remembered for a moment */

struct receiver_options {
	struct netflow_options flow;
	unsigned max_senders;                      /* 1…RECEIVER_MAX_SENDERS */
	const struct receivernet *from;           /* n_from of them; 0: everybody */
	unsigned n_from;
	struct srtp_session *srtp;                 /* what is not authentic is dropped; NULL: no key */
	bool no_reports;
	uint64_t seed;                             /* of our SSRC and the moments of reports */
};

/* A sender has become a track, or has gone. */
typedef void receiver_event(void *user, const struct netflow *f, bool joined);
/* Send RTCP from our port `port`. */
typedef void receiver_send(void *user, unsigned port, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes);

struct receiver_candidate {
	bool used, has_packet, has_binding;
	uint32_t ssrc;
	unsigned port;
	struct dgram_addr from;
	struct rtp_source source;
	struct rtcp_binding binding;
	unsigned n_unproven;
	int64_t arrival_ns;
	size_t n_bytes;
	uint8_t bytes[RTP_HEADER_BYTES + NETFLOW_MAX_PAYLOAD_BYTES];
};

struct receiver {
	struct receiver_options o;
	struct tool *tool;
	struct writer *out;
	struct receiver_port ports[RECEIVER_MAX_PORTS];
	unsigned n_ports;
	struct varirate model;
	struct netflow *flows;                     /* max_senders, and half as many joint ones */
	unsigned n_places;
	unsigned n_flows;                          /* places that were ever used */
	uint16_t *index;                           /* by a hash of the SSRC: place + 1 */
	unsigned index_mask;
	struct receiver_candidate *candidates;
	uint32_t *candidate_ssrcs;                 /* of each, so that a flood of strangers is looked up quickly */
	uint8_t candidate_buckets[RECEIVER_MAX_CANDIDATES];
	uint16_t in_bucket[RECEIVER_N_BUCKETS];
	unsigned n_candidates, n_met;              /* places, and those that were ever used */
	unsigned next_candidate;
	struct receiver_left {
		uint32_t ssrc;
		int64_t left_ns;
		struct dgram_addr from;
	} left[RECEIVER_N_LEFT];
	unsigned n_left;                           /* ever */
	int64_t joined_ns;                         /* new tracks are counted against time: receiverflows_begin() */
	uint16_t next_id;                /* the lowest that is free */
	uint64_t taken_ids[1024];        /* a bit each */
	/* the local timeline */
	int64_t utc_offset_ns;                     /* wall clock less the clock of all these times; UNITS_UNKNOWN_NS: a recording */
	int64_t start_ns, tick;                    /* the next block is number tick */
	/* reports */
	uint32_t ssrc;
	uint64_t random;
	char cname[64];
	struct rtcptimer timer;
	int64_t loss_ns;                           /* next report to weir senders */
	receiver_send *send;
	receiver_event *event;
	void *user;
	/* repair packets */
	struct rs_decoder rs;
	void *rs_memory;
	/* said once a second at most */
	int64_t said_ns;
	bool said_full, said_unknown;
	struct receivercount ended;                /* of flows that have gone */
	struct receiver_counts counts;
	struct err_why why;
};

/* *r is zero.  The writer is open, not begun.  start_ns: media time 0 of the local clock.  Role: control, allocates. */
enum err receiver_init(struct receiver *r, struct tool *t, struct writer *out, const struct receiver_options *o, int64_t start_ns, struct err_why *why) WEIR_MUSTUSE;
void receiver_release(struct receiver *r);

/* A number 0 ≤ x < 1, a new one each time. */
double receiver_random(struct receiver *r);
/* One line about what strangers do, a second at most. */
void receiver_say_rarely(struct receiver *r, int64_t now_ns, const char *thing, const char *text);

/* A datagram came to our port `port` (or, is_rtcp, to the one for RTCP beside it).  Its bytes are changed by decryption.  Role: io. */
void receiver_datagram(struct receiver *r, unsigned port, bool is_rtcp, const struct dgram_addr *from, uint8_t *bytes, size_t n_bytes, int64_t arrival_ns);

/* Do what is due by now_ns: blocks, what can be passed on, reports, ends.  out false: nobody takes the blocks.  Returns: what the writer said, r->why. */
enum err receiver_run(struct receiver *r, int64_t now_ns, bool out) WEIR_MUSTUSE;
/* When that is worth calling again, if nothing comes before. */
int64_t receiver_next_ns(const struct receiver *r);

/* Every sender has said BYE, as it were: what is held is played or passed on.  receiver_idle(): nothing is left. */
void receiver_stop(struct receiver *r);
bool receiver_idle(const struct receiver *r);
/* END of every track. */
enum err receiver_end(struct receiver *r, enum packet_end_reason reason) WEIR_MUSTUSE;

#endif
