/*
 * WAV, RF64 and W64.
 *
 * WAV begins with a JUNK chunk as long as ds64, so that a file that grows beyond 4 GiB becomes RF64 (EBU Tech 3306) by a change
 * of its header alone.  What cannot be gone back in (a pipe) has no such chunk, and sizes of all ones, which readers take as
 * "to the end".  The chunks that change lie in the first bytes; tags come before the data, so that a killed file has them.
 */
#include "media/sinkhead.h"

#include "base/bytes.h"

#include <stdio.h>
#include <strings.h>

#define FORMAT_PCM 1
#define FORMAT_FLOAT 3
#define FORMAT_EXTENSIBLE 0xFFFE
#define DS64_BYTES 28
#define UNKNOWN_32 0xFFFFFFFFu
#define W64_CHUNK_BYTES 24 /* GUID and size, which the size counts too */

/* Tags that INFO has a place for, and those that other programs use. */
static const struct {
	const char *key;
	const char id[5];
} info_ids[] = {
	{ "TITLE", "INAM" }, { "ARTIST", "IART" }, { "ALBUM", "IPRD" }, { "DATE", "ICRD" }, { "GENRE", "IGNR" },
	{ "TRACKNUMBER", "ITRK" }, { "COMMENT", "ICMT" }, { "DESCRIPTION", "ISBJ" }, { "COPYRIGHT", "ICOP" }, { "ENCODER", "ISFT" },
	{ "LANGUAGE", "ILNG" }, { "ORGANIZATION", "ICMS" }, { "KEYWORDS", "IKEY" }, { "ENGINEER", "IENG" },
};

static const char *info_id(const char *tag)
{
	const char *equals = strchr(tag, '=');

	for (size_t i = 0; equals && i < ARRAY_LEN(info_ids); i++)
		if (strlen(info_ids[i].key) == (size_t)(equals - tag) && !strncasecmp(tag, info_ids[i].key, (size_t)(equals - tag)))
			return info_ids[i].id;
	return NULL;
}

/* LIST/INFO, each text with its zero and padded to even. */
static void put_info(struct sinkhead *h, const struct track *t)
{
	size_t list_at = h->n_bytes;
	unsigned n_kept = 0, n_left_out = 0;
	const char *tag;

	sinkhead_bytes(h, "LIST\0\0\0\0INFO", 12);
	for (unsigned i = 0; (tag = track_tag_at(t, i)); i++) {
		const char *id = info_id(tag);
		if (!id) {
			n_left_out++;
			continue;
		}
		const char *value = strchr(tag, '=') + 1;
		size_t n_bytes = strlen(value) + 1;
		sinkhead_bytes(h, id, 4);
		sinkhead_le32(h, n_bytes);
		sinkhead_bytes(h, value, n_bytes);
		sinkhead_bytes(h, "", n_bytes & 1);
		n_kept++;
	}
	if (n_left_out)
		snprintf(h->note, sizeof(h->note), "%u tag%s no place in WAV and %s left out", n_left_out, n_left_out == 1 ? " has" : "s have",
			n_left_out == 1 ? "is" : "are");
	if (h->failed)
		return;
	if (n_kept)
		put_le32(h->bytes + list_at + 4, (uint32_t)(h->n_bytes - list_at - 8));
	else
		h->n_bytes = list_at;
}

static bool is_float(const struct track *t)
{
	return t->sample == SAMPLE_F32 || t->sample == SAMPLE_F64;
}

/* The plain header holds what it is clear about: 1 or 2 channels in their usual places, all bits of the container used. */
static bool is_plain(const struct track *t, unsigned container_bits)
{
	uint64_t mask = sink_wave_mask(t);
	return t->channels <= 2 && (mask == 0 || mask == track_usual_mask(t->channels)) && t->valid_bits == container_bits;
}

/* The body of the fmt chunk: 16, 18 or 40 bytes.  Returns: how many. */
static size_t put_format(struct sinkhead *h, const struct track *t)
{
	static const uint8_t guid_tail[14] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };
	unsigned container_bits = 8 * track_sample_bytes(t->sample);
	uint64_t bytes_per_s = (uint64_t)track_rate_hz(t) * t->frame_bytes;
	unsigned kind = is_float(t) ? FORMAT_FLOAT : FORMAT_PCM;
	bool plain = is_plain(t, container_bits);
	size_t began_at = h->n_bytes;

	sinkhead_le16(h, plain ? kind : FORMAT_EXTENSIBLE);
	sinkhead_le16(h, t->channels);
	sinkhead_le32(h, track_rate_hz(t));
	sinkhead_le32(h, bytes_per_s);
	sinkhead_le16(h, t->frame_bytes);
	sinkhead_le16(h, container_bits);
	if (!plain) {
		sinkhead_le16(h, 22);
		sinkhead_le16(h, t->valid_bits);
		sinkhead_le32(h, sink_wave_mask(t));
		sinkhead_le16(h, kind);
		sinkhead_bytes(h, guid_tail, sizeof(guid_tail));
	} else if (kind == FORMAT_FLOAT) {
		sinkhead_le16(h, 0);
	}
	return h->n_bytes - began_at;
}

