#include "wire/track.h"

#include "base/bytes.h"
#include "base/units.h"
#include "base/utf8.h"
#include "wire/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MASK_FL_FR 0x3u
#define MASK_FC 0x4u

static const char *const wave_names[18] = {
	"FL", "FR", "FC", "LFE", "BL", "BR", "FLC", "FRC", "BC", "SL", "SR", "TC", "TFL", "TFC", "TFR", "TBL", "TBC", "TBR",
};

uint64_t track_usual_mask(unsigned channels)
{
	static const uint64_t masks[] = { 0, MASK_FC, MASK_FL_FR, 0x7, 0x33, 0x37, 0x3F, 0x70F, 0x63F };
	return channels < ARRAY_LEN(masks) ? masks[channels] : 0;
}

unsigned track_sample_bytes(enum sample sample)
{
	static const unsigned bytes[] = { 0, 2, 3, 4, 4, 4, 8 };
	return (unsigned)sample < ARRAY_LEN(bytes) ? bytes[sample] : 0;
}

const char *track_sample_name(enum sample sample)
{
	static const char *const names[] = { "coded", "s16", "s24", "s24in32", "s32", "f32", "f64" };
	return (unsigned)sample < ARRAY_LEN(names) ? names[sample] : "unknown";
}

static uint16_t sample_bits(enum sample sample)
{
	static const uint16_t bits[] = { 0, 16, 24, 24, 32, 32, 64 };
	return bits[sample];
}

struct track track_pcm(uint32_t rate_hz, uint16_t channels, enum sample sample)
{
	return (struct track){
		.kind = TRACK_AUDIO, .policy = TRACK_CONTINUOUS, .codec = TRACK_PCM,
		.rate_num = rate_hz, .rate_den = 1, .next_utc_ns = UNITS_UNKNOWN_NS,
		.channels = channels, .sample = (uint8_t)sample,
		.layout = channels <= 2 ? TRACK_LAYOUT_WAVE : TRACK_LAYOUT_DISCRETE,
		.wave_mask = channels <= 2 ? track_usual_mask(channels) : 0,
		.frame_bytes = (uint16_t)(channels * track_sample_bytes(sample)), .valid_bits = sample_bits(sample),
		.original_rate_hz = rate_hz,
	};
}

static enum err check_audio(const struct track *t, struct err_why *why)
{
	if (t->channels == 0)
		return err_say(why, ERR_FORMAT, "track", "0 channels announced (1 to %u)", TRACK_MAX_CHANNELS);
	if (t->channels > TRACK_MAX_CHANNELS)
		return err_say(why, ERR_LIMIT, "track", "%u channels announced (1 to %u)", t->channels, TRACK_MAX_CHANNELS);
	uint32_t rate_hz = track_rate_hz(t);
	if (rate_hz < TRACK_MIN_RATE_HZ || rate_hz > TRACK_MAX_RATE_HZ)
		return err_say(why, ERR_FORMAT, "track", "rate of %u/%u Hz announced (%u to %u)", t->rate_num, t->rate_den,
			TRACK_MIN_RATE_HZ, TRACK_MAX_RATE_HZ);
	if (t->codec == TRACK_PCM) {
		unsigned bytes = track_sample_bytes(t->sample);
		if (!bytes)
			return err_say(why, ERR_FORMAT, "track", "PCM of unknown sample format %u", t->sample);
		if (t->frame_bytes != (uint16_t)(t->channels * bytes))
			return err_say(why, ERR_FORMAT, "track", "%u bytes a frame announced for %u channels of %s", t->frame_bytes,
				t->channels, track_sample_name(t->sample));
		if (t->valid_bits > sample_bits(t->sample))
			return err_say(why, ERR_FORMAT, "track", "%u valid bits announced in %s", t->valid_bits,
				track_sample_name(t->sample));
	}
	if (t->codec == TRACK_OPUS && (t->channels > 255 || t->rate_num != 48000 || t->rate_den != 1))
		return err_say(why, ERR_FORMAT, "track", "Opus with %u channels at %u/%u Hz (1 to 255 at 48000)", t->channels,
			t->rate_num, t->rate_den);
	return ERR_OK;
}

enum err track_unpack(struct track *t, const uint8_t *p, size_t n_bytes, struct err_why *why)
{
	if (n_bytes < TRACK_FIXED_BYTES || n_bytes > TRACK_MAX_BYTES)
		return err_say(why, ERR_FORMAT, "track", "an announcement of %zu bytes (%u to %u)", n_bytes, TRACK_FIXED_BYTES,
			TRACK_MAX_BYTES);

