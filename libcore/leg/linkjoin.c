#include "leg/linkjoin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum record_kind { RECORD_JOIN = 1, RECORD_PACKET, RECORD_LEAVE, RECORD_ASK };

/* Where does this belong in time?  That is known now; or, this packet has no place and may go to the ring for nothing. */
enum answer { ANSWER_PLACED = 1, ANSWER_PASS };

/* Before what lies in the ring; then the packet, as on the wire. */
struct record {
	uint32_t kind, sender;
	uint32_t n_bytes;             /* of the packet */
	bool is_whole;
	uint16_t track;               /* of RECORD_ASK, these three */
	uint32_t session;
	int64_t pos;
	struct dgram_addr from;
};

#define POS_LIMIT (INT64_C(1) << 61) /* no reader takes a position beyond it, in either direction */

#define HEAD_BYTES ((size_t)128)
#define PLACES_BYTES (2 * (size_t)LINKRECV_MAX_SENDERS * HEAD_BYTES) /* kept free of packets, so that everybody can come and go */
_Static_assert(sizeof(struct record) <= HEAD_BYTES, "the head of a record is larger than its place");

static size_t record_bytes(const struct record *h)
{
	return HEAD_BYTES + (size_t)units_round_up(h->n_bytes, PACKET_UNIT_BYTES);
}

/* ---- the link's thread ---- */

/* Place for a record's bytes, or NULL. */
static uint8_t *reserve(struct linkjoin *l, const struct record *h)
{
	uint8_t *at;

	return ring_room(&l->ring, &at) < record_bytes(h) ? NULL : at;
}

static void commit(struct linkjoin *l, const struct record *h, uint8_t *at)
{
	uint64_t one = 1;

	memcpy(at, h, sizeof(*h));
	ring_commit(&l->ring, record_bytes(h));
	if (write(l->fd, &one, sizeof(one)) < 0)
		return; /* it is readable anyway: the counter is full */
}

static enum err on_join(void *user, unsigned sender, const struct dgram_addr *from)
{
	struct linkjoin *l = user;
	struct record h = { .kind = RECORD_JOIN, .sender = sender, .from = *from };
	uint8_t *at = reserve(l, &h);

	if (!at)
		return ERR_AGAIN;
	l->senders[sender].session++;
	l->senders[sender].has_asked = false;
	commit(l, &h, at);
	return ERR_OK;
}

static enum err on_leave(void *user, unsigned sender, bool whole)
{
	struct linkjoin *l = user;
	struct record h = { .kind = RECORD_LEAVE, .sender = sender, .is_whole = whole };
	uint8_t *at = reserve(l, &h);

	if (!at)
		return ERR_AGAIN;
	commit(l, &h, at);
	return ERR_OK;
}

/* Does the writing thread know where the sender's data belongs?  It is asked once a session, by its first packet; an answer wakes the link. */
static bool is_placed(struct linkjoin *l, unsigned sender, const struct packet *p)
{
	struct linkjoin_sender *s = &l->senders[sender];
	struct record h = { .kind = RECORD_ASK, .sender = sender, .track = p->track, .pos = p->pos, .session = s->session };
	uint64_t answer = atomic_load(&s->answer), mine = (uint64_t)s->session << 2;
	uint8_t *at;

	if (!l->events.shift || !p->track || p->type == PACKET_TRACK || answer == (mine | ANSWER_PLACED))
		return true;
	if (s->has_asked && answer == (mine | ANSWER_PASS)) {
		/* The next one asks anew. */
		atomic_store(&s->answer, mine);
		s->has_asked = false;
		return true;
	}
	if (!s->has_asked && ring_room(&l->ring, &at) >= record_bytes(&h) + PLACES_BYTES) {
		commit(l, &h, at);
		s->has_asked = true;
	}
	return false;
}

static enum err on_packet(void *user, unsigned sender, const struct packet *p)
{
	struct linkjoin *l = user;
	struct record h = { .kind = RECORD_PACKET, .sender = sender, .n_bytes = (uint32_t)packet_wire_bytes(p) };
	uint8_t *at;

	/* First the room: a packet that may pass does so at once. */
	if (ring_room(&l->ring, &at) < record_bytes(&h) + PLACES_BYTES || !is_placed(l, sender, p))
		return ERR_AGAIN;
	memcpy(at + HEAD_BYTES, p->head, h.n_bytes);
	commit(l, &h, at);
	return ERR_OK;
}

struct linkrecv_events linkjoin_link_events(struct linkjoin *l)
{
	return (struct linkrecv_events){ .user = l, .join = on_join, .packet = on_packet, .leave = on_leave };
}

/* ---- the writing thread ---- */

static struct linkjoin_track *find(struct linkjoin *l, unsigned sender, uint16_t theirs)
{
	for (uint32_t i = l->senders[sender].tracks; i; i = l->tracks[i - 1].next) {
		if (l->tracks[i - 1].theirs == theirs)
			return &l->tracks[i - 1];
	}
	return NULL;
}

