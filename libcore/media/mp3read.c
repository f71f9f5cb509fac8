/*
 * MPEG audio layers I to III by libmpg123, as f32.  What an encoder adds at either end is taken off where the file says
 * how much that is (the LAME tag).
 */
#include "media/source.h"

#include <errno.h>
#include <fmt123.h>
#include <inttypes.h>
#include <mpg123.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mp3 {
	struct source_bytes in;
	mpg123_handle *mh;
	int64_t pos;
	int64_t promised_frames;  /* by an info tag; without one a length is a guess from the file's size: −1 */
	bool ended;
};

/* ---- recognising ---- */

/* A frame header.  Returns: its frame's length in bytes, 0 if it is none (free format is not looked for). */
static size_t frame_bytes_of(const uint8_t *p)
{
	static const uint16_t kbps[2][3][15] = {
		{ { 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448 },
			{ 0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384 },
			{ 0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320 } },
		{ { 0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256 },
			{ 0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 },
			{ 0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 } },
	};
	static const uint16_t rates_hz[3] = { 44100, 48000, 32000 };
	unsigned version = p[1] >> 3 & 3, layer = 4 - (p[1] >> 1 & 3), bitrate = p[2] >> 4, rate = p[2] >> 2 & 3, pad = p[2] >> 1 & 1;

	if (p[0] != 0xFF || (p[1] & 0xE0) != 0xE0 || version == 1 || layer == 4 || bitrate == 0 || bitrate == 15 || rate == 3)
		return 0;
	unsigned bps = kbps[version != 3][layer - 1][bitrate] * 1000u, hz = rates_hz[rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
	if (layer == 1)
		return (12u * bps / hz + pad) * 4;
	return (layer == 3 && version != 3 ? 72u : 144u) * bps / hz + pad;
}

static bool is_same_kind(const uint8_t *a, const uint8_t *b)
{
	return a[1] >> 1 == b[1] >> 1 && (a[2] & 0x0C) == (b[2] & 0x0C);
}

/* n_bytes of the input at an offset, without taking them.  Returns: bytes got. */
static size_t look(struct source_bytes *in, size_t at, uint8_t *p, size_t n_bytes)
{
	if (in->is_regular) {
		size_t n = source_bytes_seek(in, at) ? source_bytes_read(in, p, n_bytes) : 0;
		return source_bytes_seek(in, 0) ? n : 0;
	}
	size_t there = at < SOURCE_HEAD_BYTES ? source_bytes_want(in, at + n_bytes) : 0;
	size_t n = at >= there ? 0 : there - at < n_bytes ? there - at : n_bytes;
	memcpy(p, in->head + (n ? at : 0), n);
	return n;
}

/* Two frames of one kind in a row: chance makes that once in millions.  A tag before them may be large. */
static bool sniff(struct source_bytes *in, bool *has_count)
{
	uint8_t a[256], b[10];
	size_t at = 0;

	while (look(in, at, a, 10) == 10 && !memcmp(a, "ID3", 3)) {
		at += 10 + ((size_t)(a[6] & 0x7F) << 21 | (size_t)(a[7] & 0x7F) << 14 | (size_t)(a[8] & 0x7F) << 7 | (a[9] & 0x7F));
		if (!in->is_regular && at + 10 > SOURCE_HEAD_BYTES)
			return true; /* a tag on a pipe that reaches beyond what can be looked at: nothing else is so often behind it */
	}
	/* Zeros are often put between the tag and the audio. */
	for (unsigned i = 0; at && i < 4096 && look(in, at, a, 4) == 4 && !a[0]; i++)
		at++;
	if (look(in, at, a, 4) < 4 || !frame_bytes_of(a))
		return false;
	size_t next = at + frame_bytes_of(a), n = look(in, at, a, sizeof(a));

	/* An info tag stands in the first frame, behind its side information: a word, then a bit for "frames are counted". */
	for (size_t i = 4; i + 8 <= n && i < 64; i++) {
		if (!memcmp(a + i, "Xing", 4) || !memcmp(a + i, "Info", 4))
			*has_count = a[i + 7] & 1;
	}
	n = look(in, next, b, 4);
	return n < 4 ? in->is_regular || in->eof : frame_bytes_of(b) && is_same_kind(a, b);
}

/* ---- reading ---- */

static mpg123_ssize_t on_read(void *user, void *to, size_t n_bytes)
{
	struct mp3 *m = user;
	size_t n = source_bytes_some(&m->in, to, n_bytes);

	return !n && m->in.sys_errno ? -1 : (mpg123_ssize_t)n;
}

static off_t on_seek(void *user, off_t offset_bytes, int whence)
{
	struct mp3 *m = user;
	int64_t to = offset_bytes;

	if (!m->in.is_regular)
		return -1;
	if (whence == SEEK_CUR)
		to += (int64_t)m->in.offset_bytes;
	else if (whence == SEEK_END)
		to += (int64_t)m->in.size_bytes;
	return to >= 0 && source_bytes_seek(&m->in, (uint64_t)to) ? (off_t)to : -1;
}

static enum err mp3read_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct mp3 *m = s->state;
	size_t want = max_frames * s->track.frame_bytes, got = 0;

	while (!m->ended && got < want) {
		size_t n = 0;
		int r = mpg123_read(m->mh, dst + got, want - got, &n);

		got += n;
		if (r == MPG123_OK || r == MPG123_NEW_FORMAT)
			continue;
		m->ended = true;
		if (m->in.sys_errno && !got)
			return source_failed(s, &m->in);
		/* On a pipe libmpg123 calls an end in the middle of a frame an error; it says more to count what is missing. */
		if (r != MPG123_DONE && !(m->in.eof && m->promised_frames >= 0))
			source_warn(s, "libmpg123 gave up at frame %" PRId64 ": %s", m->pos + (int64_t)(got / s->track.frame_bytes),
				mpg123_strerror(m->mh));
	}
	b->pos = m->pos;
	b->n_frames = got / s->track.frame_bytes;
	m->pos += (int64_t)b->n_frames;
	if (m->ended && m->promised_frames > m->pos && !m->in.stopped) {
		s->lost_frames = (uint64_t)(m->promised_frames - m->pos);
		source_warn(s, "cut short: %" PRId64 " of %" PRId64 " frames are there", m->pos, m->promised_frames);
	}
	return b->n_frames ? ERR_OK : ERR_END;
}

