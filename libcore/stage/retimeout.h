/*
 * The packets that a track at another rate goes out as: frames of the work format, interleaved or in planes, into the format asked
 * for and the writer's arena, at their positions, with the flags and the wall-clock time of what they were made of.
 *
 * Of frames whose place is taken already nothing is written: positions never go back without PACKET_DISCONT.
 */
#ifndef STAGE_RETIMEOUT_H
#define STAGE_RETIMEOUT_H

#include "dsp/convert.h"
#include "stage/retimemarks.h"
#include "stage/retimeplanes.h"
#include "wire/writer.h"

#include <stdatomic.h>

struct retimeout {
	struct writer *writer;       /* not owned */
	uint16_t id;
	unsigned channels;
	uint32_t rate_hz;
	size_t in_frame_bytes;       /* of the work format */
	size_t frame_bytes;          /* as they go out */
	size_t packet_frames;        /* that a packet holds */
	struct convert convert;
	bool converts;               /* false: the work format is that of what goes out */
	atomic_uint_fast64_t *clipped_samples; /* the caller's; counted as stats_add() does */
	uint8_t *flat;               /* interleaved: packet_frames in the work format, to be converted; owned, NULL: never needed */
	int64_t pos;                 /* end of what was written */
	bool has_pos;
	uint64_t drop_frames;        /* of what comes next: their place is taken */
	bool discont;                /* the next packet begins a timeline */
	struct retimemarks marks;
	int64_t utc_ns, utc_pos;     /* wall-clock time of a frame; UNITS_UNKNOWN_NS none */
};

/* A run of frames begins, whose first stands at first_pos; discont: on another timeline. */
void retimeout_begin(struct retimeout *o, int64_t first_pos, bool discont);

/* Where a packet's frames may be made: `room` for as many as it holds, in the work format.  NULL: the writer has failed. */
uint8_t *retimeout_reserve(struct retimeout *o, uint8_t **room);
/* n_frames of them are there: a packet.  to: as reserved.  Returns: what writer_commit() says. */
enum err retimeout_flat(struct retimeout *o, uint8_t *to, uint8_t *room, size_t n_frames) WEIR_MUSTUSE;
/* The same of n_frames in planes, any number. */
enum err retimeout_planes(struct retimeout *o, const struct retimeplanes *p, void *const *planes, size_t n_frames) WEIR_MUSTUSE;
/* The same of n_frames that lie elsewhere, interleaved; NULL: silence. */
enum err retimeout_frames(struct retimeout *o, const uint8_t *from, size_t n_frames) WEIR_MUSTUSE;

/* A hole from from_pos to to_pos.  Shorter than a frame it takes the next one's place, once. */
enum err retimeout_gap(struct retimeout *o, int64_t from_pos, int64_t to_pos, const struct packet_gap *gap) WEIR_MUSTUSE;

#endif
