#include "media/livesink.h"

#include "base/cpu.h"
#include "base/units.h"
#include "rt/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS (UNITS_NS_PER_S / 10)
#define STOOD_NS (UNITS_NS_PER_S / 50)     /* so long a silence */
#define DEFAULT_LATENCY_NS (UNITS_NS_PER_S / 10)
#define RING_EXTRA_NS (UNITS_NS_PER_S / 4) /* beyond the threshold */
#define PIECE_SAMPLES 16384u               /* at least a frame of the most channels */

static void tell(struct livesink *l, const char *text)
{
	if (l->tell)
		l->tell(l->tell_user, text);
}

static size_t fill_frames(const struct livesink *l)
{
	return ring_fill(&l->ring) / l->frame_bytes;
}

/* ---- a device that is waited for ---- */

/* On the waiting thread: nobody else looks at these. */
static enum err take_back(void *user, void *device, struct err_why *why)
{
	struct livesink *l = user;

	(void)device;
	(void)why;
	l->starved = false;
	atomic_store(&l->gone, 0);
	return ERR_OK;
}

static enum err begin_absence(struct livesink *l)
{
	char text[192];
	enum err e = livereturn_begin(&l->back, l->ops, LIVE_PLAY, &l->args, l->device, &l->format, take_back, l, &l->why);

	if (e)
		return e;
	l->device = NULL;
	l->away = true;
	l->away_ns = clock_now_ns();
	l->n_absences++;
	snprintf(text, sizeof(text), "%s; it is waited for", l->reason);
	tell(l, text);
	return ERR_OK;
}

/* It is there again, as if it had just been opened. */
static void end_absence(struct livesink *l)
{
	char text[96];

	l->away = l->started = l->taken_any = false;
	/* A stream that went on without it goes on from where it is. */
	if (!l->waits)
		ring_consume(&l->ring, ring_fill(&l->ring));
	if (l->follows) {
		varirate_reset(&l->follow.v);
		clock_fit_init(&l->follow.line, l->format.rate_hz);
		livefollow_disturb(&l->follow, false, clock_now_ns());
		l->given_frames = atomic_load(&l->said_taken_frames) - atomic_load(&l->counts.silent_frames) + atomic_load(&l->counts.skipped_frames) + fill_frames(l);
	}
	snprintf(text, sizeof(text), "is back after %.3f s", (double)(clock_now_ns() - l->away_ns) / UNITS_NS_PER_S);
	tell(l, text);
}

/* Returns: ERR_OK; ERR_AGAIN: it is away; ERR_END: stopped; ERR_DEVICE: gone for good. */
static enum err check(struct livesink *l)
{
	enum err e;

	if (l->stop && *l->stop)
		return ERR_END;
	if (l->away) {
		if (!livereturn_poll(&l->back, &l->device))
			return ERR_AGAIN;
		end_absence(l);
	}
	if (atomic_load_explicit(&l->gone, memory_order_acquire) != 2)
		return ERR_OK;
	if (!l->keeps)
		return err_say(&l->why, ERR_DEVICE, l->name, "%s", l->reason);
	return (e = begin_absence(l)) ? e : ERR_AGAIN;
}

/* ---- writing ---- */

static enum err start(struct livesink *l)
{
	if (l->started || !l->ops)
		return ERR_OK;
	l->started = true;
	return l->ops->play(l->device, l, &l->why);
}

/*
 * At least a frame of room, *n_frames of it, at *room.  Returns: as check(); ERR_AGAIN: it is away, and what was to be written is lost.
 */
static enum err wait_for_room(struct livesink *l, uint8_t **room, size_t *n_frames)
{
	bool waited = false;
	enum err e;

	for (;;) {
		if ((e = check(l)) && (e != ERR_AGAIN || !l->waits))
			return e;
		if (e == ERR_AGAIN) {
			wake_wait(&l->back.wake_reader, WAIT_NS);
			continue;
		}
		*n_frames = ring_room(&l->ring, room) / l->frame_bytes;
		if (*n_frames)
			break;
		if ((e = start(l)))
			return e;
		waited = true;
		wake_wait(&l->wake, WAIT_NS);
	}
	if (waited && l->follows)
		livefollow_disturb(&l->follow, true, clock_now_ns());
	return ERR_OK;
}

/* n_frames stand in the ring's room. */
static enum err put(struct livesink *l, size_t n_frames)
{
	ring_commit(&l->ring, n_frames * l->frame_bytes);
	l->given_frames += n_frames;
	return !l->started && fill_frames(l) >= l->threshold_frames ? start(l) : ERR_OK;
}

