/*
 * Batches of frames on their way through a resampler that takes a plane a channel: gathered from interleaved frames, and made
 * interleaved again.  Two batches, so that one can be gathered while threads work on the other, or one.
 */
#ifndef STAGE_RETIMEPLANES_H
#define STAGE_RETIMEPLANES_H

#include "base/err.h"
#include "dsp/dsp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pointer a channel. */
struct retimeplanes_batch {
	void **in;                   /* of the frames of a piece */
	void **out;                  /* of as many as may come out of it at a time */
	size_t in_frames, out_frames;
};

struct retimeplanes {
	struct dsp dsp;
	unsigned channels;
	bool is_double;              /* samples are doubles; else floats */
	struct retimeplanes_batch batches[2];
	uint8_t *samples;            /* of the batches */
	void **pointers;             /* theirs, and `at` */
	void **at;                   /* planes of any of them, from some frame on */
};

/* n_batches: 1 or 2.  *p must be zero, which is safe to release.  Returns: ERR_OK, ERR_NOMEM. */
enum err retimeplanes_init(struct retimeplanes *p, unsigned channels, bool is_double, unsigned n_batches, size_t in_frames, size_t out_frames)
	WEIR_MUSTUSE;
void retimeplanes_release(struct retimeplanes *p);

/* The planes from frame `at` on.  Until the next call of anything here. */
void **retimeplanes_from(const struct retimeplanes *p, void *const *planes, size_t at);
/* n_frames of interleaved samples into planes, from frame `at` on; and out of them. */
void retimeplanes_split(const struct retimeplanes *p, void *const *planes, size_t at, const void *frames, size_t n_frames);
void retimeplanes_join(const struct retimeplanes *p, void *frames, void *const *planes, size_t at, size_t n_frames);

#endif
