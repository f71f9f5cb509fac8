#include "tool/opt.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HIGHEST_HZ 768000.0
#define MOST_FRAMES 4e14

/* ---- numbers ---- */

/* Decimal digits, one point, no sign, no exponent, whatever the locale.  Returns: what follows, or NULL if there is no number. */
static const char *parse_decimal(const char *text, double *value)
{
	double v = 0, place = 1;
	int digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		v = v * 10 + (*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits++) {
			place *= 10;
			v = v * 10 + (*text - '0');
		}
	*value = v / place;
	return digits ? text : NULL;
}

static const char *parse_signed(const char *text, double *value)
{
	bool negative = *text == '-';
	text = parse_decimal(text + (*text == '-' || *text == '+'), value);
	if (text && negative)
		*value = -*value;
	return text;
}

enum err opt_parse_number(const char *text, const char *units, double factor, double *value)
{
	const char *rest = parse_signed(text, value);

	if (!rest)
		return ERR_ARG;
	if (!*rest)
		return ERR_OK;
	for (const char *u = units; *u; u++) {
		*value *= factor;
		/* k and K are the same letter here; M is not m. */
		if ((*rest == *u || (*rest == 'k' && *u == 'K') || (*rest == 'K' && *u == 'k')) && !rest[1])
			return ERR_OK;
	}
	return ERR_ARG;
}

enum err opt_parse_time(const char *text, struct opt_time *t)
{
	double part, total = 0;
	int colons = 0;

	for (;;) {
		const char *rest = parse_decimal(text, &part);
		if (!rest)
			return ERR_ARG;
		if (*rest == ':' && colons < 2 && part == floor(part) && (colons == 0 || part < 60)) {
			total = (total + part) * 60;
			colons++;
			text = rest + 1;
			continue;
		}
		if (colons && part >= 60)
			return ERR_ARG;
		if (!colons && !strcmp(rest, "smp")) {
			if (part != floor(part) || part > 9e15)
				return ERR_ARG;
			*t = (struct opt_time){ .is_set = true, .is_frames = true, .value = (int64_t)part };
			return ERR_OK;
		}
		static const struct {
			const char *unit;
			double s;
		} units[] = { { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "m", 60 }, { "min", 60 }, { "h", 3600 } };
		for (size_t i = 0; i < ARRAY_LEN(units); i++)
			if (!strcmp(rest, units[i].unit) && !(colons && *rest)) {
				total = (total + part) * units[i].s;
				if (total > 9e9)
					return ERR_ARG;
				*t = (struct opt_time){ .is_set = true, .value = llrint(total * UNITS_NS_PER_S) };
				return ERR_OK;
			}
		return ERR_ARG;
	}
}

int64_t opt_time_frames(const struct opt_time *t, uint32_t rate_num, uint32_t rate_den)
{
	return t->is_frames ? t->value : units_from_ns(t->value, rate_num, rate_den);
}

/* "-6dB" → −6; a bare factor → its decibels; "-inf" and "-infdB" → what a factor of 0 is. */
static enum err parse_db(const char *text, double *db)
{
	const char *rest = parse_signed(text, db);

	if (!strcasecmp(text, "-inf") || !strcasecmp(text, "-infdB")) {
		*db = -INFINITY;
		return ERR_OK;
	}
	if (!rest)
		return ERR_ARG;
	if (!strcmp(rest, "dB") || !strcmp(rest, "db") || !strcmp(rest, "DB"))
		return ERR_OK;
	if (*rest || *db < 0)
		return ERR_ARG;
	*db = units_factor_to_db(*db);
	return ERR_OK;
}

/* A number without needless digits. */
static const char *plain(double v, char out[static 32])
{
	snprintf(out, 32, v == floor(v) && fabs(v) < 1e15 ? "%.0f" : "%g", v);
	return out;
}

/* ---- one value ---- */

