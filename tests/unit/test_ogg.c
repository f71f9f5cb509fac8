/*
 * Ogg Opus in and out without a codec: made-up packets (a valid first byte, then numbers) go through oggwrite, are bent as
 * files in the field are bent, and come back through oggread with their places.
 */
#include "check.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "media/oggread.h"
#include "media/oggwrite.h"
#include "media/opustags.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- a file in memory ---- */

struct file {
	uint8_t *bytes;
	size_t n_bytes, room_bytes;
};

static void file_add(struct file *f, const void *bytes, size_t n)
{
	while (f->n_bytes + n > f->room_bytes)
		f->bytes = realloc(f->bytes, f->room_bytes = f->room_bytes ? 2 * f->room_bytes : 1 << 20);
	if (n)
		memcpy(f->bytes + f->n_bytes, bytes, n);
	f->n_bytes += n;
}

static enum err file_page(void *user, const uint8_t *header, size_t header_bytes, const uint8_t *body, size_t body_bytes)
{
	file_add(user, header, header_bytes);
	file_add(user, body, body_bytes);
	return ERR_OK;
}

static void file_free(struct file *f)
{
	free(f->bytes);
	*f = (struct file){ 0 };
}

static size_t page_length(const struct file *f, size_t at)
{
	size_t length = 27u + f->bytes[at + 26];
	for (unsigned s = 0; s < f->bytes[at + 26]; s++)
		length += f->bytes[at + 27 + s];
	return length;
}

/* Offset of page n (−1: the last one), its length in *length; the end of the file when there is no such page. */
static size_t page_at(const struct file *f, int n, size_t *length)
{
	size_t at = 0;
	for (int i = 0; at + 27 <= f->n_bytes; i++) {
		*length = page_length(f, at);
		if (i == n || (n < 0 && at + *length >= f->n_bytes))
			return at;
		at += *length;
	}
	return f->n_bytes;
}

static int page_count(const struct file *f)
{
	int n = 0;
	for (size_t at = 0; at + 27 <= f->n_bytes; at += page_length(f, at))
		n++;
	return n;
}

static int64_t page_granule(const struct file *f, int n)
{
	size_t length;
	return (int64_t)get_le64(f->bytes + page_at(f, n, &length) + 6);
}

static void page_sign(struct file *f, int n)
{
	size_t length, at = page_at(f, n, &length);
	ogg_page page = { .header = f->bytes + at, .header_len = 27 + f->bytes[at + 26] };
	page.body = page.header + page.header_len;
	page.body_len = (long)length - page.header_len;
	ogg_page_checksum_set(&page);
}

static void page_set_granule(struct file *f, int n, int64_t granule)
{
	size_t length;
	put_le64(f->bytes + page_at(f, n, &length) + 6, (uint64_t)granule);
	page_sign(f, n);
}

static void page_remove(struct file *f, int n)
{
	size_t length, at = page_at(f, n, &length);
	memmove(f->bytes + at, f->bytes + at + length, f->n_bytes - at - length);
	f->n_bytes -= length;
}

static void file_insert(struct file *f, size_t at, const void *bytes, size_t n)
{
	file_add(f, bytes, n);
	memmove(f->bytes + at + n, f->bytes + at, f->n_bytes - n - at);
	memcpy(f->bytes + at, bytes, n);
}

/* ---- packets ---- */

static const uint8_t toc_20ms = 31 << 3; /* CELT, full band, mono, one frame */

static struct track opus_track(unsigned channels, unsigned family)
{
	struct track t = { .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .rate_num = 48000, .rate_den = 1, .channels = (uint16_t)channels,
		.opus_family = (uint8_t)family, .original_rate_hz = 44100, .id = 1 };
	return t;
}

static struct packet opus_packet(int64_t pos, uint32_t dur, uint8_t *bytes, uint32_t n_bytes, uint8_t toc)
{
	for (uint32_t i = 0; i < n_bytes; i++)
		bytes[i] = (uint8_t)(pos / 7 + i * 31);
	bytes[0] = toc;
	struct packet p = packet_data(1, pos, dur, n_bytes);
	p.payload = bytes;
	return p;
}

/* n packets of 20 ms from pos on, the last one trimmed by `trim` frames, without finishing. */
static void put_packets(struct oggwrite *w, int64_t pos, unsigned n, unsigned trim)
{
	uint8_t bytes[300];
	for (unsigned i = 0; i < n; i++) {
		struct packet p = opus_packet(pos, 960, bytes, 100 + i % 100, toc_20ms);
		if (i + 1 == n && trim) {
			p.dur -= trim;
			p.flags |= PACKET_TRIM;
		}
		CHECK_EQ(oggwrite_packet(w, &p, NULL), ERR_OK);
		pos += 960;
	}
}

/* A mono file: n packets from −312, pages of 5 packets. */
static struct file simple_file(unsigned n, unsigned trim, uint32_t serial)
{
	struct file f = { 0 };
	struct oggwrite w;
	struct track t = opus_track(1, 0);
	CHECK_EQ(track_add_tag(&t, "TITLE", "one", true), ERR_OK);
	CHECK_EQ(oggwrite_open(&w, &t, serial, 4800, file_page, &f, NULL), ERR_OK);
	put_packets(&w, -312, n, trim);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	CHECK_EQ(w.preskip_frames, 312);
	CHECK_EQ(w.n_frames, (uint64_t)n * 960 - 312 - trim);
	oggwrite_release(&w);
	track_release(&t);
	return f;
}

/* ---- reading it ---- */

struct readback {
	enum err opened, ended;
	int64_t first_pos, end_pos;   /* of the first link; of the last packet */
	int64_t n_frames_told;
	uint64_t n_packets, frames, gap_frames, lost_frames, damaged_bytes;
	unsigned n_gaps, n_links;
	int64_t gap_pos;              /* where the first hole begins */
	uint16_t gap_reason, last_flags;
	bool cut, in_order;
	char note[256], warning[256], reason[256];
};

typedef void each_fn(void *user, const struct oggread *r, const struct oggread_packet *p, uint64_t n);

static struct readback read_file(const struct file *f, bool is_pipe, each_fn *each, void *user)
{
	struct readback b = { .in_order = true };
	static struct source_bytes in;
	static struct oggread r;
	struct err_why why = { 0 };
	int fd = memfd_create("ogg", MFD_CLOEXEC), pipe_fd[2] = { -1, -1 };
	pid_t child = 0;

