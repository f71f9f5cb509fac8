/* netsend: the sound of a stream goes out over the network, at its pace, to everybody who is named. */
#include "base/units.h"
#include "rt/clock.h"
#include "leg/announce.h"
#include "tool/input.h"
#include "leg/keyfile.h"
#include "leg/linkout.h"
#include "tool/progress.h"
#include "tool/select.h"
#include "leg/sender.h"
#include "leg/sessionfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#define LONGEST_WAIT_NS UNITS_NS_PER_S

struct netsend {
	struct tool tool;
	struct input in;
	struct stats stats;
	struct progress progress;
	struct sender sender;
	struct sender_options options;
	struct linkout links;     /* to those of the destinations that are weir:// */
	struct url weir[SENDER_MAX_URLS];
	unsigned n_weir;
	uint8_t psk[SEAL_PSK_BYTES];
	struct keyfile key;
	struct announce announce;
	struct opt_list wanted, sdp_paths;
	struct select_hits hits;
	struct sessionfile files[SENDER_MAX_URLS];
	unsigned n_files;
	bool from_file;           /* a recording has its own time still, however live it was */
	bool told;                /* the session was described */
	bool waits;               /* the input has nothing in memory */
	bool over, has_held, waits_for_link;
	struct packet held;       /* waits for room */
	unsigned n_passed_over;   /* tracks */
	unsigned n_carried;       /* tracks that go over weir:// alone */
	struct err_why why;
};

/* ---- the stream ---- */

static enum err describe(struct netsend *n)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < n->n_files && !e; i++)
		e = sessionfile_write(&n->files[i], &n->sender, &n->why);
	if (!e && n->announce.is_on)
		e = announce_tell(&n->announce, &n->why);
	n->told = true;
	return e;
}

static enum err take_track(struct netsend *n, const struct packet *k)
{
	const struct track *t = input_track(&n->in, k->track);
	char thing[32];
	enum err e;

	if (!t)
		return ERR_OK;
	select_note(&n->hits, &n->wanted, t);
	if (!select_match(&n->wanted, t))
		return ERR_OK;
	n->links.is_live = n->in.is_stream && !n->from_file && (n->in.reader.stream.flags & PACKET_STREAM_LIVE);
	if (n->n_weir && (e = linkout_stream(&n->links, &n->in.reader.stream, &n->why)))
		return e;
	if (n->n_weir && t->kind != TRACK_AUDIO) {
		n->n_carried++;
		return linkout_track(&n->links, t, NULL, 0, &tool_stop, &n->why);
	}
	n->sender.o.is_live = n->in.is_stream && !n->from_file && (n->in.reader.stream.flags & PACKET_STREAM_LIVE);
	unsigned n_before = n->sender.n_flows;
	e = sender_track(&n->sender, t, &n->why);
	if (e == ERR_FORMAT && !n->wanted.n) {
		/* Nobody asked for this one by name: the others go. */
		snprintf(thing, sizeof(thing), "track %u", t->id);
		tool_warn(&n->tool, thing, "%s", n->why.reason);
		n->n_passed_over++;
		return ERR_OK;
	}
	if (!e && n->n_weir)
		e = linkout_track(&n->links, t, NULL, 0, &tool_stop, &n->why);
	return !e && n->told && n->sender.n_flows != n_before ? describe(n) : e;
}

/* One packet of the input.  Returns: ERR_AGAIN: it waits for room. */
static enum err take(struct netsend *n, struct packet *k)
{
	const struct track *t = n->n_weir && k->track ? input_track(&n->in, k->track) : NULL;
	struct packet_end end;
	enum err e;

	/* What is no event of now begins when everybody is there. */
	n->waits_for_link = n->n_weir && k->type == PACKET_DATA && !n->links.is_live && !linkout_is_met(&n->links);
	if (n->waits_for_link)
		return ERR_AGAIN;
	if (t && t->kind != TRACK_AUDIO && k->type != PACKET_TRACK) {
		e = select_match(&n->wanted, t) ? linkout_take(&n->links, k, t) : ERR_OK;
		n->waits_for_link = e == ERR_AGAIN;
		return e;
	}
	switch (k->type) {
	case PACKET_TRACK:
		return take_track(n, k);
	case PACKET_END:
		if (k->track)
			sender_end_track(&n->sender, k->track, packet_end_unpack(&end, k->payload, k->payload_bytes) ? RTCP_UNKNOWN_POS : end.end_pos);
		return ERR_OK;
	case PACKET_DATA:
		/* A receiver must know the session before its first packet comes. */
		if (!n->told && n->sender.n_flows && (e = describe(n)))
			return e;
		break;
	}
	return sender_take(&n->sender, k);
}

