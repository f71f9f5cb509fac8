#include "stage/mixways.h"

#include "base/cpu.h"
#include "base/units.h"
#include "tool/stats.h"

#include <stdlib.h>
#include <string.h>

static enum err no_memory(struct mixways *w)
{
	return err_say(&w->why, ERR_NOMEM, "mixing", "%s", err_text(ERR_NOMEM));
}

/* ---- one way ---- */

/* The desk's settings for track i become its matrix, within a ramp. */
static enum err set_way(struct mixways *w, unsigned i, uint32_t ramp_frames)
{
	const struct mixin_track *t = w->in->tracks[i];
	struct mixways_way *way = w->ways[i];
	const size_t n = (size_t)w->shape.channels * t->channels;
	enum err e;

	control_lock(&w->control);
	struct desk_track place = w->desk.tracks[i];
	double gain = desk_gain(&w->desk, i);
	control_unlock(&w->control);

	if (way->coef_room < n) {
		free(way->coef);
		way->coef = calloc(n, sizeof(*way->coef));
		way->coef_room = way->coef ? n : 0;
		if (!way->coef)
			return no_memory(w);
	}
	if ((e = mixshape_fill(&w->shape, way->coef, t, way->matrix_column, &place, &w->why)))
		return e;
	for (size_t k = 0; k < n; k++)
		way->coef[k] *= gain;
	bus_track_set(&way->bus, way->coef, ramp_frames);
	return ERR_OK;
}

/* The track has another format than before, or its first. */
static enum err renew_way(struct mixways *w, unsigned i)
{
	struct mixin_track *t = w->in->tracks[i];
	struct mixways_way *way = w->ways[i];
	enum err e;

	bus_track_release(&way->bus);
	t->is_new = false;
	if ((e = bus_track_init(&way->bus, t->format, t->channels, w->shape.channels, cpu_flags())))
		return e == ERR_NOMEM ? no_memory(w) : err_say(&w->why, e, t->name, "%s", err_text(e));
	return set_way(w, i, 0);
}

/* ---- life ---- */

enum err mixways_join(struct mixways *w)
{
	const struct mixin *in = w->in;
	enum err e;

	for (unsigned i = w->n_ways; i < in->n_tracks; i++) {
		if (w->n_ways == w->ways_room) {
			unsigned room = w->ways_room ? 2 * w->ways_room : 16;
			struct mixways_way **more = realloc(w->ways, room * sizeof(struct mixways_way *));
			if (!more)
				return no_memory(w);
			w->ways = more;
			w->ways_room = room;
		}
		if (!(w->ways[i] = calloc(1, sizeof(struct mixways_way))))
			return no_memory(w);
		w->n_ways++;
		w->ways[i]->matrix_column = i ? w->ways[i - 1]->matrix_column + in->tracks[i - 1]->channels : 0;
		control_lock(&w->control);
		e = desk_join(&w->desk, in->tracks[i]->name);
		control_unlock(&w->control);
		if (e)
			return no_memory(w);
	}
	return ERR_OK;
}

static enum err set_desk(struct mixways *w)
{
	const struct opt_list *gains = w->options.gains, *pans = w->options.pans;
	enum err e = ERR_OK;

	for (unsigned i = 0; gains && i < gains->n && !e; i++)
		e = desk_option(&w->desk, "gain", "-g", gains->value[i], &w->why);
	for (unsigned i = 0; pans && i < pans->n && !e; i++)
		e = desk_option(&w->desk, "pan", "--pan", pans->value[i], &w->why);
	return e;
}

enum err mixways_open(struct mixways *w, struct mixin *in, const struct mixways_options *o)
{
	enum err e;

	w->options = *o;
	w->in = in;
	desk_init(&w->desk);
	if ((e = mixways_join(w)) || (e = set_desk(w)) || (e = mixshape_find(&w->shape, in, &w->desk, o->channels, o->matrix_path, &w->why)))
		return e;
	if (!w->shape.channels) /* stopped before anything came */
		w->shape.channels = 1;
	e = mixshape_check_pans(&w->shape, in, &w->desk, &w->why);
	for (unsigned i = 0; i < w->n_ways && !e; i++)
		e = renew_way(w, i);
	if (!e && o->control_path)
		e = control_open(&w->control, o->control_path, &w->desk, o->tool, &w->why);
	return e;
}

void mixways_release(struct mixways *w)
{
	control_release(&w->control);
	for (unsigned i = 0; i < w->n_ways; i++) {
		bus_track_release(&w->ways[i]->bus);
		free(w->ways[i]->coef);
		free(w->ways[i]);
	}
	free(w->ways);
	mixshape_release(&w->shape);
	desk_release(&w->desk);
	memset(w, 0, sizeof(*w));
}

/* ---- blocks ---- */

static void on_frames(void *user, struct mixin_track *t, size_t at, const void *frames, size_t n_frames)
{
	struct mixways *w = user;
	struct mixways_block *b = w->block;
	unsigned i = t->number - 1;
	struct bus_track *bus = &w->ways[i]->bus;

	if (!n_frames) {
		(void)!renew_way(w, i); /* w->why has it */
		return;
	}
	/* In the silence before, a ramp goes on. */
	if (at > w->covered_frames)
		bus_pass(bus, at - w->covered_frames);
	w->covered_frames = at + n_frames;
	if (!bus->now)
		return;
	unsigned before = bus_track_bits(bus);
	double *sum = b->parts ? minus_part(b->parts, i) : b->sum;
	size_t n_bad = bus_add(bus, sum + at * w->shape.channels, frames, n_frames);
	unsigned after = bus_track_bits(bus);
	b->bits = before > b->bits ? before : b->bits;
	b->bits = after > b->bits ? after : b->bits;
	if (n_bad)
		stats_add(w->options.nonfinite_samples, n_bad);
}

/* What was said to the desk since the last block. */
static enum err heed_desk(struct mixways *w)
{
	const uint32_t ramp_frames = (uint32_t)units_scale_up(w->in->rate_hz, MIXWAYS_RAMP_MS, 1000);
	unsigned changes = atomic_load_explicit(&w->control.changes, memory_order_acquire);
	enum err e = ERR_OK;

	if (changes == w->changes_seen)
		return ERR_OK;
	w->changes_seen = changes;
	for (unsigned i = 0; i < w->n_ways && !e; i++)
		if (w->ways[i]->bus.now)
			e = set_way(w, i, ramp_frames);
	return e;
}

enum err mixways_add(struct mixways *w, struct mixways_block *b)
{
	enum err e = heed_desk(w);

	w->block = b;
	for (unsigned i = 0; i < w->n_ways && !e; i++) {
		w->covered_frames = 0;
		if ((e = mixin_take(w->in, w->in->tracks[i], b->pos, b->n_frames, on_frames, w))) {
			w->why = w->in->why;
			break;
		}
		if (w->why.reason[0])
			e = w->why.err;
		else if (w->covered_frames < b->n_frames)
			bus_pass(&w->ways[i]->bus, b->n_frames - w->covered_frames);
	}
	w->block = NULL;
	return e;
}
