/*
 * A file being written: one track of frames or Opus packets into a container, true at every moment.
 *
 * While it is written a file stands as NAME.part; sink_close() with complete=true gives it its name.  Headers are kept
 * true twice a second of audio, so that a kill loses less than a second.  Nothing here looks at the clock.  "-" writes
 * to stdout; FIFOs and devices are written as they are, without .part.
 *
 *   sinkfile   names, the queue of bytes, large writes            sinkpcm   WAV, RF64, W64, CAF, AIFF, raw
 *   sinkflac   FLAC by libFLAC                                    sinkogg   Ogg Opus, over oggwrite
 */
#ifndef MEDIA_SINK_H
#define MEDIA_SINK_H

#include "media/sinkfile.h"
#include "wire/packet.h"
#include "wire/track.h"

enum sink_format {
	SINK_NONE, SINK_WEIR, SINK_OPUS, SINK_WAV, SINK_W64, SINK_RF64, SINK_FLAC, SINK_CAF, SINK_AIFF, SINK_RAW,
	SINK_MKA, /* Matroska holds all tracks: stage/mkvout.h, not a sink */
};

struct sink_args {
	enum sink_format format;
	bool force;               /* overwrite an existing file */
	bool wait;                /* wait for the reader of a FIFO; else sink_open() says ERR_AGAIN */
	const char *const *tags;  /* extra "KEY=value", NULL-terminated or NULL; replace those of the track */
	uint64_t wav_limit_bytes; /* where WAV turns into RF64, and AIFF ends: 0 = 4 GiB − 1; lower in tests */
	uint32_t serial;          /* Ogg serial number */
	int stdout_fd;
	const volatile sig_atomic_t *stop; /* ends the wait for a reader; NULL never */
};

struct sink;

struct sink_ops {
	const char *name;         /* what people call the container: "WAV" */
	enum err (*write)(struct sink *s, const struct packet *p);
	enum err (*silence)(struct sink *s, uint64_t n_frames);
	enum err (*sync)(struct sink *s);
	enum err (*finish)(struct sink *s); /* after a failure too: make what is in the file whole */
	enum err (*relink)(struct sink *s); /* NULL: nothing to do */
	void (*release)(struct sink *s);
};

struct sink {
	const struct sink_ops *ops;
	void *state;
	struct sink_args args;
	struct sinkfile file;
	struct track track;       /* what is written, extra tags included */
	int64_t first_pos;        /* of the track's timeline: frame 0 of the file */
	uint64_t n_frames;        /* taken so far, silence included; after sink_close() what the file holds */
	uint64_t silence_frames;  /* written for holes */
	uint64_t clipped_samples; /* when a container cannot hold the format and it was reduced */
	uint64_t synced_frames;   /* n_frames at the last sync */
	enum sample stored;       /* what PCM became in the file: the track's, or what the container holds in its place */
	bool dithers;             /* on the way there */
	char note[256];           /* worth saying with -v: "32 bit FLAC is exact, and needs libFLAC 1.4 or later to be read" */
	char left_out[96];        /* worth saying: "the picture has no place in WAV and is left out" */
	char change[128];         /* likewise, where finished files are not told of: "f32 becomes s24 with dither: FLAC holds no float" */
	struct err_why why;
	enum err failed;          /* latched */
};

/* The format a file name asks for by its ending, or SINK_NONE.  Case does not matter. */
enum sink_format sink_format_of_name(const char *path);
/* "wav"; and the one of such a name, or SINK_NONE. */
const char *sink_format_name(enum sink_format f);
enum sink_format sink_format_by_name(const char *name);
/* All of them, for messages: "weir opus wav …". */
#define SINK_FORMAT_LIST "weir opus wav w64 rf64 flac caf aiff raw mka"

/*
 * Can a file of this format hold track t?  path is for the message.
 * Returns: ERR_OK; ERR_FORMAT (coded audio into PCM or the other way, no audio at all), ERR_LIMIT (channels, rate).
 */
enum err sink_check(enum sink_format format, const struct track *t, const char *path, struct err_why *why) WEIR_MUSTUSE;

/*
 * Open path ("-" for stdout) for track t: PCM formats take PCM tracks, SINK_OPUS takes Opus tracks.  Frame 0 of the file is
 * t->first_pos.
 * Returns: ERR_OK; ERR_FORMAT (a track of the wrong kind), ERR_LIMIT (too many channels for the container, a rate it
 * cannot hold), ERR_ARG (a terminal, a pipe where the container needs a file), ERR_AGAIN (a FIFO without a reader, and not to wait), ERR_END (stopped
 * while waiting), ERR_SYS (the name is taken and not force, and what the system says).  Role: io, may block.
 */
enum err sink_open(struct sink *s, const char *path, const struct track *t, const struct sink_args *args, struct err_why *why) WEIR_MUSTUSE;

/*
 * One DATA packet of PCM (whole frames at p->payload, p->dur of them) or one Opus packet (p->pos counts then).  The payload
 * stays where it is until sink_settle().  Syncs by itself twice a second of audio.  Role: io, blocks.
 */
enum err sink_write(struct sink *s, const struct packet *p) WEIR_MUSTUSE;

/* A hole: silence in PCM, packets that make the decoder conceal in Opus. */
enum err sink_silence(struct sink *s, uint64_t n_frames) WEIR_MUSTUSE;

/*
 * The coding begins anew: the next packet is the first of a run of its own, with its own pre-skip and tags (t's, with the extra
 * ones).  In Ogg Opus it becomes the next link of a chained file; PCM just goes on.  t->first_pos is where the file goes on.
 */
enum err sink_relink(struct sink *s, const struct track *t) WEIR_MUSTUSE;

/* The payloads handed in are about to go. */
enum err sink_settle(struct sink *s) WEIR_MUSTUSE;

/* Write out what is held and make the header true. */
enum err sink_sync(struct sink *s) WEIR_MUSTUSE;

/*
 * Make the file true and close it.  complete: give it its final name; else it stays NAME.part.
 * After a failed write (full disk) it still makes a valid file of what fitted, and returns the failure.
 */
enum err sink_close(struct sink *s, bool complete) WEIR_MUSTUSE;

/* Zero-safe, idempotent.  An open file stays NAME.part. */
void sink_release(struct sink *s);

/* ---- for the containers ---- */

/* Each sets s->ops and s->state; s->track, s->args and the opened s->file are there. */
enum err sinkpcm_open(struct sink *s, struct err_why *why) WEIR_MUSTUSE;
enum err sinkflac_open(struct sink *s, struct err_why *why) WEIR_MUSTUSE;
enum err sinkogg_open(struct sink *s, struct err_why *why) WEIR_MUSTUSE;

/* The WAVE mask of t's channels, or 0 where the layout is something else or does not fit the number of channels. */
uint64_t sink_wave_mask(const struct track *t);

#endif
