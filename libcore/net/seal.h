/*
 * A sealed two-way byte stream between two sides that share a key: secret, authentic both ways, forward secret.  By
 * libsodium; pure: bytes in, bytes out, no sockets and no clock.
 *
 * Handshake.  psk: 32 bytes shared before.  ‖ joins.  H(k, x): BLAKE2b with 32 bytes out, key k.
 *   hello    client → server, 72 bytes:   "WEIRSEA" version(1)=1, client's ephemeral X25519 public key(32),
 *                                         H(psk, "hello" ‖ the 40 bytes before)
 *   answer   server → client, 72 bytes:   "WEIRSEA" version(1)=1, server's ephemeral public key(32),
 *                                         H(ka, "answer" ‖ hello ‖ the 40 bytes before)
 *   confirm  client → server, 56 bytes:   H(kc, "confirm" ‖ hello ‖ answer)(32), header of the client's records(24)
 *   then     server → client, 24 bytes:   header of the server's records, and records both ways
 * The keys ka, kc, of each side's records and of seal_export() are H(psk, label(8, zero-padded) ‖ c ‖ s ‖ H(hello ‖ the
 * first 40 bytes of answer)), c and s being what the client and the server send with by crypto_kx (X25519), labels
 * "answer", "confirm", "client", "server", "export"; the inner H has no key.
 * A server stays silent before a hello that does not know psk, answers one that does with no more bytes than it got,
 * and takes nothing as authentic before the confirm: a repeated hello gets an answer that is of no use.
 *
 * Record: length u16 (big-endian) of what follows, 17…65535; then crypto_secretstream_xchacha20poly1305 of the data,
 * with the two bytes of length as additional data.  The last record of a side has the final tag; an end without it is
 * an end that was cut.  Order and number of the records are part of the cipher: one that is repeated, left out, moved
 * or changed is refused, and nothing after it is read.
 */
#ifndef NET_SEAL_H
#define NET_SEAL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_VERSION 1
#define SEAL_PSK_BYTES 32
#define SEAL_RANDOM_BYTES 32
#define SEAL_HELLO_BYTES 72
#define SEAL_ANSWER_BYTES 72
#define SEAL_CONFIRM_BYTES 56
#define SEAL_HEADER_BYTES 24
#define SEAL_OVERHEAD_BYTES 19                        /* a record's: length 2, tag and authenticator 17 */
#define SEAL_DATA_MAX_BYTES (65535 - 17)              /* of one record */
#define SEAL_RECORD_MAX_BYTES (65535 + 2)

enum seal_side {
	SEAL_CLIENT, /* connects, speaks first */
	SEAL_SERVER,
};

enum seal_step {
	SEAL_NEW, SEAL_WAIT_HELLO, SEAL_WAIT_ANSWER, SEAL_WAIT_CONFIRM, SEAL_WAIT_HEADER, SEAL_OPEN, SEAL_FAILED,
};

/* One connection.  Fields are its own.  seal_release() wipes it. */
struct seal {
	enum seal_side side;
	enum seal_step step;
	bool is_peer_authentic;  /* the other side has proved that it knows the key */
	bool is_final_sent, is_final_read;
	uint8_t psk[SEAL_PSK_BYTES];
	uint8_t secret[32], public[32];
	uint8_t random[SEAL_RANDOM_BYTES];
	uint8_t hello[SEAL_HELLO_BYTES], answer[SEAL_ANSWER_BYTES];
	uint8_t keys[5][32];     /* answer, confirm, client's records, server's records, exporter */
	uint64_t push[8], pull[8]; /* states of crypto_secretstream */
};

/* random: SEAL_RANDOM_BYTES fresh from secret_random() for each connection; a test gives its own.  psk: copied. */
WEIR_MUSTUSE enum err seal_init(struct seal *s, enum seal_side side, const uint8_t psk[SEAL_PSK_BYTES],
	const uint8_t random[SEAL_RANDOM_BYTES]);
/* Wipes everything.  NULL- and zero-safe. */
void seal_release(struct seal *s);

/*
 * One step of the handshake.  Call with what has come (n_in may be 0: the client begins so); *n_used bytes of it were
 * taken, *n_out bytes of out (cap at least SEAL_HELLO_BYTES) are to be sent, also when ERR_AGAIN is returned.
 * Returns: ERR_OK when it is done (for the server: the client is authentic); ERR_AGAIN for more bytes; ERR_VERSION for
 * another version; ERR_PEER if the other side does not know the key: close without a word, it stays failed.
 */
WEIR_MUSTUSE enum err seal_handshake(struct seal *s, const uint8_t *in, size_t n_in, size_t *n_used, uint8_t *out,
	size_t cap_bytes, size_t *n_out);

/*
 * Seal n_bytes (0…SEAL_DATA_MAX_BYTES) as one record; is_final: the last one.  out has n_bytes + SEAL_OVERHEAD_BYTES.
 * No allocation.  Returns: ERR_LIMIT if it is too long, ERR_ARG before the handshake or after the final record.
 */
WEIR_MUSTUSE enum err seal_write(struct seal *s, const uint8_t *data, size_t n_bytes, bool is_final, uint8_t *out,
	size_t *n_out);

/*
 * Open the record at the front of in.  *n_used is the whole record or 0; out has room for SEAL_DATA_MAX_BYTES, or for
 * as much as seal_record_bytes() says.  Returns: ERR_OK with *n_out bytes; ERR_AGAIN if it is not whole yet; ERR_END with
 * the last record (*n_out bytes of it count); ERR_PEER if it is not authentic or out of order: it stays failed.
 */
WEIR_MUSTUSE enum err seal_read(struct seal *s, const uint8_t *in, size_t n_in, size_t *n_used, uint8_t *out,
	size_t *n_out);

/* Bytes of the whole record that begins with in[0…1]; 0 if n_in < 2. */
size_t seal_record_bytes(const uint8_t *in, size_t n_in);

/* What the end of the connection means.  Returns: ERR_END after the final record, ERR_CUT without it. */
enum err seal_end(const struct seal *s);

/* A key that only the two sides of this connection know, for label (≤ 32 bytes): the media's.  n_bytes: 16…64. */
WEIR_MUSTUSE enum err seal_export(const struct seal *s, const char *label, uint8_t *dst, size_t n_bytes);

#endif
