/*
 * The shape of a mix: how many channels it has, what they are, and with which gains the channels of a track go into them.
 *
 * Without a matrix file the channels are those asked for, or the widest track's; a track goes into them by its layout
 * (mix/layouts.h) and its place.  A matrix file has a row for each channel of the mix, and either a column for each channel of
 * all tracks together, or for each channel of one track, for all of them alike.
 */
#ifndef STAGE_MIXSHAPE_H
#define STAGE_MIXSHAPE_H

#include "stage/desk.h"
#include "stage/matrixfile.h"
#include "stage/mixin.h"

struct mixshape {
	unsigned channels;           /* 0: nobody can tell, there is no track */
	uint64_t wave_mask;          /* 0: they have no layout */
	struct matrixfile matrix;
	bool matrix_is_whole;        /* its columns are all channels of all tracks; else each track's own */
};

/*
 * The shape for the tracks that `in` has met, with their places on the desk.  channels: 0 none were asked for; matrix_path: or NULL.
 * *s must be zero, which is safe to release.  Returns: ERR_OK; ERR_FORMAT, ERR_ARG for a matrix that does not fit, and what
 * matrixfile_read() says, with *why.
 */
enum err mixshape_find(struct mixshape *s, const struct mixin *in, const struct desk *d, unsigned channels, const char *matrix_path,
	struct err_why *why) WEIR_MUSTUSE;
void mixshape_release(struct mixshape *s);

/* Can every track be panned that the desk has panned?  Returns: ERR_OK; ERR_ARG with *why. */
enum err mixshape_check_pans(const struct mixshape *s, const struct mixin *in, const struct desk *d, struct err_why *why) WEIR_MUSTUSE;

/*
 * The gains of track t, at its place: s->channels rows of t->channels.  matrix_column: channels of the tracks before it.
 * Returns: ERR_OK; ERR_FORMAT, ERR_ARG where it cannot go into this mix, with *why.
 */
enum err mixshape_fill(const struct mixshape *s, double *coef, const struct mixin_track *t, unsigned matrix_column, const struct desk_track *place,
	struct err_why *why) WEIR_MUSTUSE;

#endif
