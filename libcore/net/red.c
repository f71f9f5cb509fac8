#include "net/red.h"

#include "base/bytes.h"
#include "net/rtp.h"

#include <assert.h>
#include <math.h>

/* ---- the payload ---- */

enum err red_parse(struct red_block *blocks, unsigned *n_blocks, uint32_t ts, const uint8_t *payload, size_t n_bytes,
	struct err_why *why)
{
	size_t at = 0;
	unsigned n = 0, n_all = 0;

	*n_blocks = 0;
	for (; at < n_bytes && payload[at] & 0x80; at += 4) {
		if (n_bytes - at < 5)
			return err_say(why, ERR_FORMAT, "RED packet", "ends inside its headers, at %zu bytes", n_bytes);
		if (++n_all >= RED_BLOCKS_MAX)
			return err_say(why, ERR_LIMIT, "RED packet", "has more than %u blocks", RED_BLOCKS_MAX);
		uint32_t field = get_be32(payload + at);
		blocks[n] = (struct red_block){ .pt = field >> 24 & 0x7f, .ts = ts - (field >> 10 & 0x3fff), .n_bytes = field & 0x3ff };
		n += blocks[n].n_bytes > 0;
	}
	if (at >= n_bytes)
		return err_say(why, ERR_FORMAT, "RED packet", "has no block of its own");
	blocks[n] = (struct red_block){ .pt = payload[at] & 0x7f, .ts = ts };
	at++;

	for (unsigned i = 0; i < n; i++) {
		if (blocks[i].n_bytes > n_bytes - at)
			return err_say(why, ERR_FORMAT, "RED packet", "promises a copy of %zu bytes and has %zu left", blocks[i].n_bytes, n_bytes - at);
		blocks[i].data = payload + at;
		at += blocks[i].n_bytes;
	}
	blocks[n].data = payload + at;
	blocks[n].n_bytes = n_bytes - at;
	*n_blocks = n + 1;
	return ERR_OK;
}

static bool is_copy(const struct red_block *copy, uint32_t ts)
{
	return copy->n_bytes <= RED_LENGTH_MAX_BYTES && ts - copy->ts <= RED_OFFSET_MAX_TICKS;
}

size_t red_write(uint8_t *dst, size_t cap_bytes, const struct red_block *blocks, unsigned n_blocks)
{
	const struct red_block *own = blocks + n_blocks - 1;
	uint8_t *p = dst;
	size_t all_bytes = RED_HEADER_BYTES(n_blocks - 1);

	for (unsigned i = 0; i < n_blocks; i++) {
		if (i + 1 < n_blocks && !is_copy(&blocks[i], own->ts))
			return 0;
		all_bytes += blocks[i].n_bytes;
	}
	if (all_bytes > cap_bytes)
		return 0;

	for (unsigned i = 0; i + 1 < n_blocks; i++, p += 4)
		put_be32(p, 1u << 31 | (uint32_t)(blocks[i].pt & 0x7f) << 24 | (own->ts - blocks[i].ts) << 10 | (uint32_t)blocks[i].n_bytes);
	*p++ = own->pt & 0x7f;
	for (unsigned i = 0; i < n_blocks; i++) {
		if (blocks[i].n_bytes)
			memcpy(p, blocks[i].data, blocks[i].n_bytes);
		p += blocks[i].n_bytes;
	}
	return all_bytes;
}

/* ---- sender ---- */

struct red_slot {
	uint32_t ts;
	uint16_t n_bytes; /* 0: the packet was too long to be copied */
	uint8_t data[RED_LENGTH_MAX_BYTES];
};

size_t red_history_bytes(unsigned distance_max)
{
	return distance_max * sizeof(struct red_slot);
}

void red_history_init(struct red_history *h, void *memory, unsigned distance_max, uint8_t pt)
{
	assert(distance_max >= 1 && distance_max <= RED_DISTANCE_MAX);
	*h = (struct red_history){ .n_slots = distance_max, .pt = pt, .slots = memory };
}

void red_history_clear(struct red_history *h)
{
	h->n_packets = 0;
}

static void remember(struct red_history *h, uint32_t ts, const uint8_t *packet, size_t n_bytes)
{
	struct red_slot *slot = &h->slots[h->n_packets++ % h->n_slots];

	slot->ts = ts;
	slot->n_bytes = n_bytes <= RED_LENGTH_MAX_BYTES ? (uint16_t)n_bytes : 0;
	memcpy(slot->data, packet, slot->n_bytes);
}

/* The copies that can go along, farthest first, into blocks.  Returns: how many. */
static unsigned gather(struct red_history *h, const struct red_choice *choice, uint32_t ts, size_t room_bytes, struct red_block *blocks)
{
	unsigned n = 0;

	for (unsigned i = choice->n_copies; i-- > 0;) {
		unsigned d = choice->distances[i];
		if (d < 1 || d > h->n_slots || d > h->n_packets)
			continue;
		const struct red_slot *slot = &h->slots[(h->n_packets - d) % h->n_slots];
		struct red_block copy = { .pt = h->pt, .ts = slot->ts, .data = slot->data, .n_bytes = slot->n_bytes };
		if (!copy.n_bytes || !is_copy(&copy, ts) || copy.n_bytes + 4 > room_bytes) {
			h->n_copies_left_out++;
			continue;
		}
		room_bytes -= copy.n_bytes + 4;
		blocks[n++] = copy;
	}
	return n;
}

