#include "media/opusdec.h"

#include "base/bytes.h"
#include "base/units.h"
#include "media/opusguard.h"
#include "media/opushead.h"
#include "media/opusmap.h"

#include <opus/opus.h>
#include <opus/opus_multistream.h>
#include <opus/opus_projection.h>
#include <stdlib.h>
#include <string.h>

#define OUT_HZ 48000
#define CELT_STEP_FRAMES 120      /* concealment goes in steps of 2.5 ms, */
#define SILK_STEP_FRAMES 480      /* where SILK is in it 10 ms (RFC 7845 4.1) */
#define MAX_STEP_FRAMES 960       /* libopus cuts longer ones up itself */

struct opusdec {
	OpusDecoder *plain;       /* one stream, one or two channels: a third of the cost of the multistream decoder */
	OpusMSDecoder *multi;
	OpusProjectionDecoder *projection;
	unsigned channels;
	bool as_s16;
	size_t frame_bytes;
	uint8_t *buffer;          /* OPUSDEC_MAX_FRAMES */
	int64_t pos;              /* of the next frame to be handed out */
	struct track coded;       /* what was announced; no TLVs */
	bool has_begun;           /* a packet came */
	uint8_t last_toc;         /* first byte of the last packet: its mode and frame size */
	bool has_last;
	struct opusguard guard;   /* of a plain decoder to f32 */
};

/* ---- what a packet says of itself ---- */

/* RFC 6716 3.1: configurations 0…11 are SILK, 12…15 hybrid, the rest CELT. */
static bool is_celt(uint8_t toc)
{
	return toc >> 3 >= 16;
}

/*
 * Has the packet a redundant copy (LBRR) of the frame before it?  RFC 6716 4.2.3: a SILK frame begins with, for each channel, one
 * voice flag for each 20 ms and one LBRR flag; these are coded as even chances, so they are the first bits of the frame.
 */
static bool has_fec(const uint8_t *packet, uint32_t n_bytes)
{
	const unsigned char *frames[48];
	opus_int16 sizes[48];
	unsigned char toc;

	if (n_bytes == 0 || is_celt(packet[0]))
		return false;
	if (opus_packet_parse(packet, (opus_int32)n_bytes, &toc, frames, sizes, NULL) < 1 || sizes[0] < 1)
		return false;
	int frame = opus_packet_get_samples_per_frame(packet, OUT_HZ);
	int n_flags = frame > 960 ? frame / 960 : 1;
	bool mid = frames[0][0] >> (7 - n_flags) & 1;
	bool side = opus_packet_get_nb_channels(packet) == 2 && frames[0][0] >> (6 - 2 * n_flags) & 1;
	return mid || side;
}

/* ---- libopus ---- */

#define CTL(d, ...)                                                                  \
	((d)->plain   ? opus_decoder_ctl((d)->plain, __VA_ARGS__)                    \
		: (d)->multi ? opus_multistream_decoder_ctl((d)->multi, __VA_ARGS__) \
			     : opus_projection_decoder_ctl((d)->projection, __VA_ARGS__))

/* Returns: frames, or libopus' error. */
static int decode(struct opusdec *d, const uint8_t *packet, uint32_t n_bytes, void *to, int n_frames, int fec)
{
	opus_int32 n = packet ? (opus_int32)n_bytes : 0;

	if (d->plain)
		return d->as_s16 ? opus_decode(d->plain, packet, n, to, n_frames, fec)
				 : opus_decode_float(d->plain, packet, n, to, n_frames, fec);
	if (d->multi)
		return d->as_s16 ? opus_multistream_decode(d->multi, packet, n, to, n_frames, fec)
				 : opus_multistream_decode_float(d->multi, packet, n, to, n_frames, fec);
	return d->as_s16 ? opus_projection_decode(d->projection, packet, n, to, n_frames, fec)
			 : opus_projection_decode_float(d->projection, packet, n, to, n_frames, fec);
}

void opusdec_reset(struct opusdec *d)
{
	CTL(d, OPUS_RESET_STATE);
	d->has_last = false;
	opusguard_reset(&d->guard);
}

/* ---- the interface ---- */

void opusdec_skip(struct opusdec *d, int64_t pos)
{
	opusdec_reset(d);
	if (pos > d->pos)
		d->pos = pos;
}

