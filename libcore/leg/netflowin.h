/*
 * What comes of a flow: its packets, copies of them, and what its RTCP says.  Allocates nothing.
 */
#ifndef LEG_NETFLOWIN_H
#define LEG_NETFLOWIN_H

#include "leg/netflow.h"

/* A packet of its SSRC and format (not RED, not RTCP).  Returns: it was used. */
bool netflowin_packet(struct netflow *f, const struct rtp *r, int64_t arrival_ns);

/* A copy of a packet that may have been lost: of RED (seq −1), or repaired (its sequence number). */
void netflowin_copy(struct netflow *f, uint32_t ts, int64_t seq, const uint8_t *payload, size_t n_bytes, int64_t arrival_ns);

/* What its RTCP says. */
void netflowin_sr(struct netflow *f, const struct rtcp_sr *sr, int64_t arrival_ns);
void netflowin_bind(struct netflow *f, const struct rtcp_binding *b);
void netflowin_bye(struct netflow *f);

#endif
