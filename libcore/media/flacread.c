/*
 * FLAC, plain and in Ogg, by libFLAC.  A frame that fits the caller's block is put there straight from the decoder;
 * what does not fit waits here.  Positions come from the frames' own numbers, so what damage took away is a hole with
 * its true length.  libFLAC puts silence where a frame is missing or its CRC is wrong; that is made a hole again.
 */
#include "base/bytes.h"
#include "media/chanmap.h"
#include "media/source.h"

#include <FLAC/stream_decoder.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct flac {
	struct source_bytes in;
	FLAC__StreamDecoder *decoder;
	struct source *opening;   /* only while the headers are read */
	unsigned bits, channels, sample_bytes, shift;
	uint64_t total_frames;    /* 0 unknown */
	bool has_info, is_started, ended;
	uint64_t mask;
	int64_t base;             /* number of the first frame: a stream joined late begins at 0 all the same */
	int64_t expect;           /* end of what was decoded */
	/* the caller's block, while a frame is decoded */
	uint8_t *dst;
	size_t room_frames, got_frames;
	/* what did not fit */
	uint8_t *pending;
	size_t pending_room_frames, pending_at_frames, pending_frames;
	int64_t pending_pos;
	uint64_t gap_frames;      /* before the pending ones */
	bool is_damaged;          /* the decoder has complained during this step */
	unsigned n_errors;
	uint64_t lost_frames;
	unsigned n_losses;
	int64_t first_lost_pos, lost_end_pos;
	bool too_odd;             /* a frame that is not as the header says */
	bool is_sought;           /* not all of it is decoded */
};

/* ---- what the decoder calls ---- */

