/*
 * The way of a page: page_next() finds it and counts what is not one; page_take() tells whose it is; split() cuts it into
 * packets; place() gives the packets their positions.  Packets lie where libogg has the page; only those that span pages
 * are copied together.
 */
#include "media/oggread.h"

#include "base/bytes.h"
#include "base/role.h"
#include "base/units.h"
#include "media/opushead.h"
#include "media/opustags.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <opus.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_MAX_BYTES 65307u /* header, 255 lacing values, 255 · 255 bytes */
#define CHUNK_BYTES 65536u
#define SMALLEST_STEP_FRAMES 120 /* 2.5 ms */
#define PACKET_MAX_FRAMES 5760   /* 120 ms */

/* Granule positions beyond this are nobody's audio, and sums with them stay far from overflow. */
#define GRANULE_MAX (INT64_C(1) << 60)

static void note_add(struct oggread *r, const char *text)
{
	size_t used = strlen(r->note);
	if (!strstr(r->note, text))
		snprintf(r->note + used, sizeof(r->note) - used, "%s%s", used ? "; " : "", text);
}

/* Say all that was lost so far, anew. */
static void warning_update(struct oggread *r)
{
	char *out = r->warning;
	size_t room = sizeof(r->warning), used = 0;

	out[0] = 0;
	if (r->n_holes)
		used += (size_t)snprintf(out, room, "%u hole%s, %" PRIu64 " frames lost (from frame %" PRId64 ")", r->n_holes,
			r->n_holes > 1 ? "s" : "", r->lost_frames, r->first_hole_pos);
	if (r->damaged_bytes)
		used += (size_t)snprintf(out + used, room - used, "%s%" PRIu64 " damaged byte%s", used ? ", " : "", r->damaged_bytes,
			r->damaged_bytes > 1 ? "s" : "");
	if (r->torn)
		used += (size_t)snprintf(out + used, room - used, "%sends in the middle of a page", used ? ", " : "");
	if (r->torn && r->placed) {
		/* To where it goes, and how much there should be, where the last page said it. */
		used += (size_t)snprintf(out + used, room - used, ", after frame %" PRId64 " (%.3f s)", r->expect, (double)r->expect / 48000);
		if (r->n_frames > r->expect)
			used += (size_t)snprintf(out + used, room - used, " of %" PRId64, r->n_frames);
	}
	if (r->eof && !r->has_audio)
		snprintf(out + used, room - used, "%sno audio: headers only", used ? ", " : "");
}

/* ---- pages ---- */

/*
 * At the end of the input: what is left may begin as a page that will never be whole, with whole pages inside what it
 * claims.  Give up its first byte and look again.  Returns: false when nothing is left.
 */
static bool give_up_byte(struct oggread *r)
{
	if (r->sync.returned >= r->sync.fill)
		return false;
	r->sync.returned++;
	r->sync.headerbytes = r->sync.bodybytes = 0;
	r->damaged_bytes++;
	r->torn = true;
	return true;
}

/* The next whole page with a right CRC.  Returns: ERR_OK, ERR_END, ERR_SYS, ERR_NOMEM. */
static enum err page_next(struct oggread *r, ogg_page *page)
{
	for (;;) {
		long n = ogg_sync_pageseek(&r->sync, page);
		if (n > 0)
			return ERR_OK;
		if (n < 0) {
			r->damaged_bytes += (uint64_t)-n;
			continue;
		}
		if (r->eof) {
			/* Whoever asked for a stop cut the page, not the input. */
			if (r->in.stopped || !give_up_byte(r))
				return ERR_END;
			continue;
		}
		char *room = ogg_sync_buffer(&r->sync, CHUNK_BYTES);
		if (!room)
			return err_say(&r->why, ERR_NOMEM, "", "%s", err_text(ERR_NOMEM));
		size_t n_bytes = source_bytes_some(&r->in, room, CHUNK_BYTES);
		if (r->in.sys_errno) {
			errno = r->in.sys_errno;
			return err_sys(&r->why, "");
		}
		r->eof = !n_bytes;
		ogg_sync_wrote(&r->sync, (long)n_bytes);
	}
}

/* ---- packets of a page ---- */

