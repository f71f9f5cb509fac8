/* weir:// over TCP that breaks: every message once, in order; a stranger hears nothing. */
#include "check.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "rt/clock.h"
#include "leg/linkrecv.h"
#include "leg/linksend.h"
#include "wire/track.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define TRACK 7

static const uint8_t key[32] = "thirty-two bytes that are a key", other_key[32] = "thirty-two bytes that are none!";

/* ---- what receives ---- */

struct sink {
	atomic_uint_fast64_t n, wrong, repeats, joins, leaves, whole, held, bytes;
	uint64_t hold_every; /* every so often there is no room once */
	bool just_held;
	atomic_bool is_full; /* there is no room at all */
};

static enum err on_join(void *user, unsigned sender, const struct dgram_addr *from)
{
	struct sink *s = user;

	(void)sender;
	(void)from;
	if (atomic_load(&s->is_full))
		return ERR_AGAIN;
	atomic_fetch_add(&s->joins, 1);
	return ERR_OK;
}

static enum err on_leave(void *user, unsigned sender, bool whole)
{
	struct sink *s = user;

	(void)sender;
	if (atomic_load(&s->is_full))
		return ERR_AGAIN;
	atomic_fetch_add(&s->leaves, 1);
	if (whole)
		atomic_fetch_add(&s->whole, 1);
	return ERR_OK;
}

static enum err on_packet(void *user, unsigned sender, const struct packet *p)
{
	struct sink *s = user;

	(void)sender;
	if (atomic_load(&s->is_full)) {
		atomic_fetch_add(&s->held, 1);
		return ERR_AGAIN;
	}
	if (p->flags & PACKET_REPEAT) {
		atomic_fetch_add(&s->repeats, 1);
		return ERR_OK;
	}
	if (p->type != PACKET_DATA)
		return ERR_OK;
	uint64_t n = atomic_load(&s->n);
	if (s->hold_every && n % s->hold_every == s->hold_every - 1 && !s->just_held) {
		s->just_held = true;
		atomic_fetch_add(&s->held, 1);
		return ERR_AGAIN;
	}
	s->just_held = false;
	if (p->track != TRACK || p->seq != (uint32_t)n || p->payload_bytes < 8 || get_le64(p->payload) != n || p->payload[p->payload_bytes - 1] != (uint8_t)(p->payload_bytes > 8 ? n : 0))
		atomic_fetch_add(&s->wrong, 1);
	atomic_fetch_add(&s->bytes, p->payload_bytes);
	atomic_fetch_add(&s->n, 1);
	return ERR_OK;
}

/* ---- a wire that breaks ---- */

struct wire {
	int listen_fd;
	uint16_t port, to;
	pthread_t thread;
	atomic_bool quit;
	uint64_t break_every_bytes; /* 0 never */
	uint64_t stall_after_bytes; /* of the first connection: then nothing goes on, and nobody is told; 0 never */
	int stalled[2];
	atomic_uint_fast64_t breaks, back_bytes, max_breaks;
};