/* n_frames at `frames`, the first of them at pos: hand out those that the timeline wants. */
static void hand_out(struct opusdec *d, int64_t pos, size_t n_frames, const uint8_t *frames, struct opusdec_block *b)
{
	uint64_t skip = pos < d->pos ? (uint64_t)(d->pos - pos) : 0;

	if (skip > n_frames)
		skip = n_frames;
	if (pos > d->pos)
		d->pos = pos;
	b->pos = d->pos;
	b->n_frames = n_frames - (size_t)skip;
	b->frames = frames + skip * d->frame_bytes;
	d->pos += (int64_t)b->n_frames;
}

enum err opusdec_packet_into(struct opusdec *d, const struct packet *p, void *dst, size_t room_frames, struct opusdec_block *b)
{
	enum err e = ERR_OK;

	*b = (struct opusdec_block){ .pos = d->pos, .flags = p->flags & (PACKET_CONCEALED | PACKET_RECOVERED | PACKET_DISCONT) };
	if (p->flags & PACKET_DISCONT) {
		opusdec_reset(d);
		if (!track_is_preroll(&d->coded, d->pos, p->pos, !d->has_begun))
			d->pos = p->pos;
		else if (p->pos <= d->pos)
			b->flags &= (uint16_t)~PACKET_DISCONT; /* what comes out goes on where it was */
	}
	d->has_begun = true;
	if (p->payload_bytes == 0 && p->dur == 0)
		return ERR_OK;

	/* Straight to its place, unless frames in front of it are to go. */
	uint8_t *to = p->pos >= d->pos && room_frames && dst ? dst : d->buffer;
	int room = to == d->buffer || room_frames > OPUSDEC_MAX_FRAMES ? (int)OPUSDEC_MAX_FRAMES : (int)room_frames;
	if (to == dst && room < (int)OPUSDEC_MAX_FRAMES) {
		int needed = p->payload_bytes ? opus_packet_get_nb_samples(p->payload, (opus_int32)p->payload_bytes, OUT_HZ) : 0;
		if (needed < 1 || needed > room) {
			to = d->buffer;
			room = (int)OPUSDEC_MAX_FRAMES;
		}
	}
	int n = p->payload_bytes ? decode(d, p->payload, p->payload_bytes, to, room, 0) : OPUS_INVALID_PACKET;
	if (n >= 0) {
		d->last_toc = p->payload[0];
		d->has_last = true;
		if (d->plain && !d->as_s16)
			opusguard_take(&d->guard, p->payload, p->payload_bytes, (float *)(void *)to, (size_t)n, d->channels);
	} else {
		opusguard_lost(&d->guard);
		uint32_t want = p->dur < OPUSDEC_MAX_FRAMES ? p->dur : OPUSDEC_MAX_FRAMES;
		to = d->buffer;
		n = decode(d, NULL, 0, to, (int)units_round_up(want, CELT_STEP_FRAMES), 0);
		b->flags |= PACKET_CONCEALED;
		e = ERR_CODEC;
		if (n < 0)
			n = 0;
	}
	hand_out(d, p->pos, (uint32_t)n < p->dur ? (uint32_t)n : p->dur, to, b);
	return e;
}

enum err opusdec_packet(struct opusdec *d, const struct packet *p, struct opusdec_block *b)
{
	return opusdec_packet_into(d, p, NULL, 0, b);
}

enum err opusdec_conceal(struct opusdec *d, int64_t pos, uint64_t n_frames, const struct packet *next, struct opusdec_block *b)
{
	uint32_t step = MAX_STEP_FRAMES, unit = CELT_STEP_FRAMES, fec_frames = 0;
	int n;

	*b = (struct opusdec_block){ .pos = pos, .flags = PACKET_CONCEALED };
	if (n_frames == 0)
		return ERR_OK;
	opusguard_lost(&d->guard);
	if (d->has_last) {
		/* As the decoder would have gone on with the packets that are missing. */
		uint32_t frame = (uint32_t)opus_packet_get_samples_per_frame(&d->last_toc, OUT_HZ);
		step = frame < MAX_STEP_FRAMES ? frame : MAX_STEP_FRAMES;
		unit = is_celt(d->last_toc) ? CELT_STEP_FRAMES : SILK_STEP_FRAMES;
	}
	if (d->plain && next && !(next->flags & PACKET_DISCONT) && next->pos == pos + (int64_t)n_frames && d->has_last &&
		has_fec(next->payload, next->payload_bytes))
		fec_frames = (uint32_t)opus_packet_get_samples_per_frame(next->payload, OUT_HZ);