static enum err parse_by_kind(const struct opt *row, const char *text, double *v)
{
	switch (row->kind) {
	case OPT_KIND_RATE: {
		size_t n = strlen(text);
		char bare[32];
		/* "48kHz" and "48000Hz" are what people write. */
		if (n > 2 && n < sizeof(bare) && !strcmp(text + n - 2, "Hz")) {
			memcpy(bare, text, n - 2);
			bare[n - 2] = 0;
			text = bare;
			return opt_parse_number(text, "kM", 1000, v);
		}
		return opt_parse_number(text, "kM", 1000, v);
	}
	case OPT_KIND_BITRATE:
		return opt_parse_number(text, "kM", 1000, v);
	case OPT_KIND_SIZE:
		return opt_parse_number(text, "KMGT", 1024, v);
	case OPT_KIND_DB:
		return parse_db(text, v);
	case OPT_KIND_PERCENT: {
		const char *rest = parse_signed(text, v);
		return rest && (!*rest || !strcmp(rest, "%")) ? ERR_OK : ERR_ARG;
	}
	case OPT_KIND_INT:
		return opt_parse_number(text, "", 1, v) || *v != floor(*v) ? ERR_ARG : ERR_OK;
	default:
		return opt_parse_number(text, "", 1, v);
	}
}

static void store_number(const struct opt *row, double v)
{
	switch (row->kind) {
	case OPT_KIND_RATE: *(uint32_t *)row->value = (uint32_t)lrint(v); break;
	case OPT_KIND_BITRATE: *(int32_t *)row->value = (int32_t)lrint(v); break;
	case OPT_KIND_SIZE: *(uint64_t *)row->value = (uint64_t)v; break;
	case OPT_KIND_INT: *(int64_t *)row->value = (int64_t)v; break;
	case OPT_KIND_OPTIONAL: *(struct opt_optional *)row->value = (struct opt_optional){ .is_set = true, .value = v }; break;
	default: *(double *)row->value = v; break;
	}
}

static const char *what_is_wanted(enum opt_kind kind)
{
	switch (kind) {
	case OPT_KIND_RATE: return "a rate in Hz, as 48000 or 44.1k,";
	case OPT_KIND_BITRATE: return "bits a second, as 96000 or 96k,";
	case OPT_KIND_SIZE: return "a size in bytes, as 65536 or 64K,";
	case OPT_KIND_DB: return "a level, as -6dB or a factor,";
	case OPT_KIND_PERCENT: return "a percentage, as 5%,";
	case OPT_KIND_INT: return "a whole number";
	case OPT_KIND_TIME: return "a time, as 1.5s, 250ms, 1:30 or 480smp,";
	default: return "a number";
	}
}

static const char *unit_of(enum opt_kind kind)
{
	switch (kind) {
	case OPT_KIND_RATE: return " Hz";
	case OPT_KIND_BITRATE: return " bit/s";
	case OPT_KIND_SIZE: return " bytes";
	case OPT_KIND_DB: return " dB";
	case OPT_KIND_PERCENT: return " %";
	case OPT_KIND_TIME: return " s";
	default: return "";
	}
}

/* A bare number that is too small, of what people count in thousands, lacks a k; a level that is negative its dB. */
static const char *unit_left_out(const struct opt *row, const char *text)
{
	double v;
	const char *rest = parse_signed(text, &v);

	if (!rest || *rest)
		return "";
	if ((row->kind == OPT_KIND_RATE || row->kind == OPT_KIND_BITRATE) && v < row->min && v * 1000 >= row->min && v * 1000 <= row->max)
		return "k";
	return row->kind == OPT_KIND_DB && v < 0 && v >= row->min && v <= row->max ? "dB" : "";
}

static enum err say_range(const struct opt *row, const char *option, const char *text, struct err_why *why)
{
	char lo[32], hi[32], meant[80] = "";
	const char *unit = unit_left_out(row, text);

