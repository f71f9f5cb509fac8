/*
 * How deep a jitter buffer must be: the loop that watches by how much the slowest packets fall behind the fastest, and sets the
 * depth that the budget of glitches allows.  The other loop is net/drift.h.  The buffer's own (net/jitter.h).
 */
#ifndef NET_JITTERDEPTH_H
#define NET_JITTERDEPTH_H

#include "net/jitter.h"

#define JITTERDEPTH_FAR_S 0.25 /* what the ratio would need minutes for */

/* How long the first packet of a timeline waits, in frames. */
WEIR_DEADLINE double jitterdepth_first(const struct jitter *j);

/* A packet came with so much slack, for both loops.  Returns: they want a new beginning with it. */
WEIR_DEADLINE bool jitterdepth_observe(struct jitter *j, const struct jitter_packet *p, double slack);

#endif
