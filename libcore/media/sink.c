#include "media/sink.h"

#include "base/role.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SYNCS_PER_S 2 /* half a second of audio at most is not in the file yet */

static const struct {
	enum sink_format format;
	const char *name;
	const char *people;      /* what people call it */
	const char *endings[5];
} formats[] = {
	{ SINK_WEIR, "weir", "weir", { "weir" } },
	{ SINK_OPUS, "opus", "Ogg Opus", { "opus", "ogg", "oga" } },
	{ SINK_WAV, "wav", "WAV", { "wav", "wave", "bwf" } },
	{ SINK_W64, "w64", "W64", { "w64" } },
	{ SINK_RF64, "rf64", "RF64", { "rf64" } },
	{ SINK_FLAC, "flac", "FLAC", { "flac" } },
	{ SINK_CAF, "caf", "CAF", { "caf" } },
	{ SINK_AIFF, "aiff", "AIFF", { "aiff", "aif", "aifc" } },
	{ SINK_RAW, "raw", "raw samples", { "raw", "pcm" } },
	{ SINK_MKA, "mka", "Matroska", { "mka", "mkv" } },
};

enum sink_format sink_format_of_name(const char *path)
{
	const char *base = strrchr(path, '/');
	const char *dot = strrchr(base ? base : path, '.');

	for (size_t i = 0; dot && i < ARRAY_LEN(formats); i++)
		for (size_t k = 0; k < ARRAY_LEN(formats[i].endings) && formats[i].endings[k]; k++)
			if (!strcasecmp(dot + 1, formats[i].endings[k]))
				return formats[i].format;
	return SINK_NONE;
}

const char *sink_format_name(enum sink_format f)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (formats[i].format == f)
			return formats[i].name;
	return "none";
}

enum sink_format sink_format_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return formats[i].format;
	return SINK_NONE;
}

static const char *people_name(enum sink_format f)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (formats[i].format == f)
			return formats[i].people;
	return "no format";
}

uint64_t sink_wave_mask(const struct track *t)
{
	uint64_t mask = t->wave_mask & 0x3FFFF;
	if (t->layout != TRACK_LAYOUT_WAVE || mask != t->wave_mask)
		return 0;
	return __builtin_popcountll(mask) <= t->channels ? mask : 0;
}

static enum err check_pcm(enum sink_format format, const struct track *t, const char *path, struct err_why *why)
{
	const char *people = people_name(format);
	uint32_t rate_hz = track_rate_hz(t);

	if (t->rate_num % t->rate_den != 0)
		return err_say(why, ERR_LIMIT, path, "%s holds whole rates only, and track %u has %u/%u Hz", people, t->id,
			t->rate_num, t->rate_den);
	if (format == SINK_FLAC && t->channels > 8)
		return err_say(why, ERR_LIMIT, path, "FLAC holds 1 to 8 channels, and track %u has %u; WAV and CAF hold more",
			t->id, t->channels);
	if (format == SINK_FLAC && rate_hz > 1048575)
		return err_say(why, ERR_LIMIT, path, "FLAC holds 1 to 1048575 Hz, and track %u has %u Hz", t->id, rate_hz);
	return ERR_OK;
}

enum err sink_check(enum sink_format format, const struct track *t, const char *path, struct err_why *why)
{
	char scratch[8];

	if (format == SINK_WEIR)
		return ERR_OK;
	if (t->kind != TRACK_AUDIO)
		return err_say(why, ERR_FORMAT, path, "%s holds audio, and track %u is %s; leave it out with -t audio", people_name(format),
			t->id, track_kind_name(t->kind));
	if (format == SINK_OPUS && track_is_pcm(t))
		return err_say(why, ERR_FORMAT, path, "Ogg Opus holds Opus, and track %u is PCM; encode first", t->id);
	if (format == SINK_OPUS && !track_is_opus(t))
		return err_say(why, ERR_FORMAT, path, "Ogg Opus holds Opus, and track %u is %s", t->id,
			track_codec_name(t->codec, scratch));
	if (format == SINK_OPUS)
		return ERR_OK;
	if (!track_is_pcm(t))
		return err_say(why, ERR_FORMAT, path, "%s holds PCM, and track %u is %s; decode first", people_name(format), t->id,
			track_codec_name(t->codec, scratch));
	return check_pcm(format, t, path, why);
}

static enum err add_tags(struct track *t, const char *const *tags)
{
	for (size_t i = 0; tags && tags[i]; i++) {
		const char *equals = strchr(tags[i], '=');
		char key[128];
		if (!equals || (size_t)(equals - tags[i]) >= sizeof(key))
			return ERR_ARG;
		snprintf(key, sizeof(key), "%.*s", (int)(equals - tags[i]), tags[i]);
		enum err e = track_add_tag(t, key, equals + 1, true);
		if (e)
			return e;
	}
	return ERR_OK;
}

/*
 * Samples are written here, so the program that the tag names is this one, unless the caller says another.  Opus keeps its own: it
 * tells who made the packets.
 */
static enum err set_encoder(struct sink *s)
{
	if (!track_is_pcm(&s->track) || !track_tag(&s->track, "ENCODER"))
		return ERR_OK;
	return track_add_tag(&s->track, "ENCODER", "weir " WEIR_VERSION, true);
}

static enum err open_container(struct sink *s)
{
	switch (s->args.format) {
	case SINK_OPUS:
		return sinkogg_open(s, &s->why);
	case SINK_FLAC:
		return sinkflac_open(s, &s->why);
	default:
		return sinkpcm_open(s, &s->why);
	}
}

