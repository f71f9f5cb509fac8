/* mux: join streams into one, or write tracks to files. */
#include "tool/bulkout.h"
#include "tool/datajoin.h"
#include "tool/join.h"
#include "tool/leveltakes.h"
#include "tool/mkvout.h"
#include "tool/progress.h"
#include "tool/select.h"
#include "tool/stats.h"
#include "tool/takename.h"
#include "tool/takes.h"
#include "tool/tool.h"
#include "tool/videojoin.h"
#include "wire/writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct mux {
	struct tool tool;
	const char *output;       /* NULL: a stream to stdout */
	int format;               /* enum sink_format, 0: by the name */
	struct opt_list wanted, tags;
	struct select_hits hits;
	struct takes_options takes_options;
	uint64_t rf64_above_bytes;
	struct leveltakes_choice level_choice;
	bool force;

	struct join join;
	struct videojoin_options video_options;
	struct videojoin video;   /* --video */
	int64_t bulk_fd;          /* --bulk-fd; −1 none */
	struct bulkout bulk;      /* then in place of video */
	struct opt_list data_specs;
	struct datajoin data;     /* --data */
	bool is_stream;           /* what is written is a weir stream */
	struct sinkfile file;     /* of a .weir file */
	struct writer writer;
	struct mkvout_options mkv_options;
	struct mkvout mkv;        /* of a Matroska file, */
	bool is_mkv;              /* if it is one */
	struct takes takes;       /* of all other files */
	struct leveltakes level;  /* on the way to them, with --start-above */
	bool begun;
	struct stats stats;
	atomic_uint_fast64_t gap_frames, clipped_samples, files;
	struct progress progress;
	struct err_why why;
};

/* ---- the stream ---- */

/* What the inputs are makes the stream what it is: the same inputs, the same bytes. */
static enum err begin_stream(struct mux *self)
{
	const struct packet_stream *from = join_stream(&self->join);
	struct writer *w = &self->writer;
	const struct input *in;

	for (unsigned i = 0; i < self->join.n_sources; i++) {
		in = join_input(&self->join, i);
		if (in && in->is_stream)
			writer_seed(w, in->reader.stream.uuid, sizeof(in->reader.stream.uuid));
		else if (in)
			writer_seed(w, in->name, strlen(in->name));
	}
	for (unsigned i = 0; i < self->data_specs.n; i++)
		writer_seed(w, self->data_specs.value[i], strlen(self->data_specs.value[i]) + 1);
	if (from) {
		w->stream.t0_utc_ns = from->t0_utc_ns;
		w->stream.flags = from->flags;
		w->stream.clock_quality = from->clock_quality;
		w->stream.tai_utc_s = from->tai_utc_s;
		memcpy(w->stream.name, from->name, sizeof(from->name));
	}
	if (self->video_options.live)
		w->stream.flags |= PACKET_STREAM_LIVE;
	enum err e = writer_begin(w);
	return !e && self->bulk.is_open ? bulkout_start(&self->bulk, &w->stream, videojoin_comes_live(&self->join), &self->why) : e;
}

static enum err add_tags(struct mux *self, struct track *t)
{
	for (unsigned i = 0; i < self->tags.n; i++) {
		char key[128];
		const char *equals = strchr(self->tags.value[i], '=');
		snprintf(key, sizeof(key), "%.*s", (int)(equals - self->tags.value[i]), self->tags.value[i]);
		enum err e = track_add_tag(t, key, equals + 1, true);
		if (e)
			return err_say(&self->why, e, "--tag", "'%s': %s", self->tags.value[i], err_text(e));
	}
	return ERR_OK;
}

static enum err announce(struct mux *self, const struct track *t)
{
	struct track copy = {0};
	enum err e = track_copy(&copy, t);

	if (e)
		return e;
	e = add_tags(self, &copy);
	if (!e)
		e = self->is_mkv ? mkvout_announce(&self->mkv, &copy) : writer_announce(&self->writer, &copy);
	track_release(&copy);
	return e;
}

static enum err stream_packet(struct mux *self, struct packet *p)
{
	const struct track *message = datajoin_track(&self->data, p->track);
	struct packet_gap gap;
	struct packet_end end;

	switch (p->type) {
	case PACKET_STREAM:
		return ERR_OK;
	case PACKET_TRACK:
		return announce(self, message ? message : videojoin_track(&self->video, &self->join, p->track));
	case PACKET_GAP:
		if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
			return ERR_OK;
		return writer_gap(&self->writer, p->track, p->pos, p->dur, &gap);
	case PACKET_END:
		if (p->track == 0 || packet_end_unpack(&end, p->payload, p->payload_bytes))
			return ERR_OK;
		return writer_end_track(&self->writer, p->track, end.reason);
	}
	return message ? datajoin_put(&self->data, p) : writer_forward(&self->writer, p);
}

