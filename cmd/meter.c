/* meter: what every PCM track reaches and what it lacks, for people and for scripts. */
#include "media/sinkfile.h"
#include "meter/report.h"
#include "stage/livebars.h"
#include "stage/meterset.h"
#include "stage/plots.h"
#include "tool/pump.h"
#include "tool/tool.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_LIMITS ARRAY_LEN(((struct opt_list *)0)->value)

struct stage {
	bool json, through, force;
	const char *report_path, *plot_path, *silence;
	struct opt_list fail_above;
	struct values_limit limits[MAX_LIMITS];
	struct meterset_options measure;
	struct tool tool;
	struct pump pump;
	struct meterset set;      /* of the input at work */
	struct livebars bars;
	FILE *out;                /* where reports go; NULL: to file */
	struct sinkfile file;
	bool names_inputs;        /* there are several: the text says which one it is about */
	struct report report;
	struct plots plots;
	struct err_why broken;    /* the last limit that was */
	unsigned n_finished;      /* inputs that were read to their end and reported */
	bool failed;              /* an input could not be read, which was said */
	bool output_failed;       /* a report, a picture or the stream could not be written: no use to go on */
};

/* ---- options ---- */

static _Noreturn void usage(struct stage *s, const struct err_why *why)
{
	tool_say(&s->tool, ERR_ARG, why);
	exit(TOOL_USAGE);
}

/* "-60dB:500ms", "-60dB", "off". */
static void parse_silence(struct stage *s, const char *text)
{
	double db = 0;
	struct opt_time time = { 0 };
	struct err_why why = { 0 };
	const struct opt level = OPT_DB(0, "silence", &db, -200, 0, ""), least = OPT_TIME(0, "silence", "TIME", &time, 1e-9, 86400, "");

	s->measure.measure.no_silence = !strcmp(text, "off");
	if (s->measure.measure.no_silence)
		return;
	if (opt_level_time(&level, &least, "--silence", text, &why))
		usage(s, &why);
	if (time.is_frames)
		tool_usage(&s->tool, "--silence", "'%s': a time is needed, not frames (LEVEL:TIME, as -60dB:500ms)", text);
	s->measure.measure.silence_factor = units_db_to_factor(db);
	if (time.is_set)
		s->measure.measure.silence_min_s = units_to_s(time.value, UNITS_NS_PER_S, 1);
}

/* What these options do not measure would never break a limit. */
static void check_limit(struct stage *s, const struct values_limit *l, const char *spec)
{
	if (values_is_compared(l->key) && !s->measure.compare_path)
		tool_usage(&s->tool, "--fail-above", "'%s': %s is only measured with --compare", spec, l->key->name);
	if (values_is_costly(l->key) && s->measure.measure.levels_only)
		tool_usage(&s->tool, "--fail-above", "'%s': %s is not measured with --levels-only", spec, l->key->name);
}

/* Pictures are PNG, whatever a name promises. */
static void check_plot_name(struct stage *s)
{
	const char *slash = strrchr(s->plot_path, '/'), *name = slash ? slash + 1 : s->plot_path, *dot = strrchr(name, '.');

	if (!dot || dot == name || !dot[1] || !strcasecmp(dot, ".png"))
		return;
	for (const char *c = dot + 1; *c; c++)
		if (!isalnum((unsigned char)*c))
			return; /* no ending, but a piece of a name */
	tool_usage(&s->tool, "--plot", "'%s': a picture is PNG: name it %.*s.png", s->plot_path, (int)(dot - s->plot_path), s->plot_path);
}

