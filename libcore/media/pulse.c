/*
 * PulseAudio, and what speaks its protocol: by the asynchronous interface, since only that tells of holes, of the time
 * of a sample and of a device that went away.
 *
 * Names are those of `pactl list short sources` and sinks; "" is the default.  A stream stays on a device that was
 * named; the default may be moved by the user.  Capture takes the device's own format, play the stream's: the server
 * converts, and the channels have their places.
 */
#include "base/role.h"
#include "base/units.h"
#include "media/chanmap.h"
#include "media/livesink.h"
#include "media/livesource.h"
#include "media/pulseloop.h"

#include <pulse/pulseaudio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPTURE_BLOCK_MS 20
/* What a server says of the latency of a stream that has just begun may be a wish: until then it is believed up to so many blocks. */
#define WARM_NS (2 * UNITS_NS_PER_S)
#define WARM_BLOCKS 4

#define FUNCTIONS(X) \
	X(threaded_mainloop_new) X(threaded_mainloop_free) X(threaded_mainloop_start) X(threaded_mainloop_stop) X(threaded_mainloop_lock) \
	X(threaded_mainloop_unlock) X(threaded_mainloop_wait) X(threaded_mainloop_signal) X(threaded_mainloop_get_api) \
	X(context_new) X(context_unref) X(context_connect) X(context_disconnect) X(context_get_state) X(context_set_state_callback) \
	X(context_errno) X(context_get_source_info_by_name) X(context_get_sink_info_by_name) X(context_get_source_info_list) \
	X(context_get_sink_info_list) X(context_get_server_info) X(operation_get_state) X(operation_unref) X(operation_cancel) \
	X(context_rttime_new) X(stream_new) X(stream_unref) X(stream_connect_record) X(stream_connect_playback) X(stream_disconnect) \
	X(stream_get_state) X(stream_set_state_callback) X(stream_set_read_callback) X(stream_set_write_callback) \
	X(stream_set_overflow_callback) X(stream_set_moved_callback) X(stream_peek) X(stream_drop) X(stream_begin_write) X(stream_write) \
	X(stream_get_latency) X(stream_drain) X(stream_get_device_name) X(strerror)

struct library {
#define MEMBER(name) __typeof__(pa_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The server, locked and answering. */
struct server {
	struct library lib;
	pa_threaded_mainloop *loop;
	struct pulseloop front;   /* what the context uses of it */
	pa_context *context;
	bool running;
	const volatile sig_atomic_t *stop;
};

struct pulse {
	struct server server;
	enum live_way way;
	char device[256];         /* the server's name; "" the default */
	char label[256];          /* for messages */
	pa_sample_spec spec;
	pa_channel_map map;
	uint32_t block_frames;
	int64_t latency_ns;
	pa_stream *stream;
	struct livesource *to;
	struct livesink *from;
	bool role_taken, all_written;
	int64_t first_ns;         /* when the first of it came */
	bool found;
	bool quitting;
	int drained;              /* 0 not yet, 1 done, −1 failed */
};

/* ---- formats and channels ---- */

static const struct {
	pa_sample_format_t theirs;
	enum sample ours;
} formats[] = {
	{ PA_SAMPLE_S16LE, SAMPLE_S16 }, { PA_SAMPLE_S24LE, SAMPLE_S24 }, { PA_SAMPLE_S32LE, SAMPLE_S32 }, { PA_SAMPLE_FLOAT32LE, SAMPLE_F32 },
};

/* By bit of the WAVE mask. */
static const pa_channel_position_t positions[CHANMAP_N_BITS] = {
	PA_CHANNEL_POSITION_FRONT_LEFT, PA_CHANNEL_POSITION_FRONT_RIGHT, PA_CHANNEL_POSITION_FRONT_CENTER, PA_CHANNEL_POSITION_LFE,
	PA_CHANNEL_POSITION_REAR_LEFT, PA_CHANNEL_POSITION_REAR_RIGHT, PA_CHANNEL_POSITION_FRONT_LEFT_OF_CENTER,
	PA_CHANNEL_POSITION_FRONT_RIGHT_OF_CENTER, PA_CHANNEL_POSITION_REAR_CENTER, PA_CHANNEL_POSITION_SIDE_LEFT,
	PA_CHANNEL_POSITION_SIDE_RIGHT, PA_CHANNEL_POSITION_TOP_CENTER, PA_CHANNEL_POSITION_TOP_FRONT_LEFT,
	PA_CHANNEL_POSITION_TOP_FRONT_CENTER, PA_CHANNEL_POSITION_TOP_FRONT_RIGHT, PA_CHANNEL_POSITION_TOP_REAR_LEFT,
	PA_CHANNEL_POSITION_TOP_REAR_CENTER, PA_CHANNEL_POSITION_TOP_REAR_RIGHT,
};

static enum sample sample_of(pa_sample_format_t theirs)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].theirs == theirs)
			return formats[i].ours;
	}
	return SAMPLE_F32;
}

