#include "media/genread.h"

#include "base/bytes.h"
#include "base/units.h"
#include "dsp/convert.h"
#include "media/chanmap.h"
#include "media/source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GEN_SCRATCH_SAMPLES 4096u /* at least one frame of the most channels */
#define GEN_DEFAULT_LEVEL_DB (-20.0)
#define PINK_ROWS 16u

enum gen_kind { GEN_SINE, GEN_WHITE, GEN_PINK, GEN_SWEEP, GEN_IMPULSE, GEN_SILENCE, GEN_IDENT, GEN_COUNT };

struct gen {
	enum gen_kind kind;
	double freq_hz, from_hz, to_hz, factor;
	double time_s;            /* of a sweep */
	uint64_t seed;
	int64_t every_frames;
	uint32_t rate_hz;
	uint16_t channels;
	enum sample format;
	int64_t pos, end_pos;
	double ident_step_hz;
	struct convert convert;   /* from f64 */
	double *scratch;
};

/* ---- the counting generator ---- */

void genread_count_value(enum sample format, uint64_t i, uint8_t *p)
{
	float f;

	switch (format) {
	case SAMPLE_S16:
		put_le16(p, (uint16_t)i);
		break;
	case SAMPLE_S24:
		put_le24(p, (uint32_t)i);
		break;
	case SAMPLE_S32:
		put_le32(p, (uint32_t)i);
		break;
	case SAMPLE_F32:
		f = (float)(i & 0xFFFFFF) * 0x1p-23f - 1.0f;
		memcpy(p, &f, sizeof(f));
		break;
	case SAMPLE_CODED:
	case SAMPLE_S24_32:
	case SAMPLE_F64:
		break;
	}
}

void genread_count_fill(enum sample format, uint16_t channels, int64_t pos, uint8_t *frames, size_t n_frames)
{
	uint64_t i = (uint64_t)pos * channels;
	size_t n = n_frames * channels;

	/* One loop a format, so that the compiler sees straight through each. */
	if (format == SAMPLE_S16) {
		for (size_t k = 0; k < n; k++)
			genread_count_value(SAMPLE_S16, i + k, frames + 2 * k);
	} else if (format == SAMPLE_S24) {
		for (size_t k = 0; k < n; k++)
			genread_count_value(SAMPLE_S24, i + k, frames + 3 * k);
	} else if (format == SAMPLE_S32) {
		for (size_t k = 0; k < n; k++)
			genread_count_value(SAMPLE_S32, i + k, frames + 4 * k);
	} else if (format == SAMPLE_F32) {
		for (size_t k = 0; k < n; k++)
			genread_count_value(SAMPLE_F32, i + k, frames + 4 * k);
	}
}

size_t genread_check_count(enum sample format, uint16_t channels, int64_t pos, const uint8_t *frames, size_t n_frames, int64_t *first_wrong)
{
	uint8_t right[4096];
	unsigned bytes = track_sample_bytes(format);
	size_t frame_bytes = (size_t)bytes * channels, n_wrong = 0;

	if (format != SAMPLE_S16 && format != SAMPLE_S24 && format != SAMPLE_S32 && format != SAMPLE_F32) {
		*first_wrong = pos;
		return n_frames;
	}
	size_t step = sizeof(right) / frame_bytes;
	for (size_t at = 0; at < n_frames; at += step) {
		size_t n = n_frames - at < step ? n_frames - at : step;

		genread_count_fill(format, channels, pos + (int64_t)at, right, n);
		if (!memcmp(right, frames + at * frame_bytes, n * frame_bytes))
			continue;
		for (size_t k = 0; k < n; k++) {
			if (!memcmp(right + k * frame_bytes, frames + (at + k) * frame_bytes, frame_bytes))
				continue;
			if (!n_wrong++)
				*first_wrong = pos + (int64_t)(at + k);
		}
	}
	return n_wrong;
}

/* ---- samples from positions ---- */

/* A well-mixed number from three (the finaliser of SplitMix64, twice). */
static uint64_t mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

