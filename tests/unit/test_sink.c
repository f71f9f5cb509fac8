/* Files as the sinks write them: every byte of the headers, at every moment, on full disks, under taken names. */
#include "check.h"

#include "base/bytes.h"
#include "media/sink.h"

#include <FLAC/stream_decoder.h>
#include <errno.h>
#include <fcntl.h>
#include <ogg/ogg.h>
#include <opus.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
	static char path[4][256];
	static int turn;
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

struct bytes {
	uint8_t *p;
	size_t n;
};

static struct bytes slurp(const char *path)
{
	struct bytes b = {0};
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		CHECK_FAIL("%s: %s", path, strerror(errno));
		b.p = calloc(1, 4096);
		return b;
	}
	b.p = calloc(1, (size_t)st.st_size + 4096);
	ssize_t got = read(fd, b.p, (size_t)st.st_size);
	b.n = got > 0 ? (size_t)got : 0;
	close(fd);
	return b;
}

static bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

static void track_made(struct track *t, uint32_t rate_hz, uint16_t channels, enum sample sample)
{
	*t = track_pcm(rate_hz, channels, sample);
	t->id = 1;
}

static struct sink_args args_for(enum sink_format format)
{
	return (struct sink_args){ .format = format, .stdout_fd = 1, .serial = 7 };
}

static enum err put_frames(struct sink *s, const uint8_t *frames, uint32_t n_frames)
{
	struct packet p = packet_data(1, s->first_pos + (int64_t)s->n_frames, n_frames, n_frames * s->track.frame_bytes);
	p.payload = frames;
	return sink_write(s, &p);
}

static uint8_t *noise(size_t n_bytes)
{
	uint8_t *p = malloc(n_bytes + 8);
	for (size_t i = 0; i < n_bytes; i += 8)
		put_le64(p + i, check_rand());
	return p;
}

/* Write n_frames of noise in packets of at most 1000 frames; the noise is handed back. */
static uint8_t *write_file(const char *name, const struct track *t, const struct sink_args *a, size_t n_frames)
{
	struct sink s = {0};
	struct err_why why = {0};
	uint8_t *data = noise(n_frames * t->frame_bytes);

	if (!CHECK_OK(sink_open(&s, in_folder(name), t, a, &why))) {
		printf("# %s: %s\n", why.thing, why.reason);
		return data;
	}
	for (size_t at = 0; at < n_frames;) {
		uint32_t n = n_frames - at < 1000 ? (uint32_t)(n_frames - at) : 1000;
		CHECK_OK(put_frames(&s, data + at * t->frame_bytes, n));
		at += n;
	}
	CHECK_OK(sink_close(&s, true));
	CHECK_EQ(s.n_frames, n_frames);
	sink_release(&s);
	CHECK(exists(in_folder(name)));
	return data;
}

/* The chunk `id` of a RIFF file, looked for from byte 12; NULL if the walk does not meet it. */
static const uint8_t *chunk(const struct bytes *b, const char *id, uint64_t *n_bytes)
{
	for (size_t at = 12; at + 8 <= b->n;) {
		uint32_t n = get_le32(b->p + at + 4);
		if (!memcmp(b->p + at, id, 4)) {
			*n_bytes = n;
			return b->p + at + 8;
		}
		at += 8 + (size_t)n + (n & 1);
	}
	return NULL;
}

static void test_wav_plain(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	track_made(&t, 44100, 2, SAMPLE_S16);
	uint8_t *data = write_file("plain.wav", &t, &a, 12345);
	struct bytes b = slurp(in_folder("plain.wav"));
	uint64_t n;

	CHECK_MEM(b.p, "RIFF", 4);
	CHECK_EQ(get_le32(b.p + 4), b.n - 8);
	CHECK_MEM(b.p + 8, "WAVEJUNK\x1c\0\0\0", 12);
	const uint8_t *f = chunk(&b, "fmt ", &n);
	if (CHECK(f != NULL)) {
		CHECK_EQ(n, 16);
		CHECK_MEM(f, "\1\0\2\0\x44\xac\0\0\x10\xb1\2\0\4\0\x10\0", 16);
	}
	const uint8_t *d = chunk(&b, "data", &n);
	if (CHECK(d != NULL)) {
		CHECK_EQ(n, 12345 * 4);
		CHECK_EQ(d + n - b.p, b.n);
		CHECK_MEM(d, data, 12345 * 4);
	}
	CHECK_EQ(b.n, 80 + 12345 * 4);
	free(b.p);
	free(data);
}

static void test_wav_odd_is_padded(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	track_made(&t, 48000, 1, SAMPLE_S24);
	uint8_t *data = write_file("odd.wav", &t, &a, 101);
	struct bytes b = slurp(in_folder("odd.wav"));
	uint64_t n = 0;
	const uint8_t *d = chunk(&b, "data", &n);

	CHECK_EQ(n, 303);
	CHECK_EQ(d - b.p + 304, (int64_t)b.n);
	CHECK_EQ(b.p[b.n - 1], 0);
	CHECK_EQ(get_le32(b.p + 4), b.n - 8);
	CHECK_MEM(d, data, 303);
	free(b.p);
	free(data);
}

