/*
 * Samples that lie in a file as they are: the part that WAV, CAF, AIFF, AU and raw files have in common.  An adapter
 * reads its header, says what the samples look like and how many bytes of them were promised, and pcmread does the
 * reading: into the caller's block by read(2), swapped or converted where the stream has no such format.
 */
#ifndef MEDIA_PCMREAD_H
#define MEDIA_PCMREAD_H

#include "media/source.h"

enum pcmread_code { PCMREAD_SIGNED, PCMREAD_UNSIGNED, PCMREAD_FLOAT, PCMREAD_ALAW, PCMREAD_ULAW };

/* How one sample lies in the file. */
struct pcmread_format {
	enum pcmread_code code;
	uint8_t container_bytes;  /* signed 1…4, unsigned 1, float 4 or 8, laws 1; a narrower sample sits in the high bits */
	bool is_big_endian;       /* containers of 2 bytes and more */
	uint16_t valid_bits;      /* 0: all */
	uint32_t rate_hz;
	uint16_t channels;
};

/* How much of it there is. */
struct pcmread_extent {
	uint64_t promised_bytes;  /* by the header; not looked at with to_end */
	bool to_end;              /* the header does not know: until the input ends */
	uint8_t pad_bytes;        /* chunks are padded to this; zeros at the end that only fill up to it are no audio */
	uint64_t trailer_bytes;   /* not a regular file: read on after the data, at most so far, so that its writer can finish */
};

/*
 * Make s a reader of the samples that begin at in's next byte.  Sets s->track (layout by channel count; the caller may
 * change it after), n_frames, ops.  perm, or NULL: output channel i is the file's channel perm[i].  Takes *in over.
 * Returns: ERR_OK; ERR_AGAIN (a container that is not in the list above); ERR_LIMIT; ERR_NOMEM.
 */
enum err pcmread_open(struct source *s, const struct source_bytes *in, const struct pcmread_format *f, const struct pcmread_extent *x,
	const uint16_t *perm, struct err_why *why) WEIR_MUSTUSE;

/* A size as programs write it that do not know: all ones, 2 GiB − 1, 2 GiB, 0x7F000000, and their neighbours. */
bool pcmread_is_unknown(uint64_t size_bytes);

/*
 * What a header's data size means here: to_end with a note for a size nobody knew, else as promised.
 * data_bytes is 0 for "no size"; follows: bytes do follow.
 */
struct pcmread_extent pcmread_extent_of(struct source *s, const struct source_bytes *in, uint64_t data_bytes);

#endif
