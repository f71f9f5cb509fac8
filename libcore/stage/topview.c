#include "stage/topview.h"

#include "base/units.h"
#include "rt/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SUSPEND ('Z' & 0x1F)
#define LOOK_MS 100 /* for another size of the terminal */

/* ---- the table ---- */

enum column { PIPE, TOOL, PID, STATE, POSITION, CPU, RSS, TICKS, LATE, P999, LONGEST, RING, HIGH, DROPS, GAPS, ALLOCS, DRIFT, N_COLUMNS };

/* In order from left to right; of what does not fit, the highest `rank` is left out first. */
static const struct {
	const char *head;
	unsigned width, rank;
	bool left;
} columns[N_COLUMNS] = {
	[PIPE] = { "PIPE", 5, 3, true }, [TOOL] = { "TOOL", 8, 0, true }, [PID] = { "PID", 7, 1, false }, [STATE] = { "S", 1, 13, false },
	[POSITION] = { "POSITION", 9, 5, false }, [CPU] = { "CPU%", 5, 2, false }, [RSS] = { "RSS", 6, 6, false }, [TICKS] = { "TICKS", 8, 12, false },
	[LATE] = { "LATE", 6, 4, false }, [P999] = { "P99.9", 6, 9, false }, [LONGEST] = { "MAX", 6, 14, false }, [RING] = { "RING", 4, 8, false },
	[HIGH] = { "HIGH", 4, 15, false }, [DROPS] = { "DROPS", 7, 4, false }, [GAPS] = { "GAPS", 5, 7, false }, [ALLOCS] = { "ALLOC/s", 7, 10, false },
	[DRIFT] = { "DRIFT", 7, 11, false },
};

#define CELL_BYTES 32

/* "12.3M", "850", "4.0k": at most six characters. */
static void put_count(char out[static CELL_BYTES], uint64_t n)
{
	static const char units[] = " kMGTPE";
	double x = (double)n;
	unsigned u = 0;

	while (x >= (u ? 999.5 : 99999.5)) {
		x /= 1000;
		u++;
	}
	if (u)
		snprintf(out, CELL_BYTES, x < 9.95 ? "%.1f%c" : "%.0f%c", x, units[u]);
	else
		snprintf(out, CELL_BYTES, "%.0f", x);
}

static void put_time(char out[static CELL_BYTES], uint64_t ns)
{
	double us = (double)ns / 1000;

	if (us < 999.5)
		snprintf(out, CELL_BYTES, "%.0fus", us);
	else if (us < 999.5e3)
		snprintf(out, CELL_BYTES, us < 99.5e3 ? "%.1fms" : "%.0fms", us / 1e3);
	else
		snprintf(out, CELL_BYTES, "%.1fs", us / 1e6);
}

static void put_position(char out[static CELL_BYTES], int64_t us)
{
	double s = (double)us / 1e6;
	uint64_t whole = (uint64_t)s;

	if (whole >= 3600)
		snprintf(out, CELL_BYTES, "%" PRIu64 ":%02u:%02u", whole / 3600, (unsigned)(whole / 60 % 60), (unsigned)(whole % 60));
	else
		snprintf(out, CELL_BYTES, "%u:%02u.%u", (unsigned)(whole / 60), (unsigned)(whole % 60), (unsigned)((s - (double)whole) * 10));
}

static void put_memory(char out[static CELL_BYTES], uint64_t kib)
{
	if (kib < 10000)
		snprintf(out, CELL_BYTES, "%" PRIu64 "K", kib);
	else
		snprintf(out, CELL_BYTES, "%.1fM", (double)kib / 1024);
}

static void put_cell(char out[static CELL_BYTES], const struct toplist_row *r, enum column column)
{
	const struct publish_counters *c = &r->c;
	bool has_ring = c->flags & PUBLISH_HAS_RING;

	snprintf(out, CELL_BYTES, "-");
	switch (column) {
	case PIPE:
		snprintf(out, CELL_BYTES, "%u.%u", r->pipeline, r->stage);
		return;
	case TOOL:
		snprintf(out, CELL_BYTES, "%s", r->tool);
		return;
	case PID:
		snprintf(out, CELL_BYTES, "%d", r->pid);
		return;
	case STATE:
		snprintf(out, CELL_BYTES, "%c", r->state);
		return;
	case CPU:
		snprintf(out, CELL_BYTES, "%.1f", r->cpu_pct);
		return;
	case RSS:
		put_memory(out, r->rss_kib);
		return;
	default:
		break;
	}
	if (!r->has_counters)
		return;
	switch (column) {
	case POSITION:
		if (c->flags & PUBLISH_HAS_POSITION)
			put_position(out, c->position_us);
		break;
	case TICKS:
		if (c->ticks)
			put_count(out, c->ticks);
		break;
	case LATE:
		if (c->ticks || c->late)
			put_count(out, c->late);
		break;
	case P999:
		if (c->ticks)
			put_time(out, c->tick_p999_ns);
		break;
	case LONGEST:
		if (c->ticks)
			put_time(out, c->tick_max_ns);
		break;
	case RING:
		if (has_ring)
			snprintf(out, CELL_BYTES, "%" PRIu64 "%%", c->ring_pct);
		break;
	case HIGH:
		if (has_ring)
			snprintf(out, CELL_BYTES, "%" PRIu64 "%%", c->ring_high_pct);
		break;
	case DROPS:
		put_count(out, c->dropped_frames);
		break;
	case GAPS:
		put_count(out, c->gaps);
		break;
	case ALLOCS:
		put_count(out, (uint64_t)(r->allocs_per_s + 0.5));
		break;
	case DRIFT:
		if (c->flags & PUBLISH_HAS_DRIFT)
			snprintf(out, CELL_BYTES, "%+.1f", (double)c->drift_ppb / 1e3);
		break;
	default:
		break;
	}
}

