#include "media/reshape.h"

#include "base/units.h"
#include "dsp/convert.h"
#include "media/chanmap.h"
#include "media/resampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORK_FRAMES 4096u
#define WORK_SAMPLES 65536u      /* at most: with many channels fewer frames are done at a time */
#define MINUS_3_DB 0.70710678118654752440

enum spread { SPREAD_NONE, SPREAD_MONO, SPREAD_PAD, SPREAD_MEAN, SPREAD_MATRIX };

struct reshape {
	struct source inner;
	struct reshape_options options;
	/* made by setup(), anew when the layout changes on the way */
	unsigned in_channels, out_channels;
	size_t work_frames;
	enum spread spread;
	bool spread_first;        /* fewer channels: before the resampler, else behind it */
	float *matrix;
	bool direct;              /* samples are only copied and their format changed: no f32 between, nothing lost that need not be */
	struct convert to_f32, to_out;
	uint8_t *raw;             /* the source's frames */
	float *a, *b, *c;         /* as f32; with other channels; resampled */
	struct resampler *resampler;
	/* resampling */
	size_t in_at_frames, in_frames;
	size_t out_at_frames, out_frames;
	int64_t out_pos;
	uint16_t flags;
	bool started, draining, ended;
	bool changed;             /* news that wait until the resampler is empty */
	uint64_t gap_frames;      /* a hole that waits, in the source's frames */
	int64_t gap_end_pos;
	uint16_t gap_reason;
};

/* ---- channels ---- */

enum { FL, FR, FC, LFE, BL, BR, FLC, FRC, BC, SL, SR, TC, TFL, TFC, TFR, TBL, TBC, TBR, NONE = -1 };

/* Where a speaker goes that is not there: to its first neighbours that are, each with a gain. */
static const struct fold {
	int8_t from, to[2];
	double gain;
} folds[] = {
	{ BL, { SL, NONE }, 1.0 },          { BR, { SR, NONE }, 1.0 },          { SL, { BL, NONE }, 1.0 },
	{ SR, { BR, NONE }, 1.0 },          { BC, { BL, BR }, MINUS_3_DB },     { BC, { SL, SR }, MINUS_3_DB },
	{ BC, { FL, FR }, 0.5 },            { BC, { FC, NONE }, 0.5 },          { BL, { FL, NONE }, MINUS_3_DB },
	{ BR, { FR, NONE }, MINUS_3_DB },   { SL, { FL, NONE }, MINUS_3_DB },   { SR, { FR, NONE }, MINUS_3_DB },
	{ BL, { FC, NONE }, 0.5 },          { BR, { FC, NONE }, 0.5 },          { SL, { FC, NONE }, 0.5 },
	{ SR, { FC, NONE }, 0.5 },          { FC, { FL, FR }, MINUS_3_DB },     { FL, { FC, NONE }, MINUS_3_DB },
	{ FR, { FC, NONE }, MINUS_3_DB },   { FLC, { FL, NONE }, 1.0 },         { FRC, { FR, NONE }, 1.0 },
	{ FLC, { FC, NONE }, MINUS_3_DB },  { FRC, { FC, NONE }, MINUS_3_DB },  { TC, { FL, FR }, 0.5 },
	{ TC, { FC, NONE }, MINUS_3_DB },   { TFL, { FL, NONE }, MINUS_3_DB },  { TFR, { FR, NONE }, MINUS_3_DB },
	{ TFC, { FC, NONE }, MINUS_3_DB },  { TFC, { FL, FR }, 0.5 },           { TFL, { FC, NONE }, 0.5 },
	{ TFR, { FC, NONE }, 0.5 },         { TBL, { BL, NONE }, MINUS_3_DB },  { TBR, { BR, NONE }, MINUS_3_DB },
	{ TBL, { SL, NONE }, MINUS_3_DB },  { TBR, { SR, NONE }, MINUS_3_DB },  { TBL, { FL, NONE }, 0.5 },
	{ TBR, { FR, NONE }, 0.5 },         { TBL, { FC, NONE }, 0.5 },         { TBR, { FC, NONE }, 0.5 },
	{ TBC, { BL, BR }, 0.5 },           { TBC, { SL, SR }, 0.5 },           { TBC, { FL, FR }, 0.5 },
	{ TBC, { FC, NONE }, 0.5 },
};

static bool has_bit(uint64_t mask, int bit)
{
	return bit >= 0 && mask >> bit & 1;
}

