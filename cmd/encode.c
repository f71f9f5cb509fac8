/*
 * encode: PCM audio tracks become Opus; everything else passes.
 *
 * One track is coded in this thread, straight from the reader's buffer into the writer.  With more tracks and more than one
 * job, blocks are copied into the slots of a crew, and what comes back is written in the order in which the blocks came:
 * the output is the same whatever -j says.
 */
#include "base/units.h"
#include "media/opusenc.h"
#include "tool/crew.h"
#include "tool/pump.h"
#include "tool/select.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BITRATE_BPS (512000 * 255)
#define MAX_JOBS 64
#define SLOTS_PER_THREAD 4u
#define FIRST_OUT_BYTES (256u << 10)
#define FEC_LEAST_FRAME_US 10000
#define DEFAULT_LOSS_PCT 5 /* with --fec: speech gets its redundancy, music is left in CELT (libopus 1.3) */

/* A track that is encoded. */
struct lane {
	uint16_t id;
	struct opusenc *encoder;  /* NULL between its END and its next announcement */
	uint32_t rate_num, rate_den;
	uint16_t frame_bytes;
	int64_t reached_pos;      /* end of what came, in the source's rate */
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

struct encode {
	struct tool tool;
	struct pump pump;
	struct opusenc_options options;
	struct opt_list wanted;
	struct select_hits hits;
	int64_t jobs;
	struct lane **lanes;
	unsigned n_lanes;
	struct crew crew;
	bool has_crew;
};

/* ---- packets out ---- */

static enum err write_packet(struct encode *self, struct lane *lane, int64_t utc_ns, int64_t utc_pos, uint32_t dropped, struct packet p)
{
	struct writer *w = &self->pump.out;
	struct writer_track *wt = writer_track(w, lane->id);

	p.track = lane->id;
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
	struct encode *self;
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

static enum err fail(struct encode *self, const struct lane *lane, enum err e)
{
	char thing[32];

	if (e == ERR_CODEC || e == ERR_NOMEM) {
		snprintf(thing, sizeof(thing), "track %u", lane->id);
		err_say(&self->pump.why, e, thing, "%s", e == ERR_CODEC ? "libopus failed to encode it" : err_text(e));
	}
	return e;
}

/* Write what the oldest job became.  Returns: ERR_AGAIN if there is none, or, without wait, none that is done. */
static enum err write_oldest(struct encode *self, bool wait)
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

static enum err write_all(struct encode *self)
{
	enum err e = ERR_OK;

	while (self->has_crew && !e)
		e = write_oldest(self, true);
	return e == ERR_AGAIN ? ERR_OK : e;
}

static bool input_waits(struct encode *self)
{
	struct pollfd pfd = { .fd = self->pump.in.fd, .events = POLLIN };
	return self->pump.in.is_stream && poll(&pfd, 1, 0) == 0;
}

/* The input is to be read: blocks have been copied, so only if that would wait must everything be handed on first. */
static enum err idle(void *stage)
{
	struct encode *self = stage;
	return self->has_crew && input_waits(self) ? write_all(self) : ERR_OK;
}

static enum err start_crew(struct encode *self)
{
	unsigned n_threads = (unsigned)self->jobs;
	enum err e = crew_open(&self->crew, n_threads, SLOTS_PER_THREAD * n_threads, sizeof(struct job), do_job, "encode", &self->pump.why);

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

static void stop_crew(struct encode *self)
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
static enum err next_job(struct encode *self, struct lane *lane, int64_t pos, uint32_t n_frames, struct job **out)
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
static enum err give(struct encode *self, struct lane *lane, const struct packet *p, const struct packet_gap *gap)
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
static enum err close_lane(struct encode *self, struct lane *lane)
{
	struct direct d = { self, lane };
	enum err e = write_all(self);

	if (lane->encoder && !e) {
		if ((e = opusenc_finish(lane->encoder, write_direct, &d)))
			e = fail(self, lane, e);
		opusenc_free(lane->encoder);
		lane->encoder = NULL;
	}
	return e;
}

static struct lane *add_lane(struct encode *self, uint16_t id)
{
	struct lane **more = realloc(self->lanes, (self->n_lanes + 1) * sizeof(struct lane *));
	struct lane *lane = more ? calloc(1, sizeof(*lane)) : NULL;

