#include "stage/join.h"

#include "base/role.h"
#include "stage/joinsource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define START_PATIENCE_NS 500000000  /* until the numbers are given out without those that show nothing */
#define WAIT_NS 20000000             /* for one that is behind, before others go on */
#define BLOCKED_NS 50000000          /* the longest that one ahead is held */
#define LIVELY_NS 100000000          /* one from which nothing came for so long is not waited for */
#define BUDGET_PACKETS 64u
#define MAX_SOURCES 4096u

/* Whose track has a number: the input, and the track's number there, 0 if nobody's. */
struct join_owner {
	uint16_t source, own;
};

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * UNITS_NS_PER_S + ts.tv_nsec;
}

static bool is_stopped(const struct join *j)
{
	return j->options.input.reader.stop && *j->options.input.reader.stop;
}

/* ---- opening ---- */

enum err join_open(struct join *j, char *const *names, unsigned n, const struct join_options *o, struct err_why *why)
{
	unsigned n_stdin = 0;
	enum err e = ERR_OK;

	memset(j, 0, sizeof(*j));
	j->options = *o;
	j->n_sources = n ? n : o->no_input ? 0 : 1;
	j->starting = j->n_sources > 0;
	j->watch_ns = j->also_ns = -1;
	j->also.fd = -1;
	j->next_id = 1;
	if (n > MAX_SOURCES)
		return err_say(why, ERR_ARG, "inputs", "%u given (1 to %u)", n, MAX_SOURCES);
	j->sources = calloc(j->n_sources + 1, sizeof(*j->sources));
	j->polls = calloc(j->n_sources + JOIN_MAX_WATCH + 1, sizeof(*j->polls));
	j->owners = calloc(65536, sizeof(*j->owners));
	if (!j->sources || !j->polls || !j->owners || joinheap_init(&j->heap, j->n_sources))
		return err_say(why, ERR_NOMEM, "inputs", "%s", err_text(ERR_NOMEM));
	for (unsigned i = 0; i < j->n_sources; i++) {
		j->sources[i].name = n ? names[i] : "-";
		n_stdin += !strcmp(j->sources[i].name, "-");
	}
	if (n_stdin > 1)
		return err_say(why, ERR_ARG, "<stdin>", "can be one input only");
	for (unsigned i = 0; i < j->n_sources && !e; i++)
		e = joinsource_begin(&j->sources[i], &o->input, j->n_sources == 1 && !o->with_others, why);
	j->n_hungry = j->n_sources;
	return e;
}

void join_release(struct join *j)
{
	for (unsigned i = 0; j->sources && i < j->n_sources; i++)
		joinsource_release(&j->sources[i]);
	free(j->sources);
	free(j->polls);
	joinheap_release(&j->heap);
	free(j->owners);
	memset(j, 0, sizeof(*j));
}

/* ---- numbers ---- */

static enum err give_number(struct join *j, struct joinsource *s, uint16_t own)
{
	if (s->ids[own])
		return ERR_OK;
	if (!s->kept_id && j->next_id > PACKET_MAX_TRACK)
		return err_say(&j->why, ERR_LIMIT, s->name, "more than %u tracks", PACKET_MAX_TRACK);
	s->n_tracks++;
	s->ids[own] = s->kept_id ? s->kept_id : j->next_id++;
	s->kept_id = 0;
	j->owners[s->ids[own]] = (struct join_owner){ .source = (uint16_t)(s - j->sources), .own = own };
	return ERR_OK;
}

/* On to the source's next packet, and into the heap with it. */
static enum err advance(struct join *j, struct joinsource *s)
{
	enum err e = joinsource_next(s, j->options.wants, j->options.user, j->starting, &j->why);

	if (!e && s->state == JOINSOURCE_READY)
		joinheap_push(&j->heap, s);
	return e;
}

static enum err give_numbers(struct join *j)
{
	enum err e = ERR_OK;

	j->starting = false;
	for (unsigned i = 0; i < j->n_sources && !e; i++) {
		struct joinsource *s = &j->sources[i];
		if (!s->shown && j->next_id <= PACKET_MAX_TRACK)
			s->kept_id = j->next_id++;
		for (unsigned k = 0; k < s->n_own && !e; k++)
			e = give_number(j, s, s->own[k]);
	}
	return e;
}

static bool all_shown(const struct join *j)
{
	for (unsigned i = 0; i < j->n_sources; i++)
		if (!j->sources[i].shown)
			return false;
	return true;
}

