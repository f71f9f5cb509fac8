#include "stage/retimemarks.h"

#include "wire/packet.h"

void retimemarks_add(struct retimemarks *m, int64_t from_pos, int64_t to_pos, uint16_t flags)
{
	struct retimemarks_mark *last = m->n ? &m->marks[m->n - 1] : NULL;

	flags &= PACKET_CONCEALED | PACKET_RECOVERED;
	if (!flags)
		return;
	if (last && (m->n == RETIMEMARKS_MAX || (last->flags == flags && from_pos <= last->to_pos))) {
		last->to_pos = to_pos;
		last->flags |= flags;
		return;
	}
	m->marks[m->n++] = (struct retimemarks_mark){ .from_pos = from_pos, .to_pos = to_pos, .flags = flags };
}

uint16_t retimemarks_take(struct retimemarks *m, int64_t pos, int64_t end_pos)
{
	uint16_t flags = 0;
	unsigned n_kept = 0;

	for (unsigned i = 0; i < m->n; i++) {
		if (m->marks[i].from_pos < end_pos && m->marks[i].to_pos > pos)
			flags |= m->marks[i].flags;
		if (m->marks[i].to_pos > end_pos)
			m->marks[n_kept++] = m->marks[i];
	}
	m->n = n_kept;
	return flags;
}
