/* mix: PCM tracks to one, or to one a participant: everybody but himself. */
#include "stage/mixer.h"
#include "tool/select.h"
#include "tool/tool.h"

#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_BYTES (64u << 20)

static const struct opt_choice formats[] = {
	{ "s16", SAMPLE_S16 }, { "s24", SAMPLE_S24 }, { "s32", SAMPLE_S32 }, { "f32", SAMPLE_F32 }, { NULL, 0 },
};

enum target { TARGET_NONE, TARGET_LUFS, TARGET_PEAK, TARGET_TRUE_PEAK };

struct mix {
	/* as asked for */
	uint32_t rate_hz;
	int64_t channels;
	int format;
	bool dither, minus;
	double self_db;
	struct opt_list gains, pans, tracks;
	struct opt_optional limiter, live;
	const char *matrix, *normalize, *control, *name;
	uint64_t spool_bytes;
	enum target target;
	double target_db;
	bool measured_cut;       /* the first pass did not see all of an input */

	struct tool tool;
	struct stats stats;
	struct progress progress;
	struct writer out;
	struct mixer mixer;
	struct mixer_counts counts;
	struct err_why why;
};

/* ---- messages ---- */

/* Also from the feeder's thread: so it is a line of its own, and not the tool's that is compared with the last. */
static void say(void *user, const char *thing, const char *text)
{
	struct mix *s = user;
	char name[400], line[800];

	snprintf(line, sizeof(line), "%s: %s", tool_printable(thing, name, sizeof(name)), text);
	tool_clear_line(&s->tool);
	fprintf(stderr, "%s: %s\n", s->tool.name, line);
}

static void note(void *user, const char *thing, const char *text)
{
	struct mix *s = user;
	tool_note(&s->tool, thing, "%s", text);
}

static enum err idle(void *user)
{
	struct mix *s = user;
	return s->out.begun ? writer_flush(&s->out) : ERR_OK;
}

/* ---- options ---- */

static _Noreturn void usage(struct mix *s, const struct err_why *why)
{
	tool_say(&s->tool, ERR_ARG, why);
	exit(TOOL_USAGE);
}

/* "-23" or "-23LUFS", "peak:-1dB", "truepeak:-1dB". */
static void parse_normalize(struct mix *s)
{
	const struct opt lufs = OPT_REAL(0, "", "", &s->target_db, -70, 0, ""), level = OPT_DB(0, "", &s->target_db, -120, 0, "");
	const char *text = s->normalize;
	struct err_why why = { 0 };
	char number[32];
	enum err e;

	if (!strncmp(text, "peak:", 5)) {
		s->target = TARGET_PEAK;
		e = opt_value(&level, "--normalize", text + 5, &why);
	} else if (!strncmp(text, "truepeak:", 9)) {
		s->target = TARGET_TRUE_PEAK;
		e = opt_value(&level, "--normalize", text + 9, &why);
	} else {
		size_t n = strlen(text);
		s->target = TARGET_LUFS;
		if (n > 4 && !strcmp(text + n - 4, "LUFS"))
			n -= 4;
		snprintf(number, sizeof(number), "%.*s", (int)(n < 31 ? n : 31), text);
		e = opt_value(&lufs, "--normalize", number, &why);
	}
	if (e)
		usage(s, &why);
}

static void check_usage(struct mix *s, char *const *names, int n)
{
	struct err_why why = { 0 };
	unsigned n_stdin = 0;

	for (int i = 0; i < n; i++)
		n_stdin += !strcmp(names[i], "-");
	if (n_stdin > 1)
		tool_usage(&s->tool, "<stdin>", "cannot be two inputs");
	if (select_check(&s->tracks, &why))
		usage(s, &why);
	for (unsigned i = 0; i < s->gains.n; i++)
		if (desk_check_option("gain", "-g", s->gains.value[i], &why))
			usage(s, &why);
	for (unsigned i = 0; i < s->pans.n; i++)
		if (desk_check_option("pan", "--pan", s->pans.value[i], &why))
			usage(s, &why);
	if (s->normalize)
		parse_normalize(s);
	if (s->matrix && s->pans.n)
		tool_usage(&s->tool, "--matrix", "says where every channel goes: --pan has nothing to add");
	if (s->normalize && (s->minus || s->live.is_set || s->control))
		tool_usage(&s->tool, "--normalize", "is for one mix of files: not with %s", s->minus ? "--minus" : s->control ? "--control" : "--live");
	if (!s->minus && s->self_db != -INFINITY)
		tool_usage(&s->tool, "--self", "is for --minus");
	if (s->minus && s->name)
		tool_usage(&s->tool, "-n", "with --minus each mix has the name of its participant");
}

