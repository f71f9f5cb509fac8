/*
 * Ranges of a track in which every channel stays at or below a threshold for at least a given time.
 * A gap counts as silence.  Exact to the frame; nothing is allocated after silence_init().
 */
#ifndef METER_SILENCE_H
#define METER_SILENCE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SILENCE_MAX_RANGES 4096u /* kept; later ones are counted */

struct silence_range {
	uint64_t start_frame, end_frame; /* of the track's timeline from its first frame; the end is not in it */
};

struct silence {
	unsigned n_channels;
	float threshold;             /* a factor of full scale */
	uint64_t min_frames;
	uint64_t position_frames;    /* of the next frame */
	uint64_t quiet_since_frame;  /* end of the last loud frame */
	struct silence_range *ranges;
	unsigned n_ranges;
	uint64_t n_omitted;
};

/* threshold 0…1 of full scale; min_frames ≥ 1.  Returns: ERR_OK, ERR_NOMEM. */
enum err silence_init(struct silence *s, unsigned n_channels, double threshold, uint64_t min_frames) WEIR_MUSTUSE;
void silence_release(struct silence *s);

/* The next n_frames, interleaved.  Role: any. */
void silence_add(struct silence *s, const float *frames, size_t n_frames);

/* n_frames of gap. */
void silence_add_gap(struct silence *s, uint64_t n_frames);

/* Ranges so far, the one that still lasts included; and the i-th of them. */
unsigned silence_count(const struct silence *s);
struct silence_range silence_at(const struct silence *s, unsigned i);

#endif
