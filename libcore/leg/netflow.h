/*
 * One sender's RTP flow on its way to a track: numbers unwrapped, payloads put in order by the jitter buffer, and then
 * either passed on as they are, with holes marked, or played on the local clock: decoded, concealed, its drift taken out.
 *
 *   netflowin ─► jitter buffer ─┬─► netflowpass ─────────────────┬─► netflowtrack ─► the stream
 *      └─► netflowparts ──┘     └─► netflowsound ─► netflowplay ─┘
 *
 * Here: what a flow is, how it begins and ends.
 *
 * A track of more channels than one flow carries comes as several flows whose bindings say so.  Their packets are put
 * together (net/assembly.h), and a joint flow that has no SSRC of its own plays or passes them: the parts only count.
 *
 * Times are arguments, so that a recorded network runs as a live one did.
 */
#ifndef LEG_NETFLOW_H
#define LEG_NETFLOW_H

#include "dsp/conceal.h"
#include "dsp/convert.h"
#include "dsp/varirate.h"
#include "media/opusdec.h"
#include "net/assembly.h"
#include "net/jitter.h"
#include "net/red.h"
#include "net/reception.h"
#include "net/rtcpweir.h"
#include "leg/dgram.h"
#include "wire/writer.h"

#define NETFLOW_MAX_PAYLOAD_BYTES 1472u  /* of a packet: what an Ethernet carries; longer ones are refused */
#define NETFLOW_MAX_BLOCK_FRAMES 4800u
#define NETFLOW_MAX_CHANNELS 64u         /* of PCM in one packet */
#define NETFLOW_JOINT_SLOTS 512u         /* of the jitter buffer of a joint flow, at most */
#define NETFLOW_SILENT_LEAST_NS (3 * UNITS_NS_PER_S) /* a weir sender, which says every second or so that it lives, has gone after three times that */
#define NETFLOW_SILENT_MOST_NS (15 * UNITS_NS_PER_S)
#define NETFLOW_FORGET_NS (60 * UNITS_NS_PER_S) /* a sender silent for so long has gone */

struct netflow_options {
	bool retime;
	int64_t block_ns;        /* retime: of what is written at once */
	int64_t latency_ns;      /* 0: found */
	double glitches;
	uint32_t n_slots;        /* of the jitter buffer */
	bool trims;              /* pass: the last packet of Opus waits for BYE, which says where the track ended */
	const struct varirate *model; /* retime: whose table is shared */
};

struct netflow_counts {
	uint64_t packets, frames_out, gaps, lost_frames, concealed_frames, recovered, dropped_frames, refused, unplayed_red, unsent_frames;
};

