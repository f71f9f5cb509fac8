/*
 * What follows a lost packet of Opus must not come out louder than what was before it.
 *
 * Frames of CELT take the energies of their bands from the frame before, at 2.5 ms nine tenths of them (RFC 6716 section
 * 4.3.2.1), until an encoder sends an "intra" frame that stands by itself.  A decoder that has lost a frame goes on from
 * energies that were never those: bands come out up to 30 dB too loud for 50 ms.  Encoders that expect losses send intra
 * frames often; the others are many.  So, from a loss to the next intra frame and for 50 ms at most, frames are turned
 * down to the level there was, which may rise meanwhile, for sounds that really begin then.
 *
 * Pure; what did not lose anything is never touched.
 */
#ifndef MEDIA_OPUSGUARD_H
#define MEDIA_OPUSGUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero is the start. */
struct opusguard {
	float level;              /* RMS of the loudest frame, sinking */
	float cut;                /* at the end of the last frame: of 1 */
	uint32_t since_frames;    /* of 48 kHz, since the loss */
	bool is_watching;
};

/* The decoder begins anew. */
void opusguard_reset(struct opusguard *g);

/* Something was concealed. */
void opusguard_lost(struct opusguard *g);

/*
 * A whole packet was decoded to n_frames of interleaved samples, which are turned down in place where that is needed.  Packets of other kinds,
 * and with frames of 10 ms and longer, which forget sooner, end the watch.
 */
void opusguard_take(struct opusguard *g, const uint8_t *packet, size_t n_bytes, float *samples, size_t n_frames, unsigned channels);

/*
 * Does a frame of CELT (behind the packet's first byte) stand by itself?  size: 0 for 2.5 ms to 3 for 20 ms.  Read as RFC 6716 sections 4.1 and
 * 4.3 have it: silence, post-filter, transient, intra.  Any bytes will do.
 */
bool opusguard_is_intra(const uint8_t *frame, size_t n_bytes, unsigned size);

#endif
