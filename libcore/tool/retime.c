/*
 * Frames on their way: payload, gathered (in the work format, where they must be converted or are few), resampler, made
 * (still in the work format), the writer's arena (in the output format).  What needs no conversion and is enough for a
 * turn skips the gathering.
 */
#include "tool/retime.h"

#include "base/units.h"
#include "dsp/convert.h"
#include "tool/stats.h"

#include <stdlib.h>
#include <string.h>

#define WIDE_CHANNELS 8u          /* from here on, frames are gathered: their packets hold too few for several threads */
#define PIECE_SAMPLES 131072u     /* gathered, or through the resampler, at a time: so many samples within so many frames */
#define PIECE_MIN_FRAMES 256u
#define PIECE_MAX_FRAMES 4096u
#define MAX_MARKS 32u

/* Frames that are not what was recorded: the flags of their packets. */
struct mark {
	int64_t from_pos, to_pos; /* in the new rate */
	uint16_t flags;
};

struct retime {
	struct retime_options options;
	struct writer *writer;
	uint16_t id;
	unsigned channels;
	uint32_t in_num, in_den;
	size_t in_frame_bytes, work_frame_bytes, out_frame_bytes;
	struct convert to_work, to_out;
	bool converts_in, converts_out;
	struct resampler *resampler; /* NULL: only the format changes */
	size_t piece_frames;
	uint8_t *gathered;        /* piece_frames */
	size_t gathered_frames;
	size_t turn_frames;       /* gathered at least, before they are resampled */
	uint8_t *made;            /* made_room_frames */
	size_t made_frames, made_room_frames;
	size_t block_frames;      /* of the packets that go out; 0: as the first that comes */
	size_t max_block_frames;
	/* the run of frames that is going on */
	bool running;
	int64_t in_pos;           /* end of what came */
	int64_t out_pos;          /* of the first frame in `made`; else the end of what was written */
	bool has_out_pos;
	uint64_t drop_frames;     /* of what comes next: their place is taken */
	bool discont;             /* the next packet begins a timeline */
	struct mark marks[MAX_MARKS];
	unsigned n_marks;
	/* wall-clock time: of the packet that came last */
	int64_t utc_ns, utc_pos;
};

static int64_t scale(const struct retime *r, int64_t in_pos)
{
	return units_scale(in_pos, (int64_t)r->options.rate_hz * r->in_den, r->in_num);
}

/* ---- marks ---- */

static void mark(struct retime *r, const struct packet *p)
{
	uint16_t flags = p->flags & (PACKET_CONCEALED | PACKET_RECOVERED);
	int64_t num = (int64_t)r->options.rate_hz * r->in_den;
	struct mark *last = r->n_marks ? &r->marks[r->n_marks - 1] : NULL;

	if (!flags)
		return;
	int64_t from = units_scale_down(p->pos, num, r->in_num), to = units_scale_up(p->pos + p->dur, num, r->in_num);
	if (last && (r->n_marks == MAX_MARKS || (last->flags == flags && from <= last->to_pos))) {
		last->to_pos = to;
		last->flags |= flags;
		return;
	}
	r->marks[r->n_marks++] = (struct mark){ .from_pos = from, .to_pos = to, .flags = flags };
}

/* Flags of a packet over [pos, end); what lies before its end is not asked for again. */
static uint16_t take_marks(struct retime *r, int64_t pos, int64_t end)
{
	uint16_t flags = 0;
	unsigned n_kept = 0;

	for (unsigned i = 0; i < r->n_marks; i++) {
		if (r->marks[i].from_pos < end && r->marks[i].to_pos > pos)
			flags |= r->marks[i].flags;
		if (r->marks[i].to_pos > end)
			r->marks[n_kept++] = r->marks[i];
	}
	r->n_marks = n_kept;
	return flags;
}

/* ---- frames out ---- */

static enum err write_packet(struct retime *r, const uint8_t *from, size_t n_frames)
{
	size_t n_bytes = n_frames * r->out_frame_bytes;
	struct packet p = packet_data(r->id, r->out_pos, (uint32_t)n_frames, (uint32_t)n_bytes);
	uint8_t *to = writer_reserve(r->writer, n_bytes);

	if (!to)
		return r->writer->failed;
	if (r->converts_out)
		stats_add(r->options.clipped_samples, convert_run(&r->to_out, to, from, n_frames * r->channels));
	else
		memcpy(to, from, n_bytes);
	r->out_pos += (int64_t)n_frames;
	p.flags |= take_marks(r, p.pos, r->out_pos);
	if (r->discont)
		p.flags |= PACKET_DISCONT;
	r->discont = false;
	if (r->utc_ns != UNITS_UNKNOWN_NS)
		p.utc_ns = r->utc_ns + units_to_ns(p.pos - r->utc_pos, r->options.rate_hz, 1);
	return writer_commit(r->writer, &p);
}

/* Whole packets of what is made; with `all`, what is left, too. */
static enum err write_made(struct retime *r, bool all)
{
	size_t done = 0;
	enum err e = ERR_OK;

