/*
 * The packets that a jitter buffer holds, in the order of their positions.  The buffer's own (net/jitter.h).
 */
#ifndef NET_JITTERSLOTS_H
#define NET_JITTERSLOTS_H

#include "net/jitter.h"

static inline size_t jitterslots_align(size_t n)
{
	return (n + 7) / 8 * 8;
}

static inline uint16_t *jitterslots_place(const struct jitter *j, uint32_t i)
{
	return &j->order[(j->first + i) % j->o.n_slots];
}

static inline struct jitter_slot *jitterslots_held(const struct jitter *j, uint32_t i)
{
	return &j->slots[*jitterslots_place(j, i)];
}

static inline uint8_t *jitterslots_bytes(const struct jitter *j, unsigned slot)
{
	return j->bytes + slot * jitterslots_align(j->o.slot_bytes);
}

/* The slot that was handed out last is free again. */
WEIR_DEADLINE void jitterslots_give_back(struct jitter *j);
WEIR_DEADLINE void jitterslots_drop_first(struct jitter *j);
WEIR_DEADLINE void jitterslots_drop_all(struct jitter *j);

/* How many of the held lie before pos: nearly always all, so from the end. */
WEIR_DEADLINE uint32_t jitterslots_before(const struct jitter *j, int64_t pos);
/* Is one held that begins at pos? */
WEIR_DEADLINE bool jitterslots_has(const struct jitter *j, int64_t pos);

/* Copy the packet to its place.  Returns: STORED, DUPLICATE, FULL; they are counted. */
WEIR_DEADLINE enum jitter_put jitterslots_store(struct jitter *j, const struct jitter_packet *p);

#endif
