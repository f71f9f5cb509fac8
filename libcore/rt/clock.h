/*
 * The clock that never steps (CLOCK_MONOTONIC), waiting for a moment of it, and the line through a device's timestamps.
 */
#ifndef RT_CLOCK_H
#define RT_CLOCK_H

#include "base/role.h"

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds.  Role: any. */
WEIR_DEADLINE int64_t clock_now_ns(void);

/* What must be added to CLOCK_MONOTONIC to get the wall clock, now.  Role: any. */
WEIR_DEADLINE int64_t clock_utc_offset_ns(void);

/*
 * A straight line through noisy pairs (position, time): a delay-locked loop of second order, critically damped, as
 * described by F. Adriaensen, "Using a DLL to filter time" (2005).  Its bandwidth goes from 1 Hz to 0.05 Hz in the
 * first seconds, so it catches on at once and is smooth later.
 */
struct clock_fit {
	bool started;
	double nominal_ns;        /* a frame lasts */
	double frame_ns;          /* as estimated */
	int64_t pos, begin_pos;   /* of the last pair; of the first */
	int64_t base_ns;          /* the line at pos is base_ns + frac_ns */
	double frac_ns;
	double jitter_ns;         /* how far pairs lie from the line, on average */
};

void clock_fit_init(struct clock_fit *f, uint32_t rate_hz);
/* Frame pos was there at mono_ns, more or less.  Returns: when it was by the line.  Never goes back.  Role: any. */
WEIR_DEADLINE int64_t clock_fit_at(struct clock_fit *f, int64_t pos, int64_t mono_ns);
/* The frame that was there at mono_ns by the line, however far from the last pair.  The line has begun.  Role: any. */
WEIR_DEADLINE double clock_fit_pos(const struct clock_fit *f, int64_t mono_ns);
/* By how many parts in a billion the device's seconds are longer than the clock's. */
WEIR_DEADLINE double clock_fit_ppb(const struct clock_fit *f);

/*
 * The wall clock, which somebody may set, as something that never jumps: what must be added to CLOCK_MONOTONIC follows what
 * is seen at 500 ppm at most, so a second of error is gone after 33 minutes.
 */
struct clock_utc {
	bool started;
	int64_t offset_ns, at_ns; /* as it was at that moment of CLOCK_MONOTONIC */
};
#define CLOCK_UTC_MAX_PPM 500

/* It is mono_ns (which does not go back) and seen_ns would be right.  Returns: what to add.  Role: any. */
WEIR_DEADLINE int64_t clock_utc_move(struct clock_utc *u, int64_t mono_ns, int64_t seen_ns);

#endif
