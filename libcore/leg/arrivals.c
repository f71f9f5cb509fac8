#include "leg/arrivals.h"

#include "base/bytes.h"
#include "base/units.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 24u /* of a pcap, before its first packet */
#define TRACK 1
#define TRACK_NAME "datagrams"
#define LINK_ETHERNET 1u
#define LINK_RAW 101u
#define LINK_COOKED 113u
#define LINK_IPV4 228u
#define LINK_IPV6 229u

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t number(const struct arrivals_in *a, const uint8_t *p)
{
	uint32_t v = get_le32(p);
	return a->swapped ? __builtin_bswap32(v) : v;
}

/* What it begins with, as much as a pcap has of it. */
static enum err read_head(int fd, const char *name, uint8_t head[static HEAD_BYTES], size_t *n_bytes, struct err_why *why)
{
	*n_bytes = 0;
	while (*n_bytes < HEAD_BYTES) {
		ssize_t n = read(fd, head + *n_bytes, HEAD_BYTES - *n_bytes);

		if (n < 0 && errno == EINTR && !tool_stop)
			continue;
		if (n < 0)
			return err_sys(why, name);
		if (!n)
			break;
		*n_bytes += (size_t)n;
	}
	return ERR_OK;
}

static bool is_pcap(struct arrivals_in *a, const uint8_t *head, size_t n_bytes)
{
	uint32_t magic = get_le32(head);

	a->swapped = magic == 0xD4C3B2A1u || magic == 0x4D3CB2A1u;
	a->is_ns = magic == 0xA1B23C4Du || magic == 0x4D3CB2A1u;
	return n_bytes == HEAD_BYTES && (a->swapped || magic == 0xA1B2C3D4u || a->is_ns);
}

enum err arrivals_open(struct arrivals_in *a, const char *path, struct err_why *why)
{
	struct input_options o = { .streams_only = true, .has_fd = true };
	bool is_stdin = !strcmp(path, "-");
	uint8_t head[HEAD_BYTES] = { 0 };
	enum err e;

	memset(a, 0, sizeof(*a));
	snprintf(a->name, sizeof(a->name), "%s", is_stdin ? "<stdin>" : path);
	a->fd = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (!is_stdin && a->fd < 0)
		return err_sys(why, path);
	if (is_stdin && isatty(STDIN_FILENO))
		return err_say(why, ERR_ARG, a->name, "is a terminal: there is no recording to read");
	if (!(a->bytes = malloc(ARRIVALS_MAX_BYTES)))
		return err_say(why, ERR_NOMEM, path, "%s", err_text(ERR_NOMEM));
	o.fd = is_stdin ? STDIN_FILENO : a->fd;
	if ((e = read_head(o.fd, a->name, head, &o.head_bytes, why)))
		return e;
	if (is_pcap(a, head, o.head_bytes)) {
		a->is_pcap = true;
		a->link_type = number(a, head + 20) & 0x0FFFFFFF;
		if (!(a->file = is_stdin ? stdin : fdopen(a->fd, "r")))
			return err_sys(why, path);
		a->fd = -1;
		return ERR_OK;
	}
	o.head = head;
	if ((e = input_open(&a->in, path, &o, why)))
		return e;
	a->input_open = true;
	return ERR_OK;
}

void arrivals_close(struct arrivals_in *a)
{
	if (a->file && a->file != stdin)
		fclose(a->file);
	if (a->input_open)
		input_release(&a->in);
	if (a->bytes && a->fd >= 0)
		close(a->fd);
	free(a->bytes);
	memset(a, 0, sizeof(*a));
	a->fd = -1;
}

/* ---- pcap ---- */

static void wide_from(struct dgram_addr *a, const uint8_t address[16], uint16_t port)
{
	static const uint8_t mapped[12] = { [10] = 0xFF, [11] = 0xFF };

	memset(a, 0, sizeof(*a));
	if (!memcmp(address, mapped, 12)) {
		a->ip4.sin_family = AF_INET;
		memcpy(&a->ip4.sin_addr, address + 12, 4);
		a->n_bytes = sizeof(a->ip4);
	} else {
		a->ip6.sin6_family = AF_INET6;
		memcpy(&a->ip6.sin6_addr, address, 16);
		a->n_bytes = sizeof(a->ip6);
	}
	dgram_set_port(a, port);
}

