/*
 * Raw pictures: what the video part of a TRACK packet says of them, and the layouts that have a name.  No I/O.
 */
#ifndef WIRE_VIDEO_H
#define WIRE_VIDEO_H

#include "wire/track.h"

#define VIDEO_MAX_SIDE_PIXELS 16384u
#define VIDEO_MAX_FRAME_BYTES (256u << 20)
#define VIDEO_MAX_RATE_HZ 1000u
#define VIDEO_MAX_RATE_DEN 1000000u

/* How the bytes of a picture lie: planes one after another, rows without padding.  Names are those of ffmpeg. */
struct video_format {
	const char *name;      /* "yuv420p" */
	char fourcc[4];
	uint8_t packed_bytes;  /* of packed_pixels pixels beside each other; 0: planes */
	uint8_t packed_pixels;
	uint8_t sample_bytes;  /* of planes */
	uint8_t shift_x, shift_y; /* a plane of colour is so many times halved, rounded up */
	uint8_t n_colour;      /* planes of colour; two in one count two */
	uint8_t n_full;        /* other planes of full size: luma, alpha */
	const char *y4m;       /* the colour space of a y4m header, NULL if it has none */
};

/* As in the TRACK packet. */
struct video {
	uint32_t width_pixels, height_pixels;
	uint32_t fourcc;       /* its bytes in order, first the lowest */
	uint32_t stride_bytes; /* of the first plane */
	uint32_t frame_bytes;
	uint16_t aspect_num, aspect_den; /* of a pixel; 0/0: not known */
	uint8_t colour;        /* matrix and range; 0 not known */
};

/* By its name, or by its fourcc; NULL: none here. */
const struct video_format *video_format_of(const char *name);
const struct video_format *video_format_by_fourcc(uint32_t fourcc);
/* The i-th of the table; NULL beyond the last. */
const struct video_format *video_format_at(unsigned i);

/*
 * Pictures of such a size.  Returns: ERR_OK; ERR_LIMIT: sides of 1…16384 pixels, frames of at most 256 MiB, else.
 */
enum err video_init(struct video *v, const struct video_format *f, uint32_t width_pixels, uint32_t height_pixels) WEIR_MUSTUSE;

/* The track of it: raw video, rate_num/rate_den pictures a second, not named. */
struct track video_track(const struct video *v, uint32_t rate_num, uint32_t rate_den);

/*
 * What a track says.  Returns: ERR_OK; ERR_FORMAT: no raw video, or its sizes do not fit each other; ERR_LIMIT.
 */
enum err video_of_track(struct video *v, const struct track *t) WEIR_MUSTUSE;

#endif
