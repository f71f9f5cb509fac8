#include "media/liveaway.h"
#include "media/liveplace.h"

#include "base/units.h"
#include "rt/thread.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS (UNITS_NS_PER_S / 10) /* then the stop flag is looked at, whatever happens */

static bool is_gone(const struct livesource *l)
{
	return atomic_load_explicit(&l->gone, memory_order_acquire) == 2;
}

/* The record at the head, or NULL. */
static const struct livesource_record *head_of(const struct livesource *l)
{
	uint8_t *bytes;

	return ring_peek(&l->ring, &bytes) ? (const struct livesource_record *)(const void *)bytes : NULL;
}

static bool is_stopped(const struct source *s)
{
	return s->stop && *s->stop;
}

/* One hole at a time; those before a record, or at the end those after the last. */
static bool take_hole(struct livesource *l, uint64_t *xrun_frames, uint64_t *dropped_frames, struct source_block *b)
{
	uint64_t *n = *xrun_frames ? xrun_frames : dropped_frames;

	if (!*n)
		return false;
	b->pos = l->read_pos;
	b->gap_frames = *n;
	b->gap_reason = *xrun_frames ? PACKET_GAP_XRUN : PACKET_GAP_DROPPED;
	l->read_pos += (int64_t)*n;
	*n = 0;
	return true;
}

static size_t add_text(char *out, size_t room, size_t at, const char *fmt, ...) WEIR_PRINTF(4, 5);
static size_t add_text(char *out, size_t room, size_t at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(out + at, room - at, fmt, ap);
	va_end(ap);
	return n < 0 ? at : (size_t)n < room - at ? at + (size_t)n : room - 1;
}

/* Whoever prints it may do so again when it grew. */
void livesource_sum_up(struct source *s, const struct livesource *l)
{
	uint64_t xruns = atomic_load(&l->counts.xruns), drops = atomic_load(&l->counts.drops);
	uint64_t dropped = atomic_load(&l->counts.dropped_frames), lost = atomic_load(&l->counts.xrun_frames);
	size_t at = 0, room = sizeof(s->warning);

	s->lost_frames = lost + dropped + l->absent_frames;
	if (!xruns && !drops && !l->n_absences)
		return;
	s->cut = true;
	if (drops)
		at = add_text(s->warning, room, at, "%" PRIu64 " frames dropped in %" PRIu64 " place%s, since the reader was too slow for the ring", dropped, drops, drops == 1 ? "" : "s");
	if (xruns)
		at = add_text(s->warning, room, at, "%s%" PRIu64 " frames lost by the device in %" PRIu64 " xrun%s", at ? ", " : "", lost, xruns, xruns == 1 ? "" : "s");
	if (l->n_absences)
		at = add_text(s->warning, room, at, "%s%" PRIu64 " frames missing in %" PRIu64 " absence%s of the device", at ? ", " : "", l->absent_frames, l->n_absences,
			l->n_absences == 1 ? "" : "s");
	(void)add_text(s->warning, room, at, "; the last before frame %" PRId64, l->read_pos);
}

/* The device is gone and the ring empty: the callback writes no more. */
static enum err end(struct source *s, struct livesource *l, struct source_block *b)
{
	if (take_hole(l, &l->missing_xrun_frames, &l->missing_dropped_frames, b)) {
		livesource_sum_up(s, l);
		return ERR_OK;
	}
	if (l->keeps && !liveaway_begin(s, l))
		return ERR_AGAIN;
	if (!l->ended) {
		l->ended = true;
		s->cut = true;
		snprintf(s->warning, sizeof(s->warning), "%s, after frame %" PRId64, l->reason, l->read_pos);
	}
	return ERR_END;
}

/* The frame was captured at mono_ns.  Returns: its wall-clock time, smooth. */
static int64_t stamp(struct livesource *l, int64_t frame, int64_t mono_ns)
{
	int64_t t = clock_fit_at(&l->fit, frame, mono_ns);

	if (!l->utc.started || t - l->utc_looked_ns >= UNITS_NS_PER_S) {
		l->utc_looked_ns = t;
		(void)clock_utc_move(&l->utc, t, clock_utc_offset_ns());
	}
	if (l->place)
		liveplace_see(l, frame, t);
	return t + l->utc.offset_ns;
}

/* The record at the head, waiting for one.  ERR_AGAIN: b holds something else. */
static enum err next_record(struct source *s, struct livesource *l, struct source_block *b, const struct livesource_record **r)
{
	enum err e;

	for (;;) {
		if (l->away && !liveaway_is_over(s, l)) {
			if (is_stopped(s))
				return ERR_END;
			if (liveaway_wait(s, l, b))
				return ERR_AGAIN;
			continue;
		}
		if ((*r = head_of(l)))
			return l->resumes && liveaway_resume(s, l, (*r)->mono_ns, b) ? ERR_AGAIN : ERR_OK;
		if (is_stopped(s))
			return ERR_END;
		/* Looked at again behind the flag: what came just before it counts. */
		if (is_gone(l) && !head_of(l)) {
			if ((e = end(s, l, b)) != ERR_AGAIN)
				return e == ERR_OK ? ERR_AGAIN : e;
			continue;
		}
		wake_wait(&l->wake, WAIT_NS);
	}
}

