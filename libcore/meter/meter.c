#include "meter/meter.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Left and right where the layout says so; a pair of equal numbers where not. */
static void find_pair(const struct track *t, int pair[2])
{
	bool front = t->layout == TRACK_LAYOUT_WAVE ? (t->wave_mask & 3) == 3 : t->channels == 2;
	pair[0] = 0;
	pair[1] = front && t->channels >= 2 ? 1 : 0;
}

static enum err init_loudness(struct meter *m, const struct track *t)
{
	if (m->options.levels_only || m->rate_hz < LOUDNESS_MIN_RATE_HZ || t->layout == TRACK_LAYOUT_AMBISONIC)
		return ERR_OK;
	float *weights = malloc(t->channels * sizeof(*weights));
	if (!weights)
		return ERR_NOMEM;
	loudness_weights(t, m->options.dual_mono, weights);
	enum err e = loudness_init(&m->loudness, m->rate_hz, t->channels, weights);
	free(weights);
	m->has_loudness = e == ERR_OK;
	return e;
}

static enum err init_silence(struct meter *m)
{
	if (m->options.no_silence)
		return ERR_OK;
	double frames = ceil(m->options.silence_min_s * m->rate_num / m->rate_den);
	enum err e = silence_init(&m->silence, m->n_channels, m->options.silence_factor, frames < 1 ? 1 : (uint64_t)frames);
	m->has_silence = e == ERR_OK;
	return e;
}

static enum err init_parts(struct meter *m, const struct track *t)
{
	unsigned bits = t->valid_bits ? t->valid_bits : 8 * track_sample_bytes(t->sample);
	struct amplitude_options options = {
		.full_scale = amplitude_full_scale(t->sample == SAMPLE_F32 || t->sample == SAMPLE_F64 ? 0 : bits),
		.no_true_peak = m->options.levels_only,
	};
	find_pair(t, options.pair);
	enum err e = convert_init(&m->to_f32, t->sample, SAMPLE_F32, false, 1);
	if (!e)
		e = convert_init(&m->to_f64, t->sample, SAMPLE_F64, false, 1);
	if (!e)
		e = amplitude_init(&m->amplitude, m->rate_hz, m->n_channels, &options);
	if (!e)
		e = init_loudness(m, t);
	if (!e)
		e = init_silence(m);
	if (!e && m->options.plot) {
		e = plot_init(&m->plot, m->rate_hz, m->n_channels);
		m->has_plot = e == ERR_OK;
	}
	return e;
}

enum err meter_init(struct meter *m, const struct track *t, const struct meter_options *options)
{
	memset(m, 0, sizeof(*m));
	if (!track_is_pcm(t) || t->channels == 0 || t->rate_num == 0 || t->rate_den == 0)
		return ERR_ARG;
	m->options = *options;
	m->id = t->id;
	track_name(t, m->name);
	m->rate_num = t->rate_num;
	m->rate_den = t->rate_den;
	m->rate_hz = (uint32_t)(((uint64_t)t->rate_num + t->rate_den / 2) / t->rate_den);
	m->n_channels = t->channels;
	m->frame_bytes = t->frame_bytes;
	m->layout = t->layout;
	m->wave_mask = t->wave_mask;

	m->channel_names = calloc(t->channels, sizeof(*m->channel_names));
	/* 32 bytes aligned: a vector load then never touches two cache lines. */
	m->work = aligned_alloc(64, units_round_up((size_t)AMPLITUDE_BLOCK_FRAMES * t->channels * sizeof(*m->work), 64));
	m->zeros = calloc(AMPLITUDE_BLOCK_FRAMES, t->frame_bytes);
	enum err e = m->channel_names && m->work && m->zeros ? init_parts(m, t) : ERR_NOMEM;
	if (e) {
		meter_release(m);
		return e;
	}
	for (unsigned c = 0; c < t->channels; c++) {
		char out[16];
		const char *name = track_channel_name(t, c, out);
		size_t length = strnlen(name, sizeof(out) - 1);
		memcpy(m->channel_names[c], name, length);
	}
	return ERR_OK;
}

void meter_release(struct meter *m)
{
	plot_release(&m->plot);
	compare_release(&m->compare);
	silence_release(&m->silence);
	loudness_release(&m->loudness);
	amplitude_release(&m->amplitude);
	free(m->channel_names);
	free(m->work);
	free(m->zeros);
	free(m->exact);
	memset(m, 0, sizeof(*m));
}

bool meter_fits(const struct meter *m, const struct track *t)
{
	return track_is_pcm(t) && t->id == m->id && t->rate_num == m->rate_num && t->rate_den == m->rate_den &&
		t->channels == m->n_channels && t->sample == m->to_f32.from && t->layout == m->layout && t->wave_mask == m->wave_mask;
}

