/*
 * The WAV family: RIFF and its big-endian twin RIFX, RF64 and BW64 (EBU Tech 3306, ITU-R BS.2088: 64-bit sizes in a ds64
 * chunk), and Sony Wave64 (GUIDs for names, 64-bit sizes that count their own header, everything padded to 8).
 *
 * Sizes in these headers are often not true: a program that writes to a pipe cannot know them, and one that was killed
 * never came back to mend them.  The rules, in the order they are tried: a size the input does hold is believed; a
 * stand-in for "unknown" means "to the end"; 0 with audio behind it means "to the end"; a size that went round at 4 GiB is mended;
 * anything else that the input does not hold is a file cut short.  The byte rate and the RIFF size are never believed.
 */
#include "base/bytes.h"
#include "media/chanmap.h"
#include "media/pcmread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WAV_PCM 0x0001u
#define WAV_FLOAT 0x0003u
#define WAV_ALAW 0x0006u
#define WAV_ULAW 0x0007u
#define WAV_EXTENSIBLE 0xFFFEu

#define MAX_CHUNKS 10000u        /* before and behind the audio */
#define MAX_LIST_BYTES 262144u   /* of a chunk of tags; the rest of a larger one is not looked at */
#define TRAILER_BYTES (1u << 20) /* on pipes: what may follow the audio */
#define EXTENSIBLE_BYTES 40u

struct wav {
	bool is_big_endian, is_rf64, is_w64;
	uint64_t ds64_data_bytes;
	bool has_ds64, has_fmt;
	uint32_t mask;
	bool has_mask, is_ambisonic;
	uint16_t code;
	bool is_foreign;          /* a codec that is not ours */
	struct pcmread_format format;
};

struct chunk {
	char id[5];
	uint64_t n_bytes;         /* of its body */
	uint64_t padded_bytes;
};

static uint16_t get16(const struct wav *w, const uint8_t *p)
{
	return w->is_big_endian ? get_be16(p) : get_le16(p);
}

static uint32_t get32(const struct wav *w, const uint8_t *p)
{
	return w->is_big_endian ? get_be32(p) : get_le32(p);
}

static const uint8_t w64_riff[16] = {
	'r', 'i', 'f', 'f', 0x2E, 0x91, 0xCF, 0x11, 0xA5, 0xD6, 0x28, 0xDB, 0x04, 0xC1, 0x00, 0x00,
};
static const uint8_t w64_wave[16] = {
	'w', 'a', 'v', 'e', 0xF3, 0xAC, 0xD3, 0x11, 0x8C, 0xD1, 0x00, 0xC0, 0x4F, 0x8E, 0xDB, 0x8A,
};

/* The form header, at p.  Returns: its length, 0 if it is not of the family. */
static size_t parse_form(struct wav *w, const uint8_t *p, size_t n_bytes)
{
	if (n_bytes >= 40 && !memcmp(p, w64_riff, 16) && !memcmp(p + 24, w64_wave, 16)) {
		w->is_w64 = true;
		return 40;
	}
	if (n_bytes < 12 || memcmp(p + 8, "WAVE", 4))
		return 0;
	w->is_rf64 = !memcmp(p, "RF64", 4) || !memcmp(p, "BW64", 4);
	w->is_big_endian = !memcmp(p, "RIFX", 4);
	if (!w->is_rf64 && !w->is_big_endian && memcmp(p, "RIFF", 4))
		return 0;
	return 12;
}

static size_t chunk_header_bytes(const struct wav *w)
{
	return w->is_w64 ? 24 : 8;
}

static void parse_chunk_header(const struct wav *w, const uint8_t *p, struct chunk *c)
{
	memcpy(c->id, p, 4);
	c->id[4] = '\0';
	if (w->is_w64) {
		uint64_t n = get_le64(p + 16);
		c->n_bytes = n < 24 ? 0 : n - 24;
		c->padded_bytes = c->n_bytes > UINT64_MAX - 8 ? c->n_bytes : (c->n_bytes + 7) / 8 * 8;
	} else {
		c->n_bytes = get32(w, p + 4);
		c->padded_bytes = c->n_bytes + (c->n_bytes & 1);
	}
}

static bool chunk_is(const struct chunk *c, const char *id)
{
	return !memcmp(c->id, id, 4);
}

