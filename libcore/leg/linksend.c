#include "leg/linksend.h"

#include "net/secret.h"
#include "rt/clock.h"
#include "rt/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEFAULT_ROOM_BYTES ((size_t)4 << 20)
#define DEFAULT_MESSAGES 65536u
#define FIRST_PAUSE_NS 50000000LL
#define MAX_PAUSE_NS 2000000000LL
#define LOOK_NS 100000000LL      /* the thread looks up at least so often */
#define NEXT_ADDRESS_NS UNITS_NS_PER_S /* one that does not answer: another may */
#define MAX_PIECES 64u

static void post(int fd)
{
	uint64_t one = 1;

	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return; /* it is readable then: the counter is full */
}

static void say(struct linksend *l, const char *text)
{
	pthread_mutex_lock(&l->lock);
	snprintf(l->news, sizeof(l->news), "%s", text);
	atomic_store(&l->has_news, true);
	pthread_mutex_unlock(&l->lock);
}

static void tell_peer(struct linksend *l)
{
	pthread_mutex_lock(&l->lock);
	l->peer = l->addrs.to[l->addrs.at];
	atomic_store(&l->has_peer, true);
	pthread_mutex_unlock(&l->lock);
}

/* ---- the connection ---- */

static void go_away(struct linksend *l, const char *reason)
{
	int64_t now_ns = clock_now_ns();
	bool pauses = true;

	if (l->connecting_fd >= 0)
		close(l->connecting_fd);
	l->connecting_fd = -1;
	if (l->step == LINKSEND_OPEN)
		linkaddrs_lost(&l->addrs, now_ns);
	else
		pauses = linkaddrs_failed(&l->addrs, now_ns);
	if (l->step >= LINKSEND_GREETING) {
		char text[256];

		link_end(&l->link);
		snprintf(text, sizeof(text), "%s; connecting again", reason);
		say(l, text);
	} else if (!l->is_refused_said && pauses) {
		l->is_refused_said = true;
		say(l, reason);
	}
	atomic_store(&l->counts.connected, 0);
	l->step = LINKSEND_AWAY;
	l->try_at_ns = now_ns;
	if (!pauses)
		return;
	l->try_at_ns += l->pause_ns;
	l->pause_ns = l->pause_ns * 2 < MAX_PAUSE_NS ? l->pause_ns * 2 : MAX_PAUSE_NS;
}

static void begin_link(struct linksend *l, int64_t now_ns)
{
	struct err_why why = { 0 };
	int fd = l->connecting_fd;

	l->connecting_fd = -1;
	if (link_begin(&l->link, fd, SEAL_CLIENT, l->options.psk, l->name, now_ns, &why)) {
		l->step = LINKSEND_CONNECTING;
		go_away(l, why.reason);
		return;
	}
	l->step = LINKSEND_GREETING;
	l->is_greeted = false;
}

static void try_connect(struct linksend *l, int64_t now_ns)
{
	const struct dgram_addr *to = linkaddrs_now(&l->addrs);

	l->connecting_fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->step = LINKSEND_CONNECTING;
	if (l->connecting_fd < 0 || (connect(l->connecting_fd, &to->any, to->n_bytes) && errno != EINPROGRESS))
		go_away(l, dgram_reason(errno));
	else
		l->try_at_ns = now_ns + (l->addrs.n > 1 ? NEXT_ADDRESS_NS : LINK_SILENCE_NS);
}

