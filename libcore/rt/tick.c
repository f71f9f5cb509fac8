#include "rt/tick.h"

#include "rt/clock.h"

/* The line follows a device whose seconds are longer than ours: a 256th of what a tick came after it. */
#define LINE_SHIFT 8
#define STEPS_LOG2 3                 /* bins to an octave */
#define STEPS (1u << STEPS_LOG2)
#define UNIT_LOG2 10                 /* the first octave is counted in units of 1024 ns */

static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	/* One writer: a load and a store are enough. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static void raise_to(atomic_uint_fast64_t *most, uint64_t n)
{
	if (n > atomic_load_explicit(most, memory_order_relaxed))
		atomic_store_explicit(most, n, memory_order_relaxed);
}

/* Bin 0 … 7 hold one unit each; from there every octave has eight. */
static unsigned bin_of(uint64_t ns)
{
	uint64_t units = ns >> UNIT_LOG2;
	unsigned bin;

	if (units < STEPS)
		return (unsigned)units;
	unsigned octave = 63u - (unsigned)__builtin_clzll(units);
	bin = (octave - STEPS_LOG2 + 1) * STEPS + (unsigned)(units >> (octave - STEPS_LOG2)) - STEPS;
	return bin < TICK_BINS ? bin : TICK_BINS - 1;
}

/* Where a bin ends. */
static uint64_t bin_end_ns(unsigned bin)
{
	if (bin < STEPS)
		return ((uint64_t)bin + 1) << UNIT_LOG2;
	unsigned octave = bin / STEPS + STEPS_LOG2 - 1;
	return ((uint64_t)(STEPS + bin % STEPS) + 1) << (octave - STEPS_LOG2 + UNIT_LOG2);
}

WEIR_DEADLINE void tick_begin_at(struct tick *t, int64_t due_ns, int64_t period_ns)
{
	if (!tick_is_on(t))
		return;
	t->begun = true;
	t->due_ns = due_ns;
	t->period_ns = period_ns;
}

WEIR_DEADLINE void tick_begin(struct tick *t, int64_t period_ns)
{
	if (!tick_is_on(t))
		return;
	int64_t now_ns = clock_now_ns(), due_ns = t->due_ns + t->period_ns;

	if (!t->has_line || now_ns < due_ns) {
		due_ns = now_ns;
	} else if (now_ns - due_ns < t->period_ns) {
		due_ns += (now_ns - due_ns) >> LINE_SHIFT;
	}
	t->has_line = t->begun = true;
	t->due_ns = due_ns;
	t->period_ns = period_ns;
}

WEIR_DEADLINE void tick_end(struct tick *t)
{
	if (!tick_is_on(t) || !t->begun)
		return;
	int64_t now_ns = clock_now_ns(), took_ns = now_ns - t->due_ns, late_ns = took_ns - t->period_ns;

	t->begun = false;
	took_ns = took_ns > 0 ? took_ns : 0;
	add(&t->bins[bin_of((uint64_t)took_ns)], 1);
	raise_to(&t->max_ns, (uint64_t)took_ns);
	if (late_ns > 0) {
		add(&t->late, 1);
		raise_to(&t->max_late_ns, (uint64_t)late_ns);
		/* The next one is measured from here: it was not its fault. */
		if (t->has_line)
			t->due_ns = now_ns - t->period_ns;
	}
	add(&t->n, 1);
}

void tick_add(struct tick_sum *sum, const struct tick *t)
{
	uint64_t max_ns = atomic_load_explicit(&t->max_ns, memory_order_relaxed), late_ns = atomic_load_explicit(&t->max_late_ns, memory_order_relaxed);

	sum->n += atomic_load_explicit(&t->n, memory_order_relaxed);
	sum->late += atomic_load_explicit(&t->late, memory_order_relaxed);
	sum->max_ns = max_ns > sum->max_ns ? max_ns : sum->max_ns;
	sum->max_late_ns = late_ns > sum->max_late_ns ? late_ns : sum->max_late_ns;
	for (unsigned i = 0; i < TICK_BINS; i++)
		sum->bins[i] += atomic_load_explicit(&t->bins[i], memory_order_relaxed);
}

int64_t tick_quantile_ns(const struct tick_sum *sum, double part)
{
	uint64_t all = 0, below = 0;

	for (unsigned i = 0; i < TICK_BINS; i++)
		all += sum->bins[i];
	for (unsigned i = 0; i < TICK_BINS; i++) {
		below += sum->bins[i];
		/* The last bin is open to above, and no tick was longer than the longest. */
		if (below && (double)below >= part * (double)all) {
			uint64_t end_ns = i + 1 < TICK_BINS ? bin_end_ns(i) : UINT64_MAX;
			return (int64_t)(end_ns < sum->max_ns ? end_ns : sum->max_ns);
		}
	}
	return 0;
}
