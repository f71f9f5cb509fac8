/*
 * What is left for libsndfile: WAV and AIFF-C with compressed samples, ALAC in CAF, VOC, NIST, IRCAM, PAF, SVX, HTK,
 * MAT4, MAT5, PVF, XI, SDS, AVR, SD2, MPC.  It wants to seek, and on pipes it damages or refuses several formats;
 * so a pipe is first copied into an unlinked file.
 */
#include "base/bytes.h"
#include "dsp/convert.h"
#include "media/chanmap.h"
#include "media/pcmread.h"
#include "media/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPOOL_MAX_BYTES ((uint64_t)4 << 30)
#define SPOOL_STEP_BYTES 65536u
#define SND_SCRATCH_SAMPLES 16384u
#define LOG_BYTES 16384u
#define OGG_HEAD_BYTES 27
#define OGG_PAGE_MAX_BYTES (OGG_HEAD_BYTES + 255 + 255 * 255)

struct snd {
	SNDFILE *file;
	int spool_fd;             /* −1 none */
	uint16_t channels;
	enum sample sample;
	int64_t pos, n_frames;
	bool is_cut;              /* there is less of the file than its header says */
	struct convert convert;   /* s32 to s24 */
	int32_t *scratch;
	bool is_permuted;
	struct chanmap_order order;
};

/* What the samples are read as: the stream's format that holds them all. */
static enum sample pick_sample(int format)
{
	switch (format & SF_FORMAT_SUBMASK) {
	case SF_FORMAT_PCM_24:
	case SF_FORMAT_ALAC_20:
	case SF_FORMAT_ALAC_24:
		return SAMPLE_S24;
	case SF_FORMAT_PCM_32:
	case SF_FORMAT_ALAC_32:
		return SAMPLE_S32;
	case SF_FORMAT_FLOAT:
	case SF_FORMAT_DOUBLE:
	case SF_FORMAT_VORBIS:
	case SF_FORMAT_OPUS:
	case SF_FORMAT_MPEG_LAYER_I:
	case SF_FORMAT_MPEG_LAYER_II:
	case SF_FORMAT_MPEG_LAYER_III:
		return SAMPLE_F32;
	default:
		return SAMPLE_S16;
	}
}

static sf_count_t read_some(struct source *s, struct snd *r, uint8_t *dst, sf_count_t n_frames)
{
	sf_count_t got, step = (sf_count_t)(SND_SCRATCH_SAMPLES / r->channels);

	switch (r->sample) {
	case SAMPLE_S16:
		return sf_readf_short(r->file, (short *)(void *)dst, n_frames);
	case SAMPLE_S32:
		return sf_readf_int(r->file, (int *)(void *)dst, n_frames);
	case SAMPLE_F32:
		return sf_readf_float(r->file, (float *)(void *)dst, n_frames);
	default:
		/* libsndfile gives 24 bits at the top of 32. */
		got = sf_readf_int(r->file, r->scratch, n_frames < step ? n_frames : step);
		if (got > 0)
			(void)convert_run(&r->convert, dst, r->scratch, (size_t)got * s->track.channels);
		return got;
	}
}

static enum err sndread_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct snd *r = s->state;

	b->pos = r->pos;
	while (b->n_frames < max_frames) {
		if (s->stop && *s->stop)
			break;
		sf_count_t n = read_some(s, r, dst + b->n_frames * s->track.frame_bytes, (sf_count_t)(max_frames - b->n_frames));
		if (n <= 0)
			break;
		b->n_frames += (size_t)n;
	}
	if (r->is_permuted)
		chanmap_reorder(&r->order, dst, b->n_frames, track_sample_bytes(r->sample));
	r->pos += (int64_t)b->n_frames;
	if (b->n_frames)
		return ERR_OK;
	if (sf_error(r->file))
		source_warn(s, "libsndfile gave up at frame %" PRId64 ": %s", r->pos, sf_strerror(r->file));
	else if (r->n_frames > r->pos && !(s->stop && *s->stop))
		source_warn(s, "cut short: %" PRId64 " of %" PRId64 " frames are there", r->pos, r->n_frames);
	else if (r->is_cut && !(s->stop && *s->stop))
		source_warn(s, "cut short: %" PRId64 " frames are there", r->pos);
	return ERR_END;
}

