/*
 * PCM behind a header: WAV, RF64, W64, CAF, AIFF and raw.  Where the container holds the track's own samples they go from the
 * packet to the file without a copy; AIFF's are swapped, and 24 in 32 bits becomes packed 24 bits where the container knows no other.
 */
#include "media/sinkhead.h"

#include "dsp/convert.h"

#include <stdlib.h>
#include <string.h>

struct sinkpcm {
	struct sinkhead head;
	struct convert convert;   /* of s24 in 32 to s24 */
	bool converts, swaps;
	unsigned sample_bytes;    /* in the file */
	size_t frame_bytes;       /* in the file */
	uint64_t data_bytes;      /* handed to the file */
};

static void build(struct sinkhead *h, const struct track *t)
{
	if (h->format == SINK_CAF || h->format == SINK_AIFF)
		sinkaiff_build(h, t);
	else if (h->format != SINK_RAW)
		sinkriff_build(h, t);
}

static void update(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames)
{
	if (h->format == SINK_CAF || h->format == SINK_AIFF)
		sinkaiff_update(h, data_bytes, pad_bytes, n_frames);
	else if (h->format != SINK_RAW)
		sinkriff_update(h, data_bytes, pad_bytes, n_frames);
}

/* What AIFF cannot pass; everything else goes on. */
static enum err check_limit(struct sink *s, uint64_t more_bytes)
{
	struct sinkpcm *m = s->state;

	if (s->args.format != SINK_AIFF || m->head.n_bytes + m->data_bytes + more_bytes <= m->head.limit_bytes)
		return ERR_OK;
	return err_say(&s->why, ERR_LIMIT, sinkfile_place(&s->file), "AIFF holds no more than %llu bytes; WAV, CAF and W64 do",
		(unsigned long long)m->head.limit_bytes);
}

/* n_samples, converted and swapped on their way into the file's buffer. */
static enum err write_changed(struct sink *s, const uint8_t *from, size_t n_samples)
{
	struct sinkpcm *m = s->state;
	size_t from_bytes = track_sample_bytes(s->track.sample);
	size_t most = SINKFILE_BUFFER_BYTES / 4 / from_bytes;

	while (n_samples > 0) {
		size_t n = n_samples < most ? n_samples : most;
		uint8_t *room = sinkfile_reserve(&s->file, n * from_bytes);
		if (!room)
			return s->file.failed;
		if (m->converts)
			s->clipped_samples += convert_run(&m->convert, room, from, n);
		if (m->swaps)
			convert_swap(room, m->converts ? room : from, n, m->sample_bytes);
		sinkfile_commit(&s->file, n * m->sample_bytes);
		from += n * from_bytes;
		n_samples -= n;
	}
	return ERR_OK;
}

static enum err write_packet(struct sink *s, const struct packet *p)
{
	struct sinkpcm *m = s->state;
	uint64_t n_bytes = (uint64_t)p->dur * m->frame_bytes;

	enum err e = check_limit(s, n_bytes);
	if (e)
		return e;
	m->data_bytes += n_bytes;
	if (m->converts || m->swaps)
		return write_changed(s, p->payload, (size_t)p->dur * s->track.channels);
	return sinkfile_put(&s->file, p->payload, p->payload_bytes);
}

static enum err write_silence(struct sink *s, uint64_t n_frames)
{
	struct sinkpcm *m = s->state;
	uint64_t n_bytes = n_frames * m->frame_bytes;

	enum err e = check_limit(s, n_bytes);
	if (e)
		return e;
	m->data_bytes += n_bytes;
	while (n_bytes > 0) {
		size_t n = n_bytes < SINKFILE_BUFFER_BYTES / 4 ? (size_t)n_bytes : SINKFILE_BUFFER_BYTES / 4;
		uint8_t *room = sinkfile_reserve(&s->file, n);
		if (!room)
			return s->file.failed;
		memset(room, 0, n);
		sinkfile_commit(&s->file, n);
		n_bytes -= n;
	}
	return ERR_OK;
}

/* Whole frames that are in the file; an even number of bytes of them where the container pads, and no pad byte is there. */
static uint64_t frames_in_file(const struct sink *s, bool even)
{
	const struct sinkpcm *m = s->state;

	if (s->file.size_bytes < m->head.n_bytes)
		return 0;
	uint64_t n_frames = (s->file.size_bytes - m->head.n_bytes) / m->frame_bytes;
	return even && m->head.align_bytes > 1 && n_frames * m->frame_bytes % 2 ? n_frames - 1 : n_frames;
}

static enum err rewrite_head(struct sink *s, uint64_t n_frames, uint64_t pad_bytes)
{
	struct sinkpcm *m = s->state;

	if (!s->file.is_regular || m->head.n_bytes == 0)
		return ERR_OK;
	update(&m->head, n_frames * m->frame_bytes, pad_bytes, n_frames);
	return sinkfile_rewrite(&s->file, 0, m->head.bytes, m->head.n_bytes);
}

