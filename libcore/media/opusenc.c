/*
 * Positions.  An Opus encoder delays by its look-ahead L (312 frames at 48 kHz, or 120): frame k that a decoder gives was
 * frame k − L of the input.  So the first packet of a segment that begins at frame s has pos s − L, and packets go on until
 * they cover the end; the last one is trimmed.  Everything outside is in 48 kHz frames, whatever rate the encoder runs at.
 *
 * A hole ends a segment: what is held comes out, trimmed; the hole is passed on; the encoder is reset and a new segment
 * begins, again L frames early.  A decoder that is reset with it (the packet is flagged DISCONT) and discards what lies
 * before the end of the hole is aligned to the sample.  Containers without trims in the middle (Ogg) need the time between
 * two segments to be whole 2.5 ms: silence in front of the new segment, up to 2.5 ms of it, makes it so.
 *
 * Behind the end the encoder is fed what linear prediction makes of the last 20 ms: a step there would be heard in front of
 * it, as noise spread over the last packet.
 */
#include "media/opusenc.h"

#include "base/units.h"
#include "dsp/convert.h"
#include "dsp/predict.h"
#include "media/opushead.h"
#include "media/opusmap.h"
#include "media/resampler.h"

#include <math.h>
#include <opus/opus.h>
#include <opus/opus_multistream.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(OPUSENC_VOIP == OPUS_APPLICATION_VOIP && OPUSENC_AUDIO == OPUS_APPLICATION_AUDIO &&
	OPUSENC_LOWDELAY == OPUS_APPLICATION_RESTRICTED_LOWDELAY, "the numbers are not those of libopus");

#define OUT_HZ 48000u
#define SHORTEST_FRAMES 120u      /* 2.5 ms: every packet is a multiple of it */
#define MAX_FRAME_BYTES 1275u     /* of one Opus frame, RFC 6716 3.2.1; 40 and 60 ms are packets of several frames */
#define MAX_TAIL_FRAMES (2880u + 312u) /* 60 ms and the look-ahead */
#define WORK_FRAMES 2048u         /* converted or resampled at a time */
#define MAX_BITRATE_BPS 512000    /* a channel */
#define MIN_BITRATE_BPS 500
#define DTX_BYTES 2u              /* a packet (of one stream) up to this long need not be sent */

struct opusenc {
	OpusEncoder *plain;       /* one stream; else: */
	OpusMSEncoder *multi;
	struct opusenc_options options;
	unsigned channels, streams;
	uint32_t in_num, in_den;  /* the source's rate */
	uint32_t coded_hz;        /* the encoder's rate */
	unsigned scale;           /* 48000 / coded_hz */
	unsigned packet_frames;   /* at coded_hz */
	uint32_t lookahead_frames; /* at 48 kHz */
	bool is_s16;              /* the encoder is fed s16, else f32 */
	size_t frame_bytes;       /* of that */
	const uint8_t *order;     /* order[k] is the source channel of coded channel k; NULL the same */
	struct convert convert;   /* source to f32 */
	bool converts;
	size_t source_frame_bytes;
	struct resampler *resampler; /* NULL none */
	float *converted;         /* WORK_FRAMES */
	float *resampled;         /* WORK_FRAMES */
	uint8_t *held;            /* packet_frames, filled up to: */
	unsigned held_frames;
	uint8_t *past;            /* the last frames fed, up to 2 · PREDICT_MAX_PAST, in the source's channel order */
	unsigned past_frames;
	uint8_t *tail;            /* what is fed behind the end: packet_frames and the look-ahead */
	uint8_t *coded;
	size_t coded_room_bytes;
	/* the segment */
	bool is_open, is_first;   /* frames have come; no packet has gone out in it */
	bool after_hole;          /* its first packet is DISCONT */
	bool any_packet;          /* of the whole track */
	int64_t first_pos;        /* of the segment, 48 kHz */
	int64_t source_pos;       /* next expected, the source's rate */
	int64_t segment_frames;   /* taken into the encoder, 48 kHz units */
	int64_t packet_pos;       /* of the next packet */
	int64_t end_pos;          /* once it is known, else INT64_MAX */
};