static enum packet_end_reason end_reason(const struct mux *self)
{
	return join_is_cut(&self->join) || self->video.feed.is_cut || datajoin_cut(&self->data) ? PACKET_END_TRUNCATED : tool_stop ? PACKET_END_INTERRUPTED : PACKET_END_NORMAL;
}

static enum err finish_stream(struct mux *self, enum err e)
{
	bool whole = e == ERR_OK;

	if (e == ERR_OK && !self->begun)
		e = begin_stream(self);
	/* Who reads on must not take a failure for a good end. */
	if (self->writer.begun && self->writer.failed == ERR_OK) {
		enum err ended = writer_end(&self->writer, whole ? end_reason(self) : PACKET_END_ERROR);
		e = e ? e : ended;
	}
	if (self->writer.failed && e == self->writer.failed && !self->why.reason[0])
		self->why = self->writer.why;
	if (!self->file.path)
		return e;
	self->file.size_bytes = self->writer.n_bytes;
	struct err_why why = {0};
	enum err closed = sinkfile_close(&self->file, e == ERR_OK, &why);
	if (closed && !e) {
		e = closed;
		self->why = why;
	}
	if (!e)
		stats_add(&self->files, 1);
	return e;
}

/* ---- files ---- */

static void say_finished(void *user, const struct takes_file *f)
{
	struct mux *self = user;
	char text[128];

	if (!self->tool.quiet)
		tool_warn(&self->tool, f->path, "%s", takes_describe(f, text));
}

static void say_change(void *user, const char *thing, const char *text)
{
	struct mux *self = user;

	if (!self->tool.quiet)
		tool_warn(&self->tool, thing, "%s", text);
}

static void say_note(void *user, const char *thing, const char *text)
{
	struct mux *self = user;
	tool_note(&self->tool, thing, "%s", text);
}

static void say_warning(void *user, const char *thing, const char *text)
{
	struct mux *self = user;
	tool_warn(&self->tool, thing, "%s", text);
}

static enum err mkv_one(struct mux *self, struct packet *p)
{
	enum err e;

	if (p->type == PACKET_TRACK)
		e = announce(self, videojoin_track(&self->video, &self->join, p->track));
	else
		e = mkvout_packet(&self->mkv, p);
	if (e && self->mkv.why.reason[0])
		self->why = self->mkv.why;
	return e;
}

static enum err finish_mkv(struct mux *self, enum err e)
{
	enum err finished = mkvout_finish(&self->mkv, e == ERR_OK);

	if (!e && finished)
		self->why = self->mkv.why;
	e = e ? e : finished;
	if (!e)
		stats_add(&self->files, 1);
	if (!e && self->mkv.lost_frames && !join_is_cut(&self->join))
		e = err_say(&self->why, ERR_CUT, self->output, "%" PRIu64 " frames were lost before they came here", self->mkv.lost_frames);
	return e;
}

static enum err takes_one(struct mux *self, struct packet *p)
{
	enum err e;

	if (self->takes_options.on_level) {
		if (p->type == PACKET_TRACK)
			e = leveltakes_announce(&self->level, join_track(&self->join, p->track));
		else
			e = leveltakes_packet(&self->level, p);
		if (e)
			self->why = self->level.why;
		return e;
	}
	if (p->type == PACKET_TRACK)
		e = takes_announce(&self->takes, join_track(&self->join, p->track));
	else
		e = takes_packet(&self->takes, p);
	if (e)
		self->why = self->takes.why;
	return e;
}

/* What is recorded on level ends; and that there was nothing, which is no failure. */
static enum err finish_level(struct mux *self, enum err e)
{
	enum err finished = leveltakes_finish(&self->level, e == ERR_OK);
	char text[128];

	if (!e && finished)
		self->why = self->level.why;
	if (!e && !finished && !self->tool.quiet && *leveltakes_describe_nothing(&self->level, text))
		tool_warn(&self->tool, self->output, "%s", text);
	if (self->level.late_frames)
		tool_warn(&self->tool, self->output, "%" PRIu64 " frames came too late for the take they belong to", self->level.late_frames);
	return e ? e : finished;
}

static enum err finish_takes(struct mux *self, enum err e)
{
	if (self->takes_options.on_level)
		e = finish_level(self, e);
	struct err_why why = self->why;
	enum err finished = takes_finish(&self->takes, e == ERR_OK);

