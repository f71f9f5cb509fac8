#include "leg/receivernet.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void wide_address(const struct dgram_addr *a, uint8_t out[16])
{
	if (a->any.sa_family == AF_INET) {
		memset(out, 0, 10);
		out[10] = out[11] = 0xFF;
		memcpy(out + 12, &a->ip4.sin_addr, 4);
	} else {
		memcpy(out, &a->ip6.sin6_addr, 16);
	}
}

enum err receivernet_parse(struct receivernet *n, const char *text, struct err_why *why)
{
	char address[64];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	struct in_addr ip4;
	unsigned most, bits;
	char *end;

	if (length >= sizeof(address))
		return err_say(why, ERR_ARG, "--from", "'%s' is no address", text);
	memcpy(address, text, length);
	address[length] = 0;
	if (inet_pton(AF_INET, address, &ip4) == 1) {
		memset(n->bytes, 0, 10);
		n->bytes[10] = n->bytes[11] = 0xFF;
		memcpy(n->bytes + 12, &ip4, 4);
		most = 32;
	} else if (inet_pton(AF_INET6, address, n->bytes) == 1) {
		most = 128;
	} else {
		return err_say(why, ERR_ARG, "--from", "'%s' is no address: 192.0.2.7, 192.0.2.0/24, 2001:db8::/32", text);
	}
	bits = most;
	if (slash) {
		unsigned long value = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || value > most)
			return err_say(why, ERR_ARG, "--from", "'%s': a network has 0…%u bits", text, most);
		bits = (unsigned)value;
	}
	n->n_bits = bits + (most == 32 ? 96 : 0);
	return ERR_OK;
}

bool receivernet_any(const struct receivernet *nets, unsigned n_nets, const struct dgram_addr *from)
{
	uint8_t a[16];

	if (!n_nets)
		return true;
	wide_address(from, a);
	for (unsigned i = 0; i < n_nets; i++) {
		unsigned whole = nets[i].n_bits / 8, rest = nets[i].n_bits % 8;
		uint8_t mask = (uint8_t)(0xFF00 >> rest);
		if (!memcmp(a, nets[i].bytes, whole) && (!rest || ((a[whole] ^ nets[i].bytes[whole]) & mask) == 0))
			return true;
	}
	return false;
}
