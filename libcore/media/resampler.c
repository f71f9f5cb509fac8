/*
 * libsoxr already aligns its output with its input and gives round(n·out/in) frames for n.  What is added here:
 *
 * The end is made by feeding silence, as soxr's own flush does, but without telling soxr that it is the end.  So an
 * instance can go on: a restart feeds silence up to the next input frame that falls exactly on an output frame (a
 * multiple of in/gcd), throws away what comes out of it, and continues.  Nothing is allocated for that.
 *
 * With several threads the channels are divided into groups.  Each thread takes its channels out of the interleaved
 * block, resamples them and puts them back, so every group does the same steps and the result is the same.
 */
#include "media/resampler.h"

#include "base/role.h"
#include "base/units.h"

#include <pthread.h>
#include <signal.h>
#include <soxr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_FRAMES 4096u /* of input or output in one turn */
#define MAX_THREADS 64u

struct group {
	struct resampler *owner;
	soxr_t soxr;
	unsigned first_channel, n_channels;
	float *plane_in, *plane_out;  /* n_channels planes of CHUNK_FRAMES; NULL with one group */
	const void **in_planes;
	void **out_planes;
	size_t took_frames, made_frames;
	bool failed;
	pthread_t thread;
	bool has_thread;
};

struct resampler {
	struct resampler_options options;
	uint32_t in_step;             /* in/gcd: input frames after which an output frame falls on an input frame */
	uint32_t out_step;            /* out/gcd */
	struct group *groups;
	unsigned n_groups;
	float *silence;               /* CHUNK_FRAMES frames of zeros */
	float *waste;                 /* CHUNK_FRAMES frames nobody wants */
	uint64_t segment_in_frames;   /* the caller's, since the start or the last restart */
	uint64_t segment_out_frames;  /* handed to the caller since then */
	uint64_t total_in_frames;     /* given to soxr in all, silence too */
	uint64_t total_out_frames;    /* come from soxr in all */
	uint64_t skip_frames;         /* still to be thrown away before the segment's first frame */
	/* the turn that the threads work on */
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	bool has_lock, ending;
	uint64_t turn;
	unsigned n_busy;
	const float *turn_in;
	float *turn_out;
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

static void group_split(struct group *g, const float *in, size_t n_frames)
{
	size_t stride = g->owner->options.channels;

	for (unsigned c = 0; c < g->n_channels; c++) {
		const float *from = in + g->first_channel + c;
		float *to = g->plane_in + (size_t)c * CHUNK_FRAMES;
		for (size_t i = 0; i < n_frames; i++)
			to[i] = from[i * stride];
	}
}

static void group_join(const struct group *g, float *out, size_t n_frames)
{
	size_t stride = g->owner->options.channels;

	for (unsigned c = 0; c < g->n_channels; c++) {
		const float *from = g->plane_out + (size_t)c * CHUNK_FRAMES;
		float *to = out + g->first_channel + c;
		for (size_t i = 0; i < n_frames; i++)
			to[i * stride] = from[i];
	}
}

static void group_work(struct group *g)
{
	struct resampler *r = g->owner;

	group_split(g, r->turn_in, r->turn_in_frames);
	g->failed = soxr_process(g->soxr, g->in_planes, r->turn_in_frames, &g->took_frames, g->out_planes,
			r->turn_out_frames, &g->made_frames) != 0;
	if (!g->failed)
		group_join(g, r->turn_out, g->made_frames);
}

static void *group_main(void *arg)
{
	struct group *g = arg;
	struct resampler *r = g->owner;
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
		group_work(g);
		pthread_mutex_lock(&r->lock);
		if (--r->n_busy == 0)
			pthread_cond_signal(&r->done);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Up to n_in frames into soxr and up to n_out out of it, both at most CHUNK_FRAMES; in may not be NULL. */
static enum err turn(struct resampler *r, const float *in, size_t *n_in, float *out, size_t *n_out)
{
	if (r->n_groups == 1) {
		if (soxr_process(r->groups[0].soxr, in, *n_in, n_in, out, *n_out, n_out))
			return ERR_CODEC;
	} else {
		r->turn_in = in;
		r->turn_out = out;
		r->turn_in_frames = *n_in;
		r->turn_out_frames = *n_out;
		pthread_mutex_lock(&r->lock);
		r->turn++;
		r->n_busy = r->n_groups - 1;
		pthread_cond_broadcast(&r->start);
		pthread_mutex_unlock(&r->lock);
		group_work(&r->groups[0]);
		pthread_mutex_lock(&r->lock);
		while (r->n_busy)
			pthread_cond_wait(&r->done, &r->lock);
		pthread_mutex_unlock(&r->lock);
		*n_in = r->groups[0].took_frames;
		*n_out = r->groups[0].made_frames;
		for (unsigned i = 0; i < r->n_groups; i++) {
			const struct group *g = &r->groups[i];
			if (g->failed || g->took_frames != *n_in || g->made_frames != *n_out)
				return ERR_CODEC;
		}
	}
	r->total_in_frames += *n_in;
	r->total_out_frames += *n_out;
	return ERR_OK;
}

/*
 * As turn(), and throws away what the segment does not want.  Taking nothing and making nothing means that there was
 * no room or no input.
 */
static enum err step(struct resampler *r, const float *in, size_t *n_in, float *out, size_t *n_out)
{
	size_t offered_in = *n_in < CHUNK_FRAMES ? *n_in : CHUNK_FRAMES;
	size_t room = *n_out < CHUNK_FRAMES ? *n_out : CHUNK_FRAMES;
	enum err e;

	*n_in = 0;
	while (r->skip_frames) {
		size_t taken = offered_in - *n_in;
		size_t wasted = r->skip_frames < CHUNK_FRAMES ? (size_t)r->skip_frames : CHUNK_FRAMES;
		if ((e = turn(r, in + *n_in * r->options.channels, &taken, r->waste, &wasted)))
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
	if ((e = turn(r, in + *n_in * r->options.channels, &taken, out, n_out)))
		return e;
	*n_in += taken;
	return ERR_OK;
}

/* Frames a segment of n_in gives. */
static uint64_t segment_target(const struct resampler *r, uint64_t n_in)
{
	return (uint64_t)units_scale((int64_t)n_in, r->options.out_hz, r->options.in_hz);
}

/* ---- the interface ---- */

enum err resampler_run(struct resampler *r, const float *in, size_t *n_in, float *out, size_t *n_out)
{
	size_t taken = 0, made = 0;
	size_t channels = r->options.channels;

	while (taken < *n_in || made < *n_out) {
		size_t step_in = *n_in - taken, step_out = *n_out - made;
		enum err e = step(r, in + taken * channels, &step_in, out + made * channels, &step_out);
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

enum err resampler_finish(struct resampler *r, float *out, size_t *n_out)
{
	uint64_t left = segment_target(r, r->segment_in_frames) - r->segment_out_frames;
	size_t room = *n_out < left ? *n_out : (size_t)left;
	size_t made = 0;

	while (made < room) {
		size_t fed = CHUNK_FRAMES, got = room - made;
		enum err e = step(r, r->silence, &fed, out + made * r->options.channels, &got);
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
		size_t fed = n_frames && n_frames < CHUNK_FRAMES ? (size_t)n_frames : CHUNK_FRAMES;
		size_t wasted = CHUNK_FRAMES;
		enum err e = turn(r, r->silence, &fed, r->waste, &wasted);
		if (e)
			return e;
		n_frames -= n_frames ? fed : 0;
	}
	return ERR_OK;
}

enum err resampler_restart(struct resampler *r)
{
	enum err e;

	if (!r->segment_in_frames)
		return ERR_OK;

	/* The ringing of the old segment must be over.  Where the filter is symmetric, it is when the old end came out. */
	uint64_t begun = r->total_out_frames + r->skip_frames - r->segment_out_frames;
	if ((e = feed_silence(r, 0, begun + segment_target(r, r->segment_in_frames))))
		return e;
	if (r->options.phase != RESAMPLER_LINEAR && (e = feed_silence(r, 16 * (uint64_t)CHUNK_FRAMES, 0)))
		return e;

	uint64_t steps = (r->total_in_frames + r->in_step - 1) / r->in_step;
	if ((e = feed_silence(r, steps * r->in_step - r->total_in_frames, 0)))
		return e;
	r->skip_frames = steps * r->out_step - r->total_out_frames;
	r->segment_in_frames = r->segment_out_frames = 0;
	return ERR_OK;
}

/* ---- life ---- */

static enum err group_open(struct group *g, const struct resampler_options *o, bool alone, struct err_why *why)
{
	soxr_io_spec_t io = soxr_io_spec(alone ? SOXR_FLOAT32_I : SOXR_FLOAT32_S, alone ? SOXR_FLOAT32_I : SOXR_FLOAT32_S);
	soxr_quality_spec_t quality = soxr_quality_spec(recipe(o), 0);
	soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
	soxr_error_t error = NULL;

	g->soxr = soxr_create(o->in_hz, o->out_hz, g->n_channels, &error, &io, &quality, &runtime);
	if (!g->soxr)
		return err_say(why, error && strstr(error, "alloc") ? ERR_NOMEM : ERR_CODEC, "resampling", "%u to %u Hz: %s",
			o->in_hz, o->out_hz, error ? error : "out of memory");
	if (alone)
		return ERR_OK;
	g->plane_in = calloc((size_t)g->n_channels * CHUNK_FRAMES, sizeof(float));
	g->plane_out = calloc((size_t)g->n_channels * CHUNK_FRAMES, sizeof(float));
	g->in_planes = calloc(g->n_channels, sizeof(*g->in_planes));
	g->out_planes = calloc(g->n_channels, sizeof(*g->out_planes));
	if (!g->plane_in || !g->plane_out || !g->in_planes || !g->out_planes)
		return err_say(why, ERR_NOMEM, "resampling", "out of memory");
	for (unsigned c = 0; c < g->n_channels; c++) {
		g->in_planes[c] = g->plane_in + (size_t)c * CHUNK_FRAMES;
		g->out_planes[c] = g->plane_out + (size_t)c * CHUNK_FRAMES;
	}
	return ERR_OK;
}

/* Threads take no signals: those are for the thread that reads and writes. */
static enum err groups_start(struct resampler *r, struct err_why *why)
{
	sigset_t all, before;
	enum err e = ERR_OK;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 1; i < r->n_groups && !e; i++) {
		char name[16];
		int failed = pthread_create(&r->groups[i].thread, NULL, group_main, &r->groups[i]);
		if (failed) {
			e = err_say(why, ERR_NOMEM, "resampling", "no thread: %s", strerror(failed));
			break;
		}
		r->groups[i].has_thread = true;
		snprintf(name, sizeof(name), "resample-%u", i % MAX_THREADS);
		pthread_setname_np(r->groups[i].thread, name);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return e;
}

enum err resampler_new(struct resampler **out, const struct resampler_options *o, struct err_why *why)
{
	struct resampler *r = NULL;
	unsigned n_groups = o->n_threads > 1 ? o->n_threads : 1;
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (!o->in_hz || !o->out_hz || !o->channels)
		return err_say(why, ERR_ARG, "resampling", "from %u to %u Hz with %u channels: each must be at least 1", o->in_hz,
			o->out_hz, o->channels);
	if (n_groups > o->channels)
		n_groups = o->channels;
	if (n_groups > MAX_THREADS)
		n_groups = MAX_THREADS;

	r = calloc(1, sizeof(*r));
	if (!r)
		return err_say(why, ERR_NOMEM, "resampling", "out of memory");
	r->options = *o;
	uint32_t common = gcd(o->in_hz, o->out_hz);
	r->in_step = o->in_hz / common;
	r->out_step = o->out_hz / common;
	r->groups = calloc(n_groups, sizeof(*r->groups));
	r->silence = calloc((size_t)CHUNK_FRAMES * o->channels, sizeof(float));
	r->waste = calloc((size_t)CHUNK_FRAMES * o->channels, sizeof(float));
	if (!r->groups || !r->silence || !r->waste) {
		err_say(why, ERR_NOMEM, "resampling", "out of memory");
		goto out;
	}
	r->n_groups = n_groups;
	for (unsigned i = 0, channel = 0; i < n_groups; i++) {
		struct group *g = &r->groups[i];
		g->owner = r;
		g->first_channel = channel;
		g->n_channels = (o->channels - channel) / (n_groups - i);
		channel += g->n_channels;
		if ((e = group_open(g, o, n_groups == 1, why)))
			goto out;
	}
	if (n_groups > 1) {
		pthread_mutex_init(&r->lock, NULL);
		pthread_cond_init(&r->start, NULL);
		pthread_cond_init(&r->done, NULL);
		r->has_lock = true;
		if ((e = groups_start(r, why)))
			goto out;
	}
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
	for (unsigned i = 0; i < r->n_groups; i++) {
		struct group *g = &r->groups[i];
		if (g->has_thread)
			pthread_join(g->thread, NULL);
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
	free(r->groups);
	free(r->silence);
	free(r->waste);
	free(r);
}
