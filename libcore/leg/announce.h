/*
 * Sessions made known on the network, so that receivers find them: by SAP (RFC 2974), and by mDNS where an Avahi daemon runs.
 *
 * One announcement every 30 s and a third of that more or less by chance, three in the first seconds, and a deletion at the
 * end.  RFC 2974 section 3.1 wants at least 300 s for the whole Internet; these go no further than a site, and AES67
 * devices expect them that often.
 */
#ifndef LEG_ANNOUNCE_H
#define LEG_ANNOUNCE_H

#include "media/avahi.h"
#include "net/sap.h"
#include "leg/sender.h"

#define ANNOUNCE_SERVICE_TYPE "_weir._udp"
#define ANNOUNCE_EVERY_NS (30 * UNITS_NS_PER_S)

struct announce_session {
	struct dgram socket;
	struct dgram_addr to;
	struct sap sap;
	char *text;                   /* the description */
	size_t n_bytes;
	bool is_open;
	struct avahi *service;
};

struct announce {
	struct sender *sender;
	struct announce_session sessions[SENDER_MAX_URLS];
	int64_t next_ns;
	unsigned n_sent;              /* of this description */
	unsigned version;             /* of it: each is newer than those before */
	bool is_on, is_said;
};

/* Begin, before anything is known.  *a is zero.  s outlives it. */
void announce_begin(struct announce *a, struct sender *s);
/* The session of every destination is known, or has changed.  Allocates.  Returns: ERR_OK, ERR_NOMEM, ERR_SYS with *why.  Role: io. */
enum err announce_tell(struct announce *a, struct err_why *why) WEIR_MUSTUSE;
/* Send what is due.  Returns: when something is due next; INT64_MAX: never.  Role: io. */
int64_t announce_work(struct announce *a, int64_t now_ns);
/* Takes everything back. */
void announce_end(struct announce *a);

#endif
