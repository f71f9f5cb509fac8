#include "stage/muxing.h"

#include "stage/takename.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- a stream ---- */

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

/* ---- what a person should hear ---- */

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

/* ---- a Matroska file ---- */

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

/* ---- a file each track ---- */

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

/* ---- whichever it is ---- */

enum err muxout_open(struct mux *self, const struct levelgate_options *level)
{
	struct takes_options *o = &self->takes_options;
	enum err e;

	if (o->on_level && (e = leveltakes_open(&self->level, &self->takes, level, o->sync, &self->why)))
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

enum err muxout_packet(struct mux *self, struct packet *p)
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

enum err muxout_settle(struct mux *self)
{
	enum err e = self->is_stream ? writer_flush(&self->writer) : self->is_mkv ? mkvout_settle(&self->mkv) : takes_settle(&self->takes);

	if (e)
		self->why = self->is_stream ? self->writer.why : self->is_mkv ? self->mkv.why : self->takes.why;
	return e;
}

enum err muxout_finish(struct mux *self, enum err e)
{
	return self->is_stream ? finish_stream(self, e) : self->is_mkv ? finish_mkv(self, e) : finish_takes(self, e);
}

void muxout_release(struct mux *self, bool failed)
{
	/* Nothing was written yet if it failed before the work: no NAME.part is left. */
	if (failed && self->file.path && !self->begun)
		sinkfile_discard(&self->file);
	leveltakes_release(&self->level);
	mkvout_release(&self->mkv);
	takes_release(&self->takes);
	writer_release(&self->writer);
	sinkfile_release(&self->file);
}
