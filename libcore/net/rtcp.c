#include "net/rtcp.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <string.h>

#define VERSION 2u
#define HEADER_BYTES 4u
#define SR_BYTES 24u                 /* SSRC and sender's figures, behind the header */
#define REPORT_BYTES 24u
#define MAX_LOST 0x7fffff            /* 24 bits with a sign */

/* ---- reading ---- */

/* One packet at bytes, of at most n_bytes. */
static enum err take_one(const uint8_t *bytes, size_t n_bytes, struct rtcp_packet *p, size_t *length_bytes)
{
	size_t padding = 0;

	if (n_bytes < HEADER_BYTES || bytes[0] >> 6 != VERSION)
		return ERR_FORMAT;
	*length_bytes = 4 * ((size_t)get_be16(bytes + 2) + 1);
	if (*length_bytes > n_bytes)
		return ERR_FORMAT;
	if (bytes[0] >> 5 & 1) {
		padding = bytes[*length_bytes - 1];
		if (padding == 0 || padding > *length_bytes - HEADER_BYTES)
			return ERR_FORMAT;
	}
	*p = (struct rtcp_packet){
		.type = bytes[1],
		.count = bytes[0] & 0x1f,
		.body = bytes + HEADER_BYTES,
		.body_bytes = *length_bytes - HEADER_BYTES - padding,
	};
	return ERR_OK;
}

enum err rtcp_check(const uint8_t *bytes, size_t n_bytes, bool reduced)
{
	struct rtcp_packet p;
	size_t at = 0, length;

	if (n_bytes == 0)
		return ERR_FORMAT;
	while (at < n_bytes) {
		if (take_one(bytes + at, n_bytes - at, &p, &length))
			return ERR_FORMAT;
		bool padded = bytes[at] >> 5 & 1;
		if (at == 0 && !reduced && (padded || (p.type != RTCP_SR && p.type != RTCP_RR)))
			return ERR_FORMAT;
		if (p.type < 192 || p.type > 223 || (padded && at + length != n_bytes))
			return ERR_FORMAT;
		at += length;
	}
	return ERR_OK;
}

enum err rtcp_next(const uint8_t *bytes, size_t n_bytes, size_t *offset, struct rtcp_packet *p)
{
	size_t length;

	if (*offset >= n_bytes)
		return ERR_END;
	enum err e = take_one(bytes + *offset, n_bytes - *offset, p, &length);
	if (!e)
		*offset += length;
	return e;
}

enum err rtcp_sr_unpack(const struct rtcp_packet *p, struct rtcp_sr *sr)
{
	if (p->type != RTCP_SR || p->body_bytes < SR_BYTES)
		return ERR_FORMAT;
	*sr = (struct rtcp_sr){
		.ssrc = get_be32(p->body),
		.ntp = get_be64(p->body + 4),
		.ts = get_be32(p->body + 12),
		.n_packets = get_be32(p->body + 16),
		.n_bytes = get_be32(p->body + 20),
	};
	return ERR_OK;
}

enum err rtcp_rr_unpack(const struct rtcp_packet *p, uint32_t *ssrc)
{
	if (p->type != RTCP_RR || p->body_bytes < 4)
		return ERR_FORMAT;
	*ssrc = get_be32(p->body);
	return ERR_OK;
}

enum err rtcp_report_unpack(const struct rtcp_packet *p, unsigned i, struct rtcp_report *r)
{
	size_t at = (p->type == RTCP_SR ? SR_BYTES : 4) + (size_t)i * REPORT_BYTES;

	if (p->type != RTCP_SR && p->type != RTCP_RR)
		return ERR_FORMAT;
	if (i >= p->count)
		return ERR_END;
	if (p->body_bytes < at + REPORT_BYTES)
		return ERR_FORMAT;
	const uint8_t *b = p->body + at;
	uint32_t lost = get_be32(b + 4) & 0xffffff;
	*r = (struct rtcp_report){
		.ssrc = get_be32(b),
		.fraction_lost = b[4],
		.lost = lost & 0x800000 ? (int32_t)lost - 0x1000000 : (int32_t)lost,
		.highest_seq = get_be32(b + 8),
		.jitter = get_be32(b + 12),
		.last_sr = get_be32(b + 16),
		.delay_last_sr = get_be32(b + 20),
	};
	return ERR_OK;
}

