#include "media/opustags.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

bool opustags_is(const uint8_t *bytes, size_t n_bytes)
{
	return n_bytes >= 8 && memcmp(bytes, "OpusTags", 8) == 0;
}

/* Copy as well-formed UTF-8.  Returns: bytes written, or SIZE_MAX if they do not fit. */
static size_t utf8_copy(uint8_t *to, size_t room, const uint8_t *from, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n;) {
		unsigned length = utf8_length(from + i, n - i);
		size_t add = length ? length : 3;
		if (used + add > room)
			return SIZE_MAX;
		memcpy(to + used, length ? from + i : (const uint8_t *)"\xEF\xBF\xBD", add);
		used += add;
		i += length ? length : 1;
	}
	return used;
}

/* "KEY=value" with a key of printable ASCII and no NUL. */
static bool comment_is_sound(const uint8_t *c, size_t n)
{
	size_t key = 0;
	while (key < n && c[key] >= 0x20 && c[key] <= 0x7D && c[key] != '=')
		key++;
	return key > 0 && key < n && c[key] == '=' && !memchr(c, 0, n);
}

enum err opustags_unpack(struct track *t, const uint8_t *p, size_t n_bytes, struct opustags_report *report)
{
	*report = (struct opustags_report){ 0 };
	uint8_t *tags = malloc(OPUSTAGS_MAX_BYTES);
	if (!tags)
		return ERR_NOMEM;

	size_t used = 0, at = 8;
	uint32_t n_comments = 0;
	if (n_bytes >= at + 4 && get_le32(p + at) <= n_bytes - at - 4) {
		at += 4 + (size_t)get_le32(p + at);
		if (n_bytes - at >= 4) {
			n_comments = get_le32(p + at);
			at += 4;
		} else {
			report->malformed = true;
		}
	} else {
		report->malformed = true;
	}

	/* However many there are said to be, each takes four bytes of the packet at least: the packet bounds the loop. */
	for (uint32_t i = 0; i < n_comments; i++) {
		if (n_bytes - at < 4 || get_le32(p + at) > n_bytes - at - 4) {
			report->malformed = true;
			break;
		}
		size_t length = get_le32(p + at);
		const uint8_t *comment = p + at + 4;
		at += 4 + length;
		size_t kept = SIZE_MAX;
		if (comment_is_sound(comment, length) && used < OPUSTAGS_MAX_BYTES)
			kept = utf8_copy(tags + used, OPUSTAGS_MAX_BYTES - used - 1, comment, length);
		if (kept == SIZE_MAX) {
			report->n_dropped++;
			continue;
		}
		used += kept;
		tags[used++] = 0;
		report->n_kept++;
	}

	enum err e = track_set_tlv(t, TRACK_TLV_TAGS, tags, (uint32_t)used);
	free(tags);
	return e;
}

bool opustags_r128_of_replaygain(const char *text, int16_t gain_q8, int16_t *r128)
{
	const char *c = text;
	while (*c == ' ')
		c++;
	bool negative = *c == '-';
	if (*c == '-' || *c == '+')
		c++;

	/* By hand: strtod() would take the point of the user's locale. */
	double db = 0, unit = 1;
	unsigned n_digits = 0;
	for (; *c >= '0' && *c <= '9' && n_digits < 9; c++, n_digits++)
		db = db * 10 + (*c - '0');
	if (*c == '.')
		for (c++; *c >= '0' && *c <= '9' && n_digits < 18; c++, n_digits++)
			db += (*c - '0') * (unit /= 10);
	while (*c == ' ')
		c++;
	if (!n_digits || (*c && strcasecmp(c, "dB") != 0))
		return false;

	double q8 = round(((negative ? -db : db) - 5.0) * 256.0) - gain_q8;
	*r128 = (int16_t)(q8 < INT16_MIN ? INT16_MIN : q8 > INT16_MAX ? INT16_MAX : q8);
	return true;
}

/* A packet being made; with bytes NULL it only counts. */
struct builder {
	uint8_t *bytes;
	size_t n_bytes;
	uint32_t n_comments;
};

static void build_bytes(struct builder *b, const void *from, size_t n)
{
	if (b->bytes)
		memcpy(b->bytes + b->n_bytes, from, n);
	b->n_bytes += n;
}

static void build_string(struct builder *b, const char *text)
{
	uint8_t length[4];
	size_t n = strlen(text);
	put_le32(length, (uint32_t)n);
	build_bytes(b, length, 4);
	build_bytes(b, text, n);
}

static void build_comment(struct builder *b, const char *text)
{
	build_string(b, text);
	b->n_comments++;
}

/* R128_<which>_GAIN from REPLAYGAIN_<which>_GAIN, if only that is there. */
static void build_r128(struct builder *b, const struct track *t, const char *which, int16_t gain_q8)
{
	char key[32], comment[48];
	int16_t r128;

	snprintf(key, sizeof(key), "R128_%s_GAIN", which);
	if (track_tag(t, key))
		return;
	snprintf(key, sizeof(key), "REPLAYGAIN_%s_GAIN", which);
	const char *text = track_tag(t, key);
	if (!text || !opustags_r128_of_replaygain(text, gain_q8, &r128))
		return;
	snprintf(comment, sizeof(comment), "R128_%s_GAIN=%d", which, r128);
	build_comment(b, comment);
}

static void build_all(struct builder *b, const struct track *t, const char *vendor, int16_t gain_q8)
{
	const char *tag;
	uint8_t count[4];

	build_bytes(b, "OpusTags", 8);
	build_string(b, vendor);
	size_t count_at = b->n_bytes;
	build_bytes(b, "\0\0\0\0", 4);

	for (unsigned i = 0; (tag = track_tag_at(t, i)); i++)
		if (strncasecmp(tag, "REPLAYGAIN_", 11) != 0 && comment_is_sound((const uint8_t *)tag, strlen(tag)))
			build_comment(b, tag);
	build_r128(b, t, "TRACK", gain_q8);
	build_r128(b, t, "ALBUM", gain_q8);
	if (!track_tag(t, "ENCODER"))
		build_comment(b, "ENCODER=weir " WEIR_VERSION);

	put_le32(count, b->n_comments);
	if (b->bytes)
		memcpy(b->bytes + count_at, count, 4);
}

enum err opustags_pack(const struct track *t, const char *vendor, int16_t gain_q8, uint8_t **packet, size_t *n_bytes)
{
	struct builder b = { 0 };

	build_all(&b, t, vendor, gain_q8);
	uint8_t *bytes = malloc(b.n_bytes);
	if (!bytes)
		return ERR_NOMEM;
	b = (struct builder){ .bytes = bytes };
	build_all(&b, t, vendor, gain_q8);
	*packet = bytes;
	*n_bytes = b.n_bytes;
	return ERR_OK;
}
