#include "media/sinkfile.h"

#include "base/role.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is there something under this name, the broken symbolic link included? */
static bool is_taken(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

static enum err part_name(const char *path, char **part)
{
	if (asprintf(part, "%s.part", path) < 0) {
		*part = NULL;
		return ERR_NOMEM;
	}
	return ERR_OK;
}

/* *as_is: a FIFO or device, which is opened under its own name. */
static enum err check_name(const char *path, bool force, bool *as_is, struct err_why *why)
{
	struct stat st;

	*as_is = false;
	if (!*path)
		return err_say(why, ERR_SYS, "''", "an empty file name");
	if (stat(path, &st) < 0) {
		if (errno != ENOENT)
			return err_sys(why, path);
		if (is_taken(path) && !force)
			return err_say(why, ERR_SYS, path, "is a symbolic link to nothing; -y replaces it");
		return ERR_OK;
	}
	if (S_ISDIR(st.st_mode))
		return err_say(why, ERR_SYS, path, "is a folder; name a file in it");
	if (S_ISSOCK(st.st_mode))
		return err_say(why, ERR_SYS, path, "is a socket; write to a file, a FIFO or a device");
	*as_is = !S_ISREG(st.st_mode);
	if (!*as_is && !force)
		return err_say(why, ERR_SYS, path, "exists; -y overwrites it");
	return ERR_OK;
}

static enum err say_locked(const char *part, struct err_why *why)
{
	return err_say(why, ERR_SYS, part, "is being written by another program");
}

static enum err say_unfinished(const char *part, struct err_why *why)
{
	return err_say(why, ERR_SYS, part, "exists: a recording that was not finished; it plays: rename it to keep it, or -y overwrites it");
}

/* The lock of whoever writes a .part: on all of it, and gone with the last descriptor, so that a crash leaves none. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

/* false: somebody else holds it.  A file system without locks does without. */
static bool take_lock(int fd)
{
	struct flock lock = whole_file();
	return fcntl(fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

static bool is_locked(int fd)
{
	struct flock lock = whole_file();
	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/*
 * May the .part that stands there, if one does, be replaced?  *fd is open on it then, or −1 where there is nothing (*stands is
 * false), or nothing that could be written (a broken link).  Looks, and takes no lock.
 */
static enum err open_stale(const char *part, bool force, bool *stands, int *fd, struct err_why *why)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat st;

	*fd = -1;
	*stands = false;
	if (lstat(part, &st) < 0)
		return errno == ENOENT ? ERR_OK : err_sys(why, part);
	*stands = true;
	if (!S_ISREG(st.st_mode))
		return force ? ERR_OK : say_unfinished(part, why);
	/* Only what is open for writing can be locked; to look, reading is enough. */
	*fd = open(part, O_RDWR | flags);
	if (*fd < 0)
		*fd = open(part, O_RDONLY | flags);
	*stands = *fd >= 0;
	if (*fd < 0)
		return errno == ENOENT ? ERR_OK : err_sys(why, part);
	bool locked = is_locked(*fd);
	if (!locked && force)
		return ERR_OK;
	close(*fd);
	*fd = -1;
	return locked ? say_locked(part, why) : say_unfinished(part, why);
}

enum err sinkfile_check(const char *path, bool force, struct err_why *why)
{
	int fd;
	bool as_is, stands;
	char *part = NULL;

	if (!strcmp(path, "-"))
		return ERR_OK;
	enum err e = check_name(path, force, &as_is, why);
	if (e || as_is)
		return e;
	if ((e = part_name(path, &part)))
		return err_say(why, e, path, "%s", err_text(e));
	e = open_stale(part, force, &stands, &fd, why);
	if (fd >= 0)
		close(fd);
	free(part);
	return e;
}

/* A FIFO: opened without waiting first, so that the caller can say what it waits for. */
static enum err open_as_is(struct sinkfile *f, const struct sinkfile_args *args)
{
	for (;;) {
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | (args->wait ? 0 : O_NONBLOCK));
		if (f->fd >= 0)
			break;
		if (errno == ENXIO && !args->wait)
			return err_say(&f->why, ERR_AGAIN, f->path, "waiting for a reader");
		if (errno != EINTR)
			return err_sys(&f->why, f->path);
		if (args->stop && *args->stop)
			return ERR_END;
	}
	int flags = fcntl(f->fd, F_GETFL);
	if (flags < 0 || fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return err_sys(&f->why, f->path);
	return ERR_OK;
}

/* Is what stands under a name the file that is open here? */
static bool is_same_file(int fd, const char *path)
{
	struct stat open_file, named;

	return fd >= 0 && fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 && open_file.st_dev == named.st_dev &&
		open_file.st_ino == named.st_ino;
}

/* Is what stands under the .part name still ours? */
static bool part_is_ours(const struct sinkfile *f)
{
	return is_same_file(f->fd, f->part_path);
}

/* Take away a .part that nobody writes, while it is locked: else a rival that does the same would lose its new one to us. */
static enum err remove_stale(struct sinkfile *f)
{
	int fd;
	bool stands;
	enum err e = open_stale(f->part_path, f->force, &stands, &fd, &f->why);

	if (e || !stands)
		return e;
	if (fd >= 0 && !take_lock(fd)) {
		e = say_locked(f->part_path, &f->why);
	} else if (fd < 0 || is_same_file(fd, f->part_path)) {
		/* Else it got its name, or went, before it was locked. */
		if (unlink(f->part_path) < 0 && errno != ENOENT)
			e = err_sys(&f->why, f->part_path);
	}
	if (fd >= 0)
		close(fd);
	return e;
}

/* The .part file is always a new one: with force an older one is unlinked, never written into. */
static enum err open_part(struct sinkfile *f)
{
	enum err e = part_name(f->path, &f->part_path);
	if (e)
		return err_say(&f->why, e, f->path, "%s", err_text(e));
	if ((e = remove_stale(f)))
		return e;
	f->fd = open(f->part_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (f->fd < 0 && errno == EEXIST)
		return say_locked(f->part_path, &f->why);
	if (f->fd < 0)
		return err_sys(&f->why, f->part_path);
	/* A rival that came between took it for a stale one, and has the name. */
	if (!take_lock(f->fd) || !part_is_ours(f))
		return say_locked(f->part_path, &f->why);
	f->is_part = true;
	f->is_regular = true;
	return ERR_OK;
}

/*
 * stdout may be a regular file too.  When it is empty and we stand at its beginning it is gone back in as in one of our own; one
 * that others wrote to, or that only grows at its end, is written as a pipe is.
 */
static bool is_fresh_file(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_APPEND) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
		lseek(fd, 0, SEEK_CUR) == 0;
}

static enum err open_stdout(struct sinkfile *f, const struct sinkfile_args *args)
{
	f->fd = args->stdout_fd;
	f->owns_fd = false;
	if (fcntl(f->fd, F_GETFD) < 0)
		return err_sys(&f->why, "<stdout>");
	f->is_regular = is_fresh_file(f->fd);
	return ERR_OK;
}

static enum err open_any(struct sinkfile *f, const char *path, const struct sinkfile_args *args)
{
	bool as_is = false;

	f->path = strdup(path);
	f->buffer = malloc(SINKFILE_BUFFER_BYTES);
	if (!f->path || !f->buffer)
		return err_say(&f->why, ERR_NOMEM, path, "out of memory");
	enum err e = strcmp(path, "-") ? check_name(path, args->force, &as_is, &f->why) : open_stdout(f, args);
	if (!e && strcmp(path, "-"))
		e = as_is ? open_as_is(f, args) : open_part(f);
	if (!e && !args->is_text && isatty(f->fd))
		e = err_say(&f->why, ERR_ARG, sinkfile_place(f), "is a terminal; write to a file or a pipe");
	return e;
}

enum err sinkfile_open(struct sinkfile *f, const char *path, const struct sinkfile_args *args, struct err_why *why)
{
	role_forbid(ROLE_DEADLINE);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->owns_fd = true;
	f->force = args->force;
	enum err e = open_any(f, path, args);
	if (e) {
		if (why)
			*why = f->why;
		sinkfile_release(f);
	}
	return e;
}

const char *sinkfile_place(const struct sinkfile *f)
{
	if (f->is_part && f->part_path)
		return f->part_path;
	return !f->path ? "" : strcmp(f->path, "-") ? f->path : "<stdout>";
}

static enum err fail(struct sinkfile *f)
{
	f->failed = err_sys(&f->why, sinkfile_place(f));
	return f->failed;
}

/* Take n_bytes off the front of the queue. */
static void drop_front(struct sinkfile *f, struct iovec **v, int *n_v, size_t n_bytes)
{
	f->size_bytes += n_bytes;
	f->queued_bytes -= n_bytes;
	while (*n_v > 0 && n_bytes >= (*v)->iov_len) {
		n_bytes -= (*v)->iov_len;
		(*v)++;
		(*n_v)--;
	}
	if (n_bytes > 0) {
		(*v)->iov_base = (uint8_t *)(*v)->iov_base + n_bytes;
		(*v)->iov_len -= n_bytes;
	}
}

enum err sinkfile_flush(struct sinkfile *f)
{
	struct iovec *v = f->iov;
	int n_v = f->n_iov;

	role_forbid(ROLE_DEADLINE);
	while (!f->failed && n_v > 0) {
		ssize_t got = writev(f->fd, v, n_v);
		f->n_writes++;
		if (got >= 0) {
			drop_front(f, &v, &n_v, (size_t)got);
		} else if (errno == EAGAIN) {
			/* Somebody else's flag on a shared descriptor. */
			struct pollfd p = { .fd = f->fd, .events = POLLOUT };
			(void)poll(&p, 1, -1);
		} else if (errno != EINTR) {
			(void)fail(f);
		}
	}
	f->n_iov = 0;
	f->queued_bytes = 0;
	f->buffer_used_bytes = 0;
	return f->failed;
}

static enum err queue(struct sinkfile *f, const uint8_t *bytes, size_t n_bytes)
{
	struct iovec *last = f->n_iov > 0 ? &f->iov[f->n_iov - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == bytes)
		last->iov_len += n_bytes;
	else
		f->iov[f->n_iov++] = (struct iovec){ .iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes };
	f->queued_bytes += n_bytes;
	return ERR_OK;
}

/* Before something is queued: room in the list, and no more waiting than there should be. */
static enum err make_room(struct sinkfile *f)
{
	if (f->failed)
		return f->failed;
	if (f->n_iov == SINKFILE_MAX_IOV || f->queued_bytes >= SINKFILE_FLUSH_BYTES)
		return sinkfile_flush(f);
	return ERR_OK;
}

enum err sinkfile_put(struct sinkfile *f, const void *bytes, size_t n_bytes)
{
	enum err e = make_room(f);
	if (e || n_bytes == 0)
		return e;
	return queue(f, bytes, n_bytes);
}

uint8_t *sinkfile_reserve(struct sinkfile *f, size_t n_bytes)
{
	if (make_room(f))
		return NULL;
	if (f->buffer_used_bytes + n_bytes > SINKFILE_BUFFER_BYTES && sinkfile_flush(f))
		return NULL;
	return f->buffer + f->buffer_used_bytes;
}

void sinkfile_commit(struct sinkfile *f, size_t n_bytes)
{
	if (n_bytes == 0)
		return;
	(void)queue(f, f->buffer + f->buffer_used_bytes, n_bytes);
	f->buffer_used_bytes += n_bytes;
}

enum err sinkfile_put_copy(struct sinkfile *f, const void *bytes, size_t n_bytes)
{
	const uint8_t *p = bytes;

	while (n_bytes > 0) {
		size_t part = n_bytes < SINKFILE_BUFFER_BYTES ? n_bytes : SINKFILE_BUFFER_BYTES;
		uint8_t *room = sinkfile_reserve(f, part);
		if (!room)
			return f->failed;
		memcpy(room, p, part);
		sinkfile_commit(f, part);
		p += part;
		n_bytes -= part;
	}
	return f->failed;
}

static bool in_buffer(const struct sinkfile *f, const struct iovec *v)
{
	const uint8_t *p = v->iov_base;
	return p >= f->buffer && p < f->buffer + SINKFILE_BUFFER_BYTES;
}

enum err sinkfile_settle(struct sinkfile *f)
{
	if (f->failed)
		return f->failed;
	if (!f->is_regular)
		return sinkfile_flush(f);
	size_t by_reference_bytes = 0;
	for (int i = 0; i < f->n_iov; i++)
		by_reference_bytes += in_buffer(f, &f->iov[i]) ? 0 : f->iov[i].iov_len;
	if (by_reference_bytes == 0)
		return ERR_OK;
	if (f->queued_bytes >= SINKFILE_SETTLE_BYTES || f->buffer_used_bytes + by_reference_bytes > SINKFILE_BUFFER_BYTES)
		return sinkfile_flush(f);
	for (int i = 0; i < f->n_iov; i++) {
		if (in_buffer(f, &f->iov[i]))
			continue;
		uint8_t *copy = f->buffer + f->buffer_used_bytes;
		memcpy(copy, f->iov[i].iov_base, f->iov[i].iov_len);
		f->buffer_used_bytes += f->iov[i].iov_len;
		f->iov[i].iov_base = copy;
	}
	return ERR_OK;
}

enum err sinkfile_rewrite(struct sinkfile *f, uint64_t offset_bytes, const void *bytes, size_t n_bytes)
{
	const uint8_t *p = bytes;

	role_forbid(ROLE_DEADLINE);
	while (n_bytes > 0) {
		ssize_t got = pwrite(f->fd, p, n_bytes, (off_t)offset_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return f->failed ? f->failed : fail(f);
		p += got;
		offset_bytes += (uint64_t)got;
		n_bytes -= (size_t)got;
	}
	return ERR_OK;
}

enum err sinkfile_truncate(struct sinkfile *f, uint64_t size_bytes)
{
	f->n_iov = 0;
	f->queued_bytes = 0;
	f->buffer_used_bytes = 0;
	if (ftruncate(f->fd, (off_t)size_bytes) < 0 || lseek(f->fd, (off_t)size_bytes, SEEK_SET) < 0)
		return f->failed ? f->failed : fail(f);
	f->size_bytes = size_bytes;
	return ERR_OK;
}

/* NAME.part becomes NAME, over nothing unless force. */
static enum err give_name(struct sinkfile *f, struct err_why *why)
{
	int r;

	if (f->force) {
		r = rename(f->part_path, f->path);
	} else {
		r = renameat2(AT_FDCWD, f->part_path, AT_FDCWD, f->path, RENAME_NOREPLACE);
		if (r < 0 && (errno == EINVAL || errno == ENOSYS)) {
			/* A file system that cannot do that: a second name, which fails if there is one, and the first one goes. */
			r = link(f->part_path, f->path);
			if (r == 0)
				r = unlink(f->part_path);
		}
	}
	if (r == 0)
		return ERR_OK;
	if (errno == EEXIST)
		return err_say(why, ERR_SYS, f->path, "has come to exist meanwhile; the recording stands as %.150s", f->part_path);
	return err_sys(why, f->path);
}

enum err sinkfile_close(struct sinkfile *f, bool complete, struct err_why *why)
{
	enum err e = ERR_OK;

	role_forbid(ROLE_DEADLINE);
	if (f->fd < 0)
		return ERR_OK;
	bool ours = f->is_part && part_is_ours(f);
	/* The lock lasts until the file has its name: it is that of the open file, which a second descriptor keeps. */
	int lock_fd = f->is_part ? fcntl(f->fd, F_DUPFD_CLOEXEC, 0) : -1;
	/* Linux closes the descriptor whatever close() says: never twice. */
	if (f->owns_fd && close(f->fd) < 0 && errno != EINTR)
		e = err_sys(why, sinkfile_place(f));
	f->fd = -1;
	if (!f->is_part)
		return e;
	if (!e && complete)
		e = ours ? give_name(f, why) : err_say(why, ERR_SYS, f->part_path, "was removed or replaced while it was written");
	else if (f->size_bytes == 0 && ours)
		(void)unlink(f->part_path);
	f->is_part = e != ERR_OK || !complete;
	if (lock_fd >= 0)
		close(lock_fd);
	return e;
}

void sinkfile_discard(struct sinkfile *f)
{
	if (f->is_part && part_is_ours(f))
		(void)unlink(f->part_path);
	sinkfile_release(f);
}

void sinkfile_release(struct sinkfile *f)
{
	if (f->fd >= 0 && f->owns_fd && f->path)
		close(f->fd);
	f->fd = -1;
	free(f->path);
	free(f->part_path);
	free(f->buffer);
	f->path = NULL;
	f->part_path = NULL;
	f->buffer = NULL;
	f->n_iov = 0;
	f->queued_bytes = 0;
	f->buffer_used_bytes = 0;
}
