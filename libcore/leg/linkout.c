#include "leg/linkout.h"

#include "rt/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOPE_NS 200000000LL             /* a receiver that takes nothing for so long holds up a live stream no more */
#define FINISH_NS (10 * UNITS_NS_PER_S)

enum err linkout_open(struct linkout *l, struct tool *t, const struct url *urls, unsigned n, const uint8_t *psk, struct err_why *why)
{
	enum err e = ERR_OK;

	l->tool = t;
	if (n && !(l->to = calloc(n, sizeof(*l->to))))
		return err_say(why, ERR_NOMEM, "weir://", "%s", err_text(ERR_NOMEM));
	for (unsigned i = 0; i < n && !e; i++) {
		struct linksend_options o = { .host = urls[i].host, .port = urls[i].port, .psk = psk };

		l->n_to++;
		e = linksend_open(&l->to[i].send, &o, why);
	}
	return e;
}

void linkout_release(struct linkout *l)
{
	for (unsigned i = 0; i < l->n_to; i++)
		linksend_release(&l->to[i].send);
	free(l->to);
	l->to = NULL;
	l->n_to = 0;
}

void linkout_count(struct linkout *l, struct stats *s)
{
	const struct {
		const char *key;
		const atomic_uint_fast64_t *value;
	} keys[] = {
		{ "data_packets", &l->packets }, { "data_lost", &l->lost }, { "data_dropped_objects", &l->dropped_objects },
		{ "data_held_bytes", &l->held_bytes }, { "data_sent_again", &l->again }, { "links_connected", &l->connected },
	};

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		stats_key(s, keys[i].key, keys[i].value);
}

/* ---- room ---- */

static size_t wire_bytes(uint64_t payload_bytes)
{
	return (size_t)(PACKET_HEADER_BYTES + units_round_up(payload_bytes, PACKET_UNIT_BYTES));
}

static unsigned pieces(uint64_t payload_bytes)
{
	return payload_bytes ? (unsigned)((payload_bytes + PACKET_MAX_PAYLOAD_BYTES - 1) / PACKET_MAX_PAYLOAD_BYTES) : 1;
}

/*
 * May a message of so many bytes go to this receiver now?  Returns: ERR_OK; ERR_AGAIN: wait; ERR_LIMIT: it goes without.
 */
static enum err ask(const struct linkout *l, struct linkout_to *to, uint64_t payload_bytes, bool may_wait)
{
	uint64_t acked = atomic_load(&to->send.counts.acked);
	uint64_t need = payload_bytes + (uint64_t)pieces(payload_bytes) * wire_bytes(0);

	if (to->is_behind) {
		if (replay_held_bytes(&to->send.replay) > to->send.replay.ring.size_bytes / 2)
			return ERR_LIMIT;
		to->is_behind = false;
	}
	to->owes = to->owes && linksend_again(&to->send);
	if (!to->owes && linksend_has_room(&to->send, need, pieces(payload_bytes))) {
		to->stuck_ns = 0;
		return ERR_OK;
	}
	if (!may_wait)
		return ERR_LIMIT;
	int64_t now_ns = clock_now_ns();
	/* One that takes slowly is waited for, unless others wait with it. */
	if (!to->stuck_ns || (acked != to->seen_acked && !(l->is_live && l->n_to > 1)))
		to->stuck_ns = now_ns;
	to->seen_acked = acked;
	if (!l->is_live || now_ns - to->stuck_ns < HOPE_NS)
		return ERR_AGAIN;
	to->is_behind = true;
	return ERR_LIMIT;
}

/* Put where there is room; count where there is not.  Asked before. */
static enum err put(struct linkout *l, struct linkout_to *to, const struct packet *p)
{
	enum err e = linksend_put(&to->send, p);

	if (e == ERR_AGAIN || e == ERR_LIMIT) {
		to->lost++;
		stats_add(&l->lost, 1);
		return ERR_OK;
	}
	stats_add(&l->packets, 1);
	return e;
}

/* ---- packets ---- */

