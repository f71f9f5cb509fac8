#include "stage/take.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHORTEST_PIECE_FRAMES 12000   /* of Opus: no packet is cut twice */

void take_free(struct take *t)
{
	sink_release(&t->sink);
	track_release(&t->track);
	preroll_release(&t->preroll);
	free(t);
}

static enum err no_memory(struct takes *s)
{
	return err_say(&s->why, ERR_NOMEM, s->options.pattern, "%s", err_text(ERR_NOMEM));
}

/* ---- words ---- */

/* "0:02.000", "1:00:00.000": of n frames of t. */
void take_put_time(char out[static 40], uint64_t n_frames, const struct track *t)
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

/* Wall-clock of a position, from the newest packet that carried one, or the stream's zero; or UNITS_UNKNOWN_NS. */
static int64_t utc_of(const struct take *t, int64_t pos)
{
	if (t->clock_utc_ns != UNITS_UNKNOWN_NS)
		return t->clock_utc_ns + units_to_ns(pos - t->clock_pos, take_rate(t), t->track.rate_den);
	if (take_is_time(t->all->options.t0_utc_ns))
		return t->all->options.t0_utc_ns + units_to_ns(pos, take_rate(t), t->track.rate_den);
	return UNITS_UNKNOWN_NS;
}

/* Where the piece that begins at pos ends. */
static void plan_cut(struct take *t, int64_t pos)
{
	const struct takes_options *o = &t->all->options;
	int64_t utc_ns = utc_of(t, pos);

	t->cut_pos = TAKE_NO_CUT;
	if (!o->split_every.is_set)
		return;
	if (!o->split_on_clock || utc_ns == UNITS_UNKNOWN_NS) {
		int64_t length = opt_time_frames(&o->split_every, take_rate(t), t->track.rate_den);
		t->cut_pos = pos + (length > 0 ? length : 1);
		return;
	}
	/* The first multiple after it; after a cut, which is up to a frame off, not the same one again. */
	int64_t every_ns = o->split_every.value;
	int64_t floor_ns = utc_ns - ((utc_ns % every_ns) + every_ns) % every_ns;
	t->boundary_ns = t->boundary_ns == floor_ns + every_ns ? floor_ns + 2 * every_ns : floor_ns + every_ns;
	t->cut_pos = pos + units_scale(t->boundary_ns - utc_ns, take_rate(t), UNITS_NS_PER_S * t->track.rate_den);
}

/* A packet with a wall-clock time says more exactly which frame is the nearest to the boundary. */
void take_follow_clock(struct take *t, int64_t pos, int64_t utc_ns)
{
	if (!take_is_time(utc_ns))
		return;
	t->clock_pos = pos;
	t->clock_utc_ns = utc_ns;
	if (!t->started || !t->all->options.split_on_clock || !t->is_open)
		return;
	int64_t cut_pos = pos + units_scale(t->boundary_ns - utc_ns, take_rate(t), UNITS_NS_PER_S * t->track.rate_den);
	t->cut_pos = cut_pos > t->next_pos ? cut_pos : t->next_pos;
}

/* ---- opening and closing a piece ---- */

enum err take_keep_why(struct take *t, enum err e)
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
	if (take_is_time(utc_ns) && gmtime_r(&s, &tm)) {
		size_t end = strftime(p->time, sizeof(p->time) - 8, "START_UTC=%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(p->time + end, sizeof(p->time) - end, ".%03uZ", (unsigned)(utc_ns % UNITS_NS_PER_S / 1000000));
		p->list[n++] = p->time;
	}
	p->list[n] = NULL;
	args->tags = p->list;
}

/* A piece whose frame 0 is at pos. */
enum err take_open(struct take *t, int64_t pos)
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

enum err take_close(struct take *t, bool complete)
{
	struct takes *s = t->all;

	if (!t->is_open)
		return ERR_OK;
	enum err e = take_keep_why(t, sink_close(&t->sink, complete));
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
		e = take_keep_why(t, sink_write(&t->sink, p));
	return e;
}

