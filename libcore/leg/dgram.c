#include "leg/dgram.h"

#include "base/role.h"
#include "base/units.h"
#include "rt/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FULL_WAIT_MS 2
#define CONTROL_BYTES 64u            /* a timestamp fits */
#define MAX_STAMP_AGE_NS UNITS_NS_PER_S

/* ---- addresses ---- */

static bool has_ip6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

enum err dgram_resolve_all(struct dgram_addr *a, unsigned room, unsigned *n, const char *host, uint16_t port, int family, struct err_why *why)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV }, *found = NULL;

	role_forbid(ROLE_DEADLINE);
	*a = (struct dgram_addr){ 0 };
	if (!host || !*host) {
		if (family == AF_UNSPEC)
			family = has_ip6() ? AF_INET6 : AF_INET;
		a->n_bytes = family == AF_INET6 ? sizeof(a->ip6) : sizeof(a->ip4);
		a->any.sa_family = (sa_family_t)family;
		dgram_set_port(a, port);
		*n = 1;
		return ERR_OK;
	}
	int rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc == EAI_NONAME || rc == EAI_FAIL || rc == EAI_NODATA || rc == EAI_ADDRFAMILY)
		return err_say(why, ERR_PEER, host, "no such host");
	if (rc == EAI_SYSTEM)
		return err_sys(why, host);
	if (rc)
		return err_say(why, rc == EAI_MEMORY ? ERR_NOMEM : ERR_PEER, host, "the name is not resolved: %s", gai_strerror(rc));
	*n = 0;
	for (const struct addrinfo *i = found; i && *n < room; i = i->ai_next) {
		if (i->ai_addrlen > sizeof(a->ip6))
			continue;
		a[*n] = (struct dgram_addr){ .n_bytes = i->ai_addrlen };
		memcpy(&a[*n].any, i->ai_addr, i->ai_addrlen);
		dgram_set_port(&a[*n], port);
		++*n;
	}
	freeaddrinfo(found);
	return *n ? ERR_OK : err_say(why, ERR_PEER, host, "is not an internet address");
}

enum err dgram_resolve(struct dgram_addr *a, const char *host, uint16_t port, int family, struct err_why *why)
{
	unsigned n;

	return dgram_resolve_all(a, 1, &n, host, port, family, why);
}

const char *dgram_text(const struct dgram_addr *a, char out[static DGRAM_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?", scope[IF_NAMESIZE] = "";

	if (!a->n_bytes) {
		snprintf(out, DGRAM_TEXT_BYTES, "nowhere");
	} else if (a->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->ip4.sin_addr, host, sizeof(host));
		snprintf(out, DGRAM_TEXT_BYTES, "%s:%u", host, dgram_port(a));
	} else if (IN6_IS_ADDR_V4MAPPED(&a->ip6.sin6_addr)) {
		inet_ntop(AF_INET, a->ip6.sin6_addr.s6_addr + 12, host, sizeof(host));
		snprintf(out, DGRAM_TEXT_BYTES, "%s:%u", host, dgram_port(a));
	} else {
		inet_ntop(AF_INET6, &a->ip6.sin6_addr, host, sizeof(host));
		bool scoped = a->ip6.sin6_scope_id && if_indextoname(a->ip6.sin6_scope_id, scope);
		snprintf(out, DGRAM_TEXT_BYTES, "[%s%s%s]:%u", host, scoped ? "%" : "", scoped ? scope : "", dgram_port(a));
	}
	return out;
}

bool dgram_is_multicast(const struct dgram_addr *a)
{
	if (a->any.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(a->ip4.sin_addr.s_addr));
	return a->any.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&a->ip6.sin6_addr);
}

uint16_t dgram_port(const struct dgram_addr *a)
{
	return ntohs(a->any.sa_family == AF_INET6 ? a->ip6.sin6_port : a->ip4.sin_port);
}

void dgram_set_port(struct dgram_addr *a, uint16_t port)
{
	if (a->any.sa_family == AF_INET6)
		a->ip6.sin6_port = htons(port);
	else
		a->ip4.sin_port = htons(port);
}

/* The address as 16 bytes, IPv4 as it stands within IPv6. */
static void wide(const struct dgram_addr *a, uint8_t out[16])
{
	memset(out, 0, 16);
	if (a->any.sa_family == AF_INET6) {
		memcpy(out, a->ip6.sin6_addr.s6_addr, 16);
	} else {
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &a->ip4.sin_addr, 4);
	}
}

