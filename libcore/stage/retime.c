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

#include "base/cpu.h"
#include "base/units.h"
#include "dsp/convert.h"
#include "dsp/dsp.h"
#include "tool/stats.h"

#include <stdlib.h>
#include <string.h>

#define WIDE_CHANNELS 8u
#define PIECE_SAMPLES 65536u     /* through the resampler at a time: so many samples within so many frames */
#define PIECE_MIN_FRAMES 256u
#define PIECE_MAX_FRAMES 4096u
#define MAX_MARKS 32u

/* Frames that are not what was recorded: the flags of their packets. */
struct mark {
	int64_t from_pos, to_pos; /* in the new rate */
	uint16_t flags;
};

/* Planes of the work format, a pointer a channel. */
struct batch {
	void **in;                /* of piece_frames */
	void **out;               /* of room_frames */
	size_t in_frames, out_frames;
};

struct retime {
	struct retime_options options;
	struct writer *writer;
	uint16_t id;
	unsigned channels;
	uint32_t in_num, in_den;
	size_t in_frame_bytes, work_frame_bytes, out_frame_bytes;
	struct convert to_work, to_out;
	bool converts_in, converts_out, is_double;
	struct resampler *resampler; /* NULL: only the format changes */
	struct dsp dsp;
	size_t piece_frames;      /* gathered at most */
	size_t turn_frames;       /* gathered at least, before they are resampled */
	size_t room_frames;       /* that may come out at a time */
	size_t packet_frames;     /* that a packet holds */
	size_t gathered_frames;
	uint8_t *gathered;        /* interleaved: piece_frames in the work format */
	uint8_t *flat;            /* interleaved: packet_frames in the work format, to be converted */
	struct batch batches[2];  /* the second only where turns overlap with the rest */
	struct batch *batch;      /* that is being gathered; NULL if everything is interleaved */
	struct batch *turning;    /* that threads work on; NULL none */
	bool overlaps;
	uint8_t *samples;         /* of the batches */
	void **pointers;          /* theirs, and planes_at */
	void **planes_at;         /* planes of either, from some frame on */
	/* the run of frames that is going on */
	bool running;
	int64_t in_pos;           /* end of what came */
	int64_t out_pos;          /* end of what was written */
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

/* ---- planes ---- */

static void **planes_from(const struct retime *r, void *const *planes, size_t at)
{
	size_t sample_bytes = r->work_frame_bytes / r->channels;

	for (unsigned c = 0; c < r->channels; c++)
		r->planes_at[c] = (uint8_t *)planes[c] + at * sample_bytes;
	return r->planes_at;
}

/* Interleaved frames behind those that are gathered. */
static void split(const struct retime *r, const void *from, size_t n_frames)
{
	void **to = planes_from(r, r->batch->in, r->gathered_frames);
	const double *sample = from;

	if (!r->is_double) {
		r->dsp.split((float *const *)to, from, r->channels, n_frames);
		return;
	}
	for (size_t i = 0; i < n_frames; i++)
		for (unsigned c = 0; c < r->channels; c++)
			((double *)to[c])[i] = *sample++;
}

/* Frames that came out, interleaved. */
static void join(const struct retime *r, void *to, void *const *planes, size_t at, size_t n_frames)
{
	void **from = planes_from(r, planes, at);
	double *sample = to;

	if (!r->is_double) {
		r->dsp.join(to, (const float *const *)from, r->channels, n_frames);
		return;
	}
	for (size_t i = 0; i < n_frames; i++)
		for (unsigned c = 0; c < r->channels; c++)
			*sample++ = ((const double *)from[c])[i];
}

/* ---- frames out ---- */

/* What the writer has reserved is a packet of n_frames. */
static enum err commit(struct retime *r, size_t n_frames)
{
	struct packet p = packet_data(r->id, r->out_pos, (uint32_t)n_frames, (uint32_t)(n_frames * r->out_frame_bytes));

	r->out_pos += (int64_t)n_frames;
	p.flags |= take_marks(r, p.pos, r->out_pos);
	if (r->discont)
		p.flags |= PACKET_DISCONT;
	r->discont = false;
	if (r->utc_ns != UNITS_UNKNOWN_NS)
		p.utc_ns = r->utc_ns + units_to_ns(p.pos - r->utc_pos, r->options.rate_hz, 1);
	return writer_commit(r->writer, &p);
}

/* How many of n_frames are not wanted: their place is taken. */
static size_t take_drop(struct retime *r, size_t n_frames)
{
	size_t n = r->drop_frames < n_frames ? (size_t)r->drop_frames : n_frames;

	r->drop_frames -= n;
	return n;
}

/* A packet of interleaved frames in the work format, which stand at `to`, the writer's place, already or must get there. */
static enum err write_flat(struct retime *r, uint8_t *to, uint8_t *from, size_t n_frames)
{
	size_t n_dropped = take_drop(r, n_frames);

