/* --sync: where all takes begin together, and that they end together, whatever their rates are. */
#ifndef STAGE_TAKESYNC_H
#define STAGE_TAKESYNC_H

#include "stage/take.h"

/* All begin where the earliest of them does. */
void takesync_find(struct takes *s);

/* That place, on the timeline of t, to the nearest frame. */
int64_t takesync_pos(const struct take *t);

/* Make all as long as the longest.  Returns: as take_silence().  Role: io, blocks. */
enum err takesync_ends(struct takes *s) WEIR_MUSTUSE;

#endif
