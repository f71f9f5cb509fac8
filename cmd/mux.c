/* mux: join streams into one, or write tracks to files. */
#include "stage/muxing.h"

#include <math.h>
#include <string.h>

static void check_tags(struct mux *self)
{
	for (unsigned i = 0; i < self->tags.n; i++) {
		const char *tag = self->tags.value[i];
		size_t n = strcspn(tag, "=");
		bool good = n > 0 && n < 128 && tag[n] == '=';
		for (size_t k = 0; good && k < n; k++)
			good = tag[k] >= 0x20 && tag[k] <= 0x7D;
		if (!good)
			tool_usage(&self->tool, "--tag", "'%s' is not KEY=VALUE with a key of 1 to 127 printable ASCII characters", tag);
	}
}

/* What is written, and that the options fit it. */
static void choose_format(struct mux *self)
{
	struct takes_options *o = &self->takes_options;
	struct tool *t = &self->tool;

	if (self->force && !self->output)
		tool_usage(t, "--force", "nothing is overwritten without -o");
	if (!self->output) {
		if (self->format && self->format != SINK_WEIR)
			tool_usage(t, "--format", "'%s' needs -o (-o - writes to stdout)", sink_format_name((enum sink_format)self->format));
		self->format = SINK_WEIR;
	} else if (!self->format && !strcmp(self->output, "-")) {
		tool_usage(t, "-o -", "needs --format, one of: " SINK_FORMAT_LIST);
	} else if (!self->format) {
		self->format = (int)sink_format_of_name(self->output);
		if (!self->format)
			tool_usage(t, self->output, "its ending names no format; use one of: " SINK_FORMAT_LIST ", or give --format");
	}
	self->is_stream = self->format == SINK_WEIR;
	self->is_mkv = self->format == SINK_MKA;
	self->video_options.first = self->is_mkv;
	if (self->is_mkv && (o->split_every.is_set || o->split_on_clock || o->sync))
		tool_usage(t, o->sync ? "--sync" : "--split-every", "is for files of one track; Matroska holds them all, each where it is");
	if ((self->is_mkv || self->is_stream) && o->max_gap.is_set)
		tool_usage(t, "--max-gap", "is for audio files of one track; %s keeps what came as it came", self->is_mkv ? "Matroska" : "a weir stream");
	if (self->rf64_above_bytes && self->format != SINK_WAV)
		tool_usage(t, "--rf64-above", "is for WAV, not for %s", sink_format_name((enum sink_format)self->format));
	if (self->mkv_options.flac && !self->is_mkv)
		tool_usage(t, "--flac", "is for Matroska; a name that ends in .flac makes a FLAC file");
	if (self->bulk_fd >= 0 && !self->is_stream)
		tool_usage(t, "--bulk-fd", "is for a stream");
	if (self->is_stream && (o->split_every.is_set || o->split_on_clock || o->sync))
		tool_usage(t, o->sync ? "--sync" : "--split-every", "is for audio files with -o; a weir stream keeps what came as it came");
	if (self->video_options.live && !self->video_options.spec && !self->data_specs.n)
		tool_usage(t, "--live", "is for --video and --data");
	if (self->bulk_fd >= 0 && !self->video_options.spec)
		tool_usage(t, "--bulk-fd", "is for --video");
	if (self->data_specs.n && !self->is_stream)
		tool_usage(t, "--data", "goes into a weir stream, not into %s", sink_format_name((enum sink_format)self->format));
	if (self->video_options.spec && !self->is_stream && !self->is_mkv)
		tool_usage(t, "--video", "goes into a weir stream or Matroska, not into %s", sink_format_name((enum sink_format)self->format));
}

/* Recording on level, if it was asked for: the levels, and that they fit. */
static enum err choose_level(struct mux *self, struct levelgate_options *level)
{
	enum err e = leveltakes_choose(level, &self->level_choice, &self->why);

	if (e)
		return e == ERR_AGAIN ? ERR_OK : e;
	if (self->is_stream || self->is_mkv)
		return err_say(&self->why, ERR_ARG, "--start-above", "is for audio files with -o; a weir stream and Matroska keep what came as it came");
	self->takes_options.on_level = true;
	return ERR_OK;
}

