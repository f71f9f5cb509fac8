/* wire/writer: what it writes is read back as it was meant, in few writes, and a failed descriptor is told once and for all. */
#include "check.h"
#include "stream_maker.h"

#include "base/heap.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static int memory_file(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	return fd;
}

static bool open_writer(struct writer *w, int fd)
{
	struct err_why why = {0};
	return CHECK_OK(writer_open(w, fd, "out", "test", &why));
}

static void announce_mono(struct writer *w, uint16_t id, int64_t first_pos)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	t.id = id;
	t.first_pos = first_pos;
	CHECK_OK(writer_announce(w, &t));
}

static void fill_mono(uint8_t *at, const struct packet *p)
{
	for (uint32_t i = 0; i < p->dur; i++)
		put_le16(at + 2 * i, maker_sample(p->track, p->pos + i));
}

static void commit_mono(struct writer *w, uint16_t id, int64_t pos, uint32_t dur)
{
	struct packet p = packet_data(id, pos, dur, 2 * dur);
	uint8_t *at = writer_reserve(w, 2 * dur);
	if (!CHECK(at))
		return;
	CHECK_EQ((uintptr_t)at % 64, 0);
	fill_mono(at, &p);
	CHECK_OK(writer_commit(w, &p));
}

static bool right_samples(const struct packet *p)
{
	for (uint32_t i = 0; i < p->dur; i++)
		if (get_le16(p->payload + 2 * i) != maker_sample(p->track, p->pos + i))
			return false;
	return true;
}

/* Next packet of a whole file.  Returns: false at the end, which must be clean. */
static bool next(struct reader *r, struct packet *p)
{
	enum err e;
	while ((e = reader_next(r, p)) == ERR_AGAIN)
		if (!CHECK_OK(reader_fill(r)))
			return false;
	return e == ERR_OK;
}

static bool open_reader(struct reader *r, int fd, bool raw)
{
	struct err_why why = {0};
	struct reader_options o = {.raw = raw};
	lseek(fd, 0, SEEK_SET);
	return CHECK_OK(reader_open(r, fd, "in", &o, &why));
}

/* Announced in other units, or as another kind, a track ends where it says now, not where it stood before. */
static void test_other_units_begin_anew(void)
{
	for (int kind = 0; kind < 2; kind++) {
		struct writer w;
		struct reader r;
		struct packet p;
		int fd = memory_file();
		struct track t = track_pcm(16000, 1, SAMPLE_S16);
		open_writer(&w, fd);
		CHECK_OK(writer_begin(&w));
		announce_mono(&w, 1, 0);
		for (int i = 0; i < 10; i++)
			commit_mono(&w, 1, 4800 * i, 4800);
		if (kind)
			t = (struct track){ .kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 48000, .rate_den = 1 };
		t.id = 1;
		t.first_pos = 16000;
		CHECK_OK(writer_announce(&w, &t));
		commit_mono(&w, 1, 16000, 1600);
		CHECK_OK(writer_end_track(&w, 1, PACKET_END_NORMAL));
		CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
		open_reader(&r, fd, false);
		unsigned n_gaps = 0;
		int64_t end_pos = 0;
		while (next(&r, &p)) {
			struct packet_end end;
			n_gaps += p.type == PACKET_GAP;
			if (p.type == PACKET_END && CHECK_OK(packet_end_unpack(&end, p.payload, p.payload_bytes)))
				end_pos = end.end_pos;
		}
		CHECK_EQ(n_gaps, 0);
		CHECK_EQ(end_pos, 17600);
		reader_release(&r);
		writer_release(&w);
		close(fd);
	}
}

