#include "stage/takes.h"

#include "base/role.h"
#include "stage/preroll.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHORTEST_PIECE_FRAMES 12000   /* of Opus: no packet is cut twice */
#define NO_CUT INT64_MAX
#define MAX_GAP_S 3600                /* unless the options say otherwise */

/* Where a take lies, as tags: its first frame on the timeline of its track, and the time of that. */
struct place_tags {
	char position[48], time[64];
	const char *list[ARRAY_LEN(((struct opt_list *)0)->value) + 3];
};

struct take {
	struct takes *all;
	struct track track;           /* as announced last; first_pos of what is written */
	struct sink sink;
	bool is_open;
	bool started;                 /* something of it came */
	bool changed;                 /* the format is a new one: the next packet begins a piece */
	bool relinks;                 /* Opus announced anew: the next packet may begin a run of its own, */
	int64_t link_pos;             /* whose first frame lies here */
	bool unsettled;
	unsigned n_pieces;
	int64_t next_pos;             /* where the next frame should lie, on the track's timeline */
	int64_t cut_pos;              /* the piece ends here, or NO_CUT */
	int64_t told_pos;             /* losses up to here were counted */
	int64_t begin_pos;            /* the first frame to be written, when it is known before the first packet */
	bool has_begin;
	int64_t clock_pos, clock_utc_ns; /* the newest position whose wall-clock is known; utc unknown: none yet */
	int64_t boundary_ns;          /* split_on_clock: the next cut */
	struct preroll preroll;       /* for Opus that is cut */
	struct place_tags place;      /* of the piece, with on_level */
};

/* ---- life ---- */

enum err takes_open(struct takes *s, const struct takes_options *o, struct err_why *why)
{
	memset(s, 0, sizeof(*s));
	s->options = *o;
	bool splits = o->split_every.is_set, makes_several = splits || o->on_level;
	enum err e = takename_parse(&s->name, o->pattern, why);
	if (e)
		return e;
	if (splits && !strcmp(o->pattern, "-"))
		return err_say(why, ERR_ARG, "--split-every", "makes several files: give -o a name, not '-'");
	if (o->on_level && !strcmp(o->pattern, "-"))
		return err_say(why, ERR_ARG, "--start-above", "makes several files: give -o a name, not '-'");
	if (o->split_on_clock && !splits)
		return err_say(why, ERR_ARG, "--split-on-clock", "says where --split-every cuts: give both");
	if (o->split_on_clock && o->split_every.is_frames)
		return err_say(why, ERR_ARG, "--split-on-clock", "needs --split-every as a time, not in frames");
	if (splits && o->split_every.value <= 0)
		return err_say(why, ERR_ARG, "--split-every", "must be more than nothing");
	/* A name without conversions is known now: refuse it before any work is done. */
	if (!s->name.has_track && !s->name.has_name && !s->name.has_time && !s->name.has_piece && !makes_several) {
		char *path = NULL;
		if ((e = takename_make(&s->name, &(struct takename_values){ .n_tracks = 1 }, &path)))
			return err_say(why, e, o->pattern, "%s", err_text(e));
		e = sinkfile_check(path, o->sink.force, why);
		free(path);
		if (e)
			return e;
	}
	s->index = calloc(65536, sizeof(*s->index));
	return s->index ? ERR_OK : err_say(why, ERR_NOMEM, o->pattern, "%s", err_text(ERR_NOMEM));
}

static void take_free(struct take *t)
{
	sink_release(&t->sink);
	track_release(&t->track);
	preroll_release(&t->preroll);
	free(t);
}

void takes_release(struct takes *s)
{
	for (unsigned i = 0; i < s->n_takes; i++)
		take_free(s->list[i]);
	free(s->list);
	free(s->unsettled);
	free(s->index);
	free(s->used_names);
	memset(s, 0, sizeof(*s));
}

static enum err no_memory(struct takes *s)
{
	return err_say(&s->why, ERR_NOMEM, s->options.pattern, "%s", err_text(ERR_NOMEM));
}

/* ---- words ---- */

/* "0:02.000", "1:00:00.000": of n frames of t. */
static void put_time(char out[static 40], uint64_t n_frames, const struct track *t)
{
	uint64_t ms = (uint64_t)units_scale((int64_t)n_frames, 1000 * (int64_t)t->rate_den, t->rate_num);
	unsigned long long h = ms / 3600000, m = ms / 60000 % 60, s = ms / 1000 % 60;

	if (h)
		snprintf(out, 40, "%llu:%02llu:%02llu.%03u", h, m, s, (unsigned)(ms % 1000));
	else
		snprintf(out, 40, "%llu:%02llu.%03u", m, s, (unsigned)(ms % 1000));
}

