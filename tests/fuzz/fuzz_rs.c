/*
 * Repair packets and sources in any order: what comes out is an RTP packet of a length that can be.  Input: pieces of a
 * length (u16), its top bit telling a repair from a source.
 */
#include "fuzz.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "net/rs.h"

#include <string.h>

static struct rs_decoder decoder;

static void take(const uint8_t *piece, size_t n_bytes, int is_repair)
{
	/* A copy of just that size: a read past it is seen. */
	uint8_t *copy = malloc(n_bytes ? n_bytes : 1);
	const uint8_t *rtp;
	size_t n;

	must(copy);
	memcpy(copy, piece, n_bytes);
	if (!is_repair) {
		rs_decoder_source(&decoder, copy, n_bytes);
	} else {
		enum err e = rs_decoder_repair(&decoder, copy, n_bytes);
		must(e == ERR_OK || e == ERR_FORMAT);
	}
	free(copy);
	for (unsigned count = 0; rs_decoder_next(&decoder, &rtp, &n); count++) {
		must(count < RS_QUEUE && n >= 12 && n <= RS_PACKET_MAX_BYTES && rtp[0] >> 6 == 2);
		fuzz_touch(rtp, n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static void *memory;

	if (!memory)
		must(memory = malloc(rs_decoder_bytes(64)));
	rs_decoder_init(&decoder, 64, memory, cpu_flags());
	for (size_t at = 0; at + 2 <= n_bytes;) {
		unsigned field = get_be16(data + at);
		size_t n = field & 0x7fff;
		at += 2;
		if (n > n_bytes - at)
			n = n_bytes - at;
		take(data + at, n, field >> 15);
		at += n;
	}
	return 0;
}
