#include "net/srtpcipher.h"

#include <nettle/aes.h>
#include <nettle/ctr.h>
#include <nettle/gcm.h>
#include <nettle/hmac.h>
#include <pthread.h>
#include <sodium.h>
#include <srtp2/auth.h>
#include <srtp2/cipher.h>
#include <srtp2/srtp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16
#define ICM_SALT_BYTES 14
#define ICM_MAX_BYTES (BLOCK << 16) /* the block counter has 16 bits: RFC 3711, section 4.1.1 */

static const srtp_cipher_type_t icm_type, aead_type;
static const srtp_auth_type_t auth_type;

/* ---- AES-128 in counter mode: AES-CM of RFC 3711, section 4.1.1 ---- */

struct icm {
	srtp_cipher_t cipher;
	struct aes128_ctx aes;
	uint8_t salt[BLOCK], counter[BLOCK];
	unsigned left_bytes; /* of the key stream that this IV gives */
};

static srtp_err_status_t icm_alloc(srtp_cipher_pointer_t *out, int key_bytes, int tag_bytes)
{
	struct icm *c;

	(void)tag_bytes;
	if (key_bytes != SRTP_AES_ICM_128_KEY_LEN_WSALT)
		return srtp_err_status_bad_param;
	if (!(c = calloc(1, sizeof(*c))))
		return srtp_err_status_alloc_fail;
	c->cipher = (srtp_cipher_t){ .type = &icm_type, .state = c, .key_len = key_bytes, .algorithm = SRTP_AES_ICM_128 };
	*out = &c->cipher;
	return srtp_err_status_ok;
}

static srtp_err_status_t icm_dealloc(srtp_cipher_pointer_t cipher)
{
	struct icm *c = cipher->state;

	sodium_memzero(c, sizeof(*c));
	free(c);
	return srtp_err_status_ok;
}

static srtp_err_status_t icm_init(void *state, const uint8_t *key)
{
	struct icm *c = state;

	aes128_set_encrypt_key(&c->aes, key);
	memset(c->salt, 0, sizeof(c->salt));
	memcpy(c->salt, key + AES128_KEY_SIZE, ICM_SALT_BYTES);
	c->left_bytes = 0;
	return srtp_err_status_ok;
}

static srtp_err_status_t icm_set_iv(void *state, uint8_t *iv, srtp_cipher_direction_t direction)
{
	struct icm *c = state;

	(void)direction;
	for (unsigned i = 0; i < BLOCK; i++)
		c->counter[i] = c->salt[i] ^ iv[i];
	c->left_bytes = ICM_MAX_BYTES;
	return srtp_err_status_ok;
}

/* On from where the call before ended, if that was at the end of a block; no part of a key stream is used twice. */
static srtp_err_status_t icm_crypt(void *state, uint8_t *bytes, unsigned *n_bytes)
{
	struct icm *c = state;

	if (*n_bytes == 0)
		return srtp_err_status_ok;
	if (*n_bytes > c->left_bytes)
		return srtp_err_status_terminus;
	ctr_crypt(&c->aes, (nettle_cipher_func *)aes128_encrypt, BLOCK, c->counter, *n_bytes, bytes, bytes);
	c->left_bytes = *n_bytes % BLOCK ? 0 : c->left_bytes - *n_bytes;
	return srtp_err_status_ok;
}

/* RFC 3711, appendix B.2. */
static const uint8_t icm_key[SRTP_AES_ICM_128_KEY_LEN_WSALT] = {
	0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c,
	0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd };
static const uint8_t icm_zeros[3 * BLOCK];
static const uint8_t icm_stream[3 * BLOCK] = {
	0xe0, 0x3e, 0xad, 0x09, 0x35, 0xc9, 0x5e, 0x80, 0xe1, 0x66, 0xb1, 0x6d, 0xd9, 0x2b, 0x4e, 0xb4,
	0xd2, 0x35, 0x13, 0x16, 0x2b, 0x02, 0xd0, 0xf7, 0x2a, 0x43, 0xa2, 0xfe, 0x4a, 0x5f, 0x97, 0xab,
	0x41, 0xe9, 0x5b, 0x3b, 0xb0, 0xa2, 0xe8, 0xdd, 0x47, 0x79, 0x01, 0xe4, 0xfc, 0xa8, 0x94, 0xc0 };

