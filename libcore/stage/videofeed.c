#include "stage/videofeed.h"

#include "base/role.h"
#include "rt/clock.h"
#include "tool/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIFO_BYTES (1 << 20)       /* between who makes the frames and us nothing else waits */
#define LEAST_RING_BYTES (256u << 10)
#define KEEP_RING_BYTES (128u << 10)
#define STOP_NS UNITS_NS_PER_S     /* so long after a stop a frame whose beginning went out may take to end */

/* ---- opening ---- */

static enum err open_place(struct videofeed *v, struct err_why *why)
{
	struct stat st;

	if (v->spec.fd >= 0) {
		v->fd = v->spec.fd;
		snprintf(v->name, sizeof(v->name), v->fd ? "<descriptor %d>" : "<stdin>", v->fd);
	} else {
		snprintf(v->name, sizeof(v->name), "%s", v->spec.place);
		v->fd = open(v->spec.place, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		if (v->fd < 0)
			return err_sys(why, v->name);
		v->owns_fd = true;
	}
	if (fstat(v->fd, &st))
		return err_sys(why, v->name);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_sys(why, v->name);
	}
	if (isatty(v->fd))
		return err_say(why, ERR_ARG, v->name, "is a terminal: there are no pictures to read");
	/* Not allowed is no harm. */
	if (S_ISFIFO(st.st_mode) && fcntl(v->fd, F_SETPIPE_SZ, FIFO_BYTES) < 0)
		errno = 0;
	return ERR_OK;
}

/* What the frames are is known now: the track and the buffer. */
static enum err know(struct videofeed *v, uint32_t rate_num, uint32_t rate_den, struct err_why *why)
{
	const struct videospec *s = &v->spec;
	char word[128];
	enum err e;

	v->track = video_track(&v->video, rate_num, rate_den);
	v->frame_ns = units_to_ns(1, rate_num, rate_den);
	e = track_set_name(&v->track, s->name[0] ? s->name : s->fd >= 0 ? "video" : feed_name_of(s->place, word, sizeof(word)));
	if (!e && v->is_y4m)
		e = track_set_tlv(&v->track, TRACK_TLV_CODEC_PRIVATE, v->line, (uint32_t)strlen(v->line));
	if (e)
		return err_say(why, e, v->name, "%s", err_text(e));
	/* A frame, and a place where those that are dropped go through. */
	v->ring_bytes = (size_t)units_round_up(v->video.frame_bytes + VIDEOFEED_FRAGMENT_BYTES, 4096);
	if (v->ring_bytes < LEAST_RING_BYTES)
		v->ring_bytes = LEAST_RING_BYTES;
	v->ring = mmap(NULL, v->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v->ring == MAP_FAILED) {
		v->ring = NULL;
		return err_say(why, ERR_NOMEM, v->name, "%s", err_text(ERR_NOMEM));
	}
	v->is_known = true;
	return ERR_OK;
}

enum err videofeed_open(struct videofeed *v, const char *spec, const volatile sig_atomic_t *stop, struct err_why *why)
{
	const struct videospec *s = &v->spec;
	enum err e;

	memset(v, 0, sizeof(*v));
	v->stop = stop;
	v->fd = -1;
	if ((e = videospec_parse(&v->spec, "--video", spec, why)) || (e = open_place(v, why)))
		return e;
	v->is_y4m = s->is_y4m;
	if (v->is_y4m)
		return ERR_OK;
	if ((e = video_init(&v->video, s->format, s->width_pixels, s->height_pixels)))
		return err_say(why, e, v->name, "%s", err_text(e));
	return know(v, s->rate_num, s->rate_den, why);
}

void videofeed_release(struct videofeed *v)
{
	if (v->owns_fd)
		close(v->fd);
	if (v->ring)
		munmap(v->ring, v->ring_bytes);
	track_release(&v->track);
	memset(v, 0, sizeof(*v));
	v->fd = -1;
}

void videofeed_begin(struct videofeed *v, bool live, int64_t time_ns)
{
	v->has_begun = true;
	v->is_live = live;
	v->anchor_ns = clock_now_ns();
	v->anchor_pos = live && v->is_known ? units_from_ns(time_ns, v->track.rate_num, v->track.rate_den) : 0;
	v->next_pos = v->out_pos = v->anchor_pos;
}

/* ---- frames ---- */