	CHECK_EQ(write(fd, f->bytes, f->n_bytes), f->n_bytes);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	if (is_pipe) {
		CHECK_EQ(pipe(pipe_fd), 0);
		child = fork();
		if (!child) {
			close(pipe_fd[0]);
			for (size_t at = 0, step = 1; at < f->n_bytes; at += step, step = 1 + (step * 7 + 3) % 5000) {
				if (step > f->n_bytes - at)
					step = f->n_bytes - at;
				if (write(pipe_fd[1], f->bytes + at, step) < 0)
					break;
			}
			_exit(0);
		}
		close(pipe_fd[1]);
	}
	source_bytes_open(&in, is_pipe ? pipe_fd[0] : fd, NULL);
	b.opened = oggread_open(&r, &in, !is_pipe, &why);
	if (b.opened != ERR_OK) {
		memcpy(b.reason, why.reason, sizeof(b.reason));
		goto out;
	}
	b.first_pos = r.track.first_pos;
	b.n_frames_told = r.n_frames;
	b.n_links = 1;
	int64_t expect = INT64_MIN;
	struct oggread_packet p;
	while ((b.ended = oggread_next(&r, &p)) == ERR_OK) {
		if (p.new_link) {
			b.n_links++;
			b.in_order &= p.flags & PACKET_DISCONT && r.track.first_pos == expect;
			expect = p.pos;
		}
		if (p.gap_frames) {
			if (!b.n_gaps++)
				b.gap_pos = p.pos - (int64_t)p.gap_frames;
			b.gap_reason = p.gap_reason;
			b.gap_frames += p.gap_frames;
			if (expect != INT64_MIN)
				expect += (int64_t)p.gap_frames;
		}
		b.in_order &= expect == INT64_MIN || p.pos == expect;
		expect = b.end_pos = p.pos + p.dur;
		b.last_flags = p.flags;
		if (each)
			each(user, &r, &p, b.n_packets);
		b.n_packets++;
		b.frames += p.dur;
	}
	b.cut = r.cut;
	b.lost_frames = r.lost_frames;
	b.damaged_bytes = r.damaged_bytes;
	memcpy(b.note, r.note, sizeof(b.note));
	memcpy(b.warning, r.warning, sizeof(b.warning));
	memcpy(b.reason, r.why.reason, sizeof(b.reason));
	oggread_release(&r);
out:
	close(fd);
	if (is_pipe)
		close(pipe_fd[0]);
	return b;
}

static struct readback read_plain(const struct file *f)
{
	return read_file(f, false, NULL, NULL);
}

/* ---- writing and reading ---- */

struct given {
	int64_t pos;
	uint32_t dur, n_bytes;
	uint16_t flags;
	uint8_t toc;
};

static void compare_given(void *user, const struct oggread *r, const struct oggread_packet *p, uint64_t n)
{
	const struct given *g = (const struct given *)user + n;
	static uint8_t bytes[100000];
	(void)r;
	CHECK_EQ(p->pos, g->pos);
	CHECK_EQ(p->dur, g->dur);
	CHECK_EQ(p->flags, g->flags);
	CHECK_EQ(p->gap_frames, 0);
	if (CHECK_EQ(p->n_bytes, g->n_bytes)) {
		(void)opus_packet(g->pos, g->dur, bytes, g->n_bytes, g->toc);
		CHECK_MEM(p->data, bytes, g->n_bytes);
	}
}

/* Random sizes, among them some that need more than a page, in every frame size: the same comes back. */
static void test_round_trip(void)
{
	static const struct { uint8_t toc; uint32_t dur; } sizes[] = {
		{ 28 << 3, 120 }, { 29 << 3, 240 }, { 14 << 3, 480 }, { 31 << 3, 960 }, { 10 << 3, 1920 }, { 11 << 3 | 4, 2880 },
	};
	static const struct { unsigned channels, family; } layouts[] = {
		{ 1, 0 }, { 2, 0 }, { 1, 1 }, { 3, 1 }, { 6, 1 }, { 8, 1 }, { 9, 255 }, { 255, 255 }, { 4, 2 },
	};
	static uint8_t bytes[100000];
	check_seed(7845);

	for (unsigned i = 0; i < ARRAY_LEN(sizes) * ARRAY_LEN(layouts); i++) {
		uint32_t dur = sizes[i % ARRAY_LEN(sizes)].dur;
		uint8_t toc = sizes[i % ARRAY_LEN(sizes)].toc;
		unsigned n = 1 + (unsigned)check_rand_below(300), preskip = i % 3 == 0 ? 312 : i % 3 == 1 ? 120 + (unsigned)check_rand_below(3721) : 120;
		struct track t = opus_track(layouts[i / ARRAY_LEN(sizes)].channels, layouts[i / ARRAY_LEN(sizes)].family);
		struct file f = { 0 };
		struct oggwrite w;
		struct given *given = calloc(n, sizeof(*given));
		int64_t pos = -(int64_t)preskip;

		t.gain_q8 = -777;
		CHECK_EQ(oggwrite_open(&w, &t, 7 + i, i % 2 ? 0 : 4800, file_page, &f, NULL), ERR_OK);
		for (unsigned k = 0; k < n; k++) {
			bool large = check_rand_below(60) == 0;
			given[k] = (struct given){ pos, dur, 1 + (uint32_t)check_rand_below(large ? 80000 : 1200), PACKET_KEY, toc };
			if (k + 1 == n && i % 2) {
				given[k].dur = 1 + (uint32_t)check_rand_below(dur);
				given[k].flags |= given[k].dur < dur ? PACKET_TRIM : 0;
			}
			struct packet p = opus_packet(pos, given[k].dur, bytes, given[k].n_bytes, toc);
			p.flags = given[k].flags;
			CHECK_EQ(oggwrite_packet(&w, &p, NULL), ERR_OK);
			pos += given[k].dur;
		}
		CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
		CHECK_EQ(w.preskip_frames, preskip);
		CHECK_EQ(w.filled_frames, 0);
		CHECK_EQ(w.dropped_frames, 0);

		struct readback b = read_file(&f, i % 4 == 3, compare_given, given);
		CHECK_EQ(b.opened, ERR_OK);
		CHECK_EQ(b.ended, ERR_END);
		CHECK_EQ(b.n_packets, n);
		CHECK_EQ(b.first_pos, 0);
		CHECK(b.in_order && !b.cut);
		CHECK_STR(b.warning, "");
		CHECK_STR(b.note, "");
		if (i % 4 != 3)
			CHECK_EQ(b.n_frames_told, pos > 0 ? pos : 0);
		oggwrite_release(&w);
		free(given);
		file_free(&f);
	}
}

static void compare_head(void *user, const struct oggread *r, const struct oggread_packet *p, uint64_t n)
{
	(void)user, (void)p;
	if (n)
		return;
	CHECK_EQ(r->track.channels, 6);
	CHECK_EQ(r->track.gain_q8, -512);
	CHECK_EQ(r->track.original_rate_hz, 96000);
	CHECK_EQ(r->track.codec_delay_frames, 120);
	CHECK_EQ(r->track.opus_family, 1);
	CHECK_EQ(r->track.opus_streams, 4);
	CHECK_EQ(r->track.opus_coupled, 2);
	CHECK_STR(track_tag_at(&r->track, 0), "TITLE=gr\xC3\xBC\xC3\x9F");
	CHECK_STR(track_tag_at(&r->track, 1), "R128_TRACK_GAIN=-100");
	CHECK_STR(track_tag_at(&r->track, 2), "ENCODER=weir " WEIR_VERSION);
	CHECK(!track_tag_at(&r->track, 3));
}

static void test_header_fields(void)
{
	struct track t = opus_track(6, 1);
	struct file f = { 0 };
	struct oggwrite w;
	uint8_t bytes[100];
	t.gain_q8 = -512;
	t.original_rate_hz = 96000;
	t.first_pos = 5020;
	CHECK_EQ(track_add_tag(&t, "TITLE", "gr\xC3\xBC\xC3\x9F", false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "R128_TRACK_GAIN", "-100", false), ERR_OK);
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	struct packet p = opus_packet(4900, 960, bytes, 100, toc_20ms);
	CHECK_EQ(oggwrite_packet(&w, &p, NULL), ERR_OK);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	struct readback b = read_file(&f, false, compare_head, NULL);
	/* The file's own frame 0 is the track's first_pos. */
	CHECK_EQ(b.first_pos, 0);
	CHECK_EQ(b.end_pos, 840);
	oggwrite_release(&w);
	track_release(&t);
	file_free(&f);
}

