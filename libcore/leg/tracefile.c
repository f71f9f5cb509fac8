#include "leg/tracefile.h"

#include "base/bytes.h"
#include "base/role.h"
#include "base/units.h"
#include "net/impairment.h"
#include "net/rtp.h"
#include "leg/arrivals.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 256
#define FIRST_ROOM 4096u
#define FARTHEST_NS (INT64_MAX / 4)

static enum err add(struct tracefile *t, size_t *room, int64_t delay_ns)
{
	if (t->n == *room) {
		size_t more = *room ? 2 * *room : FIRST_ROOM;
		int64_t *grown = realloc(t->delays_ns, more * sizeof(*grown));
		if (!grown)
			return ERR_NOMEM;
		t->delays_ns = grown;
		*room = more;
	}
	t->delays_ns[t->n++] = delay_ns;
	return ERR_OK;
}

static enum err read_lines(struct tracefile *t, FILE *f, const char *path, struct err_why *why)
{
	char line[LINE_BYTES];
	size_t room = 0, number = 0;
	int64_t delay_ns;
	enum err e;

	while (fgets(line, sizeof(line), f)) {
		number++;
		if (!strchr(line, '\n') && !feof(f))
			return err_say(why, ERR_FORMAT, path, "line %zu is longer than %d characters", number, LINE_BYTES - 2);
		e = impairment_trace_line(line, &delay_ns);
		if (e == ERR_AGAIN)
			continue;
		line[strcspn(line, "\r\n")] = 0;
		if (e)
			return err_say(why, ERR_FORMAT, path, "line %zu, '%.60s', is not a time from 0 to 3600 s, as 12.5ms, nor 'lost'", number, line);
		if (t->n >= TRACEFILE_MAX_PACKETS)
			return err_say(why, ERR_LIMIT, path, "holds more than %u packets", TRACEFILE_MAX_PACKETS);
		if ((e = add(t, &room, delay_ns)))
			return err_say(why, e, path, "%s", err_text(e));
	}
	if (ferror(f))
		return err_sys(why, path);
	return t->n ? ERR_OK : err_say(why, ERR_FORMAT, path, "holds no packet (1 to %u)", TRACEFILE_MAX_PACKETS);
}

/* ---- what a receiver recorded ---- */

/* Of it: the first that sends RTP. */
struct sender {
	bool started;
	uint32_t ssrc, clock_hz;
	struct rtp_unwrap seq, ts;
	int64_t first_seq;
};

static enum err add_datagram(struct tracefile *t, size_t *room, struct sender *s, const struct arrivals_datagram *d)
{
	struct rtp_format format;
	struct rtp r;
	enum err e = ERR_OK;

	if (d->is_rtcp || rtp_unpack(&r, d->bytes, d->n_bytes) || (s->started && r.ssrc != s->ssrc))
		return ERR_OK;
	int64_t seq = rtp_unwrap_seq(&s->seq, r.seq);
	if (!s->started) {
		s->started = true;
		s->ssrc = r.ssrc;
		s->clock_hz = rtp_static_format(r.pt, &format) ? format.clock_hz : RTP_OPUS_HZ;
		s->first_seq = seq;
	}
	int64_t place = seq - s->first_seq;
	/* What was sent before the first that came, and jumps that are none of a network. */
	if (place < 0 || place > (int64_t)t->n + RTP_MAX_DROPOUT)
		return ERR_OK;
	if (place >= (int64_t)TRACEFILE_MAX_PACKETS)
		return ERR_LIMIT;
	while (!e && (int64_t)t->n <= place)
		e = add(t, room, IMPAIRMENT_LOST);
	if (!e && t->delays_ns[place] == IMPAIRMENT_LOST) {
		int64_t sent_ns = units_to_ns(rtp_unwrap_ts(&s->ts, r.ts), s->clock_hz, 1);
		/* Timestamps of no clock end up too far apart, which is said of all of them. */
		t->delays_ns[place] = sent_ns > FARTHEST_NS ? -FARTHEST_NS : sent_ns < -FARTHEST_NS ? FARTHEST_NS : d->arrival_ns - sent_ns;
	}
	return e;
}

/* So much later than the fastest. */
static enum err count_from_fastest(struct tracefile *t, const char *path, struct err_why *why)
{
	int64_t fastest_ns = INT64_MAX;

