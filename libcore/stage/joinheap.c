#include "stage/joinheap.h"

#include "stage/joinsource.h"

#include <stdlib.h>

enum err joinheap_init(struct joinheap *h, unsigned n_sources)
{
	h->n = 0;
	h->sources = calloc(n_sources + 1, sizeof(struct joinsource *));
	return h->sources ? ERR_OK : ERR_NOMEM;
}

void joinheap_release(struct joinheap *h)
{
	free(h->sources);
	*h = (struct joinheap){0};
}

static bool is_before(const struct joinsource *a, const struct joinsource *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a < b;
}

void joinheap_push(struct joinheap *h, struct joinsource *s)
{
	unsigned i = h->n++;

	while (i > 0 && is_before(s, h->sources[(i - 1) / 2])) {
		h->sources[i] = h->sources[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->sources[i] = s;
}

struct joinsource *joinheap_pop(struct joinheap *h)
{
	struct joinsource *top = h->sources[0], *last = h->sources[--h->n];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;
		if (child >= h->n)
			break;
		if (child + 1 < h->n && is_before(h->sources[child + 1], h->sources[child]))
			child++;
		if (!is_before(h->sources[child], last))
			break;
		h->sources[i] = h->sources[child];
		i = child;
	}
	h->sources[i] = last;
	return top;
}
