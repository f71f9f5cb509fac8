#include "leg/proxypeers.h"

#include "base/units.h"

#define IDLE_NS (10 * UNITS_NS_PER_S)          /* a sender silent for so long gives its place to a new one */
#define BRIEF_PACKETS 8u               /* who has sent no more */
#define BRIEF_NS (UNITS_NS_PER_S / 4)  /* gives it already after so long */
#define N_BUCKETS 64u                  /* of hosts */

static unsigned bucket_of(const struct proxy *p, const struct dgram_addr *addr)
{
	return (unsigned)(dgram_host_hash(addr, p->seed) % N_BUCKETS);
}

static enum err open_peer(struct proxy *p, struct proxy_peer *peer, const struct dgram_addr *addr)
{
	const struct dgram_options o = { .ttl = -1, .receive_bytes = PROXY_BUFFER_BYTES, .send_bytes = PROXY_BUFFER_BYTES, .complaints = true };
	struct dgram_addr any = { .any.sa_family = p->target.any.sa_family };
	enum err e;

	if ((e = dgram_open(&peer->socket, &any, &o, &p->why)))
		return e;
	/* The answers to a group come from its members. */
	if (!dgram_is_multicast(&p->target) && (e = dgram_connect(&peer->socket, &p->target, &p->why))) {
		dgram_close(&peer->socket);
		return e;
	}
	peer->addr = *addr;
	peer->is_used = true;
	peer->n_heard = peer->n_underway = 0;
	peer->bucket = bucket_of(p, addr);
	peer->life++;
	return ERR_OK;
}

static void list_peers(struct proxy *p)
{
	p->n_peers = 0;
	for (uint16_t i = 0; i < PROXY_MAX_PEERS; i++)
		if (p->peers[i].is_used)
			p->poll_peers[p->n_peers++] = i;
	stats_set(&p->senders, p->n_peers);
}

/* Does it want its place no more, if another wants it? */
static bool is_idle(const struct proxy_peer *peer, int64_t now_ns)
{
	return now_ns - peer->seen_ns > (peer->n_heard <= BRIEF_PACKETS ? BRIEF_NS : IDLE_NS);
}

/* Is it better to take the place of a than of b?  A free one; else an idle one; else that of who is silent for longest. */
static bool is_rather(const struct proxy_peer *a, const struct proxy_peer *b, int64_t now_ns)
{
	if (!a->is_used || !b->is_used)
		return b->is_used;
	if (is_idle(a, now_ns) != is_idle(b, now_ns))
		return is_idle(a, now_ns);
	return a->seen_ns < b->seen_ns;
}

/* The place that is silent for longest of the host that has most, if `from` has fewer by two; PROXY_MAX_PEERS: none. */
static unsigned crowded_out(const struct proxy *p, const struct dgram_addr *from)
{
	unsigned n[N_BUCKETS] = { 0 }, fullest = 0, found = PROXY_MAX_PEERS;

	for (unsigned i = 0; i < PROXY_MAX_PEERS; i++)
		n[p->peers[i].bucket] += p->peers[i].is_used;
	for (unsigned i = 1; i < N_BUCKETS; i++)
		fullest = n[i] > n[fullest] ? i : fullest;
	if (n[fullest] < n[bucket_of(p, from)] + 2)
		return PROXY_MAX_PEERS;
	for (unsigned i = 0; i < PROXY_MAX_PEERS; i++)
		if (p->peers[i].is_used && p->peers[i].bucket == fullest && (found == PROXY_MAX_PEERS || p->peers[i].seen_ns < p->peers[found].seen_ns))
			found = i;
	return found;
}

int proxypeers_find(struct proxy *p, const struct dgram_addr *from, int64_t now_ns)
{
	unsigned spare = 0;
	char text[DGRAM_TEXT_BYTES];

	if (p->peers[p->last_peer].is_used && dgram_same(&p->peers[p->last_peer].addr, from))
		return (int)p->last_peer;
	for (unsigned i = 0; i < PROXY_MAX_PEERS; i++) {
		const struct proxy_peer *peer = &p->peers[i];
		if (peer->is_used && dgram_same(&peer->addr, from))
			return (int)(p->last_peer = i);
		if (is_rather(peer, &p->peers[spare], now_ns))
			spare = i;
	}
	struct proxy_peer *peer = &p->peers[spare];
	if (peer->is_used && !is_idle(peer, now_ns)) {
		spare = crowded_out(p, from);
		if (spare == PROXY_MAX_PEERS)
			return -1;
		peer = &p->peers[spare];
	}
	if (peer->is_used)
		dgram_close(&peer->socket);
	peer->is_used = false;
	if (open_peer(p, peer, from)) {
		proxy_say_rarely(p, p->why.thing, p->why.reason);
		list_peers(p);
		return -1;
	}
	list_peers(p);
	tool_note(p->tool, dgram_text(from, text), "sends");
	return (int)(p->last_peer = spare);
}
