/*
 * JACK: one f32 port a channel.
 *
 *   capture jack:                  the physical inputs          play jack:          the physical outputs
 *   capture jack:NAME[,NAME…]      each an output port, or a client (all its outputs); likewise the inputs for play
 *   -                              no connections: somebody else makes them
 *
 * The place of a block is JACK's own frame counter, so that an xrun is a hole of exactly the cycles it cost.  The counter is
 * the server's, and a callback that comes late reads that of the cycle after its own: a jump counts only when the next
 * callback still sees it, so the hole may stand one cycle behind its place.
 */
#include "base/cpu.h"
#include "base/role.h"
#include "base/units.h"
#include "dsp/dsp.h"
#include "media/livesink.h"
#include "media/livesource.h"

#include <jack/jack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_CYCLES 2u /* after the connections are made */
#define READING_US 20  /* of two clocks one after the other: no more than that */

#define FUNCTIONS(X) \
	X(client_open) X(client_close) X(get_client_name) X(activate) X(deactivate) X(set_process_callback) X(on_info_shutdown) \
	X(get_sample_rate) X(get_buffer_size) X(port_register) X(port_get_buffer) X(port_name) X(port_connected) X(connect) X(get_ports) \
	X(port_by_name) X(port_flags) X(port_get_latency_range) X(last_frame_time) X(get_cycle_times) X(get_time) X(free) X(set_error_function) X(set_info_function) \
	X(set_xrun_callback)

struct library {
#define MEMBER(name) __typeof__(jack_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

struct jack {
	struct library lib;
	jack_client_t *client;
	enum live_way way;
	unsigned channels;
	jack_port_t **ports;
	float **planes;
	char **targets;           /* the other end of each, NULL none; NULL-ended list */
	unsigned n_targets;
	uint32_t rate_hz;
	struct dsp dsp;
	/* the callback's */
	struct livesource *to;
	struct livesink *from;
	atomic_bool go;           /* the connections are made */
	unsigned warm_cycles;
	bool running;
	jack_nframes_t next_frame;
	int32_t suspect_frames;   /* a jump that was seen once */
	int64_t clock_ahead_ns;   /* what CLOCK_MONOTONIC shows more than JACK's clock */
	bool knows_clock, role_taken;
	atomic_uint idle_cycles;  /* since everything was played */
	bool active;
};

/* The server's library prints by itself, also when all is well. */
static void say_nothing(const char *text)
{
	(void)text;
}

static enum err load(struct library *lib, struct err_why *why)
{
#define SYMBOL(n) { "jack_" #n, &lib->n },
	const struct live_symbol symbols[] = { FUNCTIONS(SYMBOL) };
#undef SYMBOL
	enum err e = live_load("libjack.so.0", "libjack-jackd2-0", symbols, ARRAY_LEN(symbols), why);

	if (!e) {
		lib->set_error_function(say_nothing);
		lib->set_info_function(say_nothing);
	}
	return e;
}

static enum err connect_server(struct library *lib, const char *name, jack_client_t **client, struct err_why *why)
{
	jack_status_t status = 0;