static struct mixer_options options_of(struct mix *s)
{
	return (struct mixer_options){
		.in = {
			.rate_hz = s->rate_hz, .select = &s->tracks, .spool_bytes = s->spool_bytes, .memory_bytes = MEMORY_BYTES,
			.twice = s->target != TARGET_NONE, .stop = &tool_stop, .say = say, .note = note, .idle = idle, .user = s,
		},
		.channels = (unsigned)s->channels, .format = (enum sample)s->format, .dither = s->dither,
		.limits = s->limiter.is_set, .ceiling_dbtp = s->limiter.value,
		.minus = s->minus, .self = units_db_to_factor(s->self_db),
		.is_live = s->live.is_set, .margin_s = s->live.value,
		.name = s->name, .matrix_path = s->matrix, .control_path = s->control, .gains = &s->gains, .pans = &s->pans,
		.counts = &s->counts,
	};
}

/* ---- work ---- */

/* The first pass of two.  *master becomes the gain that brings the mix to the target; 1 for silence. */
static enum err measure(struct mix *s, char *const *names, unsigned n, double *master)
{
	struct mixer_options o = options_of(s);
	struct mixer_counts unseen = { 0 };
	const off_t stdin_at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct mixlevels l;
	double is_db;
	enum err e;

	o.in.say = NULL; /* the second pass says it */
	o.in.note = NULL;
	o.counts = &unseen;
	s->mixer.progress = &s->progress;
	if ((e = mixer_open(&s->mixer, names, n, &o, &s->tool, &s->why)))
		goto out;
	e = mixer_measure(&s->mixer, &l);
	if (e && e != ERR_CUT) {
		s->why = s->mixer.why;
		goto out;
	}
	s->measured_cut = e == ERR_CUT;
	e = ERR_OK;
	is_db = s->target == TARGET_LUFS ? l.integrated_lufs : units_factor_to_db(s->target == TARGET_PEAK ? l.sample_peak : l.true_peak);
	if (s->target == TARGET_LUFS && !l.has_loudness) {
		e = err_say(&s->why, ERR_LIMIT, "--normalize", "a mix at %u Hz has no loudness (%u Hz at least)", s->mixer.in.rate_hz, LOUDNESS_MIN_RATE_HZ);
		goto out;
	}
	*master = isfinite(is_db) ? units_db_to_factor(s->target_db - is_db) : 1;
	if (isfinite(is_db))
		tool_note(&s->tool, "normalize", "the mix has %.2f %s: %+.2f dB", is_db,
			s->target == TARGET_LUFS ? "LUFS" : s->target == TARGET_PEAK ? "dBFS" : "dBTP", s->target_db - is_db);
	else if (!s->tool.quiet)
		tool_warn(&s->tool, "normalize", "the mix is silent, or too short to have a loudness: left as it is");
out:
	mixer_release(&s->mixer);
	/* The second pass begins where the first did; by name files are opened again. */
	if (stdin_at >= 0)
		(void)!lseek(STDIN_FILENO, stdin_at, SEEK_SET);
	return e;
}

static enum packet_end_reason end_reason(enum err e)
{
	if (e == ERR_CUT)
		return PACKET_END_TRUNCATED;
	return e ? PACKET_END_ERROR : tool_stop ? PACKET_END_INTERRUPTED : PACKET_END_NORMAL;
}

/* Somebody who was named is in no input? */
static enum err check_missing(struct mix *s, enum err e)
{
	char missing[128];

	if ((e == ERR_OK || e == ERR_CUT) && !tool_stop && select_missing(&s->mixer.in.hits, &s->tracks, missing))
		return err_say(&s->why, ERR_FORMAT, missing, "no such track in the input");
	return e;
}

static enum err run(struct mix *s, char *const *names, unsigned n)
{
	const struct mixer_options o = options_of(s);
	double master = 1;
	enum err e;

