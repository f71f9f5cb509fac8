/*
 * Those of several inputs that have a packet, the earliest on top; of equal times the first of the inputs.  They lie in one array.
 */
#ifndef STAGE_JOINHEAP_H
#define STAGE_JOINHEAP_H

#include "base/err.h"

#include <stdbool.h>

struct joinsource;

struct joinheap {
	struct joinsource **sources; /* of room for all; the first is the top */
	unsigned n;
};

/* Room for so many.  Zero is safe to release.  Returns: ERR_OK, ERR_NOMEM. */
enum err joinheap_init(struct joinheap *h, unsigned n_sources) WEIR_MUSTUSE;
void joinheap_release(struct joinheap *h);

/* s is not in it, and its time stays as it is until it is out again. */
void joinheap_push(struct joinheap *h, struct joinsource *s);
/* The top; n > 0. */
struct joinsource *joinheap_pop(struct joinheap *h);

#endif
