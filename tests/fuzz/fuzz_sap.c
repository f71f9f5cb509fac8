/* SAP: payload and type lie inside the datagram, and what is written again is read as the same. */
#include "fuzz.h"

#include "net/sap.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static uint8_t out[1 << 20];
	struct sap s, again;

	if (n_bytes > SAP_MAX_READ_BYTES || sap_unpack(&s, data, n_bytes))
		return 0;
	must((const uint8_t *)s.payload >= data && (const uint8_t *)s.payload + s.payload_bytes == data + n_bytes);
	must(memchr(s.type, 0, sizeof(s.type)) && *s.type);
	fuzz_touch(s.payload, s.payload_bytes);
	must(sap_hash(s.payload, s.payload_bytes) != 0);
	size_t n = sap_pack(&s, out, sizeof(out));
	must(n && !sap_unpack(&again, out, n));
	must(again.payload_bytes == s.payload_bytes && !memcmp(again.payload, s.payload, s.payload_bytes) && !strcmp(again.type, s.type));
	must(again.hash == s.hash && again.is_delete == s.is_delete && !memcmp(again.origin, s.origin, sizeof(s.origin)));
	must(sap_pack(&s, out, n - 1) == 0);
	return 0;
}