static void parse_fmt(struct wav *w, const uint8_t *p, size_t n_bytes)
{
	static const uint8_t guid_tail[14] = { 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71 };
	static const uint8_t ambisonic_tail[14] = { 0x00, 0x00, 0x21, 0x07, 0xD3, 0x11, 0x86, 0x44, 0xC8, 0xC1, 0xCA, 0x00, 0x00, 0x00 };
	struct pcmread_format *f = &w->format;

	w->has_fmt = true;
	w->code = get16(w, p);
	f->channels = get16(w, p + 2);
	f->rate_hz = get32(w, p + 4);
	f->is_big_endian = w->is_big_endian;
	unsigned align_bytes = get16(w, p + 12), bits = n_bytes >= 16 ? get16(w, p + 14) : 8;
	unsigned bits_bytes = (bits + 7) / 8;

	f->valid_bits = (uint16_t)bits;
	if (w->code == WAV_EXTENSIBLE && n_bytes >= EXTENSIBLE_BYTES) {
		unsigned valid = get16(w, p + 18);

		w->mask = get32(w, p + 20);
		w->has_mask = true;
		w->code = get16(w, p + 24);
		w->is_ambisonic = !memcmp(p + 26, ambisonic_tail, 14);
		if (!w->is_ambisonic && memcmp(p + 26, guid_tail, 14))
			w->is_foreign = true;
		if (valid && valid <= bits)
			f->valid_bits = (uint16_t)valid;
	}

	/* The container is what a frame says it is, where that can be; else what the bits need. */
	unsigned container = f->channels && align_bytes % f->channels == 0 ? align_bytes / f->channels : 0;
	if (container < bits_bytes || container > 8)
		container = bits_bytes;
	f->container_bytes = (uint8_t)container;
	switch (w->code) {
	case WAV_PCM:
		f->code = container == 1 ? PCMREAD_UNSIGNED : PCMREAD_SIGNED;
		w->is_foreign |= container < 1 || container > 4;
		break;
	case WAV_FLOAT:
		f->code = PCMREAD_FLOAT;
		f->valid_bits = 0;
		w->is_foreign |= container != 4 && container != 8;
		break;
	case WAV_ALAW:
	case WAV_ULAW:
		f->code = w->code == WAV_ALAW ? PCMREAD_ALAW : PCMREAD_ULAW;
		f->container_bytes = 1;
		f->valid_bits = 0;
		break;
	default:
		w->is_foreign = true;
	}
}

/*
 * Is it a codec that libsndfile must read?  Decided in the head, before a byte is taken, so that a pipe can still be
 * handed over whole.
 */
static bool is_foreign(const struct source_bytes *in)
{
	struct wav w = { 0 };
	size_t at = parse_form(&w, in->head, in->head_bytes), header = chunk_header_bytes(&w);

	while (at + header + 16 <= in->head_bytes) {
		struct chunk c;
		parse_chunk_header(&w, in->head + at, &c);
		if (chunk_is(&c, "fmt ")) {
			size_t n = c.n_bytes < in->head_bytes - at - header ? (size_t)c.n_bytes : in->head_bytes - at - header;
			if (n >= 16)
				parse_fmt(&w, in->head + at + header, n);
			return w.is_foreign;
		}
		if (c.padded_bytes > in->head_bytes)
			break;
		at += header + (size_t)c.padded_bytes;
	}
	return false;
}

/* ---- tags ---- */

static void parse_info(struct source *s, const struct wav *w, const uint8_t *p, size_t n_bytes)
{
	static const struct {
		char id[5];
		const char *key;
	} names[] = {
		{ "INAM", "TITLE" }, { "IART", "ARTIST" }, { "IPRD", "ALBUM" }, { "ICRD", "DATE" }, { "ICMT", "COMMENT" },
		{ "IGNR", "GENRE" }, { "ITRK", "TRACKNUMBER" }, { "IPRT", "TRACKNUMBER" }, { "ISFT", "ENCODER" }, { "ICOP", "COPYRIGHT" },
		{ "ISBJ", "SUBJECT" }, { "IENG", "ENGINEER" }, { "ILNG", "LANGUAGE" }, { "ISRC", "SOURCE" }, { "IKEY", "KEYWORDS" },
	};

	for (size_t at = 4; at + 8 <= n_bytes;) {
		size_t size = get32(w, p + at + 4), room = n_bytes - at - 8;

		if (size > room)
			size = room;
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (!memcmp(p + at, names[i].id, 4))
				source_tag(s, names[i].key, (const char *)p + at + 8, size);
		}
		at += 8 + size + (size & 1);
	}
}

