/*
 * Stream packets become RTP packets: one flow, which is a track or up to 8 channels of one, under an SSRC of its own.
 *
 * Opus goes packet by packet (RFC 7587), with copies of earlier ones where redundancy is asked for (RFC 2198).  PCM is made
 * big-endian L16 or L24 (RFC 3551 section 4.5.11, RFC 3190 section 4) and cut into packets of a length in time.  A timestamp
 * is always that of the position: what is missing leaves a hole in it, and the next packet has the marker.
 *
 * One stream packet is put in, then RTP packets are taken out until ERR_AGAIN.  Pure; nothing is allocated after packer_init().
 */
#ifndef NET_PACKER_H
#define NET_PACKER_H

#include "dsp/convert.h"
#include "net/red.h"
#include "net/rtp.h"
#include "wire/packet.h"
#include "wire/track.h"

#define PACKER_MAX_CHANNELS 8u           /* of a flow */
#define PACKER_MAX_OPUS_BYTES 4000u      /* a longer Opus packet is refused */
#define PACKER_PENDING_BYTES 1440u
#define PACKER_MAX_HOLE_S 3600           /* a longer one is not shown: the flow goes on behind it at once, as where a stream begins anew */

struct packer_options {
	enum rtp_codec codec;
	uint8_t pt;
	uint8_t red_pt;                  /* of packets with copies, when history is not NULL */
	uint32_t ssrc;
	uint16_t seq;                    /* of the first packet */
	uint32_t ts;                     /* of the first packet */
	uint16_t first_channel, channels; /* of the track; Opus: 0 and all of them */
	uint32_t packet_frames;          /* PCM: of a whole packet */
	bool whole_blocks;               /* PCM: cut every stream packet evenly, nothing waits for the next one */
	size_t max_payload_bytes;        /* PCM and RED: 1…PACKER_PENDING_BYTES */
	struct red_history *history;     /* NULL: no redundancy; the caller's */
};

struct packer {
	struct packer_options o;
	enum sample sample;              /* of the track */
	uint16_t track_channels;
	unsigned sample_bytes, frame_bytes; /* on the wire, of the flow */
	uint32_t track_frame_bytes;
	uint32_t clock_hz;               /* of position and timestamp */
	bool started;
	uint16_t seq;                    /* of the next packet */
	int64_t seq_unwrapped;           /* packets before the next, and options.seq */
	int64_t pos0;                    /* has timestamp ts0 */
	uint32_t ts0;
	int64_t line0;                   /* pos0 on a timeline that is never broken */
	int64_t next_pos;                /* end of what was taken out */
	bool marker;                     /* of the next packet */
	/* what was put in, and how much of it is taken */
	struct packet in;
	uint32_t in_frames;
	bool has_in;
	/* PCM that waits for a whole packet */
	struct convert convert;
	uint32_t pending_frames;
	int64_t pending_pos;
	uint8_t pending[PACKER_PENDING_BYTES];
	uint8_t scratch[PACKER_PENDING_BYTES * 4]; /* samples of some channels before conversion */
	/* totals */
	uint64_t n_packets, n_payload_bytes, clipped_samples;
	uint64_t n_refused;              /* too long for a datagram, or of a duration that Opus does not have */
	uint64_t n_skipped;              /* holes longer than PACKER_MAX_HOLE_S */
};

/* An RTP packet that was taken out. */
struct packer_out {
	size_t n_bytes;                  /* header and payload */
	size_t payload_bytes;
	int64_t pos;
	int64_t line;                    /* the position, or where it would be had the stream not begun anew: never goes back */
	uint32_t dur;                    /* frames */
	uint16_t seq;
	uint32_t ts;
};

/*
 * For track t; converts its samples if the codec's are others.  Returns: ERR_OK; ERR_ARG: more channels than a flow takes, no
 * frame fits, a codec that does not suit the track.
 */
enum err packer_init(struct packer *p, const struct track *t, const struct packer_options *o, struct err_why *why) WEIR_MUSTUSE;

/* Bytes of all the RTP packets that a stream packet may become, at most, headers included: room the caller needs before putting it. */
size_t packer_bound_bytes(const struct packer *p, const struct packet *in);

/* The most that one RTP packet takes. */
size_t packer_max_bytes(const struct packer *p);

/*
 * A DATA packet of the track; its payload stays until packer_take() says ERR_AGAIN.  A position before what was sent already,
 * or another one with DISCONT (the stream began anew), goes on without a step in the timestamps: pos0 and ts0 change.
 */
void packer_put(struct packer *p, const struct packet *in);

/*
 * The next RTP packet, to `to` (packer_max_bytes()).  choice: which copies go along; NULL none.
 * Returns: ERR_OK with *out; ERR_AGAIN: put more.
 */
enum err packer_take(struct packer *p, const struct red_choice *choice, uint8_t *to, struct packer_out *out) WEIR_MUSTUSE;

/* What waits for a whole packet goes out short: before a hole, and at the end.  Returns: ERR_OK; ERR_AGAIN: nothing waits. */
enum err packer_flush(struct packer *p, uint8_t *to, struct packer_out *out) WEIR_MUSTUSE;

/* A hole follows: the next packet has the marker, copies of what was before it go no further. */
void packer_gap(struct packer *p);

/* Timestamp of a position. */
static inline uint32_t packer_ts(const struct packer *p, int64_t pos)
{
	return p->ts0 + (uint32_t)(uint64_t)(pos - p->pos0);
}

/*
 * Frames of a packet for blocks of block_frames (0 unknown): as many, if they fit in payload_bytes; else the most whole
 * milliseconds up to 5 that fit; at least one frame.  frame_bytes: on the wire.
 */
uint32_t packer_usual_frames(uint32_t block_frames, uint32_t rate_hz, unsigned frame_bytes, size_t payload_bytes);

#endif
