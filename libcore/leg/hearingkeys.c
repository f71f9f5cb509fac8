#include "leg/hearingkeys.h"

#include <string.h>

/* The key that an SDP carries itself, as other programs have it (RFC 4568).  Returns: there is one. */
static bool key_of_sdp(const struct hearing *h, struct srtp_key *key)
{
	for (unsigned i = 0; h->sdp && i < h->sdp->n_media; i++)
		for (unsigned k = 0; k < h->sdp->media[i].n_crypto; k++) {
			const struct sdp_crypto *c = &h->sdp->media[i].crypto[k];
			for (int kind = SRTP_GCM; kind <= SRTP_SHA1; kind++)
				if (!strcmp(c->suite, srtp_kind_name((enum srtp_kind)kind))) {
					key->kind = (enum srtp_kind)kind;
					return secret_decode(key->bytes, sizeof(key->bytes), c->key, strlen(c->key)) == srtp_key_bytes(key->kind);
				}
		}
	return false;
}

/* A sender may have an SSRC for its repairs too, and those that left are remembered for a while. */
static unsigned srtp_places(const struct hearing *h)
{
	unsigned n = 2 * (unsigned)h->o.max_senders + SRTP_LEFT_PLACES;

	return n < SRTP_SENDERS_MAX ? n : SRTP_SENDERS_MAX;
}

enum err hearingkeys_take(struct hearing *h)
{
	struct keyfile k = { .has_srtp = false };
	enum err e;

	if (h->has_link) {
		/* Sealed when there is a key; its sound comes as srtp:// does. */
		e = keyfile_load(&k, h->o.key_file, h->tool, &h->why);
		h->is_secure = !e;
		if (e && e != ERR_END)
			return e;
		if (!e && (!k.has_secret || secret_seal(&k.secret, h->psk))) {
			keyfile_wipe(&k);
			return err_say(&h->why, ERR_ARG, "weir://", "needs a key of weir's own, not one for other programs: `weir keygen` makes one");
		}
	}
	if (!h->is_secure) {
		if (h->o.key_file)
			return err_say(&h->why, ERR_ARG, "--key-file", "is for srtp://: rtp:// takes whatever comes");
		if (!h->o.replay_path)
			tool_warn(h->tool, "no key", "anyone may send here%s (a key, and srtp:// or weir://, let nobody else in)",
				h->o.from.n ? " who can send from the addresses of --from" : "");
		return ERR_OK;
	}
	if (h->has_link || (!h->o.key_file && key_of_sdp(h, &k.srtp)))
		e = ERR_OK;
	else
		e = keyfile_load(&k, h->o.key_file, h->tool, &h->why);
	if (e == ERR_END)
		e = err_say(&h->why, ERR_ARG, "srtp", "no key: --key-file FILE, or WEIR_KEY in the environment (weir keygen makes one)");
	if (!e)
		e = srtp_session_init(&h->srtp, &k.srtp, srtp_places(h), &h->why);
	keyfile_wipe(&k);
	return e;
}
