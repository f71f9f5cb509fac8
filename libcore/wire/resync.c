/*
 * The acceptance rule of weir-stream(5), and its two rules for going on after damage:
 *   (a) a payload that fails its CRC makes the length doubtful too: look on right behind its header;
 *   (b) a header that is not where it should be: look from the end of the last payload, not after its padding.
 */
#include "wire/resync.h"

#include "base/bytes.h"
#include "wire/crc.h"

#include <string.h>

#define LOOK_AHEAD_BYTES RESYNC_LOOK_AHEAD_BYTES
#define MAX_HEADLESS_BYTES (17u << 20) /* files repeat their announcements every 16 MiB */

static const uint8_t sync_bytes[4] = { 0x57, 0x45, 0x49, 0xD2 };

static enum err fail(struct reader *r, enum err e)
{
	r->failed = e;
	return e;
}

static bool at_input_end(const struct reader *r)
{
	return r->eof || r->stopped;
}

/* Pass over n bytes that belong to no sound packet; those that a sound packet had are not counted again. */
static void pass_over(struct reader *r, size_t n)
{
	uint64_t end_bytes = r->offset_bytes + r->used_bytes + n;

	if (end_bytes > r->good_offset_bytes) {
		r->damaged_bytes += end_bytes - r->good_offset_bytes;
		r->damaged_before_bytes += end_bytes - r->good_offset_bytes;
		r->good_offset_bytes = end_bytes;
	}
	r->used_bytes += n;
	r->back_bytes = 0;
}

/* Start looking for a header, from as far back as the last packet allows. */
static void start_scan(struct reader *r)
{
	r->scanning = true;
	r->n_resyncs++;
	r->used_bytes -= r->back_bytes;
	r->back_bytes = 0;
}

/* The current stream goes on at `at`: no STREAM before that place is looked into again, so that this stays linear. */
static void saw_at(struct reader *r, const uint8_t *at)
{
	uint8_t *base;

	(void)ring_peek(&r->ring, &base);
	r->alive_at_bytes = r->offset_bytes + (uint64_t)(at - base);
}

/* Is there a sound header of the current stream within n bytes at `at`? */
static bool stream_is_alive(struct reader *r, uint8_t *at, size_t n)
{
	struct packet p;

	for (uint8_t *end = at + n; at < end; at++) {
		at = memmem(at, (size_t)(end - at), sync_bytes, sizeof(sync_bytes));
		if (!at)
			return false;
		if (packet_unpack(&p, at, (size_t)(end - at), r->max_payload_bytes) == ERR_OK && p.sid == r->sid &&
			p.type != PACKET_STREAM) {
			saw_at(r, at);
			return true;
		}
	}
	return false;
}

/*
 * A STREAM with the current id that nobody announced as a repetition, found while looking for the way back: a stray copy
 * if the track numbers behind it go on where we are, the same stream from its beginning (`cat cut.weir whole.weir`) if not.
 */
static bool is_stray_start(struct reader *r, uint8_t *at, size_t n)
{
	struct packet p;

	for (uint8_t *end = at + n; at < end; at++) {
		at = memmem(at, (size_t)(end - at), sync_bytes, sizeof(sync_bytes));
		if (!at)
			return false;
		if (packet_unpack(&p, at, (size_t)(end - at), r->max_payload_bytes) != ERR_OK || p.sid != r->sid || p.type != PACKET_DATA)
			continue;
		const struct reader_track *rt = reader_track(r, p.track);
		if (!rt || !rt->have_seq)
			continue;
		bool goes_on = p.seq - rt->expect_seq < 0x80000000u;
		if (goes_on)
			saw_at(r, at);
		return goes_on;
	}
	return false;
}

/*
 * Does a sound header belong here?  Where bytes may be missing a STREAM may be a payload's own: it is taken only when nothing
 * of the current stream follows within reach.  Returns: ERR_OK yes, ERR_FORMAT no, ERR_AGAIN more input decides.
 */
static enum err belongs(struct reader *r, const struct packet *p, size_t n)
{
	bool start = p->type == PACKET_STREAM && !(p->flags & PACKET_REPEAT);

	if (!r->have_sid)
		return p->type == PACKET_STREAM || r->scanning ? ERR_OK : ERR_FORMAT;
	if (p->type != PACKET_STREAM)
		return p->sid == r->sid && !r->ended ? ERR_OK : ERR_FORMAT;
	/* Behind a payload that nothing vouches for, too, bytes may be missing, and this be in the middle of the next payload. */
	bool certain = !r->scanning && r->back_bytes < PACKET_UNIT_BYTES;
	if (r->ended || certain || (p->sid == r->sid && !start))
		return ERR_OK;
	if (n < LOOK_AHEAD_BYTES && !at_input_end(r))
		return ERR_AGAIN;
	if (r->offset_bytes + r->used_bytes < r->alive_at_bytes)
		return ERR_FORMAT;
	uint8_t *behind = p->head + PACKET_HEADER_BYTES;
	size_t reach = (n < LOOK_AHEAD_BYTES ? n : LOOK_AHEAD_BYTES) - PACKET_HEADER_BYTES;
	bool stray = p->sid == r->sid ? is_stray_start(r, behind, reach) : stream_is_alive(r, behind, reach);
	return stray ? ERR_FORMAT : ERR_OK;
}

/* Step to the next place where a header could begin.  Returns: ERR_OK when one may be there, ERR_AGAIN, ERR_END. */
static enum err scan(struct reader *r, uint8_t *at, size_t n)
{
	uint8_t *found = memmem(at, n, sync_bytes, sizeof(sync_bytes));