static FLAC__StreamDecoderReadStatus on_read(const FLAC__StreamDecoder *d, FLAC__byte *to, size_t *n_bytes, void *user)
{
	struct flac *f = user;

	(void)d;
	*n_bytes = source_bytes_some(&f->in, to, *n_bytes);
	return *n_bytes ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE
		: f->in.sys_errno ? FLAC__STREAM_DECODER_READ_STATUS_ABORT : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

static FLAC__StreamDecoderSeekStatus on_seek(const FLAC__StreamDecoder *d, FLAC__uint64 offset_bytes, void *user)
{
	struct flac *f = user;

	(void)d;
	return source_bytes_seek(&f->in, offset_bytes) ? FLAC__STREAM_DECODER_SEEK_STATUS_OK : FLAC__STREAM_DECODER_SEEK_STATUS_ERROR;
}

static FLAC__StreamDecoderTellStatus on_tell(const FLAC__StreamDecoder *d, FLAC__uint64 *offset_bytes, void *user)
{
	struct flac *f = user;

	(void)d;
	*offset_bytes = f->in.offset_bytes;
	return FLAC__STREAM_DECODER_TELL_STATUS_OK;
}

static FLAC__StreamDecoderLengthStatus on_length(const FLAC__StreamDecoder *d, FLAC__uint64 *n_bytes, void *user)
{
	struct flac *f = user;

	(void)d;
	*n_bytes = f->in.size_bytes;
	return FLAC__STREAM_DECODER_LENGTH_STATUS_OK;
}

static FLAC__bool on_eof(const FLAC__StreamDecoder *d, void *user)
{
	struct flac *f = user;

	(void)d;
	return f->in.offset_bytes >= f->in.size_bytes;
}

/* Planes of right-justified samples to interleaved ones of ours, left-justified. */
static void interleave(const struct flac *f, uint8_t *dst, const FLAC__int32 *const plane[], size_t from, size_t n)
{
	unsigned channels = f->channels, shift = f->shift;

	for (unsigned c = 0; c < channels; c++) {
		const FLAC__int32 *p = plane[c] + from;

		if (f->sample_bytes == 2) {
			int16_t *to = (int16_t *)(void *)dst + c;
			for (size_t i = 0; i < n; i++)
				to[i * channels] = (int16_t)((uint32_t)p[i] << shift);
		} else if (f->sample_bytes == 3) {
			uint8_t *to = dst + 3 * c;
			for (size_t i = 0; i < n; i++, to += 3 * channels)
				put_le24(to, (uint32_t)p[i] << shift);
		} else {
			int32_t *to = (int32_t *)(void *)dst + c;
			for (size_t i = 0; i < n; i++)
				to[i * channels] = (int32_t)((uint32_t)p[i] << shift);
		}
	}
}

static bool is_silent(const struct flac *f, const FLAC__int32 *const plane[], size_t n)
{
	for (unsigned c = 0; c < f->channels; c++) {
		for (size_t i = 0; i < n; i++) {
			if (plane[c][i])
				return false;
		}
	}
	return true;
}

/* So many frames are missing from pos on. */
static void lose(struct flac *f, int64_t pos, uint64_t n_frames)
{
	if (!f->n_losses)
		f->first_lost_pos = pos;
	if (!f->n_losses || pos != f->lost_end_pos)
		f->n_losses++;
	f->lost_end_pos = pos + (int64_t)n_frames;
	f->gap_frames += n_frames;
	f->lost_frames += n_frames;
}

static FLAC__StreamDecoderWriteStatus on_frame(const FLAC__StreamDecoder *d, const FLAC__Frame *frame, const FLAC__int32 *const plane[], void *user)
{
	struct flac *f = user;
	size_t n = frame->header.blocksize, direct = 0;
	int64_t pos = (int64_t)frame->header.number.sample_number - f->base;

	(void)d;
	if (frame->header.channels != f->channels || frame->header.bits_per_sample != f->bits || n > f->pending_room_frames) {
		f->too_odd = true;
		return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
	}
	if (!f->is_started) {
		f->is_started = true;
		if (!f->is_damaged) {
			f->base = pos;
			pos = 0;
		}
	}
	/* Several may come in one step: silence for what is missing, then the frame behind it. */
	if (f->is_damaged && is_silent(f, plane, n)) {
		lose(f, f->expect, n);
		f->expect += (int64_t)n;
		f->pending_pos = f->expect;
		return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
	}
	/* Numbers that go back say nothing that could be believed: the samples simply follow. */
	if (pos > f->expect) {
		lose(f, f->expect, (uint64_t)(pos - f->expect));
	} else {
		pos = f->expect;
	}
	f->pending_pos = pos;
	if (f->dst && !f->gap_frames) {
		direct = n < f->room_frames ? n : f->room_frames;
		interleave(f, f->dst, plane, 0, direct);
		f->got_frames = direct;
	}
	f->pending_at_frames = 0;
	f->pending_frames = n - direct;
	interleave(f, f->pending, plane, direct, f->pending_frames);
	f->expect = pos + (int64_t)n;
	return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

static void take_comments(struct flac *f, const FLAC__StreamMetadata_VorbisComment *vc)
{
	for (FLAC__uint32 i = 0; i < vc->num_comments; i++) {
		const char *text = (const char *)vc->comments[i].entry;
		size_t n = vc->comments[i].length;
		const char *eq = text ? memchr(text, '=', n) : NULL;
		char key[80];

		if (!eq || (size_t)(eq - text) >= sizeof(key))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)(eq - text), text);
		if (!strcasecmp(key, "WAVEFORMATEXTENSIBLE_CHANNEL_MASK"))
			f->mask = strtoull(eq + 1, NULL, 0);
		else
			source_tag(f->opening, key, eq + 1, n - (size_t)(eq + 1 - text));
	}
}

