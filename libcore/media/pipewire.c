/*
 * PipeWire: one stream, linked by the session manager to the node that was named, or to the default.
 *
 * A node is named by node.name or object.serial; of a sink, capture takes what it plays.  The server mixes in f32 at a
 * rate of its own, so capture asks for 48000 Hz and 2 channels unless it is told otherwise, and play for what the stream has.
 */
#include "base/role.h"
#include "base/units.h"
#include "media/chanmap.h"
#include "media/livesink.h"
#include "media/livesource.h"

#include <pipewire/pipewire.h>
#include <spa/param/audio/format-utils.h>
#include <spa/utils/result.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPTURE_RATE_HZ 48000u
#define CAPTURE_CHANNELS 2u
#define CAPTURE_BLOCK_FRAMES 512u
#define MAX_JUMP_FRAMES 480000 /* beyond that the clock of the graph is another */

#define FUNCTIONS(X) \
	X(init) X(thread_loop_new) X(thread_loop_destroy) X(thread_loop_start) X(thread_loop_stop) X(thread_loop_lock) X(thread_loop_unlock) \
	X(thread_loop_timed_wait) X(thread_loop_signal) X(thread_loop_get_loop) X(context_new) X(context_destroy) X(context_connect) \
	X(core_disconnect) X(proxy_destroy) X(properties_new_dict) X(stream_new) X(stream_destroy) X(stream_add_listener) X(stream_connect) \
	X(stream_dequeue_buffer) X(stream_queue_buffer) X(stream_get_time_n) X(stream_flush) X(stream_get_state)

struct library {
#define MEMBER(name) __typeof__(pw_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

struct server {
	struct library lib;
	struct pw_thread_loop *loop;
	struct pw_context *context;
	struct pw_core *core;
	struct spa_hook core_hook, registry_hook;
	struct pw_registry *registry;
	bool running, failed;
	int wanted_seq, done_seq;
	const volatile sig_atomic_t *stop;
	/* what the registry tells */
	void (*node)(void *user, const struct spa_dict *props);
	void (*lost)(void *user);
	void *user;
};

struct pipewire {
	struct server server;
	enum live_way way;
	char name[256];
	struct live_format format;
	uint32_t frame_bytes;
	int64_t latency_ns;
	char client[64];
	bool found, is_sink;
	struct pw_stream *stream;
	struct spa_hook stream_hook;
	struct livesource *to;
	struct livesink *from;
	bool quitting, streams;
	atomic_bool drained;
	/* the callback's */
	bool role_taken, all_written, have_ticks;
	uint32_t cycle_frames;    /* of the cycle before; 0 at first */
	uint64_t next_ticks;
};

static const struct {
	enum spa_audio_format theirs;
	enum sample ours;
} formats[] = {
	{ SPA_AUDIO_FORMAT_F32_LE, SAMPLE_F32 }, { SPA_AUDIO_FORMAT_S32_LE, SAMPLE_S32 }, { SPA_AUDIO_FORMAT_S24_LE, SAMPLE_S24 }, { SPA_AUDIO_FORMAT_S16_LE, SAMPLE_S16 },
};

/* By bit of the WAVE mask. */
static const uint32_t positions[CHANMAP_N_BITS] = {
	SPA_AUDIO_CHANNEL_FL, SPA_AUDIO_CHANNEL_FR, SPA_AUDIO_CHANNEL_FC, SPA_AUDIO_CHANNEL_LFE, SPA_AUDIO_CHANNEL_RL, SPA_AUDIO_CHANNEL_RR,
	SPA_AUDIO_CHANNEL_FLC, SPA_AUDIO_CHANNEL_FRC, SPA_AUDIO_CHANNEL_RC, SPA_AUDIO_CHANNEL_SL, SPA_AUDIO_CHANNEL_SR, SPA_AUDIO_CHANNEL_TC,
	SPA_AUDIO_CHANNEL_TFL, SPA_AUDIO_CHANNEL_TFC, SPA_AUDIO_CHANNEL_TFR, SPA_AUDIO_CHANNEL_TRL, SPA_AUDIO_CHANNEL_TRC, SPA_AUDIO_CHANNEL_TRR,
};

/* ---- the server ---- */

static void on_done(void *user, uint32_t id, int seq)
{
	struct server *s = user;

	(void)id;
	s->done_seq = seq;
	s->lib.thread_loop_signal(s->loop, false);
}

static void on_error(void *user, uint32_t id, int seq, int res, const char *message)
{
	struct server *s = user;

	(void)seq;
	(void)message;
	if (id == PW_ID_CORE && res == -EPIPE) {
		s->failed = true;
		if (s->lost)
			s->lost(s->user);
	}
	s->lib.thread_loop_signal(s->loop, false);
}

static const struct pw_core_events core_events = {
	.version = PW_VERSION_CORE_EVENTS,
	.done = on_done,
	.error = on_error,
};

static void on_global(void *user, uint32_t id, uint32_t permissions, const char *type, uint32_t version, const struct spa_dict *props)
{
	struct server *s = user;

	(void)id;
	(void)permissions;
	(void)version;
	if (props && s->node && !strcmp(type, PW_TYPE_INTERFACE_Node))
		s->node(s->user, props);
}

static const struct pw_registry_events registry_events = {
	.version = PW_VERSION_REGISTRY_EVENTS,
	.global = on_global,
};

/* Locked: wait a little.  Returns: false when there is no more time, or a stop was asked for. */
static bool wait_some(struct server *s, int64_t limit_ns)
{
	if ((s->stop && *s->stop) || s->failed || clock_now_ns() >= limit_ns)
		return false;
	(void)s->lib.thread_loop_timed_wait(s->loop, 1);
	return true;
}

static void server_release(struct server *s)
{
	if (s->running)
		s->lib.thread_loop_stop(s->loop);
	if (s->registry)
		s->lib.proxy_destroy((struct pw_proxy *)s->registry);
	if (s->core) {
		spa_hook_remove(&s->core_hook);
		s->lib.core_disconnect(s->core);
	}
	if (s->context)
		s->lib.context_destroy(s->context);
	if (s->loop)
		s->lib.thread_loop_destroy(s->loop);
	s->running = false;
	s->registry = NULL;
	s->core = NULL;
	s->context = NULL;
	s->loop = NULL;
}

/* Connected, and everything the registry tells at first has been handed to s->node. */
static enum err server_open(struct server *s, struct err_why *why)
{
#define SYMBOL(n) { "pw_" #n, &s->lib.n },
	const struct live_symbol symbols[] = { FUNCTIONS(SYMBOL) };
#undef SYMBOL
	enum err e = live_load("libpipewire-0.3.so.0", "libpipewire-0.3-0", symbols, ARRAY_LEN(symbols), why);

