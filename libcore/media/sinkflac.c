/*
 * FLAC by libFLAC.  s16, s24 and s32 are exact (32-bit FLAC needs libFLAC 1.4 to be read); float becomes 24 bits with dither.
 *
 * The number of samples in STREAMINFO stands for whole frames that are in the file: it is mended with every sync, so that a killed
 * recording plays and shows its length.  The checksum comes at the end; until then it says "unknown".
 */
#include "media/sink.h"

#include "base/bytes.h"
#include "dsp/convert.h"

#include <FLAC/metadata.h>
#include <FLAC/stream_encoder.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define WORK_FRAMES 4096u
#define COMPRESSION 5u
#define TOTAL_SAMPLES_AT 21u /* "fLaC", block header, 13 bytes of STREAMINFO: then 4 bits and 32 of the number */
#define MASK_TAG "WAVEFORMATEXTENSIBLE_CHANNEL_MASK"

struct sinkflac {
	FLAC__StreamEncoder *encoder;
	FLAC__StreamMetadata *comment;
	struct convert convert;   /* of float */
	enum sample sample;       /* what is encoded, after that */
	bool converts;
	int32_t *work;            /* WORK_FRAMES of samples for libFLAC */
	uint8_t *reduced;         /* WORK_FRAMES of s24, when converts */
	uint64_t position_bytes;  /* where libFLAC thinks it writes */
	uint64_t end_bytes;       /* of all it wrote */
	uint64_t out_frames;      /* in whole FLAC frames handed to the file */
	uint64_t whole_bytes;     /* the file at the last sync: whole FLAC frames, */
	uint64_t whole_frames;    /* and how many frames that makes */
	enum err failed;          /* in a callback */
};

/* ---- libFLAC writes ---- */

static FLAC__StreamEncoderWriteStatus on_write(const FLAC__StreamEncoder *encoder, const FLAC__byte *bytes, size_t n_bytes,
	uint32_t n_samples, uint32_t frame, void *user)
{
	struct sink *s = user;
	struct sinkflac *m = s->state;
	(void)encoder;
	(void)frame;

	if (m->failed)
		return FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR;
	if (m->position_bytes == m->end_bytes) {
		m->failed = sinkfile_put_copy(&s->file, bytes, n_bytes);
		m->end_bytes += n_bytes;
	} else {
		/* The headers, gone back to at the end. */
		m->failed = sinkfile_flush(&s->file);
		if (!m->failed)
			m->failed = sinkfile_rewrite(&s->file, m->position_bytes, bytes, n_bytes);
	}
	m->position_bytes += n_bytes;
	if (m->failed)
		return FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR;
	m->out_frames += n_samples;
	return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
}

static FLAC__StreamEncoderSeekStatus on_seek(const FLAC__StreamEncoder *encoder, FLAC__uint64 offset, void *user)
{
	struct sink *s = user;
	struct sinkflac *m = s->state;
	(void)encoder;
	m->position_bytes = offset;
	return FLAC__STREAM_ENCODER_SEEK_STATUS_OK;
}

static FLAC__StreamEncoderTellStatus on_tell(const FLAC__StreamEncoder *encoder, FLAC__uint64 *offset, void *user)
{
	const struct sink *s = user;
	const struct sinkflac *m = s->state;
	(void)encoder;
	*offset = m->position_bytes;
	return FLAC__STREAM_ENCODER_TELL_STATUS_OK;
}

/* ---- samples ---- */

/* To right-justified 32-bit integers, which is what libFLAC takes. */
static void widen(int32_t *to, const uint8_t *from, size_t n_samples, enum sample sample)
{
	switch (sample) {
	case SAMPLE_S16:
		for (size_t i = 0; i < n_samples; i++)
			to[i] = (int16_t)get_le16(from + 2 * i);
		break;
	case SAMPLE_S24:
		for (size_t i = 0; i < n_samples; i++)
			to[i] = (int32_t)(get_le24(from + 3 * i) << 8) >> 8;
		break;
	case SAMPLE_S24_32:
		for (size_t i = 0; i < n_samples; i++)
			to[i] = (int32_t)get_le32(from + 4 * i) >> 8;
		break;
	default:
		for (size_t i = 0; i < n_samples; i++)
			to[i] = (int32_t)get_le32(from + 4 * i);
		break;
	}
}

/* One block of at most WORK_FRAMES; from NULL is silence. */
static enum err encode(struct sink *s, const uint8_t *from, size_t n_frames)
{
	struct sinkflac *m = s->state;
	size_t n_samples = n_frames * s->track.channels;

