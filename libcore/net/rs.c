#include "net/rs.h"

#include "base/bytes.h"
#include "base/units.h"
#include "dsp/dsp.h"

#include <assert.h>
#include <stdio.h>

#define VERSION 1
#define HEADER_BYTES 8
#define FLOW_BYTES 6
#define UNIT_HEADER_BYTES 3
#define RTP_BYTES 12 /* the shortest packet */

enum err rs_shape_parse(struct rs_shape *shape, const char *text, struct err_why *why)
{
	unsigned k = 0, r = 0;
	char rest;

	if (sscanf(text, "%2u+%2u%c", &k, &r, &rest) != 2 || k < 1 || k > RS_SOURCES_MAX || r < 1 || r > RS_REPAIRS_MAX)
		return err_say(why, ERR_ARG, text, "is not K+R, K packets of sound and R of repair: 1…%u and 1…%u, as in 8+2",
			RS_SOURCES_MAX, RS_REPAIRS_MAX);
	*shape = (struct rs_shape){ k, r };
	return ERR_OK;
}

static size_t header_bytes(unsigned n_flows, unsigned n_sources)
{
	return HEADER_BYTES + FLOW_BYTES * n_flows + (n_flows > 1 ? n_sources : 0);
}

size_t rs_overhead_bytes(unsigned n_flows, unsigned n_sources)
{
	return header_bytes(n_flows, n_sources) + UNIT_HEADER_BYTES;
}

/* Factor of source i in repair j. */
static uint8_t cauchy(const struct galois *g, unsigned j, unsigned i)
{
	return g->inverse[j ^ (RS_REPAIRS_MAX + i)];
}

static void unit_header(uint8_t header[UNIT_HEADER_BYTES], unsigned flow, size_t n_bytes)
{
	header[0] = (uint8_t)flow;
	put_be16(header + 1, (uint16_t)n_bytes);
}

/* sum += factor · unit */
static void add_unit(galois_add_fn *add, const struct galois *g, uint8_t *sum, uint8_t factor, unsigned flow, const uint8_t *rtp, size_t n_bytes)
{
	uint8_t header[UNIT_HEADER_BYTES];

	unit_header(header, flow, n_bytes);
	for (unsigned b = 0; b < UNIT_HEADER_BYTES; b++)
		sum[b] ^= galois_multiply(g, factor, header[b]);
	add(sum + UNIT_HEADER_BYTES, rtp, n_bytes, g->halves[factor]);
}

/* ---- sender ---- */

static size_t stride_of(size_t packet_max_bytes)
{
	return units_round_up(packet_max_bytes + UNIT_HEADER_BYTES, 32);
}

size_t rs_encoder_bytes(struct rs_shape shape, size_t packet_max_bytes)
{
	return shape.n_repairs * stride_of(packet_max_bytes);
}

void rs_encoder_init(struct rs_encoder *e, struct rs_shape shape, size_t packet_max_bytes, void *memory, unsigned cpu)
{
	struct dsp dsp;

	assert(shape.n_sources >= 1 && shape.n_sources <= RS_SOURCES_MAX);
	assert(shape.n_repairs >= 1 && shape.n_repairs <= RS_REPAIRS_MAX);
	assert(packet_max_bytes >= RTP_BYTES && packet_max_bytes <= RS_PACKET_MAX_BYTES);
	dsp_init(&dsp, cpu);
	*e = (struct rs_encoder){ .add = dsp.galois_add, .shape = shape, .packet_max_bytes = packet_max_bytes,
		.stride_bytes = stride_of(packet_max_bytes), .sums = memory };
	galois_init(&e->galois);
	memset(memory, 0, rs_encoder_bytes(shape, packet_max_bytes));
}

/* The flow of a packet, which may be a new one.  Returns: its number, or RS_FLOWS_MAX if the packet does not go into this block. */
static unsigned find_flow(struct rs_encoder *e, uint32_t ssrc, uint16_t seq)
{
	unsigned f = 0;

	while (f < e->n_flows && e->flows[f].ssrc != ssrc)
		f++;
	if (f == RS_FLOWS_MAX || e->n_packets == e->shape.n_sources)
		return RS_FLOWS_MAX;
	if (f == e->n_flows) {
		e->flows[e->n_flows++] = (struct rs_flow){ .ssrc = ssrc, .first_seq = seq };
		return f;
	}
	return (uint16_t)(e->flows[f].first_seq + e->flows[f].n_packets) == seq ? f : RS_FLOWS_MAX;
}