static pa_sample_format_t format_of(enum sample ours)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].ours == ours)
			return formats[i].theirs;
	}
	return PA_SAMPLE_FLOAT32LE;
}

static void map_of_mask(pa_channel_map *map, uint64_t mask, unsigned channels)
{
	unsigned n = 0;

	map->channels = (uint8_t)channels;
	for (unsigned bit = 0; bit < CHANMAP_N_BITS && n < channels; bit++) {
		if (mask >> bit & 1)
			map->map[n++] = positions[bit];
	}
	for (unsigned i = 0; n < channels; i++)
		map->map[n++] = (pa_channel_position_t)(PA_CHANNEL_POSITION_AUX0 + i);
	if (channels == 1)
		map->map[0] = PA_CHANNEL_POSITION_MONO;
}

/* The places of a device's channels; 0 where it has others, or one twice. */
static uint64_t mask_of_map(const pa_channel_map *map)
{
	uint64_t mask = 0;

	if (map->channels == 1 && map->map[0] == PA_CHANNEL_POSITION_MONO)
		return track_usual_mask(1);
	for (unsigned i = 0; i < map->channels; i++) {
		unsigned bit = 0;
		while (bit < CHANMAP_N_BITS && positions[bit] != map->map[i])
			bit++;
		if (bit == CHANMAP_N_BITS || mask >> bit & 1)
			return 0;
		mask |= (uint64_t)1 << bit;
	}
	return mask;
}

/* ---- the server ---- */

static void on_context(pa_context *context, void *user)
{
	(void)context;
	struct server *s = user;
	s->lib.threaded_mainloop_signal(s->loop, 0);
}

static void wake_up(pa_mainloop_api *api, pa_time_event *event, const struct timeval *tv, void *user)
{
	struct server *s = user;

	(void)tv;
	api->time_free(event);
	s->lib.threaded_mainloop_signal(s->loop, 0);
}

/* Wait for something to happen, but not for long: the stop flag and the time are looked at.  Returns: false when it is over. */
static bool wait_some(struct server *s, int64_t limit_ns)
{
	if ((s->stop && *s->stop) || clock_now_ns() >= limit_ns)
		return false;
	int64_t next_us = clock_now_ns() / 1000 + 50000;
	if (!s->lib.context_rttime_new(s->context, (pa_usec_t)next_us, wake_up, s))
		return false;
	s->lib.threaded_mainloop_wait(s->loop);
	return true;
}

static void server_release(struct server *s)
{
	if (s->context) {
		s->lib.threaded_mainloop_lock(s->loop);
		s->lib.context_set_state_callback(s->context, NULL, NULL);
		s->lib.context_disconnect(s->context);
		s->lib.threaded_mainloop_unlock(s->loop);
	}
	if (s->running)
		s->lib.threaded_mainloop_stop(s->loop);
	if (s->context)
		s->lib.context_unref(s->context);
	if (s->loop)
		s->lib.threaded_mainloop_free(s->loop);
	*s = (struct server){ .running = false };
}

static enum err server_open(struct server *s, const char *client, struct err_why *why)
{
#define SYMBOL(n) { "pa_" #n, &s->lib.n },
	const struct live_symbol symbols[] = { FUNCTIONS(SYMBOL) };
#undef SYMBOL
	enum err e = live_load("libpulse.so.0", "libpulse0", symbols, ARRAY_LEN(symbols), why);
	pa_context_state_t state = PA_CONTEXT_UNCONNECTED;

