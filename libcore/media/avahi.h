/*
 * Services on the local network by mDNS and DNS-SD (RFC 6762, RFC 6763), through the Avahi daemon where one runs.
 *
 * The library is loaded when it is wanted; its work is done in a thread of its own.
 */
#ifndef MEDIA_AVAHI_H
#define MEDIA_AVAHI_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define AVAHI_MAX_TEXTS 16u
#define AVAHI_TEXT_BYTES 256u

struct avahi_service {
	char name[64];                /* what people call it; made unique by the daemon */
	char host[256];               /* found: the address, as text */
	uint16_t port;
	char texts[AVAHI_MAX_TEXTS][AVAHI_TEXT_BYTES]; /* "key=value" */
	unsigned n_texts;
};

/* Found, or gone again (then only the name holds).  Called by the library's thread. */
typedef void avahi_found_fn(void *user, const struct avahi_service *s, bool gone);

struct avahi; /* avahi.c */

/*
 * Say that a service of type ("_weir._udp") is there, until avahi_close().  Returns: ERR_OK; ERR_DEVICE with *why: no library, no
 * daemon.  Role: control.
 */
enum err avahi_publish(struct avahi **a, const char *type, const struct avahi_service *s, struct err_why *why) WEIR_MUSTUSE;
/* Find services of a type until avahi_close().  Returns: as above. */
enum err avahi_browse(struct avahi **a, const char *type, avahi_found_fn *found, void *user, struct err_why *why) WEIR_MUSTUSE;
/* Nothing is called after that.  NULL-safe. */
void avahi_close(struct avahi *a);

#endif