static void end_connect(struct linksend *l, int64_t now_ns, short revents)
{
	int error = 0;
	socklen_t n = sizeof(error);

	if (!revents) {
		if (now_ns > l->try_at_ns)
			go_away(l, "does not answer; trying again");
		return;
	}
	if (getsockopt(l->connecting_fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
		char text[256];

		snprintf(text, sizeof(text), "%s; trying again", dgram_reason(error));
		go_away(l, text);
		return;
	}
	begin_link(l, now_ns);
}

/* ---- what a new connection begins with ---- */

static bool write_prologue(struct linksend *l)
{
	size_t need = 0, at = 0;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n_announcements; i++)
		need += l->announcements[i].n_bytes;
	if (need > l->prologue_room) {
		free(l->prologue);
		l->prologue = malloc(need);
		l->prologue_room = l->prologue ? need : 0;
	}
	for (unsigned i = 0; i < l->n_announcements && l->prologue; i++) {
		const struct linksend_announcement *a = &l->announcements[i];
		struct packet p;

		memcpy(l->prologue + at, a->wire, a->n_bytes);
		if (!packet_unpack(&p, l->prologue + at, a->n_bytes, PACKET_MAX_PAYLOAD_BYTES)) {
			if (l->options.refresh && a->track)
				l->options.refresh(l->options.user, a->track, p.head + PACKET_HEADER_BYTES, p.payload_bytes);
			p.flags |= PACKET_REPEAT;
			packet_pack(&p, p.head);
		}
		at += a->n_bytes;
	}
	pthread_mutex_unlock(&l->lock);
	l->prologue_bytes = at;
	l->prologue_done_bytes = l->part_bytes = 0;
	return l->prologue || !need;
}

static enum err take_control(struct linksend *l, const struct link_control *c, int64_t now_ns)
{
	enum err e = ERR_OK;

	switch (c->kind) {
	case LINK_RESUME:
		if (l->step != LINKSEND_GREETING || memcmp(c->session, l->session, LINK_SESSION_BYTES))
			return ERR_PEER;
		if ((e = replay_resume(&l->replay, c->n)))
			return e;
		atomic_store(&l->counts.acked, c->n);
		atomic_store(&l->counts.again, l->replay.n_again);
		if (!write_prologue(l))
			return ERR_NOMEM;
		l->step = LINKSEND_OPEN;
		l->greetings = 0;
		l->pause_ns = FIRST_PAUSE_NS;
		tell_peer(l);
		say(l, atomic_load(&l->counts.connects) ? "connected again" : "connected");
		atomic_fetch_add(&l->counts.connects, 1);
		atomic_store(&l->counts.connected, 1);
		break;
	case LINK_ACK:
		if ((e = replay_ack(&l->replay, c->n)))
			return e;
		atomic_store(&l->counts.acked, c->n);
		break;
	case LINK_DONE:
		if (replay_held(&l->replay))
			return ERR_PEER;
		atomic_store(&l->is_done, true);
		break;
	case LINK_PING:
		l->owes_pong = true;
		l->pong_ns = c->ns;
		break;
	case LINK_PONG:
		if (c->ns >= 0 && now_ns >= c->ns) {
			l->link.round_trip_ns = now_ns - c->ns;
			atomic_store(&l->counts.round_trip_us, (uint64_t)(now_ns - c->ns) / 1000);
		}
		break;
	case LINK_HELLO:
		return ERR_PEER;
	}
	post(l->room_fd);
	return e;
}

static enum err hear(struct linksend *l, int64_t now_ns)
{
	struct link_control c;
	struct packet p;
	enum err e;

	while (!(e = link_next(&l->link, &p))) {
		if (link_control_of(&p, &c) && (e = take_control(l, &c, now_ns)))
			return e;
	}
	return e == ERR_AGAIN ? ERR_OK : e;
}

static enum err greet(struct linksend *l)
{
	struct link_control c = { .kind = LINK_HELLO };

	if (l->is_greeted || !l->link.is_open)
		return ERR_OK;
	l->is_greeted = true;
	memcpy(c.session, l->session, sizeof(c.session));
	c.n = atomic_load(&l->replay.n_acked);
	return link_tell(&l->link, &c);
}

/* n bytes went: of the prologue first, then of messages. */
static void account(struct linksend *l, size_t n)
{
	size_t part = l->prologue_bytes - l->prologue_done_bytes, message;

	part = n < part ? n : part;
	l->prologue_done_bytes += part;
	n += l->part_bytes - part;
	while (replay_next(&l->replay, &message) && n >= message) {
		n -= message;
		replay_sent(&l->replay);
		atomic_fetch_add(&l->counts.messages, 1);
	}
	l->part_bytes = n;
}

/* Control packets stand between others, never within one. */
static enum err speak_of_itself(struct linksend *l, int64_t now_ns)
{
	struct link_control pong = { .kind = LINK_PONG, .ns = l->pong_ns };
	enum err e;

