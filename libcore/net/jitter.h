/*
 * The buffer between a network and a clock: packets in by position and arrival, parts of the timeline out, in order,
 * each exactly once.  A pure function: time is an argument, nothing is allocated, no thread, no clock.
 *
 * Its parts, on the same struct: the packets held (net/jitterslots.h), where playing is (net/jitterline.h), what was late
 * (net/jitterlate.h), how deep it must be (net/jitterdepth.h).
 *
 * Two loops look at one measure, the slack of each packet at its arrival (frames between its position and the one that
 * is played at that moment).  The envelope of slack drives the ratio (net/drift.h).  How far the slowest packet of each
 * half second fell behind the envelope is kept in a histogram that forgets; the depth is the quantile of it that the
 * user's budget of glitches a minute allows.
 *
 * Played by a clock:  jitter_put() as packets come; for each block jitter_played() and jitter_take() until the block is full.
 * Passed on unplayed: jitter_put(), then jitter_pass() until it has nothing; it waits for what is missing as long as a
 * player of that depth could wait.
 */
#ifndef NET_JITTER_H
#define NET_JITTER_H

#include "base/err.h"
#include "base/role.h"
#include "net/drift.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JITTER_BIN_S 0.00025
#define JITTER_N_BINS 2048u            /* to 512 ms */
#define JITTER_MAX_SLOTS 16384u
#define JITTER_MAX_SLOT_BYTES 65536u
#define JITTER_GAP_S 2.0               /* a hole or a jump of more is a new beginning */
#define JITTER_COLLECT_S 0.6           /* after a cold start the depth is set by what came in this time */
#define JITTER_COLD_S 0.040            /* until then */
#define JITTER_N_MISSES 64u
#define JITTER_REPAIR_S 0.1            /* the depth grows for repairs that come so much later than the fastest packet, and no more */
#define JITTER_MARGIN_S 0.0003         /* added to what the histogram asks for */

enum jitter_flag {
	JITTER_COPY = 1,       /* a redundant or recovered copy: says nothing about the drift; if it is wanted, how long it took counts for the depth */
	JITTER_DISCONT = 2,    /* the sender says that this does not follow what was before */
	JITTER_FOLLOWS = 4,    /* by its number it follows the newest before: what lies between was never sent, and is silence */
};

/* What came. */
struct jitter_packet {
	int64_t pos;            /* its first frame, unwrapped by the caller */
	uint32_t dur_frames;    /* 1 … rate · 2 s */
	uint32_t n_bytes;       /* ≤ slot_bytes */
	const uint8_t *bytes;   /* copied */
	int64_t arrival_ns;
	uint16_t flags;         /* enum jitter_flag */
	uint16_t tag;           /* the caller's: payload type, how it was recovered… */
	uint32_t note;          /* the caller's */
};

enum jitter_put {
	JITTER_STORED,
	JITTER_DUPLICATE,      /* its place is taken */
	JITTER_LATE,           /* its place has been played */
	JITTER_FULL,           /* no slot; or further ahead than the slots reach */
	JITTER_STRAY,          /* far from everything: believed only if the next one agrees with it */
	JITTER_BEGUN,          /* stored, and it begins a new timeline: what was held has been dropped (counted) */
};

/* What is next. */
enum jitter_what {
	JITTER_PACKET,         /* play bytes, from skip_frames on */
	JITTER_MISSING,        /* frames of the timeline that did not come in time */
	JITTER_HOLD,           /* the depth grows: fill in so many frames that are not on the timeline */
	JITTER_WAIT,           /* nothing to play: before the first packet, in a pause, after the end */
};

struct jitter_part {
	enum jitter_what what;
	int64_t pos;
	uint32_t frames;        /* of it; a packet's without what is skipped.  WAIT: 0 */
	uint32_t skip_frames;   /* at the packet's beginning: played already, or jumped over */
	bool silent;            /* MISSING: the sender sent nothing here, so nothing is lost */
	bool jumped;            /* it does not follow what was taken before: fade over */
	const uint8_t *bytes;   /* until the next jitter_put() */
	uint32_t n_bytes;
	int64_t arrival_ns;
	uint16_t flags, tag;
	uint32_t note;
};

struct jitter_options {
	uint32_t rate_hz;
	uint32_t block_frames;  /* what the player takes at once */
	double glitches;        /* a minute that the user grants, 0.1…60 */
	int64_t latency_ns;     /* > 0: the depth, fixed; 0: found */
	uint32_t n_slots;       /* 4…JITTER_MAX_SLOTS */
	uint32_t slot_bytes;    /* 1…JITTER_MAX_SLOT_BYTES */
	bool pass;              /* jitter_pass() will be used: nothing is skipped, ever */
};

struct jitter_counts {
	uint64_t received;      /* put, whatever became of it */
	uint64_t late, duplicate, reordered, full, stray;
	uint64_t late_copies;   /* repairs that would have been of use earlier */
	uint64_t lost_frames;   /* missing when it was their turn: never came, or late */
	uint64_t glitches;      /* times that something was missing because it was late; what follows within 0.1 s is the same one */
	uint64_t held_frames;   /* filled in for growing depth */
	uint64_t skipped_frames; /* that were there, and jumped over for less depth */
	uint64_t restarts, jumps;
};

