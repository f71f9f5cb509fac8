#include "leg/link.h"

#include "base/bytes.h"
#include "net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTROL_WIRE_BYTES (PACKET_HEADER_BYTES + LINK_CONTROL_BYTES)
#define OUT_BYTES (SEAL_RECORD_MAX_BYTES + 16u * (CONTROL_WIRE_BYTES + SEAL_OVERHEAD_BYTES))

/* ---- begin and end ---- */

enum err link_begin(struct link *l, int fd, enum seal_side side, const uint8_t *psk, const char *peer, int64_t now_ns, struct err_why *why)
{
	uint8_t random[SEAL_RANDOM_BYTES];
	int on = 1;
	enum err e;

	memset(l, 0, sizeof(*l));
	l->fd = fd;
	l->is_sealed = psk;
	l->round_trip_ns = -1;
	l->heard_ns = l->sent_ns = l->begun_ns = now_ns;
	snprintf(l->peer, sizeof(l->peer), "%s", peer);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	l->out = malloc(OUT_BYTES);
	l->scratch = psk ? malloc(SEAL_DATA_MAX_BYTES) : NULL;
	if (!l->out || (psk && !l->scratch)) {
		e = err_say(why, ERR_NOMEM, peer, "%s", err_text(ERR_NOMEM));
		goto out;
	}
	if ((e = ring_init(&l->in, LINK_RING_BYTES, why)) || (psk && (e = ring_init(&l->plain, LINK_RING_BYTES, why))))
		goto out;
	if (psk && ((e = secret_random(random, sizeof(random))) || (e = seal_init(&l->seal, side, psk, random))))
		err_say(why, e, peer, "the random numbers of the system cannot be had");
	secret_wipe(random, sizeof(random));
	l->is_open = !psk;
out:
	if (e)
		link_end(l);
	return e;
}

void link_end(struct link *l)
{
	if (l->out || l->fd > 0) {
		if (l->fd >= 0)
			close(l->fd);
		seal_release(&l->seal);
		ring_release(&l->in);
		ring_release(&l->plain);
		free(l->out);
		free(l->scratch);
	}
	memset(l, 0, sizeof(*l));
	l->fd = -1;
}

/* ---- bytes ---- */

short link_events(const struct link *l)
{
	uint8_t *at;
	short events = 0;

	if (!l->is_over && ring_room(&l->in, &at))
		events |= POLLIN;
	if (l->out_bytes > l->out_done_bytes)
		events |= POLLOUT;
	return events;
}

/* What waits goes first. */
enum err link_flush(struct link *l, int64_t now_ns)
{
	while (l->out_done_bytes < l->out_bytes) {
		ssize_t n = send(l->fd, l->out + l->out_done_bytes, l->out_bytes - l->out_done_bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? ERR_OK : ERR_GONE;
		l->out_done_bytes += (size_t)n;
		l->n_sent_bytes += (uint64_t)n;
		l->sent_ns = now_ns;
	}
	l->out_done_bytes = l->out_bytes = 0;
	return ERR_OK;
}

static enum err pull_in(struct link *l, int64_t now_ns)
{
	uint8_t *at;
	size_t room;

	while (!l->is_over && (room = ring_room(&l->in, &at))) {
		ssize_t n = recv(l->fd, at, room, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? ERR_OK : ERR_GONE;
		if (!n) {
			l->is_over = true;
			return ERR_OK;
		}
		ring_commit(&l->in, (size_t)n);
		l->n_received_bytes += (uint64_t)n;
		l->heard_ns = now_ns;
	}
	return ERR_OK;
}

static enum err shake_hands(struct link *l)
{
	enum err e = ERR_OK;

	while (!l->is_open) {
		uint8_t *at;
		size_t there = ring_peek(&l->in, &at), n_used = 0, n_out = 0;

		if (OUT_BYTES - l->out_bytes < SEAL_HELLO_BYTES)
			return ERR_OK;
		e = seal_handshake(&l->seal, at, there, &n_used, l->out + l->out_bytes, OUT_BYTES - l->out_bytes, &n_out);
		ring_consume(&l->in, n_used);
		l->out_bytes += n_out;
		if (!e)
			l->is_open = true;
		else if (e != ERR_AGAIN || (!n_used && !n_out))
			break;
	}
	return e == ERR_AGAIN ? ERR_OK : e;
}

/* Records become packets, as many as there is room for. */
static enum err unseal(struct link *l)
{
	for (;;) {
		uint8_t *at, *to;
		size_t there = ring_peek(&l->in, &at), record = seal_record_bytes(at, there), n_used, n_out;

		if (!record || record > there || ring_room(&l->plain, &to) < record)
			return ERR_OK;
		enum err e = seal_read(&l->seal, at, there, &n_used, to, &n_out);
		if (e && e != ERR_END)
			return e == ERR_AGAIN ? ERR_OK : e;
		ring_commit(&l->plain, n_out);
		ring_consume(&l->in, n_used);
		if (e == ERR_END) {
			l->is_over = true;
			return ERR_OK;
		}
	}
}

enum err link_work(struct link *l, int64_t now_ns)
{
	enum err e;

