/*
 * netrecv's side of weir://: what comes beside the sound.
 */
#ifndef LEG_HEARINGLINK_H
#define LEG_HEARINGLINK_H

#include "leg/hearing.h"

/* Listen for links.  Returns: what went wrong, with h->why.  Role: control. */
enum err hearinglink_open(struct hearing *h) WEIR_MUSTUSE;

/* Write what came.  Returns: what the writer said, with h->why.  Role: io. */
enum err hearinglink_run(struct hearing *h) WEIR_MUSTUSE;

#endif
