#include "net/sdp.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CLOCK_HZ 768000u
#define MAX_CHANNELS 255u
#define MAX_PTIME_MS 10000.0

/* Where in the text we are, and what the session's lines left for the media. */
struct parse {
	struct sdp *sdp;
	struct sdp_media *media;      /* NULL before the first m= */
	const char *name;
	struct err_why *why;
	unsigned line;
	char text[SDP_MAX_LINE_BYTES + 1]; /* of the line, terminated */
	/* session level, handed down to every media */
	struct sdp_filter filter;
	enum sdp_direction direction;
	char ts_refclk[SDP_TEXT_BYTES], mediaclk[SDP_TEXT_BYTES];
	bool rtcp_mux;
	unsigned n_media;             /* m= lines seen */
};

WEIR_PRINTF(2, 3) static enum err bad(struct parse *p, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_say(p->why, ERR_FORMAT, p->name, "line %u: %s", p->line, what);
}

/* Text up to the room there is, cut at a whole character. */
static void keep(char *to, size_t room, const char *from, size_t n)
{
	size_t at = 0;

	while (at < n) {
		unsigned c = utf8_length((const uint8_t *)from + at, n - at);
		c = c ? c : 1;
		if (at + c >= room)
			break;
		at += c;
	}
	memcpy(to, from, at);
	to[at] = '\0';
}

/* The next word of *at, which moves on.  Returns: its length; 0 if there is none. */
static size_t word(const char **at, const char **begin)
{
	*at += strspn(*at, " \t");
	*begin = *at;
	*at += strcspn(*at, " \t");
	return (size_t)(*at - *begin);
}

static bool keep_word(const char **at, char *to, size_t room)
{
	const char *w;
	size_t n = word(at, &w);

	if (n == 0 || n >= room)
		return false;
	memcpy(to, w, n);
	to[n] = '\0';
	return true;
}

/* Digits at *at, which moves behind them. */
static bool number(const char **at, unsigned long high, unsigned long *v)
{
	size_t n = strspn(*at, "0123456789");

	if (n == 0 || n > 10)
		return false;
	*v = 0;
	for (size_t i = 0; i < n; i++)
		*v = 10 * *v + (unsigned long)((*at)[i] - '0');
	*at += n;
	return *v <= high;
}

/* "20", "0.125", "1.0": milliseconds. */
static bool decimal(const char *text, double high, double *v)
{
	const char *at = text;
	unsigned long whole = 0, digits = 0;
	double scale = 1, fraction = 0;

	if (!number(&at, (unsigned long)high, &whole))
		return false;
	if (*at == '.') {
		for (at++; *at >= '0' && *at <= '9' && digits < 9; at++, digits++) {
			scale /= 10;
			fraction += scale * (*at - '0');
		}
	}
	at += strspn(at, "0123456789");
	at += strspn(at, " \t");
	*v = (double)whole + fraction;
	return *at == '\0';
}

/* ---- lines ---- */

/* "IN IP4 239.1.2.3/32", "IN IP6 ::1", with a ttl for IPv4 and a count that nobody needs. */
static enum err take_address(struct parse *p, const char *at, struct sdp_address *a)
{
	char net[8], type[8];
	const char *host;
	unsigned long ttl;

	if (!keep_word(&at, net, sizeof(net)) || !keep_word(&at, type, sizeof(type)) || strcmp(net, "IN") ||
		(strcmp(type, "IP4") && strcmp(type, "IP6")))
		return bad(p, "an address is 'IN IP4 …' or 'IN IP6 …'");
	size_t n = word(&at, &host);
	size_t host_bytes = strcspn(host, "/ \t");
	if (n == 0 || host_bytes == 0 || host_bytes >= sizeof(a->host))
		return bad(p, "an address of 1 to %zu characters is wanted", sizeof(a->host) - 1);
	*a = (struct sdp_address){ .is_set = true, .is_ip6 = type[2] == '6', .ttl = -1 };
	memcpy(a->host, host, host_bytes);
	if (!a->is_ip6 && host[host_bytes] == '/') {
		const char *digits = host + host_bytes + 1;
		if (!number(&digits, 255, &ttl))
			return bad(p, "a time to live is 0 to 255");
		a->ttl = (int)ttl;
	}
	return ERR_OK;
}

static enum err take_origin(struct parse *p, const char *at)
{
	struct sdp *s = p->sdp;