static void check_usage(struct stage *s, int n_inputs)
{
	struct err_why why = { 0 };

	if (s->force && !s->plot_path && !s->report_path)
		tool_usage(&s->tool, "--force", "nothing is overwritten without --report or --plot");
	if (s->silence)
		parse_silence(s, s->silence);
	for (unsigned i = 0; i < s->fail_above.n; i++)
		if (values_limit_parse(&s->limits[i], s->fail_above.value[i], &why))
			usage(s, &why);
		else
			check_limit(s, &s->limits[i], s->fail_above.value[i]);
	if (select_check(&s->measure.tracks, &why))
		usage(s, &why);
	if (s->through && n_inputs > 1)
		tool_usage(&s->tool, "--through", "%d inputs given, only one can pass", n_inputs);
	if (s->through && s->report_path && !strcmp(s->report_path, "-"))
		tool_usage(&s->tool, "--report", "'-': standard output carries the stream");
	if (s->plot_path && !strcmp(s->plot_path, "-") && (s->through || !s->report_path || !strcmp(s->report_path, "-")))
		tool_usage(&s->tool, "--plot", s->through ? "'-': standard output carries the stream" : "'-': standard output carries the report; give --report FILE");
	if (s->plot_path)
		check_plot_name(s);
	s->measure.measure.plot = s->plot_path != NULL;
	if (s->measure.compare_path && !strcmp(s->measure.compare_path, "-"))
		tool_usage(&s->tool, "--compare", "'-': name a file, standard input is what is measured");
}

/* ---- reports ---- */

static enum err open_report(struct stage *s)
{
	const struct sinkfile_args args = { .force = s->force, .wait = true, .stop = &tool_stop };

	s->out = s->through ? stderr : stdout;
	if (!s->report_path || !strcmp(s->report_path, "-"))
		return ERR_OK;
	s->out = NULL;
	return sinkfile_open(&s->file, s->report_path, &args, &s->pump.why);
}

/* A full disk shows now, at the latest.  The report of inputs of which none could be read to its end is no report. */
static enum err close_report(struct stage *s, enum err e)
{
	bool complete = !s->output_failed && (s->n_finished || (!s->failed && (e == ERR_OK || e == ERR_CUT)));
	if (s->file.fd < 0)
		return e;
	struct err_why why = { 0 };
	enum err closed = sinkfile_close(&s->file, complete, &why);
	if (!complete || !closed)
		return e;
	if (e)
		tool_say(&s->tool, e, &s->pump.why);
	s->pump.why = why;
	return closed;
}

static enum err write_text(struct stage *s, const char *text, size_t n_bytes)
{
	enum err e;

	if (s->out) {
		if (fwrite(text, 1, n_bytes, s->out) == n_bytes && fflush(s->out) == 0)
			return ERR_OK;
		s->output_failed = true;
		return err_sys(&s->pump.why, s->out == stdout ? "<stdout>" : "<stderr>");
	}
	if (!(e = sinkfile_put(&s->file, text, n_bytes)))
		e = sinkfile_flush(&s->file);
	if (e) {
		s->pump.why = s->file.why;
		s->output_failed = true;
	}
	return e;
}

static enum err write_report(struct stage *s, enum report_moment moment)
{
	struct report *r = &s->report;
	const char *name = s->pump.in.name;
	enum err e = s->json ? report_json(r, name, s->set.meters, s->set.n_meters, moment)
			     : report_text(r, s->names_inputs ? name : NULL, s->set.meters, s->set.n_meters, moment);
	if (e)
		return err_say(&s->pump.why, e, name, "%s", err_text(e));
	e = write_text(s, r->text, r->n_bytes);
	for (unsigned i = 0; moment == REPORT_RUNNING && i < s->set.n_meters; i++)
		amplitude_mark(&s->set.meters[i]->amplitude, AMPLITUDE_REPORT);
	return e;
}

static enum err report_due(void *stage)
{
	return write_report(stage, REPORT_RUNNING);
}

/* One more limit is broken, or may be.  The last of these waits in s->broken for tool_end(). */
WEIR_PRINTF(3, 4) static void say_broken(struct stage *s, const char *thing, const char *fmt, ...)
{
	char reason[200];
	va_list ap;

	if (s->broken.reason[0])
		tool_warn(&s->tool, s->broken.thing, "%s", s->broken.reason);
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	err_say(&s->broken, ERR_LIMIT, thing, "%s", reason);
}

/* A gate that has seen nothing must not open. */
static void check_measured(struct stage *s)
{
	uint64_t frames = 0;

	for (unsigned i = 0; i < s->set.n_meters; i++)
		frames += s->set.meters[i]->continuity.frames;
	if (s->set.n_coded)
		say_broken(s, s->pump.in.name, "track %u was not measured: no limit is known to hold", s->set.coded_id);
	else if (!frames)
		say_broken(s, s->pump.in.name, "nothing was measured: no limit is known to hold");
}