/* RFC 7845 section 3: OpusHead alone on the first page, OpusTags alone on the next, audio from there; EOS on the last only. */
static void test_pages(void)
{
	struct file f = simple_file(23, 17, 99);
	int n = page_count(&f);
	CHECK_EQ(n, 2 + 5);
	for (int i = 0; i < n; i++) {
		size_t length, at = page_at(&f, i, &length);
		CHECK_EQ(f.bytes[at + 5], i == 0 ? 2 : i == n - 1 ? 4 : 0);
		CHECK_EQ(get_le32(f.bytes + at + 14), 99);
		CHECK_EQ(get_le32(f.bytes + at + 18), i);
		int64_t granule = i < 2 ? 0 : i < n - 1 ? (i - 1) * 4800 : 23 * 960 - 17;
		CHECK_EQ(page_granule(&f, i), granule);
	}
	size_t length, at = page_at(&f, 0, &length);
	CHECK_EQ(length, 28 + 19);
	CHECK_MEM(f.bytes + at + 28, "OpusHead\x01\x01\x38\x01\x44\xAC\0\0\0\0\0", 19);
	file_free(&f);
}

/* Tags larger than a page, and flushing early: all but the newest packet is out. */
static void test_pages_long_tags_and_flush(void)
{
	struct track t = opus_track(2, 0);
	struct file f = { 0 };
	struct oggwrite w;
	char *value = malloc(45001);
	memset(value, 'x', 45000);
	value[45000] = 0;
	CHECK_EQ(track_add_tag(&t, "LONG", value, false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "COMMENT", "kept", false), ERR_OK);
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	put_packets(&w, -312, 3, 0);
	size_t before = f.n_bytes;
	CHECK_EQ(oggwrite_flush(&w, NULL), ERR_OK);
	CHECK(f.n_bytes > before);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.n_packets, 2);
	CHECK(!b.cut);
	CHECK(strstr(b.note, "without an end-of-stream page"));
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	b = read_plain(&f);
	CHECK_EQ(b.n_packets, 3);
	CHECK_STR(b.note, "");
	oggwrite_release(&w);
	track_release(&t);
	free(value);
	file_free(&f);
}

/* ---- nothing, or next to nothing ---- */

static void test_empty(void)
{
	static const unsigned layouts[][2] = { { 1, 0 }, { 2, 0 }, { 6, 1 }, { 255, 255 } };
	for (unsigned i = 0; i < ARRAY_LEN(layouts); i++) {
		struct track t = opus_track(layouts[i][0], layouts[i][1]);
		struct file f = { 0 };
		struct oggwrite w;
		CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
		CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
		CHECK_EQ(w.n_frames, 0);
		CHECK_EQ(page_count(&f), 3);
		CHECK_EQ(page_granule(&f, 2), 312);
		struct readback b = read_plain(&f);
		CHECK_EQ(b.n_packets, 1);
		CHECK_EQ(b.end_pos, b.first_pos);
		CHECK_EQ(b.n_frames_told, 0);
		CHECK(!b.cut);
		oggwrite_release(&w);
		file_free(&f);
	}
}

/* As an encoder gives it: one packet that ends where the track begins. */
static void test_nothing_kept(void)
{
	struct track t = opus_track(1, 0);
	struct file f = { 0 };
	struct oggwrite w;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	put_packets(&w, -312, 1, 960 - 312);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	CHECK_EQ(w.n_frames, 0);
	CHECK_EQ(page_granule(&f, -1), 312);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.frames, 312);
	CHECK_EQ(b.end_pos, 0);
	oggwrite_release(&w);
	file_free(&f);
}

static void test_one_frame(void)
{
	struct file f = simple_file(1, 647, 1);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.end_pos - b.first_pos, 1);
	CHECK_EQ(b.n_frames_told, 1);
	CHECK(b.last_flags & PACKET_TRIM);
	file_free(&f);
}

static void test_headers_only(void)
{
	struct file f = simple_file(5, 0, 1);
	page_remove(&f, 2);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.opened, ERR_OK);
	CHECK_EQ(b.ended, ERR_END);
	CHECK_EQ(b.n_packets, 0);
	CHECK_EQ(b.n_frames_told, 0);
	CHECK(!b.cut);
	CHECK(strstr(b.warning, "no audio"));
	file_free(&f);
}

/* ---- pre-skip ---- */

static void test_preskip_limit(void)
{
	struct track t = opus_track(1, 0);
	struct file f = { 0 };
	struct oggwrite w;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	put_packets(&w, -96000, 110, 0);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	CHECK_EQ(w.preskip_frames, 65280); /* the last multiple of 960 that 16 bits hold */
	CHECK_EQ(w.dropped_frames, 96000 - 65280);
	CHECK_EQ(w.n_frames, 110 * 960 - 96000);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.end_pos, 110 * 960 - 96000);
	oggwrite_release(&w);
	file_free(&f);
}

/* ---- holes and overlaps when writing ---- */

struct hole_result {
	uint64_t filled, dropped;
	int64_t end_pos;
	struct readback b;
	uint64_t n_bytes;
};

/* 10 packets, a hole, 10 packets (pos is that of the second part). */
static struct hole_result write_hole(uint8_t toc, uint32_t dur, unsigned channels, unsigned family, int64_t hole)
{
	struct track t = opus_track(channels, family);
	struct file f = { 0 };
	struct oggwrite w;
	uint8_t bytes[200];
	struct hole_result h;
	t.first_pos = 312;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	for (int i = 0; i < 20; i++) {
		struct packet p = opus_packet(i * (int64_t)dur + (i < 10 ? 0 : hole), dur, bytes, 60, toc);
		CHECK_EQ(oggwrite_packet(&w, &p, NULL), ERR_OK);
	}
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	h.filled = w.filled_frames;
	h.dropped = w.dropped_frames;
	h.end_pos = w.next_pos;
	h.n_bytes = f.n_bytes;
	h.b = read_plain(&f);
	CHECK(h.b.in_order && !h.b.cut);
	CHECK_EQ(h.b.end_pos, h.end_pos - 312);
	oggwrite_release(&w);
	file_free(&f);
	return h;
}

static void test_hole_filled(void)
{
	static const struct { uint8_t toc; uint32_t dur; } sizes[] = {
		{ 28 << 3, 120 }, { 29 << 3, 240 }, { 14 << 3, 480 }, { 31 << 3, 960 }, { 10 << 3, 1920 }, { 11 << 3, 2880 },
	};
	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++)
		for (unsigned n = 0; n < 3; n++) {
			int64_t hole = (int64_t[]){ sizes[i].dur, 48000, 120 * 77 }[n];
			struct hole_result h = write_hole(sizes[i].toc, sizes[i].dur, i % 2 ? 6 : 1, i % 2 ? 1 : 0, hole);
			CHECK_EQ(h.filled, hole);
			CHECK_EQ(h.dropped, 0);
			CHECK_EQ(h.end_pos, 20 * (int64_t)sizes[i].dur + hole);
		}
}

/* An hour costs 30 000 packets of 2 bytes, not a recording. */
static void test_hole_is_cheap(void)
{
	struct hole_result h = write_hole(toc_20ms, 960, 1, 0, 3600 * 48000);
	CHECK_EQ(h.filled, 3600 * 48000);
	CHECK(h.n_bytes < 250000);
}

