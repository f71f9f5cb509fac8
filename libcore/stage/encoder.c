#include "stage/encoder.h"

#include "base/units.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_PER_THREAD 4u
#define FIRST_OUT_BYTES (256u << 10)

/* A track that is encoded. */
struct lane {
	struct filter_lane base;
	struct opusenc *encoder;  /* NULL between its END and its next announcement */
	uint32_t rate_num, rate_den;
	uint16_t frame_bytes;
	int64_t reached_pos;      /* end of what came, in the source's rate */
	int64_t heard_pos;        /* up to here a decoder has heard it: what lies before is pre-roll to it, and not handed out */
	bool has_data;            /* since its announcement */
	uint32_t delay_frames;    /* of the encoder, 48 kHz */
	uint64_t unheard_frames;  /* coded, but nobody will hear them */
	/* Where its wall-clock time stands: of the block being coded. */
	int64_t utc_ns, utc_pos;
	uint32_t dropped;
};

/* One block for a lane, and what it became. */
struct job {
	struct lane *lane;
	bool is_gap;
	int64_t pos;
	uint32_t n_frames;
	int64_t utc_ns;
	uint32_t dropped;
	struct packet_gap gap;
	enum err err;
	uint8_t *in;              /* PACKET_MAX_PAYLOAD_BYTES */
	uint8_t *out;             /* records: a struct packet, its payload, to 8 bytes */
	size_t out_bytes, out_room_bytes;
};

/* ---- packets out ---- */

static enum err write_packet(struct encoder *self, struct lane *lane, int64_t utc_ns, int64_t utc_pos, uint32_t dropped, struct packet p)
{
	struct writer *w = &self->filter.pump.out;
	struct writer_track *wt = writer_track(w, lane->base.id);

	p.track = lane->base.id;
	if (wt)
		wt->dropped = dropped;
	if (p.type == PACKET_GAP) {
		struct packet_gap gap;
		return packet_gap_unpack(&gap, p.payload, p.payload_bytes) ? ERR_FORMAT : writer_gap(w, p.track, p.pos, p.dur, &gap);
	}
	if (utc_ns != UNITS_UNKNOWN_NS)
		p.utc_ns = utc_ns + units_to_ns(p.pos - utc_pos, 48000, 1);
	if (p.payload_bytes > PACKET_MAX_PAYLOAD_BYTES) {
		/* Queued by reference, and the encoder will write there again. */
		enum err e = writer_put(w, &p);
		return e ? e : writer_flush(w);
	}
	uint8_t *to = writer_reserve(w, p.payload_bytes);
	if (!to)
		return w->failed;
	memcpy(to, p.payload, p.payload_bytes);
	return writer_commit(w, &p);
}

/* opusenc_out_fn of this thread. */
struct direct {
	struct encoder *self;
	struct lane *lane;
};

static enum err write_direct(void *user, const struct packet *p)
{
	struct direct *d = user;
	return write_packet(d->self, d->lane, d->lane->utc_ns, d->lane->utc_pos, d->lane->dropped, *p);
}

/* opusenc_out_fn of a crew's thread. */
static enum err keep_in_job(void *user, const struct packet *p)
{
	struct job *j = user;
	size_t needed = j->out_bytes + sizeof(*p) + (size_t)units_round_up(p->payload_bytes, 8);

	if (needed > j->out_room_bytes) {
		size_t room = units_round_up(2 * needed, FIRST_OUT_BYTES);
		uint8_t *more = realloc(j->out, room);
		if (!more)
			return ERR_NOMEM;
		j->out = more;
		j->out_room_bytes = room;
	}
	memcpy(j->out + j->out_bytes, p, sizeof(*p));
	memcpy(j->out + j->out_bytes + sizeof(*p), p->payload, p->payload_bytes);
	j->out_bytes = needed;
	return ERR_OK;
}

/* ---- the crew ---- */

static void do_job(void *slot)
{
	struct job *j = slot;

	if (j->is_gap)
		j->err = opusenc_gap(j->lane->encoder, j->pos, j->n_frames, &j->gap, keep_in_job, j);
	else
		j->err = opusenc_write(j->lane->encoder, j->pos, j->in, j->n_frames, keep_in_job, j);
}

