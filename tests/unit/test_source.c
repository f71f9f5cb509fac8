/* Sources: every header the parsers must understand, as a file and dripped through a pipe; generators; shapes; feeding. */
#include "base/bytes.h"
#include "check.h"
#include "media/chanmap.h"
#include "media/genread.h"
#include "media/reshape.h"
#include "media/source.h"
#include "tool/feed.h"
#include "tool/input.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* ---- making files ---- */

struct blob {
	uint8_t bytes[1 << 17];
	size_t n;
};

static void add(struct blob *b, const void *p, size_t n)
{
	memcpy(b->bytes + b->n, p, n);
	b->n += n;
}

static void add_text(struct blob *b, const char *text)
{
	add(b, text, strlen(text));
}

static void add16(struct blob *b, uint16_t v)
{
	put_le16(b->bytes + b->n, v);
	b->n += 2;
}

static void add32(struct blob *b, uint32_t v)
{
	put_le32(b->bytes + b->n, v);
	b->n += 4;
}

static void add64(struct blob *b, uint64_t v)
{
	put_le64(b->bytes + b->n, v);
	b->n += 8;
}

static void add16be(struct blob *b, uint16_t v)
{
	put_be16(b->bytes + b->n, v);
	b->n += 2;
}

static void add32be(struct blob *b, uint32_t v)
{
	put_be32(b->bytes + b->n, v);
	b->n += 4;
}

static void add64be(struct blob *b, uint64_t v)
{
	put_be64(b->bytes + b->n, v);
	b->n += 8;
}

static uint32_t value_at(size_t i)
{
	return (uint32_t)(i * 2654435761u);
}

/* n samples: the bytes of a numbered pattern, which no two places share for long. */
static void add_samples(struct blob *b, size_t n, unsigned bytes, bool big_endian)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t p[4];
		put_le32(p, value_at(i));
		for (unsigned k = 0; k < bytes; k++)
			b->bytes[b->n++] = p[big_endian ? 3 - k : 4 - bytes + k];
	}
}

static void check_samples(const uint8_t *got, size_t n, unsigned bytes)
{
	static struct blob want;
	want.n = 0;
	add_samples(&want, n, bytes, false);
	CHECK(memcmp(got, want.bytes, want.n) == 0);
}

struct wav_head {
	const char *form;      /* NULL: RIFF */
	uint32_t riff_bytes, data_bytes;
	uint16_t code, channels, bits, align;
	uint32_t rate_hz;
	bool extensible;
	uint16_t valid;
	uint32_t mask;
};

static void add_fmt(struct blob *b, const struct wav_head *h)
{
	uint16_t align = h->align ? h->align : (uint16_t)(h->channels * ((h->bits + 7) / 8));

	add_text(b, "fmt ");
	add32(b, h->extensible ? 40 : 16);
	add16(b, h->extensible ? 0xFFFE : h->code);
	add16(b, h->channels);
	add32(b, h->rate_hz);
	add32(b, h->rate_hz * align / 2); /* wrong on purpose: nobody may believe it */
	add16(b, align);
	add16(b, h->bits);
	if (h->extensible) {
		add16(b, 22);
		add16(b, h->valid);
		add32(b, h->mask);
		add16(b, h->code);
		add(b, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);
	}
}

static void begin_wav(struct blob *b, const struct wav_head *h)
{
	b->n = 0;
	add_text(b, h->form ? h->form : "RIFF");
	add32(b, h->riff_bytes);
	add_text(b, "WAVE");
	add_fmt(b, h);
	add_text(b, "data");
	add32(b, h->data_bytes);
}

/* ---- reading them ---- */

struct got {
	uint8_t frames[1 << 18];
	size_t n_frames, n_blocks;
	uint64_t gap_frames;
	enum err opened, ended;
	struct source s;
	struct err_why why;
};

struct drip {
	int fd;
	size_t step;
	const struct blob *b;
};

static void *drip_run(void *user)
{
	struct drip *d = user;

	for (size_t at = 0; at < d->b->n; at += d->step) {
		size_t n = d->b->n - at < d->step ? d->b->n - at : d->step;
		if (write(d->fd, d->b->bytes + at, n) < 0)
			break;
	}
	close(d->fd);
	return NULL;
}

static int file_of(const struct blob *b)
{
	char path[] = "/tmp/weir-test-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	if (write(fd, b->bytes, b->n) != (ssize_t)b->n)
		return -1;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void read_all(struct got *g, size_t max_frames)
{
	struct source_block b;

	while ((g->ended = source_read(&g->s, g->frames + g->n_frames * g->s.track.frame_bytes, max_frames, &b)) == ERR_OK) {
		CHECK(b.n_frames <= max_frames);
		g->n_frames += b.n_frames;
		g->gap_frames += b.gap_frames;
		g->n_blocks++;
	}
}

/* step 0: a file; else a pipe fed so many bytes at a time. */
static void take(struct got *g, const struct blob *b, size_t step, const struct source_args *more)
{
	struct source_args args = { .duration_frames = -1 };
	struct drip d = { .step = step, .b = b };
	pthread_t thread;
	int fds[2];

	memset(g, 0, sizeof(*g));
	if (more)
		args = *more;
	if (step) {
		CHECK(pipe(fds) == 0);
		d.fd = fds[1];
		args.stdin_fd = fds[0];
		pthread_create(&thread, NULL, drip_run, &d);
	} else {
		args.stdin_fd = file_of(b);
	}
	g->opened = source_open(&g->s, more ? "raw:-" : "-", &args, &g->why);
	if (!g->opened)
		read_all(g, 257);
	close(args.stdin_fd);
	if (step)
		pthread_join(thread, NULL);
}

static void drop(struct got *g)
{
	source_release(&g->s);
}

static const size_t steps[] = { 0, 1, 3, 4096, 65537 };

static struct blob blob;
static struct got got;

/* A sound file of n frames with these samples, whichever way it comes. */
static void expect(size_t n_frames, unsigned channels, enum sample sample, uint32_t rate_hz)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		take(&got, &blob, steps[i], NULL);
		CHECK_EQ(got.opened, ERR_OK);
		if (got.opened) {
			printf("# step %zu: %s\n", steps[i], got.why.reason);
			continue;
		}
		CHECK_EQ(got.ended, ERR_END);
		CHECK_EQ(got.n_frames, n_frames);
		CHECK_EQ(got.s.track.channels, channels);
		CHECK_EQ(got.s.track.sample, sample);
		CHECK_EQ(track_rate_hz(&got.s.track), rate_hz);
		check_samples(got.frames, n_frames * channels, track_sample_bytes(sample));
		CHECK(!got.s.cut);
		CHECK_STR(got.s.warning, "");
		drop(&got);
	}
}

