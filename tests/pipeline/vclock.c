/*
 * A clock that goes only while a tool waits, and a network that writes down what it is given: preloaded into netsend, so that the times
 * of what it sends are exact whatever else the machine does, and a minute takes none.  A wait is over at once, and it is then the time
 * that was waited for; nothing comes back.  Each datagram is written to the file VCLOCK_OUT: 8 bytes of time in ns, 4 of length, 2 of
 * port, and its own, the numbers little-endian.
 *
 * VCLOCK_STALL="AT LENGTH", both in ms: so long after the beginning the tool does not get to run for so long, once.
 *
 * For a tool of one thread that reads a file, or a pipe in which all stands that will come: of others nobody could say when in this time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll
#define UTC_NS (1700000000 * NS_PER_S)

#define BEGIN_NS (3600 * NS_PER_S)

static int64_t now_ns = BEGIN_NS;
static int out_fd = -1;

static void pass_until(int64_t ns)
{
	static int stalled;
	const char *stall = getenv("VCLOCK_STALL");
	long long at_ms, length_ms;

	if (ns > now_ns)
		now_ns = ns;
	if (!stalled && stall && sscanf(stall, "%lld %lld", &at_ms, &length_ms) == 2 && now_ns - BEGIN_NS >= at_ms * 1000000) {
		now_ns += length_ms * 1000000;
		stalled = 1;
	}
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int64_t ns = now_ns + (clock == CLOCK_REALTIME ? UTC_NS : 0);

	*t = (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
	return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
	int64_t ns = t->tv_sec * NS_PER_S + t->tv_nsec;

	(void)clock;
	(void)left;
	pass_until(flags & TIMER_ABSTIME ? ns : now_ns + ns);
	return 0;
}

int ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	struct timespec at_once = { 0 };
	int n_ready = (int)syscall(SYS_ppoll, p, n, &at_once, mask, (size_t)(_NSIG / 8));

	if (n_ready == 0)
		pass_until(now_ns + t->tv_sec * NS_PER_S + t->tv_nsec);
	return n_ready;
}

int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask, size_t room)
{
	(void)room;
	return ppoll(p, n, t, mask);
}

static void put(const void *bytes, size_t n)
{
	if (write(out_fd, bytes, n) != (ssize_t)n)
		abort();
}

int sendmmsg(int fd, struct mmsghdr *heads, unsigned n, int flags)
{
	(void)fd;
	(void)flags;
	if (out_fd < 0 && (out_fd = open(getenv("VCLOCK_OUT"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
		abort();
	for (unsigned i = 0; i < n; i++) {
		const struct msghdr *h = &heads[i].msg_hdr;
		uint32_t n_bytes = 0;
		uint16_t port = ntohs(((const struct sockaddr_in *)h->msg_name)->sin_port);

		for (size_t k = 0; k < h->msg_iovlen; k++)
			n_bytes += (uint32_t)h->msg_iov[k].iov_len;
		put(&now_ns, sizeof(now_ns));
		put(&n_bytes, sizeof(n_bytes));
		put(&port, sizeof(port));
		for (size_t k = 0; k < h->msg_iovlen; k++)
			put(h->msg_iov[k].iov_base, h->msg_iov[k].iov_len);
		heads[i].msg_len = n_bytes;
	}
	return (int)n;
}