/* Which columns fit. */
static void choose(unsigned width, bool shown[static N_COLUMNS])
{
	unsigned total = 0;

	for (unsigned i = 0; i < N_COLUMNS; i++) {
		shown[i] = true;
		total += columns[i].width + 1;
	}
	for (unsigned rank = 15; rank > 0 && total > width; rank--) {
		for (unsigned i = 0; i < N_COLUMNS && total > width; i++) {
			if (columns[i].rank != rank || !shown[i])
				continue;
			shown[i] = false;
			total -= columns[i].width + 1;
		}
	}
}

/* One line, never wider than `width`. */
static void put_line(FILE *to, const char cells[static N_COLUMNS][CELL_BYTES], const bool shown[static N_COLUMNS], unsigned width)
{
	char line[512];
	unsigned n = 0;

	for (unsigned i = 0; i < N_COLUMNS; i++) {
		if (shown[i] && n < sizeof(line) - 2 * CELL_BYTES)
			n += (unsigned)snprintf(line + n, sizeof(line) - n, columns[i].left ? "%s%-*.*s" : "%s%*.*s", n ? " " : "", (int)columns[i].width,
				CELL_BYTES - 1, cells[i]);
	}
	while (n && line[n - 1] == ' ')
		n--;
	fprintf(to, "%.*s", (int)(n < width ? n : width), line);
}

void topview_table(FILE *to, const struct toplist *l, unsigned width, unsigned rows, bool colour, const char *line_end)
{
	char cells[N_COLUMNS][CELL_BYTES];
	bool shown[N_COLUMNS];
	unsigned n = l->n_rows;

	choose(width, shown);
	for (unsigned i = 0; i < N_COLUMNS; i++)
		snprintf(cells[i], CELL_BYTES, "%s", columns[i].head);
	fputs(colour ? "\033[1m" : "", to);
	put_line(to, cells, shown, width);
	fprintf(to, "%s%s", colour ? "\033[m" : "", line_end);
	/* The heading, and a line that counts the rest. */
	if (rows && n + 1 > rows)
		n = rows > 2 ? rows - 2 : 0;
	for (unsigned i = 0; i < n; i++) {
		const struct toplist_row *r = &l->rows[i];
		bool stands_out = colour && (r->was_late || r->has_lost);

		for (unsigned k = 0; k < N_COLUMNS; k++)
			put_cell(cells[k], r, (enum column)k);
		fputs(stands_out ? "\033[31m" : "", to);
		put_line(to, cells, shown, width);
		fprintf(to, "%s%s", stands_out ? "\033[m" : "", line_end);
	}
	if (n < l->n_rows + l->n_more)
		fprintf(to, "%u more%s", l->n_rows + l->n_more - n, line_end);
}

/* ---- JSON ---- */