static enum err sndread_seek(struct source *s, int64_t pos)
{
	struct snd *r = s->state;

	if (r->n_frames >= 0 && pos > r->n_frames)
		pos = r->n_frames;
	if (sf_seek(r->file, pos, SEEK_SET) != pos)
		return err_say(&s->why, ERR_CODEC, s->name, "libsndfile cannot find frame %" PRId64 ": %s", pos, sf_strerror(r->file));
	r->pos = pos;
	return ERR_OK;
}

static void sndread_release(struct source *s)
{
	struct snd *r = s->state;

	if (!r)
		return;
	if (r->file)
		sf_close(r->file);
	if (r->spool_fd >= 0)
		close(r->spool_fd);
	chanmap_release(&r->order);
	free(r->scratch);
	free(r);
	s->state = NULL;
}

static const struct source_ops sndread_ops = {
	.name = "sndread",
	.read = sndread_read,
	.seek = sndread_seek,
	.release = sndread_release,
};

/* ---- opening ---- */

/* The marks of what libsndfile knows and the other adapters do not take: so that a pipe is not spooled for nothing. */
static bool sniff(const struct source_bytes *in)
{
	static const struct {
		uint8_t n;
		const char *bytes;
	} marks[] = {
		{ 4, "RIFF" }, { 4, "RIFX" }, { 4, "RF64" }, { 4, "riff" }, { 4, "caff" }, { 4, "FORM" }, { 4, ".snd" },
		{ 4, "dns." }, { 4, "fLaC" }, { 4, "OggS" }, { 7, "NIST_1A" }, { 15, "Creative Voice " }, { 4, " paf" },
		{ 4, "fap " }, { 4, "2BIT" }, { 6, "MATLAB" }, { 4, "PVF1" }, { 17, "Extended Instrume" },
		{ 4, "\x64\xa3\x01\x00" }, { 4, "\x64\xa3\x02\x00" }, { 4, "\x64\xa3\x03\x00" }, { 4, "\x64\xa3\x04\x00" },
		{ 4, "\x00\x01\xa3\x64" }, { 4, "\x00\x02\xa3\x64" }, { 4, "\x00\x03\xa3\x64" }, { 4, "\x00\x04\xa3\x64" },
		{ 4, "ALaw" }, { 4, "DiAm" },
	};

	/* What looks like MP3 and is none: libsndfile would let libmpg123 search all of it, and talk about it on stderr. */
	if (in->head_bytes >= 3 && (!memcmp(in->head, "ID3", 3) || (in->head[0] == 0xFF && (in->head[1] & 0xE0) == 0xE0)))
		return false;
	/* Files are cheap to ask about. */
	if (in->is_regular)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		if (in->head_bytes >= marks[i].n && !memcmp(in->head, marks[i].bytes, marks[i].n))
			return true;
	}
	return false;
}

static int open_spool(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];

	if (!dir || !dir[0])
		dir = "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EISDIR && errno != EOPNOTSUPP && errno != ENOENT))
		return fd;
	if (snprintf(path, sizeof(path), "%s/weir-XXXXXX", dir) >= (int)sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static enum err spool(struct source *s, struct snd *r, struct source_bytes *in, struct err_why *why)
{
	uint8_t *block = malloc(SPOOL_STEP_BYTES);
	uint64_t total = 0;
	size_t n;
	enum err e = ERR_SYS;

	if (!block)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	r->spool_fd = open_spool();
	if (r->spool_fd < 0) {
		e = err_sys(why, "a temporary file (TMPDIR) for a format that cannot be read from a pipe");
		goto out;
	}
	while ((n = source_bytes_read(in, block, SPOOL_STEP_BYTES)) > 0) {
		if ((total += n) > SPOOL_MAX_BYTES) {
			e = err_say(why, ERR_LIMIT, s->name, "more than %u GiB of a format that cannot be read from a pipe: give it as a file",
				(unsigned)(SPOOL_MAX_BYTES >> 30));
			goto out;
		}
		for (size_t done = 0; done < n;) {
			ssize_t w = write(r->spool_fd, block + done, n - done);
			if (w < 0 && errno == EINTR)
				continue;
			if (w < 0) {
				e = err_sys(why, "a temporary file (TMPDIR)");
				goto out;
			}
			done += (size_t)w;
		}
	}
	if (in->sys_errno) {
		errno = in->sys_errno;
		e = err_sys(why, s->name);
	} else {
		source_note(s, "this format cannot be read from a pipe: %" PRIu64 " bytes were put into a temporary file first", total);
		e = lseek(r->spool_fd, 0, SEEK_SET) ? err_sys(why, s->name) : ERR_OK;
	}
out:
	free(block);
	return e;
}

static void take_tags(struct source *s, SNDFILE *file)
{
	static const struct {
		int id;
		const char *key;
	} strings[] = {
		{ SF_STR_TITLE, "TITLE" }, { SF_STR_ARTIST, "ARTIST" }, { SF_STR_ALBUM, "ALBUM" }, { SF_STR_DATE, "DATE" },
		{ SF_STR_COMMENT, "COMMENT" }, { SF_STR_GENRE, "GENRE" }, { SF_STR_TRACKNUMBER, "TRACKNUMBER" }, { SF_STR_COPYRIGHT, "COPYRIGHT" },
		{ SF_STR_SOFTWARE, "ENCODER" },
	};

	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		const char *text = sf_get_string(file, strings[i].id);
		if (text)
			source_tag(s, strings[i].key, text, strlen(text));
	}
}

