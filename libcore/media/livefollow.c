#include "media/livefollow.h"

#include <math.h>

/*
 * A cycle of a sound server that is late moves both lines, and not both at once: for a moment what waits seems to have
 * jumped.  Crystals do nothing of the kind, and a loop that believed it would bend the sound by hundreds of ppm.
 */
#define STRANGE_S 0.0005
#define STRANGE_NS (2 * UNITS_NS_PER_S)
#define FAST_HZ 0.1
#define FAST_NS (20 * UNITS_NS_PER_S)

enum err livefollow_init(struct livefollow *f, uint32_t rate_hz, unsigned channels)
{
	*f = (struct livefollow){ .state = LIVEFOLLOW_DISTURBED };
	f->rate_hz = rate_hz;
	clock_fit_init(&f->line, rate_hz);
	clock_fit_init(&f->arrivals, rate_hz);
	drift_init(&f->drift, rate_hz, 0);
	f->drift.fast_hz = FAST_HZ;
	f->drift.fast_ns = FAST_NS;
	return varirate_init(&f->v, channels);
}

void livefollow_release(struct livefollow *f)
{
	varirate_release(&f->v);
}

void livefollow_device(struct livefollow *f, int64_t taken_frames, int64_t mono_ns)
{
	if (f->line.started && taken_frames <= f->last_taken_frames)
		return;
	f->last_taken_frames = taken_frames;
	(void)clock_fit_at(&f->line, taken_frames, mono_ns);
}

void livefollow_disturb(struct livefollow *f, bool device_paces, int64_t now_ns)
{
	/* What the loop adds to the drift found belongs to the moment. */
	if (device_paces || f->state == LIVEFOLLOW_FOLLOWS)
		varirate_set_ppm(&f->v, device_paces || drift_ratio(&f->drift) == 1.0 ? 0 : drift_ppm(&f->drift));
	f->state = LIVEFOLLOW_DISTURBED;
	f->since_ns = now_ns;
	clock_fit_init(&f->arrivals, f->rate_hz);
}

void livefollow_jumped(struct livefollow *f, int64_t by_frames)
{
	f->ahead_frames += (double)by_frames;
	if (f->state != LIVEFOLLOW_FOLLOWS)
		return;
	drift_jumped(&f->drift, (double)by_frames);
	drift_aim(&f->drift, f->drift.aim_frames + (double)by_frames); /* and there it may stay */
}

/* Is what waits to be believed? */
static bool is_strange(struct livefollow *f, double ahead, int64_t now_ns)
{
	double off = ahead - f->drift.set_frames - f->drift.owed_frames;

	if (fabs(off) <= STRANGE_S * f->rate_hz) {
		f->strange_ns = 0;
		return false;
	}
	if (!f->strange_ns)
		f->strange_ns = now_ns;
	return now_ns - f->strange_ns < STRANGE_NS;
}

void livefollow_arrive(struct livefollow *f, uint32_t n_frames, int64_t given_frames, int64_t now_ns)
{
	/* Packets are late now and then; the line through them is when they should have come. */
	int64_t came_ns = clock_fit_at(&f->arrivals, f->came_frames, now_ns);

	f->came_frames += n_frames;
	if (!f->line.started || !f->since_ns) {
		f->since_ns = now_ns;
		return;
	}
	double ahead = (double)given_frames + varirate_behind_frames(&f->v) - clock_fit_pos(&f->line, came_ns);

	if (f->state == LIVEFOLLOW_DISTURBED && now_ns - f->since_ns >= LIVEFOLLOW_QUIET_NS) {
		f->state = LIVEFOLLOW_MEASURES;
		f->since_ns = now_ns;
		f->ahead_frames = ahead;
	} else if (f->state == LIVEFOLLOW_MEASURES) {
		f->ahead_frames += (ahead - f->ahead_frames) / 64;
		if (now_ns - f->since_ns < LIVEFOLLOW_MEASURE_NS)
			return;
		f->state = LIVEFOLLOW_FOLLOWS;
		drift_restart(&f->drift, f->ahead_frames, now_ns);
	}
	if (f->state == LIVEFOLLOW_FOLLOWS && !is_strange(f, ahead, now_ns))
		(void)drift_observe(&f->drift, ahead, came_ns);
}

size_t livefollow_run(struct livefollow *f, float *dst, size_t n_out, const float *src, size_t n_in, size_t *n_used)
{
	/* While nothing is known the drift found before goes on. */
	if (f->state == LIVEFOLLOW_FOLLOWS)
		varirate_set_ppm(&f->v, (drift_ratio(&f->drift) - 1.0) * 1e6);
	return varirate_run(&f->v, dst, n_out, src, n_in, n_used);
}

size_t livefollow_flush(struct livefollow *f, float *dst, size_t n_out)
{
	return varirate_flush(&f->v, dst, n_out);
}

double livefollow_ppm(const struct livefollow *f)
{
	return drift_ppm(&f->drift);
}