/* Evenly spread over −1…1, for a place in a numbered stream of noise. */
static double noise_at(uint64_t seed, uint64_t stream, int64_t n)
{
	uint64_t x = mix(mix(seed * 0x100000001B3u + stream) + (uint64_t)n);

	return (double)(int64_t)(x >> 11) * 0x1p-52 - 1.0;
}

/*
 * Pink by the rows of Voss: row k holds a number for 2^k samples, so it adds noise up to rate/2^(k+1) only; a white row
 * on top.  Scaled to an RMS of 1: each of the rows has a variance of 1/3.
 */
static double pink_at(uint64_t seed, uint64_t channel, int64_t n)
{
	double sum = noise_at(seed, channel * (PINK_ROWS + 1), n);

	for (unsigned k = 0; k < PINK_ROWS; k++)
		sum += noise_at(seed, channel * (PINK_ROWS + 1) + 1 + k, n >> (k + 1));
	return sum * sqrt(3.0 / (PINK_ROWS + 1));
}

static double tone_at(double freq_hz, uint32_t rate_hz, int64_t n)
{
	/* The cycles before n are taken off first, so that the tone stays clean for years. */
	return sin(2.0 * M_PI * fmod((double)n * freq_hz, rate_hz) / rate_hz);
}

static double sweep_at(const struct gen *g, int64_t n)
{
	double k = log(g->to_hz / g->from_hz), t = (double)n / g->rate_hz;
	double cycles = fabs(k) < 1e-9 ? g->from_hz * t : g->from_hz * g->time_s / k * expm1(t / g->time_s * k);

	return sin(2.0 * M_PI * (cycles - floor(cycles)));
}

static double sample_at(const struct gen *g, int64_t n, unsigned channel)
{
	switch (g->kind) {
	case GEN_SINE:
		return g->factor * tone_at(g->freq_hz, g->rate_hz, n);
	case GEN_WHITE:
		return g->factor * sqrt(3.0) * noise_at(g->seed, channel, n);
	case GEN_PINK:
		return g->factor * pink_at(g->seed, channel, n);
	case GEN_SWEEP:
		return g->factor * sweep_at(g, n);
	case GEN_IMPULSE:
		return n % g->every_frames ? 0.0 : g->factor;
	case GEN_IDENT:
		return g->factor * tone_at(200.0 + g->ident_step_hz * channel, g->rate_hz, n);
	case GEN_SILENCE:
	case GEN_COUNT:
		break;
	}
	return 0.0;
}

static bool is_same_in_all_channels(enum gen_kind kind)
{
	return kind == GEN_SINE || kind == GEN_SWEEP || kind == GEN_IMPULSE || kind == GEN_SILENCE;
}

static void fill(struct gen *g, uint8_t *dst, size_t n_frames)
{
	unsigned bytes = track_sample_bytes(g->format);
	size_t step = GEN_SCRATCH_SAMPLES / g->channels;

	for (size_t at = 0; at < n_frames; at += step) {
		size_t n = n_frames - at < step ? n_frames - at : step;
		double *p = g->scratch;

		for (size_t k = 0; k < n; k++) {
			int64_t pos = g->pos + (int64_t)(at + k);
			double first = sample_at(g, pos, 0);

			*p++ = first;
			for (unsigned c = 1; c < g->channels; c++)
				*p++ = is_same_in_all_channels(g->kind) ? first : sample_at(g, pos, c);
		}
		(void)convert_run(&g->convert, dst + at * g->channels * bytes, g->scratch, n * g->channels);
	}
}

static enum err genread_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct gen *g = s->state;

	if (g->pos >= g->end_pos || (s->stop && *s->stop))
		return ERR_END;
	if ((uint64_t)(g->end_pos - g->pos) < max_frames)
		max_frames = (size_t)(g->end_pos - g->pos);
	if (g->kind == GEN_COUNT)
		genread_count_fill(g->format, g->channels, g->pos, dst, max_frames);
	else if (g->kind == GEN_SILENCE)
		memset(dst, 0, max_frames * s->track.frame_bytes);
	else
		fill(g, dst, max_frames);
	b->pos = g->pos;
	b->n_frames = max_frames;
	g->pos += (int64_t)max_frames;
	return ERR_OK;
}

