/*
 * libsoxr already aligns its output with its input and gives round(n·out/in) frames for n.  What is added here:
 *
 * The end is made by feeding silence, as soxr's own flush does, but without telling soxr that it is the end.  So an
 * instance can go on: a restart feeds silence up to the next input frame that falls exactly on an output frame (a
 * multiple of in/gcd), throws away what comes out of it, and continues.  A start at a given position feeds silence up to
 * an input frame that lies as far behind such a multiple as the position does; the output frames then fall where those
 * of one long signal would.  Nothing is allocated for either.
 *
 * With several threads the channels are divided into groups, some for each thread, which take one after another until
 * none is left: a thread that was late or slow does fewer.  Whoever does a group takes its channels out of the
 * interleaved block, resamples them and puts them back; every group does the same steps, so the result is the same.
 */
#include "media/resampler.h"

#include "base/role.h"
#include "base/units.h"

#include <pthread.h>
#include <signal.h>
#include <soxr.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In one turn, of input or output: so many samples, within so many frames. */
#define TURN_SAMPLES 131072u
#define TURN_MIN_FRAMES 256u
#define TURN_MAX_FRAMES 4096u
#define RING_FRAMES 65536u /* of silence, until a filter that is not symmetric has rung out */
#define MAX_THREADS 64u
#define GROUPS_PER_THREAD 4u
#define TILE_FRAMES 32u

struct group {
	soxr_t soxr;
	unsigned first_channel, n_channels;
	uint8_t *plane_in, *plane_out; /* n_channels planes of turn_frames; NULL with one group */
	void **in_planes;
	void **out_planes;
	size_t took_frames, made_frames;
	bool failed;
};

struct resampler {
	struct resampler_options options;
	uint32_t in_step;             /* in/gcd: input frames after which an output frame falls on an input frame */
	uint32_t out_step;            /* out/gcd */
	size_t frame_bytes;
	size_t turn_frames;
	struct group *groups;
	unsigned n_groups;
	uint8_t *silence;             /* turn_frames frames of zeros */
	uint8_t *waste;               /* turn_frames frames nobody wants */
	int64_t segment_pos;          /* where it begins, as said to resampler_place(); else 0 */
	uint64_t segment_in_frames;   /* the caller's, since the start or the last restart */
	uint64_t segment_out_frames;  /* handed to the caller since then */
	uint64_t total_in_frames;     /* given to soxr in all, silence too */
	uint64_t total_out_frames;    /* come from soxr in all */
	uint64_t skip_frames;         /* still to be thrown away before the segment's first frame */
	/* the turn that the threads work on */
	pthread_t *threads;
	unsigned n_threads;           /* beside the caller's */
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	bool has_lock, ending;
	uint64_t turn;
	atomic_uint next_group;       /* to be taken; n_groups and more: none is left */
	atomic_uint n_left;           /* groups that are not done; the caller waits for 0 */
	const uint8_t *turn_in;
	uint8_t *turn_out;
	size_t turn_in_frames, turn_out_frames;
};

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* What soxr calls our qualities and phases. */
static unsigned long recipe(const struct resampler_options *o)
{
	static const unsigned long qualities[] = {SOXR_QQ, SOXR_LQ, SOXR_MQ, SOXR_HQ, SOXR_VHQ};
	static const unsigned long phases[] = {SOXR_LINEAR_PHASE, SOXR_INTERMEDIATE_PHASE, SOXR_MINIMUM_PHASE};

	return qualities[o->quality] | phases[o->phase];
}

/* ---- one turn ---- */

/*
 * The channels of a group out of the interleaved block, or back into it, some frames at a time: those of all channels
 * lie in the same cache lines.
 */
