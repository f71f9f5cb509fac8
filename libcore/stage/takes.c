#include "stage/takes.h"

#include "base/role.h"
#include "stage/takein.h"
#include "stage/takesync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

enum err takes_open(struct takes *s, const struct takes_options *o, struct err_why *why)
{
	memset(s, 0, sizeof(*s));
	s->options = *o;
	bool splits = o->split_every.is_set, makes_several = splits || o->on_level;
	enum err e = takename_parse(&s->name, o->pattern, why);
	if (e)
		return e;
	if (splits && !strcmp(o->pattern, "-"))
		return err_say(why, ERR_ARG, "--split-every", "makes several files: give -o a name, not '-'");
	if (o->on_level && !strcmp(o->pattern, "-"))
		return err_say(why, ERR_ARG, "--start-above", "makes several files: give -o a name, not '-'");
	if (o->split_on_clock && !splits)
		return err_say(why, ERR_ARG, "--split-on-clock", "says where --split-every cuts: give both");
	if (o->split_on_clock && o->split_every.is_frames)
		return err_say(why, ERR_ARG, "--split-on-clock", "needs --split-every as a time, not in frames");
	if (splits && o->split_every.value <= 0)
		return err_say(why, ERR_ARG, "--split-every", "must be more than nothing");
	/* A name without conversions is known now: refuse it before any work is done. */
	if (!s->name.has_track && !s->name.has_name && !s->name.has_time && !s->name.has_piece && !makes_several) {
		char *path = NULL;
		if ((e = takename_make(&s->name, &(struct takename_values){ .n_tracks = 1 }, &path)))
			return err_say(why, e, o->pattern, "%s", err_text(e));
		e = sinkfile_check(path, o->sink.force, why);
		free(path);
		if (e)
			return e;
	}
	s->index = calloc(65536, sizeof(*s->index));
	return s->index ? ERR_OK : err_say(why, ERR_NOMEM, o->pattern, "%s", err_text(ERR_NOMEM));
}

void takes_release(struct takes *s)
{
	for (unsigned i = 0; i < s->n_takes; i++)
		take_free(s->list[i]);
	free(s->list);
	free(s->unsettled);
	free(s->index);
	free(s->used_names);
	memset(s, 0, sizeof(*s));
}

static enum err no_memory(struct takes *s)
{
	return err_say(&s->why, ERR_NOMEM, s->options.pattern, "%s", err_text(ERR_NOMEM));
}

/* ---- beginning ---- */

static bool tells_apart(const struct takes *s)
{
	return s->name.has_track || s->name.has_name;
}

static enum err check_names(struct takes *s)
{
	if (s->n_takes <= 1 || tells_apart(s))
		return ERR_OK;
	if (!strcmp(s->options.pattern, "-"))
		return err_say(&s->why, ERR_ARG, "-", "%u tracks do not fit into one %s; choose one with -t, or write --format weir", s->n_takes,
			sink_format_name(s->options.sink.format));
	return err_say(&s->why, ERR_ARG, s->options.pattern, "%u tracks need %u files: put %%t (number) or %%n (name) into the name",
		s->n_takes, s->n_takes);
}

enum err takes_start(struct takes *s, int64_t utc_ns)
{
	if (s->started)
		return ERR_OK;
	s->started = true;
	if (s->n_takes == 0)
		return err_say(&s->why, ERR_FORMAT, s->options.pattern, "there is no track to write");
	enum err e = check_names(s);
	for (unsigned i = 0; !e && i < s->n_takes; i++)
		e = take_check(s->list[i], utc_ns);
	if (!e && s->options.sync)
		takesync_find(s);
	s->checked = !e;
	return e;
}

/* ---- announcements ---- */

static struct take *take_of(const struct takes *s, uint16_t id)
{
	uint16_t place = s->index[id];
	return place ? s->list[place - 1] : NULL;
}

static enum err add_take(struct takes *s, uint16_t id)
{
	if (s->n_takes == s->room) {
		unsigned room = s->room ? 2 * s->room : 8;
		struct take **list = realloc(s->list, room * sizeof(struct take *));
		if (list)
			s->list = list;
		struct take **unsettled = realloc(s->unsettled, room * sizeof(struct take *));
		if (unsettled)
			s->unsettled = unsettled;
		if (!list || !unsettled)
			return no_memory(s);
		s->room = room;
	}
	struct take *t = calloc(1, sizeof(*t));
	if (!t)
		return no_memory(s);
	t->all = s;
	t->cut_pos = TAKE_NO_CUT;
	t->told_pos = INT64_MIN;
	t->clock_utc_ns = UNITS_UNKNOWN_NS;
	s->list[s->n_takes++] = t;
	s->index[id] = (uint16_t)s->n_takes;
	return ERR_OK;
}

/* Would a file of the one hold the other? */
static bool same_format(const struct track *a, const struct track *b)
{
	return a->codec == b->codec && a->rate_num == b->rate_num && a->rate_den == b->rate_den && a->channels == b->channels &&
		a->sample == b->sample && sink_wave_mask(a) == sink_wave_mask(b) && a->opus_family == b->opus_family &&
		a->opus_streams == b->opus_streams && a->opus_coupled == b->opus_coupled && a->gain_q8 == b->gain_q8;
}

