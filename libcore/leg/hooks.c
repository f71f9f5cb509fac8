#include "leg/hooks.h"

#include "rt/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* sh -c COMMAND, reading nothing, writing to our stderr: stdout is the stream. */
static void spawn(char *const argv[], char *const env[])
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t all, none;
	pid_t pid;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	/* One that cannot start is one that did nothing: the shell would say why, and there is none. */
	(void)posix_spawn(&pid, "/bin/sh", &files, &how, argv, env);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
}

static void start(const struct hooks_event *e)
{
	char *argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)e->command, NULL };
	size_t n = 0, n_env = 0;

	while (environ[n_env])
		n_env++;
	char **env = calloc(n_env + HOOKS_MAX_FACTS + 1, sizeof(*env));
	if (!env)
		return;
	for (unsigned i = 0; i < e->n_facts; i++)
		env[n++] = (char *)(uintptr_t)e->facts[i];
	memcpy(env + n, environ, n_env * sizeof(*env));
	spawn(argv, env);
	free(env);
}

static void *run(void *arg)
{
	struct hooks *h = arg;

	for (;;) {
		while (sem_wait(&h->wake) && errno == EINTR)
			;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		unsigned head = atomic_load(&h->head);
		if (head != atomic_load(&h->tail)) {
			start(&h->events[head % HOOKS_MAX_QUEUED]);
			atomic_store(&h->head, head + 1);
		} else if (atomic_load(&h->ending)) {
			return NULL;
		}
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