/* Which channel of a layout a speaker is. */
static unsigned place_of(uint64_t mask, int bit)
{
	return (unsigned)__builtin_popcountll(mask & (((uint64_t)1 << bit) - 1));
}

static void fold_one(float *matrix, unsigned in_channels, unsigned in, int bit, uint64_t out_mask)
{
	if (has_bit(out_mask, bit)) {
		matrix[place_of(out_mask, bit) * in_channels + in] = 1.0f;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(folds); i++) {
		const struct fold *f = &folds[i];

		if (f->from != bit || !has_bit(out_mask, f->to[0]) || (f->to[1] != NONE && !has_bit(out_mask, f->to[1])))
			continue;
		for (unsigned k = 0; k < 2 && f->to[k] != NONE; k++)
			matrix[place_of(out_mask, f->to[k]) * in_channels + in] = (float)f->gain;
		return;
	}
}

bool reshape_matrix(float *matrix, uint64_t in_mask, unsigned in_channels, uint64_t out_mask, unsigned out_channels)
{
	unsigned in = 0;
	float loudest = 0;

	memset(matrix, 0, (size_t)in_channels * out_channels * sizeof(*matrix));
	for (int bit = 0; bit < (int)CHANMAP_N_BITS; bit++) {
		if (has_bit(in_mask, bit))
			fold_one(matrix, in_channels, in++, bit, out_mask);
	}
	for (unsigned o = 0; o < out_channels; o++) {
		float sum = 0;
		for (unsigned i = 0; i < in_channels; i++)
			sum += matrix[o * in_channels + i];
		loudest = sum > loudest ? sum : loudest;
	}
	if (loudest > 1.0f) {
		for (unsigned i = 0; i < in_channels * out_channels; i++)
			matrix[i] /= loudest;
	}
	return loudest > 0;
}

static enum err plan_channels(struct reshape *r, uint64_t out_mask, struct err_why *why)
{
	const struct track *t = &r->inner.track;

	r->in_channels = t->channels;
	r->out_channels = r->options.channels ? r->options.channels : t->channels;
	r->spread_first = r->out_channels < r->in_channels;
	free(r->matrix);
	r->matrix = NULL;
	if (r->in_channels == r->out_channels) {
		r->spread = SPREAD_NONE;
	} else if (r->in_channels == 1) {
		r->spread = SPREAD_MONO;
	} else if (t->layout == TRACK_LAYOUT_WAVE && out_mask && (unsigned)__builtin_popcountll(t->wave_mask) == r->in_channels) {
		r->spread = SPREAD_MATRIX;
		r->matrix = calloc((size_t)r->in_channels * r->out_channels, sizeof(*r->matrix));
		if (!r->matrix)
			return err_say(why, ERR_NOMEM, r->inner.name, "%s", err_text(ERR_NOMEM));
		if (!reshape_matrix(r->matrix, t->wave_mask, r->in_channels, out_mask, r->out_channels))
			return err_say(why, ERR_ARG, "-c", "nothing of %s would be heard in %u channels", r->inner.name, r->out_channels);
	} else if (r->out_channels > r->in_channels) {
		r->spread = SPREAD_PAD;
	} else if (r->out_channels == 1) {
		r->spread = SPREAD_MEAN;
	} else {
		return err_say(why, ERR_ARG, "-c", "%u channels of %s without speaker positions cannot become %u (1, or more than %u)",
			r->in_channels, r->inner.name, r->out_channels, r->in_channels);
	}
	return ERR_OK;
}

static void spread(const struct reshape *r, float *out, const float *in, size_t n_frames)
{
	unsigned n_in = r->in_channels, n_out = r->out_channels;

	for (size_t k = 0; k < n_frames; k++, in += n_in, out += n_out) {
		float sum = 0;

		switch (r->spread) {
		case SPREAD_NONE:
			memcpy(out, in, n_in * sizeof(*in));
			break;
		case SPREAD_MONO:
			for (unsigned o = 0; o < n_out; o++)
				out[o] = in[0];
			break;
		case SPREAD_PAD:
			memcpy(out, in, n_in * sizeof(*in));
			memset(out + n_in, 0, (n_out - n_in) * sizeof(*out));
			break;
		case SPREAD_MEAN:
			for (unsigned i = 0; i < n_in; i++)
				sum += in[i];
			out[0] = sum / (float)n_in;
			break;
		case SPREAD_MATRIX:
			for (unsigned o = 0; o < n_out; o++) {
				sum = 0;
				for (unsigned i = 0; i < n_in; i++)
					sum += r->matrix[o * n_in + i] * in[i];
				out[o] = sum;
			}
			break;
		}
	}
}

