/*
 * SRTP (RFC 3711, RFC 7714) by libsrtp2: encrypts, authenticates and refuses what is replayed.
 *
 * Every SSRC has a policy of its own, with its own roll-over counter (ROC): one that joins after the sequence number
 * wrapped is told the counter and can read at once.  A packet of an SSRC that is not known is authenticated first; only
 * if it is authentic does its SSRC get a place, and there are stated many places.
 * Set-up allocates, and so does a place for one more sender; packets are worked on in place and allocate nothing.
 */
#ifndef NET_SRTP_H
#define NET_SRTP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum srtp_kind {
	SRTP_GCM,  /* AEAD_AES_128_GCM, RFC 7714: the default */
	SRTP_SHA1, /* AES_CM_128_HMAC_SHA1_80, RFC 3711: what every other program knows */
};

#define SRTP_KEY_MAX_BYTES 30
#define SRTP_GCM_KEY_BYTES 28  /* master key 16, salt 12 */
#define SRTP_SHA1_KEY_BYTES 30 /* master key 16, salt 14 */
#define SRTP_TAIL_BYTES 16     /* a packet grows by at most this */
#define SRTP_RTCP_TAIL_BYTES 20
#define SRTP_PACKET_MAX_BYTES 2048 /* longer ones are refused */
#define SRTP_SENDERS_MAX 1024
#define SRTP_LEFT_PLACES 64 /* worth having for senders that left */

/* Master key and salt.  Wipe it with srtp_key_wipe(). */
struct srtp_key {
	enum srtp_kind kind;
	uint8_t bytes[SRTP_KEY_MAX_BYTES];
};

size_t srtp_key_bytes(enum srtp_kind kind);
/* By how much an RTP packet grows: 16 or 10. */
size_t srtp_tail_bytes(enum srtp_kind kind);
/* The name of SDES (RFC 4568, RFC 7714): "AEAD_AES_128_GCM". */
const char *srtp_kind_name(enum srtp_kind kind);
void srtp_key_wipe(struct srtp_key *key);

struct srtp_counts {
	uint64_t n_protected, n_unprotected; /* RTP and RTCP */
	uint64_t n_forged;   /* not authentic: another key, damage, noise */
	uint64_t n_replayed; /* authentic once before, or too old to say */
	uint64_t n_refused;  /* too short or too long to be SRTP, or no place for another sender */
};

/* One key, our own SSRCs and those we hear.  Zero is empty; not to be moved once initialised. */
struct srtp_session {
	struct srtp_counts counts;
	struct srtp_state *state;
};

/* n_senders_max: SSRCs that are heard at one time, 1…SRTP_SENDERS_MAX.  The key is copied into libsrtp.  Role: control, io. */
WEIR_MUSTUSE enum err srtp_session_init(struct srtp_session *s, const struct srtp_key *key, unsigned n_senders_max,
	struct err_why *why);
/* NULL- and zero-safe.  Wipes the key. */
void srtp_session_release(struct srtp_session *s);

/*
 * An SSRC that we send with, RTP and RTCP; roc is 0 but for a stream that is continued.  Never use one SSRC twice
 * with one key: that gives the encryption away, so SSRCs are drawn at random.
 */
WEIR_MUSTUSE enum err srtp_session_send(struct srtp_session *s, uint32_t ssrc, uint32_t roc, struct err_why *why);

/*
 * An SSRC that we hear, and its roll-over counter, as an authentic message told it.  One that is known already keeps
 * its counter as long as packets come.  Returns: ERR_LIMIT if all places are taken.
 */
WEIR_MUSTUSE enum err srtp_session_hear(struct srtp_session *s, uint32_t ssrc, uint32_t roc, struct err_why *why);
/*
 * A sender has left.  Its place is given to another one when no other is free, that of who left first; until then what it
 * said cannot be played again.
 */
void srtp_session_forget(struct srtp_session *s, uint32_t ssrc);
bool srtp_session_has(const struct srtp_session *s, uint32_t ssrc);
/* Of an SSRC we send with: what joiners must be told.  0 for one that is not known. */
uint32_t srtp_session_roc(const struct srtp_session *s, uint32_t ssrc);

/*
 * In place: packet has room for SRTP_TAIL_BYTES (SRTP_RTCP_TAIL_BYTES) more.  Role: io.
 * Returns: ERR_OK; ERR_ARG for an SSRC without srtp_session_send(); ERR_LIMIT when a key is used up (2^48 packets).
 */
WEIR_MUSTUSE enum err srtp_session_protect(struct srtp_session *s, uint8_t *packet, size_t *n_bytes);
WEIR_MUSTUSE enum err srtp_session_protect_rtcp(struct srtp_session *s, uint8_t *packet, size_t *n_bytes);

/*
 * In place.  The packet's bytes are worth nothing unless ERR_OK is returned.
 * Returns: ERR_OK; ERR_PEER not authentic; ERR_AGAIN replayed or too old; ERR_LIMIT authentic but no place for it;
 * ERR_FORMAT too short or too long.  All are counted.
 */
WEIR_MUSTUSE enum err srtp_session_unprotect(struct srtp_session *s, uint8_t *packet, size_t *n_bytes);
WEIR_MUSTUSE enum err srtp_session_unprotect_rtcp(struct srtp_session *s, uint8_t *packet, size_t *n_bytes);

#endif
