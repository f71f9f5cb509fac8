/*
 * Audio sources as packets: what capture is made of, and how every other tool reads an audio file.
 * Several sources are several tracks, taken in turn so that their positions keep together.
 */
#ifndef TOOL_FEED_H
#define TOOL_FEED_H

#include "media/source.h"
#include "wire/packet.h"

#define FEED_DEFAULT_BLOCK_FRAMES 4096u

struct feed_track {
	struct source source;
	uint16_t id;
	int64_t next_pos;
	int64_t start_pos;        /* frames before it are not handed out (--start) */
	int64_t end_pos;          /* INT64_MAX, or where -d ends it */
	uint32_t block_frames;
	bool announced, ended;
	void *user;
};

struct feed {
	struct feed_track *tracks;
	unsigned n_tracks;
	uint8_t *buffer;          /* one block, with room for a header in front: packets are whole in memory */
	size_t buffer_bytes;
	bool ready;               /* a packet waits for feed_next() */
	struct packet packet;
	unsigned turn;
	bool cut;
	struct err_why why;
};

struct feed_options {
	uint32_t block_frames;    /* 0: 4096, or as many as fit a packet */
	struct opt_time *start, *duration; /* NULL: all of it */
};

/* Take over n opened sources (moved out of the array).  Allocates the block. */
enum err feed_open(struct feed *f, struct source *sources, unsigned n, uint32_t block_frames, struct err_why *why) WEIR_MUSTUSE;
/* As reader_next(): TRACK first, then DATA and GAP; ERR_AGAIN: call feed_fill(). */
enum err feed_next(struct feed *f, struct packet *p) WEIR_MUSTUSE;
/* Read one block of the track whose turn it is. */
enum err feed_fill(struct feed *f) WEIR_MUSTUSE;
void feed_release(struct feed *f);

#endif
