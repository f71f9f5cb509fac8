/*
 * Threads: how one is started, and what one with a deadline asks of the system, where the user may: to run first, and to find
 * its memory there.
 */
#ifndef RT_THREAD_H
#define RT_THREAD_H

#include "base/err.h"
#include "base/role.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Start a thread for i/o, with a name of at most 15 characters.  Signals are left to the thread that works.
 * Returns: ERR_OK; ERR_SYS, ERR_NOMEM with *why about `name`.  Role: control.
 */
enum err thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *user, struct err_why *why) WEIR_MUSTUSE;

/*
 * The calling thread takes the deadline role, and its stack is touched.  asks: it wants SCHED_FIFO, too; without, the
 * thread belongs to a library that sees to that.  Returns: it runs before everything ordinary (SCHED_FIFO or SCHED_RR).
 */
bool thread_begin_deadline(bool asks);
/* Why a thread that asks does not run first, for people: what limit there is.  "" if the limits are not the reason. */
const char *thread_why_not_first(char *out, size_t out_bytes);

/* Keep n_bytes in memory.  Touches them in any case.  Returns: locked. */
bool thread_hold(void *bytes, size_t n_bytes);
/* Why n_bytes more are not locked, for people. */
const char *thread_why_not_held(size_t n_bytes, char *out, size_t out_bytes);

#endif