static enum err genread_seek(struct source *s, int64_t pos)
{
	struct gen *g = s->state;

	g->pos = pos;
	return ERR_OK;
}

static void genread_release(struct source *s)
{
	struct gen *g = s->state;

	if (g)
		free(g->scratch);
	free(g);
	s->state = NULL;
}

static const struct source_ops genread_ops = {
	.name = "genread",
	.read = genread_read,
	.seek = genread_seek,
	.release = genread_release,
};

/* ---- parameters ---- */

/* Bits of the kinds a parameter belongs to. */
#define FOR(kind) (1u << (kind))

struct param {
	const char *key;
	unsigned kinds;
	double min, max;
	char unit;               /* 'H' Hz, with k; 'd' a level; 's' a time; 'n' a whole number */
	size_t offset;           /* of a double in struct params */
};

struct params {
	double freq_hz, from_hz, to_hz, level_db, seed, every_s, time_s;
};

#define LEVELLED (FOR(GEN_SINE) | FOR(GEN_WHITE) | FOR(GEN_PINK) | FOR(GEN_SWEEP) | FOR(GEN_IMPULSE) | FOR(GEN_IDENT))

static const struct param params_known[] = {
	{ "freq", FOR(GEN_SINE), 0, TRACK_MAX_RATE_HZ, 'H', offsetof(struct params, freq_hz) },
	{ "from", FOR(GEN_SWEEP), 0.001, TRACK_MAX_RATE_HZ, 'H', offsetof(struct params, from_hz) },
	{ "to", FOR(GEN_SWEEP), 0.001, TRACK_MAX_RATE_HZ, 'H', offsetof(struct params, to_hz) },
	{ "level", LEVELLED, -200, 40, 'd', offsetof(struct params, level_db) },
	{ "seed", FOR(GEN_WHITE) | FOR(GEN_PINK), 0, 4294967295.0, 'n', offsetof(struct params, seed) },
	{ "every", FOR(GEN_IMPULSE), 0, 86400, 's', offsetof(struct params, every_s) },
	{ "time", FOR(GEN_SWEEP), 0.001, 86400, 's', offsetof(struct params, time_s) },
};

/* A number and what stands behind it.  Whatever the locale, a decimal point is a point: no strtod. */
static bool parse_number(const char *text, double *value, const char **rest)
{
	double sign = *text == '-' ? -1 : 1, v = 0, place = 1;
	const char *p = text + (*text == '-' || *text == '+');
	bool digits = false;

	for (; *p >= '0' && *p <= '9'; p++, digits = true)
		v = v * 10 + (*p - '0');
	if (*p == '.') {
		for (p++; *p >= '0' && *p <= '9'; p++, digits = true)
			v += (*p - '0') * (place /= 10);
	}
	*value = sign * v;
	*rest = p;
	return digits;
}

static bool parse_value(const struct param *k, const char *text, double *value)
{
	const char *rest;

	if (!parse_number(text, value, &rest))
		return false;
	switch (k->unit) {
	case 'H':
		if (*rest == 'k') {
			*value *= 1000;
			rest++;
		}
		if (!strcmp(rest, "Hz"))
			rest += 2;
		break;
	case 'd':
		if (!strcmp(rest, "dB"))
			return true;
		/* A bare number is a factor of amplitude. */
		if (*rest || *value < 0)
			return false;
		*value = *value > 0 ? units_factor_to_db(*value) : -200;
		return true;
	case 's':
		if (*value < 0)
			return false;
		if (!strcmp(rest, "ms")) {
			*value /= 1000;
			rest += 2;
		} else if (!strcmp(rest, "s")) {
			rest++;
		} else if (!strcmp(rest, "smp")) {
			*value = -*value; /* frames: told apart by the sign */
			rest += 3;
		}
		break;
	default:
		if (*value != floor(*value))
			return false;
	}
	return !*rest;
}