/* Take from the input until there is nothing in memory, no room, or the end. */
static enum err take_all(struct netsend *n)
{
	enum err e = ERR_OK;

	while (!n->over && !n->waits && !e) {
		if (!n->has_held) {
			e = input_next(&n->in, &n->held);
			n->waits = e == ERR_AGAIN;
			n->over = e == ERR_END;
			n->has_held = !e;
			if (e)
				return n->waits || n->over ? ERR_OK : e;
		}
		e = take(n, &n->held);
		if (e == ERR_AGAIN)
			return ERR_OK;
		n->has_held = false;
	}
	return e;
}

static void count(struct netsend *n)
{
	uint64_t frames = 0, packets = 0;

	if (!stats_on(&n->stats) && !n->progress.on)
		return;
	for (unsigned i = 0; i < n->sender.n_flows; i++) {
		frames += n->sender.flows[i]->sent_frames;
		packets += n->sender.flows[i]->sent_packets;
	}
	stats_set(&n->stats.packets_in, n->in.is_stream ? n->in.reader.n_packets : packets);
	stats_set(&n->stats.packets_out, packets);
	stats_set(&n->stats.frames_in, frames);
	stats_set(&n->stats.frames_out, frames);
	progress_update(&n->progress, sender_position_s(&n->sender), -1);
}

/* Until something is due, or something came. */
static enum err wait(struct netsend *n, int64_t next_ns)
{
	struct pollfd p[SENDER_MAX_URLS + LINKOUT_MAX + 1];
	unsigned n_polls = sender_polls(&n->sender, p);
	int64_t wait_ns = next_ns == INT64_MAX ? LONGEST_WAIT_NS : next_ns - clock_now_ns();
	bool hears = n->waits && !n->over;

	n_polls += linkout_polls(&n->links, p + n_polls);
	if (hears)
		p[n_polls] = (struct pollfd){ .fd = n->in.fd, .events = POLLIN };
	wait_ns = wait_ns < 0 ? 0 : wait_ns > LONGEST_WAIT_NS ? LONGEST_WAIT_NS : wait_ns;
	struct timespec t = { .tv_sec = wait_ns / UNITS_NS_PER_S, .tv_nsec = wait_ns % UNITS_NS_PER_S };
	if (ppoll(p, n_polls + hears, &t, NULL) < 0)
		return errno == EINTR ? ERR_OK : err_sys(&n->why, n->in.name);
	if (!hears || !p[n_polls].revents)
		return ERR_OK;
	n->waits = false;
	return input_fill(&n->in);
}

static enum err run(struct netsend *n)
{
	enum err e;

	for (;;) {
		if ((e = take_all(n)))
			return e;
		int64_t next_ns = sender_work(&n->sender), announce_ns = announce_work(&n->announce, clock_now_ns());
		count(n);
		if (n->n_weir)
			linkout_work(&n->links);
		if (tool_stop || (n->over && sender_is_empty(&n->sender)))
			return ERR_OK;
		/* What waits for room has it now, when nothing else is left to send. */
		if (n->has_held && !n->waits_for_link && sender_is_empty(&n->sender))
			continue;
		if ((e = wait(n, next_ns < announce_ns ? next_ns : announce_ns)))
			return e;
	}
}

/* What the end of the input was worth. */
static enum err finish(struct netsend *n)
{
	char text[200];

	sender_bye(&n->sender);
	count(n);
	enum packet_end_reason reason = tool_stop ? PACKET_END_INTERRUPTED : input_is_cut(&n->in) ? PACKET_END_TRUNCATED : PACKET_END_NORMAL;
	enum err e = n->n_weir ? linkout_end(&n->links, reason, &tool_stop, &n->why) : ERR_OK;
	if (e || tool_stop)
		return tool_stop ? ERR_OK : e;
	if (select_missing(&n->hits, &n->wanted, text))
		return err_say(&n->why, ERR_FORMAT, text, "no such track in the input");
	if (n->sender.n_flows == 0 && !n->n_passed_over && !n->n_carried && !input_is_cut(&n->in))
		return err_say(&n->why, ERR_FORMAT, n->in.name, "has no sound to send");
	if (n->sender.n_flows == 0 && n->n_passed_over)
		return err_say(&n->why, ERR_FORMAT, n->in.name, "has no track that can be sent");
	if (!input_is_cut(&n->in))
		return ERR_OK;
	input_describe_loss(&n->in, text, sizeof(text));
	return err_say(&n->why, ERR_CUT, n->in.name, "%s", text);
}