enum err rs_encoder_add(struct rs_encoder *e, const uint8_t *rtp, size_t n_bytes)
{
	if (n_bytes < RTP_BYTES || rtp[0] >> 6 != 2)
		return ERR_FORMAT;
	if (n_bytes > e->packet_max_bytes)
		return ERR_LIMIT;
	unsigned f = find_flow(e, get_be32(rtp + 8), get_be16(rtp + 2));
	if (f == RS_FLOWS_MAX)
		return ERR_AGAIN;

	unsigned i = e->n_packets++;
	e->flow_of[i] = (uint8_t)f;
	e->flows[f].n_packets++;
	if (n_bytes + UNIT_HEADER_BYTES > e->unit_bytes)
		e->unit_bytes = n_bytes + UNIT_HEADER_BYTES;
	for (unsigned j = 0; j < e->shape.n_repairs; j++)
		add_unit(e->add, &e->galois, e->sums + j * e->stride_bytes, cauchy(&e->galois, j, i), f, rtp, n_bytes);
	return ERR_OK;
}

bool rs_encoder_is_full(const struct rs_encoder *e)
{
	return e->n_packets == e->shape.n_sources;
}

size_t rs_encoder_repair(const struct rs_encoder *e, unsigned j, uint8_t *dst, size_t cap_bytes)
{
	size_t head_bytes = header_bytes(e->n_flows, e->n_packets);

	if (!e->n_packets || j >= e->shape.n_repairs || head_bytes + e->unit_bytes > cap_bytes)
		return 0;
	dst[0] = VERSION;
	dst[1] = (uint8_t)e->n_packets;
	dst[2] = (uint8_t)e->shape.n_repairs;
	dst[3] = (uint8_t)j;
	put_be16(dst + 4, e->block);
	dst[6] = (uint8_t)e->n_flows;
	dst[7] = 0;
	for (unsigned f = 0; f < e->n_flows; f++) {
		put_be32(dst + HEADER_BYTES + FLOW_BYTES * f, e->flows[f].ssrc);
		put_be16(dst + HEADER_BYTES + FLOW_BYTES * f + 4, e->flows[f].first_seq);
	}
	if (e->n_flows > 1)
		memcpy(dst + HEADER_BYTES + FLOW_BYTES * e->n_flows, e->flow_of, e->n_packets);
	memcpy(dst + head_bytes, e->sums + j * e->stride_bytes, e->unit_bytes);
	return head_bytes + e->unit_bytes;
}

void rs_encoder_next(struct rs_encoder *e)
{
	for (unsigned j = 0; j < e->shape.n_repairs; j++)
		memset(e->sums + j * e->stride_bytes, 0, e->unit_bytes);
	e->block++;
	e->n_packets = e->n_flows = 0;
	e->unit_bytes = 0;
}

/* ---- receiver ---- */

struct rs_packet {
	uint16_t n_bytes;
	uint8_t data[RS_PACKET_MAX_BYTES];
};

/* What the header of a repair says. */
struct plan {
	size_t head_bytes;
	unsigned k;
	uint64_t keys[RS_SOURCES_MAX];
	uint8_t flow_of[RS_SOURCES_MAX];
};

/* A block of which repair packets came. */
struct rs_wait {
	bool is_open;              /* packets may be missing */
	uint64_t number;           /* of its block, as they came */
	struct plan plan;
	size_t unit_bytes;
	uint8_t head[HEADER_BYTES + FLOW_BYTES * RS_FLOWS_MAX + RS_SOURCES_MAX];
	uint64_t have;             /* sources that were seen, a bit each */
	unsigned n_have;           /* repairs that came */
	uint8_t which[RS_REPAIRS_MAX];
	uint8_t units[RS_REPAIRS_MAX][RS_UNIT_MAX_BYTES];
};

