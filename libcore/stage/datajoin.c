#include "stage/datajoin.h"

#include "base/role.h"
#include "rt/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUND_BYTES 65536u       /* of all feeds, before audio is looked at again: weir-stream(5), pipes */
#define COPY_BYTES 4096u         /* messages up to here are copied beside their header: fewer pieces to write */
#define STALL_MS 20              /* how long the pipe is waited for before messages are looked at */
#define MAX_SINCE_NS (366 * 86400 * UNITS_NS_PER_S)

/* ---- life ---- */

/* Reliable data, text, lossy data. */
static unsigned rank_of(const struct dataspec *s)
{
	return s->codec == TRACK_UTF8 ? 1 : s->is_lossy ? 2 : 0;
}

static void add_keys(struct datajoin *d)
{
	stats_key(d->stats, "data_messages", &d->n_messages);
	stats_key(d->stats, "data_bytes", &d->n_bytes);
	stats_key(d->stats, "data_dropped", &d->n_dropped);
	stats_key(d->stats, "data_waiting", &d->n_waiting);
	stats_key(d->stats, "data_full", &d->n_full);
	stats_key(d->stats, "data_full_times", &d->full_times);
}

enum err datajoin_open(struct datajoin *d, struct tool *t, struct stats *s, const char *const *specs, unsigned n, bool live, struct err_why *why)
{
	enum err e = ERR_OK;

	memset(d, 0, sizeof(*d));
	d->tool = t;
	d->stats = s;
	d->want_live = live;
	d->out_fd = -1;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll_fd < 0)
		return err_sys(why, "--data");
	if (n > DATAJOIN_MAX_FEEDS)
		return err_say(why, ERR_LIMIT, "--data", "given %u times (1 to %u)", n, DATAJOIN_MAX_FEEDS);
	d->feeds = calloc(n, sizeof(*d->feeds));
	if (!d->feeds)
		return err_say(why, ERR_NOMEM, "--data", "%s", err_text(ERR_NOMEM));
	for (unsigned i = 0; i < n && !e; i++) {
		struct dataspec spec;
		struct datajoin_feed *feed = &d->feeds[i];
		if ((e = dataspec_parse(&spec, "--data", specs[i], why)))
			break;
		feed->rank = rank_of(&spec);
		d->n_feeds++;
		e = datafeed_open(&feed->feed, &spec, why);
	}
	add_keys(d);
	return e;
}

void datajoin_release(struct datajoin *d)
{
	if (!d->tool)
		return;
	for (unsigned i = 0; i < d->n_feeds; i++)
		datafeed_release(&d->feeds[i].feed);
	free(d->feeds);
	if (d->out_fd >= 0)
		close(d->out_fd);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	memset(d, 0, sizeof(*d));
}

void datajoin_attach(struct datajoin *d, struct writer *w)
{
	d->writer = w;
}

/* ---- reading ---- */

/* Watched is what would be read; a file is always ready, and nobody can watch it. */
static void watch(struct datajoin *d, struct datajoin_feed *feed)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = feed };
	struct datafeed *f = &feed->feed;
	bool wants = datafeed_wants(f);

	if (f->is_regular)
		return;
	if (f->is_new)
		feed->is_watched = false;
	f->is_new = false;
	if (wants == feed->is_watched)
		return;
	if (epoll_ctl(d->epoll_fd, wants ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, f->fd, &event) == 0)
		feed->is_watched = wants;
	else if (wants && errno == EPERM)
		f->is_regular = true;
}

/* A queue that became full, or low again: said at once. */
static void tell(struct datajoin *d, struct datajoin_feed *feed)
{
	if (feed->told == feed->feed.state)
		return;
	feed->told = feed->feed.state;
	tool_note(d->tool, feed->feed.spec.name, feed->told == DATAFEED_LOW ? "the queue has room again" :
		feed->feed.spec.is_lossy && d->is_live ? "the queue is full: the oldest messages are dropped" : "the queue is full: its producer waits");
	stats_now(d->stats);
}

