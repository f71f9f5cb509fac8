/*
 * Unit tests, printed as TAP.  A test is a function of no arguments; CHECK… inside it say what must hold and go on
 * after a failure, so that one run shows all of them.
 *
 *	static void test_x(void) { CHECK(cond); CHECK_EQ(a, b); CHECK_NEAR(a, b, tol); CHECK_STR(a, b); CHECK_MEM(a, b, n); }
 *	int main(void) { CHECK_RUN(test_x); return check_end(); }
 *
 * Random data comes from check_rand() after check_seed(), which prints the seed; WEIR_SEED=N in the environment replays.
 */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_MAX_SHOWN 12 /* failures of one test that are printed; the rest is counted */

static struct {
	int n_tests, n_failed;
	int failures;         /* of the running test */
	const char *skip;     /* why the running test was skipped, or NULL */
	uint64_t random;
} check_state;

__attribute__((format(printf, 3, 4), unused)) static void check_fail(const char *file, int line, const char *fmt, ...)
{
	if (check_state.failures++ >= CHECK_MAX_SHOWN)
		return;
	va_list ap;
	va_start(ap, fmt);
	printf("# %s:%d: ", file, line);
	vprintf(fmt, ap);
	printf("\n");
	fflush(stdout);
	va_end(ap);
}

__attribute__((unused)) static int check_that(const char *file, int line, const char *text, bool holds)
{
	if (!holds)
		check_fail(file, line, "%s: does not hold", text);
	return holds;
}

__attribute__((unused)) static int check_equal(const char *file, int line, const char *ta, const char *tb, __int128 a,
	__int128 b)
{
	if (a == b)
		return true;
	if (a >= INT64_MIN && a <= INT64_MAX && b >= INT64_MIN && b <= INT64_MAX)
		check_fail(file, line, "%s is %lld, %s is %lld", ta, (long long)a, tb, (long long)b);
	else
		check_fail(file, line, "%s is %#llx, %s is %#llx", ta, (unsigned long long)a, tb, (unsigned long long)b);
	return false;
}

__attribute__((unused)) static int check_near(const char *file, int line, const char *ta, const char *tb, double a,
	double b, double tolerance)
{
	/* Equal infinities are near; a NaN is near nothing. */
	if (a == b || fabs(a - b) <= tolerance)
		return true;
	check_fail(file, line, "%s is %.17g, %s is %.17g: further apart than %g", ta, a, tb, b, tolerance);
	return false;
}

__attribute__((unused)) static void check_show(const char *text)
{
	if (check_state.failures > CHECK_MAX_SHOWN)
		return;
	printf("#   ");
	for (const char *c = text ? text : "(null)"; *c; c++)
		if (*c != '\n')
			putchar(*c);
		else if (c[1])
			fputs("\n#   ", stdout);
	printf("\n");
}

__attribute__((unused)) static int check_string(const char *file, int line, const char *ta, const char *a, const char *b)
{
	if (a && b ? strcmp(a, b) == 0 : a == b)
		return true;
	/* Lines of a text are shown one below the other, so that none of them looks like TAP. */
	check_fail(file, line, "%s is", ta);
	check_show(a);
	check_fail(file, line, "and should be");
	check_state.failures--;
	check_show(b);
	return false;
}

__attribute__((unused)) static int check_memory(const char *file, int line, const char *ta, const void *a, const void *b,
	size_t n_bytes)
{
	const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
	for (size_t i = 0; i < n_bytes; i++) {
		if (x[i] == y[i])
			continue;
		check_fail(file, line, "%s: byte %zu of %zu is %02x, not %02x", ta, i, n_bytes, x[i], y[i]);
		return false;
	}
	return true;
}

/* Each is an expression: true if it held. */
#define CHECK(cond) check_that(__FILE__, __LINE__, #cond, (cond))
#define CHECK_EQ(a, b) check_equal(__FILE__, __LINE__, #a, #b, (__int128)(a), (__int128)(b))
#define CHECK_NEAR(a, b, tol) check_near(__FILE__, __LINE__, #a, #b, (a), (b), (tol))
#define CHECK_STR(a, b) check_string(__FILE__, __LINE__, #a, (a), (b))
#define CHECK_MEM(a, b, n) check_memory(__FILE__, __LINE__, #a, (a), (b), (n))
/* An enum err that must be ERR_OK. */
#define CHECK_OK(e) CHECK_EQ(e, 0)
/* A failure with words of its own. */
#define CHECK_FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

/* The running test cannot be made here; say why and return from it. */
__attribute__((unused)) static void check_skip(const char *reason)
{
	check_state.skip = reason;
}

#define CHECK_RUN(test)                                                                                     \
	do {                                                                                                \
		check_state.failures = 0;                                                                   \
		check_state.skip = NULL;                                                                    \
		test();                                                                                     \
		check_report(#test);                                                                        \
	} while (0)

__attribute__((unused)) static void check_report(const char *name)
{
	check_state.n_tests++;
	if (check_state.failures > CHECK_MAX_SHOWN)
		printf("# and %d more\n", check_state.failures - CHECK_MAX_SHOWN);
	if (check_state.failures) {
		check_state.n_failed++;
		printf("not ok %d - %s\n", check_state.n_tests, name);
	} else if (check_state.skip) {
		printf("ok %d - %s # SKIP %s\n", check_state.n_tests, name, check_state.skip);
	} else {
		printf("ok %d - %s\n", check_state.n_tests, name);
	}
	fflush(stdout);
}

/* Prints the plan.  Returns: the exit status for main(). */
__attribute__((unused)) static int check_end(void)
{
	printf("1..%d\n", check_state.n_tests);
	fflush(stdout);
	return check_state.n_failed != 0;
}

/* Begin a sequence of random numbers; the seed is printed, and WEIR_SEED replaces it. */
__attribute__((unused)) static uint64_t check_seed(uint64_t seed)
{
	const char *given = getenv("WEIR_SEED");
	if (given && *given)
		seed = strtoull(given, NULL, 0);
	printf("# seed %llu\n", (unsigned long long)seed);
	check_state.random = seed * 0x9e3779b97f4a7c15u + 1;
	return seed;
}

/* splitmix64: any state is a good state. */
__attribute__((unused)) static uint64_t check_rand(void)
{
	uint64_t z = check_state.random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 … n − 1. */
__attribute__((unused)) static uint64_t check_rand_below(uint64_t n)
{
	return n ? check_rand() % n : 0;
}

#endif
