#include "stage/mixin.h"

#include "base/cpu.h"
#include "base/units.h"
#include "dsp/dsp.h"
#include "mix/layouts.h"
#include "tool/select.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAY_AFTER_MS 2000     /* of silence from an input that is waited for */
#define MAX_BLOCK_FRAMES 4096u
#define MIN_BLOCK_FRAMES 32u

/* In a queue: frames at a position of the mix, or (n_frames 0) the format of what follows. */
struct piece {
	int64_t pos;
	uint32_t n_frames;
	uint16_t channels;
	uint16_t format;
	uint64_t wave_mask;
};

static void say(const struct mixin *m, const char *thing, const char *text)
{
	if (m->options.say)
		m->options.say(m->options.user, thing, text);
}

static void note(const struct mixin *m, const char *thing, const char *text)
{
	if (m->options.note)
		m->options.note(m->options.user, thing, text);
}

static bool is_stopped(const struct mixin *m)
{
	return m->options.stop && *m->options.stop;
}

static enum err no_memory(struct mixin *m, const char *thing)
{
	return err_say(&m->why, ERR_NOMEM, thing, "%s", err_text(ERR_NOMEM));
}

/* ---- tracks ---- */

static bool same_rate(const struct mixin *m, const struct track *t)
{
	return t->rate_num == (uint64_t)m->rate_hz * t->rate_den;
}

/* A position of a track, in the mix's frames. */
static int64_t to_mix(const struct mixin *m, const struct track *t, int64_t pos)
{
	return same_rate(m, t) ? pos : units_scale(pos, (int64_t)m->rate_hz * t->rate_den, t->rate_num);
}

static enum err grow_chunks(struct mixin *m, unsigned channels)
{
	if (channels <= m->chunk_channels)
		return ERR_OK;
	free(m->chunk_in);
	free(m->chunk_out);
	m->chunk_in = calloc((size_t)MIXIN_CHUNK_FRAMES * channels, sizeof(float));
	m->chunk_out = calloc((size_t)MIXIN_CHUNK_FRAMES * channels, sizeof(float));
	m->chunk_channels = channels;
	return m->chunk_in && m->chunk_out ? ERR_OK : no_memory(m, "resampling");
}

/* What t hands out from here on. */
static void adopt(struct mixin_track *t, const struct piece *p)
{
	t->format = (enum sample)p->format;
	t->channels = p->channels;
	t->wave_mask = p->wave_mask;
	t->is_new = true;
}

static enum err finish_segment(struct mixin *m, struct mixin_track *t);

/* The track announced itself, for the first time or with another format. */
static enum err set_format(struct mixin *m, struct mixin_track *t, const struct track *as)
{
	bool first = t->in.channels == 0;
	enum err e = finish_segment(m, t);

	if (e)
		return e;
	if (t->has_next) {
		int64_t num = (int64_t)as->rate_num * t->in.rate_den, den = (int64_t)t->in.rate_num * as->rate_den;
		t->moved_frames = units_scale(t->moved_frames, num, den);
		t->next_pos = units_scale(t->next_pos, num, den);
	}
	t->is_foreign = false;
	t->in = *as;
	t->in.tlv = NULL;
	t->in.tlv_bytes = t->in.tlv_room_bytes = 0;
	resampler_free(t->resampler);
	t->resampler = NULL;
	t->in_segment = false;
	struct piece p = {
		.channels = as->channels, .format = as->sample, .wave_mask = layouts_mask(as),
	};
	if (!same_rate(m, as)) {
		uint64_t out_hz = (uint64_t)m->rate_hz * as->rate_den;
		if (out_hz > UINT32_MAX)
			return err_say(&m->why, ERR_LIMIT, t->input->name, "a rate of %u/%u Hz", as->rate_num, as->rate_den);
		const struct resampler_options o = {
			.in_hz = as->rate_num, .out_hz = (uint32_t)out_hz, .channels = as->channels, .quality = RESAMPLER_VERY_HIGH,
		};
		p.format = SAMPLE_F32;
		if ((e = resampler_new(&t->resampler, &o, &m->why)) || (e = grow_chunks(m, as->channels)))
			return e;
		if ((e = convert_init(&t->to_f32, (enum sample)as->sample, SAMPLE_F32, false, 0)))
			return err_say(&m->why, e, t->input->name, "%s", err_text(e));
	}
	if (first) {
		adopt(t, &p);
		return ERR_OK;
	}
	if (spool_is_empty(&t->queue) && t->input->current_track != t) {
		adopt(t, &p);
		return ERR_OK;
	}
	e = spool_put(&t->queue, &p, sizeof(p), NULL, 0);
	return e ? err_say(&m->why, e, t->input->name, "%s", err_text(e)) : ERR_OK;
}

