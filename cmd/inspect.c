/* inspect: print a stream's headers and packets, or prove it whole. */
#include "media/genread.h"
#include "tool/describe.h"
#include "tool/input.h"
#include "tool/stats.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What --verify found out about a track of gen:count. */
struct counting {
	bool decided, counts;
	uint64_t wrong_frames;
	int64_t first_wrong;
};

struct totals {
	uint64_t packets, gaps, lost_frames, damaged_bytes, wrong_frames;
	bool complete;
};

struct inspect {
	bool json, verify;
	struct tool tool;
	struct stats stats;
	struct totals all;
	bool failed;              /* an input could not be read */
	struct err_why why;
};

/* Is this packet's audio gen:count, as its track's first one decides, and if so: is every sample the right one? */
static enum err check_count(struct input *in, const struct packet *p)
{
	const struct track *t = input_track(in, p->track);
	void **user = input_user(in, p->track);

	if (!t || !user || !track_is_pcm(t) || p->payload_bytes != p->object_bytes || p->payload_bytes != (uint64_t)p->dur * t->frame_bytes)
		return ERR_OK;
	struct counting *c = *user;
	if (!c && !(c = *user = calloc(1, sizeof(*c))))
		return ERR_NOMEM;
	/* Of concatenated streams each counts from its own beginning. */
	const struct reader_track *rt = in->is_stream ? reader_track(&in->reader, p->track) : NULL;
	int64_t base = rt ? rt->base : 0, first_wrong = 0;
	size_t wrong = genread_check_count(t->sample, t->channels, p->pos - base, p->payload, p->dur, &first_wrong);
	if (!c->decided) {
		c->decided = true;
		c->counts = wrong == 0 && (uint64_t)p->dur * t->channels >= 16;
	}
	if (c->counts && wrong) {
		if (!c->wrong_frames)
			c->first_wrong = first_wrong + base;
		c->wrong_frames += wrong;
	}
	return ERR_OK;
}

static enum err one_packet(struct inspect *self, struct input *in, const struct packet *p)
{
	const struct track *t = p->track ? input_track(in, p->track) : NULL;

	self->all.packets++;
	enum err e = self->json ? describe_packet_json(stdout, p, t) : !self->verify ? describe_packet(stdout, p, t) : ERR_OK;
	if (e)
		return e;
	if (p->type == PACKET_DATA && self->verify)
		return check_count(in, p);
	return ferror(stdout) ? ERR_SYS : ERR_OK;
}

/* Frames, gaps and losses of one input, after its last packet. */
struct track_sum {
	uint16_t id;
	uint64_t frames, gaps, lost_frames, lost_objects;
	uint64_t messages;
	bool has_messages;        /* they are what counts, not the length of its timeline */
};

static struct track_sum sum_of(struct input *in, unsigned i)
{
	if (in->is_stream) {
		const struct reader_track *rt = in->reader.tracks[i];
		/* Lossy messages that were dropped are no damage. */
		uint64_t lost_objects = rt->track.policy == TRACK_LOSSY ? 0 : rt->lost_objects;
		return (struct track_sum){ rt->track.id, rt->frames, rt->gaps, rt->lost_frames, lost_objects, rt->packets,
			rt->track.kind == TRACK_DATA || rt->track.kind == TRACK_TEXT };
	}
	const struct feed_track *ft = &in->feed.tracks[i];
	uint64_t frames = (uint64_t)(ft->next_pos - ft->source.track.first_pos);
	return (struct track_sum){ .id = ft->id, .frames = frames - ft->source.lost_frames, .gaps = ft->source.lost_frames > 0, .lost_frames = ft->source.lost_frames };
}

static const struct counting *counting_of(struct input *in, uint16_t id)
{
	void **user = input_user(in, id);
	return user ? *user : NULL;
}

