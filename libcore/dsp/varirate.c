#include "dsp/varirate.h"

#include "base/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* At a step of 1.01 a chunk uses 65 frames and a fraction; the window is beside them. */
#define HELD_FRAMES (VARIRATE_TAPS + VARIRATE_CHUNK_FRAMES + 8u)
#define PAST_FRAMES (VARIRATE_TAPS - 1 - VARIRATE_AHEAD_FRAMES) /* before the place of an output frame */
#define BETA 11.2

/* The modified Bessel function I0 by its power series: 40 terms are enough to x = 12. */
static double bessel_i0(double x)
{
	double sum = 1.0, term = 1.0;
	for (int n = 1; n < 40; n++) {
		term *= x / (2.0 * n) * (x / (2.0 * n));
		sum += term;
	}
	return sum;
}

static double tap_at(double t)
{
	double edge = t / VARIRATE_AHEAD_FRAMES;
	if (fabs(edge) > 1.0 || (t == floor(t) && t != 0.0))
		return 0.0;
	double window = bessel_i0(BETA * sqrt(1.0 - edge * edge)) / bessel_i0(BETA);
	return t == 0.0 ? 1.0 : window * sin(M_PI * t) / (M_PI * t);
}

void varirate_table_init(float *table)
{
	for (unsigned p = 0; p <= VARIRATE_PHASES; p++) {
		double row[VARIRATE_TAPS], sum = 0;
		for (unsigned k = 0; k < VARIRATE_TAPS; k++) {
			row[k] = tap_at((double)k - PAST_FRAMES - (double)p / VARIRATE_PHASES);
			sum += row[k];
		}
		for (unsigned k = 0; k < VARIRATE_TAPS; k++)
			table[p * VARIRATE_TAPS + k] = (float)(row[k] / sum);
	}
}

enum err varirate_init(struct varirate *v, unsigned channels)
{
	return varirate_beside_init(v, channels, NULL);
}

enum err varirate_beside_init(struct varirate *v, unsigned channels, const struct varirate *other)
{
	*v = (struct varirate){.channels = channels, .step_q48 = VARIRATE_ONE, .target_q48 = VARIRATE_ONE};
	if (!channels || channels > VARIRATE_MAX_CHANNELS)
		return ERR_ARG;
	size_t table_samples = other ? 0 : (VARIRATE_PHASES + 1) * VARIRATE_TAPS, row_samples = VARIRATE_CHUNK_FRAMES * VARIRATE_TAPS;
	size_t plane_samples = HELD_FRAMES + VARIRATE_CHUNK_FRAMES;
	v->memory = calloc(1, 3 * channels * sizeof(float *) +
		(table_samples + row_samples + channels * plane_samples) * sizeof(float));
	if (!v->memory)
		return ERR_NOMEM;
	v->held = v->memory;
	v->made = v->held + channels;
	v->into = v->made + channels;
	v->table = (float *)(v->into + channels);
	v->rows = v->table + table_samples;
	for (unsigned c = 0; c < channels; c++) {
		v->held[c] = v->rows + row_samples + c * plane_samples;
		v->made[c] = v->held[c] + HELD_FRAMES;
	}
	if (other)
		v->table = other->table;
	else
		varirate_table_init(v->table);
	v->rows_fn = varirate_c_rows;
	v->sum_fn = varirate_c_sum;
	v->join_fn = interleave_c_join;
	v->split_fn = interleave_c_split;
#if defined(__x86_64__)
	if (cpu_has(CPU_AVX2)) {
		v->rows_fn = varirate_avx2_rows;
		v->sum_fn = varirate_avx2_sum;
		v->join_fn = interleave_avx2_join;
		v->split_fn = interleave_avx2_split;
	}
#endif
	varirate_reset(v);
	return ERR_OK;
}

void varirate_release(struct varirate *v)
{
	free(v->memory);
	*v = (struct varirate){0};
}

void varirate_reset(struct varirate *v)
{
	v->place_q48 = 0;
	v->n_held = PAST_FRAMES;
	v->n_flushed = 0;
	for (unsigned c = 0; c < v->channels; c++)
		memset(v->held[c], 0, PAST_FRAMES * sizeof(float));
}

void varirate_set_ppm(struct varirate *v, double ppm)
{
	double held = ppm < -VARIRATE_MAX_PPM ? -VARIRATE_MAX_PPM : ppm > VARIRATE_MAX_PPM ? VARIRATE_MAX_PPM : ppm;
	int64_t more = held == held ? llrint(held * 1e-6 * 0x1p48) : 0;
	v->target_q48 = VARIRATE_ONE + (uint64_t)more;
}

double varirate_ppm(const struct varirate *v)
{
	return (double)(int64_t)(v->step_q48 - VARIRATE_ONE) * 0x1p-48 * 1e6;
}

