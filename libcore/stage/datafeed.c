#include "stage/datafeed.h"

#include "base/bytes.h"
#include "base/role.h"
#include "wire/crc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RING_BYTES (2u << 20)          /* a message of 1 MiB, and what comes behind it meanwhile */
#define MAX_UNREAD_BYTES (1u << 20)    /* of which so much may wait, unless one message is longer */
#define MAX_DATAGRAM_BYTES 65536u
#define N_SLOTS (2u * DATASPEC_MAX_QUEUE) /* waiting and handed out */
#define NAME_BYTES 200

/* ---- opening ---- */

/* A socket that is there from an earlier run and that nobody listens on goes. */
static enum err open_socket(struct datafeed *f, struct err_why *why)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;

	if (strlen(f->spec.place) >= sizeof(a.sun_path))
		return err_say(why, ERR_ARG, f->spec.place, "is too long for a socket (1 to %zu characters)", sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, f->spec.place, strlen(f->spec.place) + 1);
	f->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		return err_sys(why, f->spec.place);
	f->owns_fd = true;
	if (!stat(f->spec.place, &st) && S_ISSOCK(st.st_mode) && connect(f->fd, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED)
		unlink(f->spec.place);
	if (bind(f->fd, (struct sockaddr *)&a, sizeof(a)))
		return err_sys(why, f->spec.place);
	f->is_bound = true;
	f->is_socket = true;
	return ERR_OK;
}

static enum err open_place(struct datafeed *f, struct err_why *why)
{
	struct stat st;
	int type;
	socklen_t size = sizeof(type);

	if (f->spec.is_socket)
		return open_socket(f, why);
	f->fd = f->spec.fd;
	if (f->fd < 0) {
		f->fd = open(f->spec.place, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		f->owns_fd = f->fd >= 0;
	}
	if (f->fd < 0 || fstat(f->fd, &st))
		return err_sys(why, f->spec.fd >= 0 ? "--data" : f->spec.place);
	f->is_fifo = S_ISFIFO(st.st_mode) && f->spec.fd < 0;
	f->is_regular = S_ISREG(st.st_mode);
	if (S_ISDIR(st.st_mode))
		return err_say(why, ERR_ARG, f->spec.place, "is a folder");
	f->is_socket = S_ISSOCK(st.st_mode) && !getsockopt(f->fd, SOL_SOCKET, SO_TYPE, &type, &size) && type != SOCK_STREAM;
	return ERR_OK;
}

static enum err make_track(struct datafeed *f, struct err_why *why)
{
	struct track *t = &f->track;
	bool is_text = f->spec.codec == TRACK_UTF8;
	enum err e;

	*t = (struct track){
		.kind = is_text ? TRACK_TEXT : TRACK_DATA, .policy = f->spec.is_lossy ? TRACK_LOSSY : TRACK_RELIABLE, .codec = f->spec.codec,
		.rate_num = DATAFEED_RATE_HZ, .rate_den = 1, .largest_object_bytes = f->spec.is_file ? DATAFEED_CHUNK_BYTES : DATACUT_MAX_BYTES,
		.next_utc_ns = UNITS_UNKNOWN_NS, .ttl_ms = f->spec.ttl_ms,
	};
	put_le32(t->rest, f->spec.queue);
	e = track_set_name(t, f->spec.name);
	if (!e && f->spec.is_file)
		e = track_set_tlv(t, TRACK_TLV_SCHEMA, DATAFEED_SCHEMA, sizeof(DATAFEED_SCHEMA) - 1);
	return e ? err_say(why, e, f->spec.name, "%s", err_text(e)) : ERR_OK;
}

enum err datafeed_open(struct datafeed *f, const struct dataspec *spec, struct err_why *why)
{
	enum err e;

