#include "leg/linkrecv.h"

#include "net/secret.h"
#include "rt/clock.h"
#include "rt/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STRANGERS 8u                    /* connections that have not said who they are */
#define BACKLOG 128
#define CROWD_BUCKETS 1024u             /* of hosts */
#define TELL_NS 100000000LL
#define TELL_BYTES (64u << 10)
#define TELL_MESSAGES 256u
#define ABSENCE_NS (60 * UNITS_NS_PER_S)      /* a session whose sender does not come back is over */
#define HELD_NS 5000000LL
#define MAX_MESSAGES (UINT64_C(1) << 56)      /* of a session: nobody counts so far */

/* ---- sessions ---- */

static int find_session(struct linkrecv *l, const uint8_t *id)
{
	for (unsigned i = 0; i < l->options.max_senders; i++) {
		if (l->sessions[i].is_used && !l->sessions[i].is_leaving && !memcmp(l->sessions[i].id, id, LINK_SESSION_BYTES))
			return (int)i;
	}
	return -1;
}

/* Returns: its place is free.  If not, it is tried again. */
static bool end_session(struct linkrecv *l, unsigned i)
{
	struct linkrecv_session *s = &l->sessions[i];

	if (s->is_used && l->options.events.leave && l->options.events.leave(l->options.events.user, i, s->is_whole)) {
		s->is_leaving = true;
		return false;
	}
	*s = (struct linkrecv_session){ 0 };
	return true;
}

static void drop_link(struct linkrecv *l, struct linkrecv_link *k)
{
	if (k->session >= 0) {
		struct linkrecv_session *s = &l->sessions[k->session];

		s->left_ns = clock_now_ns();
		if (!s->is_whole)
			atomic_fetch_add(&l->counts.broken, 1);
		else
			(void)end_session(l, (unsigned)k->session);
	}
	link_end(&k->link);
	*k = (struct linkrecv_link){ .session = -1, .link.fd = -1 };
}

/*
 * A place for a new session: a free one, or that of one whose sender went away longest ago.  Returns: ERR_OK with *place; ERR_LIMIT: there is
 * none; ERR_AGAIN: not before who was there, and who comes, can be handed on.
 */
static enum err new_session(struct linkrecv *l, const uint8_t *id, const struct dgram_addr *from, int *place)
{
	int at = -1;
	enum err e;

	for (unsigned i = 0; i < l->options.max_senders; i++) {
		const struct linkrecv_session *s = &l->sessions[i];

		if (!s->is_used) {
			at = (int)i;
			break;
		}
		if (s->left_ns && (at < 0 || s->left_ns < l->sessions[at].left_ns))
			at = (int)i;
	}
	if (at < 0)
		return ERR_LIMIT;
	if (!end_session(l, (unsigned)at))
		return ERR_AGAIN;
	if (l->options.events.join && (e = l->options.events.join(l->options.events.user, (unsigned)at, from)))
		return e;
	l->sessions[at].is_used = true;
	memcpy(l->sessions[at].id, id, LINK_SESSION_BYTES);
	*place = at;
	return ERR_OK;
}

static enum err greet(struct linkrecv *l, struct linkrecv_link *k, const struct link_control *c, int64_t now_ns)
{
	struct link_control answer = { .kind = LINK_RESUME };
	int at = find_session(l, c->session);
	enum err e;

	if (k->session >= 0 || c->n > MAX_MESSAGES)
		return ERR_PEER;
	if (at < 0 && (e = new_session(l, c->session, &k->from, &at))) {
		if (e != ERR_AGAIN)
			atomic_fetch_add(&l->counts.refused, 1);
		return e;
	}
	/* An older connection of the same sender is dead, whether we noticed or not. */
	for (unsigned i = 0; i < l->n_links; i++) {
		if (l->links[i].session == at) {
			l->links[i].session = -1;
			drop_link(l, &l->links[i]);
		}
	}
	struct linkrecv_session *s = &l->sessions[at];
	if (c->n > s->in.n_taken) {
		atomic_fetch_add(&l->counts.lost, c->n - s->in.n_taken);
		s->in.n_taken = c->n;
	}
	s->left_ns = 0;
	k->session = at;
	k->told = s->in.n_taken;
	k->told_ns = now_ns;
	atomic_fetch_add(&l->counts.connects, 1);
	memcpy(answer.session, c->session, LINK_SESSION_BYTES);
	answer.n = s->in.n_taken;
	/* Nothing but a crowd of pings before it can have taken the room for this. */
	return (e = link_tell(&k->link, &answer)) == ERR_AGAIN ? ERR_PEER : e;
}