static void check_extensible(const char *name, unsigned tag, unsigned valid_bits, uint32_t mask)
{
	struct bytes b = slurp(in_folder(name));
	uint64_t n = 0;
	const uint8_t *f = chunk(&b, "fmt ", &n);

	CHECK_EQ(n, 40);
	CHECK_EQ(get_le16(f), 0xFFFE);
	CHECK_EQ(get_le16(f + 16), 22);
	CHECK_EQ(get_le16(f + 18), valid_bits);
	CHECK_EQ(get_le32(f + 20), mask);
	CHECK_EQ(get_le16(f + 24), tag);
	CHECK_MEM(f + 26, "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
	free(b.p);
}

static void test_wav_extensible(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);

	track_made(&t, 48000, 4, SAMPLE_S16);
	t.layout = TRACK_LAYOUT_WAVE;
	t.wave_mask = 0x603;
	free(write_file("mask.wav", &t, &a, 10));
	check_extensible("mask.wav", 1, 16, 0x603);

	track_made(&t, 48000, 1, SAMPLE_S24);
	t.valid_bits = 20;
	free(write_file("valid.wav", &t, &a, 10));
	check_extensible("valid.wav", 1, 20, 4);

	track_made(&t, 48000, 2, SAMPLE_S24_32);
	free(write_file("s24in32.wav", &t, &a, 10));
	check_extensible("s24in32.wav", 1, 24, 3);

	track_made(&t, 48000, 3, SAMPLE_F32);
	free(write_file("f32x3.wav", &t, &a, 10));
	check_extensible("f32x3.wav", 3, 32, 0);
}

static void test_wav_float_has_fact(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	track_made(&t, 48000, 1, SAMPLE_F32);
	free(write_file("f32.wav", &t, &a, 777));
	struct bytes b = slurp(in_folder("f32.wav"));
	uint64_t n = 0;
	const uint8_t *f = chunk(&b, "fmt ", &n);
	CHECK_EQ(n, 18);
	CHECK_EQ(get_le16(f), 3);
	f = chunk(&b, "fact", &n);
	CHECK_EQ(n, 4);
	CHECK_EQ(get_le32(f), 777);
	free(b.p);
}

static void test_wav_tags(void)
{
	static const char *const extra[] = { "ARTIST=new", "GENRE=odd", NULL };
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	track_made(&t, 48000, 1, SAMPLE_S16);
	CHECK_OK(track_add_tag(&t, "title", "keep me", false));
	CHECK_OK(track_add_tag(&t, "ARTIST", "old", false));
	CHECK_OK(track_add_tag(&t, "FOO", "bar", false));
	a.tags = extra;
	free(write_file("tags.wav", &t, &a, 5));
	track_release(&t);
	struct bytes b = slurp(in_folder("tags.wav"));
	uint64_t n = 0;
	const uint8_t *l = chunk(&b, "LIST", &n);
	if (CHECK(l != NULL)) {
		CHECK_EQ(n, 4 + 16 + 12 + 12);
		CHECK_MEM(l, "INFOINAM\x08\0\0\0keep me\0IART\4\0\0\0new\0IGNR\4\0\0\0odd\0", n);
	}
	CHECK_EQ(get_le32(b.p + 4), b.n - 8);
	free(b.p);
}

/* While it grows: what the header speaks of is in the file, and lacks at most half a second and a packet. */
static void test_wav_is_true_at_every_moment(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	struct sink s = {0};
	uint8_t *data = noise(4800 * 3);
	uint64_t n = 0, written = 0;

	track_made(&t, 48000, 1, SAMPLE_S24);
	if (!CHECK_OK(sink_open(&s, in_folder("true.wav"), &t, &a, NULL)))
		return;
	CHECK(!exists(in_folder("true.wav")));
	for (int i = 0; i < 60; i++) {
		CHECK_OK(put_frames(&s, data, i % 2 ? 4799 : 4800));
		CHECK_OK(sink_settle(&s));
		written += i % 2 ? 4799 : 4800;
		struct bytes b = slurp(in_folder("true.wav.part"));
		const uint8_t *d = chunk(&b, "data", &n);
		CHECK(d && d - b.p + n <= b.n);
		CHECK_EQ(n % 6, 0);
		CHECK(n / 3 + 24000 + 4801 >= written);
		CHECK_EQ(get_le32(b.p + 4), (uint64_t)(d - b.p) + n - 8);
		free(b.p);
	}
	CHECK_OK(sink_close(&s, true));
	CHECK(exists(in_folder("true.wav")));
	CHECK(!exists(in_folder("true.wav.part")));
	sink_release(&s);
	free(data);
}

static void test_wav_becomes_rf64(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	a.wav_limit_bytes = 1 << 20;
	track_made(&t, 48000, 2, SAMPLE_F32);
	/* The RIFF size that is just not beyond the limit: 20 + 28 + 8 + 18 + 12 + 8 bytes are in front of the data. */
	size_t most = ((1 << 20) - (4 + 36 + 26 + 12 + 8)) / 8;
	free(write_file("small.wav", &t, &a, most));
	struct bytes b = slurp(in_folder("small.wav"));
	CHECK_MEM(b.p, "RIFF", 4);
	CHECK_EQ(get_le32(b.p + 4), b.n - 8);
	free(b.p);

	uint8_t *data = write_file("big.wav", &t, &a, most + 1);
	b = slurp(in_folder("big.wav"));
	uint64_t n = 0;
	CHECK_MEM(b.p, "RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0", 20);
	CHECK_EQ(get_le64(b.p + 20), b.n - 8);
	CHECK_EQ(get_le64(b.p + 28), (most + 1) * 8);
	CHECK_EQ(get_le64(b.p + 36), most + 1);
	CHECK_EQ(get_le32(b.p + 44), 0);
	const uint8_t *d = chunk(&b, "data", &n);
	CHECK_EQ(n, 0xFFFFFFFF);
	CHECK_EQ(b.p + b.n - d, (int64_t)(most + 1) * 8);
	CHECK_MEM(d, data, (most + 1) * 8);
	free(b.p);
	free(data);
}

