/*
 * A track that is recorded on level: what came of it last is held back, and goes into its take (takes.h) when a gate says so.
 *
 * PCM goes to the frame.  Opus goes in whole packets, cut by PACKET_TRIM, and a take of it begins with those that a decoder needs before.
 */
#ifndef STAGE_LEVELTRACK_H
#define STAGE_LEVELTRACK_H

#include "dsp/convert.h"
#include "media/opusdec.h"
#include "stage/holdback.h"
#include "stage/takes.h"

#define LEVELTRACK_LONGEST_OPUS_FRAMES 5760u
#define LEVELTRACK_MAX_HELD_BYTES (256u << 20)

struct leveltrack {
	struct track format;         /* as announced last */
	struct takes *takes;         /* not owned */
	unsigned member;             /* of its group's gate */
	struct holdback held;
	unsigned n_sent;             /* of those, the oldest ones: in the open take already; always 0 of PCM, which goes when it is sent */
	struct convert convert;
	float *frames;               /* one portion of PCM, to be heard; NULL for Opus */
	struct opusdec *dec;         /* of Opus */
	bool started;
	int64_t head_pos;            /* where the next frame should be */
	int64_t clock_pos, clock_utc_ns; /* the newest frame of which the wall-clock time was told; UNITS_UNKNOWN_NS none */
};

/*
 * Memory for what t->format says: n_frames that nothing is decided about or that belong to a pre-roll, and what a decoder needs
 * before them.  Returns: ERR_OK; ERR_LIMIT: more than LEVELTRACK_MAX_HELD_BYTES; ERR_FORMAT, ERR_NOMEM; with *why.
 */
enum err leveltrack_take_memory(struct leveltrack *t, uint64_t n_frames, struct err_why *why) WEIR_MUSTUSE;
/* All memory goes, but for the format's. */
void leveltrack_drop_memory(struct leveltrack *t);

/* How much PCM is heard at once. */
uint32_t leveltrack_portion_frames(const struct leveltrack *t);

/*
 * Hold back a copy of p.  *n_lost_frames becomes those that had to make room and are in no take.  Returns: ERR_OK; ERR_LIMIT with *why:
 * it is too long.
 */
enum err leveltrack_keep(struct leveltrack *t, const struct packet *p, uint64_t *n_lost_frames, struct err_why *why) WEIR_MUSTUSE;

/* A take begins at pos, and what lies before it goes.  Returns: what takes_begin_at() says, with *why.  Role: io, blocks. */
enum err leveltrack_begin(struct leveltrack *t, int64_t pos, struct err_why *why) WEIR_MUSTUSE;

/*
 * Into the open take: what lies before `to`.  With cuts, a packet that holds `to` gives its first part; else only whole packets of
 * Opus go, because nothing is decided about the rest of one.  Returns: what takes_packet() says, with *why.  Role: io, blocks.
 */
enum err leveltrack_deliver(struct leveltrack *t, int64_t to, bool cuts, struct err_why *why) WEIR_MUSTUSE;

/* What lies before pos goes into the take, which ends there.  Returns: what takes_end_at() says, too. */
enum err leveltrack_end(struct leveltrack *t, int64_t pos, struct err_why *why) WEIR_MUSTUSE;

/* What no take can need any more, that begins at keep_pos or later, goes; of one that is open, what is in it. */
void leveltrack_let_go(struct leveltrack *t, int64_t keep_pos, bool is_open);

#endif
