/*
 * PulseAudio's main loop without its allocations.  While it reads, libpulse removes the watch of its socket and makes a new one,
 * for each message: a calloc and a free a block of audio, on the thread of the callbacks; and a timer for each question.  This
 * stands in front of the loop and keeps both for the next time instead, so that a running stream takes no memory.
 *
 * The library holds our watches and timers where it thinks of the loop's events: to it they are opaque.
 */
#ifndef MEDIA_PULSELOOP_H
#define MEDIA_PULSELOOP_H

#ifdef WEIR_HAVE_PULSE
#include <pulse/mainloop-api.h>
#include <stdbool.h>

#define PULSELOOP_WATCHES 8u
#define PULSELOOP_TIMERS 8u

struct pulseloop;
/* One file descriptor that the real loop watches. */
struct pulseloop_watch {
	struct pulseloop *loop;
	pa_io_event *event;       /* the real loop's; NULL: none */
	int fd;
	bool in_use;              /* the library holds it */
	bool is_spare;            /* on the heap, since all were in use */
	pa_io_event_cb_t callback;
	pa_io_event_destroy_cb_t destroyed;
	void *userdata;
};

struct pulseloop_timer {
	struct pulseloop *loop;
	pa_time_event *event;
	bool in_use, is_spare;
	pa_time_event_cb_t callback;
	pa_time_event_destroy_cb_t destroyed;
	void *userdata;
};

struct pulseloop {
	pa_mainloop_api api;      /* for pa_context_new() */
	pa_mainloop_api *real;
	struct pulseloop_watch watches[PULSELOOP_WATCHES];
	struct pulseloop_timer timers[PULSELOOP_TIMERS];
};

/* In front of `real`; both stay where they are until the real loop is freed.  Role: control. */
void pulseloop_init(struct pulseloop *p, pa_mainloop_api *real);
#endif

#endif
