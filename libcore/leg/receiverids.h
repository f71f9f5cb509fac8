/*
 * Numbers of the tracks that a receiver writes: those that the sender gave them where nobody else has them, so that one who is
 * heard alone keeps his; else the next that is free.  A number that the stream has seen is never given again.
 *
 * Numbers are 16 bits, and each is remembered: how fast strangers use them up is bounded.
 */
#ifndef LEG_RECEIVERIDS_H
#define LEG_RECEIVERIDS_H

#include "leg/receiver.h"

/* The number that a new track would get; wanted: the sender's, 0 none.  Returns: 0: all are taken. */
uint16_t receiverids_next(const struct receiver *r, uint16_t wanted);
/* It got it. */
void receiverids_take(struct receiver *r, uint16_t id);
/* It is gone, and nothing was ever written under it. */
void receiverids_give_back(struct receiver *r, uint16_t id);

/*
 * May there be another track now?  at_once of them may, and then one a second; with a key as many as there are numbers.  *joined_ns: what was
 * used up so far, UNITS_UNKNOWN_NS at the start.  Returns: true, and it is counted.
 */
bool receiverids_may(const struct receiver *r, int64_t *joined_ns, unsigned at_once, int64_t now_ns);

#endif
