/*
 * One PCM track, measured: amplitude, loudness, silence and continuity together, and against a reference if asked.
 * Made once for a track's format; after that packets go in and values can be read at any time.  Allocates nothing
 * between meter_init() and meter_release(), but for the search of compare's offset.
 */
#ifndef METER_METER_H
#define METER_METER_H

#include "dsp/convert.h"
#include "meter/amplitude.h"
#include "meter/compare.h"
#include "meter/continuity.h"
#include "meter/loudness.h"
#include "meter/plot.h"
#include "meter/silence.h"
#include "wire/packet.h"
#include "wire/track.h"

struct meter_options {
	bool levels_only;          /* neither true peak nor loudness */
	bool dual_mono;            /* a mono track is heard from two loudspeakers */
	bool no_silence;
	bool plot;                 /* keep what a picture is drawn from */
	double silence_factor;     /* of full scale */
	double silence_min_s;
};

/* The defaults: silence is 500 ms at or below -60 dBFS. */
#define METER_OPTIONS { .silence_factor = 1e-3, .silence_min_s = 0.5 }

struct meter {
	struct meter_options options;
	/* what was announced */
	uint16_t id;
	char name[128];
	uint32_t rate_num, rate_den, rate_hz; /* rate_hz to nearest */
	unsigned n_channels;
	char (*channel_names)[16];
	/* at work */
	struct convert to_f32, to_f64;
	unsigned frame_bytes;
	uint8_t layout;
	uint64_t wave_mask;
	float *work;               /* AMPLITUDE_BLOCK_FRAMES, interleaved */
	uint8_t *zeros;            /* as many frames as they come, for packets that only say that they are silent */
	double *exact;             /* the same for compare; NULL without */
	struct amplitude amplitude;
	bool has_loudness;
	struct loudness loudness;
	bool has_silence;
	struct silence silence;
	struct continuity continuity;
	bool has_compare;
	struct compare compare;
	bool has_plot;
	struct plot plot;
	bool ended;
};

/*
 * Measure t, which must be PCM audio.  Where the rate is below LOUDNESS_MIN_RATE_HZ, or the layout is ambisonic, there
 * is no loudness (has_loudness is false).  Returns: ERR_OK, ERR_NOMEM, ERR_ARG if t is not PCM.
 */
enum err meter_init(struct meter *m, const struct track *t, const struct meter_options *options) WEIR_MUSTUSE;
void meter_release(struct meter *m);

/* Does this announcement describe what is being measured, but for names and tags? */
bool meter_fits(const struct meter *m, const struct track *t);

/* Compare with a reference of the same rate and channels, from the start: see compare_init().  Role: io. */
enum err meter_compare(struct meter *m, compare_read_fn *read, void *from) WEIR_MUSTUSE;

/* A DATA packet of the track, whole; a SILENT one may come without its payload.  Returns: ERR_OK; with compare also what reading the reference said. */
enum err meter_data(struct meter *m, const struct packet *p) WEIR_MUSTUSE;

/* A GAP packet of the track: silence to loudness and silence, nothing to the levels. */
enum err meter_gap(struct meter *m, const struct packet *p, unsigned reason) WEIR_MUSTUSE;

/* Nothing more will come. */
enum err meter_end(struct meter *m) WEIR_MUSTUSE;

/* Seconds of a number of frames. */
static inline double meter_seconds(const struct meter *m, uint64_t n_frames)
{
	return units_to_s((int64_t)n_frames, m->rate_num, m->rate_den);
}

/* The highest true peak, sample peak of all channels, in dB; NAN for silence, or where it is not measured. */
double meter_true_peak_dbtp(const struct meter *m);
double meter_sample_peak_dbfs(const struct meter *m);

/* The loudness so far; all NAN without loudness. */
struct loudness_values meter_loudness(const struct meter *m);

#endif
