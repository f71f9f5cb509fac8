#include "stage/levelgate.h"

#include "base/cpu.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { QUIET, BETWEEN, LOUD };

#define CHUNK_FRAMES 64u /* looked at one by one only where their peak says so */

void levelgate_init(struct levelgate *g, const struct levelgate_options *o)
{
	*g = (struct levelgate){
		.options = *o, .start = (float)units_db_to_factor(o->start_db), .stop = (float)units_db_to_factor(o->stop_db),
	};
	if (!o->has_stop)
		g->stop = g->start;
	dsp_init(&g->dsp, cpu_flags());
}

void levelgate_release(struct levelgate *g)
{
	for (unsigned i = 0; i < g->n_members; i++)
		free(g->members[i].kinds);
	free(g->members);
	*g = (struct levelgate){0};
}

enum err levelgate_add(struct levelgate *g, uint32_t rate_num, uint32_t rate_den, unsigned channels, size_t window_frames, unsigned *i)
{
	struct levelgate_member m = { .rate_num = rate_num, .rate_den = rate_den, .channels = channels, .window_frames = 1 };
	struct levelgate_member *more = realloc(g->members, (g->n_members + 1) * sizeof(*more));

	if (!more)
		return ERR_NOMEM;
	g->members = more;
	while (m.window_frames < window_frames)
		m.window_frames *= 2;
	m.kinds = calloc(m.window_frames, 1);
	if (!m.kinds)
		return ERR_NOMEM;
	if (g->n_members == 0) {
		g->hold_frames = opt_time_frames(&g->options.hold, rate_num, rate_den);
		g->preroll_frames = opt_time_frames(&g->options.preroll, rate_num, rate_den);
	}
	*i = g->n_members;
	g->members[g->n_members++] = m;
	return ERR_OK;
}

/* ---- the two time bases ---- */

static bool same_rate(const struct levelgate_member *a, const struct levelgate_member *b)
{
	return a->rate_num == b->rate_num && a->rate_den == b->rate_den;
}

typedef int64_t scale_fn(int64_t n, int64_t num, int64_t den);

static int64_t convert(scale_fn *scale, int64_t n, const struct levelgate_member *from, const struct levelgate_member *to)
{
	return same_rate(from, to) ? n : scale(n, (int64_t)to->rate_num * from->rate_den, (int64_t)from->rate_num * to->rate_den);
}

/* The gate's frame that member m's frame n begins in. */
static int64_t to_gate(const struct levelgate *g, const struct levelgate_member *m, int64_t n)
{
	return convert(units_scale_down, n, m, &g->members[0]);
}

/* The first frame of member m that does not begin before the gate's n: to_gate(f) ≥ n just for f from here on. */
static int64_t from_gate(const struct levelgate *g, const struct levelgate_member *m, int64_t n)
{
	return convert(units_scale_up, n, &g->members[0], m);
}

int64_t levelgate_place(const struct levelgate *g, unsigned i, int64_t pos)
{
	return from_gate(g, &g->members[i], pos);
}

int64_t levelgate_decided(const struct levelgate *g, unsigned i)
{
	const struct levelgate_member *m = &g->members[i];

	if (!g->decides)
		return m->first_pos;
	int64_t pos = from_gate(g, m, g->decided_pos);
	return pos < m->quiet_pos || !m->heard ? pos : m->quiet_pos;
}

/* ---- hearing ---- */

static void set_kind(struct levelgate_member *m, int64_t pos, size_t n_frames, enum kind kind)
{
	size_t at = (size_t)pos & (m->window_frames - 1);
	size_t n = m->window_frames - at < n_frames ? m->window_frames - at : n_frames;

	memset(m->kinds + at, kind, n);
	memset(m->kinds, kind, n_frames - n);
}

static void begin_member(struct levelgate *g, struct levelgate_member *m, int64_t pos)
{
	if (m->heard)
		return;
	m->heard = true;
	m->first_pos = m->head_pos = m->quiet_pos = pos;
	bool is_first = true;
	for (unsigned i = 0; i < g->n_members; i++)
		is_first &= &g->members[i] == m || !g->members[i].heard;
	int64_t at = to_gate(g, m, pos);
	if (is_first || (!g->decides && at < g->floor_pos))
		g->floor_pos = at;
}

