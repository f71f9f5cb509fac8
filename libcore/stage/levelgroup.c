#include "stage/levelgroup.h"

#include <stdlib.h>

#define SYNC_WINDOW_MS 2000         /* how far tracks of a group may be apart */

/* ---- life ---- */

enum err levelgroup_new(struct levelgroup **out, const struct levelgate_options *o, bool waits, uint64_t *late_frames)
{
	struct levelgroup *g = *out = calloc(1, sizeof(*g));

	if (!g)
		return ERR_NOMEM;
	g->waits = waits;
	g->late_frames = late_frames;
	levelgate_init(&g->gate, o);
	return ERR_OK;
}

void levelgroup_free(struct levelgroup *g)
{
	if (!g)
		return;
	levelgate_release(&g->gate);
	free(g->tracks);
	free(g);
}

bool levelgroup_is_shared(const struct levelgroup *g)
{
	return g->n_tracks > 1;
}

static int64_t preroll_frames(const struct levelgroup *g, const struct leveltrack *t)
{
	return opt_time_frames(&g->gate.options.preroll, t->format.rate_num, t->format.rate_den);
}

/* How many frames may be heard before anything is decided about them: of a group, so that the tracks need not come at once. */
static size_t window_frames(const struct levelgroup *g, const struct leveltrack *t)
{
	size_t wanted = 2 * LEVELTRACK_LONGEST_OPUS_FRAMES;
	size_t n = 1;

	if (g->waits)
		wanted += (size_t)units_scale(SYNC_WINDOW_MS, t->format.rate_num, 1000 * (int64_t)t->format.rate_den);
	while (n < wanted)
		n *= 2;
	return n;
}

enum err levelgroup_join(struct levelgroup *g, struct leveltrack *t)
{
	struct leveltrack **list = realloc(g->tracks, (g->n_tracks + 1) * sizeof(struct leveltrack *));

	if (!list)
		return ERR_NOMEM;
	g->tracks = list;
	if (levelgate_add(&g->gate, t->format.rate_num, t->format.rate_den, t->format.channels, window_frames(g, t), &t->member))
		return ERR_NOMEM;
	g->tracks[g->n_tracks++] = t;
	return ERR_OK;
}

enum err levelgroup_take_memory(struct levelgroup *g, struct leveltrack *t)
{
	return leveltrack_take_memory(t, (uint64_t)preroll_frames(g, t) + window_frames(g, t), &g->why);
}

/* ---- decisions ---- */

/* What the gate says next, done.  *event: that. */
static enum err act(struct levelgroup *g, enum levelgate_event *event)
{
	int64_t pos;
	enum err e = ERR_OK;

	*event = levelgate_decide(&g->gate, &pos);
	for (unsigned i = 0; !e && i < g->n_tracks; i++) {
		struct leveltrack *t = g->tracks[i];
		if (*event == LEVELGATE_BEGIN)
			e = leveltrack_begin(t, levelgate_place(&g->gate, i, pos), &g->why);
		else if (*event == LEVELGATE_END)
			e = leveltrack_end(t, levelgate_place(&g->gate, i, pos), &g->why);
		else if (g->gate.is_open)
			e = leveltrack_deliver(t, levelgate_decided(&g->gate, i), false, &g->why);
	}
	return e;
}

/* Act on all that the gate can decide about now. */
static enum err decide(struct levelgroup *g)
{
	enum levelgate_event event;
	bool is_open;
	enum err e;

	do
		e = act(g, &event);
	while (!e && event != LEVELGATE_NOTHING);
	is_open = g->gate.is_open;
	for (unsigned i = 0; i < g->n_tracks; i++) {
		struct leveltrack *t = g->tracks[i];
		leveltrack_let_go(t, levelgate_decided(&g->gate, i) - (is_open ? 0 : preroll_frames(g, t)), is_open);
	}
	return e;
}

enum err levelgroup_renew(struct levelgroup *g, struct leveltrack *t, const struct track *now)
{
	bool shared = levelgroup_is_shared(g);
	enum err e = decide(g);

	if (!e && g->gate.is_open && shared)
		return err_say(&g->why, ERR_FORMAT, "--sync", "track %u changes in the middle of a take", t->format.id);
	if (!e && g->gate.is_open)
		e = leveltrack_end(t, t->head_pos, &g->why);
	if (e)
		return e;
	if (shared && (now->rate_num != t->format.rate_num || now->rate_den != t->format.rate_den || now->channels != t->format.channels))
		return err_say(&g->why, ERR_FORMAT, "--sync", "track %u changes to another rate or number of channels", t->format.id);
	leveltrack_drop_memory(t);
	t->started = false;
	return ERR_OK;
}

/* ---- packets ---- */

/* Decide until n frames may be heard; those that lag behind are passed by when there is no other way. */
static enum err make_room(struct levelgroup *g, struct leveltrack *t, size_t n_frames)
{
	if (levelgate_room(&g->gate, t->member) >= n_frames)
		return ERR_OK;
	levelgate_pass(&g->gate);
	return decide(g);
}

static enum err keep(struct levelgroup *g, struct leveltrack *t, struct packet p)
{
	uint64_t n_lost_frames;