/* ---- names ---- */

static bool is_used(const struct takes *s, uint64_t hash)
{
	for (size_t i = 0; i < s->n_used; i++)
		if (s->used_names[i] == hash)
			return true;
	return false;
}

static enum err use_name(struct takes *s, uint64_t hash)
{
	if (s->n_used == s->used_room) {
		size_t room = s->used_room ? 2 * s->used_room : 16;
		uint64_t *more = realloc(s->used_names, room * sizeof(*more));
		if (!more)
			return no_memory(s);
		s->used_names = more;
		s->used_room = room;
	}
	s->used_names[s->n_used++] = hash;
	return ERR_OK;
}

static uint64_t hash_of(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x100000001b3u;
	return hash;
}

/*
 * The name of a take's piece.  Names of one run differ: "-001" and so on is put before the ending where the pattern gives one
 * twice.  A later piece also steps aside for a file that is there already: a recording does not stop for a name.
 */
static enum err name_piece(struct take *t, unsigned piece, int64_t utc_ns, char **path)
{
	struct takes *s = t->all;
	char name[128];
	bool numbered = (s->options.split_every.is_set || s->options.on_level) && !s->name.has_piece && !s->name.has_time;
	struct takename_values v = {
		.track = t->track.id, .n_tracks = s->n_takes, .name = track_name(&t->track, name), .piece = piece, .utc_ns = utc_ns,
		.variant = numbered ? piece : 0,
	};

	if (!strcmp(s->options.pattern, "-")) {
		*path = strdup("-");
		return *path ? ERR_OK : no_memory(s);
	}
	for (;; v.variant++) {
		enum err e = takename_make(&s->name, &v, path);
		if (e)
			return err_say(&s->why, e, s->options.pattern, "the name it makes: %s", err_text(e));
		bool taken = is_used(s, hash_of(*path));
		if (!taken && (piece > 1 || (s->options.on_level && s->checked)) && v.variant < 100000)
			taken = sinkfile_check(*path, s->options.sink.force, NULL) != ERR_OK;
		if (!taken)
			return ERR_OK;
		free(*path);
		*path = NULL;
	}
}

/* ---- time ---- */

static int64_t now_utc_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * UNITS_NS_PER_S + ts.tv_nsec;
}

static uint32_t rate_of(const struct take *t)
{
	return t->track.rate_num;
}

/* 1970 itself is what a field says that nobody filled in. */
static bool is_time(int64_t utc_ns)
{
	return utc_ns > 0;
}

/* Wall-clock of a position, from the newest packet that carried one, or the stream's zero; or UNITS_UNKNOWN_NS. */
static int64_t utc_of(const struct take *t, int64_t pos)
{
	if (t->clock_utc_ns != UNITS_UNKNOWN_NS)
		return t->clock_utc_ns + units_to_ns(pos - t->clock_pos, rate_of(t), t->track.rate_den);
	if (is_time(t->all->options.t0_utc_ns))
		return t->all->options.t0_utc_ns + units_to_ns(pos, rate_of(t), t->track.rate_den);
	return UNITS_UNKNOWN_NS;
}

/* Where the piece that begins at pos ends. */
static void plan_cut(struct take *t, int64_t pos)
{
	const struct takes_options *o = &t->all->options;
	int64_t utc_ns = utc_of(t, pos);

	t->cut_pos = NO_CUT;
	if (!o->split_every.is_set)
		return;
	if (!o->split_on_clock || utc_ns == UNITS_UNKNOWN_NS) {
		int64_t length = opt_time_frames(&o->split_every, rate_of(t), t->track.rate_den);
		t->cut_pos = pos + (length > 0 ? length : 1);
		return;
	}
	/* The first multiple after it; after a cut, which is up to a frame off, not the same one again. */
	int64_t every_ns = o->split_every.value;
	int64_t floor_ns = utc_ns - ((utc_ns % every_ns) + every_ns) % every_ns;
	t->boundary_ns = t->boundary_ns == floor_ns + every_ns ? floor_ns + 2 * every_ns : floor_ns + every_ns;
	t->cut_pos = pos + units_scale(t->boundary_ns - utc_ns, rate_of(t), UNITS_NS_PER_S * t->track.rate_den);
}

