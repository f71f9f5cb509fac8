/*
 * weir: the front door.  `weir TOOL …` becomes that tool by execv(2), so nothing of this program is left in a pipeline.
 *
 * The tools are looked for, in this order:
 *   the installed folder, when this program stands in the installed bindir;
 *   ../libexec/weir from where it stands: an installation that was moved, or staged;
 *   beside it, when its sisters stand there: a build tree;
 *   the installed folder.
 * A bindir is never searched for tools: another package's `play` or `mix` may live there.
 */
#include "base/err.h"
#include "tool/opt.h"
#include "tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef WEIR_BINDIR
#define WEIR_BINDIR "/usr/local/bin"
#endif
#ifndef WEIR_EXECDIR
#define WEIR_EXECDIR "/usr/local/libexec/weir"
#endif
#ifndef WEIR_MANDIR
#define WEIR_MANDIR "/usr/local/share/man"
#endif

#define WEIR_MAX_TOOLS 64
#define WEIR_PATH_BYTES (2 * PATH_MAX) /* a folder, and what is put behind it */

/* What the list prints.  A tool that stands in the folder without a row here is listed by its name alone. */
static const struct weir_row {
	const char *name, *summary;
} weir_rows[] = {
	{ "capture", "audio files, pipes, generators and devices to a stream of PCM tracks" },
	{ "encode", "PCM tracks to Opus" },
	{ "decode", "Opus tracks to PCM, holes concealed" },
	{ "resample", "PCM tracks at another rate" },
	{ "mix", "PCM tracks to one, or to one a participant" },
	{ "mux", "join streams, or write tracks to files" },
	{ "demux", "take packets out of files and streams, undecoded" },
	{ "impair", "what a bad network does, to a stream or to datagrams" },
	{ "netsend", "send a stream over the network by RTP, or whole" },
	{ "netrecv", "hear a network, and write its senders as tracks of a stream" },
	{ "meter", "levels, loudness, silence and losses of each track" },
	{ "play", "a PCM track is heard on sound devices" },
	{ "inspect", "print and verify streams" },
	{ "keygen", "a key for srtp:// and weir://" },
	{ "top", "the running tools, in pipeline order" },
};

/* Pages that are not a tool's. */
static const struct weir_page {
	const char *word, *page, *section;
} weir_pages[] = {
	{ "weir", "weir", "1" },
	{ "stream", "weir-stream", "5" },
	{ "weir-stream", "weir-stream", "5" },
	{ "conventions", "weir", "7" },
};

struct weir {
	char self_dir[PATH_MAX]; /* where this program stands; "" if that cannot be told */
	char exec_dir[PATH_MAX]; /* where the tools stand */
	char name[WEIR_MAX_TOOLS][NAME_MAX + 1];
	unsigned n_tools;
};

static bool weir_is_program(const char *dir, const char *name)
{
	char path[WEIR_PATH_BYTES];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static void weir_find_self(struct weir *w)
{
	ssize_t n = readlink("/proc/self/exe", w->self_dir, sizeof(w->self_dir) - 1);
	char *slash;

	w->self_dir[n > 0 ? n : 0] = '\0';
	slash = strrchr(w->self_dir, '/');
	if (slash)
		slash[slash == w->self_dir] = '\0';
}

static void weir_find_exec_dir(struct weir *w)
{
	char installed_bin[PATH_MAX], moved[WEIR_PATH_BYTES];
	bool is_installed = realpath(WEIR_BINDIR, installed_bin) && strcmp(installed_bin, w->self_dir) == 0;

	if (w->self_dir[0] != '\0' && !is_installed) {
		snprintf(moved, sizeof(moved), "%s/../libexec/weir", w->self_dir);
		if (realpath(moved, w->exec_dir))
			return;
		if (weir_is_program(w->self_dir, "inspect")) {
			memcpy(w->exec_dir, w->self_dir, sizeof(w->exec_dir));
			return;
		}
	}
	snprintf(w->exec_dir, sizeof(w->exec_dir), "%s", WEIR_EXECDIR);
}

static int weir_row_of(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(weir_rows); i++)
		if (strcmp(weir_rows[i].name, name) == 0)
			return (int)i;
	return (int)ARRAY_LEN(weir_rows);
}

