/*
 * ALSA: any PCM of the configuration, "default" without a name.  A thread of its own reads or writes a period at a time;
 * an overrun is a hole as long as the device's clock says.
 */
#include "base/role.h"
#include "base/units.h"
#include "media/livesink.h"
#include "media/livesource.h"

#include <alsa/asoundlib.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MS 10
#define N_PERIODS 4
#define WAIT_MS 100 /* then the stop flag of the thread is looked at */

#define FUNCTIONS(X) \
	X(pcm_open) X(pcm_close) X(pcm_hw_params_malloc) X(pcm_hw_params_free) X(pcm_hw_params_any) X(pcm_hw_params_set_access) \
	X(pcm_hw_params_set_format) X(pcm_hw_params_test_format) X(pcm_hw_params_set_channels_near) X(pcm_hw_params_set_rate_near) \
	X(pcm_hw_params_set_period_size_near) X(pcm_hw_params_set_buffer_size_near) X(pcm_hw_params) X(pcm_prepare) X(pcm_start) X(pcm_drop) \
	X(pcm_drain) X(pcm_wait) X(pcm_readi) X(pcm_writei) X(pcm_recover) X(pcm_delay) X(pcm_avail_update) X(pcm_state) X(strerror) \
	X(device_name_hint) X(device_name_get_hint) X(device_name_free_hint) X(pcm_nonblock) X(lib_error_set_handler)

struct library {
#define MEMBER(name) __typeof__(snd_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

struct alsa {
	struct library lib;
	snd_pcm_t *pcm;
	enum live_way way;
	struct live_format format;
	uint32_t frame_bytes;
	uint8_t *period;          /* room for one */
	struct livesource *to;
	struct livesink *from;
	pthread_t thread;
	bool running;
	atomic_bool quit, drained;
};

static const struct {
	snd_pcm_format_t theirs;
	enum sample ours;
} formats[] = {
	{ SND_PCM_FORMAT_FLOAT_LE, SAMPLE_F32 }, { SND_PCM_FORMAT_S32_LE, SAMPLE_S32 }, { SND_PCM_FORMAT_S24_3LE, SAMPLE_S24 }, { SND_PCM_FORMAT_S16_LE, SAMPLE_S16 },
};

/* The library prints what it thinks of a PCM that does not open; the tool says it in its own line. */
static void say_nothing(const char *file, int line, const char *function, int error, const char *fmt, ...)
{
	(void)file;
	(void)line;
	(void)function;
	(void)error;
	(void)fmt;
}

static enum err load(struct library *lib, struct err_why *why)
{
#define SYMBOL(n) { "snd_" #n, &lib->n },
	const struct live_symbol symbols[] = { FUNCTIONS(SYMBOL) };
#undef SYMBOL
	enum err e = live_load("libasound.so.2", "libasound2", symbols, ARRAY_LEN(symbols), why);