static enum err fail(struct encoder *self, const struct lane *lane, enum err e)
{
	char thing[32];

	if (e == ERR_CODEC || e == ERR_NOMEM) {
		snprintf(thing, sizeof(thing), "track %u", lane->base.id);
		err_say(&self->filter.pump.why, e, thing, "%s", e == ERR_CODEC ? "libopus failed to encode it" : err_text(e));
	}
	return e;
}

/* Write what the oldest job became.  Returns: ERR_AGAIN if there is none, or, without wait, none that is done. */
static enum err write_oldest(struct encoder *self, bool wait)
{
	struct job *j = crew_take(&self->crew, wait);
	int64_t utc_pos;
	enum err e;

	if (!j)
		return ERR_AGAIN;
	e = j->err ? fail(self, j->lane, j->err) : ERR_OK;
	utc_pos = units_scale(j->pos, 48000 * (int64_t)j->lane->rate_den, j->lane->rate_num);
	for (size_t at = 0; at < j->out_bytes && !e;) {
		struct packet p;
		memcpy(&p, j->out + at, sizeof(p));
		p.payload = j->out + at + sizeof(p);
		at += sizeof(p) + (size_t)units_round_up(p.payload_bytes, 8);
		e = write_packet(self, j->lane, j->utc_ns, utc_pos, j->dropped, p);
	}
	crew_free(&self->crew);
	return e;
}

static enum err write_all(struct encoder *self)
{
	enum err e = ERR_OK;

	while (self->has_crew && !e)
		e = write_oldest(self, true);
	return e == ERR_AGAIN ? ERR_OK : e;
}

static bool input_waits(struct encoder *self)
{
	struct pollfd pfd = { .fd = self->filter.pump.in.fd, .events = POLLIN };
	return self->filter.pump.in.is_stream && poll(&pfd, 1, 0) == 0;
}

/* The input is to be read: blocks have been copied, so only if that would wait must everything be handed on first. */
static enum err idle(void *stage)
{
	struct filter *f = stage;
	struct encoder *self = f->stage;
	return self->has_crew && input_waits(self) ? write_all(self) : ERR_OK;
}

static enum err start_crew(struct encoder *self)
{
	unsigned n_threads = (unsigned)self->jobs;
	enum err e = crew_open(&self->crew, n_threads, SLOTS_PER_THREAD * n_threads, sizeof(struct job), do_job, "encode", &self->filter.pump.why);

	for (unsigned i = 0; i < self->crew.n_slots && !e; i++) {
		struct job *j = crew_slot_at(&self->crew, i);
		j->in = aligned_alloc(PACKET_UNIT_BYTES, PACKET_MAX_PAYLOAD_BYTES);
		j->out = malloc(FIRST_OUT_BYTES);
		j->out_room_bytes = FIRST_OUT_BYTES;
		if (!j->in || !j->out)
			e = ERR_NOMEM;
	}
	self->has_crew = !e;
	return e;
}

static void stop_crew(struct encoder *self)
{
	crew_stop(&self->crew);
	for (unsigned i = 0; self->crew.slots && i < self->crew.n_slots; i++) {
		struct job *j = crew_slot_at(&self->crew, i);
		free(j->in);
		free(j->out);
	}
	crew_release(&self->crew);
}

/* A slot for n_frames at pos; what is done is written on the way. */
static enum err next_job(struct encoder *self, struct lane *lane, int64_t pos, uint32_t n_frames, struct job **out)
{
	enum err e;

	while (!(e = write_oldest(self, false)))
		;
	if (e != ERR_AGAIN)
		return e;
	while (!(*out = crew_slot(&self->crew)))
		if ((e = write_oldest(self, true)))
			return e;
	struct job *j = *out;
	j->lane = lane;
	j->pos = pos;
	j->n_frames = n_frames;
	j->utc_ns = UNITS_UNKNOWN_NS;
	j->dropped = lane->dropped;
	j->is_gap = false;
	j->err = ERR_OK;
	j->out_bytes = 0;
	return ERR_OK;
}