/* Put a piece of a spanning packet away. */
static void partial_add(struct oggread *r, const uint8_t *data, size_t n_bytes)
{
	size_t room = OGGREAD_MAX_PACKET_BYTES - r->partial_bytes;
	if (n_bytes > room) {
		r->partial_skipped = true;
		n_bytes = room;
	}
	if (n_bytes)
		memcpy(r->partial + r->partial_bytes, data, n_bytes);
	r->partial_bytes += n_bytes;
}

static void partial_begin(struct oggread *r)
{
	r->partial_bytes = 0;
	r->partial_skipped = false;
	r->in_partial = true;
}

/* A packet that began and whose end will not come. */
static void partial_drop(struct oggread *r)
{
	if (r->in_partial) {
		r->damaged_bytes += r->partial_bytes;
		r->in_partial = false;
		r->hole_pending = true;
	}
}

/* Frames a packet decodes to, 0 for one that is no Opus packet. */
static uint32_t packet_frames(const uint8_t *data, size_t n_bytes)
{
	if (!n_bytes || n_bytes > INT_MAX)
		return 0;
	int n = opus_packet_get_nb_samples(data, (opus_int32)n_bytes, 48000);
	return n > 0 ? (uint32_t)n : 0;
}

/* Add a packet that ended on the page.  dur is what it decodes to; 0 marks a bad one until place() has seen it. */
static void packet_add(struct oggread *r, const uint8_t *data, size_t n_bytes)
{
	if (r->n_packets < OGGREAD_MAX_PACKETS)
		r->packet[r->n_packets++] = (struct oggread_packet){
			.data = data, .n_bytes = n_bytes, .dur = packet_frames(data, n_bytes), .flags = PACKET_KEY,
		};
}

/* Cut a page of our stream into packets. */
static void split(struct oggread *r, const ogg_page *page)
{
	const uint8_t *lacing = page->header + 27, *at = page->body;
	unsigned n_segments = page->header[26], s = 0;
	bool goes_on = ogg_page_continued(page);

	r->n_packets = r->next_packet = 0;
	if (!goes_on)
		partial_drop(r);

	while (s < n_segments) {
		size_t n_bytes = 0;
		bool ends = false;
		while (s < n_segments && !ends) {
			n_bytes += lacing[s];
			ends = lacing[s++] < 255;
		}
		if (goes_on && r->in_partial) {
			partial_add(r, at, n_bytes);
			if (ends) {
				r->in_partial = false;
				if (r->partial_skipped && r->stage == OGGREAD_AUDIO)
					packet_add(r, r->partial, 0);
				else
					packet_add(r, r->partial, r->partial_bytes);
			}
		} else if (goes_on) {
			/* The end of a packet whose beginning is lost. */
			r->damaged_bytes += n_bytes;
		} else if (ends) {
			packet_add(r, at, n_bytes);
		} else {
			r->tail = at;
			r->tail_bytes = n_bytes;
			r->have_tail = true;
		}
		at += n_bytes;
		goes_on = false;
	}
}

/* Before the page goes: what began at its end is kept. */
static void tail_keep(struct oggread *r)
{
	if (r->have_tail) {
		partial_begin(r);
		partial_add(r, r->tail, r->tail_bytes);
		r->have_tail = false;
	}
}

/* ---- positions ---- */

static void hole_count(struct oggread *r, struct oggread_packet *p, uint64_t n_frames, uint16_t reason)
{
	p->gap_frames += n_frames;
	p->gap_reason = reason;
	r->lost_frames += n_frames;
	if (!r->n_holes++)
		r->first_hole_pos = r->expect;
	r->cut = true;
}

/* What is known of the packets of a page together. */
struct page_sum {
	int64_t frames;           /* of the sound ones */
	unsigned n_bad;
	uint32_t usual_dur;       /* of the last sound one, or of one before */
};

static struct page_sum page_sum(const struct oggread *r)
{
	struct page_sum s = { .usual_dur = r->last_dur };
	for (unsigned i = 0; i < r->n_packets; i++) {
		s.frames += r->packet[i].dur;
		if (r->packet[i].dur)
			s.usual_dur = r->packet[i].dur;
		else
			s.n_bad++;
	}
	return s;
}

