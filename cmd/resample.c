/* resample: PCM tracks at another rate; those that have it already, and everything else, pass. */
#include "base/units.h"
#include "tool/pump.h"
#include "tool/retime.h"
#include "tool/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOBS 64

/* A track that is resampled. */
struct lane {
	struct retime *retime;    /* NULL between its END and its next announcement */
	int64_t end_pos;          /* of what was written before that */
};

struct resample {
	struct tool tool;
	struct pump pump;
	struct retime_options options;
	struct opt_list wanted;
	struct select_hits hits;
	struct lane **lanes;
	unsigned n_lanes;
	atomic_uint_fast64_t clipped_samples;
};

static struct lane *add_lane(struct resample *self)
{
	struct lane **more = realloc(self->lanes, (self->n_lanes + 1) * sizeof(struct lane *));
	struct lane *lane = more ? calloc(1, sizeof(*lane)) : NULL;

	if (more)
		self->lanes = more;
	if (!lane)
		return NULL;
	lane->end_pos = INT64_MIN;
	self->lanes[self->n_lanes++] = lane;
	return lane;
}

/* What is still inside comes out. */
static enum err close_lane(struct lane *lane)
{
	enum err e = lane->retime ? retime_finish(lane->retime) : ERR_OK;

	if (lane->retime && retime_end_pos(lane->retime) > lane->end_pos)
		lane->end_pos = retime_end_pos(lane->retime);
	retime_free(lane->retime);
	lane->retime = NULL;
	return e;
}

/* A new announcement is a new beginning for the filter; the timeline goes on. */
static enum err open_lane(struct resample *self, const struct track *t, void **user)
{
	struct lane *lane = *user;
	enum err e;

	if (!lane && !(lane = *user = add_lane(self)))
		return ERR_NOMEM;
	if ((e = close_lane(lane)))
		return e;
	self->options.live = self->pump.in.is_stream && self->pump.in.reader.stream.flags & PACKET_STREAM_LIVE;
	e = retime_new(&lane->retime, t, &self->options, &self->pump.out, lane->end_pos, &self->pump.why);
	if (e && self->pump.why.reason[0])
		snprintf(self->pump.why.thing, sizeof(self->pump.why.thing), "track %u", t->id);
	return e;
}

static enum err take_track(struct resample *self, struct packet *p)
{
	const struct track *t = input_track(&self->pump.in, p->track);
	void **user = input_user(&self->pump.in, p->track);
	enum err e;

	if (!t || !user)
		return ERR_OK;
	select_note(&self->hits, &self->wanted, t);
	if (select_match(&self->wanted, t) && t->kind == TRACK_AUDIO) {
		if (track_is_pcm(t) && retime_is_needed(t, &self->options))
			return open_lane(self, t, user);
		if (!track_is_pcm(t) && t->rate_num != (uint64_t)self->options.rate_hz * t->rate_den) {
			char thing[32], codec[8];
			snprintf(thing, sizeof(thing), "track %u", t->id);
			return err_say(&self->pump.why, ERR_FORMAT, thing, "%s audio of %u Hz cannot be resampled: decode it first, or choose others with -t",
				track_codec_name(t->codec, codec), track_rate_hz(t));
		}
	}
	/* Not ours, or no longer. */
	if (*user && (e = close_lane(*user)))
		return e;
	*user = NULL;
	return pump_pass(&self->pump, p);
}

static enum err take(void *stage, struct packet *p)
{
	struct resample *self = stage;
	void **user = p->track ? input_user(&self->pump.in, p->track) : NULL;
	struct lane *lane = user ? *user : NULL;
	enum err e;

	if (p->type == PACKET_TRACK)
		return take_track(self, p);
	if (lane && lane->retime && p->type == PACKET_DATA)
		return retime_data(lane->retime, p);
	if (lane && lane->retime && p->type == PACKET_GAP)
		return retime_gap(lane->retime, p);
	if (lane && p->type == PACKET_END && (e = close_lane(lane)))
		return e;
	return pump_pass(&self->pump, p);
}

static enum err finish(void *stage)
{
	struct resample *self = stage;
	enum err e = ERR_OK;

	for (unsigned i = 0; i < self->n_lanes && !e; i++)
		e = close_lane(self->lanes[i]);
	return e;
}

