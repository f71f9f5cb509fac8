/* demux: packets out of Ogg Opus or a weir stream, undecoded; all tracks or some, together or each in a file. */
#include "stage/bulkin.h"
#include "tool/pump.h"
#include "tool/select.h"
#include "stage/split.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum message_form { MESSAGES_AUTO, MESSAGES_RAW, MESSAGES_WEIR };

struct demux {
	struct tool tool;
	struct pump pump;
	struct split split;
	const char *dir;          /* of --split; NULL: everything to stdout */
	const char *output;       /* of -o: frames and nothing else */
	const char *video_path;   /* of --video: frames, the rest to stdout */
	int form;                 /* enum videoout_form */
	int64_t bulk_fd;          /* of --bulk-fd; −1 none */
	struct bulkin bulk;
	int messages;             /* enum message_form */
	bool force;
	struct opt_list wanted;
	struct select_hits hits;
	uint8_t is_out[65536];    /* by track: it was asked for */
};

/* A track is announced: from here on it is one of ours, or not. */
static bool look_at_track(struct demux *self, uint16_t id)
{
	const struct track *t = input_track(&self->pump.in, id);

	if (!t)
		return false;
	select_note(&self->hits, &self->wanted, t);
	self->is_out[id] = select_match(&self->wanted, t);
	return self->is_out[id];
}

/* A packet is handed on if it is of one of our tracks, or of the stream itself. */
static bool is_ours(struct demux *self, const struct packet *p)
{
	if (p->type == PACKET_TRACK)
		return look_at_track(self, p->track);
	return p->track == 0 || self->is_out[p->track];
}

static enum err split_one(struct demux *self, struct packet *p);

static enum err take(void *stage, struct packet *p)
{
	struct demux *self = stage;
	const struct track *t = self->video_path && p->track ? input_track(&self->pump.in, p->track) : NULL;

	if (t && split_takes(&self->split, t))
		return split_one(self, p);
	return is_ours(self, p) ? pump_pass(&self->pump, p) : ERR_OK;
}

/* ---- --split ---- */

static void say(void *user, const char *thing, const char *text)
{
	struct demux *self = user;

	if (!self->tool.quiet)
		tool_warn(&self->tool, thing, "%s", text);
}

static enum err split_begin(struct demux *self)
{
	self->split = (struct split){
		.dir = self->dir, .frames_path = self->output ? self->output : self->video_path, .form = (enum videoout_form)self->form,
		.takes_data = self->output, .keep_data = self->messages == MESSAGES_WEIR,
		.stdout_fd = STDOUT_FILENO, .stop = &tool_stop, .say = say, .user = self, .tool = self->tool.name, .force = self->force,
	};
	if (self->bulk_fd >= 0) {
		enum err e = bulkin_start(&self->bulk, (int)self->bulk_fd, &self->split, &tool_stop, &self->pump.why);
		if (e)
			return e;
	}
	return split_open(&self->split, &self->pump.why);
}

static enum err split_one(struct demux *self, struct packet *p)
{
	const struct input *in = &self->pump.in;
	const struct packet_stream none = { .t0_utc_ns = UNITS_UNKNOWN_NS };

	if (!is_ours(self, p))
		return ERR_OK;
	stats_add(&self->pump.stats.packets_out, 1);
	if (p->type == PACKET_TRACK)
		return split_track(&self->split, input_track(&self->pump.in, p->track), in->is_stream ? &in->reader.stream : &none);
	if (p->type == PACKET_DATA)
		stats_add(&self->pump.stats.frames_out, p->dur);
	return split_packet(&self->split, p);
}

static enum err split_all(struct demux *self)
{
	struct input *in = &self->pump.in;
	struct packet p;
	enum err e;

	for (;;) {
		e = input_next(in, &p);
		if (e == ERR_OK)
			e = split_one(self, &p);
		else if (e == ERR_AGAIN && !(e = split_flush(&self->split)) && !(e = input_fill(in)))
			pump_count(&self->pump);
		if (e)
			return e;
	}
}

/* The files' end says what became of the input.  Returns: ERR_OK, ERR_CUT, or what failed. */
static enum err split_close(struct demux *self, enum err e)
{
	struct input *in = &self->pump.in;
	enum packet_end_reason reason = input_end_reason(in);
	char loss[200];

