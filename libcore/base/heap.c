#include "base/heap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* The two numbers of the process: written by every thread, read by the one that prints statistics. */
static atomic_uint_fast64_t heap_n_allocs;
static atomic_uint_fast64_t heap_n_bytes;

uint64_t heap_allocs(void)
{
	return atomic_load_explicit(&heap_n_allocs, memory_order_relaxed);
}

uint64_t heap_alloc_bytes(void)
{
	return atomic_load_explicit(&heap_n_bytes, memory_order_relaxed);
}

#if defined(WEIR_SANITIZED) || !defined(__GLIBC__)

bool heap_is_counted(void)
{
	return false;
}

#else

/* The C library's own allocator under the names it keeps for those who stand in front of it. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

bool heap_is_counted(void)
{
	return true;
}

static inline void count(size_t n_bytes)
{
	atomic_fetch_add_explicit(&heap_n_allocs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&heap_n_bytes, n_bytes, memory_order_relaxed);
}

void *malloc(size_t n)
{
	count(n);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count(n * size);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	count(n);
	return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n)
{
	count(n);
	return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	count(n);
	return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
		return EINVAL;
	count(n);
	void *p = __libc_memalign(align, n);
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

#endif
