#include "tool/progress.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS 100000000

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * UNITS_NS_PER_S + ts.tv_nsec;
}

static bool is_pipe(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

void progress_begin(struct progress *p, struct tool *t)
{
	*p = (struct progress){ .on = isatty(STDERR_FILENO) && !t->quiet && !is_pipe(STDOUT_FILENO), .tool = t };
	if (p->on) {
		/* Short work shows nothing. */
		p->start_ns = now_ns();
		p->next_ns = p->start_ns + 5 * EVERY_NS;
	}
}

/* "1:02:03" or "2:03.4" */
static const char *clock_text(double s, char out[static 32])
{
	if (s >= 3600)
		snprintf(out, 32, "%d:%02d:%02d", (int)(s / 3600), (int)fmod(s / 60, 60), (int)fmod(s, 60));
	else
		snprintf(out, 32, "%d:%04.1f", (int)(s / 60), fmod(floor(s * 10) / 10, 60));
	return out;
}

void progress_update(struct progress *p, double position_s, double total_s)
{
	char line[160], position[32], total[32], left[32];
	struct winsize size = {0};

	if (p->tool)
		atomic_store_explicit(&p->tool->position_us, (long long)(position_s * 1e6), memory_order_relaxed);
	if (!p->on)
		return;
	int64_t now = now_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + EVERY_NS;
	double elapsed_s = (double)(now - p->start_ns) / UNITS_NS_PER_S;
	double speed = position_s / elapsed_s;
	int n = snprintf(line, sizeof(line), "%s: %s", p->tool->name, clock_text(position_s, position));
	if (total_s > 0)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " of %s (%.0f %%)", clock_text(total_s, total),
			fmin(100, 100 * position_s / total_s));
	n += snprintf(line + n, sizeof(line) - (size_t)n, ", %.*fx", speed < 10 ? 1 : 0, speed);
	if (total_s > position_s && speed > 0)
		n += snprintf(line + n, sizeof(line) - (size_t)n, ", %s left", clock_text((total_s - position_s) / speed, left));
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
		size.ws_col = 80;
	fprintf(stderr, "\r%.*s\033[K", size.ws_col - 1, line);
	fflush(stderr);
	p->tool->line_shown = true;
}

void progress_end(struct progress *p)
{
	if (p->on)
		tool_clear_line(p->tool);
	p->on = false;
}