enum err sink_open(struct sink *s, const char *path, const struct track *t, const struct sink_args *args, struct err_why *why)
{
	memset(s, 0, sizeof(*s));
	s->args = *args;
	s->first_pos = t->first_pos;

	enum err e = sink_check(args->format, t, path, &s->why);
	if (!e && (args->format == SINK_NONE || args->format == SINK_WEIR || args->format == SINK_MKA))
		e = err_say(&s->why, ERR_ARG, path, "not a container of one track");
	if (!e && (e = track_copy(&s->track, t)))
		err_say(&s->why, e, path, "%s", err_text(e));
	if (!e)
		s->stored = (enum sample)t->sample;
	if (!e && ((e = set_encoder(s)) || (e = add_tags(&s->track, args->tags))))
		err_say(&s->why, e, path, "the tags do not fit: %s", err_text(e));
	if (!e)
		e = sinkfile_open(&s->file, path, &(struct sinkfile_args){ .force = args->force, .wait = args->wait,
			.stdout_fd = args->stdout_fd, .stop = args->stop }, &s->why);
	if (!e && (e = open_container(s)))
		sinkfile_discard(&s->file);
	bool holds_pictures = args->format == SINK_OPUS || args->format == SINK_FLAC || args->format == SINK_CAF;
	if (!e && !holds_pictures && track_tag(&s->track, "METADATA_BLOCK_PICTURE"))
		snprintf(s->left_out, sizeof(s->left_out), "the picture has no place in %s and is left out", people_name(args->format));
	if (e) {
		if (why)
			*why = s->why;
		sink_release(s);
	}
	return e;
}

/* Latch a failure, with its words if the file has them. */
static enum err latch(struct sink *s, enum err e)
{
	if (e && !s->failed) {
		s->failed = e;
		if (s->why.err == ERR_OK && s->file.failed)
			s->why = s->file.why;
		else if (s->why.err == ERR_OK)
			err_say(&s->why, e, sinkfile_place(&s->file), "%s", err_text(e));
	}
	return s->failed;
}

static enum err after(struct sink *s, enum err e, uint64_t n_frames)
{
	if (latch(s, e))
		return s->failed;
	s->n_frames += n_frames;
	if ((s->n_frames - s->synced_frames) * SYNCS_PER_S >= track_rate_hz(&s->track))
		return sink_sync(s);
	return ERR_OK;
}

enum err sink_write(struct sink *s, const struct packet *p)
{
	role_forbid(ROLE_DEADLINE);
	if (s->failed)
		return s->failed;
	if (track_is_pcm(&s->track) && (uint64_t)p->dur * s->track.frame_bytes != p->payload_bytes)
		return latch(s, err_say(&s->why, ERR_FORMAT, sinkfile_place(&s->file), "%u bytes for %u frames of %u bytes",
			p->payload_bytes, p->dur, s->track.frame_bytes));
	enum err e = s->ops->write(s, p);
	if (track_is_pcm(&s->track))
		return after(s, e, p->dur);
	/* Of Opus positions count: what lies before frame 0 is pre-roll, and no frame of the file. */
	int64_t end = p->pos + p->dur - s->first_pos;
	return after(s, e, end > (int64_t)s->n_frames ? (uint64_t)end - s->n_frames : 0);
}

enum err sink_silence(struct sink *s, uint64_t n_frames)
{
	role_forbid(ROLE_DEADLINE);
	if (s->failed || n_frames == 0)
		return s->failed;
	s->silence_frames += n_frames;
	return after(s, s->ops->silence(s, n_frames), n_frames);
}

enum err sink_relink(struct sink *s, const struct track *t)
{
	struct track copy = {0};

	if (s->failed || !s->ops->relink)
		return s->failed;
	enum err e = track_copy(&copy, t);
	if (!e)
		e = add_tags(&copy, s->args.tags);
	if (e) {
		track_release(&copy);
		return latch(s, e);
	}
	track_release(&s->track);
	s->track = copy;
	e = s->ops->relink(s);
	s->first_pos = t->first_pos - (int64_t)s->n_frames;
	return latch(s, e);
}

enum err sink_settle(struct sink *s)
{
	uint64_t before_bytes = s->file.size_bytes;

	if (s->failed)
		return s->failed;
	if (latch(s, sinkfile_settle(&s->file)))
		return s->failed;
	/* What has just been written is all there is: the header may as well say so. */
	return s->file.is_regular && s->file.size_bytes != before_bytes ? sink_sync(s) : ERR_OK;
}

enum err sink_sync(struct sink *s)
{
	if (s->failed)
		return s->failed;
	s->synced_frames = s->n_frames;
	return latch(s, s->ops->sync(s));
}

enum err sink_close(struct sink *s, bool complete)
{
	role_forbid(ROLE_DEADLINE);
	if (!s->ops)
		return s->failed;
	(void)latch(s, s->ops->finish(s));
	struct err_why why = {0};
	enum err e = sinkfile_close(&s->file, complete && !s->failed, &why);
	if (e && !s->failed) {
		s->failed = e;
		s->why = why;
	}
	s->ops->release(s);
	s->ops = NULL;
	return s->failed;
}

void sink_release(struct sink *s)
{
	if (s->ops)
		s->ops->release(s);
	s->ops = NULL;
	track_release(&s->track);
	sinkfile_release(&s->file);
}
