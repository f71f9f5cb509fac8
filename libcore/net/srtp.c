#include "net/srtp.h"

#include "base/bytes.h"
#include "net/srtpcheck.h"
#include "net/srtpcipher.h"

#include <sodium.h>
#include <srtp2/srtp.h>
#include <stdlib.h>

#define RTP_BYTES 12
#define RTCP_BYTES 8
#define WINDOW 1024      /* packets that may come out of order: 64 ms at 16000 a second */
#define LOST_AFTER 8     /* packets in a row that were refused, before another roll-over counter is believed */

/* One SSRC.  A context for each keeps finding it as quick with a thousand of them as with one. */
struct srtp_place {
	uint32_t ssrc;
	bool is_ours;
	srtp_t context;          /* NULL: the place is empty */
	uint64_t n_rtp;          /* packets unprotected */
	uint64_t left;           /* when it left, as a number that counts up; 0: it is here */
	unsigned n_forged_in_a_row;
};

struct srtp_state {
	struct srtp_key key;
	struct srtpcheck check;  /* for an SSRC that is not known */
	struct srtp_place *places; /* a hash table, at most half full */
	unsigned mask;
	unsigned n_heard, n_heard_max, n_ours;
	uint64_t n_left;
};

size_t srtp_key_bytes(enum srtp_kind kind)
{
	return kind == SRTP_GCM ? SRTP_GCM_KEY_BYTES : SRTP_SHA1_KEY_BYTES;
}

size_t srtp_tail_bytes(enum srtp_kind kind)
{
	return kind == SRTP_GCM ? 16 : 10;
}

const char *srtp_kind_name(enum srtp_kind kind)
{
	return kind == SRTP_GCM ? "AEAD_AES_128_GCM" : "AES_CM_128_HMAC_SHA1_80";
}

void srtp_key_wipe(struct srtp_key *key)
{
	sodium_memzero(key, sizeof(*key));
}

/* ---- contexts and places ---- */

static enum err create(srtp_t *context, const struct srtp_key *key, uint32_t ssrc)
{
	uint8_t bytes[SRTP_KEY_MAX_BYTES];
	srtp_policy_t policy = { .ssrc = { ssrc_specific, ssrc }, .key = bytes, .window_size = WINDOW };
	enum err e = ERR_OK;

	if (key->kind == SRTP_GCM) {
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
	} else {
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtp);
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
	}
	memcpy(bytes, key->bytes, sizeof(bytes));
	switch (srtp_create(context, &policy)) {
	case srtp_err_status_ok:
		break;
	case srtp_err_status_alloc_fail:
		e = ERR_NOMEM;
		break;
	default:
		e = ERR_CODEC;
		break;
	}
	if (e)
		*context = NULL;
	sodium_memzero(bytes, sizeof(bytes));
	return e;
}

static unsigned hash(const struct srtp_state *st, uint32_t ssrc)
{
	return (ssrc * 0x9e3779b1u >> 12) & st->mask;
}

static struct srtp_place *find(const struct srtp_state *st, uint32_t ssrc)
{
	unsigned at = hash(st, ssrc);

	for (; st->places[at].context; at = (at + 1) & st->mask)
		if (st->places[at].ssrc == ssrc)
			return &st->places[at];
	return NULL;
}

/* Those behind it in its run move up, so that a search still ends at the first empty place. */
static void take_out(struct srtp_state *st, struct srtp_place *place)
{
	unsigned hole = (unsigned)(place - st->places), at = hole;

	if (place->is_ours)
		st->n_ours--;
	else
		st->n_heard--;
	srtp_dealloc(place->context);
	for (;;) {
		at = (at + 1) & st->mask;
		if (!st->places[at].context)
			break;
		unsigned home = hash(st, st->places[at].ssrc);
		if (((at - home) & st->mask) >= ((at - hole) & st->mask)) {
			st->places[hole] = st->places[at];
			hole = at;
		}
	}
	st->places[hole] = (struct srtp_place){ 0 };
}

/* The place of who left first.  Returns: false if all are here. */
static bool make_place(struct srtp_state *st)
{
	struct srtp_place *first = NULL;

	for (unsigned i = 0; i <= st->mask; i++) {
		struct srtp_place *p = &st->places[i];
		if (p->context && p->left && (!first || p->left < first->left))
			first = p;
	}
	if (first)
		take_out(st, first);
	return first != NULL;
}