/* ---- packets ---- */

static enum err take_packet(struct linkrecv *l, struct linkrecv_link *k, const struct packet *p)
{
	struct linkrecv_session *s;
	enum err e;

	if (k->session < 0)
		return ERR_PEER;
	s = &l->sessions[k->session];
	if ((e = l->options.events.packet(l->options.events.user, (unsigned)k->session, p)))
		return e;
	if (p->flags & PACKET_REPEAT)
		return ERR_OK;
	if ((e = replay_take(&s->in, s->in.n_taken)))
		return e;
	atomic_fetch_add(&l->counts.messages, 1);
	k->told_bytes += packet_wire_bytes(p);
	if (p->type == PACKET_END && !p->track)
		s->is_whole = k->owes_done = true;
	return ERR_OK;
}

static enum err take_control(struct linkrecv *l, struct linkrecv_link *k, const struct link_control *c, int64_t now_ns)
{
	struct link_control answer = { .kind = LINK_PONG, .ns = c->ns };
	enum err e;

	switch (c->kind) {
	case LINK_HELLO:
		return greet(l, k, c, now_ns);
	case LINK_PING:
		e = link_tell(&k->link, &answer);
		return e == ERR_AGAIN ? ERR_OK : e;
	case LINK_PONG:
		if (c->ns >= 0 && now_ns >= c->ns)
			k->link.round_trip_ns = now_ns - c->ns;
		return ERR_OK;
	default:
		return ERR_PEER;
	}
}

/* How far it got, when that is much, or old, or the end. */
static enum err tell(struct linkrecv *l, struct linkrecv_link *k, int64_t now_ns)
{
	struct link_control c = { .kind = LINK_ACK };
	enum err e;

	if (k->session < 0)
		return ERR_OK;
	const struct linkrecv_session *s = &l->sessions[k->session];
	bool is_due = k->told_bytes >= TELL_BYTES || s->in.n_taken - k->told >= TELL_MESSAGES || now_ns - k->told_ns >= TELL_NS || k->owes_done;
	if (is_due && s->in.n_taken != k->told) {
		c.n = s->in.n_taken;
		if ((e = link_tell(&k->link, &c)))
			return e == ERR_AGAIN ? ERR_OK : e;
		k->told = s->in.n_taken;
		k->told_bytes = 0;
		k->told_ns = now_ns;
	}
	if (k->owes_done) {
		c.kind = LINK_DONE;
		if ((e = link_tell(&k->link, &c)))
			return e == ERR_AGAIN ? ERR_OK : e;
		k->owes_done = false;
	}
	return ERR_OK;
}

static enum err work_link(struct linkrecv *l, struct linkrecv_link *k, int64_t now_ns)
{
	struct link_control c;
	struct packet p;
	enum err over = link_work(&k->link, now_ns), e = over == ERR_PEER ? over : ERR_OK;

	k->is_held = false;
	while (!e && !(e = link_next(&k->link, &p))) {
		if (p.type == LINK_PACKET_TYPE) {
			if (link_control_of(&p, &c))
				e = take_control(l, k, &c, now_ns);
		} else {
			e = take_packet(l, k, &p);
		}
		if (e == ERR_AGAIN) {
			link_unread(&k->link);
			k->is_held = true;
		} else if (!e && k->told_bytes >= TELL_BYTES) {
			e = tell(l, k, now_ns);
		}
	}
	if (e && e != ERR_AGAIN)
		return e;
	if ((e = tell(l, k, now_ns)) || (over && !k->is_held && (e = over)))
		return e;
	if ((e = link_flush(&k->link, now_ns)))
		return e;
	if (k->session < 0 && now_ns - k->link.begun_ns > LINK_SILENCE_NS)
		return ERR_PEER;
	/* While it is kept waiting it hears that we live, and its silence says nothing. */
	if (k->is_held)
		k->link.heard_ns = now_ns;
	return link_beat(&k->link, now_ns);
}