/* To f32, with the gain. */
static void scale(struct livesink *l, const uint8_t *frames, size_t n_samples)
{
	if (!frames) {
		memset(l->scratch, 0, n_samples * sizeof(*l->scratch));
		return;
	}
	(void)convert_run(&l->to_f32, l->scratch, frames, n_samples);
	if (l->gains)
		l->dsp.gain(l->scratch, l->scratch, n_samples, l->factor);
}

/* At most n_frames of the track's format, as the device has them. */
static void convert(struct livesink *l, uint8_t *to, const uint8_t *frames, size_t n_frames)
{
	size_t n = n_frames * l->format.channels;

	if (!frames) {
		memset(to, 0, n_frames * l->frame_bytes);
	} else if (l->gains) {
		scale(l, frames, n);
		(void)convert_run(&l->to_device, to, l->scratch, n);
	} else if (l->to_device.from == l->to_device.to) {
		memcpy(to, frames, n_frames * l->frame_bytes);
	} else {
		(void)convert_run(&l->to_device, to, frames, n);
	}
}

/*
 * What the device has taken up to now, and what comes now.  Silence for want of frames, and frames skipped, are a jump of that length in
 * what waits; a long silence is a stream that stood still.  What a device piled up that stood still was never believed (STRANGE_S of
 * livefollow.c), and to skip it puts right what waits.
 */
static void observe(struct livesink *l, size_t n_frames)
{
	unsigned seq = atomic_load_explicit(&l->taken_seq, memory_order_acquire);
	uint64_t taken = atomic_load_explicit(&l->said_taken_frames, memory_order_relaxed);
	int64_t taken_ns = atomic_load_explicit(&l->said_taken_ns, memory_order_relaxed), now_ns = clock_now_ns();

	atomic_thread_fence(memory_order_acquire);
	if (seq && !(seq & 1) && seq == atomic_load_explicit(&l->taken_seq, memory_order_relaxed))
		livefollow_device(&l->follow, (int64_t)taken, taken_ns);
	int64_t added = (int64_t)atomic_load_explicit(&l->counts.silent_frames, memory_order_relaxed) -
		(int64_t)atomic_load_explicit(&l->counts.skipped_frames, memory_order_relaxed);
	int64_t stalled = (int64_t)atomic_load_explicit(&l->stalled_frames, memory_order_relaxed);
	int64_t by = added - l->seen_added_frames + stalled - l->seen_stalled_frames;
	l->seen_added_frames = added;
	l->seen_stalled_frames = stalled;
	if (units_to_ns(by, l->format.rate_hz, 1) > STOOD_NS)
		livefollow_disturb(&l->follow, false, now_ns);
	else if (by)
		livefollow_jumped(&l->follow, by);
	livefollow_arrive(&l->follow, (uint32_t)n_frames, (int64_t)l->given_frames + added, now_ns);
}

/* Frames out of `made`: copies as they were, others with dither. */
static enum err put_made(struct livesink *l, uint8_t *room, size_t n_frames)
{
	struct convert *c = livefollow_is_exact(&l->follow) ? &l->to_device_exact : &l->to_device;

	(void)convert_run(c, room, l->made, n_frames * l->format.channels);
	return put(l, n_frames);
}

static enum err write_following(struct livesink *l, const uint8_t *frames, size_t n_frames)
{
	size_t at = 0, used, n;
	uint8_t *room;
	enum err e;

	scale(l, frames, n_frames * l->format.channels);
	while (at < n_frames) {
		if ((e = wait_for_room(l, &room, &n)))
			return e;
		n = n < l->piece_frames ? n : l->piece_frames;
		size_t made = livefollow_run(&l->follow, l->made, n, l->scratch + at * l->format.channels, n_frames - at, &used);
		at += used;
		if ((e = put_made(l, room, made)))
			return e;
	}
	return ERR_OK;
}

static enum err write_as_it_is(struct livesink *l, const uint8_t *frames, size_t n_frames)
{
	size_t in_bytes = (size_t)l->format.channels * convert_sample_bytes(l->gains ? l->to_f32.from : l->to_device.from), n;
	uint8_t *room;
	enum err e;

	while (n_frames) {
		if ((e = wait_for_room(l, &room, &n)))
			return e;
		n = n < n_frames ? n : n_frames;
		convert(l, room, frames, n);
		if ((e = put(l, n)))
			return e;
		n_frames -= n;
		frames = frames ? frames + n * in_bytes : NULL;
	}
	return ERR_OK;
}