size_t red_history_pack(struct red_history *h, const struct red_choice *choice, uint32_t ts, const uint8_t *packet, size_t n_bytes,
	uint8_t *dst, size_t cap_bytes)
{
	struct red_block blocks[RED_COPIES_MAX + 1];
	size_t own_bytes = n_bytes + RED_HEADER_BYTES(0), written = 0;
	unsigned n = 0;

	if (own_bytes <= cap_bytes)
		n = gather(h, choice, ts, cap_bytes - own_bytes, blocks);
	if (n) {
		blocks[n] = (struct red_block){ .pt = h->pt, .ts = ts, .data = packet, .n_bytes = n_bytes };
		written = red_write(dst, cap_bytes, blocks, n + 1);
		h->n_copies += n;
	}
	remember(h, ts, packet, n_bytes);
	return written;
}

/* ---- what the receiver sees ---- */

#define JUMP_PACKETS 3000 /* a stream that begins anew, as RFC 3550 appendix A.1 has it */

static uint64_t bit_of(int64_t seq)
{
	return 1ull << (seq & 63);
}

static uint64_t *word_of(struct red_monitor *m, int64_t seq)
{
	return &m->seen[(uint64_t)seq / 64 % ARRAY_LEN(m->seen)];
}

static void end_burst(struct red_monitor *m)
{
	uint16_t *n = &m->now.bursts[rtcpweir_burst_bin(m->burst)];

	if (m->burst && *n < UINT16_MAX)
		(*n)++;
	m->burst = 0;
}

/* The fate of the oldest open number is known. */
static void settle(struct red_monitor *m)
{
	uint16_t *bin = &m->now.bins[RTCP_N_BINS - 1];

	m->now.expected++;
	if (*word_of(m, m->settled) & bit_of(m->settled)) {
		end_burst(m);
	} else {
		m->burst++;
		m->now.lost++;
		*bin += *bin < UINT16_MAX;
	}
	m->settled++;
}

static void settle_until(struct red_monitor *m, int64_t seq)
{
	while (m->settled < seq)
		settle(m);
	/* Nothing is waited for where nothing is missing. */
	while (m->settled <= m->newest && *word_of(m, m->settled) & bit_of(m->settled))
		settle(m);
}

static void pass_time(struct red_monitor *m, int64_t now_ns)
{
	for (unsigned n = 0; now_ns - m->bin_ns >= RED_BIN_NS; m->bin_ns += RED_BIN_NS) {
		if (++n > RTCP_N_BINS) {
			m->bin_ns = now_ns;
			break;
		}
		memmove(m->now.bins, m->now.bins + 1, sizeof(m->now.bins) - sizeof(m->now.bins[0]));
		m->now.bins[RTCP_N_BINS - 1] = 0;
	}
	if (now_ns >= m->mark_ns) {
		settle_until(m, m->mark);
		m->mark = m->newest;
		m->mark_ns = now_ns + RED_PATIENCE_NS;
	}
}

static void start(struct red_monitor *m, int64_t seq, int64_t now_ns)
{
	struct rtcp_loss so_far = m->now;
	int64_t bin_ns = m->is_started ? m->bin_ns : now_ns, report_ns = m->is_started ? m->report_ns : now_ns;

	*m = (struct red_monitor){ .is_started = true, .newest = seq - 1, .settled = seq, .mark = seq, .mark_ns = now_ns + RED_PATIENCE_NS,
		.bin_ns = bin_ns, .report_ns = report_ns, .now = so_far };
}

void red_monitor_packet(struct red_monitor *m, int64_t seq, int64_t now_ns)
{
	if (!m->is_started || seq - m->newest > JUMP_PACKETS || m->newest - seq > JUMP_PACKETS)
		start(m, seq, now_ns);
	pass_time(m, now_ns);
	if (seq < m->settled)
		return;
	while (m->newest < seq) {
		if (m->newest + 1 - m->settled >= RED_MONITOR_WINDOW)
			settle(m);
		m->newest++;
		*word_of(m, m->newest) &= ~bit_of(m->newest);
	}
	*word_of(m, seq) |= bit_of(seq);
	settle_until(m, m->settled);
}

void red_monitor_report(struct red_monitor *m, struct rtcp_loss *loss, int64_t now_ns)
{
	int64_t ms = 0;

	if (m->is_started) {
		pass_time(m, now_ns);
		ms = (now_ns - m->report_ns) / 1000000;
	}
	loss->interval_ms = (uint16_t)(ms < 0 ? 0 : ms > UINT16_MAX ? UINT16_MAX : ms);
	memcpy(loss->bins, m->now.bins, sizeof(loss->bins));
	memcpy(loss->bursts, m->now.bursts, sizeof(loss->bursts));
	loss->expected = m->now.expected;
	loss->lost = m->now.lost;
	memset(m->now.bursts, 0, sizeof(m->now.bursts));
	m->now.expected = m->now.lost = 0;
	m->report_ns = now_ns;
}

