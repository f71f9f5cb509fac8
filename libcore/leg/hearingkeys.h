/*
 * netrecv's keys: from a file, the environment, or the session description.
 */
#ifndef LEG_HEARINGKEYS_H
#define LEG_HEARINGKEYS_H

#include "leg/hearing.h"

/* Get the key that the scheme needs, and say so where there is none.  Returns: what went wrong, with h->why.  Role: control. */
enum err hearingkeys_take(struct hearing *h) WEIR_MUSTUSE;

#endif