	if (!e)
		lib->lib_error_set_handler(say_nothing);
	return e;
}

/* ---- the thread ---- */

/* The device has stopped and is made ready again.  Returns: false if it is gone. */
static bool recover(struct alsa *a, int error)
{
	if (error == -EAGAIN || error == -EINTR)
		return true;
	return error != -ENODEV && !a->lib.pcm_recover(a->pcm, error, 1);
}

static void capture_loop(struct alsa *a)
{
	int64_t expected_ns = 0; /* when the next frame is captured, by what came so far */

	while (!atomic_load_explicit(&a->quit, memory_order_relaxed)) {
		int ready = a->lib.pcm_wait(a->pcm, WAIT_MS);
		snd_pcm_sframes_t delay = 0, n = ready < 0 ? ready : ready == 0 ? -EAGAIN : a->lib.pcm_readi(a->pcm, a->period, a->format.block_frames);
		int64_t now_ns = clock_now_ns();

		if (n > 0) {
			/* What is left in the device came after what was read. */
			if (a->lib.pcm_delay(a->pcm, &delay) || delay < 0)
				delay = 0;
			int64_t end_ns = now_ns - delay * UNITS_NS_PER_S / a->format.rate_hz;
			struct tick *t = atomic_load_explicit(&a->to->tick, memory_order_relaxed);
			tick_begin_at(t, end_ns, n * UNITS_NS_PER_S / a->format.rate_hz);
			livesource_push(a->to, a->period, (uint32_t)n, end_ns - n * UNITS_NS_PER_S / a->format.rate_hz);
			tick_end(t);
			expected_ns = end_ns;
		} else if (n == -EPIPE || n == -ESTRPIPE) {
			if (!recover(a, (int)n))
				break;
			(void)a->lib.pcm_start(a->pcm);
			now_ns = clock_now_ns();
			if (expected_ns && now_ns > expected_ns)
				livesource_lose(a->to, (uint64_t)units_from_ns(now_ns - expected_ns, a->format.rate_hz, 1));
		} else if (n < 0 && !recover(a, (int)n)) {
			break;
		}
	}
	if (!atomic_load(&a->quit))
		livesource_gone(a->to, "the device went away");
}

static void play_loop(struct alsa *a)
{
	while (!atomic_load_explicit(&a->quit, memory_order_relaxed)) {
		uint32_t n = livesink_pull(a->from, a->period, a->format.block_frames), done = 0;
		struct tick *t = atomic_load_explicit(&a->from->tick, memory_order_relaxed);

		while (done < n && !atomic_load_explicit(&a->quit, memory_order_relaxed)) {
			int ready = a->lib.pcm_wait(a->pcm, WAIT_MS);
			if (ready > 0 && !done)
				tick_begin(t, n * UNITS_NS_PER_S / a->format.rate_hz);
			snd_pcm_sframes_t k = ready < 0 ? ready : a->lib.pcm_writei(a->pcm, a->period + (size_t)done * a->frame_bytes, n - done);

			if (k > 0)
				done += (uint32_t)k;
			else if (k < 0 && !recover(a, (int)k)) {
				livesink_gone(a->from, "the device went away");
				return;
			}
		}
		tick_end(t);
		if (n < a->format.block_frames)
			break;
	}
	if (!atomic_load(&a->quit)) {
		(void)a->lib.pcm_nonblock(a->pcm, 0);
		(void)a->lib.pcm_drain(a->pcm);
	}
	atomic_store(&a->drained, true);
	wake_post(&a->from->wake);
}

static void *loop(void *user)
{
	struct alsa *a = user;

	live_begin_deadline("alsa", true, a->to ? &a->to->scheduling : &a->from->scheduling);
	if (a->to)
		capture_loop(a);
	else
		play_loop(a);
	return NULL;
}

/* ---- the adapter ---- */

static void alsa_close(void *state)
{
	struct alsa *a = state;

	atomic_store(&a->quit, true);
	if (a->running)
		pthread_join(a->thread, NULL);
	if (a->pcm)
		a->lib.pcm_close(a->pcm);
	free(a->period);
	free(a);
}

static enum err say(const struct alsa *a, int error, const char *what, struct err_why *why)
{
	return err_say(why, ERR_DEVICE, a->format.device, "%s: %s", what, a->lib.strerror(error));
}

/* The format that was asked for, or the first it has. */
static enum err choose_format(struct alsa *a, snd_pcm_hw_params_t *hw, enum sample asked, struct err_why *why)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].ours == asked && !a->lib.pcm_hw_params_test_format(a->pcm, hw, formats[i].theirs))
			break;
	}
	if (i == ARRAY_LEN(formats)) {
		for (i = 0; i < ARRAY_LEN(formats) && a->lib.pcm_hw_params_test_format(a->pcm, hw, formats[i].theirs); i++)
			;
	}
	if (i == ARRAY_LEN(formats) || a->lib.pcm_hw_params_set_format(a->pcm, hw, formats[i].theirs))
		return err_say(why, ERR_DEVICE, a->format.device, "has none of the formats f32, s32, s24, s16");
	a->format.sample = formats[i].ours;
	return ERR_OK;
}

static enum err set_up(struct alsa *a, const struct live_args *args, struct err_why *why)
{
	unsigned rate = args->rate_hz ? args->rate_hz : 48000, channels = args->channels ? args->channels : 2;
	snd_pcm_hw_params_t *hw = NULL;
	enum err e = ERR_OK;
	int error;

	if (a->lib.pcm_hw_params_malloc(&hw))
		return err_say(why, ERR_NOMEM, a->format.device, "%s", err_text(ERR_NOMEM));
	if ((error = a->lib.pcm_hw_params_any(a->pcm, hw)) < 0 || (error = a->lib.pcm_hw_params_set_access(a->pcm, hw, SND_PCM_ACCESS_RW_INTERLEAVED)) < 0) {
		e = say(a, error, "cannot be used", why);
		goto out;
	}
	if ((e = choose_format(a, hw, args->sample, why)))
		goto out;
	if ((error = a->lib.pcm_hw_params_set_channels_near(a->pcm, hw, &channels)) < 0 || (error = a->lib.pcm_hw_params_set_rate_near(a->pcm, hw, &rate, NULL)) < 0) {
		e = say(a, error, "has no such channels or rate", why);
		goto out;
	}
	if (a->way == LIVE_PLAY && (channels != args->channels || rate != args->rate_hz)) {
		e = err_say(why, ERR_DEVICE, a->format.device, "has %u channels at %u Hz and the stream %u at %u; put `weir resample` or `weir mix` in front", channels, rate,
			args->channels, args->rate_hz);
		goto out;
	}
	snd_pcm_uframes_t period = args->block_frames ? args->block_frames : rate * PERIOD_MS / 1000, buffer;
	if (a->way == LIVE_PLAY)
		period = (snd_pcm_uframes_t)units_from_ns(args->latency_ns, rate, 1) / N_PERIODS;
	if (period < 16)
		period = 16;
	(void)a->lib.pcm_hw_params_set_period_size_near(a->pcm, hw, &period, NULL);
	buffer = period * (a->way == LIVE_PLAY ? N_PERIODS : 4 * N_PERIODS);
	(void)a->lib.pcm_hw_params_set_buffer_size_near(a->pcm, hw, &buffer);
	if ((error = a->lib.pcm_hw_params(a->pcm, hw)) < 0) {
		e = say(a, error, "does not take these settings", why);
		goto out;
	}
	a->format.rate_hz = rate;
	a->format.channels = (uint16_t)channels;
	a->format.block_frames = (uint32_t)period;
	a->format.wave_mask = channels <= 2 ? track_usual_mask(channels) : 0;
	a->frame_bytes = channels * track_sample_bytes(a->format.sample);
	if (posix_memalign((void **)&a->period, 64, (size_t)period * a->frame_bytes)) {
		a->period = NULL;
		e = err_say(why, ERR_NOMEM, a->format.device, "%s", err_text(ERR_NOMEM));
	}
out:
	a->lib.pcm_hw_params_free(hw);
	return e;
}