enum err rtcp_sdes_next(const struct rtcp_packet *p, struct rtcp_sdes_at *at, struct rtcp_item *item)
{
	if (p->type != RTCP_SDES)
		return ERR_FORMAT;
	for (;;) {
		if (!at->inside) {
			if (at->chunk >= p->count)
				return ERR_END;
			if (p->body_bytes < at->offset + 4)
				return ERR_FORMAT;
			at->ssrc = get_be32(p->body + at->offset);
			at->offset += 4;
			at->inside = true;
		}
		if (at->offset >= p->body_bytes)
			return ERR_FORMAT; /* no null item */
		if (p->body[at->offset] == RTCP_SDES_END) {
			/* One to four zero bytes, to the next 32-bit word. */
			at->offset = (at->offset | 3) + 1;
			at->inside = false;
			at->chunk++;
			continue;
		}
		if (p->body_bytes < at->offset + 2 || p->body_bytes < at->offset + 2 + p->body[at->offset + 1])
			return ERR_FORMAT;
		const uint8_t *b = p->body + at->offset;
		*item = (struct rtcp_item){ .ssrc = at->ssrc, .type = b[0], .n_bytes = b[1], .text = b + 2 };
		at->offset += 2u + b[1];
		return ERR_OK;
	}
}

enum err rtcp_bye_unpack(const struct rtcp_packet *p, unsigned i, uint32_t *ssrc)
{
	if (p->type != RTCP_BYE)
		return ERR_FORMAT;
	if (i >= p->count)
		return ERR_END;
	if (p->body_bytes < 4 * ((size_t)i + 1))
		return ERR_FORMAT;
	*ssrc = get_be32(p->body + 4 * i);
	return ERR_OK;
}

enum err rtcp_bye_reason(const struct rtcp_packet *p, const uint8_t **text, uint8_t *n_bytes)
{
	size_t at = 4u * p->count;

	*text = NULL;
	*n_bytes = 0;
	if (p->type != RTCP_BYE || p->body_bytes < at)
		return ERR_FORMAT;
	if (p->body_bytes == at)
		return ERR_OK;
	if (p->body_bytes - at - 1 < p->body[at])
		return ERR_FORMAT;
	*n_bytes = p->body[at];
	*text = p->body + at + 1;
	return ERR_OK;
}

enum err rtcp_app_unpack(const struct rtcp_packet *p, struct rtcp_app *a)
{
	if (p->type != RTCP_APP || p->body_bytes < 8 || p->body_bytes % 4)
		return ERR_FORMAT;
	*a = (struct rtcp_app){ .ssrc = get_be32(p->body), .subtype = p->count, .data = p->body + 8, .data_bytes = p->body_bytes - 8 };
	memcpy(a->name, p->body + 4, sizeof(a->name));
	return ERR_OK;
}

/* ---- writing ---- */

/* Room for a packet of n_bytes (a multiple of 4), its header written; NULL if there is none. */
static uint8_t *begin(struct rtcp_writer *w, uint8_t type, unsigned count, size_t n_bytes)
{
	if (w->room_bytes - w->n_bytes < n_bytes || n_bytes > 4 * 65536u)
		return NULL;
	uint8_t *to = w->bytes + w->n_bytes;
	memset(to, 0, n_bytes);
	to[0] = (uint8_t)(VERSION << 6 | count);
	to[1] = type;
	put_be16(to + 2, (uint16_t)(n_bytes / 4 - 1));
	w->n_bytes += n_bytes;
	return to + HEADER_BYTES;
}