static void test_w64(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_W64);
	track_made(&t, 48000, 1, SAMPLE_S24);
	uint8_t *data = write_file("x.w64", &t, &a, 1001);
	struct bytes b = slurp(in_folder("x.w64"));

	CHECK_MEM(b.p, "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0", 16);
	CHECK_EQ(get_le64(b.p + 16), b.n);
	CHECK_MEM(b.p + 24, "wave\xf3\xac\xd3\x11\x8c\xd1\0\xc0\x4f\x8e\xdb\x8a" "fmt ", 20);
	CHECK_EQ(get_le64(b.p + 56), 24 + 16);
	CHECK_MEM(b.p + 80, "data", 4);
	CHECK_EQ(get_le64(b.p + 96), 24 + 3003);
	CHECK_MEM(b.p + 104, data, 3003);
	CHECK_EQ(b.n, 104 + 3008);
	free(b.p);
	free(data);
}

static void test_aiff(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_AIFF);
	track_made(&t, 44100, 1, SAMPLE_S24);
	uint8_t *data = write_file("x.aiff", &t, &a, 11);
	struct bytes b = slurp(in_folder("x.aiff"));

	CHECK_MEM(b.p, "FORM", 4);
	CHECK_EQ(get_be32(b.p + 4), b.n - 8);
	CHECK_MEM(b.p + 8, "AIFFCOMM\0\0\0\x12\0\1\0\0\0\x0b\0\x18\x40\x0e\xac\x44\0\0\0\0\0\0", 30);
	CHECK_MEM(b.p + 38, "CHAN\0\0\0\x0c\0\x64\0\1\0\0\0\0\0\0\0\0SSND", 24);
	CHECK_EQ(get_be32(b.p + 62), 8 + 33);
	CHECK_EQ(b.n, 74 + 34);
	for (unsigned i = 0; i < 11; i++)
		for (unsigned k = 0; k < 3; k++)
			CHECK_EQ(b.p[74 + 3 * i + k], data[3 * i + 2 - k]);
	free(b.p);
	free(data);

	/* What it cannot hold is refused, and what fitted stays whole. */
	struct sink s = {0};
	a.wav_limit_bytes = 1000;
	if (!CHECK_OK(sink_open(&s, in_folder("long.aiff"), &t, &a, NULL)))
		return;
	data = noise(3000);
	CHECK_OK(put_frames(&s, data, 300));
	CHECK_EQ(put_frames(&s, data, 30), ERR_LIMIT);
	CHECK(strstr(s.why.reason, "1000 bytes") != NULL);
	CHECK_EQ(sink_close(&s, true), ERR_LIMIT);
	sink_release(&s);
	b = slurp(in_folder("long.aiff.part"));
	CHECK_EQ(get_be32(b.p + 22), 300);
	CHECK_EQ(b.n, 74 + 900);
	free(b.p);
	free(data);
}

static void test_caf(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_CAF);
	track_made(&t, 48000, 6, SAMPLE_S24_32);
	t.layout = TRACK_LAYOUT_WAVE;
	t.wave_mask = 0x3F;
	uint8_t *data = write_file("x.caf", &t, &a, 11);
	struct bytes b = slurp(in_folder("x.caf"));

	CHECK_MEM(b.p, "caff\0\1\0\0desc\0\0\0\0\0\0\0\x20\x40\xe7\x70\0\0\0\0\0lpcm\0\0\0\2\0\0\0\x12\0\0\0\1\0\0\0\6\0\0\0\x18", 52);
	CHECK_MEM(b.p + 52, "chan\0\0\0\0\0\0\0\x0c\0\1\0\0\0\0\0\x3f\0\0\0\0data", 28);
	CHECK_EQ(get_be64(b.p + 80), 4 + 11 * 18);
	CHECK_EQ(b.n, 92 + 11 * 18);
	/* 24 bits left-justified in 32 are packed. */
	for (unsigned i = 0; i < 66; i++)
		CHECK_MEM(b.p + 92 + 3 * i, data + 4 * i + 1, 3);
	free(b.p);
	free(data);
}

static void test_raw_and_empty(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_RAW);
	track_made(&t, 8000, 1, SAMPLE_S16);
	uint8_t *data = write_file("x.raw", &t, &a, 5000);
	struct bytes b = slurp(in_folder("x.raw"));
	CHECK_EQ(b.n, 10000);
	CHECK_MEM(b.p, data, 10000);
	free(b.p);
	free(data);

	static const struct { enum sink_format format; const char *name; size_t n_bytes; } empty[] = {
		{ SINK_WAV, "e.wav", 80 }, { SINK_RF64, "e.rf64", 80 }, { SINK_W64, "e.w64", 104 }, { SINK_CAF, "e.caf", 92 },
		{ SINK_AIFF, "e.aiff", 74 }, { SINK_RAW, "e.raw", 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		a = args_for(empty[i].format);
		free(write_file(empty[i].name, &t, &a, 0));
		b = slurp(in_folder(empty[i].name));
		CHECK_EQ(b.n, empty[i].n_bytes);
		free(b.p);
	}
}