static enum err add_track(struct mixin *m, struct mixin_input *input, const struct track *as, struct mixin_track **out)
{
	if (m->n_tracks == m->tracks_room) {
		unsigned room = m->tracks_room ? 2 * m->tracks_room : 16;
		struct mixin_track **more = realloc(m->tracks, room * sizeof(struct mixin_track *));
		if (!more)
			return no_memory(m, input->name);
		m->tracks = more;
		m->tracks_room = room;
	}
	if (input->n_tracks == input->tracks_room) {
		unsigned room = input->tracks_room ? 2 * input->tracks_room : 4;
		struct mixin_track **more = realloc(input->tracks, room * sizeof(struct mixin_track *));
		if (!more)
			return no_memory(m, input->name);
		input->tracks = more;
		input->tracks_room = room;
	}
	struct mixin_track *t = calloc(1, sizeof(*t));
	if (!t || spool_init(&t->queue, &m->store)) {
		free(t);
		return no_memory(m, input->name);
	}
	t->input = input;
	t->id = as->id;
	t->number = m->n_tracks + 1;
	track_name(as, t->name);
	m->tracks[m->n_tracks++] = t;
	input->tracks[input->n_tracks++] = t;
	*out = t;
	return ERR_OK;
}

static struct mixin_track *find_track(const struct mixin_input *input, uint16_t id)
{
	for (unsigned i = 0; i < input->n_tracks; i++)
		if (input->tracks[i]->id == id)
			return input->tracks[i];
	return NULL;
}

static enum err end_track(struct mixin *m, struct mixin_track *t);

/* A TRACK packet came by. */
static enum err meet_track(struct mixin *m, struct mixin_input *input, uint16_t id)
{
	const struct track *as = input_track(&input->in, id);
	struct mixin_track *t = find_track(input, id);
	char thing[300], text[200];
	enum err e;

	if (!as)
		return ERR_OK;
	snprintf(thing, sizeof(thing), "%.200s: track %u", input->in.name, id);
	if (as->kind != TRACK_AUDIO) {
		snprintf(text, sizeof(text), "%s is not mixed", track_kind_name(as->kind));
		note(m, thing, text);
		if (!t)
			return ERR_OK;
		t->is_foreign = true;
		return end_track(m, t);
	}
	if (!t && m->options.select && !select_match(m->options.select, as))
		return ERR_OK;
	if (track_is_opus(as))
		return err_say(&m->why, ERR_FORMAT, thing, "is Opus: decode first (weir decode | weir mix)");
	if (!track_is_pcm(as) || !track_sample_bytes((enum sample)as->sample))
		return err_say(&m->why, ERR_FORMAT, thing, "is not PCM");
	if (!m->rate_hz) {
		m->rate_hz = m->options.rate_hz ? m->options.rate_hz : track_rate_hz(as);
		if (!m->rate_hz)
			return err_say(&m->why, ERR_FORMAT, thing, "a rate of %u/%u Hz: give the mix one with -r", as->rate_num, as->rate_den);
	}
	if (t) {
		t->ended = false;
		return set_format(m, t, as);
	}
	if ((e = add_track(m, input, as, &t)) || (e = set_format(m, t, as)))
		return e;
	t->first_pos = t->known_pos = t->end_pos = to_mix(m, as, as->first_pos);
	t->taken_pos = INT64_MIN;
	return ERR_OK;
}

