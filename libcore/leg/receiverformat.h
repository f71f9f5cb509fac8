/*
 * What a sender sends: by its binding, by a session description, by options, by its payload type, or by what its packets prove.
 */
#ifndef LEG_RECEIVERFORMAT_H
#define LEG_RECEIVERFORMAT_H

#include "net/rtcpweir.h"
#include "net/sdp.h"

#define RECEIVER_N_PTS 128u

/* What a port of ours may get: from an SDP, from options, or nothing is known. */
struct receiver_port {
	struct rtp_format formats[RECEIVER_N_PTS]; /* by payload type; codec NONE: unknown.  RED: codec RED */
	struct rtp_format any;                     /* of a dynamic payload type that is not in formats; codec NONE: it must prove itself */
	char label[128];                           /* the track's name, where the sender gives none */
};

/* Formats of an SDP's media line. */
void receiverformat_sdp(struct receiver_port *p, const struct sdp_media *m);

/* A RED payload's own block, to look at; p itself if it is none. */
struct rtp receiverformat_inside(const struct rtp *p);

/* Frames of 48 kHz in a packet of Opus; 0: it is none. */
uint32_t receiverformat_opus_frames(const struct rtp *p);

/*
 * What a new sender sends.  bound: what it said itself, or NULL.  before: its packet before p, or NULL.
 * Returns: false: it cannot be told.
 */
bool receiverformat_find(const struct receiver_port *port, const struct rtcp_binding *bound, const struct rtp *p, const struct rtp *before,
	struct rtp_format *f);

#endif