	if (!keep_word(&at, s->user, sizeof(s->user)) || !keep_word(&at, s->id, sizeof(s->id)) || !keep_word(&at, s->version, sizeof(s->version)))
		return bad(p, "o= has a user, an id, a version and an address");
	return take_address(p, at, &s->origin);
}

static enum err take_media(struct parse *p, const char *at)
{
	char kind[32], proto[32];
	const char *w;
	unsigned long v;

	if (p->sdp->n_media == SDP_MAX_MEDIA)
		return err_say(p->why, ERR_LIMIT, p->name, "line %u: more than %u m= lines", p->line, SDP_MAX_MEDIA);
	struct sdp_media *m = p->media = &p->sdp->media[p->sdp->n_media++];
	if (!keep_word(&at, kind, sizeof(kind)))
		return bad(p, "m= without a kind of media");
	m->is_audio = !strcmp(kind, "audio");
	at += strspn(at, " \t");
	if (!number(&at, 65535, &v))
		return bad(p, "m=%s has no port of 0 to 65535", kind);
	m->port = (uint16_t)v;
	/* A count of ports may follow; the first is ours. */
	at += strcspn(at, " \t");
	if (!keep_word(&at, proto, sizeof(proto)))
		return bad(p, "m=%s has no protocol", kind);
	m->is_secure = !strcmp(proto, "RTP/SAVP") || !strcmp(proto, "RTP/SAVPF");
	m->is_rtp = m->is_secure || !strcmp(proto, "RTP/AVP") || !strcmp(proto, "RTP/AVPF");
	m->direction = p->direction;
	m->rtcp_mux = p->rtcp_mux;
	while (m->is_rtp && word(&at, &w)) {
		const char *digits = w;
		if (!number(&digits, 127, &v) || digits != at)
			return bad(p, "payload type '%.*s' is not 0 to 127", (int)(at - w > 20 ? 20 : at - w), w);
		if (m->n_formats == SDP_MAX_FORMATS || sdp_by_pt(m, (uint8_t)v))
			continue;
		struct sdp_format *f = &m->formats[m->n_formats++];
		f->pt = (uint8_t)v;
		(void)rtp_static_format(f->pt, &f->rtp);
	}
	if (m->is_rtp && m->is_audio && m->n_formats == 0)
		return bad(p, "m=audio has no payload type");
	return ERR_OK;
}

/* "111 …": the format of the media that a line is about.  Returns: false: the number is none.  *f is NULL if it is not listed. */
static bool format_of(struct parse *p, const char **at, struct sdp_format **f)
{
	unsigned long pt;

	*f = NULL;
	if (!number(at, 127, &pt) || (**at != ' ' && **at != '\t'))
		return false;
	*at += strspn(*at, " \t");
	for (unsigned i = 0; i < p->media->n_formats && !*f; i++) {
		if (p->media->formats[i].pt == pt)
			*f = &p->media->formats[i];
	}
	return true;
}

static enum err take_rtpmap(struct parse *p, const char *at)
{
	struct sdp_format *f;
	unsigned long hz, channels = 1;

	if (!format_of(p, &at, &f))
		return bad(p, "rtpmap: a payload type of 0 to 127 and an encoding are wanted");
	if (!f)
		return ERR_OK;
	size_t n = strcspn(at, "/ \t");
	if (n == 0 || n >= sizeof(f->encoding) || at[n] != '/')
		return bad(p, "rtpmap: an encoding is 'NAME/CLOCK' or 'NAME/CLOCK/CHANNELS'");
	memcpy(f->encoding, at, n);
	f->encoding[n] = '\0';
	at += n + 1;
	if (!number(&at, UINT32_MAX, &hz) || hz == 0)
		return bad(p, "rtpmap: a clock is a number of Hz");
	if (*at == '/' && (at++, !number(&at, 65535, &channels) || channels == 0) && p->media->is_audio)
		return bad(p, "rtpmap: channels are 1 to %u", MAX_CHANNELS);
	enum rtp_codec codec = p->media->is_audio ? rtp_codec_by_name(f->encoding) : RTP_CODEC_NONE;
	if (codec != RTP_CODEC_NONE && (hz < 1000 || hz > MAX_CLOCK_HZ || channels > MAX_CHANNELS))
		return bad(p, "rtpmap: %lu Hz and %lu channels: 1000 to %u Hz and 1 to %u channels are possible", hz, channels, MAX_CLOCK_HZ, MAX_CHANNELS);
	f->rtp = (struct rtp_format){ codec, (uint32_t)hz, (uint16_t)channels };
	return ERR_OK;
}

