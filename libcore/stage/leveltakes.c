#include "stage/leveltakes.h"

#include "base/role.h"
#include "dsp/convert.h"
#include "media/opusdec.h"
#include "stage/holdback.h"
#include "stage/preroll.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_HOLD_MS 2000
#define USUAL_PREROLL_MS 500
#define PORTION_BYTES 32768u        /* of PCM that is heard at once, at most */
#define PORTION_FRAMES 4096u
#define SYNC_WINDOW_MS 2000         /* how far tracks of a group may be apart */
#define MAX_RATE_DEN 1000000u       /* keeps products of two rates within 64 bits */
#define SHORTEST_OPUS_FRAMES 120u
#define LONGEST_OPUS_FRAMES 5760u
#define MAX_OPUS_FRAME_BYTES 1280u  /* of one stream: RFC 6716 3.2.1, and its length */
#define FEWEST_FRAMES_AN_ENTRY 32   /* of PCM: packets that are shorter are joined, but gaps may lie between */

struct leveltakes_track {
	struct track format;        /* as announced last */
	struct leveltakes_group *group;
	unsigned member;            /* of its gate */
	struct holdback held;
	unsigned n_sent;            /* of those, the oldest ones: in the open take already */
	struct convert convert;
	float *frames;              /* one portion, to be heard; NULL for Opus */
	struct opusdec *dec;        /* of Opus */
	bool started;
	int64_t head_pos;           /* where the next frame should be */
	int64_t clock_pos, clock_utc_ns;
};

struct leveltakes_group {
	struct levelgate gate;
	struct leveltakes_track **tracks; /* by member */
	unsigned n_tracks;
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

static void group_free(struct leveltakes_group *g)
{
	if (!g)
		return;
	levelgate_release(&g->gate);
	free(g->tracks);
	free(g);
}

static void drop_buffers(struct leveltakes_track *t)
{
	holdback_release(&t->held);
	opusdec_free(t->dec);
	free(t->frames);
	t->dec = NULL;
	t->frames = NULL;
	t->n_sent = 0;
}

void leveltakes_release(struct leveltakes *l)
{
	for (unsigned i = 0; i < l->n_tracks; i++) {
		struct leveltakes_track *t = l->tracks[i];
		if (!l->sync)
			group_free(t->group);
		drop_buffers(t);
		track_release(&t->format);
		free(t);
	}
	group_free(l->all);
	free(l->tracks);
	free(l->index);
	*l = (struct leveltakes){0};
}

static enum err no_memory(struct leveltakes *l)
{
	return err_say(&l->why, ERR_NOMEM, "--pre-roll", "%s", err_text(ERR_NOMEM));
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
	t->clock_utc_ns = UNITS_UNKNOWN_NS;
	l->tracks[l->n_tracks++] = t;
	l->index[id] = (uint16_t)l->n_tracks;
	return ERR_OK;
}

static enum err new_group(struct leveltakes *l, struct leveltakes_group **g)
{
	if (!(*g = calloc(1, sizeof(**g))))
		return no_memory(l);
	levelgate_init(&(*g)->gate, &l->options);
	return ERR_OK;
}

static int64_t preroll_frames(const struct leveltakes *l, const struct leveltakes_track *t)
{
	return opt_time_frames(&l->options.preroll, t->format.rate_num, t->format.rate_den);
}

/* How many frames may be heard before anything is decided about them: of a group, so that the tracks need not come at once. */
static size_t window_frames(const struct leveltakes *l, const struct leveltakes_track *t)
{
	size_t wanted = 2 * LONGEST_OPUS_FRAMES + (l->sync ? (size_t)units_scale(SYNC_WINDOW_MS, t->format.rate_num, 1000 * (int64_t)t->format.rate_den) : 0);
	size_t n = 1;

	while (n < wanted)
		n *= 2;
	return n;
}

/* How much PCM is heard at once. */
static uint32_t portion_frames(const struct leveltakes_track *t)
{
	uint32_t n = PORTION_BYTES / t->format.frame_bytes;
	return n < 1 ? 1 : n > PORTION_FRAMES ? PORTION_FRAMES : n;
}

static bool is_shared(const struct leveltakes_track *t)
{
	return t->group->n_tracks > 1;
}

static enum err join_group(struct leveltakes *l, struct leveltakes_track *t)
{
	struct leveltakes_group *g = l->sync ? l->all : NULL;
	enum err e = ERR_OK;

