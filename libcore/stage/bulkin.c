#include "stage/bulkin.h"

#include "base/role.h"
#include "rt/thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS 50 /* while nothing comes, it is looked so often whether anybody waits for more */

static enum err one_packet(struct bulkin *b, struct packet *p)
{
	if (p->type == PACKET_TRACK)
		return split_track(&b->split, input_track(&b->in, p->track), &b->in.reader.stream);
	return split_packet(&b->split, p);
}

/* Wait for bytes: no longer than until somebody wants an end, which no byte may tell. */
static enum err fill(struct bulkin *b)
{
	struct pollfd pfd = { .fd = b->fd, .events = POLLIN };

	while (!b->stop && poll(&pfd, 1, LOOK_MS) == 0)
		if (b->asked && *b->asked)
			b->stop = 1;
	return input_fill(&b->in);
}

static enum err pass_all(struct bulkin *b)
{
	struct packet p;
	enum err e;

	for (;;) {
		if (b->asked && *b->asked)
			b->stop = 1;
		e = input_next(&b->in, &p);
		if (e == ERR_OK)
			e = one_packet(b, &p);
		else if (e == ERR_AGAIN && !(e = split_flush(&b->split)))
			e = fill(b);
		if (e)
			return e;
	}
}

/* As it ended. */
static enum err end_all(struct bulkin *b, enum err e)
{
	enum packet_end_reason reason = input_end_reason(&b->in);
	char loss[200];
	enum err ended;

	if (e == ERR_END)
		e = ERR_OK;
	if (input_is_cut(&b->in))
		reason = PACKET_END_TRUNCATED;
	ended = split_end(&b->split, e ? PACKET_END_ERROR : reason);
	if (e || ended) {
		b->why = b->split.why.reason[0] ? b->split.why : b->in.why;
		return e ? e : ended;
	}
	if (reason != PACKET_END_TRUNCATED)
		return ERR_OK;
	input_describe_loss(&b->in, loss, sizeof(loss));
	return err_say(&b->why, ERR_CUT, b->in.name, "%s", loss);
}

static void *run(void *arg)
{
	struct bulkin *b = arg;
	const struct input_options o = {
		.reader = { .stop = &b->stop }, .source = { .stop = &b->stop }, .streams_only = true, .has_fd = true, .fd = b->fd,
	};
	char name[32];

	role_take(ROLE_IO);
	snprintf(name, sizeof(name), "<descriptor %d>", b->fd);
	b->failed = input_open(&b->in, name, &o, &b->why);
	if (!b->failed)
		b->failed = end_all(b, pass_all(b));
	return NULL;
}

enum err bulkin_start(struct bulkin *b, int fd, const struct split *split, const volatile sig_atomic_t *stop, struct err_why *why)
{
	enum err e;

	memset(b, 0, sizeof(*b));
	b->fd = fd;
	b->asked = stop;
	b->split = *split;
	b->in.fd = -1;
	if ((e = split_open(&b->split, why)))
		return e;
	e = thread_start(&b->thread, "bulk", run, b, why);
	b->running = !e;
	return e;
}

void bulkin_stop(struct bulkin *b)
{
	b->stop = 1;
}

enum err bulkin_finish(struct bulkin *b, struct err_why *why)
{
	if (!b->running)
		return ERR_OK;
	pthread_join(b->thread, NULL);
	b->running = false;
	if (b->failed)
		*why = b->why;
	return b->failed;
}

void bulkin_release(struct bulkin *b)
{
	struct err_why why;

	(void)!bulkin_finish(b, &why);
	if (b->split.tool || b->split.parts)
		split_release(&b->split);
	if (b->in.fd >= 0 && (b->in.is_stream || b->in.owns_fd))
		input_release(&b->in);
	memset(b, 0, sizeof(*b));
	b->in.fd = -1;
}
