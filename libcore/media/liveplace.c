#include "media/liveplace.h"

#include "base/units.h"
#include "dsp/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 65536u /* of a block: what a packet holds */

struct liveplace {
	const struct livesource *to;
	bool one_clock;
	struct livesync sync;
	struct convert to_f32, back, back_rounded;
	size_t room_frames;
	uint8_t *raw;             /* room_frames, as the device has them */
	float *in, *out;          /* likewise in f32 */
	size_t in_frames, in_at;  /* what is in `in`, and how much of it was used */
	int64_t skip_frames;      /* to be left out of what comes */
	uint64_t gap_frames;      /* to be said next */
	uint16_t gap_reason;
	bool waits;               /* of a hole or the end: what is held comes out first */
	struct source_block hole; /* the hole that waits; gap_frames 0: the end */
	int64_t last_ns;          /* of what was seen last */
	int64_t utc_ns;           /* of the device's frame utc_frame */
	int64_t utc_frame;
};

void liveplace_release(struct livesource *l)
{
	struct liveplace *p = l->place;

	if (!p)
		return;
	livesync_release(&p->sync);
	free(p->raw);
	free(p->in);
	free(p->out);
	free(p);
	l->place = NULL;
}

enum err liveplace_open(struct livesource *l, const struct livesource *to, struct err_why *why)
{
	struct liveplace *p = l->place = calloc(1, sizeof(*p));
	unsigned channels = l->format.channels;
	enum err e = ERR_NOMEM;

	if (!p)
		goto out;
	p->to = to;
	p->one_clock = l->format.clock && to->format.clock && !strcmp(l->format.clock, to->format.clock) && l->format.rate_hz == to->format.rate_hz;
	p->room_frames = MOST_BYTES / l->frame_bytes + VARIRATE_TAPS;
	p->utc_ns = UNITS_UNKNOWN_NS;
	p->raw = malloc(p->room_frames * l->frame_bytes);
	p->in = malloc(p->room_frames * channels * sizeof(*p->in));
	p->out = malloc(p->room_frames * channels * sizeof(*p->out));
	if (!p->raw || !p->in || !p->out || (e = livesync_init(&p->sync, l->format.rate_hz, channels)))
		goto out;
	/* Copies are exact without dither; what is made anew has it. */
	if ((e = convert_init(&p->to_f32, l->format.sample, SAMPLE_F32, false, 0)) || (e = convert_init(&p->back, SAMPLE_F32, l->format.sample, false, 0)) ||
		(e = convert_init(&p->back_rounded, SAMPLE_F32, l->format.sample, true, 1)))
		goto out;
out:
	if (e) {
		liveplace_release(l);
		return err_say(why, e, l->format.device, "%s", err_text(e));
	}
	return ERR_OK;
}

/* Where on the other's timeline, in frames of this device's rate, a frame that was captured at that moment belongs. */
static bool place_of(const struct livesource *l, int64_t frame, int64_t mono_ns, double *pos)
{
	const struct livesource *to = l->place->to;
	const struct clock_fit *line = livesource_line(to);

	if (line)
		*pos = clock_fit_pos(line, mono_ns) * l->format.rate_hz / to->format.rate_hz;
	/* A count of 32 bits goes round. */
	if (line && l->place->one_clock && l->has_count && to->has_count && !l->n_absences && !to->n_absences)
		*pos = frame + (int32_t)(uint32_t)(l->count_begin - to->count_begin);
	return line;
}

static void jump(struct liveplace *p, int64_t n_frames, uint16_t reason)
{
	if (n_frames > 0) {
		p->skip_frames += n_frames;
	} else if (n_frames < 0) {
		livesync_gap(&p->sync, -n_frames);
		p->gap_frames += (uint64_t)-n_frames;
		p->gap_reason = reason;
	}
}

void liveplace_see(struct livesource *l, int64_t frame, int64_t mono_ns)
{
	struct liveplace *p = l->place;
	double want = 0;
	bool known = place_of(l, frame, mono_ns, &want);

	p->last_ns = mono_ns;
	if (!p->sync.started) {
		livesync_begin(&p->sync, frame, 0, mono_ns);
		jump(p, known ? -llrint(want) : 0, PACKET_GAP_NOT_STARTED);
	}
	if (!known || p->waits || p->one_clock)
		return;
	/* What is still to be left out moves all frames behind it. */
	livesync_see(&p->sync, frame - p->skip_frames, want, mono_ns);
	jump(p, livesync_jump(&p->sync), PACKET_GAP_XRUN);
}

