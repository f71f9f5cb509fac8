/*
 * Core Audio Format with samples that are not compressed: 'lpcm', 'alaw', 'ulaw'.  Big-endian header, 64-bit sizes;
 * −1 for the audio means "to the end of the file", which only the last chunk may say.
 */
#include "base/bytes.h"
#include "media/chanmap.h"
#include "media/pcmread.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAF_MAX_CHUNKS 10000u
#define CAF_MAX_SMALL_BYTES 262144u /* of chunks that are looked into */
#define CAF_FLAG_FLOAT 1u
#define CAF_FLAG_LITTLE 2u
#define CAF_TRAILER_BYTES (1u << 20)

struct caf {
	struct pcmread_format format;
	bool has_desc, has_map;
	struct chanmap map;
};

static double get_be_double(const uint8_t *p)
{
	uint64_t bits = get_be64(p);
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* The 32 bytes of 'desc'.  Returns: false if the codec is not ours. */
static bool parse_desc(struct caf *c, const uint8_t *p)
{
	struct pcmread_format *f = &c->format;
	double rate_hz = get_be_double(p);
	uint32_t flags = get_be32(p + 12), packet_bytes = get_be32(p + 16), packet_frames = get_be32(p + 20);
	uint32_t channels = get_be32(p + 24), bits = get_be32(p + 28);

	c->has_desc = true;
	f->rate_hz = rate_hz >= 0.5 && rate_hz < 4e9 ? (uint32_t)lrint(rate_hz) : 0;
	f->channels = channels <= UINT16_MAX ? (uint16_t)channels : UINT16_MAX;
	f->is_big_endian = !(flags & CAF_FLAG_LITTLE);
	f->valid_bits = bits <= 64 ? (uint16_t)bits : 0;
	if (!memcmp(p + 8, "alaw", 4) || !memcmp(p + 8, "ulaw", 4)) {
		f->code = p[8] == 'a' ? PCMREAD_ALAW : PCMREAD_ULAW;
		f->container_bytes = 1;
		f->valid_bits = 0;
		return true;
	}
	if (memcmp(p + 8, "lpcm", 4) || packet_frames > 1)
		return false;
	f->code = flags & CAF_FLAG_FLOAT ? PCMREAD_FLOAT : PCMREAD_SIGNED;
	uint32_t container = channels && packet_bytes % channels == 0 ? packet_bytes / channels : 0;
	if (container < (bits + 7) / 8)
		container = (bits + 7) / 8;
	f->container_bytes = container <= 8 ? (uint8_t)container : 0;
	return f->code == PCMREAD_FLOAT ? container == 4 || container == 8 : container >= 1 && container <= 4;
}

/* 'info': a count, then pairs of strings, each with its NUL. */
static void parse_info(struct source *s, const uint8_t *p, size_t n_bytes)
{
	static const struct {
		const char *caf, *key;
	} names[] = {
		{ "title", "TITLE" }, { "artist", "ARTIST" }, { "album", "ALBUM" }, { "comments", "COMMENT" }, { "genre", "GENRE" },
		{ "year", "DATE" }, { "recorded date", "DATE" }, { "track number", "TRACKNUMBER" }, { "copyright", "COPYRIGHT" },
		{ "encoding application", "ENCODER" }, { "composer", "COMPOSER" }, { "comment", "COMMENT" }, { "date", "DATE" },
	};

	for (size_t at = 4; at < n_bytes;) {
		const char *key = (const char *)p + at;
		size_t key_bytes = strnlen(key, n_bytes - at);
		if (at + key_bytes + 1 >= n_bytes)
			break;
		const char *value = key + key_bytes + 1;
		size_t value_bytes = strnlen(value, n_bytes - at - key_bytes - 1);

		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (!strcmp(key, names[i].caf))
				source_tag(s, names[i].key, value, value_bytes);
		}
		at += key_bytes + 1 + value_bytes + 1;
	}
}