	if ((e = pull_in(l, now_ns)) || (l->is_sealed && (e = shake_hands(l))) || (e = link_flush(l, now_ns)))
		return e;
	if (l->is_sealed && l->is_open && (e = unseal(l)))
		return e;
	return l->is_over ? ERR_END : ERR_OK;
}

/* ---- packets ---- */

enum err link_next(struct link *l, struct packet *p)
{
	struct ring *r = l->is_sealed ? &l->plain : &l->in;
	uint8_t *at;
	enum err e;

	if (!l->is_open)
		return ERR_AGAIN;
	ring_consume(r, l->handed_bytes);
	l->handed_bytes = 0;
	if (l->is_sealed && (e = unseal(l)))
		return e;
	size_t there = ring_peek(r, &at);
	if ((e = packet_unpack(p, at, there, PACKET_MAX_PAYLOAD_BYTES)))
		return e == ERR_AGAIN ? ERR_AGAIN : ERR_PEER;
	if (packet_wire_bytes(p) > there)
		return ERR_AGAIN;
	l->handed_bytes = packet_wire_bytes(p);
	return ERR_OK;
}

void link_unread(struct link *l)
{
	l->handed_bytes = 0;
}

bool link_control_of(const struct packet *p, struct link_control *c)
{
	const uint8_t *b = p->payload;

	if (p->type != LINK_PACKET_TYPE || p->payload_bytes < LINK_CONTROL_BYTES || b[1] != 1 || b[0] < LINK_HELLO || b[0] > LINK_DONE)
		return false;
	c->kind = b[0];
	memcpy(c->session, b + 8, LINK_SESSION_BYTES);
	c->n = get_le64(b + 24);
	c->ns = (int64_t)get_le64(b + 32);
	return true;
}

/* Bytes of the stream into what waits: as they are, or as a record. */
static enum err queue(struct link *l, const uint8_t *bytes, size_t n_bytes)
{
	size_t room = OUT_BYTES - l->out_bytes, n_out = 0;
	enum err e = ERR_OK;

	if (room < n_bytes + SEAL_OVERHEAD_BYTES)
		return ERR_AGAIN;
	if (l->is_sealed) {
		if ((e = seal_write(&l->seal, bytes, n_bytes, false, l->out + l->out_bytes, &n_out)))
			return e;
	} else {
		memcpy(l->out + l->out_bytes, bytes, n_bytes);
		n_out = n_bytes;
	}
	l->out_bytes += n_out;
	return ERR_OK;
}

enum err link_tell(struct link *l, const struct link_control *c)
{
	uint8_t wire[CONTROL_WIRE_BYTES] = { 0 };
	uint8_t *b = wire + PACKET_HEADER_BYTES;
	struct packet p = { .version = PACKET_VERSION, .type = LINK_PACKET_TYPE, .hunits = 1, .payload_bytes = LINK_CONTROL_BYTES };

	if (!l->is_open)
		return ERR_AGAIN;
	p.utc_ns = UNITS_UNKNOWN_NS;
	b[0] = (uint8_t)c->kind;
	b[1] = 1;
	memcpy(b + 8, c->session, LINK_SESSION_BYTES);
	put_le64(b + 24, c->n);
	put_le64(b + 32, (uint64_t)c->ns);
	packet_pack(&p, wire);
	return queue(l, wire, sizeof(wire));
}

static size_t send_plain(struct link *l, const struct iovec *iov, unsigned n_iov, int64_t now_ns, enum err *e)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = n_iov };
	ssize_t n;

	do {
		n = sendmsg(l->fd, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		if (errno != EAGAIN)
			*e = ERR_GONE;
		return 0;
	}
	l->n_sent_bytes += (uint64_t)n;
	l->sent_ns = now_ns;
	return (size_t)n;
}

size_t link_send(struct link *l, const struct iovec *iov, unsigned n_iov, int64_t now_ns, enum err *e)
{
	size_t n = 0;

	*e = ERR_OK;
	if (!l->is_open || (*e = link_flush(l, now_ns)) || l->out_bytes)
		return 0;
	if (!l->is_sealed)
		return send_plain(l, iov, n_iov, now_ns, e);
	for (unsigned i = 0; i < n_iov && n < SEAL_DATA_MAX_BYTES; i++) {
		size_t part = iov[i].iov_len < SEAL_DATA_MAX_BYTES - n ? iov[i].iov_len : SEAL_DATA_MAX_BYTES - n;

		memcpy(l->scratch + n, iov[i].iov_base, part);
		n += part;
	}
	if (!n || (*e = queue(l, l->scratch, n)) || (*e = link_flush(l, now_ns)))
		return 0;
	return n;
}

bool link_is_flushed(const struct link *l)
{
	return !l->out_bytes;
}

bool link_is_silent(const struct link *l, int64_t now_ns)
{
	return now_ns - l->heard_ns > LINK_SILENCE_NS;
}

enum err link_beat(struct link *l, int64_t now_ns)
{
	struct link_control c = { .kind = LINK_PING, .ns = now_ns };

	if (link_is_silent(l, now_ns))
		return ERR_GONE;
	if (!l->is_open || now_ns - l->sent_ns < LINK_PING_NS)
		return ERR_OK;
	l->sent_ns = now_ns;
	enum err e = link_tell(l, &c);
	return e == ERR_AGAIN ? ERR_OK : e;
}