/* Payloads may go after a settle, and few writes are made. */
static void test_settle_and_large_writes(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	struct sink s = {0};
	uint8_t *one = malloc(4096 * 4), *all = malloc(200 * 4096 * 4);

	track_made(&t, 48000, 2, SAMPLE_S16);
	if (!CHECK_OK(sink_open(&s, in_folder("settle.wav"), &t, &a, NULL)))
		return;
	for (unsigned i = 0; i < 200; i++) {
		memset(one, (int)i, 4096 * 4);
		memset(all + i * 4096 * 4, (int)i, 4096 * 4);
		CHECK_OK(put_frames(&s, one, 4096));
		CHECK_OK(sink_settle(&s));
	}
	uint64_t n_writes = s.file.n_writes;
	CHECK_OK(sink_close(&s, true));
	sink_release(&s);
	CHECK(n_writes > 1 && 200u * 4096 * 4 / (n_writes - 1) >= 65536); /* one is the header */
	struct bytes b = slurp(in_folder("settle.wav"));
	CHECK_EQ(b.n, 80 + 200 * 4096 * 4);
	CHECK_MEM(b.p + 80, all, 200 * 4096 * 4);
	free(b.p);
	free(one);
	free(all);
}

static void test_silence(void)
{
	static const enum sink_format formats[] = { SINK_WAV, SINK_AIFF, SINK_RAW };
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct track t;
		struct sink_args a = args_for(formats[i]);
		struct sink s = {0};
		uint8_t data[6] = { 1, 1, 1, 1, 1, 1 };
		track_made(&t, 48000, 1, SAMPLE_S24);
		a.force = true;
		if (!CHECK_OK(sink_open(&s, in_folder("silence"), &t, &a, NULL)))
			return;
		CHECK_OK(put_frames(&s, data, 2));
		CHECK_OK(sink_silence(&s, 100000));
		CHECK_OK(put_frames(&s, data, 2));
		CHECK_OK(sink_close(&s, true));
		CHECK_EQ(s.silence_frames, 100000);
		sink_release(&s);
		struct bytes b = slurp(in_folder("silence"));
		size_t n = 100004 * 3, at = b.n - n;
		CHECK_EQ(at, formats[i] == SINK_WAV ? 80 : formats[i] == SINK_AIFF ? 74 : 0);
		for (size_t k = 0; k < n; k++)
			if (b.p[at + k] != (k < 6 || k >= n - 6))
				CHECK_FAIL("byte %zu is %d", k, b.p[at + k]);
		free(b.p);
	}
}

/* ---- names ---- */

