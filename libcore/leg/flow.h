/*
 * A flow on its way out: packets made by net/packer wait here until they are due, in the order and in the place where they will
 * be sent from.  Nothing is copied between; nothing is allocated after flow_init().
 */
#ifndef LEG_FLOW_H
#define LEG_FLOW_H

#include "net/packer.h"
#include "net/rtcpweir.h"
#include "rt/ring.h"

#define FLOW_TAIL_BYTES 20u      /* room behind a packet, for what encryption adds */
#define FLOW_MAX_REPORTERS 8u

/* Before each packet in the ring. */
struct flow_record {
	uint32_t bytes;          /* of the packet; the record takes flow_record_bytes() */
	uint32_t dur;
	int64_t pos, line;
	uint32_t ts;
	uint16_t seq;
	uint16_t payload_bytes;
};

/* Somebody who reports on the flow, and what redundancy would suit it. */
struct flow_reporter {
	bool is_used;
	uint32_t ssrc;           /* any number: 0 is one as well */
	int64_t heard_ns;
	struct red_control control;
};

struct flow {
	struct packer packer;
	struct ring ring;
	uint16_t track;
	uint8_t gen;             /* of the binding */
	bool is_over;            /* the track has ended, or was replaced; what waits is still sent */
	bool has_left;           /* BYE was said */
	uint8_t n_byes;          /* so often: a datagram may be lost */
	int64_t bye_ns;          /* last */
	uint32_t rate_hz;
	uint32_t packet_frames;  /* usual, for the SDP; Opus: of the first packet */
	uint16_t all_channels;
	uint8_t sample;
	uint64_t wave_mask;      /* of the track, 0 none */
	int64_t first_pos, end_pos;
	bool is_bound;           /* the next two hold */
	int64_t bound_pos;       /* has timestamp bound_ts in what is sent now */
	int64_t bound_line;
	uint32_t bound_ts;
	char name[RTCP_MAX_TRACK_NAME_BYTES + 1];
	/* redundancy of Opus */
	struct red_history history;
	void *history_memory;
	unsigned level_min, level_max;
	struct red_choice choice;
	struct flow_reporter reporters[FLOW_MAX_REPORTERS];
	/* sent so far */
	uint32_t sent_packets, sent_payload_bytes; /* as SR counts them */
	uint64_t sent_frames;
	bool has_put;
	int64_t put_line;        /* end of what was put in */
	int64_t sent_line;       /* end of it */
	uint32_t sent_ts;
	uint32_t roc;            /* turns of the sequence number since the flow began */
	uint16_t last_seq;
	bool has_sent;
};

/*
 * level_min…level_max: of redundancy (red_control_init()); without it level_max is 0.  *o's history is set here.
 * Returns: as packer_init(), ERR_NOMEM.
 */
enum err flow_init(struct flow *f, const struct track *t, const struct packer_options *o, unsigned level_min, unsigned level_max,
	struct err_why *why) WEIR_MUSTUSE;
void flow_release(struct flow *f);

/* Is there room for all that a stream packet becomes? */
bool flow_has_room(const struct flow *f, const struct packet *in);
/* Make it packets: there was room. */
void flow_put(struct flow *f, const struct packet *in);
/* What is short of a whole packet goes too. */
void flow_flush(struct flow *f);

/* The packet that waits longest behind n_bytes of others, or NULL; its bytes. */
struct flow_record *flow_peek(const struct flow *f, size_t after_bytes, uint8_t **rtp);
size_t flow_record_bytes(const struct flow_record *r);
/* Does it follow the binding of those before it?  If not (the first does not), it is the beginning of a new one now.  Returns: it is. */
bool flow_rebind(struct flow *f, const struct flow_record *r);
/* It was sent; then its place can go. */
void flow_note_sent(struct flow *f, const struct flow_record *r);
void flow_consume(struct flow *f, size_t n_bytes);
/* It is over, and nothing waits. */
bool flow_is_done(const struct flow *f);

/* When the line's position is, in ns from the line's zero. */
static inline int64_t flow_line_ns(const struct flow *f, int64_t line)
{
	return units_to_ns(line, f->rate_hz, 1);
}

/* What an APP "WEIR" packet says of it now.  utc_ns: wall clock of bound_pos. */
struct rtcp_binding flow_binding(const struct flow *f, int64_t utc_ns);

/* A report of the peer `reporter` came.  Returns: whether the choice of copies changed. */
bool flow_report(struct flow *f, uint32_t reporter, const struct rtcp_loss *loss, int64_t now_ns);
/* The level that is in use: the highest of its reporters'. */
unsigned flow_level(const struct flow *f);

#endif
