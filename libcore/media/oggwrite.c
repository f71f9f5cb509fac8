#include "media/oggwrite.h"

#include "base/bytes.h"
#include "media/opustags.h"

#include <opus.h>
#include <stdlib.h>

#define STEP_FRAMES 120          /* 2.5 ms, the shortest packet */
#define PACKET_MAX_FRAMES 5760   /* 120 ms, the longest */
#define STREAM_PACKET_BYTES 7650 /* 6 frames of 20 ms at the largest size a frame has, 1275 */
#define PAGE_SEGMENTS 255
#define USUAL_PRESKIP_FRAMES 312 /* of libopus, for a file that has no packet to tell */

static enum err fail(struct oggwrite *w, enum err e)
{
	if (w->failed == ERR_OK)
		w->failed = e;
	return e;
}

/* ---- pages ---- */

/* Hand out all pages there are, the last one short. */
static enum err pages_out(struct oggwrite *w)
{
	ogg_page page;

	while (ogg_stream_flush_fill(&w->stream, &page, PAGE_SEGMENTS * 255)) {
		enum err e = w->page(w->user, page.header, (size_t)page.header_len, page.body, (size_t)page.body_len);
		if (e != ERR_OK)
			return fail(w, e);
		w->n_pages++;
	}
	w->stream_frames = 0;
	w->stream_segments = 0;
	return ERR_OK;
}

static enum err stream_add(struct oggwrite *w, const uint8_t *bytes, size_t n_bytes, int64_t granule)
{
	ogg_packet packet = {
		.packet = (unsigned char *)bytes, .bytes = (long)n_bytes, .granulepos = granule,
		.packetno = w->stream.packetno + 1,
	};
	return ogg_stream_packetin(&w->stream, &packet) == 0 ? ERR_OK : fail(w, ERR_NOMEM);
}

/* The two header packets, each on pages of its own. */
static enum err headers_out(struct oggwrite *w)
{
	uint8_t bytes[OPUSHEAD_MAX_BYTES];
	uint8_t *tags = NULL;
	size_t n_tags;

	if (w->begun)
		return ERR_OK;
	w->head.preskip_frames = (uint16_t)w->preskip_frames;
	enum err e = stream_add(w, bytes, opushead_pack(&w->head, bytes), 0);
	if (e == ERR_OK)
		e = pages_out(w);
	if (e == ERR_OK)
		e = opustags_pack(&w->track, opus_get_version_string(), w->head.gain_q8, &tags, &n_tags);
	if (e == ERR_OK)
		e = stream_add(w, tags, n_tags, 0);
	if (e == ERR_OK)
		e = pages_out(w);
	free(tags);
	w->begun = e == ERR_OK;
	return e == ERR_OK ? e : fail(w, e);
}

/* ---- packets ---- */

/* The held packet goes into the page; `end_pos` is where the file then ends. */
static enum err held_out(struct oggwrite *w)
{
	if (!w->have_held)
		return ERR_OK;
	unsigned n_segments = (unsigned)(w->held_bytes / 255 + 1);

	/* Whole packets on whole pages, as far as they fit. */
	if (w->stream_segments && w->stream_segments + n_segments > PAGE_SEGMENTS) {
		enum err e = pages_out(w);
		if (e != ERR_OK)
			return e;
	}
	w->granule = w->held_end_pos - w->first_pos + w->preskip_frames;
	enum err e = stream_add(w, w->held, w->held_bytes, w->granule);
	if (e != ERR_OK)
		return e;
	w->have_held = false;
	w->stream_segments += n_segments;
	w->stream_frames += w->held_frames;
	return ERR_OK;
}

/* A page is full when the held packet would make it longer than page_frames. */
static enum err page_close_full(struct oggwrite *w)
{
	if (w->stream_frames && w->stream_frames + w->held_frames > w->page_frames)
		return pages_out(w);
	return ERR_OK;
}