/* The broadcast extension (EBU Tech 3285): 256 bytes of description come first. */
static void parse_bext(struct source *s, const uint8_t *p, size_t n_bytes)
{
	source_tag(s, "DESCRIPTION", (const char *)p, n_bytes < 256 ? n_bytes : 256);
}

/* Take a chunk that may hold tags; everything else is stepped over.  Returns: false at the end of the input. */
static bool take_chunk(struct source *s, const struct wav *w, struct source_bytes *in, const struct chunk *c)
{
	uint64_t done = 0;

	if (chunk_is(c, "LIST") || chunk_is(c, "list") || chunk_is(c, "bext")) {
		size_t n = c->n_bytes < MAX_LIST_BYTES ? (size_t)c->n_bytes : MAX_LIST_BYTES;
		uint8_t *body = malloc(n + 1);

		if (body) {
			n = source_bytes_read(in, body, n);
			done = n;
			if (chunk_is(c, "bext"))
				parse_bext(s, body, n);
			else if (n >= 4 && !memcmp(body, "INFO", 4))
				parse_info(s, w, body, n);
		}
		free(body);
	}
	return done + source_bytes_skip(in, c->padded_bytes - done) == c->padded_bytes;
}

/* Tags behind the audio, before it is read: regular files only.  Returns: false if it cannot go back. */
static bool take_trailer(struct source *s, const struct wav *w, struct source_bytes *in, const struct chunk *data)
{
	uint64_t here = in->offset_bytes;
	uint8_t p[24];
	struct chunk c;

	if (data->padded_bytes > in->size_bytes - here || !source_bytes_seek(in, here + data->padded_bytes))
		return source_bytes_seek(in, here);
	for (unsigned i = 0; i < MAX_CHUNKS && source_bytes_read(in, p, chunk_header_bytes(w)) == chunk_header_bytes(w); i++) {
		parse_chunk_header(w, p, &c);
		if (!take_chunk(s, w, in, &c))
			break;
	}
	return source_bytes_seek(in, here);
}

/* ---- opening ---- */

static bool looks_like_chunk(const uint8_t *p, uint64_t size_bytes, uint64_t room_bytes)
{
	for (int i = 0; i < 4; i++) {
		if (p[i] < 0x20 || p[i] > 0x7E)
			return false;
	}
	return size_bytes <= room_bytes;
}

/* A data chunk of no bytes: nothing, or a header that was never finished?  Looks at what follows. */
static bool is_unfinished(const struct wav *w, struct source_bytes *in)
{
	uint8_t p[8];

	if (in->is_regular) {
		uint64_t here = in->offset_bytes, left = in->size_bytes - here;
		if (!left)
			return false;
		size_t n = source_bytes_read(in, p, 8);
		bool chunk = n == 8 && looks_like_chunk(p, get32(w, p + 4), left - 8);
		if (!source_bytes_seek(in, here))
			return false;
		return !chunk;
	}
	/* A pipe cannot be looked into further than the head. */
	if (in->head_used_bytes + 8 <= sizeof(in->head))
		source_bytes_want(in, in->head_used_bytes + 8);
	size_t left = in->head_bytes - in->head_used_bytes;
	const uint8_t *q = in->head + in->head_used_bytes;
	return left && !(left >= 8 && looks_like_chunk(q, get32(w, q + 4), 1u << 24));
}

static struct pcmread_extent find_extent(struct source *s, const struct wav *w, struct source_bytes *in, struct chunk *data)
{
	struct pcmread_extent x;
	uint64_t left = in->size_bytes == SOURCE_SIZE_UNKNOWN ? SOURCE_SIZE_UNKNOWN : in->size_bytes - in->offset_bytes;

	if (w->is_rf64 && data->n_bytes == UINT32_MAX && w->has_ds64) {
		data->n_bytes = w->ds64_data_bytes;
		data->padded_bytes = data->n_bytes + (data->n_bytes & 1);
	}
	/* ffmpeg's Wave64 on a pipe, and RF64 headers nobody came back to, say 0 as well. */
	if (!data->n_bytes && is_unfinished(w, in)) {
		source_note(s, "its header says 0 bytes of audio, but there are some: read to the end");
		return (struct pcmread_extent){ .to_end = true };
	}
	x = pcmread_extent_of(s, in, data->n_bytes);
	if (x.to_end || w->is_w64 || w->is_rf64 || left == SOURCE_SIZE_UNKNOWN)
		return x;