enum err livesink_write(struct livesink *l, const uint8_t *frames, size_t n_frames)
{
	size_t in_bytes = (size_t)l->format.channels * convert_sample_bytes(l->to_f32.from);
	enum err e = ERR_OK;

	role_forbid(ROLE_DEADLINE);
	if (l->follows && n_frames)
		observe(l, n_frames);
	while (n_frames && !e) {
		size_t n = n_frames < l->piece_frames ? n_frames : l->piece_frames;

		e = l->follows ? write_following(l, frames, n) : write_as_it_is(l, frames, n);
		if (e == ERR_AGAIN) {
			l->absent_frames += n_frames;
			return ERR_OK;
		}
		n_frames -= n;
		frames = frames ? frames + n * in_bytes : NULL;
	}
	return e;
}

/* What the interpolator holds.  Returns: as wait_for_room(). */
static enum err flush(struct livesink *l)
{
	uint8_t *room;
	size_t n, made;
	enum err e;

	do {
		if ((e = wait_for_room(l, &room, &n)))
			return e;
		made = livefollow_flush(&l->follow, l->made, n < l->piece_frames ? n : l->piece_frames);
		if ((e = put_made(l, room, made)))
			return e;
	} while (made);
	varirate_reset(&l->follow.v);
	return ERR_OK;
}

enum err livesink_end(struct livesink *l)
{
	enum err e = l->follows ? flush(l) : ERR_OK;

	atomic_store_explicit(&l->ended, true, memory_order_release);
	return e == ERR_AGAIN ? ERR_OK : e;
}

enum err livesink_drain(struct livesink *l)
{
	enum err e;

	role_forbid(ROLE_DEADLINE);
	if (!atomic_load_explicit(&l->ended, memory_order_relaxed) && (e = livesink_end(l)))
		return e;
	if (!l->started && !l->away && !fill_frames(l))
		return ERR_OK;
	for (;;) {
		if ((e = check(l)) && (e != ERR_AGAIN || !l->waits))
			return e == ERR_AGAIN ? ERR_OK : e;
		if (!e && (e = start(l)))
			return e;
		if (atomic_load_explicit(&l->drained, memory_order_acquire))
			break;
		wake_wait(l->away ? &l->back.wake_reader : &l->wake, WAIT_NS);
	}
	if (l->ops && l->ops->drain)
		l->ops->drain(l->device);
	e = check(l);
	return e == ERR_AGAIN ? ERR_OK : e;
}

int64_t livesink_room_ns(const struct livesink *l)
{
	return units_to_ns((int64_t)(l->ring.size_bytes / l->frame_bytes), l->format.rate_hz, 1);
}

enum err livesink_init(struct livesink *l, const struct live_format *format, int64_t latency_ns, int64_t spare_ns, struct err_why *why)
{
	enum err e;

	memset(l, 0, sizeof(*l));
	l->format = *format;
	l->frame_bytes = format->channels * track_sample_bytes(format->sample);
	l->piece_frames = PIECE_SAMPLES / format->channels;
	int64_t threshold = units_scale_up(latency_ns, format->rate_hz, UNITS_NS_PER_S);
	l->threshold_frames = threshold > 0 ? (uint32_t)threshold : 1;
	l->settles_frames = (uint32_t)units_from_ns(LIVESINK_SETTLE_NS, format->rate_hz, 1);
	l->look_frames = (uint32_t)units_from_ns(LIVESINK_LOOK_NS, format->rate_hz, 1);
	l->wobble_frames = (uint32_t)units_from_ns(LIVESINK_WOBBLE_NS, format->rate_hz, 1);
	atomic_init(&l->counts.fill_low_frames, UINT64_MAX);
	uint64_t frames = l->threshold_frames + (uint64_t)units_from_ns(spare_ns > 0 ? spare_ns : RING_EXTRA_NS, format->rate_hz, 1) + 2u * format->block_frames;
	if ((e = ring_init(&l->ring, frames * l->frame_bytes, why)))
		return e;
	l->held = thread_hold(l->ring.bytes, l->ring.size_bytes);
	wake_init(&l->wake);
	dsp_init(&l->dsp, cpu_flags());
	if (!(e = convert_init(&l->to_device, format->sample, format->sample, false, 0)))
		e = convert_init(&l->to_f32, format->sample, SAMPLE_F32, false, 0);
	return e ? err_say(why, e, format->device, "%s", err_text(e)) : ERR_OK;
}

