#include "stage/mixer.h"

#include "base/cpu.h"
#include "base/units.h"
#include "mix/layouts.h"
#include "rt/wake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE_BLOCK_MS 20u

static enum err no_memory(struct mixer *m)
{
	return err_say(&m->why, ERR_NOMEM, "mixing", "%s", err_text(ERR_NOMEM));
}

/* ---- the matrix of a track ---- */

static bool has_sides(const struct mixer *m)
{
	return m->channels >= 2 && (m->wave_mask & 3) == 3;
}

/* Left and right are the first two of any layout that has them. */
static bool can_pan(const struct mixer *m, const struct mixin_track *t)
{
	return has_sides(m) && (t->channels <= 2 || m->channels == 2);
}

static void pan_into(const struct mixer *m, const struct mixin_track *t, double *coef, double pan)
{
	double p[4];

	if (t->channels <= 2) {
		memset(coef, 0, (size_t)m->channels * t->channels * sizeof(*coef));
		layouts_pan(coef, t->channels, pan);
		return;
	}
	layouts_pan(p, 2, pan);
	for (unsigned i = 0; i < t->channels; i++) {
		double l = coef[i], r = coef[t->channels + i];
		coef[i] = p[0] * l + p[1] * r;
		coef[t->channels + i] = p[2] * l + p[3] * r;
	}
}

static enum err fill_matrix(struct mixer *m, const struct mixin_track *t, struct mixer_way *way, const struct desk_track *desk)
{
	const size_t n = (size_t)m->channels * t->channels;

	if (way->coef_room < n) {
		free(way->coef);
		way->coef = calloc(n, sizeof(*way->coef));
		way->coef_room = (unsigned)n;
		if (!way->coef)
			return no_memory(m);
	}
	if (m->matrix.rows) {
		unsigned first = m->matrix_is_whole ? way->matrix_column : 0;
		if (first + t->channels > m->matrix.columns)
			return err_say(&m->why, ERR_FORMAT, t->name, "has %u channels, the matrix has no columns for them", t->channels);
		for (unsigned o = 0; o < m->channels; o++)
			memcpy(way->coef + (size_t)o * t->channels, m->matrix.coef + (size_t)o * m->matrix.columns + first, t->channels * sizeof(double));
		return ERR_OK;
	}
	if (layouts_matrix(way->coef, m->channels, m->wave_mask, t->channels, t->wave_mask))
		return err_say(&m->why, ERR_ARG, t->name, "%u channels without a layout do not go into %u: --matrix says how", t->channels, m->channels);
	if (desk->is_panned && can_pan(m, t))
		pan_into(m, t, way->coef, desk->pan);
	return ERR_OK;
}

/* The desk's settings for track i become its matrix, within a ramp. */
static enum err set_way(struct mixer *m, unsigned i, uint32_t ramp_frames)
{
	const struct mixin_track *t = m->in.tracks[i];
	struct mixer_way *way = m->ways[i];

	control_lock(&m->control);
	struct desk_track desk = m->desk.tracks[i];
	double gain = desk_gain(&m->desk, i);
	control_unlock(&m->control);

	enum err e = fill_matrix(m, t, way, &desk);
	if (e)
		return e;
	for (size_t k = 0; k < (size_t)m->channels * t->channels; k++)
		way->coef[k] *= gain;
	bus_track_set(&way->bus, way->coef, ramp_frames);
	return ERR_OK;
}

/* The track has another format than before, or its first. */
static enum err renew_way(struct mixer *m, unsigned i)
{
	struct mixin_track *t = m->in.tracks[i];
	struct mixer_way *way = m->ways[i];
	enum err e;

	bus_track_release(&way->bus);
	t->is_new = false;
	if ((e = bus_track_init(&way->bus, t->format, t->channels, m->channels, cpu_flags())))
		return e == ERR_NOMEM ? no_memory(m) : err_say(&m->why, e, t->name, "%s", err_text(e));
	return set_way(m, i, 0);
}

/* ---- tracks and outputs ---- */

static enum err open_out(struct mixer *m, const char *name)
{
	const struct mixer_options *o = &m->options;
	struct track track = track_pcm(m->in.rate_hz, (uint16_t)m->channels, o->format);
	enum err e;

