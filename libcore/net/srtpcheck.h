/*
 * Is a packet from somebody who has the key?  That is asked of every packet of an SSRC nobody knows yet, so of every one
 * that is forged: libsrtp would set a stream up to answer, this looks at the tag and allocates nothing.
 *
 * It counts on roll-over counter 0, as everybody does who hears a sender for the first time.  What passes is still
 * libsrtp's to open.
 */
#ifndef NET_SRTPCHECK_H
#define NET_SRTPCHECK_H

#include "net/srtp.h"

#include <nettle/gcm.h>
#include <nettle/hmac.h>

/* Session keys of RTP or RTCP. */
struct srtpcheck_keys {
	struct gcm_aes128_ctx gcm;
	uint8_t salt[GCM_IV_SIZE];
	struct hmac_sha1_ctx sha1;
};

/* Wipe it. */
struct srtpcheck {
	enum srtp_kind kind;
	struct srtpcheck_keys rtp, rtcp;
};

/* Derives the session keys from the master key: RFC 3711, section 4.3.1; RFC 7714, section 11.  Role: control, io. */
void srtpcheck_init(struct srtpcheck *c, const struct srtp_key *key);

/*
 * n_bytes: SRTP_PACKET_MAX_BYTES at most, and at least a header and a tail.  The packet stays as it is; the time taken
 * does not tell how much of a tag was right.  Role: io.
 */
bool srtpcheck_rtp(struct srtpcheck *c, const uint8_t *packet, size_t n_bytes);
bool srtpcheck_rtcp(struct srtpcheck *c, const uint8_t *packet, size_t n_bytes);

#endif
