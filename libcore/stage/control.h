/*
 * --control: a desk that is worked while the mix runs, through a FIFO or a Unix socket.
 *
 * A thread reads commands, a line each, and sets the desk under a lock; the mix looks at a counter once a block.  A path where
 * nothing is becomes a socket, removed at the end; several may talk to it at once, and each gets its answers.  A FIFO that
 * exists is read; its answers go to stderr.
 */
#ifndef STAGE_CONTROL_H
#define STAGE_CONTROL_H

#include "stage/desk.h"

#include <pthread.h>
#include <stdatomic.h>

#define CONTROL_MAX_TALKERS 16

struct control_talker {
	int fd;                /* −1 free */
	char line[1024];
	size_t n_bytes;
	bool is_too_long;      /* the rest of this line is thrown away */
};

struct control {
	struct desk *desk;
	pthread_mutex_t lock;  /* of the desk */
	atomic_uint changes;   /* counts up */
	char path[256];
	char prefix[64];       /* in front of answers on stderr */
	int fd;                /* a FIFO, or a socket that listens */
	bool is_socket;
	int wake[2];
	struct control_talker talkers[CONTROL_MAX_TALKERS]; /* the first is a FIFO's */
	pthread_t thread;
	bool running;
};

/* desk stays the caller's, who locks it from here on.  Returns: ERR_OK; ERR_ARG, ERR_SYS with *why.  Role: control. */
enum err control_open(struct control *c, const char *path, struct desk *desk, const char *tool, struct err_why *why) WEIR_MUSTUSE;
void control_lock(struct control *c);
void control_unlock(struct control *c);
/* Safe on a zero struct. */
void control_release(struct control *c);

#endif
