#include "leg/proxy.h"

#include "base/role.h"
#include "base/units.h"
#include "rt/clock.h"
#include "leg/proxypeers.h"
#include "leg/tracefile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define N_ITEMS (PROXY_N_SMALL + PROXY_N_LARGE)
#define BATCH_PACKETS 64u
#define HOLD_NS UNITS_NS_PER_S           /* the longest that one waits to be overtaken */
#define PART_OF_SPARE 4u               /* so many times as many places as are free may be taken by one sender */
#define SAY_NS UNITS_NS_PER_S
#define IP4_OVERHEAD_BYTES 28u
#define IP6_OVERHEAD_BYTES 48u

/* ---- life ---- */

static enum err take_memory(struct proxy *p, struct err_why *why)
{
	p->small = calloc(PROXY_N_SMALL, PROXY_SMALL_BYTES);
	p->large = calloc(PROXY_N_LARGE, DGRAM_MAX_BYTES);
	p->items = calloc(N_ITEMS, sizeof(*p->items));
	p->spare_small = calloc(PROXY_N_SMALL, sizeof(*p->spare_small));
	p->spare_large = calloc(PROXY_N_LARGE, sizeof(*p->spare_large));
	p->sent = calloc(N_ITEMS, sizeof(*p->sent));
	if (!p->small || !p->large || !p->items || !p->spare_small || !p->spare_large || !p->sent ||
		transit_init(&p->way[PROXY_THERE].transit, N_ITEMS) || transit_init(&p->way[PROXY_BACK].transit, N_ITEMS))
		return err_say(why, ERR_NOMEM, "datagrams", "%s", err_text(ERR_NOMEM));
	for (uint32_t i = 0; i < PROXY_N_SMALL; i++)
		p->spare_small[p->n_spare_small++] = PROXY_N_SMALL - 1 - i;
	for (uint32_t i = 0; i < PROXY_N_LARGE; i++)
		p->spare_large[p->n_spare_large++] = N_ITEMS - 1 - i;
	enum err e = dgram_batch_init(&p->batch, BATCH_PACKETS, DGRAM_MAX_BYTES, why);
	return e ? e : dgram_outbox_init(&p->outbox, BATCH_PACKETS, why);
}

static void add_keys(struct proxy *p)
{
	const struct stats_key keys[] = {
		{ "lost_packets", &p->lost_packets }, { "queue_lost_packets", &p->queue_lost_packets }, { "overflow_packets", &p->overflow_packets },
		{ "unsent_packets", &p->unsent_packets }, { "refused_packets", &p->refused_packets }, { "delayed_packets", &p->delayed_packets },
		{ "reordered_packets", &p->reordered_packets }, { "duplicated_packets", &p->duplicated_packets },
		{ "max_delay_us", &p->max_delay_us }, { "underway_packets", &p->underway_packets }, { "senders", &p->senders },
		{ "kernel_dropped", &p->kernel_dropped },
	};

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		stats_key(p->stats, keys[i].key, keys[i].value);
}

static enum err open_sockets(struct proxy *p, const struct url *from, const struct url *to, struct err_why *why)
{
	const struct dgram_options listen = {
		.iface = from->iface, .ttl = -1, .join = true, .receive_bytes = PROXY_BUFFER_BYTES, .send_bytes = PROXY_BUFFER_BYTES,
	};
	struct dgram_addr local;
	enum err e;

	if ((e = dgram_resolve(&local, from->host, from->port, AF_UNSPEC, why)) || (e = dgram_open(&p->listener, &local, &listen, why)))
		return e;
	dgram_text(&local, p->from);
	if ((e = dgram_resolve(&p->target, to->host, to->port, AF_UNSPEC, why)))
		return e;
	dgram_text(&p->target, p->to);
	/* A datagram that goes round for ever. */
	if (dgram_same(&local, &p->target))
		return err_say(why, ERR_ARG, p->to, "is where the datagrams come from");
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return p->timer_fd < 0 ? err_sys(why, "timer") : ERR_OK;
}

