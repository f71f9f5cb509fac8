#include "stage/leveltakes.h"

#include "base/role.h"
#include "stage/levelgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_HOLD_MS 2000
#define USUAL_PREROLL_MS 500
#define MAX_RATE_DEN 1000000u       /* keeps products of two rates within 64 bits */

struct leveltakes_track {
	struct leveltrack track;
	struct levelgroup *group;   /* NULL: it has none yet, or none any more */
};

/* ---- life ---- */

enum err leveltakes_choose(struct levelgate_options *o, const struct leveltakes_choice *c, struct err_why *why)
{
	const struct opt level = OPT_DB(0, "stop-below", &o->stop_db, -150, 0, "");
	const struct opt hold = OPT_TIME(0, "stop-below", "TIME", &o->hold, 0.001, LEVELTAKES_MAX_HOLD_S, "");

	*o = (struct levelgate_options){
		.start_db = c->start_db, .stop_db = c->start_db, .hold = { .is_set = true, .value = USUAL_HOLD_MS * (UNITS_NS_PER_S / 1000) },
		.preroll = { .is_set = true, .value = USUAL_PREROLL_MS * (UNITS_NS_PER_S / 1000) },
	};
	if (isnan(c->start_db)) {
		if (c->stop_below || c->preroll.is_set)
			return err_say(why, ERR_ARG, c->stop_below ? "--stop-below" : "--pre-roll", "belongs to --start-above: give both");
		return ERR_AGAIN;
	}
	if (c->preroll.is_set)
		o->preroll = c->preroll;
	if (!c->stop_below)
		return ERR_OK;
	enum err e = opt_level_time(&level, &hold, "--stop-below", c->stop_below, why);
	if (!e && o->stop_db > o->start_db)
		return err_say(why, ERR_ARG, "--stop-below", "'%s' is above the level of --start-above, %g dB", c->stop_below, o->start_db);
	o->has_stop = true;
	return e;
}

enum err leveltakes_open(struct leveltakes *l, struct takes *s, const struct levelgate_options *o, bool sync, struct err_why *why)
{
	*l = (struct leveltakes){ .takes = s, .options = *o, .sync = sync, .index = calloc(65536, sizeof(*l->index)) };
	return l->index ? ERR_OK : err_say(why, ERR_NOMEM, "--start-above", "%s", err_text(ERR_NOMEM));
}

void leveltakes_release(struct leveltakes *l)
{
	for (unsigned i = 0; i < l->n_tracks; i++) {
		struct leveltakes_track *t = l->tracks[i];
		if (!l->sync)
			levelgroup_free(t->group);
		leveltrack_drop_memory(&t->track);
		track_release(&t->track.format);
		free(t);
	}
	levelgroup_free(l->all);
	free(l->tracks);
	free(l->index);
	*l = (struct leveltakes){0};
}

static enum err no_memory(struct leveltakes *l)
{
	return err_say(&l->why, ERR_NOMEM, "--pre-roll", "%s", err_text(ERR_NOMEM));
}

/* What a group said is what we say. */
static enum err check(struct leveltakes *l, const struct levelgroup *g, enum err e)
{
	if (e)
		l->why = g->why;
	return e;
}

/* ---- announcements ---- */

static struct leveltakes_track *track_of(const struct leveltakes *l, uint16_t id)
{
	return l->index[id] ? l->tracks[l->index[id] - 1] : NULL;
}

static enum err new_track(struct leveltakes *l, uint16_t id)
{
	struct leveltakes_track **list = realloc(l->tracks, (l->n_tracks + 1) * sizeof(struct leveltakes_track *));
	struct leveltakes_track *t = list ? calloc(1, sizeof(*t)) : NULL;

	if (list)
		l->tracks = list;
	if (!t)
		return no_memory(l);
	t->track.takes = l->takes;
	t->track.clock_utc_ns = UNITS_UNKNOWN_NS;
	l->tracks[l->n_tracks++] = t;
	l->index[id] = (uint16_t)l->n_tracks;
	return ERR_OK;
}

static enum err join_group(struct leveltakes *l, struct leveltakes_track *t)
{
	t->group = l->all;
	if (!t->group && levelgroup_new(&t->group, &l->options, l->sync, &l->late_frames))
		return no_memory(l);
	if (l->sync)
		l->all = t->group;
	return levelgroup_join(t->group, &t->track) ? no_memory(l) : ERR_OK;
}

