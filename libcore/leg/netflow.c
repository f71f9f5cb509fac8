#include "leg/netflow.h"

#include "base/units.h"
#include "media/opushead.h"
#include "net/opustoc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIFO_EXTRA_FRAMES (OPUSDEC_MAX_FRAMES + NETFLOW_MAX_BLOCK_FRAMES)
#define LAST_NS (UNITS_NS_PER_S / 5)
#define PAUSE_S 0.1 /* a new beginning that comes so much later than it would have followed is a pause */

/* ---- beginning ---- */

static enum err describe_opus(struct netflow *f, struct err_why *why)
{
	struct opushead h = { .channels = (uint8_t)f->format.channels, .family = 0, .streams = 1, .coupled = f->format.channels == 2 };

	track_release(&f->coded);
	f->coded = (struct track){ .kind = TRACK_AUDIO };
	enum err e = opushead_to_track(&h, &f->coded);
	return e ? err_say(why, e, "Opus", "%s", err_text(e)) : ERR_OK;
}

static enum err describe(struct netflow *f, struct err_why *why)
{
	enum err e = ERR_OK;

	track_release(&f->track);
	f->sample_bytes = rtp_codec_sample_bytes(f->format.codec);
	if (f->format.codec == RTP_CODEC_OPUS) {
		if ((e = describe_opus(f, why)))
			return e;
		opusdec_free(f->decoder);
		f->decoder = NULL;
		if (!f->o->retime)
			return track_copy(&f->track, &f->coded);
		if ((e = opusdec_new(&f->decoder, &f->coded, false, &f->track, why)))
			return e;
		f->sample_bytes = 4;
	} else {
		f->track = track_pcm(f->format.clock_hz, f->format.channels, f->sample_bytes == 2 ? SAMPLE_S16 : SAMPLE_S24);
	}
	f->frame_bytes = f->sample_bytes * f->format.channels;
	return ERR_OK;
}

static enum err begin_playing(struct netflow *f, struct err_why *why)
{
	unsigned channels = f->format.channels;
	enum err e;

	conceal_release(&f->conceal);
	varirate_release(&f->rate);
	free(f->fifo);
	f->fifo_room = FIFO_EXTRA_FRAMES + 4 * VARIRATE_TAPS;
	f->fifo = calloc((size_t)(f->fifo_room + NETFLOW_MAX_BLOCK_FRAMES) * channels, sizeof(float));
	if (!f->fifo)
		return err_say(why, ERR_NOMEM, "sender", "%s", err_text(ERR_NOMEM));
	f->made = f->fifo + (size_t)f->fifo_room * channels;
	if ((e = conceal_init(&f->conceal, f->format.clock_hz, channels)) || (e = varirate_beside_init(&f->rate, channels, f->o->model)))
		return err_say(why, e, "sender", "%s", err_text(e));
	if ((e = convert_init(&f->to_f32, f->sample_bytes == 2 ? SAMPLE_S16 : f->sample_bytes == 3 ? SAMPLE_S24 : SAMPLE_F32, SAMPLE_F32, false, 0)) ||
		(e = convert_init(&f->from_f32, SAMPLE_F32, f->sample_bytes == 2 ? SAMPLE_S16 : f->sample_bytes == 3 ? SAMPLE_S24 : SAMPLE_F32, false, 0)))
		return err_say(why, e, "sender", "%s", err_text(e));
	return ERR_OK;
}

/* What costs memory stays, all the rest is new. */
static void keep_memory(struct netflow *f)
{
	struct netflow was = *f;

	memset(f, 0, sizeof(*f));
	f->memory = was.memory;
	f->memory_bytes = was.memory_bytes;
	f->assembly_memory = was.assembly_memory;
	f->assembly_memory_bytes = was.assembly_memory_bytes;
	f->fifo = was.fifo;
	f->decoder = was.decoder;
	f->coded = was.coded;
	f->track = was.track;
	f->conceal = was.conceal;
	f->rate = was.rate;
}

static enum err take_memory(void **memory, size_t *had_bytes, size_t n_bytes, struct err_why *why)
{
	if (n_bytes <= *had_bytes)
		return ERR_OK;
	free(*memory);
	*memory = malloc(n_bytes);
	*had_bytes = *memory ? n_bytes : 0;
	return *memory ? ERR_OK : err_say(why, ERR_NOMEM, "sender", "%s", err_text(ERR_NOMEM));
}

