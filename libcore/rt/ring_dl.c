/* The halves of the ring that a deadline thread may call. */
#include "rt/ring.h"

WEIR_DEADLINE size_t ring_fill(const struct ring *r)
{
	/* The head first: it never passes a tail that is read after it. */
	uint64_t head = atomic_load_explicit(&r->head_bytes, memory_order_acquire);
	uint64_t fill = atomic_load_explicit(&r->tail_bytes, memory_order_acquire) - head;

	return fill < r->size_bytes ? (size_t)fill : r->size_bytes;
}

WEIR_DEADLINE size_t ring_peek(const struct ring *r, uint8_t **bytes)
{
	uint64_t head = atomic_load_explicit(&r->head_bytes, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&r->tail_bytes, memory_order_acquire);

	*bytes = r->bytes + (head & (r->size_bytes - 1));
	return (size_t)(tail - head);
}

WEIR_DEADLINE void ring_consume(struct ring *r, size_t n_bytes)
{
	uint64_t head = atomic_load_explicit(&r->head_bytes, memory_order_relaxed);
	atomic_store_explicit(&r->head_bytes, head + n_bytes, memory_order_release);
}

WEIR_DEADLINE size_t ring_room(const struct ring *r, uint8_t **bytes)
{
	uint64_t tail = atomic_load_explicit(&r->tail_bytes, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&r->head_bytes, memory_order_acquire);

	*bytes = r->bytes + (tail & (r->size_bytes - 1));
	return r->size_bytes - (size_t)(tail - head);
}

WEIR_DEADLINE void ring_commit(struct ring *r, size_t n_bytes)
{
	uint64_t tail = atomic_load_explicit(&r->tail_bytes, memory_order_relaxed);
	atomic_store_explicit(&r->tail_bytes, tail + n_bytes, memory_order_release);
}
