/*
 * Ogg Opus: pages made by oggwrite, each written when it is complete.  A page holds half a second at most, which is what a kill can lose.
 */
#include "media/oggwrite.h"
#include "media/sink.h"

#include <stdlib.h>
#include <unistd.h>

#define PAGE_FRAMES 24000u       /* at 48 kHz, which is what Opus counts in */
#define PAGE_MAX_BYTES 65307u    /* 27 + 255 + 255 · 255 */
#define PAGE_TYPE_AT 5u
#define PAGE_LAST 4u             /* "last page of the stream" */
#define N_HEADER_PAGES 2

struct sinkogg {
	struct oggwrite ogg;
	uint64_t whole_bytes;    /* the file up to the last whole page in it */
	uint64_t last_page_at;   /* where that one begins */
	uint64_t n_pages;
	uint64_t linked_frames;  /* in the links before this one */
	uint32_t n_links;        /* before this one */
};

static enum err on_page(void *user, const uint8_t *header, size_t header_bytes, const uint8_t *body, size_t body_bytes)
{
	struct sink *s = user;
	struct sinkogg *m = s->state;

	enum err e = sinkfile_put(&s->file, header, header_bytes);
	if (!e)
		e = sinkfile_put(&s->file, body, body_bytes);
	if (!e)
		e = sinkfile_flush(&s->file);
	if (e)
		return e;
	m->last_page_at = m->whole_bytes;
	m->whole_bytes = s->file.size_bytes;
	m->n_pages++;
	return ERR_OK;
}

static enum err write_packet(struct sink *s, const struct packet *p)
{
	struct sinkogg *m = s->state;
	return oggwrite_packet(&m->ogg, p, NULL);
}

/* A hole is filled when the packet behind it comes, which may begin a little inside it; or at the end. */
static enum err write_silence(struct sink *s, uint64_t n_frames)
{
	struct sinkogg *m = s->state;
	(void)n_frames;
	return m->ogg.failed;
}

/* Pages go out as they are made. */
static enum err sync_file(struct sink *s)
{
	return sinkfile_flush(&s->file);
}

/* The last whole page becomes the last page of the stream. */
static enum err mark_last(struct sink *s)
{
	struct sinkogg *m = s->state;
	size_t n_bytes = (size_t)(m->whole_bytes - m->last_page_at);

	if (m->n_pages <= N_HEADER_PAGES || n_bytes > PAGE_MAX_BYTES)
		return ERR_OK;
	uint8_t *bytes = malloc(n_bytes);
	if (!bytes)
		return ERR_NOMEM;
	enum err e = ERR_FORMAT;
	if (pread(s->file.fd, bytes, n_bytes, (off_t)m->last_page_at) == (ssize_t)n_bytes) {
		ogg_page page = { .header = bytes, .header_len = 27 + bytes[26] };
		page.body = bytes + page.header_len;
		page.body_len = (long)n_bytes - page.header_len;
		bytes[PAGE_TYPE_AT] |= PAGE_LAST;
		ogg_page_checksum_set(&page);
		e = sinkfile_rewrite(&s->file, m->last_page_at, bytes, (size_t)page.header_len);
	}
	free(bytes);
	return e;
}

/* A hole at the end, or a cut inside one or inside a packet: to the frame. */
static enum err end_link(struct sink *s)
{
	struct sinkogg *m = s->state;

	enum err e = oggwrite_end_at(&m->ogg, s->first_pos + (int64_t)s->n_frames, NULL);
	if (!e)
		e = oggwrite_finish(&m->ogg, NULL);
	return e;
}

static enum err relink(struct sink *s)
{
	struct sinkogg *m = s->state;

	enum err e = end_link(s);
	if (e)
		return e;
	m->linked_frames += m->ogg.n_frames;
	oggwrite_release(&m->ogg);
	m->n_links++;
	return oggwrite_open(&m->ogg, &s->track, s->args.serial + m->n_links, PAGE_FRAMES, on_page, s, &s->why);
}

static enum err finish(struct sink *s)
{
	struct sinkogg *m = s->state;
	enum err e = s->file.failed ? s->file.failed : m->ogg.failed;

	if (!e)
		e = end_link(s);
	if (!e)
		e = sinkfile_flush(&s->file);
	s->n_frames = m->linked_frames + m->ogg.n_frames;
	if (e && s->file.is_regular && !sinkfile_truncate(&s->file, m->whole_bytes))
		(void)!mark_last(s);
	return e;
}

static void release(struct sink *s)
{
	struct sinkogg *m = s->state;
	if (m)
		oggwrite_release(&m->ogg);
	free(m);
	s->state = NULL;
}

static const struct sink_ops sinkogg_ops = {
	.name = "Ogg Opus", .write = write_packet, .silence = write_silence, .sync = sync_file, .finish = finish, .relink = relink,
	.release = release,
};

enum err sinkogg_open(struct sink *s, struct err_why *why)
{
	struct sinkogg *m = calloc(1, sizeof(*m));

	if (!m)
		return err_say(why, ERR_NOMEM, s->file.path, "%s", err_text(ERR_NOMEM));
	s->state = m;
	s->ops = &sinkogg_ops;
	return oggwrite_open(&m->ogg, &s->track, s->args.serial, PAGE_FRAMES, on_page, s, why);
}
