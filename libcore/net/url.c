#include "net/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	enum url_scheme scheme;
} schemes[] = { { "rtp", URL_RTP }, { "srtp", URL_SRTP }, { "weir", URL_WEIR }, { "udp", URL_UDP } };

const char *url_scheme_name(enum url_scheme scheme)
{
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		if (schemes[i].scheme == scheme)
			return schemes[i].name;
	}
	return "?";
}

bool url_is_url(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

	return n > 0 && !strncmp(text + n, "://", 3);
}

/* Digits only, within low…high. */
static bool number(const char *text, size_t n, unsigned long low, unsigned long high, unsigned long *value)
{
	unsigned long v = 0;

	if (n == 0 || n > 9)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = 10 * v + (unsigned long)(text[i] - '0');
	}
	*value = v;
	return v >= low && v <= high;
}

/* A piece of text for a message: short, and nothing in it that a terminal obeys. */
static const char *quote(const char *text, size_t n, char out[static 64])
{
	size_t i;

	for (i = 0; i < n && i < 63; i++)
		out[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
	out[i] = '\0';
	return out;
}

static enum err take_host(struct url *u, const char *text, const char *host, size_t n, struct err_why *why)
{
	char q[64];

	if (n >= sizeof(u->host))
		return err_say(why, ERR_ARG, text, "the host has %zu bytes, at most %zu are possible", n, sizeof(u->host) - 1);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)host[i] <= ' ' || host[i] == 0x7f || strchr("[]/@", host[i]))
			return err_say(why, ERR_ARG, text, "'%s' is not a host", quote(host, n, q));
	}
	memcpy(u->host, host, n);
	u->host[n] = '\0';
	return ERR_OK;
}

static enum err take_address(struct url *u, const char *text, const char *at, size_t n, struct err_why *why)
{
	const char *port, *host = at, *end = at + n;
	unsigned long v;
	size_t host_bytes;
	char q[64];
	enum err e;

	if (memchr(at, ',', n))
		return err_say(why, ERR_ARG, text, "has a comma: each destination is an operand of its own");
	if (n && *at == '[') {
		const char *close = memchr(at, ']', n);

		if (!close)
			return err_say(why, ERR_ARG, text, "the '[' of an IPv6 address has no ']'");
		host = at + 1;
		host_bytes = (size_t)(close - host);
		if (!memchr(host, ':', host_bytes))
			return err_say(why, ERR_ARG, text, "'%s' in brackets is not an IPv6 address", quote(host, host_bytes, q));
		port = close + 1;
	} else {
		port = memchr(at, ':', n);
		if (port && memchr(port + 1, ':', (size_t)(end - port - 1)))
			return err_say(why, ERR_ARG, text, "an IPv6 address stands in brackets: %s://[ADDRESS]:PORT", url_scheme_name(u->scheme));
		host_bytes = port ? (size_t)(port - at) : n;
	}
	if (!port || port >= end || *port != ':')
		return err_say(why, ERR_ARG, text, "has no port: %s://HOST:PORT", url_scheme_name(u->scheme));
	if (!number(port + 1, (size_t)(end - port - 1), 1, 65535, &v))
		return err_say(why, ERR_ARG, text, "port '%s' is not 1 to 65535", quote(port + 1, (size_t)(end - port - 1), q));
	if ((e = take_host(u, text, host, host_bytes, why)))
		return e;
	u->port = (uint16_t)v;
	return ERR_OK;
}

/* ---- the query ---- */

static enum err take_codec(struct url *u, const char *text, const char *value, size_t n, struct err_why *why)
{
	char name[64];

	u->codec = rtp_codec_by_name(quote(value, n, name));
	if (u->codec == RTP_CODEC_NONE || u->codec == RTP_CODEC_RED)
		return err_say(why, ERR_ARG, text, "codec '%s' is not opus, l16 or l24", name);
	return ERR_OK;
}

static enum err take_number(const char *text, const char *key, const char *value, size_t n, unsigned long low, unsigned long high, unsigned long *v, struct err_why *why)
{
	char q[64];