/* A packet with a wall-clock time says more exactly which frame is the nearest to the boundary. */
static void follow_clock(struct take *t, int64_t pos, int64_t utc_ns)
{
	if (!is_time(utc_ns))
		return;
	t->clock_pos = pos;
	t->clock_utc_ns = utc_ns;
	if (!t->started || !t->all->options.split_on_clock || !t->is_open)
		return;
	int64_t cut_pos = pos + units_scale(t->boundary_ns - utc_ns, rate_of(t), UNITS_NS_PER_S * t->track.rate_den);
	t->cut_pos = cut_pos > t->next_pos ? cut_pos : t->next_pos;
}

/* ---- opening and closing a piece ---- */

static enum err keep_why(struct take *t, enum err e)
{
	if (e)
		t->all->why = t->sink.why;
	return e;
}

static enum err open_waiting(struct take *t, const char *path, struct sink_args *args)
{
	struct takes *s = t->all;

	enum err e = sink_open(&t->sink, path, &t->track, args, &s->why);
	if (e != ERR_AGAIN)
		return e;
	if (s->options.warn)
		s->options.warn(s->options.user, path, "waiting for a reader");
	args->wait = true;
	return sink_open(&t->sink, path, &t->track, args, &s->why);
}

static void add_place(struct place_tags *p, struct sink_args *args, int64_t pos, int64_t utc_ns)
{
	size_t n = 0;
	struct tm tm;
	time_t s = (time_t)(utc_ns / UNITS_NS_PER_S);

	for (; args->tags && args->tags[n] && n < ARRAY_LEN(p->list) - 3; n++)
		p->list[n] = args->tags[n];
	snprintf(p->position, sizeof(p->position), "START_POSITION=%" PRId64, pos);
	p->list[n++] = p->position;
	if (is_time(utc_ns) && gmtime_r(&s, &tm)) {
		size_t end = strftime(p->time, sizeof(p->time) - 8, "START_UTC=%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(p->time + end, sizeof(p->time) - end, ".%03uZ", (unsigned)(utc_ns % UNITS_NS_PER_S / 1000000));
		p->list[n++] = p->time;
	}
	p->list[n] = NULL;
	args->tags = p->list;
}

/* A piece whose frame 0 is at pos. */
static enum err open_piece(struct take *t, int64_t pos)
{
	struct takes *s = t->all;
	struct sink_args args = s->options.sink;
	int64_t utc_ns = utc_of(t, pos);
	char *path = NULL;

	if (s->options.on_level)
		add_place(&t->place, &args, pos, utc_ns);
	enum err e = name_piece(t, t->n_pieces + 1, utc_ns == UNITS_UNKNOWN_NS ? now_utc_ns() : utc_ns, &path);
	if (e)
		return e;
	t->track.first_pos = pos;
	args.serial = (uint32_t)hash_of(path) + t->n_pieces * 0x9E3779B9u + t->track.id;
	e = open_waiting(t, path, &args);
	if (!e && strcmp(path, "-"))
		e = use_name(s, hash_of(path));
	if (!e) {
		t->is_open = true;
		t->n_pieces++;
		plan_cut(t, pos);
		/* A file is told of when it is finished, with what its samples became; stdout is not. */
		if (t->sink.change[0] && t->n_pieces == 1 && s->options.change && !strcmp(path, "-"))
			s->options.change(s->options.user, "<stdout>", t->sink.change);
		if (t->sink.left_out[0] && t->n_pieces == 1 && s->options.change)
			s->options.change(s->options.user, strcmp(path, "-") ? path : "<stdout>", t->sink.left_out);
		if (t->sink.note[0] && t->n_pieces == 1 && s->options.note)
			s->options.note(s->options.user, path, t->sink.note);
	}
	free(path);
	return e;
}

static enum err close_piece(struct take *t, bool complete)
{
	struct takes *s = t->all;

	if (!t->is_open)
		return ERR_OK;
	enum err e = keep_why(t, sink_close(&t->sink, complete));
	t->is_open = false;
	s->clipped_samples += t->sink.clipped_samples;
	if (t->sink.clipped_samples && s->options.change) {
		char text[64];
		snprintf(text, sizeof(text), "%" PRIu64 " sample%s clipped", t->sink.clipped_samples, t->sink.clipped_samples == 1 ? "" : "s");
		s->options.change(s->options.user, strcmp(t->sink.file.path, "-") ? t->sink.file.path : "<stdout>", text);
	}
	if (!e && complete) {
		s->n_files++;
		if (s->options.finished && strcmp(t->sink.file.path, "-"))
			s->options.finished(s->options.user, &(struct takes_file){
				.path = t->sink.file.path, .track = &t->sink.track, .format = s->options.sink.format,
				.n_frames = t->sink.n_frames, .size_bytes = t->sink.file.size_bytes, .stored = t->sink.stored,
				.dithers = t->sink.dithers, .on_level = s->options.on_level });
	}
	sink_release(&t->sink);
	return e;
}

/* ---- what was kept of Opus ---- */

/* Into the piece that has just been opened at pos: the packets that a decoder needs before it, and those that hold frames of it. */
static enum err write_preroll(struct take *t, int64_t pos)
{
	const struct packet *p;
	enum err e = ERR_OK;

	for (unsigned i = 0; !e && t->preroll.ring && (p = preroll_packet(&t->preroll, pos, i)); i++)
		e = keep_why(t, sink_write(&t->sink, p));
	return e;
}

static enum err take_keeps(struct take *t)
{
	struct takes *s = t->all;

	if (t->preroll.ring || !track_is_opus(&t->track) || !s->options.split_every.is_set)
		return ERR_OK;
	if (opt_time_frames(&s->options.split_every, rate_of(t), t->track.rate_den) < SHORTEST_PIECE_FRAMES)
		return err_say(&s->why, ERR_ARG, "--split-every", "Opus is cut into pieces of 0.25 s and more");
	return preroll_init(&t->preroll, &t->track) ? no_memory(s) : ERR_OK;
}

/* ---- frames ---- */

static enum err cut(struct take *t)
{
	int64_t pos = t->cut_pos;

	enum err e = close_piece(t, true);
	if (!e)
		e = open_piece(t, pos);
	if (!e)
		e = write_preroll(t, pos);
	return e;
}

/* How many frames still go into this piece. */
static int64_t frames_left(const struct take *t)
{
	return t->cut_pos == NO_CUT ? NO_CUT : t->cut_pos - t->next_pos;
}

/* Silence from next_pos on, through as many pieces as it takes. */
static enum err write_silence(struct take *t, int64_t n_frames)
{
	enum err e = ERR_OK;

	while (!e && n_frames > 0) {
		if (t->next_pos >= t->cut_pos && (e = cut(t)))
			return e;
		int64_t n = frames_left(t) < n_frames ? frames_left(t) : n_frames;
		e = keep_why(t, sink_silence(&t->sink, (uint64_t)n));
		t->next_pos += n;
		t->all->gap_frames += (uint64_t)n;
		n_frames -= n;
	}
	return e;
}

static void note_unsettled(struct take *t)
{
	if (!t->unsettled)
		t->all->unsettled[t->all->n_unsettled++] = t;
	t->unsettled = true;
}

static enum err write_pcm(struct take *t, struct packet p)
{
	enum err e = ERR_OK;

	while (!e && p.dur > 0) {
		if (t->next_pos >= t->cut_pos && (e = cut(t)))
			return e;
		struct packet part = p;
		if (frames_left(t) < part.dur)
			part.dur = (uint32_t)frames_left(t);
		part.payload_bytes = part.dur * t->track.frame_bytes;
		note_unsettled(t);
		e = keep_why(t, sink_write(&t->sink, &part));
		/* Put together from fragments: it lies where the next one will. */
		if (!e && !p.head)
			e = keep_why(t, sink_settle(&t->sink));
		t->next_pos += part.dur;
		p.payload += part.payload_bytes;
		p.payload_bytes -= part.payload_bytes;
		p.dur -= part.dur;
	}
	return e;
}

static enum err write_opus(struct take *t, const struct packet *p)
{
	int64_t end_pos = p->pos + p->dur;
	enum err e = ERR_OK;

	/* It belongs to the next piece alone. */
	if (end_pos > t->cut_pos && p->pos >= t->cut_pos && (e = cut(t)))
		return e;
	if (preroll_add(&t->preroll, p))
		return no_memory(t->all);
	if (end_pos <= t->cut_pos) {
		e = keep_why(t, sink_write(&t->sink, p));
	} else {
		/* It holds the cut: the end of one piece, and, as pre-roll, of the next, or of several. */
		struct packet first = *p;
		first.dur = (uint32_t)(t->cut_pos - p->pos);
		first.flags |= PACKET_TRIM;
		e = keep_why(t, sink_write(&t->sink, &first));
		while (!e && end_pos > t->cut_pos)
			e = cut(t);
	}
	if (end_pos > t->next_pos)
		t->next_pos = end_pos;
	return e;
}

/* ---- beginning ---- */

static bool tells_apart(const struct takes *s)
{
	return s->name.has_track || s->name.has_name;
}

/* The first piece's name must be free, and the container must hold the track. */
static enum err check_take(struct take *t, int64_t utc_ns)
{
	struct takes *s = t->all;
	char *path = NULL;

	enum err e = name_piece(t, 1, utc_ns, &path);
	if (!e)
		e = sink_check(s->options.sink.format, &t->track, path, &s->why);
	if (!e)
		e = sinkfile_check(path, s->options.sink.force, &s->why);
	free(path);
	return e;
}

static enum err check_names(struct takes *s)
{
	if (s->n_takes <= 1 || tells_apart(s))
		return ERR_OK;
	if (!strcmp(s->options.pattern, "-"))
		return err_say(&s->why, ERR_ARG, "-", "%u tracks do not fit into one %s; choose one with -t, or write --format weir", s->n_takes,
			sink_format_name(s->options.sink.format));
	return err_say(&s->why, ERR_ARG, s->options.pattern, "%u tracks need %u files: put %%t (number) or %%n (name) into the name",
		s->n_takes, s->n_takes);
}

/* Where a track that is announced now would begin: where it stands, if it began long ago. */
static int64_t announced_pos(const struct track *t)
{
	return t->next_pos > t->first_pos ? t->next_pos : t->first_pos;
}

static void find_sync(struct takes *s)
{
	for (unsigned i = 0; i < s->n_takes; i++) {
		const struct track *t = &s->list[i]->track;
		int64_t pos = announced_pos(t);
		if (i == 0 || units_compare(pos, t->rate_num, t->rate_den, s->sync_n, s->sync_num, s->sync_den) < 0) {
			s->sync_n = pos;
			s->sync_num = t->rate_num;
			s->sync_den = t->rate_den;
		}
	}
}

/* n units of one rate in units of another, to nearest. */
static int64_t rescale(int64_t n, uint32_t from_num, uint32_t from_den, uint32_t to_num, uint32_t to_den)
{
	return from_num == to_num && from_den == to_den ? n :
		units_scale(n, (int64_t)to_num * from_den, (int64_t)from_num * to_den);
}

static int64_t sync_pos(const struct take *t)
{
	const struct takes *s = t->all;
	return rescale(s->sync_n, s->sync_num, s->sync_den, t->track.rate_num, t->track.rate_den);
}

enum err takes_start(struct takes *s, int64_t utc_ns)
{
	if (s->started)
		return ERR_OK;
	s->started = true;
	if (s->n_takes == 0)
		return err_say(&s->why, ERR_FORMAT, s->options.pattern, "there is no track to write");
	enum err e = check_names(s);
	for (unsigned i = 0; !e && i < s->n_takes; i++)
		e = check_take(s->list[i], is_time(utc_ns) ? utc_ns : now_utc_ns());
	if (!e && s->options.sync)
		find_sync(s);
	s->checked = !e;
	return e;
}

/* ---- announcements ---- */

static struct take *take_of(const struct takes *s, uint16_t id)
{
	uint16_t place = s->index[id];
	return place ? s->list[place - 1] : NULL;
}

static enum err add_take(struct takes *s, uint16_t id)
{
	if (s->n_takes == s->room) {
		unsigned room = s->room ? 2 * s->room : 8;
		struct take **list = realloc(s->list, room * sizeof(struct take *));
		if (list)
			s->list = list;
		struct take **unsettled = realloc(s->unsettled, room * sizeof(struct take *));
		if (unsettled)
			s->unsettled = unsettled;
		if (!list || !unsettled)
			return no_memory(s);
		s->room = room;
	}
	struct take *t = calloc(1, sizeof(*t));
	if (!t)
		return no_memory(s);
	t->all = s;
	t->cut_pos = NO_CUT;
	t->told_pos = INT64_MIN;
	t->clock_utc_ns = UNITS_UNKNOWN_NS;
	s->list[s->n_takes++] = t;
	s->index[id] = (uint16_t)s->n_takes;
	return ERR_OK;
}

/* Would a file of the one hold the other? */
static bool same_format(const struct track *a, const struct track *b)
{
	return a->codec == b->codec && a->rate_num == b->rate_num && a->rate_den == b->rate_den && a->channels == b->channels &&
		a->sample == b->sample && sink_wave_mask(a) == sink_wave_mask(b) && a->opus_family == b->opus_family &&
		a->opus_streams == b->opus_streams && a->opus_coupled == b->opus_coupled && a->gain_q8 == b->gain_q8;
}

/* A track that is being written is announced anew: the same format with other names and tags, or another one. */
static void announce_again(struct take *t, const struct track *old, const struct track *now)
{
	if (!same_format(old, now)) {
		t->changed = true;
		return;
	}
	if (track_is_opus(now)) {
		t->relinks = true;
		t->link_pos = now->first_pos;
	}
	t->track.first_pos = old->first_pos;
}

enum err takes_announce(struct takes *s, const struct track *announced)
{
	struct track copy = {0};
	struct take *t = take_of(s, announced->id);
	enum err e = ERR_OK;

	if (!t && (e = add_take(s, announced->id)))
		return e;
	t = take_of(s, announced->id);
	if (track_copy(&copy, announced))
		return no_memory(s);
	struct track old = t->track;
	t->track = copy;
	if (t->started)
		announce_again(t, &old, &copy);
	else if (is_time(announced->next_utc_ns)) {
		t->clock_pos = announced_pos(announced);
		t->clock_utc_ns = announced->next_utc_ns;
	}
	track_release(&old);
	if ((e = take_keeps(t)) || !s->started)
		return e;
	if ((e = check_names(s)))
		return e;
	return sink_check(s->options.sink.format, &t->track, s->options.pattern, &s->why);
}

/* ---- holes that are too long ---- */

static enum err sync_ends(struct takes *s);

static int64_t max_gap_frames(const struct take *t)
{
	const struct opt_time *o = &t->all->options.max_gap;
	const struct opt_time usual = { .is_set = true, .value = MAX_GAP_S * UNITS_NS_PER_S };
	return opt_time_frames(o->is_set ? o : &usual, rate_of(t), t->track.rate_den);
}

/* Has another track come so far that silence up to pos is not more than it has frames for? */
static bool others_reached(const struct take *t, int64_t pos)
{
	const struct takes *s = t->all;

	for (unsigned i = 0; i < s->n_takes; i++) {
		const struct take *other = s->list[i];
		if (other != t && other->is_open && units_compare(other->next_pos, rate_of(other), other->track.rate_den,
			pos - max_gap_frames(t), rate_of(t), t->track.rate_den) >= 0)
			return true;
	}
	return false;
}

/* Silence from `from` to pos would be longer than a file is to have; with sync, as far as the other tracks do not need it. */
static bool is_too_long(const struct take *t, int64_t from, int64_t pos)
{
	int64_t n_frames;

	if (pos <= from || (!__builtin_sub_overflow(pos, from, &n_frames) && n_frames <= max_gap_frames(t)))
		return false;
	return !t->all->options.sync || !others_reached(t, pos);
}

/* Nothing comes for very long: the file ends, and another one begins at pos.  With sync, so do those of the others. */
static enum err step_over(struct take *t, int64_t pos)
{
	struct takes *s = t->all;
	char text[160], time[40];
	enum err e = ERR_OK;

	put_time(time, (uint64_t)pos - (uint64_t)t->next_pos, &t->track);
	if (!strcmp(s->options.pattern, "-"))
		return err_say(&s->why, ERR_LIMIT, "<stdout>", "a gap of %s in track %u is longer than --max-gap, and it cannot go on in another file", time,
			t->track.id);
	if (s->options.warn) {
		snprintf(text, sizeof(text), "a gap of %s in track %u: it goes on in another file", time, t->track.id);
		s->options.warn(s->options.user, s->options.pattern, text);
	}
	if (s->options.sync) {
		e = sync_ends(s);
		s->sync_n = pos;
		s->sync_num = rate_of(t);
		s->sync_den = t->track.rate_den;
	}
	for (unsigned i = 0; !e && i < s->n_takes; i++) {
		struct take *other = s->list[i];
		if (other != t && !s->options.sync)
			continue;
		e = close_piece(other, true);
		other->started = false;
	}
	t->begin_pos = pos;
	t->has_begin = true;
	return e;
}

static void count_lost(struct take *t, int64_t to)
{
	int64_t from = t->told_pos > t->next_pos ? t->told_pos : t->next_pos;

	if (to > from)
		t->all->lost_frames += (uint64_t)(to - from);
}

/* ---- packets ---- */

/* The first frame of a take, or of a new format in it. */
static enum err begin(struct take *t, int64_t pos)
{
	struct takes *s = t->all;
	bool first = !t->started;
	enum err e = close_piece(t, true);

	if (e)
		return e;
	if (t->changed && s->options.warn) {
		char text[160];
		snprintf(text, sizeof(text), "track %u changes to %u Hz, %u channels, %s: it goes on in another file", t->track.id,
			track_rate_hz(&t->track), t->track.channels, track_sample_name((enum sample)t->track.sample));
		s->options.warn(s->options.user, s->options.pattern, text);
	}
	t->started = true;
	t->changed = false;
	t->relinks = false;
	preroll_clear(&t->preroll);
	t->next_pos = first && s->options.sync ? sync_pos(t) : pos;
	if (t->next_pos > pos)
		t->next_pos = pos;
	if (is_too_long(t, t->next_pos, pos)) {
		char text[160];
		snprintf(text, sizeof(text), "track %u begins more than --max-gap behind the others: without silence in front", t->track.id);
		if (s->options.warn)
			s->options.warn(s->options.user, s->options.pattern, text);
		t->next_pos = pos;
	}
	if ((e = open_piece(t, t->next_pos)))
		return e;
	return write_silence(t, pos - t->next_pos);
}

/* Frame 0 of the file, as the first packet tells: Opus begins before it, by its pre-skip; met in the middle, by the pre-roll. */
static int64_t beginning(const struct take *t, const struct packet *p)
{
	if (t->has_begin)
		return t->begin_pos;
	if (!track_is_opus(&t->track) || p->pos == t->track.first_pos)
		return p->pos;
	if (p->pos < t->track.first_pos)
		return t->track.first_pos;
	return p->pos + (t->track.preroll_frames <= PREROLL_FRAMES ? t->track.preroll_frames : PREROLL_FRAMES);
}

static bool is_loss(unsigned reason)
{
	return reason != PACKET_GAP_DTX && reason != PACKET_GAP_NOT_STARTED && reason != PACKET_GAP_PAUSED;
}

static enum err take_gap(struct take *t, const struct packet *p)
{
	struct packet_gap gap;
	int64_t end_pos = p->pos + p->dur;
	enum err e = ERR_OK;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		return ERR_OK;
	follow_clock(t, p->pos, gap.utc_ns);
	if (!t->started || t->changed) {
		bool waits = gap.reason == PACKET_GAP_NOT_STARTED || gap.reason == PACKET_GAP_PAUSED || (!t->started && t->n_pieces);
		if (waits) {
			/* Before its first frame: with sync it becomes silence then. */
			t->begin_pos = end_pos;
			t->has_begin = true;
			return ERR_OK;
		}
		e = begin(t, t->has_begin ? t->begin_pos : p->pos > t->track.first_pos ? p->pos : t->track.first_pos);
		t->has_begin = false;
	}
	if (e || end_pos <= t->next_pos)
		return e;
	if (is_loss(gap.reason))
		count_lost(t, end_pos);
	if (!is_too_long(t, t->next_pos, end_pos))
		return write_silence(t, end_pos - t->next_pos);
	/* With sync, what the others have in the meantime decides, when this track goes on. */
	t->told_pos = end_pos;
	return t->all->options.sync ? ERR_OK : step_over(t, end_pos);
}

/* The timeline was moved, and nothing is missing between: the file goes on without a hole. */
static void move_timeline(struct take *t, int64_t pos)
{
	int64_t moved = pos - t->next_pos;

	t->next_pos += moved;
	if (t->cut_pos != NO_CUT)
		t->cut_pos += moved;
}

/* Does this packet begin a run of its own?  Then the file gets another link. */
static enum err look_for_link(struct take *t, const struct packet *p)
{
	bool moved = p->flags & PACKET_DISCONT && p->pos > t->next_pos;
	bool begins = t->relinks && p->pos <= t->link_pos && t->link_pos >= t->next_pos;
	enum err e = ERR_OK;

	t->relinks = false;
	if (!moved && !begins)
		return ERR_OK;
	int64_t first_pos = begins ? t->link_pos : p->pos;
	if (moved)
		move_timeline(t, first_pos);
	else
		e = write_silence(t, first_pos - t->next_pos);
	if (e)
		return e;
	preroll_clear(&t->preroll);
	if (t->next_pos >= t->cut_pos)
		return cut(t);
	t->track.first_pos = first_pos;
	return keep_why(t, sink_relink(&t->sink, &t->track));
}

static enum err take_data(struct take *t, const struct packet *p)
{
	bool opus = track_is_opus(&t->track);
	enum err e = ERR_OK;

	follow_clock(t, p->pos, p->utc_ns);
	if (t->started && !t->changed && !(p->flags & PACKET_DISCONT) && is_too_long(t, t->next_pos, p->pos)) {
		count_lost(t, p->pos);
		if ((e = step_over(t, p->pos)))
			return e;
	}
	if (!t->started || t->changed) {
		if ((e = begin(t, beginning(t, p))))
			return e;
		t->has_begin = false;
	}
	if (opus && (e = look_for_link(t, p)))
		return e;
	if (!opus && p->flags & PACKET_DISCONT)
		move_timeline(t, p->pos);
	/* A hole that no GAP told of. */
	if (!opus && p->pos > t->next_pos) {
		count_lost(t, p->pos);
		e = write_silence(t, p->pos - t->next_pos);
	}
	if (e)
		return e;
	t->all->frames += p->dur;
	return opus ? write_opus(t, p) : write_pcm(t, *p);
}

enum err takes_packet(struct takes *s, const struct packet *p)
{
	struct take *t = take_of(s, p->track);
	enum err e = takes_start(s, p->utc_ns);

	role_forbid(ROLE_DEADLINE);
	if (e || !t)
		return e;
	if (p->type == PACKET_DATA)
		return take_data(t, p);
	return p->type == PACKET_GAP ? take_gap(t, p) : ERR_OK;
}

enum err takes_begin_at(struct takes *s, uint16_t id, int64_t pos, int64_t clock_pos, int64_t clock_utc_ns)
{
	struct take *t = take_of(s, id);

	if (!t)
		return ERR_OK;
	if (is_time(clock_utc_ns)) {
		t->clock_pos = clock_pos;
		t->clock_utc_ns = clock_utc_ns;
	}
	return begin(t, pos);
}

enum err takes_end_at(struct takes *s, uint16_t id, int64_t pos)
{
	struct take *t = take_of(s, id);
	enum err e = ERR_OK;

	if (!t || !t->started)
		return ERR_OK;
	if (pos > t->next_pos)
		e = write_silence(t, pos - t->next_pos);
	t->started = false;
	enum err closed = close_piece(t, !e);
	return e ? e : closed;
}

enum err takes_settle(struct takes *s)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n_unsettled; i++) {
		struct take *t = s->unsettled[i];
		t->unsettled = false;
		if (t->is_open && !e)
			e = keep_why(t, sink_settle(&t->sink));
	}
	s->n_unsettled = 0;
	return e;
}

