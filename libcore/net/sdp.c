#include "net/sdp.h"

#include "base/utf8.h"
#include "net/sdpattribute.h"
#include "net/sdptext.h"

#include <string.h>
#include <strings.h>

/* ---- lines ---- */

/* "IN IP4 239.1.2.3/32", "IN IP6 ::1", with a ttl for IPv4 and a count that nobody needs. */
static enum err take_address(struct sdptext *p, const char *at, struct sdp_address *a)
{
	char net[8], type[8];
	const char *host;
	unsigned long ttl;

	if (!sdptext_keep_word(&at, net, sizeof(net)) || !sdptext_keep_word(&at, type, sizeof(type)) || strcmp(net, "IN") ||
		(strcmp(type, "IP4") && strcmp(type, "IP6")))
		return sdptext_bad(p, "an address is 'IN IP4 …' or 'IN IP6 …'");
	size_t n = sdptext_word(&at, &host);
	size_t host_bytes = strcspn(host, "/ \t");
	if (n == 0 || host_bytes == 0 || host_bytes >= sizeof(a->host))
		return sdptext_bad(p, "an address of 1 to %zu characters is wanted", sizeof(a->host) - 1);
	*a = (struct sdp_address){ .is_set = true, .is_ip6 = type[2] == '6', .ttl = -1 };
	memcpy(a->host, host, host_bytes);
	if (!a->is_ip6 && host[host_bytes] == '/') {
		const char *digits = host + host_bytes + 1;
		if (!sdptext_number(&digits, 255, &ttl))
			return sdptext_bad(p, "a time to live is 0 to 255");
		a->ttl = (int)ttl;
	}
	return ERR_OK;
}

static enum err take_origin(struct sdptext *p, const char *at)
{
	struct sdp *s = p->sdp;

	if (!sdptext_keep_word(&at, s->user, sizeof(s->user)) || !sdptext_keep_word(&at, s->id, sizeof(s->id)) || !sdptext_keep_word(&at, s->version, sizeof(s->version)))
		return sdptext_bad(p, "o= has a user, an id, a version and an address");
	return take_address(p, at, &s->origin);
}

static enum err take_media(struct sdptext *p, const char *at)
{
	char kind[32], proto[32];
	const char *w;
	unsigned long v;

	if (p->sdp->n_media == SDP_MAX_MEDIA)
		return err_say(p->why, ERR_LIMIT, p->name, "line %u: more than %u m= lines", p->line, SDP_MAX_MEDIA);
	struct sdp_media *m = p->media = &p->sdp->media[p->sdp->n_media++];
	if (!sdptext_keep_word(&at, kind, sizeof(kind)))
		return sdptext_bad(p, "m= without a kind of media");
	m->is_audio = !strcmp(kind, "audio");
	at += strspn(at, " \t");
	if (!sdptext_number(&at, 65535, &v))
		return sdptext_bad(p, "m=%s has no port of 0 to 65535", kind);
	m->port = (uint16_t)v;
	/* A count of ports may follow; the first is ours. */
	at += strcspn(at, " \t");
	if (!sdptext_keep_word(&at, proto, sizeof(proto)))
		return sdptext_bad(p, "m=%s has no protocol", kind);
	m->is_secure = !strcmp(proto, "RTP/SAVP") || !strcmp(proto, "RTP/SAVPF");
	m->is_rtp = m->is_secure || !strcmp(proto, "RTP/AVP") || !strcmp(proto, "RTP/AVPF");
	m->direction = p->direction;
	m->rtcp_mux = p->rtcp_mux;
	while (m->is_rtp && sdptext_word(&at, &w)) {
		const char *digits = w;
		if (!sdptext_number(&digits, 127, &v) || digits != at)
			return sdptext_bad(p, "payload type '%.*s' is not 0 to 127", (int)(at - w > 20 ? 20 : at - w), w);
		if (m->n_formats == SDP_MAX_FORMATS || sdp_by_pt(m, (uint8_t)v))
			continue;
		struct sdp_format *f = &m->formats[m->n_formats++];
		f->pt = (uint8_t)v;
		(void)rtp_static_format(f->pt, &f->rtp);
	}
	if (m->is_rtp && m->is_audio && m->n_formats == 0)
		return sdptext_bad(p, "m=audio has no payload type");
	return ERR_OK;
}

static enum err take_line(struct sdptext *p, char type, char *value)
{
	struct sdp *s = p->sdp;

	switch (type) {
	case 'v':
		return strcmp(value, "0") ? sdptext_bad(p, "version '%.20s' is not 0", value) : ERR_OK;
	case 'o':
		return take_origin(p, value);
	case 's':
		sdptext_keep(s->name, sizeof(s->name), value, strlen(value));
		return ERR_OK;
	case 'i':
		sdptext_keep(p->media ? p->media->label : s->info, SDP_TEXT_BYTES, value, strlen(value));
		return ERR_OK;
	case 'c':
		return take_address(p, value, p->media ? &p->media->address : &s->address);
	case 'm':
		return take_media(p, value);
	case 'a':
		return sdpattribute_take(p, value);
	}
	return ERR_OK;
}

