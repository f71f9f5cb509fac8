#include "media/livesink.h"

#include "base/cpu.h"
#include "base/units.h"
#include "rt/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS (UNITS_NS_PER_S / 10)
#define DEFAULT_LATENCY_NS (UNITS_NS_PER_S / 10)
#define RING_EXTRA_NS (UNITS_NS_PER_S / 4) /* beyond the threshold */
#define PIECE_SAMPLES 16384u               /* at least a frame of the most channels */

static enum err check(struct livesink *l)
{
	if (l->stop && *l->stop)
		return ERR_END;
	if (atomic_load_explicit(&l->gone, memory_order_acquire) == 2)
		return err_say(&l->why, ERR_DEVICE, l->name, "%s", l->reason);
	return ERR_OK;
}

static size_t fill_frames(const struct livesink *l)
{
	uint8_t *bytes;

	return ring_peek(&l->ring, &bytes) / l->frame_bytes;
}

static enum err start(struct livesink *l)
{
	if (l->started || !l->ops)
		return ERR_OK;
	l->started = true;
	return l->ops->play(l->device, l, &l->why);
}

/* At most n_frames of the track's format to the ring's room. */
static void put(struct livesink *l, uint8_t *to, const uint8_t *frames, size_t n_frames)
{
	size_t n = n_frames * l->format.channels;

	if (!frames) {
		memset(to, 0, n_frames * l->frame_bytes);
	} else if (l->gains) {
		(void)convert_run(&l->to_f32, l->scratch, frames, n);
		l->dsp.gain(l->scratch, l->scratch, n, l->factor);
		(void)convert_run(&l->to_device, to, l->scratch, n);
	} else if (l->to_device.from == l->to_device.to) {
		memcpy(to, frames, n_frames * l->frame_bytes);
	} else {
		(void)convert_run(&l->to_device, to, frames, n);
	}
}

enum err livesink_write(struct livesink *l, const uint8_t *frames, size_t n_frames)
{
	size_t piece = PIECE_SAMPLES / l->format.channels, in_bytes = (size_t)l->format.channels * convert_sample_bytes(l->gains ? l->to_f32.from : l->to_device.from);
	uint8_t *room;
	enum err e;

	role_forbid(ROLE_DEADLINE);
	while (n_frames) {
		size_t n = ring_room(&l->ring, &room) / l->frame_bytes;

		if ((e = check(l)))
			return e;
		if (!n) {
			if ((e = start(l)))
				return e;
			wake_wait(&l->wake, WAIT_NS);
			continue;
		}
		n = n < n_frames ? n : n_frames;
		n = n < piece ? n : piece;
		put(l, room, frames, n);
		ring_commit(&l->ring, n * l->frame_bytes);
		n_frames -= n;
		frames = frames ? frames + n * in_bytes : NULL;
		if (!l->started && fill_frames(l) >= l->threshold_frames && (e = start(l)))
			return e;
	}
	return ERR_OK;
}

enum err livesink_drain(struct livesink *l)
{
	enum err e;

	role_forbid(ROLE_DEADLINE);
	atomic_store_explicit(&l->ended, true, memory_order_release);
	if (!l->started && !fill_frames(l))
		return ERR_OK;
	if ((e = start(l)))
		return e;
	while (!atomic_load_explicit(&l->drained, memory_order_acquire)) {
		if ((e = check(l)))
			return e;
		wake_wait(&l->wake, WAIT_NS);
	}
	if (l->ops && l->ops->drain)
		l->ops->drain(l->device);
	return check(l);
}

enum err livesink_init(struct livesink *l, const struct live_format *format, int64_t latency_ns, struct err_why *why)
{
	enum err e;

	memset(l, 0, sizeof(*l));
	l->format = *format;
	l->frame_bytes = format->channels * track_sample_bytes(format->sample);
	int64_t threshold = units_scale_up(latency_ns, format->rate_hz, UNITS_NS_PER_S);
	l->threshold_frames = threshold > 0 ? (uint32_t)threshold : 1;
	atomic_init(&l->counts.fill_low_frames, UINT64_MAX);
	uint64_t frames = l->threshold_frames + (uint64_t)units_from_ns(RING_EXTRA_NS, format->rate_hz, 1) + 2u * format->block_frames;
	if ((e = ring_init(&l->ring, frames * l->frame_bytes, why)))
		return e;
	(void)thread_hold(l->ring.bytes, l->ring.size_bytes);
	wake_init(&l->wake);
	dsp_init(&l->dsp, cpu_flags());
	e = convert_init(&l->to_device, format->sample, format->sample, false, 0);
	return e ? err_say(why, e, format->device, "%s", err_text(e)) : ERR_OK;
}

enum err livesink_open(struct livesink *l, const char *spec, const struct track *t, const struct livesink_options *o, struct err_why *why)
{
	int64_t latency_ns = o->latency_ns > 0 ? o->latency_ns : DEFAULT_LATENCY_NS;
	const struct live_ops *ops;
	struct live_format format = { 0 };
	void *device = NULL;
	struct live_args a = {
		.client = "weir-play", .rate_hz = track_rate_hz(t), .channels = t->channels, .sample = (enum sample)t->sample,
		/* Channels without places go where people expect so many. */
		.wave_mask = t->layout == TRACK_LAYOUT_WAVE ? t->wave_mask : track_usual_mask(t->channels), .latency_ns = latency_ns, .stop = o->stop,
	};
	enum err e;

	memset(l, 0, sizeof(*l));
	if ((e = live_find(spec, &ops, &a.name, why)) || (e = ops->open(&device, LIVE_PLAY, &a, &format, why)))
		return e;
	if ((e = livesink_init(l, &format, latency_ns, why))) {
		ops->close(device);
		return e;
	}
	l->ops = ops;
	l->device = device;
	l->stop = o->stop;
	snprintf(l->name, sizeof(l->name), "%s", format.device);
	l->gains = o->volume_db != 0;
	l->factor = (float)units_db_to_factor(o->volume_db);
	if (l->gains && posix_memalign((void **)&l->scratch, 64, PIECE_SAMPLES * sizeof(*l->scratch))) {
		l->scratch = NULL;
		return err_say(why, ERR_NOMEM, l->name, "%s", err_text(ERR_NOMEM));
	}
	if ((e = convert_init(&l->to_f32, (enum sample)t->sample, SAMPLE_F32, false, 0)) ||
		(e = convert_init(&l->to_device, l->gains ? SAMPLE_F32 : (enum sample)t->sample, format.sample, true, t->id)))
		return err_say(why, e, l->name, "%s", err_text(e));
	return ERR_OK;
}

void livesink_release(struct livesink *l)
{
	if (l->device)
		l->ops->close(l->device);
	l->device = NULL;
	if (l->ring.bytes) {
		ring_release(&l->ring);
		wake_release(&l->wake);
	}
	free(l->scratch);
	l->scratch = NULL;
}
