#include "net/jitter.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

#define HALF_NS (UNITS_NS_PER_S / 2)
#define FORGET 0.983         /* of the histogram in half a second: 29 s */
#define ATTACK 0.5           /* of the reference, a window */
#define LEAK 0.05
#define HYSTERESIS_S 0.001   /* the depth goes down for more than this only */
#define STEP_S 0.002         /* it goes up at once for more than this, if something was late */
#define GLITCH_NS (UNITS_NS_PER_S / 10)
#define FAR_S 0.25           /* what the ratio would need minutes for */
#define FAR_WINDOWS 5u
#define TOUCH_NS (UNITS_NS_PER_S / 4) /* every packet late for so long: the path has changed */
#define TOUCH_PACKETS 8u
#define LEAST_TOUCH_NS (UNITS_NS_PER_S / 50)
#define TOUCH_DEPTHS 4

static double frames_of(const struct jitter *j, double seconds)
{
	return seconds * j->o.rate_hz;
}

static double ns_frames(const struct jitter *j, int64_t ns)
{
	return (double)ns * j->o.rate_hz / UNITS_NS_PER_S;
}

/* What is played at t_ns, relative to pos: how far ahead of it pos is. */
static double ahead_of(const struct jitter *j, int64_t pos, int64_t t_ns)
{
	return (double)(pos - j->play_pos) - j->play_frac - ns_frames(j, t_ns - j->play_ns) * drift_ratio(&j->drift);
}

static void play_at(struct jitter *j, int64_t pos, double frac, int64_t t_ns)
{
	double whole = floor(frac);

	j->play_pos = pos + (int64_t)whole;
	j->play_frac = frac - whole;
	j->play_ns = t_ns;
}

/* Every slack from now on is larger by as much: playing stands still for so long (negative: it leaps). */
static void shift(struct jitter *j, double by_frames)
{
	play_at(j, j->play_pos, j->play_frac - by_frames, j->play_ns);
	drift_jumped(&j->drift, by_frames);
	j->reference_frames += by_frames;
}

/* ---- slots ---- */

static size_t align8(size_t n)
{
	return (n + 7) / 8 * 8;
}

size_t jitter_bytes(const struct jitter_options *o)
{
	if (o->n_slots < 4 || o->n_slots > JITTER_MAX_SLOTS || !o->slot_bytes || o->slot_bytes > JITTER_MAX_SLOT_BYTES)
		return 0;
	return o->n_slots * sizeof(struct jitter_slot) + align8(2 * o->n_slots * sizeof(uint16_t)) + o->n_slots * align8(o->slot_bytes);
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
	at += align8(2 * o->n_slots * sizeof(uint16_t));
	j->bytes = at;
	drift_init(&j->drift, o->rate_hz, 0);
	j->usual_frames = o->rate_hz / 200;
	jitter_restart(j, true);
	return ERR_OK;
}

static uint16_t *place_of(const struct jitter *j, uint32_t i)
{
	return &j->order[(j->first + i) % j->o.n_slots];
}

static struct jitter_slot *held(const struct jitter *j, uint32_t i)
{
	return &j->slots[*place_of(j, i)];
}

static uint8_t *bytes_of(const struct jitter *j, unsigned slot)
{
	return j->bytes + slot * align8(j->o.slot_bytes);
}

static void give_back_taken(struct jitter *j)
{
	if (j->taken_slot >= 0)
		j->spare[j->n_spare++] = (uint16_t)j->taken_slot;
	j->taken_slot = -1;
}

static void drop_first(struct jitter *j)
{
	j->spare[j->n_spare++] = *place_of(j, 0);
	j->first = (j->first + 1) % j->o.n_slots;
	j->n_held--;
}

static void drop_all(struct jitter *j)
{
	j->taken_slot = -1;
	j->first = j->n_held = 0;
	for (j->n_spare = 0; j->n_spare < j->o.n_slots; j->n_spare++)
		j->spare[j->n_spare] = (uint16_t)(j->o.n_slots - 1 - j->n_spare);
}