	if (!g && (e = new_group(l, &g)))
		return e;
	if (l->sync)
		l->all = g;
	t->group = g;
	struct leveltakes_track **list = realloc(g->tracks, (g->n_tracks + 1) * sizeof(struct leveltakes_track *));
	if (list)
		g->tracks = list;
	if (!list || levelgate_add(&g->gate, t->format.rate_num, t->format.rate_den, t->format.channels, window_frames(l, t), &t->member))
		return no_memory(l);
	g->tracks[g->n_tracks++] = t;
	return ERR_OK;
}

/* Room for the pre-roll, what nothing is decided about yet, and what a decoder of Opus needs before it. */
static enum err take_memory(struct leveltakes *l, struct leveltakes_track *t)
{
	bool opus = track_is_opus(&t->format);
	uint64_t n_frames = (uint64_t)preroll_frames(l, t) + window_frames(l, t);
	uint64_t n_bytes, n_packets;

	if (opus) {
		uint64_t streams = t->format.opus_streams ? t->format.opus_streams : 1;
		n_frames += PREROLL_FRAMES + 2 * LONGEST_OPUS_FRAMES;
		n_packets = n_frames / SHORTEST_OPUS_FRAMES + 64;
		n_bytes = n_packets * MAX_OPUS_FRAME_BYTES * streams;
	} else {
		n_packets = n_frames / FEWEST_FRAMES_AN_ENTRY + 64;
		n_bytes = n_frames * t->format.frame_bytes + 4 * (uint64_t)HOLDBACK_MAX_ENTRY_BYTES;
	}
	if (n_bytes > LEVELTAKES_MAX_HELD_BYTES)
		return err_say(&l->why, ERR_LIMIT, "--pre-roll", "track %u would need %llu MiB for it, and may have %u: make it shorter",
			t->format.id, (unsigned long long)(n_bytes >> 20), LEVELTAKES_MAX_HELD_BYTES >> 20);
	if (holdback_init(&t->held, (unsigned)n_packets, (size_t)n_bytes, opus ? 0 : t->format.frame_bytes))
		return no_memory(l);
	if (opus) {
		struct track pcm = {0};
		enum err e = opusdec_new(&t->dec, &t->format, false, &pcm, &l->why);
		track_release(&pcm);
		return e;
	}
	if (convert_init(&t->convert, (enum sample)t->format.sample, SAMPLE_F32, false, 0))
		return err_say(&l->why, ERR_FORMAT, "--start-above", "track %u is not audio that can be heard", t->format.id);
	t->frames = malloc(portion_frames(t) * sizeof(float) * t->format.channels);
	return t->frames ? ERR_OK : no_memory(l);
}

static enum err end_take(struct leveltakes *l, struct leveltakes_track *t, int64_t pos);
static enum err decide(struct leveltakes *l, struct leveltakes_group *g);
static enum err deliver(struct leveltakes *l, struct leveltakes_track *t, int64_t to, bool cuts);

static bool same_coding(const struct track *a, const struct track *b)
{
	return a->codec == b->codec && a->rate_num == b->rate_num && a->rate_den == b->rate_den && a->channels == b->channels &&
		a->sample == b->sample && a->frame_bytes == b->frame_bytes && a->opus_family == b->opus_family &&
		a->opus_streams == b->opus_streams && a->opus_coupled == b->opus_coupled && a->gain_q8 == b->gain_q8 &&
		(a->codec != TRACK_OPUS || a->first_pos == b->first_pos);
}

/*
 * The coding of a track begins anew: what was held back is of no use to what follows, so its take ends, and another one begins where
 * there is something to be heard.
 */
static enum err renew(struct leveltakes *l, struct leveltakes_track *t, const struct track *now)
{
	struct leveltakes_group *g = t->group;
	bool shared = is_shared(t);
	enum err e = decide(l, g);

	if (!e && g->gate.is_open && shared)
		return err_say(&l->why, ERR_FORMAT, "--sync", "track %u changes in the middle of a take", t->format.id);
	if (!e && g->gate.is_open)
		e = end_take(l, t, t->head_pos);
	if (e)
		return e;
	if (shared && (now->rate_num != t->format.rate_num || now->rate_den != t->format.rate_den || now->channels != t->format.channels))
		return err_say(&l->why, ERR_FORMAT, "--sync", "track %u changes to another rate or number of channels", t->format.id);
	drop_buffers(t);
	t->started = false;
	if (shared)
		return ERR_OK;
	group_free(g);
	t->group = NULL;
	return ERR_OK;
}

enum err leveltakes_announce(struct leveltakes *l, const struct track *announced)
{
	enum err e;