static enum err take_fmtp(struct parse *p, const char *at)
{
	struct sdp_format *f;

	if (!format_of(p, &at, &f))
		return bad(p, "fmtp: a payload type of 0 to 127 and parameters are wanted");
	if (!f)
		return ERR_OK;
	keep(f->fmtp, sizeof(f->fmtp), at, strlen(at));
	sdp_fmtp(f->fmtp, "channel-order", p->media->channel_order, sizeof(p->media->channel_order));
	return ERR_OK;
}

/* "1 AEAD_AES_128_GCM inline:KEY|2^20|1:4 FLAGS" */
static enum err take_crypto(struct parse *p, const char *at)
{
	struct sdp_media *m = p->media;
	unsigned long tag;
	const char *key;

	if (m->n_crypto == SDP_MAX_CRYPTO)
		return ERR_OK;
	struct sdp_crypto *c = &m->crypto[m->n_crypto];
	if (!number(&at, 999999999, &tag) || !keep_word(&at, c->suite, sizeof(c->suite)))
		return bad(p, "crypto: a tag, a suite and inline:KEY are wanted");
	size_t n = word(&at, &key);
	if (n <= 7 || strncasecmp(key, "inline:", 7))
		return bad(p, "crypto: the key is not 'inline:…'");
	n = strcspn(key + 7, "|; \t");
	if (n == 0 || n >= sizeof(c->key))
		return bad(p, "crypto: a key of 1 to %zu characters is wanted", sizeof(c->key) - 1);
	c->tag = (unsigned)tag;
	memcpy(c->key, key + 7, n);
	c->key[n] = '\0';
	m->n_crypto++;
	return ERR_OK;
}

/* " incl IN IP4 239.1.2.3 192.0.2.7 …" */
static enum err take_filter(struct parse *p, const char *at, struct sdp_filter *f)
{
	char mode[8], skipped[SDP_TEXT_BYTES];
	const char *w;
	size_t n;

	*f = (struct sdp_filter){ 0 };
	if (!keep_word(&at, mode, sizeof(mode)) || (strcmp(mode, "incl") && strcmp(mode, "excl")))
		return bad(p, "source-filter is 'incl' or 'excl'");
	for (unsigned i = 0; i < 3; i++) {
		if (!keep_word(&at, skipped, sizeof(skipped)))
			return bad(p, "source-filter: a kind of address, a destination and sources are wanted");
	}
	while ((n = word(&at, &w)) && f->n_sources < SDP_MAX_SOURCES) {
		if (n >= sizeof(f->sources[0]))
			return bad(p, "source-filter: a source is longer than %zu characters", sizeof(f->sources[0]) - 1);
		memcpy(f->sources[f->n_sources], w, n);
		f->sources[f->n_sources++][n] = '\0';
	}
	if (f->n_sources == 0)
		return bad(p, "source-filter names no source");
	f->is_set = true;
	f->excludes = mode[0] == 'e';
	return ERR_OK;
}

static enum err take_ssrc(struct parse *p, const char *at)
{
	struct sdp_media *m = p->media;
	unsigned long ssrc;

	if (!number(&at, UINT32_MAX, &ssrc))
		return bad(p, "ssrc: not a number of 32 bits");
	if (!m->has_ssrc) {
		m->has_ssrc = true;
		m->ssrc = (uint32_t)ssrc;
	}
	at += strspn(at, " \t");
	if (m->ssrc == ssrc && !strncmp(at, "cname:", 6))
		keep(m->cname, sizeof(m->cname), at + 6, strlen(at + 6));
	return ERR_OK;
}

static bool direction_of(const char *name, enum sdp_direction *d)
{
	static const char *const names[] = { "sendrecv", "sendonly", "recvonly", "inactive" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(name, names[i])) {
			*d = i;
			return true;
		}
	}
	return false;
}

/* Attributes that either the session or a media has. */
static enum err take_common(struct parse *p, const char *name, const char *value)
{
	struct sdp_media *m = p->media;