enum err proxy_open(struct proxy *p, struct tool *t, struct stats *s, const struct url *from, const struct url *to,
	const struct proxy_options *o, struct err_why *why)
{
	struct impairment_config network = o->network;
	enum err e;

	memset(p, 0, sizeof(*p));
	p->tool = t;
	p->stats = s;
	p->o = *o;
	p->timer_fd = -1;
	p->listener.fd = -1;
	p->timer_ns = INT64_MAX;
	if ((e = open_sockets(p, from, to, why)))
		return e;
	network.overhead_bytes = p->target.any.sa_family == AF_INET6 ? IP6_OVERHEAD_BYTES : IP4_OVERHEAD_BYTES;
	for (unsigned d = 0; d < PROXY_N_WAYS; d++, network.seed += 0x9e3779b97f4a7c15u)
		if ((e = impairment_init(&p->way[d].network, &network, why)))
			return e;
	p->way[PROXY_THERE].is_bad = o->there;
	p->way[PROXY_BACK].is_bad = o->back;
	if (getrandom(&p->seed, sizeof(p->seed), 0) != sizeof(p->seed))
		return err_sys(why, "random numbers");
	add_keys(p);
	return take_memory(p, why);
}

void proxy_release(struct proxy *p)
{
	for (unsigned i = 0; i < PROXY_MAX_PEERS; i++)
		if (p->peers[i].is_used)
			dgram_close(&p->peers[i].socket);
	if (p->tool)
		dgram_close(&p->listener);
	if (p->tool && p->timer_fd >= 0)
		close(p->timer_fd);
	for (unsigned d = 0; d < PROXY_N_WAYS; d++)
		transit_release(&p->way[d].transit);
	dgram_batch_release(&p->batch);
	dgram_outbox_release(&p->outbox);
	free(p->small);
	free(p->large);
	free(p->items);
	free(p->spare_small);
	free(p->spare_large);
	free(p->sent);
	memset(p, 0, sizeof(*p));
}

/* ---- places for datagrams ---- */

static uint8_t *bytes_of(struct proxy *p, uint32_t slot)
{
	return slot < PROXY_N_SMALL ? p->small + (size_t)slot * PROXY_SMALL_BYTES : p->large + (size_t)(slot - PROXY_N_SMALL) * DGRAM_MAX_BYTES;
}

/* A place that n_bytes fit.  False: none is free. */
static bool take_slot(struct proxy *p, size_t n_bytes, uint32_t *slot)
{
	if (n_bytes <= PROXY_SMALL_BYTES && p->n_spare_small) {
		*slot = p->spare_small[--p->n_spare_small];
		return true;
	}
	if (!p->n_spare_large)
		return false;
	*slot = p->spare_large[--p->n_spare_large];
	return true;
}

static void give_slot(struct proxy *p, uint32_t slot)
{
	if (slot < PROXY_N_SMALL)
		p->spare_small[p->n_spare_small++] = slot;
	else
		p->spare_large[p->n_spare_large++] = slot;
}

void proxy_say_rarely(struct proxy *p, const char *thing, const char *text)
{
	int64_t now_ns = clock_now_ns();

	if (p->said_ns && now_ns - p->said_ns < SAY_NS)
		return;
	p->said_ns = now_ns;
	tool_warn(p->tool, thing, "%s", text);
}

/* ---- datagrams in ---- */

static void put_on_way(struct proxy *p, struct proxy_way *way, const struct dgram_in *in, unsigned peer, int64_t out_ns, unsigned behind)
{
	uint32_t spare = in->n_bytes <= PROXY_SMALL_BYTES ? p->n_spare_small + p->n_spare_large : p->n_spare_large, slot;

	if (p->peers[peer].n_underway > PART_OF_SPARE * spare || !take_slot(p, in->n_bytes, &slot)) {
		way->overflows++;
		return;
	}
	memcpy(bytes_of(p, slot), in->bytes, in->n_bytes);
	p->items[slot] = (struct proxy_item){ .n_bytes = (uint32_t)in->n_bytes, .peer = (uint16_t)peer, .life = p->peers[peer].life };
	if (!transit_put(&way->transit, out_ns, slot, behind, out_ns + HOLD_NS)) {
		give_slot(p, slot);
		way->overflows++;
		return;
	}
	p->peers[peer].n_underway++;
}

static void take_datagram(struct proxy *p, enum proxy_direction d, const struct dgram_in *in, unsigned peer)
{
	struct proxy_way *way = &p->way[d];
	struct impairment_fate f = { .out_ns = in->arrival_ns };

	way->packets_in++;
	if (way->is_bad)
		impairment_send(&way->network, in->arrival_ns, (uint32_t)in->n_bytes, &f);
	if (p->o.record && d == PROXY_THERE)
		tracefile_write(p->o.record, f.cause == IMPAIRMENT_ARRIVES ? f.out_ns - in->arrival_ns : IMPAIRMENT_LOST);
	if (f.cause != IMPAIRMENT_ARRIVES)
		return;
	put_on_way(p, way, in, peer, f.out_ns, f.behind);
	if (f.is_doubled)
		put_on_way(p, way, in, peer, f.copy_ns, 0);
}

