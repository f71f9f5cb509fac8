/*
 * Three layers: bytes, here; packets, resync.c; the stream they make, timeline.c.
 */
#include "wire/reader.h"

#include "base/role.h"
#include "wire/resync.h"
#include "wire/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOVE_BYTES 4096u              /* so much of a packet may be moved, */
#define FRONT_BYTES (64u << 10)       /* to read into memory that is in the cache still */
#define READ_BYTES (256u << 10)       /* at most a read: what stays in a processor's cache until it is written on */

/* ---- life ---- */

enum err reader_open(struct reader *r, int fd, const char *name, const struct reader_options *options, struct err_why *why)
{
	static const struct reader_options defaults;
	enum err e;

	memset(r, 0, sizeof(*r));
	r->fd = fd;
	r->options = options ? *options : defaults;
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->max_payload_bytes = r->options.big_payloads ? PACKET_MAX_BIG_PAYLOAD_BYTES : PACKET_MAX_PAYLOAD_BYTES;

	size_t ring_bytes = r->options.ring_bytes ? r->options.ring_bytes : READER_DEFAULT_RING_BYTES;
	size_t least_bytes = 2 * (size_t)RESYNC_LOOK_AHEAD_BYTES;
	if (r->options.big_payloads)
		least_bytes += 2 * (size_t)PACKET_MAX_BIG_PAYLOAD_BYTES;
	if ((e = ring_init(&r->ring, ring_bytes > least_bytes ? ring_bytes : least_bytes, why)))
		return e;
	r->index = calloc(65536, sizeof(*r->index));
	if (r->options.expand_silence)
		r->zeros = calloc(1, PACKET_MAX_PAYLOAD_BYTES);
	if (!r->index || (r->options.expand_silence && !r->zeros)) {
		reader_release(r);
		return err_say(why, ERR_NOMEM, name, "%s", err_text(ERR_NOMEM));
	}
	return ERR_OK;
}

void reader_release(struct reader *r)
{
	for (unsigned i = 0; i < r->n_tracks; i++) {
		track_release(&r->tracks[i]->track);
		free(r->tracks[i]->object);
		free(r->tracks[i]);
	}
	free(r->tracks);
	free(r->index);
	free(r->zeros);
	ring_release(&r->ring);
	memset(r, 0, sizeof(*r));
}

static enum err fail(struct reader *r, enum err e)
{
	r->failed = e;
	return e;
}

struct reader_track *reader_track(struct reader *r, uint16_t id)
{
	uint16_t place = r->index ? r->index[id] : 0;
	return place ? r->tracks[place - 1] : NULL;
}

/* ---- bytes ---- */

/* Input that is not to wait for (another program set O_NONBLOCK on it): wait with poll. */
static enum err wait_readable(struct reader *r)
{
	struct pollfd pfd = { .fd = r->fd, .events = POLLIN };

	while (poll(&pfd, 1, -1) < 0)
		if (errno != EINTR)
			return fail(r, err_sys(&r->why, r->name));
		else if (r->options.stop && *r->options.stop)
			break;
	return ERR_OK;
}

enum err reader_fill(struct reader *r)
{
	role_forbid(ROLE_DEADLINE);
	uint8_t *at;

	if (r->failed)
		return r->failed;
	ring_consume(&r->ring, r->used_bytes - r->back_bytes);
	r->offset_bytes += r->used_bytes - r->back_bytes;
	r->used_bytes = r->back_bytes;
	ring_rewind(&r->ring, MOVE_BYTES, FRONT_BYTES);

	while (!r->eof && !r->stopped) {
		if (r->options.stop && *r->options.stop) {
			r->stopped = true;
			break;
		}
		size_t room = ring_room(&r->ring, &at);
		ssize_t n = read(r->fd, at, room < READ_BYTES ? room : READ_BYTES);
		if (n > 0) {
			ring_commit(&r->ring, (size_t)n);
			r->n_bytes += (uint64_t)n;
			return ERR_OK;
		}
		if (n == 0) {
			r->eof = true;
		} else if (errno == EAGAIN) {
			enum err e = wait_readable(r);
			if (e)
				return e;
		} else if (errno != EINTR) {
			return fail(r, err_sys(&r->why, r->name));
		}
	}
	return ERR_OK;
}

/* ---- packets ---- */

enum err reader_next(struct reader *r, struct packet *p)
{
	struct packet gap;

	if (r->failed)
		return r->failed;
	if (r->have_held) {
		*p = r->held;
		r->have_held = false;
		return ERR_OK;
	}
	if (timeline_silence(r, p))
		return ERR_OK;
	for (;;) {
		enum err e = resync_next(r, p);
		if (e)
			return e;
		e = timeline_accept(r, p, &gap);
		if (e == ERR_OK)
			return ERR_OK;
		if (e == ERR_END) {
			if (!r->silence.dur) {
				r->held = *p;
				r->have_held = true;
			}
			*p = gap;
			return ERR_OK;
		}
		if (e != ERR_AGAIN)
			return e;
	}
}

bool reader_is_cut(const struct reader *r)
{
	return r->truncated || r->headless || r->damaged_bytes || r->unexplained_gaps || r->end_reason == PACKET_END_TRUNCATED ||
		r->end_reason == PACKET_END_ERROR;
}

void reader_describe_loss(const struct reader *r, char *out, size_t out_bytes)
{
	uint64_t lost_frames = 0, gaps = 0;
	const struct reader_track *last = NULL;
	size_t n = 0;

	for (unsigned i = 0; i < r->n_tracks; i++) {
		lost_frames += r->tracks[i]->lost_frames;
		gaps += r->tracks[i]->gaps;
		if (!last && r->tracks[i]->started)
			last = r->tracks[i];
	}
	out[0] = 0;
#define SAY(...) (n += n < out_bytes ? (size_t)snprintf(out + n, out_bytes - n, __VA_ARGS__) : 0)
	if (r->truncated) {
		SAY("ended without end mark after byte %" PRIu64, r->good_offset_bytes);
		if (last)
			SAY(" (track %u at frame %" PRId64 ")", last->track.id, last->expect_pos);
	} else if (r->headless) {
		SAY("begins in the middle of a stream");
	} else if (r->end_reason == PACKET_END_TRUNCATED) {
		SAY("was damaged or cut short before it came here");
	} else if (r->end_reason == PACKET_END_ERROR) {
		SAY("was ended by an error before it came here");
	}
	if (r->damaged_bytes)
		SAY("%s%" PRIu64 " byte%s damaged in %" PRIu64 " place%s", n ? ", " : "", r->damaged_bytes, r->damaged_bytes == 1 ? "" : "s",
			r->n_resyncs ? r->n_resyncs : 1, r->n_resyncs > 1 ? "s" : "");
	if (gaps)
		SAY("%s%" PRIu64 " frame%s lost in %" PRIu64 " gap%s", n ? ", " : "", lost_frames, lost_frames == 1 ? "" : "s", gaps, gaps == 1 ? "" : "s");
#undef SAY
}
