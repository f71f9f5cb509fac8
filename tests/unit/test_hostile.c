/* The receiver among strangers, in virtual time: who comes and goes, crowds of the new, repairs of what is not theirs. */
#include "check.h"

#include "base/bytes.h"
#include "leg/receiver.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 44u                       /* of L16, payload type 11: 1 ms at 44.1 kHz */
#define MS 1000000LL

static struct receiver r;
static struct writer out;
static struct tool tool = { .name = "test_hostile" };
static int64_t now_ns;
static uint64_t answered_bytes;
static unsigned n_joined, n_left;

static void on_send(void *user, unsigned port, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes)
{
	(void)user;
	(void)port;
	(void)to;
	(void)bytes;
	answered_bytes += n_bytes;
}

static void on_event(void *user, const struct netflow *f, bool joined)
{
	(void)user;
	(void)f;
	n_joined += joined;
	n_left += !joined;
}

static void begin(unsigned max_senders)
{
	struct receiver_options o = { .max_senders = max_senders, .seed = 7,
		.flow = { .block_ns = 2500000, .latency_ns = 20 * MS, .glitches = 6, .n_slots = 64 } };
	struct err_why why;

	memset(&r, 0, sizeof(r));
	memset(&out, 0, sizeof(out));
	now_ns = UNITS_NS_PER_S;
	answered_bytes = n_joined = n_left = 0;
	CHECK_EQ(writer_open(&out, open("/dev/null", O_WRONLY | O_CLOEXEC), "test", "test", &why), ERR_OK);
	CHECK_EQ(writer_begin(&out), ERR_OK);
	r.n_ports = 1;
	CHECK_EQ(receiver_init(&r, &tool, &out, &o, now_ns, &why), ERR_OK);
	r.send = on_send;
	r.event = on_event;
}

static void end(void)
{
	CHECK_EQ(receiver_end(&r, PACKET_END_NORMAL), ERR_OK);
	receiver_release(&r);
	close(out.fd);
	writer_release(&out);
}

static struct dgram_addr host(unsigned n)
{
	return (struct dgram_addr){ .ip4 = { .sin_family = AF_INET, .sin_port = htons(4000), .sin_addr.s_addr = htonl(0xC0000200u + n) },
		.n_bytes = sizeof(struct sockaddr_in) };
}

static unsigned from_port = 4000;

static void pass(int64_t ns)
{
	now_ns += ns;
	CHECK_EQ(receiver_run(&r, now_ns, true), ERR_OK);
}

static void say(unsigned from, uint32_t ssrc, unsigned seq)
{
	uint8_t bytes[12 + 2 * FRAMES] = { 0x80, 11, (uint8_t)(seq >> 8), (uint8_t)seq };
	struct dgram_addr a = host(from);

	dgram_set_port(&a, (uint16_t)from_port);
	put_be32(bytes + 4, seq * FRAMES);
	put_be32(bytes + 8, ssrc);
	receiver_datagram(&r, 0, false, &a, bytes, sizeof(bytes), now_ns);
}

static void bye(unsigned from, uint32_t ssrc)
{
	uint8_t bytes[16] = { 0x80, 201, 0, 1, 0, 0, 0, 1, 0x81, 203, 0, 1 };
	struct dgram_addr a = host(from);

	put_be32(bytes + 12, ssrc);
	receiver_datagram(&r, 0, true, &a, bytes, sizeof(bytes), now_ns);
}

static uint64_t senders(void)
{
	struct stats s = { .tool = NULL };

	receivercount_show(&r, &s);
	return atomic_load(&r.counts.senders);
}

/* Ten thousand new SSRCs from elsewhere between any two packets of one who is new too. */
static void newcomer(void)
{
	uint32_t stranger = 0x1000;

	begin(16);
	for (unsigned seq = 0; seq < 4; seq++) {
		say(1, 0xABC, seq);
		for (unsigned i = 0; i < 10000; i++)
			say(2, stranger++, 1000 + i % 7);
		pass(5 * MS);
	}
	CHECK_EQ(senders(), 1);
	CHECK_EQ(r.flows[0].ssrc, 0xABC);
	end();
}

