#include "net/packer.h"

#include "net/opustoc.h"

#include <string.h>

#define LEAST_OPUS_BYTES 3u /* shorter ones are DTX: nothing is sent for them (RFC 7587 section 3.1.3) */
#define USUAL_MS 5u

enum err packer_init(struct packer *p, const struct track *t, const struct packer_options *o, struct err_why *why)
{
	char codec[8];

	memset(p, 0, sizeof(*p));
	p->o = *o;
	p->sample = t->sample;
	p->track_channels = t->channels;
	p->clock_hz = track_rate_hz(t);
	p->seq = o->seq;
	p->seq_unwrapped = o->seq;
	p->marker = true;
	if (o->codec == RTP_CODEC_OPUS) {
		if (!track_is_opus(t) || t->channels > 2)
			return err_say(why, ERR_ARG, "opus", "takes a track of Opus with 1 or 2 channels, this is %s with %u", track_codec_name(t->codec, codec), t->channels);
		return ERR_OK;
	}
	p->sample_bytes = rtp_codec_sample_bytes(o->codec);
	p->frame_bytes = p->sample_bytes * o->channels;
	p->track_frame_bytes = t->frame_bytes;
	if (!p->sample_bytes || !track_is_pcm(t))
		return err_say(why, ERR_ARG, rtp_codec_name(o->codec), "does not carry %s", track_codec_name(t->codec, codec));
	if (t->rate_den != 1)
		return err_say(why, ERR_ARG, rtp_codec_name(o->codec), "a rate of %u/%u Hz is no whole number: resample it", t->rate_num, t->rate_den);
	if (o->channels < 1 || o->channels > PACKER_MAX_CHANNELS || o->first_channel + o->channels > t->channels)
		return err_say(why, ERR_ARG, rtp_codec_name(o->codec), "%u channels: a flow has 1 to %u of the track's %u", o->channels, PACKER_MAX_CHANNELS, t->channels);
	if (o->max_payload_bytes > PACKER_PENDING_BYTES || o->packet_frames < 1 || (uint64_t)o->packet_frames * p->frame_bytes > o->max_payload_bytes)
		return err_say(why, ERR_ARG, "packet time", "%u frames of %u bytes: a packet holds 1 to %zu", o->packet_frames, p->frame_bytes, o->max_payload_bytes / p->frame_bytes);
	return convert_init(&p->convert, p->sample, o->codec == RTP_CODEC_L16 ? SAMPLE_S16 : SAMPLE_S24, false, o->ssrc);
}

uint32_t packer_usual_frames(uint32_t block_frames, uint32_t rate_hz, unsigned frame_bytes, size_t payload_bytes)
{
	uint32_t fit = (uint32_t)(payload_bytes / frame_bytes), ms_frames = rate_hz / 1000;

	if (block_frames && block_frames <= fit)
		return block_frames;
	for (unsigned ms = USUAL_MS; ms >= 1 && ms_frames; ms--) {
		if (ms * ms_frames <= fit)
			return ms * ms_frames;
	}
	return fit ? fit : 1;
}

size_t packer_max_bytes(const struct packer *p)
{
	return RTP_HEADER_BYTES + (p->o.codec == RTP_CODEC_OPUS ? PACKER_MAX_OPUS_BYTES : p->o.max_payload_bytes);
}

size_t packer_bound_bytes(const struct packer *p, const struct packet *in)
{
	if (p->o.codec == RTP_CODEC_OPUS) {
		size_t n = p->o.history && in->payload_bytes < p->o.max_payload_bytes ? p->o.max_payload_bytes : in->payload_bytes;
		return RTP_HEADER_BYTES + n;
	}
	/* A short one before it, and a rest. */
	size_t n_packets = in->dur / p->o.packet_frames + 3;
	return n_packets * RTP_HEADER_BYTES + ((size_t)in->dur + p->o.packet_frames) * p->frame_bytes;
}

void packer_put(struct packer *p, const struct packet *in)
{
	p->in = *in;
	p->in_frames = 0;
	p->has_in = true;
}

void packer_gap(struct packer *p)
{
	p->marker = true;
	if (p->o.history)
		red_history_clear(p->o.history);
}

/* The header, the numbers, the counts: payload_bytes lie behind it already. */
static void finish(struct packer *p, uint8_t pt, int64_t pos, uint32_t dur, size_t payload_bytes, uint8_t *to, struct packer_out *out)
{
	*out = (struct packer_out){
		.n_bytes = RTP_HEADER_BYTES + payload_bytes,
		.payload_bytes = payload_bytes,
		.pos = pos, .dur = dur,
		.line = p->line0 + (pos - p->pos0),
		.seq = p->seq, .ts = packer_ts(p, pos),
	};
	struct rtp head = { .marker = p->marker, .pt = pt, .seq = p->seq, .ts = out->ts, .ssrc = p->o.ssrc };
	(void)rtp_pack(&head, to, RTP_HEADER_BYTES);
	p->seq++;
	p->seq_unwrapped++;
	p->marker = false;
	p->next_pos = pos + dur;
	p->n_packets++;
	p->n_payload_bytes += payload_bytes;
}