/* What a media has from the session, and what follows from the rest. */
static void complete(struct sdptext *p)
{
	struct sdp *s = p->sdp;

	for (unsigned i = 0; i < s->n_media; i++) {
		struct sdp_media *m = &s->media[i];

		if (!m->address.is_set)
			m->address = s->address;
		if (!m->filter.is_set)
			m->filter = p->filter;
		if (!*m->ts_refclk)
			memcpy(m->ts_refclk, p->ts_refclk, sizeof(m->ts_refclk));
		if (!*m->mediaclk)
			memcpy(m->mediaclk, p->mediaclk, sizeof(m->mediaclk));
		if (m->rtcp_mux)
			m->rtcp_port = m->port;
		else if (!m->rtcp_port && m->port && m->port < 65535)
			m->rtcp_port = (uint16_t)(m->port + 1);
	}
}

enum err sdp_parse(struct sdp *s, const char *text, size_t n_bytes, const char *name, struct err_why *why)
{
	struct sdptext p = { .sdp = s, .name = name, .why = why };
	const char *nul = memchr(text, '\0', n_bytes), *at = text, *end = nul ? nul : text + n_bytes;
	bool begun = false;
	enum err e;

	memset(s, 0, sizeof(*s));
	s->origin.ttl = s->address.ttl = -1;
	if (n_bytes > SDP_MAX_BYTES)
		return err_say(why, ERR_LIMIT, name, "has %zu bytes: a session description is at most %u", n_bytes, SDP_MAX_BYTES);
	while (at < end) {
		size_t n = 0;

		while (at + n < end && at[n] != '\r' && at[n] != '\n')
			n++;
		p.line++;
		if (n > SDP_MAX_LINE_BYTES)
			return err_say(why, ERR_LIMIT, name, "line %u is longer than %u bytes", p.line, SDP_MAX_LINE_BYTES);
		memcpy(p.text, at, n);
		p.text[n] = '\0';
		at += n;
		at += at < end && *at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : at < end ? 1 : 0;
		/* What a program prints around it does no harm before it begins. */
		if (!begun && strncmp(p.text, "v=", 2)) {
			if (n && strcmp(p.text, "SDP:"))
				return sdptext_bad(&p, "a session description begins with v=0");
			continue;
		}
		begun = true;
		if (n == 0)
			continue;
		if (n < 2 || p.text[1] != '=')
			return sdptext_bad(&p, "'%.30s' is not TYPE=VALUE", p.text);
		if ((e = take_line(&p, p.text[0], p.text + 2)))
			return e;
	}
	if (!begun)
		return err_say(why, ERR_FORMAT, name, "is not a session description: it has no v=0");
	complete(&p);
	return ERR_OK;
}

/* ---- looking things up ---- */

const char *sdp_fmtp(const char *fmtp, const char *key, char *out, size_t out_bytes)
{
	size_t key_bytes = strlen(key);

	while (*fmtp) {
		fmtp += strspn(fmtp, "; \t");
		size_t n = strcspn(fmtp, ";");
		if (n >= key_bytes && !strncasecmp(fmtp, key, key_bytes)) {
			const char *value = fmtp + key_bytes;

			value += strspn(value, " \t");
			if (*value == '=') {
				value++;
				size_t value_bytes = n - (size_t)(value - fmtp);
				while (value_bytes && (value[value_bytes - 1] == ' ' || value[value_bytes - 1] == '\t'))
					value_bytes--;
				sdptext_keep(out, out_bytes, value, value_bytes);
				return out;
			}
		}
		fmtp += n;
	}
	return NULL;
}

const struct sdp_format *sdp_by_pt(const struct sdp_media *m, uint8_t pt)
{
	for (unsigned i = 0; i < m->n_formats; i++) {
		if (m->formats[i].pt == pt)
			return &m->formats[i];
	}
	return NULL;
}

const struct sdp_format *sdp_choose(const struct sdp_media *m)
{
	const struct sdp_format *red = NULL;

	for (unsigned i = 0; i < m->n_formats && m->is_audio && m->is_rtp; i++) {
		const struct sdp_format *f = &m->formats[i];

		if (f->rtp.codec == RTP_CODEC_RED)
			red = red ? red : f;
		else if (f->rtp.codec != RTP_CODEC_NONE)
			return f;
	}
	return red;
}

const char *sdp_clean(const char *text, char *out, size_t out_bytes)
{
	size_t n = strlen(text), to = 0;

	for (size_t at = 0; at < n;) {
		unsigned c = utf8_length((const uint8_t *)text + at, n - at);
		bool plain = c > 1 || (c == 1 && (unsigned char)text[at] >= ' ' && text[at] != 0x7f);

		if (to + (plain ? c : 1) >= out_bytes)
			break;
		if (plain) {
			memcpy(out + to, text + at, c);
			to += c;
		} else {
			out[to++] = '_';
		}
		at += c ? c : 1;
	}
	out[to] = '\0';
	return out;
}
