#include "stage/feeder.h"

#include "base/units.h"
#include "rt/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PIPE_BYTES (256 << 10)
#define CHUNK_BYTES 65536u
#define LOOK_AGAIN_MS 5 /* a pipe that was read empty makes no event */

enum err feeder_open(struct feeder *f, unsigned n, struct spool_store *store, struct err_why *why)
{
	memset(f, 0, sizeof(*f));
	f->wake[0] = f->wake[1] = -1;
	f->store = store;
	f->entries = calloc(n, sizeof(*f->entries));
	if (!f->entries)
		return err_say(why, ERR_NOMEM, "inputs", "%s", err_text(ERR_NOMEM));
	if (pipe2(f->wake, O_CLOEXEC)) {
		f->wake[0] = f->wake[1] = -1;
		return err_sys(why, "inputs");
	}
	return ERR_OK;
}

enum err feeder_add(struct feeder *f, int fd, bool owned, const char *name, int *read_fd, struct err_why *why)
{
	struct feeder_entry *e = &f->entries[f->n_entries];
	int ends[2];

	memset(e, 0, sizeof(*e));
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->in_fd = fd;
	e->owns_in = owned;
	e->pipe_in = e->pipe_out = -1;
	e->queue.fd = -1;
	f->n_entries++;
	if (pipe2(ends, O_CLOEXEC))
		return err_sys(why, name);
	e->pipe_out = ends[0];
	e->pipe_in = ends[1];
	(void)fcntl(e->pipe_in, F_SETPIPE_SZ, PIPE_BYTES);
	if (fcntl(e->pipe_in, F_SETFL, O_NONBLOCK))
		return err_sys(why, name);
	if (spool_init(&e->queue, f->store))
		return err_say(why, ERR_NOMEM, name, "%s", err_text(ERR_NOMEM));
	*read_fd = e->pipe_out;
	return ERR_OK;
}

/* ---- the thread ---- */

static void close_in(struct feeder_entry *e)
{
	if (e->in_fd >= 0 && e->owns_in)
		close(e->in_fd);
	e->in_fd = -1;
}

static void close_pipe(struct feeder_entry *e)
{
	if (e->pipe_in >= 0)
		close(e->pipe_in);
	e->pipe_in = -1;
}

/* The input failed, or its reader went away: nothing more of it. */
static void give_up(struct feeder_entry *e)
{
	close_in(e);
	close_pipe(e);
	spool_release(&e->queue);
}

/* why is filled: whoever reads sees an end, and looks. */
static void fail(struct feeder *f, enum err e)
{
	atomic_store(&f->failed, (int)e);
	for (unsigned i = 0; i < f->n_entries; i++)
		close_pipe(&f->entries[i]);
}

static bool has_bytes(int fd)
{
	int n = 0;
	return ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

/* Nothing in sight for whoever may be waiting for this one: since when? */
static void note_starving(struct feeder *f, struct feeder_entry *e)
{
	bool starving = e->pipe_in >= 0 && e->in_fd >= 0 && !e->has_input && spool_is_empty(&e->queue) && !has_bytes(e->pipe_out);

	if (!starving)
		e->starving_since_ns = 0;
	else if (!e->starving_since_ns)
		e->starving_since_ns = f->now_ns;
}

/* The input, other than this one, that has been waited for longest. */
static const struct feeder_entry *waited_for(const struct feeder *f, const struct feeder_entry *than, int64_t *for_ms)
{
	const struct feeder_entry *longest = NULL;

	for (unsigned i = 0; i < f->n_entries; i++) {
		const struct feeder_entry *e = &f->entries[i];
		if (e != than && e->starving_since_ns && (!longest || e->starving_since_ns < longest->starving_since_ns))
			longest = e;
	}
	*for_ms = longest ? units_scale_down(f->now_ns - longest->starving_since_ns, 1000, UNITS_NS_PER_S) : 0;
	return longest;
}

/* May this one be read into its queue?  Fails when that is all over. */
static bool may_queue(struct feeder *f, const struct feeder_entry *e)
{
	int64_t for_ms;
	const struct feeder_entry *other = waited_for(f, e, &for_ms);

	if (!other)
		return false;
	if (spool_is_full(&e->queue, CHUNK_BYTES)) {
		if (for_ms >= FEEDER_LIMIT_MS && !atomic_load(&f->failed)) {
			err_say(&f->why, ERR_LIMIT, other->name, "nothing comes, and what came from %s meanwhile fills the spool of %llu bytes (--spool)",
				e->name, (unsigned long long)f->store->file_limit_bytes);
			fail(f, ERR_LIMIT);
		}
		return false;
	}
	return for_ms >= (spool_goes_to_file(&e->queue, CHUNK_BYTES) ? FEEDER_FILE_PATIENCE_MS : FEEDER_PATIENCE_MS);
}

/* Out of the queue into the pipe. */
static void drain(struct feeder *f, struct feeder_entry *e)
{
	uint8_t *record;
	size_t n_bytes;
	enum err error = ERR_OK;

	while (e->pipe_in >= 0 && (error = spool_peek(&e->queue, &record, &n_bytes)) == ERR_OK) {
		ssize_t n = write(e->pipe_in, record + e->head_done_bytes, n_bytes - e->head_done_bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			give_up(e);
			return;
		}
		e->head_done_bytes += (size_t)n;
		if (e->head_done_bytes == n_bytes) {
			spool_drop(&e->queue);
			e->head_done_bytes = 0;
		}
	}
	if (error == ERR_SYS)
		fail(f, err_sys(&f->why, e->name));
}

/* From the input into the queue, since another one is waited for. */
static void enqueue(struct feeder *f, struct feeder_entry *e, uint8_t *chunk)
{
	int64_t for_ms;
	const struct feeder_entry *other = waited_for(f, e, &for_ms);
	bool to_file = spool_goes_to_file(&e->queue, CHUNK_BYTES);
	ssize_t n = read(e->in_fd, chunk, CHUNK_BYTES);
	char text[400];

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		close_in(e);
		return;
	}
	enum err error = spool_put(&e->queue, NULL, 0, chunk, (size_t)n);
	if (error == ERR_SYS)
		fail(f, err_sys(&f->why, e->name));
	else if (error)
		fail(f, err_say(&f->why, error, e->name, "%s", err_text(error)));
	if (!error && to_file && !f->said_file && f->say && other) {
		f->said_file = true;
		snprintf(text, sizeof(text), "is waited for; what %s sends is kept in a temporary file", e->name);
		f->say(f->say_user, other->name, text);
	}
}

