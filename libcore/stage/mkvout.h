/*
 * All tracks of a stream into one Matroska file: PCM, Opus and raw video, as they are.
 *
 * The tracks are written at its beginning, so it begins with the first packet that is no announcement; a track that is announced later
 * has no place.  Holes in PCM become silence of that length, up to an hour; those of Opus and of video, and longer ones, are gaps in time,
 * which Matroska knows.  A timeline that goes back it does not know: there what comes goes on behind what came.
 */
#ifndef STAGE_MKVOUT_H
#define STAGE_MKVOUT_H

#include "media/avformat.h"
#include "media/flacpack.h"
#include "wire/packet.h"

struct mkvout_options {
	bool force;                          /* overwrite */
	bool flac;                           /* PCM of up to 8 channels as FLAC */
	int stdout_fd;
	const volatile sig_atomic_t *stop;   /* ends the wait for a FIFO's reader */
	void (*say)(void *user, const char *thing, const char *text);  /* what was written, what is left out */
	void (*warn)(void *user, const char *thing, const char *text);
	void *user;
};

struct mkvout_track {
	struct track track;
	unsigned index;              /* of libavformat */
	uint32_t preskip_frames;     /* of Opus */
	bool in_file;                /* it is one of those at the beginning */
	int64_t next_pos;            /* end of what was taken */
	int64_t moved_frames;        /* of what comes, since the timeline went back */
	int64_t begin_pos;           /* first_pos as announced last */
	bool has_data;               /* since then */
	/* PCM is gathered, frames of pictures are put together */
	uint8_t *bytes;
	size_t room_bytes, have_bytes;
	int64_t bytes_pos;
	uint32_t seq;
	struct flacpack *flac;       /* PCM becomes that; NULL */
};

struct mkvout {
	struct mkvout_options options;
	struct sinkfile file;
	struct avformat *avformat;
	struct mkvout_track **tracks;
	unsigned n_tracks;
	bool begun;
	int64_t synced_ns;           /* on the timeline: the last cluster's end */
	/* totals */
	uint64_t frames;             /* of audio, silence not counted */
	uint64_t gap_frames;         /* silence in holes */
	uint64_t lost_frames;        /* of all holes that are losses */
	unsigned n_leaps;            /* of the timelines, that Matroska does not hold as they are */
	uint64_t n_pictures, n_short; /* whole ones; those that came without their end */
	struct err_why why;
};

/* Open path ("-" is stdout), a name without patterns.  Returns: as sinkfile_open(), avformat_open().  Role: io. */
enum err mkvout_open(struct mkvout *m, const char *path, const struct mkvout_options *o, struct err_why *why) WEIR_MUSTUSE;

/* A track is announced.  Returns: ERR_OK; ERR_NOMEM; ERR_FORMAT: it changes, which Matroska cannot say. */
enum err mkvout_announce(struct mkvout *m, const struct track *t) WEIR_MUSTUSE;

/* DATA, GAP or END of a track.  The payload is done with.  Returns: ERR_OK; what failed, in m->why.  Role: io, blocks. */
enum err mkvout_packet(struct mkvout *m, const struct packet *p) WEIR_MUSTUSE;

/* Before a wait: a pipe's reader gets what there is. */
enum err mkvout_settle(struct mkvout *m) WEIR_MUSTUSE;

/* The end; complete: the file gets its name, else it stays NAME.part. */
enum err mkvout_finish(struct mkvout *m, bool complete) WEIR_MUSTUSE;

/* Zero-safe. */
void mkvout_release(struct mkvout *m);

#endif