	if (m->n_outs == m->outs_room) {
		unsigned room = m->outs_room ? 2 * m->outs_room : 8;
		struct mixer_out *more = realloc(m->outs, room * sizeof(*more));
		if (!more)
			return no_memory(m);
		m->outs = more;
		m->outs_room = room;
	}
	struct mixer_out *out = &m->outs[m->n_outs];
	memset(out, 0, sizeof(*out));
	for (int dithered = 0; dithered < 2; dithered++)
		if ((e = convert_init(&out->convert[dithered], o->limits ? SAMPLE_F32 : SAMPLE_F64, o->format, dithered && o->dither, m->n_outs)))
			return err_say(&m->why, e, "-f", "%s", err_text(e));
	if (o->limits) {
		if ((e = limiter_init(&out->limiter, m->in.rate_hz, m->channels, o->ceiling_dbtp, cpu_flags())))
			return no_memory(m);
		out->skip_frames = out->limiter.delay_frames;
	}
	out->next_pos = m->pos;
	m->n_outs++;

	track.id = (uint16_t)m->n_outs;
	track.first_pos = track.next_pos = m->pos;
	track.nominal_dur = m->block_frames;
	track.largest_object_bytes = m->block_frames * track.frame_bytes;
	if (m->wave_mask) {
		track.layout = TRACK_LAYOUT_WAVE;
		track.wave_mask = m->wave_mask;
	} else {
		track.layout = TRACK_LAYOUT_DISCRETE;
		track.wave_mask = 0;
	}
	if (!m->out)
		return ERR_OK;
	e = name[0] ? track_set_name(&track, name) : ERR_OK;
	if (e)
		err_say(&m->why, e, "mixing", "%s", err_text(e));
	else if ((e = writer_announce(m->out, &track)))
		m->why = m->out->why;
	track_release(&track);
	return e;
}

/* Every track that the inputs have met gets a place on the desk, a way into the mix and, mix-minus, a mix. */
static enum err join_tracks(struct mixer *m)
{
	enum err e;

	for (unsigned i = m->n_ways; i < m->in.n_tracks; i++) {
		if (m->n_ways == m->ways_room) {
			unsigned room = m->ways_room ? 2 * m->ways_room : 16;
			struct mixer_way **more = realloc(m->ways, room * sizeof(struct mixer_way *));
			if (!more)
				return no_memory(m);
			m->ways = more;
			m->ways_room = room;
		}
		if (!(m->ways[i] = calloc(1, sizeof(struct mixer_way))))
			return no_memory(m);
		m->n_ways++;
		m->ways[i]->matrix_column = i ? m->ways[i - 1]->matrix_column + m->in.tracks[i - 1]->channels : 0;
		control_lock(&m->control);
		e = desk_join(&m->desk, m->in.tracks[i]->name);
		control_unlock(&m->control);
		if (e)
			return no_memory(m);
	}
	return ERR_OK;
}

static enum err join_outs(struct mixer *m)
{
	enum err e;

	if (!m->options.minus)
		return m->n_outs ? ERR_OK : open_out(m, m->options.name ? m->options.name : "mix");
	while (m->n_outs < m->n_ways) {
		if (minus_join(&m->minus))
			return no_memory(m);
		if ((e = open_out(m, m->in.tracks[m->n_outs]->name)))
			return e;
	}
	return ERR_OK;
}

/* ---- opening ---- */

static enum err read_matrix(struct mixer *m)
{
	unsigned all = 0;
	bool each = true;
	enum err e = matrixfile_read(&m->matrix, m->options.matrix_path, &m->why);

	if (e)
		return e;
	for (unsigned i = 0; i < m->in.n_tracks; i++) {
		all += m->in.tracks[i]->channels;
		each &= m->in.tracks[i]->channels == m->matrix.columns;
	}
	m->matrix_is_whole = all == m->matrix.columns;
	if (!m->matrix_is_whole && !each)
		return err_say(&m->why, ERR_FORMAT, m->options.matrix_path, "%u columns: the tracks have %u channels together, and not %u each",
			m->matrix.columns, all, m->matrix.columns);
	if (m->options.channels && m->options.channels != m->matrix.rows)
		return err_say(&m->why, ERR_ARG, m->options.matrix_path, "%u rows, but -c asks for %u channels", m->matrix.rows, m->options.channels);
	m->channels = m->matrix.rows;
	m->wave_mask = track_usual_mask(m->channels);
	return ERR_OK;
}

