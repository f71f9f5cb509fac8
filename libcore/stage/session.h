/*
 * The devices of a capture, while it runs: they share the first one's timeline, are waited for when they go away, their
 * losses are said as they happen, and CLOCK packets tell how their time goes with the wall clock's.
 */
#ifndef STAGE_SESSION_H
#define STAGE_SESSION_H

#include "media/livesource.h"
#include "tool/feed.h"
#include "tool/stats.h"
#include "tool/tool.h"
#include "wire/writer.h"

struct session;
/* One source of the capture. */
struct session_device {
	struct livesource *live;  /* NULL: it is no device */
	struct session *session;
	struct tick tick;         /* of its callbacks */
	bool scheduling_said;
	uint64_t loss_said;       /* frames lost that were spoken of */
	char name[256];           /* for messages */
};

struct session_options {
	bool keep;                /* wait for devices that go away */
	bool own_clocks;          /* each device by its own clock, from its own beginning */
};

struct session {
	struct tool *tool;
	struct stats *stats;
	struct session_options options;
	struct session_device *devices; /* of each source */
	unsigned n;
	struct livesource *first; /* device; NULL: there is none */
	int64_t loss_said_ns;     /* when, last */
	int64_t clock_due_ns;
	uint8_t boot_id[16];      /* zeros: nobody knows */
	atomic_uint_fast64_t xruns, xrun_warnings, absences, absent_frames, ratio_e9;
};

/* For n sources.  Returns: ERR_OK, ERR_NOMEM.  Role: control. */
enum err session_init(struct session *s, struct tool *tool, struct stats *stats, unsigned n, const struct session_options *o) WEIR_MUSTUSE;
/* After the sources. */
void session_release(struct session *s);
/* Source i was opened; before it is read or moved.  Returns: ERR_OK, ERR_NOMEM.  Role: control. */
enum err session_add(struct session *s, unsigned i, const struct source *source, struct err_why *why) WEIR_MUSTUSE;
/* The device of source i, or NULL. */
static inline struct livesource *session_device(const struct session *s, unsigned i)
{
	return s->devices[i].live;
}
/* Before stats_begin(): its own numbers. */
void session_keys(struct session *s);

/* Something of track t was read: say what was lost, count, and queue a CLOCK packet when it is time for one. */
enum err session_turn(struct session *s, const struct feed_track *t, struct writer *w) WEIR_MUSTUSE;
/* At the end of a track: what is left to be said. */
void session_end_track(struct session *s, const struct feed_track *t);

#endif