/* ---- the choice ---- */

static const double raise_at[RED_LEVELS] = { 0.0, 0.002, 0.015, 0.06 };

#define LOSS_S 5.0         /* how long loss and bursts are remembered */
#define BURSTS_S 20.0
#define FEW_PACKETS 200.0  /* the first packet lost is no 10 % */

void red_control_init(struct red_control *c, unsigned level_min, unsigned level_max, uint32_t packet_us)
{
	assert(level_min <= level_max && level_max < RED_LEVELS && packet_us > 0);
	*c = (struct red_control){ .level = level_min, .level_min = level_min, .level_max = level_max, .packet_us = packet_us,
		.burst_packets = 1 };
}

/* The highest level whose threshold, times share, is reached. */
static unsigned level_for(const struct red_control *c, double share)
{
	double loss = c->lost / (c->expected > FEW_PACKETS ? c->expected : FEW_PACKETS);
	unsigned level = c->level_max;

	while (level > c->level_min && loss < raise_at[level] * share)
		level--;
	return level;
}

/* The length that 90 % of the bursts do not pass. */
static unsigned percentile(const double *bursts)
{
	double all = 0, sum = 0;

	for (unsigned i = 0; i < RTCP_N_BURSTS; i++)
		all += bursts[i];
	if (all < 0.1)
		return 1;
	for (unsigned i = 0; i < RTCP_N_BURSTS; i++)
		if ((sum += bursts[i]) >= 0.9 * all)
			return rtcpweir_burst_packets(i);
	return rtcpweir_burst_packets(RTCP_N_BURSTS - 1);
}

static void take_bursts(struct red_control *c, const struct rtcp_loss *loss, double seconds)
{
	double keep = exp(-seconds / BURSTS_S);

	for (unsigned i = 0; i < RTCP_N_BURSTS; i++)
		c->bursts[i] = c->bursts[i] * keep + loss->bursts[i];
	unsigned b = percentile(c->bursts);
	c->burst_calm_ns = b < c->burst_packets ? c->burst_calm_ns + loss->interval_ms * 1000000ll : 0;
	if (b > c->burst_packets || c->burst_calm_ns >= RED_CALM_NS) {
		c->burst_packets = b;
		c->burst_calm_ns = 0;
	}
}

static void take_level(struct red_control *c, const struct rtcp_loss *loss, double seconds)
{
	double keep = exp(-seconds / LOSS_S);

	c->expected = c->expected * keep + loss->expected;
	c->lost = c->lost * keep + (loss->lost < loss->expected ? loss->lost : loss->expected);
	unsigned up = level_for(c, 1.0), down = level_for(c, 0.5);
	c->calm_ns = down < c->level ? c->calm_ns + loss->interval_ms * 1000000ll : 0;
	if (up > c->level) {
		c->level = up;
	} else if (c->calm_ns >= RED_CALM_NS) {
		c->level--;
		c->calm_ns = 0;
	}
}

bool red_control_report(struct red_control *c, const struct rtcp_loss *loss)
{
	double seconds = loss->interval_ms / 1000.0;
	struct red_choice before, after;

	red_control_choice(c, &before);
	take_bursts(c, loss, seconds);
	take_level(c, loss, seconds);
	c->has_depth = loss->depth_us > 0;
	c->depth_packets = loss->depth_us / c->packet_us;
	red_control_choice(c, &after);
	return memcmp(&before, &after, sizeof(before)) != 0;
}

void red_control_choice(const struct red_control *c, struct red_choice *choice)
{
	unsigned farthest = (unsigned)(RED_OFFSET_MAX_TICKS * 1000ull / (RTP_OPUS_HZ / 1000) / c->packet_us);

	if (c->has_depth && c->depth_packets < farthest)
		farthest = c->depth_packets;
	red_choice_of(choice, c->level, c->burst_packets, farthest);
}

void red_choice_join(struct red_choice *choice, const struct red_choice *other)
{
	unsigned n = choice->n_copies, m = other->n_copies;

	if (m > n || (m == n && n && other->distances[n - 1] > choice->distances[n - 1]))
		*choice = *other;
}

void red_choice_of(struct red_choice *choice, unsigned level, unsigned burst_packets, unsigned farthest)
{
	unsigned b = burst_packets > level ? burst_packets : level;

	*choice = (struct red_choice){ 0 };
	if (farthest > RED_DISTANCE_MAX)
		farthest = RED_DISTANCE_MAX;
	if (b > farthest)
		b = farthest;
	/* Made from the farthest down, turned round below. */
	unsigned wanted[RED_COPIES_MAX] = { b, (b + 1) / 2, 1 }, limit = b, n = 0;
	for (unsigned i = 0; i < level && i < RED_COPIES_MAX; i++) {
		unsigned d = wanted[i] < limit ? wanted[i] : limit;
		if (d < 1)
			break;
		wanted[n++] = d;
		limit = d - 1;
	}
	choice->n_copies = n;
	for (unsigned i = 0; i < n; i++)
		choice->distances[i] = wanted[n - 1 - i];
}