double varirate_behind_frames(const struct varirate *v)
{
	return (double)v->n_held - PAST_FRAMES - (double)v->place_q48 * 0x1p-48;
}

bool varirate_is_exact(const struct varirate *v)
{
	return v->step_q48 == VARIRATE_ONE && v->target_q48 == VARIRATE_ONE && !v->place_q48;
}

size_t varirate_need(const struct varirate *v, size_t n_out)
{
	if (!n_out)
		return 0;
	/* The place of the last frame, were all steps the larger of the two there are. */
	uint64_t step = v->step_q48 > v->target_q48 ? v->step_q48 : v->target_q48;
	unsigned __int128 place = (unsigned __int128)step * (n_out - 1) + v->place_q48;
	size_t wanted = (size_t)(place >> 48) + VARIRATE_TAPS;
	return wanted > v->n_held ? wanted - v->n_held : 0;
}

/* Where the output frames of a chunk lie in what is held. */
struct plan {
	uint16_t at[VARIRATE_CHUNK_FRAMES];
	uint64_t place_q48[VARIRATE_CHUNK_FRAMES];
	size_t n_frames;
	size_t n_wanted; /* frames to be held for them */
	size_t next;     /* where the frame after them lies */
	bool exact;      /* all of them are frames of the input, one after the other */
};

static void plan_chunk(struct varirate *v, struct plan *plan, size_t n_out, size_t n_there, int64_t slew_q48)
{
	size_t at = 0, n = 0;
	plan->exact = true;
	plan->n_wanted = 0;
	for (; n < n_out && n < VARIRATE_CHUNK_FRAMES && at + VARIRATE_TAPS <= n_there; n++) {
		plan->at[n] = (uint16_t)at;
		plan->place_q48[n] = v->place_q48;
		plan->exact &= !v->place_q48;
		plan->n_wanted = at + VARIRATE_TAPS;
		v->step_q48 += (uint64_t)slew_q48;
		uint64_t place = v->place_q48 + v->step_q48;
		at += (size_t)(place >> 48);
		v->place_q48 = place & (VARIRATE_ONE - 1);
	}
	plan->n_frames = n;
	plan->next = at;
}

static void make_chunk(struct varirate *v, const struct plan *plan, float *dst)
{
	if (!plan->exact)
		v->rows_fn(v->rows, v->table, plan->place_q48, plan->n_frames);
	for (unsigned c = 0; c < v->channels; c++) {
		if (!plan->exact)
			v->sum_fn(v->made[c], v->held[c], v->rows, plan->at, plan->n_frames);
		else
			memcpy(v->made[c], v->held[c] + PAST_FRAMES, plan->n_frames * sizeof(float));
	}
	v->join_fn(dst, (const float *const *)v->made, v->channels, plan->n_frames);
}

/* src NULL: silence. */
static void take(struct varirate *v, const float *src, size_t n_frames)
{
	for (unsigned c = 0; c < v->channels; c++)
		v->into[c] = v->held[c] + v->n_held;
	for (unsigned c = 0; c < v->channels && !src; c++)
		memset(v->into[c], 0, n_frames * sizeof(float));
	if (src)
		v->split_fn(v->into, src, v->channels, n_frames);
	v->n_held += n_frames;
}

static void drop(struct varirate *v, size_t n_frames)
{
	v->n_held -= n_frames;
	for (unsigned c = 0; c < v->channels; c++)
		memmove(v->held[c], v->held[c] + n_frames, v->n_held * sizeof(float));
}

size_t varirate_run(struct varirate *v, float *dst, size_t n_out, const float *src, size_t n_in, size_t *n_used)
{
	size_t made = 0, used = 0;
	int64_t slew_q48 = n_out ? (int64_t)(v->target_q48 - v->step_q48) / (int64_t)n_out : 0;
	while (made < n_out) {
		struct plan plan;
		plan_chunk(v, &plan, n_out - made, v->n_held + (n_in - used), slew_q48);
		/* Too little even for one: it is less than a window, and is held. */
		size_t n = plan.n_frames ? plan.n_wanted - (plan.n_wanted < v->n_held ? plan.n_wanted : v->n_held) : n_in - used;
		take(v, src ? src + used * v->channels : NULL, n);
		used += n;
		if (!plan.n_frames)
			break;
		make_chunk(v, &plan, dst + made * v->channels);
		drop(v, plan.next);
		made += plan.n_frames;
	}
	if (made == n_out && n_out)
		v->step_q48 = v->target_q48;
	*n_used = used;
	return made;
}

size_t varirate_flush(struct varirate *v, float *dst, size_t n_out)
{
	double left = ceil(varirate_behind_frames(v) - (double)v->n_flushed);
	size_t n = left > 0 ? (size_t)left : 0, used = 0;

	n = varirate_run(v, dst, n < n_out ? n : n_out, NULL, SIZE_MAX / 2, &used);
	v->n_flushed += used;
	return n;
}