/* ---- the end ---- */

/* Make all as long as the longest. */
static enum err sync_ends(struct takes *s)
{
	const struct take *last = NULL;
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->n_takes; i++) {
		const struct take *t = s->list[i];
		if (t->is_open && (!last || units_compare(t->next_pos, t->track.rate_num, t->track.rate_den, last->next_pos,
			last->track.rate_num, last->track.rate_den) > 0))
			last = t;
	}
	for (unsigned i = 0; last && !e && i < s->n_takes; i++) {
		struct take *t = s->list[i];
		/* Of both the same length from the common beginning, so that rounding the beginning does not matter. */
		int64_t end_pos = sync_pos(t) + rescale(last->next_pos - sync_pos(last), last->track.rate_num, last->track.rate_den,
			t->track.rate_num, t->track.rate_den);
		if (t->is_open && end_pos > t->next_pos)
			e = write_silence(t, end_pos - t->next_pos);
	}
	return e;
}

enum err takes_finish(struct takes *s, bool complete)
{
	enum err e = complete ? takes_start(s, UNITS_UNKNOWN_NS) : ERR_OK;
	struct err_why why;

	/* A track without a frame still makes a file. */
	for (unsigned i = 0; complete && !s->options.on_level && !e && i < s->n_takes; i++)
		if (!s->list[i]->started && !s->list[i]->n_pieces)
			e = begin(s->list[i], s->list[i]->track.first_pos);
	if (complete && !e && s->options.sync)
		e = sync_ends(s);
	if (!e)
		e = takes_settle(s);
	why = s->why;
	for (unsigned i = 0; i < s->n_takes; i++) {
		enum err closed = close_piece(s->list[i], complete && !e);
		if (closed && !e) {
			e = closed;
			why = s->why;
		}
	}
	s->why = why;
	return e;
}

const char *takes_describe(const struct takes_file *f, char out[static 128])
{
	static const char *const units[] = { "kB", "MB", "GB", "TB" };
	const struct track *t = f->track;
	double n = (double)f->size_bytes / 1000;
	unsigned unit = 0;
	char time[40], samples[40], from[48] = "";

	put_time(time, f->n_frames, t);
	if (f->on_level) {
		memcpy(from, ", from ", 8);
		put_time(from + 7, t->first_pos > 0 ? (uint64_t)t->first_pos : 0, t);
	}
	for (; n >= 999.95 && unit + 1 < ARRAY_LEN(units); unit++)
		n /= 1000;
	if (!track_is_pcm(t))
		samples[0] = 0;
	else if (f->stored && f->stored != t->sample)
		snprintf(samples, sizeof(samples), " %s (of %s%s)", track_sample_name(f->stored), track_sample_name((enum sample)t->sample),
			f->dithers ? ", dithered" : "");
	else
		snprintf(samples, sizeof(samples), " %s", track_sample_name((enum sample)t->sample));
	snprintf(out, 128, "%s %s%s %u Hz %u ch, %.1f %s%s", time, sink_format_name(f->format), samples, track_rate_hz(t), t->channels, n,
		units[unit], from);
	return out;
}