static void test_there_and_back(void)
{
	struct writer w;
	struct reader r;
	struct packet p;
	int fd = memory_file();
	open_writer(&w, fd);
	snprintf(w.stream.name, sizeof(w.stream.name), "a name");
	CHECK_OK(writer_begin(&w));
	announce_mono(&w, 7, -312);
	announce_mono(&w, 65534, 0);
	for (int i = 0; i < 100; i++)
		commit_mono(&w, 7, -312 + 480 * i, 480);
	commit_mono(&w, 65534, 0, 1);
	struct packet_gap gap = {.reason = PACKET_GAP_PAUSED, .utc_ns = 12345};
	CHECK_OK(writer_gap(&w, 65534, 1, 99, &gap));
	CHECK_OK(writer_end_track(&w, 7, PACKET_END_NORMAL));
	CHECK_OK(writer_end(&w, PACKET_END_INTERRUPTED));
	CHECK_EQ(w.n_packets, 1 + 2 + 100 + 1 + 1 + 2 + 1);
	CHECK_EQ(w.n_bytes, lseek(fd, 0, SEEK_END));
	CHECK_EQ(w.n_bytes % 64, 0);

	open_reader(&r, fd, true);
	unsigned n = 0;
	uint64_t payload_bytes = 0;
	int64_t pos = -312;
	uint32_t seq = 0;
	while (next(&r, &p)) {
		/* A file carries payload CRCs, and every packet the same stream id. */
		CHECK(p.flags & PACKET_PCRC);
		CHECK_EQ(p.sid, get_le32(w.stream.uuid));
		CHECK_EQ(p.hunits, 1);
		if (p.type == PACKET_DATA && p.track == 7) {
			CHECK_EQ(p.pos, pos);
			CHECK_EQ(p.seq, seq++);
			CHECK(right_samples(&p));
			pos += p.dur;
		}
		if (p.type == PACKET_GAP) {
			struct packet_gap g;
			CHECK_OK(packet_gap_unpack(&g, p.payload, p.payload_bytes));
			CHECK(g.reason == PACKET_GAP_PAUSED && g.utc_ns == 12345 && p.pos == 1 && p.dur == 99);
		}
		if (p.type == PACKET_END) {
			struct packet_end e;
			CHECK_OK(packet_end_unpack(&e, p.payload, p.payload_bytes));
			CHECK_EQ(e.n_packets, n);
			CHECK_EQ(e.n_payload_bytes, payload_bytes);
			if (p.track == 7)
				CHECK_EQ(e.end_pos, -312 + 48000);
			if (p.track == 65534)
				CHECK_EQ(e.end_pos, 100);
			CHECK_EQ(e.reason, p.track == 7 ? PACKET_END_NORMAL : PACKET_END_INTERRUPTED);
			if (p.track == 0)
				CHECK_EQ(packet_wire_bytes(&p), 128);
		}
		n++;
		payload_bytes += p.payload_bytes;
	}
	CHECK_EQ(n, w.n_packets);
	CHECK_EQ(seq, 100);
	CHECK_STR(r.stream.name, "a name");
	CHECK(r.ended && !r.truncated);
	CHECK(!reader_is_cut(&r));
	CHECK_EQ(reader_track(&r, 7)->track.first_pos, -312);
	reader_release(&r);
	writer_release(&w);
	writer_release(&w);
	close(fd);
}

/* Write the same little stream.  Returns: its bytes, to be freed. */
static uint8_t *little_stream(const char *tool, const char *seed, size_t *n_bytes)
{
	struct writer w;
	int fd = memory_file();
	CHECK_OK(writer_open(&w, fd, "out", tool, NULL));
	writer_seed(&w, seed, strlen(seed));
	CHECK_OK(writer_begin(&w));
	announce_mono(&w, 1, 0);
	commit_mono(&w, 1, 0, 100);
	CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
	*n_bytes = w.n_bytes;
	writer_release(&w);
	uint8_t *bytes = calloc(1, *n_bytes + 1);
	CHECK_EQ(pread(fd, bytes, *n_bytes, 0), (ssize_t)*n_bytes);
	close(fd);
	return bytes;
}

static void test_same_input_same_bytes(void)
{
	size_t n[4];
	uint8_t *s[4] = {little_stream("tool", "x", &n[0]), little_stream("tool", "x", &n[1]), little_stream("tool", "y", &n[2]),
		little_stream("look", "x", &n[3])};
	CHECK_EQ(n[0], n[1]);
	CHECK_MEM(s[0], s[1], n[0]);
	/* Another seed, or another tool, is another stream. */
	CHECK(memcmp(s[0] + 64, s[2] + 64, 4) != 0);
	CHECK(memcmp(s[0] + 64, s[3] + 64, 4) != 0);
	CHECK(memcmp(s[0] + 64, s[2] + 64, 16) != 0);
	/* The id in the header is the uuid's beginning. */
	CHECK_MEM(s[0] + 52, s[0] + 64, 4);
	for (int i = 0; i < 4; i++)
		free(s[i]);
}

