/*
 * The identification header of Ogg Opus, OpusHead: RFC 7845 section 5.1.  It is also the CODEC_PRIVATE of an Opus track.
 */
#ifndef MEDIA_OPUSHEAD_H
#define MEDIA_OPUSHEAD_H

#include "base/err.h"
#include "wire/track.h"

#define OPUSHEAD_MIN_BYTES 19u
#define OPUSHEAD_MAX_BYTES (21u + 255u)

struct opushead {
	uint8_t channels;         /* 1…255 */
	uint16_t preskip_frames;  /* at 48 kHz */
	uint32_t original_rate_hz; /* 0 unknown */
	int16_t gain_q8;          /* Q7.8 dB, applied by the decoder */
	uint8_t family;           /* channel mapping family */
	uint8_t streams, coupled; /* Opus streams in a packet; the first `coupled` of them are stereo */
	uint8_t mapping[255];     /* decoder channel of each output channel; 255 silence */
};

/* Does a packet begin as an OpusHead? */
bool opushead_is(const uint8_t *bytes, size_t n_bytes);

/*
 * Unpack and check.  A family nobody has defined counts as 255 (RFC 7845 5.1.1.4).
 * Returns: ERR_OK; ERR_FORMAT (too short, impossible mapping), ERR_VERSION (an incompatible version), ERR_CODEC (family 3,
 * whose matrix nothing here applies), with *why.
 */
enum err opushead_unpack(struct opushead *h, const uint8_t *bytes, size_t n_bytes, struct err_why *why) WEIR_MUSTUSE;

/* Write it.  Returns: bytes written: 19 for family 0, else 21 + channels. */
size_t opushead_pack(const struct opushead *h, uint8_t bytes[static OPUSHEAD_MAX_BYTES]);

/*
 * The OpusHead of an Opus track: of its CODEC_PRIVATE where there is one, else from its fields with the usual mapping of
 * its family.  Gain is the track's field; the pre-skip is left as CODEC_PRIVATE has it, or 0.
 * Returns: ERR_OK, ERR_FORMAT (fields that contradict each other), with *why.
 */
enum err opushead_of_track(struct opushead *h, const struct track *t, struct err_why *why) WEIR_MUSTUSE;

/* Fill the Opus fields and CODEC_PRIVATE of a track: kind, codec, rate, layout, gain, pre-roll. */
enum err opushead_to_track(const struct opushead *h, struct track *t) WEIR_MUSTUSE;

#endif
