/* leg/dgramfilter: what the kernel lets through of a flood, on loopback sockets of both families; time is told. */
#include "check.h"

#include "base/bytes.h"
#include "base/units.h"
#include "leg/dgramfilter.h"

#include <unistd.h>

#define MOST_BYTES 2048u
#define BATCH 64u
#define START_NS UNITS_NS_PER_S
#define SEED 0x5EED

static struct dgram in;
static struct dgramfilter_known known;
static struct dgramfilter filter;
static struct dgram_batch batch;
static struct dgram_addr to4, to6;
static const char *host6 = "::1";        /* or what stands for it */
static int64_t now_ns;

static struct dgram_addr address(const char *host, uint16_t port)
{
	struct dgram_addr a;
	struct err_why why;

	CHECK_OK(dgram_resolve(&a, host, port, AF_UNSPEC, &why));
	return a;
}

/* A sender's socket; *from is where it sends from. */
static int open_sender(const char *host, struct dgram_addr *from)
{
	struct dgram_addr a = address(host, 0);
	int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !bind(fd, &a.any, a.n_bytes));
	*from = (struct dgram_addr){ .n_bytes = sizeof(from->ip6) };
	CHECK(!getsockname(fd, &from->any, &from->n_bytes));
	return fd;
}

/* A socket that hears both families, or `family` on loopback only, with a filter's state. */
static void begin(int family, int receive_bytes)
{
	struct dgram_options o = { .receive_bytes = receive_bytes };
	struct dgram_addr local = family ? address(family == AF_INET6 ? host6 : "127.0.0.1", 0) : address("", 0), bound;
	struct err_why why;

	CHECK_OK(dgram_open(&in, &local, &o, &why));
	CHECK_OK(dgram_local(&in, &bound, &why));
	to4 = address("127.0.0.1", dgram_port(&bound));
	to6 = address(host6, dgram_port(&bound));
	dgramfilter_known_init(&known, SEED);
	dgramfilter_init(&filter, &in, &known, MOST_BYTES, SEED, START_NS);
	CHECK_OK(dgram_batch_init(&batch, BATCH, MOST_BYTES, &why));
	now_ns = START_NS;
}

static void end(void)
{
	dgram_close(&in);
	dgram_batch_release(&batch);
}

static void send_bytes(int fd, const struct dgram_addr *to, const void *bytes, size_t n_bytes)
{
	CHECK(sendto(fd, bytes, n_bytes, 0, &to->any, to->n_bytes) == (ssize_t)n_bytes);
}

static void send_rtp(int fd, const struct dgram_addr *to, uint32_t ssrc, unsigned seq)
{
	uint8_t bytes[100] = { 0x80, 96, (uint8_t)(seq >> 8), (uint8_t)seq };

	put_be32(bytes + 8, ssrc);
	send_bytes(fd, to, bytes, sizeof(bytes));
}

static void send_rtcp(int fd, const struct dgram_addr *to, uint32_t ssrc)
{
	uint8_t bytes[8] = { 0x80, 201, 0, 1 };

	put_be32(bytes + 4, ssrc);
	send_bytes(fd, to, bytes, sizeof(bytes));
}

/* Read all that is there.  notes: the filter's rule hears of it.  Returns: how many, with the numbers of RTP at seqs (room for them all). */
static unsigned read_all(bool notes, uint16_t *seqs)
{
	unsigned n = 1, all = 0;
	struct err_why why;

	while (n) {
		dgramfilter_account(&filter);
		CHECK_OK(dgram_receive(&in, &batch, &n, &why));
		for (unsigned i = 0; i < n; i++, all++) {
			batch.in[i].arrival_ns = now_ns;
			if (notes)
				dgramfilter_note(&filter, &batch.in[i]);
			if (seqs)
				seqs[all] = get_be16(batch.in[i].bytes + 2);
		}
	}
	return all;
}

/* 600 datagrams of a stranger, as it were in so long: the filter goes on. */
static void flood(int fd, const struct dgram_addr *to, int64_t in_ns)
{
	for (unsigned i = 0; i < 600; i++)
		send_rtp(fd, to, (uint32_t)check_rand(), i);
	now_ns += in_ns;
	CHECK_EQ(read_all(true, NULL), 600);
	CHECK(dgramfilter_run(&filter, now_ns));
	CHECK(filter.is_on);
	CHECK_EQ(filter.n_floods, 1);
}