	struct track n = {
		.kind = p[0], .policy = p[1], .codec = get_le16(p + 2), .rate_num = get_le32(p + 4), .rate_den = get_le32(p + 8),
		.nominal_dur = get_le32(p + 12), .first_pos = (int64_t)get_le64(p + 16), .next_pos = (int64_t)get_le64(p + 24),
		.next_seq = get_le32(p + 32), .dropped = get_le32(p + 36), .largest_object_bytes = get_le32(p + 40),
		.flags = get_le32(p + 44), .next_utc_ns = (int64_t)get_le64(p + 48), .ref_track = get_le16(p + 56), .gen = p[58],
		.priority = p[59], .ttl_ms = get_le32(p + 60),
	};
	memcpy(n.rest, p + 64, sizeof(n.rest));
	/* A product of two of them fits 63 bits. */
	if (n.rate_num == 0 || n.rate_den == 0 || n.rate_num > INT32_MAX || n.rate_den > INT32_MAX)
		return err_say(why, ERR_FORMAT, "track", "rate of %u/%u units a second announced (1 to %d each)", n.rate_num, n.rate_den,
			INT32_MAX);
	if (n.kind == TRACK_AUDIO) {
		n.channels = get_le16(p + 64);
		n.sample = p[66];
		n.layout = p[67];
		n.frame_bytes = get_le16(p + 68);
		n.valid_bits = get_le16(p + 70);
		n.wave_mask = get_le64(p + 72);
		n.opus_family = p[80];
		n.opus_streams = p[81];
		n.opus_coupled = p[82];
		n.codec_delay_frames = get_le32(p + 84);
		n.preroll_frames = get_le32(p + 88);
		n.original_rate_hz = get_le32(p + 92);
		n.gain_q8 = (int16_t)get_le16(p + 96);
		enum err e = check_audio(&n, why);
		if (e)
			return e;
	}

	struct packet_tlv tlv;
	size_t offset = TRACK_FIXED_BYTES;
	enum err e;
	while ((e = packet_tlv_next(p, n_bytes, &offset, &tlv)) == ERR_OK)
		if (tlv.tag & 0x8000)
			return err_say(why, ERR_VERSION, "track", "critical field 0x%04x is not known here", tlv.tag);
	if (e != ERR_END)
		return err_say(why, ERR_FORMAT, "track", "a field reaches beyond the announcement");

	/* What stands behind the last field is left away, and its padding added where the sender did not: so that fields can be
	 * added behind it. */
	size_t area_bytes = offset - TRACK_FIXED_BYTES;
	if (area_bytes) {
		n.tlv_bytes = n.tlv_room_bytes = (uint32_t)units_round_up(area_bytes, 8);
		n.tlv = calloc(1, n.tlv_room_bytes);
		if (!n.tlv)
			return err_say(why, ERR_NOMEM, "track", "%s", err_text(ERR_NOMEM));
		memcpy(n.tlv, p + TRACK_FIXED_BYTES, area_bytes);
	}
	*t = n;
	return ERR_OK;
}

size_t track_packed_bytes(const struct track *t)
{
	return TRACK_FIXED_BYTES + t->tlv_bytes;
}

void track_pack(const struct track *t, uint8_t *p)
{
	memset(p, 0, TRACK_FIXED_BYTES);
	p[0] = t->kind;
	p[1] = t->policy;
	put_le16(p + 2, t->codec);
	put_le32(p + 4, t->rate_num);
	put_le32(p + 8, t->rate_den);
	put_le32(p + 12, t->nominal_dur);
	put_le64(p + 16, (uint64_t)t->first_pos);
	put_le64(p + 24, (uint64_t)t->next_pos);
	put_le32(p + 32, t->next_seq);
	put_le32(p + 36, t->dropped);
	put_le32(p + 40, t->largest_object_bytes);
	put_le32(p + 44, t->flags);
	put_le64(p + 48, (uint64_t)t->next_utc_ns);
	put_le16(p + 56, t->ref_track);
	p[58] = t->gen;
	p[59] = t->priority;
	put_le32(p + 60, t->ttl_ms);
	if (t->kind == TRACK_AUDIO) {
		put_le16(p + 64, t->channels);
		p[66] = t->sample;
		p[67] = t->layout;
		put_le16(p + 68, t->frame_bytes);
		put_le16(p + 70, t->valid_bits);
		put_le64(p + 72, t->wave_mask);
		p[80] = t->opus_family;
		p[81] = t->opus_streams;
		p[82] = t->opus_coupled;
		put_le32(p + 84, t->codec_delay_frames);
		put_le32(p + 88, t->preroll_frames);
		put_le32(p + 92, t->original_rate_hz);
		put_le16(p + 96, (uint16_t)t->gain_q8);
	} else {
		memcpy(p + 64, t->rest, sizeof(t->rest));
	}
	if (t->tlv_bytes)
		memcpy(p + TRACK_FIXED_BYTES, t->tlv, t->tlv_bytes);
}

