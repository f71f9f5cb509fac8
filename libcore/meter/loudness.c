#include "meter/loudness.h"

#include "base/units.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Steps of 10 ms are the atoms.  Ten steps make a hop of 100 ms, whose length in frames is fixed; where it is not a
 * multiple of ten the steps differ by a frame, always in the same pattern, so any forty steps in a row have the
 * length of four hops and the windows never need their own lengths.
 *
 * The gates want to know, at any time, the mean energy of all blocks louder than a threshold that moves.  Blocks of
 * the same 0.001 LU share a bin, with their count and the exact sum of their energies.  Only the bin the threshold
 * falls into is decided as a whole, by the mean of what is in it; with a single block there, or many of one steady
 * tone, that is exact too.
 */

#define ABSOLUTE_GATE_LUFS (-70.0)
#define OFFSET_LU (-0.691)          /* BS.1770-4, equation 2 */
#define BINS_PER_LU 1000.0
#define N_BINS 110000u              /* -70 … +40 LUFS; what is louder shares the last bin */
#define NOTHING 1e-20               /* -200 LUFS: what is left of the filters' ringing in digital silence */
#define ZERO_FRAMES 256u
#define STILL_SECONDS 4u            /* of silence: the windows are empty and the filter has died away by then */

static double energy_to_lufs(double mean_square)
{
	return mean_square > NOTHING ? OFFSET_LU + 10.0 * log10(mean_square) : (double)NAN;
}

static double lufs_to_energy(double lufs)
{
	return pow(10.0, (lufs - OFFSET_LU) / 10.0);
}

static unsigned bin_of(double mean_square)
{
	double bin = (energy_to_lufs(mean_square) - ABSOLUTE_GATE_LUFS) * BINS_PER_LU;
	if (!(bin > 0))
		return 0;
	return bin < N_BINS - 1 ? (unsigned)bin : N_BINS - 1;
}

/* ---- weights ---- */

enum place { PLACE_FRONT, PLACE_LFE, PLACE_SIDE, PLACE_BACK };

/* WAVE mask bits in order: FL FR FC LFE BL BR FLC FRC BC SL SR TC TFL TFC TFR TBL TBC TBR, then LFE2 at bit 23 in newer lists. */
static enum place wave_place(unsigned bit)
{
	switch (bit) {
	case 3:
	case 23:
		return PLACE_LFE;
	case 4:
	case 5:
		return PLACE_BACK;
	case 9:
	case 10:
		return PLACE_SIDE;
	default:
		return PLACE_FRONT;
	}
}

/* Vorbis order, RFC 7845 section 5.1.1.2: channel counts 1…8. */
static enum place opus_place(unsigned n_channels, unsigned i)
{
	static const char places[8][9] = {
		"f", "ff", "fff", "ffbb", "fffbb", "fffbbl", "fffssfl", "fffssbbl",
	};
	if (n_channels < 1 || n_channels > 8)
		return PLACE_FRONT;
	switch (places[n_channels - 1][i]) {
	case 'b':
		return PLACE_BACK;
	case 's':
		return PLACE_SIDE;
	case 'l':
		return PLACE_LFE;
	default:
		return PLACE_FRONT;
	}
}

static enum place wave_channel_place(uint64_t mask, unsigned i)
{
	for (unsigned bit = 0; bit < 64; bit++)
		if (mask >> bit & 1 && i-- == 0)
			return wave_place(bit);
	return PLACE_FRONT;
}

static enum place channel_place(const struct track *t, unsigned i)
{
	if (t->layout == TRACK_LAYOUT_WAVE)
		return wave_channel_place(t->wave_mask, i);
	if (t->layout == TRACK_LAYOUT_OPUS && t->opus_family <= 1)
		return opus_place(t->channels, i);
	return PLACE_FRONT;
}

void loudness_weights(const struct track *t, bool dual_mono, float *weights)
{
	bool has_sides = false;
	for (unsigned i = 0; i < t->channels; i++)
		has_sides |= channel_place(t, i) == PLACE_SIDE;

	for (unsigned i = 0; i < t->channels; i++) {
		enum place place = channel_place(t, i);
		bool is_surround = place == PLACE_SIDE || (place == PLACE_BACK && !has_sides);
		weights[i] = place == PLACE_LFE ? 0.0f : is_surround ? 1.41f : 1.0f;
	}
	if (t->channels == 1 && dual_mono)
		weights[0] = 2.0f;
}

/* ---- life ---- */