/* slot_bytes: of the longest packet. */
static enum err begin(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, uint32_t ssrc,
	const struct rtp_format *format, uint32_t n_slots, uint32_t slot_bytes, struct err_why *why)
{
	struct jitter_options j = { .rate_hz = format->clock_hz, .glitches = o->glitches, .latency_ns = o->latency_ns, .n_slots = n_slots,
		.slot_bytes = slot_bytes, .pass = !o->retime };
	enum err e;

	keep_memory(f);
	f->o = o;
	f->out = out;
	f->id = id;
	f->ssrc = ssrc;
	f->format = *format;
	f->newest_seq = f->round_trip_ns = f->one_way_ns = -1;
	if (o->retime)
		j.block_frames = (uint32_t)units_from_ns(o->block_ns, format->clock_hz, 1) + VARIRATE_AHEAD_FRAMES + 1;
	if ((e = take_memory(&f->memory, &f->memory_bytes, jitter_bytes(&j), why)) || (e = jitter_init(&f->jitter, &j, f->memory, why)) || (e = describe(f, why)))
		return e;
	if (o->retime && (e = begin_playing(f, why)))
		return e;
	f->track.id = id;
	f->used = true;
	return ERR_OK;
}

enum err netflow_begin(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, uint32_t ssrc,
	const struct rtp_format *format, struct err_why *why)
{
	if (!format->channels || format->channels > NETFLOW_MAX_CHANNELS || (format->codec == RTP_CODEC_OPUS && format->channels > 2))
		return err_say(why, ERR_ARG, "sender", "%u channels", format->channels);
	return begin(f, o, out, id, ssrc, format, o->n_slots, NETFLOW_MAX_PAYLOAD_BYTES, why);
}

/* ---- a track that is split ---- */

enum err netflow_begin_joint(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, const struct rtp_format *format,
	const struct rtcp_binding *b, struct err_why *why)
{
	struct rtp_format whole = { format->codec, format->clock_hz, b->all_channels };
	unsigned sample_bytes = rtp_codec_sample_bytes(format->codec);
	uint32_t max_frames = sample_bytes && format->channels ? NETFLOW_MAX_PAYLOAD_BYTES / sample_bytes / format->channels : 0;
	size_t n_bytes = assembly_bytes(b->all_channels, sample_bytes, max_frames);
	enum err e;

	if (!n_bytes)
		return err_say(why, ERR_ARG, "sender", "a track of %u channels in parts: up to %u", b->all_channels, ASSEMBLY_MAX_CHANNELS);
	if ((e = begin(f, o, out, id, 0, &whole, o->n_slots < NETFLOW_JOINT_SLOTS ? o->n_slots : NETFLOW_JOINT_SLOTS,
		max_frames * b->all_channels * sample_bytes, why)))
		return e;
	f->used = false;
	if ((e = take_memory(&f->assembly_memory, &f->assembly_memory_bytes, n_bytes, why)))
		return e;
	assembly_init(&f->assembly, b->all_channels, sample_bytes, max_frames, f->assembly_memory);
	f->used = f->is_joint = f->is_weir = true;
	netflow_bind(f, b);
	return ERR_OK;
}

bool netflow_begin_part(struct netflow *f, struct netflow *joint, uint32_t ssrc, const struct rtp_format *format, const struct rtcp_binding *b, int64_t now_ns)
{
	int member = assembly_join(&joint->assembly, b->first_channel, format->channels, now_ns);

	if (member < 0)
		return false;
	keep_memory(f);
	f->o = joint->o;
	f->out = joint->out;
	f->id = joint->id;
	f->ssrc = ssrc;
	f->format = *format;
	f->newest_seq = f->round_trip_ns = f->one_way_ns = -1;
	f->joint = joint;
	f->member = (unsigned)member;
	f->used = true;
	netflow_bind(f, b);
	return true;
}

bool netflow_become_part(struct netflow *f, struct netflow *joint, const struct rtcp_binding *b, int64_t now_ns)
{
	int member = assembly_join(&joint->assembly, b->first_channel, f->format.channels, now_ns);

	if (member < 0)
		return false;
	(void)!netflow_end(f, PACKET_END_NORMAL); /* what the writer says it keeps */
	f->used = true;
	f->id = joint->id;
	f->joint = joint;
	f->member = (unsigned)member;
	f->has_base = false;
	netflow_bind(f, b);
	return true;
}

bool netflow_belongs(const struct netflow *joint, const struct rtcp_binding *b, const struct dgram_addr *from)
{
	const struct rtcp_binding *of = &joint->binding;

	return joint->used && joint->is_joint && !joint->ending && dgram_same(&joint->from, from) && of->track == b->track && of->codec == b->codec &&
		of->rate_hz == b->rate_hz && of->all_channels == b->all_channels;
}

/* Frames of a payload; 0 if it is none of this format. */
static uint32_t frames_of(const struct netflow *f, const uint8_t *payload, size_t n_bytes)
{
	if (f->format.codec == RTP_CODEC_OPUS)
		return opustoc_frames(payload, n_bytes);
	size_t wire = (size_t)rtp_codec_sample_bytes(f->format.codec) * f->format.channels;
	return wire && n_bytes % wire == 0 ? (uint32_t)(n_bytes / wire) : 0;
}