	if (*unit)
		snprintf(meant, sizeof(meant), "; is %.40s%s meant?", text, unit);
	return err_say(why, ERR_ARG, option, "'%s' is not %s from %s to %s%s%s", text, what_is_wanted(row->kind), plain(row->min, lo),
		plain(row->max, hi), unit_of(row->kind), meant);
}

static enum err time_value(const struct opt *row, const char *option, const char *text, struct err_why *why)
{
	struct opt_time t;

	if (opt_parse_time(text, &t))
		return say_range(row, option, text, why);
	double s = (double)t.value / UNITS_NS_PER_S;
	if (!t.is_frames && (s < row->min || s > row->max))
		return say_range(row, option, text, why);
	/* Of frames the rate is not known yet: what is too many at any rate, or at 48 kHz more nanoseconds than there are. */
	if (t.is_frames && ((t.value == 0 && row->min > 0) || (double)t.value > fmin(row->max * HIGHEST_HZ, MOST_FRAMES)))
		return say_range(row, option, text, why);
	*(struct opt_time *)row->value = t;
	return ERR_OK;
}

static enum err choice_value(const struct opt *row, const char *option, const char *text, struct err_why *why)
{
	char list[200] = "";
	size_t n = 0;

	for (const struct opt_choice *c = row->choices; c->word; c++) {
		if (!strcmp(c->word, text)) {
			*(int *)row->value = c->value;
			return ERR_OK;
		}
		if (n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", c->word);
	}
	return err_say(why, ERR_ARG, option, "'%s' is not one of %s", text, list);
}

enum err opt_value(const struct opt *row, const char *option, const char *text, struct err_why *why)
{
	double v;

	switch (row->kind) {
	case OPT_KIND_STRING:
		*(const char **)row->value = text;
		return ERR_OK;
	case OPT_KIND_LIST: {
		struct opt_list *list = row->value;
		if (list->n >= ARRAY_LEN(list->value) - 1)
			return err_say(why, ERR_ARG, option, "given more than %zu times", ARRAY_LEN(list->value) - 1);
		list->value[list->n++] = text;
		list->value[list->n] = NULL;
		return ERR_OK;
	}
	case OPT_KIND_CHOICE:
		return choice_value(row, option, text, why);
	case OPT_KIND_TIME:
		return time_value(row, option, text, why);
	default:
		if (parse_by_kind(row, text, &v) || !(v >= row->min && v <= row->max))
			return say_range(row, option, text, why);
		store_number(row, v);
		return ERR_OK;
	}
}

enum err opt_level_time(const struct opt *level, const struct opt *time, const char *option, const char *text, struct err_why *why)
{
	size_t n = strcspn(text, ":");
	char word[32];

	snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), text);
	enum err e = opt_value(level, option, word, why);
	return e || !text[n] ? e : opt_value(time, option, text + n + 1, why);
}

/* ---- the command line ---- */

static bool takes_argument(const struct opt *row)
{
	return row->arg && row->kind != OPT_KIND_OPTIONAL;
}

static void set_flag(const struct opt *row)
{
	switch (row->kind) {
	case OPT_KIND_FLAG: *(bool *)row->value = true; break;
	case OPT_KIND_CLEAR: *(bool *)row->value = false; break;
	case OPT_KIND_COUNT: ++*(int *)row->value; break;
	case OPT_KIND_CHOICE: *(int *)row->value = row->set_to; break;
	case OPT_KIND_OPTIONAL: *(struct opt_optional *)row->value = (struct opt_optional){ .is_set = true, .value = row->unset }; break;
	default: break;
	}
}

static const struct opt *find_long(const struct opt *const tables[2], const char *name, size_t length)
{
	for (int t = 0; t < 2; t++)
		for (const struct opt *row = tables[t]; row && row->kind != OPT_KIND_END; row++)
			if (row->name && strlen(row->name) == length && !strncmp(row->name, name, length))
				return row;
	return NULL;
}

