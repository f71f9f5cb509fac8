/*
 * A join with messages beside it: audio first, then reliable data, text, lossy data; pictures after that.
 *
 * A message stands where audio is when it comes: live (a stream that comes in is, or it is asked for) by the clock, else where the
 * packets that go out have come to.  Live, the messages end with the audio; else everything waits until each producer
 * has come and gone, and nothing is dropped.  While the pipe takes no more, messages are taken in all the same, as far as there is room.
 */
#ifndef STAGE_DATAJOIN_H
#define STAGE_DATAJOIN_H

#include "stage/datafeed.h"
#include "stage/join.h"
#include "tool/stats.h"
#include "tool/tool.h"
#include "wire/writer.h"

#define DATAJOIN_MAX_FEEDS 64u

struct datajoin_feed {
	struct datafeed feed;
	unsigned rank;             /* 0 first */
	bool is_watched, is_announced, end_said, is_done;
	int64_t last_pos;
	uint32_t round_bytes;      /* handed out since the last fill */
	enum datafeed_state told;  /* state that was reported */
};

struct datajoin {
	struct tool *tool;
	struct stats *stats;
	struct writer *writer;
	struct datajoin_feed *feeds;
	unsigned n_feeds;
	int epoll_fd;
	bool want_live;            /* even if no stream that comes in is */
	bool has_begun, is_live, is_ending;
	int out_fd;                /* its pipe once more, not to be waited for; −1 */
	void (*next_wait)(void *user); /* who waited before */
	void *next_wait_user;
	int64_t begin_ns, begin_time_ns; /* monotonic, and where that is on the timeline */
	int64_t utc_offset_ns;
	uint32_t round_bytes;      /* that may still go before audio is looked at */
	uint8_t *reserved;         /* the writer's place for a lossy message; NULL */
	struct datafeed *handed_out; /* the feed of the last one */
	struct packet_end end;
	uint8_t end_bytes[PACKET_END_BYTES];
	atomic_uint_fast64_t n_messages, n_bytes, n_dropped, n_waiting, n_full, full_times;
};

/* Open them all.  Returns: ERR_OK; as dataspec_parse() and datafeed_open(); ERR_LIMIT: more than 64.  Role: control. */
enum err datajoin_open(struct datajoin *d, struct tool *t, struct stats *s, const char *const *specs, unsigned n, bool live,
	struct err_why *why) WEIR_MUSTUSE;
void datajoin_release(struct datajoin *d);

/* Where the packets go.  Before the first datajoin_next(). */
void datajoin_attach(struct datajoin *d, struct writer *w);

/*
 * The next packet of a feed, if no audio is there to go first.  DATA goes to datajoin_put() before anything else is called here.
 * Returns: ERR_OK; ERR_AGAIN: others may go, then datajoin_watch(), join_fill(), datajoin_fill(); ERR_END; ERR_LIMIT with j->why.
 */
enum err datajoin_next(struct datajoin *d, struct join *j, struct packet *p) WEIR_MUSTUSE;

/* Write a DATA packet of a feed. */
enum err datajoin_put(struct datajoin *d, const struct packet *p) WEIR_MUSTUSE;

/* Around join_fill(), once the writer was flushed: what to wait for, and read what is there. */
void datajoin_watch(struct datajoin *d, struct join *j);
void datajoin_fill(struct datajoin *d, struct join *j);

/* Everything else is over, or (is_alone) there never was anything: the messages are to come to their end.  Live and alone they go on. */
void datajoin_finish(struct datajoin *d, bool is_alone);

/* The announcement of one of its tracks, or NULL; is it one of them? */
const struct track *datajoin_track(const struct datajoin *d, uint16_t id);

/* One of them ended other than it should: its words, or NULL. */
const struct err_why *datajoin_cut(const struct datajoin *d);

#endif