/* From the input into the pipe. */
static void move(struct feeder_entry *e, uint8_t *chunk)
{
	ssize_t n;

	if (!e->no_splice) {
		n = splice(e->in_fd, NULL, e->pipe_in, NULL, PIPE_BYTES, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (n == 0)
			close_in(e);
		if (n >= 0 || errno == EINTR)
			return;
		if (errno == EAGAIN) {
			e->is_full = has_bytes(e->in_fd);
			return;
		}
		if (errno == EPIPE) {
			give_up(e);
			return;
		}
		e->no_splice = true;
	}
	/* No more than certainly fits, so that nothing is left in the hand. */
	struct pollfd p = { .fd = e->pipe_in, .events = POLLOUT };
	if (poll(&p, 1, 0) != 1) {
		e->is_full = true;
		return;
	}
	n = read(e->in_fd, chunk, 4096);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		close_in(e);
	else if (write(e->pipe_in, chunk, (size_t)n) != n)
		give_up(e);
}

static void serve(struct feeder *f, struct feeder_entry *e, bool can_write, uint8_t *chunk)
{
	if (e->pipe_in < 0)
		return;
	if (can_write) {
		e->is_full = false;
		drain(f, e);
	}
	if (e->in_fd >= 0 && e->has_input && e->pipe_in >= 0) {
		bool queued = !spool_is_empty(&e->queue);
		if (!queued && !e->is_full)
			move(e, chunk);
		if (e->in_fd >= 0 && (queued || e->is_full) && may_queue(f, e))
			enqueue(f, e, chunk);
	}
	/* All of it is in the pipe: that is its end. */
	if (e->in_fd < 0 && spool_is_empty(&e->queue))
		close_pipe(e);
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UNITS_NS_PER_S + now.tv_nsec;
}

static void *run(void *arg)
{
	struct feeder *f = arg;
	struct pollfd *p = calloc(2 * (size_t)f->n_entries + 1, sizeof(*p));
	uint8_t *chunk = malloc(CHUNK_BYTES);

	while (p && chunk && !atomic_load(&f->failed)) {
		bool look_again = false;
		unsigned n_open = 0, n_holding = 0;
		for (unsigned i = 0; i < f->n_entries; i++)
			n_holding += f->entries[i].is_full || !spool_is_empty(&f->entries[i].queue);
		f->now_ns = now_ns();
		for (unsigned i = 0; i < f->n_entries; i++) {
			if (n_holding)
				note_starving(f, &f->entries[i]);
			else
				f->entries[i].starving_since_ns = 0;
		}
		for (unsigned i = 0; i < f->n_entries; i++) {
			struct feeder_entry *e = &f->entries[i];
			bool holds = e->is_full || !spool_is_empty(&e->queue);
			p[2 * i] = (struct pollfd){ .fd = e->pipe_in >= 0 ? e->in_fd : -1, .events = POLLIN };
			p[2 * i + 1] = (struct pollfd){ .fd = e->pipe_in, .events = holds ? POLLOUT : 0 };
			/* An input that may not be taken now would make poll come back at once. */
			if (holds && !may_queue(f, e)) {
				p[2 * i].fd = -1;
				look_again = true;
			}
			n_open += e->pipe_in >= 0;
		}
		p[2 * f->n_entries] = (struct pollfd){ .fd = f->wake[0], .events = POLLIN };
		if (!n_open)
			break;
		if (poll(p, 2 * (nfds_t)f->n_entries + 1, look_again ? LOOK_AGAIN_MS : -1) < 0)
			continue;
		if (p[2 * f->n_entries].revents)
			break;
		for (unsigned i = 0; i < f->n_entries; i++)
			f->entries[i].has_input = p[2 * i].revents != 0;
		for (unsigned i = 0; i < f->n_entries; i++) {
			struct feeder_entry *e = &f->entries[i];
			if (p[2 * i + 1].revents & POLLERR)
				give_up(e); /* its reader went away */
			else
				serve(f, e, p[2 * i + 1].revents & POLLOUT, chunk);
		}
	}
	free(p);
	free(chunk);
	for (unsigned i = 0; i < f->n_entries; i++)
		close_pipe(&f->entries[i]);
	return NULL;
}

enum err feeder_start(struct feeder *f, struct err_why *why)
{
	enum err e = thread_start(&f->thread, "feeder", run, f, why);
	f->running = !e;
	return e;
}

void feeder_release(struct feeder *f)
{
	if (f->running) {
		close(f->wake[1]);
		f->wake[1] = -1;
		pthread_join(f->thread, NULL);
	}
	for (unsigned i = 0; i < f->n_entries; i++) {
		struct feeder_entry *e = &f->entries[i];
		give_up(e);
		if (e->pipe_out >= 0)
			close(e->pipe_out);
	}
	for (int k = 0; k < 2; k++)
		if (f->entries && f->wake[k] >= 0)
			close(f->wake[k]);
	free(f->entries);
	memset(f, 0, sizeof(*f));
}