static void test_names(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	struct sink s = {0};
	struct err_why why = {0};

	track_made(&t, 48000, 1, SAMPLE_S16);
	free(write_file("taken.wav", &t, &a, 3));
	CHECK_EQ(sink_open(&s, in_folder("taken.wav"), &t, &a, &why), ERR_SYS);
	CHECK(strstr(why.reason, "exists") && strstr(why.thing, "taken.wav"));
	CHECK(!exists(in_folder("taken.wav.part")));
	CHECK_EQ(sinkfile_check(in_folder("taken.wav"), false, &why), ERR_SYS);
	CHECK_OK(sinkfile_check(in_folder("taken.wav"), true, &why));
	CHECK_EQ(sink_open(&s, folder, &t, &a, &why), ERR_SYS);
	CHECK(strstr(why.reason, "folder") != NULL);
	CHECK_EQ(sink_open(&s, in_folder("no/such.wav"), &t, &a, &why), ERR_SYS);
	CHECK_EQ(why.sys_errno, ENOENT);

	/* An unfinished recording is worth as much. */
	if (CHECK_OK(sink_open(&s, in_folder("cut.wav"), &t, &a, NULL))) {
		CHECK_OK(put_frames(&s, (const uint8_t *)"abcd", 2));
		CHECK_OK(sink_close(&s, false));
		sink_release(&s);
	}
	CHECK(exists(in_folder("cut.wav.part")) && !exists(in_folder("cut.wav")));
	CHECK_EQ(sink_open(&s, in_folder("cut.wav"), &t, &a, &why), ERR_SYS);
	CHECK(strstr(why.thing, "cut.wav.part") != NULL);
	a.force = true;
	free(write_file("cut.wav", &t, &a, 3));
	CHECK(!exists(in_folder("cut.wav.part")));
	a.force = false;

	/* One that is being written is nobody else's, with force neither; what is left of it is. */
	a.force = true;
	if (CHECK_OK(sink_open(&s, in_folder("mine.wav"), &t, &a, NULL))) {
		struct sink rival = {0};
		CHECK_OK(put_frames(&s, (const uint8_t *)"abcd", 2));
		CHECK_EQ(sinkfile_check(in_folder("mine.wav"), true, &why), ERR_SYS);
		CHECK(strstr(why.reason, "is being written") && strstr(why.thing, "mine.wav.part"));
		CHECK_EQ(sink_open(&rival, in_folder("mine.wav"), &t, &a, &why), ERR_SYS);
		CHECK(strstr(why.reason, "is being written") != NULL);
		CHECK_EQ(sinkfile_check(in_folder("mine.wav"), false, &why), ERR_SYS);
		CHECK(strstr(why.reason, "is being written") != NULL);
		CHECK_OK(sink_close(&s, false));
		sink_release(&s);
		CHECK_OK(sinkfile_check(in_folder("mine.wav"), true, &why));
		free(write_file("mine.wav", &t, &a, 3));
		CHECK(!exists(in_folder("mine.wav.part")));
	}
	a.force = false;

	/* Somebody makes a file of that name while we write. */
	if (CHECK_OK(sink_open(&s, in_folder("race.wav"), &t, &a, NULL))) {
		int fd = open(in_folder("race.wav"), O_CREAT | O_WRONLY, 0600);
		CHECK(fd >= 0 && write(fd, "mine", 4) == 4);
		close(fd);
		CHECK_EQ(sink_close(&s, true), ERR_SYS);
		CHECK(strstr(s.why.reason, "race.wav.part") != NULL);
		sink_release(&s);
		struct bytes b = slurp(in_folder("race.wav"));
		CHECK_EQ(b.n, 4);
		free(b.p);
		CHECK(exists(in_folder("race.wav.part")));
	}

	static const struct { const char *path; enum sink_format format; } names[] = {
		{ "a.wav", SINK_WAV }, { "b.W64", SINK_W64 }, { "x.y/c", SINK_NONE }, { "d.Opus", SINK_OPUS }, { "e.aif", SINK_AIFF },
		{ "f.mp3", SINK_NONE }, { "g", SINK_NONE }, { ".flac", SINK_FLAC }, { "h.weir", SINK_WEIR }, { "wav", SINK_NONE },
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK_EQ(sink_format_of_name(names[i].path), names[i].format);
}

static void test_refusals(void)
{
	struct track t;
	struct sink s = {0};
	struct err_why why = {0};
	struct sink_args a = args_for(SINK_OPUS);

	track_made(&t, 48000, 1, SAMPLE_S16);
	CHECK_EQ(sink_open(&s, in_folder("n.opus"), &t, &a, &why), ERR_FORMAT);
	CHECK(strstr(why.reason, "encode first") != NULL);
	a.format = SINK_WAV;
	t.codec = TRACK_OPUS;
	CHECK_EQ(sink_open(&s, in_folder("n.wav"), &t, &a, &why), ERR_FORMAT);
	CHECK(strstr(why.reason, "decode first") != NULL);
	t.kind = TRACK_TEXT;
	CHECK_EQ(sink_open(&s, in_folder("n.wav"), &t, &a, &why), ERR_FORMAT);
	track_made(&t, 48000, 9, SAMPLE_S16);
	a.format = SINK_FLAC;
	CHECK_EQ(sink_open(&s, in_folder("n.flac"), &t, &a, &why), ERR_LIMIT);
	CHECK(strstr(why.reason, "1 to 8") != NULL);
	track_made(&t, 48000, 1, SAMPLE_S16);
	t.rate_num = 48000000;
	t.rate_den = 1001;
	a.format = SINK_WAV;
	CHECK_EQ(sink_open(&s, in_folder("n.wav"), &t, &a, &why), ERR_LIMIT);
	CHECK(!exists(in_folder("n.wav.part")) && !exists(in_folder("n.flac.part")) && !exists(in_folder("n.opus.part")));
}

static void test_fifo_and_devices(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_WAV);
	struct sink s = {0};
	struct err_why why = {0};
	volatile sig_atomic_t stop = 1;

	track_made(&t, 48000, 1, SAMPLE_S16);
	CHECK_EQ(mkfifo(in_folder("fifo"), 0600), 0);
	CHECK_EQ(sink_open(&s, in_folder("fifo"), &t, &a, &why), ERR_AGAIN);
	CHECK(strstr(why.reason, "waiting for a reader") != NULL);
	(void)stop;
	int reader = open(in_folder("fifo"), O_RDONLY | O_NONBLOCK);
	if (CHECK_OK(sink_open(&s, in_folder("fifo"), &t, &a, &why))) {
		uint8_t got[64] = {0};
		CHECK_OK(put_frames(&s, (const uint8_t *)"abcdef", 3));
		CHECK_OK(sink_settle(&s));
		/* A pipe has all of it at once, with sizes that say "to the end". */
		CHECK_EQ(read(reader, got, sizeof(got)), 50);
		CHECK_MEM(got, "RIFF\xff\xff\xff\xffWAVEfmt ", 16);
		CHECK_MEM(got + 36, "data\xff\xff\xff\xff" "abcdef", 14);
		close(reader);
		CHECK_OK(put_frames(&s, (const uint8_t *)"abcdef", 3));
		CHECK_EQ(sink_settle(&s), ERR_GONE);
		CHECK_EQ(sink_close(&s, true), ERR_GONE);
		sink_release(&s);
	}
	CHECK(exists(in_folder("fifo")));

	uint8_t *data = noise(200000);
	if (CHECK_OK(sink_open(&s, "/dev/full", &t, &a, &why))) {
		enum err e = ERR_OK;
		for (int i = 0; i < 8 && !e; i++)
			e = put_frames(&s, data, 100000);
		CHECK_EQ(e, ERR_SYS);
		CHECK_EQ(sink_close(&s, true), ERR_SYS);
		CHECK_STR(s.why.reason, "No space left on device");
		CHECK_STR(s.why.thing, "/dev/full");
		sink_release(&s);
	}
	free(data);
}

/* ---- full disks: the limit on the size of files stands in for them ---- */

static void limit_files(rlim_t n_bytes)
{
	struct rlimit r;
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = n_bytes == RLIM_INFINITY ? r.rlim_max : n_bytes;
	setrlimit(RLIMIT_FSIZE, &r);
}