#define DEFINE_COPIES(SAMPLE, NAME) \
static void split_##NAME(const struct group *g, const SAMPLE *from, size_t stride, size_t n_frames) \
{ \
	for (size_t begin = 0; begin < n_frames; begin += TILE_FRAMES) { \
		size_t end = n_frames - begin < TILE_FRAMES ? n_frames : begin + TILE_FRAMES; \
		for (unsigned c = 0; c < g->n_channels; c++) { \
			SAMPLE *plane = (SAMPLE *)g->in_planes[c]; \
			for (size_t i = begin; i < end; i++) \
				plane[i] = from[i * stride + c]; \
		} \
	} \
} \
static void join_##NAME(const struct group *g, SAMPLE *to, size_t stride, size_t n_frames) \
{ \
	for (size_t begin = 0; begin < n_frames; begin += TILE_FRAMES) { \
		size_t end = n_frames - begin < TILE_FRAMES ? n_frames : begin + TILE_FRAMES; \
		for (unsigned c = 0; c < g->n_channels; c++) { \
			const SAMPLE *plane = g->out_planes[c]; \
			for (size_t i = begin; i < end; i++) \
				to[i * stride + c] = plane[i]; \
		} \
	} \
}

DEFINE_COPIES(float, f32)
DEFINE_COPIES(double, f64)

static void group_split(const struct resampler *r, const struct group *g)
{
	if (r->options.is_double)
		split_f64(g, (const double *)r->turn_in + g->first_channel, r->options.channels, r->turn_in_frames);
	else
		split_f32(g, (const float *)r->turn_in + g->first_channel, r->options.channels, r->turn_in_frames);
}

static void group_join(const struct resampler *r, const struct group *g)
{
	if (r->options.is_double)
		join_f64(g, (double *)r->turn_out + g->first_channel, r->options.channels, g->made_frames);
	else
		join_f32(g, (float *)r->turn_out + g->first_channel, r->options.channels, g->made_frames);
}

/* Groups of this turn, as long as there are any. */
static void work(struct resampler *r)
{
	for (;;) {
		unsigned i = atomic_fetch_add(&r->next_group, 1);
		if (i >= r->n_groups)
			return;
		struct group *g = &r->groups[i];
		group_split(r, g);
		g->failed = soxr_process(g->soxr, (soxr_in_t)g->in_planes, r->turn_in_frames, &g->took_frames, g->out_planes, r->turn_out_frames,
				&g->made_frames) != 0;
		if (!g->failed)
			group_join(r, g);
		if (atomic_fetch_sub(&r->n_left, 1) == 1) {
			/* Under the lock, so that it cannot come between the caller's look and its wait. */
			pthread_mutex_lock(&r->lock);
			pthread_cond_signal(&r->done);
			pthread_mutex_unlock(&r->lock);
		}
	}
}