/* libsndfile's names of places as bits of the WAVE mask. */
static int bit_of(int place)
{
	static const struct {
		int place, bit;
	} places[] = {
		{ SF_CHANNEL_MAP_MONO, 2 }, { SF_CHANNEL_MAP_LEFT, 0 }, { SF_CHANNEL_MAP_RIGHT, 1 }, { SF_CHANNEL_MAP_CENTER, 2 },
		{ SF_CHANNEL_MAP_FRONT_LEFT, 0 }, { SF_CHANNEL_MAP_FRONT_RIGHT, 1 }, { SF_CHANNEL_MAP_FRONT_CENTER, 2 }, { SF_CHANNEL_MAP_LFE, 3 },
		{ SF_CHANNEL_MAP_REAR_LEFT, 4 }, { SF_CHANNEL_MAP_REAR_RIGHT, 5 }, { SF_CHANNEL_MAP_FRONT_LEFT_OF_CENTER, 6 },
		{ SF_CHANNEL_MAP_FRONT_RIGHT_OF_CENTER, 7 }, { SF_CHANNEL_MAP_REAR_CENTER, 8 }, { SF_CHANNEL_MAP_SIDE_LEFT, 9 },
		{ SF_CHANNEL_MAP_SIDE_RIGHT, 10 }, { SF_CHANNEL_MAP_TOP_CENTER, 11 }, { SF_CHANNEL_MAP_TOP_FRONT_LEFT, 12 },
		{ SF_CHANNEL_MAP_TOP_FRONT_CENTER, 13 }, { SF_CHANNEL_MAP_TOP_FRONT_RIGHT, 14 }, { SF_CHANNEL_MAP_TOP_REAR_LEFT, 15 },
		{ SF_CHANNEL_MAP_TOP_REAR_CENTER, 16 }, { SF_CHANNEL_MAP_TOP_REAR_RIGHT, 17 },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (places[i].place == place)
			return places[i].bit;
	}
	return CHANMAP_NOBODY;
}

static enum err take_layout(struct source *s, struct snd *r, struct err_why *why)
{
	struct chanmap map = { .channels = s->track.channels };
	int places[64];
	uint16_t perm[64];

	if (s->track.channels <= ARRAY_LEN(places) && sf_command(r->file, SFC_GET_CHANNEL_MAP_INFO, places, (int)(s->track.channels * sizeof(int)))) {
		for (unsigned i = 0; i < s->track.channels; i++)
			map.bit[i] = (int8_t)bit_of(places[i]);
		if (!chanmap_apply(&map, &s->track, perm))
			return ERR_OK;
		r->is_permuted = true;
		enum err e = chanmap_order_init(&r->order, perm, s->track.channels);
		return e ? err_say(why, e, s->name, "%s", err_text(e)) : ERR_OK;
	}
	if (chanmap_guess(&s->track))
		source_note(s, "no channel layout: %u channels are taken in the usual order", s->track.channels);
	return ERR_OK;
}

