#include "media/source.h"

#include "base/bytes.h"
#include "base/role.h"
#include "base/utf8.h"
#include "media/livesource.h"
#include "wire/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tag longer than this (a picture in base64) is left out: an announcement holds 64 KiB in all. */
#define TAG_MAX_BYTES 16384u

/* ---- bytes ---- */

/* One read(2) with its interruptions.  Returns: bytes, 0 at the end or on failure (in->sys_errno). */
static size_t read_some(struct source_bytes *in, void *dst, size_t n_bytes)
{
	role_forbid(ROLE_DEADLINE);
	while (!in->eof) {
		if (in->stop && *in->stop) {
			in->stopped = in->eof = true;
			return 0;
		}
		ssize_t n = read(in->fd, dst, n_bytes);
		if (n > 0)
			return (size_t)n;
		if (n == 0) {
			in->eof = true;
		} else if (errno == EAGAIN) {
			struct pollfd p = { .fd = in->fd, .events = POLLIN };
			(void)poll(&p, 1, -1);
		} else if (errno != EINTR) {
			in->sys_errno = errno;
			in->eof = true;
		}
	}
	return 0;
}

void source_bytes_open(struct source_bytes *in, int fd, const volatile sig_atomic_t *stop)
{
	struct stat st;

	memset(in, 0, sizeof(*in));
	in->fd = fd;
	in->stop = stop;
	in->size_bytes = SOURCE_SIZE_UNKNOWN;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		off_t here = lseek(fd, 0, SEEK_CUR);
		/* Files of /proc and the like say they hold nothing: those are read like pipes. */
		if (here >= 0 && st.st_size > here) {
			in->is_regular = true;
			in->base_bytes = here;
			in->size_bytes = (uint64_t)(st.st_size - here);
		}
	}
	source_bytes_want(in, SOURCE_SNIFF_BYTES);
}

size_t source_bytes_want(struct source_bytes *in, size_t n_bytes)
{
	if (n_bytes > sizeof(in->head))
		n_bytes = sizeof(in->head);
	while (in->head_bytes < n_bytes) {
		size_t n = read_some(in, in->head + in->head_bytes, sizeof(in->head) - in->head_bytes);
		if (!n)
			break;
		in->head_bytes += n;
	}
	return in->head_bytes;
}

static size_t take_head(struct source_bytes *in, void *dst, size_t n_bytes)
{
	size_t n = in->head_bytes - in->head_used_bytes;

	if (n > n_bytes)
		n = n_bytes;
	if (dst && n)
		memcpy(dst, in->head + in->head_used_bytes, n);
	in->head_used_bytes += n;
	in->offset_bytes += n;
	return n;
}

size_t source_bytes_some(struct source_bytes *in, void *dst, size_t n_bytes)
{
	size_t n = take_head(in, dst, n_bytes);

	if (!n && n_bytes) {
		n = read_some(in, dst, n_bytes);
		in->offset_bytes += n;
	}
	return n;
}

size_t source_bytes_read(struct source_bytes *in, void *dst, size_t n_bytes)
{
	size_t got = take_head(in, dst, n_bytes);

	while (got < n_bytes) {
		size_t n = read_some(in, (uint8_t *)dst + got, n_bytes - got);
		if (!n)
			break;
		got += n;
		in->offset_bytes += n;
	}
	return got;
}

bool source_bytes_seek(struct source_bytes *in, uint64_t offset_bytes)
{
	if (!in->is_regular || offset_bytes > INT64_MAX - (uint64_t)in->base_bytes)
		return false;
	if (offset_bytes < in->head_bytes) {
		if (lseek(in->fd, in->base_bytes + (off_t)in->head_bytes, SEEK_SET) < 0)
			return false;
		in->head_used_bytes = (size_t)offset_bytes;
	} else {
		if (lseek(in->fd, in->base_bytes + (off_t)offset_bytes, SEEK_SET) < 0)
			return false;
		in->head_used_bytes = in->head_bytes;
	}
	in->offset_bytes = offset_bytes;
	in->eof = false;
	return true;
}

