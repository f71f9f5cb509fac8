/*
 * Ogg Vorbis by libvorbisfile, as f32 in WAVE order: files, and pipes that never end (a radio).  A chained link brings
 * new tags, maybe new channels; a new rate ends it.
 */
#include "media/chanmap.h"
#include "media/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vorbis/vorbisfile.h>

struct vorbis {
	struct source_bytes in;
	OggVorbis_File file;
	bool is_open, ended;
	int link;
	uint16_t perm[64];
	/* what the decoder gave and nobody took yet: the library's own memory, valid until it is called again */
	float **plane;
	size_t plane_frames, plane_at_frames;
	int64_t pos;
	int64_t shift;            /* ours minus the library's position */
	unsigned n_holes;
	int64_t first_hole_pos;
	bool hole;                /* one has been met, and its length is not known yet */
};

static size_t on_read(void *to, size_t size, size_t n, void *user)
{
	struct vorbis *v = user;
	size_t got = source_bytes_some(&v->in, to, size * n);

	/* The library tells an end from a failure by errno. */
	errno = got ? 0 : v->in.sys_errno;
	return got / size;
}

static int on_seek(void *user, ogg_int64_t offset_bytes, int whence)
{
	struct vorbis *v = user;
	int64_t to = offset_bytes;

	if (!v->in.is_regular)
		return -1;
	if (whence == SEEK_CUR)
		to += (int64_t)v->in.offset_bytes;
	else if (whence == SEEK_END)
		to += (int64_t)v->in.size_bytes;
	return to >= 0 && source_bytes_seek(&v->in, (uint64_t)to) ? 0 : -1;
}

static long on_tell(void *user)
{
	struct vorbis *v = user;

	return (long)v->in.offset_bytes;
}

/* Format, layout and tags of the link at hand. */
static enum err take_link(struct source *s, struct vorbis *v, struct err_why *why)
{
	vorbis_info *info = ov_info(&v->file, -1);
	vorbis_comment *vc = ov_comment(&v->file, -1);
	struct chanmap map;

	if (!info)
		return err_say(why, ERR_CODEC, s->name, "libvorbis knows no format");
	enum err e = track_set_tlv(&s->track, TRACK_TLV_TAGS, NULL, 0);
	if (e)
		return err_say(why, e, s->name, "%s", err_text(e));
	e = source_check(s, (uint64_t)info->rate, (uint64_t)info->channels, why);
	if (e)
		return e;
	uint8_t gen = s->track.gen;
	int64_t first_pos = s->track.first_pos;
	source_set_pcm(s, (uint32_t)info->rate, (uint16_t)info->channels, SAMPLE_F32);
	s->track.gen = gen;
	s->track.first_pos = first_pos;
	for (unsigned i = 0; i < ARRAY_LEN(v->perm); i++)
		v->perm[i] = (uint16_t)i;
	if (chanmap_from_vorbis(&map, s->track.channels))
		(void)chanmap_apply(&map, &s->track, v->perm);
	for (int i = 0; vc && i < vc->comments; i++) {
		const char *eq = memchr(vc->user_comments[i], '=', (size_t)vc->comment_lengths[i]);
		char key[80];

		if (eq && (size_t)(eq - vc->user_comments[i]) < sizeof(key)) {
			snprintf(key, sizeof(key), "%.*s", (int)(eq - vc->user_comments[i]), vc->user_comments[i]);
			source_tag(s, key, eq + 1, (size_t)(vc->user_comments[i] + vc->comment_lengths[i] - eq - 1));
		}
	}
	return ERR_OK;
}

/* A run of decoded planes.  Sets b->track_changed or a gap and leaves the planes waiting where that comes first. */
static enum err decode(struct source *s, struct vorbis *v, size_t max_frames, struct source_block *b)
{
	uint32_t rate_hz = track_rate_hz(&s->track);
	int link = v->link;
	long n = ov_read_float(&v->file, &v->plane, max_frames < 65536 ? (int)max_frames : 65536, &link);

	if (n == OV_HOLE || n == OV_EBADLINK) {
		v->hole = true;
		if (!v->n_holes++)
			v->first_hole_pos = v->pos;
		return ERR_OK;
	}
	if (n <= 0) {
		v->ended = true;
		if (v->in.sys_errno)
			return source_failed(s, &v->in);
		if (n < 0)
			source_warn(s, "libvorbis gave up at frame %" PRId64 " (%ld)", v->pos, n);
		if (v->file.oy.fill > v->file.oy.returned && !v->in.stopped)
			source_warn(s, "ends in the middle of a page, after frame %" PRId64, v->pos);
		if (v->n_holes)
			source_warn(s, "damaged: %u hole%s, %" PRIu64 " frames lost, from frame %" PRId64 " (%.3f s) on", v->n_holes,
				v->n_holes == 1 ? "" : "s", s->lost_frames, v->first_hole_pos, (double)v->first_hole_pos / track_rate_hz(&s->track));
		return ERR_END;
	}
	v->plane_frames = (size_t)n;
	v->plane_at_frames = 0;
	if (link != v->link) {
		/* On a pipe the library calls the seam between two links a hole. */
		if (v->hole) {
			v->hole = false;
			v->n_holes--;
		}
		v->link = link;
		enum err e = take_link(s, v, &s->why);
		if (e)
			return e;
		if (track_rate_hz(&s->track) != rate_hz) {
			v->ended = true;
			source_warn(s, "its rate changes from %u to %u Hz at frame %" PRId64 ": what follows is left out", rate_hz,
				track_rate_hz(&s->track), v->pos);
			return ERR_END;
		}
		b->track_changed = true;
	}