	*client = lib->client_open(name, JackNoStartServer, &status);
	if (*client)
		return ERR_OK;
	if (status & JackVersionError)
		return err_say(why, ERR_DEVICE, "jack", "the server speaks another version of the protocol");
	return err_say(why, ERR_DEVICE, "jack", "no JACK server answers");
}

/* ---- the deadline ---- */

static void on_shutdown(jack_status_t code, const char *reason, void *user)
{
	struct jack *j = user;
	const char *text = code & JackClientZombie ? "the JACK server put us out" : "the JACK server has ended";

	(void)reason;

	if (j->to)
		livesource_gone(j->to, text);
	if (j->from)
		livesink_gone(j->from, text);
}

static int on_xrun(void *user)
{
	struct jack *j = user;

	if (j->to && atomic_load(&j->go))
		livesource_warn(j->to);
	return 0;
}

/*
 * When the cycle began.  JACK's clock is one that nobody slews (CLOCK_MONOTONIC_RAW): after days the two are seconds apart.
 * Both are read, one in the middle of the other; a reading that was interrupted does not count.
 */
static WEIR_DEADLINE int64_t cycle_begin_ns(struct jack *j)
{
	jack_nframes_t frame;
	jack_time_t begin_us, next_us;
	float period_us;
	int64_t before_us = (int64_t)j->lib.get_time(), now_ns = clock_now_ns(), after_us = (int64_t)j->lib.get_time();

	if (!j->knows_clock || after_us - before_us <= READING_US)
		j->clock_ahead_ns = now_ns - (before_us + after_us) * 1000 / 2;
	j->knows_clock = true;
	if (j->lib.get_cycle_times(j->client, &frame, &begin_us, &next_us, &period_us))
		return now_ns;
	return (int64_t)begin_us * 1000 + j->clock_ahead_ns;
}

static WEIR_DEADLINE void capture_cycle(struct jack *j, jack_nframes_t n_frames)
{
	jack_nframes_t at = j->lib.last_frame_time(j->client);
	int32_t jump = j->running ? (int32_t)(at - j->next_frame) : 0;

	if (!j->running || (jump && jump == j->suspect_frames)) {
		if (jump > 0)
			livesource_lose(j->to, (uint64_t)jump);
		j->next_frame = at;
		jump = 0;
	}
	j->suspect_frames = jump;
	if (!j->running)
		livesource_count_from(j->to, at);
	j->running = true;
	j->next_frame += n_frames;
	uint8_t *to = livesource_begin(j->to, n_frames);
	if (!to)
		return;
	for (unsigned c = 0; c < j->channels; c++)
		j->planes[c] = j->lib.port_get_buffer(j->ports[c], n_frames);
	j->dsp.join((float *)(void *)to, (const float *const *)j->planes, j->channels, n_frames);
	/* What a cycle brings was captured in the period before it. */
	livesource_commit(j->to, n_frames, cycle_begin_ns(j) - (int64_t)n_frames * UNITS_NS_PER_S / j->rate_hz);
}

static WEIR_DEADLINE void play_cycle(struct jack *j, jack_nframes_t n_frames, bool go)
{
	const uint8_t *frames = NULL;
	uint32_t n = go ? livesink_begin(j->from, n_frames, &frames) : 0;

	for (unsigned c = 0; c < j->channels; c++)
		j->planes[c] = j->lib.port_get_buffer(j->ports[c], n_frames);
	if (n)
		j->dsp.split(j->planes, (const float *)(const void *)frames, j->channels, n);
	for (unsigned c = 0; c < j->channels && n < n_frames; c++)
		memset(j->planes[c] + n, 0, (n_frames - n) * sizeof(float));
	if (go && !livesink_commit(j->from, n_frames, n))
		atomic_fetch_add_explicit(&j->idle_cycles, 1, memory_order_relaxed);
}

static int on_cycle(jack_nframes_t n_frames, void *user)
{
	struct jack *j = user;
	bool go = atomic_load_explicit(&j->go, memory_order_acquire);
	/* By when the cycles before came: what the server calculates of its own cycle is smooth, and says nothing of this one. */
	struct tick *t = j->to ? atomic_load_explicit(&j->to->tick, memory_order_relaxed) : atomic_load_explicit(&j->from->tick, memory_order_relaxed);

	/* In the first cycle, and not where the library offers it: that is called on others of its threads, too. */
	if (!j->role_taken)
		live_begin_deadline("jack", false, j->to ? &j->to->scheduling : &j->from->scheduling);
	j->role_taken = true;
	tick_begin(t, (int64_t)n_frames * UNITS_NS_PER_S / j->rate_hz);
	/* A connection counts from the next cycle on. */
	if (go && j->warm_cycles < WARM_CYCLES) {
		j->warm_cycles++;
		go = false;
	}
	if (j->from)
		play_cycle(j, n_frames, go);
	else if (go)
		capture_cycle(j, n_frames);
	tick_end(t);
	return 0;
}

/* ---- ports ---- */

static enum err add_target(struct jack *j, const char *name)
{
	char **more = realloc(j->targets, (j->n_targets + 1) * sizeof(*more));

	if (!more)
		return ERR_NOMEM;
	j->targets = more;
	j->targets[j->n_targets] = strdup(name);
	return j->targets[j->n_targets] ? (j->n_targets++, ERR_OK) : ERR_NOMEM;
}

/* All ports of one item of the name: a port, or a client. */
static enum err find_item(struct jack *j, const char *item, unsigned long flags, struct err_why *why)
{
	const char **all = j->lib.get_ports(j->client, NULL, JACK_DEFAULT_AUDIO_TYPE, flags);
	size_t n = strlen(item);
	unsigned before = j->n_targets;
	enum err e = ERR_OK;

	for (const char **p = all; p && *p && !e; p++) {
		if (!strcmp(*p, item) || (!strncmp(*p, item, n) && (*p)[n] == ':'))
			e = add_target(j, *p);
	}
	if (all)
		j->lib.free(all);
	if (e)
		return err_say(why, e, "jack", "%s", err_text(e));
	if (j->n_targets == before)
		return err_say(why, ERR_DEVICE, "jack", "no %s port or client '%s'; capture --list shows them",
			flags & JackPortIsOutput ? "output" : "input", item);
	return ERR_OK;
}

static enum err find_targets(struct jack *j, const char *name, struct err_why *why)
{
	unsigned long flags = j->way == LIVE_CAPTURE ? JackPortIsOutput : JackPortIsInput;
	enum err e = ERR_OK;

