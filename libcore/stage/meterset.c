#include "stage/meterset.h"

#include <stdio.h>
#include <stdlib.h>

void meterset_init(struct meterset *s, const struct meterset_options *options, struct tool *tool, enum err (*due)(void *arg),
	void *arg)
{
	*s = (struct meterset){ .options = options, .tool = tool, .due = due, .arg = arg };
}

/* They differ in rate or channels: says so, and how the reference is made to fit where one tool does it. */
static enum err say_unlike(struct meterset *s, const struct meterset_entry *e)
{
	const struct track *r = e->reference.track;
	const struct meter *m = &e->meter;
	const bool is_stream = e->reference.in.is_stream, in_k = m->rate_hz % 1000 == 0;
	char options[40] = "", remedy[200] = "";
	size_t n = 0;

	if (r->rate_num != m->rate_num || r->rate_den != m->rate_den)
		n = (size_t)snprintf(options, sizeof(options), " -r %u%s", in_k ? m->rate_hz / 1000 : m->rate_hz, in_k ? "k" : "");
	if (r->channels != m->n_channels)
		snprintf(options + n, sizeof(options) - n, " -c %u", m->n_channels);
	if (!is_stream || r->channels == m->n_channels)
		snprintf(remedy, sizeof(remedy), "; weir %s%s %.100s makes them alike", is_stream ? "resample" : "capture", options,
			s->options->compare_path);
	return err_say(&s->why, ERR_FORMAT, s->options->compare_path, "has %u channel%s at %u Hz, track %u has %u at %u Hz: they cannot be compared%s",
		r->channels, r->channels == 1 ? "" : "s", track_rate_hz(r), m->id, m->n_channels, m->rate_hz, remedy);
}

static enum err compare_entry(struct meterset *s, struct meterset_entry *e, unsigned nth)
{
	struct err_why *why = &s->why;
	enum err err = reference_open(&e->reference, s->options->compare_path, nth, &tool_stop, why);
	if (err)
		return err;
	const struct track *r = e->reference.track;
	if (r->rate_num != e->meter.rate_num || r->rate_den != e->meter.rate_den || r->channels != e->meter.n_channels)
		return say_unlike(s, e);
	err = meter_compare(&e->meter, reference_read, &e->reference);
	if (err)
		*why = e->reference.why;
	return err;
}

static enum err add_entry(struct meterset *s, const struct track *t, void **user)
{
	struct meterset_entry **entries = realloc(s->entries, (s->n_meters + 1) * sizeof(struct meterset_entry *));
	if (!entries)
		return ERR_NOMEM;
	s->entries = entries;
	struct meter **meters = realloc(s->meters, (s->n_meters + 1) * sizeof(struct meter *));
	if (!meters)
		return ERR_NOMEM;
	s->meters = meters;
	struct meterset_entry *e = calloc(1, sizeof(*e));
	if (!e)
		return ERR_NOMEM;
	e->reference.in.fd = -1;
	enum err err = meter_init(&e->meter, t, &s->options->measure);
	if (err) {
		free(e);
		return err;
	}
	meters[s->n_meters] = &e->meter;
	entries[s->n_meters++] = e;
	*user = e;
	return s->options->compare_path ? compare_entry(s, e, s->n_meters - 1) : ERR_OK;
}

void meterset_release(struct meterset *s)
{
	for (unsigned i = 0; i < s->n_meters; i++) {
		meter_release(&s->entries[i]->meter);
		reference_release(&s->entries[i]->reference);
		free(s->entries[i]);
	}
	free(s->entries);
	free(s->meters);
	s->entries = NULL;
	s->meters = NULL;
	s->n_meters = 0;
	s->n_coded = 0;
	s->n_intervals = 0;
}

static enum err take_track(struct meterset *s, struct input *in, const struct packet *p)
{
	const struct track *t = input_track(in, p->track);
	void **user = input_user(in, p->track);
	char codec[8], thing[32];

