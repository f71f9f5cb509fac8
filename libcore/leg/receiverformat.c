#include "leg/receiverformat.h"

#include "net/opustoc.h"
#include "net/red.h"

#include <stdio.h>

#define PROVEN_HZ 48000u                   /* the clock of PCM that only proves its size */

void receiverformat_sdp(struct receiver_port *p, const struct sdp_media *m)
{
	for (unsigned i = 0; i < m->n_formats; i++) {
		const struct sdp_format *f = &m->formats[i];
		char stereo[8];
		if (f->rtp.codec == RTP_CODEC_NONE)
			continue;
		p->formats[f->pt] = f->rtp;
		/* The rtpmap always says 2; what it is, the parameters say (RFC 7587 section 7). */
		if (f->rtp.codec == RTP_CODEC_OPUS) {
			const char *says = sdp_fmtp(f->fmtp, "sprop-stereo", stereo, sizeof(stereo));
			p->formats[f->pt].channels = says ? (says[0] == '1' ? 2 : 1) : 0;
		}
	}
	if (m->label[0])
		snprintf(p->label, sizeof(p->label), "%s", m->label);
}

struct rtp receiverformat_inside(const struct rtp *p)
{
	struct red_block blocks[RED_BLOCKS_MAX];
	struct rtp in = *p;
	struct err_why why;
	unsigned n;

	if (red_parse(blocks, &n, p->ts, p->payload, p->payload_bytes, &why))
		return in;
	in.pt = blocks[n - 1].pt;
	in.payload = blocks[n - 1].data;
	in.payload_bytes = blocks[n - 1].n_bytes;
	return in;
}

uint32_t receiverformat_opus_frames(const struct rtp *p)
{
	return opustoc_frames(p->payload, p->payload_bytes);
}

static uint16_t opus_channels(const struct rtp *p)
{
	return (uint16_t)opustoc_channels(p->payload, p->payload_bytes);
}

/*
 * What two packets in sequence prove: their sizes against the step of the timestamp.  Some senders take the encoder's delay off
 * the first packet of Opus, so that the step behind it is short.
 */
static bool prove(const struct rtp *a, const struct rtp *b, struct rtp_format *f)
{
	uint32_t step = b->ts - a->ts;
	uint32_t samples = receiverformat_opus_frames(a);

	if (!step || step > 48000 * 2)
		return false;
	/* Two bytes a frame are 768 kb/s at 48 kHz, and Opus ends at 510. */
	size_t frame = a->payload_bytes / step;
	if (frame < 2 || a->payload_bytes % step) {
		*f = (struct rtp_format){ .codec = RTP_CODEC_OPUS, .clock_hz = RTP_OPUS_HZ, .channels = opus_channels(a) };
		return samples > 0 && (samples == step || (step < samples && receiverformat_opus_frames(b) == samples));
	}
	/* Stereo L24 rather than three channels of L16, and so on: 24 bits where both would do for an even number. */
	if (frame % 3 == 0 && frame / 3 <= 8 && (frame % 2 || frame / 3 % 2 == 0))
		*f = (struct rtp_format){ .codec = RTP_CODEC_L24, .clock_hz = PROVEN_HZ, .channels = (uint16_t)(frame / 3) };
	else if (frame % 2 == 0 && frame / 2 <= 8)
		*f = (struct rtp_format){ .codec = RTP_CODEC_L16, .clock_hz = PROVEN_HZ, .channels = (uint16_t)(frame / 2) };
	else
		return false;
	return true;
}

bool receiverformat_find(const struct receiver_port *port, const struct rtcp_binding *bound, const struct rtp *p, const struct rtp *before,
	struct rtp_format *f)
{
	struct rtp in = *p;

	if (bound) {
		*f = (struct rtp_format){ bound->codec, bound->rate_hz, bound->channels };
		return f->codec == RTP_CODEC_OPUS || f->codec == RTP_CODEC_L16 || f->codec == RTP_CODEC_L24;
	}
	*f = port->formats[p->pt];
	if (f->codec == RTP_CODEC_RED) {
		in = receiverformat_inside(p);
		*f = port->formats[in.pt & 127];
	}
	if (f->codec == RTP_CODEC_NONE && p->pt >= 96)
		*f = port->any;
	if (f->codec == RTP_CODEC_NONE && !rtp_static_format(p->pt, f) && (p->pt < 96 || !before || !prove(before, p, f)))
		return false;
	if (f->codec == RTP_CODEC_OPUS) {
		f->clock_hz = RTP_OPUS_HZ;
		if (!f->channels || (f->channels == 1 && opus_channels(&in) == 2))
			f->channels = opus_channels(&in);
	}
	if (!f->channels)
		f->channels = 2;
	if (!f->clock_hz)
		f->clock_hz = PROVEN_HZ;
	return f->codec != RTP_CODEC_RED;
}
