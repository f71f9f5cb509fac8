/*
 * Frames on their way, of a narrow track: payload, gathered where they must be converted, resampler, the writer's arena
 * (or, to be converted, `flat`, and the arena).  Of a wide track or with several threads: payload, planes, resampler,
 * planes, the arena.
 *
 * Of a wide track so many frames are gathered that threads get enough to do at a time, and while they work on them this
 * thread writes what they made before, and gathers what is next.  What is gathered, when it is written, and the sizes of
 * the packets that go out, do not depend on the number of threads.
 */
#include "stage/retime.h"

#include "base/units.h"
#include "dsp/convert.h"
#include "stage/retimeout.h"
#include "stage/retimeplanes.h"

#include <stdlib.h>
#include <string.h>

#define WIDE_CHANNELS 8u
#define PIECE_SAMPLES 65536u     /* through the resampler at a time: so many samples within so many frames */
#define PIECE_MIN_FRAMES 256u
#define PIECE_MAX_FRAMES 4096u

struct retime {
	struct retime_options options;
	struct retimeout out;
	unsigned channels;
	uint32_t in_num, in_den;
	size_t in_frame_bytes, work_frame_bytes;
	struct convert to_work;
	bool converts_in, is_double;
	struct resampler *resampler; /* NULL: only the format changes */
	size_t piece_frames;      /* gathered at most */
	size_t turn_frames;       /* gathered at least, before they are resampled */
	size_t room_frames;       /* that may come out at a time */
	size_t gathered_frames;
	uint8_t *gathered;        /* interleaved: piece_frames in the work format */
	struct retimeplanes planes; /* the second batch only where turns overlap with the rest */
	struct retimeplanes_batch *batch;   /* that is being gathered; NULL if everything is interleaved */
	struct retimeplanes_batch *turning; /* that threads work on; NULL none */
	bool overlaps;
	/* the run of frames that is going on */
	bool running;
	int64_t in_pos;           /* end of what came */
};

static int64_t scale(const struct retime *r, int64_t in_pos)
{
	return units_scale(in_pos, (int64_t)r->options.rate_hz * r->in_den, r->in_num);
}

static void mark(struct retime *r, const struct packet *p)
{
	int64_t num = (int64_t)r->options.rate_hz * r->in_den;

	retimemarks_add(&r->out.marks, units_scale_down(p->pos, num, r->in_num), units_scale_up(p->pos + p->dur, num, r->in_num), p->flags);
}

/* ---- through the resampler ---- */

/*
 * Frames through the resampler, or, with `ending`, the rest out of it, as much as there is room for, and written.
 * *taken: of n_frames.  *more: the room was filled.
 */
static enum err resample(struct retime *r, const void *from, size_t n_frames, bool ending, size_t *taken, bool *more)
{
	size_t got = r->room_frames;
	uint8_t *to = NULL, *flat = NULL;
	enum err e;

	if (!r->batch && !(to = retimeout_reserve(&r->out, &flat)))
		return r->out.writer->failed;
	void *room = r->batch ? (void *)r->batch->out : flat;
	*taken = n_frames;
	e = ending ? resampler_finish(r->resampler, room, &got) : resampler_run(r->resampler, from, taken, room, &got);
	*more = got == r->room_frames;
	if (e || !got)
		return e;
	return to ? retimeout_flat(&r->out, to, flat, got) : retimeout_planes(&r->out, &r->planes, room, got);
}

/* ---- frames in ---- */

/* n_frames, interleaved in the work format. */
static enum err work_flat(struct retime *r, const uint8_t *from, size_t n_frames)
{
	bool more = true;
	enum err e = ERR_OK;

	while (!e && (n_frames || more)) {
		size_t taken;
		e = resample(r, from, n_frames, false, &taken, &more);
		from += taken * r->work_frame_bytes;
		n_frames -= taken;
	}
	return e;
}

/* From frame `done` of a batch on. */
static enum err work_planes(struct retime *r, const struct retimeplanes_batch *b, size_t done, bool more)
{
	enum err e = ERR_OK;

