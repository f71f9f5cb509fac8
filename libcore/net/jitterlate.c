#include "net/jitterlate.h"

#include "base/units.h"
#include "net/jitterline.h"
#include "net/jitterslots.h"

#define GLITCH_NS (UNITS_NS_PER_S / 10)

void jitterlate_missed(struct jitter *j, int64_t pos, uint32_t frames)
{
	struct jitter_miss *last = &j->misses[(j->n_misses + JITTER_N_MISSES - 1) % JITTER_N_MISSES];

	j->counts.lost_frames += frames;
	if (j->n_misses && last->end_pos == pos) {
		last->end_pos += frames;
		return;
	}
	j->misses[j->n_misses % JITTER_N_MISSES] = (struct jitter_miss){ pos, pos + frames };
	j->n_misses++;
}

bool jitterlate_was_missing(const struct jitter *j, int64_t pos, uint32_t frames)
{
	uint32_t n = j->n_misses < JITTER_N_MISSES ? j->n_misses : JITTER_N_MISSES;

	for (uint32_t i = 1; i <= n; i++) {
		const struct jitter_miss *m = &j->misses[(j->n_misses - i) % JITTER_N_MISSES];
		if (pos < m->end_pos && pos + frames > m->pos)
			return true;
	}
	return false;
}

void jitterlate_came(struct jitter *j, int64_t arrival_ns)
{
	j->counts.late++;
	if (!j->late_run++)
		j->late_since_ns = arrival_ns;
	if (!j->glitch_ns || arrival_ns - j->glitch_ns > GLITCH_NS)
		j->counts.glitches++;
	j->glitch_ns = j->last_late_ns = arrival_ns;
}

void jitterlate_repaired(struct jitter *j, const struct jitter_packet *p, double slack)
{
	bool is_late = p->pos < j->next_pos;
	double excess = j->reference_frames - slack;

	if (is_late ? j->untouched || !jitterlate_was_missing(j, p->pos, p->dur_frames) : jitterslots_has(j, p->pos))
		return;
	if (excess > jitterline_frames(j, JITTER_REPAIR_S))
		return;
	if (is_late) {
		j->counts.late_copies++;
		j->last_late_ns = p->arrival_ns;
	}
	if (j->in_half && excess > j->worst_frames)
		j->worst_frames = excess;
}
