#include "base/units.h"

#include <math.h>

static int64_t saturate(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static __int128 floor_div(__int128 a, __int128 b)
{
	__int128 q = a / b;
	return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t units_scale(int64_t n, int64_t num, int64_t den)
{
	__int128 p = (__int128)n * num;
	__int128 half = den / 2;
	return saturate(p < 0 ? -((-p + half) / den) : (p + half) / den);
}

int64_t units_scale_up(int64_t n, int64_t num, int64_t den)
{
	return saturate(-floor_div(-((__int128)n * num), den));
}

int64_t units_scale_down(int64_t n, int64_t num, int64_t den)
{
	return saturate(floor_div((__int128)n * num, den));
}

int units_compare(int64_t n_a, uint32_t num_a, uint32_t den_a, int64_t n_b, uint32_t num_b, uint32_t den_b)
{
	/* 63 + 64 bits: exact in 128. */
	__int128 a = (__int128)n_a * ((uint64_t)den_a * num_b);
	__int128 b = (__int128)n_b * ((uint64_t)den_b * num_a);
	return a < b ? -1 : a > b;
}

double units_db_to_factor(double db)
{
	return pow(10.0, db / 20.0);
}

double units_factor_to_db(double factor)
{
	return factor > 0 ? 20.0 * log10(factor) : -INFINITY;
}