static enum err take_from_senders(struct proxy *p)
{
	unsigned n;
	enum err e = dgram_receive(&p->listener, &p->batch, &n, &p->why);

	if (e && e != ERR_PEER)
		return e;
	for (unsigned i = 0; i < n; i++) {
		const struct dgram_in *in = &p->batch.in[i];
		int peer = proxypeers_find(p, &in->from, in->arrival_ns);
		if (peer < 0) {
			p->refused++;
			continue;
		}
		p->peers[peer].seen_ns = in->arrival_ns;
		p->peers[peer].n_heard++;
		take_datagram(p, PROXY_THERE, in, (unsigned)peer);
	}
	return ERR_OK;
}

static enum err take_answers(struct proxy *p, unsigned peer)
{
	struct dgram_addr about;
	int sys_errno;
	unsigned n;
	enum err e = dgram_receive(&p->peers[peer].socket, &p->batch, &n, &p->why);

	if (e && e != ERR_PEER)
		return e;
	if (e)
		proxy_say_rarely(p, p->why.thing, p->why.reason);
	/* What is not taken keeps the socket ready for ever. */
	while (dgram_complaint(&p->peers[peer].socket, &about, &sys_errno))
		;
	for (unsigned i = 0; i < n; i++) {
		p->peers[peer].seen_ns = p->batch.in[i].arrival_ns;
		take_datagram(p, PROXY_BACK, &p->batch.in[i], peer);
	}
	return ERR_OK;
}

/* ---- datagrams out ---- */

static void send_queued(struct proxy *p, struct proxy_way *way, struct dgram *socket)
{
	unsigned n = p->outbox.n, n_failed = 0;
	int first_errno = 0;

	if (!n)
		return;
	dgram_send(socket, &p->outbox, &n_failed, &first_errno);
	if (n_failed)
		proxy_say_rarely(p, socket->name, dgram_reason(first_errno));
	way->unsent += n_failed;
	way->packets_out += n - n_failed;
	while (p->n_sent)
		give_slot(p, p->sent[--p->n_sent]);
}

/* All that is due in one direction, so many at a time as go through one socket. */
static void send_due(struct proxy *p, enum proxy_direction d, int64_t now_ns)
{
	struct proxy_way *way = &p->way[d];
	struct dgram *socket = &p->listener;
	uint32_t slot;

	while (transit_take(&way->transit, now_ns, &slot, NULL)) {
		const struct proxy_item *item = &p->items[slot];
		struct proxy_peer *peer = &p->peers[item->peer];
		if (!peer->is_used || peer->life != item->life) {
			way->unsent++;
			give_slot(p, slot);
			continue;
		}
		peer->n_underway--;
		struct dgram *own = d == PROXY_THERE ? &peer->socket : &p->listener;
		if (own != socket) {
			send_queued(p, way, socket);
			socket = own;
		}
		const struct dgram_out out = {
			.to = d == PROXY_BACK ? &peer->addr : own->is_connected ? NULL : &p->target,
			.piece = { { .iov_base = bytes_of(p, slot), .iov_len = item->n_bytes } }, .n_pieces = 1,
		};
		if (!dgram_queue(&p->outbox, &out)) {
			send_queued(p, way, socket);
			(void)!dgram_queue(&p->outbox, &out);
		}
		p->sent[p->n_sent++] = slot;
	}
	send_queued(p, way, socket);
}

/* ---- the loop ---- */

static enum err set_timer(struct proxy *p, int64_t at_ns)
{
	struct itimerspec when = { 0 };

	if (at_ns == p->timer_ns)
		return ERR_OK;
	p->timer_ns = at_ns;
	if (at_ns != INT64_MAX)
		when.it_value = (struct timespec){ .tv_sec = at_ns / UNITS_NS_PER_S, .tv_nsec = at_ns % UNITS_NS_PER_S };
	return timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) ? err_sys(&p->why, "timer") : ERR_OK;
}