	for (size_t i = 0; i < t->n; i++)
		if (t->delays_ns[i] != IMPAIRMENT_LOST && t->delays_ns[i] < fastest_ns)
			fastest_ns = t->delays_ns[i];
	for (size_t i = 0; i < t->n; i++) {
		if (t->delays_ns[i] == IMPAIRMENT_LOST)
			continue;
		t->delays_ns[i] -= fastest_ns;
		if (t->delays_ns[i] > IMPAIRMENT_MAX_DELAY_NS)
			return err_say(why, ERR_FORMAT, path, "its timestamps are not those of one clock: packet %zu would be late by more than 3600 s", i + 1);
	}
	return t->n ? ERR_OK : err_say(why, ERR_FORMAT, path, "holds no RTP packet (1 to %u)", TRACEFILE_MAX_PACKETS);
}

static enum err read_recording(struct tracefile *t, const char *path, struct err_why *why)
{
	struct arrivals_datagram d;
	struct arrivals_in in;
	struct sender s = { .started = false };
	size_t room = 0;
	enum err e = arrivals_open(&in, path, why);

	while (!e && !(e = arrivals_next(&in, &d, why)))
		if ((e = add_datagram(t, &room, &s, &d)))
			err_say(why, e, path, "holds more than %u packets", TRACEFILE_MAX_PACKETS);
	arrivals_close(&in);
	return e == ERR_END ? count_from_fastest(t, path, why) : e;
}

/* A stream, or a pcap of either order; looked at in regular files only. */
static bool is_recording(FILE *f)
{
	uint8_t head[4];
	struct stat st;

	if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode))
		return false;
	bool found = fread(head, 1, sizeof(head), f) == sizeof(head) &&
		(get_le32(head) == PACKET_SYNC || get_le32(head) == 0xA1B2C3D4u || get_le32(head) == 0xD4C3B2A1u || get_le32(head) == 0xA1B23C4Du ||
			get_le32(head) == 0x4D3CB2A1u);
	rewind(f);
	return found;
}

enum err tracefile_read(struct tracefile *t, const char *path, struct err_why *why)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	enum err e;

	role_forbid(ROLE_DEADLINE);
	*t = (struct tracefile){ 0 };
	if (!f)
		return err_sys(why, path);
	e = is_recording(f) ? read_recording(t, path, why) : read_lines(t, f, is_stdin ? "<stdin>" : path, why);
	if (!is_stdin)
		fclose(f);
	if (e)
		tracefile_release(t);
	return e;
}

void tracefile_release(struct tracefile *t)
{
	free(t->delays_ns);
	*t = (struct tracefile){ 0 };
}

enum err tracefile_create(FILE **f, struct sinkfile *file, const char *path, bool force, struct err_why *why)
{
	struct sinkfile_args o = { .force = force, .wait = true, .stdout_fd = -1, .stop = &tool_stop };
	enum err e;
	int fd;

	*f = NULL;
	if (!strcmp(path, "-"))
		return err_say(why, ERR_ARG, path, "is where the stream goes: name a file");
	if ((e = sinkfile_open(file, path, &o, why)))
		return e == ERR_END ? err_say(why, ERR_SYS, path, "nobody came to read it") : e;
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	*f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!*f) {
		err_sys(why, path);
		if (fd >= 0)
			close(fd);
		sinkfile_discard(file);
		return ERR_SYS;
	}
	fputs("# the delay of each packet, in the order they set out; made by weir impair\n", *f);
	return ERR_OK;
}

void tracefile_write(FILE *f, int64_t delay_ns)
{
	if (delay_ns == IMPAIRMENT_LOST) {
		fputs("lost\n", f);
		return;
	}
	if (delay_ns < 0)
		delay_ns = 0;
	fprintf(f, "%" PRId64 ".%06" PRId64 "ms\n", delay_ns / 1000000, delay_ns % 1000000);
}

enum err tracefile_close(FILE *f, struct sinkfile *file, struct err_why *why)
{
	bool failed = fflush(f) || ferror(f);
	int saved = errno;
	enum err e;

	if (fclose(f) && !failed) {
		failed = true;
		saved = errno;
	}
	if (failed) {
		errno = saved;
		e = err_sys(why, sinkfile_place(file));
	} else {
		e = sinkfile_close(file, true, why);
	}
	sinkfile_release(file);
	return e;
}