static uint32_t step_end(const struct loudness *l, unsigned step)
{
	return (uint32_t)((uint64_t)l->hop_frames * (step + 1) / LOUDNESS_STEPS_PER_HOP);
}

enum err loudness_init(struct loudness *l, uint32_t rate_hz, unsigned n_channels, const float *weights)
{
	memset(l, 0, sizeof(*l));
	if (rate_hz < LOUDNESS_MIN_RATE_HZ)
		return ERR_LIMIT;
	l->rate_hz = rate_hz;
	l->n_channels = n_channels;
	l->hop_frames = (rate_hz + 5) / 10;
	l->step_end_frames = step_end(l, 0);

	enum err e = kweight_init(&l->kweight, rate_hz, n_channels);
	if (e)
		return e;
	l->weights = malloc(n_channels * sizeof(*l->weights));
	l->energy = calloc(n_channels, sizeof(*l->energy));
	l->zeros = calloc((size_t)ZERO_FRAMES * n_channels, sizeof(*l->zeros));
	/* Pages of the histograms are real only where loudness falls. */
	l->block_count = calloc(N_BINS, sizeof(*l->block_count));
	l->block_energy = calloc(N_BINS, sizeof(*l->block_energy));
	l->range_count = calloc(N_BINS, sizeof(*l->range_count));
	if (!l->weights || !l->energy || !l->zeros || !l->block_count || !l->block_energy || !l->range_count) {
		loudness_release(l);
		return ERR_NOMEM;
	}
	memcpy(l->weights, weights, n_channels * sizeof(*l->weights));
	return ERR_OK;
}

void loudness_release(struct loudness *l)
{
	kweight_release(&l->kweight);
	free(l->weights);
	free(l->energy);
	free(l->zeros);
	free(l->block_count);
	free(l->block_energy);
	free(l->range_count);
	memset(l, 0, sizeof(*l));
}

/* ---- measuring ---- */

/* The last n steps, added anew: running sums would keep what rounding left of loud passages. */
static double ring_sum(const struct loudness *l, unsigned n_steps)
{
	double sum = 0;
	unsigned at = l->ring_next;
	for (unsigned i = 0; i < n_steps; i++) {
		at = at ? at - 1 : LOUDNESS_SHORT_TERM_STEPS - 1;
		sum += l->ring[at];
	}
	return sum;
}

static double momentary_mean(const struct loudness *l)
{
	return l->momentary_energy / (4.0 * l->hop_frames);
}

static double short_term_mean(const struct loudness *l)
{
	return l->short_term_energy / (30.0 * l->hop_frames);
}

/* Every 100 ms: one gating block for the integrated loudness, one short-term value for the range. */
static void close_hop(struct loudness *l)
{
	l->momentary_energy = ring_sum(l, LOUDNESS_MOMENTARY_STEPS);
	l->short_term_energy = ring_sum(l, LOUDNESS_SHORT_TERM_STEPS);
	double gate = lufs_to_energy(ABSOLUTE_GATE_LUFS);

	double block = momentary_mean(l);
	if (l->n_steps >= LOUDNESS_MOMENTARY_STEPS && block >= gate) {
		unsigned bin = bin_of(block);
		l->block_count[bin]++;
		l->block_energy[bin] += block;
		l->n_blocks++;
		l->blocks_energy += block;
		if (bin > l->block_highest)
			l->block_highest = bin;
	}

	double value = short_term_mean(l);
	if (l->n_steps >= LOUDNESS_SHORT_TERM_STEPS && value >= gate) {
		unsigned bin = bin_of(value);
		l->range_count[bin]++;
		l->n_range++;
		l->range_energy += value;
		if (bin > l->range_highest)
			l->range_highest = bin;
	}
}

/* Every 10 ms. */
static void close_step(struct loudness *l)
{
	double energy = 0;
	for (unsigned c = 0; c < l->n_channels; c++) {
		energy += (double)l->weights[c] * l->energy[c];
		l->energy[c] = 0;
	}

	unsigned oldest = l->ring_next;
	unsigned momentary_oldest = (oldest + LOUDNESS_SHORT_TERM_STEPS - LOUDNESS_MOMENTARY_STEPS) % LOUDNESS_SHORT_TERM_STEPS;
	l->momentary_energy += energy - l->ring[momentary_oldest];
	l->short_term_energy += energy - l->ring[oldest];
	l->ring[oldest] = energy;
	l->ring_next = (oldest + 1) % LOUDNESS_SHORT_TERM_STEPS;
	l->n_steps++;

	if (++l->step == LOUDNESS_STEPS_PER_HOP) {
		l->step = 0;
		l->hop_done_frames = 0;
		close_hop(l);
	}
	l->step_end_frames = step_end(l, l->step);

	if (l->n_steps >= LOUDNESS_MOMENTARY_STEPS)
		l->momentary_max = fmax(l->momentary_max, momentary_mean(l));
	if (l->n_steps >= LOUDNESS_SHORT_TERM_STEPS)
		l->short_term_max = fmax(l->short_term_max, short_term_mean(l));
}

