/* play: a PCM track is heard on sound devices, to its last frame. */
#include "base/units.h"
#include "tool/input.h"
#include "tool/progress.h"
#include "tool/select.h"
#include "stage/speakers.h"
#include "tool/stats.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct play {
	struct tool tool;
	struct input in;
	struct stats stats;
	struct progress progress;
	struct opt_list wanted;
	struct select_hits hits;
	struct speakers speakers;
	uint16_t track;           /* that is played, 0 none yet */
	bool is_foreign;          /* it was announced anew as something that is not to be played */
	int64_t begin_pos, end_pos;
	struct err_why why;
};

static void count(struct play *p)
{
	const struct track *t = &p->speakers.format;

	if (!p->speakers.open || (!stats_on(&p->stats) && !p->progress.on))
		return;
	speakers_count(&p->speakers);
	stats_set(&p->stats.frames_in, (uint64_t)(p->end_pos - p->begin_pos));
	progress_update(&p->progress, units_to_s((int64_t)atomic_load(&p->stats.frames_out), t->rate_num, t->rate_den), -1);
}

/* ---- the stream ---- */

/* A file waits until it is read; a stream by a pipe or a socket may be captured somewhere at this moment. */
static bool comes_in_time(const struct input *in)
{
	struct stat st;

	return in->is_stream && !fstat(in->fd, &st) && !S_ISREG(st.st_mode);
}

static enum err take_track(struct play *p, const struct packet *k)
{
	const struct track *t = input_track(&p->in, k->track);
	enum err e;

	if (!t)
		return ERR_OK;
	select_note(&p->hits, &p->wanted, t);
	if (p->track == t->id)
		p->is_foreign = t->kind != TRACK_AUDIO || !select_match(&p->wanted, t);
	if (t->kind != TRACK_AUDIO || !select_match(&p->wanted, t))
		return ERR_OK;
	if (!track_is_pcm(t))
		return p->track && p->track != t->id ? ERR_OK : err_say(&p->why, ERR_FORMAT, p->in.name, "track %u is coded: put `weir decode` in front", t->id);
	if (p->track && p->track != t->id) {
		tool_warn(&p->tool, p->in.name, "only track %u is played; `weir mix` joins several, -t chooses", p->track);
		return ERR_OK;
	}
	if (speakers_fit(&p->speakers, t))
		return ERR_OK;
	if (p->speakers.open) {
		if ((e = speakers_drain(&p->speakers)))
			return e;
		speakers_close(&p->speakers);
	} else {
		p->begin_pos = p->end_pos = t->first_pos;
	}
	p->track = t->id;
	p->speakers.options.comes_in_time = comes_in_time(&p->in);
	p->speakers.options.is_live = p->in.is_stream && p->in.reader.stream.flags & PACKET_STREAM_LIVE;
	return speakers_open(&p->speakers, t);
}

/* Silence up to pos. */
static enum err fill_to(struct play *p, int64_t pos)
{
	enum err e = ERR_OK;

	while (!e && p->end_pos < pos) {
		size_t n = pos - p->end_pos < 4096 ? (size_t)(pos - p->end_pos) : 4096;

		e = speakers_write(&p->speakers, NULL, n);
		p->end_pos += (int64_t)n;
		count(p);
	}
	return e;
}

static enum err take_data(struct play *p, const struct packet *k)
{
	enum err e;

	/* The timeline was moved, and nothing is missing between. */
	if (k->flags & PACKET_DISCONT) {
		p->begin_pos += k->pos - p->end_pos;
		p->end_pos = k->pos;
	}
	if ((e = fill_to(p, k->pos)))
		return e;
	bool whole = k->payload_bytes >= (uint64_t)k->dur * p->speakers.format.frame_bytes;
	if ((e = speakers_write(&p->speakers, whole ? k->payload : NULL, k->dur)))
		return e;
	p->end_pos = k->pos + k->dur;
	return ERR_OK;
}

static bool is_played(const struct play *p, const struct packet *k)
{
	return p->speakers.open && k->track == p->track && !p->is_foreign;
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
		} else if (!e && is_played(p, &k) && k.type == PACKET_DATA) {
			e = take_data(p, &k);
		} else if (!e && is_played(p, &k) && k.type == PACKET_GAP) {
			e = fill_to(p, k.pos + k.dur);
		}
		if (tool_stop)
			return ERR_OK;
		if (e)
			break;
	}
	if (e == ERR_END) {
		if ((e = speakers_drain(&p->speakers)) && e != ERR_END)
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
		p->why = p->speakers.why.reason[0] ? p->speakers.why : p->in.why.reason[0] ? p->in.why : p->in.is_stream ? p->in.reader.why : p->in.feed.why;
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
		} else if (p->speakers.n == SPEAKERS_MAX) {
			tool_usage(&p->tool, operands[i], "more than %u devices", SPEAKERS_MAX);
		} else {
			p->speakers.specs[p->speakers.n++] = operands[i];
		}
	}
	if (!p->speakers.n)
		p->speakers.n = 1;
	return input ? input : "-";
}

int main(int argc, char **argv)
{
	static struct play p;
	struct speakers_options *o = &p.speakers.options;
	struct input_options io = { 0 };
	char missing[128];
	enum err e;

	const struct opt options[] = {
		OPT_LIST('t', "track", "TRACK", &p.wanted, "play this track: number, name or kind (the first of audio)"),
		OPT_DB(0, "volume", &o->volume_db, -200, 40, "make it louder or softer (0dB)"),
		OPT_TIME(0, "latency", "TIME", &o->latency, 0.0001, 60, "begin when so much is there, and keep so much (100ms; of a live stream what the device needs, 20ms and more)"),
		OPT_FLAG(0, "reconnect", &o->keep, "wait for a device that goes away, and go on with it"),
		OPT_FLAG(0, "no-sync", &o->own_clocks, "let stream and devices drift apart"),
		OPT_END
	};
	tool_begin(&p.tool, "play", "[options] [INPUT] [DEVICE]...", "Play a PCM track on sound devices.", options, &argc, &argv);
	const char *input = sort_operands(&p, argv + 1, argc - 1);
	if (select_check(&p.wanted, &p.why))
		tool_usage(&p.tool, p.why.thing, "%s", p.why.reason);

	io.reader.stop = io.source.stop = &tool_stop;
	io.reader.expand_silence = true;
	if ((e = speakers_init(&p.speakers, &p.tool, &p.stats))) {
		p.why = p.speakers.why;
		goto out;
	}
	if ((e = input_open(&p.in, input, &io, &p.why)) || (e = stats_begin(&p.stats, &p.tool, &p.why)))
		goto out;
	progress_begin(&p.progress, &p.tool);
	e = run(&p);
	if ((!e || e == ERR_CUT) && !tool_stop && select_missing(&p.hits, &p.wanted, missing))
		e = err_say(&p.why, ERR_FORMAT, missing, "no such track in the input");
out:
	progress_end(&p.progress);
	if (p.speakers.open)
		count(&p);
	speakers_close(&p.speakers);
	stats_end(&p.stats);
	input_release(&p.in);
	speakers_release(&p.speakers);
	return tool_end(&p.tool, e, &p.why);
}