static void went_on(struct levelgate *g, struct levelgate_member *m)
{
	if (m->passed && to_gate(g, m, m->quiet_pos) >= g->decided_pos)
		m->passed = false;
}

/* What was missing before the frames that are heard now is quiet, as far back as the window reaches. */
static void fill_window(struct levelgate_member *m)
{
	uint64_t missing = (uint64_t)(m->quiet_pos - m->head_pos);

	if (missing >= m->window_frames)
		memset(m->kinds, QUIET, m->window_frames);
	else
		set_kind(m, m->head_pos, (size_t)missing, QUIET);
	m->head_pos = m->quiet_pos;
}

size_t levelgate_room(const struct levelgate *g, unsigned i)
{
	const struct levelgate_member *m = &g->members[i];
	int64_t waiting = m->heard ? m->quiet_pos - (g->decides ? from_gate(g, m, g->decided_pos) : m->first_pos) : 0;

	if (waiting < 0)
		waiting = 0;
	return (uint64_t)waiting < m->window_frames ? m->window_frames - (size_t)waiting : 0;
}

static enum kind kind_of(const struct levelgate *g, float peak)
{
	return peak > g->start ? LOUD : peak >= g->stop ? BETWEEN : QUIET;
}

static enum kind frame_kind(const struct levelgate *g, const float *frame, unsigned channels)
{
	float peak = 0;

	for (unsigned c = 0; c < channels; c++)
		if (fabsf(frame[c]) > peak)
			peak = fabsf(frame[c]);
	return kind_of(g, peak);
}

void levelgate_hear(struct levelgate *g, unsigned i, int64_t pos, const float *frames, size_t n_frames)
{
	struct levelgate_member *m = &g->members[i];

	m->ended = false;
	begin_member(g, m, pos);
	fill_window(m);
	while (n_frames) {
		size_t n = n_frames < CHUNK_FRAMES ? n_frames : CHUNK_FRAMES;
		float peak = g->dsp.peak(frames, n * m->channels);
		if (peak > g->loudest)
			g->loudest = peak;
		if (kind_of(g, peak) == QUIET)
			set_kind(m, m->head_pos, n, QUIET);
		else
			for (size_t k = 0; k < n; k++)
				m->kinds[(size_t)(m->head_pos + (int64_t)k) & (m->window_frames - 1)] =
					(uint8_t)frame_kind(g, frames + k * m->channels, m->channels);
		m->head_pos += (int64_t)n;
		frames += n * m->channels;
		n_frames -= n;
	}
	m->quiet_pos = m->head_pos;
	went_on(g, m);
}

void levelgate_hear_nothing(struct levelgate *g, unsigned i, int64_t pos, uint32_t n_frames)
{
	struct levelgate_member *m = &g->members[i];

	m->ended = false;
	begin_member(g, m, pos);
	m->quiet_pos += n_frames;
	went_on(g, m);
}

void levelgate_move(struct levelgate *g, unsigned i, int64_t pos)
{
	struct levelgate_member *m = &g->members[i];

	if (!m->heard)
		return;
	g->active_pos += pos - m->quiet_pos;
	m->first_pos = m->head_pos = m->quiet_pos = pos;
	g->decided_pos = g->floor_pos = pos;
}

void levelgate_end(struct levelgate *g, unsigned i)
{
	g->members[i].ended = true;
}

int64_t levelgate_last(const struct levelgate *g)
{
	int64_t last = g->decided_pos;

	for (unsigned i = 0; i < g->n_members; i++) {
		const struct levelgate_member *m = &g->members[i];
		int64_t end = m->heard ? convert(units_scale_up, m->quiet_pos, m, &g->members[0]) : last;
		if (end > last)
			last = end;
	}
	return last;
}

void levelgate_pass(struct levelgate *g)
{
	int64_t last = levelgate_last(g);

	for (unsigned i = 0; i < g->n_members; i++) {
		struct levelgate_member *m = &g->members[i];
		int64_t reach = from_gate(g, m, last) - (int64_t)m->window_frames / 2;
		if (!m->heard || m->quiet_pos < reach)
			m->passed = true;
	}
}

