/*
 * A livesource whose device went away and is waited for.  Its line goes on by the clock: the track has a gap that grows as
 * time goes by, a little behind it, and ends exactly where the first frame belongs that comes afterwards.
 *
 * All of it is for the thread that reads.
 */
#ifndef MEDIA_LIVEAWAY_H
#define MEDIA_LIVEAWAY_H

#include "media/livesource.h"

/* It is gone, and everything that came before was read.  Returns: ERR_OK: it is waited for; an error: it cannot be. */
enum err liveaway_begin(struct source *s, struct livesource *l) WEIR_MUSTUSE;
/* Has it come back?  l->away tells from then on. */
bool liveaway_is_over(struct source *s, struct livesource *l);
/* Wait a little.  Returns: b holds a piece of the gap. */
bool liveaway_wait(struct source *s, struct livesource *l, struct source_block *b);
/* The first frame since was captured at mono_ns.  Returns: b holds the rest of the gap. */
bool liveaway_resume(struct source *s, struct livesource *l, int64_t mono_ns, struct source_block *b);

#endif
