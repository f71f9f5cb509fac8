#include "media/liveaway.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>

/* The gap is handed out in pieces of this, so that whoever reads the stream stays in time. */
#define PIECE_NS (UNITS_NS_PER_S / 10)
/* It stays so far behind the clock: a first frame that was captured before it was noticed still has its place. */
#define BEHIND_NS (UNITS_NS_PER_S / 2)

static void tell(struct livesource *l, const char *text)
{
	if (l->tell)
		l->tell(l->tell_user, text);
}

/* On the waiting thread: nobody else looks at these. */
static enum err take(void *user, void *device, struct err_why *why)
{
	struct livesource *l = user;

	l->missing_xrun_frames = l->missing_dropped_frames = 0;
	l->dropping = false;
	atomic_store(&l->gone, 0);
	return l->ops->record(device, l, why);
}

enum err liveaway_begin(struct source *s, struct livesource *l)
{
	char text[256];
	enum err e;

	snprintf(text, sizeof(text), "%s, after frame %lld; it is waited for", l->reason, (long long)l->read_pos);
	if ((e = livereturn_begin(&l->back, l->ops, LIVE_CAPTURE, &l->args, l->device, &l->format, take, l, &s->why)))
		return e;
	l->device = NULL;
	l->away = true;
	l->away_pos = l->read_pos;
	l->n_absences++;
	/* Without one frame since the last absence, the line of before that goes on. */
	if (l->fit.started)
		l->old_fit = l->fit;
	clock_fit_init(&l->fit, l->format.rate_hz);
	tell(l, text);
	return ERR_OK;
}

bool liveaway_is_over(struct source *s, struct livesource *l)
{
	(void)s;
	if (!livereturn_poll(&l->back, &l->device))
		return false;
	l->away = false;
	l->resumes = true;
	return true;
}

static void put_gap(struct source *s, struct livesource *l, int64_t n_frames, struct source_block *b)
{
	b->pos = l->read_pos;
	b->gap_frames = (uint64_t)n_frames;
	b->gap_reason = PACKET_GAP_PAUSED;
	l->read_pos += n_frames;
	l->absent_frames += (uint64_t)n_frames;
	livesource_sum_up(s, l);
}

bool liveaway_wait(struct source *s, struct livesource *l, struct source_block *b)
{
	int64_t n_frames = 0, piece_frames = units_from_ns(PIECE_NS, l->format.rate_hz, 1);

	wake_wait(&l->back.wake_reader, PIECE_NS);
	if (l->old_fit.started)
		n_frames = (int64_t)floor(clock_fit_pos(&l->old_fit, clock_now_ns() - BEHIND_NS)) - l->read_pos;
	if (n_frames < piece_frames)
		return false;
	put_gap(s, l, n_frames, b);
	return true;
}

bool liveaway_resume(struct source *s, struct livesource *l, int64_t mono_ns, struct source_block *b)
{
	char text[256];
	int64_t n_frames = l->old_fit.started ? llrint(clock_fit_pos(&l->old_fit, mono_ns)) - l->read_pos : 0;

	l->resumes = false;
	if (n_frames > 0)
		put_gap(s, l, n_frames, b);
	int64_t away_frames = l->read_pos - l->away_pos;
	snprintf(text, sizeof(text), "is back after %.3f s: a gap of %lld frames", units_to_s(away_frames, l->format.rate_hz, 1), (long long)away_frames);
	tell(l, text);
	return n_frames > 0;
}
