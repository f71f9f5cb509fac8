#include "stage/mkvout.h"

#include "media/opusdec.h"
#include "stage/take.h"
#include "wire/video.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_PER_S 25          /* PCM is gathered to blocks of 40 ms */
#define MAX_BLOCK_BYTES (1u << 20)
#define SYNC_NS 500000000        /* half a second at most is not in the file yet */
#define USUAL_PRESKIP_FRAMES 312u
#define MOST_LEAPS_SAID 8u
#define MAX_SILENCE_S 3600       /* in a hole of PCM; a longer one is a gap in time */

#ifdef WEIR_HAVE_AVFORMAT

enum err mkvout_open(struct mkvout *m, const char *path, const struct mkvout_options *o, struct err_why *why)
{
	struct sinkfile_args args = { .force = o->force, .stdout_fd = o->stdout_fd, .stop = o->stop };
	enum err e;

	memset(m, 0, sizeof(*m));
	m->options = *o;
	m->file.fd = -1;
	m->synced_ns = INT64_MIN;
	e = sinkfile_open(&m->file, path, &args, why);
	if (e == ERR_AGAIN) {
		o->warn(o->user, path, "waiting for a reader");
		args.wait = true;
		e = sinkfile_open(&m->file, path, &args, why);
	}
	if (!e && (e = avformat_open(&m->avformat, &m->file, why)))
		sinkfile_discard(&m->file);
	return e;
}

static enum err fail(struct mkvout *m, enum err e)
{
	if (e && !m->why.reason[0])
		err_say(&m->why, e, sinkfile_place(&m->file), "%s", err_text(e));
	return e;
}

static struct mkvout_track *track_of(const struct mkvout *m, uint16_t id)
{
	for (unsigned i = 0; i < m->n_tracks; i++)
		if (m->tracks[i]->track.id == id)
			return m->tracks[i];
	return NULL;
}

/* ---- tracks ---- */

static bool has_place(const struct track *t)
{
	return track_is_pcm(t) || track_is_opus(t) || (t->kind == TRACK_VIDEO && t->codec == TRACK_RAW_VIDEO);
}

static bool is_same_kind(const struct track *a, const struct track *b)
{
	return a->kind == b->kind && a->codec == b->codec && a->rate_num == b->rate_num && a->rate_den == b->rate_den && a->channels == b->channels &&
		a->sample == b->sample && (a->kind != TRACK_VIDEO || !memcmp(a->rest, b->rest, 24));
}

static enum err take_buffer(struct mkvout *m, struct mkvout_track *mt)
{
	const struct track *t = &mt->track;
	struct video v;

	if (track_is_opus(t))
		return ERR_OK;
	if (t->kind == TRACK_VIDEO) {
		if (video_of_track(&v, t))
			return fail(m, err_say(&m->why, ERR_FORMAT, sinkfile_place(&m->file), "track %u says of its pictures what cannot be", t->id));
		mt->room_bytes = v.frame_bytes;
	} else {
		size_t frames = track_rate_hz(t) / BLOCKS_PER_S + 1;
		if (frames * t->frame_bytes > MAX_BLOCK_BYTES)
			frames = MAX_BLOCK_BYTES / t->frame_bytes;
		mt->room_bytes = frames * t->frame_bytes;
	}
	mt->bytes = malloc(mt->room_bytes);
	return mt->bytes ? ERR_OK : fail(m, ERR_NOMEM);
}

enum err mkvout_announce(struct mkvout *m, const struct track *t)
{
	struct mkvout_track *mt = track_of(m, t->id);
	char text[160], scratch[8];
	enum err e;