enum err track_copy(struct track *to, const struct track *from)
{
	uint8_t *tlv = NULL;

	if (from->tlv_bytes) {
		tlv = malloc(from->tlv_bytes);
		if (!tlv)
			return ERR_NOMEM;
		memcpy(tlv, from->tlv, from->tlv_bytes);
	}
	*to = *from;
	to->tlv = tlv;
	to->tlv_room_bytes = to->tlv_bytes;
	return ERR_OK;
}

void track_release(struct track *t)
{
	free(t->tlv);
	memset(t, 0, sizeof(*t));
}

/* Offset of the TLV with this tag in the area, or tlv_bytes. */
static size_t find_tlv(const struct track *t, uint16_t tag, struct packet_tlv *tlv)
{
	size_t offset = 0, at = 0;

	while (packet_tlv_next(t->tlv, t->tlv_bytes, &offset, tlv) == ERR_OK) {
		if (tlv->tag == tag)
			return at;
		at = offset;
	}
	return t->tlv_bytes;
}

const uint8_t *track_tlv(const struct track *t, uint16_t tag, uint32_t *n_bytes)
{
	struct packet_tlv tlv;

	if (!t->tlv_bytes || find_tlv(t, tag, &tlv) == t->tlv_bytes)
		return NULL;
	*n_bytes = tlv.n_bytes;
	return tlv.value;
}

/* Copy all TLVs but those with this tag to area (NULL: only count).  Returns: bytes. */
static size_t copy_others(const struct track *t, uint16_t tag, uint8_t *area)
{
	struct packet_tlv tlv;
	size_t offset = 0, at = 0, n = 0;

	while (t->tlv_bytes && packet_tlv_next(t->tlv, t->tlv_bytes, &offset, &tlv) == ERR_OK) {
		if (tlv.tag != tag) {
			if (area)
				memcpy(area + n, t->tlv + at, offset - at);
			n += offset - at;
		}
		at = offset;
	}
	return n;
}

enum err track_set_tlv(struct track *t, uint16_t tag, const void *value, uint32_t n_bytes)
{
	size_t kept = copy_others(t, tag, NULL);
	size_t needed = kept + (n_bytes ? packet_tlv_bytes(n_bytes) : 0);
	if (TRACK_FIXED_BYTES + needed > TRACK_MAX_BYTES)
		return ERR_LIMIT;

	/* The value may lie in the old area: build a new one. */
	uint8_t *area = needed ? malloc(needed) : NULL;
	if (needed && !area)
		return ERR_NOMEM;
	if (kept)
		copy_others(t, tag, area);
	if (n_bytes)
		packet_tlv_pack(area + kept, tag, value, n_bytes);
	free(t->tlv);
	t->tlv = area;
	t->tlv_bytes = t->tlv_room_bytes = (uint32_t)needed;
	return ERR_OK;
}

const char *track_name(const struct track *t, char out[static 128])
{
	uint32_t n_bytes = 0;
	const uint8_t *name = track_tlv(t, TRACK_TLV_NAME, &n_bytes);
	size_t used = 0;

	for (uint32_t i = 0; name && i < n_bytes && name[i];) {
		unsigned length = utf8_length(name + i, n_bytes - i);
		/* U+0080 to U+009F are control characters too. */
		bool is_c1 = length == 2 && name[i] == 0xC2 && name[i + 1] < 0xA0;
		bool plain = length && name[i] >= 0x20 && name[i] != 0x7F && !is_c1;
		unsigned step = length ? length : 1;
		if (used + (plain ? step : 1) > 127)
			break;
		if (plain) {
			memcpy(out + used, name + i, step);
			used += step;
		} else {
			out[used++] = '?';
		}
		i += step;
	}
	out[used] = 0;
	return out;
}

enum err track_set_name(struct track *t, const char *name)
{
	size_t n = strlen(name);
	return track_set_tlv(t, TRACK_TLV_NAME, name, (uint32_t)(n > 127 ? 127 : n));
}