static enum err parse_param(const char *spec, const char *text, enum gen_kind kind, struct params *p, struct err_why *why)
{
	char key[32];
	const char *eq = strchr(text, '=');

	if (!eq || (size_t)(eq - text) >= sizeof(key))
		return err_say(why, ERR_ARG, spec, "'%.60s' is not %sKEY=VALUE", text, kind == GEN_WHITE || kind == GEN_PINK ? "white, pink or " : "");
	memcpy(key, text, (size_t)(eq - text));
	key[eq - text] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(params_known); i++) {
		const struct param *k = &params_known[i];
		double v;

		if (strcmp(key, k->key) || !(k->kinds & FOR(kind)))
			continue;
		const char *unit = k->unit == 'H' ? " Hz" : k->unit == 'd' ? " dB" : k->unit == 's' ? " s" : "";
		const char *rest;
		if (k->unit == 'd' && parse_number(eq + 1, &v, &rest) && !*rest && v < 0)
			return err_say(why, ERR_ARG, spec, "%s='%.60s' is no factor, which are not negative; is %.60sdB meant?", key, eq + 1, eq + 1);
		if (!parse_value(k, eq + 1, &v) || v > k->max || (v < k->min && k->unit != 's') || (k->unit == 's' && v >= 0 && v < k->min))
			return err_say(why, ERR_ARG, spec, "%s='%.60s' is not from %g to %g%s", key, eq + 1, k->min, k->max, unit);
		memcpy((char *)p + k->offset, &v, sizeof(v));
		return ERR_OK;
	}
	char list[128] = "";
	int n = 0;
	for (size_t i = 0; i < ARRAY_LEN(params_known); i++) {
		if (params_known[i].kinds & FOR(kind))
			n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%s", n ? " " : "", params_known[i].key);
	}
	return err_say(why, ERR_ARG, spec, "'%.30s' is no parameter of this generator (%s)", key, list[0] ? list : "it has none");
}

static enum err parse_spec(const char *spec, enum gen_kind *kind, struct params *p, struct err_why *why)
{
	static const struct {
		const char *word;
		enum gen_kind kind;
	} kinds[] = {
		{ "sine", GEN_SINE }, { "noise", GEN_WHITE }, { "sweep", GEN_SWEEP }, { "impulse", GEN_IMPULSE }, { "silence", GEN_SILENCE },
		{ "ident", GEN_IDENT }, { "count", GEN_COUNT },
	};
	char text[512];
	bool known = false;

	if (snprintf(text, sizeof(text), "%s", spec + 4) >= (int)sizeof(text))
		return err_say(why, ERR_ARG, spec, "its parameters are too long (%zu bytes at most)", sizeof(text) - 1);
	char *params = strchr(text, ':');
	if (params)
		*params++ = '\0';
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!strcmp(text, kinds[i].word)) {
			*kind = kinds[i].kind;
			known = true;
		}
	}
	if (!known)
		return err_say(why, ERR_ARG, spec, "'%.60s' is no generator (sine noise sweep impulse silence ident count)", text);

	/* "gen:noise:pink:seed=3" and "gen:noise:pink,seed=3" are one. */
	char *save = NULL;
	for (char *word = params ? strtok_r(params, ",:", &save) : NULL; word; word = strtok_r(NULL, ",:", &save)) {
		if ((*kind == GEN_WHITE || *kind == GEN_PINK) && (!strcmp(word, "white") || !strcmp(word, "pink"))) {
			*kind = word[0] == 'w' ? GEN_WHITE : GEN_PINK;
			continue;
		}
		enum err e = parse_param(spec, word, *kind, p, why);
		if (e)
			return e;
	}
	return ERR_OK;
}

static enum err pick_format(const char *name, enum sample *format, struct err_why *why)
{
	static const enum sample formats[] = { SAMPLE_S16, SAMPLE_S24, SAMPLE_S32, SAMPLE_F32 };

