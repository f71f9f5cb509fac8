#include "media/live.h"

#include "rt/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const struct scheme {
	const char *word, *title;
	const struct live_ops *ops; /* NULL: not in this build */
} schemes[] = {
#ifdef WEIR_HAVE_PIPEWIRE
	{ "pipewire:", "PipeWire", &pipewire_ops },
#else
	{ "pipewire:", "PipeWire", NULL },
#endif
#ifdef WEIR_HAVE_PULSE
	{ "pulse:", "PulseAudio", &pulse_ops },
#else
	{ "pulse:", "PulseAudio", NULL },
#endif
#ifdef WEIR_HAVE_JACK
	{ "jack:", "JACK", &jack_ops },
#else
	{ "jack:", "JACK", NULL },
#endif
#ifdef WEIR_HAVE_ALSA
	{ "alsa:", "ALSA", &alsa_ops },
#else
	{ "alsa:", "ALSA", NULL },
#endif
};

static const struct scheme *scheme_of(const char *spec)
{
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		if (!strncmp(spec, schemes[i].word, strlen(schemes[i].word)))
			return &schemes[i];
	}
	return NULL;
}

bool live_is_device(const char *spec)
{
	return scheme_of(spec) != NULL;
}

enum err live_find(const char *spec, const struct live_ops **ops, const char **name, struct err_why *why)
{
	const struct scheme *s = scheme_of(spec);

	if (!s)
		return err_say(why, ERR_ARG, spec, "is no device: pipewire:, pulse:, jack: or alsa: is");
	if (!s->ops)
		return err_say(why, ERR_DEVICE, spec, "this build has no %s support", s->title);
	*ops = s->ops;
	*name = spec + strlen(s->word);
	return ERR_OK;
}

const struct live_ops *live_at(unsigned i)
{
	for (size_t k = 0; k < ARRAY_LEN(schemes); k++) {
		if (schemes[k].ops && !i--)
			return schemes[k].ops;
	}
	return NULL;
}

const char *live_missing(void)
{
	/* Few enough to be written out, in the order of the table. */
	static const char *const text[] = {
		"", "PipeWire", "PulseAudio", "PipeWire, PulseAudio", "JACK", "PipeWire, JACK", "PulseAudio, JACK", "PipeWire, PulseAudio, JACK",
		"ALSA", "PipeWire, ALSA", "PulseAudio, ALSA", "PipeWire, PulseAudio, ALSA", "JACK, ALSA", "PipeWire, JACK, ALSA",
		"PulseAudio, JACK, ALSA", "PipeWire, PulseAudio, JACK, ALSA",
	};
	unsigned missing = 0;

	for (size_t k = 0; k < ARRAY_LEN(schemes); k++)
		missing |= schemes[k].ops ? 0 : 1u << k;
	return text[missing];
}

enum err live_load(const char *library, const char *package, const struct live_symbol *symbols, size_t n, struct err_why *why)
{
	/* Never closed: threads and exit handlers of these libraries may outlive the last call. */
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return err_say(why, ERR_DEVICE, library, "is needed for this device and not installed (Debian: %s)", package);
	for (size_t i = 0; i < n; i++) {
		/* dlsym() gives an object pointer: copied, not cast. */
		void *symbol = dlsym(handle, symbols[i].name);
		if (!symbol)
			return err_say(why, ERR_DEVICE, library, "has no %s: too old", symbols[i].name);
		memcpy(symbols[i].place, &symbol, sizeof(symbol));
	}
	return ERR_OK;
}

const char *live_say_scheduling(int scheduling, char *out, size_t out_bytes)
{
	char limit[160];

	out[0] = '\0';
	if (scheduling != LIVE_RUNS_AS_OTHERS)
		return out;
	thread_why_not_first(limit, sizeof(limit));
	snprintf(out, out_bytes, "its thread runs without real-time scheduling: %s", limit[0] ? limit : "the sound server does not give it");
	return out;
}

const char *live_say_held(bool held, size_t n_bytes, char *out, size_t out_bytes)
{
	char limit[160];

	out[0] = '\0';
	if (!held)
		snprintf(out, out_bytes, "its ring is not locked into memory: %s", thread_why_not_held(n_bytes, limit, sizeof(limit)));
	return out;
}

void live_begin_deadline(const char *name, bool asks, atomic_int *scheduling)
{
	(void)pthread_setname_np(pthread_self(), name);
	atomic_store_explicit(scheduling, thread_begin_deadline(asks) ? LIVE_RUNS_FIRST : LIVE_RUNS_AS_OTHERS, memory_order_relaxed);
}