static void *thread_main(void *arg)
{
	struct resampler *r = arg;
	uint64_t seen_turn = 0;

	role_take(ROLE_IO);
	pthread_mutex_lock(&r->lock);
	for (;;) {
		while (r->turn == seen_turn && !r->ending)
			pthread_cond_wait(&r->start, &r->lock);
		if (r->ending)
			break;
		seen_turn = r->turn;
		pthread_mutex_unlock(&r->lock);
		work(r);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static enum err turn_of_groups(struct resampler *r, const void *in, size_t *n_in, void *out, size_t *n_out)
{
	r->turn_in = in;
	r->turn_out = out;
	r->turn_in_frames = *n_in;
	r->turn_out_frames = *n_out;
	atomic_store(&r->n_left, r->n_groups);
	/* From here on a thread that is late from the turn before may take part: everything else is in place. */
	atomic_store(&r->next_group, 0);
	pthread_mutex_lock(&r->lock);
	r->turn++;
	pthread_cond_broadcast(&r->start);
	pthread_mutex_unlock(&r->lock);
	work(r);
	if (atomic_load(&r->n_left)) {
		pthread_mutex_lock(&r->lock);
		while (atomic_load(&r->n_left))
			pthread_cond_wait(&r->done, &r->lock);
		pthread_mutex_unlock(&r->lock);
	}
	*n_in = r->groups[0].took_frames;
	*n_out = r->groups[0].made_frames;
	for (unsigned i = 0; i < r->n_groups; i++) {
		const struct group *g = &r->groups[i];
		if (g->failed || g->took_frames != *n_in || g->made_frames != *n_out)
			return ERR_CODEC;
	}
	return ERR_OK;
}

/* Up to n_in frames into soxr and up to n_out out of it, both at most turn_frames; in may not be NULL. */
static enum err turn(struct resampler *r, const void *in, size_t *n_in, void *out, size_t *n_out)
{
	enum err e = ERR_OK;

	if (r->n_groups > 1)
		e = turn_of_groups(r, in, n_in, out, n_out);
	else if (soxr_process(r->groups[0].soxr, in, *n_in, n_in, out, *n_out, n_out))
		e = ERR_CODEC;
	if (e)
		return e;
	r->total_in_frames += *n_in;
	r->total_out_frames += *n_out;
	return ERR_OK;
}

/*
 * As turn(), and throws away what the segment does not want.  Taking nothing and making nothing means that there was
 * no room or no input.
 */
static enum err step(struct resampler *r, const uint8_t *in, size_t *n_in, uint8_t *out, size_t *n_out)
{
	size_t offered_in = *n_in < r->turn_frames ? *n_in : r->turn_frames;
	size_t room = *n_out < r->turn_frames ? *n_out : r->turn_frames;
	enum err e;

	*n_in = 0;
	while (r->skip_frames) {
		size_t taken = offered_in - *n_in;
		size_t wasted = r->skip_frames < r->turn_frames ? (size_t)r->skip_frames : r->turn_frames;
		if ((e = turn(r, in + *n_in * r->frame_bytes, &taken, r->waste, &wasted)))
			return e;
		*n_in += taken;
		r->skip_frames -= wasted;
		if (!taken && !wasted) {
			*n_out = 0;
			return ERR_OK;
		}
	}
	size_t taken = offered_in - *n_in;
	*n_out = room;
	if ((e = turn(r, in + *n_in * r->frame_bytes, &taken, out, n_out)))
		return e;
	*n_in += taken;
	return ERR_OK;
}

static int64_t scale(const struct resampler *r, int64_t in_frames)
{
	return units_scale(in_frames, r->out_step, r->in_step);
}

/* Frames a segment of n_in gives. */
static uint64_t segment_target(const struct resampler *r, uint64_t n_in)
{
	return (uint64_t)(scale(r, r->segment_pos + (int64_t)n_in) - scale(r, r->segment_pos));
}

/* ---- the interface ---- */

enum err resampler_run(struct resampler *r, const void *in, size_t *n_in, void *out, size_t *n_out)
{
	const uint8_t *from = in;
	uint8_t *to = out;
	size_t taken = 0, made = 0;

	while (taken < *n_in || made < *n_out) {
		size_t step_in = *n_in - taken, step_out = *n_out - made;
		enum err e = step(r, from + taken * r->frame_bytes, &step_in, to + made * r->frame_bytes, &step_out);
		if (e)
			return e;
		if (!step_in && !step_out)
			break;
		taken += step_in;
		made += step_out;
	}
	r->segment_in_frames += taken;
	r->segment_out_frames += made;
	*n_in = taken;
	*n_out = made;
	return ERR_OK;
}

enum err resampler_finish(struct resampler *r, void *out, size_t *n_out)
{
	uint64_t left = segment_target(r, r->segment_in_frames) - r->segment_out_frames;
	size_t room = *n_out < left ? *n_out : (size_t)left;
	size_t made = 0;

	while (made < room) {
		size_t fed = r->turn_frames, got = room - made;
		enum err e = step(r, r->silence, &fed, (uint8_t *)out + made * r->frame_bytes, &got);
		if (e)
			return e;
		made += got;
	}
	r->segment_out_frames += made;
	*n_out = made;
	return ERR_OK;
}

/* Feed n_frames of silence, or, with n_frames 0, until soxr has given all_out frames in all. */
static enum err feed_silence(struct resampler *r, uint64_t n_frames, uint64_t all_out)
{
	while (n_frames || r->total_out_frames < all_out) {
		size_t fed = n_frames && n_frames < r->turn_frames ? (size_t)n_frames : r->turn_frames;
		size_t wasted = r->turn_frames;
		enum err e = turn(r, r->silence, &fed, r->waste, &wasted);
		if (e)
			return e;
		n_frames -= n_frames ? fed : 0;
	}
	return ERR_OK;
}

/* The ringing of the old segment must be over.  Where the filter is symmetric, it is when the old end came out. */
static enum err ring_out(struct resampler *r)
{
	uint64_t begun = r->total_out_frames + r->skip_frames - r->segment_out_frames;
	enum err e;

	if (!r->segment_in_frames)
		return ERR_OK;
	if ((e = feed_silence(r, 0, begun + segment_target(r, r->segment_in_frames))))
		return e;
	return r->options.phase == RESAMPLER_LINEAR ? ERR_OK : feed_silence(r, RING_FRAMES, 0);
}

enum err resampler_place(struct resampler *r, int64_t in_pos, int64_t *out_pos)
{
	int64_t step = r->in_step;
	enum err e;

	if ((e = ring_out(r)))
		return e;

	/* On to the next input frame that lies to the multiples of in_step as in_pos does. */
	uint64_t behind = (uint64_t)((in_pos % step + step) % step);
	uint64_t at = r->total_in_frames % r->in_step;
	if ((e = feed_silence(r, behind >= at ? behind - at : behind + r->in_step - at, 0)))
		return e;

	/* From the last such multiple: output frames to in_pos, and those that soxr has given of them already. */
	*out_pos = scale(r, in_pos);
	uint64_t first = r->total_in_frames / r->in_step * r->out_step +
		(uint64_t)(*out_pos - (in_pos - (int64_t)behind) / step * (int64_t)r->out_step);
	r->skip_frames = first - r->total_out_frames;
	r->segment_pos = in_pos;
	r->segment_in_frames = r->segment_out_frames = 0;
	return ERR_OK;
}

enum err resampler_restart(struct resampler *r)
{
	int64_t begin;

	return r->segment_in_frames ? resampler_place(r, 0, &begin) : ERR_OK;
}

/* ---- life ---- */

static enum err group_open(const struct resampler *r, struct group *g, struct err_why *why)
{
	const struct resampler_options *o = &r->options;
	bool alone = r->n_groups == 1;
	soxr_datatype_t type = o->is_double ? alone ? SOXR_FLOAT64_I : SOXR_FLOAT64_S : alone ? SOXR_FLOAT32_I : SOXR_FLOAT32_S;
	soxr_io_spec_t io = soxr_io_spec(type, type);
	soxr_quality_spec_t quality = soxr_quality_spec(recipe(o), 0);
	soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
	soxr_error_t error = NULL;
	size_t plane_bytes = r->turn_frames * r->frame_bytes / o->channels;

	g->soxr = soxr_create(o->in_hz, o->out_hz, g->n_channels, &error, &io, &quality, &runtime);
	if (!g->soxr)
		return err_say(why, error && strstr(error, "alloc") ? ERR_NOMEM : ERR_CODEC, "resampling", "%u to %u Hz: %s",
			o->in_hz, o->out_hz, error ? error : "out of memory");
	if (alone)
		return ERR_OK;
	g->plane_in = calloc(g->n_channels, plane_bytes);
	g->plane_out = calloc(g->n_channels, plane_bytes);
	g->in_planes = calloc(g->n_channels, sizeof(*g->in_planes));
	g->out_planes = calloc(g->n_channels, sizeof(*g->out_planes));
	if (!g->plane_in || !g->plane_out || !g->in_planes || !g->out_planes)
		return err_say(why, ERR_NOMEM, "resampling", "out of memory");
	for (unsigned c = 0; c < g->n_channels; c++) {
		g->in_planes[c] = g->plane_in + c * plane_bytes;
		g->out_planes[c] = g->plane_out + c * plane_bytes;
	}
	return ERR_OK;
}

/* Threads take no signals: those are for the thread that reads and writes. */
static enum err start_threads(struct resampler *r, unsigned n_threads, struct err_why *why)
{
	sigset_t all, before;
	enum err e = ERR_OK;

	if (!(r->threads = calloc(n_threads, sizeof(*r->threads))))
		return err_say(why, ERR_NOMEM, "resampling", "out of memory");
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->start, NULL);
	pthread_cond_init(&r->done, NULL);
	r->has_lock = true;
	atomic_store(&r->next_group, r->n_groups);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r->n_threads < n_threads && !e) {
		char name[16];
		int failed = pthread_create(&r->threads[r->n_threads], NULL, thread_main, r);
		if (failed) {
			e = err_say(why, ERR_NOMEM, "resampling", "no thread: %s", strerror(failed));
			break;
		}
		snprintf(name, sizeof(name), "resample-%u", (r->n_threads + 1) % MAX_THREADS);
		pthread_setname_np(r->threads[r->n_threads++], name);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return e;
}

static size_t turn_frames(unsigned channels)
{
	size_t n = TURN_SAMPLES / channels;

	return n < TURN_MIN_FRAMES ? TURN_MIN_FRAMES : n > TURN_MAX_FRAMES ? TURN_MAX_FRAMES : n;
}

enum err resampler_new(struct resampler **out, const struct resampler_options *o, struct err_why *why)
{
	struct resampler *r = NULL;
	unsigned n_threads = o->n_threads > 1 ? o->n_threads : 1, n_groups;
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (!o->in_hz || !o->out_hz || !o->channels)
		return err_say(why, ERR_ARG, "resampling", "from %u to %u Hz with %u channels: each must be at least 1", o->in_hz,
			o->out_hz, o->channels);
	if (n_threads > o->channels)
		n_threads = o->channels;
	if (n_threads > MAX_THREADS)
		n_threads = MAX_THREADS;
	n_groups = n_threads == 1 ? 1 : GROUPS_PER_THREAD * n_threads;
	if (n_groups > o->channels)
		n_groups = o->channels;

	r = calloc(1, sizeof(*r));
	if (!r)
		return err_say(why, ERR_NOMEM, "resampling", "out of memory");
	r->options = *o;
	uint32_t common = gcd(o->in_hz, o->out_hz);
	r->in_step = o->in_hz / common;
	r->out_step = o->out_hz / common;
	r->frame_bytes = o->channels * (o->is_double ? sizeof(double) : sizeof(float));
	r->turn_frames = turn_frames(o->channels);
	r->groups = calloc(n_groups, sizeof(*r->groups));
	r->silence = calloc(r->turn_frames, r->frame_bytes);
	r->waste = calloc(r->turn_frames, r->frame_bytes);
	if (!r->groups || !r->silence || !r->waste) {
		err_say(why, ERR_NOMEM, "resampling", "out of memory");
		goto out;
	}
	r->n_groups = n_groups;
	for (unsigned i = 0, channel = 0; i < n_groups; i++) {
		struct group *g = &r->groups[i];
		g->first_channel = channel;
		g->n_channels = (o->channels - channel) / (n_groups - i);
		channel += g->n_channels;
		if ((e = group_open(r, g, why)))
			goto out;
	}
	if (n_groups > 1 && (e = start_threads(r, n_threads - 1, why)))
		goto out;
	*out = r;
	r = NULL;
	e = ERR_OK;
out:
	resampler_free(r);
	return e;
}

void resampler_free(struct resampler *r)
{
	if (!r)
		return;
	if (r->has_lock) {
		pthread_mutex_lock(&r->lock);
		r->ending = true;
		pthread_cond_broadcast(&r->start);
		pthread_mutex_unlock(&r->lock);
	}
	for (unsigned i = 0; i < r->n_threads; i++)
		pthread_join(r->threads[i], NULL);
	for (unsigned i = 0; i < r->n_groups; i++) {
		struct group *g = &r->groups[i];
		soxr_delete(g->soxr);
		free(g->plane_in);
		free(g->plane_out);
		free(g->in_planes);
		free(g->out_planes);
	}
	if (r->has_lock) {
		pthread_cond_destroy(&r->done);
		pthread_cond_destroy(&r->start);
		pthread_mutex_destroy(&r->lock);
	}
	free(r->threads);
	free(r->groups);
	free(r->silence);
	free(r->waste);
	free(r);
}