size_t rs_decoder_bytes(unsigned n_packets)
{
	return RS_BLOCKS * sizeof(struct rs_wait) + n_packets * (sizeof(uint64_t) + sizeof(struct rs_packet));
}

void rs_decoder_init(struct rs_decoder *d, unsigned n_packets, void *memory, unsigned cpu)
{
	struct dsp dsp;
	uint8_t *p = memory;

	assert(n_packets >= RS_SOURCES_MAX && n_packets <= RS_STORE_MAX_PACKETS);
	dsp_init(&dsp, cpu);
	memset(memory, 0, rs_decoder_bytes(n_packets));
	*d = (struct rs_decoder){ .add = dsp.galois_add, .set = dsp.galois_set, .n_packets = n_packets };
	galois_init(&d->galois);
	d->waits = (struct rs_wait *)p;
	p += RS_BLOCKS * sizeof(struct rs_wait);
	d->keys = (uint64_t *)p;
	p += n_packets * sizeof(uint64_t);
	d->packets = (struct rs_packet *)p;
}

static uint64_t key_of(uint32_t ssrc, uint16_t seq)
{
	return 1ull << 48 | (uint64_t)ssrc << 16 | seq;
}

/* Returns: its place in the store, or n_packets. */
static unsigned find_packet(const struct rs_decoder *d, uint64_t key)
{
	for (unsigned i = 0; i < d->n_packets; i++)
		if (d->keys[i] == key)
			return i;
	return d->n_packets;
}

static unsigned store(struct rs_decoder *d, uint64_t key, const uint8_t *rtp, size_t n_bytes)
{
	unsigned place = (unsigned)(d->n_stored++ % d->n_packets);

	d->keys[place] = key;
	d->packets[place].n_bytes = (uint16_t)n_bytes;
	memcpy(d->packets[place].data, rtp, n_bytes);
	return place;
}

/* Take what is known out of the first n_missing repairs.  Returns: false if the store no longer has it, or it does not fit. */
static bool subtract_known(struct rs_decoder *d, struct rs_wait *w, unsigned n_missing)
{
	for (unsigned i = 0; i < w->plan.k; i++) {
		if (!(w->have >> i & 1))
			continue;
		unsigned place = find_packet(d, w->plan.keys[i]);
		if (place == d->n_packets || (size_t)d->packets[place].n_bytes + UNIT_HEADER_BYTES > w->unit_bytes)
			return false;
		const struct rs_packet *p = &d->packets[place];
		for (unsigned n = 0; n < n_missing; n++)
			add_unit(d->add, &d->galois, w->units[n], cauchy(&d->galois, w->which[n], i), w->plan.flow_of[i], p->data, p->n_bytes);
	}
	return true;
}

/* Invert the n × n matrix whose rows are repairs and whose columns are the missing, by Gauss and Jordan: m is [matrix | one]. */
static void invert(const struct galois *g, uint8_t m[RS_REPAIRS_MAX][2 * RS_REPAIRS_MAX], unsigned n)
{
	for (unsigned c = 0; c < n; c++) {
		unsigned pivot = c;
		while (!m[pivot][c])
			pivot++; /* there is one: every square part of a Cauchy matrix can be inverted */
		for (unsigned x = 0; x < 2 * n && pivot != c; x++) {
			uint8_t t = m[c][x];
			m[c][x] = m[pivot][x];
			m[pivot][x] = t;
		}
		uint8_t scale = g->inverse[m[c][c]];
		for (unsigned x = 0; x < 2 * n; x++)
			m[c][x] = galois_multiply(g, scale, m[c][x]);
		for (unsigned r = 0; r < n; r++) {
			uint8_t factor = m[r][c];
			for (unsigned x = 0; x < 2 * n && r != c && factor; x++)
				m[r][x] ^= galois_multiply(g, factor, m[c][x]);
		}
	}
}

