/* A record is its length (16 bytes of head) and its bytes, padded to 16; in memory and in the file alike. */
#include "stage/spool.h"

#include "base/role.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEAD_BYTES 16u
#define PUNCH_BYTES (8u << 20) /* read again: given back to the disk in pieces of this size */

static size_t record_bytes(size_t n_bytes)
{
	return HEAD_BYTES + (size_t)units_round_up(n_bytes, HEAD_BYTES);
}

enum err spool_init(struct spool *s, struct spool_store *store)
{
	memset(s, 0, sizeof(*s));
	s->store = store;
	s->fd = -1;
	s->room_bytes = SPOOL_FIRST_BYTES;
	s->buffer = aligned_alloc(64, s->room_bytes);
	return s->buffer ? ERR_OK : ERR_NOMEM;
}

static bool in_file(const struct spool *s)
{
	return s->file_first_bytes != s->file_end_bytes;
}

void spool_release(struct spool *s)
{
	if (s->buffer && s->store) {
		atomic_fetch_sub(&s->store->memory_bytes, s->room_bytes - SPOOL_FIRST_BYTES);
		atomic_fetch_sub(&s->store->file_bytes, s->file_end_bytes - s->file_first_bytes);
	}
	free(s->buffer);
	if (s->fd >= 0)
		close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

/* ---- memory ---- */

static enum err resize(struct spool *s, size_t room_bytes)
{
	uint8_t *larger = aligned_alloc(64, room_bytes);

	if (!larger)
		return ERR_NOMEM;
	memcpy(larger, s->buffer + s->first_bytes, s->end_bytes - s->first_bytes);
	free(s->buffer);
	atomic_fetch_add(&s->store->memory_bytes, room_bytes - s->room_bytes);
	s->buffer = larger;
	s->end_bytes -= s->first_bytes;
	s->first_bytes = 0;
	s->room_bytes = room_bytes;
	return ERR_OK;
}

/* Is there room at the end, or once what is there has moved?  Moving is cheap while it is less than what was taken since. */
static bool has_room(const struct spool *s, size_t n_bytes)
{
	size_t used = s->end_bytes - s->first_bytes;
	return s->room_bytes - s->end_bytes >= n_bytes || (used <= s->first_bytes && s->room_bytes - used >= n_bytes);
}

/* How large the memory must become for n bytes more. */
static size_t larger_room(const struct spool *s, size_t n_bytes)
{
	size_t room = 2 * s->room_bytes;
	while (room < s->end_bytes - s->first_bytes + n_bytes)
		room *= 2;
	return room;
}

/* May it become so large?  What does not even fit the first memory must be taken, whatever the limit is. */
static bool may_grow(const struct spool *s, size_t room_bytes)
{
	return s->first_bytes == s->end_bytes ||
		atomic_load(&s->store->memory_bytes) + room_bytes - s->room_bytes <= s->store->memory_limit_bytes;
}

bool spool_goes_to_file(const struct spool *s, size_t n_bytes)
{
	n_bytes = record_bytes(n_bytes);
	return in_file(s) || (!has_room(s, n_bytes) && !may_grow(s, larger_room(s, n_bytes)));
}

bool spool_is_full(const struct spool *s, size_t n_bytes)
{
	return spool_goes_to_file(s, n_bytes) && atomic_load(&s->store->file_bytes) + record_bytes(n_bytes) > s->store->file_limit_bytes;
}

/* Make room for n bytes at the end.  Returns: ERR_OK, ERR_NOMEM. */
static enum err make_room(struct spool *s, size_t n_bytes)
{
	size_t used = s->end_bytes - s->first_bytes;

	if (!has_room(s, n_bytes))
		return resize(s, larger_room(s, n_bytes));
	if (s->room_bytes - s->end_bytes < n_bytes) {
		memmove(s->buffer, s->buffer + s->first_bytes, used);
		s->first_bytes = 0;
		s->end_bytes = used;
	}
	return ERR_OK;
}

static void put_in_memory(struct spool *s, const void *head, size_t head_bytes, const void *body, size_t body_bytes)
{
	uint8_t *at = s->buffer + s->end_bytes;
	uint64_t length = head_bytes + body_bytes;

	memset(at, 0, HEAD_BYTES);
	memcpy(at, &length, sizeof(length));
	if (head_bytes)
		memcpy(at + HEAD_BYTES, head, head_bytes);
	if (body_bytes)
		memcpy(at + HEAD_BYTES + head_bytes, body, body_bytes);
	s->end_bytes += record_bytes((size_t)length);
}

/* ---- the file ---- */

static enum err open_file(struct spool *s)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	if (!folder || !*folder)
		folder = "/var/tmp";
	s->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd >= 0)
		return ERR_OK;
	if (snprintf(path, sizeof(path), "%s/weir-XXXXXX", folder) >= (int)sizeof(path))
		return ERR_SYS;
	s->fd = mkostemp(path, O_CLOEXEC);
	if (s->fd < 0)
		return ERR_SYS;
	unlink(path);
	return ERR_OK;
}