	if ((!track_is_opus(announced) && !track_is_pcm(announced)) || announced->rate_den > MAX_RATE_DEN)
		return err_say(&l->why, ERR_FORMAT, "--start-above", "track %u is not audio that can be heard", announced->id);
	struct leveltakes_track *t = track_of(l, announced->id);
	bool goes_on = t && same_coding(&t->format, announced);
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
	track_release(&t->format);
	if (track_copy(&t->format, announced))
		return no_memory(l);
	if (!t->group && (e = join_group(l, t)))
		return e;
	return take_memory(l, t);
}

/* ---- from what is held back into the take ---- */

static enum err into_take(struct leveltakes *l, const struct packet *p)
{
	enum err e = takes_packet(l->takes, p);
	if (e)
		l->why = l->takes->why;
	return e;
}

/*
 * Of a take that is open: what lies before `to`.  With cuts, a packet that holds `to` gives its first part; else only whole packets of
 * Opus go, because nothing is decided about the rest of one.
 */
static enum err deliver(struct leveltakes *l, struct leveltakes_track *t, int64_t to, bool cuts)
{
	bool opus = t->dec;
	enum err e = ERR_OK;

	while (!e && t->n_sent < t->held.n) {
		struct packet p = *holdback_at(&t->held, t->n_sent);
		int64_t end = p.pos + p.dur;
		if (p.pos >= to || (opus && end > to && !cuts))
			break;
		bool partly = end > to;
		if (partly) {
			p.dur = (uint32_t)(to - p.pos);
			if (opus)
				p.flags |= PACKET_TRIM;
			else if (p.type == PACKET_DATA)
				p.payload_bytes = p.dur * t->format.frame_bytes;
		}
		e = into_take(l, &p);
		if (opus) {
			/* Kept, for the decoder that the next take needs. */
			t->n_sent++;
		} else if (!partly) {
			holdback_drop(&t->held);
		} else {
			holdback_trim(&t->held, p.dur);
		}
		if (partly)
			break;
	}
	return e;
}

/* Of what is held back, the first packet that a decoder needs which is to give the frames from pos on. */
static unsigned first_needed(const struct leveltakes_track *t, int64_t pos)
{
	unsigned first = 0;
	int64_t end = INT64_MIN;

	for (unsigned i = 0; i < t->held.n; i++) {
		const struct packet *p = holdback_at(&t->held, i);
		if (p->pos > pos)
			break;
		bool whole = i > 0 && p->type == PACKET_DATA && p->pos == end && !(p->flags & PACKET_DISCONT);
		if (p->pos <= pos - PREROLL_FRAMES || !whole)
			first = i;
		end = p->type == PACKET_DATA ? p->pos + p->dur : INT64_MIN;
	}
	return first;
}

static enum err begin_take(struct leveltakes *l, struct leveltakes_track *t, int64_t pos)
{
	enum err e = takes_begin_at(l->takes, t->format.id, pos, t->clock_pos, t->clock_utc_ns);

	if (e) {
		l->why = l->takes->why;
		return e;
	}
	if (t->dec) {
		t->n_sent = first_needed(t, pos);
		return ERR_OK;
	}
	/* What lies before it goes. */
	while (t->held.n) {
		const struct packet *p = holdback_at(&t->held, 0);
		if (p->pos + p->dur > pos)
			break;
		holdback_drop(&t->held);
	}
	if (t->held.n && holdback_at(&t->held, 0)->pos < pos)
		holdback_trim(&t->held, (uint32_t)(pos - holdback_at(&t->held, 0)->pos));
	return ERR_OK;
}

static enum err end_take(struct leveltakes *l, struct leveltakes_track *t, int64_t pos)
{
	enum err e = deliver(l, t, pos, true);

