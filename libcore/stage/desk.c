#include "stage/desk.h"

#include "base/units.h"
#include "tool/opt.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 66

void desk_init(struct desk *d)
{
	memset(d, 0, sizeof(*d));
	d->others.gain = 1;
}

void desk_release(struct desk *d)
{
	free(d->tracks);
	memset(d, 0, sizeof(*d));
}

enum err desk_join(struct desk *d, const char *name)
{
	if (d->n_tracks == d->tracks_room) {
		unsigned room = d->tracks_room ? 2 * d->tracks_room : 16;
		struct desk_track *more = realloc(d->tracks, room * sizeof(*more));
		if (!more)
			return ERR_NOMEM;
		d->tracks = more;
		d->tracks_room = room;
	}
	struct desk_track *t = &d->tracks[d->n_tracks++];
	*t = d->others;
	t->solo = false;
	snprintf(t->name, sizeof(t->name), "%s", name);
	return ERR_OK;
}

double desk_gain(const struct desk *d, unsigned i)
{
	const struct desk_track *t = &d->tracks[i];
	return t->mute || (d->n_solo && !t->solo) ? 0 : t->gain;
}

/* ---- values ---- */

static enum err parse_level(const char *option, const char *text, double *factor, struct err_why *why)
{
	double db;
	const struct opt row = OPT_DB(0, "", &db, -INFINITY, DESK_MAX_GAIN_DB, "");
	enum err e = opt_value(&row, option, text, why);

	if (e)
		return e;
	*factor = units_db_to_factor(db);
	return ERR_OK;
}

static enum err parse_pan(const char *option, const char *text, double *pan, struct err_why *why)
{
	const struct opt row = OPT_REAL(0, "", "", pan, -1, 1, "");
	return opt_value(&row, option, text, why);
}

static enum err parse(const char *which, const char *option, const char *text, double *value, struct err_why *why)
{
	return !strcmp(which, "pan") ? parse_pan(option, text, value, why) : parse_level(option, text, value, why);
}

/* ---- who ---- */

/* All; or those of a name; or, where nobody has such a name, the one of that number. */
struct who {
	const char *name;         /* NULL: not by name */
	unsigned long number;     /* from 1; 0: not by number */
};

static const struct who all = { NULL, 0 };

/* Returns: false if there is nobody. */
static bool find(const struct desk *d, const char *word, struct who *who)
{
	char *end;

	*who = (struct who){ .name = word };
	for (unsigned i = 0; i < d->n_tracks; i++)
		if (!strcmp(d->tracks[i].name, word))
			return true;
	*who = (struct who){ .number = isdigit((unsigned char)*word) ? strtoul(word, &end, 10) : 0 };
	return who->number >= 1 && who->number <= d->n_tracks && !*end;
}

static bool is_meant(const struct desk *d, unsigned i, const struct who *who)
{
	if (who->name)
		return i < d->n_tracks && !strcmp(d->tracks[i].name, who->name);
	return !who->number || who->number - 1 == i;
}

static void set(struct desk *d, const struct who *who, const char *which, double value)
{
	for (unsigned i = 0; i <= d->n_tracks; i++) {
		struct desk_track *t = i < d->n_tracks ? &d->tracks[i] : &d->others;
		if (!is_meant(d, i, who))
			continue;
		if (!strcmp(which, "gain")) {
			t->gain = value;
		} else if (!strcmp(which, "pan")) {
			t->pan = value;
			t->is_panned = true;
		} else if (!strcmp(which, "mute")) {
			t->mute = value != 0;
		} else if (i < d->n_tracks) {
			d->n_solo -= t->solo;
			t->solo = value != 0;
			d->n_solo += t->solo;
		}
	}
}

/* ---- options ---- */

/* "WHO=VALUE" or "VALUE".  Returns: the value; who is cut out, "" for all. */
static const char *split(const char *text, char who[static 128])
{
	const char *equals = strrchr(text, '=');

	who[0] = 0;
	if (!equals)
		return text;
	snprintf(who, 128, "%.*s", (int)(equals - text), text);
	return equals + 1;
}

enum err desk_check_option(const char *which, const char *option, const char *text, struct err_why *why)
{
	char who[128];
	double value;
	const char *number = split(text, who);

	if (number != text && !who[0])
		return err_say(why, ERR_ARG, option, "'%s' names no track in front of the =", text);
	return parse(which, option, number, &value, why);
}