/* ---- WAV ---- */

static void test_wav_formats(void)
{
	static const struct {
		uint16_t code, bits;
		enum sample sample;
	} formats[] = { { 1, 16, SAMPLE_S16 }, { 1, 24, SAMPLE_S24 }, { 1, 32, SAMPLE_S32 }, { 3, 32, SAMPLE_F32 } };

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		for (unsigned channels = 1; channels <= 32; channels += channels < 3 ? 1 : 29) {
			unsigned bytes = formats[i].bits / 8u;
			struct wav_head h = {
				.data_bytes = 501 * channels * bytes, .code = formats[i].code, .bits = formats[i].bits,
				.channels = (uint16_t)channels, .rate_hz = 44100,
			};
			begin_wav(&blob, &h);
			add_samples(&blob, 501 * channels, bytes, false);
			expect(501, channels, formats[i].sample, 44100);
		}
	}
}

/* Sizes that programs write which do not know: all of it is read, nothing is called damaged, and -v hears why. */
static void test_wav_unknown_sizes(void)
{
	static const struct {
		uint32_t riff, data;
	} sizes[] = {
		{ 0xFFFFFFFF, 0xFFFFFFFF }, { 0x7FFFF024, 0x7FFFF000 }, { 0x7FFFFFFF, 0x7FFFFFFF }, { 0x7FFFFFFF, 0x7FFFFFDB }, { 0, 0 },
		{ 36, 0 }, { 0x80000024, 0x80000000 }, { 0xFFFFFFFF, 0xFFFFFFDB }, { 0x7F000024, 0x7F000000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct wav_head h = { .riff_bytes = sizes[i].riff, .data_bytes = sizes[i].data, .code = 1, .bits = 16, .channels = 2, .rate_hz = 48000 };
		begin_wav(&blob, &h);
		add_samples(&blob, 2 * 4801, 2, false);
		expect(4801, 2, SAMPLE_S16, 48000);
		take(&got, &blob, 0, NULL);
		CHECK(strstr(got.s.note, "to the end") != NULL);
		drop(&got);
	}
}

static void test_wav_header_only(void)
{
	struct wav_head h = { .riff_bytes = 36, .code = 1, .bits = 16, .channels = 2, .rate_hz = 44100 };

	begin_wav(&blob, &h);
	CHECK_EQ(blob.n, 44);
	expect(0, 2, SAMPLE_S16, 44100);
	/* No audio, but tags behind it: they are not audio. */
	add_text(&blob, "LIST");
	add32(&blob, 12);
	add_text(&blob, "INFOINAM");
	add32(&blob, 0);
	expect(0, 2, SAMPLE_S16, 44100);
}

static void test_wav_chunk_order(void)
{
	struct wav_head h = { .code = 1, .bits = 24, .channels = 1, .rate_hz = 48000 };

	blob.n = 0;
	add_text(&blob, "RIFF");
	add32(&blob, 0);
	add_text(&blob, "WAVEJUNK");
	add32(&blob, 27);
	add(&blob, "xxxxxxxxxxxxxxxxxxxxxxxxxxxx", 28);
	add_fmt(&blob, &h);
	add_text(&blob, "bext");
	add32(&blob, 602);
	add_text(&blob, "a take in the hall");
	memset(blob.bytes + blob.n, 0, 602 - 18);
	blob.n += 602 - 18;
	add_text(&blob, "odd ");
	add32(&blob, 3);
	add(&blob, "abc", 4);
	add_text(&blob, "data");
	add32(&blob, 303);
	add_samples(&blob, 101, 3, false);
	add(&blob, "", 1);
	add_text(&blob, "LIST");
	add32(&blob, 4 + 8 + 4 + 8 + 4);
	add_text(&blob, "INFOINAM");
	add32(&blob, 4);
	add(&blob, "odd", 4);
	add_text(&blob, "IART");
	add32(&blob, 3);
	add(&blob, "me\0", 4);
	expect(101, 1, SAMPLE_S24, 48000);

	take(&got, &blob, 0, NULL);
	CHECK_STR(track_tag(&got.s.track, "TITLE"), "odd");
	CHECK_STR(track_tag(&got.s.track, "ARTIST"), "me");
	CHECK_STR(track_tag(&got.s.track, "DESCRIPTION"), "a take in the hall");
	drop(&got);
}

static void test_wav_masks(void)
{
	struct wav_head h = { .code = 1, .bits = 16, .valid = 16, .channels = 4, .rate_hz = 48000, .extensible = true, .mask = 0x603 };

	h.data_bytes = 100 * 8;
	begin_wav(&blob, &h);
	add_samples(&blob, 400, 2, false);
	expect(100, 4, SAMPLE_S16, 48000);
	take(&got, &blob, 0, NULL);
	CHECK_EQ(got.s.track.layout, TRACK_LAYOUT_WAVE);
	CHECK_EQ(got.s.track.wave_mask, 0x603);
	drop(&got);

	/* A mask of 0 says that there are no places; one that names too few says nothing. */
	h.mask = 0;
	begin_wav(&blob, &h);
	add_samples(&blob, 400, 2, false);
	take(&got, &blob, 0, NULL);
	CHECK_EQ(got.s.track.layout, TRACK_LAYOUT_DISCRETE);
	drop(&got);
	h.mask = 0x3;
	begin_wav(&blob, &h);
	add_samples(&blob, 400, 2, false);
	take(&got, &blob, 0, NULL);
	CHECK_EQ(got.s.track.layout, TRACK_LAYOUT_DISCRETE);
	CHECK(strstr(got.s.note, "mask 0x3") != NULL);
	drop(&got);

	/* No mask at all: the usual places. */
	h.extensible = false;
	begin_wav(&blob, &h);
	add_samples(&blob, 400, 2, false);
	take(&got, &blob, 0, NULL);
	CHECK_EQ(got.s.track.wave_mask, 0x33);
	drop(&got);
}

static void test_wav_containers(void)
{
	/* 20 bits in 24, 24 in 32, 12 in 16. */
	static const struct {
		uint16_t bits, valid, bytes;
		enum sample sample;
	} cases[] = { { 24, 20, 3, SAMPLE_S24 }, { 32, 24, 4, SAMPLE_S32 }, { 16, 12, 2, SAMPLE_S16 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wav_head h = {
			.code = 1, .bits = cases[i].bits, .valid = cases[i].valid, .channels = 1, .rate_hz = 48000, .extensible = true, .mask = 4,
			.data_bytes = 1000u * cases[i].bytes,
		};
		begin_wav(&blob, &h);
		add_samples(&blob, 1000, cases[i].bytes, false);
		expect(1000, 1, cases[i].sample, 48000);
		take(&got, &blob, 0, NULL);
		CHECK_EQ(got.s.track.valid_bits, cases[i].valid);
		drop(&got);
	}
	/* 24 bits that a frame of 8 bytes makes 32. */
	struct wav_head h = { .code = 1, .bits = 24, .align = 8, .channels = 2, .rate_hz = 48000, .data_bytes = 800 };
	begin_wav(&blob, &h);
	add_samples(&blob, 200, 4, false);
	expect(100, 2, SAMPLE_S32, 48000);
}

static void test_wav_small_formats(void)
{
	struct wav_head h = { .code = 1, .bits = 8, .channels = 1, .rate_hz = 8000, .data_bytes = 256 };

	for (int law = 0; law < 3; law++) {
		h.code = law == 0 ? 1 : law == 1 ? 6 : 7;
		begin_wav(&blob, &h);
		for (int i = 0; i < 256; i++)
			blob.bytes[blob.n++] = (uint8_t)i;
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			take(&got, &blob, steps[i], NULL);
			CHECK_EQ(got.n_frames, 256);
			CHECK_EQ(got.s.track.sample, SAMPLE_S16);
			const int16_t *x = (const int16_t *)(void *)got.frames;
			if (law == 0) {
				CHECK_EQ(x[0], -32768);
				CHECK_EQ(x[128], 0);
				CHECK_EQ(x[255], 32512);
			} else if (law == 1) {
				CHECK_EQ(x[0xD5], 8); /* ITU-T G.711: the smallest positive step of the A-law, at 16 bits */
				CHECK_EQ(x[0xAA], 32256);
			} else {
				CHECK_EQ(x[0xFF], 0);
				CHECK_EQ(x[0x80], 32124);
				CHECK_EQ(x[0x00], -32124);
			}
			drop(&got);
		}
	}

	/* Doubles become floats, and -v hears it. */
	h = (struct wav_head){ .code = 3, .bits = 64, .channels = 1, .rate_hz = 48000, .data_bytes = 24 };
	begin_wav(&blob, &h);
	double d[3] = { 0.5, -2.0, 1e-9 };
	add(&blob, d, sizeof(d));
	take(&got, &blob, 1, NULL);
	CHECK_EQ(got.n_frames, 3);
	CHECK_EQ(got.s.track.sample, SAMPLE_F32);
	const float *f = (const float *)(void *)got.frames;
	CHECK(f[0] == 0.5f && f[1] == -2.0f && f[2] == 1e-9f);
	CHECK(strstr(got.s.note, "32-bit floats") != NULL);
	drop(&got);
}

static void test_wav_damage(void)
{
	struct wav_head h = { .code = 1, .bits = 24, .channels = 2, .rate_hz = 48000, .data_bytes = 604 };

	/* 100 frames and 4 bytes more. */
	begin_wav(&blob, &h);
	add_samples(&blob, 200, 3, false);
	add(&blob, "\1\2\3\4", 4);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		take(&got, &blob, steps[i], NULL);
		CHECK_EQ(got.n_frames, 100);
		CHECK(got.s.cut);
		CHECK_EQ(got.s.damaged_bytes, 4);
		CHECK(strstr(got.s.warning, "not whole") != NULL);
		drop(&got);
	}
	/* A size that is meant and is not there. */
	h.data_bytes = 60000;
	begin_wav(&blob, &h);
	add_samples(&blob, 200, 3, false);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		take(&got, &blob, steps[i], NULL);
		CHECK_EQ(got.n_frames, 100);
		CHECK(got.s.cut);
		CHECK_EQ(got.s.lost_frames, 9900);
		CHECK(strstr(got.s.warning, "cut short") != NULL);
		drop(&got);
	}
	/* A byte of the last frame is missing: so is the frame, and it is not promised where the size of the file can be known. */
	for (size_t missing = 1; missing <= 7; missing++) {
		h.data_bytes = 600;
		begin_wav(&blob, &h);
		add_samples(&blob, 200, 3, false);
		blob.n -= missing;
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			take(&got, &blob, steps[i], NULL);
			CHECK_EQ(got.s.n_frames, steps[i] ? 100 : missing > 6 ? 98 : 99);
			CHECK_EQ(got.n_frames, missing > 6 ? 98 : 99);
			CHECK(got.s.cut);
			CHECK_EQ(got.s.lost_frames, missing > 6 ? 2 : 1);
			CHECK_EQ(got.s.damaged_bytes, missing % 6 ? 6 - missing % 6 : 0);
			drop(&got);
		}
	}
	/* Of a size that nobody knows: to the last whole frame. */
	h.data_bytes = 0xFFFFFFFF;
	begin_wav(&blob, &h);
	add_samples(&blob, 200, 3, false);
	blob.n--;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		take(&got, &blob, steps[i], NULL);
		CHECK_EQ(got.s.n_frames, steps[i] ? -1 : 99);
		CHECK_EQ(got.n_frames, 99);
		drop(&got);
	}
	/* Padding that was counted as audio is no damage. */
	h = (struct wav_head){ .code = 1, .bits = 24, .channels = 1, .rate_hz = 48000, .data_bytes = 304 };
	begin_wav(&blob, &h);
	add_samples(&blob, 101, 3, false);
	add(&blob, "", 1);
	expect(101, 1, SAMPLE_S24, 48000);
}

