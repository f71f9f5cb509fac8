#include "stage/videoout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint8_t zeros[4096];

static const char *ending_of(const char *path)
{
	const char *base = strrchr(path, '/');
	const char *dot = strrchr(base ? base : path, '.');
	return dot ? dot + 1 : "";
}

enum videoout_form videoout_form_of(const char *path, const struct track *t)
{
	char header[Y4M_MAX_HEADER_BYTES];
	const char *ending = ending_of(path);

	if (!strcmp(ending, "y4m"))
		return VIDEOOUT_Y4M;
	if (!strcmp(ending, "raw") || !strcmp(ending, "yuv") || !strcmp(ending, "rgb") || video_format_of(ending))
		return VIDEOOUT_RAW;
	return y4m_print(t, header) ? VIDEOOUT_RAW : VIDEOOUT_Y4M;
}

const char *videoout_ending(enum videoout_form form, const struct track *t)
{
	char header[Y4M_MAX_HEADER_BYTES];
	const struct video_format *f;
	struct video v;

	if (form == VIDEOOUT_Y4M || (form == VIDEOOUT_AUTO && y4m_print(t, header) == ERR_OK))
		return "y4m";
	f = video_of_track(&v, t) ? NULL : video_format_by_fourcc(v.fourcc);
	return f ? f->name : "video";
}

static enum err look_at(struct videoout *o, const struct track *t, const char *place, struct err_why *why)
{
	enum err e = video_of_track(&o->video, t);

	if (e)
		return err_say(why, e, place, "track %u is no raw video, or one that says of itself what cannot be", t->id);
	o->rate_num = t->rate_num;
	o->rate_den = t->rate_den;
	if (o->is_y4m && y4m_print(t, o->header))
		return err_say(why, ERR_FORMAT, place, "y4m has no pictures like those of track %u: write them raw", t->id);
	return ERR_OK;
}

enum err videoout_open(struct videoout *o, const char *path, const struct track *t, enum videoout_form form, const struct sinkfile_args *args,
	struct err_why *why)
{
	enum err e;

	o->is_y4m = form == VIDEOOUT_Y4M;
	if ((e = look_at(o, t, path, why)) || (e = sinkfile_open(&o->file, path, args, why)))
		return e;
	o->is_open = true;
	return o->is_y4m ? sinkfile_put_copy(&o->file, o->header, strlen(o->header)) : ERR_OK;
}

enum err videoout_track(struct videoout *o, const struct track *t, struct err_why *why)
{
	struct videoout other = { .is_y4m = o->is_y4m };
	enum err e = look_at(&other, t, sinkfile_place(&o->file), why);

	if (e)
		return e;
	if (other.video.width_pixels != o->video.width_pixels || other.video.height_pixels != o->video.height_pixels ||
		other.video.fourcc != o->video.fourcc || other.video.frame_bytes != o->video.frame_bytes)
		return err_say(why, ERR_FORMAT, sinkfile_place(&o->file), "the pictures change from %ux%u to %ux%u, which no raw file can say",
			o->video.width_pixels, o->video.height_pixels, other.video.width_pixels, other.video.height_pixels);
	return ERR_OK;
}

static uint64_t length_bytes(const struct videoout *o)
{
	return o->file.size_bytes + o->file.queued_bytes;
}

/* The frame being written has no end: it is none. */
static enum err end_short(struct videoout *o)
{
	enum err e = ERR_OK;

	if (!o->in_frame)
		return ERR_OK;
	o->in_frame = false;
	if (!o->n_short++)
		o->first_short_pos = o->pos;
	if (o->file.is_regular)
		return (e = sinkfile_flush(&o->file)) ? e : sinkfile_truncate(&o->file, o->frame_at_bytes);
	for (uint32_t n = o->video.frame_bytes - o->have_bytes; n && !e;) {
		uint32_t some = n < sizeof(zeros) ? n : (uint32_t)sizeof(zeros);
		e = sinkfile_put(&o->file, zeros, some);
		n -= some;
	}
	return e;
}

static enum err begin_frame(struct videoout *o, const struct packet *p)
{
	o->in_frame = true;
	o->have_bytes = 0;
	o->pos = p->pos;
	o->seq = p->seq;
	o->frame_at_bytes = length_bytes(o);
	return o->is_y4m ? sinkfile_put(&o->file, Y4M_FRAME "\n", sizeof(Y4M_FRAME)) : ERR_OK;
}

static enum err put_fragment(struct videoout *o, const struct packet *p)
{
	enum err e = ERR_OK;

	if (p->object_bytes != o->video.frame_bytes)
		return err_say(&o->file.why, ERR_FORMAT, sinkfile_place(&o->file), "frame %" PRId64 " has %u bytes, its track said %u", p->pos,
			p->object_bytes, o->video.frame_bytes);
	if (p->object_offset_bytes == 0) {
		if ((e = end_short(o)) || (e = begin_frame(o, p)))
			return e;
	} else if (!o->in_frame || p->object_offset_bytes != o->have_bytes || p->seq != o->seq || p->pos != o->pos) {
		/* What was before it is lost; this one's beginning too, if it is another frame's. */
		return o->in_frame ? end_short(o) : ERR_OK;
	}
	e = sinkfile_put(&o->file, p->payload, p->payload_bytes);
	o->have_bytes += p->payload_bytes;
	if (o->have_bytes == o->video.frame_bytes) {
		o->in_frame = false;
		o->n_frames++;
	}
	return e;
}

enum err videoout_packet(struct videoout *o, const struct packet *p)
{
	if (p->type == PACKET_DATA)
		return put_fragment(o, p);
	if (p->type != PACKET_GAP)
		return ERR_OK;
	struct packet_gap gap;
	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		return ERR_OK;
	if (!o->n_gaps++)
		o->first_missing_pos = p->pos;
	o->n_missing += p->dur;
	return end_short(o);
}

enum err videoout_flush(struct videoout *o)
{
	return sinkfile_settle(&o->file);
}

enum err videoout_close(struct videoout *o, bool complete, struct err_why *why)
{
	enum err e;

	if (!o->is_open)
		return ERR_OK;
	o->is_open = false;
	if ((e = end_short(o)) || (e = sinkfile_flush(&o->file)))
		*why = o->file.why;
	enum err closed = sinkfile_close(&o->file, complete && !e, e ? NULL : why);
	return e ? e : closed;
}

const char *videoout_describe(const struct videoout *o, char out[static 200])
{
	const struct video_format *f = video_format_by_fourcc(o->video.fourcc);
	int n = snprintf(out, 200, "%" PRIu64 " frames of %ux%u %s at %u/%u a second", o->n_frames, o->video.width_pixels, o->video.height_pixels,
		f ? f->name : "of a layout not known here", o->rate_num, o->rate_den);

	if (o->n_missing && n < 200)
		n += snprintf(out + n, 200 - (size_t)n, "; %" PRIu64 " missing in %" PRIu64 " gap%s, the first at frame %" PRId64, o->n_missing, o->n_gaps,
			o->n_gaps == 1 ? "" : "s", o->first_missing_pos);
	if (o->n_short && n < 200)
		snprintf(out + n, 200 - (size_t)n, "; %" PRIu64 " cut short, the first at frame %" PRId64, o->n_short, o->first_short_pos);
	return out;
}
