/* tool/opt: every kind of value, its range and its message; order of options and operands; the tables as text. */
#include "check.h"

#include "base/units.h"
#include "tool/opt.h"

#include <locale.h>
#include <unistd.h>

static struct values {
	bool flag, on;
	int64_t whole;
	int count, choice, set;
	struct opt_time time;
	uint32_t rate_hz;
	int32_t bitrate_bps;
	uint64_t size_bytes;
	double db, pct, real;
	const char *string;
	struct opt_list list;
	struct opt_optional optional;
} v;

static const struct opt_choice colours[] = {{"red", 1}, {"green", 2}, {"green-ish", 3}, {0}};

static const struct opt table[] = {
	OPT_GROUP("First:"),
	OPT_FLAG('a', "flag", &v.flag, "a flag"),
	OPT_CLEAR(0, "no-on", &v.on, "not on"),
	OPT_INT('i', "whole", "N", &v.whole, -5, 10, "a whole number"),
	OPT_COUNT('v', "verbose", &v.count, "more"),
	OPT_TIME('d', "duration", "TIME", &v.time, 0, 3600, "a time"),
	OPT_RATE('r', "rate", &v.rate_hz, 8000, 192000, "a rate"),
	OPT_BITRATE('b', "bitrate", &v.bitrate_bps, 500, 2000000, "a bit rate"),
	OPT_SIZE(0, "size", &v.size_bytes, 1, 1e12, "a size"),
	OPT_END,
};
static const struct opt common[] = {
	OPT_DB('g', "gain", &v.db, -120, 60, "a level"),
	OPT_PERCENT(0, "loss", &v.pct, 0, 100, "a percentage"),
	OPT_REAL(0, "real", "X", &v.real, -1, 1, "a number"),
	OPT_CHOICE('c', "colour", "WORD", &v.choice, colours, "red, green or green-ish"),
	OPT_SET(0, "blue", &v.set, 7, "sets seven"),
	OPT_STRING('o', "output", "FILE", &v.string, "a file"),
	OPT_LIST('t', "track", "TRACK", &v.list, "tracks"),
	OPT_OPTIONAL(0, "stats", "SECONDS", &v.optional, 0.01, 3600, 1, "statistics"),
	OPT_END,
};

static struct err_why why;
static char *words[200];
static int n_words;

/* Parse a command line of space-separated words; "~" in a word stands for an empty one. */
static enum err parse(const char *line)
{
	static char text[4096];
	snprintf(text, sizeof(text), "tool %s", line);
	n_words = 0;
	memset(words, 0, sizeof(words));
	v = (struct values){.on = true, .count = 0};
	why = (struct err_why){0};
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		words[n_words++] = strcmp(w, "~") ? w : (char *)"";
	return opt_parse(table, common, &n_words, words, &why);
}

static void test_each_kind(void)
{
	CHECK_OK(parse("-a --no-on -i 7 -vv -d 1.5s -r 44.1k -b 96k --size 64K -g -6dB --loss 5% --real -0.25 -c green --blue "
		       "-o out -t 1 -t vocals --stats file"));
	CHECK(v.flag);
	CHECK(!v.on);
	CHECK_EQ(v.whole, 7);
	CHECK_EQ(v.count, 2);
	CHECK(v.time.is_set && !v.time.is_frames);
	CHECK_EQ(v.time.value, 1500000000);
	CHECK_EQ(v.rate_hz, 44100);
	CHECK_EQ(v.bitrate_bps, 96000);
	CHECK_EQ(v.size_bytes, 65536);
	CHECK_NEAR(v.db, -6, 0);
	CHECK_NEAR(v.pct, 5, 0);
	CHECK_NEAR(v.real, -0.25, 0);
	CHECK_EQ(v.choice, 2);
	CHECK_EQ(v.set, 7);
	CHECK_STR(v.string, "out");
	CHECK_EQ(v.list.n, 2);
	CHECK_STR(v.list.value[1], "vocals");
	CHECK(!v.list.value[2]);
	/* An optional value only with '='. */
	CHECK(v.optional.is_set);
	CHECK_NEAR(v.optional.value, 1, 0);
	CHECK_EQ(n_words, 2);
	CHECK_STR(words[1], "file");
	CHECK_OK(parse("--stats=0.5"));
	CHECK_NEAR(v.optional.value, 0.5, 0);
}

