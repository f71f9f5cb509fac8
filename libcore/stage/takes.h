/*
 * Tracks into files: one take a track, each a row of one or more pieces.
 *
 * A take names its files, puts frames where their positions say, fills holes with silence, cuts pieces at exact frames and,
 * with `sync`, makes all files begin and end together.  Opus is cut as exactly as PCM: the packet that holds the cut ends one
 * piece, trimmed, and is among the pre-roll of the next (80 ms, counted in its pre-skip), so that what the pieces decode to,
 * put in a row, has no frame lost or repeated.
 *
 * Only names look at the clock, and only when the stream does not carry the time.
 */
#ifndef STAGE_TAKES_H
#define STAGE_TAKES_H

#include "media/sink.h"
#include "tool/opt.h"
#include "stage/takename.h"

struct take;

/* A file that is finished, as it is told. */
struct takes_file {
	const char *path;
	const struct track *track;
	enum sink_format format;
	uint64_t n_frames, size_bytes;
	enum sample stored;          /* what PCM became in the file; 0: the track's own */
	bool dithers;                /* on the way there */
	bool on_level;               /* first_pos of the track is worth telling */
};

struct takes_options {
	const char *pattern;         /* a path, "-", or a pattern of takename.h */
	struct sink_args sink;       /* tags, force, stop…; wait is set here */
	struct opt_time split_every; /* is_set: cut pieces of this length */
	bool split_on_clock;         /* at multiples of it in wall-clock time (UTC) instead */
	struct opt_time max_gap;     /* a longer one is no silence: the file ends, and what follows makes another one; not set: 1 h */
	bool sync;
	bool on_level;               /* takes begin and end by takes_begin_at() and takes_end_at() alone, often */
	int64_t t0_utc_ns;           /* wall-clock of position 0, or UNITS_UNKNOWN_NS */
	void (*finished)(void *user, const struct takes_file *f);
	void (*change)(void *user, const char *thing, const char *text); /* of samples or tags, which the file holds no more */
	void (*note)(void *user, const char *thing, const char *text);
	void (*warn)(void *user, const char *thing, const char *text);
	void *user;
};

struct takes {
	struct takes_options options;
	struct takename name;
	struct take **list;          /* in order of appearance */
	unsigned n_takes, room;
	uint16_t *index;             /* by track id: 0 none, else place + 1 */
	struct take **unsettled;     /* takes that hold payloads by reference */
	unsigned n_unsettled;
	uint64_t *used_names;        /* hashes of the names of this run */
	size_t n_used, used_room;
	bool started;
	bool checked;                /* the names of the first pieces were free */
	int64_t sync_n;              /* where all files begin: units of a rate */
	uint32_t sync_num, sync_den;
	/* totals */
	uint64_t frames;             /* from packets, into files */
	uint64_t gap_frames;         /* silence put into holes */
	uint64_t lost_frames;        /* of those, where something was lost: not DTX, a pause, a late start */
	uint64_t clipped_samples;
	uint64_t n_files;
	struct err_why why;
};

/* Look at the options and the pattern.  Returns: ERR_OK; ERR_ARG; ERR_SYS where a name that is known by now is taken; ERR_NOMEM. */
enum err takes_open(struct takes *s, const struct takes_options *o, struct err_why *why) WEIR_MUSTUSE;

/* A track is announced, or announced anew: another format begins another piece.  t->id is its number. */
enum err takes_announce(struct takes *s, const struct track *t) WEIR_MUSTUSE;

/*
 * All tracks that were announced at the beginning are known: check, before anything is written, that the names tell them apart
 * and that the container holds each.  Called by takes_packet() if it was not called before; utc_ns is the first packet's.
 */
enum err takes_start(struct takes *s, int64_t utc_ns) WEIR_MUSTUSE;

/* DATA or GAP of an announced track.  Payloads stay where they are until takes_settle().  Role: io, blocks. */
enum err takes_packet(struct takes *s, const struct packet *p) WEIR_MUSTUSE;

/*
 * With on_level: a take of track id begins, its frame 0 at pos, whether frames are there or not; clock_utc_ns is the wall-clock of
 * clock_pos, if it is known.  What packets hold from there on is in it, up to takes_end_at(), which makes the take just so long.  Packets
 * that reach beyond are cut by the caller; of Opus, those that a decoder needs before pos come first.
 */
enum err takes_begin_at(struct takes *s, uint16_t id, int64_t pos, int64_t clock_pos, int64_t clock_utc_ns) WEIR_MUSTUSE;
enum err takes_end_at(struct takes *s, uint16_t id, int64_t pos) WEIR_MUSTUSE;

/* What the packets handed in point to is about to go. */
enum err takes_settle(struct takes *s) WEIR_MUSTUSE;

/*
 * Finish all files.  complete: they get their names; else they stay NAME.part.  All are closed, whatever fails.
 * Returns: the first failure, in s->why.
 */
enum err takes_finish(struct takes *s, bool complete) WEIR_MUSTUSE;

void takes_release(struct takes *s);

/*
 * A finished file for people: "10:00.000 opus 48000 Hz 2 ch, 7.2 MB", "0:02.000 flac s24 (of f32, dithered) 48000 Hz 2 ch, 0.3 MB";
 * with on_level also "…, from 0:12.500".  Returns: out.
 */
const char *takes_describe(const struct takes_file *f, char out[static 128]);

#endif
