/*
 * Where a jitter buffer's playing is: the line from our time to the sender's positions.  The buffer's own (net/jitter.h).
 */
#ifndef NET_JITTERLINE_H
#define NET_JITTERLINE_H

#include "net/jitter.h"

/* Frames of a time. */
WEIR_DEADLINE double jitterline_frames(const struct jitter *j, double seconds);
WEIR_DEADLINE double jitterline_ns_frames(const struct jitter *j, int64_t ns);

/* What is played at t_ns, relative to pos: how far ahead of it pos is, in frames. */
WEIR_DEADLINE double jitterline_ahead(const struct jitter *j, int64_t pos, int64_t t_ns);

/* At t_ns, pos + frac is played. */
WEIR_DEADLINE void jitterline_play_at(struct jitter *j, int64_t pos, double frac, int64_t t_ns);

/* Every slack from now on is larger by as much: playing stands still for so long (negative: it leaps). */
WEIR_DEADLINE void jitterline_shift(struct jitter *j, double by_frames);

#endif