	from += n_dropped * r->work_frame_bytes;
	n_frames -= n_dropped;
	if (!n_frames)
		return ERR_OK;
	if (r->converts_out)
		stats_add(r->options.clipped_samples, convert_run(&r->to_out, to, from, n_frames * r->channels));
	else if (to != from)
		memmove(to, from, n_frames * r->work_frame_bytes);
	return commit(r, n_frames);
}

static enum err write_planes(struct retime *r, void *const *planes, size_t n_frames)
{
	enum err e = ERR_OK;

	for (size_t at = take_drop(r, n_frames); at < n_frames && !e;) {
		size_t n = n_frames - at < r->packet_frames ? n_frames - at : r->packet_frames;
		uint8_t *to = writer_reserve(r->writer, n * r->out_frame_bytes);
		if (!to)
			return r->writer->failed;
		join(r, r->converts_out ? r->flat : to, planes, at, n);
		e = write_flat(r, to, r->converts_out ? r->flat : to, n);
		at += n;
	}
	return e;
}

/*
 * Frames through the resampler, or, with `ending`, the rest out of it, as much as there is room for, and written.
 * *taken: of n_frames.  *more: the room was filled.
 */
static enum err resample(struct retime *r, const void *from, size_t n_frames, bool ending, size_t *taken, bool *more)
{
	size_t got = r->room_frames;
	uint8_t *to = NULL;
	void *room;
	enum err e;

	if (r->batch) {
		room = r->batch->out;
	} else {
		if (!(to = writer_reserve(r->writer, r->packet_frames * r->out_frame_bytes)))
			return r->writer->failed;
		room = r->converts_out ? r->flat : to;
	}
	*taken = n_frames;
	e = ending ? resampler_finish(r->resampler, room, &got) : resampler_run(r->resampler, from, taken, room, &got);
	*more = got == r->room_frames;
	if (e || !got)
		return e;
	return to ? write_flat(r, to, room, got) : write_planes(r, room, got);
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
static enum err work_planes(struct retime *r, const struct batch *b, size_t done, bool more)
{
	enum err e = ERR_OK;

	while (!e && (done < b->in_frames || more)) {
		size_t taken;
		e = resample(r, planes_from(r, b->in, done), b->in_frames - done, false, &taken, &more);
		done += taken;
	}
	return e;
}

/* The turn that is going on comes to its end; what it made is left to be written, unless there was too little room. */
static enum err complete(struct retime *r, struct batch *b)
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
	if ((e = write_planes(r, b->out, made)))
		return e;
	return work_planes(r, b, taken, true);
}

/* One batch into its turn, the one before out of it. */
static enum err overlap(struct retime *r, bool ending)
{
	struct batch *before = r->turning, *next = r->batch;
	enum err e = before ? complete(r, before) : ERR_OK;

	if (!e && next->in_frames) {
		e = resampler_start(r->resampler, next->in, next->in_frames, next->out, r->room_frames);
		r->turning = next;
		r->batch = next == r->batches ? r->batches + 1 : r->batches;
	}
	if (before && !e)
		e = write_planes(r, before->out, before->out_frames);
	if (!e && ending && (before = r->turning) && !(e = complete(r, before)))
		e = write_planes(r, before->out, before->out_frames);
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
		split(r, from && !r->converts_in ? from : to, n_frames);
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

/* The same where only the format changes. */
static enum err convert_frames(struct retime *r, const uint8_t *from, size_t n_frames)
{
	enum err e;

	while (n_frames) {
		size_t n = n_frames < r->packet_frames ? n_frames : r->packet_frames, n_dropped = take_drop(r, n);
		uint8_t *to = writer_reserve(r->writer, n * r->out_frame_bytes);

		if (!to)
			return r->writer->failed;
		n -= n_dropped;
		n_frames -= n_dropped;
		from = from ? from + n_dropped * r->in_frame_bytes : NULL;
		if (!n)
			continue;
		if (from)
			stats_add(r->options.clipped_samples, convert_run(&r->to_out, to, from, n * r->channels));
		else
			memset(to, 0, n * r->out_frame_bytes);
		if ((e = commit(r, n)))
			return e;
		n_frames -= n;
		from = from ? from + n * r->in_frame_bytes : NULL;
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
	if ((e = work_gathered(r, true)))
		return e;
	for (bool more = r->resampler; more && !e;) {
		size_t taken;
		e = resample(r, NULL, 0, true, &taken, &more);
	}
	r->n_marks = 0;
	return e;
}

/* ---- packets ---- */

enum err retime_data(struct retime *r, const struct packet *p)
{
	struct writer_track *wt = writer_track(r->writer, r->id);
	bool discont = p->flags & PACKET_DISCONT;
	enum err e;

