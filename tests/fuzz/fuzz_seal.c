/*
 * The sealed stream against bytes from anybody: as a server, as a client, and in the middle of a connection.  Nothing passes
 * that was not written by the other side.  Input: a byte that chooses, then what comes.
 */
#include "fuzz.h"

#include "base/bytes.h"
#include "net/seal.h"

#include <string.h>

static const uint8_t psk[SEAL_PSK_BYTES] = { 1, 2, 3 };
static uint8_t plain[SEAL_DATA_MAX_BYTES];

/* A stranger has not got the key: no handshake comes to an end. */
static void stranger(enum seal_side side, const uint8_t *in, size_t n_in)
{
	const uint8_t random[SEAL_RANDOM_BYTES] = { 9 };
	uint8_t out[SEAL_HELLO_BYTES];
	size_t n_used, n_out, told = 0, said = 0;
	struct seal s;
	enum err e = ERR_AGAIN;

	must(!seal_init(&s, side, psk, random));
	for (unsigned i = 0; i < 8 && e == ERR_AGAIN; i++) {
		e = seal_handshake(&s, in, n_in, &n_used, out, sizeof(out), &n_out);
		must(n_used <= n_in && n_out <= sizeof(out));
		in += n_used, n_in -= n_used;
		told += n_used, said += n_out;
		must(side == SEAL_CLIENT || said <= told);
	}
	must(e == ERR_AGAIN || e == ERR_PEER || e == ERR_VERSION);
	must(!s.is_peer_authentic);
	must(seal_read(&s, in, n_in, &n_used, plain, &n_out) != ERR_OK);
	seal_release(&s);
}

/* Both sides connected; what the server reads is `in`. */
static void connected(const uint8_t *in, size_t n_in)
{
	const uint8_t random[2][SEAL_RANDOM_BYTES] = { { 1 }, { 2 } };
	struct seal ends[2];
	uint8_t wire[SEAL_HELLO_BYTES];
	size_t n_wire = 0, n_used, n_out;
	enum err e[2] = { ERR_AGAIN, ERR_AGAIN };

	must(!seal_init(&ends[0], SEAL_CLIENT, psk, random[0]) && !seal_init(&ends[1], SEAL_SERVER, psk, random[1]));
	for (unsigned turn = 0; turn < 6 && (e[0] || e[1]); turn++) {
		uint8_t out[SEAL_HELLO_BYTES];
		e[turn % 2] = seal_handshake(&ends[turn % 2], wire, n_wire, &n_used, out, sizeof(out), &n_out);
		memcpy(wire, out, n_wire = n_out);
	}
	must(!e[0] && !e[1]);

	/* One real record first, then what came. */
	uint8_t record[64];
	must(!seal_write(&ends[0], (const uint8_t *)"real", 4, false, record, &n_out));
	must(!seal_read(&ends[1], record, n_out, &n_used, plain, &n_out) && n_out == 4 && !memcmp(plain, "real", 4));
	enum err r = seal_read(&ends[1], in, n_in, &n_used, plain, &n_out);
	must(r == ERR_PEER || r == ERR_AGAIN);
	must(!n_used && !n_out);
	seal_release(&ends[0]);
	seal_release(&ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	if (!n_bytes)
		return 0;
	switch (data[0] & 3) {
	case 0:
		connected(data + 1, n_bytes - 1);
		break;
	case 1:
		stranger(SEAL_SERVER, data + 1, n_bytes - 1);
		break;
	default:
		stranger(SEAL_CLIENT, data + 1, n_bytes - 1);
	}
	return 0;
}