	if (!number(value, n, low, high, v))
		return err_say(why, ERR_ARG, text, "%s '%s' is not %lu to %lu", key, quote(value, n, q), low, high);
	return ERR_OK;
}

static enum err take_iface(struct url *u, const char *text, const char *value, size_t n, struct err_why *why)
{
	char q[64];

	if (n == 0 || n >= sizeof(u->iface))
		return err_say(why, ERR_ARG, text, "iface '%s' is not a name of 1 to %zu bytes", quote(value, n, q), sizeof(u->iface) - 1);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)value[i] <= ' ' || value[i] == '/' || value[i] == 0x7f)
			return err_say(why, ERR_ARG, text, "iface '%s' is not the name of a network interface", quote(value, n, q));
	}
	memcpy(u->iface, value, n);
	u->iface[n] = '\0';
	return ERR_OK;
}

static enum err take_pair(struct url *u, const char *text, const char *pair, size_t n, unsigned *seen, struct err_why *why)
{
	static const char *const keys[] = { "pt", "codec", "rate", "channels", "iface", "ttl" };
	const char *equals = memchr(pair, '=', n);
	size_t key_bytes = equals ? (size_t)(equals - pair) : n, k = 0;
	unsigned long v = 0;
	char q[64];
	enum err e;

	while (k < ARRAY_LEN(keys) && (strlen(keys[k]) != key_bytes || strncasecmp(pair, keys[k], key_bytes)))
		k++;
	if (k == ARRAY_LEN(keys))
		return err_say(why, ERR_ARG, text, "'%s' is not one of pt= codec= rate= channels= iface= ttl=", quote(pair, key_bytes, q));
	if (!equals)
		return err_say(why, ERR_ARG, text, "%s has no value: %s=…", keys[k], keys[k]);
	if (*seen & 1u << k)
		return err_say(why, ERR_ARG, text, "%s= stands there twice", keys[k]);
	*seen |= 1u << k;
	const char *value = equals + 1;
	size_t value_bytes = n - key_bytes - 1;
	switch (k) {
	case 0:
		e = take_number(text, "pt", value, value_bytes, 0, 127, &v, why);
		u->pt = (int)v;
		return e;
	case 1:
		return take_codec(u, text, value, value_bytes, why);
	case 2:
		e = take_number(text, "rate", value, value_bytes, 1000, 768000, &v, why);
		u->rate_hz = (uint32_t)v;
		return e;
	case 3:
		e = take_number(text, "channels", value, value_bytes, 1, 255, &v, why);
		u->channels = (unsigned)v;
		return e;
	case 4:
		return take_iface(u, text, value, value_bytes, why);
	}
	e = take_number(text, "ttl", value, value_bytes, 1, 255, &v, why);
	u->ttl = (int)v;
	return e;
}

enum err url_parse(struct url *u, const char *text, struct err_why *why)
{
	const char *colon = strstr(text, "://");
	unsigned seen = 0;
	enum err e;
	char q[64];

	*u = (struct url){ .ttl = -1, .pt = -1 };
	for (size_t i = 0; i < ARRAY_LEN(schemes) && colon; i++) {
		size_t n = strlen(schemes[i].name);
		if ((size_t)(colon - text) == n && !strncasecmp(text, schemes[i].name, n))
			u->scheme = schemes[i].scheme;
	}
	if (!u->scheme)
		return err_say(why, ERR_ARG, text, "'%s' is not one of rtp:// srtp:// weir:// udp://", quote(text, colon ? (size_t)(colon - text) : strlen(text), q));
	const char *at = colon + 3;
	size_t n = strcspn(at, "?");
	/* One slash behind the port means nothing, as in other URLs. */
	size_t address_bytes = n && at[n - 1] == '/' ? n - 1 : n;
	if ((e = take_address(u, text, at, address_bytes, why)))
		return e;
	for (at += n; *at; at += n) {
		at++; /* '?' or '&' */
		n = strcspn(at, "&");
		if ((e = take_pair(u, text, at, n, &seen, why)))
			return e;
	}
	return ERR_OK;
}
