/* Names from patterns, and what is kept of Opus for a cut. */
#include "check.h"

#include "stage/preroll.h"
#include "stage/takename.h"
#include "stage/takes.h"

static void check_name(const char *pattern, struct takename_values v, const char *want)
{
	struct takename n;
	char *path = NULL;

	if (!CHECK_OK(takename_parse(&n, pattern, NULL)) || !CHECK_OK(takename_make(&n, &v, &path)))
		return;
	CHECK_STR(path, want);
	free(path);
}

static void test_names(void)
{
	setenv("TZ", "UTC", 1);
	struct takename_values v = { .track = 3, .n_tracks = 12, .name = "lead", .piece = 7, .utc_ns = 1767358798999999999 };

	check_name("plain.wav", v, "plain.wav");
	check_name("t%t-%n-%i.wav", v, "t03-lead-007.wav");
	check_name("100%%-%t", v, "100%-03");
	check_name("%Y%m%d-%H%M%S.opus", v, "20260102-125958.opus");
	check_name("%-H|%Ey|%D", v, "12|26|01-02-26");
	v.n_tracks = 9;
	check_name("%t", v, "3");
	v.variant = 1;
	check_name("a.b/take.tar.wav", v, "a.b/take.tar-001.wav");
	check_name("a.b/take", v, "a.b/take-001");
	check_name("a/.wav", v, "a/.wav-001");
	check_name("x", v, "x-001");
	v.variant = 0;
	v.name = "../-x\x01\x7f?";
	check_name("%n.wav", v, "_._-x___.wav");
	v.name = "-n";
	check_name("%n", v, "_n");
	v.name = "";
	check_name("%n", v, "track3");
}

static void test_patterns(void)
{
	struct takename n;
	struct err_why why = {0};

	static const char *const bad[] = { "%", "a%", "%q", "100%.wav", "%-", "%E" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(takename_parse(&n, bad[i], &why), ERR_ARG);
	CHECK_OK(takename_parse(&n, "%t%%n", NULL));
	CHECK(n.has_track && !n.has_name && !n.has_time && !n.has_piece);
	CHECK_OK(takename_parse(&n, "%n-%Y-%i", NULL));
	CHECK(!n.has_track && n.has_name && n.has_time && n.has_piece);

	char *path = NULL;
	char *huge = malloc(10000);
	memset(huge, 'a', 9999);
	huge[9999] = 0;
	CHECK_OK(takename_parse(&n, huge, NULL));
	CHECK_EQ(takename_make(&n, &(struct takename_values){0}, &path), ERR_LIMIT);
	free(huge);
}

static enum err add(struct preroll *r, int64_t pos, uint32_t dur, uint8_t byte, uint32_t n_bytes)
{
	uint8_t bytes[4000];
	memset(bytes, byte, sizeof(bytes));
	struct packet p = packet_data(1, pos, dur, n_bytes);
	p.payload = bytes;
	return preroll_add(r, &p);
}

static unsigned count(const struct preroll *r, int64_t pos, int64_t *first_pos)
{
	unsigned n = 0;
	const struct packet *p;

	while ((p = preroll_packet(r, pos, n))) {
		if (n == 0)
			*first_pos = p->pos;
		n++;
	}
	return n;
}

static void test_preroll(void)
{
	struct preroll r = {0};
	struct track t = { .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .opus_streams = 1, .channels = 1 };
	int64_t first = 0;

	/* Nothing is kept by an empty one. */
	CHECK_OK(add(&r, 0, 960, 1, 10));
	if (!CHECK_OK(preroll_init(&r, &t)))
		return;
	CHECK_EQ(count(&r, 0, &first), 0);
	for (int i = 0; i < 100; i++)
		CHECK_OK(add(&r, -312 + 960 * i, 960, (uint8_t)i, 10));
	/* The last one holds 94728…95687; 80 ms before the cut in it. */
	CHECK_EQ(count(&r, 95000, &first), 5);
	CHECK_EQ(first, -312 + 960 * 95);
	CHECK_EQ(preroll_packet(&r, 95000, 4)->payload[9], 99);
	/* At a beginning there is not so much; behind a hole neither. */
	preroll_clear(&r);
	CHECK_OK(add(&r, 200000, 960, 1, 10));
	CHECK_EQ(count(&r, 200500, &first), 1);
	CHECK_OK(add(&r, 202000, 960, 2, 3000));
	CHECK_EQ(count(&r, 202500, &first), 1);
	CHECK_EQ(first, 202000);
	CHECK_EQ(preroll_packet(&r, 202500, 0)->payload[2999], 2);
	/* Of the shortest packets there are enough. */
	preroll_clear(&r);
	for (int i = 0; i < 1000; i++)
		CHECK_OK(add(&r, 120 * i, 120, (uint8_t)i, 10));
	CHECK_EQ(count(&r, 119950, &first), 33);
	CHECK_EQ(first, 119950 / 120 * 120 - 3840);
	preroll_release(&r);
	preroll_release(&r);
}

static void test_describe(void)
{
	struct track opus = { .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .rate_num = 48000, .rate_den = 1, .channels = 2 };
	struct track pcm = track_pcm(44100, 6, SAMPLE_S24);
	char out[128];

	CHECK_STR(takes_describe(&(struct takes_file){ "x", &opus, SINK_OPUS, 28800000, 7203000, 0, false, false }, out),
		"10:00.000 opus 48000 Hz 2 ch, 7.2 MB");
	CHECK_STR(takes_describe(&(struct takes_file){ "x", &pcm, SINK_WAV, 44100ull * 3661 + 22050, 999960, 0, false, false }, out),
		"1:01:01.500 wav s24 44100 Hz 6 ch, 1.0 MB");
	CHECK_STR(takes_describe(&(struct takes_file){ "x", &pcm, SINK_FLAC, 0, 80, 0, false, false }, out), "0:00.000 flac s24 44100 Hz 6 ch, 0.1 kB");
	pcm.sample = SAMPLE_F32;
	CHECK_STR(takes_describe(&(struct takes_file){ "x", &pcm, SINK_FLAC, 0, 80, SAMPLE_S24, true, false }, out),
		"0:00.000 flac s24 (of f32, dithered) 44100 Hz 6 ch, 0.1 kB");
	CHECK_STR(takes_describe(&(struct takes_file){ "x", &pcm, SINK_WAV, 0, 80, SAMPLE_F32, false, false }, out),
		"0:00.000 wav f32 44100 Hz 6 ch, 0.1 kB");
}

int main(void)
{
	CHECK_RUN(test_names);
	CHECK_RUN(test_patterns);
	CHECK_RUN(test_preroll);
	CHECK_RUN(test_describe);
	return check_end();
}
