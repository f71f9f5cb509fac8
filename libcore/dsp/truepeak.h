/*
 * True peak: the largest magnitude of the signal between its samples (ITU-R BS.1770-4 Annex 2).
 *
 * Below 96 kHz the signal is interpolated four times, below 192 kHz twice, above that not at all.  The interpolator
 * is a sinc of 49 taps under a Hann window, 12 (or 24) taps a phase, one more than the 48 of the annex: the samples
 * themselves are one of its phases, so a true peak is never below the sample peak.
 *
 * Samples must be finite (levels_clean_fn).
 */
#ifndef DSP_TRUEPEAK_H
#define DSP_TRUEPEAK_H

#include "base/err.h"
#include "base/role.h"
#include "dsp/levels.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TRUEPEAK_MAX_TAPS 24u

/* Phase p of the output is the sum over k of coef[p][k] * x[i - k]; the phase of the samples themselves is not kept. */
struct truepeak_filter {
	unsigned factor; /* 1, 2, 4 */
	unsigned taps;   /* of a phase: 1, 24, 12 */
	float coef[3][TRUEPEAK_MAX_TAPS];
	/* Phases 0 and 2 of factor 4 mirror each other: halves of their sum and difference, for taps 0…5. */
	float even[6], odd[6];
};

/*
 * dst[i] = the largest magnitude of all phases at x[i - k * channels], k = 0…taps-1: at and after the sample
 * taps / 2 frames ago.  Frames of any number of channels.  x has (taps - 1) * channels samples before it.  No overlap.
 */
typedef void truepeak_envelope_fn(
	float *dst, const float *x, const struct truepeak_filter *filter, unsigned channels, size_t n_samples);

truepeak_envelope_fn truepeak_c_envelope, truepeak_avx2_envelope;

/* A running measurement of one track.  Zero is safe to release. */
struct truepeak {
	struct truepeak_filter filter;
	unsigned channels;
	size_t block_frames;
	truepeak_envelope_fn *envelope_fn;
	levels_peaks_fn *peaks_fn;
	float *work; /* taps - 1 frames of the past, a block, and a block's envelope */
};

/* The interpolator for a sampling rate. */
void truepeak_filter_init(struct truepeak_filter *filter, uint32_t rate_hz);

/* Role: control, allocates.  Returns: ERR_OK, ERR_ARG for 0 channels, ERR_NOMEM. */
enum err truepeak_init(struct truepeak *t, uint32_t rate_hz, unsigned channels) WEIR_MUSTUSE;
void truepeak_release(struct truepeak *t);

/* Forget the past, as after a gap. */
void truepeak_reset(struct truepeak *t);

/* Raise peaks[c] to the true peak of channel c over these frames.  Role: any; allocates nothing. */
WEIR_DEADLINE static inline void truepeak_run(struct truepeak *t, float *peaks, const float *x, size_t n_frames)
{
	size_t past = (size_t)(t->filter.taps - 1) * t->channels;
	float *block = t->work + past, *envelope = block + t->block_frames * t->channels;
	while (n_frames) {
		size_t n = n_frames < t->block_frames ? n_frames : t->block_frames;
		size_t n_samples = n * t->channels;
		memcpy(block, x, n_samples * sizeof(*x));
		t->envelope_fn(envelope, block, &t->filter, t->channels, n_samples);
		t->peaks_fn(peaks, envelope, t->channels, n);
		memmove(t->work, t->work + n_samples, past * sizeof(*x));
		x += n_samples;
		n_frames -= n;
	}
}

/* Frames that are known to raise no peak: only kept as the past of what follows.  Role: any; allocates nothing. */
WEIR_DEADLINE static inline void truepeak_pass(struct truepeak *t, const float *x, size_t n_frames)
{
	size_t past = (size_t)(t->filter.taps - 1) * t->channels, n_samples = n_frames * t->channels;
	size_t kept = n_samples < past ? past - n_samples : 0;
	memmove(t->work, t->work + past - kept, kept * sizeof(*x));
	memcpy(t->work + kept, x + n_samples - (past - kept), (past - kept) * sizeof(*x));
}

#endif
