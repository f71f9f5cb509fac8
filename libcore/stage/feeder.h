/*
 * Inputs that come through pipes, taken from their writers as they come: so that one writer who waits for another never
 * waits for us.
 *
 * A thread stands between: for each input it moves what comes (splice: no copy) into a pipe of our own, which the caller
 * reads in any order and as blockingly as it likes.  Only when that pipe is full while another input has had nothing for
 * some time, so that the caller may be waiting for that one, are bytes queued: in memory after FEEDER_PATIENCE_MS, then in
 * a temporary file (stage/spool.h) after FEEDER_FILE_PATIENCE_MS.  So a writer that is merely slower than the others, as a
 * live one is, holds the others back instead.  When the file is full too and nothing has come for FEEDER_LIMIT_MS, the
 * wait would have no end: that is a failure, with the name of who is waited for.
 */
#ifndef STAGE_FEEDER_H
#define STAGE_FEEDER_H

#include "stage/spool.h"

#include <pthread.h>

#define FEEDER_PATIENCE_MS 20
#define FEEDER_FILE_PATIENCE_MS 1000
#define FEEDER_LIMIT_MS 5000

struct feeder_entry {
	char name[256];
	int in_fd;               /* where it comes from; −1 when it has ended */
	bool owns_in;
	int pipe_in, pipe_out;   /* our pipe: written here, read there; −1 when closed */
	struct spool queue;
	size_t head_done_bytes;  /* of the queue's first record */
	bool is_full;            /* the pipe took no more */
	bool no_splice;
	bool has_input;          /* what poll said */
	int64_t starving_since_ns; /* nothing in sight since then; 0: there is something */
};

struct feeder {
	struct feeder_entry *entries;
	unsigned n_entries;
	struct spool_store *store;
	void (*say)(void *user, const char *thing, const char *text); /* from the feeder's thread */
	void *say_user;
	bool said_file;
	int64_t now_ns;
	pthread_t thread;
	bool running;
	int wake[2];             /* to end the thread */
	atomic_int failed;       /* enum err; why holds then */
	struct err_why why;
};

/* Room for n inputs.  Zero is safe to release.  Returns: ERR_OK, ERR_NOMEM, ERR_SYS. */
enum err feeder_open(struct feeder *f, unsigned n, struct spool_store *store, struct err_why *why) WEIR_MUSTUSE;
/*
 * Take over input number n_entries: fd, which is closed at the end if owned.  *read_fd: what to read instead; it stays the
 * feeder's.
 */
enum err feeder_add(struct feeder *f, int fd, bool owned, const char *name, int *read_fd, struct err_why *why) WEIR_MUSTUSE;
enum err feeder_start(struct feeder *f, struct err_why *why) WEIR_MUSTUSE;
/* Ends the thread, closes everything: writers learn that nobody reads. */
void feeder_release(struct feeder *f);

#endif