	/* Files that are to begin and end together have silence where one of them jumps. */
	if (levelgroup_is_shared(g))
		p.flags &= (uint16_t)~PACKET_DISCONT;
	enum err e = leveltrack_keep(t, &p, &n_lost_frames, &g->why);
	*g->late_frames += n_lost_frames;
	return e;
}

/* Heard portion by portion; each is held back before anything is decided about it. */
static enum err hear_pcm(struct levelgroup *g, struct leveltrack *t, struct packet p)
{
	uint32_t most = leveltrack_portion_frames(t);
	enum err e = ERR_OK;

	while (!e && p.dur > 0) {
		struct packet part = p;
		if (part.dur > most) {
			part.dur = most;
			part.payload_bytes = most * t->format.frame_bytes;
		}
		if ((e = make_room(g, t, part.dur)) || (e = keep(g, t, part)))
			break;
		convert_run(&t->convert, t->frames, part.payload, (size_t)part.dur * t->format.channels);
		levelgate_hear(&g->gate, t->member, part.pos, t->frames, part.dur);
		t->head_pos = part.pos + part.dur;
		e = decide(g);
		holdback_cut_front(&p, t->format.frame_bytes, part.dur);
	}
	return e;
}

/* Frames that are missing: a GAP, or a hole that nobody told of. */
static enum err hear_nothing(struct levelgroup *g, struct leveltrack *t, int64_t to)
{
	enum err e = ERR_OK;

	while (!e && t->head_pos < to) {
		uint32_t n = to - t->head_pos < UINT32_MAX ? (uint32_t)(to - t->head_pos) : UINT32_MAX;
		levelgate_hear_nothing(&g->gate, t->member, t->head_pos, n);
		t->head_pos += n;
		e = decide(g);
	}
	return e;
}

static enum err hear_opus(struct levelgroup *g, struct leveltrack *t, const struct packet *p)
{
	struct opusdec_block b = {0};
	enum err e = make_room(g, t, LEVELTRACK_LONGEST_OPUS_FRAMES);

	if (e || (e = keep(g, t, *p)))
		return e;
	/* One that cannot be decoded is concealed, and heard as that. */
	e = opusdec_packet(t->dec, p, &b);
	if (e && e != ERR_CODEC)
		return err_say(&g->why, e, "--start-above", "%s", err_text(e));
	if (b.n_frames) {
		levelgate_hear(&g->gate, t->member, b.pos, b.frames, b.n_frames);
		t->head_pos = b.pos + (int64_t)b.n_frames;
	}
	return decide(g);
}

/* The first packet says where the track begins. */
static void begin_track(const struct levelgroup *g, struct leveltrack *t, int64_t pos)
{
	const struct levelgate_member *m = &g->gate.members[t->member];

	if (t->started)
		return;
	t->started = true;
	t->head_pos = m->heard ? m->quiet_pos : t->dec && t->format.first_pos > pos ? t->format.first_pos : pos;
}

/* Nothing is missing between: the timeline goes on elsewhere. */
static enum err move_track(struct levelgroup *g, struct leveltrack *t, int64_t pos)
{
	enum err e = decide(g);

	/* Opus begins anew before what is heard of it. */
	if (e || levelgroup_is_shared(g) || pos == t->head_pos || (t->dec && pos < t->head_pos))
		return e;
	levelgate_move(&g->gate, t->member, pos);
	if (!g->gate.is_open)
		holdback_clear(&t->held);
	t->head_pos = pos;
	return ERR_OK;
}

enum err levelgroup_gap(struct levelgroup *g, struct leveltrack *t, const struct packet *p)
{
	int64_t end = p->pos + p->dur;
	enum err e = ERR_OK;

	begin_track(g, t, p->pos);
	if (end <= t->head_pos)
		return ERR_OK;
	if ((e = hear_nothing(g, t, p->pos)) || (e = keep(g, t, *p)) || (e = hear_nothing(g, t, end)))
		return e;
	if (t->dec)
		opusdec_skip(t->dec, end);
	return ERR_OK;
}

enum err levelgroup_data(struct levelgroup *g, struct leveltrack *t, const struct packet *p)
{
	enum err e = ERR_OK;

	begin_track(g, t, p->pos);
	if (p->flags & PACKET_DISCONT && (e = move_track(g, t, p->pos)))
		return e;
	if ((e = hear_nothing(g, t, p->pos)))
		return e;
	const struct levelgate *gate = &g->gate;
	if (levelgroup_is_shared(g) && !gate->is_open && gate->decides && p->pos < levelgate_place(gate, t->member, gate->decided_pos))
		*g->late_frames += p->dur;
	return t->dec ? hear_opus(g, t, p) : hear_pcm(g, t, *p);
}

enum err levelgroup_end_track(struct levelgroup *g, struct leveltrack *t)
{
	levelgate_end(&g->gate, t->member);
	return decide(g);
}

enum err levelgroup_finish(struct levelgroup *g, bool complete)
{
	enum err e;

	for (unsigned i = 0; i < g->n_tracks; i++)
		levelgate_end(&g->gate, i);
	e = decide(g);
	for (unsigned i = 0; !e && g->gate.is_open && i < g->n_tracks; i++) {
		int64_t end = levelgate_place(&g->gate, i, levelgate_last(&g->gate));
		e = complete ? leveltrack_end(g->tracks[i], end, &g->why) : leveltrack_deliver(g->tracks[i], end, true, &g->why);
	}
	return e;
}