#define CTL(e, ...) \
	((e)->plain ? opus_encoder_ctl((e)->plain, __VA_ARGS__) : opus_multistream_encoder_ctl((e)->multi, __VA_ARGS__))

static int64_t out_units(const struct opusenc *e, int64_t source_frames)
{
	return units_scale(source_frames, (int64_t)OUT_HZ * e->in_den, e->in_num);
}

/* ---- packets ---- */

static enum err emit_gap(int64_t pos, int64_t end, const struct packet_gap *gap, opusenc_out_fn *out, void *user)
{
	uint8_t payload[PACKET_GAP_BYTES];
	enum err e = ERR_OK;

	packet_gap_pack(gap, payload);
	while (pos < end && !e) {
		struct packet p = packet_data(0, pos, end - pos > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - pos), sizeof(payload));
		p.type = PACKET_GAP;
		p.flags = 0;
		p.payload = payload;
		pos += p.dur;
		e = out(user, &p);
	}
	return e;
}

/* n_bytes of e->coded are the next packet. */
static enum err emit_packet(struct opusenc *e, uint32_t n_bytes, opusenc_out_fn *out, void *user)
{
	uint32_t dur = e->packet_frames * e->scale;
	bool is_last = e->end_pos <= e->packet_pos + dur;
	int64_t pos = e->packet_pos;

	e->packet_pos += dur;
	if (e->options.dtx && n_bytes <= DTX_BYTES * e->streams && !e->is_first && !is_last) {
		struct packet_gap dtx = { .reason = PACKET_GAP_DTX, .utc_ns = UNITS_UNKNOWN_NS };
		return emit_gap(pos, pos + dur, &dtx, out, user);
	}

	struct packet p = packet_data(0, pos, dur, n_bytes);
	if (e->is_first && e->after_hole)
		p.flags |= PACKET_DISCONT;
	if (is_last && e->end_pos - pos < (int64_t)dur) {
		p.dur = (uint32_t)(e->end_pos - pos);
		p.flags |= PACKET_TRIM;
	}
	p.payload = e->coded;
	e->is_first = false;
	e->any_packet = true;
	return out(user, &p);
}

/* Encode packet_frames frames. */
static enum err encode(struct opusenc *e, const void *frames, opusenc_out_fn *out, void *user)
{
	int n_frames = (int)e->packet_frames;
	opus_int32 room = (opus_int32)e->coded_room_bytes;
	opus_int32 n;

	if (e->plain)
		n = e->is_s16 ? opus_encode(e->plain, frames, n_frames, e->coded, room)
			      : opus_encode_float(e->plain, frames, n_frames, e->coded, room);
	else
		n = e->is_s16 ? opus_multistream_encode(e->multi, frames, n_frames, e->coded, room)
			      : opus_multistream_encode_float(e->multi, frames, n_frames, e->coded, room);
	if (n < 0)
		return ERR_CODEC;
	return emit_packet(e, (uint32_t)n, out, user);
}

static void hold(struct opusenc *e, const uint8_t *frames, unsigned n_frames)
{
	uint8_t *to = e->held + e->held_frames * e->frame_bytes;
	size_t n_channels = e->channels;

	e->held_frames += n_frames;
	if (!e->order) {
		memcpy(to, frames, n_frames * e->frame_bytes);
	} else if (e->is_s16) {
		const int16_t *a = (const int16_t *)(const void *)frames;
		int16_t *b = (int16_t *)(void *)to;
		for (unsigned i = 0; i < n_frames; i++, a += n_channels, b += n_channels)
			for (size_t c = 0; c < n_channels; c++)
				b[c] = a[e->order[c]];
	} else {
		const float *a = (const float *)(const void *)frames;
		float *b = (float *)(void *)to;
		for (unsigned i = 0; i < n_frames; i++, a += n_channels, b += n_channels)
			for (size_t c = 0; c < n_channels; c++)
				b[c] = a[e->order[c]];
	}
}