uint64_t source_bytes_skip(struct source_bytes *in, uint64_t n_bytes)
{
	if (in->is_regular) {
		uint64_t left = in->size_bytes > in->offset_bytes ? in->size_bytes - in->offset_bytes : 0;
		uint64_t n = n_bytes < left ? n_bytes : left;

		if (source_bytes_seek(in, in->offset_bytes + n)) {
			in->eof = n < n_bytes;
			return n;
		}
	}
	uint64_t done = take_head(in, NULL, n_bytes < SIZE_MAX ? (size_t)n_bytes : SIZE_MAX);
	uint8_t scratch[16384];

	while (done < n_bytes) {
		uint64_t want = n_bytes - done < sizeof(scratch) ? n_bytes - done : sizeof(scratch);
		size_t n = read_some(in, scratch, (size_t)want);
		if (!n)
			break;
		done += n;
		in->offset_bytes += n;
	}
	return done;
}

bool source_bytes_would_block(const struct source_bytes *in, size_t n_bytes)
{
	size_t held = in->head_bytes - in->head_used_bytes;
	int waiting = 0;

	if (in->is_regular || in->eof || held >= n_bytes)
		return false;
	if (!ioctl(in->fd, FIONREAD, &waiting))
		return held + (size_t)waiting < n_bytes;
	struct pollfd p = { .fd = in->fd, .events = POLLIN };
	return poll(&p, 1, 0) == 0;
}

/* ---- for adapters ---- */

const char *source_left_out(const struct source *s, char out[static 96])
{
	out[0] = 0;
	if (s->n_pictures)
		snprintf(out, 96, s->n_pictures == 1 ? "its picture does not come along" : "its %u pictures do not come along", s->n_pictures);
	return out;
}

void source_note(struct source *s, const char *fmt, ...)
{
	size_t at = strlen(s->note);
	va_list ap;

	if (at && at + 3 < sizeof(s->note)) {
		memcpy(s->note + at, "; ", 3);
		at += 2;
	}
	va_start(ap, fmt);
	vsnprintf(s->note + at, sizeof(s->note) - at, fmt, ap);
	va_end(ap);
}

void source_warn(struct source *s, const char *fmt, ...)
{
	s->cut = true;
	if (s->warning[0])
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->warning, sizeof(s->warning), fmt, ap);
	va_end(ap);
}

static bool is_utf8(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		unsigned len = utf8_length(p + i, n - i);
		if (!len)
			return false;
		i += len;
	}
	return true;
}

void source_tag(struct source *s, const char *key, const char *value, size_t value_bytes)
{
	const uint8_t *v = (const uint8_t *)value;
	size_t n = strnlen(value, value_bytes), at = 0;

	while (n && (v[n - 1] == ' ' || v[n - 1] == '\r' || v[n - 1] == '\n'))
		n--;
	if (!n || !key[0] || strchr(key, '='))
		return;
	for (const char *k = key; *k; k++) {
		if (*k < 0x20 || *k > 0x7D)
			return;
	}
	if (n > TAG_MAX_BYTES) {
		source_note(s, "tag %.40s left out: %zu bytes", key, n);
		return;
	}
	char *text = malloc(2 * n + 1);
	if (!text)
		return;
	bool utf8 = is_utf8(v, n);
	for (size_t i = 0; i < n; i++) {
		if (utf8 || v[i] < 0x80) {
			text[at++] = (char)v[i];
		} else {
			text[at++] = (char)(0xC0 | v[i] >> 6);
			text[at++] = (char)(0x80 | (v[i] & 0x3F));
		}
	}
	text[at] = '\0';
	if (track_add_tag(&s->track, key, text, false))
		source_note(s, "tag %.40s left out: too much for an announcement", key);
	free(text);
}

void source_set_pcm(struct source *s, uint32_t rate_hz, uint16_t channels, enum sample sample)
{
	struct track t = track_pcm(rate_hz, channels, sample);

	t.tlv = s->track.tlv;
	t.tlv_bytes = s->track.tlv_bytes;
	t.tlv_room_bytes = s->track.tlv_room_bytes;
	s->track = t;
}

