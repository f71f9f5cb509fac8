#include "stage/mixer.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_BLOCK_MS 20u

static enum err no_memory(struct mixer *m)
{
	return err_say(&m->why, ERR_NOMEM, "mixing", "%s", err_text(ERR_NOMEM));
}

/* ---- outputs ---- */

static enum err open_out(struct mixer *m, const char *name)
{
	enum err e = mixout_join(&m->out, name, m->pos);
	if (e)
		m->why = m->out.why;
	return e;
}

/* One mix; or, mix-minus, one for each track. */
static enum err join_outs(struct mixer *m)
{
	enum err e;

	if (m->levels)
		return ERR_OK;
	if (!m->options.minus)
		return m->out.n_tracks ? ERR_OK : open_out(m, m->options.name ? m->options.name : "mix");
	while (m->out.n_tracks < m->ways.n_ways) {
		if (minus_join(&m->minus))
			return no_memory(m);
		if ((e = open_out(m, m->in.tracks[m->out.n_tracks]->name)))
			return e;
	}
	return ERR_OK;
}

/* ---- opening ---- */

/* How long a block is, and the memory for one. */
static enum err take_block(struct mixer *m)
{
	const size_t bytes = track_sample_bytes(m->options.format), most = PACKET_MAX_PAYLOAD_BYTES / (bytes * m->ways.shape.channels);
	uint32_t block = m->in.block_frames;

	if (m->options.minus && block > MIXER_MINUS_FRAMES)
		block = MIXER_MINUS_FRAMES;
	if (m->options.is_live && block > units_scale(m->in.rate_hz, LIVE_BLOCK_MS, 1000))
		block = (uint32_t)units_scale_up(m->in.rate_hz, LIVE_BLOCK_MS, 1000);
	m->block_frames = block < most ? block : (uint32_t)most;
	m->sum = aligned_alloc(64, (size_t)units_round_up((size_t)m->block_frames * m->ways.shape.channels * sizeof(double), 64));
	if (!m->sum)
		return no_memory(m);
	return m->options.minus && minus_init(&m->minus, m->ways.shape.channels, m->block_frames) ? no_memory(m) : ERR_OK;
}

enum err mixer_open(struct mixer *m, char *const *names, unsigned n, const struct mixer_options *o, struct tool *tool, struct err_why *why)
{
	const struct mixways_options wo = {
		.channels = o->channels, .matrix_path = o->matrix_path, .control_path = o->control_path, .tool = tool->name, .gains = o->gains,
		.pans = o->pans, .nonfinite_samples = &o->counts->nonfinite_samples,
	};
	enum err e;

	m->options = *o;
	if ((e = mixin_open(&m->in, names, n, &o->in, &m->why)))
		goto out;
	if (!m->in.rate_hz) /* stopped before anything came */
		m->in.rate_hz = 48000;
	if ((e = mixways_open(&m->ways, &m->in, &wo))) {
		m->why = m->ways.why;
		goto out;
	}
	if ((e = take_block(m)))
		goto out;
	m->pos = m->in.first_pos;
	m->clock = (struct mixclock){
		.is_live = o->is_live, .margin_ns = (int64_t)(o->margin_s * (double)UNITS_NS_PER_S), .rate_hz = m->in.rate_hz,
		.first_pos = m->in.first_pos, .stop = o->in.stop,
	};
out:
	if (e)
		*why = m->why;
	return e;
}

void mixer_release(struct mixer *m)
{
	mixways_release(&m->ways);
	mixout_release(&m->out);
	minus_release(&m->minus);
	mixin_release(&m->in);
	free(m->sum);
	memset(m, 0, sizeof(*m));
}

/* ---- blocks ---- */

static enum err mix_block(struct mixer *m, size_t n_frames)
{
	struct mixways_block b = { .pos = m->pos, .n_frames = n_frames, .bits = m->master == 1 ? 16 : MIXOUT_MAX_BITS };
	enum err e;

	if (m->options.minus) {
		b.parts = &m->minus;
		minus_begin(&m->minus, n_frames);
		if (m->options.self != rint(m->options.self))
			b.bits = MIXOUT_MAX_BITS;
	} else {
		b.sum = m->sum;
		memset(m->sum, 0, n_frames * m->ways.shape.channels * sizeof(*m->sum));
	}
	if ((e = mixways_add(&m->ways, &b)))
		m->why = m->ways.why;
	m->bits = b.bits;
	return e;
}

static enum err join_tracks(struct mixer *m)
{
	enum err e = mixways_join(&m->ways);
	if (e)
		m->why = m->ways.why;
	return e;
}

static enum err write_block(struct mixer *m, size_t n_frames)
{
	enum err e;

