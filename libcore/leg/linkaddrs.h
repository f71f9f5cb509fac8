/*
 * Where a link may go: all addresses that a name has, IPv6 and IPv4, one after the other until one answers; and the name looked up
 * again when none does, or when the connection broke, as hosts move.
 *
 * A resolver may take half a minute.  After the start it works in a thread of its own, that nobody waits for: until it has
 * answered, the addresses that are known are tried.
 */
#ifndef LEG_LINKADDRS_H
#define LEG_LINKADDRS_H

#include "leg/dgram.h"

/* As dgram_resolve_all(). */
typedef enum err linkaddrs_resolve(struct dgram_addr *a, unsigned room, unsigned *n, const char *host, uint16_t port, int family, struct err_why *why);

struct linkaddrs {
	const char *host;
	uint16_t port;
	linkaddrs_resolve *resolve;
	bool is_name;             /* not an address in either notation: those stay what they are */
	struct dgram_addr to[DGRAM_MAX_ADDRS];
	unsigned n, at, n_tried;
	int64_t looked_ns;
	struct linkaddrs_lookup *lookup; /* under way; NULL none */
};

/* Look the host up; the text must outlive it.  resolve NULL: dgram_resolve_all().  Returns: as that.  Role: control, may block. */
enum err linkaddrs_open(struct linkaddrs *a, const char *host, uint16_t port, linkaddrs_resolve *resolve, struct err_why *why) WEIR_MUSTUSE;
/* Waits for nobody.  Zero-safe. */
void linkaddrs_release(struct linkaddrs *a);

/* The one to try now.  Valid until the next call. */
const struct dgram_addr *linkaddrs_now(struct linkaddrs *a);
/* It did not answer, or not as it should: the next one's turn.  Returns: all have had theirs, so it is time for a pause.  Role: io. */
bool linkaddrs_failed(struct linkaddrs *a, int64_t now_ns);
/* The connection there was good, and broke: it is tried first.  Role: io. */
void linkaddrs_lost(struct linkaddrs *a, int64_t now_ns);

#endif