/* libsrtp reads the IV only, but has it without a const. */
static const srtp_cipher_test_case_t icm_test = {
	.key_length_octets = sizeof(icm_key), .key = icm_key, .idx = (uint8_t *)(uintptr_t)icm_zeros,
	.plaintext_length_octets = sizeof(icm_zeros), .plaintext = icm_zeros,
	.ciphertext_length_octets = sizeof(icm_stream), .ciphertext = icm_stream };

static const srtp_cipher_type_t icm_type = {
	.alloc = icm_alloc, .dealloc = icm_dealloc, .init = icm_init, .encrypt = icm_crypt, .decrypt = icm_crypt,
	.set_iv = icm_set_iv, .description = "AES-128 counter mode by nettle", .test_data = &icm_test, .id = SRTP_AES_ICM_128 };

/* ---- AES-128-GCM: RFC 7714 ---- */

struct aead {
	srtp_cipher_t cipher;
	struct gcm_aes128_ctx aes;
	uint8_t aad[BLOCK]; /* what does not fill a block yet: nettle takes whole ones but for the last */
	unsigned aad_bytes, tag_bytes;
	uint8_t tag[GCM_DIGEST_SIZE];
	bool has_iv;
};

static srtp_err_status_t aead_alloc(srtp_cipher_pointer_t *out, int key_bytes, int tag_bytes)
{
	struct aead *c;

	if (key_bytes != SRTP_AES_GCM_128_KEY_LEN_WSALT || (tag_bytes != GCM_DIGEST_SIZE && tag_bytes != GCM_DIGEST_SIZE / 2))
		return srtp_err_status_bad_param;
	if (!(c = calloc(1, sizeof(*c))))
		return srtp_err_status_alloc_fail;
	c->cipher = (srtp_cipher_t){ .type = &aead_type, .state = c, .key_len = key_bytes, .algorithm = SRTP_AES_GCM_128 };
	c->tag_bytes = (unsigned)tag_bytes;
	*out = &c->cipher;
	return srtp_err_status_ok;
}

static srtp_err_status_t aead_dealloc(srtp_cipher_pointer_t cipher)
{
	struct aead *c = cipher->state;

	sodium_memzero(c, sizeof(*c));
	free(c);
	return srtp_err_status_ok;
}

/* The salt behind the key is libsrtp's to use: it makes whole IVs. */
static srtp_err_status_t aead_init(void *state, const uint8_t *key)
{
	struct aead *c = state;

	gcm_aes128_set_key(&c->aes, key);
	c->has_iv = false;
	return srtp_err_status_ok;
}

static srtp_err_status_t aead_begin(void *state, uint8_t *iv, srtp_cipher_direction_t direction)
{
	struct aead *c = state;

	(void)direction;
	gcm_aes128_set_iv(&c->aes, GCM_IV_SIZE, iv);
	c->aad_bytes = 0;
	c->has_iv = true;
	return srtp_err_status_ok;
}

/* In any number of parts. */
static srtp_err_status_t aead_add_aad(void *state, const uint8_t *aad, uint32_t n_bytes)
{
	struct aead *c = state;
	unsigned n;

	if (!c->has_iv)
		return srtp_err_status_bad_param;
	while (n_bytes) {
		if (c->aad_bytes == 0 && n_bytes >= BLOCK) {
			n = n_bytes / BLOCK * BLOCK;
			gcm_aes128_update(&c->aes, n, aad);
		} else {
			n = BLOCK - c->aad_bytes < n_bytes ? BLOCK - c->aad_bytes : n_bytes;
			memcpy(c->aad + c->aad_bytes, aad, n);
			if ((c->aad_bytes += n) == BLOCK) {
				gcm_aes128_update(&c->aes, BLOCK, c->aad);
				c->aad_bytes = 0;
			}
		}
		aad += n;
		n_bytes -= n;
	}
	return srtp_err_status_ok;
}

static void aead_finish_aad(struct aead *c)
{
	if (c->aad_bytes)
		gcm_aes128_update(&c->aes, c->aad_bytes, c->aad);
	c->has_iv = false;
}

