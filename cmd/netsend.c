/* netsend: the sound of a stream goes out over the network, at its pace, to everybody who is named. */
#include "leg/sending.h"
#include "tool/tool.h"

#include <stdlib.h>
#include <string.h>

/* What URLs say of the format must hold for all, as they all get the same bytes. */
static void agree(struct tool *t, struct sender_options *o, const struct url *u, const char *text)
{
	if (u->pt >= 0 && o->pt >= 0 && u->pt != o->pt)
		tool_usage(t, text, "payload type %d here and %d elsewhere: all destinations get the same packets", u->pt, o->pt);
	if (u->pt >= 0)
		o->pt = u->pt;
	if (u->codec == RTP_CODEC_NONE || u->codec == RTP_CODEC_OPUS)
		return;
	if (o->pcm != RTP_CODEC_NONE && o->pcm != u->codec)
		tool_usage(t, text, "%s here and %s elsewhere: all destinations get the same packets", rtp_codec_name(u->codec), rtp_codec_name(o->pcm));
	o->pcm = u->codec;
}

/* Operands that are URLs are where it goes; one that is not is what is sent. */
static const char *sort_operands(struct tool *t, struct sending_options *o, char *const *operands, int n_operands)
{
	const char *input = NULL;
	struct err_why why;

	for (int i = 0; i < n_operands; i++) {
		struct url *u = &o->sender.urls[o->sender.n_urls];

		if (!url_is_url(operands[i])) {
			if (input)
				tool_usage(t, operands[i], "one input at most, and it is '%s'; destinations are rtp://, srtp:// or weir://HOST:PORT", input);
			input = operands[i];
			continue;
		}
		if (o->sender.n_urls == SENDER_MAX_URLS)
			tool_usage(t, operands[i], "more than %u destinations", SENDER_MAX_URLS);
		if (url_parse(u, operands[i], &why))
			tool_usage(t, why.thing, "%s", why.reason);
		if (u->scheme != URL_RTP && u->scheme != URL_SRTP && u->scheme != URL_WEIR)
			tool_usage(t, operands[i], "goes to rtp://, srtp:// or weir://HOST:PORT");
		if (!*u->host)
			tool_usage(t, operands[i], "has no host to send to");
		if (u->scheme == URL_WEIR) {
			o->weir_to[o->n_weir] = o->sender.n_urls;
			o->weir[o->n_weir++] = *u;
		}
		agree(t, &o->sender, u, operands[i]);
		o->sender.n_urls++;
	}
	if (o->sender.n_urls == 0)
		tool_usage(t, "destination", "none is named: rtp://HOST:PORT");
	return input ? input : "-";
}

static void take_redundancy(struct tool *t, struct sender_options *o, const char *text)
{
	struct err_why why;

	o->level_min = 0;
	o->level_max = RED_LEVELS - 1;
	if (!text || !strcmp(text, "auto"))
		return;
	o->level_max = 0;
	if (!strcmp(text, "off"))
		return;
	if (strchr(text, '+')) {
		if (rs_shape_parse(&o->shape, text, &why))
			tool_usage(t, "--redundancy", "%s", why.reason);
		return;
	}
	if (text[0] < '1' || text[0] > '3' || text[1])
		tool_usage(t, "--redundancy", "'%.20s' is not auto, off, 1 to 3, or K+R such as 8+2", text);
	static const struct rs_shape shapes[] = { { 8, 2 }, { 8, 4 }, { 10, 5 } };
	o->level_min = o->level_max = (unsigned)(text[0] - '0');
	o->shape = shapes[o->level_min - 1];
}

static void take_files(struct tool *t, struct sending_options *o, const struct opt_list *paths, bool with_key, bool replace)
{
	if (paths->n > o->sender.n_urls)
		tool_usage(t, "--sdp", "%u files for %u destinations", paths->n, o->sender.n_urls);
	o->n_files = paths->n;
	for (unsigned i = 0; i < o->n_files; i++)
		o->files[i] = (struct sessionfile){ .path = paths->value[i], .to = i, .with_key = with_key, .replace = replace };
}

static void take_key(struct tool *t, struct sending_options *o, const char *path)
{
	bool needed = false;
	struct err_why why;
	enum err e;

	for (unsigned i = 0; i < o->sender.n_urls; i++)
		needed |= o->sender.urls[i].scheme == URL_SRTP;
	if (!needed && !o->n_weir && path)
		tool_usage(t, "--key-file", "nothing is encrypted: srtp:// and weir:// are");
	if (!needed && !o->n_weir)
		return;
	e = keyfile_load(&o->key, path, t, &why);
	/* weir:// is sealed when there is a key, and its sound goes as srtp:// does. */
	for (unsigned i = 0; i < o->sender.n_urls; i++) {
		struct url *u = &o->sender.urls[i];

		if (u->scheme == URL_WEIR)
			u->scheme = e == ERR_END ? URL_RTP : URL_SRTP;
	}
	if (!e && o->n_weir && (!o->key.has_secret || secret_seal(&o->key.secret, o->psk)))
		tool_usage(t, "weir://", "needs a key of weir's own, not one for other programs: `weir keygen` makes one");
	if (e == ERR_END && !needed)
		return;
	if (e == ERR_END)
		tool_usage(t, "srtp://", "needs a key: --key-file FILE, or WEIR_KEY in the environment");
	if (e)
		exit(tool_end(t, e, &why));
	o->sender.key = &o->key.srtp;
}

