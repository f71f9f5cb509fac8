/*
 * A ring of bytes for one producer and one consumer, mapped twice in a row: whatever lies in it is contiguous, wherever
 * it begins.  head and tail count bytes since the start and never wrap back (64 bits).
 *
 * Memory order: each side loads its own index relaxed and the other's with acquire, and publishes its own with release.
 */
#ifndef RT_RING_H
#define RT_RING_H

#include "base/err.h"
#include "base/role.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	uint8_t *bytes;          /* 2 · size_bytes of address space over size_bytes of memory; page aligned */
	size_t size_bytes;       /* a power of two, at least a page */
	_Alignas(64) atomic_uint_fast64_t head_bytes; /* the consumer's: read up to here */
	_Alignas(64) atomic_uint_fast64_t tail_bytes; /* the producer's: written up to here */
};

/* Take at least min_bytes (rounded up to a power of two of pages).  Returns: ERR_OK, ERR_NOMEM, ERR_SYS.  Role: control. */
enum err ring_init(struct ring *r, size_t min_bytes, struct err_why *why) WEIR_MUSTUSE;
void ring_release(struct ring *r);

/* Bytes that lie in it, more or less: a look from any thread. */
WEIR_DEADLINE size_t ring_fill(const struct ring *r);

/* ---- Reading: the consumer's thread only ---- */

/* What can be read, contiguous at *bytes. */
WEIR_DEADLINE size_t ring_peek(const struct ring *r, uint8_t **bytes);
/* n_bytes of it are done with. */
WEIR_DEADLINE void ring_consume(struct ring *r, size_t n_bytes);

/*
 * Where one thread is producer and consumer: begin again at the front, so that no more memory is used than has to be, if what would
 * move for that is at most most_bytes and least_bytes lie before it.  What was peeked at and not consumed moves.
 */
void ring_rewind(struct ring *r, size_t most_bytes, size_t least_bytes);

/* ---- Writing: the producer's thread only ---- */

/* What can be written, contiguous at *bytes. */
WEIR_DEADLINE size_t ring_room(const struct ring *r, uint8_t **bytes);
/* n_bytes of it are written. */
WEIR_DEADLINE void ring_commit(struct ring *r, size_t n_bytes);

#endif
