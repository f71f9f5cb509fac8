/*
 * mux's work: packets of all inputs, in order, to what is written: a stream, a Matroska file, or a file each track.
 */
#ifndef STAGE_MUXING_H
#define STAGE_MUXING_H

#include "stage/bulkout.h"
#include "stage/datajoin.h"
#include "stage/join.h"
#include "stage/leveltakes.h"
#include "stage/mkvout.h"
#include "tool/progress.h"
#include "tool/select.h"
#include "tool/stats.h"
#include "stage/takes.h"
#include "tool/tool.h"
#include "stage/videojoin.h"
#include "wire/writer.h"

struct mux {
	struct tool tool;
	const char *output;       /* NULL: a stream to stdout */
	int format;               /* enum sink_format, 0: by the name */
	struct opt_list wanted, tags;
	struct select_hits hits;
	struct takes_options takes_options;
	uint64_t rf64_above_bytes;
	struct leveltakes_choice level_choice;
	bool force;

	struct join join;
	struct videojoin_options video_options;
	struct videojoin video;   /* --video */
	int64_t bulk_fd;          /* --bulk-fd; −1 none */
	struct bulkout bulk;      /* then in place of video */
	struct opt_list data_specs;
	struct datajoin data;     /* --data */
	bool is_stream;           /* what is written is a weir stream */
	struct sinkfile file;     /* of a .weir file */
	struct writer writer;
	struct mkvout_options mkv_options;
	struct mkvout mkv;        /* of a Matroska file, */
	bool is_mkv;              /* if it is one */
	struct takes takes;       /* of all other files */
	struct leveltakes level;  /* on the way to them, with --start-above */
	bool begun;
	struct stats stats;
	atomic_uint_fast64_t gap_frames, clipped_samples, files;
	struct progress progress;
	struct err_why why;
};

/* ---- muxing.c: where it comes from ---- */

/* Open the inputs, pictures and messages that the options name.  Returns: ERR_OK, or what failed with self->why.  Role: control. */
enum err muxing_open(struct mux *self, char *const *inputs, unsigned n) WEIR_MUSTUSE;
/* All of it, to the end.  Returns: ERR_OK, ERR_CUT, or what failed, with self->why.  Role: io. */
enum err muxing_run(struct mux *self) WEIR_MUSTUSE;
/* The counters of --stats, and progress. */
void muxing_count(struct mux *self);
/* The pictures of --video, wherever they go. */
const struct videofeed *muxing_video(const struct mux *self);
/* Everything, muxout's too.  failed: as there. */
void muxing_release(struct mux *self, bool failed);

/* ---- muxout.c: where it goes ---- */

/* level: with takes_options.on_level.  Returns: ERR_OK, or what failed with self->why.  Role: control. */
enum err muxout_open(struct mux *self, const struct levelgate_options *level) WEIR_MUSTUSE;
enum err muxout_packet(struct mux *self, struct packet *p) WEIR_MUSTUSE;
/* What was queued goes on before the packets it points to end their life. */
enum err muxout_settle(struct mux *self) WEIR_MUSTUSE;
/* The end of the input, e: how it went until here.  Returns: e, or what failed at the end. */
enum err muxout_finish(struct mux *self, enum err e) WEIR_MUSTUSE;
/* failed: and nothing is left of what was not begun. */
void muxout_release(struct mux *self, bool failed);

#endif