/* The place of a timestamp on the track, that all parts have in common. */
static int64_t part_pos(struct netflow *f, uint32_t ts)
{
	if (!f->has_base)
		f->base = f->binding.pos0 - rtp_peek_ts(&f->ts, f->binding.ts0);
	f->has_base = true;
	return rtp_peek_ts(&f->ts, ts) + f->base;
}

static void take_whole(struct netflow *joint, const struct jitter_packet *p)
{
	joint->last_ns = p->arrival_ns;
	jitter_put(&joint->jitter, p);
}

/* Returns: as assembly_put(). */
static enum assembly_put put_part(struct netflow *f, int64_t pos, uint32_t frames, const uint8_t *payload, bool follows, bool copy, int64_t arrival_ns)
{
	struct jitter_packet whole;

	if (f->joint->jitter.state != JITTER_IDLE && pos + frames <= f->joint->jitter.next_pos) {
		f->jitter.counts.late += !copy;
		return ASSEMBLY_HAD;
	}
	enum assembly_put put = assembly_put(&f->joint->assembly, f->member, pos, frames, payload, follows, copy, arrival_ns, &whole);
	if (put == ASSEMBLY_WHOLE)
		take_whole(f->joint, &whole);
	f->counts.refused += put == ASSEMBLY_REFUSED;
	return put;
}

/* What is needed up to `before` and has not come whole. */
static void give_up(struct netflow *f, int64_t before)
{
	struct jitter_packet partial;

	while (f->is_joint && assembly_give_up(&f->assembly, before, &partial))
		jitter_put(&f->jitter, &partial);
}

void netflow_succeed(struct netflow *f, uint32_t ssrc)
{
	f->ssrc = ssrc;
	f->source = (struct rtp_source){ 0 };
	f->seq = f->ts = (struct rtp_unwrap){ 0 };
	f->newest_seq = f->round_trip_ns = f->one_way_ns = -1;
	f->reception = (struct rtcp_reception){ 0 };
	f->monitor = (struct red_monitor){ 0 };
	f->has_sr = f->is_weir = f->ending = false;
	jitter_restart(&f->jitter, false);
}

void netflow_release(struct netflow *f)
{
	free(f->memory);
	free(f->assembly_memory);
	free(f->fifo);
	opusdec_free(f->decoder);
	conceal_release(&f->conceal);
	varirate_release(&f->rate);
	track_release(&f->coded);
	track_release(&f->track);
	memset(f, 0, sizeof(*f));
}

/* ---- what comes ---- */

static enum jitter_put put(struct netflow *f, int64_t pos, int64_t seq, uint16_t flags, const uint8_t *payload, size_t n_bytes, int64_t arrival_ns)
{
	struct jitter_packet p = { .pos = pos, .dur_frames = frames_of(f, payload, n_bytes), .n_bytes = (uint32_t)n_bytes, .bytes = payload,
		.arrival_ns = arrival_ns, .flags = flags, .note = (uint32_t)seq };

	if (!p.dur_frames || n_bytes > NETFLOW_MAX_PAYLOAD_BYTES) {
		f->counts.refused++;
		return JITTER_STRAY;
	}
	return jitter_put(&f->jitter, &p);
}

/* What was filled in behind the last packet: so many frames of it were never sent, the rest was late or lost. */
static void settle_open(struct netflow *f, int64_t unsent_frames)
{
	int64_t unsent = unsent_frames < 0 ? 0 : unsent_frames < f->open_frames ? unsent_frames : f->open_frames;

	f->counts.unsent_frames += (uint64_t)unsent;
	f->counts.concealed_frames += f->open_frames - (uint64_t)unsent;
	f->counts.lost_frames += f->open_frames - (uint64_t)unsent;
	f->open_frames = 0;
}

bool netflow_packet(struct netflow *f, const struct rtp *r, int64_t arrival_ns)
{
	int64_t seq = rtp_unwrap_seq(&f->seq, r->seq), pos = rtp_peek_ts(&f->ts, r->ts);
	bool follows = seq == f->newest_seq + 1;

	f->counts.packets++;
	f->last_ns = arrival_ns;
	rtcp_reception_take(&f->reception, r->seq, r->ts, arrival_ns, f->format.clock_hz);
	red_monitor_packet(&f->monitor, seq, arrival_ns);
	if (seq > f->newest_seq)
		f->newest_seq = seq;
	if (!r->payload_bytes)
		return true; /* only a sign of life */
	if (f->joint) {
		uint32_t frames = frames_of(f, r->payload, r->payload_bytes);
		rtp_unwrap_ts(&f->ts, r->ts);
		enum assembly_put part = put_part(f, part_pos(f, r->ts), frames, r->payload, follows, false, arrival_ns);
		return part == ASSEMBLY_WHOLE || part == ASSEMBLY_KEPT;
	}
	settle_open(f, follows ? pos - f->jitter.newest_pos : 0);
	enum jitter_put put_ = put(f, pos, seq, follows ? JITTER_FOLLOWS : 0, r->payload, r->payload_bytes, arrival_ns);
	if (put_ != JITTER_STRAY)
		rtp_unwrap_ts(&f->ts, r->ts);
	return put_ == JITTER_STORED || put_ == JITTER_BEGUN;
}