/* Returns: the bytes of NAME.part after a "disk" of this size. */
static struct bytes fill_disk(const char *name, enum sink_format format, const struct track *t, rlim_t disk_bytes, uint64_t *n_frames)
{
	struct sink_args a = args_for(format);
	struct sink s = {0};
	uint8_t *data = noise(1000 * t->frame_bytes);
	char part[64];
	enum err e = ERR_OK;

	limit_files(disk_bytes);
	if (CHECK_OK(sink_open(&s, in_folder(name), t, &a, NULL))) {
		for (int i = 0; i < 100000 && !e; i++)
			e = put_frames(&s, data, 1000);
		CHECK_EQ(e, ERR_SYS);
		CHECK_EQ(sink_close(&s, true), ERR_SYS);
		CHECK_EQ(s.why.sys_errno, EFBIG);
		CHECK(strstr(s.why.thing, name) != NULL);
	}
	limit_files(RLIM_INFINITY);
	*n_frames = s.n_frames;
	sink_release(&s);
	free(data);
	CHECK(!exists(in_folder(name)));
	snprintf(part, sizeof(part), "%s.part", name);
	return slurp(in_folder(part));
}

static void test_full_disk_pcm(void)
{
	struct track t;
	uint64_t n_frames, n = 0;

	track_made(&t, 48000, 1, SAMPLE_S24);
	struct bytes b = fill_disk("full.wav", SINK_WAV, &t, 300001, &n_frames);
	const uint8_t *d = chunk(&b, "data", &n);
	CHECK_EQ(d + n - b.p, (int64_t)b.n);
	CHECK_EQ(n, n_frames * 3);
	CHECK_EQ(get_le32(b.p + 4), b.n - 8);
	CHECK(b.n <= 300001 && b.n > 299990);
	free(b.p);

	b = fill_disk("full.w64", SINK_W64, &t, 300001, &n_frames);
	CHECK_EQ(get_le64(b.p + 16), b.n);
	CHECK_EQ(get_le64(b.p + 96), 24 + n_frames * 3);
	free(b.p);

	b = fill_disk("full.caf", SINK_CAF, &t, 300001, &n_frames);
	CHECK_EQ(get_be64(b.p + b.n - n_frames * 3 - 12), 4 + n_frames * 3);
	free(b.p);
}

/* ---- FLAC ---- */

struct flac_out {
	const uint8_t *in;
	size_t n_in, at;
	int32_t *samples;
	size_t n_samples, room;
	unsigned bits, channels, rate_hz;
	uint64_t total;
	char mask[64];
	bool failed;
};

