#ifdef WEIR_HAVE_PULSE
#include "media/pulseloop.h"

#include <stddef.h>
#include <stdlib.h>

static struct pulseloop *loop_of(pa_mainloop_api *api)
{
	return api->userdata;
}

/* ---- watches of descriptors: kept ---- */

static struct pulseloop_watch *watch_of(pa_io_event *event)
{
	return (struct pulseloop_watch *)(void *)event;
}

static pa_io_event *event_of(struct pulseloop_watch *w)
{
	return (pa_io_event *)(void *)w;
}

/* From a watch that is kept while nobody holds it nothing is wanted; when the other end hangs up something comes all the same. */
static void on_event(pa_mainloop_api *real, pa_io_event *event, int fd, pa_io_event_flags_t events, void *userdata)
{
	struct pulseloop_watch *w = userdata;

	if (w->in_use) {
		w->callback(&w->loop->api, event_of(w), fd, events, w->userdata);
		return;
	}
	real->io_free(event);
	w->event = NULL;
}

static pa_io_event *io_new(pa_mainloop_api *api, int fd, pa_io_event_flags_t events, pa_io_event_cb_t callback, void *userdata)
{
	struct pulseloop *p = loop_of(api);
	struct pulseloop_watch *w = NULL, *any = NULL;

	/* The one that was kept; else one that has no event, else one of a descriptor that is gone. */
	for (unsigned i = 0; i < PULSELOOP_WATCHES; i++) {
		struct pulseloop_watch *at = &p->watches[i];
		if (at->in_use)
			continue;
		if (at->event && at->fd == fd)
			w = at;
		else if (!any || !at->event)
			any = at;
	}
	if (w) {
		p->real->io_enable(w->event, events);
	} else {
		w = any ? any : calloc(1, sizeof(*w));
		if (!w)
			return NULL;
		w->is_spare = !any;
		if (w->event)
			p->real->io_free(w->event);
		w->loop = p;
		w->fd = fd;
		w->event = p->real->io_new(p->real, fd, events, on_event, w);
	}
	w->in_use = true;
	w->callback = callback;
	w->destroyed = NULL;
	w->userdata = userdata;
	return event_of(w);
}

static void io_enable(pa_io_event *event, pa_io_event_flags_t events)
{
	struct pulseloop_watch *w = watch_of(event);

	w->loop->real->io_enable(w->event, events);
}

static void io_free(pa_io_event *event)
{
	struct pulseloop_watch *w = watch_of(event);

	if (w->destroyed)
		w->destroyed(&w->loop->api, event, w->userdata);
	w->in_use = false;
	if (w->is_spare) {
		w->loop->real->io_free(w->event);
		free(w);
		return;
	}
	w->loop->real->io_enable(w->event, PA_IO_EVENT_NULL);
}

static void io_set_destroy(pa_io_event *event, pa_io_event_destroy_cb_t destroyed)
{
	watch_of(event)->destroyed = destroyed;
}

/* ---- timers: kept as well ---- */

static struct pulseloop_timer *timer_of(pa_time_event *event)
{
	return (struct pulseloop_timer *)(void *)event;
}

static void on_time(pa_mainloop_api *real, pa_time_event *event, const struct timeval *tv, void *userdata)
{
	struct pulseloop_timer *t = userdata;

	(void)real;
	(void)event;
	if (t->in_use)
		t->callback(&t->loop->api, (pa_time_event *)(void *)t, tv, t->userdata);
}

static pa_time_event *time_new(pa_mainloop_api *api, const struct timeval *tv, pa_time_event_cb_t callback, void *userdata)
{
	struct pulseloop *p = loop_of(api);
	struct pulseloop_timer *t = NULL;

	for (unsigned i = 0; i < PULSELOOP_TIMERS && !t; i++)
		t = p->timers[i].in_use ? NULL : &p->timers[i];
	bool is_spare = !t;
	if (is_spare && !(t = calloc(1, sizeof(*t))))
		return NULL;
	t->loop = p;
	t->is_spare = is_spare;
	t->in_use = true;
	t->callback = callback;
	t->destroyed = NULL;
	t->userdata = userdata;
	if (t->event)
		p->real->time_restart(t->event, tv);
	else
		t->event = p->real->time_new(p->real, tv, on_time, t);
	return (pa_time_event *)(void *)t;
}

static void time_restart(pa_time_event *event, const struct timeval *tv)
{
	struct pulseloop_timer *t = timer_of(event);

	t->loop->real->time_restart(t->event, tv);
}

static void time_free(pa_time_event *event)
{
	struct pulseloop_timer *t = timer_of(event);

	if (t->destroyed)
		t->destroyed(&t->loop->api, event, t->userdata);
	t->in_use = false;
	if (t->is_spare) {
		t->loop->real->time_free(t->event);
		free(t);
		return;
	}
	t->loop->real->time_restart(t->event, NULL);
}

static void time_set_destroy(pa_time_event *event, pa_time_event_destroy_cb_t destroyed)
{
	timer_of(event)->destroyed = destroyed;
}

/* ---- deferred calls: made once; they are passed on, since a callback must be given the loop that it knows ---- */

struct deferred {
	struct pulseloop *loop;
	pa_defer_event *event;
	pa_defer_event_cb_t callback;
	pa_defer_event_destroy_cb_t destroyed;
	void *userdata;
};

static struct deferred *deferred_of(pa_defer_event *event)
{
	return (struct deferred *)(void *)event;
}

static void on_defer(pa_mainloop_api *real, pa_defer_event *event, void *userdata)
{
	struct deferred *d = userdata;

	(void)real;
	(void)event;
	d->callback(&d->loop->api, (pa_defer_event *)(void *)d, d->userdata);
}

static pa_defer_event *defer_new(pa_mainloop_api *api, pa_defer_event_cb_t callback, void *userdata)
{
	struct pulseloop *p = loop_of(api);
	struct deferred *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	*d = (struct deferred){ .loop = p, .callback = callback, .userdata = userdata };
	d->event = p->real->defer_new(p->real, on_defer, d);
	return (pa_defer_event *)(void *)d;
}

static void defer_enable(pa_defer_event *event, int on)
{
	struct deferred *d = deferred_of(event);

	d->loop->real->defer_enable(d->event, on);
}

static void defer_free(pa_defer_event *event)
{
	struct deferred *d = deferred_of(event);

	if (d->destroyed)
		d->destroyed(&d->loop->api, event, d->userdata);
	d->loop->real->defer_free(d->event);
	free(d);
}

static void defer_set_destroy(pa_defer_event *event, pa_defer_event_destroy_cb_t destroyed)
{
	deferred_of(event)->destroyed = destroyed;
}

/* ---- the loop ---- */

static void quit(pa_mainloop_api *api, int value)
{
	struct pulseloop *p = loop_of(api);

	p->real->quit(p->real, value);
}

void pulseloop_init(struct pulseloop *p, pa_mainloop_api *real)
{
	*p = (struct pulseloop){ .real = real };
	p->api = (pa_mainloop_api){
		.userdata = p, .quit = quit,
		.io_new = io_new, .io_enable = io_enable, .io_free = io_free, .io_set_destroy = io_set_destroy,
		.time_new = time_new, .time_restart = time_restart, .time_free = time_free, .time_set_destroy = time_set_destroy,
		.defer_new = defer_new, .defer_enable = defer_enable, .defer_free = defer_free, .defer_set_destroy = defer_set_destroy,
	};
}
#else
typedef int pulseloop_is_not_built; /* an empty file is no C */
#endif