/* One more block of the device: frames into `in`, or a hole or the end, which wait.  Returns: an error, or ERR_END when stopped. */
static enum err take(struct source *s, struct livesource *l, size_t want_frames)
{
	struct liveplace *p = l->place;
	struct source_block b = { .utc_ns = UNITS_UNKNOWN_NS };
	size_t most = want_frames < p->room_frames ? want_frames : p->room_frames;
	enum err e = livesource_take(s, l, p->raw, most ? most : 1, &b);

	if (e && e != ERR_END)
		return e;
	if (e == ERR_END || b.gap_frames) {
		p->hole = b;
		p->waits = true;
		return ERR_OK;
	}
	size_t skip = p->skip_frames < (int64_t)b.n_frames ? (size_t)p->skip_frames : b.n_frames;
	p->skip_frames -= (int64_t)skip;
	livesync_skip(&p->sync, (int64_t)skip);
	p->in_at = 0;
	p->in_frames = b.n_frames - skip;
	(void)convert_run(&p->to_f32, p->in, p->raw + skip * l->frame_bytes, p->in_frames * l->format.channels);
	p->utc_frame = b.pos;
	p->utc_ns = b.utc_ns;
	return ERR_OK;
}

/* What is held has come out: the hole itself, as long as it is on this timeline. */
static enum err pass_hole(struct liveplace *p)
{
	p->waits = false;
	if (!p->hole.gap_frames)
		return ERR_END;
	int64_t frame = p->hole.pos + (int64_t)p->hole.gap_frames;

	if (!p->sync.started)
		return ERR_OK;
	int64_t pos = llrint(livesync_place(&p->sync, frame - p->skip_frames)), at = p->sync.next_pos;

	livesync_begin(&p->sync, frame, pos > at ? pos : at, p->last_ns);
	p->skip_frames = 0;
	p->gap_frames = pos > at ? (uint64_t)(pos - at) : 0;
	p->gap_reason = p->hole.gap_reason;
	return ERR_OK;
}

/* Frames out of what there is.  Returns: how many. */
static size_t make(struct livesource *l, uint8_t *dst, size_t n_frames, int64_t *utc_ns)
{
	struct liveplace *p = l->place;
	unsigned channels = l->format.channels;
	double behind = varirate_behind_frames(&p->sync.v);
	double next_frame = (double)(p->sync.base_frame + p->sync.taken_frames) - behind;
	size_t used, made;

	if (p->waits) {
		made = livesync_flush(&p->sync, p->out, n_frames);
	} else {
		made = livesync_run(&p->sync, p->out, n_frames, p->in + p->in_at * channels, p->in_frames - p->in_at, &used);
		p->in_at += used;
	}
	(void)convert_run(varirate_is_exact(&p->sync.v) ? &p->back : &p->back_rounded, dst, p->out, made * channels);
	*utc_ns = p->utc_ns == UNITS_UNKNOWN_NS ? UNITS_UNKNOWN_NS : p->utc_ns + units_to_ns(llrint(next_frame) - p->utc_frame, l->format.rate_hz, 1);
	return made;
}

enum err liveplace_read(struct source *s, struct livesource *l, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct liveplace *p = l->place;
	enum err e = ERR_OK;

	max_frames = max_frames < p->room_frames - VARIRATE_TAPS ? max_frames : p->room_frames - VARIRATE_TAPS;
	for (;;) {
		if (p->gap_frames) {
			b->gap_frames = p->gap_frames;
			b->gap_reason = p->gap_reason;
			b->pos = p->sync.next_pos - (int64_t)p->gap_frames;
			p->gap_frames = 0;
			return ERR_OK;
		}
		int64_t pos = p->sync.next_pos;
		size_t n = p->in_at < p->in_frames || p->waits ? make(l, dst, max_frames, &b->utc_ns) : 0;
		if (n) {
			b->pos = pos;
			b->n_frames = n;
			return ERR_OK;
		}
		if ((e = p->waits ? pass_hole(p) : take(s, l, livesync_need(&p->sync, max_frames))))
			return e;
	}
}

double liveplace_ppm(const struct livesource *l)
{
	return drift_ppm(&l->place->sync.drift);
}

double liveplace_ratio(const struct livesource *l)
{
	return 1.0 + varirate_ppm(&l->place->sync.v) * 1e-6;
}