	/* Past 4 GiB a 32-bit size begins again at 0: what is behind the audio is then whole turns of it. */
	if (left > data->n_bytes && (left - data->n_bytes) >> 32 && (left - data->padded_bytes) % ((uint64_t)1 << 32) == 0) {
		source_note(s, "its size went round at 4 GiB: read to the end");
		x.to_end = true;
	}
	return x;
}

static enum err open_data(struct source *s, struct wav *w, struct source_bytes *in, struct chunk *data, struct err_why *why)
{
	const char *name = w->is_w64 ? "W64" : w->is_rf64 ? "RF64" : "WAV";

	if (!w->has_fmt)
		return err_say(why, ERR_FORMAT, s->name, "this %s file has audio before its format is told", name);
	if (w->is_foreign && in->is_regular && source_bytes_seek(in, 0))
		return ERR_AGAIN;
	if (w->is_foreign)
		return err_say(why, ERR_FORMAT, s->name, "WAV with codec 0x%04X behind large chunks cannot be read from a pipe: give it as a file",
			w->code);

	struct pcmread_extent x = find_extent(s, w, in, data);
	enum err e = source_check(s, w->format.rate_hz, w->format.channels, why);
	if (e)
		return e;
	if (in->is_regular && !x.to_end && !take_trailer(s, w, in, data))
		return err_sys(why, s->name);
	x.trailer_bytes = x.to_end ? 0 : TRAILER_BYTES;
	x.pad_bytes = w->is_w64 ? 8 : 2;

	e = pcmread_open(s, in, &w->format, &x, NULL, why);
	if (e)
		return e == ERR_AGAIN ? err_say(why, ERR_FORMAT, s->name, "%u bits in %u bytes a sample: not known here", w->format.valid_bits,
					w->format.container_bytes)
				      : e;

	if (w->is_ambisonic) {
		source_note(s, "ambisonic B-format: channels are kept as they are");
		s->track.layout = TRACK_LAYOUT_DISCRETE;
		s->track.wave_mask = 0;
	} else if (w->has_mask && (unsigned)__builtin_popcount(w->mask) == w->format.channels) {
		s->track.layout = TRACK_LAYOUT_WAVE;
		s->track.wave_mask = w->mask;
	} else if (w->has_mask) {
		s->track.layout = TRACK_LAYOUT_DISCRETE;
		s->track.wave_mask = 0;
		if (w->mask)
			source_note(s, "channel mask 0x%X does not name %u channels: left out", w->mask, w->format.channels);
	} else if (chanmap_guess(&s->track)) {
		source_note(s, "no channel mask: %u channels are taken in the usual order", w->format.channels);
	}
	return ERR_OK;
}

enum err wavread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	struct wav w = { 0 };
	size_t form_bytes = parse_form(&w, in->head, in->head_bytes);
	uint8_t p[64];

	if (!form_bytes || is_foreign(in))
		return ERR_AGAIN;
	size_t header_bytes = chunk_header_bytes(&w);

	(void)source_bytes_skip(in, form_bytes);
	for (unsigned i = 0; i < MAX_CHUNKS; i++) {
		struct chunk c;

		if (source_bytes_read(in, p, header_bytes) < header_bytes)
			break;
		parse_chunk_header(&w, p, &c);
		if (chunk_is(&c, "data"))
			return open_data(s, &w, in, &c, why);

		size_t n = 0;
		if (chunk_is(&c, "fmt ") && c.n_bytes >= 14) {
			n = source_bytes_read(in, p, c.n_bytes < EXTENSIBLE_BYTES ? (size_t)c.n_bytes : EXTENSIBLE_BYTES);
			if (n < 14)
				break;
			parse_fmt(&w, p, n);
		} else if (chunk_is(&c, "ds64") && c.n_bytes >= 24) {
			n = source_bytes_read(in, p, 24);
			if (n < 24)
				break;
			w.has_ds64 = true;
			w.ds64_data_bytes = get_le64(p + 8);
		}
		if (n) {
			if (source_bytes_skip(in, c.padded_bytes - n) < c.padded_bytes - n)
				break;
		} else if (!take_chunk(s, &w, in, &c)) {
			break;
		}
	}
	if (in->sys_errno)
		return source_failed(s, in) ? err_say(why, s->why.err, s->name, "%s", s->why.reason) : ERR_SYS;
	return err_say(why, ERR_FORMAT, s->name, "ends (at byte %" PRIu64 ") before its audio begins", in->offset_bytes);
}
