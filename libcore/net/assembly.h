/*
 * Wide packets from narrow ones: a track of many channels comes as several flows of a few channels each, and what belongs
 * to one position is put together again before it goes into the jitter buffer (net/jitter.h), so that a hole, a clock and a
 * ratio are those of all channels.  Pure: time is an argument, nothing is allocated.
 *
 * What is whole is handed out at once.  What is not waits for its rest until the caller needs it: channels that have not
 * come are silence then.  A flow that has sent nothing for a while is not waited for.
 */
#ifndef NET_ASSEMBLY_H
#define NET_ASSEMBLY_H

#include "base/role.h"
#include "base/units.h"
#include "net/jitter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASSEMBLY_MAX_CHANNELS 256u
#define ASSEMBLY_MAX_MEMBERS 32u
#define ASSEMBLY_PLACES 256u                       /* positions that wait at one time */
#define ASSEMBLY_WAIT_NS (UNITS_NS_PER_S / 4)      /* at the beginning, for all flows; later for one that is silent */
#define ASSEMBLY_PARTIAL 1u                        /* jitter_packet.tag: some channels are silence because they did not come */

enum assembly_put {
	ASSEMBLY_WHOLE,        /* and handed out */
	ASSEMBLY_KEPT,         /* until the rest has come */
	ASSEMBLY_HAD,          /* it was there already */
	ASSEMBLY_REFUSED,      /* of another length than the others at this position, or longer than a packet can be */
};

struct assembly_member {
	bool used;
	unsigned first_channel, channels;
	int64_t last_ns;
};

struct assembly_place {
	bool used, follows;
	int64_t pos, arrival_ns;
	uint32_t frames, members;     /* members: one bit each */
};

struct assembly {
	unsigned channels, sample_bytes;
	uint32_t max_frames;          /* of a packet */
	size_t place_bytes;
	struct assembly_member members[ASSEMBLY_MAX_MEMBERS];
	unsigned n_members, covered;  /* covered: channels that have a member */
	int64_t begin_ns;             /* first packet */
	bool begun;
	struct assembly_place places[ASSEMBLY_PLACES];
	unsigned newest, n_waiting;   /* place that was begun last; places in use */
	uint8_t *bytes;               /* ASSEMBLY_PLACES · place_bytes, the caller's */
	uint64_t n_dropped;           /* positions that made room for others */
};

/* Memory for assembly_init().  0: outside the limits. */
size_t assembly_bytes(unsigned channels, unsigned sample_bytes, uint32_t max_frames);

/* memory: assembly_bytes(), the caller's.  Role: control. */
void assembly_init(struct assembly *a, unsigned channels, unsigned sample_bytes, uint32_t max_frames, void *memory);

/* A flow that carries channels from first_channel on.  Returns: its number; −1: outside of the track, taken by another, or too many. */
int assembly_join(struct assembly *a, unsigned first_channel, unsigned channels, int64_t now_ns);
void assembly_leave(struct assembly *a, unsigned member);

/*
 * A member's samples (big-endian as on the wire) at pos.  follows, copy: as JITTER_FOLLOWS and JITTER_COPY.
 * *whole: with WHOLE the packet of all channels, little-endian; its bytes are valid until the next call.
 */
WEIR_DEADLINE enum assembly_put assembly_put(struct assembly *a, unsigned member, int64_t pos, uint32_t frames, const uint8_t *samples, bool follows, bool copy,
	int64_t arrival_ns, struct jitter_packet *whole);

/* The first position before `before` that is not whole is needed now.  Returns: false: there is none. */
WEIR_DEADLINE bool assembly_give_up(struct assembly *a, int64_t before, struct jitter_packet *partial);

#endif