static void test_ways_to_write_an_option(void)
{
	static const char *const ways[] = {"-i7", "-i 7", "--whole 7", "--whole=7", "-ai7", "-avi 7", "x -i7 y", "-i 3 -i 7"};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		CHECK_OK(parse(ways[i]));
		if (!CHECK_EQ(v.whole, 7))
			CHECK_FAIL("%s", ways[i]);
	}
	/* A value may look like an option. */
	CHECK_OK(parse("-o -a --output=--flag -i -5"));
	CHECK(!v.flag);
	CHECK_STR(v.string, "--flag");
	CHECK_EQ(v.whole, -5);
	CHECK_OK(parse("--output="));
	CHECK_STR(v.string, "");
}

static void test_operands_come_to_the_front(void)
{
	CHECK_OK(parse("one -a two - -i 3 -- -v --flag three"));
	CHECK_EQ(n_words, 7);
	static const char *const want[] = {"tool", "one", "two", "-", "-v", "--flag", "three"};
	for (int i = 0; i < 7; i++)
		CHECK_STR(words[i], want[i]);
	CHECK(!words[7]);
	CHECK_EQ(v.count, 0);
	CHECK_OK(parse("~ -a ~"));
	CHECK_EQ(n_words, 3);
	CHECK_STR(words[1], "");
	CHECK_OK(parse(""));
	CHECK_EQ(n_words, 1);
	CHECK_OK(parse("--"));
	CHECK_EQ(n_words, 1);
	/* A program that was started without even a name. */
	int none = 0;
	char *nothing[1] = {NULL};
	CHECK_OK(opt_parse(table, NULL, &none, nothing, &why));
	CHECK_EQ(none, 0);
}

/* The line says the option, quotes the value, and states what would be right. */
static void test_mistakes_are_explained(void)
{
	static const struct { const char *line, *thing, *words[3]; } rows[] = {
		{"-i 11", "-i", {"'11'", "-5", "10"}},
		{"--whole=1.5", "--whole", {"'1.5'", "-5", "10"}},
		{"--whole=-6", "--whole", {"'-6'", "-5", "10"}},
		{"-i 0x5", "-i", {"'0x5'", "whole number", "10"}},
		{"-i ~", "-i", {"''", "whole number", "10"}},
		{"-r 44", "-r", {"'44'", "8000", "192000 Hz"}},
		{"-r nan", "-r", {"'nan'", "8000", "192000"}},
		{"-r inf", "-r", {"'inf'", "8000", "192000"}},
		{"-r 1e5", "-r", {"'1e5'", "8000", "192000"}},
		{"-r 48kk", "-r", {"'48kk'", "8000", "192000"}},
		{"-r 48,5k", "-r", {"'48,5k'", "8000", "192000"}},
		{"-b 3M", "-b", {"'3M'", "500", "2000000 bit/s"}},
		{"--size 0", "--size", {"'0'", "1", "bytes"}},
		{"--size -1K", "--size", {"'-1K'", "1", "bytes"}},
		{"-g 61dB", "-g", {"'61dB'", "-120", "60 dB"}},
		{"-g -0.5", "-g", {"'-0.5'", "-120", "60 dB"}},
		{"--loss 101%", "--loss", {"'101%'", "0", "100 %"}},
		{"--real 1.01", "--real", {"'1.01'", "-1", "1"}},
		{"-d 3601", "-d", {"'3601'", "0", "3600 s"}},
		{"-d 1:60", "-d", {"'1:60'", "1:30", "3600 s"}},
		{"-d -1", "-d", {"'-1'", "0", "3600 s"}},
		{"-d 1.5smp", "-d", {"'1.5smp'", "smp", "3600 s"}},
		{"-c blue", "-c", {"'blue'", "red", "green-ish"}},
		{"-c gree", "-c", {"'gree'", "red", "green"}},
		{"--stats=0", "--stats", {"'0'", "0.01", "3600"}},
		{"--nonsense", "--nonsense", {"not an option"}},
		{"--nonsense=5", "--nonsense", {"not an option"}},
		{"--fla", "--fla", {"not an option"}},
		{"--flags", "--flags", {"not an option"}},
		{"-z", "-z", {"not an option"}},
		{"-az", "-az", {"-z"}},
		{"--flag=1", "--flag", {"no value", "'1'"}},
		{"--blue=1", "--blue", {"no value", "'1'"}},
		{"-i", "-i", {"needs a value", "N"}},
		{"--output", "--output", {"needs a value", "FILE"}},
		{"-ao", "-o", {"needs a value", "FILE"}},
		{"--=5", "--", {"not an option"}},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = CHECK_EQ(parse(rows[i].line), ERR_ARG) & CHECK_STR(why.thing, rows[i].thing);
		for (size_t k = 0; k < 3 && rows[i].words[k]; k++)
			ok &= CHECK(strstr(why.reason, rows[i].words[k]));
		if (!ok)
			CHECK_FAIL("'%s' says '%s: %s'", rows[i].line, why.thing, why.reason);
	}
	/* A very long word is quoted as far as there is room. */
	char longer[3000] = "--";
	memset(longer + 2, 'x', sizeof(longer) - 3);
	CHECK_EQ(parse(longer), ERR_ARG);
	longer[1] = 'o';
	longer[0] = '-';
	CHECK_OK(parse(longer));
}