/*
 * libsndfile takes what is there for all there is, and tells of it in its log alone: "data : 4876 (should be 2408)", the
 * first of them the header's, or "… truncated".
 */
static bool log_tells_of_a_cut(SNDFILE *file)
{
	char log[LOG_BYTES] = "";
	unsigned long long promised, there;

	sf_command(file, SFC_GET_LOG_INFO, log, (int)sizeof(log));
	const char *data = strstr(log, "\ndata : ");
	if (data && sscanf(data, "\ndata : %llu (should be %llu)", &promised, &there) == 2)
		return promised > there && !pcmread_is_unknown(promised);
	return strstr(log, "truncated");
}

/* Does the file end with a whole page of Ogg that is marked as the last of its stream? */
static bool ogg_has_an_end(int fd)
{
	uint8_t block[OGG_PAGE_MAX_BYTES];
	off_t before = lseek(fd, 0, SEEK_CUR), size = lseek(fd, 0, SEEK_END);
	bool ends = false;

	if (before < 0 || size < 0 || lseek(fd, before, SEEK_SET) < 0)
		return true;
	off_t from = size > OGG_PAGE_MAX_BYTES ? size - OGG_PAGE_MAX_BYTES : 0;
	ssize_t n = pread(fd, block, OGG_PAGE_MAX_BYTES, from);
	for (ssize_t at = 0; at + OGG_HEAD_BYTES <= n; at++) {
		const uint8_t *page = block + at;
		if (memcmp(page, "OggS", 5) || at + OGG_HEAD_BYTES + page[26] > n) /* with its version, 0 */
			continue;
		ssize_t page_bytes = OGG_HEAD_BYTES + page[26];
		for (unsigned i = 0; i < page[26]; i++)
			page_bytes += page[OGG_HEAD_BYTES + i];
		if (at + page_bytes == n)
			ends = page[5] & 4;
	}
	return ends;
}

enum err sndread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	struct snd *r = sniff(in) ? calloc(1, sizeof(*r)) : NULL;
	SF_INFO info = { 0 };
	enum err e = ERR_NOMEM;

	if (!sniff(in))
		return ERR_AGAIN;
	if (!r)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	r->spool_fd = -1;
	s->state = r;
	s->ops = &sndread_ops;
	if (!in->is_regular && (e = spool(s, r, in, why)))
		return e;
	if (in->is_regular && lseek(in->fd, in->base_bytes, SEEK_SET) < 0)
		return err_sys(why, s->name);
	int fd = in->is_regular ? in->fd : r->spool_fd;
	/* A copy: libsndfile closes the descriptor of what it does not know, whatever it is told. */
	int copy_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy_fd < 0)
		return err_sys(why, s->name);
	r->file = sf_open_fd(copy_fd, SFM_READ, &info, 1);
	if (!r->file) {
		if (sf_error(NULL) == SF_ERR_UNRECOGNISED_FORMAT || sf_error(NULL) == SF_ERR_SYSTEM) {
			sndread_release(s);
			s->ops = NULL;
			return ERR_AGAIN;
		}
		return err_say(why, ERR_FORMAT, s->name, "libsndfile: %s", sf_strerror(NULL));
	}
	if ((e = source_check(s, (uint64_t)(info.samplerate > 0 ? info.samplerate : 0), (uint64_t)(info.channels > 0 ? info.channels : 0), why)))
		return e;
	r->channels = (uint16_t)info.channels;
	r->sample = pick_sample(info.format);
	if ((info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_DOUBLE)
		source_note(s, "64-bit floats become 32-bit floats");
	source_set_pcm(s, (uint32_t)info.samplerate, r->channels, r->sample);
	r->n_frames = info.frames >= 0 && info.frames < INT64_MAX / 2 ? info.frames : -1;
	s->n_frames = r->n_frames;
	r->is_cut = log_tells_of_a_cut(r->file) || ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG && !ogg_has_an_end(fd));
	take_tags(s, r->file);
	if ((e = take_layout(s, r, why)))
		return e;
	if (r->sample == SAMPLE_S24) {
		if (!(r->scratch = malloc(SND_SCRATCH_SAMPLES * sizeof(*r->scratch))))
			return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
		if ((e = convert_init(&r->convert, SAMPLE_S32, SAMPLE_S24, false, 0)))
			return e;
	}
	return ERR_OK;
}
