#include "stage/dataspec.h"

#include "base/units.h"
#include "tool/opt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last part of a path, as a name. */
static void name_of(const char *place, char out[static 128])
{
	const char *slash = strrchr(place, '/');

	snprintf(out, 128, "%s", slash && slash[1] ? slash + 1 : place);
}

static enum err take_place(struct dataspec *s, const char *option, const char *text, struct err_why *why)
{
	const char *path = text;

	s->fd = -1;
	s->is_socket = !strncmp(text, "unix:", 5);
	s->is_file = !strncmp(text, "file:", 5);
	if (s->is_socket || s->is_file)
		path += 5;
	if (!*path)
		return err_say(why, ERR_ARG, option, "'%s' names no place", text);
	snprintf(s->place, sizeof(s->place), "%s", path);
	if (!strcmp(path, "-") && !s->is_socket)
		s->fd = 0;
	else if (strspn(path, "0123456789") == strlen(path) && strlen(path) < 5 && !s->is_socket)
		s->fd = (int)strtol(path, NULL, 10);
	if (s->fd >= 0)
		snprintf(s->name, sizeof(s->name), s->fd ? "data%d" : "data", s->fd);
	else
		name_of(path, s->name);
	return ERR_OK;
}

static enum err take_number(const char *option, const char *word, const char *text, double max, double *value, struct err_why *why)
{
	if (opt_parse_number(text, "", 1, value) || *value < 1 || *value > max || *value != (uint32_t)*value)
		return err_say(why, ERR_ARG, option, "%s: '%s' is not a whole number from 1 to %.0f", word, text, max);
	return ERR_OK;
}

static enum err take_ttl(struct dataspec *s, const char *option, const char *text, struct err_why *why)
{
	struct opt_time t = { 0 };

	if (opt_parse_time(text, &t) || t.is_frames || t.value < 0 || t.value > (int64_t)DATASPEC_MAX_TTL_MS * 1000000)
		return err_say(why, ERR_ARG, option, "ttl: '%s' is not a time from 0 to 3600 s", text);
	s->ttl_ms = (uint32_t)((t.value + 999999) / 1000000);
	return ERR_OK;
}

static enum err take_word(struct dataspec *s, const char *option, const char *word, bool *has_queue, bool *has_ttl, bool *has_kind, struct err_why *why)
{
	static const struct {
		const char *word;
		uint16_t codec;
	} kinds[] = { { "text", TRACK_UTF8 }, { "json", TRACK_JSON }, { "bytes", TRACK_BYTES }, { "osc", TRACK_OSC }, { "midi", TRACK_MIDI1 } };
	double number;
	enum err e;

	if (!strcmp(word, "reliable") || !strcmp(word, "lossy")) {
		s->is_lossy = word[0] == 'l';
		return ERR_OK;
	}
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(word, kinds[i].word)) {
			s->codec = kinds[i].codec;
			*has_kind = true;
			return ERR_OK;
		}
	if (!strncmp(word, "name=", 5) && word[5]) {
		snprintf(s->name, sizeof(s->name), "%s", word + 5);
		return ERR_OK;
	}
	if (!strncmp(word, "queue=", 6)) {
		e = take_number(option, "queue", word + 6, DATASPEC_MAX_QUEUE, &number, why);
		s->queue = e ? 0 : (uint32_t)number;
		*has_queue = true;
		return e;
	}
	if (!strncmp(word, "ttl=", 4)) {
		*has_ttl = true;
		return take_ttl(s, option, word + 4, why);
	}
	return err_say(why, ERR_ARG, option, "'%s' is not one of name=NAME, reliable, lossy, text, json, bytes, osc, midi, queue=N, ttl=TIME", word);
}

enum err dataspec_parse(struct dataspec *s, const char *option, const char *text, struct err_why *why)
{
	bool has_queue = false, has_ttl = false, has_kind = false;
	char words[512], *at = words;
	enum err e;

	memset(s, 0, sizeof(*s));
	if (strlen(text) >= sizeof(words))
		return err_say(why, ERR_ARG, option, "longer than %zu characters", sizeof(words) - 1);
	snprintf(words, sizeof(words), "%s", text);
	e = take_place(s, option, strsep(&at, ","), why);
	s->codec = s->is_file ? TRACK_BYTES : TRACK_UTF8;
	while (!e && at)
		e = take_word(s, option, strsep(&at, ","), &has_queue, &has_ttl, &has_kind, why);
	if (e)
		return e;
	if (s->is_file && (s->is_lossy || has_kind))
		return err_say(why, ERR_ARG, option, "'%s': a file is whole or nothing: it is reliable, and bytes", text);
	if (has_ttl && !s->is_lossy)
		return err_say(why, ERR_ARG, option, "'%s': ttl is for lossy messages", text);
	if (!has_queue)
		s->queue = s->is_lossy ? DATASPEC_LOSSY_QUEUE : DATASPEC_MAX_QUEUE;
	if (!has_ttl && s->is_lossy)
		s->ttl_ms = DATASPEC_LOSSY_TTL_MS;
	return ERR_OK;
}
