#include "media/avformat.h"

#include "base/bytes.h"
#include "media/live.h"
#include "media/opushead.h"
#include "wire/video.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IO_BYTES (64 << 10)
#define CLUSTER_MS "500"
#define MAX_TRACKS 64u
#define FLAC_INFO_BYTES 34
#define MS_PER_S 1000

#define WORD2(x) #x
#define WORD(x) WORD2(x)
#define LIBRARY(name, major) "lib" name ".so." WORD(major)

/* What is used of the three libraries. */
struct functions {
	__typeof__(avformat_alloc_output_context2) *alloc_output_context2;
	__typeof__(avformat_free_context) *free_context;
	__typeof__(avformat_new_stream) *new_stream;
	__typeof__(avformat_write_header) *write_header;
	__typeof__(av_write_frame) *write_frame;
	__typeof__(av_write_trailer) *write_trailer;
	__typeof__(avio_alloc_context) *io_alloc;
	__typeof__(avio_context_free) *io_free;
	__typeof__(avio_flush) *io_flush;
	__typeof__(av_packet_alloc) *packet_alloc;
	__typeof__(av_packet_free) *packet_free;
	__typeof__(av_packet_unref) *packet_unref;
	__typeof__(av_packet_new_side_data) *packet_new_side_data;
	__typeof__(av_dict_set) *dict_set;
	__typeof__(av_dict_free) *dict_free;
	__typeof__(av_malloc) *mem_alloc;
	__typeof__(av_mallocz) *mem_zalloc;
	__typeof__(av_freep) *mem_free;
	__typeof__(av_strerror) *say_error;
	__typeof__(av_log_set_level) *log_level;
	__typeof__(av_get_pix_fmt) *pixel_format;
};

struct avformat_track {
	uint32_t rate_num, rate_den;
	uint32_t preskip_frames;  /* a block's time is before CodecDelay is taken off it */
	int64_t last_pts;
};

struct avformat {
	struct functions av;
	struct sinkfile *file;
	AVFormatContext *context;
	AVPacket *packet;
	struct avformat_track tracks[MAX_TRACKS];
	int64_t base_ns;
	uint64_t at_bytes, end_bytes; /* where libavformat writes, and the end of all it wrote */
	bool begun, finished;
	enum err failed;              /* of the file */
};

static enum err load(struct functions *f, struct err_why *why)
{
	const struct live_symbol format[] = {
		{ "avformat_alloc_output_context2", &f->alloc_output_context2 }, { "avformat_free_context", &f->free_context },
		{ "avformat_new_stream", &f->new_stream }, { "avformat_write_header", &f->write_header }, { "av_write_frame", &f->write_frame },
		{ "av_write_trailer", &f->write_trailer }, { "avio_alloc_context", &f->io_alloc }, { "avio_context_free", &f->io_free },
		{ "avio_flush", &f->io_flush },
	};
	const struct live_symbol codec[] = {
		{ "av_packet_alloc", &f->packet_alloc }, { "av_packet_free", &f->packet_free }, { "av_packet_unref", &f->packet_unref },
		{ "av_packet_new_side_data", &f->packet_new_side_data },
	};
	const struct live_symbol util[] = {
		{ "av_dict_set", &f->dict_set }, { "av_dict_free", &f->dict_free }, { "av_malloc", &f->mem_alloc }, { "av_mallocz", &f->mem_zalloc },
		{ "av_freep", &f->mem_free }, { "av_strerror", &f->say_error }, { "av_log_set_level", &f->log_level }, { "av_get_pix_fmt", &f->pixel_format },
	};
	enum err e = live_load(LIBRARY("avutil", LIBAVUTIL_VERSION_MAJOR), "libavutil", util, ARRAY_LEN(util), why);

	if (!e)
		e = live_load(LIBRARY("avcodec", LIBAVCODEC_VERSION_MAJOR), "libavcodec", codec, ARRAY_LEN(codec), why);
	return e ? e : live_load(LIBRARY("avformat", LIBAVFORMAT_VERSION_MAJOR), "libavformat", format, ARRAY_LEN(format), why);
}

static enum err explain(struct avformat *m, int code, struct err_why *why)
{
	char text[128] = "failed";

	if (m->failed || m->file->failed) {
		*why = m->file->why;
		return m->failed ? m->failed : m->file->failed;
	}
	m->av.say_error(code, text, sizeof(text));
	return err_say(why, code == AVERROR(ENOMEM) ? ERR_NOMEM : ERR_CODEC, sinkfile_place(m->file), "libavformat: %s", text);
}