/* Room for the held packet: grows only for packets larger than any encoder makes them. */
static enum err held_reserve(struct oggwrite *w, size_t n_bytes)
{
	if (n_bytes <= w->held_room_bytes)
		return ERR_OK;
	uint8_t *held = realloc(w->held, n_bytes);
	if (!held)
		return fail(w, ERR_NOMEM);
	w->held = held;
	w->held_room_bytes = n_bytes;
	return ERR_OK;
}

/* The file ends with the held packet, there. */
static void held_end(struct oggwrite *w, int64_t pos)
{
	w->held_end_pos = pos;
	w->n_frames = pos > w->first_pos ? (uint64_t)(pos - w->first_pos) : 0;
}

/* Add a packet at next_pos that decodes to n_frames, of which `kept` count. */
static enum err packet_add(struct oggwrite *w, const uint8_t *bytes, size_t n_bytes, uint32_t n_frames, uint32_t kept)
{
	enum err e = held_out(w);
	if (e != ERR_OK)
		return e;
	e = held_reserve(w, n_bytes);
	if (e != ERR_OK)
		return e;
	memcpy(w->held, bytes, n_bytes);
	w->held_bytes = n_bytes;
	w->held_frames = n_frames;
	w->have_held = true;
	held_end(w, w->next_pos + kept);
	w->next_pos += n_frames;
	w->n_packets++;
	return page_close_full(w);
}

/* A packet in the middle cannot be trimmed: all it decodes to is there. */
static void held_untrim(struct oggwrite *w)
{
	if (w->have_held)
		held_end(w, w->next_pos);
}

/* ---- holes ---- */

/* The durations a configuration of RFC 6716 table 2 comes in, and its mode. */
static uint32_t toc_frames(uint8_t toc)
{
	return (uint32_t)opus_packet_get_samples_per_frame(&toc, 48000);
}

/* A configuration for frames of `frames`, of the mode of `toc` if that has it, else CELT of wide band (RFC 7845 4.1). */
static uint8_t toc_for(uint8_t toc, uint32_t frames)
{
	static const uint8_t celt_wide = 20;
	unsigned config = toc >> 3, first = config < 12 ? config & ~3u : config < 16 ? config & ~1u : config & ~3u;
	unsigned n = config >= 12 && config < 16 ? 2 : 4;

	for (unsigned c = first; c < first + n; c++) {
		uint8_t candidate = (uint8_t)(c << 3 | (toc & 4));
		if (toc_frames(candidate) == frames)
			return candidate;
	}
	for (unsigned c = celt_wide; c < celt_wide + 4u; c++) {
		uint8_t candidate = (uint8_t)(c << 3 | (toc & 4));
		if (toc_frames(candidate) == frames)
			return candidate;
	}
	return toc;
}

/*
 * A packet of n frames that are all lost: code 3, constant size 0, for each stream; all but the last stream say that size
 * (self-delimiting framing, RFC 6716 appendix B).  Returns: its bytes.
 */
static size_t lost_packet(const struct oggwrite *w, uint8_t toc, unsigned n, uint8_t bytes[static 3 * 255])
{
	size_t used = 0;

	for (unsigned s = 0; s < w->head.streams; s++) {
		uint8_t stereo = s == 0 ? toc & 4 : s < w->head.coupled ? 4 : 0;
		bytes[used++] = (uint8_t)((toc & 0xF8) | stereo | 3);
		bytes[used++] = (uint8_t)n;
		if (s + 1 < w->head.streams)
			bytes[used++] = 0;
	}
	return used;
}

/* Fill n_frames, a multiple of 2.5 ms, with packets as long as they may be. */
static enum err fill_frames(struct oggwrite *w, int64_t n_frames)
{
	uint8_t bytes[3 * 255];
	uint32_t usual = toc_frames(w->toc);

	while (n_frames > 0) {
		uint32_t frames = usual;
		/* The rest that is shorter than a frame: the longest that fits. */
		static const uint32_t shorter[] = { 1920, 960, 480, 240, 120 };
		for (unsigned i = 0; frames > n_frames && i < ARRAY_LEN(shorter); i++)
			if (shorter[i] < usual)
				frames = shorter[i];
		unsigned n = (unsigned)(n_frames < PACKET_MAX_FRAMES ? n_frames / frames : PACKET_MAX_FRAMES / frames);
		size_t n_bytes = lost_packet(w, toc_for(w->toc, frames), n, bytes);
		enum err e = packet_add(w, bytes, n_bytes, n * frames, n * frames);
		if (e != ERR_OK)
			return e;
		w->filled_frames += n * frames;
		n_frames -= (int64_t)n * frames;
	}
	return ERR_OK;
}

