/*
 * The option table: one row an option, and everything is made from it: parsing, --help, completions, and the check of
 * the man page.  Numbers have their unit, range and default in the row.
 */
#ifndef TOOL_OPT_H
#define TOOL_OPT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum opt_kind {
	OPT_KIND_END,
	OPT_KIND_GROUP,     /* a heading in --help */
	OPT_KIND_FLAG,      /* bool: true when given */
	OPT_KIND_CLEAR,     /* bool: false when given (--no-…) */
	OPT_KIND_INT,       /* int64_t, min…max */
	OPT_KIND_COUNT,     /* int: +1 each time */
	OPT_KIND_TIME,      /* struct opt_time; min, max in seconds */
	OPT_KIND_RATE,      /* uint32_t Hz: 48000 48k 44.1k */
	OPT_KIND_BITRATE,   /* int32_t bit/s: 96k 1.5M */
	OPT_KIND_SIZE,      /* uint64_t bytes: 64K 1M 2G (powers of 1024) */
	OPT_KIND_DB,        /* double dB: -6dB or a bare factor, which is turned into dB */
	OPT_KIND_PERCENT,   /* double, 5% or 5 */
	OPT_KIND_REAL,      /* double, min…max */
	OPT_KIND_CHOICE,    /* int: one of a list of words */
	OPT_KIND_STRING,    /* const char *: points into argv */
	OPT_KIND_LIST,      /* struct opt_list: may be given often */
	OPT_KIND_OPTIONAL,  /* struct opt_optional: --stats[=SECONDS]; the value only with '=' */
};

/* A time: nanoseconds, or frames ("480smp") whose rate is known later. */
struct opt_time {
	bool is_set, is_frames;
	int64_t value;      /* ns, or frames */
};

/* Frames (or other units) at a rate, to nearest. */
int64_t opt_time_frames(const struct opt_time *t, uint32_t rate_num, uint32_t rate_den);

/* The least rate that audio is brought to: 48 is 48k with its k left out. */
#define OPT_LEAST_RATE_HZ 1000u

struct opt_list {
	const char *value[64]; /* NULL-terminated; point into argv */
	unsigned n;
};

struct opt_optional {
	bool is_set;
	double value;       /* the given one, or the row's `unset` */
};

struct opt_choice {
	const char *word;   /* NULL ends the list */
	int value;
};

struct opt {
	enum opt_kind kind;
	char letter;        /* 0: long only */
	const char *name;   /* without "--" */
	const char *arg;    /* the argument's word in help: "RATE"; NULL for flags */
	void *value;        /* where it goes; its default stands there before parsing */
	double min, max;    /* of numbers, in the kind's unit (times: seconds) */
	double unset;       /* OPTIONAL: value when given without one */
	const struct opt_choice *choices;
	int set_to;         /* FLAG with an int target: this value (see OPT_SET) */
	const char *help;   /* a phrase, lower case, no full stop; its default is added by hand where it is not obvious */
};

#define OPT_GROUP(h) { .kind = OPT_KIND_GROUP, .help = (h) }
#define OPT_FLAG(l, n, v, h) { .kind = OPT_KIND_FLAG, .letter = (l), .name = (n), .value = (v), .help = (h) }
#define OPT_CLEAR(l, n, v, h) { .kind = OPT_KIND_CLEAR, .letter = (l), .name = (n), .value = (v), .help = (h) }
#define OPT_COUNT(l, n, v, h) { .kind = OPT_KIND_COUNT, .letter = (l), .name = (n), .value = (v), .help = (h) }
#define OPT_INT(l, n, a, v, lo, hi, h) { .kind = OPT_KIND_INT, .letter = (l), .name = (n), .arg = (a), .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_REAL(l, n, a, v, lo, hi, h) { .kind = OPT_KIND_REAL, .letter = (l), .name = (n), .arg = (a), .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_TIME(l, n, a, v, lo, hi, h) { .kind = OPT_KIND_TIME, .letter = (l), .name = (n), .arg = (a), .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_RATE(l, n, v, lo, hi, h) { .kind = OPT_KIND_RATE, .letter = (l), .name = (n), .arg = "RATE", .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_BITRATE(l, n, v, lo, hi, h) { .kind = OPT_KIND_BITRATE, .letter = (l), .name = (n), .arg = "BITRATE", .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_SIZE(l, n, v, lo, hi, h) { .kind = OPT_KIND_SIZE, .letter = (l), .name = (n), .arg = "SIZE", .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_DB(l, n, v, lo, hi, h) { .kind = OPT_KIND_DB, .letter = (l), .name = (n), .arg = "LEVEL", .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_PERCENT(l, n, v, lo, hi, h) { .kind = OPT_KIND_PERCENT, .letter = (l), .name = (n), .arg = "PCT", .value = (v), .min = (lo), .max = (hi), .help = (h) }
#define OPT_CHOICE(l, n, a, v, c, h) { .kind = OPT_KIND_CHOICE, .letter = (l), .name = (n), .arg = (a), .value = (v), .choices = (c), .help = (h) }
#define OPT_STRING(l, n, a, v, h) { .kind = OPT_KIND_STRING, .letter = (l), .name = (n), .arg = (a), .value = (v), .help = (h) }
#define OPT_LIST(l, n, a, v, h) { .kind = OPT_KIND_LIST, .letter = (l), .name = (n), .arg = (a), .value = (v), .help = (h) }
#define OPT_OPTIONAL(l, n, a, v, lo, hi, un, h) { .kind = OPT_KIND_OPTIONAL, .letter = (l), .name = (n), .arg = (a), .value = (v), .min = (lo), .max = (hi), .unset = (un), .help = (h) }
/* A flag that sets an int to a value: --vbr --cvbr --cbr. */
#define OPT_SET(l, n, v, to, h) { .kind = OPT_KIND_CHOICE, .letter = (l), .name = (n), .arg = NULL, .value = (v), .set_to = (to), .help = (h) }
#define OPT_END { .kind = OPT_KIND_END }

/*
 * Parse argv by one or two tables (the tool's, and the common one; either may be NULL).  Options may stand behind
 * operands; "--" ends them; "-" is an operand.  Operands are moved to the front: argv[1] … argv[*argc − 1].
 * Returns: ERR_OK, ERR_ARG with *why (names the option, quotes the value, states the range).
 */
enum err opt_parse(const struct opt *tool, const struct opt *common, int *argc, char **argv, struct err_why *why) WEIR_MUSTUSE;

/* One value by a row's kind and range: also for values inside operands ("freq=997"). */
enum err opt_value(const struct opt *row, const char *option, const char *text, struct err_why *why) WEIR_MUSTUSE;

/* The tables as text for --help. */
void opt_print_help(const struct opt *table);

/* One line a row, tab-separated: letter, name, argument, kind, min, max, choices, help.  For completions and the page check. */
void opt_dump(const struct opt *table);

/*
 * "-50dB:3s", a level and a time, or the level alone, which leaves *t as it is.  Each by a row of its own: OPT_DB and OPT_TIME.
 * Returns: ERR_OK, ERR_ARG with *why.
 */
enum err opt_level_time(const struct opt *level, const struct opt *time, const char *option, const char *text, struct err_why *why) WEIR_MUSTUSE;

/* "1.5s" "250ms" "1:30" "480smp" "3" … */
enum err opt_parse_time(const char *text, struct opt_time *t) WEIR_MUSTUSE;
/* A number with an optional suffix from `units` ("kM": ×1000 each; "KMG": ×1024 each); a decimal point is a point. */
enum err opt_parse_number(const char *text, const char *units, double factor, double *value) WEIR_MUSTUSE;

#endif
