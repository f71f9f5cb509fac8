#include "net/replay.h"

#include "base/units.h"

#include <string.h>

struct head {
	uint64_t n_bytes;
};

_Static_assert(sizeof(struct head) <= REPLAY_HEAD_BYTES, "the head of a message is larger than its place");

static size_t ring_bytes(size_t n_bytes)
{
	return REPLAY_HEAD_BYTES + (size_t)units_round_up((int64_t)n_bytes, REPLAY_HEAD_BYTES);
}

static size_t message_bytes(const uint8_t *at)
{
	struct head h;

	memcpy(&h, at, sizeof(h));
	return (size_t)h.n_bytes;
}

enum err replay_init(struct replay *r, size_t n_bytes, uint64_t max_messages, struct err_why *why)
{
	memset(r, 0, sizeof(*r));
	if (!max_messages || max_messages > UINT64_C(1) << 32 || n_bytes < REPLAY_HEAD_BYTES || n_bytes > (size_t)1 << 32)
		return err_say(why, ERR_ARG, "messages to keep", "%zu bytes and %llu messages cannot be", n_bytes, (unsigned long long)max_messages);
	r->max_messages = max_messages;
	return ring_init(&r->ring, n_bytes, why);
}

void replay_release(struct replay *r)
{
	ring_release(&r->ring);
}

size_t replay_largest_bytes(const struct replay *r)
{
	return r->ring.size_bytes - REPLAY_HEAD_BYTES;
}

uint8_t *replay_reserve(struct replay *r, size_t n_bytes)
{
	uint64_t put = atomic_load_explicit(&r->n_put, memory_order_relaxed);
	uint8_t *at;

	if (n_bytes > replay_largest_bytes(r) || put - atomic_load_explicit(&r->n_acked, memory_order_acquire) >= r->max_messages)
		return NULL;
	return ring_room(&r->ring, &at) < ring_bytes(n_bytes) ? NULL : at + REPLAY_HEAD_BYTES;
}

void replay_put(struct replay *r, size_t n_bytes)
{
	struct head h = { .n_bytes = n_bytes };
	uint8_t *at;

	ring_room(&r->ring, &at);
	memcpy(at, &h, sizeof(h));
	ring_commit(&r->ring, ring_bytes(n_bytes));
	atomic_fetch_add_explicit(&r->n_put, 1, memory_order_release);
}

const uint8_t *replay_next(const struct replay *r, size_t *n_bytes)
{
	uint8_t *at;
	size_t there = ring_peek(&r->ring, &at);

	if (there <= r->sent_bytes)
		return NULL;
	*n_bytes = message_bytes(at + r->sent_bytes);
	return at + r->sent_bytes + REPLAY_HEAD_BYTES;
}

void replay_sent(struct replay *r)
{
	size_t n_bytes;

	if (!replay_next(r, &n_bytes))
		return;
	r->sent_bytes += ring_bytes(n_bytes);
	r->n_sent++;
}

unsigned replay_vector(const struct replay *r, size_t skip_bytes, struct iovec *iov, unsigned room)
{
	uint8_t *at;
	size_t there = ring_peek(&r->ring, &at);
	unsigned n = 0;

	for (size_t from = r->sent_bytes; from < there && n < room; skip_bytes = 0) {
		size_t n_bytes = message_bytes(at + from);

		iov[n].iov_base = at + from + REPLAY_HEAD_BYTES + skip_bytes;
		iov[n++].iov_len = n_bytes - skip_bytes;
		from += ring_bytes(n_bytes);
	}
	return n;
}

enum err replay_ack(struct replay *r, uint64_t n)
{
	uint64_t acked = atomic_load_explicit(&r->n_acked, memory_order_relaxed);
	size_t done = 0;
	uint8_t *at;

	if (n < acked || n > r->n_sent)
		return ERR_PEER;
	ring_peek(&r->ring, &at);
	for (uint64_t i = acked; i < n; i++)
		done += ring_bytes(message_bytes(at + done));
	r->sent_bytes -= done;
	ring_consume(&r->ring, done);
	atomic_store_explicit(&r->n_acked, n, memory_order_release);
	return ERR_OK;
}

enum err replay_resume(struct replay *r, uint64_t n)
{
	if (n < atomic_load_explicit(&r->n_acked, memory_order_relaxed) || n > r->n_sent)
		return ERR_PEER;
	enum err e = replay_ack(r, n);
	if (e)
		return e;
	r->n_again += r->n_sent - n;
	r->n_sent = n;
	r->sent_bytes = 0;
	return ERR_OK;
}

uint64_t replay_held(const struct replay *r)
{
	uint64_t acked = atomic_load_explicit(&r->n_acked, memory_order_acquire), put = atomic_load_explicit(&r->n_put, memory_order_acquire);

	return put > acked ? put - acked : 0;
}

size_t replay_held_bytes(const struct replay *r)
{
	return ring_fill(&r->ring);
}

enum err replay_take(struct replay_in *in, uint64_t n)
{
	if (n < in->n_taken) {
		in->n_twice++;
		return ERR_AGAIN;
	}
	if (n > in->n_taken)
		return ERR_CUT;
	in->n_taken++;
	return ERR_OK;
}
