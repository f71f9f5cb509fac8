#include "net/seal.h"

#include "base/bytes.h"

#include <assert.h>
#include <sodium.h>

#define NAME_BYTES 7
#define PUBLIC_AT 8
#define PROOF_AT 40 /* of a hello and of an answer: name, version, public key before it */
#define PROOF_BYTES 32
#define LENGTH_BYTES 2
#define CIPHER_BYTES ((size_t)crypto_secretstream_xchacha20poly1305_ABYTES)

static const uint8_t name[NAME_BYTES + 1] = "WEIRSEA";

/* Keys by number, in seal.keys. */
enum { KEY_ANSWER, KEY_CONFIRM, KEY_CLIENT, KEY_SERVER, KEY_EXPORT, N_KEYS };
static const char labels[N_KEYS][8] = { "answer", "confirm", "client", "server", "export" };

typedef crypto_secretstream_xchacha20poly1305_state stream_state;
_Static_assert(sizeof(stream_state) <= sizeof((struct seal *)0)->push, "room for libsodium's state");
_Static_assert(crypto_secretstream_xchacha20poly1305_HEADERBYTES == SEAL_HEADER_BYTES, "header of a stream");
_Static_assert(crypto_secretstream_xchacha20poly1305_ABYTES + LENGTH_BYTES == SEAL_OVERHEAD_BYTES, "overhead of a record");
_Static_assert(crypto_kx_SESSIONKEYBYTES == 32 && crypto_kx_PUBLICKEYBYTES == 32 && crypto_kx_SECRETKEYBYTES == 32, "lengths of keys");
_Static_assert(sizeof((struct seal *)0)->keys == N_KEYS * 32, "keys");

struct part {
	const void *p;
	size_t n_bytes;
};

/* H(key, parts): BLAKE2b of 32 bytes. */
static void digest(uint8_t out[32], const uint8_t key[32], const struct part *parts, size_t n)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, key, key ? 32 : 0, 32);
	for (size_t i = 0; i < n; i++)
		crypto_generichash_update(&h, parts[i].p, parts[i].n_bytes);
	crypto_generichash_final(&h, out, 32);
	sodium_memzero(&h, sizeof(h));
}

enum err seal_init(struct seal *s, enum seal_side side, const uint8_t psk[SEAL_PSK_BYTES], const uint8_t random[SEAL_RANDOM_BYTES])
{
	uint8_t seed[32];

	if (sodium_init() < 0)
		return ERR_SYS;
	*s = (struct seal){ .side = side, .step = side == SEAL_CLIENT ? SEAL_NEW : SEAL_WAIT_HELLO };
	memcpy(s->psk, psk, sizeof(s->psk));
	memcpy(s->random, random, sizeof(s->random));
	digest(seed, s->random, (struct part[]){ { "ephemeral", 9 } }, 1);
	crypto_kx_seed_keypair(s->public, s->secret, seed);
	sodium_memzero(seed, sizeof(seed));
	return ERR_OK;
}

void seal_release(struct seal *s)
{
	if (s)
		sodium_memzero(s, sizeof(*s));
}

static enum err fail(struct seal *s, enum err e)
{
	enum seal_side side = s->side;

	sodium_memzero(s, sizeof(*s));
	s->side = side;
	s->step = SEAL_FAILED;
	return e;
}

/* ---- handshake ---- */

static void put_front(struct seal *s, uint8_t *p)
{
	memcpy(p, name, NAME_BYTES);
	p[NAME_BYTES] = SEAL_VERSION;
	memcpy(p + PUBLIC_AT, s->public, 32);
}

static void hello_proof(const struct seal *s, const uint8_t *hello, uint8_t proof[PROOF_BYTES])
{
	digest(proof, s->psk, (struct part[]){ { "hello", 5 }, { hello, PROOF_AT } }, 2);
}

static void answer_proof(const struct seal *s, const uint8_t *answer, uint8_t proof[PROOF_BYTES])
{
	digest(proof, s->keys[KEY_ANSWER], (struct part[]){ { "answer", 6 }, { s->hello, SEAL_HELLO_BYTES }, { answer, PROOF_AT } }, 3);
}

static void confirm_proof(const struct seal *s, uint8_t proof[PROOF_BYTES])
{
	digest(proof, s->keys[KEY_CONFIRM],
		(struct part[]){ { "confirm", 7 }, { s->hello, SEAL_HELLO_BYTES }, { s->answer, SEAL_ANSWER_BYTES } }, 3);
}

/*
 * All keys, from both public keys.  The transcript here is what stands before the proofs: the answer's own proof needs
 * the first of these keys.
 */