/* Where the stream goes on; holes have their marker, and a timeline that began anew is not shown. */
static void place(struct packer *p, int64_t pos)
{
	bool skips = p->started && pos > p->next_pos && (uint64_t)pos - (uint64_t)p->next_pos > (uint64_t)PACKER_MAX_HOLE_S * p->clock_hz;
	bool anew = skips || pos < p->next_pos || ((p->in.flags & PACKET_DISCONT) && pos != p->next_pos);

	p->n_skipped += skips;
	if (!p->started) {
		p->started = true;
		p->pos0 = p->line0 = pos;
		p->ts0 = p->o.ts;
		p->next_pos = pos;
	} else if (anew) {
		p->ts0 = packer_ts(p, p->next_pos);
		p->line0 += p->next_pos - p->pos0;
		p->pos0 = pos;
		packer_gap(p);
	} else if (pos > p->next_pos) {
		packer_gap(p);
	}
}

static enum err take_opus(struct packer *p, const struct red_choice *choice, uint8_t *to, struct packer_out *out)
{
	const struct packet *k = &p->in;
	uint8_t pt = p->o.pt;
	size_t n = 0;

	p->has_in = false;
	if (k->payload_bytes < LEAST_OPUS_BYTES) {
		p->marker = true;
		return ERR_AGAIN;
	}
	/* What it says of its length, all that follows is paced by. */
	uint32_t n_frames = opustoc_frames(k->payload, k->payload_bytes);
	if (k->payload_bytes > PACKER_MAX_OPUS_BYTES || k->dur > (n_frames ? n_frames : OPUSTOC_MAX_FRAMES)) {
		p->n_refused++;
		return ERR_AGAIN;
	}
	place(p, k->pos);
	if (p->o.history && choice)
		n = red_history_pack(p->o.history, choice, packer_ts(p, k->pos), k->payload, k->payload_bytes, to + RTP_HEADER_BYTES, p->o.max_payload_bytes);
	if (n) {
		pt = p->o.red_pt;
	} else {
		n = k->payload_bytes;
		memcpy(to + RTP_HEADER_BYTES, k->payload, n);
	}
	finish(p, pt, k->pos, k->dur, n, to, out);
	return ERR_OK;
}

/* n_frames of what was put in, from its frame `at`, as they go on the wire. */
static void convert(struct packer *p, uint32_t at, uint32_t n_frames, uint8_t *to)
{
	const uint8_t *from = p->in.payload + (size_t)at * p->track_frame_bytes;
	size_t n_samples = (size_t)n_frames * p->o.channels;

	if (p->o.channels != p->track_channels) {
		unsigned sample_bytes = track_sample_bytes(p->sample);
		size_t some_bytes = (size_t)p->o.channels * sample_bytes;
		uint8_t *s = p->scratch;

		from += (size_t)p->o.first_channel * sample_bytes;
		for (uint32_t i = 0; i < n_frames; i++, s += some_bytes, from += p->track_frame_bytes)
			memcpy(s, from, some_bytes);
		from = p->scratch;
	}
	p->clipped_samples += convert_run(&p->convert, to, from, n_samples);
	convert_swap(to, to, n_samples, p->sample_bytes);
}

enum err packer_flush(struct packer *p, uint8_t *to, struct packer_out *out)
{
	uint32_t n = p->pending_frames;

	if (n == 0)
		return ERR_AGAIN;
	memcpy(to + RTP_HEADER_BYTES, p->pending, (size_t)n * p->frame_bytes);
	p->pending_frames = 0;
	finish(p, p->o.pt, p->pending_pos, n, (size_t)n * p->frame_bytes, to, out);
	return ERR_OK;
}

static enum err take_pcm(struct packer *p, uint8_t *to, struct packer_out *out)
{
	uint32_t left = p->in.dur - p->in_frames, whole = p->o.packet_frames;
	int64_t pos = p->in.pos + p->in_frames;

	if (p->in_frames == 0) {
		if ((uint64_t)p->in.dur * p->track_frame_bytes > p->in.payload_bytes) {
			p->has_in = false;
			p->n_refused++;
			return ERR_AGAIN;
		}
		/* What waits from before a hole goes first. */
		if (p->pending_frames && p->pending_pos + p->pending_frames != pos)
			return packer_flush(p, to, out);
		if (!p->pending_frames)
			place(p, pos);
	}
	if (p->o.whole_blocks && left) {
		uint32_t n_packets = (left + whole - 1) / whole;
		whole = (left + n_packets - 1) / n_packets;
	}
	uint32_t missing = whole - p->pending_frames;
	if (left < missing || left == 0) {
		if (left && !p->pending_frames)
			p->pending_pos = pos;
		if (left)
			convert(p, p->in_frames, left, p->pending + (size_t)p->pending_frames * p->frame_bytes);
		p->pending_frames += left;
		p->has_in = false;
		return ERR_AGAIN;
	}
	uint8_t *payload = to + RTP_HEADER_BYTES;
	size_t waiting_bytes = (size_t)p->pending_frames * p->frame_bytes;
	int64_t begin_pos = p->pending_frames ? p->pending_pos : pos;
	memcpy(payload, p->pending, waiting_bytes);
	convert(p, p->in_frames, missing, payload + waiting_bytes);
	p->in_frames += missing;
	p->pending_frames = 0;
	finish(p, p->o.pt, begin_pos, whole, (size_t)whole * p->frame_bytes, to, out);
	return ERR_OK;
}

enum err packer_take(struct packer *p, const struct red_choice *choice, uint8_t *to, struct packer_out *out)
{
	if (!p->has_in)
		return ERR_AGAIN;
	return p->o.codec == RTP_CODEC_OPUS ? take_opus(p, choice, to, out) : take_pcm(p, to, out);
}
