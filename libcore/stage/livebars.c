#include "stage/livebars.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS 50000000
#define FIRST_NS 500000000

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * UNITS_NS_PER_S + ts.tv_nsec;
}

/* As the C library would decide: the first of these that is set. */
static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);
		if (!value || !*value)
			continue;
		const char *set = strchr(value, '.');
		return set && (!strncasecmp(set, ".utf-8", 6) || !strncasecmp(set, ".utf8", 5));
	}
	return false;
}

void livebars_begin(struct livebars *l, const struct tool *t)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	memset(l, 0, sizeof(*l));
	if (t->quiet || !isatty(STDERR_FILENO) || !term || !*term || !strcmp(term, "dumb"))
		return;
	l->on = true;
	bars_init(&l->bars, (struct bars_style){ .utf8 = locale_is_utf8(), .colour = !no_colour || !*no_colour });
	l->start_ns = now_ns();
	l->next_ns = l->start_ns + FIRST_NS;
}

/* A terminal that does not take it loses a picture, not sound. */
static void write_all(const char *text, size_t n_bytes)
{
	while (n_bytes) {
		ssize_t n = write(STDERR_FILENO, text, n_bytes);
		if (n <= 0)
			return;
		text += n;
		n_bytes -= (size_t)n;
	}
}

void livebars_update(struct livebars *l, struct meter *const *meters, unsigned n_meters)
{
	struct winsize size = { 0 };
	if (!l->on)
		return;
	int64_t now = now_ns();
	if (now < l->next_ns)
		return;
	l->next_ns = now + EVERY_NS;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0 || size.ws_row == 0) {
		size.ws_col = 80;
		size.ws_row = 24;
	}
	double now_s = units_to_s(now - l->start_ns, UNITS_NS_PER_S, 1);
	if (bars_draw(&l->bars, meters, n_meters, size.ws_col, size.ws_row, now_s) == ERR_OK)
		write_all(l->bars.text, l->bars.n_bytes);
}

void livebars_end(struct livebars *l)
{
	if (l->on && bars_clear(&l->bars) == ERR_OK)
		write_all(l->bars.text, l->bars.n_bytes);
	bars_release(&l->bars);
	l->on = false;
}
