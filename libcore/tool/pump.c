#include "tool/pump.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum err pump_open(struct pump *p, struct tool *t, const char *input, const struct input_options *options)
{
	struct input_options o = {0};
	char left_out[96];
	enum err e;

	if (options)
		o = *options;
	o.reader.stop = &tool_stop;
	o.source.stop = &tool_stop;
	p->tool = t;
	if ((e = writer_open(&p->out, STDOUT_FILENO, "<stdout>", t->name, &p->why)))
		return e;
	if ((e = input_open(&p->in, input, &o, &p->why)))
		return e;
	if (*input_left_out(&p->in, left_out) && !t->quiet)
		tool_warn(t, p->in.name, "%s", left_out);
	if ((e = stats_begin(&p->stats, t, &p->why)))
		return e;
	progress_begin(&p->progress, t);
	return ERR_OK;
}

enum err pump_begin(struct pump *p, struct tool *t)
{
	enum err e;

	p->tool = t;
	if ((e = writer_open(&p->out, STDOUT_FILENO, "<stdout>", t->name, &p->why)) || (e = stats_begin(&p->stats, t, &p->why)))
		return e;
	progress_begin(&p->progress, t);
	return ERR_OK;
}

void pump_release(struct pump *p)
{
	if (p->tool) {
		progress_end(&p->progress);
		pump_count(p);
		stats_end(&p->stats);
	}
	input_release(&p->in);
	writer_release(&p->out);
	p->tool = NULL;
}

/* ---- counting ---- */

static void count_reader(struct stats *s, struct reader *r, double *position_s)
{
	uint64_t frames = 0, gaps = 0, lost = 0, dropped = 0;

	for (unsigned i = 0; i < r->n_tracks; i++) {
		const struct reader_track *rt = r->tracks[i];
		frames += rt->frames;
		gaps += rt->gaps;
		lost += rt->lost_frames;
		dropped += rt->dropped_frames;
		double end_s = rt->started ? units_to_s(rt->expect_pos - rt->track.first_pos, rt->track.rate_num, rt->track.rate_den) : 0;
		if (end_s > *position_s)
			*position_s = end_s;
	}
	stats_set(&s->packets_in, r->n_packets);
	stats_set(&s->frames_in, frames);
	stats_set(&s->gaps, gaps);
	stats_set(&s->lost_frames, lost);
	stats_set(&s->dropped_frames, dropped);
	stats_set(&s->damaged_bytes, r->damaged_bytes);
}

static void count_feed(struct stats *s, struct feed *f, double *position_s, double *total_s)
{
	uint64_t frames = 0, lost = 0, damaged = 0;

	for (unsigned i = 0; i < f->n_tracks; i++) {
		const struct feed_track *ft = &f->tracks[i];
		const struct track *t = &ft->source.track;
		frames += (uint64_t)(ft->next_pos - t->first_pos);
		lost += ft->source.lost_frames;
		damaged += ft->source.damaged_bytes;
		double end_s = units_to_s(ft->next_pos - t->first_pos, t->rate_num, t->rate_den);
		if (end_s > *position_s)
			*position_s = end_s;
		if (ft->source.n_frames >= 0 && units_to_s(ft->source.n_frames, t->rate_num, t->rate_den) > *total_s)
			*total_s = units_to_s(ft->source.n_frames, t->rate_num, t->rate_den);
	}
	stats_set(&s->frames_in, frames);
	stats_set(&s->lost_frames, lost);
	stats_set(&s->damaged_bytes, damaged);
}

static void count_ogg(struct stats *s, const struct oggfeed *f, double *position_s, double *total_s)
{
	stats_set(&s->packets_in, f->n_packets);
	stats_set(&s->frames_in, f->n_frames);
	stats_set(&s->gaps, f->ogg.n_holes);
	stats_set(&s->lost_frames, f->ogg.lost_frames);
	stats_set(&s->damaged_bytes, f->ogg.damaged_bytes);
	*position_s = units_to_s((int64_t)f->n_frames, 48000, 1);
	if (f->ogg.n_frames >= 0)
		*total_s = units_to_s(f->ogg.n_frames, 48000, 1);
}

void pump_count(struct pump *p)
{
	double position_s = 0, total_s = -1;
	uint64_t frames_out = 0;

	if (!stats_on(&p->stats) && !p->progress.on)
		return;
	if (p->in.is_stream)
		count_reader(&p->stats, &p->in.reader, &position_s);
	else if (p->in.ogg)
		count_ogg(&p->stats, p->in.ogg, &position_s, &total_s);
	else
		count_feed(&p->stats, &p->in.feed, &position_s, &total_s);
	for (unsigned i = 0; i < p->out.n_tracks; i++)
		frames_out += p->out.tracks[i]->frames;
	stats_set(&p->stats.packets_out, p->out.n_packets);
	stats_set(&p->stats.frames_out, frames_out);
	progress_update(&p->progress, position_s, total_s);
}