	if (!e && finished) {
		e = finished;
		why = self->takes.why;
	}
	self->why = why;
	if (!e && self->takes.lost_frames && !join_is_cut(&self->join))
		e = err_say(&self->why, ERR_CUT, self->output, "%" PRIu64 " frames were lost before they came here, and are silence now",
			self->takes.lost_frames);
	return e;
}

/* ---- the work ---- */

static void count(struct mux *self)
{
	struct stats *s = &self->stats;
	uint64_t gaps = 0, lost = 0, dropped = 0, damaged = 0;

	if (!stats_on(s) && !self->progress.on)
		return;
	for (unsigned i = 0; i < self->join.n_sources; i++) {
		struct input *in = join_input(&self->join, i);
		if (!in)
			continue;
		for (unsigned k = 0; in->is_stream && k < in->reader.n_tracks; k++) {
			gaps += in->reader.tracks[k]->gaps;
			lost += in->reader.tracks[k]->lost_frames;
			dropped += in->reader.tracks[k]->dropped_frames;
		}
		damaged += in->is_stream ? in->reader.damaged_bytes : in->feed.tracks[0].source.damaged_bytes;
		lost += in->is_stream ? 0 : in->feed.tracks[0].source.lost_frames;
	}
	stats_set(&s->packets_in, self->join.n_packets);
	stats_set(&s->frames_in, self->join.frames);
	stats_set(&s->packets_out, self->is_stream ? self->writer.n_packets : self->join.n_packets);
	stats_set(&s->frames_out, self->is_stream ? self->join.frames : self->is_mkv ? self->mkv.frames + self->mkv.gap_frames : self->takes.frames + self->takes.gap_frames);
	stats_set(&s->gaps, gaps);
	stats_set(&s->lost_frames, lost);
	stats_set(&s->dropped_frames, dropped);
	stats_set(&s->damaged_bytes, damaged);
	stats_set(&self->gap_frames, self->is_mkv ? self->mkv.gap_frames : self->takes.gap_frames);
	stats_set(&self->clipped_samples, self->takes.clipped_samples);
	if (!self->is_stream && !self->is_mkv)
		stats_set(&self->files, self->takes.n_files);
	progress_update(&self->progress, self->join.position_s, join_total_s(&self->join));
}

/* What was queued goes on before the packets it points to end their life. */
static enum err settle(struct mux *self)
{
	enum err e = self->is_stream ? writer_flush(&self->writer) : self->is_mkv ? mkvout_settle(&self->mkv) : takes_settle(&self->takes);

	if (e)
		self->why = self->is_stream ? self->writer.why : self->is_mkv ? self->mkv.why : self->takes.why;
	return e;
}

static enum err one_packet(struct mux *self, struct packet *p)
{
	enum err e = ERR_OK;

	if (!self->begun && self->is_stream)
		e = begin_stream(self);
	if (!self->begun && !self->is_stream && join_stream(&self->join))
		self->takes.options.t0_utc_ns = join_stream(&self->join)->t0_utc_ns;
	self->begun = true;
	if (e)
		return e;
	return self->is_stream ? stream_packet(self, p) : self->is_mkv ? mkv_one(self, p) : takes_one(self, p);
}

static bool is_decoded_opus(const struct input *in)
{
	return in && !in->is_stream && !strcmp(in->feed.tracks[0].source.ops->name, "opusread");
}

/*
 * Why there is nothing to write, or nothing that the file can hold, in the words of what was asked for: a track that nobody has, or
 * a file of Opus, which comes here as PCM.
 */
static enum err explain(struct mux *self, enum err e)
{
	char missing[128];
	bool no_track = !self->is_stream && !self->is_mkv && e == ERR_FORMAT && self->takes.n_takes == 0;

	if ((e == ERR_OK || no_track) && !tool_stop && select_missing(&self->hits, &self->wanted, missing))
		return err_say(&self->why, ERR_FORMAT, missing, "no such track in the input");
	const struct input *in = join_input(&self->join, 0);
	if (e == ERR_FORMAT && self->format == SINK_OPUS && is_decoded_opus(in))
		return err_say(&self->why, e, in->name, "is decoded here, and %s holds Opus; weir demux FILE | weir mux -o OUT keeps its packets",
			self->output);
	return e;
}

static const struct videofeed *video_feed(const struct mux *self)
{
	return self->bulk_fd >= 0 ? &self->bulk.video.feed : &self->video.feed;
}

