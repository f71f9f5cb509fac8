/*
 * RTCP of a receiver: what senders say of their flows, and what is reported to them.
 */
#ifndef LEG_RECEIVERRTCP_H
#define LEG_RECEIVERRTCP_H

#include "leg/receiver.h"

/* A datagram of RTCP, decrypted.  Role: io. */
void receiverrtcp_take(struct receiver *r, unsigned port, const struct dgram_addr *from, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns);

/* Send the reports that are due.  Role: io. */
void receiverrtcp_report(struct receiver *r, int64_t now_ns);

#endif