/* ---- options ---- */

/* What URLs say of the format must hold for all, as they all get the same bytes. */
static void agree(struct netsend *n, const struct url *u, const char *text)
{
	struct sender_options *o = &n->options;

	if (u->pt >= 0 && o->pt >= 0 && u->pt != o->pt)
		tool_usage(&n->tool, text, "payload type %d here and %d elsewhere: all destinations get the same packets", u->pt, o->pt);
	if (u->pt >= 0)
		o->pt = u->pt;
	if (u->codec == RTP_CODEC_NONE || u->codec == RTP_CODEC_OPUS)
		return;
	if (o->pcm != RTP_CODEC_NONE && o->pcm != u->codec)
		tool_usage(&n->tool, text, "%s here and %s elsewhere: all destinations get the same packets", rtp_codec_name(u->codec), rtp_codec_name(o->pcm));
	o->pcm = u->codec;
}

/* Operands that are URLs are where it goes; one that is not is what is sent. */
static const char *sort_operands(struct netsend *n, char *const *operands, int n_operands)
{
	const char *input = NULL;

	for (int i = 0; i < n_operands; i++) {
		struct url *u = &n->options.urls[n->options.n_urls];

		if (!url_is_url(operands[i])) {
			if (input)
				tool_usage(&n->tool, operands[i], "one input at most, and it is '%s'; destinations are rtp://, srtp:// or weir://HOST:PORT", input);
			input = operands[i];
			continue;
		}
		if (n->options.n_urls == SENDER_MAX_URLS)
			tool_usage(&n->tool, operands[i], "more than %u destinations", SENDER_MAX_URLS);
		if (url_parse(u, operands[i], &n->why))
			tool_usage(&n->tool, n->why.thing, "%s", n->why.reason);
		if (u->scheme != URL_RTP && u->scheme != URL_SRTP && u->scheme != URL_WEIR)
			tool_usage(&n->tool, operands[i], "goes to rtp://, srtp:// or weir://HOST:PORT");
		if (!*u->host)
			tool_usage(&n->tool, operands[i], "has no host to send to");
		if (u->scheme == URL_WEIR)
			n->weir[n->n_weir++] = *u;
		agree(n, u, operands[i]);
		n->options.n_urls++;
	}
	if (n->options.n_urls == 0)
		tool_usage(&n->tool, "destination", "none is named: rtp://HOST:PORT");
	return input ? input : "-";
}

static void take_redundancy(struct netsend *n, const char *text)
{
	struct sender_options *o = &n->options;

	o->level_min = 0;
	o->level_max = RED_LEVELS - 1;
	if (!text || !strcmp(text, "auto"))
		return;
	o->level_max = 0;
	if (!strcmp(text, "off"))
		return;
	if (strchr(text, '+')) {
		if (rs_shape_parse(&o->shape, text, &n->why))
			tool_usage(&n->tool, "--redundancy", "%s", n->why.reason);
		return;
	}
	if (text[0] < '1' || text[0] > '3' || text[1])
		tool_usage(&n->tool, "--redundancy", "'%.20s' is not auto, off, 1 to 3, or K+R such as 8+2", text);
	static const struct rs_shape shapes[] = { { 8, 2 }, { 8, 4 }, { 10, 5 } };
	o->level_min = o->level_max = (unsigned)(text[0] - '0');
	o->shape = shapes[o->level_min - 1];
}

static void take_files(struct netsend *n, bool with_key, bool replace)
{
	if (n->sdp_paths.n > n->options.n_urls)
		tool_usage(&n->tool, "--sdp", "%u files for %u destinations", n->sdp_paths.n, n->options.n_urls);
	n->n_files = n->sdp_paths.n;
	for (unsigned i = 0; i < n->n_files; i++)
		n->files[i] = (struct sessionfile){ .path = n->sdp_paths.value[i], .to = i, .with_key = with_key, .replace = replace };
}