	if (e)
		return e;
	if ((e = takes_end_at(l->takes, t->format.id, pos)))
		l->why = l->takes->why;
	return e;
}

/* What no take can need any more goes. */
static void let_go(const struct leveltakes *l, struct leveltakes_track *t)
{
	const struct levelgate *g = &t->group->gate;
	int64_t keep = levelgate_decided(g, t->member);

	if (!g->is_open)
		keep -= preroll_frames(l, t);
	if (t->dec)
		keep -= PREROLL_FRAMES + LONGEST_OPUS_FRAMES;
	while (t->held.n) {
		const struct packet *p = holdback_at(&t->held, 0);
		if (p->pos + p->dur > keep || (g->is_open && t->n_sent == 0))
			break;
		holdback_drop(&t->held);
		if (t->n_sent)
			t->n_sent--;
	}
}

/* Act on all that the gate can decide about now. */
static enum err decide(struct leveltakes *l, struct leveltakes_group *g)
{
	enum levelgate_event event;
	int64_t pos;
	enum err e = ERR_OK;

	do {
		event = levelgate_decide(&g->gate, &pos);
		for (unsigned i = 0; !e && i < g->n_tracks; i++) {
			struct leveltakes_track *t = g->tracks[i];
			if (event == LEVELGATE_BEGIN)
				e = begin_take(l, t, levelgate_place(&g->gate, i, pos));
			else if (event == LEVELGATE_END)
				e = end_take(l, t, levelgate_place(&g->gate, i, pos));
			else if (g->gate.is_open)
				e = deliver(l, t, levelgate_decided(&g->gate, i), false);
		}
	} while (!e && event != LEVELGATE_NOTHING);
	for (unsigned i = 0; i < g->n_tracks; i++)
		let_go(l, g->tracks[i]);
	return e;
}

/* ---- packets ---- */

/* Decide until n frames may be heard; those that lag behind are passed by when there is no other way. */
static enum err make_room(struct leveltakes *l, struct leveltakes_track *t, size_t n_frames)
{
	struct levelgate *g = &t->group->gate;

	if (levelgate_room(g, t->member) >= n_frames)
		return ERR_OK;
	levelgate_pass(g);
	return decide(l, t->group);
}

static enum err keep(struct leveltakes *l, struct leveltakes_track *t, struct packet p)
{
	/* Files that are to begin and end together have silence where one of them jumps. */
	if (is_shared(t))
		p.flags &= (uint16_t)~PACKET_DISCONT;
	while (!holdback_add(&t->held, &p)) {
		/* More packets than there can be of this length: the oldest is the least missed. */
		if (!t->held.n)
			return err_say(&l->why, ERR_LIMIT, "--start-above", "a packet of %u bytes is too long", p.payload_bytes);
		l->late_frames += t->n_sent ? 0 : holdback_at(&t->held, 0)->dur;
		holdback_drop(&t->held);
		if (t->n_sent)
			t->n_sent--;
	}
	return ERR_OK;
}

/* Heard portion by portion; each is held back before anything is decided about it. */
static enum err hear_pcm(struct leveltakes *l, struct leveltakes_track *t, struct packet p)
{
	uint32_t most = portion_frames(t);
	enum err e = ERR_OK;

	while (!e && p.dur > 0) {
		struct packet part = p;
		if (part.dur > most) {
			part.dur = most;
			part.payload_bytes = most * t->format.frame_bytes;
		}
		if ((e = make_room(l, t, part.dur)) || (e = keep(l, t, part)))
			break;
		convert_run(&t->convert, t->frames, part.payload, (size_t)part.dur * t->format.channels);
		levelgate_hear(&t->group->gate, t->member, part.pos, t->frames, part.dur);
		t->head_pos = part.pos + part.dur;
		e = decide(l, t->group);
		holdback_cut_front(&p, t->format.frame_bytes, part.dur);
	}
	return e;
}

/* Frames that are missing: a GAP, or a hole that nobody told of. */
static enum err hear_nothing(struct leveltakes *l, struct leveltakes_track *t, int64_t to)
{
	enum err e = ERR_OK;

	while (!e && t->head_pos < to) {
		uint32_t n = to - t->head_pos < UINT32_MAX ? (uint32_t)(to - t->head_pos) : UINT32_MAX;
		levelgate_hear_nothing(&t->group->gate, t->member, t->head_pos, n);
		t->head_pos += n;
		e = decide(l, t->group);
	}
	return e;
}

static enum err hear_opus(struct leveltakes *l, struct leveltakes_track *t, const struct packet *p)
{
	struct opusdec_block b = {0};
	enum err e = make_room(l, t, LONGEST_OPUS_FRAMES);

