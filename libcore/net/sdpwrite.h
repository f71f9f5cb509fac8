/*
 * A session description written as text (RFC 8866).
 */
#ifndef NET_SDPWRITE_H
#define NET_SDPWRITE_H

#include "net/sdp.h"

/*
 * Write *s with CR LF (section 5) into out, terminated.  Values are written as they stand: a caller that takes them from
 * outside cleans them first (sdp_clean()).  Returns: bytes without the NUL; 0 if it does not fit.
 */
size_t sdpwrite_text(const struct sdp *s, char *out, size_t room_bytes);

#endif
