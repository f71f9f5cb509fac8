#include "media/pcmread.h"

#include "dsp/convert.h"
#include "media/chanmap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES 65536u

struct pcmread {
	struct source_bytes in;
	struct pcmread_format format;
	struct pcmread_extent extent;
	size_t file_frame_bytes;
	uint64_t data_offset_bytes; /* in the input */
	uint64_t left_bytes;      /* of what was promised */
	int64_t pos;
	bool ended;
	struct convert convert;   /* f64 to f32 */
	uint8_t *scratch;         /* when the file's samples are wider than ours */
	bool is_permuted;
	struct chanmap_order order;
};

bool pcmread_is_unknown(uint64_t size_bytes)
{
	return (size_bytes >= 0x7EFF0000u && size_bytes <= 0x7F010000u) || (size_bytes >= 0x7FFF0000u && size_bytes <= 0x80010000u) || (size_bytes >= 0xFFFF0000u && size_bytes <= 0xFFFFFFFFu) ||
		size_bytes >= (uint64_t)1 << 62;
}

struct pcmread_extent pcmread_extent_of(struct source *s, const struct source_bytes *in, uint64_t data_bytes)
{
	struct pcmread_extent x = { .promised_bytes = data_bytes };
	uint64_t left = in->size_bytes == SOURCE_SIZE_UNKNOWN ? SOURCE_SIZE_UNKNOWN : in->size_bytes - in->offset_bytes;

	/* A regular file that does hold so much has a true size, however odd it looks. */
	if (pcmread_is_unknown(data_bytes) && (left == SOURCE_SIZE_UNKNOWN || left < data_bytes)) {
		x.to_end = true;
		source_note(s, "the size in its header is unknown (0x%" PRIX64 "): read to the end", data_bytes);
	}
	return x;
}

/* The stream's format for a file's, and the converter where one is needed.  Returns: SAMPLE_CODED if there is none. */
static enum sample pick_sample(const struct pcmread_format *f)
{
	switch (f->code) {
	case PCMREAD_UNSIGNED:
	case PCMREAD_ALAW:
	case PCMREAD_ULAW:
		return f->container_bytes == 1 ? SAMPLE_S16 : SAMPLE_CODED;
	case PCMREAD_FLOAT:
		return f->container_bytes == 4 || f->container_bytes == 8 ? SAMPLE_F32 : SAMPLE_CODED;
	case PCMREAD_SIGNED:
		switch (f->container_bytes) {
		case 1:
		case 2:
			return SAMPLE_S16;
		case 3:
			return SAMPLE_S24;
		case 4:
			return SAMPLE_S32;
		default:
			return SAMPLE_CODED;
		}
	}
	return SAMPLE_CODED;
}

/* n samples from the scratch (or in place, when src is dst) into the stream's format. */
static void to_ours(struct pcmread *r, uint8_t *dst, uint8_t *src, size_t n_samples)
{
	const struct pcmread_format *f = &r->format;

	if (f->is_big_endian && f->container_bytes > 1)
		convert_swap(src, src, n_samples, f->container_bytes);
	if (f->code == PCMREAD_FLOAT && f->container_bytes == 8)
		(void)convert_run(&r->convert, dst, src, n_samples);
	else if (f->code == PCMREAD_UNSIGNED)
		convert_from_u8((int16_t *)(void *)dst, src, n_samples);
	else if (f->code == PCMREAD_ALAW)
		convert_from_alaw((int16_t *)(void *)dst, src, n_samples);
	else if (f->code == PCMREAD_ULAW)
		convert_from_ulaw((int16_t *)(void *)dst, src, n_samples);
	else if (f->container_bytes == 1)
		convert_from_s8((int16_t *)(void *)dst, src, n_samples);
}