static void test_known(void)
{
	struct dgram_addr a = address("192.0.2.7", 5004), b = address("192.0.2.7", 5005), c = address("192.0.2.8", 5004), six = address("2001:db8::7", 5004),
		mapped = address("::ffff:192.0.2.7", 5004), none = { .n_bytes = 0 };

	dgramfilter_known_init(&known, 1);
	CHECK(!dgramfilter_known_has(&known, &a));
	dgramfilter_known_begin(&known);
	dgramfilter_known_add(&known, &a);
	dgramfilter_known_add(&known, &six);
	dgramfilter_known_add(&known, &a);
	dgramfilter_known_add(&known, &none);
	dgramfilter_known_end(&known);
	CHECK_EQ(known.n, 2);
	CHECK_EQ(known.version, 1);
	CHECK(dgramfilter_known_has(&known, &a) && dgramfilter_known_has(&known, &six) && dgramfilter_known_has(&known, &mapped));
	CHECK(!dgramfilter_known_has(&known, &b) && !dgramfilter_known_has(&known, &c));
	/* The same again is nothing new; nobody is. */
	dgramfilter_known_begin(&known);
	dgramfilter_known_add(&known, &a);
	dgramfilter_known_add(&known, &six);
	dgramfilter_known_add(&known, &a);
	dgramfilter_known_end(&known);
	CHECK_EQ(known.version, 1);
	dgramfilter_known_begin(&known);
	dgramfilter_known_end(&known);
	CHECK_EQ(known.version, 2);
	CHECK(!dgramfilter_known_has(&known, &a));
	/* More than fit: the first ones. */
	dgramfilter_known_begin(&known);
	for (unsigned i = 0; i < DGRAMFILTER_MAX_KNOWN + 5; i++) {
		a = address("192.0.2.7", (uint16_t)(1000 + i));
		dgramfilter_known_add(&known, &a);
	}
	dgramfilter_known_end(&known);
	CHECK_EQ(known.n, DGRAMFILTER_MAX_KNOWN);
	CHECK(!dgramfilter_known_has(&known, &a));
	for (unsigned i = 0; i < DGRAMFILTER_MAX_KNOWN; i++) {
		a = address("192.0.2.7", (uint16_t)(1000 + i));
		CHECK(dgramfilter_known_has(&known, &a));
	}
}