	while (!e && (done < b->in_frames || more)) {
		size_t taken;
		e = resample(r, retimeplanes_from(&r->planes, b->in, done), b->in_frames - done, false, &taken, &more);
		done += taken;
	}
	return e;
}

/* The turn that is going on comes to its end; what it made is left to be written, unless there was too little room. */
static enum err complete(struct retime *r, struct retimeplanes_batch *b)
{
	size_t taken;
	enum err e;

	r->turning = NULL;
	if ((e = resampler_wait(r->resampler, &taken, &b->out_frames)))
		return e;
	if (taken == b->in_frames && b->out_frames < r->room_frames)
		return ERR_OK;
	size_t made = b->out_frames;
	b->out_frames = 0;
	if ((e = retimeout_planes(&r->out, &r->planes, b->out, made)))
		return e;
	return work_planes(r, b, taken, true);
}

/* One batch into its turn, the one before out of it. */
static enum err overlap(struct retime *r, bool ending)
{
	struct retimeplanes_batch *before = r->turning, *next = r->batch;
	enum err e = before ? complete(r, before) : ERR_OK;

	if (!e && next->in_frames) {
		e = resampler_start(r->resampler, next->in, next->in_frames, next->out, r->room_frames);
		r->turning = next;
		r->batch = next == r->planes.batches ? r->planes.batches + 1 : r->planes.batches;
	}
	if (before && !e)
		e = retimeout_planes(&r->out, &r->planes, before->out, before->out_frames);
	if (!e && ending && (before = r->turning) && !(e = complete(r, before)))
		e = retimeout_planes(&r->out, &r->planes, before->out, before->out_frames);
	return e;
}

static enum err work_gathered(struct retime *r, bool ending)
{
	size_t n = r->gathered_frames;

	r->gathered_frames = 0;
	if (!r->batch)
		return n ? work_flat(r, r->gathered, n) : ERR_OK;
	r->batch->in_frames = n;
	if (r->overlaps)
		return overlap(r, ending);
	return n ? work_planes(r, r->batch, 0, true) : ERR_OK;
}

/* n_frames, at most a piece, to those that are gathered. */
static void gather(struct retime *r, const uint8_t *from, size_t n_frames)
{
	uint8_t *to = r->gathered;
	size_t n_bytes = n_frames * r->work_frame_bytes;

	if (!r->batch)
		to += r->gathered_frames * r->work_frame_bytes;
	if (!from)
		memset(to, 0, n_bytes);
	else if (r->converts_in)
		(void)convert_run(&r->to_work, to, from, n_frames * r->channels);
	else if (!r->batch)
		memcpy(to, from, n_bytes);
	if (r->batch)
		retimeplanes_split(&r->planes, r->batch->in, r->gathered_frames, from && !r->converts_in ? from : to, n_frames);
	r->gathered_frames += n_frames;
}

/* n_frames in the input's format; NULL: of silence. */
static enum err take_frames(struct retime *r, const uint8_t *from, size_t n_frames)
{
	enum err e;

	if (from && !r->converts_in && !r->batch)
		return work_flat(r, from, n_frames);
	while (n_frames) {
		size_t room = r->piece_frames - r->gathered_frames, n = n_frames < room ? n_frames : room;

		gather(r, from, n);
		from = from ? from + n * r->in_frame_bytes : NULL;
		n_frames -= n;
		if (r->gathered_frames >= r->turn_frames && (e = work_gathered(r, false)))
			return e;
	}
	return ERR_OK;
}

/* ---- runs ---- */

static enum err begin_run(struct retime *r, int64_t in_pos, bool discont)
{
	int64_t first = in_pos;
	enum err e;

	if (r->resampler && (e = resampler_place(r->resampler, in_pos, &first)))
		return e;
	r->running = true;
	retimeout_begin(&r->out, first, discont);
	return ERR_OK;
}

static enum err end_run(struct retime *r)
{
	enum err e;

	if (!r->running)
		return ERR_OK;
	r->running = false;
	if ((e = work_gathered(r, true)))
		return e;
	for (bool more = r->resampler; more && !e;) {
		size_t taken;
		e = resample(r, NULL, 0, true, &taken, &more);
	}
	r->out.marks.n = 0;
	return e;
}