	if (e)
		return e;
	s->lib.init(NULL, NULL);
	s->loop = s->lib.thread_loop_new("weir", NULL);
	s->context = s->loop ? s->lib.context_new(s->lib.thread_loop_get_loop(s->loop), NULL, 0) : NULL;
	if (!s->context)
		return err_say(why, ERR_DEVICE, "pipewire", "the library does not start: are its files installed?");
	s->core = s->lib.context_connect(s->context, NULL, 0);
	if (!s->core)
		return err_say(why, ERR_DEVICE, "pipewire", "no PipeWire server answers");
	pw_core_add_listener(s->core, &s->core_hook, &core_events, s);
	s->registry = pw_core_get_registry(s->core, PW_VERSION_REGISTRY, 0);
	if (!s->registry)
		return err_say(why, ERR_DEVICE, "pipewire", "no PipeWire server answers");
	pw_registry_add_listener(s->registry, &s->registry_hook, &registry_events, s);
	s->done_seq = -1;
	s->wanted_seq = pw_core_sync(s->core, PW_ID_CORE, 0);
	if (s->lib.thread_loop_start(s->loop))
		return err_say(why, ERR_DEVICE, "pipewire", "no thread for it");
	s->running = true;
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS;
	s->lib.thread_loop_lock(s->loop);
	while (s->done_seq != s->wanted_seq && wait_some(s, limit_ns))
		;
	if (s->done_seq != s->wanted_seq)
		e = err_say(why, ERR_DEVICE, "pipewire", "no PipeWire server answers");
	s->lib.thread_loop_unlock(s->loop);
	return e;
}

/* ---- the callbacks ---- */

static void gone(struct pipewire *p, const char *text)
{
	if (p->quitting)
		return;
	if (p->to)
		livesource_gone(p->to, text);
	if (p->from)
		livesink_gone(p->from, text);
}

static void on_lost(void *user)
{
	gone(user, "the PipeWire server has ended");
}

static void on_state(void *user, enum pw_stream_state old, enum pw_stream_state state, const char *error)
{
	struct pipewire *p = user;

	(void)error;
	p->streams |= state == PW_STREAM_STATE_STREAMING;
	if (state == PW_STREAM_STATE_ERROR || (state == PW_STREAM_STATE_UNCONNECTED && old != state))
		gone(p, p->server.failed ? "the PipeWire server has ended" : "the device went away");
	p->server.lib.thread_loop_signal(p->server.loop, false);
}

static void capture_buffer(struct pipewire *p, const struct spa_data *d)
{
	const struct library *lib = &p->server.lib;
	struct pw_time t = { 0 };
	uint32_t n = d->chunk->size / p->frame_bytes;
	int64_t ns = clock_now_ns();

	if (!d->data || d->chunk->offset > d->maxsize || d->chunk->size > d->maxsize - d->chunk->offset || !n)
		return;
	p->cycle_frames = n;
	if (!lib->stream_get_time_n(p->stream, &t, sizeof(t)) && t.rate.denom) {
		/* A graph at our rate counts in our frames: what it counted and we did not get is lost. */
		int64_t jump = p->have_ticks ? (int64_t)(t.ticks - p->next_ticks) : 0;

		if (t.rate.denom == p->format.rate_hz && jump > 0 && jump < MAX_JUMP_FRAMES)
			livesource_lose(p->to, (uint64_t)jump);
		p->have_ticks = true;
		p->next_ticks = t.ticks + n;
		if (t.now > 0)
			ns = t.now - t.delay * UNITS_NS_PER_S * t.rate.num / t.rate.denom;
	}
	livesource_push(p->to, (const uint8_t *)d->data + d->chunk->offset, n, ns - (int64_t)n * UNITS_NS_PER_S / p->format.rate_hz);
}

static void play_buffer(struct pipewire *p, struct spa_data *d, uint64_t requested)
{
	uint32_t want = d->maxsize / p->frame_bytes, got = 0;

	if (requested && requested < want)
		want = (uint32_t)requested;
	p->cycle_frames = want;
	if (d->data && !p->all_written) {
		got = livesink_pull(p->from, d->data, want);
		p->all_written = got < want || atomic_load_explicit(&p->from->drained, memory_order_relaxed);
		/* A buffer that is short is not heard: the silence behind the end goes with it. */
		got = got ? want : 0;
	}
	d->chunk->offset = 0;
	d->chunk->stride = (int32_t)p->frame_bytes;
	d->chunk->size = got * p->frame_bytes;
}

static void on_process(void *user)
{
	struct pipewire *p = user;
	const struct library *lib = &p->server.lib;
	struct tick *t = p->to ? atomic_load_explicit(&p->to->tick, memory_order_relaxed) : atomic_load_explicit(&p->from->tick, memory_order_relaxed);
	struct pw_buffer *b;

	if (!p->role_taken)
		live_begin_deadline("pipewire", false, p->to ? &p->to->scheduling : &p->from->scheduling);
	p->role_taken = true;
	if (p->cycle_frames)
		tick_begin(t, (int64_t)p->cycle_frames * UNITS_NS_PER_S / p->format.rate_hz);
	if (p->way == LIVE_PLAY) {
		if (!p->all_written && (b = lib->stream_dequeue_buffer(p->stream))) {
			play_buffer(p, &b->buffer->datas[0], b->requested);
			lib->stream_queue_buffer(p->stream, b);
		}
	} else {
		while ((b = lib->stream_dequeue_buffer(p->stream))) {
			capture_buffer(p, &b->buffer->datas[0]);
			lib->stream_queue_buffer(p->stream, b);
		}
	}
	tick_end(t);
}

static void on_drained(void *user)
{
	struct pipewire *p = user;

	atomic_store(&p->drained, true);
	p->server.lib.thread_loop_signal(p->server.loop, false);
}

static const struct pw_stream_events stream_events = {
	.version = PW_VERSION_STREAM_EVENTS,
	.state_changed = on_state,
	.process = on_process,
	.drained = on_drained,
};

/* ---- the adapter ---- */

static void on_node(void *user, const struct spa_dict *props)
{
	struct pipewire *p = user;
	const char *name = spa_dict_lookup(props, PW_KEY_NODE_NAME), *serial = spa_dict_lookup(props, PW_KEY_OBJECT_SERIAL);
	const char *class = spa_dict_lookup(props, PW_KEY_MEDIA_CLASS);

	if ((name && !strcmp(name, p->name)) || (serial && !strcmp(serial, p->name))) {
		p->found = true;
		p->is_sink = class && strstr(class, "Sink");
	}
}

static void pipewire_close(void *state)
{
	struct pipewire *p = state;
	struct server *s = &p->server;

	p->quitting = true;
	if (p->stream) {
		s->lib.thread_loop_lock(s->loop);
		spa_hook_remove(&p->stream_hook);
		s->lib.stream_destroy(p->stream);
		s->lib.thread_loop_unlock(s->loop);
	}
	server_release(s);
	free(p);
}

static enum err pipewire_open(void **state, enum live_way way, const struct live_args *args, struct live_format *format, struct err_why *why)
{
	struct pipewire *p = calloc(1, sizeof(*p));
	enum err e;