/* The copying ones, of samples in any format. */
static void spread_copies(const struct reshape *r, uint8_t *out, const uint8_t *in, size_t n_frames, unsigned sample_bytes)
{
	size_t in_bytes = (size_t)r->in_channels * sample_bytes, out_bytes = (size_t)r->out_channels * sample_bytes;

	for (size_t k = 0; k < n_frames; k++, in += in_bytes, out += out_bytes) {
		memcpy(out, in, in_bytes);
		if (r->spread == SPREAD_PAD)
			memset(out + in_bytes, 0, out_bytes - in_bytes);
		for (unsigned o = 1; r->spread == SPREAD_MONO && o < r->out_channels; o++)
			memcpy(out + o * sample_bytes, in, sample_bytes);
	}
}

/* ---- set-up ---- */

static enum err take_float(float **p, size_t n_samples)
{
	free(*p);
	*p = NULL;
	if (posix_memalign((void **)p, 64, n_samples * sizeof(**p))) {
		*p = NULL;
		return ERR_NOMEM;
	}
	return ERR_OK;
}

static enum err take_room(struct reshape *r, unsigned widest)
{
	size_t samples = r->work_frames * widest;

	free(r->raw);
	r->raw = NULL;
	if (posix_memalign((void **)&r->raw, 64, samples * 8)) {
		r->raw = NULL;
		return ERR_NOMEM;
	}
	if (take_float(&r->a, samples) || take_float(&r->b, samples) || take_float(&r->c, samples))
		return ERR_NOMEM;
	return ERR_OK;
}

static enum err setup(struct source *s, struct reshape *r, struct err_why *why)
{
	const struct track *t = &r->inner.track;
	enum sample in = t->sample, out = r->options.format != SAMPLE_CODED ? r->options.format : in;
	uint32_t in_hz = track_rate_hz(t), out_hz = r->options.rate_hz ? r->options.rate_hz : in_hz;
	uint64_t out_mask = track_usual_mask(r->options.channels ? r->options.channels : t->channels);
	enum err e = plan_channels(r, out_mask, why);

	if (e)
		return e;
	unsigned widest = r->in_channels > r->out_channels ? r->in_channels : r->out_channels;
	r->work_frames = WORK_SAMPLES / widest < WORK_FRAMES ? WORK_SAMPLES / widest : WORK_FRAMES;
	r->direct = (r->spread == SPREAD_NONE || r->spread == SPREAD_MONO || r->spread == SPREAD_PAD) && in_hz == out_hz;
	if ((e = take_room(r, widest)))
		return err_say(why, e, r->inner.name, "%s", err_text(e));
	if ((e = convert_init(&r->to_f32, in, SAMPLE_F32, false, 0)) ||
		(e = convert_init(&r->to_out, r->direct ? in : SAMPLE_F32, out, r->options.dither, r->options.seed)))
		return err_say(why, e, r->inner.name, "%s", err_text(e));

	resampler_free(r->resampler);
	r->resampler = NULL;
	if (in_hz != out_hz) {
		struct resampler_options ro = {
			.in_hz = in_hz, .out_hz = out_hz, .quality = RESAMPLER_VERY_HIGH, .phase = RESAMPLER_LINEAR,
			.channels = (uint16_t)(r->spread_first ? r->out_channels : r->in_channels),
		};
		if ((e = resampler_new(&r->resampler, &ro, why)))
			return e;
	}