static void test_times(void)
{
	static const struct { const char *text; int64_t ns; } rows[] = {
		{"3", 3000000000}, {"1.5s", 1500000000}, {"250ms", 250000000}, {"2.5ms", 2500000}, {"20us", 20000}, {"1:30", 90000000000},
		{"00:01:30.5", 90500000000}, {"1:00:00", 3600000000000}, {"90:00", 5400000000000}, {".5", 500000000}, {"2m", 120000000000},
		{"1h", 3600000000000}, {"0", 0}, {"0.000000001", 1}, {"999999999", 999999999000000000},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct opt_time t = {0};
		if (!CHECK_OK(opt_parse_time(rows[i].text, &t)) || !CHECK_EQ(t.value, rows[i].ns) || !CHECK(t.is_set && !t.is_frames))
			CHECK_FAIL("%s", rows[i].text);
	}
	static const char *const bad[] = {"", ":", "1:", ":30", "1:2:3:4", "1:60", "1:30:60", "1.5:30", "1:-3", "-3", "+3", "3 s", "3x",
		"1:30s", "1e3", "nan", "inf", "smp", "1.5smp", "-1smp", "1:30smp", "99999999999999999999", "0x10", "3ss"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct opt_time t = {0};
		if (!CHECK_EQ(opt_parse_time(bad[i], &t), ERR_ARG))
			CHECK_FAIL("%s", bad[i]);
	}
	struct opt_time t = {0};
	CHECK_OK(opt_parse_time("480smp", &t));
	CHECK(t.is_frames);
	CHECK_EQ(t.value, 480);
	CHECK_EQ(opt_time_frames(&t, 44100, 1), 480);
	CHECK_OK(opt_parse_time("1.5s", &t));
	CHECK_EQ(opt_time_frames(&t, 44100, 1), 66150);
	CHECK_EQ(opt_time_frames(&t, 60000, 1001), 90);
}

static void test_numbers(void)
{
	static const struct { const char *text, *units; double factor, value; } rows[] = {
		{"48000", "kM", 1000, 48000}, {"44.1k", "kM", 1000, 44100}, {"44.1K", "kM", 1000, 44100}, {"1.5M", "kM", 1000, 1500000},
		{"64K", "KMG", 1024, 65536}, {"64k", "KMG", 1024, 65536}, {"2G", "KMG", 1024, 2147483648}, {"-1.25", "", 1, -1.25},
		{"+7", "", 1, 7}, {".5", "", 1, .5}, {"5.", "", 1, 5}, {"22.05k", "kM", 1000, 22050},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double x = NAN;
		if (!CHECK_OK(opt_parse_number(rows[i].text, rows[i].units, rows[i].factor, &x)) || !CHECK_NEAR(x, rows[i].value, 1e-9))
			CHECK_FAIL("%s", rows[i].text);
	}
	static const char *const bad[] = {"", "k", ".", "-", "--1", "1 ", " 1", "1kM", "1m", "1,5", "1e3", "0x1", "nan", "1.2.3"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		double x;
		if (!CHECK_EQ(opt_parse_number(bad[i], "kM", 1000, &x), ERR_ARG))
			CHECK_FAIL("%s", bad[i]);
	}
}

static void test_levels(void)
{
	CHECK_OK(parse("-g 0.5"));
	CHECK_NEAR(v.db, -6.0206, 1e-4);
	CHECK_OK(parse("-g 1"));
	CHECK_NEAR(v.db, 0, 0);
	CHECK_OK(parse("-g +6dB"));
	CHECK_NEAR(v.db, 6, 0);
	CHECK_OK(parse("-g -6db"));
	CHECK_NEAR(v.db, -6, 0);
	/* Below the range: silence is not a level here. */
	CHECK_EQ(parse("-g 0"), ERR_ARG);
}

