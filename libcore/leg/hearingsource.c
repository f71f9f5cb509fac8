#include "leg/hearingsource.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SDP_BYTES SDP_MAX_BYTES

void hearingsource_describe(struct hearing *h, struct receiver_port *p, const struct url *u)
{
	const struct hearing_options *o = &h->o;
	struct rtp_format f = { (enum rtp_codec)o->codec, o->rate_hz, (uint16_t)o->channels };
	int pt = (int)o->pt;

	if (u) {
		f.codec = f.codec ? f.codec : u->codec;
		f.clock_hz = f.clock_hz ? f.clock_hz : u->rate_hz;
		f.channels = f.channels ? f.channels : (uint16_t)u->channels;
		pt = pt >= 0 ? pt : u->pt;
	}
	if (!f.codec)
		return;
	if (pt >= 0)
		p->formats[pt] = f;
	else
		p->any = f;
}

enum err hearingsource_url(struct hearing *h, const char *text)
{
	struct url u;
	enum err e;

	if ((e = url_parse(&u, text, &h->why)))
		return e;
	if (u.scheme != URL_RTP && u.scheme != URL_SRTP && u.scheme != URL_WEIR)
		return err_say(&h->why, ERR_ARG, text, "%s:// is not heard: rtp://, srtp:// or weir://", url_scheme_name(u.scheme));
	if (u.scheme == URL_WEIR && h->o.replay_path)
		return err_say(&h->why, ERR_ARG, text, "a recording is of datagrams: rtp:// or srtp://");
	h->has_link = u.scheme == URL_WEIR;
	h->link_url = u;
	h->is_secure = u.scheme == URL_SRTP;
	h->port_numbers[0] = u.port;
	h->receiver.n_ports = 1;
	hearingsource_describe(h, &h->receiver.ports[0], &u);
	if (h->o.replay_path)
		return ERR_OK;
	return listener_add(&h->listener, &u, 0, false, u.port < UINT16_MAX ? (uint16_t)(u.port + 1) : 0, NULL, 0, &h->why);
}

static enum err read_text(const char *path, char **text, size_t *n_bytes, struct err_why *why)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	enum err e = ERR_OK;
	ssize_t n = 1;

	*n_bytes = 0;
	if (fd < 0)
		return err_sys(why, path);
	if (!(*text = malloc(MAX_SDP_BYTES + 1)))
		e = err_say(why, ERR_NOMEM, path, "%s", err_text(ERR_NOMEM));
	while (!e && n > 0 && *n_bytes <= MAX_SDP_BYTES)
		if ((n = read(fd, *text + *n_bytes, MAX_SDP_BYTES + 1 - *n_bytes)) > 0)
			*n_bytes += (size_t)n;
	if (n < 0)
		e = err_sys(why, path);
	close(fd);
	return e;
}

static enum err add_media(struct hearing *h, const struct sdp_media *m, const char *path)
{
	struct receiver *r = &h->receiver;
	struct dgram_addr sources[SDP_MAX_SOURCES];
	struct url u = { .scheme = URL_RTP, .port = m->port, .ttl = -1, .pt = -1 };
	unsigned n_sources = 0, n = 0;
	enum err e;

	while (n < r->n_ports && h->port_numbers[n] != m->port)
		n++;
	if (n == RECEIVER_MAX_PORTS)
		return err_say(&h->why, ERR_LIMIT, path, "more than %u ports", RECEIVER_MAX_PORTS);
	receiverformat_sdp(&r->ports[n], m);
	hearingsource_describe(h, &r->ports[n], NULL);
	if (n < r->n_ports)
		return ERR_OK;
	h->port_numbers[r->n_ports++] = m->port;
	h->is_secure = h->is_secure || m->is_secure;
	if (h->o.replay_path)
		return ERR_OK;
	if (m->address.is_set)
		snprintf(u.host, sizeof(u.host), "%s", m->address.host);
	for (unsigned i = 0; m->filter.is_set && !m->filter.excludes && i < m->filter.n_sources; i++)
		if ((e = dgram_resolve(&sources[n_sources++], m->filter.sources[i], 0, AF_UNSPEC, &h->why)))
			return e;
	return listener_add(&h->listener, &u, n, !m->rtcp_mux && m->rtcp_port != m->port + 1, m->rtcp_mux ? 0 : m->rtcp_port, sources, n_sources, &h->why);
}

enum err hearingsource_sdp(struct hearing *h, const char *path)
{
	char *text = NULL;
	size_t n_bytes;
	enum err e;

	if ((e = read_text(path, &text, &n_bytes, &h->why)))
		goto out;
	if (!(h->sdp = calloc(1, sizeof(*h->sdp)))) {
		e = err_say(&h->why, ERR_NOMEM, path, "%s", err_text(ERR_NOMEM));
		goto out;
	}
	if ((e = sdp_parse(h->sdp, text, n_bytes, path, &h->why)))
		goto out;
	for (unsigned i = 0; i < h->sdp->n_media && !e; i++)
		if (h->sdp->media[i].is_audio && h->sdp->media[i].is_rtp && h->sdp->media[i].port && sdp_choose(&h->sdp->media[i]))
			e = add_media(h, &h->sdp->media[i], path);
	if (!e && !h->receiver.n_ports)
		e = err_say(&h->why, ERR_FORMAT, path, "describes no audio over RTP that is heard here: Opus, L16, L24");
out:
	free(text);
	return e;
}
