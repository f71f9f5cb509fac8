#include "rt/clock.h"

#include "base/units.h"

#include <time.h>

#define FIRST_HZ 1.0
#define LAST_HZ 0.05
#define SETTLED_S 8.0
#define TWO_PI 6.283185307179586
#define SQRT_2 1.4142135623730951
#define JITTER_PAIRS 64.0 /* over so many it is averaged */
/* Off by more than this it is no jitter: the line begins anew. */
#define LOST_NS (UNITS_NS_PER_S / 4)
/* Off by more than this the device has changed its mind: the line moves there, and says nothing of its slope. */
#define MOVED_NS (UNITS_NS_PER_S / 100)
#define MOVED_PART 0.1

WEIR_DEADLINE int64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UNITS_NS_PER_S + t.tv_nsec;
}

WEIR_DEADLINE int64_t clock_utc_offset_ns(void)
{
	struct timespec t;

	/* The wall clock is read between two readings of the other, so that the middle is meant. */
	int64_t before_ns = clock_now_ns();
	clock_gettime(CLOCK_REALTIME, &t);
	int64_t after_ns = clock_now_ns();
	return t.tv_sec * UNITS_NS_PER_S + t.tv_nsec - (before_ns + (after_ns - before_ns) / 2);
}

void clock_fit_init(struct clock_fit *f, uint32_t rate_hz)
{
	*f = (struct clock_fit){ .nominal_ns = (double)UNITS_NS_PER_S / rate_hz, .frame_ns = (double)UNITS_NS_PER_S / rate_hz };
}

WEIR_DEADLINE int64_t clock_fit_at(struct clock_fit *f, int64_t pos, int64_t mono_ns)
{
	double step_s, seen_s, hz, error_ns;
	int64_t n = pos - f->pos;

	if (!f->started) {
		f->started = true;
		f->pos = f->begin_pos = pos;
		f->base_ns = mono_ns;
		f->frac_ns = 0;
		return mono_ns;
	}
	if (n <= 0)
		return f->base_ns;
	double ahead_ns = f->frac_ns + (double)n * f->frame_ns;
	int64_t whole_ns = (int64_t)ahead_ns;

	error_ns = (double)(mono_ns - f->base_ns) - ahead_ns;
	f->base_ns += whole_ns;
	f->frac_ns = ahead_ns - (double)whole_ns;
	f->pos = pos;
	if (error_ns > (double)LOST_NS || error_ns < -(double)LOST_NS) {
		/* Time does not go back: a line that is too early jumps, one that is too late waits. */
		if (error_ns > 0) {
			f->base_ns = mono_ns;
			f->frac_ns = 0;
		}
		f->frame_ns = f->nominal_ns;
		f->begin_pos = pos;
		return f->base_ns;
	}
	step_s = (double)n * f->nominal_ns / (double)UNITS_NS_PER_S;
	seen_s = (double)(pos - f->begin_pos) * f->nominal_ns / (double)UNITS_NS_PER_S;
	hz = seen_s >= SETTLED_S ? LAST_HZ : FIRST_HZ + (LAST_HZ - FIRST_HZ) * seen_s / SETTLED_S;
	double w = TWO_PI * hz * step_s;
	if (w > 0.5)
		w = 0.5;
	bool is_jitter = error_ns < (double)MOVED_NS && error_ns > -(double)MOVED_NS;
	double part = is_jitter || SQRT_2 * w > MOVED_PART ? SQRT_2 * w : MOVED_PART;
	double moved_ns = part * error_ns;
	/* A correction backwards never outruns the step forwards. */
	if (moved_ns < -0.5 * (double)n * f->nominal_ns)
		moved_ns = -0.5 * (double)n * f->nominal_ns;
	f->frac_ns += moved_ns;
	if (is_jitter)
		f->frame_ns += w * w * error_ns / (double)n;
	f->jitter_ns += ((error_ns < 0 ? -error_ns : error_ns) - f->jitter_ns) / JITTER_PAIRS;
	/* No device is off by more than 1 %. */
	if (f->frame_ns > 1.01 * f->nominal_ns)
		f->frame_ns = 1.01 * f->nominal_ns;
	if (f->frame_ns < 0.99 * f->nominal_ns)
		f->frame_ns = 0.99 * f->nominal_ns;
	return f->base_ns + (int64_t)f->frac_ns;
}

WEIR_DEADLINE double clock_fit_ppb(const struct clock_fit *f)
{
	return (f->frame_ns / f->nominal_ns - 1.0) * (double)UNITS_NS_PER_S;
}

WEIR_DEADLINE double clock_fit_pos(const struct clock_fit *f, int64_t mono_ns)
{
	return (double)f->pos + ((double)(mono_ns - f->base_ns) - f->frac_ns) / f->frame_ns;
}

WEIR_DEADLINE int64_t clock_utc_move(struct clock_utc *u, int64_t mono_ns, int64_t seen_ns)
{
	if (!u->started) {
		*u = (struct clock_utc){ .started = true, .offset_ns = seen_ns, .at_ns = mono_ns };
		return seen_ns;
	}
	int64_t room_ns = (mono_ns - u->at_ns) / (1000000 / CLOCK_UTC_MAX_PPM), way_ns = seen_ns - u->offset_ns;

	/* Less than a step of the slowest kind is saved up for the next call. */
	if (room_ns <= 0)
		return u->offset_ns;
	u->offset_ns += way_ns > room_ns ? room_ns : way_ns < -room_ns ? -room_ns : way_ns;
	u->at_ns = mono_ns;
	return u->offset_ns;
}
