/*
 * Packets of one track held back, in order, in memory that is taken once: their payloads lie in a ring of bytes, each in one piece.
 * PCM that goes on where the newest packet ends is put behind it, so that short packets take no more room than long ones.
 */
#ifndef STAGE_HOLDBACK_H
#define STAGE_HOLDBACK_H

#include "wire/packet.h"

#define HOLDBACK_MAX_ENTRY_BYTES 65536u /* of PCM that is joined */

struct holdback {
	struct packet *ring;      /* head is NULL in all, payload points into bytes */
	unsigned room, first, n;
	uint8_t *bytes;
	size_t room_bytes, put_at; /* where the next payload goes */
	unsigned frame_bytes;     /* of PCM, whose packets may be joined and cut; 0: kept as they are */
};

/* Room for so many packets and bytes.  Returns: ERR_OK, ERR_NOMEM. */
enum err holdback_init(struct holdback *h, unsigned n_packets, size_t n_bytes, unsigned frame_bytes) WEIR_MUSTUSE;
void holdback_release(struct holdback *h);

/* Keep a copy.  Returns: false where there is no room for it. */
bool holdback_add(struct holdback *h, const struct packet *p);

/* The i-th, the oldest first; i < n. */
const struct packet *holdback_at(const struct holdback *h, unsigned i);

/* The oldest one goes, or n_frames of it, which is longer, and PCM or a gap. */
void holdback_drop(struct holdback *h);
void holdback_trim(struct holdback *h, uint32_t n_frames);
void holdback_clear(struct holdback *h);

/* The first n_frames of a packet of PCM go; its wall-clock time, which was theirs, too. */
void holdback_cut_front(struct packet *p, unsigned frame_bytes, uint32_t n_frames);

#endif