	if (!strcmp(name, "-"))
		return ERR_OK;
	if (!name[0]) {
		const char **all = j->lib.get_ports(j->client, NULL, JACK_DEFAULT_AUDIO_TYPE, flags | JackPortIsPhysical);
		for (const char **p = all; p && *p && !e; p++)
			e = add_target(j, *p);
		if (all)
			j->lib.free(all);
		return e ? err_say(why, e, "jack", "%s", err_text(e)) : ERR_OK;
	}
	while (!e && *name) {
		size_t n = strcspn(name, ",");
		char item[320];

		snprintf(item, sizeof(item), "%.*s", (int)n, name);
		e = find_item(j, item, flags, why);
		name += n + (name[n] == ',');
	}
	return e;
}

static enum err make_ports(struct jack *j, struct err_why *why)
{
	unsigned long flags = j->way == LIVE_CAPTURE ? JackPortIsInput : JackPortIsOutput;

	j->ports = calloc(j->channels, sizeof(*j->ports));
	j->planes = calloc(j->channels, sizeof(*j->planes));
	if (!j->ports || !j->planes)
		return err_say(why, ERR_NOMEM, "jack", "%s", err_text(ERR_NOMEM));
	for (unsigned c = 0; c < j->channels; c++) {
		char name[32];

		snprintf(name, sizeof(name), "%s_%u", j->way == LIVE_CAPTURE ? "in" : "out", c + 1);
		j->ports[c] = j->lib.port_register(j->client, name, JACK_DEFAULT_AUDIO_TYPE, flags, 0);
		if (!j->ports[c])
			return err_say(why, ERR_DEVICE, "jack", "the server has no room for port %u of %u", c + 1, j->channels);
	}
	return ERR_OK;
}

/* Returns once the connections are in force. */
static enum err connect_ports(struct jack *j, struct err_why *why)
{
	unsigned n = j->n_targets < j->channels ? j->n_targets : j->channels;

	for (unsigned c = 0; c < n; c++) {
		const char *mine = j->lib.port_name(j->ports[c]);
		int failed = j->way == LIVE_CAPTURE ? j->lib.connect(j->client, j->targets[c], mine) : j->lib.connect(j->client, mine, j->targets[c]);

		if (failed)
			return err_say(why, ERR_DEVICE, "jack", "%s cannot be connected", j->targets[c]);
	}
	/* Waits for the change of the graph. */
	for (unsigned c = 0; c < n; c++)
		(void)j->lib.port_connected(j->ports[c]);
	return ERR_OK;
}

/* ---- the adapter ---- */

static void jack_close(void *state)
{
	struct jack *j = state;

	if (j->active)
		j->lib.deactivate(j->client);
	if (j->client)
		j->lib.client_close(j->client);
	for (unsigned i = 0; i < j->n_targets; i++)
		free(j->targets[i]);
	free(j->targets);
	free(j->ports);
	free(j->planes);
	free(j);
}

static enum err jack_open(void **state, enum live_way way, const struct live_args *args, struct live_format *format, struct err_why *why)
{
	struct jack *j = calloc(1, sizeof(*j));
	enum err e;

	if (!j)
		return err_say(why, ERR_NOMEM, "jack", "%s", err_text(ERR_NOMEM));
	j->way = way;
	dsp_init(&j->dsp, cpu_flags());
	if ((e = load(&j->lib, why)) || (e = connect_server(&j->lib, args->client, &j->client, why)) || (e = find_targets(j, args->name, why)))
		goto out;
	j->rate_hz = j->lib.get_sample_rate(j->client);
	j->channels = args->channels ? args->channels : j->n_targets;
	if (!j->channels) {
		e = err_say(why, ERR_DEVICE, "jack", "the server has no physical inputs: name ports, or say with -c how many to make");
		goto out;
	}
	if (j->channels > TRACK_MAX_CHANNELS) {
		e = err_say(why, ERR_LIMIT, "jack", "%u channels are too many (1 to %u)", j->channels, TRACK_MAX_CHANNELS);
		goto out;
	}
	if (way == LIVE_PLAY && args->rate_hz != j->rate_hz) {
		e = err_say(why, ERR_DEVICE, "jack", "the server runs at %u Hz and the stream at %u: put `weir resample -r %u` in front", j->rate_hz,
			args->rate_hz, j->rate_hz);
		goto out;
	}
	if ((e = make_ports(j, why)))
		goto out;
	*format = (struct live_format){ .rate_hz = j->rate_hz, .channels = (uint16_t)j->channels, .sample = SAMPLE_F32, .block_frames = j->lib.get_buffer_size(j->client), .clock = "jack" };
	format->wave_mask = j->channels <= 2 ? track_usual_mask(j->channels) : 0;
	snprintf(format->device, sizeof(format->device), "jack:%.240s", args->name);
	if (!args->name[0])
		snprintf(format->device, sizeof(format->device), "jack");
	if (way == LIVE_PLAY && j->n_targets && j->n_targets < j->channels)
		snprintf(format->note, sizeof(format->note), "%u channels and %u ports to connect them to", j->channels, j->n_targets);
	j->lib.set_process_callback(j->client, on_cycle, j);
	j->lib.on_info_shutdown(j->client, on_shutdown, j);
	j->lib.set_xrun_callback(j->client, on_xrun, j);
out:
	if (e)
		jack_close(j);
	else
		*state = j;
	return e;
}

static enum err start(struct jack *j, struct err_why *why)
{
	enum err e;