static void test_a_point_in_every_locale(void)
{
	static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
	bool found = false;
	for (size_t i = 0; i < ARRAY_LEN(names) && !found; i++)
		found = setlocale(LC_ALL, names[i]) != NULL;
	if (!found) {
		check_skip("no locale with a decimal comma is installed");
		return;
	}
	CHECK_OK(parse("-d 1.5s --real 0.25"));
	CHECK_EQ(v.time.value, 1500000000);
	CHECK_NEAR(v.real, 0.25, 0);
	CHECK_EQ(parse("--real 0,25"), ERR_ARG);
	setlocale(LC_ALL, "C");
}

static void test_a_list_has_an_end(void)
{
	char line[2048] = "";
	for (int i = 0; i < 63; i++)
		strcat(line, "-t x ");
	CHECK_OK(parse(line));
	CHECK_EQ(v.list.n, 63);
	CHECK(!v.list.value[63]);
	strcat(line, "-t x");
	CHECK_EQ(parse(line), ERR_ARG);
	CHECK_EQ(v.list.n, 63);
	CHECK(strstr(why.reason, "63"));
}

static void test_tool_before_common(void)
{
	/* The tool's row hides a common one of the same name. */
	static const struct opt own[] = {OPT_INT('g', "gain", "N", &v.whole, 0, 9, "own"), OPT_END};
	char *argv[] = {(char *)"tool", (char *)"-g", (char *)"3", (char *)"--gain=4", NULL};
	int argc = 4;
	v = (struct values){0};
	CHECK_OK(opt_parse(own, common, &argc, argv, &why));
	CHECK_EQ(v.whole, 4);
	CHECK_EQ(argc, 1);
}

/* What a function prints to stdout. */
static const char *printed(void (*print)(const struct opt *), const struct opt *rows)
{
	static char text[8192];
	FILE *f = tmpfile();
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	if (!f || saved < 0 || dup2(fileno(f), STDOUT_FILENO) < 0)
		abort();
	print(rows);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void test_help_shows_every_row(void)
{
	const char *help = printed(opt_print_help, table);
	CHECK(strstr(help, "\nFirst:\n"));
	CHECK(strstr(help, "  -a, --flag"));
	CHECK(strstr(help, "      --no-on"));
	CHECK(strstr(help, "  -r, --rate RATE"));
	for (const struct opt *row = table; row->kind != OPT_KIND_END; row++)
		CHECK(strstr(help, row->help));
	CHECK(strstr(printed(opt_print_help, common), "--stats[=SECONDS]"));
	/* No line is wider than a terminal. */
	for (const char *line = help; *line;) {
		size_t n = strcspn(line, "\n");
		CHECK(n < 80);
		line += n + (line[n] == '\n');
	}
}

static void test_dump_is_one_line_a_row(void)
{
	const char *dump = printed(opt_dump, table);
	CHECK(strstr(dump, "i\twhole\tN\tint\t-5\t10\t\ta whole number\n"));
	CHECK(strstr(dump, "-\tno-on\t\tflag\t\t\t\tnot on\n"));
	CHECK(strstr(dump, "r\trate\tRATE\trate\t8000\t192000\t\ta rate\n"));
	CHECK(!strstr(dump, "First"));
	dump = printed(opt_dump, common);
	CHECK(strstr(dump, "c\tcolour\tWORD\tchoice\t\t\tred,green,green-ish\tred, green or green-ish\n"));
	CHECK(strstr(dump, "-\tblue\t\tflag\t\t\t\tsets seven\n"));
}

int main(void)
{
	CHECK_RUN(test_each_kind);
	CHECK_RUN(test_ways_to_write_an_option);
	CHECK_RUN(test_operands_come_to_the_front);
	CHECK_RUN(test_mistakes_are_explained);
	CHECK_RUN(test_times);
	CHECK_RUN(test_numbers);
	CHECK_RUN(test_levels);
	CHECK_RUN(test_a_point_in_every_locale);
	CHECK_RUN(test_a_list_has_an_end);
	CHECK_RUN(test_tool_before_common);
	CHECK_RUN(test_help_shows_every_row);
	CHECK_RUN(test_dump_is_one_line_a_row);
	return check_end();
}