static void put_reports(uint8_t *to, const struct rtcp_report *reports, unsigned n)
{
	for (unsigned i = 0; i < n; i++, to += REPORT_BYTES) {
		const struct rtcp_report *r = &reports[i];

		put_be32(to, r->ssrc);
		put_be32(to + 4, (uint32_t)r->lost & 0xffffff);
		to[4] = r->fraction_lost;
		put_be32(to + 8, r->highest_seq);
		put_be32(to + 12, r->jitter);
		put_be32(to + 16, r->last_sr);
		put_be32(to + 20, r->delay_last_sr);
	}
}

enum err rtcp_put_sr(struct rtcp_writer *w, const struct rtcp_sr *sr, const struct rtcp_report *reports, unsigned n_reports)
{
	uint8_t *to = n_reports > RTCP_MAX_REPORTS ? NULL : begin(w, RTCP_SR, n_reports, HEADER_BYTES + SR_BYTES + n_reports * REPORT_BYTES);

	if (!to)
		return ERR_LIMIT;
	put_be32(to, sr->ssrc);
	put_be64(to + 4, sr->ntp);
	put_be32(to + 12, sr->ts);
	put_be32(to + 16, sr->n_packets);
	put_be32(to + 20, sr->n_bytes);
	put_reports(to + SR_BYTES, reports, n_reports);
	return ERR_OK;
}

enum err rtcp_put_rr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_report *reports, unsigned n_reports)
{
	uint8_t *to = n_reports > RTCP_MAX_REPORTS ? NULL : begin(w, RTCP_RR, n_reports, HEADER_BYTES + 4 + n_reports * REPORT_BYTES);

	if (!to)
		return ERR_LIMIT;
	put_be32(to, ssrc);
	put_reports(to + 4, reports, n_reports);
	return ERR_OK;
}

static uint8_t *put_item(uint8_t *to, uint8_t type, const char *text, size_t n_bytes)
{
	to[0] = type;
	to[1] = (uint8_t)n_bytes;
	memcpy(to + 2, text, n_bytes);
	return to + 2 + n_bytes;
}

enum err rtcp_put_sdes(struct rtcp_writer *w, uint32_t ssrc, const char *cname, const char *name)
{
	size_t cname_bytes = strlen(cname), name_bytes = name ? strlen(name) : 0;
	size_t n = HEADER_BYTES + 4 + 2 + cname_bytes + (name_bytes ? 2 + name_bytes : 0);

	if (cname_bytes == 0 || cname_bytes > RTCP_MAX_CNAME_BYTES || name_bytes > 255)
		return ERR_LIMIT;
	/* At least one zero ends the items. */
	uint8_t *to = begin(w, RTCP_SDES, 1, (n | 3) + 1);
	if (!to)
		return ERR_LIMIT;
	put_be32(to, ssrc);
	to = put_item(to + 4, RTCP_SDES_CNAME, cname, cname_bytes);
	if (name_bytes)
		put_item(to, RTCP_SDES_NAME, name, name_bytes);
	return ERR_OK;
}

enum err rtcp_put_bye(struct rtcp_writer *w, uint32_t ssrc, const char *reason)
{
	size_t reason_bytes = reason ? strlen(reason) : 0;

	if (reason_bytes > 255)
		return ERR_LIMIT;
	uint8_t *to = begin(w, RTCP_BYE, 1, HEADER_BYTES + 4 + (reason_bytes ? (1 + reason_bytes + 3) / 4 * 4 : 0));
	if (!to)
		return ERR_LIMIT;
	put_be32(to, ssrc);
	if (reason_bytes) {
		to[4] = (uint8_t)reason_bytes;
		memcpy(to + 5, reason, reason_bytes);
	}
	return ERR_OK;
}

enum err rtcp_put_app(struct rtcp_writer *w, uint32_t ssrc, uint8_t subtype, const char name[4], const void *data, size_t data_bytes)
{
	uint8_t *to = subtype > 31 || data_bytes % 4 ? NULL : begin(w, RTCP_APP, subtype, HEADER_BYTES + 8 + data_bytes);

