#include "media/livesync.h"

#include <math.h>

enum err livesync_init(struct livesync *s, uint32_t rate_hz, unsigned channels)
{
	enum err e;

	*s = (struct livesync){ .rate_hz = rate_hz };
	if ((e = varirate_init(&s->v, channels)))
		return e;
	drift_init(&s->drift, rate_hz, 0);
	return ERR_OK;
}

void livesync_release(struct livesync *s)
{
	varirate_release(&s->v);
	*s = (struct livesync){ .rate_hz = 0 };
}

void livesync_begin(struct livesync *s, int64_t frame, int64_t pos, int64_t now_ns)
{
	varirate_reset(&s->v);
	drift_restart(&s->drift, 0, now_ns);
	s->started = true;
	s->settled = false;
	s->begin_ns = s->good_ns = now_ns;
	s->base_frame = frame;
	s->taken_frames = 0;
	s->next_pos = pos;
	s->jump_frames = 0;
}

double livesync_place(const struct livesync *s, int64_t frame)
{
	double next_frame = (double)(s->base_frame + s->taken_frames) - varirate_behind_frames(&s->v);

	return (double)s->next_pos + ((double)frame - next_frame) / (1.0 + varirate_ppm(&s->v) * 1e-6);
}

void livesync_see(struct livesync *s, int64_t frame, double want_pos, int64_t now_ns)
{
	/* Ahead of what is played at that moment: it comes out too late. */
	bool is_new = drift_observe(&s->drift, livesync_place(s, frame) - want_pos, now_ns);

	if (!is_new)
		return;
	double off = s->drift.envelope_frames, limit_s = s->settled ? LIVESYNC_LOST_S : LIVESYNC_SETTLE_S;
	int64_t since_ns = s->settled ? s->good_ns : s->begin_ns, patience_ns = s->settled ? LIVESYNC_LOST_NS : LIVESYNC_SETTLE_NS;
	bool is_off = fabs(off) > limit_s * s->rate_hz;
	if (!is_off)
		s->good_ns = now_ns;
	if (now_ns - since_ns < patience_ns)
		return;
	s->settled = true;
	s->good_ns = now_ns;
	if (is_off) {
		s->jump_frames = llrint(off);
		drift_restart(&s->drift, 0, now_ns);
	}
}

int64_t livesync_jump(struct livesync *s)
{
	int64_t n = s->jump_frames;

	s->jump_frames = 0;
	return n;
}

void livesync_skip(struct livesync *s, int64_t n_frames)
{
	s->base_frame += n_frames;
}

void livesync_gap(struct livesync *s, int64_t n_frames)
{
	s->next_pos += n_frames;
}

size_t livesync_need(const struct livesync *s, size_t n_out)
{
	return varirate_need(&s->v, n_out);
}

size_t livesync_run(struct livesync *s, float *dst, size_t n_out, const float *src, size_t n_in, size_t *n_used)
{
	varirate_set_ppm(&s->v, (drift_ratio(&s->drift) - 1.0) * 1e6);
	size_t made = varirate_run(&s->v, dst, n_out, src, n_in, n_used);
	s->taken_frames += (int64_t)*n_used;
	s->next_pos += (int64_t)made;
	return made;
}

size_t livesync_flush(struct livesync *s, float *dst, size_t n_out)
{
	size_t before = s->v.n_flushed, made = varirate_flush(&s->v, dst, n_out);

	/* As if silence had come: where the next frame lies stays right. */
	s->taken_frames += (int64_t)(s->v.n_flushed - before);
	s->next_pos += (int64_t)made;
	return made;
}