/* What 2.5 ms cannot reach is never more than half of it, and is made good at the next hole. */
static void test_hole_remainder(void)
{
	struct track t = opus_track(1, 0);
	struct file f = { 0 };
	struct oggwrite w;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	int64_t pos = 0;
	for (int i = 0; i < 50; i++) {
		put_packets(&w, pos, 3, 0);
		pos += 3 * 960;
		int64_t error = w.next_pos - pos;
		CHECK(error >= -60 && error <= 60);
		pos += 1000 + 13 * i;
	}
	put_packets(&w, pos, 1, 100);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	/* The end trim is to the frame again. */
	CHECK_EQ(w.n_frames, pos + 860);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.end_pos, pos + 860);
	CHECK_EQ(w.dropped_frames, 0);
	oggwrite_release(&w);
	file_free(&f);
}

static void test_hole_at_start_and_end(void)
{
	struct track t = opus_track(1, 0);
	struct file f = { 0 };
	struct oggwrite w;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	put_packets(&w, 48000, 2, 0);
	CHECK_EQ(oggwrite_fill(&w, 48000 + 2 * 960 + 4800, NULL), ERR_OK);
	CHECK_EQ(oggwrite_fill(&w, 100, NULL), ERR_OK); /* behind us: nothing */
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	CHECK_EQ(w.filled_frames, 52800 + 360);
	CHECK_EQ(w.preskip_frames, 360);
	CHECK_EQ(w.n_frames, 52800 + 2 * 960);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.first_pos, 0);
	CHECK_EQ(b.end_pos, 52800 + 2 * 960);
	oggwrite_release(&w);
	file_free(&f);
}

/* A packet that lies at first_pos, or a little before it: the time is right to the frame, and no player finds fault. */
static void test_no_preskip(void)
{
	for (int64_t first = 0; first < 400; first += 37) {
		struct track t = opus_track(1, 0);
		struct file f = { 0 };
		struct oggwrite w;
		CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
		put_packets(&w, first - 111, 10, 0);
		CHECK_EQ(w.next_pos, first - 111 + 9600);
		CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
		CHECK(w.preskip_frames >= 120 && w.preskip_frames < 312 + 120);
		CHECK_EQ(read_plain(&f).end_pos, first - 111 + 9600);
		oggwrite_release(&w);
		file_free(&f);
	}
}

static void test_overlap_dropped(void)
{
	struct track t = opus_track(1, 0);
	struct file f = { 0 };
	struct oggwrite w;
	uint8_t bytes[100];
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
	put_packets(&w, 0, 10, 0);
	put_packets(&w, 4800, 10, 0); /* the first five again */
	CHECK_EQ(w.dropped_frames, 4800);
	CHECK_EQ(w.next_pos, 15 * 960);
	/* Trimmed in the middle, as before a hole: the time behind it stays right. */
	put_packets(&w, 15 * 960, 1, 500);
	put_packets(&w, 15 * 960 + 460, 3, 0);
	CHECK_EQ(w.dropped_frames, 4800 + 960);
	CHECK(llabs(w.next_pos - (15 * 960 + 460 + 3 * 960)) <= 60);
	/* No Opus packet: a hole. */
	struct packet p = opus_packet(w.next_pos, 960, bytes, 10, 3);
	bytes[1] = 0;
	CHECK_EQ(oggwrite_packet(&w, &p, NULL), ERR_OK);
	p.payload_bytes = 0;
	CHECK_EQ(oggwrite_packet(&w, &p, NULL), ERR_OK);
	CHECK_EQ(w.n_bad_packets, 2);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	struct readback b = read_plain(&f);
	CHECK(b.in_order);
	CHECK_EQ(b.end_pos, w.next_pos);
	oggwrite_release(&w);
	file_free(&f);
}

/* An end that is given: in a hole, inside the last packet, or before any packet came; to the frame. */
static void test_end_at(void)
{
	static const int64_t ends[] = { 0, 1, 100, 119, 120, 121, 960, 5000, 9288 - 961, 9288 - 960, 9288 - 1, 9288, 9289, 9408, 9409, 12345 };
	for (unsigned i = 0; i < ARRAY_LEN(ends); i++)
		for (int n = 0; n <= 10; n += 10)
			for (unsigned trim = 0; trim <= 300; trim += 300) {
				struct track t = opus_track(1, 0);
				struct file f = { 0 };
				struct oggwrite w;
				CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_page, &f, NULL), ERR_OK);
				put_packets(&w, -312, (unsigned)n, trim);
				CHECK_EQ(oggwrite_end_at(&w, ends[i], NULL), ERR_OK);
				CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
				/* Only the packet that is held can be cut. */
				int64_t wanted = n && ends[i] < 9288 - 960 ? 9288 - 960 : ends[i];
				CHECK_EQ(w.n_frames, wanted);
				CHECK_EQ(page_granule(&f, -1) - w.preskip_frames, wanted);
				struct readback b = read_plain(&f);
				CHECK_EQ(b.end_pos < 0 ? 0 : b.end_pos, wanted);
				CHECK(!b.cut);
				oggwrite_release(&w);
				file_free(&f);
			}
}

/* An end trim of every kind, from a frame to a packet, where the trimmed packet has a page of its own and where it has not. */
static void test_every_end_trim(void)
{
	static const unsigned trims[] = { 0, 1, 2, 119, 120, 121, 958, 959, 960 };
	for (unsigned i = 0; i < ARRAY_LEN(trims); i++)
		for (unsigned n = 5; n <= 7; n++) {
			struct file f = simple_file(n, trims[i], 1);
			struct readback b = read_plain(&f);
			CHECK_EQ(page_granule(&f, -1), (int64_t)n * 960 - trims[i]);
			CHECK_EQ(b.end_pos, (int64_t)n * 960 - 312 - trims[i]);
			CHECK(b.in_order);
			CHECK(!b.cut);
			CHECK_EQ(b.n_gaps, 0);
			file_free(&f);
		}
}

/* Granule positions that fall back, by a step or more: what comes after follows, nothing is lost, and it is said. */
static void test_granules_that_fall_back(void)
{
	static const int64_t backs[] = { 120, 121, 960, 4800 };
	for (unsigned k = 0; k < ARRAY_LEN(backs); k++) {
		struct file f = simple_file(30, 0, 1);
		for (int i = 4; i < page_count(&f); i++)
			page_set_granule(&f, i, page_granule(&f, i) - backs[k]);
		struct readback b = read_plain(&f);
		CHECK(strstr(b.note, "fall back"));
		CHECK(b.in_order);
		CHECK_EQ(b.n_packets, 30);
		CHECK_EQ(b.end_pos, 30 * 960 - 312);
		CHECK_EQ(b.n_gaps, 0);
		file_free(&f);
	}
}

static enum err page_fails(void *user, const uint8_t *header, size_t header_bytes, const uint8_t *body, size_t body_bytes)
{
	(void)header, (void)header_bytes, (void)body, (void)body_bytes;
	return --*(int *)user < 0 ? ERR_SYS : ERR_OK;
}

