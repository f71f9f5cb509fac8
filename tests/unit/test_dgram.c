/* leg/dgram: addresses, many datagrams a call, arrival times, and what the network says back; on loopback, ports the system chooses. */
#include "check.h"

#include "base/units.h"
#include "rt/clock.h"
#include "leg/dgram.h"

#include <errno.h>
#include <poll.h>

static void test_addresses(void)
{
	struct dgram_addr a, b;
	char text[DGRAM_TEXT_BYTES];
	struct err_why why;

	CHECK_OK(dgram_resolve(&a, "192.0.2.7", 5004, AF_UNSPEC, &why));
	CHECK_STR(dgram_text(&a, text), "192.0.2.7:5004");
	CHECK_EQ(dgram_port(&a), 5004);
	CHECK(!dgram_is_multicast(&a));
	/* IPv4 within IPv6 is the same as itself. */
	CHECK_OK(dgram_resolve(&b, "::ffff:192.0.2.7", 5004, AF_UNSPEC, &why));
	CHECK(dgram_same(&a, &b));
	CHECK_STR(dgram_text(&b, text), "192.0.2.7:5004");
	dgram_set_port(&b, 5005);
	CHECK(!dgram_same(&a, &b) && dgram_same_host(&a, &b));
	CHECK_OK(dgram_resolve(&b, "2001:db8::1", 80, AF_UNSPEC, &why));
	CHECK_STR(dgram_text(&b, text), "[2001:db8::1]:80");
	CHECK(!dgram_same_host(&a, &b));
	CHECK_OK(dgram_resolve(&a, "239.1.2.3", 1, AF_UNSPEC, &why));
	CHECK(dgram_is_multicast(&a));
	CHECK_OK(dgram_resolve(&a, "ff15::1", 1, AF_UNSPEC, &why));
	CHECK(dgram_is_multicast(&a));
	CHECK_OK(dgram_resolve(&a, "", 7, AF_INET, &why));
	CHECK_STR(dgram_text(&a, text), "0.0.0.0:7");
	CHECK_EQ(dgram_resolve(&a, "no.such.host.invalid", 7, AF_UNSPEC, &why), ERR_PEER);
	CHECK_STR(why.thing, "no.such.host.invalid");
	CHECK_STR(dgram_reason(ECONNREFUSED), "nobody listens there");
	CHECK_STR(dgram_reason(ENETUNREACH), "no route to that network");
}

static bool open_on(struct dgram *d, const struct dgram_options *o, struct dgram_addr *bound)
{
	struct dgram_addr local;
	struct err_why why = { 0 };

	if (!CHECK_OK(dgram_resolve(&local, "127.0.0.1", 0, AF_INET, &why)) || !CHECK_OK(dgram_open(d, &local, o, &why)) ||
		!CHECK_OK(dgram_local(d, bound, &why))) {
		check_show(why.reason);
		return false;
	}
	return true;
}

/* 100 datagrams in two pieces each, in one call out and a few in. */
static void test_many(void)
{
	struct dgram_options o = { .timestamps = true }, plain = { .dscp = 46 };
	struct dgram in, out;
	struct dgram_addr to, from;
	struct dgram_batch batch;
	struct dgram_outbox box;
	struct err_why why;
	char heads[100], tail[] = "tail------";
	unsigned n_failed, got = 0, n;
	int first_errno;

	if (!open_on(&in, &o, &to) || !open_on(&out, &plain, &from))
		return;
	CHECK_OK(dgram_batch_init(&batch, 32, 8, &why));
	CHECK_OK(dgram_outbox_init(&box, 100, &why));
	for (unsigned i = 0; i < 100; i++) {
		heads[i] = (char)i;
		struct dgram_out one = { .to = &to, .piece = { { &heads[i], 1 }, { tail, i == 50 ? 10 : 4 } }, .n_pieces = 2 };
		CHECK(dgram_queue(&box, &one));
	}
	struct dgram_out more = { .to = &to };
	CHECK(!dgram_queue(&box, &more));
	int64_t before_ns = clock_now_ns();
	dgram_send(&out, &box, &n_failed, &first_errno);
	CHECK_EQ(n_failed, 0);
	CHECK_EQ(box.n, 0);
	while (got < 100) {
		struct pollfd p = { .fd = in.fd, .events = POLLIN };
		if (!CHECK_EQ(poll(&p, 1, 5000), 1))
			break;
		CHECK_OK(dgram_receive(&in, &batch, &n, &why));
		CHECK(n <= 32);
		for (unsigned i = 0; i < n; i++, got++) {
			const struct dgram_in *d = &batch.in[i];
			CHECK_EQ(d->bytes[0], got);
			CHECK_MEM(d->bytes + 1, "tail", 4);
			CHECK_EQ(d->n_bytes, got == 50 ? 8 : 5);
			CHECK_EQ(d->is_cut, got == 50);
			CHECK(dgram_same(&d->from, &from));
			CHECK(d->arrival_ns >= before_ns - UNITS_NS_PER_S / 1000 && d->arrival_ns <= clock_now_ns());
		}
	}
	CHECK_OK(dgram_receive(&in, &batch, &n, &why));
	CHECK_EQ(n, 0);
	dgram_batch_release(&batch);
	dgram_outbox_release(&box);
	dgram_close(&in);
	dgram_close(&out);
}

