#include "leg/hearing.h"

#include "base/units.h"
#include "rt/clock.h"
#include "leg/hearingflood.h"
#include "leg/hearingkeys.h"
#include "leg/hearinglink.h"
#include "leg/hearingsource.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#define BLOCK_NS 2500000
#define BLOCK_PARTS 4          /* of a short latency */
#define LEAST_BLOCK_NS 500000
#define COUNT_NS (UNITS_NS_PER_S / 20)
#define N_SLOTS 1024u
#define REPLAY_START_NS UNITS_NS_PER_S     /* of the recording's clock: not zero, which means never */
#define REPLAY_REST_NS (20 * UNITS_NS_PER_S) /* what may still be played when it is over */

static int64_t time_ns(const struct opt_time *t)
{
	return t->is_frames ? units_to_ns(t->value, 48000, 1) : t->value;
}
/* ---- commands ---- */

static void fact(struct hooks_event *e, const char *key, const char *fmt, ...) WEIR_PRINTF(3, 4);
static void fact(struct hooks_event *e, const char *key, const char *fmt, ...)
{
	char value[HOOKS_FACT_BYTES - 32];
	va_list ap;

	if (e->n_facts == HOOKS_MAX_FACTS)
		return;
	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	for (char *c = value; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7F)
			*c = '_';
	snprintf(e->facts[e->n_facts++], HOOKS_FACT_BYTES, "%s=%s", key, value);
}

static void happened(void *user, const struct netflow *f, bool joined)
{
	struct hearing *h = user;
	struct hooks_event e = { .command = joined ? h->o.on_join : h->o.on_leave };
	char address[DGRAM_TEXT_BYTES];

	h->sources_changed = true;
	if (!e.command)
		return;
	fact(&e, "WEIR_EVENT", "%s", joined ? "join" : "leave");
	fact(&e, "WEIR_TRACK", "%u", f->id);
	fact(&e, "WEIR_NAME", "%s", f->name);
	fact(&e, "WEIR_ADDRESS", "%s", dgram_text(&f->from, address));
	fact(&e, "WEIR_SSRC", "%u", f->ssrc);
	fact(&e, "WEIR_CODEC", "%s", rtp_codec_name(f->format.codec));
	fact(&e, "WEIR_RATE", "%u", f->format.clock_hz);
	fact(&e, "WEIR_CHANNELS", "%u", f->format.channels);
	hooks_run(&h->hooks, &e);
}

/* ---- the stream ---- */

static void take(void *user, unsigned port, bool is_rtcp, struct dgram_in *in)
{
	struct hearing *h = user;

	if (h->record.open && arrivals_write(&h->record, port, is_rtcp, in))
		return; /* the writer keeps it, and it is said at the end */
	receiver_datagram(&h->receiver, port, is_rtcp, &in->from, in->bytes, in->n_bytes, in->arrival_ns);
}

static void send_report(void *user, unsigned port, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes)
{
	struct hearing *h = user;

	/* From where the peer's own RTCP is heard, so that it knows us. */
	listener_send(&h->listener, port, false, to, bytes, n_bytes);
}

/* Whoever reads us is slow: what comes from the network is taken all the same. */
static void wait_writable(void *user)
{
	struct hearing *h = user;
	struct err_why ignored;

	h->stalled = true;
	if (listener_work(&h->listener, clock_now_ns() + UNITS_NS_PER_S / 100, h->out.fd, take, h, &ignored))
		usleep(1000);
	if (h->sources_changed)
		hearingflood_tell(h);
}

static void write_without_waiting(struct hearing *h)
{
	char path[64];

	if (h->out.is_pipe)
		h->listener.out_fd = h->out.fd;
	if (!h->out.is_pipe || h->o.replay_path)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", h->out.fd);
	h->out_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (h->out_fd < 0)
		return;
	h->out.fd = h->out_fd;
	h->out.wait = wait_writable;
	h->out.wait_user = h;
}

static enum err begin_output(struct hearing *h)
{
	enum err e;