/* Keep the last PREDICT_MAX_PAST frames, for the end. */
static void remember(struct opusenc *e, const uint8_t *frames, size_t n_frames)
{
	if (n_frames > PREDICT_MAX_PAST) {
		frames += (n_frames - PREDICT_MAX_PAST) * e->frame_bytes;
		n_frames = PREDICT_MAX_PAST;
	}
	if (e->past_frames + n_frames > 2 * PREDICT_MAX_PAST) {
		unsigned keep = PREDICT_MAX_PAST - (unsigned)n_frames;
		memmove(e->past, e->past + (e->past_frames - keep) * e->frame_bytes, keep * e->frame_bytes);
		e->past_frames = keep;
	}
	memcpy(e->past + e->past_frames * e->frame_bytes, frames, n_frames * e->frame_bytes);
	e->past_frames += (unsigned)n_frames;
}

/* Frames in the encoder's own format and rate: whole packets straight from where they lie, the rest by way of e->held. */
static enum err take(struct opusenc *e, const void *frames, size_t n_frames, opusenc_out_fn *out, void *user)
{
	const uint8_t *at = frames;
	enum err err;

	e->segment_frames += (int64_t)n_frames * e->scale;
	remember(e, at, n_frames);
	while (n_frames) {
		size_t n = e->packet_frames - e->held_frames;
		if (e->held_frames == 0 && n_frames >= n && !e->order) {
			if ((err = encode(e, at, out, user)))
				return err;
		} else {
			n = n < n_frames ? n : n_frames;
			hold(e, at, (unsigned)n);
			if (e->held_frames == e->packet_frames) {
				e->held_frames = 0;
				if ((err = encode(e, e->held, out, user)))
					return err;
			}
		}
		at += n * e->frame_bytes;
		n_frames -= n;
	}
	return ERR_OK;
}

/* ---- segments ---- */

static enum err open_segment(struct opusenc *e, int64_t source_pos)
{
	int64_t pos = out_units(e, source_pos);

	/* Behind a hole frames stand where they would be without it, between the frames of 48 kHz too. */
	enum err err = e->resampler ? resampler_place(e->resampler, source_pos, &pos) : ERR_OK;
	if (err)
		return err;
	int64_t packet_pos = pos - e->lookahead_frames;
	uint32_t early = 0;

	if (e->any_packet && packet_pos >= e->end_pos - (int64_t)e->lookahead_frames) {
		/* Whole steps of 2.5 ms from the segment before. */
		int64_t rest = (packet_pos - e->packet_pos) % (int64_t)SHORTEST_FRAMES;
		early = (uint32_t)(rest < 0 ? rest + SHORTEST_FRAMES : rest);
	}
	e->is_open = e->is_first = true;
	e->first_pos = pos;
	e->segment_frames = 0;
	e->past_frames = 0;
	e->packet_pos = packet_pos - early;
	e->end_pos = INT64_MAX;
	e->held_frames = early / e->scale;
	memset(e->held, 0, e->held_frames * e->frame_bytes);
	return ERR_OK;
}

/* What the resampler still holds, into the encoder. */
static enum err drain_resampler(struct opusenc *e, opusenc_out_fn *out, void *user)
{
	enum err err;

	for (;;) {
		size_t made = WORK_FRAMES;
		if ((err = resampler_finish(e->resampler, e->resampled, &made)))
			return err;
		if (!made)
			return ERR_OK;
		if ((err = take(e, e->resampled, made, out, user)))
			return err;
	}
}

/* Fill the tail with n_frames that go on where the past ends, in the encoder's channel order. */
static void extend(struct opusenc *e, unsigned n_frames)
{
	float past[PREDICT_MAX_PAST], next[MAX_TAIL_FRAMES];
	unsigned n_past = e->past_frames < PREDICT_MAX_PAST ? e->past_frames : PREDICT_MAX_PAST;
	const uint8_t *from = e->past + (e->past_frames - n_past) * e->frame_bytes;

	for (unsigned c = 0; c < e->channels; c++) {
		size_t source = e->order ? e->order[c] : c;
		for (unsigned i = 0; i < n_past; i++) {
			size_t at = i * (size_t)e->channels + source;
			past[i] = e->is_s16 ? ((const int16_t *)(const void *)from)[at] / 32768.0f : ((const float *)(const void *)from)[at];
		}
		predict_extend(past, n_past, next, n_frames);
		for (unsigned i = 0; i < n_frames; i++) {
			size_t at = i * (size_t)e->channels + c;
			float y = next[i] > 1.0f ? 1.0f : next[i] < -1.0f ? -1.0f : next[i];
			if (e->is_s16)
				((int16_t *)(void *)e->tail)[at] = (int16_t)lrintf(y * 32767.0f);
			else
				((float *)(void *)e->tail)[at] = y;
		}
	}
}

