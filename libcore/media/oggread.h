/*
 * Ogg Opus, packet by packet, undecoded: pages by libogg, positions by RFC 7845.
 *
 * Positions are delay-compensated, as everywhere in the stream: the first packet of a link begins pre-skip frames
 * before the link's first_pos, and the last one is trimmed by PACKET_TRIM and dur.  Links of a chained file follow one
 * another without a hole.  A hole (lost or damaged pages) keeps its time: the next packet's pos is right.
 *
 * A granule position speaks of a whole page, so the packets of one page are placed together (they are 255 at most).
 * Where it jumps forward the frames are a hole, with or without a page missing; where it falls back without an end of
 * stream the packets stay contiguous.  Steps of less than 2.5 ms, the shortest packet, are rounding of some other muxer.
 */
#ifndef MEDIA_OGGREAD_H
#define MEDIA_OGGREAD_H

#include "media/source.h"

#include <ogg/ogg.h>

#define OGGREAD_MAX_PACKETS 255u                 /* that end on one page: it has that many segments */
#define OGGREAD_MAX_PACKET_BYTES (2u << 20)      /* one that is larger is damage; of larger tags the beginning is read */
#define OGGREAD_MAX_HOLE_FRAMES (24ll * 3600 * 48000) /* a longer jump is a new beginning, not a hole */

/* One Opus packet.  data belongs to the reader, until the next call. */
struct oggread_packet {
	const uint8_t *data;
	size_t n_bytes;
	int64_t pos;              /* of its first decoded frame, at 48 kHz, on the timeline of the whole input */
	uint32_t dur;             /* frames covered: less than it decodes to when TRIM */
	uint16_t flags;           /* PACKET_KEY, PACKET_TRIM, PACKET_DISCONT at a new link */
	bool new_link;            /* r->track was replaced just before this one (first packet of a chained link) */
	uint16_t gap_reason;      /* enum packet_gap_reason, when gap_frames is not 0 */
	uint64_t gap_frames;      /* a hole of this length lies before it, ending at pos */
};

struct oggread {
	struct source_bytes in;
	struct track track;       /* of the current link: Opus, CODEC_PRIVATE = OpusHead, tags, gain; id 0 */
	bool cut;                 /* something was lost: holes, damage, an end in the middle of a page */
	uint64_t damaged_bytes, lost_frames;
	int64_t n_frames;         /* of the whole file as its last page tells, else −1; a hint: it may be a link's only */
	char note[256], warning[256];
	struct err_why why;

	/* pages */
	ogg_sync_state sync;
	bool eof;
	/* the current link */
	unsigned n_links;
	int serial;
	enum { OGGREAD_SEEK_HEAD, OGGREAD_SEEK_TAGS, OGGREAD_AUDIO, OGGREAD_LINK_OVER } stage;
	bool in_group;            /* pages that begin streams still follow one another */
	bool have_page_no;
	uint32_t page_no;         /* of its last page */
	uint32_t preskip_frames;
	bool link_is_new;         /* its first packet has not been handed out, and it is not the first link */
	uint64_t damaged_before_bytes; /* damaged_bytes when it began */
	unsigned n_other;         /* logical streams beside it that are ignored */
	/* a packet that spans pages */
	uint8_t *partial;         /* OGGREAD_MAX_PACKET_BYTES */
	size_t partial_bytes;
	bool in_partial, partial_skipped;
	const uint8_t *tail;      /* begun on the page at hand, to be put into partial before the next one is fetched */
	size_t tail_bytes;
	bool have_tail;
	/* time */
	bool placed;              /* shift and expect hold */
	bool shift_is_guess;      /* the first page had no granule position */
	bool hole_pending;        /* a page is missing since the last granule position */
	int64_t shift;            /* pos = granule position + shift */
	int64_t expect;           /* pos of the next packet */
	int64_t end_pos;          /* of the links before */
	uint32_t last_dur;        /* of the last whole packet */
	/* packets of the page at hand */
	struct oggread_packet packet[OGGREAD_MAX_PACKETS];
	unsigned n_packets, next_packet;
	/* losses */
	unsigned n_holes, n_bad_packets;
	int64_t first_hole_pos;
	bool torn, has_audio;
	enum err failed;          /* latched */
};

/*
 * Take over *in, read the headers of the first link and its first page of audio (so that track.first_pos is known).
 * Returns: ERR_OK; ERR_AGAIN (in->head does not begin as Ogg Opus: nothing was taken); ERR_FORMAT (a broken header, an
 * impossible granule position: says "granule"), ERR_VERSION, ERR_CODEC, ERR_SYS, ERR_NOMEM, with *why.  Allocates all that
 * will be needed, but for the announcements of further links.  Role: io, blocks.
 */
enum err oggread_open(struct oggread *r, struct source_bytes *in, bool is_regular, struct err_why *why) WEIR_MUSTUSE;
/*
 * The next packet.  Returns: ERR_OK, ERR_END, ERR_FORMAT (an impossible granule position: says "granule"), ERR_SYS.  Role: io,
 * blocks.
 */
enum err oggread_next(struct oggread *r, struct oggread_packet *p) WEIR_MUSTUSE;
/*
 * Are there packets that oggread_next() can give without reading?  If not, and source_bytes_would_block(&r->in), it is the
 * moment to flush what is owed downstream.
 */
bool oggread_is_ready(const struct oggread *r);
void oggread_release(struct oggread *r);

#endif