enum err source_check(const struct source *s, uint64_t rate_hz, uint64_t channels, struct err_why *why)
{
	if (rate_hz < TRACK_MIN_RATE_HZ || rate_hz > TRACK_MAX_RATE_HZ)
		return err_say(why, ERR_LIMIT, s->name, "sample rate %llu Hz in its header: not from %u to %u", (unsigned long long)rate_hz,
			TRACK_MIN_RATE_HZ, TRACK_MAX_RATE_HZ);
	if (channels < 1 || channels > TRACK_MAX_CHANNELS)
		return err_say(why, ERR_LIMIT, s->name, "%llu channels in its header: not from 1 to %u", (unsigned long long)channels,
			TRACK_MAX_CHANNELS);
	return ERR_OK;
}

enum err source_failed(struct source *s, const struct source_bytes *in)
{
	errno = in->sys_errno;
	return err_sys(&s->why, s->name);
}

/* ---- opening ---- */

bool source_is_stream(const uint8_t *head, size_t n_bytes)
{
	return n_bytes >= 6 && get_le32(head) == PACKET_SYNC && head[4] >> 4 == PACKET_VERSION >> 4;
}

/* Of errno.  `mic:` was not meant as the name of a file. */
static enum err explain_open(const char *path, struct err_why *why)
{
	size_t n = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-");
	bool is_word = n && path[n] == ':' && errno == ENOENT && !strchr(path, '/');
	enum err e = err_sys(why, path);

	return is_word ? err_say(why, e, path, "%s; sources of sound: pulse: pipewire: jack: alsa:, and gen: raw:", strerror(ENOENT)) : e;
}

static enum err open_path(struct source *s, const char *path, const struct source_args *args, struct err_why *why)
{
	struct stat st;

	if (!strcmp(path, "-")) {
		snprintf(s->name, sizeof(s->name), "<stdin>");
		s->fd = args->stdin_fd;
		if (isatty(s->fd))
			return err_say(why, ERR_ARG, s->name, "is a terminal: there is no audio to read");
	} else {
		snprintf(s->name, sizeof(s->name), "%s", path);
		if (!path[0])
			return err_say(why, ERR_ARG, "\"\"", "an empty file name");
		s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (s->fd < 0)
			return explain_open(s->name, why);
		s->owns_fd = true;
	}
	if (fstat(s->fd, &st))
		return err_sys(why, s->name);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_sys(why, s->name);
	}
	return ERR_OK;
}

static enum err open_content(struct source *s, struct source_bytes *in, struct err_why *why)
{
	static enum err (*const adapter[])(struct source *, struct source_bytes *, struct err_why *) = {
		wavread_open, cafread_open, aiffread_open, auread_open, flacread_open, opusread_open, vorbisread_open, mp3read_open,
		sndread_open,
	};

	for (size_t i = 0; i < ARRAY_LEN(adapter); i++) {
		enum err e = adapter[i](s, in, why);
		if (e != ERR_AGAIN)
			return e;
	}
	return ERR_AGAIN;
}

enum err source_open_bytes(struct source *s, const char *name, struct source_bytes *in, bool owns_fd, const struct source_args *args,
	struct err_why *why)
{
	memset(s, 0, sizeof(*s));
	s->n_frames = -1;
	s->stop = args->stop;
	s->fd = in->fd;
	s->owns_fd = owns_fd;
	snprintf(s->name, sizeof(s->name), "%s", name);
	enum err e = open_content(s, in, why);
	if (e == ERR_AGAIN)
		s->owns_fd = false; /* still the caller's */
	if (e)
		source_release(s);
	return e;
}

enum err source_unknown(struct err_why *why, const char *name)
{
	return err_say(why, ERR_FORMAT, name, "is in no audio format known here, and no weir stream; \"ffmpeg -i FILE -f wav - | weir capture -\" reads more; "
		"headerless samples are weir capture raw:FILE with -r, -c and -f");
}