	if (e != ERR_END) {
		if (split_end(&self->split, PACKET_END_ERROR) && e == ERR_OK)
			e = self->split.why.err;
		self->pump.why = self->split.why.reason[0] ? self->split.why : in->why;
		return e;
	}
	if (tool_stop && reason == PACKET_END_NORMAL)
		reason = PACKET_END_INTERRUPTED;
	if (input_is_cut(in))
		reason = PACKET_END_TRUNCATED;
	e = split_end(&self->split, reason);
	if (e)
		self->pump.why = self->split.why;
	if (e || reason != PACKET_END_TRUNCATED)
		return e;
	input_describe_loss(in, loss, sizeof(loss));
	return err_say(&self->pump.why, ERR_CUT, in->name, "%s", loss);
}

/* The pump's work, with many outputs, or with one that is no stream. */
static enum err split_run(struct demux *self)
{
	struct pump *p = &self->pump;
	enum err e;

	p->tool = &self->tool;
	if ((e = stats_begin(&p->stats, &self->tool, &p->why)))
		return e;
	progress_begin(&p->progress, &self->tool);
	if ((e = split_begin(self)))
		return e;
	return split_close(self, split_all(self));
}

static enum err open_input(struct demux *self, const char *name, struct input_options *o)
{
	o->reader.stop = &tool_stop;
	o->source.stop = &tool_stop;
	return input_open(&self->pump.in, name, o, &self->pump.why);
}

/* ---- messages ---- */

/* Is the first track that is asked for one of messages?  Reads up to its announcement, which comes once more. */
static enum err first_is_data(struct demux *self, bool *is_data)
{
	struct input *in = &self->pump.in;
	struct packet p;
	enum err e;

	*is_data = false;
	while (in->is_stream) {
		e = input_next(in, &p);
		if (e == ERR_AGAIN)
			e = input_fill(in);
		else if (e == ERR_OK && p.type == PACKET_TRACK && select_match(&self->wanted, input_track(in, p.track))) {
			*is_data = dataout_is_data(input_track(in, p.track));
			in->reader.held = p;
			in->reader.have_held = true;
			return ERR_OK;
		}
		if (e == ERR_END)
			return ERR_OK;
		if (e) {
			self->pump.why = in->why.reason[0] ? in->why : in->reader.why;
			return e;
		}
	}
	return ERR_OK;
}

/* A stream to stdout; but messages that are asked for, and nothing else, come as they are. */
static enum err stdout_run(struct demux *self, const char *name, struct input_options *o)
{
	bool is_data = self->messages == MESSAGES_RAW;
	enum err e;

	if (!is_data && (!self->wanted.n || self->messages == MESSAGES_WEIR))
		return (e = pump_open(&self->pump, &self->tool, name, o)) ? e : pump_run(&self->pump, take, NULL, self);
	if ((e = open_input(self, name, o)) || (!is_data && (e = first_is_data(self, &is_data))))
		return e;
	if (!is_data)
		return (e = pump_begin(&self->pump, &self->tool)) ? e : pump_run(&self->pump, take, NULL, self);
	self->output = "-";
	return split_run(self);
}

/* ---- --video: frames to a file, the rest on ---- */

static enum err before_waiting(void *stage)
{
	struct demux *self = stage;
	return split_flush(&self->split);
}

static enum err video_run(struct demux *self, const char *name, struct input_options *o)
{
	struct pump *p = &self->pump;
	enum err e, ended;

	if ((e = pump_open(p, &self->tool, name, o)) || (e = split_begin(self)))
		return e;
	p->idle = before_waiting;
	e = pump_run(p, take, NULL, self);
	ended = split_end(&self->split, e && e != ERR_CUT ? PACKET_END_ERROR : e ? PACKET_END_TRUNCATED : PACKET_END_NORMAL);
	if (self->split.why.reason[0] && (e == ERR_OK || !p->why.reason[0]))
		p->why = self->split.why;
	return e ? e : ended;
}

/* ---- main ---- */

/* All or nothing of what was asked for is there?  A name that nobody has is an error, after the rest was done. */
static enum err check_missing(struct demux *self, enum err e)
{
	char missing[128];

	const char *frames_path = self->output ? self->output : self->video_path;
	if ((e == ERR_OK || e == ERR_CUT) && frames_path && self->split.n_parts + self->bulk.split.n_parts == 0)
		return err_say(&self->pump.why, ERR_FORMAT, frames_path, "no track of raw video in the input; weir mux -o FILE makes a file of audio");
	if ((e == ERR_OK || e == ERR_CUT) && select_missing(&self->hits, &self->wanted, missing))
		return err_say(&self->pump.why, ERR_FORMAT, missing, "no such track in the input");
	return e;
}

