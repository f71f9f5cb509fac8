/*
 * What a TRACK packet announces: the kind, format, time base and layout of a track, its name and tags.
 * 128 fixed bytes and a TLV area; see weir-stream(5).  No I/O.
 */
#ifndef WIRE_TRACK_H
#define WIRE_TRACK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACK_FIXED_BYTES 128u
#define TRACK_MAX_BYTES 65536u   /* a whole TRACK payload */
#define TRACK_MAX_CHANNELS 1024u /* of PCM here, as libsndfile; the format itself goes to 65535 */
#define TRACK_MIN_RATE_HZ 1u
#define TRACK_MAX_RATE_HZ 6144000u

enum track_kind { TRACK_AUDIO = 1, TRACK_VIDEO = 2, TRACK_DATA = 3, TRACK_TEXT = 4 };
enum track_policy { TRACK_CONTINUOUS = 0, TRACK_RELIABLE = 1, TRACK_LOSSY = 2 };
enum track_codec {
	TRACK_PCM = 1, TRACK_OPUS = 2, TRACK_RAW_VIDEO = 0x10, TRACK_OPAQUE_VIDEO = 0x11,
	TRACK_BYTES = 0x20, TRACK_MIDI1 = 0x21, TRACK_OSC = 0x22, TRACK_JSON = 0x23, TRACK_UTF8 = 0x30,
};
enum sample {
	SAMPLE_CODED = 0, SAMPLE_S16 = 1, SAMPLE_S24 = 2, SAMPLE_S24_32 = 3, SAMPLE_S32 = 4, SAMPLE_F32 = 5, SAMPLE_F64 = 6,
};
enum track_layout {
	TRACK_LAYOUT_DISCRETE = 0, TRACK_LAYOUT_WAVE = 1, TRACK_LAYOUT_LABELS = 2, TRACK_LAYOUT_OPUS = 3, TRACK_LAYOUT_AMBISONIC = 4,
};
enum track_tlv {
	TRACK_TLV_NAME = 1, TRACK_TLV_GROUP = 2, TRACK_TLV_LANGUAGE = 3, TRACK_TLV_CODEC_PRIVATE = 4, TRACK_TLV_SCHEMA = 5,
	TRACK_TLV_LABELS = 6, TRACK_TLV_CHANNEL_NAMES = 7, TRACK_TLV_RTP = 8,
	TRACK_TLV_TAGS = 9, /* KEY=value, NUL-separated UTF-8, as Vorbis comments */
};

/* Fixed size but for the TLV area, which the struct owns: zero is empty, track_release() frees it. */
struct track {
	uint16_t id;             /* 1…65534; the packet header's, not in the payload */
	uint8_t gen;
	uint8_t kind, policy;
	uint16_t codec;
	uint32_t rate_num, rate_den; /* units a second */
	uint32_t nominal_dur;    /* 0 variable */
	int64_t first_pos;       /* a decoder's output begins here; what decodes to before it is discarded */
	int64_t next_pos;
	uint32_t next_seq;
	uint32_t dropped;
	uint32_t largest_object_bytes;
	uint32_t flags;
	int64_t next_utc_ns;
	uint16_t ref_track;
	uint8_t priority;
	uint32_t ttl_ms;
	/* audio */
	uint16_t channels;
	uint8_t sample;          /* enum sample */
	uint8_t layout;          /* enum track_layout */
	uint16_t frame_bytes;    /* PCM: bytes of one frame; 0 coded */
	uint16_t valid_bits;
	uint64_t wave_mask;
	uint8_t opus_family, opus_streams, opus_coupled;
	uint32_t codec_delay_frames;
	uint32_t preroll_frames;
	uint32_t original_rate_hz;
	int16_t gain_q8;         /* Q7.8 dB, to be applied by the decoder */
	uint8_t rest[64];        /* video, data, text: their 64 bytes as they came */
	/* TLVs, packed */
	uint8_t *tlv;
	uint32_t tlv_bytes, tlv_room_bytes;
};

