/*
 * Where frames are not what was recorded, at another rate: which flags the packets that come out must have.
 */
#ifndef STAGE_RETIMEMARKS_H
#define STAGE_RETIMEMARKS_H

#include <stdint.h>

#define RETIMEMARKS_MAX 32u

struct retimemarks_mark {
	int64_t from_pos, to_pos;    /* in the new rate */
	uint16_t flags;
};

/* In order; zero is none.  When there are too many, the last one grows to hold what comes. */
struct retimemarks {
	struct retimemarks_mark marks[RETIMEMARKS_MAX];
	unsigned n;
};

/* [from_pos, to_pos), behind all before, has PACKET_CONCEALED or PACKET_RECOVERED; other flags are of no interest. */
void retimemarks_add(struct retimemarks *m, int64_t from_pos, int64_t to_pos, uint16_t flags);

/* Returns: flags of a packet over [pos, end_pos); what lies before its end is not asked for again. */
uint16_t retimemarks_take(struct retimemarks *m, int64_t pos, int64_t end_pos);

#endif