bool dgram_same_host(const struct dgram_addr *a, const struct dgram_addr *b)
{
	uint8_t x[16], y[16];

	wide(a, x);
	wide(b, y);
	return !memcmp(x, y, sizeof(x));
}

uint64_t dgram_host_hash(const struct dgram_addr *a, uint64_t seed)
{
	uint64_t parts[2], z = seed;

	wide(a, (uint8_t *)parts);
	for (unsigned i = 0; i < 2; i++) {
		z = (z ^ parts[i]) + 0x9E3779B97F4A7C15u;
		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
		z ^= z >> 31;
	}
	return z;
}

bool dgram_same(const struct dgram_addr *a, const struct dgram_addr *b)
{
	return dgram_port(a) == dgram_port(b) && dgram_same_host(a, b);
}

/* ---- opening ---- */

const char *dgram_reason(int sys_errno)
{
	switch (sys_errno) {
	case ECONNREFUSED:
		return "nobody listens there";
	case ENETUNREACH:
		return "no route to that network";
	case EHOSTUNREACH:
		return "that host cannot be reached";
	case EHOSTDOWN:
		return "that host does not answer";
	case ENETDOWN:
		return "the network is down";
	case EMSGSIZE:
		return "the datagram is too long for the way there";
	case EPERM:
		return "a firewall here does not let it out";
	case ENOBUFS:
	case EAGAIN:
		return "the system has no room for more datagrams";
	}
	return strerror(sys_errno);
}

static enum err set(int fd, int level, int option, int value, const char *thing, struct err_why *why)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? err_sys(why, thing) : ERR_OK;
}

static enum err interface_index(const struct dgram_options *o, unsigned *index, struct err_why *why)
{
	*index = 0;
	if (!o->iface || !*o->iface)
		return ERR_OK;
	*index = if_nametoindex(o->iface);
	return *index ? ERR_OK : err_say(why, ERR_SYS, o->iface, "no such network interface");
}

/* How multicast goes out. */
static enum err set_sending(const struct dgram *d, const struct dgram_options *o, unsigned index, struct err_why *why)
{
	bool ip6 = d->family == AF_INET6;
	enum err e;

	if (index && ip6 && (e = set(d->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)index, o->iface, why)))
		return e;
	if (index && !ip6) {
		struct ip_mreqn m = { .imr_ifindex = (int)index };
		if (setsockopt(d->fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m)))
			return err_sys(why, o->iface);
	}
	if (o->ttl >= 0 && ip6 && ((e = set(d->fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, o->ttl, "hops", why)) ||
				     (e = set(d->fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, o->ttl, "hops", why))))
		return e;
	if (o->ttl > 0 && !ip6 && ((e = set(d->fd, IPPROTO_IP, IP_MULTICAST_TTL, o->ttl, "ttl", why)) ||
				    (e = set(d->fd, IPPROTO_IP, IP_TTL, o->ttl, "ttl", why))))
		return e;
	if (o->no_loop && (e = ip6 ? set(d->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0, "loop", why) : set(d->fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0, "loop", why)))
		return e;
	/* A wish: the network may not honour it, and a container may not allow it. */
	if (o->dscp)
		(void)!(ip6 ? set(d->fd, IPPROTO_IPV6, IPV6_TCLASS, o->dscp << 2, "", NULL) : set(d->fd, IPPROTO_IP, IP_TOS, o->dscp << 2, "", NULL));
	return ERR_OK;
}

static enum err join(const struct dgram *d, const struct dgram_addr *group, const struct dgram_options *o, unsigned index, struct err_why *why)
{
	int level = d->family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	int rc = 0;

	if (o->n_sources == 0) {
		struct group_req r = { .gr_interface = index };
		memcpy(&r.gr_group, &group->any, group->n_bytes);
		rc = setsockopt(d->fd, level, MCAST_JOIN_GROUP, &r, sizeof(r));
	}
	for (unsigned i = 0; i < o->n_sources && !rc; i++) {
		struct group_source_req r = { .gsr_interface = index };
		memcpy(&r.gsr_group, &group->any, group->n_bytes);
		memcpy(&r.gsr_source, &o->sources[i].any, o->sources[i].n_bytes);
		rc = setsockopt(d->fd, level, MCAST_JOIN_SOURCE_GROUP, &r, sizeof(r));
	}
	if (rc && errno == ENODEV)
		return err_say(why, ERR_SYS, d->name, "no interface has a route for multicast: name one");
	return rc ? err_sys(why, d->name) : ERR_OK;
}