/* ---- deciding ---- */

/* All that count were heard up to here. */
static int64_t horizon(const struct levelgate *g)
{
	int64_t h = levelgate_last(g);

	for (unsigned i = 0; i < g->n_members; i++) {
		const struct levelgate_member *m = &g->members[i];
		if (m->passed || m->ended)
			continue;
		int64_t end = m->heard ? to_gate(g, m, m->quiet_pos) : INT64_MIN;
		if (end < h)
			h = end;
	}
	return h;
}

/* Of member m's frames, what lies in the gate's from…to and is in the window. */
static void window_of(const struct levelgate *g, const struct levelgate_member *m, int64_t from, int64_t to, int64_t *a, int64_t *b)
{
	int64_t oldest = m->head_pos - (int64_t)m->window_frames;

	*a = from_gate(g, m, from);
	*b = from_gate(g, m, to);
	if (*a < m->first_pos)
		*a = m->first_pos;
	if (*a < oldest)
		*a = oldest;
	if (!m->heard)
		*b = *a;
	else if (*b > m->head_pos)
		*b = m->head_pos;
}

/* The first loud frame in from…to, or to. */
static int64_t find_loud(const struct levelgate *g, int64_t from, int64_t to)
{
	int64_t found = to, a, b;

	for (unsigned i = 0; i < g->n_members; i++) {
		const struct levelgate_member *m = &g->members[i];
		window_of(g, m, from, found, &a, &b);
		while (a < b && m->kinds[(size_t)a & (m->window_frames - 1)] != LOUD)
			a++;
		if (a < b)
			found = to_gate(g, m, a);
	}
	return found;
}

/* The last frame in from…to that is not quiet, or from − 1. */
static int64_t find_active(const struct levelgate *g, int64_t from, int64_t to)
{
	int64_t found = from - 1, a, b;

	for (unsigned i = 0; i < g->n_members; i++) {
		const struct levelgate_member *m = &g->members[i];
		window_of(g, m, found + 1, to, &a, &b);
		while (a < b && m->kinds[(size_t)(b - 1) & (m->window_frames - 1)] == QUIET)
			b--;
		if (a < b)
			found = to_gate(g, m, b - 1);
	}
	return found;
}

static enum levelgate_event decide_closed(struct levelgate *g, int64_t to, int64_t *pos)
{
	int64_t loud = find_loud(g, g->decided_pos, to);

	g->decided_pos = loud;
	if (loud >= to)
		return LEVELGATE_NOTHING;
	g->is_open = true;
	g->active_pos = loud;
	g->n_takes++;
	*pos = loud - g->preroll_frames > g->floor_pos ? loud - g->preroll_frames : g->floor_pos;
	return LEVELGATE_BEGIN;
}

static enum levelgate_event decide_open(struct levelgate *g, int64_t to, int64_t *pos)
{
	while (g->options.has_stop) {
		int64_t end = g->active_pos + 1 + g->hold_frames;
		int64_t limit = end < to ? end : to;
		int64_t from = g->decided_pos > g->active_pos ? g->decided_pos : g->active_pos + 1;
		int64_t active = limit > from ? find_active(g, from, limit) : from - 1;
		if (active >= from) {
			g->active_pos = active;
			g->decided_pos = active + 1;
			continue;
		}
		if (end > to)
			break;
		g->is_open = false;
		g->decided_pos = g->floor_pos = *pos = end;
		return LEVELGATE_END;
	}
	g->decided_pos = to;
	return LEVELGATE_NOTHING;
}

enum levelgate_event levelgate_decide(struct levelgate *g, int64_t *pos)
{
	int64_t to = horizon(g);

	if (!g->decides && to > g->floor_pos) {
		g->decides = true;
		g->decided_pos = g->floor_pos;
	}
	if (!g->decides || to <= g->decided_pos)
		return LEVELGATE_NOTHING;
	return g->is_open ? decide_open(g, to, pos) : decide_closed(g, to, pos);
}