static enum err add(struct srtp_state *st, uint32_t ssrc, bool is_ours, uint32_t roc, struct srtp_place **place)
{
	unsigned at = hash(st, ssrc);
	srtp_t context = NULL;
	enum err e;

	if (is_ours ? st->n_ours == SRTP_SENDERS_MAX : st->n_heard == st->n_heard_max && !make_place(st))
		return ERR_LIMIT;
	if ((e = create(&context, &st->key, ssrc)))
		return e;
	if (roc && srtp_set_stream_roc(context, ssrc, roc)) {
		srtp_dealloc(context);
		return ERR_CODEC;
	}
	while (st->places[at].context)
		at = (at + 1) & st->mask;
	st->places[at] = (struct srtp_place){ .ssrc = ssrc, .is_ours = is_ours, .context = context };
	if (is_ours)
		st->n_ours++;
	else
		st->n_heard++;
	*place = &st->places[at];
	return ERR_OK;
}

/* ---- a session ---- */

enum err srtp_session_init(struct srtp_session *s, const struct srtp_key *key, unsigned n_senders_max, struct err_why *why)
{
	struct srtp_state *st;
	unsigned n_places = 4;

	*s = (struct srtp_session){ 0 };
	if (n_senders_max < 1 || n_senders_max > SRTP_SENDERS_MAX)
		return err_say(why, ERR_LIMIT, "SRTP", "%u senders: 1 to %d", n_senders_max, SRTP_SENDERS_MAX);
	if (!srtpcipher_begin())
		return err_say(why, ERR_CODEC, "SRTP", "libsrtp does not start");
	while (n_places < 2 * (n_senders_max + SRTP_SENDERS_MAX))
		n_places *= 2;
	if (!(st = s->state = calloc(1, sizeof(*st))) || !(st->places = calloc(n_places, sizeof(*st->places)))) {
		srtp_session_release(s);
		return ERR_NOMEM;
	}
	st->mask = n_places - 1;
	st->n_heard_max = n_senders_max;
	st->key = *key;
	srtpcheck_init(&st->check, key);
	return ERR_OK;
}

void srtp_session_release(struct srtp_session *s)
{
	struct srtp_state *st = s ? s->state : NULL;

	if (!st)
		return;
	for (unsigned i = 0; st->places && i <= st->mask; i++)
		if (st->places[i].context)
			srtp_dealloc(st->places[i].context);
	free(st->places);
	sodium_memzero(st, sizeof(*st));
	free(st);
	s->state = NULL;
}

enum err srtp_session_send(struct srtp_session *s, uint32_t ssrc, uint32_t roc, struct err_why *why)
{
	struct srtp_place *place;
	enum err e;

	if (find(s->state, ssrc))
		return err_say(why, ERR_ARG, "SRTP", "SSRC %08x is in use already", ssrc);
	if ((e = add(s->state, ssrc, true, roc, &place)))
		return err_say(why, e, "SRTP", "no place for SSRC %08x: %s", ssrc, err_text(e));
	return ERR_OK;
}

enum err srtp_session_hear(struct srtp_session *s, uint32_t ssrc, uint32_t roc, struct err_why *why)
{
	struct srtp_place *place = find(s->state, ssrc);
	uint32_t now = 0;
	enum err e;

	if (!place) {
		if ((e = add(s->state, ssrc, false, roc, &place)))
			return err_say(why, e, "SRTP", "no place for SSRC %08x: %s", ssrc, err_text(e));
		return ERR_OK;
	}
	/* While packets come, libsrtp counts by itself, and round a wrap better than we. */
	if (place->is_ours || (place->n_rtp && place->n_forged_in_a_row < LOST_AFTER))
		return ERR_OK;
	/* Never back: that would let packets be played again. */
	if (place->n_rtp && (srtp_get_stream_roc(place->context, ssrc, &now) || roc <= now))
		return ERR_OK;
	if (srtp_set_stream_roc(place->context, ssrc, roc))
		return err_say(why, ERR_CODEC, "SRTP", "the roll-over counter of SSRC %08x cannot be set", ssrc);
	place->n_forged_in_a_row = 0;
	return ERR_OK;
}

void srtp_session_forget(struct srtp_session *s, uint32_t ssrc)
{
	struct srtp_place *place = find(s->state, ssrc);

	if (place && !place->is_ours)
		place->left = ++s->state->n_left;
}

