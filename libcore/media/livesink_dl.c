/* The callback's side of a livesink. */
#include "media/livesink.h"

#include <string.h>

#define SPARE_FRAMES 8u /* with an interpolator before the ring, whose phase moves: so much beyond what a callback takes */

static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* What must be there to begin, when n_frames are taken at once. */
static uint32_t enough(const struct livesink *l, uint32_t n_frames)
{
	uint32_t least = n_frames + SPARE_FRAMES;

	return !l->follows || l->threshold_frames > least ? l->threshold_frames : least;
}

/*
 * At a beginning, every LIVESINK_LOOK_NS: the least that was there since the last look was never needed, so beyond the threshold it is only
 * delay.  Returns: frames that were skipped.
 */
static size_t skip(struct livesink *l, size_t there, uint32_t n_frames)
{
	uint32_t keep = enough(l, n_frames) > n_frames ? enough(l, n_frames) : n_frames;
	size_t n;

	if (there < l->window_low_frames)
		l->window_low_frames = (uint32_t)there;
	l->window_frames += n_frames;
	if (l->window_frames < l->look_frames)
		return 0;
	n = l->window_low_frames > keep ? l->window_low_frames - keep : 0;
	ring_consume(&l->ring, n * l->frame_bytes);
	add(&l->counts.skipped_frames, n);
	l->settle_frames -= l->window_frames < l->settle_frames ? l->window_frames : l->settle_frames;
	l->window_frames = 0;
	l->window_low_frames = UINT32_MAX;
	return n;
}

static void begin_settling(struct livesink *l)
{
	l->settle_frames = l->settles_frames;
	l->window_frames = 0;
	l->window_low_frames = UINT32_MAX;
}

WEIR_DEADLINE uint32_t livesink_begin(struct livesink *l, uint32_t n_frames, const uint8_t **frames)
{
	/* The flag first: what was written before it was raised is seen then. */
	bool ended = atomic_load_explicit(&l->ended, memory_order_acquire);
	uint8_t *bytes;
	size_t there = ring_peek(&l->ring, &bytes) / l->frame_bytes;

	l->saw_end = ended;
	if (l->starved && !ended && there < enough(l, n_frames))
		return 0;
	if (l->starved || !l->taken_any)
		begin_settling(l);
	l->starved = false;
	l->taken_any = true;
	if (l->skips && l->settle_frames && !ended && skip(l, there, n_frames))
		there = ring_peek(&l->ring, &bytes) / l->frame_bytes;
	*frames = bytes;
	if (!ended && there < atomic_load_explicit(&l->counts.fill_low_frames, memory_order_relaxed))
		atomic_store_explicit(&l->counts.fill_low_frames, there, memory_order_relaxed);
	if (there > atomic_load_explicit(&l->counts.fill_high_frames, memory_order_relaxed))
		atomic_store_explicit(&l->counts.fill_high_frames, there, memory_order_relaxed);
	return there < n_frames ? (uint32_t)there : n_frames;
}

/* How far the device is, for the writer: who reads in between reads again. */
static void say_taken(struct livesink *l, uint32_t n_frames)
{
	unsigned seq = atomic_load_explicit(&l->taken_seq, memory_order_relaxed);

	l->taken_frames += n_frames;
	atomic_store_explicit(&l->taken_seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&l->said_taken_frames, l->taken_frames, memory_order_relaxed);
	atomic_store_explicit(&l->said_taken_ns, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&l->taken_seq, seq + 2, memory_order_release);
}

WEIR_DEADLINE bool livesink_commit(struct livesink *l, uint32_t n_frames, uint32_t n_played)
{
	if (l->follows)
		say_taken(l, n_frames);
	ring_consume(&l->ring, (size_t)n_played * l->frame_bytes);
	add(&l->counts.played_frames, n_played);
	wake_post(&l->wake);
	if (n_played == n_frames)
		return true;
	if (l->saw_end) {
		atomic_store_explicit(&l->drained, true, memory_order_release);
		wake_post(&l->wake);
		return false;
	}
	if (!l->starved)
		add(&l->counts.underruns, 1);
	l->starved = true;
	add(&l->counts.silent_frames, n_frames - n_played);
	return true;
}

WEIR_DEADLINE uint32_t livesink_pull(struct livesink *l, void *dst, uint32_t n_frames)
{
	const uint8_t *frames;
	uint32_t n = livesink_begin(l, n_frames, &frames);

	memcpy(dst, frames, (size_t)n * l->frame_bytes);
	memset((uint8_t *)dst + (size_t)n * l->frame_bytes, 0, (size_t)(n_frames - n) * l->frame_bytes);
	return livesink_commit(l, n_frames, n) ? n_frames : n;
}

WEIR_DEADLINE void livesink_gone(struct livesink *l, const char *reason)
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