	if (mt) {
		mt->begin_pos = t->first_pos;
		mt->has_data = false;
	}
	if (mt && (is_same_kind(&mt->track, t) || !mt->in_file))
		return ERR_OK;
	if (mt && m->begun)
		return err_say(&m->why, ERR_FORMAT, sinkfile_place(&m->file), "track %u changes its format, which Matroska has no place for", t->id);
	if (!mt) {
		struct mkvout_track **more = realloc(m->tracks, (m->n_tracks + 1) * sizeof(struct mkvout_track *));
		if (more)
			m->tracks = more;
		mt = more ? calloc(1, sizeof(*mt)) : NULL;
		if (!mt)
			return fail(m, ERR_NOMEM);
		m->tracks[m->n_tracks++] = mt;
	}
	track_release(&mt->track);
	free(mt->bytes);
	mt->bytes = NULL;
	if ((e = track_copy(&mt->track, t)))
		return fail(m, e);
	mt->next_pos = mt->begin_pos = t->first_pos;
	mt->in_file = !m->begun && has_place(t);
	if (mt->in_file)
		return take_buffer(m, mt);
	if (m->begun)
		snprintf(text, sizeof(text), "track %u came after the file had begun, and is left out", t->id);
	else
		snprintf(text, sizeof(text), "track %u is %s, for which there is no place here, and is left out", t->id, track_codec_name(t->codec, scratch));
	m->options.warn(m->options.user, m->file.path, text);
	return ERR_OK;
}

/* ---- the beginning ---- */

static enum err add_track(struct mkvout *m, struct mkvout_track *mt, const struct packet *first)
{
	const struct track *t = &mt->track;
	const uint8_t *info = NULL;
	enum err e;

	if (track_is_opus(t)) {
		/* What comes before the first frame that is to be heard: the first packet says it, if it is this track's. */
		int64_t preskip = first->track == t->id && first->type == PACKET_DATA ? t->first_pos - first->pos : t->codec_delay_frames;
		mt->preskip_frames = preskip > 0 && preskip <= UINT16_MAX ? (uint32_t)preskip : preskip == 0 ? 0 : USUAL_PRESKIP_FRAMES;
	}
	if (m->options.flac && flacpack_takes(t)) {
		e = flacpack_open(&mt->flac, t, &info, &m->why);
		if (e)
			return e;
	}
	return avformat_add(m->avformat, t, mt->preskip_frames, info, &mt->index, &m->why);
}

/* Time 0 of the file is where the earliest track begins. */
static int64_t earliest_ns(const struct mkvout *m)
{
	int64_t earliest = INT64_MAX;

	for (unsigned i = 0; i < m->n_tracks; i++) {
		const struct track *t = &m->tracks[i]->track;
		int64_t begin_ns = units_to_ns(t->first_pos, t->rate_num, t->rate_den);
		if (m->tracks[i]->in_file && begin_ns < earliest)
			earliest = begin_ns;
	}
	return earliest == INT64_MAX ? 0 : earliest;
}

static enum err begin(struct mkvout *m, const struct packet *first)
{
	const char *title;
	unsigned n = 0;
	enum err e = ERR_OK;

	m->begun = true;
	for (unsigned i = 0; i < m->n_tracks && !e; i++) {
		if (!m->tracks[i]->in_file)
			continue;
		n++;
		e = add_track(m, m->tracks[i], first);
	}
	if (!e && !n)
		return err_say(&m->why, ERR_FORMAT, sinkfile_place(&m->file), "no track of PCM, Opus or raw video");
	if (!e && n == 1 && (title = track_tag(&m->tracks[0]->track, "TITLE")))
		e = fail(m, avformat_tag(m->avformat, "title", title));
	return e ? e : avformat_begin(m->avformat, earliest_ns(m), &m->why);
}

/* ---- packets ---- */

static enum err put(struct mkvout *m, struct mkvout_track *mt, int64_t pos, uint32_t dur, uint32_t discard, const uint8_t *bytes, size_t n_bytes)
{
	const struct avformat_packet p = {
		.index = mt->index, .pos = pos, .dur = dur, .discard_frames = discard, .bytes = bytes, .n_bytes = n_bytes,
	};
	int64_t now_ns = units_to_ns(pos, mt->track.rate_num, mt->track.rate_den);
	enum err e = avformat_put(m->avformat, &p, &m->why);

	if (m->synced_ns == INT64_MIN)
		m->synced_ns = now_ns;
	if (!e && now_ns - m->synced_ns >= SYNC_NS) {
		m->synced_ns = now_ns;
		e = avformat_sync(m->avformat, &m->why);
		if (!e && (e = sinkfile_flush(&m->file)))
			m->why = m->file.why;
	}
	return e;
}

