#include "net/drift.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

#define PPM 1e-6
#define FAST_HZ 0.5          /* the loop's bandwidth in its first seconds */
#define FAST_NS (8 * UNITS_NS_PER_S)
#define SLOW_HZ 0.02
#define MAX_TURN 0.05        /* bandwidth times window: beyond it the loop would overshoot */
#define UNLEARN 0.95
#define OUTSIDE_S 0.002      /* an error beyond this is a jump of the path, not drift */

void drift_init(struct drift *d, uint32_t rate_hz, double set_frames)
{
	memset(d, 0, sizeof(*d));
	d->rate_hz = rate_hz;
	d->fast_hz = FAST_HZ;
	d->fast_ns = FAST_NS;
	d->set_frames = d->aim_frames = d->envelope_frames = set_frames;
}

static double limited(double x, double limit)
{
	return x > limit ? limit : x < -limit ? -limit : x;
}

/* What the player did with the ratio it was told, up to now: the set point and the debt move by exactly that. */
static void advance(struct drift *d, int64_t now_ns)
{
	double dt_s = (double)(now_ns - d->last_ns) / UNITS_NS_PER_S;

	if (now_ns <= d->last_ns)
		return;
	d->last_ns = now_ns;
	if (d->u_set != 0)
		d->set_frames -= d->u_set * d->rate_hz * dt_s;
	if (!d->open)
		d->owed_frames += d->u * d->rate_hz * dt_s;

	double way = d->aim_frames - d->set_frames;
	if (d->u_set > 0 ? way < -0.5 : d->u_set < 0 ? way > 0.5 : fabs(way) > 1.0)
		d->u_set = way > 0 ? -DRIFT_SET_PPM * PPM : DRIFT_SET_PPM * PPM;
	else
		d->u_set = 0;
}

/* A proportional and integral step for a window of span_s. */
static void turn(struct drift *d, double span_s, int64_t now_ns)
{
	double error = d->envelope_frames - d->owed_frames - d->set_frames;
	double band_hz = now_ns - d->start_ns < d->fast_ns ? d->fast_hz : SLOW_HZ;
	double out;

	if (band_hz * span_s > MAX_TURN)
		band_hz = MAX_TURN / span_s;
	double w = 2 * M_PI * band_hz;
	if (fabs(error) > OUTSIDE_S * d->rate_hz) {
		/* Further away each time, though led back: then the drift that was found is none. */
		if (d->outside_windows++ && fabs(error) > fabs(d->outside_frames))
			d->integral *= UNLEARN;
		d->outside_frames = error;
		out = d->integral + (error > 0 ? DRIFT_MAX_PPM : -DRIFT_MAX_PPM) * PPM;
	} else {
		d->outside_windows = 0;
		d->integral = limited(d->integral + w * w / d->rate_hz * error * span_s, DRIFT_MAX_RATIO);
		out = d->integral + limited(2 * w / d->rate_hz * error, DRIFT_MAX_PPM * PPM);
	}
	d->u = 0.5 * (d->u + out);
	if (!d->open && fabs(d->owed_frames) > DRIFT_GATE_S * d->rate_hz) {
		d->open = true; /* the debt becomes a part of the way that the set point has to go */
		d->set_frames += d->owed_frames;
		d->owed_frames = 0;
	}
}

bool drift_observe(struct drift *d, double slack_frames, int64_t now_ns)
{
	if (!d->started) {
		d->started = true;
		d->start_ns = d->last_ns = now_ns;
	}
	advance(d, now_ns);
	if (!d->in_window) {
		d->in_window = true;
		d->window_begin_ns = now_ns;
		d->window_max_frames = slack_frames;
		d->window_slacks = 1;
		return false;
	}
	if (slack_frames > d->window_max_frames)
		d->window_max_frames = slack_frames;
	d->window_slacks++;
	int64_t span_ns = now_ns - d->window_begin_ns;
	if (span_ns < DRIFT_WINDOW_NS || d->window_slacks < DRIFT_WINDOW_SLACKS)
		return false;

	d->envelope_frames = d->window_max_frames;
	d->in_window = false;
	d->n_windows++;
	turn(d, (double)span_ns / UNITS_NS_PER_S, now_ns);
	return true;
}

double drift_ratio(const struct drift *d)
{
	return 1.0 + limited((d->open ? d->u : 0) + d->u_set, DRIFT_MAX_RATIO);
}

double drift_ppm(const struct drift *d)
{
	return d->integral / PPM;
}

void drift_aim(struct drift *d, double set_frames)
{
	d->aim_frames = set_frames;
}

void drift_jumped(struct drift *d, double by_frames)
{
	d->set_frames += by_frames;
	d->envelope_frames += by_frames;
	d->window_max_frames += by_frames;
}

void drift_restart(struct drift *d, double set_frames, int64_t now_ns)
{
	d->set_frames = d->aim_frames = d->envelope_frames = set_frames;
	d->owed_frames = d->u_set = 0;
	d->u = d->integral;
	d->in_window = false;
	d->outside_windows = 0;
	d->started = true;
	d->start_ns = d->last_ns = now_ns;
}
