#include "stage/mixtrack.h"

#include "mix/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
int64_t mixtrack_to_mix(const struct mixin *m, const struct track *t, int64_t pos)
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
void mixtrack_adopt(struct mixin_track *t, const struct mixtrack_piece *p)
{
	t->format = (enum sample)p->format;
	t->channels = p->channels;
	t->wave_mask = p->wave_mask;
	t->is_new = true;
}

static enum err finish_segment(struct mixin *m, struct mixin_track *t);

/* The track announced itself, for the first time or with another format. */
enum err mixtrack_set_format(struct mixin *m, struct mixin_track *t, const struct track *as)
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
	struct mixtrack_piece p = {
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
		mixtrack_adopt(t, &p);
		return ERR_OK;
	}
	if (spool_is_empty(&t->queue) && t->input->current_track != t) {
		mixtrack_adopt(t, &p);
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

struct mixin_track *mixtrack_find(const struct mixin_input *input, uint16_t id)
{
	for (unsigned i = 0; i < input->n_tracks; i++)
		if (input->tracks[i]->id == id)
			return input->tracks[i];
	return NULL;
}

void mixtrack_free(struct mixin_track *t)
{
	resampler_free(t->resampler);
	spool_release(&t->queue);
	free(t);
}

/* ---- frames in ---- */

enum err mixtrack_put(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, const void *frames, size_t frame_bytes)
{
	struct mixtrack_piece p = { .pos = pos, .n_frames = (uint32_t)n_frames };
	enum err e = spool_put(&t->queue, &p, sizeof(p), frames, n_frames * frame_bytes);

	if (e == ERR_LIMIT)
		return err_say(&m->why, e, t->input->name,
			"its tracks lie so far apart that the spool of %llu bytes is full (--spool)", (unsigned long long)m->options.spool_bytes);
	if (e == ERR_SYS)
		return err_sys(&m->why, "temporary file");
	return e ? no_memory(m, t->input->name) : ERR_OK;
}

void mixtrack_reach(struct mixin_track *t, int64_t pos)
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
		if ((e = mixtrack_put(m, t, t->segment_out_pos, made, m->chunk_out, t->in.channels * sizeof(float))))
			return e;
		t->segment_out_pos += (int64_t)made;
		mixtrack_reach(t, t->segment_out_pos);
	}
	return e ? err_say(&m->why, e, t->input->name, "%s", err_text(e)) : ERR_OK;
}

/* Frames of the input's rate and format, through the resampler into the queue. */
enum err mixtrack_resample(struct mixin *m, struct mixin_track *t, int64_t pos, const uint8_t *frames, size_t n_frames)
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
			if (made && (e = mixtrack_put(m, t, t->segment_out_pos, made, m->chunk_out, t->in.channels * sizeof(float))))
				return e;
			t->segment_out_pos += (int64_t)made;
			mixtrack_reach(t, t->segment_out_pos);
			if (done == n && made < MIXIN_CHUNK_FRAMES)
				break;
		}
	}
	return ERR_OK;
}

/* A stretch without frames, or one that is over. */
enum err mixtrack_gap(struct mixin *m, struct mixin_track *t, int64_t end_pos)
{
	enum err e = finish_segment(m, t);

	mixtrack_reach(t, mixtrack_to_mix(m, &t->in, end_pos));
	return e;
}

enum err mixtrack_end(struct mixin *m, struct mixin_track *t)
{
	enum err e = finish_segment(m, t);

	t->ended = true;
	return e;
}

/* Where the packet belongs: where its timeline begins anew nothing is missing, and what comes stands behind what came. */
int64_t mixtrack_place(struct mixin_track *t, const struct packet *p)
{
	if (p->type == PACKET_DATA && p->flags & PACKET_DISCONT && t->has_next)
		t->moved_frames = t->next_pos - p->pos;
	int64_t pos = p->pos + t->moved_frames;
	if (!t->has_next || pos + p->dur > t->next_pos)
		t->next_pos = pos + p->dur;
	t->has_next = true;
	return pos;
}

/* ---- announcements and ends ---- */

/* A TRACK packet came by. */
enum err mixtrack_meet(struct mixin *m, struct mixin_input *input, uint16_t id)
{
	const struct track *as = input_track(&input->in, id);
	struct mixin_track *t = mixtrack_find(input, id);
	char thing[300], text[200];
	enum err e;

	if (!as)
		return ERR_OK;
	if (m->options.select)
		select_note(&m->hits, m->options.select, as);
	snprintf(thing, sizeof(thing), "%.200s: track %u", input->in.name, id);
	if (as->kind != TRACK_AUDIO) {
		snprintf(text, sizeof(text), "%s is not mixed", track_kind_name(as->kind));
		note(m, thing, text);
		if (!t)
			return ERR_OK;
		t->is_foreign = true;
		return mixtrack_end(m, t);
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
		return mixtrack_set_format(m, t, as);
	}
	if ((e = add_track(m, input, as, &t)) || (e = mixtrack_set_format(m, t, as)))
		return e;
	t->first_pos = t->known_pos = t->end_pos = mixtrack_to_mix(m, as, as->first_pos);
	t->taken_pos = INT64_MIN;
	return ERR_OK;
}

/* The input is over, well or not.  Whatever was lost is said here. */
enum err mixtrack_end_input(struct mixin *m, struct mixin_input *input, const struct err_why *failure)
{
	char loss[256];
	enum err e = ERR_OK;

	input->ended = true;
	for (unsigned i = 0; i < input->n_tracks && !e; i++)
		if (!input->tracks[i]->ended)
			e = mixtrack_end(m, input->tracks[i]);
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