	if (direction_of(name, m ? &m->direction : &p->direction))
		return ERR_OK;
	if (!strcmp(name, "source-filter"))
		return take_filter(p, value, m ? &m->filter : &p->filter);
	if (!strcmp(name, "ts-refclk"))
		keep(m ? m->ts_refclk : p->ts_refclk, SDP_TEXT_BYTES, value, strlen(value));
	else if (!strcmp(name, "mediaclk"))
		keep(m ? m->mediaclk : p->mediaclk, SDP_TEXT_BYTES, value, strlen(value));
	else if (!strcmp(name, "rtcp-mux"))
		*(m ? &m->rtcp_mux : &p->rtcp_mux) = true;
	else if (!strcmp(name, "tool") && !m)
		keep(p->sdp->tool, sizeof(p->sdp->tool), value, strlen(value));
	else if (!strcmp(name, "group") && !m && p->sdp->n_groups < ARRAY_LEN(p->sdp->groups))
		keep(p->sdp->groups[p->sdp->n_groups++], SDP_TEXT_BYTES, value, strlen(value));
	return ERR_OK;
}

static enum err take_attribute(struct parse *p, char *text)
{
	struct sdp_media *m = p->media;
	char *colon = strchr(text, ':');
	const char *value = colon ? colon + 1 : "";
	unsigned long v;

	if (colon)
		*colon = '\0';
	if (!m)
		return take_common(p, text, value);
	if (!strcmp(text, "rtpmap"))
		return take_rtpmap(p, value);
	if (!strcmp(text, "fmtp"))
		return take_fmtp(p, value);
	if (!strcmp(text, "crypto"))
		return take_crypto(p, value);
	if (!strcmp(text, "ssrc"))
		return take_ssrc(p, value);
	if (!strcmp(text, "ptime"))
		return decimal(value, MAX_PTIME_MS, &m->ptime_ms) ? ERR_OK : bad(p, "ptime is not 0 to %.0f ms", MAX_PTIME_MS);
	if (!strcmp(text, "maxptime"))
		return decimal(value, MAX_PTIME_MS, &m->maxptime_ms) ? ERR_OK : bad(p, "maxptime is not 0 to %.0f ms", MAX_PTIME_MS);
	if (!strcmp(text, "mid"))
		keep(m->mid, sizeof(m->mid), value, strlen(value));
	if (!strcmp(text, "rtcp")) {
		if (!number(&value, 65535, &v) || v == 0)
			return bad(p, "rtcp: not a port of 1 to 65535");
		m->rtcp_port = (uint16_t)v;
	}
	return take_common(p, text, value);
}

static enum err take_line(struct parse *p, char type, char *value)
{
	struct sdp *s = p->sdp;

	switch (type) {
	case 'v':
		return strcmp(value, "0") ? bad(p, "version '%.20s' is not 0", value) : ERR_OK;
	case 'o':
		return take_origin(p, value);
	case 's':
		keep(s->name, sizeof(s->name), value, strlen(value));
		return ERR_OK;
	case 'i':
		keep(p->media ? p->media->label : s->info, SDP_TEXT_BYTES, value, strlen(value));
		return ERR_OK;
	case 'c':
		return take_address(p, value, p->media ? &p->media->address : &s->address);
	case 'm':
		return take_media(p, value);
	case 'a':
		return take_attribute(p, value);
	}
	return ERR_OK;
}

/* What a media has from the session, and what follows from the rest. */
static void complete(struct parse *p)
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
	struct parse p = { .sdp = s, .name = name, .why = why };
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
				return bad(&p, "a session description begins with v=0");
			continue;
		}
		begun = true;
		if (n == 0)
			continue;
		if (n < 2 || p.text[1] != '=')
			return bad(&p, "'%.30s' is not TYPE=VALUE", p.text);
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
				keep(out, out_bytes, value, value_bytes);
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

/* ---- writing ---- */

struct out {
	char *text;
	size_t room_bytes, n_bytes;
	bool is_full;
};

WEIR_PRINTF(2, 3) static void put(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(o->text + o->n_bytes, o->room_bytes - o->n_bytes, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= o->room_bytes - o->n_bytes)
		o->is_full = true;
	else
		o->n_bytes += (size_t)n;
}

static const char *ip(const struct sdp_address *a)
{
	return a->is_ip6 ? "IP6" : "IP4";
}

static void put_connection(struct out *o, const struct sdp_address *a)
{
	put(o, "c=IN %s %s", ip(a), a->host);
	if (!a->is_ip6 && a->ttl >= 0)
		put(o, "/%d", a->ttl);
	put(o, "\r\n");
}

