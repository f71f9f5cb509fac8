/*
 * netrecv's ports: from a URL, from a session description, or from options.
 */
#ifndef LEG_HEARINGSOURCE_H
#define LEG_HEARINGSOURCE_H

#include "leg/hearing.h"

/* What the options, and u unless it is NULL, say of a port's payload types. */
void hearingsource_describe(struct hearing *h, struct receiver_port *p, const struct url *u);

/* Ports and sockets of a URL, or of a session description's file ("-": standard input).  Returns: what went wrong, with h->why.  Role: control. */
enum err hearingsource_url(struct hearing *h, const char *text) WEIR_MUSTUSE;
enum err hearingsource_sdp(struct hearing *h, const char *path) WEIR_MUSTUSE;

#endif
