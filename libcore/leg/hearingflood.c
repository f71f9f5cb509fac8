#include "leg/hearingflood.h"

void hearingflood_tell(struct hearing *h)
{
	struct dgramfilter_known *k = &h->listener.known;

	h->sources_changed = false;
	dgramfilter_known_begin(k);
	for (unsigned i = 0; i < h->receiver.n_flows; i++) {
		const struct netflow *f = &h->receiver.flows[i];

		if (!f->used || f->is_joint)
			continue;
		dgramfilter_known_add(k, &f->from);
		dgramfilter_known_add(k, &f->rtcp_from);
	}
	dgramfilter_known_end(k);
}

void hearingflood_count(struct hearing *h)
{
	uint64_t n_filtered, n_overflowed;

	listener_unread(&h->listener, &n_filtered, &n_overflowed);
	stats_set(&h->n_filtered, n_filtered);
	stats_set(&h->n_overflowed, n_overflowed);
	if (h->listener.n_floods && !h->n_floods)
		tool_warn(h->tool, "network", "a flood of datagrams from strangers: most are thrown away unread (--stats: filtered)");
	h->n_floods = h->listener.n_floods;
}