	if (r->drop_frames) {
		done = r->drop_frames < r->made_frames ? (size_t)r->drop_frames : r->made_frames;
		r->drop_frames -= done;
	}
	while (!e && r->made_frames - done >= (all ? 1 : r->block_frames)) {
		size_t n = r->made_frames - done < r->block_frames ? r->made_frames - done : r->block_frames;
		e = write_packet(r, r->made + done * r->work_frame_bytes, n);
		done += n;
	}
	r->made_frames -= done;
	memmove(r->made, r->made + done * r->work_frame_bytes, r->made_frames * r->work_frame_bytes);
	return e;
}

/* ---- frames in ---- */

static enum err work(struct retime *r, const uint8_t *from, size_t n_frames)
{
	enum err e;

	for (;;) {
		size_t taken = n_frames, got = r->made_room_frames - r->made_frames, room = got;
		uint8_t *to = r->made + r->made_frames * r->work_frame_bytes;

		if (r->resampler) {
			if ((e = resampler_run(r->resampler, from, &taken, to, &got)))
				return e;
		} else {
			taken = got = n_frames < room ? n_frames : room;
			memcpy(to, from, got * r->work_frame_bytes);
		}
		r->made_frames += got;
		if ((e = write_made(r, false)))
			return e;
		from += taken * r->work_frame_bytes;
		n_frames -= taken;
		if (!n_frames && got < room)
			return ERR_OK;
	}
}

static enum err work_gathered(struct retime *r)
{
	size_t n = r->gathered_frames;

	r->gathered_frames = 0;
	return n ? work(r, r->gathered, n) : ERR_OK;
}

/* n_frames in the input's format; NULL: of silence. */
static enum err take_frames(struct retime *r, const uint8_t *from, size_t n_frames)
{
	enum err e;

	if (from && !r->converts_in && !r->gathered_frames && n_frames >= r->turn_frames)
		return work(r, from, n_frames);
	while (n_frames) {
		size_t room = r->piece_frames - r->gathered_frames, n = n_frames < room ? n_frames : room;
		uint8_t *to = r->gathered + r->gathered_frames * r->work_frame_bytes;

		if (!from)
			memset(to, 0, n * r->work_frame_bytes);
		else if (r->converts_in)
			(void)convert_run(&r->to_work, to, from, n * r->channels);
		else
			memcpy(to, from, n * r->work_frame_bytes);
		from = from ? from + n * r->in_frame_bytes : NULL;
		n_frames -= n;
		r->gathered_frames += n;
		if (r->gathered_frames >= r->turn_frames && (e = work_gathered(r)))
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
	r->drop_frames = 0;
	if (discont)
		r->discont = true;
	else if (r->has_out_pos && first < r->out_pos)
		r->drop_frames = (uint64_t)(r->out_pos - first);
	if (discont || !r->has_out_pos || first > r->out_pos)
		r->out_pos = first;
	r->has_out_pos = true;
	return ERR_OK;
}

static enum err end_run(struct retime *r)
{
	enum err e;

	if (!r->running)
		return ERR_OK;
	r->running = false;
	if ((e = work_gathered(r)))
		return e;
	while (r->resampler) {
		size_t got = r->made_room_frames - r->made_frames;
		if ((e = resampler_finish(r->resampler, r->made + r->made_frames * r->work_frame_bytes, &got)))
			return e;
		if (!got)
			break;
		r->made_frames += got;
		if ((e = write_made(r, false)))
			return e;
	}
	e = write_made(r, true);
	r->n_marks = 0;
	return e;
}

/* ---- packets ---- */

static void set_block(struct retime *r, uint32_t in_frames)
{
	int64_t n = units_scale_up(in_frames, (int64_t)r->options.rate_hz * r->in_den, r->in_num);

	r->block_frames = n < 1 ? 1 : n > (int64_t)r->max_block_frames ? r->max_block_frames : (size_t)n;
}

enum err retime_data(struct retime *r, const struct packet *p)
{
	struct writer_track *wt = writer_track(r->writer, r->id);
	bool discont = p->flags & PACKET_DISCONT;
	enum err e;

	if (!p->dur)
		return ERR_OK;
	if (!r->block_frames)
		set_block(r, p->dur);
	if (!r->running || discont || p->pos != r->in_pos) {
		if ((e = end_run(r)) || (e = begin_run(r, p->pos, discont)))
			return e;
	}
	r->in_pos = p->pos + p->dur;
	r->utc_ns = p->utc_ns;
	r->utc_pos = scale(r, p->pos);
	if (wt)
		wt->dropped = (uint32_t)units_scale(p->dropped, (int64_t)r->options.rate_hz * r->in_den, r->in_num);
	mark(r, p);
	return take_frames(r, p->flags & PACKET_SILENT && !p->payload_bytes ? NULL : p->payload, p->dur);
}

enum err retime_gap(struct retime *r, const struct packet *p)
{
	int64_t from = scale(r, p->pos), to = scale(r, p->pos + p->dur);
	struct packet_gap gap;
	enum err e;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes) || !p->dur)
		return ERR_OK;
	if ((e = end_run(r)))
		return e;
	/* Shorter than a frame is still a hole: it takes the next one's place, once. */
	bool behind = !r->has_out_pos || r->out_pos <= from;
	if (to <= from && behind)
		to = from + 1;
	if (!behind)
		from = r->out_pos;
	while (from < to) {
		uint32_t n = to - from < (int64_t)UINT32_MAX ? (uint32_t)(to - from) : UINT32_MAX;
		if ((e = writer_gap(r->writer, r->id, from, n, &gap)))
			return e;
		from += n;
	}
	r->out_pos = from;
	r->has_out_pos = true;
	r->in_pos = p->pos + p->dur;
	return ERR_OK;
}

