/*
 * When is there something to be heard?  Frames go in, begins and ends of takes come out, at exact positions.
 *
 * A frame is loud when the sample peak of any channel is above the start level, and quiet when the peak of all is below the stop
 * level.  A take begins `preroll` before the first loud frame, but neither before the first frame there is nor before the end of the
 * take before it; it ends when `hold` of quiet frames lie behind the last one that was not quiet, and those are in it.
 *
 * A gate has one member, or several that open and close it together: any of them opens it, and all must be quiet for it to close.
 * Each member counts in its own rate; the gate counts in the first member's.  Nothing is decided before all members were heard so
 * far, but for those that are passed by.
 *
 * Pure: no clock, no I/O; allocates in levelgate_add() alone.
 */
#ifndef STAGE_LEVELGATE_H
#define STAGE_LEVELGATE_H

#include "dsp/dsp.h"
#include "tool/opt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct levelgate_options {
	double start_db;             /* dBFS of the sample peak: above it is loud */
	double stop_db;              /* below it is quiet; at most start_db */
	bool has_stop;               /* false: a take never ends by itself */
	struct opt_time hold;
	struct opt_time preroll;
};

struct levelgate_member {
	uint32_t rate_num, rate_den;
	unsigned channels;
	uint8_t *kinds;              /* a ring of what the newest frames are: quiet, between, loud */
	size_t window_frames;        /* its size, a power of 2 */
	int64_t first_pos, head_pos; /* heard from … to, in its own frames */
	int64_t quiet_pos;           /* and nothing from there to here */
	bool heard;
	bool passed;                 /* it is too far behind to be waited for */
	bool ended;
};

enum levelgate_event { LEVELGATE_NOTHING, LEVELGATE_BEGIN, LEVELGATE_END };

struct levelgate {
	struct dsp dsp;
	struct levelgate_options options;
	float start, stop;           /* the levels as factors */
	struct levelgate_member *members;
	unsigned n_members;
	int64_t hold_frames, preroll_frames; /* these and below: in the first member's rate */
	bool decides;                /* something was decided: */
	int64_t decided_pos;         /* … up to here */
	int64_t floor_pos;           /* no take begins before it */
	bool is_open;
	int64_t active_pos;          /* open: the newest frame that was not quiet */
	uint64_t n_takes;
	float loudest;               /* largest peak heard */
};

void levelgate_init(struct levelgate *g, const struct levelgate_options *o);
void levelgate_release(struct levelgate *g);

/*
 * Another member, before anything was heard.  window_frames: how many frames may be heard that nothing is decided about, rounded up to
 * a power of 2.  Returns: ERR_OK, and its number in *i; ERR_NOMEM.
 */
enum err levelgate_add(struct levelgate *g, uint32_t rate_num, uint32_t rate_den, unsigned channels, size_t window_frames, unsigned *i)
	WEIR_MUSTUSE;

/* How many frames of member i may be heard before something must be decided. */
size_t levelgate_room(const struct levelgate *g, unsigned i);

/* Frames of member i, interleaved, from head_pos on; the first ones say where they begin.  n_frames ≤ room.  NaN is quiet. */
void levelgate_hear(struct levelgate *g, unsigned i, int64_t pos, const float *frames, size_t n_frames);

/* The same of frames that are missing, as many as there may be: they need no room. */
void levelgate_hear_nothing(struct levelgate *g, unsigned i, int64_t pos, uint32_t n_frames);

/*
 * Member i, the only one, goes on at another place on its timeline, and nothing is missing between.  All that was heard must be
 * decided.  What lies before pos is in no take that begins later.
 */
void levelgate_move(struct levelgate *g, unsigned i, int64_t pos);

/* No more of member i will come, unless it is heard again. */
void levelgate_end(struct levelgate *g, unsigned i);

/* Those that are far behind are not waited for until they are there again. */
void levelgate_pass(struct levelgate *g);

/*
 * Decide about what was heard, up to the next event.  Returns: the event, at *pos in the gate's frames; LEVELGATE_NOTHING when all
 * is decided that can be.
 */
enum levelgate_event levelgate_decide(struct levelgate *g, int64_t *pos);

/* The first frame of member i that does not begin before a position of the gate. */
int64_t levelgate_place(const struct levelgate *g, unsigned i, int64_t pos);

/* Everything is decided that was heard, as far as member i's frames go: the first one that is not. */
int64_t levelgate_decided(const struct levelgate *g, unsigned i);

/* Where the longest member ends. */
int64_t levelgate_last(const struct levelgate *g);

#endif
