#include "stage/mixshape.h"

#include "mix/layouts.h"

#include <string.h>

/* ---- channels ---- */

static enum err read_matrix(struct mixshape *s, const struct mixin *in, unsigned channels, const char *path, struct err_why *why)
{
	unsigned all = 0;
	bool each = true;
	enum err e = matrixfile_read(&s->matrix, path, why);

	if (e)
		return e;
	for (unsigned i = 0; i < in->n_tracks; i++) {
		all += in->tracks[i]->channels;
		each &= in->tracks[i]->channels == s->matrix.columns;
	}
	s->matrix_is_whole = all == s->matrix.columns;
	if (!s->matrix_is_whole && !each)
		return err_say(why, ERR_FORMAT, path, "%u columns: the tracks have %u channels together, and not %u each", s->matrix.columns, all,
			s->matrix.columns);
	if (channels && channels != s->matrix.rows)
		return err_say(why, ERR_ARG, path, "%u rows, but -c asks for %u channels", s->matrix.rows, channels);
	s->channels = s->matrix.rows;
	s->wave_mask = track_usual_mask(s->channels);
	return ERR_OK;
}

static bool is_panned(const struct desk *d)
{
	for (unsigned i = 0; i < d->n_tracks; i++)
		if (d->tracks[i].is_panned)
			return true;
	return false;
}

enum err mixshape_find(struct mixshape *s, const struct mixin *in, const struct desk *d, unsigned channels, const char *matrix_path,
	struct err_why *why)
{
	if (matrix_path)
		return read_matrix(s, in, channels, matrix_path, why);
	if (channels) {
		s->channels = channels;
		s->wave_mask = track_usual_mask(channels);
		return ERR_OK;
	}
	for (unsigned i = 0; i < in->n_tracks; i++)
		if (in->tracks[i]->channels > s->channels) {
			s->channels = in->tracks[i]->channels;
			s->wave_mask = in->tracks[i]->wave_mask;
		}
	if (s->channels == 1 && is_panned(d)) {
		s->channels = 2;
		s->wave_mask = track_usual_mask(2);
	}
	return ERR_OK;
}

void mixshape_release(struct mixshape *s)
{
	matrixfile_release(&s->matrix);
	memset(s, 0, sizeof(*s));
}

/* ---- places ---- */

static bool has_sides(const struct mixshape *s)
{
	return s->channels >= 2 && (s->wave_mask & 3) == 3;
}

/* Left and right are the first two of any layout that has them. */
static bool can_pan(const struct mixshape *s, const struct mixin_track *t)
{
	return has_sides(s) && (t->channels <= 2 || s->channels == 2);
}

enum err mixshape_check_pans(const struct mixshape *s, const struct mixin *in, const struct desk *d, struct err_why *why)
{
	for (unsigned i = 0; i < d->n_tracks; i++)
		if (d->tracks[i].is_panned && !can_pan(s, in->tracks[i]))
			return err_say(why, ERR_ARG, "--pan", "track %u (%u channels) cannot be panned in a mix of %u channels", i + 1,
				in->tracks[i]->channels, s->channels);
	return ERR_OK;
}

static void pan_into(const struct mixshape *s, const struct mixin_track *t, double *coef, double pan)
{
	double p[4];

	if (t->channels <= 2) {
		memset(coef, 0, (size_t)s->channels * t->channels * sizeof(*coef));
		layouts_pan(coef, t->channels, pan);
		return;
	}
	layouts_pan(p, 2, pan);
	for (unsigned i = 0; i < t->channels; i++) {
		double l = coef[i], r = coef[t->channels + i];
		coef[i] = p[0] * l + p[1] * r;
		coef[t->channels + i] = p[2] * l + p[3] * r;
	}
}

/* ---- gains ---- */

enum err mixshape_fill(const struct mixshape *s, double *coef, const struct mixin_track *t, unsigned matrix_column, const struct desk_track *place,
	struct err_why *why)
{
	if (s->matrix.rows) {
		unsigned first = s->matrix_is_whole ? matrix_column : 0;
		if (first + t->channels > s->matrix.columns)
			return err_say(why, ERR_FORMAT, t->name, "has %u channels, the matrix has no columns for them", t->channels);
		for (unsigned o = 0; o < s->channels; o++)
			memcpy(coef + (size_t)o * t->channels, s->matrix.coef + (size_t)o * s->matrix.columns + first, t->channels * sizeof(double));
		return ERR_OK;
	}
	if (layouts_matrix(coef, s->channels, s->wave_mask, t->channels, t->wave_mask))
		return err_say(why, ERR_ARG, t->name, "%u channels without a layout do not go into %u: --matrix says how", t->channels, s->channels);
	if (place->is_panned && can_pan(s, t))
		pan_into(s, t, coef, place->pan);
	return ERR_OK;
}