struct jitter_slot {
	int64_t pos, arrival_ns;
	uint32_t dur_frames, n_bytes;
	uint16_t flags, tag;
	uint32_t note;
	int64_t silent_pos;     /* nothing was sent from here to pos */
};

enum jitter_state { JITTER_IDLE, JITTER_COLLECTING, JITTER_RUNNING };

/* A stretch that was missing when it was its turn: what comes for it later is late, and not a duplicate. */
struct jitter_miss {
	int64_t pos, end_pos;
};

struct jitter {
	struct jitter_options o;
	struct jitter_counts counts;
	struct drift drift;
	enum jitter_state state;
	/* slots: order[] is a ring of their numbers by position, spare[] a stack */
	struct jitter_slot *slots;
	uint8_t *bytes;
	uint16_t *order, *spare;
	uint32_t first, n_held, n_spare;
	int taken_slot;             /* the one that was handed out last; −1 none */
	/* the timeline */
	int64_t next_pos;           /* first frame that has not been taken */
	int64_t play_pos, play_ns;  /* at play_ns, play_pos + play_frac is played */
	double play_frac;
	uint32_t hold_frames;       /* to be filled in */
	bool place;                 /* a new beginning: the next jitter_played() says how much is filled in before it */
	bool jump;                  /* the next part does not follow what was taken */
	bool untouched;             /* nothing of this beginning has been taken: a packet before the first may still come */
	bool ended;
	int64_t begin_ns;           /* first packet of this beginning */
	int64_t last_arrival_ns, last_late_ns, glitch_ns;
	uint32_t late_run;          /* packets in a row that were late, since late_since_ns */
	int64_t late_since_ns;
	int64_t newest_pos;         /* end of what came furthest ahead */
	uint32_t usual_frames;      /* a packet's duration */
	int64_t stray_pos, stray_ns;
	bool has_stray;
	uint32_t far_windows;       /* in a row with an envelope that only a jump can bring back */
	struct jitter_miss misses[JITTER_N_MISSES];
	uint32_t n_misses;          /* ever; the newest are kept */
	/* the target */
	double reference_frames;    /* the envelope as the histogram sees it */
	double worst_frames;        /* of this half second */
	double collect_frames;      /* the envelope of the collecting */
	int64_t half_begin_ns;
	bool in_half;
	uint64_t n_halves;
	float bins[JITTER_N_BINS];  /* sum 1 */
	double target_frames;
};

/* Memory for jitter_init(), in bytes; 0 if the options are outside their limits. */
size_t jitter_bytes(const struct jitter_options *o);

/* memory: jitter_bytes(o) bytes aligned to 8; the caller's.  Returns: ERR_OK, ERR_ARG.  Role: control. */
enum err jitter_init(struct jitter *j, const struct jitter_options *o, void *memory, struct err_why *why) WEIR_MUSTUSE;

/* A packet came.  Role: any, one thread for all of these. */
WEIR_DEADLINE enum jitter_put jitter_put(struct jitter *j, const struct jitter_packet *p);

/*
 * The player's clock: at device_ns it was about to play what lies held_frames before everything taken (a decoder's rest,
 * a resampler's phase: fractions count).  Before each block's jitter_take().
 */
WEIR_DEADLINE void jitter_played(struct jitter *j, int64_t device_ns, double held_frames);

/* The next part, at most max_frames of a MISSING or HOLD one. */
WEIR_DEADLINE void jitter_take(struct jitter *j, uint32_t max_frames, struct jitter_part *part);

/* What can be passed on at now_ns: WAIT if nothing is, or what is missing can still come. */
WEIR_DEADLINE void jitter_pass(struct jitter *j, int64_t now_ns, struct jitter_part *part);

/* When jitter_pass() would give up what is missing; INT64_MAX if nothing is waited for. */
WEIR_DEADLINE int64_t jitter_due_ns(const struct jitter *j);

/* Is a packet held that begins at pos?  For a decoder that finds something about the one before in it.  NULL if not. */
WEIR_DEADLINE const struct jitter_slot *jitter_peek(const struct jitter *j, int64_t pos, const uint8_t **bytes);

/* Frames of the sender's clock to play for one of ours. */
WEIR_DEADLINE double jitter_ratio(const struct jitter *j);

/* How long a packet waits that took no longer than the fastest, by the set point. */
WEIR_DEADLINE double jitter_depth_s(const struct jitter *j);

/* Another sender, another timeline: drop what is held; the next packet begins.  The histogram is kept unless cold. */
WEIR_DEADLINE void jitter_restart(struct jitter *j, bool cold);

/* Nothing more will come: play to the end, then WAIT. */
WEIR_DEADLINE void jitter_end(struct jitter *j);

#endif
