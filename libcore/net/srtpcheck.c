#include "net/srtpcheck.h"

#include "base/bytes.h"

#include <nettle/aes.h>
#include <nettle/ctr.h>
#include <sodium.h>
#include <string.h>

#define RTP_BYTES 12
#define RTCP_BYTES 8
#define WORD_BYTES 4      /* in SRTCP: whether it is encrypted, and its index */
#define SHA1_TAG_BYTES 10
#define AUTH_KEY_BYTES 20 /* RFC 3711, section 8.2 */
#define ENCRYPTED 0x80000000u

/* The labels of RFC 3711, section 4.3; RTCP's are these and 3 more. */
enum { LABEL_CIPHER, LABEL_AUTH, LABEL_SALT, LABELS };

/*
 * AES in counter mode over nothing but the master salt and a label.  A salt of 12 bytes stands in front of two zeros.
 * Section 4.3.3: the label is the byte in front of a 48-bit index, which is 0 here; the block counter comes behind.
 */
static void derive(const struct srtp_key *key, unsigned label, uint8_t *out, size_t n_bytes)
{
	struct aes128_ctx aes;
	uint8_t counter[AES_BLOCK_SIZE] = { 0 };

	aes128_set_encrypt_key(&aes, key->bytes);
	memcpy(counter, key->bytes + AES128_KEY_SIZE, srtp_key_bytes(key->kind) - AES128_KEY_SIZE);
	counter[7] ^= (uint8_t)label;
	memset(out, 0, n_bytes);
	ctr_crypt(&aes, (nettle_cipher_func *)aes128_encrypt, sizeof(counter), counter, n_bytes, out, out);
	sodium_memzero(&aes, sizeof(aes));
	sodium_memzero(counter, sizeof(counter));
}

static void derive_keys(struct srtpcheck_keys *k, const struct srtp_key *key, unsigned first_label)
{
	uint8_t bytes[AUTH_KEY_BYTES];

	if (key->kind == SRTP_GCM) {
		derive(key, first_label + LABEL_CIPHER, bytes, AES128_KEY_SIZE);
		gcm_aes128_set_key(&k->gcm, bytes);
		derive(key, first_label + LABEL_SALT, k->salt, sizeof(k->salt));
	} else {
		derive(key, first_label + LABEL_AUTH, bytes, AUTH_KEY_BYTES);
		hmac_sha1_set_key(&k->sha1, AUTH_KEY_BYTES, bytes);
	}
	sodium_memzero(bytes, sizeof(bytes));
}

void srtpcheck_init(struct srtpcheck *c, const struct srtp_key *key)
{
	c->kind = key->kind;
	derive_keys(&c->rtp, key, 0);
	derive_keys(&c->rtcp, key, LABELS);
}

/* RFC 3711, section 4.2: more is counted as standing behind the packet, and is not sent. */
static bool sha1_fits(struct srtpcheck_keys *k, const uint8_t *packet, size_t n_bytes, const uint8_t *more, size_t n_more)
{
	uint8_t tag[SHA1_TAG_BYTES];

	hmac_sha1_update(&k->sha1, n_bytes - SHA1_TAG_BYTES, packet);
	hmac_sha1_update(&k->sha1, n_more, more);
	hmac_sha1_digest(&k->sha1, sizeof(tag), tag);
	return sodium_memcmp(tag, packet + n_bytes - SHA1_TAG_BYTES, sizeof(tag)) == 0;
}

/* iv: without the salt.  The tag stands behind the text. */
static bool gcm_fits(struct srtpcheck_keys *k, uint8_t *iv, const uint8_t *aad, size_t n_aad, const uint8_t *text, size_t n_text)
{
	uint8_t plain[SRTP_PACKET_MAX_BYTES], tag[GCM_DIGEST_SIZE];

	for (unsigned i = 0; i < GCM_IV_SIZE; i++)
		iv[i] ^= k->salt[i];
	gcm_aes128_set_iv(&k->gcm, GCM_IV_SIZE, iv);
	gcm_aes128_update(&k->gcm, n_aad, aad);
	gcm_aes128_decrypt(&k->gcm, n_text, plain, text);
	gcm_aes128_digest(&k->gcm, sizeof(tag), tag);
	return sodium_memcmp(tag, text + n_text, sizeof(tag)) == 0;
}

bool srtpcheck_rtp(struct srtpcheck *c, const uint8_t *packet, size_t n_bytes)
{
	size_t n_head = RTP_BYTES + 4u * (packet[0] & 15), n_whole;
	uint8_t iv[GCM_IV_SIZE] = { 0 }, roc[4] = { 0 };

	if (c->kind == SRTP_SHA1)
		return sha1_fits(&c->rtp, packet, n_bytes, roc, sizeof(roc));
	n_whole = n_bytes - GCM_DIGEST_SIZE;
	if (packet[0] & 0x10) {
		if (n_head + 4 > n_whole)
			return false;
		n_head += 4 + 4u * get_be16(packet + n_head + 2);
	}
	if (n_head > n_whole)
		return false;
	/* RFC 7714, section 8.1: two zeros, SSRC, roll-over counter, sequence number. */
	memcpy(iv + 2, packet + 8, 4);
	memcpy(iv + 10, packet + 2, 2);
	return gcm_fits(&c->rtp, iv, packet, n_head, packet + n_head, n_whole - n_head);
}

bool srtpcheck_rtcp(struct srtpcheck *c, const uint8_t *packet, size_t n_bytes)
{
	uint8_t iv[GCM_IV_SIZE] = { 0 }, aad[SRTP_PACKET_MAX_BYTES];
	const uint8_t *word = packet + n_bytes - WORD_BYTES;
	size_t n_plain, n_text;

	if (c->kind == SRTP_SHA1)
		return get_be32(word - SHA1_TAG_BYTES) & ENCRYPTED && sha1_fits(&c->rtcp, packet, n_bytes, packet, 0);
	/* RFC 7714, section 9.1: two zeros, SSRC, two zeros, index.  Section 9.2 and 9.3: what is not encrypted is AAD. */
	memcpy(iv + 2, packet + 4, 4);
	put_be32(iv + 8, get_be32(word) & ~ENCRYPTED);
	n_text = n_bytes - WORD_BYTES - GCM_DIGEST_SIZE;
	n_plain = get_be32(word) & ENCRYPTED ? RTCP_BYTES : n_text;
	n_text -= n_plain;
	memcpy(aad, packet, n_plain);
	memcpy(aad + n_plain, word, WORD_BYTES);
	return gcm_fits(&c->rtcp, iv, aad, n_plain + WORD_BYTES, packet + n_plain, n_text);
}
