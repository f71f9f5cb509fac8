#include "leg/browse.h"

#include "base/units.h"
#include "media/avahi.h"
#include "net/sap.h"
#include "net/sdp.h"
#include "rt/clock.h"
#include "leg/announce.h"
#include "tool/describe.h"
#include "leg/dgram.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FOUND 1024u
#define LOOK_NS UNITS_NS_PER_S
#define MAX_OF_HOST 256u              /* that one host announces: it cannot fill the list */

struct found {
	uint16_t hash;
	uint8_t origin[16];
	struct dgram_addr from;       /* who said so, by SAP */
	char name[128], url[256];     /* of one that mDNS found: hash 0 */
};

struct browse {
	const struct browse_options *o;
	struct tool *tool;
	struct dgram sockets[4];
	unsigned n_sockets;
	struct dgram_batch batch;
	pthread_mutex_t lock;         /* mDNS finds in a thread of its own */
	struct found found[MAX_FOUND];
	unsigned n_found;
	bool said_full;
	struct sdp *sdp;
	char *text;
	enum err failed;              /* what was to be written was not */
	struct err_why why;
};

/* A session to print, wherever it was found. */
struct session {
	const char *name, *url, *codec, *via, *from, *sdp;
	uint32_t rate_hz;
	unsigned channels, n_flows;
};

static void print_text(const struct session *s)
{
	char name[128], url[512], codec[32];

	/* What came from strangers holds nothing that a terminal would obey. */
	sdp_clean(s->name, name, sizeof(name));
	printf("%s  %s  %s", name[0] ? name : "(no name)", sdp_clean(s->url, url, sizeof(url)), sdp_clean(s->codec, codec, sizeof(codec)));
	if (s->rate_hz)
		printf(" %u Hz, %u channel%s", s->rate_hz, s->channels, s->channels == 1 ? "" : "s");
	if (s->n_flows > 1)
		printf(", %u flows", s->n_flows);
	printf("  from %s by %s\n", s->from, s->via);
}

static void print_field(const char *key, const char *value, bool last)
{
	printf("\"%s\": ", key);
	describe_json_string(stdout, value, strlen(value));
	printf("%s", last ? "}\n" : ", ");
}

static void print_json(const struct session *s)
{
	printf("{");
	print_field("name", s->name, false);
	print_field("url", s->url, false);
	print_field("codec", s->codec, false);
	printf("\"rate_hz\": %u, \"channels\": %u, \"flows\": %u, ", s->rate_hz, s->channels, s->n_flows);
	print_field("from", s->from, false);
	print_field("via", s->via, !s->sdp);
	if (s->sdp)
		print_field("sdp", s->sdp, true);
}

static void print_session(struct browse *b, const struct session *s)
{
	if (b->o->json)
		print_json(s);
	else
		print_text(s);
	if (fflush(stdout) && !b->failed)
		b->failed = errno == EPIPE ? ERR_GONE : err_sys(&b->why, "<stdout>");
}

/* ---- SAP ---- */

/* Is it new, and is there a place for it?  What does not fit is passed over, and that is said. */
static bool is_new(struct browse *b, const struct found *f)
{
	unsigned of_host = 0;

	for (unsigned i = 0; i < b->n_found; i++) {
		const struct found *g = &b->found[i];

		if (g->hash == f->hash && !memcmp(g->origin, f->origin, sizeof(f->origin)) && !strcmp(g->name, f->name) && !strcmp(g->url, f->url))
			return false;
		of_host += f->from.n_bytes && g->from.n_bytes && dgram_same_host(&f->from, &g->from);
	}
	if (b->n_found < MAX_FOUND && of_host < MAX_OF_HOST)
		return true;
	if (!b->said_full)
		tool_warn(b->tool, "announcements", "more than %u, or %u of one host: the others are not shown", MAX_FOUND, MAX_OF_HOST);
	b->said_full = true;
	return false;
}

static void write_file(struct browse *b, const char *name, const char *text, size_t n_bytes)
{
	char path[512], clean[128];
	size_t n = 0;

	for (const char *c = name; *c && n + 1 < sizeof(clean); c++, n++)
		clean[n] = (unsigned char)*c <= 0x20 || strchr("/\\:*?\"<>|", *c) || (*c == '.' && !n) ? '_' : *c;
	clean[n] = 0;
	snprintf(path, sizeof(path), "%s/%s.sdp", b->o->folder, n ? clean : "session");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (b->o->replace ? O_TRUNC : O_EXCL), 0666);
	if (fd < 0) {
		tool_warn(b->tool, path, "%s", errno == EEXIST ? "is there already: -y replaces it" : strerror(errno));
		return;
	}
	ssize_t done = write(fd, text, n_bytes);
	if (close(fd) || done != (ssize_t)n_bytes) {
		/* Half a description is worse than none. */
		if (!b->failed)
			b->failed = done >= 0 && done < (ssize_t)n_bytes ? err_say(&b->why, ERR_SYS, path, "cannot be written whole") : err_sys(&b->why, path);
		unlink(path);
	}
}