static const struct opt *find_letter(const struct opt *const tables[2], char letter)
{
	for (int t = 0; t < 2; t++)
		for (const struct opt *row = tables[t]; row && row->kind != OPT_KIND_END; row++)
			if (row->letter == letter && row->kind != OPT_KIND_GROUP)
				return row;
	return NULL;
}

/* How many letters must be changed, put in or left out to make b of a, of names up to 31 long; two that are exchanged are one. */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned row[3][32]; /* of the prefixes of a: this one, the one before, and the one before that */

	for (size_t j = 0; j <= n_b; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n_a; i++) {
		memcpy(row[2], row[1], sizeof(row[1]));
		memcpy(row[1], row[0], sizeof(row[0]));
		row[0][0] = (unsigned)i;
		for (size_t j = 1; j <= n_b; j++) {
			unsigned least = row[1][j - 1] + (a[i - 1] != b[j - 1]);
			least = row[1][j] + 1 < least ? row[1][j] + 1 : least;
			least = row[0][j - 1] + 1 < least ? row[0][j - 1] + 1 : least;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && row[2][j - 2] + 1 < least)
				least = row[2][j - 2] + 1;
			row[0][j] = least;
		}
	}
	return row[0][n_b];
}

/* The option that may have been meant: its beginning was given, or it is a slip or two away.  NULL: none comes near. */
static const char *nearest(const struct opt *const tables[2], const char *name, size_t length)
{
	unsigned least = length < 5 ? 2 : 3; /* and fewer than that */
	const char *found = NULL;

	if (length < 2 || length > 31)
		return NULL;
	for (int t = 0; t < 2; t++)
		for (const struct opt *row = tables[t]; row && row->kind != OPT_KIND_END; row++) {
			size_t n = row->name ? strlen(row->name) : 0;
			if (!n || n > 31)
				continue;
			unsigned d = length > 2 && length < n && !strncmp(row->name, name, length) ? 0 : distance(name, length, row->name, n);
			if (d < least) {
				least = d;
				found = row->name;
			}
		}
	return found;
}

static enum err parse_long(const struct opt *const tables[2], const char *arg, char **argv, int argc, int *i, struct err_why *why)
{
	const char *name = arg + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	char shown[80];
	const struct opt *row = find_long(tables, name, length);

	snprintf(shown, sizeof(shown), "--%.*s", (int)(length > 70 ? 70 : length), name);
	if (!row) {
		const char *near = nearest(tables, name, length);
		return err_say(why, ERR_ARG, shown, near ? "is not an option; did you mean --%s? (--help lists them)" : "is not an option (--help lists them)", near);
	}
	if (row->kind == OPT_KIND_OPTIONAL && equals)
		return opt_value(row, shown, equals + 1, why);
	if (!takes_argument(row)) {
		if (equals)
			return err_say(why, ERR_ARG, shown, "takes no value, '%s' was given", equals + 1);
		set_flag(row);
		return ERR_OK;
	}
	if (equals)
		return opt_value(row, shown, equals + 1, why);
	if (*i + 1 >= argc)
		return err_say(why, ERR_ARG, shown, "needs a value: %s", row->arg);
	return opt_value(row, shown, argv[++*i], why);
}

static enum err parse_short(const struct opt *const tables[2], const char *arg, char **argv, int argc, int *i, struct err_why *why)
{
	for (const char *c = arg + 1; *c; c++) {
		const struct opt *row = find_letter(tables, *c);
		char shown[4] = { '-', *c, 0, 0 };
		if (!row) {
			if (c == arg + 1)
				return err_say(why, ERR_ARG, arg, "is not an option (--help lists them; a file of that name is ./%s)", arg);
			return err_say(why, ERR_ARG, arg, "%s is not an option (--help lists them; a file of that name is ./%s)", shown, arg);
		}
		if (!takes_argument(row)) {
			set_flag(row);
			continue;
		}
		if (c[1])
			return opt_value(row, shown, c + 1, why);
		if (*i + 1 >= argc)
			return err_say(why, ERR_ARG, shown, "needs a value: %s", row->arg);
		return opt_value(row, shown, argv[++*i], why);
	}
	return ERR_OK;
}