static void print_summary_json(struct input *in, const struct totals *t, unsigned n_tracks)
{
	printf("{\"summary\": {\"input\": ");
	describe_json_string(stdout, in->name, strlen(in->name));
	printf(", \"packets\": %" PRIu64 ", \"tracks\": %u, \"frames\": {", t->packets, n_tracks);
	for (unsigned i = 0; i < n_tracks; i++) {
		struct track_sum s = sum_of(in, i);
		printf("%s\"%u\": %" PRIu64, i ? ", " : "", s.id, s.frames);
	}
	printf("}, \"gaps\": %" PRIu64 ", \"lost_frames\": %" PRIu64 ", \"damaged_bytes\": %" PRIu64 ", \"wrong_frames\": %" PRIu64 ", \"complete\": %s}}\n",
		t->gaps, t->lost_frames, t->damaged_bytes, t->wrong_frames, t->complete ? "true" : "false");
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_summary(struct input *in, const struct totals *t, unsigned n_tracks, const char *loss)
{
	char name[400];

	printf("%s: %" PRIu64 " packet%s, %u track%s", tool_printable(in->name, name, sizeof(name)), t->packets, plural(t->packets), n_tracks,
		plural(n_tracks));
	for (unsigned i = 0; i < n_tracks; i++) {
		struct track_sum s = sum_of(in, i);
		const struct counting *c = counting_of(in, s.id);
		if (s.has_messages)
			printf(", track %u: %" PRIu64 " message%s", s.id, s.messages, plural(s.messages));
		else
			printf(", track %u: %" PRIu64 " frame%s", s.id, s.frames, plural(s.frames));
		if (c && c->counts && c->wrong_frames)
			printf(" (%" PRIu64 " wrong, the first at %" PRId64 ")", c->wrong_frames, c->first_wrong);
		else if (c && c->counts)
			printf(" (every sample right)");
	}
	printf(", %" PRIu64 " gap%s, %" PRIu64 " frame%s lost, %" PRIu64 " byte%s damaged: %s%s%s%s\n", t->gaps, plural(t->gaps), t->lost_frames,
		plural(t->lost_frames), t->damaged_bytes, plural(t->damaged_bytes), t->complete ? "whole" : "not whole", *loss ? " (" : "", loss, *loss ? ")" : "");
}

/* Add up one input and print it. */
static void summarise(struct inspect *self, struct input *in, uint64_t packets)
{
	unsigned n_tracks = in->is_stream ? in->reader.n_tracks : in->feed.n_tracks;
	struct totals t = { .packets = packets, .damaged_bytes = in->is_stream ? in->reader.damaged_bytes : 0 };
	uint64_t lost_objects = 0;
	char loss[200] = "";

	for (unsigned i = 0; i < n_tracks; i++) {
		struct track_sum s = sum_of(in, i);
		const struct counting *c = counting_of(in, s.id);
		t.gaps += s.gaps;
		t.lost_frames += s.lost_frames;
		lost_objects += s.lost_objects;
		t.wrong_frames += c ? c->wrong_frames : 0;
	}
	uint64_t orphans = in->is_stream ? in->reader.n_orphans : 0;
	bool sound = !input_is_cut(in) && !t.lost_frames && !lost_objects && !t.wrong_frames && !orphans;
	/* Of what a signal kept from being read nothing is known. */
	bool interrupted = tool_stop && !(in->is_stream && in->reader.ended);
	t.complete = sound && !interrupted;
	if (!sound)
		input_describe_loss(in, loss, sizeof(loss));
	else if (interrupted)
		snprintf(loss, sizeof(loss), "interrupted");
	if (self->json)
		print_summary_json(in, &t, n_tracks);
	else
		print_summary(in, &t, n_tracks, loss);

	self->all.complete &= self->verify ? t.complete : sound;
	stats_add(&self->stats.gaps, t.gaps);
	stats_add(&self->stats.lost_frames, t.lost_frames);
	stats_add(&self->stats.damaged_bytes, t.damaged_bytes);
	for (unsigned i = 0; i < n_tracks; i++) {
		struct track_sum s = sum_of(in, i);
		stats_add(&self->stats.frames_in, s.frames);
	}
}

/* What check_count() keeps of each track. */
static void release_counting(struct input *in)
{
	unsigned n_tracks = in->is_stream ? in->reader.n_tracks : in->feed.n_tracks;

	for (unsigned i = 0; i < n_tracks; i++) {
		void **user = input_user(in, sum_of(in, i).id);
		if (user) {
			free(*user);
			*user = NULL;
		}
	}
}

static enum err inspect_input(struct inspect *self, const char *name)
{
	const struct input_options options = { .reader = { .raw = true, .stop = &tool_stop }, .source = { .stop = &tool_stop } };
	struct input in = {0};
	struct packet p;
	uint64_t before = self->all.packets;
	enum err e = input_open(&in, name, &options, &self->why);

	if (e)
		goto out;
	while ((e = input_next(&in, &p)) == ERR_OK || e == ERR_AGAIN) {
		if (e == ERR_AGAIN) {
			fflush(stdout);
			if ((e = input_fill(&in)))
				break;
		} else if ((e = one_packet(self, &in, &p))) {
			break;
		}
		stats_set(&self->stats.packets_in, self->all.packets);
	}
	if (e != ERR_END) {
		if (ferror(stdout))
			e = err_sys(&self->why, "<stdout>");
		else
			self->why = in.why.reason[0] ? in.why : in.reader.why;
		goto out;
	}
	summarise(self, &in, self->all.packets - before);
	e = ERR_OK;
out:
	release_counting(&in);
	input_release(&in);
	return e;
}

/* An input that cannot be read is said at once, and does not keep the others from being shown; an output that fails does. */
static enum err one_of_several(struct inspect *self, const char *name)
{
	enum err e = inspect_input(self, name);

	if (!e || e == ERR_ARG || e == ERR_GONE || e == ERR_NOMEM || ferror(stdout) || tool_stop)
		return e;
	fflush(stdout);
	tool_say(&self->tool, e, &self->why);
	self->why = (struct err_why){0};
	self->failed = true;
	return ferror(stdout) ? err_sys(&self->why, "<stdout>") : ERR_OK;
}

int main(int argc, char **argv)
{
	static struct inspect self = { .all.complete = true };
	enum err e = ERR_OK;

	const struct opt options[] = {
		OPT_FLAG(0, "json", &self.json, "one JSON object a packet, the last one a summary"),
		OPT_FLAG(0, "verify", &self.verify, "print only whether the stream is whole; exit 3 if it is not"),
		OPT_END
	};
	tool_begin(&self.tool, "inspect", "[--json] [--verify] [INPUT...]", "Print the headers and packets of weir streams, or prove them whole.",
		options, &argc, &argv);

	if ((e = stats_begin(&self.stats, &self.tool, &self.why)))
		goto out;
	if (argc == 1)
		e = inspect_input(&self, "-");
	for (int i = 1; i < argc && !e; i++)
		e = one_of_several(&self, argv[i]);
	if (!e && !self.all.complete)
		e = ERR_CUT;
out:
	stats_end(&self.stats);
	int status = tool_end(&self.tool, e, &self.why);
	return self.failed && (status == TOOL_DONE || status == TOOL_CUT) ? TOOL_FAILED : status;
}