	/* In the middle of a packet nothing else can be said; the other side can be gone all the same. */
	if (l->part_bytes || (l->prologue_done_bytes && l->prologue_done_bytes < l->prologue_bytes))
		return link_is_silent(&l->link, now_ns) ? ERR_GONE : ERR_OK;
	if (l->owes_pong) {
		l->owes_pong = false;
		if ((e = link_tell(&l->link, &pong)) && e != ERR_AGAIN)
			return e;
	}
	return link_beat(&l->link, now_ns);
}

static enum err speak(struct linksend *l, int64_t now_ns)
{
	struct iovec iov[MAX_PIECES];
	enum err e = ERR_OK;

	l->wants_out = false;
	while (l->step == LINKSEND_OPEN) {
		unsigned n = 0;
		size_t all = 0;

		if (l->prologue_done_bytes < l->prologue_bytes) {
			iov[n].iov_base = l->prologue + l->prologue_done_bytes;
			iov[n++].iov_len = l->prologue_bytes - l->prologue_done_bytes;
		}
		n += replay_vector(&l->replay, l->part_bytes, iov + n, MAX_PIECES - n);
		if (!n)
			break;
		for (unsigned i = 0; i < n; i++)
			all += iov[i].iov_len;
		size_t went = link_send(&l->link, iov, n, now_ns, &e);
		account(l, went);
		if (e || went < all) {
			l->wants_out = !e;
			if (e || !went || !l->link.is_sealed || !link_is_flushed(&l->link))
				break;
		}
	}
	return e;
}

/* ---- the thread ---- */

/* The connection is over. */
static void lose(struct linksend *l, enum err e)
{
	if (atomic_load(&l->is_done)) {
		/* All has arrived: a receiver that ends is no reason to begin anew with another. */
		link_end(&l->link);
		atomic_store(&l->counts.connected, 0);
		l->step = LINKSEND_OVER;
		return;
	}
	if (e == ERR_PEER && !l->link.is_open)
		go_away(l, "does not have the same key, or does not speak weir");
	else if (e == ERR_PEER)
		go_away(l, "lost its place in the stream");
	else if (l->step == LINKSEND_GREETING && l->greetings++)
		go_away(l, l->link.is_sealed ? "the connection broke off at once: has the other side another key, or none?" : "the connection broke off at once: does the other side want a key?");
	else
		go_away(l, e == ERR_GONE || e == ERR_END ? "the connection broke" : err_text(e));
}

static void work(struct linksend *l, short revents)
{
	int64_t now_ns = clock_now_ns();
	enum err e = ERR_OK;

	if (l->step == LINKSEND_AWAY && now_ns >= l->try_at_ns)
		try_connect(l, now_ns);
	else if (l->step == LINKSEND_CONNECTING)
		end_connect(l, now_ns, revents);
	if (l->step < LINKSEND_GREETING || l->step == LINKSEND_OVER)
		return;
	enum err over = link_work(&l->link, now_ns);
	if (over == ERR_PEER)
		e = ERR_PEER;
	if (!e && !(e = greet(l)) && !(e = hear(l, now_ns)) && !(e = over) && !(e = speak_of_itself(l, now_ns)))
		e = speak(l, now_ns);
	if (e)
		lose(l, e);
}

static void *run(void *user)
{
	struct linksend *l = user;

	role_take(ROLE_IO);
	while (!atomic_load(&l->quit)) {
		struct pollfd f[2] = { { .fd = l->wake_fd, .events = POLLIN }, { .fd = -1 } };
		size_t n;
		uint64_t taken;

		if (l->step == LINKSEND_CONNECTING) {
			f[1].fd = l->connecting_fd;
			f[1].events = POLLOUT;
		} else if (l->step == LINKSEND_GREETING || l->step == LINKSEND_OPEN) {
			f[1].fd = l->link.fd;
			f[1].events = (short)(link_events(&l->link) | (l->wants_out ? POLLOUT : 0));
		}
		int64_t until_ns = l->step == LINKSEND_AWAY ? l->try_at_ns - clock_now_ns() : LOOK_NS;
		atomic_store(&l->is_asleep, true);
		if (l->step == LINKSEND_OPEN && !l->wants_out && link_is_flushed(&l->link) && replay_next(&l->replay, &n))
			until_ns = 0;
		until_ns = until_ns < 0 ? 0 : until_ns > LOOK_NS ? LOOK_NS : until_ns;
		(void)poll(f, 2, (int)((until_ns + 999999) / 1000000));
		atomic_store(&l->is_asleep, false);
		if (f[0].revents && read(l->wake_fd, &taken, sizeof(taken)) < 0 && errno != EAGAIN)
			break;
		work(l, f[1].revents);
	}
	return NULL;
}

