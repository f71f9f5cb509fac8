#include "tool/tool.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

volatile sig_atomic_t tool_stop;

/* ---- signals ---- */

/*
 * The first signal asks for a stop and starts a timer whose only work is to interrupt whatever blocks, again and again,
 * until the loop has seen the flag: so nothing can begin to wait between looking at it and waiting.
 */
static void on_stop(int signal_number)
{
	if (tool_stop)
		_exit(128 + signal_number);
	tool_stop = signal_number;
	const struct itimerval every_20_ms = { .it_interval.tv_usec = 20000, .it_value.tv_usec = 20000 };
	setitimer(ITIMER_REAL, &every_20_ms, NULL);
}

static void on_tick(int signal_number)
{
	(void)signal_number;
}

static void take_signals(void)
{
	struct sigaction stop = { .sa_handler = on_stop }, tick = { .sa_handler = on_tick }, ignore = { .sa_handler = SIG_IGN };
	struct sigaction old;

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	/* nohup means it. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGALRM, &tick, NULL);
	/* Of a reader that went away, and of a file that has reached its limit (ulimit -f), write(2) tells. */
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
}

/* A descriptor 0, 1 or 2 that is closed would be given to the next file opened: hold the place. */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
			/* Open it the wrong way round, so that using it fails as a closed one would. */
			int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
			if (got < 0)
				return;
		}
}

/* ---- messages ---- */

const char *tool_printable(const char *text, char *out, size_t out_bytes)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t n = 0, left = strlen(text);

	while (left && n + 5 < out_bytes) {
		unsigned length = utf8_length(s, left);
		if (length && *s >= 0x20 && *s != 0x7F) {
			memcpy(out + n, s, length);
			n += length;
		} else {
			length = 1;
			n += (size_t)snprintf(out + n, out_bytes - n, "\\x%02x", *s);
		}
		s += length;
		left -= length;
	}
	out[n] = 0;
	return out;
}

WEIR_PRINTF(3, 0) static void print_line(struct tool *t, const char *thing, const char *fmt, va_list ap)
{
	char reason[512], name[400], line[1024], shown[1024];

	vsnprintf(reason, sizeof(reason), fmt, ap);
	snprintf(line, sizeof(line), "%s%s%s", thing && *thing ? tool_printable(thing, name, sizeof(name)) : "",
		thing && *thing ? ": " : "", reason);
	if (!strncmp(line, t->last_message, sizeof(t->last_message) - 1)) {
		t->n_suppressed++;
		return;
	}
	snprintf(t->last_message, sizeof(t->last_message), "%.*s", (int)sizeof(t->last_message) - 1, line);
	tool_clear_line(t);
	fprintf(stderr, "%s: %s\n", t->name, tool_printable(line, shown, sizeof(shown)));
}

void tool_clear_line(struct tool *t)
{
	if (atomic_exchange(&t->line_shown, false))
		fputs("\r\033[K", stderr);
}

void tool_warn(struct tool *t, const char *thing, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	print_line(t, thing, fmt, ap);
	va_end(ap);
}

void tool_note(struct tool *t, const char *thing, const char *fmt, ...)
{
	if (!t->verbose)
		return;
	va_list ap;
	va_start(ap, fmt);
	print_line(t, thing, fmt, ap);
	va_end(ap);
}

void tool_say(struct tool *t, enum err e, const struct err_why *why)
{
	bool has_reason = why && why->reason[0];

	if (e == ERR_OK || e == ERR_END || e == ERR_GONE || (e == ERR_CUT && !has_reason))
		return;
	tool_warn(t, has_reason ? why->thing : "", "%s", has_reason ? why->reason : err_text(e));
}

_Noreturn void tool_usage(struct tool *t, const char *thing, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	print_line(t, thing, fmt, ap);
	va_end(ap);
	exit(TOOL_USAGE);
}

/* ---- begin and end ---- */

static void print_help(const struct tool *t, const struct opt *options, const struct opt *common)
{
	printf("usage: %s %s\n\n%s\n", t->name, t->synopsis, t->summary);
	if (options && options->kind != OPT_KIND_END) {
		if (options->kind != OPT_KIND_GROUP)
			printf("\nOptions:\n");
		opt_print_help(options);
	}
	opt_print_help(common);
}

