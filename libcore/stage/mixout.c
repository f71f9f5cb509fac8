#include "stage/mixout.h"

#include "base/cpu.h"
#include "base/units.h"
#include "tool/stats.h"

#include <stdlib.h>
#include <string.h>

static enum err no_memory(struct mixout *m)
{
	return err_say(&m->why, ERR_NOMEM, "mixing", "%s", err_text(ERR_NOMEM));
}

/* ---- life ---- */

enum err mixout_open(struct mixout *m, const struct mixout_options *o, struct writer *w)
{
	const size_t n = (size_t)o->block_frames * o->channels;

	m->options = *o;
	m->writer = w;
	m->work = aligned_alloc(64, (size_t)units_round_up(n * sizeof(float), 64));
	m->shared = aligned_alloc(64, (size_t)units_round_up(n * track_sample_bytes(o->format), 64));
	return m->work && m->shared ? ERR_OK : no_memory(m);
}

void mixout_release(struct mixout *m)
{
	for (unsigned i = 0; i < m->n_tracks; i++)
		limiter_release(&m->tracks[i].limiter);
	free(m->tracks);
	free(m->work);
	free(m->shared);
	memset(m, 0, sizeof(*m));
}

static enum err announce(struct mixout *m, uint16_t id, const char *name, int64_t pos)
{
	const struct mixout_options *o = &m->options;
	struct track track = track_pcm(o->rate_hz, (uint16_t)o->channels, o->format);
	enum err e;

	track.id = id;
	track.first_pos = track.next_pos = pos;
	track.nominal_dur = o->block_frames;
	track.largest_object_bytes = o->block_frames * track.frame_bytes;
	track.layout = o->wave_mask ? TRACK_LAYOUT_WAVE : TRACK_LAYOUT_DISCRETE;
	track.wave_mask = o->wave_mask;
	e = name[0] ? track_set_name(&track, name) : ERR_OK;
	if (e)
		err_say(&m->why, e, "mixing", "%s", err_text(e));
	else if ((e = writer_announce(m->writer, &track)))
		m->why = m->writer->why;
	track_release(&track);
	return e;
}

enum err mixout_join(struct mixout *m, const char *name, int64_t pos)
{
	const struct mixout_options *o = &m->options;
	enum err e;

	if (m->n_tracks == m->tracks_room) {
		unsigned room = m->tracks_room ? 2 * m->tracks_room : 8;
		struct mixout_track *more = realloc(m->tracks, room * sizeof(*more));
		if (!more)
			return no_memory(m);
		m->tracks = more;
		m->tracks_room = room;
	}
	struct mixout_track *t = &m->tracks[m->n_tracks];
	memset(t, 0, sizeof(*t));
	for (int dithered = 0; dithered < 2; dithered++)
		if ((e = convert_init(&t->convert[dithered], o->limits ? SAMPLE_F32 : SAMPLE_F64, o->format, dithered && o->dither, m->n_tracks)))
			return err_say(&m->why, e, "-f", "%s", err_text(e));
	if (o->limits) {
		if (limiter_init(&t->limiter, o->rate_hz, o->channels, o->ceiling_dbtp, cpu_flags()))
			return no_memory(m);
		t->skip_frames = t->limiter.delay_frames;
	}
	t->next_pos = pos;
	m->n_tracks++;
	return announce(m, (uint16_t)m->n_tracks, name, pos);
}

/* ---- blocks ---- */

static enum err check(struct mixout *m, enum err e)
{
	if (e)
		m->why = m->writer->why;
	return e;
}

/* Frames as they go out, at dst.  The grid of the format is left alone where everything lies on it already. */
static void to_format(struct mixout *m, struct mixout_track *t, void *dst, const void *src, size_t n_frames, unsigned bits)
{
	const unsigned room = 8 * track_sample_bytes(m->options.format);

	stats_add(m->options.clipped_samples, convert_run(&t->convert[bits > room], dst, src, n_frames * m->options.channels));
}

static struct packet packet_for(const struct mixout *m, unsigned i, size_t n_frames)
{
	uint32_t bytes = (uint32_t)(n_frames * m->options.channels * track_sample_bytes(m->options.format));
	return packet_data((uint16_t)(i + 1), m->tracks[i].next_pos, (uint32_t)n_frames, bytes);
}

static enum err write_frames(struct mixout *m, unsigned i, const void *src, size_t n_frames, unsigned bits)
{
	struct packet p = packet_for(m, i, n_frames);
	uint8_t *room = writer_reserve(m->writer, p.payload_bytes);

	if (!room)
		return check(m, m->writer->failed);
	to_format(m, &m->tracks[i], room, src, n_frames, bits);
	m->tracks[i].next_pos += (int64_t)n_frames;
	return check(m, writer_commit(m->writer, &p));
}

enum err mixout_write(struct mixout *m, unsigned i, const double *sum, size_t n_frames, unsigned bits)
{
	struct mixout_track *t = &m->tracks[i];

	if (!m->options.limits)
		return write_frames(m, i, sum, n_frames, bits);
	uint64_t before = t->limiter.limited_frames;
	for (size_t k = 0; k < n_frames * m->options.channels; k++)
		m->work[k] = (float)sum[k];
	limiter_run(&t->limiter, m->work, n_frames);
	stats_add(m->options.limited_frames, t->limiter.limited_frames - before);
	size_t skip = t->skip_frames < n_frames ? t->skip_frames : n_frames;
	t->skip_frames -= (uint32_t)skip;
	/* A limiter's output is on no grid. */
	return skip < n_frames ? write_frames(m, i, m->work + skip * m->options.channels, n_frames - skip, MIXOUT_MAX_BITS) : ERR_OK;
}

enum err mixout_write_minus(struct mixout *m, struct minus *parts, double self, size_t n_frames, unsigned bits)
{
	bool shared, have_shared = false;
	enum err e = ERR_OK;

	minus_sum(parts);
	for (unsigned i = 0; i < m->n_tracks && !e; i++) {
		const double *mix = minus_mix(parts, i, self, &shared);
		if (!shared || m->options.limits) {
			e = mixout_write(m, i, mix, n_frames, bits);
			continue;
		}
		struct packet p = packet_for(m, i, n_frames);
		if (!have_shared)
			to_format(m, &m->tracks[i], m->shared, mix, n_frames, bits);
		have_shared = true;
		p.payload = m->shared;
		p.object_bytes = p.payload_bytes;
		m->tracks[i].next_pos += (int64_t)n_frames;
		e = check(m, writer_put(m->writer, &p));
	}
	return e ? e : have_shared ? check(m, writer_flush(m->writer)) : ERR_OK;
}

enum err mixout_drain(struct mixout *m, const double *zeros, int64_t end_pos)
{
	enum err e = ERR_OK;

	if (!m->options.limits)
		return ERR_OK;
	for (unsigned i = 0; i < m->n_tracks; i++) {
		struct mixout_track *t = &m->tracks[i];
		/* A mix that was shorter than the delay has what it skips in here. */
		int64_t all = end_pos - t->next_pos + (int64_t)t->skip_frames;
		while (!e && all > 0) {
			size_t n = all < m->options.block_frames ? (size_t)all : m->options.block_frames;
			e = mixout_write(m, i, zeros, n, MIXOUT_MAX_BITS);
			all -= (int64_t)n;
		}
	}
	return e;
}