void netflow_copy(struct netflow *f, uint32_t ts, int64_t seq, const uint8_t *payload, size_t n_bytes, int64_t arrival_ns)
{
	if (!f->ts.started)
		return;
	if (f->joint) {
		enum assembly_put part = put_part(f, part_pos(f, ts), frames_of(f, payload, n_bytes), payload, false, true, arrival_ns);
		f->counts.recovered += part == ASSEMBLY_WHOLE || part == ASSEMBLY_KEPT;
		return;
	}
	if (put(f, rtp_peek_ts(&f->ts, ts), seq, JITTER_COPY, payload, n_bytes, arrival_ns) == JITTER_STORED)
		f->counts.recovered++;
}

void netflow_sr(struct netflow *f, const struct rtcp_sr *sr, int64_t arrival_ns)
{
	rtcp_reception_sr(&f->reception, sr, arrival_ns);
	if (f->heard_ns)
		f->rtcp_gap_ns = arrival_ns - f->heard_ns;
	f->heard_ns = arrival_ns;
	if (!sr->ntp || !f->ts.started)
		return;
	f->sr_ts = rtp_peek_ts(&f->ts, sr->ts);
	f->sr_utc_ns = rtcp_ntp_utc_ns(sr->ntp);
	f->has_sr = true;
	if (f->joint) {
		f->joint->sr_ts = part_pos(f, sr->ts);
		f->joint->sr_utc_ns = f->sr_utc_ns;
		f->joint->has_sr = true;
	}
}

void netflow_bind(struct netflow *f, const struct rtcp_binding *b)
{
	if (f->joint && (f->binding.ts0 != b->ts0 || f->binding.pos0 != b->pos0))
		f->has_base = false;
	f->is_weir = true;
	f->binding = *b;
	if (b->name[0])
		snprintf(f->name, sizeof(f->name), "%s", b->name);
}

void netflow_bye(struct netflow *f)
{
	f->ending = true;
	give_up(f, INT64_MAX);
	jitter_end(&f->jitter);
}

bool netflow_is_gone(const struct netflow *f, int64_t now_ns)
{
	int64_t last_ns = f->heard_ns > f->last_ns ? f->heard_ns : f->last_ns, limit_ns = NETFLOW_FORGET_NS;

	if (f->is_joint) /* as long as its parts */
		return false;
	if (f->is_weir && f->heard_ns) {
		limit_ns = f->rtcp_gap_ns ? 3 * f->rtcp_gap_ns : NETFLOW_SILENT_MOST_NS;
		limit_ns = limit_ns < NETFLOW_SILENT_LEAST_NS ? NETFLOW_SILENT_LEAST_NS : limit_ns > NETFLOW_SILENT_MOST_NS ? NETFLOW_SILENT_MOST_NS : limit_ns;
	}
	return now_ns - last_ns > limit_ns;
}

double netflow_depth_s(const struct netflow *f)
{
	return jitter_depth_s(f->joint ? &f->joint->jitter : &f->jitter);
}

uint64_t netflow_lost(const struct netflow *f)
{
	int64_t lost = f->reception.started ? rtcp_reception_lost(&f->reception) : 0;
	return lost > 0 ? (uint64_t)lost : 0;
}

/* ---- the track ---- */

static int64_t utc_of(const struct netflow *f, int64_t jitter_pos)
{
	if (!f->has_sr)
		return UNITS_UNKNOWN_NS;
	return f->sr_utc_ns + units_to_ns(jitter_pos - f->sr_ts, f->format.clock_hz, 1);
}

/* Track position of timestamp zero of the unwrapped ones, as the sender says it.  Returns: it says so. */
static bool bound_base(const struct netflow *f, int64_t *base)
{
	if (!f->is_weir || f->binding.rate_hz != f->format.clock_hz)
		return false;
	*base = f->is_joint ? 0 : f->binding.pos0 - rtp_peek_ts(&f->ts, f->binding.ts0);
	return true;
}

static enum err announce(struct netflow *f, int64_t pos)
{
	struct track *t = &f->track;
	enum err e;

