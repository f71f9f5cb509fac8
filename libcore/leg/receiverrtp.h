/*
 * RTP that came in: of flows that are known, repairs of them, and of strangers that may become flows.
 */
#ifndef LEG_RECEIVERRTP_H
#define LEG_RECEIVERRTP_H

#include "leg/receiver.h"

/* A datagram of RTP, decrypted.  Role: io. */
void receiverrtp_take(struct receiver *r, unsigned port, const struct dgram_addr *from, const uint8_t *bytes, size_t n_bytes, int64_t arrival_ns);

#endif
