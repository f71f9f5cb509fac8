#include "media/y4m.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Colour spaces that differ only in where the colour samples sit, and so are one layout here. */
static const struct {
	const char *y4m, *format;
} aliases[] = {
	{ "420", "yuv420p" }, { "420mpeg2", "yuv420p" }, { "420paldv", "yuv420p" }, { "420unspecified", "yuv420p" },
};

static const struct video_format *format_of(const char *space)
{
	const struct video_format *f;

	for (unsigned i = 0; i < ARRAY_LEN(aliases); i++)
		if (!strcmp(aliases[i].y4m, space))
			return video_format_of(aliases[i].format);
	for (unsigned i = 0; (f = video_format_at(i)); i++)
		if (f->y4m && !strcmp(f->y4m, space))
			return f;
	return NULL;
}

/* "30000:1001"; both parts 0…limit.  Returns: false if it is none. */
static bool parse_pair(const char *text, uint32_t limit, uint32_t *a, uint32_t *b)
{
	char *end;
	unsigned long long x, y;

	if (text[0] < '0' || text[0] > '9')
		return false;
	x = strtoull(text, &end, 10);
	if (*end != ':' || end[1] < '0' || end[1] > '9')
		return false;
	y = strtoull(end + 1, &end, 10);
	if (*end || x > limit || y > limit)
		return false;
	*a = (uint32_t)x;
	*b = (uint32_t)y;
	return true;
}

static bool parse_side(const char *text, uint32_t *side)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || n > UINT32_MAX)
		return false;
	*side = (uint32_t)n;
	return true;
}

enum err y4m_parse(const char *line, const char *name, struct video *v, uint32_t *rate_num, uint32_t *rate_den, struct err_why *why)
{
	uint32_t width = 0, height = 0, aspect_num = 0, aspect_den = 0;
	char copy[Y4M_MAX_HEADER_BYTES], space[32] = "420jpeg";
	char *rest = NULL;

	*rate_num = *rate_den = 0;
	memset(v, 0, sizeof(*v));
	if (strlen(line) >= sizeof(copy))
		return err_say(why, ERR_LIMIT, name, "a y4m header of %zu bytes (1 to %u)", strlen(line), Y4M_MAX_HEADER_BYTES - 1);
	memcpy(copy, line, strlen(line) + 1);
	const char *word = strtok_r(copy, " ", &rest);
	if (!word || strcmp(word, Y4M_MAGIC))
		return err_say(why, ERR_FORMAT, name, "no y4m header");
	while ((word = strtok_r(NULL, " ", &rest))) {
		bool good = true;
		switch (word[0]) {
		case 'W': good = parse_side(word + 1, &width); break;
		case 'H': good = parse_side(word + 1, &height); break;
		case 'F': good = parse_pair(word + 1, UINT32_MAX, rate_num, rate_den); break;
		case 'A': good = parse_pair(word + 1, UINT16_MAX, &aspect_num, &aspect_den); break;
		case 'C': good = snprintf(space, sizeof(space), "%s", word + 1) < (int)sizeof(space); break;
		}
		if (!good)
			return err_say(why, ERR_FORMAT, name, "its y4m header has '%.40s'", word);
	}
	const struct video_format *f = format_of(space);
	if (!f)
		return err_say(why, ERR_FORMAT, name, "y4m with the colour space '%.32s' is not known here", space);
	if (video_init(v, f, width, height))
		return err_say(why, ERR_LIMIT, name, "its y4m header says %" PRIu32 "x%" PRIu32 " (sides of 1 to %u, frames of at most %u MiB)", width, height,
			VIDEO_MAX_SIDE_PIXELS, VIDEO_MAX_FRAME_BYTES >> 20);
	v->aspect_num = (uint16_t)aspect_num;
	v->aspect_den = (uint16_t)aspect_den;
	if (!*rate_num || !*rate_den)
		*rate_num = *rate_den = 0;
	return ERR_OK;
}

/* The header it came with, if that still says what the track says. */
static bool print_original(const struct track *t, const struct video *v, char out[static Y4M_MAX_HEADER_BYTES])
{
	struct video said;
	uint32_t rate_num, rate_den, n = 0;
	const uint8_t *header = track_tlv(t, TRACK_TLV_CODEC_PRIVATE, &n);

	if (!header || n == 0 || n > Y4M_MAX_HEADER_BYTES - 2 || memchr(header, 0, n) || memchr(header, '\n', n))
		return false;
	memcpy(out, header, n);
	out[n] = 0;
	if (y4m_parse(out, "", &said, &rate_num, &rate_den, NULL))
		return false;
	if (said.width_pixels != v->width_pixels || said.height_pixels != v->height_pixels || said.fourcc != v->fourcc)
		return false;
	if (rate_num && (uint64_t)rate_num * t->rate_den != (uint64_t)t->rate_num * rate_den)
		return false;
	out[n] = '\n';
	out[n + 1] = 0;
	return true;
}

enum err y4m_print(const struct track *t, char out[static Y4M_MAX_HEADER_BYTES])
{
	struct video v;
	enum err e = video_of_track(&v, t);
	const struct video_format *f = e ? NULL : video_format_by_fourcc(v.fourcc);

	if (!f || !f->y4m)
		return ERR_FORMAT;
	if (print_original(t, &v, out))
		return ERR_OK;
	snprintf(out, Y4M_MAX_HEADER_BYTES, Y4M_MAGIC " W%" PRIu32 " H%" PRIu32 " F%" PRIu32 ":%" PRIu32 " Ip A%u:%u C%s\n", v.width_pixels, v.height_pixels,
		t->rate_num, t->rate_den, v.aspect_num, v.aspect_den, f->y4m);
	return ERR_OK;
}