static void test_write_failure_latches(void)
{
	struct track t = opus_track(1, 0);
	struct oggwrite w;
	struct err_why why;
	uint8_t bytes[100];
	int pages = 3;
	enum err e = ERR_OK;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 960, page_fails, &pages, NULL), ERR_OK);
	int i = 0;
	for (; i < 100 && e == ERR_OK; i++) {
		struct packet p = opus_packet(i * 960, 960, bytes, 100, toc_20ms);
		e = oggwrite_packet(&w, &p, &why);
	}
	CHECK_EQ(e, ERR_SYS);
	CHECK(i < 10);
	CHECK_EQ(oggwrite_flush(&w, &why), ERR_SYS);
	CHECK_EQ(oggwrite_finish(&w, &why), ERR_SYS);
	oggwrite_release(&w);

	struct track pcm = track_pcm(48000, 2, SAMPLE_S16);
	CHECK_EQ(oggwrite_open(&w, &pcm, 1, 0, page_fails, &pages, &why), ERR_ARG);
	oggwrite_release(&w);
	struct track many = opus_track(9, 1);
	CHECK_EQ(oggwrite_open(&w, &many, 1, 0, page_fails, &pages, &why), ERR_FORMAT);
	oggwrite_release(&w);
}

/* ---- files as they are met ---- */

static void test_joined_late(void)
{
	struct file f = simple_file(20, 17, 1);
	for (int i = 2; i < page_count(&f); i++)
		page_set_granule(&f, i, page_granule(&f, i) + 123456789);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.first_pos, 123456789);
	CHECK_EQ(b.end_pos, 123456789 + 20 * 960 - 17 - 312);
	CHECK_EQ(b.n_frames_told, 20 * 960 - 17 - 312);
	CHECK_EQ(b.n_gaps, 0);
	CHECK(!b.cut);
	file_free(&f);
}

static void test_impossible_first_granule(void)
{
	struct file f = simple_file(20, 0, 1);
	for (int i = 2; i < page_count(&f); i++)
		page_set_granule(&f, i, page_granule(&f, i) - 8);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.opened, ERR_FORMAT);
	CHECK(strstr(b.reason, "granule"));
	file_free(&f);
}

static void test_damaged_page(void)
{
	struct file f = simple_file(50, 17, 1);
	size_t length, at = page_at(&f, 5, &length);
	f.bytes[at + 100] ^= 4;
	struct readback b = read_plain(&f);
	CHECK_EQ(b.n_gaps, 1);
	CHECK_EQ(b.gap_frames, 4800);
	CHECK_EQ(b.gap_pos, 3 * 4800 - 312);
	CHECK_EQ(b.gap_reason, PACKET_GAP_DAMAGED);
	CHECK_EQ(b.lost_frames, 4800);
	CHECK_EQ(b.damaged_bytes, length);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK(b.cut && b.in_order);
	CHECK(strstr(b.warning, "4800 frames lost"));
	file_free(&f);
}

/* The first page of audio damaged: time begins where it would have. */
static void test_damaged_first_page(void)
{
	struct file f = simple_file(50, 17, 1);
	size_t length, at = page_at(&f, 2, &length);
	f.bytes[at + 100] ^= 4;
	struct readback b = read_plain(&f);
	CHECK_EQ(b.first_pos, 0);
	CHECK_EQ(b.gap_frames, 4800);
	CHECK_EQ(b.gap_pos, -312);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK(b.cut);
	file_free(&f);
}

/* A page before the last one is missing: whole packets are lost, what does not add up to one is the end trim. */
static void test_missing_page_before_end(void)
{
	struct file f = simple_file(50, 17, 1);
	page_remove(&f, page_count(&f) - 2);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.gap_frames, 4800);
	CHECK_EQ(b.damaged_bytes, 0);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK(b.last_flags & PACKET_TRIM);
	CHECK(b.cut);
	file_free(&f);
}

static void test_tags_page_missing(void)
{
	struct file f = simple_file(20, 0, 1);
	page_remove(&f, 1);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.opened, ERR_OK);
	CHECK_EQ(b.n_packets, 20);
	CHECK_EQ(b.end_pos, 20 * 960 - 312);
	CHECK(strstr(b.note, "tags are missing"));
	file_free(&f);
}

static void test_garbage(void)
{
	struct file f = simple_file(50, 17, 1);
	size_t length;
	static const uint8_t junk[] = "OggOggSOggS\0\0this is not a page, it was here before";
	file_insert(&f, page_at(&f, 6, &length), junk, sizeof(junk));
	file_insert(&f, 0, junk, 10);
	file_add(&f, junk, sizeof(junk));
	struct readback b = read_plain(&f);
	CHECK_EQ(b.damaged_bytes, 2 * sizeof(junk) + 10);
	CHECK_EQ(b.n_packets, 50);
	CHECK_EQ(b.n_gaps, 0);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK(b.cut);
	file_free(&f);
}

/* A live recording that just stops is whole; one torn in the middle of a page is not. */
static void test_truncated(void)
{
	struct file f = simple_file(50, 17, 1);
	size_t length, at = page_at(&f, -1, &length);
	f.n_bytes = at;
	struct readback b = read_plain(&f);
	CHECK(!b.cut);
	CHECK_EQ(b.n_packets, 45);
	CHECK_STR(b.warning, "");
	CHECK(strstr(b.note, "without an end-of-stream page"));

	at = page_at(&f, -1, &length);
	f.n_bytes = at + length - 1;
	b = read_plain(&f);
	CHECK(b.cut);
	CHECK_EQ(b.n_packets, 40);
	CHECK_EQ(b.damaged_bytes, length - 1);
	CHECK(strstr(b.warning, "in the middle of a page"));
	f.n_bytes = at + 3;
	b = read_plain(&f);
	CHECK(b.cut);
	CHECK_EQ(b.damaged_bytes, 3);
	file_free(&f);
}

/* A damaged header that promises more than the file has must not hide the pages behind it. */
static void test_promise_too_much(void)
{
	struct file f = simple_file(50, 17, 1);
	size_t length, at = page_at(&f, -1, &length);
	size_t before = page_at(&f, page_count(&f) - 2, &length);
	memset(f.bytes + before + 26, 255, 30);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.damaged_bytes, at - before);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK_EQ(b.gap_frames, 4800);
	file_free(&f);
}

static const uint8_t *const no_bytes = (const uint8_t *)"";

static void page_append(struct file *f, uint32_t serial, uint32_t no, int64_t granule, unsigned flags, const uint8_t *body, unsigned n)
{
	uint8_t head[28] = "OggS";
	head[5] = (uint8_t)flags;
	put_le64(head + 6, (uint64_t)granule);
	put_le32(head + 14, serial);
	put_le32(head + 18, no);
	head[26] = 1;
	head[27] = (uint8_t)n;
	file_add(f, head, 28);
	file_add(f, body, n);
	page_sign(f, page_count(f) - 1);
}

static void test_empty_last_packet(void)
{
	struct file f = simple_file(20, 0, 1);
	int n = page_count(&f);
	size_t length;
	f.bytes[page_at(&f, -1, &length) + 5] = 0;
	page_sign(&f, n - 1);
	page_append(&f, 1, (uint32_t)n, 20 * 960, 4, no_bytes, 0);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.n_packets, 20);
	CHECK_EQ(b.end_pos, 20 * 960 - 312);
	CHECK(!(b.last_flags & PACKET_TRIM));
	CHECK(!b.cut);
	CHECK_STR(b.note, "");
	file_free(&f);
}