/* ---- packets out ---- */

static struct packet announcement(uint16_t id)
{
	return (struct packet){
		.version = PACKET_VERSION, .type = PACKET_TRACK, .hunits = 1, .track = id, .utc_ns = UNITS_UNKNOWN_NS,
	};
}

/*
 * The next announcement that waits in the row of one of the first sources.  One that came when the numbers had been given out has none
 * yet.  Returns: ERR_OK; ERR_AGAIN: there is none; what give_number() says.
 */
static enum err next_announcement(struct join *j, struct packet *p)
{
	enum err e;

	for (; j->announcing < j->n_sources; j->announcing++) {
		struct joinsource *s = &j->sources[j->announcing];
		while (s->n_announced < s->n_own) {
			uint16_t own = s->own[s->n_announced++];
			if (joinsource_is_unwanted(s, own))
				continue;
			if ((e = give_number(j, s, own)))
				return e;
			*p = announcement(s->ids[own]);
			return ERR_OK;
		}
		s->n_own = s->n_announced = 0;
	}
	return ERR_AGAIN;
}

/* Is a hungry source's next packet likely to be earlier than what is there? */
static bool is_behind(const struct joinsource *s, const struct joinsource *top)
{
	return joinsource_is_hungry(s) && s->time_ns <= top->time_ns;
}

/* Hand out a source's packet.  Returns: ERR_OK; ERR_AGAIN: it is of no interest. */
static enum err hand_out(struct join *j, struct joinsource *s, struct packet *p)
{
	enum err e;

	*p = s->packet;
	if (p->type == PACKET_TRACK) {
		if (s->n_own == 0)
			return ERR_AGAIN; /* not wanted */
		s->n_own = 0;
		if ((e = give_number(j, s, p->track)))
			return e;
		*p = announcement(s->ids[p->track]);
		return ERR_OK;
	}
	if (p->track == 0)
		/* Clocks: of one stream.  What nobody knows passes. */
		return p->type != PACKET_CLOCK || s == j->sources ? ERR_OK : ERR_AGAIN;
	/* What a track holds that is another one now belongs to nobody, its end does. */
	if (joinsource_is_unwanted(s, p->track) && p->type != PACKET_END)
		return ERR_AGAIN;
	p->track = s->ids[p->track];
	if (!p->track)
		return ERR_AGAIN;
	if (p->type == PACKET_DATA)
		j->frames += p->dur;
	return ERR_OK;
}

/* The source whose packet was handed out last goes on to its next one, now that nobody looks at that any more. */
static enum err advance_last(struct join *j)
{
	struct joinsource *s = j->last;

	if (!s)
		return ERR_OK;
	j->last = NULL;
	enum err e = advance(j, s);
	if (s->state == JOINSOURCE_HUNGRY) {
		if (j->n_hungry++ == 0 || s->time_ns < j->behind_ns)
			j->behind_ns = s->time_ns;
	}
	return e;
}

enum err join_next(struct join *j, struct packet *p)
{
	enum err e = advance_last(j);

	if (e || j->starting)
		return e ? e : ERR_AGAIN;
	if ((e = next_announcement(j, p)) != ERR_AGAIN)
		return e;
	for (;;) {
		if (j->heap.n == 0)
			return j->n_hungry ? ERR_AGAIN : ERR_END;
		/* Those that are behind are looked at before others go on without them. */
		if (j->n_hungry && j->budget == 0 && j->behind_ns <= j->heap.sources[0]->time_ns)
			return ERR_AGAIN;
		struct joinsource *s = joinheap_pop(&j->heap);
		if (s == j->blocked)
			j->blocked = NULL;
		if (j->budget)
			j->budget--;
		e = hand_out(j, s, p);
		int64_t end_ns = joinsource_place(s);
		/* Another track of the same input may go on earlier than this one. */
		if (s->n_tracks <= 1)
			s->time_ns = end_ns;
		double position_s = (double)end_ns / UNITS_NS_PER_S;
		if (position_s > j->position_s)
			j->position_s = position_s;
		j->last = s;
		if (e == ERR_OK)
			j->n_packets++;
		if (e != ERR_AGAIN || (e = advance_last(j)))
			return e;
	}
}

enum err join_peek(struct join *j, int64_t *time_ns)
{
	enum err e = advance_last(j);

