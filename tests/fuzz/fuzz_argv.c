/* The option parser with a row of every kind: the input's lines are the words of a command line. */
#include "fuzz.h"

#include "tool/opt.h"

#include <math.h>
#include <string.h>

#define MAX_WORDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static const struct opt_choice words[] = {{"one", 1}, {"two", 2}, {0}};
	bool flag = false, on = true;
	int64_t whole = 5;
	int count = 0, choice = 0, set = 0;
	struct opt_time time = {0};
	uint32_t rate_hz = 48000;
	int32_t bitrate_bps = 96000;
	uint64_t size_bytes = 1;
	double db = 0, pct = 0, real = 0;
	const char *string = "";
	struct opt_list list = {0};
	struct opt_optional optional = {0};
	const struct opt tool[] = {
		OPT_GROUP("A group"),
		OPT_FLAG('a', "flag", &flag, ""),
		OPT_CLEAR(0, "no-on", &on, ""),
		OPT_INT('i', "whole", "N", &whole, -1000000, 1e15, ""),
		OPT_COUNT('v', "verbose", &count, ""),
		OPT_TIME('d', "duration", "TIME", &time, 0, 1e6, ""),
		OPT_RATE('r', "rate", &rate_hz, 1, 6144000, ""),
		OPT_BITRATE('b', "bitrate", &bitrate_bps, 500, 130560000, ""),
		OPT_SIZE(0, "size", &size_bytes, 0, 1e18, ""),
		OPT_END,
	};
	const struct opt common[] = {
		OPT_DB('g', "gain", &db, -120, 60, ""),
		OPT_PERCENT(0, "loss", &pct, 0, 100, ""),
		OPT_REAL(0, "real", "X", &real, -1, 1, ""),
		OPT_CHOICE('c', "choice", "WORD", &choice, words, ""),
		OPT_SET(0, "set", &set, 7, ""),
		OPT_STRING('o', "output", "FILE", &string, ""),
		OPT_LIST('t', "track", "TRACK", &list, ""),
		OPT_OPTIONAL(0, "stats", "SECONDS", &optional, 0.01, 3600, 1, ""),
		OPT_END,
	};
	char *text = malloc(n_bytes + 1), *argv[MAX_WORDS + 2] = {(char *)"tool"};
	int argc = 1;
	must(text);
	memcpy(text, data, n_bytes);
	text[n_bytes] = 0;
	for (char *at = text; argc <= MAX_WORDS;) {
		char *end = strchr(at, '\n');
		argv[argc++] = at;
		if (!end)
			break;
		*end = 0;
		at = end + 1;
	}
	int before = argc;
	struct err_why why = {0};
	enum err e = opt_parse(tool, common, &argc, argv, &why);
	must(e == ERR_OK || e == ERR_ARG);
	if (e) {
		must(why.thing[0] && why.reason[0]);
		must(memchr(why.thing, 0, sizeof(why.thing)) && memchr(why.reason, 0, sizeof(why.reason)));
	} else {
		must(argc >= 1 && argc <= before && !argv[argc]);
		for (int i = 1; i < argc; i++)
			fuzz_touch(argv[i], strlen(argv[i]));
	}
	must(whole >= -1000000 && whole <= 1000000000000000);
	must(rate_hz >= 1 && rate_hz <= 6144000);
	must(bitrate_bps >= 500 && bitrate_bps <= 130560000);
	must(size_bytes <= 1000000000000000000u);
	must(db >= -120 && db <= 60 && pct >= 0 && pct <= 100 && real >= -1 && real <= 1);
	must(choice >= 0 && choice <= 2 && (set == 0 || set == 7));
	must(!time.is_set || time.is_frames || (time.value >= 0 && time.value <= 1000000000000000));
	must(!time.is_frames || time.value >= 0);
	must(list.n < 64 && !list.value[list.n]);
	must(!optional.is_set || (optional.value >= 0.01 && optional.value <= 3600));
	fuzz_touch(string, strlen(string));
	(void)opt_time_frames(&time, rate_hz, 1);
	free(text);
	return 0;
}
