/* The callback's side of a livesource. */
#include "media/livesource.h"

#include <string.h>

static uint32_t record_bytes(const struct livesource *l, uint32_t n_frames)
{
	uint64_t n = sizeof(struct livesource_record) + (uint64_t)n_frames * l->frame_bytes;

	return (uint32_t)((n + LIVESOURCE_ALIGN - 1) / LIVESOURCE_ALIGN * LIVESOURCE_ALIGN);
}

static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	/* One writer: a load and a store are enough. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

WEIR_DEADLINE uint8_t *livesource_begin(struct livesource *l, uint32_t n_frames)
{
	uint8_t *room;

	add(&l->counts.blocks, 1);
	if (ring_room(&l->ring, &room) >= record_bytes(l, n_frames)) {
		l->dropping = false;
		return room + sizeof(struct livesource_record);
	}
	add(&l->counts.drops, l->dropping ? 0 : 1);
	add(&l->counts.dropped_frames, n_frames);
	l->dropping = true;
	l->missing_dropped_frames += n_frames;
	l->next_pos += n_frames;
	return NULL;
}

WEIR_DEADLINE void livesource_commit(struct livesource *l, uint32_t n_frames, int64_t mono_ns)
{
	struct livesource_record r = {
		.pos = l->next_pos, .mono_ns = mono_ns, .xrun_frames = l->missing_xrun_frames, .dropped_frames = l->missing_dropped_frames,
		.n_frames = n_frames, .n_bytes = record_bytes(l, n_frames),
	};
	uint8_t *room;

	uint64_t fill = l->ring.size_bytes - ring_room(&l->ring, &room) + r.n_bytes;
	if (fill > atomic_load_explicit(&l->counts.fill_high_bytes, memory_order_relaxed))
		atomic_store_explicit(&l->counts.fill_high_bytes, fill, memory_order_relaxed);
	if (fill - r.n_bytes < atomic_load_explicit(&l->counts.fill_low_bytes, memory_order_relaxed))
		atomic_store_explicit(&l->counts.fill_low_bytes, fill - r.n_bytes, memory_order_relaxed);
	memcpy(room, &r, sizeof(r));
	l->missing_xrun_frames = l->missing_dropped_frames = 0;
	l->next_pos += n_frames;
	ring_commit(&l->ring, r.n_bytes);
	wake_post(&l->wake);
}

WEIR_DEADLINE void livesource_push(struct livesource *l, const void *frames, uint32_t n_frames, int64_t mono_ns)
{
	uint8_t *to = livesource_begin(l, n_frames);

	if (!to)
		return;
	if (frames)
		memcpy(to, frames, (size_t)n_frames * l->frame_bytes);
	else
		memset(to, 0, (size_t)n_frames * l->frame_bytes);
	livesource_commit(l, n_frames, mono_ns);
}

WEIR_DEADLINE void livesource_count_from(struct livesource *l, uint32_t server_frame)
{
	/* After an absence the count is another server's. */
	if (l->next_pos)
		return;
	l->has_count = true;
	l->count_begin = server_frame;
}

WEIR_DEADLINE void livesource_lose(struct livesource *l, uint64_t n_frames)
{
	add(&l->counts.xruns, 1);
	add(&l->counts.xrun_frames, n_frames);
	l->missing_xrun_frames += n_frames;
	l->next_pos += (int64_t)n_frames;
}

WEIR_DEADLINE void livesource_warn(struct livesource *l)
{
	atomic_fetch_add_explicit(&l->counts.warnings, 1, memory_order_relaxed);
}

WEIR_DEADLINE void livesource_gone(struct livesource *l, const char *reason)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&l->gone, &none, 1))
		return;
	size_t i = 0;
	for (; reason[i] && i + 1 < sizeof(l->reason); i++)
		l->reason[i] = reason[i];
	l->reason[i] = '\0';
	atomic_store_explicit(&l->gone, 2, memory_order_release);
	wake_post(&l->wake);
}