static bool is_panned(const struct mixer *m)
{
	for (unsigned i = 0; i < m->desk.n_tracks; i++)
		if (m->desk.tracks[i].is_panned)
			return true;
	return false;
}

static enum err find_channels(struct mixer *m)
{
	if (m->options.matrix_path)
		return read_matrix(m);
	if (m->options.channels) {
		m->channels = m->options.channels;
		m->wave_mask = track_usual_mask(m->channels);
		return ERR_OK;
	}
	for (unsigned i = 0; i < m->in.n_tracks; i++)
		if (m->in.tracks[i]->channels > m->channels) {
			m->channels = m->in.tracks[i]->channels;
			m->wave_mask = m->in.tracks[i]->wave_mask;
		}
	if (m->channels == 1 && is_panned(m)) {
		m->channels = 2;
		m->wave_mask = track_usual_mask(2);
	}
	return ERR_OK;
}

static enum err set_desk(struct mixer *m)
{
	const struct opt_list *gains = m->options.gains, *pans = m->options.pans;
	enum err e = ERR_OK;

	for (unsigned i = 0; gains && i < gains->n && !e; i++)
		e = desk_option(&m->desk, "gain", "-g", gains->value[i], &m->why);
	for (unsigned i = 0; pans && i < pans->n && !e; i++)
		e = desk_option(&m->desk, "pan", "--pan", pans->value[i], &m->why);
	return e;
}

static enum err check_pans(struct mixer *m)
{
	for (unsigned i = 0; i < m->desk.n_tracks; i++)
		if (m->desk.tracks[i].is_panned && !can_pan(m, m->in.tracks[i]))
			return err_say(&m->why, ERR_ARG, "--pan", "track %u (%u channels) cannot be panned in a mix of %u channels", i + 1,
				m->in.tracks[i]->channels, m->channels);
	return ERR_OK;
}

static enum err take_buffers(struct mixer *m)
{
	const size_t bytes = track_sample_bytes(m->options.format), most = PACKET_MAX_PAYLOAD_BYTES / (bytes * m->channels);
	uint32_t block = m->in.block_frames;

	if (m->options.minus && block > MIXER_MINUS_FRAMES)
		block = MIXER_MINUS_FRAMES;
	if (m->options.is_live && block > units_scale(m->in.rate_hz, LIVE_BLOCK_MS, 1000))
		block = (uint32_t)units_scale_up(m->in.rate_hz, LIVE_BLOCK_MS, 1000);
	m->block_frames = block < most ? block : (uint32_t)most;
	m->ramp_frames = (uint32_t)units_scale_up(m->in.rate_hz, MIXER_RAMP_MS, 1000);

	const size_t n = (size_t)m->block_frames * m->channels;
	m->sum = aligned_alloc(64, (size_t)units_round_up(n * sizeof(double), 64));
	m->work = aligned_alloc(64, (size_t)units_round_up(n * sizeof(float), 64));
	m->shared = aligned_alloc(64, (size_t)units_round_up(n * bytes, 64));
	if (!m->sum || !m->work || !m->shared)
		return no_memory(m);
	return m->options.minus && minus_init(&m->minus, m->channels, m->block_frames) ? no_memory(m) : ERR_OK;
}

enum err mixer_open(struct mixer *m, char *const *names, unsigned n, const struct mixer_options *o, struct tool *tool, struct err_why *why)
{
	enum err e;

	m->options = *o;
	m->tool = tool;
	dsp_init(&m->dsp, cpu_flags());
	desk_init(&m->desk);
	if ((e = mixin_open(&m->in, names, n, &o->in, &m->why)) || (e = join_tracks(m)) || (e = set_desk(m)) || (e = find_channels(m)))
		goto out;
	if (!m->channels) { /* stopped before anything came */
		m->channels = 1;
		m->in.rate_hz = m->in.rate_hz ? m->in.rate_hz : 48000;
	}
	if ((e = check_pans(m)) || (e = take_buffers(m)))
		goto out;
	m->pos = m->in.first_pos;
	for (unsigned i = 0; i < m->n_ways && !e; i++)
		e = renew_way(m, i);
	if (!e && o->control_path)
		e = control_open(&m->control, o->control_path, &m->desk, tool->name, &m->why);
out:
	if (e)
		*why = m->why;
	return e;
}