/* A unit that was worked out is a packet only if all of it fits together.  Returns: its length, 0 if not. */
static size_t check_unit(const struct rs_wait *w, unsigned i, const uint8_t *unit)
{
	size_t n_bytes = get_be16(unit + 1);
	const uint8_t *rtp = unit + UNIT_HEADER_BYTES;

	if (unit[0] != w->plan.flow_of[i] || n_bytes < RTP_BYTES || n_bytes + UNIT_HEADER_BYTES > w->unit_bytes)
		return 0;
	if (rtp[0] >> 6 != 2 || key_of(get_be32(rtp + 8), get_be16(rtp + 2)) != w->plan.keys[i])
		return 0;
	for (size_t b = UNIT_HEADER_BYTES + n_bytes; b < w->unit_bytes; b++)
		if (unit[b])
			return 0;
	return n_bytes;
}

static void recover(struct rs_decoder *d, struct rs_wait *w, const uint8_t *missing, unsigned n_missing)
{
	uint8_t m[RS_REPAIRS_MAX][2 * RS_REPAIRS_MAX] = { 0 };
	uint8_t unit[RS_UNIT_MAX_BYTES];

	for (unsigned r = 0; r < n_missing; r++) {
		for (unsigned c = 0; c < n_missing; c++)
			m[r][c] = cauchy(&d->galois, w->which[r], missing[c]);
		m[r][n_missing + r] = 1;
	}
	invert(&d->galois, m, n_missing);
	for (unsigned r = 0; r < n_missing; r++) {
		d->set(unit, w->units[0], w->unit_bytes, d->galois.halves[m[r][n_missing]]);
		for (unsigned c = 1; c < n_missing; c++)
			d->add(unit, w->units[c], w->unit_bytes, d->galois.halves[m[r][n_missing + c]]);
		size_t n_bytes = check_unit(w, missing[r], unit);
		if (!n_bytes) {
			d->counts.n_refused++;
			continue;
		}
		unsigned place = store(d, w->plan.keys[missing[r]], unit + UNIT_HEADER_BYTES, n_bytes);
		if (d->n_queued < RS_QUEUE)
			d->queue[d->n_queued++] = (uint16_t)place;
		d->counts.n_recovered++;
	}
}

/* If enough of the block is here, work out the rest of it. */
static void attempt(struct rs_decoder *d, struct rs_wait *w)
{
	uint8_t missing[RS_REPAIRS_MAX];
	unsigned n_missing = 0;

	for (unsigned i = 0; i < w->plan.k; i++)
		if (!(w->have >> i & 1)) {
			if (n_missing == w->n_have)
				return;
			missing[n_missing++] = (uint8_t)i;
		}
	w->is_open = false;
	if (!n_missing)
		return;
	if (subtract_known(d, w, n_missing))
		recover(d, w, missing, n_missing);
	else
		d->counts.n_blocks_lost++;
}

/* What was recovered before and not fetched is let go: its place may be taken now. */
static void begin(struct rs_decoder *d)
{
	d->n_queued = d->n_fetched = 0;
}

void rs_decoder_source(struct rs_decoder *d, const uint8_t *rtp, size_t n_bytes)
{
	begin(d);
	if (n_bytes < RTP_BYTES || n_bytes > RS_PACKET_MAX_BYTES || rtp[0] >> 6 != 2)
		return;
	uint64_t key = key_of(get_be32(rtp + 8), get_be16(rtp + 2));
	if (find_packet(d, key) < d->n_packets)
		return;
	store(d, key, rtp, n_bytes);
	for (struct rs_wait *w = d->waits; w < d->waits + RS_BLOCKS; w++)
		for (unsigned i = 0; w->is_open && i < w->plan.k; i++)
			if (w->plan.keys[i] == key) {
				w->have |= 1ull << i;
				attempt(d, w);
			}
}

