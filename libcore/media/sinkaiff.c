/*
 * AIFF, AIFC (for float) and CAF.  All numbers of the headers are big-endian; AIFF's samples are too, CAF's are little-endian here.
 */
#include "media/sinkhead.h"

#include "base/bytes.h"

#include <ctype.h>
#include <strings.h>

#define AIFC_VERSION 0xA2805140u
#define CHANNELS_BY_BITMAP (1u << 16) /* kAudioChannelLayoutTag_UseChannelBitmap: the bits are those of the WAVE mask */
#define CHANNELS_MONO (100u << 16 | 1)
#define CHANNELS_STEREO (101u << 16 | 2)
#define CAF_FLOAT 1u
#define CAF_LITTLE 2u

static bool is_float(const struct track *t)
{
	return t->sample == SAMPLE_F32 || t->sample == SAMPLE_F64;
}

/* The layout chunk's body, the same in both: tag, bitmap, no descriptions. */
static void put_layout(struct sinkhead *h, const struct track *t)
{
	uint64_t mask = sink_wave_mask(t);
	bool usual = t->channels <= 2 && mask == track_usual_mask(t->channels);

	sinkhead_be32(h, usual ? (t->channels == 1 ? CHANNELS_MONO : CHANNELS_STEREO) : CHANNELS_BY_BITMAP);
	sinkhead_be32(h, usual ? 0 : mask);
	sinkhead_be32(h, 0);
}

/* A whole rate as the 80-bit float of IEEE 754 extended: one explicit leading bit, exponent biased by 16383. */
static void put_extended(struct sinkhead *h, uint32_t rate_hz)
{
	unsigned shift = (unsigned)__builtin_clzll(rate_hz);

	sinkhead_be16(h, 16383 + 63 - shift);
	sinkhead_be64(h, (uint64_t)rate_hz << shift);
}

static void put_text(struct sinkhead *h, const char *id, const char *text)
{
	size_t n_bytes = text ? strlen(text) : 0;
	if (!n_bytes)
		return;
	sinkhead_bytes(h, id, 4);
	sinkhead_be32(h, n_bytes);
	sinkhead_bytes(h, text, n_bytes);
	sinkhead_bytes(h, "", n_bytes & 1);
}

static void build_aiff(struct sinkhead *h, const struct track *t)
{
	sinkhead_bytes(h, "FORM\0\0\0\0", 8);
	sinkhead_bytes(h, is_float(t) ? "AIFC" : "AIFF", 4);
	if (is_float(t)) {
		sinkhead_bytes(h, "FVER\0\0\0\4", 8);
		sinkhead_be32(h, AIFC_VERSION);
	}
	sinkhead_bytes(h, "COMM", 4);
	sinkhead_be32(h, is_float(t) ? 24 : 18);
	sinkhead_be16(h, t->channels);
	h->frames_at = h->n_bytes;
	sinkhead_be32(h, 0);
	sinkhead_be16(h, t->valid_bits);
	put_extended(h, track_rate_hz(t));
	if (is_float(t)) {
		sinkhead_bytes(h, t->sample == SAMPLE_F32 ? "fl32" : "fl64", 4);
		sinkhead_bytes(h, "\0\0", 2);
	}
	if (sink_wave_mask(t)) {
		sinkhead_bytes(h, "CHAN\0\0\0\14", 8);
		put_layout(h, t);
	}
	put_text(h, "NAME", track_tag(t, "TITLE"));
	put_text(h, "AUTH", track_tag(t, "ARTIST"));
	put_text(h, "(c) ", track_tag(t, "COPYRIGHT"));
	put_text(h, "ANNO", track_tag(t, "COMMENT"));
	sinkhead_bytes(h, "SSND", 4);
	h->data_at = h->n_bytes;
	sinkhead_bytes(h, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
	h->align_bytes = 2;
}

/* CAF's own words for some keys; the others go in lower case. */
static const char *caf_key(const char *tag, char out[static 64])
{
	static const char *const words[][2] = {
		{ "TRACKNUMBER", "track number" }, { "COMMENT", "comments" }, { "DATE", "recorded date" }, { "ENCODER", "encoding application" },
	};
	size_t n = strcspn(tag, "=");

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i][0]) == n && !strncasecmp(tag, words[i][0], n))
			return words[i][1];
	if (n >= 64)
		return NULL;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)tag[i]);
	out[n] = 0;
	return out;
}

static void put_caf_info(struct sinkhead *h, const struct track *t)
{
	size_t info_at = h->n_bytes;
	uint32_t n_entries = 0;
	const char *tag;
	char scratch[64];

	sinkhead_bytes(h, "info\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	for (unsigned i = 0; (tag = track_tag_at(t, i)); i++) {
		const char *equals = strchr(tag, '=');
		const char *key = equals ? caf_key(tag, scratch) : NULL;
		if (!key)
			continue;
		sinkhead_bytes(h, key, strlen(key) + 1);
		sinkhead_bytes(h, equals + 1, strlen(equals + 1) + 1);
		n_entries++;
	}
	if (h->failed)
		return;
	if (!n_entries) {
		h->n_bytes = info_at;
		return;
	}
	put_be64(h->bytes + info_at + 4, h->n_bytes - info_at - 12);
	put_be32(h->bytes + info_at + 12, n_entries);
}

static void build_caf(struct sinkhead *h, const struct track *t)
{
	double rate_hz = track_rate_hz(t);
	uint64_t rate_bits;

	memcpy(&rate_bits, &rate_hz, sizeof(rate_bits));
	sinkhead_bytes(h, "caff\0\1\0\0desc\0\0\0\0\0\0\0\40", 20);
	sinkhead_be64(h, rate_bits);
	sinkhead_bytes(h, "lpcm", 4);
	sinkhead_be32(h, CAF_LITTLE | (is_float(t) ? CAF_FLOAT : 0));
	sinkhead_be32(h, t->frame_bytes);
	sinkhead_be32(h, 1);
	sinkhead_be32(h, t->channels);
	sinkhead_be32(h, 8 * track_sample_bytes(t->sample));
	if (sink_wave_mask(t)) {
		sinkhead_bytes(h, "chan\0\0\0\0\0\0\0\14", 12);
		put_layout(h, t);
	}
	put_caf_info(h, t);
	sinkhead_bytes(h, "data", 4);
	h->data_at = h->n_bytes;
	sinkhead_be64(h, UINT64_MAX); /* −1: to the end */
	sinkhead_be32(h, 0);
	h->align_bytes = 1;
}

void sinkaiff_build(struct sinkhead *h, const struct track *t)
{
	if (h->format == SINK_CAF)
		build_caf(h, t);
	else
		build_aiff(h, t);
	if (!h->failed)
		sinkaiff_update(h, 0, 0, 0);
}

void sinkaiff_update(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames)
{
	if (h->open_ended)
		return;
	if (h->format == SINK_CAF) {
		put_be64(h->bytes + h->data_at, 4 + data_bytes);
		return;
	}
	put_be32(h->bytes + 4, (uint32_t)(h->n_bytes + data_bytes + pad_bytes - 8));
	put_be32(h->bytes + h->frames_at, (uint32_t)n_frames);
	put_be32(h->bytes + h->data_at, (uint32_t)(8 + data_bytes));
}
