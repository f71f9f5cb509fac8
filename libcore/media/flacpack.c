#include "media/flacpack.h"

#include "base/bytes.h"

#include <FLAC/stream_encoder.h>
#include <stdlib.h>

#define WORK_FRAMES 4096u
#define COMPRESSION 5u
#define BLOCK_STREAMINFO 0u

struct flacpack {
	FLAC__StreamEncoder *encoder;
	enum sample sample;
	unsigned channels, frame_bytes;
	uint32_t rate_hz;
	int32_t *work;
	uint8_t info[FLACPACK_INFO_BYTES];
	bool has_info, has_pos, ended, closing;
	int64_t pos;              /* of the frame that comes out next */
	flacpack_frame_fn *frame;
	void *user, *track;
	enum err failed;          /* of frame() */
};

static FLAC__StreamEncoderWriteStatus on_write(const FLAC__StreamEncoder *encoder, const FLAC__byte *bytes, size_t n_bytes, uint32_t n_samples,
	uint32_t frame, void *user)
{
	struct flacpack *f = user;

	(void)encoder;
	(void)frame;
	if (f->closing)
		return FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR;
	if (n_samples == 0) {
		/* "fLaC" and the metadata blocks, each with 4 bytes of header. */
		if (n_bytes == 4 + FLACPACK_INFO_BYTES && (bytes[0] & 0x7F) == BLOCK_STREAMINFO) {
			memcpy(f->info, bytes + 4, FLACPACK_INFO_BYTES);
			f->has_info = true;
		}
		return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
	}
	f->failed = f->frame(f->user, f->track, f->pos, n_samples, bytes, n_bytes);
	f->pos += n_samples;
	return f->failed ? FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR : FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
}

bool flacpack_takes(const struct track *t)
{
	bool whole = t->sample == SAMPLE_S16 || t->sample == SAMPLE_S24 || t->sample == SAMPLE_S24_32 || t->sample == SAMPLE_S32;
	return track_is_pcm(t) && whole && t->channels >= 1 && t->channels <= 8 && track_rate_hz(t) <= 1048575;
}

static bool set_up(struct flacpack *f)
{
	unsigned bits = f->sample == SAMPLE_S16 ? 16 : f->sample == SAMPLE_S32 ? 32 : 24;

	return FLAC__stream_encoder_set_channels(f->encoder, f->channels) && FLAC__stream_encoder_set_bits_per_sample(f->encoder, bits) &&
		FLAC__stream_encoder_set_sample_rate(f->encoder, f->rate_hz) &&
		FLAC__stream_encoder_set_streamable_subset(f->encoder, FLAC__format_sample_rate_is_subset(f->rate_hz) != 0 && bits < 32) &&
		FLAC__stream_encoder_set_compression_level(f->encoder, COMPRESSION) &&
		FLAC__stream_encoder_init_stream(f->encoder, on_write, NULL, NULL, NULL, f) == FLAC__STREAM_ENCODER_INIT_STATUS_OK && f->has_info;
}

enum err flacpack_open(struct flacpack **out, const struct track *t, const uint8_t **info, struct err_why *why)
{
	struct flacpack *f;

	if (!flacpack_takes(t))
		return err_say(why, ERR_FORMAT, "FLAC", "holds s16, s24 and s32 of 1 to 8 channels, and track %u is %s of %u", t->id,
			track_sample_name((enum sample)t->sample), t->channels);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_say(why, ERR_NOMEM, "FLAC", "%s", err_text(ERR_NOMEM));
	f->sample = (enum sample)t->sample;
	f->channels = t->channels;
	f->frame_bytes = t->frame_bytes;
	f->rate_hz = track_rate_hz(t);
	f->work = malloc((size_t)WORK_FRAMES * t->channels * sizeof(*f->work));
	f->encoder = FLAC__stream_encoder_new();
	if (!f->work || !f->encoder || !set_up(f)) {
		enum err e = f->work && f->encoder ? ERR_CODEC : ERR_NOMEM;
		flacpack_release(f);
		return err_say(why, e, "FLAC", "libFLAC: %s", err_text(e));
	}
	*info = f->info;
	*out = f;
	return ERR_OK;
}

/* To right-justified 32-bit integers, which is what libFLAC takes. */
static void widen(struct flacpack *f, const uint8_t *from, size_t n_samples)
{
	for (size_t i = 0; i < n_samples; i++) {
		switch (f->sample) {
		case SAMPLE_S16: f->work[i] = (int16_t)get_le16(from + 2 * i); break;
		case SAMPLE_S24: f->work[i] = (int32_t)(get_le24(from + 3 * i) << 8) >> 8; break;
		case SAMPLE_S24_32: f->work[i] = (int32_t)get_le32(from + 4 * i) >> 8; break;
		default: f->work[i] = (int32_t)get_le32(from + 4 * i); break;
		}
	}
}

static enum err failure(const struct flacpack *f, struct err_why *why)
{
	/* frame() has said why. */
	return f->failed ? f->failed : err_say(why, ERR_CODEC, "FLAC", "libFLAC: %s", FLAC__stream_encoder_get_resolved_state_string(f->encoder));
}

enum err flacpack_put(struct flacpack *f, int64_t pos, const uint8_t *bytes, uint32_t n_frames, flacpack_frame_fn *frame, void *user, void *track,
	struct err_why *why)
{
	f->frame = frame;
	f->user = user;
	f->track = track;
	if (!f->has_pos)
		f->pos = pos;
	f->has_pos = true;
	while (n_frames) {
		uint32_t some = n_frames < WORK_FRAMES ? n_frames : WORK_FRAMES;
		widen(f, bytes, (size_t)some * f->channels);
		if (!FLAC__stream_encoder_process_interleaved(f->encoder, f->work, some))
			return failure(f, why);
		bytes += (size_t)some * f->frame_bytes;
		n_frames -= some;
	}
	return ERR_OK;
}

enum err flacpack_leap(struct flacpack *f, flacpack_frame_fn *frame, void *user, void *track, struct err_why *why)
{
	enum err e = flacpack_end(f, frame, user, track, why);

	if (e)
		return e;
	f->ended = f->has_pos = false;
	return set_up(f) ? ERR_OK : failure(f, why);
}

enum err flacpack_end(struct flacpack *f, flacpack_frame_fn *frame, void *user, void *track, struct err_why *why)
{
	if (f->ended)
		return ERR_OK;
	f->ended = true;
	f->frame = frame;
	f->user = user;
	f->track = track;
	return FLAC__stream_encoder_finish(f->encoder) && !f->failed ? ERR_OK : failure(f, why);
}

void flacpack_release(struct flacpack *f)
{
	if (!f)
		return;
	/* Deleting an encoder that is at work would write: it is told that this fails. */
	f->closing = true;
	if (f->encoder)
		FLAC__stream_encoder_delete(f->encoder);
	free(f->work);
	free(f);
}