	if (e)
		return e;
	s->loop = s->lib.threaded_mainloop_new();
	if (s->loop) {
		pulseloop_init(&s->front, s->lib.threaded_mainloop_get_api(s->loop));
		s->context = s->lib.context_new(&s->front.api, client);
	}
	if (!s->context)
		return err_say(why, ERR_NOMEM, "pulse", "%s", err_text(ERR_NOMEM));
	s->lib.context_set_state_callback(s->context, on_context, s);
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS;
	if (s->lib.context_connect(s->context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) < 0 || s->lib.threaded_mainloop_start(s->loop) < 0)
		return err_say(why, ERR_DEVICE, "pulse", "no PulseAudio server answers (%s)", s->lib.strerror(s->lib.context_errno(s->context)));
	s->running = true;
	s->lib.threaded_mainloop_lock(s->loop);
	while (PA_CONTEXT_IS_GOOD(state = s->lib.context_get_state(s->context)) && state != PA_CONTEXT_READY && wait_some(s, limit_ns))
		;
	if (state != PA_CONTEXT_READY)
		e = err_say(why, ERR_DEVICE, "pulse", "no PulseAudio server answers (%s)",
			state == PA_CONTEXT_FAILED ? s->lib.strerror(s->lib.context_errno(s->context)) : "no answer in time");
	s->lib.threaded_mainloop_unlock(s->loop);
	return e;
}

/* Locked: wait for an operation.  Returns: it is done. */
static bool finish(struct server *s, pa_operation *o)
{
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS;

	if (!o)
		return false;
	while (s->lib.operation_get_state(o) == PA_OPERATION_RUNNING && s->lib.context_get_state(s->context) == PA_CONTEXT_READY && wait_some(s, limit_ns))
		;
	bool done = s->lib.operation_get_state(o) == PA_OPERATION_DONE;
	if (!done)
		s->lib.operation_cancel(o);
	s->lib.operation_unref(o);
	return done;
}

/* ---- the device ---- */

static void take_device(struct pulse *p, const char *name, const pa_sample_spec *spec, const pa_channel_map *map)
{
	p->found = true;
	p->spec = *spec;
	p->map = *map;
	snprintf(p->label, sizeof(p->label), "pulse:%.240s", name);
}

static void on_source(pa_context *context, const pa_source_info *info, int end, void *user)
{
	struct pulse *p = user;

	(void)context;
	if (!end)
		take_device(p, info->name, &info->sample_spec, &info->channel_map);
	p->server.lib.threaded_mainloop_signal(p->server.loop, 0);
}

static void on_sink(pa_context *context, const pa_sink_info *info, int end, void *user)
{
	struct pulse *p = user;

	(void)context;
	if (!end)
		take_device(p, info->name, &info->sample_spec, &info->channel_map);
	p->server.lib.threaded_mainloop_signal(p->server.loop, 0);
}

static enum err ask_device(struct pulse *p, struct err_why *why)
{
	struct server *s = &p->server;
	bool named = p->device[0] != 0;

	s->lib.threaded_mainloop_lock(s->loop);
	pa_operation *o = p->way == LIVE_CAPTURE ?
		s->lib.context_get_source_info_by_name(s->context, named ? p->device : "@DEFAULT_SOURCE@", on_source, p) :
		s->lib.context_get_sink_info_by_name(s->context, named ? p->device : "@DEFAULT_SINK@", on_sink, p);
	(void)finish(s, o);
	s->lib.threaded_mainloop_unlock(s->loop);
	if (p->found)
		return ERR_OK;
	return err_say(why, ERR_DEVICE, p->label, named ? "the server has no such %s; capture --list shows them" : "the server has no %s",
		p->way == LIVE_CAPTURE ? "source" : "sink");
}

/* ---- the callbacks: on the thread of the main loop ---- */

static void take_role(struct pulse *p)
{
	if (!p->role_taken)
		live_begin_deadline("pulse", true, p->to ? &p->to->scheduling : &p->from->scheduling);
	p->role_taken = true;
}

