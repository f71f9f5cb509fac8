/*
 * The places of a receiver: flows by SSRC, and those who are candidates for one.
 */
#ifndef LEG_RECEIVERFLOWS_H
#define LEG_RECEIVERFLOWS_H

#include "leg/receiver.h"

/* The flow of an SSRC, or NULL.  Role: io, as all of these. */
struct netflow *receiverflows_find(const struct receiver *r, uint32_t ssrc);

/* After a flow came, went, or changed its SSRC. */
void receiverflows_index(struct receiver *r);

/* A candidate becomes a flow, or goes on where another was.  Returns: NULL: no place, or no memory; that is said. */
struct netflow *receiverflows_begin(struct receiver *r, const struct receiver_candidate *c, const struct rtp_format *format, int64_t now_ns);

/* A flow says what it is: it may turn out to be part of a track that is split. */
void receiverflows_bind(struct receiver *r, struct netflow *f, const struct rtcp_binding *b, int64_t now_ns);

/* A flow has ended: what it counted stays, its place is free. */
void receiverflows_free(struct receiver *r, struct netflow *f, int64_t now_ns);

/* Has it said BYE a moment ago?  Then what still comes was on its way (RFC 3550 section 6.2.1). */
bool receiverflows_has_left(const struct receiver *r, uint32_t ssrc, const struct dgram_addr *from, int64_t now_ns);

/* The candidate of that SSRC and host; a new one takes the place of the oldest. */
struct receiver_candidate *receiverflows_candidate(struct receiver *r, uint32_t ssrc, unsigned port, const struct dgram_addr *from);

#endif
