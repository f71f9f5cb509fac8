#include "net/rtcpweir.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <string.h>

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

size_t rtcpweir_binding_pack(const struct rtcp_binding *b, uint8_t data[static RTCP_MAX_BINDING_BYTES])
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

enum err rtcpweir_binding_unpack(const struct rtcp_app *a, struct rtcp_binding *b)
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
		b->rate_hz >= MIN_RATE_HZ && b->rate_hz <= MAX_RATE_HZ && (b->codec != RTP_CODEC_OPUS || b->rate_hz == RTP_OPUS_HZ) && is_position(b->pos0) && is_position(b->first_pos) &&
		(b->end_pos == RTCP_UNKNOWN_POS || is_position(b->end_pos));
	return sound ? ERR_OK : ERR_FORMAT;
}

/* The last length that each bin takes, but for the last bin. */
static const uint8_t burst_last[RTCP_N_BURSTS - 1] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64 };

unsigned rtcpweir_burst_bin(unsigned n_packets)
{
	unsigned bin = 0;

	while (bin < RTCP_N_BURSTS - 1 && n_packets > burst_last[bin])
		bin++;
	return bin;
}

unsigned rtcpweir_burst_packets(unsigned bin)
{
	return bin < RTCP_N_BURSTS - 1 ? burst_last[bin] : 2u * burst_last[RTCP_N_BURSTS - 2];
}

void rtcpweir_loss_pack(const struct rtcp_loss *l, uint8_t data[static RTCP_LOSS_BYTES])
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

enum err rtcpweir_loss_unpack(const struct rtcp_app *a, struct rtcp_loss *l)
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

void rtcpweir_ping_pack(const struct rtcp_ping *p, uint8_t data[static RTCP_PING_BYTES])
{
	put_be32(data, p->ssrc);
	put_be32(data + 4, (uint32_t)(p->token >> 32));
	put_be32(data + 8, (uint32_t)p->token);
}

enum err rtcpweir_ping_unpack(const struct rtcp_app *a, uint8_t subtype, struct rtcp_ping *p)
{
	if (!is_weir(a, subtype) || a->data_bytes < RTCP_PING_BYTES)
		return ERR_FORMAT;
	*p = (struct rtcp_ping){ get_be32(a->data), (uint64_t)get_be32(a->data + 4) << 32 | get_be32(a->data + 8) };
	return ERR_OK;
}
