#include "leg/netflowplay.h"

#include "base/units.h"
#include "leg/netflowparts.h"
#include "leg/netflowsound.h"
#include "leg/netflowtrack.h"

#include <math.h>
#include <string.h>

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
	float *to = netflowsound_room(f, 2 * VARIRATE_TAPS);

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
			netflowparts_give_up(f, f->jitter.next_pos + wanted - f->jitter.hold_frames);
		jitter_take(&f->jitter, f->playing ? (uint32_t)(need - f->fifo_frames) : wanted, &part);
		if (part.what == JITTER_PACKET) {
			netflowsound_packet(f, &part);
		} else if (part.what == JITTER_WAIT) {
			if (!f->playing)
				break;
			netflowsound_settle(f, 0);
			drain(f);
		} else if (f->playing) {
			netflowsound_hole(f, part.frames, &part);
		} else {
			*lead += part.frames; /* nothing was heard yet: silence that is not written */
		}
	}
	return made;
}

bool netflowplay_shift(const struct netflow *f, int64_t *shift_ns)
{
	int64_t base, media_pos;

	if (!f->used || !f->playing || !f->announced || !netflowtrack_base(f, &base))
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

enum err netflowplay_block(struct netflow *f, int64_t now_ns, int64_t pos, uint32_t n_frames, bool out)
{
	uint32_t lead;
	enum err e;

	if (out && (e = netflowtrack_make_room(f)))
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
	if ((e = netflowtrack_announce(f, pos)))
		return e;
	add_dropped(f, f->jitter.counts.skipped_frames - f->told_skipped);
	f->told_skipped = f->jitter.counts.skipped_frames;
	if (pos > f->end_pos && ((e = netflowtrack_add_gap(f, pos - f->end_pos, f->dropped_pos > f->end_pos ? PACKET_GAP_DROPPED : PACKET_GAP_PAUSED)) || (e = netflowtrack_end_gap(f))))
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