void mixer_release(struct mixer *m)
{
	control_release(&m->control);
	for (unsigned i = 0; i < m->n_ways; i++) {
		bus_track_release(&m->ways[i]->bus);
		free(m->ways[i]->coef);
		free(m->ways[i]);
	}
	for (unsigned i = 0; i < m->n_outs; i++)
		limiter_release(&m->outs[i].limiter);
	minus_release(&m->minus);
	matrixfile_release(&m->matrix);
	desk_release(&m->desk);
	mixin_release(&m->in);
	free(m->ways);
	free(m->outs);
	free(m->sum);
	free(m->work);
	free(m->shared);
	memset(m, 0, sizeof(*m));
}

/* ---- out ---- */

/* Frames as they go out, at dst.  The grid of the format is left alone where everything lies on it already. */
static void to_format(struct mixer *m, struct mixer_out *out, void *dst, const void *src, size_t n_frames)
{
	const unsigned room = 8 * track_sample_bytes(m->options.format);
	struct convert *c = &out->convert[m->bits > room];

	stats_add(&m->options.counts->clipped_samples, convert_run(c, dst, src, n_frames * m->channels));
}

static void to_f32(float *dst, const double *src, size_t n_samples)
{
	for (size_t k = 0; k < n_samples; k++)
		dst[k] = (float)src[k];
}

static struct packet packet_for(const struct mixer *m, unsigned i, size_t n_frames)
{
	uint32_t bytes = (uint32_t)(n_frames * m->channels * track_sample_bytes(m->options.format));
	return packet_data((uint16_t)(i + 1), m->outs[i].next_pos, (uint32_t)n_frames, bytes);
}

static enum err write_frames(struct mixer *m, unsigned i, const void *src, size_t n_frames)
{
	struct packet p = packet_for(m, i, n_frames);
	uint8_t *room = writer_reserve(m->out, p.payload_bytes);

	if (!room)
		return m->out->failed;
	to_format(m, &m->outs[i], room, src, n_frames);
	m->outs[i].next_pos += (int64_t)n_frames;
	return writer_commit(m->out, &p);
}

static void measure(struct mixer *m, const double *sum, size_t n_frames)
{
	struct mixer_levels *l = m->levels;

	to_f32(m->work, sum, n_frames * m->channels);
	m->dsp.clean(m->work, m->work, n_frames * m->channels);
	m->dsp.peaks(l->peaks, m->work, m->channels, n_frames);
	truepeak_run(&l->truepeak, l->true_peaks, m->work, n_frames);
	if (l->has_loudness)
		loudness_add(&l->loudness, m->work, n_frames);
}

/* A block of mix i. */
static enum err emit(struct mixer *m, unsigned i, const double *sum, size_t n_frames)
{
	struct mixer_out *out = &m->outs[i];

	if (m->levels) {
		measure(m, sum, n_frames);
		return ERR_OK;
	}
	if (!m->options.limits)
		return write_frames(m, i, sum, n_frames);
	/* A limiter's output is on no grid. */
	uint64_t before = out->limiter.limited_frames;
	m->bits = 64;
	to_f32(m->work, sum, n_frames * m->channels);
	limiter_run(&out->limiter, m->work, n_frames);
	stats_add(&m->options.counts->limited_frames, out->limiter.limited_frames - before);
	size_t skip = out->skip_frames < n_frames ? out->skip_frames : n_frames;
	out->skip_frames -= (uint32_t)skip;
	return skip < n_frames ? write_frames(m, i, m->work + skip * m->channels, n_frames - skip) : ERR_OK;
}

/* Everybody's mix.  Those that are the same are made once and written from one place. */
static enum err emit_minus(struct mixer *m, size_t n_frames)
{
	bool shared, have_shared = false;
	enum err e = ERR_OK;

	minus_sum(&m->minus);
	for (unsigned i = 0; i < m->n_outs && !e; i++) {
		const double *mix = minus_mix(&m->minus, i, m->options.self, &shared);
		if (!shared || m->options.limits) {
			e = emit(m, i, mix, n_frames);
			continue;
		}
		struct packet p = packet_for(m, i, n_frames);
		if (!have_shared)
			to_format(m, &m->outs[i], m->shared, mix, n_frames);
		have_shared = true;
		p.payload = m->shared;
		p.object_bytes = p.payload_bytes;
		m->outs[i].next_pos += (int64_t)n_frames;
		e = writer_put(m->out, &p);
	}
	return e ? e : have_shared ? writer_flush(m->out) : ERR_OK;
}

