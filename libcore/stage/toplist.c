#include "stage/toplist.h"

#include "base/role.h"
#include "base/units.h"
#include "rt/clock.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_NS (50 * UNITS_NS_PER_S / 1000)
#define LOOK_NS (UNITS_NS_PER_S / 1000)
#define MAX_NOTES_BYTES 4096u

/* ---- what /proc tells of one process ---- */

/* A file of /proc/PID as a string.  Returns: bytes read, 0 on failure. */
static size_t read_file(const struct toplist *l, int32_t pid, const char *name, char *out, size_t out_bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	int fd = openat(l->proc_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, out_bytes - 1);
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* State, CPU time and when it began: fields 3, 14, 15 and 22 of proc(5); the name in front of them may hold anything. */
static bool read_stat(const struct toplist *l, int32_t pid, char *state, uint64_t *cpu_ticks, uint64_t *start_ticks)
{
	char text[1024];
	unsigned long long user, system, start;

	if (!read_file(l, pid, "stat", text, sizeof(text)))
		return false;
	const char *behind = strrchr(text, ')');
	if (!behind || sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu", state, &user, &system, &start) != 4)
		return false;
	*cpu_ticks = user + system;
	*start_ticks = start;
	return true;
}

static uint64_t status_number(const char *text, const char *key, int base)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, base) : 0;
}

/* Does the executable carry the note, with a page of a version that we can read? */
static bool has_note(const char *notes, size_t n_bytes, size_t align)
{
	const size_t up = align == 8 ? 7 : 3;

	for (size_t at = 0; n_bytes - at >= sizeof(ElfW(Nhdr));) {
		ElfW(Nhdr) h;
		uint32_t version;
		size_t left = n_bytes - at;

		memcpy(&h, notes + at, sizeof(h));
		size_t name_at = sizeof(h), value_at = (name_at + h.n_namesz + 3) & ~(size_t)3;
		if (h.n_namesz > left || h.n_descsz > left || value_at > left || value_at + h.n_descsz > left)
			return false;
		if (h.n_type == PUBLISH_NOTE_TYPE && h.n_namesz == sizeof(PUBLISH_NOTE_NAME) && !memcmp(notes + at + name_at, PUBLISH_NOTE_NAME, h.n_namesz) &&
			h.n_descsz == sizeof(version)) {
			memcpy(&version, notes + at + value_at, sizeof(version));
			return version == PUBLISH_VERSION;
		}
		size_t next = (value_at + h.n_descsz + up) & ~up;
		if (next > left)
			return false;
		at += next;
	}
	return false;
}

static bool is_ours(const struct toplist *l, int32_t pid)
{
	char path[64], notes[MAX_NOTES_BYTES];
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	bool found = false;

	snprintf(path, sizeof(path), "%d/exe", pid);
	int fd = openat(l->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_phentsize != sizeof(part))
		goto out;
	for (unsigned i = 0; i < head.e_phnum && i < 64 && !found; i++) {
		if (pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + i * sizeof(part))) != (ssize_t)sizeof(part))
			break;
		if (part.p_type != PT_NOTE || part.p_filesz > sizeof(notes) || pread(fd, notes, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
			continue;
		found = has_note(notes, part.p_filesz, part.p_align);
	}
out:
	close(fd);
	return found;
}