static bool is_padding(const struct pcmread *r, uint64_t got_bytes, size_t tail_bytes, const uint8_t *tail)
{
	if (tail_bytes >= r->extent.pad_bytes || got_bytes % r->extent.pad_bytes)
		return false;
	for (size_t i = 0; i < tail_bytes; i++) {
		if (tail[i])
			return false;
	}
	return true;
}

/* The input ended: with everything that was promised, or not. */
static void say_end(struct source *s, struct pcmread *r, size_t tail_bytes, const uint8_t *tail)
{
	r->ended = true;
	if (r->in.stopped || r->in.sys_errno)
		return;
	uint64_t got = r->in.offset_bytes - r->data_offset_bytes;

	if (!r->extent.to_end && r->left_bytes) {
		/* One of which a part is there is missing as well. */
		s->lost_frames = r->extent.promised_bytes / r->file_frame_bytes - (uint64_t)r->pos;
		source_warn(s, "cut short: %" PRIu64 " of %" PRIu64 " bytes of audio are there (%" PRId64 " frames, %" PRIu64 " missing)", got,
			r->extent.promised_bytes, r->pos, s->lost_frames);
		s->damaged_bytes += tail_bytes;
	} else if (tail_bytes) {
		/* Some programs count the padding of the chunk as part of it, or nobody knew where it begins. */
		if (is_padding(r, got, tail_bytes, tail))
			return;
		s->damaged_bytes += tail_bytes;
		source_warn(s, "its last frame is not whole: %zu of %zu bytes after frame %" PRId64 " left out", tail_bytes, r->file_frame_bytes,
			r->pos);
	}
}

/* Bytes of up to max_frames frames to where the conversion wants them.  Returns: whole frames got. */
static size_t read_frames(struct source *s, struct pcmread *r, uint8_t *to, size_t max_frames)
{
	uint64_t want = (uint64_t)max_frames * r->file_frame_bytes;

	if (!r->extent.to_end && want > r->left_bytes)
		want = r->left_bytes;
	size_t got = source_bytes_read(&r->in, to, (size_t)want);
	size_t frames = got / r->file_frame_bytes, tail = got % r->file_frame_bytes;

	if (!r->extent.to_end)
		r->left_bytes -= got;
	r->pos += (int64_t)frames;
	if (got < want || tail || (!r->extent.to_end && !r->left_bytes))
		say_end(s, r, tail, to + frames * r->file_frame_bytes);
	return frames;
}

static enum err pcmread_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct pcmread *r = s->state;

	b->pos = r->pos;
	if (!r->ended && !r->scratch) {
		b->n_frames = read_frames(s, r, dst, max_frames);
		to_ours(r, dst, dst, b->n_frames * r->format.channels);
	}
	while (r->scratch && !r->ended && b->n_frames < max_frames) {
		size_t n = SCRATCH_BYTES / r->file_frame_bytes;

		if (n > max_frames - b->n_frames)
			n = max_frames - b->n_frames;
		n = read_frames(s, r, r->scratch, n);
		to_ours(r, dst + b->n_frames * s->track.frame_bytes, r->scratch, n * r->format.channels);
		b->n_frames += n;
	}
	if (r->is_permuted)
		chanmap_reorder(&r->order, dst, b->n_frames, s->track.frame_bytes / s->track.channels);
	if (b->n_frames)
		return ERR_OK;
	if (r->in.sys_errno)
		return source_failed(s, &r->in);
	if (r->extent.trailer_bytes) {
		uint64_t n = source_bytes_skip(&r->in, r->extent.trailer_bytes);
		r->extent.trailer_bytes = 0;
		if (n > 8)
			source_note(s, "%" PRIu64 " bytes behind the audio were not looked at: from a pipe they come too late", n);
	}
	return ERR_END;
}

static enum err pcmread_seek(struct source *s, int64_t pos)
{
	struct pcmread *r = s->state;
	uint64_t skip = (uint64_t)pos * r->file_frame_bytes;