static void test_many_packets_few_writes(void)
{
	struct writer w;
	int fd = memory_file();
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	announce_mono(&w, 1, 0);
	uint64_t allocs = 0;
	for (int i = 0; i < 6000; i++) {
		if (i == 50)
			allocs = heap_allocs();
		commit_mono(&w, 1, 64 * i, 64);
	}
	CHECK_EQ(heap_allocs(), allocs);
	CHECK(w.n_writes <= 6000 * 192 / w.flush_bytes + 1);
	CHECK_OK(writer_flush(&w));
	uint64_t writes = w.n_writes;
	CHECK_OK(writer_flush(&w)); /* nothing to write: no call */
	CHECK_EQ(w.n_writes, writes);
	CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
	writer_release(&w);
	close(fd);
}

static void test_payloads_by_reference(void)
{
	struct writer w;
	struct reader r;
	struct packet p;
	static uint8_t samples[400][2 * 1000];
	int fd = memory_file();
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	announce_mono(&w, 1, 0);
	int64_t pos = 0;
	uint64_t allocs = heap_allocs();
	for (uint32_t i = 0; i < 400; i++) {
		/* All lengths of padding, and none at all. */
		uint32_t dur = i % 100 == 99 ? 0 : i * 5 % 1000;
		p = packet_data(1, pos, dur, 2 * dur);
		p.payload = samples[i];
		fill_mono(samples[i], &p);
		CHECK_OK(writer_put(&w, &p));
		pos += dur;
	}
	CHECK_EQ(heap_allocs(), allocs);
	CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
	open_reader(&r, fd, false);
	int64_t got = 0;
	while (next(&r, &p))
		if (p.type == PACKET_DATA) {
			CHECK_EQ(p.pos, got);
			CHECK(right_samples(&p));
			got += p.dur;
		}
	CHECK_EQ(got, pos);
	CHECK(!reader_is_cut(&r));
	CHECK_EQ(r.n_packets, w.n_packets);
	reader_release(&r);
	writer_release(&w);
	close(fd);
}

static void test_large_objects_are_cut_up(void)
{
	static uint8_t object[200001];
	for (size_t i = 0; i < sizeof(object); i++)
		object[i] = (uint8_t)(i * 11 >> 2);
	static const uint32_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 200001};
	for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
		struct writer w;
		struct reader r;
		struct packet p;
		struct track t = {.id = 1, .kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 1000, .rate_den = 1,
			.largest_object_bytes = sizeof(object)};
		int fd = memory_file();
		open_writer(&w, fd);
		CHECK_OK(writer_begin(&w));
		CHECK_OK(writer_announce(&w, &t));
		for (uint32_t i = 0; i < 3; i++) {
			p = packet_data(1, i, 1, sizes[k]);
			p.payload = object;
			CHECK_OK(writer_put(&w, &p));
		}
		CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
		open_reader(&r, fd, true);
		uint32_t at = 0, seq = 0, n = 0;
		while (next(&r, &p)) {
			if (p.type != PACKET_DATA)
				continue;
			CHECK_EQ(p.object_offset_bytes, at);
			CHECK_EQ(p.object_bytes, sizes[k]);
			CHECK_EQ(p.seq, seq);
			CHECK(p.payload_bytes <= PACKET_MAX_PAYLOAD_BYTES);
			CHECK_MEM(p.payload, object + at, p.payload_bytes);
			at += p.payload_bytes;
			n++;
			if (at == sizes[k]) {
				at = 0;
				seq++;
			}
		}
		CHECK_EQ(seq, 3);
		CHECK_EQ(n, 3 * (sizes[k] ? (sizes[k] + 65535) / 65536 : 1));
		CHECK(!reader_is_cut(&r));
		reader_release(&r);
		writer_release(&w);
		close(fd);
	}
}

