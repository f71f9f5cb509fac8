#include "stage/join.h"

#include "base/role.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

enum state {
	WAITING,   /* a FIFO or a pipe from which nothing came yet: not opened as an input */
	HUNGRY,    /* to be read from */
	READY,     /* has a packet, is in the heap */
	ENDED,
};

struct join_source {
	struct input in;
	const char *name;         /* as given */
	enum state state;
	bool is_open;             /* `in` is */
	int probe_fd;             /* of WAITING; −1 */
	bool owns_probe;
	struct packet packet;     /* of READY */
	int64_t time_ns;          /* of it; of others where the next is expected */
	int64_t alive_ns;         /* monotonic: when something came last */
	bool shown;               /* its first tracks are known */
	uint16_t *ids;            /* new number by its own track number; 0: none */
	uint16_t *own;            /* its own numbers in order of appearance, for announcements */
	unsigned n_own, own_room;
	unsigned n_announced;     /* of those, handed out */
	unsigned n_tracks;        /* that have numbers */
	uint16_t kept_id;         /* a number kept for its first track; 0 none */
	uint8_t unwanted[65536 / 8]; /* a bit for each of its own numbers: as announced last it is not asked for */
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

static enum err open_source(struct join *j, struct join_source *s, struct err_why *why)
{
	enum err e = input_open(&s->in, s->name, &j->options.input, why);

	if (s->owns_probe)
		close(s->probe_fd);
	s->owns_probe = false;
	s->probe_fd = -1;
	if (e)
		return e;
	s->is_open = true;
	s->state = HUNGRY;
	return ERR_OK;
}

/* FIFOs and stdin among others are watched first: opening them as inputs could wait. */
static enum err begin_source(struct join *j, struct join_source *s, struct err_why *why)
{
	struct stat st;
	bool is_stdin = !strcmp(s->name, "-");

	s->probe_fd = -1;
	s->ids = calloc(65536, sizeof(*s->ids));
	if (!s->ids)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	if (j->n_sources == 1 && !j->options.with_others)
		return open_source(j, s, why);
	if (is_stdin && fstat(j->options.input.source.stdin_fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		s->probe_fd = j->options.input.source.stdin_fd;
	} else if (!is_stdin && stat(s->name, &st) == 0 && S_ISFIFO(st.st_mode)) {
		s->probe_fd = open(s->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (s->probe_fd < 0)
			return err_sys(why, s->name);
		s->owns_probe = true;
	} else {
		return open_source(j, s, why);
	}
	s->state = WAITING;
	return ERR_OK;
}

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
	j->heap = calloc(j->n_sources + 1, sizeof(struct join_source *));
	j->owners = calloc(65536, sizeof(*j->owners));
	if (!j->sources || !j->polls || !j->heap || !j->owners)
		return err_say(why, ERR_NOMEM, "inputs", "%s", err_text(ERR_NOMEM));
	for (unsigned i = 0; i < j->n_sources; i++) {
		j->sources[i].name = n ? names[i] : "-";
		n_stdin += !strcmp(j->sources[i].name, "-");
	}
	if (n_stdin > 1)
		return err_say(why, ERR_ARG, "<stdin>", "can be one input only");
	for (unsigned i = 0; i < j->n_sources && !e; i++)
		e = begin_source(j, &j->sources[i], why);
	j->n_hungry = j->n_sources;
	return e;
}

void join_release(struct join *j)
{
	for (unsigned i = 0; j->sources && i < j->n_sources; i++) {
		struct join_source *s = &j->sources[i];
		if (s->is_open)
			input_release(&s->in);
		if (s->owns_probe)
			close(s->probe_fd);
		free(s->ids);
		free(s->own);
	}
	free(j->sources);
	free(j->polls);
	free(j->heap);
	free(j->owners);
	memset(j, 0, sizeof(*j));
}

/* ---- the heap: earliest first, equal times by the order of the inputs ---- */

static bool is_before(const struct join_source *a, const struct join_source *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a < b;
}

static void heap_push(struct join *j, struct join_source *s)
{
	unsigned i = j->n_heap++;

	while (i > 0 && is_before(s, j->heap[(i - 1) / 2])) {
		j->heap[i] = j->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	j->heap[i] = s;
}

static struct join_source *heap_pop(struct join *j)
{
	struct join_source *top = j->heap[0], *last = j->heap[--j->n_heap];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;
		if (child >= j->n_heap)
			break;
		if (child + 1 < j->n_heap && is_before(j->heap[child + 1], j->heap[child]))
			child++;
		if (!is_before(j->heap[child], last))
			break;
		j->heap[i] = j->heap[child];
		i = child;
	}
	j->heap[i] = last;
	return top;
}

/* ---- one source ---- */

static bool is_unwanted(const struct join_source *s, uint16_t own)
{
	return s->unwanted[own / 8] >> own % 8 & 1;
}

/* Its track `own` has been announced (again): a place in the row of those to be handed out. */
static enum err note_track(struct join *j, struct join_source *s, uint16_t own)
{
	const struct track *t = input_track(&s->in, own);

