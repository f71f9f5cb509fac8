#include "net/sdpwrite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* To a nanosecond, without trailing zeros: 20, 0.125, 2.5; and without an exponent, which SDP does not know. */
static void put_time(struct out *o, const char *name, double ms)
{
	char text[32];
	size_t n = (size_t)snprintf(text, sizeof(text), "%.6f", ms);

	if (strtod(text, NULL) <= 0)
		return;
	while (text[n - 1] == '0')
		n--;
	if (text[n - 1] == '.')
		n--;
	put(o, "a=%s:%.*s\r\n", name, (int)n, text);
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

size_t sdpwrite_text(const struct sdp *s, char *out, size_t room_bytes)
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