	if (fec_frames && n_frames <= fec_frames) {
		n = decode(d, next->payload, next->payload_bytes, d->buffer, (int)fec_frames, 1);
		if (n == (int)fec_frames) {
			b->flags = PACKET_RECOVERED;
			hand_out(d, pos, (size_t)n_frames, d->buffer + (fec_frames - n_frames) * d->frame_bytes, b);
			return ERR_OK;
		}
	}
	uint64_t left = n_frames > fec_frames ? n_frames - fec_frames : n_frames;
	uint32_t want = left < step ? (uint32_t)left : step;
	n = decode(d, NULL, 0, d->buffer, (int)units_round_up(want, unit), 0);
	if (n < (int)want)
		return ERR_CODEC;
	hand_out(d, pos, want, d->buffer, b);
	return ERR_OK;
}

bool opusdec_may_recover(const struct opusdec *d)
{
	return d->has_last && !is_celt(d->last_toc);
}

int64_t opusdec_pos(const struct opusdec *d)
{
	return d->pos;
}

/* ---- life ---- */

/* The layout of what comes out, and where each decoded channel goes. */
static void describe(struct opushead *h, const struct track *coded, struct track *pcm)
{
	uint64_t mask = coded->wave_mask;
	const uint8_t *order = NULL;
	bool mask_fits = (unsigned)__builtin_popcountll(mask) == h->channels;

	pcm->wave_mask = 0;
	if (h->family == 2 || h->family == 3) {
		pcm->layout = TRACK_LAYOUT_AMBISONIC;
		return;
	}
	if (h->family == 0 || h->family == 1) {
		if (!mask_fits || (h->channels > 2 && !opusmap_vorbis_order(h->channels, mask)))
			mask = track_usual_mask(h->channels);
		order = opusmap_vorbis_order(h->channels, mask);
	} else if (!mask_fits) {
		uint32_t n_bytes;
		pcm->layout = track_tlv(coded, TRACK_TLV_LABELS, &n_bytes) ? TRACK_LAYOUT_LABELS : TRACK_LAYOUT_DISCRETE;
		return;
	}
	pcm->layout = TRACK_LAYOUT_WAVE;
	pcm->wave_mask = mask;
	if (order) {
		uint8_t vorbis[8];
		memcpy(vorbis, h->mapping, sizeof(vorbis));
		for (unsigned k = 0; k < h->channels; k++)
			h->mapping[order[k]] = vorbis[k];
	}
}

static enum err announce(struct opushead *h, const struct track *coded, bool as_s16, struct track *pcm)
{
	struct track form = track_pcm(OUT_HZ, h->channels, as_s16 ? SAMPLE_S16 : SAMPLE_F32);
	struct track t = { 0 };
	enum err e;

	if ((e = track_copy(&t, coded)) || (e = track_set_tlv(&t, TRACK_TLV_CODEC_PRIVATE, NULL, 0))) {
		track_release(&t);
		return e;
	}
	t.codec = TRACK_PCM;
	t.rate_num = OUT_HZ;
	t.rate_den = 1;
	t.channels = h->channels;
	t.nominal_dur = 0;
	t.next_pos = t.first_pos;
	t.next_seq = 0;
	t.largest_object_bytes = 0;
	t.sample = form.sample;
	t.frame_bytes = form.frame_bytes;
	t.valid_bits = form.valid_bits;
	t.opus_family = t.opus_streams = t.opus_coupled = 0;
	t.codec_delay_frames = t.preroll_frames = 0;
	t.gain_q8 = 0;
	describe(h, coded, &t);
	*pcm = t;
	return ERR_OK;
}

/* Family 3 carries a matrix where the others have a mapping: RFC 8486 3.2. */
static enum err open_projection(struct opusdec *d, const struct track *coded, struct opushead *h, struct err_why *why)
{
	uint32_t n_bytes = 0;
	const uint8_t *p = track_tlv(coded, TRACK_TLV_CODEC_PRIVATE, &n_bytes);
	int error = OPUS_OK;

