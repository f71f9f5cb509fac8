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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 8192
#define LINE_BEGINS "{\"tool\": " /* every one of them */
#define MAX_THREADS 64
#define PAGE_EVERY_NS (UNITS_NS_PER_S / 4)

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

/* CPU time of one thread in milliseconds, and its name.  False if it has gone. */
static bool thread_times(const char *tid, uint64_t ticks_per_s, char name[static 32], double *cpu_ms)
{
	char path[64], text[512];
	unsigned long user, system;
	unsigned long long ns;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	if (!read_small(path, text, sizeof(text)))
		return false;
	char *open_paren = strchr(text, '('), *close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren ||
		sscanf(close_paren + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return false;
	*close_paren = 0;
	snprintf(name, 32, "%.31s", open_paren + 1);
	*cpu_ms = (double)(user + system) * 1000 / (double)ticks_per_s;
	/* The scheduler knows it to the nanosecond, where it was built to tell. */
	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	if (read_small(path, text, sizeof(text)) && sscanf(text, "%llu", &ns) == 1)
		*cpu_ms = (double)ns / 1e6;
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
			double cpu_ms;
			char name[32];
			if (tid[0] == '.' || n_names == MAX_THREADS || !thread_times(tid, ticks_per_s, name, &cpu_ms))
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
			add(l, "%s\"%s%s\": %.1f", n_names > 1 ? ", " : "", name, number, cpu_ms);
		}
	if (fd >= 0)
		close(fd);
	add(l, "}");
}

#define GET(counter) atomic_load_explicit(&s->counter, memory_order_relaxed)

/* Counters that nobody stores until they are wanted.  Safe in a signal handler of the main thread, under lock elsewhere. */
static void refresh(struct stats *s)
{
	stats_refresh *fn = atomic_load(&s->refresh);

	if (fn)
		fn(s->refresh_user);
}

static void sum_ticks(const struct stats *s, struct tick_sum *sum)
{
	*sum = (struct tick_sum){ .late = GET(late), .max_late_ns = GET(max_late_us) * 1000 };
	for (unsigned i = 0; i < s->n_ticks; i++)
		tick_add(sum, s->ticks[i]);
}

