#include "net/impairment.h"

#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_DRAWN_NS 1e17 /* three years: nothing lasts longer */
#define MAX_TURNS 1000.0  /* of a state that nobody looked at, gone through one by one */

/* ---- chances ---- */

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void impairment_seed(struct impairment_random *r, uint64_t seed, uint64_t which)
{
	uint64_t state = seed ^ which * 0xd1342543de82ef95u;

	*r = (struct impairment_random){ .has_spare = false };
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix(&state);
}

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

uint64_t impairment_random(struct impairment_random *r)
{
	uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

double impairment_uniform(struct impairment_random *r)
{
	return (double)(impairment_random(r) >> 11) * 0x1p-53;
}

/*
 * x = m · 2^e with m in [√½, √2): ln x = e · ln 2 + 2 · artanh((m − 1) / (m + 1)), the series to where it no longer counts.
 * Only sums, products and quotients, each rounded as IEEE 754 says.
 */
double impairment_log(double x)
{
	uint64_t bits;
	double m, s, s2, sum = 0;

	memcpy(&bits, &x, sizeof(bits));
	int e = (int)(bits >> 52 & 0x7FF) - 1023;
	bits = (bits & 0xFFFFFFFFFFFFFu) | UINT64_C(1023) << 52;
	memcpy(&m, &bits, sizeof(m));
	if (m > 1.4142135623730951) {
		m /= 2;
		e++;
	}
	s = (m - 1) / (m + 1);
	s2 = s * s;
	for (int k = 23; k >= 3; k -= 2)
		sum = (sum + 1.0 / k) * s2;
	/* ln 2 in two parts, the first short enough that e times it is exact. */
	return e * 0x1.62e42fee00000p-1 + (e * 0x1.a39ef35793c76p-33 + 2 * (s + s * sum));
}

double impairment_normal(struct impairment_random *r)
{
	double u, v, q;

	if (r->has_spare) {
		r->has_spare = false;
		return r->spare;
	}
	do {
		u = 2 * impairment_uniform(r) - 1;
		v = 2 * impairment_uniform(r) - 1;
		q = u * u + v * v;
	} while (q >= 1 || q == 0);
	double f = sqrt(-2 * impairment_log(q) / q);
	r->spare = v * f;
	r->has_spare = true;
	return u * f;
}

double impairment_exponential(struct impairment_random *r)
{
	return -impairment_log(1 - impairment_uniform(r));
}

/* ---- life ---- */

static bool is_share(double p)
{
	return p >= 0 && p <= 1;
}

static bool is_delay(int64_t ns)
{
	return ns >= 0 && ns <= IMPAIRMENT_MAX_DELAY_NS;
}

static enum err check(const struct impairment_config *c, struct err_why *why)
{
	if (!is_share(c->loss) || !is_share(c->spikes) || !is_share(c->reorder) || !is_share(c->duplicate))
		return err_say(why, ERR_ARG, "share", "of packets is outside 0 to 100 %%");
	if (!is_delay(c->delay_ns) || !is_delay(c->jitter_ns) || !is_delay(c->spike_ns) || !is_delay(c->stall_ns) ||
		!is_delay(c->stall_every_ns) || !is_delay(c->burst_ns))
		return err_say(why, ERR_ARG, "time", "is outside 0 to 3600 s");
	if (c->burst_packets && !(c->burst_packets >= 1 && c->burst_packets <= 1e6))
		return err_say(why, ERR_ARG, "burst", "%g packets (1 to 1000000)", c->burst_packets);
	if ((c->burst_packets || c->burst_ns) && c->loss >= 1)
		return err_say(why, ERR_ARG, "burst", "all is lost, there is nothing between the bursts (loss 0 to 99.99 %%)");
	/* From good to bad goes loss/(1 − loss)/burst of the packets that arrive: no more than all of them. */
	if (c->burst_packets && c->loss > c->burst_packets * (1 - c->loss))
		return err_say(why, ERR_ARG, "burst", "of %g packets cannot lose %g %% (0 to %g)", c->burst_packets, c->loss * 100,
			100 * c->burst_packets / (c->burst_packets + 1));
	if (c->stall_ns && c->stall_every_ns <= c->stall_ns)
		return err_say(why, ERR_ARG, "stall", "comes again before it is over");
	if (c->drift_ppb < -IMPAIRMENT_MAX_DRIFT_PPB || c->drift_ppb > IMPAIRMENT_MAX_DRIFT_PPB)
		return err_say(why, ERR_ARG, "drift", "%g ppm (-10000 to 10000)", c->drift_ppb / 1000.0);
	return ERR_OK;
}

enum err impairment_init(struct impairment *m, const struct impairment_config *c, struct err_why *why)
{
	enum err e = check(c, why);
	struct impairment_random *const sequences[] = {
		&m->on_loss, &m->on_jitter, &m->on_spike, &m->on_stall, &m->on_reorder, &m->on_duplicate,
	};

	memset(m, 0, sizeof(*m));
	if (e)
		return e;
	m->config = *c;
	if (!m->config.reorder_by)
		m->config.reorder_by = 1;
	for (unsigned i = 0; i < ARRAY_LEN(sequences); i++)
		impairment_seed(sequences[i], c->seed, i + 1);
	return ERR_OK;
}

bool impairment_is_nothing(const struct impairment_config *c)
{
	return !(c->loss > 0) && !c->lose_every && !c->delay_ns && !c->jitter_ns && !(c->spikes > 0) && !c->stall_ns && !(c->reorder > 0) &&
		!(c->duplicate > 0) && !c->rate_bps && !c->drift_ppb && !c->n_trace;
}

/* ---- loss ---- */

static int64_t draw_ns(struct impairment_random *r, double mean_ns)
{
	double ns = impairment_exponential(r) * mean_ns;

	return ns < MAX_DRAWN_NS ? (int64_t)ns : (int64_t)MAX_DRAWN_NS;
}

/*
 * Outages by time: how long each state lasts is drawn when it begins.  After a long silence nothing is known of the state any more, and
 * it is a chance as at the beginning.
 */
static bool is_in_outage(struct impairment *m, int64_t now_ns)
{
	const struct impairment_config *c = &m->config;
	double bad = (double)c->burst_ns, good = bad * (1 - c->loss) / c->loss;

	if ((double)(now_ns - m->turn_ns) > MAX_TURNS * (bad + good)) {
		m->turn_ns = now_ns;
		m->is_bad = !(impairment_uniform(&m->on_loss) < c->loss);
	}
	while (now_ns >= m->turn_ns) {
		m->is_bad = !m->is_bad;
		m->turn_ns += 1 + draw_ns(&m->on_loss, m->is_bad ? bad : good);
	}
	return m->is_bad;
}

static bool is_lost_by_chance(struct impairment *m, int64_t now_ns)
{
	const struct impairment_config *c = &m->config;
	bool every = c->lose_every && m->n_seen % c->lose_every == 0;

	if (!(c->loss > 0))
		return every;
	if (c->burst_ns)
		return is_in_outage(m, now_ns) || every;
	double u = impairment_uniform(&m->on_loss);
	if (!c->burst_packets)
		return u < c->loss || every;
	if (m->is_bad)
		m->is_bad = u >= 1 / c->burst_packets;
	else
		m->is_bad = u < c->loss / (c->burst_packets * (1 - c->loss));
	return m->is_bad || every;
}

/* ---- the line ---- */

/* When the packet has left a line of the limited rate, or false: the queue has no room for it. */
static bool pass_line(struct impairment *m, int64_t *now_ns, uint32_t n_bytes)
{
	const struct impairment_config *c = &m->config;
	const uint64_t line_bytes = (uint64_t)n_bytes + c->overhead_bytes;

	if (!c->rate_bps)
		return true;
	if (m->busy_until_ns < *now_ns)
		m->busy_until_ns = *now_ns;
	int64_t waiting_bytes = units_scale(m->busy_until_ns - *now_ns, (int64_t)c->rate_bps, 8 * UNITS_NS_PER_S);
	if (c->queue_bytes && waiting_bytes > 0 && (uint64_t)waiting_bytes + line_bytes > c->queue_bytes)
		return false;
	m->busy_until_ns += units_scale_up((int64_t)line_bytes * 8, UNITS_NS_PER_S, (int64_t)c->rate_bps);
	*now_ns = m->busy_until_ns;
	return true;
}

/* ---- delay ---- */

static int64_t draw_delay(struct impairment *m, int64_t recorded_ns)
{
	const struct impairment_config *c = &m->config;
	double jitter = (double)c->jitter_ns;
	int64_t ns = c->delay_ns + recorded_ns;

	if (c->jitter_ns)
		switch (c->shape) {
		case IMPAIRMENT_NORMAL:
			ns += (int64_t)(impairment_normal(&m->on_jitter) * jitter);
			break;
		case IMPAIRMENT_EXPONENTIAL:
			ns += (int64_t)(impairment_exponential(&m->on_jitter) * jitter);
			break;
		case IMPAIRMENT_UNIFORM:
			ns += (int64_t)((2 * impairment_uniform(&m->on_jitter) - 1) * jitter);
			break;
		}
	if (ns < 0)
		ns = 0;
	if (c->spikes > 0 && impairment_uniform(&m->on_spike) < c->spikes)
		ns += draw_ns(&m->on_spike, (double)c->spike_ns);
	return ns;
}

/* What would come out while the line stands still comes out when it goes on. */
static int64_t wait_for_stall(struct impairment *m, int64_t now_ns, int64_t out_ns)
{
	const struct impairment_config *c = &m->config;

	if (!c->stall_ns)
		return out_ns;
	if ((double)(now_ns - m->stall_to_ns) > MAX_TURNS * (double)c->stall_every_ns)
		m->stall_to_ns = now_ns;
	while (now_ns >= m->stall_to_ns) {
		m->stall_from_ns = m->stall_to_ns + draw_ns(&m->on_stall, (double)(c->stall_every_ns - c->stall_ns));
		m->stall_to_ns = m->stall_from_ns + c->stall_ns;
	}
	return out_ns >= m->stall_from_ns && out_ns < m->stall_to_ns ? m->stall_to_ns : out_ns;
}

int64_t impairment_drift_ns(const struct impairment *m, int64_t now_ns)
{
	int64_t ppb = m->config.drift_ppb;

	/* A second of a clock that is fast by d takes 1/(1 + d) of a true one. */
	return m->begun ? -units_scale(now_ns - m->start_ns, ppb, UNITS_NS_PER_S + ppb) : 0;
}

static void begin(struct impairment *m, int64_t now_ns)
{
	m->begun = true;
	m->start_ns = m->now_ns = now_ns;
	m->turn_ns = m->stall_to_ns = m->busy_until_ns = m->last_out_ns = now_ns;
	/* Outages by time: in which state the beginning lies is a chance as well. */
	if (m->config.burst_ns && m->config.loss > 0)
		m->is_bad = !(impairment_uniform(&m->on_loss) < m->config.loss);
}

static void count(struct impairment *m, const struct impairment_fate *f, int64_t delay_ns)
{
	struct impairment_counts *n = &m->counts;
	bool lost = f->cause != IMPAIRMENT_ARRIVES;

	n->packets++;
	n->lost += lost;
	n->queue_lost += f->cause == IMPAIRMENT_BY_QUEUE;
	n->bursts += lost && !m->lost_last;
	m->lost_last = lost;
	if (lost)
		return;
	n->delayed += delay_ns > 0;
	n->reordered += f->behind > 0;
	n->duplicated += f->is_doubled;
	n->sum_delay_us += delay_ns / 1000;
	if (delay_ns > n->max_delay_ns)
		n->max_delay_ns = delay_ns;
}

void impairment_send(struct impairment *m, int64_t now_ns, uint32_t n_bytes, struct impairment_fate *fate)
{
	const struct impairment_config *c = &m->config;
	int64_t recorded_ns = 0, left_ns, out_ns, steady_ns;

	if (!m->begun)
		begin(m, now_ns);
	if (now_ns < m->now_ns)
		now_ns = m->now_ns;
	m->now_ns = now_ns;
	*fate = (struct impairment_fate){ .cause = IMPAIRMENT_ARRIVES };
	m->n_seen++;
	if (c->n_trace) {
		recorded_ns = c->trace[m->trace_at];
		m->trace_at = m->trace_at + 1 < c->n_trace ? m->trace_at + 1 : 0;
	}
	left_ns = now_ns;
	if (is_lost_by_chance(m, now_ns))
		fate->cause = IMPAIRMENT_BY_CHANCE;
	else if (recorded_ns == IMPAIRMENT_LOST)
		fate->cause = IMPAIRMENT_BY_TRACE;
	else if (!pass_line(m, &left_ns, n_bytes))
		fate->cause = IMPAIRMENT_BY_QUEUE;
	if (fate->cause != IMPAIRMENT_ARRIVES) {
		count(m, fate, 0);
		return;
	}

	steady_ns = left_ns + draw_delay(m, recorded_ns);
	steady_ns = wait_for_stall(m, now_ns, steady_ns);
	if (c->reorder > 0 && impairment_uniform(&m->on_reorder) < c->reorder)
		fate->behind = c->reorder_by;
	if (!c->may_overtake && !fate->behind) {
		steady_ns = steady_ns > m->last_out_ns ? steady_ns : m->last_out_ns;
		m->last_out_ns = steady_ns;
	}
	out_ns = steady_ns + impairment_drift_ns(m, now_ns);
	if (!c->is_virtual && out_ns < now_ns)
		out_ns = now_ns;
	fate->out_ns = out_ns;
	fate->late_ns = steady_ns - now_ns - c->delay_ns;
	if (c->duplicate > 0 && impairment_uniform(&m->on_duplicate) < c->duplicate) {
		fate->is_doubled = true;
		fate->copy_ns = out_ns;
	}
	count(m, fate, out_ns - now_ns);
}

/* ---- traces ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Digits with a point, as a whole number of nanoseconds of a unit that has n_ns of them; false: too large or none. */
static bool parse_ns(const char **text, int64_t *whole, int64_t *billionths)
{
	const char *s = *text;
	int64_t place = UNITS_NS_PER_S;
	int digits = 0;

	*whole = *billionths = 0;
	for (; *s >= '0' && *s <= '9'; s++, digits++) {
		*whole = *whole * 10 + (*s - '0');
		if (*whole > INT64_C(10000000000000))
			return false;
	}
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, digits++) {
			place /= 10;
			*billionths += place * (*s - '0');
		}
	*text = s;
	return digits > 0;
}