static void on_metadata(const FLAC__StreamDecoder *d, const FLAC__StreamMetadata *m, void *user)
{
	struct flac *f = user;

	(void)d;
	if (!f->opening)
		return;
	if (m->type == FLAC__METADATA_TYPE_STREAMINFO) {
		f->has_info = true;
		f->bits = m->data.stream_info.bits_per_sample;
		f->channels = m->data.stream_info.channels;
		f->total_frames = m->data.stream_info.total_samples;
		f->pending_room_frames = m->data.stream_info.max_blocksize;
		f->opening->track.rate_num = m->data.stream_info.sample_rate;
	} else if (m->type == FLAC__METADATA_TYPE_VORBIS_COMMENT) {
		take_comments(f, &m->data.vorbis_comment);
	} else if (m->type == FLAC__METADATA_TYPE_PICTURE) {
		f->opening->n_pictures++;
	}
}

static void on_error(const FLAC__StreamDecoder *d, FLAC__StreamDecoderErrorStatus status, void *user)
{
	struct flac *f = user;

	(void)d;
	(void)status;
	/* What stands behind the last frame (tags of other formats) is no damage. */
	if (f->total_frames && f->expect >= (int64_t)f->total_frames)
		return;
	f->is_damaged = true;
	f->n_errors++;
}

/* ---- reading ---- */

/*
 * The MD5 sum over all samples that STREAMINFO holds (RFC 9639 8.2), where there is one, and all were decoded: frames that are sound
 * each for itself may still not be those that were encoded.
 */
static void check_sum(struct source *s, struct flac *f)
{
	bool all = !f->is_sought && !f->base && !f->lost_frames && !f->n_errors && f->total_frames && f->expect == (int64_t)f->total_frames;

	if (!FLAC__stream_decoder_finish(f->decoder) && all)
		source_warn(s, "its samples are not those that were encoded: their MD5 sum is another than the file says");
}

static void say_end(struct source *s, struct flac *f)
{
	f->ended = true;
	if (f->in.stopped)
		return;
	char holes[120] = "";
	double s_a_frame = 1.0 / track_rate_hz(&s->track);

	if (f->n_losses)
		snprintf(holes, sizeof(holes), "%" PRIu64 " frames lost in %u place%s, from frame %" PRId64 " (%.3f s) on", f->lost_frames,
			f->n_losses, f->n_losses == 1 ? "" : "s", f->first_lost_pos, (double)f->first_lost_pos * s_a_frame);
	if (f->total_frames && f->expect < (int64_t)f->total_frames) {
		f->lost_frames += f->total_frames - (uint64_t)f->expect;
		source_warn(s, "cut short: %" PRId64 " of %" PRIu64 " frames are there%s%s", f->expect, f->total_frames, *holes ? "; damaged: " : "",
			holes);
	}
	if (*holes || f->n_errors)
		source_warn(s, "damaged: %s", *holes ? holes : "0 frames lost");
	s->lost_frames = f->lost_frames;
	check_sum(s, f);
}

static enum err decode(struct source *s, struct flac *f)
{
	f->is_damaged = false;
	bool ok = FLAC__stream_decoder_process_single(f->decoder);

	if (f->in.sys_errno)
		return source_failed(s, &f->in);
	if (FLAC__stream_decoder_get_state(f->decoder) == FLAC__STREAM_DECODER_END_OF_STREAM) {
		say_end(s, f);
	} else if (f->too_odd) {
		source_warn(s, "its format changes at frame %" PRId64 ", which is not followed", f->expect);
		f->ended = true;
	} else if (!ok) {
		source_warn(s, "libFLAC gave up at frame %" PRId64 ": %s", f->expect, FLAC__stream_decoder_get_resolved_state_string(f->decoder));
		f->ended = true;
	}
	return ERR_OK;
}