/* ---- packets ---- */

enum err retime_data(struct retime *r, const struct packet *p)
{
	struct writer_track *wt = writer_track(r->out.writer, r->out.id);
	bool discont = p->flags & PACKET_DISCONT;
	enum err e;

	if (!p->dur)
		return ERR_OK;
	if (!r->running || discont || p->pos != r->in_pos) {
		if ((e = end_run(r)) || (e = begin_run(r, p->pos, discont)))
			return e;
	}
	r->in_pos = p->pos + p->dur;
	r->out.utc_ns = p->utc_ns;
	r->out.utc_pos = scale(r, p->pos);
	if (wt)
		wt->dropped = (uint32_t)units_scale(p->dropped, (int64_t)r->options.rate_hz * r->in_den, r->in_num);
	mark(r, p);

	const uint8_t *frames = p->flags & PACKET_SILENT && !p->payload_bytes ? NULL : p->payload;
	/* Or only the format changes. */
	return r->resampler ? take_frames(r, frames, p->dur) : retimeout_frames(&r->out, frames, p->dur);
}

enum err retime_gap(struct retime *r, const struct packet *p)
{
	struct packet_gap gap;
	enum err e;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes) || !p->dur)
		return ERR_OK;
	if ((e = end_run(r)) || (e = retimeout_gap(&r->out, scale(r, p->pos), scale(r, p->pos + p->dur), &gap)))
		return e;
	r->in_pos = p->pos + p->dur;
	return ERR_OK;
}

enum err retime_finish(struct retime *r)
{
	return end_run(r);
}

int64_t retime_end_pos(const struct retime *r)
{
	return r->out.has_pos ? r->out.pos : INT64_MIN;
}

/* ---- life ---- */

static enum sample format_of(const struct track *t, const struct retime_options *o)
{
	if (o->format != SAMPLE_CODED)
		return o->format;
	return t->sample == SAMPLE_F64 ? SAMPLE_F64 : SAMPLE_F32;
}

static bool is_at_rate(const struct track *t, uint32_t rate_hz)
{
	return t->rate_num == (uint64_t)rate_hz * t->rate_den;
}

bool retime_is_needed(const struct track *t, const struct retime_options *o)
{
	return !is_at_rate(t, o->rate_hz) || (o->format != SAMPLE_CODED && (uint8_t)o->format != t->sample);
}

/* The source's announcement in the new shape. */
static enum err announce(struct retime *r, const struct track *t, enum sample format)
{
	struct track form = track_pcm(r->options.rate_hz, t->channels, format), made = { 0 };
	enum err e = track_copy(&made, t);

	if (e)
		return e;
	made.rate_num = form.rate_num;
	made.rate_den = form.rate_den;
	made.sample = form.sample;
	made.frame_bytes = form.frame_bytes;
	if (format != t->sample)
		made.valid_bits = form.valid_bits;
	made.first_pos = r->out.has_pos ? r->out.pos : scale(r, t->first_pos);
	made.nominal_dur = 0;
	made.largest_object_bytes = (uint32_t)(r->out.packet_frames * r->out.frame_bytes);
	e = writer_announce(r->out.writer, &made);
	track_release(&made);
	return e;
}

static enum err open_resampler(struct retime *r, const struct track *t, struct err_why *why)
{
	const struct retime_options *o = &r->options;
	uint64_t out_hz = (uint64_t)o->rate_hz * t->rate_den;

	if (is_at_rate(t, o->rate_hz))
		return ERR_OK;
	if (out_hz > UINT32_MAX)
		return err_say(why, ERR_LIMIT, "-r", "from %u/%u Hz to %u Hz cannot be resampled", t->rate_num, t->rate_den, o->rate_hz);
	struct resampler_options ro = {
		.in_hz = t->rate_num, .out_hz = (uint32_t)out_hz, .channels = t->channels, .quality = o->quality, .phase = o->phase,
		.is_double = r->is_double, .is_planar = r->batch, .n_threads = r->batch ? o->n_threads : 1,
	};
	return resampler_new(&r->resampler, &ro, why);
}

