/*
 * AIFF and AIFF-C with samples that are not compressed.  Big-endian IFF chunks: COMM tells the format, SSND holds the
 * audio; they may come in either order, which a pipe cannot mend.
 */
#include "base/bytes.h"
#include "media/chanmap.h"
#include "media/pcmread.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AIFF_MAX_CHUNKS 10000u
#define AIFF_MAX_SMALL_BYTES 262144u
#define AIFF_TRAILER_BYTES (1u << 20)

struct aiff {
	bool is_aifc, has_comm, has_ssnd, is_foreign, has_map;
	uint32_t n_frames;
	struct pcmread_format format;
	struct chanmap map;
	uint64_t data_offset_bytes, data_bytes; /* of the samples */
};

/* An 80-bit float, as far as a sample rate needs it: IEEE 754 extended, big-endian. */
static double get_extended(const uint8_t *p)
{
	int exponent = ((p[0] & 0x7F) << 8 | p[1]) - 16383 - 63;

	return ldexp((double)get_be64(p + 2), exponent) * (p[0] & 0x80 ? -1 : 1);
}

static void parse_comm(struct aiff *a, const uint8_t *p, size_t n_bytes)
{
	static const struct {
		char id[5];
		enum pcmread_code code;
		uint8_t container_bytes; /* 0: by the bits */
		bool is_little_endian;
	} codecs[] = {
		{ "NONE", PCMREAD_SIGNED, 0, false }, { "twos", PCMREAD_SIGNED, 0, false }, { "sowt", PCMREAD_SIGNED, 0, true },
		{ "in24", PCMREAD_SIGNED, 3, false }, { "in32", PCMREAD_SIGNED, 4, false }, { "42ni", PCMREAD_SIGNED, 3, true },
		{ "23ni", PCMREAD_SIGNED, 4, true }, { "raw ", PCMREAD_UNSIGNED, 1, false }, { "fl32", PCMREAD_FLOAT, 4, false },
		{ "FL32", PCMREAD_FLOAT, 4, false }, { "fl64", PCMREAD_FLOAT, 8, false }, { "FL64", PCMREAD_FLOAT, 8, false },
		{ "alaw", PCMREAD_ALAW, 1, false }, { "ALAW", PCMREAD_ALAW, 1, false }, { "ulaw", PCMREAD_ULAW, 1, false },
		{ "ULAW", PCMREAD_ULAW, 1, false },
	};
	struct pcmread_format *f = &a->format;
	const char *id = a->is_aifc && n_bytes >= 22 ? (const char *)p + 18 : "NONE";
	double rate_hz = get_extended(p + 8);
	unsigned bits = get_be16(p + 6);

	a->has_comm = a->is_foreign = true;
	a->n_frames = get_be32(p + 2);
	f->channels = get_be16(p);
	f->rate_hz = rate_hz >= 0.5 && rate_hz < 4e9 ? (uint32_t)lrint(rate_hz) : 0;
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
		if (memcmp(id, codecs[i].id, 4))
			continue;
		unsigned container = codecs[i].container_bytes ? codecs[i].container_bytes : (bits + 7) / 8;
		f->code = codecs[i].code;
		f->is_big_endian = !codecs[i].is_little_endian;
		f->container_bytes = container <= 8 ? (uint8_t)container : 0;
		f->valid_bits = (uint16_t)bits;
		a->is_foreign = f->code == PCMREAD_SIGNED && (container < 1 || container > 4);
	}
}

static void take_small(struct source *s, struct aiff *a, const char *id, const uint8_t *p, size_t n)
{
	if (!memcmp(id, "COMM", 4) && n >= 18)
		parse_comm(a, p, n);
	else if (!memcmp(id, "CHAN", 4) && a->has_comm)
		a->has_map = chanmap_from_apple(&a->map, p, n, a->format.channels);
	else if (!memcmp(id, "NAME", 4))
		source_tag(s, "TITLE", (const char *)p, n);
	else if (!memcmp(id, "AUTH", 4))
		source_tag(s, "ARTIST", (const char *)p, n);
	else if (!memcmp(id, "ANNO", 4))
		source_tag(s, "COMMENT", (const char *)p, n);
	else if (!memcmp(id, "(c) ", 4))
		source_tag(s, "COPYRIGHT", (const char *)p, n);
}