/* Returns: it describes something that can be heard, and was shown. */
static bool take_sdp(struct browse *b, const struct sap *sap, const struct dgram_addr *from)
{
	char url[400], address[DGRAM_TEXT_BYTES];
	struct err_why why;
	const struct sdp_format *f = NULL;
	const struct sdp_media *m = NULL;
	unsigned n_flows = 0;

	if (sdp_parse(b->sdp, sap->payload, sap->payload_bytes, "SAP", &why))
		return false;
	for (unsigned i = 0; i < b->sdp->n_media; i++) {
		const struct sdp_format *g = b->sdp->media[i].is_audio && b->sdp->media[i].is_rtp ? sdp_choose(&b->sdp->media[i]) : NULL;

		n_flows += g != NULL;
		if (g && !f) {
			f = g;
			m = &b->sdp->media[i];
		}
	}
	if (!f)
		return false;
	snprintf(url, sizeof(url), m->address.is_ip6 ? "%s://[%s]:%u?pt=%u&codec=%s&rate=%u&channels=%u" : "%s://%s:%u?pt=%u&codec=%s&rate=%u&channels=%u",
		m->is_secure ? "srtp" : "rtp", m->address.host, m->port, f->pt, rtp_codec_name(f->rtp.codec), f->rtp.clock_hz, f->rtp.channels);
	memcpy(b->text, sap->payload, sap->payload_bytes);
	b->text[sap->payload_bytes] = 0;
	struct session s = { .name = b->sdp->name, .url = url, .codec = rtp_codec_name(f->rtp.codec), .via = "SAP", .from = dgram_text(from, address),
		.sdp = b->text, .rate_hz = f->rtp.clock_hz, .channels = f->rtp.channels, .n_flows = n_flows };
	print_session(b, &s);
	if (b->o->folder)
		write_file(b, b->sdp->name, sap->payload, sap->payload_bytes);
	return true;
}

static void take_datagram(struct browse *b, const struct dgram_in *in)
{
	struct found f = { .hash = 0 };
	struct sap sap;

	if (in->is_cut || sap_unpack(&sap, in->bytes, in->n_bytes) || strcmp(sap.type, "application/sdp") || sap.payload_bytes > SDP_MAX_BYTES)
		return;
	f.hash = sap.hash;
	memcpy(f.origin, sap.origin, sap.is_ip6 ? 16 : 4);
	f.from = in->from;
	pthread_mutex_lock(&b->lock);
	/* Only what is shown takes a place. */
	if (!sap.is_delete && is_new(b, &f) && take_sdp(b, &sap, &in->from))
		b->found[b->n_found++] = f;
	pthread_mutex_unlock(&b->lock);
}

static enum err open_sockets(struct browse *b, bool has_mdns, struct err_why *why)
{
	static const char *const groups[] = { SAP_LOCAL_IP4, SAP_GLOBAL_IP4, SAP_LINK_IP6, SAP_SITE_IP6 };
	struct dgram_options o = { .iface = b->o->iface, .ttl = -1, .join = true, .share = true };
	struct err_why first = { 0 }, one;

	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		struct dgram_addr group;

		if (!dgram_resolve(&group, groups[i], SAP_PORT, AF_UNSPEC, &one) && !dgram_open(&b->sockets[b->n_sockets], &group, &o, &one)) {
			b->n_sockets++;
			continue;
		}
		tool_note(b->tool, groups[i], "%s", one.reason);
		if (!first.err)
			first = one;
	}
	if (!b->n_sockets && !has_mdns)
		return err_say(why, ERR_SYS, "--browse", "no announcement can be heard: %s", first.reason);
	if (!b->n_sockets)
		tool_warn(b->tool, "SAP", "no group can be joined: %s", first.reason);
	return dgram_batch_init(&b->batch, 16, SAP_MAX_READ_BYTES, why);
}

/* ---- mDNS ---- */

static const char *text_of(const struct avahi_service *s, const char *key)
{
	size_t n = strlen(key);

	for (unsigned i = 0; i < s->n_texts; i++) {
		if (!strncmp(s->texts[i], key, n) && s->texts[i][n] == '=')
			return s->texts[i] + n + 1;
	}
	return "";
}

