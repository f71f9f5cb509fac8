/*
 * The devices that play one track, all of them what comes, at the same time.
 *
 * The first paces a stream that comes as fast as it is taken (a file), so it plays that bit for bit, and the others follow
 * its clock.  A stream that comes in real time paces all of them.
 */
#ifndef STAGE_SPEAKERS_H
#define STAGE_SPEAKERS_H

#include "media/livesink.h"
#include "tool/stats.h"
#include "tool/tool.h"

#define SPEAKERS_MAX 16u

struct speakers_options {
	struct opt_time latency;
	double volume_db;
	bool keep;                /* wait for devices that go away */
	bool own_clocks;          /* nothing follows anything */
	bool comes_in_time;       /* the input is no file: it may come in real time */
	bool is_live;             /* it says that it does */
};

struct speakers;
struct speakers_device {
	struct livesink sink;
	struct speakers *all;
	struct tick tick;         /* of its callbacks */
	bool scheduling_said;
};

struct speakers {
	struct tool *tool;
	struct stats *stats;
	struct speakers_options options;
	const char *specs[SPEAKERS_MAX]; /* specs[0] NULL: the first system that answers */
	unsigned n;
	struct speakers_device *devices;
	bool open;
	struct track format;      /* that they were opened for: rate, channels, sample */
	uint32_t piece_frames;    /* to each in turn */
	struct err_why why;
	atomic_uint_fast64_t underruns, silent_frames, skipped_frames, low_frames, absences, absent_frames, ratio_e9;
};

/* For the devices named in s->specs; n is 1 without a name.  Before stats_begin().  Returns: ERR_OK, ERR_NOMEM with s->why.  Role: control. */
enum err speakers_init(struct speakers *s, struct tool *tool, struct stats *stats) WEIR_MUSTUSE;
void speakers_release(struct speakers *s);
/* Open them for a track.  Returns: as livesink_open(), with s->why.  Role: io. */
enum err speakers_open(struct speakers *s, const struct track *t) WEIR_MUSTUSE;
/* Open, and for such a track? */
bool speakers_fit(const struct speakers *s, const struct track *t);
/* Frames of the track's format; NULL: silence.  Returns: as livesink_write(), with s->why.  Role: io. */
enum err speakers_write(struct speakers *s, const uint8_t *frames, size_t n_frames) WEIR_MUSTUSE;
/* Play everything to its last frame.  Returns: likewise. */
enum err speakers_drain(struct speakers *s) WEIR_MUSTUSE;
/* Say what went wrong on the way, and close them.  Safe when they are not open. */
void speakers_close(struct speakers *s);
/* Bring the counters up to date.  Role: the thread that writes. */
void speakers_count(struct speakers *s);

#endif
