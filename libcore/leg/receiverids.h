/*
 * Numbers of the tracks that a receiver writes: those that the sender gave them where nobody else has them, so that one who is
 * heard alone keeps his; else the next that is free.  A number is never given twice in one stream.
 */
#ifndef LEG_RECEIVERIDS_H
#define LEG_RECEIVERIDS_H

#include "leg/receiver.h"

/* The number that a new track would get; wanted: the sender's, 0 none.  Returns: 0: all are taken. */
uint16_t receiverids_next(const struct receiver *r, uint16_t wanted);
/* It got it. */
void receiverids_take(struct receiver *r, uint16_t id);

#endif
