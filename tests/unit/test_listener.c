/* More datagrams than are read in one turn: what is not read yet is not played over. */
#include "leg/listener.h"

#include "base/units.h"
#include "check.h"
#include "rt/clock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST (LISTENER_MAX_BATCHES * LISTENER_BATCH)
#define N (MOST + 500)

struct taken {
	unsigned n, n_wrong;
	int64_t last_ns;
};

static void take(void *user, unsigned port, bool is_rtcp, struct dgram_in *in)
{
	struct taken *t = user;
	uint32_t number;

	(void)port;
	(void)is_rtcp;
	memcpy(&number, in->bytes, sizeof(number));
	t->n_wrong += number != t->n;
	t->n++;
	t->last_ns = in->arrival_ns;
}

/* The system's times of arrival begin some time after they were asked for; until then a datagram comes when it is read. */
static bool has_times(struct listener *l, int fd, const struct sockaddr_in *to)
{
	struct err_why why;

	for (unsigned try = 0; try < 2000; try++) {
		struct taken t = { 0 };
		CHECK_EQ(sendto(fd, &t.n, sizeof(t.n), 0, (const struct sockaddr *)to, sizeof(*to)), sizeof(t.n));
		int64_t sent_ns = clock_now_ns();
		usleep(1000);
		CHECK_EQ(listener_work(l, sent_ns + UNITS_NS_PER_S, -1, take, &t, &why), ERR_OK);
		if (t.n == 1 && t.last_ns <= sent_ns)
			return true;
	}
	return false;
}

static void test_a_backlog_is_read_to_its_end_before_it_is_played_over(void)
{
	static struct listener l;
	struct url u = { .host = "127.0.0.1", .port = 0 };
	struct sockaddr_in to, own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct dgram_addr known = { .n_bytes = sizeof(known.ip4) };
	socklen_t n_to = sizeof(to);
	struct taken t = { 0 };
	struct err_why why;
	int buffer = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t n_buffer = sizeof(buffer);

	CHECK_EQ(listener_init(&l, 1, &why), ERR_OK);
	CHECK_EQ(listener_add(&l, &u, 0, false, 0, NULL, 0, &why), ERR_OK);
	CHECK_EQ(getsockname(l.sockets[0].d.fd, (struct sockaddr *)&to, &n_to), 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&known.ip4, &n_to), 0);
	dgramfilter_known_begin(&l.known);
	dgramfilter_known_add(&l.known, &known);
	dgramfilter_known_end(&l.known);
	CHECK_EQ(getsockopt(l.sockets[0].d.fd, SOL_SOCKET, SO_RCVBUF, &buffer, &n_buffer), 0);
	CHECK(has_times(&l, fd, &to));
	if (buffer < (int)N * 1024) {
		printf("# a buffer of %d bytes holds too few datagrams for this; net.core.rmem_max allows no more\n", buffer);
	} else {
		for (uint32_t i = 0; i < N; i++)
			CHECK_EQ(sendto(fd, &i, sizeof(i), 0, (struct sockaddr *)&to, n_to), sizeof(i));
		int64_t sent_ns = clock_now_ns();
		CHECK_EQ(listener_work(&l, sent_ns + UNITS_NS_PER_S, -1, take, &t, &why), ERR_OK);
		CHECK_EQ(t.n, MOST);
		CHECK_EQ(l.read_ns, t.last_ns);
		CHECK(l.read_ns < sent_ns);
	}
	if (!t.n)
		CHECK_EQ(sendto(fd, &t.n, sizeof(t.n), 0, (struct sockaddr *)&to, n_to), sizeof(t.n));
	int64_t now_ns = clock_now_ns();
	CHECK_EQ(listener_work(&l, now_ns + UNITS_NS_PER_S, -1, take, &t, &why), ERR_OK);
	CHECK(t.n == N || t.n == 1);
	CHECK_EQ(t.n_wrong, 0);
	CHECK(l.read_ns >= now_ns);
	listener_release(&l);
	close(fd);
}

int main(void)
{
	CHECK_RUN(test_a_backlog_is_read_to_its_end_before_it_is_played_over);
	return check_end();
}