static void test_wav_impossible(void)
{
	static const struct {
		struct wav_head h;
		const char *word;
	} cases[] = {
		{ { .code = 1, .bits = 16, .channels = 2, .rate_hz = 0 }, "sample rate 0" },
		{ { .code = 1, .bits = 16, .channels = 2, .rate_hz = 99999999 }, "sample rate 99999999" },
		{ { .code = 1, .bits = 16, .channels = 0, .rate_hz = 48000 }, "0 channels" },
		{ { .code = 1, .bits = 16, .channels = 1025, .rate_hz = 48000 }, "1025 channels" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin_wav(&blob, &cases[i].h);
		add_samples(&blob, 100, 2, false);
		for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
			take(&got, &blob, steps[k], NULL);
			CHECK_EQ(got.opened, ERR_LIMIT);
			CHECK(strstr(got.why.reason, cases[i].word) != NULL);
		}
	}
	/* Cut in the header, at every byte: an error in words, never a crash. */
	struct wav_head h = { .code = 1, .bits = 16, .channels = 2, .rate_hz = 48000, .data_bytes = 400 };
	begin_wav(&blob, &h);
	for (size_t n = 1; n < 44; n++) {
		struct blob cut = blob;
		cut.n = n;
		take(&got, &cut, 0, NULL);
		CHECK(got.opened != ERR_OK);
		CHECK(got.why.reason[0]);
	}
}