/*
 * The first page of a link.  granule is the position of its end, −1 unknown.
 * RFC 7845 4.5: it is no smaller than the frames on the page, unless the stream ends there.
 */
static enum err place_first(struct oggread *r, const struct page_sum *sum, int64_t granule, bool ends)
{
	int64_t start = granule - sum->frames;

	r->shift_is_guess = granule < 0;
	if (granule < 0)
		start = 0;
	else if (start < 0 && ends)
		start = 0;
	else if (start < 0)
		return err_say(&r->why, ERR_FORMAT, "", "the first granule position is %" PRId64 ", less than the %" PRId64
			" samples of its page (RFC 7845, 4.5)", granule, sum->frames);
	else if (sum->n_bad && start >= (int64_t)sum->n_bad * sum->usual_dur)
		start -= (int64_t)sum->n_bad * sum->usual_dur;

	/* A damaged first page: the time since 0 is a hole, unless the stream was joined late anyway. */
	int64_t hole = 0;
	bool damaged = r->hole_pending && r->damaged_bytes > r->damaged_before_bytes;
	if (damaged && start > 0 && start <= OGGREAD_MAX_PACKETS * PACKET_MAX_FRAMES) {
		hole = start;
		start = 0;
	}
	r->hole_pending = false;
	r->track.first_pos = r->n_links == 1 ? start : r->end_pos;
	r->shift = r->track.first_pos - r->preskip_frames - start;
	r->expect = start + r->shift;
	if (hole) {
		hole_count(r, &r->packet[0], (uint64_t)hole, PACKET_GAP_DAMAGED);
		r->expect += hole;
	}
	r->placed = true;
	return ERR_OK;
}

/* Frames of the page to keep at an end of stream; holes before it are whole packets, so the remainder is the trim. */
static int64_t place_end(struct oggread *r, const struct page_sum *sum, int64_t late, int64_t *hole)
{
	*hole = 0;
	if (late > 0 && (r->hole_pending || late >= SMALLEST_STEP_FRAMES)) {
		int64_t unit = sum->usual_dur ? sum->usual_dur : 1;
		*hole = r->hole_pending ? (late + unit - 1) / unit * unit : late;
	}
	int64_t keep = sum->frames + late - *hole;
	return keep < 0 ? 0 : keep < sum->frames ? keep : sum->frames;
}

/* Frames of the hole that a later page shows: `late` is where it ends against where it should. */
static int64_t place_later(struct oggread *r, int64_t late)
{
	if (late > OGGREAD_MAX_HOLE_FRAMES || -late > OGGREAD_MAX_HOLE_FRAMES) {
		note_add(r, "the granule positions begin anew");
		r->cut = true;
		r->shift -= late;
		return 0;
	}
	if (r->shift_is_guess) {
		r->shift -= late;
		r->shift_is_guess = false;
		return 0;
	}
	if (late >= SMALLEST_STEP_FRAMES || (r->hole_pending && late > 0))
		return late;
	if (late <= -SMALLEST_STEP_FRAMES) {
		note_add(r, "granule positions fall back");
		r->shift -= late;
	}
	return 0;
}

/*
 * Give the packets of the page their places; drop those that are bad or trimmed away.  A hole goes where bad packets are,
 * else before the page.  Returns: ERR_OK, ERR_FORMAT.
 */
static enum err place(struct oggread *r, int64_t granule, bool ends)
{
	struct page_sum sum = page_sum(r);
	bool is_first = !r->placed;

	if (granule > GRANULE_MAX || granule < -1) {
		note_add(r, "a granule position is out of range");
		granule = -1;
	}
	if (granule < 0)
		note_add(r, "a page has no granule position");
	if (is_first) {
		enum err e = place_first(r, &sum, granule, ends);
		if (e != ERR_OK)
			return e;
	}

	int64_t hole = 0, keep = sum.frames;
	uint16_t reason = r->hole_pending || sum.n_bad ? PACKET_GAP_DAMAGED : PACKET_GAP_UNKNOWN;
	if (granule >= 0) {
		int64_t late = granule + r->shift - (r->expect + sum.frames);
		if (ends && late <= OGGREAD_MAX_HOLE_FRAMES - PACKET_MAX_FRAMES && !r->shift_is_guess)
			keep = place_end(r, &sum, late, &hole);
		else
			hole = place_later(r, late);
		r->hole_pending = false;
	}