/* Both families on one socket: who is known passes whole, by RTP and RTCP, and so do quiet hosts; a share of the flood; nothing that is of no use. */
static void test_passes(void)
{
	struct dgram_addr from[5];
	uint8_t bytes[MOST_BYTES + 1] = { 0x80, 96 };

	begin(0, 4 << 20);
	int friend4 = open_sender("127.0.0.1", &from[0]), friend6 = open_sender(host6, &from[1]), bad4 = open_sender("127.0.0.9", &from[2]),
		bad6 = open_sender(host6, &from[3]), quiet = open_sender("127.0.0.7", &from[4]);
	dgramfilter_known_begin(&known);
	dgramfilter_known_add(&known, &from[0]);
	dgramfilter_known_add(&known, &from[1]);
	dgramfilter_known_end(&known);
	/* 600 in 0.75 ms are 800000 a second: of these one of a hundred. */
	flood(bad4, &to4, 750000);
	CHECK_NEAR(filter.share / 4294967296.0, 0.01, 1e-6);
	/* The kernel's count of what is refused is exact. */
	for (unsigned i = 0; i < 500; i++) {
		send_rtp(friend4, &to4, 7, i);
		send_rtcp(friend4, &to4, 7);
		send_rtp(friend6, &to6, 8, i);
		send_rtcp(friend6, &to6, 9);
	}
	CHECK_EQ(read_all(false, NULL), 2000);
	for (unsigned i = 0; i < 300; i++)
		send_rtp(quiet, &to4, (uint32_t)check_rand(), i);
	CHECK_EQ(read_all(false, NULL), 300);
	CHECK_EQ(filter.n_filtered, 0);
	unsigned passed = 0, passed_rtcp = 0;
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = 0; k < 100; k++)
			send_rtp(bad4, &to4, (uint32_t)check_rand(), (uint32_t)check_rand());
		passed += read_all(false, NULL);
		for (unsigned k = 0; k < 100; k++)
			send_rtcp(bad4, &to4, 7);
		passed_rtcp += read_all(false, NULL);
	}
	/* 200 expected of each, with a deviation of 14. */
	CHECK(passed > 100 && passed < 300);
	CHECK(passed_rtcp > 100 && passed_rtcp < 300);
	CHECK_EQ(filter.n_filtered, 40000 - passed - passed_rtcp);
	printf("# of 40000 a share of %u + %u passed, 400 expected\n", passed, passed_rtcp);
	/* Not of version 2, empty, too short, too long: not even from a friend. */
	uint64_t before = filter.n_filtered;
	send_bytes(friend4, &to4, bytes, 0);
	send_bytes(friend4, &to4, bytes, MOST_BYTES + 1);
	send_bytes(friend4, &to4, bytes, MOST_BYTES);
	bytes[0] = 0x40;
	send_bytes(friend4, &to4, bytes, 100);
	send_bytes(friend6, &to6, bytes, 100);
	bytes[0] = 0x80;
	send_bytes(bad4, &to4, bytes, 9);
	send_bytes(bad4, &to4, bytes, 19 - 8);
	CHECK_EQ(read_all(false, NULL), 1);
	CHECK_EQ(filter.n_filtered - before, 6);
	/* Strangers of IPv6 are strangers: quiet until they are many. */
	for (unsigned i = 0; i < 600; i++)
		send_rtp(bad6, &to6, (uint32_t)check_rand(), i);
	now_ns += 750000;
	CHECK_EQ(read_all(true, NULL), 600);
	CHECK(!dgramfilter_run(&filter, now_ns));
	for (unsigned i = 0; i < 1000; i++)
		send_rtp(bad6, &to6, (uint32_t)check_rand(), i);
	passed = read_all(false, NULL);
	CHECK(passed < 100);
	for (unsigned i = 0; i < 500; i++)
		send_rtp(friend6, &to6, 8, i);
	CHECK_EQ(read_all(false, NULL), 500);
	CHECK_EQ(filter.n_overflowed, 0);
	close(friend4);
	close(friend6);
	close(bad4);
	close(bad6);
	close(quiet);
	end();
}

/* What passes of a hot host's RTP passes in runs of four, so that two in sequence prove a newcomer. */
static void test_runs(void)
{
	struct dgram_addr from;
	uint16_t seqs[2000];
	unsigned n_all = 0;

	begin(AF_INET, 4 << 20);
	int fd = open_sender("127.0.0.9", &from);
	flood(fd, &to4, 3750000); /* 160000 a second: of these one of twenty */
	for (unsigned ssrc = 0; ssrc < 10; ssrc++) {
		for (unsigned seq = 0; seq < 2000; seq++)
			send_rtp(fd, &to4, 77 + ssrc, seq);
		unsigned n = read_all(false, seqs);
		CHECK_EQ(n % 4, 0);
		for (unsigned i = 0; i < n; i++)
			CHECK_EQ(seqs[i] % 4, i % 4);
		for (unsigned i = 1; i < n; i++)
			CHECK(i % 4 == 0 || seqs[i] == seqs[i - 1] + 1);
		n_all += n;
	}
	/* 250 runs are expected. */
	CHECK(n_all > 4 * 150 && n_all < 4 * 400);
	close(fd);
	end();
}