/* ---- the caller's side ---- */

enum err linksend_open(struct linksend *l, const struct linksend_options *o, struct err_why *why)
{
	enum err e;

	memset(l, 0, sizeof(*l));
	l->options = *o;
	l->connecting_fd = l->wake_fd = l->room_fd = l->link.fd = -1;
	l->pause_ns = FIRST_PAUSE_NS;
	pthread_mutex_init(&l->lock, NULL);
	if ((e = linkaddrs_open(&l->addrs, o->host, o->port, o->resolve, why)))
		return e;
	if (l->addrs.n == 1)
		dgram_text(&l->addrs.to[0], l->name);
	else
		snprintf(l->name, sizeof(l->name), "%.80s:%u", o->host, o->port);
	if ((e = secret_random(l->session, sizeof(l->session))))
		return err_say(why, e, l->name, "the random numbers of the system cannot be had");
	if ((e = replay_init(&l->replay, o->room_bytes ? o->room_bytes : DEFAULT_ROOM_BYTES, o->max_messages ? o->max_messages : DEFAULT_MESSAGES, why)))
		return e;
	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->room_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->wake_fd < 0 || l->room_fd < 0)
		return err_sys(why, l->name);
	e = thread_start(&l->thread, "link", run, l, why);
	l->is_running = !e;
	return e;
}

void linksend_release(struct linksend *l)
{
	if (!l->name[0] && !l->replay.ring.bytes)
		return;
	atomic_store(&l->quit, true);
	post(l->wake_fd);
	if (l->is_running)
		pthread_join(l->thread, NULL);
	link_end(&l->link);
	linkaddrs_release(&l->addrs);
	if (l->connecting_fd >= 0)
		close(l->connecting_fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->room_fd >= 0)
		close(l->room_fd);
	replay_release(&l->replay);
	for (unsigned i = 0; i < l->n_announcements; i++)
		free(l->announcements[i].wire);
	free(l->announcements);
	free(l->prologue);
	pthread_mutex_destroy(&l->lock);
	memset(l, 0, sizeof(*l));
	l->wake_fd = l->room_fd = l->connecting_fd = l->link.fd = -1;
}

/* The last announcement of each track, for those who come later. */
static enum err keep(struct linksend *l, const struct packet *p)
{
	size_t n_bytes = PACKET_HEADER_BYTES + (size_t)units_round_up(p->payload_bytes, PACKET_UNIT_BYTES);
	struct packet head = *p;
	uint8_t *wire = calloc(1, n_bytes);
	enum err e = ERR_NOMEM;
	unsigned i = 0;

	if (!wire)
		return ERR_NOMEM;
	head.hunits = 1;
	head.track = p->type == PACKET_STREAM ? 0 : p->track;
	memcpy(wire + PACKET_HEADER_BYTES, p->payload, p->payload_bytes);
	packet_pack(&head, wire);
	pthread_mutex_lock(&l->lock);
	while (i < l->n_announcements && l->announcements[i].track != head.track)
		i++;
	if (i == l->n_announcements && i == l->announcements_room) {
		struct linksend_announcement *more = reallocarray(l->announcements, i + 64, sizeof(*more));

		if (!more)
			goto out;
		l->announcements = more;
		l->announcements_room = i + 64;
	}
	if (i == l->n_announcements)
		l->announcements[l->n_announcements++] = (struct linksend_announcement){ .track = head.track };
	free(l->announcements[i].wire);
	l->announcements[i].wire = wire;
	l->announcements[i].n_bytes = n_bytes;
	wire = NULL;
	e = ERR_OK;
out:
	pthread_mutex_unlock(&l->lock);
	free(wire);
	return e;
}