	if (!to)
		return ERR_LIMIT;
	put_be32(to, ssrc);
	memcpy(to + 4, name, 4);
	if (data_bytes)
		memcpy(to + 8, data, data_bytes);
	return ERR_OK;
}

/* ---- APP "WEIR" ---- */

#define BINDING_FIXED_BYTES 64u
#define MAX_POS (INT64_MAX / 4)
#define MIN_RATE_HZ 1000u
#define MAX_RATE_HZ 768000u
#define MAX_CHANNELS 1024u

/* At most so many bytes of text, at a whole character. */
static size_t cut_name(const char *name, size_t most)
{
	size_t at = 0, n = strlen(name);

	while (at < n) {
		unsigned c = utf8_length((const uint8_t *)name + at, n - at);
		if (c == 0 || at + c > most)
			break;
		at += c;
	}
	return at;
}

size_t rtcp_binding_pack(const struct rtcp_binding *b, uint8_t data[static RTCP_MAX_BINDING_BYTES])
{
	size_t name_bytes = cut_name(b->name, RTCP_MAX_TRACK_NAME_BYTES);

	memset(data, 0, RTCP_MAX_BINDING_BYTES);
	put_be32(data, b->ssrc);
	put_be16(data + 4, b->track);
	data[6] = b->gen;
	data[7] = b->pt;
	data[8] = (uint8_t)b->codec;
	data[9] = b->sample;
	put_be16(data + 10, b->channels);
	put_be16(data + 12, b->first_channel);
	put_be16(data + 14, b->all_channels);
	put_be32(data + 16, b->rate_hz);
	put_be32(data + 20, b->ts0);
	put_be64(data + 24, (uint64_t)b->pos0);
	put_be32(data + 32, b->roc);
	put_be16(data + 36, b->seq);
	put_be16(data + 38, (uint16_t)name_bytes);
	put_be64(data + 40, (uint64_t)b->first_pos);
	put_be64(data + 48, (uint64_t)b->end_pos);
	put_be64(data + 56, (uint64_t)b->utc_ns);
	memcpy(data + BINDING_FIXED_BYTES, b->name, name_bytes);
	return BINDING_FIXED_BYTES + (name_bytes + 3) / 4 * 4;
}

static bool is_position(int64_t pos)
{
	return pos >= -MAX_POS && pos <= MAX_POS;
}

static bool is_weir(const struct rtcp_app *a, uint8_t subtype)
{
	return a->subtype == subtype && !memcmp(a->name, RTCP_WEIR_NAME, 4);
}

enum err rtcp_binding_unpack(const struct rtcp_app *a, struct rtcp_binding *b)
{
	const uint8_t *d = a->data;

	if (!is_weir(a, RTCP_WEIR_BINDING) || a->data_bytes < BINDING_FIXED_BYTES)
		return ERR_FORMAT;
	size_t name_bytes = get_be16(d + 38);
	if (name_bytes > RTCP_MAX_TRACK_NAME_BYTES || name_bytes > a->data_bytes - BINDING_FIXED_BYTES)
		return ERR_FORMAT;
	*b = (struct rtcp_binding){
		.ssrc = get_be32(d),
		.track = get_be16(d + 4),
		.gen = d[6],
		.pt = d[7],
		.codec = d[8],
		.sample = d[9],
		.channels = get_be16(d + 10),
		.first_channel = get_be16(d + 12),
		.all_channels = get_be16(d + 14),
		.rate_hz = get_be32(d + 16),
		.ts0 = get_be32(d + 20),
		.pos0 = (int64_t)get_be64(d + 24),
		.roc = get_be32(d + 32),
		.seq = get_be16(d + 36),
		.first_pos = (int64_t)get_be64(d + 40),
		.end_pos = (int64_t)get_be64(d + 48),
		.utc_ns = (int64_t)get_be64(d + 56),
	};
	memcpy(b->name, d + BINDING_FIXED_BYTES, name_bytes);
	if (memchr(b->name, '\0', name_bytes) || cut_name(b->name, name_bytes) != name_bytes)
		return ERR_FORMAT;
	bool sound = b->track != 0 && b->track != UINT16_MAX && b->pt <= 127 && b->codec > RTP_CODEC_NONE && b->codec < RTP_N_CODECS &&
		b->channels >= 1 && b->all_channels <= MAX_CHANNELS && b->first_channel + b->channels <= b->all_channels &&
		b->rate_hz >= MIN_RATE_HZ && b->rate_hz <= MAX_RATE_HZ && is_position(b->pos0) && is_position(b->first_pos) &&
		(b->end_pos == RTCP_UNKNOWN_POS || is_position(b->end_pos));
	return sound ? ERR_OK : ERR_FORMAT;
}

