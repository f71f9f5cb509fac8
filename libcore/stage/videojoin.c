#include "stage/videojoin.h"

#include "rt/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_PIPE_BYTES (64 << 10)    /* weir-stream(5), pipes: what audio may have to wait behind */
#define START_NS 500000000           /* so long both sides are waited for at first */
#define LIVELY_NS 100000000          /* one from which nothing came for so long is not waited for */
#define HOLD_NS 20000000             /* how long such a wait is */
#define BURST_FRAGMENTS 2            /* so many may go at once: no timer wakes us for each */
#define STALL_MS 1000

enum err videojoin_open(struct videojoin *v, const struct videojoin_options *o, struct err_why *why)
{
	memset(v, 0, sizeof(*v));
	v->options = *o;
	v->out_fd = -1;
	enum err e = videofeed_open(&v->feed, o->spec, o->stop, why);
	v->is_open = e == ERR_OK;
	if (e)
		videofeed_release(&v->feed);
	v->feed.alive_ns = v->audio_alive_ns = clock_now_ns() + START_NS - LIVELY_NS;
	return e;
}

void videojoin_release(struct videojoin *v)
{
	if (!v->is_open)
		return;
	if (v->out_fd >= 0)
		close(v->out_fd);
	videofeed_release(&v->feed);
	memset(v, 0, sizeof(*v));
}

/* ---- the pipe ---- */

/* The pipe takes no more: what cannot wait is the video that comes in, once a frame is late. */
static void wait_writable(void *user)
{
	struct videojoin *v = user;
	struct pollfd p[2] = { { .fd = v->writer->fd, .events = POLLOUT }, { .fd = v->feed.fd, .events = POLLIN } };
	bool behind = videofeed_is_behind(&v->feed, clock_now_ns());
	bool wants = behind && videofeed_wants(&v->feed, true);
	int limit_ms = behind ? STALL_MS : (int)(v->feed.frame_ns / 1000000) + 1;

	if (poll(p, 1 + wants, limit_ms) > 0 && wants && p[1].revents)
		videofeed_fill(&v->feed, true);
}

void videojoin_attach(struct videojoin *v, struct writer *w)
{
	v->writer = w;
}

