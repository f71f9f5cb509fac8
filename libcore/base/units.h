/*
 * Conversions between units: the only place where a rate, a channel count and a billion meet.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

#define UNITS_NS_PER_S 1000000000LL
#define UNITS_UNKNOWN_NS INT64_MIN /* a wall-clock time that nobody knows */

/* n · num / den, rounded to nearest (half away from zero), saturated to int64.  den > 0. */
int64_t units_scale(int64_t n, int64_t num, int64_t den);

/* n · num / den rounded up. */
int64_t units_scale_up(int64_t n, int64_t num, int64_t den);

/* n · num / den rounded down. */
int64_t units_scale_down(int64_t n, int64_t num, int64_t den);

/* Nanoseconds to units of a track of rate_num/rate_den units a second, to nearest. */
static inline int64_t units_from_ns(int64_t ns, uint32_t rate_num, uint32_t rate_den)
{
	return units_scale(ns, rate_num, UNITS_NS_PER_S * rate_den);
}

/* Units of a track to nanoseconds, to nearest. */
static inline int64_t units_to_ns(int64_t n, uint32_t rate_num, uint32_t rate_den)
{
	return units_scale(n, UNITS_NS_PER_S * rate_den, rate_num);
}

static inline double units_to_s(int64_t n, uint32_t rate_num, uint32_t rate_den)
{
	return (double)n * rate_den / rate_num;
}

/* <0, 0, >0 as n_a/rate_a is before, at or after n_b/rate_b: exact, by 128-bit cross-multiplication. */
int units_compare(int64_t n_a, uint32_t num_a, uint32_t den_a, int64_t n_b, uint32_t num_b, uint32_t den_b);

/* Decibels to a factor of amplitude, and back (-inf for 0). */
double units_db_to_factor(double db);
double units_factor_to_db(double factor);

static inline uint64_t units_round_up(uint64_t n, uint64_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

#endif