static void free_track(struct mixin_track *t)
{
	resampler_free(t->resampler);
	spool_release(&t->queue);
	free(t);
}

/* ---- frames in ---- */

static enum err put_piece(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, const void *frames, size_t frame_bytes)
{
	struct piece p = { .pos = pos, .n_frames = (uint32_t)n_frames };
	enum err e = spool_put(&t->queue, &p, sizeof(p), frames, n_frames * frame_bytes);

	if (e == ERR_LIMIT)
		return err_say(&m->why, e, t->input->name,
			"its tracks lie so far apart that the spool of %llu bytes is full (--spool)", (unsigned long long)m->options.spool_bytes);
	if (e == ERR_SYS)
		return err_sys(&m->why, "temporary file");
	return e ? no_memory(m, t->input->name) : ERR_OK;
}

static void reach(struct mixin_track *t, int64_t pos)
{
	if (pos > t->known_pos)
		t->known_pos = pos;
	if (pos > t->end_pos)
		t->end_pos = pos;
}

/* The end of a run of frames: what is still in the resampler. */
static enum err finish_segment(struct mixin *m, struct mixin_track *t)
{
	enum err e = ERR_OK;

	if (!t->resampler || !t->in_segment)
		return ERR_OK;
	t->in_segment = false;
	for (;;) {
		size_t made = MIXIN_CHUNK_FRAMES;
		if ((e = resampler_finish(t->resampler, m->chunk_out, &made)))
			break;
		if (!made)
			break;
		if ((e = put_piece(m, t, t->segment_out_pos, made, m->chunk_out, t->in.channels * sizeof(float))))
			return e;
		t->segment_out_pos += (int64_t)made;
		reach(t, t->segment_out_pos);
	}
	return e ? err_say(&m->why, e, t->input->name, "%s", err_text(e)) : ERR_OK;
}

/* Frames of the input's rate and format, through the resampler into the queue. */
static enum err resample(struct mixin *m, struct mixin_track *t, int64_t pos, const uint8_t *frames, size_t n_frames)
{
	enum err e;

	if (t->in_segment && pos != t->segment_next_pos && (e = finish_segment(m, t)))
		return e;
	if (!t->in_segment) {
		/* Frames behind a hole stand where they would be without it, between the frames of the mix too. */
		if ((e = resampler_place(t->resampler, pos, &t->segment_out_pos)))
			return err_say(&m->why, e, t->input->name, "%s", err_text(e));
		t->in_segment = true;
	}
	t->segment_next_pos = pos + (int64_t)n_frames;
	while (n_frames) {
		size_t n = n_frames < MIXIN_CHUNK_FRAMES ? n_frames : MIXIN_CHUNK_FRAMES;
		(void)convert_run(&t->to_f32, m->chunk_in, frames, n * t->in.channels);
		/* What is no number would never leave a filter again. */
		m->nonfinite_samples += m->clean_fn(m->chunk_in, m->chunk_in, n * t->in.channels);
		frames += n * t->in.frame_bytes;
		n_frames -= n;
		for (size_t done = 0;;) {
			size_t taken = n - done, made = MIXIN_CHUNK_FRAMES;
			if (resampler_run(t->resampler, m->chunk_in + done * t->in.channels, &taken, m->chunk_out, &made))
				return err_say(&m->why, ERR_CODEC, t->input->name, "%s", err_text(ERR_CODEC));
			done += taken;
			if (made && (e = put_piece(m, t, t->segment_out_pos, made, m->chunk_out, t->in.channels * sizeof(float))))
				return e;
			t->segment_out_pos += (int64_t)made;
			reach(t, t->segment_out_pos);
			if (done == n && made < MIXIN_CHUNK_FRAMES)
				break;
		}
	}
	return ERR_OK;
}