	if (more)
		self->lanes = more;
	if (!lane)
		return NULL;
	lane->id = id;
	self->lanes[self->n_lanes++] = lane;
	return lane;
}

static void note_conversions(struct encode *self, const struct lane *lane, const struct track *pcm, const struct track *coded)
{
	char thing[32];

	snprintf(thing, sizeof(thing), "track %u", lane->id);
	if (opusenc_resamples(lane->encoder))
		tool_note(&self->tool, thing, "%u Hz is resampled to 48000 Hz", track_rate_hz(pcm));
	if (coded->opus_family == 255 && pcm->channels > 2)
		tool_note(&self->tool, thing, "%u channels without a layout that Opus knows: discrete (mapping family 255)", pcm->channels);
	if (self->options.bitrate_bps > 300000 * (int32_t)pcm->channels)
		tool_note(&self->tool, thing, "libopus holds %d bit/s to %d", self->options.bitrate_bps, 300000 * pcm->channels);
}

static enum err open_lane(struct encode *self, const struct track *t, void **user)
{
	struct lane *lane = *user;
	struct track pcm = { 0 }, coded = { 0 };
	enum err e;

	if (!lane && !(lane = *user = add_lane(self, t->id)))
		return ERR_NOMEM;
	if ((e = close_lane(self, lane)) || (e = track_copy(&pcm, t)))
		return e;
	/* Announced again on the way: what came before is not to come again. */
	bool same_rate = lane->rate_num == t->rate_num && lane->rate_den == t->rate_den;
	if (same_rate && lane->reached_pos > pcm.first_pos)
		pcm.first_pos = lane->reached_pos;
	lane->rate_num = t->rate_num;
	lane->rate_den = t->rate_den;
	lane->frame_bytes = t->frame_bytes;
	lane->utc_ns = UNITS_UNKNOWN_NS;

	if (!(e = opusenc_new(&lane->encoder, &pcm, &self->options, &coded, &self->pump.why))) {
		coded.id = t->id;
		note_conversions(self, lane, &pcm, &coded);
		e = writer_announce(&self->pump.out, &coded);
	} else {
		snprintf(self->pump.why.thing, sizeof(self->pump.why.thing), "track %u", t->id);
	}
	track_release(&coded);
	track_release(&pcm);
	if (!e && !self->has_crew && self->jobs > 1 && self->n_lanes > 1)
		e = start_crew(self);
	return e;
}

static enum err take_track(struct encode *self, struct packet *p)
{
	const struct track *t = input_track(&self->pump.in, p->track);
	void **user = input_user(&self->pump.in, p->track);
	enum err e;

	if (!t || !user)
		return ERR_OK;
	select_note(&self->hits, &self->wanted, t);
	if (track_is_pcm(t) && select_match(&self->wanted, t))
		return open_lane(self, t, user);
	/* Not ours, or no longer. */
	if (*user && (e = close_lane(self, *user)))
		return e;
	*user = NULL;
	return (e = write_all(self)) ? e : pump_pass(&self->pump, p);
}

static enum err take_frames(struct encode *self, struct lane *lane, const struct packet *p)
{
	struct direct d = { self, lane };
	struct packet_gap gap;
	const struct packet_gap *g = NULL;
	int64_t rate = 48000 * (int64_t)lane->rate_den;
	enum err e;

	if (p->type == PACKET_GAP) {
		if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
			return ERR_OK;
		g = &gap;
	} else {
		lane->dropped = (uint32_t)units_scale(p->dropped, rate, lane->rate_num);
	}
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

static enum err take(void *stage, struct packet *p)
{
	struct encode *self = stage;
	void **user = p->track ? input_user(&self->pump.in, p->track) : NULL;
	struct lane *lane = user ? *user : NULL;
	enum err e;

	if (p->type == PACKET_TRACK)
		return take_track(self, p);
	if (lane && lane->encoder && (p->type == PACKET_DATA || p->type == PACKET_GAP))
		return take_frames(self, lane, p);
	if (lane && p->type == PACKET_END && (e = close_lane(self, lane)))
		return e;
	return (e = write_all(self)) ? e : pump_pass(&self->pump, p);
}

static enum err finish(void *stage)
{
	struct encode *self = stage;
	enum err e = write_all(self);