static enum err mp3read_seek(struct source *s, int64_t pos)
{
	struct mp3 *m = s->state;
	off_t at = mpg123_seek(m->mh, (off_t)pos, SEEK_SET);

	if (at < 0) {
		/* Beyond the end is an end, not a failure. */
		if (m->in.sys_errno)
			return source_failed(s, &m->in);
		m->ended = true;
		m->promised_frames = -1;
		return ERR_OK;
	}
	m->pos = at;
	return ERR_OK;
}

static bool mp3read_would_block(const struct source *s, size_t n_frames)
{
	const struct mp3 *m = s->state;

	(void)n_frames;
	return !m->ended && source_bytes_would_block(&m->in, SOURCE_ENOUGH_BYTES);
}

static void mp3read_release(struct source *s)
{
	struct mp3 *m = s->state;

	if (m && m->mh)
		mpg123_delete(m->mh);
	free(m);
	s->state = NULL;
}

static const struct source_ops mp3read_ops = {
	.name = "mp3read",
	.read = mp3read_read,
	.seek = mp3read_seek,
	.would_block = mp3read_would_block,
	.release = mp3read_release,
};

static const struct source_ops mp3read_pipe_ops = {
	.name = "mp3read",
	.read = mp3read_read,
	.would_block = mp3read_would_block,
	.release = mp3read_release,
};

/* ---- opening ---- */