static void build_wav(struct sinkhead *h, const struct track *t)
{
	sinkhead_bytes(h, "RIFF\0\0\0\0WAVE", 12);
	if (!h->open_ended || h->format == SINK_RF64) {
		static const uint8_t empty[DS64_BYTES];
		h->ds64_at = h->n_bytes;
		sinkhead_bytes(h, "JUNK", 4);
		sinkhead_le32(h, DS64_BYTES);
		sinkhead_bytes(h, empty, sizeof(empty));
	}
	size_t format_at = h->n_bytes;
	sinkhead_bytes(h, "fmt \0\0\0\0", 8);
	size_t format_bytes = put_format(h, t);
	if (!h->failed)
		put_le32(h->bytes + format_at + 4, (uint32_t)format_bytes);
	if (is_float(t)) {
		sinkhead_bytes(h, "fact\4\0\0\0", 8);
		h->fact_at = h->n_bytes;
		sinkhead_le32(h, 0);
	}
	put_info(h, t);
	sinkhead_bytes(h, "data", 4);
	h->data_at = h->n_bytes;
	sinkhead_le32(h, 0);
	h->align_bytes = h->open_ended ? 1 : 2;
}

/* GUIDs of W64 begin with the four letters of the chunk in RIFF; "riff" has a tail of its own. */
static void w64_guid(struct sinkhead *h, const char *name)
{
	static const uint8_t riff_tail[12] = { 0x2E, 0x91, 0xCF, 0x11, 0xA5, 0xD6, 0x28, 0xDB, 0x04, 0xC1, 0, 0 };
	static const uint8_t tail[12] = { 0xF3, 0xAC, 0xD3, 0x11, 0x8C, 0xD1, 0, 0xC0, 0x4F, 0x8E, 0xDB, 0x8A };

	sinkhead_bytes(h, name, 4);
	sinkhead_bytes(h, strcmp(name, "riff") ? tail : riff_tail, sizeof(tail));
}

static void build_w64(struct sinkhead *h, const struct track *t)
{
	static const uint8_t zeros[8];

	w64_guid(h, "riff");
	sinkhead_le64(h, INT64_MAX);
	w64_guid(h, "wave");
	size_t format_at = h->n_bytes;
	w64_guid(h, "fmt ");
	sinkhead_le64(h, 0);
	size_t format_bytes = put_format(h, t);
	sinkhead_bytes(h, zeros, units_round_up(format_bytes, 8) - format_bytes);
	if (!h->failed)
		put_le64(h->bytes + format_at + 16, W64_CHUNK_BYTES + format_bytes);
	if (is_float(t)) {
		w64_guid(h, "fact");
		sinkhead_le64(h, W64_CHUNK_BYTES + 8);
		h->fact_at = h->n_bytes;
		sinkhead_le64(h, 0);
	}
	w64_guid(h, "data");
	h->data_at = h->n_bytes;
	sinkhead_le64(h, INT64_MAX);
	h->align_bytes = h->open_ended ? 1 : 8;
	if (track_tag_at(t, 0))
		snprintf(h->note, sizeof(h->note), "W64 has no place for tags that programs read: they are left out");
}

void sinkriff_build(struct sinkhead *h, const struct track *t)
{
	if (h->format == SINK_W64)
		build_w64(h, t);
	else
		build_wav(h, t);
	if (!h->failed)
		sinkriff_update(h, 0, 0, 0);
}

static void update_w64(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames)
{
	if (h->open_ended)
		return;
	put_le64(h->bytes + 16, h->n_bytes + data_bytes + pad_bytes);
	put_le64(h->bytes + h->data_at, W64_CHUNK_BYTES + data_bytes);
	if (h->fact_at)
		put_le64(h->bytes + h->fact_at, n_frames);
}

static void update_wav(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames)
{
	uint64_t riff_bytes = h->n_bytes + data_bytes + pad_bytes - 8;
	bool is_64 = h->format == SINK_RF64 || (h->ds64_at && riff_bytes > h->limit_bytes);
	bool small = !is_64 && !h->open_ended;

	memcpy(h->bytes, is_64 ? "RF64" : "RIFF", 4);
	put_le32(h->bytes + 4, small ? (uint32_t)riff_bytes : UNKNOWN_32);
	put_le32(h->bytes + h->data_at, small ? (uint32_t)data_bytes : UNKNOWN_32);
	if (h->fact_at)
		put_le32(h->bytes + h->fact_at, small ? (uint32_t)n_frames : UNKNOWN_32);
	if (!is_64)
		return;
	uint8_t *ds64 = h->bytes + h->ds64_at;
	memcpy(ds64, "ds64", 4);
	put_le64(ds64 + 8, h->open_ended ? UINT64_MAX : riff_bytes);
	put_le64(ds64 + 16, h->open_ended ? UINT64_MAX : data_bytes);
	put_le64(ds64 + 24, h->open_ended ? UINT64_MAX : n_frames);
	put_le32(ds64 + 32, 0);
}

void sinkriff_update(struct sinkhead *h, uint64_t data_bytes, uint64_t pad_bytes, uint64_t n_frames)
{
	if (h->format == SINK_W64)
		update_w64(h, data_bytes, pad_bytes, n_frames);
	else
		update_wav(h, data_bytes, pad_bytes, n_frames);
}
