/* resample: PCM tracks at another rate; those that have it already, and everything else, pass. */
#include "base/units.h"
#include "tool/filter.h"
#include "stage/retime.h"

#include <stdio.h>

#define MAX_JOBS 64

/* A track that is resampled. */
struct lane {
	struct filter_lane base;
	struct retime *retime;    /* NULL between its END and its next announcement */
	int64_t end_pos;          /* of what was written before that */
};

struct resample {
	struct tool tool;
	struct filter filter;
	struct retime_options options;
	atomic_uint_fast64_t clipped_samples;
};

/* What is still inside comes out. */
static enum err close_lane(struct filter *f, struct filter_lane *base)
{
	struct lane *lane = (struct lane *)base;
	enum err e = retime_finish(lane->retime);

	(void)f;
	if (retime_end_pos(lane->retime) > lane->end_pos)
		lane->end_pos = retime_end_pos(lane->retime);
	retime_free(lane->retime);
	lane->retime = NULL;
	return e;
}

/* A new announcement is a new beginning for the filter; the timeline goes on. */
static enum err open_lane(struct filter *f, struct filter_lane *base, const struct track *t)
{
	struct resample *self = f->stage;
	struct lane *lane = (struct lane *)base;

	if (base->n_opened == 0)
		lane->end_pos = INT64_MIN;
	self->options.live = f->pump.in.is_stream && f->pump.in.reader.stream.flags & PACKET_STREAM_LIVE;
	return retime_new(&lane->retime, t, &self->options, &f->pump.out, lane->end_pos, &f->pump.why);
}

static enum err accept_track(struct filter *f, const struct track *t)
{
	struct resample *self = f->stage;
	char thing[32], codec[8];

	if (t->kind != TRACK_AUDIO)
		return ERR_AGAIN;
	if (track_is_pcm(t))
		return retime_is_needed(t, &self->options) ? ERR_OK : ERR_AGAIN;
	if (t->rate_num == (uint64_t)self->options.rate_hz * t->rate_den)
		return ERR_AGAIN;
	snprintf(thing, sizeof(thing), "track %u", t->id);
	return err_say(&f->pump.why, ERR_FORMAT, thing, "%s audio of %u Hz cannot be resampled: decode it first, or choose others with -t",
		track_codec_name(t->codec, codec), track_rate_hz(t));
}

static enum err take_data(struct filter *f, struct filter_lane *base, const struct packet *p)
{
	(void)f;
	return retime_data(((struct lane *)base)->retime, p);
}

static enum err take_gap(struct filter *f, struct filter_lane *base, const struct packet *p)
{
	(void)f;
	return retime_gap(((struct lane *)base)->retime, p);
}

static void release_lane(struct filter_lane *base)
{
	retime_free(((struct lane *)base)->retime);
}

static const struct filter_ops ops = {
	.lane_bytes = sizeof(struct lane), .accept = accept_track, .open = open_lane, .close = close_lane, .data = take_data, .gap = take_gap,
	.release = release_lane,
};

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
	enum err e;

	const struct opt options[] = {
		OPT_RATE('r', "rate", &self.options.rate_hz, OPT_LEAST_RATE_HZ, TRACK_MAX_RATE_HZ, "the rate to resample to"),
		OPT_CHOICE('q', "quality", "QUALITY", &quality, qualities, "quick, low, medium, high or very-high (very-high)"),
		OPT_CHOICE(0, "phase", "PHASE", &phase, phases, "of the filter: linear, intermediate or minimum (linear)"),
		OPT_CHOICE('f', "format", "FORMAT", &format, formats, "sample format: s16, s24, s32, f32 or f64 (f32; f64 of f64)"),
		OPT_CLEAR(0, "no-dither", &self.options.dither, "round to s16 and s24 without dither"),
		OPT_INT('j', "jobs", "JOBS", &jobs, 1, MAX_JOBS, "split the channels of a track over so many threads (1)"),
		OPT_LIST('t', "track", "TRACK", &self.filter.wanted, "resample only these tracks: number, name or kind; the others pass"),
		OPT_END
	};
	tool_begin(&self.tool, "resample", "-r RATE [options] [INPUT]", "Resample PCM tracks; those at that rate, and others, pass.", options, &argc,
		&argv);
	filter_check_usage(&self.filter, &self.tool, argc, argv);
	if (!self.options.rate_hz)
		tool_usage(&self.tool, "-r", "is needed: the rate to resample to, %u to %u Hz", OPT_LEAST_RATE_HZ, TRACK_MAX_RATE_HZ);
	self.options.quality = (enum resampler_quality)quality;
	self.options.phase = (enum resampler_phase)phase;
	self.options.format = (enum sample)format;
	self.options.n_threads = (unsigned)jobs;
	self.options.clipped_samples = &self.clipped_samples;

	stats_key(&self.filter.pump.stats, "clipped_samples", &self.clipped_samples);
	if ((e = filter_open(&self.filter, &self.tool, &ops, &self, argc, argv, NULL)))
		goto out;
	/* Not -j, which changes nothing. */
	filter_seed(&self.filter, "%u Hz, quality %d, phase %d, format %d, dither %d", self.options.rate_hz, quality, phase, format,
		self.options.dither);
	e = filter_run(&self.filter);
out:
	filter_release(&self.filter); /* the last statistics name the threads, too */
	return tool_end(&self.tool, e, &self.filter.pump.why);
}