	if (!from) {
		memset(m->work, 0, n_samples * sizeof(*m->work));
	} else if (m->converts) {
		s->clipped_samples += convert_run(&m->convert, m->reduced, from, n_samples);
		widen(m->work, m->reduced, n_samples, m->sample);
	} else {
		widen(m->work, from, n_samples, m->sample);
	}
	if (FLAC__stream_encoder_process_interleaved(m->encoder, m->work, (uint32_t)n_frames))
		return ERR_OK;
	if (m->failed)
		return m->failed;
	return err_say(&s->why, ERR_CODEC, sinkfile_place(&s->file), "libFLAC: %s",
		FLAC__stream_encoder_get_resolved_state_string(m->encoder));
}

static enum err write_packet(struct sink *s, const struct packet *p)
{
	const uint8_t *from = p->payload;

	for (uint32_t left = p->dur; left > 0;) {
		uint32_t n = left < WORK_FRAMES ? left : WORK_FRAMES;
		enum err e = encode(s, from, n);
		if (e)
			return e;
		from += (size_t)n * s->track.frame_bytes;
		left -= n;
	}
	return ERR_OK;
}

static enum err write_silence(struct sink *s, uint64_t n_frames)
{
	while (n_frames > 0) {
		size_t n = n_frames < WORK_FRAMES ? (size_t)n_frames : WORK_FRAMES;
		enum err e = encode(s, NULL, n);
		if (e)
			return e;
		n_frames -= n;
	}
	return ERR_OK;
}

/* ---- the file ---- */

/* STREAMINFO's number of samples: the low 4 bits of one byte and four more. */
static enum err rewrite_total(struct sink *s, uint64_t n_frames)
{
	uint8_t b[5];

	if (!s->file.is_regular)
		return ERR_OK;
	if (n_frames >> 36)
		n_frames = 0; /* unknown: more than the field holds */
	/* The high bits of the first byte are the end of "bits per sample, minus one". */
	unsigned bits = FLAC__stream_encoder_get_bits_per_sample(((struct sinkflac *)s->state)->encoder) - 1;
	b[0] = (uint8_t)((bits & 0xF) << 4 | (n_frames >> 32 & 0xF));
	put_be32(b + 1, (uint32_t)n_frames);
	return sinkfile_rewrite(&s->file, TOTAL_SAMPLES_AT, b, sizeof(b));
}

static enum err sync_file(struct sink *s)
{
	struct sinkflac *m = s->state;

	enum err e = sinkfile_flush(&s->file);
	if (e)
		return e;
	m->whole_bytes = s->file.size_bytes;
	m->whole_frames = m->out_frames;
	return rewrite_total(s, m->whole_frames);
}

/* The disk is full: back to the last whole frame that was known to be in the file. */
static void finish_short(struct sink *s)
{
	struct sinkflac *m = s->state;

	s->n_frames = m->whole_frames;
	if (!s->file.is_regular || sinkfile_truncate(&s->file, m->whole_bytes) || m->whole_bytes == 0)
		return;
	(void)!rewrite_total(s, m->whole_frames);
}

static enum err finish(struct sink *s)
{
	struct sinkflac *m = s->state;

	if (!s->file.failed) {
		bool ok = FLAC__stream_encoder_finish(m->encoder);
		enum err e = m->failed ? m->failed : sinkfile_flush(&s->file);
		if (!e && !ok)
			e = err_say(&s->why, ERR_CODEC, sinkfile_place(&s->file), "libFLAC could not finish the file");
		if (!e || !s->file.failed)
			return e;
	}
	finish_short(s);
	return s->file.failed;
}

static void release(struct sink *s)
{
	struct sinkflac *m = s->state;
	if (m) {
		/* Deleting an encoder that is at work would write: it is told that this fails. */
		if (!m->failed)
			m->failed = ERR_SYS;
		if (m->encoder)
			FLAC__stream_encoder_delete(m->encoder);
		if (m->comment)
			FLAC__metadata_object_delete(m->comment);
		free(m->work);
		free(m->reduced);
	}
	free(m);
	s->state = NULL;
}

static const struct sink_ops sinkflac_ops = {
	.name = "FLAC", .write = write_packet, .silence = write_silence, .sync = sync_file, .finish = finish, .release = release,
};

/* ---- opening ---- */

static bool add_comment(struct sinkflac *m, const char *text)
{
	FLAC__StreamMetadata_VorbisComment_Entry entry = {
		.length = (FLAC__uint32)strlen(text), .entry = (FLAC__byte *)(uintptr_t)text,
	};
	if (!FLAC__format_vorbiscomment_entry_is_legal(entry.entry, entry.length))
		return true; /* not a tag that FLAC may hold (a value that is not UTF-8): left out */
	return FLAC__metadata_object_vorbiscomment_append_comment(m->comment, entry, true);
}

