#include "leg/sessionfile.h"

#include "net/secret.h"
#include "net/sdpwrite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An address without its port, as SDP has it. */
static void address(const struct dgram_addr *a, struct sdp_address *out)
{
	bool ip6 = a->any.sa_family == AF_INET6;

	*out = (struct sdp_address){ .is_set = true, .is_ip6 = ip6, .ttl = -1 };
	inet_ntop(a->any.sa_family, ip6 ? (const void *)&a->ip6.sin6_addr : (const void *)&a->ip4.sin_addr, out->host, sizeof(out->host));
}

/* Names of orders by SMPTE ST 2110-30 table 1, where WAVE's order is the same; else undefined groups of so many. */
static void channel_order(const struct flow *f, char *out, size_t out_bytes)
{
	unsigned n = f->packer.o.channels;

	if (n <= 2)
		*out = '\0';
	else if (n == 6 && f->all_channels == 6 && f->wave_mask == 0x3f)
		snprintf(out, out_bytes, "channel-order=SMPTE2110.(51)");
	else
		snprintf(out, out_bytes, "channel-order=SMPTE2110.(U%02u)", n);
}

static void describe_opus(const struct flow *f, struct sdp_media *m)
{
	struct sdp_format *opus = &m->formats[m->n_formats++];

	*opus = (struct sdp_format){ .pt = f->packer.o.pt, .rtp = { RTP_CODEC_OPUS, RTP_OPUS_HZ, 2 } };
	/* Mono is what a receiver prefers by default (RFC 7587 section 6.1). */
	if (f->all_channels == 2)
		snprintf(opus->fmtp, sizeof(opus->fmtp), "stereo=1;sprop-stereo=1");
	if (f->packer.o.history) {
		struct sdp_format *red = &m->formats[m->n_formats++];
		*red = (struct sdp_format){ .pt = f->packer.o.red_pt, .rtp = { RTP_CODEC_RED, RTP_OPUS_HZ, 2 } };
		snprintf(red->fmtp, sizeof(red->fmtp), "%u/%u", opus->pt, opus->pt);
	}
	/* Whole milliseconds, rounded up (RFC 7587 section 7). */
	m->ptime_ms = (double)((f->packet_frames + 47) / 48);
}

static void describe_pcm(const struct flow *f, struct sdp_media *m)
{
	struct sdp_format *pcm = &m->formats[m->n_formats++];

	*pcm = (struct sdp_format){ .pt = f->packer.o.pt, .rtp = { f->packer.o.codec, f->rate_hz, f->packer.o.channels } };
	channel_order(f, pcm->fmtp, sizeof(pcm->fmtp));
	m->ptime_ms = 1000 * units_to_s(f->packet_frames, f->rate_hz, 1);
	/* Three decimals, as AES67 writes its own: 0.333, 1.451. */
	m->ptime_ms = (double)(int64_t)(m->ptime_ms * 1000 + 0.5) / 1000;
	snprintf(m->ts_refclk, sizeof(m->ts_refclk), "local");
	snprintf(m->mediaclk, sizeof(m->mediaclk), "sender");
}

static void describe_flow(const struct sender *s, const struct sessionfile *f, unsigned i, struct sdp_media *m)
{
	const struct flow *flow = s->flows[i];
	const struct sender_to *to = &s->to[f->to];

	*m = (struct sdp_media){
		.is_audio = true, .is_rtp = true, .is_secure = to->is_secure,
		.port = (uint16_t)(to->url.port + i * s->o.port_step),
		.rtcp_mux = s->o.rtcp == SENDER_RTCP_MUX,
		.has_ssrc = true, .ssrc = flow->packer.o.ssrc,
	};
	m->rtcp_port = (uint16_t)(m->port + 1);
	snprintf(m->cname, sizeof(m->cname), "%s", s->cname);
	sdp_clean(flow->name, m->label, sizeof(m->label));
	if (s->n_flows > 1)
		snprintf(m->mid, sizeof(m->mid), "%u", i + 1);
	if (flow->packer.o.codec == RTP_CODEC_OPUS)
		describe_opus(flow, m);
	else
		describe_pcm(flow, m);
	if (s->has_rs && flow->packer.o.codec != RTP_CODEC_OPUS) {
		struct sdp_format *repair = &m->formats[m->n_formats++];
		*repair = (struct sdp_format){ .pt = s->rs_pt, .rtp = { RTP_CODEC_NONE, flow->rate_hz, 1 }, .encoding = "x-weir-rs" };
	}
	if (to->is_secure && f->with_key) {
		m->n_crypto = 1;
		m->crypto[0].tag = 1;
		snprintf(m->crypto[0].suite, sizeof(m->crypto[0].suite), "%s", srtp_kind_name(s->o.key->kind));
		secret_encode(m->crypto[0].key, sizeof(m->crypto[0].key), s->o.key->bytes, srtp_key_bytes(s->o.key->kind));
	}
}