static enum err put_flac(void *user, void *track, int64_t pos, uint32_t dur, const uint8_t *bytes, size_t n_bytes)
{
	return put(user, track, pos, dur, 0, bytes, n_bytes);
}

/* What was gathered goes. */
static enum err send_pcm(struct mkvout *m, struct mkvout_track *mt)
{
	uint32_t frames = (uint32_t)(mt->have_bytes / mt->track.frame_bytes);
	enum err e;

	if (!frames)
		return ERR_OK;
	mt->have_bytes = 0;
	if (mt->flac)
		e = flacpack_put(mt->flac, mt->bytes_pos, mt->bytes, frames, put_flac, m, mt, &m->why);
	else
		e = put(m, mt, mt->bytes_pos, frames, 0, mt->bytes, (size_t)frames * mt->track.frame_bytes);
	mt->bytes_pos += frames;
	return e;
}

/* PCM at next_pos; from NULL is silence. */
static enum err gather(struct mkvout *m, struct mkvout_track *mt, const uint8_t *from, uint64_t n_frames)
{
	const size_t frame_bytes = mt->track.frame_bytes;
	enum err e = ERR_OK;

	if (mt->have_bytes == 0)
		mt->bytes_pos = mt->next_pos;
	mt->next_pos += (int64_t)n_frames;
	while (n_frames && !e) {
		uint64_t some = (mt->room_bytes - mt->have_bytes) / frame_bytes;
		if (some > n_frames)
			some = n_frames;
		if (from) {
			memcpy(mt->bytes + mt->have_bytes, from, (size_t)some * frame_bytes);
			from += some * frame_bytes;
		} else {
			memset(mt->bytes + mt->have_bytes, 0, (size_t)some * frame_bytes);
		}
		mt->have_bytes += (size_t)some * frame_bytes;
		n_frames -= some;
		if (mt->room_bytes - mt->have_bytes < frame_bytes)
			e = send_pcm(m, mt);
	}
	return e;
}

/* A leap of n_frames is said, the first few times; finish says how many there were. */
static void say_leap(struct mkvout *m, const struct mkvout_track *mt, int64_t n_frames, const char *what)
{
	char text[200], time[40];

	if (m->n_leaps++ >= MOST_LEAPS_SAID)
		return;
	take_put_time(time, (uint64_t)n_frames, &mt->track);
	snprintf(text, sizeof(text), "track %u leaps %s %s", mt->track.id, time, what);
	m->options.warn(m->options.user, m->file.path, text);
}

/* A hole that is too long for silence, before pos. */
static enum err leap(struct mkvout *m, struct mkvout_track *mt, int64_t pos)
{
	enum err e = send_pcm(m, mt);

	if (!e && mt->flac)
		e = flacpack_leap(mt->flac, put_flac, m, mt, &m->why);
	say_leap(m, mt, pos - mt->next_pos, "ahead, more than an hour: no silence, only a gap in time");
	mt->next_pos = pos;
	return e;
}

static enum err fill_hole(struct mkvout *m, struct mkvout_track *mt, int64_t pos)
{
	if (pos <= mt->next_pos)
		return ERR_OK;
	if (pos - mt->next_pos > units_scale(MAX_SILENCE_S, mt->track.rate_num, mt->track.rate_den))
		return leap(m, mt, pos);
	m->gap_frames += (uint64_t)(pos - mt->next_pos);
	return gather(m, mt, NULL, (uint64_t)(pos - mt->next_pos));
}

static enum err opus_in(struct mkvout *m, struct mkvout_track *mt, const struct packet *p)
{
	uint32_t n = opusdec_packet_frames(p->payload, p->payload_bytes);
	int64_t begin = mt->track.first_pos - mt->preskip_frames;

	if (!n)
		return ERR_OK; /* nothing that decodes: a gap in time */
	/* Pre-roll beyond what CodecDelay says would be heard. */
	if (p->pos + n <= begin)
		return ERR_OK;
	uint32_t discard = n > p->dur ? n - p->dur : 0;
	int64_t end = p->pos + p->dur, from = p->pos > mt->track.first_pos ? p->pos : mt->track.first_pos;
	m->frames += end > from ? (uint64_t)(end - from) : 0;
	mt->next_pos = end;
	return put(m, mt, p->pos, n - discard, discard, p->payload, p->payload_bytes);
}