static void put_filter(struct out *o, const struct sdp_media *m)
{
	put(o, "a=source-filter: %s IN %s %s", m->filter.excludes ? "excl" : "incl", ip(&m->address), *m->address.host ? m->address.host : "*");
	for (unsigned i = 0; i < m->filter.n_sources; i++)
		put(o, " %s", m->filter.sources[i]);
	put(o, "\r\n");
}

/* Without trailing zeros: 20, 0.125, 2.5. */
static void put_time(struct out *o, const char *name, double ms)
{
	if (ms > 0)
		put(o, "a=%s:%.10g\r\n", name, ms);
}

static void put_formats(struct out *o, const struct sdp_media *m)
{
	for (unsigned i = 0; i < m->n_formats; i++) {
		const struct sdp_format *f = &m->formats[i];
		const char *name = *f->encoding ? f->encoding : rtp_codec_name(f->rtp.codec);

		if (f->rtp.codec == RTP_CODEC_NONE && !*f->encoding)
			continue;
		put(o, "a=rtpmap:%u %s/%u", f->pt, name, f->rtp.clock_hz);
		put(o, f->rtp.channels > 1 ? "/%u\r\n" : "\r\n", f->rtp.channels);
		if (*f->fmtp)
			put(o, "a=fmtp:%u %s\r\n", f->pt, f->fmtp);
	}
}

static void put_media(struct out *o, const struct sdp *s, const struct sdp_media *m)
{
	static const char *const directions[] = { "sendrecv", "sendonly", "recvonly", "inactive" };

	put(o, "m=%s %u %s", m->is_audio ? "audio" : "application", m->port, !m->is_rtp ? "UDP *" : m->is_secure ? "RTP/SAVP" : "RTP/AVP");
	for (unsigned i = 0; i < m->n_formats; i++)
		put(o, " %u", m->formats[i].pt);
	put(o, "\r\n");
	if (*m->label)
		put(o, "i=%s\r\n", m->label);
	if (m->address.is_set && (!s->address.is_set || strcmp(m->address.host, s->address.host) || m->address.ttl != s->address.ttl))
		put_connection(o, &m->address);
	put_formats(o, m);
	put_time(o, "ptime", m->ptime_ms);
	put_time(o, "maxptime", m->maxptime_ms);
	if (m->direction != SDP_SENDRECV)
		put(o, "a=%s\r\n", directions[m->direction]);
	if (m->rtcp_mux)
		put(o, "a=rtcp-mux\r\n");
	else if (m->rtcp_port && m->rtcp_port != m->port + 1)
		put(o, "a=rtcp:%u\r\n", m->rtcp_port);
	if (*m->mid)
		put(o, "a=mid:%s\r\n", m->mid);
	if (m->has_ssrc)
		put(o, "a=ssrc:%u cname:%s\r\n", m->ssrc, *m->cname ? m->cname : "weir");
	for (unsigned i = 0; i < m->n_crypto; i++)
		put(o, "a=crypto:%u %s inline:%s\r\n", m->crypto[i].tag, m->crypto[i].suite, m->crypto[i].key);
	if (m->filter.is_set)
		put_filter(o, m);
	if (*m->ts_refclk)
		put(o, "a=ts-refclk:%s\r\n", m->ts_refclk);
	if (*m->mediaclk)
		put(o, "a=mediaclk:%s\r\n", m->mediaclk);
}

size_t sdp_write(const struct sdp *s, char *out, size_t room_bytes)
{
	struct out o = { .text = out, .room_bytes = room_bytes };

	if (room_bytes == 0)
		return 0;
	put(&o, "v=0\r\n");
	put(&o, "o=%s %s %s IN %s %s\r\n", *s->user ? s->user : "-", *s->id ? s->id : "0", *s->version ? s->version : "0",
		ip(&s->origin), *s->origin.host ? s->origin.host : s->origin.is_ip6 ? "::" : "0.0.0.0");
	put(&o, "s=%s\r\n", *s->name ? s->name : "-");
	if (*s->info)
		put(&o, "i=%s\r\n", s->info);
	if (s->address.is_set)
		put_connection(&o, &s->address);
	put(&o, "t=0 0\r\n");
	if (*s->tool)
		put(&o, "a=tool:%s\r\n", s->tool);
	for (unsigned i = 0; i < s->n_groups; i++)
		put(&o, "a=group:%s\r\n", s->groups[i]);
	for (unsigned i = 0; i < s->n_media; i++)
		put_media(&o, s, &s->media[i]);
	return o.is_full ? 0 : o.n_bytes;
}