	if ((e = writer_open(&s->out, STDOUT_FILENO, "<stdout>", "mix", &s->why)))
		return e;
	if (s->target && (e = measure(s, names, n, &master)))
		return e;
	s->mixer.stats = &s->stats;
	s->mixer.progress = &s->progress;
	if ((e = mixer_open(&s->mixer, names, n, &o, &s->tool, &s->why)))
		return e;
	e = mixer_run(&s->mixer, &s->out, master);
	if (e && e != ERR_CUT)
		s->why = s->mixer.why;
	if (e == ERR_OK && s->measured_cut)
		e = err_say(&s->why, ERR_CUT, "--normalize", "an input was not read whole the first time: the level is that of the rest");
	/* Whoever reads on must not take a failure for a good end. */
	if (e != ERR_GONE && s->out.begun) {
		enum err ended = writer_end(&s->out, end_reason(e));
		if (ended && (e == ERR_OK || e == ERR_CUT)) {
			s->why = s->out.why;
			e = ended;
		}
	}
	e = check_missing(s, e);
	uint64_t clipped = atomic_load(&s->counts.clipped_samples), bad = atomic_load(&s->counts.nonfinite_samples);
	if (clipped && !s->tool.quiet)
		tool_warn(&s->tool, "", "%" PRIu64 " samples clipped: lower them with -g, or use --limiter or -f f32", clipped);
	if (bad && !s->tool.quiet)
		tool_warn(&s->tool, "", "%" PRIu64 " samples were NaN or infinite: taken as 0", bad);
	return e;
}

int main(int argc, char **argv)
{
	static struct mix s = {
		.format = SAMPLE_F32, .dither = true, .self_db = -INFINITY, .spool_bytes = (uint64_t)4 << 30,
		.limiter.value = -1, .live.value = 0.02,
	};
	char dash[] = "-", *standard_input[] = { dash, dash, NULL };
	enum err e;

	const struct opt options[] = {
		OPT_GROUP("What goes in, and how:"),
		OPT_LIST('t', "track", "TRACK", &s.tracks, "mix only tracks of this number in their input, name or kind"),
		OPT_LIST('g', "gain", "SPEC", &s.gains, "LEVEL for all, or TRACK=LEVEL; -6dB or a factor"),
		OPT_LIST(0, "pan", "SPEC", &s.pans, "TRACK=PLACE, from -1 (left) to 1 (right)"),
		OPT_STRING(0, "matrix", "FILE", &s.matrix, "a row an output channel, a gain an input channel"),
		OPT_STRING(0, "control", "PATH", &s.control, "take commands while it runs: gain, pan, mute, unmute, solo, unsolo, list"),
		OPT_SIZE(0, "spool", &s.spool_bytes, 0, 1e12, "how much may wait in a temporary file for a slower input (4G)"),
		OPT_GROUP("What comes out:"),
		OPT_RATE('r', "rate", &s.rate_hz, OPT_LEAST_RATE_HZ, TRACK_MAX_RATE_HZ, "at this rate (the first track's)"),
		OPT_INT('c', "channels", "CHANNELS", &s.channels, 1, TRACK_MAX_CHANNELS, "so many channels (the widest track's)"),
		OPT_CHOICE('f', "format", "FORMAT", &s.format, formats, "sample format (f32)"),
		OPT_CLEAR(0, "no-dither", &s.dither, "round without dither where -f drops bits"),
		OPT_STRING('n', "name", "NAME", &s.name, "name of the track (mix)"),
		OPT_OPTIONAL(0, "limiter", "DBTP", &s.limiter, -60, 0, -1, "hold true peaks below this (-1)"),
		OPT_STRING(0, "normalize", "TARGET", &s.normalize, "to -23LUFS, peak:-1dB or truepeak:-1dB; reads files twice"),
		OPT_GROUP("Conferences:"),
		OPT_FLAG(0, "minus", &s.minus, "a mix for each track: all the others"),
		OPT_DB(0, "self", &s.self_db, -INFINITY, 0, "with --minus: oneself, too, at this level"),
		OPT_OPTIONAL(0, "live", "SECONDS", &s.live, 0, 10, 0.02, "do not wait for an input that is later than this (0.02)"),
		OPT_END
	};
	tool_begin(&s.tool, "mix", "[options] [INPUT...]", "PCM tracks to one, or to one a participant.", options, &argc, &argv);
	if (argc == 1) {
		argc = 2;
		argv = standard_input;
	}
	check_usage(&s, argv + 1, argc - 1);

	stats_tick(&s.stats, &s.counts.tick);
	stats_key(&s.stats, "clipped_samples", &s.counts.clipped_samples);
	stats_key(&s.stats, "nonfinite_samples", &s.counts.nonfinite_samples);
	stats_key(&s.stats, "limited_frames", &s.counts.limited_frames);
	stats_key(&s.stats, "late_frames", &s.counts.late_frames);
	stats_key(&s.stats, "spooled_bytes", &s.counts.spooled_bytes);
	if ((e = stats_begin(&s.stats, &s.tool, &s.why)))
		goto out;
	progress_begin(&s.progress, &s.tool);
	e = run(&s, argv + 1, (unsigned)argc - 1);
out:
	progress_end(&s.progress);
	stats_end(&s.stats);
	mixer_release(&s.mixer);
	writer_release(&s.out);
	return tool_end(&s.tool, e, &s.why);
}
