/*
 * Matroska, by libavformat, which is loaded when it is asked for.  Packets in, bytes out into a sinkfile: clusters of half a second, each
 * in the file as soon as it is whole, so that a kill loses less than a second.  Where the file can be gone back in, its
 * length and an index are put in at the end.
 *
 * Matroska counts milliseconds: times are rounded to them, lengths are not, as every sample is there and Opus says with CodecDelay and
 * DiscardPadding what is not to be heard.  libavformat allocates for every packet; nothing here does.
 */
#ifndef MEDIA_AVFORMAT_H
#define MEDIA_AVFORMAT_H

#include "media/sinkfile.h"
#include "wire/track.h"

#include <stdbool.h>

struct avformat;

struct avformat_packet {
	unsigned index;           /* as avformat_add() gave it */
	int64_t pos;              /* on the track's timeline */
	uint32_t dur;             /* units, of what is to be heard or seen */
	uint32_t discard_frames;  /* of Opus: so many decode behind dur and are not to be heard */
	const uint8_t *bytes;
	size_t n_bytes;
};

/*
 * file is open and stays the caller's; where it can be gone back in is file->is_regular.
 * Returns: ERR_OK; ERR_DEVICE (libavformat is not there, or not in this build), ERR_NOMEM.  Role: control.
 */
enum err avformat_open(struct avformat **out, struct sinkfile *file, struct err_why *why) WEIR_MUSTUSE;

/*
 * One more track, before avformat_begin(): PCM, Opus or raw video.  preskip_frames: of Opus, at 48 kHz.  FLAC: `flac` is its 34 bytes of
 * STREAMINFO, and the track says what comes out.
 * Returns: ERR_OK; ERR_FORMAT (a kind that Matroska has no place for), ERR_NOMEM.
 */
enum err avformat_add(struct avformat *m, const struct track *t, uint32_t preskip_frames, const uint8_t *flac, unsigned *index, struct err_why *why)
	WEIR_MUSTUSE;

/* A tag of the whole file, before avformat_begin(). */
enum err avformat_tag(struct avformat *m, const char *key, const char *value) WEIR_MUSTUSE;

/* The header.  base_ns: what of the tracks' timelines is the file's time 0. */
enum err avformat_begin(struct avformat *m, int64_t base_ns, struct err_why *why) WEIR_MUSTUSE;

/* One packet; of each track in order. */
enum err avformat_put(struct avformat *m, const struct avformat_packet *p, struct err_why *why) WEIR_MUSTUSE;

/* End the cluster: all that came is in the file then, once that is flushed. */
enum err avformat_sync(struct avformat *m, struct err_why *why) WEIR_MUSTUSE;

/* The end: length and index, where that can be. */
enum err avformat_finish(struct avformat *m, struct err_why *why) WEIR_MUSTUSE;

/* NULL-safe. */
void avformat_release(struct avformat *m);

#endif
