#include "net/jitter.h"

#include "base/units.h"
#include "net/jitterdepth.h"
#include "net/jitterlate.h"
#include "net/jitterline.h"
#include "net/jitterslots.h"

#include <math.h>
#include <string.h>

size_t jitter_bytes(const struct jitter_options *o)
{
	if (o->n_slots < 4 || o->n_slots > JITTER_MAX_SLOTS || !o->slot_bytes || o->slot_bytes > JITTER_MAX_SLOT_BYTES)
		return 0;
	return o->n_slots * sizeof(struct jitter_slot) + jitterslots_align(2 * o->n_slots * sizeof(uint16_t)) + o->n_slots * jitterslots_align(o->slot_bytes);
}

enum err jitter_init(struct jitter *j, const struct jitter_options *o, void *memory, struct err_why *why)
{
	uint8_t *at = memory;

	if (!jitter_bytes(o))
		return err_say(why, ERR_ARG, "jitter buffer", "%u slots of %u bytes: 4…%u of 1…%u", o->n_slots, o->slot_bytes, JITTER_MAX_SLOTS,
			JITTER_MAX_SLOT_BYTES);
	if (o->rate_hz < 1000 || o->rate_hz > 1000000)
		return err_say(why, ERR_ARG, "jitter buffer", "rate %u Hz: 1000…1000000", o->rate_hz);
	if (!(o->glitches > 0 && o->glitches <= 60) || o->latency_ns < 0 || o->latency_ns > 10 * UNITS_NS_PER_S)
		return err_say(why, ERR_ARG, "jitter buffer", "a budget of up to 60 glitches a minute, a latency of up to 10 s");
	memset(j, 0, sizeof(*j));
	j->o = *o;
	j->slots = (struct jitter_slot *)at;
	at += o->n_slots * sizeof(struct jitter_slot);
	j->order = (uint16_t *)at;
	j->spare = j->order + o->n_slots;
	at += jitterslots_align(2 * o->n_slots * sizeof(uint16_t));
	j->bytes = at;
	drift_init(&j->drift, o->rate_hz, 0);
	j->usual_frames = o->rate_hz / 200;
	jitter_restart(j, true);
	return ERR_OK;
}

/* ---- beginnings ---- */

void jitter_restart(struct jitter *j, bool cold)
{
	jitterslots_drop_all(j);
	j->state = JITTER_IDLE;
	j->place = j->has_stray = j->ended = j->in_half = false;
	j->jump = true;
	j->hold_frames = 0;
	j->n_misses = 0;
	j->last_arrival_ns = 0;
	if (cold) {
		memset(j->bins, 0, sizeof(j->bins));
		j->n_halves = 0;
		drift_init(&j->drift, j->o.rate_hz, 0);
	}
}

/* The packet is the first of a timeline: played its depth after it came, as if it had been the fastest. */
static void begin(struct jitter *j, const struct jitter_packet *p)
{
	double depth = jitterdepth_first(j);

	j->counts.restarts += j->counts.received > 1;
	jitterslots_drop_all(j);
	j->state = JITTER_COLLECTING;
	j->next_pos = j->newest_pos = p->pos;
	j->begin_ns = p->arrival_ns;
	j->late_run = 0;
	j->reference_frames = j->collect_frames = depth;
	j->hold_frames = 0;
	j->n_misses = j->far_windows = 0;
	j->in_half = j->has_stray = j->ended = false;
	j->place = j->jump = j->untouched = true;
	jitterline_play_at(j, p->pos, -depth, p->arrival_ns);
	drift_restart(&j->drift, depth, p->arrival_ns);
}

/* Is p where this timeline has its packets?  A single one that is not is no reason to leave it. */
static bool is_stray(struct jitter *j, const struct jitter_packet *p, double slack)
{
	double limit = jitterline_frames(j, JITTER_GAP_S);

	if (fabs(slack - j->drift.set_frames) <= limit) {
		j->has_stray = false;
		return false;
	}
	double agrees = j->has_stray ? (double)(p->pos - j->stray_pos) - jitterline_ns_frames(j, p->arrival_ns - j->stray_ns) : limit;
	bool believed = fabs(agrees) < jitterline_frames(j, 0.5) && p->pos != j->stray_pos;
	j->has_stray = !believed;
	j->stray_pos = p->pos;
	j->stray_ns = p->arrival_ns;
	return true;
}

static enum jitter_put put_first(struct jitter *j, const struct jitter_packet *p)
{
	/* After a pause the timeline may have gone on: then so does the playing. */
	bool known = j->drift.started && j->last_arrival_ns && !(p->flags & JITTER_DISCONT);
	double slack = known ? jitterline_ahead(j, p->pos, p->arrival_ns) : 0;

	if (known && p->pos >= j->next_pos && fabs(slack - j->drift.set_frames) < jitterline_frames(j, JITTERDEPTH_FAR_S) / 4) {
		j->state = JITTER_RUNNING;
		j->place = j->jump = true;
		j->next_pos = j->newest_pos = p->pos;
		j->late_run = 0;
	} else {
		begin(j, p);
	}
	j->last_arrival_ns = p->arrival_ns;
	enum jitter_put put = jitterslots_store(j, p);
	return put == JITTER_STORED ? JITTER_BEGUN : put;
}