/*
 * The first packet tells the pre-skip.  One that comes too late for any (a stream that was joined, or whose beginning is
 * missing) gets concealment in front, in whole steps up to it, so that its place is right to the frame.
 */
static enum err begin_at(struct oggwrite *w, int64_t pos)
{
	int64_t preskip = w->first_pos - pos;

	if (preskip < STEP_FRAMES) {
		int64_t steps = (USUAL_PRESKIP_FRAMES - preskip + STEP_FRAMES - 1) / STEP_FRAMES;
		preskip += steps * STEP_FRAMES;
	}
	w->preskip_frames = (uint32_t)preskip;
	w->next_pos = w->first_pos - preskip;
	return headers_out(w);
}

static enum err fill_to(struct oggwrite *w, int64_t pos)
{
	int64_t hole = pos - w->next_pos;
	int64_t steps = (hole + STEP_FRAMES / 2) / STEP_FRAMES;

	if (hole <= 0 || steps <= 0)
		return ERR_OK;
	held_untrim(w);
	return fill_frames(w, steps * STEP_FRAMES);
}

/* ---- the module ---- */

/* Make libogg's buffers as large as they will ever be. */
static enum err stream_warm(struct oggwrite *w, uint32_t serial)
{
	if (ogg_stream_init(&w->stream, (int)serial) != 0)
		return ERR_NOMEM;
	size_t n_bytes = 2u * PAGE_SEGMENTS * 255 + w->held_room_bytes;
	uint8_t *bytes = calloc(1, n_bytes);
	if (!bytes)
		return ERR_NOMEM;
	ogg_packet packet = { .packet = bytes, .bytes = (long)n_bytes };
	int failed = ogg_stream_packetin(&w->stream, &packet);
	free(bytes);
	return failed || ogg_stream_reset_serialno(&w->stream, (int)serial) != 0 ? ERR_NOMEM : ERR_OK;
}

enum err oggwrite_open(struct oggwrite *w, const struct track *t, uint32_t serial, uint32_t page_frames, oggwrite_page_fn *page,
	void *user, struct err_why *why)
{
	memset(w, 0, sizeof(*w));
	if (!track_is_opus(t) || t->rate_num != 48000 || t->rate_den != 1)
		return err_say(why, ERR_ARG, "track", "Ogg Opus takes Opus tracks at 48000 Hz");
	enum err e = opushead_of_track(&w->head, t, why);
	if (e != ERR_OK)
		return e;

	w->first_pos = w->next_pos = t->first_pos;
	w->page_frames = page_frames ? page_frames : OGGWRITE_MAX_PAGE_FRAMES;
	w->page = page;
	w->user = user;
	/* Until a packet says otherwise: CELT, full band, 20 ms. */
	w->toc = (uint8_t)(31 << 3 | (w->head.coupled ? 4 : 0));
	e = track_copy(&w->track, t);
	if (e == ERR_OK)
		e = held_reserve(w, (size_t)w->head.streams * STREAM_PACKET_BYTES);
	if (e == ERR_OK)
		e = stream_warm(w, serial);
	if (e != ERR_OK) {
		oggwrite_release(w);
		return err_say(why, e, "ogg", "%s", err_text(e));
	}
	return ERR_OK;
}

/* What TRIM leaves: up to the end it names, also where the file's sum is off by a part of a step. */
static uint32_t frames_kept(const struct oggwrite *w, const struct packet *p, int n_frames)
{
	int64_t kept = p->pos + p->dur - w->next_pos;

	if (!(p->flags & PACKET_TRIM) || kept > n_frames)
		return (uint32_t)n_frames;
	return kept > 0 ? (uint32_t)kept : 0;
}

