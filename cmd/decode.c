/*
 * decode: Opus tracks become PCM; everything else passes.
 *
 * A packet in is a packet out, decoded straight into the writer's arena, so nothing waits and the output does not depend on
 * how the input arrived.  A hole is concealed at once, but for one case: where the next packet may hold a copy of what is
 * missing (in-band FEC, which only speech has), the hole waits for it.
 */
#include "dsp/convert.h"
#include "media/opusdec.h"
#include "tool/filter.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CONCEAL_MAX_FRAMES 48000 /* in a row; a longer hole is passed on */

/* A track that is decoded. */
struct lane {
	struct filter_lane base;
	struct opusdec *decoder;  /* NULL between its END and its next announcement */
	unsigned channels;
	size_t frame_bytes;       /* of what comes out */
	size_t room_frames;       /* that a packet holds */
	struct convert convert;   /* f32 to the format asked for */
	bool converts;
	bool heard;               /* a packet has been decoded: there is something to conceal from */
	int64_t end_pos;          /* of what was written */
	int64_t utc_ns, utc_pos;
	/* a hole that waits for the packet behind it */
	bool has_hole;
	int64_t hole_pos;
	uint32_t hole_frames;
	struct packet_gap hole;
	uint32_t concealed_in_row_frames;
	uint64_t n_holes, lost_frames; /* that were losses */
	uint64_t clipped_samples;
};

struct decode {
	struct tool tool;
	struct filter filter;
	int format;               /* enum sample */
	bool dither;
	atomic_uint_fast64_t concealed_frames, recovered_frames, clipped_samples, refused_packets;
};

/* ---- frames out ---- */

static void fill_packet(const struct lane *lane, struct packet *p, const struct opusdec_block *b, size_t from, size_t n_frames)
{
	*p = packet_data(lane->base.id, b->pos + (int64_t)from, (uint32_t)n_frames, (uint32_t)(n_frames * lane->frame_bytes));
	p->flags |= b->flags;
	if (from)
		p->flags &= (uint16_t)~PACKET_DISCONT;
	if (lane->utc_ns != UNITS_UNKNOWN_NS)
		p->utc_ns = lane->utc_ns + units_to_ns(p->pos - lane->utc_pos, 48000, 1);
}

/* Write a block.  `reserved` is the writer's place (NULL: to be asked for), where the block may stand already. */
static enum err write_block(struct decode *self, struct lane *lane, const struct opusdec_block *b, uint8_t *reserved)
{
	struct writer *w = &self->filter.pump.out;
	const float *from = b->frames;
	struct packet p;
	enum err e;

	if (b->flags & PACKET_CONCEALED)
		stats_add(&self->concealed_frames, b->n_frames);
	if (b->flags & PACKET_RECOVERED)
		stats_add(&self->recovered_frames, b->n_frames);
	for (size_t done = 0; done < b->n_frames;) {
		size_t n = b->n_frames - done < lane->room_frames ? b->n_frames - done : lane->room_frames;
		uint8_t *to = reserved ? reserved : writer_reserve(w, n * lane->frame_bytes);
		if (!to)
			return w->failed;
		reserved = NULL;
		if (lane->converts) {
			uint64_t clipped = convert_run(&lane->convert, to, from + done * lane->channels, n * lane->channels);
			lane->clipped_samples += clipped;
			stats_add(&self->clipped_samples, clipped);
		} else if ((const void *)to != b->frames)
			memcpy(to, from + done * lane->channels, n * lane->frame_bytes);
		fill_packet(lane, &p, b, done, n);
		if ((e = writer_commit(w, &p)))
			return e;
		done += n;
	}
	if (b->n_frames)
		lane->end_pos = b->pos + (int64_t)b->n_frames;
	return ERR_OK;
}

/* ---- holes ---- */

/* Conceal [pos, pos + n_frames), by `next` where it can; flags say what the frames are. */
static enum err conceal(struct decode *self, struct lane *lane, int64_t pos, uint64_t n_frames, const struct packet *next, bool is_loss)
{
	int64_t end = pos + (int64_t)n_frames;
	struct opusdec_block b;
	enum err e;

	while (pos < end) {
		if (opusdec_conceal(lane->decoder, pos, (uint64_t)(end - pos), next, &b) || !b.n_frames)
			break;
		pos = b.pos + (int64_t)b.n_frames;
		if (!is_loss)
			b.flags = 0;
		if ((e = write_block(self, lane, &b, NULL)))
			return e;
	}
	return ERR_OK;
}

static enum err pass_hole(struct decode *self, struct lane *lane, int64_t pos, uint32_t n_frames, const struct packet_gap *gap)
{
	int64_t from = pos < lane->end_pos ? lane->end_pos : pos;
	int64_t end = pos + n_frames;

	opusdec_skip(lane->decoder, end);
	if (from >= end)
		return ERR_OK;
	lane->end_pos = end;
	return writer_gap(&self->filter.pump.out, lane->base.id, from, (uint32_t)(end - from), gap);
}