static void test_wav_wrapped_size(void)
{
	/* 4 GiB and 100 frames more in a sparse file; the header's 32 bits hold the 100 frames only. */
	struct wav_head h = { .code = 1, .bits = 16, .channels = 2, .rate_hz = 48000, .data_bytes = 400 };
	char path[] = "/tmp/weir-test-XXXXXX";
	int fd = mkstemp(path);
	struct source s;
	struct source_args args = { .duration_frames = -1, .stdin_fd = fd };
	struct err_why why;

	unlink(path);
	begin_wav(&blob, &h);
	CHECK(write(fd, blob.bytes, blob.n) == (ssize_t)blob.n);
	if (ftruncate(fd, 44 + ((off_t)1 << 32) + 400)) {
		printf("# no room for sparse files\n");
		close(fd);
		return;
	}
	lseek(fd, 0, SEEK_SET);
	CHECK_EQ(source_open(&s, "-", &args, &why), ERR_OK);
	CHECK_EQ(s.n_frames, ((int64_t)1 << 30) + 100);
	source_release(&s);
	close(fd);
}

static void test_rifx_rf64_w64(void)
{
	/* RIFX: all of it big-endian. */
	blob.n = 0;
	add_text(&blob, "RIFX");
	add32be(&blob, 36 + 400);
	add_text(&blob, "WAVEfmt ");
	add32be(&blob, 16);
	add16be(&blob, 1);
	add16be(&blob, 2);
	add32be(&blob, 32000);
	add32be(&blob, 0);
	add16be(&blob, 4);
	add16be(&blob, 16);
	add_text(&blob, "data");
	add32be(&blob, 400);
	add_samples(&blob, 200, 2, true);
	expect(100, 2, SAMPLE_S16, 32000);

	/* RF64: sizes in ds64 only; then sizes nobody knew. */
	for (int k = 0; k < 3; k++) {
		struct wav_head h = { .code = 1, .bits = 24, .channels = 2, .rate_hz = 48000 };
		blob.n = 0;
		add_text(&blob, k == 1 ? "BW64" : "RF64");
		add32(&blob, 0xFFFFFFFF);
		add_text(&blob, "WAVEds64");
		add32(&blob, 28);
		add64(&blob, 0);
		add64(&blob, k == 2 ? UINT64_MAX : 1200 * 6);
		add64(&blob, 1200);
		add32(&blob, 0);
		add_fmt(&blob, &h);
		add_text(&blob, "data");
		add32(&blob, 0xFFFFFFFF);
		add_samples(&blob, 2400, 3, false);
		expect(1200, 2, SAMPLE_S24, 48000);
	}

	/* Wave64: 1001 mono frames of 3 bytes are padded to a multiple of 8, which is no frame. */
	static const uint8_t riff[] = "riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\x00\x00";
	static const uint8_t tail[] = "\xF3\xAC\xD3\x11\x8C\xD1\x00\xC0\x4F\x8E\xDB\x8A";
	for (int k = 0; k < 2; k++) {
		blob.n = 0;
		add(&blob, riff, 16);
		add64(&blob, 0);
		add_text(&blob, "wave");
		add(&blob, tail, 12);
		add_text(&blob, "fmt ");
		add(&blob, tail, 12);
		add64(&blob, 24 + 16);
		add16(&blob, 1);
		add16(&blob, 1);
		add32(&blob, 48000);
		add32(&blob, 144000);
		add16(&blob, 3);
		add16(&blob, 24);
		add_text(&blob, "data");
		add(&blob, tail, 12);
		add64(&blob, k ? (uint64_t)INT64_MAX : 24 + 3003);
		add_samples(&blob, 1001, 3, false);
		if (!k)
			add(&blob, "\0\0\0\0\0", 5);
		expect(1001, 1, SAMPLE_S24, 48000);
	}
}