static enum err take_fragment(struct mkvout *m, struct mkvout_track *mt, const struct packet *p)
{
	bool goes_on = mt->have_bytes && p->object_offset_bytes == mt->have_bytes && p->seq == mt->seq;

	if (p->object_bytes != mt->room_bytes || (p->object_offset_bytes && !goes_on)) {
		m->n_short += mt->have_bytes > 0;
		mt->have_bytes = 0;
		return ERR_OK;
	}
	if (!p->object_offset_bytes) {
		m->n_short += mt->have_bytes > 0;
		mt->have_bytes = 0;
	}
	memcpy(mt->bytes + mt->have_bytes, p->payload, p->payload_bytes);
	mt->have_bytes += p->payload_bytes;
	mt->seq = p->seq;
	if (mt->have_bytes < mt->room_bytes)
		return ERR_OK;
	mt->have_bytes = 0;
	mt->next_pos = p->pos + p->dur;
	m->n_pictures++;
	return put(m, mt, p->pos, p->dur, 0, mt->bytes, mt->room_bytes);
}

/* A timeline that goes back, on purpose: Matroska's does not. */
static void look_back(struct mkvout *m, struct mkvout_track *mt, const struct packet *p)
{
	int64_t pos = p->pos + mt->moved_frames, back = mt->next_pos - pos;
	bool is_preroll = !mt->has_data && p->pos < mt->begin_pos;

	if (track_is_opus(&mt->track))
		is_preroll = is_preroll || track_is_preroll(&mt->track, mt->next_pos, pos, false);
	mt->has_data = true;
	if (!(p->flags & PACKET_DISCONT) || back <= 0 || is_preroll)
		return;
	say_leap(m, mt, back, "back, where Matroska cannot go: it goes on behind what came");
	mt->moved_frames += back;
}

static enum err take_data(struct mkvout *m, struct mkvout_track *mt, const struct packet *p)
{
	enum err e;

	if (track_is_opus(&mt->track))
		return opus_in(m, mt, p);
	if (mt->track.kind == TRACK_VIDEO)
		return take_fragment(m, mt, p);
	if ((e = fill_hole(m, mt, p->pos)))
		return e;
	m->frames += p->dur;
	return gather(m, mt, p->payload, p->dur);
}

static enum err take_gap(struct mkvout *m, struct mkvout_track *mt, const struct packet *p)
{
	struct packet_gap gap;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		return ERR_OK;
	if (gap.reason != PACKET_GAP_DTX && gap.reason != PACKET_GAP_NOT_STARTED && gap.reason != PACKET_GAP_PAUSED)
		m->lost_frames += mt->track.kind == TRACK_AUDIO ? p->dur : 0;
	if (track_is_pcm(&mt->track))
		return fill_hole(m, mt, p->pos + p->dur);
	return ERR_OK;
}

/* The track ends here, and may begin again: what was gathered goes, what an encoder holds waits. */
static enum err end_track(struct mkvout *m, struct mkvout_track *mt)
{
	if (track_is_pcm(&mt->track))
		return send_pcm(m, mt);
	m->n_short += mt->have_bytes > 0;
	mt->have_bytes = 0;
	return ERR_OK;
}

static enum err finish_track(struct mkvout *m, struct mkvout_track *mt)
{
	enum err e = end_track(m, mt);

	return e || !mt->flac ? e : flacpack_end(mt->flac, put_flac, m, mt, &m->why);
}

enum err mkvout_packet(struct mkvout *m, const struct packet *packet)
{
	struct mkvout_track *mt = packet->track ? track_of(m, packet->track) : NULL;
	struct packet moved = *packet;
	const struct packet *p = &moved;
	enum err e;

	if (!mt || !mt->in_file)
		return ERR_OK;
	if (!m->begun && (e = begin(m, p)))
		return e;
	if (p->type == PACKET_DATA)
		look_back(m, mt, p);
	moved.pos += mt->moved_frames;
	switch (p->type) {
	case PACKET_DATA: return take_data(m, mt, p);
	case PACKET_GAP: return take_gap(m, mt, p);
	case PACKET_END: return end_track(m, mt);
	}
	return ERR_OK;
}