/* ---- the thread ---- */

static bool is_stranger(const struct linkrecv_link *k)
{
	return k->session < 0 && k->link.fd >= 0;
}

/*
 * Of those who have not said who they are the oldest, of the host that has most of them: a crowd from one place keeps nobody else out.  Hosts
 * are counted by a hash with a secret seed.
 */
static struct linkrecv_link *crowded_out(struct linkrecv *l)
{
	struct linkrecv_link *found = NULL;
	uint16_t n[CROWD_BUCKETS] = { 0 };
	unsigned most = 0;

	for (unsigned i = 0; i < l->n_links; i++)
		if (is_stranger(&l->links[i]))
			n[dgram_host_hash(&l->links[i].from, l->seed) % CROWD_BUCKETS]++;
	for (unsigned i = 0; i < l->n_links; i++) {
		struct linkrecv_link *k = &l->links[i];
		unsigned of_host = is_stranger(k) ? n[dgram_host_hash(&k->from, l->seed) % CROWD_BUCKETS] : 0;

		if (of_host > most || (of_host && of_host == most && k->link.begun_ns < found->link.begun_ns)) {
			most = of_host;
			found = k;
		}
	}
	return found;
}

/* Returns: there was one, and there may be more. */
static bool accept_one(struct linkrecv *l, int64_t now_ns)
{
	struct dgram_addr from = { .n_bytes = sizeof(from) - offsetof(struct dgram_addr, any) };
	int fd = accept4(l->fd, &from.any, &from.n_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct linkrecv_link *free_link = NULL;
	char text[DGRAM_TEXT_BYTES];
	struct err_why why;

	if (fd < 0) {
		/* What cannot be taken for want of descriptors would wake us for ever. */
		if ((errno == EMFILE || errno == ENFILE) && (free_link = crowded_out(l)))
			drop_link(l, free_link);
		return false;
	}
	for (unsigned i = 0; i < l->n_links && !free_link; i++)
		free_link = l->links[i].link.fd < 0 ? &l->links[i] : NULL;
	bool may = !l->options.events.may || l->options.events.may(l->options.events.may_user, &from);
	if (may && !free_link && (free_link = crowded_out(l))) {
		atomic_fetch_add(&l->counts.refused, 1);
		drop_link(l, free_link);
	}
	if (!may || !free_link) {
		atomic_fetch_add(&l->counts.refused, 1);
		close(fd);
		return true;
	}
	free_link->from = from;
	free_link->session = -1;
	if (link_begin(&free_link->link, fd, SEAL_SERVER, l->options.psk, dgram_text(&from, text), now_ns, &why))
		atomic_fetch_add(&l->counts.refused, 1);
	return true;
}

/* Returns: nobody waits to be let go. */
static bool end_absent(struct linkrecv *l, int64_t now_ns)
{
	bool all_gone = true;

	for (unsigned i = 0; i < l->options.max_senders; i++) {
		const struct linkrecv_session *s = &l->sessions[i];

		if (s->is_leaving || (s->is_used && s->left_ns && now_ns - s->left_ns > ABSENCE_NS))
			all_gone &= end_session(l, i);
	}
	return all_gone;
}

static void *run(void *user)
{
	struct linkrecv *l = user;
	uint64_t taken;
	bool all_gone = true;

	role_take(ROLE_IO);
	while (!atomic_load(&l->quit)) {
		bool any_held = !all_gone;
		int64_t limit_ns = TELL_NS;

		l->polls[0] = (struct pollfd){ .fd = l->wake_fd, .events = POLLIN };
		l->polls[1] = (struct pollfd){ .fd = l->fd, .events = POLLIN };
		for (unsigned i = 0; i < l->n_links; i++) {
			struct linkrecv_link *k = &l->links[i];

			/* One that is over and held back would be reported again and again. */
			l->polls[2 + i] = (struct pollfd){ .fd = k->is_held && k->link.is_over ? -1 : k->link.fd };
			l->polls[2 + i].events = k->link.fd < 0 ? 0 : link_events(&k->link);
			any_held |= k->link.fd >= 0 && k->is_held;
		}
		if (any_held)
			limit_ns = HELD_NS;
		(void)poll(l->polls, 2 + l->n_links, (int)(limit_ns / 1000000));
		int64_t now_ns = clock_now_ns();
		if (l->polls[0].revents && read(l->wake_fd, &taken, sizeof(taken)) < 0 && errno != EAGAIN)
			break;
		for (unsigned i = 0; i < l->n_links; i++) {
			struct linkrecv_link *k = &l->links[i];

			if (k->link.fd >= 0 && work_link(l, k, now_ns))
				drop_link(l, k);
		}
		for (unsigned i = 0; i < STRANGERS && l->polls[1].revents && accept_one(l, now_ns); i++)
			;
		all_gone = end_absent(l, now_ns);
	}
	return NULL;
}

static enum err listen_on(struct linkrecv *l, struct err_why *why)
{
	struct dgram_addr local, bound = { .n_bytes = sizeof(bound) - offsetof(struct dgram_addr, any) };
	int on = 1, off = 0;
	enum err e;

	if ((e = dgram_resolve(&local, l->options.host, l->options.port, AF_UNSPEC, why)))
		return e;
	dgram_text(&local, l->name);
	l->fd = socket(local.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return err_sys(why, l->name);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (local.any.sa_family == AF_INET6)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(l->fd, &local.any, local.n_bytes)) {
		if (errno == EADDRINUSE) {
			err_sys(why, l->name);
			return err_say(why, ERR_SYS, l->name, "port %u is in use", l->options.port);
		}
		return err_sys(why, l->name);
	}
	if (listen(l->fd, BACKLOG) || getsockname(l->fd, &bound.any, &bound.n_bytes))
		return err_sys(why, l->name);
	l->port = dgram_port(&bound);
	return ERR_OK;
}

enum err linkrecv_open(struct linkrecv *l, const struct linkrecv_options *o, struct err_why *why)
{
	enum err e;

	memset(l, 0, sizeof(*l));
	l->options = *o;
	l->fd = l->wake_fd = -1;
	if (!o->max_senders || o->max_senders > LINKRECV_MAX_SENDERS)
		return err_say(why, ERR_ARG, "senders", "%u is out of range: 1 to %u", o->max_senders, LINKRECV_MAX_SENDERS);
	if (secret_random(&l->seed, sizeof(l->seed)))
		return err_say(why, ERR_SYS, "random numbers", "the system has none");
	l->n_links = o->max_senders + STRANGERS;
	l->sessions = calloc(o->max_senders, sizeof(*l->sessions));
	l->links = calloc(l->n_links, sizeof(*l->links));
	l->polls = calloc(2 + l->n_links, sizeof(*l->polls));
	if (!l->sessions || !l->links || !l->polls)
		return err_say(why, ERR_NOMEM, "senders", "%s", err_text(ERR_NOMEM));
	for (unsigned i = 0; i < l->n_links; i++) {
		l->links[i].session = -1;
		l->links[i].link.fd = -1;
	}
	if ((e = listen_on(l, why)))
		return e;
	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->wake_fd < 0)
		return err_sys(why, l->name);
	e = thread_start(&l->thread, "link", run, l, why);
	l->is_running = !e;
	return e;
}

void linkrecv_wake(struct linkrecv *l)
{
	uint64_t one = 1;

	if (l->wake_fd >= 0 && write(l->wake_fd, &one, sizeof(one)) < 0)
		return; /* it is awake then: the counter is full */
}

void linkrecv_release(struct linkrecv *l)
{
	if (!l->options.max_senders)
		return;
	atomic_store(&l->quit, true);
	linkrecv_wake(l);
	if (l->is_running)
		pthread_join(l->thread, NULL);
	for (unsigned i = 0; l->links && i < l->n_links; i++)
		link_end(&l->links[i].link);
	free(l->links);
	free(l->sessions);
	free(l->polls);
	if (l->fd >= 0)
		close(l->fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	/* The counts stay, for who adds up at the end. */
	l->links = NULL;
	l->sessions = NULL;
	l->polls = NULL;
	l->is_running = false;
	l->n_links = 0;
	l->options = (struct linkrecv_options){ 0 };
	l->fd = l->wake_fd = -1;
}
