/*
 * PCM audio tracks become Opus; everything else passes.
 *
 * One track is coded in the caller's thread, straight from the reader's buffer into the writer.  With more tracks and more than one
 * job, blocks are copied into the slots of a crew, and what comes back is written in the order in which the blocks came: the
 * output is the same whatever the number of jobs is.
 */
#ifndef STAGE_ENCODER_H
#define STAGE_ENCODER_H

#include "media/opusenc.h"
#include "tool/crew.h"
#include "tool/filter.h"

#define ENCODER_MAX_JOBS 64

struct encoder {
	struct filter filter;
	struct opusenc_options options;
	int64_t jobs;             /* threads, 1…ENCODER_MAX_JOBS */
	struct crew crew;
	bool has_crew;
};

/* With the options set, and those of the filter.  Returns: as filter_open(); self->filter.pump.why has the words. */
enum err encoder_open(struct encoder *self, struct tool *t, int argc, char **argv) WEIR_MUSTUSE;

/* The whole work.  Role: io.  Returns: as filter_run(). */
enum err encoder_run(struct encoder *self) WEIR_MUSTUSE;

void encoder_release(struct encoder *self);

#endif
