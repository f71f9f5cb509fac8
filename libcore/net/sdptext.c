#include "net/sdptext.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum err sdptext_bad(struct sdptext *p, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_say(p->why, ERR_FORMAT, p->name, "line %u: %s", p->line, what);
}

void sdptext_keep(char *to, size_t room, const char *from, size_t n)
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

size_t sdptext_word(const char **at, const char **begin)
{
	*at += strspn(*at, " \t");
	*begin = *at;
	*at += strcspn(*at, " \t");
	return (size_t)(*at - *begin);
}

bool sdptext_keep_word(const char **at, char *to, size_t room)
{
	const char *w;
	size_t n = sdptext_word(at, &w);

	if (n == 0 || n >= room)
		return false;
	memcpy(to, w, n);
	to[n] = '\0';
	return true;
}

bool sdptext_number(const char **at, unsigned long high, unsigned long *v)
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

bool sdptext_decimal(const char *text, double high, double *v)
{
	const char *at = text;
	unsigned long whole = 0, digits = 0;
	double scale = 1, fraction = 0;

	if (!sdptext_number(&at, (unsigned long)high, &whole))
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
	return *at == '\0' && *v <= high;
}
