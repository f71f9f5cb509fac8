#include "rt/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t round_up_to_power(size_t n, size_t at_least)
{
	size_t size = at_least;
	while (size < n)
		size *= 2;
	return size;
}

/* Map the memory behind fd twice in a row.  Returns: the address, or MAP_FAILED with errno. */
static void *map_twice(int fd, size_t size)
{
	/* Reserve the whole range first, so that the second half cannot land in somebody else's mapping. */
	uint8_t *at = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return MAP_FAILED;
	for (int half = 0; half < 2; half++)
		if (mmap(at + (size_t)half * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
			munmap(at, 2 * size);
			return MAP_FAILED;
		}
	return at;
}

/* By way of a file in memory.  Returns: the address, or MAP_FAILED with errno. */
static void *map_file(size_t size)
{
	void *at = MAP_FAILED;
	int fd = memfd_create("weir-ring", MFD_CLOEXEC);

	if (fd < 0)
		return MAP_FAILED;
	if (ftruncate(fd, (off_t)size) == 0)
		at = map_twice(fd, size);
	int saved = errno;
	close(fd);
	errno = saved;
	return at;
}

/*
 * Without a file, where the limits on files (ulimit -f, -n) or a sandbox forbid one: shared memory whose first half is
 * mapped again over its second, which mremap does for an old size of 0.  Second choice, since valgrind does not know it.
 * Returns: the address, or MAP_FAILED with errno.
 */
static void *map_memory(size_t size)
{
	if (size > SIZE_MAX / 2) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	uint8_t *at = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return MAP_FAILED;
	if (mremap(at, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at + size) == MAP_FAILED) {
		munmap(at, 2 * size);
		return MAP_FAILED;
	}
	return at;
}

enum err ring_init(struct ring *r, size_t min_bytes, struct err_why *why)
{
	role_forbid(ROLE_DEADLINE);
	size_t size = round_up_to_power(min_bytes, (size_t)sysconf(_SC_PAGESIZE));

	memset(r, 0, sizeof(*r));
	void *at = map_file(size);
	if (at == MAP_FAILED && errno != ENOMEM)
		at = map_memory(size);
	if (at == MAP_FAILED)
		return err_sys(why, "ring buffer");
	r->bytes = at;
	r->size_bytes = size;
	return ERR_OK;
}

void ring_release(struct ring *r)
{
	if (r->bytes)
		munmap(r->bytes, 2 * r->size_bytes);
	memset(r, 0, sizeof(*r));
}

void ring_rewind(struct ring *r, size_t most_bytes, size_t least_bytes)
{
	uint64_t head = atomic_load_explicit(&r->head_bytes, memory_order_relaxed);
	uint64_t n_bytes = atomic_load_explicit(&r->tail_bytes, memory_order_relaxed) - head;
	size_t at = (size_t)(head & (r->size_bytes - 1));

	/* What lies across the end is there twice: moving would run into itself. */
	if (n_bytes > most_bytes || at < least_bytes || at + n_bytes > r->size_bytes)
		return;
	memmove(r->bytes, r->bytes + at, (size_t)n_bytes);
	head += r->size_bytes - at;
	atomic_store_explicit(&r->head_bytes, head, memory_order_relaxed);
	atomic_store_explicit(&r->tail_bytes, head + n_bytes, memory_order_relaxed);
}
