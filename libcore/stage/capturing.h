/*
 * capture's work: sources opened, made what the options want, and written block by block as tracks of a stream, at their own
 * pace, at the clock's, or at that of devices.
 */
#ifndef STAGE_CAPTURING_H
#define STAGE_CAPTURING_H

#include "stage/session.h"
#include "tool/feed.h"
#include "tool/progress.h"
#include "tool/stats.h"
#include "tool/tool.h"
#include "wire/writer.h"

struct capturing_options {
	uint32_t rate_hz;                 /* 0: as the source has it */
	int64_t channels, block_frames;   /* 0: likewise; as many as fit */
	enum sample format;               /* of the stream; SAMPLE_CODED: as the source has it */
	const char *raw_format;           /* what raw: is read as; NULL: not given */
	struct opt_list names;
	struct opt_time duration, start, ring;
	bool realtime, dither, keep, own_clocks;
};

struct capturing {
	struct capturing_options o;
	struct tool *tool;
	char *const *specs;      /* the sources' names */
	struct stats stats;
	struct progress progress;
	struct feed feed;
	struct writer out;
	size_t *note_said;       /* bytes of each source's note that were printed */
	struct session session;  /* the devices */
	struct tick pacing;      /* with realtime: of the blocks */
	atomic_uint_fast64_t clipped_samples;
	int64_t start_ns;        /* CLOCK_MONOTONIC of media time 0, with realtime */
	double total_s;
	struct err_why why;
};

/* raw:, gen: and such in front of a source's name. */
bool capturing_has_prefix(const char *spec, const char *prefix);

/* specs: n sources, which stay.  *c is zero but for c->o.  Role: control; allocates.  Returns: what went wrong, with c->why. */
enum err capturing_open(struct capturing *c, struct tool *t, char *const *specs, unsigned n) WEIR_MUSTUSE;
/* Until the sources are over, or a stop.  Role: io.  Returns: likewise; ERR_CUT: a source was. */
enum err capturing_run(struct capturing *c) WEIR_MUSTUSE;
void capturing_release(struct capturing *c);

#endif