void livesink_adapt(struct livesink *l)
{
	l->more_frames = (uint32_t)units_from_ns(LIVESINK_MORE_NS, l->format.rate_hz, 1);
	l->most_frames = (uint32_t)units_from_ns(LIVESINK_MOST_NS, l->format.rate_hz, 1);
	l->pause_frames = (uint32_t)units_from_ns(LIVESINK_PAUSE_NS, l->format.rate_hz, 1);
	/* A period of a slow device must be there while the next comes. */
	if (l->threshold_frames < 2 * l->format.block_frames)
		l->threshold_frames = 2 * l->format.block_frames;
}

void livesink_expect(struct livesink *l, size_t n_frames)
{
	/* Once it has started, the threshold is the callback's. */
	if (!l->more_frames || l->started || l->given_frames)
		return;
	size_t most = l->most_frames > l->threshold_frames ? l->most_frames - l->threshold_frames : 0;
	l->threshold_frames += (uint32_t)(n_frames < most ? n_frames : most);
}

/* What stands between the track's format and the device's. */
static enum err prepare(struct livesink *l, const struct track *t, bool follows, struct err_why *why)
{
	enum sample from = (enum sample)t->sample, to = l->format.sample;
	size_t piece_bytes = PIECE_SAMPLES * sizeof(float);
	enum err e = ERR_OK;

	if ((l->gains || follows) && posix_memalign((void **)&l->scratch, 64, piece_bytes)) {
		l->scratch = NULL;
		e = ERR_NOMEM;
	}
	if (follows && !e && posix_memalign((void **)&l->made, 64, piece_bytes)) {
		l->made = NULL;
		e = ERR_NOMEM;
	}
	if (follows && !e)
		e = livefollow_init(&l->follow, l->format.rate_hz, l->format.channels);
	if (e || (e = convert_init(&l->to_f32, from, SAMPLE_F32, false, 0)) ||
		(e = convert_init(&l->to_device, l->gains || follows ? SAMPLE_F32 : from, to, true, t->id)) ||
		(e = convert_init(&l->to_device_exact, SAMPLE_F32, to, l->gains || convert_loses(from, to), t->id)))
		return err_say(why, e, l->name, "%s", err_text(e));
	l->follows = follows;
	return ERR_OK;
}

enum err livesink_open(struct livesink *l, const char *spec, const struct track *t, const struct livesink_options *o, struct err_why *why)
{
	const struct live_ops *ops;
	struct live_format format = { 0 };
	void *device = NULL;
	struct live_args a = {
		.client = "weir-play", .rate_hz = track_rate_hz(t), .channels = t->channels, .sample = (enum sample)t->sample,
		/* Channels without places go where people expect so many. */
		.wave_mask = t->layout == TRACK_LAYOUT_WAVE ? t->wave_mask : track_usual_mask(t->channels), .stop = o->stop,
	};
	enum err e;

	memset(l, 0, sizeof(*l));
	if ((e = live_find(spec, &ops, &a.name, why)))
		return e;
	a.latency_ns = o->latency_ns > 0 ? o->latency_ns : o->adapts ? ops->live_ns : DEFAULT_LATENCY_NS;
	if ((e = ops->open(&device, LIVE_PLAY, &a, &format, why)))
		return e;
	if ((e = livesink_init(l, &format, a.latency_ns, o->spare_ns, why))) {
		ops->close(device);
		return e;
	}
	if (o->adapts && o->latency_ns <= 0)
		livesink_adapt(l);
	/* The name is needed again when the device comes back. */
	snprintf(l->spec, sizeof(l->spec), "%s", spec);
	l->args = a;
	l->args.name = l->spec + (a.name - spec);
	l->ops = ops;
	l->device = device;
	l->stop = o->stop;
	l->keeps = o->keep;
	l->waits = o->waits;
	l->skips = o->skips;
	l->tell = o->tell;
	l->tell_user = o->tell_user;
	snprintf(l->name, sizeof(l->name), "%s", format.device);
	l->gains = o->volume_db != 0;
	l->factor = (float)units_db_to_factor(o->volume_db);
	return prepare(l, t, o->follows, why);
}

void livesink_release(struct livesink *l)
{
	livereturn_end(&l->back);
	if (l->device)
		l->ops->close(l->device);
	l->device = NULL;
	if (l->ring.bytes) {
		ring_release(&l->ring);
		wake_release(&l->wake);
	}
	livefollow_release(&l->follow);
	free(l->scratch);
	free(l->made);
	l->scratch = l->made = NULL;
}
