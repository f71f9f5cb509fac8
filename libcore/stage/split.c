#include "stage/split.h"

#include "stage/takename.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum err split_open(struct split *s, struct err_why *why)
{
	const char *dir = s->dir;
	struct stat st;

	if (!dir || mkdir(dir, 0777) == 0)
		return ERR_OK;
	if (errno != EEXIST)
		return err_sys(why, dir);
	if (stat(dir, &st) != 0)
		return err_sys(why, dir);
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return err_sys(why, dir);
	}
	return ERR_OK;
}

static struct split_part *part_of(struct split *s, uint16_t track)
{
	for (unsigned i = 0; i < s->n_parts; i++)
		if (s->parts[i]->track == track)
			return s->parts[i];
	return NULL;
}

bool split_takes(const struct split *s, const struct track *t)
{
	if (s->takes_data && dataout_is_data(t))
		return s->frames_path;
	return s->frames_path && t->kind == TRACK_VIDEO && t->codec == TRACK_RAW_VIDEO;
}

/* DIR/NN-NAME.weir, allocated.  A percent sign in DIR is one. */
static enum err part_path(const struct split *s, const struct track *t, const char *ending, const char *name, char **path)
{
	char pattern[PATH_MAX];
	size_t n = 0;
	struct takename parsed;

	for (const char *c = s->dir; *c; c++) {
		if (n + 40 > sizeof(pattern))
			return ERR_LIMIT;
		pattern[n++] = *c;
		if (*c == '%')
			pattern[n++] = '%';
	}
	snprintf(pattern + n, sizeof(pattern) - n, "%s.%s", name[0] ? "/%t-%n" : "/%t", ending);
	enum err e = takename_parse(&parsed, pattern, NULL);
	if (e != ERR_OK)
		return e;
	/* Two digits at least, so that a listing is in order. */
	const struct takename_values values = { .track = t->id, .n_tracks = 99, .name = name };
	return takename_make(&parsed, &values, path);
}

static enum err part_open(struct split *s, struct split_part *part, const struct track *t, const struct packet_stream *stream)
{
	const struct sinkfile_args args = { .force = s->force };
	char *path = NULL, name[128];
	enum err e = part_path(s, t, "weir", track_name(t, name), &path);

	if (e != ERR_OK)
		return err_say(&s->why, e, s->dir, "%s", err_text(e));
	e = sinkfile_open(&part->file, path, &args, &s->why);
	if (e == ERR_OK)
		e = writer_open(&part->writer, part->file.fd, path, s->tool, &s->why);
	free(path);
	if (e != ERR_OK)
		return e;

	writer_seed(&part->writer, stream->uuid, sizeof(stream->uuid));
	writer_seed(&part->writer, &t->id, sizeof(t->id));
	part->writer.stream.t0_utc_ns = stream->t0_utc_ns;
	part->writer.stream.flags = stream->flags;
	part->writer.stream.clock_quality = stream->clock_quality;
	part->writer.stream.tai_utc_s = stream->tai_utc_s;
	memcpy(part->writer.stream.name, stream->name, sizeof(stream->name));
	e = writer_begin(&part->writer);
	part->begun = e == ERR_OK;
	return e;
}

/* A track whose frames are written. */
static enum err video_open(struct split *s, struct split_part *part, const struct track *t)
{
	struct sinkfile_args args = { .force = s->force, .stdout_fd = s->stdout_fd, .stop = s->stop };
	enum videoout_form form = s->form;
	char *path = NULL, name[128];
	enum err e = ERR_OK;

	if (form == VIDEOOUT_AUTO)
		form = videoout_form_of(s->dir ? "" : s->frames_path, t);
	if (s->dir)
		e = part_path(s, t, videoout_ending(form, t), track_name(t, name), &path);
	else if (!(path = strdup(s->frames_path)))
		e = ERR_NOMEM;
	if (e)
		return err_say(&s->why, e, s->dir ? s->dir : s->frames_path, "%s", err_text(e));
	e = videoout_open(&part->video, path, t, form, &args, &s->why);
	if (e == ERR_AGAIN) {
		if (s->say)
			s->say(s->user, path, "waiting for a reader");
		args.wait = true;
		e = videoout_open(&part->video, path, t, form, &args, &s->why);
	}
	free(path);
	part->begun = e == ERR_OK;
	return e;
}