static void on_readable(pa_stream *stream, size_t n_bytes, void *user)
{
	struct pulse *p = user;
	const struct library *lib = &p->server.lib;
	size_t frame_bytes = (size_t)p->spec.channels * track_sample_bytes(sample_of(p->spec.format));
	const void *data;
	struct tick *t = atomic_load_explicit(&p->to->tick, memory_order_relaxed);

	take_role(p);
	tick_begin(t, (int64_t)(n_bytes / frame_bytes) * UNITS_NS_PER_S / p->spec.rate);
	while (n_bytes >= frame_bytes && !lib->stream_peek(stream, &data, &n_bytes) && n_bytes) {
		pa_usec_t latency_us = 0;
		int negative = 0;
		size_t n = n_bytes / frame_bytes;
		int64_t ns = clock_now_ns();

		/* What is read next was captured so long ago. */
		int64_t most_ns = WARM_BLOCKS * (int64_t)p->block_frames * UNITS_NS_PER_S / p->spec.rate;
		if (!p->first_ns)
			p->first_ns = ns;
		if (ns - p->first_ns > WARM_NS)
			most_ns = INT64_MAX;
		if (!lib->stream_get_latency(stream, &latency_us, &negative)) {
			int64_t latency_ns = latency_us < INT64_MAX / 1000 ? (int64_t)latency_us * 1000 : 0;
			ns -= negative ? -latency_ns : latency_ns < most_ns ? latency_ns : most_ns;
		} else {
			ns -= (int64_t)n * UNITS_NS_PER_S / p->spec.rate;
		}
		if (!data)
			livesource_lose(p->to, n);
		/* A block at a time, so that the ring gives and takes in the size it was made for. */
		for (size_t at = 0; data && at < n; at += p->block_frames) {
			size_t part = n - at < p->block_frames ? n - at : p->block_frames;

			livesource_push(p->to, (const uint8_t *)data + at * frame_bytes, (uint32_t)part, ns + (int64_t)at * UNITS_NS_PER_S / p->spec.rate);
		}
		lib->stream_drop(stream);
		n_bytes = frame_bytes;
	}
	tick_end(t);
}

static void on_writable(pa_stream *stream, size_t n_bytes, void *user)
{
	struct pulse *p = user;
	const struct library *lib = &p->server.lib;
	size_t frame_bytes = (size_t)p->spec.channels * track_sample_bytes(sample_of(p->spec.format));
	struct tick *t = atomic_load_explicit(&p->from->tick, memory_order_relaxed);

	take_role(p);
	tick_begin(t, (int64_t)(n_bytes / frame_bytes) * UNITS_NS_PER_S / p->spec.rate);
	while (n_bytes >= frame_bytes && !p->all_written) {
		size_t room = n_bytes;
		void *to;

		if (lib->stream_begin_write(stream, &to, &room) || room < frame_bytes)
			break;
		uint32_t want = (uint32_t)((room < n_bytes ? room : n_bytes) / frame_bytes), got = livesink_pull(p->from, to, want);
		p->all_written = got < want || atomic_load_explicit(&p->from->drained, memory_order_relaxed);
		if (!got || lib->stream_write(stream, to, got * frame_bytes, NULL, 0, PA_SEEK_RELATIVE))
			break;
		n_bytes -= got * frame_bytes;
	}
	tick_end(t);
}

static void on_stream(pa_stream *stream, void *user)
{
	struct pulse *p = user;
	pa_stream_state_t state = p->server.lib.stream_get_state(stream);

	if (!p->quitting && (state == PA_STREAM_FAILED || state == PA_STREAM_TERMINATED)) {
		bool server_lives = p->server.lib.context_get_state(p->server.context) == PA_CONTEXT_READY;
		const char *text = server_lives ? "the device went away" : "the PulseAudio server has ended";

		if (p->to)
			livesource_gone(p->to, text);
		if (p->from)
			livesink_gone(p->from, text);
	}
	p->server.lib.threaded_mainloop_signal(p->server.loop, 0);
}

static void on_drained(pa_stream *stream, int success, void *user)
{
	struct pulse *p = user;

	(void)stream;
	p->drained = success ? 1 : -1;
	p->server.lib.threaded_mainloop_signal(p->server.loop, 0);
}

/* ---- the adapter ---- */

static void pulse_close(void *state)
{
	struct pulse *p = state;
	struct server *s = &p->server;

	if (p->stream) {
		s->lib.threaded_mainloop_lock(s->loop);
		p->quitting = true;
		s->lib.stream_set_state_callback(p->stream, NULL, NULL);
		s->lib.stream_set_read_callback(p->stream, NULL, NULL);
		s->lib.stream_set_write_callback(p->stream, NULL, NULL);
		s->lib.stream_disconnect(p->stream);
		s->lib.stream_unref(p->stream);
		s->lib.threaded_mainloop_unlock(s->loop);
	}
	server_release(s);
	free(p);
}

