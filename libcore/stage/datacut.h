/*
 * Bytes into messages: lines, messages with their length before them, or the messages of a MIDI cable.  Looks at each byte once and copies
 * nothing; what is longer than DATACUT_MAX_BYTES is cut where a character of UTF-8 ends.
 */
#ifndef STAGE_DATACUT_H
#define STAGE_DATACUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATACUT_MAX_BYTES (1u << 20) /* of a message */
#define DATACUT_PREFIX_BYTES 4u
#define DATACUT_CLOCKED_BYTES 16u /* a short message of MIDI with the clocks in it */

enum datacut_form {
	DATACUT_LINES,       /* each ends with a newline, which is not part of it */
	DATACUT_LE32,        /* 4 bytes before it say its length, the lowest first */
	DATACUT_BE32,        /* the highest first: OSC 1.0 over a stream */
	DATACUT_MIDI,        /* MIDI 1.0 as it comes from a cable, running status and all */
};

struct datacut {
	enum datacut_form form;
	size_t looked_bytes; /* of what is there, without finding an end */
	uint8_t status;      /* MIDI: running status; 0 none */
	uint64_t n_cut;      /* lines and system exclusives that were too long, and were cut */
};

struct datacut_part {
	size_t at_bytes, n_bytes; /* the message in what was given */
	size_t taken_bytes;       /* with what surrounds it: where the next one begins */
	uint8_t status;           /* MIDI: not 0: this byte goes before it */
};

/*
 * The first message of the n_bytes at `bytes`; is_end: no more will follow, and a line without a newline is one.  Call again with the same
 * bytes and more, or with what follows taken_bytes.
 * Returns: ERR_OK; ERR_AGAIN: not whole yet (taken_bytes, if not 0, belong to nothing); ERR_LIMIT: a length beyond DATACUT_MAX_BYTES; ERR_FORMAT: it ends within a message.
 */
enum err datacut_next(struct datacut *c, const uint8_t *bytes, size_t n_bytes, bool is_end, struct datacut_part *part) WEIR_MUSTUSE;

/* The most bytes up to n that end with a whole character, if it is UTF-8; n itself if not.  Byte n, behind them, is looked at too. */
size_t datacut_whole_bytes(const uint8_t *bytes, size_t n);

#endif