/* A track whose messages are. */
static enum err data_open(struct split *s, struct split_part *part, const struct track *t)
{
	struct sinkfile_args args = { .force = s->force, .stdout_fd = s->stdout_fd, .stop = s->stop };
	char *path = NULL, name[128];
	const char *ending = dataout_ending(t, name);
	enum err e = ERR_OK;

	if (s->dir)
		e = part_path(s, t, ending, name, &path);
	else if (!(path = strdup(s->frames_path)))
		e = ERR_NOMEM;
	if (e)
		return err_say(&s->why, e, s->dir ? s->dir : s->frames_path, "%s", err_text(e));
	e = dataout_open(&part->data, path, t, &args, &s->why);
	if (e == ERR_AGAIN) {
		if (s->say)
			s->say(s->user, path, "waiting for a reader");
		args.wait = true;
		e = dataout_open(&part->data, path, t, &args, &s->why);
	}
	free(path);
	part->begun = e == ERR_OK;
	return e;
}

static bool is_frames(const struct split *s, const struct track *t)
{
	return t->kind == TRACK_VIDEO && t->codec == TRACK_RAW_VIDEO && (s->frames_path || s->form != VIDEOOUT_WEIR);
}

static bool has_video(const struct split *s)
{
	for (unsigned i = 0; i < s->n_parts; i++)
		if (s->parts[i]->is_video || s->parts[i]->is_data)
			return true;
	return false;
}

/* The reason a writer has, unless there is one. */
static enum err explain(struct split *s, const struct split_part *part, enum err e)
{
	if (e != ERR_OK && !s->why.reason[0]) {
		const struct sinkfile *file = part->is_video ? &part->video.file : part->is_data ? &part->data.file : &part->file;
		s->why = part->is_video || part->is_data ? file->why : part->writer.why;
		if (!s->why.reason[0])
			err_say(&s->why, e, sinkfile_place(file), "%s", err_text(e));
	}
	return e;
}

enum err split_track(struct split *s, const struct track *t, const struct packet_stream *stream)
{
	struct split_part *part = part_of(s, t->id);

	if (!s->dir && !split_takes(s, t))
		return ERR_OK;
	if (!s->dir && !part && has_video(s))
		return err_say(&s->why, ERR_ARG, s->frames_path, "can hold the frames or messages of one track; there is track %u too: choose one with -t", t->id);
	if (!part) {
		struct split_part **more = realloc(s->parts, (s->n_parts + 1) * sizeof(struct split_part *));
		part = more ? calloc(1, sizeof(*part)) : NULL;
		if (more)
			s->parts = more;
		if (!part)
			return err_say(&s->why, ERR_NOMEM, s->dir, "%s", err_text(ERR_NOMEM));
		part->track = t->id;
		part->file.fd = -1;
		part->video.file.fd = part->data.file.fd = -1;
		part->is_video = is_frames(s, t);
		part->is_data = dataout_is_data(t) && !s->keep_data;
		s->parts[s->n_parts++] = part;
		enum err e = part->is_video ? video_open(s, part, t) : part->is_data ? data_open(s, part, t) : part_open(s, part, t, stream);
		if (e != ERR_OK || part->is_video || part->is_data)
			return explain(s, part, e);
	}
	if (part->is_video)
		return videoout_track(&part->video, t, &s->why);
	if (part->is_data)
		return dataout_track(&part->data, t, &s->why);
	return explain(s, part, writer_announce(&part->writer, t));
}

/* A packet of the stream itself: its header is packed for each file in turn, so each takes it at once. */
static enum err packet_to_all(struct split *s, struct packet *p)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n_parts && e == ERR_OK; i++) {
		if (s->parts[i]->is_video || s->parts[i]->is_data)
			continue;
		e = writer_forward(&s->parts[i]->writer, p);
		if (e == ERR_OK)
			e = writer_flush(&s->parts[i]->writer);
		explain(s, s->parts[i], e);
	}
	return e;
}

enum err split_packet(struct split *s, struct packet *p)
{
	struct split_part *part;
	struct packet_gap gap;
	struct packet_end end;