/* What is live from here on is written without waiting, through a description of the pipe that nobody else has. */
static void begin_live(struct videojoin *v)
{
	struct writer *w = v->writer;
	char path[64];

	/* The default slack of 50 µs is most of a fragment's time. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	v->is_paced = w && !w->is_regular;
	if (!w || !w->is_pipe)
		return;
	int wanted_bytes = v->options.pipe_bytes ? v->options.pipe_bytes : OUT_PIPE_BYTES;
	if (fcntl(w->fd, F_SETPIPE_SZ, wanted_bytes) < 0)
		errno = 0;
	int pipe_bytes = fcntl(w->fd, F_GETPIPE_SZ);
	v->is_paced = pipe_bytes < 0 || pipe_bytes > wanted_bytes;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
	v->out_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (v->out_fd < 0)
		return;
	w->fd = v->out_fd;
	w->wait = wait_writable;
	w->wait_user = v;
}

/* ---- one after another ---- */

bool videojoin_comes_live(struct join *j)
{
	struct stat st;

	for (unsigned i = 0; i < j->n_sources; i++) {
		const struct input *in = join_input(j, i);
		if (in && in->is_stream && in->reader.stream.flags & PACKET_STREAM_LIVE && (fstat(in->fd, &st) || !S_ISREG(st.st_mode)))
			return true;
	}
	return false;
}

/* The first tracks are known, the video too: its number is the next one. */
static enum err begin(struct videojoin *v, struct join *j)
{
	const struct packet_stream *from = v->options.stream ? v->options.stream : join_stream(j);
	int64_t time_ns = (int64_t)(j->position_s * UNITS_NS_PER_S);
	struct videofeed *f = &v->feed;

	v->has_begun = true;
	v->is_live = v->options.live || videojoin_comes_live(j);
	f->track.id = join_take_id(j);
	if (!f->track.id)
		return err_say(&j->why, ERR_LIMIT, f->name, "more than %u tracks", PACKET_MAX_TRACK);
	if (v->is_live && from && from->t0_utc_ns != UNITS_UNKNOWN_NS) {
		int64_t since_ns = clock_now_ns() + clock_utc_offset_ns() - from->t0_utc_ns;
		/* A stream that is live began not long ago. */
		if (since_ns >= 0 && since_ns < 366 * 86400 * UNITS_NS_PER_S)
			time_ns = since_ns;
	}
	v->fragment_ns = units_scale(f->frame_ns, VIDEOFEED_FRAGMENT_BYTES, 2 * (int64_t)f->video.frame_bytes);
	videofeed_begin(f, v->is_live, time_ns);
	if (v->is_live)
		begin_live(v);
	return ERR_OK;
}

/* May a fragment go now?  When not, *wait_ns says how long not. */
static bool may_send(const struct videojoin *v, int64_t *wait_ns)
{
	*wait_ns = 0;
	if (!v->is_paced)
		return true;
	*wait_ns = v->next_send_ns - clock_now_ns();
	return *wait_ns <= 0;
}

static void note_sent(struct videojoin *v, const struct packet *p)
{
	int64_t now = clock_now_ns();
	int64_t earliest = now - (BURST_FRAGMENTS - 1) * v->fragment_ns;

	if (v->next_send_ns < earliest)
		v->next_send_ns = earliest;
	v->next_send_ns += units_scale(v->feed.frame_ns, p->payload_bytes, 2 * (int64_t)v->feed.video.frame_bytes);
}

static enum err announce(struct videojoin *v, struct packet *p)
{
	v->is_announced = true;
	v->feed.track.first_pos = v->feed.track.next_pos = v->feed.frames[0].is_used ? v->feed.frames[0].pos : v->feed.next_pos;
	*p = (struct packet){ .version = PACKET_VERSION, .type = PACKET_TRACK, .hunits = 1, .track = v->feed.track.id, .utc_ns = UNITS_UNKNOWN_NS };
	return ERR_OK;
}

static enum err say_end(struct videojoin *v, struct packet *p)
{
	v->end_said = true;
	v->end = (struct packet_end){ .reason = (uint16_t)videofeed_end_reason(&v->feed), .end_pos = v->feed.out_pos, .dropped = v->feed.n_dropped };
	packet_end_pack(&v->end, v->end_bytes);
	*p = (struct packet){
		.version = PACKET_VERSION, .type = PACKET_END, .hunits = 1, .track = v->feed.track.id, .utc_ns = UNITS_UNKNOWN_NS,
		.payload = v->end_bytes, .payload_bytes = PACKET_END_BYTES, .object_bytes = PACKET_END_BYTES,
	};
	return ERR_OK;
}

/* The next packet of the video.  Returns: ERR_OK, ERR_AGAIN, ERR_END. */
static enum err next_video(struct videojoin *v, struct packet *p)
{
	struct videofeed *f = &v->feed;
	int64_t wait_ns;
	enum err e;

	if (v->end_said)
		return ERR_END;
	if (!v->is_announced && (f->frames[0].is_used || f->eof))
		return f->is_known ? announce(v, p) : ERR_END;
	if (!may_send(v, &wait_ns))
		return ERR_AGAIN;
	e = videofeed_next(f, p);
	if (e == ERR_END)
		return say_end(v, p);
	if (e)
		return e;
	p->track = f->track.id;
	if (p->type == PACKET_DATA) {
		note_sent(v, p);
		v->looked = false;
	}
	struct writer_track *wt = v->writer ? writer_track(v->writer, f->track.id) : NULL;
	if (wt)
		wt->dropped = (uint32_t)f->n_dropped;
	return ERR_OK;
}

/*
 * Offline: whose turn is it?  The earlier one's; and if that has nothing, the other waits for it a little, unless nothing came
 * from it for some time.
 */
static void take_turns(struct videojoin *v, struct join *j, bool *audio, bool *video)
{
	int64_t audio_ns, video_ns = videofeed_time_ns(&v->feed), now = clock_now_ns();
	enum err e;

	*audio = *video = true;
	v->is_held = false;
	if (v->is_live || v->audio_ended || v->is_over || !join_has_begun(j))
		return;
	e = join_peek(j, &audio_ns);
	if (e == ERR_OK && video_ns < audio_ns) {
		bool there = v->feed.frames[0].is_used;
		*audio = !there && now - v->feed.alive_ns >= LIVELY_NS;
		v->is_held = !*audio;
	} else if (e == ERR_OK) {
		*video = false;
	} else if (e == ERR_AGAIN && audio_ns <= video_ns && now - v->audio_alive_ns < LIVELY_NS) {
		*video = false;
		v->is_held = true;
	}
}

/*
 * Does its announcement go before all else?  Offline it does when the video is described, or about to be: readers that must know all
 * tracks before the first packet, as of a Matroska file, then do.
 */
static bool comes_first(const struct videojoin *v, struct join *j)
{
	struct stat st;

	if (v->options.first || v->has_begun)
		return v->options.first;
	return !v->options.live && !videojoin_comes_live(j) && (v->feed.is_known || (!fstat(v->feed.fd, &st) && S_ISREG(st.st_mode)));
}

enum err videojoin_next(struct videojoin *v, struct join *j, struct packet *p)
{
	bool audio, video;
	enum err e;

	take_turns(v, j, &audio, &video);
	bool is_waited_for = !v->is_announced && comes_first(v, j) && !v->feed.eof && !(v->options.stop && *v->options.stop);
	if (is_waited_for)
		audio = false;
	if (!v->audio_ended && audio) {
		e = join_next(j, p);
		if (e == ERR_OK)
			v->audio_alive_ns = clock_now_ns();
		if (e == ERR_END)
			v->audio_ended = true;
		else if (e != ERR_AGAIN)
			return e;
	}
	if (v->feed.is_known && !v->has_begun && join_has_begun(j) && (e = begin(v, j)))
		return e;
	if (is_waited_for && v->has_begun)
		return announce(v, p);
	/* A video of which nothing is known has nothing to say. */
	if (v->feed.eof && !v->feed.is_known)
		v->is_over = true;
	if (!v->is_over && v->has_begun && video && v->looked) {
		e = next_video(v, p);
		if (e == ERR_OK)
			return ERR_OK;
		v->is_over = e == ERR_END;
	}
	return v->is_over && v->audio_ended ? ERR_END : ERR_AGAIN;
}

enum err videojoin_fill(struct videojoin *v, struct join *j)
{
	struct videofeed *f = &v->feed;
	const struct videofeed_frame *frame = &f->frames[0];
	int64_t wait_ns, now = clock_now_ns();
	bool behind = videofeed_is_behind(f, now);
	bool wants = videofeed_wants(f, behind);
	bool ready = frame->is_used && (frame->got_bytes == f->video.frame_bytes || frame->got_bytes - frame->sent_bytes >= VIDEOFEED_FRAGMENT_BYTES);
	enum err e;

	j->n_watch = 0;
	j->watch_ns = -1;
	if (wants)
		j->watch[j->n_watch++] = (struct pollfd){ .fd = f->fd, .events = POLLIN };
	if (f->eof && !v->is_over)
		ready = true;
	if (v->is_held)
		j->watch_ns = HOLD_NS;
	else if (ready && may_send(v, &wait_ns))
		j->watch_ns = 0;
	else if (ready)
		j->watch_ns = wait_ns;
	if (f->is_known && !v->has_begun && join_has_begun(j))
		j->watch_ns = 0;
	if (v->options.look_ns && (j->watch_ns < 0 || j->watch_ns > v->options.look_ns))
		j->watch_ns = v->options.look_ns;
	e = join_fill(j);
	v->looked = true;
	if (wants && j->watch[0].revents)
		videofeed_fill(f, behind);
	else if (f->stop && *f->stop)
		(void)videofeed_wants(f, false); /* so that it ends */
	return e;
}

const struct track *videojoin_track(struct videojoin *v, struct join *j, uint16_t id)
{
	return v->is_open && v->has_begun && id == v->feed.track.id ? &v->feed.track : join_track(j, id);
}