static bool make_keys(struct seal *s, const uint8_t *hello, const uint8_t *answer)
{
	uint8_t rx[32], tx[32], transcript[32];
	bool client = s->side == SEAL_CLIENT;
	int r = client ? crypto_kx_client_session_keys(rx, tx, s->public, s->secret, answer + PUBLIC_AT)
		       : crypto_kx_server_session_keys(rx, tx, s->public, s->secret, hello + PUBLIC_AT);

	if (!r) {
		/* Both sides put the client's sending key first. */
		digest(transcript, NULL, (struct part[]){ { hello, SEAL_HELLO_BYTES }, { answer, PROOF_AT } }, 2);
		for (unsigned k = 0; k < N_KEYS; k++)
			digest(s->keys[k], s->psk,
				(struct part[]){ { labels[k], sizeof(labels[k]) }, { client ? tx : rx, 32 }, { client ? rx : tx, 32 }, { transcript, 32 } }, 4);
	}
	sodium_memzero(rx, sizeof(rx));
	sodium_memzero(tx, sizeof(tx));
	/* What would let this conversation be read later is gone from here on. */
	sodium_memzero(s->secret, sizeof(s->secret));
	return !r;
}

/* Our stream's header, and the state to write with.  The header is drawn from the caller's random bytes. */
static void begin_push(struct seal *s, uint8_t header[SEAL_HEADER_BYTES])
{
	uint8_t drawn[32];

	digest(drawn, s->random, (struct part[]){ { "header", 6 } }, 1);
	memcpy(header, drawn, SEAL_HEADER_BYTES);
	/* libsodium's init_push() draws a header and does then just this with it. */
	crypto_secretstream_xchacha20poly1305_init_pull((stream_state *)s->push, header, s->keys[s->side == SEAL_CLIENT ? KEY_CLIENT : KEY_SERVER]);
}

static void begin_pull(struct seal *s, const uint8_t header[SEAL_HEADER_BYTES])
{
	crypto_secretstream_xchacha20poly1305_init_pull((stream_state *)s->pull, header, s->keys[s->side == SEAL_CLIENT ? KEY_SERVER : KEY_CLIENT]);
	sodium_memzero(s->psk, sizeof(s->psk));
	sodium_memzero(s->random, sizeof(s->random));
	s->step = SEAL_OPEN;
}

static enum err say_hello(struct seal *s, uint8_t *out, size_t *n_out)
{
	put_front(s, s->hello);
	hello_proof(s, s->hello, s->hello + PROOF_AT);
	memcpy(out, s->hello, SEAL_HELLO_BYTES);
	*n_out = SEAL_HELLO_BYTES;
	s->step = SEAL_WAIT_ANSWER;
	return ERR_AGAIN;
}

static enum err take_hello(struct seal *s, const uint8_t *in, uint8_t *out, size_t *n_out)
{
	uint8_t proof[PROOF_BYTES];

	memcpy(s->hello, in, SEAL_HELLO_BYTES);
	hello_proof(s, s->hello, proof);
	if (sodium_memcmp(proof, s->hello + PROOF_AT, PROOF_BYTES))
		return fail(s, ERR_PEER);
	put_front(s, s->answer);
	if (!make_keys(s, s->hello, s->answer))
		return fail(s, ERR_PEER);
	answer_proof(s, s->answer, s->answer + PROOF_AT);
	memcpy(out, s->answer, SEAL_ANSWER_BYTES);
	*n_out = SEAL_ANSWER_BYTES;
	s->step = SEAL_WAIT_CONFIRM;
	return ERR_AGAIN;
}

static enum err take_answer(struct seal *s, const uint8_t *in, uint8_t *out, size_t *n_out)
{
	uint8_t proof[PROOF_BYTES];

	memcpy(s->answer, in, SEAL_ANSWER_BYTES);
	if (!make_keys(s, s->hello, s->answer))
		return fail(s, ERR_PEER);
	answer_proof(s, s->answer, proof);
	if (sodium_memcmp(proof, s->answer + PROOF_AT, PROOF_BYTES))
		return fail(s, ERR_PEER);
	s->is_peer_authentic = true;
	confirm_proof(s, out);
	begin_push(s, out + PROOF_BYTES);
	*n_out = SEAL_CONFIRM_BYTES;
	s->step = SEAL_WAIT_HEADER;
	return ERR_AGAIN;
}

static enum err take_confirm(struct seal *s, const uint8_t *in, uint8_t *out, size_t *n_out)
{
	uint8_t proof[PROOF_BYTES];

	confirm_proof(s, proof);
	if (sodium_memcmp(proof, in, PROOF_BYTES))
		return fail(s, ERR_PEER);
	s->is_peer_authentic = true;
	begin_push(s, out);
	*n_out = SEAL_HEADER_BYTES;
	begin_pull(s, in + PROOF_BYTES);
	return ERR_OK;
}

/* A stranger is told apart by as few bytes as possible: nothing is waited for that cannot become right. */
static enum err check_front(struct seal *s, const uint8_t *in, size_t n_in)
{
	size_t n = n_in < NAME_BYTES ? n_in : NAME_BYTES;