static int tcp_socket(uint16_t port, bool listening)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listening ? bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 8) : connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void carry(struct wire *w, int a, int b)
{
	static uint8_t bytes[65536];
	uint64_t forth = 0;

	while (!atomic_load(&w->quit)) {
		struct pollfd f[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

		if (poll(f, 2, 50) <= 0)
			continue;
		for (int i = 0; i < 2; i++) {
			if (!f[i].revents)
				continue;
			ssize_t n = read(i ? b : a, bytes, sizeof(bytes));
			if (n <= 0)
				return;
			if (!i)
				forth += (uint64_t)n;
			else
				atomic_fetch_add(&w->back_bytes, (uint64_t)n);
			if (w->stall_after_bytes && forth > w->stall_after_bytes) {
				w->stall_after_bytes = 0;
				w->stalled[0] = a;
				w->stalled[1] = b;
				return;
			}
			/* What was just read goes down with the connection. */
			if (w->break_every_bytes && forth > w->break_every_bytes && atomic_load(&w->breaks) < atomic_load(&w->max_breaks)) {
				atomic_fetch_add(&w->breaks, 1);
				return;
			}
			for (ssize_t done = 0, k; done < n; done += k) {
				k = send(i ? a : b, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
				if (k <= 0)
					return;
			}
		}
	}
}

static void *wire_run(void *user)
{
	struct wire *w = user;

	while (!atomic_load(&w->quit)) {
		struct pollfd f = { .fd = w->listen_fd, .events = POLLIN };
		if (poll(&f, 1, 20) <= 0)
			continue;
		int a = accept(w->listen_fd, NULL, NULL), b = a < 0 ? -1 : tcp_socket(w->to, false);
		if (b >= 0)
			carry(w, a, b);
		if (a >= 0 && a != w->stalled[0])
			close(a);
		if (b >= 0 && b != w->stalled[1])
			close(b);
	}
	return NULL;
}

static void wire_begin(struct wire *w, uint16_t to, uint64_t break_every_bytes, unsigned max_breaks)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);

	memset(w, 0, sizeof(*w));
	w->to = to;
	w->break_every_bytes = break_every_bytes;
	atomic_store(&w->max_breaks, max_breaks);
	w->listen_fd = tcp_socket(0, true);
	CHECK(w->listen_fd >= 0 && !getsockname(w->listen_fd, (struct sockaddr *)&a, &n));
	w->port = ntohs(a.sin_port);
	CHECK(!pthread_create(&w->thread, NULL, wire_run, w));
}

static void wire_end(struct wire *w)
{
	atomic_store(&w->quit, true);
	pthread_join(w->thread, NULL);
	close(w->listen_fd);
	for (int i = 0; i < 2; i++)
		if (w->stalled[i])
			close(w->stalled[i]);
}

/* ---- what sends ---- */

static bool put(struct linksend *l, const struct packet *p)
{
	int64_t until_ns = clock_now_ns() + 20 * UNITS_NS_PER_S;
	enum err e;

	while ((e = linksend_put(l, p)) == ERR_AGAIN && clock_now_ns() < until_ns)
		linksend_wait(l, 20000000);
	return !e;
}

static bool begin_stream(struct linksend *l)
{
	static uint8_t bytes[TRACK_FIXED_BYTES + 64];
	struct packet_stream s = { .uuid = { 1, 2, 3, 4 }, .t0_utc_ns = UNITS_UNKNOWN_NS };
	struct packet p = { .version = PACKET_VERSION, .type = PACKET_STREAM, .hunits = 1, .payload = bytes };
	struct track t = { .id = TRACK, .kind = TRACK_DATA, .codec = TRACK_BYTES, .policy = TRACK_RELIABLE, .rate_num = 1000, .rate_den = 1 };

	p.payload_bytes = (uint32_t)packet_stream_pack(&s, bytes, sizeof(bytes));
	if (!put(l, &p))
		return false;
	p.type = PACKET_TRACK;
	p.track = TRACK;
	p.payload_bytes = (uint32_t)track_packed_bytes(&t);
	track_pack(&t, bytes);
	return put(l, &p);
}

static bool send_all(struct linksend *l, uint64_t n, size_t (*length)(uint64_t))
{
	static uint8_t bytes[PACKET_MAX_PAYLOAD_BYTES];
	uint8_t end[PACKET_END_BYTES] = { 0 };
	struct packet p;

	for (uint64_t i = 0; i < n; i++) {
		p = packet_data(TRACK, (int64_t)i, 1, (uint32_t)length(i));
		p.seq = (uint32_t)i;
		p.object_bytes = p.payload_bytes;
		p.payload = bytes;
		if (p.payload_bytes > 8)
			bytes[p.payload_bytes - 1] = (uint8_t)i;
		put_le64(bytes, i);
		if (!put(l, &p))
			return false;
		if (p.payload_bytes > 8)
			bytes[p.payload_bytes - 1] = 0;
	}
	p = (struct packet){ .version = PACKET_VERSION, .type = PACKET_END, .hunits = 1, .payload = end, .payload_bytes = PACKET_END_BYTES };
	return put(l, &p);
}

static size_t small_length(uint64_t i)
{
	return 8 + (i * 2654435761u >> 9) % 120;
}

static size_t large_length(uint64_t i)
{
	(void)i;
	return 65536;
}