static void take_key(struct netsend *n, const char *path)
{
	bool needed = false;
	enum err e;

	for (unsigned i = 0; i < n->options.n_urls; i++)
		needed |= n->options.urls[i].scheme == URL_SRTP;
	if (!needed && !n->n_weir && path)
		tool_usage(&n->tool, "--key-file", "nothing is encrypted: srtp:// and weir:// are");
	if (!needed && !n->n_weir)
		return;
	e = keyfile_load(&n->key, path, &n->tool, &n->why);
	/* weir:// is sealed when there is a key, and its sound goes as srtp:// does. */
	for (unsigned i = 0; i < n->options.n_urls; i++) {
		struct url *u = &n->options.urls[i];

		if (u->scheme == URL_WEIR)
			u->scheme = e == ERR_END ? URL_RTP : URL_SRTP;
	}
	if (!e && n->n_weir && (!n->key.has_secret || secret_seal(&n->key.secret, n->psk)))
		tool_usage(&n->tool, "weir://", "needs a key of weir's own, not one for other programs: `weir keygen` makes one");
	if (e == ERR_END && !needed)
		return;
	if (e == ERR_END)
		tool_usage(&n->tool, "srtp://", "needs a key: --key-file FILE, or WEIR_KEY in the environment");
	if (e)
		exit(tool_end(&n->tool, e, &n->why));
	n->options.key = &n->key.srtp;
}

/* An Ogg Opus file goes as it is, any other audio file as PCM. */
static enum err open_input(struct netsend *n, const char *name)
{
	struct input_options io = { .undecoded = true };
	struct stat st;
	enum err e;

	io.reader.stop = io.source.stop = &tool_stop;
	io.reader.expand_silence = true;
	e = input_open(&n->in, name, &io, &n->why);
	if (e == ERR_FORMAT && strcmp(name, "-")) {
		io.undecoded = false;
		e = input_open(&n->in, name, &io, &n->why);
	}
	if (e)
		return e;
	n->from_file = fstat(n->in.fd, &st) == 0 && S_ISREG(st.st_mode);
	return ERR_OK;
}

static void count_more(struct netsend *n)
{
	const struct {
		const char *key;
		const atomic_uint_fast64_t *value;
	} keys[] = {
		{ "sent_datagrams", &n->sender.sent_datagrams }, { "sent_bytes", &n->sender.sent_bytes },
		{ "send_errors", &n->sender.send_errors }, { "repair_datagrams", &n->sender.repair_datagrams },
		{ "redundant_copies", &n->sender.redundant_copies }, { "redundancy_level", &n->sender.red_level },
		{ "rtcp_in", &n->sender.rtcp_in }, { "receivers", &n->sender.n_reporting }, { "receivers_gone", &n->sender.n_gone },
		{ "peer_lost", &n->sender.peer_lost }, { "peer_jitter_us", &n->sender.peer_jitter_us },
		{ "round_trip_us", &n->sender.round_trip_us }, { "refused_packets", &n->sender.refused },
		{ "clipped_samples", &n->sender.clipped },
	};

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		stats_key(&n->stats, keys[i].key, keys[i].value);
	if (n->n_weir)
		linkout_count(&n->links, &n->stats);
}

