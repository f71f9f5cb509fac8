#include "stage/control.h"

#include "rt/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_BYTES 65536u

void control_lock(struct control *c)
{
	if (c->running)
		pthread_mutex_lock(&c->lock);
}

void control_unlock(struct control *c)
{
	if (c->running)
		pthread_mutex_unlock(&c->lock);
}

/* ---- opening ---- */

static enum err listen_at(struct control *c, struct err_why *why)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(c->path) >= sizeof(address.sun_path))
		return err_say(why, ERR_ARG, "--control", "'%s' is too long for a socket (%zu bytes at most)", c->path, sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, c->path, strlen(c->path) + 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return err_sys(why, c->path);
	bool bound = !bind(c->fd, (const struct sockaddr *)&address, sizeof(address));
	if (!bound && errno != EADDRINUSE)
		return err_sys(why, c->path);
	if (!bound) {
		/* Left behind by a mix that was killed?  Then nobody answers there. */
		int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool dead = other >= 0 && connect(other, (const struct sockaddr *)&address, sizeof(address)) && errno == ECONNREFUSED;
		if (other >= 0)
			close(other);
		if (!dead)
			return err_say(why, ERR_SYS, c->path, "is in use by another process");
		if (unlink(c->path) || bind(c->fd, (const struct sockaddr *)&address, sizeof(address)))
			return err_sys(why, c->path);
	}
	c->is_socket = true;
	return listen(c->fd, CONTROL_MAX_TALKERS) ? err_sys(why, c->path) : ERR_OK;
}

static enum err open_path(struct control *c, struct err_why *why)
{
	struct stat st;

	if (lstat(c->path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		if (stat(c->path, &st) || !S_ISFIFO(st.st_mode))
			return err_say(why, ERR_ARG, c->path, "exists and is neither a FIFO nor a socket (--control)");
		/* For writing, too: so it never ends, whoever comes and goes. */
		c->fd = open(c->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (c->fd < 0)
			return err_sys(why, c->path);
		c->talkers[0].fd = c->fd;
		return ERR_OK;
	}
	return listen_at(c, why);
}

/* ---- the thread ---- */

static void answer(struct control *c, const struct control_talker *t, char *reply)
{
	size_t n = strlen(reply);

	if (c->is_socket) {
		/* Who does not read his answers does not get them. */
		(void)!send(t->fd, reply, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	for (char *rest = reply, *line; (line = strtok_r(rest, "\n", &rest));)
		if (strcmp(line, "ok"))
			fprintf(stderr, "%s%s\n", c->prefix, line);
}

static void command(struct control *c, struct control_talker *t, char *reply)
{
	bool changes;

	pthread_mutex_lock(&c->lock);
	desk_command(c->desk, t->line, reply, REPLY_BYTES, &changes);
	pthread_mutex_unlock(&c->lock);
	if (changes)
		atomic_fetch_add(&c->changes, 1);
	answer(c, t, reply);
}

static void hang_up(struct control *c, struct control_talker *t)
{
	if (c->is_socket)
		close(t->fd);
	t->fd = -1;
	t->n_bytes = 0;
	t->is_too_long = false;
}

static void take_byte(struct control *c, struct control_talker *t, char byte, char *reply)
{
	if (byte == '\n') {
		t->line[t->n_bytes] = 0;
		if (t->is_too_long) {
			snprintf(reply, REPLY_BYTES, "error: the line is too long\n");
			answer(c, t, reply);
		} else {
			command(c, t, reply);
		}
		t->n_bytes = 0;
		t->is_too_long = false;
	} else if (t->n_bytes + 1 < sizeof(t->line)) {
		t->line[t->n_bytes++] = byte ? byte : ' ';
	} else {
		t->is_too_long = true;
	}
}

static void listen_to(struct control *c, struct control_talker *t, char *reply)
{
	char bytes[4096];
	ssize_t n = read(t->fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	for (ssize_t i = 0; i < n; i++)
		take_byte(c, t, bytes[i], reply);
	if (n > 0)
		return;
	/* A last line without its newline counts, too. */
	if (t->n_bytes)
		take_byte(c, t, '\n', reply);
	hang_up(c, t);
}

static void accept_one(struct control *c)
{
	int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (unsigned i = 0; fd >= 0 && i < CONTROL_MAX_TALKERS; i++)
		if (c->talkers[i].fd < 0) {
			c->talkers[i] = (struct control_talker){ .fd = fd };
			return;
		}
	if (fd >= 0)
		close(fd);
}

static void *run(void *arg)
{
	struct control *c = arg;
	struct pollfd p[CONTROL_MAX_TALKERS + 2];
	char reply[REPLY_BYTES];

	for (;;) {
		p[0] = (struct pollfd){ .fd = c->wake[0], .events = POLLIN };
		p[1] = (struct pollfd){ .fd = c->is_socket ? c->fd : -1, .events = POLLIN };
		for (unsigned i = 0; i < CONTROL_MAX_TALKERS; i++)
			p[i + 2] = (struct pollfd){ .fd = c->talkers[i].fd, .events = POLLIN };
		if (poll(p, CONTROL_MAX_TALKERS + 2, -1) < 0)
			continue;
		if (p[0].revents)
			return NULL;
		for (unsigned i = 0; i < CONTROL_MAX_TALKERS; i++)
			if (p[i + 2].revents)
				listen_to(c, &c->talkers[i], reply);
		if (p[1].revents)
			accept_one(c);
	}
}

enum err control_open(struct control *c, const char *path, struct desk *desk, const char *tool, struct err_why *why)
{
	enum err e;

	memset(c, 0, sizeof(*c));
	c->fd = c->wake[0] = c->wake[1] = -1;
	c->desk = desk;
	for (unsigned i = 0; i < CONTROL_MAX_TALKERS; i++)
		c->talkers[i].fd = -1;
	if (snprintf(c->path, sizeof(c->path), "%s", path) >= (int)sizeof(c->path))
		return err_say(why, ERR_ARG, "--control", "a path of more than %zu bytes", sizeof(c->path) - 1);
	snprintf(c->prefix, sizeof(c->prefix), "%s: control: ", tool);
	if ((e = open_path(c, why)))
		return e;
	if (pipe2(c->wake, O_CLOEXEC)) {
		c->wake[0] = c->wake[1] = -1;
		return err_sys(why, c->path);
	}
	pthread_mutex_init(&c->lock, NULL);
	e = thread_start(&c->thread, "control", run, c, why);
	c->running = !e;
	return e;
}

void control_release(struct control *c)
{
	if (!c->path[0])
		return;
	if (c->running) {
		close(c->wake[1]);
		c->wake[1] = -1;
		pthread_join(c->thread, NULL);
		pthread_mutex_destroy(&c->lock);
	}
	for (unsigned i = 0; i < CONTROL_MAX_TALKERS; i++)
		if (c->is_socket && c->talkers[i].fd >= 0)
			close(c->talkers[i].fd);
	if (c->fd >= 0)
		close(c->fd);
	if (c->is_socket)
		unlink(c->path);
	for (int k = 0; k < 2; k++)
		if (c->wake[k] >= 0)
			close(c->wake[k]);
	memset(c, 0, sizeof(*c));
}