static void test_limits(void)
{
	struct writer w;
	int fd = memory_file();
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	announce_mono(&w, 1, 0);
	CHECK(writer_reserve(&w, 65536) != NULL);
	/* A packet of a track that nobody announced is a mistake of the tool, not something to write. */
	struct packet p = packet_data(2, 0, 1, 2);
	p.payload = (const uint8_t *)"xy";
	CHECK_EQ(writer_put(&w, &p), ERR_ARG);
	CHECK_EQ(writer_flush(&w), ERR_ARG);
	writer_release(&w);
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	CHECK(!writer_reserve(&w, 65537));
	CHECK_EQ(w.failed, ERR_LIMIT);
	CHECK_EQ(writer_end(&w, PACKET_END_NORMAL), ERR_LIMIT);
	writer_release(&w);
	close(fd);
}

static void test_a_second_announcement_is_a_new_generation(void)
{
	struct writer w;
	struct reader r;
	struct packet p;
	int fd = memory_file();
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	for (int i = 0; i < 300; i++) { /* past 255 */
		announce_mono(&w, 1, 10 * i);
		commit_mono(&w, 1, 10 * i, 10);
	}
	CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
	open_reader(&r, fd, false);
	int n_track = 0;
	int64_t pos = 0;
	while (next(&r, &p)) {
		if (p.type == PACKET_TRACK)
			CHECK_EQ(p.gen, n_track++ & 255);
		if (p.type == PACKET_DATA) {
			CHECK_EQ(p.gen, (n_track - 1) & 255);
			CHECK_EQ(p.pos, pos);
			pos += 10;
		}
	}
	CHECK_EQ(n_track, 300);
	CHECK_EQ(pos, 3000);
	CHECK_EQ(r.n_orphans, 0);
	CHECK(!reader_is_cut(&r));
	reader_release(&r);
	writer_release(&w);
	close(fd);
}

static void test_files_are_announced_again(void)
{
	struct writer w;
	struct reader r;
	struct packet p;
	int fd = memory_file();
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	announce_mono(&w, 1, 0);
	announce_mono(&w, 2, 0);
	for (int i = 0; i < 40 * 16; i++) /* 40 MiB and a little */
		commit_mono(&w, 1, 32768 * i, 32768);
	CHECK_OK(writer_end_track(&w, 2, PACKET_END_NORMAL));
	CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
	open_reader(&r, fd, true);
	unsigned streams = 0, tracks = 0;
	uint64_t packets = 0;
	while (next(&r, &p)) {
		if (p.type == PACKET_STREAM && packets) {
			struct packet_stream s;
			CHECK(p.flags & PACKET_REPEAT);
			CHECK_OK(packet_stream_unpack(&s, p.payload, p.payload_bytes));
			CHECK_EQ(s.n_packets, packets);
			CHECK_EQ(s.n_tracks, 2);
			streams++;
		}
		if (p.type == PACKET_TRACK && p.flags & PACKET_REPEAT) {
			struct track t = {0};
			CHECK_OK(track_unpack(&t, p.payload, p.payload_bytes, NULL));
			if (p.track == 1) {
				CHECK_EQ(t.next_pos, reader_track(&r, 1)->expect_pos);
				CHECK_EQ(t.next_seq, reader_track(&r, 1)->expect_seq);
			}
			track_release(&t);
			tracks++;
		}
		packets++;
	}
	CHECK_EQ(streams, 2);
	CHECK_EQ(tracks, 4);
	reader_release(&r);

	/* So that a reader can begin anywhere, and loses 16 MiB at most. */
	open_reader(&r, fd, false);
	lseek(fd, 1000, SEEK_SET);
	int64_t first = -1;
	while (next(&r, &p))
		if (p.type == PACKET_DATA && first < 0)
			first = p.pos;
	CHECK(first > 0 && first <= (int64_t)(16 << 20) / 2 + 32768);
	CHECK_EQ(reader_track(&r, 1)->expect_pos, 640 * 32768);
	reader_release(&r);
	writer_release(&w);
	close(fd);
}

