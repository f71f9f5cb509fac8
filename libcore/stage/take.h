/*
 * One take: a track into a row of pieces, each a file.  It names them, opens and closes them, cuts them at exact frames and writes what it
 * is given where the last frame ended.  What the packets of its track mean is takein.h's business, what the takes have in common takes.h's.
 */
#ifndef STAGE_TAKE_H
#define STAGE_TAKE_H

#include "stage/preroll.h"
#include "stage/takes.h"

#define TAKE_NO_CUT INT64_MAX

/* Where a take lies, as tags: its first frame on the timeline of its track, and the time of that. */
struct place_tags {
	char position[48], time[64];
	const char *list[ARRAY_LEN(((struct opt_list *)0)->value) + 3];
};

struct take {
	struct takes *all;
	struct track track;           /* as announced last; first_pos of what is written */
	struct sink sink;
	bool is_open;
	bool started;                 /* something of it came */
	bool changed;                 /* the format is a new one: the next packet begins a piece */
	bool relinks;                 /* Opus announced anew: the next packet may begin a run of its own, */
	int64_t link_pos;             /* whose first frame lies here */
	bool unsettled;
	unsigned n_pieces;
	int64_t next_pos;             /* where the next frame should lie, on the track's timeline */
	int64_t cut_pos;              /* the piece ends here, or TAKE_NO_CUT */
	int64_t told_pos;             /* losses up to here were counted */
	int64_t begin_pos;            /* the first frame to be written, when it is known before the first packet */
	bool has_begin;
	int64_t clock_pos, clock_utc_ns; /* the newest position whose wall-clock is known; utc unknown: none yet */
	int64_t boundary_ns;          /* split_on_clock: the next cut */
	struct preroll preroll;       /* for Opus that is cut */
	struct place_tags place;      /* of the piece, with on_level */
};

static inline uint32_t take_rate(const struct take *t)
{
	return t->track.rate_num;
}

/* 1970 itself is what a field says that nobody filled in. */
static inline bool take_is_time(int64_t utc_ns)
{
	return utc_ns > 0;
}

/* Where a track that is announced now would begin: where it stands, if it began long ago. */
static inline int64_t take_announced_pos(const struct track *t)
{
	return t->next_pos > t->first_pos ? t->next_pos : t->first_pos;
}

void take_free(struct take *t);

/* What failed in t's sink is what failed in all.  Returns: e. */
enum err take_keep_why(struct take *t, enum err e) WEIR_MUSTUSE;

/* "0:02.000", "1:00:00.000": of n frames of t. */
void take_put_time(char out[static 40], uint64_t n_frames, const struct track *t);

/* The frame at pos was captured at utc_ns, if that is a time: for names, and for cuts by the clock. */
void take_follow_clock(struct take *t, int64_t pos, int64_t utc_ns);

/*
 * The first piece's name must be free, and the container must hold the track; utc_ns: of its beginning, or no time.
 * Returns: ERR_OK; ERR_FORMAT, ERR_SYS …, with the reason in all->why, as everything below.
 */
enum err take_check(struct take *t, int64_t utc_ns) WEIR_MUSTUSE;

/* Room for what a decoder needs before a cut, where Opus is cut.  Returns: ERR_OK; ERR_ARG: the pieces are too short for that; ERR_NOMEM. */
enum err take_keep_preroll(struct take *t) WEIR_MUSTUSE;

/* A piece whose frame 0 is at pos.  Role: io, blocks: as all below. */
enum err take_open(struct take *t, int64_t pos) WEIR_MUSTUSE;
/* It gets its name if it is complete.  Nothing if none is open. */
enum err take_close(struct take *t, bool complete) WEIR_MUSTUSE;
/* The piece ends at cut_pos, and the next one begins there. */
enum err take_cut(struct take *t) WEIR_MUSTUSE;

/* From next_pos on, through as many pieces as it takes: silence, or the frames of a packet (PCM). */
enum err take_silence(struct take *t, int64_t n_frames) WEIR_MUSTUSE;
enum err take_pcm(struct take *t, struct packet p) WEIR_MUSTUSE;
/* A packet of Opus, at its own position. */
enum err take_opus(struct take *t, const struct packet *p) WEIR_MUSTUSE;

#endif