/* Behind what waits; extensions are not taken. */
static enum err queue(struct linksend *l, const struct packet *p)
{
	size_t padded = (size_t)units_round_up(p->payload_bytes, PACKET_UNIT_BYTES), n_bytes = PACKET_HEADER_BYTES + padded;
	struct packet head = *p;

	if (n_bytes > replay_largest_bytes(&l->replay))
		return ERR_LIMIT;
	uint8_t *at = replay_reserve(&l->replay, n_bytes);
	if (!at)
		return ERR_AGAIN;
	head.hunits = 1;
	head.flags &= (uint16_t)~PACKET_REPEAT;
	if (p->payload_bytes)
		memcpy(at + PACKET_HEADER_BYTES, p->payload, p->payload_bytes);
	memset(at + PACKET_HEADER_BYTES + p->payload_bytes, 0, padded - p->payload_bytes);
	packet_pack(&head, at);
	replay_put(&l->replay, n_bytes);
	if (atomic_exchange(&l->is_asleep, false))
		post(l->wake_fd);
	return ERR_OK;
}

enum err linksend_put(struct linksend *l, const struct packet *p)
{
	enum err e;

	/* A connection that begins meanwhile says it twice rather than not at all. */
	if ((p->type == PACKET_STREAM || p->type == PACKET_TRACK) && (e = keep(l, p)))
		return e;
	return queue(l, p);
}

enum err linksend_again(struct linksend *l)
{
	enum err e = ERR_OK;

	/* No other thread writes them. */
	for (unsigned i = 0; i < l->n_announcements && !e; i++) {
		const struct linksend_announcement *a = &l->announcements[i];
		struct packet p;

		if (!(e = packet_unpack(&p, a->wire, a->n_bytes, PACKET_MAX_PAYLOAD_BYTES)))
			e = queue(l, &p);
	}
	return e;
}

bool linksend_has_room(const struct linksend *l, uint64_t n_bytes, unsigned n)
{
	uint64_t held = replay_held_bytes(&l->replay), need = n_bytes + n * 3ULL * PACKET_UNIT_BYTES;

	return need <= l->replay.ring.size_bytes - held && replay_held(&l->replay) + n <= l->replay.max_messages;
}

void linksend_wait(struct linksend *l, int64_t limit_ns)
{
	struct pollfd f = { .fd = l->room_fd, .events = POLLIN };
	uint64_t taken;

	if (poll(&f, 1, (int)((limit_ns + 999999) / 1000000)) > 0 && read(l->room_fd, &taken, sizeof(taken)) < 0)
		return; /* somebody else took it */
}

bool linksend_news(struct linksend *l, char out[static 256])
{
	if (!atomic_exchange(&l->has_news, false))
		return false;
	pthread_mutex_lock(&l->lock);
	memcpy(out, l->news, sizeof(l->news));
	pthread_mutex_unlock(&l->lock);
	return true;
}

bool linksend_peer(struct linksend *l, struct dgram_addr *peer)
{
	if (!atomic_exchange(&l->has_peer, false))
		return false;
	pthread_mutex_lock(&l->lock);
	*peer = l->peer;
	pthread_mutex_unlock(&l->lock);
	return true;
}

enum err linksend_finish(struct linksend *l, int64_t limit_ns, const volatile sig_atomic_t *stop, struct err_why *why)
{
	uint64_t acked = atomic_load(&l->counts.acked);
	int64_t since_ns = clock_now_ns();

	while (!atomic_load(&l->is_done)) {
		uint64_t now_acked = atomic_load(&l->counts.acked);

		if (now_acked != acked) {
			acked = now_acked;
			since_ns = clock_now_ns();
		}
		if ((stop && *stop) || clock_now_ns() - since_ns > limit_ns)
			return err_say(why, ERR_PEER, l->name, "%s: %" PRIu64 " packets are not known to have arrived",
				atomic_load(&l->counts.connects) ? "the end was not acknowledged" : "nobody ever answered", replay_held(&l->replay));
		linksend_wait(l, LOOK_NS);
	}
	return ERR_OK;
}