/* Its pipes, and the page where it publishes. */
static void read_descriptors(const struct toplist *l, struct toplist_row *r)
{
	char path[64], target[64];
	struct dirent *entry;

	r->n_pipes = 0;
	snprintf(path, sizeof(path), "%d/fd", r->pid);
	int dir_fd = openat(l->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	if (!dir) {
		if (dir_fd >= 0)
			close(dir_fd);
		return;
	}
	while ((entry = readdir(dir))) {
		struct stat link, st;

		/* The link itself tells by its permissions how the descriptor was opened. */
		if (entry->d_name[0] == '.' || fstatat(dir_fd, entry->d_name, &link, AT_SYMLINK_NOFOLLOW) || fstatat(dir_fd, entry->d_name, &st, 0))
			continue;
		if (S_ISFIFO(st.st_mode) && r->n_pipes < TOPLIST_MAX_PIPES) {
			bool writes = link.st_mode & S_IWUSR;
			/* Where messages go is no part of a pipeline. */
			if (!writes || strcmp(entry->d_name, "2"))
				r->pipes[r->n_pipes++] = (struct toplist_pipe){ .dev = st.st_dev, .ino = st.st_ino, .writes = writes };
		}
		if (r->page || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct publish_page))
			continue;
		ssize_t n = readlinkat(dir_fd, entry->d_name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strncmp(target, "/memfd:" PUBLISH_NAME, strlen("/memfd:" PUBLISH_NAME)))
			continue;
		int fd = openat(dir_fd, entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) {
			void *page = mmap(NULL, sizeof(struct publish_page), PROT_READ, MAP_SHARED, fd, 0);
			r->page = page == MAP_FAILED ? NULL : page;
		}
		if (fd >= 0)
			close(fd);
	}
	closedir(dir);
}

/* ---- the order ---- */

static bool feeds(const struct toplist_row *a, const struct toplist_row *b)
{
	for (unsigned i = 0; i < a->n_pipes; i++) {
		for (unsigned k = 0; a->pipes[i].writes && k < b->n_pipes; k++) {
			if (!b->pipes[k].writes && a->pipes[i].ino == b->pipes[k].ino && a->pipes[i].dev == b->pipes[k].dev)
				return true;
		}
	}
	return false;
}

static int by_age(const void *x, const void *y)
{
	const struct toplist_row *a = x, *b = y;

	if (a->start_ticks != b->start_ticks)
		return a->start_ticks < b->start_ticks ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static int by_place(const void *x, const void *y)
{
	const struct toplist_row *a = x, *b = y;

	if (a->pipeline != b->pipeline)
		return a->pipeline < b->pipeline ? -1 : 1;
	return (a->stage > b->stage) - (a->stage < b->stage);
}

/* Everything that hangs together with row i. */
static void mark_pipeline(struct toplist_row *rows, unsigned n, unsigned first, unsigned pipeline)
{
	bool more = true;

	rows[first].pipeline = pipeline;
	while (more) {
		more = false;
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0; rows[i].pipeline == pipeline && k < n; k++) {
				if (rows[k].pipeline || !(feeds(&rows[i], &rows[k]) || feeds(&rows[k], &rows[i])))
					continue;
				rows[k].pipeline = pipeline;
				more = true;
			}
		}
	}
}

/* One after the other whose writers all have their place; in a ring, where there is no such one, the oldest. */
static void number_stages(struct toplist_row *rows, unsigned n, unsigned pipeline)
{
	unsigned stage = 0, left = 0;

	for (unsigned i = 0; i < n; i++)
		left += rows[i].pipeline == pipeline;
	while (left--) {
		struct toplist_row *next = NULL, *oldest = NULL;

		for (unsigned i = 0; i < n && !next; i++) {
			bool waits = false;
			if (rows[i].pipeline != pipeline || rows[i].stage)
				continue;
			oldest = oldest ? oldest : &rows[i];
			for (unsigned k = 0; k < n && !waits; k++)
				waits = k != i && rows[k].pipeline == pipeline && !rows[k].stage && feeds(&rows[k], &rows[i]);
			next = waits ? NULL : &rows[i];
		}
		next = next ? next : oldest;
		next->stage = ++stage;
	}
}

