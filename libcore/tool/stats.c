#include "tool/stats.h"

#include "base/units.h"

#include "base/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 8192
#define MAX_THREADS 64

/* A line being put together: no heap, so that printing does not disturb the count it prints. */
struct line {
	char text[LINE_BYTES];
	size_t n;
};

static void add(struct line *l, const char *fmt, ...) WEIR_PRINTF(2, 3);
static void add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(l->text + l->n, sizeof(l->text) - l->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->n = l->n + (size_t)n < sizeof(l->text) ? l->n + (size_t)n : sizeof(l->text) - 1;
}

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * UNITS_NS_PER_S + ts.tv_nsec;
}

/* A small file of /proc as a string.  Returns: bytes read, 0 on failure. */
static size_t read_small(const char *path, char *out, size_t out_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, out_bytes - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static uint64_t rss_kib(void)
{
	char text[128];
	unsigned long long total, resident;

	if (!read_small("/proc/self/statm", text, sizeof(text)) || sscanf(text, "%llu %llu", &total, &resident) != 2)
		return 0;
	return resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

/* CPU time of one thread in clock ticks, and its name.  False if it has gone. */
static bool thread_times(const char *tid, char name[static 32], unsigned long *ticks)
{
	char path[64], text[512];
	unsigned long user, system;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	if (!read_small(path, text, sizeof(text)))
		return false;
	char *open_paren = strchr(text, '('), *close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren ||
		sscanf(close_paren + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return false;
	*close_paren = 0;
	snprintf(name, 32, "%.31s", open_paren + 1);
	*ticks = user + system;
	return true;
}

/* "threads": {name: cpu_ms}.  Read with getdents64, since opendir() takes memory; a name met twice gets a number. */
static void add_threads(struct line *l, uint64_t ticks_per_s)
{
	char names[MAX_THREADS][32];
	_Alignas(8) char entries[4096];
	unsigned n_names = 0;
	long n;
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	add(l, ", \"threads\": {");
	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			const char *entry = entries + at;
			unsigned short length;
			memcpy(&length, entry + 16, sizeof(length));
			at += length;
			const char *tid = entry + 19; /* d_name of struct linux_dirent64 */
			unsigned long ticks;
			char name[32];
			if (tid[0] == '.' || n_names == MAX_THREADS || !thread_times(tid, name, &ticks))
				continue;
			unsigned same = 0;
			for (unsigned i = 0; i < n_names; i++)
				same += !strcmp(names[i], name);
			memcpy(names[n_names++], name, sizeof(name));
			for (char *c = name; *c; c++)
				if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7F)
					*c = '_';
			char number[16] = "";
			if (same)
				snprintf(number, sizeof(number), "-%u", same + 1);
			add(l, "%s\"%s%s\": %" PRIu64, n_names > 1 ? ", " : "", name, number, ticks * 1000 / ticks_per_s);
		}
	if (fd >= 0)
		close(fd);
	add(l, "}");
}

static void print_line(struct stats *s, bool final)
{
	struct line l = { .n = 0 };
	int64_t now = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	double span_s = (double)(now - s->last_ns) / UNITS_NS_PER_S;
	double cpu_pct = span_s > 0 ? (double)(cpu - s->last_cpu_ns) / 1e7 / span_s : 0;

	if (final) { /* over the whole run */
		span_s = (double)(now - s->start_ns) / UNITS_NS_PER_S;
		cpu_pct = span_s > 0 ? (double)cpu / 1e7 / span_s : 0;
	}
	s->last_ns = now;
	s->last_cpu_ns = cpu;
#define GET(counter) atomic_load_explicit(&s->counter, memory_order_relaxed)
	add(&l, "{\"tool\": \"%s\", \"t_s\": %.6f, \"final\": %s", s->tool->name, (double)(now - s->start_ns) / UNITS_NS_PER_S, final ? "true" : "false");
	add(&l, ", \"packets_in\": %" PRIu64 ", \"packets_out\": %" PRIu64, GET(packets_in), GET(packets_out));
	add(&l, ", \"frames_in\": %" PRIu64 ", \"frames_out\": %" PRIu64, GET(frames_in), GET(frames_out));
	add(&l, ", \"gaps\": %" PRIu64 ", \"lost_frames\": %" PRIu64, GET(gaps), GET(lost_frames));
	add(&l, ", \"dropped_frames\": %" PRIu64 ", \"damaged_bytes\": %" PRIu64, GET(dropped_frames), GET(damaged_bytes));
	add(&l, ", \"cpu_pct\": %.3f, \"rss_kib\": %" PRIu64, cpu_pct, rss_kib());
	add(&l, ", \"allocs\": %" PRIu64 ", \"alloc_bytes\": %" PRIu64, heap_allocs(), heap_alloc_bytes());
	add(&l, ", \"late\": %" PRIu64 ", \"max_late_us\": %" PRIu64, GET(late), GET(max_late_us));
#undef GET
	for (unsigned i = 0; i < s->n_extra; i++)
		add(&l, ", \"%s\": %" PRIu64, s->extra[i].key, (uint64_t)atomic_load_explicit(s->extra[i].value, memory_order_relaxed));
	add_threads(&l, s->ticks_per_s);
	add(&l, "}\n");
	if (s->fd == STDERR_FILENO)
		tool_clear_line(s->tool);
	for (size_t done = 0; done < l.n;) {
		ssize_t n = write(s->fd, l.text + done, l.n - done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break; /* numbers that cannot be shown are no reason to stop the work */
	}
}

static void *printer(void *arg)
{
	struct stats *s = arg;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		int64_t ns = next.tv_nsec + (int64_t)(s->tool->stats.value * UNITS_NS_PER_S);
		next.tv_sec += ns / UNITS_NS_PER_S;
		next.tv_nsec = ns % UNITS_NS_PER_S;
		while (!s->ending && pthread_cond_timedwait(&s->wake, &s->lock, &next) != ETIMEDOUT)
			;
		if (!s->ending)
			print_line(s, false);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void stats_key(struct stats *s, const char *key, const atomic_uint_fast64_t *value)
{
	if (s->n_extra < STATS_MAX_KEYS)
		s->extra[s->n_extra++] = (struct stats_key){ key, value };
}

enum err stats_begin(struct stats *s, struct tool *t, struct err_why *why)
{
	pthread_condattr_t monotonic;
	sigset_t all, old;

	s->tool = t;
	if (!t->stats.is_set)
		return ERR_OK;
	s->fd = STDERR_FILENO;
	if (t->stats_path) {
		s->fd = open(t->stats_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (s->fd < 0)
			return err_sys(why, t->stats_path);
	}
	s->start_ns = s->last_ns = clock_ns(CLOCK_MONOTONIC);
	s->last_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);

	/* Signals are for the working thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = pthread_create(&s->thread, NULL, printer, s);
	int failed = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed) {
		errno = failed;
		return err_sys(why, "statistics thread");
	}
	pthread_setname_np(s->thread, "stats");
	s->running = true;
	return ERR_OK;
}

void stats_end(struct stats *s)
{
	if (!s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	print_line(s, true);
	if (s->fd != STDERR_FILENO)
		close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	s->running = false;
}