static void count(struct proxy *p)
{
	struct stats *s = p->stats;
	uint64_t in = 0, out = 0, lost = 0, queue_lost = 0, overflows = 0, unsent = 0, delayed = 0, reordered = 0, duplicated = 0, underway = 0;
	int64_t max_delay_ns = 0;

	for (unsigned d = 0; d < PROXY_N_WAYS; d++) {
		const struct proxy_way *way = &p->way[d];
		const struct impairment_counts *n = &way->network.counts;
		in += way->packets_in;
		out += way->packets_out;
		overflows += way->overflows;
		unsent += way->unsent;
		underway += transit_count(&way->transit);
		lost += n->lost;
		queue_lost += n->queue_lost;
		delayed += n->delayed;
		reordered += n->reordered;
		duplicated += n->duplicated;
		if (n->max_delay_ns > max_delay_ns)
			max_delay_ns = n->max_delay_ns;
	}
	stats_set(&s->packets_in, in);
	stats_set(&s->packets_out, out);
	stats_set(&p->lost_packets, lost);
	stats_set(&p->queue_lost_packets, queue_lost);
	stats_set(&p->overflow_packets, overflows);
	stats_set(&p->unsent_packets, unsent);
	stats_set(&p->refused_packets, p->refused);
	stats_set(&p->delayed_packets, delayed);
	stats_set(&p->reordered_packets, reordered);
	stats_set(&p->duplicated_packets, duplicated);
	stats_set(&p->max_delay_us, (uint64_t)max_delay_ns / 1000);
	stats_set(&p->underway_packets, underway);
	struct dgram_memory m;
	if (dgram_memory(&p->listener, &m))
		stats_set(&p->kernel_dropped, m.n_dropped);
}

static enum err take_ready(struct proxy *p)
{
	unsigned n_peers = p->n_peers;
	enum err e;

	/* The list may change while senders are heard; the answers are of those that were waited for. */
	uint16_t peers[PROXY_MAX_PEERS];
	memcpy(peers, p->poll_peers, n_peers * sizeof(peers[0]));
	for (unsigned i = 0; i < n_peers; i++)
		if (p->polls[i + 2].revents && (e = take_answers(p, peers[i])))
			return e;
	return p->polls[0].revents ? take_from_senders(p) : ERR_OK;
}

enum err proxy_run(struct proxy *p)
{
	int64_t end_ns = p->o.duration_ns ? clock_now_ns() + p->o.duration_ns : INT64_MAX;
	enum err e = ERR_OK;

	role_forbid(ROLE_DEADLINE);
	while (!tool_stop) {
		int64_t now_ns = clock_now_ns();
		if (now_ns >= end_ns)
			break;
		send_due(p, PROXY_THERE, now_ns);
		send_due(p, PROXY_BACK, now_ns);
		if (stats_on(p->stats))
			count(p);
		int64_t there_ns = transit_next_ns(&p->way[PROXY_THERE].transit), back_ns = transit_next_ns(&p->way[PROXY_BACK].transit);
		int64_t next_ns = there_ns < back_ns ? there_ns : back_ns;
		if ((e = set_timer(p, next_ns < end_ns ? next_ns : end_ns)))
			break;
		p->polls[0] = (struct pollfd){ .fd = p->listener.fd, .events = POLLIN };
		p->polls[1] = (struct pollfd){ .fd = p->timer_fd, .events = POLLIN };
		for (unsigned i = 0; i < p->n_peers; i++)
			p->polls[i + 2] = (struct pollfd){ .fd = p->peers[p->poll_peers[i]].socket.fd, .events = POLLIN };
		if (poll(p->polls, p->n_peers + 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			e = err_sys(&p->why, "poll");
			break;
		}
		if (p->polls[1].revents)
			p->timer_ns = 0; /* it has gone off; setting it anew clears that */
		if ((e = take_ready(p)))
			break;
	}
	count(p);
	return e;
}

const char *proxy_describe(const struct proxy *p, enum proxy_direction d, char out[static 400])
{
	const struct proxy_way *way = &p->way[d];
	const struct impairment_counts *n = &way->network.counts;
	uint64_t arrived = n->packets - n->lost;

	snprintf(out, 400, "%" PRIu64 " datagrams: %" PRIu64 " lost (%.2f %%) in %" PRIu64 " bursts, %" PRIu64 " of them by the queue; %" PRIu64
		" reordered, %" PRIu64 " duplicated, %" PRIu64 " went on; delay %.3f ms in the mean, %.3f ms at most; %" PRIu64 " without room, %" PRIu64
		" not sent, %" PRIu32 " on their way", way->packets_in, n->lost, n->packets ? 100.0 * (double)n->lost / (double)n->packets : 0, n->bursts,
		n->queue_lost, n->reordered, n->duplicated, way->packets_out, arrived ? (double)n->sum_delay_us / (double)arrived / 1e3 : 0,
		(double)n->max_delay_ns / 1e6, way->overflows, way->unsent, transit_count(&way->transit));
	return out;
}