enum err opt_parse(const struct opt *tool, const struct opt *common, int *argc, char **argv, struct err_why *why)
{
	const struct opt *const tables[2] = { tool, common };
	int n_operands = 1;
	bool options_end = false;

	for (int i = 1; i < *argc; i++) {
		char *arg = argv[i];
		enum err e = ERR_OK;
		if (options_end || arg[0] != '-' || !arg[1])
			argv[n_operands++] = arg;
		else if (!strcmp(arg, "--"))
			options_end = true;
		else if (arg[1] == '-')
			e = parse_long(tables, arg, argv, *argc, &i, why);
		else
			e = parse_short(tables, arg, argv, *argc, &i, why);
		if (e)
			return e;
	}
	*argc = n_operands < *argc ? n_operands : *argc;
	argv[*argc] = NULL;
	return ERR_OK;
}

/* ---- the table as text ---- */

static void wrap(const char *text, int indent, int column)
{
	while (*text) {
		size_t word = strcspn(text, " ");
		if (column + (int)word > 79 && column > indent) {
			printf("\n%*s", indent, "");
			column = indent;
		}
		printf("%.*s", (int)word, text);
		column += (int)word;
		text += word;
		if (*text == ' ') {
			text++;
			if (column < 79)
				putchar(' ');
			column++;
		}
	}
	putchar('\n');
}

void opt_print_help(const struct opt *table)
{
	for (const struct opt *row = table; row && row->kind != OPT_KIND_END; row++) {
		if (row->kind == OPT_KIND_GROUP) {
			printf("\n%s\n", row->help);
			continue;
		}
		char left[80];
		int n = row->letter ? snprintf(left, sizeof(left), "  -%c, ", row->letter) : snprintf(left, sizeof(left), "      ");
		n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", row->name);
		if (row->arg)
			n += snprintf(left + n, sizeof(left) - (size_t)n, row->kind == OPT_KIND_OPTIONAL ? "[=%s]" : " %s", row->arg);
		printf("%s", left);
		if (n > 29) {
			printf("\n%*s", 30, "");
			n = 30;
		} else {
			printf("%*s", 30 - n, "");
		}
		wrap(row->help, 30, 30);
	}
}

void opt_dump(const struct opt *table)
{
	static const char *const kinds[] = {
		[OPT_KIND_FLAG] = "flag", [OPT_KIND_CLEAR] = "flag", [OPT_KIND_COUNT] = "flag", [OPT_KIND_INT] = "int",
		[OPT_KIND_TIME] = "time", [OPT_KIND_RATE] = "rate", [OPT_KIND_BITRATE] = "bitrate", [OPT_KIND_SIZE] = "size",
		[OPT_KIND_DB] = "db", [OPT_KIND_PERCENT] = "percent", [OPT_KIND_REAL] = "real", [OPT_KIND_CHOICE] = "choice",
		[OPT_KIND_STRING] = "string", [OPT_KIND_LIST] = "list", [OPT_KIND_OPTIONAL] = "optional",
	};
	for (const struct opt *row = table; row && row->kind != OPT_KIND_END; row++) {
		char lo[32] = "", hi[32] = "";
		if (row->kind == OPT_KIND_GROUP)
			continue;
		if (row->min != row->max) {
			plain(row->min, lo);
			plain(row->max, hi);
		}
		const char *kind = row->kind == OPT_KIND_CHOICE && !row->choices ? "flag" : kinds[row->kind];
		printf("%c\t%s\t%s\t%s\t%s\t%s\t", row->letter ? row->letter : '-', row->name, row->arg ? row->arg : "", kind, lo, hi);
		for (const struct opt_choice *c = row->choices; c && c->word; c++)
			printf("%s%s", c == row->choices ? "" : ",", c->word);
		printf("\t%s\n", row->help);
	}
}
