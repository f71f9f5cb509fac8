/*
 * A measured track as a picture: waveform, loudness over time and spectrogram, one above the other on the same time, with
 * what a report says in its title.
 */
#ifndef MEDIA_PICTURE_H
#define MEDIA_PICTURE_H

#include "media/canvas.h"
#include "meter/meter.h"

#define PICTURE_WIDTH 1600u
#define PICTURE_HEIGHT 900u

/*
 * Draw m, which has a plot (m->has_plot) and has ended, on a canvas that is loaded.  The picture is the canvas's, ready
 * for canvas_write().  Returns: ERR_OK, ERR_NOMEM.
 */
enum err picture_draw(struct canvas *c, const struct meter *m) WEIR_MUSTUSE;

#endif
