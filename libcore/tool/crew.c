#include "tool/crew.h"

#include "base/role.h"
#include "base/units.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 64u

void *crew_slot_at(struct crew *c, unsigned i)
{
	return c->slots + i * c->slot_bytes;
}

/* Has a slot before the k-th of the given ones the same lane, and is not done? */
static bool is_behind(const struct crew *c, unsigned k)
{
	const void *lane = c->lanes[(c->oldest + k) % c->n_slots];

	for (unsigned i = 0; i < k; i++) {
		unsigned at = (c->oldest + i) % c->n_slots;
		if (c->lanes[at] == lane && c->states[at] != CREW_DONE)
			return true;
	}
	return false;
}

/* The oldest slot that can be begun, or −1. */
static int find_work(const struct crew *c)
{
	for (unsigned k = 0; k < c->n_used; k++) {
		unsigned at = (c->oldest + k) % c->n_slots;
		if (c->states[at] == CREW_GIVEN && !is_behind(c, k))
			return (int)at;
	}
	return -1;
}

static void *crew_main(void *arg)
{
	struct crew *c = arg;
	int at;

	role_take(ROLE_IO);
	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		if ((at = find_work(c)) < 0) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		c->states[at] = CREW_RUNNING;
		pthread_mutex_unlock(&c->lock);
		c->run(crew_slot_at(c, (unsigned)at));
		pthread_mutex_lock(&c->lock);
		c->states[at] = CREW_DONE;
		pthread_cond_signal(&c->done);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void *crew_slot(struct crew *c)
{
	return c->n_used < c->n_slots ? crew_slot_at(c, (c->oldest + c->n_used) % c->n_slots) : NULL;
}

void crew_give(struct crew *c, const void *lane)
{
	pthread_mutex_lock(&c->lock);
	unsigned at = (c->oldest + c->n_used) % c->n_slots;
	c->lanes[at] = lane;
	c->states[at] = CREW_GIVEN;
	c->n_used++;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
}

void *crew_take(struct crew *c, bool wait)
{
	void *slot = NULL;

	if (!c->n_used)
		return NULL;
	role_forbid(ROLE_DEADLINE);
	pthread_mutex_lock(&c->lock);
	while (wait && c->states[c->oldest] != CREW_DONE)
		pthread_cond_wait(&c->done, &c->lock);
	if (c->states[c->oldest] == CREW_DONE)
		slot = crew_slot_at(c, c->oldest);
	pthread_mutex_unlock(&c->lock);
	return slot;
}

void crew_free(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	c->states[c->oldest] = CREW_FREE;
	c->oldest = (c->oldest + 1) % c->n_slots;
	c->n_used--;
	pthread_mutex_unlock(&c->lock);
}

static enum err start_threads(struct crew *c, unsigned n_threads, const char *name, struct err_why *why)
{
	sigset_t all, before;
	int failed = 0;

	/* Signals are for the thread that reads and writes. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (c->n_threads < n_threads && !failed) {
		char thread_name[16];
		failed = pthread_create(&c->threads[c->n_threads], NULL, crew_main, c);
		if (failed)
			break;
		snprintf(thread_name, sizeof(thread_name), "%.12s-%u", name, (c->n_threads + 1) % 100);
		pthread_setname_np(c->threads[c->n_threads++], thread_name);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? err_say(why, ERR_NOMEM, name, "no thread: %s", strerror(failed)) : ERR_OK;
}

enum err crew_open(struct crew *c, unsigned n_threads, unsigned n_slots, size_t slot_bytes, crew_run_fn *run, const char *name,
	struct err_why *why)
{
	if (n_threads < 1 || n_threads > MAX_THREADS || n_slots < 1)
		return err_say(why, ERR_ARG, name, "%u threads: 1 to %u", n_threads, MAX_THREADS);
	*c = (struct crew){ .run = run, .n_slots = n_slots, .slot_bytes = (size_t)units_round_up(slot_bytes, 64) };
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->done, NULL);
	c->open = true;
	c->slots = aligned_alloc(64, n_slots * c->slot_bytes);
	if (c->slots) /* first of all: whoever cleans up after a failure looks into them */
		memset(c->slots, 0, n_slots * c->slot_bytes);
	c->states = calloc(n_slots, sizeof(*c->states));
	c->lanes = calloc(n_slots, sizeof(*c->lanes));
	c->threads = calloc(n_threads, sizeof(*c->threads));
	if (!c->slots || !c->states || !c->lanes || !c->threads)
		return err_say(why, ERR_NOMEM, name, "%s", err_text(ERR_NOMEM));
	return start_threads(c, n_threads, name, why);
}

void crew_stop(struct crew *c)
{
	if (!c->open)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	while (c->n_threads)
		pthread_join(c->threads[--c->n_threads], NULL);
}

void crew_release(struct crew *c)
{
	if (!c->open)
		return;
	crew_stop(c);
	pthread_cond_destroy(&c->done);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c->threads);
	free(c->lanes);
	free(c->states);
	free(c->slots);
	*c = (struct crew){ 0 };
}