/* What is live waits for nobody: who has no room for it now gets it before anything else. */
static enum err announce(struct linkout *l, const struct packet *p, const volatile sig_atomic_t *stop, struct err_why *why)
{
	for (unsigned i = 0; i < l->n_to; i++) {
		struct linkout_to *to = &l->to[i];
		enum err e;

		while ((e = linksend_put(&to->send, p)) == ERR_AGAIN && !l->is_live && !(stop && *stop)) {
			linksend_wait(&to->send, HOPE_NS);
			linkout_work(l);
		}
		to->owes |= e == ERR_AGAIN;
		if (e && e != ERR_AGAIN)
			return err_say(why, e, to->send.name, "an announcement cannot be sent: %s", err_text(e));
	}
	return ERR_OK;
}

enum err linkout_stream(struct linkout *l, const struct packet_stream *s, struct err_why *why)
{
	uint8_t payload[512];
	struct packet p = { .version = PACKET_VERSION, .type = PACKET_STREAM, .hunits = 1, .payload = payload, .utc_ns = s->t0_utc_ns };

	if (l->has_stream)
		return ERR_OK;
	l->has_stream = true;
	p.payload_bytes = (uint32_t)packet_stream_pack(s, payload, sizeof(payload));
	memcpy(&p.sid, s->uuid, sizeof(p.sid));
	return announce(l, &p, NULL, why);
}

enum err linkout_track(struct linkout *l, const struct track *t, const void *binding, uint32_t n_bytes, const volatile sig_atomic_t *stop, struct err_why *why)
{
	struct packet p = { .version = PACKET_VERSION, .type = PACKET_TRACK, .hunits = 1, .track = t->id, .gen = t->gen, .utc_ns = UNITS_UNKNOWN_NS };
	struct track copy = { 0 };
	uint8_t *payload = NULL;
	enum err e;

	if ((e = track_copy(&copy, t)) || (binding && (e = track_set_tlv(&copy, TRACK_TLV_RTP, binding, n_bytes)))) {
		err_say(why, e, "track", "its announcement cannot be made: %s", err_text(e));
		goto out;
	}
	p.payload_bytes = (uint32_t)track_packed_bytes(&copy);
	if (!(payload = malloc(p.payload_bytes))) {
		e = err_say(why, ERR_NOMEM, "track", "%s", err_text(ERR_NOMEM));
		goto out;
	}
	track_pack(&copy, payload);
	p.payload = payload;
	e = announce(l, &p, stop, why);
out:
	free(payload);
	track_release(&copy);
	return e;
}

/* A piece of the packet, from offset on, to those who get it. */
static enum err put_piece(struct linkout *l, const struct packet *k, size_t offset, size_t n_bytes)
{
	struct packet p = *k;
	enum err e = ERR_OK;

	p.payload = k->payload + offset;
	p.payload_bytes = (uint32_t)n_bytes;
	if (k->type == PACKET_DATA && k->payload_bytes > PACKET_MAX_PAYLOAD_BYTES) {
		p.object_offset_bytes = (uint32_t)offset;
		p.object_bytes = k->payload_bytes;
	}
	p.flags &= (uint16_t)~PACKET_PCRC;
	for (unsigned i = 0; i < l->n_to && !e; i++) {
		if (!l->to[i].is_chosen)
			continue;
		if (l->to[i].is_behind) {
			l->to[i].lost++;
			stats_add(&l->lost, 1);
			continue;
		}
		e = put(l, &l->to[i], &p);
	}
	return e;
}

/* Who gets an object.  What may be dropped goes where there is room for all of it.  Returns: anybody does. */
static bool choose(struct linkout *l, uint64_t payload_bytes, bool may_drop)
{
	bool any = false;

	for (unsigned i = 0; i < l->n_to; i++) {
		l->to[i].is_chosen = !may_drop || !ask(l, &l->to[i], payload_bytes, false);
		any |= l->to[i].is_chosen;
		stats_add(&l->dropped_objects, !l->to[i].is_chosen);
	}
	return any;
}