	/*
	 * The library's position is behind what it gave.  After a hole it stands still until a page says where it is:
	 * only then is the length known, and time put right.
	 */
	int64_t begins = ov_pcm_tell(&v->file) - n + v->shift;
	if (!v->hole || begins < v->pos) {
		v->shift += v->pos - begins;
	} else if (begins > v->pos) {
		v->hole = false;
		b->pos = v->pos;
		b->gap_frames = (uint64_t)(begins - v->pos);
		b->gap_reason = PACKET_GAP_DAMAGED;
		s->lost_frames += b->gap_frames;
		v->pos = begins;
	}
	return ERR_OK;
}

static enum err vorbisread_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct vorbis *v = s->state;

	while (!v->ended && v->plane_at_frames == v->plane_frames) {
		enum err e = decode(s, v, max_frames, b);
		if (e)
			return e;
		if (b->track_changed || b->gap_frames)
			return ERR_OK;
	}
	if (v->ended)
		return ERR_END;
	size_t n = v->plane_frames - v->plane_at_frames;
	unsigned channels = s->track.channels;
	float *to = (float *)(void *)dst;

	if (n > max_frames)
		n = max_frames;
	for (unsigned c = 0; c < channels; c++) {
		const float *from = v->plane[channels <= ARRAY_LEN(v->perm) ? v->perm[c] : c] + v->plane_at_frames;
		for (size_t i = 0; i < n; i++)
			to[i * channels + c] = from[i];
	}
	b->pos = v->pos;
	b->n_frames = n;
	v->plane_at_frames += n;
	v->pos += (int64_t)n;
	return ERR_OK;
}

static enum err vorbisread_seek(struct source *s, int64_t pos)
{
	struct vorbis *v = s->state;

	if (s->n_frames >= 0 && pos >= s->n_frames) {
		v->ended = true;
		return ERR_OK;
	}
	if (ov_pcm_seek(&v->file, pos)) {
		if (v->in.sys_errno)
			return source_failed(s, &v->in);
		return err_say(&s->why, ERR_CODEC, s->name, "libvorbis cannot find frame %" PRId64, pos);
	}
	v->pos = pos;
	return ERR_OK;
}

static bool vorbisread_would_block(const struct source *s, size_t n_frames)
{
	const struct vorbis *v = s->state;

	(void)n_frames;
	return !v->ended && v->plane_at_frames == v->plane_frames && source_bytes_would_block(&v->in, SOURCE_ENOUGH_BYTES);
}

static void vorbisread_release(struct source *s)
{
	struct vorbis *v = s->state;

	if (v && v->is_open)
		ov_clear(&v->file);
	free(v);
	s->state = NULL;
}

static const struct source_ops vorbisread_ops = {
	.name = "vorbisread",
	.read = vorbisread_read,
	.seek = vorbisread_seek,
	.would_block = vorbisread_would_block,
	.release = vorbisread_release,
};

static const struct source_ops vorbisread_pipe_ops = {
	.name = "vorbisread",
	.read = vorbisread_read,
	.would_block = vorbisread_would_block,
	.release = vorbisread_release,
};

enum err vorbisread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	const uint8_t *h = in->head;

	if (in->head_bytes < 35 || memcmp(h, "OggS", 4) || 27u + h[26] + 7 > in->head_bytes || memcmp(h + 27 + h[26], "\1vorbis", 7))
		return ERR_AGAIN;
	struct vorbis *v = calloc(1, sizeof(*v));
	if (!v)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	s->state = v;
	s->ops = in->is_regular ? &vorbisread_ops : &vorbisread_pipe_ops;
	v->in = *in;

	ov_callbacks callbacks = { .read_func = on_read, .seek_func = in->is_regular ? on_seek : NULL, .tell_func = in->is_regular ? on_tell : NULL };
	int r = ov_open_callbacks(v, &v->file, NULL, 0, callbacks);
	if (r && in->is_regular && !v->in.sys_errno && source_bytes_seek(&v->in, 0)) {
		/* A file that is damaged where the library looks for its end can still be read from its beginning, as a pipe is. */
		v->in.is_regular = false;
		s->ops = &vorbisread_pipe_ops;
		callbacks.seek_func = NULL;
		callbacks.tell_func = NULL;
		r = ov_open_callbacks(v, &v->file, NULL, 0, callbacks);
	}
	if (r) {
		if (v->in.sys_errno) {
			(void)source_failed(s, &v->in);
			return err_say(why, s->why.err, s->name, "%s", s->why.reason);
		}
		return err_say(why, ERR_FORMAT, s->name, "libvorbis cannot open it (%d): its headers are damaged", r);
	}
	v->is_open = true;
	enum err e = take_link(s, v, why);
	if (!e && v->in.is_regular) {
		ogg_int64_t n = ov_pcm_total(&v->file, -1);
		s->n_frames = n >= 0 ? n : -1;
	}
	return e;
}