static enum err set_receiving(struct dgram *d, const struct dgram_options *o, struct err_why *why)
{
	bool ip6 = d->family == AF_INET6;
	enum err e;

	if (o->share && (e = set(d->fd, SOL_SOCKET, SO_REUSEADDR, 1, d->name, why)))
		return e;
	if (o->twin && (e = set(d->fd, SOL_SOCKET, SO_REUSEPORT, 1, d->name, why)))
		return e;
	/* Others' groups on the same port are not for us. */
	if ((e = ip6 ? set(d->fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, d->name, why) : set(d->fd, IPPROTO_IP, IP_MULTICAST_ALL, 0, d->name, why)) && why && why->sys_errno != ENOPROTOOPT)
		return e;
	d->has_timestamps = o->timestamps && !set(d->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, d->name, NULL);
	d->has_complaints = o->complaints &&
		!(ip6 ? set(d->fd, IPPROTO_IPV6, IPV6_RECVERR, 1, d->name, NULL) : set(d->fd, IPPROTO_IP, IP_RECVERR, 1, d->name, NULL));
	/* The privileged kind goes beyond the system's limit, where it is allowed. */
	if (o->receive_bytes && set(d->fd, SOL_SOCKET, SO_RCVBUFFORCE, o->receive_bytes, "", NULL))
		(void)!set(d->fd, SOL_SOCKET, SO_RCVBUF, o->receive_bytes, "", NULL);
	if (o->send_bytes && set(d->fd, SOL_SOCKET, SO_SNDBUFFORCE, o->send_bytes, "", NULL))
		(void)!set(d->fd, SOL_SOCKET, SO_SNDBUF, o->send_bytes, "", NULL);
	return ERR_OK;
}

static enum err bind_to(const struct dgram *d, const struct dgram_addr *local, struct err_why *why)
{
	if (!local->n_bytes || !bind(d->fd, &local->any, local->n_bytes))
		return ERR_OK;
	if (errno == EADDRINUSE)
		return err_say(why, ERR_SYS, d->name, "the port is in use");
	if (errno == EADDRNOTAVAIL)
		return err_say(why, ERR_SYS, d->name, "is not an address of this host");
	if (errno == EACCES)
		return err_say(why, ERR_SYS, d->name, "ports below 1024 are not for everybody");
	return err_sys(why, d->name);
}

enum err dgram_open(struct dgram *d, const struct dgram_addr *local, const struct dgram_options *o, struct err_why *why)
{
	unsigned index;
	enum err e;

	role_forbid(ROLE_DEADLINE);
	*d = (struct dgram){ .fd = -1, .family = local->any.sa_family };
	dgram_text(local, d->name);
	if ((e = interface_index(o, &index, why)))
		return e;
	d->fd = socket(d->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return err_sys(why, d->name);
	/* IPv4 comes in on the IPv6 socket too, unless it is bound to an address. */
	if (d->family == AF_INET6 && !local->n_bytes)
		(void)!set(d->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, "", NULL);
	if (d->family == AF_INET6 && local->n_bytes && IN6_IS_ADDR_UNSPECIFIED(&local->ip6.sin6_addr))
		(void)!set(d->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, "", NULL);
	if ((e = set_receiving(d, o, why)) || (e = set_sending(d, o, index, why)) || (e = bind_to(d, local, why)))
		goto out;
	if (o->join && dgram_is_multicast(local))
		e = join(d, local, o, index, why);
out:
	if (e)
		dgram_close(d);
	return e;
}

void dgram_close(struct dgram *d)
{
	if (d->fd >= 0 && d->family)
		close(d->fd);
	d->fd = -1;
}

enum err dgram_connect(struct dgram *d, const struct dgram_addr *peer, struct err_why *why)
{
	char text[DGRAM_TEXT_BYTES];

