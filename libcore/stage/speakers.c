#include "stage/speakers.h"

#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PIECE_FRAMES 32u
#define SPARE_NS (UNITS_NS_PER_S / 2) /* what a follower's ring has beyond that of the first */

/* What the devices' callbacks counted, of all together; of the rings the emptiest. */
static void count_devices(void *user)
{
	struct speakers *s = user;
	uint64_t underruns = 0, silent = 0, skipped = 0, played = UINT64_MAX, low = UINT64_MAX, now_pct = 100, low_pct = 100, high_pct = 0;

	for (unsigned i = 0; i < s->n; i++) {
		struct livesink *l = &s->devices[i].sink;
		struct livesink_counts *c = &l->counts;
		if (!l->ring.size_bytes)
			continue;
		uint64_t n = atomic_load(&c->played_frames), least = atomic_load(&c->fill_low_frames);

		underruns += atomic_load(&c->underruns);
		silent += atomic_load(&c->silent_frames);
		skipped += atomic_load(&c->skipped_frames);
		played = n < played ? n : played;
		low = least < low ? least : low;
		uint64_t size = l->ring.size_bytes, frame_bytes = l->frame_bytes, high = atomic_load(&c->fill_high_frames);
		uint64_t fill_pct = ring_fill(&l->ring) * 100 / size, least_pct = least == UINT64_MAX ? 100 : least * frame_bytes * 100 / size;
		now_pct = fill_pct < now_pct ? fill_pct : now_pct;
		low_pct = least_pct < low_pct ? least_pct : low_pct;
		high_pct = high * frame_bytes * 100 / size > high_pct ? high * frame_bytes * 100 / size : high_pct;
	}
	stats_set(&s->underruns, underruns);
	stats_set(&s->silent_frames, silent);
	stats_set(&s->skipped_frames, skipped);
	stats_set(&s->low_frames, low == UINT64_MAX ? 0 : low);
	stats_set(&s->stats->frames_out, played == UINT64_MAX ? 0 : played);
	stats_ring(s->stats, now_pct, low_pct, high_pct);
}

void speakers_count(struct speakers *s)
{
	uint64_t absences = 0, absent = 0;
	double ppm = 0, ratio = 1;
	bool follows = false;

	count_devices(s);
	for (unsigned i = 0; i < s->n; i++) {
		const struct livesink *l = &s->devices[i].sink;
		absences += l->n_absences;
		absent += l->absent_frames;
		if (!l->follows || (follows && fabs(livefollow_ppm(&l->follow)) <= fabs(ppm)))
			continue;
		follows = true;
		ppm = livefollow_ppm(&l->follow);
		ratio = 1.0 + varirate_ppm(&l->follow.v) * 1e-6;
	}
	stats_set(&s->absences, absences);
	stats_set(&s->absent_frames, absent);
	stats_set(&s->ratio_e9, (uint64_t)llrint(ratio * 1e6 * 1000));
	/* It counts what is slower: the device. */
	if (follows)
		stats_drift(s->stats, llrint(ppm * 1000));
}

enum err speakers_init(struct speakers *s, struct tool *tool, struct stats *stats)
{
	s->tool = tool;
	s->stats = stats;
	s->devices = calloc(s->n, sizeof(*s->devices));
	if (!s->devices)
		return err_say(&s->why, ERR_NOMEM, "devices", "%s", err_text(ERR_NOMEM));
	atomic_init(&s->ratio_e9, UNITS_NS_PER_S);
	for (unsigned i = 0; i < s->n; i++) {
		s->devices[i].all = s;
		stats_tick(stats, &s->devices[i].tick);
	}
	stats_key(stats, "underruns", &s->underruns);
	stats_key(stats, "silent_frames", &s->silent_frames);
	stats_key(stats, "skipped_frames", &s->skipped_frames);
	stats_key(stats, "ring_low_frames", &s->low_frames);
	if (s->options.keep) {
		stats_key(stats, "absences", &s->absences);
		stats_key(stats, "absent_frames", &s->absent_frames);
	}
	stats_key(stats, "ratio_e9", &s->ratio_e9);
	return ERR_OK;
}

void speakers_release(struct speakers *s)
{
	free(s->devices);
	s->devices = NULL;
}

static void tell(void *user, const char *text)
{
	struct speakers_device *d = user;

	tool_warn(d->all->tool, d->sink.name, "%s", text);
}

static enum err open_one(struct speakers *s, unsigned i, const char *spec, const struct track *t)
{
	struct speakers_device *d = &s->devices[i];
	const struct speakers_options *from = &s->options;
	struct livesink_options o = {
		.volume_db = from->volume_db, .stop = &tool_stop, .keep = from->keep, .tell = tell, .tell_user = d,
		.follows = !from->own_clocks && (i || from->comes_in_time),
		/* Whoever paces the stream lets it stand still while it is away; what comes by itself goes on. */
		.waits = !i && !from->is_live, .skips = from->is_live, .adapts = from->is_live && from->comes_in_time,
	};

