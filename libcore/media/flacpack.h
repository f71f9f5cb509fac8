/*
 * PCM of whole numbers to FLAC frames, one a packet, for containers other than FLAC's own.
 */
#ifndef MEDIA_FLACPACK_H
#define MEDIA_FLACPACK_H

#include "base/err.h"
#include "wire/track.h"

#define FLACPACK_INFO_BYTES 34u /* of STREAMINFO */

struct flacpack;

/* Takes a FLAC frame, which is dur frames of audio from pos on. */
typedef enum err flacpack_frame_fn(void *user, void *track, int64_t pos, uint32_t dur, const uint8_t *bytes, size_t n_bytes);

/* Can it hold the track: s16, s24 or s32, 1 to 8 channels, up to 1048575 Hz? */
bool flacpack_takes(const struct track *t);

/*
 * *info: STREAMINFO, without its block header; it stays with *out.
 * Returns: ERR_OK; ERR_FORMAT (a track that it cannot hold), ERR_NOMEM, ERR_CODEC.
 */
enum err flacpack_open(struct flacpack **out, const struct track *t, const uint8_t **info, struct err_why *why) WEIR_MUSTUSE;

/* n_frames at pos, behind those before; frames that became whole are handed out.  Returns: ERR_OK, ERR_CODEC, or what frame() said. */
enum err flacpack_put(struct flacpack *f, int64_t pos, const uint8_t *bytes, uint32_t n_frames, flacpack_frame_fn *frame, void *user, void *track,
	struct err_why *why) WEIR_MUSTUSE;

/* What comes next does not follow: what is left goes as a shorter frame, and the frames are numbered anew.  Allocates. */
enum err flacpack_leap(struct flacpack *f, flacpack_frame_fn *frame, void *user, void *track, struct err_why *why) WEIR_MUSTUSE;

/* What is left, as a shorter frame.  Nothing may come after it. */
enum err flacpack_end(struct flacpack *f, flacpack_frame_fn *frame, void *user, void *track, struct err_why *why) WEIR_MUSTUSE;

/* NULL-safe. */
void flacpack_release(struct flacpack *f);

#endif
