#include "media/canvas.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CAIRO

#include <cairo.h>
#include <dlfcn.h>
#include <math.h>

#define FONT "sans-serif"
#define MAX_TEXT_BYTES 512u

/* All of the library that is used here: the member `fill` is cairo_fill(), and so on. */
#define FUNCTIONS(X) \
	X(image_surface_create) X(surface_status) X(surface_flush) X(surface_mark_dirty) X(surface_destroy) \
	X(image_surface_get_data) X(image_surface_get_stride) X(surface_write_to_png_stream) \
	X(create) X(destroy) X(status) X(save) X(restore) X(paint) \
	X(set_source_rgba) X(rectangle) X(move_to) X(line_to) X(stroke) X(fill) X(clip) \
	X(set_line_width) X(set_line_join) X(set_dash) \
	X(select_font_face) X(set_font_size) X(text_extents) X(show_text)

struct canvas_library {
#define MEMBER(name) __typeof__(cairo_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

#ifdef WEIR_SANITIZED
/* The leak checker asks for these.  libfontconfig, below libcairo, keeps offsets where others keep pointers: what it still holds looks lost. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig.so\n";
}
#endif

/* A newer library that lacks a function is as good as none.  dlsym() gives an object pointer: copied, not cast. */
static bool find(void *handle, const char *name, void *function)
{
	void *symbol = dlsym(handle, name);
	memcpy(function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

enum err canvas_load(struct canvas *c, struct err_why *why)
{
	memset(c, 0, sizeof(*c));
	/* Never closed: its own libraries keep what they have read about fonts until the process ends. */
	void *handle = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return err_say(why, ERR_CODEC, "libcairo.so.2", "is needed to draw and not installed (Debian: libcairo2)");
	struct canvas_library *library = calloc(1, sizeof(*library));
	if (!library)
		return err_say(why, ERR_NOMEM, "libcairo.so.2", "%s", err_text(ERR_NOMEM));
	bool whole = true;
#define FIND(name) whole &= find(handle, "cairo_" #name, &library->name);
	FUNCTIONS(FIND)
#undef FIND
	if (!whole) {
		free(library);
		return err_say(why, ERR_CODEC, "libcairo.so.2", "lacks functions that drawing needs");
	}
	c->library = library;
	return ERR_OK;
}

static void drop_picture(struct canvas *c)
{
	if (c->context)
		c->library->destroy(c->context);
	if (c->surface)
		c->library->surface_destroy(c->surface);
	c->context = c->surface = NULL;
}

void canvas_release(struct canvas *c)
{
	drop_picture(c);
	free(c->library);
	memset(c, 0, sizeof(*c));
}

enum err canvas_begin(struct canvas *c, unsigned width, unsigned height, uint32_t rgb)
{
	const struct canvas_library *l = c->library;
	drop_picture(c);
	c->width = width;
	c->height = height;
	/* Neither is ever NULL; a failed one takes all calls and does nothing. */
	c->surface = l->image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
	c->context = l->create(c->surface);
	if (l->status(c->context) != CAIRO_STATUS_SUCCESS)
		return ERR_NOMEM;
	l->set_line_join(c->context, CAIRO_LINE_JOIN_ROUND);
	canvas_colour(c, rgb, 1);
	l->paint(c->context);
	return ERR_OK;
}

void canvas_colour(struct canvas *c, uint32_t rgb, double alpha)
{
	c->library->set_source_rgba(c->context, (rgb >> 16 & 0xFF) / 255.0, (rgb >> 8 & 0xFF) / 255.0, (rgb & 0xFF) / 255.0, alpha);
}

void canvas_rectangle(struct canvas *c, double x, double y, double width, double height)
{
	c->library->rectangle(c->context, x, y, width, height);
	c->library->fill(c->context);
}

void canvas_move(struct canvas *c, double x, double y)
{
	c->library->move_to(c->context, x, y);
}

void canvas_point(struct canvas *c, double x, double y)
{
	c->library->line_to(c->context, x, y);
}

void canvas_stroke(struct canvas *c, double width)
{
	c->library->set_line_width(c->context, width);
	c->library->stroke(c->context);
}

void canvas_dash(struct canvas *c, double width, double on, double off)
{
	const double dashes[] = { on, off };
	c->library->set_dash(c->context, dashes, 2, 0);
	canvas_stroke(c, width);
	c->library->set_dash(c->context, NULL, 0, 0);
}

void canvas_fill(struct canvas *c)
{
	c->library->fill(c->context);
}

void canvas_clip(struct canvas *c, double x, double y, double width, double height)
{
	c->library->save(c->context);
	c->library->rectangle(c->context, x, y, width, height);
	c->library->clip(c->context);
}

void canvas_unclip(struct canvas *c)
{
	c->library->restore(c->context);
}

/* As UTF-8 that the library takes: it would refuse the whole picture for a bad byte. */
static size_t clean_text(const char *text, char out[MAX_TEXT_BYTES])
{
	const uint8_t *s = (const uint8_t *)text;
	size_t left = strlen(text), n = 0;
	while (left && n + 8 < MAX_TEXT_BYTES) {
		unsigned length = utf8_length(s, left);
		bool good = length > 1 || (length == 1 && *s >= 0x20 && *s != 0x7F);
		memcpy(out + n, good ? (const char *)s : "\uFFFD", good ? length : 3);
		n += good ? length : 3;
		s += length ? length : 1;
		left -= length ? length : 1;
	}
	out[n] = 0;
	return n;
}

static double width_of(struct canvas *c, const char *text)
{
	cairo_text_extents_t extents;
	c->library->text_extents(c->context, text, &extents);
	return extents.x_advance;
}

double canvas_text(struct canvas *c, double x, double y, enum canvas_align align, struct canvas_font font, double max_width,
	const char *text)
{
	const struct canvas_library *l = c->library;
	char line[MAX_TEXT_BYTES];
	size_t n = clean_text(text, line);
	l->select_font_face(c->context, FONT, CAIRO_FONT_SLANT_NORMAL, font.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	l->set_font_size(c->context, font.size);
	double width = width_of(c, line);
	while (max_width > 0 && width > max_width && n) {
		while (n && ((uint8_t)line[--n] & 0xC0) == 0x80)
			; /* back to the beginning of a character */
		memcpy(line + n, "\u2026", 4);
		width = width_of(c, line);
	}
	l->move_to(c->context, align == CANVAS_LEFT ? x : align == CANVAS_RIGHT ? x - width : x - width / 2, y);
	l->show_text(c->context, line);
	return width;
}

uint32_t *canvas_pixels(struct canvas *c, size_t *stride_pixels)
{
	const struct canvas_library *l = c->library;
	l->surface_flush(c->surface);
	*stride_pixels = (size_t)l->image_surface_get_stride(c->surface) / sizeof(uint32_t);
	return (uint32_t *)(void *)l->image_surface_get_data(c->surface);
}

void canvas_pixels_done(struct canvas *c)
{
	c->library->surface_mark_dirty(c->surface);
}

struct out {
	enum err (*write)(void *arg, const void *bytes, size_t n_bytes);
	void *arg;
	enum err failed;
};

static cairo_status_t write_piece(void *closure, const unsigned char *bytes, unsigned n_bytes)
{
	struct out *out = closure;
	if (!out->failed)
		out->failed = out->write(out->arg, bytes, n_bytes);
	return out->failed ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

enum err canvas_write(struct canvas *c, enum err (*write)(void *arg, const void *bytes, size_t n_bytes), void *arg)
{
	const struct canvas_library *l = c->library;
	struct out out = { .write = write, .arg = arg };
	cairo_status_t status = l->status(c->context);
	if (status == CAIRO_STATUS_SUCCESS)
		status = l->surface_write_to_png_stream(c->surface, write_piece, &out);
	if (out.failed || status == CAIRO_STATUS_SUCCESS)
		return out.failed;
	return status == CAIRO_STATUS_NO_MEMORY ? ERR_NOMEM : ERR_CODEC;
}

#else

/* Built where libcairo is not: everything is refused at the door, and nothing behind it is ever reached. */

enum err canvas_load(struct canvas *c, struct err_why *why)
{
	memset(c, 0, sizeof(*c));
	return err_say(why, ERR_CODEC, "libcairo", "is needed to draw, and was not there when this program was built (Debian: libcairo2-dev)");
}

enum err canvas_begin(struct canvas *c, unsigned width, unsigned height, uint32_t rgb)
{
	(void)c, (void)width, (void)height, (void)rgb;
	return ERR_CODEC;
}

void canvas_release(struct canvas *c)
{
	memset(c, 0, sizeof(*c));
}

void canvas_colour(struct canvas *c, uint32_t rgb, double alpha)
{
	(void)c, (void)rgb, (void)alpha;
}

void canvas_rectangle(struct canvas *c, double x, double y, double width, double height)
{
	(void)c, (void)x, (void)y, (void)width, (void)height;
}

void canvas_move(struct canvas *c, double x, double y)
{
	(void)c, (void)x, (void)y;
}

void canvas_point(struct canvas *c, double x, double y)
{
	(void)c, (void)x, (void)y;
}

void canvas_stroke(struct canvas *c, double width)
{
	(void)c, (void)width;
}

void canvas_dash(struct canvas *c, double width, double on, double off)
{
	(void)c, (void)width, (void)on, (void)off;
}

void canvas_fill(struct canvas *c)
{
	(void)c;
}

void canvas_clip(struct canvas *c, double x, double y, double width, double height)
{
	(void)c, (void)x, (void)y, (void)width, (void)height;
}

void canvas_unclip(struct canvas *c)
{
	(void)c;
}

double canvas_text(struct canvas *c, double x, double y, enum canvas_align align, struct canvas_font font, double max_width,
	const char *text)
{
	(void)c, (void)x, (void)y, (void)align, (void)font, (void)max_width, (void)text;
	return 0;
}

uint32_t *canvas_pixels(struct canvas *c, size_t *stride_pixels)
{
	(void)c;
	*stride_pixels = 0;
	return NULL;
}

void canvas_pixels_done(struct canvas *c)
{
	(void)c;
}

enum err canvas_write(struct canvas *c, enum err (*write)(void *arg, const void *bytes, size_t n_bytes), void *arg)
{
	(void)c, (void)write, (void)arg;
	return ERR_CODEC;
}

#endif
