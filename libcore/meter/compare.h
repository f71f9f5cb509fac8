/*
 * Compares a track with a reference that should be the same: how far it is shifted, what is missing, how large the
 * error is.
 *
 * The shift is found once, within one second either way, from the first two seconds that hold sound: until then the
 * track is held in memory.  After that both run side by side and nothing is kept.  Samples are compared in double, in
 * which every PCM format but 64-bit ones is exact.
 */
#ifndef METER_COMPARE_H
#define METER_COMPARE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPARE_BLOCK_FRAMES 1024u

/*
 * Where the reference comes from: up to max_frames interleaved frames to dst, *n_frames of them; 0 at the end.
 * Holes in it come as zeros.  Returns: ERR_OK, or what failed.
 */
typedef enum err compare_read_fn(void *from, double *dst, size_t max_frames, size_t *n_frames);

struct compare_values {
	int64_t frames_offset;    /* the track is late by this against the reference */
	uint64_t frames_missing;  /* of the reference, that have no counterpart in the track */
	uint64_t frames_extra;    /* of the track, that lie before or behind the reference */
	uint64_t frames_compared;
	double snr_db;            /* of the frames compared; NAN where there is no error, or nothing to compare */
	double max_abs_error;     /* full scale is 1 */
	bool identical;           /* no shift, nothing missing or extra, every sample equal */
};

struct compare {
	uint32_t rate_hz;
	unsigned n_channels;
	compare_read_fn *read;
	void *from;
	/* the reference's beginning, read ahead for the search */
	double *prefix;
	size_t prefix_frames, prefix_used_frames, prefix_room_frames;
	size_t window_start_frame, window_frames; /* of the reference: what is searched for */
	/* the track, held until the search */
	double *held;
	uint8_t *present;         /* a held frame: it came, it is no gap */
	size_t held_frames, held_room_frames;
	bool aligned;             /* the search is done */
	/* side by side */
	double *block;            /* COMPARE_BLOCK_FRAMES of the reference */
	int64_t reference_frame;  /* the next one to be taken from the reference */
	int64_t track_frame;      /* the next one of the track */
	bool reference_ended;
	double signal, error;     /* sums of squares */
	struct compare_values values;
	bool different;
	enum err failed;          /* of the reference, latched */
};

/*
 * Begin to compare a track of this shape with the reference that read(from, …) yields, of the same rate and channels.
 * Reads up to 12 s of it, and allocates everything.  Returns: ERR_OK, ERR_NOMEM, or what reading said.  Role: io.
 */
enum err compare_init(struct compare *c, uint32_t rate_hz, unsigned n_channels, compare_read_fn *read, void *from) WEIR_MUSTUSE;
void compare_release(struct compare *c);

/* The next n_frames of the track, interleaved.  Returns: ERR_OK, or what reading the reference said.  Role: io. */
enum err compare_add(struct compare *c, const double *frames, size_t n_frames) WEIR_MUSTUSE;

/* A gap of n_frames in the track. */
enum err compare_add_gap(struct compare *c, uint64_t n_frames) WEIR_MUSTUSE;

/* The track is over: align if that is not done, and count what is left of the reference. */
enum err compare_finish(struct compare *c) WEIR_MUSTUSE;

/* What was found by now.  Complete after compare_finish(). */
struct compare_values compare_read(const struct compare *c);

#endif