static void check_usage(struct resample *self, int argc, char **argv)
{
	struct err_why why = { 0 };

	if (argc > 2)
		tool_usage(&self->tool, argv[2], "one input at most");
	if (!self->options.rate_hz)
		tool_usage(&self->tool, "-r", "is needed: the rate to resample to, %u to %u Hz", TRACK_MIN_RATE_HZ, TRACK_MAX_RATE_HZ);
	if (select_check(&self->wanted, &why))
		tool_usage(&self->tool, why.thing, "%s", why.reason);
}

/* Everything that the output is made of beside the input; not -j, which changes nothing. */
static void seed(struct resample *self)
{
	const struct retime_options *o = &self->options;
	int settings[] = { (int)o->rate_hz, (int)o->quality, (int)o->phase, (int)o->format, o->dither };

	writer_seed(&self->pump.out, settings, sizeof(settings));
	for (unsigned i = 0; i < self->wanted.n; i++)
		writer_seed(&self->pump.out, self->wanted.value[i], strlen(self->wanted.value[i]) + 1);
}

int main(int argc, char **argv)
{
	static struct resample self = { .options = { .dither = true } };
	static const struct opt_choice qualities[] = {
		{ "quick", RESAMPLER_QUICK }, { "low", RESAMPLER_LOW }, { "medium", RESAMPLER_MEDIUM }, { "high", RESAMPLER_HIGH },
		{ "very-high", RESAMPLER_VERY_HIGH }, { NULL, 0 },
	};
	static const struct opt_choice phases[] = {
		{ "linear", RESAMPLER_LINEAR }, { "intermediate", RESAMPLER_INTERMEDIATE }, { "minimum", RESAMPLER_MINIMUM }, { NULL, 0 },
	};
	static const struct opt_choice formats[] = {
		{ "s16", SAMPLE_S16 }, { "s24", SAMPLE_S24 }, { "s32", SAMPLE_S32 }, { "f32", SAMPLE_F32 }, { "f64", SAMPLE_F64 }, { NULL, 0 },
	};
	int quality = RESAMPLER_VERY_HIGH, phase = RESAMPLER_LINEAR, format = SAMPLE_CODED;
	int64_t jobs = 1;
	char missing[128];
	enum err e;

	const struct opt options[] = {
		OPT_RATE('r', "rate", &self.options.rate_hz, TRACK_MIN_RATE_HZ, TRACK_MAX_RATE_HZ, "the rate to resample to"),
		OPT_CHOICE('q', "quality", "QUALITY", &quality, qualities, "quick, low, medium, high or very-high (very-high)"),
		OPT_CHOICE(0, "phase", "PHASE", &phase, phases, "of the filter: linear, intermediate or minimum (linear)"),
		OPT_CHOICE('f', "format", "FORMAT", &format, formats, "sample format: s16, s24, s32, f32 or f64 (f32; f64 of f64)"),
		OPT_CLEAR(0, "no-dither", &self.options.dither, "round to s16 and s24 without dither"),
		OPT_INT('j', "jobs", "JOBS", &jobs, 1, MAX_JOBS, "split the channels of a track over so many threads (1)"),
		OPT_LIST('t', "track", "TRACK", &self.wanted, "resample only these tracks: number, name or kind; the others pass"),
		OPT_END
	};
	tool_begin(&self.tool, "resample", "-r RATE [options] [INPUT]", "Resample PCM tracks; those at that rate, and others, pass.", options, &argc,
		&argv);
	check_usage(&self, argc, argv);
	self.options.quality = (enum resampler_quality)quality;
	self.options.phase = (enum resampler_phase)phase;
	self.options.format = (enum sample)format;
	self.options.n_threads = (unsigned)jobs;
	self.options.clipped_samples = &self.clipped_samples;

	stats_key(&self.pump.stats, "clipped_samples", &self.clipped_samples);
	if ((e = pump_open(&self.pump, &self.tool, argc > 1 ? argv[1] : "-", NULL)))
		goto out;
	seed(&self);
	e = pump_run(&self.pump, take, finish, &self);
	if ((!e || e == ERR_CUT) && select_missing(&self.hits, &self.wanted, missing))
		e = err_say(&self.pump.why, ERR_FORMAT, missing, "no such track in the input");
out:
	pump_release(&self.pump); /* its last statistics name the threads, too */
	for (unsigned i = 0; i < self.n_lanes; i++) {
		retime_free(self.lanes[i]->retime);
		free(self.lanes[i]);
	}
	free(self.lanes);
	return tool_end(&self.tool, e, &self.pump.why);
}