/* A track that is being written is announced anew: the same format with other names and tags, or another one. */
static void announce_again(struct take *t, const struct track *old, const struct track *now)
{
	if (!same_format(old, now)) {
		t->changed = true;
		return;
	}
	if (track_is_opus(now)) {
		t->relinks = true;
		t->link_pos = now->first_pos;
	}
	t->track.first_pos = old->first_pos;
}

enum err takes_announce(struct takes *s, const struct track *announced)
{
	struct track copy = {0};
	struct take *t = take_of(s, announced->id);
	enum err e = ERR_OK;

	if (!t && (e = add_take(s, announced->id)))
		return e;
	t = take_of(s, announced->id);
	if (track_copy(&copy, announced))
		return no_memory(s);
	struct track old = t->track;
	t->track = copy;
	if (t->started)
		announce_again(t, &old, &copy);
	else if (take_is_time(announced->next_utc_ns)) {
		t->clock_pos = take_announced_pos(announced);
		t->clock_utc_ns = announced->next_utc_ns;
	}
	track_release(&old);
	if ((e = take_keep_preroll(t)) || !s->started)
		return e;
	if ((e = check_names(s)))
		return e;
	return sink_check(s->options.sink.format, &t->track, s->options.pattern, &s->why);
}

/* ---- packets ---- */

enum err takes_packet(struct takes *s, const struct packet *p)
{
	struct take *t = take_of(s, p->track);
	enum err e = takes_start(s, p->utc_ns);

	role_forbid(ROLE_DEADLINE);
	if (e || !t)
		return e;
	if (p->type == PACKET_DATA)
		return takein_data(t, p);
	return p->type == PACKET_GAP ? takein_gap(t, p) : ERR_OK;
}

enum err takes_begin_at(struct takes *s, uint16_t id, int64_t pos, int64_t clock_pos, int64_t clock_utc_ns)
{
	struct take *t = take_of(s, id);

	if (!t)
		return ERR_OK;
	if (take_is_time(clock_utc_ns)) {
		t->clock_pos = clock_pos;
		t->clock_utc_ns = clock_utc_ns;
	}
	return takein_begin(t, pos);
}

enum err takes_end_at(struct takes *s, uint16_t id, int64_t pos)
{
	struct take *t = take_of(s, id);
	enum err e = ERR_OK;

	if (!t || !t->started)
		return ERR_OK;
	if (pos > t->next_pos)
		e = take_silence(t, pos - t->next_pos);
	t->started = false;
	enum err closed = take_close(t, !e);
	return e ? e : closed;
}

enum err takes_settle(struct takes *s)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n_unsettled; i++) {
		struct take *t = s->unsettled[i];
		t->unsettled = false;
		if (t->is_open && !e)
			e = take_keep_why(t, sink_settle(&t->sink));
	}
	s->n_unsettled = 0;
	return e;
}

/* ---- the end ---- */

enum err takes_finish(struct takes *s, bool complete)
{
	enum err e = complete ? takes_start(s, UNITS_UNKNOWN_NS) : ERR_OK;
	struct err_why why;

	/* A track without a frame still makes a file. */
	for (unsigned i = 0; complete && !s->options.on_level && !e && i < s->n_takes; i++)
		if (!s->list[i]->started && !s->list[i]->n_pieces)
			e = takein_begin(s->list[i], s->list[i]->track.first_pos);
	if (complete && !e && s->options.sync)
		e = takesync_ends(s);
	if (!e)
		e = takes_settle(s);
	why = s->why;
	for (unsigned i = 0; i < s->n_takes; i++) {
		enum err closed = take_close(s->list[i], complete && !e);
		if (closed && !e) {
			e = closed;
			why = s->why;
		}
	}
	s->why = why;
	return e;
}

const char *takes_describe(const struct takes_file *f, char out[static 128])
{
	static const char *const units[] = { "kB", "MB", "GB", "TB" };
	const struct track *t = f->track;
	double n = (double)f->size_bytes / 1000;
	unsigned unit = 0;
	char time[40], samples[40], from[48] = "";

	take_put_time(time, f->n_frames, t);
	if (f->on_level) {
		memcpy(from, ", from ", 8);
		take_put_time(from + 7, t->first_pos > 0 ? (uint64_t)t->first_pos : 0, t);
	}
	for (; n >= 999.95 && unit + 1 < ARRAY_LEN(units); unit++)
		n /= 1000;
	if (!track_is_pcm(t))
		samples[0] = 0;
	else if (f->stored && f->stored != t->sample)
		snprintf(samples, sizeof(samples), " %s (of %s%s)", track_sample_name(f->stored), track_sample_name((enum sample)t->sample),
			f->dithers ? ", dithered" : "");
	else
		snprintf(samples, sizeof(samples), " %s", track_sample_name((enum sample)t->sample));
	snprintf(out, 128, "%s %s%s %u Hz %u ch, %.1f %s%s", time, sink_format_name(f->format), samples, track_rate_hz(t), t->channels, n,
		units[unit], from);
	return out;
}