/* Where the IP packet begins in a frame; n_bytes if nowhere. */
static size_t ip_at(const struct arrivals_in *a, const uint8_t *p, size_t n)
{
	size_t at;

	switch (a->link_type) {
	case LINK_ETHERNET:
		for (at = 12; at + 2 <= n && (be16(p + at) == 0x8100 || be16(p + at) == 0x88A8); at += 4)
			;
		return at + 2 <= n && (be16(p + at) == 0x0800 || be16(p + at) == 0x86DD) ? at + 2 : n;
	case LINK_COOKED:
		return n >= 16 ? 16 : n;
	case LINK_RAW:
	case LINK_IPV4:
	case LINK_IPV6:
	case 12:
		return 0;
	default:
		return n;
	}
}

/* The UDP datagram in a frame.  Returns: there is a whole one. */
static bool find_udp(struct arrivals_in *a, uint8_t *p, size_t n, struct arrivals_datagram *d)
{
	size_t at = ip_at(a, p, n), udp;
	uint8_t address[16] = { [10] = 0xFF, [11] = 0xFF };

	if (at + 20 > n)
		return false;
	if (p[at] >> 4 == 4) {
		udp = at + (size_t)(p[at] & 15) * 4;
		if (p[at + 9] != 17 || be16(p + at + 6) & 0x3FFF)
			return false;
		memcpy(address + 12, p + at + 12, 4);
	} else if (p[at] >> 4 == 6 && at + 40 <= n && p[at + 6] == 17) {
		udp = at + 40;
		memcpy(address, p + at + 8, 16);
	} else {
		return false;
	}
	if (udp + 8 > n)
		return false;
	size_t length = be16(p + udp + 4);
	if (length < 8 || udp + length > n)
		return false;
	wide_from(&d->from, address, be16(p + udp));
	d->to_port = be16(p + udp + 2);
	d->bytes = p + udp + 8;
	d->n_bytes = length - 8;
	return true;
}

static enum err next_of_pcap(struct arrivals_in *a, struct arrivals_datagram *d, struct err_why *why)
{
	uint8_t head[16];

	for (;;) {
		size_t got = fread(head, 1, sizeof(head), a->file);
		if (!got)
			return ferror(a->file) ? err_sys(why, a->name) : ERR_END;
		uint32_t n = got == sizeof(head) ? number(a, head + 8) : 0;
		if (got != sizeof(head) || n > ARRIVALS_MAX_BYTES || fread(a->bytes, 1, n, a->file) != n)
			return err_say(why, ERR_FORMAT, a->name, "the capture is cut short or damaged");
		int64_t ns = number(a, head) * UNITS_NS_PER_S + (int64_t)number(a, head + 4) * (a->is_ns ? 1 : 1000);
		memset(d, 0, sizeof(*d));
		if (!find_udp(a, a->bytes, n, d))
			continue;
		if (!a->started)
			a->first_ns = ns;
		a->started = true;
		d->arrival_ns = ns - a->first_ns;
		return ERR_OK;
	}
}

/* ---- our own ---- */

static bool is_ours(const struct track *t)
{
	char name[128];

	return t && t->kind == TRACK_DATA && !strcmp(track_name(t, name), TRACK_NAME);
}

bool arrivals_is_cut(struct arrivals_in *a, struct err_why *why)
{
	char text[200];

	if (!a->input_open || !input_is_cut(&a->in))
		return false;
	input_describe_loss(&a->in, text, sizeof(text));
	err_say(why, ERR_CUT, a->name, "%s", text);
	return true;
}

static enum err next_of_stream(struct arrivals_in *a, struct arrivals_datagram *d, struct err_why *why)
{
	struct packet p;
	enum err e;

	for (;;) {
		while ((e = input_next(&a->in, &p)) == ERR_AGAIN)
			if ((e = input_fill(&a->in)))
				break;
		if (e == ERR_END && !a->has_track)
			return err_say(why, ERR_FORMAT, a->name, "is no recording of datagrams: netrecv --record-trace makes one");
		if (e) {
			if (e != ERR_END)
				*why = a->in.why;
			return e;
		}
		if (p.type == PACKET_TRACK && is_ours(input_track(&a->in, p.track))) {
			a->has_track = true;
			a->track = p.track;
		}
		if (p.type != PACKET_DATA || !a->has_track || p.track != a->track || p.payload_bytes < ARRIVALS_HEAD_BYTES || p.payload_bytes > ARRIVALS_MAX_BYTES)
			continue;
		memcpy(a->bytes, p.payload, p.payload_bytes);
		memset(d, 0, sizeof(*d));
		d->arrival_ns = (int64_t)get_le64(a->bytes);
		d->port = get_le16(a->bytes + 8);
		d->is_rtcp = a->bytes[10] == 1;
		wide_from(&d->from, a->bytes + 16, get_le16(a->bytes + 12));
		d->bytes = a->bytes + ARRIVALS_HEAD_BYTES;
		d->n_bytes = p.payload_bytes - ARRIVALS_HEAD_BYTES;
		return ERR_OK;
	}
}