static void count(struct datajoin *d)
{
	uint64_t messages = 0, bytes = 0, dropped = 0, waiting = 0, full = 0, times = 0;

	for (unsigned i = 0; i < d->n_feeds; i++) {
		const struct datafeed *f = &d->feeds[i].feed;
		messages += f->n_messages;
		bytes += f->n_bytes;
		dropped += f->n_dropped;
		waiting += datafeed_waiting(f);
		full += f->state == DATAFEED_FULL;
		times += f->n_full;
	}
	stats_set(&d->n_messages, messages);
	stats_set(&d->n_bytes, bytes);
	stats_set(&d->n_dropped, dropped);
	stats_set(&d->n_waiting, waiting);
	stats_set(&d->n_full, full);
	stats_set(&d->full_times, times);
	for (unsigned i = 0; i < d->n_feeds; i++)
		tell(d, &d->feeds[i]);
}

/* Read from all that have something, without waiting. */
static void read_ready(struct datajoin *d)
{
	struct epoll_event events[DATAJOIN_MAX_FEEDS];
	int64_t now_ns = clock_now_ns();
	int n = epoll_wait(d->epoll_fd, events, DATAJOIN_MAX_FEEDS, 0);

	for (int i = 0; i < n; i++) {
		struct datajoin_feed *feed = events[i].data.ptr;
		datafeed_fill(&feed->feed, now_ns);
	}
	for (unsigned i = 0; i < d->n_feeds; i++) {
		struct datafeed *f = &d->feeds[i].feed;
		if (f->is_regular && datafeed_wants(f))
			datafeed_fill(f, now_ns);
		watch(d, &d->feeds[i]);
	}
	count(d);
}

void datajoin_watch(struct datajoin *d, struct join *j)
{
	bool ready = !d->has_begun && join_has_begun(j);

	for (unsigned i = 0; i < d->n_feeds; i++) {
		struct datajoin_feed *feed = &d->feeds[i];
		datafeed_let_go(&feed->feed);
		watch(d, feed);
		ready |= d->has_begun && !feed->is_done && (datafeed_waiting(&feed->feed) || (feed->feed.is_regular && datafeed_wants(&feed->feed)) || feed->feed.eof);
	}
	j->also = (struct pollfd){ .fd = d->epoll_fd, .events = POLLIN };
	j->also_ns = ready ? 0 : -1;
}

void datajoin_fill(struct datajoin *d, struct join *j)
{
	(void)j;
	d->round_bytes = ROUND_BYTES;
	for (unsigned i = 0; i < d->n_feeds; i++)
		d->feeds[i].round_bytes = 0;
	read_ready(d);
}

/* ---- the pipe ---- */

/* The pipe takes no more: messages come in all the same. */
static void wait_writable(void *user)
{
	struct datajoin *d = user;
	struct pollfd p[2] = { { .fd = d->writer->fd, .events = POLLOUT }, { .fd = d->epoll_fd, .events = POLLIN } };

	read_ready(d);
	if (d->next_wait)
		d->next_wait(d->next_wait_user);
	else
		(void)!poll(p, 2, STALL_MS);
}

/* Nothing may keep us from reading lossy messages, and from telling when a queue is full. */
static void take_waiting(struct datajoin *d)
{
	struct writer *w = d->writer;
	char path[64];

	if (!w->is_pipe || w->wait == wait_writable)
		return;
	d->next_wait = w->wait;
	d->next_wait_user = w->wait_user;
	if (!w->wait && d->out_fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
		d->out_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (d->out_fd < 0)
			return;
		w->fd = d->out_fd;
	}
	w->wait = wait_writable;
	w->wait_user = d;
}

/* ---- out ---- */

/* The first tracks are known: ours take the next numbers. */
static enum err begin(struct datajoin *d, struct join *j)
{
	const struct packet_stream *from = join_stream(j);
	int64_t since_ns;