enum err impairment_trace_line(const char *line, int64_t *delay_ns)
{
	static const struct {
		const char *word;
		int64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", UNITS_NS_PER_S }, { "", UNITS_NS_PER_S } };
	int64_t whole, billionths;
	size_t n;

	while (is_blank(*line))
		line++;
	if (!*line || *line == '#')
		return ERR_AGAIN;
	for (n = strlen(line); n > 0 && is_blank(line[n - 1]); n--)
		;
	if (n == 4 && !strncmp(line, "lost", 4)) {
		*delay_ns = IMPAIRMENT_LOST;
		return ERR_OK;
	}
	const char *end = line + n;
	if (!parse_ns(&line, &whole, &billionths))
		return ERR_FORMAT;
	for (unsigned i = 0; i < ARRAY_LEN(units); i++) {
		size_t length = strlen(units[i].word);
		if ((size_t)(end - line) != length || strncmp(line, units[i].word, length) != 0)
			continue;
		if (whole > IMPAIRMENT_MAX_DELAY_NS / units[i].ns)
			return ERR_FORMAT;
		*delay_ns = whole * units[i].ns + billionths / (UNITS_NS_PER_S / units[i].ns);
		return *delay_ns <= IMPAIRMENT_MAX_DELAY_NS ? ERR_OK : ERR_FORMAT;
	}
	return ERR_FORMAT;
}
