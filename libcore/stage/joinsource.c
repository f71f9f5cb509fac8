#include "stage/joinsource.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

enum err joinsource_open(struct joinsource *s, const struct input_options *o, struct err_why *why)
{
	enum err e = input_open(&s->in, s->name, o, why);

	if (s->owns_probe)
		close(s->probe_fd);
	s->owns_probe = false;
	s->probe_fd = -1;
	if (e)
		return e;
	s->is_open = true;
	s->state = JOINSOURCE_HUNGRY;
	return ERR_OK;
}

/* FIFOs and stdin among others are watched first: opening them as inputs could wait. */
enum err joinsource_begin(struct joinsource *s, const struct input_options *o, bool is_alone, struct err_why *why)
{
	struct stat st;
	bool is_stdin = !strcmp(s->name, "-");

	s->probe_fd = -1;
	s->ids = calloc(65536, sizeof(*s->ids));
	if (!s->ids)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	if (is_alone)
		return joinsource_open(s, o, why);
	if (is_stdin && fstat(o->source.stdin_fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		s->probe_fd = o->source.stdin_fd;
	} else if (!is_stdin && stat(s->name, &st) == 0 && S_ISFIFO(st.st_mode)) {
		s->probe_fd = open(s->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (s->probe_fd < 0)
			return err_sys(why, s->name);
		s->owns_probe = true;
	} else {
		return joinsource_open(s, o, why);
	}
	s->state = JOINSOURCE_WAITING;
	return ERR_OK;
}

void joinsource_release(struct joinsource *s)
{
	if (s->is_open)
		input_release(&s->in);
	if (s->owns_probe)
		close(s->probe_fd);
	free(s->ids);
	free(s->own);
	memset(s, 0, sizeof(*s));
}

bool joinsource_is_hungry(const struct joinsource *s)
{
	return s->state == JOINSOURCE_HUNGRY || s->state == JOINSOURCE_WAITING;
}

int joinsource_fd(const struct joinsource *s)
{
	if (!s->is_open)
		return s->probe_fd;
	return s->in.is_stream ? s->in.fd : s->in.feed.tracks[0].source.fd;
}

/* ---- packets ---- */

bool joinsource_is_unwanted(const struct joinsource *s, uint16_t own)
{
	return s->unwanted[own / 8] >> own % 8 & 1;
}

/* Its track `own` has been announced (again): a place in the row of those to be handed out. */
static enum err note_track(struct joinsource *s, uint16_t own, joinsource_wants_fn *wants, void *user, struct err_why *why)
{
	const struct track *t = input_track(&s->in, own);

	if (!t)
		return ERR_OK;
	s->unwanted[own / 8] &= (uint8_t)~(1u << own % 8);
	if (wants && !wants(user, t)) {
		s->unwanted[own / 8] |= (uint8_t)(1u << own % 8);
		return ERR_OK;
	}
	if (s->n_own == s->own_room) {
		unsigned room = s->own_room ? 2 * s->own_room : 8;
		uint16_t *more = realloc(s->own, room * sizeof(*more));
		if (!more)
			return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
		s->own = more;
		s->own_room = room;
	}
	s->own[s->n_own++] = own;
	return ERR_OK;
}

int64_t joinsource_place(struct joinsource *s)
{
	const struct packet *p = &s->packet;
	const struct track *t = p->track ? input_track(&s->in, p->track) : NULL;

	if (!t || (p->type != PACKET_DATA && p->type != PACKET_GAP))
		return s->time_ns;
	s->time_ns = units_to_ns(p->pos, t->rate_num, t->rate_den);
	return units_to_ns(p->pos + p->dur, t->rate_num, t->rate_den);
}

enum err joinsource_next(struct joinsource *s, joinsource_wants_fn *wants, void *user, bool only_row, struct err_why *why)
{
	enum err e;

	for (;;) {
		e = input_next(&s->in, &s->packet);
		if (e == ERR_AGAIN) {
			s->state = JOINSOURCE_HUNGRY;
			return ERR_OK;
		}
		if (e == ERR_END) {
			s->state = JOINSOURCE_ENDED;
			s->shown = true;
			return ERR_OK;
		}
		if (e) {
			*why = s->in.why;
			return e;
		}
		if (s->packet.type != PACKET_TRACK)
			break;
		if ((e = note_track(s, s->packet.track, wants, user, why)))
			return e;
		if (!only_row)
			break;
	}
	s->shown = true;
	s->state = JOINSOURCE_READY;
	(void)joinsource_place(s);
	return ERR_OK;
}
