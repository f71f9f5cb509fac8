/*
 * The counters of a running tool where `weir top` can read them: one page of shared memory without a name (a memfd), found
 * through /proc/PID/fd.  It goes away with the process, whatever ends it, so nothing is ever left behind or stale.
 *
 * A tool makes the page when it is asked: SIGUSR1 asks, and asks again for newer numbers.  Nobody asks a program that is no
 * such tool, or an older one: the executable carries a note (in the sense of elf(5)) with the version of the page, and the
 * signal must be caught.  With WEIR_STATS=1 in the environment a tool publishes unasked, several times a second.
 *
 * The page is written under a sequence number, odd while it is written; a reader that sees it odd or changed reads again.
 */
#ifndef TOOL_PUBLISH_H
#define TOOL_PUBLISH_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PUBLISH_NAME "weir-stats"       /* of the memfd */
#define PUBLISH_VERSION 1u              /* of the page, and of the note */
#define PUBLISH_MAGIC 0x317370752D726977u
#define PUBLISH_NOTE_NAME "weir"
#define PUBLISH_NOTE_TYPE 0x746F6F6Cu

#define PUBLISH_HAS_RING 1u             /* flags */
#define PUBLISH_HAS_DRIFT 2u
#define PUBLISH_HAS_POSITION 4u

/* What is published.  Since the tool began, times in CLOCK_MONOTONIC. */
struct publish_counters {
	char tool[16];
	uint32_t flags;
	int32_t pid;
	int64_t start_ns, now_ns, cpu_ns;
	int64_t position_us;     /* media time */
	int64_t drift_ppb;
	uint64_t packets_in, packets_out, frames_in, frames_out, gaps, lost_frames, dropped_frames, damaged_bytes;
	uint64_t allocs, alloc_bytes, voluntary_switches, involuntary_switches;
	uint64_t ticks, late, tick_max_ns, tick_p999_ns;
	uint64_t ring_pct, ring_low_pct, ring_high_pct;
};

struct publish_page {
	uint64_t magic;
	uint32_t version;
	atomic_uint seq;
	/* a struct publish_counters, word by word, so that reading while it is written is defined */
	_Atomic(uint64_t) words[sizeof(struct publish_counters) / sizeof(uint64_t)];
};
_Static_assert(sizeof(struct publish_counters) % sizeof(uint64_t) == 0, "counters are copied as words");

/* Called when the page is asked for: in a signal handler on the main thread.  Only what signal-safety(7) allows. */
typedef void publish_asked(void *user);

struct publish {
	struct publish_page *page; /* NULL: not made yet */
	int fd;                    /* of the page: through it the page is found */
	publish_asked *asked;
	void *user;
	bool begun;
};

/* Answer SIGUSR1 from now on.  One at a time in a process.  Role: control. */
void publish_begin(struct publish *p, publish_asked *asked, void *user);
/* Make the page, if it is not there.  Returns: it is there.  Safe in a signal handler. */
bool publish_make(struct publish *p);
/* New numbers on the page.  One thread at a time.  Safe in a signal handler. */
void publish_write(struct publish *p, const struct publish_counters *c);
/* SIGUSR1 does nothing any more; the page goes.  Role: control, the main thread. */
void publish_end(struct publish *p);

/*
 * The numbers on a page that was read into memory, or is mapped: false if it is no such page, or is being written again
 * and again.
 */
bool publish_read(const struct publish_page *page, struct publish_counters *c);

#endif
