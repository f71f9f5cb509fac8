#include "stage/takesync.h"

void takesync_find(struct takes *s)
{
	for (unsigned i = 0; i < s->n_takes; i++) {
		const struct track *t = &s->list[i]->track;
		int64_t pos = take_announced_pos(t);
		if (i == 0 || units_compare(pos, t->rate_num, t->rate_den, s->sync_n, s->sync_num, s->sync_den) < 0) {
			s->sync_n = pos;
			s->sync_num = t->rate_num;
			s->sync_den = t->rate_den;
		}
	}
}

/* n units of one rate in units of another, to nearest. */
static int64_t rescale(int64_t n, uint32_t from_num, uint32_t from_den, uint32_t to_num, uint32_t to_den)
{
	return from_num == to_num && from_den == to_den ? n :
		units_scale(n, (int64_t)to_num * from_den, (int64_t)from_num * to_den);
}

int64_t takesync_pos(const struct take *t)
{
	const struct takes *s = t->all;
	return rescale(s->sync_n, s->sync_num, s->sync_den, t->track.rate_num, t->track.rate_den);
}

/* Make all as long as the longest. */
enum err takesync_ends(struct takes *s)
{
	const struct take *last = NULL;
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n_takes; i++) {
		const struct take *t = s->list[i];
		if (t->is_open && (!last || units_compare(t->next_pos, t->track.rate_num, t->track.rate_den, last->next_pos,
			last->track.rate_num, last->track.rate_den) > 0))
			last = t;
	}
	for (unsigned i = 0; last && !e && i < s->n_takes; i++) {
		struct take *t = s->list[i];
		/* Of both the same length from the common beginning, so that rounding the beginning does not matter. */
		int64_t end_pos = takesync_pos(t) + rescale(last->next_pos - takesync_pos(last), last->track.rate_num, last->track.rate_den,
			t->track.rate_num, t->track.rate_den);
		if (t->is_open && end_pos > t->next_pos)
			e = take_silence(t, end_pos - t->next_pos);
	}
	return e;
}
