/* play: a PCM track is heard on sound devices, to its last frame. */
#include "base/units.h"
#include "media/livesink.h"
#include "tool/input.h"
#include "tool/progress.h"
#include "tool/select.h"
#include "tool/stats.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SINKS 16u

struct play {
	struct tool tool;
	struct input in;
	struct stats stats;
	struct progress progress;
	struct opt_list wanted;
	struct select_hits hits;
	struct opt_time latency;
	double volume_db;
	const char *specs[MAX_SINKS];
	unsigned n_sinks;
	struct livesink *sinks;   /* one for each */
	struct tick ticks[MAX_SINKS];
	bool open;
	uint16_t track;           /* that is played, 0 none yet */
	uint32_t rate_num, rate_den, frame_bytes;
	uint16_t channels;
	uint8_t sample;
	int64_t begin_pos, end_pos;
	uint64_t said_underruns;
	atomic_uint_fast64_t underruns, silent_frames, low_frames;
	struct err_why why;
};

/* What the devices' callbacks counted, of all together; of the rings the emptiest. */
static void count_devices(void *user)
{
	struct play *p = user;
	uint64_t underruns = 0, silent = 0, played = UINT64_MAX, low = UINT64_MAX, now_pct = 100, low_pct = 100, high_pct = 0;

	for (unsigned i = 0; i < p->n_sinks; i++) {
		struct livesink_counts *c = &p->sinks[i].counts;
		if (!p->sinks[i].ring.size_bytes)
			continue;
		uint64_t n = atomic_load(&c->played_frames), least = atomic_load(&c->fill_low_frames);

		underruns += atomic_load(&c->underruns);
		silent += atomic_load(&c->silent_frames);
		played = n < played ? n : played;
		low = least < low ? least : low;
		uint64_t size = p->sinks[i].ring.size_bytes, frame_bytes = p->sinks[i].frame_bytes, high = atomic_load(&c->fill_high_frames);
		uint64_t fill_pct = ring_fill(&p->sinks[i].ring) * 100 / size, least_pct = least == UINT64_MAX ? 100 : least * frame_bytes * 100 / size;
		now_pct = fill_pct < now_pct ? fill_pct : now_pct;
		low_pct = least_pct < low_pct ? least_pct : low_pct;
		high_pct = high * frame_bytes * 100 / size > high_pct ? high * frame_bytes * 100 / size : high_pct;
	}
	stats_set(&p->underruns, underruns);
	stats_set(&p->silent_frames, silent);
	stats_set(&p->low_frames, low == UINT64_MAX ? 0 : low);
	stats_set(&p->stats.frames_out, played == UINT64_MAX ? 0 : played);
	stats_ring(&p->stats, now_pct, low_pct, high_pct);
}

static void count(struct play *p)
{
	if (!p->open || (!stats_on(&p->stats) && !p->progress.on))
		return;
	count_devices(p);
	stats_set(&p->stats.frames_in, (uint64_t)(p->end_pos - p->begin_pos));
	progress_update(&p->progress, units_to_s((int64_t)atomic_load(&p->stats.frames_out), p->rate_num, p->rate_den), -1);
}

/* ---- the devices ---- */

static enum err open_sink(struct play *p, struct livesink *l, const char *spec, const struct track *t)
{
	struct livesink_options o = { .volume_db = p->volume_db, .stop = &tool_stop };

	if (p->latency.is_set)
		o.latency_ns = p->latency.is_frames ? units_to_ns(p->latency.value, t->rate_num, t->rate_den) : p->latency.value;
	enum err e = livesink_open(l, spec, t, &o, &p->why);
	if (!e)
		atomic_store_explicit(&l->tick, &p->ticks[l - p->sinks], memory_order_relaxed);
	if (!e && l->format.note[0])
		tool_note(&p->tool, l->name, "%s", l->format.note);
	return e;
}

/* Nothing was named: the first system of this build that answers. */
static enum err open_default(struct play *p, const struct track *t)
{
	const struct live_ops *ops;
	struct err_why first = { 0 };
	enum err e = ERR_DEVICE;

	for (unsigned i = 0; (ops = live_at(i)); i++) {
		char spec[16];

		snprintf(spec, sizeof(spec), "%s:", ops->scheme);
		if (!(e = open_sink(p, &p->sinks[0], spec, t)))
			return ERR_OK;
		tool_note(&p->tool, p->why.thing, "%s", p->why.reason);
		livesink_release(&p->sinks[0]);
		if (!first.err)
			first = p->why;
	}
	if (!live_at(0))
		return err_say(&p->why, ERR_DEVICE, "no device", "this build has no support for %s", live_missing());
	return err_say(&p->why, e, "no device", "none of the sound systems answers (%s: %s)", first.thing, first.reason);
}