static void test_unknown_granule(void)
{
	struct file f = simple_file(50, 17, 1);
	page_set_granule(&f, 4, -1);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.n_packets, 50);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK(b.in_order && !b.cut);
	/* And on the first page, in a stream joined late: the next one tells. */
	page_set_granule(&f, 2, -1);
	b = read_plain(&f);
	CHECK_EQ(b.n_packets, 50);
	CHECK_EQ(b.n_gaps, 0);
	/* A damaged page before it: the hole waits for the next granule position, and is placed there. */
	size_t length, at = page_at(&f, 5, &length);
	page_set_granule(&f, 2, 4800);
	page_set_granule(&f, 4, 3 * 4800);
	page_set_granule(&f, 6, -1);
	f.bytes[at + 100] ^= 1;
	b = read_plain(&f);
	CHECK_EQ(b.gap_frames, 4800);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	file_free(&f);
}

static void test_wild_granules(void)
{
	static const int64_t wild[] = { INT64_MAX, INT64_MIN, -2, INT64_C(1) << 59, 7, 0 };
	for (unsigned i = 0; i < ARRAY_LEN(wild); i++)
		for (int page = 2; page < 6; page++) {
			struct file f = simple_file(30, 0, 1);
			page_set_granule(&f, page, wild[i]);
			struct readback b = read_plain(&f);
			CHECK(b.opened == ERR_OK || b.opened == ERR_FORMAT);
			CHECK(b.gap_frames <= 2 * OGGREAD_MAX_HOLE_FRAMES);
			if (page > 2)
				CHECK_EQ(b.n_packets, 30);
			file_free(&f);
		}
}

/* A recorder that left out what was silent: the time is kept, and it is said. */
static void test_jump_without_loss(void)
{
	struct file f = simple_file(50, 0, 1);
	for (int i = 5; i < page_count(&f); i++)
		page_set_granule(&f, i, page_granule(&f, i) + 100000);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.n_gaps, 1);
	CHECK_EQ(b.gap_frames, 100000);
	CHECK_EQ(b.gap_pos, 3 * 4800 - 312);
	CHECK_EQ(b.gap_reason, PACKET_GAP_UNKNOWN);
	CHECK_EQ(b.end_pos, 50 * 960 - 312 + 100000);
	file_free(&f);

	/* Rounding by a muxer that counts milliseconds is no hole. */
	f = simple_file(50, 0, 1);
	for (int i = 3; i < page_count(&f) - 1; i++)
		page_set_granule(&f, i, page_granule(&f, i) + (i % 2 ? 16 : -32));
	b = read_plain(&f);
	CHECK_EQ(b.n_gaps, 0);
	CHECK_EQ(b.end_pos, 50 * 960 - 312);
	file_free(&f);
}

/* A packet that is none, inside a page: its time is a hole just there. */
static void test_bad_packets(void)
{
	struct file f = simple_file(50, 17, 1);
	size_t length, at = page_at(&f, 4, &length);
	unsigned body = 27 + f.bytes[at + 26], second = body + f.bytes[at + 27];
	f.bytes[at + second] = 3;      /* code 3 … */
	f.bytes[at + second + 1] = 0;  /* … of no frames */
	page_sign(&f, 4);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.n_packets, 49);
	CHECK_EQ(b.gap_frames, 960);
	CHECK_EQ(b.gap_pos, 2 * 4800 - 312 + 960);
	CHECK_EQ(b.damaged_bytes, f.bytes[at + 28]);
	CHECK_EQ(b.end_pos, 50 * 960 - 17 - 312);
	CHECK(b.cut && b.in_order);
	file_free(&f);
}

static void chain_title(void *user, const struct oggread *r, const struct oggread_packet *p, uint64_t n)
{
	int64_t *switched = user;
	(void)n;
	if (p->new_link) {
		*switched = r->track.first_pos;
		CHECK_EQ(p->pos, r->track.first_pos - 312);
		CHECK_STR(track_tag(&r->track, "title"), "two");
	} else if (!*switched) {
		CHECK_STR(track_tag(&r->track, "title"), "one");
	}
}

static void test_chained(void)
{
	for (uint32_t serial = 1; serial <= 2; serial++) {
		struct file f = simple_file(20, 17, 1), g = { 0 };
		struct oggwrite w;
		struct track t = opus_track(2, 0);
		int64_t switched = 0;
		CHECK_EQ(track_add_tag(&t, "TITLE", "two", true), ERR_OK);
		/* The same serial number twice, as a file joined with itself, and a granule offset that is of no account there. */
		CHECK_EQ(oggwrite_open(&w, &t, serial, 4800, file_page, &g, NULL), ERR_OK);
		put_packets(&w, -312, 11, 5);
		CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
		for (int i = 2; i < page_count(&g); i++)
			page_set_granule(&g, i, page_granule(&g, i) + 77777);
		file_add(&f, g.bytes, g.n_bytes);
		struct readback b = read_file(&f, serial == 2, chain_title, &switched);
		CHECK_EQ(b.n_links, 2);
		CHECK_EQ(switched, 20 * 960 - 17 - 312);
		CHECK_EQ(b.end_pos, 20 * 960 - 17 - 312 + 11 * 960 - 5 - 312);
		CHECK_EQ(b.n_packets, 31);
		CHECK_EQ(b.n_gaps, 0);
		CHECK(b.in_order && !b.cut);
		if (serial == 2)
			CHECK_EQ(b.n_frames_told, -1);
		oggwrite_release(&w);
		track_release(&t);
		file_free(&f);
		file_free(&g);
	}
}

/* A later link that is refused: what came before it stays, nothing of it is handed out. */
static void test_chained_refused(void)
{
	struct file f = simple_file(20, 17, 1), g = simple_file(20, 0, 2);
	for (int i = 2; i < page_count(&g); i++)
		page_set_granule(&g, i, page_granule(&g, i) - 8);
	file_add(&f, g.bytes, g.n_bytes);
	struct readback b = read_plain(&f);
	CHECK_EQ(b.opened, ERR_OK);
	CHECK_EQ(b.ended, ERR_FORMAT);
	CHECK_EQ(b.n_packets, 20);
	CHECK(strstr(b.reason, "granule"));
	file_free(&f);
	file_free(&g);
}

static void test_multiplexed(void)
{
	struct file f = simple_file(20, 0, 5), g = { 0 };
	size_t length, at;
	/* Another stream: its beginning in front of ours, its pages between ours, even one that says OpusHead later on. */
	page_append(&g, 77, 0, 0, 2, (const uint8_t *)"\x80theora and its header", 22);
	for (int i = 0; i < page_count(&f); i++) {
		at = page_at(&f, i, &length);
		file_add(&g, f.bytes + at, length);
		if (i == 0)
			page_append(&g, 78, 0, 0, 2, (const uint8_t *)"OpusHead\1\1\0\0\0\0\0\0\0\0\0", 19);
		page_append(&g, 77, 1 + (uint32_t)i, 1000 * i, 0, (const uint8_t *)"something", 9);
	}
	struct readback b = read_plain(&g);
	CHECK_EQ(b.opened, ERR_OK);
	CHECK_EQ(b.n_packets, 20);
	CHECK_EQ(b.n_links, 1);
	CHECK_EQ(b.end_pos, 20 * 960 - 312);
	CHECK(!b.cut);
	CHECK(strstr(b.note, "other streams"));
	CHECK_EQ(b.n_frames_told, -1);
	file_free(&f);
	file_free(&g);
}