	if (from->latency.is_set)
		o.latency_ns = from->latency.is_frames ? units_to_ns(from->latency.value, t->rate_num, t->rate_den) : from->latency.value;
	/* When the ring of the first is full, those of the others are not: it paces. */
	if (i)
		o.spare_ns = livesink_room_ns(&s->devices[0].sink) + SPARE_NS;
	enum err e = livesink_open(&d->sink, spec, t, &o, &s->why);
	if (e)
		return e;
	atomic_store_explicit(&d->sink.tick, &d->tick, memory_order_relaxed);
	if (d->sink.format.note[0])
		tool_note(s->tool, d->sink.name, "%s", d->sink.format.note);
	char note[256];
	if (*live_say_held(d->sink.held, d->sink.ring.size_bytes, note, sizeof(note)))
		tool_note(s->tool, d->sink.name, "%s", note);
	uint32_t piece = d->sink.threshold_frames / 4;
	piece = piece < LEAST_PIECE_FRAMES ? LEAST_PIECE_FRAMES : piece;
	s->piece_frames = i && s->piece_frames < piece ? s->piece_frames : piece;
	return ERR_OK;
}

/* Nothing was named: the first system of this build that answers. */
static enum err open_default(struct speakers *s, const struct track *t)
{
	const struct live_ops *ops;
	struct err_why first = { 0 };
	enum err e = ERR_DEVICE;

	for (unsigned i = 0; (ops = live_at(i)); i++) {
		char spec[16];

		snprintf(spec, sizeof(spec), "%s:", ops->scheme);
		if (!(e = open_one(s, 0, spec, t)))
			return ERR_OK;
		tool_note(s->tool, s->why.thing, "%s", s->why.reason);
		livesink_release(&s->devices[0].sink);
		if (!first.err)
			first = s->why;
	}
	if (!live_at(0))
		return err_say(&s->why, ERR_DEVICE, "no device", "this build has no support for %s", live_missing());
	return err_say(&s->why, e, "no device", "none of the sound systems answers (%s: %s)", first.thing, first.reason);
}

enum err speakers_open(struct speakers *s, const struct track *t)
{
	enum err e = ERR_OK;

	if (!s->specs[0])
		e = open_default(s, t);
	for (unsigned i = 0; s->specs[0] && i < s->n && !e; i++)
		e = open_one(s, i, s->specs[i], t);
	s->open = true;
	if (!e)
		stats_watch(s->stats, count_devices, s);
	s->format = (struct track){ .rate_num = t->rate_num, .rate_den = t->rate_den, .channels = t->channels, .sample = t->sample, .frame_bytes = t->frame_bytes };
	return e;
}

bool speakers_fit(const struct speakers *s, const struct track *t)
{
	const struct track *f = &s->format;

	return s->open && t->channels == f->channels && t->sample == f->sample && t->rate_num == f->rate_num && t->rate_den == f->rate_den;
}

/* What a device says when it stops is the reason of the tool. */
static enum err failed(struct speakers *s, const struct livesink *l, enum err e)
{
	if (e && e != ERR_END)
		s->why = l->why;
	return e;
}

/* Once, when the thread has begun. */
static void say_scheduling(struct speakers_device *d)
{
	int scheduling = atomic_load_explicit(&d->sink.scheduling, memory_order_relaxed);
	char text[256];

	if (d->scheduling_said || scheduling == LIVE_RUNS_UNKNOWN)
		return;
	d->scheduling_said = true;
	if (*live_say_scheduling(scheduling, text, sizeof(text)))
		tool_note(d->all->tool, d->sink.name, "%s", text);
}

enum err speakers_write(struct speakers *s, const uint8_t *frames, size_t n_frames)
{
	enum err e;

	for (unsigned i = 0; frames && i < s->n; i++)
		livesink_expect(&s->devices[i].sink, n_frames);
	while (n_frames) {
		size_t n = s->n > 1 && n_frames > s->piece_frames ? s->piece_frames : n_frames;

		for (unsigned i = 0; i < s->n; i++) {
			struct livesink *l = &s->devices[i].sink;
			if ((e = failed(s, l, livesink_write(l, frames, n))))
				return e;
		}
		for (unsigned i = 0; i < s->n; i++)
			say_scheduling(&s->devices[i]);
		n_frames -= n;
		frames = frames ? frames + n * s->format.frame_bytes : NULL;
	}
	return ERR_OK;
}

enum err speakers_drain(struct speakers *s)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n && s->open && !e; i++)
		e = failed(s, &s->devices[i].sink, livesink_end(&s->devices[i].sink));
	for (unsigned i = 0; i < s->n && s->open && !e; i++)
		e = failed(s, &s->devices[i].sink, livesink_drain(&s->devices[i].sink));
	return e;
}

void speakers_close(struct speakers *s)
{
	uint64_t underruns = 0, silent = 0;

	if (!s->open)
		return;
	for (unsigned i = 0; i < s->n; i++) {
		const struct livesink *l = &s->devices[i].sink;

		say_scheduling(&s->devices[i]);
		underruns += atomic_load(&l->counts.underruns);
		silent += atomic_load(&l->counts.silent_frames);
		if (l->absent_frames)
			tool_warn(s->tool, l->name, "%" PRIu64 " frames came while it was away, and were not played", l->absent_frames);
	}
	speakers_count(s);
	stats_watch(s->stats, NULL, NULL);
	if (underruns)
		tool_warn(s->tool, "input", "came too late %" PRIu64 " time%s: %" PRIu64 " frames of silence were played", underruns, underruns == 1 ? "" : "s", silent);
	for (unsigned i = 0; i < s->n; i++)
		livesink_release(&s->devices[i].sink);
	s->open = false;
}