/* A block for the crew; large ones (objects that came in fragments) in pieces. */
static enum err give(struct encoder *self, struct lane *lane, const struct packet *p, const struct packet_gap *gap)
{
	uint32_t most = gap ? UINT32_MAX : PACKET_MAX_PAYLOAD_BYTES / lane->frame_bytes;
	struct job *j = NULL;
	enum err e;

	for (uint32_t done = 0; done < p->dur;) {
		uint32_t n = p->dur - done < most ? p->dur - done : most;
		if ((e = next_job(self, lane, p->pos + done, n, &j)))
			return e;
		if (gap) {
			j->is_gap = true;
			j->gap = *gap;
		} else {
			memcpy(j->in, p->payload + (size_t)done * lane->frame_bytes, (size_t)n * lane->frame_bytes);
			if (p->utc_ns != UNITS_UNKNOWN_NS)
				j->utc_ns = p->utc_ns + units_to_ns(done, lane->rate_num, lane->rate_den);
		}
		done += n;
		crew_give(&self->crew, lane);
	}
	return ERR_OK;
}

/* ---- packets in ---- */

/* What its encoder still holds comes out. */
static enum err close_lane(struct filter *f, struct filter_lane *base)
{
	struct lane *lane = (struct lane *)base;
	struct direct d = { f->stage, lane };
	enum err e = opusenc_finish(lane->encoder, write_direct, &d);

	if (e)
		e = fail(f->stage, lane, e);
	opusenc_free(lane->encoder);
	lane->encoder = NULL;
	return e;
}

static void note_conversions(struct encoder *self, const struct lane *lane, const struct track *pcm, const struct track *coded)
{
	char thing[32];

	snprintf(thing, sizeof(thing), "track %u", lane->base.id);
	if (opusenc_resamples(lane->encoder))
		tool_note(self->filter.tool, thing, "%u Hz is resampled to 48000 Hz", track_rate_hz(pcm));
	if (coded->opus_family == 255 && pcm->channels > 2)
		tool_note(self->filter.tool, thing, "%u channels without a layout that Opus knows: discrete (mapping family 255)", pcm->channels);
	if (self->options.bitrate_bps > 300000 * (int32_t)pcm->channels)
		tool_note(self->filter.tool, thing, "libopus holds %d bit/s to %d", self->options.bitrate_bps, 300000 * pcm->channels);
}

static enum err accept_track(struct filter *f, const struct track *t)
{
	(void)f;
	return track_is_pcm(t) ? ERR_OK : ERR_AGAIN;
}

static enum err open_lane(struct filter *f, struct filter_lane *base, const struct track *t)
{
	struct encoder *self = f->stage;
	struct lane *lane = (struct lane *)base;
	struct track pcm = { 0 }, coded = { 0 };
	enum err e;

	if ((e = track_copy(&pcm, t)))
		return e;
	/* Announced again on the way: what came before is not to come again. */
	bool same_rate = lane->rate_num == t->rate_num && lane->rate_den == t->rate_den;
	if (same_rate && lane->reached_pos > pcm.first_pos)
		pcm.first_pos = lane->reached_pos;
	lane->rate_num = t->rate_num;
	lane->rate_den = t->rate_den;
	lane->frame_bytes = t->frame_bytes;
	lane->utc_ns = UNITS_UNKNOWN_NS;
	lane->has_data = false;
	if (!same_rate)
		lane->heard_pos = pcm.first_pos;

	if (!(e = opusenc_new(&lane->encoder, &pcm, &self->options, &coded, &f->pump.why))) {
		coded.id = t->id;
		lane->delay_frames = coded.codec_delay_frames;
		note_conversions(self, lane, &pcm, &coded);
		e = writer_announce(&f->pump.out, &coded);
	}
	track_release(&coded);
	track_release(&pcm);
	if (!e && !self->has_crew && self->jobs > 1 && f->n_lanes > 1)
		e = start_crew(self);
	return e;
}

/*
 * A timeline that went back: a decoder follows if that is further than its pre-roll (track_is_preroll()), and else throws away
 * what it has.  So does it behind a new announcement, which says that what came before is not to come again.
 */
