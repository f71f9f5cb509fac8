/*
 * Mix-minus: a mix for each participant with everybody but him, or with himself at a gain of its own.
 *
 * Each mix is the total minus one's own part, so n mixes cost n additions and not n².  In doubles the difference equals
 * the direct sum to 2^-50 of the largest part; a part beyond 2^20 times full scale would spoil that for everyone, and is
 * kept out of the total and added to each of the others.  Participants with nothing in a block hear the total itself: one
 * mix for all of them.
 *
 *   minus_begin(); add to minus_part(i) for each who has something; minus_sum(); then minus_mix(i) for each.
 */
#ifndef MIX_MINUS_H
#define MIX_MINUS_H

#include "base/err.h"
#include "base/role.h"

#include <stdbool.h>
#include <stddef.h>

#define MINUS_LOUD 0x1p20 /* from here on a part is added directly */

struct minus_part {
	double *samples;       /* taken when the participant is first seen */
	bool has_some, is_loud;
};

struct minus {
	unsigned channels;
	size_t block_frames;
	struct minus_part *parts;
	unsigned n_parts, parts_room;
	double *total, *mix;
	unsigned n_loud;
	size_t n_frames;       /* of the block at hand */
};

/* Blocks of at most block_frames.  Zero is safe to release.  Returns: ERR_OK, ERR_NOMEM. */
enum err minus_init(struct minus *m, unsigned channels, size_t block_frames) WEIR_MUSTUSE;
void minus_release(struct minus *m);

/* One more participant: number n_parts before the call.  Allocates. */
enum err minus_join(struct minus *m) WEIR_MUSTUSE;

/* A new block. */
WEIR_DEADLINE void minus_begin(struct minus *m, size_t n_frames);
/* Where participant i's part is added to: zeros at first. */
WEIR_DEADLINE double *minus_part(struct minus *m, unsigned i);
/* All parts are there. */
WEIR_DEADLINE void minus_sum(struct minus *m);
/*
 * What participant i is to hear: all others, and himself times self.  Valid until the next call.
 * *is_shared: it is the total, the same for everybody of whom that is said in this block.
 */
WEIR_DEADLINE const double *minus_mix(struct minus *m, unsigned i, double self, bool *is_shared);

#endif