	if ((uint64_t)pos > UINT64_MAX / 2 / r->file_frame_bytes)
		skip = UINT64_MAX / 2;
	if (!r->extent.to_end && skip > r->left_bytes)
		skip = r->left_bytes - r->left_bytes % r->file_frame_bytes;
	uint64_t done = source_bytes_skip(&r->in, skip);

	r->pos += (int64_t)(done / r->file_frame_bytes);
	if (!r->extent.to_end)
		r->left_bytes -= done;
	if (r->in.sys_errno)
		return source_failed(s, &r->in);
	if (done < skip)
		say_end(s, r, 0, NULL);
	return ERR_OK;
}

static bool pcmread_would_block(const struct source *s, size_t n_frames)
{
	const struct pcmread *r = s->state;

	return !r->ended && source_bytes_would_block(&r->in, n_frames * r->file_frame_bytes);
}

static void pcmread_release(struct source *s)
{
	struct pcmread *r = s->state;

	if (!r)
		return;
	chanmap_release(&r->order);
	free(r->scratch);
	free(r);
	s->state = NULL;
}

static const struct source_ops pcmread_ops = {
	.name = "pcmread",
	.read = pcmread_read,
	.seek = pcmread_seek,
	.would_block = pcmread_would_block,
	.release = pcmread_release,
};

enum err pcmread_open(struct source *s, const struct source_bytes *in, const struct pcmread_format *f, const struct pcmread_extent *x,
	const uint16_t *perm, struct err_why *why)
{
	enum sample sample = pick_sample(f);
	enum err e = ERR_NOMEM;

	if (sample == SAMPLE_CODED)
		return ERR_AGAIN;
	if (source_check(s, f->rate_hz, f->channels, why))
		return ERR_LIMIT;

	struct pcmread *r = calloc(1, sizeof(*r));
	if (!r)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	r->in = *in;
	r->format = *f;
	r->extent = *x;
	if (in->is_regular)
		r->extent.trailer_bytes = 0;
	r->file_frame_bytes = (size_t)f->channels * f->container_bytes;
	r->data_offset_bytes = in->offset_bytes;
	r->left_bytes = x->to_end ? 0 : x->promised_bytes;
	r->ended = !x->to_end && !r->left_bytes;

	/* One byte to two, and double to float, need the file's bytes beside ours. */
	if (f->container_bytes == 1 || f->container_bytes == 8) {
		if (posix_memalign((void **)&r->scratch, 64, SCRATCH_BYTES)) {
			r->scratch = NULL;
			goto out;
		}
	}
	if (f->code == PCMREAD_FLOAT && f->container_bytes == 8) {
		if ((e = convert_init(&r->convert, SAMPLE_F64, SAMPLE_F32, false, 0)))
			goto out;
		source_note(s, "64-bit floats become 32-bit floats");
		e = ERR_NOMEM;
	}
	if (perm) {
		if ((e = chanmap_order_init(&r->order, perm, f->channels)))
			goto out;
		r->is_permuted = true;
	}

	source_set_pcm(s, f->rate_hz, f->channels, sample);
	if (f->code == PCMREAD_SIGNED && f->container_bytes > 1 && f->valid_bits && f->valid_bits < 8u * f->container_bytes)
		s->track.valid_bits = f->valid_bits;

	uint64_t there = in->size_bytes == SOURCE_SIZE_UNKNOWN ? SOURCE_SIZE_UNKNOWN : in->size_bytes - in->offset_bytes;
	uint64_t n_bytes = x->to_end ? there : x->promised_bytes < there ? x->promised_bytes : there;
	if (n_bytes != SOURCE_SIZE_UNKNOWN)
		s->n_frames = (int64_t)(n_bytes / r->file_frame_bytes);
	s->ops = &pcmread_ops;
	s->state = r;
	return ERR_OK;
out:
	chanmap_release(&r->order);
	free(r->scratch);
	free(r);
	return err_say(why, e, s->name, "%s", err_text(e));
}
