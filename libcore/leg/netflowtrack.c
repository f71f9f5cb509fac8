#include "leg/netflowtrack.h"

#include "base/units.h"

int64_t netflowtrack_utc_ns(const struct netflow *f, int64_t jitter_pos)
{
	int64_t utc_ns;

	/* A sender may say that it is anywhere. */
	if (!f->has_sr || __builtin_add_overflow(f->sr_utc_ns, units_to_ns(jitter_pos - f->sr_ts, f->format.clock_hz, 1), &utc_ns))
		return UNITS_UNKNOWN_NS;
	return utc_ns;
}

bool netflowtrack_base(const struct netflow *f, int64_t *base)
{
	if (!f->is_weir || f->binding.rate_hz != f->format.clock_hz)
		return false;
	*base = f->is_joint ? 0 : f->binding.pos0 - rtp_peek_ts(&f->ts, f->binding.ts0);
	return true;
}

enum err netflowtrack_announce(struct netflow *f, int64_t pos)
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

enum err netflowtrack_end_gap(struct netflow *f)
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

enum err netflowtrack_add_gap(struct netflow *f, int64_t frames, enum packet_gap_reason reason)
{
	enum err e;

	if (frames <= 0 || !f->announced)
		return ERR_OK;
	if (f->gap.frames && f->gap.reason != reason && (e = netflowtrack_end_gap(f)))
		return e;
	if (!f->gap.frames) {
		f->gap.pos = f->end_pos;
		f->gap.reason = reason;
	}
	f->gap.frames += frames;
	f->end_pos += frames;
	return ERR_OK;
}

enum err netflowtrack_make_room(struct netflow *f)
{
	const struct writer *w = f->out;
	size_t most = PACKET_MAX_PAYLOAD_BYTES + 16 * PACKET_UNIT_BYTES;

	if (w->arena_used_bytes + most <= w->arena_bytes && w->queued_bytes + most <= w->flush_bytes && w->n_iov + 32 <= WRITER_MAX_IOV)
		return ERR_OK;
	return writer_flush(f->out);
}

uint16_t netflowtrack_flags(struct netflow *f, const struct jitter_part *part)
{
	if (f->is_joint && part->tag & ASSEMBLY_PARTIAL) {
		f->counts.concealed_frames += part->frames;
		return PACKET_CONCEALED;
	}
	return part->flags & JITTER_COPY ? PACKET_RECOVERED : 0;
}
