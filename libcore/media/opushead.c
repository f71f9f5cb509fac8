#include "media/opushead.h"

#include "base/bytes.h"

/* Mapping family 1, RFC 7845 5.1.1.2: streams, of them coupled, and the table, for 1 to 8 channels in Vorbis order. */
static const struct {
	uint8_t streams, coupled, mapping[8];
} surround[8] = {
	{ 1, 0, { 0 } },
	{ 1, 1, { 0, 1 } },
	{ 2, 1, { 0, 2, 1 } },
	{ 2, 2, { 0, 1, 2, 3 } },
	{ 3, 2, { 0, 4, 1, 2, 3 } },
	{ 4, 2, { 0, 4, 1, 2, 3, 5 } },
	{ 4, 3, { 0, 4, 1, 2, 3, 5, 6 } },
	{ 5, 3, { 0, 6, 1, 2, 3, 4, 5, 7 } },
};

bool opushead_is(const uint8_t *bytes, size_t n_bytes)
{
	return n_bytes >= 8 && memcmp(bytes, "OpusHead", 8) == 0;
}

/* The usual streams and mapping for a family and channel count.  false: the family does not have that many channels. */
static bool usual_mapping(struct opushead *h)
{
	if (h->family == 0) {
		if (h->channels < 1 || h->channels > 2)
			return false;
		h->streams = 1;
		h->coupled = h->channels - 1;
		h->mapping[0] = 0;
		h->mapping[1] = 1;
		return true;
	}
	if (h->family == 1) {
		if (h->channels < 1 || h->channels > 8)
			return false;
		h->streams = surround[h->channels - 1].streams;
		h->coupled = surround[h->channels - 1].coupled;
		memcpy(h->mapping, surround[h->channels - 1].mapping, 8);
		return true;
	}
	h->streams = h->channels;
	h->coupled = 0;
	for (unsigned i = 0; i < h->channels; i++)
		h->mapping[i] = (uint8_t)i;
	return h->channels > 0;
}

/* What the family and the table say against each other: NULL, or what is wrong. */
static const char *mapping_fault(const struct opushead *h)
{
	if (h->channels < 1)
		return "0 channels";
	if (h->family == 1 && h->channels > 8)
		return "more than 8 channels in mapping family 1";
	if (h->streams < 1 || h->coupled > h->streams || h->streams + h->coupled > 255)
		return "an impossible number of streams";
	for (unsigned i = 0; i < h->channels; i++)
		if (h->mapping[i] != 255 && h->mapping[i] >= h->streams + h->coupled)
			return "a channel mapped to a stream that is not there";
	return NULL;
}

enum err opushead_unpack(struct opushead *h, const uint8_t *p, size_t n_bytes, struct err_why *why)
{
	*h = (struct opushead){ 0 };
	if (!opushead_is(p, n_bytes) || n_bytes < OPUSHEAD_MIN_BYTES)
		return err_say(why, ERR_FORMAT, "OpusHead", "%zu bytes, it has at least %u", n_bytes, OPUSHEAD_MIN_BYTES);
	if (p[8] & 0xF0)
		return err_say(why, ERR_VERSION, "OpusHead", "version %u is not known here: 0 to 15", p[8]);

	h->channels = p[9];
	h->preskip_frames = get_le16(p + 10);
	h->original_rate_hz = get_le32(p + 12);
	h->gain_q8 = (int16_t)get_le16(p + 16);
	h->family = p[18];
	if (h->family == 3)
		return err_say(why, ERR_CODEC, "OpusHead", "mapping family 3 (ambisonics with a matrix) is not supported");
	if (h->family > 3)
		h->family = 255;

	if (h->family == 0) {
		if (!usual_mapping(h))
			return err_say(why, ERR_FORMAT, "OpusHead", "%u channels in mapping family 0: 1 or 2", h->channels);
		return ERR_OK;
	}
	if (n_bytes < 21u + h->channels)
		return err_say(why, ERR_FORMAT, "OpusHead", "%zu bytes are too few for %u channels", n_bytes, h->channels);
	h->streams = p[19];
	h->coupled = p[20];
	memcpy(h->mapping, p + 21, h->channels);
	const char *fault = mapping_fault(h);
	if (fault)
		return err_say(why, ERR_FORMAT, "OpusHead", "%s", fault);
	return ERR_OK;
}

size_t opushead_pack(const struct opushead *h, uint8_t p[static OPUSHEAD_MAX_BYTES])
{
	memcpy(p, "OpusHead", 8);
	p[8] = 1;
	p[9] = h->channels;
	put_le16(p + 10, h->preskip_frames);
	put_le32(p + 12, h->original_rate_hz);
	put_le16(p + 16, (uint16_t)h->gain_q8);
	p[18] = h->family;
	if (h->family == 0)
		return OPUSHEAD_MIN_BYTES;
	p[19] = h->streams;
	p[20] = h->coupled;
	memcpy(p + 21, h->mapping, h->channels);
	return 21u + h->channels;
}

enum err opushead_of_track(struct opushead *h, const struct track *t, struct err_why *why)
{
	uint32_t n_bytes = 0;
	const uint8_t *codec_private = track_tlv(t, TRACK_TLV_CODEC_PRIVATE, &n_bytes);

	if (codec_private) {
		enum err e = opushead_unpack(h, codec_private, n_bytes, why);
		if (e != ERR_OK)
			return e;
		if (t->channels && t->channels != h->channels)
			return err_say(why, ERR_FORMAT, "track", "it has %u channels, its OpusHead %u", t->channels, h->channels);
	} else {
		*h = (struct opushead){ .family = t->opus_family };
		if (t->channels < 1 || t->channels > 255)
			return err_say(why, ERR_FORMAT, "track", "%u channels of Opus: 1 to 255", t->channels);
		h->channels = (uint8_t)t->channels;
		if (!usual_mapping(h))
			return err_say(why, ERR_FORMAT, "track", "mapping family %u does not have %u channels", h->family, h->channels);
		if (t->opus_streams && (t->opus_streams != h->streams || t->opus_coupled != h->coupled))
			return err_say(why, ERR_FORMAT, "track", "%u streams, %u coupled, and no OpusHead that says how they are mapped",
				t->opus_streams, t->opus_coupled);
	}
	h->gain_q8 = t->gain_q8;
	if (t->original_rate_hz)
		h->original_rate_hz = t->original_rate_hz;
	return ERR_OK;
}

enum err opushead_to_track(const struct opushead *h, struct track *t)
{
	uint8_t bytes[OPUSHEAD_MAX_BYTES];
	size_t n_bytes = opushead_pack(h, bytes);

	t->kind = TRACK_AUDIO;
	t->policy = TRACK_CONTINUOUS;
	t->codec = TRACK_OPUS;
	t->rate_num = 48000;
	t->rate_den = 1;
	t->channels = h->channels;
	t->sample = SAMPLE_CODED;
	t->layout = TRACK_LAYOUT_OPUS;
	t->opus_family = h->family;
	t->opus_streams = h->streams;
	t->opus_coupled = h->coupled;
	t->codec_delay_frames = h->preskip_frames;
	t->preroll_frames = 3840;
	t->original_rate_hz = h->original_rate_hz;
	t->gain_q8 = h->gain_q8;
	return track_set_tlv(t, TRACK_TLV_CODEC_PRIVATE, bytes, (uint32_t)n_bytes);
}