/* Frames in the encoder's own channel order. */
static enum err feed(struct opusenc *e, const uint8_t *frames, unsigned n_frames, opusenc_out_fn *out, void *user)
{
	enum err err;

	while (n_frames) {
		unsigned room = e->packet_frames - e->held_frames;
		unsigned n = n_frames < room ? n_frames : room;
		memcpy(e->held + e->held_frames * e->frame_bytes, frames, n * e->frame_bytes);
		frames += n * e->frame_bytes;
		n_frames -= n;
		e->held_frames += n;
		if (e->held_frames < e->packet_frames)
			break;
		e->held_frames = 0;
		if ((err = encode(e, e->held, out, user)))
			return err;
	}
	return ERR_OK;
}

/*
 * A track so short that its last packet is not its first, and the look-ahead ends in it: there ffmpeg (5.1) forgets to skip.
 * Silence in front makes the look-ahead end where a packet ends.
 */
static enum err begin_earlier(struct opusenc *e, opusenc_out_fn *out, void *user)
{
	unsigned lookahead = e->lookahead_frames / e->scale, n_frames = e->held_frames;
	unsigned early = e->packet_frames - lookahead % e->packet_frames;

	if (e->any_packet || !e->is_first || lookahead < e->packet_frames || early == e->packet_frames || n_frames > early)
		return ERR_OK;
	memcpy(e->tail, e->held, n_frames * e->frame_bytes);
	memset(e->held, 0, early * e->frame_bytes);
	e->held_frames = early;
	e->packet_pos -= early * e->scale;
	return feed(e, e->tail, n_frames, out, user);
}

/* All packets of the segment come out; it is closed. */
static enum err close_segment(struct opusenc *e, opusenc_out_fn *out, void *user)
{
	enum err err;

	if (e->resampler && (err = drain_resampler(e, out, user)))
		return err;
	e->end_pos = e->first_pos + e->segment_frames;
	e->is_open = false;
	if ((err = begin_earlier(e, out, user)))
		return err;
	unsigned packet_dur = e->packet_frames * e->scale;
	int64_t n_packets = (e->end_pos - e->packet_pos + packet_dur - 1) / packet_dur;
	unsigned n_tail = n_packets > 0 ? (unsigned)n_packets * e->packet_frames - e->held_frames : 0;
	extend(e, n_tail);
	err = feed(e, e->tail, n_tail, out, user);
	e->held_frames = 0;
	return err;
}

/* The encoder forgets what it heard. */
static enum err forget(struct opusenc *e)
{
	e->after_hole = e->any_packet;
	return CTL(e, OPUS_RESET_STATE) == OPUS_OK ? ERR_OK : ERR_CODEC;
}

/* ---- the interface ---- */

enum err opusenc_write(struct opusenc *e, int64_t pos, const void *frames, size_t n_frames, opusenc_out_fn *out, void *user)
{
	const uint8_t *at = frames;
	enum err err;

	if (e->is_open && pos != e->source_pos) {
		/* The timeline was re-based. */
		if ((err = close_segment(e, out, user)) || (err = forget(e)))
			return err;
	}
	if (!e->is_open && (err = open_segment(e, pos)))
		return err;
	e->source_pos = pos + (int64_t)n_frames;
	if (!e->converts && !e->resampler)
		return take(e, frames, n_frames, out, user);

	while (n_frames) {
		size_t n = n_frames < WORK_FRAMES ? n_frames : WORK_FRAMES;
		const float *in = e->converted;
		if (e->converts)
			convert_run(&e->convert, e->converted, at, n * e->channels);
		else
			in = (const float *)(const void *)at;
		at += n * e->source_frame_bytes;
		n_frames -= n;
		if (!e->resampler) {
			if ((err = take(e, in, n, out, user)))
				return err;
			continue;
		}
		for (size_t made = WORK_FRAMES; n || made == WORK_FRAMES;) {
			size_t taken = n;
			made = WORK_FRAMES;
			if ((err = resampler_run(e->resampler, in, &taken, e->resampled, &made)))
				return err;
			in += taken * e->channels;
			n -= taken;
			if ((err = take(e, e->resampled, made, out, user)))
				return err;
		}
	}
	return ERR_OK;
}

