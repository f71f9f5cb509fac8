#include "wire/writer.h"

#include "base/bytes.h"
#include "base/role.h"
#include "wire/crc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_BYTES (256 << 10)              /* a link that carries audio: weir-stream(5), pipes */
#define ANNOUNCE_EVERY_BYTES (16u << 20)    /* in files */
#define STREAM_ROOM_BYTES (PACKET_STREAM_BYTES + 160)

static const uint8_t zero_padding[PACKET_UNIT_BYTES];

/* ---- life ---- */

static enum err fail(struct writer *w, enum err e)
{
	w->failed = e;
	return e;
}

enum err writer_open(struct writer *w, int fd, const char *name, const char *tool, struct err_why *why)
{
	struct stat st;

	memset(w, 0, sizeof(*w));
	w->fd = fd;
	snprintf(w->name, sizeof(w->name), "%s", name);
	if (fstat(fd, &st))
		return err_sys(why, name);
	if (isatty(fd))
		return err_say(why, ERR_ARG, name, "is a terminal: a binary stream goes to a pipe or a file");
	w->is_pipe = S_ISFIFO(st.st_mode);
	w->is_regular = S_ISREG(st.st_mode);
	w->payload_crc = w->is_regular || S_ISSOCK(st.st_mode);
	w->announce_every_bytes = w->is_regular ? ANNOUNCE_EVERY_BYTES : 0;
	if (w->is_pipe) {
		int now_bytes = fcntl(fd, F_GETPIPE_SZ);
		/* Not allowed (quota) is no harm: everything works with 8 KiB too. */
		if (now_bytes > 0 && now_bytes < PIPE_BYTES && fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES) < 0)
			errno = 0;
	}

	w->arena_bytes = WRITER_DEFAULT_ARENA_BYTES;
	w->flush_bytes = PIPE_BYTES;
	w->arena = aligned_alloc(PACKET_UNIT_BYTES, w->arena_bytes);
	w->index = calloc(65536, sizeof(*w->index));
	if (!w->arena || !w->index) {
		writer_release(w);
		return err_say(why, ERR_NOMEM, name, "%s", err_text(ERR_NOMEM));
	}
	w->stream = (struct packet_stream){
		.t0_utc_ns = UNITS_UNKNOWN_NS, .max_payload_bytes = PACKET_MAX_PAYLOAD_BYTES,
	};
	snprintf(w->stream.tool, sizeof(w->stream.tool), "%s", tool);
	w->seed[0] = 0xcbf29ce484222325u;
	w->seed[1] = 0x84222325cbf29ce4u;
	writer_seed(w, tool, strlen(tool));
	return ERR_OK;
}

void writer_release(struct writer *w)
{
	for (unsigned i = 0; i < w->n_tracks; i++) {
		track_release(&w->tracks[i]->track);
		free(w->tracks[i]);
	}
	free(w->tracks);
	free(w->index);
	free(w->arena);
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}

/* FNV-1a in two lanes: no secret, only to tell streams apart and to be the same for the same input. */
void writer_seed(struct writer *w, const void *bytes, size_t n_bytes)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < n_bytes; i++) {
		w->seed[0] = (w->seed[0] ^ b[i]) * 0x100000001b3u;
		w->seed[1] = (w->seed[1] ^ b[i] ^ (w->seed[0] >> 56)) * 0x100000001b3u;
	}
}

struct writer_track *writer_track(struct writer *w, uint16_t id)
{
	uint16_t place = w->index ? w->index[id] : 0;
	return place ? w->tracks[place - 1] : NULL;
}

static struct writer_track *track_place(struct writer *w, uint16_t id)
{
	struct writer_track *wt = writer_track(w, id);
	if (wt)
		return wt;
	if (w->n_tracks == w->tracks_room) {
		unsigned room = w->tracks_room ? 2 * w->tracks_room : 8;
		struct writer_track **more = realloc(w->tracks, room * sizeof(struct writer_track *));
		if (!more)
			return NULL;
		w->tracks = more;
		w->tracks_room = room;
	}
	wt = calloc(1, sizeof(*wt));
	if (!wt)
		return NULL;
	w->tracks[w->n_tracks++] = wt;
	w->index[id] = (uint16_t)w->n_tracks;
	return wt;
}

/* ---- the queue ---- */

/* A descriptor that is not to wait for: wait with poll. */
static void wait_writable(const struct writer *w)
{
	struct pollfd pfd = { .fd = w->fd, .events = POLLOUT };

	if (w->wait)
		w->wait(w->wait_user);
	else
		(void)!poll(&pfd, 1, 1000);
}