static enum err open_sinks(struct play *p, const struct track *t)
{
	enum err e = ERR_OK;

	if (!p->specs[0])
		e = open_default(p, t);
	for (unsigned i = 0; p->specs[0] && i < p->n_sinks && !e; i++)
		e = open_sink(p, &p->sinks[i], p->specs[i], t);
	p->open = true;
	if (!e)
		stats_watch(&p->stats, count_devices, p);
	p->rate_num = t->rate_num;
	p->rate_den = t->rate_den;
	p->channels = t->channels;
	p->sample = t->sample;
	p->frame_bytes = t->frame_bytes;
	return e;
}

/* What a device says when it stops is the reason of the tool. */
static enum err failed(struct play *p, const struct livesink *l, enum err e)
{
	if (e && e != ERR_END)
		p->why = l->why;
	return e;
}

static enum err write_sinks(struct play *p, const uint8_t *frames, size_t n_frames)
{
	enum err e;

	for (unsigned i = 0; i < p->n_sinks; i++) {
		if ((e = failed(p, &p->sinks[i], livesink_write(&p->sinks[i], frames, n_frames))))
			return e;
	}
	return ERR_OK;
}

static enum err drain_sinks(struct play *p)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < p->n_sinks && p->open && !e; i++)
		e = failed(p, &p->sinks[i], livesink_drain(&p->sinks[i]));
	return e;
}

static void close_sinks(struct play *p)
{
	uint64_t underruns = 0, silent = 0;

	for (unsigned i = 0; i < p->n_sinks && p->open; i++) {
		underruns += atomic_load(&p->sinks[i].counts.underruns);
		silent += atomic_load(&p->sinks[i].counts.silent_frames);
	}
	count(p);
	stats_watch(&p->stats, NULL, NULL);
	if (underruns)
		tool_warn(&p->tool, "input", "came too late %" PRIu64 " time%s: %" PRIu64 " frames of silence were played", underruns, underruns == 1 ? "" : "s", silent);
	for (unsigned i = 0; i < p->n_sinks; i++)
		livesink_release(&p->sinks[i]);
	p->open = false;
}

/* ---- the stream ---- */

static enum err take_track(struct play *p, const struct packet *k)
{
	const struct track *t = input_track(&p->in, k->track);
	enum err e;

	if (!t)
		return ERR_OK;
	select_note(&p->hits, &p->wanted, t);
	if (t->kind != TRACK_AUDIO || !select_match(&p->wanted, t))
		return ERR_OK;
	if (!track_is_pcm(t))
		return p->track && p->track != t->id ? ERR_OK : err_say(&p->why, ERR_FORMAT, p->in.name, "track %u is coded: put `weir decode` in front", t->id);
	if (p->track && p->track != t->id) {
		tool_warn(&p->tool, p->in.name, "only track %u is played; `weir mix` joins several, -t chooses", p->track);
		return ERR_OK;
	}
	if (p->open && t->channels == p->channels && t->sample == p->sample && t->rate_num == p->rate_num && t->rate_den == p->rate_den)
		return ERR_OK;
	if (p->open) {
		if ((e = drain_sinks(p)))
			return e;
		close_sinks(p);
	} else {
		p->begin_pos = p->end_pos = t->first_pos;
	}
	p->track = t->id;
	return open_sinks(p, t);
}

/* Silence up to pos. */
static enum err fill_to(struct play *p, int64_t pos)
{
	enum err e = ERR_OK;

	while (!e && p->end_pos < pos) {
		size_t n = pos - p->end_pos < 4096 ? (size_t)(pos - p->end_pos) : 4096;

		e = write_sinks(p, NULL, n);
		p->end_pos += (int64_t)n;
		count(p);
	}
	return e;
}

static enum err take_data(struct play *p, const struct packet *k)
{
	enum err e = fill_to(p, k->pos);

	if (e)
		return e;
	bool whole = k->payload_bytes >= (uint64_t)k->dur * p->frame_bytes;
	if ((e = write_sinks(p, whole ? k->payload : NULL, k->dur)))
		return e;
	p->end_pos = k->pos + k->dur;
	return ERR_OK;
}