static void print_line(struct stats *s, bool final)
{
	struct line l = { .n = 0 };
	struct tick_sum ticks;
	struct rusage used = { 0 };
	int64_t now = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	double span_s = (double)(now - s->last_ns) / UNITS_NS_PER_S;
	double cpu_pct = span_s > 0 ? (double)(cpu - s->last_cpu_ns) / 1e7 / span_s : 0;

	if (final) { /* over the whole run */
		span_s = (double)(now - s->start_ns) / UNITS_NS_PER_S;
		cpu_pct = span_s > 0 ? (double)cpu / 1e7 / span_s : 0;
	}
	s->last_ns = now;
	s->last_cpu_ns = cpu;
	sum_ticks(s, &ticks);
	getrusage(RUSAGE_SELF, &used);
	add(&l, LINE_BEGINS "\"%s\", \"t_s\": %.6f, \"final\": %s", s->tool->name, (double)(now - s->start_ns) / UNITS_NS_PER_S, final ? "true" : "false");
	add(&l, ", \"position_s\": %.6f", (double)atomic_load_explicit(&s->tool->position_us, memory_order_relaxed) / 1e6);
	add(&l, ", \"packets_in\": %" PRIu64 ", \"packets_out\": %" PRIu64, GET(packets_in), GET(packets_out));
	add(&l, ", \"frames_in\": %" PRIu64 ", \"frames_out\": %" PRIu64, GET(frames_in), GET(frames_out));
	add(&l, ", \"gaps\": %" PRIu64 ", \"lost_frames\": %" PRIu64, GET(gaps), GET(lost_frames));
	add(&l, ", \"dropped_frames\": %" PRIu64 ", \"damaged_bytes\": %" PRIu64, GET(dropped_frames), GET(damaged_bytes));
	add(&l, ", \"cpu_pct\": %.3f, \"rss_kib\": %" PRIu64, cpu_pct, rss_kib());
	add(&l, ", \"allocs\": %" PRIu64 ", \"alloc_bytes\": %" PRIu64, heap_allocs(), heap_alloc_bytes());
	add(&l, ", \"voluntary_switches\": %ld, \"involuntary_switches\": %ld", used.ru_nvcsw, used.ru_nivcsw);
	add(&l, ", \"ticks\": %" PRIu64 ", \"late\": %" PRIu64 ", \"max_late_us\": %" PRIu64, ticks.n, ticks.late, ticks.max_late_ns / 1000);
	add(&l, ", \"tick_max_us\": %" PRIu64 ", \"tick_p999_us\": %" PRId64, ticks.max_ns / 1000, tick_quantile_ns(&ticks, 0.999) / 1000);
	if (GET(has_ring))
		add(&l, ", \"ring_pct\": %" PRIu64 ", \"ring_low_pct\": %" PRIu64 ", \"ring_high_pct\": %" PRIu64, GET(ring_pct), GET(ring_low_pct), GET(ring_high_pct));
	if (GET(has_drift))
		add(&l, ", \"drift_ppm\": %.3f", (double)GET(drift_ppb) / 1e3);
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

/* The page for `weir top`.  Safe in a signal handler. */
static void publish(struct stats *s)
{
	struct tick_sum ticks;
	struct publish_counters c = {
		.pid = getpid(), .start_ns = s->start_ns, .now_ns = clock_ns(CLOCK_MONOTONIC), .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.position_us = atomic_load_explicit(&s->tool->position_us, memory_order_relaxed), .drift_ppb = GET(drift_ppb),
		.packets_in = GET(packets_in), .packets_out = GET(packets_out), .frames_in = GET(frames_in), .frames_out = GET(frames_out), .gaps = GET(gaps),
		.lost_frames = GET(lost_frames), .dropped_frames = GET(dropped_frames), .damaged_bytes = GET(damaged_bytes), .allocs = heap_allocs(),
		.alloc_bytes = heap_alloc_bytes(), .ring_pct = GET(ring_pct), .ring_low_pct = GET(ring_low_pct), .ring_high_pct = GET(ring_high_pct),
	};

	struct rusage used = { 0 };

	if (!publish_make(&s->publish))
		return;
	getrusage(RUSAGE_SELF, &used);
	c.voluntary_switches = (uint64_t)used.ru_nvcsw;
	c.involuntary_switches = (uint64_t)used.ru_nivcsw;
	for (size_t i = 0; i + 1 < sizeof(c.tool) && s->tool->name[i]; i++)
		c.tool[i] = s->tool->name[i];
	c.flags = (GET(has_ring) ? PUBLISH_HAS_RING : 0) | (GET(has_drift) ? PUBLISH_HAS_DRIFT : 0) | (c.position_us ? PUBLISH_HAS_POSITION : 0);
	sum_ticks(s, &ticks);
	c.ticks = ticks.n;
	c.late = ticks.late;
	c.tick_max_ns = ticks.max_ns;
	c.tick_p999_ns = (uint64_t)tick_quantile_ns(&ticks, 0.999);
	publish_write(&s->publish, &c);
}
#undef GET

/* From now on somebody looks. */
static void look(struct stats *s)
{
	for (unsigned i = 0; i < s->n_ticks; i++)
		atomic_store_explicit(&s->ticks[i]->on, true, memory_order_relaxed);
	atomic_store_explicit(&s->on, true, memory_order_relaxed);
}

/* In the signal handler, on the main thread: the printer writes the page, or where there is none the handler itself. */
static void on_ask(void *user)
{
	struct stats *s = user;

	look(s);
	if (s->running) {
		atomic_store(&s->asked, true);
		sem_post(&s->wake);
		return;
	}
	refresh(s);
	publish(s);
}

static void *printer(void *arg)
{
	struct stats *s = arg;
	int64_t every_ns = s->tool->stats.is_set ? (int64_t)(s->tool->stats.value * UNITS_NS_PER_S) : INT64_MAX;
	int64_t next_line_ns = every_ns == INT64_MAX ? every_ns : clock_ns(CLOCK_MONOTONIC) + every_ns, next_page_ns = 0;
	bool unasked = s->unasked;

	while (!atomic_load(&s->ending)) {
		int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		bool page = atomic_exchange(&s->asked, false) || (unasked && now_ns >= next_page_ns), line = now_ns >= next_line_ns;
		bool due = atomic_exchange(&s->line_due, false) && s->tool->stats.is_set;

		if (page || line || due) {
			pthread_mutex_lock(&s->lock);
			refresh(s);
			pthread_mutex_unlock(&s->lock);
		}
		if (page) {
			publish(s);
			next_page_ns = now_ns + PAGE_EVERY_NS;
		}
		if (line || due)
			print_line(s, false);
		if (line)
			next_line_ns += every_ns;
		int64_t until_ns = unasked && next_page_ns < next_line_ns ? next_page_ns : next_line_ns;
		struct timespec until = { .tv_sec = until_ns / UNITS_NS_PER_S, .tv_nsec = until_ns % UNITS_NS_PER_S };
		(void)sem_clockwait(&s->wake, CLOCK_MONOTONIC, &until);
	}
	return NULL;
}

void stats_key(struct stats *s, const char *key, const atomic_uint_fast64_t *value)
{
	if (s->n_extra < STATS_MAX_KEYS)
		s->extra[s->n_extra++] = (struct stats_key){ key, value };
}

void stats_tick(struct stats *s, struct tick *t)
{
	if (s->n_ticks == STATS_MAX_TICKS)
		return;
	s->ticks[s->n_ticks] = t;
	atomic_store_explicit(&t->on, stats_on(s), memory_order_relaxed);
	/* Seen by the printer once it is whole. */
	atomic_store_explicit(&s->n_ticks, s->n_ticks + 1, memory_order_release);
}

void stats_watch(struct stats *s, stats_refresh *fn, void *user)
{
	if (s->running)
		pthread_mutex_lock(&s->lock);
	atomic_store(&s->refresh, NULL);
	s->refresh_user = user;
	atomic_store(&s->refresh, fn);
	if (s->running)
		pthread_mutex_unlock(&s->lock);
}

static bool is_wanted(const char *value)
{
	return value && *value && strcmp(value, "0") != 0;
}

/* A file that begins as our lines do, or holds nothing, may be written anew. */
static bool is_ours(const char *path)
{
	char begins[sizeof(LINE_BEGINS)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, begins, sizeof(begins) - 1);

	if (fd >= 0)
		close(fd);
	return n == 0 || (n > 0 && !strncmp(begins, LINE_BEGINS, sizeof(LINE_BEGINS) - 1));
}

/* The place of --stats-file.  The file that standard error goes to already is written to as it is. */
static enum err open_file(struct stats *s, const char *path, struct err_why *why)
{
	struct stat st, err_st;
	bool is_there = !stat(path, &st);

	if (is_there && !fstat(STDERR_FILENO, &err_st) && st.st_dev == err_st.st_dev && st.st_ino == err_st.st_ino)
		return ERR_OK;
	if (is_there && S_ISREG(st.st_mode) && st.st_size > 0 && !is_ours(path))
		return err_say(why, ERR_SYS, path, "exists, and holds something else than statistics: name another file");
	s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd >= 0)
		return ERR_OK;
	s->fd = STDERR_FILENO;
	return err_sys(why, path);
}