/* The track's tags, and the places of the channels where there are more than two or they are unusual. */
static enum err set_comments(struct sink *s)
{
	struct sinkflac *m = s->state;
	uint64_t mask = sink_wave_mask(&s->track);
	bool says_mask = mask && (s->track.channels > 2 || mask != track_usual_mask(s->track.channels));
	bool ok = true;
	const char *tag;
	char text[64];

	m->comment = FLAC__metadata_object_new(FLAC__METADATA_TYPE_VORBIS_COMMENT);
	if (!m->comment)
		return ERR_NOMEM;
	for (unsigned i = 0; ok && (tag = track_tag_at(&s->track, i)); i++)
		if (strncasecmp(tag, MASK_TAG "=", sizeof(MASK_TAG)))
			ok = add_comment(m, tag);
	if (ok && says_mask) {
		snprintf(text, sizeof(text), MASK_TAG "=0x%04X", (unsigned)mask);
		ok = add_comment(m, text);
	}
	return ok && FLAC__stream_encoder_set_metadata(m->encoder, &m->comment, 1) ? ERR_OK : ERR_NOMEM;
}

static unsigned bits_of(enum sample sample)
{
	return sample == SAMPLE_S16 ? 16 : sample == SAMPLE_S32 ? 32 : 24;
}

static enum err set_up(struct sink *s)
{
	struct sinkflac *m = s->state;
	uint32_t rate_hz = track_rate_hz(&s->track);
	size_t n_samples = (size_t)WORK_FRAMES * s->track.channels;

	m->sample = (enum sample)s->track.sample;
	if (m->sample == SAMPLE_F32 || m->sample == SAMPLE_F64) {
		m->converts = true;
		m->sample = SAMPLE_S24;
		s->stored = SAMPLE_S24;
		s->dithers = true;
		snprintf(s->change, sizeof(s->change), "%s becomes s24 with dither: FLAC holds no float",
			track_sample_name((enum sample)s->track.sample));
		enum err e = convert_init(&m->convert, (enum sample)s->track.sample, SAMPLE_S24, true, s->track.id);
		if (e)
			return e;
	}
	if (m->sample == SAMPLE_S32)
		snprintf(s->note, sizeof(s->note), "32 bit FLAC is exact, and needs libFLAC 1.4 or later to be read");
	m->work = malloc(n_samples * sizeof(*m->work));
	m->reduced = m->converts ? malloc(n_samples * 3) : NULL;
	m->encoder = FLAC__stream_encoder_new();
	if (!m->work || (m->converts && !m->reduced) || !m->encoder)
		return ERR_NOMEM;
	/* The streamable subset leaves out unusual rates, which the format itself holds. */
	bool ok = FLAC__stream_encoder_set_channels(m->encoder, s->track.channels) &&
		FLAC__stream_encoder_set_bits_per_sample(m->encoder, bits_of(m->sample)) &&
		FLAC__stream_encoder_set_sample_rate(m->encoder, rate_hz) &&
		FLAC__stream_encoder_set_streamable_subset(m->encoder, FLAC__format_sample_rate_is_subset(rate_hz) != 0 && bits_of(m->sample) < 32) &&
		FLAC__stream_encoder_set_compression_level(m->encoder, COMPRESSION);
	return ok ? set_comments(s) : ERR_CODEC;
}

enum err sinkflac_open(struct sink *s, struct err_why *why)
{
	struct sinkflac *m = calloc(1, sizeof(*m));

	if (!m)
		return err_say(why, ERR_NOMEM, s->file.path, "%s", err_text(ERR_NOMEM));
	s->state = m;
	s->ops = &sinkflac_ops;
	enum err e = set_up(s);
	if (e)
		return err_say(why, e, s->file.path, "libFLAC: %s", err_text(e));
	FLAC__StreamEncoderInitStatus status = FLAC__stream_encoder_init_stream(m->encoder, on_write,
		s->file.is_regular ? on_seek : NULL, s->file.is_regular ? on_tell : NULL, NULL, s);
	if (m->failed || (status == FLAC__STREAM_ENCODER_INIT_STATUS_OK && (e = s->file.is_regular ? sync_file(s) : ERR_OK))) {
		if (why)
			*why = s->file.why;
		return s->file.failed;
	}
	if (status != FLAC__STREAM_ENCODER_INIT_STATUS_OK)
		return err_say(why, ERR_CODEC, s->file.path, "libFLAC: %s", FLAC__StreamEncoderInitStatusString[status]);
	return ERR_OK;
}