/* The last length that each bin takes, but for the last bin. */
static const uint8_t burst_last[RTCP_N_BURSTS - 1] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64 };

unsigned rtcp_burst_bin(unsigned n_packets)
{
	unsigned bin = 0;

	while (bin < RTCP_N_BURSTS - 1 && n_packets > burst_last[bin])
		bin++;
	return bin;
}

unsigned rtcp_burst_packets(unsigned bin)
{
	return bin < RTCP_N_BURSTS - 1 ? burst_last[bin] : 2u * burst_last[RTCP_N_BURSTS - 2];
}

void rtcp_loss_pack(const struct rtcp_loss *l, uint8_t data[static RTCP_LOSS_BYTES])
{
	memset(data, 0, RTCP_LOSS_BYTES);
	put_be32(data, l->ssrc);
	put_be16(data + 4, l->interval_ms);
	for (unsigned i = 0; i < RTCP_N_BINS; i++)
		put_be16(data + 8 + 2 * i, l->bins[i]);
	put_be32(data + 16, l->expected);
	put_be32(data + 20, l->lost);
	put_be32(data + 24, l->repaired);
	put_be32(data + 28, l->late);
	for (unsigned i = 0; i < RTCP_N_BURSTS; i++)
		put_be16(data + 32 + 2 * i, l->bursts[i]);
	put_be32(data + 64, l->jitter_us);
	put_be32(data + 68, l->depth_us);
	put_be32(data + 72, l->last_sr);
	put_be32(data + 76, l->delay_last_sr);
}

enum err rtcp_loss_unpack(const struct rtcp_app *a, struct rtcp_loss *l)
{
	const uint8_t *d = a->data;

	if (!is_weir(a, RTCP_WEIR_LOSS) || a->data_bytes < RTCP_LOSS_BYTES)
		return ERR_FORMAT;
	*l = (struct rtcp_loss){
		.ssrc = get_be32(d),
		.interval_ms = get_be16(d + 4),
		.expected = get_be32(d + 16),
		.lost = get_be32(d + 20),
		.repaired = get_be32(d + 24),
		.late = get_be32(d + 28),
		.jitter_us = get_be32(d + 64),
		.depth_us = get_be32(d + 68),
		.last_sr = get_be32(d + 72),
		.delay_last_sr = get_be32(d + 76),
	};
	for (unsigned i = 0; i < RTCP_N_BINS; i++)
		l->bins[i] = get_be16(d + 8 + 2 * i);
	for (unsigned i = 0; i < RTCP_N_BURSTS; i++)
		l->bursts[i] = get_be16(d + 32 + 2 * i);
	return l->lost <= l->expected && l->repaired <= l->lost ? ERR_OK : ERR_FORMAT;
}

void rtcp_ping_pack(const struct rtcp_ping *p, uint8_t data[static RTCP_PING_BYTES])
{
	put_be32(data, p->ssrc);
	put_be32(data + 4, (uint32_t)(p->token >> 32));
	put_be32(data + 8, (uint32_t)p->token);
}

enum err rtcp_ping_unpack(const struct rtcp_app *a, uint8_t subtype, struct rtcp_ping *p)
{
	if (!is_weir(a, subtype) || a->data_bytes < RTCP_PING_BYTES)
		return ERR_FORMAT;
	*p = (struct rtcp_ping){ get_be32(a->data), (uint64_t)get_be32(a->data + 4) << 32 | get_be32(a->data + 8) };
	return ERR_OK;
}