/* Who comes, says BYE and comes again under another name, a hundred thousand times: ids and memory are not used up. */
static void coming_and_going(void)
{
	begin(4);
	for (uint32_t i = 0; i < 100000; i++) {
		say(2, 0x10000 + i, 1);
		say(2, 0x10000 + i, 2);
		bye(2, 0x10000 + i);
		pass(MS);
	}
	/* 100 s of it: 72 at once, and one a second. */
	CHECK(n_joined >= 72 && n_joined <= 180);
	/* When it is over, there is room for others. */
	pass(2 * UNITS_NS_PER_S);
	for (unsigned seq = 0; seq < 3; seq++) {
		say(1, 0xABC, seq);
		pass(MS);
	}
	CHECK_EQ(senders(), 1);
	/* And when all ids are used, nobody more comes. */
	r.next_id = PACKET_MAX_TRACK;
	pass(100 * UNITS_NS_PER_S);
	for (unsigned seq = 0; seq < 9; seq++) {
		say(3, 0xABD, seq);
		pass(MS);
	}
	CHECK_EQ(senders(), 0);
	end();
}

/* Two packets do not take a place for a minute. */
static void brief(void)
{
	begin(2);
	for (uint32_t i = 0; i < 2; i++) {
		say(2, 0x100 + i, 1);
		say(2, 0x100 + i, 2);
	}
	pass(MS);
	CHECK_EQ(senders(), 2);
	for (unsigned seq = 0; seq < 6000; seq++) {
		say(1, 0xABC, seq);
		pass(MS);
	}
	CHECK_EQ(senders(), 1);
	CHECK_EQ(n_left, 2);
	end();
}

/* A repair packet for two flows: that of who sends it, and another's. */
static void others_repairs(void)
{
	uint8_t bytes[12 + 8 + 12 + 2 + 3 + 12 + 2 * FRAMES] = { 0x80, 99, 0, 1 };
	struct dgram_addr a = host(2);

	begin(4);
	for (unsigned seq = 0; seq < 4; seq++) {
		say(1, 0xABC, seq);
		say(2, 0xBAD, seq);
		pass(MS);
	}
	CHECK_EQ(senders(), 2);
	put_be32(bytes + 8, 0x5555);
	uint8_t *p = bytes + 12;
	memcpy(p, (const uint8_t[]){ 1, 2, 1, 0, 0, 1, 2, 0 }, 8);
	put_be32(p + 8, 0xBAD);
	p[13] = 3;
	put_be32(p + 14, 0xABC);
	p[19] = 4;
	p[21] = 1;
	receiver_datagram(&r, 0, false, &a, bytes, sizeof(bytes), now_ns);
	CHECK_EQ(r.rs.counts.n_repairs, 0);
	/* The same about flows of its own is taken. */
	say(2, 0xBAE, 4);
	say(2, 0xBAE, 5);
	put_be32(p + 14, 0xBAE);
	receiver_datagram(&r, 0, false, &a, bytes, sizeof(bytes), now_ns);
	CHECK_EQ(r.rs.counts.n_repairs, 1);
	end();
}

/* Reports are paid for by what came; who takes over an SSRC from elsewhere begins with nothing. */
static void answers(void)
{
	begin(4);
	for (unsigned seq = 0; seq < 2; seq++)
		say(1, 0xABC, seq);
	pass(8 * UNITS_NS_PER_S);
	CHECK_EQ(answered_bytes, 0);
	for (unsigned seq = 2; seq < 20000; seq++) {
		say(1, 0xABC, seq);
		pass(MS);
	}
	CHECK(answered_bytes > 0);
	pass(3 * UNITS_NS_PER_S);
	answered_bytes = 0;
	say(9, 0xABC, 20000);
	for (unsigned i = 0; i < 30; i++)
		pass(UNITS_NS_PER_S);
	CHECK_EQ(answered_bytes, 0);
	end();
}

/* Where a sender is known to send from, so that floods do not keep it out: another port counts when the first is silent. */
static void other_port(void)
{
	begin(4);
	for (unsigned seq = 0; seq < 100; seq++) {
		from_port = seq > 50 && seq % 2 ? 4001 : 4000;
		say(1, 0xABC, seq);
		pass(5 * MS);
		CHECK_EQ(seq < 2 ? 4000 : dgram_port(&r.flows[0].from), 4000);
	}
	from_port = 4002;
	pass(200 * MS);
	say(1, 0xABC, 100);
	CHECK_EQ(dgram_port(&r.flows[0].from), 4002);
	CHECK_EQ(senders(), 1);
	from_port = 4000;
	end();
}

int main(void)
{
	CHECK_RUN(newcomer);
	CHECK_RUN(coming_and_going);
	CHECK_RUN(brief);
	CHECK_RUN(others_repairs);
	CHECK_RUN(answers);
	CHECK_RUN(other_port);
	return check_end();
}