/* The hole that waits, if there is one, is filled or passed on. */
static enum err settle_hole(struct decode *self, struct lane *lane, const struct packet *next)
{
	if (!lane->has_hole)
		return ERR_OK;
	lane->has_hole = false;
	if (!lane->heard || (uint64_t)lane->concealed_in_row_frames + lane->hole_frames > CONCEAL_MAX_FRAMES)
		return pass_hole(self, lane, lane->hole_pos, lane->hole_frames, &lane->hole);
	lane->concealed_in_row_frames += lane->hole_frames;
	return conceal(self, lane, lane->hole_pos, lane->hole_frames, next, true);
}

static enum err take_gap(struct filter *f, struct filter_lane *base, const struct packet *p)
{
	struct decode *self = f->stage;
	struct lane *lane = (struct lane *)base;
	struct packet_gap gap;
	enum err e;

	if (packet_gap_unpack(&gap, p->payload, p->payload_bytes))
		return ERR_OK;
	if ((e = settle_hole(self, lane, NULL)))
		return e;
	if (gap.reason == PACKET_GAP_NOT_STARTED || gap.reason == PACKET_GAP_PAUSED)
		return pass_hole(self, lane, p->pos, p->dur, &gap);
	if (gap.reason == PACKET_GAP_DTX) {
		if (!lane->heard)
			return pass_hole(self, lane, p->pos, p->dur, &gap);
		return conceal(self, lane, p->pos, p->dur, NULL, false);
	}
	lane->n_holes++;
	lane->lost_frames += p->dur;
	lane->has_hole = true;
	lane->hole_pos = p->pos;
	lane->hole_frames = p->dur;
	lane->hole = gap;
	return opusdec_may_recover(lane->decoder) ? ERR_OK : settle_hole(self, lane, NULL);
}

/* ---- packets in ---- */

static enum err take_packet(struct filter *f, struct filter_lane *base, const struct packet *p)
{
	struct decode *self = f->stage;
	struct lane *lane = (struct lane *)base;
	struct writer *w = &f->pump.out;
	struct writer_track *wt = writer_track(w, lane->base.id);
	struct opusdec_block b;
	uint8_t *to = NULL;
	enum err e, decoded;

	if ((e = settle_hole(self, lane, p)))
		return e;
	if (wt)
		wt->dropped = p->dropped;
	lane->utc_ns = p->utc_ns;
	lane->utc_pos = p->pos;
	if (!lane->converts && !(to = writer_reserve(w, lane->room_frames * lane->frame_bytes)))
		return w->failed;
	decoded = opusdec_packet_into(lane->decoder, p, to, lane->room_frames, &b);
	if (decoded == ERR_CODEC) {
		char thing[32];
		snprintf(thing, sizeof(thing), "track %u", lane->base.id);
		tool_warn(&self->tool, thing, "a packet that is not Opus: concealed");
		stats_add(&self->refused_packets, 1);
		lane->n_holes++;
		lane->lost_frames += p->dur;
	} else if (decoded) {
		return decoded;
	} else {
		lane->concealed_in_row_frames = 0;
		lane->heard = true;
	}
	if ((e = write_block(self, lane, &b, to)))
		return e;

	/* It says that it covers more than it decodes to. */
	int64_t end = p->pos + p->dur, has = opusdec_pos(lane->decoder);
	if (has >= end || p->flags & PACKET_DISCONT)
		return ERR_OK;
	if (!decoded) {
		lane->n_holes++;
		lane->lost_frames += (uint64_t)(end - has);
	}
	lane->has_hole = true;
	lane->hole_pos = has;
	lane->hole_frames = (uint32_t)(end - has);
	lane->hole = (struct packet_gap){ .reason = PACKET_GAP_DAMAGED, .utc_ns = UNITS_UNKNOWN_NS };
	return settle_hole(self, lane, NULL);
}

static enum err close_lane(struct filter *f, struct filter_lane *base)
{
	struct lane *lane = (struct lane *)base;
	enum err e = settle_hole(f->stage, lane, NULL);

	opusdec_free(lane->decoder);
	lane->decoder = NULL;
	return e;
}

static enum err accept_track(struct filter *f, const struct track *t)
{
	(void)f;
	return track_is_opus(t) ? ERR_OK : ERR_AGAIN;
}

/* A new announcement is a new decoder; the timeline goes on. */
static enum err open_lane(struct filter *f, struct filter_lane *base, const struct track *t)
{
	struct decode *self = f->stage;
	struct lane *lane = (struct lane *)base;
	struct track pcm = { 0 };
	enum err e;

