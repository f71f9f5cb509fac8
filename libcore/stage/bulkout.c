#include "stage/bulkout.h"

#include "base/role.h"
#include "rt/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS 100000000
#define PIPE_BYTES (1 << 20) /* nothing waits behind it */

enum err bulkout_open(struct bulkout *b, int fd, const char *tool, const struct videojoin_options *o, struct err_why *why)
{
	struct videojoin_options options = *o;
	char name[32];
	enum err e;

	memset(b, 0, sizeof(*b));
	b->is_open = true;
	b->tool = tool;
	b->asked = o->stop;
	options.stop = &b->stop;
	options.look_ns = LOOK_NS;
	options.stream = &b->stream;
	options.pipe_bytes = PIPE_BYTES;
	snprintf(name, sizeof(name), "<descriptor %d>", fd);
	if ((e = writer_open(&b->writer, fd, name, tool, why)) || (e = videojoin_open(&b->video, &options, why)))
		return e;
	const struct join_options none = { .with_others = true, .no_input = true };
	videojoin_attach(&b->video, &b->writer);
	return join_open(&b->join, NULL, 0, &none, why);
}

static enum err one_packet(struct bulkout *b, struct packet *p)
{
	struct packet_gap gap;
	struct packet_end end;
	enum err e;

	switch (p->type) {
	case PACKET_TRACK:
		return writer_announce(&b->writer, videojoin_track(&b->video, &b->join, p->track));
	case PACKET_GAP:
		return packet_gap_unpack(&gap, p->payload, p->payload_bytes) ? ERR_OK : writer_gap(&b->writer, p->track, p->pos, p->dur, &gap);
	case PACKET_END:
		if (packet_end_unpack(&end, p->payload, p->payload_bytes))
			return ERR_OK;
		return writer_end_track(&b->writer, p->track, end.reason);
	}
	return (e = writer_put(&b->writer, p)) ? e : writer_flush(&b->writer);
}

static enum err pass_all(struct bulkout *b)
{
	struct packet p;
	enum err e = writer_begin(&b->writer);

	while (!e) {
		if (b->asked && *b->asked)
			b->stop = 1;
		e = videojoin_next(&b->video, &b->join, &p);
		if (e == ERR_OK)
			e = one_packet(b, &p);
		else if (e == ERR_AGAIN && !(e = writer_flush(&b->writer)) && (e = videojoin_fill(&b->video, &b->join)))
			b->why = b->join.why;
	}
	return e;
}

static void *run(void *arg)
{
	struct bulkout *b = arg;
	enum err e, ended;

	role_take(ROLE_IO);
	e = pass_all(b);
	if (e == ERR_END)
		e = ERR_OK;
	ended = writer_end(&b->writer, e ? PACKET_END_ERROR : videofeed_end_reason(&b->video.feed));
	e = e ? e : ended;
	if (e && !b->why.reason[0])
		b->why = b->writer.why;
	b->failed = e;
	return NULL;
}

enum err bulkout_start(struct bulkout *b, const struct packet_stream *stream, bool live, struct err_why *why)
{
	struct packet_stream *own = &b->writer.stream;

	b->stream = *stream;
	b->video.options.live |= live;
	writer_seed(&b->writer, stream->uuid, sizeof(stream->uuid));
	own->t0_utc_ns = stream->t0_utc_ns;
	own->flags = stream->flags;
	own->clock_quality = stream->clock_quality;
	own->tai_utc_s = stream->tai_utc_s;
	memcpy(own->name, stream->name, sizeof(own->name));
	enum err e = thread_start(&b->thread, "bulk", run, b, why);
	b->running = !e;
	return e;
}

enum err bulkout_finish(struct bulkout *b, struct err_why *why)
{
	if (!b->running)
		return ERR_OK;
	pthread_join(b->thread, NULL);
	b->running = false;
	if (b->failed == ERR_OK || b->failed == ERR_GONE)
		return ERR_OK;
	*why = b->why;
	return b->failed;
}

void bulkout_stop(struct bulkout *b)
{
	b->stop = 1;
}

void bulkout_release(struct bulkout *b)
{
	if (!b->is_open)
		return;
	if (b->running)
		pthread_join(b->thread, NULL);
	videojoin_release(&b->video);
	join_release(&b->join);
	writer_release(&b->writer);
	memset(b, 0, sizeof(*b));
}
