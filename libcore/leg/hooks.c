#include "leg/hooks.h"

#include "base/units.h"
#include "rt/clock.h"
#include "rt/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LOOK_NS (UNITS_NS_PER_S / 10) /* so often for those that have ended */

/* sh -c COMMAND, reading nothing, writing to our stderr: stdout is the stream.  Returns: its pid; −1: it does not start. */
static pid_t spawn(char *const argv[], char *const env[])
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t all, none;
	pid_t pid = -1;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (posix_spawn(&pid, "/bin/sh", &files, &how, argv, env))
		pid = -1;
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return pid;
}

/* Does a fact say what this one of the environment says?  A shell believes the last of two. */
static bool is_told(const struct hooks_event *e, const char *variable)
{
	for (unsigned i = 0; i < e->n_facts; i++) {
		size_t n = strcspn(e->facts[i], "=") + 1;

		if (!strncmp(e->facts[i], variable, n))
			return true;
	}
	return false;
}

static void start(struct hooks *h, const struct hooks_event *e)
{
	char *argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)e->command, NULL };
	size_t n = 0, n_env = 0;

	while (environ[n_env])
		n_env++;
	char **env = calloc(n_env + HOOKS_MAX_FACTS + 1, sizeof(*env));
	if (!env) {
		atomic_fetch_add(&h->n_lost, 1);
		return;
	}
	for (unsigned i = 0; i < e->n_facts; i++)
		env[n++] = (char *)(uintptr_t)e->facts[i];
	for (unsigned i = 0; i < n_env; i++) {
		if (!is_told(e, environ[i]))
			env[n++] = environ[i];
	}
	pid_t pid = spawn(argv, env);
	if (pid < 0)
		atomic_fetch_add(&h->n_lost, 1);
	else if (h->n_running < HOOKS_MAX_RUNNING)
		h->running_pids[h->n_running++] = pid;
	free(env);
}

/* Ours alone: others of this process may have children too. */
static void reap(struct hooks *h)
{
	for (unsigned i = 0; i < h->n_running;) {
		if (waitpid(h->running_pids[i], NULL, WNOHANG))
			h->running_pids[i] = h->running_pids[--h->n_running];
		else
			i++;
	}
}

static void wait_for_work(struct hooks *h)
{
	int64_t until_ns = clock_now_ns() + LOOK_NS;
	struct timespec until = { .tv_sec = until_ns / UNITS_NS_PER_S, .tv_nsec = until_ns % UNITS_NS_PER_S };

	if (h->n_running)
		(void)sem_clockwait(&h->wake, CLOCK_MONOTONIC, &until);
	else
		while (sem_wait(&h->wake) && errno == EINTR)
			;
}

static void *run(void *arg)
{
	struct hooks *h = arg;

	for (;;) {
		wait_for_work(h);
		reap(h);
		/* At the end nothing waits any more. */
		bool ending = atomic_load(&h->ending);
		unsigned head = atomic_load(&h->head);
		for (; head != atomic_load(&h->tail) && (ending || h->n_running < HOOKS_MAX_RUNNING); atomic_store(&h->head, ++head))
			start(h, &h->events[head % HOOKS_MAX_QUEUED]);
		if (ending)
			return NULL;
	}
}

enum err hooks_begin(struct hooks *h, struct err_why *why)
{
	if (!(h->events = calloc(HOOKS_MAX_QUEUED, sizeof(*h->events))))
		return err_say(why, ERR_NOMEM, "commands", "%s", err_text(ERR_NOMEM));
	sem_init(&h->wake, 0, 0);
	enum err e = thread_start(&h->thread, "hooks", run, h, why);
	h->running = !e;
	return e;
}

void hooks_run(struct hooks *h, const struct hooks_event *e)
{
	unsigned tail = atomic_load(&h->tail);

	if (!h->running || !e->command)
		return;
	if (tail - atomic_load(&h->head) == HOOKS_MAX_QUEUED) {
		atomic_fetch_add(&h->n_lost, 1);
		return;
	}
	h->events[tail % HOOKS_MAX_QUEUED] = *e;
	atomic_store(&h->tail, tail + 1);
	sem_post(&h->wake);
}

void hooks_end(struct hooks *h)
{
	if (h->running) {
		atomic_store(&h->ending, true);
		sem_post(&h->wake);
		pthread_join(h->thread, NULL);
		sem_destroy(&h->wake);
	}
	free(h->events);
	memset(h, 0, sizeof(*h));
}
