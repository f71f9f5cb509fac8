/*
 * Work for several threads that comes back in the order it was given.
 *
 * The caller fills a slot, gives it, and takes finished slots back, oldest first; so what it writes does not depend on how
 * many threads there are.  Slots of one lane (a track) are worked on one after another, in order, never two at a time.
 * There is a fixed number of slots: nothing is allocated per job.  One caller's thread.
 */
#ifndef TOOL_CREW_H
#define TOOL_CREW_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* What a thread does with a slot. */
typedef void crew_run_fn(void *slot);

enum crew_state { CREW_FREE, CREW_GIVEN, CREW_RUNNING, CREW_DONE };

struct crew {
	crew_run_fn *run;
	unsigned char *slots;     /* n_slots · slot_bytes, 64-byte aligned, zero at first */
	size_t slot_bytes;
	unsigned n_slots;
	enum crew_state *states;
	const void **lanes;
	unsigned oldest, n_used;  /* the caller's: slots from oldest on are given */
	pthread_t *threads;
	unsigned n_threads;
	pthread_mutex_t lock;     /* of states, lanes, oldest, n_used, ending */
	pthread_cond_t work, done;
	bool open, ending;
};

/*
 * Start n_threads (1…64), named NAME-1, NAME-2 … (name up to 12 bytes), that take no signals.  *c must be zero.
 * Role: control.  Returns: ERR_OK, ERR_NOMEM, ERR_SYS.
 */
enum err crew_open(struct crew *c, unsigned n_threads, unsigned n_slots, size_t slot_bytes, crew_run_fn *run, const char *name,
	struct err_why *why) WEIR_MUSTUSE;

/* A free slot to fill, as it was left when it was freed; NULL when all are in use: take one back first. */
void *crew_slot(struct crew *c);
/* Hand the slot that crew_slot() gave to the threads. */
void crew_give(struct crew *c, const void *lane);
/* The oldest slot given, when it is done; with `wait`, waits for it.  NULL: none is given, or it is not done. */
void *crew_take(struct crew *c, bool wait);
/* The slot that crew_take() gave is free again. */
void crew_free(struct crew *c);

/* Slot number i, for setting up and cleaning up what slots own; only while none is given. */
void *crew_slot_at(struct crew *c, unsigned i);

/* Waits for the threads to end; what was given and not begun is not done.  The slots' memory goes: what they own is the caller's. */
void crew_stop(struct crew *c);
void crew_release(struct crew *c);

#endif
