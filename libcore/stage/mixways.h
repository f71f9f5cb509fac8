/*
 * The tracks' ways into a mix: each by its place on the desk (desk.h), which may be worked meanwhile (control.h), and the shape of
 * the mix (mixshape.h) onto a bus (mix/bus.h).
 *
 *   mixways_open(); for each block mixways_join(), for tracks that are new, and mixways_add().
 */
#ifndef STAGE_MIXWAYS_H
#define STAGE_MIXWAYS_H

#include "mix/bus.h"
#include "mix/minus.h"
#include "stage/control.h"
#include "stage/mixshape.h"

#include <stdatomic.h>

#define MIXWAYS_RAMP_MS 10u   /* of a gain that changes */

struct mixways_options {
	unsigned channels;           /* of the mix; 0: the widest track's */
	const char *matrix_path, *control_path; /* or NULL */
	const char *tool;            /* in front of what the desk says */
	const struct opt_list *gains, *pans; /* or NULL */
	atomic_uint_fast64_t *nonfinite_samples; /* the caller's; counted as stats_add() does */
};

struct mixways_way {
	struct bus_track bus;
	double *coef;
	size_t coef_room;
	unsigned matrix_column;      /* its first column of the matrix file */
};

/* A block that is being added up. */
struct mixways_block {
	double *sum;                 /* zeros at first; NULL: into `parts` */
	struct minus *parts;         /* mix-minus: which has begun the block */
	int64_t pos;
	size_t n_frames;
	unsigned bits;               /* that its samples need, at least as many as the caller says (bus_track_bits()) */
};

struct mixways {
	struct mixways_options options;
	struct mixin *in;            /* not owned */
	struct desk desk;
	struct control control;
	struct mixshape shape;
	struct mixways_way **ways;   /* by track */
	unsigned n_ways, ways_room;
	unsigned changes_seen;
	struct mixways_block *block; /* at hand */
	size_t covered_frames;       /* of it, by the track at hand */
	struct err_why why;
};

/* For the tracks that `in`, which is open, has met.  *w must be zero, which is safe to release.  Returns: ERR_OK; what failed, with w->why. */
enum err mixways_open(struct mixways *w, struct mixin *in, const struct mixways_options *o) WEIR_MUSTUSE;
void mixways_release(struct mixways *w);

/* Every track that the inputs have met since gets a place on the desk and a way.  Returns: as mixways_open(). */
enum err mixways_join(struct mixways *w) WEIR_MUSTUSE;

/* All tracks onto block b.  Returns: as mixways_open().  Role: io; reads files. */
enum err mixways_add(struct mixways *w, struct mixways_block *b) WEIR_MUSTUSE;

#endif
