/*
 * The header of YUV4MPEG2 ("y4m"), a line of text in front of raw pictures, each of which has a short line of its own.
 * Source: yuv4mpeg(5) of mjpegtools.
 */
#ifndef MEDIA_Y4M_H
#define MEDIA_Y4M_H

#include "wire/video.h"

#define Y4M_MAGIC "YUV4MPEG2"
#define Y4M_MAX_HEADER_BYTES 512u /* with its newline */
#define Y4M_FRAME "FRAME"         /* each picture's line begins so */
#define Y4M_MAX_FRAME_LINE_BYTES 128u

/*
 * A header, without its newline.  rate_num and rate_den: 0 when it does not say.
 * Returns: ERR_OK; ERR_FORMAT, ERR_LIMIT with *why, thing being `name`.
 */
enum err y4m_parse(const char *line, const char *name, struct video *v, uint32_t *rate_num, uint32_t *rate_den, struct err_why *why) WEIR_MUSTUSE;

/*
 * The header of a track of raw video, with its newline: the one it came with, or one made here.
 * Returns: ERR_OK; ERR_FORMAT: y4m has no such pictures.
 */
enum err y4m_print(const struct track *t, char out[static Y4M_MAX_HEADER_BYTES]) WEIR_MUSTUSE;

#endif