enum err arrivals_next(struct arrivals_in *a, struct arrivals_datagram *d, struct err_why *why)
{
	enum err e = a->is_pcap ? next_of_pcap(a, d, why) : next_of_stream(a, d, why);

	if (!e && (d->arrival_ns < -ARRIVALS_MAX_NS || d->arrival_ns > ARRIVALS_MAX_NS))
		return err_say(why, ERR_FORMAT, a->name, "a datagram comes %" PRId64 " ns after the first (at most 31 days)", d->arrival_ns);
	return e;
}

/* ---- recording ---- */

enum err arrivals_create(struct arrivals_out *a, const char *path, bool replace, int64_t start_ns, struct err_why *why)
{
	struct track t = { .id = TRACK, .kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 1000000, .rate_den = 1 };
	struct sinkfile_args o = { .force = replace, .wait = true, .stdout_fd = -1, .stop = &tool_stop };
	struct stat st;
	enum err e;

	memset(a, 0, sizeof(*a));
	a->start_ns = start_ns;
	if (!strcmp(path, "-"))
		return err_say(why, ERR_ARG, path, "is where the stream goes: name a file");
	if (!replace && !lstat(path, &st) && S_ISREG(st.st_mode))
		return err_say(why, ERR_ARG, path, "is there already: -y replaces it");
	if ((e = sinkfile_open(&a->file, path, &o, why)))
		return e == ERR_END ? err_say(why, ERR_SYS, path, "nobody came to read it") : e;
	a->open = true;
	if ((e = writer_open(&a->writer, a->file.fd, path, "netrecv", why)))
		return e;
	if ((e = track_set_name(&t, TRACK_NAME)) || (e = writer_begin(&a->writer)) || (e = writer_announce(&a->writer, &t)))
		*why = a->writer.why;
	track_release(&t);
	return e;
}

enum err arrivals_write(struct arrivals_out *a, unsigned port, bool is_rtcp, const struct dgram_in *in)
{
	uint8_t *to = writer_reserve(&a->writer, ARRIVALS_HEAD_BYTES + in->n_bytes);
	int64_t since_ns = in->arrival_ns - a->start_ns;

	if (!to)
		return a->writer.failed;
	memset(to, 0, ARRIVALS_HEAD_BYTES);
	put_le64(to, (uint64_t)since_ns);
	put_le16(to + 8, (uint16_t)port);
	to[10] = is_rtcp;
	put_le16(to + 12, dgram_port(&in->from));
	if (in->from.any.sa_family == AF_INET) {
		to[26] = to[27] = 0xFF;
		memcpy(to + 28, &in->from.ip4.sin_addr, 4);
	} else {
		memcpy(to + 16, &in->from.ip6.sin6_addr, 16);
	}
	memcpy(to + ARRIVALS_HEAD_BYTES, in->bytes, in->n_bytes);
	struct packet p = packet_data(TRACK, since_ns / 1000, 0, (uint32_t)(ARRIVALS_HEAD_BYTES + in->n_bytes));
	return writer_commit(&a->writer, &p);
}

enum err arrivals_end(struct arrivals_out *a, struct err_why *why)
{
	enum err e;

	if (!a->open)
		return ERR_OK;
	if ((e = writer_end(&a->writer, PACKET_END_NORMAL)))
		*why = a->writer.why;
	else
		e = sinkfile_close(&a->file, true, why);
	return e;
}

void arrivals_release(struct arrivals_out *a)
{
	struct stat st;

	if (!a->open)
		return;
	writer_release(&a->writer);
	/* One that nothing was written to is not left lying about. */
	if (a->file.fd >= 0 && a->file.is_part && !fstat(a->file.fd, &st) && !st.st_size)
		sinkfile_discard(&a->file);
	else
		sinkfile_release(&a->file);
	a->open = false;
}
