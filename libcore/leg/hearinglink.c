#include "leg/hearinglink.h"

#include "rt/clock.h"
#include "leg/receiverids.h"
#include "leg/netflowplay.h"

#include <stdlib.h>

#define JOINS_AT_ONCE 1024u    /* tracks that come without a key: as many as a large stream has */
#define WAIT_NS UNITS_NS_PER_S /* for the first sound of a sender */

static uint16_t new_id(void *user, uint16_t theirs)
{
	struct hearing *h = user;
	int64_t now_ns = clock_now_ns();

	if (!receiverids_may(&h->receiver, &h->link_joined_ns, JOINS_AT_ONCE, now_ns)) {
		receiver_say_rarely(&h->receiver, now_ns, "weir://", "a new track, and there were too many new ones lately: not taken");
		return 0;
	}
	uint16_t id = receiverids_next(&h->receiver, theirs);
	receiverids_take(&h->receiver, id);
	return id;
}

static void joined(void *user, unsigned sender, const struct dgram_addr *from)
{
	struct hearing *h = user;

	h->peers[sender] = (struct hearing_peer){ .from = *from, .joined_ns = clock_now_ns() };
}

static void has_sound(void *user, unsigned sender, const struct track *t)
{
	struct hearing *h = user;

	(void)t;
	h->peers[sender].has_sound = true;
}

/*
 * On the local clock what a sender brings stands beside its sound.  Where it has none, or none is heard in the first second, its positions
 * begin where it came in.
 */
static bool shift(void *user, unsigned sender, int64_t pos_ns, int64_t *shift_ns)
{
	struct hearing *h = user;
	const struct hearing_peer *peer = &h->peers[sender];
	int64_t now_ns = clock_now_ns();

	for (unsigned i = 0; peer->has_sound && i < h->receiver.n_flows; i++) {
		const struct netflow *f = &h->receiver.flows[i];

		if (dgram_same_host(&f->from, &peer->from) && netflowplay_shift(f, shift_ns))
			return true;
	}
	if (peer->has_sound && !h->is_ending && now_ns - peer->joined_ns < WAIT_NS)
		return false;
	if (__builtin_sub_overflow(now_ns - h->start_ns, pos_ns, shift_ns))
		*shift_ns = 0;
	return true;
}

static bool may_link(void *user, const struct dgram_addr *from)
{
	struct hearing *h = user;

	return receivernet_any(h->receiver.o.from, h->receiver.o.n_from, from);
}

enum err hearinglink_open(struct hearing *h)
{
	struct linkjoin_events events = { .user = h, .join = joined, .sound = has_sound, .new_id = new_id, .shift = h->o.retime ? shift : NULL };
	struct linkrecv_options o = { .host = h->link_url.host, .port = h->link_url.port, .psk = h->is_secure ? h->psk : NULL,
		.max_senders = (unsigned)h->o.max_senders };
	enum err e;

	h->link_joined_ns = UNITS_UNKNOWN_NS;
	const struct { const char *key; const atomic_uint_fast64_t *value; } keys[] = {
		{ "data_packets", &h->link.counts.messages }, { "data_lost", &h->link.counts.lost }, { "links_connected", &h->link.counts.connects },
		{ "data_refused", &h->joined.counts.refused }, { "links_broken", &h->link.counts.broken }, { "links_refused", &h->link.counts.refused },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		stats_key(&h->stats, keys[i].key, keys[i].value);
	if (!(h->peers = calloc(o.max_senders, sizeof(*h->peers))))
		return err_say(&h->why, ERR_NOMEM, "senders", "%s", err_text(ERR_NOMEM));
	if ((e = linkjoin_init(&h->joined, o.max_senders, &events, &h->why)))
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
