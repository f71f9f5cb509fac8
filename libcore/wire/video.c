#include "wire/video.h"

#include "base/bytes.h"
#include "base/units.h"

#include <string.h>

#define PACKED(n, c, bytes, pixels) { .name = n, .fourcc = c, .packed_bytes = bytes, .packed_pixels = pixels }
#define PLANES(n, c, sample, sx, sy, colour, full, y) { .name = n, .fourcc = c, .sample_bytes = sample, .shift_x = sx, .shift_y = sy, \
	.n_colour = colour, .n_full = full, .y4m = y }
#define CODE(a, b, c, d) { a, b, c, d }

/* The fourccs are those that ffmpeg gives raw video, so that files keep their meaning there. */
static const struct video_format formats[] = {
	PACKED("rgba", CODE('R', 'G', 'B', 'A'), 4, 1),
	PACKED("bgra", CODE('B', 'G', 'R', 'A'), 4, 1),
	PACKED("argb", CODE('A', 'R', 'G', 'B'), 4, 1),
	PACKED("abgr", CODE('A', 'B', 'G', 'R'), 4, 1),
	PACKED("rgb0", CODE('R', 'G', 'B', 0), 4, 1),
	PACKED("bgr0", CODE('B', 'G', 'R', 0), 4, 1),
	PACKED("rgb24", CODE('R', 'G', 'B', 24), 3, 1),
	PACKED("bgr24", CODE('B', 'G', 'R', 24), 3, 1),
	PACKED("yuyv422", CODE('Y', 'U', 'Y', '2'), 4, 2),
	PACKED("uyvy422", CODE('U', 'Y', 'V', 'Y'), 4, 2),
	PLANES("gray", CODE('Y', '8', '0', '0'), 1, 0, 0, 0, 1, "mono"),
	PLANES("gray16le", CODE('Y', '1', 0, 16), 2, 0, 0, 0, 1, "mono16"),
	PLANES("yuv420p", CODE('I', '4', '2', '0'), 1, 1, 1, 2, 1, "420jpeg"),
	PLANES("yuv422p", CODE('Y', '4', '2', 'B'), 1, 1, 0, 2, 1, "422"),
	PLANES("yuv444p", CODE('4', '4', '4', 'P'), 1, 0, 0, 2, 1, "444"),
	PLANES("yuv411p", CODE('Y', '4', '1', 'B'), 1, 2, 0, 2, 1, "411"),
	PLANES("yuv410p", CODE('Y', 'U', 'V', '9'), 1, 2, 2, 2, 1, "410"),
	PLANES("yuva420p", CODE('Y', '4', 11, 8), 1, 1, 1, 2, 2, NULL),
	PLANES("yuva444p", CODE('Y', '4', 0, 8), 1, 0, 0, 2, 2, "444alpha"),
	PLANES("yuv420p10le", CODE('Y', '3', 11, 10), 2, 1, 1, 2, 1, "420p10"),
	PLANES("yuv422p10le", CODE('Y', '3', 10, 10), 2, 1, 0, 2, 1, "422p10"),
	PLANES("yuv444p10le", CODE('Y', '3', 0, 10), 2, 0, 0, 2, 1, "444p10"),
	PLANES("yuv420p12le", CODE('Y', '3', 11, 12), 2, 1, 1, 2, 1, "420p12"),
	PLANES("yuv422p12le", CODE('Y', '3', 10, 12), 2, 1, 0, 2, 1, "422p12"),
	PLANES("yuv444p12le", CODE('Y', '3', 0, 12), 2, 0, 0, 2, 1, "444p12"),
	PLANES("nv12", CODE('N', 'V', '1', '2'), 1, 1, 1, 2, 1, NULL),
	PLANES("nv21", CODE('N', 'V', '2', '1'), 1, 1, 1, 2, 1, NULL),
	PLANES("gbrp", CODE('G', '3', 0, 8), 1, 0, 0, 2, 1, NULL),
};

static uint32_t fourcc_of(const struct video_format *f)
{
	return get_le32((const uint8_t *)f->fourcc);
}