static void test_not_opus(void)
{
	struct file f = { 0 };
	page_append(&f, 77, 0, 0, 2, (const uint8_t *)"\1vorbis", 7);
	page_append(&f, 77, 1, 0, 0, (const uint8_t *)"\3vorbis", 7);
	CHECK_EQ(read_plain(&f).opened, ERR_AGAIN);
	f.n_bytes = 0;
	file_add(&f, "RIFF....WAVE", 12);
	CHECK_EQ(read_plain(&f).opened, ERR_AGAIN);
	f.n_bytes = 0;
	CHECK_EQ(read_plain(&f).opened, ERR_AGAIN);
	file_free(&f);
}

/* ---- headers that lie ---- */

static void test_bad_heads(void)
{
	static const struct { const char *bytes; unsigned n; enum err e; } heads[] = {
		{ "OpusHead\1\1\0\0\0\0\0\0\0\0\0", 18, ERR_FORMAT },                  /* short */
		{ "OpusHead\x10\1\0\0\0\0\0\0\0\0\0", 19, ERR_VERSION },
		{ "OpusHead\1\0\0\0\0\0\0\0\0\0\0", 19, ERR_FORMAT },                  /* no channel */
		{ "OpusHead\1\3\0\0\0\0\0\0\0\0\0", 19, ERR_FORMAT },                  /* three in family 0 */
		{ "OpusHead\1\2\0\0\0\0\0\0\0\0\1\1\1\0", 22, ERR_FORMAT },             /* table too short */
		{ "OpusHead\1\2\0\0\0\0\0\0\0\0\1\1\1\0\2", 23, ERR_FORMAT },           /* channel 2 of 0…1 */
		{ "OpusHead\1\2\0\0\0\0\0\0\0\0\1\0\0\0\1", 23, ERR_FORMAT },           /* no stream */
		{ "OpusHead\1\2\0\0\0\0\0\0\0\0\1\1\2\0\1", 23, ERR_FORMAT },           /* more coupled than streams */
		{ "OpusHead\1\2\0\0\0\0\0\0\0\0\xFF\xFF\xFF\0\1", 23, ERR_FORMAT },     /* 510 decoders */
		{ "OpusHead\1\1\0\0\0\0\0\0\0\0\3\1\0\0\0", 23, ERR_CODEC },
	};
	for (unsigned i = 0; i < ARRAY_LEN(heads); i++) {
		struct file f = { 0 };
		page_append(&f, 1, 0, 0, 2, (const uint8_t *)heads[i].bytes, heads[i].n);
		struct readback b = read_plain(&f);
		CHECK_EQ(b.opened, heads[i].e);
		CHECK(strlen(b.reason) > 5);
		file_free(&f);
	}
}

static void add_comment(struct file *f, const void *bytes, uint32_t n)
{
	uint8_t length[4];
	put_le32(length, n);
	file_add(f, length, 4);
	file_add(f, bytes, n);
}

static void test_tags(void)
{
	struct file f = { 0 };
	struct track t = { 0 };
	struct opustags_report report;
	uint8_t *picture = malloc(300000);
	memset(picture, 'A', 300000);
	memcpy(picture, "METADATA_BLOCK_PICTURE=", 23);
	file_add(&f, "OpusTags", 8);
	add_comment(&f, "vendor", 6);
	file_add(&f, "\x08\0\0\0", 4);
	add_comment(&f, "TITLE=a=b", 9);
	add_comment(&f, picture, 300000);
	add_comment(&f, "no key", 6);
	add_comment(&f, "=value", 6);
	add_comment(&f, "NUL=a\0b", 7);
	add_comment(&f, "BAD=a\xFF" "b\xC3", 8);
	add_comment(&f, "EMPTY=", 6);
	add_comment(&f, "LAST=z", 6);
	CHECK_EQ(opustags_unpack(&t, f.bytes, f.n_bytes, &report), ERR_OK);
	CHECK_EQ(report.n_kept, 4);
	CHECK_EQ(report.n_dropped, 4);
	CHECK(!report.malformed);
	CHECK_STR(track_tag(&t, "title"), "a=b");
	CHECK_STR(track_tag(&t, "BAD"), "a\xEF\xBF\xBD" "b\xEF\xBF\xBD");
	CHECK_STR(track_tag(&t, "EMPTY"), "");
	CHECK_STR(track_tag(&t, "LAST"), "z");

	/* Cut anywhere, and with counts and lengths that reach beyond: what can be read is kept, nothing else happens. */
	for (size_t n = 8; n < f.n_bytes; n += n < 120 ? 1 : 9973) {
		uint8_t *copy = malloc(n);
		memcpy(copy, f.bytes, n);
		CHECK_EQ(opustags_unpack(&t, copy, n, &report), ERR_OK);
		CHECK(report.malformed);
		free(copy);
	}
	for (size_t at = 8; at < 40; at++) {
		uint8_t *copy = malloc(60);
		memcpy(copy, f.bytes, 60);
		put_le32(copy + at, 0xFFFFFFFF);
		CHECK_EQ(opustags_unpack(&t, copy, 60, &report), ERR_OK);
		free(copy);
	}
	free(picture);
	track_release(&t);
	file_free(&f);
}

/* A tags packet of more than the reader keeps does not stop the audio. */
static void test_huge_tags(void)
{
	struct file f = simple_file(20, 0, 1), g = { 0 };
	size_t length, at = page_at(&f, 0, &length);
	file_add(&g, f.bytes + at, length);

	uint8_t head[27 + 255] = "OggS";
	memset(head + 27, 255, 255);
	head[26] = 255;
	put_le32(head + 14, 1);
	uint8_t *body = calloc(1, 255 * 255);
	memcpy(body, "OpusTags\0\0\0\0\xFF\xFF\xFF\0\7\0\0\0TITLE=x", 27);
	unsigned n_pages = 3 * OGGREAD_MAX_PACKET_BYTES / (255 * 255);
	for (unsigned i = 0; i < n_pages; i++) {
		head[5] = i ? 1 : 0;
		head[27 + 254] = i + 1 < n_pages ? 255 : 10;
		unsigned n = 254 * 255 + head[27 + 254];
		put_le64(head + 6, i + 1 < n_pages ? UINT64_MAX : 0);
		put_le32(head + 18, 1 + i);
		ogg_page page = { .header = head, .header_len = sizeof(head), .body = body, .body_len = n };
		ogg_page_checksum_set(&page);
		file_add(&g, head, sizeof(head));
		file_add(&g, body, n);
		memset(body, 'y', 30);
	}
	for (int i = 2; i < page_count(&f); i++) {
		put_le32(f.bytes + page_at(&f, i, &length) + 18, n_pages + (uint32_t)i - 1);
		page_sign(&f, i);
	}
	at = page_at(&f, 2, &length);
	file_add(&g, f.bytes + at, f.n_bytes - at);
	struct readback b = read_plain(&g);
	CHECK_EQ(b.n_packets, 20);
	CHECK_EQ(b.end_pos, 20 * 960 - 312);
	CHECK(!b.cut);
	CHECK(strstr(b.note, "2 MiB"));
	free(body);
	file_free(&f);
	file_free(&g);
}