/* What the limiters still hold. */
static enum err drain_limiters(struct mixer *m)
{
	enum err e = ERR_OK;

	if (!m->options.limits || m->levels)
		return ERR_OK;
	memset(m->sum, 0, (size_t)m->block_frames * m->channels * sizeof(*m->sum));
	for (unsigned i = 0; i < m->n_outs; i++) {
		struct mixer_out *out = &m->outs[i];
		/* A mix that was shorter than the delay has what it skips in here. */
		int64_t all = m->pos - out->next_pos + (int64_t)out->skip_frames;
		while (!e && all > 0) {
			size_t n = all < m->block_frames ? (size_t)all : m->block_frames;
			e = emit(m, i, m->sum, n);
			all -= (int64_t)n;
		}
	}
	return e;
}

/* ---- blocks ---- */

static void on_frames(void *user, struct mixin_track *t, size_t at, const void *frames, size_t n_frames)
{
	struct mixer *m = user;
	unsigned i = t->number - 1;
	struct bus_track *bus = &m->ways[i]->bus;

	if (!n_frames) {
		(void)!renew_way(m, i); /* m->why has it */
		return;
	}
	/* In the silence before, a ramp goes on. */
	if (at > m->covered_frames)
		bus_pass(bus, at - m->covered_frames);
	m->covered_frames = at + n_frames;
	if (!bus->now)
		return;
	unsigned before = bus_track_bits(bus);
	double *sum = m->options.minus ? minus_part(&m->minus, i) : m->sum;
	size_t n_bad = bus_add(bus, sum + at * m->channels, frames, n_frames);
	unsigned after = bus_track_bits(bus);
	m->bits = before > m->bits ? before : m->bits;
	m->bits = after > m->bits ? after : m->bits;
	if (n_bad)
		stats_add(&m->options.counts->nonfinite_samples, n_bad);
}

static enum err mix_block(struct mixer *m, size_t n_frames)
{
	enum err e;
	unsigned changes = atomic_load_explicit(&m->control.changes, memory_order_acquire);

	if (changes != m->changes_seen) {
		m->changes_seen = changes;
		for (unsigned i = 0; i < m->n_ways; i++)
			if (m->ways[i]->bus.now && (e = set_way(m, i, m->ramp_frames)))
				return e;
	}
	m->bits = m->master == 1 ? 16 : 64;
	if (m->options.minus) {
		minus_begin(&m->minus, n_frames);
		if (m->options.self != rint(m->options.self))
			m->bits = 64;
	} else {
		memset(m->sum, 0, n_frames * m->channels * sizeof(*m->sum));
	}
	for (unsigned i = 0; i < m->n_ways; i++) {
		m->covered_frames = 0;
		if ((e = mixin_take(&m->in, m->in.tracks[i], m->pos, n_frames, on_frames, m))) {
			m->why = m->in.why;
			return e;
		}
		if (m->why.reason[0])
			return m->why.err;
		if (m->covered_frames < n_frames)
			bus_pass(&m->ways[i]->bus, n_frames - m->covered_frames);
	}
	return ERR_OK;
}

static enum err write_block(struct mixer *m, size_t n_frames)
{
	enum err e;

	if (m->master != 1)
		for (size_t k = 0; k < n_frames * m->channels; k++)
			m->sum[k] *= m->master;
	e = m->options.minus ? emit_minus(m, n_frames) : emit(m, 0, m->sum, n_frames);
	if (e && !m->why.reason[0] && m->out)
		m->why = m->out->why;
	return e;
}

/* ---- the clock of a live mix ---- */

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UNITS_NS_PER_S + now.tv_nsec;
}

/* When frame `pos` is due. */
static int64_t due_ns(const struct mixer *m, int64_t pos)
{
	return m->start_ns + units_to_ns(pos - m->in.first_pos, m->in.rate_hz, 1);
}