	*h = (struct opushead){ .family = 3 };
	if (!p || n_bytes < 21 || !opushead_is(p, n_bytes) || p[18] != 3)
		return err_say(why, ERR_FORMAT, "Opus", "mapping family 3 without its OpusHead");
	h->channels = p[9];
	h->streams = p[19];
	h->coupled = p[20];
	size_t matrix_bytes = 2u * h->channels * ((size_t)h->streams + h->coupled);
	if (h->channels < 1 || h->streams < 1 || h->coupled > h->streams || h->streams + h->coupled > 255 ||
		n_bytes < 21 + matrix_bytes || (coded->channels && coded->channels != h->channels))
		return err_say(why, ERR_FORMAT, "Opus", "an OpusHead of mapping family 3 that contradicts itself");
	unsigned char *matrix = malloc(matrix_bytes);
	if (!matrix)
		return err_say(why, ERR_NOMEM, "Opus", "%s", err_text(ERR_NOMEM));
	memcpy(matrix, p + 21, matrix_bytes);
	d->projection = opus_projection_decoder_create(OUT_HZ, h->channels, h->streams, h->coupled, matrix, (opus_int32)matrix_bytes,
		&error);
	free(matrix);
	if (!d->projection)
		return err_say(why, error == OPUS_ALLOC_FAIL ? ERR_NOMEM : ERR_FORMAT, "Opus", "mapping family 3 with %u channels: %s",
			h->channels, opus_strerror(error));
	return ERR_OK;
}

static enum err open_codec(struct opusdec *d, const struct opushead *h, struct err_why *why)
{
	bool identity = h->mapping[0] == 0 && (h->channels < 2 || h->mapping[1] == 1);
	int error = OPUS_OK;

	if (h->channels <= 2 && h->streams == 1 && h->coupled == h->channels - 1 && identity)
		d->plain = opus_decoder_create(OUT_HZ, h->channels, &error);
	else
		d->multi = opus_multistream_decoder_create(OUT_HZ, h->channels, h->streams, h->coupled, h->mapping, &error);
	if (!d->plain && !d->multi)
		return err_say(why, error == OPUS_ALLOC_FAIL ? ERR_NOMEM : ERR_FORMAT, "Opus", "%u channels in %u streams: %s",
			h->channels, h->streams, opus_strerror(error));
	return ERR_OK;
}

enum err opusdec_new(struct opusdec **out, const struct track *coded, bool as_s16, struct track *pcm, struct err_why *why)
{
	struct opushead h = { 0 };
	struct track t = { 0 };
	struct opusdec *d = NULL;
	enum err e;

	*out = NULL;
	if (!track_is_opus(coded))
		return err_say(why, ERR_ARG, "Opus", "this track is not Opus");
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_say(why, ERR_NOMEM, "Opus", "%s", err_text(ERR_NOMEM));
	d->as_s16 = as_s16;
	if (coded->opus_family == 3)
		e = open_projection(d, coded, &h, why);
	else
		e = opushead_of_track(&h, coded, why);
	if (e)
		goto out;
	if ((e = announce(&h, coded, as_s16, &t))) {
		err_say(why, e, "Opus", "%s", err_text(e));
		goto out;
	}
	if (!d->projection && (e = open_codec(d, &h, why)))
		goto out;
	d->channels = h.channels;
	d->frame_bytes = t.frame_bytes;
	d->pos = coded->first_pos;
	d->coded = (struct track){ .first_pos = coded->first_pos, .preroll_frames = coded->preroll_frames };
	d->buffer = calloc(OPUSDEC_MAX_FRAMES, d->frame_bytes);
	if (!d->buffer) {
		e = err_say(why, ERR_NOMEM, "Opus", "%s", err_text(ERR_NOMEM));
		goto out;
	}
	if (coded->gain_q8 && CTL(d, OPUS_SET_GAIN(coded->gain_q8)) != OPUS_OK) {
		e = err_say(why, ERR_CODEC, "Opus", "a gain of %d/256 dB was refused", coded->gain_q8);
		goto out;
	}
	*pcm = t;
	*out = d;
	return ERR_OK;
out:
	track_release(&t);
	opusdec_free(d);
	return e;
}

void opusdec_free(struct opusdec *d)
{
	if (!d)
		return;
	if (d->plain)
		opus_decoder_destroy(d->plain);
	if (d->multi)
		opus_multistream_decoder_destroy(d->multi);
	if (d->projection)
		opus_projection_decoder_destroy(d->projection);
	free(d->buffer);
	free(d);
}

uint32_t opusdec_packet_frames(const uint8_t *bytes, size_t n_bytes)
{
	int n = n_bytes && n_bytes <= INT32_MAX ? opus_packet_get_nb_samples(bytes, (opus_int32)n_bytes, 48000) : 0;
	return n > 0 ? (uint32_t)n : 0;
}
