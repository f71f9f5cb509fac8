/*
 * A source in another shape: rate, channels, sample format.  Wraps an opened source, so that whoever reads it need not know.
 *
 * Channels: by speaker where both sides have a WAVE layout.  What the new layout has no place for is folded down with
 * the coefficients of ITU-R BS.775 (centre and surrounds by −3 dB into their neighbours, LFE left out), all of it
 * scaled so that nothing can clip; so stereo to mono is the mean.  Mono goes to every channel as it is.  Channels
 * without a place stay in order: silent ones are added behind, and only the mean of all can be made of fewer.
 *
 * Samples that are only copied are exact.  Mixing and resampling is done in f32.  Dither is added where bits are dropped.
 * Samples that the new format cannot hold are clipped and counted in the source's clipped_samples.
 */
#ifndef MEDIA_RESHAPE_H
#define MEDIA_RESHAPE_H

#include "media/source.h"

struct reshape_options {
	uint32_t rate_hz;         /* 0 as it is */
	uint16_t channels;        /* 0 as it is */
	enum sample format;       /* SAMPLE_CODED as it is; s16 s24 s32 f32 */
	bool dither;              /* when bits are dropped */
	uint32_t seed;            /* of the dither */
};

/*
 * Wrap s in place (nothing is done where it has that shape already).  To be called before the first read, after a trim.
 * Returns: ERR_OK; ERR_ARG where channels cannot become so many; ERR_NOMEM ….  On failure s is still the caller's.
 */
enum err reshape_open(struct source *s, const struct reshape_options *o, struct err_why *why) WEIR_MUSTUSE;

/*
 * The coefficients, out_channels rows of in_channels, from one WAVE mask to another.  For tests, and for whoever mixes down.
 * Returns: false if nothing of the input would be heard.
 */
bool reshape_matrix(float *matrix, uint64_t in_mask, unsigned in_channels, uint64_t out_mask, unsigned out_channels);

#endif