static void count_late(struct mixer *m, int64_t until, int64_t late_ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_ways; i++)
		n += !mixin_is_known(m->in.tracks[i], until);
	if (!m->stats || !n)
		return;
	stats_add(&m->stats->late, n);
	uint64_t us = (uint64_t)units_scale(late_ns, 1000000, UNITS_NS_PER_S);
	if (us > atomic_load_explicit(&m->stats->max_late_us, memory_order_relaxed))
		stats_set(&m->stats->max_late_us, us);
}

static bool is_stopped(const struct mixer *m)
{
	return m->options.in.stop && *m->options.in.stop;
}

/* Have the inputs up to `until`, or, live, as much as there is when it is due. */
static enum err gather(struct mixer *m, int64_t until)
{
	const int64_t margin_ns = (int64_t)(m->options.margin_s * (double)UNITS_NS_PER_S);
	enum err e;

	while ((e = mixin_gather(&m->in, until)) == ERR_AGAIN) {
		/* Nothing is held back while we wait. */
		if (m->out && (e = writer_flush(m->out))) {
			m->why = m->out->why;
			return e;
		}
		int timeout_ms = -1;
		if (m->options.is_live && m->start_ns) {
			int64_t left_ns = due_ns(m, until) + margin_ns - now_ns();
			if (left_ns <= 0) {
				count_late(m, until, margin_ns - left_ns);
				return ERR_OK;
			}
			timeout_ms = (int)units_scale_up(left_ns, 1000, UNITS_NS_PER_S);
		}
		if ((e = mixin_wait(&m->in, until, timeout_ms)))
			break;
	}
	if (e) {
		m->why = m->in.why;
		return e;
	}
	if (!m->options.is_live)
		return ERR_OK;
	if (!m->start_ns)
		m->start_ns = now_ns() - units_to_ns(until - m->in.first_pos, m->in.rate_hz, 1);
	/* Files must not run ahead of what is live. */
	int64_t early_ns = due_ns(m, until) - margin_ns;
	if (now_ns() < early_ns) {
		if (m->out && (e = writer_flush(m->out))) {
			m->why = m->out->why;
			return e;
		}
		wake_sleep_until(early_ns, m->options.in.stop);
	}
	return ERR_OK;
}

static void count(struct mixer *m)
{
	uint64_t in = 0, out = 0;

	stats_set(&m->options.counts->late_frames, m->in.late_frames);
	stats_set(&m->options.counts->spooled_bytes, atomic_load_explicit(&m->in.store.spooled_bytes, memory_order_relaxed));
	if (m->progress)
		progress_update(m->progress, units_to_s(m->pos - m->in.first_pos, m->in.rate_hz, 1), -1);
	if (!m->stats || !stats_on(m->stats))
		return;
	for (unsigned i = 0; i < m->in.n_tracks; i++)
		in += m->in.tracks[i]->takes_frames;
	for (unsigned i = 0; m->out && i < m->out->n_tracks; i++)
		out += m->out->tracks[i]->frames;
	stats_set(&m->stats->packets_in, m->in.packets);
	stats_set(&m->stats->packets_out, m->out ? m->out->n_packets : 0);
	stats_set(&m->stats->frames_in, in);
	stats_set(&m->stats->frames_out, out);
}

/* After a stop: only as far as everybody got who was stopped. */
static size_t until_stop(const struct mixer *m, size_t n_frames)
{
	int64_t end = m->pos + (int64_t)n_frames;

	for (unsigned i = 0; i < m->in.n_tracks; i++) {
		const struct mixin_track *t = m->in.tracks[i];
		const struct input *in = &t->input->in;
		if (in->is_stream && in->reader.stopped && t->known_pos < end)
			end = t->known_pos;
	}
	return end > m->pos ? (size_t)(end - m->pos) : 0;
}

static enum err run(struct mixer *m)
{
	enum err e;