	/* The announcement: the source's tags, the name it was given, this shape. */
	struct track shaped = { 0 };
	uint32_t name_bytes;
	const uint8_t *name = track_tlv(&s->track, TRACK_TLV_NAME, &name_bytes);
	if ((e = track_copy(&shaped, t)) || (name && (e = track_set_tlv(&shaped, TRACK_TLV_NAME, name, name_bytes)))) {
		track_release(&shaped);
		return err_say(why, e, r->inner.name, "%s", err_text(e));
	}
	struct track made = track_pcm(out_hz, (uint16_t)r->out_channels, out);
	shaped.rate_num = made.rate_num;
	shaped.rate_den = made.rate_den;
	shaped.channels = made.channels;
	shaped.sample = made.sample;
	shaped.frame_bytes = made.frame_bytes;
	shaped.id = s->track.id;
	shaped.gen = s->track.gen;
	shaped.first_pos = s->track.channels ? s->track.first_pos : units_scale(t->first_pos, out_hz, in_hz);
	if (out != in || !r->direct)
		shaped.valid_bits = made.valid_bits;
	if (r->spread != SPREAD_NONE) {
		shaped.layout = out_mask ? TRACK_LAYOUT_WAVE : TRACK_LAYOUT_DISCRETE;
		shaped.wave_mask = out_mask;
	}
	track_release(&s->track);
	s->track = shaped;
	return ERR_OK;
}

/* ---- reading ---- */

/* What the inner source has to say goes on. */
static void pass_words(struct source *s, const struct source *inner)
{
	s->cut = inner->cut;
	s->damaged_bytes = inner->damaged_bytes;
	s->lost_frames = inner->lost_frames;
	memcpy(s->warning, inner->warning, sizeof(s->warning));
	memcpy(s->note, inner->note, sizeof(s->note));
	s->why = inner->why;
}

/* f32 frames in the source's channels to ours, in our format. */
static void finish_frames(struct source *s, struct reshape *r, uint8_t *dst, const float *from, size_t n_frames, bool spread_now)
{
	if (spread_now && r->spread != SPREAD_NONE) {
		spread(r, r->b, from, n_frames);
		from = r->b;
	}
	s->clipped_samples += convert_run(&r->to_out, dst, from, n_frames * r->out_channels);
}

static enum err read_plain(struct source *s, struct reshape *r, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	enum err e = source_read(&r->inner, r->raw, max_frames < r->work_frames ? max_frames : r->work_frames, b);

	pass_words(s, &r->inner);
	if (e)
		return e;
	if (b->track_changed && (e = setup(s, r, &s->why)))
		return e;
	if (r->direct && r->spread == SPREAD_NONE) {
		s->clipped_samples += convert_run(&r->to_out, dst, r->raw, b->n_frames * r->out_channels);
	} else if (r->direct) {
		uint64_t clipped = convert_run(&r->to_out, r->a, r->raw, b->n_frames * r->in_channels);
		s->clipped_samples += r->spread == SPREAD_MONO ? clipped * r->out_channels : clipped;
		spread_copies(r, dst, (const uint8_t *)r->a, b->n_frames, track_sample_bytes(s->track.sample));
	} else {
		(void)convert_run(&r->to_f32, r->a, r->raw, b->n_frames * r->in_channels);
		finish_frames(s, r, dst, r->a, b->n_frames, true);
	}
	return ERR_OK;
}

/* More of the source for the resampler; holes and news wait until it is empty. */
static enum err stage_more(struct source *s, struct reshape *r)
{
	struct source_block b;
	enum err e = source_read(&r->inner, r->raw, r->work_frames, &b);

	pass_words(s, &r->inner);
	if (e == ERR_END) {
		r->draining = r->ended = true;
		return ERR_OK;
	}
	if (e)
		return e;
	if (b.gap_frames) {
		r->draining = true;
		r->gap_frames = b.gap_frames;
		r->gap_end_pos = b.pos + (int64_t)b.gap_frames;
		r->gap_reason = b.gap_reason;
	}
	if (b.track_changed)
		r->draining = r->changed = true;
	if (b.n_frames) {
		if (!r->started && (e = resampler_place(r->resampler, b.pos, &r->out_pos)))
			return err_say(&s->why, e, s->name, "%s", err_text(e));
		r->started = true;
		r->flags |= b.flags;
		(void)convert_run(&r->to_f32, r->a, r->raw, b.n_frames * r->in_channels);
		if (r->spread_first)
			spread(r, r->b, r->a, b.n_frames);
		r->in_at_frames = 0;
		r->in_frames = b.n_frames;
	}
	return ERR_OK;
}

/* The resampler is empty: what waited for that goes into *b. */
static enum err settle(struct source *s, struct reshape *r, struct source_block *b)
{
	uint32_t in_hz = track_rate_hz(&r->inner.track), out_hz = track_rate_hz(&s->track);

