/*
 * The comment header of Ogg Opus, OpusTags: RFC 7845 section 5.2, to and from the TAGS of a track.
 */
#ifndef MEDIA_OPUSTAGS_H
#define MEDIA_OPUSTAGS_H

#include "base/err.h"
#include "wire/track.h"

/* Of one track: what goes beyond is dropped and said (pictures, mostly). */
#define OPUSTAGS_MAX_BYTES 49152u

struct opustags_report {
	unsigned n_kept;
	unsigned n_dropped;       /* too large, or not KEY=value */
	bool malformed;           /* a length reached beyond the packet, or the packet was cut */
};

bool opustags_is(const uint8_t *bytes, size_t n_bytes);

/*
 * Put the comments into the track's TAGS (replacing them).  A broken packet gives what can be read of it.  Bytes that are
 * no UTF-8 become U+FFFD; a comment with a NUL in it is dropped.  Returns: ERR_OK, ERR_NOMEM.
 */
enum err opustags_unpack(struct track *t, const uint8_t *bytes, size_t n_bytes, struct opustags_report *report) WEIR_MUSTUSE;

/*
 * Make the packet for a track, in *packet (malloc, the caller frees).  `vendor` is the encoder library.  REPLAYGAIN_TRACK_GAIN
 * and _ALBUM_GAIN become R128_…_GAIN unless those are there; no REPLAYGAIN_* is kept (RFC 7845 5.2.1).  ENCODER is added if the
 * track has none.  gain_q8 is the header's output gain, which R128 gains come on top of.  Returns: ERR_OK, ERR_NOMEM.
 */
enum err opustags_pack(const struct track *t, const char *vendor, int16_t gain_q8, uint8_t **packet, size_t *n_bytes) WEIR_MUSTUSE;

/* R128 gain (Q7.8 dB) for a ReplayGain text like "-8.58 dB": round((db − 5) · 256) − gain_q8.  false: not a number. */
bool opustags_r128_of_replaygain(const char *text, int16_t gain_q8, int16_t *r128);

#endif
