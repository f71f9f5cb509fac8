/*
 * Redundant audio in the payload, RFC 2198: a packet carries, before its own Opus packet, whole copies of earlier ones.
 *
 * What counts against bursts is the distance of a copy in time, so a choice is a list of distances in packets.  The
 * parts here are pure and hold no memory but what they are given: a sender's history (struct red_history), a
 * receiver's count of what was lost and in which bursts (struct red_monitor), which goes back as an RTCP APP packet
 * (struct rtcp_loss), and the choice of a level from such reports, with hysteresis (struct red_control).
 *
 * Payload: for each copy, oldest first, four bytes (bit 0 set, 7 bits payload type, 14 bits by how many ticks of the
 * RTP clock it is older, 10 bits length), then one byte (bit 0 clear, payload type) for the packet's own block, then
 * the blocks in that order (RFC 2198 section 3).
 */
#ifndef NET_RED_H
#define NET_RED_H

#include "base/err.h"
#include "net/rtcpweir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RED_LENGTH_MAX_BYTES 1023 /* of a copy: 10 bits */
#define RED_OFFSET_MAX_TICKS 16383 /* 14 bits: 341 ms at 48 kHz */
#define RED_COPIES_MAX 3
#define RED_BLOCKS_MAX 8 /* taken from a packet of others; more are an error */
#define RED_DISTANCE_MAX 64 /* packets, the farthest copy that is chosen */
#define RED_HEADER_BYTES(copies) (4 * (size_t)(copies) + 1)

/* One block of a packet.  data is the caller's or points into the payload. */
struct red_block {
	uint8_t pt;    /* payload type of what is inside: Opus's */
	uint32_t ts;   /* RTP timestamp of this block */
	const uint8_t *data;
	size_t n_bytes;
};

/* Which copies go along: their distances in packets, rising, each 1…RED_DISTANCE_MAX. */
struct red_choice {
	unsigned n_copies; /* 0…RED_COPIES_MAX; 0 sends plain Opus */
	unsigned distances[RED_COPIES_MAX];
};

/*
 * Take a payload apart.  blocks has room for RED_BLOCKS_MAX; the last is the packet's own, those before it are copies
 * (empty ones are left out) to be handed on as recovered, in this order, if their place is still empty.  ts: of the RTP
 * header.  Returns: ERR_OK with *n_blocks >= 1; ERR_FORMAT for lengths that do not fit, ERR_LIMIT for too many blocks.
 */
WEIR_MUSTUSE enum err red_parse(struct red_block *blocks, unsigned *n_blocks, uint32_t ts, const uint8_t *payload,
	size_t n_bytes, struct err_why *why);

/*
 * Put a payload together: blocks[0…n-2] are copies, blocks[n-1] is the packet's own.  Returns: bytes written; 0 if a
 * copy is too long or too old for its field, newer than the packet, or cap_bytes is too small.
 */
size_t red_write(uint8_t *dst, size_t cap_bytes, const struct red_block *blocks, unsigned n_blocks);

/* ---- sender ---- */

/* The last packets of one flow.  Zero is empty. */
struct red_history {
	unsigned n_slots;         /* packets that are remembered: the farthest distance */
	uint64_t n_packets;       /* packets that came */
	uint8_t pt;               /* of Opus */
	struct red_slot *slots;   /* the caller's memory */
	uint64_t n_copies;        /* copies sent */
	uint64_t n_copies_left_out; /* wanted, but too long, too old or no room in the datagram */
};

/* Bytes of memory for packets up to distance_max (1…RED_DISTANCE_MAX) back. */
size_t red_history_bytes(unsigned distance_max);

/* memory: red_history_bytes(distance_max), aligned for any type, the caller's until the history is no longer used. */
void red_history_init(struct red_history *h, void *memory, unsigned distance_max, uint8_t pt);