const struct video_format *video_format_at(unsigned i)
{
	return i < ARRAY_LEN(formats) ? &formats[i] : NULL;
}

const struct video_format *video_format_of(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct video_format *video_format_by_fourcc(uint32_t fourcc)
{
	for (unsigned i = 0; i < ARRAY_LEN(formats); i++)
		if (fourcc_of(&formats[i]) == fourcc)
			return &formats[i];
	return NULL;
}

/* n halved so often, rounded up. */
static uint64_t halved(uint32_t n, unsigned shift)
{
	return ((uint64_t)n + (1u << shift) - 1) >> shift;
}

enum err video_init(struct video *v, const struct video_format *f, uint32_t width_pixels, uint32_t height_pixels)
{
	uint64_t stride, bytes;

	memset(v, 0, sizeof(*v));
	if (!width_pixels || !height_pixels || width_pixels > VIDEO_MAX_SIDE_PIXELS || height_pixels > VIDEO_MAX_SIDE_PIXELS)
		return ERR_LIMIT;
	if (f->packed_bytes) {
		stride = ((uint64_t)width_pixels + f->packed_pixels - 1) / f->packed_pixels * f->packed_bytes;
		bytes = stride * height_pixels;
	} else {
		stride = (uint64_t)width_pixels * f->sample_bytes;
		bytes = f->n_full * stride * height_pixels +
			f->n_colour * halved(width_pixels, f->shift_x) * halved(height_pixels, f->shift_y) * f->sample_bytes;
	}
	if (bytes > VIDEO_MAX_FRAME_BYTES)
		return ERR_LIMIT;
	v->width_pixels = width_pixels;
	v->height_pixels = height_pixels;
	v->fourcc = fourcc_of(f);
	v->stride_bytes = (uint32_t)stride;
	v->frame_bytes = (uint32_t)bytes;
	return ERR_OK;
}

struct track video_track(const struct video *v, uint32_t rate_num, uint32_t rate_den)
{
	struct track t = {
		.kind = TRACK_VIDEO, .policy = TRACK_CONTINUOUS, .codec = TRACK_RAW_VIDEO, .rate_num = rate_num, .rate_den = rate_den,
		.nominal_dur = 1, .largest_object_bytes = v->frame_bytes, .next_utc_ns = UNITS_UNKNOWN_NS,
	};

	put_le32(t.rest, v->width_pixels);
	put_le32(t.rest + 4, v->height_pixels);
	put_le32(t.rest + 8, v->fourcc);
	put_le32(t.rest + 12, v->stride_bytes);
	put_le32(t.rest + 16, v->frame_bytes);
	put_le16(t.rest + 20, v->aspect_num);
	put_le16(t.rest + 22, v->aspect_den);
	t.rest[24] = v->colour;
	return t;
}

enum err video_of_track(struct video *v, const struct track *t)
{
	*v = (struct video){
		.width_pixels = get_le32(t->rest), .height_pixels = get_le32(t->rest + 4), .fourcc = get_le32(t->rest + 8),
		.stride_bytes = get_le32(t->rest + 12), .frame_bytes = get_le32(t->rest + 16),
		.aspect_num = get_le16(t->rest + 20), .aspect_den = get_le16(t->rest + 22), .colour = t->rest[24],
	};
	if (t->kind != TRACK_VIDEO || t->codec != TRACK_RAW_VIDEO)
		return ERR_FORMAT;
	if (!v->width_pixels || !v->height_pixels || v->width_pixels > VIDEO_MAX_SIDE_PIXELS || v->height_pixels > VIDEO_MAX_SIDE_PIXELS)
		return ERR_LIMIT;
	if (!v->frame_bytes || v->frame_bytes > VIDEO_MAX_FRAME_BYTES)
		return ERR_LIMIT;

	/* A layout that is known here has one size; of others the frame's is believed. */
	const struct video_format *f = video_format_by_fourcc(v->fourcc);
	struct video expected;
	if (f && (video_init(&expected, f, v->width_pixels, v->height_pixels) || expected.frame_bytes != v->frame_bytes))
		return ERR_FORMAT;
	return ERR_OK;
}