enum err oggwrite_packet(struct oggwrite *w, const struct packet *p, struct err_why *why)
{
	if (w->failed != ERR_OK)
		return w->failed;
	int n_frames = 0;
	if (p->payload_bytes && p->payload_bytes <= OGGWRITE_MAX_PACKET_BYTES)
		n_frames = opus_packet_get_nb_samples(p->payload, (opus_int32)p->payload_bytes, 48000);
	if (n_frames <= 0) {
		w->n_bad_packets++;
		return ERR_OK;
	}

	enum err e = ERR_OK;
	if (!w->begun) {
		/* More before the beginning than a pre-skip can say: decoders need 80 ms of it (RFC 7845 4.6). */
		if (p->pos < w->first_pos - UINT16_MAX) {
			w->dropped_frames += p->dur;
			return ERR_OK;
		}
		w->toc = p->payload[0];
		e = begin_at(w, p->pos);
	}
	if (e == ERR_OK) {
		/* Pre-roll of a packet behind a hole, or the same frames twice. */
		if (p->pos < w->next_pos - STEP_FRAMES / 2) {
			w->dropped_frames += p->dur;
			return ERR_OK;
		}
		e = fill_to(w, p->pos);
	}
	if (e == ERR_OK) {
		held_untrim(w);
		e = packet_add(w, p->payload, p->payload_bytes, (uint32_t)n_frames, frames_kept(w, p, n_frames));
		w->toc = p->payload[0];
	}
	return e == ERR_OK ? e : err_say(why, fail(w, e), "ogg", "%s", err_text(e));
}

enum err oggwrite_fill(struct oggwrite *w, int64_t pos, struct err_why *why)
{
	enum err e = w->failed;

	if (e == ERR_OK && !w->begun && pos > w->first_pos)
		e = begin_at(w, pos);
	if (e == ERR_OK && w->begun)
		e = fill_to(w, pos);
	return e == ERR_OK ? e : err_say(why, fail(w, e), "ogg", "%s", err_text(e));
}

enum err oggwrite_end_at(struct oggwrite *w, int64_t pos, struct err_why *why)
{
	/* Up to the next whole step, and the rest of it trimmed away. */
	int64_t hole = pos - (w->have_held ? w->held_end_pos : w->next_pos);
	if (hole > 0 && pos > w->next_pos) {
		enum err e = oggwrite_fill(w, pos + STEP_FRAMES / 2 - 1, why);
		if (e != ERR_OK)
			return e;
	} else if (hole > 0) {
		held_untrim(w);
	}
	if (w->have_held && w->held_end_pos > pos) {
		int64_t start_pos = w->next_pos - w->held_frames;
		held_end(w, pos > start_pos ? pos : start_pos);
	}
	return w->failed;
}

enum err oggwrite_flush(struct oggwrite *w, struct err_why *why)
{
	enum err e = w->failed == ERR_OK ? pages_out(w) : w->failed;
	return e == ERR_OK ? e : err_say(why, e, "ogg", "%s", err_text(e));
}

enum err oggwrite_finish(struct oggwrite *w, struct err_why *why)
{
	enum err e = w->failed;

	if (w->finished)
		return e;
	if (e == ERR_OK && !w->n_packets) {
		uint8_t bytes[3 * 255];
		if (!w->begun)
			e = begin_at(w, w->first_pos - USUAL_PRESKIP_FRAMES);
		if (e == ERR_OK)
			e = packet_add(w, bytes, lost_packet(w, w->toc, 1, bytes), toc_frames(w->toc), w->preskip_frames);
	}
	if (e == ERR_OK)
		e = held_out(w);
	if (e == ERR_OK) {
		/* libogg marks the page that takes the last packet it has. */
		w->stream.e_o_s = 1;
		e = pages_out(w);
	}
	w->finished = true;
	return e == ERR_OK ? e : err_say(why, fail(w, e), "ogg", "%s", err_text(e));
}

void oggwrite_release(struct oggwrite *w)
{
	if (!w)
		return;
	ogg_stream_clear(&w->stream);
	free(w->held);
	track_release(&w->track);
	w->held = NULL;
	w->held_room_bytes = 0;
	w->have_held = false;
}