static _Noreturn void print_and_exit(struct tool *t)
{
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: <stdout>: %s\n", t->name, strerror(errno));
		exit(TOOL_FAILED);
	}
	exit(TOOL_DONE);
}

/* resample's -q is its quality: then --quiet has no letter. */
static bool has_letter(const struct opt *options, char letter)
{
	for (const struct opt *row = options; row && row->kind != OPT_KIND_END; row++) {
		if (row->letter == letter)
			return true;
	}
	return false;
}

/* -o and its like are what everybody tries first, where a stream goes to standard output. */
static bool is_output_option(const char *thing)
{
	return !strncmp(thing, "-o", 2) || !strcmp(thing, "--output") || !strcmp(thing, "--out");
}

static bool writes_stream(const char *name)
{
	static const char *const reports[] = { "meter", "inspect", "play" };

	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
		if (!strcmp(name, reports[i]))
			return false;
	return true;
}

void tool_begin(struct tool *t, const char *name, const char *synopsis, const char *summary, const struct opt *options,
	int *argc, char ***argv)
{
	bool help = false, version = false;
	const struct opt common[] = {
		OPT_GROUP("Common options:"),
		OPT_FLAG(has_letter(options, 'q') ? 0 : 'q', "quiet", &t->quiet, "no messages but errors"),
		OPT_COUNT('v', "verbose", &t->verbose, "say more"),
		OPT_OPTIONAL(0, "stats", "SECONDS", &t->stats, 0.01, 86400, 1, "print counters as JSON Lines to stderr, every SECONDS (1) and at the end"),
		OPT_STRING(0, "stats-file", "PATH", &t->stats_path, "the same, to a file"),
		OPT_FLAG('h', "help", &help, "print this and exit"),
		OPT_FLAG(0, "version", &version, "print the version and exit"),
		OPT_END
	};
	struct err_why why = {0};

	hold_standard_descriptors();
	memset(t, 0, sizeof(*t));
	t->name = name;
	t->synopsis = synopsis;
	t->summary = summary;
	if (*argc == 2 && !strcmp((*argv)[1], "--dump-options")) {
		opt_dump(options);
		opt_dump(common);
		print_and_exit(t);
	}
	enum err e = opt_parse(options, common, argc, *argv, &why);
	if (help) {
		print_help(t, options, common);
		print_and_exit(t);
	}
	if (version) {
		printf("%s (weir) %s\n", name, WEIR_VERSION);
		print_and_exit(t);
	}
	if (e && is_output_option(why.thing) && !has_letter(options, 'o'))
		snprintf(why.reason, sizeof(why.reason), "%s", writes_stream(name) ? "is not an option: the stream goes to stdout, and weir mux -o FILE makes a file of the stream" :
			"is not an option: what there is to read goes to stdout");
	if (e) {
		tool_say(t, e, &why);
		exit(TOOL_USAGE);
	}
	if (t->stats_path && !t->stats.is_set)
		t->stats = (struct opt_optional){ .is_set = true, .value = 1 };
	take_signals();
}

int tool_end(struct tool *t, enum err e, const struct err_why *why)
{
	tool_clear_line(t);
	tool_say(t, e, why);
	if (fflush(stdout) || ferror(stdout)) {
		if (errno == EPIPE && (e == ERR_OK || e == ERR_CUT))
			e = ERR_GONE;
		else if (e == ERR_OK || e == ERR_CUT) {
			fprintf(stderr, "%s: <stdout>: %s\n", t->name, strerror(errno));
			e = ERR_SYS;
		}
	}
	if (t->n_suppressed && !t->quiet)
		fprintf(stderr, "%s: %llu more of these messages were not printed\n", t->name, (unsigned long long)t->n_suppressed);

	switch (e) {
	case ERR_OK:
	case ERR_END:
		return TOOL_DONE;
	case ERR_CUT:
		return TOOL_CUT;
	case ERR_ARG:
		return TOOL_USAGE;
	case ERR_GONE:
		/* Ctrl-C reaches a whole pipeline: when our reader stopped first, we were about to stop as well. */
		if (tool_stop)
			return TOOL_DONE;
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
		return TOOL_FAILED;
	default:
		return TOOL_FAILED;
	}
}