void toplist_sort(struct toplist_row *rows, unsigned n, unsigned *n_pipelines)
{
	*n_pipelines = 0;
	qsort(rows, n, sizeof(*rows), by_age);
	for (unsigned i = 0; i < n; i++)
		rows[i].pipeline = rows[i].stage = rows[i].n_before = 0;
	for (unsigned i = 0; i < n; i++) {
		if (!rows[i].pipeline) {
			mark_pipeline(rows, n, i, ++*n_pipelines);
			number_stages(rows, n, *n_pipelines);
		}
		for (unsigned k = 0; k < n; k++)
			rows[i].n_before += k != i && feeds(&rows[k], &rows[i]);
	}
	qsort(rows, n, sizeof(*rows), by_place);
}

/* ---- the list ---- */

static void drop_row(struct toplist_row *r)
{
	if (r->page)
		munmap((void *)(uintptr_t)r->page, sizeof(*r->page));
	r->page = NULL;
}

/* Names of our tools are letters; a copy that somebody renamed is not to write on the terminal what it likes. */
static void set_name(struct toplist_row *r, const char *name)
{
	size_t n = 0;

	for (; name[n] && name[n] != '\n' && n + 1 < sizeof(r->tool); n++)
		r->tool[n] = (name[n] >= 'a' && name[n] <= 'z') || (name[n] >= '0' && name[n] <= '9') ? name[n] : '_';
	r->tool[n] = '\0';
}

static struct toplist_row *find_row(struct toplist *l, int32_t pid, uint64_t start_ticks)
{
	for (unsigned i = 0; i < l->n_rows; i++) {
		if (l->rows[i].pid == pid && l->rows[i].start_ticks == start_ticks)
			return &l->rows[i];
	}
	return NULL;
}

/* Does the process catch the signal that asks, and is it one of ours? */
static bool is_tool(const struct toplist *l, int32_t pid, const char *status)
{
	return status_number(status, "SigCgt:", 16) >> (SIGUSR1 - 1) & 1 && is_ours(l, pid);
}

static void take_process(struct toplist *l, int32_t pid)
{
	char state, status[4096], name[64];
	uint64_t cpu_ticks, start_ticks;
	struct toplist_row *r;

	if (pid == getpid() || !read_stat(l, pid, &state, &cpu_ticks, &start_ticks) || state == 'Z' || !read_file(l, pid, "status", status, sizeof(status)))
		return;
	if (!(r = find_row(l, pid, start_ticks))) {
		if (!is_tool(l, pid, status) || !read_file(l, pid, "comm", name, sizeof(name)) || !strcmp(name, "top\n"))
			return;
		if (l->n_rows == TOPLIST_MAX_ROWS) {
			l->n_more++;
			return;
		}
		r = &l->rows[l->n_rows++];
		*r = (struct toplist_row){ .pid = pid, .start_ticks = start_ticks, .is_new = true };
		set_name(r, name);
	}
	r->is_seen = true;
	r->state = state;
	r->rss_kib = status_number(status, "VmRSS:", 10);
	int64_t now_ns = clock_now_ns();
	if (!r->is_new && !r->has_counters && now_ns > r->cpu_read_ns)
		r->cpu_pct = (double)(cpu_ticks - r->cpu_ticks) / (double)l->ticks_per_s * 1e11 / (double)(now_ns - r->cpu_read_ns);
	r->cpu_ticks = cpu_ticks;
	r->cpu_read_ns = now_ns;
}

static enum err look_at_all(struct toplist *l, struct err_why *why)
{
	struct dirent *entry;
	struct stat st;
	uid_t mine = geteuid();
	DIR *dir = opendir("/proc");

	if (!dir)
		return err_sys(why, "/proc");
	while ((entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0 || pid > INT32_MAX || fstatat(l->proc_fd, entry->d_name, &st, 0) || st.st_uid != mine)
			continue;
		take_process(l, (int32_t)pid);
	}
	closedir(dir);
	return ERR_OK;
}

/* Rows of processes that ended go. */
static void forget_ended(struct toplist *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->n_rows; i++) {
		if (l->rows[i].is_seen)
			l->rows[n++] = l->rows[i];
		else
			drop_row(&l->rows[i]);
	}
	l->n_rows = n;
}

