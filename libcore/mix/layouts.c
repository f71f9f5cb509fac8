#include "mix/layouts.h"

#include <math.h>
#include <string.h>

enum { FL, FR, FC, LFE, BL, BR, FLC, FRC, BC, SL, SR, TC, TFL, TFC, TFR, TBL, TBC, TBR, N_PLACES };
#define NOWHERE N_PLACES

/*
 * Where a channel goes when its own place is not there: ways in the order they are tried.  A way is taken if all its
 * places exist, or can be reached in turn (the last way of each).
 */
struct way {
	uint8_t from, to[2];
	float gain;
};

#define HALF_POWER 0.70710678f

static const struct way ways[] = {
	{ FL, { FC, NOWHERE }, HALF_POWER },
	{ FR, { FC, NOWHERE }, HALF_POWER },
	{ FC, { FL, FR }, HALF_POWER },
	{ BL, { SL, NOWHERE }, 1 },
	{ BL, { BC, NOWHERE }, HALF_POWER },
	{ BL, { FL, NOWHERE }, HALF_POWER },
	{ BR, { SR, NOWHERE }, 1 },
	{ BR, { BC, NOWHERE }, HALF_POWER },
	{ BR, { FR, NOWHERE }, HALF_POWER },
	{ SL, { BL, NOWHERE }, 1 },
	{ SL, { BC, NOWHERE }, HALF_POWER },
	{ SL, { FL, NOWHERE }, HALF_POWER },
	{ SR, { BR, NOWHERE }, 1 },
	{ SR, { BC, NOWHERE }, HALF_POWER },
	{ SR, { FR, NOWHERE }, HALF_POWER },
	{ BC, { BL, BR }, HALF_POWER },
	{ BC, { SL, SR }, HALF_POWER },
	{ BC, { FL, FR }, 0.5f },
	{ FLC, { FL, FC }, HALF_POWER },
	{ FLC, { FL, NOWHERE }, HALF_POWER },
	{ FRC, { FR, FC }, HALF_POWER },
	{ FRC, { FR, NOWHERE }, HALF_POWER },
	{ TC, { TFL, TFR }, HALF_POWER },
	{ TC, { FL, FR }, 0.5f },
	{ TFL, { FL, NOWHERE }, HALF_POWER },
	{ TFC, { TFL, TFR }, HALF_POWER },
	{ TFC, { FC, NOWHERE }, HALF_POWER },
	{ TFR, { FR, NOWHERE }, HALF_POWER },
	{ TBL, { BL, NOWHERE }, HALF_POWER },
	{ TBC, { TBL, TBR }, HALF_POWER },
	{ TBC, { BC, NOWHERE }, HALF_POWER },
	{ TBR, { BR, NOWHERE }, HALF_POWER },
};

#define MAX_STEPS 6 /* TBC → BC → FL, FR → FC is the longest */

uint64_t layouts_mask(const struct track *t)
{
	if (t->layout == TRACK_LAYOUT_WAVE && (unsigned)__builtin_popcountll(t->wave_mask) == t->channels)
		return t->wave_mask;
	if (t->layout == TRACK_LAYOUT_AMBISONIC)
		return 0;
	return track_usual_mask(t->channels);
}

static bool has(uint64_t mask, unsigned place)
{
	return place == NOWHERE || (mask >> place & 1);
}

/* Channel number of a place of the mask. */
static unsigned index_of(uint64_t mask, unsigned place)
{
	return (unsigned)__builtin_popcountll(mask & (((uint64_t)1 << place) - 1));
}

/* Add to column i what `place` gives to the output. */
static void spread(double *coef, uint64_t out_mask, unsigned in_channels, unsigned i, unsigned place, double gain, int steps)
{
	const struct way *last = NULL;

	if (place == NOWHERE || steps == 0)
		return;
	if (has(out_mask, place)) {
		coef[(size_t)index_of(out_mask, place) * in_channels + i] += gain;
		return;
	}
	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		if (ways[w].from != place)
			continue;
		last = &ways[w];
		if (has(out_mask, last->to[0]) && has(out_mask, last->to[1]))
			break;
	}
	if (!last)
		return;
	/* The tables have seven digits of 1/sqrt 2; the matrix has all. */
	double share = last->gain == HALF_POWER ? M_SQRT1_2 : (double)last->gain;
	spread(coef, out_mask, in_channels, i, last->to[0], gain * share, steps - 1);
	spread(coef, out_mask, in_channels, i, last->to[1], gain * share, steps - 1);
}

enum err layouts_matrix(double *coef, unsigned out_channels, uint64_t out_mask, unsigned in_channels, uint64_t in_mask)
{
	memset(coef, 0, (size_t)out_channels * in_channels * sizeof(*coef));
	if (in_channels == 1 && out_channels == 2) {
		coef[0] = coef[1] = 1;
		return ERR_OK;
	}
	if (in_mask && out_mask && (in_mask | out_mask) >> N_PLACES == 0 && in_mask != out_mask) {
		for (unsigned place = 0; place < N_PLACES; place++)
			if (in_mask >> place & 1)
				spread(coef, out_mask, in_channels, index_of(in_mask, place), place, 1, MAX_STEPS);
		return ERR_OK;
	}
	for (unsigned c = 0; c < in_channels && c < out_channels; c++)
		coef[(size_t)c * in_channels + c] = 1;
	return in_channels > out_channels ? ERR_ARG : ERR_OK;
}

void layouts_pan(double *coef, unsigned in_channels, double pan)
{
	if (in_channels == 1) {
		double angle = (pan + 1) * M_PI_4;
		coef[0] = pan >= 1 ? 0 : cos(angle);
		coef[1] = pan <= -1 ? 0 : sin(angle);
		return;
	}
	/* coef is L from L, L from R, R from L, R from R. */
	double angle = (pan <= 0 ? pan + 1 : pan) * M_PI_2;
	coef[0] = pan <= 0 ? 1 : pan >= 1 ? 0 : cos(angle);
	coef[1] = pan < 0 ? cos(angle) : 0;
	coef[2] = pan > 0 ? sin(angle) : 0;
	coef[3] = pan >= 0 ? 1 : pan <= -1 ? 0 : sin(angle);
}
