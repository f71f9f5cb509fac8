#include "media/chanmap.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { FL, FR, FC, LFE, BL, BR, FLC, FRC, BC, SL, SR, TC, TFL, TFC, TFR, TBL, TBC, TBR };

bool chanmap_apply(const struct chanmap *m, struct track *t, uint16_t perm[static 64])
{
	uint64_t mask = 0;
	bool moved = false;
	unsigned at = 0;

	if (m->channels != t->channels || m->channels > ARRAY_LEN(m->bit))
		return false;
	for (unsigned i = 0; i < m->channels; i++) {
		if (m->bit[i] < 0 || m->bit[i] >= (int)CHANMAP_N_BITS || mask >> m->bit[i] & 1)
			return false;
		mask |= (uint64_t)1 << m->bit[i];
	}
	for (int bit = 0; bit < (int)CHANMAP_N_BITS; bit++) {
		for (unsigned i = 0; i < m->channels; i++) {
			if (m->bit[i] == bit) {
				moved |= i != at;
				perm[at++] = (uint16_t)i;
			}
		}
	}
	t->layout = TRACK_LAYOUT_WAVE;
	t->wave_mask = mask;
	return moved;
}

/*
 * Layout tags of Apple's CoreAudioBaseTypes that a WAVE mask can say.  The tag's low 16 bits are its channel count.
 * Their surrounds (Ls, Rs) are the mask's back channels, but for layouts that have a rear pair besides.
 */
static const struct {
	uint16_t tag;
	uint8_t channels;
	int8_t bit[8];
} apple_layouts[] = {
	{ 100, 1, { FC } },
	{ 101, 2, { FL, FR } },
	{ 102, 2, { FL, FR } },
	{ 106, 2, { FL, FR } },
	{ 108, 4, { FL, FR, BL, BR } },
	{ 109, 5, { FL, FR, BL, BR, FC } },
	{ 110, 6, { FL, FR, BL, BR, FC, BC } },
	{ 113, 3, { FL, FR, FC } },
	{ 114, 3, { FC, FL, FR } },
	{ 115, 4, { FL, FR, FC, BC } },
	{ 116, 4, { FC, FL, FR, BC } },
	{ 117, 5, { FL, FR, FC, BL, BR } },
	{ 118, 5, { FL, FR, BL, BR, FC } },
	{ 119, 5, { FL, FC, FR, BL, BR } },
	{ 120, 5, { FC, FL, FR, BL, BR } },
	{ 121, 6, { FL, FR, FC, LFE, BL, BR } },
	{ 122, 6, { FL, FR, BL, BR, FC, LFE } },
	{ 123, 6, { FL, FC, FR, BL, BR, LFE } },
	{ 124, 6, { FC, FL, FR, BL, BR, LFE } },
	{ 125, 7, { FL, FR, FC, LFE, BL, BR, BC } },
	{ 126, 8, { FL, FR, FC, LFE, BL, BR, FLC, FRC } },
	{ 127, 8, { FC, FLC, FRC, FL, FR, BL, BR, LFE } },
	{ 128, 8, { FL, FR, FC, LFE, BL, BR, SL, SR } }, /* L R C LFE Ls Rs Rls Rrs: but what writes it means its 7.1, in WAVE order */
	{ 131, 3, { FL, FR, BC } },
	{ 132, 4, { FL, FR, BL, BR } },
	{ 133, 3, { FL, FR, LFE } },
	{ 134, 4, { FL, FR, LFE, BC } },
	{ 135, 5, { FL, FR, LFE, BL, BR } },
	{ 136, 4, { FL, FR, FC, LFE } },
	{ 137, 5, { FL, FR, FC, LFE, BC } },
};

#define APPLE_USE_DESCRIPTIONS 0u
#define APPLE_USE_BITMAP (1u << 16)
#define APPLE_REAR_LEFT 33u  /* rear surround, where the sides have labels of their own */
#define APPLE_REAR_RIGHT 34u
#define APPLE_MONO 42u