enum err writer_flush(struct writer *w)
{
	role_forbid(ROLE_DEADLINE);
	struct iovec *iov = w->iov;
	int n_iov = w->n_iov;

	if (w->failed)
		return w->failed;
	while (n_iov > 0) {
		ssize_t n = writev(w->fd, iov, n_iov);
		w->n_writes++;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			wait_writable(w);
			continue;
		}
		if (n < 0)
			return fail(w, err_sys(&w->why, w->name));
		w->n_bytes += (uint64_t)n;
		while (n_iov > 0 && (size_t)n >= iov->iov_len) {
			n -= (ssize_t)iov->iov_len;
			iov++;
			n_iov--;
		}
		if (n_iov > 0) {
			iov->iov_base = (uint8_t *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	w->n_iov = 0;
	w->queued_bytes = 0;
	w->arena_used_bytes = 0;
	w->reserved = NULL;
	return ERR_OK;
}

/* Queue n bytes at p; what lies right behind the last piece becomes part of it. */
static void queue(struct writer *w, const void *p, size_t n)
{
	struct iovec *last = w->n_iov ? &w->iov[w->n_iov - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == p)
		last->iov_len += n;
	else
		w->iov[w->n_iov++] = (struct iovec){ .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	w->queued_bytes += n;
}

/* Flush when there is no room for so many pieces and arena bytes more. */
static enum err make_room(struct writer *w, int n_iov, size_t arena_bytes)
{
	if (w->failed)
		return w->failed;
	if (w->n_iov + n_iov > WRITER_MAX_IOV || w->queued_bytes >= w->flush_bytes ||
		w->arena_bytes - w->arena_used_bytes < arena_bytes)
		return writer_flush(w);
	return ERR_OK;
}

static uint8_t *take_arena(struct writer *w, size_t n_bytes)
{
	uint8_t *at = w->arena + w->arena_used_bytes;
	w->arena_used_bytes += n_bytes;
	return at;
}

static void count(struct writer *w, const struct packet *p)
{
	w->n_packets++;
	w->n_payload_bytes += p->payload_bytes;
	w->since_announce_bytes += packet_wire_bytes(p);
}

/* Queue a control packet whose payload stands in the arena behind room for its header. */
static void queue_control(struct writer *w, uint8_t *head, uint8_t type, uint16_t flags, uint16_t track, uint8_t gen, uint32_t n_bytes)
{
	struct packet p = {
		.type = type, .flags = flags, .track = track, .gen = gen, .hunits = 1, .payload_bytes = n_bytes, .object_bytes = n_bytes,
		.utc_ns = type == PACKET_STREAM || type == PACKET_TRACK ? w->stream.t0_utc_ns : UNITS_UNKNOWN_NS,
		.sid = get_le32(w->stream.uuid),
	};
	size_t padded = (size_t)units_round_up(n_bytes, PACKET_UNIT_BYTES);

	memset(head + PACKET_HEADER_BYTES + n_bytes, 0, padded - n_bytes);
	if (w->payload_crc) {
		p.flags |= PACKET_PCRC;
		p.pcrc = crc_32c(0, head + PACKET_HEADER_BYTES, n_bytes);
	}
	packet_pack(&p, head);
	queue(w, head, PACKET_HEADER_BYTES + padded);
	count(w, &p);
}

static enum err put_stream(struct writer *w, uint16_t flags)
{
	enum err e = make_room(w, 1, PACKET_HEADER_BYTES + STREAM_ROOM_BYTES + PACKET_UNIT_BYTES);
	if (e)
		return e;
	w->stream.n_packets = w->n_packets;
	w->stream.n_tracks = (uint16_t)w->n_tracks;
	uint8_t *head = w->arena + w->arena_used_bytes;
	size_t n = packet_stream_pack(&w->stream, head + PACKET_HEADER_BYTES, STREAM_ROOM_BYTES);
	take_arena(w, PACKET_HEADER_BYTES + (size_t)units_round_up(n, PACKET_UNIT_BYTES));
	queue_control(w, head, PACKET_STREAM, flags, 0, 0, (uint32_t)n);
	return ERR_OK;
}

static enum err put_track(struct writer *w, struct writer_track *wt, uint16_t flags)
{
	size_t n = track_packed_bytes(&wt->track);
	size_t room = PACKET_HEADER_BYTES + (size_t)units_round_up(n, PACKET_UNIT_BYTES);
	enum err e = make_room(w, 1, room);
	if (e)
		return e;
	wt->track.next_pos = wt->end_pos;
	wt->track.next_seq = wt->seq;
	wt->track.dropped = wt->dropped;
	uint8_t *head = take_arena(w, room);
	track_pack(&wt->track, head + PACKET_HEADER_BYTES);
	queue_control(w, head, PACKET_TRACK, flags, wt->track.id, wt->track.gen, (uint32_t)n);
	return ERR_OK;
}

/* Files: everything is announced again from time to time, so that a reader can begin after damage. */
static enum err announce_again(struct writer *w)
{
	if (!w->announce_every_bytes || w->since_announce_bytes < w->announce_every_bytes)
		return ERR_OK;
	w->since_announce_bytes = 0;
	enum err e = put_stream(w, PACKET_REPEAT);
	for (unsigned i = 0; i < w->n_tracks && e == ERR_OK; i++)
		if (!w->tracks[i]->ended)
			e = put_track(w, w->tracks[i], PACKET_REPEAT);
	return e;
}

/* ---- what the tools call ---- */

enum err writer_begin(struct writer *w)
{
	if (w->failed)
		return w->failed;
	for (int lane = 0; lane < 2; lane++) {
		/* Finish as splitmix64 does, so that every bit of the seed reaches every bit of the id. */
		uint64_t z = w->seed[lane] + 0x9e3779b97f4a7c15u * (unsigned)(lane + 1);
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		put_le64(w->stream.uuid + 8 * lane, z ^ (z >> 31));
	}
	w->begun = true;
	w->since_announce_bytes = 0;
	return put_stream(w, 0);
}

enum err writer_announce(struct writer *w, const struct track *t)
{
	struct track copy = {0};
	enum err e = track_copy(&copy, t);
	struct writer_track *wt = e ? NULL : track_place(w, t->id);

	if (!wt) {
		track_release(&copy);
		return fail(w, err_say(&w->why, ERR_NOMEM, w->name, "%s", err_text(ERR_NOMEM)));
	}
	/* In other units, or of another kind, it goes on where it says: reader's accept_track() does the same. */
	bool anew = wt->started && (wt->track.kind != copy.kind || wt->track.rate_num != copy.rate_num || wt->track.rate_den != copy.rate_den);
	copy.gen = wt->track.id ? (uint8_t)(wt->track.gen + 1) : 0;
	if (!wt->started || anew) {
		wt->end_pos = copy.first_pos;
		wt->started = true;
	}
	track_release(&wt->track);
	wt->track = copy;
	wt->ended = false;
	return put_track(w, wt, 0);
}

uint8_t *writer_reserve(struct writer *w, size_t n_bytes)
{
	size_t room = PACKET_HEADER_BYTES + (size_t)units_round_up(n_bytes, PACKET_UNIT_BYTES);

	/* Room for repeated announcements is not needed in front: they go before the reservation. */
	if (n_bytes > PACKET_MAX_PAYLOAD_BYTES) {
		fail(w, err_say(&w->why, ERR_LIMIT, w->name, "a packet of %zu bytes (0 to %u)", n_bytes, PACKET_MAX_PAYLOAD_BYTES));
		return NULL;
	}
	if (announce_again(w) || make_room(w, 1, room))
		return NULL;
	w->reserved = w->arena + w->arena_used_bytes + PACKET_HEADER_BYTES;
	w->reserved_bytes = n_bytes;
	return w->reserved;
}

/* What the writer knows about every packet of a track. */
static enum err fill_in(struct writer *w, struct packet *p, struct writer_track **out)
{
	struct writer_track *wt = writer_track(w, p->track);

	if (!wt)
		return fail(w, err_say(&w->why, ERR_ARG, w->name, "a packet of track %u, which was not announced", p->track));
	p->version = PACKET_VERSION;
	p->hunits = 1;
	p->gen = wt->track.gen;
	p->sid = get_le32(w->stream.uuid);
	p->dropped = wt->dropped;
	*out = wt;
	return ERR_OK;
}

static void count_data(struct writer_track *wt, const struct packet *p)
{
	int64_t end = p->pos + p->dur;

	if (p->object_offset_bytes + p->payload_bytes < p->object_bytes)
		return; /* not its last fragment */
	wt->seq = p->seq + 1;
	if (end > wt->end_pos) {
		wt->frames += (uint64_t)(end - wt->end_pos) < p->dur ? (uint64_t)(end - wt->end_pos) : p->dur;
		wt->end_pos = end;
	} else if (p->flags & PACKET_DISCONT) {
		wt->end_pos = end;
	}
}

enum err writer_commit(struct writer *w, const struct packet *packet)
{
	struct packet p = *packet;
	struct writer_track *wt;

	if (w->failed)
		return w->failed;
	enum err e = fill_in(w, &p, &wt);
	if (e)
		return e;
	size_t padded = (size_t)units_round_up(p.payload_bytes, PACKET_UNIT_BYTES);
	uint8_t *head = take_arena(w, PACKET_HEADER_BYTES + padded);

	p.seq = wt->seq;
	p.object_offset_bytes = 0;
	p.object_bytes = p.payload_bytes;
	p.flags &= (uint16_t)~PACKET_PCRC;
	memset(head + PACKET_HEADER_BYTES + p.payload_bytes, 0, padded - p.payload_bytes);
	if (w->payload_crc) {
		p.flags |= PACKET_PCRC;
		p.pcrc = crc_32c(0, head + PACKET_HEADER_BYTES, p.payload_bytes);
	}
	packet_pack(&p, head);
	queue(w, head, PACKET_HEADER_BYTES + padded);
	count(w, &p);
	count_data(wt, &p);
	w->reserved = NULL;
	return ERR_OK;
}

/* Pictures are too many bytes to read them once more for a sum, unless that is asked for. */
static bool wants_crc(const struct writer *w, const struct writer_track *wt)
{
	return w->payload_crc && (w->bulk_crc || !wt || wt->track.kind != TRACK_VIDEO);
}

/* One packet, header and padding in the arena, payload where it lies. */
static void put_one(struct writer *w, const struct writer_track *wt, struct packet *p, const uint8_t *payload)
{
	size_t padding = (size_t)units_round_up(p->payload_bytes, PACKET_UNIT_BYTES) - p->payload_bytes;
	uint8_t *head = take_arena(w, PACKET_HEADER_BYTES);

	p->flags &= (uint16_t)~PACKET_PCRC;
	if (wants_crc(w, wt)) {
		p->flags |= PACKET_PCRC;
		p->pcrc = crc_32c(0, payload, p->payload_bytes);
	}
	packet_pack(p, head);
	queue(w, head, PACKET_HEADER_BYTES);
	if (p->payload_bytes)
		queue(w, payload, p->payload_bytes);
	if (padding)
		queue(w, zero_padding, padding);
	count(w, p);
}

enum err writer_put(struct writer *w, const struct packet *packet)
{
	struct packet p = *packet;
	struct writer_track *wt;
	enum err e;

	if ((e = fill_in(w, &p, &wt)) || (e = announce_again(w)))
		return e;
	if (p.type == PACKET_DATA)
		p.seq = wt->seq;
	/* A fragment that came as one goes on as one; a whole object is cut where it is too large. */
	bool whole = p.object_offset_bytes == 0 && (p.object_bytes == p.payload_bytes || p.object_bytes == 0);
	const uint32_t all_bytes = p.payload_bytes;
	if (whole)
		p.object_bytes = all_bytes;
	for (uint32_t done_bytes = 0; done_bytes < all_bytes || done_bytes == 0; done_bytes += p.payload_bytes) {
		uint32_t left_bytes = all_bytes - done_bytes;
		if ((e = make_room(w, 3, PACKET_HEADER_BYTES)))
			return e;
		p.payload_bytes = left_bytes < PACKET_MAX_PAYLOAD_BYTES ? left_bytes : PACKET_MAX_PAYLOAD_BYTES;
		if (whole)
			p.object_offset_bytes = done_bytes;
		put_one(w, wt, &p, packet->payload + done_bytes);
		if (p.type == PACKET_DATA)
			count_data(wt, &p);
		if (all_bytes == 0)
			break;
	}
	return ERR_OK;
}

enum err writer_forward(struct writer *w, struct packet *p)
{
	struct writer_track *wt = writer_track(w, p->track);
	size_t head_bytes = p->hunits * (size_t)PACKET_UNIT_BYTES;
	bool in_place = p->head && p->payload == p->head + head_bytes;
	enum err e;

	/* A packet of the stream itself, or of a kind nobody here knows, needs no track. */
	bool foreign = !wt && p->type != PACKET_DATA && p->type != PACKET_GAP;

	if (!in_place || (!wt && !foreign)) {
		/* Its payload may be gone with the next packet: it goes out now. */
		return (e = writer_put(w, p)) ? e : writer_flush(w);
	}
	if ((e = announce_again(w)) || (e = make_room(w, 1, 0)))
		return e;
	size_t padded = (size_t)units_round_up(p->payload_bytes, PACKET_UNIT_BYTES);
	uint8_t *head = p->head;

	memset(head + head_bytes + p->payload_bytes, 0, padded - p->payload_bytes);
	p->sid = get_le32(w->stream.uuid);
	if (wt) {
		p->gen = wt->track.gen;
		p->dropped += wt->dropped;
	}
	if (wants_crc(w, wt) && !(p->flags & PACKET_PCRC)) {
		p->flags |= PACKET_PCRC;
		p->pcrc = crc_32c(0, p->payload, p->payload_bytes);
	}
	packet_pack(p, head);
	queue(w, head, head_bytes + padded);
	count(w, p);
	if (p->type == PACKET_DATA)
		count_data(wt, p);
	else if (p->type == PACKET_GAP && p->pos + p->dur > wt->end_pos)
		wt->end_pos = p->pos + p->dur;
	return ERR_OK;
}

enum err writer_gap(struct writer *w, uint16_t track, int64_t pos, uint32_t dur, const struct packet_gap *gap)
{
	struct packet p = {
		.type = PACKET_GAP, .track = track, .pos = pos, .dur = dur, .payload_bytes = PACKET_GAP_BYTES,
		.object_bytes = PACKET_GAP_BYTES, .utc_ns = gap->utc_ns,
	};
	struct writer_track *wt;
	enum err e;

	if ((e = announce_again(w)) || (e = make_room(w, 1, PACKET_HEADER_BYTES + PACKET_UNIT_BYTES)) || (e = fill_in(w, &p, &wt)))
		return e;
	uint8_t *head = take_arena(w, PACKET_HEADER_BYTES + PACKET_UNIT_BYTES);
	memset(head + PACKET_HEADER_BYTES, 0, PACKET_UNIT_BYTES);
	packet_gap_pack(gap, head + PACKET_HEADER_BYTES);
	if (w->payload_crc) {
		p.flags |= PACKET_PCRC;
		p.pcrc = crc_32c(0, head + PACKET_HEADER_BYTES, p.payload_bytes);
	}
	p.seq = wt->seq;
	packet_pack(&p, head);
	queue(w, head, PACKET_HEADER_BYTES + PACKET_UNIT_BYTES);
	count(w, &p);
	if (pos + dur > wt->end_pos)
		wt->end_pos = pos + dur;
	return ERR_OK;
}

enum err writer_clock(struct writer *w, const struct packet_clock *clock)
{
	enum err e;

	if ((e = announce_again(w)) || (e = make_room(w, 1, PACKET_HEADER_BYTES + PACKET_CLOCK_BYTES)))
		return e;
	uint8_t *head = take_arena(w, PACKET_HEADER_BYTES + PACKET_CLOCK_BYTES);
	packet_clock_pack(clock, head + PACKET_HEADER_BYTES);
	queue_control(w, head, PACKET_CLOCK, 0, 0, 0, PACKET_CLOCK_BYTES);
	return ERR_OK;
}

static enum err put_end(struct writer *w, uint16_t track, uint8_t gen, const struct packet_end *end)
{
	enum err e = make_room(w, 1, PACKET_HEADER_BYTES + PACKET_END_BYTES);
	if (e)
		return e;
	uint8_t *head = take_arena(w, PACKET_HEADER_BYTES + PACKET_END_BYTES);
	packet_end_pack(end, head + PACKET_HEADER_BYTES);
	queue_control(w, head, PACKET_END, 0, track, gen, PACKET_END_BYTES);
	return ERR_OK;
}

enum err writer_end_track(struct writer *w, uint16_t track, enum packet_end_reason reason)
{
	struct writer_track *wt = writer_track(w, track);
	if (!wt || wt->ended)
		return w->failed;
	struct packet_end end = {
		.reason = (uint16_t)reason, .n_packets = w->n_packets, .n_payload_bytes = w->n_payload_bytes, .end_pos = wt->end_pos,
		.dropped = wt->dropped,
	};
	wt->ended = true;
	return put_end(w, track, wt->track.gen, &end);
}

enum err writer_end(struct writer *w, enum packet_end_reason reason)
{
	enum err e = w->failed;

	if (!w->begun || w->ended)
		return e ? e : writer_flush(w);
	for (unsigned i = 0; i < w->n_tracks && !e; i++)
		e = writer_end_track(w, w->tracks[i]->track.id, reason);
	if (e)
		return e;
	struct packet_end end = { .reason = (uint16_t)reason, .n_packets = w->n_packets, .n_payload_bytes = w->n_payload_bytes };
	for (unsigned i = 0; i < w->n_tracks; i++)
		end.dropped += w->tracks[i]->dropped;
	w->ended = true;
	e = put_end(w, 0, 0, &end);
	return e ? e : writer_flush(w);
}