/* ---- the others ---- */

static void begin_caf(struct blob *b, uint32_t flags, uint32_t channels, uint32_t bits, uint32_t frame_bytes)
{
	double rate = 48000;
	uint64_t rate_bits;

	memcpy(&rate_bits, &rate, 8);
	b->n = 0;
	add_text(b, "caff");
	add32be(b, 0x00010000);
	add_text(b, "desc");
	add64be(b, 32);
	add64be(b, rate_bits);
	add_text(b, "lpcm");
	add32be(b, flags);
	add32be(b, frame_bytes);
	add32be(b, 1);
	add32be(b, channels);
	add32be(b, bits);
}

static void test_caf(void)
{
	/* Big- and little-endian; a size, and −1 for none. */
	for (uint32_t k = 0; k < 4; k++) {
		begin_caf(&blob, k & 1 ? 2 : 0, 2, 16, 4);
		add_text(&blob, "info");
		add64be(&blob, 4 + 6 + 4);
		add32be(&blob, 1);
		add(&blob, "title", 6);
		add(&blob, "sea", 4);
		add_text(&blob, "data");
		add64be(&blob, k & 2 ? UINT64_MAX : 4 + 4000);
		add32be(&blob, 0);
		add_samples(&blob, 2000, 2, !(k & 1));
		expect(1000, 2, SAMPLE_S16, 48000);
		take(&got, &blob, 1, NULL);
		CHECK_STR(track_tag(&got.s.track, "TITLE"), "sea");
		drop(&got);
	}
}

/* A layout in another order is moved to that of the mask. */
static void test_caf_order(void)
{
	begin_caf(&blob, 2, 6, 16, 12);
	add_text(&blob, "chan");
	add64be(&blob, 12);
	add32be(&blob, 124u << 16 | 6); /* C L R Ls Rs LFE */
	add32be(&blob, 0);
	add32be(&blob, 0);
	add_text(&blob, "data");
	add64be(&blob, 4 + 12);
	add32be(&blob, 0);
	for (int i = 0; i < 6; i++)
		add16(&blob, (uint16_t)(100 + i));
	take(&got, &blob, 0, NULL);
	static const int16_t want[6] = { 101, 102, 100, 105, 103, 104 };
	CHECK_EQ(got.n_frames, 1);
	CHECK(memcmp(got.frames, want, sizeof(want)) == 0);
	CHECK_EQ(got.s.track.wave_mask, 0x3F);
	drop(&got);
}

static void test_au(void)
{
	for (int k = 0; k < 2; k++) {
		blob.n = 0;
		add_text(&blob, ".snd");
		add32be(&blob, 28);
		add32be(&blob, k ? 0xFFFFFFFF : 4000);
		add32be(&blob, 3);
		add32be(&blob, 44100);
		add32be(&blob, 2);
		add(&blob, "hi\0\0", 4);
		add_samples(&blob, 2000, 2, true);
		expect(1000, 2, SAMPLE_S16, 44100);
		take(&got, &blob, 3, NULL);
		CHECK_STR(track_tag(&got.s.track, "COMMENT"), "hi");
		drop(&got);
	}
}

static void add_comm(struct blob *b, uint32_t n_frames)
{
	add_text(b, "COMM");
	add32be(b, 18);
	add16be(b, 2);
	add32be(b, n_frames);
	add16be(b, 16);
	add(b, "\x40\x0E\xBB\x80\0\0\0\0\0\0", 10); /* 48000 as an 80-bit float */
}

static void add_ssnd(struct blob *b, size_t n_frames)
{
	add_text(b, "SSND");
	add32be(b, (uint32_t)(8 + 4 * n_frames));
	add32be(b, 0);
	add32be(b, 0);
	add_samples(b, 2 * n_frames, 2, true);
}