static void take_service(void *user, const struct avahi_service *a, bool gone)
{
	struct browse *b = user;
	struct found f = { .hash = 0 };
	char url[512];

	if (gone || !*text_of(a, "url"))
		return;
	snprintf(url, sizeof(url), "%.200s?pt=%.8s&codec=%.16s&rate=%.16s&channels=%.8s", text_of(a, "url"), text_of(a, "pt"), text_of(a, "codec"),
		text_of(a, "rate"), text_of(a, "channels"));
	snprintf(f.name, sizeof(f.name), "%s", a->name);
	snprintf(f.url, sizeof(f.url), "%.255s", url);
	struct session s = { .name = a->name, .url = url, .codec = text_of(a, "codec"), .via = "mDNS", .from = a->host,
		.rate_hz = (uint32_t)strtoul(text_of(a, "rate"), NULL, 10), .channels = (unsigned)strtoul(text_of(a, "channels"), NULL, 10), .n_flows = 1 };
	pthread_mutex_lock(&b->lock);
	if (is_new(b, &f)) {
		b->found[b->n_found++] = f;
		print_session(b, &s);
	}
	pthread_mutex_unlock(&b->lock);
}

/* ---- both ---- */

static enum err listen_until(struct browse *b, int64_t until_ns, struct err_why *why)
{
	struct pollfd p[5];
	enum err e;

	for (unsigned i = 0; i < b->n_sockets; i++)
		p[i] = (struct pollfd){ .fd = b->sockets[i].fd, .events = POLLIN };
	/* Whoever reads us may go while nothing is found. */
	p[b->n_sockets] = (struct pollfd){ .fd = STDOUT_FILENO };
	while (!tool_stop && !b->failed) {
		int64_t left_ns = until_ns - clock_now_ns();

		if (left_ns <= 0)
			break;
		/* mDNS finds, and may fail to write, in a thread of its own. */
		left_ns = left_ns < LOOK_NS ? left_ns : LOOK_NS;
		if (poll(p, b->n_sockets + 1, (int)(left_ns / 1000000 + 1)) < 0 && errno != EINTR)
			return err_sys(why, "poll");
		if (p[b->n_sockets].revents & POLLERR)
			return ERR_GONE;
		for (unsigned i = 0; i < b->n_sockets; i++) {
			unsigned n = 0;

			if ((e = dgram_receive(&b->sockets[i], &b->batch, &n, why)) && e != ERR_PEER)
				return e;
			for (unsigned k = 0; k < n && !b->failed; k++)
				take_datagram(b, &b->batch.in[k]);
		}
	}
	return ERR_OK;
}

enum err browse_run(struct tool *t, const struct browse_options *o, struct err_why *why)
{
	struct browse *b = calloc(1, sizeof(*b));
	struct avahi *services = NULL;
	struct err_why without = { 0 };
	enum err e;

	if (o->folder && mkdir(o->folder, 0777) && errno != EEXIST) {
		e = err_sys(why, o->folder);
		goto out;
	}
	if (!b || !(b->sdp = calloc(1, sizeof(*b->sdp))) || !(b->text = malloc(SDP_MAX_BYTES + 1))) {
		e = err_say(why, ERR_NOMEM, "--browse", "%s", err_text(ERR_NOMEM));
		goto out;
	}
	b->o = o;
	b->tool = t;
	pthread_mutex_init(&b->lock, NULL);
#ifdef WEIR_HAVE_AVAHI
	if (avahi_browse(&services, ANNOUNCE_SERVICE_TYPE, take_service, b, &without))
		tool_note(t, "mDNS", "%s: SAP alone is heard", without.reason);
#else
	(void)take_service;
	(void)without;
#endif
	if (!(e = open_sockets(b, services, why))) {
		if (isatty(STDERR_FILENO) && !t->quiet)
			tool_warn(t, "--browse", "listening for %.0f s; most sessions are announced every 30 s", (double)o->limit_ns / UNITS_NS_PER_S);
		e = listen_until(b, clock_now_ns() + o->limit_ns, why);
	}
#ifdef WEIR_HAVE_AVAHI
	avahi_close(services);
#else
	(void)services;
#endif
	for (unsigned i = 0; i < b->n_sockets; i++)
		dgram_close(&b->sockets[i]);
	if (!e && (e = b->failed))
		*why = b->why;
	dgram_batch_release(&b->batch);
	pthread_mutex_destroy(&b->lock);
out:
	if (b) {
		free(b->sdp);
		free(b->text);
	}
	free(b);
	return e;
}