	if (!p)
		return err_say(why, ERR_NOMEM, "pipewire", "%s", err_text(ERR_NOMEM));
	p->way = way;
	p->latency_ns = args->latency_ns;
	p->server.stop = args->stop;
	p->server.node = on_node;
	p->server.lost = on_lost;
	p->server.user = p;
	snprintf(p->name, sizeof(p->name), "%s", args->name);
	snprintf(p->client, sizeof(p->client), "%s", args->client);
	snprintf(p->format.device, sizeof(p->format.device), "pipewire%s%.240s", args->name[0] ? ":" : "", args->name);
	if ((e = server_open(&p->server, why)))
		goto out;
	if (p->name[0] && !p->found) {
		e = err_say(why, ERR_DEVICE, p->format.device, "the server has no such node; capture --list shows them");
		goto out;
	}
	p->format.rate_hz = args->rate_hz ? args->rate_hz : CAPTURE_RATE_HZ;
	p->format.channels = args->channels ? args->channels : CAPTURE_CHANNELS;
	if (p->format.channels > SPA_AUDIO_MAX_CHANNELS) {
		e = err_say(why, ERR_LIMIT, p->format.device, "%u channels: PipeWire takes at most %u", p->format.channels, SPA_AUDIO_MAX_CHANNELS);
		goto out;
	}
	p->format.sample = args->sample == SAMPLE_S16 || args->sample == SAMPLE_S24 || args->sample == SAMPLE_S32 ? args->sample : SAMPLE_F32;
	p->format.wave_mask = way == LIVE_PLAY ? args->wave_mask : track_usual_mask(p->format.channels);
	p->format.clock = "pipewire"; /* that of the graph: what has another is resampled by the server */
	p->format.block_frames = args->block_frames ? args->block_frames : CAPTURE_BLOCK_FRAMES;
	p->frame_bytes = p->format.channels * track_sample_bytes(p->format.sample);
	*format = p->format;
out:
	if (e)
		pipewire_close(p);
	else
		*state = p;
	return e;
}

static void fill_format(const struct pipewire *p, struct spa_audio_info_raw *info)
{
	unsigned n = 0;

	*info = (struct spa_audio_info_raw){ .rate = p->format.rate_hz, .channels = p->format.channels };
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].ours == p->format.sample)
			info->format = formats[i].theirs;
	}
	for (unsigned bit = 0; bit < CHANMAP_N_BITS && n < p->format.channels; bit++) {
		if (p->format.wave_mask >> bit & 1)
			info->position[n++] = positions[bit];
	}
	for (unsigned i = 0; n < p->format.channels; i++)
		info->position[n++] = SPA_AUDIO_CHANNEL_AUX0 + i;
	if (p->format.channels == 1)
		info->position[0] = SPA_AUDIO_CHANNEL_MONO;
}