	if (found) {
		pass_over(r, (size_t)(found - at));
		return ERR_OK;
	}
	if (at_input_end(r)) {
		pass_over(r, n);
		return ERR_END;
	}
	if (n > 3)
		pass_over(r, n - 3);
	return ERR_AGAIN;
}

static enum err not_a_stream(struct reader *r, const uint8_t *at, size_t n)
{
	static const struct {
		const char *magic, *what;
	} known[] = {
		{ "RIFF", "a WAV file" }, { "RF64", "an RF64 file" }, { "fLaC", "a FLAC file" }, { "OggS", "an Ogg file" },
		{ "FORM", "an AIFF file" }, { "caff", "a CAF file" }, { "riff", "a Wave64 file" }, { "ID3", "an MP3 file" },
		{ ".snd", "an AU file" }, { "BW64", "a BW64 file" },
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (n >= 4 && !memcmp(at, known[i].magic, strlen(known[i].magic)))
			return fail(r, err_say(&r->why, ERR_FORMAT, r->name, "%s, not a weir stream (capture makes one of it)",
				known[i].what));
	return fail(r, err_say(&r->why, ERR_FORMAT, r->name, "not a weir stream"));
}

/* The input is over, and no bytes are left. */
static enum err end_of_input(struct reader *r)
{
	if (!r->ended && !r->stopped)
		r->truncated = true;
	if (!r->have_sid && !r->stopped && !r->began_as_stream) {
		if (r->n_bytes == 0)
			return fail(r, err_say(&r->why, ERR_FORMAT, r->name, "empty: no stream came"));
		return fail(r, err_say(&r->why, ERR_FORMAT, r->name, "not a weir stream"));
	}
	return ERR_END;
}

/* Is there a packet at `at`?  Returns: ERR_OK a sound one, and all of it; ERR_AGAIN more input decides; ERR_FORMAT no; ERR_VERSION. */
static enum err look(struct reader *r, struct packet *p, uint8_t *at, size_t n)
{
	enum err e = packet_unpack(p, at, n, r->max_payload_bytes);

	if (e == ERR_VERSION && !r->scanning && !r->have_sid)
		return fail(r, err_say(&r->why, ERR_VERSION, r->name, "weir stream of version %u (this reads version %u)", at[4] >> 4,
			PACKET_VERSION >> 4));
	if (e == ERR_OK)
		e = belongs(r, p, n);
	if (e)
		return e == ERR_AGAIN ? ERR_AGAIN : ERR_FORMAT;
	/* The last packet's padding may be missing at the very end: its payload is what counts. */
	size_t needed = at_input_end(r) ? (size_t)(p->payload - at) + p->payload_bytes : packet_wire_bytes(p);
	return n < needed ? ERR_AGAIN : ERR_OK;
}

/* Nothing sound begins here. */
static void step(struct reader *r)
{
	if (r->scanning)
		pass_over(r, 1);
	else
		start_scan(r);
}

/* Take a sound packet of n_bytes on the wire. */
static void take(struct reader *r, const struct packet *p, size_t n_bytes)
{
	size_t head_bytes = (size_t)(p->payload - p->head);

	r->scanning = false;
	r->used_bytes += n_bytes;
	/* Rule (b): should the next header not be where it belongs, look from the end of this payload; or from its beginning
	 * when nothing vouches for it, since bytes may be missing in it. */
	r->back_bytes = n_bytes - head_bytes - (p->flags & PACKET_PCRC ? p->payload_bytes : 0);
	r->good_offset_bytes = r->offset_bytes + r->used_bytes;
	r->n_packets++;
}

/* Before the first packet: does the input look like a stream at all? */
static enum err look_at_beginning(struct reader *r, const uint8_t *at, size_t n)
{
	if (r->damaged_bytes > MAX_HEADLESS_BYTES)
		return not_a_stream(r, at, 0);
	if (r->scanning || n < 4)
		return ERR_OK;
	if (get_le32(at) == PACKET_SYNC) {
		r->began_as_stream = true;
		return ERR_OK;
	}
	/* A header somewhere near would do. */
	if (n < LOOK_AHEAD_BYTES && !at_input_end(r))
		return ERR_AGAIN;
	return memmem(at, n, sync_bytes, sizeof(sync_bytes)) ? ERR_OK : not_a_stream(r, at, n);
}

enum err resync_next(struct reader *r, struct packet *p)
{
	for (;;) {
		uint8_t *base;
		size_t have = ring_peek(&r->ring, &base);
		uint8_t *at = base + r->used_bytes;
		size_t n = have - r->used_bytes;
		enum err e = ERR_OK;

		if (!r->have_sid && (e = look_at_beginning(r, at, n)))
			return e;
		if (r->scanning && n) {
			e = scan(r, at, n);
			at = base + r->used_bytes;
			n = have - r->used_bytes;
		}
		if (n == 0 || e == ERR_END)
			return at_input_end(r) ? end_of_input(r) : ERR_AGAIN;
		if (e)
			return e;

		e = look(r, p, at, n);
		if (e == ERR_VERSION)
			return e;
		if (e == ERR_AGAIN && !at_input_end(r))
			return e;
		if (e == ERR_AGAIN && r->stopped)
			return ERR_END;
		if (e) {
			step(r);
		} else if (p->flags & PACKET_PCRC && crc_32c(0, p->payload, p->payload_bytes) != p->pcrc) {
			/* Rule (a): its length is not to be trusted either. */
			pass_over(r, (size_t)(p->payload - at));
			if (!r->scanning)
				start_scan(r);
		} else {
			size_t whole_bytes = packet_wire_bytes(p);
			take(r, p, whole_bytes < n ? whole_bytes : n);
			return ERR_OK;
		}
	}
}