static void look_back(struct lane *lane, const struct packet *p)
{
	const struct track coded = { .preroll_frames = TRACK_OPUS_PREROLL_FRAMES };
	int64_t rate = 48000 * (int64_t)lane->rate_den, end_pos = p->pos + p->dur;

	if (p->pos < lane->heard_pos && lane->has_data && p->pos != lane->reached_pos) {
		int64_t packet_pos = units_scale(p->pos, rate, lane->rate_num) - lane->delay_frames;
		if (!track_is_preroll(&coded, units_scale(lane->heard_pos, rate, lane->rate_num), packet_pos, false))
			lane->heard_pos = p->pos;
	}
	lane->has_data = true;
	if (p->pos < lane->heard_pos)
		lane->unheard_frames += (uint64_t)((end_pos < lane->heard_pos ? end_pos : lane->heard_pos) - p->pos);
	if (end_pos > lane->heard_pos)
		lane->heard_pos = end_pos;
}

static enum err take_frames(struct encoder *self, struct lane *lane, const struct packet *p, const struct packet_gap *g)
{
	struct direct d = { self, lane };
	int64_t rate = 48000 * (int64_t)lane->rate_den;
	enum err e;

	look_back(lane, p);
	lane->reached_pos = p->pos + p->dur;
	lane->utc_ns = p->utc_ns;
	if (p->utc_ns != UNITS_UNKNOWN_NS)
		lane->utc_pos = units_scale(p->pos, rate, lane->rate_num);
	if (self->has_crew)
		return give(self, lane, p, g);
	if (g)
		e = opusenc_gap(lane->encoder, p->pos, p->dur, g, write_direct, &d);
	else
		e = opusenc_write(lane->encoder, p->pos, p->payload, p->dur, write_direct, &d);
	return e ? fail(self, lane, e) : ERR_OK;
}

static enum err take_data(struct filter *f, struct filter_lane *base, const struct packet *p)
{
	struct lane *lane = (struct lane *)base;

	lane->dropped = (uint32_t)units_scale(p->dropped, 48000 * (int64_t)lane->rate_den, lane->rate_num);
	return take_frames(f->stage, lane, p, NULL);
}

static enum err take_gap(struct filter *f, struct filter_lane *base, const struct packet *p)
{
	struct packet_gap gap;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		return ERR_OK;
	return take_frames(f->stage, (struct lane *)base, p, &gap);
}

static enum err settle(struct filter *f)
{
	return write_all(f->stage);
}

static void release_lane(struct filter_lane *base)
{
	opusenc_free(((struct lane *)base)->encoder);
}

/* ---- the module ---- */

static const struct filter_ops ops = {
	.lane_bytes = sizeof(struct lane), .accept = accept_track, .open = open_lane, .close = close_lane, .data = take_data, .gap = take_gap,
	.settle = settle, .release = release_lane,
};

enum err encoder_open(struct encoder *self, struct tool *t, int argc, char **argv)
{
	const struct input_options input = { .reader = { .expand_silence = true } };
	const struct opusenc_options *o = &self->options;
	enum err e = filter_open(&self->filter, t, &ops, self, argc, argv, &input);

	if (e)
		return e;
	self->filter.pump.idle = idle;
	filter_seed(&self->filter, "%d b/s, mode %d, application %d, %u us, complexity %d, fec %d, loss %d %%, dtx %d, family %d", o->bitrate_bps,
		(int)o->mode, (int)o->application, o->frame_us, o->complexity, o->fec, o->expect_loss_pct, o->dtx, o->family);
	return ERR_OK;
}

enum err encoder_run(struct encoder *self)
{
	enum err e = filter_run(&self->filter);
	char thing[32];

	for (unsigned i = 0; i < self->filter.n_lanes && !e; i++) {
		const struct lane *lane = (const struct lane *)self->filter.lanes[i];
		if (!lane->unheard_frames)
			continue;
		snprintf(thing, sizeof(thing), "track %u", lane->base.id);
		e = err_say(&self->filter.pump.why, ERR_CUT, thing, "%" PRIu64 " frames stand where others came before, too near for Opus to go back:"
			" a decoder leaves them out", lane->unheard_frames);
	}
	return e;
}

void encoder_release(struct encoder *self)
{
	/* Its last statistics name the threads, too. */
	filter_close_pump(&self->filter);
	stop_crew(self);
	filter_release(&self->filter);
}