static FLAC__StreamDecoderReadStatus flac_read(const FLAC__StreamDecoder *d, FLAC__byte *to, size_t *n, void *user)
{
	struct flac_out *o = user;
	(void)d;
	if (*n > o->n_in - o->at)
		*n = o->n_in - o->at;
	memcpy(to, o->in + o->at, *n);
	o->at += *n;
	return *n ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

static FLAC__StreamDecoderWriteStatus flac_write(const FLAC__StreamDecoder *d, const FLAC__Frame *f, const FLAC__int32 *const c[], void *user)
{
	struct flac_out *o = user;
	(void)d;
	for (unsigned i = 0; i < f->header.blocksize; i++)
		for (unsigned k = 0; k < f->header.channels && o->n_samples < o->room; k++)
			o->samples[o->n_samples++] = c[k][i];
	return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

static void flac_meta(const FLAC__StreamDecoder *d, const FLAC__StreamMetadata *m, void *user)
{
	struct flac_out *o = user;
	(void)d;
	if (m->type == FLAC__METADATA_TYPE_STREAMINFO) {
		o->bits = m->data.stream_info.bits_per_sample;
		o->channels = m->data.stream_info.channels;
		o->rate_hz = m->data.stream_info.sample_rate;
		o->total = m->data.stream_info.total_samples;
	} else if (m->type == FLAC__METADATA_TYPE_VORBIS_COMMENT) {
		for (unsigned i = 0; i < m->data.vorbis_comment.num_comments; i++)
			if (!strncmp((char *)m->data.vorbis_comment.comments[i].entry, "WAVE", 4))
				snprintf(o->mask, sizeof(o->mask), "%s", (char *)m->data.vorbis_comment.comments[i].entry);
	}
}

static void flac_error(const FLAC__StreamDecoder *d, FLAC__StreamDecoderErrorStatus status, void *user)
{
	(void)d;
	(void)status;
	((struct flac_out *)user)->failed = true;
}

static void flac_decode(const char *name, struct flac_out *o, size_t room)
{
	struct bytes b = slurp(in_folder(name));
	*o = (struct flac_out){ .in = b.p, .n_in = b.n, .samples = malloc(room * 4 + 4), .room = room };
	FLAC__StreamDecoder *d = FLAC__stream_decoder_new();
	FLAC__stream_decoder_set_md5_checking(d, true);
	FLAC__stream_decoder_set_metadata_respond_all(d);
	CHECK_EQ(FLAC__stream_decoder_init_stream(d, flac_read, NULL, NULL, NULL, NULL, flac_write, flac_meta, flac_error, o), 0);
	CHECK(FLAC__stream_decoder_process_until_end_of_stream(d));
	CHECK(FLAC__stream_decoder_finish(d)); /* the checksum, where there is one */
	FLAC__stream_decoder_delete(d);
	CHECK(!o->failed);
	free(b.p);
}

static int32_t sample_at(const uint8_t *p, size_t i, enum sample sample)
{
	return sample == SAMPLE_S16 ? (int16_t)get_le16(p + 2 * i) : sample == SAMPLE_S24 ? (int32_t)(get_le24(p + 3 * i) << 8) >> 8 :
		sample == SAMPLE_S24_32 ? (int32_t)get_le32(p + 4 * i) >> 8 : (int32_t)get_le32(p + 4 * i);
}

static void test_flac_exact(void)
{
	static const struct { enum sample sample; unsigned bits; } kinds[] = {
		{ SAMPLE_S16, 16 }, { SAMPLE_S24, 24 }, { SAMPLE_S24_32, 24 }, { SAMPLE_S32, 32 },
	};
	static const size_t lengths[] = { 0, 1, 4096, 47777 };
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			struct track t;
			struct flac_out o;
			struct sink_args a = args_for(SINK_FLAC);
			size_t n = lengths[k] * 3;
			track_made(&t, 48000, 3, kinds[i].sample);
			t.layout = TRACK_LAYOUT_WAVE;
			t.wave_mask = 0x7;
			a.force = true;
			uint8_t *data = write_file("x.flac", &t, &a, lengths[k]);
			flac_decode("x.flac", &o, n);
			CHECK_EQ(o.n_samples, n);
			CHECK_EQ(o.total, lengths[k]);
			CHECK_EQ(o.bits, kinds[i].bits);
			CHECK_EQ(o.channels, 3);
			CHECK_EQ(o.rate_hz, 48000);
			CHECK_STR(o.mask, "WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x0007");
			for (size_t j = 0; j < n; j++)
				if (o.samples[j] != sample_at(data, j, kinds[i].sample)) {
					CHECK_FAIL("sample %zu is %d", j, o.samples[j]);
					break;
				}
			free(o.samples);
			free(data);
		}
}

static void test_flac_float_is_dithered_and_clips(void)
{
	static const float values[] = { 0.5f, -0.25f, 1.5f, -2.0f, 0.0f, 0.125f, 0.75f, -1.0f };
	struct track t;
	struct sink_args a = args_for(SINK_FLAC);
	struct sink s = {0};
	struct flac_out o;

	track_made(&t, 48000, 1, SAMPLE_F32);
	if (!CHECK_OK(sink_open(&s, in_folder("f.flac"), &t, &a, NULL)))
		return;
	CHECK(strstr(s.change, "s24 with dither") != NULL);
	CHECK_OK(put_frames(&s, (const uint8_t *)values, 7));
	CHECK_OK(sink_close(&s, true));
	CHECK_EQ(s.clipped_samples, 2);
	sink_release(&s);
	flac_decode("f.flac", &o, 8);
	CHECK_EQ(o.n_samples, 7);
	for (unsigned i = 0; i < 7; i++) {
		double want = values[i] * 8388608.0;
		want = want > 8388607 ? 8388607 : want < -8388608 ? -8388608 : want;
		CHECK_NEAR(o.samples[i], want, 2);
	}
	free(o.samples);
}

/* A recording that is killed plays: whole frames, with the length the header says. */
static void test_flac_part_is_true(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_FLAC);
	struct sink s = {0};
	struct flac_out o;
	uint8_t *data = noise(48000 * 2);

	track_made(&t, 48000, 1, SAMPLE_S16);
	if (!CHECK_OK(sink_open(&s, in_folder("k.flac"), &t, &a, NULL)))
		return;
	flac_decode("k.flac.part", &o, 1);
	CHECK_EQ(o.rate_hz, 48000);
	free(o.samples);
	for (unsigned i = 1; i <= 5; i++) {
		CHECK_OK(put_frames(&s, data, 48000));
		flac_decode("k.flac.part", &o, 48000 * 6);
		CHECK_EQ(o.n_samples, o.total);
		CHECK(o.total + 4096 + 1 >= i * 48000 && o.total <= i * 48000);
		free(o.samples);
	}
	CHECK_OK(sink_close(&s, true));
	sink_release(&s);
	free(data);

	uint64_t n_frames;
	struct bytes b = fill_disk("full.flac", SINK_FLAC, &t, 500000, &n_frames);
	free(b.p);
	flac_decode("full.flac.part", &o, 1000000);
	CHECK_EQ(o.n_samples, o.total);
	CHECK_EQ(o.n_samples, n_frames);
	CHECK(n_frames > 200000);
	free(o.samples);
}

/* ---- Ogg Opus ---- */

struct pages {
	unsigned n_pages, n_last, n_packets;
	int64_t granule;
	bool whole;              /* ends with a whole page, all checksums hold */
};

static struct pages walk_pages(const struct bytes *b)
{
	struct pages r = {0};
	ogg_sync_state sync;
	ogg_page page;
	size_t used = 0;

	ogg_sync_init(&sync);
	memcpy(ogg_sync_buffer(&sync, (long)b->n), b->p, b->n);
	ogg_sync_wrote(&sync, (long)b->n);
	while (ogg_sync_pageout(&sync, &page) == 1) {
		r.n_pages++;
		r.n_last += ogg_page_eos(&page) != 0;
		r.n_packets += (unsigned)ogg_page_packets(&page);
		r.granule = ogg_page_granulepos(&page);
		used += (size_t)(page.header_len + page.body_len);
	}
	r.whole = used == b->n;
	ogg_sync_clear(&sync);
	return r;
}