/* A stretch without frames, or one that is over. */
static enum err pass_gap(struct mixin *m, struct mixin_track *t, int64_t end_pos)
{
	enum err e = finish_segment(m, t);

	reach(t, to_mix(m, &t->in, end_pos));
	return e;
}

static enum err end_track(struct mixin *m, struct mixin_track *t)
{
	enum err e = finish_segment(m, t);

	t->ended = true;
	return e;
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
	return put_piece(m, t, p->pos, p->dur, p->payload, t->in.frame_bytes);
}

/* Where the packet belongs: where its timeline begins anew nothing is missing, and what comes stands behind what came. */
static int64_t place_packet(struct mixin_track *t, const struct packet *p)
{
	if (p->type == PACKET_DATA && p->flags & PACKET_DISCONT && t->has_next)
		t->moved_frames = t->next_pos - p->pos;
	int64_t pos = p->pos + t->moved_frames;
	if (!t->has_next || pos + p->dur > t->next_pos)
		t->next_pos = pos + p->dur;
	t->has_next = true;
	return pos;
}

static enum err take_packet(struct mixin *m, struct mixin_input *input, const struct packet *p)
{
	struct mixin_track *t = p->track ? find_track(input, p->track) : NULL;
	int64_t pos;

	m->packets++;
	if (p->type == PACKET_TRACK)
		return meet_track(m, input, p->track);
	if (!t || t->is_foreign)
		return ERR_OK;
	switch (p->type) {
	case PACKET_DATA:
		t->ended = false;
		pos = place_packet(t, p);
		if (t->resampler)
			return resample(m, t, pos, p->payload, p->dur);
		input->current = *p;
		input->current.pos = pos;
		input->current_track = t;
		reach(t, pos + p->dur);
		return ERR_OK;
	case PACKET_GAP:
		return pass_gap(m, t, place_packet(t, p) + p->dur);
	case PACKET_END:
		return end_track(m, t);
	default:
		return ERR_OK;
	}
}

/* The input is over, well or not.  Whatever was lost is said here. */
static enum err end_input(struct mixin *m, struct mixin_input *input, const struct err_why *failure)
{
	char loss[256];
	enum err e = ERR_OK;