static struct linkjoin_track *add(struct linkjoin *l, unsigned sender, uint16_t theirs)
{
	uint32_t place = l->free_tracks;

	if (l->senders[sender].n_tracks == LINKJOIN_MAX_TRACKS)
		return NULL;
	if (place) {
		l->free_tracks = l->tracks[place - 1].next;
	} else {
		if (l->n_tracks == l->tracks_room) {
			struct linkjoin_track *more = reallocarray(l->tracks, l->tracks_room + 64, sizeof(*more));

			if (!more)
				return NULL;
			l->tracks = more;
			l->tracks_room += 64;
		}
		place = ++l->n_tracks;
	}
	struct linkjoin_track *t = &l->tracks[place - 1];
	*t = (struct linkjoin_track){ .next = l->senders[sender].tracks, .theirs = theirs };
	l->senders[sender].tracks = place;
	l->senders[sender].n_tracks++;
	return t;
}

static int64_t shift_of(const struct linkjoin *l, unsigned sender, const struct linkjoin_track *t)
{
	const struct linkjoin_sender *s = &l->senders[sender];

	return units_from_ns(s->shift_ns, t->rate_num, t->rate_den);
}

/* Is it the announcement we have, but for what moves on? */
static bool is_same(struct writer *out, uint16_t id, struct track *t)
{
	struct writer_track *w = writer_track(out, id);

	if (!w || w->track.kind != t->kind || w->track.codec != t->codec || w->track.rate_num != t->rate_num || w->track.rate_den != t->rate_den)
		return false;
	return w->track.tlv_bytes == t->tlv_bytes && !memcmp(w->track.rest, t->rest, sizeof(t->rest)) && (!t->tlv_bytes || !memcmp(w->track.tlv, t->tlv, t->tlv_bytes));
}

static bool is_sane(int64_t pos)
{
	return pos > -POS_LIMIT && pos < POS_LIMIT;
}

static enum err take_track(struct linkjoin *l, struct writer *out, unsigned sender, const struct packet *p)
{
	struct linkjoin_track *t = find(l, sender, p->track);
	struct track a = { 0 };
	enum err e = ERR_OK;

	if (track_unpack(&a, p->payload, p->payload_bytes, &l->why)) {
		atomic_fetch_add(&l->counts.refused, 1);
		return ERR_OK;
	}
	a.id = p->track;
	if (!is_sane(a.first_pos) || !is_sane(a.next_pos)) {
		atomic_fetch_add(&l->counts.refused, 1);
		goto out;
	}
	if (!t && !(t = add(l, sender, p->track))) {
		atomic_fetch_add(&l->counts.refused, 1);
		goto out;
	}
	t->rate_num = a.rate_num;
	t->rate_den = a.rate_den ? a.rate_den : 1;
	t->is_sound = a.kind == TRACK_AUDIO;
	if (t->is_sound) {
		if (l->events.sound)
			l->events.sound(l->events.user, sender, &a);
		goto out;
	}
	if (!t->ours && !(t->ours = l->events.new_id(l->events.user, p->track))) {
		atomic_fetch_add(&l->counts.refused, 1);
		goto out;
	}
	a.id = t->ours;
	if (is_same(out, a.id, &a))
		goto out;
	l->counts.tracks++;
	e = writer_announce(out, &a);
out:
	track_release(&a);
	return e;
}

/* Returns: where the data of a sender belongs can be found out from this, or it never has to be. */
static bool has_place(const struct linkjoin_track *t, int64_t pos)
{
	return t && t->ours && !t->is_ended && is_sane(pos);
}

static void take_ask(struct linkjoin *l, const struct record *h)
{
	struct linkjoin_sender *s = &l->senders[h->sender];

	s->asked_track = h->track;
	s->asked_pos = h->pos;
	s->asked_session = h->session;
	s->is_asked = true;
	l->n_asked++;
}

/* Returns: there was one. */
static bool answer(struct linkjoin *l, unsigned sender)
{
	struct linkjoin_sender *s = &l->senders[sender];
	const struct linkjoin_track *t = find(l, sender, s->asked_track);
	uint64_t text = ANSWER_PASS;

	if (has_place(t, s->asked_pos)) {
		if (!l->events.shift(l->events.user, sender, units_to_ns(s->asked_pos, t->rate_num, t->rate_den), &s->shift_ns))
			return false;
		s->has_shift = true;
		text = ANSWER_PLACED;
	}
	s->is_asked = false;
	l->n_asked--;
	atomic_store(&s->answer, (uint64_t)s->asked_session << 2 | text);
	return true;
}

static bool answer_all(struct linkjoin *l)
{
	bool any = false;

	for (unsigned i = 0; i < l->max_senders && l->n_asked; i++)
		any |= l->senders[i].is_asked && answer(l, i);
	return any;
}

static enum err take_packet(struct linkjoin *l, struct writer *out, unsigned sender, uint8_t *bytes, size_t n_bytes)
{
	struct linkjoin_track *t;
	struct packet_gap gap;
	struct packet p;

