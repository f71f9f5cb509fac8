#include "media/opusmap.h"

#include <stddef.h>

static const struct {
	uint64_t wave_mask;
	uint8_t channels;
	uint8_t order[8];
} known[] = {
	{ 0x004, 1, { 0 } },
	{ 0x003, 2, { 0, 1 } },
	{ 0x007, 3, { 0, 2, 1 } },                /* FL FR FC */
	{ 0x033, 4, { 0, 1, 2, 3 } },             /* FL FR BL BR */
	{ 0x603, 4, { 0, 1, 2, 3 } },             /* FL FR SL SR */
	{ 0x037, 5, { 0, 2, 1, 3, 4 } },          /* FL FR FC BL BR */
	{ 0x607, 5, { 0, 2, 1, 3, 4 } },          /* FL FR FC SL SR */
	{ 0x03F, 6, { 0, 2, 1, 4, 5, 3 } },       /* FL FR FC LFE BL BR */
	{ 0x60F, 6, { 0, 2, 1, 4, 5, 3 } },       /* FL FR FC LFE SL SR */
	{ 0x70F, 7, { 0, 2, 1, 5, 6, 4, 3 } },    /* FL FR FC LFE BC SL SR */
	{ 0x13F, 7, { 0, 2, 1, 4, 5, 6, 3 } },    /* FL FR FC LFE BL BR BC */
	{ 0x63F, 8, { 0, 2, 1, 6, 7, 4, 5, 3 } }, /* FL FR FC LFE BL BR SL SR */
};

const uint8_t *opusmap_vorbis_order(unsigned channels, uint64_t wave_mask)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].channels == channels && known[i].wave_mask == wave_mask)
			return known[i].order;
	return NULL;
}