/* ---- in ---- */

/* A packet before the first, that was overtaken by it and is not too late. */
static bool precedes_all(struct jitter *j, const struct jitter_packet *p, double slack)
{
	if (!j->untouched || p->pos >= j->next_pos || slack < 0)
		return false;
	int64_t by = j->next_pos - p->pos;
	if (!j->place && by > j->hold_frames)
		return false;
	if (!j->place)
		j->hold_frames -= (uint32_t)by;
	j->next_pos = p->pos;
	return true;
}

enum jitter_put jitter_put(struct jitter *j, const struct jitter_packet *p)
{
	bool copy = p->flags & JITTER_COPY;

	jitterslots_give_back(j);
	j->counts.received += !copy;
	if (p->n_bytes > j->o.slot_bytes || !p->dur_frames || p->dur_frames > jitterline_frames(j, JITTER_GAP_S)) {
		j->counts.stray++;
		return JITTER_STRAY;
	}
	if (j->state == JITTER_IDLE || (p->flags & JITTER_DISCONT && !copy && p->pos != j->newest_pos)) {
		if (copy)
			return JITTER_STRAY; /* what it is a copy of was before the beginning */
		j->usual_frames = p->dur_frames;
		return put_first(j, p);
	}

	double slack = jitterline_ahead(j, p->pos, p->arrival_ns);
	if (copy ? fabs(slack - j->drift.set_frames) > jitterline_frames(j, JITTER_GAP_S) : is_stray(j, p, slack)) {
		if (copy || j->has_stray) {
			j->counts.stray += !copy;
			return JITTER_STRAY;
		}
		begin(j, p);
		j->last_arrival_ns = p->arrival_ns;
		return jitterslots_store(j, p) == JITTER_STORED ? JITTER_BEGUN : JITTER_FULL;
	}
	if (!copy) {
		j->usual_frames = p->dur_frames;
		j->last_arrival_ns = p->arrival_ns;
		if (j->o.pass) /* it plays by itself */
			jitterline_play_at(j, p->pos, -slack, p->arrival_ns);
		if (jitterdepth_observe(j, p, slack)) {
			begin(j, p);
			return jitterslots_store(j, p) == JITTER_STORED ? JITTER_BEGUN : JITTER_FULL;
		}
	}
	if (copy)
		jitterlate_repaired(j, p, slack);
	if (p->pos >= j->next_pos || precedes_all(j, p, slack)) {
		j->late_run = 0;
		return jitterslots_store(j, p);
	}
	if (p->pos + p->dur_frames > j->next_pos && !j->untouched && jitterlate_was_missing(j, p->pos, p->dur_frames)) {
		if (!copy)
			jitterlate_came(j, p->arrival_ns); /* but its end is still wanted */
		return jitterslots_store(j, p);
	}
	if (!copy && jitterlate_was_missing(j, p->pos, p->dur_frames)) {
		jitterlate_came(j, p->arrival_ns);
		return JITTER_LATE;
	}
	if (!copy && j->untouched) /* before the beginning, and too late for it */
		return JITTER_LATE;
	j->counts.duplicate += !copy;
	return JITTER_DUPLICATE;
}

/* ---- out, played ---- */

static void skip_to(struct jitter *j, int64_t pos)
{
	while (j->n_held && jitterslots_held(j, 0)->pos + jitterslots_held(j, 0)->dur_frames <= pos) {
		j->counts.skipped_frames += jitterslots_held(j, 0)->dur_frames;
		jitterslots_drop_first(j);
	}
	if (j->n_held && jitterslots_held(j, 0)->pos < pos)
		j->counts.skipped_frames += (uint64_t)(pos - jitterslots_held(j, 0)->pos);
	j->next_pos = pos;
	j->jump = true;
}

void jitter_played(struct jitter *j, int64_t device_ns, double held_frames)
{
	if (j->state == JITTER_IDLE)
		return;
	if (j->n_held == 0 && device_ns - j->last_arrival_ns > (int64_t)(JITTER_GAP_S * UNITS_NS_PER_S)) {
		/* a pause: from here on the played position runs by itself, in case the sender's does too */
		j->state = JITTER_IDLE;
		j->hold_frames = 0;
		return;
	}
	if (j->place) {
		/* what is to be played now is `lead` before the next packet */
		double lead = jitterline_ahead(j, j->next_pos, device_ns) - held_frames;
		if (lead < 0) {
			skip_to(j, j->next_pos + (int64_t)ceil(-lead));
			j->hold_frames = 0;
		} else {
			j->hold_frames = (uint32_t)lround(lead);
		}
		j->place = false;
	}
	jitterline_play_at(j, j->next_pos, -(double)j->hold_frames - held_frames, device_ns);
}