static bool same_coding(const struct track *a, const struct track *b)
{
	return a->codec == b->codec && a->rate_num == b->rate_num && a->rate_den == b->rate_den && a->channels == b->channels &&
		a->sample == b->sample && a->frame_bytes == b->frame_bytes && a->opus_family == b->opus_family &&
		a->opus_streams == b->opus_streams && a->opus_coupled == b->opus_coupled && a->gain_q8 == b->gain_q8 &&
		(a->codec != TRACK_OPUS || a->first_pos == b->first_pos);
}

/*
 * The coding of a track begins anew: what was held back is of no use to what follows, so its take ends, and another one begins where
 * there is something to be heard.  At another rate, what its clock told of is another position.
 */
static enum err renew(struct leveltakes *l, struct leveltakes_track *t, const struct track *now)
{
	enum err e = t->group ? check(l, t->group, levelgroup_renew(t->group, &t->track, now)) : ERR_OK;

	if (e)
		return e;
	if (now->rate_num != t->track.format.rate_num || now->rate_den != t->track.format.rate_den)
		t->track.clock_utc_ns = UNITS_UNKNOWN_NS;
	if (t->group && levelgroup_is_shared(t->group))
		return ERR_OK;
	levelgroup_free(t->group);
	if (l->all == t->group)
		l->all = NULL;
	t->group = NULL;
	return ERR_OK;
}

enum err leveltakes_announce(struct leveltakes *l, const struct track *announced)
{
	enum err e;

	if ((!track_is_opus(announced) && !track_is_pcm(announced)) || announced->rate_den > MAX_RATE_DEN)
		return err_say(&l->why, ERR_FORMAT, "--start-above", "track %u is not audio that can be heard", announced->id);
	struct leveltakes_track *t = track_of(l, announced->id);
	bool goes_on = t && same_coding(&t->track.format, announced);
	if (t && !goes_on && (e = renew(l, t, announced)))
		return e;
	if ((e = takes_announce(l->takes, announced))) {
		l->why = l->takes->why;
		return e;
	}
	if (goes_on)
		return ERR_OK;
	if (!t && (e = new_track(l, announced->id)))
		return e;
	t = track_of(l, announced->id);
	track_release(&t->track.format);
	if (track_copy(&t->track.format, announced))
		return no_memory(l);
	if (!t->group && (e = join_group(l, t)))
		return e;
	return check(l, t->group, levelgroup_take_memory(t->group, &t->track));
}

/* ---- packets ---- */

enum err leveltakes_packet(struct leveltakes *l, const struct packet *p)
{
	struct leveltakes_track *t = track_of(l, p->track);
	enum err e;

	role_forbid(ROLE_DEADLINE);
	if (!t || !t->group)
		return ERR_OK;
	if ((e = takes_start(l->takes, p->utc_ns))) {
		l->why = l->takes->why;
		return e;
	}
	if (p->utc_ns > 0) {
		t->track.clock_pos = p->pos;
		t->track.clock_utc_ns = p->utc_ns;
	}
	switch (p->type) {
	case PACKET_DATA:
		return check(l, t->group, levelgroup_data(t->group, &t->track, p));
	case PACKET_GAP:
		return check(l, t->group, levelgroup_gap(t->group, &t->track, p));
	case PACKET_END:
		return check(l, t->group, levelgroup_end_track(t->group, &t->track));
	}
	return ERR_OK;
}

enum err leveltakes_finish(struct leveltakes *l, bool complete)
{
	enum err e = ERR_OK;

	if (l->all)
		return check(l, l->all, levelgroup_finish(l->all, complete));
	for (unsigned i = 0; !e && i < l->n_tracks; i++) {
		struct levelgroup *g = l->tracks[i]->group;
		if (g)
			e = check(l, g, levelgroup_finish(g, complete));
	}
	return e;
}

static double loudest_db(const struct leveltakes *l)
{
	float loudest = 0;

	for (unsigned i = 0; i < l->n_tracks; i++)
		if (l->tracks[i]->group && l->tracks[i]->group->gate.loudest > loudest)
			loudest = l->tracks[i]->group->gate.loudest;
	return units_factor_to_db((double)loudest);
}

const char *leveltakes_describe_nothing(const struct leveltakes *l, char out[static 128])
{
	double db = loudest_db(l);

	out[0] = 0;
	if (l->takes->n_files)
		return out;
	if (isfinite(db))
		snprintf(out, 128, "nothing was written: the loudest was %.1f dB, and nothing above %.1f dB", db, l->options.start_db);
	else
		snprintf(out, 128, "nothing was written: there was only silence");
	return out;
}
