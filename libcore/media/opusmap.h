/*
 * Channel orders: PCM here is in WAVE order (ascending bits of the mask), Opus mapping family 1 in Vorbis order
 * (RFC 7845 5.1.1.2).  A pair of surround speakers may be called back or side in WAVE; Vorbis order knows one name.
 */
#ifndef MEDIA_OPUSMAP_H
#define MEDIA_OPUSMAP_H

#include <stdint.h>

/*
 * For 1 to 8 channels with a WAVE mask that family 1 can carry: table[k] is the WAVE channel that stands k-th in Vorbis
 * order.  Static storage.  Returns: NULL where the mask is not one of those, or does not have that many channels.
 */
const uint8_t *opusmap_vorbis_order(unsigned channels, uint64_t wave_mask);

#endif