int main(int argc, char **argv)
{
	static struct netsend n = { .options = { .pt = -1, .ttl = -1 } };
	static const struct opt_choice formats[] = { { "auto", RTP_CODEC_NONE }, { "s16", RTP_CODEC_L16 }, { "s24", RTP_CODEC_L24 }, { NULL, 0 } };
	static const struct opt_choice rtcps[] = { { "mux", SENDER_RTCP_MUX }, { "next-port", SENDER_RTCP_NEXT_PORT }, { "off", SENDER_RTCP_OFF }, { NULL, 0 } };
	int64_t seq = -1, ts = -1, ssrc = -1, pt = -1, ttl = -1, port_step = 0;
	int format = RTP_CODEC_NONE, rtcp = SENDER_RTCP_MUX;
	const char *redundancy = NULL, *key_path = NULL;
	bool with_key = false, replace = false, announce = false;
	enum err e;

	const struct opt options[] = {
		OPT_LIST('t', "track", "TRACK", &n.wanted, "send only these tracks: number, name or kind"),
		OPT_CHOICE('f', "format", "FORMAT", &format, formats, "PCM goes as s16 (L16), s24 (L24), or auto: s16 as it is, the rest as s24 (auto)"),
		OPT_TIME(0, "packet-time", "TIME", &n.options.packet_time, 0.0001, 1, "of PCM in a packet (what comes in one, else up to 5ms)"),
		OPT_LIST(0, "sdp", "FILE", &n.sdp_paths, "write the session description; the n-th is for the n-th destination"),
		OPT_FLAG(0, "sdp-key", &with_key, "write the key of srtp:// into it, for programs that look for it there"),
		OPT_FLAG('y', "force", &replace, "replace an existing file"),
		OPT_STRING(0, "redundancy", "HOW", &redundancy, "auto, off, 1 to 3, or K+R repair packets for PCM (auto)"),
		OPT_STRING(0, "key-file", "FILE", &key_path, "key of srtp://; else the environment variable WEIR_KEY"),
		OPT_STRING(0, "iface", "NAME", &n.options.iface, "multicast leaves by this network interface"),
		OPT_INT(0, "ttl", "N", &ttl, 1, 255, "routers that it may pass (1 for multicast)"),
		OPT_CHOICE(0, "rtcp", "WHERE", &rtcp, rtcps, "reports go to the same port (mux), to the next one, or nowhere (mux)"),
		OPT_INT(0, "port-step", "N", &port_step, 0, 1000, "every further flow goes to a port so much higher (0)"),
		OPT_INT(0, "pt", "N", &pt, 0, 127, "payload type"),
		OPT_INT(0, "seq", "N", &seq, 0, 65535, "first sequence number (random)"),
		OPT_INT(0, "timestamp", "N", &ts, 0, 4294967295.0, "first timestamp (random)"),
		OPT_INT(0, "ssrc", "N", &ssrc, 0, 4294967295.0, "SSRC of the first flow (random)"),
		OPT_STRING(0, "session", "NAME", &n.options.session_name, "what the session is called"),
		OPT_FLAG(0, "announce", &announce, "make the session known, by SAP and mDNS, to netrecv --browse and others"),
		OPT_FLAG(0, "fast", &n.options.is_fast, "send as fast as the input comes, not at its own pace"),
		OPT_END
	};
	tool_begin(&n.tool, "netsend", "[options] URL... [INPUT]", "Send a stream over the network by RTP, or whole.", options, &argc, &argv);
	n.options.pt = (int)pt;
	n.options.ttl = (int)ttl;
	n.options.pcm = format;
	n.options.rtcp = rtcp;
	n.options.port_step = (unsigned)port_step;
	n.options.has_seq = seq >= 0;
	n.options.has_ts = ts >= 0;
	n.options.has_ssrc = ssrc >= 0;
	n.options.seq = (uint16_t)seq;
	n.options.ts = (uint32_t)ts;
	n.options.ssrc = (uint32_t)ssrc;
	const char *input = sort_operands(&n, argv + 1, argc - 1);
	if (select_check(&n.wanted, &n.why))
		tool_usage(&n.tool, n.why.thing, "%s", n.why.reason);
	take_redundancy(&n, redundancy);
	take_files(&n, with_key, replace);
	take_key(&n, key_path);

	count_more(&n);
	/* Packets leave at their moment, not in the 50 µs after it. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	if ((e = open_input(&n, input)) || (e = linkout_open(&n.links, &n.tool, n.weir, n.n_weir, n.key.has_secret ? n.psk : NULL, &n.why)) ||
		(e = sender_open(&n.sender, &n.options, &n.tool, &n.stats, &n.why)) || (e = stats_begin(&n.stats, &n.tool, &n.why)))
		goto out;
	progress_begin(&n.progress, &n.tool);
	if (announce)
		announce_begin(&n.announce, &n.sender);
	e = run(&n);
	if (!e)
		e = finish(&n);
	else if (!n.why.reason[0])
		n.why = n.in.why;
out:
	progress_end(&n.progress);
	stats_end(&n.stats);
	announce_end(&n.announce);
	sender_release(&n.sender);
	linkout_release(&n.links);
	input_release(&n.in);
	secret_wipe(n.psk, sizeof(n.psk));
	keyfile_wipe(&n.key);
	return tool_end(&n.tool, e, &n.why);
}
