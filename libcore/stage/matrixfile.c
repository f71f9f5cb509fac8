#include "stage/matrixfile.h"

#include "base/units.h"
#include "tool/opt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FACTOR 1e6

void matrixfile_release(struct matrixfile *m)
{
	free(m->coef);
	memset(m, 0, sizeof(*m));
}

/* "-0.5", "-6dB".  A factor may be negative: that turns the polarity. */
static enum err parse(const char *text, double *value)
{
	bool negative = *text == '-' && !strstr(text, "dB");
	const struct opt row = OPT_DB(0, "", value, -INFINITY, 120, "");

	if (opt_value(&row, "", text + negative, NULL))
		return ERR_FORMAT;
	*value = units_db_to_factor(*value) * (negative ? -1 : 1);
	return ERR_OK;
}

static enum err add(struct matrixfile *m, unsigned *n, unsigned *room, double value)
{
	if (*n == *room) {
		unsigned more = *room ? 2 * *room : 64;
		double *larger = realloc(m->coef, more * sizeof(*larger));
		if (!larger)
			return ERR_NOMEM;
		m->coef = larger;
		*room = more;
	}
	m->coef[(*n)++] = value;
	return ERR_OK;
}

static enum err read_line(struct matrixfile *m, const char *path, unsigned number, char *line, unsigned *n, unsigned *room, struct err_why *why)
{
	char *rest = line, *hash = strchr(line, '#');
	unsigned columns = 0;
	double value;

	if (hash)
		*hash = 0;
	for (char *word; (word = strtok_r(rest, " \t\r\n,;", &rest)); columns++) {
		if (parse(word, &value))
			return err_say(why, ERR_FORMAT, path, "line %u: '%s' is no gain (a factor, or a level as -6dB)", number, word);
		if (columns == MATRIXFILE_MAX_CHANNELS)
			return err_say(why, ERR_LIMIT, path, "line %u: more than %u columns", number, MATRIXFILE_MAX_CHANNELS);
		if (add(m, n, room, value))
			return err_say(why, ERR_NOMEM, path, "%s", err_text(ERR_NOMEM));
	}
	if (!columns)
		return ERR_OK;
	if (m->rows && columns != m->columns)
		return err_say(why, ERR_FORMAT, path, "line %u has %u numbers, the lines before have %u", number, columns, m->columns);
	if (m->rows == MATRIXFILE_MAX_CHANNELS)
		return err_say(why, ERR_LIMIT, path, "more than %u rows", MATRIXFILE_MAX_CHANNELS);
	m->columns = columns;
	m->rows++;
	return ERR_OK;
}

enum err matrixfile_read(struct matrixfile *m, const char *path, struct err_why *why)
{
	FILE *in = NULL;
	char *line = NULL;
	size_t room_bytes = 0;
	unsigned n = 0, room = 0, number = 0;
	enum err e = ERR_OK;

	memset(m, 0, sizeof(*m));
	in = fopen(path, "re");
	if (!in)
		return err_sys(why, path);
	while (!e && getline(&line, &room_bytes, in) >= 0)
		e = read_line(m, path, ++number, line, &n, &room, why);
	if (!e && ferror(in))
		e = err_sys(why, path);
	else if (!e && !m->rows)
		e = err_say(why, ERR_FORMAT, path, "holds no matrix: a row an output channel, a number an input channel");
	if (e)
		matrixfile_release(m);
	free(line);
	fclose(in);
	return e;
}