	if (connect(d->fd, &peer->any, peer->n_bytes)) {
		int saved = errno;
		dgram_text(peer, text);
		err_say(why, ERR_PEER, text, "%s", dgram_reason(saved));
		return ERR_PEER;
	}
	d->is_connected = true;
	dgram_text(peer, d->name);
	return ERR_OK;
}

enum err dgram_local(const struct dgram *d, struct dgram_addr *a, struct err_why *why)
{
	a->n_bytes = sizeof(a->ip6);
	return getsockname(d->fd, &a->any, &a->n_bytes) ? err_sys(why, d->name) : ERR_OK;
}

bool dgram_memory(const struct dgram *d, struct dgram_memory *m)
{
	uint32_t v[SK_MEMINFO_VARS];
	socklen_t n_bytes = sizeof(v);

	if (getsockopt(d->fd, SOL_SOCKET, SO_MEMINFO, v, &n_bytes) || n_bytes <= SK_MEMINFO_DROPS * sizeof(v[0]))
		return false;
	*m = (struct dgram_memory){ v[SK_MEMINFO_RMEM_ALLOC], v[SK_MEMINFO_RCVBUF], v[SK_MEMINFO_DROPS] };
	return true;
}

/* ---- receiving ---- */

enum err dgram_batch_init(struct dgram_batch *b, unsigned n_slots, size_t slot_bytes, struct err_why *why)
{
	*b = (struct dgram_batch){ .n_slots = n_slots, .slot_bytes = slot_bytes };
	if (n_slots < 1 || n_slots > DGRAM_MAX_BATCH || slot_bytes < 1 || slot_bytes > DGRAM_MAX_BYTES)
		return err_say(why, ERR_ARG, "datagrams", "%u of %zu bytes: 1 to %u of 1 to %u bytes are possible", n_slots, slot_bytes, DGRAM_MAX_BATCH, DGRAM_MAX_BYTES);
	b->in = calloc(n_slots, sizeof(*b->in));
	b->heads = calloc(n_slots, sizeof(*b->heads));
	b->iov = calloc(n_slots, sizeof(*b->iov));
	b->bytes = calloc(n_slots, slot_bytes);
	b->control = calloc(n_slots, CONTROL_BYTES);
	if (!b->in || !b->heads || !b->iov || !b->bytes || !b->control) {
		dgram_batch_release(b);
		return err_say(why, ERR_NOMEM, "datagrams", "%s", err_text(ERR_NOMEM));
	}
	return ERR_OK;
}

void dgram_batch_release(struct dgram_batch *b)
{
	free(b->in);
	free(b->heads);
	free(b->iov);
	free(b->bytes);
	free(b->control);
	*b = (struct dgram_batch){ 0 };
}

/* The kernel's time of arrival as CLOCK_MONOTONIC; now where it has none, or the wall clock was set in between. */
static int64_t arrival(struct msghdr *m, int64_t now_ns, int64_t offset_ns)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct timespec t;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		int64_t at_ns = (int64_t)t.tv_sec * UNITS_NS_PER_S + t.tv_nsec - offset_ns;
		if (at_ns <= now_ns && at_ns > now_ns - MAX_STAMP_AGE_NS)
			return at_ns;
	}
	return now_ns;
}

static void prepare(const struct dgram *d, struct dgram_batch *b)
{
	for (unsigned i = 0; i < b->n_slots; i++) {
		struct msghdr *m = &b->heads[i].msg_hdr;

		b->in[i].bytes = b->bytes + i * b->slot_bytes;
		b->iov[i] = (struct iovec){ b->in[i].bytes, b->slot_bytes };
		*m = (struct msghdr){
			.msg_name = &b->in[i].from.any,
			.msg_namelen = sizeof(b->in[i].from.ip6),
			.msg_iov = &b->iov[i],
			.msg_iovlen = 1,
		};
		if (d->has_timestamps) {
			m->msg_control = b->control + i * CONTROL_BYTES;
			m->msg_controllen = CONTROL_BYTES;
		}
	}
}

