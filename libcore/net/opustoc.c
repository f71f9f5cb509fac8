#include "net/opustoc.h"

/* Of one of the packet's frames, by the five bits of its configuration (table 2). */
static uint32_t frame_frames(unsigned config)
{
	static const uint16_t silk[4] = { 480, 960, 1920, 2880 }, hybrid[2] = { 480, 960 }, celt[4] = { 120, 240, 480, 960 };

	return config < 12 ? silk[config % 4] : config < 16 ? hybrid[config % 2] : celt[config % 4];
}

uint32_t opustoc_frames(const uint8_t *packet, size_t n_bytes)
{
	uint32_t count;

	if (!n_bytes)
		return 0;
	switch (packet[0] & 3) {
	case 0:
		count = 1;
		break;
	case 3:
		count = n_bytes > 1 ? packet[1] & 63 : 0;
		break;
	default:
		count = 2;
	}
	count *= frame_frames(packet[0] >> 3);
	return count <= OPUSTOC_MAX_FRAMES ? count : 0;
}

unsigned opustoc_channels(const uint8_t *packet, size_t n_bytes)
{
	return n_bytes && packet[0] & 4 ? 2 : 1;
}
