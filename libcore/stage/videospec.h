/*
 * mux --video's value: FD_OR_FIFO[,WIDTHxHEIGHT][,FORMAT][,FPS][,name=NAME].  What is left out has to be in a y4m header.
 */
#ifndef STAGE_VIDEOSPEC_H
#define STAGE_VIDEOSPEC_H

#include "wire/video.h"

struct videospec {
	char place[256];           /* as given: a path, "-", a number */
	int fd;                    /* of a number, or "-"; −1: place is a path */
	uint32_t width_pixels, height_pixels; /* 0: not given */
	const struct video_format *format;    /* NULL: not given */
	bool is_y4m;               /* FORMAT is y4m, or there is none */
	uint32_t rate_num, rate_den;          /* 0: not given */
	char name[128];            /* "" not given */
};

/* Returns: ERR_OK; ERR_ARG with *why, thing being `option`. */
enum err videospec_parse(struct videospec *s, const char *option, const char *text, struct err_why *why) WEIR_MUSTUSE;

/*
 * A rate of pictures: "60", "60000/1001", "30000:1001"; "23.976", "29.97", "59.94" and the like are those of television, n · 1000/1001
 * exactly; other decimals are taken as they stand, to a thousandth.  Returns: ERR_OK; ERR_ARG: none, or not within 1/1000 … 1000.
 */
enum err videospec_parse_rate(const char *text, uint32_t *num, uint32_t *den) WEIR_MUSTUSE;

#endif