	/* Each bad packet gets its share where they are alike, else the first one gets all. */
	int64_t share = hole;
	if (sum.n_bad && hole % sum.n_bad == 0)
		share = hole / sum.n_bad;

	unsigned n_kept = 0;
	int64_t gap = sum.n_bad ? 0 : hole;
	for (unsigned i = 0; i < r->n_packets; i++) {
		struct oggread_packet p = r->packet[i];
		if (!p.dur) {
			r->n_bad_packets++;
			if (p.n_bytes) {
				r->damaged_bytes += p.n_bytes;
				r->cut = true;
			}
			gap += share < hole ? share : hole;
			hole -= share < hole ? share : hole;
			continue;
		}
		r->last_dur = p.dur;
		if (keep <= 0)
			break;
		if (gap) {
			hole_count(r, &p, (uint64_t)gap, reason);
			r->expect += gap;
			gap = 0;
		}
		p.pos = r->expect;
		if (p.dur > keep) {
			p.dur = (uint32_t)keep;
			p.flags |= PACKET_TRIM;
		}
		keep -= p.dur;
		r->expect += p.dur;
		r->packet[n_kept++] = p;
	}
	r->n_packets = n_kept;

	/* Bad ones at the end of the page: the next one shows the hole again, unless the stream is over. */
	if (gap && ends)
		r->lost_frames += (uint64_t)gap;
	else if (gap)
		r->hole_pending = true;
	if (n_kept && r->link_is_new) {
		r->packet[0].new_link = true;
		r->packet[0].flags |= PACKET_DISCONT;
		r->link_is_new = false;
	}
	return ERR_OK;
}

/* ---- links ---- */

/* An OpusHead on a page that begins a stream: the link begins. */
static enum err link_begin(struct oggread *r, const ogg_page *page)
{
	struct opushead head;
	enum err e = opushead_unpack(&head, page->body, (size_t)page->body_len, &r->why);
	if (e != ERR_OK)
		return e;

	/* The frames of the links before; one that was shorter than its pre-skip had none. */
	if (r->placed)
		r->end_pos = r->expect > r->track.first_pos ? r->expect : r->track.first_pos;
	partial_drop(r);
	track_release(&r->track);
	e = opushead_to_track(&head, &r->track);
	if (e != ERR_OK)
		return err_say(&r->why, e, "", "%s", err_text(e));
	r->track.next_utc_ns = UNITS_UNKNOWN_NS;
	/* Frames of up to 1275 bytes, 6 in the longest packet of the usual ones. */
	r->track.largest_object_bytes = head.streams * 7650u;
	r->track.first_pos = r->end_pos;
	r->preskip_frames = head.preskip_frames;
	r->serial = ogg_page_serialno(page);
	r->page_no = (uint32_t)ogg_page_pageno(page);
	r->have_page_no = true;
	r->stage = OGGREAD_SEEK_TAGS;
	r->placed = r->hole_pending = r->in_partial = false;
	r->last_dur = 0;
	r->link_is_new = r->n_links++ > 0;
	r->damaged_before_bytes = r->damaged_bytes;
	return ERR_OK;
}

static enum err tags_take(struct oggread *r, const uint8_t *data, size_t n_bytes)
{
	struct opustags_report report;
	char text[96];
	enum err e = opustags_unpack(&r->track, data, n_bytes, &report);
	if (e != ERR_OK)
		return err_say(&r->why, e, "", "%s", err_text(e));

	if (report.malformed)
		note_add(r, r->partial_skipped ? "tags beyond 2 MiB were dropped" : "the tags are damaged, what can be read was kept");
	if (report.n_dropped) {
		snprintf(text, sizeof(text), "%u tag%s dropped: larger than %u bytes in all, or not KEY=value", report.n_dropped,
			report.n_dropped > 1 ? "s" : "", OPUSTAGS_MAX_BYTES);
		note_add(r, text);
	}
	return ERR_OK;
}

/* A page that begins a logical stream: ours if it is the first Opus one of its group. */
static enum err begin_page_take(struct oggread *r, const ogg_page *page)
{
	bool is_opus = opushead_is(page->body, (size_t)page->body_len);
	bool group_has_ours = r->in_group && r->stage == OGGREAD_SEEK_TAGS;

