/*
 * A matrix of gains as text: a row a line, an output channel each; its numbers, one an input channel, apart by spaces, tabs or
 * commas; each a factor or a level with dB.  '#' begins a comment, empty lines are skipped.
 */
#ifndef STAGE_MATRIXFILE_H
#define STAGE_MATRIXFILE_H

#include "base/err.h"

#define MATRIXFILE_MAX_CHANNELS 1024u

struct matrixfile {
	double *coef;          /* rows * columns */
	unsigned rows, columns;
};

/* Zero is safe to release.  Returns: ERR_OK; ERR_FORMAT, ERR_LIMIT, ERR_SYS, ERR_NOMEM with *why, which names the line. */
enum err matrixfile_read(struct matrixfile *m, const char *path, struct err_why *why) WEIR_MUSTUSE;
void matrixfile_release(struct matrixfile *m);

#endif
