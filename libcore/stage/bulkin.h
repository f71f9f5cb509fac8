/*
 * The other end of a video's own pipe: a stream that is read on a thread of its own, its frames written where they are to go.
 */
#ifndef STAGE_BULKIN_H
#define STAGE_BULKIN_H

#include "tool/input.h"
#include "stage/split.h"

#include <pthread.h>

struct bulkin {
	struct input in;
	struct split split;
	int fd;
	const volatile sig_atomic_t *asked; /* the tool's stop, or NULL */
	volatile sig_atomic_t stop;         /* that, or ours */
	pthread_t thread;
	bool running;
	enum err failed;
	struct err_why why;
};

/* Begin to read fd (not owned); split says where its tracks go, opened here.  Returns: ERR_OK; ERR_SYS.  Role: control. */
enum err bulkin_start(struct bulkin *b, int fd, const struct split *split, const volatile sig_atomic_t *stop, struct err_why *why) WEIR_MUSTUSE;

/* The main stream failed: nobody waits for this one's own end any more.  Zero-safe. */
void bulkin_stop(struct bulkin *b);

/* Wait for its end.  Returns: ERR_OK; ERR_CUT: cut short or damaged; what failed. */
enum err bulkin_finish(struct bulkin *b, struct err_why *why) WEIR_MUSTUSE;

/* Zero-safe.  Waits for the thread. */
void bulkin_release(struct bulkin *b);

#endif