	if (!t)
		return ERR_OK;
	s->unwanted[own / 8] &= (uint8_t)~(1u << own % 8);
	if (j->options.wants && !j->options.wants(j->options.user, t)) {
		s->unwanted[own / 8] |= (uint8_t)(1u << own % 8);
		return ERR_OK;
	}
	if (s->n_own == s->own_room) {
		unsigned room = s->own_room ? 2 * s->own_room : 8;
		uint16_t *more = realloc(s->own, room * sizeof(*more));
		if (!more)
			return err_say(&j->why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
		s->own = more;
		s->own_room = room;
	}
	s->own[s->n_own++] = own;
	return ERR_OK;
}

static enum err give_number(struct join *j, struct join_source *s, uint16_t own)
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

/* Where a packet stands in time, and where the one behind it is expected. */
static void place_packet(struct join_source *s, int64_t *end_ns)
{
	const struct packet *p = &s->packet;
	const struct track *t = p->track ? input_track(&s->in, p->track) : NULL;

	*end_ns = s->time_ns;
	if (!t || (p->type != PACKET_DATA && p->type != PACKET_GAP))
		return;
	s->time_ns = units_to_ns(p->pos, t->rate_num, t->rate_den);
	*end_ns = units_to_ns(p->pos + p->dur, t->rate_num, t->rate_den);
}

/*
 * On to the source's next packet: READY, HUNGRY or ENDED.  Announcements are gone through here: before the numbers are given out they
 * only wait in their row; after that the source is READY with the packet that stands for them.
 */
static enum err advance(struct join *j, struct join_source *s)
{
	int64_t end_ns;
	enum err e;

	for (;;) {
		e = input_next(&s->in, &s->packet);
		if (e == ERR_AGAIN) {
			s->state = HUNGRY;
			return ERR_OK;
		}
		if (e == ERR_END) {
			s->state = ENDED;
			s->shown = true;
			return ERR_OK;
		}
		if (e) {
			j->why = s->in.why;
			return e;
		}
		if (s->packet.type != PACKET_TRACK)
			break;
		if ((e = note_track(j, s, s->packet.track)))
			return e;
		if (!j->starting)
			break;
	}
	s->shown = true;
	s->state = READY;
	place_packet(s, &end_ns);
	heap_push(j, s);
	return ERR_OK;
}

/* ---- numbers ---- */

static enum err give_numbers(struct join *j)
{
	enum err e = ERR_OK;