/* What an Ogg file was like that is no loss. */
static void say_notes(struct demux *self)
{
	const struct input *in = &self->pump.in;

	if (in->ogg && in->ogg->ogg.note[0])
		tool_note(&self->tool, in->name, "%s", in->ogg->ogg.note);
	if (in->ogg && in->ogg->ogg.warning[0] && !in->ogg->ogg.cut)
		tool_warn(&self->tool, in->name, "%s", in->ogg->ogg.warning);
}

int main(int argc, char **argv)
{
	static struct demux self = { .bulk_fd = -1 };
	struct input_options input = { .undecoded = true };
	struct err_why why = { 0 };
	enum err e;

	static const struct opt_choice forms[] = {
		{ "auto", VIDEOOUT_AUTO }, { "raw", VIDEOOUT_RAW }, { "y4m", VIDEOOUT_Y4M }, { "weir", VIDEOOUT_WEIR }, { NULL, 0 },
	};
	static const struct opt_choice messages[] = {
		{ "auto", MESSAGES_AUTO }, { "raw", MESSAGES_RAW }, { "weir", MESSAGES_WEIR }, { NULL, 0 },
	};
	const struct opt options[] = {
		OPT_LIST('t', "track", "TRACK", &self.wanted, "take only these tracks: number, name or kind; a list with commas, or often"),
		OPT_STRING(0, "split", "DIR", &self.dir, "write each track to a file of its own, DIR/NN-NAME.weir, and nothing to stdout"),
		OPT_STRING('o', "output", "FILE", &self.output, "write the frames or messages of the one track to FILE (-: stdout), and nothing else"),
		OPT_STRING(0, "video", "FILE", &self.video_path, "write the frames of the one video track to FILE, and the other tracks to stdout"),
		OPT_CHOICE(0, "frames", "FORM", &self.form, forms, "how frames are written; auto: y4m where that can be, by FILE's ending"),
		OPT_CHOICE(0, "messages", "FORM", &self.messages, messages, "how messages are written; auto: as they were with -t, -o and --split"),
		OPT_INT(0, "bulk-fd", "FD", &self.bulk_fd, 3, 1048575, "the video comes through this descriptor, as mux --bulk-fd writes it"),
		OPT_FLAG('y', "force", &self.force, "overwrite files that are there"),
		OPT_END
	};
	tool_begin(&self.tool, "demux", "[options] [FILE]",
		"Take the packets out of an Ogg Opus file or a stream of several tracks, undecoded.", options, &argc, &argv);
	if (argc > 2)
		tool_usage(&self.tool, argv[2], "one input at most");
	if (self.dir && !*self.dir)
		tool_usage(&self.tool, "--split", "'' is no folder");
	if (!!self.dir + !!self.output + !!self.video_path > 1)
		tool_usage(&self.tool, self.dir ? "--split" : "--output", "--split, -o and --video are ways of their own: give one of them");
	if (self.force && !self.dir && !self.output && !self.video_path)
		tool_usage(&self.tool, "--force", "nothing is overwritten without --split, -o or --video");
	if (self.bulk_fd >= 0 && !self.dir && !self.output && !self.video_path)
		tool_usage(&self.tool, "--bulk-fd", "is for --split, -o and --video");
	if (self.form != VIDEOOUT_AUTO && !self.dir && !self.output && !self.video_path)
		tool_usage(&self.tool, "--frames", "is for --split, -o and --video");
	if (self.form == VIDEOOUT_WEIR && !self.dir)
		tool_usage(&self.tool, "--frames", "'weir' is for --split");
	if (self.video_path && !strcmp(self.video_path, "-"))
		tool_usage(&self.tool, "--video", "'-': stdout is for the other tracks; -o - writes frames there");
	if (select_check(&self.wanted, &why))
		tool_usage(&self.tool, why.thing, "%s", why.reason);

	const char *name = argc > 1 ? argv[1] : "-";
	if (self.video_path)
		e = video_run(&self, name, &input);
	else if (!self.dir && !self.output)
		e = stdout_run(&self, name, &input);
	else if (!(e = open_input(&self, name, &input)))
		e = split_run(&self);
	if (self.bulk_fd >= 0) {
		if (e && e != ERR_CUT)
			bulkin_stop(&self.bulk);
		enum err bulk = bulkin_finish(&self.bulk, &why);
		if (bulk && (!e || e == ERR_CUT)) {
			e = bulk;
			self.pump.why = why;
		}
	}
	say_notes(&self);
	e = check_missing(&self, e);
	bulkin_release(&self.bulk);
	split_release(&self.split);
	pump_release(&self.pump);
	return tool_end(&self.tool, e, &self.pump.why);
}
