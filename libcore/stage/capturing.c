#include "stage/capturing.h"

#include "base/units.h"
#include "media/reshape.h"
#include "media/source.h"
#include "rt/wake.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REALTIME_BLOCK_FRAMES 960u /* 20 ms at 48 kHz, unless --block says otherwise */

/* ---- opening ---- */

bool capturing_has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static enum err reshape(struct capturing *c, struct source *s, const char *spec, uint32_t seed)
{
	const struct capturing_options *o = &c->o;
	struct reshape_options shape = { .dither = o->dither, .seed = seed };

	/* raw: and gen: have their rate and channels from the options already, and raw:'s format is what it is read as. */
	if (capturing_has_prefix(spec, "raw:") || capturing_has_prefix(spec, "gen:"))
		return ERR_OK;
	shape.rate_hz = o->rate_hz;
	shape.channels = (uint16_t)o->channels;
	shape.format = o->format;
	return reshape_open(s, &shape, &c->why);
}

static enum err open_one(struct capturing *c, struct source *s, const char *spec, unsigned i)
{
	const struct capturing_options *o = &c->o;
	uint32_t gen_hz = o->rate_hz ? o->rate_hz : 48000;
	struct source_args args = {
		.rate_hz = o->rate_hz, .channels = (uint16_t)o->channels, .format = o->raw_format,
		.duration_frames = -1, .stdin_fd = STDIN_FILENO, .stop = &tool_stop, .ring_ns = o->ring.is_frames ? units_to_ns(o->ring.value, gen_hz, 1) : o->ring.value, .block_frames = (uint32_t)o->block_frames,
	};
	char name[128];
	enum err e;

	if (o->duration.is_set)
		args.duration_frames = opt_time_frames(&o->duration, gen_hz, 1) + (o->start.is_set ? opt_time_frames(&o->start, gen_hz, 1) : 0);
	if ((e = source_open(s, spec, &args, &c->why)))
		return e;
	if ((e = session_add(&c->session, i, s, &c->why)))
		return e;
	if (o->start.is_set && (e = source_trim(s, opt_time_frames(&o->start, track_rate_hz(&s->track), 1)))) {
		c->why = s->why;
		return e;
	}
	if ((e = reshape(c, s, spec, i + 1)))
		return e;
	if ((e = track_set_name(&s->track, i < o->names.n ? o->names.value[i] : feed_name_of(spec, name, sizeof(name)))))
		return err_say(&c->why, e, "-n", "%s", e == ERR_LIMIT ? "name and tags are more than an announcement holds (64 KiB)" : err_text(e));
	return ERR_OK;
}

/* Everything that makes this stream what it is: the same command on the same files gives the same bytes. */
static void seed(struct capturing *c)
{
	const struct capturing_options *o = &c->o;
	char text[256];

	for (unsigned i = 0; i < c->feed.n_tracks; i++) {
		const struct feed_track *t = &c->feed.tracks[i];
		const struct track *a = &t->source.track;

		snprintf(text, sizeof(text), "%u %u/%u %u %s %" PRIX64 " %" PRId64 " %u", i, a->rate_num, a->rate_den, a->channels,
			track_sample_name(a->sample), a->wave_mask, t->source.n_frames, t->block_frames);
		writer_seed(&c->out, text, strlen(text) + 1);
		writer_seed(&c->out, c->specs[i], strlen(c->specs[i]) + 1);
		if (a->tlv_bytes)
			writer_seed(&c->out, a->tlv, a->tlv_bytes);
	}
	snprintf(text, sizeof(text), "%d %d %" PRId64 " %d %d %" PRId64 " %d", o->duration.is_set, o->duration.is_frames, o->duration.value,
		o->start.is_set, o->start.is_frames, o->start.value, o->dither);
	writer_seed(&c->out, text, strlen(text) + 1);
}

static enum err open_all(struct capturing *c, unsigned n)
{
	const struct capturing_options *o = &c->o;
	struct source *sources = calloc(n, sizeof(*sources));
	enum err e = ERR_NOMEM;
	unsigned n_open = 0;
	uint32_t block = (uint32_t)o->block_frames;