/* A port that is taken, and one where nobody listens: others still get theirs. */
static void test_refusals(void)
{
	struct dgram_options o = { .complaints = true }, share = { .share = true };
	struct dgram a, b;
	struct dgram_addr there, nowhere, to;
	struct dgram_outbox box;
	struct err_why why;
	unsigned n_failed;
	int first_errno, sys_errno = 0;
	char x = 'x';

	if (!open_on(&a, &share, &there))
		return;
	CHECK_EQ(dgram_open(&b, &there, &o, &why), ERR_SYS);
	CHECK_STR(why.reason, "the port is in use");
	CHECK_EQ(b.fd, -1);
	if (!open_on(&b, &o, &nowhere))
		return;
	dgram_close(&b); /* its port is free again */
	if (!open_on(&b, &o, &to))
		return;
	CHECK_OK(dgram_outbox_init(&box, 4, &why));
	for (int turn = 0; turn < 3; turn++) {
		struct dgram_out one = { .to = &nowhere, .piece = { { &x, 1 } }, .n_pieces = 1 }, two = one;
		two.to = &there;
		CHECK(dgram_queue(&box, &one) && dgram_queue(&box, &two));
		dgram_send(&b, &box, &n_failed, &first_errno);
		CHECK_EQ(n_failed, 0);
	}
	CHECK(dgram_complaint(&b, &to, &sys_errno));
	CHECK_EQ(sys_errno, ECONNREFUSED);
	CHECK(dgram_same(&to, &nowhere));
	struct dgram_batch batch;
	unsigned n;
	CHECK_OK(dgram_batch_init(&batch, 8, 16, &why));
	CHECK_OK(dgram_receive(&a, &batch, &n, &why));
	CHECK_EQ(n, 3);
	dgram_batch_release(&batch);
	dgram_outbox_release(&box);
	dgram_close(&a);
	dgram_close(&b);
	dgram_close(&b); /* twice does no harm */
}

static void test_limits(void)
{
	struct dgram_batch batch;
	struct dgram_outbox box;
	struct err_why why;
	struct dgram_options o = { .iface = "nosuchif" };
	struct dgram_addr any;
	struct dgram d;

	CHECK_EQ(dgram_batch_init(&batch, 0, 10, &why), ERR_ARG);
	CHECK_EQ(dgram_batch_init(&batch, DGRAM_MAX_BATCH + 1, 10, &why), ERR_ARG);
	CHECK_EQ(dgram_batch_init(&batch, 1, DGRAM_MAX_BYTES + 1, &why), ERR_ARG);
	CHECK_EQ(dgram_outbox_init(&box, DGRAM_MAX_BATCH + 1, &why), ERR_ARG);
	CHECK_OK(dgram_resolve(&any, "", 0, AF_INET, &why));
	CHECK_EQ(dgram_open(&d, &any, &o, &why), ERR_SYS);
	CHECK_STR(why.thing, "nosuchif");
	CHECK_STR(why.reason, "no such network interface");
}

int main(void)
{
	CHECK_RUN(test_addresses);
	CHECK_RUN(test_many);
	CHECK_RUN(test_refusals);
	CHECK_RUN(test_limits);
	return check_end();
}