static srtp_err_status_t aead_seal(void *state, uint8_t *bytes, unsigned *n_bytes)
{
	struct aead *c = state;

	if (!c->has_iv)
		return srtp_err_status_bad_param;
	aead_finish_aad(c);
	if (*n_bytes)
		gcm_aes128_encrypt(&c->aes, *n_bytes, bytes, bytes);
	gcm_aes128_digest(&c->aes, c->tag_bytes, c->tag);
	return srtp_err_status_ok;
}

static srtp_err_status_t aead_tag(void *state, uint8_t *tag, uint32_t *n_bytes)
{
	const struct aead *c = state;

	memcpy(tag, c->tag, c->tag_bytes);
	*n_bytes = c->tag_bytes;
	return srtp_err_status_ok;
}

/* The tag stands behind the text.  Nothing of a text that is not authentic is let out. */
static srtp_err_status_t aead_open(void *state, uint8_t *bytes, unsigned *n_bytes)
{
	struct aead *c = state;
	unsigned n;

	if (!c->has_iv)
		return srtp_err_status_bad_param;
	if (*n_bytes < c->tag_bytes)
		return srtp_err_status_auth_fail;
	n = *n_bytes - c->tag_bytes;
	aead_finish_aad(c);
	if (n)
		gcm_aes128_decrypt(&c->aes, n, bytes, bytes);
	gcm_aes128_digest(&c->aes, c->tag_bytes, c->tag);
	if (sodium_memcmp(c->tag, bytes + n, c->tag_bytes)) {
		memset(bytes, 0, n);
		return srtp_err_status_auth_fail;
	}
	*n_bytes = n;
	return srtp_err_status_ok;
}

/* Test case 4 of the GCM specification (McGrew and Viega, 2005), with an empty salt behind the key. */
static const uint8_t aead_key[SRTP_AES_GCM_128_KEY_LEN_WSALT] = {
	0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08 };
static const uint8_t aead_iv[GCM_IV_SIZE] = { 0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce, 0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88 };
static const uint8_t aead_aad[] = {
	0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xab, 0xad, 0xda, 0xd2 };
static const uint8_t aead_plain[] = {
	0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26, 0x9a,
	0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31, 0x8a, 0x72,
	0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49, 0xa6, 0xb5, 0x25,
	0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39 };
static const uint8_t aead_sealed[] = {
	0x42, 0x83, 0x1e, 0xc2, 0x21, 0x77, 0x74, 0x24, 0x4b, 0x72, 0x21, 0xb7, 0x84, 0xd0, 0xd4, 0x9c,
	0xe3, 0xaa, 0x21, 0x2f, 0x2c, 0x02, 0xa4, 0xe0, 0x35, 0xc1, 0x7e, 0x23, 0x29, 0xac, 0xa1, 0x2e,
	0x21, 0xd5, 0x14, 0xb2, 0x54, 0x66, 0x93, 0x1c, 0x7d, 0x8f, 0x6a, 0x5a, 0xac, 0x84, 0xaa, 0x05,
	0x1b, 0xa3, 0x0b, 0x39, 0x6a, 0x0a, 0xac, 0x97, 0x3d, 0x58, 0xe0, 0x91,
	0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb, 0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47 };

static const srtp_cipher_test_case_t aead_test = {
	.key_length_octets = sizeof(aead_key), .key = aead_key, .idx = (uint8_t *)(uintptr_t)aead_iv,
	.plaintext_length_octets = sizeof(aead_plain), .plaintext = aead_plain,
	.ciphertext_length_octets = sizeof(aead_sealed), .ciphertext = aead_sealed,
	.aad_length_octets = sizeof(aead_aad), .aad = aead_aad, .tag_length_octets = GCM_DIGEST_SIZE };

static const srtp_cipher_type_t aead_type = {
	.alloc = aead_alloc, .dealloc = aead_dealloc, .init = aead_init, .set_aad = aead_add_aad, .encrypt = aead_seal, .decrypt = aead_open,
	.set_iv = aead_begin, .get_tag = aead_tag, .description = "AES-128-GCM by nettle", .test_data = &aead_test, .id = SRTP_AES_GCM_128 };

/* ---- HMAC-SHA1: RFC 2104 ---- */

struct auth {
	srtp_auth_t auth;
	struct hmac_sha1_ctx sha1;
};

