/*
 * Repair packets by a systematic Reed–Solomon code over GF(256): of the k source packets and r repair packets of a
 * block any k suffice.  Source packets stay plain RTP; repair packets are RTP with a payload type and an SSRC of their
 * own, so a receiver that knows nothing of them plays on.
 *
 * A block may hold packets of several flows (SSRCs) of one sender, of different sizes.  What is coded is the packet as
 * an application data unit (RFC 6865 section 5.2): flow number (u8), length (u16), the RTP packet from its first byte
 * of the header on, zeros up to the longest of the block.  Repair j of a block is the sum over its packets i of
 * c(j,i)·unit(i) with the Cauchy matrix c(j,i) = 1/(j ^ (RS_REPAIRS_MAX + i)), whose square parts are all invertible;
 * it does not depend on k, so a block may end at any packet.  GF(256) modulo x^8+x^4+x^3+x^2+1.
 *
 * Payload of a repair packet (big-endian), after the 12 bytes of an RTP header, whose timestamp is that of the
 * block's last packet:
 *    0  u8   version, 1
 *    1  u8   k, source packets in the block, 1…RS_SOURCES_MAX
 *    2  u8   r, repair packets of the block, 1…RS_REPAIRS_MAX
 *    3  u8   j, which of them this is, 0…r-1
 *    4  u16  number of the block, rising by one
 *    6  u8   f, flows in the block, 1…RS_FLOWS_MAX
 *    7  u8   0
 *    8  f times: u32 SSRC, u16 sequence number of its first packet in the block
 *       where f > 1, k times: u8 flow number of packet i.  A flow's packets in a block have consecutive numbers.
 *       the coded unit, to the end.
 *
 * With SRTP the code runs over the plain packets and each packet is protected by itself after it.
 * Pure: no clock, no allocation; memory is given at the start.
 */
#ifndef NET_RS_H
#define NET_RS_H

#include "base/err.h"
#include "dsp/galois.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RS_SOURCES_MAX 64
#define RS_REPAIRS_MAX 16
#define RS_FLOWS_MAX 16
#define RS_PACKET_MAX_BYTES 1460 /* of an RTP packet that is protected, its header included */
#define RS_UNIT_MAX_BYTES (RS_PACKET_MAX_BYTES + 3)
#define RS_REPAIR_MAX_BYTES (8 + 6 * RS_FLOWS_MAX + RS_SOURCES_MAX + RS_UNIT_MAX_BYTES) /* of a repair's payload */

/* k and r offered by name: 8+2 on a good network, 10+5 on a bad one, 8+4 for bursts. */
struct rs_shape {
	unsigned n_sources, n_repairs;
};

/* "8+2" and any K+R within the limits.  Returns: ERR_ARG with the range in *why. */
WEIR_MUSTUSE enum err rs_shape_parse(struct rs_shape *shape, const char *text, struct err_why *why);

/* Bytes that a repair packet's payload is longer than the longest RTP packet of its block: leave room for them and 12. */
size_t rs_overhead_bytes(unsigned n_flows, unsigned n_sources);

/* ---- sender ---- */

/* A flow in a block. */
struct rs_flow {
	uint32_t ssrc;
	uint16_t first_seq;          /* of its first packet in the block */
	uint16_t n_packets;
};

/* One block being made.  Its fields are its own. */
struct rs_encoder {
	struct galois galois;
	galois_add_fn *add;
	struct rs_shape shape;
	size_t packet_max_bytes, stride_bytes;
	uint8_t *sums;               /* one for each repair, stride_bytes apart; the caller's memory */
	uint16_t block;              /* its number */
	unsigned n_packets, n_flows; /* in the block so far */
	size_t unit_bytes;           /* the longest unit of it */
	struct rs_flow flows[RS_FLOWS_MAX];
	uint8_t flow_of[RS_SOURCES_MAX];
};

size_t rs_encoder_bytes(struct rs_shape shape, size_t packet_max_bytes);