	if (f->announced)
		return ERR_OK;
	/* Of Opus heard from its beginning the first frames are not to be heard. */
	bool has_beginning = !f->o->retime && f->is_weir && f->format.codec == RTP_CODEC_OPUS && f->binding.first_pos >= pos &&
		f->binding.first_pos - pos <= OPUSDEC_MAX_FRAMES;
	t->first_pos = has_beginning ? f->binding.first_pos : pos;
	t->next_pos = pos;
	if ((e = track_set_name(t, f->name)) || (e = writer_announce(f->out, t)))
		return e;
	f->announced = true;
	f->end_pos = pos;
	return ERR_OK;
}

/* Holes that follow each other are one. */
static enum err end_gap(struct netflow *f)
{
	while (f->gap.frames > 0) {
		struct packet_gap g = { .reason = (uint16_t)f->gap.reason, .utc_ns = UNITS_UNKNOWN_NS };
		uint32_t dur = f->gap.frames > INT32_MAX ? INT32_MAX : (uint32_t)f->gap.frames;
		enum err e = writer_gap(f->out, f->id, f->gap.pos, dur, &g);
		if (e)
			return e;
		f->counts.gaps++;
		f->gap.pos += dur;
		f->gap.frames -= dur;
	}
	return ERR_OK;
}

static enum err add_gap(struct netflow *f, int64_t frames, enum packet_gap_reason reason)
{
	enum err e;

	if (frames <= 0 || !f->announced)
		return ERR_OK;
	if (f->gap.frames && f->gap.reason != reason && (e = end_gap(f)))
		return e;
	if (!f->gap.frames) {
		f->gap.pos = f->end_pos;
		f->gap.reason = reason;
	}
	f->gap.frames += frames;
	f->end_pos += frames;
	return ERR_OK;
}

/* What is written next goes into the queue without a flush: while one waits, packets come in and slots change hands. */
static enum err make_room(struct netflow *f)
{
	const struct writer *w = f->out;
	size_t most = PACKET_MAX_PAYLOAD_BYTES + 16 * PACKET_UNIT_BYTES;

	if (w->arena_used_bytes + most <= w->arena_bytes && w->queued_bytes + most <= w->flush_bytes && w->n_iov + 32 <= WRITER_MAX_IOV)
		return ERR_OK;
	return writer_flush(f->out);
}

/* ---- passed on as it came ---- */

/* Where a new beginning goes on the track. */
static enum err place_beginning(struct netflow *f, const struct jitter_part *part)
{
	int64_t base, pos = part->pos + part->skip_frames;
	enum err e;

	if (!f->has_base) {
		f->base = bound_base(f, &base) ? base : -pos;
		f->has_base = true;
		return ERR_OK;
	}
	if (pos + f->base == f->end_pos)
		return ERR_OK;
	if (bound_base(f, &base) && pos + base >= f->end_pos) {
		e = add_gap(f, pos + base - f->end_pos, PACKET_GAP_PAUSED);
	} else {
		/* Timestamps say nothing; the clock on the wall says how long nothing came. */
		int64_t frames = units_from_ns(part->arrival_ns - f->part_arrival_ns, f->format.clock_hz, 1) - part->frames;
		e = frames > PAUSE_S * f->format.clock_hz ? add_gap(f, frames, PACKET_GAP_PAUSED) : ERR_OK;
	}
	f->base = f->end_pos - pos;
	f->discont = true;
	return e;
}

/* The one packet that is held could be the one to trim: BYE, which says so, comes right behind it. */
static bool may_be_last(const struct netflow *f, int64_t now_ns)
{
	return f->o->trims && f->is_weir && !f->ending && f->format.codec == RTP_CODEC_OPUS && f->jitter.n_held == 1 && now_ns - f->last_ns < LAST_NS;
}

/* Frames of a packet at pos, less what lies behind the track's end. */
static uint32_t trimmed(const struct netflow *f, int64_t pos, uint32_t frames)
{
	int64_t base, end = f->binding.end_pos;

	if (!f->ending || !f->is_weir || end == RTCP_UNKNOWN_POS || !bound_base(f, &base) || base != f->base || end <= pos || end - pos >= frames)
		return frames;
	return (uint32_t)(end - pos);
}

/* Channels that did not come are as good as concealed. */
static uint16_t recovered_of(struct netflow *f, const struct jitter_part *part)
{
	if (f->is_joint && part->tag & ASSEMBLY_PARTIAL) {
		f->counts.concealed_frames += part->frames;
		return PACKET_CONCEALED;
	}
	return part->flags & JITTER_COPY ? PACKET_RECOVERED : 0;
}

static enum err pass_packet(struct netflow *f, const struct jitter_part *part)
{
	enum err e;
	uint32_t skip = part->skip_frames, n_bytes = part->n_bytes;
	bool is_opus = f->format.codec == RTP_CODEC_OPUS;

