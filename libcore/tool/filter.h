/*
 * A filter on tracks: those that -t chooses and that are of its kind are worked on, each in a lane of its own; everything else passes,
 * in its place.
 *
 * A lane lives as long as the filter; it is open from an announcement of its track to the next one, or to the END.  A new announcement
 * closes it and opens it anew, and a track that is no longer of the kind leaves its lane and passes.
 */
#ifndef TOOL_FILTER_H
#define TOOL_FILTER_H

#include "tool/pump.h"
#include "tool/select.h"

struct filter;

/* What a lane of a filter begins with; the rest is the filter's, zero at first. */
struct filter_lane {
	uint16_t id;              /* the track's */
	bool is_open;
	unsigned n_opened;        /* times, not counting the one that is being opened */
};

struct filter_ops {
	size_t lane_bytes;
	/* Is a track that was chosen to be worked on?  ERR_OK: yes; ERR_AGAIN: it passes; else what failed, with f->pump.why. */
	enum err (*accept)(struct filter *f, const struct track *t);
	/* Get ready for the track, and announce what it becomes.  Words without a thing get the track. */
	enum err (*open)(struct filter *f, struct filter_lane *lane, const struct track *t);
	/* Hand on what the lane still holds, and let go of what it needs for that. */
	enum err (*close)(struct filter *f, struct filter_lane *lane);
	enum err (*data)(struct filter *f, struct filter_lane *lane, const struct packet *p);
	enum err (*gap)(struct filter *f, struct filter_lane *lane, const struct packet *p);
	/* Something is to pass: hand on what came before it.  NULL: nothing waits. */
	enum err (*settle)(struct filter *f);
	/* Free what the lane has, open or not; not the lane. */
	void (*release)(struct filter_lane *lane);
};

struct filter {
	struct tool *tool;
	struct pump pump;
	const struct filter_ops *ops;
	void *stage;              /* the tool's own */
	struct opt_list wanted;   /* of -t */
	struct select_hits hits;
	struct filter_lane **lanes; /* in order of appearance */
	unsigned n_lanes;
};

/* After parsing: one input at most, and values of -t that make sense; else usage is said, and the program ends. */
void filter_check_usage(const struct filter *f, struct tool *t, int argc, char **argv);

/* pump_open() from the operand, or stdin.  Role: io. */
enum err filter_open(struct filter *f, struct tool *t, const struct filter_ops *ops, void *stage, int argc, char **argv,
	const struct input_options *options) WEIR_MUSTUSE;

/*
 * What the output is made of beside the input, as text: it makes the output's stream id, together with the tracks that were chosen.
 * Not what changes nothing in the output, as a number of threads.
 */
void filter_seed(struct filter *f, const char *format, ...) WEIR_PRINTF(2, 3);

/* pump_run() on the lanes.  Returns: as that; ERR_FORMAT where -t asked for a track that did not come. */
enum err filter_run(struct filter *f) WEIR_MUSTUSE;

/* Close the pump, then the lanes.  f->pump.why stays. */
void filter_close_pump(struct filter *f);
void filter_release(struct filter *f);

#endif