static enum err pulse_open(void **state, enum live_way way, const struct live_args *args, struct live_format *format, struct err_why *why)
{
	struct pulse *p = calloc(1, sizeof(*p));
	enum err e;

	if (!p)
		return err_say(why, ERR_NOMEM, "pulse", "%s", err_text(ERR_NOMEM));
	p->way = way;
	p->latency_ns = args->latency_ns;
	p->server.stop = args->stop;
	snprintf(p->device, sizeof(p->device), "%s", args->name);
	snprintf(p->label, sizeof(p->label), "pulse%s%.240s", args->name[0] ? ":" : "", args->name);
	if ((e = server_open(&p->server, args->client, why)) || (e = ask_device(p, why)))
		goto out;
	/* Before a map of so many is made. */
	if (args->channels > PA_CHANNELS_MAX || args->rate_hz > PA_RATE_MAX) {
		e = err_say(why, ERR_LIMIT, p->label, "%u channels at %u Hz: PulseAudio takes at most %u at %u Hz", args->channels, args->rate_hz, PA_CHANNELS_MAX,
			PA_RATE_MAX);
		goto out;
	}
	if (way == LIVE_PLAY) {
		p->spec.rate = args->rate_hz;
		p->spec.channels = (uint8_t)args->channels;
		p->spec.format = format_of(args->sample);
		map_of_mask(&p->map, args->wave_mask, args->channels);
	} else {
		uint64_t mask = args->channels ? track_usual_mask(args->channels) : mask_of_map(&p->map);
		if (args->sample != SAMPLE_CODED)
			p->spec.format = format_of(args->sample);
		p->spec.format = format_of(sample_of(p->spec.format));
		if (args->channels)
			p->spec.channels = (uint8_t)args->channels;
		/* In the order of the mask; a device without places is taken as it is. */
		if (mask || args->channels)
			map_of_mask(&p->map, mask, p->spec.channels);
		format->wave_mask = mask;
	}
	p->block_frames = args->block_frames ? args->block_frames : p->spec.rate * CAPTURE_BLOCK_MS / 1000;
	format->rate_hz = p->spec.rate;
	format->channels = p->spec.channels;
	format->sample = sample_of(p->spec.format);
	format->block_frames = p->block_frames;
	snprintf(format->device, sizeof(format->device), "%s", p->label);
out:
	if (e)
		pulse_close(p);
	else
		*state = p;
	return e;
}

/* Locked. */
static enum err start(struct pulse *p, struct err_why *why)
{
	struct server *s = &p->server;
	uint32_t frame_bytes = (uint32_t)p->spec.channels * track_sample_bytes(sample_of(p->spec.format));
	pa_buffer_attr attr = { (uint32_t)-1, (uint32_t)-1, (uint32_t)-1, (uint32_t)-1, (uint32_t)-1 };
	int flags = PA_STREAM_ADJUST_LATENCY | PA_STREAM_AUTO_TIMING_UPDATE | PA_STREAM_INTERPOLATE_TIMING | (p->device[0] ? PA_STREAM_DONT_MOVE : 0);
	const char *device = p->device[0] ? p->device : NULL;
	pa_stream_state_t state;
	int failed;

	p->stream = s->lib.stream_new(s->context, p->way == LIVE_CAPTURE ? "capture" : "play", &p->spec, &p->map);
	if (!p->stream)
		return err_say(why, ERR_DEVICE, p->label, "no stream of this format: %s", s->lib.strerror(s->lib.context_errno(s->context)));
	s->lib.stream_set_state_callback(p->stream, on_stream, p);
	if (p->way == LIVE_CAPTURE) {
		attr.fragsize = p->block_frames * frame_bytes;
		s->lib.stream_set_read_callback(p->stream, on_readable, p);
		failed = s->lib.stream_connect_record(p->stream, device, &attr, (pa_stream_flags_t)flags);
	} else {
		attr.tlength = (uint32_t)units_from_ns(p->latency_ns, p->spec.rate, 1) * frame_bytes;
		s->lib.stream_set_write_callback(p->stream, on_writable, p);
		failed = s->lib.stream_connect_playback(p->stream, device, &attr, (pa_stream_flags_t)flags, NULL, NULL);
	}
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS;
	while (!failed && (state = s->lib.stream_get_state(p->stream)) != PA_STREAM_READY) {
		if (!PA_STREAM_IS_GOOD(state) || !wait_some(s, limit_ns))
			failed = 1;
	}
	if (failed)
		return err_say(why, ERR_DEVICE, p->label, "does not start: %s", s->lib.strerror(s->lib.context_errno(s->context)));
	return ERR_OK;
}