/* Every limit that is broken is said. */
static void check_limits(struct stage *s)
{
	if (s->fail_above.n)
		check_measured(s);
	for (unsigned i = 0; i < s->set.n_meters; i++) {
		const struct values v = values_read(s->set.meters[i]);
		const char *name = s->set.meters[i]->name;
		for (unsigned k = 0; k < s->fail_above.n; k++) {
			const struct values_limit *l = &s->limits[k];
			char thing[256], number[32];
			double value;
			if (!values_limit_broken(l, &v, &value))
				continue;
			snprintf(thing, sizeof(thing), "%.100s: track %u%s%.100s", s->pump.in.name, s->set.meters[i]->id, *name ? " " : "", name);
			say_broken(s, thing, "%s is %s, %s %g", l->key->name,
				isfinite(value) ? report_number(value, number) : value > 0 ? "infinite" : "minus infinity",
				values_test_name(l->test), l->limit);
		}
	}
}

/* ---- the loop ---- */

/* On a terminal bars take the place of the usual progress; reports on their way would be drawn over. */
static void begin_progress(struct stage *s)
{
	bool busy = s->measure.interval.is_set && s->out && (s->out == stderr || isatty(fileno(s->out)));
	s->pump.progress.on &= !busy;
	if (!busy)
		livebars_begin(&s->bars, &s->tool);
	if (s->bars.on)
		s->pump.progress.on = false;
}

static enum err packet(void *stage, struct packet *p)
{
	struct stage *s = stage;
	enum err e = meterset_packet(&s->set, &s->pump.in, p);
	if (e && s->set.why.reason[0])
		s->pump.why = s->set.why;
	livebars_update(&s->bars, s->set.meters, s->set.n_meters);
	return !e && s->through ? pump_pass(&s->pump, p) : e;
}

static enum err finish(void *stage)
{
	struct stage *s = stage;
	enum err e = meterset_end(&s->set);
	if (e) {
		s->pump.why = s->set.why;
		return e;
	}
	livebars_end(&s->bars);
	progress_end(&s->pump.progress);
	e = write_report(s, s->measure.interval.is_set ? REPORT_FINAL : REPORT_ONLY);
	if (e)
		return e;
	s->n_finished++;
	check_limits(s);
	if (!s->plots.on)
		return ERR_OK;
	e = plots_make(&s->plots, s->pump.in.name, s->set.meters, s->set.n_meters, &s->pump.why);
	s->output_failed |= e && e != ERR_FORMAT; /* that is an input without a track to draw */
	return e;
}

/* As pump_run(), with nothing to write. */
static enum err run_input(struct stage *s)
{
	struct pump *p = &s->pump;
	struct packet pkt;
	enum err e;

	while ((e = input_next(&p->in, &pkt)) == ERR_OK || e == ERR_AGAIN) {
		if (e == ERR_OK)
			e = packet(s, &pkt);
		else if (!(e = input_fill(&p->in)))
			pump_count(p);
		if (e)
			break;
	}
	if (e == ERR_END) {
		if ((e = finish(s)) || !input_is_cut(&p->in))
			return e;
		char loss[200];
		input_describe_loss(&p->in, loss, sizeof(loss));
		return err_say(&p->why, ERR_CUT, p->in.name, "%s", loss);
	}
	if (!p->why.reason[0])
		p->why = p->in.why.reason[0] || !p->in.is_stream ? p->in.why : p->in.reader.why;
	return e;
}

static enum err measure_input(struct stage *s, const char *name)
{
	const struct input_options options = { .reader = { .stop = &tool_stop }, .source = { .stop = &tool_stop } };
	input_release(&s->pump.in); /* the one before; the last one's counters are wanted at the end */
	enum err e = input_open(&s->pump.in, name, &options, &s->pump.why);
	if (!e)
		e = run_input(s);
	meterset_release(&s->set);
	return e;
}

/*
 * Each input in turn; one that is missing, no audio or cut does not keep the others from being measured.
 * Returns: what became of the last one, which is still to be said; ERR_CUT if that is well and one before was not.
 */
static enum err measure_inputs(struct stage *s, char **names, int n_names)
{
	enum err all, e;