	memset(f, 0, sizeof(*f));
	f->spec = *spec;
	f->fd = -1;
	f->cut.form = spec->codec == TRACK_OSC ? DATACUT_BE32 : spec->codec == TRACK_MIDI1 ? DATACUT_MIDI :
		spec->codec == TRACK_BYTES ? DATACUT_LE32 : DATACUT_LINES;
	if ((e = open_place(f, why)) || (e = make_track(f, why)) || (e = ring_init(&f->ring, RING_BYTES, why)))
		return e;
	f->messages = calloc(N_SLOTS, sizeof(*f->messages));
	return f->messages ? ERR_OK : err_say(why, ERR_NOMEM, spec->name, "%s", err_text(ERR_NOMEM));
}

void datafeed_release(struct datafeed *f)
{
	/* Nothing but what was made here. */
	if (f->is_bound)
		unlink(f->spec.place);
	if (f->owns_fd)
		close(f->fd);
	track_release(&f->track);
	ring_release(&f->ring);
	free(f->messages);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

/* ---- the queue ---- */

static const uint8_t *at(const struct datafeed *f, uint64_t bytes)
{
	uint8_t *begin;

	ring_peek(&f->ring, &begin);
	return begin + (bytes - f->base_bytes);
}

static bool may_drop(const struct datafeed *f)
{
	return f->spec.is_lossy && f->is_live;
}

static bool has_room(const struct datafeed *f)
{
	return datafeed_waiting(f) < f->spec.queue && f->end - f->released < N_SLOTS;
}

/* The oldest one that waits is worth nothing any more. */
static void drop_oldest(struct datafeed *f)
{
	f->next++;
	f->n_dropped++;
	f->pending_drops++;
}

static void push(struct datafeed *f, uint64_t begin_bytes, size_t n_bytes, uint64_t end_bytes, uint8_t status, int64_t now_ns)
{
	f->messages[f->end++ % N_SLOTS] = (struct datafeed_message){
		.begin_bytes = begin_bytes, .end_bytes = end_bytes, .n_bytes = (uint32_t)n_bytes, .status = status, .arrival_ns = now_ns,
	};
}

/* The ring's beginning goes on to what is still wanted. */
static void advance_base(struct datafeed *f)
{
	uint64_t wanted = f->released < f->end ? f->messages[f->released % N_SLOTS].begin_bytes : f->cut_bytes;

	ring_consume(&f->ring, wanted - f->base_bytes);
	f->base_bytes = wanted;
}

void datafeed_let_go(struct datafeed *f)
{
	f->released = f->next;
	advance_base(f);
}

/* Nothing was handed out that is not written yet: then what was dropped is free at once. */
static void free_dropped(struct datafeed *f, uint64_t next_before)
{
	if (f->released == next_before)
		datafeed_let_go(f);
}

/* A new one comes to a full queue. */
static void drop_for_one(struct datafeed *f)
{
	uint64_t next_before = f->next;

	if (!datafeed_waiting(f))
		return;
	drop_oldest(f);
	free_dropped(f, next_before);
}

/* What is older than it may be. */
static void drop_old(struct datafeed *f, int64_t now_ns)
{
	uint64_t next_before = f->next;

	while (may_drop(f) && f->spec.ttl_ms && datafeed_waiting(f) &&
		now_ns - f->messages[f->next % N_SLOTS].arrival_ns > (int64_t)f->spec.ttl_ms * 1000000)
		drop_oldest(f);
	if (f->next != next_before)
		free_dropped(f, next_before);
}

/* The newest wins: the ring takes it, whatever waits there. */
static void make_room(struct datafeed *f, int64_t now_ns)
{
	uint8_t *to;

	drop_old(f, now_ns);
	while (may_drop(f) && datafeed_waiting(f) && ring_room(&f->ring, &to) < MAX_DATAGRAM_BYTES) {
		uint64_t next_before = f->next;
		drop_oldest(f);
		free_dropped(f, next_before);
	}
}

static void set_state(struct datafeed *f)
{
	uint64_t unread = f->read_bytes - f->base_bytes;

	if (f->state == DATAFEED_LOW && (!has_room(f) || unread >= MAX_UNREAD_BYTES)) {
		f->state = DATAFEED_FULL;
		f->n_full++;
	} else if (f->state == DATAFEED_FULL && datafeed_waiting(f) <= f->spec.queue / 2 && unread <= MAX_UNREAD_BYTES / 2) {
		f->state = DATAFEED_LOW;
	}
}

/* ---- messages ---- */

static void end_badly(struct datafeed *f, const char *reason)
{
	f->is_cut = f->eof = true;
	f->cut_bytes = f->read_bytes;
	err_say(&f->why, ERR_CUT, f->spec.name, "%s", reason);
}

static void cut_messages(struct datafeed *f, int64_t now_ns)
{
	struct datacut_part part;
	enum err e = ERR_OK;

	while (!f->is_cut && (has_room(f) || may_drop(f))) {
		/* A FIFO that nobody holds open may go on with another writer, who begins anew. */
		bool is_end = f->eof || f->is_quiet;
		e = datacut_next(&f->cut, at(f, f->cut_bytes), f->read_bytes - f->cut_bytes, is_end, &part);
		if (e == ERR_LIMIT)
			end_badly(f, "a message says that it is longer than 1048576 bytes");
		if (e == ERR_FORMAT)
			end_badly(f, "it ended within a message");
		if (e == ERR_AGAIN)
			f->cut_bytes += part.taken_bytes;
		if (e)
			break;
		if (!has_room(f))
			drop_for_one(f);
		push(f, f->cut_bytes + part.at_bytes, part.n_bytes, f->cut_bytes + part.taken_bytes, part.status, now_ns);
		f->cut_bytes += part.taken_bytes;
	}
}

/* ---- a whole file ---- */

static size_t put_head(uint8_t *to, enum datafeed_chunk kind, uint32_t number, uint64_t offset)
{
	memset(to, 0, DATAFEED_HEAD_BYTES);
	to[0] = (uint8_t)kind;
	put_le32(to + 4, number);
	put_le64(to + 8, offset);
	return DATAFEED_HEAD_BYTES;
}

/* A name as the inside of a JSON string. */
static void json_name(const char *name, char out[static NAME_BYTES])
{
	size_t n = 0;

	for (const char *c = name; *c && n + 8 < NAME_BYTES; c++)
		if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\')
			n += (size_t)snprintf(out + n, NAME_BYTES - n, "\\u%04x", (unsigned char)*c);
		else
			out[n++] = *c;
	out[n] = 0;
}

static void push_file_message(struct datafeed *f, size_t n_bytes, int64_t now_ns)
{
	ring_commit(&f->ring, n_bytes);
	push(f, f->read_bytes, n_bytes, f->read_bytes + n_bytes, 0, now_ns);
	f->read_bytes += n_bytes;
	f->cut_bytes = f->read_bytes;
}

static void put_header(struct datafeed *f, uint8_t *to, int64_t now_ns)
{
	char name[NAME_BYTES], size[40] = "";
	struct stat st;

	json_name(f->spec.name, name);
	if (f->is_regular && !fstat(f->fd, &st))
		snprintf(size, sizeof(size), ", \"bytes\": %" PRId64, (int64_t)st.st_size);
	size_t n = put_head(to, DATAFEED_HEADER, 0, 0);
	n += (size_t)snprintf((char *)to + n, NAME_BYTES + 64, "{\"name\": \"%s\"%s}", name, size);
	push_file_message(f, n, now_ns);
	f->file_step = DATAFEED_BODY;
}

static void put_trailer(struct datafeed *f, uint8_t *to, int64_t now_ns)
{
	size_t n = put_head(to, DATAFEED_TRAILER, f->file_chunks, f->file_bytes);

	n += (size_t)snprintf((char *)to + n, 96, "{\"bytes\": %" PRIu64 ", \"crc32c\": \"%08" PRIx32 "\"}", f->file_bytes, f->file_crc);
	push_file_message(f, n, now_ns);
	f->eof = true;
}

static void fill_file(struct datafeed *f, int64_t now_ns)
{
	uint8_t *to;

	while (has_room(f) && !f->eof && ring_room(&f->ring, &to) >= DATAFEED_CHUNK_BYTES && f->read_bytes - f->base_bytes < MAX_UNREAD_BYTES) {
		if (!f->file_step)
			put_header(f, to, now_ns);
		if (ring_room(&f->ring, &to) < DATAFEED_CHUNK_BYTES || !has_room(f))
			return;
		ssize_t n = read(f->fd, to + DATAFEED_HEAD_BYTES, DATAFEED_CHUNK_BYTES - DATAFEED_HEAD_BYTES);
		if (n > 0) {
			put_head(to, DATAFEED_BODY, f->file_chunks++, f->file_bytes);
			f->file_crc = crc_32c(f->file_crc, to + DATAFEED_HEAD_BYTES, (size_t)n);
			f->file_bytes += (uint64_t)n;
			push_file_message(f, DATAFEED_HEAD_BYTES + (size_t)n, now_ns);
		} else if (n == 0) {
			put_trailer(f, to, now_ns);
		} else if (errno == EAGAIN || errno == EINTR) {
			return;
		} else {
			err_sys(&f->why, f->spec.place);
			f->is_cut = f->eof = true;
		}
	}
}

/* ---- reading ---- */

bool datafeed_wants(const struct datafeed *f)
{
	uint8_t *to;
	size_t least = f->spec.is_file ? DATAFEED_CHUNK_BYTES : f->is_socket ? MAX_DATAGRAM_BYTES : 1;
	uint64_t unread = f->read_bytes - f->base_bytes;

	if (f->eof || !f->messages)
		return false;
	/* What waits makes room for what comes. */
	if (may_drop(f) && (datafeed_waiting(f) || ring_room(&f->ring, &to) >= least))
		return true;
	if (ring_room(&f->ring, &to) < least)
		return false;
	/* The beginning of one long message is no reason to stop: it must become whole. */
	return has_room(f) && (unread < MAX_UNREAD_BYTES || f->released == f->end);
}

/* Its writers have gone: look at it as if it had just been opened, so that it is not ready for ever. */
static void reopen_fifo(struct datafeed *f)
{
	int fd = open(f->spec.place, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		f->eof = true;
		return;
	}
	(void)!dup3(fd, f->fd, O_CLOEXEC);
	close(fd);
	f->is_quiet = f->is_new = true;
}

static void fill_socket(struct datafeed *f, int64_t now_ns)
{
	uint8_t *to;

	for (;;) {
		if ((!has_room(f) && !may_drop(f)) || ring_room(&f->ring, &to) < MAX_DATAGRAM_BYTES)
			return;
		ssize_t n = recv(f->fd, to, MAX_DATAGRAM_BYTES, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			err_sys(&f->why, f->spec.place);
			f->is_cut = f->eof = true;
		}
		if (n < 0 || f->eof)
			return;
		if ((size_t)n > MAX_DATAGRAM_BYTES) {
			f->n_dropped++;
			f->pending_drops++;
			continue;
		}
		if (!has_room(f))
			drop_for_one(f);
		push_file_message(f, (size_t)n, now_ns);
	}
}

static void fill_pipe(struct datafeed *f, int64_t now_ns)
{
	uint8_t *to;
	size_t room = ring_room(&f->ring, &to);
	ssize_t n = room ? read(f->fd, to, room) : 0;

	if (!room)
		return;
	if (n > 0) {
		ring_commit(&f->ring, (size_t)n);
		f->read_bytes += (uint64_t)n;
		f->had_writer = true;
		f->is_quiet = false;
	} else if (n == 0 && f->is_fifo) {
		f->had_writer = true;
		reopen_fifo(f);
	} else if (n == 0) {
		f->eof = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		err_sys(&f->why, f->spec.place);
		f->is_cut = f->eof = true;
	}
	cut_messages(f, now_ns);
}

void datafeed_fill(struct datafeed *f, int64_t now_ns)
{
	role_forbid(ROLE_DEADLINE);
	if (f->eof)
		return;
	f->alive_ns = now_ns;
	make_room(f, now_ns);
	if (f->spec.is_file)
		fill_file(f, now_ns);
	else if (f->is_socket)
		fill_socket(f, now_ns);
	else
		fill_pipe(f, now_ns);
	set_state(f);
}

/* ---- out ---- */

enum err datafeed_next(struct datafeed *f, int64_t now_ns, struct packet *p, int64_t *arrival_ns, uint32_t *n_dropped)
{
	if (!f->is_socket && !f->spec.is_file)
		cut_messages(f, now_ns);
	drop_old(f, now_ns);
	if (!datafeed_waiting(f)) {
		f->is_over = f->eof && f->cut_bytes == f->read_bytes;
		set_state(f);
		return f->is_over ? ERR_END : ERR_AGAIN;
	}
	const struct datafeed_message *m = &f->messages[f->next++ % N_SLOTS];
	const uint8_t *bytes = at(f, m->begin_bytes);
	uint32_t n_bytes = m->n_bytes;
	if (m->status) {
		/* Running status: the message is put together. */
		f->small[0] = m->status;
		n_bytes = n_bytes < DATACUT_CLOCKED_BYTES ? n_bytes : DATACUT_CLOCKED_BYTES;
		memcpy(f->small + 1, bytes, n_bytes);
		bytes = f->small;
		n_bytes++;
	}
	*p = packet_data(0, 0, 0, n_bytes);
	p->payload = bytes;
	*arrival_ns = m->arrival_ns;
	*n_dropped = f->pending_drops;
	f->pending_drops = 0;
	f->n_messages++;
	f->n_bytes += n_bytes;
	set_state(f);
	return ERR_OK;
}