const char *track_tag_at(const struct track *t, unsigned i)
{
	uint32_t n_bytes = 0;
	const char *tags = (const char *)track_tlv(t, TRACK_TLV_TAGS, &n_bytes);

	for (uint32_t at = 0; tags && at < n_bytes;) {
		size_t length = strnlen(tags + at, n_bytes - at);
		if (at + length == n_bytes) /* not terminated: not a string */
			return NULL;
		if (i-- == 0)
			return tags + at;
		at += (uint32_t)length + 1;
	}
	return NULL;
}

static bool tag_has_key(const char *tag, const char *key, size_t key_length)
{
	return !strncasecmp(tag, key, key_length) && tag[key_length] == '=';
}

const char *track_tag(const struct track *t, const char *key)
{
	size_t length = strlen(key);
	const char *tag;

	for (unsigned i = 0; (tag = track_tag_at(t, i)); i++)
		if (tag_has_key(tag, key, length))
			return tag + length + 1;
	return NULL;
}

enum err track_add_tag(struct track *t, const char *key, const char *value, bool replace)
{
	size_t key_length = strlen(key), value_length = strlen(value);
	uint32_t old_bytes = 0;
	(void)track_tlv(t, TRACK_TLV_TAGS, &old_bytes);

	if (!key_length || strchr(key, '='))
		return ERR_ARG;
	for (size_t i = 0; i < key_length; i++)
		if (key[i] < 0x20 || key[i] > 0x7D)
			return ERR_ARG;
	if (key_length + value_length > TRACK_MAX_BYTES || old_bytes > TRACK_MAX_BYTES)
		return ERR_LIMIT;

	char *tags = malloc(old_bytes + key_length + value_length + 2);
	if (!tags)
		return ERR_NOMEM;
	size_t n = 0;
	const char *tag;
	for (unsigned i = 0; (tag = track_tag_at(t, i)); i++) {
		if (replace && tag_has_key(tag, key, key_length))
			continue;
		size_t length = strlen(tag) + 1;
		memcpy(tags + n, tag, length);
		n += length;
	}
	memcpy(tags + n, key, key_length);
	tags[n + key_length] = '=';
	memcpy(tags + n + key_length + 1, value, value_length + 1);
	n += key_length + value_length + 2;

	enum err e = track_set_tlv(t, TRACK_TLV_TAGS, tags, (uint32_t)n);
	free(tags);
	return e;
}

const char *track_kind_name(unsigned kind)
{
	static const char *const names[] = { "unknown", "audio", "video", "data", "text" };
	return kind < ARRAY_LEN(names) ? names[kind] : names[0];
}

const char *track_codec_name(unsigned codec, char scratch[static 8])
{
	switch (codec) {
	case TRACK_PCM: return "pcm";
	case TRACK_OPUS: return "opus";
	case TRACK_RAW_VIDEO: return "raw-video";
	case TRACK_OPAQUE_VIDEO: return "opaque-video";
	case TRACK_BYTES: return "bytes";
	case TRACK_MIDI1: return "midi1";
	case TRACK_OSC: return "osc";
	case TRACK_JSON: return "json";
	case TRACK_UTF8: return "utf8";
	}
	snprintf(scratch, 8, "0x%04x", codec & 0xffff);
	return scratch;
}

const char *track_channel_name(const struct track *t, unsigned i, char out[static 16])
{
	uint32_t n_bytes = 0;
	const char *names = (const char *)track_tlv(t, TRACK_TLV_CHANNEL_NAMES, &n_bytes);
	uint32_t at = 0;

	for (unsigned k = 0; names && at < n_bytes; k++) {
		size_t length = strnlen(names + at, n_bytes - at);
		if (k == i && length) {
			snprintf(out, 16, "%.*s", (int)(length < 15 ? length : 15), names + at);
			return out;
		}
		at += (uint32_t)length + 1;
	}
	uint64_t mask = t->layout == TRACK_LAYOUT_WAVE ? t->wave_mask : 0;
	/* Families 0 and 1 (RFC 7845 5.1.1.2) have the usual speakers; a decoder hands them out in WAVE order. */
	if (t->layout == TRACK_LAYOUT_OPUS && t->opus_family <= 1)
		mask = track_usual_mask(t->channels);
	unsigned k = 0;
	for (unsigned bit = 0; bit < ARRAY_LEN(wave_names); bit++)
		if (mask >> bit & 1 && k++ == i)
			return wave_names[bit];
	snprintf(out, 16, "ch%u", i + 1);
	return out;
}
