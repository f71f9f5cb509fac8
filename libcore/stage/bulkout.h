/*
 * A video that goes out through a pipe of its own, from a thread of its own: what is in the other pipe never waits for it.
 * It is a stream by itself, with the clock of the one it belongs to; mux joins the two again.
 */
#ifndef STAGE_BULKOUT_H
#define STAGE_BULKOUT_H

#include "stage/videojoin.h"

#include <pthread.h>

struct bulkout {
	struct videojoin video;
	struct join join;          /* of nothing */
	struct writer writer;
	struct packet_stream stream; /* of the main one, as it began */
	const char *tool;
	pthread_t thread;
	bool is_open, running;
	const volatile sig_atomic_t *asked; /* the tool's stop, or NULL */
	volatile sig_atomic_t stop;         /* that, or ours */
	enum err failed;
	struct err_why why;
};

/* Open the video, and fd (not owned) to write to.  Returns: as videojoin_open(), writer_open().  Role: control. */
enum err bulkout_open(struct bulkout *b, int fd, const char *tool, const struct videojoin_options *o, struct err_why *why) WEIR_MUSTUSE;

/* Begin to write; stream is the main one, begun; live: it is, even if that was not asked for.  Returns: ERR_OK, ERR_SYS.  Role: control. */
enum err bulkout_start(struct bulkout *b, const struct packet_stream *stream, bool live, struct err_why *why) WEIR_MUSTUSE;

/* Wait for the video to end.   Returns: what failed; a reader that went away is no failure. */
enum err bulkout_finish(struct bulkout *b, struct err_why *why) WEIR_MUSTUSE;

/* The main stream failed: nobody waits for the video's own end any more.  Zero-safe. */
void bulkout_stop(struct bulkout *b);

/* Zero-safe.  Waits for the thread. */
void bulkout_release(struct bulkout *b);

#endif