	j->starting = false;
	for (unsigned i = 0; i < j->n_sources && !e; i++) {
		struct join_source *s = &j->sources[i];
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

/* The next announcement that waits in the row of one of the first sources. */
static bool next_announcement(struct join *j, struct packet *p)
{
	for (; j->announcing < j->n_sources; j->announcing++) {
		struct join_source *s = &j->sources[j->announcing];
		while (s->n_announced < s->n_own) {
			uint16_t own = s->own[s->n_announced++];
			if (is_unwanted(s, own))
				continue;
			*p = announcement(s->ids[own]);
			return true;
		}
		s->n_own = s->n_announced = 0;
	}
	return false;
}

/* Is a hungry source's next packet likely to be earlier than what is there? */
static bool is_behind(const struct join_source *s, const struct join_source *top)
{
	return (s->state == HUNGRY || s->state == WAITING) && s->time_ns <= top->time_ns;
}

/* Hand out a source's packet.  Returns: ERR_OK; ERR_AGAIN: it is of no interest. */
static enum err hand_out(struct join *j, struct join_source *s, struct packet *p)
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
	if (is_unwanted(s, p->track) && p->type != PACKET_END)
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
	struct join_source *s = j->last;

	if (!s)
		return ERR_OK;
	j->last = NULL;
	enum err e = advance(j, s);
	if (s->state == HUNGRY) {
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
	if (next_announcement(j, p))
		return ERR_OK;
	for (;;) {
		if (j->n_heap == 0)
			return j->n_hungry ? ERR_AGAIN : ERR_END;
		/* Those that are behind are looked at before others go on without them. */
		if (j->n_hungry && j->budget == 0 && j->behind_ns <= j->heap[0]->time_ns)
			return ERR_AGAIN;
		struct join_source *s = heap_pop(j);
		if (s == j->blocked)
			j->blocked = NULL;
		if (j->budget)
			j->budget--;
		e = hand_out(j, s, p);
		int64_t end_ns;
		place_packet(s, &end_ns);
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
	if (j->n_heap) {
		*time_ns = j->heap[0]->time_ns;
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

static int fd_of(const struct join_source *s)
{
	if (!s->is_open)
		return s->probe_fd;
	return s->in.is_stream ? s->in.fd : s->in.feed.tracks[0].source.fd;
}

/* One that has shown life lately, is no live stream, and is behind: worth a moment. */
static bool worth_waiting(const struct join *j, int64_t now)
{
	for (unsigned i = 0; i < j->n_sources; i++) {
		const struct join_source *s = &j->sources[i];
		if (s->is_open && s->in.is_stream && s->in.reader.stream.flags & PACKET_STREAM_LIVE)
			return false;
	}
	for (unsigned i = 0; i < j->n_sources; i++)
		if (is_behind(&j->sources[i], j->heap[0]) && now - j->sources[i].alive_ns < LIVELY_NS)
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
	if (j->n_heap == 0)
		return -1;
	if (j->blocked != j->heap[0]) {
		j->blocked = j->heap[0];
		j->blocked_ns = now;
	}
	return worth_waiting(j, now) && now - j->blocked_ns < BLOCKED_NS ? WAIT_NS : 0;
}

/* A source that can be read from: opened if it was not, filled, and on to its next packet. */
static enum err feed_source(struct join *j, struct join_source *s, short events, int64_t now)
{
	enum err e = ERR_OK;

	if (s->state == WAITING) {
		if (!(events & POLLIN) && !is_stopped(j))
			return err_say(&j->why, ERR_FORMAT, s->name, "its writer went away and wrote nothing");
		if (is_stopped(j)) {
			s->state = ENDED;
			s->shown = true;
			j->n_hungry--;
			return ERR_OK;
		}
		if ((e = open_source(j, s, &j->why)))
			return e;
	}
	if ((e = input_fill(&s->in))) {
		j->why = s->in.why;
		return e;
	}
	s->alive_ns = now;
	e = advance(j, s);
	s->alive_ns = now;
	if (s->state != HUNGRY)
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
		struct join_source *s = &j->sources[i];
		if (s->state != HUNGRY && s->state != WAITING)
			continue;
		/* Generators have no descriptor and are always ready; so is all when we are to stop. */
		at_once |= fd_of(s) < 0 || is_stopped(j);
		j->polls[n++] = (struct pollfd){ .fd = fd_of(s), .events = POLLIN };
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
		struct join_source *s = &j->sources[i];
		if (s->state != HUNGRY && s->state != WAITING)
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
		const struct join_source *s = &j->sources[i];
		if ((s->state == HUNGRY || s->state == WAITING) && s->time_ns < j->behind_ns)
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
		if (!j->starting && j->n_heap && (!n_fed || held_long || timeout_ns == 0)) {
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
	struct join_source *s = &j->sources[owner->source];
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
		const struct join_source *s = &j->sources[i];
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