static enum err flacread_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct flac *f = s->state;

	while (!f->pending_frames && !f->gap_frames && !f->ended) {
		f->dst = dst;
		f->room_frames = max_frames;
		f->got_frames = 0;
		enum err e = decode(s, f);
		f->dst = NULL;
		if (e)
			return e;
		if (f->got_frames) {
			b->pos = f->pending_pos;
			b->n_frames = f->got_frames;
			f->pending_pos += (int64_t)f->got_frames;
			return ERR_OK;
		}
	}
	if (f->gap_frames) {
		b->pos = f->pending_pos - (int64_t)f->gap_frames;
		b->gap_frames = f->gap_frames;
		b->gap_reason = PACKET_GAP_DAMAGED;
		f->gap_frames = 0;
		return ERR_OK;
	}
	if (!f->pending_frames)
		return ERR_END;

	size_t n = f->pending_frames < max_frames ? f->pending_frames : max_frames;
	memcpy(dst, f->pending + f->pending_at_frames * s->track.frame_bytes, n * s->track.frame_bytes);
	b->pos = f->pending_pos;
	b->n_frames = n;
	f->pending_at_frames += n;
	f->pending_frames -= n;
	f->pending_pos += (int64_t)n;
	return ERR_OK;
}

static enum err flacread_seek(struct source *s, int64_t pos)
{
	struct flac *f = s->state;

	if (f->total_frames && pos >= (int64_t)f->total_frames) {
		f->ended = true;
		return ERR_OK;
	}
	f->expect = pos;
	f->is_started = f->is_sought = true;
	if (!FLAC__stream_decoder_seek_absolute(f->decoder, (FLAC__uint64)pos)) {
		if (f->in.sys_errno)
			return source_failed(s, &f->in);
		return err_say(&s->why, ERR_CODEC, s->name, "libFLAC cannot find frame %" PRId64 ": %s", pos,
			FLAC__stream_decoder_get_resolved_state_string(f->decoder));
	}
	return ERR_OK;
}

static bool flacread_would_block(const struct source *s, size_t n_frames)
{
	const struct flac *f = s->state;

	(void)n_frames;
	return !f->ended && !f->pending_frames && source_bytes_would_block(&f->in, SOURCE_ENOUGH_BYTES);
}

static void flacread_release(struct source *s)
{
	struct flac *f = s->state;

	if (!f)
		return;
	if (f->decoder)
		FLAC__stream_decoder_delete(f->decoder);
	free(f->pending);
	free(f);
	s->state = NULL;
}

static const struct source_ops flacread_ops = {
	.name = "flacread",
	.read = flacread_read,
	.seek = flacread_seek,
	.would_block = flacread_would_block,
	.release = flacread_release,
};

/* A pipe cannot be sought in: source_seek() reads and throws away. */
static const struct source_ops flacread_pipe_ops = {
	.name = "flacread",
	.read = flacread_read,
	.would_block = flacread_would_block,
	.release = flacread_release,
};

/* ---- opening ---- */

enum flac_wrap { FLAC_NONE, FLAC_PLAIN, FLAC_OGG };

static enum flac_wrap sniff(struct source_bytes *in)
{
	const uint8_t *h = in->head;

	if (in->head_bytes >= 4 && !memcmp(h, "fLaC", 4))
		return FLAC_PLAIN;
	if (in->head_bytes >= 33 && !memcmp(h, "OggS", 4) && !memcmp(h + 27 + h[26], "\177FLAC", 5))
		return FLAC_OGG;
	/* Some put an ID3v2 tag before it; libFLAC steps over that by itself. */
	if (in->head_bytes >= 10 && !memcmp(h, "ID3", 3)) {
		size_t at = 10 + ((size_t)(h[6] & 0x7F) << 21 | (size_t)(h[7] & 0x7F) << 14 | (size_t)(h[8] & 0x7F) << 7 | (h[9] & 0x7F));
		uint8_t p[4];

		if (in->is_regular) {
			bool is = source_bytes_seek(in, at) && source_bytes_read(in, p, 4) == 4 && !memcmp(p, "fLaC", 4);
			if (source_bytes_seek(in, 0) && is)
				return FLAC_PLAIN;
		} else if (at + 4 <= SOURCE_HEAD_BYTES && source_bytes_want(in, at + 4) >= at + 4 && !memcmp(h + at, "fLaC", 4)) {
			return FLAC_PLAIN;
		}
	}
	return FLAC_NONE;
}