	if ((e = writer_open(&h->out, STDOUT_FILENO, "standard output", "netrecv", &h->why)))
		return e;
	h->out_open = true;
	if (h->o.retime < 0)
		h->o.retime = !h->out.is_regular;
	h->out.stream.flags = PACKET_STREAM_LIVE;
	if (!h->o.replay_path) {
		h->out.stream.t0_utc_ns = h->o.retime ? h->start_ns + clock_utc_offset_ns() : UNITS_UNKNOWN_NS;
		uint64_t seed[2];
		if (getrandom(seed, sizeof(seed), 0) == sizeof(seed))
			writer_seed(&h->out, seed, sizeof(seed));
		write_without_waiting(h);
	}
	if ((e = writer_begin(&h->out)) || (e = writer_flush(&h->out)))
		h->why = h->out.why;
	return e;
}

/* A block is written when its last frame is due, so it must be shorter than what little latency was asked for. */
static int64_t usual_block_ns(int64_t latency_ns)
{
	int64_t part_ns = latency_ns / BLOCK_PARTS;

	if (latency_ns == 0 || part_ns > BLOCK_NS)
		return BLOCK_NS;
	return part_ns > LEAST_BLOCK_NS ? part_ns : LEAST_BLOCK_NS;
}

static enum err receiver_options_of(struct hearing *h, struct receiver_options *o)
{
	struct opt_time latency = { .value = 0 };
	enum err e;

	*o = (struct receiver_options){ .max_senders = (unsigned)h->o.max_senders, .from = h->from, .n_from = h->o.from.n, .srtp = h->is_secure ? &h->srtp : NULL,
		.no_reports = h->o.replay_path != NULL };
	for (unsigned i = 0; i < h->o.from.n; i++)
		if ((e = receivernet_parse(&h->from[i], h->o.from.value[i], &h->why)))
			return e;
	if (h->o.latency && strcmp(h->o.latency, "auto") && (opt_parse_time(h->o.latency, &latency) || time_ns(&latency) <= 0 || time_ns(&latency) > 10 * UNITS_NS_PER_S))
		return err_say(&h->why, ERR_ARG, "--latency", "'%s': auto, or a time up to 10s", h->o.latency);
	o->flow = (struct netflow_options){ .retime = h->o.retime != 0, .block_ns = h->o.block.is_set ? time_ns(&h->o.block) : usual_block_ns(time_ns(&latency)),
		.latency_ns = time_ns(&latency), .glitches = h->o.glitches, .n_slots = N_SLOTS };
	if (!h->o.replay_path && getrandom(&o->seed, sizeof(o->seed), 0) != sizeof(o->seed))
		return err_sys(&h->why, "random numbers");
	return ERR_OK;
}

static void begin_counting(struct hearing *h)
{
	const struct { const char *key; atomic_uint_fast64_t *value; } keys[] = {
		{ "received", &h->receiver.counts.received }, { "lost", &h->receiver.counts.lost }, { "recovered", &h->receiver.counts.recovered },
		{ "concealed_frames", &h->receiver.counts.concealed_frames }, { "skipped_frames", &h->receiver.counts.skipped_frames }, { "late_packets", &h->receiver.counts.late_packets },
		{ "reordered", &h->receiver.counts.reordered }, { "duplicate", &h->receiver.counts.duplicate }, { "jitter_us", &h->receiver.counts.jitter_us },
		{ "depth_us", &h->receiver.counts.depth_us }, { "refused", &h->receiver.counts.refused }, { "strangers", &h->receiver.counts.strangers },
		{ "senders", &h->receiver.counts.senders }, { "auth_failed", &h->receiver.counts.forged }, { "replayed", &h->receiver.counts.replayed },
		{ "round_trip_us", &h->receiver.counts.round_trip_us }, { "one_way_us", &h->receiver.counts.one_way_us },
		{ "unsent_frames", &h->receiver.counts.unsent_frames }, { "filtered", &h->n_filtered }, { "kernel_dropped", &h->n_overflowed },
	};

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		stats_key(&h->stats, keys[i].key, keys[i].value);
}