	if (part->jumped && (e = place_beginning(f, part)))
		return e;
	int64_t pos = part->pos + skip + f->base;
	if ((e = announce(f, pos)) || (e = end_gap(f)))
		return e;
	if (pos != f->end_pos || (is_opus && skip)) {
		f->counts.refused++; /* overlaps what was written */
		return ERR_OK;
	}
	const uint8_t *from = part->bytes + (size_t)skip * f->frame_bytes * !is_opus;
	n_bytes -= (uint32_t)(from - part->bytes);
	uint8_t *to = writer_reserve(f->out, n_bytes);
	if (!to)
		return f->out->failed;
	if (is_opus || f->is_joint)
		memcpy(to, from, n_bytes);
	else
		convert_swap(to, from, n_bytes / f->sample_bytes, f->sample_bytes);
	uint32_t frames = trimmed(f, pos, part->frames);
	struct packet p = packet_data(f->id, pos, frames, n_bytes);
	p.utc_ns = utc_of(f, part->pos + skip);
	p.flags |= (frames < part->frames ? PACKET_TRIM : 0) | recovered_of(f, part) | (f->discont ? PACKET_DISCONT : 0);
	f->discont = false;
	f->end_pos = pos + frames;
	f->part_arrival_ns = part->arrival_ns;
	f->counts.frames_out += frames;
	return writer_commit(f->out, &p);
}

enum err netflow_pass(struct netflow *f, int64_t now_ns)
{
	struct jitter_part part;
	enum err e = ERR_OK;

	for (;;) {
		if ((e = make_room(f)))
			return e;
		if (may_be_last(f, now_ns))
			return ERR_OK;
		if (f->is_joint && now_ns >= jitter_due_ns(&f->jitter))
			give_up(f, f->jitter.next_pos + 1);
		jitter_pass(&f->jitter, now_ns, &part);
		if (part.what == JITTER_PACKET) {
			e = pass_packet(f, &part);
		} else if (part.what == JITTER_MISSING) {
			e = add_gap(f, part.frames, part.silent ? PACKET_GAP_DTX : PACKET_GAP_NETWORK);
			if (!part.silent)
				f->counts.lost_frames += part.frames;
		} else {
			return ERR_OK;
		}
		if (e)
			return e;
	}
}

int64_t netflow_due_ns(const struct netflow *f)
{
	return may_be_last(f, f->last_ns) ? f->last_ns + LAST_NS : jitter_due_ns(&f->jitter);
}

/* ---- played ---- */

/* Room in the fifo for n frames, made by the caller having asked for no more than a packet beyond a block. */
static float *room_for(struct netflow *f, uint32_t n_frames)
{
	return f->fifo_frames + n_frames <= f->fifo_room ? f->fifo + (size_t)f->fifo_frames * f->format.channels : NULL;
}

/*
 * Frames of a part that are heard, from *first on: those before the track's first position only start the decoder, those behind
 * its end are the rest of a packet.
 */
static uint32_t heard_of(const struct netflow *f, const struct jitter_part *part, uint32_t *first)
{
	int64_t base, begin = part->pos + part->skip_frames, end = begin + part->frames;

	*first = 0;
	if (f->format.codec != RTP_CODEC_OPUS || !bound_base(f, &base))
		return part->frames;
	int64_t first_pos = f->binding.first_pos - base;
	if (!f->playing && first_pos > begin && first_pos - begin <= OPUSDEC_MAX_FRAMES)
		*first = first_pos < end ? (uint32_t)(first_pos - begin) : part->frames;
	if (f->ending && f->binding.end_pos != RTCP_UNKNOWN_POS && f->binding.end_pos - base < end)
		end = f->binding.end_pos - base > begin + *first ? f->binding.end_pos - base : begin + *first;
	return (uint32_t)(end - begin) - *first;
}

/* Decode the packet's frames behind those in the fifo. */
static void play_packet(struct netflow *f, const struct jitter_part *part)
{
	unsigned channels = f->format.channels;
	uint32_t frames = part->frames + part->skip_frames;
	float *to = room_for(f, frames);

	if (!to)
		return;
	if (part->jumped && f->playing)
		conceal_make(&f->conceal, NULL, 0); /* so that it is faded over */
	if (f->decoder) {
		struct packet p = packet_data(f->coded.id, f->decoder_pos, frames, part->n_bytes);
		struct opusdec_block b = { .n_frames = 0 };
		p.payload = part->bytes;
		enum err e = opusdec_packet(f->decoder, &p, &b);
		if (b.n_frames > frames)
			b.n_frames = frames;
		if (b.n_frames)
			memcpy(to, b.frames, b.n_frames * channels * sizeof(float));
		memset(to + b.n_frames * channels, 0, (frames - b.n_frames) * channels * sizeof(float));
		f->decoder_pos += frames;
		if (e)
			f->counts.refused++;
	} else {
		if (!f->is_joint)
			convert_swap(f->scratch, part->bytes, (size_t)frames * channels, f->sample_bytes);
		convert_run(&f->to_f32, to, f->is_joint ? part->bytes : f->scratch, (size_t)frames * channels);
	}
	if (part->skip_frames)
		memmove(to, to + (size_t)part->skip_frames * channels, (size_t)part->frames * channels * sizeof(float));
	f->play_media_pos = part->pos + frames;
	uint32_t first, heard = heard_of(f, part, &first);
	if (first)
		memmove(to, to + (size_t)first * channels, (size_t)heard * channels * sizeof(float));
	f->lead_frames += first;
	conceal_play(&f->conceal, to, heard);
	f->fifo_frames += heard;
	f->playing = f->playing || heard;
	if (recovered_of(f, part) == PACKET_CONCEALED)
		f->marked_frames = f->fifo_frames + VARIRATE_AHEAD_FRAMES + 1;
}