/* ---- the loop ---- */

/* The output is what this tool makes of this input: its id comes from there, its clock too. */
static enum err begin(struct pump *p)
{
	if (p->in.is_stream) {
		const struct packet_stream *from = &p->in.reader.stream;
		writer_seed(&p->out, from->uuid, sizeof(from->uuid));
		p->out.stream.t0_utc_ns = from->t0_utc_ns;
		p->out.stream.flags = from->flags;
		p->out.stream.clock_quality = from->clock_quality;
		p->out.stream.tai_utc_s = from->tai_utc_s;
		memcpy(p->out.stream.name, from->name, sizeof(from->name));
	} else if (p->in.ogg) {
		/* What it is, not where it lies. */
		const struct track *t = &p->in.ogg->ogg.track;
		writer_seed(&p->out, &p->in.ogg->ogg.serial, sizeof(p->in.ogg->ogg.serial));
		writer_seed(&p->out, t->tlv, t->tlv_bytes);
	} else {
		writer_seed(&p->out, p->in.name, strlen(p->in.name));
	}
	return writer_begin(&p->out);
}

static enum err end_of_input(struct pump *p, bool begun, pump_finish_fn *finish, void *stage)
{
	enum err e = ERR_OK;
	enum packet_end_reason reason = input_end_reason(&p->in);

	if (!begun && (e = begin(p)))
		return e;
	if (finish && (e = finish(stage)))
		return e;
	if (tool_stop && reason == PACKET_END_NORMAL)
		reason = PACKET_END_INTERRUPTED;
	if (input_is_cut(&p->in))
		reason = PACKET_END_TRUNCATED;
	if ((e = writer_end(&p->out, reason)))
		return e;
	if (reason != PACKET_END_TRUNCATED)
		return ERR_OK;
	char loss[200];
	input_describe_loss(&p->in, loss, sizeof(loss));
	return err_say(&p->why, ERR_CUT, p->in.name, "%s", loss);
}

/* A reason that the writer or the input knows, when nobody else gave one. */
static enum err explain(struct pump *p, enum err e)
{
	if (e == ERR_OK || e == ERR_CUT || p->why.reason[0])
		return e;
	if (p->out.failed == e)
		p->why = p->out.why;
	else if (p->in.why.reason[0])
		p->why = p->in.why;
	else if (p->in.is_stream && p->in.reader.failed == e)
		p->why = p->in.reader.why;
	else
		err_say(&p->why, e, p->in.name, "%s", err_text(e));
	return e;
}

enum err pump_run(struct pump *p, pump_packet_fn *packet, pump_finish_fn *finish, void *stage)
{
	struct packet pkt;
	bool begun = false;
	enum err e;

	for (;;) {
		e = input_next(&p->in, &pkt);
		if (e == ERR_AGAIN) {
			/* Nothing is held back while we wait. */
			if (p->idle && (e = p->idle(stage)))
				break;
			if ((e = writer_flush(&p->out)) || (e = input_fill(&p->in)))
				break;
			pump_count(p);
			continue;
		}
		if (e)
			break;
		if (!begun && (e = begin(p)))
			break;
		begun = true;
		if ((e = packet(stage, &pkt)))
			break;
	}
	if (e == ERR_END)
		return explain(p, end_of_input(p, begun, finish, stage));
	explain(p, e);
	/* Whoever reads on must not take this for a good end. */
	if (e != ERR_GONE && begun && writer_end(&p->out, PACKET_END_ERROR) == ERR_GONE)
		return e;
	return e;
}

enum err pump_pass(struct pump *p, struct packet *packet)
{
	struct packet_gap gap;
	struct packet_end end;
	const struct track *t;

	switch (packet->type) {
	case PACKET_STREAM:
		return ERR_OK;
	case PACKET_TRACK:
		t = input_track(&p->in, packet->track);
		return t ? writer_announce(&p->out, t) : ERR_OK;
	case PACKET_GAP:
		if (packet_gap_unpack(&gap, packet->payload, packet->payload_bytes))
			return ERR_OK;
		return writer_gap(&p->out, packet->track, packet->pos, packet->dur, &gap);
	case PACKET_END:
		if (packet->track == 0 || packet_end_unpack(&end, packet->payload, packet->payload_bytes))
			return ERR_OK;
		return writer_end_track(&p->out, packet->track, end.reason);
	}
	return writer_forward(&p->out, packet);
}