static enum err pulse_record(void *state, struct livesource *to, struct err_why *why)
{
	struct pulse *p = state;

	p->server.lib.threaded_mainloop_lock(p->server.loop);
	p->to = to;
	enum err e = start(p, why);
	p->server.lib.threaded_mainloop_unlock(p->server.loop);
	return e;
}

static enum err pulse_play(void *state, struct livesink *from, struct err_why *why)
{
	struct pulse *p = state;

	p->server.lib.threaded_mainloop_lock(p->server.loop);
	p->from = from;
	enum err e = start(p, why);
	p->server.lib.threaded_mainloop_unlock(p->server.loop);
	return e;
}

static void pulse_drain(void *state)
{
	struct pulse *p = state;
	struct server *s = &p->server;
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS + p->latency_ns;

	s->lib.threaded_mainloop_lock(s->loop);
	pa_operation *o = s->lib.stream_drain(p->stream, on_drained, p);
	while (o && !p->drained && PA_STREAM_IS_GOOD(s->lib.stream_get_state(p->stream)) && wait_some(s, limit_ns))
		;
	if (o)
		s->lib.operation_unref(o);
	s->lib.threaded_mainloop_unlock(s->loop);
}

/* ---- the list ---- */

struct listing {
	struct server server;
	live_row_fn *row;
	void *user;
	char default_source[256], default_sink[256];
};

static void on_server(pa_context *context, const pa_server_info *info, void *user)
{
	struct listing *l = user;

	(void)context;
	if (info && info->default_source_name)
		snprintf(l->default_source, sizeof(l->default_source), "%s", info->default_source_name);
	if (info && info->default_sink_name)
		snprintf(l->default_sink, sizeof(l->default_sink), "%s", info->default_sink_name);
	l->server.lib.threaded_mainloop_signal(l->server.loop, 0);
}

static void tell(struct listing *l, bool is_source, const char *name, const char *text, const pa_sample_spec *spec)
{
	struct live_row r = { .captures = is_source, .plays = !is_source, .rate_hz = spec->rate, .channels = spec->channels };

	snprintf(r.name, sizeof(r.name), "pulse:%s", name);
	snprintf(r.text, sizeof(r.text), "%s", text ? text : "");
	r.is_default = !strcmp(name, is_source ? l->default_source : l->default_sink);
	l->row(l->user, &r);
}

static void on_each_source(pa_context *context, const pa_source_info *info, int end, void *user)
{
	struct listing *l = user;

	(void)context;
	if (!end)
		tell(l, true, info->name, info->description, &info->sample_spec);
	l->server.lib.threaded_mainloop_signal(l->server.loop, 0);
}

static void on_each_sink(pa_context *context, const pa_sink_info *info, int end, void *user)
{
	struct listing *l = user;

	(void)context;
	if (!end)
		tell(l, false, info->name, info->description, &info->sample_spec);
	l->server.lib.threaded_mainloop_signal(l->server.loop, 0);
}

static enum err pulse_list(live_row_fn *row, void *user, struct err_why *why)
{
	struct listing l = { .row = row, .user = user };
	struct server *s = &l.server;
	enum err e = server_open(s, "weir-list", why);

	if (!e) {
		s->lib.threaded_mainloop_lock(s->loop);
		bool done = finish(s, s->lib.context_get_server_info(s->context, on_server, &l)) &&
			finish(s, s->lib.context_get_source_info_list(s->context, on_each_source, &l)) &&
			finish(s, s->lib.context_get_sink_info_list(s->context, on_each_sink, &l));
		s->lib.threaded_mainloop_unlock(s->loop);
		if (!done)
			e = err_say(why, ERR_DEVICE, "pulse", "the server does not tell its devices");
	}
	server_release(s);
	return e;
}

const struct live_ops pulse_ops = {
	.scheme = "pulse",
	.title = "PulseAudio",
	.live_ns = UNITS_NS_PER_S / 25, /* the server takes it all at once, by timers of its own */
	.open = pulse_open,
	.record = pulse_record,
	.play = pulse_play,
	.drain = pulse_drain,
	.close = pulse_close,
	.list = pulse_list,
};