/* The frame that is coming in, or NULL between two. */
static struct videofeed_frame *coming(struct videofeed *v)
{
	for (unsigned i = 0; i < 2; i++)
		if (v->frames[i].is_used && v->frames[i].got_bytes < v->video.frame_bytes)
			return &v->frames[i];
	return NULL;
}

/*
 * The place of a frame that comes now.  One that comes later than the earliest did by a whole frame or more leaves a hole: nothing
 * came.  One that comes earlier than they did sets the line anew.
 */
static int64_t place_of(struct videofeed *v, int64_t now_ns)
{
	int64_t pos = v->next_pos;

	if (v->is_live) {
		int64_t late_ns = now_ns - v->anchor_ns - units_to_ns(pos - v->anchor_pos, v->track.rate_num, v->track.rate_den);
		if (late_ns < 0) {
			v->anchor_ns = now_ns;
			v->anchor_pos = pos;
		} else if (v->has_out && late_ns >= v->frame_ns + v->frame_ns / 2) {
			pos += units_scale_down(late_ns, v->track.rate_num, UNITS_NS_PER_S * v->track.rate_den);
		} else if (!v->has_out) {
			pos += units_from_ns(late_ns, v->track.rate_num, v->track.rate_den);
		}
	}
	v->next_pos = pos + 1;
	return pos;
}

static struct videofeed_frame *begin_frame(struct videofeed *v, int64_t now_ns)
{
	struct videofeed_frame *f = &v->frames[v->frames[0].is_used];

	*f = (struct videofeed_frame){
		.is_used = true, .at_bytes = v->end_bytes, .arrival_ns = now_ns, .pos = place_of(v, now_ns),
		.utc_ns = v->is_live ? now_ns + clock_utc_offset_ns() : UNITS_UNKNOWN_NS,
	};
	v->has_line = false;
	return f;
}

/* The frame behind the one that goes out is given up, whole. */
static void drop_waiting(struct videofeed *v)
{
	struct videofeed_frame *f = &v->frames[1];

	v->discard_bytes = v->video.frame_bytes - f->got_bytes;
	v->end_bytes = f->at_bytes;
	f->is_used = false;
	v->pending_drops++;
	atomic_store_explicit(&v->n_dropped, v->n_dropped + 1, memory_order_relaxed);
}

/* ---- the end of it ---- */

/* What is wrong is kept, the first of it: it is said when all is done. */
static void note_cut(struct videofeed *v, const struct err_why *why)
{
	v->eof = true;
	if (!v->is_cut)
		v->why = *why;
	v->is_cut = true;
}

/* A frame without its end is none; if its beginning went out, a GAP stands for it. */
static void give_up_frame(struct videofeed *v, struct videofeed_frame *f)
{
	if (f->sent_bytes || v->handed_bytes)
		v->is_gap_due = true;
	else
		v->next_pos = f->pos;
	if (f == &v->frames[0])
		v->begin_bytes = v->end_bytes = v->handed_bytes = 0; /* there is nothing else */
	else
		v->end_bytes = f->at_bytes;
	f->is_used = false;
}

static void end_input(struct videofeed *v, bool asked)
{
	struct videofeed_frame *f = coming(v);
	struct err_why why = { 0 };

	v->eof = true;
	if (!f) {
		if (!asked && !v->is_known && v->n_bytes == 0)
			err_say(&why, ERR_CUT, v->name, "its writer went away and wrote nothing");
		else if (!asked && (!v->is_known || (v->line_bytes && !v->has_line)))
			err_say(&why, ERR_CUT, v->name, "ended in the middle of a y4m header");
		if (why.err)
			note_cut(v, &why);
		return;
	}
	if (!asked) {
		err_say(&why, ERR_CUT, v->name, "ended in the middle of frame %" PRIu64 ": %u of its %u bytes came", v->n_frames + v->n_dropped +
			(f == &v->frames[1]), f->got_bytes, v->video.frame_bytes);
		note_cut(v, &why);
	}
	give_up_frame(v, f);
}

/* Asked to stop?  What was begun is finished, if its rest comes soon. */
static bool is_stopped(struct videofeed *v)
{
	const struct videofeed_frame *f = &v->frames[0];

	if (!v->stop || !*v->stop)
		return false;
	if (!v->stop_ns)
		v->stop_ns = clock_now_ns();
	bool is_half_out = f->is_used && f->sent_bytes && f->got_bytes < v->video.frame_bytes;
	return !is_half_out || clock_now_ns() - v->stop_ns > STOP_NS;
}

/* ---- reading ---- */