/* ---- bytes ---- */

#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int on_write(void *user, const uint8_t *bytes, int n_bytes)
#else
static int on_write(void *user, uint8_t *bytes, int n_bytes)
#endif
{
	struct avformat *m = user;

	if (m->failed)
		return AVERROR(EIO);
	if (m->at_bytes == m->end_bytes) {
		m->failed = sinkfile_put_copy(m->file, bytes, (size_t)n_bytes);
		m->end_bytes += (uint64_t)n_bytes;
	} else {
		/* What was left open at the beginning, gone back to at the end. */
		m->failed = sinkfile_flush(m->file);
		if (!m->failed)
			m->failed = sinkfile_rewrite(m->file, m->at_bytes, bytes, (size_t)n_bytes);
	}
	m->at_bytes += (uint64_t)n_bytes;
	return m->failed ? AVERROR(EIO) : n_bytes;
}

static int64_t on_seek(void *user, int64_t offset, int whence)
{
	struct avformat *m = user;

	if (whence == AVSEEK_SIZE)
		return (int64_t)m->end_bytes;
	if (whence != SEEK_SET || offset < 0 || (uint64_t)offset > m->end_bytes)
		return AVERROR(EINVAL);
	m->at_bytes = (uint64_t)offset;
	return offset;
}

enum err avformat_open(struct avformat **out, struct sinkfile *file, struct err_why *why)
{
	struct avformat *m = calloc(1, sizeof(*m));
	uint8_t *buffer = NULL;
	enum err e;

	if (!m)
		return err_say(why, ERR_NOMEM, sinkfile_place(file), "%s", err_text(ERR_NOMEM));
	m->file = file;
	if ((e = load(&m->av, why))) {
		free(m);
		return e;
	}
	m->av.log_level(AV_LOG_QUIET);
	m->av.alloc_output_context2(&m->context, NULL, "matroska", NULL);
	m->packet = m->av.packet_alloc();
	buffer = m->av.mem_alloc(IO_BYTES);
	if (m->context && buffer)
		m->context->pb = m->av.io_alloc(buffer, IO_BYTES, 1, m, NULL, on_write, file->is_regular ? on_seek : NULL);
	if (!m->context || !m->packet || !buffer || !m->context->pb) {
		m->av.mem_free(&buffer);
		avformat_release(m);
		return err_say(why, ERR_NOMEM, sinkfile_place(file), "%s", err_text(ERR_NOMEM));
	}
	m->context->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT; /* the same input, the same bytes */
	m->context->avoid_negative_ts = 0;
	*out = m;
	return ERR_OK;
}

void avformat_release(struct avformat *m)
{
	if (!m)
		return;
	if (m->context && m->context->pb) {
		m->av.mem_free(&m->context->pb->buffer);
		m->av.io_free(&m->context->pb);
	}
	if (m->context)
		m->av.free_context(m->context);
	m->av.packet_free(&m->packet);
	free(m);
}

/* ---- tracks ---- */

static enum AVCodecID pcm_codec(const struct track *t)
{
	switch (t->sample) {
	case SAMPLE_S16: return AV_CODEC_ID_PCM_S16LE;
	case SAMPLE_S24: return AV_CODEC_ID_PCM_S24LE;
	case SAMPLE_S24_32:
	case SAMPLE_S32: return AV_CODEC_ID_PCM_S32LE;
	case SAMPLE_F32: return AV_CODEC_ID_PCM_F32LE;
	case SAMPLE_F64: return AV_CODEC_ID_PCM_F64LE;
	}
	return AV_CODEC_ID_NONE;
}

static enum err give_extradata(struct avformat *m, AVCodecParameters *par, const uint8_t *bytes, size_t n_bytes)
{
	par->extradata = m->av.mem_zalloc(n_bytes + AV_INPUT_BUFFER_PADDING_SIZE);
	if (!par->extradata)
		return ERR_NOMEM;
	memcpy(par->extradata, bytes, n_bytes);
	par->extradata_size = (int)n_bytes;
	return ERR_OK;
}

static void set_channels(AVCodecParameters *par, const struct track *t)
{
	par->ch_layout = (AVChannelLayout){ .order = AV_CHANNEL_ORDER_UNSPEC, .nb_channels = t->channels };
	if (t->layout == TRACK_LAYOUT_WAVE && __builtin_popcountll(t->wave_mask) == t->channels) {
		par->ch_layout.order = AV_CHANNEL_ORDER_NATIVE;
		par->ch_layout.u.mask = t->wave_mask; /* the same bits */
	}
}

