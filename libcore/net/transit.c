#include "net/transit.h"

#include <stdlib.h>
#include <string.h>

enum err transit_init(struct transit *t, uint32_t room)
{
	memset(t, 0, sizeof(*t));
	t->heap = calloc(room, sizeof(*t->heap));
	t->room = t->heap ? room : 0;
	return t->heap ? ERR_OK : ERR_NOMEM;
}

void transit_release(struct transit *t)
{
	free(t->heap);
	memset(t, 0, sizeof(*t));
}

static bool is_before(const struct transit_entry *a, const struct transit_entry *b)
{
	return a->out_ns != b->out_ns ? a->out_ns < b->out_ns : a->serial < b->serial;
}

static void push(struct transit *t, const struct transit_entry *entry)
{
	uint32_t i = t->n++;

	while (i > 0 && is_before(entry, &t->heap[(i - 1) / 2])) {
		t->heap[i] = t->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	t->heap[i] = *entry;
}

static struct transit_entry pop(struct transit *t)
{
	const struct transit_entry top = t->heap[0], last = t->heap[--t->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child >= t->n)
			break;
		if (child + 1 < t->n && is_before(&t->heap[child + 1], &t->heap[child]))
			child++;
		if (!is_before(&t->heap[child], &last))
			break;
		t->heap[i] = t->heap[child];
		i = child;
	}
	t->heap[i] = last;
	return top;
}

bool transit_put(struct transit *t, int64_t out_ns, uint32_t slot, uint32_t behind, int64_t latest_ns)
{
	struct transit_entry entry = { .out_ns = out_ns, .serial = t->next_serial, .slot = slot, .behind = behind };

	/* Those that are held have their place in the heap kept, since they go there. */
	if (transit_count(t) >= t->room)
		return false;
	t->next_serial++;
	if (behind && t->n_held < TRANSIT_MAX_HELD) {
		entry.out_ns = latest_ns > out_ns ? latest_ns : out_ns;
		t->held[t->n_held++] = entry;
	} else {
		push(t, &entry);
	}
	return true;
}

int64_t transit_next_ns(const struct transit *t)
{
	int64_t next_ns = t->n ? t->heap[0].out_ns : INT64_MAX;

	for (uint32_t i = 0; i < t->n_held; i++)
		if (t->held[i].out_ns < next_ns)
			next_ns = t->held[i].out_ns;
	return next_ns;
}

/* One of the held ones goes into the row, to come out at out_ns. */
static void let_go(struct transit *t, uint32_t i, int64_t out_ns)
{
	struct transit_entry entry = t->held[i];

	memmove(&t->held[i], &t->held[i + 1], (t->n_held - i - 1) * sizeof(entry));
	t->n_held--;
	entry.out_ns = out_ns;
	push(t, &entry);
}

/* A packet went out: those that it overtook have one fewer to wait for. */
static void tell_held(struct transit *t, const struct transit_entry *gone)
{
	for (uint32_t i = 0; i < t->n_held;)
		if (t->held[i].serial < gone->serial && --t->held[i].behind == 0)
			let_go(t, i, gone->out_ns);
		else
			i++;
}

bool transit_take(struct transit *t, int64_t now_ns, uint32_t *slot, int64_t *out_ns)
{
	for (uint32_t i = 0; i < t->n_held;)
		if (t->held[i].out_ns <= now_ns)
			let_go(t, i, t->held[i].out_ns);
		else
			i++;
	if (!t->n || t->heap[0].out_ns > now_ns)
		return false;
	const struct transit_entry entry = pop(t);
	tell_held(t, &entry);
	*slot = entry.slot;
	if (out_ns)
		*out_ns = entry.out_ns;
	return true;
}
