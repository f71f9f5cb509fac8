/*
 * A picture to draw on, and PNG to write it as, by libcairo.  The library is loaded when it is first needed, so that a tool
 * which can draw does not start more slowly for it.
 *
 * Places and sizes are in pixels, from the top left corner.  An error of the library stays, and is told by canvas_write().
 */
#ifndef MEDIA_CANVAS_H
#define MEDIA_CANVAS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct canvas_library;

struct canvas {
	struct canvas_library *library; /* NULL: not loaded */
	void *surface, *context;  /* NULL: no picture begun */
	unsigned width, height;
};

enum canvas_align { CANVAS_LEFT, CANVAS_CENTRE, CANVAS_RIGHT };

struct canvas_font {
	double size;              /* of a letter M with its leading */
	bool bold;
};

/*
 * Load the library; *c must be zero or released.  It stays in the process.
 * Returns: ERR_OK; ERR_CODEC where it is not installed, or was not when this program was built; ERR_NOMEM.  Role: control.
 */
enum err canvas_load(struct canvas *c, struct err_why *why) WEIR_MUSTUSE;

/* Begin a picture, after one or more of them or the first; all of it is of one colour, 0xRRGGBB.  Returns: ERR_OK, ERR_NOMEM. */
enum err canvas_begin(struct canvas *c, unsigned width, unsigned height, uint32_t rgb) WEIR_MUSTUSE;

void canvas_release(struct canvas *c);

/* The colour of what follows; alpha 0…1. */
void canvas_colour(struct canvas *c, uint32_t rgb, double alpha);

void canvas_rectangle(struct canvas *c, double x, double y, double width, double height);

/* A path of points, then drawn as a line or filled; canvas_move() begins another part of it. */
void canvas_move(struct canvas *c, double x, double y);
void canvas_point(struct canvas *c, double x, double y);
void canvas_stroke(struct canvas *c, double width);
void canvas_dash(struct canvas *c, double width, double on, double off);
void canvas_fill(struct canvas *c);

/* What follows is drawn inside this rectangle only, until canvas_unclip(). */
void canvas_clip(struct canvas *c, double x, double y, double width, double height);
void canvas_unclip(struct canvas *c);

/*
 * Text on one line, y being its base line.  What is not UTF-8, and control characters, come out as U+FFFD; from where it
 * would be wider than max_width (0: any) it is left out, with "…" in its place.  Returns: the width drawn.
 */
double canvas_text(struct canvas *c, double x, double y, enum canvas_align align, struct canvas_font font, double max_width,
	const char *text);

/*
 * The pixels themselves, 0x00RRGGBB, and how many stand in a row; everything drawn so far is in them.  NULL after an error.
 * canvas_pixels_done() before the next drawing.
 */
uint32_t *canvas_pixels(struct canvas *c, size_t *stride_pixels);
void canvas_pixels_done(struct canvas *c);

/*
 * The picture as PNG, handed to write() in pieces.  The same picture is the same bytes.
 * Returns: what write() did; ERR_CODEC, ERR_NOMEM where the library failed, now or before.
 */
enum err canvas_write(struct canvas *c, enum err (*write)(void *arg, const void *bytes, size_t n_bytes), void *arg) WEIR_MUSTUSE;

#endif