	s->pump.tool = &s->tool;
	s->pump.in.fd = -1;
	if ((all = stats_begin(&s->pump.stats, &s->tool, &s->pump.why)))
		return all;
	for (int i = 0; i < n_names && !tool_stop; i++) {
		progress_begin(&s->pump.progress, &s->tool);
		begin_progress(s);
		e = measure_input(s, names[i]);
		if (!e)
			continue;
		if (s->output_failed || e == ERR_NOMEM || i + 1 == n_names)
			return e;
		tool_say(&s->tool, e, &s->pump.why);
		memset(&s->pump.why, 0, sizeof(s->pump.why));
		s->failed |= e != ERR_CUT;
		all = ERR_CUT;
	}
	return all;
}

int main(int argc, char **argv)
{
	static struct stage s = { .measure = { .measure = METER_OPTIONS }, .file = { .fd = -1 } };
	static char dash[] = "-", *standard_input[] = { dash };
	char missing[128];
	enum err e;
	const struct opt options[] = {
		OPT_FLAG(0, "json", &s.json, "print a JSON object for each input"),
		OPT_TIME(0, "interval", "TIME", &s.measure.interval, 0.001, 86400, "report also every TIME of the stream"),
		OPT_STRING(0, "report", "FILE", &s.report_path, "write reports to FILE"),
		OPT_STRING(0, "plot", "FILE", &s.plot_path, "draw waveform, loudness and spectrogram as PNG; %t %n %i make names"),
		OPT_FLAG('y', "force", &s.force, "overwrite FILE if it exists"),
		OPT_FLAG(0, "through", &s.through, "pass the stream on; reports go to standard error"),
		OPT_LIST('t', "track", "TRACK", &s.measure.tracks, "measure these tracks only"),
		OPT_STRING(0, "compare", "FILE", &s.measure.compare_path, "compare with FILE: offset, losses, error"),
		OPT_LIST(0, "fail-above", "SPEC", &s.fail_above, "exit 1 if SPEC holds at the end, as true_peak_dbtp>-1"),
		OPT_STRING(0, "silence", "LEVEL:TIME", &s.silence, "list silence at or below LEVEL for TIME or longer (-60dB:500ms), or off"),
		OPT_FLAG(0, "dual-mono", &s.measure.measure.dual_mono, "a mono track counts as two loudspeakers, +3.01 LU"),
		OPT_FLAG(0, "levels-only", &s.measure.measure.levels_only, "neither true peak nor loudness"),
		OPT_END
	};

	tool_begin(&s.tool, "meter", "[options] [INPUT...]", "Measure levels, true peak, loudness (EBU R 128), silence and continuity.", options,
		&argc, &argv);
	check_usage(&s, argc - 1);
	s.names_inputs = argc > 2;
	meterset_init(&s.set, &s.measure, &s.tool, report_due, &s);
	if ((e = open_report(&s)))
		goto out;
	if (s.plot_path && (e = plots_open(&s.plots, s.plot_path, s.force, &tool_stop, &s.pump.why)))
		goto out;
	if (s.through) {
		if ((e = pump_open(&s.pump, &s.tool, argc > 1 ? argv[1] : "-", NULL)))
			goto out;
		begin_progress(&s);
		e = pump_run(&s.pump, packet, finish, &s);
	} else {
		e = measure_inputs(&s, argc > 1 ? argv + 1 : standard_input, argc > 1 ? argc - 1 : 1);
	}
	if ((!e || e == ERR_CUT) && !s.failed && !s.broken.reason[0] && !tool_stop && select_missing(&s.set.hits, &s.measure.tracks, missing))
		e = err_say(&s.pump.why, ERR_FORMAT, missing, "no such track in the input");
out:
	livebars_end(&s.bars);
	meterset_release(&s.set);
	pump_release(&s.pump);
	report_release(&s.report);
	plots_release(&s.plots);
	e = close_report(&s, e);
	sinkfile_release(&s.file);
	if (s.broken.reason[0]) {
		tool_say(&s.tool, e, &s.pump.why);
		return tool_end(&s.tool, ERR_LIMIT, &s.broken);
	}
	int status = tool_end(&s.tool, e, &s.pump.why);
	return s.failed && status == TOOL_CUT ? TOOL_FAILED : status;
}
