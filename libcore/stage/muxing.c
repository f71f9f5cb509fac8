#include "stage/muxing.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- counting ---- */

const struct videofeed *muxing_video(const struct mux *self)
{
	return self->bulk_fd >= 0 ? &self->bulk.video.feed : &self->video.feed;
}

void muxing_count(struct mux *self)
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

/* ---- the inputs ---- */

static bool wants(void *user, const struct track *t)
{
	struct mux *self = user;

	select_note(&self->hits, &self->wanted, t);
	return select_match(&self->wanted, t);
}

/* With --video there need not be audio: stdin is read if it is what a stream or a file comes through. */
static bool stdin_is_input(const struct mux *self)
{
	struct stat st;

	for (unsigned i = 0; i < self->data.n_feeds; i++)
		if (self->data.feeds[i].feed.fd == STDIN_FILENO)
			return false;
	if ((self->video_options.spec && muxing_video(self)->fd == STDIN_FILENO) || fstat(STDIN_FILENO, &st))
		return false;
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISREG(st.st_mode);
}

enum err muxing_open(struct mux *self, char *const *inputs, unsigned n)
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
	return join_open(&self->join, inputs, n, &o, &self->why);
}

void muxing_release(struct mux *self, bool failed)
{
	bulkout_release(&self->bulk);
	videojoin_release(&self->video);
	datajoin_release(&self->data);
	muxout_release(self, failed);
	join_release(&self->join);
}

/* ---- the work ---- */

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

enum err muxing_run(struct mux *self)
{
	struct packet p;
	enum err e;

	for (;;) {
		e = next_packet(self, &p);
		if (e == ERR_AGAIN) {
			if ((e = muxout_settle(self)))
				break;
			if ((e = fill(self))) {
				self->why = self->join.why;
				break;
			}
			muxing_count(self);
			continue;
		}
		if (e) {
			if (e != ERR_END)
				self->why = self->join.why;
			break;
		}
		if ((e = muxout_packet(self, &p)))
			break;
	}
	if (e == ERR_END)
		e = ERR_OK;
	say_left_out(self);
	e = muxout_finish(self, e);
	if (e && e != ERR_CUT)
		bulkout_stop(&self->bulk);
	if (e == ERR_OK && join_is_cut(&self->join)) {
		join_describe_loss(&self->join, &self->why);
		e = ERR_CUT;
	}
	const struct videofeed *feed = muxing_video(self);
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