	*time_ns = j->behind_ns;
	if (e || j->starting)
		return e ? e : ERR_AGAIN;
	if (j->heap.n) {
		*time_ns = j->heap.sources[0]->time_ns;
		return ERR_OK;
	}
	return j->n_hungry ? ERR_AGAIN : ERR_END;
}

bool join_has_begun(const struct join *j)
{
	return !j->starting;
}

uint16_t join_take_id(struct join *j)
{
	return j->next_id <= PACKET_MAX_TRACK ? j->next_id++ : 0;
}

/* ---- reading on ---- */

/* One that has shown life lately, is no live stream, and is behind: worth a moment. */
static bool worth_waiting(const struct join *j, int64_t now)
{
	for (unsigned i = 0; i < j->n_sources; i++) {
		const struct joinsource *s = &j->sources[i];
		if (s->is_open && s->in.is_stream && s->in.reader.stream.flags & PACKET_STREAM_LIVE)
			return false;
	}
	for (unsigned i = 0; i < j->n_sources; i++)
		if (is_behind(&j->sources[i], j->heap.sources[0]) && now - j->sources[i].alive_ns < LIVELY_NS)
			return true;
	return false;
}

/* How long to wait for the hungry: −1, for ever, when there is nothing else to do. */
static int64_t patience_ns(struct join *j, int64_t now)
{
	if (j->starting) {
		int64_t left_ns = j->start_ns + START_PATIENCE_NS - now;
		return left_ns > 0 ? left_ns + 1000000 : 0;
	}
	if (j->heap.n == 0)
		return -1;
	if (j->blocked != j->heap.sources[0]) {
		j->blocked = j->heap.sources[0];
		j->blocked_ns = now;
	}
	return worth_waiting(j, now) && now - j->blocked_ns < BLOCKED_NS ? WAIT_NS : 0;
}

/* A source that can be read from: opened if it was not, filled, and on to its next packet. */
static enum err feed_source(struct join *j, struct joinsource *s, short events, int64_t now)
{
	bool is_read = false;
	enum err e = ERR_OK;

	if (s->state == JOINSOURCE_WAITING) {
		if (!(events & POLLIN) && !is_stopped(j))
			return err_say(&j->why, ERR_FORMAT, s->name, "its writer went away and wrote nothing");
		if (is_stopped(j)) {
			s->state = JOINSOURCE_ENDED;
			s->shown = true;
			j->n_hungry--;
			return ERR_OK;
		}
		if ((e = joinsource_open(s, &j->options.input, &j->why)))
			return e;
		/* To be known, a stream has been read from: there may be no more of it yet, and to read on would wait. */
		is_read = s->in.is_stream;
	}
	if (!is_read && (e = input_fill(&s->in))) {
		j->why = s->in.why;
		return e;
	}
	s->alive_ns = now;
	e = advance(j, s);
	s->alive_ns = now;
	if (s->state != JOINSOURCE_HUNGRY)
		j->n_hungry--;
	return e;
}

/* Look at the hungry ones, and read from all that have something. */
static enum err feed_hungry(struct join *j, int64_t timeout_ns, unsigned *n_fed)
{
	const struct timespec limit = { .tv_sec = timeout_ns / UNITS_NS_PER_S, .tv_nsec = timeout_ns % UNITS_NS_PER_S };
	static const struct timespec none;
	nfds_t n = 0;
	enum err e = ERR_OK;
	bool at_once = false;

	for (unsigned i = 0; i < j->n_sources; i++) {
		struct joinsource *s = &j->sources[i];
		if (!joinsource_is_hungry(s))
			continue;
		/* Generators have no descriptor and are always ready; so is all when we are to stop. */
		at_once |= joinsource_fd(s) < 0 || is_stopped(j);
		j->polls[n++] = (struct pollfd){ .fd = joinsource_fd(s), .events = POLLIN };
	}
	memcpy(j->polls + n, j->watch, j->n_watch * sizeof(*j->polls));
	j->polls[n + j->n_watch] = j->also;
	if (ppoll(j->polls, n + j->n_watch + 1, at_once ? &none : timeout_ns < 0 ? NULL : &limit, NULL) < 0) {
		if (errno != EINTR)
			return err_sys(&j->why, "poll");
		for (unsigned i = 0; i < n + j->n_watch + 1; i++)
			j->polls[i].revents = 0;
	}
	memcpy(j->watch, j->polls + n, j->n_watch * sizeof(*j->polls));
	j->also = j->polls[n + j->n_watch];
	int64_t now = now_ns();
	n = 0;
	for (unsigned i = 0; i < j->n_sources && !e; i++) {
		struct joinsource *s = &j->sources[i];
		if (!joinsource_is_hungry(s))
			continue;
		const struct pollfd *pfd = &j->polls[n++];
		if (pfd->revents || pfd->fd < 0 || is_stopped(j)) {
			e = feed_source(j, s, pfd->revents, now);
			(*n_fed)++;
		}
	}
	return e;
}

