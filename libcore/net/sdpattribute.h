/*
 * The a= lines of a session description: what they say of the session, of a media, and of its formats.
 */
#ifndef NET_SDPATTRIBUTE_H
#define NET_SDPATTRIBUTE_H

#include "net/sdptext.h"

/* What stands behind "a=", which is written into.  Returns: ERR_OK, ERR_FORMAT. */
enum err sdpattribute_take(struct sdptext *p, char *text) WEIR_MUSTUSE;

#endif
