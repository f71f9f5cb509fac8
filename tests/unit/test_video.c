/* Raw pictures: sizes, the TRACK packet, y4m headers, and the values of --video. */
#include "check.h"

#include "base/bytes.h"
#include "media/y4m.h"
#include "stage/videospec.h"
#include "wire/video.h"

/* Sizes by hand: luma, and colour planes with their sides rounded up. */
static void sizes(void)
{
	static const struct {
		const char *name;
		uint32_t width, height, bytes;
	} rows[] = {
		{ "rgba", 1920, 1080, 8294400 }, { "rgb24", 7, 5, 105 }, { "yuyv422", 7, 5, 80 }, { "gray", 1, 1, 1 }, { "gray16le", 3, 3, 18 },
		{ "yuv420p", 322, 241, 116564 }, { "yuv420p", 1, 1, 3 }, { "yuv422p", 7, 5, 75 }, { "yuv444p", 7, 5, 105 }, { "yuv411p", 7, 5, 55 },
		{ "yuv410p", 7, 5, 43 }, { "yuva420p", 7, 5, 94 }, { "nv12", 7, 5, 59 }, { "yuv420p10le", 7, 5, 118 }, { "gbrp", 7, 5, 105 },
	};
	struct video v, back;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct video_format *f = video_format_of(rows[i].name);
		CHECK(f);
		CHECK_EQ(video_init(&v, f, rows[i].width, rows[i].height), ERR_OK);
		CHECK_EQ(v.frame_bytes, rows[i].bytes);
		struct track t = video_track(&v, 30000, 1001);
		CHECK_EQ(t.largest_object_bytes, rows[i].bytes);
		CHECK_EQ(video_of_track(&back, &t), ERR_OK);
		CHECK(!memcmp(&back, &v, sizeof(v)));
		CHECK(video_format_by_fourcc(v.fourcc) == f);
	}
	for (unsigned i = 0; video_format_at(i); i++)
		for (unsigned k = 0; k < i; k++)
			CHECK(memcmp(video_format_at(i)->fourcc, video_format_at(k)->fourcc, 4));
}

static void limits(void)
{
	const struct video_format *f = video_format_of("rgba");
	struct video v;

	CHECK_EQ(video_init(&v, f, 0, 1), ERR_LIMIT);
	CHECK_EQ(video_init(&v, f, 1, 16385), ERR_LIMIT);
	CHECK_EQ(video_init(&v, f, 16384, 16384), ERR_LIMIT); /* 1 GiB */
	CHECK_EQ(video_init(&v, f, 8192, 8192), ERR_OK);      /* 256 MiB */
	CHECK_EQ(video_init(&v, f, 4, 4), ERR_OK);

	/* What a track says must fit itself. */
	struct track t = video_track(&v, 25, 1);
	put_le32(t.rest + 16, 65);
	CHECK_EQ(video_of_track(&v, &t), ERR_FORMAT);
	put_le32(t.rest + 16, 0);
	CHECK_EQ(video_of_track(&v, &t), ERR_LIMIT);
	put_le32(t.rest + 16, 64);
	put_le32(t.rest, 70000);
	CHECK_EQ(video_of_track(&v, &t), ERR_LIMIT);
	put_le32(t.rest, 4);
	/* A layout that is not known: its size is believed. */
	put_le32(t.rest + 8, 0x20202020);
	put_le32(t.rest + 16, 77);
	CHECK_EQ(video_of_track(&v, &t), ERR_OK);
	CHECK_EQ(v.frame_bytes, 77);
	put_le32(t.rest + 16, 0x7fffffff);
	CHECK_EQ(video_of_track(&v, &t), ERR_LIMIT);
}