static void test_aiff(void)
{
	blob.n = 0;
	add_text(&blob, "FORM");
	add32be(&blob, 0);
	add_text(&blob, "AIFF");
	add_comm(&blob, 1000);
	add_ssnd(&blob, 1000);
	expect(1000, 2, SAMPLE_S16, 48000);

	/* The audio first: a file is sought in, a pipe is told so. */
	blob.n = 12;
	add_ssnd(&blob, 1000);
	add_comm(&blob, 1000);
	take(&got, &blob, 0, NULL);
	CHECK_EQ(got.n_frames, 1000);
	check_samples(got.frames, 2000, 2);
	drop(&got);
	take(&got, &blob, 3, NULL);
	CHECK_EQ(got.opened, ERR_FORMAT);
	CHECK(strstr(got.why.reason, "COMM") != NULL);

	/* Fewer than COMM says. */
	blob.n = 12;
	add_comm(&blob, 1000);
	add_ssnd(&blob, 990);
	for (size_t i = 0; i < 2; i++) {
		take(&got, &blob, i ? 4096 : 0, NULL);
		CHECK_EQ(got.n_frames, 990);
		CHECK(got.s.cut);
		CHECK_EQ(got.s.lost_frames, 10);
		drop(&got);
	}
}

static void test_raw(void)
{
	struct source_args args = { .duration_frames = -1, .rate_hz = 48000, .channels = 1, .format = "s16be" };
	static struct got second;

	blob.n = 0;
	add_samples(&blob, 1000, 2, true);
	take(&got, &blob, 0, &args);
	CHECK_EQ(got.n_frames, 1000);
	check_samples(got.frames, 1000, 2);
	drop(&got);
	args.format = "s16";
	blob.n = 0;
	add_samples(&blob, 1000, 2, false);
	take(&second, &blob, 1, &args);
	CHECK_EQ(second.n_frames, 1000);
	check_samples(second.frames, 1000, 2);
	drop(&second);

	/* What is missing is named. */
	args.rate_hz = 0;
	args.format = NULL;
	take(&got, &blob, 0, &args);
	CHECK_EQ(got.opened, ERR_ARG);
	CHECK(strstr(got.why.reason, "-r RATE -f FORMAT") != NULL);
}

static void test_not_audio(void)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *word;
	} cases[] = { { "", 0, "empty" }, { "hello, world: this is text and no audio\n", 40, "no audio format" },
		{ "\x57\x45\x49\xD2\x10\x01", 6, "weir stream" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t k = 0; k < 2; k++) {
			blob.n = 0;
			add(&blob, cases[i].bytes, cases[i].n);
			take(&got, &blob, k, NULL);
			CHECK_EQ(got.opened, ERR_FORMAT);
			CHECK(strstr(got.why.reason, cases[i].word) != NULL);
		}
	}
}

/* ---- seeking ---- */

static void test_seek(void)
{
	struct wav_head h = { .code = 1, .bits = 16, .channels = 2, .rate_hz = 48000, .data_bytes = 4000 };
	struct source_args args = { .duration_frames = -1 };
	static uint8_t frames[8192];
	struct source s;
	struct source_block b;
	struct err_why why;

	begin_wav(&blob, &h);
	add_samples(&blob, 2000, 2, false);
	static const int64_t places[] = { 0, 1, 500, 999, 1000, 5000 };
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		args.stdin_fd = file_of(&blob);
		CHECK_EQ(source_open(&s, "-", &args, &why), ERR_OK);
		CHECK_EQ(source_trim(&s, places[i]), ERR_OK);
		enum err e = source_read(&s, frames, 1000, &b);
		if (places[i] >= 1000) {
			CHECK_EQ(e, ERR_END);
		} else {
			CHECK_EQ(e, ERR_OK);
			CHECK_EQ(b.pos, 0); /* what follows begins anew */
			CHECK_EQ(b.n_frames, 1000 - places[i]);
			CHECK_EQ(get_le16(frames), value_at((size_t)places[i] * 2) >> 16);
		}
		CHECK_EQ(s.n_frames, places[i] < 1000 ? 1000 - places[i] : 0);
		CHECK(!s.cut);
		source_release(&s);
		close(args.stdin_fd);
	}
}

/* ---- generators ---- */

static size_t generate(const char *spec, const struct source_args *args, size_t block, uint8_t *out)
{
	struct source s;
	struct source_block b;
	struct err_why why;
	size_t n = 0;

	enum err e = source_open(&s, spec, args, &why);
	CHECK_EQ(e, ERR_OK);
	if (e) {
		printf("# %s: %s\n", spec, why.reason);
		return 0;
	}
	while (source_read(&s, out + n * s.track.frame_bytes, block, &b) == ERR_OK) {
		CHECK_EQ(b.pos, n);
		n += b.n_frames;
	}
	source_release(&s);
	return n;
}

static void test_generators_by_position(void)
{
	static const char *const specs[] = {
		"gen:sine:freq=997,level=-20dB", "gen:noise:white", "gen:noise:pink,seed=7", "gen:sweep:from=20,to=20000,time=0.1s",
		"gen:impulse:every=10ms", "gen:silence", "gen:ident", "gen:count",
	};
	static const char *const formats[] = { "s16", "s24", "s32", "f32" };
	static uint8_t a[1 << 17], b[1 << 17];

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
			struct source_args args = { .channels = 3, .format = formats[k], .duration_frames = 4800 };
			size_t n = generate(specs[i], &args, 4096, a);
			CHECK_EQ(n, 4800);
			CHECK_EQ(generate(specs[i], &args, 7, b), n);
			CHECK(memcmp(a, b, n * 3 * (k == 0 ? 2 : k == 1 ? 3 : 4)) == 0);
		}
	}
}