static void run_one(const uint8_t *psk, uint64_t n, size_t (*length)(uint64_t), uint64_t break_every_bytes, unsigned max_breaks, uint64_t hold_every)
{
	struct sink sink = { .hold_every = hold_every };
	struct linkrecv_options ro = { .host = "127.0.0.1", .psk = psk, .max_senders = 2,
		.events = { .user = &sink, .join = on_join, .packet = on_packet, .leave = on_leave } };
	static struct linkrecv r;
	static struct linksend l;
	struct wire w;
	struct err_why why = { 0 };

	CHECK_EQ(linkrecv_open(&r, &ro, &why), ERR_OK);
	wire_begin(&w, r.port, break_every_bytes, max_breaks);
	struct linksend_options so = { .host = "127.0.0.1", .port = w.port, .psk = psk, .room_bytes = 1 << 20, .max_messages = 4096 };
	CHECK_EQ(linksend_open(&l, &so, &why), ERR_OK);
	CHECK(begin_stream(&l));
	int64_t begin_ns = clock_now_ns();
	CHECK(send_all(&l, n, length));
	CHECK_EQ(linksend_finish(&l, 20 * UNITS_NS_PER_S, NULL, &why), ERR_OK);
	double s = (double)(clock_now_ns() - begin_ns) / 1e9;
	CHECK_EQ(atomic_load(&sink.n), n);
	CHECK_EQ(atomic_load(&sink.wrong), 0);
	CHECK_EQ(atomic_load(&sink.joins), 1);
	CHECK_EQ(atomic_load(&w.breaks), max_breaks);
	CHECK(atomic_load(&sink.repeats) >= 2 * (uint64_t)max_breaks);
	CHECK(!hold_every || atomic_load(&sink.held) > 0);
	printf("# %llu messages, %.1f MB, %llu breaks, %llu sent again, %.2f s\n", (unsigned long long)n, (double)atomic_load(&sink.bytes) / 1e6,
		(unsigned long long)atomic_load(&w.breaks), (unsigned long long)l.replay.n_again, s);
	linksend_release(&l);
	for (int64_t until_ns = clock_now_ns() + 5 * UNITS_NS_PER_S; !atomic_load(&sink.leaves) && clock_now_ns() < until_ns;)
		usleep(1000);
	CHECK_EQ(atomic_load(&sink.whole), 1);
	wire_end(&w);
	linkrecv_release(&r);
}

static void test_plain(void)
{
	run_one(NULL, 100000, small_length, 1500000, 5, 0);
}

static void test_sealed(void)
{
	run_one(key, 100000, small_length, 1500000, 5, 0);
}

static void test_no_room(void)
{
	run_one(key, 5000, small_length, 200000, 2, 97);
}

/* Large packets in much smaller memory; twice as much takes about twice as many bytes, not more. */
static void test_large(void)
{
	run_one(NULL, 1024, large_length, 20000000, 2, 0);
	run_one(key, 1024, large_length, 20000000, 2, 0);
}

static void test_stranger(void)
{
	struct sink sink = { 0 };
	struct linkrecv_options ro = { .host = "127.0.0.1", .psk = key, .max_senders = 2,
		.events = { .user = &sink, .join = on_join, .packet = on_packet, .leave = on_leave } };
	static struct linkrecv r;
	static struct linksend l;
	struct wire w;
	struct err_why why = { 0 };
	char news[256] = "";

	CHECK_EQ(linkrecv_open(&r, &ro, &why), ERR_OK);
	wire_begin(&w, r.port, 0, 0);
	/* Another key, and none at all: both learn nothing, not one byte. */
	for (int i = 0; i < 2; i++) {
		struct linksend_options so = { .host = "127.0.0.1", .port = w.port, .psk = i ? NULL : other_key };
		CHECK_EQ(linksend_open(&l, &so, &why), ERR_OK);
		CHECK(begin_stream(&l));
		int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S;
		while (!(linksend_news(&l, news) && strstr(news, i ? "broke" : "key")) && clock_now_ns() < until_ns) {
			if (strstr(news, "broke"))
				break;
			usleep(1000);
		}
		CHECK(news[0]);
		CHECK_EQ(linksend_finish(&l, 1000000, NULL, &why), ERR_PEER);
		linksend_release(&l);
	}
	CHECK_EQ(atomic_load(&w.back_bytes), 0);
	CHECK_EQ(atomic_load(&sink.joins), 0);
	CHECK_EQ(atomic_load(&sink.n), 0);
	wire_end(&w);
	linkrecv_release(&r);
}