/* First the bytes, then the header that speaks of them. */
static enum err sync_file(struct sink *s)
{
	enum err e = sinkfile_flush(&s->file);
	if (e)
		return e;
	return rewrite_head(s, frames_in_file(s, true), 0);
}

static enum err finish_whole(struct sink *s)
{
	static const uint8_t zeros[8];
	struct sinkpcm *m = s->state;
	size_t pad_bytes = 0;

	if (s->file.is_regular && m->head.align_bytes > 1)
		pad_bytes = (size_t)(units_round_up(m->data_bytes, m->head.align_bytes) - m->data_bytes);
	enum err e = sinkfile_put(&s->file, zeros, pad_bytes);
	if (!e)
		e = sinkfile_flush(&s->file);
	if (!e)
		e = rewrite_head(s, m->data_bytes / m->frame_bytes, pad_bytes);
	return e;
}

/* The disk is full, or the container is: cut back to whole frames and say how many they are. */
static enum err finish_short(struct sink *s)
{
	struct sinkpcm *m = s->state;

	s->n_frames = frames_in_file(s, true);
	if (!s->file.is_regular)
		return ERR_OK;
	if (s->file.size_bytes < m->head.n_bytes)
		return sinkfile_truncate(&s->file, 0);
	enum err e = sinkfile_truncate(&s->file, m->head.n_bytes + s->n_frames * m->frame_bytes);
	if (e)
		return e;
	return rewrite_head(s, s->n_frames, 0);
}

static enum err finish(struct sink *s)
{
	enum err e = s->file.failed ? s->file.failed : finish_whole(s);
	if (e)
		(void)finish_short(s);
	return e;
}

static void release(struct sink *s)
{
	struct sinkpcm *m = s->state;
	if (m)
		sinkhead_release(&m->head);
	free(m);
	s->state = NULL;
}

static const struct sink_ops sinkpcm_ops = {
	.name = "PCM", .write = write_packet, .silence = write_silence, .sync = sync_file, .finish = finish, .release = release,
};

/* Which samples the container gets: the track's, but for 24 in 32 bits outside the RIFF family. */
static enum err choose_samples(struct sink *s, struct track *stored, struct err_why *why)
{
	struct sinkpcm *m = s->state;
	bool apple = s->args.format == SINK_CAF || s->args.format == SINK_AIFF;

	*stored = s->track;
	m->swaps = s->args.format == SINK_AIFF;
	if (apple && s->track.sample == SAMPLE_S24_32) {
		m->converts = true;
		stored->sample = s->stored = SAMPLE_S24;
		enum err e = convert_init(&m->convert, SAMPLE_S24_32, SAMPLE_S24, false, 0);
		if (e)
			return err_say(why, e, s->file.path, "%s", err_text(e));
	}
	m->sample_bytes = track_sample_bytes(stored->sample);
	m->frame_bytes = (size_t)m->sample_bytes * s->track.channels;
	stored->frame_bytes = (uint16_t)m->frame_bytes;
	bool floats = stored->sample == SAMPLE_F32 || stored->sample == SAMPLE_F64;
	if (floats || stored->valid_bits == 0 || stored->valid_bits > 8 * m->sample_bytes)
		stored->valid_bits = (uint16_t)(8 * m->sample_bytes);
	return ERR_OK;
}

/* The name of a format that cannot say "to the end" in a way that programs read, or NULL. */
static const char *needs_file(enum sink_format format)
{
	return format == SINK_AIFF ? "AIFF" : format == SINK_W64 ? "W64" : format == SINK_RF64 ? "RF64" : NULL;
}

enum err sinkpcm_open(struct sink *s, struct err_why *why)
{
	struct track stored; /* borrows the TLVs of s->track */
	struct sinkpcm *m = calloc(1, sizeof(*m));

	if (!m)
		return err_say(why, ERR_NOMEM, s->file.path, "%s", err_text(ERR_NOMEM));
	s->state = m;
	s->ops = &sinkpcm_ops;
	if (!s->file.is_regular && needs_file(s->args.format))
		return err_say(why, ERR_ARG, sinkfile_place(&s->file), "%s needs a file it can go back in, as its header holds the length; "
			"WAV, CAF and FLAC can go through a pipe", needs_file(s->args.format));
	enum err e = choose_samples(s, &stored, why);
	if (e)
		return e;
	m->head = (struct sinkhead){
		.format = s->args.format, .open_ended = !s->file.is_regular, .align_bytes = 1,
		.limit_bytes = s->args.wav_limit_bytes ? s->args.wav_limit_bytes : SINKHEAD_LIMIT_BYTES,
	};
	build(&m->head, &stored);
	if (m->head.failed)
		return err_say(why, m->head.failed, s->file.path, "%s", err_text(m->head.failed));
	memcpy(s->note, m->head.note, sizeof(s->note));
	/* At once, so that even an empty recording is a valid file. */
	e = sinkfile_put_copy(&s->file, m->head.bytes, m->head.n_bytes);
	if (!e && s->file.is_regular)
		e = sinkfile_flush(&s->file);
	if (e && why)
		*why = s->file.why;
	return e;
}