enum err hearing_open(struct hearing *h, struct tool *t, const char *operand, const struct hearing_options *o)
{
	struct receiver_options receiver;
	enum err e;

	h->tool = t;
	h->o = *o;
	h->out_fd = -1;
	h->start_ns = o->replay_path ? REPLAY_START_NS : clock_now_ns();
	if ((e = receiver_options_of(h, &receiver)) || (e = listener_init(&h->listener, receiver.seed, &h->why)))
		return e;
	if (!operand)
		h->receiver.n_ports = 1, hearingsource_describe(h, &h->receiver.ports[0], NULL);
	else if ((e = url_is_url(operand) ? hearingsource_url(h, operand) : hearingsource_sdp(h, operand)))
		return e;
	if ((e = hearingkeys_take(h)))
		return e;
	if (o->replay_path && (e = arrivals_open(&h->replay, o->replay_path, &h->why)))
		return e;
	if ((e = begin_output(h)))
		return e;
	receiver.flow.retime = h->o.retime != 0;
	receiver.flow.trims = h->out.is_regular;
	receiver.srtp = h->is_secure ? &h->srtp : NULL;
	if ((e = receiver_init(&h->receiver, t, &h->out, &receiver, h->start_ns, &h->why)))
		return e;
	h->receiver.user = h;
	h->receiver.send = o->replay_path ? NULL : send_report;
	h->receiver.event = happened;
	if (o->record_path && (e = arrivals_create(&h->record, o->record_path, o->replace, h->start_ns, &h->why)))
		return e;
	begin_counting(h);
	if (h->has_link && (e = hearinglink_open(h)))
		return e;
	if ((e = stats_begin(&h->stats, t, &h->why)))
		return e;
	progress_begin(&h->progress, t);
	if ((o->on_join || o->on_leave) && (e = hooks_begin(&h->hooks, &h->why)))
		return e;
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* the default of 50 µs is a part of the latency */
	return ERR_OK;
}

void hearing_release(struct hearing *h)
{
	uint64_t n_lost = atomic_load(&h->hooks.n_lost);
	hooks_end(&h->hooks);
	if (n_lost)
		tool_warn(h->tool, "--on-join, --on-leave", "%" PRIu64 " commands were not run: too many at one time", n_lost);
	if (h->receiver.flows) {
		hearingflood_count(h);
		receivercount_show(&h->receiver, &h->stats);
	}
	stats_end(&h->stats);
	progress_end(&h->progress);
	linkrecv_release(&h->link);
	linkjoin_release(&h->joined);
	free(h->peers);
	h->peers = NULL;
	secret_wipe(h->psk, sizeof(h->psk));
	listener_release(&h->listener);
	if (h->receiver.flows)
		receiver_release(&h->receiver);
	arrivals_close(&h->replay);
	arrivals_release(&h->record);
	srtp_session_release(&h->srtp);
	if (h->out_open)
		writer_release(&h->out);
	if (h->out_fd >= 0)
		close(h->out_fd);
	free(h->sdp);
	h->sdp = NULL;
}

/* ---- the loops ---- */

static void count(struct hearing *h, int64_t now_ns)
{
	if (h->sources_changed)
		hearingflood_tell(h);
	if (now_ns - h->counted_ns < COUNT_NS)
		return;
	h->counted_ns = now_ns;
	hearingflood_tell(h);
	hearingflood_count(h);
	if (!h->o.replay_path)
		h->receiver.utc_offset_ns = clock_utc_offset_ns();
	receivercount_show(&h->receiver, &h->stats);
	progress_update(&h->progress, (double)(now_ns - h->start_ns) / UNITS_NS_PER_S, -1);
}

static enum err run_due(struct hearing *h, int64_t now_ns)
{
	enum err e = receiver_run(&h->receiver, now_ns, true);

	if (e)
		h->why = h->receiver.why;
	else if ((e = writer_flush(&h->out)))
		h->why = h->out.why;
	return e;
}

static enum err run_live(struct hearing *h)
{
	int64_t end_ns = h->o.duration.is_set ? h->start_ns + time_ns(&h->o.duration) : INT64_MAX;
	enum err e = ERR_OK;