static bool is_small(const char *id)
{
	static const char ids[][5] = { "COMM", "CHAN", "NAME", "AUTH", "ANNO", "(c) " };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		if (!memcmp(id, ids[i], 4))
			return true;
	}
	return false;
}

/* One chunk, header taken.  Returns: false at the end of the input. */
static bool take_chunk(struct source *s, struct aiff *a, struct source_bytes *in, const char *id, uint64_t n_bytes)
{
	uint64_t padded = n_bytes + (n_bytes & 1), done = 0;

	if (is_small(id)) {
		size_t n = n_bytes < AIFF_MAX_SMALL_BYTES ? (size_t)n_bytes : AIFF_MAX_SMALL_BYTES;
		uint8_t *body = malloc(n + 1);

		if (body) {
			n = source_bytes_read(in, body, n);
			done = n;
			take_small(s, a, id, body, n);
		}
		free(body);
	}
	return done + source_bytes_skip(in, padded - done) == padded;
}

/* SSND, header taken: an offset and a block size come before the samples. */
static bool take_ssnd(struct aiff *a, struct source_bytes *in, uint64_t n_bytes)
{
	uint8_t p[8];

	if (source_bytes_read(in, p, 8) < 8)
		return false;
	uint64_t offset = get_be32(p);
	if (source_bytes_skip(in, offset) < offset)
		return false;
	a->has_ssnd = true;
	a->data_offset_bytes = in->offset_bytes;
	a->data_bytes = n_bytes > 8 + offset ? n_bytes - 8 - offset : 0;
	return true;
}

/* How much audio there is, from three numbers that may disagree: COMM's frames, SSND's size, the input's end. */
static struct pcmread_extent find_extent(struct source *s, const struct aiff *a, struct source_bytes *in)
{
	uint64_t frame_bytes = (uint64_t)a->format.channels * a->format.container_bytes, comm_bytes = a->n_frames * frame_bytes;
	bool follows = !in->is_regular || in->size_bytes > in->offset_bytes;
	struct pcmread_extent x = { .promised_bytes = comm_bytes };

	if (!a->data_bytes && !a->n_frames && follows) {
		x.to_end = in->is_regular || source_bytes_want(in, in->head_used_bytes + 1) > in->head_used_bytes;
		if (x.to_end)
			source_note(s, "its header says 0 frames, but there are some: read to the end");
		return x;
	}
	if (pcmread_is_unknown(a->data_bytes) || pcmread_is_unknown(comm_bytes))
		return pcmread_extent_of(s, in, a->data_bytes > comm_bytes ? a->data_bytes : comm_bytes);
	if (!a->n_frames || (!a->data_bytes && comm_bytes)) {
		source_note(s, "COMM says %" PRIu32 " frames, SSND %" PRIu64 " bytes: the larger is taken", a->n_frames, a->data_bytes);
		x.promised_bytes = a->data_bytes > comm_bytes ? a->data_bytes : comm_bytes;
	} else if (a->data_bytes < comm_bytes) {
		x.promised_bytes = a->data_bytes;
		s->lost_frames = (comm_bytes - a->data_bytes) / frame_bytes;
		source_warn(s, "COMM says %" PRIu32 " frames, SSND holds %" PRIu64 ": %" PRIu64 " are missing", a->n_frames, a->data_bytes / frame_bytes,
			s->lost_frames);
	} else if (a->data_bytes > comm_bytes + 1) {
		source_note(s, "SSND holds %" PRIu64 " bytes more than the %" PRIu32 " frames COMM says", a->data_bytes - comm_bytes, a->n_frames);
	}
	return x;
}

