/*
 * A track's frames as a file, a FIFO or stdout: raw, one behind the other, or y4m.
 *
 * Fragments are written as they come, from where they lie: nothing is put together.  A frame that came without its end is taken back from
 * a file; where that cannot be, zeros stand for the rest of it, so that those behind it stay in their places.
 */
#ifndef STAGE_VIDEOOUT_H
#define STAGE_VIDEOOUT_H

#include "media/sinkfile.h"
#include "media/y4m.h"
#include "wire/packet.h"

enum videoout_form { VIDEOOUT_AUTO, VIDEOOUT_RAW, VIDEOOUT_Y4M, VIDEOOUT_WEIR };

struct videoout {
	struct sinkfile file;
	bool is_y4m, is_open;
	struct video video;
	uint32_t rate_num, rate_den;
	char header[Y4M_MAX_HEADER_BYTES];
	int64_t pos;             /* of the frame that is being written */
	uint32_t seq, have_bytes;
	uint64_t frame_at_bytes; /* where it begins in the file */
	bool in_frame;
	/* counted */
	uint64_t n_frames, n_short, n_missing, n_gaps;
	int64_t first_short_pos, first_missing_pos;
};

/* The form for a name and a track: by the ending .y4m; with no known ending y4m where it has such pictures, else raw. */
enum videoout_form videoout_form_of(const char *path, const struct track *t);
/* The ending of a file of such a track: "y4m", or the name of the layout, "video" when it has none. */
const char *videoout_ending(enum videoout_form form, const struct track *t);

/*
 * Open path and write what stands before the frames.  form: RAW or Y4M.  *o must be zero.
 * Returns: ERR_OK; ERR_FORMAT (no raw video, or none that y4m has); as sinkfile_open().  Role: io, blocks.
 */
enum err videoout_open(struct videoout *o, const char *path, const struct track *t, enum videoout_form form, const struct sinkfile_args *args,
	struct err_why *why) WEIR_MUSTUSE;

/* It is announced again.  Returns: ERR_FORMAT when it is another kind of picture now. */
enum err videoout_track(struct videoout *o, const struct track *t, struct err_why *why) WEIR_MUSTUSE;

/* DATA or GAP of the track.  The payload stays until videoout_flush().  Returns: ERR_OK, ERR_GONE, ERR_SYS, ERR_FORMAT; o->file.why. */
enum err videoout_packet(struct videoout *o, const struct packet *p) WEIR_MUSTUSE;
enum err videoout_flush(struct videoout *o) WEIR_MUSTUSE;

/* Close; complete: the file gets its name. */
enum err videoout_close(struct videoout *o, bool complete, struct err_why *why) WEIR_MUSTUSE;

/* "600 frames of 1920x1080 rgba at 60/1; 3 missing (the first at 17)": a line for people.  Returns: out. */
const char *videoout_describe(const struct videoout *o, char out[static 200]);

#endif
