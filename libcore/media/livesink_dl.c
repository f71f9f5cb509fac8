/* The callback's side of a livesink. */
#include "media/livesink.h"

#include <string.h>

#define SPARE_FRAMES 8u /* with an interpolator before the ring, whose phase moves: so much beyond what a callback takes */
#define LOOK_BLOCKS 64u

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

static void begin_looking(struct livesink *l)
{
	l->window_frames = 0;
	l->window_low_frames = UINT32_MAX;
}

/*
 * The least that was there in a LIVESINK_LOOK_NS was never needed, so beyond the threshold it is only delay: at a beginning, where more came
 * than was asked for; later, because the device stood still for a while, and then it is more than a wobble.  Returns: frames that were skipped.
 */
static size_t skip(struct livesink *l, size_t there, uint32_t n_frames)
{
	uint32_t keep = enough(l, n_frames) > n_frames ? enough(l, n_frames) : n_frames;
	/* Later there is time to see also the lowest of what comes and goes in blocks of different lengths. */
	uint32_t wobble = l->settle_frames ? 0 : l->wobble_frames, look = l->settle_frames ? 0 : LOOK_BLOCKS * n_frames;
	size_t n;

	if (there < l->window_low_frames)
		l->window_low_frames = (uint32_t)there;
	l->window_frames += n_frames;
	if (l->window_frames < (look > l->look_frames ? look : l->look_frames))
		return 0;
	n = l->window_low_frames > keep + wobble ? l->window_low_frames - keep : 0;
	ring_consume(&l->ring, n * l->frame_bytes);
	add(&l->counts.skipped_frames, n);
	if (!l->settle_frames)
		add(&l->stalled_frames, n);
	l->settle_frames -= l->window_frames < l->settle_frames ? l->window_frames : l->settle_frames;
	begin_looking(l);
	return n;
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
	if (l->starved || !l->taken_any) {
		l->settle_frames = l->settles_frames;
		begin_looking(l);
	}
	l->starved = false;
	l->taken_any = true;
	if (l->skips && !ended && skip(l, there, n_frames))
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

/*
 * The device has n_frames of silence, for want of any.  A threshold that may grow does so when that begins; if it goes on for long, the stream
 * stood still, and what it grew by is taken back.
 */
static void run_dry(struct livesink *l, uint32_t n_frames)
{
	if (!l->starved) {
		add(&l->counts.underruns, 1);
		uint32_t room = l->most_frames > l->threshold_frames ? l->most_frames - l->threshold_frames : 0;
		l->grown_frames = l->more_frames < room ? l->more_frames : room;
		l->threshold_frames += l->grown_frames;
		l->dry_frames = 0;
	}
	l->starved = true;
	l->dry_frames += n_frames;
	if (l->dry_frames > l->pause_frames) {
		l->threshold_frames -= l->grown_frames;
		l->grown_frames = l->dry_frames = 0;
	}
	add(&l->counts.silent_frames, n_frames);
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
	run_dry(l, n_frames - n_played);
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