bool srtp_session_has(const struct srtp_session *s, uint32_t ssrc)
{
	const struct srtp_place *place = find(s->state, ssrc);

	return place && !place->left;
}

uint32_t srtp_session_roc(const struct srtp_session *s, uint32_t ssrc)
{
	const struct srtp_place *place = find(s->state, ssrc);
	uint32_t roc = 0;

	if (!place || srtp_get_stream_roc(place->context, ssrc, &roc))
		return 0;
	return roc;
}

/* ---- packets ---- */

typedef srtp_err_status_t work_fn(srtp_t context, void *packet, int *n_bytes);

static enum err protect(struct srtp_session *s, uint8_t *packet, size_t *n_bytes, uint32_t ssrc, work_fn *work)
{
	const struct srtp_place *place = find(s->state, ssrc);
	int n = (int)*n_bytes;

	if (!place || !place->is_ours)
		return ERR_ARG;
	switch (work(place->context, packet, &n)) {
	case srtp_err_status_ok:
		*n_bytes = (size_t)n;
		s->counts.n_protected++;
		return ERR_OK;
	case srtp_err_status_key_expired:
		return ERR_LIMIT;
	default:
		return ERR_CODEC;
	}
}

enum err srtp_session_protect(struct srtp_session *s, uint8_t *packet, size_t *n_bytes)
{
	if (*n_bytes < RTP_BYTES || *n_bytes > SRTP_PACKET_MAX_BYTES)
		return ERR_ARG;
	return protect(s, packet, n_bytes, get_be32(packet + 8), srtp_protect);
}

enum err srtp_session_protect_rtcp(struct srtp_session *s, uint8_t *packet, size_t *n_bytes)
{
	if (*n_bytes < RTCP_BYTES || *n_bytes > SRTP_PACKET_MAX_BYTES)
		return ERR_ARG;
	return protect(s, packet, n_bytes, get_be32(packet + 4), srtp_protect_rtcp);
}

static enum err count(struct srtp_session *s, enum err e)
{
	struct srtp_counts *c = &s->counts;

	(*(e == ERR_OK ? &c->n_unprotected : e == ERR_PEER ? &c->n_forged : e == ERR_AGAIN ? &c->n_replayed : &c->n_refused))++;
	return e;
}

static enum err unprotect(struct srtp_session *s, uint8_t *packet, size_t *n_bytes, uint32_t ssrc, work_fn *work)
{
	struct srtp_place *place = find(s->state, ssrc);
	int n = (int)*n_bytes;
	enum err e;

	/* Who has the key has a place; nobody else takes one. */
	if (!place && !(work == srtp_unprotect ? srtpcheck_rtp : srtpcheck_rtcp)(&s->state->check, packet, *n_bytes))
		return ERR_PEER;
	if (!place && (e = add(s->state, ssrc, false, 0, &place)))
		return e;
	/* Our own words come back to us: a loop, or somebody who repeats them. */
	if (place->is_ours)
		return ERR_AGAIN;
	switch (work(place->context, packet, &n)) {
	case srtp_err_status_ok:
		*n_bytes = (size_t)n;
		place->n_rtp += work == srtp_unprotect;
		place->n_forged_in_a_row = 0;
		place->left = 0;
		return ERR_OK;
	case srtp_err_status_replay_fail:
	case srtp_err_status_replay_old:
		return ERR_AGAIN;
	default:
		place->n_forged_in_a_row++;
		return ERR_PEER;
	}
}

enum err srtp_session_unprotect(struct srtp_session *s, uint8_t *packet, size_t *n_bytes)
{
	if (*n_bytes < RTP_BYTES + srtp_tail_bytes(s->state->key.kind) || *n_bytes > SRTP_PACKET_MAX_BYTES)
		return count(s, ERR_FORMAT);
	return count(s, unprotect(s, packet, n_bytes, get_be32(packet + 8), srtp_unprotect));
}

enum err srtp_session_unprotect_rtcp(struct srtp_session *s, uint8_t *packet, size_t *n_bytes)
{
	if (*n_bytes < RTCP_BYTES + 4 + srtp_tail_bytes(s->state->key.kind) || *n_bytes > SRTP_PACKET_MAX_BYTES)
		return count(s, ERR_FORMAT);
	return count(s, unprotect(s, packet, n_bytes, get_be32(packet + 4), srtp_unprotect_rtcp));
}