int main(int argc, char **argv)
{
	static const struct opt_choice formats[] = {
		{ "weir", SINK_WEIR }, { "opus", SINK_OPUS }, { "wav", SINK_WAV }, { "w64", SINK_W64 }, { "rf64", SINK_RF64 },
		{ "flac", SINK_FLAC }, { "caf", SINK_CAF }, { "aiff", SINK_AIFF }, { "raw", SINK_RAW },
		{ "mka", SINK_MKA }, { NULL, 0 },
	};
	static struct mux mux = { .level_choice.start_db = NAN, .bulk_fd = -1 };
	struct mux *self = &mux;
	struct levelgate_options level = {0};
	enum err e;
	const struct opt options[] = {
		OPT_STRING('o', "output", "FILE", &self->output, "write the tracks to FILE (-: stdout); %t %n %i and strftime's make names"),
		OPT_CHOICE(0, "format", "FORMAT", &self->format, formats, "what FILE is; default: by its ending"),
		OPT_FLAG('y', "force", &self->force, "overwrite existing files"),
		OPT_LIST('t', "track", "TRACK", &self->wanted, "only this track: a number of its input, a name, or a kind; repeatable"),
		OPT_LIST(0, "tag", "KEY=VALUE", &self->tags, "set a tag, in place of those of that key; repeatable"),
		OPT_TIME(0, "split-every", "TIME", &self->takes_options.split_every, 0, 31536000, "begin a new file every so often, at the very frame"),
		OPT_FLAG(0, "split-on-clock", &self->takes_options.split_on_clock, "cut at multiples of that on the wall clock (UTC)"),
		OPT_STRING(0, "video", "VIDEO", &self->video_options.spec, "raw frames as a track: FIFO[,WIDTHxHEIGHT,FORMAT,FPS], the rest by a y4m header"),
		OPT_LIST(0, "data", "DATA", &self->data_specs, "messages as a track: FIFO[,name=NAME,lossy,text|json|bytes|osc|midi]; repeatable"),
		OPT_FLAG(0, "flac", &self->mkv_options.flac, "PCM of whole numbers goes into Matroska as FLAC"),
		OPT_INT(0, "bulk-fd", "FD", &self->bulk_fd, 3, 1048575, "write the video to this descriptor, as a stream of its own"),
		OPT_FLAG(0, "live", &self->video_options.live, "video and messages come live: rather drop than wait, place them by the clock"),
		OPT_FLAG(0, "sync", &self->takes_options.sync, "all files begin and end together, with silence where a track does not"),
		OPT_TIME(0, "max-gap", "TIME", &self->takes_options.max_gap, 0, 31536000, "a longer gap is no silence, but begins a new file (1h)"),
		OPT_DB(0, "start-above", &self->level_choice.start_db, -150, 0, "record on level: a file begins where a sample is above this"),
		OPT_STRING(0, "stop-below", "LEVEL:TIME", &self->level_choice.stop_below, "a file ends when all were below this for so long (2 s)"),
		OPT_TIME(0, "pre-roll", "TIME", &self->level_choice.preroll, 0, LEVELTAKES_MAX_PREROLL_S, "begin files so long before that; default 500ms"),
		OPT_SIZE(0, "rf64-above", &self->rf64_above_bytes, 1024, 4294967295.0, "WAV files longer than this become RF64; default 4 GiB"),
		OPT_END
	};

	tool_begin(&self->tool, "mux", "[-o FILE] [--format FORMAT] [options] [INPUT...]",
		"Joins streams and audio files into one stream; with -o, writes tracks to files.", options, &argc, &argv);
	check_tags(self);
	choose_format(self);
	if ((e = select_check(&self->wanted, &self->why)))
		goto out;
	stats_key(&self->stats, "gap_frames", &self->gap_frames);
	stats_key(&self->stats, "clipped_samples", &self->clipped_samples);
	stats_key(&self->stats, "files", &self->files);
	if (self->video_options.spec) {
		stats_key(&self->stats, "video_frames", &muxing_video(self)->n_frames);
		stats_key(&self->stats, "video_dropped", &muxing_video(self)->n_dropped);
	}
	if ((e = choose_level(self, &level)) || (e = muxout_open(self, &level)) || (e = muxing_open(self, argv + 1, (unsigned)(argc - 1))))
		goto out;
	if ((e = stats_begin(&self->stats, &self->tool, &self->why)))
		goto out;
	progress_begin(&self->progress, &self->tool);
	e = muxing_run(self);
	progress_end(&self->progress);
	muxing_count(self);
	stats_end(&self->stats);
out:
	muxing_release(self, e != ERR_OK);
	return tool_end(&self->tool, e, &self->why);
}