/*
 * The payload of the next packet, with its copies; the packet is remembered either way.  The farthest copy is kept
 * longest where cap_bytes (room for the payload in the datagram) is short.
 * Returns: bytes in dst; 0 where no copy goes along: then send the packet plain, with the payload type of Opus.
 */
size_t red_history_pack(struct red_history *h, const struct red_choice *choice, uint32_t ts, const uint8_t *packet,
	size_t n_bytes, uint8_t *dst, size_t cap_bytes);

/* Forget what came: after a break in the timestamps. */
void red_history_clear(struct red_history *h);

/* ---- what the receiver sees ---- */

#define RED_BIN_NS 100000000LL
#define RED_PATIENCE_NS 60000000LL /* a packet that is missing for so long after a newer one came is lost */
#define RED_MONITOR_WINDOW 512     /* packets; one that is so many behind is lost */

/* Counts what one flow lost on the way, before any repair, and in which bursts.  Zero is the start. */
struct red_monitor {
	bool is_started;
	int64_t newest, settled;   /* unwrapped sequence numbers: the newest that came; the next whose fate is open */
	uint64_t seen[RED_MONITOR_WINDOW / 64]; /* bits, by number, of settled…newest */
	int64_t mark_ns;           /* everything up to mark is settled when now passes this */
	int64_t mark;
	int64_t bin_ns;            /* when the bin that is being filled began */
	int64_t report_ns;         /* of the last report */
	uint32_t burst;            /* packets lost in a row, up to settled */
	struct rtcp_loss now;      /* what the next report will say */
};

/* A source packet came in (not a recovered one, not a repair): its sequence number unwrapped (rtp_unwrap_seq()), and when. */
void red_monitor_packet(struct red_monitor *m, int64_t seq, int64_t now_ns);

/*
 * Fill in interval_ms, bins, expected, lost and bursts with what was settled since the report before; the other fields
 * of *loss are left alone.
 */
void red_monitor_report(struct red_monitor *m, struct rtcp_loss *loss, int64_t now_ns);

/* ---- the choice ---- */

#define RED_LEVELS 4
#define RED_CALM_NS 10000000000LL /* before a level is lowered */

/* Chooses for one receiver's reports.  red_control_init() first. */
struct red_control {
	unsigned level;            /* 0…3, see red_choice_of() */
	unsigned level_min, level_max;
	uint32_t packet_us;        /* how long a packet sounds */
	double expected, lost;     /* packets of the reports, decaying in 5 s */
	double bursts[RTCP_N_BURSTS]; /* decaying in 20 s, counted by bursts */
	unsigned burst_packets;    /* 90th percentile of their lengths, 1… */
	bool has_depth;
	unsigned depth_packets;    /* how long the receiver waits, if it said so */
	int64_t calm_ns, burst_calm_ns; /* of reports in a row that asked for a lower level, a shorter distance */
};

/* level_min…level_max bound the choice: 0, 3 to adapt; equal for a level that stays. */
void red_control_init(struct red_control *c, unsigned level_min, unsigned level_max, uint32_t packet_us);

/*
 * A report came.  Up at once when the loss passes a level's threshold (0.2, 1.5, 6 % of packets); down one level after
 * RED_CALM_NS of reports in a row below half of it.  A pure function of the reports.  Returns: whether the choice changed.
 */
bool red_control_report(struct red_control *c, const struct rtcp_loss *loss);

/* The choice as it stands. */
void red_control_choice(const struct red_control *c, struct red_choice *choice);

/* One for several receivers: the one with more copies, of equally many the farther ones. */
void red_choice_join(struct red_choice *choice, const struct red_choice *other);

/*
 * The distances of a level for bursts of b packets: 0 none; 1 {b}; 2 {b/2, b}; 3 {1, b/2, b}, halves rounded up, made
 * distinct (for single losses 2 is {1, 2}, 3 is {1, 2, 3}), none beyond `farthest` packets or RED_DISTANCE_MAX.
 */
void red_choice_of(struct red_choice *choice, unsigned level, unsigned burst_packets, unsigned farthest);

#endif