struct netflow {
	bool used;
	const struct netflow_options *o;
	struct writer *out;
	/* who, and what is said of it */
	uint32_t ssrc;
	unsigned port;                 /* of ours, that it sends to */
	struct dgram_addr from, rtcp_from;
	char name[128];
	struct rtp_format format;
	uint8_t pt;
	bool ending, ended;            /* BYE was heard; END of the track is written */
	bool is_weir;                  /* it sent a binding */
	struct rtcp_binding binding;
	int64_t last_ns;               /* something came */
	int64_t heard_ns, rtcp_gap_ns; /* RTCP of it came; so long after that before */
	uint64_t ping_token;           /* asked last, at ping_ns; 0: nothing is asked */
	int64_t ping_ns;
	int64_t round_trip_ns;         /* −1: not known */
	int64_t one_way_ns;            /* by both wall clocks, of the last SR; −1: not known, or they cannot be right */
	/* of a track that is split */
	struct netflow *joint;         /* part: who plays it; NULL: it does so itself */
	unsigned member;               /* part: its number there */
	bool is_joint;                 /* no SSRC, no packets: what the parts bring */
	struct assembly assembly;      /* joint */
	void *assembly_memory;
	size_t assembly_memory_bytes;
	uint64_t credit_bytes;         /* came from there, less what went back: no answer is larger than what asked for it */
	/* numbers */
	struct rtp_source source;
	struct rtp_unwrap seq, ts;
	int64_t newest_seq;
	struct reception reception;
	struct red_monitor monitor;
	uint64_t told_skipped;         /* in the track's `dropped` */
	uint64_t told_recovered, told_late; /* in all reports of losses so far */
	uint64_t lost_before;          /* by the sequence numbers that were forgotten */
	bool has_sr;
	int64_t sr_ts, sr_utc_ns, sr_ns; /* unwrapped; of the sender's clock; it came */
	/* the buffer */
	struct jitter jitter;
	void *memory;
	size_t memory_bytes;
	/* the track */
	uint16_t id;
	struct track track;
	bool announced;
	unsigned sample_bytes, frame_bytes; /* of PCM */
	int64_t end_pos;               /* of what is written */
	int64_t dropped_pos;           /* end of what was played and thrown away last; INT64_MIN: nothing was */
	bool has_base;
	int64_t base;                  /* pass: track position less jitter position */
	int64_t part_arrival_ns;       /* of the last packet passed */
	struct { int64_t pos, frames; enum packet_gap_reason reason; } gap; /* not yet written */
	/* playing */
	struct opusdec *decoder;
	int64_t decoder_pos;           /* its own timeline, that knows no holes */
	struct track coded;            /* what the decoder was made for */
	struct conceal conceal;
	struct varirate rate;
	struct convert to_f32, from_f32;
	float *fifo;                   /* frames that the interpolator has not taken */
	uint32_t fifo_frames, fifo_room;
	float *made;                   /* a block */
	uint64_t marked_frames;        /* of those still on the way to the output: concealed up to here */
	int64_t play_media_pos;        /* of the end of the fifo */
	bool playing;                  /* the fifo and the interpolator hold sound */
	uint32_t lead_frames;          /* before the first that sounds: of Opus, what its decoder needs to begin */
	uint32_t open_frames;          /* filled in behind all that came: lost, or never sent; the next packet says it */
	bool draining;                 /* and nothing follows: so much of it is still to come out */
	uint32_t drain_frames;
	uint8_t scratch[NETFLOW_MAX_PAYLOAD_BYTES];
	bool discont;                  /* the next packet written does not follow */
	struct netflow_counts counts;
};

/*
 * A flow begins: memory is taken, or that of a flow before is used again.  *f is zero, or was netflow_end()ed.
 * id: of its track.  format must be one of ours.  Role: io; allocates.  Returns: ERR_OK, ERR_NOMEM, ERR_CODEC, ERR_ARG.
 */
enum err netflow_begin(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, uint32_t ssrc,
	const struct rtp_format *format, struct err_why *why) WEIR_MUSTUSE;

/* The same for packets of up to slot_bytes, n_slots of them in the jitter buffer, and any number of channels.  For leg/netflowparts.h. */
enum err netflow_begin_sized(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, uint32_t ssrc,
	const struct rtp_format *format, uint32_t n_slots, uint32_t slot_bytes, struct err_why *why) WEIR_MUSTUSE;

/* As new, but for the memory that it has, which the next flow here uses again. */
void netflow_clear(struct netflow *f);

/* At least n_bytes at *memory, which has *had_bytes: what was there is lost.  Returns: ERR_OK, ERR_NOMEM. */
enum err netflow_take_memory(void **memory, size_t *had_bytes, size_t n_bytes, struct err_why *why) WEIR_MUSTUSE;

/* Another SSRC goes on where this one was: the same sender, begun anew. */
void netflow_succeed(struct netflow *f, uint32_t ssrc);
/* Its sequence numbers begin anew: what was counted by the old ones stays counted. */
void netflow_renumber(struct netflow *f);

/* Everything is written that can be: END of the track.  The flow is free then. */
enum err netflow_end(struct netflow *f, enum packet_end_reason reason) WEIR_MUSTUSE;
void netflow_release(struct netflow *f);

/* Has nothing come of it for so long that it must have gone? */
bool netflow_is_gone(const struct netflow *f, int64_t now_ns);

/* How long its packets wait, in seconds. */
double netflow_depth_s(const struct netflow *f);

/* Packets lost by the sequence numbers, of all that it had; never negative. */
uint64_t netflow_lost(const struct netflow *f);

#endif
