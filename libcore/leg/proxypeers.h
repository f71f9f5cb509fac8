/*
 * Who sends to a proxy: a place for each, and whose place goes to somebody new.
 */
#ifndef LEG_PROXYPEERS_H
#define LEG_PROXYPEERS_H

#include "leg/proxy.h"

/* Who sent this: its place, perhaps a new one with a socket of its own.  Returns: −1: there is none for it.  Role: io. */
int proxypeers_find(struct proxy *p, const struct dgram_addr *from, int64_t now_ns);

#endif