enum err opusenc_gap(struct opusenc *e, int64_t pos, uint64_t n_frames, const struct packet_gap *gap, opusenc_out_fn *out, void *user)
{
	int64_t gap_pos = out_units(e, pos);
	int64_t gap_end = out_units(e, pos + (int64_t)n_frames);
	enum err err;

	if (e->is_open) {
		if ((err = close_segment(e, out, user)) || (err = forget(e)))
			return err;
		gap_pos = e->end_pos;
	}
	e->source_pos = pos + (int64_t)n_frames;
	return emit_gap(gap_pos, gap_end, gap, out, user);
}

enum err opusenc_finish(struct opusenc *e, opusenc_out_fn *out, void *user)
{
	enum err err;

	if (!e->is_open && e->any_packet)
		return ERR_OK;
	if (!e->is_open && (err = open_segment(e, e->source_pos)))
		return err;
	return close_segment(e, out, user);
}

/* ---- life ---- */

static bool is_opus_rate(const struct track *t)
{
	return t->rate_den == 1 && (t->rate_num == 48000 || t->rate_num == 24000 || t->rate_num == 16000 || t->rate_num == 12000 ||
					   t->rate_num == 8000);
}

/* 1 + 3 + 5 … channels, with or without two more: what mapping family 2 takes (RFC 8486 3.1). */
static bool is_ambisonic_count(unsigned channels)
{
	for (unsigned order = 0; order < 15; order++)
		if (channels == (order + 1) * (order + 1) || channels == (order + 1) * (order + 1) + 2)
			return true;
	return false;
}

static int choose_family(struct opusenc *e, const struct track *pcm, int asked)
{
	uint64_t mask = pcm->layout == TRACK_LAYOUT_WAVE ? pcm->wave_mask : 0;
	const uint8_t *order = opusmap_vorbis_order(e->channels, asked == 1 && !mask ? track_usual_mask(e->channels) : mask);
	int family = asked;

	if (family < 0) {
		if (pcm->layout == TRACK_LAYOUT_AMBISONIC && e->channels > 2 && is_ambisonic_count(e->channels))
			family = 2;
		else
			family = e->channels <= 2 ? 0 : order ? 1 : 255;
	}
	if (family == 1 && e->channels > 2)
		e->order = order;
	/* An order that changes nothing costs nothing. */
	bool same = true;
	for (unsigned c = 0; e->order && c < e->channels; c++)
		same = same && e->order[c] == c;
	if (same)
		e->order = NULL;
	return family;
}

static enum err check_options(const struct opusenc_options *o, unsigned channels, struct err_why *why)
{
	static const uint32_t frames_us[] = { 2500, 5000, 10000, 20000, 40000, 60000 };
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(frames_us); i++)
		found = found || frames_us[i] == o->frame_us;
	if (!found)
		return err_say(why, ERR_ARG, "Opus", "packets of %u µs: 2500, 5000, 10000, 20000, 40000 or 60000", o->frame_us);
	int32_t most = MAX_BITRATE_BPS * (int32_t)channels;
	if (o->bitrate_bps && (o->bitrate_bps < MIN_BITRATE_BPS || o->bitrate_bps > most))
		return err_say(why, ERR_ARG, "Opus", "%d bit/s for %u channel%s: %d to %d", o->bitrate_bps, channels,
			channels == 1 ? "" : "s", MIN_BITRATE_BPS, most);
	if (o->complexity < 0 || o->complexity > 10)
		return err_say(why, ERR_ARG, "Opus", "complexity %d: 0 to 10", o->complexity);
	if (o->expect_loss_pct < 0 || o->expect_loss_pct > 100)
		return err_say(why, ERR_ARG, "Opus", "an expected loss of %d%%: 0 to 100", o->expect_loss_pct);
	return ERR_OK;
}

