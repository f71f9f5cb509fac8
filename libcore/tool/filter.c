#include "tool/filter.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lanes ---- */

static struct filter_lane *add_lane(struct filter *f, uint16_t id)
{
	struct filter_lane **more = realloc(f->lanes, (f->n_lanes + 1) * sizeof(struct filter_lane *));
	struct filter_lane *lane = more ? calloc(1, f->ops->lane_bytes) : NULL;

	if (more)
		f->lanes = more;
	if (!lane)
		return NULL;
	lane->id = id;
	f->lanes[f->n_lanes++] = lane;
	return lane;
}

static enum err settle(struct filter *f)
{
	return f->ops->settle ? f->ops->settle(f) : ERR_OK;
}

static enum err close_lane(struct filter *f, struct filter_lane *lane)
{
	enum err e = settle(f);

	if (e || !lane->is_open)
		return e;
	lane->is_open = false;
	return f->ops->close(f, lane);
}

static enum err open_lane(struct filter *f, const struct track *t, void **user)
{
	struct filter_lane *lane = *user;
	enum err e;

	if (!lane && !(lane = *user = add_lane(f, t->id)))
		return ERR_NOMEM;
	if ((e = close_lane(f, lane)))
		return e;
	if ((e = f->ops->open(f, lane, t))) {
		if (f->pump.why.reason[0])
			snprintf(f->pump.why.thing, sizeof(f->pump.why.thing), "track %u", t->id);
		return e;
	}
	lane->is_open = true;
	lane->n_opened++;
	return ERR_OK;
}

/* ---- packets ---- */

static enum err take_track(struct filter *f, struct packet *p)
{
	const struct track *t = input_track(&f->pump.in, p->track);
	void **user = input_user(&f->pump.in, p->track);
	enum err e = ERR_AGAIN;

	if (!t || !user)
		return ERR_OK;
	select_note(&f->hits, &f->wanted, t);
	if (select_match(&f->wanted, t))
		e = f->ops->accept(f, t);
	if (e != ERR_AGAIN)
		return e ? e : open_lane(f, t, user);
	/* Not ours, or no longer. */
	if (*user && (e = close_lane(f, *user)))
		return e;
	*user = NULL;
	return (e = settle(f)) ? e : pump_pass(&f->pump, p);
}

static enum err take(void *stage, struct packet *p)
{
	struct filter *f = stage;
	void **user = p->track ? input_user(&f->pump.in, p->track) : NULL;
	struct filter_lane *lane = user ? *user : NULL;
	enum err e;

	if (p->type == PACKET_TRACK)
		return take_track(f, p);
	/* Frames behind its END: it goes on as it was announced. */
	if (lane && !lane->is_open && (p->type == PACKET_DATA || p->type == PACKET_GAP) && (e = open_lane(f, input_track(&f->pump.in, p->track), user)))
		return e;
	if (lane && lane->is_open && p->type == PACKET_DATA)
		return f->ops->data(f, lane, p);
	if (lane && lane->is_open && p->type == PACKET_GAP)
		return f->ops->gap(f, lane, p);
	if (lane && p->type == PACKET_END && (e = close_lane(f, lane)))
		return e;
	return (e = settle(f)) ? e : pump_pass(&f->pump, p);
}

static enum err finish(void *stage)
{
	struct filter *f = stage;
	enum err e = settle(f);

	for (unsigned i = 0; i < f->n_lanes && !e; i++)
		e = close_lane(f, f->lanes[i]);
	return e;
}

/* ---- the module ---- */

void filter_check_usage(const struct filter *f, struct tool *t, int argc, char **argv)
{
	struct err_why why = { 0 };

	if (argc > 2)
		tool_usage(t, argv[2], "one input at most");
	if (select_check(&f->wanted, &why))
		tool_usage(t, why.thing, "%s", why.reason);
}

enum err filter_open(struct filter *f, struct tool *t, const struct filter_ops *ops, void *stage, int argc, char **argv,
	const struct input_options *options)
{
	f->tool = t;
	f->ops = ops;
	f->stage = stage;
	return pump_open(&f->pump, t, argc > 1 ? argv[1] : "-", options);
}

void filter_seed(struct filter *f, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	writer_seed(&f->pump.out, text, strlen(text) + 1);
	for (unsigned i = 0; i < f->wanted.n; i++)
		writer_seed(&f->pump.out, f->wanted.value[i], strlen(f->wanted.value[i]) + 1);
}

enum err filter_run(struct filter *f)
{
	char missing[128];
	enum err e = pump_run(&f->pump, take, finish, f);

	if ((!e || e == ERR_CUT) && select_missing(&f->hits, &f->wanted, missing))
		e = err_say(&f->pump.why, ERR_FORMAT, missing, "no such track in the input");
	return e;
}

void filter_close_pump(struct filter *f)
{
	pump_release(&f->pump);
}

void filter_release(struct filter *f)
{
	pump_release(&f->pump);
	for (unsigned i = 0; i < f->n_lanes; i++) {
		f->ops->release(f->lanes[i]);
		free(f->lanes[i]);
	}
	free(f->lanes);
	f->lanes = NULL;
	f->n_lanes = 0;
}