/* Read some bytes.  Returns: how many; 0: none now, or no more (v->eof). */
static size_t read_some(struct videofeed *v, void *at, size_t n_bytes)
{
	struct err_why why = { 0 };
	ssize_t n;

	role_forbid(ROLE_DEADLINE);
	n = read(v->fd, at, n_bytes);
	if (n > 0) {
		v->n_bytes += (uint64_t)n;
		v->alive_ns = clock_now_ns();
		return (size_t)n;
	}
	if (n == 0) {
		end_input(v, false);
	} else if (errno != EAGAIN && errno != EINTR) {
		err_sys(&why, v->name);
		note_cut(v, &why);
		end_input(v, true);
	}
	return 0;
}

/*
 * A line, without its newline, byte by byte: what is behind it is not ours to take.  It has least_bytes in any case and begins with
 * a word; v->is_wrong when it does not, or has no end.  Returns: true when it is there.
 */
static bool read_line(struct videofeed *v, unsigned least_bytes, unsigned most_bytes, const char *word)
{
	const size_t n_word = strlen(word);

	for (;;) {
		size_t wanted = v->line_bytes < least_bytes ? least_bytes - v->line_bytes : 1;
		size_t n = read_some(v, v->line + v->line_bytes, wanted);
		if (!n)
			return false;
		v->line_bytes += (unsigned)n;
		bool ended = v->line[v->line_bytes - 1] == '\n';
		v->is_wrong = memcmp(v->line, word, n_word < v->line_bytes ? n_word : v->line_bytes) || (!ended && v->line_bytes >= most_bytes);
		if (v->is_wrong)
			return false;
		if (ended) {
			v->line[v->line_bytes - 1] = 0;
			return true;
		}
	}
}

/* The header of y4m, against what was said on the command line. */
static void read_header(struct videofeed *v)
{
	const struct videospec *s = &v->spec;
	uint32_t rate_num, rate_den;
	struct err_why why = { 0 };
	struct video said;

	if (!read_line(v, sizeof(Y4M_MAGIC), sizeof(v->line), Y4M_MAGIC)) {
		if (!v->is_wrong)
			return;
		err_say(&why, ERR_CUT, v->name, "no y4m: does not begin with a line %s… of at most %u bytes; raw pictures need WIDTHxHEIGHT,FORMAT,FPS", Y4M_MAGIC,
			Y4M_MAX_HEADER_BYTES);
		goto bad;
	}
	if (y4m_parse(v->line, v->name, &v->video, &rate_num, &rate_den, &why))
		goto bad;
	if (s->width_pixels && (s->width_pixels != v->video.width_pixels || s->height_pixels != v->video.height_pixels)) {
		err_say(&why, ERR_CUT, v->name, "its y4m header says %ux%u, --video %ux%u", v->video.width_pixels, v->video.height_pixels, s->width_pixels,
			s->height_pixels);
		goto bad;
	}
	if (s->format && video_init(&said, s->format, v->video.width_pixels, v->video.height_pixels) == ERR_OK && said.fourcc != v->video.fourcc) {
		err_say(&why, ERR_CUT, v->name, "its y4m header says %s, --video %s", video_format_by_fourcc(v->video.fourcc)->name, s->format->name);
		goto bad;
	}
	if (s->rate_num && rate_num && (uint64_t)s->rate_num * rate_den != (uint64_t)rate_num * s->rate_den) {
		err_say(&why, ERR_CUT, v->name, "its y4m header says %u/%u pictures a second, --video %u/%u", rate_num, rate_den, s->rate_num, s->rate_den);
		goto bad;
	}
	if (!rate_num) {
		rate_num = s->rate_num;
		rate_den = s->rate_den;
	}
	if (!rate_num || !rate_den || rate_num / rate_den > VIDEO_MAX_RATE_HZ || rate_den > VIDEO_MAX_RATE_DEN) {
		err_say(&why, ERR_CUT, v->name, "its y4m header says %u:%u pictures a second (0.001 to %u; --video FIFO,FPS sets it where it is missing)",
			rate_num, rate_den, VIDEO_MAX_RATE_HZ);
		goto bad;
	}
	if (know(v, rate_num, rate_den, &why))
		goto bad;
	v->line_bytes = 0;
	return;
bad:
	why.err = ERR_CUT;
	note_cut(v, &why);
}

