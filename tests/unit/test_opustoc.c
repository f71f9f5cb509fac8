#include "net/opustoc.h"

#include "check.h"

#include <opus/opus.h>

/* Every first byte with every second one: as libopus has it. */
static void test_as_libopus(void)
{
	for (unsigned first = 0; first < 256; first++)
		for (unsigned second = 0; second < 256; second++) {
			uint8_t packet[2] = { (uint8_t)first, (uint8_t)second };
			for (int n = 1; n <= 2; n++) {
				int theirs = opus_packet_get_nb_samples(packet, n, 48000);
				CHECK_EQ(opustoc_frames(packet, (size_t)n), theirs > 0 ? theirs : 0);
			}
			CHECK_EQ(opustoc_channels(packet, 2), opus_packet_get_nb_channels(packet));
		}
	CHECK_EQ(opustoc_frames(NULL, 0), 0);
}

int main(void)
{
	CHECK_RUN(test_as_libopus);
	return check_end();
}