static uint8_t *take_bytes(size_t n_bytes)
{
	void *p;

	return posix_memalign(&p, 64, n_bytes) ? NULL : p;
}

static enum err take_planes(struct retime *r)
{
	r->batch = r->planes.batches;
	return retimeplanes_init(&r->planes, r->channels, r->is_double, r->overlaps ? 2 : 1, r->piece_frames, r->room_frames);
}

static enum err take_room(struct retime *r)
{
	bool wide = r->channels >= WIDE_CHANNELS;
	size_t piece = PIECE_SAMPLES / r->channels;

	piece = piece < PIECE_MIN_FRAMES ? PIECE_MIN_FRAMES : piece > PIECE_MAX_FRAMES ? PIECE_MAX_FRAMES : piece;
	r->piece_frames = piece;
	r->overlaps = wide && !r->options.live;
	r->turn_frames = r->overlaps ? piece : 1;
	r->room_frames = r->out.packet_frames;
	if (wide) {
		/* As a rule all that a piece makes. */
		size_t made = (size_t)scale(r, (int64_t)piece) + piece;
		r->room_frames = made < 8 * piece ? made : 8 * piece;
	}
	r->gathered = take_bytes(r->piece_frames * r->work_frame_bytes);
	r->out.flat = take_bytes(r->out.packet_frames * r->work_frame_bytes);
	if (!r->gathered || !r->out.flat)
		return ERR_NOMEM;
	return wide || (r->options.n_threads > 1 && r->channels > 1) ? take_planes(r) : ERR_OK;
}

enum err retime_new(struct retime **out, const struct track *t, const struct retime_options *o, struct writer *w, int64_t after_pos,
	struct err_why *why)
{
	struct retime *r = calloc(1, sizeof(*r));
	enum sample in = t->sample, format = format_of(t, o);
	enum sample work_format = in == SAMPLE_F64 || format == SAMPLE_F64 ? SAMPLE_F64 : SAMPLE_F32;
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (!r)
		return err_say(why, e, "resampling", "%s", err_text(e));
	r->options = *o;
	r->channels = t->channels;
	r->in_num = t->rate_num;
	r->in_den = t->rate_den;
	r->is_double = work_format == SAMPLE_F64;
	if (is_at_rate(t, o->rate_hz))
		work_format = in; /* one conversion, integers as they are */
	r->in_frame_bytes = t->frame_bytes;
	r->work_frame_bytes = t->channels * convert_sample_bytes(work_format);
	r->converts_in = in != work_format;
	r->out = (struct retimeout){
		.writer = w, .id = t->id, .channels = t->channels, .rate_hz = o->rate_hz, .in_frame_bytes = r->work_frame_bytes,
		.frame_bytes = t->channels * convert_sample_bytes(format), .converts = work_format != format, .clipped_samples = o->clipped_samples,
		.utc_ns = UNITS_UNKNOWN_NS,
	};
	r->out.packet_frames = PACKET_MAX_PAYLOAD_BYTES / r->out.frame_bytes;
	if ((e = convert_init(&r->to_work, in, work_format, false, 0)) || (e = convert_init(&r->out.convert, work_format, format, o->dither, t->id)) ||
		(!is_at_rate(t, o->rate_hz) && (e = take_room(r)))) {
		err_say(why, e, "resampling", "%s", err_text(e));
		goto out;
	}
	if ((e = open_resampler(r, t, why)))
		goto out;
	if (scale(r, t->first_pos) < after_pos) {
		r->out.pos = after_pos;
		r->out.has_pos = true;
	}
	if ((e = announce(r, t, format)))
		goto out;
	*out = r;
	r = NULL;
out:
	retime_free(r);
	return e;
}

void retime_free(struct retime *r)
{
	if (!r)
		return;
	resampler_free(r->resampler);
	free(r->gathered);
	free(r->out.flat);
	retimeplanes_release(&r->planes);
	free(r);
}
