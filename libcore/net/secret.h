/*
 * The 32 secret bytes that two sides share, and what is derived from them.  By libsodium.
 *
 * Keys for different purposes come from the secret by crypto_kdf (BLAKE2b): knowing one tells nothing of another.
 */
#ifndef NET_SECRET_H
#define NET_SECRET_H

#include "base/err.h"
#include "net/srtp.h"

#include <stddef.h>
#include <stdint.h>

#define SECRET_BYTES 32
#define SECRET_PASSPHRASE_MIN_BYTES 8
#define SECRET_PASSPHRASE_MAX_BYTES 1024

struct secret {
	uint8_t bytes[SECRET_BYTES];
};

/* Random bytes of the system.  Returns: ERR_SYS if libsodium cannot start. */
WEIR_MUSTUSE enum err secret_random(void *dst, size_t n_bytes);

/*
 * From a passphrase by Argon2id (crypto_pwhash): 3 passes over 256 MiB, about a second; a fixed salt, so that both
 * sides come to the same without talking.  A passphrase can be guessed at that price: a random secret cannot.
 * Returns: ERR_LIMIT for a length out of range, ERR_NOMEM.
 */
WEIR_MUSTUSE enum err secret_from_passphrase(struct secret *s, const char *text, size_t n_bytes, struct err_why *why);

/* The SRTP master key and salt of a profile. */
WEIR_MUSTUSE enum err secret_srtp(const struct secret *s, enum srtp_kind kind, struct srtp_key *key);

/* The pre-shared key of net/seal. */
WEIR_MUSTUSE enum err secret_seal(const struct secret *s, uint8_t psk[32]);

/* Base64 with padding.  Returns: bytes decoded, 0 if the text is not base64 of 1…cap_bytes bytes. */
size_t secret_decode(uint8_t *dst, size_t cap_bytes, const char *text, size_t n_text);
/* dst has 4 * ceil(n / 3) + 1. */
void secret_encode(char *dst, size_t cap_bytes, const uint8_t *src, size_t n_bytes);

/* Overwrites, in a way that the compiler does not leave out. */
void secret_wipe(void *p, size_t n_bytes);

#endif
