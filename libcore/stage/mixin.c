#include "stage/mixin.h"

#include "base/cpu.h"
#include "dsp/dsp.h"
#include "stage/mixopen.h"
#include "stage/mixtrack.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_stopped(const struct mixin *m)
{
	return m->options.stop && *m->options.stop;
}

static enum err no_memory(struct mixin *m, const char *thing)
{
	return err_say(&m->why, ERR_NOMEM, thing, "%s", err_text(ERR_NOMEM));
}

/* ---- streams ---- */

/* What lies in the reader must step aside. */
static enum err keep_current(struct mixin *m, struct mixin_input *input)
{
	struct mixin_track *t = input->current_track;
	const struct packet *p = &input->current;

	if (!t)
		return ERR_OK;
	input->current_track = NULL;
	return mixtrack_put(m, t, p->pos, p->dur, p->payload, t->in.frame_bytes);
}

static enum err take_packet(struct mixin *m, struct mixin_input *input, const struct packet *p)
{
	struct mixin_track *t = p->track ? mixtrack_find(input, p->track) : NULL;
	int64_t pos;

	m->packets++;
	if (p->type == PACKET_TRACK)
		return mixtrack_meet(m, input, p->track);
	if (!t || t->is_foreign)
		return ERR_OK;
	switch (p->type) {
	case PACKET_DATA:
		t->ended = false;
		pos = mixtrack_place(t, p);
		if (t->resampler)
			return mixtrack_resample(m, t, pos, p->payload, p->dur);
		input->current = *p;
		input->current.pos = pos;
		input->current_track = t;
		mixtrack_reach(t, pos + p->dur);
		return ERR_OK;
	case PACKET_GAP:
		return mixtrack_gap(m, t, mixtrack_place(t, p) + p->dur);
	case PACKET_END:
		return mixtrack_end(m, t);
	default:
		return ERR_OK;
	}
}

static bool would_wait(const struct mixin_input *input)
{
	struct pollfd p = { .fd = input->in.fd, .events = POLLIN };

	return !input->is_regular && poll(&p, 1, 0) == 0;
}

/* One packet of a stream.  Returns: ERR_OK, ERR_AGAIN: its next read would wait; else failed. */
static enum err step(struct mixin *m, struct mixin_input *input)
{
	struct packet p;
	enum err e;

	if (input->have_held) {
		input->have_held = false;
		return take_packet(m, input, &input->held);
	}
	if ((e = keep_current(m, input)))
		return e;
	e = input_next(&input->in, &p);
	if (e == ERR_AGAIN) {
		if (would_wait(input)) {
			m->waits_for = input;
			return ERR_AGAIN;
		}
		e = input_fill(&input->in);
		return e ? mixtrack_end_input(m, input, &input->in.why) : ERR_OK;
	}
	if (e == ERR_OK)
		return take_packet(m, input, &p);
	return mixtrack_end_input(m, input, e == ERR_END ? NULL : &input->in.why);
}

static bool lacks(const struct mixin_input *input, int64_t until)
{
	unsigned n_going = 0;

	if (input->ended || !input->in.is_stream)
		return false;
	for (unsigned i = 0; i < input->n_tracks; i++) {
		const struct mixin_track *t = input->tracks[i];
		n_going += !t->ended;
		if (!t->ended && t->known_pos < until)
			return true;
	}
	/* All its tracks have ended, but there may be more. */
	return n_going == 0;
}

enum err mixin_gather(struct mixin *m, int64_t until)
{
	enum err e, waits = ERR_OK;

	for (unsigned i = 0; i < m->n_inputs; i++) {
		struct mixin_input *input = &m->inputs[i];
		while (lacks(input, until)) {
			e = step(m, input);
			if (e == ERR_AGAIN) {
				waits = ERR_AGAIN;
				break;
			}
			if (e)
				return e;
		}
	}
	return waits;
}

enum err mixin_wait(struct mixin *m, int64_t until, int timeout_ms)
{
	struct pollfd p[64];
	struct mixin_input *input[64];
	nfds_t n = 0;

	for (unsigned i = 0; i < m->n_inputs && n < ARRAY_LEN(p); i++) {
		if (!lacks(&m->inputs[i], until) || m->inputs[i].is_regular)
			continue;
		p[n] = (struct pollfd){ .fd = m->inputs[i].in.fd, .events = POLLIN };
		input[n++] = &m->inputs[i];
	}
	if (!n || is_stopped(m)) {
		/* A stop: the reader must see it, and says that it is the end. */
		for (nfds_t k = 0; k < n; k++)
			if (input_fill(&input[k]->in))
				return mixtrack_end_input(m, input[k], &input[k]->in.why);
		return ERR_OK;
	}
	if (poll(p, n, timeout_ms) <= 0)
		return ERR_OK;
	for (nfds_t k = 0; k < n; k++)
		if (p[k].revents && input_fill(&input[k]->in)) {
			enum err e = mixtrack_end_input(m, input[k], &input[k]->in.why);
			if (e)
				return e;
		}
	return ERR_OK;
}

