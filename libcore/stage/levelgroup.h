/*
 * Tracks that are recorded on level by one gate (levelgate.h), one or several: what comes of them is heard, held back, and goes into their
 * takes (leveltrack.h) as the gate decides.  The takes of a group of several begin and end together.
 *
 *   levelgroup_new(), levelgroup_join(); levelgroup_data(), levelgroup_gap(), levelgroup_end_track(); levelgroup_finish().
 */
#ifndef STAGE_LEVELGROUP_H
#define STAGE_LEVELGROUP_H

#include "stage/levelgate.h"
#include "stage/leveltrack.h"

struct levelgroup {
	struct levelgate gate;
	bool waits;                  /* its tracks need not come at once */
	struct leveltrack **tracks;  /* by member; not owned */
	unsigned n_tracks;
	uint64_t *late_frames;       /* the caller's: came when what they belong to had been decided */
	struct err_why why;
};

/* A group without tracks; waits: there will be several.  Returns: ERR_OK, ERR_NOMEM. */
enum err levelgroup_new(struct levelgroup **g, const struct levelgate_options *o, bool waits, uint64_t *late_frames) WEIR_MUSTUSE;
/* NULL is nothing. */
void levelgroup_free(struct levelgroup *g);

/* One more track, whose format is known, before anything was heard of it.  Allocates.  Returns: ERR_OK, ERR_NOMEM. */
enum err levelgroup_join(struct levelgroup *g, struct leveltrack *t) WEIR_MUSTUSE;
bool levelgroup_is_shared(const struct levelgroup *g);
/* Memory for t in this group: see leveltrack_take_memory(). */
enum err levelgroup_take_memory(struct levelgroup *g, struct leveltrack *t) WEIR_MUSTUSE;

/*
 * The coding of a track of the group becomes `now`: its take ends, and its memory goes.  Returns: ERR_OK; ERR_FORMAT where a shared
 * gate cannot go on with that; what failed; with g->why.  Role: io, blocks.
 */
enum err levelgroup_renew(struct levelgroup *g, struct leveltrack *t, const struct track *now) WEIR_MUSTUSE;

/* A packet of a track of the group.  The payload is copied.  Returns: ERR_OK; what failed, with g->why.  Role: io, blocks. */
enum err levelgroup_data(struct levelgroup *g, struct leveltrack *t, const struct packet *p) WEIR_MUSTUSE;
enum err levelgroup_gap(struct levelgroup *g, struct leveltrack *t, const struct packet *p) WEIR_MUSTUSE;
/* No more of t will come, unless it is heard again. */
enum err levelgroup_end_track(struct levelgroup *g, struct leveltrack *t) WEIR_MUSTUSE;

/* All has come: decide about the rest, and end the takes that are open where the longest track ends; or leave them open. */
enum err levelgroup_finish(struct levelgroup *g, bool complete) WEIR_MUSTUSE;

#endif