/* A newcomer who has become known passes from the next turn on; a second without a flood, and everything does. */
static void test_on_and_off(void)
{
	struct dgram_addr from, self;

	begin(AF_INET6, 4 << 20);
	int bad = open_sender(host6, &from), fd = open_sender(host6, &self);
	flood(bad, &to6, 750000);
	for (unsigned i = 0; i < 400; i++)
		send_rtp(fd, &to6, 1, i);
	CHECK(read_all(false, NULL) < 200);
	dgramfilter_known_begin(&known);
	dgramfilter_known_add(&known, &self);
	dgramfilter_known_end(&known);
	CHECK(!dgramfilter_run(&filter, now_ns + 1000));
	for (unsigned i = 0; i < 400; i++)
		send_rtp(fd, &to6, 1, i);
	CHECK_EQ(read_all(true, NULL), 400);
	/* It goes on at 10000 a second, and is off a second after that. */
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < 1000; k++)
			send_rtp(bad, &to6, (uint32_t)check_rand(), k);
		now_ns += UNITS_NS_PER_S / 10;
		read_all(true, NULL);
		dgramfilter_run(&filter, now_ns);
		CHECK(filter.is_on);
	}
	/* At that rate four of five pass. */
	CHECK(filter.share > UINT32_MAX / 2);
	for (unsigned i = 0; i < 12 && filter.is_on; i++) {
		now_ns += UNITS_NS_PER_S / 10;
		read_all(true, NULL);
		dgramfilter_run(&filter, now_ns);
		CHECK(i > 8 || filter.is_on);
	}
	CHECK(!filter.is_on);
	for (unsigned i = 0; i < 100; i++)
		send_rtp(bad, &to6, (uint32_t)check_rand(), i);
	CHECK_EQ(read_all(false, NULL), 100);
	CHECK_EQ(filter.n_overflowed, 0);
	close(bad);
	close(fd);
	end();
}

/* Few strangers, or many who are known, are no flood. */
static void test_no_flood(void)
{
	struct dgram_addr from, self;

	begin(AF_INET, 4 << 20);
	int fd = open_sender("127.0.0.9", &from), friend = open_sender("127.0.0.1", &self);
	dgramfilter_known_begin(&known);
	dgramfilter_known_add(&known, &self);
	dgramfilter_known_end(&known);
	for (unsigned i = 0; i < 30; i++) {
		now_ns += UNITS_NS_PER_S / 10;
		for (unsigned k = 0; k < 700; k++)
			send_rtp(fd, &to4, (uint32_t)check_rand(), k);
		CHECK_EQ(read_all(true, NULL), 700);
		for (unsigned k = 0; k < 2000; k++)
			send_rtp(friend, &to4, 7, k);
		CHECK_EQ(read_all(true, NULL), 2000);
		CHECK(!dgramfilter_run(&filter, now_ns));
	}
	CHECK(!filter.is_on);
	CHECK_EQ(filter.n_filtered + filter.n_overflowed, 0);
	close(fd);
	close(friend);
	end();
}

/* What finds no room is told apart from what is refused. */
static void test_overflow(void)
{
	struct dgram_addr from, self;

	begin(AF_INET, 64 << 10);
	int bad = open_sender("127.0.0.9", &from), friend = open_sender("127.0.0.1", &self);
	dgramfilter_known_begin(&known);
	dgramfilter_known_add(&known, &self);
	dgramfilter_known_end(&known);
	for (unsigned i = 0; i < 1000; i++)
		send_rtp(friend, &to4, 7, i);
	unsigned n = read_all(true, NULL);
	CHECK(n < 1000);
	CHECK_EQ(filter.n_overflowed, 1000 - n);
	uint64_t overflowed = filter.n_overflowed;
	now_ns += 750000;
	for (unsigned k = 0; k < 20; k++) {
		for (unsigned i = 0; i < 30; i++)
			send_rtp(bad, &to4, (uint32_t)check_rand(), i);
		CHECK_EQ(read_all(true, NULL), 30);
	}
	CHECK(dgramfilter_run(&filter, now_ns));
	unsigned passed = 0;
	for (unsigned k = 0; k < 100; k++) {
		for (unsigned i = 0; i < 100; i++)
			send_rtp(bad, &to4, (uint32_t)check_rand(), i);
		passed += read_all(false, NULL);
	}
	CHECK_EQ(filter.n_filtered, 10000 - passed);
	CHECK_EQ(filter.n_overflowed, overflowed);
	for (unsigned i = 0; i < 1000; i++)
		send_rtp(friend, &to4, 7, i);
	n = read_all(false, NULL);
	CHECK(n < 1000);
	CHECK_EQ(filter.n_overflowed - overflowed, 1000 - n);
	CHECK_EQ(filter.n_filtered, 10000 - passed);
	close(bad);
	close(friend);
	end();
}

