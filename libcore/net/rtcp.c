#include "net/rtcp.h"

#include "base/bytes.h"

#include <string.h>

#define VERSION 2u
#define HEADER_BYTES 4u
#define SR_BYTES 24u                 /* SSRC and sender's figures, behind the header */
#define REPORT_BYTES 24u

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

/* ---- time ---- */

#define NTP_EPOCH_S 2208988800LL     /* 1900 to 1970 */
#define NTP_ERA_S (1LL << 32)        /* the seconds wrap in 2036: before 1968 is after it (RFC 4330 section 3) */
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
	int64_t s = (int64_t)(ntp >> 32) - NTP_EPOCH_S + (ntp >> 63 ? 0 : NTP_ERA_S);
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