	if (!t || !user)
		return ERR_OK;
	select_note(&s->hits, &s->options->tracks, t);
	/* What is not PCM any more is nothing that this meter can read. */
	if (*user && !track_is_pcm(t)) {
		enum err ended = meter_end(&((struct meterset_entry *)*user)->meter);
		*user = NULL;
		if (ended)
			return ended;
	}
	if (t->kind != TRACK_AUDIO || !select_match(&s->options->tracks, t))
		return ERR_OK;
	if (!track_is_pcm(t)) {
		if (!s->n_coded++)
			s->coded_id = t->id;
		snprintf(thing, sizeof(thing), "track %u", t->id);
		if (!s->tool->quiet)
			tool_warn(s->tool, thing, "is %s and not measured: decode it first", track_codec_name(t->codec, codec));
		return ERR_OK;
	}
	struct meterset_entry *e = *user;
	if (e && meter_fits(&e->meter, t)) {
		track_name(t, e->meter.name); /* new tags, or one more stream behind the first: the measurement goes on */
		e->over = false;
		return ERR_OK;
	}
	enum err err = e ? meter_end(&e->meter) : ERR_OK;
	return err ? err : add_entry(s, t, user);
}

/* Frames until the next report is due, on the timeline of the first track that still runs; a great many for others. */
static uint64_t frames_to_report(struct meterset *s, const struct meter *m)
{
	unsigned i = 0;
	while (i < s->n_meters && (s->entries[i]->over || s->meters[i]->ended))
		i++;
	if (!s->options->interval.is_set || i == s->n_meters || s->meters[i] != m)
		return UINT64_MAX;
	int64_t at = (int64_t)continuity_span_frames(&m->continuity), next;
	do {
		struct opt_time t = s->options->interval;
		t.value *= ++s->n_intervals;
		next = opt_time_frames(&t, m->rate_num, m->rate_den);
	} while (next <= at);
	s->n_intervals--;
	return (uint64_t)(next - at);
}

/* In pieces, so that a report stands where it is due, to the frame. */
static enum err take_data(struct meterset *s, struct meter *m, const struct packet *p)
{
	struct packet piece = *p;
	uint32_t done = 0;

	while (done < p->dur) {
		uint64_t due = frames_to_report(s, m);
		piece.dur = p->dur - done < due ? p->dur - done : (uint32_t)due;
		piece.pos = p->pos + done;
		if (p->payload_bytes) {
			piece.payload = p->payload + (size_t)done * m->frame_bytes;
			piece.payload_bytes = piece.dur * m->frame_bytes;
		}
		enum err e = meter_data(m, &piece);
		if (!e && piece.dur == due)
			e = s->due(s->arg);
		if (e)
			return e;
		done += piece.dur;
	}
	return ERR_OK;
}

enum err meterset_packet(struct meterset *s, struct input *in, const struct packet *p)
{
	void **user = p->track ? input_user(in, p->track) : NULL;
	struct meterset_entry *e = user ? *user : NULL;
	struct packet_gap gap = { 0 };
	enum err err = ERR_OK;

	if (p->type == PACKET_TRACK)
		return take_track(s, in, p);
	if (!e)
		return ERR_OK;
	if (p->type == PACKET_DATA && (p->payload_bytes == (uint64_t)p->dur * e->meter.frame_bytes || p->flags & PACKET_SILENT))
		err = take_data(s, &e->meter, p);
	else if (p->type == PACKET_GAP && !packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		err = meter_gap(&e->meter, p, gap.reason);
	else if (p->type == PACKET_END)
		e->over = true;
	if (err && e->reference.why.reason[0])
		s->why = e->reference.why;
	return err;
}

enum err meterset_end(struct meterset *s)
{
	for (unsigned i = 0; i < s->n_meters; i++) {
		enum err e = meter_end(s->meters[i]);
		if (e) {
			s->why = s->entries[i]->reference.why;
			return e;
		}
	}
	return ERR_OK;
}
