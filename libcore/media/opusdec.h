/*
 * Opus to PCM, one track: packets in, frames out in WAVE order, trimmed to the sample, holes concealed.
 *
 * The timeline: frames before first_pos, and frames that came already, are decoded and not handed out.  A packet flagged
 * DISCONT resets the decoder first; so does the first packet of a new announcement, which has a decoder of its own.  One that lies
 * further back than the pre-roll moves the timeline there (track_is_preroll()).
 * A packet that lies ahead moves the timeline: whoever knows of the hole conceals it before, or passes it on.
 */
#ifndef MEDIA_OPUSDEC_H
#define MEDIA_OPUSDEC_H

#include "wire/packet.h"
#include "wire/track.h"

#define OPUSDEC_MAX_FRAMES 5760u /* of one packet: 120 ms */

struct opusdec; /* opusdec.c */

/* A run of decoded frames, interleaved f32 (or s16 when asked), valid until the next call. */
struct opusdec_block {
	const void *frames;
	size_t n_frames;
	int64_t pos;
	uint16_t flags;           /* PACKET_CONCEALED, PACKET_RECOVERED (from the in-band FEC of the next packet) */
};

/*
 * For an Opus track; *pcm becomes the announcement of what comes out (48 kHz; sample f32, or s16 straight from libopus with
 * as_s16; layout WAVE where the family says so).  The header gain is applied.  Allocates everything here.
 * Families 0, 1, 2, 255 by OpusHead; 3 with its matrix.
 */
enum err opusdec_new(struct opusdec **d, const struct track *coded, bool as_s16, struct track *pcm, struct err_why *why) WEIR_MUSTUSE;

/*
 * Decode one packet; frames that are not to be handed out (the rules above, TRIM and dur) are not in *b.
 * A packet that libopus refuses is concealed, up to 120 ms of it: *b is flagged and ERR_CODEC comes back with it.
 */
enum err opusdec_packet(struct opusdec *d, const struct packet *p, struct opusdec_block *b) WEIR_MUSTUSE;

/* The same, decoding to dst (room for room_frames, 4-byte aligned) where that can be: b->frames says where the frames lie. */
enum err opusdec_packet_into(struct opusdec *d, const struct packet *p, void *dst, size_t room_frames, struct opusdec_block *b)
	WEIR_MUSTUSE;

/*
 * Conceal a hole at pos: at most one call's worth into *b; call again with what is left.  `next`, when not NULL, is the packet that
 * follows the hole: its in-band FEC is used for the last part if it has any.
 */
enum err opusdec_conceal(struct opusdec *d, int64_t pos, uint64_t n_frames, const struct packet *next, struct opusdec_block *b) WEIR_MUSTUSE;

/* Could the packet after the last one carry in-band FEC for a hole between them?  Only if the last one was not all CELT. */
bool opusdec_may_recover(const struct opusdec *d);

/* Where the next frame to be handed out stands. */
int64_t opusdec_pos(const struct opusdec *d);

/* A hole that ends at pos is not concealed: the timeline goes on there, and the decoder starts afresh. */
void opusdec_skip(struct opusdec *d, int64_t pos);
/* The decoder starts afresh; the timeline stays. */
void opusdec_reset(struct opusdec *d);
void opusdec_free(struct opusdec *d);

/* How many frames at 48 kHz an Opus packet decodes to; 0: it is none. */
uint32_t opusdec_packet_frames(const uint8_t *bytes, size_t n_bytes);

#endif
