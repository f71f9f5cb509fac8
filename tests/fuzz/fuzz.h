/*
 * What the fuzz targets share.  A target is a function of bytes: libFuzzer calls it (make fuzz), or replay.c does with the
 * kept corpus (make check).  A broken promise is a crash: must(…).
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define must(condition)                                                                         \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

/* A pipe fed in pieces, a piece whenever the reading side has nothing left. */
struct fuzz_pipe {
	int fds[2];
	const uint8_t *bytes;
	size_t n_bytes, at_bytes, piece_bytes;
};

void fuzz_pipe_open(struct fuzz_pipe *p, const uint8_t *bytes, size_t n_bytes, size_t piece_bytes);
/* Write the next piece; at the end, close the writing side. */
void fuzz_pipe_feed(struct fuzz_pipe *p);
void fuzz_pipe_close(struct fuzz_pipe *p);

/* A file in memory that holds these bytes, at its beginning. */
int fuzz_file(const uint8_t *bytes, size_t n_bytes);

/* Reads every byte, so that the sanitizer sees each; by memcpy, which it checks as a whole. */
void fuzz_touch(const void *p, size_t n_bytes);

#endif
