#include "leg/announce.h"

#include "leg/sessionfile.h"
#include "net/sdpwrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_NS UNITS_NS_PER_S /* between the first ones */
#define N_FIRST 3u

void announce_begin(struct announce *a, struct sender *s)
{
	a->sender = s;
	a->is_on = true;
	a->next_ns = INT64_MAX;
}

/* Where announcements for a session at `to` go (section 3): to the highest address of its scope. */
static const char *group_of(const struct dgram_addr *to, char out[static 64])
{
	if (to->any.sa_family == AF_INET6) {
		unsigned scope = to->ip6.sin6_addr.s6_addr[0] == 0xFF ? to->ip6.sin6_addr.s6_addr[1] & 15 : 5;

		snprintf(out, 64, "ff0%x::2:7ffe", scope);
		return out;
	}
	return ntohl(to->ip4.sin_addr.s_addr) >> 24 == 224 ? SAP_GLOBAL_IP4 : SAP_LOCAL_IP4;
}

static enum err open_session(struct announce *a, unsigned i, struct err_why *why)
{
	struct announce_session *s = &a->sessions[i];
	const struct sender_to *to = &a->sender->to[i];
	struct dgram_options o = { .iface = *to->url.iface ? to->url.iface : a->sender->o.iface, .ttl = to->url.ttl >= 0 ? to->url.ttl : a->sender->o.ttl };
	struct dgram_addr any = { .n_bytes = to->addr.n_bytes };
	char group[64];
	enum err e;

	any.any.sa_family = to->addr.any.sa_family;
	if ((e = dgram_resolve(&s->to, group_of(&to->addr, group), SAP_PORT, any.any.sa_family, why)) || (e = dgram_open(&s->socket, &any, &o, why)))
		return e;
	s->is_open = true;
	s->sap.is_ip6 = to->local.any.sa_family == AF_INET6;
	if (s->sap.is_ip6)
		memcpy(s->sap.origin, &to->local.ip6.sin6_addr, 16);
	else
		memcpy(s->sap.origin, &to->local.ip4.sin_addr, 4);
	return ERR_OK;
}

static void publish(struct announce *a, unsigned i, const struct sdp *d)
{
	struct announce_session *s = &a->sessions[i];
	const struct sender_to *to = &a->sender->to[i];
	const struct sdp_format *f = d->n_media ? sdp_choose(&d->media[0]) : NULL;
	struct avahi_service service = { .port = to->url.port, .n_texts = 0 };
	struct err_why why = { 0 };

	snprintf(service.name, sizeof(service.name), "%.63s", d->name);
	snprintf(service.texts[service.n_texts++], AVAHI_TEXT_BYTES, "url=%s://%.100s", to->is_secure ? "srtp" : "rtp", to->name);
	if (f) {
		snprintf(service.texts[service.n_texts++], AVAHI_TEXT_BYTES, "pt=%u", f->pt);
		snprintf(service.texts[service.n_texts++], AVAHI_TEXT_BYTES, "codec=%s", rtp_codec_name(f->rtp.codec));
		snprintf(service.texts[service.n_texts++], AVAHI_TEXT_BYTES, "rate=%u", f->rtp.clock_hz);
		snprintf(service.texts[service.n_texts++], AVAHI_TEXT_BYTES, "channels=%u", f->rtp.channels);
	}
#ifdef WEIR_HAVE_AVAHI
	avahi_close(s->service);
	s->service = NULL;
	if (avahi_publish(&s->service, ANNOUNCE_SERVICE_TYPE, &service, &why) && !a->is_said) {
		a->is_said = true;
		tool_note(a->sender->tool, "mDNS", "%s: announced by SAP alone", why.reason);
	}
#else
	(void)s;
	(void)why;
#endif
}

static void send_one(struct announce_session *s, bool is_delete)
{
	uint8_t bytes[SAP_MAX_READ_BYTES];

	s->sap.is_delete = is_delete;
	size_t n = sap_pack(&s->sap, bytes, sizeof(bytes));
	/* One that cannot go is one that is lost on the way: the next comes. */
	if (n)
		(void)!sendto(s->socket.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL, &s->to.any, s->to.n_bytes);
}

enum err announce_tell(struct announce *a, struct err_why *why)
{
	struct sdp *d = calloc(1, sizeof(*d));
	char *text = malloc(SDP_MAX_BYTES);
	enum err e = d && text ? ERR_OK : err_say(why, ERR_NOMEM, "--announce", "%s", err_text(ERR_NOMEM));

	a->version++;
	for (unsigned i = 0; i < a->sender->n_to && !e; i++) {
		struct announce_session *s = &a->sessions[i];
		struct sessionfile f = { .to = i, .id = 1 + i, .version = a->version };

		if (!s->is_open && (e = open_session(a, i, why)))
			break;
		if (s->text)
			send_one(s, true);
		sessionfile_describe(a->sender, &f, d);
		s->n_bytes = sdpwrite_text(d, text, SDP_MAX_BYTES);
		free(s->text);
		if (!(s->text = strndup(text, s->n_bytes))) {
			e = err_say(why, ERR_NOMEM, "--announce", "%s", err_text(ERR_NOMEM));
			break;
		}
		s->sap.payload = s->text;
		s->sap.payload_bytes = s->n_bytes;
		s->sap.hash = sap_hash(s->text, s->n_bytes);
		publish(a, i, d);
	}
	a->next_ns = INT64_MIN;
	a->n_sent = 0;
	free(d);
	free(text);
	return e;
}

int64_t announce_work(struct announce *a, int64_t now_ns)
{
	if (!a->is_on || now_ns < a->next_ns)
		return a->is_on ? a->next_ns : INT64_MAX;
	for (unsigned i = 0; i < a->sender->n_to; i++) {
		if (a->sessions[i].text)
			send_one(&a->sessions[i], false);
	}
	int64_t third_ns = ANNOUNCE_EVERY_NS / 3;
	a->next_ns = now_ns + (++a->n_sent < N_FIRST ? FIRST_NS : ANNOUNCE_EVERY_NS - third_ns + (int64_t)(2 * (double)third_ns * sender_random(a->sender)));
	return a->next_ns;
}

void announce_end(struct announce *a)
{
	for (unsigned i = 0; a->is_on && i < SENDER_MAX_URLS; i++) {
		struct announce_session *s = &a->sessions[i];

		if (s->text)
			send_one(s, true);
#ifdef WEIR_HAVE_AVAHI
		avahi_close(s->service);
#endif
		if (s->is_open)
			dgram_close(&s->socket);
		free(s->text);
	}
	*a = (struct announce){ .next_ns = INT64_MAX };
}