static enum err open_codec(struct opusenc *e, struct opushead *head, int family, struct err_why *why)
{
	int error = OPUS_OK, streams = 1, coupled = (int)e->channels - 1;

	if (family == 0 || (family == 1 && e->channels <= 2)) {
		e->plain = opus_encoder_create((opus_int32)e->coded_hz, (int)e->channels, e->options.application, &error);
		head->mapping[1] = 1;
	} else {
		e->multi = opus_multistream_surround_encoder_create((opus_int32)e->coded_hz, (int)e->channels, family, &streams,
			&coupled, head->mapping, e->options.application, &error);
	}
	if (!e->plain && !e->multi)
		return err_say(why, error == OPUS_ALLOC_FAIL ? ERR_NOMEM : ERR_ARG, "Opus", "%u channels in mapping family %d: %s",
			e->channels, family, opus_strerror(error));
	e->streams = (unsigned)streams;
	head->channels = (uint8_t)e->channels;
	head->family = (uint8_t)family;
	head->streams = (uint8_t)streams;
	head->coupled = (uint8_t)coupled;
	return ERR_OK;
}

static enum err set_up_codec(struct opusenc *e, struct err_why *why)
{
	const struct opusenc_options *o = &e->options;
	opus_int32 lookahead = 0;
	int bad = OPUS_OK;

	bad |= CTL(e, OPUS_SET_BITRATE(o->bitrate_bps ? o->bitrate_bps : OPUS_AUTO));
	bad |= CTL(e, OPUS_SET_VBR(o->mode != OPUSENC_CBR));
	bad |= CTL(e, OPUS_SET_VBR_CONSTRAINT(o->mode == OPUSENC_CVBR));
	bad |= CTL(e, OPUS_SET_COMPLEXITY(o->complexity));
	bad |= CTL(e, OPUS_SET_INBAND_FEC(o->fec));
	bad |= CTL(e, OPUS_SET_PACKET_LOSS_PERC(o->expect_loss_pct));
	bad |= CTL(e, OPUS_SET_DTX(o->dtx));
	bad |= CTL(e, OPUS_GET_LOOKAHEAD(&lookahead));
	if (bad != OPUS_OK)
		return err_say(why, ERR_CODEC, "Opus", "a setting was refused");
	e->lookahead_frames = (uint32_t)lookahead * e->scale;
	return ERR_OK;
}

static enum err take_memory(struct opusenc *e, struct err_why *why)
{
	unsigned frames_in_packet = e->options.frame_us > 20000 ? e->options.frame_us / 20000 : 1;

	/* Each stream: its frames, a code byte, frame counts and lengths; self-delimited but the last. */
	e->coded_room_bytes = e->streams * (frames_in_packet * (MAX_FRAME_BYTES + 2u) + 4u);
	e->coded = malloc(e->coded_room_bytes);
	e->held = calloc(e->packet_frames, e->frame_bytes);
	e->tail = calloc(e->packet_frames + e->lookahead_frames / e->scale, e->frame_bytes);
	e->past = calloc(2 * PREDICT_MAX_PAST, e->frame_bytes);
	e->converted = e->converts ? calloc(WORK_FRAMES, e->channels * sizeof(float)) : NULL;
	e->resampled = e->resampler ? calloc(WORK_FRAMES, e->channels * sizeof(float)) : NULL;
	if (!e->coded || !e->held || !e->past || !e->tail || (e->converts && !e->converted) || (e->resampler && !e->resampled))
		return err_say(why, ERR_NOMEM, "Opus", "%s", err_text(ERR_NOMEM));
	return ERR_OK;
}

static enum err open_resampler(struct opusenc *e, struct err_why *why)
{
	uint64_t out_hz = (uint64_t)OUT_HZ * e->in_den;

	if (out_hz > UINT32_MAX)
		return err_say(why, ERR_LIMIT, "Opus", "a rate of %u/%u Hz cannot be resampled", e->in_num, e->in_den);
	struct resampler_options o = {
		.in_hz = e->in_num, .out_hz = (uint32_t)out_hz, .channels = (uint16_t)e->channels, .quality = RESAMPLER_VERY_HIGH,
	};
	return resampler_new(&e->resampler, &o, why);
}