/* Locked. */
static enum err start(struct pipewire *p, struct err_why *why)
{
	struct server *s = &p->server;
	char latency[48];
	struct spa_dict_item items[8];
	uint32_t n = 0;
	uint8_t bytes[1024];
	struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(bytes, sizeof(bytes));
	struct spa_audio_info_raw info;
	const struct spa_pod *params[1];
	int64_t block = p->way == LIVE_PLAY ? units_from_ns(p->latency_ns / 2, p->format.rate_hz, 1) : p->format.block_frames;

	snprintf(latency, sizeof(latency), "%lld/%u", (long long)(block > 0 ? block : 1), p->format.rate_hz);
	items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_MEDIA_TYPE, "Audio");
	items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_MEDIA_CATEGORY, p->way == LIVE_PLAY ? "Playback" : "Capture");
	items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_NODE_NAME, p->client);
	items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_NODE_LATENCY, latency);
	if (p->name[0]) {
		items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_TARGET_OBJECT, p->name);
		items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_NODE_DONT_RECONNECT, "true");
	}
	if (p->way == LIVE_CAPTURE && p->is_sink)
		items[n++] = SPA_DICT_ITEM_INIT(PW_KEY_STREAM_CAPTURE_SINK, "true");
	struct spa_dict dict = SPA_DICT_INIT(items, n);
	p->stream = s->lib.stream_new(s->core, p->client, s->lib.properties_new_dict(&dict));
	if (!p->stream)
		return err_say(why, ERR_DEVICE, p->format.device, "the server gives no stream");
	s->lib.stream_add_listener(p->stream, &p->stream_hook, &stream_events, p);
	fill_format(p, &info);
	params[0] = spa_format_audio_raw_build(&builder, SPA_PARAM_EnumFormat, &info);
	int res = s->lib.stream_connect(p->stream, p->way == LIVE_PLAY ? PW_DIRECTION_OUTPUT : PW_DIRECTION_INPUT, PW_ID_ANY,
		(enum pw_stream_flags)(PW_STREAM_FLAG_AUTOCONNECT | PW_STREAM_FLAG_MAP_BUFFERS | PW_STREAM_FLAG_RT_PROCESS), params, 1);
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS;
	while (res >= 0 && !p->streams && s->lib.stream_get_state(p->stream, NULL) != PW_STREAM_STATE_ERROR && wait_some(s, limit_ns))
		;
	if (!p->streams && !(s->stop && *s->stop))
		return err_say(why, ERR_DEVICE, p->format.device, "does not start: %s", res < 0 ? spa_strerror(res) : "no session manager links it to a device");
	return ERR_OK;
}

