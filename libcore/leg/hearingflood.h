/*
 * netrecv in a flood of strangers: the sockets are told who is heard, and what nobody read is counted.
 */
#ifndef LEG_HEARINGFLOOD_H
#define LEG_HEARINGFLOOD_H

#include "leg/hearing.h"

/* Where those are whom a flood must not keep out.  Role: io, as both. */
void hearingflood_tell(struct hearing *h);

/* Bring the counters of what nobody read up to date; the first flood is said. */
void hearingflood_count(struct hearing *h);

#endif