	if (!p->track)
		return p->type == PACKET_STREAM || p->type == PACKET_END ? ERR_OK : packet_to_all(s, p);
	part = part_of(s, p->track);
	if (!part)
		return ERR_OK;
	if (part->is_video)
		return explain(s, part, videoout_packet(&part->video, p));
	if (part->is_data)
		return explain(s, part, dataout_packet(&part->data, p));
	switch (p->type) {
	case PACKET_GAP:
		if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
			return ERR_OK;
		return explain(s, part, writer_gap(&part->writer, p->track, p->pos, p->dur, &gap));
	case PACKET_END:
		if (packet_end_unpack(&end, p->payload, p->payload_bytes))
			return ERR_OK;
		return explain(s, part, writer_end_track(&part->writer, p->track, end.reason));
	}
	return explain(s, part, writer_forward(&part->writer, p));
}

enum err split_flush(struct split *s)
{
	for (unsigned i = 0; i < s->n_parts; i++) {
		enum err e = s->parts[i]->is_video ? videoout_flush(&s->parts[i]->video) : s->parts[i]->is_data ? dataout_flush(&s->parts[i]->data) :
			writer_flush(&s->parts[i]->writer);
		if (e != ERR_OK)
			return explain(s, s->parts[i], e);
	}
	return ERR_OK;
}

/* Nothing but announcements went into it. */
static bool part_is_empty(struct split_part *part)
{
	const struct writer_track *wt = writer_track(&part->writer, part->track);
	return !wt || (!wt->seq && !wt->frames);
}

static enum err video_end(struct split *s, struct split_part *part, enum packet_end_reason reason)
{
	struct videoout *o = &part->video;
	struct err_why why = { 0 };
	char text[200], *place = NULL;
	enum err e = ERR_OK;

	if (reason == PACKET_END_ERROR && !o->n_frames) {
		sinkfile_discard(&o->file);
		o->is_open = false;
		return ERR_OK;
	}
	if (o->file.path)
		place = strdup(o->file.path);
	e = videoout_close(o, reason != PACKET_END_ERROR, &why);
	if (e && !s->why.reason[0])
		s->why = why;
	if (!e && s->say && place && reason != PACKET_END_ERROR)
		s->say(s->user, place, videoout_describe(o, text));
	free(place);
	return e;
}

static enum err data_end(struct split *s, struct split_part *part, enum packet_end_reason reason)
{
	struct dataout *o = &part->data;
	struct err_why why = { 0 };
	char text[200], *place = NULL;
	enum err e = ERR_OK;

	if (reason == PACKET_END_ERROR && !o->n_messages) {
		sinkfile_discard(&o->file);
		o->is_open = false;
		return ERR_OK;
	}
	if (o->file.path)
		place = strdup(o->file.path);
	e = dataout_close(o, reason != PACKET_END_ERROR, &why);
	if (e && !s->why.reason[0])
		s->why = why;
	if (!e && s->say && place && s->dir && reason != PACKET_END_ERROR)
		s->say(s->user, place, dataout_describe(o, text));
	free(place);
	return e;
}

enum err split_end(struct split *s, enum packet_end_reason reason)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n_parts; i++) {
		struct split_part *part = s->parts[i];
		if (!part->begun)
			continue;
		if (part->is_video) {
			enum err shut = video_end(s, part, reason);
			e = e ? e : shut;
			continue;
		}
		if (part->is_data) {
			enum err shut = data_end(s, part, reason);
			e = e ? e : shut;
			continue;
		}
		if (reason == PACKET_END_ERROR && part_is_empty(part)) {
			sinkfile_discard(&part->file);
			continue;
		}
		enum err ended = explain(s, part, writer_end(&part->writer, reason));
		struct err_why why = { 0 };
		part->file.size_bytes = part->writer.n_bytes; /* the writer wrote past it */
		enum err closed = sinkfile_close(&part->file, ended == ERR_OK && reason != PACKET_END_ERROR, &why);
		if (closed != ERR_OK && !s->why.reason[0])
			s->why = why;
		if (e == ERR_OK)
			e = ended != ERR_OK ? ended : closed;
	}
	return e;
}

void split_release(struct split *s)
{
	for (unsigned i = 0; i < s->n_parts; i++) {
		if (s->parts[i]->begun && !s->parts[i]->is_video && !s->parts[i]->is_data)
			writer_release(&s->parts[i]->writer);
		sinkfile_release(&s->parts[i]->data.file);
		sinkfile_release(&s->parts[i]->video.file);
		sinkfile_release(&s->parts[i]->file);
		free(s->parts[i]);
	}
	free(s->parts);
	*s = (struct split){ 0 };
}
