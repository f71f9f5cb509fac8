#include "net/jitterline.h"

#include "base/units.h"

#include <math.h>

double jitterline_frames(const struct jitter *j, double seconds)
{
	return seconds * j->o.rate_hz;
}

double jitterline_ns_frames(const struct jitter *j, int64_t ns)
{
	return (double)ns * j->o.rate_hz / UNITS_NS_PER_S;
}

double jitterline_ahead(const struct jitter *j, int64_t pos, int64_t t_ns)
{
	return (double)(pos - j->play_pos) - j->play_frac - jitterline_ns_frames(j, t_ns - j->play_ns) * drift_ratio(&j->drift);
}

void jitterline_play_at(struct jitter *j, int64_t pos, double frac, int64_t t_ns)
{
	double whole = floor(frac);

	j->play_pos = pos + (int64_t)whole;
	j->play_frac = frac - whole;
	j->play_ns = t_ns;
}

void jitterline_shift(struct jitter *j, double by_frames)
{
	jitterline_play_at(j, j->play_pos, j->play_frac - by_frames, j->play_ns);
	drift_jumped(&j->drift, by_frames);
	j->reference_frames += by_frames;
}