static srtp_err_status_t auth_alloc(srtp_auth_pointer_t *out, int key_bytes, int tag_bytes)
{
	struct auth *h;

	if (key_bytes < 0 || tag_bytes < 0 || tag_bytes > SHA1_DIGEST_SIZE)
		return srtp_err_status_bad_param;
	if (!(h = calloc(1, sizeof(*h))))
		return srtp_err_status_alloc_fail;
	h->auth = (srtp_auth_t){ .type = &auth_type, .state = h, .out_len = tag_bytes, .key_len = key_bytes };
	*out = &h->auth;
	return srtp_err_status_ok;
}

static srtp_err_status_t auth_dealloc(srtp_auth_pointer_t auth)
{
	struct auth *h = auth->state;

	sodium_memzero(h, sizeof(*h));
	free(h);
	return srtp_err_status_ok;
}

static srtp_err_status_t auth_init(void *state, const uint8_t *key, int key_bytes)
{
	struct auth *h = state;

	if (key_bytes < 0)
		return srtp_err_status_bad_param;
	hmac_sha1_set_key(&h->sha1, (size_t)key_bytes, key);
	return srtp_err_status_ok;
}

/* What a message that was given up left behind goes. */
static srtp_err_status_t auth_start(void *state)
{
	struct auth *h = state;

	h->sha1.state = h->sha1.inner;
	return srtp_err_status_ok;
}

static srtp_err_status_t auth_update(void *state, const uint8_t *bytes, int n_bytes)
{
	struct auth *h = state;

	if (n_bytes < 0)
		return srtp_err_status_bad_param;
	hmac_sha1_update(&h->sha1, (size_t)n_bytes, bytes);
	return srtp_err_status_ok;
}

static srtp_err_status_t auth_compute(void *state, const uint8_t *bytes, int n_bytes, int tag_bytes, uint8_t *tag)
{
	struct auth *h = state;

	if (n_bytes < 0 || tag_bytes < 0 || tag_bytes > SHA1_DIGEST_SIZE)
		return srtp_err_status_bad_param;
	hmac_sha1_update(&h->sha1, (size_t)n_bytes, bytes);
	hmac_sha1_digest(&h->sha1, (size_t)tag_bytes, tag);
	return srtp_err_status_ok;
}

/* RFC 2202, test case 1. */
static const uint8_t auth_key[20] = { 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11 };
static const uint8_t auth_data[8] = { 'H', 'i', ' ', 'T', 'h', 'e', 'r', 'e' };
static const uint8_t auth_digest[SHA1_DIGEST_SIZE] = {
	0xb6, 0x17, 0x31, 0x86, 0x55, 0x05, 0x72, 0x64, 0xe2, 0x8b, 0xc0, 0xb6, 0xfb, 0x37, 0x8c, 0x8e, 0xf1, 0x46, 0xbe, 0x00 };

static const srtp_auth_test_case_t auth_test = {
	.key_length_octets = sizeof(auth_key), .key = auth_key, .data_length_octets = sizeof(auth_data), .data = auth_data,
	.tag_length_octets = sizeof(auth_digest), .tag = auth_digest };

static const srtp_auth_type_t auth_type = {
	.alloc = auth_alloc, .dealloc = auth_dealloc, .init = auth_init, .compute = auth_compute, .update = auth_update,
	.start = auth_start, .description = "HMAC-SHA1 by nettle", .test_data = &auth_test, .id = SRTP_HMAC_SHA1 };

/* ---- libsrtp ---- */

/* libsrtp keeps its ciphers for the whole process, so whether it has ours is kept for the whole process too. */
static struct {
	pthread_once_t once;
	bool is_ready;
} srtpcipher_state = { .once = PTHREAD_ONCE_INIT };

/* Where somebody else started libsrtp before, it says bad_param once its self-tests passed. */
static void begin(void)
{
	srtp_err_status_t status = srtp_init();

	srtpcipher_state.is_ready = (status == srtp_err_status_ok || status == srtp_err_status_bad_param) && sodium_init() >= 0 &&
		!srtp_replace_cipher_type(&icm_type, SRTP_AES_ICM_128) && !srtp_replace_cipher_type(&aead_type, SRTP_AES_GCM_128) &&
		!srtp_replace_auth_type(&auth_type, SRTP_HMAC_SHA1);
}

bool srtpcipher_begin(void)
{
	return !pthread_once(&srtpcipher_state.once, begin) && srtpcipher_state.is_ready;
}