	r->in_group = true;
	if (is_opus && !group_has_ours)
		return link_begin(r, page);
	r->n_other++;
	note_add(r, "other streams in the file are ignored");
	return ERR_OK;
}

/* A page of any kind.  Packets, if it has any for us, stand in r->packet. */
static enum err page_take(struct oggread *r, const ogg_page *page)
{
	if (ogg_page_version(page) != 0) {
		r->damaged_bytes += (uint64_t)(page->header_len + page->body_len);
		return ERR_OK;
	}
	if (ogg_page_bos(page))
		return begin_page_take(r, page);
	r->in_group = false;
	if (r->stage == OGGREAD_SEEK_HEAD || ogg_page_serialno(page) != r->serial)
		return ERR_OK;
	if (r->stage == OGGREAD_LINK_OVER) {
		note_add(r, "pages after the end of the stream are ignored");
		return ERR_OK;
	}

	uint32_t page_no = (uint32_t)ogg_page_pageno(page);
	if (r->have_page_no && page_no != r->page_no + 1) {
		partial_drop(r);
		r->hole_pending = true;
	}
	r->page_no = page_no;
	split(r, page);

	/* The header of tags ends its page (RFC 7845 section 3), so audio begins with the next one. */
	if (r->stage == OGGREAD_SEEK_TAGS && r->n_packets) {
		bool is_tags = opustags_is(r->packet[0].data, r->packet[0].n_bytes);
		r->stage = OGGREAD_AUDIO;
		if (is_tags) {
			enum err e = tags_take(r, r->packet[0].data, r->packet[0].n_bytes);
			r->n_packets = 0;
			if (e != ERR_OK)
				return e;
		} else {
			note_add(r, "the tags are missing");
		}
	}

	bool ends = ogg_page_eos(page);
	enum err e = ERR_OK;
	if (r->n_packets) {
		r->has_audio = true;
		e = place(r, ogg_page_granulepos(page), ends);
	}
	if (ends)
		r->stage = OGGREAD_LINK_OVER;
	return e;
}

/* Pages until there are packets.  Returns: ERR_OK, ERR_END…. */
static enum err fetch(struct oggread *r)
{
	enum err e = ERR_OK;

	r->n_packets = r->next_packet = 0;
	while (e == ERR_OK && !r->n_packets) {
		ogg_page page;
		tail_keep(r);
		e = page_next(r, &page);
		if (e == ERR_OK)
			e = page_take(r, &page);
	}
	if (e != ERR_OK)
		r->n_packets = 0; /* of a page that was refused */
	if (e == ERR_END) {
		if (r->in_partial && !r->in.stopped) {
			r->torn = true;
			partial_drop(r);
		}
		if (r->stage == OGGREAD_AUDIO && !r->in.stopped)
			note_add(r, "ends without an end-of-stream page");
	}
	if (r->damaged_bytes || r->torn)
		r->cut = true;
	if (r->cut || e == ERR_END)
		warning_update(r);
	return e;
}

/* ---- opening ---- */

/*
 * Is there a page that begins an Opus stream among the first bytes?  *undecided: they end before it can be told.  Bytes in
 * front of the first page are passed over.
 */
static bool head_has_opus(const struct source_bytes *in, bool *undecided)
{
	const uint8_t *p = in->head;

	*undecided = true;
	for (size_t i = 0; i + 27 < in->head_bytes; i++) {
		if (memcmp(p + i, "OggS", 4) != 0 || p[i + 4] != 0)
			continue;
		/* The first page that begins no stream ends the group: no Opus in it. */
		if (!(p[i + 5] & 0x02)) {
			*undecided = false;
			return false;
		}
		size_t body = i + 27 + p[i + 26];
		if (body < in->head_bytes && opushead_is(p + body, in->head_bytes - body))
			return true;
	}
	return false;
}

/* The same, asking for more of the input only as long as it is not decided. */
static bool input_has_opus(struct source_bytes *in)
{
	bool undecided, found = head_has_opus(in, &undecided);

	if (!found && undecided && in->head_bytes < SOURCE_HEAD_BYTES) {
		source_bytes_want(in, SOURCE_HEAD_BYTES);
		found = head_has_opus(in, &undecided);
	}
	return found;
}