	if (memcmp(in, name, n))
		return fail(s, ERR_PEER);
	if (n_in > NAME_BYTES && in[NAME_BYTES] != SEAL_VERSION)
		return fail(s, ERR_VERSION);
	return ERR_OK;
}

enum err seal_handshake(struct seal *s, const uint8_t *in, size_t n_in, size_t *n_used, uint8_t *out, size_t cap_bytes, size_t *n_out)
{
	static const size_t wanted[] = {
		[SEAL_WAIT_HELLO] = SEAL_HELLO_BYTES, [SEAL_WAIT_ANSWER] = SEAL_ANSWER_BYTES,
		[SEAL_WAIT_CONFIRM] = SEAL_CONFIRM_BYTES, [SEAL_WAIT_HEADER] = SEAL_HEADER_BYTES,
	};
	enum err e;

	assert(cap_bytes >= SEAL_HELLO_BYTES);
	*n_used = *n_out = 0;
	if (s->step == SEAL_NEW)
		return say_hello(s, out, n_out);
	if (s->step == SEAL_OPEN)
		return ERR_OK;
	if (s->step == SEAL_FAILED)
		return ERR_PEER;
	if ((s->step == SEAL_WAIT_HELLO || s->step == SEAL_WAIT_ANSWER) && n_in && (e = check_front(s, in, n_in)))
		return e;
	if (n_in < wanted[s->step])
		return ERR_AGAIN;
	*n_used = wanted[s->step];
	switch (s->step) {
	case SEAL_WAIT_HELLO:
		return take_hello(s, in, out, n_out);
	case SEAL_WAIT_ANSWER:
		return take_answer(s, in, out, n_out);
	case SEAL_WAIT_CONFIRM:
		return take_confirm(s, in, out, n_out);
	default:
		begin_pull(s, in);
		return ERR_OK;
	}
}

/* ---- records ---- */

enum err seal_write(struct seal *s, const uint8_t *data, size_t n_bytes, bool is_final, uint8_t *out, size_t *n_out)
{
	uint8_t tag = is_final ? crypto_secretstream_xchacha20poly1305_TAG_FINAL : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;

	*n_out = 0;
	if (n_bytes > SEAL_DATA_MAX_BYTES)
		return ERR_LIMIT;
	if (s->step != SEAL_OPEN || s->is_final_sent)
		return ERR_ARG;
	put_be16(out, (uint16_t)(n_bytes + CIPHER_BYTES));
	crypto_secretstream_xchacha20poly1305_push((stream_state *)s->push, out + LENGTH_BYTES, NULL, data, n_bytes, out, LENGTH_BYTES, tag);
	s->is_final_sent = is_final;
	*n_out = n_bytes + SEAL_OVERHEAD_BYTES;
	return ERR_OK;
}

size_t seal_record_bytes(const uint8_t *in, size_t n_in)
{
	return n_in < LENGTH_BYTES ? 0 : (size_t)get_be16(in) + LENGTH_BYTES;
}

enum err seal_read(struct seal *s, const uint8_t *in, size_t n_in, size_t *n_used, uint8_t *out, size_t *n_out)
{
	size_t record_bytes = seal_record_bytes(in, n_in);
	unsigned char tag = 0;
	unsigned long long n = 0;

	*n_used = *n_out = 0;
	if (s->step == SEAL_FAILED)
		return ERR_PEER;
	if (s->step != SEAL_OPEN)
		return ERR_ARG;
	/* Nothing follows the final record. */
	if (s->is_final_read)
		return n_in ? fail(s, ERR_PEER) : ERR_END;
	if (record_bytes && record_bytes < SEAL_OVERHEAD_BYTES)
		return fail(s, ERR_PEER);
	if (!record_bytes || n_in < record_bytes)
		return ERR_AGAIN;
	if (crypto_secretstream_xchacha20poly1305_pull((stream_state *)s->pull, out, &n, &tag, in + LENGTH_BYTES,
		    record_bytes - LENGTH_BYTES, in, LENGTH_BYTES))
		return fail(s, ERR_PEER);
	*n_used = record_bytes;
	*n_out = (size_t)n;
	if (tag != crypto_secretstream_xchacha20poly1305_TAG_FINAL)
		return ERR_OK;
	s->is_final_read = true;
	return ERR_END;
}

enum err seal_end(const struct seal *s)
{
	return s->step == SEAL_OPEN && s->is_final_read ? ERR_END : ERR_CUT;
}

enum err seal_export(const struct seal *s, const char *label, uint8_t *dst, size_t n_bytes)
{
	size_t n_label = strlen(label);

	if (s->step != SEAL_OPEN || n_label > 32 || n_bytes < crypto_generichash_BYTES_MIN || n_bytes > 64)
		return ERR_ARG;
	crypto_generichash(dst, n_bytes, (const unsigned char *)label, n_label, s->keys[KEY_EXPORT], 32);
	return ERR_OK;
}
