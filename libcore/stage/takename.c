#include "stage/takename.h"

#include "base/units.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What glibc's strftime knows, but for n and t, and the flags and modifiers that may stand in front. */
#define CONVERSIONS "aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ"
#define MODIFIERS "EO_-0^#"

struct text {
	char bytes[PATH_MAX];
	size_t n;
	bool overflow;
};

static void put(struct text *t, const char *bytes, size_t n)
{
	if (t->n + n >= sizeof(t->bytes)) {
		t->overflow = true;
		return;
	}
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

/* Length of the conversion that begins at the '%' here, 0 if it is none. */
static size_t conversion_length(const char *c)
{
	if (c[1] && strchr("tni%", c[1]))
		return 2;
	size_t n = 1 + strspn(c + 1, MODIFIERS);
	return c[n] && strchr(CONVERSIONS, c[n]) ? n + 1 : 0;
}

enum err takename_parse(struct takename *n, const char *pattern, struct err_why *why)
{
	*n = (struct takename){ .pattern = pattern };
	for (const char *c = pattern; (c = strchr(c, '%'));) {
		size_t length = conversion_length(c);
		if (!length)
			return err_say(why, ERR_ARG, pattern, "'%.2s' is no conversion: %%t track, %%n name, %%i piece, %%%% a percent sign, and strftime's",
				c);
		n->has_track |= c[1] == 't';
		n->has_name |= c[1] == 'n';
		n->has_piece |= c[1] == 'i';
		n->has_time |= !strchr("tni%", c[1]);
		c += length;
	}
	return ERR_OK;
}

static unsigned digits_of(unsigned n)
{
	unsigned digits = 1;
	while (n >= 10) {
		n /= 10;
		digits++;
	}
	return digits;
}

static void put_name(struct text *t, const struct takename_values *v)
{
	char number[32];
	const char *name = v->name;

	if (!name || !*name) {
		snprintf(number, sizeof(number), "track%u", v->track);
		name = number;
	}
	for (const char *c = name; *c; c++) {
		bool safe = *c != '/' && *c != '?' && (unsigned char)*c >= 0x20 && *c != 0x7F;
		if (c == name && (*c == '.' || *c == '-'))
			safe = false;
		put(t, safe ? c : "_", 1);
	}
}

static void put_time(struct text *t, const char *conversion, size_t length, int64_t utc_ns)
{
	char format[16], out[128];
	struct tm tm;
	time_t s = (time_t)(utc_ns / UNITS_NS_PER_S);

	if (length >= sizeof(format) || !localtime_r(&s, &tm))
		return;
	memcpy(format, conversion, length);
	format[length] = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	size_t n = strftime(out, sizeof(out), format, &tm);
#pragma GCC diagnostic pop
	for (size_t i = 0; i < n; i++)
		put(t, out[i] == '/' ? "-" : &out[i], 1);
}

static void put_conversion(struct text *t, const char *c, size_t length, const struct takename_values *v)
{
	char number[32];

	switch (c[1]) {
	case '%':
		put(t, "%", 1);
		return;
	case 'n':
		put_name(t, v);
		return;
	case 't':
		put(t, number, (size_t)snprintf(number, sizeof(number), "%0*u", (int)digits_of(v->n_tracks), v->track));
		return;
	case 'i':
		put(t, number, (size_t)snprintf(number, sizeof(number), "%03u", v->piece));
		return;
	}
	put_time(t, c, length, v->utc_ns);
}

/* "-001" in front of the ending of the last part of the path. */
static void put_variant(struct text *t, unsigned variant)
{
	char number[16];
	struct text ending = {0};
	size_t slash = t->n, dot;

	while (slash > 0 && t->bytes[slash - 1] != '/')
		slash--;
	for (dot = t->n; dot > slash && t->bytes[dot - 1] != '.'; dot--)
		;
	dot = dot > slash + 1 ? dot - 1 : t->n;
	put(&ending, t->bytes + dot, t->n - dot);
	t->n = dot;
	put(t, number, (size_t)snprintf(number, sizeof(number), "-%03u", variant));
	put(t, ending.bytes, ending.n);
}

enum err takename_make(const struct takename *n, const struct takename_values *v, char **path)
{
	struct text t = {0};

	for (const char *c = n->pattern; *c;) {
		size_t length = *c == '%' ? conversion_length(c) : 0;
		if (length)
			put_conversion(&t, c, length, v);
		else
			put(&t, c, 1);
		c += length ? length : 1;
	}
	if (v->variant)
		put_variant(&t, v->variant);
	if (t.overflow)
		return ERR_LIMIT;
	*path = strndup(t.bytes, t.n);
	return *path ? ERR_OK : ERR_NOMEM;
}
