/*
 * SAP (RFC 2974): session descriptions announced by multicast, so that a receiver finds what is sent without being told.
 * Pure: datagrams in and out.
 */
#ifndef NET_SAP_H
#define NET_SAP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAP_PORT 9875u
#define SAP_GLOBAL_IP4 "224.2.127.254"   /* section 3 */
#define SAP_LOCAL_IP4 "239.255.255.255"  /* the administratively scoped local zone, which AES67 devices use */
#define SAP_LINK_IP6 "ff02::2:7ffe"
#define SAP_SITE_IP6 "ff05::2:7ffe"
#define SAP_MAX_BYTES 1024u              /* an announcement should not be longer (section 6) … */
#define SAP_MAX_READ_BYTES 65507u        /* … but may */

struct sap {
	bool is_delete;
	bool is_ip6;
	uint16_t hash;           /* with origin it names a version of a session */
	uint8_t origin[16];      /* address of the sender, 4 or 16 bytes */
	char type[32];           /* of the payload; "application/sdp" when it was left out */
	const char *payload;     /* SDP, or for a deletion at least its o= line; points into the datagram */
	size_t payload_bytes;
};

/*
 * Take a datagram apart.  Returns: ERR_OK; ERR_FORMAT: not SAP version 1, or lengths that do not fit; ERR_VERSION: encrypted or
 * compressed, which nobody has to understand (section 7, 8).
 */
enum err sap_unpack(struct sap *s, const uint8_t *bytes, size_t n_bytes) WEIR_MUSTUSE;

/* Write one, its type "application/sdp" where s->type is "".  Returns: bytes; 0 if it does not fit. */
size_t sap_pack(const struct sap *s, uint8_t *to, size_t room_bytes);

/* A hash of the payload for the header; never 0, which would say nothing. */
uint16_t sap_hash(const char *payload, size_t n_bytes);

/*
 * Time between two announcements of one of n_ads sessions of ad_bytes each: max(300 s, 8 · n · bytes ÷ 4000 bit/s), and a
 * third of that off or on by chance (section 3.1).  random: 0 ≤ random < 1.
 */
int64_t sap_interval_ns(unsigned n_ads, size_t ad_bytes, double random);

#endif