/* Audio, messages, pictures.  Returns: as join_next(). */
static enum err next_packet(struct mux *self, struct packet *p)
{
	enum err data = ERR_END, e;

	if (self->data.n_feeds && ((data = datajoin_next(&self->data, &self->join, p)) != ERR_AGAIN && data != ERR_END))
		return data;
	e = self->video.is_open ? videojoin_next(&self->video, &self->join, p) : join_next(&self->join, p);
	if (e != ERR_END || data == ERR_END)
		return e;
	datajoin_finish(&self->data, !self->join.n_sources && !self->video.is_open);
	return datajoin_next(&self->data, &self->join, p);
}

static enum err fill(struct mux *self)
{
	enum err e;

	if (self->data.n_feeds)
		datajoin_watch(&self->data, &self->join);
	e = self->video.is_open ? videojoin_fill(&self->video, &self->join) : join_fill(&self->join);
	if (self->data.n_feeds)
		datajoin_fill(&self->data, &self->join);
	return e;
}

/* Pictures of audio files, which packets have no place for. */
static void say_left_out(struct mux *self)
{
	char text[96];

	for (unsigned i = 0; i < self->join.n_sources; i++) {
		const struct input *in = join_input(&self->join, i);
		if (in && *input_left_out(in, text) && !self->tool.quiet)
			tool_warn(&self->tool, in->name, "%s", text);
	}
}

static enum err run(struct mux *self)
{
	struct packet p;
	enum err e;

	for (;;) {
		e = next_packet(self, &p);
		if (e == ERR_AGAIN) {
			if ((e = settle(self)))
				break;
			if ((e = fill(self))) {
				self->why = self->join.why;
				break;
			}
			count(self);
			continue;
		}
		if (e) {
			if (e != ERR_END)
				self->why = self->join.why;
			break;
		}
		if ((e = one_packet(self, &p)))
			break;
	}
	if (e == ERR_END)
		e = ERR_OK;
	say_left_out(self);
	e = self->is_stream ? finish_stream(self, e) : self->is_mkv ? finish_mkv(self, e) : finish_takes(self, e);
	if (e == ERR_OK && join_is_cut(&self->join)) {
		join_describe_loss(&self->join, &self->why);
		e = ERR_CUT;
	}
	const struct videofeed *feed = video_feed(self);
	if (e == ERR_OK)
		e = bulkout_finish(&self->bulk, &self->why);
	if (e == ERR_OK && feed->is_cut) {
		self->why = feed->why;
		e = ERR_CUT;
	}
	if (e == ERR_OK && datajoin_cut(&self->data)) {
		self->why = *datajoin_cut(&self->data);
		e = ERR_CUT;
	}
	return explain(self, e);
}

/* ---- the command line ---- */

static bool wants(void *user, const struct track *t)
{
	struct mux *self = user;

	select_note(&self->hits, &self->wanted, t);
	return select_match(&self->wanted, t);
}

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

/* The name of a file of all tracks, which may hold the time; allocated. */
static enum err one_path(struct mux *self, char **path)
{
	struct timespec now = {0};
	struct takename name;
	enum err e = takename_parse(&name, self->output, &self->why);

	if (e)
		return e;
	if (name.has_track || name.has_name)
		return err_say(&self->why, ERR_ARG, self->output, "one file holds all tracks: %%t and %%n are for files of one");
	clock_gettime(CLOCK_REALTIME, &now);
	const struct takename_values values = { .n_tracks = 1, .name = "", .piece = 1, .utc_ns = now.tv_sec * UNITS_NS_PER_S + now.tv_nsec };
	if ((e = takename_make(&name, &values, path)))
		return err_say(&self->why, e, self->output, "%s", err_text(e));
	return ERR_OK;
}

static enum err open_mkv(struct mux *self)
{
	struct mkvout_options *o = &self->mkv_options;
	char *path = NULL;
	enum err e = one_path(self, &path);

	o->force = self->force;
	o->stdout_fd = STDOUT_FILENO;
	o->stop = &tool_stop;
	o->say = say_change;
	o->warn = say_warning;
	o->user = self;
	if (!e)
		e = mkvout_open(&self->mkv, path, o, &self->why);
	free(path);
	return e;
}

/* A .weir file. */
static enum err open_stream_file(struct mux *self)
{
	struct sinkfile_args args = { .force = self->force, .stdout_fd = STDOUT_FILENO, .stop = &tool_stop };
	char *path = NULL;
	enum err e = one_path(self, &path);

