/*
 * Recording on level: tracks go through a gate (levelgroup, levelgate) on their way into files (takes), and are held back for the
 * pre-roll (leveltrack).
 *
 * Each track is gated by itself; with `sync` any track opens the gate of all, and their files begin and end together.  Opus is decoded
 * to be heard, and its packets go into the files as they came.
 */
#ifndef STAGE_LEVELTAKES_H
#define STAGE_LEVELTAKES_H

#include "stage/levelgate.h"
#include "stage/takes.h"

#define LEVELTAKES_MAX_PREROLL_S 60
#define LEVELTAKES_MAX_HOLD_S 86400

struct leveltakes_track;
struct levelgroup;

struct leveltakes {
	struct takes *takes;         /* not owned */
	struct levelgate_options options;
	bool sync;
	struct leveltakes_track **tracks; /* in order of appearance */
	unsigned n_tracks;
	uint16_t *index;             /* by track id: 0 none, else place + 1 */
	struct levelgroup *all;      /* with sync: the group of all */
	uint64_t late_frames;        /* came when what they belong to had been decided */
	struct err_why why;
};

/* What the options say. */
struct leveltakes_choice {
	double start_db;             /* NAN: no recording on level */
	const char *stop_below;      /* "-50dB:3s", or NULL */
	struct opt_time preroll;
};

/* Returns: ERR_OK; ERR_AGAIN: it was not asked for; ERR_ARG with *why. */
enum err leveltakes_choose(struct levelgate_options *o, const struct leveltakes_choice *c, struct err_why *why) WEIR_MUSTUSE;

/* On the way into s, which was opened with on_level.  Returns: ERR_OK, ERR_NOMEM. */
enum err leveltakes_open(struct leveltakes *l, struct takes *s, const struct levelgate_options *o, bool sync, struct err_why *why) WEIR_MUSTUSE;
void leveltakes_release(struct leveltakes *l);

/*
 * A track is announced, or anew.  Takes all memory for it.  Returns: ERR_OK; ERR_LIMIT where its pre-roll needs more than
 * LEVELTRACK_MAX_HELD_BYTES; what takes_announce() says.
 */
enum err leveltakes_announce(struct leveltakes *l, const struct track *t) WEIR_MUSTUSE;

/* DATA, GAP or END of an announced track.  The payload is copied.  Role: io, blocks. */
enum err leveltakes_packet(struct leveltakes *l, const struct packet *p) WEIR_MUSTUSE;

/* All has come: decide about the rest, and end the takes that are open where their tracks end; those that are not complete stay open. */
enum err leveltakes_finish(struct leveltakes *l, bool complete) WEIR_MUSTUSE;

/* That no file was made, and how loud it was; "" if there is one.  Returns: out. */
const char *leveltakes_describe_nothing(const struct leveltakes *l, char out[static 128]);

#endif
