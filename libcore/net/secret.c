#include "net/secret.h"

#include <sodium.h>

/* Fixed by design: both sides come to the same key without a word.  Changing any of it changes every such key. */
static const char salt[] = "weir passphrase1";
#define PASSES 3
#define MEMORY_BYTES (256ul << 20)

enum { KEY_GCM = 1, KEY_SHA1 = 2, KEY_SEAL = 3 }; /* numbers of derived keys */
static const char purpose[] = "weir key";

_Static_assert(sizeof(salt) - 1 == crypto_pwhash_argon2id_SALTBYTES, "length of the salt");
_Static_assert(sizeof(purpose) - 1 == crypto_kdf_CONTEXTBYTES, "length of the context");
_Static_assert(SECRET_BYTES == crypto_kdf_KEYBYTES, "length of a secret");

enum err secret_random(void *dst, size_t n_bytes)
{
	if (sodium_init() < 0)
		return ERR_SYS;
	randombytes_buf(dst, n_bytes);
	return ERR_OK;
}

enum err secret_from_passphrase(struct secret *s, const char *text, size_t n_bytes, struct err_why *why)
{
	if (n_bytes < SECRET_PASSPHRASE_MIN_BYTES || n_bytes > SECRET_PASSPHRASE_MAX_BYTES)
		return err_say(why, ERR_LIMIT, "passphrase", "has %zu bytes: %d to %d", n_bytes, SECRET_PASSPHRASE_MIN_BYTES,
			SECRET_PASSPHRASE_MAX_BYTES);
	if (sodium_init() < 0)
		return err_say(why, ERR_SYS, "libsodium", "does not start");
	if (crypto_pwhash(s->bytes, sizeof(s->bytes), text, n_bytes, (const unsigned char *)salt, PASSES, MEMORY_BYTES,
		crypto_pwhash_ALG_ARGON2ID13))
		return err_say(why, ERR_NOMEM, "passphrase", "%lu MiB of memory are needed to make a key of it", MEMORY_BYTES >> 20);
	return ERR_OK;
}

enum err secret_srtp(const struct secret *s, enum srtp_kind kind, struct srtp_key *key)
{
	*key = (struct srtp_key){ .kind = kind };
	if (crypto_kdf_derive_from_key(key->bytes, srtp_key_bytes(kind), kind == SRTP_GCM ? KEY_GCM : KEY_SHA1, purpose, s->bytes))
		return ERR_ARG;
	return ERR_OK;
}

enum err secret_seal(const struct secret *s, uint8_t psk[32])
{
	return crypto_kdf_derive_from_key(psk, 32, KEY_SEAL, purpose, s->bytes) ? ERR_ARG : ERR_OK;
}

size_t secret_decode(uint8_t *dst, size_t cap_bytes, const char *text, size_t n_text)
{
	size_t n_bytes = 0;
	const char *end = NULL;

	if (sodium_base642bin(dst, cap_bytes, text, n_text, NULL, &n_bytes, &end, sodium_base64_VARIANT_ORIGINAL) || end != text + n_text)
		return 0;
	return n_bytes;
}

void secret_encode(char *dst, size_t cap_bytes, const uint8_t *src, size_t n_bytes)
{
	sodium_bin2base64(dst, cap_bytes, src, n_bytes, sodium_base64_VARIANT_ORIGINAL);
}

void secret_wipe(void *p, size_t n_bytes)
{
	sodium_memzero(p, n_bytes);
}
