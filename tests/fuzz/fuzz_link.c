/*
 * The link of weir://: whatever a connection brings, plain or as one side of a handshake, packets that come out of it are
 * whole, and what a sender's packets are made into is a stream.
 */
#include "fuzz.h"

#include "base/bytes.h"
#include "leg/linkjoin.h"
#include "wire/crc.h"
#include "wire/writer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 40000u

static uint16_t next_id = 1;

/* Headers that look like one are made sound, so that what is behind the sum is reached. */
static void sum_up(uint8_t *data, size_t n_bytes)
{
	for (size_t at = 0; at + PACKET_HEADER_BYTES <= n_bytes; at++) {
		uint8_t *head = data + at;
		size_t extra = head[15] ? (head[15] - 1u) * PACKET_UNIT_BYTES : 0;

		if (get_le32(head) != PACKET_SYNC || at + PACKET_HEADER_BYTES + extra > n_bytes)
			continue;
		put_le32(head + 60, crc_32c(crc_32c(0, head, 60), head + PACKET_HEADER_BYTES, extra));
		at += PACKET_HEADER_BYTES - 1;
	}
}

static uint16_t new_id(void *user, uint16_t theirs)
{
	(void)user;
	(void)theirs;
	return next_id < PACKET_MAX_TRACK ? next_id++ : 0;
}

static bool asked;

/* Known only at the second try. */
static bool shift(void *user, unsigned sender, int64_t pos_ns, int64_t *shift_ns)
{
	(void)user;
	(void)sender;
	if (!asked) {
		asked = true;
		return false;
	}
	if (__builtin_sub_overflow(1000000000, pos_ns, shift_ns))
		*shift_ns = 0;
	return true;
}

struct receiving {
	struct linkjoin join;
	struct linkrecv_events events;
	struct writer out;
};

static void write_out(struct receiving *r)
{
	bool taken;

	must(linkjoin_work(&r->join, &r->out, &taken) == ERR_OK);
}

static void take(struct receiving *r, struct link *l)
{
	struct link_control c;
	struct packet p;
	enum err e;

	while (!(e = link_next(l, &p))) {
		fuzz_touch(p.head, packet_wire_bytes(&p));
		if (p.type == LINK_PACKET_TYPE) {
			if (link_control_of(&p, &c) && c.kind == LINK_PING) {
				e = link_tell(l, &c);
				must(!e || e == ERR_AGAIN);
			}
			continue;
		}
		e = r->events.packet(r->events.user, 0, &p);
		must(!e || e == ERR_AGAIN);
		if (e) {
			link_unread(l);
			write_out(r);
		}
	}
	must(e == ERR_AGAIN || e == ERR_PEER);
}

static void receive(struct receiving *r, const uint8_t *data, size_t n_bytes, const uint8_t *psk)
{
	struct err_why why;
	struct link l;
	uint8_t answer[4096];
	size_t done = 0;
	int pair[2];
	enum err e = ERR_OK;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	must(link_begin(&l, pair[0], SEAL_SERVER, psk, "fuzz", 1, &why) == ERR_OK);
	for (int64_t now_ns = 2; !e; now_ns += 1000000) {
		size_t n = n_bytes - done < PIECE_BYTES ? n_bytes - done : PIECE_BYTES;

		if (n)
			must(write(pair[1], data + done, n) == (ssize_t)n);
		else
			shutdown(pair[1], SHUT_WR);
		done += n;
		e = link_work(&l, now_ns);
		must(!e || e == ERR_PEER || e == ERR_VERSION || e == ERR_GONE || e == ERR_END);
		take(r, &l);
		/* Without the key nobody gets more than a hello. */
		ssize_t back = read(pair[1], answer, sizeof(answer));
		must(!psk || back <= (ssize_t)SEAL_HELLO_BYTES);
	}
	link_end(&l);
	close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static const uint8_t key[32] = "thirty-two bytes that are a key";
	struct linkjoin_events events = { .new_id = new_id, .shift = shift };
	struct receiving r = { .out = { 0 } };
	struct dgram_addr from = { .any.sa_family = AF_INET, .n_bytes = sizeof(struct sockaddr_in) };
	struct err_why why;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!n_bytes)
		return 0;
	next_id = 1;
	asked = false;
	must(linkjoin_init(&r.join, 4, &events, &why) == ERR_OK);
	r.events = linkjoin_link_events(&r.join);
	must(writer_open(&r.out, fd, "fuzz", "fuzz", &why) == ERR_OK && writer_begin(&r.out) == ERR_OK);
	if (r.events.join)
		r.events.join(r.events.user, 0, &from);
	uint8_t *copy = malloc(n_bytes);
	must(copy);
	memcpy(copy, data, n_bytes);
	if (data[0] & 4)
		sum_up(copy + 1, n_bytes - 1);
	receive(&r, copy + 1, n_bytes - 1, data[0] & 1 ? key : NULL);
	free(copy);
	r.events.leave(r.events.user, 0, data[0] & 2);
	write_out(&r);
	must(linkjoin_end(&r.join, &r.out, PACKET_END_NORMAL) == ERR_OK);
	linkjoin_release(&r.join);
	writer_release(&r.out);
	close(fd);
	return 0;
}