enum err dgram_receive(struct dgram *d, struct dgram_batch *b, unsigned *n, struct err_why *why)
{
	role_forbid(ROLE_DEADLINE);
	*n = 0;
	prepare(d, b);
	int got = recvmmsg(d->fd, b->heads, b->n_slots, MSG_DONTWAIT, NULL);
	if (got < 0) {
		switch (errno) {
		case EAGAIN:
		case EINTR:
			return ERR_OK;
		case ECONNREFUSED:
		case EHOSTUNREACH:
		case ENETUNREACH:
		case EHOSTDOWN:
		case EMSGSIZE:
			return err_say(why, ERR_PEER, d->name, "%s", dgram_reason(errno));
		}
		return err_sys(why, d->name);
	}
	int64_t now_ns = clock_now_ns();
	int64_t offset_ns = d->has_timestamps ? clock_utc_offset_ns() : 0;
	for (int i = 0; i < got; i++) {
		struct dgram_in *in = &b->in[i];

		in->n_bytes = b->heads[i].msg_len;
		in->is_cut = (b->heads[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
		in->from.n_bytes = b->heads[i].msg_hdr.msg_namelen;
		in->arrival_ns = d->has_timestamps ? arrival(&b->heads[i].msg_hdr, now_ns, offset_ns) : now_ns;
	}
	*n = (unsigned)got;
	return ERR_OK;
}

/* ---- sending ---- */

enum err dgram_outbox_init(struct dgram_outbox *b, unsigned room, struct err_why *why)
{
	*b = (struct dgram_outbox){ .room = room };
	if (room < 1 || room > DGRAM_MAX_BATCH)
		return err_say(why, ERR_ARG, "datagrams", "%u at once: 1 to %u are possible", room, DGRAM_MAX_BATCH);
	b->heads = calloc(room, sizeof(*b->heads));
	b->iov = calloc(room, 2 * sizeof(*b->iov));
	b->to = calloc(room, sizeof(*b->to));
	if (!b->heads || !b->iov || !b->to) {
		dgram_outbox_release(b);
		return err_say(why, ERR_NOMEM, "datagrams", "%s", err_text(ERR_NOMEM));
	}
	return ERR_OK;
}

void dgram_outbox_release(struct dgram_outbox *b)
{
	free(b->heads);
	free(b->iov);
	free(b->to);
	*b = (struct dgram_outbox){ 0 };
}

bool dgram_queue(struct dgram_outbox *b, const struct dgram_out *out)
{
	if (b->n == b->room)
		return false;
	struct iovec *iov = &b->iov[2 * b->n];
	memcpy(iov, out->piece, sizeof(out->piece));
	b->heads[b->n].msg_hdr = (struct msghdr){
		.msg_name = out->to ? (void *)(uintptr_t)&out->to->any : NULL,
		.msg_namelen = out->to ? out->to->n_bytes : 0,
		.msg_iov = iov,
		.msg_iovlen = out->n_pieces,
	};
	b->to[b->n++] = out->to;
	return true;
}

/* May the same datagram go when it is tried again?  An error may be about one that was sent before. */
static bool try_again(struct dgram *d, int error, unsigned *tries)
{
	if (error == EINTR)
		return true;
	if (++*tries > 2)
		return false;
	if (error == EAGAIN) {
		struct pollfd p = { .fd = d->fd, .events = POLLOUT };
		return poll(&p, 1, FULL_WAIT_MS) == 1;
	}
	return d->has_complaints && (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE);
}

void dgram_send(struct dgram *d, struct dgram_outbox *b, unsigned *n_failed, int *first_errno)
{
	unsigned sent = 0, tries = 0;

	role_forbid(ROLE_DEADLINE);
	*n_failed = 0;
	*first_errno = 0;
	b->failed_to = NULL;
	while (sent < b->n) {
		int n = sendmmsg(d->fd, b->heads + sent, b->n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			sent += (unsigned)n;
			tries = 0;
		} else if (!try_again(d, errno, &tries)) {
			if (!*first_errno) {
				*first_errno = errno;
				b->failed_to = b->to[sent];
			}
			++*n_failed;
			sent++;
			tries = 0;
		}
	}
	b->n = 0;
}

bool dgram_complaint(struct dgram *d, struct dgram_addr *to, int *sys_errno)
{
	uint8_t control[512], bytes[64];
	struct iovec iov = { bytes, sizeof(bytes) };

	if (!d->has_complaints)
		return false;
	for (;;) {
		struct msghdr m = {
			.msg_name = &to->any, .msg_namelen = sizeof(to->ip6),
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control, .msg_controllen = sizeof(control),
		};
		*to = (struct dgram_addr){ 0 };
		if (recvmsg(d->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return false;
		to->n_bytes = m.msg_namelen;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			struct sock_extended_err x;

			if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) && !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
				continue;
			memcpy(&x, CMSG_DATA(c), sizeof(x));
			*sys_errno = (int)x.ee_errno;
			return true;
		}
	}
}