static int weir_compare(const void *a, const void *b)
{
	int row_a = weir_row_of(a), row_b = weir_row_of(b);

	return row_a != row_b ? row_a - row_b : strcmp(a, b);
}

/* The names of the tools, in the order of the table. */
static void weir_list(struct weir *w)
{
	DIR *dir = opendir(w->exec_dir);
	struct dirent *d;

	if (!dir)
		return;
	while (w->n_tools < WEIR_MAX_TOOLS && (d = readdir(dir))) {
		if (strcmp(d->d_name, "weir") == 0 || d->d_name[0] == '.' || !weir_is_program(w->exec_dir, d->d_name))
			continue;
		snprintf(w->name[w->n_tools++], sizeof(w->name[0]), "%s", d->d_name);
	}
	closedir(dir);
	qsort(w->name, w->n_tools, sizeof(w->name[0]), weir_compare);
}

/*
 * Letters to insert, delete, replace or swap with their neighbour until a becomes b; words longer than 31 letters are
 * as far apart as can be.
 */
static unsigned weir_distance(const char *a, const char *b)
{
	unsigned d[32][32];
	size_t n_a = strlen(a), n_b = strlen(b);

	if (n_a > 31 || n_b > 31)
		return UINT_MAX;
	for (size_t i = 0; i <= n_a; i++)
		d[i][0] = (unsigned)i;
	for (size_t j = 0; j <= n_b; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n_a; i++) {
		for (size_t j = 1; j <= n_b; j++) {
			unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[n_a][n_b];
}

static int weir_unknown(struct weir *w, const char *word)
{
	const char *near = NULL;
	unsigned least = 3;
	size_t n = strlen(word);
	char printable[256];

	weir_list(w);
	for (unsigned i = 0; i < w->n_tools; i++) {
		unsigned far = weir_distance(word, w->name[i]);

		if (n >= 3 && strncmp(word, w->name[i], n) == 0)
			far = 0;
		if (far < least && far < strlen(w->name[i])) {
			least = far;
			near = w->name[i];
		}
	}
	fprintf(stderr, "weir: '%s': there is no such tool", tool_printable(word, printable, sizeof(printable)));
	if (near)
		fprintf(stderr, "; did you mean '%s'?\n", near);
	else if (w->n_tools == 0)
		fprintf(stderr, "; no tools were found in %s\n", w->exec_dir);
	else
		fprintf(stderr, "; 'weir' alone lists them\n");
	return TOOL_USAGE;
}

/* A report went to stdout: it counts only if it arrived. */
static int weir_close_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout) && close(STDOUT_FILENO) == 0)
		return TOOL_DONE;
	fprintf(stderr, "weir: standard output: %s\n", strerror(errno));
	return TOOL_FAILED;
}

static int weir_overview(struct weir *w, const struct opt *options)
{
	weir_list(w);
	printf("usage: weir TOOL [options] [arguments]\n"
	       "       weir help [TOOL | stream | conventions]\n"
	       "\n"
	       "Small tools for audio, joined by pipes:\n"
	       "  weir capture song.flac | weir encode -b 96k | weir mux -o song.opus\n"
	       "\n"
	       "tools:\n");
	for (unsigned i = 0; i < w->n_tools; i++) {
		int row = weir_row_of(w->name[i]);

		printf("  %-10s %s\n", w->name[i], row < (int)ARRAY_LEN(weir_rows) ? weir_rows[row].summary : "");
	}
	if (w->n_tools == 0)
		printf("  none found in %s\n", w->exec_dir);
	printf("\noptions:\n");
	opt_print_help(options);
	return weir_close_stdout();
}

/* The page as a file, so that it opens from a build tree and from a prefix that man(1) does not search. */
static bool weir_page_path(const struct weir *w, const char *page, const char *section, char path[static WEIR_PATH_BYTES])
{
	if (w->self_dir[0] != '\0') {
		/* build/bin, and build/KIND/bin of a build beside the plain one. */
		snprintf(path, WEIR_PATH_BYTES, "%s/../../man/%s.%s", w->self_dir, page, section);
		if (access(path, R_OK) == 0)
			return true;
		snprintf(path, WEIR_PATH_BYTES, "%s/../../../man/%s.%s", w->self_dir, page, section);
		if (access(path, R_OK) == 0)
			return true;
		snprintf(path, WEIR_PATH_BYTES, "%s/../share/man/man%s/%s.%s", w->self_dir, section, page, section);
		if (access(path, R_OK) == 0)
			return true;
	}
	snprintf(path, WEIR_PATH_BYTES, "%s/man%s/%s.%s", WEIR_MANDIR, section, page, section);
	return access(path, R_OK) == 0;
}