void loudness_add(struct loudness *l, const float *frames, size_t n_frames)
{
	while (n_frames) {
		size_t n = l->step_end_frames - l->hop_done_frames;
		if (n > n_frames)
			n = n_frames;
		kweight_run(&l->kweight, l->energy, frames, n);
		frames += n * l->n_channels;
		n_frames -= n;
		l->hop_done_frames += (uint32_t)n;
		if (l->hop_done_frames == l->step_end_frames)
			close_step(l);
	}
}

void loudness_add_silence(struct loudness *l, uint64_t n_frames)
{
	uint64_t still_frames = (uint64_t)STILL_SECONDS * l->rate_hz;
	if (n_frames > still_frames) {
		/* Past that, whole hops of silence change nothing that is kept. */
		n_frames = still_frames + (n_frames - still_frames) % l->hop_frames;
	}
	while (n_frames) {
		size_t n = n_frames < ZERO_FRAMES ? (size_t)n_frames : ZERO_FRAMES;
		loudness_add(l, l->zeros, n);
		n_frames -= n;
	}
}

/* ---- reading ---- */

static double integrated(const struct loudness *l)
{
	if (l->n_blocks == 0)
		return (double)NAN;
	double gate = l->blocks_energy / (double)l->n_blocks * 0.1; /* -10 LU */
	unsigned first = bin_of(gate);
	uint64_t n = 0;
	double energy = 0;
	for (unsigned bin = first; bin <= l->block_highest; bin++) {
		if (bin == first && l->block_energy[bin] < gate * l->block_count[bin])
			continue;
		n += l->block_count[bin];
		energy += l->block_energy[bin];
	}
	return n ? energy_to_lufs(energy / (double)n) : (double)NAN;
}

/* The bin that holds the value of this rank (0 the lowest) of those from `first` up. */
static unsigned bin_of_rank(const struct loudness *l, unsigned first, uint64_t rank)
{
	unsigned bin = first;
	for (uint64_t below = 0; bin < l->range_highest; bin++) {
		below += l->range_count[bin];
		if (below > rank)
			break;
	}
	return bin;
}

/* EBU Tech 3342: between the 10th and the 95th percentile of what is above -70 LUFS and above -20 LU of the mean. */
static void read_range(const struct loudness *l, struct loudness_values *v)
{
	v->range_lu = v->range_low_lufs = v->range_high_lufs = (double)NAN;
	if (l->n_range == 0)
		return;
	unsigned first = bin_of(l->range_energy / (double)l->n_range * 0.01);
	uint64_t n = 0;
	for (unsigned bin = first; bin <= l->range_highest; bin++)
		n += l->range_count[bin];
	assert(n > 0);
	unsigned low = bin_of_rank(l, first, (uint64_t)((double)(n - 1) * 0.10 + 0.5));
	unsigned high = bin_of_rank(l, first, (uint64_t)((double)(n - 1) * 0.95 + 0.5));
	v->range_lu = (high - low) / BINS_PER_LU;
	v->range_low_lufs = ABSOLUTE_GATE_LUFS + low / BINS_PER_LU;
	v->range_high_lufs = ABSOLUTE_GATE_LUFS + high / BINS_PER_LU;
}

double loudness_momentary_lufs(const struct loudness *l)
{
	return l->n_steps >= LOUDNESS_MOMENTARY_STEPS ? energy_to_lufs(momentary_mean(l)) : (double)NAN;
}

double loudness_short_term_lufs(const struct loudness *l)
{
	return l->n_steps >= LOUDNESS_SHORT_TERM_STEPS ? energy_to_lufs(short_term_mean(l)) : (double)NAN;
}

struct loudness_values loudness_read(const struct loudness *l)
{
	struct loudness_values v = {
		.momentary_lufs = loudness_momentary_lufs(l),
		.short_term_lufs = loudness_short_term_lufs(l),
		.integrated_lufs = integrated(l),
		.momentary_max_lufs = energy_to_lufs(l->momentary_max),
		.short_term_max_lufs = energy_to_lufs(l->short_term_max),
	};
	read_range(l, &v);
	return v;
}