/* Frames that did not come, or that are filled in. */
static void play_hole(struct netflow *f, uint32_t frames, const struct jitter_part *part)
{
	unsigned channels = f->format.channels;
	float *to = room_for(f, frames);
	uint32_t done = 0;

	if (!to)
		return;
	if (part->what == JITTER_MISSING && part->silent) {
		memset(to, 0, (size_t)frames * channels * sizeof(float));
		done = frames;
	}
	while (f->decoder && done < frames) {
		const uint8_t *bytes = NULL;
		const struct jitter_slot *next = part->what == JITTER_MISSING ? jitter_peek(&f->jitter, part->pos + frames, &bytes) : NULL;
		struct packet p = packet_data(f->coded.id, f->decoder_pos + (frames - done), next ? next->dur_frames : 0, next ? next->n_bytes : 0);
		struct opusdec_block b = { .n_frames = 0 };
		p.payload = bytes;
		if (opusdec_conceal(f->decoder, f->decoder_pos, frames - done, next ? &p : NULL, &b) || !b.n_frames)
			break;
		if (b.n_frames > frames - done)
			b.n_frames = frames - done;
		memcpy(to + (size_t)done * channels, b.frames, b.n_frames * channels * sizeof(float));
		if (b.flags & PACKET_RECOVERED)
			f->counts.recovered++;
		done += (uint32_t)b.n_frames;
		f->decoder_pos += (int64_t)b.n_frames;
	}
	if (done < frames && !f->decoder)
		conceal_make(&f->conceal, to, frames);
	else if (done < frames)
		memset(to + (size_t)done * channels, 0, (size_t)(frames - done) * channels * sizeof(float));
	if (f->decoder)
		conceal_play(&f->conceal, to, frames);
	f->fifo_frames += frames;
	if (part->what == JITTER_MISSING)
		f->play_media_pos = part->pos + frames;
	if (part->what == JITTER_MISSING && part->silent) {
		f->counts.unsent_frames += frames;
		return;
	}
	if (part->what == JITTER_MISSING && !f->jitter.n_held) {
		f->open_frames += frames;
	} else {
		f->counts.concealed_frames += frames;
		f->counts.lost_frames += part->what == JITTER_MISSING ? frames : 0;
	}
	f->marked_frames = f->fifo_frames + VARIRATE_AHEAD_FRAMES + 1;
}

/* Frames of the fifo that the interpolator took are gone. */
static void consume(struct netflow *f, size_t n)
{
	f->fifo_frames -= (uint32_t)n;
	memmove(f->fifo, f->fifo + n * f->format.channels, (size_t)f->fifo_frames * f->format.channels * sizeof(float));
}

/* What is held before the output: frames taken from the buffer and not played, a fraction too. */
static double held_frames(const struct netflow *f)
{
	return f->lead_frames + (f->playing && !f->draining ? f->fifo_frames + varirate_behind_frames(&f->rate) : 0);
}

/* The end, or a pause: what the interpolator still holds comes out with silence behind it. */
static void drain(struct netflow *f)
{
	double left = ceil(held_frames(f) - f->lead_frames - 0.001);
	float *to = room_for(f, 2 * VARIRATE_TAPS);

	f->draining = true;
	f->drain_frames = left > 0 ? (uint32_t)left : 0;
	if (!to)
		return;
	memset(to, 0, 2 * VARIRATE_TAPS * f->format.channels * sizeof(float));
	f->fifo_frames += 2 * VARIRATE_TAPS;
}

static void fall_silent(struct netflow *f)
{
	f->playing = f->draining = false;
	f->fifo_frames = f->lead_frames = 0;
	varirate_reset(&f->rate);
	conceal_reset(&f->conceal);
}

/*
 * Fill `made` with up to n frames.  *lead: how many frames of the block are before the first one that sounds.
 * Returns: frames made; less than n: the rest of the block is silence that is not written.
 */