static enum err alsa_open(void **state, enum live_way way, const struct live_args *args, struct live_format *format, struct err_why *why)
{
	struct alsa *a = calloc(1, sizeof(*a));
	enum err e;
	int error;

	if (!a)
		return err_say(why, ERR_NOMEM, "alsa", "%s", err_text(ERR_NOMEM));
	a->way = way;
	snprintf(a->format.device, sizeof(a->format.device), "alsa%s%.240s", args->name[0] ? ":" : "", args->name);
	if ((e = load(&a->lib, why)))
		goto out;
	error = a->lib.pcm_open(&a->pcm, args->name[0] ? args->name : "default", way == LIVE_CAPTURE ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK,
		SND_PCM_NONBLOCK);
	if (error < 0) {
		a->pcm = NULL;
		e = say(a, error, "cannot be opened", why);
		goto out;
	}
	e = set_up(a, args, why);
	*format = a->format;
out:
	if (e)
		alsa_close(a);
	else
		*state = a;
	return e;
}

static enum err start(struct alsa *a, struct err_why *why)
{
	int error = a->lib.pcm_prepare(a->pcm);

	if (error >= 0 && a->to)
		error = a->lib.pcm_start(a->pcm);
	if (error < 0)
		return say(a, error, "does not start", why);
	if ((error = pthread_create(&a->thread, NULL, loop, a)))
		return err_say(why, ERR_DEVICE, a->format.device, "no thread: %s", strerror(error));
	a->running = true;
	return ERR_OK;
}

static enum err alsa_record(void *state, struct livesource *to, struct err_why *why)
{
	struct alsa *a = state;

	a->to = to;
	return start(a, why);
}

static enum err alsa_play(void *state, struct livesink *from, struct err_why *why)
{
	struct alsa *a = state;

	a->from = from;
	return start(a, why);
}

static void alsa_drain(void *state)
{
	struct alsa *a = state;
	int64_t limit_ns = clock_now_ns() + LIVE_LIMIT_NS;

	while (!atomic_load(&a->drained) && clock_now_ns() < limit_ns)
		wake_wait(&a->from->wake, UNITS_NS_PER_S / 10);
}

static enum err alsa_list(live_row_fn *row, void *user, struct err_why *why)
{
	struct library lib;
	void **hints = NULL;
	enum err e = load(&lib, why);

	if (e)
		return e;
	if (lib.device_name_hint(-1, "pcm", &hints) < 0)
		return err_say(why, ERR_DEVICE, "alsa", "tells no devices");
	for (void **h = hints; *h; h++) {
		char *name = lib.device_name_get_hint(*h, "NAME"), *text = lib.device_name_get_hint(*h, "DESC"), *way = lib.device_name_get_hint(*h, "IOID");
		struct live_row r = { .captures = !way || !strcmp(way, "Input"), .plays = !way || !strcmp(way, "Output") };

		snprintf(r.name, sizeof(r.name), "alsa:%s", name ? name : "");
		snprintf(r.text, sizeof(r.text), "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
		r.is_default = name && !strcmp(name, "default");
		if (name && strcmp(name, "null"))
			row(user, &r);
		free(name);
		free(text);
		free(way);
	}
	lib.device_name_free_hint(hints);
	return ERR_OK;
}

const struct live_ops alsa_ops = {
	.scheme = "alsa",
	.title = "ALSA",
	.live_ns = UNITS_NS_PER_S / 50, /* the device holds as much again, in four periods */
	.open = alsa_open,
	.record = alsa_record,
	.play = alsa_play,
	.drain = alsa_drain,
	.close = alsa_close,
	.list = alsa_list,
};
