/*
 * Audio sources as packets: what capture is made of, and how every other tool reads an audio file.
 * Several sources are several tracks, taken in turn so that their positions keep together.
 *
 * Two ways to use it: feed_next() and feed_fill() as with a reader, packets whole in memory; or feed_turn() and
 * feed_read() for a tool that wants the samples where it will write them from.
 */
#ifndef TOOL_FEED_H
#define TOOL_FEED_H

#include "media/source.h"
#include "wire/packet.h"
#include "wire/writer.h"

#define FEED_DEFAULT_BLOCK_FRAMES 4096u
#define FEED_N_SLOTS 12u
#define FEED_SLOT_BYTES (PACKET_HEADER_BYTES + PACKET_MAX_PAYLOAD_BYTES)

struct feed_track {
	struct source source;     /* its track has the id and block sizes filled in */
	uint16_t id;              /* 1, 2, … in order */
	int64_t next_pos;         /* end of what was handed out */
	int64_t end_pos;          /* INT64_MAX, or where -d ends it */
	uint32_t block_frames;    /* at most a packet */
	bool announced, ended, end_said;
	uint64_t n_gaps, gap_frames; /* handed out */
	uint32_t seq;
	void *user;               /* the stage's own, NULL at first */
};

struct feed {
	struct feed_track *tracks;
	unsigned n_tracks;
	uint32_t block_frames;    /* asked for; 0 the default */
	int64_t utc0_ns;          /* wall clock of media time 0, for the packets; UNITS_UNKNOWN_NS (files do not know) */
	uint8_t *slots;           /* FEED_N_SLOTS · FEED_SLOT_BYTES, 64-byte aligned; taken with the first fill */
	struct packet queue[FEED_N_SLOTS];
	unsigned n_queued, next_queued;
	uint64_t n_packets;
	uint8_t *aside;           /* feed_write(): a block that waits behind a hole; taken with the first hole */
	enum err failed;          /* latched */
	struct err_why why;
};

/*
 * Take over n opened sources (moved: the array's are zero after that).  block_frames: 0 is 4096, or as many as fit a packet.
 * On failure the sources are still the caller's.
 */
enum err feed_open(struct feed *f, struct source *sources, unsigned n, uint32_t block_frames, struct err_why *why) WEIR_MUSTUSE;
void feed_release(struct feed *f);

/* ---- as packets ---- */

/* As reader_next(): TRACK first, then DATA and GAP, END of the track; ERR_AGAIN: call feed_fill(); ERR_END. */
enum err feed_next(struct feed *f, struct packet *p) WEIR_MUSTUSE;
/* Read some blocks: of files several, of a pipe no more than is there.  Ends the life of the packets before.  Role: io, blocks. */
enum err feed_fill(struct feed *f) WEIR_MUSTUSE;

/* ---- as samples ---- */

/* The track that is furthest behind, or NULL when all have ended. */
struct feed_track *feed_turn(struct feed *f);
/*
 * Read at most a block (t->block_frames) to dst.  *hole_frames: so many frames are missing before b->pos, nobody said why.
 * b may hold news or a gap instead of frames, see source.h; after news t->block_frames may be another.
 * Returns: ERR_OK; ERR_END: t->ended is set; else what failed, with f->why.
 */
enum err feed_read(struct feed *f, struct feed_track *t, uint8_t *dst, struct source_block *b, uint64_t *hole_frames) WEIR_MUSTUSE;

/*
 * Read one block straight to where w will write it from, and queue it, with what lies before it: holes, and announcements
 * that changed.  The first announcement is the caller's.
 * Returns: ERR_OK; ERR_END: t is over and nothing was queued; else what failed, with f->why or w->why.
 */
enum err feed_write(struct feed *f, struct feed_track *t, struct writer *w) WEIR_MUSTUSE;

/* ---- names and losses ---- */

/* A track's name from a source's: the file's base name without its ending, valid UTF-8; "stdin"; a generator's word. */
const char *feed_name_of(const char *spec, char *out, size_t out_bytes);

bool feed_is_cut(const struct feed *f);
/* The first warning of its sources. */
void feed_describe_loss(const struct feed *f, char *out, size_t out_bytes);

#endif
