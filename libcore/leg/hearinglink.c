#include "leg/hearinglink.h"

#include "rt/clock.h"

static uint16_t new_id(void *user)
{
	struct hearing *h = user;

	return h->receiver.next_id < PACKET_MAX_TRACK ? h->receiver.next_id++ : 0;
}

/* On the local clock a sender's positions begin where it came in. */
static int64_t shift_ns(void *user, unsigned sender, int64_t pos_ns)
{
	struct hearing *h = user;

	(void)sender;
	int64_t now_ns = clock_now_ns() - h->start_ns, shift;
	return __builtin_sub_overflow(now_ns, pos_ns, &shift) ? 0 : shift;
}

static bool may_link(void *user, const struct dgram_addr *from)
{
	struct hearing *h = user;

	return receivernet_any(h->receiver.o.from, h->receiver.o.n_from, from);
}

enum err hearinglink_open(struct hearing *h)
{
	struct linkjoin_events events = { .user = h, .new_id = new_id, .shift_ns = h->o.retime ? shift_ns : NULL };
	struct linkrecv_options o = { .host = h->link_url.host, .port = h->link_url.port, .psk = h->is_secure ? h->psk : NULL,
		.max_senders = (unsigned)h->o.max_senders };
	enum err e = linkjoin_init(&h->joined, o.max_senders, &events, &h->why);

	if (e)
		return e;
	o.events = linkjoin_link_events(&h->joined);
	o.events.may = may_link;
	o.events.may_user = h;
	return linkrecv_open(&h->link, &o, &h->why);
}

enum err hearinglink_run(struct hearing *h)
{
	bool taken;
	enum err e = linkjoin_work(&h->joined, &h->out, &taken);

	if (e)
		h->why = h->out.why.reason[0] ? h->out.why : h->joined.why;
	if (taken)
		linkrecv_wake(&h->link);
	return e;
}
