/*
 * Which speaker a channel is for, as files say it, and the way from their order to the stream's: ascending bits of the
 * WAVE mask.
 */
#ifndef MEDIA_CHANMAP_H
#define MEDIA_CHANMAP_H

#include "wire/track.h"

#define CHANMAP_N_BITS 18u       /* of the WAVE mask: FL = 0 … TBR = 17 */
#define CHANMAP_NOBODY (-1)      /* a channel for no speaker, or for one the mask has no bit for */

/* A layout in the making: one entry a channel, in the file's order. */
struct chanmap {
	int8_t bit[64];          /* WAVE bit number, or CHANMAP_NOBODY */
	unsigned channels;
};

/*
 * Give t the layout m says, if it names every channel, each once.  perm[i] becomes the file's channel that goes to place i.
 * Returns: true if samples must be moved (perm is not 0, 1, 2 …).
 */
bool chanmap_apply(const struct chanmap *m, struct track *t, uint16_t perm[static 64]);

/*
 * An Apple layout (CAF and AIFF chunk 'chan'/'CHAN', big-endian).  Returns: false if it says nothing for that many
 * channels that a mask can hold.
 */
bool chanmap_from_apple(struct chanmap *m, const uint8_t *chunk, size_t n_bytes, unsigned channels);

/* Vorbis order (the Vorbis I specification 4.3.9; Opus family 1 is the same), 1 to 8 channels. */
bool chanmap_from_vorbis(struct chanmap *m, unsigned channels);

/*
 * A layout for files that say none: what the usual programs take for granted (track_usual_mask) with up to 8 channels.
 * Returns: true if t's layout was guessed so (with 1 and 2 channels nobody asks).
 */
bool chanmap_guess(struct track *t);

/* ---- moving samples ---- */

struct chanmap_order {
	uint16_t *perm;          /* owned */
	uint8_t *frame;          /* owned: room for one */
	unsigned channels;
};

enum err chanmap_order_init(struct chanmap_order *o, const uint16_t *perm, unsigned channels) WEIR_MUSTUSE;
/* In place: output channel i of each frame is its channel perm[i].  Allocates nothing. */
void chanmap_reorder(struct chanmap_order *o, uint8_t *frames, size_t n_frames, unsigned sample_bytes);
void chanmap_release(struct chanmap_order *o);

#endif