	if (base->n_opened == 0)
		lane->end_pos = INT64_MIN;
	if ((e = opusdec_new(&lane->decoder, t, false, &pcm, &f->pump.why)))
		return e;
	opusdec_skip(lane->decoder, lane->end_pos);
	if (lane->end_pos > pcm.first_pos)
		pcm.first_pos = lane->end_pos;
	struct track form = track_pcm(48000, pcm.channels, (enum sample)self->format);
	pcm.id = t->id;
	pcm.sample = form.sample;
	pcm.frame_bytes = form.frame_bytes;
	pcm.valid_bits = form.valid_bits;
	lane->channels = pcm.channels;
	lane->frame_bytes = pcm.frame_bytes;
	lane->room_frames = PACKET_MAX_PAYLOAD_BYTES / lane->frame_bytes;
	if (lane->room_frames > OPUSDEC_MAX_FRAMES)
		lane->room_frames = OPUSDEC_MAX_FRAMES;
	lane->converts = self->format != SAMPLE_F32;
	lane->heard = false;
	lane->utc_ns = UNITS_UNKNOWN_NS;
	e = convert_init(&lane->convert, SAMPLE_F32, (enum sample)self->format, self->dither, t->id);
	if (!e)
		e = writer_announce(&self->filter.pump.out, &pcm);
	track_release(&pcm);
	return e;
}

static void release_lane(struct filter_lane *base)
{
	opusdec_free(((struct lane *)base)->decoder);
}

static const struct filter_ops ops = {
	.lane_bytes = sizeof(struct lane), .accept = accept_track, .open = open_lane, .close = close_lane, .data = take_packet, .gap = take_gap,
	.release = release_lane,
};

/* ---- main ---- */

/* Of each track, what was over full scale in a format that ends there. */
static void tell_clipping(struct decode *self)
{
	char thing[32];

	for (unsigned i = 0; i < self->filter.n_lanes; i++) {
		const struct lane *lane = (const struct lane *)self->filter.lanes[i];
		if (!lane->clipped_samples || self->tool.quiet)
			continue;
		snprintf(thing, sizeof(thing), "track %u", lane->base.id);
		tool_warn(&self->tool, thing, "%" PRIu64 " samples clipped: they are over full scale, which f32 holds", lane->clipped_samples);
	}
}

/* What was lost, in one line.  Returns: ERR_CUT, or ERR_OK when nothing was. */
static enum err tell_losses(struct decode *self)
{
	uint64_t n_holes = 0, lost_frames = 0;
	char thing[32] = "";

	for (unsigned i = 0; i < self->filter.n_lanes; i++) {
		const struct lane *lane = (const struct lane *)self->filter.lanes[i];
		if (!lane->n_holes)
			continue;
		snprintf(thing, sizeof(thing), n_holes ? "several tracks" : "track %u", lane->base.id);
		n_holes += lane->n_holes;
		lost_frames += lane->lost_frames;
	}
	if (!n_holes)
		return ERR_OK;
	return err_say(&self->filter.pump.why, ERR_CUT, thing, "%" PRIu64 " hole%s in the input, %" PRIu64 " frames: %" PRIuFAST64
		" concealed, %" PRIuFAST64 " recovered", n_holes, n_holes == 1 ? "" : "s", lost_frames,
		atomic_load(&self->concealed_frames), atomic_load(&self->recovered_frames));
}

int main(int argc, char **argv)
{
	static struct decode self = { .format = SAMPLE_F32, .dither = true };
	static const struct opt_choice formats[] = {
		{ "s16", SAMPLE_S16 }, { "s24", SAMPLE_S24 }, { "s32", SAMPLE_S32 }, { "f32", SAMPLE_F32 }, { NULL, 0 },
	};
	enum err e;

	const struct opt options[] = {
		OPT_CHOICE('f', "format", "FORMAT", &self.format, formats, "sample format of what comes out (f32)"),
		OPT_CLEAR(0, "no-dither", &self.dither, "round to s16 and s24 without dither"),
		OPT_LIST('t', "track", "TRACK", &self.filter.wanted, "decode only these tracks: number, name or kind; the others pass"),
		OPT_END
	};
	tool_begin(&self.tool, "decode", "[options] [INPUT]", "Decode Opus tracks to PCM, concealing gaps; other tracks pass.", options, &argc,
		&argv);
	filter_check_usage(&self.filter, &self.tool, argc, argv);

	stats_key(&self.filter.pump.stats, "concealed_frames", &self.concealed_frames);
	stats_key(&self.filter.pump.stats, "recovered_frames", &self.recovered_frames);
	stats_key(&self.filter.pump.stats, "clipped_samples", &self.clipped_samples);
	stats_key(&self.filter.pump.stats, "refused_packets", &self.refused_packets);
	if ((e = filter_open(&self.filter, &self.tool, &ops, &self, argc, argv, NULL)))
		goto out;
	filter_seed(&self.filter, "format %d, dither %d", self.format, self.dither);
	e = filter_run(&self.filter);
	if (!e)
		e = tell_losses(&self);
	tell_clipping(&self);
out:
	filter_release(&self.filter);
	return tool_end(&self.tool, e, &self.filter.pump.why);
}