/* ---- frames out ---- */

/* What is to be done with [from, from + n) of a piece: as much of it as lies in the block. */
struct span {
	size_t skip_frames, n_frames;
	bool is_done;             /* nothing of it is left */
};

static struct span cut_span(struct mixin *m, struct mixin_track *t, int64_t piece_pos, size_t piece_frames, int64_t pos, size_t n_frames)
{
	const int64_t piece_end = piece_pos + (int64_t)piece_frames, end = pos + (int64_t)n_frames;
	int64_t from = piece_pos > pos ? piece_pos : pos;
	struct span s = { 0 };

	if (t->taken_pos > from)
		from = t->taken_pos;
	if (from >= piece_end) {
		/* A frame may come twice where a resampled run meets the next; more than that is late. */
		if (piece_frames > 1)
			m->late_frames += piece_frames;
		s.is_done = true;
		return s;
	}
	if (from >= end)
		return s;
	s.skip_frames = (size_t)(from - piece_pos);
	s.n_frames = (size_t)((piece_end < end ? piece_end : end) - from);
	s.is_done = piece_end <= end;
	t->taken_pos = from + (int64_t)s.n_frames;
	return s;
}

static void hand_out(struct mixin_track *t, int64_t pos, int64_t piece_pos, const uint8_t *frames, const struct span *s,
	mixin_frames_fn *fn, void *user)
{
	size_t frame_bytes = (size_t)track_sample_bytes(t->format) * t->channels;

	if (!s->n_frames)
		return;
	t->takes_frames += s->n_frames;
	fn(user, t, (size_t)(piece_pos + (int64_t)s->skip_frames - pos), frames + s->skip_frames * frame_bytes, s->n_frames);
}

static void announce(struct mixin_track *t, mixin_frames_fn *fn, void *user)
{
	if (t->is_new)
		fn(user, t, 0, NULL, 0);
}

static enum err take_queue(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, mixin_frames_fn *fn, void *user)
{
	uint8_t *record;
	size_t n_bytes;
	enum err e;

	while ((e = spool_peek(&t->queue, &record, &n_bytes)) == ERR_OK) {
		struct mixtrack_piece p;
		memcpy(&p, record, sizeof(p));
		if (p.n_frames == 0) {
			mixtrack_adopt(t, &p);
			announce(t, fn, user);
			spool_drop(&t->queue);
			continue;
		}
		struct span s = cut_span(m, t, p.pos, p.n_frames, pos, n_frames);
		hand_out(t, pos, p.pos, record + sizeof(p), &s, fn, user);
		if (!s.is_done)
			return ERR_OK;
		spool_drop(&t->queue);
	}
	if (e == ERR_SYS)
		return err_sys(&m->why, "temporary file");
	return e == ERR_END ? ERR_OK : no_memory(m, t->input->name);
}

static void take_current(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, mixin_frames_fn *fn, void *user)
{
	struct mixin_input *input = t->input;

	if (input->current_track != t || !spool_is_empty(&t->queue))
		return;
	struct span s = cut_span(m, t, input->current.pos, input->current.dur, pos, n_frames);
	hand_out(t, pos, input->current.pos, input->current.payload, &s, fn, user);
	if (s.is_done)
		input->current_track = NULL;
}

/* Read a block of a file: frames of the block go out at once, what is beyond it and what is resampled into the queue. */
static enum err read_file(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, mixin_frames_fn *fn, void *user)
{
	struct mixin_input *input = t->input;
	struct feed *feed = &input->in.feed;
	struct feed_track *from = &feed->tracks[t->id - 1];
	const size_t most = PACKET_MAX_PAYLOAD_BYTES / t->in.frame_bytes;
	size_t want = t->resampler ? MIXIN_CHUNK_FRAMES : (size_t)(pos + (int64_t)n_frames - t->known_pos);
	struct source_block b;
	uint64_t hole;
	enum err e;

