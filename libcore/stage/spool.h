/*
 * Queues of records that wait in memory, and beyond a limit in an unlinked temporary file: what one input sends while
 * another keeps a mix waiting.  All queues of a store share its limits.
 *
 * A queue belongs to one thread; the store's counters are for all.
 */
#ifndef STAGE_SPOOL_H
#define STAGE_SPOOL_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_FIRST_BYTES 65536u /* a queue's memory at first; not counted against the limit */

struct spool_store {
	size_t memory_limit_bytes;
	uint64_t file_limit_bytes;
	atomic_size_t memory_bytes;
	atomic_uint_fast64_t file_bytes;  /* that wait in files now */
	atomic_uint_fast64_t spooled_bytes; /* that ever went there */
};

struct spool {
	struct spool_store *store;
	uint8_t *buffer;
	size_t room_bytes, first_bytes, end_bytes; /* records lie in first…end */
	int fd;                                    /* of the file, −1 none */
	uint64_t file_first_bytes, file_end_bytes, punched_bytes;
	size_t largest_bytes;                      /* of all records that went to the file */
};

/* Takes the first memory.  Returns: ERR_OK, ERR_NOMEM. */
enum err spool_init(struct spool *s, struct spool_store *store) WEIR_MUSTUSE;
/* Zero-safe only after spool_init() or for a struct with fd −1 and no buffer. */
void spool_release(struct spool *s);

/*
 * Queue head and body as one record.  Allocates when the queue grows, never when it stays as long as it was.
 * Returns: ERR_OK; ERR_LIMIT: the files are full; ERR_NOMEM; ERR_SYS with errno.  Role: io.
 */
enum err spool_put(struct spool *s, const void *head, size_t head_bytes, const void *body, size_t body_bytes) WEIR_MUSTUSE;

/*
 * The oldest record, 16-byte aligned, contiguous, until the next spool_put() or spool_drop().
 * Returns: ERR_OK; ERR_END: the queue is empty; ERR_SYS, ERR_NOMEM.
 */
enum err spool_peek(struct spool *s, uint8_t **record, size_t *n_bytes) WEIR_MUSTUSE;
/* It is done with. */
void spool_drop(struct spool *s);

/* Would a record of n_bytes go to the file; and would it not fit there either? */
bool spool_goes_to_file(const struct spool *s, size_t n_bytes);
bool spool_is_full(const struct spool *s, size_t n_bytes);

static inline bool spool_is_empty(const struct spool *s)
{
	return s->first_bytes == s->end_bytes && s->file_first_bytes == s->file_end_bytes;
}

#endif