	if (packet_unpack(&p, bytes, n_bytes, PACKET_MAX_PAYLOAD_BYTES) || !p.track)
		return ERR_OK;
	if (p.type == PACKET_TRACK)
		return take_track(l, out, sender, &p);
	t = find(l, sender, p.track);
	if (!t || !t->ours || t->is_ended)
		return ERR_OK;
	if (!is_sane(p.pos) || (l->events.shift && !l->senders[sender].has_shift) || (p.type == PACKET_DATA && (uint64_t)p.object_offset_bytes + p.payload_bytes > p.object_bytes)) {
		atomic_fetch_add(&l->counts.refused, 1);
		return ERR_OK;
	}
	p.track = t->ours;
	if (__builtin_add_overflow(p.pos, shift_of(l, sender, t), &p.pos) || !is_sane(p.pos)) {
		atomic_fetch_add(&l->counts.refused, 1);
		return ERR_OK;
	}
	l->counts.packets++;
	l->counts.bytes += p.payload_bytes;
	switch (p.type) {
	case PACKET_DATA:
		p.flags &= (uint16_t)~PACKET_PCRC;
		return writer_forward(out, &p);
	case PACKET_GAP:
		return packet_gap_unpack(&gap, p.payload, p.payload_bytes) ? ERR_OK : writer_gap(out, p.track, p.pos, p.dur, &gap);
	case PACKET_END:
		t->is_ended = true;
		return writer_end_track(out, p.track, PACKET_END_NORMAL);
	default:
		return ERR_OK;
	}
}

/* Its tracks are over, and its place may be another's. */
static enum err take_leave(struct linkjoin *l, struct writer *out, unsigned sender, bool whole)
{
	enum err e = ERR_OK;

	while (l->senders[sender].tracks) {
		uint32_t place = l->senders[sender].tracks;
		struct linkjoin_track *t = &l->tracks[place - 1];

		if (!e && t->ours && !t->is_ended && writer_track(out, t->ours))
			e = writer_end_track(out, t->ours, whole ? PACKET_END_NORMAL : PACKET_END_TRUNCATED);
		l->senders[sender].tracks = t->next;
		*t = (struct linkjoin_track){ .next = l->free_tracks };
		l->free_tracks = place;
	}
	l->n_asked -= l->senders[sender].is_asked;
	l->senders[sender].is_asked = l->senders[sender].has_shift = false;
	l->senders[sender].shift_ns = 0;
	l->senders[sender].n_tracks = 0;
	if (l->events.leave)
		l->events.leave(l->events.user, sender, whole);
	return e;
}

enum err linkjoin_work(struct linkjoin *l, struct writer *out, bool *taken)
{
	uint64_t count;
	uint8_t *at;
	size_t there, done = 0;
	enum err e = ERR_OK;

	*taken = false;
	if (read(l->fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
		return err_sys(&l->why, "link");
	there = ring_peek(&l->ring, &at);
	while (done < there && !e) {
		struct record h;

		memcpy(&h, at + done, sizeof(h));
		if (h.kind == RECORD_PACKET)
			e = take_packet(l, out, h.sender, at + done + HEAD_BYTES, h.n_bytes);
		else if (h.kind == RECORD_JOIN && l->events.join)
			l->events.join(l->events.user, h.sender, &h.from);
		else if (h.kind == RECORD_LEAVE)
			e = take_leave(l, out, h.sender, h.is_whole);
		else if (h.kind == RECORD_ASK)
			take_ask(l, &h);
		done += record_bytes(&h);
	}
	*taken = answer_all(l) || done;
	if (!done)
		return e;
	/* What was forwarded lies in the ring until it is written. */
	if (!e)
		e = writer_flush(out);
	ring_consume(&l->ring, done);
	return e;
}

enum err linkjoin_end(struct linkjoin *l, struct writer *out, enum packet_end_reason reason)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < l->n_tracks && !e; i++) {
		struct linkjoin_track *t = &l->tracks[i];

		if (t->ours && !t->is_ended && writer_track(out, t->ours))
			e = writer_end_track(out, t->ours, reason);
		t->is_ended = true;
	}
	return e;
}

enum err linkjoin_init(struct linkjoin *l, unsigned max_senders, const struct linkjoin_events *events, struct err_why *why)
{
	enum err e;

	memset(l, 0, sizeof(*l));
	l->events = *events;
	l->max_senders = max_senders;
	l->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->fd < 0)
		return err_sys(why, "link");
	l->senders = calloc(max_senders, sizeof(*l->senders));
	if (!l->senders)
		return err_say(why, ERR_NOMEM, "senders", "%s", err_text(ERR_NOMEM));
	e = ring_init(&l->ring, LINKJOIN_RING_BYTES, why);
	return e;
}

void linkjoin_release(struct linkjoin *l)
{
	if (!l->senders)
		return;
	ring_release(&l->ring);
	if (l->fd >= 0)
		close(l->fd);
	free(l->tracks);
	free(l->senders);
	memset(l, 0, sizeof(*l));
	l->fd = -1;
}