enum err desk_option(struct desk *d, const char *which, const char *option, const char *text, struct err_why *why)
{
	char name[128];
	struct who who = all;
	double value;
	enum err e = parse(which, option, split(text, name), &value, why);

	if (e)
		return e;
	if (name[0] && !find(d, name, &who))
		return err_say(why, ERR_ARG, option, "'%s': no track is called %s, and they are numbered 1 to %u", text, name, d->n_tracks);
	set(d, &who, which, value);
	return ERR_OK;
}

/* ---- commands ---- */

struct reply {
	char *text;
	size_t room_bytes, n_bytes;
};

static void say(struct reply *r, const char *fmt, ...) WEIR_PRINTF(2, 3);
static void say(struct reply *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(r->text + r->n_bytes, r->room_bytes - r->n_bytes, fmt, ap);
	va_end(ap);
	if (n > 0)
		r->n_bytes = r->n_bytes + (size_t)n < r->room_bytes ? r->n_bytes + (size_t)n : r->room_bytes - 1;
}

static void list(const struct desk *d, struct reply *r)
{
	for (unsigned i = 0; i < d->n_tracks; i++) {
		const struct desk_track *t = &d->tracks[i];
		say(r, "%u\t%s\tgain ", i + 1, t->name);
		if (t->gain > 0)
			say(r, "%.2fdB", units_factor_to_db(t->gain));
		else
			say(r, "0");
		if (t->is_panned)
			say(r, "\tpan %g", t->pan);
		say(r, "%s%s\n", t->mute ? "\tmute" : "", t->solo ? "\tsolo" : "");
	}
}

/* Cut into words, in place.  Returns: how many. */
static unsigned words_of(char *line, char **words)
{
	unsigned n = 0;
	char *rest = line;

	for (char *word; n < MAX_WORDS && (word = strtok_r(rest, " \t\r\n", &rest));)
		words[n++] = word;
	return n;
}

static bool set_number(struct desk *d, char **words, unsigned n, struct reply *r)
{
	struct err_why why = { 0 };
	struct who who = all;
	double value;

	if (n < 2 || n > 3) {
		say(r, "error: %s [TRACK] %s\n", words[0], !strcmp(words[0], "pan") ? "-1..1" : "LEVEL");
		return false;
	}
	if (n == 3 && !find(d, words[1], &who)) {
		say(r, "error: no track %s (1 to %u, or a name)\n", words[1], d->n_tracks);
		return false;
	}
	if (parse(words[0], words[0], words[n - 1], &value, &why)) {
		say(r, "error: %s\n", why.reason);
		return false;
	}
	set(d, &who, words[0], value);
	say(r, "ok\n");
	return true;
}

static bool set_flag(struct desk *d, char **words, unsigned n, struct reply *r)
{
	bool off = !strncmp(words[0], "un", 2);
	const char *which = words[0] + (off ? 2 : 0);
	struct who who = all;

	for (unsigned k = 1; k < n; k++)
		if (!find(d, words[k], &who)) {
			say(r, "error: no track %s (1 to %u, or a name)\n", words[k], d->n_tracks);
			return false;
		}
	if (n == 1)
		set(d, &all, which, !off);
	for (unsigned k = 1; k < n; k++)
		if (find(d, words[k], &who))
			set(d, &who, which, !off);
	say(r, "ok\n");
	return true;
}

void desk_command(struct desk *d, const char *line, char *reply, size_t reply_bytes, bool *changes)
{
	struct reply r = { .text = reply, .room_bytes = reply_bytes };
	char copy[1024], *words[MAX_WORDS];

	*changes = false;
	reply[0] = 0;
	snprintf(copy, sizeof(copy), "%s", line);
	unsigned n = words_of(copy, words);
	if (n == 0)
		return;
	if (strlen(line) >= sizeof(copy) || n == MAX_WORDS)
		say(&r, "error: the line is too long\n");
	else if (!strcmp(words[0], "gain") || !strcmp(words[0], "pan"))
		*changes = set_number(d, words, n, &r);
	else if (!strcmp(words[0], "mute") || !strcmp(words[0], "unmute") || !strcmp(words[0], "solo") || !strcmp(words[0], "unsolo"))
		*changes = set_flag(d, words, n, &r);
	else if (!strcmp(words[0], "list"))
		list(d, &r);
	else
		say(&r, "error: '%.80s' is not one of gain, pan, mute, unmute, solo, unsolo, list\n", words[0]);
}