static enum err set_audio(struct avformat *m, AVCodecParameters *par, const struct track *t, uint32_t preskip_frames, const uint8_t *flac)
{
	uint8_t bytes[OPUSHEAD_MAX_BYTES];
	struct opushead head;
	enum err e;

	par->codec_type = AVMEDIA_TYPE_AUDIO;
	par->sample_rate = (int)track_rate_hz(t);
	set_channels(par, t);
	if (flac) {
		par->codec_id = AV_CODEC_ID_FLAC;
		par->bits_per_raw_sample = t->valid_bits;
		return give_extradata(m, par, flac, FLAC_INFO_BYTES);
	}
	if (track_is_pcm(t)) {
		par->codec_id = pcm_codec(t);
		par->bits_per_coded_sample = 8 * (int)track_sample_bytes((enum sample)t->sample);
		par->block_align = t->frame_bytes;
		return par->codec_id == AV_CODEC_ID_NONE ? ERR_FORMAT : ERR_OK;
	}
	if ((e = opushead_of_track(&head, t, NULL)))
		return e;
	head.preskip_frames = (uint16_t)preskip_frames;
	par->codec_id = AV_CODEC_ID_OPUS;
	par->initial_padding = (int)preskip_frames;
	par->seek_preroll = t->preroll_frames ? (int)t->preroll_frames : 3840;
	return give_extradata(m, par, bytes, opushead_pack(&head, bytes));
}

/* Layouts that V_UNCOMPRESSED names; others come back as what they are not. */
static const char *const layouts[] = { "rgba", "yuyv422", "uyvy422", "gray", "yuv410p", "yuv411p", "yuv420p", "yuv422p", "nv12", "nv21" };

static bool is_layout(const struct video_format *f)
{
	for (unsigned i = 0; f && i < ARRAY_LEN(layouts); i++)
		if (!strcmp(layouts[i], f->name))
			return true;
	return false;
}

static enum err set_video(struct avformat *m, AVStream *stream, const struct track *t, struct err_why *why)
{
	AVCodecParameters *par = stream->codecpar;
	const struct video_format *f;
	struct video v;
	enum err e = video_of_track(&v, t);

	if (e)
		return err_say(why, e, sinkfile_place(m->file), "track %u: %s", t->id, err_text(e));
	f = video_format_by_fourcc(v.fourcc);
	if (!is_layout(f))
		return err_say(why, ERR_FORMAT, sinkfile_place(m->file), "Matroska has no name for pictures of %s (rgba, yuyv422, uyvy422, gray, yuv410p, "
			"yuv411p, yuv420p, yuv422p, nv12, nv21)", f ? f->name : "a layout that is not known here");
	par->codec_type = AVMEDIA_TYPE_VIDEO;
	par->codec_id = AV_CODEC_ID_RAWVIDEO;
	par->codec_tag = v.fourcc;
	par->format = m->av.pixel_format(f->name);
	par->width = (int)v.width_pixels;
	par->height = (int)v.height_pixels;
	if (v.aspect_num && v.aspect_den)
		par->sample_aspect_ratio = stream->sample_aspect_ratio = (AVRational){ v.aspect_num, v.aspect_den };
	stream->avg_frame_rate = stream->r_frame_rate = (AVRational){ (int)t->rate_num, (int)t->rate_den };
	return ERR_OK;
}

/* Name, language and tags. */
static enum err set_tags(struct avformat *m, AVStream *stream, const struct track *t)
{
	char name[128], key[128], text[64];
	uint32_t n = 0;
	const uint8_t *language = track_tlv(t, TRACK_TLV_LANGUAGE, &n);
	const char *tag;

	if (*track_name(t, name) && m->av.dict_set(&stream->metadata, "title", name, 0) < 0)
		return ERR_NOMEM;
	if (language && n && n < sizeof(text)) {
		snprintf(text, sizeof(text), "%.*s", (int)n, (const char *)language);
		if (m->av.dict_set(&stream->metadata, "language", text, 0) < 0)
			return ERR_NOMEM;
	}
	for (unsigned i = 0; (tag = track_tag_at(t, i)); i++) {
		const char *equals = strchr(tag, '=');
		size_t length = equals ? (size_t)(equals - tag) : 0;
		/* Pictures are attachments there. */
		if (!length || length >= sizeof(key) || !strncasecmp(tag, "METADATA_BLOCK_PICTURE=", 23))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)length, tag);
		if (m->av.dict_set(&stream->metadata, key, equals + 1, AV_DICT_DONT_OVERWRITE | AV_DICT_MATCH_CASE) < 0)
			return ERR_NOMEM;
	}
	return ERR_OK;
}