static void from_labels(struct chanmap *m, const uint8_t *desc)
{
	bool has_rear = false;

	for (unsigned i = 0; i < m->channels; i++)
		has_rear |= get_be32(desc + 20 * i) == APPLE_REAR_LEFT;
	for (unsigned i = 0; i < m->channels; i++) {
		uint32_t label = get_be32(desc + 20 * i);

		if (label == APPLE_MONO)
			m->bit[i] = FC;
		else if (label == APPLE_REAR_LEFT || label == APPLE_REAR_RIGHT)
			m->bit[i] = (int8_t)(BL + (label - APPLE_REAR_LEFT));
		else if (has_rear && (label == BL + 1 || label == BR + 1))
			m->bit[i] = (int8_t)(SL + (label - (BL + 1)));
		else if (label >= 1 && label <= CHANMAP_N_BITS)
			m->bit[i] = (int8_t)(label - 1);
	}
}

bool chanmap_from_apple(struct chanmap *m, const uint8_t *chunk, size_t n_bytes, unsigned channels)
{
	if (n_bytes < 12 || channels < 1 || channels > ARRAY_LEN(m->bit))
		return false;
	uint32_t tag = get_be32(chunk), bitmap = get_be32(chunk + 4), n_descriptions = get_be32(chunk + 8);

	memset(m->bit, CHANMAP_NOBODY, sizeof(m->bit));
	m->channels = channels;
	if (tag == APPLE_USE_DESCRIPTIONS) {
		if (n_descriptions != channels || (n_bytes - 12) / 20 < channels)
			return false;
		from_labels(m, chunk + 12);
		return true;
	}
	if (tag == APPLE_USE_BITMAP) {
		unsigned at = 0;
		for (unsigned bit = 0; bit < CHANMAP_N_BITS; bit++) {
			if (bitmap >> bit & 1 && at < channels)
				m->bit[at++] = (int8_t)bit;
		}
		return at == channels && (unsigned)__builtin_popcount(bitmap) == channels;
	}
	for (size_t i = 0; i < ARRAY_LEN(apple_layouts); i++) {
		if (apple_layouts[i].tag == tag >> 16 && apple_layouts[i].channels == channels && (tag & 0xFFFF) == channels) {
			memcpy(m->bit, apple_layouts[i].bit, channels);
			return true;
		}
	}
	return false;
}

bool chanmap_from_vorbis(struct chanmap *m, unsigned channels)
{
	static const int8_t order[9][8] = {
		{ 0 }, { FC }, { FL, FR }, { FL, FC, FR }, { FL, FR, BL, BR }, { FL, FC, FR, BL, BR }, { FL, FC, FR, BL, BR, LFE },
		{ FL, FC, FR, SL, SR, BC, LFE }, { FL, FC, FR, SL, SR, BL, BR, LFE },
	};

	if (channels < 1 || channels > 8)
		return false;
	memset(m->bit, CHANMAP_NOBODY, sizeof(m->bit));
	memcpy(m->bit, order[channels], sizeof(order[0]));
	m->channels = channels;
	return true;
}

bool chanmap_guess(struct track *t)
{
	if (t->layout != TRACK_LAYOUT_DISCRETE || !track_usual_mask(t->channels))
		return false;
	t->layout = TRACK_LAYOUT_WAVE;
	t->wave_mask = track_usual_mask(t->channels);
	return true;
}

enum err chanmap_order_init(struct chanmap_order *o, const uint16_t *perm, unsigned channels)
{
	o->perm = malloc(channels * sizeof(*o->perm));
	o->frame = malloc((size_t)channels * 8);
	o->channels = channels;
	if (!o->perm || !o->frame)
		return ERR_NOMEM;
	memcpy(o->perm, perm, channels * sizeof(*o->perm));
	return ERR_OK;
}

void chanmap_reorder(struct chanmap_order *o, uint8_t *frames, size_t n_frames, unsigned sample_bytes)
{
	size_t frame_bytes = (size_t)o->channels * sample_bytes;

	for (size_t k = 0; k < n_frames; k++, frames += frame_bytes) {
		memcpy(o->frame, frames, frame_bytes);
		for (unsigned i = 0; i < o->channels; i++)
			memcpy(frames + (size_t)i * sample_bytes, o->frame + (size_t)o->perm[i] * sample_bytes, sample_bytes);
	}
}

void chanmap_release(struct chanmap_order *o)
{
	free(o->perm);
	free(o->frame);
	*o = (struct chanmap_order){ 0 };
}
