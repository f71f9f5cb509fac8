/*
 * kernels [--bench] [--seed N] [PART…]: every kernel against its C twin and against values worked out by hand.
 * --bench times them instead.  PART is convert, gain, …: only those.
 */
#include "kern.h"

#include "base/cpu.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct dsp kern_c, kern_fast;
const unsigned kern_channels[KERN_N_CHANNELS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 22, 33};

static uint64_t state;
static unsigned n_tests, n_failed;

void kern_seed(uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15u + 1;
	if (!state)
		state = 1;
}

uint64_t kern_rand(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1du;
}

double kern_uniform(void)
{
	return (double)(int64_t)kern_rand() * 0x1p-63;
}

float kern_nasty(void)
{
	static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, 0x1.fffffep-1f, -0x1.fffffep-1f, 2.0f, -2.0f, 1e30f, -1e30f,
		0x1p-149f, -0x1p-149f, 0x1p-127f, 0x1p-15f, 0x1p-16f, -0x1p-16f, 0x3p-16f, INFINITY, -INFINITY, NAN};
	uint64_t r = kern_rand();
	if ((r & 7) == 0)
		return odd[(r >> 8) % ARRAY_LEN(odd)];
	return (float)(kern_uniform() * 1.2);
}

#define POOL 65536u
static float nasty_pool[POOL], finite_pool[POOL];

static void make_pools(void)
{
	for (size_t i = 0; i < POOL; i++) {
		nasty_pool[i] = kern_nasty();
		finite_pool[i] = (float)(kern_uniform() * 1.2);
	}
}

static void from_pool(const float *pool, float *x, size_t n)
{
	memcpy(x, pool + kern_rand() % (POOL - n), n * sizeof(*x));
}

void kern_fill(float *x, size_t n)
{
	from_pool(nasty_pool, x, n);
}

void kern_fill_finite(float *x, size_t n)
{
	from_pool(finite_pool, x, n);
}

bool kern_same(const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(a + i, b + i, sizeof(*a)) && !(isnan(a[i]) && isnan(b[i])))
			return false;
	return true;
}

void kern_buf_open(struct kern_buf *b, size_t n_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (n_bytes + page - 1) / page * page;
	b->base = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->base == MAP_FAILED || mprotect(b->base + room, page, PROT_NONE)) {
		perror("kernels: mmap");
		exit(1);
	}
	b->end = b->base + room;
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(0xa5 ^ i * 7);
}

/* Only this much before the buffer is watched: filling all of it for each call would be the whole run time. */
#define WATCHED 128

static uint8_t *watch_from(const struct kern_buf *b, size_t n_bytes, size_t offset)
{
	uint8_t *p = b->end - offset - n_bytes;
	return p - b->base > WATCHED ? p - WATCHED : b->base;
}

void *kern_place(struct kern_buf *b, size_t n_bytes, size_t offset)
{
	for (uint8_t *p = watch_from(b, n_bytes, offset); p < b->end; p++)
		*p = pattern((size_t)(b->end - p));
	return b->end - offset - n_bytes;
}

bool kern_is_clean(const struct kern_buf *b, size_t n_bytes, size_t offset)
{
	const uint8_t *start = b->end - offset - n_bytes;
	for (const uint8_t *p = watch_from(b, n_bytes, offset); p < b->end; p++)
		if ((p < start || p >= b->end - offset) && *p != pattern((size_t)(b->end - p)))
			return false;
	return true;
}

static bool WEIR_PRINTF(2, 0) report(bool ok, const char *fmt, va_list args)
{
	n_tests++;
	n_failed += !ok;
	printf("%s %u - ", ok ? "ok" : "not ok", n_tests);
	vprintf(fmt, args);
	putchar('\n');
	return ok;
}

bool kern_ok(bool ok, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	report(ok, fmt, args);
	va_end(args);
	return ok;
}

bool kern_near_at(double got, double want, double bound, const char *fmt, ...)
{
	bool ok = fabs(got - want) <= bound;
	va_list args;
	va_start(args, fmt);
	report(ok, fmt, args);
	va_end(args);
	if (!ok)
		printf("# got %.9g, want %.9g within %.3g\n", got, want, bound);
	return ok;
}

void kern_note(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("# ", stdout);
	vprintf(fmt, args);
	putchar('\n');
	va_end(args);
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double kern_time_ns(void (*call)(void *), void *arg)
{
	size_t n = 1;
	double best = INFINITY, took = 0;
	for (; n < 1u << 24; n *= 2) {
		double t = now_ns();
		for (size_t i = 0; i < n; i++)
			call(arg);
		if ((took = now_ns() - t) > 1e6)
			break;
	}
	for (int batch = 0; batch < 9; batch++) {
		double t = now_ns();
		for (size_t i = 0; i < n; i++)
			call(arg);
		took = (now_ns() - t) / (double)n;
		if (took < best)
			best = took;
	}
	return best;
}

void kern_bench(const char *name, void (*c)(void *), void *c_arg, void (*fast)(void *), void *fast_arg)
{
	double c_ns = kern_time_ns(c, c_arg);
	if (fast && cpu_has(CPU_AVX2)) {
		double fast_ns = kern_time_ns(fast, fast_arg);
		printf("# %-44s c %10.1f ns  avx2 %10.1f ns  %6.1fx\n", name, c_ns, fast_ns, c_ns / fast_ns);
	} else {
		printf("# %-44s c %10.1f ns\n", name, c_ns);
	}
	fflush(stdout);
}

static const struct part {
	const char *name;
	void (*run)(bool bench);
} parts[] = {
	{"convert", kern_convert},
	{"interleave", kern_interleave},
	{"gain", kern_gain},
	{"galois", kern_galois},
	{"matrix", kern_matrix},
	{"levels", kern_levels},
	{"truepeak", kern_truepeak},
	{"kweight", kern_kweight},
	{"limiter", kern_limiter},
	{"varirate", kern_varirate},
};

int main(int argc, char **argv)
{
	bool bench = false, all = true;
	uint64_t seed = 1;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--bench"))
			bench = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else
			all = false;
	}
	dsp_init(&kern_c, 0);
	dsp_init(&kern_fast, cpu_flags());
	printf("# seed %llu\n", (unsigned long long)seed);
	if (!cpu_has(CPU_AVX2))
		printf("# no AVX2 here, or WEIR_CPU hides it: the C versions alone\n");

	for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
		bool wanted = all;
		for (int i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], parts[p].name);
		if (!wanted)
			continue;
		kern_seed(seed);
		make_pools();
		parts[p].run(bench);
	}
	printf("1..%u\n", n_tests);
	return n_failed ? 1 : 0;
}
