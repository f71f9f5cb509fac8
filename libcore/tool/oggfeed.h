/*
 * Ogg Opus as packets of a stream, undecoded: one track, number 1.  What a reader hands out, it hands out too: TRACK, then
 * DATA with GAP before every hole; a new link of a chained file is a new TRACK and a DISCONT packet behind it.
 */
#ifndef TOOL_OGGFEED_H
#define TOOL_OGGFEED_H

#include "media/oggread.h"
#include "wire/packet.h"

#define OGGFEED_TRACK 1u

struct oggfeed {
	struct oggread ogg;
	char name[256];           /* for messages */
	uint8_t *buffer;          /* packets of one page, whole in memory with header and padding; 64-byte aligned */
	size_t buffer_bytes, used_bytes;
	struct packet queue[2 * OGGREAD_MAX_PACKETS];
	unsigned n_queued, next_queued;
	struct oggread_packet held; /* taken, not queued yet (its bytes are oggread's until the next is taken) */
	size_t held_at_bytes;     /* of it, queued already: a large one goes out in fragments */
	bool have_held;
	bool announced;
	char track_name[128];
	uint32_t seq;
	uint64_t n_packets, n_frames;
	enum err failed;          /* latched */
	struct err_why why;
};

/* Take over *in.  Returns: as oggread_open(): ERR_AGAIN means it is not Ogg Opus.  Allocates. */
enum err oggfeed_open(struct oggfeed *f, struct source_bytes *in, const char *name, struct err_why *why) WEIR_MUSTUSE;
/* As reader_next(): ERR_AGAIN asks for oggfeed_fill(); ERR_END.  Packets live until then. */
enum err oggfeed_next(struct oggfeed *f, struct packet *p) WEIR_MUSTUSE;
/* Read on: one page.  Role: io, blocks. */
enum err oggfeed_fill(struct oggfeed *f) WEIR_MUSTUSE;
/* Name the track (TLV), and each further link; before the first packet is taken. */
enum err oggfeed_set_name(struct oggfeed *f, const char *track_name) WEIR_MUSTUSE;
void oggfeed_release(struct oggfeed *f);

#endif
