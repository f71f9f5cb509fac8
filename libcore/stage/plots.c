#include "stage/plots.h"

#include "base/units.h"
#include "media/picture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum err open_file(struct plots *s, const char *path, struct err_why *why)
{
	const struct sinkfile_args args = { .force = s->force, .wait = true, .stdout_fd = STDOUT_FILENO, .stop = s->stop };
	return sinkfile_open(&s->file, path, &args, why);
}

static bool is_used(const struct plots *s, const char *path)
{
	for (unsigned i = 0; i < s->n_used; i++)
		if (!strcmp(s->used[i], path))
			return true;
	return false;
}

/* Keeps path. */
static enum err use(struct plots *s, char *path)
{
	if (s->n_used == s->used_room) {
		unsigned room = s->used_room ? 2 * s->used_room : 16;
		char **more = realloc(s->used, room * sizeof(*more));
		if (!more)
			return ERR_NOMEM;
		s->used = more;
		s->used_room = room;
	}
	s->used[s->n_used++] = path;
	return ERR_OK;
}

/* A new name, which is used from now on.  *path stays with s. */
static enum err next_name(struct plots *s, struct takename_values v, const char **path, struct err_why *why)
{
	char *name = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	v.utc_ns = (int64_t)now.tv_sec * UNITS_NS_PER_S + now.tv_nsec;
	for (;; v.variant++) {
		enum err e = takename_make(&s->name, &v, &name);
		if (e)
			return err_say(why, e, s->name.pattern, "the name it makes: %s", err_text(e));
		if (!is_used(s, name))
			break;
		free(name);
	}
	*path = name;
	if (use(s, name)) {
		free(name);
		return err_say(why, ERR_NOMEM, s->name.pattern, "%s", err_text(ERR_NOMEM));
	}
	return ERR_OK;
}

enum err plots_open(struct plots *s, const char *pattern, bool force, const volatile sig_atomic_t *stop, struct err_why *why)
{
	const char *path;

	*s = (struct plots){ .on = true, .force = force, .stop = stop, .file = { .fd = -1 } };
	enum err e = takename_parse(&s->name, pattern, why);
	if (!e)
		e = canvas_load(&s->canvas, why);
	if (e || s->name.has_track || s->name.has_name || s->name.has_piece || s->name.has_time)
		return e;
	e = next_name(s, (struct takename_values){ .n_tracks = 1 }, &path, why);
	return e ? e : open_file(s, path, why);
}

static enum err write_piece(void *arg, const void *bytes, size_t n_bytes)
{
	return sinkfile_put_copy(arg, bytes, n_bytes);
}

static enum err write_picture(struct plots *s, const struct meter *m, struct err_why *why)
{
	enum err e = picture_draw(&s->canvas, m);
	if (!e)
		e = canvas_write(&s->canvas, write_piece, &s->file);
	if (!e)
		e = sinkfile_flush(&s->file);
	if (!e) {
		e = sinkfile_close(&s->file, true, why);
		sinkfile_release(&s->file);
		return e;
	}
	if (s->file.failed)
		*why = s->file.why;
	else
		err_say(why, e, sinkfile_place(&s->file), "drawing failed: %s", err_text(e));
	/* Nothing of worth is in a picture that is not whole. */
	sinkfile_discard(&s->file);
	return e;
}

static enum err make_one(struct plots *s, const struct meter *m, unsigned n_meters, struct err_why *why)
{
	const char *path;
	enum err e = ERR_OK;

	if (s->file.fd < 0) {
		const struct takename_values v = { .track = m->id, .n_tracks = n_meters, .name = m->name, .piece = s->n_inputs };
		if (!strcmp(s->name.pattern, "-"))
			return err_say(why, ERR_FORMAT, "--plot", "'-' takes one picture, and there are more tracks: choose one with -t");
		if (!(e = next_name(s, v, &path, why)))
			e = open_file(s, path, why);
	}
	return e ? e : write_picture(s, m, why);
}

enum err plots_make(struct plots *s, const char *input, struct meter *const *meters, unsigned n_meters, struct err_why *why)
{
	enum err e = ERR_OK;

	s->n_inputs++;
	if (n_meters == 0)
		return err_say(why, ERR_FORMAT, input, "has no track to make a picture of");
	for (unsigned i = 0; !e && i < n_meters; i++)
		e = make_one(s, meters[i], n_meters, why);
	return e;
}

void plots_release(struct plots *s)
{
	if (!s->on)
		return;
	sinkfile_discard(&s->file);
	canvas_release(&s->canvas);
	for (unsigned i = 0; i < s->n_used; i++)
		free(s->used[i]);
	free(s->used);
	memset(s, 0, sizeof(*s));
}
