/*
 * libsoxr already aligns its output with its input and gives round(n·out/in) frames for n.  What is added here:
 *
 * The end is made by feeding silence, as soxr's own flush does, but without telling soxr that it is the end.  So an
 * instance can go on: a restart feeds silence up to the next input frame that falls exactly on an output frame (a
 * multiple of in/gcd), throws away what comes out of it, and continues.  A start at a given position feeds silence up to
 * an input frame that lies as far behind such a multiple as the position does; the output frames then fall where those
 * of one long signal would.  Nothing is allocated for either.
 *
 * With several threads the channels are divided into groups, some for each thread.  A thread does its own first, which
 * its cache knows, then what the others have left: one that was late or slow does fewer.  Every group does the same
 * steps, so the result is the same.
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
	atomic_uint_fast64_t turn;    /* for which it was taken last */
	size_t took_frames, made_frames;
	bool failed;
};

struct helper {
	struct resampler *owner;
	unsigned number;              /* from 1; the caller's thread is 0 */
	pthread_t thread;
};

/* Where frames lie: interleaved from `samples` on, or in planes; from frame `at` on. */
struct place {
	uint8_t *samples;
	void *const *planes;
	size_t at;
};

/* What a caller wants done. */
struct run {
	struct place from, to;        /* as far as they got */
	size_t n_in, n_out;           /* in all */
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
	struct helper *helpers;
	unsigned n_helpers;           /* threads beside the caller's */
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	bool has_lock, ending;
	uint64_t turn;                /* numbers them, from 1; under lock, but for the caller */
	atomic_uint n_left;           /* groups that are not done; the caller waits for 0 */
	size_t turn_in_frames, turn_out_frames;
	struct run run;               /* of resampler_start() */
	bool launched;                /* its first turn is going on */
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

static void work_group(struct resampler *r, struct group *g, uint64_t turn)
{
	uint_fast64_t before = turn - 1;

	if (!atomic_compare_exchange_strong(&g->turn, &before, turn))
		return;
	g->failed = soxr_process(g->soxr, (soxr_in_t)(r->in_planes + g->first_channel), r->turn_in_frames, &g->took_frames,
			(soxr_out_t)(r->out_planes + g->first_channel), r->turn_out_frames, &g->made_frames) != 0;
	if (atomic_fetch_sub(&r->n_left, 1) == 1) {
		/* Under the lock, so that it cannot come between the caller's look and its wait. */
		pthread_mutex_lock(&r->lock);
		pthread_cond_signal(&r->done);
		pthread_mutex_unlock(&r->lock);
	}
}

/* The groups of this thread; then what is left of the others', from their ends. */
static void work(struct resampler *r, unsigned number, uint64_t turn)
{
	unsigned n_threads = r->n_helpers + 1;
	unsigned first = r->n_groups * number / n_threads, end = r->n_groups * (number + 1) / n_threads;

	for (unsigned i = first; i < end; i++)
		work_group(r, &r->groups[i], turn);
	for (unsigned i = first + r->n_groups; i > end; i--)
		work_group(r, &r->groups[(i - 1) % r->n_groups], turn);
}

static void *helper_main(void *arg)
{
	struct helper *h = arg;
	struct resampler *r = h->owner;
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
		work(r, h->number, seen_turn);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Set the threads to work. */
static void launch(struct resampler *r, size_t n_in, size_t n_out)
{
	r->turn_in_frames = n_in;
	r->turn_out_frames = n_out;
	atomic_store(&r->n_left, r->n_groups);
	pthread_mutex_lock(&r->lock);
	r->turn++;
	pthread_cond_broadcast(&r->start);
	pthread_mutex_unlock(&r->lock);
}

/* Take part in it, and wait for its end. */
static enum err land(struct resampler *r, size_t *n_in, size_t *n_out)
{
	work(r, 0, r->turn);
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
	r->total_in_frames += *n_in;
	r->total_out_frames += *n_out;
	return ERR_OK;
}

static void set_planes(struct resampler *r, const struct place *in, const struct place *out)
{
	for (unsigned c = 0; c < r->options.channels; c++) {
		r->in_planes[c] = (uint8_t *)in->planes[c] + in->at * r->step_bytes;
		r->out_planes[c] = (uint8_t *)out->planes[c] + out->at * r->step_bytes;
	}
}

/* Up to n_in frames into soxr and up to n_out out of it. */
static enum err turn(struct resampler *r, const struct place *in, size_t *n_in, const struct place *out, size_t *n_out)
{
	const void *from = r->in_planes;
	void *to = r->out_planes;

	/* Interleaved, libsoxr 0.1.3 reads 8 bytes a channel from where it writes, for nothing: they must be there. */
	bool aside = !r->planes && *n_out * r->step_bytes < 8 * (size_t)r->options.channels;

	if (r->planes) {
		set_planes(r, in, out);
	} else {
		from = in->samples + in->at * r->step_bytes;
		to = aside ? r->waste_samples : out->samples + out->at * r->step_bytes;
	}
	if (r->n_groups > 1) {
		launch(r, *n_in, *n_out);
		return land(r, n_in, n_out);
	}
	if (soxr_process(r->groups[0].soxr, from, *n_in, n_in, to, *n_out, n_out))
		return ERR_CODEC;
	if (aside)
		memmove(out->samples + out->at * r->step_bytes, r->waste_samples, *n_out * r->step_bytes);
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

/* What a turn did goes into the books.  Returns: whether it was the last: no input is left, or no room, or nothing moves. */
static bool book(struct run *run, size_t n_in, size_t n_out)
{
	bool hungry = n_out < run->n_out - run->to.at;

	run->from.at += n_in;
	run->to.at += n_out;
	if (run->from.at == run->n_in)
		return hungry || run->to.at == run->n_out;
	return !n_in && !n_out;
}

static enum err run_on(struct resampler *r, struct run *run)
{
	for (;;) {
		size_t n_in = run->n_in - run->from.at, n_out = run->n_out - run->to.at;
		enum err e = step(r, run->from, &n_in, &run->to, &n_out);
		if (e || book(run, n_in, n_out))
			return e;
	}
}

static struct run run_of(const struct resampler *r, const void *in, size_t n_in, void *out, size_t n_out)
{
	return (struct run){ .from = place_of(r, (void *)in), .to = place_of(r, out), .n_in = n_in, .n_out = n_out };
}

static void tell(struct resampler *r, const struct run *run, size_t *n_in, size_t *n_out)
{
	r->segment_in_frames += run->from.at;
	r->segment_out_frames += run->to.at;
	*n_in = run->from.at;
	*n_out = run->to.at;
}

enum err resampler_run(struct resampler *r, const void *in, size_t *n_in, void *out, size_t *n_out)
{
	struct run run = run_of(r, in, *n_in, out, *n_out);
	enum err e = run_on(r, &run);

	tell(r, &run, n_in, n_out);
	return e;
}

enum err resampler_start(struct resampler *r, const void *in, size_t n_in, void *out, size_t n_out)
{
	r->run = run_of(r, in, n_in, out, n_out);
	if (r->n_groups == 1 || r->skip_frames)
		return run_on(r, &r->run);
	set_planes(r, &r->run.from, &r->run.to);
	launch(r, n_in, n_out);
	r->launched = true;
	return ERR_OK;
}

enum err resampler_wait(struct resampler *r, size_t *n_in, size_t *n_out)
{
	enum err e = ERR_OK;

	if (r->launched) {
		r->launched = false;
		e = land(r, n_in, n_out);
		if (!e && !book(&r->run, *n_in, *n_out))
			e = run_on(r, &r->run);
	}
	tell(r, &r->run, n_in, n_out);
	return e;
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
static enum err start_helpers(struct resampler *r, unsigned n_helpers, struct err_why *why)
{
	sigset_t all, before;
	enum err e = ERR_OK;

	if (!(r->helpers = calloc(n_helpers, sizeof(*r->helpers))))
		return err_say(why, ERR_NOMEM, "resampling", "out of memory");
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->start, NULL);
	pthread_cond_init(&r->done, NULL);
	r->has_lock = true;
	r->n_helpers = n_helpers;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 0; i < n_helpers; i++) {
		struct helper *h = &r->helpers[i];
		char name[16];
		h->owner = r;
		h->number = i + 1;
		int failed = pthread_create(&h->thread, NULL, helper_main, h);
		if (failed) {
			r->n_helpers = i;
			e = err_say(why, ERR_NOMEM, "resampling", "no thread: %s", strerror(failed));
			break;
		}
		snprintf(name, sizeof(name), "resample-%u", h->number % MAX_THREADS);
		pthread_setname_np(h->thread, name);
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
	if (o->in_hz / RESAMPLER_MAX_RATIO >= o->out_hz || o->out_hz / RESAMPLER_MAX_RATIO >= o->in_hz)
		return err_say(why, ERR_LIMIT, "resampling", "from %u to %u Hz: the ratio is %u or more (less either way)", o->in_hz, o->out_hz,
			RESAMPLER_MAX_RATIO);
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
	if (n_groups > 1 && (e = start_helpers(r, n_threads - 1, why)))
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
	for (unsigned i = 0; i < r->n_helpers; i++)
		pthread_join(r->helpers[i].thread, NULL);
	for (unsigned i = 0; i < r->n_groups; i++)
		soxr_delete(r->groups[i].soxr);
	if (r->has_lock) {
		pthread_cond_destroy(&r->done);
		pthread_cond_destroy(&r->start);
		pthread_mutex_destroy(&r->lock);
	}
	free(r->helpers);
	free(r->groups);
	free(r->planes);
	free(r->silence_samples);
	free(r->waste_samples);
	free(r);
}
