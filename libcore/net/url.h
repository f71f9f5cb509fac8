/*
 * Where a stream goes or comes from: rtp://[ADDRESS]:PORT, srtp://…, weir://HOST:PORT, udp://…, with options behind '?'.
 * An IPv6 address stands in brackets, a scope with it: rtp://[fe80::1%eth0]:5004.  Text only: no name is looked up here.
 */
#ifndef NET_URL_H
#define NET_URL_H

#include "base/err.h"
#include "net/rtp.h"

#include <stdbool.h>
#include <stdint.h>

#define URL_MAX_HOST_BYTES 256u
#define URL_MAX_IFACE_BYTES 16u /* IFNAMSIZ */

enum url_scheme { URL_RTP = 1, URL_SRTP, URL_WEIR, URL_UDP };

struct url {
	enum url_scheme scheme;
	char host[URL_MAX_HOST_BYTES];    /* without brackets; "" is any address */
	uint16_t port;                    /* 1…65535 */
	/* from the query, or what says that it was not given */
	char iface[URL_MAX_IFACE_BYTES];  /* "" */
	int ttl;                          /* 1…255; −1 */
	int pt;                           /* 0…127; −1 */
	enum rtp_codec codec;             /* RTP_CODEC_NONE */
	uint32_t rate_hz;                 /* 0 */
	unsigned channels;                /* 0 */
};

/*
 * Parse text.  The query knows pt codec rate channels iface ttl, joined by '&'; each at most once.  A host may be left out,
 * a port not.  Returns: ERR_OK; ERR_ARG with *why, which quotes what is wrong and states what would be right.
 */
enum err url_parse(struct url *u, const char *text, struct err_why *why) WEIR_MUSTUSE;

/* Does text begin like a URL that url_parse() may know ("scheme://")?  For operands that may be files too. */
bool url_is_url(const char *text);

/* "rtp" "srtp" "weir" "udp". */
const char *url_scheme_name(enum url_scheme scheme);

#endif
