/*
 * Counts every heap allocation of the process, the libraries' included, by standing in front of the C library's
 * malloc family.  That is the number `--stats` prints as "allocs": on a running pipeline it stands still.
 *
 * With sanitizers the allocator is theirs and the counts stay 0: heap_is_counted() says so.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Allocations (malloc, calloc, realloc and the aligned kinds) since the process began.  Any role. */
uint64_t heap_allocs(void);

/* Bytes asked for by them. */
uint64_t heap_alloc_bytes(void);

bool heap_is_counted(void);

#endif