enum err linkout_take(struct linkout *l, const struct packet *k, const struct track *t)
{
	bool may_drop = k->type == PACKET_DATA && t->policy != TRACK_RELIABLE && l->is_live;
	enum err e = ERR_OK;

	if (!l->offset_bytes && !choose(l, k->payload_bytes, may_drop))
		return ERR_OK;
	do {
		size_t left = k->payload_bytes - l->offset_bytes, n = left < PACKET_MAX_PAYLOAD_BYTES ? left : PACKET_MAX_PAYLOAD_BYTES;

		for (unsigned i = 0; i < l->n_to && !may_drop; i++) {
			if (ask(l, &l->to[i], n, true) == ERR_AGAIN)
				return ERR_AGAIN;
		}
		if ((e = put_piece(l, k, l->offset_bytes, n)))
			break;
		l->offset_bytes += n;
	} while (l->offset_bytes < k->payload_bytes);
	l->offset_bytes = 0;
	return e;
}

/* ---- watching ---- */

bool linkout_is_met(const struct linkout *l)
{
	for (unsigned i = 0; i < l->n_to; i++) {
		if (!atomic_load(&l->to[i].send.counts.connects))
			return false;
	}
	return true;
}

unsigned linkout_polls(const struct linkout *l, struct pollfd *p)
{
	for (unsigned i = 0; i < l->n_to; i++)
		p[i] = (struct pollfd){ .fd = l->to[i].send.room_fd, .events = POLLIN };
	return l->n_to;
}

void linkout_work(struct linkout *l)
{
	uint64_t held = 0, connected = 0, again = 0;
	char text[256];

	for (unsigned i = 0; i < l->n_to; i++) {
		struct linksend *s = &l->to[i].send;

		linksend_wait(s, 0);
		held += replay_held_bytes(&s->replay);
		connected += atomic_load(&s->counts.connected);
		again += atomic_load(&s->counts.again);
		while (linksend_news(s, text)) {
			if (!strcmp(text, "connected"))
				tool_note(l->tool, s->name, "%s", text);
			else
				tool_warn(l->tool, s->name, "%s", text);
		}
	}
	stats_set(&l->held_bytes, held);
	stats_set(&l->connected, connected);
	stats_set(&l->again, again);
}

enum err linkout_end(struct linkout *l, enum packet_end_reason reason, const volatile sig_atomic_t *stop, struct err_why *why)
{
	uint8_t payload[PACKET_END_BYTES];
	struct packet_end end = { .reason = (uint16_t)reason, .n_packets = atomic_load(&l->packets) };
	struct packet p = { .version = PACKET_VERSION, .type = PACKET_END, .hunits = 1, .payload = payload, .payload_bytes = PACKET_END_BYTES };
	enum err e = ERR_OK, first = ERR_OK;
	uint64_t lost = 0;

	p.utc_ns = UNITS_UNKNOWN_NS;
	packet_end_pack(&end, payload);
	for (unsigned i = 0; i < l->n_to; i++) {
		struct linksend *s = &l->to[i].send;
		int64_t until_ns = clock_now_ns() + FINISH_NS;
		struct err_why one = { 0 };

		while ((e = linksend_put(s, &p)) == ERR_AGAIN && clock_now_ns() < until_ns && !(stop && *stop))
			linksend_wait(s, HOPE_NS);
		/* In turns, so that what happens meanwhile is said. */
		for (until_ns = clock_now_ns() + FINISH_NS;;) {
			uint64_t acked = atomic_load(&s->counts.acked);

			e = linksend_finish(s, HOPE_NS / 2, stop, &one);
			linkout_work(l);
			if (acked != atomic_load(&s->counts.acked))
				until_ns = clock_now_ns() + FINISH_NS;
			if (!e || (stop && *stop) || clock_now_ns() > until_ns)
				break;
		}
		if (e && !first) {
			first = e;
			*why = one;
		}
		lost += l->to[i].lost;
	}
	if (!first && lost)
		first = err_say(why, ERR_CUT, "weir://", "%" PRIu64 " messages were lost: a receiver took nothing for too long", lost);
	return first;
}
