/*
 * Datagrams of a sender, from where they lie to every destination.
 */
#ifndef LEG_SENDOUT_H
#define LEG_SENDOUT_H

#include "leg/sender.h"

/*
 * Queue n_bytes at `bytes` to the destinations that are secure, or those that are not.  They stay until sendout_flush().
 * is_rtcp: to their RTCP ports.
 */
void sendout_queue(struct sender *s, unsigned flow, uint8_t *bytes, size_t n_bytes, bool secure, bool is_rtcp);

/* Send what is queued; count it; say what failed, once for each destination. */
void sendout_flush(struct sender *s);

/* Send everything that is due at now_ns.  Returns: when the next is due; INT64_MAX: nothing waits. */
int64_t sendout_work(struct sender *s, int64_t now_ns);

/* What the network said about earlier datagrams. */
void sendout_complaints(struct sender *s);

/* Repairs of a block that is not full: nothing follows. */
void sendout_finish_block(struct sender *s);

#endif
