#include "net/jitterslots.h"

#include <string.h>

void jitterslots_give_back(struct jitter *j)
{
	if (j->taken_slot >= 0)
		j->spare[j->n_spare++] = (uint16_t)j->taken_slot;
	j->taken_slot = -1;
}

void jitterslots_drop_first(struct jitter *j)
{
	j->spare[j->n_spare++] = *jitterslots_place(j, 0);
	j->first = (j->first + 1) % j->o.n_slots;
	j->n_held--;
}

void jitterslots_drop_all(struct jitter *j)
{
	j->taken_slot = -1;
	j->first = j->n_held = 0;
	for (j->n_spare = 0; j->n_spare < j->o.n_slots; j->n_spare++)
		j->spare[j->n_spare] = (uint16_t)(j->o.n_slots - 1 - j->n_spare);
}

uint32_t jitterslots_before(const struct jitter *j, int64_t pos)
{
	uint32_t i = j->n_held;

	while (i && jitterslots_held(j, i - 1)->pos >= pos)
		i--;
	return i;
}

bool jitterslots_has(const struct jitter *j, int64_t pos)
{
	uint32_t at = jitterslots_before(j, pos);

	return at < j->n_held && jitterslots_held(j, at)->pos == pos;
}

enum jitter_put jitterslots_store(struct jitter *j, const struct jitter_packet *p)
{
	uint32_t at = jitterslots_before(j, p->pos);

	if (at < j->n_held && jitterslots_held(j, at)->pos == p->pos) {
		j->counts.duplicate += !(p->flags & JITTER_COPY);
		return JITTER_DUPLICATE;
	}
	if (!j->n_spare) {
		j->counts.full++;
		return JITTER_FULL;
	}
	if (at < j->n_held && !(p->flags & JITTER_COPY))
		j->counts.reordered++;
	uint16_t slot = j->spare[--j->n_spare];
	j->n_held++;
	for (uint32_t i = j->n_held - 1; i > at; i--)
		*jitterslots_place(j, i) = *jitterslots_place(j, i - 1);
	*jitterslots_place(j, at) = slot;
	j->slots[slot] = (struct jitter_slot){ .pos = p->pos, .arrival_ns = p->arrival_ns, .dur_frames = p->dur_frames, .n_bytes = p->n_bytes,
		.flags = p->flags, .tag = p->tag, .note = p->note, .silent_pos = p->flags & JITTER_FOLLOWS ? j->newest_pos : p->pos };
	memcpy(jitterslots_bytes(j, slot), p->bytes, p->n_bytes);
	if (p->pos + p->dur_frames > j->newest_pos)
		j->newest_pos = p->pos + p->dur_frames;
	return JITTER_STORED;
}