/* A PCM audio track of this format: layout by the usual meaning of 1 and 2 channels, else discrete. */
struct track track_pcm(uint32_t rate_hz, uint16_t channels, enum sample sample);

/* Unpack and check a payload against the limits above.  *t must be zero or released.  Owns its TLV copy then. */
enum err track_unpack(struct track *t, const uint8_t *payload, size_t n_bytes, struct err_why *why) WEIR_MUSTUSE;

/* Bytes track_pack() writes. */
size_t track_packed_bytes(const struct track *t);

/* Write the payload: track_packed_bytes() bytes. */
void track_pack(const struct track *t, uint8_t *payload);

/* Copy, TLVs included; *to must be zero or released. */
enum err track_copy(struct track *to, const struct track *from) WEIR_MUSTUSE;
void track_release(struct track *t);

/* Value of a TLV, or NULL.  Belongs to the track, valid until it changes. */
const uint8_t *track_tlv(const struct track *t, uint16_t tag, uint32_t *n_bytes);

/* Replace (or add) a TLV; n_bytes 0 removes it.  Returns: ERR_NOMEM, ERR_LIMIT when the payload would pass TRACK_MAX_BYTES. */
enum err track_set_tlv(struct track *t, uint16_t tag, const void *value, uint32_t n_bytes) WEIR_MUSTUSE;

/* The name TLV as a string into out, made printable UTF-8; "" if there is none.  Returns: out. */
const char *track_name(const struct track *t, char out[static 128]);
enum err track_set_name(struct track *t, const char *name) WEIR_MUSTUSE;

/* Tags: value of the first KEY (case does not matter) or NULL; the i-th "KEY=value" or NULL. */
const char *track_tag(const struct track *t, const char *key);
const char *track_tag_at(const struct track *t, unsigned i);
/* Add "KEY=value"; with replace, earlier ones of that key go.  Key: 1… printable ASCII without '='. */
enum err track_add_tag(struct track *t, const char *key, const char *value, bool replace) WEIR_MUSTUSE;

/* Bytes of one sample of a PCM format; 0 for coded or unknown. */
unsigned track_sample_bytes(enum sample sample);
/* "s16" "s24" "s24in32" "s32" "f32" "f64" "coded". */
const char *track_sample_name(enum sample sample);
/* "audio" "video" "data" "text"; "pcm" "opus" …. */
const char *track_kind_name(unsigned kind);
const char *track_codec_name(unsigned codec, char scratch[static 8]);

/* Short name of channel i: "FL" …, a channel-name TLV's word, or "ch1"…  Returns: static storage or out. */
const char *track_channel_name(const struct track *t, unsigned i, char out[static 16]);

/* The usual WAVE mask for n channels (1…8), 0 beyond: mono FC, stereo FL FR, 3 +FC, 4 FL FR BL BR, 5, 5.1, 6.1, 7.1. */
uint64_t track_usual_mask(unsigned channels);

static inline bool track_is_pcm(const struct track *t)
{
	return t->kind == TRACK_AUDIO && t->codec == TRACK_PCM;
}

static inline bool track_is_opus(const struct track *t)
{
	return t->kind == TRACK_AUDIO && t->codec == TRACK_OPUS;
}

#define TRACK_OPUS_PREROLL_FRAMES 3840 /* 80 ms: RFC 7845 4.6 */

/*
 * May a DISCONT packet of Opus at pos be pre-roll, whose frames before expect_pos are thrown away?  Else the timeline goes back there.
 * is_first: of its announcement, whose pre-skip has no limit.
 */
static inline bool track_is_preroll(const struct track *t, int64_t expect_pos, int64_t pos, bool is_first)
{
	bool says = t->preroll_frames && t->preroll_frames <= 48000;
	int64_t frames = says ? t->preroll_frames : TRACK_OPUS_PREROLL_FRAMES;
	return expect_pos - pos <= frames || (is_first && pos < t->first_pos);
}

static inline uint32_t track_rate_hz(const struct track *t)
{
	return t->rate_den ? t->rate_num / t->rate_den : 0;
}

#endif
