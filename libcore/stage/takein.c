#include "stage/takein.h"

#include "stage/takesync.h"

#include <stdio.h>
#include <string.h>

#define MAX_GAP_S 3600                /* unless the options say otherwise */

/* ---- holes that are too long ---- */

static int64_t max_gap_frames(const struct take *t)
{
	const struct opt_time *o = &t->all->options.max_gap;
	const struct opt_time usual = { .is_set = true, .value = MAX_GAP_S * UNITS_NS_PER_S };
	return opt_time_frames(o->is_set ? o : &usual, take_rate(t), t->track.rate_den);
}

/* Has another track come so far that silence up to pos is not more than it has frames for? */
static bool others_reached(const struct take *t, int64_t pos)
{
	const struct takes *s = t->all;

	for (unsigned i = 0; i < s->n_takes; i++) {
		const struct take *other = s->list[i];
		if (other != t && other->is_open && units_compare(other->next_pos, take_rate(other), other->track.rate_den,
			pos - max_gap_frames(t), take_rate(t), t->track.rate_den) >= 0)
			return true;
	}
	return false;
}

/* Silence from `from` to pos would be longer than a file is to have; with sync, as far as the other tracks do not need it. */
static bool is_too_long(const struct take *t, int64_t from, int64_t pos)
{
	int64_t n_frames;

	if (pos <= from || (!__builtin_sub_overflow(pos, from, &n_frames) && n_frames <= max_gap_frames(t)))
		return false;
	return !t->all->options.sync || !others_reached(t, pos);
}

/* Nothing comes for very long: the file ends, and another one begins at pos.  With sync, so do those of the others. */
static enum err step_over(struct take *t, int64_t pos)
{
	struct takes *s = t->all;
	char text[160], time[40];
	enum err e = ERR_OK;

	take_put_time(time, (uint64_t)pos - (uint64_t)t->next_pos, &t->track);
	if (!strcmp(s->options.pattern, "-"))
		return err_say(&s->why, ERR_LIMIT, "<stdout>", "a gap of %s in track %u is longer than --max-gap, and it cannot go on in another file", time,
			t->track.id);
	if (s->options.warn) {
		snprintf(text, sizeof(text), "a gap of %s in track %u: it goes on in another file", time, t->track.id);
		s->options.warn(s->options.user, s->options.pattern, text);
	}
	if (s->options.sync) {
		e = takesync_ends(s);
		s->sync_n = pos;
		s->sync_num = take_rate(t);
		s->sync_den = t->track.rate_den;
	}
	for (unsigned i = 0; !e && i < s->n_takes; i++) {
		struct take *other = s->list[i];
		if (other != t && !s->options.sync)
			continue;
		e = take_close(other, true);
		other->started = false;
	}
	t->begin_pos = pos;
	t->has_begin = true;
	return e;
}

static void count_lost(struct take *t, int64_t to)
{
	int64_t from = t->told_pos > t->next_pos ? t->told_pos : t->next_pos;

	if (to > from)
		t->all->lost_frames += (uint64_t)(to - from);
}

/* ---- packets ---- */

/* The first frame of a take, or of a new format in it. */
enum err takein_begin(struct take *t, int64_t pos)
{
	struct takes *s = t->all;
	bool first = !t->started;
	enum err e = take_close(t, true);

	if (e)
		return e;
	if (t->changed && s->options.warn) {
		char text[160];
		snprintf(text, sizeof(text), "track %u changes to %u Hz, %u channels, %s: it goes on in another file", t->track.id,
			track_rate_hz(&t->track), t->track.channels, track_sample_name((enum sample)t->track.sample));
		s->options.warn(s->options.user, s->options.pattern, text);
	}
	t->started = true;
	t->changed = false;
	t->relinks = false;
	preroll_clear(&t->preroll);
	t->next_pos = first && s->options.sync ? takesync_pos(t) : pos;
	if (t->next_pos > pos)
		t->next_pos = pos;
	if (is_too_long(t, t->next_pos, pos)) {
		char text[160];
		snprintf(text, sizeof(text), "track %u begins more than --max-gap behind the others: without silence in front", t->track.id);
		if (s->options.warn)
			s->options.warn(s->options.user, s->options.pattern, text);
		t->next_pos = pos;
	}
	if ((e = take_open(t, t->next_pos)))
		return e;
	return take_silence(t, pos - t->next_pos);
}