enum err meter_compare(struct meter *m, compare_read_fn *read, void *from)
{
	assert(!m->continuity.started);
	m->exact = malloc((size_t)AMPLITUDE_BLOCK_FRAMES * m->n_channels * sizeof(*m->exact));
	if (!m->exact)
		return ERR_NOMEM;
	enum err e = compare_init(&m->compare, m->rate_hz, m->n_channels, read, from);
	m->has_compare = e == ERR_OK;
	return e;
}

/* Time without frames: the windows of loudness run on, silence lasts, the rest waits. */
static enum err pass_time(struct meter *m, uint64_t n_frames, bool lost)
{
	if (n_frames == 0)
		return ERR_OK;
	amplitude_break(&m->amplitude);
	if (m->has_loudness)
		loudness_add_silence(&m->loudness, n_frames);
	if (m->has_silence)
		silence_add_gap(&m->silence, n_frames);
	if (m->has_plot)
		plot_add_gap(&m->plot, n_frames, lost);
	return m->has_compare ? compare_add_gap(&m->compare, n_frames) : ERR_OK;
}

/* What the block adds to the picture; the others have measured it already. */
static void draw_on(struct meter *m, const float *frames, size_t n_frames)
{
	const struct amplitude *a = &m->amplitude;
	for (unsigned c = 0; c < m->n_channels; c++)
		plot_peak(&m->plot, c, (double)fmaxf(a->true_peaks[c], a->channels[c].levels.peak), frames, n_frames);
	plot_add(&m->plot, frames, n_frames);
	if (m->has_loudness)
		plot_loudness(&m->plot, loudness_momentary_lufs(&m->loudness), loudness_short_term_lufs(&m->loudness));
}

static enum err add_block(struct meter *m, const uint8_t *bytes, size_t n_frames)
{
	size_t n_samples = n_frames * m->n_channels;
	if (m->has_compare) {
		convert_run(&m->to_f64, m->exact, bytes, n_samples);
		enum err e = compare_add(&m->compare, m->exact, n_frames);
		if (e)
			return e;
	}
	const float *frames = m->work;
	if (m->to_f32.from == SAMPLE_F32 && (uintptr_t)bytes % sizeof(float) == 0)
		frames = (const float *)(const void *)bytes;
	else
		convert_run(&m->to_f32, m->work, bytes, n_samples);

	frames = amplitude_add(&m->amplitude, frames, n_frames);
	if (m->has_loudness)
		loudness_add(&m->loudness, frames, n_frames);
	if (m->has_silence)
		silence_add(&m->silence, frames, n_frames);
	if (m->has_plot)
		draw_on(m, frames, n_frames);
	return ERR_OK;
}

enum err meter_data(struct meter *m, const struct packet *p)
{
	/* A payload shorter than its duration says is measured as far as it goes. */
	bool silent = p->flags & PACKET_SILENT && p->payload_bytes == 0;
	uint32_t n_frames = p->dur;
	if (!silent && p->payload_bytes / m->frame_bytes < n_frames)
		n_frames = p->payload_bytes / m->frame_bytes;
	enum err e = pass_time(m, continuity_data(&m->continuity, p->pos, n_frames, p->flags), true);
	const uint8_t *at = p->payload;
	while (!e && n_frames) {
		uint32_t n = n_frames < AMPLITUDE_BLOCK_FRAMES ? n_frames : AMPLITUDE_BLOCK_FRAMES;
		e = add_block(m, silent ? m->zeros : at, n);
		at += (size_t)n * m->frame_bytes;
		n_frames -= n;
	}
	return e;
}

enum err meter_gap(struct meter *m, const struct packet *p, unsigned reason)
{
	return pass_time(m, continuity_gap(&m->continuity, p->pos, p->dur, reason), continuity_is_loss(reason));
}

enum err meter_end(struct meter *m)
{
	if (m->ended)
		return ERR_OK;
	m->ended = true;
	if (m->has_plot)
		plot_finish(&m->plot);
	return m->has_compare ? compare_finish(&m->compare) : ERR_OK;
}

double meter_true_peak_dbtp(const struct meter *m)
{
	double peak = (double)NAN;
	for (unsigned c = 0; c < m->n_channels; c++)
		peak = fmax(peak, amplitude_read(&m->amplitude, c).true_peak_dbtp);
	return peak;
}

double meter_sample_peak_dbfs(const struct meter *m)
{
	double peak = (double)NAN;
	for (unsigned c = 0; c < m->n_channels; c++)
		peak = fmax(peak, amplitude_read(&m->amplitude, c).sample_peak_dbfs);
	return peak;
}

struct loudness_values meter_loudness(const struct meter *m)
{
	if (m->has_loudness)
		return loudness_read(&m->loudness);
	const double none = (double)NAN;
	return (struct loudness_values){ none, none, none, none, none, none, none, none };
}