static void y4m_headers(void)
{
	char out[Y4M_MAX_HEADER_BYTES];
	uint32_t num, den;
	struct err_why why;
	struct video v;

	CHECK_EQ(y4m_parse("YUV4MPEG2 W640 H480 F30000:1001 Ip A4:3 C420mpeg2 XYSCSS=420MPEG2", "x", &v, &num, &den, &why), ERR_OK);
	CHECK_EQ(v.frame_bytes, 460800);
	CHECK_EQ(num, 30000);
	CHECK_EQ(den, 1001);
	CHECK_EQ(v.aspect_num, 4);
	CHECK_EQ(v.aspect_den, 3);
	CHECK_EQ(y4m_parse("YUV4MPEG2 H2 W2", "x", &v, &num, &den, &why), ERR_OK);
	CHECK_EQ(v.frame_bytes, 6); /* 4:2:0 when it does not say */
	CHECK_EQ(num, 0);
	CHECK_EQ(y4m_parse("YUV4MPEG2 W2 H2 F0:0 Cmono", "x", &v, &num, &den, &why), ERR_OK);
	CHECK_EQ(v.frame_bytes, 4);
	static const char *const bad[] = {
		"", "YUV4MPEG", "YUV4MPEG3 W2 H2", "YUV4MPEG2 W2", "YUV4MPEG2 W-2 H2", "YUV4MPEG2 W2 H2x", "YUV4MPEG2 W2 H2 F30", "YUV4MPEG2 W2 H2 F30:x",
		"YUV4MPEG2 W2 H2 F99999999999:1", "YUV4MPEG2 W2 H2 Cnosuch", "YUV4MPEG2 W99999999999 H2", "YUV4MPEG2 W20000 H2", "YUV4MPEG2 W2 H2 A70000:1",
		"YUV4MPEG2 W2 H2 Cthirtytwocharactersandmorethanthat",
	};
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(y4m_parse(bad[i], "x", &v, &num, &den, &why) != ERR_OK);

	CHECK_EQ(video_init(&v, video_format_of("yuv422p"), 8, 6), ERR_OK);
	struct track t = video_track(&v, 25, 1);
	CHECK_EQ(y4m_print(&t, out), ERR_OK);
	CHECK_STR(out, "YUV4MPEG2 W8 H6 F25:1 Ip A0:0 C422\n");
	/* The header it came with, as long as it says the same. */
	const char *line = "YUV4MPEG2 W8 H6 F25:1 It A1:1 C422 XHELLO";
	CHECK_EQ(track_set_tlv(&t, TRACK_TLV_CODEC_PRIVATE, line, (uint32_t)strlen(line)), ERR_OK);
	CHECK_EQ(y4m_print(&t, out), ERR_OK);
	CHECK_STR(out, "YUV4MPEG2 W8 H6 F25:1 It A1:1 C422 XHELLO\n");
	t.rate_num = 50;
	CHECK_EQ(y4m_print(&t, out), ERR_OK);
	CHECK_STR(out, "YUV4MPEG2 W8 H6 F50:1 Ip A0:0 C422\n");
	track_release(&t);
	CHECK_EQ(video_init(&v, video_format_of("rgba"), 8, 6), ERR_OK);
	t = video_track(&v, 25, 1);
	CHECK_EQ(y4m_print(&t, out), ERR_FORMAT);
}

static void rates(void)
{
	static const struct {
		const char *text;
		uint32_t num, den;
	} good[] = {
		{ "60", 60, 1 }, { "60000/1001", 60000, 1001 }, { "30000:1001", 30000, 1001 }, { "29.97", 30000, 1001 }, { "23.976", 24000, 1001 },
		{ "23.98", 24000, 1001 }, { "59.94", 60000, 1001 }, { "119.88", 120000, 1001 }, { "12.5", 25, 2 }, { "0.5", 1, 2 }, { "1000", 1000, 1 },
		{ "50/2", 25, 1 }, { "25.000", 25, 1 }, { "0.001", 1, 1000 },
	};
	static const char *const bad[] = { "", "0", "-1", "1001", "1/0", "0/1", "60/", "/60", "60x", "1.", ".5", "1.2.3", "nan", "1e3", "60000/1001000000", "1/2000", "0.0001" };
	uint32_t num, den;

	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		CHECK_EQ(videospec_parse_rate(good[i].text, &num, &den), ERR_OK);
		CHECK_EQ(num, good[i].num);
		CHECK_EQ(den, good[i].den);
	}
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(videospec_parse_rate(bad[i], &num, &den), ERR_ARG);
}

static void specs(void)
{
	struct videospec s;
	struct err_why why;

	CHECK_EQ(videospec_parse(&s, "--video", "v,640x480,rgba,60000/1001,name=cam", &why), ERR_OK);
	CHECK_STR(s.place, "v");
	CHECK_EQ(s.fd, -1);
	CHECK_EQ(s.width_pixels, 640);
	CHECK_EQ(s.height_pixels, 480);
	CHECK_STR(s.format->name, "rgba");
	CHECK_EQ(s.rate_num, 60000);
	CHECK_STR(s.name, "cam");
	CHECK(!s.is_y4m);
	CHECK_EQ(videospec_parse(&s, "--video", "5", &why), ERR_OK);
	CHECK_EQ(s.fd, 5);
	CHECK(s.is_y4m);
	CHECK_EQ(videospec_parse(&s, "--video", "-,y4m,25", &why), ERR_OK);
	CHECK_EQ(s.fd, 0);
	CHECK_EQ(s.rate_num, 25);
	CHECK_EQ(videospec_parse(&s, "--video", "./5,16x16,y4m", &why), ERR_OK);
	CHECK_EQ(s.fd, -1);
	CHECK_EQ(videospec_parse(&s, "--video", "v,16x16,rgba", &why), ERR_ARG);
	CHECK_EQ(videospec_parse(&s, "--video", "v,16x16", &why), ERR_ARG);
	CHECK_EQ(videospec_parse(&s, "--video", "", &why), ERR_ARG);
}

int main(void)
{
	CHECK_RUN(sizes);
	CHECK_RUN(limits);
	CHECK_RUN(y4m_headers);
	CHECK_RUN(rates);
	CHECK_RUN(specs);
	return check_end();
}