static enum err pipewire_record(void *state, struct livesource *to, struct err_why *why)
{
	struct pipewire *p = state;

	p->server.lib.thread_loop_lock(p->server.loop);
	p->to = to;
	enum err e = start(p, why);
	p->server.lib.thread_loop_unlock(p->server.loop);
	return e;
}

static enum err pipewire_play(void *state, struct livesink *from, struct err_why *why)
{
	struct pipewire *p = state;

	p->server.lib.thread_loop_lock(p->server.loop);
	p->from = from;
	enum err e = start(p, why);
	p->server.lib.thread_loop_unlock(p->server.loop);
	return e;
}

static void pipewire_drain(void *state)
{
	struct pipewire *p = state;
	struct server *s = &p->server;
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS + p->latency_ns;

	s->lib.thread_loop_lock(s->loop);
	(void)s->lib.stream_flush(p->stream, true);
	while (!atomic_load(&p->drained) && wait_some(s, limit_ns))
		;
	s->lib.thread_loop_unlock(s->loop);
}

/* ---- the list ---- */

struct listing {
	struct server server;
	live_row_fn *row;
	void *user;
};

static void on_each_node(void *user, const struct spa_dict *props)
{
	struct listing *l = user;
	const char *class = spa_dict_lookup(props, PW_KEY_MEDIA_CLASS), *name = spa_dict_lookup(props, PW_KEY_NODE_NAME);
	const char *text = spa_dict_lookup(props, PW_KEY_NODE_DESCRIPTION);
	struct live_row r = { 0 };

	if (!class || !name || strncmp(class, "Audio/", 6))
		return;
	r.plays = strstr(class, "Sink") || strstr(class, "Duplex");
	r.captures = true; /* a sink is captured by what it plays */
	snprintf(r.name, sizeof(r.name), "pipewire:%s", name);
	snprintf(r.text, sizeof(r.text), "%s", text ? text : "");
	l->row(l->user, &r);
}

static enum err pipewire_list(live_row_fn *row, void *user, struct err_why *why)
{
	struct listing l = { .row = row, .user = user };

	l.server.node = on_each_node;
	l.server.user = &l;
	enum err e = server_open(&l.server, why);
	server_release(&l.server);
	return e;
}

const struct live_ops pipewire_ops = {
	.scheme = "pipewire",
	.title = "PipeWire",
	.live_ns = 3 * UNITS_NS_PER_S / 100, /* a quantum is half of it at most */
	.open = pipewire_open,
	.record = pipewire_record,
	.play = pipewire_play,
	.drain = pipewire_drain,
	.close = pipewire_close,
	.list = pipewire_list,
};