	for (;;) {
		int64_t end_pos;
		size_t n = m->block_frames;
		if (is_stopped(m))
			break;
		if ((e = gather(m, m->pos + (int64_t)n)) || (e = join_tracks(m)) || (e = join_outs(m)) || (e = mix_block(m, n)))
			return e;
		if (mixin_has_ended(&m->in, &end_pos) && end_pos < m->pos + (int64_t)n)
			n = end_pos > m->pos ? (size_t)(end_pos - m->pos) : 0;
		if (is_stopped(m))
			n = until_stop(m, n);
		if (!n)
			break;
		/* Due when its last frame could have come; what waits for no reader has gone out by the time it is. */
		bool is_paced = m->options.is_live && m->start_ns && m->out;
		if (is_paced)
			tick_begin_at(&m->options.counts->tick, due_ns(m, m->pos + (int64_t)n),
				(int64_t)(m->options.margin_s * (double)UNITS_NS_PER_S) + units_to_ns((int64_t)n, m->in.rate_hz, 1));
		if ((e = write_block(m, n)))
			return e;
		if (is_paced)
			tick_end(&m->options.counts->tick);
		m->pos += (int64_t)n;
		count(m);
	}
	if ((e = drain_limiters(m)))
		m->why = m->out->why;
	count(m);
	if (!e && m->in.nonfinite_samples)
		stats_add(&m->options.counts->nonfinite_samples, m->in.nonfinite_samples);
	return e ? e : m->in.is_cut ? ERR_CUT : ERR_OK;
}

/* What makes this stream what it is. */
static void seed(struct mixer *m)
{
	const struct mixer_options *o = &m->options;

	for (unsigned i = 0; i < m->in.n_inputs; i++) {
		const struct input *in = &m->in.inputs[i].in;
		if (in->is_stream)
			writer_seed(m->out, in->reader.stream.uuid, sizeof(in->reader.stream.uuid));
		else
			writer_seed(m->out, m->in.inputs[i].name, strlen(m->in.inputs[i].name));
	}
	for (unsigned i = 0; o->gains && i < o->gains->n; i++)
		writer_seed(m->out, o->gains->value[i], strlen(o->gains->value[i]));
	for (unsigned i = 0; o->pans && i < o->pans->n; i++)
		writer_seed(m->out, o->pans->value[i], strlen(o->pans->value[i]));
}

enum err mixer_run(struct mixer *m, struct writer *out, double master)
{
	enum err e;

	m->out = out;
	m->master = master;
	seed(m);
	if (m->options.is_live || m->in.is_live)
		out->stream.flags |= PACKET_STREAM_LIVE;
	out->stream.t0_utc_ns = m->in.t0_utc_ns;
	if ((e = writer_begin(out)) || (e = join_outs(m))) {
		if (!m->why.reason[0])
			m->why = out->why;
		return e;
	}
	return run(m);
}

enum err mixer_measure(struct mixer *m, struct mixer_levels *l)
{
	struct track track = track_pcm(m->in.rate_hz, (uint16_t)m->channels, SAMPLE_F32);
	float *weights = calloc(m->channels, sizeof(*weights));
	enum err e = ERR_NOMEM;

	memset(l, 0, sizeof(*l));
	l->peaks = calloc(m->channels, sizeof(*l->peaks));
	l->true_peaks = calloc(m->channels, sizeof(*l->true_peaks));
	if (!weights || !l->peaks || !l->true_peaks || truepeak_init(&l->truepeak, m->in.rate_hz, m->channels))
		goto out;
	if (m->wave_mask) {
		track.layout = TRACK_LAYOUT_WAVE;
		track.wave_mask = m->wave_mask;
	}
	l->has_loudness = m->in.rate_hz >= LOUDNESS_MIN_RATE_HZ;
	loudness_weights(&track, false, weights);
	if (l->has_loudness && (e = loudness_init(&l->loudness, m->in.rate_hz, m->channels, weights)))
		goto out;
	m->levels = l;
	m->master = 1;
	if (!(e = join_outs(m)))
		e = run(m);

	/*
	 * What the filter still holds stays there, as in a meter: behind the last frames nothing is known, and to take it for
	 * silence would turn every end that is cut off into a peak that no meter finds.
	 */
	for (unsigned c = 0; c < m->channels; c++) {
		l->sample_peak = fmax(l->sample_peak, (double)l->peaks[c]);
		l->true_peak = fmax(l->true_peak, (double)fmaxf(l->true_peaks[c], l->peaks[c]));
	}
	l->integrated_lufs = l->has_loudness ? loudness_read(&l->loudness).integrated_lufs : NAN;
out:
	if (e == ERR_NOMEM)
		e = no_memory(m);
	free(weights);
	free(l->peaks);
	free(l->true_peaks);
	l->peaks = l->true_peaks = NULL;
	truepeak_release(&l->truepeak);
	if (l->has_loudness)
		loudness_release(&l->loudness);
	m->levels = NULL;
	return e;
}
