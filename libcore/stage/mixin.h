/*
 * The inputs of a mix: any number of streams and audio files, their PCM tracks numbered in order, everything in the mix's
 * rate and by position.
 *
 * Files are read in place, when their turn comes, into one block that stays in the cache.  Streams are read as far as a
 * block needs; what comes early waits in queues (stage/spool.h), what lies in the reader is taken from there.  Pipes, if
 * there are several, come through a feeder (stage/feeder.h), so nobody who writes to them waits for us in vain.
 *
 *   mixin_open(); then for each block: mixin_gather(), mixin_wait() while it says ERR_AGAIN; mixin_take() for each track.
 */
#ifndef STAGE_MIXIN_H
#define STAGE_MIXIN_H

#include "dsp/convert.h"
#include "dsp/levels.h"
#include "media/resampler.h"
#include "stage/feeder.h"
#include "tool/input.h"
#include "tool/select.h"

#define MIXIN_CHUNK_FRAMES 4096u   /* through a resampler at a time */

struct mixin;
struct mixin_input;

struct mixin_track {
	unsigned number;           /* 1, 2, … in the mix */
	uint16_t id;               /* in its input */
	struct mixin_input *input;
	char name[128];
	/* what mixin_take() hands out now; is_new until the stage has seen it */
	enum sample format;
	unsigned channels;
	uint64_t wave_mask;        /* 0: nobody can tell */
	bool is_new;
	uint64_t takes_frames;     /* handed out so far */
	void *user;
	/* private: what comes in */
	struct track in;           /* without its TLVs */
	bool ended;
	bool is_foreign;           /* announced as something that is not mixed */
	int64_t moved_frames;      /* of the input: added to its positions, where its timeline was moved */
	int64_t next_pos;          /* of the input, moved: end of what came */
	bool has_next;             /* that is known */
	int64_t first_pos;         /* of the mix */
	int64_t known_pos;         /* of the mix: everything before it is here */
	int64_t end_pos;           /* of the mix: end of what came */
	int64_t taken_pos;         /* of the mix: end of what was handed out */
	struct spool queue;        /* pieces: struct piece and frames */
	struct resampler *resampler;
	bool in_segment;
	int64_t segment_next_pos;  /* of the input: where the next frame must be to go on */
	int64_t segment_out_pos;   /* of the mix: of the next frame out of the resampler */
	struct convert to_f32;
};

struct mixin_input {
	struct input in;
	const char *name;          /* as given */
	bool is_open, begun, ended, is_regular;
	int direct_fd;             /* a pipe that was opened here, −1 none */
	int feed_fd;               /* what the feeder gives instead of it, −1 none */
	struct mixin_track **tracks; /* by place in the input; NULL: not mixed */
	unsigned n_tracks, tracks_room;
	struct packet held;        /* the first that is no announcement, before the mix begins */
	bool have_held;
	struct packet current;     /* frames that lie in the reader and were not handed out */
	struct mixin_track *current_track; /* NULL: none */
	bool is_cut;
};

struct mixin_options {
	uint32_t rate_hz;          /* 0: the first track's */
	const struct opt_list *select; /* -t, or NULL */
	uint64_t spool_bytes;      /* limit of temporary files */
	size_t memory_bytes;       /* before that */
	bool twice;                /* it will be opened twice: regular files only */
	const volatile sig_atomic_t *stop;
	void (*say)(void *user, const char *thing, const char *text);  /* a message; also from another thread */
	void (*note)(void *user, const char *thing, const char *text); /* with -v; the caller's thread */
	enum err (*idle)(void *user); /* before it may wait: write what is owed */
	void *user;
};

struct mixin {
	struct mixin_options options;
	struct mixin_input *inputs;
	unsigned n_inputs;
	struct mixin_track **tracks;
	unsigned n_tracks, tracks_room;
	uint32_t rate_hz;
	int64_t first_pos;         /* where the mix begins */
	uint32_t block_frames;     /* what the packets of the streams suggest, at most 4096 */
	struct feeder feeder;
	struct spool_store store;
	uint8_t *block;            /* PACKET_MAX_PAYLOAD_BYTES: what a file gives */
	size_t block_bytes;
	float *chunk_in, *chunk_out; /* of the resamplers, grown with the channels */
	unsigned chunk_channels;
	bool is_live;              /* one of the streams is */
	int64_t t0_utc_ns;         /* the first stream's that knows it */
	uint64_t packets, late_frames, nonfinite_samples;
	levels_clean_fn *clean_fn;
	bool is_cut;               /* an input was, and it was said */
	struct mixin_input *waits_for;
	struct select_hits hits;   /* of options.select */
	struct err_why why;
};

/*
 * Open all inputs ("-" is stdin) and read up to their first frames.  Says whom it waits for.  Role: io, blocks.
 * Returns: ERR_OK; what failed, with *why: it cannot be opened, is no audio, holds Opus, nothing to mix.
 */
enum err mixin_open(struct mixin *m, char *const *names, unsigned n, const struct mixin_options *o, struct err_why *why) WEIR_MUSTUSE;
void mixin_release(struct mixin *m);

/*
 * Have everything of every stream up to position `until`.  New tracks may have joined (n_tracks).
 * Returns: ERR_OK; ERR_AGAIN: more input is needed that is not there: mixin_wait(); else failed, with m->why.
 * Role: io; reads files, does not wait.
 */
enum err mixin_gather(struct mixin *m, int64_t until) WEIR_MUSTUSE;
/*
 * Wait for what mixin_gather() lacked, at most timeout_ms (−1: as long as it takes; a stop ends it).
 * Returns: ERR_OK, also when nothing came.  Role: io, blocks.
 */
enum err mixin_wait(struct mixin *m, int64_t until, int timeout_ms) WEIR_MUSTUSE;

/* n_frames of a track's format that begin at frame `at` of the block; several calls a block, rising, not overlapping. */
typedef void mixin_frames_fn(void *user, struct mixin_track *t, size_t at, const void *frames, size_t n_frames);

/*
 * Hand out what track t has in [pos, pos + n_frames) and forget it.  If t->is_new is set meanwhile (a new format) fn is called
 * with n_frames 0 before the first frames of it.  Files are read here.
 * Returns: ERR_OK (also when the input failed: it has ended then, that was said, m->is_cut is set), ERR_NOMEM ….
 */
enum err mixin_take(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, mixin_frames_fn *fn, void *user) WEIR_MUSTUSE;

/* Has t all it needs up to pos?  For live mixes. */
bool mixin_is_known(const struct mixin_track *t, int64_t pos);
/* Nothing more will come of any input; where it ended. */
bool mixin_has_ended(const struct mixin *m, int64_t *end_pos);

#endif