static void test_generator_values(void)
{
	struct source_args args = { .channels = 1, .duration_frames = 9600 };
	static float x[9600];
	double peak = 0;

	generate("gen:sine:freq=1000,level=-20dB", &args, 4096, (uint8_t *)x);
	for (size_t i = 0; i < 9600; i++)
		peak = fabs((double)x[i]) > peak ? fabs((double)x[i]) : peak;
	CHECK_NEAR(20 * log10(peak), -20.0, 0.001);
	CHECK_NEAR(x[12], 0.1, 1e-7); /* a quarter of 48 frames */

	generate("gen:impulse:every=480smp", &args, 100, (uint8_t *)x);
	for (size_t i = 0; i < 9600; i++)
		CHECK(x[i] == (i % 480 ? 0.0f : 1.0f));

	double sum = 0;
	args.duration_frames = 9600;
	generate("gen:noise:white,level=-12dB", &args, 4096, (uint8_t *)x);
	for (size_t i = 0; i < 9600; i++)
		sum += (double)x[i] * x[i];
	CHECK_NEAR(10 * log10(sum / 9600), -12.0, 0.2);
}

static void test_generator_words(void)
{
	static const char *const bad[][2] = {
		{ "gen:sines", "'sines'" }, { "gen:sine:freq=x", "freq='x'" }, { "gen:sine:freq=24001", "24001" }, { "gen:sine:every=1s", "'every'" },
		{ "gen:impulse:every=-1s", "every='-1s'" }, { "gen:noise:seed=1.5", "seed='1.5'" }, { "gen:sine:level=-300dB", "-200 to 40" },
		{ "gen:count:level=1", "it has none" }, { "gen:sine:freq", "KEY=VALUE" },
	};
	struct source_args args = { .duration_frames = 1 };
	struct source s;
	struct err_why why;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_EQ(source_open(&s, bad[i][0], &args, &why), ERR_ARG);
		CHECK(strstr(why.reason, bad[i][1]) != NULL);
	}
}

static void test_count_is_checked(void)
{
	static uint8_t x[4 * 3000];
	static const enum sample formats[] = { SAMPLE_S16, SAMPLE_S24, SAMPLE_S32, SAMPLE_F32 };
	int64_t first;

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		unsigned bytes = track_sample_bytes(formats[i]);
		int64_t pos = (int64_t)1 << 33;

		genread_count_fill(formats[i], 3, pos, x, 1000);
		CHECK_EQ(genread_check_count(formats[i], 3, pos, x, 1000, &first), 0);
		CHECK_EQ(genread_check_count(formats[i], 3, pos + 1, x, 1000, &first), 1000); /* moved by a frame */
		x[(700 * 3 + 1) * bytes] ^= 1;
		CHECK_EQ(genread_check_count(formats[i], 3, pos, x, 1000, &first), 1);
		CHECK_EQ(first, pos + 700);
	}
	genread_count_value(SAMPLE_S16, 65535 + 32768, x);
	CHECK_EQ((int16_t)get_le16(x), 32767);
	genread_count_value(SAMPLE_F32, 0xFFFFFF, x);
	float f;
	memcpy(&f, x, 4);
	CHECK(f == 0x1.fffffep0f - 1.0f);
}

/* ---- shapes ---- */

static void test_matrix(void)
{
	float m[12];

	/* Stereo to mono is the mean. */
	CHECK(reshape_matrix(m, 0x3, 2, 0x4, 1));
	CHECK_NEAR(m[0], 0.5, 1e-6);
	CHECK_NEAR(m[1], 0.5, 1e-6);
	/* 5.1 to stereo by ITU-R BS.775, scaled by 1/(1 + 2·0.7071). */
	CHECK(reshape_matrix(m, 0x3F, 6, 0x3, 2));
	double k = 1 / (1 + sqrt(2));
	const double want[12] = { k, 0, k * sqrt(0.5), 0, k * sqrt(0.5), 0, 0, k, k * sqrt(0.5), 0, 0, k * sqrt(0.5) };
	for (int i = 0; i < 12; i++)
		CHECK_NEAR(m[i], want[i], 1e-6);
}

static void test_reshape(void)
{
	struct source_args args = { .channels = 1, .format = "s16", .duration_frames = 480 };
	struct reshape_options o = { .channels = 2, .format = SAMPLE_S24, .dither = true };
	static uint8_t one[960], two[480 * 6];
	struct source s;
	struct source_block b;
	struct err_why why;
	size_t n = 0;

	generate("gen:noise:white", &args, 480, one);
	CHECK_EQ(source_open(&s, "gen:noise:white", &args, &why), ERR_OK);
	CHECK_EQ(reshape_open(&s, &o, &why), ERR_OK);
	CHECK_EQ(s.track.channels, 2);
	CHECK_EQ(s.track.sample, SAMPLE_S24);
	CHECK_EQ(s.track.wave_mask, 3);
	while (source_read(&s, two + n * 6, 100, &b) == ERR_OK)
		n += b.n_frames;
	CHECK_EQ(n, 480);
	/* Wider and to both sides: exact. */
	for (size_t i = 0; i < 480; i++) {
		CHECK_EQ(get_le24(two + 6 * i), (uint32_t)get_le16(one + 2 * i) << 8);
		CHECK_EQ(get_le24(two + 6 * i + 3), (uint32_t)get_le16(one + 2 * i) << 8);
	}
	source_release(&s);

	/* Another rate: exactly round(n · out / in) frames. */
	static uint8_t f[1 << 16];
	static const struct {
		uint32_t in, out;
		int64_t n, want;
	} rates[] = { { 48000, 44100, 4801, 4411 }, { 44100, 48000, 4410, 4800 }, { 48000, 44100, 1, 1 }, { 48000, 16000, 0, 0 } };
	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		args = (struct source_args){ .channels = 2, .rate_hz = rates[i].in, .duration_frames = rates[i].n };
		o = (struct reshape_options){ .rate_hz = rates[i].out, .channels = 1 };
		CHECK_EQ(source_open(&s, "gen:sine:freq=440", &args, &why), ERR_OK);
		CHECK_EQ(reshape_open(&s, &o, &why), ERR_OK);
		CHECK_EQ(s.n_frames, rates[i].want);
		n = 0;
		while (source_read(&s, f + n * 4, 1000, &b) == ERR_OK) {
			CHECK_EQ(b.pos, n);
			n += b.n_frames;
		}
		CHECK_EQ(n, rates[i].want);
		source_release(&s);
	}
}