	d->has_begun = true;
	d->is_live = d->want_live || (from && from->flags & PACKET_STREAM_LIVE);
	d->begin_ns = clock_now_ns();
	d->begin_time_ns = (int64_t)(j->position_s * UNITS_NS_PER_S);
	d->utc_offset_ns = clock_utc_offset_ns();
	if (d->is_live && from && from->t0_utc_ns != UNITS_UNKNOWN_NS) {
		since_ns = d->begin_ns + d->utc_offset_ns - from->t0_utc_ns;
		/* A stream that is live began not long ago. */
		if (since_ns >= 0 && since_ns < MAX_SINCE_NS)
			d->begin_time_ns = since_ns;
	}
	for (unsigned i = 0; i < d->n_feeds; i++) {
		struct datafeed *f = &d->feeds[i].feed;
		f->is_live = d->is_live;
		f->track.id = join_take_id(j);
		if (!f->track.id)
			return err_say(&j->why, ERR_LIMIT, f->spec.name, "more than %u tracks", PACKET_MAX_TRACK);
	}
	return ERR_OK;
}

static int64_t position_of(const struct datajoin *d, const struct join *j, int64_t arrival_ns)
{
	int64_t ns = d->is_live ? d->begin_time_ns + (arrival_ns - d->begin_ns) : (int64_t)(j->position_s * UNITS_NS_PER_S);

	return units_from_ns(ns, DATAFEED_RATE_HZ, 1);
}

static enum err announce(const struct join *j, const struct datajoin *d, struct datajoin_feed *feed, struct packet *p)
{
	struct track *t = &feed->feed.track;

	feed->is_announced = true;
	feed->last_pos = position_of(d, j, d->begin_ns);
	t->first_pos = t->next_pos = feed->last_pos < 0 ? 0 : feed->last_pos;
	feed->last_pos = t->first_pos;
	*p = (struct packet){ .version = PACKET_VERSION, .type = PACKET_TRACK, .hunits = 1, .track = t->id, .utc_ns = UNITS_UNKNOWN_NS };
	return ERR_OK;
}

static enum err say_end(struct datajoin *d, struct datajoin_feed *feed, struct packet *p)
{
	feed->end_said = true;
	d->end = (struct packet_end){
		.reason = feed->feed.is_cut ? PACKET_END_TRUNCATED : PACKET_END_NORMAL, .end_pos = feed->last_pos, .dropped = feed->feed.n_dropped,
	};
	packet_end_pack(&d->end, d->end_bytes);
	*p = (struct packet){
		.version = PACKET_VERSION, .type = PACKET_END, .hunits = 1, .track = feed->feed.track.id, .utc_ns = UNITS_UNKNOWN_NS,
		.payload = d->end_bytes, .payload_bytes = PACKET_END_BYTES, .object_bytes = PACKET_END_BYTES,
	};
	return ERR_OK;
}

/* Drops leave a hole in the numbers, and are counted in every header. */
static void note_drops(struct datajoin *d, const struct datajoin_feed *feed, uint32_t n_dropped)
{
	struct writer_track *wt = n_dropped ? writer_track(d->writer, feed->feed.track.id) : NULL;

	if (wt) {
		wt->dropped += n_dropped;
		wt->seq += n_dropped;
	}
}

static enum err next_message(struct datajoin *d, struct join *j, struct datajoin_feed *feed, struct packet *p)
{
	int64_t arrival_ns, pos;
	uint32_t n_dropped;
	enum err e;