/* As much of n_bytes as the file holds there.  Returns: bytes got. */
static size_t read_at(int fd, char *dst, size_t n_bytes, off_t offset)
{
	size_t got = 0;

	while (got < n_bytes) {
		ssize_t n = pread(fd, dst + got, n_bytes - got, offset + (off_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

/* The granule position of the last page of our stream, if that page is the last of the file; else −1. */
static int64_t last_granule(const struct oggread *r)
{
	int64_t granule = -1;
	ogg_sync_state sync;
	ogg_page page;
	const uint64_t tail_bytes = 2 * PAGE_MAX_BYTES;

	if (!r->in.is_regular)
		return -1;
	uint64_t from = r->in.size_bytes > tail_bytes ? r->in.size_bytes - tail_bytes : 0;
	ogg_sync_init(&sync);
	char *room = ogg_sync_buffer(&sync, (long)tail_bytes);
	size_t n = room ? read_at(r->in.fd, room, (size_t)tail_bytes, r->in.base_bytes + (off_t)from) : 0;
	if (n > 0) {
		long found;
		ogg_sync_wrote(&sync, (long)n);
		while ((found = ogg_sync_pageseek(&sync, &page)) != 0) {
			if (found < 0)
				continue;
			if (ogg_page_serialno(&page) != r->serial)
				granule = -1;
			else if (ogg_page_granulepos(&page) >= 0)
				granule = ogg_page_granulepos(&page);
		}
	}
	ogg_sync_clear(&sync);
	return granule <= GRANULE_MAX ? granule : -1;
}

enum err oggread_open(struct oggread *r, struct source_bytes *in, bool is_regular, struct err_why *why)
{
	role_forbid(ROLE_DEADLINE);
	memset(r, 0, sizeof(*r));
	r->n_frames = -1;
	if (!input_has_opus(in))
		return ERR_AGAIN;

	enum err e = ERR_NOMEM;
	r->in = *in;
	ogg_sync_init(&r->sync);
	r->partial = malloc(OGGREAD_MAX_PACKET_BYTES);
	/* All it will ever need: a page that is not whole yet, and a chunk behind it. */
	if (!r->partial || !ogg_sync_buffer(&r->sync, PAGE_MAX_BYTES + CHUNK_BYTES)) {
		err_say(&r->why, e, "", "%s", err_text(e));
		goto out;
	}
	e = fetch(r);
	if (e == ERR_END && !r->n_links)
		e = err_say(&r->why, ERR_FORMAT, "", "the page with the OpusHead is damaged");
	if (e != ERR_OK && e != ERR_END)
		goto out;
	if (e == ERR_END) {
		r->n_frames = 0;
		r->failed = ERR_END;
	}

	/* The first link that has audio is where the input begins. */
	if (r->n_packets) {
		r->packet[0].new_link = false;
		r->packet[0].flags &= (uint16_t)~PACKET_DISCONT;
	}
	if (is_regular && r->n_packets && !r->shift_is_guess) {
		int64_t end = last_granule(r);
		if (end >= 0) {
			end += r->shift - r->track.first_pos;
			r->n_frames = end > 0 ? end : 0;
		}
	}
	e = ERR_OK;
out:
	if (e != ERR_OK) {
		if (why)
			*why = r->why;
		oggread_release(r);
	}
	return e;
}

enum err oggread_next(struct oggread *r, struct oggread_packet *p)
{
	role_forbid(ROLE_DEADLINE);
	while (r->next_packet >= r->n_packets) {
		if (r->failed != ERR_OK)
			return r->failed;
		r->failed = fetch(r);
	}
	*p = r->packet[r->next_packet++];
	return ERR_OK;
}

bool oggread_is_ready(const struct oggread *r)
{
	return r->next_packet < r->n_packets;
}

void oggread_release(struct oggread *r)
{
	if (r->partial)
		ogg_sync_clear(&r->sync);
	free(r->partial);
	track_release(&r->track);
	r->partial = NULL;
	r->n_packets = r->next_packet = 0;
	r->failed = ERR_END;
}
