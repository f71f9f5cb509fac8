#include "net/jitterdepth.h"

#include "base/units.h"
#include "net/jitterline.h"

#include <math.h>
#include <string.h>

#define HALF_NS (UNITS_NS_PER_S / 2)
#define FORGET 0.983         /* of the histogram in half a second: 29 s */
#define ATTACK 0.5           /* of the reference, a window */
#define LEAK 0.05
#define HYSTERESIS_S 0.001   /* the depth goes down for more than this only */
#define STEP_S 0.002         /* it goes up at once for more than this, if something was late */
#define FAR_WINDOWS 5u
#define TOUCH_NS (UNITS_NS_PER_S / 4) /* every packet late for so long: the path has changed */
#define TOUCH_PACKETS 8u
#define LEAST_TOUCH_NS (UNITS_NS_PER_S / 50)
#define TOUCH_DEPTHS 4

/* The delay excess that is not exceeded in a half second but with the probability that the budget grants. */
static double quantile_s(const struct jitter *j)
{
	double grant = j->o.glitches / 120, above = 0;

	if (grant > 0.9)
		grant = 0.9;
	for (unsigned i = JITTER_N_BINS; i-- > 0;) {
		if (above + j->bins[i] > grant)
			return (i + 1 - (grant - above) / j->bins[i]) * JITTER_BIN_S;
		above += j->bins[i];
	}
	return 0;
}

static double target_of(const struct jitter *j)
{
	double target = jitterline_frames(j, quantile_s(j) + JITTER_MARGIN_S) + j->o.block_frames;
	double room = 0.8 * j->o.n_slots * j->usual_frames;

	return target < room ? target : room;
}

/* Towards the target: down by the ratio, and not for little; up by the ratio, or at once if it is high time. */
static void aim(struct jitter *j, int64_t now_ns)
{
	double set = j->drift.set_frames, way = j->target_frames - set;

	if (j->o.latency_ns)
		return;
	if (way > 0 && way > jitterline_frames(j, STEP_S) && (j->counts.late || j->counts.late_copies) && now_ns - j->last_late_ns <= HALF_NS && !j->place) {
		uint32_t frames = (uint32_t)ceil(way);
		j->hold_frames += j->o.pass ? 0 : frames;
		jitterline_shift(j, frames);
		drift_aim(&j->drift, j->drift.set_frames);
	} else if (way > 0 || way < -jitterline_frames(j, HYSTERESIS_S)) {
		drift_aim(&j->drift, j->target_frames);
	}
}

static void end_half(struct jitter *j, int64_t now_ns)
{
	double forget = ++j->n_halves > 59 ? FORGET : 1 - 1.0 / (double)j->n_halves;
	double bin = j->worst_frames / jitterline_frames(j, JITTER_BIN_S);
	unsigned at = bin < 0 ? 0 : bin < JITTER_N_BINS ? (unsigned)bin : JITTER_N_BINS - 1;

	if (forget > FORGET)
		forget = FORGET;
	for (unsigned i = 0; i < JITTER_N_BINS; i++)
		j->bins[i] *= (float)forget;
	j->bins[at] += (float)(1 - forget);
	j->target_frames = target_of(j);
	aim(j, now_ns);
}

static void measure(struct jitter *j, double slack, int64_t arrival_ns)
{
	if (!j->in_half) {
		j->in_half = true;
		j->half_begin_ns = arrival_ns;
		j->worst_frames = 0;
	}
	if (j->reference_frames - slack > j->worst_frames)
		j->worst_frames = j->reference_frames - slack;
	if (arrival_ns - j->half_begin_ns >= HALF_NS) {
		end_half(j, arrival_ns);
		j->in_half = false;
	}
}

double jitterdepth_first(const struct jitter *j)
{
	if (j->o.latency_ns)
		return jitterline_ns_frames(j, j->o.latency_ns);
	return j->n_halves ? j->target_frames : jitterline_frames(j, JITTER_COLD_S) + j->o.block_frames;
}

/* What came in the first moments says how deep it must be: leap there, if it is far. */
static void settle(struct jitter *j, int64_t now_ns)
{
	double envelope = j->collect_frames;

	j->state = JITTER_RUNNING;
	j->reference_frames = envelope;
	if (!j->in_half || j->worst_frames < 0)
		j->worst_frames = 0;
	if (!j->n_halves) /* its first window is what was collected */
		end_half(j, now_ns);
	j->in_half = false;
	drift_restart(&j->drift, envelope, now_ns);
	double by = (j->o.latency_ns ? jitterline_ns_frames(j, j->o.latency_ns) : j->target_frames) - envelope;
	/* The first packet was slower than the fastest: a little more latency than was asked for is no reason to cut the sound. */
	if (j->o.latency_ns && -by <= fmax(jitterline_frames(j, STEP_S), (envelope + by) / 4))
		return;
	if (fabs(by) < jitterline_frames(j, HYSTERESIS_S) && by < 0)
		return;
	if (j->o.pass || fabs(by) >= jitterline_frames(j, HYSTERESIS_S)) {
		by = round(by);
		jitterline_shift(j, by);
		drift_aim(&j->drift, j->drift.set_frames);
		if (!j->o.pass) {
			j->counts.jumps++;
			j->place = true;
			j->hold_frames = 0;
		}
	} else {
		drift_aim(&j->drift, j->target_frames);
	}
}

/* After each packet of a running timeline: is it lost beyond what the ratio can mend? */
static bool lost_touch(struct jitter *j, const struct jitter_packet *p, bool new_window)
{
	if (new_window)
		j->far_windows = fabs(j->drift.envelope_frames - j->drift.set_frames) > jitterline_frames(j, JITTERDEPTH_FAR_S) ? j->far_windows + 1 : 0;
	/* A fixed depth does not grow by itself meanwhile: what is late stays late. */
	int64_t touch_ns = j->o.latency_ns ? j->o.latency_ns * TOUCH_DEPTHS + LEAST_TOUCH_NS : TOUCH_NS;
	if (touch_ns > TOUCH_NS)
		touch_ns = TOUCH_NS;
	return j->far_windows >= FAR_WINDOWS || (j->late_run >= TOUCH_PACKETS && p->arrival_ns - j->late_since_ns > touch_ns);
}

static void collect(struct jitter *j, double slack, int64_t arrival_ns)
{
	if (slack > j->collect_frames) {
		/* measured against the fastest so far: what was slow against an older one was slower still */
		j->worst_frames += slack - j->collect_frames;
		j->collect_frames = j->reference_frames = slack;
	}
	if (j->collect_frames - slack > j->worst_frames)
		j->worst_frames = j->collect_frames - slack;
	if (!j->in_half)
		j->worst_frames = 0;
	j->in_half = true;
	if (arrival_ns - j->begin_ns >= (int64_t)(JITTER_COLLECT_S * UNITS_NS_PER_S))
		settle(j, arrival_ns);
}

bool jitterdepth_observe(struct jitter *j, const struct jitter_packet *p, double slack)
{
	if (j->state == JITTER_COLLECTING) {
		collect(j, slack, p->arrival_ns);
		return false;
	}
	bool window = drift_observe(&j->drift, slack, p->arrival_ns);
	if (window) {
		double d = j->drift.envelope_frames - j->reference_frames;
		j->reference_frames += d > 0 ? ATTACK * d : LEAK * d;
	}
	measure(j, slack, p->arrival_ns);
	return lost_touch(j, p, window);
}