enum err take_keep_preroll(struct take *t)
{
	struct takes *s = t->all;

	if (t->preroll.ring || !track_is_opus(&t->track) || !s->options.split_every.is_set)
		return ERR_OK;
	if (opt_time_frames(&s->options.split_every, take_rate(t), t->track.rate_den) < SHORTEST_PIECE_FRAMES)
		return err_say(&s->why, ERR_ARG, "--split-every", "Opus is cut into pieces of 0.25 s and more");
	return preroll_init(&t->preroll, &t->track) ? no_memory(s) : ERR_OK;
}

/* ---- frames ---- */

enum err take_cut(struct take *t)
{
	int64_t pos = t->cut_pos;

	enum err e = take_close(t, true);
	if (!e)
		e = take_open(t, pos);
	if (!e)
		e = write_preroll(t, pos);
	return e;
}

/* How many frames still go into this piece. */
static int64_t frames_left(const struct take *t)
{
	return t->cut_pos == TAKE_NO_CUT ? TAKE_NO_CUT : t->cut_pos - t->next_pos;
}

/* Silence from next_pos on, through as many pieces as it takes. */
enum err take_silence(struct take *t, int64_t n_frames)
{
	enum err e = ERR_OK;

	while (!e && n_frames > 0) {
		if (t->next_pos >= t->cut_pos && (e = take_cut(t)))
			return e;
		int64_t n = frames_left(t) < n_frames ? frames_left(t) : n_frames;
		e = take_keep_why(t, sink_silence(&t->sink, (uint64_t)n));
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

enum err take_pcm(struct take *t, struct packet p)
{
	enum err e = ERR_OK;

	while (!e && p.dur > 0) {
		if (t->next_pos >= t->cut_pos && (e = take_cut(t)))
			return e;
		struct packet part = p;
		if (frames_left(t) < part.dur)
			part.dur = (uint32_t)frames_left(t);
		part.payload_bytes = part.dur * t->track.frame_bytes;
		note_unsettled(t);
		e = take_keep_why(t, sink_write(&t->sink, &part));
		/* Put together from fragments: it lies where the next one will. */
		if (!e && !p.head)
			e = take_keep_why(t, sink_settle(&t->sink));
		t->next_pos += part.dur;
		p.payload += part.payload_bytes;
		p.payload_bytes -= part.payload_bytes;
		p.dur -= part.dur;
	}
	return e;
}

enum err take_opus(struct take *t, const struct packet *p)
{
	int64_t end_pos = p->pos + p->dur;
	enum err e = ERR_OK;

	/* It belongs to the next piece alone. */
	if (end_pos > t->cut_pos && p->pos >= t->cut_pos && (e = take_cut(t)))
		return e;
	if (preroll_add(&t->preroll, p))
		return no_memory(t->all);
	if (end_pos <= t->cut_pos) {
		e = take_keep_why(t, sink_write(&t->sink, p));
	} else {
		/* It holds the cut: the end of one piece, and, as pre-roll, of the next, or of several. */
		struct packet first = *p;
		first.dur = (uint32_t)(t->cut_pos - p->pos);
		first.flags |= PACKET_TRIM;
		e = take_keep_why(t, sink_write(&t->sink, &first));
		while (!e && end_pos > t->cut_pos)
			e = take_cut(t);
	}
	if (end_pos > t->next_pos)
		t->next_pos = end_pos;
	return e;
}

/* The first piece's name must be free, and the container must hold the track. */
enum err take_check(struct take *t, int64_t utc_ns)
{
	struct takes *s = t->all;
	char *path = NULL;

	enum err e = name_piece(t, 1, take_is_time(utc_ns) ? utc_ns : now_utc_ns(), &path);
	if (!e)
		e = sink_check(s->options.sink.format, &t->track, path, &s->why);
	if (!e)
		e = sinkfile_check(path, s->options.sink.force, &s->why);
	free(path);
	return e;
}
