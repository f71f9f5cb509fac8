/*
 * Commands of the user that are run when something happens, by a thread of their own: whoever says that it happened
 * never waits, not even for fork(2).
 */
#ifndef LEG_HOOKS_H
#define LEG_HOOKS_H

#include "base/err.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define HOOKS_MAX_QUEUED 64u
#define HOOKS_MAX_RUNNING 256u      /* at one time: what is more waits in the queue */
#define HOOKS_MAX_FACTS 12u
#define HOOKS_FACT_BYTES 192u

/* What happened: the command and the environment that it finds, "WEIR_NAME=value". */
struct hooks_event {
	const char *command;         /* the user's, for sh -c; stays */
	unsigned n_facts;
	char facts[HOOKS_MAX_FACTS][HOOKS_FACT_BYTES];
};

struct hooks {
	struct hooks_event *events;  /* a ring */
	atomic_uint head, tail;      /* read, written */
	sem_t wake;
	pthread_t thread;
	atomic_bool ending;
	bool running;
	atomic_uint_fast64_t n_lost; /* that found the queue full, or could not be started */
	/* the thread's */
	pid_t running_pids[HOOKS_MAX_RUNNING];
	unsigned n_running;
};

/* *h is zero.  Role: control, allocates. */
enum err hooks_begin(struct hooks *h, struct err_why *why) WEIR_MUSTUSE;
/* Have it run; ignored if hooks_begin() was not called or command is NULL.  Does not wait.  Role: any, always the same thread. */
void hooks_run(struct hooks *h, const struct hooks_event *e);
/* What is queued is still run.  Commands that run are not waited for. */
void hooks_end(struct hooks *h);

#endif