/* The line in front of a frame.  Returns: true when it came. */
static bool read_frame_line(struct videofeed *v)
{
	const unsigned n = sizeof(Y4M_FRAME) - 1;
	struct err_why why = { 0 };

	bool there = read_line(v, n + 1, Y4M_MAX_FRAME_LINE_BYTES, Y4M_FRAME);
	if (!there && !v->is_wrong)
		return false;
	if (v->is_wrong || (v->line[n] && v->line[n] != ' ')) {
		err_say(&why, ERR_CUT, v->name, "no %s line where frame %" PRId64 " must begin, at byte %" PRIu64, Y4M_FRAME, v->next_pos,
			v->n_bytes - v->line_bytes);
		note_cut(v, &why);
		return false;
	}
	v->line_bytes = 0;
	v->has_line = true;
	return true;
}

/* The rest of a dropped frame goes nowhere: it is read where there is room. */
static void discard_some(struct videofeed *v)
{
	size_t at = (size_t)(v->end_bytes % v->ring_bytes);
	size_t room = v->ring_bytes - (size_t)(v->end_bytes - v->begin_bytes);

	if (room > v->ring_bytes - at)
		room = v->ring_bytes - at;
	if (room > v->discard_bytes)
		room = v->discard_bytes;
	if (room > VIDEOFEED_FRAGMENT_BYTES)
		room = VIDEOFEED_FRAGMENT_BYTES;
	if (room)
		v->discard_bytes -= (uint32_t)read_some(v, v->ring + at, room);
}

bool videofeed_is_behind(const struct videofeed *v, int64_t now_ns)
{
	const struct videofeed_frame *f = &v->frames[0];
	return v->is_live && f->is_used && now_ns - f->arrival_ns > v->frame_ns;
}

bool videofeed_wants(struct videofeed *v, bool behind)
{
	const struct videofeed_frame *f = &v->frames[0];

	if (!v->eof && is_stopped(v))
		end_input(v, true);
	if (v->eof || (v->is_known && !v->has_begun))
		return false;
	if (!v->is_known || behind || !f->is_used || v->discard_bytes)
		return true;
	return f->got_bytes < v->video.frame_bytes && f->got_bytes - f->sent_bytes < VIDEOFEED_FRAGMENT_BYTES;
}

void videofeed_fill(struct videofeed *v, bool behind)
{
	struct videofeed_frame *f;

	if (!videofeed_wants(v, behind))
		return;
	if (!v->is_known) {
		read_header(v);
		return;
	}
	if (v->discard_bytes) {
		discard_some(v);
		return;
	}
	f = coming(v);
	if (!f && v->frames[1].is_used)
		drop_waiting(v); /* there is a newer one */
	if (!f && v->is_y4m && !v->has_line && !read_frame_line(v))
		return;

	size_t at = (size_t)(v->end_bytes % v->ring_bytes);
	size_t room = v->ring_bytes - (size_t)(v->end_bytes - v->begin_bytes);
	size_t wanted = v->video.frame_bytes - (f ? f->got_bytes : 0);
	if (!behind && f && wanted > VIDEOFEED_FRAGMENT_BYTES - (f->got_bytes - f->sent_bytes))
		wanted = VIDEOFEED_FRAGMENT_BYTES - (f->got_bytes - f->sent_bytes);
	if (wanted > VIDEOFEED_FRAGMENT_BYTES)
		wanted = VIDEOFEED_FRAGMENT_BYTES;
	if (room > v->ring_bytes - at)
		room = v->ring_bytes - at;
	if (wanted > room)
		wanted = room;
	if (!wanted) {
		/* Only a frame behind the one that goes out finds no room. */
		drop_waiting(v);
		return;
	}
	size_t n = read_some(v, v->ring + at, wanted);
	if (!n)
		return;
	if (!v->is_y4m && v->n_bytes == n && n > sizeof(Y4M_MAGIC) && !memcmp(v->ring + at, Y4M_MAGIC " ", sizeof(Y4M_MAGIC))) {
		struct err_why why = { 0 };
		err_say(&why, ERR_CUT, v->name, "is y4m, --video says %s", v->spec.format->name);
		note_cut(v, &why);
		return;
	}
	if (!f)
		f = begin_frame(v, v->alive_ns);
	f->got_bytes += (uint32_t)n;
	v->end_bytes += n;
}

/* ---- packets ---- */

