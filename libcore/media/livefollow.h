/*
 * A device that plays what comes in real time from somewhere else: its clock is not the one that made the frames, so what
 * waits to be played grows or shrinks by some frames a second.  This keeps it where it was, by playing a little faster or
 * slower (drift.h, varirate.h); as long as nothing is to be corrected, frames go through bit for bit.
 *
 * Where the device paces the stream instead (a file, a fast pipe: whoever writes waits for room), there is nothing to
 * follow: livefollow_disturb() says so, and only when nothing has disturbed for QUIET_NS is what then waits measured for
 * MEASURE_NS, and kept from there on.
 *
 * Pure: time is an argument.  Nothing is allocated after livefollow_init().  Role: the one thread that writes.
 */
#ifndef MEDIA_LIVEFOLLOW_H
#define MEDIA_LIVEFOLLOW_H

#include "base/err.h"
#include "base/units.h"
#include "dsp/varirate.h"
#include "net/drift.h"
#include "rt/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define LIVEFOLLOW_QUIET_NS (2 * UNITS_NS_PER_S)
#define LIVEFOLLOW_MEASURE_NS (4 * UNITS_NS_PER_S)

enum livefollow_state { LIVEFOLLOW_DISTURBED, LIVEFOLLOW_MEASURES, LIVEFOLLOW_FOLLOWS };

struct livefollow {
	struct varirate v;
	struct drift drift;
	struct clock_fit line;    /* frames the device took, played or silent, and when */
	struct clock_fit arrivals; /* frames of the stream, and when they came */
	int64_t came_frames;
	uint32_t rate_hz;
	double ahead_frames;      /* what waits, as measured */
	enum livefollow_state state;
	int64_t since_ns;         /* of that state; 0 not yet known */
	int64_t last_taken_frames;
	int64_t strange_ns;       /* since when what waits is far from what it was; 0 it is not */
};

/* Role: control, allocates.  Returns: ERR_OK, ERR_ARG, ERR_NOMEM.  Zero is safe to release. */
enum err livefollow_init(struct livefollow *f, uint32_t rate_hz, unsigned channels) WEIR_MUSTUSE;
void livefollow_release(struct livefollow *f);

/* The device had taken so many frames in all at mono_ns. */
void livefollow_device(struct livefollow *f, int64_t taken_frames, int64_t mono_ns);
/* Whoever writes had to wait (device_paces: nothing is corrected), or the device to go without: what waits says nothing of the clocks. */
void livefollow_disturb(struct livefollow *f, bool device_paces, int64_t now_ns);
/* What waits became so many frames more at once (less: negative), counted exactly: played as silence, or skipped.  Says nothing of the clocks either. */
void livefollow_jumped(struct livefollow *f, int64_t by_frames);
/* n_frames of the stream come in now, and given_frames were handed to the device's ring before, silence that it played by itself included. */
void livefollow_arrive(struct livefollow *f, uint32_t n_frames, int64_t given_frames, int64_t now_ns);

/* As varirate_run(), at the ratio found. */
size_t livefollow_run(struct livefollow *f, float *dst, size_t n_out, const float *src, size_t n_in, size_t *n_used);
size_t livefollow_flush(struct livefollow *f, float *dst, size_t n_out);
static inline bool livefollow_is_exact(const struct livefollow *f)
{
	return varirate_is_exact(&f->v);
}
/* By how many parts in a million the stream's clock is faster than the device's, as found so far. */
double livefollow_ppm(const struct livefollow *f);

#endif