static bool is_stopped(const struct toplist_row *r)
{
	return r->state == 'T' || r->state == 't';
}

/* To its main thread: no other thread of a tool is ever disturbed. */
static void ask(const struct toplist_row *r)
{
	(void)syscall(SYS_tgkill, r->pid, r->pid, SIGUSR1);
}

static bool has_answered(const struct toplist_row *r, int64_t since_ns)
{
	struct publish_counters c;

	return r->page && publish_read(r->page, &c) && c.now_ns >= since_ns;
}

static void wait_for_answers(struct toplist *l, int64_t since_ns)
{
	bool waits = true;

	while (waits && clock_now_ns() < since_ns + ANSWER_NS) {
		struct timespec little = { .tv_nsec = LOOK_NS };

		waits = false;
		for (unsigned i = 0; i < l->n_rows; i++) {
			struct toplist_row *r = &l->rows[i];
			if (is_stopped(r))
				continue;
			if (!r->page)
				read_descriptors(l, r);
			waits |= !has_answered(r, since_ns);
		}
		if (waits)
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &little, NULL);
	}
}

static void read_counters(struct toplist_row *r)
{
	struct publish_counters c;

	if (!r->page || !publish_read(r->page, &c))
		return;
	const struct publish_counters *b = &r->before;
	double span_s = (double)(c.now_ns - b->now_ns) / UNITS_NS_PER_S;
	/* At the first look, since it began. */
	if (!r->has_counters)
		span_s = (double)(c.now_ns - c.start_ns) / UNITS_NS_PER_S;
	r->was_late = r->has_counters && c.late > b->late;
	r->has_lost = r->has_counters && (c.dropped_frames > b->dropped_frames || c.gaps > b->gaps);
	if (span_s > 0) {
		r->cpu_pct = (double)(c.cpu_ns - b->cpu_ns) / 1e7 / span_s;
		r->allocs_per_s = r->has_counters ? (double)(c.allocs - b->allocs) / span_s : 0;
	} else if (is_stopped(r)) {
		r->cpu_pct = r->allocs_per_s = 0;
	}
	r->has_counters = true;
	r->c = r->before = c;
	set_name(r, c.tool);
}

enum err toplist_init(struct toplist *l, struct err_why *why)
{
	*l = (struct toplist){ .ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK) };
	l->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->proc_fd < 0)
		return err_sys(why, "/proc");
	l->rows = calloc(TOPLIST_MAX_ROWS, sizeof(*l->rows));
	return l->rows ? ERR_OK : err_say(why, ERR_NOMEM, "list", "%s", err_text(ERR_NOMEM));
}

enum err toplist_update(struct toplist *l, struct err_why *why)
{
	enum err e;

	role_forbid(ROLE_DEADLINE);
	l->n_more = 0;
	for (unsigned i = 0; i < l->n_rows; i++)
		l->rows[i].is_seen = l->rows[i].is_new = false;
	if ((e = look_at_all(l, why)))
		return e;
	forget_ended(l);
	int64_t since_ns = clock_now_ns();
	for (unsigned i = 0; i < l->n_rows; i++)
		ask(&l->rows[i]);
	wait_for_answers(l, since_ns);
	for (unsigned i = 0; i < l->n_rows; i++) {
		read_descriptors(l, &l->rows[i]);
		read_counters(&l->rows[i]);
	}
	toplist_sort(l->rows, l->n_rows, &l->n_pipelines);
	return ERR_OK;
}

void toplist_release(struct toplist *l)
{
	for (unsigned i = 0; i < l->n_rows; i++)
		drop_row(&l->rows[i]);
	free(l->rows);
	l->rows = NULL;
	l->n_rows = 0;
	if (l->proc_fd > 0)
		close(l->proc_fd);
	l->proc_fd = -1;
}