	for (unsigned i = 0; i < self->n_lanes && !e; i++)
		e = close_lane(self, self->lanes[i]);
	return e;
}

/* ---- main ---- */

static void check_usage(struct encode *self, int frame, int argc, char **argv)
{
	struct err_why why = { 0 };

	if (argc > 2)
		tool_usage(&self->tool, argv[2], "one input at most");
	if (select_check(&self->wanted, &why))
		tool_usage(&self->tool, why.thing, "%s", why.reason);
	self->options.frame_us = (uint32_t)frame;
	if (self->options.fec && frame < FEC_LEAST_FRAME_US)
		tool_usage(&self->tool, "--fec", "needs packets of 10ms or more, --frame is %gms", frame / 1000.0);
	if (self->jobs == 0) {
		long n = sysconf(_SC_NPROCESSORS_ONLN);
		self->jobs = n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : n;
	}
}

int main(int argc, char **argv)
{
	static struct encode self = { .options = { .application = OPUSENC_AUDIO, .complexity = 10, .family = -1 } };
	const struct input_options input = { .reader = { .expand_silence = true } };
	static const struct opt_choice frames[] = {
		{ "2.5ms", 2500 }, { "5ms", 5000 }, { "10ms", 10000 }, { "20ms", 20000 }, { "40ms", 40000 }, { "60ms", 60000 }, { NULL, 0 },
	};
	static const struct opt_choice applications[] = {
		{ "audio", OPUSENC_AUDIO }, { "voip", OPUSENC_VOIP },
		{ "lowdelay", OPUSENC_LOWDELAY }, { NULL, 0 },
	};
	int frame = 20000, mode = OPUSENC_VBR;
	int64_t complexity = 10;
	double loss_pct = -1;
	char missing[128];
	enum err e;

	const struct opt options[] = {
		OPT_BITRATE('b', "bitrate", &self.options.bitrate_bps, 500, MAX_BITRATE_BPS,
			"bits a second of a whole track, up to 512k a channel; left out, libopus chooses (64k to 128k in stereo)"),
		OPT_CHOICE(0, "frame", "TIME", &frame, frames, "time in a packet (20ms)"),
		OPT_CHOICE(0, "application", "KIND", &self.options.application, applications,
			"audio, voip (speech) or lowdelay (2.5 ms of look-ahead instead of 6.5) (audio)"),
		OPT_INT(0, "complexity", "N", &complexity, 0, 10, "more is better and slower (10)"),
		OPT_SET(0, "vbr", &mode, OPUSENC_VBR, "variable bit rate (the default)"),
		OPT_SET(0, "cvbr", &mode, OPUSENC_CVBR, "variable, but never far from the bit rate"),
		OPT_SET(0, "cbr", &mode, OPUSENC_CBR, "every packet of the same size"),
		OPT_FLAG(0, "fec", &self.options.fec, "in speech, carry a small copy of the packet before (10ms and longer)"),
		OPT_PERCENT(0, "expect-loss", &loss_pct, 0, 100, "make packets that bear this much loss (0%; 5% with --fec)"),
		OPT_FLAG(0, "dtx", &self.options.dtx, "send nothing in silence"),
		OPT_LIST('t', "track", "TRACK", &self.wanted, "encode only these tracks: number, name or kind; the others pass"),
		OPT_INT('j', "jobs", "JOBS", &self.jobs, 1, MAX_JOBS, "encode so many tracks at a time (as many as there are processors)"),
		OPT_END
	};
	tool_begin(&self.tool, "encode", "[options] [INPUT]", "Encode PCM audio tracks to Opus; other tracks pass.", options, &argc, &argv);
	self.options.complexity = (int)complexity;
	self.options.mode = (enum opusenc_mode)mode;
	self.options.expect_loss_pct = loss_pct >= 0 ? (int)(loss_pct + 0.5) : self.options.fec ? DEFAULT_LOSS_PCT : 0;
	check_usage(&self, frame, argc, argv);

	if ((e = pump_open(&self.pump, &self.tool, argc > 1 ? argv[1] : "-", &input)))
		goto out;
	self.pump.idle = idle;
	writer_seed(&self.pump.out, &self.options, sizeof(self.options));
	for (unsigned i = 0; i < self.wanted.n; i++)
		writer_seed(&self.pump.out, self.wanted.value[i], strlen(self.wanted.value[i]) + 1);
	e = pump_run(&self.pump, take, finish, &self);
	if ((!e || e == ERR_CUT) && select_missing(&self.hits, &self.wanted, missing))
		e = err_say(&self.pump.why, ERR_FORMAT, missing, "no such track in the input");
out:
	pump_release(&self.pump); /* its last statistics name the threads, too */
	stop_crew(&self);
	for (unsigned i = 0; i < self.n_lanes; i++) {
		opusenc_free(self.lanes[i]->encoder);
		free(self.lanes[i]);
	}
	free(self.lanes);
	return tool_end(&self.tool, e, &self.pump.why);
}