	if (e)
		return e;
	e = sinkfile_open(&self->file, path, &args, &self->why);
	if (e == ERR_AGAIN) {
		tool_warn(&self->tool, path, "waiting for a reader");
		args.wait = true;
		e = sinkfile_open(&self->file, path, &args, &self->why);
	}
	free(path);
	return e ? e : writer_open(&self->writer, self->file.fd, sinkfile_place(&self->file), "mux", &self->why);
}

static enum err open_output(struct mux *self)
{
	struct takes_options *o = &self->takes_options;
	struct levelgate_options level = {0};
	enum err e = choose_level(self, &level);

	if (e)
		return e;
	if (o->on_level && (e = leveltakes_open(&self->level, &self->takes, &level, o->sync, &self->why)))
		return e;
	if (self->is_mkv)
		return open_mkv(self);
	if (!self->is_stream) {
		o->pattern = self->output;
		o->sink = (struct sink_args){
			.format = (enum sink_format)self->format, .force = self->force, .tags = self->tags.n ? self->tags.value : NULL,
			.wav_limit_bytes = self->rf64_above_bytes, .stdout_fd = STDOUT_FILENO, .stop = &tool_stop,
		};
		o->t0_utc_ns = UNITS_UNKNOWN_NS;
		o->finished = say_finished;
		o->change = say_change;
		o->note = say_note;
		o->warn = say_warning;
		o->user = self;
		o->sync &= !o->on_level;
		return takes_open(&self->takes, o, &self->why);
	}
	if (!self->output || !strcmp(self->output, "-"))
		return writer_open(&self->writer, STDOUT_FILENO, "<stdout>", "mux", &self->why);
	return open_stream_file(self);
}

/* With --video there need not be audio: stdin is read if it is what a stream or a file comes through. */
static bool stdin_is_input(const struct mux *self)
{
	struct stat st;

	for (unsigned i = 0; i < self->data.n_feeds; i++)
		if (self->data.feeds[i].feed.fd == STDIN_FILENO)
			return false;
	if ((self->video_options.spec && video_feed(self)->fd == STDIN_FILENO) || fstat(STDIN_FILENO, &st))
		return false;
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISREG(st.st_mode);
}

static enum err open_inputs(struct mux *self, int argc, char **argv)
{
	struct join_options o = {
		.input = {
			.reader = { .keep_fragments = self->is_stream, .expand_silence = !self->is_stream, .stop = &tool_stop },
			.source = { .stdin_fd = STDIN_FILENO, .duration_frames = -1, .stop = &tool_stop },
		},
		.wants = wants,
		.user = self,
	};
	enum err e;

	if (self->video_options.spec) {
		self->video_options.stop = &tool_stop;
		if (self->bulk_fd >= 0 && (e = bulkout_open(&self->bulk, (int)self->bulk_fd, "mux", &self->video_options, &self->why)))
			return e;
		if (self->bulk_fd < 0 && (e = videojoin_open(&self->video, &self->video_options, &self->why)))
			return e;
		videojoin_attach(&self->video, self->is_stream ? &self->writer : NULL);
	}
	if (self->data_specs.n) {
		if ((e = datajoin_open(&self->data, &self->tool, &self->stats, self->data_specs.value, self->data_specs.n, self->video_options.live, &self->why)))
			return e;
		datajoin_attach(&self->data, &self->writer);
	}
	o.with_others = self->video_options.spec || self->data_specs.n;
	o.no_input = o.with_others && !stdin_is_input(self);
	return join_open(&self->join, argv + 1, (unsigned)(argc - 1), &o, &self->why);
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
		stats_key(&self->stats, "video_frames", &video_feed(self)->n_frames);
		stats_key(&self->stats, "video_dropped", &video_feed(self)->n_dropped);
	}
	if ((e = open_output(self)) || (e = open_inputs(self, argc, argv)))
		goto out;
	if ((e = stats_begin(&self->stats, &self->tool, &self->why)))
		goto out;
	progress_begin(&self->progress, &self->tool);
	e = run(self);
	progress_end(&self->progress);
	count(self);
	stats_end(&self->stats);
out:
	/* Nothing was written yet if it failed before the work: no NAME.part is left. */
	if (e && self->file.path && !self->begun)
		sinkfile_discard(&self->file);
	leveltakes_release(&self->level);
	bulkout_release(&self->bulk);
	videojoin_release(&self->video);
	datajoin_release(&self->data);
	mkvout_release(&self->mkv);
	takes_release(&self->takes);
	writer_release(&self->writer);
	sinkfile_release(&self->file);
	join_release(&self->join);
	return tool_end(&self->tool, e, &self->why);
}
