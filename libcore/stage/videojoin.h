/*
 * A join with a video beside it: audio first, and looked at before every fragment of a frame.
 *
 * Offline each goes where its time is, as far as it is there.  Live (a stream that comes in is, or it is asked for) the pipe is made
 * so small that audio finds no more than one fragment before it; where that cannot be, fragments go out at no more than twice the video's
 * nominal rate, which comes to the same as long as the reader keeps up.  While the pipe takes no more, the video's frames are taken in
 * all the same, and dropped whole.
 */
#ifndef STAGE_VIDEOJOIN_H
#define STAGE_VIDEOJOIN_H

#include "stage/join.h"
#include "stage/videofeed.h"
#include "wire/writer.h"

struct videojoin_options {
	const char *spec;
	bool live;                 /* even if no stream that comes in is */
	bool first;                /* nothing goes out before it is known what the video is: the track is announced before all else */
	const struct packet_stream *stream; /* whose clock counts; NULL: the join's */
	int pipe_bytes;            /* of its pipe, when live; 0: what suits audio */
	int64_t look_ns;           /* no wait is longer, so that stop is seen on a thread that gets no signals; 0: no limit */
	const volatile sig_atomic_t *stop;
};

struct videojoin {
	struct videojoin_options options;
	struct videofeed feed;
	bool is_open;
	struct writer *writer;     /* NULL: packets go elsewhere */
	int out_fd;                /* the writer's pipe once more, not to be waited for; −1 */
	bool is_paced;             /* the pipe is deeper than what audio may wait behind */
	bool has_begun, is_live, is_announced, is_over, end_said;
	bool audio_ended;
	bool looked;               /* audio was looked at since the last fragment */
	bool is_held;              /* offline: one waits for the other */
	int64_t fragment_ns;       /* a whole fragment takes so long at twice the nominal rate */
	int64_t next_send_ns;
	int64_t audio_alive_ns;
	struct packet_end end;
	uint8_t end_bytes[PACKET_END_BYTES];
};

/* Returns: as videofeed_open().  Role: control. */
enum err videojoin_open(struct videojoin *v, const struct videojoin_options *o, struct err_why *why) WEIR_MUSTUSE;
void videojoin_release(struct videojoin *v);

/* Where the packets go: its track's `dropped` is raised from here, its pipe sized.  After writer_open(). */
void videojoin_attach(struct videojoin *v, struct writer *w);

/* As join_next(): packets of the video stay until the next call. */
enum err videojoin_next(struct videojoin *v, struct join *j, struct packet *p) WEIR_MUSTUSE;
/* As join_fill(): waits for audio, video or the moment that the next fragment may go, and reads. */
enum err videojoin_fill(struct videojoin *v, struct join *j) WEIR_MUSTUSE;

/* The video's announcement if id is its track, else join_track()'s. */
const struct track *videojoin_track(struct videojoin *v, struct join *j, uint16_t id);

/* Is one of the inputs live?  A stream that was live when it was recorded is not live any more. */
bool videojoin_comes_live(struct join *j);

#endif
