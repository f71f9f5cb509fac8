#include "stage/retimeout.h"

#include "base/units.h"
#include "tool/stats.h"

#include <string.h>

void retimeout_begin(struct retimeout *o, int64_t first_pos, bool discont)
{
	o->drop_frames = 0;
	if (discont)
		o->discont = true;
	else if (o->has_pos && first_pos < o->pos)
		o->drop_frames = (uint64_t)(o->pos - first_pos);
	if (discont || !o->has_pos || first_pos > o->pos)
		o->pos = first_pos;
	o->has_pos = true;
}

/* What the writer has reserved is a packet of n_frames. */
static enum err commit(struct retimeout *o, size_t n_frames)
{
	struct packet p = packet_data(o->id, o->pos, (uint32_t)n_frames, (uint32_t)(n_frames * o->frame_bytes));

	o->pos += (int64_t)n_frames;
	p.flags |= retimemarks_take(&o->marks, p.pos, o->pos);
	if (o->discont)
		p.flags |= PACKET_DISCONT;
	o->discont = false;
	if (o->utc_ns != UNITS_UNKNOWN_NS)
		p.utc_ns = o->utc_ns + units_to_ns(p.pos - o->utc_pos, o->rate_hz, 1);
	return writer_commit(o->writer, &p);
}

/* How many of n_frames are not wanted: their place is taken. */
static size_t take_drop(struct retimeout *o, size_t n_frames)
{
	size_t n = o->drop_frames < n_frames ? (size_t)o->drop_frames : n_frames;

	o->drop_frames -= n;
	return n;
}

static void convert(struct retimeout *o, void *to, const void *from, size_t n_frames)
{
	stats_add(o->clipped_samples, convert_run(&o->convert, to, from, n_frames * o->channels));
}

uint8_t *retimeout_reserve(struct retimeout *o, uint8_t **room)
{
	uint8_t *to = writer_reserve(o->writer, o->packet_frames * o->frame_bytes);

	*room = o->converts ? o->flat : to;
	return to;
}

enum err retimeout_flat(struct retimeout *o, uint8_t *to, uint8_t *room, size_t n_frames)
{
	size_t n_dropped = take_drop(o, n_frames);

	room += n_dropped * o->in_frame_bytes;
	n_frames -= n_dropped;
	if (!n_frames)
		return ERR_OK;
	if (o->converts)
		convert(o, to, room, n_frames);
	else if (to != room)
		memmove(to, room, n_frames * o->in_frame_bytes);
	return commit(o, n_frames);
}

enum err retimeout_planes(struct retimeout *o, const struct retimeplanes *p, void *const *planes, size_t n_frames)
{
	enum err e = ERR_OK;

	for (size_t at = take_drop(o, n_frames); at < n_frames && !e;) {
		size_t n = n_frames - at < o->packet_frames ? n_frames - at : o->packet_frames;
		uint8_t *to = writer_reserve(o->writer, n * o->frame_bytes);
		if (!to)
			return o->writer->failed;
		retimeplanes_join(p, o->converts ? o->flat : to, planes, at, n);
		e = retimeout_flat(o, to, o->converts ? o->flat : to, n);
		at += n;
	}
	return e;
}

enum err retimeout_frames(struct retimeout *o, const uint8_t *from, size_t n_frames)
{
	enum err e;

	while (n_frames) {
		size_t n = n_frames < o->packet_frames ? n_frames : o->packet_frames, n_dropped = take_drop(o, n);
		uint8_t *to = writer_reserve(o->writer, n * o->frame_bytes);

		if (!to)
			return o->writer->failed;
		n -= n_dropped;
		n_frames -= n_dropped;
		from = from ? from + n_dropped * o->in_frame_bytes : NULL;
		if (!n)
			continue;
		if (from)
			convert(o, to, from, n);
		else
			memset(to, 0, n * o->frame_bytes);
		if ((e = commit(o, n)))
			return e;
		n_frames -= n;
		from = from ? from + n * o->in_frame_bytes : NULL;
	}
	return ERR_OK;
}

enum err retimeout_gap(struct retimeout *o, int64_t from_pos, int64_t to_pos, const struct packet_gap *gap)
{
	bool behind = !o->has_pos || o->pos <= from_pos;
	enum err e;

	if (to_pos <= from_pos && behind)
		to_pos = from_pos + 1;
	if (!behind)
		from_pos = o->pos;
	while (from_pos < to_pos) {
		uint32_t n = to_pos - from_pos < (int64_t)UINT32_MAX ? (uint32_t)(to_pos - from_pos) : UINT32_MAX;
		if ((e = writer_gap(o->writer, o->id, from_pos, n, gap)))
			return e;
		from_pos += n;
	}
	o->pos = from_pos;
	o->has_pos = true;
	return ERR_OK;
}