/* What was handed out is done with. */
static void settle(struct videofeed *v)
{
	struct videofeed_frame *f = &v->frames[0];

	if (v->handed_bytes) {
		v->begin_bytes += v->handed_bytes;
		f->sent_bytes += v->handed_bytes;
		v->handed_bytes = 0;
		if (f->sent_bytes == v->video.frame_bytes) {
			v->out_pos = f->pos + 1;
			atomic_store_explicit(&v->n_frames, v->n_frames + 1, memory_order_relaxed);
			v->frames[0] = v->frames[1];
			v->frames[1].is_used = false;
		}
	}
	/* Empty: from its beginning again, so that no more of it is used than has to be; what a reader that was behind made it take goes back. */
	if (v->begin_bytes == v->end_bytes && !v->frames[1].is_used) {
		if (v->end_bytes > KEEP_RING_BYTES)
			madvise(v->ring + KEEP_RING_BYTES, v->ring_bytes - KEEP_RING_BYTES, MADV_DONTNEED);
		v->begin_bytes = v->end_bytes = 0;
	}
}

/* A hole up to pos. */
static void make_gap(struct videofeed *v, int64_t pos, enum packet_gap_reason reason, struct packet *p)
{
	const struct packet_gap gap = { .reason = (uint16_t)reason, .n_objects = v->pending_drops, .utc_ns = UNITS_UNKNOWN_NS };

	packet_gap_pack(&gap, v->gap_bytes);
	*p = (struct packet){
		.version = PACKET_VERSION, .type = PACKET_GAP, .hunits = 1, .pos = v->out_pos, .dur = (uint32_t)(pos - v->out_pos),
		.payload_bytes = PACKET_GAP_BYTES, .object_bytes = PACKET_GAP_BYTES, .utc_ns = UNITS_UNKNOWN_NS, .payload = v->gap_bytes,
	};
	if (reason == PACKET_GAP_PAUSED)
		atomic_store_explicit(&v->n_paused, v->n_paused + p->dur, memory_order_relaxed);
	v->pending_drops = 0;
	v->out_pos = pos;
}

enum err videofeed_next(struct videofeed *v, struct packet *p)
{
	struct videofeed_frame *f = &v->frames[0];

	settle(v);
	if (v->is_gap_due) {
		v->is_gap_due = false;
		make_gap(v, v->out_pos + 1, PACKET_GAP_DAMAGED, p);
		return ERR_OK;
	}
	uint32_t ready = f->is_used ? f->got_bytes - f->sent_bytes : 0;
	size_t at = v->ring_bytes ? (size_t)(v->begin_bytes % v->ring_bytes) : 0;
	bool at_edge = ready && v->ring_bytes - at <= ready;
	if (!ready || (ready < VIDEOFEED_FRAGMENT_BYTES && f->got_bytes < v->video.frame_bytes && !at_edge)) {
		if (!v->eof || f->is_used)
			return ERR_AGAIN;
		if (v->pending_drops && v->next_pos > v->out_pos) {
			make_gap(v, v->next_pos, PACKET_GAP_DROPPED, p);
			return ERR_OK;
		}
		return ERR_END;
	}
	if (v->has_out && f->pos > v->out_pos) {
		make_gap(v, f->pos, v->pending_drops ? PACKET_GAP_DROPPED : PACKET_GAP_PAUSED, p);
		return ERR_OK;
	}
	if (!v->has_out)
		v->pending_drops = 0; /* before the track began */
	v->has_out = true;
	v->out_pos = f->pos;
	*p = (struct packet){
		.version = PACKET_VERSION, .type = PACKET_DATA, .flags = PACKET_KEY, .hunits = 1, .pos = f->pos, .dur = 1, .utc_ns = f->utc_ns,
		.object_offset_bytes = f->sent_bytes, .object_bytes = v->video.frame_bytes, .payload = v->ring + at,
		.payload_bytes = ready < VIDEOFEED_FRAGMENT_BYTES ? ready : VIDEOFEED_FRAGMENT_BYTES,
	};
	if (p->payload_bytes > v->ring_bytes - at)
		p->payload_bytes = (uint32_t)(v->ring_bytes - at);
	v->handed_bytes = p->payload_bytes;
	return ERR_OK;
}

int64_t videofeed_time_ns(const struct videofeed *v)
{
	int64_t pos = v->frames[0].is_used ? v->frames[0].pos : v->next_pos;
	return v->is_known ? units_to_ns(pos, v->track.rate_num, v->track.rate_den) : 0;
}

enum packet_end_reason videofeed_end_reason(const struct videofeed *v)
{
	return v->is_cut ? PACKET_END_TRUNCATED : v->stop_ns ? PACKET_END_INTERRUPTED : PACKET_END_NORMAL;
}