/* Check the header of a repair.  Returns: false if it is malformed. */
static bool parse(struct plan *plan, const uint8_t *p, size_t n_bytes)
{
	uint16_t seqs[RS_FLOWS_MAX];

	if (n_bytes < HEADER_BYTES || p[0] != VERSION || p[7])
		return false;
	unsigned k = p[1], r = p[2], j = p[3], n_flows = p[6];
	if (k < 1 || k > RS_SOURCES_MAX || r < 1 || r > RS_REPAIRS_MAX || j >= r || n_flows < 1 || n_flows > RS_FLOWS_MAX || n_flows > k)
		return false;
	plan->k = k;
	plan->head_bytes = header_bytes(n_flows, k);
	if (n_bytes < plan->head_bytes + UNIT_HEADER_BYTES + RTP_BYTES || n_bytes - plan->head_bytes > RS_UNIT_MAX_BYTES)
		return false;

	const uint8_t *flows = p + HEADER_BYTES, *flow_of = flows + FLOW_BYTES * n_flows;
	for (unsigned f = 0; f < n_flows; f++)
		seqs[f] = get_be16(flows + FLOW_BYTES * f + 4);
	for (unsigned i = 0; i < k; i++) {
		unsigned f = n_flows > 1 ? flow_of[i] : 0;
		if (f >= n_flows)
			return false;
		plan->flow_of[i] = (uint8_t)f;
		plan->keys[i] = key_of(get_be32(flows + FLOW_BYTES * f), seqs[f]++);
	}
	return true;
}

/* The wait of a repair's block: the headers of its repairs are the same but for j.  Returns: NULL if there is none. */
static struct rs_wait *find_wait(struct rs_decoder *d, const struct plan *plan, const uint8_t *payload)
{
	for (struct rs_wait *w = d->waits; w < d->waits + RS_BLOCKS; w++)
		if (w->plan.head_bytes == plan->head_bytes && !memcmp(w->head, payload, 3) &&
			!memcmp(w->head + 4, payload + 4, plan->head_bytes - 4))
			return w;
	return NULL;
}

/* The oldest of the blocks that are done, or else of all. */
static struct rs_wait *oldest_wait(struct rs_decoder *d)
{
	struct rs_wait *oldest = d->waits;

	for (struct rs_wait *w = d->waits + 1; w < d->waits + RS_BLOCKS; w++)
		if (w->is_open == oldest->is_open ? w->number < oldest->number : !w->is_open)
			oldest = w;
	return oldest;
}

static struct rs_wait *open_wait(struct rs_decoder *d, const struct plan *plan, const uint8_t *payload, size_t unit_bytes)
{
	struct rs_wait *w = oldest_wait(d);

	d->counts.n_blocks_lost += w->is_open;
	w->number = ++d->n_waits;
	w->is_open = true;
	w->plan = *plan;
	w->unit_bytes = unit_bytes;
	memcpy(w->head, payload, plan->head_bytes);
	w->have = 0;
	w->n_have = 0;
	for (unsigned i = 0; i < plan->k; i++)
		if (find_packet(d, plan->keys[i]) < d->n_packets)
			w->have |= 1ull << i;
	return w;
}

static bool has_repair(const struct rs_wait *w, uint8_t j)
{
	for (unsigned n = 0; n < w->n_have; n++)
		if (w->which[n] == j)
			return true;
	return false;
}

enum err rs_decoder_repair(struct rs_decoder *d, const uint8_t *payload, size_t n_bytes)
{
	struct plan plan;
	struct rs_wait *w = NULL;
	size_t unit_bytes = 0;

	begin(d);
	if (parse(&plan, payload, n_bytes)) {
		unit_bytes = n_bytes - plan.head_bytes;
		w = find_wait(d, &plan, payload);
		if (!w)
			w = open_wait(d, &plan, payload, unit_bytes);
	}
	if (!w || w->unit_bytes != unit_bytes) {
		d->counts.n_refused++;
		return ERR_FORMAT;
	}
	d->counts.n_repairs++;
	if (!w->is_open || has_repair(w, payload[3]))
		return ERR_OK;
	w->which[w->n_have] = payload[3];
	memcpy(w->units[w->n_have++], payload + plan.head_bytes, unit_bytes);
	attempt(d, w);
	return ERR_OK;
}

bool rs_decoder_next(struct rs_decoder *d, const uint8_t **rtp, size_t *n_bytes)
{
	if (d->n_fetched == d->n_queued)
		return false;
	const struct rs_packet *p = &d->packets[d->queue[d->n_fetched++]];
	*rtp = p->data;
	*n_bytes = p->n_bytes;
	return true;
}
