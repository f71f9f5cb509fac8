/*
 * RTCP of a sender: what it says of its flows, and what it hears about them.
 */
#ifndef LEG_SENDRTCP_H
#define LEG_SENDRTCP_H

#include "leg/sender.h"

/* Begin at now_ns. */
void sendrtcp_begin(struct sender *s, int64_t now_ns);

/* SR, SDES and binding of a flow, and BYE, to every destination. */
void sendrtcp_say(struct sender *s, unsigned flow, bool bye, int64_t now_ns);

#define SENDRTCP_BYES 3u                     /* of each flow, so that a lost datagram takes no end position with it */
#define SENDRTCP_BYE_NS (UNITS_NS_PER_S / 50) /* between them */

/* Whatever is due of all flows.  Returns: when to come again. */
int64_t sendrtcp_work(struct sender *s, int64_t now_ns);

/* Take what came in on the sockets. */
void sendrtcp_hear(struct sender *s);

#endif