/* As many as there may be, and each of them passes. */
static void test_many_known(void)
{
	struct dgram_addr from, self[8];
	int fds[8];

	begin(AF_INET, 4 << 20);
	int bad = open_sender("127.0.0.9", &from);
	dgramfilter_known_begin(&known);
	for (unsigned i = 0; i < 8; i++)
		fds[i] = open_sender("127.0.0.9", &self[i]);
	for (unsigned i = 0; i < DGRAMFILTER_MAX_KNOWN; i++) {
		struct dgram_addr other = address("192.0.2.1", (uint16_t)(1000 + i));
		dgramfilter_known_add(&known, i % 64 ? &other : &self[i / 64]);
	}
	dgramfilter_known_end(&known);
	CHECK_EQ(known.n, DGRAMFILTER_MAX_KNOWN);
	flood(bad, &to4, 750000);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < 50; k++)
			send_rtp(fds[i], &to4, i, k);
	CHECK_EQ(read_all(false, NULL), 400);
	for (unsigned i = 0; i < 1000; i++)
		send_rtp(bad, &to4, (uint32_t)check_rand(), i);
	CHECK(read_all(false, NULL) < 100);
	for (unsigned i = 0; i < 8; i++)
		close(fds[i]);
	close(bad);
	end();
}

/* Two sockets on a port: those who are known get to the first, others to the second; and nobody else has the port. */
static void test_steer(void)
{
	struct dgram_options o = { .twin = true, .receive_bytes = 1 << 20 }, plain = { .receive_bytes = 1 << 20 };
	struct dgram_addr local, from[4];
	struct dgram second, third;
	struct err_why why;

	begin(0, 1 << 20);
	local = address("", dgram_port(&to4));
	dgram_close(&in);
	CHECK_OK(dgram_open(&in, &local, &o, &why));
	CHECK_OK(dgram_open(&second, &local, &o, &why));
	CHECK(dgramfilter_steer(&in, &known));
	CHECK_EQ(dgram_open(&third, &local, &plain, &why), ERR_SYS);
	CHECK_STR(why.reason, "the port is in use");
	int fd4 = open_sender("127.0.0.1", &from[0]), fd6 = open_sender(host6, &from[1]), other4 = open_sender("127.0.0.1", &from[2]), other6 = open_sender(host6, &from[3]);
	struct dgram first = in;
	for (unsigned turn = 0; turn < 3; turn++) {
		bool is_known = turn == 1;
		for (unsigned i = 0; i < 50; i++) {
			send_rtp(fd4, &to4, 1, i);
			send_rtcp(fd6, &to6, 2);
			send_rtp(other4, &to4, 1, i);
			send_rtp(other6, &to6, 2, i);
		}
		in = first;
		CHECK_EQ(read_all(false, NULL), is_known ? 100 : 0);
		in = second;
		CHECK_EQ(read_all(false, NULL), is_known ? 100 : 200);
		dgramfilter_known_begin(&known);
		for (unsigned i = 0; i < 2 && turn == 0; i++)
			dgramfilter_known_add(&known, &from[i]);
		dgramfilter_known_end(&known);
		CHECK(dgramfilter_steer(&first, &known));
	}
	/* As many as there may be. */
	dgramfilter_known_begin(&known);
	for (unsigned i = 1; i < DGRAMFILTER_MAX_KNOWN; i++) {
		struct dgram_addr far = address("192.0.2.1", (uint16_t)(1000 + i));
		dgramfilter_known_add(&known, &far);
	}
	dgramfilter_known_add(&known, &from[1]);
	dgramfilter_known_end(&known);
	CHECK(dgramfilter_steer(&first, &known));
	send_rtp(fd6, &to6, 1, 1);
	send_rtp(fd4, &to4, 1, 1);
	in = first;
	CHECK_EQ(read_all(false, NULL), 1);
	in = second;
	CHECK_EQ(read_all(false, NULL), 1);
	close(fd4);
	close(fd6);
	close(other4);
	close(other6);
	dgram_close(&first);
	end();
}

/* Where there is no IPv6 another address of IPv4 stands for it. */
static void find_host6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a))) {
		host6 = "127.0.0.2";
		printf("# no IPv6 here: %s stands for it\n", host6);
	}
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	find_host6();
	check_seed(1260);
	CHECK_RUN(test_known);
	CHECK_RUN(test_passes);
	CHECK_RUN(test_runs);
	CHECK_RUN(test_on_and_off);
	CHECK_RUN(test_no_flood);
	CHECK_RUN(test_overflow);
	CHECK_RUN(test_many_known);
	CHECK_RUN(test_steer);
	return check_end();
}
