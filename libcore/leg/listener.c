#include "leg/listener.h"

#include "base/units.h"
#include "rt/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum err listener_init(struct listener *l, uint64_t seed, struct err_why *why)
{
	l->out_fd = -1;
	l->seed = seed;
	dgramfilter_known_init(&l->known, seed);
	return dgram_batch_init(&l->batch, LISTENER_BATCH, LISTENER_SLOT_BYTES, why);
}

void listener_release(struct listener *l)
{
	for (unsigned i = 0; i < l->n_sockets; i++)
		dgram_close(&l->sockets[i].d);
	dgram_batch_release(&l->batch);
}

static void begin_socket(struct listener *l, unsigned number, bool is_rtcp)
{
	struct listener_socket *s = &l->sockets[l->n_sockets];

	s->port = number;
	s->is_rtcp = is_rtcp;
	dgramfilter_init(&s->filter, &s->d, &l->known, LISTENER_SLOT_BYTES, l->seed + l->n_sockets, clock_now_ns());
	l->n_sockets++;
}

/* A second socket for strangers, if that can be had.  The first is opened anew for it: it had to be seen that nobody else has the port. */
static void open_aside(struct listener *l, const struct dgram_addr *local, struct dgram_options o)
{
	struct listener_socket *s = &l->sockets[l->n_sockets - 1], *aside = s + 1;
	struct dgram first, second;
	struct err_why ignored;

	if (l->n_sockets == LISTENER_MAX_SOCKETS || dgram_is_multicast(local) || !dgram_port(local))
		return;
	o.twin = true;
	dgram_close(&s->d);
	if (!dgram_open(&first, local, &o, &ignored)) {
		if (!dgram_open(&second, local, &o, &ignored)) {
			if (dgramfilter_steer(&first, &l->known)) {
				s->d = first;
				aside->d = second;
				s->steered_version = l->known.version;
				begin_socket(l, s->port, s->is_rtcp);
				aside->is_aside = true;
				return;
			}
			dgram_close(&second);
		}
		dgram_close(&first);
	}
	o.twin = false;
	if (dgram_open(&s->d, local, &o, &ignored))
		s->d.fd = -1;
}

static enum err open_one(struct listener *l, const struct url *u, uint16_t port, unsigned number, bool is_rtcp, const struct dgram_addr *sources,
	unsigned n_sources, struct err_why *why)
{
	struct listener_socket *s = &l->sockets[l->n_sockets];
	struct dgram_options o = { .iface = u->iface, .ttl = u->ttl, .timestamps = true, .receive_bytes = LISTENER_BUFFER_BYTES };
	struct dgram_addr local;
	enum err e;

	if (l->n_sockets == LISTENER_MAX_SOCKETS)
		return err_say(why, ERR_LIMIT, "ports", "more than %u", LISTENER_MAX_SOCKETS);
	if ((e = dgram_resolve(&local, u->host, port, AF_UNSPEC, why)))
		return e;
	if (dgram_is_multicast(&local)) {
		o.join = o.share = true;
		o.sources = sources;
		o.n_sources = n_sources;
	}
	e = dgram_open(&s->d, &local, &o, why);
	if (e == ERR_SYS && why->sys_errno == EADDRNOTAVAIL) {
		/* An address of another host, as a session description may have it: what comes to the port is meant. */
		if ((e = dgram_resolve(&local, "", port, local.any.sa_family, why)))
			return e;
		e = dgram_open(&s->d, &local, &o, why);
	}
	if (e)
		return e;
	begin_socket(l, number, is_rtcp);
	open_aside(l, &local, o);
	if (s->d.fd >= 0)
		return ERR_OK;
	l->n_sockets--;
	return err_say(why, ERR_SYS, s->d.name, "the port is in use");
}

enum err listener_add(struct listener *l, const struct url *u, unsigned number, bool must_rtcp, uint16_t rtcp_port,
	const struct dgram_addr *sources, unsigned n_sources, struct err_why *why)
{
	enum err e = open_one(l, u, u->port, number, false, sources, n_sources, why);
	struct err_why ignored;

	if (e || !rtcp_port || rtcp_port == u->port)
		return e;
	e = open_one(l, u, rtcp_port, number, true, sources, n_sources, must_rtcp ? why : &ignored);
	return must_rtcp ? e : ERR_OK;
}

/*
 * After we were held up, everything that had come by begun_ns is read before anything is played, or it would be taken for missing.
 * But a flood leaves room for what is due; and of what is more than can be read at once, what is due when the last of it came.
 */