	*format = SAMPLE_F32;
	if (!name)
		return ERR_OK;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (!strcmp(name, track_sample_name(formats[i]))) {
			*format = formats[i];
			return ERR_OK;
		}
	}
	return err_say(why, ERR_ARG, "-f", "'%.40s' is not a format of a generator (s16 s24 s32 f32)", name);
}

/* Frames of a time parameter: seconds, or −frames. */
static int64_t frames_of(double v, uint32_t rate_hz)
{
	return v < 0 ? (int64_t)-v : llrint(v * rate_hz);
}

enum err genread_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why)
{
	struct params p = { .freq_hz = 1000, .from_hz = 20, .to_hz = 20000, .level_db = NAN, .seed = 1, .every_s = 1, .time_s = 0 };
	struct gen *g = calloc(1, sizeof(*g));
	enum err e = ERR_NOMEM;

	if (!g)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	if ((e = parse_spec(spec, &g->kind, &p, why)) || (e = pick_format(args->format, &g->format, why)))
		goto out;
	g->rate_hz = args->rate_hz ? args->rate_hz : GENREAD_RATE_HZ;
	g->channels = args->channels ? args->channels : GENREAD_CHANNELS;
	if ((e = source_check(s, g->rate_hz, g->channels, why)))
		goto out;
	double half_hz = g->rate_hz / 2.0, highest_hz = g->kind == GEN_SINE ? p.freq_hz : g->kind == GEN_SWEEP ? fmax(p.from_hz, p.to_hz) : 0;
	if (highest_hz > half_hz) {
		e = err_say(why, ERR_ARG, spec, "%g Hz cannot be made at %u Hz (at most %g)", highest_hz, g->rate_hz, half_hz);
		goto out;
	}

	g->freq_hz = p.freq_hz;
	g->from_hz = p.from_hz;
	g->to_hz = p.to_hz;
	g->seed = (uint64_t)p.seed;
	g->factor = units_db_to_factor(isnan(p.level_db) ? g->kind == GEN_IMPULSE ? 0.0 : GEN_DEFAULT_LEVEL_DB : p.level_db);
	g->every_frames = frames_of(p.every_s, g->rate_hz);
	if (g->every_frames < 1)
		g->every_frames = 1;
	g->end_pos = args->duration_frames >= 0 ? args->duration_frames : INT64_MAX;
	if (g->kind == GEN_SWEEP) {
		int64_t n = p.time_s ? frames_of(p.time_s, g->rate_hz) : args->duration_frames > 0 ? args->duration_frames : 10 * (int64_t)g->rate_hz;
		g->time_s = (double)n / g->rate_hz;
		g->end_pos = n < g->end_pos ? n : g->end_pos;
	}
	double room_hz = 0.45 * g->rate_hz - 200.0;
	g->ident_step_hz = room_hz < 100.0 * (g->channels - 1) && room_hz > 0 ? room_hz / (g->channels - 1) : 100.0;

	e = ERR_NOMEM;
	if (posix_memalign((void **)&g->scratch, 64, GEN_SCRATCH_SAMPLES * sizeof(double))) {
		g->scratch = NULL;
		err_say(why, e, s->name, "%s", err_text(e));
		goto out;
	}
	if ((e = convert_init(&g->convert, SAMPLE_F64, g->format, false, 0)))
		goto out;
	source_set_pcm(s, g->rate_hz, g->channels, g->format);
	(void)chanmap_guess(&s->track);
	if (g->kind == GEN_COUNT) {
		/* A row of numbers is not for loudspeakers: no places. */
		s->track.layout = TRACK_LAYOUT_DISCRETE;
		s->track.wave_mask = 0;
	}
	s->n_frames = g->end_pos == INT64_MAX ? -1 : g->end_pos;
	s->ops = &genread_ops;
	s->state = g;
	return ERR_OK;
out:
	free(g->scratch);
	free(g);
	return e;
}