enum err source_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why)
{
	enum err e = ERR_FORMAT;
	struct source_bytes in;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->n_frames = -1;
	s->stop = args->stop;
	/* Devices are not files: the words are kept for them, and "./jack:x" is how a file of that name is written. */
	if (live_is_device(spec)) {
		size_t n = strlen(spec);
		snprintf(s->name, sizeof(s->name), "%.*s", (int)(n && spec[n - 1] == ':' ? n - 1 : n), spec);
		e = livesource_open(s, spec, args, why);
		goto out;
	}
	if (!strncmp(spec, "gen:", 4)) {
		snprintf(s->name, sizeof(s->name), "%s", spec);
		e = genread_open(s, spec, args, why);
		goto out;
	}
	bool raw = !strncmp(spec, "raw:", 4);
	if ((e = open_path(s, raw ? spec + 4 : spec, args, why)))
		goto out;

	source_bytes_open(&in, s->fd, args->stop);
	if (in.sys_errno) {
		errno = in.sys_errno;
		e = err_sys(why, s->name);
	} else if (raw) {
		e = rawread_open(s, &in, args, why);
	} else if (!in.head_bytes && in.stopped) {
		e = err_say(why, ERR_FORMAT, s->name, "stopped before anything came");
	} else if (!in.head_bytes) {
		e = err_say(why, ERR_FORMAT, s->name, "is empty (0 bytes)");
	} else if (source_is_stream(in.head, in.head_bytes)) {
		e = err_say(why, ERR_FORMAT, s->name,
			"is a weir stream, not an audio file: it needs no capture, give it to the next tool as it is");
	} else if ((e = open_content(s, &in, why)) == ERR_AGAIN) {
		e = source_unknown(why, s->name);
	}
out:
	if (e)
		source_release(s);
	return e;
}

enum err source_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	memset(b, 0, sizeof(*b));
	b->utc_ns = UNITS_UNKNOWN_NS;
	enum err e = s->ops->read(s, dst, max_frames, b);
	b->pos += s->shift_frames;
	return e;
}

bool source_would_block(const struct source *s, size_t n_frames)
{
	return s->ops && s->ops->would_block && s->ops->would_block(s, n_frames);
}

enum err source_seek(struct source *s, int64_t pos)
{
	if (pos <= s->track.first_pos)
		return ERR_OK;
	if (s->ops->seek)
		return s->ops->seek(s, pos);

	size_t room_frames = 65536 / s->track.frame_bytes;
	uint8_t *scratch = NULL;
	int64_t at = s->track.first_pos;
	enum err e = ERR_OK;

	/* A chained link may change the layout on the way: the room is taken for the most channels. */
	if (posix_memalign((void **)&scratch, 64, room_frames * TRACK_MAX_CHANNELS * 4))
		return err_say(&s->why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	while (!e && at < pos) {
		struct source_block b;
		size_t want = pos - at < (int64_t)room_frames ? (size_t)(pos - at) : room_frames;

		e = source_read(s, scratch, want, &b);
		if (!e && (b.n_frames || b.gap_frames))
			at = b.pos + (int64_t)(b.n_frames + b.gap_frames);
	}
	free(scratch);
	return e == ERR_END ? ERR_OK : e; /* the next read says ERR_END again */
}

enum err source_trim(struct source *s, int64_t n_frames)
{
	if (n_frames <= 0)
		return ERR_OK;
	int64_t begin = s->track.first_pos + n_frames;
	enum err e = source_seek(s, begin);

	if (e)
		return e;
	s->shift_frames = -begin;
	s->track.first_pos = 0;
	if (s->n_frames >= 0)
		s->n_frames = s->n_frames > n_frames ? s->n_frames - n_frames : 0;
	return ERR_OK;
}

void source_release(struct source *s)
{
	if (s->ops && s->ops->release)
		s->ops->release(s);
	s->ops = NULL;
	s->state = NULL;
	track_release(&s->track);
	if (s->owns_fd)
		close(s->fd);
	s->owns_fd = false;
	s->fd = -1;
}