static enum err open_data(struct source *s, struct aiff *a, struct source_bytes *in, struct err_why *why)
{
	enum err e = source_check(s, a->format.rate_hz, a->format.channels, why);

	if (e)
		return e;
	struct pcmread_extent x = find_extent(s, a, in);
	x.trailer_bytes = x.to_end ? 0 : AIFF_TRAILER_BYTES;
	x.pad_bytes = 2;

	uint16_t perm[64];
	struct track t = { .channels = a->format.channels };
	bool moved = a->has_map && chanmap_apply(&a->map, &t, perm);
	if ((e = pcmread_open(s, in, &a->format, &x, moved ? perm : NULL, why)))
		return e;
	if (t.layout == TRACK_LAYOUT_WAVE) {
		s->track.layout = t.layout;
		s->track.wave_mask = t.wave_mask;
	} else if (!a->has_map && chanmap_guess(&s->track)) {
		source_note(s, "no channel layout: %u channels are taken in the usual order", a->format.channels);
	}
	return ERR_OK;
}

/* Is the codec in the head one of libsndfile's?  Before anything is taken, so that a pipe can be handed over whole. */
static bool is_foreign(const struct source_bytes *in)
{
	size_t at = 12;

	while (at + 8 + 22 <= in->head_bytes) {
		uint64_t n = get_be32(in->head + at + 4);
		if (!memcmp(in->head + at, "COMM", 4) && n >= 18) {
			struct aiff a = { .is_aifc = in->head[11] == 'C' };
			parse_comm(&a, in->head + at + 8, in->head_bytes - at - 8);
			return a.is_foreign;
		}
		at += 8 + (size_t)(n + (n & 1));
	}
	return false;
}

enum err aiffread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	struct aiff a = { 0 };
	uint8_t p[8];

	if (in->head_bytes < 12 || memcmp(in->head, "FORM", 4) || (memcmp(in->head + 8, "AIFF", 4) && memcmp(in->head + 8, "AIFC", 4)))
		return ERR_AGAIN;
	if (is_foreign(in))
		return ERR_AGAIN;
	a.is_aifc = in->head[11] == 'C';
	(void)source_bytes_skip(in, 12);
	for (unsigned i = 0; i < AIFF_MAX_CHUNKS && source_bytes_read(in, p, 8) == 8; i++) {
		uint64_t n_bytes = get_be32(p + 4);

		if (memcmp(p, "SSND", 4)) {
			if (!take_chunk(s, &a, in, (const char *)p, n_bytes))
				break;
			continue;
		}
		uint64_t body = in->offset_bytes;
		if (!take_ssnd(&a, in, n_bytes))
			break;
		if (!in->is_regular)
			break;
		/* A file: what stands behind the audio is looked at before it. */
		if (!source_bytes_seek(in, body + n_bytes + (n_bytes & 1)))
			break;
	}
	if (!a.has_ssnd && !(a.has_comm && !a.n_frames))
		return err_say(why, ERR_FORMAT, s->name, "has no audio chunk (SSND)");
	if (!a.has_comm && !in->is_regular)
		return err_say(why, ERR_FORMAT, s->name, "its audio comes before its format (COMM), and a pipe cannot seek back: give it as a file");
	if (!a.has_comm)
		return err_say(why, ERR_FORMAT, s->name, "has no format chunk (COMM)");
	if (a.is_foreign && in->is_regular && source_bytes_seek(in, 0))
		return ERR_AGAIN;
	if (a.is_foreign)
		return err_say(why, ERR_FORMAT, s->name, "its codec is not known here");
	if (in->is_regular && a.has_ssnd && !source_bytes_seek(in, a.data_offset_bytes))
		return err_sys(why, s->name);
	return open_data(s, &a, in, why);
}