static int weir_help(struct weir *w, const char *word, const struct opt *options)
{
	char page[NAME_MAX + 8], path[WEIR_PATH_BYTES];
	const char *section = "1", *tool_name = NULL;

	if (strncmp(word, "weir-", 5) == 0 && weir_is_program(w->exec_dir, word + 5))
		word += 5;
	snprintf(page, sizeof(page), "weir-%.*s", NAME_MAX, word);
	for (unsigned i = 0; i < ARRAY_LEN(weir_pages); i++) {
		if (strcmp(weir_pages[i].word, word) == 0) {
			snprintf(page, sizeof(page), "%s", weir_pages[i].page);
			section = weir_pages[i].section;
			goto show;
		}
	}
	if (strchr(word, '/') || !weir_is_program(w->exec_dir, word))
		return weir_unknown(w, word);
	tool_name = word;

show:
	if (weir_page_path(w, page, section, path)) {
		execlp("man", "man", path, (char *)NULL);
		execlp("mandoc", "mandoc", "-a", path, (char *)NULL);
	} else {
		execlp("man", "man", section, page, (char *)NULL);
	}
	/* No way to show a page: what the program itself knows. */
	if (!tool_name)
		return weir_overview(w, options);
	snprintf(path, sizeof(path), "%s/%s", w->exec_dir, tool_name);
	execl(path, tool_name, "--help", (char *)NULL);
	fprintf(stderr, "weir: %s: %s\n", path, strerror(errno));
	return TOOL_FAILED;
}

static int weir_run(struct weir *w, char **argv)
{
	char path[WEIR_PATH_BYTES];

	if (strchr(argv[0], '/') || strcmp(argv[0], "weir") == 0 || !weir_is_program(w->exec_dir, argv[0]))
		return weir_unknown(w, argv[0]);
	snprintf(path, sizeof(path), "%s/%s", w->exec_dir, argv[0]);
	execv(path, argv);
	fprintf(stderr, "weir: %s: %s\n", path, strerror(errno));
	return TOOL_FAILED;
}

int main(int argc, char **argv)
{
	struct weir w = { 0 };
	bool help = false, version = false, exec_path = false;
	struct err_why why = { 0 };
	int n_own = 1;

	const struct opt options[] = {
		OPT_FLAG('h', "help", &help, "list the tools and exit"),
		OPT_FLAG(0, "version", &version, "print the version and exit"),
		OPT_FLAG(0, "exec-path", &exec_path, "print the folder of the tools, for PATH, and exit"),
		OPT_END
	};

	weir_find_self(&w);
	weir_find_exec_dir(&w);

	/* What stands before the tool's name is ours, everything after it is the tool's. */
	while (n_own < argc && argv[n_own][0] == '-' && argv[n_own][1] != '\0')
		n_own++;
	if (n_own == 2 && argc == 2 && strcmp(argv[1], "--dump-options") == 0) {
		opt_dump(options);
		return weir_close_stdout();
	}
	argv += n_own - 1;
	argc -= n_own - 1;
	if (n_own > 1) {
		char **own = argv - (n_own - 1);

		if (opt_parse(options, NULL, &n_own, own, &why)) {
			fprintf(stderr, "weir: %s: %s\n", why.thing, why.reason);
			return TOOL_USAGE;
		}
	}
	if (version) {
		printf("weir %s\n", WEIR_VERSION);
		return weir_close_stdout();
	}
	if (exec_path) {
		printf("%s\n", w.exec_dir);
		return weir_close_stdout();
	}
	if (help || argc < 2)
		return weir_overview(&w, options);
	if (strcmp(argv[1], "help") == 0)
		return weir_help(&w, argc > 2 ? argv[2] : "weir", options);
	return weir_run(&w, argv + 1);
}