	if (e || (e = keep(l, t, *p)))
		return e;
	/* One that cannot be decoded is concealed, and heard as that. */
	e = opusdec_packet(t->dec, p, &b);
	if (e && e != ERR_CODEC)
		return err_say(&l->why, e, "--start-above", "%s", err_text(e));
	if (b.n_frames) {
		levelgate_hear(&t->group->gate, t->member, b.pos, b.frames, b.n_frames);
		t->head_pos = b.pos + (int64_t)b.n_frames;
	}
	return decide(l, t->group);
}

/* The first packet says where the track begins. */
static void begin_track(struct leveltakes_track *t, int64_t pos)
{
	const struct levelgate_member *m = &t->group->gate.members[t->member];

	if (t->started)
		return;
	t->started = true;
	t->head_pos = m->heard ? m->quiet_pos : t->dec && t->format.first_pos > pos ? t->format.first_pos : pos;
}

/* Nothing is missing between: the timeline goes on elsewhere. */
static enum err move_track(struct leveltakes *l, struct leveltakes_track *t, int64_t pos)
{
	enum err e = decide(l, t->group);

	/* Opus begins anew before what is heard of it. */
	if (e || is_shared(t) || pos == t->head_pos || (t->dec && pos < t->head_pos))
		return e;
	levelgate_move(&t->group->gate, t->member, pos);
	if (!t->group->gate.is_open)
		holdback_clear(&t->held);
	t->head_pos = pos;
	return ERR_OK;
}

static enum err hear_gap(struct leveltakes *l, struct leveltakes_track *t, const struct packet *p)
{
	int64_t end = p->pos + p->dur;
	enum err e = ERR_OK;

	begin_track(t, p->pos);
	if (end <= t->head_pos)
		return ERR_OK;
	if ((e = hear_nothing(l, t, p->pos)) || (e = keep(l, t, *p)) || (e = hear_nothing(l, t, end)))
		return e;
	if (t->dec)
		opusdec_skip(t->dec, end);
	return ERR_OK;
}

static enum err hear_data(struct leveltakes *l, struct leveltakes_track *t, const struct packet *p)
{
	enum err e = ERR_OK;

	begin_track(t, p->pos);
	if (p->flags & PACKET_DISCONT && (e = move_track(l, t, p->pos)))
		return e;
	if ((e = hear_nothing(l, t, p->pos)))
		return e;
	const struct levelgate *g = &t->group->gate;
	if (is_shared(t) && !g->is_open && g->decides && p->pos < levelgate_place(g, t->member, g->decided_pos))
		l->late_frames += p->dur;
	return t->dec ? hear_opus(l, t, p) : hear_pcm(l, t, *p);
}

enum err leveltakes_packet(struct leveltakes *l, const struct packet *p)
{
	struct leveltakes_track *t = track_of(l, p->track);
	enum err e;

	role_forbid(ROLE_DEADLINE);
	if (!t)
		return ERR_OK;
	if ((e = takes_start(l->takes, p->utc_ns))) {
		l->why = l->takes->why;
		return e;
	}
	if (p->utc_ns > 0) {
		t->clock_pos = p->pos;
		t->clock_utc_ns = p->utc_ns;
	}
	switch (p->type) {
	case PACKET_DATA:
		return hear_data(l, t, p);
	case PACKET_GAP:
		return hear_gap(l, t, p);
	case PACKET_END:
		levelgate_end(&t->group->gate, t->member);
		return decide(l, t->group);
	}
	return ERR_OK;
}

enum err leveltakes_finish(struct leveltakes *l, bool complete)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; !e && i < l->n_tracks; i++)
		levelgate_end(&l->tracks[i]->group->gate, l->tracks[i]->member);
	for (unsigned i = 0; !e && i < l->n_tracks; i++) {
		struct leveltakes_group *g = l->tracks[i]->group;
		if (g->tracks[0] != l->tracks[i])
			continue;
		e = decide(l, g);
		for (unsigned k = 0; !e && g->gate.is_open && k < g->n_tracks; k++) {
			int64_t end = levelgate_place(&g->gate, k, levelgate_last(&g->gate));
			e = complete ? end_take(l, g->tracks[k], end) : deliver(l, g->tracks[k], end, true);
		}
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
