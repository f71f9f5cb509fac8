#include "leg/sender.h"

#include "base/cpu.h"
#include "net/secret.h"
#include "rt/clock.h"
#include "rt/wake.h"
#include "leg/sendout.h"
#include "leg/sendrtcp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEND_BUFFER_BYTES (1 << 20)
#define RECEIVE_SLOTS 16u
#define RECEIVE_BYTES 1500u
#define MAX_HEARD 64u                        /* receivers whose encrypted reports are taken */
#define RS_PACKET_BYTES (RTP_HEADER_BYTES + RTP_MTU_PAYLOAD_BYTES)
#define DSCP_EXPEDITED 46
#define LEAST_LEAD_NS (UNITS_NS_PER_S / 500) /* before the first packet, so that none is late by what it takes to begin */

/* ---- beginning ---- */

double sender_random(struct sender *s)
{
	/* xorshift64*, for times only: what must not be guessed comes from the system. */
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return (double)((s->random * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

static const char *iface_of(const struct sender *s, const struct url *u)
{
	return *u->iface ? u->iface : s->o.iface ? s->o.iface : "";
}

static int ttl_of(const struct sender *s, const struct url *u)
{
	return u->ttl >= 0 ? u->ttl : s->o.ttl;
}

/* One socket serves all destinations that leave in the same way. */
static enum err socket_for(struct sender *s, struct sender_to *to, struct err_why *why)
{
	struct dgram_options o = {
		.iface = iface_of(s, &to->url), .ttl = ttl_of(s, &to->url), .complaints = true,
		.send_bytes = SEND_BUFFER_BYTES, .dscp = DSCP_EXPEDITED,
	};
	enum err e;

	for (unsigned i = 0; i < s->n_sockets; i++) {
		if (s->sockets[i].family == to->addr.any.sa_family && !strcmp(s->ways[i].iface, o.iface) && s->ways[i].ttl == o.ttl) {
			to->socket = i;
			return ERR_OK;
		}
	}
	if (s->n_sockets == SENDER_MAX_URLS)
		return err_say(why, ERR_LIMIT, "sockets", "more than %u", SENDER_MAX_URLS);
	struct dgram_addr any = { .n_bytes = to->addr.n_bytes };
	any.any.sa_family = to->addr.any.sa_family;
	to->socket = s->n_sockets;
	if ((e = dgram_open(&s->sockets[s->n_sockets], &any, &o, why)))
		return e;
	s->ways[s->n_sockets++] = (struct sender_way){ o.iface, o.ttl };
	return dgram_outbox_init(&s->outboxes[to->socket], DGRAM_MAX_BATCH, why);
}

/* Is there a way there, and which of our addresses is at its beginning? */
static enum err try_route(struct sender *s, struct sender_to *to, struct err_why *why)
{
	struct dgram_options o = { .iface = iface_of(s, &to->url), .ttl = -1 };
	struct dgram_addr any = { 0 };
	struct dgram probe;
	enum err e;

	any.any.sa_family = to->addr.any.sa_family;
	if ((e = dgram_open(&probe, &any, &o, why)))
		return e;
	if (!(e = dgram_connect(&probe, &to->addr, why)))
		e = dgram_local(&probe, &to->local, why);
	dgram_set_port(&to->local, 0);
	dgram_close(&probe);
	return e;
}

static enum err open_to(struct sender *s, const struct url *u, struct err_why *why)
{
	struct sender_to *to = &s->to[s->n_to];
	struct dgram_addr found[DGRAM_MAX_ADDRS];
	unsigned n;
	enum err e;

	to->url = *u;
	to->is_secure = u->scheme == URL_SRTP;
	if ((e = dgram_resolve_all(found, DGRAM_MAX_ADDRS, &n, u->host, u->port, AF_UNSPEC, why)))
		return e;
	/* The first that there is a way to. */
	for (unsigned i = 0; i < n && (!i || e); i++) {
		to->addr = found[i];
		e = try_route(s, to, why);
	}
	dgram_text(&to->addr, to->name);
	if (e || (e = socket_for(s, to, why)))
		return e;
	s->any_secure |= to->is_secure;
	s->any_plain |= !to->is_secure;
	s->n_to++;
	return ERR_OK;
}

static enum err open_keys(struct sender *s, struct err_why *why)
{
	if (!s->any_secure)
		return ERR_OK;
	if (!s->o.key)
		return err_say(why, ERR_ARG, "srtp://", "needs a key: --key-file FILE, or WEIR_KEY in the environment");
	enum err e = srtp_session_init(&s->srtp, s->o.key, MAX_HEARD, why);
	s->has_srtp = !e;
	if (!e && s->o.has_ssrc && !s->tool->quiet)
		tool_warn(s->tool, "--ssrc", "with a key that was used with this SSRC before, both encryptions can be undone: a new key for each run");
	return e;
}

static enum err open_repair(struct sender *s, struct err_why *why)
{
	if (s->o.shape.n_repairs == 0)
		return ERR_OK;
	s->rs_memory = malloc(rs_encoder_bytes(s->o.shape, RS_PACKET_BYTES));
	s->repairs = malloc((size_t)RS_REPAIRS_MAX * SENDER_REPAIR_BYTES);
	if (!s->rs_memory || !s->repairs)
		return err_say(why, ERR_NOMEM, "repair packets", "%s", err_text(ERR_NOMEM));
	rs_encoder_init(&s->rs, s->o.shape, RS_PACKET_BYTES, s->rs_memory, cpu_flags());
	s->rs_pt = SENDER_PT_REPAIR;
	if (secret_random(&s->rs_ssrc, sizeof(s->rs_ssrc)) || secret_random(&s->rs_seq, sizeof(s->rs_seq)))
		return err_say(why, ERR_SYS, "random numbers", "the system has none");
	s->has_rs = true;
	return s->has_srtp ? srtp_session_send(&s->srtp, s->rs_ssrc, 0, why) : ERR_OK;
}

enum err sender_open(struct sender *s, const struct sender_options *o, struct tool *t, struct stats *stats, struct err_why *why)
{
	uint64_t name[2];
	enum err e;

	s->o = *o;
	s->tool = t;
	s->stats = stats;
	s->flows = calloc(SENDER_MAX_FLOWS, sizeof(*s->flows));
	s->addrs = calloc(2 * (size_t)SENDER_MAX_FLOWS * SENDER_MAX_URLS, sizeof(*s->addrs));
	if (!s->flows || !s->addrs)
		return err_say(why, ERR_NOMEM, "flows", "%s", err_text(ERR_NOMEM));
	if (secret_random(&s->random, sizeof(s->random)) || secret_random(name, sizeof(name)))
		return err_say(why, ERR_SYS, "random numbers", "the system has none");
	s->random |= 1;
	/* A name for this run alone (RFC 7022 section 4.2). */
	snprintf(s->cname, sizeof(s->cname), "weir-%016" PRIx64, name[0]);
	for (unsigned i = 0; i < o->n_urls; i++) {
		if ((e = open_to(s, &o->urls[i], why)))
			return e;
	}
	if ((e = open_keys(s, why)) || (e = open_repair(s, why)))
		return e;
	return dgram_batch_init(&s->batch, RECEIVE_SLOTS, RECEIVE_BYTES, why);
}

void sender_release(struct sender *s)
{
	for (unsigned i = 0; i < s->n_flows; i++) {
		flow_release(s->flows[i]);
		free(s->flows[i]);
	}
	for (unsigned i = 0; i < s->n_sockets; i++) {
		dgram_close(&s->sockets[i]);
		dgram_outbox_release(&s->outboxes[i]);
	}
	dgram_batch_release(&s->batch);
	srtp_session_release(&s->srtp);
	free(s->flows);
	free(s->addrs);
	free(s->rs_memory);
	free(s->repairs);
	s->n_flows = s->n_sockets = 0;
	s->flows = NULL;
	s->addrs = NULL;
	s->rs_memory = s->repairs = NULL;
}

/* ---- tracks and flows ---- */

static enum rtp_codec codec_of(const struct sender *s, const struct track *t)
{
	if (track_is_opus(t))
		return RTP_CODEC_OPUS;
	return s->o.pcm != RTP_CODEC_NONE ? s->o.pcm : t->sample == SAMPLE_S16 ? RTP_CODEC_L16 : RTP_CODEC_L24;
}

static uint8_t usual_pt(const struct sender *s, enum rtp_codec codec, uint32_t rate_hz, unsigned channels)
{
	if (s->o.pt >= 0)
		return (uint8_t)s->o.pt;
	if (codec == RTP_CODEC_OPUS)
		return SENDER_PT_OPUS;
	if (codec == RTP_CODEC_L16 && rate_hz == 44100 && channels <= 2)
		return channels == 2 ? 10 : 11;
	return codec == RTP_CODEC_L16 ? SENDER_PT_L16 : SENDER_PT_L24;
}

/* What a datagram holds of payload, beside encryption and what repairs are longer by. */
static size_t payload_bytes(const struct sender *s)
{
	size_t n = RTP_MTU_PAYLOAD_BYTES;

	if (s->any_secure)
		n -= srtp_tail_bytes(s->o.key->kind);
	if (s->has_rs)
		n -= RTP_HEADER_BYTES + rs_overhead_bytes(RS_FLOWS_MAX, s->o.shape.n_sources);
	return n;
}

static enum err plan(struct sender *s, const struct track *t, unsigned first_channel, struct packer_options *o, struct err_why *why)
{
	enum rtp_codec codec = codec_of(s, t);
	unsigned channels = t->channels - first_channel;
	uint32_t rate_hz = track_rate_hz(t);

	if (codec != RTP_CODEC_OPUS && channels > PACKER_MAX_CHANNELS)
		channels = PACKER_MAX_CHANNELS;
	*o = (struct packer_options){
		.codec = codec,
		.red_pt = SENDER_PT_RED,
		.first_channel = (uint16_t)first_channel, .channels = (uint16_t)channels,
		.max_payload_bytes = payload_bytes(s),
	};
	o->pt = usual_pt(s, codec, rate_hz, channels);
	if (secret_random(&o->ssrc, sizeof(o->ssrc)) || secret_random(&o->seq, sizeof(o->seq)) || secret_random(&o->ts, sizeof(o->ts)))
		return err_say(why, ERR_SYS, "random numbers", "the system has none");
	/* Half of the numbers, so that the first turn is not soon (RFC 3711 section 3.3.1). */
	o->seq &= 0x7fff;
	o->ssrc = s->o.has_ssrc ? s->o.ssrc + s->n_begun : o->ssrc;
	o->seq = s->o.has_seq ? s->o.seq : o->seq;
	o->ts = s->o.has_ts ? s->o.ts : o->ts;
	if (codec == RTP_CODEC_OPUS)
		return ERR_OK;
	/* The widest flow of a track decides for all, so that what belongs together goes together. */
	unsigned widest = t->channels < PACKER_MAX_CHANNELS ? t->channels : PACKER_MAX_CHANNELS;
	unsigned frame_bytes = widest * rtp_codec_sample_bytes(codec);
	if (s->o.packet_time.is_set) {
		int64_t n = opt_time_frames(&s->o.packet_time, t->rate_num, t->rate_den), most = (int64_t)(o->max_payload_bytes / frame_bytes);
		if (n < 1 || n > most)
			return err_say(why, ERR_ARG, "--packet-time", "%" PRId64 " frames of %u bytes: a datagram holds 1 to %" PRId64 ", that is %.3g ms", n, frame_bytes, most, 1000 * units_to_s(most, t->rate_num, t->rate_den));
		o->packet_frames = (uint32_t)n;
		return ERR_OK;
	}
	o->packet_frames = packer_usual_frames(t->nominal_dur, rate_hz, frame_bytes, o->max_payload_bytes);
	if (s->o.is_live && t->nominal_dur > o->packet_frames) {
		/* A block that is cut is cut evenly, so that no part of it waits for the next. */
		uint32_t most = (uint32_t)(o->max_payload_bytes / frame_bytes), n = (t->nominal_dur + most - 1) / most;
		o->packet_frames = (t->nominal_dur + n - 1) / n;
		o->whole_blocks = true;
	}
	return ERR_OK;
}

static void set_addrs(struct sender *s, unsigned flow)
{
	for (unsigned i = 0; i < s->n_to; i++) {
		struct dgram_addr *media = &s->addrs[(size_t)flow * SENDER_MAX_URLS + i];
		struct dgram_addr *rtcp = media + (size_t)SENDER_MAX_FLOWS * SENDER_MAX_URLS;
		uint16_t port = (uint16_t)(s->to[i].url.port + flow * s->o.port_step);

		*media = *rtcp = s->to[i].addr;
		dgram_set_port(media, port);
		dgram_set_port(rtcp, s->o.rtcp == SENDER_RTCP_NEXT_PORT ? (uint16_t)(port + 1) : port);
	}
}

void sender_redirect(struct sender *s, unsigned to, const struct dgram_addr *addr)
{
	struct sender_to *old = &s->to[to], new = *old;
	struct err_why why;

	if (dgram_same(&old->addr, addr))
		return;
	new.addr = *addr;
	new.is_said = false;
	dgram_text(&new.addr, new.name);
	if (try_route(s, &new, &why) || socket_for(s, &new, &why))
		return;
	*old = new;
	for (unsigned i = 0; i < s->n_flows; i++)
		set_addrs(s, i);
}

static void retire(struct sender *s, struct flow *f)
{
	double position_s = units_to_s((int64_t)f->sent_frames, f->rate_hz, 1);

	s->gone.frames += f->sent_frames;
	s->gone.packets += f->sent_packets;
	s->gone.refused += f->packer.n_refused;
	s->gone.skipped += f->packer.n_skipped;
	s->gone.clipped += f->packer.clipped_samples;
	s->gone.copies += f->history.n_copies;
	if (position_s > s->gone.position_s)
		s->gone.position_s = position_s;
	flow_release(f);
	free(f);
}

/* A place for a flow: a new one, or that of one that has left.  SENDER_MAX_FLOWS: all are in use. */
static unsigned place_for(struct sender *s)
{
	unsigned place = s->n_flows;

	for (unsigned i = 0; i < s->n_flows && place == SENDER_MAX_FLOWS; i++)
		place = s->flows[i]->n_byes >= SENDRTCP_BYES ? i : place;
	if (place < SENDER_MAX_FLOWS)
		return place;
	/* One that is done and would say so soon says so now. */
	(void)sendout_work(s, clock_now_ns());
	for (unsigned i = 0; i < s->n_flows; i++) {
		if (!flow_is_done(s->flows[i]))
			continue;
		sendrtcp_say(s, i, true, clock_now_ns());
		return i;
	}
	return place;
}

static enum err add_flow(struct sender *s, const struct track *t, unsigned first_channel, struct err_why *why)
{
	unsigned place = place_for(s);
	struct packer_options o;
	enum err e;

	if (place == SENDER_MAX_FLOWS)
		return err_say(why, ERR_LIMIT, "flows", "more than %u at once", SENDER_MAX_FLOWS);
	for (unsigned i = 0; i < s->n_to; i++) {
		if (s->to[i].url.port + (uint64_t)place * s->o.port_step > 65534)
			return err_say(why, ERR_ARG, s->to[i].name, "flow %u would go to a port beyond 65535", place + 1);
	}
	if ((e = plan(s, t, first_channel, &o, why)))
		return e;
	struct flow *f = malloc(sizeof(*f));
	if (!f)
		return err_say(why, ERR_NOMEM, "flow", "%s", err_text(ERR_NOMEM));
	bool is_opus = o.codec == RTP_CODEC_OPUS;
	if ((e = flow_init(f, t, &o, is_opus ? s->o.level_min : 0, is_opus ? s->o.level_max : 0, why)) ||
		(s->has_srtp && (e = srtp_session_send(&s->srtp, o.ssrc, 0, why)))) {
		flow_release(f);
		free(f);
		return e == ERR_ARG ? ERR_FORMAT : e;
	}
	if (place < s->n_flows)
		retire(s, s->flows[place]);
	s->n_flows += place == s->n_flows;
	s->n_begun++;
	set_addrs(s, place);
	s->flows[place] = f;
	return ERR_OK;
}

/* The same sound under a new announcement: its flows go on. */
static bool goes_on(const struct flow *f, const struct track *t, enum rtp_codec codec)
{
	return f->packer.o.codec == codec && f->sample == t->sample && f->all_channels == t->channels && f->rate_hz == track_rate_hz(t);
}

enum err sender_track(struct sender *s, const struct track *t, struct err_why *why)
{
	enum rtp_codec codec = codec_of(s, t);
	bool going_on = false;
	enum err e;

	if (!track_is_opus(t) && !track_is_pcm(t))
		return err_say(why, ERR_FORMAT, "rtp://", "no sound, which is all that rtp:// carries: weir:// takes other tracks too");
	if (track_is_opus(t) && t->channels > 2)
		return err_say(why, ERR_FORMAT, "rtp://", "Opus of %u channels, of which RTP carries 1 or 2: send it decoded, or encode it in pairs", t->channels);
	for (unsigned i = 0; i < s->n_flows; i++) {
		struct flow *f = s->flows[i];

		if (f->track != t->id || f->has_left)
			continue;
		if (goes_on(f, t, codec)) {
			/* Also after its END, when streams follow each other. */
			going_on = true;
			f->is_over = false;
			f->end_pos = RTCP_UNKNOWN_POS;
		} else if (!f->is_over) {
			sender_end_track(s, t->id, RTCP_UNKNOWN_POS);
		}
	}
	for (unsigned c = 0; c < t->channels && !going_on; c += PACKER_MAX_CHANNELS) {
		if ((e = add_flow(s, t, c, why)))
			return e;
		if (codec == RTP_CODEC_OPUS)
			break;
	}
	return ERR_OK;
}

void sender_end_track(struct sender *s, uint16_t track, int64_t end_pos)
{
	for (unsigned i = 0; i < s->n_flows; i++) {
		if (s->flows[i]->track != track || s->flows[i]->is_over)
			continue;
		flow_flush(s->flows[i]);
		s->flows[i]->end_pos = end_pos;
		s->flows[i]->is_over = true;
	}
}

/* ---- packets ---- */

static void begin(struct sender *s, const struct flow *f, int64_t pos)
{
	int64_t now_ns = clock_now_ns();

	s->begun = true;
	s->eased_ns = now_ns;
	s->anchor_ns = now_ns - flow_line_ns(f, pos) + (s->o.is_live || s->o.is_fast ? 0 : LEAST_LEAD_NS);
	sendrtcp_begin(s, now_ns);
}

enum err sender_take(struct sender *s, const struct packet *k)
{
	uint64_t refused = s->gone.refused, skipped = s->gone.skipped, clipped = s->gone.clipped, copies = s->gone.copies;

	if (k->type != PACKET_DATA && k->type != PACKET_GAP)
		return ERR_OK;
	for (unsigned i = 0; i < s->n_flows && k->type == PACKET_DATA; i++) {
		if (s->flows[i]->track == k->track && !s->flows[i]->is_over && !flow_has_room(s->flows[i], k))
			return ERR_AGAIN;
	}
	for (unsigned i = 0; i < s->n_flows; i++) {
		struct flow *f = s->flows[i];

		if (f->track == k->track && !f->is_over) {
			if (!s->begun && k->type == PACKET_DATA)
				begin(s, f, k->pos);
			if (k->type == PACKET_DATA)
				flow_put(f, k);
			else
				flow_flush(f);
		}
		refused += f->packer.n_refused;
		skipped += f->packer.n_skipped;
		clipped += f->packer.clipped_samples;
		copies += f->history.n_copies;
	}
	stats_set(&s->refused, refused);
	stats_set(&s->skipped, skipped);
	stats_set(&s->clipped, clipped);
	stats_set(&s->redundant_copies, copies);
	return ERR_OK;
}

bool sender_is_empty(const struct sender *s)
{
	uint8_t *rtp;

	for (unsigned i = 0; i < s->n_flows; i++) {
		if (flow_peek(s->flows[i], 0, &rtp))
			return false;
	}
	return true;
}

int64_t sender_work(struct sender *s)
{
	int64_t now_ns = clock_now_ns(), media_ns, rtcp_ns;

	if (!s->begun)
		return INT64_MAX;
	media_ns = sendout_work(s, now_ns);
	rtcp_ns = sendrtcp_work(s, now_ns);
	sendrtcp_hear(s);
	sendout_complaints(s);
	return media_ns < rtcp_ns ? media_ns : rtcp_ns;
}

unsigned sender_polls(const struct sender *s, struct pollfd *p)
{
	for (unsigned i = 0; i < s->n_sockets; i++)
		p[i] = (struct pollfd){ .fd = s->sockets[i].fd, .events = POLLIN };
	return s->n_sockets;
}

void sender_bye(struct sender *s)
{
	int64_t now_ns = clock_now_ns();

	sendout_finish_block(s);
	for (unsigned times = 0; times < SENDRTCP_BYES && s->begun && s->o.rtcp != SENDER_RTCP_OFF; times++) {
		if (times)
			wake_sleep_until(now_ns += SENDRTCP_BYE_NS, NULL);
		for (unsigned i = 0; i < s->n_flows; i++) {
			if (s->flows[i]->n_byes <= times)
				sendrtcp_say(s, i, true, now_ns);
		}
	}
}

double sender_position_s(const struct sender *s)
{
	double most_s = s->gone.position_s;

	for (unsigned i = 0; i < s->n_flows; i++) {
		const struct flow *f = s->flows[i];
		double one_s = units_to_s((int64_t)f->sent_frames, f->rate_hz, 1);
		most_s = one_s > most_s ? one_s : most_s;
	}
	return most_s;
}
