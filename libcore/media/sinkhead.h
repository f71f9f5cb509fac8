/*
 * Headers of PCM containers, as bytes in memory: built once, brought up to date as the data grows.  No I/O.
 * sinkriff.c makes WAV, RF64 and W64; sinkaiff.c makes AIFF, AIFC and CAF.
 */
#ifndef MEDIA_SINKHEAD_H
#define MEDIA_SINKHEAD_H

#include "media/sink.h"

#define SINKHEAD_LIMIT_BYTES 0xFFFFFFFFu /* what a 32-bit size can say */

struct sinkhead {
	enum sink_format format;
	uint8_t *bytes;           /* owned */
	size_t n_bytes, room_bytes;
	bool open_ended;          /* nobody can go back and mend the sizes: they say "unknown" */
	uint64_t limit_bytes;     /* RIFF: beyond it sizes go into ds64; AIFF: cannot be passed */
	unsigned align_bytes;     /* data is padded to this: 1, 2 or 8 */
	/* where the sizes stand; 0 = there is none */
	size_t ds64_at, fact_at, data_at, frames_at;
	enum err failed;          /* out of memory while building */
	char note[256];           /* what the container cannot say */
};

/* Append to the header while building. */
void sinkhead_bytes(struct sinkhead *h, const void *bytes, size_t n_bytes);
void sinkhead_le16(struct sinkhead *h, uint32_t v);
void sinkhead_le32(struct sinkhead *h, uint64_t v);
void sinkhead_le64(struct sinkhead *h, uint64_t v);
void sinkhead_be16(struct sinkhead *h, uint32_t v);
void sinkhead_be32(struct sinkhead *h, uint64_t v);
void sinkhead_be64(struct sinkhead *h, uint64_t v);
void sinkhead_release(struct sinkhead *h);

/* Build for track t with samples of this format: sizes as of an empty file (or unknown).  h->format, open_ended, limit_bytes are set. */
void sinkriff_build(struct sinkhead *h, const struct track *t);
void sinkaiff_build(struct sinkhead *h, const struct track *t);

/* Bring the sizes up to date: data_bytes in the file, and pad_bytes behind them. */
void sinkriff_update(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames);
void sinkaiff_update(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames);

#endif