/* How many of the held lie before pos: nearly always all, so from the end. */
static uint32_t held_before(const struct jitter *j, int64_t pos)
{
	uint32_t i = j->n_held;

	while (i && held(j, i - 1)->pos >= pos)
		i--;
	return i;
}

static enum jitter_put store(struct jitter *j, const struct jitter_packet *p)
{
	uint32_t at = held_before(j, p->pos);

	if (at < j->n_held && held(j, at)->pos == p->pos) {
		j->counts.duplicate += !(p->flags & JITTER_COPY);
		return JITTER_DUPLICATE;
	}
	if (!j->n_spare) {
		j->counts.full++;
		return JITTER_FULL;
	}
	if (at < j->n_held && !(p->flags & JITTER_COPY))
		j->counts.reordered++;
	uint16_t slot = j->spare[--j->n_spare];
	j->n_held++;
	for (uint32_t i = j->n_held - 1; i > at; i--)
		*place_of(j, i) = *place_of(j, i - 1);
	*place_of(j, at) = slot;
	j->slots[slot] = (struct jitter_slot){ .pos = p->pos, .arrival_ns = p->arrival_ns, .dur_frames = p->dur_frames, .n_bytes = p->n_bytes,
		.flags = p->flags, .tag = p->tag, .note = p->note, .silent_pos = p->flags & JITTER_FOLLOWS ? j->newest_pos : p->pos };
	memcpy(bytes_of(j, slot), p->bytes, p->n_bytes);
	if (p->pos + p->dur_frames > j->newest_pos)
		j->newest_pos = p->pos + p->dur_frames;
	return JITTER_STORED;
}

/* ---- what was late ---- */

static void note_miss(struct jitter *j, int64_t pos, uint32_t frames)
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

static bool was_missing(const struct jitter *j, int64_t pos, uint32_t frames)
{
	uint32_t n = j->n_misses < JITTER_N_MISSES ? j->n_misses : JITTER_N_MISSES;

	for (uint32_t i = 1; i <= n; i++) {
		const struct jitter_miss *m = &j->misses[(j->n_misses - i) % JITTER_N_MISSES];
		if (pos < m->end_pos && pos + frames > m->pos)
			return true;
	}
	return false;
}

static void note_late(struct jitter *j, int64_t arrival_ns)
{
	j->counts.late++;
	if (!j->late_run++)
		j->late_since_ns = arrival_ns;
	if (!j->glitch_ns || arrival_ns - j->glitch_ns > GLITCH_NS)
		j->counts.glitches++;
	j->glitch_ns = j->last_late_ns = arrival_ns;
}

/* ---- the target ---- */

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
	double target = frames_of(j, quantile_s(j) + JITTER_MARGIN_S) + j->o.block_frames;
	double room = 0.8 * j->o.n_slots * j->usual_frames;

	return target < room ? target : room;
}

/* Towards the target: down by the ratio, and not for little; up by the ratio, or at once if it is high time. */
static void aim(struct jitter *j, int64_t now_ns)
{
	double set = j->drift.set_frames, way = j->target_frames - set;

	if (j->o.latency_ns)
		return;
	if (way > 0 && way > frames_of(j, STEP_S) && (j->counts.late || j->counts.late_copies) && now_ns - j->last_late_ns <= HALF_NS && !j->place) {
		uint32_t frames = (uint32_t)ceil(way);
		j->hold_frames += j->o.pass ? 0 : frames;
		shift(j, frames);
		drift_aim(&j->drift, j->drift.set_frames);
	} else if (way > 0 || way < -frames_of(j, HYSTERESIS_S)) {
		drift_aim(&j->drift, j->target_frames);
	}
}