	while (!e && !tool_stop) {
		int64_t now_ns = clock_now_ns(), next_ns = receiver_next_ns(&h->receiver);
		if (now_ns >= end_ns)
			break;
		if ((e = listener_work(&h->listener, next_ns < end_ns ? next_ns : end_ns, h->has_link ? h->joined.fd : -1, take, h, &h->why)))
			break;
		if (!(e = run_due(h, h->listener.read_ns)) && h->has_link)
			e = hearinglink_run(h);
		count(h, clock_now_ns());
	}
	return e;
}

/* Ours by the number in the recording; by the UDP port in a capture. */
static bool port_of(const struct hearing *h, struct arrivals_datagram *d)
{
	unsigned n = 0;

	if (!d->to_port || !h->port_numbers[0])
		return d->port < h->receiver.n_ports;
	while (n < h->receiver.n_ports && h->port_numbers[n] != d->to_port && h->port_numbers[n] + 1 != d->to_port)
		n++;
	d->port = n;
	d->is_rtcp = n < h->receiver.n_ports && h->port_numbers[n] != d->to_port;
	return n < h->receiver.n_ports;
}

static enum err run_until(struct hearing *h, int64_t until_ns)
{
	enum err e = ERR_OK;

	for (int64_t next; !e && !tool_stop && (next = receiver_next_ns(&h->receiver)) <= until_ns;)
		e = run_due(h, next);
	return e;
}

static enum err run_recorded(struct hearing *h)
{
	struct arrivals_datagram d;
	int64_t now_ns = h->start_ns, end_ns = h->o.duration.is_set ? h->start_ns + time_ns(&h->o.duration) : INT64_MAX;
	enum err e = ERR_OK, next = ERR_OK;

	while (!e && !tool_stop && !(next = arrivals_next(&h->replay, &d, &h->why))) {
		if (h->start_ns + d.arrival_ns > now_ns)
			now_ns = h->start_ns + d.arrival_ns;
		if (now_ns >= end_ns)
			break;
		if (!port_of(h, &d))
			continue;
		if ((e = run_until(h, now_ns - 1)))
			break;
		receiver_datagram(&h->receiver, d.port, d.is_rtcp, &d.from, d.bytes, d.n_bytes, h->start_ns + d.arrival_ns);
		e = run_due(h, now_ns);
		count(h, now_ns);
	}
	if (!e && next && next != ERR_END)
		return next;
	if (e || tool_stop)
		return e;
	receiver_stop(&h->receiver);
	for (int64_t last = now_ns + REPLAY_REST_NS; !e && !receiver_idle(&h->receiver) && now_ns < last; now_ns += UNITS_NS_PER_S / 100)
		if (!(e = run_until(h, now_ns)))
			e = run_due(h, now_ns);
	return e;
}

enum err hearing_run(struct hearing *h)
{
	enum packet_end_reason reason = PACKET_END_NORMAL;
	enum err e = h->o.replay_path ? run_recorded(h) : run_live(h);
	struct err_why why;

	if (!e && tool_stop)
		reason = PACKET_END_INTERRUPTED;
	if (!e && !h->o.replay_path) {
		receiver_stop(&h->receiver); /* what can be passed on still is */
		e = run_due(h, clock_now_ns());
	}
	if (h->has_link) {
		/* What was acknowledged is written, whatever came in between. */
		linkrecv_release(&h->link);
		h->is_ending = true;
		if (!e)
			e = hearinglink_run(h);
	}
	if (!e && (e = receiver_end(&h->receiver, reason)))
		h->why = h->receiver.why;
	if (!e && h->has_link && (e = linkjoin_end(&h->joined, &h->out, reason)))
		h->why = h->out.why;
	if (!e && (e = writer_end(&h->out, reason)))
		h->why = h->out.why;
	if (!e && h->o.replay_path && arrivals_is_cut(&h->replay, &h->why))
		e = ERR_CUT;
	enum err recorded = arrivals_end(&h->record, &why);
	if (!e && recorded) {
		h->why = why;
		e = recorded;
	}
	return e;
}