	if (j->lib.activate(j->client))
		return err_say(why, ERR_DEVICE, "jack", "the server does not let us run");
	j->active = true;
	if ((e = connect_ports(j, why)))
		return e;
	atomic_store_explicit(&j->go, true, memory_order_release);
	return ERR_OK;
}

static enum err jack_record(void *state, struct livesource *to, struct err_why *why)
{
	struct jack *j = state;

	j->to = to;
	return start(j, why);
}

static enum err jack_play(void *state, struct livesink *from, struct err_why *why)
{
	struct jack *j = state;

	j->from = from;
	return start(j, why);
}

/* What the last cycle got is heard after the latency of the ports, and one cycle for those who listen. */
static void jack_drain(void *state)
{
	struct jack *j = state;
	jack_latency_range_t range = { 0, 0 };
	unsigned cycle = j->lib.get_buffer_size(j->client);
	int64_t limit_ns;

	if (j->channels)
		j->lib.port_get_latency_range(j->ports[0], JackPlaybackLatency, &range);
	unsigned cycles = range.max / (cycle ? cycle : 1) + 2;
	limit_ns = clock_now_ns() + (int64_t)(cycles + 2) * cycle * UNITS_NS_PER_S / j->rate_hz + UNITS_NS_PER_S;
	while (atomic_load(&j->idle_cycles) < cycles && clock_now_ns() < limit_ns && !atomic_load(&j->from->gone))
		wake_wait(&j->from->wake, UNITS_NS_PER_S / 10);
}

static enum err jack_list(live_row_fn *row, void *user, struct err_why *why)
{
	struct library lib;
	jack_client_t *client;
	enum err e;

	if ((e = load(&lib, why)) || (e = connect_server(&lib, "weir-list", &client, why)))
		return e;
	const char **all = lib.get_ports(client, NULL, JACK_DEFAULT_AUDIO_TYPE, 0);
	struct live_row r = { .rate_hz = lib.get_sample_rate(client), .text = "physical ports", .is_default = true, .captures = true, .plays = true };
	snprintf(r.name, sizeof(r.name), "jack:");
	row(user, &r);
	/* A client is what stands in front of the colon: one row for each, its ports counted. */
	for (const char **p = all; p && *p; p++) {
		size_t n = strcspn(*p, ":");
		unsigned outputs = 0, inputs = 0;
		bool seen = false;

		for (const char **q = all; *q; q++) {
			if (strncmp(*q, *p, n + 1))
				continue;
			seen |= q < p;
			jack_port_t *port = lib.port_by_name(client, *q);
			bool is_output = port && lib.port_flags(port) & JackPortIsOutput;
			outputs += is_output;
			inputs += !is_output;
		}
		if (seen)
			continue;
		r = (struct live_row){ .rate_hz = r.rate_hz, .captures = outputs, .plays = inputs, .channels = (uint16_t)(outputs > inputs ? outputs : inputs) };
		snprintf(r.name, sizeof(r.name), "jack:%.*s", (int)n, *p);
		snprintf(r.text, sizeof(r.text), "%u outputs, %u inputs", outputs, inputs);
		row(user, &r);
	}
	if (all)
		lib.free(all);
	lib.client_close(client);
	return ERR_OK;
}

const struct live_ops jack_ops = {
	.scheme = "jack",
	.title = "JACK",
	.live_ns = UNITS_NS_PER_S / 50, /* it holds nothing, and its periods are kept to */
	.open = jack_open,
	.record = jack_record,
	.play = jack_play,
	.drain = jack_drain,
	.close = jack_close,
	.list = jack_list,
};