enum err avformat_add(struct avformat *m, const struct track *t, uint32_t preskip_frames, const uint8_t *flac, unsigned *index, struct err_why *why)
{
	AVStream *stream;
	enum err e;

	if (m->context->nb_streams >= MAX_TRACKS)
		return err_say(why, ERR_LIMIT, sinkfile_place(m->file), "more than %u tracks", MAX_TRACKS);
	stream = m->av.new_stream(m->context, NULL);
	if (!stream)
		return err_say(why, ERR_NOMEM, sinkfile_place(m->file), "%s", err_text(ERR_NOMEM));
	stream->time_base = (AVRational){ 1, MS_PER_S };
	*index = (unsigned)stream->index;
	m->tracks[*index] = (struct avformat_track){ .rate_num = t->rate_num, .rate_den = t->rate_den, .preskip_frames = preskip_frames, .last_pts = INT64_MIN };
	if (t->kind == TRACK_VIDEO && (e = set_video(m, stream, t, why)))
		return e;
	e = t->kind == TRACK_VIDEO ? ERR_OK : set_audio(m, stream->codecpar, t, preskip_frames, flac);
	if (!e)
		e = set_tags(m, stream, t);
	return e ? err_say(why, e, sinkfile_place(m->file), "track %u: %s", t->id, err_text(e)) : ERR_OK;
}

enum err avformat_tag(struct avformat *m, const char *key, const char *value)
{
	return m->av.dict_set(&m->context->metadata, key, value, 0) < 0 ? ERR_NOMEM : ERR_OK;
}

enum err avformat_begin(struct avformat *m, int64_t base_ns, struct err_why *why)
{
	AVDictionary *options = NULL;
	int code;

	m->base_ns = base_ns;
	m->av.dict_set(&options, "cluster_time_limit", CLUSTER_MS, 0);
	code = m->av.write_header(m->context, &options);
	m->av.dict_free(&options);
	if (code < 0)
		return explain(m, code, why);
	m->begun = true;
	m->av.io_flush(m->context->pb);
	return m->failed ? explain(m, 0, why) : ERR_OK;
}

/* ---- packets ---- */

static int64_t to_ms(const struct avformat *m, const struct avformat_track *t, int64_t units)
{
	return units_scale(units_to_ns(units, t->rate_num, t->rate_den) - m->base_ns, MS_PER_S, UNITS_NS_PER_S);
}

enum err avformat_put(struct avformat *m, const struct avformat_packet *p, struct err_why *why)
{
	struct avformat_track *t = &m->tracks[p->index];
	AVPacket *packet = m->packet;
	int64_t pts = to_ms(m, t, p->pos + t->preskip_frames);
	int code;

	/* Blocks of less than a millisecond may share one. */
	if (pts < t->last_pts)
		pts = t->last_pts;
	t->last_pts = pts;
	packet->data = (uint8_t *)(uintptr_t)p->bytes;
	packet->size = (int)p->n_bytes;
	packet->stream_index = (int)p->index;
	packet->pts = packet->dts = pts;
	packet->duration = to_ms(m, t, p->pos + p->dur) - to_ms(m, t, p->pos);
	packet->flags = AV_PKT_FLAG_KEY;
	if (p->discard_frames) {
		uint8_t *skip = m->av.packet_new_side_data(packet, AV_PKT_DATA_SKIP_SAMPLES, 10);
		if (!skip) {
			m->av.packet_unref(packet);
			return err_say(why, ERR_NOMEM, sinkfile_place(m->file), "%s", err_text(ERR_NOMEM));
		}
		memset(skip, 0, 10);
		put_le32(skip + 4, p->discard_frames);
	}
	code = m->av.write_frame(m->context, packet);
	m->av.packet_unref(packet);
	return code < 0 || m->failed ? explain(m, code, why) : ERR_OK;
}

enum err avformat_sync(struct avformat *m, struct err_why *why)
{
	int code = m->begun ? m->av.write_frame(m->context, NULL) : 0;

	if (code >= 0 && m->begun)
		m->av.io_flush(m->context->pb);
	return code < 0 || m->failed ? explain(m, code, why) : ERR_OK;
}

enum err avformat_finish(struct avformat *m, struct err_why *why)
{
	int code = m->begun && !m->finished ? m->av.write_trailer(m->context) : 0;

	m->finished = true;
	if (code >= 0 && m->begun)
		m->av.io_flush(m->context->pb);
	return code < 0 || m->failed ? explain(m, code, why) : ERR_OK;
}