enum err mkvout_settle(struct mkvout *m)
{
	/* A file is written in clusters; who reads a pipe waits for none longer than that. */
	if (m->file.is_regular)
		return ERR_OK;
	enum err e = sinkfile_flush(&m->file);
	if (e)
		m->why = m->file.why;
	return e;
}

/* ---- the end ---- */

static void say_written(struct mkvout *m)
{
	char text[200];
	unsigned n = 0;
	size_t at;
	double longest_s = 0;

	for (unsigned i = 0; i < m->n_tracks; i++) {
		const struct mkvout_track *mt = m->tracks[i];
		double s = units_to_s(mt->next_pos - mt->track.first_pos, mt->track.rate_num, mt->track.rate_den);
		n += mt->in_file;
		longest_s = mt->in_file && s > longest_s ? s : longest_s;
	}
	at = (size_t)snprintf(text, sizeof(text), "%d:%06.3f matroska, %u track%s, %.1f MB", (int)(longest_s / 60), longest_s - 60 * (int)(longest_s / 60), n,
		n == 1 ? "" : "s", (double)m->file.size_bytes / 1e6);
	if (m->n_pictures && at < sizeof(text))
		at += (size_t)snprintf(text + at, sizeof(text) - at, ", %" PRIu64 " pictures", m->n_pictures);
	if (m->n_short && at < sizeof(text))
		snprintf(text + at, sizeof(text) - at, ", %" PRIu64 " that had no end left out", m->n_short);
	m->options.say(m->options.user, m->file.path, text);
	if (m->n_leaps > MOST_LEAPS_SAID) {
		snprintf(text, sizeof(text), "its tracks leap %u times in all", m->n_leaps);
		m->options.warn(m->options.user, m->file.path, text);
	}
}

enum err mkvout_finish(struct mkvout *m, bool complete)
{
	struct packet none = { .type = PACKET_END };
	enum err e = ERR_OK;

	if (m->file.fd < 0)
		return ERR_OK;
	if (complete && !m->begun)
		e = begin(m, &none);
	for (unsigned i = 0; i < m->n_tracks && m->begun && !e; i++)
		if (m->tracks[i]->in_file)
			e = finish_track(m, m->tracks[i]);
	if (m->begun && !e)
		e = avformat_finish(m->avformat, &m->why);
	if (!e && (e = sinkfile_flush(&m->file)))
		m->why = m->file.why;
	if (!e && complete)
		say_written(m);
	if (!m->file.size_bytes && e) {
		sinkfile_discard(&m->file);
		return e;
	}
	struct err_why why = { 0 };
	enum err closed = sinkfile_close(&m->file, complete && !e, &why);
	if (closed && !e)
		m->why = why;
	return e ? e : closed;
}

#else /* without libavformat */

enum err mkvout_open(struct mkvout *m, const char *path, const struct mkvout_options *o, struct err_why *why)
{
	memset(m, 0, sizeof(*m));
	m->options = *o;
	m->file.fd = -1;
	return err_say(why, ERR_DEVICE, path, "this build has no Matroska: it was made without libavformat");
}

enum err mkvout_announce(struct mkvout *m, const struct track *t)
{
	(void)m;
	(void)t;
	return ERR_OK;
}

enum err mkvout_packet(struct mkvout *m, const struct packet *p)
{
	(void)m;
	(void)p;
	return ERR_OK;
}

enum err mkvout_settle(struct mkvout *m)
{
	(void)m;
	return ERR_OK;
}

enum err mkvout_finish(struct mkvout *m, bool complete)
{
	(void)m;
	(void)complete;
	return ERR_OK;
}

#endif

void mkvout_release(struct mkvout *m)
{
	for (unsigned i = 0; i < m->n_tracks; i++) {
		track_release(&m->tracks[i]->track);
		free(m->tracks[i]->bytes);
		flacpack_release(m->tracks[i]->flac);
		free(m->tracks[i]);
	}
	free(m->tracks);
#ifdef WEIR_HAVE_AVFORMAT
	avformat_release(m->avformat);
#endif
	if (m->file.path)
		sinkfile_release(&m->file);
	memset(m, 0, sizeof(*m));
	m->file.fd = -1;
}