	c->note_said = calloc(n, sizeof(*c->note_said));
	if (!sources || !c->note_said ||
		session_init(&c->session, c->tool, &c->stats, n, &(struct session_options){ .keep = o->keep, .own_clocks = o->own_clocks })) {
		err_say(&c->why, e, "sources", "%s", err_text(e));
		goto out;
	}
	for (; n_open < n; n_open++) {
		if ((e = open_one(c, &sources[n_open], c->specs[n_open], n_open)))
			break;
	}
	if (e) {
		source_release(&sources[n_open]);
		goto out;
	}
	if (!block && o->realtime)
		block = REALTIME_BLOCK_FRAMES;
	for (unsigned i = 0; i < n && !block; i++)
		block = session_device(&c->session, i) ? session_device(&c->session, i)->format.block_frames : 0;
	if ((e = feed_open(&c->feed, sources, n, block, &c->why)))
		goto out;
	n_open = 0;
	for (unsigned i = 0; i < n; i++) {
		struct feed_track *t = &c->feed.tracks[i];
		const struct track *a = &t->source.track;
		char left_out[96];

		if (*source_left_out(&t->source, left_out) && !c->tool->quiet)
			tool_warn(c->tool, t->source.name, "%s", left_out);
		if (o->block_frames > t->block_frames)
			tool_note(c->tool, t->source.name, "--block %" PRId64 " is more than a packet holds: %u frames", o->block_frames, t->block_frames);
		if (o->duration.is_set)
			t->end_pos = a->first_pos + opt_time_frames(&o->duration, a->rate_num, a->rate_den);
		double s = t->source.n_frames < 0 ? -1 : units_to_s(t->source.n_frames, a->rate_num, a->rate_den);
		double end_s = o->duration.is_set ? units_to_s(t->end_pos - a->first_pos, a->rate_num, a->rate_den) : -1;
		if (end_s >= 0 && (s < 0 || end_s < s))
			s = end_s;
		if (s > c->total_s)
			c->total_s = s;
	}
out:
	while (n_open > 0)
		source_release(&sources[--n_open]);
	free(sources);
	return e;
}

/* ---- running ---- */

static void say_notes(struct capturing *c, unsigned i)
{
	const struct source *s = &c->feed.tracks[i].source;
	size_t n = strlen(s->note), from = c->note_said[i];

	if (n > from)
		tool_note(c->tool, s->name, "%s", s->note + from + (from && !strncmp(s->note + from, "; ", 2) ? 2 : 0));
	c->note_said[i] = n;
}

static void count(struct capturing *c)
{
	struct stats *s = &c->stats;
	uint64_t frames = 0, gaps = 0, lost = 0, damaged = 0, clipped = 0;
	double at_s = 0;

	if (!stats_on(s) && !c->progress.on)
		return;
	for (unsigned i = 0; i < c->feed.n_tracks; i++) {
		const struct feed_track *t = &c->feed.tracks[i];
		const struct track *a = &t->source.track;
		const struct writer_track *wt = writer_track(&c->out, t->id);

		frames += wt ? wt->frames : 0;
		gaps += t->n_gaps;
		lost += t->source.lost_frames;
		damaged += t->source.damaged_bytes;
		clipped += t->source.clipped_samples;
		double s_here = units_to_s(t->next_pos - a->first_pos, a->rate_num, a->rate_den);
		at_s = s_here > at_s ? s_here : at_s;
	}
	stats_set(&s->frames_in, frames);
	stats_set(&s->frames_out, frames);
	stats_set(&s->packets_out, c->out.n_packets);
	stats_set(&s->gaps, gaps);
	stats_set(&s->lost_frames, lost);
	stats_set(&s->damaged_bytes, damaged);
	stats_set(&c->clipped_samples, clipped);
	progress_update(&c->progress, at_s, c->total_s > 0 ? c->total_s : -1);
}

/* Wait until the clock has come to the end of the block, as a device would have; then it goes out at once. */
static enum err pace(struct capturing *c, const struct feed_track *t)
{
	const struct track *a = &t->source.track;
	int64_t due_ns = c->start_ns + units_to_ns(t->next_pos, a->rate_num, a->rate_den);

	wake_sleep_until(due_ns, &tool_stop);
	tick_begin_at(&c->pacing, due_ns, units_to_ns(t->block_frames, a->rate_num, a->rate_den));
	enum err e = writer_flush(&c->out);
	tick_end(&c->pacing);
	return e;
}