enum err retime_finish(struct retime *r)
{
	return end_run(r);
}

int64_t retime_end_pos(const struct retime *r)
{
	return r->has_out_pos ? r->out_pos : INT64_MIN;
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
	made.first_pos = r->has_out_pos ? r->out_pos : scale(r, t->first_pos);
	made.nominal_dur = (uint32_t)r->block_frames;
	made.largest_object_bytes = (uint32_t)(r->max_block_frames * r->out_frame_bytes);
	e = writer_announce(r->writer, &made);
	track_release(&made);
	return e;
}

static enum err open_resampler(struct retime *r, const struct track *t, bool is_double, struct err_why *why)
{
	const struct retime_options *o = &r->options;
	uint64_t out_hz = (uint64_t)o->rate_hz * t->rate_den;

	if (is_at_rate(t, o->rate_hz))
		return ERR_OK;
	if (out_hz > UINT32_MAX)
		return err_say(why, ERR_LIMIT, "-r", "from %u/%u Hz to %u Hz cannot be resampled", t->rate_num, t->rate_den, o->rate_hz);
	struct resampler_options ro = {
		.in_hz = t->rate_num, .out_hz = (uint32_t)out_hz, .channels = t->channels, .quality = o->quality, .phase = o->phase,
		.n_threads = o->n_threads, .is_double = is_double,
	};
	return resampler_new(&r->resampler, &ro, why);
}

static uint8_t *take_frames_room(size_t n_frames, size_t frame_bytes)
{
	void *p;

	return posix_memalign(&p, 64, n_frames * frame_bytes) ? NULL : p;
}

enum err retime_new(struct retime **out, const struct track *t, const struct retime_options *o, struct writer *w, int64_t after_pos,
	struct err_why *why)
{
	struct retime *r = calloc(1, sizeof(*r));
	enum sample in = t->sample, format = format_of(t, o);
	bool is_double = in == SAMPLE_F64 || format == SAMPLE_F64;
	enum sample work_format = is_double ? SAMPLE_F64 : SAMPLE_F32;
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (!r)
		return err_say(why, e, "resampling", "%s", err_text(e));
	r->options = *o;
	r->writer = w;
	r->id = t->id;
	r->channels = t->channels;
	r->in_num = t->rate_num;
	r->in_den = t->rate_den;
	r->utc_ns = UNITS_UNKNOWN_NS;
	if (is_at_rate(t, o->rate_hz))
		work_format = in; /* one conversion, integers as they are */
	r->in_frame_bytes = t->frame_bytes;
	r->work_frame_bytes = t->channels * convert_sample_bytes(work_format);
	r->out_frame_bytes = t->channels * convert_sample_bytes(format);
	r->converts_in = in != work_format;
	r->converts_out = work_format != format;
	if ((e = convert_init(&r->to_work, in, work_format, false, 0)) || (e = convert_init(&r->to_out, work_format, format, o->dither, t->id))) {
		err_say(why, e, "resampling", "%s", err_text(e));
		goto out;
	}
	if ((e = open_resampler(r, t, is_double, why)))
		goto out;

	size_t piece = PIECE_SAMPLES / t->channels;
	r->piece_frames = piece < PIECE_MIN_FRAMES ? PIECE_MIN_FRAMES : piece > PIECE_MAX_FRAMES ? PIECE_MAX_FRAMES : piece;
	r->turn_frames = t->channels >= WIDE_CHANNELS && !o->live ? r->piece_frames : 1;
	r->max_block_frames = PACKET_MAX_PAYLOAD_BYTES / r->out_frame_bytes;
	r->made_room_frames = r->max_block_frames + r->piece_frames;
	r->gathered = take_frames_room(r->piece_frames, r->work_frame_bytes);
	r->made = take_frames_room(r->made_room_frames, r->work_frame_bytes);
	if (!r->gathered || !r->made) {
		e = err_say(why, ERR_NOMEM, "resampling", "%s", err_text(ERR_NOMEM));
		goto out;
	}
	if (t->nominal_dur)
		set_block(r, t->nominal_dur);
	if (scale(r, t->first_pos) < after_pos) {
		r->out_pos = after_pos;
		r->has_out_pos = true;
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
	free(r->made);
	free(r);
}