/* The earliest of those that are still hungry. */
static void find_behind(struct join *j)
{
	j->behind_ns = INT64_MAX;
	for (unsigned i = 0; i < j->n_sources; i++) {
		const struct joinsource *s = &j->sources[i];
		if (joinsource_is_hungry(s) && s->time_ns < j->behind_ns)
			j->behind_ns = s->time_ns;
	}
}

enum err join_fill(struct join *j)
{
	unsigned n_fed = 0;
	enum err e;

	role_forbid(ROLE_DEADLINE);
	if (j->n_sources == 1 && !j->options.with_others) {
		/* One input: it may wait as it likes. */
		e = feed_source(j, j->sources, POLLIN, 0);
	} else {
		int64_t now = now_ns();
		if (!j->start_ns)
			j->start_ns = now;
		int64_t timeout_ns = j->n_hungry ? patience_ns(j, now) : -1;
		if (j->watch_ns >= 0 && (timeout_ns < 0 || j->watch_ns < timeout_ns))
			timeout_ns = j->watch_ns;
		if (j->also_ns >= 0 && (timeout_ns < 0 || j->also_ns < timeout_ns))
			timeout_ns = j->also_ns;
		e = feed_hungry(j, timeout_ns, &n_fed);
		bool held_long = j->blocked && now_ns() - j->blocked_ns >= BLOCKED_NS;
		if (!j->starting && j->heap.n && (!n_fed || held_long || timeout_ns == 0)) {
			/* Nobody else came, or one was held for long enough: on without them. */
			j->budget = BUDGET_PACKETS;
			j->blocked = NULL;
		}
		find_behind(j);
	}
	bool may_wait = j->n_sources == 1 && !j->options.with_others;
	if (!e && j->starting && (all_shown(j) || (!may_wait && now_ns() - j->start_ns >= START_PATIENCE_NS)))
		e = give_numbers(j);
	return e;
}

/* ---- looking things up ---- */

const struct track *join_track(struct join *j, uint16_t id)
{
	const struct join_owner *owner = &j->owners[id];
	struct joinsource *s = &j->sources[owner->source];
	const struct track *t = owner->own ? input_track(&s->in, owner->own) : NULL;

	if (!t)
		return NULL;
	j->view = *t;
	j->view.id = id;
	j->view.ref_track = s->ids[t->ref_track];
	return &j->view;
}

const struct packet_stream *join_stream(const struct join *j)
{
	for (unsigned i = 0; i < j->n_sources; i++)
		if (j->sources[i].is_open && j->sources[i].in.is_stream)
			return &j->sources[i].in.reader.stream;
	return NULL;
}

struct input *join_input(struct join *j, unsigned i)
{
	return i < j->n_sources && j->sources[i].is_open ? &j->sources[i].in : NULL;
}

bool join_is_cut(const struct join *j)
{
	for (unsigned i = 0; i < j->n_sources; i++)
		if (j->sources[i].is_open && input_is_cut(&j->sources[i].in))
			return true;
	return false;
}

void join_describe_loss(const struct join *j, struct err_why *why)
{
	char loss[200];

	for (unsigned i = 0; i < j->n_sources; i++)
		if (j->sources[i].is_open && input_is_cut(&j->sources[i].in)) {
			input_describe_loss(&j->sources[i].in, loss, sizeof(loss));
			err_say(why, ERR_CUT, j->sources[i].in.name, "%s", loss);
			return;
		}
}

double join_total_s(const struct join *j)
{
	double total_s = -1;

	for (unsigned i = 0; i < j->n_sources; i++) {
		const struct joinsource *s = &j->sources[i];
		if (!s->is_open || s->in.is_stream)
			return -1;
		const struct source *source = &s->in.feed.tracks[0].source;
		if (source->n_frames < 0)
			return -1;
		double end_s = units_to_s(source->n_frames, source->track.rate_num, source->track.rate_den);
		if (end_s > total_s)
			total_s = end_s;
	}
	return total_s;
}
