#include "stage/videospec.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static bool all_digits(const char *text)
{
	return text[0] && text[strspn(text, "0123456789")] == 0;
}

/* A decimal point is a point in every locale, and nothing but digits counts. */
static bool parse_decimal(const char *text, double *value)
{
	double v = 0, place = 1;
	bool point = false;

	if (!text[0] || strlen(text) > 16 || text[strspn(text, "0123456789.")] || text[0] == '.')
		return false;
	for (; *text; text++) {
		if (*text == '.') {
			if (point || !text[1])
				return false;
			point = true;
		} else if (point) {
			v += (place /= 10) * (*text - '0');
		} else {
			v = v * 10 + (*text - '0');
		}
	}
	*value = v;
	return true;
}

enum err videospec_parse_rate(const char *text, uint32_t *num, uint32_t *den)
{
	unsigned long long a, b = 1;
	char *end;
	double v;

	if (parse_decimal(text, &v)) {
		if (!(v >= 0.001 && v <= VIDEO_MAX_RATE_HZ))
			return ERR_ARG;
		double up = ceil(v);
		if (v < up && fabs(v - up * 1000 / 1001) < 0.005) {
			a = (unsigned long long)up * 1000;
			b = 1001;
		} else {
			a = (unsigned long long)llround(v * 1000);
			b = 1000;
		}
	} else {
		if (text[0] < '0' || text[0] > '9')
			return ERR_ARG;
		a = strtoull(text, &end, 10);
		if ((*end != '/' && *end != ':') || !all_digits(end + 1))
			return ERR_ARG;
		b = strtoull(end + 1, NULL, 10);
	}
	if (!a || !b || a > UINT32_MAX || b > VIDEO_MAX_RATE_DEN || a > b * VIDEO_MAX_RATE_HZ || b > a * 1000)
		return ERR_ARG;
	uint32_t divisor = common_divisor((uint32_t)a, (uint32_t)b);
	*num = (uint32_t)a / divisor;
	*den = (uint32_t)b / divisor;
	return ERR_OK;
}

/* "1920x1080". */
static bool parse_size(const char *word, uint32_t *width, uint32_t *height)
{
	size_t n = strspn(word, "0123456789");

	if (n == 0 || n > 6 || word[n] != 'x' || !all_digits(word + n + 1) || strlen(word + n + 1) > 6)
		return false;
	*width = (uint32_t)strtoul(word, NULL, 10);
	*height = (uint32_t)strtoul(word + n + 1, NULL, 10);
	return true;
}

static enum err parse_word(struct videospec *s, const char *option, const char *word, struct err_why *why)
{
	uint32_t width, height, num, den;
	const char *twice = NULL;
	const struct video_format *f = video_format_of(word);

	if (!strncmp(word, "name=", 5)) {
		if (s->name[0])
			twice = "name";
		if (!word[5] || strlen(word + 5) >= sizeof(s->name))
			return err_say(why, ERR_ARG, option, "'%s': a name of 1 to %zu bytes", word, sizeof(s->name) - 1);
		memcpy(s->name, word + 5, strlen(word + 5) + 1);
	} else if (parse_size(word, &width, &height)) {
		if (s->width_pixels)
			twice = "WIDTHxHEIGHT";
		if (!width || !height || width > VIDEO_MAX_SIDE_PIXELS || height > VIDEO_MAX_SIDE_PIXELS)
			return err_say(why, ERR_ARG, option, "'%s' is no size (each side 1 to %u pixels)", word, VIDEO_MAX_SIDE_PIXELS);
		s->width_pixels = width;
		s->height_pixels = height;
	} else if (f || !strcmp(word, "y4m")) {
		if (s->format || s->is_y4m)
			twice = "FORMAT";
		s->format = f;
		s->is_y4m = !f;
	} else if (word[0] >= '0' && word[0] <= '9') {
		if (s->rate_num)
			twice = "FPS";
		if (videospec_parse_rate(word, &num, &den))
			return err_say(why, ERR_ARG, option, "'%s' is no rate of pictures (N, N.N or N/D; 0.001 to %u a second)", word, VIDEO_MAX_RATE_HZ);
		s->rate_num = num;
		s->rate_den = den;
	} else {
		return err_say(why, ERR_ARG, option, "'%s' is no picture format (y4m, rgba, yuv420p …: see weir-mux(1))", word);
	}
	return twice ? err_say(why, ERR_ARG, option, "'%s': %s is there already", word, twice) : ERR_OK;
}

enum err videospec_parse(struct videospec *s, const char *option, const char *text, struct err_why *why)
{
	char copy[512];
	char *rest = copy;
	struct video v;
	enum err e;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (strlen(text) >= sizeof(copy))
		return err_say(why, ERR_ARG, option, "more than %zu bytes", sizeof(copy) - 1);
	memcpy(copy, text, strlen(text) + 1);
	const char *place = strsep(&rest, ",");
	if (!place[0] || strlen(place) >= sizeof(s->place))
		return err_say(why, ERR_ARG, option, "'%s' begins with no FIFO, file or descriptor", text);
	memcpy(s->place, place, strlen(place) + 1);
	for (const char *word; (word = strsep(&rest, ","));)
		if ((e = parse_word(s, option, word, why)))
			return e;
	if (!s->format && !s->width_pixels)
		s->is_y4m = true;
	if (!strcmp(s->place, "-"))
		s->fd = 0;
	else if (all_digits(s->place) && strlen(s->place) <= 6)
		s->fd = (int)strtol(s->place, NULL, 10);

	if (!s->is_y4m && (!s->width_pixels || !s->format || !s->rate_num))
		return err_say(why, ERR_ARG, option, "'%s': raw pictures need WIDTHxHEIGHT, FORMAT and FPS; only y4m, which is then said (,y4m), has them itself", text);
	if (s->format && video_init(&v, s->format, s->width_pixels, s->height_pixels))
		return err_say(why, ERR_ARG, option, "'%s': a picture of more than %u MiB", text, VIDEO_MAX_FRAME_BYTES >> 20);
	return ERR_OK;
}
