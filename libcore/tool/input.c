/*
 * What an input is, is told from its first bytes.  They are taken from it by that, so a stream's reader is given them
 * first: files and pipes are one case.
 */
#include "tool/input.h"

#include "media/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err open_named(struct input *in, const char *name, const struct input_options *o, struct err_why *why)
{
	struct stat st;

	if (o->has_fd) {
		in->fd = o->fd;
		snprintf(in->name, sizeof(in->name), "%s", strcmp(name, "-") ? name : "<stdin>");
	} else if (!strcmp(name, "-")) {
		in->fd = o->source.stdin_fd;
		snprintf(in->name, sizeof(in->name), "<stdin>");
		if (isatty(in->fd))
			return err_say(why, ERR_ARG, in->name, "is a terminal: there is no stream to read");
	} else {
		snprintf(in->name, sizeof(in->name), "%s", name);
		in->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (in->fd < 0)
			return err_sys(why, in->name);
		in->owns_fd = true;
	}
	if (fstat(in->fd, &st))
		return err_sys(why, in->name);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_sys(why, in->name);
	}
	return ERR_OK;
}

/* A stream whose beginning was lost still has sound packets: one in the head is proof enough. */
static bool has_packet(const struct source_bytes *bytes)
{
	uint8_t head[SOURCE_HEAD_BYTES];
	struct packet p;

	memcpy(head, bytes->head, bytes->head_bytes);
	for (size_t at = 0; at + PACKET_HEADER_BYTES <= bytes->head_bytes; at++) {
		if (source_is_stream(head + at, bytes->head_bytes - at) &&
			packet_unpack(&p, head + at, bytes->head_bytes - at, PACKET_MAX_BIG_PAYLOAD_BYTES) == ERR_OK)
			return true;
	}
	return false;
}

static enum err open_stream(struct input *in, const struct source_bytes *bytes, const struct input_options *o, struct err_why *why)
{
	enum err e = reader_open(&in->reader, in->fd, in->name, &o->reader, why);
	uint8_t *room;

	if (e)
		return e;
	in->is_stream = true;
	if (bytes->is_regular && bytes->head_bytes) {
		/* Where it can be, the file is put back as it was. */
		if (lseek(in->fd, bytes->base_bytes, SEEK_SET) >= 0)
			return ERR_OK;
	}
	if (ring_room(&in->reader.ring, &room) < bytes->head_bytes)
		return err_say(why, ERR_LIMIT, in->name, "a ring of less than %u bytes", SOURCE_HEAD_BYTES);
	memcpy(room, bytes->head, bytes->head_bytes);
	ring_commit(&in->reader.ring, bytes->head_bytes);
	in->reader.n_bytes = bytes->head_bytes;
	return ERR_OK;
}

static enum err open_audio(struct input *in, struct source_bytes *bytes, const char *name, const struct input_options *o, struct err_why *why)
{
	struct source source;
	char word[128];
	enum err e = source_open_bytes(&source, in->name, bytes, in->owns_fd, &o->source, why);

	if (e)
		return e;
	in->owns_fd = false; /* the source's now */
	if ((e = track_set_name(&source.track, feed_name_of(name, word, sizeof(word)))) || (e = feed_open(&in->feed, &source, 1, o->block_frames, why))) {
		source_release(&source);
		return err_say(why, e, in->name, "%s", err_text(e));
	}
	return ERR_OK;
}

/* Ogg Opus as it is.  Returns: ERR_AGAIN if it is not that. */
static enum err open_undecoded(struct input *in, struct source_bytes *bytes, const char *name, const struct input_options *o, struct err_why *why)
{
	struct oggfeed *ogg = calloc(1, sizeof(*ogg));
	char word[128];
	enum err e = ogg ? oggfeed_open(ogg, bytes, in->name, why) : err_say(why, ERR_NOMEM, in->name, "%s", err_text(ERR_NOMEM));

	if (e == ERR_OK) {
		in->ogg = ogg;
		e = oggfeed_set_name(ogg, feed_name_of(name, word, sizeof(word)));
		return e ? err_say(why, e, in->name, "%s", err_text(e)) : ERR_OK;
	}
	free(ogg);
	if (e != ERR_AGAIN)
		return e;
	/* Is it audio of another kind?  Then say who reads that. */
	e = open_audio(in, bytes, name, o, why);
	return e ? e : err_say(why, ERR_FORMAT, in->name, "is audio, but neither Ogg Opus nor a weir stream: use capture to read it");
}

/* Generators, raw samples and devices need to be told more than a name: capture takes them.  A file of such a name is a file. */
static bool is_for_capture(const char *name)
{
	if (strncmp(name, "gen:", 4) && strncmp(name, "raw:", 4) && !live_is_device(name))
		return false;
	return access(name, F_OK) != 0;
}

enum err input_open(struct input *in, const char *name, const struct input_options *o, struct err_why *why)
{
	struct source_bytes bytes;
	enum err e;

