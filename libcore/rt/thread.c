#include "rt/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES (64u << 10) /* more than a callback uses */
#define PRIORITY 10             /* above everything ordinary, below what serves hardware */

static __attribute__((noinline)) void touch_stack(void)
{
	volatile uint8_t stack[STACK_BYTES];

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 0;
}

bool thread_begin_deadline(void)
{
	struct sched_param param = { .sched_priority = PRIORITY };

	touch_stack();
	role_take(ROLE_DEADLINE);
	return pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0;
}

bool thread_hold(void *bytes, size_t n_bytes)
{
	memset(bytes, 0, n_bytes);
	return mlock(bytes, n_bytes) == 0;
}