/* memory: rs_encoder_bytes(), the caller's.  cpu: cpu_flags().  packet_max_bytes: 12…RS_PACKET_MAX_BYTES. */
void rs_encoder_init(struct rs_encoder *e, struct rs_shape shape, size_t packet_max_bytes, void *memory, unsigned cpu);

/*
 * A source packet (plain RTP, before SRTP) that is sent now.  Returns: ERR_OK; ERR_AGAIN if the block is full, has no
 * room for another flow or the flow's sequence number does not follow: end the block, then add it again; ERR_LIMIT if
 * the packet is longer than packet_max_bytes: it goes unprotected; ERR_FORMAT if it is no RTP packet.
 */
WEIR_MUSTUSE enum err rs_encoder_add(struct rs_encoder *e, const uint8_t *rtp, size_t n_bytes);

/* Whether the block has its k packets.  It may also be ended before, at a tick or when a flow pauses. */
bool rs_encoder_is_full(const struct rs_encoder *e);

/*
 * The payload of repair j (0…shape.n_repairs-1) of the block.  Returns: bytes in dst, 0 if cap_bytes is too small or
 * the block is empty.  A repair of a block of k packets is as long as its longest packet and rs_overhead_bytes().
 */
size_t rs_encoder_repair(const struct rs_encoder *e, unsigned j, uint8_t *dst, size_t cap_bytes);

/* Begin the next block. */
void rs_encoder_next(struct rs_encoder *e);

/* ---- receiver ---- */

#define RS_BLOCKS 4 /* that wait for packets at one time; the oldest gives way */
#define RS_STORE_MAX_PACKETS 1024
#define RS_QUEUE (RS_BLOCKS * RS_REPAIRS_MAX)

struct rs_counts {
	uint64_t n_repairs;     /* repair packets taken */
	uint64_t n_refused;     /* malformed, or at odds with the rest of their block */
	uint64_t n_recovered;   /* source packets */
	uint64_t n_blocks_lost; /* given up with packets missing */
};

/* What one sender's flows are repaired with.  Its fields are its own, but for counts. */
struct rs_decoder {
	struct rs_counts counts;
	struct galois galois;
	galois_add_fn *add;
	galois_set_fn *set;
	unsigned n_packets;         /* places in the store */
	uint64_t n_stored;          /* packets that came; the place of the next is this modulo n_packets */
	uint64_t *keys;             /* SSRC and number of each, 0 an empty place */
	struct rs_packet *packets;
	struct rs_wait *waits;      /* RS_BLOCKS */
	uint64_t n_waits;           /* blocks so far */
	uint16_t queue[RS_QUEUE];   /* places of what was recovered and not fetched */
	unsigned n_queued, n_fetched;
};

/*
 * n_packets: the last source packets of all flows that are kept, RS_SOURCES_MAX…RS_STORE_MAX_PACKETS; two blocks' worth
 * and what comes meanwhile is enough.  memory: rs_decoder_bytes(), the caller's.  cpu: cpu_flags().
 */
size_t rs_decoder_bytes(unsigned n_packets);
void rs_decoder_init(struct rs_decoder *d, unsigned n_packets, void *memory, unsigned cpu);

/* A source packet came (plain RTP, after SRTP).  It may complete a block: ask rs_decoder_next(). */
void rs_decoder_source(struct rs_decoder *d, const uint8_t *rtp, size_t n_bytes);

/* The payload of a repair packet came.  Returns: ERR_FORMAT if it is malformed or at odds with its block (counted). */
WEIR_MUSTUSE enum err rs_decoder_repair(struct rs_decoder *d, const uint8_t *payload, size_t n_bytes);

/*
 * The next packet that was recovered: a whole RTP packet, valid until the decoder is next called for anything but
 * this.  Returns: false if there is none.  Call until then after each rs_decoder_source() and rs_decoder_repair().
 */
bool rs_decoder_next(struct rs_decoder *d, const uint8_t **rtp, size_t *n_bytes);

#endif