	r->draining = r->started = false;
	if (r->gap_frames) {
		int64_t end = units_scale(r->gap_end_pos, out_hz, in_hz);
		b->pos = r->out_pos;
		b->gap_frames = end > r->out_pos ? (uint64_t)(end - r->out_pos) : 0;
		b->gap_reason = r->gap_reason;
		r->gap_frames = 0;
		return ERR_OK;
	}
	if (r->changed) {
		r->changed = false;
		b->track_changed = true;
		/* The shape of the source may be another: a resampler of its own. */
		return setup(s, r, &s->why);
	}
	return ERR_OK;
}

static enum err read_resampled(struct source *s, struct reshape *r, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	enum err e;

	while (!r->out_frames) {
		size_t n_out = r->work_frames;

		if (r->in_at_frames < r->in_frames) {
			const float *in = r->spread_first ? r->b + r->in_at_frames * r->out_channels : r->a + r->in_at_frames * r->in_channels;
			size_t n_in = r->in_frames - r->in_at_frames;
			if ((e = resampler_run(r->resampler, in, &n_in, r->c, &n_out)))
				return err_say(&s->why, e, s->name, "%s", err_text(e));
			r->in_at_frames += n_in;
		} else if (r->draining) {
			if (!r->started)
				n_out = 0;
			else if ((e = resampler_finish(r->resampler, r->c, &n_out)))
				return err_say(&s->why, e, s->name, "%s", err_text(e));
			if (!n_out && r->ended)
				return ERR_END;
			if (!n_out)
				return settle(s, r, b);
		} else {
			if ((e = stage_more(s, r)))
				return e;
			continue;
		}
		r->out_at_frames = 0;
		r->out_frames = n_out;
	}
	size_t n = r->out_frames < max_frames ? r->out_frames : max_frames;
	unsigned channels = r->spread_first ? r->out_channels : r->in_channels;

	if (n > r->work_frames)
		n = r->work_frames;
	finish_frames(s, r, dst, r->c + r->out_at_frames * channels, n, !r->spread_first);
	b->pos = r->out_pos;
	b->n_frames = n;
	b->flags = r->flags;
	r->flags = 0;
	r->out_pos += (int64_t)n;
	r->out_at_frames += n;
	r->out_frames -= n;
	return ERR_OK;
}

static enum err reshape_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct reshape *r = s->state;

	return r->resampler ? read_resampled(s, r, dst, max_frames, b) : read_plain(s, r, dst, max_frames, b);
}

static bool reshape_would_block(const struct source *s, size_t n_frames)
{
	const struct reshape *r = s->state;

	return !r->out_frames && r->in_at_frames == r->in_frames && !r->draining && source_would_block(&r->inner, r->resampler ? r->work_frames : n_frames);
}

static void reshape_free(struct reshape *r)
{
	resampler_free(r->resampler);
	free(r->matrix);
	free(r->raw);
	free(r->a);
	free(r->b);
	free(r->c);
	free(r);
}

static void reshape_release(struct source *s)
{
	struct reshape *r = s->state;

	if (!r)
		return;
	source_release(&r->inner);
	reshape_free(r);
	s->state = NULL;
}

static const struct source_ops reshape_ops = {
	.name = "reshape",
	.read = reshape_read,
	.would_block = reshape_would_block,
	.release = reshape_release,
};

enum err reshape_open(struct source *s, const struct reshape_options *o, struct err_why *why)
{
	const struct track *t = &s->track;
	uint32_t in_hz = track_rate_hz(t);

	if ((!o->rate_hz || o->rate_hz == in_hz) && (!o->channels || o->channels == t->channels) &&
		(o->format == SAMPLE_CODED || (uint8_t)o->format == t->sample))
		return ERR_OK;
	struct reshape *r = calloc(1, sizeof(*r));
	if (!r)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	r->options = *o;
	r->inner = *s;

	/* The outside: no descriptor, a track of its own. */
	struct source outer = { .ops = &reshape_ops, .state = r, .fd = -1, .n_frames = s->n_frames, .stop = s->stop };
	memcpy(outer.name, s->name, sizeof(outer.name));
	outer.track.id = t->id;
	enum err e = setup(&outer, r, why);
	if (e) {
		track_release(&outer.track);
		reshape_free(r); /* the inner source is still *s */
		return e;
	}
	if (outer.n_frames >= 0)
		outer.n_frames = units_scale(outer.n_frames, track_rate_hz(&outer.track), in_hz);
	pass_words(&outer, &r->inner);
	*s = outer;
	return ERR_OK;
}