static enum err read_socket(struct listener *l, struct listener_socket *s, int64_t begun_ns, listener_take *take, void *user, struct err_why *why)
{
	unsigned n, times = 0, most = s->is_aside ? LISTENER_MAX_ASIDE : LISTENER_MAX_BATCHES;

	dgramfilter_account(&s->filter);
	do {
		if (times && s->filter.is_on)
			dgramfilter_account(&s->filter);
		enum err e = dgram_receive(&s->d, &l->batch, &n, why);
		if (e && e != ERR_PEER)
			return e;
		for (unsigned i = 0; i < n; i++) {
			dgramfilter_note(&s->filter, &l->batch.in[i]);
			if (!l->batch.in[i].is_cut)
				take(user, s->port, s->is_rtcp, &l->batch.in[i]);
		}
		l->n_floods += dgramfilter_run(&s->filter, clock_now_ns());
	} while (n == LISTENER_BATCH && ++times < most && l->batch.in[n - 1].arrival_ns < begun_ns);
	if (times == most && !s->is_aside && !s->filter.is_on && l->batch.in[n - 1].arrival_ns < l->read_ns)
		l->read_ns = l->batch.in[n - 1].arrival_ns;
	return ERR_OK;
}

/* Those who have become known, or are it no more. */
static void steer(struct listener *l)
{
	for (unsigned i = 0; i + 1 < l->n_sockets; i++) {
		struct listener_socket *s = &l->sockets[i];

		if (!s[1].is_aside || s->steered_version == l->known.version)
			continue;
		/* If it fails those who are new stay among the strangers. */
		(void)!dgramfilter_steer(&s->d, &l->known);
		s->steered_version = l->known.version;
	}
}

enum err listener_work(struct listener *l, int64_t until_ns, int wake_fd, listener_take *take, void *user, struct err_why *why)
{
	int64_t wait_ns = until_ns - clock_now_ns();
	unsigned n_polled = l->n_sockets;

	steer(l);
	for (unsigned i = 0; i < l->n_sockets; i++)
		l->polled[i] = (struct pollfd){ .fd = l->sockets[i].d.fd, .events = POLLIN };
	if (wake_fd >= 0)
		l->polled[n_polled++] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	if (l->out_fd >= 0)
		l->polled[n_polled++] = (struct pollfd){ .fd = l->out_fd };
	if (wait_ns < 0)
		wait_ns = 0;
	struct timespec ts = { wait_ns / UNITS_NS_PER_S, wait_ns % UNITS_NS_PER_S };
	int ready = ppoll(l->polled, n_polled, &ts, NULL);
	int64_t begun_ns = l->read_ns = clock_now_ns();
	if (ready < 0 && errno != EINTR)
		return err_sys(why, "poll");
	if (ready > 0 && l->out_fd >= 0 && l->polled[n_polled - 1].revents & POLLERR)
		return ERR_GONE;
	/* A stranger's first packets before those that came when he was known. */
	for (unsigned i = l->n_sockets; i-- > 0;) {
		struct listener_socket *s = &l->sockets[i];
		enum err e = ready > 0 && l->polled[i].revents ? read_socket(l, s, begun_ns, take, user, why) : ERR_OK;

		if (e)
			return e;
		/* Also when nothing passes: the flood may be over, or somebody new be known. */
		if (s->filter.is_on)
			dgramfilter_run(&s->filter, begun_ns);
	}
	return ERR_OK;
}

void listener_unread(struct listener *l, uint64_t *n_filtered, uint64_t *n_overflowed)
{
	*n_filtered = *n_overflowed = 0;
	for (unsigned i = 0; i < l->n_sockets; i++) {
		dgramfilter_account(&l->sockets[i].filter);
		*n_filtered += l->sockets[i].filter.n_filtered;
		*(l->sockets[i].is_aside ? n_filtered : n_overflowed) += l->sockets[i].filter.n_overflowed;
	}
}

bool listener_has_rtcp(const struct listener *l, unsigned port)
{
	for (unsigned i = 0; i < l->n_sockets; i++)
		if (l->sockets[i].port == port && l->sockets[i].is_rtcp)
			return true;
	return false;
}

void listener_send(struct listener *l, unsigned port, bool is_rtcp, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes)
{
	for (unsigned i = 0; i < l->n_sockets; i++) {
		const struct listener_socket *s = &l->sockets[i];
		if (s->port == port && s->is_rtcp == is_rtcp) {
			/* A report that cannot go is one that is lost on the way. */
			(void)!sendto(s->d.fd, bytes, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &to->any, to->n_bytes);
			return;
		}
	}
}