enum err stats_begin(struct stats *s, struct tool *t, struct err_why *why)
{
	sigset_t all, old;

	s->tool = t;
	s->start_ns = s->last_ns = clock_ns(CLOCK_MONOTONIC);
	s->last_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->unasked = is_wanted(getenv("WEIR_STATS"));
	if (t->stats.is_set || s->unasked)
		look(s);
	publish_begin(&s->publish, on_ask, s);
	if (!t->stats.is_set && !s->unasked)
		return ERR_OK;
	s->fd = STDERR_FILENO;
	enum err e = t->stats_path ? open_file(s, t->stats_path, why) : ERR_OK;
	if (e)
		return e;
	s->ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	pthread_mutex_init(&s->lock, NULL);
	sem_init(&s->wake, 0, 0);

	/* Signals are for the working thread; and there is no printer yet that could be asked. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = pthread_create(&s->thread, NULL, printer, s);
	int failed = errno;
	if (!failed)
		pthread_setname_np(s->thread, "stats");
	s->running = !failed;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed) {
		errno = failed;
		return err_sys(why, "statistics thread");
	}
	return ERR_OK;
}

void stats_now(struct stats *s)
{
	if (!s->running)
		return;
	atomic_store(&s->line_due, true);
	sem_post(&s->wake);
}

void stats_end(struct stats *s)
{
	if (s->running) {
		atomic_store(&s->ending, true);
		sem_post(&s->wake);
		pthread_join(s->thread, NULL);
	}
	publish_end(&s->publish);
	if (!s->running)
		return;
	s->running = false;
	refresh(s);
	if (s->tool->stats.is_set)
		print_line(s, true);
	if (s->fd != STDERR_FILENO)
		close(s->fd);
	sem_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
}