static uint32_t fill(struct netflow *f, uint32_t n, uint32_t *lead)
{
	unsigned channels = f->format.channels;
	uint32_t made = 0;

	*lead = 0;
	while (*lead + made < n) {
		uint32_t wanted = n - *lead - made;
		if (f->lead_frames && !made) {
			uint32_t silent = f->lead_frames < wanted ? f->lead_frames : wanted;
			*lead += silent;
			f->lead_frames -= silent;
			continue;
		}
		size_t need = varirate_need(&f->rate, wanted);
		if (f->draining && f->drain_frames < wanted)
			wanted = f->drain_frames;
		if (f->draining ? wanted > 0 : f->playing && f->fifo_frames >= need) {
			size_t used, got = varirate_run(&f->rate, f->made + (size_t)made * channels, wanted, f->fifo, f->fifo_frames, &used);
			consume(f, used);
			made += (uint32_t)got;
			f->drain_frames -= f->draining ? (uint32_t)got : 0;
			if (!f->draining || got)
				continue;
			f->drain_frames = 0;
		}
		if (f->draining) {
			fall_silent(f);
			continue;
		}
		struct jitter_part part;
		if (f->is_joint && f->jitter.state != JITTER_IDLE)
			give_up(f, f->jitter.next_pos + wanted - f->jitter.hold_frames);
		jitter_take(&f->jitter, f->playing ? (uint32_t)(need - f->fifo_frames) : wanted, &part);
		if (part.what == JITTER_PACKET) {
			play_packet(f, &part);
		} else if (part.what == JITTER_WAIT) {
			if (!f->playing)
				break;
			settle_open(f, 0);
			drain(f);
		} else if (f->playing) {
			play_hole(f, part.frames, &part);
		} else {
			*lead += part.frames; /* nothing was heard yet: silence that is not written */
		}
	}
	return made;
}

bool netflow_shift(const struct netflow *f, int64_t *shift_ns)
{
	int64_t base, media_pos;

	if (!f->used || !f->playing || !f->announced || !bound_base(f, &base))
		return false;
	media_pos = f->play_media_pos - lround(held_frames(f)) + base;
	*shift_ns = units_to_ns(f->end_pos - media_pos, f->format.clock_hz, 1);
	return true;
}

/* Every packet says what was thrown away on the way here. */
static void add_dropped(struct netflow *f, uint64_t n_frames)
{
	struct writer_track *t = f->announced && n_frames ? writer_track(f->out, f->id) : NULL;

	if (t)
		t->dropped += (uint32_t)n_frames;
}

enum err netflow_play(struct netflow *f, int64_t now_ns, int64_t pos, uint32_t n_frames, bool out)
{
	uint32_t lead;
	enum err e;

	if (out && (e = make_room(f)))
		return e;
	jitter_played(&f->jitter, now_ns, held_frames(f));
	varirate_set_ppm(&f->rate, (jitter_ratio(&f->jitter) - 1) * 1e6);
	bool marked = f->marked_frames > 0;
	uint32_t made = fill(f, n_frames, &lead);
	f->marked_frames = f->marked_frames > made ? f->marked_frames - made : 0;
	if (!made)
		return ERR_OK;
	if (!out) {
		f->counts.dropped_frames += made;
		f->dropped_pos = pos + lead + made;
		add_dropped(f, made);
		return ERR_OK;
	}
	pos += lead;
	if ((e = announce(f, pos)))
		return e;
	add_dropped(f, f->jitter.counts.skipped_frames - f->told_skipped);
	f->told_skipped = f->jitter.counts.skipped_frames;
	if (pos > f->end_pos && ((e = add_gap(f, pos - f->end_pos, f->dropped_pos > f->end_pos ? PACKET_GAP_DROPPED : PACKET_GAP_PAUSED)) || (e = end_gap(f))))
		return e;
	size_t n_bytes = (size_t)made * f->frame_bytes;
	uint8_t *to = writer_reserve(f->out, n_bytes);
	if (!to)
		return f->out->failed;
	convert_run(&f->from_f32, to, f->made, (size_t)made * f->format.channels);
	struct packet p = packet_data(f->id, pos, made, (uint32_t)n_bytes);
	p.flags |= marked || f->marked_frames ? PACKET_CONCEALED : 0;
	f->end_pos = pos + made;
	f->counts.frames_out += made;
	return writer_commit(f->out, &p);
}

enum err netflow_end(struct netflow *f, enum packet_end_reason reason)
{
	enum err e = ERR_OK;

	if (f->announced && !f->ended && f->dropped_pos > f->end_pos)
		e = add_gap(f, f->dropped_pos - f->end_pos, PACKET_GAP_DROPPED);
	if (!e && f->announced && !f->ended && !(e = end_gap(f)))
		e = writer_end_track(f->out, f->id, reason);
	f->ended = true;
	f->used = false;
	return e;
}
