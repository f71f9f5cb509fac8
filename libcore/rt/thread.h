/*
 * What a thread with a deadline asks of the system, where the user may: to run first, and to find its memory there.
 */
#ifndef RT_THREAD_H
#define RT_THREAD_H

#include "base/role.h"

#include <stdbool.h>
#include <stddef.h>

/* The calling thread takes the deadline role: its stack is touched, and it asks for SCHED_FIFO.  Returns: got it. */
bool thread_begin_deadline(void);

/* Keep n_bytes in memory.  Touches them in any case.  Returns: locked. */
bool thread_hold(void *bytes, size_t n_bytes);

#endif