static void take_packet(struct jitter *j, struct jitter_part *part)
{
	unsigned slot = *jitterslots_place(j, 0);
	const struct jitter_slot *s = &j->slots[slot];
	int64_t skip = j->next_pos - s->pos;

	j->first = (j->first + 1) % j->o.n_slots;
	j->n_held--;
	j->taken_slot = (int)slot;
	*part = (struct jitter_part){ .what = JITTER_PACKET, .pos = s->pos, .frames = s->dur_frames - (uint32_t)skip, .skip_frames = (uint32_t)skip,
		.jumped = j->jump, .bytes = jitterslots_bytes(j, slot), .n_bytes = s->n_bytes, .arrival_ns = s->arrival_ns, .flags = s->flags, .tag = s->tag,
		.note = s->note };
	j->next_pos = s->pos + s->dur_frames;
	j->jump = false;
}

static void drop_passed(struct jitter *j)
{
	while (j->n_held && jitterslots_held(j, 0)->pos + jitterslots_held(j, 0)->dur_frames <= j->next_pos)
		jitterslots_drop_first(j);
}

/* The next packet says that the sender sent nothing between here and it. */
static bool nothing_between(const struct jitter *j)
{
	return j->n_held && j->next_pos >= jitterslots_held(j, 0)->silent_pos && j->next_pos < jitterslots_held(j, 0)->pos;
}

static void take_missing(struct jitter *j, uint32_t max_frames, struct jitter_part *part)
{
	uint32_t frames = j->usual_frames;

	if (j->n_held && jitterslots_held(j, 0)->pos - j->next_pos < frames)
		frames = (uint32_t)(jitterslots_held(j, 0)->pos - j->next_pos);
	bool silent = nothing_between(j);
	if (silent || frames > max_frames)
		frames = max_frames;
	if (silent && jitterslots_held(j, 0)->pos - j->next_pos < frames)
		frames = (uint32_t)(jitterslots_held(j, 0)->pos - j->next_pos);
	*part = (struct jitter_part){ .what = JITTER_MISSING, .pos = j->next_pos, .frames = frames, .jumped = j->jump, .silent = silent };
	if (!silent)
		jitterlate_missed(j, j->next_pos, frames);
	j->next_pos += frames;
	j->jump = false;
}

void jitter_take(struct jitter *j, uint32_t max_frames, struct jitter_part *part)
{
	*part = (struct jitter_part){ .what = JITTER_WAIT, .pos = j->next_pos };
	jitterslots_give_back(j);
	if (j->state == JITTER_IDLE || j->place || !max_frames)
		return;
	if (j->hold_frames) {
		part->what = JITTER_HOLD;
		part->jumped = j->jump;
		part->frames = j->hold_frames < max_frames ? j->hold_frames : max_frames;
		j->hold_frames -= part->frames;
		j->counts.held_frames += j->untouched ? 0 : part->frames;
		return;
	}
	j->untouched = false;
	drop_passed(j);
	if (j->n_held && jitterslots_held(j, 0)->pos <= j->next_pos)
		take_packet(j, part);
	else if (j->n_held || !j->ended)
		take_missing(j, max_frames, part);
}

/* ---- out, passed on ---- */

void jitter_pass(struct jitter *j, int64_t now_ns, struct jitter_part *part)
{
	*part = (struct jitter_part){ .what = JITTER_WAIT, .pos = j->next_pos };
	jitterslots_give_back(j);
	if (j->state == JITTER_IDLE)
		return;
	drop_passed(j);
	if (!j->n_held)
		return;
	bool whole = jitterslots_held(j, 0)->pos <= j->next_pos;
	if (whole ? j->untouched && !j->ended && now_ns < jitter_due_ns(j) : !nothing_between(j) && !j->ended && j->n_spare && now_ns < jitter_due_ns(j))
		return;
	j->untouched = false;
	if (whole)
		take_packet(j, part);
	else
		take_missing(j, UINT32_MAX, part);
}

int64_t jitter_due_ns(const struct jitter *j)
{
	if (j->state == JITTER_IDLE || !j->n_held || (jitterslots_held(j, 0)->pos <= j->next_pos && !j->untouched))
		return INT64_MAX;
	double lead = ((double)(j->next_pos - j->play_pos) - j->play_frac) / drift_ratio(&j->drift);
	return j->play_ns + (int64_t)ceil(lead / j->o.rate_hz * UNITS_NS_PER_S);
}

/* ---- what is to be seen ---- */

const struct jitter_slot *jitter_peek(const struct jitter *j, int64_t pos, const uint8_t **bytes)
{
	for (uint32_t i = 0; i < j->n_held && jitterslots_held(j, i)->pos <= pos; i++)
		if (jitterslots_held(j, i)->pos == pos) {
			*bytes = jitterslots_bytes(j, *jitterslots_place(j, i));
			return jitterslots_held(j, i);
		}
	return NULL;
}

double jitter_ratio(const struct jitter *j)
{
	return drift_ratio(&j->drift);
}

double jitter_depth_s(const struct jitter *j)
{
	return j->drift.set_frames / j->o.rate_hz;
}

void jitter_end(struct jitter *j)
{
	j->ended = true;
}