/* Bytes that are no link at all, and connections that say nothing: the receiver goes on. */
static void test_garbage(void)
{
	struct sink sink = { 0 };
	struct linkrecv_options ro = { .host = "127.0.0.1", .max_senders = 1, .events = { .user = &sink, .join = on_join, .packet = on_packet, .leave = on_leave } };
	static struct linkrecv r;
	static struct linksend l;
	struct err_why why = { 0 };
	uint64_t x = 1;
	int silent[20];

	CHECK_EQ(linkrecv_open(&r, &ro, &why), ERR_OK);
	for (int i = 0; i < 50; i++) {
		uint8_t bytes[4096];
		int fd = tcp_socket(r.port, false);

		for (size_t k = 0; k < sizeof(bytes); k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			bytes[k] = (uint8_t)(x >> 33);
		}
		CHECK(fd >= 0);
		(void)!send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
		char c;
		CHECK(read(fd, &c, 1) <= 0); /* closed, without a word */
		close(fd);
	}
	for (unsigned i = 0; i < 3; i++)
		silent[i] = tcp_socket(r.port, false);
	struct linksend_options so = { .host = "127.0.0.1", .port = r.port };
	CHECK_EQ(linksend_open(&l, &so, &why), ERR_OK);
	CHECK(begin_stream(&l));
	CHECK(send_all(&l, 100, small_length));
	CHECK_EQ(linksend_finish(&l, 20 * UNITS_NS_PER_S, NULL, &why), ERR_OK);
	CHECK_EQ(atomic_load(&sink.n), 100);
	CHECK_EQ(atomic_load(&sink.wrong), 0);
	linksend_release(&l);
	for (unsigned i = 0; i < 3; i++)
		close(silent[i]);
	linkrecv_release(&r);
}

/*
 * A receiver that is full for longer than a silence lasts is not gone: its connection stays.  A way that swallows all is found out, in
 * the middle of a message too.
 */
static void test_long_waits(void)
{
	struct sink full = { .is_full = true }, swallowed = { 0 };
	struct linkrecv_events full_events = { .user = &full, .join = on_join, .packet = on_packet, .leave = on_leave }, swallowed_events = full_events;
	static struct linkrecv r[2];
	static struct linksend l[2];
	struct err_why why = { 0 };
	struct wire w;
	int64_t begin_ns = clock_now_ns();

	swallowed_events.user = &swallowed;
	struct linkrecv_options ro[2] = { { .host = "127.0.0.1", .psk = key, .max_senders = 2, .events = full_events },
		{ .host = "127.0.0.1", .max_senders = 2, .events = swallowed_events } };
	CHECK_OK(linkrecv_open(&r[0], &ro[0], &why));
	CHECK_OK(linkrecv_open(&r[1], &ro[1], &why));
	wire_begin(&w, r[1].port, 0, 0);
	w.stall_after_bytes = 300000;
	struct linksend_options so[2] = { { .host = "127.0.0.1", .port = r[0].port, .psk = key }, { .host = "127.0.0.1", .port = w.port, .room_bytes = 32 << 20 } };
	atomic_store(&full.is_full, false);
	CHECK_OK(linksend_open(&l[0], &so[0], &why));
	CHECK_OK(linksend_open(&l[1], &so[1], &why));
	CHECK(begin_stream(&l[0]) && begin_stream(&l[1]));
	while (!atomic_load(&full.joins) && clock_now_ns() - begin_ns < 5 * UNITS_NS_PER_S)
		usleep(1000);
	atomic_store(&full.is_full, true);
	CHECK(send_all(&l[0], 100, small_length));
	CHECK(send_all(&l[1], 384, large_length));
	while (clock_now_ns() - begin_ns < LINK_SILENCE_NS + 2 * UNITS_NS_PER_S)
		usleep(10000);
	CHECK(atomic_load(&full.held) > 0);
	atomic_store(&full.is_full, false);
	CHECK_OK(linksend_finish(&l[0], 10 * UNITS_NS_PER_S, NULL, &why));
	CHECK_EQ(atomic_load(&full.n), 100);
	CHECK_EQ(atomic_load(&l[0].counts.connects), 1);
	CHECK_OK(linksend_finish(&l[1], 5 * UNITS_NS_PER_S, NULL, &why));
	CHECK_EQ(atomic_load(&swallowed.n), 384);
	CHECK_EQ(atomic_load(&swallowed.wrong) + atomic_load(&full.wrong), 0);
	CHECK_EQ(atomic_load(&l[1].counts.connects), 2);
	for (int i = 0; i < 2; i++) {
		linksend_release(&l[i]);
		linkrecv_release(&r[i]);
	}
	wire_end(&w);
}