/* Frame 0 of the file, as the first packet tells: Opus begins before it, by its pre-skip; met in the middle, by the pre-roll. */
static int64_t beginning(const struct take *t, const struct packet *p)
{
	if (t->has_begin)
		return t->begin_pos;
	if (!track_is_opus(&t->track) || p->pos == t->track.first_pos)
		return p->pos;
	if (p->pos < t->track.first_pos)
		return t->track.first_pos;
	return p->pos + (t->track.preroll_frames <= PREROLL_FRAMES ? t->track.preroll_frames : PREROLL_FRAMES);
}

static bool is_loss(unsigned reason)
{
	return reason != PACKET_GAP_DTX && reason != PACKET_GAP_NOT_STARTED && reason != PACKET_GAP_PAUSED;
}

enum err takein_gap(struct take *t, const struct packet *p)
{
	struct packet_gap gap;
	int64_t end_pos = p->pos + p->dur;
	enum err e = ERR_OK;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		return ERR_OK;
	take_follow_clock(t, p->pos, gap.utc_ns);
	if (!t->started || t->changed) {
		bool waits = gap.reason == PACKET_GAP_NOT_STARTED || gap.reason == PACKET_GAP_PAUSED || (!t->started && t->n_pieces);
		if (waits) {
			/* Before its first frame: with sync it becomes silence then. */
			t->begin_pos = end_pos;
			t->has_begin = true;
			return ERR_OK;
		}
		e = takein_begin(t, t->has_begin ? t->begin_pos : p->pos > t->track.first_pos ? p->pos : t->track.first_pos);
		t->has_begin = false;
	}
	if (e || end_pos <= t->next_pos)
		return e;
	if (is_loss(gap.reason))
		count_lost(t, end_pos);
	if (!is_too_long(t, t->next_pos, end_pos))
		return take_silence(t, end_pos - t->next_pos);
	/* With sync, what the others have in the meantime decides, when this track goes on. */
	t->told_pos = end_pos;
	return t->all->options.sync ? ERR_OK : step_over(t, end_pos);
}

/* The timeline was moved, and nothing is missing between: the file goes on without a hole. */
static void move_timeline(struct take *t, int64_t pos)
{
	int64_t moved = pos - t->next_pos;

	t->next_pos += moved;
	if (t->cut_pos != TAKE_NO_CUT)
		t->cut_pos += moved;
}

/* Does this packet begin a run of its own?  Then the file gets another link. */
static enum err look_for_link(struct take *t, const struct packet *p)
{
	bool back = !track_is_preroll(&t->track, t->next_pos, p->pos, false) && !(t->relinks && p->pos <= t->link_pos);
	bool moved = p->flags & PACKET_DISCONT && (p->pos > t->next_pos || back);
	bool begins = t->relinks && p->pos <= t->link_pos && t->link_pos >= t->next_pos;
	enum err e = ERR_OK;

	t->relinks = false;
	if (!moved && !begins)
		return ERR_OK;
	int64_t first_pos = begins ? t->link_pos : p->pos;
	if (moved)
		move_timeline(t, first_pos);
	else
		e = take_silence(t, first_pos - t->next_pos);
	if (e)
		return e;
	preroll_clear(&t->preroll);
	if (t->next_pos >= t->cut_pos)
		return take_cut(t);
	t->track.first_pos = first_pos;
	return take_keep_why(t, sink_relink(&t->sink, &t->track));
}

enum err takein_data(struct take *t, const struct packet *p)
{
	bool opus = track_is_opus(&t->track);
	enum err e = ERR_OK;

	take_follow_clock(t, p->pos, p->utc_ns);
	if (t->started && !t->changed && !(p->flags & PACKET_DISCONT) && is_too_long(t, t->next_pos, p->pos)) {
		count_lost(t, p->pos);
		if ((e = step_over(t, p->pos)))
			return e;
	}
	if (!t->started || t->changed) {
		if ((e = takein_begin(t, beginning(t, p))))
			return e;
		t->has_begin = false;
	}
	if (opus && (e = look_for_link(t, p)))
		return e;
	if (!opus && p->flags & PACKET_DISCONT)
		move_timeline(t, p->pos);
	/* A hole that no GAP told of. */
	if (!opus && p->pos > t->next_pos) {
		count_lost(t, p->pos);
		e = take_silence(t, p->pos - t->next_pos);
	}
	if (e)
		return e;
	t->all->frames += p->dur;
	return opus ? take_opus(t, p) : take_pcm(t, *p);
}