	if (m->levels) {
		mixlevels_add(m->levels, m->sum, n_frames);
		return ERR_OK;
	}
	if (m->master != 1)
		for (size_t k = 0; k < n_frames * m->ways.shape.channels; k++)
			m->sum[k] *= m->master;
	e = m->options.minus ? mixout_write_minus(&m->out, &m->minus, m->options.self, n_frames, m->bits) :
		mixout_write(&m->out, 0, m->sum, n_frames, m->bits);
	if (e)
		m->why = m->out.why;
	return e;
}

/* ---- waiting for the inputs ---- */

static void count_late(struct mixer *m, int64_t until, int64_t late_ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->ways.n_ways; i++)
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

/* Nothing is held back while we wait. */
static enum err flush(struct mixer *m)
{
	enum err e = m->writer ? writer_flush(m->writer) : ERR_OK;
	if (e)
		m->why = m->writer->why;
	return e;
}

/* Have the inputs up to `until`, or, live, as much as there is when it is due. */
static enum err gather(struct mixer *m, int64_t until)
{
	enum err e;

	while ((e = mixin_gather(&m->in, until)) == ERR_AGAIN) {
		int timeout_ms = -1;
		if ((e = flush(m)))
			return e;
		if (mixclock_runs(&m->clock)) {
			int64_t left_ns = mixclock_left_ns(&m->clock, until);
			if (left_ns <= 0) {
				count_late(m, until, m->clock.margin_ns - left_ns);
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
	mixclock_start(&m->clock, until);
	/* Files must not run ahead of what is live. */
	if (mixclock_is_early(&m->clock, until)) {
		if ((e = flush(m)))
			return e;
		mixclock_sleep(&m->clock, until);
	}
	return ERR_OK;
}

/* ---- all of it ---- */

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
	for (unsigned i = 0; m->writer && i < m->writer->n_tracks; i++)
		out += m->writer->tracks[i]->frames;
	stats_set(&m->stats->packets_in, m->in.packets);
	stats_set(&m->stats->packets_out, m->writer ? m->writer->n_packets : 0);
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

/* What the limiters still hold. */
static enum err drain(struct mixer *m)
{
	enum err e;

	if (m->levels)
		return ERR_OK;
	memset(m->sum, 0, (size_t)m->block_frames * m->ways.shape.channels * sizeof(*m->sum));
	if ((e = mixout_drain(&m->out, m->sum, m->pos)))
		m->why = m->out.why;
	return e;
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
		bool is_paced = mixclock_runs(&m->clock) && m->writer;
		if (is_paced)
			tick_begin_at(&m->options.counts->tick, mixclock_due_ns(&m->clock, m->pos + (int64_t)n),
				m->clock.margin_ns + units_to_ns((int64_t)n, m->in.rate_hz, 1));
		if ((e = write_block(m, n)))
			return e;
		if (is_paced)
			tick_end(&m->options.counts->tick);
		m->pos += (int64_t)n;
		count(m);
	}
	e = drain(m);
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
			writer_seed(m->writer, in->reader.stream.uuid, sizeof(in->reader.stream.uuid));
		else
			writer_seed(m->writer, m->in.inputs[i].name, strlen(m->in.inputs[i].name));
	}
	for (unsigned i = 0; o->gains && i < o->gains->n; i++)
		writer_seed(m->writer, o->gains->value[i], strlen(o->gains->value[i]));
	for (unsigned i = 0; o->pans && i < o->pans->n; i++)
		writer_seed(m->writer, o->pans->value[i], strlen(o->pans->value[i]));
}

enum err mixer_run(struct mixer *m, struct writer *out, double master)
{
	const struct mixer_options *o = &m->options;
	const struct mixout_options oo = {
		.rate_hz = m->in.rate_hz, .channels = m->ways.shape.channels, .wave_mask = m->ways.shape.wave_mask, .format = o->format, .dither = o->dither,
		.limits = o->limits, .ceiling_dbtp = o->ceiling_dbtp, .block_frames = m->block_frames,
		.clipped_samples = &o->counts->clipped_samples, .limited_frames = &o->counts->limited_frames,
	};
	enum err e;

	m->writer = out;
	m->master = master;
	seed(m);
	if (o->is_live || m->in.is_live)
		out->stream.flags |= PACKET_STREAM_LIVE;
	out->stream.t0_utc_ns = m->in.t0_utc_ns;
	if ((e = mixout_open(&m->out, &oo, out))) {
		m->why = m->out.why;
		return e;
	}
	if ((e = writer_begin(out))) {
		m->why = out->why;
		return e;
	}
	return (e = join_outs(m)) ? e : run(m);
}

enum err mixer_measure(struct mixer *m, struct mixlevels *l)
{
	enum err e = mixlevels_open(l, m->in.rate_hz, m->ways.shape.channels, m->ways.shape.wave_mask, m->block_frames);

	if (e)
		return err_say(&m->why, e, "mixing", "%s", err_text(e));
	m->levels = l;
	m->master = 1;
	e = run(m);
	m->levels = NULL;
	mixlevels_close(l);
	return e;
}