void topview_json(FILE *to, const struct toplist *l)
{
	fprintf(to, "{\"pipelines\": %u, \"not_shown\": %u, \"tools\": [", l->n_pipelines, l->n_more);
	for (unsigned i = 0; i < l->n_rows; i++) {
		const struct toplist_row *r = &l->rows[i];
		const struct publish_counters *c = &r->c;

		/* A tool's name is one of ours: letters. */
		fprintf(to, "%s{\"tool\": \"%s\", \"pid\": %d, \"pipeline\": %u, \"stage\": %u, \"reads_from\": %u, \"state\": \"%c\"", i ? ", " : "", r->tool, r->pid,
			r->pipeline, r->stage, r->n_before, r->state);
		fprintf(to, ", \"cpu_pct\": %.3f, \"rss_kib\": %" PRIu64 ", \"answers\": %s", r->cpu_pct, r->rss_kib, r->has_counters ? "true" : "false");
		if (r->has_counters) {
			fprintf(to, ", \"t_s\": %.6f, \"allocs\": %" PRIu64 ", \"allocs_per_s\": %.3f", (double)(c->now_ns - c->start_ns) / UNITS_NS_PER_S, c->allocs,
				r->allocs_per_s);
			fprintf(to, ", \"packets_in\": %" PRIu64 ", \"packets_out\": %" PRIu64 ", \"frames_in\": %" PRIu64 ", \"frames_out\": %" PRIu64, c->packets_in,
				c->packets_out, c->frames_in, c->frames_out);
			fprintf(to, ", \"gaps\": %" PRIu64 ", \"lost_frames\": %" PRIu64 ", \"dropped_frames\": %" PRIu64 ", \"damaged_bytes\": %" PRIu64, c->gaps,
				c->lost_frames, c->dropped_frames, c->damaged_bytes);
			fprintf(to, ", \"voluntary_switches\": %" PRIu64 ", \"involuntary_switches\": %" PRIu64, c->voluntary_switches, c->involuntary_switches);
			fprintf(to, ", \"ticks\": %" PRIu64 ", \"late\": %" PRIu64 ", \"tick_max_us\": %" PRIu64 ", \"tick_p999_us\": %" PRIu64, c->ticks, c->late,
				c->tick_max_ns / 1000, c->tick_p999_ns / 1000);
			if (c->flags & PUBLISH_HAS_POSITION)
				fprintf(to, ", \"position_s\": %.6f", (double)c->position_us / 1e6);
			if (c->flags & PUBLISH_HAS_RING)
				fprintf(to, ", \"ring_pct\": %" PRIu64 ", \"ring_low_pct\": %" PRIu64 ", \"ring_high_pct\": %" PRIu64, c->ring_pct, c->ring_low_pct,
					c->ring_high_pct);
			if (c->flags & PUBLISH_HAS_DRIFT)
				fprintf(to, ", \"drift_ppm\": %.3f", (double)c->drift_ppb / 1e3);
		}
		fprintf(to, "}");
	}
	fprintf(to, "]}\n");
}

/* ---- the terminal ---- */

static void size_of(unsigned *width, unsigned *rows)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row) {
		size.ws_col = 80;
		size.ws_row = 24;
	}
	*width = size.ws_col;
	*rows = size.ws_row;
}

void topview_begin(struct topview_screen *s)
{
	const char *no_colour = getenv("NO_COLOR");
	struct termios keys;

	*s = (struct topview_screen){ .taken = true, .colour = !no_colour || !*no_colour };
	s->has_keys = !tcgetattr(STDIN_FILENO, &s->before);
	if (s->has_keys) {
		keys = s->before;
		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		keys.c_cc[VMIN] = 0;
		keys.c_cc[VTIME] = 0;
		keys.c_cc[VSUSP] = _POSIX_VDISABLE; /* read as a key, so that the terminal is given back first */
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	}
	fputs("\033[?1049h\033[?25l", stdout);
	fflush(stdout);
}

void topview_draw(struct topview_screen *s, const struct toplist *l, double every_s)
{
	unsigned width, rows;
	char head[160], clock[16];
	time_t now = time(NULL);
	struct tm tm;

	size_of(&width, &rows);
	fputs(width != s->columns || rows != s->rows ? "\033[2J\033[H" : "\033[H", stdout);
	s->columns = width;
	s->rows = rows;
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	snprintf(head, sizeof(head), "weir top %s, %u tool%s in %u pipeline%s, every %g s, q quits", clock, l->n_rows, l->n_rows == 1 ? "" : "s", l->n_pipelines,
		l->n_pipelines == 1 ? "" : "s", every_s);
	/* Never into the last column nor below the last line: a terminal would scroll. */
	fprintf(stdout, "%.*s\033[K\r\n", (int)width - 1, head);
	if (rows > 3)
		topview_table(stdout, l, width - 1, rows - 2, s->colour, "\033[K\r\n");
	fputs("\033[J", stdout);
	fflush(stdout);
}

int topview_wait(struct topview_screen *s, int64_t until_ns, const volatile sig_atomic_t *stop)
{
	unsigned width, rows;
	char key;

	while (!*stop) {
		int64_t left_ms = (until_ns - clock_now_ns()) / (UNITS_NS_PER_S / 1000);
		struct pollfd p = { .fd = s->has_keys ? STDIN_FILENO : -1, .events = POLLIN };

		if (left_ms <= 0)
			break;
		if (poll(&p, 1, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS) == 1) {
			ssize_t n = read(STDIN_FILENO, &key, 1);
			if (n == 1 && key == SUSPEND) {
				topview_end(s);
				raise(SIGTSTP);
				topview_begin(s);
				break;
			}
			if (n == 1)
				return key;
			/* The terminal has gone. */
			if (n == 0 || p.revents & (POLLHUP | POLLERR))
				s->has_keys = false;
		}
		size_of(&width, &rows);
		if (width != s->columns || rows != s->rows)
			break;
	}
	return 0;
}

void topview_end(struct topview_screen *s)
{
	if (!s->taken)
		return;
	s->taken = false;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (s->has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
}