static void end_half(struct jitter *j, int64_t now_ns)
{
	double forget = ++j->n_halves > 59 ? FORGET : 1 - 1.0 / (double)j->n_halves;
	double bin = j->worst_frames / frames_of(j, JITTER_BIN_S);
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

/* ---- beginnings ---- */

static double first_depth(const struct jitter *j)
{
	if (j->o.latency_ns)
		return ns_frames(j, j->o.latency_ns);
	return j->n_halves ? j->target_frames : frames_of(j, JITTER_COLD_S) + j->o.block_frames;
}

void jitter_restart(struct jitter *j, bool cold)
{
	drop_all(j);
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
	double depth = first_depth(j);

	j->counts.restarts += j->counts.received > 1;
	drop_all(j);
	j->state = JITTER_COLLECTING;
	j->next_pos = j->newest_pos = p->pos;
	j->begin_ns = p->arrival_ns;
	j->late_run = 0;
	j->reference_frames = j->collect_frames = depth;
	j->hold_frames = 0;
	j->n_misses = j->far_windows = 0;
	j->in_half = j->has_stray = j->ended = false;
	j->place = j->jump = j->untouched = true;
	play_at(j, p->pos, -depth, p->arrival_ns);
	drift_restart(&j->drift, depth, p->arrival_ns);
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
	double by = (j->o.latency_ns ? ns_frames(j, j->o.latency_ns) : j->target_frames) - envelope;
	/* The first packet was slower than the fastest: a little more latency than was asked for is no reason to cut the sound. */
	if (j->o.latency_ns && -by <= fmax(frames_of(j, STEP_S), (envelope + by) / 4))
		return;
	if (fabs(by) < frames_of(j, HYSTERESIS_S) && by < 0)
		return;
	if (j->o.pass || fabs(by) >= frames_of(j, HYSTERESIS_S)) {
		by = round(by);
		shift(j, by);
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

/* Is p where this timeline has its packets?  A single one that is not is no reason to leave it. */
static bool is_stray(struct jitter *j, const struct jitter_packet *p, double slack)
{
	double limit = frames_of(j, JITTER_GAP_S);

	if (fabs(slack - j->drift.set_frames) <= limit) {
		j->has_stray = false;
		return false;
	}
	double agrees = j->has_stray ? (double)(p->pos - j->stray_pos) - ns_frames(j, p->arrival_ns - j->stray_ns) : limit;
	bool believed = fabs(agrees) < frames_of(j, 0.5) && p->pos != j->stray_pos;
	j->has_stray = !believed;
	j->stray_pos = p->pos;
	j->stray_ns = p->arrival_ns;
	return true;
}

static enum jitter_put put_first(struct jitter *j, const struct jitter_packet *p)
{
	/* After a pause the timeline may have gone on: then so does the playing. */
	bool known = j->drift.started && j->last_arrival_ns && !(p->flags & JITTER_DISCONT);
	double slack = known ? ahead_of(j, p->pos, p->arrival_ns) : 0;

	if (known && p->pos >= j->next_pos && fabs(slack - j->drift.set_frames) < frames_of(j, FAR_S) / 4) {
		j->state = JITTER_RUNNING;
		j->place = j->jump = true;
		j->next_pos = j->newest_pos = p->pos;
		j->late_run = 0;
	} else {
		begin(j, p);
	}
	j->last_arrival_ns = p->arrival_ns;
	enum jitter_put put = store(j, p);
	return put == JITTER_STORED ? JITTER_BEGUN : put;
}

/* After each packet of a running timeline: is it lost beyond what the ratio can mend? */
static bool lost_touch(struct jitter *j, const struct jitter_packet *p, bool new_window)
{
	if (new_window)
		j->far_windows = fabs(j->drift.envelope_frames - j->drift.set_frames) > frames_of(j, FAR_S) ? j->far_windows + 1 : 0;
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

/* Returns: the slack loops want a new beginning with this packet. */
static bool observe(struct jitter *j, const struct jitter_packet *p, double slack)
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

static bool is_held(const struct jitter *j, int64_t pos)
{
	uint32_t at = held_before(j, pos);

	return at < j->n_held && held(j, at)->pos == pos;
}

/* A repair of what is missing: the network's delay is as long as it took, if that is not too long to wait for. */
static void note_repair(struct jitter *j, const struct jitter_packet *p, double slack)
{
	bool is_late = p->pos < j->next_pos;
	double excess = j->reference_frames - slack;

	if (is_late ? j->untouched || !was_missing(j, p->pos, p->dur_frames) : is_held(j, p->pos))
		return;
	if (excess > frames_of(j, JITTER_REPAIR_S))
		return;
	if (is_late) {
		j->counts.late_copies++;
		j->last_late_ns = p->arrival_ns;
	}
	if (j->in_half && excess > j->worst_frames)
		j->worst_frames = excess;
}

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

	give_back_taken(j);
	j->counts.received += !copy;
	if (p->n_bytes > j->o.slot_bytes || !p->dur_frames || p->dur_frames > frames_of(j, JITTER_GAP_S)) {
		j->counts.stray++;
		return JITTER_STRAY;
	}
	if (j->state == JITTER_IDLE || (p->flags & JITTER_DISCONT && !copy && p->pos != j->newest_pos)) {
		if (copy)
			return JITTER_STRAY; /* what it is a copy of was before the beginning */
		j->usual_frames = p->dur_frames;
		return put_first(j, p);
	}

	double slack = ahead_of(j, p->pos, p->arrival_ns);
	if (copy ? fabs(slack - j->drift.set_frames) > frames_of(j, JITTER_GAP_S) : is_stray(j, p, slack)) {
		if (copy || j->has_stray) {
			j->counts.stray += !copy;
			return JITTER_STRAY;
		}
		begin(j, p);
		j->last_arrival_ns = p->arrival_ns;
		return store(j, p) == JITTER_STORED ? JITTER_BEGUN : JITTER_FULL;
	}
	if (!copy) {
		j->usual_frames = p->dur_frames;
		j->last_arrival_ns = p->arrival_ns;
		if (j->o.pass) /* it plays by itself */
			play_at(j, p->pos, -slack, p->arrival_ns);
		if (observe(j, p, slack)) {
			begin(j, p);
			return store(j, p) == JITTER_STORED ? JITTER_BEGUN : JITTER_FULL;
		}
	}
	if (copy)
		note_repair(j, p, slack);
	if (p->pos >= j->next_pos || precedes_all(j, p, slack)) {
		j->late_run = 0;
		return store(j, p);
	}
	if (p->pos + p->dur_frames > j->next_pos && !j->untouched && was_missing(j, p->pos, p->dur_frames)) {
		if (!copy)
			note_late(j, p->arrival_ns); /* but its end is still wanted */
		return store(j, p);
	}
	if (!copy && was_missing(j, p->pos, p->dur_frames)) {
		note_late(j, p->arrival_ns);
		return JITTER_LATE;
	}
	if (!copy && j->untouched) /* before the beginning, and too late for it */
		return JITTER_LATE;
	j->counts.duplicate += !copy;
	return JITTER_DUPLICATE;
}

/* ---- playing ---- */

static void skip_to(struct jitter *j, int64_t pos)
{
	while (j->n_held && held(j, 0)->pos + held(j, 0)->dur_frames <= pos) {
		j->counts.skipped_frames += held(j, 0)->dur_frames;
		drop_first(j);
	}
	if (j->n_held && held(j, 0)->pos < pos)
		j->counts.skipped_frames += (uint64_t)(pos - held(j, 0)->pos);
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
		double lead = ahead_of(j, j->next_pos, device_ns) - held_frames;
		if (lead < 0) {
			skip_to(j, j->next_pos + (int64_t)ceil(-lead));
			j->hold_frames = 0;
		} else {
			j->hold_frames = (uint32_t)lround(lead);
		}
		j->place = false;
	}
	play_at(j, j->next_pos, -(double)j->hold_frames - held_frames, device_ns);
}

static void take_packet(struct jitter *j, struct jitter_part *part)
{
	unsigned slot = *place_of(j, 0);
	const struct jitter_slot *s = &j->slots[slot];
	int64_t skip = j->next_pos - s->pos;

	j->first = (j->first + 1) % j->o.n_slots;
	j->n_held--;
	j->taken_slot = (int)slot;
	*part = (struct jitter_part){ .what = JITTER_PACKET, .pos = s->pos, .frames = s->dur_frames - (uint32_t)skip, .skip_frames = (uint32_t)skip,
		.jumped = j->jump, .bytes = bytes_of(j, slot), .n_bytes = s->n_bytes, .arrival_ns = s->arrival_ns, .flags = s->flags, .tag = s->tag,
		.note = s->note };
	j->next_pos = s->pos + s->dur_frames;
	j->jump = false;
}

static void drop_passed(struct jitter *j)
{
	while (j->n_held && held(j, 0)->pos + held(j, 0)->dur_frames <= j->next_pos)
		drop_first(j);
}

/* The next packet says that the sender sent nothing between here and it. */
static bool nothing_between(const struct jitter *j)
{
	return j->n_held && j->next_pos >= held(j, 0)->silent_pos && j->next_pos < held(j, 0)->pos;
}

static void take_missing(struct jitter *j, uint32_t max_frames, struct jitter_part *part)
{
	uint32_t frames = j->usual_frames;

	if (j->n_held && held(j, 0)->pos - j->next_pos < frames)
		frames = (uint32_t)(held(j, 0)->pos - j->next_pos);
	bool silent = nothing_between(j);
	if (silent || frames > max_frames)
		frames = max_frames;
	if (silent && held(j, 0)->pos - j->next_pos < frames)
		frames = (uint32_t)(held(j, 0)->pos - j->next_pos);
	*part = (struct jitter_part){ .what = JITTER_MISSING, .pos = j->next_pos, .frames = frames, .jumped = j->jump, .silent = silent };
	if (!silent)
		note_miss(j, j->next_pos, frames);
	j->next_pos += frames;
	j->jump = false;
}

void jitter_take(struct jitter *j, uint32_t max_frames, struct jitter_part *part)
{
	*part = (struct jitter_part){ .what = JITTER_WAIT, .pos = j->next_pos };
	give_back_taken(j);
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
	if (j->n_held && held(j, 0)->pos <= j->next_pos)
		take_packet(j, part);
	else if (j->n_held || !j->ended)
		take_missing(j, max_frames, part);
}

void jitter_pass(struct jitter *j, int64_t now_ns, struct jitter_part *part)
{
	*part = (struct jitter_part){ .what = JITTER_WAIT, .pos = j->next_pos };
	give_back_taken(j);
	if (j->state == JITTER_IDLE)
		return;
	drop_passed(j);
	if (!j->n_held)
		return;
	bool whole = held(j, 0)->pos <= j->next_pos;
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
	if (j->state == JITTER_IDLE || !j->n_held || (held(j, 0)->pos <= j->next_pos && !j->untouched))
		return INT64_MAX;
	double lead = ((double)(j->next_pos - j->play_pos) - j->play_frac) / drift_ratio(&j->drift);
	return j->play_ns + (int64_t)ceil(lead / j->o.rate_hz * UNITS_NS_PER_S);
}

const struct jitter_slot *jitter_peek(const struct jitter *j, int64_t pos, const uint8_t **bytes)
{
	for (uint32_t i = 0; i < j->n_held && held(j, i)->pos <= pos; i++)
		if (held(j, i)->pos == pos) {
			*bytes = bytes_of(j, *place_of(j, i));
			return held(j, i);
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