static void take_tags(struct source *s, mpg123_handle *mh)
{
	mpg123_id3v1 *v1 = NULL;
	mpg123_id3v2 *v2 = NULL;

	if (!(mpg123_meta_check(mh) & MPG123_ID3) || mpg123_id3(mh, &v1, &v2) != MPG123_OK)
		return;
	if (v2) {
		s->n_pictures += (unsigned)v2->pictures;
		const struct {
			const mpg123_string *value;
			const char *key;
		} fields[] = {
			{ v2->title, "TITLE" }, { v2->artist, "ARTIST" }, { v2->album, "ALBUM" }, { v2->year, "DATE" }, { v2->genre, "GENRE" },
			{ v2->comment, "COMMENT" },
		};
		for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
			if (fields[i].value && fields[i].value->fill)
				source_tag(s, fields[i].key, fields[i].value->p, fields[i].value->fill);
		}
		for (size_t i = 0; i < v2->texts; i++) {
			if (!memcmp(v2->text[i].id, "TRCK", 4) && v2->text[i].text.fill)
				source_tag(s, "TRACKNUMBER", v2->text[i].text.p, v2->text[i].text.fill);
		}
	} else if (v1) {
		source_tag(s, "TITLE", v1->title, sizeof(v1->title));
		source_tag(s, "ARTIST", v1->artist, sizeof(v1->artist));
		source_tag(s, "ALBUM", v1->album, sizeof(v1->album));
		source_tag(s, "DATE", v1->year, sizeof(v1->year));
		source_tag(s, "COMMENT", v1->comment, sizeof(v1->comment));
	}
}

static enum err start(struct source *s, struct mp3 *m, struct err_why *why)
{
	long rate_hz = 0;
	int r = MPG123_OK, channels = 0, encoding = 0;

	m->mh = mpg123_new(NULL, &r);
	if (!m->mh)
		return err_say(why, ERR_CODEC, s->name, "libmpg123: %s", mpg123_plain_strerror(r));
	(void)mpg123_param(m->mh, MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_PICTURE | MPG123_GAPLESS | MPG123_FORCE_FLOAT | MPG123_NO_FRANKENSTEIN, 0);
	if (mpg123_replace_reader_handle(m->mh, on_read, on_seek, NULL) || mpg123_open_handle(m->mh, m) ||
		mpg123_getformat(m->mh, &rate_hz, &channels, &encoding))
		return err_say(why, ERR_FORMAT, s->name, "libmpg123: %s", mpg123_strerror(m->mh));
	if (encoding != MPG123_ENC_FLOAT_32)
		return err_say(why, ERR_CODEC, s->name, "libmpg123 was built without 32-bit floats");
	enum err e = source_check(s, (uint64_t)rate_hz, (uint64_t)channels, why);
	if (e)
		return e;

	/* From here on this format and no other. */
	(void)mpg123_format_none(m->mh);
	if (mpg123_format(m->mh, rate_hz, channels == 1 ? MPG123_MONO : MPG123_STEREO, MPG123_ENC_FLOAT_32))
		return err_say(why, ERR_CODEC, s->name, "libmpg123: %s", mpg123_strerror(m->mh));
	take_tags(s, m->mh);
	source_set_pcm(s, (uint32_t)rate_hz, (uint16_t)channels, SAMPLE_F32);
	off_t n = mpg123_length(m->mh);
	s->n_frames = n > 0 ? (int64_t)n : -1;
	return ERR_OK;
}

enum err mp3read_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	bool has_count = false;

	if (!sniff(in, &has_count))
		return ERR_AGAIN;
	struct mp3 *m = calloc(1, sizeof(*m));
	if (!m)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	s->state = m;
	s->ops = in->is_regular ? &mp3read_ops : &mp3read_pipe_ops;
	m->in = *in;
	enum err e = start(s, m, why);
	m->promised_frames = !e && has_count ? s->n_frames : -1;
	return e;
}