static enum err put_in_file(struct spool *s, const void *head, size_t head_bytes, const void *body, size_t body_bytes)
{
	uint8_t length[HEAD_BYTES] = { 0 }, padding[HEAD_BYTES] = { 0 };
	const uint64_t n = head_bytes + body_bytes;
	const size_t all = record_bytes((size_t)n);
	struct iovec iov[4] = {
		{ length, HEAD_BYTES },
		{ (void *)(uintptr_t)head, head_bytes },
		{ (void *)(uintptr_t)body, body_bytes },
		{ padding, all - HEAD_BYTES - (size_t)n },
	};
	struct iovec *at = iov;
	int n_iov = 4;
	uint64_t end = s->file_end_bytes;

	if (atomic_load(&s->store->file_bytes) + all > s->store->file_limit_bytes)
		return ERR_LIMIT;
	if (s->fd < 0 && open_file(s))
		return ERR_SYS;
	memcpy(length, &n, sizeof(n));
	while (n_iov) {
		ssize_t done = pwritev(s->fd, at, n_iov, (off_t)end);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return ERR_SYS;
		end += (uint64_t)done;
		while (n_iov && (size_t)done >= at->iov_len) {
			done -= (ssize_t)at->iov_len;
			at++;
			n_iov--;
		}
		if (n_iov) {
			at->iov_base = (uint8_t *)at->iov_base + done;
			at->iov_len -= (size_t)done;
		}
	}
	s->file_end_bytes = end;
	if (all > s->largest_bytes)
		s->largest_bytes = all;
	atomic_fetch_add(&s->store->file_bytes, all);
	atomic_fetch_add(&s->store->spooled_bytes, all);
	return ERR_OK;
}

/* What was read again is given back. */
static void forget_file(struct spool *s, size_t n_bytes)
{
	s->file_first_bytes += n_bytes;
	atomic_fetch_sub(&s->store->file_bytes, n_bytes);
	if (!in_file(s)) {
		s->file_first_bytes = s->file_end_bytes = s->punched_bytes = 0;
		(void)!ftruncate(s->fd, 0);
	} else if (s->file_first_bytes - s->punched_bytes >= PUNCH_BYTES) {
		/* A file system that cannot do this keeps the bytes until the end. */
		(void)!fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->punched_bytes,
			(off_t)(s->file_first_bytes - s->punched_bytes));
		s->punched_bytes = s->file_first_bytes;
	}
}

/* The next records of the file into the empty memory. */
static enum err load(struct spool *s)
{
	uint64_t left = s->file_end_bytes - s->file_first_bytes;
	size_t got = 0, whole = 0;
	enum err e;

	s->first_bytes = s->end_bytes = 0;
	if (s->room_bytes < s->largest_bytes) {
		size_t room = s->room_bytes;
		while (room < s->largest_bytes)
			room *= 2;
		if ((e = resize(s, room)))
			return e;
	}
	size_t want = left < s->room_bytes ? (size_t)left : s->room_bytes;
	while (got < want) {
		ssize_t n = pread(s->fd, s->buffer + got, want - got, (off_t)(s->file_first_bytes + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ERR_SYS;
		got += (size_t)n;
	}
	while (got - whole >= HEAD_BYTES) {
		uint64_t length;
		memcpy(&length, s->buffer + whole, sizeof(length));
		if (record_bytes((size_t)length) > got - whole)
			break;
		whole += record_bytes((size_t)length);
	}
	s->end_bytes = whole;
	forget_file(s, whole);
	return ERR_OK;
}

/* ---- the queue ---- */

enum err spool_put(struct spool *s, const void *head, size_t head_bytes, const void *body, size_t body_bytes)
{
	role_forbid(ROLE_DEADLINE);
	if (spool_goes_to_file(s, head_bytes + body_bytes))
		return put_in_file(s, head, head_bytes, body, body_bytes);
	enum err e = make_room(s, record_bytes(head_bytes + body_bytes));
	if (e == ERR_OK)
		put_in_memory(s, head, head_bytes, body, body_bytes);
	return e;
}

enum err spool_peek(struct spool *s, uint8_t **record, size_t *n_bytes)
{
	uint64_t length;
	enum err e;

	if (s->first_bytes == s->end_bytes) {
		if (!in_file(s))
			return ERR_END;
		if ((e = load(s)))
			return e;
	}
	memcpy(&length, s->buffer + s->first_bytes, sizeof(length));
	*record = s->buffer + s->first_bytes + HEAD_BYTES;
	*n_bytes = (size_t)length;
	return ERR_OK;
}

void spool_drop(struct spool *s)
{
	uint64_t length;

	memcpy(&length, s->buffer + s->first_bytes, sizeof(length));
	s->first_bytes += record_bytes((size_t)length);
	if (s->first_bytes == s->end_bytes)
		s->first_bytes = s->end_bytes = 0;
}