	if (!p->dur)
		return ERR_OK;
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

	const uint8_t *frames = p->flags & PACKET_SILENT && !p->payload_bytes ? NULL : p->payload;
	return r->resampler ? take_frames(r, frames, p->dur) : convert_frames(r, frames, p->dur);
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
	made.nominal_dur = 0;
	made.largest_object_bytes = (uint32_t)(r->packet_frames * r->out_frame_bytes);
	e = writer_announce(r->writer, &made);
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
	size_t sample_bytes = r->work_frame_bytes / r->channels, n_batches = r->overlaps ? 2 : 1, channels = r->channels;
	/* An odd number of cache lines each: the same frame of all planes must not fall into one set of the cache. */
	size_t in_bytes = (units_round_up(r->piece_frames * sample_bytes, 64) | 64) + 128;
	size_t out_bytes = (units_round_up(r->room_frames * sample_bytes, 64) | 64) + 128;

	r->pointers = calloc((2 * n_batches + 1) * channels, sizeof(*r->pointers));
	r->samples = take_bytes(n_batches * channels * (in_bytes + out_bytes));
	if (!r->pointers || !r->samples)
		return ERR_NOMEM;
	r->planes_at = r->pointers;
	for (size_t i = 0; i < n_batches; i++) {
		struct batch *b = &r->batches[i];
		uint8_t *samples = r->samples + i * channels * (in_bytes + out_bytes);
		b->in = r->pointers + (2 * i + 1) * channels;
		b->out = r->pointers + (2 * i + 2) * channels;
		for (size_t c = 0; c < channels; c++) {
			b->in[c] = samples + c * in_bytes;
			b->out[c] = samples + channels * in_bytes + c * out_bytes;
		}
	}
	r->batch = r->batches;
	return ERR_OK;
}

static enum err take_room(struct retime *r)
{
	bool wide = r->channels >= WIDE_CHANNELS;
	size_t piece = PIECE_SAMPLES / r->channels;

	piece = piece < PIECE_MIN_FRAMES ? PIECE_MIN_FRAMES : piece > PIECE_MAX_FRAMES ? PIECE_MAX_FRAMES : piece;
	r->piece_frames = piece;
	r->overlaps = wide && !r->options.live;
	r->turn_frames = r->overlaps ? piece : 1;
	r->room_frames = r->packet_frames;
	if (wide) {
		/* As a rule all that a piece makes. */
		size_t made = (size_t)scale(r, (int64_t)piece) + piece;
		r->room_frames = made < 8 * piece ? made : 8 * piece;
	}
	r->gathered = take_bytes(r->piece_frames * r->work_frame_bytes);
	r->flat = take_bytes(r->packet_frames * r->work_frame_bytes);
	if (!r->gathered || !r->flat)
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
	r->writer = w;
	r->id = t->id;
	r->channels = t->channels;
	r->in_num = t->rate_num;
	r->in_den = t->rate_den;
	r->utc_ns = UNITS_UNKNOWN_NS;
	if (is_at_rate(t, o->rate_hz))
		work_format = in; /* one conversion, integers as they are */
	r->is_double = work_format == SAMPLE_F64;
	if (is_at_rate(t, o->rate_hz))
		work_format = in; /* one conversion, integers as they are */
	r->in_frame_bytes = t->frame_bytes;
	r->work_frame_bytes = t->channels * convert_sample_bytes(work_format);
	r->out_frame_bytes = t->channels * convert_sample_bytes(format);
	r->packet_frames = PACKET_MAX_PAYLOAD_BYTES / r->out_frame_bytes;
	r->converts_in = in != work_format;
	r->converts_out = work_format != format;
	dsp_init(&r->dsp, cpu_flags());
	if ((e = convert_init(&r->to_work, in, work_format, false, 0)) || (e = convert_init(&r->to_out, work_format, format, o->dither, t->id)) ||
		(!is_at_rate(t, o->rate_hz) && (e = take_room(r)))) {
		err_say(why, e, "resampling", "%s", err_text(e));
		goto out;
	}
	if ((e = open_resampler(r, t, why)))
		goto out;
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
	free(r->flat);
	free(r->pointers);
	free(r->samples);
	free(r);
}
