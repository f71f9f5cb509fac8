/*
 * Loudness of a track by ITU-R BS.1770-4 and EBU R 128: momentary (400 ms), short-term (3 s), integrated with both
 * gates, and loudness range (EBU Tech 3342).
 *
 * Energy is summed in steps of 10 ms, so momentary and short-term are known a hundred times a second (EBU Tech 3341
 * asks for ten), and the gating blocks of 400 ms step by 100 ms as the standard says.  What the gates need is kept in
 * histograms of 0.001 LU that hold exact sums of energy: memory does not grow with time and nothing is allocated
 * after loudness_init().
 *
 * A value that does not exist (silence, or not yet enough of the signal) is NAN.
 */
#ifndef METER_LOUDNESS_H
#define METER_LOUDNESS_H

#include "base/err.h"
#include "base/role.h"
#include "dsp/kweight.h"
#include "wire/track.h"

#include <stddef.h>
#include <stdint.h>

#define LOUDNESS_MIN_RATE_HZ KWEIGHT_MIN_RATE_HZ
#define LOUDNESS_STEPS_PER_HOP 10u /* of 10 ms in 100 ms */
#define LOUDNESS_MOMENTARY_STEPS 40u
#define LOUDNESS_SHORT_TERM_STEPS 300u

/* What is known so far; NAN where there is nothing to say. */
struct loudness_values {
	double momentary_lufs;      /* the last 400 ms */
	double short_term_lufs;     /* the last 3 s */
	double integrated_lufs;     /* from the start */
	double range_lu;
	double range_low_lufs, range_high_lufs; /* its ends */
	double momentary_max_lufs;
	double short_term_max_lufs;
};

struct loudness {
	uint32_t rate_hz;
	unsigned n_channels;
	struct kweight kweight;
	float *weights;             /* a channel: 0, 1, 1.41 … */
	double *energy;             /* a channel: sum of squares of the running step */
	float *zeros;               /* frames of silence, for loudness_add_silence() */
	uint32_t hop_frames;        /* 100 ms */
	uint32_t hop_done_frames;   /* of the running hop */
	uint32_t step_end_frames;   /* where in the hop the running step ends */
	unsigned step;              /* of the hop, 0…9 */
	double ring[LOUDNESS_SHORT_TERM_STEPS]; /* weighted energy of the last steps */
	unsigned ring_next;
	uint64_t n_steps;
	double momentary_energy, short_term_energy; /* sums over the windows */
	double momentary_max, short_term_max;       /* mean squares */
	/* gating blocks above -70 LUFS, by loudness */
	uint32_t *block_count;
	double *block_energy;
	uint64_t n_blocks;
	double blocks_energy;       /* sum of all block_energy */
	unsigned block_highest;     /* the highest bin in use */
	/* short-term values above -70 LUFS, every 100 ms */
	uint32_t *range_count;
	uint64_t n_range;
	double range_energy;
	unsigned range_highest;
};

/*
 * The weight of each channel of t by its place: 1 in front, 1.41 for the surround pair, 0 for LFE channels; 1 for
 * all where the layout does not say.  dual_mono counts a mono track twice (+3.01 LU).  weights: t->channels of them.
 * BS.1770-4, Annex 1 table 3 and Annex 3: 1.41 between 60 and 120 degrees, so the back pair has it only where there
 * are no side channels.
 */
void loudness_weights(const struct track *t, bool dual_mono, float *weights);

/*
 * Measure n_channels of rate_hz; weights (n_channels) are copied.  Allocates everything it will need.
 * Returns: ERR_OK, ERR_NOMEM, ERR_LIMIT for a rate below LOUDNESS_MIN_RATE_HZ.
 */
enum err loudness_init(struct loudness *l, uint32_t rate_hz, unsigned n_channels, const float *weights) WEIR_MUSTUSE;
void loudness_release(struct loudness *l);

/* The next n_frames, interleaved, finite.  Role: any; allocates nothing. */
void loudness_add(struct loudness *l, const float *frames, size_t n_frames);

/* n_frames of nothing: a gap.  Costs no more than four seconds of it.  Role: any. */
void loudness_add_silence(struct loudness *l, uint64_t n_frames);

/* Of the last 400 ms, of the last 3 s; NAN as in the values.  Cheap.  Role: any, the one that adds. */
double loudness_momentary_lufs(const struct loudness *l);
double loudness_short_term_lufs(const struct loudness *l);

/* What is known by now.  Role: any, the one that adds; costs some microseconds. */
struct loudness_values loudness_read(const struct loudness *l);

#endif