/* What -f and --start did to a track that may not be what was meant. */
static void warn_of_options(struct capturing *c, const struct feed_track *t)
{
	const struct source *s = &t->source;
	double start_s = (double)c->o.start.value / UNITS_NS_PER_S;

	if (s->clipped_samples && !c->tool->quiet)
		tool_warn(c->tool, s->name, "%" PRIu64 " samples clipped: they are over full scale, which f32 holds", s->clipped_samples);
	if (!c->o.start.is_set || tool_stop || t->next_pos > s->track.first_pos || t->end_pos <= s->track.first_pos)
		return;
	if (c->o.start.is_frames)
		tool_warn(c->tool, s->name, "ends before --start (frame %" PRId64 "): nothing is left", c->o.start.value);
	else
		tool_warn(c->tool, s->name, "ends before --start (%g s): nothing is left", start_s);
}

static enum err end_track(struct capturing *c, struct feed_track *t)
{
	struct source *s = &t->source;

	say_notes(c, t->id - 1u);
	warn_of_options(c, t);
	session_end_track(&c->session, t);
	return writer_end_track(&c->out, t->id, s->cut ? PACKET_END_TRUNCATED : tool_stop ? PACKET_END_INTERRUPTED : PACKET_END_NORMAL);
}

static enum err one_block(struct capturing *c, struct feed_track *t)
{
	enum err e;

	/* Nothing is held back while we wait. */
	if (source_would_block(&t->source, t->block_frames) && (e = writer_flush(&c->out)))
		return e;
	e = feed_write(&c->feed, t, &c->out);
	if (e == ERR_END)
		return end_track(c, t);
	if (e || (e = session_turn(&c->session, t, &c->out)))
		return e;
	return c->o.realtime && !session_device(&c->session, t->id - 1u) ? pace(c, t) : ERR_OK;
}

static enum err run_all(struct capturing *c)
{
	struct feed_track *t;
	struct timespec now;
	enum err e;

	seed(c);
	clock_gettime(CLOCK_MONOTONIC, &now);
	c->start_ns = now.tv_sec * UNITS_NS_PER_S + now.tv_nsec;
	if (c->session.first)
		c->out.stream.flags |= PACKET_STREAM_LIVE;
	if (c->o.realtime || c->session.first) {
		/* As if it was captured now: the two clocks are read once, so a step of the wall clock later on does no harm. */
		clock_gettime(CLOCK_REALTIME, &now);
		c->feed.utc0_ns = c->out.stream.t0_utc_ns = now.tv_sec * UNITS_NS_PER_S + now.tv_nsec;
		c->out.stream.clock_quality = 1;
	}
	if ((e = writer_begin(&c->out)))
		return e;
	for (unsigned i = 0; i < c->feed.n_tracks; i++) {
		say_notes(c, i);
		if ((e = writer_announce(&c->out, &c->feed.tracks[i].source.track)))
			return e;
	}
	while (!tool_stop && (t = feed_turn(&c->feed))) {
		if ((e = one_block(c, t)))
			return e;
		count(c);
	}
	bool cut = feed_is_cut(&c->feed);
	if ((e = writer_end(&c->out, cut ? PACKET_END_TRUNCATED : tool_stop ? PACKET_END_INTERRUPTED : PACKET_END_NORMAL)))
		return e;
	count(c);
	return cut ? ERR_CUT : ERR_OK;
}

enum err capturing_open(struct capturing *c, struct tool *t, char *const *specs, unsigned n)
{
	enum err e;

	c->tool = t;
	c->specs = specs;
	if ((e = writer_open(&c->out, STDOUT_FILENO, "<stdout>", "capture", &c->why)) || (e = open_all(c, n)))
		return e;
	stats_key(&c->stats, "clipped_samples", &c->clipped_samples);
	session_keys(&c->session);
	if (c->o.realtime)
		stats_tick(&c->stats, &c->pacing);
	if ((e = stats_begin(&c->stats, t, &c->why)))
		return e;
	progress_begin(&c->progress, t);
	return ERR_OK;
}

enum err capturing_run(struct capturing *c)
{
	enum err e = run_all(c);

	if (!e || e == ERR_CUT)
		return e;
	if (!c->why.reason[0])
		c->why = c->feed.failed == e ? c->feed.why : c->out.why;
	/* Whoever reads on must not take this for a good end. */
	return e != ERR_GONE && writer_end(&c->out, PACKET_END_ERROR) == ERR_GONE ? ERR_GONE : e;
}

void capturing_release(struct capturing *c)
{
	progress_end(&c->progress);
	stats_end(&c->stats);
	feed_release(&c->feed);
	session_release(&c->session);
	writer_release(&c->out);
	free(c->note_said);
}
