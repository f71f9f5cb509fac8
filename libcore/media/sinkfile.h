/*
 * The file under a sink: its names, and bytes that go to it in few, large writes.
 *
 * While it is written the file stands as NAME.part; sinkfile_close() gives it its name, and never over a file that came to
 * stand there meanwhile.  NAME.part is locked as long as it is written: nobody replaces it, not with force either.  FIFOs, devices
 * and "-" are written as they are; "-" that is an empty file can be gone back in.
 *
 * Bytes are queued: small ones are copied, large ones are kept by reference until the next flush or settle.  A failed write is
 * latched: size_bytes then says what is in the file, so that its owner can make something whole of it.
 */
#ifndef MEDIA_SINKFILE_H
#define MEDIA_SINKFILE_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SINKFILE_MAX_IOV 64
#define SINKFILE_BUFFER_BYTES (256u << 10)
#define SINKFILE_FLUSH_BYTES (256u << 10) /* a queue of this length goes out on its own */
#define SINKFILE_SETTLE_BYTES (64u << 10) /* a settle writes from here on, and copies below */

struct sinkfile_args {
	bool force;                        /* an existing file may be replaced */
	bool is_text;                      /* a terminal may have it */
	bool wait;                         /* wait for the reader of a FIFO; else ERR_AGAIN */
	int stdout_fd;                     /* what "-" means */
	const volatile sig_atomic_t *stop; /* ends that wait; NULL never */
};

struct sinkfile {
	int fd;                   /* −1 when closed */
	bool owns_fd;             /* false for "-" */
	bool is_regular;          /* can be gone back in */
	bool is_part;             /* stands under part_path */
	bool force;
	char *path, *part_path;   /* owned */
	uint64_t size_bytes;      /* in the file */
	uint64_t queued_bytes;    /* behind them, not written yet */
	uint64_t n_writes;
	struct iovec iov[SINKFILE_MAX_IOV];
	int n_iov;
	uint8_t *buffer;          /* SINKFILE_BUFFER_BYTES */
	size_t buffer_used_bytes;
	enum err failed;          /* latched */
	struct err_why why;
};

/*
 * Open path for writing.  *f must be zero or released.
 * Returns: ERR_OK; ERR_SYS (it exists and force is not set, an unfinished NAME.part stands there or is being written, a folder, what the system
 * says); ERR_ARG (a terminal); ERR_AGAIN (a FIFO that nobody reads, wait not set); ERR_END (stopped while waiting);
 * ERR_NOMEM.  Role: io, blocks.
 */
enum err sinkfile_open(struct sinkfile *f, const char *path, const struct sinkfile_args *args, struct err_why *why) WEIR_MUSTUSE;

/* Would sinkfile_open() refuse this name?  Looks, and makes nothing.  Returns: ERR_OK, ERR_SYS.  Role: io. */
enum err sinkfile_check(const char *path, bool force, struct err_why *why) WEIR_MUSTUSE;

/* Queue bytes by reference: they stay where they are until the next flush or settle. */
enum err sinkfile_put(struct sinkfile *f, const void *bytes, size_t n_bytes) WEIR_MUSTUSE;

/* Queue a copy. */
enum err sinkfile_put_copy(struct sinkfile *f, const void *bytes, size_t n_bytes) WEIR_MUSTUSE;

/* Room for n_bytes ≤ SINKFILE_BUFFER_BYTES in the buffer, flushing first if it must; then say how many were used.  NULL if the flush failed. */
uint8_t *sinkfile_reserve(struct sinkfile *f, size_t n_bytes);
void sinkfile_commit(struct sinkfile *f, size_t n_bytes);

/*
 * What was queued by reference is about to go: write it, or, where it is little and goes to a regular file, keep a copy.
 * A pipe gets everything: somebody may be listening.
 */
enum err sinkfile_settle(struct sinkfile *f) WEIR_MUSTUSE;

/* Write out all that is queued.  Returns: ERR_OK, ERR_GONE, ERR_SYS.  Role: io, blocks. */
enum err sinkfile_flush(struct sinkfile *f) WEIR_MUSTUSE;

/* Write over bytes that are in the file, by one pwrite(2).  Regular files only; works after a failed append too. */
enum err sinkfile_rewrite(struct sinkfile *f, uint64_t offset_bytes, const void *bytes, size_t n_bytes) WEIR_MUSTUSE;

/* Cut the file to size_bytes, dropping what is queued.  Regular files only. */
enum err sinkfile_truncate(struct sinkfile *f, uint64_t size_bytes) WEIR_MUSTUSE;

/*
 * Close.  complete: give it its final name (what is queued must have been flushed).  Else it stays NAME.part, unless nothing is in it.
 * Returns: ERR_OK; ERR_SYS where close(2) or the renaming failed, or the name was taken meanwhile (NAME.part stays), or NAME.part is no longer
 * the file that was written.
 */
enum err sinkfile_close(struct sinkfile *f, bool complete, struct err_why *why) WEIR_MUSTUSE;

/* Close and take away what was begun: nothing of worth is in it yet. */
void sinkfile_discard(struct sinkfile *f);

/* Close without ceremony: NAME.part stays. */
void sinkfile_release(struct sinkfile *f);

/* Where the bytes are now: the path, or the .part path.  For messages. */
const char *sinkfile_place(const struct sinkfile *f);

#endif