int main(int argc, char **argv)
{
	static struct sending sending = { .o.sender = { .pt = -1, .ttl = -1 } };
	struct sending_options *o = &sending.o;
	struct sender_options *to = &o->sender;
	struct tool tool = { .name = NULL };
	struct opt_list sdp_paths = { .n = 0 };
	static const struct opt_choice formats[] = { { "auto", RTP_CODEC_NONE }, { "s16", RTP_CODEC_L16 }, { "s24", RTP_CODEC_L24 }, { NULL, 0 } };
	static const struct opt_choice rtcps[] = { { "mux", SENDER_RTCP_MUX }, { "next-port", SENDER_RTCP_NEXT_PORT }, { "off", SENDER_RTCP_OFF }, { NULL, 0 } };
	int64_t seq = -1, ts = -1, ssrc = -1, pt = -1, ttl = -1, port_step = 0;
	int format = RTP_CODEC_NONE, rtcp = SENDER_RTCP_MUX;
	const char *redundancy = NULL, *key_path = NULL;
	bool with_key = false, replace = false;
	struct err_why why;

	const struct opt options[] = {
		OPT_LIST('t', "track", "TRACK", &o->wanted, "send only these tracks: number, name or kind"),
		OPT_CHOICE('f', "format", "FORMAT", &format, formats, "PCM goes as s16 (L16), s24 (L24), or auto: s16 as it is, the rest as s24 (auto)"),
		OPT_TIME(0, "packet-time", "TIME", &to->packet_time, 0.0001, 1, "of PCM in a packet (what comes in one, else up to 5ms)"),
		OPT_LIST(0, "sdp", "FILE", &sdp_paths, "write the session description; the n-th is for the n-th destination"),
		OPT_FLAG(0, "sdp-key", &with_key, "write the key of srtp:// into it, for programs that look for it there"),
		OPT_FLAG('y', "force", &replace, "replace an existing file"),
		OPT_STRING(0, "redundancy", "HOW", &redundancy, "auto, off, 1 to 3, or K+R repair packets for PCM (auto)"),
		OPT_STRING(0, "key-file", "FILE", &key_path, "key of srtp://; else the environment variable WEIR_KEY"),
		OPT_STRING(0, "iface", "NAME", &to->iface, "multicast leaves by this network interface"),
		OPT_INT(0, "ttl", "N", &ttl, 1, 255, "routers that it may pass (1 for multicast)"),
		OPT_CHOICE(0, "rtcp", "WHERE", &rtcp, rtcps, "reports go to the same port (mux), to the next one, or nowhere (mux)"),
		OPT_INT(0, "port-step", "N", &port_step, 0, 1000, "every further flow goes to a port so much higher (0)"),
		OPT_INT(0, "pt", "N", &pt, 0, 127, "payload type"),
		OPT_INT(0, "seq", "N", &seq, 0, 65535, "first sequence number (random)"),
		OPT_INT(0, "timestamp", "N", &ts, 0, 4294967295.0, "first timestamp (random)"),
		OPT_INT(0, "ssrc", "N", &ssrc, 0, 4294967295.0, "SSRC of the first flow (random)"),
		OPT_STRING(0, "session", "NAME", &to->session_name, "what the session is called"),
		OPT_FLAG(0, "announce", &o->announce, "make the session known, by SAP and mDNS, to netrecv --browse and others"),
		OPT_FLAG(0, "fast", &to->is_fast, "send as fast as the input comes, not at its own pace"),
		OPT_END
	};
	tool_begin(&tool, "netsend", "[options] URL... [INPUT]", "Send a stream over the network by RTP, or whole.", options, &argc, &argv);
	to->pt = (int)pt;
	to->ttl = (int)ttl;
	to->pcm = format;
	to->rtcp = rtcp;
	to->port_step = (unsigned)port_step;
	to->has_seq = seq >= 0;
	to->has_ts = ts >= 0;
	to->has_ssrc = ssrc >= 0;
	to->seq = (uint16_t)seq;
	to->ts = (uint32_t)ts;
	to->ssrc = (uint32_t)ssrc;
	const char *input = sort_operands(&tool, o, argv + 1, argc - 1);
	if (select_check(&o->wanted, &why))
		tool_usage(&tool, why.thing, "%s", why.reason);
	take_redundancy(&tool, to, redundancy);
	if (with_key && !sdp_paths.n)
		tool_usage(&tool, "--sdp-key", "nothing is written: --sdp FILE is missing");
	if (replace && !sdp_paths.n)
		tool_usage(&tool, "--force", "nothing is overwritten without --sdp");
	take_files(&tool, o, &sdp_paths, with_key, replace);
	take_key(&tool, o, key_path);

	enum err e = sending_open(&sending, &tool, input);
	if (!e)
		e = sending_run(&sending);
	sending_release(&sending);
	return tool_end(&tool, e, &sending.why);
}