/* An Opus packet a call, of noise; 20 ms at 48 kHz. */
static uint32_t opus_noise(OpusEncoder *enc, uint8_t *to, uint32_t room_bytes)
{
	float x[960];
	for (unsigned i = 0; i < 960; i++)
		x[i] = (float)(int32_t)check_rand() / 4294967296.0f;
	int n = opus_encode_float(enc, x, 960, to, (opus_int32)room_bytes);
	return n > 0 ? (uint32_t)n : 0;
}

static void opus_track(struct track *t)
{
	*t = (struct track){
		.id = 1, .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .rate_num = 48000, .rate_den = 1, .channels = 1,
		.layout = TRACK_LAYOUT_OPUS, .opus_streams = 1, .preroll_frames = 3840, .original_rate_hz = 48000, .valid_bits = 0,
		.next_utc_ns = UNITS_UNKNOWN_NS,
	};
}

static void test_opus_pages(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_OPUS);
	struct sink s = {0};
	uint8_t bytes[1500];
	OpusEncoder *enc = opus_encoder_create(48000, 1, OPUS_APPLICATION_AUDIO, NULL);

	opus_track(&t);
	if (!enc || !CHECK_OK(sink_open(&s, in_folder("x.opus"), &t, &a, NULL)))
		return;
	for (int i = 0; i < 200; i++) {
		struct packet p = packet_data(1, -312 + 960 * i, 960, opus_noise(enc, bytes, sizeof(bytes)));
		p.payload = bytes;
		CHECK_OK(sink_write(&s, &p));
		/* A kill now loses less than a second. */
		if (i % 10 == 0 && i > 60) {
			struct bytes b = slurp(in_folder("x.opus.part"));
			struct pages pages = walk_pages(&b);
			CHECK(pages.whole);
			CHECK(pages.granule + 24000 + 2 * 960 >= 960 * (i + 1));
			free(b.p);
		}
	}
	CHECK_OK(sink_silence(&s, 1001));
	CHECK_EQ(s.n_frames, 200 * 960 - 312 + 1001);
	CHECK_OK(sink_close(&s, true));
	CHECK_EQ(s.n_frames, 200 * 960 - 312 + 1001);
	sink_release(&s);
	struct bytes b = slurp(in_folder("x.opus"));
	struct pages pages = walk_pages(&b);
	CHECK(pages.whole);
	CHECK_EQ(pages.n_last, 1);
	CHECK_EQ(pages.granule, 200 * 960 + 1001);
	CHECK_EQ(get_le16(b.p + 28 + 10), 312);
	free(b.p);
	opus_encoder_destroy(enc);
}

static void test_opus_full_disk(void)
{
	struct track t;
	struct sink_args a = args_for(SINK_OPUS);
	struct sink s = {0};
	uint8_t bytes[1500];
	OpusEncoder *enc = opus_encoder_create(48000, 1, OPUS_APPLICATION_AUDIO, NULL);
	enum err e = ERR_OK;

	opus_track(&t);
	limit_files(20000);
	if (enc && CHECK_OK(sink_open(&s, in_folder("full.opus"), &t, &a, NULL))) {
		for (int i = 0; i < 10000 && !e; i++) {
			struct packet p = packet_data(1, -312 + 960 * i, 960, opus_noise(enc, bytes, sizeof(bytes)));
			p.payload = bytes;
			e = sink_write(&s, &p);
		}
		CHECK_EQ(e, ERR_SYS);
		CHECK_EQ(sink_close(&s, true), ERR_SYS);
		CHECK_EQ(s.why.sys_errno, EFBIG);
		sink_release(&s);
	}
	limit_files(RLIM_INFINITY);
	struct bytes b = slurp(in_folder("full.opus.part"));
	struct pages pages = walk_pages(&b);
	CHECK(pages.whole);
	CHECK_EQ(pages.n_last, 1);
	CHECK(pages.n_pages > 3 && b.n > 10000);
	free(b.p);
	opus_encoder_destroy(enc);
}

int main(void)
{
	snprintf(folder, sizeof(folder), "%s/weir-sink.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(folder)) {
		printf("Bail out! %s: %s\n", folder, strerror(errno));
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	check_seed(1);
	CHECK_RUN(test_wav_plain);
	CHECK_RUN(test_wav_odd_is_padded);
	CHECK_RUN(test_wav_extensible);
	CHECK_RUN(test_wav_float_has_fact);
	CHECK_RUN(test_wav_tags);
	CHECK_RUN(test_wav_is_true_at_every_moment);
	CHECK_RUN(test_wav_becomes_rf64);
	CHECK_RUN(test_w64);
	CHECK_RUN(test_aiff);
	CHECK_RUN(test_caf);
	CHECK_RUN(test_raw_and_empty);
	CHECK_RUN(test_settle_and_large_writes);
	CHECK_RUN(test_silence);
	CHECK_RUN(test_names);
	CHECK_RUN(test_refusals);
	CHECK_RUN(test_fifo_and_devices);
	CHECK_RUN(test_full_disk_pcm);
	CHECK_RUN(test_flac_exact);
	CHECK_RUN(test_flac_float_is_dithered_and_clips);
	CHECK_RUN(test_flac_part_is_true);
	CHECK_RUN(test_opus_pages);
	CHECK_RUN(test_opus_full_disk);
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command) != 0)
		printf("# %s is left behind\n", folder);
	return check_end();
}
