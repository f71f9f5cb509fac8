/*
 * What came too late for a jitter buffer, or was had again.  The buffer's own (net/jitter.h).
 */
#ifndef NET_JITTERLATE_H
#define NET_JITTERLATE_H

#include "net/jitter.h"

/* So many frames were missing when it was their turn. */
WEIR_DEADLINE void jitterlate_missed(struct jitter *j, int64_t pos, uint32_t frames);
/* Were some of these? */
WEIR_DEADLINE bool jitterlate_was_missing(const struct jitter *j, int64_t pos, uint32_t frames);

/* A packet came for what was missing. */
WEIR_DEADLINE void jitterlate_came(struct jitter *j, int64_t arrival_ns);

/* A repair of what is missing: the network's delay is as long as it took, if that is not too long to wait for. */
WEIR_DEADLINE void jitterlate_repaired(struct jitter *j, const struct jitter_packet *p, double slack);

#endif