	/* A place first: while that is waited for messages come in, and older ones may have to go. */
	d->reserved = feed->feed.spec.is_lossy ? writer_reserve(d->writer, PACKET_MAX_PAYLOAD_BYTES) : NULL;
	if (feed->feed.spec.is_lossy && !d->reserved)
		return d->writer->failed;
	e = datafeed_next(&feed->feed, clock_now_ns(), p, &arrival_ns, &n_dropped);
	if (e == ERR_END) {
		note_drops(d, feed, feed->feed.pending_drops);
		feed->is_done = true;
		return feed->end_said ? ERR_END : say_end(d, feed, p);
	}
	if (e)
		return e;
	d->handed_out = &feed->feed;
	note_drops(d, feed, n_dropped);
	pos = position_of(d, j, arrival_ns);
	if (pos < feed->last_pos)
		pos = feed->last_pos;
	feed->last_pos = pos;
	p->track = feed->feed.track.id;
	p->pos = pos;
	if (d->is_live)
		p->utc_ns = arrival_ns + d->utc_offset_ns;
	feed->round_bytes += p->payload_bytes + PACKET_HEADER_BYTES;
	d->round_bytes -= p->payload_bytes + PACKET_HEADER_BYTES < d->round_bytes ? p->payload_bytes + PACKET_HEADER_BYTES : d->round_bytes;
	return ERR_OK;
}

/* Each one gets its turn, those before it have the first; a few bytes always go. */
static bool may_go(const struct datajoin *d, const struct datajoin_feed *feed)
{
	return !feed->is_done && (d->round_bytes || !feed->round_bytes);
}

/* A producer that has come and gone, or whose time is over. */
static void look_at_end(struct datajoin *d, struct datajoin_feed *feed)
{
	struct datafeed *f = &feed->feed;
	bool stopped = tool_stop != 0;

	if (f->eof || !(d->is_ending || stopped))
		return;
	/* Offline, a socket has no end but ours. */
	if (d->is_live || stopped || f->is_socket || (f->is_fifo && f->had_writer && f->is_quiet)) {
		if (datafeed_wants(f) && (feed->is_watched || f->is_regular))
			read_ready(d);
		f->eof = true;
	}
}

enum err datajoin_next(struct datajoin *d, struct join *j, struct packet *p)
{
	int64_t audio_ns;
	bool all_done = true;
	enum err e;

	if (!join_has_begun(j))
		return ERR_AGAIN;
	if (!d->has_begun && (e = begin(d, j)))
		return e;
	take_waiting(d);
	/* Tracks are announced before all else; then audio goes first. */
	for (unsigned i = 0; i < d->n_feeds; i++)
		if (!d->feeds[i].is_announced)
			return announce(j, d, &d->feeds[i], p);
	if (join_peek(j, &audio_ns) == ERR_OK)
		return ERR_AGAIN;
	for (unsigned rank = 0; rank < 3; rank++)
		for (unsigned i = 0; i < d->n_feeds; i++) {
			struct datajoin_feed *feed = &d->feeds[i];
			if (feed->rank != rank)
				continue;
			look_at_end(d, feed);
			if (may_go(d, feed) && ((e = next_message(d, j, feed, p)) == ERR_OK || e == ERR_LIMIT))
				return e;
			all_done &= feed->is_done;
		}
	if (all_done)
		count(d);
	return all_done ? ERR_END : ERR_AGAIN;
}

enum err datajoin_put(struct datajoin *d, const struct packet *p)
{
	uint8_t *to = d->reserved;

	if (p->payload_bytes > (to ? PACKET_MAX_PAYLOAD_BYTES : COPY_BYTES))
		return writer_put(d->writer, p);
	if (!to && !(to = writer_reserve(d->writer, p->payload_bytes)))
		return d->writer->failed;
	memcpy(to, p->payload, p->payload_bytes);
	if (d->reserved)
		datafeed_let_go(d->handed_out);
	d->reserved = NULL;
	return writer_commit(d->writer, p);
}

void datajoin_finish(struct datajoin *d, bool is_alone)
{
	d->is_ending = !(is_alone && d->is_live);
}

/* ---- looking things up ---- */

const struct track *datajoin_track(const struct datajoin *d, uint16_t id)
{
	for (unsigned i = 0; i < d->n_feeds; i++)
		if (d->has_begun && d->feeds[i].feed.track.id == id)
			return &d->feeds[i].feed.track;
	return NULL;
}

const struct err_why *datajoin_cut(const struct datajoin *d)
{
	for (unsigned i = 0; i < d->n_feeds; i++)
		if (d->feeds[i].feed.is_cut)
			return &d->feeds[i].feed.why;
	return NULL;
}