	memset(in, 0, sizeof(*in));
	in->fd = -1;
	if (!o->has_fd && is_for_capture(name))
		return err_say(why, ERR_ARG, name, "is for capture, and the stream that makes is for the other tools: weir capture %.100s | ...", name);
	if ((e = open_named(in, name, o, why)))
		goto out;
	if (o->streams_only) {
		/* Nothing to be told apart: nothing is read yet. */
		memset(&bytes, 0, sizeof(bytes));
		bytes.head_bytes = o->head_bytes < sizeof(bytes.head) ? o->head_bytes : sizeof(bytes.head);
		if (o->head)
			memcpy(bytes.head, o->head, bytes.head_bytes);
		e = open_stream(in, &bytes, o, why);
		goto out;
	}
	source_bytes_open(&bytes, in->fd, o->reader.stop ? o->reader.stop : o->source.stop);
	if (bytes.sys_errno) {
		errno = bytes.sys_errno;
		e = err_sys(why, in->name);
		goto out;
	}
	/* Nothing at all is an empty stream: the reader has the words for that. */
	if (!bytes.head_bytes || source_is_stream(bytes.head, bytes.head_bytes) || has_packet(&bytes)) {
		e = open_stream(in, &bytes, o, why);
		goto out;
	}
	e = (o->undecoded ? open_undecoded : open_audio)(in, &bytes, name, o, why);
	if (e == ERR_AGAIN) {
		/* Damage at the beginning of a stream may reach further than the head: then the reader finds it, or says so. */
		e = open_stream(in, &bytes, o, why);
		in->is_unknown = true;
	}
out:
	if (e)
		input_release(in);
	return e;
}

/* What failed, and why; of what is no stream either, what it might have been. */
static void explain(struct input *in, enum err e)
{
	struct reader *r = &in->reader;

	if (e == ERR_FORMAT && in->is_unknown && !r->have_sid && !r->began_as_stream)
		(void)source_unknown(&r->why, in->name);
	in->why = in->is_stream ? r->why : in->ogg ? in->ogg->why : in->feed.why;
}

enum err input_next(struct input *in, struct packet *p)
{
	enum err e = in->is_stream ? reader_next(&in->reader, p) : in->ogg ? oggfeed_next(in->ogg, p) : feed_next(&in->feed, p);

	if (e && e != ERR_AGAIN && e != ERR_END)
		explain(in, e);
	return e;
}

enum err input_fill(struct input *in)
{
	enum err e = in->is_stream ? reader_fill(&in->reader) : in->ogg ? oggfeed_fill(in->ogg) : feed_fill(&in->feed);

	if (e)
		explain(in, e);
	return e;
}

struct track *input_track(struct input *in, uint16_t id)
{
	if (in->is_stream) {
		struct reader_track *rt = reader_track(&in->reader, id);
		return rt ? &rt->track : NULL;
	}
	if (in->ogg)
		return id == OGGFEED_TRACK && in->ogg->announced ? &in->ogg->ogg.track : NULL;
	return id >= 1 && id <= in->feed.n_tracks && in->feed.tracks[id - 1].announced ? &in->feed.tracks[id - 1].source.track : NULL;
}

void **input_user(struct input *in, uint16_t id)
{
	if (in->is_stream) {
		struct reader_track *rt = reader_track(&in->reader, id);
		return rt ? &rt->user : NULL;
	}
	if (in->ogg)
		return id == OGGFEED_TRACK ? &in->ogg_user : NULL;
	return id >= 1 && id <= in->feed.n_tracks ? &in->feed.tracks[id - 1].user : NULL;
}

bool input_is_cut(const struct input *in)
{
	return in->is_stream ? reader_is_cut(&in->reader) : in->ogg ? in->ogg->ogg.cut : feed_is_cut(&in->feed);
}

void input_describe_loss(const struct input *in, char *out, size_t out_bytes)
{
	if (in->is_stream)
		reader_describe_loss(&in->reader, out, out_bytes);
	else if (in->ogg)
		snprintf(out, out_bytes, "%s", in->ogg->ogg.warning);
	else
		feed_describe_loss(&in->feed, out, out_bytes);
}

const char *input_left_out(const struct input *in, char out[static 96])
{
	out[0] = 0;
	return in->is_stream || in->ogg || !in->feed.n_tracks ? out : source_left_out(&in->feed.tracks[0].source, out);
}

enum packet_end_reason input_end_reason(const struct input *in)
{
	if (in->is_stream)
		return (enum packet_end_reason)in->reader.end_reason;
	if (in->ogg)
		return in->ogg->ogg.cut ? PACKET_END_TRUNCATED : PACKET_END_NORMAL;
	return feed_is_cut(&in->feed) ? PACKET_END_TRUNCATED : PACKET_END_NORMAL;
}

void input_release(struct input *in)
{
	if (in->is_stream)
		reader_release(&in->reader);
	feed_release(&in->feed);
	if (in->ogg)
		oggfeed_release(in->ogg);
	free(in->ogg);
	in->ogg = NULL;
	if (in->owns_fd)
		close(in->fd);
	in->owns_fd = in->is_stream = false;
	in->fd = -1;
}