static bool take_chunk(struct source *s, struct caf *c, struct source_bytes *in, const char *id, uint64_t n_bytes)
{
	uint64_t done = 0;

	if (!memcmp(id, "info", 4) || !memcmp(id, "chan", 4)) {
		size_t n = n_bytes < CAF_MAX_SMALL_BYTES ? (size_t)n_bytes : CAF_MAX_SMALL_BYTES;
		uint8_t *body = malloc(n + 1);

		if (body) {
			n = source_bytes_read(in, body, n);
			done = n;
			if (id[0] == 'i')
				parse_info(s, body, n);
			else if (c->has_desc)
				c->has_map = chanmap_from_apple(&c->map, body, n, c->format.channels);
		}
		free(body);
	}
	return done + source_bytes_skip(in, n_bytes - done) == n_bytes;
}

static enum err open_data(struct source *s, struct caf *c, struct source_bytes *in, uint64_t n_bytes, struct err_why *why)
{
	struct pcmread_extent x = { .to_end = true };
	uint64_t left = in->size_bytes == SOURCE_SIZE_UNKNOWN ? SOURCE_SIZE_UNKNOWN : in->size_bytes - in->offset_bytes;
	uint8_t p[12];

	/* The data chunk begins with 4 bytes that count edits. */
	if (n_bytes == UINT64_MAX || n_bytes < 4)
		source_note(s, "the size in its header is unknown: read to the end");
	else
		x = pcmread_extent_of(s, in, n_bytes - 4);
	if (source_bytes_skip(in, 4) < 4 && n_bytes >= 4 && n_bytes != UINT64_MAX)
		return err_say(why, ERR_FORMAT, s->name, "ends (at byte %" PRIu64 ") before its audio begins", in->offset_bytes);
	if (in->is_regular && !x.to_end && x.promised_bytes <= left - 4) {
		uint64_t here = in->offset_bytes;

		if (source_bytes_seek(in, here + x.promised_bytes)) {
			for (unsigned i = 0; i < CAF_MAX_CHUNKS && source_bytes_read(in, p, 12) == 12; i++) {
				if (!take_chunk(s, c, in, (const char *)p, get_be64(p + 4)))
					break;
			}
		}
		if (!source_bytes_seek(in, here))
			return err_sys(why, s->name);
	}
	x.trailer_bytes = x.to_end ? 0 : CAF_TRAILER_BYTES;

	uint16_t perm[64];
	struct track t = { .channels = c->format.channels };
	bool moved = c->has_map && chanmap_apply(&c->map, &t, perm);
	enum err e = pcmread_open(s, in, &c->format, &x, moved ? perm : NULL, why);
	if (e)
		return e;
	if (t.layout == TRACK_LAYOUT_WAVE) {
		s->track.layout = t.layout;
		s->track.wave_mask = t.wave_mask;
	} else if (c->has_map) {
		source_note(s, "its channel layout has no WAVE mask: channels are kept as they are");
	} else if (chanmap_guess(&s->track)) {
		source_note(s, "no channel layout: %u channels are taken in the usual order", c->format.channels);
	}
	return ERR_OK;
}

enum err cafread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	struct caf c = { 0 };
	uint8_t p[32];

	/* 'desc' must be the first chunk, so the codec stands in the head. */
	if (in->head_bytes < 52 || memcmp(in->head, "caff", 4) || memcmp(in->head + 8, "desc", 4))
		return ERR_AGAIN;
	if (!parse_desc(&c, in->head + 20))
		return ERR_AGAIN;
	uint64_t desc_bytes = get_be64(in->head + 12);
	enum err e = source_check(s, c.format.rate_hz, c.format.channels, why);
	if (e)
		return e;
	(void)source_bytes_skip(in, 20);
	if (source_bytes_skip(in, desc_bytes) == desc_bytes) {
		for (unsigned i = 0; i < CAF_MAX_CHUNKS && source_bytes_read(in, p, 12) == 12; i++) {
			if (!memcmp(p, "data", 4))
				return open_data(s, &c, in, get_be64(p + 4), why);
			if (!take_chunk(s, &c, in, (const char *)p, get_be64(p + 4)))
				break;
		}
	}
	return err_say(why, ERR_FORMAT, s->name, "ends (at byte %" PRIu64 ") before its audio begins", in->offset_bytes);
}