	if (!input->is_regular && m->options.idle && source_would_block(&from->source, want) && (e = m->options.idle(m->options.user)))
		return e;
	from->block_frames = (uint32_t)(want < most ? want : most);
	e = feed_read(feed, from, m->block, &b, &hole);
	m->packets++;
	if (e)
		return mixtrack_end_input(m, input, e == ERR_END ? NULL : &feed->why);
	if (b.track_changed) {
		e = mixtrack_set_format(m, t, &from->source.track);
		announce(t, fn, user);
		return e;
	}
	if (hole && (e = mixtrack_gap(m, t, b.pos)))
		return e;
	if (b.gap_frames)
		return mixtrack_gap(m, t, b.pos + (int64_t)b.gap_frames);
	if (!b.n_frames)
		return ERR_OK;
	if (t->resampler)
		return mixtrack_resample(m, t, b.pos, m->block, b.n_frames);
	mixtrack_reach(t, b.pos + (int64_t)b.n_frames);
	struct span s = cut_span(m, t, b.pos, b.n_frames, pos, n_frames);
	hand_out(t, pos, b.pos, m->block, &s, fn, user);
	if (s.is_done)
		return ERR_OK;
	return mixtrack_put(m, t, b.pos, b.n_frames, m->block, t->in.frame_bytes);
}

enum err mixin_take(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, mixin_frames_fn *fn, void *user)
{
	enum err e;

	announce(t, fn, user);
	if (t->input->in.is_stream) {
		e = take_queue(m, t, pos, n_frames, fn, user);
		take_current(m, t, pos, n_frames, fn, user);
		return e;
	}
	while (!t->ended && t->known_pos < pos + (int64_t)n_frames) {
		if (!spool_is_empty(&t->queue) && !t->resampler && (e = take_queue(m, t, pos, n_frames, fn, user)))
			return e;
		if ((e = read_file(m, t, pos, n_frames, fn, user)))
			return e;
	}
	return take_queue(m, t, pos, n_frames, fn, user);
}

bool mixin_is_known(const struct mixin_track *t, int64_t pos)
{
	return t->ended || t->known_pos >= pos || !t->input->in.is_stream;
}

bool mixin_has_ended(const struct mixin *m, int64_t *end_pos)
{
	*end_pos = m->first_pos;
	for (unsigned i = 0; i < m->n_inputs; i++)
		if (!m->inputs[i].ended)
			return false;
	for (unsigned i = 0; i < m->n_tracks; i++) {
		if (!m->tracks[i]->ended)
			return false;
		if (m->tracks[i]->end_pos > *end_pos)
			*end_pos = m->tracks[i]->end_pos;
	}
	return true;
}

/* ---- opening ---- */

enum err mixin_open(struct mixin *m, char *const *names, unsigned n, const struct mixin_options *o, struct err_why *why)
{
	struct dsp dsp;
	enum err e = ERR_NOMEM;

	memset(m, 0, sizeof(*m));
	m->options = *o;
	m->store.file_limit_bytes = o->spool_bytes;
	m->store.memory_limit_bytes = o->memory_bytes;
	dsp_init(&dsp, cpu_flags());
	m->clean_fn = dsp.clean;
	m->inputs = calloc(n, sizeof(*m->inputs));
	m->block_bytes = PACKET_MAX_PAYLOAD_BYTES;
	m->block = aligned_alloc(64, m->block_bytes);
	if (!m->inputs || !m->block) {
		(void)no_memory(m, "inputs");
		goto out;
	}
	m->n_inputs = n;
	for (unsigned i = 0; i < n; i++) {
		m->inputs[i].name = names[i];
		m->inputs[i].direct_fd = m->inputs[i].feed_fd = m->inputs[i].in.fd = -1;
	}
	if ((e = mixopen_all(m)))
		goto out;
	if (!m->n_tracks && !is_stopped(m)) {
		e = err_say(&m->why, ERR_FORMAT, names[0], "there is no track to mix");
		goto out;
	}
	mixopen_settle(m);
	e = ERR_OK;
out:
	/* Where the feeder gave up, what was read came to an end for no reason of its own. */
	if (e && m->feeder.running && atomic_load(&m->feeder.failed)) {
		e = (enum err)atomic_load(&m->feeder.failed);
		m->why = m->feeder.why;
	}
	if (e)
		*why = m->why;
	return e;
}

void mixin_release(struct mixin *m)
{
	for (unsigned i = 0; i < m->n_inputs; i++) {
		struct mixin_input *input = &m->inputs[i];
		if (input->is_open)
			input_release(&input->in);
		if (input->direct_fd > STDIN_FILENO)
			close(input->direct_fd);
		free(input->tracks);
	}
	feeder_release(&m->feeder);
	for (unsigned i = 0; i < m->n_tracks; i++)
		mixtrack_free(m->tracks[i]);
	free(m->tracks);
	free(m->inputs);
	free(m->block);
	free(m->chunk_in);
	free(m->chunk_out);
	memset(m, 0, sizeof(*m));
}
