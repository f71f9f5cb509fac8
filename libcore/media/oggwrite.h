/*
 * Ogg Opus out, RFC 7845 to the sample: OpusHead, OpusTags, pages with granule positions, pre-skip and end trim.
 * Makes bytes only; where they go is the caller's (a sink, or a test).
 *
 * Frame 0 of the file is first_pos of the track.  The file holds nothing but what packets decode to, so its time is a
 * sum of packets: a hole is filled with packets that make the decoder conceal (RFC 7845 4.1), in steps of 2.5 ms, which is
 * the smallest there is.  What a step cannot reach (60 frames at most, 1.25 ms) is not lost: positions are compared with
 * the sum at every packet, so it is made good at the next hole and never adds up.  Without holes it is always 0.
 *
 * A pre-skip of less than 2.5 ms is no encoder's: a first packet that lies so late has concealment put in front.
 */
#ifndef MEDIA_OGGWRITE_H
#define MEDIA_OGGWRITE_H

#include "media/opushead.h"
#include "wire/packet.h"
#include "wire/track.h"

#include <ogg/ogg.h>

#define OGGWRITE_MAX_PACKET_BYTES (2u << 20)
#define OGGWRITE_MAX_PAGE_FRAMES 48000u          /* 1 s, so that a kill loses no more */

/* Takes a whole page; n_bytes of it.  A failure is handed back by the call that made the page. */
typedef enum err oggwrite_page_fn(void *user, const uint8_t *header, size_t header_bytes, const uint8_t *body, size_t body_bytes);

struct oggwrite {
	int64_t first_pos;        /* frame 0 of the file, on the track's timeline */
	int64_t next_pos;         /* where the next packet should begin: the sum of what is in the file */
	uint32_t preskip_frames;
	uint32_t page_frames;     /* a page is closed when it holds this much */
	uint64_t n_frames;        /* of the file so far: from first_pos on, trimmed, the held packet included */
	uint64_t filled_frames;   /* of concealment put into holes */
	uint64_t dropped_frames;  /* of packets that overlapped what was there, or lay too far before first_pos */
	uint64_t n_packets, n_pages;
	uint64_t n_bad_packets;   /* that were no Opus packets (or beyond OGGWRITE_MAX_PACKET_BYTES): holes */

	/* private */
	struct track track;       /* a copy */
	struct opushead head;
	ogg_stream_state stream;
	oggwrite_page_fn *page;
	void *user;
	bool begun;               /* the header pages are out */
	bool finished;
	uint8_t toc;              /* of the last packet's first stream */
	int64_t granule;          /* of the end of what is in `stream` */
	uint32_t stream_frames;   /* in the page being gathered */
	unsigned stream_segments;
	/* one packet is kept back, so that the last page is known to be the last */
	uint8_t *held;
	size_t held_bytes, held_room_bytes;
	uint32_t held_frames;     /* what it decodes to */
	int64_t held_end_pos;     /* of what is kept of it, in the file's sum */
	bool have_held;
	enum err failed;          /* latched */
};

/*
 * For an Opus track, which is copied; its TAGS go into OpusTags (opustags_pack()), so tags that are to be added are added to
 * the track before.  The pre-skip is known with the first packet, first_pos − pos, so the header pages go out with it, or
 * at the end.  page_frames 0: OGGWRITE_MAX_PAGE_FRAMES.  Allocates all that packets of up to 7.6 kB a stream need.
 * Returns: ERR_OK; ERR_ARG (not an Opus track at 48 kHz), ERR_FORMAT (an impossible mapping), ERR_CODEC, ERR_NOMEM.
 */
enum err oggwrite_open(struct oggwrite *w, const struct track *t, uint32_t serial, uint32_t page_frames, oggwrite_page_fn *page,
	void *user, struct err_why *why) WEIR_MUSTUSE;
/*
 * One Opus packet (pos, dur, flags, payload).  A hole before it is filled; one that overlaps is dropped and counted, bytes that
 * are no Opus packet are counted and become a hole.  With
 * TRIM it ends after dur frames, which a file can only say of its last packet: in the middle the next one closes the gap.
 * Returns: ERR_OK, ERR_NOMEM, or what the page function said.
 */
enum err oggwrite_packet(struct oggwrite *w, const struct packet *p, struct err_why *why) WEIR_MUSTUSE;
/* Fill with concealment up to pos: a hole that no packet follows yet.  A pos that is passed already: nothing. */
enum err oggwrite_fill(struct oggwrite *w, int64_t pos, struct err_why *why) WEIR_MUSTUSE;
/*
 * The file ends at pos: filled up to it, and what reaches beyond it trimmed, to the frame.  Before oggwrite_finish(); a pos that
 * lies before the newest packet, or in it, only trims that packet.
 */
enum err oggwrite_end_at(struct oggwrite *w, int64_t pos, struct err_why *why) WEIR_MUSTUSE;
/* Close the current page early (a second has passed, or the live tick asks).  All but the newest packet is out then. */
enum err oggwrite_flush(struct oggwrite *w, struct err_why *why) WEIR_MUSTUSE;
/* The last page, with end of stream and end trim.  A track without packets gets one of which nothing is kept. */
enum err oggwrite_finish(struct oggwrite *w, struct err_why *why) WEIR_MUSTUSE;
/* Zero- and NULL-safe. */
void oggwrite_release(struct oggwrite *w);

#endif
