/*
 * Sound devices: what every adapter (jack, pulse, pipewire, alsa) can do, and how one is found by its word.
 *
 * The libraries are loaded when a device is named, never linked: a tool that uses no device pays nothing for them.  An
 * adapter moves samples between its server and a livesource or livesink and knows nothing of tracks or packets.
 */
#ifndef MEDIA_LIVE_H
#define MEDIA_LIVE_H

#include "base/err.h"
#include "base/units.h"
#include "wire/track.h"

#include <signal.h>
#include <stdatomic.h>

struct livesource;
struct livesink;

#define LIVE_LIMIT_NS (5 * UNITS_NS_PER_S) /* a server that has not answered by then does not answer */

enum live_way { LIVE_CAPTURE, LIVE_PLAY };

/* What is asked of a device.  Capture: 0 is what the device has.  Play: the format of what will be played. */
struct live_args {
	const char *name;         /* behind the colon; "" the default device */
	const char *client;       /* the name the server shows: "weir-capture" */
	uint32_t rate_hz;
	uint16_t channels;
	enum sample sample;       /* SAMPLE_CODED: the device's own */
	uint64_t wave_mask;       /* play: where the channels belong, 0 nowhere */
	uint32_t block_frames;    /* 0: the adapter's choice */
	int64_t latency_ns;       /* play: how much the server should hold */
	const volatile sig_atomic_t *stop;
};

/* What the device gives or takes. */
struct live_format {
	uint32_t rate_hz;
	uint16_t channels;
	enum sample sample;
	uint64_t wave_mask;       /* 0: channels without places */
	uint32_t block_frames;    /* what a callback usually brings */
	char device[256];         /* for messages: "pulse:monitor" */
	const char *clock;        /* all devices of one such word run by one clock; NULL: by its own */
	char note[256];           /* worth saying with -v; "" none */
};

/* A line of the list of devices. */
struct live_row {
	char name[320];           /* as source_open() takes it */
	char text[256];           /* what people call it */
	bool captures, plays, is_default;
	uint32_t rate_hz;         /* 0 unknown */
	uint16_t channels;        /* 0 unknown */
};
typedef void live_row_fn(void *user, const struct live_row *row);

struct live_ops {
	const char *scheme;       /* "pulse" */
	const char *title;        /* "PulseAudio" */
	int64_t live_ns;          /* play: what it keeps of a live stream, if nothing is asked, besides what comes at once */
	/* Connect and learn the format; nothing flows yet.  Returns: ERR_DEVICE, ERR_ARG, ERR_NOMEM with *why.  Role: io. */
	enum err (*open)(void **state, enum live_way way, const struct live_args *args, struct live_format *format, struct err_why *why);
	/* Samples begin to flow.  to and from stay until close().  Role: io. */
	enum err (*record)(void *state, struct livesource *to, struct err_why *why);
	enum err (*play)(void *state, struct livesink *from, struct err_why *why);
	/* Everything was handed to the server: wait until it is heard.  Role: io. */
	void (*drain)(void *state);
	/* No callback comes after that. */
	void (*close)(void *state);
	enum err (*list)(live_row_fn *row, void *user, struct err_why *why);
};

/* Is it the name of a device: "pulse:…", "pipewire:…", "jack:…", "alsa:…"? */
bool live_is_device(const char *spec);
/*
 * The adapter for a device, and the name behind the colon.
 * Returns: ERR_OK; ERR_DEVICE where this build has no such support, with *why.
 */
enum err live_find(const char *spec, const struct live_ops **ops, const char **name, struct err_why *why) WEIR_MUSTUSE;
/* Adapter i of this build, or NULL behind the last.  In the order in which a default is looked for. */
const struct live_ops *live_at(unsigned i);
/* The words of those it does not have, for people: "JACK, ALSA"; "" if it has all. */
const char *live_missing(void);

/* How the thread of the callbacks is scheduled; LIVE_RUNS_UNKNOWN until it has begun. */
enum live_scheduling { LIVE_RUNS_UNKNOWN, LIVE_RUNS_FIRST, LIVE_RUNS_AS_OTHERS };
/* What is worth saying of it with -v: "" when it runs first or is not known yet. */
const char *live_say_scheduling(int scheduling, char *out, size_t out_bytes);
/* What is worth saying of a ring that should be locked into memory: "" when it is. */
const char *live_say_held(bool held, size_t n_bytes, char *out, size_t out_bytes);

/* ---- for adapters ---- */

/*
 * The calling thread is that of the callbacks: its name, the deadline role, a stack that is there; asks: real-time scheduling,
 * too, where the server's library does not see to that.
 */
void live_begin_deadline(const char *name, bool asks, atomic_int *scheduling);

/* Functions of a library that is loaded: one name after the other to its place in a table of pointers. */
struct live_symbol {
	const char *name;
	void *place;              /* of a function pointer */
};
/* Load a library, for good.  Returns: ERR_OK; ERR_DEVICE: not installed, or too old. */
enum err live_load(const char *library, const char *package, const struct live_symbol *symbols, size_t n, struct err_why *why) WEIR_MUSTUSE;

#ifdef WEIR_HAVE_JACK
extern const struct live_ops jack_ops;
#endif
#ifdef WEIR_HAVE_PULSE
extern const struct live_ops pulse_ops;
#endif
#ifdef WEIR_HAVE_PIPEWIRE
extern const struct live_ops pipewire_ops;
#endif
#ifdef WEIR_HAVE_ALSA
extern const struct live_ops alsa_ops;
#endif

#endif