/* Who has said all, and knows that it arrived, does not come again as somebody new when another receiver takes the port. */
static void test_done_is_done(void)
{
	struct sink first = { 0 }, second = { 0 };
	struct linkrecv_options ro = { .host = "127.0.0.1", .max_senders = 2, .events = { .user = &first, .join = on_join, .packet = on_packet, .leave = on_leave } };
	static struct linkrecv r;
	static struct linksend l;
	struct err_why why = { 0 };
	char news[256] = "";

	CHECK_OK(linkrecv_open(&r, &ro, &why));
	struct linksend_options so = { .host = "127.0.0.1", .port = r.port };
	CHECK_OK(linksend_open(&l, &so, &why));
	CHECK(begin_stream(&l));
	CHECK(send_all(&l, 10, small_length));
	CHECK_OK(linksend_finish(&l, 10 * UNITS_NS_PER_S, NULL, &why));
	CHECK(linksend_news(&l, news));
	CHECK_STR(news, "connected");
	ro.port = r.port;
	linkrecv_release(&r);
	ro.events.user = &second;
	CHECK_OK(linkrecv_open(&r, &ro, &why));
	/* It would be tried after 50 ms. */
	usleep(400000);
	CHECK(!linksend_news(&l, news));
	CHECK_EQ(atomic_load(&second.joins), 0);
	linksend_release(&l);
	linkrecv_release(&r);
}

/* ---- a name with several addresses ---- */

static atomic_uint n_lookups;

static enum err found(struct dgram_addr *a, unsigned *n, uint16_t port, const char *first, const char *second)
{
	*n = 0;
	for (const char *text = first; text; text = text == first ? second : NULL) {
		a[*n] = (struct dgram_addr){ .ip4 = { .sin_family = AF_INET, .sin_port = htons(port) }, .n_bytes = sizeof(a->ip4) };
		CHECK_EQ(inet_pton(AF_INET, text, &a[*n].ip4.sin_addr), 1);
		++*n;
	}
	return ERR_OK;
}

static enum err two_addresses(struct dgram_addr *a, unsigned room, unsigned *n, const char *host, uint16_t port, int family, struct err_why *why)
{
	(void)room, (void)host, (void)family, (void)why;
	atomic_fetch_add(&n_lookups, 1);
	return found(a, n, port, "127.0.0.2", "127.0.0.1");
}

/* It moves while nobody answers. */
static enum err moved(struct dgram_addr *a, unsigned room, unsigned *n, const char *host, uint16_t port, int family, struct err_why *why)
{
	(void)room, (void)host, (void)family, (void)why;
	return found(a, n, port, atomic_fetch_add(&n_lookups, 1) < 1 ? "127.0.0.2" : "127.0.0.1", NULL);
}

static enum err slow(struct dgram_addr *a, unsigned room, unsigned *n, const char *host, uint16_t port, int family, struct err_why *why)
{
	if (atomic_load(&n_lookups))
		usleep(3000000);
	return two_addresses(a, room, n, host, port, family, why);
}

