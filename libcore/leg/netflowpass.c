#include "leg/netflowpass.h"

#include "base/units.h"
#include "leg/netflowparts.h"
#include "leg/netflowtrack.h"

#include <string.h>

#define LAST_NS (UNITS_NS_PER_S / 5)
#define PAUSE_S 0.1 /* a new beginning that comes so much later than it would have followed is a pause */
#define MAX_PAUSE_S 86400 /* longer ones are believed of the clock only: a sender may say that it is anywhere */

/* Are the timestamps still those that the last SR told the time of?  By how much later one came than the other. */
static bool keeps_time(const struct netflow *f, const struct jitter_part *part)
{
	int64_t off_ns, media_ns = units_to_ns(part->pos - f->sr_ts, f->format.clock_hz, 1);

	return !__builtin_sub_overflow(media_ns, part->arrival_ns - f->sr_ns, &off_ns) && off_ns < JITTER_GAP_S * UNITS_NS_PER_S && off_ns > -JITTER_GAP_S * UNITS_NS_PER_S;
}

/* Where a new beginning goes on the track. */
static enum err place_beginning(struct netflow *f, const struct jitter_part *part)
{
	int64_t base, pos = part->pos + part->skip_frames;
	enum err e;

	f->has_sr = f->has_sr && keeps_time(f, part);
	if (!f->has_base) {
		f->base = netflowtrack_base(f, &base) ? base : -pos;
		f->has_base = true;
		return ERR_OK;
	}
	if (pos + f->base == f->end_pos)
		return ERR_OK;
	if (netflowtrack_base(f, &base) && pos + base >= f->end_pos && pos + base - f->end_pos <= MAX_PAUSE_S * (int64_t)f->format.clock_hz) {
		e = netflowtrack_add_gap(f, pos + base - f->end_pos, PACKET_GAP_PAUSED);
	} else {
		/* Timestamps say nothing; the clock on the wall says how long nothing came. */
		int64_t frames = units_from_ns(part->arrival_ns - f->part_arrival_ns, f->format.clock_hz, 1) - part->frames;
		e = frames > PAUSE_S * f->format.clock_hz ? netflowtrack_add_gap(f, frames, PACKET_GAP_PAUSED) : ERR_OK;
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

	if (!f->ending || !f->is_weir || end == RTCP_UNKNOWN_POS || !netflowtrack_base(f, &base) || base != f->base || end <= pos || end - pos >= frames)
		return frames;
	return (uint32_t)(end - pos);
}

static enum err pass_packet(struct netflow *f, const struct jitter_part *part)
{
	enum err e;
	uint32_t skip = part->skip_frames, n_bytes = part->n_bytes;
	bool is_opus = f->format.codec == RTP_CODEC_OPUS;

	if (part->jumped && (e = place_beginning(f, part)))
		return e;
	int64_t pos = part->pos + skip + f->base;
	if ((e = netflowtrack_announce(f, pos)) || (e = netflowtrack_end_gap(f)))
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
	p.utc_ns = netflowtrack_utc_ns(f, part->pos + skip);
	p.flags |= (frames < part->frames ? PACKET_TRIM : 0) | netflowtrack_flags(f, part) | (f->discont ? PACKET_DISCONT : 0);
	f->discont = false;
	f->end_pos = pos + frames;
	f->part_arrival_ns = part->arrival_ns;
	f->counts.frames_out += frames;
	return writer_commit(f->out, &p);
}

enum err netflowpass_run(struct netflow *f, int64_t now_ns)
{
	struct jitter_part part;
	enum err e = ERR_OK;

	for (;;) {
		if ((e = netflowtrack_make_room(f)))
			return e;
		if (may_be_last(f, now_ns))
			return ERR_OK;
		if (f->is_joint && now_ns >= jitter_due_ns(&f->jitter))
			netflowparts_give_up(f, f->jitter.next_pos + 1);
		jitter_pass(&f->jitter, now_ns, &part);
		if (part.what == JITTER_PACKET) {
			e = pass_packet(f, &part);
		} else if (part.what == JITTER_MISSING) {
			e = netflowtrack_add_gap(f, part.frames, part.silent ? PACKET_GAP_DTX : PACKET_GAP_NETWORK);
			if (!part.silent)
				f->counts.lost_frames += part.frames;
		} else {
			return ERR_OK;
		}
		if (e)
			return e;
	}
}

int64_t netflowpass_due_ns(const struct netflow *f)
{
	return may_be_last(f, f->last_ns) ? f->last_ns + LAST_NS : jitter_due_ns(&f->jitter);
}