/* The numbers of flows first…last that are described, behind a word.  Returns: there are two at least, and the line is whole. */
static bool describe_group(const struct sender *s, const char *word, unsigned first, unsigned last, char g[SDP_TEXT_BYTES])
{
	size_t at = (size_t)snprintf(g, SDP_TEXT_BYTES, "%s", word);
	unsigned n = 0;

	for (unsigned i = first; i <= last && at < SDP_TEXT_BYTES; i++) {
		if (s->flows[i]->is_over)
			continue;
		at += (size_t)snprintf(g + at, SDP_TEXT_BYTES - at, " %u", i + 1);
		n++;
	}
	/* One that is cut would say something else: then none. */
	if (n > 1 && at < SDP_TEXT_BYTES)
		return true;
	g[0] = '\0';
	return false;
}

/* Flows of one track belong together; flows on one port share it (RFC 9143). */
static void describe_groups(const struct sender *s, struct sdp *out)
{
	if (s->n_flows < 2)
		return;
	if (s->o.port_step == 0)
		out->n_groups += describe_group(s, "BUNDLE", 0, s->n_flows - 1, out->groups[out->n_groups]);
	for (unsigned first = 0, last; first < s->n_flows && out->n_groups < ARRAY_LEN(out->groups); first = last + 1) {
		for (last = first; last + 1 < s->n_flows && s->flows[last + 1]->track == s->flows[first]->track; last++)
			;
		out->n_groups += describe_group(s, "LS", first, last, out->groups[out->n_groups]);
	}
}

void sessionfile_describe(const struct sender *s, const struct sessionfile *f, struct sdp *out)
{
	const struct sender_to *to = &s->to[f->to];

	memset(out, 0, sizeof(*out));
	snprintf(out->user, sizeof(out->user), "weir");
	snprintf(out->id, sizeof(out->id), "%u", f->id);
	snprintf(out->version, sizeof(out->version), "%u", f->version);
	address(&to->local, &out->origin);
	sdp_clean(s->o.session_name && *s->o.session_name ? s->o.session_name : "weir", out->name, sizeof(out->name));
	snprintf(out->tool, sizeof(out->tool), "weir " WEIR_VERSION);
	address(&to->addr, &out->address);
	if (dgram_is_multicast(&to->addr) && !out->address.is_ip6)
		out->address.ttl = to->url.ttl >= 0 ? to->url.ttl : s->o.ttl >= 0 ? s->o.ttl : 1;
	describe_groups(s, out);
	for (unsigned i = 0; i < s->n_flows; i++) {
		if (!s->flows[i]->is_over)
			describe_flow(s, f, i, &out->media[out->n_media++]);
	}
}

/* ---- the file ---- */

static enum err write_all(int fd, const char *text, size_t n, const char *name, struct err_why *why)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(why, name);
		text += done;
		n -= (size_t)done;
	}
	return ERR_OK;
}

/* A FIFO or a device is written to as it stands. */
static bool is_special(const char *path, bool *exists)
{
	struct stat st;

	*exists = stat(path, &st) == 0;
	return *exists && !S_ISREG(st.st_mode);
}

static enum err write_beside(const struct sessionfile *f, const char *text, size_t n, struct err_why *why)
{
	size_t room = strlen(f->path) + 8;
	char *beside = malloc(room);
	enum err e;

	if (!beside)
		return err_say(why, ERR_NOMEM, f->path, "%s", err_text(ERR_NOMEM));
	snprintf(beside, room, "%s.part", f->path);
	int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, f->with_key ? 0600 : 0666);
	if (fd < 0) {
		e = err_sys(why, f->path);
		goto out;
	}
	e = f->with_key && fchmod(fd, 0600) ? err_sys(why, f->path) : write_all(fd, text, n, f->path, why);
	if (close(fd) && !e)
		e = err_sys(why, f->path);
	if (!e && rename(beside, f->path))
		e = err_sys(why, f->path);
	if (e)
		unlink(beside);
out:
	free(beside);
	return e;
}

enum err sessionfile_write(struct sessionfile *f, const struct sender *s, struct err_why *why)
{
	struct sdp *sdp = malloc(sizeof(*sdp));
	char *text = malloc(SDP_MAX_BYTES);
	bool exists = false;
	enum err e = ERR_NOMEM;
	size_t n;

	if (!sdp || !text) {
		err_say(why, e, f->path, "%s", err_text(e));
		goto out;
	}
	if (!f->is_written && secret_random(&f->id, sizeof(f->id))) {
		e = err_say(why, ERR_SYS, "random numbers", "the system has none");
		goto out;
	}
	f->version++;
	sessionfile_describe(s, f, sdp);
	n = sdpwrite_text(sdp, text, SDP_MAX_BYTES);
	if (n == 0) {
		e = err_say(why, ERR_LIMIT, f->path, "a session description of more than %u bytes", SDP_MAX_BYTES);
	} else if (!strcmp(f->path, "-")) {
		e = write_all(STDOUT_FILENO, text, n, "<stdout>", why);
	} else if (is_special(f->path, &exists)) {
		int fd = open(f->path, O_WRONLY | O_CLOEXEC);
		e = fd < 0 ? err_sys(why, f->path) : write_all(fd, text, n, f->path, why);
		if (fd >= 0)
			close(fd);
	} else if (exists && !f->is_written && !f->replace) {
		e = err_say(why, ERR_ARG, f->path, "exists already: -y replaces it");
	} else {
		e = write_beside(f, text, n, why);
	}
	f->is_written |= !e;
out:
	if (text)
		secret_wipe(text, SDP_MAX_BYTES);
	free(text);
	free(sdp);
	return e;
}