/* ---- feeding ---- */

static void test_feed(void)
{
	struct source_args args = { .channels = 2, .format = "s16", .duration_frames = 30000 };
	struct source sources[2];
	struct feed f;
	struct packet p;
	struct err_why why;
	int64_t pos[3] = { 0 };
	bool announced[3] = { 0 }, ended[3] = { 0 };
	enum err e;

	CHECK_EQ(source_open(&sources[0], "gen:count", &args, &why), ERR_OK);
	args.rate_hz = 24000;
	args.duration_frames = 10000;
	CHECK_EQ(source_open(&sources[1], "gen:count", &args, &why), ERR_OK);
	CHECK_EQ(feed_open(&f, sources, 2, 1000, &why), ERR_OK);
	while ((e = feed_next(&f, &p)) != ERR_END) {
		if (e == ERR_AGAIN) {
			CHECK_EQ(feed_fill(&f), ERR_OK);
			continue;
		}
		CHECK_EQ(e, ERR_OK);
		CHECK(p.track == 1 || p.track == 2);
		struct packet again;
		CHECK_EQ(packet_unpack(&again, p.head, packet_wire_bytes(&p), PACKET_MAX_PAYLOAD_BYTES), ERR_OK);
		if (p.type == PACKET_TRACK)
			announced[p.track] = true;
		if (p.type == PACKET_END)
			ended[p.track] = true;
		if (p.type != PACKET_DATA)
			continue;
		CHECK(announced[p.track] && !ended[p.track]);
		CHECK_EQ(p.pos, pos[p.track]);
		int64_t first;
		CHECK_EQ(genread_check_count(SAMPLE_S16, 2, p.pos, p.payload, p.dur, &first), 0);
		pos[p.track] += p.dur;
		/* The two keep together: never more than a block apart, while both last. */
		if (!ended[1] && !ended[2])
			CHECK(llabs(pos[1] - 2 * pos[2]) <= 2000);
	}
	CHECK_EQ(pos[1], 30000);
	CHECK_EQ(pos[2], 10000);
	CHECK(ended[1] && ended[2]);
	CHECK(!feed_is_cut(&f));
	feed_release(&f);
}

static void test_names(void)
{
	char out[64];

	CHECK_STR(feed_name_of("/a/b/song.one.flac", out, sizeof(out)), "song.one");
	CHECK_STR(feed_name_of("-", out, sizeof(out)), "stdin");
	CHECK_STR(feed_name_of("raw:x/y.raw", out, sizeof(out)), "y");
	CHECK_STR(feed_name_of("gen:sine:freq=1", out, sizeof(out)), "sine");
	CHECK_STR(feed_name_of(".hidden", out, sizeof(out)), ".hidden");
	CHECK_STR(feed_name_of("latin1-\xE9\xFF.wav", out, sizeof(out)), "latin1-\xEF\xBF\xBD\xEF\xBF\xBD");
}

/* An audio file and a stream are told apart by what they hold. */
static void test_input(void)
{
	struct wav_head h = { .code = 1, .bits = 16, .channels = 2, .rate_hz = 48000, .data_bytes = 4000 };
	struct input_options o = { 0 };
	struct input in;
	struct packet p;
	struct err_why why = { 0 };
	size_t frames = 0;
	enum err e;

	begin_wav(&blob, &h);
	add_samples(&blob, 2000, 2, false);
	o.source.duration_frames = -1;
	o.source.stdin_fd = file_of(&blob);
	CHECK_EQ(input_open(&in, "-", &o, &why), ERR_OK);
	CHECK(!in.is_stream);
	while ((e = input_next(&in, &p)) != ERR_END) {
		if (e == ERR_AGAIN)
			e = input_fill(&in);
		else if (p.type == PACKET_DATA)
			frames += p.dur;
		if (e)
			break;
	}
	CHECK_EQ(frames, 1000);
	CHECK(!input_is_cut(&in));
	CHECK(input_track(&in, 1) != NULL && input_track(&in, 2) == NULL);
	input_release(&in);
	close(o.source.stdin_fd);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	CHECK_RUN(test_wav_formats);
	CHECK_RUN(test_wav_unknown_sizes);
	CHECK_RUN(test_wav_header_only);
	CHECK_RUN(test_wav_chunk_order);
	CHECK_RUN(test_wav_masks);
	CHECK_RUN(test_wav_containers);
	CHECK_RUN(test_wav_small_formats);
	CHECK_RUN(test_wav_damage);
	CHECK_RUN(test_wav_impossible);
	CHECK_RUN(test_wav_wrapped_size);
	CHECK_RUN(test_rifx_rf64_w64);
	CHECK_RUN(test_caf);
	CHECK_RUN(test_caf_order);
	CHECK_RUN(test_au);
	CHECK_RUN(test_aiff);
	CHECK_RUN(test_raw);
	CHECK_RUN(test_not_audio);
	CHECK_RUN(test_seek);
	CHECK_RUN(test_generators_by_position);
	CHECK_RUN(test_generator_values);
	CHECK_RUN(test_generator_words);
	CHECK_RUN(test_count_is_checked);
	CHECK_RUN(test_matrix);
	CHECK_RUN(test_reshape);
	CHECK_RUN(test_feed);
	CHECK_RUN(test_names);
	CHECK_RUN(test_input);
	return check_end();
}