/* ---- time ---- */

#define NTP_EPOCH_S 2208988800LL     /* 1900 to 1970 */
#define MAX_ROUND_TRIP_NS (60 * UNITS_NS_PER_S)

uint64_t rtcp_ntp(int64_t utc_ns)
{
	int64_t s = utc_ns / UNITS_NS_PER_S, rest_ns = utc_ns % UNITS_NS_PER_S;

	if (rest_ns < 0) {
		rest_ns += UNITS_NS_PER_S;
		s--;
	}
	uint64_t fraction = (((uint64_t)rest_ns << 32) + UNITS_NS_PER_S / 2) / (uint64_t)UNITS_NS_PER_S;
	return ((uint64_t)(s + NTP_EPOCH_S) << 32) + fraction;
}

int64_t rtcp_ntp_utc_ns(uint64_t ntp)
{
	int64_t s = (int64_t)(ntp >> 32) - NTP_EPOCH_S;
	uint64_t rest = ((ntp & 0xffffffff) * (uint64_t)UNITS_NS_PER_S + (1u << 31)) >> 32;

	return s * UNITS_NS_PER_S + (int64_t)rest;
}

int64_t rtcp_round_trip_ns(uint64_t ntp_now, uint32_t last_sr, uint32_t delay_last_sr)
{
	if (last_sr == 0)
		return -1;
	uint32_t gone = rtcp_ntp_middle(ntp_now) - last_sr - delay_last_sr;
	int64_t ns = units_scale(gone, UNITS_NS_PER_S, 65536);
	return ns <= MAX_ROUND_TRIP_NS ? ns : -1;
}

/* ---- what a receiver counts ---- */

void rtcp_reception_take(struct rtcp_reception *r, uint16_t seq, uint32_t ts, int64_t arrival_ns, uint32_t clock_hz)
{
	uint32_t arrival = (uint32_t)units_from_ns(arrival_ns, clock_hz, 1);
	uint32_t transit = arrival - ts;
	int64_t n = rtp_unwrap_seq(&r->seq, seq);

	if (r->started) {
		int32_t d = (int32_t)(transit - r->transit);
		r->jitter += ((d < 0 ? -(double)d : (double)d) - r->jitter) / 16;
		if (n < r->base_seq)
			r->base_seq = n;
	} else {
		r->base_seq = n;
	}
	r->transit = transit;
	r->n_received++;
	r->started = true;
}

void rtcp_reception_sr(struct rtcp_reception *r, const struct rtcp_sr *sr, int64_t arrival_ns)
{
	r->last_sr = rtcp_ntp_middle(sr->ntp);
	r->sr_arrival_ns = arrival_ns;
}

static uint64_t expected(const struct rtcp_reception *r)
{
	return r->started ? (uint64_t)(r->seq.highest - r->base_seq + 1) : 0;
}

int64_t rtcp_reception_lost(const struct rtcp_reception *r)
{
	return (int64_t)(expected(r) - r->n_received);
}

struct rtcp_report rtcp_reception_report(struct rtcp_reception *r, uint32_t ssrc, int64_t now_ns)
{
	uint64_t all = expected(r);
	int64_t lost = rtcp_reception_lost(r);
	uint64_t interval = all - r->expected_prior;
	int64_t interval_lost = (int64_t)(interval - (r->n_received - r->received_prior));
	uint32_t fraction = interval && interval_lost > 0 ? (uint32_t)(((uint64_t)interval_lost << 8) / interval) : 0;
	int64_t gone = r->last_sr ? units_scale(now_ns - r->sr_arrival_ns, 65536, UNITS_NS_PER_S) : 0;

