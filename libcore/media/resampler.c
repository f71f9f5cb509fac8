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
 * none is left: a thread that was late or slow does fewer.  Every group does the same steps, so the result is the same.
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

#define FED_FRAMES 1024u   /* of silence, at a time */
#define RING_FRAMES 65536u /* of silence, until a filter that is not symmetric has rung out */
#define MAX_THREADS 64u
#define GROUPS_PER_THREAD 4u

struct group {
	soxr_t soxr;
	unsigned first_channel;
	size_t took_frames, made_frames;
	bool failed;
};

/* Where frames lie: interleaved from `samples` on, or in planes; from frame `at` on. */
struct place {
	uint8_t *samples;
	void *const *planes;
	size_t at;
};

struct resampler {
	struct resampler_options options;
	uint32_t in_step;             /* in/gcd: input frames after which an output frame falls on an input frame */
	uint32_t out_step;            /* out/gcd */
	size_t step_bytes;            /* from frame to frame: of all channels interleaved, of one in planes */
	struct group *groups;
	unsigned n_groups;
	uint8_t *silence_samples, *waste_samples; /* FED_FRAMES frames of zeros; and such as nobody wants */
	void **planes;                /* 4 times `channels` pointers, for the next four; NULL where interleaved */
	void **silence_planes, **waste_planes;
	void **in_planes, **out_planes; /* of a turn */
	struct place silence, waste;
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

/* Groups of this turn, as long as there are any. */
static void work(struct resampler *r)
{
	for (;;) {
		unsigned i = atomic_fetch_add(&r->next_group, 1);
		if (i >= r->n_groups)
			return;
		struct group *g = &r->groups[i];
		g->failed = soxr_process(g->soxr, (soxr_in_t)(r->in_planes + g->first_channel), r->turn_in_frames, &g->took_frames,
				(soxr_out_t)(r->out_planes + g->first_channel), r->turn_out_frames, &g->made_frames) != 0;
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

static enum err turn_of_groups(struct resampler *r, size_t *n_in, size_t *n_out)
{
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

/* Up to n_in frames into soxr and up to n_out out of it. */
static enum err turn(struct resampler *r, const struct place *in, size_t *n_in, const struct place *out, size_t *n_out)
{
	const void *from;
	void *to;
	enum err e = ERR_OK;

	if (!r->planes) {
		from = in->samples + in->at * r->step_bytes;
		to = out->samples + out->at * r->step_bytes;
	} else {
		for (unsigned c = 0; c < r->options.channels; c++) {
			r->in_planes[c] = (uint8_t *)in->planes[c] + in->at * r->step_bytes;
			r->out_planes[c] = (uint8_t *)out->planes[c] + out->at * r->step_bytes;
		}
		from = r->in_planes;
		to = r->out_planes;
	}
	/* Of interleaved output soxr reads a pointer a channel, whatever it is: more than the last frame of it may hold. */
	bool aside = !r->planes && out != &r->waste && *n_out * r->step_bytes < r->options.channels * sizeof(void *);
	void *end = to;
	if (aside)
		to = r->waste_samples;
	if (r->n_groups > 1)
		e = turn_of_groups(r, n_in, n_out);
	else if (soxr_process(r->groups[0].soxr, from, *n_in, n_in, to, *n_out, n_out))
		e = ERR_CODEC;
	if (e)
		return e;
	if (aside)
		memcpy(end, to, *n_out * r->step_bytes);
	r->total_in_frames += *n_in;
	r->total_out_frames += *n_out;
	return ERR_OK;
}

/*
 * As turn(), and throws away what the segment does not want.  Taking nothing and making nothing means that there was
 * no room or no input.
 */
static enum err step(struct resampler *r, struct place in, size_t *n_in, const struct place *out, size_t *n_out)
{
	size_t left = *n_in;
	enum err e;

	*n_in = 0;
	while (r->skip_frames) {
		size_t taken = left, wasted = r->skip_frames < FED_FRAMES ? (size_t)r->skip_frames : FED_FRAMES;
		if ((e = turn(r, &in, &taken, &r->waste, &wasted)))
			return e;
		*n_in += taken;
		in.at += taken;
		left -= taken;
		r->skip_frames -= wasted;
		if (!taken && !wasted) {
			*n_out = 0;
			return ERR_OK;
		}
	}
	if ((e = turn(r, &in, &left, out, n_out)))
		return e;
	*n_in += left;
	return ERR_OK;
}

static struct place place_of(const struct resampler *r, void *frames)
{
	return r->planes ? (struct place){ .planes = frames } : (struct place){ .samples = frames };
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
	struct place from = place_of(r, (void *)in), to = place_of(r, out);

	while (from.at < *n_in || to.at < *n_out) {
		size_t step_in = *n_in - from.at, step_out = *n_out - to.at;
		enum err e = step(r, from, &step_in, &to, &step_out);
		if (e)
			return e;
		bool hungry = step_out < *n_out - to.at;
		bool stuck = !step_in && !step_out;
		from.at += step_in;
		to.at += step_out;
		if (stuck || (hungry && from.at == *n_in))
			break;
	}
	r->segment_in_frames += from.at;
	r->segment_out_frames += to.at;
	*n_in = from.at;
	*n_out = to.at;
	return ERR_OK;
}

enum err resampler_finish(struct resampler *r, void *out, size_t *n_out)
{
	uint64_t left = segment_target(r, r->segment_in_frames) - r->segment_out_frames;
	size_t room = *n_out < left ? *n_out : (size_t)left;
	struct place to = place_of(r, out);

	while (to.at < room) {
		size_t fed = FED_FRAMES, got = room - to.at;
		enum err e = step(r, r->silence, &fed, &to, &got);
		if (e)
			return e;
		to.at += got;
	}
	r->segment_out_frames += to.at;
	*n_out = to.at;
	return ERR_OK;
}

/* Feed n_frames of silence, or, with n_frames 0, until soxr has given all_out frames in all. */
static enum err feed_silence(struct resampler *r, uint64_t n_frames, uint64_t all_out)
{
	while (n_frames || r->total_out_frames < all_out) {
		size_t fed = n_frames && n_frames < FED_FRAMES ? (size_t)n_frames : FED_FRAMES;
		size_t wasted = FED_FRAMES;
		enum err e = turn(r, &r->silence, &fed, &r->waste, &wasted);
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

static enum err group_open(const struct resampler *r, struct group *g, unsigned n_channels, struct err_why *why)
{
	const struct resampler_options *o = &r->options;
	soxr_datatype_t type = o->is_double ? o->is_planar ? SOXR_FLOAT64_S : SOXR_FLOAT64_I : o->is_planar ? SOXR_FLOAT32_S : SOXR_FLOAT32_I;
	soxr_io_spec_t io = soxr_io_spec(type, type);
	soxr_quality_spec_t quality = soxr_quality_spec(recipe(o), 0);
	soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
	soxr_error_t error = NULL;

	g->soxr = soxr_create(o->in_hz, o->out_hz, n_channels, &error, &io, &quality, &runtime);
	if (!g->soxr)
		return err_say(why, error && strstr(error, "alloc") ? ERR_NOMEM : ERR_CODEC, "resampling", "%u to %u Hz: %s",
			o->in_hz, o->out_hz, error ? error : "out of memory");
	return ERR_OK;
}

/* Silence and waste, for as many channels: a plane of zeros is enough for all of them. */
static enum err take_room(struct resampler *r)
{
	size_t channels = r->options.channels;
	size_t sample_bytes = r->options.is_double ? sizeof(double) : sizeof(float);

	r->silence_samples = calloc(r->options.is_planar ? 1 : channels, FED_FRAMES * sample_bytes);
	r->waste_samples = calloc(channels, FED_FRAMES * sample_bytes);
	if (!r->silence_samples || !r->waste_samples)
		return ERR_NOMEM;
	r->step_bytes = r->options.is_planar ? sample_bytes : channels * sample_bytes;
	r->silence = (struct place){ .samples = r->silence_samples };
	r->waste = (struct place){ .samples = r->waste_samples };
	if (!r->options.is_planar)
		return ERR_OK;
	if (!(r->planes = calloc(4 * channels, sizeof(*r->planes))))
		return ERR_NOMEM;
	r->silence_planes = r->planes;
	r->waste_planes = r->planes + channels;
	r->in_planes = r->planes + 2 * channels;
	r->out_planes = r->planes + 3 * channels;
	for (size_t c = 0; c < channels; c++) {
		r->silence_planes[c] = r->silence_samples;
		r->waste_planes[c] = r->waste_samples + c * FED_FRAMES * sample_bytes;
	}
	r->silence.planes = r->silence_planes;
	r->waste.planes = r->waste_planes;
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

enum err resampler_new(struct resampler **out, const struct resampler_options *o, struct err_why *why)
{
	struct resampler *r = NULL;
	unsigned n_threads = o->n_threads > 1 ? o->n_threads : 1, n_groups;
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (!o->in_hz || !o->out_hz || !o->channels)
		return err_say(why, ERR_ARG, "resampling", "from %u to %u Hz with %u channels: each must be at least 1", o->in_hz,
			o->out_hz, o->channels);
	if (n_threads > 1 && !o->is_planar)
		return err_say(why, ERR_ARG, "resampling", "%u threads for interleaved samples: only planes can be split over them", n_threads);
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
	r->groups = calloc(n_groups, sizeof(*r->groups));
	if (!r->groups || take_room(r)) {
		err_say(why, ERR_NOMEM, "resampling", "out of memory");
		goto out;
	}
	r->n_groups = n_groups;
	for (unsigned i = 0, channel = 0; i < n_groups; i++) {
		struct group *g = &r->groups[i];
		g->first_channel = channel;
		unsigned n_channels = (o->channels - channel) / (n_groups - i);
		channel += n_channels;
		if ((e = group_open(r, g, n_channels, why)))
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
	for (unsigned i = 0; i < r->n_groups; i++)
		soxr_delete(r->groups[i].soxr);
	if (r->has_lock) {
		pthread_cond_destroy(&r->done);
		pthread_cond_destroy(&r->start);
		pthread_mutex_destroy(&r->lock);
	}
	free(r->threads);
	free(r->groups);
	free(r->planes);
	free(r->silence_samples);
	free(r->waste_samples);
	free(r);
}
