/*
 * Networks that may send to us, of IPv4 and IPv6.
 */
#ifndef LEG_RECEIVERNET_H
#define LEG_RECEIVERNET_H

#include "base/err.h"
#include "base/role.h"
#include "leg/dgram.h"

#include <stdbool.h>
#include <stdint.h>

/* A network of either family, as 128 bits: IPv4 as ::ffff:a.b.c.d. */
struct receivernet {
	uint8_t bytes[16];
	unsigned n_bits;
};

/* "192.0.2.0/24" "2001:db8::/32" "::1"; "host" is no address.  Returns: ERR_OK, ERR_ARG with *why. */
enum err receivernet_parse(struct receivernet *n, const char *text, struct err_why *why) WEIR_MUSTUSE;

/* Is the address in one of them?  n_nets 0: everybody is.  Role: any. */
bool receivernet_any(const struct receivernet *nets, unsigned n_nets, const struct dgram_addr *from);

#endif