	r->expected_prior = all;
	r->received_prior = r->n_received;
	return (struct rtcp_report){
		.ssrc = ssrc,
		.fraction_lost = (uint8_t)(fraction > 255 ? 255 : fraction),
		.lost = lost > MAX_LOST ? MAX_LOST : lost < -MAX_LOST - 1 ? -MAX_LOST - 1 : (int32_t)lost,
		.highest_seq = (uint32_t)(r->seq.highest - 0x10000), /* the unwrapped begin one turn up */
		.jitter = (uint32_t)r->jitter,
		.last_sr = r->last_sr,
		.delay_last_sr = gone < 0 ? 0 : gone > UINT32_MAX ? UINT32_MAX : (uint32_t)gone,
	};
}

/* ---- when to send ---- */

#define BANDWIDTH_FRACTION 0.05
#define SENDERS_FRACTION 0.25
#define COMPENSATION 1.21828182845904524 /* e − 3/2 */

int64_t rtcp_timer_interval_ns(const struct rtcp_timer *t, double random)
{
	double bytes_per_s = t->bandwidth_bps * BANDWIDTH_FRACTION / 8;
	double least_s = (double)RTCP_MIN_INTERVAL_NS / (double)UNITS_NS_PER_S;
	double n = t->n_members;

	if (t->reduced_minimum && t->bandwidth_bps > 0 && 360e3 / t->bandwidth_bps < least_s)
		least_s = 360e3 / t->bandwidth_bps;
	if (t->initial)
		least_s /= 2;
	if (t->n_senders <= n * SENDERS_FRACTION) {
		bytes_per_s *= t->we_send ? SENDERS_FRACTION : 1 - SENDERS_FRACTION;
		n = t->we_send ? t->n_senders : n - t->n_senders;
	}
	double s = bytes_per_s > 0 ? t->average_bytes * n / bytes_per_s : least_s;
	if (s < least_s)
		s = least_s;
	/* So slow a session is not heard of again in any case. */
	if (s > 86400)
		s = 86400;
	return (int64_t)(s * (random + 0.5) / COMPENSATION * (double)UNITS_NS_PER_S);
}

void rtcp_timer_init(struct rtcp_timer *t, double bandwidth_bps, bool we_send, size_t first_bytes, int64_t now_ns, double random)
{
	*t = (struct rtcp_timer){
		.bandwidth_bps = bandwidth_bps,
		.we_send = we_send,
		.initial = true,
		.n_members = 1, .n_members_before = 1, .n_senders = we_send ? 1 : 0,
		.average_bytes = (double)first_bytes,
		.last_ns = now_ns,
	};
	t->next_ns = now_ns + rtcp_timer_interval_ns(t, random);
}

bool rtcp_timer_due(struct rtcp_timer *t, int64_t now_ns, double random)
{
	if (now_ns < t->next_ns)
		return false;
	int64_t at_ns = t->last_ns + rtcp_timer_interval_ns(t, random);
	t->n_members_before = t->n_members;
	if (at_ns <= now_ns)
		return true;
	t->next_ns = at_ns;
	return false;
}

void rtcp_timer_sent(struct rtcp_timer *t, size_t n_bytes, int64_t now_ns, double random)
{
	rtcp_timer_heard(t, n_bytes);
	t->last_ns = now_ns;
	t->initial = false;
	t->next_ns = now_ns + rtcp_timer_interval_ns(t, random);
}

void rtcp_timer_heard(struct rtcp_timer *t, size_t n_bytes)
{
	t->average_bytes += ((double)n_bytes - t->average_bytes) / 16;
}

void rtcp_timer_members(struct rtcp_timer *t, unsigned n_members, unsigned n_senders, int64_t now_ns)
{
	t->n_members = n_members ? n_members : 1;
	t->n_senders = n_senders;
	if (t->n_members >= t->n_members_before)
		return;
	double share = (double)t->n_members / t->n_members_before;
	t->next_ns = now_ns + (int64_t)(share * (double)(t->next_ns - now_ns));
	t->last_ns = now_ns - (int64_t)(share * (double)(now_ns - t->last_ns));
	t->n_members_before = t->n_members;
}