enum err livesource_take(struct source *s, struct livesource *l, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	const struct livesource_record *r;
	size_t got = 0;
	enum err e = next_record(s, l, b, &r);

	if (e)
		return e == ERR_AGAIN ? ERR_OK : e;
	if (!l->used_frames && !l->holes_said) {
		/* The record lies in the ring, and only this thread looks at it now. */
		struct livesource_record *mine = (struct livesource_record *)(uintptr_t)r;
		if (take_hole(l, &mine->xrun_frames, &mine->dropped_frames, b)) {
			livesource_sum_up(s, l);
			return ERR_OK;
		}
	}
	b->pos = l->read_pos;
	/* As many records as there are, so that a backlog goes in large packets; up to the next hole. */
	while (r && got < max_frames && (got == 0 || l->used_frames || (!r->xrun_frames && !r->dropped_frames))) {
		size_t left = r->n_frames - l->used_frames, n = left < max_frames - got ? left : max_frames - got;

		if (!l->used_frames)
			l->record_utc_ns = stamp(l, l->read_pos + (int64_t)got, r->mono_ns);
		if (!got)
			b->utc_ns = l->record_utc_ns + units_to_ns(l->used_frames, l->format.rate_hz, 1);
		memcpy(dst + got * l->frame_bytes, (const uint8_t *)(r + 1) + (size_t)l->used_frames * l->frame_bytes, n * l->frame_bytes);
		got += n;
		l->used_frames += (uint32_t)n;
		if (l->used_frames == r->n_frames) {
			l->used_frames = 0;
			ring_consume(&l->ring, r->n_bytes);
			r = head_of(l);
		}
	}
	b->n_frames = got;
	l->read_pos += (int64_t)got;
	return ERR_OK;
}

static enum err livesource_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b)
{
	struct livesource *l = s->state;

	return l->place ? liveplace_read(s, l, dst, max_frames, b) : livesource_take(s, l, dst, max_frames, b);
}

static bool livesource_would_block(const struct source *s, size_t n_frames)
{
	const struct livesource *l = s->state;

	(void)n_frames; /* whatever is there is handed on at once */
	return l->away || (!head_of(l) && !is_gone(l));
}

static void release(struct source *s)
{
	struct livesource *l = s->state;

	if (!l)
		return;
	livereturn_end(&l->back);
	if (l->device)
		l->ops->close(l->device);
	liveplace_release(l);
	livesource_release(l);
	free(l);
	s->state = NULL;
}

static const struct source_ops livesource_ops = {
	.name = "livesource",
	.read = livesource_read,
	.would_block = livesource_would_block,
	.release = release,
};

void livesource_attach(struct source *s, struct livesource *l)
{
	s->ops = &livesource_ops;
	s->state = l;
}

struct livesource *livesource_of(const struct source *s)
{
	return s->ops == &livesource_ops ? s->state : NULL;
}

void livesource_keep(struct livesource *l, livesource_tell *tell, void *user)
{
	l->keeps = true;
	l->tell = tell;
	l->tell_user = user;
}

const struct clock_fit *livesource_line(const struct livesource *l)
{
	return l->fit.started ? &l->fit : l->old_fit.started ? &l->old_fit : NULL;
}

enum err livesource_init(struct livesource *l, const struct live_format *format, int64_t ring_ns, struct err_why *why)
{
	uint32_t frame_bytes = format->channels * track_sample_bytes(format->sample);
	int64_t frames = units_from_ns(ring_ns, format->rate_hz, 1);
	uint32_t block = format->block_frames ? format->block_frames : 64;
	enum err e;

	memset(l, 0, sizeof(*l));
	l->format = *format;
	l->frame_bytes = frame_bytes;
	/* Room for ring_ns in blocks of the usual size, each with its header, and one more. */
	uint64_t records = (uint64_t)frames / block + 2;
	uint64_t bytes = records * ((uint64_t)block * frame_bytes + sizeof(struct livesource_record) + LIVESOURCE_ALIGN);
	if ((e = ring_init(&l->ring, bytes, why)))
		return e;
	l->held = thread_hold(l->ring.bytes, l->ring.size_bytes);
	atomic_init(&l->counts.fill_low_bytes, l->ring.size_bytes);
	wake_init(&l->wake);
	clock_fit_init(&l->fit, format->rate_hz);
	return ERR_OK;
}

void livesource_release(struct livesource *l)
{
	if (!l->ring.bytes)
		return;
	ring_release(&l->ring);
	wake_release(&l->wake);
}

enum err livesource_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why)
{
	struct livesource *l = calloc(1, sizeof(*l));
	const struct live_ops *ops;
	struct live_args a = { .client = "weir-capture", .channels = args->channels, .stop = args->stop, .block_frames = args->block_frames };
	struct live_format format = { 0 };
	void *device = NULL;
	enum err e;

	if (!l)
		return err_say(why, ERR_NOMEM, s->name, "%s", err_text(ERR_NOMEM));
	livesource_attach(s, l);
	if ((e = live_find(spec, &ops, &a.name, why)))
		return e;
	for (enum sample f = SAMPLE_S16; args->format && f <= SAMPLE_F32; f++) {
		if (!strcmp(args->format, track_sample_name(f)))
			a.sample = f;
	}
	if ((e = ops->open(&device, LIVE_CAPTURE, &a, &format, why)))
		return e;
	if ((e = livesource_init(l, &format, args->ring_ns > 0 ? args->ring_ns : LIVESOURCE_DEFAULT_RING_NS, why))) {
		ops->close(device);
		return e;
	}
	l->ops = ops;
	l->device = device;
	l->args = a;
	snprintf(s->name, sizeof(s->name), "%s", format.device);
	source_set_pcm(s, format.rate_hz, format.channels, format.sample);
	if (format.wave_mask) {
		s->track.layout = TRACK_LAYOUT_WAVE;
		s->track.wave_mask = format.wave_mask;
	}
	if (format.note[0])
		source_note(s, "%s", format.note);
	char note[256];
	if (*live_say_held(l->held, l->ring.size_bytes, note, sizeof(note)))
		source_note(s, "%s", note);
	return ops->record(device, l, why);
}
