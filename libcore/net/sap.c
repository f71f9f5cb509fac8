#include "net/sap.h"

#include "base/bytes.h"
#include "base/units.h"

#include <string.h>

#define VERSION 1u
#define BIT_IP6 0x10u
#define BIT_DELETE 0x04u
#define BIT_ENCRYPTED 0x02u
#define BIT_COMPRESSED 0x01u
#define HEADER_BYTES 4u
#define LEAST_INTERVAL_S 300.0
#define BANDWIDTH_BPS 4000.0

static const char sdp_type[] = "application/sdp";

/* A payload type is text like "application/sdp", ended by a NUL. */
static bool is_type(const uint8_t *text, size_t n)
{
	bool slash = false;

	for (size_t i = 0; i < n; i++) {
		if (text[i] <= ' ' || text[i] >= 0x7f)
			return false;
		slash |= text[i] == '/';
	}
	return slash;
}

enum err sap_unpack(struct sap *s, const uint8_t *bytes, size_t n_bytes)
{
	if (n_bytes < HEADER_BYTES || bytes[0] >> 5 != VERSION)
		return ERR_FORMAT;
	if (bytes[0] & (BIT_ENCRYPTED | BIT_COMPRESSED))
		return ERR_VERSION;
	*s = (struct sap){
		.is_ip6 = bytes[0] & BIT_IP6,
		.is_delete = bytes[0] & BIT_DELETE,
		.hash = get_be16(bytes + 2),
	};
	size_t origin_bytes = s->is_ip6 ? 16 : 4, at = HEADER_BYTES + origin_bytes + 4u * bytes[1];
	if (n_bytes < at)
		return ERR_FORMAT;
	memcpy(s->origin, bytes + HEADER_BYTES, origin_bytes);
	memcpy(s->type, sdp_type, sizeof(sdp_type));
	/* The payload type is left out by old senders: SDP begins "v=0" then. */
	if (n_bytes - at < 3 || memcmp(bytes + at, "v=0", 3)) {
		const uint8_t *end = memchr(bytes + at, '\0', n_bytes - at);
		size_t type_bytes = end ? (size_t)(end - (bytes + at)) : 0;

		if (end && type_bytes && is_type(bytes + at, type_bytes)) {
			if (type_bytes >= sizeof(s->type))
				return ERR_FORMAT;
			memcpy(s->type, bytes + at, type_bytes + 1);
			at += type_bytes + 1;
		} else if (!s->is_delete) {
			return ERR_FORMAT;
		}
	}
	s->payload = (const char *)bytes + at;
	s->payload_bytes = n_bytes - at;
	return ERR_OK;
}

size_t sap_pack(const struct sap *s, uint8_t *to, size_t room_bytes)
{
	size_t origin_bytes = s->is_ip6 ? 16 : 4;
	const char *type = *s->type ? s->type : sdp_type;
	size_t type_bytes = strlen(type) + 1, n = HEADER_BYTES + origin_bytes + type_bytes + s->payload_bytes;

	if (room_bytes < n)
		return 0;
	to[0] = (uint8_t)(VERSION << 5 | (s->is_ip6 ? BIT_IP6 : 0) | (s->is_delete ? BIT_DELETE : 0));
	to[1] = 0; /* no authentication */
	put_be16(to + 2, s->hash);
	memcpy(to + HEADER_BYTES, s->origin, origin_bytes);
	memcpy(to + HEADER_BYTES + origin_bytes, type, type_bytes);
	memcpy(to + HEADER_BYTES + origin_bytes + type_bytes, s->payload, s->payload_bytes);
	return n;
}

uint16_t sap_hash(const char *payload, size_t n_bytes)
{
	uint32_t h = 2166136261u; /* FNV-1a, 32 bits, folded */

	for (size_t i = 0; i < n_bytes; i++)
		h = (h ^ (uint8_t)payload[i]) * 16777619u;
	uint16_t folded = (uint16_t)(h >> 16 ^ h);
	return folded ? folded : 1;
}

int64_t sap_interval_ns(unsigned n_ads, size_t ad_bytes, double random)
{
	double s = 8.0 * n_ads * (double)ad_bytes / BANDWIDTH_BPS;

	if (s < LEAST_INTERVAL_S)
		s = LEAST_INTERVAL_S;
	return (int64_t)((s + s * (random * 2 - 1) / 3) * (double)UNITS_NS_PER_S);
}