static enum err run(struct play *p)
{
	struct packet k;
	enum err e;

	for (;;) {
		e = input_next(&p->in, &k);
		if (e == ERR_AGAIN) {
			count(p);
			e = input_fill(&p->in);
		} else if (!e && k.type == PACKET_TRACK) {
			e = take_track(p, &k);
		} else if (!e && p->open && k.track == p->track && k.type == PACKET_DATA) {
			e = take_data(p, &k);
		} else if (!e && p->open && k.track == p->track && k.type == PACKET_GAP) {
			e = fill_to(p, k.pos + k.dur);
		}
		if (tool_stop)
			return ERR_OK;
		if (e)
			break;
	}
	if (e == ERR_END) {
		if ((e = drain_sinks(p)) && e != ERR_END)
			return e;
		if (input_is_cut(&p->in)) {
			char loss[200];
			input_describe_loss(&p->in, loss, sizeof(loss));
			return err_say(&p->why, ERR_CUT, p->in.name, "%s", loss);
		}
		/* A track that was named and is not there is said by main(). */
		return p->track || tool_stop || p->wanted.n ? ERR_OK : err_say(&p->why, ERR_FORMAT, p->in.name, "has no audio track to play");
	}
	if (!p->why.reason[0])
		p->why = p->in.why.reason[0] ? p->in.why : p->in.is_stream ? p->in.reader.why : p->in.feed.why;
	return e;
}

/* Operands that name devices are where it goes, another is what is played. */
static const char *sort_operands(struct play *p, char *const *operands, int n)
{
	const char *input = NULL;

	for (int i = 0; i < n; i++) {
		if (!live_is_device(operands[i])) {
			if (input)
				tool_usage(&p->tool, operands[i], "one input at most, and it is '%s'; devices are pipewire:, pulse:, jack:, alsa:", input);
			input = operands[i];
		} else if (p->n_sinks == MAX_SINKS) {
			tool_usage(&p->tool, operands[i], "more than %u devices", MAX_SINKS);
		} else {
			p->specs[p->n_sinks++] = operands[i];
		}
	}
	if (!p->n_sinks)
		p->n_sinks = 1;
	return input ? input : "-";
}

int main(int argc, char **argv)
{
	static struct play p;
	struct input_options io = { 0 };
	char missing[128];
	enum err e;

	const struct opt options[] = {
		OPT_LIST('t', "track", "TRACK", &p.wanted, "play this track: number, name or kind (the first of audio)"),
		OPT_DB(0, "volume", &p.volume_db, -200, 40, "make it louder or softer (0dB)"),
		OPT_TIME(0, "latency", "TIME", &p.latency, 0.0001, 60, "begin when so much is there, and keep so much (100ms)"),
		OPT_END
	};
	tool_begin(&p.tool, "play", "[options] [INPUT] [DEVICE]...", "Play a PCM track on sound devices.", options, &argc, &argv);
	const char *input = sort_operands(&p, argv + 1, argc - 1);
	if (select_check(&p.wanted, &p.why))
		tool_usage(&p.tool, p.why.thing, "%s", p.why.reason);

	for (unsigned i = 0; i < p.n_sinks; i++)
		stats_tick(&p.stats, &p.ticks[i]);
	stats_key(&p.stats, "underruns", &p.underruns);
	stats_key(&p.stats, "silent_frames", &p.silent_frames);
	stats_key(&p.stats, "ring_low_frames", &p.low_frames);
	io.reader.stop = io.source.stop = &tool_stop;
	io.reader.expand_silence = true;
	p.sinks = calloc(p.n_sinks, sizeof(*p.sinks));
	e = p.sinks ? ERR_OK : err_say(&p.why, ERR_NOMEM, "devices", "%s", err_text(ERR_NOMEM));
	if (e || (e = input_open(&p.in, input, &io, &p.why)) || (e = stats_begin(&p.stats, &p.tool, &p.why)))
		goto out;
	progress_begin(&p.progress, &p.tool);
	e = run(&p);
	if ((!e || e == ERR_CUT) && !tool_stop && select_missing(&p.hits, &p.wanted, missing))
		e = err_say(&p.why, ERR_FORMAT, missing, "no such track in the input");
out:
	progress_end(&p.progress);
	if (p.sinks)
		close_sinks(&p);
	stats_end(&p.stats);
	input_release(&p.in);
	free(p.sinks);
	return tool_end(&p.tool, e, &p.why);
}