static enum err start(struct source *s, struct flac *f, enum flac_wrap wrap, struct err_why *why)
{
	bool seeks = f->in.is_regular;
	FLAC__StreamDecoderInitStatus status;

	f->decoder = FLAC__stream_decoder_new();
	if (!f->decoder)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	(void)FLAC__stream_decoder_set_metadata_respond(f->decoder, FLAC__METADATA_TYPE_VORBIS_COMMENT);
	(void)FLAC__stream_decoder_set_metadata_respond(f->decoder, FLAC__METADATA_TYPE_PICTURE);
	(void)FLAC__stream_decoder_set_md5_checking(f->decoder, true);
	if (wrap == FLAC_PLAIN)
		status = FLAC__stream_decoder_init_stream(f->decoder, on_read, seeks ? on_seek : NULL, seeks ? on_tell : NULL,
			seeks ? on_length : NULL, seeks ? on_eof : NULL, on_frame, on_metadata, on_error, f);
	else
		status = FLAC__stream_decoder_init_ogg_stream(f->decoder, on_read, seeks ? on_seek : NULL, seeks ? on_tell : NULL,
			seeks ? on_length : NULL, seeks ? on_eof : NULL, on_frame, on_metadata, on_error, f);
	if (status != FLAC__STREAM_DECODER_INIT_STATUS_OK)
		return err_say(why, ERR_CODEC, s->name, "libFLAC: %s", FLAC__StreamDecoderInitStatusString[status]);

	f->opening = s;
	bool ok = FLAC__stream_decoder_process_until_end_of_metadata(f->decoder);
	f->opening = NULL;
	if (f->in.sys_errno) {
		(void)source_failed(s, &f->in);
		return err_say(why, s->why.err, s->name, "%s", s->why.reason);
	}
	if (!ok || !f->has_info || f->bits < 4 || f->bits > 32)
		return err_say(why, ERR_FORMAT, s->name, "its FLAC header is damaged");
	f->n_errors = 0;
	return ERR_OK;
}

enum err flacread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	enum flac_wrap wrap = sniff(in);
	struct flac *f = wrap ? calloc(1, sizeof(*f)) : NULL;
	enum err e = ERR_NOMEM;

	if (!wrap)
		return ERR_AGAIN;
	if (!f)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	s->state = f;
	s->ops = in->is_regular ? &flacread_ops : &flacread_pipe_ops;
	f->in = *in;
	if ((e = start(s, f, wrap, why)))
		return e;

	uint32_t rate_hz = s->track.rate_num;
	if ((e = source_check(s, rate_hz, f->channels, why)))
		return e;
	enum sample sample = f->bits <= 16 ? SAMPLE_S16 : f->bits <= 24 ? SAMPLE_S24 : SAMPLE_S32;
	source_set_pcm(s, rate_hz, (uint16_t)f->channels, sample);
	s->track.valid_bits = (uint16_t)f->bits;
	f->sample_bytes = track_sample_bytes(sample);
	f->shift = 8 * f->sample_bytes - f->bits;
	/* FLAC gives 1 to 8 channels their places (format specification, channel assignment), which are the usual ones. */
	(void)chanmap_guess(&s->track);
	if (f->mask && (unsigned)__builtin_popcountll(f->mask) == f->channels) {
		s->track.layout = TRACK_LAYOUT_WAVE;
		s->track.wave_mask = f->mask;
	}
	s->n_frames = f->total_frames ? (int64_t)f->total_frames : -1;

	if (!f->pending_room_frames)
		f->pending_room_frames = FLAC__MAX_BLOCK_SIZE;
	f->pending = malloc(f->pending_room_frames * s->track.frame_bytes);
	return f->pending ? ERR_OK : err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
}