static enum err announce(const struct opusenc *e, const struct track *pcm, struct opushead *head, struct track *coded,
	struct err_why *why)
{
	struct track t = { 0 };
	enum err err;

	head->preskip_frames = (uint16_t)e->lookahead_frames;
	head->original_rate_hz = pcm->original_rate_hz ? pcm->original_rate_hz : track_rate_hz(pcm);
	err = track_copy(&t, pcm);
	/* The packets are made here, whatever program wrote the file that the samples came from. */
	if (!err && track_tag(&t, "ENCODER"))
		err = track_add_tag(&t, "ENCODER", "weir " WEIR_VERSION, true);
	if (err || (err = opushead_to_track(head, &t))) {
		track_release(&t);
		return err_say(why, err, "Opus", "%s", err_text(err));
	}
	t.nominal_dur = e->packet_frames * e->scale;
	t.first_pos = out_units(e, pcm->first_pos);
	t.next_pos = t.first_pos - e->lookahead_frames;
	t.next_seq = 0;
	if (t.next_utc_ns != UNITS_UNKNOWN_NS)
		t.next_utc_ns -= units_to_ns(e->lookahead_frames, OUT_HZ, 1);
	t.largest_object_bytes = (uint32_t)e->coded_room_bytes;
	t.frame_bytes = 0;
	t.valid_bits = 0;
	*coded = t;
	return ERR_OK;
}

enum err opusenc_new(struct opusenc **out, const struct track *pcm, const struct opusenc_options *o, struct track *coded,
	struct err_why *why)
{
	struct opushead head = { 0 };
	struct opusenc *e = NULL;
	enum err err;

	*out = NULL;
	if (!track_is_pcm(pcm))
		return err_say(why, ERR_ARG, "Opus", "only PCM audio can be encoded");
	if (pcm->channels < 1 || pcm->channels > 255)
		return err_say(why, ERR_LIMIT, "Opus", "%u channels: 1 to 255", pcm->channels);
	if ((err = check_options(o, pcm->channels, why)))
		return err;

	e = calloc(1, sizeof(*e));
	if (!e)
		return err_say(why, ERR_NOMEM, "Opus", "%s", err_text(ERR_NOMEM));
	e->options = *o;
	e->channels = pcm->channels;
	e->in_num = pcm->rate_num;
	e->in_den = pcm->rate_den;
	e->source_pos = pcm->first_pos;
	e->source_frame_bytes = pcm->frame_bytes;
	bool resamples = !is_opus_rate(pcm);
	e->coded_hz = resamples ? OUT_HZ : pcm->rate_num;
	e->scale = OUT_HZ / e->coded_hz;
	e->packet_frames = (unsigned)((uint64_t)e->coded_hz * o->frame_us / 1000000u);
	e->is_s16 = pcm->sample == SAMPLE_S16 && !resamples;
	e->converts = !e->is_s16 && pcm->sample != SAMPLE_F32;
	e->frame_bytes = e->channels * (e->is_s16 ? sizeof(int16_t) : sizeof(float));

	int family = choose_family(e, pcm, o->family);
	if ((err = open_codec(e, &head, family, why)) || (err = set_up_codec(e, why)))
		goto out;
	if (e->converts && (err = convert_init(&e->convert, pcm->sample, SAMPLE_F32, false, 0)))
		goto out;
	if (resamples && (err = open_resampler(e, why)))
		goto out;
	if ((err = take_memory(e, why)) || (err = announce(e, pcm, &head, coded, why)))
		goto out;
	*out = e;
	e = NULL;
	err = ERR_OK;
out:
	opusenc_free(e);
	return err;
}

bool opusenc_resamples(const struct opusenc *e)
{
	return e->resampler != NULL;
}

void opusenc_free(struct opusenc *e)
{
	if (!e)
		return;
	if (e->plain)
		opus_encoder_destroy(e->plain);
	if (e->multi)
		opus_multistream_encoder_destroy(e->multi);
	resampler_free(e->resampler);
	free(e->converted);
	free(e->resampled);
	free(e->held);
	free(e->past);
	free(e->tail);
	free(e->coded);
	free(e);
}
