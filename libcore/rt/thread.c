#include "rt/thread.h"

#include <pthread.h>
#include <signal.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define STACK_BYTES (64u << 10) /* more than a callback uses */
#define PRIORITY 10             /* above everything ordinary, below what serves hardware */

enum err thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *user, struct err_why *why)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		errno = error;
		return err_sys(why, name);
	}
	pthread_setname_np(*thread, name);
	return ERR_OK;
}

static __attribute__((noinline)) void touch_stack(void)
{
	volatile uint8_t stack[STACK_BYTES];

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 0;
}

bool thread_begin_deadline(bool asks)
{
	struct sched_param param = { .sched_priority = PRIORITY };
	int policy = SCHED_OTHER;

	touch_stack();
	role_take(ROLE_DEADLINE);
	if (asks && pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0)
		return true;
	return pthread_getschedparam(pthread_self(), &policy, &param) == 0 && (policy == SCHED_FIFO || policy == SCHED_RR);
}

const char *thread_why_not_first(char *out, size_t out_bytes)
{
	struct rlimit limit = { 0, 0 };

	out[0] = '\0';
	if (getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_cur < PRIORITY)
		snprintf(out, out_bytes, "the limit of real-time priorities (RLIMIT_RTPRIO, ulimit -r) is %llu, and %d is needed", (unsigned long long)limit.rlim_cur,
			PRIORITY);
	return out;
}

bool thread_hold(void *bytes, size_t n_bytes)
{
	memset(bytes, 0, n_bytes);
	return mlock(bytes, n_bytes) == 0;
}

const char *thread_why_not_held(size_t n_bytes, char *out, size_t out_bytes)
{
	struct rlimit limit = { 0, 0 };

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		snprintf(out, out_bytes, "the system does not lock %zu KiB", n_bytes / 1024);
	else
		snprintf(out, out_bytes, "the limit of locked memory (RLIMIT_MEMLOCK, ulimit -l) is %llu KiB, and %zu KiB more are needed",
			(unsigned long long)limit.rlim_cur / 1024, n_bytes / 1024);
	return out;
}