/* ---- forwarding ---- */

static void test_forwarding_keeps_the_payload_and_changes_the_header(void)
{
	struct maker m = {0};
	struct writer w;
	struct reader r;
	struct packet p;
	int in = memory_file(), out = memory_file();
	maker_stream(&m, 1);
	maker_mono(&m, 1, 3, 48000, 0);
	for (unsigned i = 0; i < 200; i++) {
		p = maker_mono_packet(1, 100 * i, 100, 1000 + i);
		p.gen = 3;
		p.dropped = 17;
		p.hunits = (uint8_t)(1 + i % 3);
		p.utc_ns = 5000 + i;
		maker_mono_data(&m, p);
	}
	maker_packet(&m, (struct packet){.type = 0x42, .track = 1, .gen = 3, .payload_bytes = 7}, "unknown");
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(write(in, m.bytes, m.n_bytes), (ssize_t)m.n_bytes);

	open_reader(&r, in, false);
	open_writer(&w, out);
	CHECK_OK(writer_begin(&w));
	enum err e;
	uint64_t allocs = 0;
	for (;;) {
		e = reader_next(&r, &p);
		if (e == ERR_AGAIN) {
			CHECK_OK(writer_flush(&w));
			CHECK_OK(reader_fill(&r));
			continue;
		}
		if (e)
			break;
		if (p.type == PACKET_TRACK) {
			struct track t = {0};
			CHECK_OK(track_copy(&t, &reader_track(&r, 1)->track));
			t.id = 9;
			CHECK_OK(writer_announce(&w, &t));
			track_release(&t);
			allocs = heap_allocs();
			continue;
		}
		p.track = 9;
		p.pos += 50000;
		CHECK_OK(writer_forward(&w, &p));
	}
	CHECK_EQ(e, ERR_END);
	CHECK_EQ(heap_allocs(), allocs);
	CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
	reader_release(&r);

	open_reader(&r, out, true);
	unsigned n = 0;
	bool unknown = false;
	while (next(&r, &p)) {
		CHECK_EQ(p.sid, get_le32(w.stream.uuid));
		if (p.type == 0x42)
			unknown = CHECK_EQ(p.payload_bytes, 7) && CHECK_MEM(p.payload, "unknown", 7);
		if (p.type != PACKET_DATA)
			continue;
		CHECK_EQ(p.track, 9);
		CHECK_EQ(p.pos, 50000 + 100 * n);
		CHECK_EQ(p.seq, 1000 + n); /* routing keeps it */
		CHECK_EQ(p.dropped, 17);
		CHECK_EQ(p.utc_ns, 5000 + n);
		CHECK_EQ(p.hunits, 1 + n % 3);
		CHECK_EQ(p.gen, 0);
		for (uint32_t i = 0; i < 100; i++)
			if (!CHECK_EQ(get_le16(p.payload + 2 * i), maker_sample(1, 100 * n + i)))
				break;
		n++;
	}
	CHECK_EQ(n, 200);
	CHECK(unknown);
	CHECK_EQ(r.damaged_bytes, 0);
	reader_release(&r);
	writer_release(&w);
	maker_release(&m);
	close(in);
	close(out);
}

/* ---- descriptors that fail, are slow, or small ---- */

static void test_a_terminal_is_refused(void)
{
	struct writer w;
	struct err_why why = {0};
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) || unlockpt(master)) {
		check_skip("no pseudo terminal here");
		return;
	}
	int fd = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (fd < 0) {
		check_skip("no pseudo terminal here");
		close(master);
		return;
	}
	CHECK_EQ(writer_open(&w, fd, "stdout", "test", &why), ERR_ARG);
	CHECK(strstr(why.reason, "terminal"));
	close(fd);
	close(master);
}