/* Is met in time, at 127.0.0.1; and again when the receiver was begun anew. */
static void meet(linkaddrs_resolve *resolve, bool loses)
{
	struct sink sink = { 0 };
	struct linkrecv_options ro = { .host = "127.0.0.1", .max_senders = 2, .events = { .user = &sink, .join = on_join, .packet = on_packet, .leave = on_leave } };
	static struct linkrecv r;
	static struct linksend l;
	struct dgram_addr peer = { 0 };
	struct err_why why = { 0 };
	char text[DGRAM_TEXT_BYTES], wanted[DGRAM_TEXT_BYTES];

	atomic_store(&n_lookups, 0);
	CHECK_OK(linkrecv_open(&r, &ro, &why));
	ro.port = r.port;
	struct linksend_options so = { .host = "two-names.test", .port = r.port, .resolve = resolve };
	CHECK_OK(linksend_open(&l, &so, &why));
	for (unsigned i = 0; i <= loses; i++) {
		if (i) {
			linkrecv_release(&r);
			CHECK_OK(linkrecv_open(&r, &ro, &why));
		}
		int64_t begin_ns = clock_now_ns(), until_ns = begin_ns + 10 * UNITS_NS_PER_S;
		while (!linksend_peer(&l, &peer) && clock_now_ns() < until_ns)
			usleep(1000);
		CHECK(clock_now_ns() < until_ns);
		snprintf(wanted, sizeof(wanted), "127.0.0.1:%u", r.port);
		CHECK_STR(dgram_text(&peer, text), wanted);
	}
	int64_t begin_ns = clock_now_ns();
	linksend_release(&l);
	CHECK(clock_now_ns() - begin_ns < 2 * UNITS_NS_PER_S);
	linkrecv_release(&r);
}

static void test_addresses(void)
{
	meet(two_addresses, true);
	CHECK(atomic_load(&n_lookups) >= 2);
	meet(moved, false);
	CHECK(atomic_load(&n_lookups) >= 2);
	/* Nobody waits for a resolver that is asked again: not the connection, and not the end. */
	meet(slow, true);
	CHECK_EQ(atomic_load(&n_lookups), 1);
}

/* Comings and goings for which there is no room are not forgotten: they wait. */
static void test_joins_wait(void)
{
	struct sink sink = { .is_full = true };
	struct linkrecv_options ro = { .host = "127.0.0.1", .max_senders = 1, .events = { .user = &sink, .join = on_join, .packet = on_packet, .leave = on_leave } };
	static struct linkrecv r;
	struct err_why why = { 0 };

	CHECK_OK(linkrecv_open(&r, &ro, &why));
	for (int i = 0; i < 3; i++) {
		static struct linksend l;
		struct linksend_options so = { .host = "127.0.0.1", .port = r.port };

		CHECK_OK(linksend_open(&l, &so, &why));
		CHECK(begin_stream(&l));
		CHECK(send_all(&l, 10, small_length));
		if (!i) {
			CHECK_EQ(linksend_finish(&l, 200000000, NULL, &why), ERR_PEER);
			CHECK_EQ(atomic_load(&sink.joins), 0);
			atomic_store(&sink.is_full, false);
		}
		CHECK_OK(linksend_finish(&l, 10 * UNITS_NS_PER_S, NULL, &why));
		CHECK_EQ(atomic_load(&sink.n), 10);
		atomic_store(&sink.n, 0);
		CHECK_EQ(atomic_load(&sink.joins), i + 1);
		/* It goes while there is no room, and its place is taken when there is. */
		atomic_store(&sink.is_full, true);
		linksend_release(&l);
		usleep(50000);
		CHECK_EQ(atomic_load(&sink.leaves), i);
		atomic_store(&sink.is_full, false);
	}
	for (int64_t until_ns = clock_now_ns() + 5 * UNITS_NS_PER_S; atomic_load(&sink.leaves) < 3 && clock_now_ns() < until_ns;)
		usleep(1000);
	CHECK_EQ(atomic_load(&sink.leaves), 3);
	CHECK_EQ(atomic_load(&sink.whole), 3);
	CHECK_EQ(atomic_load(&sink.wrong), 0);
	linkrecv_release(&r);
}

int main(void)
{
	CHECK_RUN(test_addresses);
	CHECK_RUN(test_long_waits);
	CHECK_RUN(test_done_is_done);
	CHECK_RUN(test_joins_wait);
	CHECK_RUN(test_plain);
	CHECK_RUN(test_sealed);
	CHECK_RUN(test_no_room);
	CHECK_RUN(test_large);
	CHECK_RUN(test_stranger);
	CHECK_RUN(test_garbage);
	return check_end();
}