static void test_replaygain(void)
{
	static const struct { const char *text; bool ok; int q8; } texts[] = {
		{ "-8.58 dB", true, -3476 }, { "+0.00 dB", true, -1280 }, { "5", true, 0 }, { "-200 dB", true, -32768 },
		{ "6.25dB", true, 320 }, { "", false, 0 }, { "dB", false, 0 }, { "-8,58 dB", false, 0 }, { "nan", false, 0 },
	};
	int16_t r128;
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		CHECK_EQ(opustags_r128_of_replaygain(texts[i].text, 0, &r128), texts[i].ok);
		if (texts[i].ok)
			CHECK_EQ(r128, texts[i].q8);
	}
	CHECK(opustags_r128_of_replaygain("-8.58 dB", -1000, &r128));
	CHECK_EQ(r128, -2476); /* the header's gain is applied already */

	struct track t = opus_track(1, 0), back = { 0 };
	uint8_t *packet;
	size_t n_bytes;
	struct opustags_report report;
	CHECK_EQ(track_add_tag(&t, "replaygain_track_gain", "-8.58 dB", false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "REPLAYGAIN_ALBUM_GAIN", "-7.00 dB", false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "REPLAYGAIN_TRACK_PEAK", "0.9", false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "R128_ALBUM_GAIN", "-2000", false), ERR_OK);
	CHECK_EQ(track_add_tag(&t, "ENCODER", "somebody", false), ERR_OK);
	CHECK_EQ(opustags_pack(&t, "vendor", 0, &packet, &n_bytes), ERR_OK);
	CHECK_EQ(opustags_unpack(&back, packet, n_bytes, &report), ERR_OK);
	CHECK_EQ(report.n_kept, 3);
	CHECK_STR(track_tag(&back, "R128_TRACK_GAIN"), "-3476");
	CHECK_STR(track_tag(&back, "R128_ALBUM_GAIN"), "-2000");
	CHECK_STR(track_tag(&back, "ENCODER"), "somebody");
	free(packet);
	track_release(&t);
	track_release(&back);
}

/* ---- memory and noise ---- */

static void note_allocs(void *user, const struct oggread *r, const struct oggread_packet *p, uint64_t n)
{
	uint64_t *allocs = user;
	(void)r, (void)p;
	if (n == 50)
		allocs[0] = heap_allocs();
	allocs[1] = heap_allocs();
}

static enum err file_nowhere(void *user, const uint8_t *header, size_t header_bytes, const uint8_t *body, size_t body_bytes)
{
	(void)header, (void)body;
	*(size_t *)user += header_bytes + body_bytes;
	return ERR_OK;
}

static void test_allocates_nothing(void)
{
	if (!heap_is_counted()) {
		check_skip("the sanitizer's allocator is not counted");
		return;
	}
	struct file f = simple_file(5100, 0, 1);
	uint64_t allocs[2] = { 0 };
	struct readback b = read_file(&f, false, note_allocs, allocs);
	CHECK_EQ(b.n_packets, 5100);
	CHECK(allocs[0] > 0);
	CHECK_EQ(allocs[0], allocs[1]);
	file_free(&f);

	struct oggwrite w;
	struct track t = opus_track(2, 0);
	size_t written = 0;
	CHECK_EQ(oggwrite_open(&w, &t, 1, 0, file_nowhere, &written, NULL), ERR_OK);
	put_packets(&w, 0, 50, 0);
	uint64_t before = heap_allocs();
	put_packets(&w, 50 * 960, 5000, 0);
	CHECK_EQ(heap_allocs(), before);
	/* The largest there are, page after page. */
	static uint8_t large[7650];
	for (int i = 0; i < 200; i++) {
		struct packet p = opus_packet((5050 + i) * 960, 960, large, sizeof(large), toc_20ms);
		CHECK_EQ(oggwrite_packet(&w, &p, NULL), ERR_OK);
	}
	CHECK_EQ(heap_allocs(), before);
	CHECK_EQ(oggwrite_finish(&w, NULL), ERR_OK);
	CHECK(written > 200 * sizeof(large));
	oggwrite_release(&w);
}

/* Bytes flipped, cut out and put in, with and without mended CRCs: it ends, and never hands out more than there is. */
static void test_noise(void)
{
	check_seed(7845);
	for (int round = 0; round < 400; round++) {
		struct file f = simple_file(30, 17, 1), g = simple_file(12, 0, 2);
		file_add(&f, g.bytes, g.n_bytes);
		int n = 1 + (int)check_rand_below(4);
		for (int i = 0; i < n; i++) {
			size_t at = (size_t)check_rand_below(f.n_bytes - 40), length;
			int page = (int)check_rand_below(12);
			switch (check_rand_below(4)) {
			case 0:
				f.bytes[at] ^= (uint8_t)(1u << check_rand_below(8));
				break;
			case 1:
				memmove(f.bytes + at, f.bytes + at + 30, f.n_bytes - at - 30);
				f.n_bytes -= 30;
				break;
			case 2:
				file_insert(&f, at, "OggS\0\2abcdefgh", 14);
				break;
			default:
				at = page_at(&f, page, &length);
				if (at < f.n_bytes && length > 40 && at + length <= f.n_bytes) {
					f.bytes[at + 4 + check_rand_below(36)] ^= (uint8_t)(1u << check_rand_below(8));
					size_t again_length;
					if (page_at(&f, page, &again_length) == at && at + again_length <= f.n_bytes)
						page_sign(&f, page);
				}
			}
		}
		struct readback b = read_file(&f, round % 16 == 0, NULL, NULL);
		CHECK(b.n_packets <= 60);
		CHECK(b.opened != ERR_OK || b.ended == ERR_END || b.ended == ERR_FORMAT || b.ended == ERR_VERSION || b.ended == ERR_CODEC);
		file_free(&f);
		file_free(&g);
	}
}

int main(void)
{
	CHECK_RUN(test_round_trip);
	CHECK_RUN(test_header_fields);
	CHECK_RUN(test_pages);
	CHECK_RUN(test_pages_long_tags_and_flush);
	CHECK_RUN(test_empty);
	CHECK_RUN(test_nothing_kept);
	CHECK_RUN(test_one_frame);
	CHECK_RUN(test_headers_only);
	CHECK_RUN(test_preskip_limit);
	CHECK_RUN(test_hole_filled);
	CHECK_RUN(test_hole_is_cheap);
	CHECK_RUN(test_hole_remainder);
	CHECK_RUN(test_hole_at_start_and_end);
	CHECK_RUN(test_no_preskip);
	CHECK_RUN(test_overlap_dropped);
	CHECK_RUN(test_end_at);
	CHECK_RUN(test_every_end_trim);
	CHECK_RUN(test_granules_that_fall_back);
	CHECK_RUN(test_write_failure_latches);
	CHECK_RUN(test_joined_late);
	CHECK_RUN(test_impossible_first_granule);
	CHECK_RUN(test_damaged_page);
	CHECK_RUN(test_damaged_first_page);
	CHECK_RUN(test_missing_page_before_end);
	CHECK_RUN(test_tags_page_missing);
	CHECK_RUN(test_garbage);
	CHECK_RUN(test_truncated);
	CHECK_RUN(test_promise_too_much);
	CHECK_RUN(test_empty_last_packet);
	CHECK_RUN(test_unknown_granule);
	CHECK_RUN(test_wild_granules);
	CHECK_RUN(test_jump_without_loss);
	CHECK_RUN(test_bad_packets);
	CHECK_RUN(test_chained);
	CHECK_RUN(test_chained_refused);
	CHECK_RUN(test_multiplexed);
	CHECK_RUN(test_not_opus);
	CHECK_RUN(test_bad_heads);
	CHECK_RUN(test_tags);
	CHECK_RUN(test_huge_tags);
	CHECK_RUN(test_replaygain);
	CHECK_RUN(test_allocates_nothing);
	CHECK_RUN(test_noise);
	return check_end();
}
