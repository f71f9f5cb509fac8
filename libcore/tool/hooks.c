#include "tool/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* In the new process: sh -c COMMAND, reading nothing, writing to our stderr: stdout is the stream. */
static _Noreturn void become(char *const argv[], char *const env[])
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(126);
	for (int s = 1; s < NSIG; s++)
		sigaction(s, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve("/bin/sh", argv, env);
	_exit(127);
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
	if (fork() == 0)
		become(argv, env);
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
	sigset_t all, before;

	if (!(h->events = calloc(HOOKS_MAX_QUEUED, sizeof(*h->events))))
		return err_say(why, ERR_NOMEM, "commands", "%s", err_text(ERR_NOMEM));
	sem_init(&h->wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&h->thread, NULL, run, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		errno = error;
		return err_sys(why, "thread");
	}
	pthread_setname_np(h->thread, "hooks");
	h->running = true;
	return ERR_OK;
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