static void test_full_device(void)
{
	struct writer w;
	int fd = open("/dev/full", O_WRONLY);
	open_writer(&w, fd);
	CHECK_OK(writer_begin(&w));
	CHECK_EQ(writer_flush(&w), ERR_SYS);
	CHECK_EQ(w.why.sys_errno, ENOSPC);
	CHECK_STR(w.why.thing, "out");
	CHECK(*w.why.reason);
	/* And so it stays. */
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	t.id = 1;
	CHECK_EQ(writer_flush(&w), ERR_SYS);
	CHECK_EQ(writer_announce(&w, &t), ERR_SYS);
	CHECK(!writer_reserve(&w, 10));
	CHECK_EQ(writer_end(&w, PACKET_END_NORMAL), ERR_SYS);
	writer_release(&w);
	close(fd);
}

static void test_reader_gone(void)
{
	struct writer w;
	int fds[2];
	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(pipe(fds), 0);
	open_writer(&w, fds[1]);
	close(fds[0]);
	CHECK_OK(writer_begin(&w));
	CHECK_EQ(writer_flush(&w), ERR_GONE);
	CHECK_EQ(writer_flush(&w), ERR_GONE);
	writer_release(&w);
	close(fds[1]);
}

static void test_a_closed_descriptor(void)
{
	struct writer w;
	struct err_why why = {0};
	CHECK_EQ(writer_open(&w, 1000, "stdout", "test", &why), ERR_SYS);
	CHECK_EQ(why.sys_errno, EBADF);
}

struct slow {
	int fd;
	struct reader r;
	uint64_t frames;
	bool ok;
};

static void *reads_slowly(void *arg)
{
	struct slow *s = arg;
	struct packet p;
	enum err e;
	s->ok = true;
	while ((e = reader_next(&s->r, &p)) == ERR_OK || e == ERR_AGAIN) {
		if (e == ERR_AGAIN) {
			usleep(200);
			if (reader_fill(&s->r))
				break;
			continue;
		}
		if (p.type == PACKET_DATA) {
			s->ok = s->ok && right_samples(&p) && p.pos == (int64_t)s->frames;
			s->frames += p.dur;
		}
	}
	s->ok = s->ok && e == ERR_END && !reader_is_cut(&s->r);
	return NULL;
}

/* Pipes of one page, blocking and not: every write is short, or says EAGAIN. */
static void test_small_pipes(void)
{
	for (int way = 0; way < 2; way++) {
		struct writer w;
		struct slow s = {0};
		int fds[2];
		pthread_t t;
		CHECK_EQ(pipe(fds), 0);
		open_writer(&w, fds[1]);
		CHECK(w.is_pipe && !w.payload_crc);
		CHECK(fcntl(fds[1], F_SETPIPE_SZ, 4096) >= 4096);
		if (way)
			fcntl(fds[1], F_SETFL, O_NONBLOCK);
		CHECK_OK(reader_open(&s.r, fds[0], "in", NULL, NULL));
		CHECK_EQ(pthread_create(&t, NULL, reads_slowly, &s), 0);
		CHECK_OK(writer_begin(&w));
		announce_mono(&w, 1, 0);
		for (int i = 0; i < 300; i++)
			commit_mono(&w, 1, 1001 * i, 1001);
		CHECK_OK(writer_end(&w, PACKET_END_NORMAL));
		writer_release(&w);
		close(fds[1]);
		pthread_join(t, NULL);
		CHECK(s.ok);
		CHECK_EQ(s.frames, 300300);
		reader_release(&s.r);
		close(fds[0]);
	}
}

int main(void)
{
	CHECK_RUN(test_there_and_back);
	CHECK_RUN(test_other_units_begin_anew);
	CHECK_RUN(test_same_input_same_bytes);
	CHECK_RUN(test_many_packets_few_writes);
	CHECK_RUN(test_payloads_by_reference);
	CHECK_RUN(test_large_objects_are_cut_up);
	CHECK_RUN(test_limits);
	CHECK_RUN(test_a_second_announcement_is_a_new_generation);
	CHECK_RUN(test_files_are_announced_again);
	CHECK_RUN(test_forwarding_keeps_the_payload_and_changes_the_header);
	CHECK_RUN(test_a_terminal_is_refused);
	CHECK_RUN(test_full_device);
	CHECK_RUN(test_reader_gone);
	CHECK_RUN(test_a_closed_descriptor);
	CHECK_RUN(test_small_pipes);
	return check_end();
}