	input->ended = true;
	for (unsigned i = 0; i < input->n_tracks && !e; i++)
		if (!input->tracks[i]->ended)
			e = end_track(m, input->tracks[i]);
	enum err fed = (enum err)atomic_load(&m->feeder.failed);
	if (fed && m->feeder.running) {
		m->why = m->feeder.why;
		return fed;
	}
	if (failure || input_is_cut(&input->in)) {
		input_describe_loss(&input->in, loss, sizeof(loss));
		input->is_cut = m->is_cut = true;
		say(m, input->in.name, failure ? failure->reason : loss);
	}
	return e;
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
		return e ? end_input(m, input, &input->in.why) : ERR_OK;
	}
	if (e == ERR_OK)
		return take_packet(m, input, &p);
	return end_input(m, input, e == ERR_END ? NULL : &input->in.why);
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
				return end_input(m, input[k], &input[k]->in.why);
		return ERR_OK;
	}
	if (poll(p, n, timeout_ms) <= 0)
		return ERR_OK;
	for (nfds_t k = 0; k < n; k++)
		if (p[k].revents && input_fill(&input[k]->in)) {
			enum err e = end_input(m, input[k], &input[k]->in.why);
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
		struct piece p;
		memcpy(&p, record, sizeof(p));
		if (p.n_frames == 0) {
			adopt(t, &p);
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
		return end_input(m, input, e == ERR_END ? NULL : &feed->why);
	if (b.track_changed) {
		e = set_format(m, t, &from->source.track);
		announce(t, fn, user);
		return e;
	}
	if (hole && (e = pass_gap(m, t, b.pos)))
		return e;
	if (b.gap_frames)
		return pass_gap(m, t, b.pos + (int64_t)b.gap_frames);
	if (!b.n_frames)
		return ERR_OK;
	if (t->resampler)
		return resample(m, t, b.pos, m->block, b.n_frames);
	reach(t, b.pos + (int64_t)b.n_frames);
	struct span s = cut_span(m, t, b.pos, b.n_frames, pos, n_frames);
	hand_out(t, pos, b.pos, m->block, &s, fn, user);
	if (s.is_done)
		return ERR_OK;
	return put_piece(m, t, b.pos, b.n_frames, m->block, t->in.frame_bytes);
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

/* Nothing comes from it: after a while, say so.  Returns when something is there, or at a stop. */
static void wait_for_first(struct mixin *m, const struct mixin_input *input, int fd)
{
	int timeout_ms = SAY_AFTER_MS;

	while (!is_stopped(m)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int n = poll(&p, 1, timeout_ms);
		if (n > 0)
			return;
		if (n == 0) {
			say(m, input->name, "is waited for: nobody has written to it yet");
			timeout_ms = -1;
		}
	}
}

static bool is_device(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode) || S_ISSOCK(st->st_mode);
}

/* What kind of thing a name is.  A FIFO is opened here, at once and without waiting for its writer. */
static enum err look(struct mixin *m, struct mixin_input *input, bool *stdin_used)
{
	struct stat st = { 0 };

	input->direct_fd = -1;
	input->is_regular = true;
	if (!strcmp(input->name, "-")) {
		if (*stdin_used)
			return err_say(&m->why, ERR_ARG, "<stdin>", "cannot be two inputs");
		*stdin_used = true;
		if (isatty(STDIN_FILENO))
			return err_say(&m->why, ERR_ARG, "<stdin>", "is a terminal: there is no stream to read");
		if (fstat(STDIN_FILENO, &st))
			return err_sys(&m->why, "<stdin>");
		input->is_regular = S_ISREG(st.st_mode);
		if (!input->is_regular)
			input->direct_fd = STDIN_FILENO;
	} else if (strncmp(input->name, "gen:", 4) && stat(input->name, &st) == 0 && is_device(&st)) {
		input->is_regular = false;
		if (S_ISFIFO(st.st_mode)) {
			input->direct_fd = open(input->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
			if (input->direct_fd < 0)
				return err_sys(&m->why, input->name);
		}
	}
	if (m->options.twice && !input->is_regular)
		return err_say(&m->why, ERR_ARG, input->name, "is read twice for --normalize: it must be a file");
	return ERR_OK;
}

/* Streams: up to the first packet that is no announcement. */
static enum err begin_stream(struct mixin *m, struct mixin_input *input)
{
	enum err e;

	while (!input->have_held && !input->ended) {
		e = input_next(&input->in, &input->held);
		if (e == ERR_AGAIN) {
			e = input_fill(&input->in);
			if (!e)
				continue;
		}
		if (e == ERR_END)
			e = end_input(m, input, NULL);
		else if (e)
			m->why = input->in.why;
		if (e)
			return e;
		if (input->ended)
			break;
		if (input->held.type == PACKET_TRACK) {
			if ((e = meet_track(m, input, input->held.track)))
				return e;
		} else if (input->held.type == PACKET_DATA || input->held.type == PACKET_GAP ||
			(input->held.type == PACKET_END && input->held.track)) {
			input->have_held = true;
		}
	}
	return ERR_OK;
}

static enum err begin_file(struct mixin *m, struct mixin_input *input)
{
	struct feed_track *from = &input->in.feed.tracks[0];

	from->announced = true;
	if (from->source.note[0])
		note(m, input->in.name, from->source.note);
	return meet_track(m, input, from->id);
}

static enum err open_input(struct mixin *m, struct mixin_input *input, int fd)
{
	const struct input_options o = {
		.reader = { .expand_silence = true, .stop = m->options.stop },
		.source = { .stop = m->options.stop, .duration_frames = -1 },
		.has_fd = fd >= 0, .fd = fd,
	};
	enum err e;

	if (fd >= 0)
		wait_for_first(m, input, fd);
	if ((e = input_open(&input->in, input->name, &o, &m->why)))
		return e;
	input->is_open = true;
	if ((e = input->in.is_stream ? begin_stream(m, input) : begin_file(m, input)))
		return e;
	/* Nothing of it was asked for: nobody waits for its end. */
	input->ended |= input->n_tracks == 0;
	return ERR_OK;
}

/* Where the mix begins, in which steps, and what kind of stream it is. */
static void settle(struct mixin *m)
{
	uint32_t block = MAX_BLOCK_FRAMES;

	m->first_pos = m->n_tracks ? INT64_MAX : 0;
	m->t0_utc_ns = UNITS_UNKNOWN_NS;
	for (unsigned i = 0; i < m->n_tracks; i++) {
		const struct mixin_track *t = m->tracks[i];
		if (t->first_pos < m->first_pos)
			m->first_pos = t->first_pos;
		if (!t->input->in.is_stream)
			continue;
		uint32_t dur = t->in.nominal_dur;
		if (!dur && t->input->have_held && t->input->held.track == t->id)
			dur = t->input->held.dur;
		int64_t step_frames = to_mix(m, &t->in, dur);
		if (step_frames >= MIN_BLOCK_FRAMES && step_frames < block)
			block = (uint32_t)step_frames;
	}
	for (unsigned i = 0; i < m->n_inputs; i++) {
		const struct input *in = &m->inputs[i].in;
		if (!in->is_stream)
			continue;
		m->is_live |= in->reader.stream.flags & PACKET_STREAM_LIVE;
		if (m->t0_utc_ns == UNITS_UNKNOWN_NS)
			m->t0_utc_ns = in->reader.stream.t0_utc_ns;
	}
	m->block_frames = block;
}

static enum err open_all(struct mixin *m)
{
	bool stdin_used = false;
	unsigned n_pipes = 0;
	enum err e;

	for (unsigned i = 0; i < m->n_inputs; i++) {
		if ((e = look(m, &m->inputs[i], &stdin_used)))
			return e;
		n_pipes += m->inputs[i].direct_fd >= 0;
	}
	if (n_pipes > 1) {
		if ((e = feeder_open(&m->feeder, n_pipes, &m->store, &m->why)))
			return e;
		m->feeder.say = m->options.say;
		m->feeder.say_user = m->options.user;
	}
	for (unsigned i = 0; i < m->n_inputs; i++) {
		struct mixin_input *input = &m->inputs[i];
		if (input->direct_fd < 0 || n_pipes < 2)
			continue;
		int read_fd;
		bool owned = input->direct_fd != STDIN_FILENO;
		e = feeder_add(&m->feeder, input->direct_fd, owned, input->name, &read_fd, &m->why);
		input->direct_fd = -1;
		if (e)
			return e;
		input->feed_fd = read_fd;
	}
	if (n_pipes > 1 && (e = feeder_start(&m->feeder, &m->why)))
		return e;
	for (unsigned i = 0; i < m->n_inputs; i++) {
		struct mixin_input *input = &m->inputs[i];
		int fd = n_pipes > 1 ? input->feed_fd : input->direct_fd;
		if ((e = open_input(m, input, fd)))
			return e;
	}
	return ERR_OK;
}

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
	if ((e = open_all(m)))
		goto out;
	if (!m->n_tracks && !is_stopped(m)) {
		e = err_say(&m->why, ERR_FORMAT, names[0], "there is no track to mix");
		goto out;
	}
	settle(m);
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
		free_track(m->tracks[i]);
	free(m->tracks);
	free(m->inputs);
	free(m->block);
	free(m->chunk_in);
	free(m->chunk_out);
	memset(m, 0, sizeof(*m));
}
