/*
 * Tracks of one stream into files of their own, DIR/NN-NAME.weir, as they are: packets are not copied, only their headers
 * are packed anew.  A track of raw video becomes its frames, y4m or raw, DIR/NN-NAME.y4m, and one of messages these.  A file stands
 * as NAME.part until its track and the input are over.
 */
#ifndef STAGE_SPLIT_H
#define STAGE_SPLIT_H

#include "media/sinkfile.h"
#include "stage/dataout.h"
#include "stage/videoout.h"
#include "wire/writer.h"

struct split_part {
	uint16_t track;
	bool begun;
	bool is_video;            /* its frames are written: video, not file and writer */
	bool is_data;             /* its messages are */
	struct videoout video;
	struct dataout data;
	struct sinkfile file;
	struct writer writer;
};

struct split {
	const char *dir;          /* not owned; NULL: nothing but the frames of one track, to frames_path */
	const char *frames_path;
	enum videoout_form form;  /* of video */
	bool takes_data;          /* messages, too, go to frames_path */
	bool keep_data;           /* messages stay packets in a .weir file */
	int stdout_fd;            /* what "-" as frames_path means */
	const volatile sig_atomic_t *stop;
	/* Messages: what is waited for, what was written.  NULL: none. */
	void (*say)(void *user, const char *thing, const char *text);
	void *user;
	const char *tool;         /* name that goes into the streams */
	bool force;               /* overwrite */
	struct packet_stream stream; /* of the input: name, clock, start */
	struct split_part **parts;
	unsigned n_parts;
	struct err_why why;       /* of what failed */
};

/* The caller has set what stands before `stream`.  Makes dir unless it is there.  Returns: ERR_OK, ERR_SYS.  Role: io. */
enum err split_open(struct split *s, struct err_why *why) WEIR_MUSTUSE;

/* Is it a track whose frames or messages go to frames_path? */
bool split_takes(const struct split *s, const struct track *t);

/*
 * A track begins (a file is opened) or is announced anew.  Returns: ERR_OK; ERR_SYS (the file exists, cannot be made, or too
 * many are open), ERR_NOMEM.
 */
enum err split_track(struct split *s, const struct track *t, const struct packet_stream *stream) WEIR_MUSTUSE;

/*
 * DATA, GAP or END of a track; those of tracks that were not begun are left out.  Packets of the stream itself (CLOCK) go into
 * every file.  The packet must stay until split_flush().
 */
enum err split_packet(struct split *s, struct packet *p) WEIR_MUSTUSE;

/* Write out what is queued: before the input's packets end their life. */
enum err split_flush(struct split *s) WEIR_MUSTUSE;

/*
 * End every stream with the reason, and give the files their names; with PACKET_END_ERROR they stay NAME.part, and go where
 * nothing is in them.
 */
enum err split_end(struct split *s, enum packet_end_reason reason) WEIR_MUSTUSE;

/* Zero-safe.  What was not ended stays as NAME.part. */
void split_release(struct split *s);

#endif
